"""From logs to models, and how good these are."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Unpack

from foretell import _native
from foretell._domain import Domain
from foretell._encoding import Encoding
from foretell._logs import Logs
from foretell._model import Model
from foretell._options import Learning, Preset, Projection, domain_of, given, native_of
from foretell._progress import Progress, progress as told
from foretell._results import Found, Score

GIB = 1 << 30
# A share of steps that a model does not know from which on the logs look like those of something else.
MUCH_UNSEEN = 0.5


def advised(model: Model) -> Model:
    """The model; where its states leave out what rewards tell, that is said."""
    if model._native.wants_rewards_observed and not model._native.observes_rewards:
        words = "rewards tell more of the state than observations do; learn with observe_reward=True"
        warnings.warn(words, stacklevel=3)
    return model


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
    test_projection : str, default "signed-hash"
        Projection of tests
        "spherical": Gaussian entries; "rademacher": ±1; "hashed": a single 1; "signed-hash": a single ±1; "identity": no compression
        (TPSR).
    history_projection : str, default "signed-hash"
        Projection of histories
        As of tests.
    test_dim : int, default 1024
        d_T, rows of Φ_T (the null test has a row of its own besides; no meaning for identity)
    history_dim : int, default 1024
        d_H, rows of Φ_H (start and null history have rows of their own besides; no meaning for identity)
    max_test_length : int, default 2
        Longest test, in steps
    history : {"suffix", "prefix"}, default "suffix"
        Which parts of the past are histories
        "suffix": the last pairs, so that every step teaches; "prefix": the whole past, as printed.
    history_length : int, default 3
        Longest suffix history, in steps (no meaning for prefix histories)
    cuts : {"complete", "ragged"}, default "complete"
        Which cuts of an episode enter the sums
        "complete": those with room for the longest test; "ragged": all, as printed.
    start : {"fixed", "mixed"}, default "fixed"
        What is known of the state in which episodes start
        "fixed": all episodes start alike; "mixed": they start anywhere.
    rank : int, default 40
        d′, dimension of the predictive state
    tolerance : float, default 1e-06
        Singular values below this share of the largest are dropped
    regression : {"two-stage", "pseudo-inverse"}, default "two-stage"
        How operators are regressed
        "two-stage": least squares in two stages, with a ridge; "pseudo-inverse": as printed.
    whitening_ridge : float, default 0.03
        Ridge of the whitening, in units of the mean eigenvalue (two-stage only)
    ridge : float, default 0.01
        Ridge of the second stage, in units of the mean eigenvalue (two-stage only)
    floor : float, default 0.0001
        Least probability of an observation seen in training, before normalising
    ngram_length : int, default 3
        Longest context of the back-off n-gram that is counted beside the model (steps)
    mix : float, default 0.0
        Weight of the n-gram in predictions, between 0 and 1
    observe_reward : bool, default False
        Whether rewards are part of observations: for where they tell more than observations do
    weighting : {"none", "next", "propensity"}, default "none"
        What is done about actions that the logging policy preferred
        "none": nothing, the model is that of the logging policy; "next": what rare actions lead to counts as much as what others do;
        "propensity": tests as well, with more variance. The last two need the probabilities of actions.
    seed : int, default 0
        Seed of the projections
    states : int or "auto", default "auto"
        How many latent states: auto, or a number (the start and the ends come on top)
    layout : str, default "auto"
        What latent states have to do with observations
        "owned": each state emits one observation, for clear but ambiguous ones; "free": it may emit any, for noisy ones; "modes": the
        observation and a hidden mode; "dense": plain EM from a random start, to compare with; "auto": what predicts held-out episodes best.
    em_rounds : int, default 60
        Most rounds of EM
    patience : int, default 6
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
    params = given(
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
    refinement = given(states=states, layout=layout, em_rounds=em_rounds, patience=patience)
    if refinement and not refine:
        raise ValueError(f"{', '.join(refinement)}: of refinement; give refine=True as well")
    keep = "fitting" if keep_moments is True else keep_moments or None
    with told(progress) as tell:
        native = _native.learn(native_of(logs, Logs), preset, params, refinement if refine else None, ensemble, keep, memory, tell)
    model = advised(Model(native))
    if keep_moments is True and model.moments == "compressed":
        words = "moments are compressed, as exact ones would take more than memory: updates will be approximate"
        warnings.warn(words, stacklevel=2)
    return model._encoded(logs._encoding) if logs._encoding else model


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
    states : int or "auto", default "auto"
        How many latent states: auto, or a number (the start and the ends come on top)
    layout : str, default "auto"
        What latent states have to do with observations
        "owned": each state emits one observation, for clear but ambiguous ones; "free": it may emit any, for noisy ones; "modes": the
        observation and a hidden mode; "dense": plain EM from a random start, to compare with; "auto": what predicts held-out episodes best.
    em_rounds : int, default 60
        Most rounds of EM
    patience : int, default 6
        Rounds without a gain on held-out episodes after which EM stops

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> ft.refine(ft.learn(logs, rank=3), logs).states
    6
    """
    params = given(states=states, layout=layout, em_rounds=em_rounds, patience=patience)
    with told(progress) as tell:
        return advised(Model(_native.refine(native_of(model, Model), native_of(logs, Logs), params, tell)))


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
    native, native_logs = native_of(model, Model), native_of(logs, Logs)
    encoding = model._encoding.joined(logs._encoding)
    with told(progress) as tell:
        updated = Model(_native.update(native, native_logs, memory, compress, tell))
    return updated._encoded(encoding)


def merge(*models: Model) -> Model:
    """Joins models of different logs, learned with the same parameters and ``keep_moments``, into the model of all of them.

    Examples
    --------
    >>> import foretell as ft
    >>> parts = [ft.learn(ft.sample("tiger", episodes=200, seed=s), rank=3, keep_moments=True) for s in (1, 2)]
    >>> ft.merge(*parts).trained_on[0]
    400
    """
    merged = Model(_native.merge([native_of(model, Model) for model in models]))
    encoding = Encoding()
    for model in models:
        encoding = encoding.joined(model._encoding)
    return merged._encoded(encoding)


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
    domain = None if truth is None else domain_of(truth)._native
    result = Score._of(_native.score(native_of(model, Model), native_of(logs, Logs), domain))
    if result.unseen > MUCH_UNSEEN * result.steps:
        warnings.warn("most of these steps were never met in training: are these logs of the same system?", stacklevel=2)
    return result


def search(
    logs: Logs,
    *,
    preset: Preset = "default",
    folds: int = 5,
    budget: float = 60.0,
    progress: bool | Progress | None = None,
    **fixed: Unpack[Learning],
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
        return Found._of(_native.search(native_of(logs, Logs), preset, dict(fixed), folds, budget, tell))


def diagnose(logs: Logs, *, preset: Preset = "default", **params: Unpack[Learning]) -> dict[str, Any]:
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
    report: dict[str, Any] = _native.diagnose(native_of(logs, Logs), preset, dict(params))
    return report
