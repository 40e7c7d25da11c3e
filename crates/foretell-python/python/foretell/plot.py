"""Plots, with matplotlib: ``pip install foretell[plot]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from foretell._extras import needed
from foretell._results import HorizonScore, Returns, Score

if TYPE_CHECKING:
    from foretell._model import Model

__all__ = ["likelihood", "returns", "spectrum"]

# Colours that most people can distinguish (Okabe, Ito).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
GREY = "#8a939c"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return needed("matplotlib.pyplot", "foretell.plot").subplots(layout="constrained")[1]


def spectrum(model: Model, *, ax: Any = None) -> Any:
    """Plots the singular values of a model, and which of them are kept.

    Parameters
    ----------
    model : Model
        The model.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import foretell as ft
    >>> axes = ft.plot.spectrum(ft.learn(ft.sample("tiger", episodes=200, seed=1), mix=0, rank=3))
    >>> axes.figure.savefig("spectrum.png")
    """
    ax = _axes(ax)
    values = model.spectrum
    values = values[values > 0]
    numbers = np.arange(1, len(values) + 1)
    kept = numbers <= model.rank
    ax.semilogy(numbers[kept], values[kept], "o", ms=3, color=COLOURS[0], label=f"kept, {model.rank}")
    ax.semilogy(numbers[~kept], values[~kept], "o", ms=3, color=GREY, label="dropped")
    ax.set(xlabel="number", ylabel="singular value", title="Dependence of the future on the past, by direction")
    ax.legend(frameon=False)
    return ax


def likelihood(scores: Score | Mapping[str, Score], *, baselines: bool = True, ax: Any = None) -> Any:
    """Plots log-likelihood by horizon, with 95 % bands: one line for each model, n-gram and exact
    model.

    Parameters
    ----------
    scores : Score or mapping of names to Score
        Scores on the same logs.
    baselines : bool
        Whether to draw the n-grams and the exact model of the first score.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import foretell as ft
    >>> logs, test = ft.sample("tiger", episodes=400, seed=1).split(0.5)
    >>> scores = {f"rank {rank}": ft.score(ft.learn(logs, mix=0, rank=rank), test, truth="tiger") for rank in (1, 3)}
    >>> axes = ft.plot.likelihood(scores)
    >>> axes.figure.savefig("likelihood.png")
    """
    ax = _axes(ax)
    named = {"model": scores} if isinstance(scores, Score) else dict(scores)

    def line(name: str, rows: list[HorizonScore], colour: str, style: Any = "-") -> None:
        x = np.array([row.horizon for row in rows])
        y = np.array([row.log_likelihood for row in rows])
        half = np.array([row.ci95 or 0.0 for row in rows])
        ax.plot(x, y, linestyle=style, color=colour, label=name)
        ax.fill_between(x, y - half, y + half, color=colour, alpha=0.15, linewidth=0)

    for i, (name, score) in enumerate(named.items()):
        line(name, score.horizons, COLOURS[i % len(COLOURS)])
    if baselines and named:
        first = next(iter(named.values()))
        if first.truth is not None:
            line("exact model", first.truth, "black", "--")
        for i, (name, rows) in enumerate(first.baselines.items()):
            line(name, rows, GREY, ["-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1))][i % 5])
    ax.set(xlabel="steps", ylabel="log-likelihood of all observations so far, nats")
    ax.legend(frameon=False)
    return ax


def returns(earned: Returns | Mapping[str, Returns], *, discounted: bool = False, ax: Any = None) -> Any:
    """Plots returns of policies, with 95 % intervals.

    Parameters
    ----------
    earned : Returns or mapping of names to Returns
        One bar for each.
    discounted : bool
        Whether to draw discounted returns.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=500, seed=1)
    >>> model = ft.learn(logs, refine=True)
    >>> planners = ("qmdp", "point-based")
    >>> earned = {name: ft.evaluate(ft.plan(model, logs, planner=name), "tiger", episodes=200) for name in planners}
    >>> axes = ft.plot.returns(earned)
    >>> axes.figure.savefig("returns.png")
    """
    ax = _axes(ax)
    named = {"policy": earned} if isinstance(earned, Returns) else dict(earned)
    for name, r in named.items():
        if not isinstance(r, Returns):
            raise TypeError(f"{name}: a {type(r).__name__} is not a foretell.Returns; use evaluate in a domain or environment")
    names = list(named)
    values = [r.discounted_return if discounted else r.mean_return for r in named.values()]
    halves = [(r.discounted_ci95 if discounted else r.ci95) or 0.0 for r in named.values()]
    ax.barh(names, values, xerr=halves, color=COLOURS[0], height=0.6, error_kw={"lw": 1.5, "capsize": 3})
    ax.invert_yaxis()
    ax.set(xlabel=("discounted " if discounted else "") + "return of an episode, with 95 % intervals")
    return ax
