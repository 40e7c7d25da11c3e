"""What verbs report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foretell._html import count, table
from foretell._logs import Logs
from foretell._policy import Policy


@dataclass(frozen=True)
class HorizonScore:
    """Log-likelihood of the first ``horizon`` observations of an episode, nats."""

    horizon: int
    log_likelihood: float
    ci95: float
    episodes: int


@dataclass(frozen=True)
class CalibrationBin:
    """How often what was predicted with about the same probability came true."""

    predicted: float
    observed: float
    predictions: int


@dataclass(frozen=True)
class Score:
    """How well a model predicts logs, beside n-grams and, where it is known, the exact model."""

    per_step: float
    """Mean log-likelihood of one step, nats."""
    horizons: list[HorizonScore]
    """Log-likelihood by horizon."""
    baselines: dict[str, list[HorizonScore]]
    """The same of n-grams, and of taking all observations as alike."""
    truth: list[HorizonScore] | None
    """The same of the exact model."""
    calibration: list[CalibrationBin]
    """Whether probabilities are what they say."""
    episodes: int
    """Episodes scored."""
    steps: int
    """Steps scored."""
    unseen: int
    """Steps whose action or observation was never met in training."""
    lost: int
    """How often an observation came that the model held impossible."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Score:
        def scores(rows: list[dict[str, Any]]) -> list[HorizonScore]:
            return [HorizonScore(**row) for row in rows]

        truth = report.get("truth")
        return cls(
            per_step=report["per_step"],
            horizons=scores(report["horizons"]),
            baselines={name: scores(rows) for name, rows in report["baselines"].items()},
            truth=None if truth is None else scores(truth),
            calibration=[CalibrationBin(b["predicted"], b["observed"], b["predictions"]) for b in report["calibration"]],
            episodes=report["episodes"],
            steps=report["steps"],
            unseen=report["unseen"],
            lost=report["lost"],
        )

    def __repr__(self) -> str:
        return f"<foretell.Score: {self.per_step:.4f} nats per step, {count(self.episodes, 'episode')}>"

    def _repr_html_(self) -> str:
        last = self.horizons[-1]
        rows: list[tuple[str, object]] = [
            ("nats per step", f"{self.per_step:.4f}"),
            (f"log-likelihood of {count(last.horizon, 'step')}", f"{last.log_likelihood:.4f} ± {last.ci95:.4f}"),
        ]
        others = {**self.baselines, **({} if self.truth is None else {"exact model": self.truth})}
        for name, line in others.items():
            at = [score for score in line if score.horizon == last.horizon]
            rows += [(name, f"{score.log_likelihood:.4f} ± {score.ci95:.4f}") for score in at]
        return table("Score", rows)


@dataclass(frozen=True)
class Returns:
    """What a policy earns, with 95 % intervals."""

    episodes: int
    mean_return: float
    ci95: float
    discounted_return: float
    discounted_ci95: float
    mean_length: float
    terminated: float
    """Share of the episodes that ended by themselves."""

    def __repr__(self) -> str:
        plain, less = f"{self.mean_return:.4g} ± {self.ci95:.2g}", f"{self.discounted_return:.4g} ± {self.discounted_ci95:.2g}"
        return f"<foretell.Returns: {plain}, discounted {less}, {count(self.episodes, 'episode')}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("return", f"{self.mean_return:.4f} ± {self.ci95:.4f}"),
            ("discounted", f"{self.discounted_return:.4f} ± {self.discounted_ci95:.4f}"),
            ("steps", f"{self.mean_length:.2f}"),
            ("ended by themselves", f"{self.terminated:.1%}"),
            ("episodes", f"{self.episodes:,}"),
        ]
        return table("Returns", rows)


@dataclass(frozen=True)
class Estimate:
    """A value and half the width of its 95 % interval."""

    value: float
    ci95: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.ci95:.2g}"


@dataclass(frozen=True)
class LogValue:
    """What logs say that a policy would earn, by two estimates that err in different ways."""

    logged: Returns
    """What the actions earned that were taken in the logs."""
    fitted_q: Estimate
    """By fitted-Q evaluation."""
    rollouts: Estimate | None
    """By letting it act in its own model, if it has one."""
    same_action: float
    """Share of the steps in which it would have done what was done."""
    agree: bool | None
    """Whether the two estimates agree; if not, trust neither."""
    rewarded: int
    """Steps of the logs whose reward is not zero: what all of it rests on."""
    max_steps: int
    discount: float

    @classmethod
    def _of(cls, report: dict[str, Any]) -> LogValue:
        rollouts = report["rollouts"]
        return cls(
            logged=Returns(**report["logged"]),
            fitted_q=Estimate(**report["fitted_q"]),
            rollouts=None if rollouts is None else Estimate(**rollouts),
            same_action=report["same_action"],
            agree=report["agree"],
            rewarded=report["rewarded"],
            max_steps=report["max_steps"],
            discount=report["discount"],
        )

    def _rows(self) -> list[tuple[str, object]]:
        logged = Estimate(self.logged.discounted_return, self.logged.discounted_ci95)
        return [
            ("by fitted-Q", self.fitted_q),
            *([] if self.rollouts is None else [("in its model", self.rollouts)]),
            ("logged", logged),
        ]

    def __repr__(self) -> str:
        return f"<foretell.LogValue, discounted: {', '.join(f'{name} {value}' for name, value in self._rows())}>"

    def _repr_html_(self) -> str:
        notes = ["The two estimates disagree: trust neither."] if self.agree is False else []
        return table("LogValue", [*self._rows(), ("same action", f"{self.same_action:.1%}")], notes)


@dataclass(frozen=True)
class Solution:
    """What can be earned with an exact model, from both sides."""

    lower: float | None
    """Some policy earns this; None where the planner does not say."""
    upper: float
    """Nobody earns more."""
    discount: float
    vectors: int
    """Plans that the policy chooses among."""
    seconds: float
    returns: Returns | None
    """What its policy earned, if it was let act."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Solution:
        returns = report.pop("returns")
        return cls(returns=None if returns is None else Returns(**returns), **report)

    def __repr__(self) -> str:
        least = "" if self.lower is None else f"at least {self.lower:.5g}, "
        earned = "" if self.returns is None else f", earned {self.returns.discounted_return:.4g} ± {self.returns.discounted_ci95:.2g}"
        return f"<foretell.Solution: {least}at most {self.upper:.5g}{earned}>"


@dataclass(frozen=True)
class Trained:
    """What an agent came to."""

    policy: Policy
    """That of the last round."""
    logs: Logs
    """All episodes that were sampled."""
    promised: list[float | None]
    """What the policy of each round is worth at the start, by its own estimate, discounted."""


@dataclass(frozen=True)
class Tried:
    """Parameters that were tried, and how well they predict held-out logs."""

    params: dict[str, Any]
    phase: str
    nats: float
    """Mean log-likelihood of a held-out step."""
    gain: float
    """By how much that is more than the base has."""
    error: float
    """Standard error of the gain."""


@dataclass(frozen=True)
class Found:
    """What came of a search: ``ft.learn(logs, **found.params)``."""

    params: dict[str, Any]
    """The parameters that were chosen."""
    chosen: Tried
    base: Tried
    """Where the search began."""
    tried: list[Tried]
    """All candidates, those compared on all folds first."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Found:
        def tried(row: dict[str, Any]) -> Tried:
            return Tried(row["params"], row["phase"], row["nats"], row["gain"], row["error"])

        chosen = tried(report["chosen"])
        return cls(chosen.params, chosen, tried(report["base"]), [tried(row) for row in report["tried"]])

    def __repr__(self) -> str:
        gain = f"{self.chosen.gain:.4f} ± {1.96 * self.chosen.error:.4f}"
        return f"<foretell.Found: {count(len(self.tried), 'candidate')} tried, gain {gain} nats per step>"
