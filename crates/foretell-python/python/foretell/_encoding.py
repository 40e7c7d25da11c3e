"""How observations were mapped to symbols: kept by logs, models and policies."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foretell.discretise import Discretiser


@dataclass(frozen=True)
class Encoding:
    """The discretiser of measurements, and the action logged for the observation before the first
    action, if any."""

    discretiser: Discretiser | None = None
    first_action: str | None = None

    @classmethod
    def of(cls, discretiser: Discretiser | None, first_action: str | None = None) -> Encoding:
        """An encoding with a copy of the discretiser, since the original may be fitted again."""
        return cls(copy.deepcopy(discretiser), first_action)

    def __bool__(self) -> bool:
        return self.discretiser is not None or self.first_action is not None

    def _plain(self) -> dict[str, Any]:
        described = None if self.discretiser is None else self.discretiser.to_dict()
        return {"discretiser": described, "first_action": self.first_action}

    def dumps(self) -> str | None:
        """The text that models store."""
        return json.dumps(self._plain()) if self else None

    @classmethod
    def loads(cls, text: str | None) -> Encoding:
        """Reads the text that models store."""
        if text is None:
            return cls()
        from foretell.discretise import from_dict

        saved = json.loads(text)
        discretiser = None if saved["discretiser"] is None else from_dict(saved["discretiser"])
        return cls(discretiser, saved["first_action"])

    def joined(self, other: Encoding) -> Encoding:
        """The common encoding; an error if they differ."""
        if self and other and self._plain() != other._plain():
            raise ValueError(
                "observations were mapped to symbols in different ways (different discretisers, or only one has an observation before "
                "the first action); convert all logs in the same way"
            )
        return self or other

    def encoded(self, observation: Any) -> Any:
        """The symbol of an observation; measurements are mapped by the discretiser, if there is
        one."""
        return observation if self.discretiser is None or isinstance(observation, str) else self.discretiser(observation)


class Encoded:
    """Common part of logs, models and policies."""

    _encoding: Encoding

    @property
    def discretiser(self) -> Discretiser | None:
        """The discretiser of measurements, if there is one. Models keep that of their logs, and
        policies that of their model."""
        return self._encoding.discretiser

    @property
    def first_action(self) -> str | None:
        """The action logged before the first observation of an episode, for Gymnasium logs; no
        policy chose it."""
        return self._encoding.first_action
