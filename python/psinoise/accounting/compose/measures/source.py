"""From the loss of one use to a measure: bins of a density, or of atoms, with any edges."""

from __future__ import annotations

import math

import numpy as np

from psinoise.accounting.compose.measures.bins import BinMasses, masses_in_bins
from psinoise.accounting.compose.measures.dense import Dense, Mask
from psinoise.accounting.compose.measures.measure import (
    UNIT,
    Bins,
    Measure,
    Side,
    in_order,
    lower_nodes,
    middle_nodes,
    upper_nodes,
)
from psinoise.accounting.loss.pairs import Float

# What masses of panels may lose below the least float64, all together.
_UNDERFLOW = 1e-316
# Of wider bins nothing is known of the mean.
_WIDEST = 1e150


def covering(source: Dense, chosen: Mask) -> tuple[float, float]:
    """An interval with all chosen losses inside, and their rounding."""
    low, high = float(source.lowest[chosen].min()), float(source.highest[chosen].max())
    room = 2.0 * source.rounding + 1e-15 * max(abs(low), abs(high)) + 1e-300
    return low - room, high + room


def apart(edges: Float, distance: float) -> Float:
    """Edges that rise by more than a distance, but for the last one."""
    place = np.floor((edges - edges[0]) / distance) if distance > 0.0 else np.arange(edges.size)
    kept = np.diff(place, prepend=-1.0) > 0.0
    kept[-1] = True
    return edges[kept]


def measure_of(
    source: Dense, chosen: Mask, large: Mask, edges: Float, side: Side
) -> tuple[Measure, Bins]:
    """The measure of one use on one side, and its bins; the masks are those of `masses_in_bins`."""
    found = masses_in_bins(source, chosen, large, edges)
    return measure_of_masses(found, edges, side, smooth=source.panels > 0)


def measure_of_masses(
    found: BinMasses, edges: Float, side: Side, *, smooth: bool, up: bool | None = None
) -> tuple[Measure, Bins]:
    """The same from the masses.

    ``smooth`` says whether they are of panels too, and ``up`` which way losses are rounded: by
    default up for an upper bound.
    """
    width = np.diff(edges)
    held = found.mass > 0.0
    share = np.zeros(width.size)
    np.divide(found.excess, found.mass, out=share, where=held)
    # Q(bin) / P(bin) e^a = 1 - excess / mass.
    sign = 1.0 if (side == "upper" if up is None else up) else -1.0
    share = np.clip(share * (1.0 + 2.0 * sign * found.rounding[:-1]), 0.0, -np.expm1(-width))
    # The mean of an even density, for plans: the logarithm of a mean ratio is less by half the
    # variance, which very many uses would notice.
    mean = -np.log1p(-np.minimum(share, 1.0 - 2.0**-53)) + np.minimum(width, _WIDEST) ** 2 / 24.0
    inside, at_edges, settled = _outwards(found, edges, side)
    bins = Bins(edges, inside, np.clip(mean, 0.0, width))
    infinite = 0.0
    if side == "middle":
        loss, point, mass = middle_nodes(bins)
    elif side == "lower":
        loss, point, mass = lower_nodes(bins, share)
    else:
        loss, point, mass = upper_nodes(bins, share)
        infinite = found.above + (_UNDERFLOW if smooth else 0.0)
        first = int(np.searchsorted(loss, edges[found.ceiling]))
        mass[min(first, loss.size - 1)] += found.below
    on_edge = at_edges > 0.0
    if on_edge.any():
        bins = _with_edges(bins, at_edges)
        loss = np.concatenate([loss, edges[on_edge]])
        mass = np.concatenate([mass, at_edges[on_edge]])
        order = np.argsort(loss, kind="stable")
        loss, mass = loss[order], mass[order]
        point = loss
    missing = math.nan
    if found.whole and settled:
        missing = 0.0 if side == "upper" else (found.below + found.above) * (1.0 + 1e-9)
    return Measure(side, loss, point, mass, infinite, 4.0 * UNIT, found.slack, missing), bins


def _outwards(found: BinMasses, edges: Float, side: Side) -> tuple[Float, Float, bool]:
    """Masses of bins and on edges with their rounding, outwards; and whether in order of losses.

    Bins keep the shares of their mass that go to their ends, so that nodes are in order if bins
    are. Else each mass bears its own rounding: those of rare ones are not those of all.
    """
    if side == "middle":
        return found.mass, found.at_edges, False
    sign = 1.0 if side == "upper" else -1.0
    if found.whole:
        # Edges, and the bins between.
        loss, mass, rounding = (np.empty(2 * edges.size - 1) for _ in range(3))
        loss[::2], loss[1::2] = edges, edges[:-1]
        mass[::2], mass[1::2] = found.at_edges, found.mass
        rounding[::2], rounding[1::2] = found.rounding, found.rounding[:-1]
        total = 1.0 - found.below * (1.0 - found.cut)
        if side == "lower":
            total = 1.0 - (found.below + found.above) * (1.0 + 1e-9)
        ordered = in_order(loss, mass, rounding, total, sign)
        if ordered is not None:
            return ordered[1::2].copy(), ordered[::2].copy(), True
    outwards = np.maximum(1.0 + sign * found.rounding, 0.0)
    return found.mass * outwards[:-1], found.at_edges * outwards, False


def _with_edges(bins: Bins, at_edges: Float) -> Bins:
    """The bins, with what lies on an edge counted in the bin above it, or in the last one."""
    more = at_edges[:-1].copy()
    more[-1] += at_edges[-1]
    mass = bins.mass + more
    moment = bins.mass * bins.mean
    moment[-1] += at_edges[-1] * (bins.edges[-1] - bins.edges[-2])
    mean = np.divide(moment, mass, out=np.zeros(mass.size), where=mass > 0.0)
    return Bins(bins.edges, mass, mean)
