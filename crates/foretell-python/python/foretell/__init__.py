"""Learn a predictive model of a partially observable system from logs, and plan with it.

Logs are tables of episodes: one row for each step, with the action that was taken and the observation that answered it. From them
foretell learns what will be observed if something is done, and what to do.

>>> import foretell as ft
>>> logs = ft.sample("tiger", episodes=500, seed=1)
>>> model = ft.learn(logs, refine=True)
>>> prediction = model.predict(history=[("listen", "growl-left")], action="listen")
>>> prediction["growl-left"] > prediction["growl-right"]
True
>>> policy = ft.plan(model, logs)
>>> policy.start().action
'listen'
"""

import importlib
from types import ModuleType

from foretell._native import __version__
from foretell._data import from_arrow, from_hmmlearn, from_minari, from_numpy, from_pandas, read, to_minari
from foretell._domain import Domain, Simulator, domains
from foretell._files import load
from foretell._learning import diagnose, learn, merge, refine, score, search, update
from foretell._logs import Logs
from foretell._model import Filter, Model
from foretell._planning import evaluate, plan, sample, solve
from foretell._policy import Policy, Run
from foretell._results import Estimate, LogValue, Returns, Score, Solution

__all__ = [
    "Domain",
    "Estimate",
    "Filter",
    "LogValue",
    "Logs",
    "Model",
    "Policy",
    "Returns",
    "Run",
    "Score",
    "Simulator",
    "Solution",
    "__version__",
    "diagnose",
    "domains",
    "evaluate",
    "from_arrow",
    "from_hmmlearn",
    "from_minari",
    "from_numpy",
    "from_pandas",
    "learn",
    "load",
    "merge",
    "plan",
    "read",
    "refine",
    "sample",
    "score",
    "search",
    "solve",
    "to_minari",
    "update",
]

# What needs more than NumPy, or is rarely needed: imported when it is first asked for.
_LATER = ("discretise", "gymnasium", "plot", "sklearn")


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return importlib.import_module(f"foretell.{name}")
    raise AttributeError(f"module 'foretell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LATER])
