"""Simulated systems to act in."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from foretell import _native
from foretell._html import count


class Domain:
    """A simulated system: one of `domains`, a ``.POMDP`` file in Cassandra's format, or the map of
    a maze in a text file.

    Examples
    --------
    >>> import foretell as ft
    >>> tiger = ft.Domain("tiger")
    >>> tiger.actions
    ['listen', 'open-left', 'open-right']
    >>> "actions: listen open-left open-right" in tiger.pomdp()
    True
    >>> tiger.simulator(seed=1).picture()
    'tiger-right'
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self._given = os.fspath(name)
        self._native = _native.Domain(self._given)

    @property
    def name(self) -> str:
        """The name, as given."""
        return self._native.name

    @property
    def story(self) -> str:
        """A short description."""
        return self._native.story

    @property
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""
        return self._native.horizon

    @property
    def discount(self) -> float:
        """Discount γ."""
        return self._native.discount

    @property
    def actions(self) -> list[str]:
        """Names of the actions."""
        return self._native.actions

    @property
    def observations(self) -> list[str]:
        """Names of the observations; ``[end]`` is appended to those that end an episode."""
        return self._native.observations

    @property
    def states(self) -> int | None:
        """Number of states of the exact model; None if there is none."""
        return self._native.states

    def pomdp(self) -> str | None:
        """The exact model in Cassandra's format; None if there is none."""
        return self._native.pomdp()

    def tables(self) -> dict[str, NDArray[Any]] | None:
        """The exact model as arrays, as in `Model.tables`; None if there is none."""
        return self._native.tables()

    def simulator(self, *, seed: int = 0) -> Simulator:
        """A simulator at the start of an episode."""
        return Simulator(self, seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return Domain, (self._given,)

    def __repr__(self) -> str:
        sizes = f"{count(len(self.actions), 'action')}, {count(len(self.observations), 'observation')}"
        return f"<foretell.Domain {self.name}: {sizes}>"


class Simulator:
    """A running domain; `Domain.simulator` makes one.

    Examples
    --------
    >>> import foretell as ft
    >>> tiger = ft.Domain("tiger").simulator(seed=1)
    >>> observation, reward, terminated = tiger.step("listen")
    >>> observation, reward, terminated
    ('growl-right', -1.0, False)
    >>> tiger.picture()
    'tiger-right'
    >>> tiger.reset(seed=2)
    """

    def __init__(self, domain: Domain, seed: int = 0) -> None:
        self.domain = domain
        self._native = domain._native.environment(seed)
        self._actions = {name: i for i, name in enumerate(domain.actions)}
        self._observations = [name.removesuffix(" [end]") for name in domain.observations]
        self._terminal = domain._native.terminal

    def reset(self, *, seed: int | None = None) -> None:
        """Starts an episode; with a seed, always the same one."""
        self._native.reset(seed)

    def step(self, action: str) -> tuple[str, float, bool]:
        """Takes an action; returns the observation, the reward, and whether the episode ended."""
        if action not in self._actions:
            raise ValueError(f"action {action!r} is not known; known: {', '.join(self._actions)}")
        observation, reward = self._native.step(self._actions[action])
        return self._observations[observation], reward, self._terminal[observation]

    def picture(self) -> str:
        """The hidden state as a drawing or a name, if the domain has one."""
        return self._native.picture()


def domains() -> list[Domain]:
    """The built-in domains.

    Examples
    --------
    >>> import foretell as ft
    >>> [domain.name for domain in ft.domains()][:2]
    ['gridworld', 'colored-gridworld']
    """
    return [Domain(name) for name, _ in _native.built_in()]
