"""Files of models and policies."""

from __future__ import annotations

import os

from foretell import _native
from foretell._logs import Path
from foretell._model import Model
from foretell._policy import Policy


def load(path: Path) -> Model | Policy:
    """Reads a model or a policy, whichever the file contains.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.learn(ft.sample("tiger", episodes=100, seed=1), mix=0, rank=3).save("model.safetensors")
    >>> ft.load("model.safetensors")
    <foretell.Model: rank 3, 3 actions, 2 observations, learned from 100 episodes>
    """
    match _native.kind_of(os.fspath(path)):
        case "policy":
            return Policy.load(path)
        case _:
            return Model.load(path)
