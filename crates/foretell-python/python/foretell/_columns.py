"""What the columns of tables mean, as keywords."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

Names = str | Sequence[str] | None
"""One column, several, or ``"none"`` for no column."""


class Columns(TypedDict, total=False):
    """Keywords of `read`, `from_pandas` and `from_arrow`: which columns are read as what. A role
    that is not mentioned is recognised by the usual names.

    Examples
    --------
    >>> import foretell as ft
    >>> import pandas
    >>> frame = pandas.DataFrame({"user": ["ann", "ann", "bob"], "skill": ["add", "sub", "add"], "correct": [1, 0, 1]})
    >>> logs = ft.from_pandas(frame, episode="user", action="skill", observation="correct")
    >>> logs.actions, logs.observations
    (['add', 'sub'], ['1', '0'])
    """

    episode: Names
    """Columns whose values together name an episode."""
    group: Names
    """Column whose episodes stay together when some are held out."""
    step: Names
    """Column with the number of the step, which must go up by 1."""
    sort: Names
    """Columns by which the rows of an episode are sorted; ``"row"`` for their order in the table."""
    action: Names
    """Columns that make the action; ``"none"`` for a system that is only observed."""
    observation: Names
    """Columns that make the observation."""
    reward: Names
    """Column of the reward."""
    terminated: Names
    """Column that is true in the last row of an episode that ended by itself."""
    truncated: Names
    """Column that is true in the last row of an episode that was cut off."""
    action_prob: Names
    """Column with the probability of the action under the behaviour policy."""
    action_logp: Names
    """Column with the natural logarithm of that probability."""
    available: Names
    """Which actions could be taken: a column that lists them with ``;`` between them, or is 0 where
    only the action taken could; or columns ``available_NAME``, one for each action, that are 1 where
    it could."""
    elapsed: Names
    """Column of a time: how long it took since the row before becomes part of the action."""
    elapsed_bins: Sequence[str]
    """Where elapsed times are cut, such as ``["3m", "1y"]``."""
    shift_observation: bool
    """Whether the observation of a row was seen before its action, not after it."""
    wide: Names
    """Patterns of columns whose values are the observations of an episode: a row is an episode."""
    bins: Mapping[str, str | int]
    """How measured columns are divided, such as ``{"quality": 4, "speed": "kmeans:8"}``."""
    missing: Sequence[str]
    """Texts that stand for a missing value; an empty cell always does."""


def schema(columns: Columns) -> str:
    """The keywords as the native module expects them."""
    unknown = set(columns) - set(Columns.__annotations__)
    if unknown:
        raise TypeError(f"unexpected keyword argument {sorted(unknown)[0]!r}; columns are given by {', '.join(Columns.__annotations__)}")
    given: dict[str, Any] = {name: value for name, value in columns.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, Mapping):
            given[name] = {str(key): str(of) for key, of in value.items()}
        elif not isinstance(value, str | bool):
            given[name] = [str(part) for part in value]
    return json.dumps(given)
