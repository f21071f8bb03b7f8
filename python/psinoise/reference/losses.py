"""Panels and bins of a privacy loss: twins of ``csrc/losses`` and ``csrc/kernels/pieces.cpp``."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd
from psinoise.numerics.elementary import exponential, log_one_plus, logarithm
from psinoise.numerics.panels import Panels, refined_panels
from psinoise.reference.law import LawTable

Float = NDArray[np.float64]

# p is below e^-40 of q p(x - shift) where the log of their ratio is this much larger.
_ALONE = 40.0
# Nodes that carry less than this of the tilted mass, as a logarithm, do not count.
_NEGLIGIBLE = -40.0
# Range of the complex exponent over half a panel that 16 nodes integrate to 1e-15.
_LARGEST_TILT = 14.0
_LARGEST_PHASE = 12.0
#: Pieces of a panel on which log p varies by at most 3/4 (panels allow 8, and half as much again).
PIECES_PER_PANEL = 16
_RULE = np.polynomial.legendre.leggauss(6)
# Halves of panels, until only rounding is left.
_BISECTIONS = 64


@dataclass(frozen=True)
class _Use:
    """One use of the noise: P and Q are mixtures of it and of itself moved, at a rate."""

    law: LawTable
    scale: float
    shift_p: float
    shift_q: float
    rate: float

    def log_density(self, x: Float) -> dd.Pair:
        """``log p(x)``, up to the log of the scale; NaN beyond the table."""
        hi, lo = dd.divide(np.abs(x), np.full_like(x, self.scale))
        inside = hi < self.law.log_density.limit
        return self.law.log_density.pair(np.where(inside, hi, 0.0), np.where(inside, lo, np.nan))

    def moved(self, shift: float, x: Float, base: dd.Pair) -> tuple[dd.Pair, Float]:
        """``log p(x - shift)``, and how far it is above ``log p(x)``, which is ``base``."""
        if shift == 0.0:
            return base, np.zeros_like(x)
        if self.law.close_error(self.scale, shift, self.rate) > 0.0:
            ratio = self._close_ratio(shift, x)
            hi, lo = dd.two_sum(base[0], ratio)
            return (hi, lo + base[1]), ratio
        hi, lo = self.log_density(x - shift)
        return (hi, lo), np.asarray((hi - base[0]) + (lo - base[1]))

    def _close_ratio(self, shift: float, x: Float) -> Float:
        """The ratio of neighbors that hardly differ; twin of ``csrc/kernels/close_ratios.hpp``."""
        size, moved, distance = abs(shift), x - shift, np.abs(x)
        across = ((x > 0.0) & (moved < 0.0)) | ((x < 0.0) & (moved > 0.0))
        inwards = ((x > 0.0) == (shift > 0.0)) & (x != 0.0)
        farther = np.where(across, size - 2.0 * distance, np.where(inwards, -size, size))
        rises = farther >= 0.0
        nearest = np.where(rises, distance, np.maximum(distance + farther, 0.0))
        change = self.law.log_density.rise(nearest / self.scale, np.abs(farther) / self.scale)
        return np.where(np.isnan(x), x, np.where(rises, change, -change))

    def mixed(self, ratio: Float, shift: float) -> Float:
        """``log(1 - q + q e^r)``; as it is without a shift or sampling."""
        if shift == 0.0 or self.rate == 1.0:
            return ratio
        capped = np.minimum(ratio, 600.0)
        change = self.rate * np.expm1(capped)
        plain = logarithm((1.0 - self.rate) + self.rate * np.exp(capped))
        moderate = np.where(change > -0.5, log_one_plus(change), plain)
        return np.where(ratio > 600.0, ratio + _log(self.rate), moderate)

    def sample(self, x: Float) -> tuple[Float, Float, Float]:
        """``log Q``, the loss without sampling, and the loss; NaN beyond the table."""
        with np.errstate(all="ignore"):
            base = self.log_density(x)
            ratio_p, ratio_q = (
                self.moved(shift, x, base)[1] for shift in (self.shift_p, self.shift_q)
            )
            log_p, log_q = self.mixed(ratio_p, self.shift_p), self.mixed(ratio_q, self.shift_q)
            log_density = ((base[0] - _log(self.scale)) + base[1]) + log_q
        return log_density, ratio_p - ratio_q, log_p - log_q

    def losses(self, x: Float) -> Float:
        """``log P/Q``."""
        base = self.log_density(x)
        log_p, log_q = (
            self.mixed(self.moved(shift, x, base)[1], shift)
            for shift in (self.shift_p, self.shift_q)
        )
        return log_p - log_q

    def log_p(self, x: Float, base: dd.Pair) -> tuple[Float, dd.Pair]:
        """``log P/p``, and ``log P`` up to the log of the scale.

        Where the ratio is so large that ``p`` adds nothing, not as a sum with a loss as large as
        that.
        """
        shift = self.shift_p
        moved, ratio = self.moved(shift, x, base)
        loss = self.mixed(ratio, shift)
        if shift == 0.0:
            return loss, base
        log_rate = _log(self.rate)
        near = (ratio <= _ALONE - log_rate) & (self.rate < 1.0)
        hi, lo = dd.two_sum(np.where(near, base[0], moved[0]), np.where(near, loss, log_rate))
        return loss, (hi, lo + np.where(near, base[1], moved[1]))


def _log(x: float) -> float:
    return float(logarithm(np.array([x]))[0])


def loss_panels(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    points: Float,
    last: Float,
    edges: Float,
    floor: float,
) -> Panels | None:
    """Panels that resolve both densities and the loss; None if some lie beyond the table."""
    use = _Use(law, scale, shift_p, shift_q, rate)

    def sample(x: Float) -> tuple[Float, Float, Float]:
        found = use.sample(x)
        if np.isnan(found[0] + found[2]).any():
            raise _BeyondTableError
        return found

    try:
        close = law.close_error(scale, shift_p if shift_p != 0.0 else shift_q, rate)
        return refined_panels(sample, points, last, edges, floor, close)
    except _BeyondTableError:
        return None


def point_losses(
    law: LawTable, scale: float, shift_p: float, shift_q: float, rate: float, x: Float
) -> tuple[Float, Float, Float]:
    """``log Q``, the loss without sampling, and the loss at any points; NaN beyond the table."""
    return _Use(law, scale, shift_p, shift_q, rate).sample(x)


class _BeyondTableError(Exception):
    """Some outputs have no density in the table."""


def panel_pieces(
    log_mass: Float,
    loss: Float,
    panels: int,
    order: int,
    c: float,
    value: float,
    frequency: float,
) -> NDArray[np.int64]:
    """Into how many pieces panels must be cut to resolve ``exp((c + i t) L)`` of a loss."""
    nodes = panels * order
    if min(log_mass.size, loss.size) < nodes:
        raise ValueError("there must be a node for each point of each panel")
    loss = loss[:nodes].reshape(panels, order)
    tilted = log_mass[:nodes].reshape(panels, order) + (c * loss - value)
    swing = np.ptp(np.maximum(tilted, _NEGLIGIBLE - 10.0), axis=1) / _LARGEST_TILT
    heavy = tilted > _NEGLIGIBLE
    highest = np.where(heavy, loss, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(heavy, loss, np.inf).min(axis=1, initial=np.inf)
    turns = np.maximum(highest - lowest, 0.0) * frequency / _LARGEST_PHASE
    need = np.where(heavy.any(axis=1), np.maximum(swing, turns), 0.0)
    return np.asarray(np.ceil(np.clip(need, 1.0, 2.0**40)).astype(np.int64))


def loss_bins(
    law: LawTable,
    scale: float,
    shift_p: float,
    shift_q: float,
    rate: float,
    x: Float,
    loss: Float,
    slope: Float,
    levels: Float,
    tilt: float,
    log_norm: float,
    tolerance: float,
) -> tuple[Float, Float, float]:
    """Tilted masses and excesses of the bins between levels, and the largest error of an edge."""
    del slope, tolerance  # edges are as right as rounding allows
    if x.ndim != 2 or x.shape[1] < 2:
        raise ValueError("panels must have two samples each")
    if levels.size < 2:
        raise ValueError("there must be at least two levels")
    use = _Use(law, scale, shift_p, shift_q, rate)
    count = levels.size - 1
    turn = np.where(loss[:, -1:] >= loss[:, :1], 1.0, -1.0)  # losses rise or fall along a panel
    first, last = turn * loss[:, :1], turn * loss[:, -1:]
    panel, level = np.nonzero((turn * levels > first) & (turn * levels < last))
    points, error = _level_points(use, turn[panel], x[panel], loss[panel], levels[level, None])
    cuts = x[:, :1] + (x[:, -1:] - x[:, :1]) * np.linspace(0.0, 1.0, PIECES_PER_PANEL + 1)
    cuts[:, -1] = x[:, -1]
    owner = np.append(np.arange(x.shape[0]).repeat(PIECES_PER_PANEL + 1), panel)
    edges = np.append(cuts, points)
    order = np.lexsort((edges, owner))
    edges, inner = edges[order], np.diff(owner[order]) == 0
    left, right = edges[:-1][inner], edges[1:][inner]
    bins = np.searchsorted(levels, use.losses(left + 0.5 * (right - left)), side="right") - 1
    bins = np.clip(bins, 0, count - 1)
    parts = _piece_masses(use, left, right, levels[bins], tilt, log_norm)
    sums = np.zeros((2, count))
    # Parts that follow each other in one bin are rounded once.
    starts = np.flatnonzero(np.diff(bins, prepend=-1)).tolist()
    for start, stop in itertools.pairwise([*starts, bins.size]):
        sums[:, bins[start]] += [math.fsum(part[start:stop].tolist()) for part in parts]
    return sums[0], sums[1], error


def _level_points(
    use: _Use, turn: Float, x: Float, loss: Float, levels: Float
) -> tuple[Float, float]:
    """Where losses of panels, with their samples, have levels: bisection; and the error."""
    rows = np.arange(levels.size)
    k = np.clip(np.count_nonzero(turn * loss <= turn * levels, axis=1), 1, x.shape[1] - 1)
    below, above, (levels, turn) = x[rows, k - 1], x[rows, k], (levels[:, 0], turn[:, 0])
    for _ in range(_BISECTIONS):
        point = 0.5 * (below + above)
        low = turn * (use.losses(point) - levels) < 0.0
        below, above = np.where(low, point, below), np.where(low, above, point)
    errors = [np.abs(use.losses(point) - levels) for point in (below, above)]
    points = np.where(errors[0] < errors[1], below, above)
    return points, float(np.minimum(*errors).max(initial=0.0))


def _piece_masses(
    use: _Use, left: Float, right: Float, levels: Float, tilt: float, log_norm: float
) -> tuple[Float, Float]:
    """Tilted mass of each piece and its excess over the level."""
    points, weights = _RULE
    half = 0.5 * (right - left)[:, None]
    x = (left[:, None] + half) + half * points
    level = np.broadcast_to(levels[:, None], x.shape)
    with np.errstate(all="ignore"):
        base = use.log_density(x)
        loss_p, log_p = use.log_p(x, base)
        loss_q = use.mixed(use.moved(use.shift_q, x, base)[1], use.shift_q)
        # Levels, and so tilts, may be far larger than what is left of them.
        tilted = dd.two_product(np.full_like(x, tilt), level)
        normed = dd.two_sum(tilted[0], np.full_like(x, -log_norm))
        exponent, rest = dd.two_sum(log_p[0], normed[0])
        rest = rest + (log_p[1] + (normed[1] + tilted[1]))
        # In units of the scale, as densities are: in those of outputs they might underflow.
        density = (half / use.scale) * weights * exponential(exponent, rest)
        over = density * -np.expm1(-np.clip((loss_p - loss_q) - level, 0.0, 700.0))
    return density.sum(axis=1), over.sum(axis=1)
