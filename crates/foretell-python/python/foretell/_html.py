"""HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray


def count(n: int, noun: str) -> str:
    """The number and its noun, in the plural unless it is 1."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def some(names: Sequence[str]) -> str:
    """The first names."""
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def table(title: str, rows: Sequence[tuple[str, object]], notes: Sequence[str] = (), drawing: str = "") -> str:
    """A small table with a title."""
    cells = "".join(
        f"<tr><th style='text-align:left;padding-right:1em'>{escape(name)}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in rows
    )
    small = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    return f"<div><b>foretell.{escape(title)}</b><table>{cells}</table>{drawing}{small}</div>"


def grid(title: str, rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A table whose first row is its head."""
    lines = [[f"<{'td' if i else 'th'} style='text-align:left'>{escape(cell)}</{'td' if i else 'th'}>" for cell in row] for i, row in enumerate(rows)]
    cells = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    small = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    return f"<div><b>foretell.{escape(title)}</b><table>{cells}</table>{small}</div>"


def bars(values: NDArray[np.float64], kept: int, width: int = 320, height: int = 60) -> str:
    """Singular values as bars; those kept are darker."""
    if not len(values) or not values[0] > 0:
        return ""
    shown = values[: max(2 * kept, 10)]
    step = width / len(shown)
    rectangles = "".join(
        f"<rect x='{i * step:.1f}' y='{height - v / shown[0] * height:.1f}' width='{max(step - 1, 0.5):.1f}' "
        f"height='{v / shown[0] * height:.1f}' fill='{'#0072b2' if i < kept else '#9aa5b1'}'/>"
        for i, v in enumerate(shown)
    )
    label = f"singular values, the first {kept} kept"
    return f"<svg width='{width}' height='{height}' role='img' aria-label='{label}'><title>{label}</title>{rectangles}</svg>"
