"""The finite likelihood-ratio measure: what one use, or a composition, becomes before it is read.

A measure gives masses ``p_k`` under ``P`` to losses ``l_k``, anywhere; its profile is
``delta(eps) = sum p_k (1 - e^{eps - l_k})^+``. It has a *side*: it bounds the profile of a pair,
and of whatever the pair is composed with, from below or from above.

Measures are made from bins of the loss. A bin ``[a, a + w]`` has a mass, and its *excess* is the
mean of ``1 - e^{-x}`` under ``P``, ``x = l - a``: what it has less under ``Q`` than at ``a``.

*Lower.* The outputs of a bin are merged to one node, at ``a - log(1 - excess)``. Merging is
post-processing and can only lower the profile; so does a smaller excess.

*Upper.* Each loss is split to both ends of its bin, with the share
``(1 - e^{-x}) / (1 - e^{-w})`` for the upper one, which keeps the mass under ``P`` and under ``Q``:
the likelihood ratio under ``Q`` is spread with its mean kept, and ``(P/Q - e^eps)^+`` is convex in
it, so that the profile can only rise, in every composition (Blackwell's order). A larger excess
moves mass up, which raises it further.

Both are off by the variance of ``x`` times the curvature of the rest of the composition: by the
square of the width of a bin.

*Rounding.* Masses are right to a relative ``rounding``, losses to ``slack``. Sums of products of
masses are sums of positive terms, so that roundings add up and nothing cancels; the moments are
exact ones of losses that are off by a slack, but for a relative error
(``csrc/losses/binned_products.cpp``).

Very many uses would raise the rounding of masses to their number. But where it is known what all of
them lack of 1 it need not grow: masses above some loss are rounded outwards, those below it the
other way, and that loss gets what is left (``in_order``). Of an upper bound every ``P(L >= l)`` is
then at least that of the true one, of a lower bound at most; sums of independent losses keep that
order, and ``(1 - e^{eps - L})^+`` rises with ``L``.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.measures.bins import BinMasses, masses_in_bins
from psinoise.accounting.compose.measures.dense import Dense, Mask
from psinoise.accounting.loss.pairs import Float

#: "middle" is no bound: a bin stands at its mean, which is what plans are made of.
Side = Literal["lower", "middle", "upper"]
#: Those that are bounds.
SIDES: tuple[Side, Side] = ("lower", "upper")

#: The largest relative error of a rounded operation.
UNIT = 2.0**-53
# Excesses beyond are those of losses that are far above their edge.
_MOST_EXCESS = 1.0 - 2.0**-53
#: What masses, and sums of them, may lose below the least float64, all together.
MASS_UNDERFLOW = 1e-316
# Of wider bins nothing is known of the mean.
_WIDEST = 1e150
# What is left for a node is its mass but for so many times the rounding of all.
_AGREE = 4.0


@functools.lru_cache(maxsize=8)
def transform_of(points: int) -> core.Transform:
    """The transform of so many points; it holds the twiddle factors."""
    return core.Transform(points)


def transform_units(points: int) -> float:
    """What results of `core.Transform` are off by, in units of rounding of the sum of the sizes of
    what it adds up; the proof is in csrc/kernels/compose.cpp."""
    return 5.9 * math.log2(points) + 21.0


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of a loss: ``count + 1`` edges, and of each bin the mass and the mean above its edge.

    Of a product the mean may lie outside: bins hold sums by their points.
    """

    edges: Float
    mass: Float
    mean: Float

    @property
    def middle(self) -> Float:
        return np.asarray(self.edges[:-1] + self.mean)


@dataclass(frozen=True, eq=False)
class Measure:
    """Masses at losses that rise; a bound on one side.

    Attributes
    ----------
    side : which bound it is
    loss, mass : of the nodes
    point : the middle of the bin of each node from below, the node itself from above
    infinite : mass that counts as an infinite loss, from above; 0 from below
    rounding, slack : relative error of the masses, and error of the losses
    missing : what the true masses lack of 1, at most from below and at least from above; NaN where
        that is not known
    """

    side: Side
    loss: Float
    point: Float
    mass: Float
    infinite: float
    rounding: float
    slack: float
    missing: float = math.nan

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest loss, or point."""
        loss, point = self.loss, self.point
        return float(min(loss[0], point[0])), float(max(loss[-1], point[-1]))


# Losses, points and masses of nodes.
Nodes = tuple[Float, Float, Float]


def averages(sums: Float, masses: Float) -> Float:
    """Means of what was summed over some masses; 0 where there are none."""
    return np.divide(sums, masses, out=np.zeros(masses.size), where=masses > 0.0)


def in_order(
    loss: Float, mass: Float, rounding: Float | float, total: float, sign: float
) -> Float | None:
    """Masses that sum to a total and are rounded outwards, so that losses are larger, or smaller.

    None where what is left for the node next to the mean is not its own mass but for rounding.
    """
    mean = float(np.sum(mass * loss)) / max(float(mass.sum()), 1e-300)
    last = int(np.searchsorted(loss, mean, side="right"))
    held = np.flatnonzero(mass[:last] > 0.0)
    if not held.size:
        return None
    pivot = int(held[-1])
    factors = np.where(np.arange(mass.size) > pivot, 1.0, -1.0) * sign * rounding
    found = mass * (1.0 + factors)
    found[pivot] = 0.0
    left = total - math.fsum(found.tolist())
    left += sign * 4.0 * UNIT * (abs(left) + abs(total) + 4.0 * UNIT)
    if not (left > 0.0 and abs(left - mass[pivot]) <= _AGREE * float(np.sum(mass * rounding))):
        return None
    found[pivot] = left
    return found


def lower_nodes(bins: Bins, excess: Float, below: Float | float = 0.0) -> Nodes:
    """One node for each bin; the excess is that over a loss below its edge."""
    loss = bins.edges[:-1] - below - np.log1p(-np.minimum(excess, _MOST_EXCESS))
    return _rising(bins, loss)


def middle_nodes(bins: Bins) -> Nodes:
    """One node at the mean of each bin."""
    return _rising(bins, bins.middle)


def _rising(bins: Bins, loss: Float) -> Nodes:
    """Nodes that rise: a merged loss, of sums near a point of the bin, may lie above the next."""
    held, centers = _inner(bins.mass), 0.5 * (bins.edges[:-1] + bins.edges[1:])
    loss, mass = np.where(bins.mass > 0.0, loss, centers)[held], bins.mass[held]
    if not (loss[1:] >= loss[:-1]).all():
        # In order no loss is farther from a point than one was.
        order = np.argsort(loss, kind="stable")
        loss, mass = loss[order], mass[order]
    return loss, centers[held], mass


def upper_nodes(bins: Bins, excess: Float) -> Nodes:
    """Two nodes for each bin, at its ends; neighbors share theirs."""
    up = bins.mass * np.minimum(excess / -np.expm1(-np.diff(bins.edges)), 1.0)
    nodes = np.zeros(bins.edges.size)
    nodes[:-1] = bins.mass - up
    nodes[1:] += up
    held = _inner(nodes)
    return bins.edges[held], bins.edges[held], nodes[held]


def _inner(mass: Float) -> slice:
    """From the first to the last that is not empty: nodes between keep a lattice."""
    held = np.flatnonzero(mass)
    return slice(int(held[0]), int(held[-1]) + 1) if held.size else slice(0, 1)


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


def certain(measure: Measure, source: Dense) -> Measure:
    """The measure of one use, or what stands for it where no bin has an edge, or a mass.

    From above every loss may be infinite then; from below all outputs count as one, whose loss is
    0, which is post-processing.
    """
    total = float(measure.mass.sum())
    if math.isfinite(measure.slack + total) and (total > 0.0 or source.beyond < 0.5):
        return measure
    none, above = np.zeros(1), measure.side == "upper"
    return Measure(measure.side, none, none, none if above else np.ones(1), float(above), 0.0, 0.0)


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
    sign = 1.0 if (side == "upper" if up is None else up) else -1.0
    # Q(bin) / P(bin) e^a = 1 - excess / mass.
    share = averages(found.excess, found.mass) * (1.0 + 2.0 * sign * found.rounding[:-1])
    share = np.clip(share, 0.0, -np.expm1(-width))
    # The mean of an even density, for plans: the logarithm of a mean ratio is less by half the
    # variance, which very many uses would notice.
    mean = -np.log1p(-np.minimum(share, 1.0 - 2.0**-53)) + np.minimum(width, _WIDEST) ** 2 / 24.0
    inside, at_edges, missing = _outwards(found, edges, side)
    bins = Bins(edges, inside, np.clip(mean, 0.0, width))
    infinite = 0.0
    if side == "middle":
        loss, point, mass = middle_nodes(bins)
    elif side == "lower":
        loss, point, mass = lower_nodes(bins, share)
    else:
        loss, point, mass = upper_nodes(bins, share)
        infinite = found.above + (MASS_UNDERFLOW if smooth else 0.0)
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
    return Measure(side, loss, point, mass, infinite, 4.0 * UNIT, found.slack, missing), bins


def _outwards(found: BinMasses, edges: Float, side: Side) -> tuple[Float, Float, float]:
    """Masses of bins and on edges with their rounding, outwards; and what all together lack of 1.

    Bins keep the shares of their mass that go to their ends, so that nodes are in order if bins
    are. Else each mass bears its own rounding, as those of rare ones are not those of all, and what
    they lack is not known.
    """
    if side == "middle":
        # What they miss 1 by, very many uses would notice.
        total = float(found.mass.sum() + found.at_edges.sum()) + found.below + found.above
        share = 1.0 / total if found.whole and total > 0.5 else 1.0
        return share * found.mass, share * found.at_edges, math.nan
    sign = 1.0 if side == "upper" else -1.0
    if found.whole:
        # Edges, and the bins between.
        loss, mass, rounding = (np.empty(2 * edges.size - 1) for _ in range(3))
        loss[::2], loss[1::2] = edges, edges[:-1]
        mass[::2], mass[1::2] = found.at_edges, found.mass
        rounding[::2], rounding[1::2] = found.rounding, found.rounding[:-1]
        # At most what is not in the bins, of which a node gets ``below``; from below at least that.
        left_out, missing = found.below * (1.0 - found.cut), 0.0
        if side == "lower":
            left_out = missing = (found.below + found.above) * (1.0 + 1e-9)
        ordered = in_order(loss, mass, rounding, 1.0 - left_out, sign)
        if ordered is not None:
            return ordered[1::2].copy(), ordered[::2].copy(), missing
    outwards = np.maximum(1.0 + sign * found.rounding, 0.0)
    return found.mass * outwards[:-1], found.at_edges * outwards, math.nan


def _with_edges(bins: Bins, at_edges: Float) -> Bins:
    """The bins, with what lies on an edge counted in the bin above it, or in the last one."""
    more = at_edges[:-1].copy()
    more[-1] += at_edges[-1]
    mass, moment = bins.mass + more, bins.mass * bins.mean
    moment[-1] += at_edges[-1] * (bins.edges[-1] - bins.edges[-2])
    return Bins(bins.edges, mass, averages(moment, mass))
