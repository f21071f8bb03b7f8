"""Cells of one width with a geometric tail: checked, and what a cost is on them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from psinoise import _validate
from psinoise.errors import DomainError
from psinoise.noise._cells import Cells
from psinoise.noise._elementary import logarithm
from psinoise.optimize.cells import Grid

__all__ = ["cells_of", "checked_grid", "checked_width", "costs_of_cells"]

Float = NDArray[np.float64]


def checked_width(value: object) -> int | None:
    """Cells to a sensitivity; None stays."""
    if value is None:
        return None
    width = _validate.count("cells_per_sensitivity", value)
    if width < 1:
        raise DomainError(f"cells_per_sensitivity must be at least 1, got {width!r}")
    return width


def checked_grid(width: int | None, cells: object, tail_ratio: object, most: int) -> Grid:
    """Cells with a geometric tail, up to a number."""
    if width is None:
        raise TypeError("cells_per_sensitivity must be given with cells")
    last = _validate.count("cells", cells)
    if not width < last <= most:
        raise DomainError(
            f"cells must be above cells_per_sensitivity, {width}, and at most {most}, got {last!r}"
        )
    ratio = _validate.positive("tail_ratio", tail_ratio)
    if not 1e-6 <= ratio <= 1.0 - 1e-6:
        raise DomainError(f"tail_ratio must be in [1e-6, 1 - 1e-6], got {tail_ratio!r}")
    return Grid(width, last, ratio)


def costs_of_cells(
    grid: Grid, cost: Callable[[Float], Float], kinks: tuple[float, ...] = ()
) -> Float:
    """Expected cost per unit of each mass of the program, of a function of ``|x|`` in units of the
    sensitivity; ``kinks`` are where it bends."""
    ones = np.ones(grid.last + 1)
    found = cells_of(grid, ones).unit_expectations(cost, kinks)
    return np.asarray(found * np.append(1.0, 2.0 * ones[1:]))


def cells_of(grid: Grid, masses: Float) -> Cells:
    """The law of ``|Z|`` with the masses of cells, both sides together."""
    middles = np.arange(grid.last + 1.0)
    return Cells(
        np.append(0.0, (middles + 0.5) / grid.width),
        masses,
        repeated=1,
        rate=-logarithm(grid.tail_ratio),
        complement=1.0 - grid.tail_ratio,
        step=1.0 / grid.width,
    )
