"""Tables as people have them: keywords say what their columns mean."""

import warnings

import numpy as np
import pandas
import polars
import pytest

import foretell as ft

ANSWERS = {
    "user": ["ann", "bob", "ann", "bob", "bob"],
    "when": [2, 5, 1, 6, 7],
    "skill": ["sub", "add", "add", "add", "sub"],
    "correct": [0, 1, 1, None, 1],
}
READ = {"episode": "user", "sort": "when", "action": "skill", "observation": "correct"}
EXPECTED = [[("add", "1", None), ("sub", "0", None)], [("add", "1", None), ("add", None, None), ("sub", "1", None)]]


def test_all_tables_take_the_same_keywords(tmp_path):
    frame = pandas.DataFrame(ANSWERS)
    frame["correct"] = frame["correct"].astype("Int64")
    frame.to_csv(tmp_path / "answers.csv", index=False)
    for logs in (
        ft.from_pandas(frame, **READ),
        ft.from_arrow(polars.DataFrame(ANSWERS), **READ),
        ft.read(tmp_path / "answers.csv", **READ),
    ):
        assert list(logs) == EXPECTED
        assert logs.to_numpy()["observation"].tolist() == [0, 1, 0, -1, 0]
        observations = logs.to_pandas()["observation"]
        assert observations[observations.notna()].tolist() == ["1", "0", "1", "1"]
        assert observations.isna().tolist() == [False, False, False, True, False]


def test_measurements_and_missing_values_need_no_preparation():
    rng = np.random.default_rng(1)
    walk = np.cumsum(rng.normal(size=400)) * 0.1
    mixed = pandas.DataFrame({"id": np.repeat([1, 2], 200), "height": walk, "part": ["am", "pm"] * 200})
    logs = ft.from_pandas(mixed, episode="id", action="none", observation=["height", "part"], bins={"height": 3})
    assert len(logs.observations) <= 6
    assert all(name.startswith("height=") and "|part=" in name for name in logs.observations)
    walk[5] = np.nan
    logs = ft.from_numpy(["wait"] * 400, walk)
    assert 2 <= len(logs.observations) <= 20
    assert logs.summary()["missing_observations"] == 1
    model = ft.learn(logs, effort="quick")
    assert np.isfinite(ft.score(model, logs).per_step)


def test_a_guess_is_announced(tmp_path):
    (tmp_path / "t.csv").write_text("user_id,action,observation\na,x,1\na,x,2\nb,x,1\nb,x,1\n")
    with pytest.warns(UserWarning, match="episode: user_id .*2 values in blocks"):
        assert len(ft.read(tmp_path / "t.csv")) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ft.read(tmp_path / "t.csv", episode="none")) == 1


def test_an_unknown_keyword_is_named():
    with pytest.raises(TypeError, match="episod"):
        ft.from_pandas(pandas.DataFrame(ANSWERS), episod="user")
    with pytest.raises(ValueError, match="no column 'usr'|no column \"usr\""):
        ft.from_pandas(pandas.DataFrame(ANSWERS), episode="usr", action="skill", observation="correct")
    with pytest.raises(ValueError, match="bins"):
        ft.from_pandas(pandas.DataFrame(ANSWERS), **READ, bins={"correct": "many"})


def test_a_policy_takes_the_best_of_the_available_actions():
    rng = np.random.default_rng(1)
    may = rng.random(2000) < 0.7
    sent = may & (rng.random(2000) < 0.5)
    trial = pandas.DataFrame({
        "episode": np.arange(2000) // 20,
        "action": np.where(sent, "send", "none"),
        "observation": np.where(rng.random(2000) < 0.5, "low", "high"),
        "reward": sent.astype(float),
        "can": may.astype(int),
    })
    logs = ft.from_pandas(trial, available="can")
    restricted = logs.summary()["available"]
    assert restricted["restricted"] == restricted["forced"] == int((~may).sum())
    run = ft.plan(ft.learn(logs, effort="quick"), logs, rounds=5, discount=0.9).start()
    assert run.best() == run.action == "send"
    assert run.best(["none"]) == "none" and run.best(["none", "send"]) == "send"
    with pytest.raises(TypeError, match="give a list"):
        run.best("none")
    with pytest.raises(ValueError, match="at least one action"):
        run.best([])


def test_logs_that_were_learned_from_are_recognised():
    logs, others = (ft.sample("colored-gridworld", episodes=200, seed=seed) for seed in (1, 2))
    model = ft.learn(logs, mix=0, rank=4, keep_moments=True)
    with pytest.warns(UserWarning, match="200 of 200 of these episodes were learned from"):
        ft.score(model, logs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ft.score(model, others).learned_from.episodes == 200
    more = ft.update(model, others)
    with pytest.warns(UserWarning, match="200 of 200"):
        assert ft.score(more, others).learned_from.found == 200


def test_arrays_are_divided_into_bins():
    measured = np.stack([np.linspace(0, 1, 100), np.arange(100) % 7], axis=1)
    logs = ft.from_numpy(["go"] * 100, measured, bins=[4, "cuts:3"])
    assert len(logs.observations) == 8
    assert len(ft.from_numpy(["go"] * 100, measured[:, 0], bins=5).observations) == 5
    with pytest.raises(ValueError, match="one for each"):
        ft.from_numpy(["go"] * 100, measured, bins=[4])
