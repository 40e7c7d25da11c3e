"""Models and policies: what they say, and that library, command line and Python agree bit for bit."""

import copy
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import foretell as ft

# The command line to compare with: the tests' own, if no other is named.
BINARY = os.environ.get("FORETELL_BINARY", Path(__file__).parents[3] / "target" / "debug" / "foretell")


@pytest.fixture(scope="module")
def maze():
    return ft.sample("colored-gridworld", episodes=400, seed=1)


@pytest.fixture(scope="module")
def model(maze):
    return ft.learn(maze, mix=0, rank=10, test_dim=128, history_dim=128)


@pytest.fixture(scope="module")
def tiger():
    logs = ft.sample("tiger", episodes=2000, seed=1)
    return logs, ft.learn(logs, refine=True)


def test_probabilities_add_up(model):
    for action in model.actions:
        state = model.filter()
        assert math.isclose(sum(state.predict(action).values()) + state.unseen, 1, abs_tol=1e-12)


def test_a_filter_steps_as_predictions_do(model, maze):
    episode = next(iter(maze))
    state, probability = model.filter(), 1.0
    for i, (a, o, _) in enumerate(episode[:5]):
        before = model.predict([(a, o) for a, o, _ in episode[:i]], action=a)[o]
        given = state.update(a, o)
        assert math.isclose(before, given, rel_tol=1e-12)
        probability *= given
    assert math.isclose(model.probability([(a, o) for a, o, _ in episode[:5]]), probability, rel_tol=1e-9)


def test_operators_give_what_the_model_predicts(model):
    """c_∞ᵀ C_ao c₁ is P(a, o) at the start, up to the share of the action."""
    a = model.actions[0]
    joint = {}
    for o in model.observations:
        operator = model.operator(a, o)
        if operator is not None and not o.endswith("[end]"):
            joint[o] = float(model.normalizer @ operator @ model.initial)
    predicted = model.predict(action=a)
    likely = [o for o in joint if joint[o] > 0.01]
    total = sum(joint[o] for o in likely)
    for o in likely:
        assert math.isclose(joint[o] / total, predicted[o] / sum(predicted[x] for x in likely), rel_tol=0.02)


def test_tables_are_the_pomdp(tiger):
    """Bayes' rule on the arrays is what the filter does."""
    _, model = tiger
    tables, state = model.tables(), model.filter()
    assert np.allclose(tables["transitions"].sum(axis=2), 1) and not tables["terminal"].any()
    belief = tables["start"]
    for action, observation in [("listen", "growl-left"), ("listen", "growl-left"), ("open-left", "growl-right")]:
        a, o = model.actions.index(action), model.observations.index(observation)
        joint = (belief @ tables["transitions"][a])[:, None] * tables["emissions"][a]
        assert np.allclose(joint.sum(axis=0) * (1 - state.unseen), state.predict_array(action), atol=1e-12)
        belief = joint[:, o] / joint[:, o].sum()
        state.update(action, observation)
        assert np.allclose(belief, state.state, atol=1e-12)
    exact = ft.Domain("tiger").tables()
    assert exact["rewards"].min() == -100 and ft.Domain("pocman").tables() is None
    with pytest.raises(ValueError, match="refine it first"):
        model.linear().tables()


def test_forecasts_samples_and_gaps(model):
    plan = [model.actions[0]] * 3
    forecast = model.forecast(actions=plan)
    assert len(forecast) == 3 and all(abs(sum(step.values()) - 1) < 0.05 for step in forecast)
    drawn = model.sample(actions=plan, n=5, seed=1)
    assert drawn == model.sample(actions=plan, n=5, seed=1) and len(drawn) == 5
    assert model.predict([(plan[0], None)], action=plan[0]) != model.predict(action=plan[0])


def test_models_and_policies_survive_files_and_pickles(tiger, tmp_path):
    logs, model = tiger
    model.save(tmp_path / "model.safetensors")
    policy = ft.plan(model, logs, discount=0.95)
    policy.save(tmp_path / "policy.safetensors")
    for again in (ft.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert again.predict(action="listen") == model.predict(action="listen")
    for again in (ft.load(tmp_path / "policy.safetensors"), pickle.loads(pickle.dumps(policy))):
        assert again.start().values == policy.start().values
    with pytest.raises(FileNotFoundError):
        ft.load(tmp_path / "none.safetensors")
    (tmp_path / "other").write_text("x")
    with pytest.raises(ValueError, match="other"):
        ft.load(tmp_path / "other")


def test_the_tiger_is_heard_and_avoided(tiger):
    logs, model = tiger
    policy = ft.plan(model, logs, discount=0.95)
    run = policy.start()
    assert run.action == "listen"
    run.observe("growl-left")
    run.observe("growl-left")
    assert run.action == "open-right" == max(run.values, key=run.values.get)
    earned = ft.evaluate(policy, "tiger", episodes=2000)
    assert earned.discounted_return > 15
    by_logs = ft.evaluate(policy, ft.sample("tiger", episodes=200, seed=2), episodes=200)
    assert isinstance(by_logs, ft.LogValue) and by_logs.logged.value < 0
    assert list(by_logs.estimates) == ["pdis", "snpdis", "dr", "wdr", "fqe", "model"] and by_logs.cross_fitted is None
    uniform = ft.evaluate("uniform", logs=ft.sample("tiger", episodes=200, seed=2), estimators=["pdis"], level=0.9)
    assert np.isclose(uniform["pdis"].value, uniform.logged.value) and uniform.comparison.by == "pdis"
    with pytest.raises(ValueError, match="always:ACTION"):
        ft.evaluate("best", logs=ft.sample("tiger", episodes=20, seed=2))
    more = ft.sample("tiger", episodes=50, policy=policy, epsilon=0.2, seed=3)
    assert more.summary()["has_action_probabilities"]


def test_states_may_be_counted_or_left_open(tiger):
    logs, _ = tiger
    model = ft.learn(logs, rank=3, refine=True, layout="free", states=2)
    assert model.states == 3  # and the start
    assert ft.refine(model, logs, layout="free", states="auto").states >= 3


def test_copies_of_filters_go_their_own_way(tiger):
    logs, refined = tiger
    for model in (refined, refined.linear(), ft.learn(logs, mix=0, rank=3, ensemble=2)):
        state = model.filter()
        state.update("listen", "growl-left")
        other = copy.copy(state)
        assert other.predict("listen") == state.predict("listen") and other.spread("listen") == state.spread("listen")
        before = state.state
        other.update("listen", "growl-right")
        assert (state.state == before).all() and (other.state != before).any()
        state.update("listen", "growl-right")
        assert (state.state == other.state).all()


def test_an_agent_does_what_the_command_line_does(tmp_path):
    reported = subprocess.run(
        [BINARY, "-q", "agent", "tiger", "--episodes", "100", "--agent-rounds", "2", "--seed", "3", "-o", "policy.safetensors", "--test-episodes", "1"],
        cwd=tmp_path, check=True, capture_output=True,
    )
    assert reported.stdout
    trained = ft.agent("tiger", episodes=100, agent_rounds=2, seed=3)
    trained.policy.save(tmp_path / "python.safetensors")
    assert (tmp_path / "python.safetensors").read_bytes() == (tmp_path / "policy.safetensors").read_bytes()
    assert len(trained.logs) == 100 and len(trained.promised) == 2
    guided = ft.agent("tiger", policy=trained.policy, epsilon=0.0, episodes=20, agent_rounds=1, refine=False)
    assert guided.logs.to_numpy()["action"][0] == trained.logs.actions.index("listen")


def test_what_deserves_a_warning_is_warned_of():
    logs = ft.sample("tiger", episodes=100, seed=1)
    columns = logs.to_numpy()
    flat = ft.from_numpy(columns["action"], columns["observation"], np.zeros(len(columns["action"])), episodes=columns["episode_id"])
    model = ft.learn(flat, mix=0, rank=2)
    with pytest.warns(UserWarning, match="every reward in the logs is 0"):
        policy = ft.plan(model, flat)
    with pytest.warns(UserWarning, match="only 0 steps"):
        ft.evaluate(policy, flat, episodes=10)


def test_updates_and_merges_are_what_learning_from_all_gives():
    parts = [ft.sample("tiger", episodes=200, seed=seed) for seed in (1, 2)]
    names = [np.array(logs.actions)[logs.to_numpy()["action"]] for logs in parts]
    assert all(len(part) for part in names)
    kept = [ft.learn(logs, mix=0, rank=3, keep_moments=True) for logs in parts]
    updated, merged = ft.update(kept[0], parts[1]), ft.merge(*kept)
    assert updated.trained_on == merged.trained_on == (400, sum(len(x) for x in names))
    for history in ([], [("listen", "growl-left")]):
        a, b = (m.predict(history, action="listen") for m in (updated, merged))
        assert a == b
    thawed = ft.update(pickle.loads(pickle.dumps(kept[0])), parts[1])
    assert thawed.moments == "exact" and thawed.predict(action="listen") == updated.predict(action="listen")
    with pytest.raises(ValueError, match="keep_moments=True"):
        ft.update(ft.learn(parts[0], mix=0, rank=3), parts[1])


def test_scores_and_search(tiger):
    logs, model = tiger
    score = ft.score(model, ft.sample("tiger", episodes=300, seed=2), truth="tiger")
    assert score.truth is not None and abs(score.truth[0].log_likelihood - score.horizons[0].log_likelihood) < 0.02
    assert "uniform" in score.baselines and "<table>" in score._repr_html_()
    compared = {c.name: c for c in score.comparisons}
    uniform = compared["uniform"]
    assert compared.keys() == {*score.baselines, "truth"} and uniform.blocks == 300
    assert uniform.ci95 is not None and uniform.difference > uniform.ci95 > 0
    short = ft.score(model, ft.sample("tiger", episodes=1, max_steps=3, seed=2))
    assert short.per_step_ci95 is None and short.horizons[0].ci95 is None and short.comparisons[0].ci95 is None
    assert "±" not in short._repr_html_()
    found = ft.search(ft.sample("tiger", episodes=100, seed=1), test_dim=32, history_dim=32, max_test_length=2, budget=0)
    assert found.chosen.gain >= 0 and ft.learn(logs, **found.params).rank == found.params["rank"]


def test_ensembles_say_how_sure_they_are():
    model = ft.learn(ft.sample("tiger", episodes=200, seed=1), mix=0, rank=3, ensemble=2)
    assert model.filter().spread("listen") and "ensemble of 2" in repr(model)


def test_unknown_names_are_reported(model):
    with pytest.raises(ValueError, match='action "up" is not known; known: '):
        model.predict(action="up")
    state = model.filter()
    assert state.update(model.actions[0], "never seen") == pytest.approx(state.unseen)
    with pytest.raises(TypeError, match="is not a name"):
        model.predict(action=object())


def test_what_is_given_in_the_wrong_place_is_reported(model, maze):
    for call, said in [
        (lambda: ft.learn("walks.csv"), "'walks.csv' is not a foretell.Logs; read a file with ft.read"),
        (lambda: ft.plan("model.safetensors", maze), "'model.safetensors' is not a foretell.Model; read a file with ft.Model.load"),
        (lambda: ft.evaluate(model, "tiger"), "a Model is not a foretell.Policy"),
        (lambda: ft.evaluate(None, 3), "3 is not a domain, an environment or logs"),
        (lambda: ft.learn(maze.to_pandas()), "a DataFrame is not a foretell.Logs; convert it with ft.from_pandas"),
    ]:
        with pytest.raises(TypeError, match=said):
            call()
    with pytest.raises(ValueError, match="'N' is not a pair; give"):
        model.predict("N", action="N")
    with pytest.warns(UserWarning, match="are these logs of the same system"):
        ft.score(model, ft.sample("tiger", episodes=5, seed=1))


def test_observed_rewards_stand_in_histories():
    logs = ft.sample("tiger", episodes=300, seed=1)
    model = ft.learn(logs, mix=0, rank=3, observe_reward=True)
    history = logs[0][:3]
    prediction = model.predict(history, action="listen")
    assert math.isclose(sum(prediction.values()), 1, abs_tol=0.01) and prediction.keys() == {"growl-left", "growl-right"}
    with_rewards = model.forecast(history, actions=["open-left"], rewards=True)[0]
    left = [p for name, p in with_rewards.items() if name.startswith("growl-left(")]
    assert len(left) > 1 and math.isclose(sum(left), model.predict(history, action="open-left")["growl-left"])
    assert 0 < model.probability([("listen", "growl-left", -1.0)], history=history) < 1
    # Listening has one reward only, opening a door two.
    without = model.predict([("listen", "growl-left")], action="listen")
    assert without == model.predict([("listen", "growl-left", -1.0)], action="listen")
    model = ft.learn(logs, refine=True, rank=3, observe_reward=True)
    opened = model.predict([("open-left", "growl-left")], action="listen")["growl-left"]
    ways = [[("open-left", "growl-left", reward)] for reward in (-100.0, 10.0, -1.0)]
    weights = [model.probability(way) for way in ways]
    mean = sum(p * model.predict(way, action="listen")["growl-left"] for p, way in zip(weights, ways)) / sum(weights)
    assert math.isclose(opened, mean, rel_tol=1e-9)
    with pytest.raises(ValueError, match="give the reward as well"):
        model.probability([("open-left", "growl-left")])


def test_many_draws_can_be_stopped_and_are_the_same(model):
    plan = [model.actions[0]] * 3
    assert model.sample(actions=plan, n=5000, seed=1)[:10] == model.sample(actions=plan, n=10, seed=1)


def test_moments_that_do_not_fit_give_a_warning():
    with pytest.warns(UserWarning, match="moments are compressed"):
        ft.learn(ft.sample("tiger", episodes=50, seed=1), mix=0, rank=2, keep_moments=True, memory=10)


def test_domains_run():
    names = [domain.name for domain in ft.domains()]
    assert {"tiger", "colored-gridworld", "pocman"} <= set(names)
    tiger = ft.Domain("tiger").simulator(seed=1)
    assert tiger.step("listen")[1] == -1
    with pytest.raises(ValueError, match="neither a built-in domain"):
        ft.Domain("no such thing")
    with pytest.raises(ValueError, match="is not known"):
        tiger.step("jump")


def test_progress_is_reported_and_may_stop_the_work(maze):
    reported = []
    ft.learn(maze, refine=True, progress=lambda what, done, of: reported.append((what, done, of)))
    assert {what for what, _, _ in reported} <= {"reading", "learning", "second pass", "refining"} and reported

    def stop(what, done, of):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ft.learn(maze, refine=True, progress=stop)


def test_long_calls_leave_python_to_others(maze):
    """A thread of Python's ticks while the library works: with the GIL held it could not."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.005):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.perf_counter()
    ft.learn(maze, refine=True)
    ended = time.perf_counter()
    done.set()
    thread.join()
    # A tenth of what an idle machine would give.
    assert sum(began < at < ended for at in ticks) > (ended - began) / 0.05


def test_ctrl_c_works_within_a_second(tmp_path):
    """A long learn is interrupted as Ctrl-C does it."""
    script = textwrap.dedent(
        """
        import foretell as ft, time
        logs = ft.sample("pocman", episodes=20_000, seed=1)
        print("begin", flush=True)
        try:
            ft.learn(logs, refine=True, ensemble=20)
        except KeyboardInterrupt:
            print("stopped", time.time(), flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begin\n"
    time.sleep(1.0)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    words = process.stdout.readline().split()
    process.kill()
    assert words[0] == "stopped" and float(words[1]) - sent < 1.0


def test_python_and_the_command_line_write_the_same_bytes(tmp_path):
    def run(*args):
        return subprocess.run([BINARY, "-q", *args], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    run("sample", "colored-gridworld", "--episodes", "500", "--seed", "7", "-o", "walks.csv")
    ft.sample("colored-gridworld", episodes=500, seed=7).write(tmp_path / "python.csv")
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "walks.csv").read_bytes()

    run("learn", "walks.csv", "--refine", "--rank", "10", "--seed", "3", "-o", "model.safetensors")
    logs = ft.read(tmp_path / "walks.csv")
    model = ft.learn(logs, refine=True, rank=10, seed=3)
    model.save(tmp_path / "python.safetensors")
    assert (tmp_path / "python.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()

    run("plan", "model.safetensors", "walks.csv", "-o", "policy.safetensors")
    ft.plan(model, logs).save(tmp_path / "python-policy.safetensors")
    assert (tmp_path / "python-policy.safetensors").read_bytes() == (tmp_path / "policy.safetensors").read_bytes()

    reported = json.loads(run("evaluate", "policy.safetensors", "--domain", "colored-gridworld", "--episodes", "200", "--json"))
    earned = ft.evaluate(ft.Policy.load(tmp_path / "policy.safetensors"), "colored-gridworld", episodes=200)
    assert reported["discounted_return"] == earned.discounted_return

    reported = json.loads(run("score", "model.safetensors", "walks.csv", "--json"))
    assert reported["per_step"] == ft.score(model, logs).per_step
