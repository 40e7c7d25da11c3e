"""How symbols were made of what a system shows: what logs, models and policies carry."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretell.discretise import Discretiser


@dataclass(frozen=True)
class Encoding:
    """What made symbols of measurements, and what stands for what was shown before the first action, if anything."""

    discretiser: Discretiser | None = None
    first_action: str | None = None

    @classmethod
    def of(cls, discretiser: Discretiser | None, first_action: str | None = None) -> Encoding:
        """With a copy of the discretiser, which may be fitted again."""
        return cls(copy.deepcopy(discretiser), first_action)

    def __bool__(self) -> bool:
        return self.discretiser is not None or self.first_action is not None

    def _plain(self) -> dict[str, Any]:
        described = None if self.discretiser is None else self.discretiser.to_dict()
        return {"discretiser": described, "first_action": self.first_action}

    def dumps(self) -> str | None:
        """As models carry it."""
        return json.dumps(self._plain()) if self else None

    @classmethod
    def loads(cls, text: str | None) -> Encoding:
        """As models carry it."""
        if text is None:
            return cls()
        from foretell.discretise import from_dict

        saved = json.loads(text)
        discretiser = None if saved["discretiser"] is None else from_dict(saved["discretiser"])
        return cls(discretiser, saved["first_action"])

    def joined(self, other: Encoding) -> Encoding:
        """That of both; an error where they say different things."""
        if self and other and self._plain() != other._plain():
            raise ValueError(
                "their symbols were made in different ways (discretisers, or what was shown before the first action); "
                "make them anew from the same measurements"
            )
        return self or other

    def encoded(self, observation: Any) -> Any:
        """The symbol of an observation: of a measurement by the discretiser, if there is one."""
        return observation if self.discretiser is None or isinstance(observation, str) else self.discretiser(observation)


class Encoded:
    """What logs, models and policies have in common."""

    _encoding: Encoding

    @property
    def discretiser(self) -> Discretiser | None:
        """What makes symbols of measurements, if anything does: models carry it on from logs, policies from models, and take measurements."""
        return self._encoding.discretiser

    @property
    def first_action(self) -> str | None:
        """The action that stands before what was shown at the start of an episode, where logs come from Gymnasium: nobody took it."""
        return self._encoding.first_action
