"""A cost on ``[0, infinity)`` and its integral: a power, or any function that does not decrease.

The integral of a function is that of Gauss-Legendre panels between the points that are asked for,
kinks, and a mesh that is graded towards 0; panels whose halves disagree are halved. Relative error
a few 1e-15 where the function is smooth between its kinks, and 1e-13 where it is not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.optimize.cells import Float

__all__ = ["FunctionCost", "IntervalCost", "PowerCost"]

# The graded mesh: octaves, down to where even an integrand that hardly falls has no mass left.
_OCTAVES = 2.0 ** np.arange(-80.0, 61.0)
# Gauss and Legendre with five points: most panels are far from 0 for their width.
_NEAR, _FAR = (math.sqrt(5.0 - sign * 2.0 * math.sqrt(10.0 / 7.0)) / 3.0 for sign in (1.0, -1.0))
_NODES = np.array([-_FAR, -_NEAR, 0.0, _NEAR, _FAR])
_HEAVY, _LIGHT = ((322.0 + sign * 13.0 * math.sqrt(70.0)) / 900.0 for sign in (1.0, -1.0))
_WEIGHTS = np.array([_LIGHT, _HEAVY, 128.0 / 225.0, _HEAVY, _LIGHT])
# Of the integral up to the next point that is asked for, for the two ways of taking a panel.
_AGREE, _MOST_HALVINGS = 1e-13, 40


class IntervalCost(ABC):
    """A cost of ``x >= 0`` in units of the sensitivity, 0 at 0."""

    @abstractmethod
    def __call__(self, x: Float) -> Float:
        """The cost."""

    @abstractmethod
    def integral(self, x: Float) -> Float:
        """Its integral over ``[0, x]``; infinite where it overflows."""


@dataclass(frozen=True)
class PowerCost(IntervalCost):
    """``x**power``."""

    power: float

    def __call__(self, x: Float) -> Float:
        with np.errstate(over="ignore"):
            return np.asarray(x**self.power)

    def integral(self, x: Float) -> Float:
        """``x**(power + 1) / (power + 1)``."""
        with np.errstate(over="ignore"):
            return np.asarray(x ** (self.power + 1.0) / (self.power + 1.0))


@dataclass(frozen=True)
class FunctionCost(IntervalCost):
    """A function of arrays.

    Parameters
    ----------
    function : callable
        It does not decrease, and is 0 at 0.
    kinks : tuple of float
        Where it is known to bend.
    """

    function: Callable[[Float], Float]
    kinks: tuple[float, ...] = ()

    def __call__(self, x: Float) -> Float:
        with np.errstate(over="ignore"):
            return np.maximum(self.function(x), 0.0)

    def integral(self, x: Float) -> Float:
        """By panels."""
        mesh = np.array([*self.kinks, *_OCTAVES])
        mesh = mesh[mesh < x.max(initial=0.0)]
        points = np.unique(np.concatenate([[0.0], x.reshape(-1), mesh]))
        places = np.searchsorted(points, x)
        # The point that is asked for at the end of each panel or after it.
        asked = np.unique(np.append(places, points.size - 1))
        after = asked[np.searchsorted(asked, np.arange(1, points.size))]
        sums = np.append(0.0, np.cumsum(self._panels(points[:-1], points[1:], after)))
        return np.asarray(sums[places])

    def _panels(self, low: Float, high: Float, after: NDArray[np.intp]) -> Float:
        """Integrals over panels from left to right, each to its share of the integral up to the
        point ``after`` it: what is next to 0 may be the rounding of a function that vanishes."""
        whole = self._of(low, high)
        found = whole.copy()
        parts = np.arange(low.size)
        size = np.append(0.0, np.cumsum(whole))[after]
        for _ in range(_MOST_HALVINGS):
            middle = 0.5 * (low + high)
            left, right = self._of(low, middle), self._of(middle, high)
            with np.errstate(invalid="ignore"):
                change = np.where(np.isfinite(whole), left + right - whole, 0.0)
                np.add.at(found, parts, change)
                bad = np.abs(change) > _AGREE * size[parts]
            if not bad.any():
                break
            parts = np.repeat(parts[bad], 2)
            whole = np.column_stack([left[bad], right[bad]]).reshape(-1)
            low, high = (
                np.column_stack(ends).reshape(-1)
                for ends in ((low[bad], middle[bad]), (middle[bad], high[bad]))
            )
        return found

    def _of(self, low: Float, high: Float) -> Float:
        half = 0.5 * (high - low)
        points = (low[:, None] + half[:, None] * (1.0 + _NODES)).reshape(-1)
        return np.asarray(half * (self(points).reshape(low.size, -1) @ _WEIGHTS))
