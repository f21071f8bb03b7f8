"""Costs of laws in cells: a power, or a function that is examined on a wide range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate, costs
from psinoise.errors import DomainError
from psinoise.noise import _checks

__all__ = ["Cost", "checked_cost"]

Float = NDArray[np.float64]
Cost = float | Callable[[Float], ArrayLike]


def checked_cost(cost: object) -> Cost:
    """A power as a number, or a hashable function that is even, finite and does not fall."""
    if isinstance(cost, costs.Power) and cost.weight == 1.0:
        return cost.p
    if callable(cost):
        try:
            hash(cost)
        except TypeError:
            raise TypeError(f"cost must be hashable, got {cost!r}") from None
        _examine(cost)
        return cost
    power = _validate.positive("cost", cost)
    if not (0.125 <= power <= 12.0):
        raise DomainError(f"cost must be a power in [1/8, 12] or callable, got {cost!r}")
    return power


def _examine(cost: Callable[[Float], ArrayLike]) -> None:
    """Raise an error that names the point where a function is seen not to be even or to fall."""
    x = np.concatenate([[0.0], 2.0 ** np.arange(-20.0, 20.0, 0.125)])
    with np.errstate(over="ignore"):
        right, left = _checks.cost_values(cost, x), _checks.cost_values(cost, -x)
    odd = ~(np.abs(right - left) <= 1e-12 * np.abs(right)) & (right != left)
    if odd.any():
        point = float(x[odd][0])
        raise DomainError(f"cost must be even, got cost({point!r}) != cost({-point!r})")
    falls = ~(right[1:] >= right[:-1] - 1e-12 * np.abs(right[1:]))
    if falls.any():
        point = float(x[1:][falls][0])
        raise DomainError(f"cost must not decrease in |x|, got a smaller value at x = {point!r}")
    if not right[0] >= 0.0:
        raise DomainError(f"cost must not be negative, got {float(right[0])!r} at x = 0.0")
    if not right[-1] > right[-25]:
        raise DomainError(
            f"cost must grow without bound, got {float(right[-1])!r} at x = {float(x[-1])!r}"
        )
