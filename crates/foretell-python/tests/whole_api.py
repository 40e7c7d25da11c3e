"""Every public name of the package, used once and typed: `mypy --strict` passes on this, and it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas
import polars
from numpy.typing import NDArray

import foretell as ft

Floats = NDArray[np.float64]


def logs(folder: Path) -> ft.Logs:
    walks: ft.Logs = ft.sample("tiger", episodes=300, max_steps=20, epsilon=0.0, seed=1, progress=False)
    walks.write(folder / "walks.csv")
    read: ft.Logs = ft.read(folder / "walks.csv", skip_bad_episodes=True)
    columns: dict[str, NDArray[Any]] = read.to_numpy()
    arrays = ft.from_numpy(
        columns["action"],
        columns["observation"],
        columns["reward"],
        episodes=columns["episode_id"],
        terminated=columns["terminated"],
        truncated=columns["truncated"],
    )
    frame: pandas.DataFrame = walks.to_pandas()
    named: ft.Columns = {"episode": "episode_id", "observation": ["observation"], "bins": {}}
    tables: list[ft.Logs] = [ft.from_pandas(frame, **named), ft.from_arrow(polars.DataFrame({"action": ["N"], "observation": [0]})), ft.from_hmmlearn([[0], [1]], [1, 1])]
    dataset = ft.to_minari(walks.take([0, 1]), "mine/tiger-v0", description="listening at doors")
    tables.append(ft.from_minari(dataset))
    together: ft.Logs = arrays + tables[0]
    steps: list[tuple[str, str | None, float | None]] = next(iter(read))
    found: list[str] = read.summary()["findings"]
    print(len(together), steps[0], read[:2], read.actions, read.observations, read.discretiser, read.first_action, found)
    return read


def models(walks: ft.Logs, folder: Path) -> ft.Model:
    training, test = walks.split(0.8, seed=1)
    selected: ft.Model = ft.learn(training, effort="quick", only=None)
    members: list[ft.Member] = selected.members
    selection: ft.Selection | None = selected.selection
    assert selection is not None
    candidates: list[ft.Candidate] = selection.tried
    behind: float | None = candidates[0].behind
    print(members[0].weight, selection.nats, selection.rewards, behind)
    linear: ft.Model = ft.learn(training, mix=0, rank=3, test_projection="hashed", keep_moments=True)
    both: list[ft.Model] = [ft.update(linear, test), ft.merge(linear, ft.learn(test, mix=0, rank=3, test_projection="hashed", keep_moments="exact"))]
    refined: ft.Model = ft.refine(linear, training, states=2, layout="free")
    found: ft.Found = ft.search(training, budget=0, folds=2, test_dim=32, history_dim=32, max_test_length=2, rank=3)
    best: ft.Tried = found.chosen
    diagnosis: dict[str, Any] = ft.diagnose(training, rank=3)
    score: ft.Score = ft.score(refined, test, truth="tiger")
    horizon: ft.HorizonScore = score.horizons[-1]
    known: ft.LearnedFrom | None = score.learned_from
    print(known)
    bins: list[ft.CalibrationBin] = score.calibration
    compared: list[ft.Comparison] = score.comparisons
    interval: float | None = score.per_step_ci95
    print(both, best.params, found.base.nats, found.tried[0].gain, diagnosis["steps"], horizon.log_likelihood, len(bins), score.baselines, compared[0].difference, interval)

    linear.save(folder / "model.safetensors")
    loaded: ft.Model | ft.Policy = ft.load(folder / "model.safetensors")
    again: ft.Model = ft.Model.load(folder / "model.safetensors")
    operator: Floats | None = again.operator("listen", "growl-left", terminated=False)
    vectors: list[Floats] = [again.initial, again.normalizer, again.spectrum]
    print(loaded, operator, vectors, again.rank, again.params, again.moments, again.trained_on, refined.states, refined.pomdp()[:20], refined.tables().keys())
    others: list[ft.Model] = [refined.linear(), linear.with_mix(0.2), linear.with_discretiser(None)]
    print(others, linear.actions, linear.observations, linear.discretiser, linear.first_action)

    next_one: dict[str, float] = refined.predict([("listen", "growl-left"), ("listen", None)], action="listen")
    plan: list[dict[str, float]] = refined.forecast(actions=["listen", "listen"])
    likely: float = refined.probability([("listen", "growl-left")], history=[("listen", "growl-left")])
    futures: list[list[str]] = refined.sample(actions=["listen"], n=2, seed=1)
    print(next_one, plan, likely, futures)

    state: ft.Filter = ft.learn(training, mix=0, rank=3, ensemble=2).filter()
    given: float = state.update("listen", "growl-left", terminated=False, reward=-1.0)
    other: ft.Filter = state.copy()
    other.update_missing("listen")
    array: Floats = other.predict_array("listen")
    print(given, array, other.predict("listen"), other.spread("listen"), other.forecast(["listen"]), other.state, other.lost, other.unseen)
    print(other.probability([("listen", "growl-left")]), other.sample(["listen"], n=1, seed=1))
    state.reset()
    return refined


def policies(model: ft.Model, walks: ft.Logs, folder: Path) -> ft.Policy:
    policy: ft.Policy = ft.plan(model, walks, discount=0.95, planner="point-based")
    policy.save(folder / "policy.safetensors")
    print(ft.Policy.load(folder / "policy.safetensors"), policy.actions, policy.observations, policy.params, policy.model, policy.discretiser, policy.first_action)
    run: ft.Run = policy.start()
    run.observe("growl-left", action="listen", reward=-1.0, terminated=False)
    action: str = run.action
    action = run.best(["listen"])
    values: dict[str, float] = run.values
    position: Floats = run.state
    run.reset()
    print(action, values, position)

    tiger: ft.Domain = ft.Domain("tiger")
    earned: ft.Returns = ft.evaluate(policy, tiger, episodes=100, max_steps=20, discount=0.95, seed=1)
    worth: ft.LogValue = ft.evaluate(policy, walks, episodes=100, replicates=3)
    worth = ft.evaluate("always:listen", logs=walks, estimators=["snpdis", "wdr"], bound="bootstrap", level=0.9, epsilon=0.1)
    estimate: ft.Estimate = worth["wdr"]
    against: ft.Against = worth.comparison
    choice: ft.PlanChoice | None = policy.choice
    judged: list[ft.Judged] = [] if choice is None else [*choice.candidates, choice.logged]
    print(against.verdict, worth.verdict, choice, judged)
    solution: ft.Solution = ft.solve(tiger, planner="qmdp", episodes=10)
    trained: ft.Trained = ft.agent("tiger", episodes=100, agent_rounds=1)
    print(earned.mean_return, estimate.value, worth.agree, solution.lower, solution.returns, trained.policy, len(trained.logs), trained.promised)

    print([domain.name for domain in ft.domains()], tiger.story, tiger.horizon, tiger.discount, tiger.actions, tiger.observations, tiger.states)
    simulator: ft.Simulator = tiger.simulator(seed=1)
    observation, reward, terminated = simulator.step("listen")
    simulator.reset(seed=2)
    print(observation, reward, terminated, simulator.picture(), tiger.pomdp(), ft.__version__)
    return policy


def others(model: ft.Model, policy: ft.Policy, walks: ft.Logs) -> None:
    env: gymnasium.Env[Any, Any] = ft.gymnasium.DomainEnv("tiger", render_mode="ansi")
    recorded: ft.Logs = ft.record(env, policy, 5, max_steps=5, epsilon=0.1, seed=1)
    wrapped = ft.gymnasium.PredictiveStates(env, model)
    state, _ = wrapped.reset(seed=1)
    learned = ft.gymnasium.ModelEnv(model, reward=lambda action, observation: 0.0)
    first, _ = learned.reset(seed=1)
    seen, reward, terminated, truncated, _ = learned.step(0)
    print(len(recorded), state.shape, first, seen, reward, terminated, truncated, learned.render(), ft.evaluate(policy, env, episodes=2, max_steps=5))

    columns = walks.to_numpy()
    X = np.column_stack([columns["episode_id"], columns["action"], columns["observation"]])
    estimator = ft.sklearn.PredictiveStateModel(mix=0, rank=3, random_state=1).fit(X)
    probabilities: Floats = estimator.predict_proba(X[:50])
    partial: float = ft.sklearn.PredictiveStateModel(effort="quick", only="linear", rank=3).partial_fit(X).score(X)
    print(probabilities.shape, estimator.predict(X[:50]), partial)

    kinds: list[ft.discretise.Discretiser] = [ft.discretise.Uniform(3), ft.discretise.Quantile(3), ft.discretise.KMeans(3)]
    for kind in kinds:
        symbols: NDArray[np.str_] = kind.fit([[0.0], [1.0], [2.0]], columns=["depth"]).transform([[0.1]])
        same = ft.discretise.from_dict(kind.to_dict())
        print(kind.fit_transform([[0.0], [1.0]]), same(0.1), same.describe(str(symbols[0])), same.inverse(str(symbols[0])), same.columns)

    model.plot_spectrum()
    ft.plot.spectrum(model)
    ft.plot.likelihood(ft.score(model, walks))
    ft.plot.returns({"ours": ft.evaluate(policy, "tiger", episodes=10)}, discounted=True)


def main(folder: Path) -> None:
    walks = logs(folder)
    model = models(walks, folder)
    others(model, policies(model, walks, folder), walks)
