"""Moments of a tilted privacy loss: twin of ``csrc/kernels/cumulants.cpp``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

# exp(x) - 1 - x by its series below, by subtraction above: 40 ulp at worst.
_SERIES_RADIUS = 0.05
_SERIES = [1.0 / (k + 3.0) for k in range(8)]


def _second_order(x: Float) -> Float:
    """``exp(x) - 1 - x`` for ``|x| <= _SERIES_RADIUS``."""
    total = np.ones_like(x)
    for factor in reversed(_SERIES):
        total = 1.0 + total * x * factor
    return 0.5 * x * x * total


def tilted_moments(
    log_mass: Float, mass: Float, loss: Float, c: float, drift: float, lost: float
) -> tuple[float, float, float, float]:
    """Largest exponent, ``E e^{cL} - 1``, mean, and ``sum P e^{cL} (L - mean)^2``."""
    x = c * loss
    with np.errstate(over="ignore", invalid="ignore"):
        tilted = np.exp(log_mass + x)
        near = np.clip(x, -_SERIES_RADIUS, _SERIES_RADIUS)
        small = near == x
        order = _second_order(near)
        second = np.where(small, mass * order, tilted - mass * (1.0 + x))
        first = loss * np.where(small, mass * (near + order), tilted - mass)
        excess = float(second.sum()) + c * drift - lost
        mean = (float(first.sum()) + drift) / (1.0 + excess)
        square = float((tilted * (loss - mean) ** 2).sum())
    return float((log_mass + x).max(initial=-np.inf)), excess, mean, square


def log_mgf(mass: Float, places: NDArray[np.int64], s: float) -> float:
    """``log sum mass exp(s places)``."""
    held = mass > 0.0
    if not held.any():
        return -np.inf
    exponent = s * places[held]
    top = float(exponent.max())
    return top + float(np.log(np.sum(mass[held] * np.exp(exponent - top))))
