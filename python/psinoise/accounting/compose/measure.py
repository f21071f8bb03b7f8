"""The finite likelihood-ratio measure: what one use, or a composition, becomes before it is read.

A measure gives masses ``p_k`` under ``P`` to losses ``l_k``; its profile is
``delta(eps) = sum p_k (1 - e^{eps - l_k})^+``. It has a *side*: it bounds the profile of a pair,
and of whatever the pair is composed with, from below or from above. Nodes are free: they need not
lie on a lattice.

Every measure is made from bins of the loss. Of a bin ``[a, a + w]`` the mass and the mean of
``x = l - a`` are known (``Bins``), under ``P``.

*Lower.* The outputs of a bin are merged to one node. Merging is post-processing and can only lower
the profile; the merged loss is ``a - log E e^{-x}``. The exponential is convex, so that
``E e^{-x} <= 1 - (E x / w) (1 - e^{-w})``, its chord: the node lies at most at the merged loss, and
lowering a loss lowers ``(1 - e^{eps - l})^+`` in every composition.

*Upper.* Each loss is split to both ends of its bin, with the share
``u(x) = (1 - e^{-x}) / (1 - e^{-w})`` for the upper one, which keeps the mass under ``P`` and under
``Q``: the likelihood ratio under ``Q`` is spread with its mean kept, and ``(P/Q - e^eps)^+`` is
convex in it, so that the profile can only rise, in every composition (Blackwell's order). ``u`` is
concave: the share ``u(E x)`` of the whole bin is at least the mean of the shares, and moving mass
up raises the profile further.

Both are off by the variance of ``x`` times the curvature of the rest of the composition, that is by
the square of the width of a bin.

Rounding
--------
Masses are right to a relative ``rounding``, losses to ``slack``. Sums of products of masses are
sums of positive terms, so that roundings add up and nothing cancels; means of losses are rounded
outwards at once (``csrc/losses/binned_products.cpp`` has the error).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from psinoise._backend import core
from psinoise.accounting.loss.pairs import Float
from psinoise.errors import CertificationError

#: "middle" is no bound: a bin stands at its mean, which is what plans are made of.
Side = Literal["lower", "middle", "upper"]

UNIT = 2.0**-53
# Log of the most mass that is ever moved as too small to matter.
_LARGEST_TRIMMED = -20.0
# The least positive float64 bounds what one product loses by underflow.
_LEAST = 5e-324


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of a loss: ``count + 1`` edges, and of each bin the mass and the mean above its edge.

    ``mean`` is the interval that holds the mean of ``x``, lower and upper ends.
    """

    edges: Float
    mass: Float
    mean: tuple[Float, Float]

    @property
    def middle(self) -> Float:
        """The mean loss of each bin."""
        return np.asarray(self.edges[:-1] + 0.5 * (self.mean[0] + self.mean[1]))


@dataclass(frozen=True, eq=False)
class Measure:
    """Masses at losses that rise; a bound on one side.

    Attributes
    ----------
    side : which bound it is
    loss, mass : of the nodes
    infinite : mass that counts as an infinite loss, from above; 0 from below
    rounding, slack : relative error of the masses, and error of the losses
    """

    side: Side
    loss: Float
    mass: Float
    infinite: float
    rounding: float
    slack: float

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest loss."""
        return float(self.loss[0]), float(self.loss[-1])


def lower_nodes(bins: Bins) -> tuple[Float, Float]:
    """One node for each bin that is not empty."""
    held = bins.mass > 0.0
    edge, width, mean = bins.edges[:-1][held], np.diff(bins.edges)[held], bins.mean[0][held]
    with np.errstate(divide="ignore"):
        merged = -np.log1p((mean / width) * np.expm1(-width))
    # Where the chord is that of a mean at the end of a wide bin the mean itself is the limit.
    return edge + np.minimum(merged, mean), bins.mass[held]


def upper_nodes(bins: Bins) -> tuple[Float, Float]:
    """Two nodes for each bin, at its ends; neighbors share theirs."""
    share = np.expm1(-bins.mean[1]) / np.expm1(-np.diff(bins.edges))
    up = bins.mass * np.minimum(share, 1.0)
    nodes = np.zeros(bins.edges.size)
    nodes[:-1] = bins.mass - up
    nodes[1:] += up
    held = nodes > 0.0
    return bins.edges[held], nodes[held]


def middle_nodes(bins: Bins) -> tuple[Float, Float]:
    """One node at the mean of each bin that is not empty."""
    held = bins.mass > 0.0
    return bins.middle[held], bins.mass[held]


_NODES: dict[Side, Callable[[Bins], tuple[Float, Float]]] = {
    "lower": lower_nodes,
    "middle": middle_nodes,
    "upper": upper_nodes,
}


def product(a: Measure, b: Measure, edges: Float) -> tuple[Measure, Bins]:
    """The composition of two measures of one side, binned again by edges that hold all sums."""
    mass, moment = core.binned_products(a.loss, a.mass, b.loss, b.mass, edges, 0)
    terms = a.loss.size + b.loss.size + 8
    relative = 2.0 * UNIT * terms
    largest = max(abs(value) for value in (*a.span, *b.span, float(edges[0]), float(edges[-1])))
    off = 16.0 * UNIT * largest
    width = np.diff(edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(mass > 0.0, moment / mass, 0.0)
    least = np.clip(mean * (1.0 - relative) - off, 0.0, width)
    most = np.clip(mean * (1.0 + relative) + off, 0.0, width)
    bins = Bins(edges, mass, (least, most))
    lost = _LEAST * (float(a.loss.size) * b.loss.size) if a.side == "upper" else 0.0
    return (
        Measure(
            a.side,
            *_NODES[a.side](bins),
            a.infinite + b.infinite + lost,
            a.rounding + b.rounding + UNIT * terms,
            a.slack + b.slack,
        ),
        bins,
    )


def exact_product(a: Measure, b: Measure) -> Measure:
    """The composition of two measures with few nodes: every product is a node of its own.

    Raises
    ------
    CertificationError
        If one of them has no node left: everything about it was cut off.
    """
    if not (a.loss.size and b.loss.size):
        raise CertificationError("nothing that is finite is left of the losses of a step")
    loss = np.add.outer(a.loss, b.loss).ravel()
    mass = np.multiply.outer(a.mass, b.mass).ravel()
    order = np.argsort(loss, kind="stable")
    loss, mass = loss[order], mass[order]
    starts = np.flatnonzero(np.diff(loss, prepend=-np.inf) > 0.0)
    largest = max(abs(value) for value in (*a.span, *b.span))
    return Measure(
        a.side,
        loss[starts],
        np.add.reduceat(mass, starts),
        a.infinite + b.infinite + (_LEAST * mass.size if a.side == "upper" else 0.0),
        a.rounding + b.rounding + UNIT * (8 + a.loss.size + b.loss.size),
        a.slack + b.slack + 4.0 * UNIT * largest,
    )


def trimmed(measure: Measure, log_large: float, log_small: Float | None) -> Measure:
    """A measure without nodes that hardly matter, still a bound on its side.

    Parameters
    ----------
    measure
        a bound
    log_large
        log of the mass of large losses that may be moved: from above to infinity, from below to the
        last node that stays
    log_small
        for each node the log of the mass, up to it, that may be moved: from above to that node,
        from below away
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
    kept = mass[begin:end].copy()
    if measure.side == "upper":
        kept[0] += float(mass[:begin].sum())
        infinite += float(mass[end:].sum()) * (1.0 + 1e-12)
    else:
        kept[-1] += float(mass[end:].sum())
    terms = UNIT * loss.size
    return Measure(
        measure.side, loss[begin:end], kept, infinite, measure.rounding + terms, measure.slack
    )
