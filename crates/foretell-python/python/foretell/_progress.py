"""Progress of long calls: tqdm bars, if tqdm is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Progress = Callable[[str, int, int | None], None]


class Bars:
    """One bar for each stage of the work."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._what: str | None = None
        self._bar: Any = None

    def __call__(self, what: str, done: int, of: int | None) -> None:
        if what != self._what:
            self.close()
            self._what, self._bar = what, self._tqdm(desc=what, total=of, leave=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class progress:
    """Where progress is reported: nowhere, to tqdm if it is installed and the output is watched, or
    to the caller's function."""

    def __init__(self, wanted: bool | Progress | None) -> None:
        self._bars: Bars | None = None
        self._tell: Progress | None = wanted if callable(wanted) else None
        watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
        if wanted is True or (wanted is None and watched):
            try:
                from tqdm.auto import tqdm
            except ImportError:
                if wanted is True:
                    raise ImportError("progress=True needs tqdm: pip install 'foretell[progress]', or give a function") from None
            else:
                self._bars = self._tell = Bars(tqdm)

    def __enter__(self) -> Progress | None:
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.close()
