"""Random allocation: the profile of one epoch, in which each record takes part in one of the steps.

The average of ``t`` independent ratios (``ratios``) is made as compositions are (``direct``): by
binary powers of ``t``, all products of two measures binned again, and the last of them read without
binning. A coarse epoch says where nodes should be (``ratio_plan``). No
proof depends on that.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.compose.direct.plan import Key, Plan, Stages, first_edges
from psinoise.accounting.compose.direct.products import halves
from psinoise.accounting.compose.measures.measure import Side
from psinoise.accounting.compose.schemes.ratio_plan import edges_of_sum, plan_for
from psinoise.accounting.compose.schemes.ratio_profile import AllocationBound
from psinoise.accounting.compose.schemes.ratios import (
    Parts,
    Ratios,
    Step,
    base,
    base_bins,
    base_edges,
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
        return unseen_in(self.sources[1].unseen, self.steps)

    @cached_property
    def sources(self) -> tuple[Step, Step]:
        """The losses of one step from below and from above, as deep as the log delta needs."""
        reach = reach_for(self.log_delta, float(self.steps))
        return Step.of(self.below, reach), Step.of(self.above, reach)

    def at(self, log_delta: float) -> Allocation:
        """The same, for a question about another delta; as deep as can be if that is not seen."""
        return dataclasses.replace(self, log_delta=max(log_delta, _LEAST_LOG_DELTA))

    def sided(self, side: Side) -> Allocation:
        """The same: both sides have the plan of one of them."""
        del side
        return self

    def compose(self, side: Side, nodes: int, plan: Plan | None) -> tuple[AllocationBound, Stages]:
        """The profile of one side, and the bins of every stage of one that is in the middle."""
        first, second, stages = self._halves(side, nodes, plan)
        return AllocationBound(first, second, self.direction, self.steps, self.unseen), stages

    def measure(self, side: Side, nodes: int, plan: Plan, losses: Float) -> Ratios:
        """The sum of all ratios on one side, in bins that end at some losses of the epoch."""
        first, second, _ = self._halves(side, nodes, plan)
        low, high = span_of(first, second)
        forth = 1.0 if self.direction == "remove" else -1.0
        inner = forth * self.steps * np.exp(forth * losses)
        inner = inner[(inner > low) & (inner < high)]
        return product(first, second, distinct(np.concatenate([[low], inner, [high]])))[0]

    def _halves(self, side: Side, nodes: int, plan: Plan | None) -> tuple[Ratios, Ratios, Stages]:
        """The two sums that make all of it."""
        stages: Stages = {}
        one = self._base(side, nodes, plan, stages)

        def added(a: Ratios, b: Ratios, key: Key, uses: int) -> Ratios:
            return self._product(a, b, key, uses, nodes, plan, stages)

        first, second = halves([one], [self.steps], added)
        assert second is not None
        return first, second, stages

    def plan(self, bound: AllocationBound, stages: Stages, epsilon: float, slope: float) -> Plan:
        """Where a finer epoch should have its nodes, from a coarse one."""
        del slope
        return plan_for(bound, stages, (epsilon,))

    def _base(self, side: Side, nodes: int, plan: Plan | None, stages: Stages) -> Ratios:
        parts = self._parts(side)
        key: Key = "base", 0
        low, high = parts.span
        if plan is not None and key in plan.spreads:
            ends = np.exp(np.clip(np.array([low, high]), -600.0, 600.0))
            ends = ends if self.direction == "remove" else -ends[::-1]
            count = plan.count(key, nodes)
            values = np.abs(plan.spreads[key].edges(float(ends[0]), float(ends[1]), count))
            inner = distinct(np.log(values[values > 0.0]))
        else:
            inner = first_edges(low, high, *parts.moments, nodes)
        edges = base_edges(parts, inner, 0 < parts.atoms.size <= nodes)
        made = base(parts, edges, side)
        if side == "middle" and (parts.panels or parts.atoms.size > nodes):
            bins = base_bins(parts, edges, made)
            if bins.mass.size:  # unless all ratios are as small as can be
                stages[key] = bins, float(self.steps)
        return made

    def _parts(self, side: Side) -> Parts:
        delta = math.exp(self.log_delta)
        share = min(_MOVED * delta, _MOST_MOVED) / self.steps
        return parts_of(self.sources[side == "upper"], self.direction, _MOVED * delta, share)

    def _product(
        self,
        a: Ratios,
        b: Ratios,
        key: Key,
        uses: int,
        nodes: int,
        plan: Plan | None,
        stages: Stages,
    ) -> Ratios:
        planned = plan is not None and key in plan.spreads
        count = plan.count(key, nodes) if plan is not None and planned else nodes
        if a.value.size * b.value.size <= 2 * count:
            return exact_product(a, b)
        low, high = span_of(a, b)
        if plan is not None and planned:
            edges = plan.spreads[key].edges(low, high, count)
        else:
            edges = edges_of_sum(a, b, low, high, count)
        made, bins = product(a, b, edges)
        stages[key] = bins, float(uses)
        return made
