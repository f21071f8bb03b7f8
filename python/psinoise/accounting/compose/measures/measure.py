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

Of a bin of a product two moments ``m = E x`` and ``s = E x^2`` are known. ``1 - e^{-x}`` is
``x phi(x)`` with ``phi(x) = (1 - e^{-x}) / x``, which falls and is convex, an average of
exponentials. Under the weights ``x`` Jensen's inequality gives ``excess >= m phi(s / m)``, and the
chord of ``phi`` over the bin ``excess <= m - (s / w) (1 - phi(w))``. Both are off by the third
power of the width. ``excess <= 1 - e^{-m}`` is less for some wide bins.

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

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from psinoise._backend import core
from psinoise.accounting.loss.pairs import Float

#: "middle" is no bound: a bin stands at its mean, which is what plans are made of.
Side = Literal["lower", "middle", "upper"]

#: The largest relative error of a rounded operation.
UNIT = 2.0**-53
# Log of the most mass that is ever moved as too small to matter.
_LARGEST_TRIMMED = -20.0
# Roundings of the largest edge that a bin of a product is wide, at least.
_LEAST_WIDTH = 64.0
# Excesses beyond are those of losses that are far above their edge.
_MOST_EXCESS = 1.0 - 2.0**-53
# Losses are the same that are so many roundings of the largest apart.
_SAME_LOSS = 16.0
# What is left for a node is its mass but for so many times the rounding of all.
_AGREE = 4.0
# The least positive float64 bounds what one product loses by underflow.
_LEAST = 5e-324


def lattice_edges(ends: Float, counts: Float) -> Float:
    """Edges that hold the ends, with about so many bins of equal width between neighbors.

    Widths are powers of 2, and edges multiples of them: products of nodes that come of such edges
    are sums on lattices.
    """
    finest = _LEAST_WIDTH * UNIT * max(abs(float(ends[0])), abs(float(ends[-1])))
    wanted = np.log2(np.maximum(np.diff(ends) / np.maximum(counts, 1.0), finest))
    levels = np.rint(wanted).astype(np.int64)
    unit = 2.0 ** int(levels.min())
    widths = [1 << int(level) for level in levels - levels.min()]
    place = math.floor(float(ends[0]) / unit) // widths[0] * widths[0]
    start, runs = place, []
    for end, width, after in zip((ends[1:] / unit).tolist(), widths, [*widths[1:], 0], strict=True):
        # To a multiple of the width, on by it, and down to the next one if that is smaller.
        while place % width and place < end:
            runs.append((place & -place, 1))
            place += place & -place
        count = (end - place) / width
        whole = max(math.floor(count) if after else math.ceil(count), 0)
        runs.append((width, whole))
        place += width * whole
        smaller = width
        while 0 < after < smaller and place < end:
            smaller >>= 1
            if place + smaller <= end:
                runs.append((smaller, 1))
                place += smaller
    width, count = np.array(runs).T
    return np.append(start, start + np.cumsum(np.repeat(width, count))) * unit


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


# Losses, points and masses of nodes.
Nodes = tuple[Float, Float, Float]


def lower_nodes(bins: Bins, excess: Float, below: Float | float = 0.0) -> Nodes:
    """One node for each bin; the excess is that over a loss below its edge."""
    loss = bins.edges[:-1] - below - np.log1p(-np.minimum(excess, _MOST_EXCESS))
    return _rising(bins, loss)


def middle_nodes(bins: Bins) -> Nodes:
    """One node at the mean of each bin."""
    return _rising(bins, bins.middle)


def _rising(bins: Bins, loss: Float) -> Nodes:
    """Nodes that rise: a merged loss may lie above the next, and is lowered to it."""
    held, centers = _inner(bins.mass), 0.5 * (bins.edges[:-1] + bins.edges[1:])
    loss = np.where(bins.mass > 0.0, loss, centers)[held]
    falling = np.minimum.accumulate(loss[::-1])
    return falling[::-1].copy(), centers[held], bins.mass[held]


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


def _flatness(x: Float) -> Float:
    """``(1 - e^{-x}) / x``."""
    return np.divide(-np.expm1(-x), x, out=np.ones(x.size), where=x > 0.0)


def least_excess(mean: Float, square: Float) -> Float:
    """Nowhere above the mean of ``1 - e^{-x}``, for the first two moments of ``x >= 0``."""
    ratio = np.divide(square, mean, out=np.zeros(mean.size), where=mean > 0.0)
    return np.asarray(mean * _flatness(ratio))


def most_excess(mean: Float, square: Float, width: Float) -> Float:
    """Nowhere below it, for ``x`` between 0 and the width."""
    chord = mean - square / width * (1.0 - _flatness(width))
    return np.minimum(chord, -np.expm1(-mean))


def product(a: Measure, b: Measure, edges: Float) -> tuple[Measure, Bins]:
    """The composition of two measures of one side, binned again by edges that hold all sums."""
    mass, *moments, below = core.binned_products(
        a.loss, a.point, a.mass, b.loss, b.point, b.mass, edges, 0
    )
    terms = a.loss.size + b.loss.size + 32
    relative = 2.0 * UNIT * terms
    held = mass > 0.0
    mean, square = (np.divide(m, mass, out=np.zeros(mass.size), where=held) for m in moments)
    bins = Bins(edges, mass, mean)
    if a.side == "lower":
        # Above a loss from which none is negative; terms are this much larger than their sums.
        square = square + below * (2.0 * mean + below)
        mean = np.maximum(mean + below, 0.0)
        least = np.maximum(mean - relative * (mean + 2.0 * below), 0.0)
        most = square + relative * (square + 4.0 * below * (mean + below))
        nodes = lower_nodes(bins, least_excess(least, most), below)
    elif a.side == "upper":
        least, most = square * (1.0 - relative), np.maximum(mean, 0.0) * (1.0 + relative)
        nodes = upper_nodes(bins, most_excess(most, least, np.diff(edges)))
    else:
        nodes = middle_nodes(bins)
    largest = max(abs(value) for value in (*a.span, *b.span, *edges[[0, -1]].tolist()))
    return _composed(a, b, nodes, terms, 32.0 * UNIT * largest), bins


def exact_product(a: Measure, b: Measure) -> Measure:
    """The composition of two measures with few nodes: every product is a node of its own.

    Nodes that only rounding keeps apart become one, at the end of them that is on the side of the
    bound: losses on a lattice stay on it, in any number of uses.
    """
    loss = np.add.outer(a.loss, b.loss).ravel()
    mass = np.multiply.outer(a.mass, b.mass).ravel()
    order = np.argsort(loss, kind="stable")
    loss, mass = loss[order], mass[order]
    largest = max(abs(value) for value in (*a.span, *b.span))
    starts = np.flatnonzero(np.diff(loss, prepend=-np.inf) > _SAME_LOSS * UNIT * largest)
    ends = np.append(starts[1:], loss.size) - 1
    nodes = loss[ends if a.side == "upper" else starts]
    masses = np.add.reduceat(mass, starts)
    terms = a.loss.size + b.loss.size + 8
    return _composed(a, b, (nodes, nodes, masses), terms, 4.0 * UNIT * largest)


def _composed(a: Measure, b: Measure, nodes: Nodes, terms: int, moved: float) -> Measure:
    """A product with given nodes, its rounding turned into an order where that can be.

    Masses are sums of about so many ``terms``, and losses are ``moved`` by rounding.
    """
    upper = a.side == "upper"
    rounding = a.rounding + b.rounding + UNIT * terms
    infinite = a.infinite + b.infinite
    if upper:
        infinite += _LEAST * (float(a.loss.size) * b.loss.size)
        missing = (a.missing + b.missing - a.missing * b.missing) * (1.0 - 8.0 * UNIT)
    else:
        missing = (a.missing + b.missing) * (1.0 + 4.0 * UNIT)
    loss, point, mass = nodes
    if missing < 1.0:
        sign, each = 1.0 if upper else -1.0, rounding + 4.0 * UNIT
        ordered = in_order(loss, mass, each, 1.0 - missing, sign)
        if ordered is not None:
            mass, rounding = ordered, 0.0
    slack = a.slack + b.slack + moved
    return Measure(a.side, loss, point, mass, infinite, rounding, slack, missing)


def trimmed(measure: Measure, log_large: float, log_small: Float | None) -> Measure:
    """A measure without nodes that hardly matter, still a bound on its side.

    ``log_large`` is the log of the mass of large losses that may be moved: from above to infinity,
    from below to the last node that stays. ``log_small`` is for each node the log of the mass, up
    to it, that may be moved: from above to that node, from below away.
    """
    loss, mass, infinite = measure.loss, measure.mass, measure.infinite
    beyond = np.cumsum(mass[::-1])[::-1]
    # One node stays, and a second for the edges between.
    end = max(int(np.count_nonzero(beyond > np.exp(log_large))), min(2, loss.size))
    begin = 0
    if log_small is not None:
        with np.errstate(divide="ignore"):
            small = np.log(np.cumsum(mass)) < np.minimum(log_small, _LARGEST_TRIMMED)
        begin = min(int(small.size if small.all() else np.argmin(small)), max(end - 2, 0))
    if begin == 0 and end == loss.size:
        return measure
    kept, missing = mass[begin:end].copy(), measure.missing
    if measure.side == "upper":
        kept[0] += float(mass[:begin].sum())
        moved = float(mass[end:].sum())
        infinite += moved * (1.0 + 1e-12)
        missing += moved * (1.0 - 1e-12 - measure.rounding)
    else:
        missing += float(mass[:begin].sum()) * (1.0 + 1e-12 + measure.rounding)
        kept[-1] += float(mass[end:].sum())
    return dataclasses.replace(
        measure,
        loss=loss[begin:end],
        point=measure.point[begin:end],
        mass=kept,
        infinite=infinite,
        rounding=measure.rounding + UNIT * loss.size,
        missing=missing,
    )
