"""Assumption 1 of Alghamdi et al., "Schrodinger mechanisms", as far as values show it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise.errors import DomainError

Float = NDArray[np.float64]

# Where a cost that users wrote is examined: 40 points to each octave around 1, and sparser far out.
_DENSE = 2.0 ** np.arange(-20.0, 20.0, 0.025)
_FAR = 2.0 ** np.arange(-300.0, 301.0, 2.0)
# No np.unique, which imports numpy.ma.
EXAMINED = np.array(sorted({0.0, *_DENSE.tolist(), *_FAR.tolist()}))
# Beyond, twelfth powers overflow.
_OVERFLOW = 2.0**80
_ROUNDING = 64.0 * 2.0**-53
# Largest ratio of cost(2 x) to cost(x) + 1: |x|**12 has 4096. Assumption 1 (9) asks for some bound.
_STEEPEST = 2.0**14


def values_of(function: Callable[[Float], ArrayLike], x: Float) -> Float:
    """Values of a user's function, checked; far out, where it may overflow on the way, NaN is
    infinity."""
    found = function(x.copy())
    values = np.asarray(found)
    if values.dtype.kind not in "fiu" or values.dtype.itemsize > 8:
        raise TypeError(f"cost(x) must be real numbers, got {type(found).__name__} {values.dtype}")
    if values.shape != x.shape:
        raise TypeError(f"cost(x) must have the shape of x, {x.shape}, got {values.shape}")
    values = np.ascontiguousarray(values, dtype=np.float64)
    missing = np.isnan(values)
    if not missing.any():
        return values
    near = missing & (np.abs(x) <= _OVERFLOW)
    if near.any():
        raise DomainError(f"cost must not be NaN, got NaN at x = {_first(x, near)!r}")
    return np.where(missing, np.inf, values)


def _first(x: Float, bad: NDArray[np.bool_]) -> float:
    return float(x[bad][0])


def examine(function: Callable[[Float], ArrayLike]) -> None:
    """Raise an error that names the point where a function is seen not to be a cost."""
    near = EXAMINED[_DENSE[-1] >= EXAMINED]
    with np.errstate(over="ignore"):
        values = values_of(function, EXAMINED)
        mirrored = values_of(function, -near)
    seen = values[: near.size]
    if not np.isfinite(values[0]):
        raise DomainError(f"cost must be finite at 0, got {float(values[0])!r}")
    infinite = ~np.isfinite(seen) & (near <= 1.0)
    if infinite.any():
        raise DomainError(f"cost must be finite, got infinity at x = {_first(near, infinite)!r}")
    size = np.maximum(np.abs(seen), np.abs(seen[0]))
    with np.errstate(invalid="ignore"):
        odd = ~((seen == mirrored) | (np.abs(seen - mirrored) <= _ROUNDING * size))
    if odd.any():
        point = _first(near, odd)
        raise DomainError(f"cost must be even, got cost({point!r}) != cost({-point!r})")
    with np.errstate(invalid="ignore"):
        falls = ~(
            (values[1:] >= values[:-1]) | (np.diff(values) >= -_ROUNDING * np.abs(values[1:]))
        )
    if falls.any():
        point = _first(EXAMINED[1:], falls)
        raise DomainError(f"cost must not decrease in |x|, got a smaller value at x = {point!r}")
    half = near[near <= 0.5 * near[-1]]
    doubled = np.interp(2.0 * half, near, seen)
    steep = ~(doubled <= _STEEPEST * (seen[: half.size] + 1.0))
    if steep.any():
        point = _first(half, steep)
        raise DomainError(
            f"cost must not grow faster than a power of x, which it does at x = {point!r}"
        )
    reached, last = float(values[np.searchsorted(EXAMINED, 2.0**150)]), float(values[-1])
    if not (last == np.inf or last > reached + _ROUNDING * abs(reached)):
        raise DomainError(
            f"cost must grow without bound, got {reached!r} at 2**150 and {last!r} at 2**300"
        )
