"""What is done with logs, models and policies."""

from __future__ import annotations

import os
from typing import Any, Literal

from foretell import _native
from foretell._domain import Domain
from foretell._logs import Logs, Path
from foretell._model import Model
from foretell._policy import Policy
from foretell._progress import Progress, progress as told
from foretell._results import Found, LogValue, Returns, Score, Solution

Preset = Literal["default", "paper"]
Projection = Literal["spherical", "rademacher", "signed-hash", "hashed", "identity"]

GIB = 1 << 30


def _given(**params: Any) -> dict[str, Any]:
    """The parameters that were given."""
    return {name: value for name, value in params.items() if value is not None}


def _domain(domain: str | os.PathLike[str] | Domain) -> Domain:
    return domain if isinstance(domain, Domain) else Domain(domain)


def learn(
    logs: Logs,
    *,
    preset: Preset = "default",
    refine: bool = False,
    ensemble: int | None = None,
    keep_moments: bool | Literal["exact", "compressed"] = False,
    memory: int = 2 * GIB,
    progress: bool | Progress | None = None,
    test_projection: Projection | None = None,
    history_projection: Projection | None = None,
    test_dim: int | None = None,
    history_dim: int | None = None,
    max_test_length: int | None = None,
    history: Literal["prefix", "suffix"] | None = None,
    history_length: int | None = None,
    cuts: Literal["complete", "ragged"] | None = None,
    start: Literal["fixed", "mixed"] | None = None,
    rank: int | None = None,
    tolerance: float | None = None,
    regression: Literal["pseudo-inverse", "two-stage"] | None = None,
    whitening_ridge: float | None = None,
    ridge: float | None = None,
    floor: float | None = None,
    ngram_length: int | None = None,
    mix: float | None = None,
    observe_reward: bool | None = None,
    weighting: Literal["none", "next", "propensity"] | None = None,
    seed: int | None = None,
    states: int | Literal["auto"] | None = None,
    layout: Literal["auto", "owned", "free", "dense", "modes"] | None = None,
    em_rounds: int | None = None,
    patience: int | None = None,
) -> Model:
    """Learns a model from logs.

    Parameters
    ----------
    logs : Logs
        What to learn from.
    preset : {"default", "paper"}
        The recipe to start from: the one that predicts best, or the one printed in the paper. What is given below changes it.
    refine : bool
        Make a proper POMDP of the model: better, and slower. See `refine`.
    ensemble : int, optional
        Average so many models, and learn as many of halves of the logs, whose spread tells how sure predictions are.
    keep_moments : bool, "exact" or "compressed"
        Keep what `update` and `merge` need to add other logs.
    memory : int
        Bytes that these moments may take.
    progress : bool or callable, optional
        True for a bar of tqdm, False for none; by default one if tqdm is installed and standard error is a terminal. A function is
        called with what is being done, how much of it is, and of how much (or None).
    test_projection : str
        Projection of tests
    history_projection : str
        Projection of histories
    test_dim : int
        d_T, rows of Φ_T (the null test has a row of its own besides; no meaning for identity)
    history_dim : int
        d_H, rows of Φ_H (start and null history have rows of their own besides; no meaning for identity)
    max_test_length : int
        Longest test, in steps
    history : {"suffix", "prefix"}
        Which parts of the past are histories
    history_length : int
        Longest suffix history, in steps (no meaning for prefix histories)
    cuts : {"complete", "ragged"}
        Which cuts of an episode enter the sums
    start : {"fixed", "mixed"}
        What is known of the state in which episodes start
    rank : int
        d′, dimension of the predictive state
    tolerance : float
        Singular values below this share of the largest are dropped
    regression : {"two-stage", "pseudo-inverse"}
        How operators are regressed
    whitening_ridge : float
        Ridge of the whitening, in units of the mean eigenvalue (two-stage only)
    ridge : float
        Ridge of the second stage, in units of the mean eigenvalue (two-stage only)
    floor : float
        Least probability of an observation seen in training, before normalising
    ngram_length : int
        Longest context of the back-off n-gram that is counted beside the model (steps)
    mix : float
        Weight of the n-gram in predictions, between 0 and 1
    observe_reward : bool
        Whether rewards are part of observations: for where they tell more than observations do
    weighting : {"none", "next", "propensity"}
        What is done about actions that the logging policy preferred
    seed : int
        Seed of the projections
    states : int or "auto"
        How many latent states: auto, or a number (the start and the ends come on top)
    layout : str
        What latent states have to do with observations
    em_rounds : int
        Most rounds of EM
    patience : int
        Rounds without a gain on held-out episodes after which EM stops

    Returns
    -------
    Model

    Examples
    --------
    >>> import foretell as ft
    >>> ft.learn(ft.sample("tiger", episodes=500, seed=1), rank=3, refine=True)
    <foretell.Model: 6 states, 3 actions, 2 observations, learned from 500 episodes>
    """
    params = _given(
        test_projection=test_projection,
        history_projection=history_projection,
        test_dim=test_dim,
        history_dim=history_dim,
        max_test_length=max_test_length,
        history=history,
        history_length=history_length,
        cuts=cuts,
        start=start,
        rank=rank,
        tolerance=tolerance,
        regression=regression,
        whitening_ridge=whitening_ridge,
        ridge=ridge,
        floor=floor,
        ngram_length=ngram_length,
        mix=mix,
        observe_reward=observe_reward,
        weighting=weighting,
        seed=seed,
    )
    refinement = _given(states=states, layout=layout, em_rounds=em_rounds, patience=patience)
    if refinement and not refine:
        raise ValueError(f"{', '.join(refinement)}: of refinement; give refine=True as well")
    keep = "fitting" if keep_moments is True else keep_moments or None
    with told(progress) as tell:
        native = _native.learn(logs._native, preset, params, refinement if refine else None, ensemble, keep, memory, tell)
    model = Model(native)
    return model if logs.discretiser is None else model.with_discretiser(logs.discretiser)


def refine(
    model: Model,
    logs: Logs,
    *,
    progress: bool | Progress | None = None,
    states: int | Literal["auto"] | None = None,
    layout: Literal["auto", "owned", "free", "dense", "modes"] | None = None,
    em_rounds: int | None = None,
    patience: int | None = None,
) -> Model:
    """Makes a proper POMDP of a model, with hidden states and probabilities, by EM from where the model stands.

    Parameters
    ----------
    model : Model
        What `learn` made.
    logs : Logs
        Best those that it was learned from.
    progress : bool or callable, optional
        As of `learn`.
    states : int or "auto"
        How many latent states: auto, or a number (the start and the ends come on top)
    layout : str
        What latent states have to do with observations
    em_rounds : int
        Most rounds of EM
    patience : int
        Rounds without a gain on held-out episodes after which EM stops

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> ft.refine(ft.learn(logs, rank=3), logs).states
    6
    """
    params = _given(states=states, layout=layout, em_rounds=em_rounds, patience=patience)
    with told(progress) as tell:
        return Model(_native.refine(model._native, logs._native, params, tell))


def update(
    model: Model, logs: Logs, *, memory: int = 2 * GIB, compress: bool = False, progress: bool | Progress | None = None
) -> Model:
    """Adds new logs to a model that keeps its moments; the old logs are not needed.

    The result is what learning from all of them would have given, as long as moments are exact. Refinement and ensemble are left out,
    as they need the logs themselves.

    Parameters
    ----------
    model : Model
        Learned with ``keep_moments``.
    logs : Logs
        The new ones.
    memory : int
        Bytes that the moments may take.
    compress : bool
        Let exact moments become compressed ones where they no longer fit, instead of raising an error.
    progress : bool or callable, optional
        As of `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> model = ft.learn(ft.sample("tiger", episodes=300, seed=1), rank=3, keep_moments=True)
    >>> ft.update(model, ft.sample("tiger", episodes=200, seed=2)).trained_on[0]
    500
    """
    with told(progress) as tell:
        updated = Model(_native.update(model._native, logs._native, memory, compress, tell))
    return updated.with_discretiser(model.discretiser)


def merge(*models: Model) -> Model:
    """Joins models of different logs, learned with the same parameters and ``keep_moments``, into the model of all of them.

    Examples
    --------
    >>> import foretell as ft
    >>> parts = [ft.learn(ft.sample("tiger", episodes=200, seed=s), rank=3, keep_moments=True) for s in (1, 2)]
    >>> ft.merge(*parts).trained_on[0]
    400
    """
    merged = Model(_native.merge([model._native for model in models]))
    return merged.with_discretiser(models[0].discretiser)


def score(model: Model, logs: Logs, *, truth: str | Domain | None = None) -> Score:
    """How well a model predicts logs, best ones that it was not learned from, beside n-grams of the logs that it was.

    Parameters
    ----------
    model : Model
        What to score.
    logs : Logs
        What it is to predict.
    truth : str or Domain, optional
        The system that made the logs, whose exact model is put beside.

    Examples
    --------
    >>> import foretell as ft
    >>> model = ft.learn(ft.sample("tiger", episodes=500, seed=1), refine=True)
    >>> result = ft.score(model, ft.sample("tiger", episodes=500, seed=2), truth="tiger")
    >>> result.truth[0].log_likelihood - result.horizons[0].log_likelihood < 0.01
    True
    """
    domain = None if truth is None else _domain(truth)._native
    return Score._of(_native.score(model._native, logs._native, domain))


def plan(
    model: Model,
    logs: Logs,
    *,
    preset: Preset = "default",
    progress: bool | Progress | None = None,
    planner: Literal["auto", "fitted-q", "qmdp", "fast-informed", "point-based"] | None = None,
    pessimism: float | None = None,
    state: Literal["predictive", "memory", "last"] | None = None,
    last: int | None = None,
    regressor: Literal["auto", "trees", "table", "mean"] | None = None,
    window: int | None = None,
    rounds: int | None = None,
    discount: float | None = None,
    trees: int | None = None,
    min_split: int | None = None,
    structure: Literal["frozen", "refitted"] | None = None,
    ensembles: Literal["per-action", "joint"] | None = None,
    seed: int | None = None,
) -> Policy:
    """Finds a policy that earns much reward: in the POMDP of a refined model, or by fitted-Q on the logs.

    Parameters
    ----------
    model : Model
        What will happen.
    logs : Logs
        With rewards.
    preset : {"default", "paper"}
        The recipe to start from. What is given below changes it.
    progress : bool or callable, optional
        As of `learn`.
    planner : str
        How the policy is found
    pessimism : float
        Standard deviations of a reward that are taken off where an action was never tried; half of them after three trials
    state : {"memory", "predictive", "last"}
        What the policy knows of the past, with fitted-Q
    last : int
        Observations in the state, where it is made of the last ones
    regressor : {"auto", "trees", "table", "mean"}
        Who estimates Q
    window : int
        Most of the latest steps that a table looks at, beside the time
    rounds : int
        Rounds of fitted-Q, or trials of the point-based planner
    discount : float
        Discount γ
    trees : int
        Trees in a forest
    min_split : int
        Rows below which a node of a tree is a leaf
    structure : {"frozen", "refitted"}
        When the structure of the trees is chosen
    ensembles : str
        How actions enter Q
    seed : int
        Seed of the trees

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> policy = ft.plan(ft.learn(logs, refine=True), logs, discount=0.95)
    >>> policy
    <foretell.Policy: by point-based, 3 actions>
    """
    params = _given(
        planner=planner,
        pessimism=pessimism,
        state=state,
        last=last,
        regressor=regressor,
        window=window,
        rounds=rounds,
        discount=discount,
        trees=trees,
        min_split=min_split,
        structure=structure,
        ensembles=ensembles,
        seed=seed,
    )
    with told(progress) as tell:
        return Policy(_native.plan(model._native, logs._native, preset, params, tell))


def evaluate(
    policy: Policy,
    where: str | os.PathLike[str] | Domain | Logs | Any,
    *,
    episodes: int = 10_000,
    max_steps: int | None = None,
    discount: float | None = None,
    replicates: int = 20,
    seed: int = 0,
) -> Returns | LogValue:
    """What a policy earns in a domain or a Gymnasium environment, or what logs say that it would earn.

    Parameters
    ----------
    policy : Policy
        Who acts.
    where : str, Domain, gymnasium.Env or Logs
        A domain or environment to act in; or logs, best those that it was not planned on.
    episodes : int
        How many; with logs, of rollouts in the policy's own model.
    max_steps : int, optional
        Steps after which an episode is cut: by default the domain's horizon, or the longest episode of the logs.
    discount : float, optional
        By default the domain's, or that of planning.
    replicates : int
        With logs, samples of them for an interval.
    seed : int
        Seed of the episodes.

    Returns
    -------
    Returns or LogValue
        `LogValue` with logs.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> policy = ft.plan(ft.learn(logs, refine=True), logs, discount=0.95)
    >>> ft.evaluate(policy, "tiger", episodes=1000).discounted_return > 10
    True
    """
    if isinstance(where, Logs):
        report = _native.evaluate_by(policy._native, where._native, episodes, max_steps, discount, replicates, seed)
        return LogValue._of(report)
    if hasattr(where, "action_space"):
        from foretell.gymnasium import evaluate_in_env

        env: Any = where
        return evaluate_in_env(policy, env, episodes=episodes, max_steps=max_steps, discount=discount, seed=seed)
    domain = _domain(where)
    return Returns(**_native.evaluate_in(policy._native, domain._native, episodes, max_steps, discount, seed))


def sample(
    domain: str | os.PathLike[str] | Domain,
    *,
    episodes: int = 1000,
    max_steps: int | None = None,
    policy: Policy | None = None,
    epsilon: float = 0.0,
    seed: int = 0,
    progress: bool | Progress | None = None,
) -> Logs:
    """Lets a domain run, and returns what happened.

    Parameters
    ----------
    domain : str or Domain
        A built-in domain, a ``.POMDP`` file or the map of a maze.
    episodes : int
        How many.
    max_steps : int, optional
        Steps after which an episode is cut: by default the domain's horizon.
    policy : Policy, optional
        Who acts; by default every action is taken alike.
    epsilon : float
        Share of actions taken at random where a policy acts.
    seed : int
        Episode i depends on it and on i only.
    progress : bool or callable, optional
        As of `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.sample("colored-gridworld", episodes=100, seed=1)
    <foretell.Logs: 100 episodes, 1,298 steps, 4 actions, 15 observations>
    """
    native = None if policy is None else policy._native
    with told(progress) as tell:
        return Logs(_native.sample(_domain(domain)._native, episodes, max_steps, native, epsilon, seed, tell))


def search(
    logs: Logs,
    *,
    preset: Preset = "default",
    folds: int = 5,
    budget: float = 60.0,
    progress: bool | Progress | None = None,
    **fixed: Any,
) -> Found:
    """Searches for the parameters with which models predict held-out logs best.

    Parameters
    ----------
    logs : Logs
        Divided into folds, each held out in turn.
    preset : {"default", "paper"}
        The recipe to start from, and to beat.
    folds : int
        How many parts.
    budget : float
        Seconds after which to come to an end; 0 for as long as it takes, and then always the same result.
    progress : bool or callable, optional
        As of `learn`.
    **fixed
        Parameters of `learn` that are not searched for.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=200, seed=1)
    >>> found = ft.search(logs, test_dim=32, history_dim=32, max_test_length=2, budget=0)
    >>> found.chosen.gain >= 0
    True
    >>> model = ft.learn(logs, **found.params)
    """
    with told(progress) as tell:
        return Found._of(_native.search(logs._native, preset, fixed, folds, budget, tell))


def diagnose(logs: Logs, *, preset: Preset = "default", **params: Any) -> dict[str, Any]:
    """What the logs support: what was tried, how sparse their matrices are, which rank and projection they suggest, how errors grow.

    Parameters
    ----------
    logs : Logs
        What to look at.
    preset : {"default", "paper"}
        The recipe whose matrices are looked at.
    **params
        Parameters of `learn` that change it.

    Returns
    -------
    dict
        What ``foretell diagnose --json`` prints.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.diagnose(ft.sample("tiger", episodes=200, seed=1))["episodes"]
    200
    """
    report: dict[str, Any] = _native.diagnose(logs._native, preset, params)
    return report


def solve(
    domain: str | os.PathLike[str] | Domain,
    *,
    planner: Literal["qmdp", "fast-informed", "point-based"] = "point-based",
    discount: float | None = None,
    gap: float = 1e-3,
    seconds: float = 60.0,
    episodes: int = 0,
    max_steps: int | None = None,
    seed: int = 0,
    progress: bool | Progress | None = None,
) -> Solution:
    """Plans with the exact model of a domain, and bounds what can be earned in it.

    Parameters
    ----------
    domain : str or Domain
        One that has an exact model.
    planner : {"point-based", "fast-informed", "qmdp"}
        Bounds that meet; or quick bounds from above.
    discount : float, optional
        By default the domain's.
    gap : float
        Stop when the bounds are this close, as a share of the value.
    seconds : float
        Stop after so many.
    episodes : int
        Let the policy act in so many.
    max_steps : int, optional
        Steps after which these are cut: by default the domain's horizon.
    seed : int
        Seed of these.
    progress : bool or callable, optional
        As of `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> solution = ft.solve("tiger")
    >>> solution.lower <= 19.372 and 19.371 <= solution.upper
    True
    """
    with told(progress) as tell:
        report = _native.solve(
            _domain(domain)._native, planner, discount, gap, seconds, episodes, max_steps, seed, tell
        )
    return Solution._of(report)


def load(path: Path) -> Model | Policy:
    """Reads a model or a policy, whichever the file holds.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.learn(ft.sample("tiger", episodes=100, seed=1), rank=3).save("model.safetensors")
    >>> ft.load("model.safetensors")
    <foretell.Model: rank 3, 3 actions, 2 observations, learned from 100 episodes>
    """
    match _native.kind_of(os.fspath(path)):
        case "policy":
            return Policy.load(path)
        case _:
            return Model.load(path)
