"""Where to divide the losses of a composition, and how to tilt both parts (``divided_bound``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psinoise.accounting.contour.composition import Composition
from psinoise.accounting.loss.pairs import Float

_THRESHOLDS = 128
# Tilts to try, in units of that of the whole.
_TILTS = 2.0 ** np.arange(-8.0, 6.25, 0.25)
# A division is worth it if it takes this off the log of what rounding is relative to.
_LEAST_GAIN = 3.0


class Norms(NamedTuple):
    """Logs of the tilted masses of one use of one step.

    Attributes
    ----------
    small : of the small losses, tilted for compositions of these
    beside, large : of the small and of the large losses, tilted for compositions with a large one
    uses : their number
    """

    small: float
    beside: float
    large: float
    uses: float


class Division(NamedTuple):
    """A loss that divides the measures of all steps, and a tilt for what either part makes.

    Attributes
    ----------
    threshold : losses above it are large
    below : tilt of compositions without a large loss
    above : tilt of compositions with at least one
    norms : of the steps
    """

    threshold: float
    below: float
    above: float
    norms: tuple[Norms, ...]

    def log_weight(self, norms: Norms, log_mass: Float, loss: Float) -> Float:
        """Logs of shares of outputs of a step in the tilted mass of the part where it is largest.

        Large losses are those of one of the uses.
        """
        large = norms.large + np.log(norms.uses)
        beside = np.where(loss > self.threshold, large, norms.beside)
        weight = self.above * loss - beside
        small = np.where(loss > self.threshold, -np.inf, self.below * loss - norms.small)
        return np.asarray(log_mass + np.maximum(weight, small))


def divide(composition: Composition, tilt: float, epsilon: float) -> Division | None:
    """The division for which the larger of both Chernoff bounds on delta at epsilon is least.

    None if that is about the bound of the whole.
    """
    tilts = tilt * _TILTS
    losses = np.concatenate([measure.loss for measure in composition.measures])
    # Of each step some losses are small.
    floor = max(0.0, *(float(measure.loss.min()) for measure in composition.measures))
    losses = np.sort(losses[losses > floor])
    if losses.size == 0:
        return None
    thresholds = losses[:: max(losses.size // _THRESHOLDS, 1)]
    lows, highs = [], []
    for measure in composition.measures:
        order = np.argsort(measure.loss)
        loss = measure.loss[order]
        terms = measure.log_mass[order][:, None] + tilts * loss[:, None]
        small = np.logaddexp.accumulate(terms, axis=0)
        large = np.logaddexp.accumulate(terms[::-1], axis=0)[::-1]
        last = np.searchsorted(loss, thresholds, side="right")[:, None]
        lows.append(small[last[:, 0] - 1])
        highs.append(
            np.where(last < loss.size, large[np.minimum(last[:, 0], loss.size - 1)], -np.inf)
        )
    weight = -tilts * np.log1p(1.0 / tilts) - np.log1p(tilts) - tilts * epsilon
    counts = composition.counts
    below, rises = np.zeros_like(lows[0]), np.zeros_like(lows[0])
    for low, high, count in zip(lows, highs, counts, strict=True):
        below += count * low
        rises += count * np.logaddexp(0.0, high - low)
    without, within = below + weight, below + _log_expm1(rises) + weight
    worst = np.maximum(without.min(axis=1), within.min(axis=1))
    best = int(np.argmin(worst))
    if worst[best] > (below + rises + weight)[best].min() - _LEAST_GAIN:
        return None
    one, other = int(np.argmin(without[best])), int(np.argmin(within[best]))
    norms = (
        Norms(float(low[best, one]), float(low[best, other]), float(high[best, other]), count)
        for low, high, count in zip(lows, highs, counts, strict=True)
    )
    return Division(float(thresholds[best]), float(tilts[one]), float(tilts[other]), tuple(norms))


def _log_expm1(x: Float) -> Float:
    with np.errstate(divide="ignore"):
        return np.asarray(x + np.log(-np.expm1(-x)))
