"""Which predictors a model uses, and the evidence by which they were selected."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from foretell._html import count, grid

Kind = Literal["ngram", "linear", "latent", "recurrent"]
"""Kinds of predictors: counts after the last steps, a linear predictive state, the belief over the
latent states of a POMDP, or the state of a recurrent network."""

Effort = Literal["quick", "normal", "thorough"]

NAMES: dict[Kind, str] = {"ngram": "n-gram", "linear": "linear", "latent": "latent", "recurrent": "recurrent"}
_NOUNS: dict[Kind, str] = {"ngram": "n-gram", "linear": "linear model", "latent": "POMDP", "recurrent": "recurrent network"}
_HEAD = ("predictor", "size", "nats per step", "behind the choice", "± s.e.", "weight")


@dataclass(frozen=True)
class Member:
    """A predictor of a model, and its weight in predictions."""

    kind: Kind
    size: str
    """In words: ``"up to 2 steps"``, ``"rank 8"``, ``"62 states"``, ``"64 units"``."""
    weight: float
    """Its weight at the start of an episode; the weights of a model sum to 1."""


def in_words(members: list[Member]) -> str:
    """What a model predicts by: the only predictor, or the weights of each kind, the largest
    first."""
    if len(members) == 1:
        size = members[0].size
        return f"n-gram of {size}" if members[0].kind == "ngram" else size
    kinds = {kind: [member.weight for member in members if member.kind == kind] for kind in _NOUNS}
    used = sorted(((sum(weights), len(weights), kind) for kind, weights in kinds.items() if weights), reverse=True)
    if len(used) == 1:
        return f"mixture of {count(used[0][1], _NOUNS[used[0][2]])}"
    return "mixture of " + " and ".join(f"{count(n, _NOUNS[kind])} ({weight:.2f})" for weight, n, kind in used)


@dataclass(frozen=True)
class Candidate:
    """A predictor that was tried, and how well it predicts held-out steps."""

    kind: Kind
    size: str
    """In words: ``"up to 2 steps"``, ``"rank 8"``, ``"58 to 62 states"`` where folds differ."""
    nats: float | None
    """Mean log-likelihood of a held-out step; None if nothing could be held out."""
    behind: float | None
    """How much better the selected mixture predicts a held-out step, nats."""
    error: float | None
    """Standard error of that difference; None if there is at most one held-out part."""
    weight: float
    """Its weight in the mixture; 0 if it was not selected."""

    def _row(self) -> tuple[str, ...]:
        weight = f"{self.weight:.2f}" if self.weight > 0 else "–"
        return NAMES[self.kind], self.size, *map(_number, (self.nats, self.behind, self.error)), weight


@dataclass(frozen=True)
class Selection:
    """The predictors that `learn` tried, the weights that it gave them, and the evidence."""

    effort: Effort
    """The effort that was made."""
    nats: float | None
    """Mean log-likelihood of a held-out step under the selected mixture, whose weights were chosen
    on the same steps; None if nothing could be held out."""
    error: float | None
    """Standard error of that mean; None if there is at most one held-out part."""
    tried: list[Candidate]
    """The predictors that were tried, simplest first."""
    memory: float
    """How long weights remember what happened in the episode, from 0 (constant weights) to 1 (the
    posterior of a Bayesian mixture)."""
    rank: int | None
    """The rank of the linear model; None if there is none."""
    problem: str | None
    """Why no linear model was tried, and therefore no POMDP."""
    folds: int
    """Number of times that a part of the logs was held out."""
    parts: int
    """Number of held-out episodes, or of held-out pieces of few long ones."""
    steps: int
    """Number of held-out steps."""
    piece_length: int | None
    """The length of the pieces that few long episodes were cut into."""
    every: int
    """One of this many episodes was used for the selection."""
    rewards: dict[str, Any] | None = None
    """Whether rewards should be part of observations, if that was considered."""
    columns: dict[str, Any] | None = None
    """Columns of observations that help to predict neither the others nor rewards, if there are any:
    their names, those of the others, the numbers of observations with and without them, and how much
    better the others are predicted without them, in nats per step."""
    doubling: dict[str, Any] | None = None
    """How much better the predictor with the largest weight is than if it had been fitted to half
    of the logs, if that was tried: its kind, the gain in nats per step and its standard error."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Selection:
        known: dict[str, Any] = {field.name: report.get(field.name) for field in fields(cls)}
        tried = [Candidate(**{field.name: row[field.name] for field in fields(Candidate)}) for row in report["tried"]]
        return cls(**known | {"tried": tried})

    def _rows(self) -> list[tuple[str, ...]]:
        return [_HEAD, *(candidate._row() for candidate in self.tried)]

    def _summary(self) -> str:
        if self.nats is None:
            return "nothing could be held out, so the simplest predictor was taken"
        error = "" if self.error is None else f" ± {self.error:.4f}"
        parts = count(self.parts, "episode" if self.piece_length is None else "piece")
        adaptive = ", weights follow the episode" if self.memory > 0 else ""
        return f"{self.nats:.4f}{error} nats per step, {count(self.steps, 'step')} of {parts} held out{adaptive}"

    def _notes(self) -> list[str]:
        return [] if self.problem is None or self.rank is not None else [f"linear and latent predictors were not tried: {self.problem}"]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        # Words are aligned on the left, numbers on the right.
        padded = [[f"{cell:{'<' if i < 2 else '>'}{widths[i]}}" for i, cell in enumerate(row)] for row in rows]
        table = ["  " + "  ".join(cells).rstrip() for cells in padded]
        return "\n".join([f"<foretell.Selection: {self._summary()}>", *table, *(f"  {note}" for note in self._notes())])

    def _repr_html_(self) -> str:
        return grid("Selection", self._rows(), [self._summary(), *self._notes()])


def _number(x: float | None) -> str:
    # Adding zero drops the sign of a negative zero.
    return "–" if x is None else f"{round(x, 4) + 0.0:.4f}"
