"""Gaussian noise without sampling adds up: any number of uses is a single one.

A use that moves the mean by ``s`` under a standard deviation ``std`` has a loss that is normal with
variance ``mu^2 = (s / std)^2`` and mean ``mu^2 / 2``. Independent ones add up to that of
``mu^2 = sum mu_i^2`` (Dong, Roth and Su 2022, corollary 3.3). The root is rounded, up for bounds
from above and down for those from below: a larger shift is no better for privacy (`loss.pairs`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.steps import Step, Steps
from psinoise.noise import Gaussian
from psinoise.numerics.rational import rounded

__all__ = ["gaussians"]


@dataclass(frozen=True)
class Gaussians(Pair):
    """All of some uses: unit noise, at a sensitivity that is rounded up, and in ``least`` down."""

    least: float = 0.0

    def below(self, direction: Direction, tilt: float | None) -> Pair:
        """What is nowhere above."""
        del direction, tilt
        return Pair(self.noise, self.least, 1.0)


def gaussians(steps: Steps) -> Steps | None:
    """A single use that is all of these steps.

    None where there is but one use, where not all are Gaussian noise without sampling, and where
    ``mu`` is beyond float64.
    """
    if sum(count for _, count in steps) <= 1:
        return None
    squares = []
    for step, count in steps:
        square = _square(step)
        if square is None:
            return None
        squares.append(count * square)
    least, most = (_root(squares, up=up) for up in (False, True))
    if not 0.0 < least <= most < math.inf:
        return None
    return ((Gaussians(Gaussian(std=1.0), most, 1.0, least=least), 1),)


def _square(step: Step) -> Fraction | None:
    """``mu^2`` of one use of normal noise of a record that is there for sure; None of others."""
    if not isinstance(step, Pair) or step.replaced or step.sampling_rate != 1.0:
        return None
    variance = getattr(step.noise, "normal_variance", None)
    if variance is None:
        return None
    return (Fraction(step.sensitivity) / Fraction(step.noise.scale)) ** 2 / Fraction(variance)


def _root(squares: list[Fraction], *, up: bool) -> float:
    """The square root of a sum, rounded to one side."""
    # Terms are rounded first: thousands of fractions have no common denominator of any use.
    terms = [rounded(square, up=up) for square in squares]
    if not all(map(math.isfinite, terms)):
        return math.inf
    total = sum(map(Fraction, terms), Fraction(0))
    found, out = math.sqrt(rounded(total, up=up)), math.inf if up else 0.0
    while (Fraction(found) ** 2 < total) if up else (Fraction(found) ** 2 > total):
        found = math.nextafter(found, out)
    return found
