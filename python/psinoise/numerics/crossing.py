"""Where a function crosses 0."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["narrowed"]

_MOST_ITERATIONS = 80
# Crossings are found to this share of themselves.
_RESOLUTION = 1e-13


def narrowed(
    excess: Callable[[float], float],
    inner: tuple[float, float],
    outer: tuple[float, float],
    same: float,
    resolution: float = _RESOLUTION,
) -> float:
    """A point where a function is at most 0, next to one where it is not: the Illinois method.

    It is 0 but for rounding where it is above ``-same``; ``inner`` and ``outer`` are a point where
    it is not at most 0, and one where it is, with its values.
    """
    (no, at_no), (yes, at_yes) = inner, outer
    kept = 0
    for iteration in range(_MOST_ITERATIONS):
        if abs(yes - no) <= resolution * max(abs(yes), abs(no)) or at_yes >= -same:
            break
        point = 0.5 * (yes + no)
        if iteration % 8 != 7 and math.isfinite(at_no) and math.isfinite(at_yes):
            # A little on the side of the answers, where it ends.
            tried = yes + (no - yes) * ((at_yes + 0.5 * same) / (at_yes - at_no))
            point = tried if min(yes, no) < tried < max(yes, no) else point
        if point in (yes, no):
            break
        at = excess(point)
        # An end that stays twice counts half, so that both ends close in.
        if at <= 0.0:
            yes, at_yes = point, at
            at_no *= 0.5 if kept > 0 else 1.0
            kept = 1
        else:
            no, at_no = point, at
            at_yes *= 0.5 if kept < 0 else 1.0
            kept = -1
    return yes
