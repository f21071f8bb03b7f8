"""Where to divide the losses of a composition, and how to tilt both parts: see ``divided_bound``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psinoise.accounting.composition import Composition
from psinoise.accounting.pairs import Float

_THRESHOLDS = 128
# Tilts to try, in units of that of the whole.
_TILTS = 2.0 ** np.arange(-8.0, 6.25, 0.25)


class Division(NamedTuple):
    """A loss that divides the measures of all steps, and a tilt for what either part makes.

    Attributes
    ----------
    threshold : losses above it are large
    below : tilt of compositions without a large loss
    above : tilt of compositions with at least one
    """

    threshold: float
    below: float
    above: float


def divide(composition: Composition, tilt: float, epsilon: float) -> Division:
    """The division for which the larger of both Chernoff bounds on delta at epsilon is least."""
    tilts = tilt * _TILTS
    losses = np.concatenate([measure.loss for measure in composition.measures])
    losses = np.sort(losses[losses > 0.0])
    thresholds = losses[:: max(losses.size // _THRESHOLDS, 1)]
    below = np.zeros((thresholds.size, tilts.size))
    rises = np.zeros_like(below)
    for measure, count in zip(composition.measures, composition.counts, strict=True):
        order = np.argsort(measure.loss)
        loss = measure.loss[order]
        terms = measure.log_mass[order][:, None] + tilts * loss[:, None]
        small = np.logaddexp.accumulate(terms, axis=0)
        large = np.logaddexp.accumulate(terms[::-1], axis=0)[::-1]
        last = np.searchsorted(loss, thresholds, side="right")
        low = np.where(last[:, None] > 0, small[last - 1], -np.inf)
        high = np.where(last[:, None] < loss.size, large[np.minimum(last, loss.size - 1)], -np.inf)
        below += count * low
        rises += count * np.logaddexp(0.0, high - low)
    weight = log_largest_weight(tilts) - tilts * epsilon
    without = below + weight
    within = below + _log_expm1(rises) + weight
    worst = np.maximum(without.min(axis=1), within.min(axis=1))
    best = int(np.argmin(worst))
    return Division(
        float(thresholds[best]),
        float(tilts[np.argmin(without[best])]),
        float(tilts[np.argmin(within[best])]),
    )


def log_largest_weight(tilt: Float) -> Float:
    """Log of the maximum of ``(1 - e^{-y}) e^{-t y}``, as in Chernoff's bound on delta."""
    return np.asarray(-tilt * np.log1p(1.0 / tilt) - np.log1p(tilt))


def _log_expm1(x: Float) -> Float:
    with np.errstate(divide="ignore"):
        return np.asarray(x + np.log(-np.expm1(-x)))
