"""Learn a predictive model of a partially observable system from logs, and plan with it.

Logs are tables of episodes: one row for each step, with the action taken and the observation that
followed. From them foretell learns to predict observations, given actions, and plans which actions
to take.

>>> import foretell as ft
>>> logs = ft.sample("tiger", episodes=500, seed=1)
>>> model = ft.learn(logs)
>>> prediction = model.predict(history=[("listen", "growl-left")], action="listen")
>>> prediction["growl-left"] > prediction["growl-right"]
True
>>> policy = ft.plan(model, logs)
>>> policy.start().action
'listen'
"""

import importlib
from typing import TYPE_CHECKING, Any

from foretell._native import __version__
from foretell._columns import Columns
from foretell._data import from_arrow, from_hmmlearn, from_minari, from_numpy, from_pandas, read, to_minari
from foretell._domain import Domain, Simulator, domains
from foretell._extras import EXTRAS, missing
from foretell._files import load
from foretell._learning import diagnose, learn, merge, refine, score, search, update
from foretell._logs import Logs
from foretell._model import Filter, Model
from foretell._planning import agent, evaluate, plan, sample, solve
from foretell._policy import Policy, Run
from foretell._results import Against, CalibrationBin, Comparison, Estimate, Found, HorizonScore, Judged, LearnedFrom, LogValue, PlanChoice, Returns, Score, Solution, Trained, Tried
from foretell._selection import Candidate, Member, Selection

if TYPE_CHECKING:
    from foretell import discretise as discretise, gymnasium as gymnasium, plot as plot, sklearn as sklearn
    from foretell.gymnasium import record as record

__all__ = [
    "Against",
    "CalibrationBin",
    "Candidate",
    "Columns",
    "Comparison",
    "Domain",
    "Estimate",
    "Filter",
    "Found",
    "HorizonScore",
    "Judged",
    "LearnedFrom",
    "LogValue",
    "Logs",
    "Member",
    "Model",
    "PlanChoice",
    "Policy",
    "Returns",
    "Run",
    "Score",
    "Selection",
    "Simulator",
    "Solution",
    "Trained",
    "Tried",
    "__version__",
    "agent",
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

# Parts that need more than NumPy or are rarely used: imported on first use. A name stands for a module, or for a member of the module given.
_LATER = {"discretise": None, "gymnasium": None, "plot": None, "sklearn": None, "record": "gymnasium"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'foretell' has no attribute {name!r}")
    module = _LATER[name] or name
    try:
        found = importlib.import_module(f"foretell.{module}")
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in EXTRAS:
            raise
        raise missing(package, f"foretell.{name}") from None
    return found if module == name else getattr(found, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_LATER])
