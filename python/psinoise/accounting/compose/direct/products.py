"""Products of measures: powers of steps, sums of losses binned again, and what may be trimmed.

Of a bin of a product two moments ``m = E x`` and ``s = E x^2`` are known. ``1 - e^{-x}`` is
``x phi(x)`` with ``phi(x) = (1 - e^{-x}) / x``, which falls and is convex, an average of
exponentials. Under the weights ``x`` Jensen's inequality gives ``excess >= m phi(s / m)``, and the
chord of ``phi`` over the bin ``excess <= m - (s / w) (1 - phi(w))``. Both are off by the third
power of the width. ``excess <= 1 - e^{-m}`` is less for some wide bins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.direct.plan import Key
from psinoise.accounting.compose.measures.measure import (
    UNIT,
    Bins,
    Measure,
    Nodes,
    averages,
    in_order,
    lower_nodes,
    middle_nodes,
    upper_nodes,
)
from psinoise.accounting.loss.pairs import Float

# Log of the most mass that is ever moved as too small to matter.
_LARGEST_TRIMMED = -20.0
# Losses are the same that are so many roundings of the largest apart.
_SAME_LOSS = 16.0
# The least positive float64 bounds what one product loses by underflow.
_LEAST = 5e-324

Part = TypeVar("Part")


def halves(
    parts: Sequence[Part], counts: Sequence[int], product: Callable[[Part, Part, Key, int], Part]
) -> tuple[Part, Part | None]:
    """Two parts whose product has so many uses of each part; the second is none for one use.

    In the manner of Horner: from the highest binary digit of the counts on, what there is is
    composed with itself, and with each part whose count has the next digit. ``product`` gets two
    parts, the name of the stage and the uses that the result stands for.
    """
    operations: list[tuple[Part | None, int]] = []
    for bit in range(max(counts).bit_length() - 1, -1, -1):
        if operations:
            operations.append((None, 1 << bit))
        each = zip(parts, counts, strict=True)
        operations += [(part, 1 << bit) for part, count in each if count >> bit & 1]
    current, other, before = operations[0][0], None, 1
    assert current is not None
    for place, (part, uses) in enumerate(operations[1:]):
        if other is not None:
            current = product(current, other, ("product", place), before)
        other, before = current if part is None else part, uses
    return current, other


def _flatness(x: Float) -> Float:
    """``(1 - e^{-x}) / x``."""
    return np.divide(-np.expm1(-x), x, out=np.ones(x.size), where=x > 0.0)


def least_excess(mean: Float, square: Float) -> Float:
    """Nowhere above the mean of ``1 - e^{-x}``, for the first two moments of ``x >= 0``."""
    return np.asarray(mean * _flatness(averages(square, mean)))


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
    mean, square = (averages(moment, mass) for moment in moments)
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
