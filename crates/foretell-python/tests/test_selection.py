"""Selection of predictors: what is reported, what is refused, and models of every kind that it makes."""

import copy
import dataclasses
import json
import math
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest

import foretell as ft

# The command line to compare with: the tests' own, if no other is named.
BINARY = os.environ.get("FORETELL_BINARY", Path(__file__).parents[3] / "target" / "debug" / "foretell")


@pytest.fixture(scope="module")
def maze():
    return ft.sample("colored-gridworld", episodes=150, seed=1)


@pytest.fixture(scope="module")
def mixture(maze):
    model = ft.learn(maze)
    assert len(model.members) > 1
    return model


def copying(steps=3000):
    """Logs of a system that usually repeats its last observation: an n-gram of one step is exact."""
    rng = np.random.default_rng(1)
    changes = rng.random(steps) < 0.2
    return ft.from_numpy(["wait"] * steps, np.cumsum(changes) % 2, rng.random(steps), episodes=np.arange(steps) // 20)


@pytest.fixture(scope="module")
def ngram():
    logs = copying()
    model = ft.learn(logs, only="ngram", ngram_length=1)
    assert model.members == [ft.Member("ngram", "up to 1 step", 1.0)]
    return logs, model


@pytest.mark.parametrize(
    ("flags", "keywords"),
    [
        ([], {}),
        (["--effort", "quick", "--rank", "4", "--seed", "3", "--ensemble", "2", "--keep-moments"],
         {"effort": "quick", "rank": 4, "seed": 3, "ensemble": 2, "keep_moments": True}),
        (["--only", "latent", "--states", "8", "--em-rounds", "5"], {"only": "latent", "states": 8, "em_rounds": 5}),
        (["--only", "ngram"], {"only": "ngram"}),
        (["--mix", "0.2", "--rank", "5"], {"mix": 0.2, "rank": 5}),
    ],
    ids=lambda given: " ".join(given) or "default" if isinstance(given, list) else "",
)
def test_python_and_the_command_line_select_the_same(maze, flags, keywords, tmp_path):
    maze[:60].write(tmp_path / "walks.csv")
    command = [BINARY, "-q", "learn", "walks.csv", "-o", "model.safetensors", "--json", *flags]
    reported = json.loads(subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    model = ft.learn(ft.read(tmp_path / "walks.csv"), **keywords)
    model.save(tmp_path / "python.safetensors")
    assert (tmp_path / "python.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    if "mix" in keywords:
        assert model.selection is None and reported["selection"] is None
    else:
        assert model.selection == ft.Selection._of(reported["selection"])


def test_the_selection_is_reported(mixture):
    selection = mixture.selection
    assert selection.effort == "normal" and selection.parts == 150 and selection.folds == 5
    assert {candidate.kind for candidate in selection.tried} == {"ngram", "linear", "latent", "recurrent"}
    assert math.isclose(sum(candidate.weight for candidate in selection.tried), 1)
    for candidate in selection.tried:
        assert math.isclose(candidate.nats + candidate.behind, selection.nats, abs_tol=1e-9)
    weights = [candidate.weight for candidate in selection.tried if candidate.weight > 0]
    assert np.allclose(weights, [member.weight for member in mixture.members])
    words = repr(selection).splitlines()
    assert words[0].startswith(f"<foretell.Selection: {selection.nats:.4f} ± ")
    assert len(words) == 2 + len(selection.tried) and "behind the choice" in words[1] and f"{weights[0]:.2f}" in "".join(words)
    shown = selection._repr_html_()
    assert shown.count("<tr>") == 1 + len(selection.tried) and "<th style='text-align:left'>predictor</th>" in shown


def test_reports_of_a_newer_library_are_read(mixture):
    report = dataclasses.asdict(mixture.selection)
    assert mixture.selection.rewards is None
    newer = ft.Selection._of({**report, "rewards": {"observed": True}, "something": 1})
    assert newer == dataclasses.replace(mixture.selection, rewards={"observed": True})


def test_mixtures_say_what_they_are(mixture, tmp_path):
    assert "mixture of " in repr(mixture) and "weight 0." in mixture._repr_html_()
    mixture.save(tmp_path / "model.safetensors")
    loaded = ft.load(tmp_path / "model.safetensors")
    assert loaded.selection is None and loaded.members == mixture.members and repr(loaded) == repr(mixture)
    for again in (pickle.loads(pickle.dumps(mixture)), copy.deepcopy(mixture), mixture.with_discretiser(None)):
        assert again.selection == mixture.selection and again.members == mixture.members
    assert mixture.linear().selection is None and len(mixture.linear().members) == 1
    ngram = ft.Member("ngram", "up to 3 steps", 0.25)
    assert mixture.linear().with_mix(0.25).members == [ft.Member("linear", f"rank {mixture.rank}", 0.75), ngram]


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"refine": True, "only": "latent"}, "leave out only or refine"),
        ({"mix": 0, "only": "ngram"}, 'only="ngram": mix and preset="paper" describe a linear model'),
        ({"preset": "paper", "only": "latent"}, 'only="latent": mix and preset="paper" describe a linear model'),
        ({"effort": "quick", "states": 3}, "states: parameters of latent states, of which there are none"),
        ({"only": "linear", "layout": "free"}, "layout: parameters of latent states"),
        ({"mix": 0, "em_rounds": 3, "patience": 1}, "em_rounds, patience: parameters of latent states"),
    ],
)
def test_keywords_that_contradict_each_other_are_refused(maze, keywords, said):
    with pytest.raises(ValueError, match=said):
        ft.learn(maze, **keywords)


def test_what_describes_one_model_selects_nothing(maze):
    for keywords in ({"mix": 0, "only": "linear"}, {"preset": "paper", "only": "linear"}, {"refine": True, "em_rounds": 2}):
        assert ft.learn(maze, rank=4, **keywords).selection is None


def test_an_ngram_alone_predicts(ngram):
    _, model = ngram
    assert repr(model).startswith("<foretell.Model: n-gram of up to 1 step, 1 action, 2 observations, learned from ")
    assert model.states is None and "up to 1 step, weight 1.00" in model._repr_html_()
    assert model.with_mix(0.5).members == model.members
    state = model.filter()
    assert math.isclose(state.predict_array("wait").sum() + state.unseen, 1, abs_tol=1e-12)
    state.update("wait", 0)
    assert state.predict("wait")["0"] == pytest.approx(0.8, abs=0.03) and len(state.state) == 0
    state.update_missing("wait")
    assert math.isclose(state.predict_array("wait").sum() + state.unseen, 1, abs_tol=1e-12)
    assert len(model.forecast([("wait", 0)], actions=["wait"] * 3)) == 3
    assert [len(future) for future in model.sample(actions=["wait"] * 4, n=2, seed=1)] == [4, 4]
    assert model.probability([("wait", 1), ("wait", 1)], history=[("wait", 1)]) == pytest.approx(0.64, abs=0.05)


def test_an_ngram_alone_survives_files_and_pickles(ngram, tmp_path):
    logs, model = ngram
    model.save(tmp_path / "model.safetensors")
    for again in (ft.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert again.members == model.members
        assert again.predict([("wait", 0)], action="wait") == model.predict([("wait", 0)], action="wait")
    assert ft.score(model, logs).per_step == pytest.approx(0.8 * math.log(0.8) + 0.2 * math.log(0.2), abs=0.03)


def test_an_ngram_has_no_linear_part(ngram):
    logs, model = ngram
    for use in (
        lambda: model.rank,
        lambda: model.spectrum,
        lambda: model.initial,
        lambda: model.normalizer,
        lambda: model.operator("wait", 0),
        model.linear,
        model.plot_spectrum,
        lambda: ft.update(model, logs),
        lambda: ft.merge(model),
    ):
        with pytest.raises(ValueError, match='the model is an n-gram, and has no linear part; learn one with only="linear"'):
            use()
    for use in (model.pomdp, model.tables):
        with pytest.raises(ValueError, match="the model has no latent states"):
            use()
    with pytest.raises(ValueError, match="has no state vector"):
        ft.gymnasium.PredictiveStates(ft.gymnasium.DomainEnv("tiger"), model)
    with pytest.warns(UserWarning, match="keeps no moments"):
        ft.learn(logs, only="ngram", keep_moments=True)


def test_selected_models_keep_the_moments_of_their_linear_part():
    parts = [ft.sample("tiger", episodes=100, seed=seed) for seed in (1, 2)]
    given = {"rank": 3, "observe_reward": False, "keep_moments": True}
    selected, linear = ft.learn(parts[0], **given), ft.learn(parts[0], mix=0, **given)
    assert selected.moments == "exact"
    history = [("listen", "growl-left")]
    updated = [ft.update(model, parts[1]).predict(history, action="listen") for model in (selected, linear)]
    assert updated[0] == updated[1]
