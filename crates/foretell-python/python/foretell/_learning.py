"""Learning models from logs, and scoring them."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Unpack

from foretell import _native
from foretell._domain import Domain
from foretell._encoding import Encoding
from foretell._logs import Logs
from foretell._model import Model
from foretell._options import Learning, Preset, Projection, domain_of, given, native_of
from foretell._progress import Progress, progress as reporting
from foretell._results import Found, Score
from foretell._selection import Effort, Kind, Selection

GIB = 1 << 30
# Fraction of steps with unknown symbols above which the logs are probably of another system.
MUCH_UNSEEN = 0.5


def advised(model: Model) -> Model:
    """The model; warns if rewards carry information that its observations lack."""
    if model._native.wants_rewards_observed and not model._native.observes_rewards:
        words = "rewards carry information about the state that observations lack; learn with observe_reward=True"
        warnings.warn(words, stacklevel=3)
    return model


def learn(
    logs: Logs,
    *,
    preset: Preset = "default",
    refine: bool = False,
    effort: Effort = "normal",
    only: Kind | None = None,
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
    layout: Literal["auto", "owned", "merged", "free", "sensing", "dense", "modes"] | None = None,
    em_rounds: int | None = None,
    patience: int | None = None,
) -> Model:
    """Learns a model from logs.

    By default it fits predictors of several kinds to part of the logs: n-grams, linear models,
    POMDPs with latent states, and recurrent networks. The rest of the logs tells how to weigh them.
    The model is their mixture, and ``model.selection`` has the evidence. With ``refine=True``, ``mix`` or
    ``preset="paper"`` nothing is selected, because each of these describes one model completely.

    Parameters
    ----------
    logs : Logs
        Logs to learn from.
    preset : {"default", "paper"}
        Parameters to start from: those that predict best, or those of the paper. The parameters
        below override them.
    refine : bool
        Learn a linear model of this ``rank`` and refine it into a POMDP, as `refine` does, without
        selecting anything else.
    effort : {"quick", "normal", "thorough"}
        How much work goes into finding a good predictor. "quick": n-grams and linear models only.
        "normal": POMDPs and recurrent networks too. "thorough": more POMDPs and larger networks,
        fitted for longer. It is a matter of work and not of time, so that results do not depend on
        the clock.
    only : {"ngram", "linear", "latent", "recurrent"}, optional
        Use only predictors of this kind: back-off n-grams, linear predictive states, latent states
        of POMDPs, or recurrent networks.
    ensemble : int, optional
        Average this many models, and learn as many again from halves of the logs. Their spread
        shows how uncertain predictions are.
    keep_moments : bool, "exact" or "compressed"
        Keep the moments of the linear model, which `update` and `merge` need to add other logs.
        True keeps exact ones if they fit into ``memory``, otherwise compressed ones.
    memory : int
        Maximum memory for these moments, in bytes.
    progress : bool or callable, optional
        True for a tqdm bar, False for none. By default there is a bar if tqdm is installed and
        standard error is a terminal. A function is called with the name of the current stage, the
        amount done, and the total (or None).
    test_projection : str, default "signed-hash"
        Projection of tests.
        "spherical": Gaussian entries; "rademacher": ±1; "hashed": a single 1; "signed-hash": a
        single ±1; "identity": no compression (TPSR).
    history_projection : str, default "signed-hash"
        Projection of histories.
        The same choices as for tests.
    test_dim : int, default 1024
        d_T, rows of Φ_T, plus one for the null test (ignored by identity).
    history_dim : int, default 1024
        d_H, rows of Φ_H, plus one each for the start and the null history (ignored by identity).
    max_test_length : int, default 2
        Longest test, in steps.
    history : {"suffix", "prefix"}, default "suffix"
        Which parts of the past are histories.
        "suffix": the last pairs, so that every step is used for training; "prefix": the whole past,
        as in the paper.
    history_length : int, default 3
        Longest suffix history, in steps (ignored for prefix histories).
    cuts : {"complete", "ragged"}, default "complete"
        At which steps an episode is cut into a history and a test.
        "complete": where the longest test still fits; "ragged": at every step, as in the paper.
    start : {"fixed", "mixed"}, default "fixed"
        What is known about the initial state of episodes.
        "fixed": all episodes start from the same distribution; "mixed": they start at arbitrary
        points.
    rank : int, default 40
        d′, dimension of the predictive state.
        If predictors are selected, the default is the rank that predicts held-out steps best.
    tolerance : float, default 1e-06
        Singular values below this fraction of the largest are dropped.
    regression : {"two-stage", "pseudo-inverse"}, default "two-stage"
        How operators are regressed.
        "two-stage": least squares in two stages, with a ridge; "pseudo-inverse": as in the paper.
    whitening_ridge : float, default 0.03
        Ridge of the whitening, in units of the mean eigenvalue (two-stage only).
    ridge : float, default 0.01
        Ridge of the second stage, in units of the mean eigenvalue (two-stage only).
    floor : float, default 0.0001
        Smallest probability of an observation seen in training, before normalisation.
    ngram_length : int, default 3
        Longest context of the back-off n-gram that is counted alongside the model, in steps.
    mix : float, default 0.0
        Weight of the n-gram in predictions, between 0 and 1.
        If it is given, the model is a linear one, and nothing is selected.
    observe_reward : bool, default False
        Whether rewards are part of observations, for rewards that carry information of their own.
        If it is not given and predictors are selected, it is selected too: see
        ``model.selection.rewards``.
    weighting : {"none", "next", "propensity"}, default "none"
        How to correct for the behaviour policy that chose the logged actions.
        "none": no correction, the model is that of the system under the behaviour policy. "next":
        outcomes of rare actions count as much as those of frequent ones. "propensity": steps of
        tests are weighted as well, at the cost of more variance. "next" and "propensity" need
        action probabilities in the logs.
    seed : int, default 0
        Seed of the projections.
    states : int or "auto", default "auto"
        Number of latent states: auto, or a number (start and end states are added to it).
    layout : str, default "auto"
        How latent states relate to observations.
        "owned": each state emits one observation, for noise-free observations that many states
        share. "merged": the same, beginning with histories merged into a deterministic automaton,
        for memory that reaches far. "free": a state may emit any observation, for noisy ones.
        "sensing": the same, depending on the action, for actions that look or ask. "modes": a state is
        an observation and a hidden mode. "dense": plain EM from a random start, for comparison. "auto": the layout that predicts held-out episodes best.
    em_rounds : int, default 1000
        Maximum number of EM rounds.
    patience : int, default 6
        EM stops after this many rounds without a gain on held-out episodes.

    Returns
    -------
    Model

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> model = ft.learn(logs)
    >>> round(sum(member.weight for member in model.members), 6)
    1.0
    >>> model.selection.tried[0].kind
    'ngram'

    A linear model, and a POMDP that is refined from it:

    >>> ft.learn(logs, mix=0, rank=3)
    <foretell.Model: rank 3, 3 actions, 2 observations, learned from 500 episodes>
    >>> ft.learn(logs, refine=True, rank=3)
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
    select = _selecting(preset, refine, effort, only, mix)
    has_states = refine or (select is not None and (only == "latent" or (only is None and effort != "quick")))
    if refinement and not has_states:
        words = "parameters of latent states, of which there are none; add refine=True or only=\"latent\""
        raise ValueError(f"{', '.join(refinement)}: {words}")
    keep = "fitting" if keep_moments is True else keep_moments or None
    with reporting(progress) as tell:
        native, report = _native.learn(
            native_of(logs, Logs),
            preset,
            params,
            refinement if has_states else None,
            select,
            ensemble,
            keep,
            memory,
            tell,
        )
    model = Model(native, None if report is None else Selection._of(report))
    if model.selection is None or model.selection.rewards is None:
        advised(model)
    if keep_moments and not native.has_linear:
        warnings.warn("the model is an n-gram, so it keeps no moments and cannot be updated", stacklevel=2)
    if keep_moments is True and model.moments == "compressed":
        words = f"moments are compressed, as exact ones take more than memory={memory} bytes; updates will be approximate"
        warnings.warn(words, stacklevel=2)
    return model._encoded(logs._encoding) if logs._encoding else model


def _selecting(preset: Preset, refine: bool, effort: Effort, only: Kind | None, mix: float | None) -> dict[str, Any] | None:
    """How predictors are selected; None if the arguments describe one model completely."""
    if refine and only is not None:
        raise ValueError(f'only="{only}": refine=True learns one POMDP and selects nothing; leave out only or refine')
    if not refine and preset != "paper" and mix is None:
        return given(effort=effort, only=only)
    if only is not None and only != "linear":
        raise ValueError(f'only="{only}": mix and preset="paper" describe a linear model; leave out only, or mix and preset')
    return None


def refine(
    model: Model,
    logs: Logs,
    *,
    progress: bool | Progress | None = None,
    states: int | Literal["auto"] | None = None,
    layout: Literal["auto", "owned", "merged", "free", "sensing", "dense", "modes"] | None = None,
    em_rounds: int | None = None,
    patience: int | None = None,
) -> Model:
    """Refines a model into a POMDP, with hidden states and proper probabilities, by EM that starts
    from the model.

    Parameters
    ----------
    model : Model
        A model from `learn`. Its linear part is refined.
    logs : Logs
        Preferably the logs that it was learned from.
    progress : bool or callable, optional
        As in `learn`.
    states : int or "auto", default "auto"
        Number of latent states: auto, or a number (start and end states are added to it).
    layout : str, default "auto"
        How latent states relate to observations.
        "owned": each state emits one observation, for noise-free observations that many states
        share. "merged": the same, beginning with histories merged into a deterministic automaton,
        for memory that reaches far. "free": a state may emit any observation, for noisy ones.
        "sensing": the same, depending on the action, for actions that look or ask. "modes": a state is
        an observation and a hidden mode. "dense": plain EM from a random start, for comparison. "auto": the layout that predicts held-out episodes best.
    em_rounds : int, default 1000
        Maximum number of EM rounds.
    patience : int, default 6
        EM stops after this many rounds without a gain on held-out episodes.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> ft.refine(ft.learn(logs, mix=0, rank=3), logs).states
    6
    """
    params = given(states=states, layout=layout, em_rounds=em_rounds, patience=patience)
    with reporting(progress) as tell:
        return advised(Model(_native.refine(native_of(model, Model), native_of(logs, Logs), params, tell)))


def update(
    model: Model,
    logs: Logs,
    *,
    memory: int = 2 * GIB,
    compress: bool = False,
    again: bool = False,
    progress: bool | Progress | None = None,
) -> Model:
    """Adds new logs to a model that keeps its moments; the old logs are not needed.

    The result is the linear model. If the moments are exact, it is the same as learning a linear
    model from all logs (``mix=0``). Mixture, refinement and ensemble are dropped, as they need the
    logs themselves.

    Parameters
    ----------
    model : Model
        Learned with ``keep_moments``.
    logs : Logs
        The new logs.
    memory : int
        Maximum memory for the moments, in bytes.
    compress : bool
        Compress exact moments if they no longer fit into ``memory``, instead of raising an error.
    again : bool
        Add logs even if the model was learned from them before; their episodes then count twice.
    progress : bool or callable, optional
        As in `learn`.

    Examples
    --------
    >>> import foretell as ft
    >>> model = ft.learn(ft.sample("tiger", episodes=300, seed=1), mix=0, rank=3, keep_moments=True)
    >>> ft.update(model, ft.sample("tiger", episodes=200, seed=2)).trained_on[0]
    500
    """
    native, native_logs = native_of(model, Model), native_of(logs, Logs)
    encoding = model._encoding.joined(logs._encoding)
    with reporting(progress) as tell:
        updated = Model(_native.update(native, native_logs, memory, compress, again, tell))
    return updated._encoded(encoding)


def merge(*models: Model, again: bool = False) -> Model:
    """Merges models of different logs, learned with the same parameters and ``keep_moments``, into
    the linear model of all these logs. Learn them with ``mix=0``, or give the ``rank``, as a selected
    rank may differ between them. Models of the same logs are refused, unless their episodes are to
    count ``again``.

    Examples
    --------
    >>> import foretell as ft
    >>> parts = [ft.learn(ft.sample("tiger", episodes=200, seed=s), mix=0, rank=3, keep_moments=True) for s in (1, 2)]
    >>> ft.merge(*parts).trained_on[0]
    400
    """
    merged = Model(_native.merge([native_of(model, Model) for model in models], again))
    encoding = Encoding()
    for model in models:
        encoding = encoding.joined(model._encoding)
    return merged._encoded(encoding)


def score(model: Model, logs: Logs, *, truth: str | Domain | None = None) -> Score:
    """Scores the predictions of a model on logs, preferably held-out ones, and compares them with
    n-grams of the training logs.

    Parameters
    ----------
    model : Model
        The model to score.
    logs : Logs
        The logs to predict.
    truth : str or Domain, optional
        The domain that the logs come from; its exact model is scored too.

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
        warnings.warn("most of these steps have actions or observations that were not seen in training; are these logs of the same system?", stacklevel=2)
    if result.learned_from is not None and result.learned_from.warning is not None:
        warnings.warn(result.learned_from.warning, stacklevel=2)
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
        Parameters to start from, and to improve on.
    folds : int
        Number of folds.
    budget : float
        Time limit in seconds; 0 for no limit, which makes the result reproducible.
    progress : bool or callable, optional
        As in `learn`.
    **fixed
        Parameters of `learn` that are fixed instead of searched.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=200, seed=1)
    >>> found = ft.search(logs, test_dim=32, history_dim=32, max_test_length=2, budget=0)
    >>> found.chosen.gain >= 0
    True
    >>> model = ft.learn(logs, **found.params)
    """
    with reporting(progress) as tell:
        return Found._of(_native.search(native_of(logs, Logs), preset, dict(fixed), folds, budget, tell))


def diagnose(logs: Logs, *, preset: Preset = "default", **params: Unpack[Learning]) -> dict[str, Any]:
    """Measures what can be learned from logs: coverage, memory, sparsity, supported rank and
    projection size, and error growth.

    Parameters
    ----------
    logs : Logs
        The logs to examine.
    preset : {"default", "paper"}
        Parameters of learning to start from.
    **params
        Parameters of `learn` that override them.

    Returns
    -------
    dict
        The measurements by name: the same as the JSON output of the command ``foretell diagnose``.
        ``["memory"]`` tells whether past steps help to predict, with a 95 % interval; it is `None`
        if there are too few steps. ``["spectrum"]["rank"]`` is `None` if the logs support no rank.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.diagnose(ft.sample("tiger", episodes=200, seed=1))["episodes"]
    200
    """
    report: dict[str, Any] = _native.diagnose(native_of(logs, Logs), preset, dict(params))
    return report
