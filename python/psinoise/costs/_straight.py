"""Costs of straight pieces: Huber's, hinges and dead zones, and tables."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from psinoise import _validate
from psinoise.costs._cost import Cost, Float, Weighted
from psinoise.costs._pairs import add, times
from psinoise.errors import DomainError
from psinoise.numerics import double_double as dd

_MOST_POINTS = 256


class Huber(Weighted):
    """``weight * x**2 / 2`` up to the threshold ``k``, ``weight * k * (|x| - k / 2)`` beyond.

    Parameters
    ----------
    threshold, weight : float
        Positive.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.Huber(1.0)([0.5, -3.0])
    array([0.125, 2.5  ])
    """

    __slots__ = ("threshold",)

    threshold: float

    def __init__(self, threshold: float, weight: float = 1.0) -> None:
        self._state(threshold, weight)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return (self.threshold,)

    def pair(self, t: Float) -> dd.Pair:
        zero, k = np.zeros_like(t), self.threshold
        # u (t - u / 2) with u = min(t, k) is both.
        u = np.minimum(t, k)
        with np.errstate(over="ignore", invalid="ignore"):
            hi, lo = dd.multiply((u, zero), _difference(t, 0.5 * u))
            huge = ~np.isfinite(hi) | ~np.isfinite(lo)
            hi, lo = np.where(huge, u * (t - 0.5 * u), hi), np.where(huge, 0.0, lo)
        return times((hi, lo), self.weight)


class Hinge(Weighted):
    """``weight * max(|x| - start, 0)``: errors up to ``start`` are free.

    A dead zone alone; a hinge in a sum, ``costs.Power(1) + costs.Hinge(2.0, weight=5.0)``.

    Parameters
    ----------
    start, weight : float
        Positive.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.Hinge(3.0)([2.0, -5.0])
    array([0., 2.])
    """

    __slots__ = ("start",)

    start: float

    def __init__(self, start: float, weight: float = 1.0) -> None:
        self._state(start, weight)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return (self.start,)

    def pair(self, t: Float) -> dd.Pair:
        return times(_difference(np.maximum(t, self.start), self.start), self.weight)


class Piecewise(Cost):
    """Straight lines between the points of a table, the last one without end.

    Parameters
    ----------
    points : iterable of pairs of float
        At least two pairs ``(x, cost)``, the first with ``x = 0``; ``x`` increases, the cost does
        not decrease, and increases at the end. At most 256.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.Piecewise([(0, 0), (1, 1), (2, 5)])([0.5, -1.5, 10.0])
    array([ 0.5,  3. , 37. ])
    """

    __slots__ = ("points",)

    points: tuple[tuple[float, float], ...]

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        object.__setattr__(self, "points", _checked(points))

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return tuple(x for x, _ in self.points[1:-1])

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.points,), {}

    def pair(self, t: Float) -> dd.Pair:
        x, y = np.array(self.points).T
        piece = np.minimum(np.searchsorted(x, t, side="right") - 1, x.size - 2)
        zero = np.zeros_like(t)
        rise, run = _difference(y[piece + 1], y[piece]), _difference(x[piece + 1], x[piece])
        with np.errstate(invalid="ignore", over="ignore"):
            share = dd.multiply(rise, _difference(t, x[piece]))
            hi = share[0] / run[0]
            product = dd.multiply((hi, zero), run)
            rest = dd.add(share, (-product[0], -product[1]))[0] / run[0]
            plain = (y[piece + 1] - y[piece]) * ((t - x[piece]) / run[0])
        sound = np.isfinite(hi) & np.isfinite(rest)
        value = np.where(sound, hi, plain), np.where(sound, rest, 0.0)
        return add(value, (y[piece], zero))


def _difference(a: Float, b: Float | float) -> dd.Pair:
    with np.errstate(invalid="ignore"):
        hi, lo = dd.two_sum(a, -np.asarray(b))
    return hi, np.where(np.isfinite(lo), lo, 0.0)


def _checked(points: object) -> tuple[tuple[float, float], ...]:
    if isinstance(points, str) or not isinstance(points, Iterable):
        raise TypeError(f"points must be pairs of numbers, got {points!r}")
    found: list[tuple[float, float]] = []
    for point in points:
        try:
            x, y = point
        except (TypeError, ValueError):
            raise TypeError(f"points must be pairs of numbers, got {point!r}") from None
        found.append((_validate.real("x", x), _validate.real("cost", y)))
    if not 2 <= len(found) <= _MOST_POINTS:
        raise DomainError(f"points must be 2 to {_MOST_POINTS} pairs, got {len(found)}")
    if found[0][0] != 0.0:
        raise DomainError(f"points must begin at x = 0, got {found[0][0]!r}")
    for (x, y), (next_x, next_y) in pairwise(found):
        if not (x < next_x < np.inf and -np.inf < y <= next_y < np.inf):
            raise DomainError(
                "points must be finite, with x increasing and the cost not decreasing, got "
                f"{(x, y)!r} before {(next_x, next_y)!r}"
            )
    if not found[-1][1] > found[-2][1]:
        raise DomainError(
            f"cost must grow without bound, got {found[-1][1]!r} at the last two points"
        )
    return tuple(found)
