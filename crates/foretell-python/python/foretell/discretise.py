"""Symbols for continuous measurements: cells of a grid, or clusters.

A discretiser is fitted on measurements and maps them to symbols. It describes the meaning of a
symbol as text, and returns the centre of its cell. A model can keep a discretiser
(`Model.with_discretiser`): it is saved with the model, and `Filter.update` and `Run.observe` then
accept measurements.

>>> import numpy as np
>>> import foretell as ft
>>> temperatures = np.array([[12.5], [14.0], [19.0], [25.5]])
>>> grid = ft.discretise.Uniform(bins=3).fit(temperatures)
>>> grid.transform(temperatures)
array(['0', '0', '1', '2'], dtype='<U1')
>>> grid.describe("1")
'16.83 ≤ x0 < 21.17'
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foretell import _native

__all__ = ["Discretiser", "KMeans", "Quantile", "Uniform", "from_dict"]

SEPARATOR = "|"
END = " [end]"


def _rows(X: ArrayLike) -> NDArray[np.float64]:
    """Measurements as rows."""
    array = np.asarray(X, dtype=np.float64)
    if array.ndim == 0:
        array = array.reshape(1, 1)
    elif array.ndim == 1:
        array = array.reshape(-1, 1)
    else:
        array = array.reshape(len(array), -1)
    return array


class Discretiser(ABC):
    """The interface of all discretisers.

    Examples
    --------
    >>> import foretell as ft
    >>> grid = ft.discretise.Quantile(bins=2)
    >>> grid.fit_transform([[1.0], [2.0], [9.0], [10.0]], columns=["depth"])
    array(['0', '0', '1', '1'], dtype='<U1')
    >>> grid([8.0]), grid.describe("1"), grid.inverse("1")
    ('1', '6 ≤ depth', array([8.]))
    """

    columns: list[str]
    """Names of the measurements."""

    @abstractmethod
    def fit(self, X: ArrayLike, y: None = None, *, columns: Sequence[str] | None = None) -> Self:
        """Chooses cells for measurements, one row each; ``columns`` names them, by default as in a
        DataFrame. ``y`` is ignored."""

    @abstractmethod
    def transform(self, X: ArrayLike) -> NDArray[np.str_]:
        """The symbol of each row; NaN has a cell of its own, ``?``."""

    @abstractmethod
    def inverse(self, symbol: str) -> NDArray[np.float64]:
        """The centre of a cell."""

    @abstractmethod
    def describe(self, symbol: str) -> str:
        """The meaning of a symbol, as text."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A dictionary for `from_dict`."""

    def fit_transform(self, X: ArrayLike, y: None = None, *, columns: Sequence[str] | None = None) -> NDArray[np.str_]:
        """`fit`, then `transform`."""
        return self.fit(X, columns=columns).transform(X)

    def __call__(self, measurement: ArrayLike) -> str:
        """The symbol of one measurement, for ``encode=`` of `foretell.gymnasium.record`."""
        return str(self.transform(np.asarray(measurement, dtype=np.float64).reshape(1, -1))[0])

    def _named(self, X: ArrayLike, columns: Sequence[str] | None) -> NDArray[np.float64]:
        """Measurements as rows; stores their names."""
        rows = _rows(X)
        given = getattr(X, "columns", None) if columns is None else columns
        names = [f"x{i}" for i in range(rows.shape[1])] if given is None else [str(name) for name in given]
        if len(names) != rows.shape[1]:
            raise ValueError(f"columns has {len(names)} names for {rows.shape[1]} measurements; give one name for each")
        if not len(rows):
            raise ValueError("X has no rows to fit on; give at least one measurement")
        self.columns = names
        return rows

    def _checked(self, X: ArrayLike) -> NDArray[np.float64]:
        if not hasattr(self, "columns"):
            raise ValueError("the discretiser is not fitted; fit it first")
        rows = _rows(X)
        if rows.shape[1] != len(self.columns):
            raise ValueError(f"X has {rows.shape[1]} measurements in a row, but the discretiser was fitted on {len(self.columns)}")
        return rows


class _Grid(Discretiser):
    """A grid: each measurement is divided separately, at edges."""

    edges: list[NDArray[np.float64]]
    """For each measurement the inner edges of its cells."""

    def __init__(self, bins: int | Sequence[int]) -> None:
        each = [int(count) for count in bins] if isinstance(bins, Sequence | np.ndarray) else int(bins)
        if any(count < 1 for count in (each if isinstance(each, list) else [each])):
            raise ValueError(f"bins = {bins}: must be at least 1")
        self.bins = each

    def fit(self, X: ArrayLike, y: None = None, *, columns: Sequence[str] | None = None) -> Self:
        rows = self._named(X, columns)
        bins = [self.bins] * rows.shape[1] if isinstance(self.bins, int) else list(self.bins)
        if len(bins) != rows.shape[1]:
            raise ValueError(f"bins has {len(bins)} numbers, but there are {rows.shape[1]} measurements; give one for each")
        self.edges, self._low, self._high = [], [], []
        for values, count in zip(rows.T, bins):
            known = values[np.isfinite(values)]
            cuts = _native.fit_cuts(f"{type(self).__name__.lower()}:{count}", np.ascontiguousarray(known))
            self.edges.append(np.array(cuts, dtype=np.float64))
            self._low.append(float(known.min()))
            self._high.append(float(known.max()))
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.str_]:
        rows = self._checked(X)
        cells = [
            _shown(_native.cells_of(json.dumps({"kind": "cuts", "cuts": edges.tolist(), "low": low, "high": high}), values[:, None]))
            for values, edges, low, high in zip(rows.T, self.edges, self._low, self._high)
        ]
        symbols = cells[0]
        for more in cells[1:]:
            symbols = np.char.add(np.char.add(symbols, SEPARATOR), more)
        return np.array(symbols.tolist(), dtype=np.str_)  # no wider than necessary

    def _cells(self, symbol: str) -> list[int | None]:
        parts = symbol.removesuffix(END).split(SEPARATOR)
        if len(parts) != len(self.columns):
            raise ValueError(f"{symbol!r} is not a symbol of this discretiser")
        return [None if part == "?" else int(part) for part in parts]

    def inverse(self, symbol: str) -> NDArray[np.float64]:
        def middle(i: int, cell: int | None) -> float:
            if cell is None:
                return float("nan")
            bounds = np.concatenate([[self._low[i]], self.edges[i], [self._high[i]]])
            return float((bounds[cell] + bounds[cell + 1]) / 2)

        return np.array([middle(i, cell) for i, cell in enumerate(self._cells(symbol))])

    def describe(self, symbol: str) -> str:
        def words(i: int, cell: int | None) -> str:
            name, edges = self.columns[i], self.edges[i]
            if cell is None:
                return f"{name} unknown"
            low = f"{edges[cell - 1]:.4g} ≤ " if cell > 0 else ""
            high = f" < {edges[cell]:.4g}" if cell < len(edges) else ""
            return f"{low}{name}{high}" if low or high else f"any {name}"

        return ", ".join(words(i, cell) for i, cell in enumerate(self._cells(symbol)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": type(self).__name__.lower(),
            "bins": self.bins,
            "columns": self.columns,
            "edges": [edges.tolist() for edges in self.edges],
            "low": self._low,
            "high": self._high,
        }

    def _restore(self, saved: dict[str, Any]) -> None:
        self.columns = saved["columns"]
        self.edges = [np.array(edges, dtype=np.float64) for edges in saved["edges"]]
        self._low, self._high = saved["low"], saved["high"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bins={self.bins!r})"


class Uniform(_Grid):
    """Cells of the same width, between the smallest and the largest measurement.

    Parameters
    ----------
    bins : int or sequence of int
        Number of cells, the same for all measurements or one for each.

    Examples
    --------
    >>> import foretell as ft
    >>> grid = ft.discretise.Uniform(bins=2).fit([[0.0, 10.0], [1.0, 20.0]], columns=["speed", "angle"])
    >>> grid.describe(grid([0.7, 12.0]))
    '0.5 ≤ speed, angle < 15'
    >>> grid.inverse("1|0")
    array([ 0.75, 12.5 ])
    """


class Quantile(_Grid):
    """Cells with equal numbers of measurements.

    Parameters
    ----------
    bins : int or sequence of int
        Number of cells, the same for all measurements or one for each.

    Examples
    --------
    >>> import foretell as ft
    >>> ft.discretise.Quantile(bins=2).fit_transform([1.0, 2.0, 3.0, 100.0])
    array(['0', '0', '1', '1'], dtype='<U1')
    """


class KMeans(Discretiser):
    """Cells around centres, found by k-means (k-means++ and Lloyd) on measurements of unit
    variance.

    Parameters
    ----------
    k : int
        Number of cells.
    rounds : int
        Maximum number of iterations, after a few on a sample.
    seed : int
        Seed of the first centres.

    Examples
    --------
    >>> import foretell as ft
    >>> cells = ft.discretise.KMeans(k=2, seed=1).fit([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0]])
    >>> cells.centres.round(2).tolist()
    [[0.05, 0.0], [5.05, 5.0]]
    """

    centres: NDArray[np.float64]
    """One row for each cell."""

    def __init__(self, k: int, *, rounds: int = 100, seed: int = 0) -> None:
        if k < 1:
            raise ValueError(f"k = {k}: must be at least 1")
        self.k, self.rounds, self.seed = int(k), int(rounds), int(seed)

    def fit(self, X: ArrayLike, y: None = None, *, columns: Sequence[str] | None = None) -> Self:
        rows = self._named(X, columns)
        centres, scales = _native.fit_centres(rows, self.k, self.rounds, self.seed)
        self.centres = np.array(centres, dtype=np.float64)
        self._scale = np.array(scales, dtype=np.float64)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.str_]:
        rows = self._checked(X)
        encoder = {"kind": "centres", "scales": self._scale.tolist(), "centres": self.centres.tolist()}
        return _shown(_native.cells_of(json.dumps(encoder), np.where(np.isfinite(rows), rows, np.nan)))

    def _cell(self, symbol: str) -> int | None:
        number = symbol.removesuffix(END)
        if number != "?" and not (number.isdigit() and int(number) < len(self.centres)):
            raise ValueError(f"{symbol!r} is not a symbol of this discretiser")
        return None if number == "?" else int(number)

    def inverse(self, symbol: str) -> NDArray[np.float64]:
        cell = self._cell(symbol)
        if cell is None:
            return np.full(len(self.columns), np.nan)
        centre: NDArray[np.float64] = self.centres[cell].copy()
        return centre

    def describe(self, symbol: str) -> str:
        if self._cell(symbol) is None:
            return "unknown"
        return "around " + ", ".join(f"{name} {value:.4g}" for name, value in zip(self.columns, self.inverse(symbol)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "kmeans",
            "k": self.k,
            "rounds": self.rounds,
            "seed": self.seed,
            "columns": self.columns,
            "centres": self.centres.tolist(),
            "scale": self._scale.tolist(),
        }

    def _restore(self, saved: dict[str, Any]) -> None:
        self.columns = saved["columns"]
        self.centres = np.array(saved["centres"], dtype=np.float64)
        self._scale = np.array(saved["scale"], dtype=np.float64)

    def __repr__(self) -> str:
        return f"KMeans(k={self.k})"


def _shown(cells: NDArray[np.int64]) -> NDArray[np.str_]:
    """The symbols of cells; a missing one is ``?``."""
    return np.array(["?" if cell < 0 else str(cell) for cell in cells.tolist()], dtype=np.str_)


def from_dict(saved: dict[str, Any]) -> Discretiser:
    """The discretiser that `Discretiser.to_dict` described.

    Examples
    --------
    >>> import foretell as ft
    >>> grid = ft.discretise.Uniform(bins=2).fit([[0.0], [1.0]])
    >>> ft.discretise.from_dict(grid.to_dict())([0.7])
    '1'
    """
    made: _Grid | KMeans
    match saved["kind"]:
        case "uniform":
            made = Uniform(saved["bins"])
        case "quantile":
            made = Quantile(saved["bins"])
        case "kmeans":
            made = KMeans(saved["k"], rounds=saved["rounds"], seed=saved["seed"])
        case other:
            raise ValueError(f"discretiser kind {other!r} is not known to this version of foretell; update foretell")
    made._restore(saved)
    return made
