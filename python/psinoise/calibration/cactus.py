"""The cactus law of least cost that meets a target.

The bound of the expected cost is searched on a logarithmic axis, for the certified upper bound of
epsilon at the target's delta. That epsilon falls as the bound grows is what one expects, and not
proven: the answer has been verified, and so has been that one with a little less cost fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from psinoise.accounting.bracket import Bracket
from psinoise.accounting.question import Question
from psinoise.calibration.search import Calibration, roughly
from psinoise.calibration.target import Target
from psinoise.errors import CalibrationError
from psinoise.mechanisms import Mechanism
from psinoise.noise import Cactus, Gaussian
from psinoise.noise._cactus_grid import gaussian_deviation, grid_for
from psinoise.noise._cell_costs import checked_cost

__all__ = ["cheapest"]

# The cost bound is found to this share, and certificates are this wide, in shares of epsilon.
_TOLERANCE = 1e-3
_WIDTH = 5e-3
_FIRST_STRIDE = 0.05
_MOST_STEPS = 12
# The fewer shifts there are, the closer sampled uses are accounted.
_CELLS, _FINEST = ("cells_per_sensitivity", "cells", "tail_ratio"), 40
# A logarithm of epsilon over the target that is far from 0.
_FAR = 5.0


def cheapest(arguments: Mapping[str, Any], target: Target) -> Calibration:
    """The cactus law with the least bound of its expected cost that meets a target.

    Raises
    ------
    CalibrationError
        If there is none.
    """
    if "mean_cost" in arguments:
        raise TypeError("mean_cost is what is calibrated, and must not be given")
    if target.delta == 0.0 or target.epsilon == 0.0:
        raise CalibrationError("Cactus noise is calibrated for epsilon and delta above 0")
    gaussian = roughly(replace(target, law=Gaussian))
    words = dict(arguments)
    cost = checked_cost(words.pop("cost", 2.0))

    def at(position: float) -> dict[str, Any]:
        """Arguments of the law of a bound: with cells for its size, if none are given."""
        bound = math.exp(position)
        found = {"sensitivity": target.sensitivity, "cost": cost, "mean_cost": bound, **words}
        if not words.keys() & set(_CELLS):
            size = gaussian_deviation(cost, bound) / target.sensitivity
            found.update(zip(_CELLS, grid_for(cost, size, _FINEST), strict=True))
        return found

    def excess(position: float) -> float:
        tried = at(position)
        try:
            noise = Cactus._candidate(**tried)
        except CalibrationError:
            return _FAR  # the cells are too wide for a cost that small
        found = _epsilon(Mechanism(noise, target.sensitivity), target)
        return max(-_FAR, math.log(max(found, 1e-9) / target.epsilon))

    start = math.log(gaussian.expected_cost(cost) if callable(cost) else gaussian.moment(cost))
    low, high = _bracketed(excess, start)
    noise = Cactus(**at(high))
    return Calibration(
        noise,
        _delta(Mechanism(noise, target.sensitivity), target),
        math.expm1(high - low),
        "certified",
    )


def _epsilon(mechanism: Mechanism, target: Target) -> float:
    pair, uses = mechanism.dominating(target.sampling_rate, target.adjacency)
    width = _WIDTH * max(target.epsilon, 1e-3)
    return float(Question(((pair, target.count * uses),), tolerance=width).epsilon(target.delta))


def _delta(mechanism: Mechanism, target: Target) -> Bracket:
    """Bounds of delta; that the target's is one has been seen by the bound of epsilon."""
    use = (target.count, target.sampling_rate, target.adjacency)
    return target.capped(mechanism.delta(target.epsilon, *use))


def _bracketed(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """Neighboring positions, the first of which fails and the second meets the target."""
    from scipy import optimize  # slow to import

    seen: dict[float, float] = {}

    def decreasing(position: float) -> float:
        if position not in seen:
            seen[position] = excess(position)
        return seen[position]

    sign = 1.0 if decreasing(start) > 0.0 else -1.0
    near, stride = start, _FIRST_STRIDE
    for _ in range(_MOST_STEPS):
        far = near + sign * stride
        if decreasing(far) * sign <= 0.0:
            break
        near, stride = far, 2.0 * stride
    else:
        raise CalibrationError("no cost bound of cactus noise meets the target")
    root = float(optimize.brentq(decreasing, near, far, xtol=_TOLERANCE))
    step = _TOLERANCE
    while decreasing(root) > 0.0:
        root, step = root + step, 2.0 * step
    high = min(position for position, value in seen.items() if value <= 0.0)
    low = max((position for position in seen if position < high), default=high - step)
    return low, high
