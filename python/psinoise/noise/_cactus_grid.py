"""The cells of a cactus law that fit its size, which is that of Gaussian noise of its mean cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from psinoise.compile.cells import MOST_CELLS
from psinoise.errors import CalibrationError
from psinoise.noise.gaussian import Gaussian
from psinoise.optimize.cells import MOST_SOLVED

__all__ = ["gaussian_deviation", "grid_for"]

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


def gaussian_deviation(cost: float | Callable[..., Any], mean_cost: float) -> float:
    """Standard deviation of Gaussian noise with an expected cost."""
    if not callable(cost):
        unit = 2.0 ** (0.5 * cost) * math.gamma(0.5 * (cost + 1.0)) / math.sqrt(math.pi)
        return float((mean_cost / unit) ** (1.0 / cost))
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

    Parameters
    ----------
    finest : int
        Cells to a sensitivity for noise of up to one sensitivity.

    Raises
    ------
    CalibrationError
        If the noise is so large that the cells cannot cover it.
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
