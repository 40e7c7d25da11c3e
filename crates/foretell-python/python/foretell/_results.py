"""Results of scoring, evaluation, planning and search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foretell._html import count, table
from foretell._logs import Logs

if TYPE_CHECKING:  # policies show the comparisons of this module
    from foretell._policy import Policy


@dataclass(frozen=True)
class HorizonScore:
    """Log-likelihood of the first ``horizon`` observations of an episode, nats."""

    horizon: int
    log_likelihood: float
    ci95: float | None
    """Half the width of its 95 % interval; None for a single episode."""
    episodes: int


@dataclass(frozen=True)
class Comparison:
    """How much better than another predictor a model predicts the same steps.

    The model is better or worse beyond noise if ``difference`` is larger than ``ci95``, in absolute
    value."""

    name: str
    """The other predictor: a baseline, or ``"truth"`` for the exact model."""
    difference: float
    """Mean log-likelihood of a step under the model minus that under the other, nats."""
    ci95: float | None
    """Half the width of its 95 % interval; None where the logs are too short for one."""
    blocks: int
    """How many episodes the interval is computed from, or blocks of consecutive steps where there
    are few episodes."""


def _with_interval(value: float, ci95: float | None) -> str:
    return f"{value:.4f}" if ci95 is None else f"{value:.4f} ± {ci95:.4f}"


@dataclass(frozen=True)
class CalibrationBin:
    """Observed frequency of predictions with about the same probability."""

    predicted: float
    observed: float
    predictions: int


@dataclass(frozen=True)
class LearnedFrom:
    """How many of some episodes were learned from."""

    episodes: int
    """Episodes that could be compared: all, or a sample if the model was learned from many."""
    found: int
    """How many of them were learned from."""
    by_chance: float
    """How many would be found by chance, because short episodes repeat."""
    warning: str | None
    """What that means, if it is more than chance explains."""

    @classmethod
    def _of(cls, report: dict[str, Any] | None) -> LearnedFrom | None:
        return None if report is None else cls(**report)


@dataclass(frozen=True)
class Score:
    """Prediction quality of a model on logs, compared with n-grams and, if known, the exact
    model."""

    per_step: float
    """Mean log-likelihood of a step, nats."""
    per_step_ci95: float | None
    """Half the width of its 95 % interval; None where the logs are too short for one."""
    comparisons: list[Comparison]
    """Comparison with each baseline and, if it is known, the exact model."""
    horizons: list[HorizonScore]
    """Log-likelihood by horizon."""
    baselines: dict[str, list[HorizonScore]]
    """The same for n-grams, and for uniform predictions."""
    truth: list[HorizonScore] | None
    """The same for the exact model."""
    calibration: list[CalibrationBin]
    """Predicted probabilities and observed frequencies."""
    episodes: int
    """Episodes scored."""
    steps: int
    """Steps scored."""
    unseen: int
    """Steps with an action or observation that was not seen in training."""
    lost: int
    """How often the model assigned probability zero to an observation."""
    learned_from: LearnedFrom | None
    """How many of the episodes the model was learned from; None where that is not known."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Score:
        def scores(rows: list[dict[str, Any]]) -> list[HorizonScore]:
            return [HorizonScore(**row) for row in rows]

        truth = report.get("truth")
        return cls(
            per_step=report["per_step"],
            per_step_ci95=report["per_step_ci95"],
            comparisons=[Comparison(**row) for row in report["comparisons"]],
            horizons=scores(report["horizons"]),
            baselines={name: scores(rows) for name, rows in report["baselines"].items()},
            truth=None if truth is None else scores(truth),
            calibration=[CalibrationBin(b["predicted"], b["observed"], b["predictions"]) for b in report["calibration"]],
            episodes=report["episodes"],
            steps=report["steps"],
            unseen=report["unseen"],
            lost=report["lost"],
            learned_from=LearnedFrom._of(report.get("learned_from")),
        )

    def __repr__(self) -> str:
        return f"<foretell.Score: {self.per_step:.4f} nats per step, {count(self.episodes, 'episode')}>"

    def _repr_html_(self) -> str:
        last = self.horizons[-1]
        rows: list[tuple[str, object]] = [
            ("nats per step", _with_interval(self.per_step, self.per_step_ci95)),
            *((f"difference from {c.name}", _with_interval(c.difference, c.ci95)) for c in self.comparisons),
            (f"log-likelihood of {count(last.horizon, 'step')}", _with_interval(last.log_likelihood, last.ci95)),
        ]
        others = {**self.baselines, **({} if self.truth is None else {"exact model": self.truth})}
        for name, line in others.items():
            at = [score for score in line if score.horizon == last.horizon]
            rows += [(name, _with_interval(score.log_likelihood, score.ci95)) for score in at]
        return table("Score", rows)


@dataclass(frozen=True)
class Returns:
    """Mean returns of a policy; ``ci95`` is half the width of a 95 % interval, and None for a single
    episode."""

    episodes: int
    mean_return: float
    ci95: float | None
    discounted_return: float
    discounted_ci95: float | None
    mean_length: float
    terminated: float
    """Fraction of the episodes that terminated, rather than being truncated."""

    def __repr__(self) -> str:
        plain, less = _with_interval(self.mean_return, self.ci95), _with_interval(self.discounted_return, self.discounted_ci95)
        return f"<foretell.Returns: {plain}, discounted {less}, {count(self.episodes, 'episode')}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("return", _with_interval(self.mean_return, self.ci95)),
            ("discounted", _with_interval(self.discounted_return, self.discounted_ci95)),
            ("steps", f"{self.mean_length:.2f}"),
            ("terminated", f"{self.terminated:.1%}"),
            ("episodes", f"{self.episodes:,}"),
        ]
        return table("Returns", rows)


@dataclass(frozen=True)
class Estimate:
    """A value with its standard error and the ends of its interval; None if there are too few
    episodes to know them."""

    value: float
    error: float | None
    low: float | None
    high: float | None

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Estimate:
        return cls(*(report[name] for name in ("value", "error", "low", "high")))

    def __str__(self) -> str:
        return f"{self.value:.4g}" if self.low is None or self.high is None else f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Against:
    """A policy against what was logged."""

    by: str
    """The estimator that decides."""
    difference: Estimate
    """The value of the policy minus what was logged."""
    verdict: str
    """"better", "worse", "cannot-tell" or "same"."""
    needed: int | None
    """Episodes, about, with which such a difference could be told, if it cannot with these."""


@dataclass(frozen=True)
class Judged:
    """A policy and its value by logs."""

    name: str
    value: float
    """The expected discounted return; minus infinity if it takes actions that the logs lack."""
    error: float
    """Its standard error, of sampling alone."""


@dataclass(frozen=True)
class PlanChoice:
    """The ways to plan that were compared on the logs, by cross-fitted values."""

    candidates: list[Judged]
    chosen: Judged
    """The candidate that made the policy."""
    logged: Judged
    """The policy that wrote the logs."""
    constant: Judged | None
    """The best of the policies that always take the same action; the last candidate."""
    is_constant: bool
    """Whether the policy does the same."""
    horizon: int
    """Steps over which all of these values are."""
    discount: float
    warning: str | None
    """What to prefer, if the logs do not show that the policy is better."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> PlanChoice:
        judged = [Judged(**found) for found in report["candidates"]]
        constant = report["constant"]
        same = ("is_constant", "horizon", "discount", "warning")
        return cls(
            candidates=judged,
            chosen=judged[report["chosen"]],
            logged=Judged(**report["logged"]),
            constant=None if constant is None else Judged(**constant),
            **{name: report[name] for name in same},
        )

    def _repr_html_(self) -> str:
        shown = [*self.candidates, self.logged]
        rows: list[tuple[str, object]] = [(found.name, f"{found.value:.4g} ± {found.error:.2g}") for found in shown]
        return table("PlanChoice", rows, [f"chosen: {self.chosen.name}", *([] if self.warning is None else [self.warning])])


@dataclass(frozen=True)
class LogValue:
    """The value of a policy, estimated from logs; ``value["wdr"]`` is the estimate by "wdr"."""

    logged: Estimate
    """What was logged."""
    estimates: dict[str, Estimate]
    """The policy, by each estimator that could be used."""
    comparison: Against
    verdict: str
    """The verdict in one sentence."""
    notes: list[str]
    """What the estimates rest on."""
    warnings: list[str]
    """Reasons not to trust them."""
    episodes: int
    rewarded: int
    """Steps of the logs with a non-zero reward."""
    without_reward: int
    """Steps without a reward, which were left out."""
    max_steps: int
    discount: float
    level: float
    bound: str
    propensities: dict[str, Any] | str
    """Where the probabilities of logged actions are from: "logged", or how they were estimated."""
    support: dict[str, Any]
    """How much the logs say about the policy: effective number of episodes, largest weight, …"""
    returns: dict[str, Any] | None
    """CVaR and quantiles of the weighted returns; None if too few whole episodes have weight."""
    cross_fitted: dict[str, Any] | None
    """How plans were made anew on folds of the logs, if they were."""
    agree: bool | None
    """Whether Q and model agree with the estimate that decides. None if there is only one."""
    learned_from: LearnedFrom | None
    """How many of the episodes it was planned on or its model learned from; None where that is not
    known."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> LogValue:
        against = report["comparison"]
        same = ("episodes", "rewarded", "without_reward", "max_steps", "discount", "level", "bound", "propensities", "support")
        also = ("returns", "cross_fitted", "agree", "verdict", "notes", "warnings")
        return cls(
            logged=Estimate._of(report["logged"]),
            estimates={found["estimator"]: Estimate._of(found) for found in report["estimates"]},
            comparison=Against(against["by"], Estimate._of(against["difference"]), against["verdict"], against["needed"]),
            learned_from=LearnedFrom._of(report["learned_from"]),
            **{name: report[name] for name in same + also},
        )

    def __getitem__(self, estimator: str) -> Estimate:
        return self.estimates[estimator]

    def __repr__(self) -> str:
        return f"<foretell.LogValue: {self.comparison.by} {self[self.comparison.by]}, logged {self.logged}>"

    def _repr_html_(self) -> str:
        return table("LogValue", [("logged", self.logged), *self.estimates.items()], [self.verdict, *self.notes, *self.warnings])


@dataclass(frozen=True)
class Solution:
    """Bounds on the optimal value in an exact model."""

    lower: float | None
    """Value that the policy achieves; None if the planner gives no lower bound."""
    upper: float
    """No policy earns more."""
    discount: float
    vectors: int
    """Number of α-vectors of the policy."""
    seconds: float
    returns: Returns | None
    """Returns of its policy, if it was tested."""

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Solution:
        returns = report.pop("returns")
        return cls(returns=None if returns is None else Returns(**returns), **report)

    def __repr__(self) -> str:
        least = "" if self.lower is None else f"at least {self.lower:.5g}, "
        earned = "" if self.returns is None else f", earned {_with_interval(self.returns.discounted_return, self.returns.discounted_ci95)}"
        return f"<foretell.Solution: {least}at most {self.upper:.5g}{earned}>"


@dataclass(frozen=True)
class Trained:
    """The result of an agent."""

    policy: Policy
    """The policy of the last round."""
    logs: Logs
    """All sampled episodes."""
    promised: list[float | None]
    """For each round the policy's own estimate of its discounted value at the start."""


@dataclass(frozen=True)
class Tried:
    """Parameters that were tried, and their prediction quality on held-out logs."""

    params: dict[str, Any]
    phase: str
    nats: float
    """Mean log-likelihood of a held-out step."""
    gain: float
    """Gain over the base, nats per step."""
    error: float
    """Standard error of the gain."""


@dataclass(frozen=True)
class Found:
    """The result of a search, for ``ft.learn(logs, **found.params)``."""

    params: dict[str, Any]
    """The parameters that were chosen."""
    chosen: Tried
    base: Tried
    """The parameters that the search started from."""
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
