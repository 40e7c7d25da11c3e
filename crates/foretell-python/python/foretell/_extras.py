"""Optional packages."""

from __future__ import annotations

import importlib
from typing import Any

# The extra that installs a module.
EXTRAS = {"gymnasium": "gymnasium", "matplotlib": "plot", "minari": "minari", "sklearn": "sklearn", "tqdm": "progress"}


def needed(package: str, what: str) -> Any:
    """A package, or an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or not package.startswith(error.name):
            raise
        raise missing(package, what) from None


def missing(package: str, what: str) -> ModuleNotFoundError:
    """The error for a missing package."""
    module = package.split(".")[0]
    name = {"sklearn": "scikit-learn"}.get(module, module)
    installed_by = f"'foretell[{EXTRAS[module]}]'" if module in EXTRAS else name
    return ModuleNotFoundError(f"{what} needs {name}: pip install {installed_by}", name=package)
