"""Symbols for the values of Gymnasium spaces."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from foretell._native import name_of

Encoder = Callable[[Any], Any]
"""Maps an observation of an environment to a name, an integer or a tuple of these."""


def check(space: spaces.Space[Any], what: str) -> None:
    """Refuses spaces that are not discrete."""
    match space:
        case spaces.Discrete() | spaces.MultiDiscrete() | spaces.MultiBinary() | spaces.Text():
            return
        case spaces.Box() if np.issubdtype(space.dtype, np.integer):
            return
        case spaces.Tuple():
            for part in space:
                check(part, what)
        case spaces.Dict():
            for part in space.values():
                check(part, what)
        case _:
            raise ValueError(
                f"{what} space {space} is not discrete; give encode=, such as a discretiser (foretell.discretise)"
            )


def symbol(value: Any) -> Any:
    """An observation or action of an environment, as an integer or a tuple of integers."""
    if isinstance(value, dict):
        return tuple(symbol(value[key]) for key in sorted(value))
    if isinstance(value, tuple | list):
        return tuple(symbol(part) for part in value)
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else tuple(array.ravel().tolist())


def actions_of(space: spaces.Space[Any]) -> list[Any]:
    """All actions of a space."""
    match space:
        case spaces.Discrete():
            return [int(space.start + i) for i in range(int(space.n))]
        case spaces.MultiDiscrete():
            flat = space.nvec.ravel()
            return [np.array(index).reshape(space.nvec.shape) for index in np.ndindex(*flat)]
        case spaces.Tuple():
            return list(itertools.product(*map(actions_of, space)))
        case spaces.MultiBinary():
            return [np.array(index).reshape(space.shape) for index in np.ndindex(*([2] * int(np.prod(space.shape))))]
        case _:
            raise ValueError(f"action space {space} is not discrete; wrap the environment in one with Discrete or MultiDiscrete actions")


class Names:
    """Names of the actions of an environment, and the reverse mapping. foretell's own environments
    have words as names."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        inner: Any = env.unwrapped
        self.actions = actions_of(env.action_space)
        words = getattr(inner, "action_names", None)
        numbers = [name_of(symbol(action)) for action in self.actions]
        self.names = numbers if words is None else list(words)
        self._named = dict(zip(self.names, self.actions))
        self._name = dict(zip(numbers, self.names))
        self.words: list[str] | None = getattr(inner, "observation_names", None)
        self.shows_first = not getattr(inner, "shows_nothing_first", False)

    def of_name(self, name: str) -> Any:
        """The action of that name."""
        if name not in self._named:
            raise ValueError(f"the environment has no action {name!r}; it has {', '.join(self.names[:12])}")
        return self._named[name]

    def name(self, action: Any) -> str:
        """The name of an action."""
        number = name_of(symbol(action))
        if number not in self._name:
            raise ValueError(f"the environment has no action {action!r}; it has {', '.join(self.names[:12])}")
        return self._name[number]

    def observation(self, value: Any, encode: Encoder | None) -> Any:
        """The symbol of an observation."""
        if encode is not None:
            return encode(value)
        return self.words[int(value)] if self.words is not None else symbol(value)
