"""Logs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from foretell import _native
from foretell._encoding import Encoded, Encoding
from foretell._extras import needed
from foretell._html import count, some, table

Path = str | os.PathLike[str]


class Logs(Encoded):
    """Episodes to learn from: in files, which are read when needed, or in memory.

    `read`, `sample`, `record` and the functions whose names start with ``from_`` make them.

    Examples
    --------
    >>> import foretell as ft
    >>> logs = ft.from_numpy(
    ...     actions=["N", "E", "N"], observations=["wall", "open", "wall"], rewards=[0, 1, 0], episodes=[0, 0, 1]
    ... )
    >>> logs
    <foretell.Logs: 2 episodes, 3 steps, 2 actions, 2 observations>
    >>> logs.actions
    ['N', 'E']
    """

    def __init__(self, native: _native.Logs, encoding: Encoding = Encoding()) -> None:
        self._native = native
        self._encoding = encoding
        self._columns: dict[str, NDArray[Any]] | None = None
        self._summary: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self._native)

    @property
    def actions(self) -> list[str]:
        """Names of the actions, in order of first occurrence."""
        return self._native.actions

    @property
    def observations(self) -> list[str]:
        """Names of the observations, in order of first occurrence; ``[end]`` is appended to those
        that end an episode."""
        return self._native.observations

    def summary(self) -> dict[str, Any]:
        """Summary of the logs, with possible problems.

        Returns
        -------
        dict
            Counts of episodes, steps, actions and observations, lengths, rewards, and ``findings``
            as sentences: the same as the JSON output of the command ``foretell inspect``.

        Examples
        --------
        >>> import foretell as ft
        >>> ft.sample("tiger", episodes=10, seed=1).summary()["episodes"]
        10
        """
        if self._summary is None:
            self._summary = self._native.summary()
        return self._summary

    def to_numpy(self) -> dict[str, NDArray[Any]]:
        """The logs as columns, one row for each step.

        Returns
        -------
        dict of arrays
            ``episode_id``, ``step``, ``action`` and ``observation`` (as numbers, in the order of
            `actions` and `observations`; −1 for a missing observation), ``reward`` and ``action_prob`` (NaN where missing),
            ``terminated`` and ``truncated``.

        Examples
        --------
        >>> import foretell as ft
        >>> columns = ft.sample("tiger", episodes=2, max_steps=3, seed=1).to_numpy()
        >>> columns["episode_id"]
        array([0, 0, 0, 1, 1, 1])
        """
        if self._columns is None:
            self._columns = self._native.columns()
            for column in self._columns.values():
                column.setflags(write=False)  # the array is shared
        return dict(self._columns)

    def to_pandas(self) -> Any:
        """The logs as a pandas DataFrame, with names in place of numbers. Needs pandas.

        Examples
        --------
        >>> import foretell as ft
        >>> frame = ft.sample("tiger", episodes=2, max_steps=3, seed=1).to_pandas()
        >>> frame[["episode_id", "step", "action", "observation"]].head(2)
           episode_id  step      action  observation
        0           0     0  open-right   growl-left
        1           0     1   open-left  growl-right
        """
        pandas = needed("pandas", "Logs.to_pandas")

        columns = {name: column.copy() for name, column in self.to_numpy().items()}
        # The last entry, which has the index −1, stands for a missing observation.
        names = np.array([*(name.removesuffix(" [end]") for name in self.observations), None], dtype=object)
        columns["action"] = np.array(self.actions, dtype=object)[columns["action"]]
        columns["observation"] = names[columns["observation"]]
        if np.isnan(columns["action_prob"]).all():
            del columns["action_prob"]
        return pandas.DataFrame(columns)

    def take(self, episodes: Iterable[int] | NDArray[np.integer[Any]]) -> Logs:
        """Some of the episodes, by index or by a boolean mask; they are held in memory.

        Examples
        --------
        >>> import foretell as ft
        >>> logs = ft.sample("tiger", episodes=10, seed=1)
        >>> len(logs.take([0, 3, 4]))
        3
        """
        numbers = np.asarray(episodes if isinstance(episodes, np.ndarray) else list(episodes))
        if numbers.dtype == bool:
            if len(numbers) != len(self):
                raise ValueError(f"the mask has length {len(numbers)}, but there are {count(len(self), 'episode')}")
            numbers = np.flatnonzero(numbers)
        return Logs(self._native.take(numbers.astype(np.int64)), self._encoding)

    def split(self, share: float = 0.8, *, seed: int = 0) -> tuple[Logs, Logs]:
        """Splits the episodes at random into two parts: one for training and one for testing.

        Parameters
        ----------
        share : float
            Fraction of the episodes in the first part.
        seed : int
            Seed of the split.

        Examples
        --------
        >>> import foretell as ft
        >>> training, test = ft.sample("tiger", episodes=10, seed=1).split(0.7)
        >>> len(training), len(test)
        (7, 3)
        """
        if not 0 < share < 1:
            raise ValueError(f"share = {share}: must be between 0 and 1")
        order = np.random.default_rng(seed).permutation(len(self))
        first = round(share * len(self))
        return self.take(np.sort(order[:first])), self.take(np.sort(order[first:]))

    def write(self, path: Path) -> None:
        """Writes the logs to a file; its extension selects CSV, JSON Lines or Parquet (the first
        two also ``.gz``).

        Examples
        --------
        >>> import foretell as ft
        >>> ft.sample("tiger", episodes=5, seed=1).write("walks.parquet")
        """
        self._native.write(os.fspath(path))

    def __add__(self, other: Logs) -> Logs:
        """These episodes followed by those of others; all are held in memory.

        Examples
        --------
        >>> import foretell as ft
        >>> len(ft.sample("tiger", episodes=10, seed=1) + ft.sample("tiger", episodes=5, seed=2))
        15
        """
        if not isinstance(other, Logs):
            return NotImplemented
        return Logs(self._native.joined([other._native]), self._encoding.joined(other._encoding))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.to_numpy(), self.actions, self.observations, self._encoding)

    @overload
    def __getitem__(self, which: int) -> list[tuple[str, str | None, float | None]]: ...
    @overload
    def __getitem__(self, which: slice) -> Logs: ...
    def __getitem__(self, which: int | slice) -> list[tuple[str, str | None, float | None]] | Logs:
        """One episode, as a list of (action, observation, reward); or the logs of several.

        Examples
        --------
        >>> import foretell as ft
        >>> logs = ft.sample("tiger", episodes=10, max_steps=5, seed=1)
        >>> len(logs[0]), len(logs[:4])
        (5, 4)
        """
        if isinstance(which, slice):
            return self.take(range(*which.indices(len(self))))
        number = range(len(self))[which]
        return next(iter(self.take([number])))

    def __iter__(self) -> Iterator[list[tuple[str, str | None, float | None]]]:
        """Episodes as lists of (action, observation, reward); None where one is missing."""
        columns = self.to_numpy()
        actions, observations = self.actions, [*self.observations, None]
        bounds = np.searchsorted(columns["episode_id"], np.arange(len(self) + 1))
        for start, end in zip(bounds, bounds[1:]):
            rows = zip(columns["action"][start:end], columns["observation"][start:end], columns["reward"][start:end])
            yield [(actions[a], observations[o], None if np.isnan(r) else float(r)) for a, o, r in rows]

    def __repr__(self) -> str:
        s = self.summary()
        parts = [
            count(s["episodes"], "episode"),
            count(s["steps"], "step"),
            count(len(s["actions"]), "action"),
            count(len(s["observations"]), "observation"),
        ]
        return f"<foretell.Logs: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        s = self.summary()
        rows: Sequence[tuple[str, object]] = [
            ("episodes", f"{s['episodes']:,}"),
            ("steps", f"{s['steps']:,}"),
            ("actions", some([a["name"] for a in s["actions"]])),
            ("observations", f"{len(s['observations']):,}"),
            ("terminated", f"{s['terminated']:.1%}"),
            ("mean reward", "none" if s["rewards"]["mean"] is None else f"{s['rewards']['mean']:.4g}"),
        ]
        return table("Logs", rows, s["findings"])


def _restored(columns: dict[str, NDArray[Any]], actions: list[str], observations: list[str], encoding: Encoding) -> Logs:
    names = np.array([*(name.removesuffix(" [end]") for name in observations), None], dtype=object)
    known = {name: column for name, column in columns.items() if name != "action_prob" or not np.isnan(column).any()}
    known["action"] = np.array(actions, dtype=object)[columns["action"]].tolist()
    known["observation"] = names[columns["observation"]].tolist()
    return Logs(_native.Logs.from_columns(known, False, '{"missing": []}').with_actions(actions), encoding)
