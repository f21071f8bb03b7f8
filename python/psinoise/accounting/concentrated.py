"""Zero-concentrated differential privacy: only a line above all Renyi divergences is known.

A mechanism is rho-zCDP if its Renyi divergences, of any order ``a > 1`` and in both directions, are
at most ``rho a`` (Bun and Steinke 2016). Divergences add up, so that all steps of this kind are one
step, with the sum of their rho.

*From above.* With ``c = a - 1``, for every ``c > 0`` and every real eps

    ``delta(eps) <= exp(c (c + 1) rho - c eps) c^c / (1 + c)^{1 + c}``

(``estimate.renyi`` has the proof; Canonne, Kamath and Steinke 2020, proposition 12). The order goes
to 1 in ``KL <= rho``, and Pinsker's inequality bounds delta(0) by ``sqrt(rho / 2)``.

The profile ``H(gamma)``, ``gamma = e^eps``, is convex: it lies below the chords between any points
at or above it. Chords that fall from ``H(0) = 1``, the steepest first, are the profile of a
measure: the change of slope at a node ``gamma`` is the mass under ``Q`` of the loss ``log gamma``,
and what is left at the last node counts as an infinite loss. So they are for this bound ``h``,
which is convex: its slope is ``-c h / gamma`` at the best ``c``, ``c' = dc/d eps`` is
``1 / (2 rho + 1/(c (c + 1)))``, and ``h'' = (c (c + 1) - c') h / gamma^2 > 0``. Pinsker's point is
below ``h``, and nodes up to the one to which its chord is the steepest are left out. Where rounding
makes a slope fall a mass of 0 stands for one below 0, which raises the profile.

Only the half with losses above 0 is computed; the other one is its mirror image,
``H(1/gamma) = 1 - 1/gamma + H(gamma)/gamma``, since the bound holds in both directions. The hull of
both is convex at 1 if the point there is at most ``(gamma - 1 + 2 H(gamma)) / (gamma + 1)`` for
every node: that is the chord from a node to its mirror image.

*From below.* Gaussian noise has the divergences ``a s^2 / (2 std^2)``: it keeps the promise, with
equality. No measure brings the ends of a bracket together.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from psinoise.accounting.compose.measures.dense import Dense, Measured, atoms_source
from psinoise.accounting.loss.pairs import Direction, Float, Pair
from psinoise.accounting.loss.steps import Step, Steps
from psinoise.noise import Gaussian
from psinoise.numerics.rational import rounded

__all__ = ["Concentrated", "added"]

# Nodes with losses above 0: chords are within 1e-7 of max(epsilon, 1) of the bound.
_NODES = 2**17
# Log of what may be left at the last node: deltas above that are all that is ever asked.
_LEAST_LOG = -700.0
# No point is lower: of a small rho the last ones are below float64, and no loss would be left.
_LEAST_HEIGHT = 2.0**-1020
# Points are rounded up by this much: slopes are differences of them.
_ROUNDING = 1e-11
_ITERATIONS = 34
# Beyond, where nodes would not tell losses apart, nothing is said.
_LARGEST_RHO = 1e10


@dataclass(frozen=True)
class Concentrated(Measured):
    """Everything that is known by its rho alone, a positive number, as one step."""

    rho: float

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def attained(self) -> Step | None:
        """Gaussian noise, rounded to the safe side."""
        if not self.rho <= _LARGEST_RHO:
            return None
        return Pair(Gaussian(std=1.0), math.sqrt(2.0 * self.rho) * (1.0 - 2.0**-52), 1.0)

    def sources(self, direction: Direction) -> tuple[Dense, Dense]:
        """The measure from above, twice."""
        return _source(self.rho), _source(self.rho)


def added(steps: Steps) -> Steps:
    """The same steps, with those that are known by their rho as a single one."""
    known = [(step.rho, count) for step, count in steps if isinstance(step, Concentrated)]
    if sum(count for _, count in known) <= 1:
        return steps
    total = sum((count * Fraction(rho) for rho, count in known), Fraction(0))
    others = tuple(entry for entry in steps if not isinstance(entry[0], Concentrated))
    return (*others, (Concentrated(rounded(total, up=True)), 1))


@functools.lru_cache(maxsize=8)
def _source(rho: float) -> Dense:
    """The measure from above."""
    if not rho <= _LARGEST_RHO:
        return replace(atoms_source(np.array([_LEAST_LOG]), np.zeros(1)), beyond=1.0)
    # log H <= -(eps - rho)^2 / (4 rho) for the order that makes it least.
    largest = rho + 2.0 * math.sqrt(-rho * _LEAST_LOG)
    loss = largest * np.linspace(0.0, 1.0, _NODES)
    height = np.maximum(np.exp(_log_bound(rho, loss)) * (1.0 + _ROUNDING), _LEAST_HEIGHT)
    height[0] = min(height[0], math.sqrt(0.5 * rho), 1.0) * (1.0 + _ROUNDING)
    # (gamma - 1 + 2 H)/(gamma + 1), the chord to the mirror image.
    half = np.tanh(0.5 * loss) + height * 2.0 / (1.0 + np.exp(np.minimum(loss, 700.0)))
    height[0] = float(half.min()) * (1.0 + _ROUNDING)
    # Nodes between the first and the one to which its chord is the steepest are above that.
    with np.errstate(over="ignore"):
        above = slice(1, 1 + int(np.argmin((height[1:] - height[0]) / np.expm1(loss[1:]))))
        loss, height = np.delete(loss, above), np.delete(height, above)
        width, fall = np.diff(loss), -np.diff(height)
        # Slopes of the chords in gamma, times gamma at their left and at their right end.
        left, right = fall / np.expm1(width), fall / -np.expm1(-width)
    # Masses under P: gamma times the change of slope.
    mass = np.append(0.0, right) - np.append(left, 0.0)
    mass[0] = 1.0 - height[0] - 2.0 * left[0]
    mass = np.maximum(mass, 0.0)
    losses = np.concatenate([-loss[:0:-1], loss])
    masses = np.concatenate([(mass[1:] * np.exp(-loss[1:]))[::-1], mass])
    held = masses > 0.0
    found = atoms_source(np.log(masses[held]), losses[held])
    return replace(found, beyond=float(height[-1]))


def _log_bound(rho: float, epsilon: Float) -> Float:
    """Log of the bound on delta, for the order that makes it least; any order gives a bound."""
    low = np.full(epsilon.size, -700.0)
    high = np.log(0.5 * epsilon / rho + 1.0 / math.sqrt(2.0 * rho) + 1.0)
    for _ in range(_ITERATIONS):
        # The derivative (2 c + 1) rho - log(1 + 1/c) - eps rises.
        middle = 0.5 * (low + high)
        c = np.exp(middle)
        above = (2.0 * c + 1.0) * rho - np.log1p(1.0 / c) > epsilon
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    c = np.exp(0.5 * (low + high))
    # c log c - (1 + c) log(1 + c) without cancellation.
    found = c * ((c + 1.0) * rho - epsilon) - c * np.log1p(1.0 / c) - np.log1p(c)
    return np.asarray(np.minimum(found, 0.0))
