"""Policies, and their state during an episode."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretell import _native
from foretell._encoding import Encoded, Encoding
from foretell._html import count, some, table
from foretell._logs import Path
from foretell._model import Model, Symbol
from foretell._results import PlanChoice


class Policy(Encoded):
    """A policy, which chooses actions; `plan` makes one.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=2000, seed=1)
    >>> policy = ft.plan(ft.learn(logs, refine=True), logs, discount=0.95)
    >>> run = policy.start()
    >>> run.action
    'listen'
    >>> run.observe("growl-left")
    >>> run.observe("growl-left")
    >>> run.action
    'open-right'
    """

    def __init__(self, native: _native.Policy) -> None:
        self._native = native
        self._encoding = Encoding.loads(native.encoding)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Reads a policy that `save`, ``foretell plan`` or ``foretell agent`` wrote.

        Examples
        --------
        >>> import foretell as ft
        >>> logs = ft.sample("tiger", episodes=500, seed=1)
        >>> ft.plan(ft.learn(logs, refine=True, observe_reward=True), logs, discount=0.95).save("policy.safetensors")
        >>> ft.Policy.load("policy.safetensors")
        <foretell.Policy: by point-based, 3 actions>
        """
        return cls(_native.Policy.load(os.fspath(path)))

    def save(self, path: Path) -> None:
        """Writes the policy to a file, for Python, Rust and the command line."""
        self._native.save(os.fspath(path))

    @property
    def actions(self) -> list[str]:
        """Names of the actions."""
        return self._native.actions

    @property
    def observations(self) -> list[str]:
        """Names of the observations seen in training."""
        return self._native.observations

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of planning, with automatic choices resolved."""
        return self._native.params

    @property
    def choice(self) -> PlanChoice | None:
        """The ways to plan that were compared on the logs; None if nothing was compared, or if the
        policy was read from a file.

        Examples
        --------
        >>> import foretell as ft
        >>> logs = ft.sample("tiger", episodes=500, seed=1)
        >>> policy = ft.plan(ft.learn(logs, refine=True, observe_reward=True), logs, discount=0.95)
        >>> policy.choice.chosen.name
        'point-based planning'
        >>> policy.choice.chosen.value > policy.choice.logged.value
        True
        """
        choice = self._native.choice
        return None if choice is None else PlanChoice._of(choice)

    @property
    def model(self) -> Model | None:
        """The model that tracks its state, if it has one."""
        native = self._native.model
        return None if native is None else Model(native)

    def start(self, shown: Symbol | None = None) -> Run:
        """The policy at the start of an episode.

        Parameters
        ----------
        shown : str, int or tuple, optional
            The observation before the first action: required if the policy was planned with
            Gymnasium logs.
        """
        run = Run(self._native.start(), self.actions, self._encoding)
        run._begin(shown)
        return run

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._native.to_bytes(),)

    def __repr__(self) -> str:
        return f"<foretell.Policy: by {self.params['planner']}, {count(len(self.actions), 'action')}>"

    def _repr_html_(self) -> str:
        params = self.params
        rows: list[tuple[str, object]] = [
            ("planner", params["planner"]),
            ("discount", params["discount"]),
            ("actions", some(self.actions)),
            ("observations", f"{len(self.observations):,}"),
            ("model", "none" if self.model is None else repr(self.model)),
        ]
        return table("Policy", rows)


def _restored(data: bytes) -> Policy:
    return Policy(_native.Policy.from_bytes(data))


class Run:
    """A policy during an episode; `Policy.start` makes one.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.sample("tiger", episodes=2000, seed=1)
    >>> run = ft.plan(ft.learn(logs, refine=True), logs, discount=0.95).start()
    >>> run.action
    'listen'
    >>> run.observe("growl-left")
    >>> max(run.values, key=run.values.get)
    'listen'
    >>> run.observe("growl-left", action="open-left")  # another action was taken
    >>> run.action
    'listen'
    >>> run.reset()
    """

    def __init__(self, native: _native.Run, actions: list[str], encoding: Encoding = Encoding()) -> None:
        self._native = native
        self._actions = actions
        self._encoding = encoding

    @property
    def action(self) -> str:
        """The best action now."""
        return self._actions[self._native.best]

    def best(self, available: Iterable[Symbol] | None = None) -> str:
        """The best action now, among those that are available; all by default.

        Examples
        --------
        >>> import foretell as ft
        >>> logs = ft.sample("tiger", episodes=500, seed=1)
        >>> run = ft.plan(ft.learn(logs, refine=True), logs, discount=0.95).start()
        >>> run.best(["open-left"])
        'open-left'
        """
        if available is None:
            return self.action
        if isinstance(available, str):
            raise TypeError(f"available = {available!r}: give a list of actions")
        return self._actions[self._native.best_among(list(available))]

    @property
    def values(self) -> dict[str, float]:
        """Estimated value of every action: the discounted return from here on."""
        return dict(zip(self._actions, map(float, self._native.values)))

    @property
    def state(self) -> NDArray[np.float64]:
        """The state of the policy."""
        return self._native.state_vector

    def observe(
        self,
        observation: Symbol,
        *,
        action: Symbol | None = None,
        reward: float | None = None,
        terminated: bool = False,
    ) -> None:
        """Updates the state with the observation that followed the action.

        Parameters
        ----------
        observation : str, int or tuple
            The observation.
        action : str, int or tuple, optional
            The action taken, if not `action`.
        reward : float, optional
            The reward, for policies whose observations include it.
        terminated : bool
            Whether the episode ended.
        """
        done = self.action if action is None else action
        observed = self._encoding.encoded(observation)
        self._native.observe(done, observed, terminated=terminated, reward=reward)

    def reset(self, shown: Symbol | None = None) -> None:
        """Starts an episode, with the observation before the first action, if there is one."""
        self._native.reset()
        self._begin(shown)

    def _begin(self, shown: Symbol | None) -> None:
        first = self._encoding.first_action
        if first is None and shown is None:
            return
        if first is None:
            raise ValueError("shown: episodes of its logs start with an action, without an observation before it; leave shown out")
        if shown is None:
            raise ValueError("episodes of its logs start with an observation before the first action; give it as shown=")
        self.observe(shown, action=first, reward=0.0)

    def __copy__(self) -> Run:
        raise TypeError("a run cannot be copied; start another one with Policy.start")

    def __deepcopy__(self, memo: dict[int, Any]) -> Run:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<foretell.Run: would take {self.action!r}>"
