"""Steps that are known by measures of their loss, not by the densities of a pair."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from psinoise.accounting.compose.measures.dense import Dense
from psinoise.accounting.loss.pairs import DIRECTIONS, Direction
from psinoise.accounting.loss.steps import Step, Steps


class Measured(ABC):
    """A step that is known by two measures of its loss: one from below and one from above.

    The profile of the first lies below that of the step, and of the second above, in every
    composition. Both are losses of atoms
    (`psinoise.accounting.compose.measures.dense.atoms_source`), whose mass ``beyond`` counts as
    infinite from above. `infinite` is the mass of infinite losses that both have in common. It is
    composed by the direct composer; it has no transform, so that estimates lie between its bounds.
    """

    #: How many uses of a mechanism one of it stands for.
    steps: int = 1

    @property
    def attained(self) -> Step | None:
        """What stands for it where lower ends of brackets are computed; None leaves it out.

        Itself, unless both measures are so far apart that no composition brings the ends of a
        bracket together; then a step that is nowhere above. Leaving a step out is post-processing,
        which can only lower the profile.
        """
        return self

    @abstractmethod
    def sources(self, direction: Direction) -> tuple[Dense, Dense]:
        """The loss of one use, from below and from above; the same twice if it is not attained."""

    def infinite(self, direction: Direction) -> float:
        """Probability under ``P`` of an infinite loss."""
        del direction
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether both directions are the same."""
        return False

    def largest_loss(self, direction: Direction) -> float:
        """A bound from above on the finite losses."""
        above = self.sources(direction)[1]
        if above.beyond > 0.0:
            return math.inf
        return float(above.highest.max(initial=-math.inf)) + above.rounding

    def certain_loss(self, direction: Direction) -> float:
        """A bound from below on the largest finite loss."""
        below = self.sources(direction)[0]
        return float(below.lowest.max(initial=-math.inf)) - below.rounding

    @property
    def total_variation_bound(self) -> float:
        """An upper bound on delta(0) of one use."""
        total = 0.0
        for direction in DIRECTIONS:
            above = self.sources(direction)[1]
            share = -np.expm1(-np.maximum(above.highest + above.rounding, 0.0))
            beyond = above.beyond + self.infinite(direction)
            total = max(total, float(np.exp(above.log_mass) @ share) + beyond)
        return min(total * (1.0 + 1e-12), 1.0)


def uses_of(steps: Steps) -> float:
    """How many uses of mechanisms there are in all."""
    return float(
        sum(count * (step.steps if isinstance(step, Measured) else 1) for step, count in steps)
    )
