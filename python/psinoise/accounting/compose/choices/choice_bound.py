"""A bound on a profile by a trigonometric polynomial under a tilt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psinoise.accounting.compose.choices.waves import Complex, Frame
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.measure import UNIT, Side
from psinoise.accounting.loss.pairs import Float


@dataclass(frozen=True, eq=False)
class ChoiceBound(Bound):
    """``e^{log_scale + c y} (p(y) +- error)`` with ``y = -epsilon``, and what is added apart.

    ``relative`` is the error of delta, ``slack`` that of epsilon; ``images`` are logs of two terms,
    with the tilts by which they change.
    """

    side: Side
    frame: Frame
    coefficients: Complex
    log_scale: float
    error: float
    infinite: float
    relative: float
    slack: float
    images: tuple[tuple[float, float], ...]
    composer = "choices"
    between = 0.5

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound on delta at some epsilons, rounded outwards."""
        y = self.sign * self.slack - np.asarray(epsilons, dtype=float)
        turns = np.exp(1j * np.multiply.outer(y, self.frame.waves[1:]))
        value = self.coefficients[0].real + 2.0 * (turns @ self.coefficients[1:]).real
        # Of arguments of waves, and of their sum.
        size = 2.0 * np.abs(self.coefficients)
        rounding = np.abs(y) * float(size @ self.frame.waves) + (size.size + 64.0) * size.sum()
        value += self.sign * (self.error + 4.0 * UNIT * rounding)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.log_scale + self.frame.tilt * y + np.log(np.maximum(value, 0.0))
        found = found + self.sign * self.relative
        if self.side == "upper":
            if self.infinite > 0.0:
                found = np.logaddexp(found, math.log(self.infinite))
            return np.asarray(np.minimum(found, 0.0))
        for log_norm, tilt in self.images:
            found = _less(found, log_norm + tilt * y)
        return np.asarray(np.minimum(found, 0.0))


def _less(found: Float, term: Float | float) -> Float:
    """Log of the difference of two exponentials; of nothing where there is none."""
    gap = np.minimum(term - found, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(found > term, found + np.log(-np.expm1(gap)), -np.inf))
