"""Cells of one width with a geometric tail: checked, chosen for a size, and what a cost is there.

The size of a cactus law is that of Gaussian noise of its mean cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise import _validate
from psinoise.compile.cells import MOST_CELLS
from psinoise.errors import CalibrationError, DomainError
from psinoise.noise._cells import Cells
from psinoise.noise._elementary import logarithm
from psinoise.noise.gaussian import Gaussian
from psinoise.optimize.cells import MOST_SOLVED, Grid

__all__ = [
    "PAPER",
    "cells_of",
    "checked_grid",
    "checked_width",
    "costs_of_cells",
    "gaussian_deviation",
    "grid_for",
]

Float = NDArray[np.float64]

# The grid of the paper, for noise of up to one sensitivity: it covers eight.
PAPER = (200, 1600, 0.9)
_REACH = 8.0
# Cells add their variance, width**2 / 12, to what the law pays, which costs a share of about
# 1 / (12 n**2 C) of the divergence, n cells to a sensitivity; what a cactus law gains on the
# Gaussian with the cost x**2 is a share of 1 / (96 C**2) for large C (see `Cactus`). With four
# times as many cells to a sensitivity as deviations half of the gain is left.
_FINENESS = 4.0
# Above this nothing would be left of it with the most cells that there can be.
_LARGEST = 200.0
_LARGEST_LOG = 690.0


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


def gaussian_deviation(cost: float | Callable[..., Any], mean_cost: float) -> float:
    """Standard deviation of Gaussian noise with an expected cost."""
    if not callable(cost):
        unit = 2.0 ** (0.5 * cost) * math.gamma(0.5 * (cost + 1.0)) / math.sqrt(math.pi)
        try:
            return float((mean_cost / unit) ** (1.0 / cost))
        except OverflowError:
            return math.inf
    low, high = -_LARGEST_LOG, _LARGEST_LOG
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        cheap = Gaussian(std=math.exp(middle)).expected_cost(cost) < mean_cost
        low, high = (middle, high) if cheap else (low, middle)
    return math.exp(low)


def grid_for(
    cost: float | Callable[..., Any], deviations: float, finest: int = PAPER[0]
) -> tuple[int, int, float]:
    """Cells to a sensitivity, cells, and tail ratio, for a cost and a size in sensitivities.

    ``finest`` are the cells to a sensitivity for noise of up to one sensitivity. CalibrationError
    if the noise is so large that the cells cannot cover it.
    """
    size = max(1.0, deviations)
    most = MOST_CELLS - 1 if cost == 2.0 and size <= _LARGEST else MOST_SOLVED
    if _REACH * size > most:
        raise CalibrationError(
            f"cactus noise of {size:.3g} sensitivities needs more than {most:,} cells"
        )
    width = math.ceil(max(finest / math.sqrt(size), _FINENESS * size))
    width = min(width, int(most / (_REACH * size)))
    # Tails fall as in the paper, and those of large noise as a Gaussian density where they begin.
    rate = -PAPER[0] * math.log(PAPER[2]) if size == 1.0 else _REACH / size
    return width, math.ceil(_REACH * size * width), min(math.exp(-rate / width), 1.0 - 1e-6)


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
