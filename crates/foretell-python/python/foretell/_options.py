"""What verbs take."""

from __future__ import annotations

import os
from typing import Any, Literal

from foretell._domain import Domain

Preset = Literal["default", "paper"]
Projection = Literal["spherical", "rademacher", "signed-hash", "hashed", "identity"]


def given(**params: Any) -> dict[str, Any]:
    """The parameters that were given."""
    return {name: value for name, value in params.items() if value is not None}


def domain_of(domain: str | os.PathLike[str] | Domain) -> Domain:
    """A domain, by its name or as it is."""
    return domain if isinstance(domain, Domain) else Domain(domain)
