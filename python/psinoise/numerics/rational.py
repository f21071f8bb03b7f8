"""From exact fractions to float64."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["least_quotient", "rounded"]


def rounded(exact: Fraction, *, up: bool) -> float:
    """The float64 next to a number, on one side of it; the number itself if it is one."""
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if up else math.nextafter(math.inf, 0.0)
    if up:
        return near if Fraction(near) >= exact else math.nextafter(near, math.inf)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def least_quotient(a: float, b: float) -> float:
    """The quotient of two float64 above 0, or the next one: ``a`` over it is at most ``b``."""
    return rounded(Fraction(a) / Fraction(b), up=True)
