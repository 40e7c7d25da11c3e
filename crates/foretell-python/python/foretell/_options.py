"""Arguments of the functions, and their checks."""

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict

from foretell._domain import Domain
from foretell._logs import Logs
from foretell._model import Model
from foretell._policy import Policy

Preset = Literal["default", "paper"]
Projection = Literal["spherical", "rademacher", "signed-hash", "hashed", "identity"]


class Learning(TypedDict, total=False):
    """Parameters of `learn` that other functions accept too."""

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


def native_of(thing: Any, kind: type[Logs] | type[Model] | type[Policy]) -> Any:
    """The native part of an object, if it is of that kind."""
    if isinstance(thing, kind):
        return thing._native
    how = {"Logs": "ft.read", "Model": "ft.Model.load", "Policy": "ft.Policy.load"}[kind.__name__]
    if isinstance(thing, str | os.PathLike):
        raise TypeError(f"{thing!r} is not a foretell.{kind.__name__}; read a file with {how}")
    remedy = "; convert it with ft.from_pandas" if hasattr(thing, "columns") and kind is Logs else ""
    raise TypeError(f"a {type(thing).__name__} is not a foretell.{kind.__name__}{remedy}")


def checked(episodes: int, discount: float | None = None) -> None:
    """Checks the number of episodes and the discount."""
    if episodes < 1:
        raise ValueError(f"episodes = {episodes}: must be at least 1")
    if discount is not None and not 0 <= discount <= 1:
        raise ValueError(f"discount = {discount}: must be between 0 and 1")


def given(**params: Any) -> dict[str, Any]:
    """The parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}


def domain_of(domain: str | os.PathLike[str] | Domain) -> Domain:
    """A domain, from its name or as given."""
    return domain if isinstance(domain, Domain) else Domain(domain)
