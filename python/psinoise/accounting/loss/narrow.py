"""Outputs that the panels of a quadrature leave out: where float64 does not resolve a density.

Masses are differences of the distribution function; losses lie between those at the ends of an
interval, since they are monotone between breaks, and for a log-concave law everywhere (also for
mixtures with both neighbors, of which one ratio rises and the other falls). Intervals on which
losses differ count as infinite from above, and so do masses that are not known.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from psinoise.accounting.loss.pairs import Direction, Float, Pair
from psinoise.numerics.panels import cut_panels

# Of distribution functions, relative, with what rounding a center does to them.
_CDF_ROUNDING = 1e-12
# Intervals are atoms where losses differ by no more than this share of their size.
_SAME_LOSS = 1e-5
# They are cut into at most so many pieces, until losses are closer than this share.
_MOST_PIECES, _FINE = 2048, 2e-10
# A log of a mass whose exponential is 0.
_NO_MASS = -1000.0


class NarrowAtoms(NamedTuple):
    """Bounds on losses, logs of masses from above and how far below they may be; what is beyond."""

    lowest: Float
    highest: Float
    log_mass: Float
    doubt: Float
    beyond: float


def pieces_of(pair: Pair, parts: Float) -> Float:
    """Intervals of shape ``(parts, 2)``, cut into equal pieces as losses at their ends differ."""
    ends = pair.loss(parts)
    ends[~np.isfinite(ends).all(axis=1)] = 1.0
    need = np.ptp(ends, axis=1) / np.maximum(_FINE * np.abs(ends).max(axis=1), 1e-300)
    pieces = np.clip(np.ceil(need), 1.0, _MOST_PIECES).astype(np.int64)
    return np.stack(cut_panels(parts[:, 0], parts[:, 1], pieces), axis=1)


def masses_of(pair: Pair, parts: Float, direction: Direction) -> tuple[Float, Float]:
    """Bounds on the probability under ``P`` of each interval."""
    least, most = np.zeros(len(parts)), np.zeros(len(parts))
    if not len(parts):
        return least, most
    noise, q = pair.noise, pair.sampling_rate
    shift, _ = pair.shifts(direction)
    weights = {shift: q}
    weights[0.0] = weights.get(0.0, 0.0) + (1.0 - q)
    for center, weight in weights.items():
        if weight == 0.0:
            continue
        low, high = (parts - center).T
        # The symmetric law, on the side where its distribution function has small values.
        low, high = np.where(high <= 0.0, -high, low), np.where(high <= 0.0, -low, high)
        # Intervals have ends in common, and formulas beyond tables are slow.
        ends, which = np.unique(np.abs(np.stack([low, high])), return_inverse=True)
        left, right = np.asarray(noise.ccdf(ends))[which.reshape(2, -1)]
        outer = np.where(low >= 0.0, left, 1.0 - left)
        error = _CDF_ROUNDING * outer
        least += weight * np.maximum(outer - right - error, 0.0)
        # Or the density where it is largest, which bounds no mass without end.
        some = (outer > 0.0) & np.isfinite(high)
        largest = np.full(len(parts), math.inf)
        peak = np.asarray(noise.logpdf(np.maximum(low[some], 0.0)))
        largest[some] = (high - low)[some] * np.exp(peak)
        most += weight * np.minimum(np.maximum(outer - right, 0.0) + error, largest)
    # Densities may underflow before distribution functions do.
    return least * (1.0 - 1e-12), np.maximum(most * (1.0 + 1e-12), least)


def atoms_of(pair: Pair, parts: Float, direction: Direction) -> NarrowAtoms:
    """The intervals as atoms: the same ones in both directions, in one of which some are empty."""
    least, most = masses_of(pair, parts, direction)
    alike = np.isfinite(parts).all(axis=1)
    if not pair.noise.log_concave:
        low, high = parts.T
        breaks = np.array(sorted(pair.breaks))
        alike &= np.searchsorted(breaks, low, side="right") == np.searchsorted(breaks, high)
    ends = np.zeros(parts.shape)
    ends[alike] = pair.loss(parts[alike]) * (1.0 if direction == "remove" else -1.0)
    alike &= np.isfinite(ends).all(axis=1)
    ends[~alike] = 0.0
    lowest, highest = ends.min(axis=1), ends.max(axis=1)
    alike &= highest - lowest <= _SAME_LOSS * np.maximum(np.abs(lowest), np.abs(highest))
    settled = alike & (least > 0.5 * most)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = np.where(settled, np.log(most), _NO_MASS)
        doubt = np.where(settled, np.log(most / least), 0.0)
    beyond = float(most[~settled].sum())
    return NarrowAtoms(lowest[alike], highest[alike], log_mass[alike], doubt[alike], beyond)
