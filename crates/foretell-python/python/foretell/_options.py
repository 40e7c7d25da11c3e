"""What verbs take."""

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict

from foretell._domain import Domain

Preset = Literal["default", "paper"]
Projection = Literal["spherical", "rademacher", "signed-hash", "hashed", "identity"]


class Learning(TypedDict, total=False):
    """Parameters of `learn` that other verbs take too."""

    test_projection: Projection
    history_projection: Projection
    test_dim: int
    history_dim: int
    max_test_length: int
    history: Literal["prefix", "suffix"]
    history_length: int
    cuts: Literal["complete", "ragged"]
    start: Literal["fixed", "mixed"]
    rank: int
    tolerance: float
    regression: Literal["pseudo-inverse", "two-stage"]
    whitening_ridge: float
    ridge: float
    floor: float
    ngram_length: int
    mix: float
    observe_reward: bool
    weighting: Literal["none", "next", "propensity"]
    seed: int


def given(**params: Any) -> dict[str, Any]:
    """The parameters that were given."""
    return {name: value for name, value in params.items() if value is not None}


def domain_of(domain: str | os.PathLike[str] | Domain) -> Domain:
    """A domain, by its name or as it is."""
    return domain if isinstance(domain, Domain) else Domain(domain)
