"""Costs of laws in cells: a power, or a cost of `psinoise.costs`."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate, costs
from psinoise._kept import cached_property
from psinoise.errors import DomainError
from psinoise.noise._grid import costs_of_cells
from psinoise.optimize import unimodal as program
from psinoise.optimize.cells import Grid

__all__ = ["Cost", "UnitCost", "checked_cost"]

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


@dataclass(frozen=True)
class UnitCost:
    """A cost as the law of unit sensitivity has it, less a constant: powers are stated in that of
    the sensitivity, which must be a float64, and do not see the unit of length."""

    cost: float | costs.Cost
    sensitivity: float
    floor: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.unit < math.inf:
            raise DomainError(
                f"sensitivity must be of a size whose power {self.cost!r} is a float64, got "
                f"{self.sensitivity!r}"
            )

    @classmethod
    def above_least(cls, cost: float | costs.Cost, sensitivity: float) -> UnitCost:
        """Less the cost of 0."""
        floor = 0.0 if isinstance(cost, float) else float(cost(0.0))
        return cls(cost, sensitivity, floor)

    @cached_property
    def unit(self) -> float:
        """What the cost is stated in."""
        if not isinstance(self.cost, float):
            return 1.0
        try:
            return math.pow(self.sensitivity, self.cost)
        except OverflowError:
            return math.inf

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What optimal laws of unit sensitivity depend on."""
        return (self.cost, 1.0 if isinstance(self.cost, float) else self.sensitivity)

    def of_unit(self, mean_cost: float) -> float:
        """Of the law of unit sensitivity, from what is stated."""
        if not mean_cost > self.floor:
            raise DomainError(
                f"mean_cost must be above the cost of 0, {self.floor!r}, got {mean_cost!r}"
            )
        return (mean_cost - self.floor) / self.unit

    def stated(self, mean_cost: float) -> float:
        """The inverse of `of_unit`."""
        return self.floor + mean_cost * self.unit

    def of_cells(self, grid: Grid) -> Float:
        """Expected cost per unit of each mass of the program."""
        found = costs_of_cells(grid, self.at, self._kinks)
        if not np.isfinite(found).all():
            raise DomainError(
                f"cost must be finite in all cells, and is not below {grid.last / grid.width:g} "
                "sensitivities"
            )
        return found

    @cached_property
    def on_intervals(self) -> program.IntervalCost:
        """With its integral."""
        if isinstance(self.cost, float):
            return program.PowerCost(self.cost)
        return program.FunctionCost(self.at, self._kinks)

    @property
    def _kinks(self) -> tuple[float, ...]:
        if isinstance(self.cost, float):
            return ()
        return tuple(point / self.sensitivity for point in self.cost.breakpoints)

    def at(self, t: Float) -> Float:
        """The cost of noise of size ``t``."""
        if isinstance(self.cost, float):
            return np.asarray(t**self.cost)
        return np.asarray(self.cost(t * self.sensitivity)) - self.floor
