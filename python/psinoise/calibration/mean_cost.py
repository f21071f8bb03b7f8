"""The Schrodinger law of least expected cost that meets a target.

The laws of a cost are one for each mean cost, and each can be stretched. For infinitely many uses
of small sensitivity the law that is not stretched is the best; for finitely many a stretched one
may be. Both are looked for with estimates, the shape on a logarithmic axis of mean costs, and the
cheaper one is what certified bounds say. Where the least is, is not proven; that the target is met,
is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from psinoise.calibration.search import Calibration, roughly, search
from psinoise.calibration.target import Target
from psinoise.costs import Cost, Power, as_cost
from psinoise.noise import Family, Gaussian, Schrodinger

__all__ = ["cheapest", "is_schrodinger"]

# The unstretched law is found when a step changes the logarithm of its mean cost by less, and the
# shape is sought this far around it, to this resolution: near the least the cost is flat.
_SETTLED, _MOST_STEPS = 3e-3, 8
_AROUND, _RESOLUTION, _MOST_SHAPES = 1.5, 0.1, 12


def is_schrodinger(law: object, cost: object) -> bool:
    """Whether a law is the Schrodinger law of a cost, with neither mean cost nor strength given."""
    if law is Schrodinger:
        return True
    if not isinstance(law, Family) or law.law is not Schrodinger or not callable(cost):
        return False
    return set(law.shape) == {"cost"} and as_cost(law.shape["cost"]) == as_cost(cost)


def cheapest(cost: Cost | Callable[..., Any], target: Target, method: str) -> Calibration:
    """The Schrodinger law of a cost with the least expected cost that meets a target."""
    chosen = as_cost(cost)
    if isinstance(chosen, Power) or target.delta == 0.0:
        shape = {} if isinstance(chosen, Power) else {"mean_cost": 1.0 + float(chosen(0.0))}
        return search(replace(target, law=Family(Schrodinger, cost=chosen, **shape)), method)
    floor = float(chosen(0.0))

    def stretched(log_mean: float) -> Target:
        mean_cost = floor + math.exp(log_mean)
        return replace(target, law=Family(Schrodinger, cost=chosen, mean_cost=mean_cost))

    def log_cost(log_mean: float) -> float:
        """Of the law of a mean cost, when stretched to meet the target."""
        noise = roughly(stretched(log_mean))
        return math.log(noise.expected_cost(chosen) - floor)

    gaussian = roughly(replace(target, law=Gaussian))
    position = math.log(max(gaussian.expected_cost(chosen) - floor, 1e-300))
    for _ in range(_MOST_STEPS):
        before, position = position, log_cost(position)
        if abs(position - before) < _SETTLED:
            break
    from scipy import optimize  # slow to import

    best = optimize.minimize_scalar(
        log_cost,
        bounds=(position - _AROUND, position + _AROUND),
        method="bounded",
        options={"xatol": _RESOLUTION, "maxiter": _MOST_SHAPES},
    )
    found = [search(stretched(shape), method) for shape in (position, float(best.x))]
    return min(found, key=lambda calibration: float(calibration.noise.expected_cost(chosen)))
