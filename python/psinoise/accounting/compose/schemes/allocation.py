"""Random allocation: the profile of one epoch, in which each record takes part in one of the steps.

The average of ``t`` independent ratios (``ratios``) is made as compositions are (``direct``): by
binary powers of ``t``, all products of two measures binned again, and the last of them read without
binning.

Where nodes go
--------------
A coarse epoch says where nodes should be, as in ``plan``; but the profile is piecewise linear in
the sum of ratios, and what makes a gap is the density of the rest. A bin of width ``w`` and mass
``m`` of a part that stands for ``k`` uses adds about ``k m w^2 f(c - z) / 12`` to ``E (z - c)^+``,
where ``z`` is its distance from what is usual and ``f`` the density of the rest, for which that of
the whole stands. No proof depends on that: any nodes give bounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from psinoise.accounting.compose.direct.plan import Key, Plan, Stages, first_edges, grouped, spread
from psinoise.accounting.compose.direct.products import halves
from psinoise.accounting.compose.measures.measure import Bins, Side
from psinoise.accounting.compose.schemes.ratio_profile import AllocationBound
from psinoise.accounting.compose.schemes.ratios import (
    Ratios,
    binned,
    exact_product,
    parts_of,
    product,
    span_of,
)
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.numerics.distinct import distinct

# Share of delta that may be moved, over all steps, and the most mass under Q.
_MOVED, _MOST_MOVED = 1e-7, 1e-10
_LEAST_LOG_DELTA = -690.0
# Relative error of the probability of outputs of one step that cannot be given.
_UNSEEN_ROUNDING = 2e-14
# Bins of the whole epoch, from which a plan takes its density.
_DENSITY_BINS = 512
# Nodes that are even in the log of the ratio, to 2 that go with gaps: of ratios over hundreds of
# e-folds a coarse epoch does not see the small part that matters.
_EVEN = 2.0


def unseen_in(unseen: float, steps: int) -> float:
    """Probability that each step gives an output that it cannot give with the record.

    Rounded down: the rest of it counts as other large losses do.
    """
    return unseen**steps * max(1.0 - _UNSEEN_ROUNDING * steps, 0.0)


@dataclass(frozen=True, eq=False)
class Allocation:
    """An epoch in one direction, as `refine.direct_bounds` composes it.

    Attributes
    ----------
    below, above : pairs of one step, on either side
    steps : of the epoch, at least 2
    """

    below: Dominating
    above: Dominating
    steps: int
    direction: Direction
    log_delta: float
    # Little noise has ratios of all sizes: what matters is a small part, and found step by step.
    plans: ClassVar[int] = 8

    @property
    def unseen(self) -> float:
        """Probability without the record of outputs that the epoch cannot give with it."""
        return unseen_in(self.above.infinite("add"), self.steps)

    def at(self, log_delta: float) -> Allocation:
        """The same, for a question about another delta; as deep as can be if that is not seen."""
        return dataclasses.replace(self, log_delta=max(log_delta, _LEAST_LOG_DELTA))

    def sided(self, side: Side) -> Allocation:
        """The same: both sides have the plan of one of them."""
        del side
        return self

    def compose(self, side: Side, nodes: int, plan: Plan | None) -> tuple[AllocationBound, Stages]:
        """The profile of one side, and the bins of every stage of one that is in the middle."""
        first, second, stages = self._halves(side, nodes, plan or Plan({}))
        return AllocationBound(first, second, self.direction, self.steps, self.unseen), stages

    def measure(self, side: Side, nodes: int, plan: Plan, losses: Float) -> Ratios:
        """The sum of all ratios on one side, in bins that end at some losses of the epoch."""
        first, second, _ = self._halves(side, nodes, plan)
        forth = 1.0 if self.direction == "remove" else -1.0
        inner = forth * self.steps * np.exp(forth * losses)
        return product(first, second, _edges(span_of(first, second), inner))[0]

    def plan(self, bound: AllocationBound, stages: Stages, epsilon: float, slope: float) -> Plan:
        """Where a finer epoch should have its nodes, from a coarse one."""
        del slope
        return plan_for(bound, stages, (epsilon,))

    def _halves(self, side: Side, nodes: int, plan: Plan) -> tuple[Ratios, Ratios, Stages]:
        """The two sums that make all of it."""
        stages: Stages = {}

        def added(a: Ratios, b: Ratios, key: Key, uses: int) -> Ratios:
            planned = plan.spreads.get(key)
            count = nodes if planned is None else plan.count(key, nodes)
            if a.value.size * b.value.size <= 2 * count:
                return exact_product(a, b)
            if planned is None:
                edges = _first_edges(a, b, count)
            else:
                edges = planned.edges(*span_of(a, b), count)
            made, bins = product(a, b, edges)
            stages[key] = bins, float(uses)
            return made

        one = self._base(side, nodes, plan, stages)
        first, second = halves([one], [self.steps], added)
        assert second is not None
        return first, second, stages

    def _base(self, side: Side, nodes: int, plan: Plan, stages: Stages) -> Ratios:
        """The ratio of one step."""
        rare = _MOVED * math.exp(self.log_delta)
        share = min(rare, _MOST_MOVED) / self.steps
        pair = self.above if side == "upper" else self.below
        # As deep as the log delta needs.
        reach = reach_for(self.log_delta, float(self.steps))
        parts = parts_of(pair, reach, self.direction, rare, share)
        key: Key = "base", 0
        planned = plan.spreads.get(key)
        if planned is None:
            inner = first_edges(*parts.span, *parts.moments, nodes)
        else:
            low, high = parts.values(np.array(parts.span)).tolist()
            values = np.abs(planned.edges(low, high, plan.count(key, nodes)))
            inner = distinct(np.log(values[values > 0.0]))
        edges = parts.edges(inner, 0 < parts.atoms.size <= nodes)
        made = parts.ratios(edges, side)
        if side == "middle" and (parts.source.panels or parts.atoms.size > nodes):
            bins = parts.bins(edges, made)
            if bins.mass.size:  # unless all ratios are as small as can be
                stages[key] = bins, float(self.steps)
        return made


def plan_for(bound: AllocationBound, stages: Stages, epsilons: Sequence[float]) -> Plan:
    """Where a finer epoch should have its nodes for questions at some epsilons."""
    density = _Density(bound, np.asarray(epsilons))
    spreads = {}
    for key, (found, uses) in stages.items():
        bins = grouped(found)
        gaps = [*density.log_gaps(bins, uses)]
        # Widths in the log of the ratio, as far as ratios matter.
        sizes = np.abs(bins.edges)
        even = np.abs(np.diff(np.log(np.maximum(sizes, 1e-30 * sizes.max())))) + 1e-300
        spreads[key] = spread(bins, gaps, even, uses, _EVEN)
    return Plan(spreads)


class _Density:
    """The density of the sum of all ratios of an epoch, where some epsilons ask for it."""

    def __init__(self, bound: AllocationBound, epsilons: Float) -> None:
        self._at = np.array([[bound.crossing_value(epsilon)] for epsilon in epsilons])
        self._log_deltas = bound.log_deltas(epsilons)[:, None]
        units = epsilons if bound.direction == "add" else np.zeros(epsilons.size)
        self._log_units = units[:, None] - math.log(12.0 * bound.steps)
        self._edges = _first_edges(bound.first, bound.second, _DENSITY_BINS)
        mass, _ = binned(bound.first, bound.second, self._edges)
        self._beyond = np.append(np.cumsum(mass[::-1])[::-1], 0.0)

    def log_gaps(self, bins: Bins, uses: float) -> Float:
        """Log of what splitting each bin to its ends adds to each delta, for one of some uses."""
        # Means may be those of rare large ratios.
        passed = np.cumsum(bins.mass)
        usual = bins.middle[np.searchsorted(passed, 0.5 * passed[-1])]
        width = np.diff(bins.edges)
        # The mean density of the rest where those in a bin reach far; by rounding below 0.
        within = np.diff(np.interp(self._at + usual - bins.edges, self._edges, self._beyond))
        within = np.maximum(within, 0.0)
        with np.errstate(divide="ignore"):
            log_gap = np.log(bins.mass) + np.log(width) + np.log(within) + self._log_units
        # A bin that is much too wide tells that, and no more.
        return np.asarray(np.minimum(log_gap, self._log_deltas - math.log(uses)))


def _first_edges(a: Ratios, b: Ratios, count: int) -> Float:
    """Edges for a first look at a sum: even in the log of the ratio, but for its tails."""
    (x, p), (y, q) = (_thinned(part) for part in (a, b))
    loss = np.log(np.maximum(np.abs(np.add.outer(x, y)), 1e-300))
    mass = np.multiply.outer(p, q)
    total = float(mass.sum())
    center = float(np.sum(mass * loss)) / total
    deviation = 3.0 * math.sqrt(float(np.sum(mass * (loss - center) ** 2)) / total)
    low, high = span_of(a, b)
    sign = 1.0 if low > 0.0 else -1.0
    least, most = np.sort(np.log(np.abs([low, high]))).tolist()
    inner = sign * np.exp(first_edges(least, most, center, deviation, count))
    return _edges((low, high), inner)


def _edges(span: tuple[float, float], inner: Float) -> Float:
    """Edges of bins that hold a span, some of them within."""
    low, high = span
    return distinct(np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]]))


def _thinned(part: Ratios) -> tuple[Float, Float]:
    """A few of the nodes, with the masses of those between."""
    each = -(-part.value.size // 64)
    starts = np.arange(0, part.value.size, each)
    return part.value[starts], np.add.reduceat(part.mass, starts)
