"""Logs from files, arrays and tables."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretell import _native
from foretell._columns import Columns, schema
from foretell._encoding import Encoding
from foretell._extras import needed
from foretell._logs import Logs, Path

if TYPE_CHECKING:
    from foretell.discretise import Discretiser


def read(*paths: Path, skip_bad_episodes: bool = False, **columns: Unpack[Columns]) -> Logs:
    """Logs in files: CSV, JSON Lines or Parquet, the first two also ``.gz``.

    Parameters
    ----------
    *paths : str or path
        Files; a folder stands for all logs in it, a pattern such as ``logs/*.parquet`` for all
        matching files.
    skip_bad_episodes : bool
        Skip and count episodes with a bad row, instead of raising an error.
    **columns
        What the columns mean, if their names do not tell it: see `Columns`.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.sample("tiger", episodes=5, seed=1).write("walks.csv")
    >>> len(ft.read("walks.csv"))
    5
    """
    if not paths:
        raise ValueError("no logs were given; name at least one file, folder or pattern")
    files = [file for path in paths for file in _native.expanded(os.fspath(path))]
    native = _native.Logs.from_files(files, skip_bad_episodes, schema(columns))
    for sentence in native.guessed:
        warnings.warn(f"read as {sentence}", stacklevel=2)
    return Logs(native)


def _column(values: ArrayLike) -> Any:
    """A column as the native module expects it."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and array.dtype != np.uint64:
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=np.float64)
    return array if array.dtype.kind == "b" else array.tolist()


def _symbols(values: ArrayLike) -> Any:
    """Names or numbers; the entries of a vector form one symbol."""
    array = np.asarray(values)
    if array.ndim < 2:
        return _column(array)
    return [tuple(row) for row in array.reshape(len(array), -1).tolist()]


def _observed(values: ArrayLike, divided: bool) -> dict[str, Any]:
    """Observations as columns: numbers that are divided, or not whole, are measured, each in a column of its own."""
    array = np.asarray(values)
    is_whole = array.dtype.kind != "f" or np.array_equal(array, np.round(array), equal_nan=True)
    if array.ndim < 2 or (is_whole and not divided):
        return {"observation": _symbols(array)}
    rows = array.reshape(len(array), -1)
    return {f"observation_{i}": _column(column) for i, column in enumerate(rows.T)}


def from_numpy(
    actions: ArrayLike,
    observations: ArrayLike,
    rewards: ArrayLike | None = None,
    *,
    episodes: ArrayLike | None = None,
    terminated: ArrayLike | None = None,
    truncated: ArrayLike | None = None,
    action_probabilities: ArrayLike | None = None,
    discretiser: Discretiser | None = None,
    bins: int | str | Sequence[int | str] | None = None,
    skip_bad_episodes: bool = False,
) -> Logs:
    """Logs from arrays with one entry for each step.

    Parameters
    ----------
    actions : array of names or whole numbers
        The actions; in an array with two dimensions, the entries of a row form one symbol.
    observations : array of names or whole numbers
        The observations that followed, in the same form; or measurements, which are divided into as
        many cells as predict best, unless a discretiser is given. NaN is missing.
    rewards : array, optional
        The rewards; NaN for a missing one.
    episodes : array, optional
        The episode of each step; steps of an episode are contiguous. Without it, ``terminated`` and
        ``truncated`` divide the steps.
    terminated, truncated : array of bool, optional
        True in the last step of an episode that terminated or was truncated.
    action_probabilities : array, optional
        Probability of the action under the behaviour policy.
    discretiser : Discretiser, optional
        Maps measurements to symbols, see `foretell.discretise`. It is fitted on them if it is not
        fitted yet. Models that are learned from these logs keep it.
    bins : int, str or sequence of them, optional
        How measurements are divided into cells, such as ``4``, ``"uniform:8"`` or ``"auto"``: in the
        same way for all, or one for each. Models that are learned from these logs keep the cells.
    skip_bad_episodes : bool
        Skip episodes with a bad row, instead of raising an error.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.from_numpy(actions=[0, 1, 0], observations=[[0, 1], [1, 1], [0, 1]], episodes=[0, 0, 1])
    <foretell.Logs: 2 episodes, 3 steps, 2 actions, 2 observations>
    """
    if discretiser is not None:
        if not hasattr(discretiser, "columns"):
            discretiser.fit(observations)
        observations = discretiser.transform(observations)
    if bins is not None and discretiser is not None:
        raise ValueError("give bins or a discretiser, not both")
    columns = {"action": _symbols(actions), **_observed(observations, bins is not None)}
    schema = _divided([name for name in columns if name.startswith("observation")], bins)
    others = {
        "episode_id": episodes,
        "reward": rewards,
        "terminated": terminated,
        "truncated": truncated,
        "action_prob": action_probabilities,
    }
    columns |= {name: _column(values) for name, values in others.items() if values is not None}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"arrays have different lengths: {', '.join(f'{name} {n}' for name, n in lengths.items())}")
    return Logs(_native.Logs.from_columns(columns, skip_bad_episodes, schema), Encoding.of(discretiser))


def _divided(names: list[str], bins: int | str | Sequence[int | str] | None) -> str:
    """The schema of columns that are divided into bins."""
    if bins is None:
        return "{}"
    each = [bins] * len(names) if isinstance(bins, int | str) else list(bins)
    if len(each) != len(names):
        raise ValueError(f"bins has {len(each)} entries, but there are {len(names)} measurements; give one for each")
    return json.dumps({"bins": {name: str(of) for name, of in zip(names, each)}})


def from_arrow(table: Any, *, skip_bad_episodes: bool = False, **columns: Unpack[Columns]) -> Logs:
    """Logs from a table of pyarrow, Polars, DuckDB or any other library with the Arrow interface,
    without copying its columns.

    Parameters
    ----------
    table : object with ``__arrow_c_stream__``
        A table with the same column names as in files.
    skip_bad_episodes : bool
        Skip episodes with a bad row, instead of raising an error.
    **columns
        What the columns mean, if their names do not tell it: see `Columns`.

    Examples
    --------
    >>> import foretell as ft
    >>> import polars
    >>> table = polars.DataFrame({"episode_id": [0, 0, 1], "action": ["N", "E", "N"], "observation": ["wall", "open", "wall"]})
    >>> ft.from_arrow(table)
    <foretell.Logs: 2 episodes, 3 steps, 2 actions, 2 observations>
    """
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(f"{type(table).__name__} has no Arrow interface (__arrow_c_stream__); try from_pandas or from_numpy")
    return Logs(_native.Logs.from_arrow(table, skip_bad_episodes, schema(columns)))


def from_pandas(frame: Any, *, skip_bad_episodes: bool = False, **columns: Unpack[Columns]) -> Logs:
    """Logs from a pandas DataFrame.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table with the same column names as in files: ``action`` and ``observation``; optionally
        ``episode_id``, ``step``, ``reward``, ``terminated``, ``truncated`` and ``action_prob``.
        Other columns are ignored.
    skip_bad_episodes : bool
        Skip episodes with a bad row, instead of raising an error.
    **columns
        What the columns mean, if their names do not tell it: see `Columns`.

    Examples
    --------
    >>> import foretell as ft
    >>> import pandas
    >>> frame = pandas.DataFrame({"episode_id": [0, 0, 1], "action": ["N", "E", "N"], "observation": ["wall", "open", "wall"]})
    >>> ft.from_pandas(frame)
    <foretell.Logs: 2 episodes, 3 steps, 2 actions, 2 observations>
    """
    if not hasattr(frame, "isna") and hasattr(frame, "__arrow_c_stream__"):
        return from_arrow(frame, skip_bad_episodes=skip_bad_episodes, **columns)
    given, table = schema(columns), dict[str, Any]()
    unused = set(_native.unused_columns([str(name) for name in frame.columns], given))
    for name in frame.columns:
        values = frame[name]
        if str(name) in unused:
            table[str(name)] = [None] * len(frame)  # `Logs.summary` reports it; its contents do not matter
        elif str(values.dtype) in ("object", "string", "str", "category"):
            table[str(name)] = [None if missing else value for value, missing in zip(values, values.isna())]
        elif values.dtype.kind in "mM":
            table[str(name)] = [None if missing else str(value) for value, missing in zip(values, values.isna())]
        else:
            plain = values.to_numpy(dtype=np.float64, na_value=np.nan) if values.isna().any() else values.to_numpy()
            table[str(name)] = _column(plain)
    return Logs(_native.Logs.from_columns(table, skip_bad_episodes, given))


def from_hmmlearn(X: ArrayLike, lengths: Sequence[int] | None = None, *, action: str = "wait") -> Logs:
    """Logs from sequences in the format of hmmlearn: observations of a system without actions.

    Parameters
    ----------
    X : array of shape (steps, 1) or (steps, features)
        Symbols, one row for each step.
    lengths : sequence of int, optional
        Lengths of the sequences, which are concatenated in ``X``. By default ``X`` is one sequence.
    action : str
        The name of the only action.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.from_hmmlearn([[0], [1], [1], [0]], [3, 1])
    <foretell.Logs: 2 episodes, 4 steps, 1 action, 2 observations>
    """
    X = np.asarray(X)
    lengths = [len(X)] if lengths is None else list(lengths)
    if sum(lengths) != len(X):
        raise ValueError(f"lengths add up to {sum(lengths)}, but X has {len(X)} rows")
    episodes = np.repeat(np.arange(len(lengths)), lengths)
    observations = X[:, 0] if X.ndim == 2 and X.shape[1] == 1 else X
    return from_numpy([action] * len(X), observations, episodes=episodes)


def from_minari(dataset: Any, *, discretiser: Discretiser | None = None) -> Logs:
    """Logs from a Minari dataset, given by name or loaded; needs Minari.

    The observation before the first action is logged as if it followed the first action of the
    space, as in `record`. It is left out if it is always the same and never occurs later.
    Continuous observations need a discretiser.

    Parameters
    ----------
    dataset : str or minari.MinariDataset
        A dataset, or its name; a missing dataset is downloaded.
    discretiser : Discretiser, optional
        Maps observations to symbols, see `foretell.discretise`.

    Examples
    --------
    >>> import foretell as ft
    >>> dataset = ft.to_minari(ft.sample("tiger", episodes=10, max_steps=5, seed=1), "mine/tiger-v0")
    >>> ft.from_minari(dataset)
    <foretell.Logs: 10 episodes, 50 steps, 3 actions, 2 observations>
    """
    if isinstance(dataset, str):
        dataset = needed("minari", "from_minari").load_dataset(dataset, download=True)
    episodes = list(dataset.iterate_episodes())
    shown = [_stacked(episode.observations, len(episode.rewards) + 1) for episode in episodes]
    first = np.array([rows[0] for rows in shown])
    later = np.concatenate([rows[1:] for rows in shown])
    # An observation that is always the same and never occurs later carries no information.
    informative = (first != first[0]).any() or bool((later == first[0]).reshape(len(later), -1).all(axis=1).any())
    skipped = 0 if informative else 1
    parts: dict[str, list[NDArray[Any]]] = {}

    def add(name: str, values: Any, before: Any) -> None:
        parts.setdefault(name, []).append(np.asarray(values) if not informative else np.concatenate([[before], np.asarray(values)]))

    for i, (episode, rows) in enumerate(zip(episodes, shown)):
        steps = len(episode.rewards)
        actions = _stacked(episode.actions, steps)
        pretended = np.full_like(actions[0], getattr(dataset.action_space, "start", 0))
        add("episodes", np.full(steps, i), i)
        add("actions", actions, pretended)
        add("rewards", episode.rewards, 0.0)
        add("terminated", episode.terminations, False)
        add("truncated", episode.truncations, False)
        parts.setdefault("observations", []).append(rows[skipped:])
    columns: dict[str, Any] = {name: np.concatenate(values) for name, values in parts.items()}
    logs = from_numpy(**columns, discretiser=discretiser)
    return Logs(logs._native, Encoding(logs.discretiser, _native.name_of(pretended))) if informative else logs


def _stacked(values: Any, rows: int) -> NDArray[Any]:
    """Values of a space as an array with one row for each step; parts of dictionaries and tuples
    are concatenated."""
    if isinstance(values, dict):
        values = tuple(values[key] for key in sorted(values))
    if isinstance(values, tuple):
        return np.concatenate([_stacked(part, rows).reshape(rows, -1) for part in values], axis=1)
    return np.asarray(values)


def to_minari(logs: Logs, name: str, **metadata: Any) -> Any:
    """Writes logs as a Minari dataset; needs Minari.

    Actions and observations become integers, in the order of `Logs.actions` and
    `Logs.observations`. Minari requires an observation before the first action: the recorded one if
    the logs come from Gymnasium, otherwise an additional number.

    Parameters
    ----------
    logs : Logs
        The logs to write.
    name : str
        Name of the dataset, such as ``mine/walks-v0``.
    **metadata
        Passed on to Minari, such as ``description``.

    Returns
    -------
    minari.MinariDataset

    Examples
    --------
    >>> import foretell as ft
    >>> dataset = ft.to_minari(ft.sample("tiger", episodes=10, seed=1), "mine/walks-v0", description="Listening at doors.")
    >>> dataset.total_episodes
    10
    """
    minari = needed("minari", "to_minari")
    import gymnasium
    from minari.data_collector import EpisodeBuffer

    columns, beyond = logs.to_numpy(), len(logs.observations)
    bounds = np.searchsorted(columns["episode_id"], np.arange(len(logs) + 1))

    pretended = 0 if logs.first_action is None else 1

    def buffer(i: int) -> Any:
        rows = slice(bounds[i] + pretended, bounds[i + 1])
        shown = columns["observation"][bounds[i]].item() if pretended else beyond
        return EpisodeBuffer(
            id=i,
            observations=[shown, *columns["observation"][rows].tolist()],
            actions=columns["action"][rows].tolist(),
            rewards=np.nan_to_num(columns["reward"][rows]).tolist(),
            terminations=columns["terminated"][rows].tolist(),
            truncations=columns["truncated"][rows].tolist(),
        )

    return minari.create_dataset_from_buffers(
        dataset_id=name,
        buffer=[buffer(i) for i in range(len(logs))],
        action_space=gymnasium.spaces.Discrete(len(logs.actions)),
        observation_space=gymnasium.spaces.Discrete(beyond + 1),
        **metadata,
    )

