"""The largest value of a function of one peak."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["peak"]


def peak(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """A point between two others, and the value there, the largest that golden sections find.

    The interval ends at 1e-9 of itself or of 1: the value is flat there, and right to its square.
    """
    share = 0.5 * (math.sqrt(5.0) - 1.0)
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-9 * max(1.0, abs(low), abs(high)):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = function(right)
    return (left, at_left) if at_left >= at_right else (right, at_right)
