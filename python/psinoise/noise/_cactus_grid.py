"""The cells of a cactus law that fit its size, which is that of Gaussian noise of its mean cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from psinoise.noise.gaussian import Gaussian

__all__ = ["gaussian_deviation", "grid_for"]

# The grid of the paper, for noise of up to one sensitivity: it covers eight.
PAPER = (200, 1600, 0.9)
_REACH = 8.0
# Cells add their variance, width**2 / 12, to what the law pays, which costs a share of about
# 1 / (12 n**2 C) of the divergence; what a cactus law gains on the Gaussian falls like
# 1 / (100 C**2) for large C (both seen for the cost x**2). With five times as many cells to a
# sensitivity as deviations a third of the gain is lost; with 3.5 two thirds, which is kept to while
# seven deviations of cells fit.
_FINENESS, _FINE, _MANY = 5.0, 100, 8000
_LEAST_FINENESS, _LEAST_REACH, _MOST = 3.5, 7.0, 32_767
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


def grid_for(deviations: float) -> tuple[int, int, float]:
    """Cells to a sensitivity, cells, and tail ratio, for a size in sensitivities."""
    if deviations <= 1.0:
        return PAPER
    fine = max(math.ceil(_FINENESS * deviations), _FINE)
    width = min(fine, int(_MANY / (_REACH * deviations)))
    width = max(width, math.ceil(_LEAST_FINENESS * deviations))
    width = max(min(width, int(_MOST / (_LEAST_REACH * deviations)), PAPER[0]), 1)
    cells = max(width + 1, math.ceil(_REACH * deviations * width))
    ratio = math.exp(PAPER[0] * math.log(PAPER[2]) / (width * deviations))
    return width, min(cells, _MOST), min(ratio, 1.0 - 1e-6)
