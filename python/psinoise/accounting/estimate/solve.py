"""Epsilon from delta, for any way of computing the profile."""

from __future__ import annotations

import math
from typing import Protocol

_MOST_ITERATIONS = 80
CLOSE = 1e-8


class Profile(Protocol):
    """A decreasing profile with its logarithmic derivative."""

    def log_delta(self, epsilon: float) -> tuple[float, float]: ...


def solve_epsilon(
    profile: Profile, log_delta: float, start: float, scale: float, close: float = CLOSE
) -> float:
    """Newton's method on log delta, safeguarded by the monotony of the profile.

    ``scale`` is a change of epsilon that matters to the profile, such as ``1/c``: steps grow from
    it where Newton's method is of no use. A log delta that is ``close`` ends the search after one
    more step.
    """
    low, high = -math.inf, math.inf
    epsilon, reach = start, scale
    for _ in range(_MOST_ITERATIONS):
        value, slope = profile.log_delta(epsilon)
        if value > log_delta:
            low = epsilon
        else:
            high = epsilon
        step = (log_delta - value) / slope if slope < 0.0 and math.isfinite(value) else math.nan
        if abs(log_delta - value) <= close or abs(step) <= 4e-16 * abs(epsilon):
            # Quadratic convergence: what is left after such a step is below rounding.
            return epsilon + step
        moved = epsilon + step
        if not low < moved < high or abs(step) > 100.0 * reach:
            if math.isfinite(low) and math.isfinite(high):
                moved = 0.5 * (low + high)
            else:
                reach *= 2.0
                moved = epsilon + (reach if value > log_delta else -reach)
        if moved in (low, high):
            return moved
        epsilon = moved
    return epsilon
