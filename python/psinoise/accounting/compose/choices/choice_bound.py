"""A bound on a profile by a trigonometric polynomial under a tilt, made by a recursion.

*Shifts that are far behind.* Of very many uses a shift whose moment is smaller than another's by
some hundred, over all of them, is a choice only in the last few. From above its losses may be moved
up until it is no farther behind, as every ``V_k`` (``composer``) rises; from below it is left out.
What such a shift takes away from the functions then is not large beside what matters.

*Images.* A period ``p`` adds ``e^{-c k p} V_0(y + k p)`` to ``V_0(y)``, for all ``k`` but 0. From
below they have to go. As ``V_0 <= 1``, those of ``k > 0`` are ``1/(e^{c p} - 1)`` together at most.
With ``V_0(y) <= e^{m y}`` for any ``m > 0`` those of ``k < 0`` become at most
``M(m)^n e^{m y} / (e^{(m - c) p} - 1)`` for ``m > c``.

*Rounding.* Each use adds a relative error of the masses, and one of ``y``. As the recursion is
monotone and moves with ``y``, these add up over the uses, whatever is chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psinoise.accounting.compose.choices.recursion import Recursion
from psinoise.accounting.compose.choices.steps import Losses, Steps
from psinoise.accounting.compose.choices.waves import Complex, Frame, hinge, power_error, total_of
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.measure import UNIT, Side
from psinoise.accounting.loss.pairs import Float

#: Points of all transforms of one recursion, at most.
MOST_WORK = 3.5e8
# Logs of moments of all uses by which a shift may be behind.
_BEHIND = 400.0


@dataclass(frozen=True, eq=False)
class ChoiceBound(Bound):
    """``e^{log_scale + c y} (p(y) +- error)`` with ``y = -epsilon``, and what is added apart.

    ``relative`` is the error of delta, ``slack`` that of epsilon; ``images``, from below, are logs
    of two terms, with the tilts by which they change.
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
        if self.infinite > 0.0:
            found = np.logaddexp(found, math.log(self.infinite))
        for log_norm, tilt in self.images:
            found = _less(found, log_norm + tilt * y)
        return np.asarray(np.minimum(found, 0.0))


def _less(found: Float, term: Float) -> Float:
    """Log of the difference of two exponentials; of nothing where there is none."""
    gap = np.minimum(term - found, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(found > term, found + np.log(-np.expm1(gap)), -np.inf))


def choice_bound(
    side: Side,
    steps: Steps,
    frame: Frame,
    farther: float,
    fineness: int,
    allowed: float,
) -> tuple[ChoiceBound, float] | None:
    """A bound of one side, and the work that it took; None if it takes too much.

    See `best_frame` for ``farther``, and `Recursion` for the rest.
    """
    (losses, count), *others = steps.each
    tilt, period = frame.tilt, frame.period
    log_scale, drift, variance = losses.cumulants(tilt)
    log_scale += _sum_rounding(losses)
    chosen = losses if side == "upper" else losses.near(tilt, _BEHIND / count)
    symbols, doubt = chosen.symbols(frame, log_scale, _BEHIND / count)
    start, error = hinge(frame, side)
    made = Recursion(side, frame, symbols, doubt, start, error, fineness, drift)
    if not made.advance(count, allowed, variance, MOST_WORK):
        return None
    scale = count * log_scale
    for other, uses in others:
        scaled = other.cumulants(tilt)[0] + _sum_rounding(other)
        factor, more = other.symbols(made.frame, scaled, math.inf)
        made.error += total_of(power_error(factor[0], more, uses) * made.coefficients)
        made.coefficients = made.coefficients * np.exp(uses * np.log(factor[0]))
        scale += uses * scaled
    relative = sum(uses * (each.rounding + 4.0 * UNIT) for each, uses in steps.each)
    relative += 16.0 * UNIT * (1.0 + abs(scale) + tilt * period)
    slack = sum(uses * each.slack for each, uses in steps.each)
    slack += 4.0 * UNIT * count * abs(drift)
    infinite = sum(uses * each.infinite for each, uses in steps.each)
    images: tuple[tuple[float, float], ...] = ()
    if side == "lower":
        before = steps.cumulants(farther)[0] + _log_image((farther - tilt) * period) + relative
        infinite, images = 0.0, ((_log_image(tilt * period), 0.0), (before, farther))
    bound = ChoiceBound(
        side, made.frame, made.coefficients, scale, made.error, infinite, relative, slack, images
    )
    return bound, made.work


def _log_image(power: float) -> float:
    """Log of ``1/(e^power - 1)``, rounded up."""
    return -power - math.log1p(-math.exp(-power)) + 1e-9


def _sum_rounding(losses: Losses) -> float:
    """Of the logarithm of a moment."""
    return 16.0 * UNIT * (max(measure.loss.size for measure in losses.measures) + 32)
