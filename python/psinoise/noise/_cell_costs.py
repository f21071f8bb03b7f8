"""Costs of laws in cells: a power, or a cost of `psinoise.costs`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate, costs
from psinoise.errors import DomainError

__all__ = ["Cost", "checked_cost"]

Float = NDArray[np.float64]
Cost = float | costs.Cost | Callable[[Float], ArrayLike]


def checked_cost(cost: object) -> float | costs.Cost:
    """A power as a number, any other cost as one of `psinoise.costs`."""
    if isinstance(cost, costs.Power) and cost.weight == 1.0:
        return cost.p
    if callable(cost):
        return costs.as_cost(cost)
    power = _validate.positive("cost", cost)
    if not 0.01 <= power <= 100.0:
        raise DomainError(f"cost must be a power in [1/100, 100] or callable, got {cost!r}")
    return power
