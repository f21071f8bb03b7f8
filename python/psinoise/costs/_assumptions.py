"""Assumption 1 of Alghamdi et al., "Schrodinger mechanisms", as far as values show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise.errors import DomainError

Float = NDArray[np.float64]

# Where a cost that users wrote is examined: 40 points to each octave around 1, and sparser far out.
_DENSE = 2.0 ** np.arange(-20.0, 20.0, 0.025)
_FAR = 2.0 ** np.arange(-300.0, 301.0, 2.0)
# No np.unique, which imports numpy.ma.
EXAMINED = np.array(sorted({0.0, *_DENSE.tolist(), *_FAR.tolist()}))
# Beyond, powers overflow; values before an overflow.
_OVERFLOW = 2.0**80
_LARGE = 2.0**900
_ROUNDING = 64.0 * 2.0**-53
# Falls are those of rounding if they end where the cost is not much more than they are, and are no
# more than a share of what it is that much farther out.
_FARTHER, _SHARE, _DROWNED = 2.0**40, 2.0**-30, 2.0**10
# Slopes in logarithms that grow by this factor, octave after octave, up to the overflow, and are
# this large at the end, are those of an exponential.
_ACCELERATION, _STEEPEST = 1.25, 14.0
_OCTAVES = 4
# Points at which it is told whether a function that overflows is a straight line before.
_LINE = np.linspace(0.5, 1.0, 33)


class Examined(NamedTuple):
    """What is seen of a function."""

    fall: float
    """Largest amount by which it falls as ``|x|`` grows, if that is more than its last bits and yet
    rounding; else 0."""
    place: float
    """Where that is."""
    last: float
    """Largest point at which it is finite, if it is a straight line there and overflows beyond;
    else infinity."""


def values_of(function: Callable[[Float], ArrayLike], x: Float) -> Float:
    """Values of a user's function, checked; far out, where it may overflow on the way, NaN is
    infinity."""
    found = _called(function, x)
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


def _called(function: Callable[[Float], ArrayLike], x: Float) -> ArrayLike:
    try:
        with np.errstate(over="ignore"):
            return function(x.copy())
    except (TypeError, ValueError) as error:
        try:
            scalar = isinstance(function(1.0), float | int)  # type: ignore[arg-type]
        except Exception:
            raise error from None
        if not scalar:
            raise
        raise TypeError(
            f"cost must take arrays, and takes numbers only ({error}): write it with numpy.where, "
            "numpy.abs, numpy.maximum and the like, or wrap it in numpy.vectorize"
        ) from error


def _first(x: Float, bad: NDArray[np.bool_]) -> float:
    return float(x[bad][0])


def examine(function: Callable[[Float], ArrayLike]) -> Examined:
    """Raise an error that names the point where a function is seen not to be a cost."""
    _check_walls(function)
    last = _last_before_overflow(function)
    points = EXAMINED[last >= EXAMINED]
    near = points[_DENSE[-1] >= points]
    values, mirrored = values_of(function, points), values_of(function, -near)
    seen = values[: near.size]
    if not np.isfinite(values[0]):
        raise DomainError(f"cost must be finite at 0, got {float(values[0])!r}")
    with np.errstate(invalid="ignore"):
        fall = np.maximum.accumulate(values) - values
    fall = np.where(values == np.inf, 0.0, fall)
    rounding = _ROUNDING * np.maximum(np.abs(values), np.abs(values[0]))
    noise = _noise(points, values, fall, rounding)
    with np.errstate(invalid="ignore"):
        limit = rounding[: near.size] + noise
        odd = ~((seen == mirrored) | (np.abs(seen - mirrored) <= limit))
    if odd.any():
        point = float(min(near[odd], key=lambda x: abs(np.log(x))))
        raise DomainError(
            f"cost must be even, got cost({point!r}) != cost({-point!r}): of noise that is not "
            "symmetric neither shift is the worst one; take the larger of cost(x) and cost(-x), "
            "which is even (docs/choosing.md)"
        )
    falls = ~(fall <= np.maximum(rounding, noise))
    if falls.any():
        point = _first(points, falls)
        raise DomainError(f"cost must not decrease in |x|, got a smaller value at x = {point!r}")
    if last == np.inf:
        _check_growth(points, values)
    deepest = int(np.argmax(fall[: near.size]))
    return Examined(noise, float(points[deepest]), last)


def _check_walls(function: Callable[[Float], ArrayLike]) -> None:
    """Refuse infinite costs, which bound the noise, but for those of an overflow."""
    low, high = _first_infinite(function)
    if low == np.inf or (low > 0.0 and values_of(function, np.array([low]))[0] > _LARGE):
        return
    try:
        with np.errstate(over="raise"):
            function(np.array([high]))
    except FloatingPointError:
        if high > 1.0:
            return
    raise DomainError(
        f"cost must be finite, got infinity at x = {high!r}: noise that is bounded, on one side or "
        "both, reveals what was moved beyond its end at each use (docs/choosing.md)"
    )


def _noise(points: Float, values: Float, fall: Float, rounding: Float) -> float:
    """The largest fall, if falls end as those of rounding do, which is relative to something that
    was subtracted: ``log(cosh(x))`` near 0. Else 0."""
    falls = np.flatnonzero(fall > rounding)
    if not falls.size:
        return 0.0
    end, deepest = int(falls[-1]), float(fall.max())
    far = int(np.searchsorted(points, _FARTHER * points[end]))
    drowned = values[end] - values[0] <= _DROWNED * deepest
    beyond = values[min(far, values.size - 1)] - values[0]
    return deepest if drowned and deepest <= _SHARE * beyond else 0.0


def _check_growth(points: Float, values: Float) -> None:
    octaves = 2.0 ** np.arange(-18.0, 300.0, 2.0)
    with np.errstate(divide="ignore"):
        logs = np.log2(values[np.searchsorted(points, octaves)] - values[0])
    logs = logs[np.isfinite(logs)]
    slopes = 0.5 * np.diff(logs[-_OCTAVES - 1 :])
    faster = (slopes[1:] > _ACCELERATION * slopes[:-1]).all() and slopes[-1:].sum() > _STEEPEST
    if faster and values[-1] == np.inf:
        point = _first(points, values == np.inf)
        raise DomainError(
            f"cost must not grow faster than a power of x, which it does before x = {point!r}"
        )
    reached, final = float(values[np.searchsorted(points, 2.0**150)]), float(values[-1])
    if not (final == np.inf or final > reached + _ROUNDING * abs(reached)):
        raise DomainError(
            f"cost must grow without bound, got {reached!r} at 2**150 and {final!r} at 2**300"
        )


def _first_infinite(function: Callable[[Float], ArrayLike]) -> tuple[float, float]:
    """Neighboring points, at the second of which the function is infinite, if it is at any, though
    it is finite at 0."""
    finite = np.isfinite(values_of(function, EXAMINED))
    if finite.all() or not finite[0]:
        return np.inf, np.inf
    low = float(EXAMINED[int(np.argmin(finite)) - 1])
    high = float(EXAMINED[int(np.argmin(finite))])
    while high > low * (1.0 + 2.0**-20) and low > 0.0:
        middle = 0.5 * (low + high)
        inside = bool(np.isfinite(values_of(function, np.array([middle])))[0])
        low, high = (middle, high) if inside else (low, middle)
    return low, high


def _last_before_overflow(function: Callable[[Float], ArrayLike]) -> float:
    """Where ``log(cosh(x))`` and its like overflow on the way, though their values are moderate."""
    low, _ = _first_infinite(function)
    if low in (0.0, np.inf):
        return np.inf
    last = float(2.0**-20 * np.floor(2.0**20 * low)) if low < 2.0**30 else low
    line = values_of(function, last * _LINE)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = (line[-1] - line[0]) * (1.0 / (_LINE[-1] - _LINE[0]))
        bend = np.abs(line - (line[0] + slope * (_LINE - _LINE[0])))
    straight = 0.0 < slope < np.inf and (bend <= _ROUNDING * np.abs(line)).all()
    return last if straight else np.inf
