"""Random allocation: the profile of one epoch, in which each record takes part in one of the steps.

The average of ``t`` independent ratios (``ratios``) is made as compositions are (``direct``): by
binary powers of ``t`` in the manner of Horner, all products of two measures binned again, and the
last of them read without binning. A coarse epoch says where nodes should be. No proof depends on
that.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.bound import Bound
from psinoise.accounting.compose.measure import UNIT, Bins, Side
from psinoise.accounting.compose.plan import Key, Plan, Stages, first_edges, grouped, spread
from psinoise.accounting.compose.ratios import (
    Parts,
    Ratios,
    Step,
    base,
    base_bins,
    base_edges,
    exact_product,
    parts_of,
    product,
)
from psinoise.accounting.loss.pairs import Direction, Float

# Share of delta that may be moved, over all steps, and the most mass under Q.
_MOVED, _MOST_MOVED = 1e-7, 1e-10
# Bins of the whole epoch, from which a plan takes its density.
_DENSITY_BINS = 512
_LEAST_LOG = -1500.0
# Products of nodes and epsilons that are looked at together, and the largest exponent there.
_LARGEST_BLOCK = 1 << 18
_LARGEST_EPSILON = 650.0


class AllocationBound(Bound):
    """The bound on delta of an epoch, from the two sums of ratios that make it."""

    composer = "direct"

    def __init__(self, first: Ratios, second: Ratios, direction: Direction, steps: int) -> None:
        self.first, self.second, self.direction, self.steps = first, second, direction, steps
        self.side = first.side
        sizes = first.value.size + second.value.size
        self.rounding = first.rounding + second.rounding + 4.0 * UNIT * (sizes + 16)
        self.infinite = max(first.infinite, second.infinite)
        mass, value = second.mass, second.value
        self._total = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        # Over the nodes from each on: the sum of mass times the distance from the first of them.
        gaps = np.append(np.diff(value), 0.0) * self._total[1:]
        self._excess = np.append(np.cumsum(gaps[::-1])[::-1], 0.0)
        self._ends = np.append(value, 0.0)
        ends = abs(first.value[-1] + value[-1]), abs(first.value[0] + value[0])
        logs = [math.log(max(end, 1e-300) / steps) for end in ends]
        self.largest = max(logs[0] if direction == "remove" else -logs[0], 1e-12)

    def crossing_value(self, epsilon: float) -> float:
        """The sum of ratios at which an outcome begins to add to delta."""
        return (
            self.steps * math.exp(epsilon)
            if self.direction == "remove"
            else -self.steps * math.exp(-epsilon)
        )

    def log_delta(self, epsilon: float) -> float:
        """Log of the bound, rounded outwards."""
        return float(self.log_deltas(np.array([epsilon]))[0])

    def log_deltas(self, epsilons: Float) -> Float:
        """The same at many epsilons."""
        sign = 1.0 if self.side == "upper" else -1.0
        # Delta falls: what holds at a smaller epsilon is a bound from above, and 0 is from below.
        asked = np.minimum(epsilons, _LARGEST_EPSILON)
        forth = 1.0 if self.direction == "remove" else -1.0
        at_value = forth * self.steps * np.exp(forth * asked)
        offset, value = self.first.value, self.second.value
        found = np.empty(epsilons.size)
        rows = max(_LARGEST_BLOCK // offset.size, 1)
        for start in range(0, epsilons.size, rows):
            at = at_value[start : start + rows, None]
            room = 8.0 * UNIT * (np.abs(at) + np.abs(offset))
            rest = at - offset - sign * room
            place = np.searchsorted(value, rest, side="right")
            above = np.where(place < value.size, self._ends[place] - rest, 0.0)
            seen = self._excess[place] + self._total[place] * above
            found[start : start + rows] = seen @ self.first.mass
        found = np.maximum(found * (1.0 + sign * (self.rounding + 16.0 * UNIT)), 0.0)
        with np.errstate(divide="ignore"):
            logs = np.log(found) - math.log(self.steps)
            if self.direction == "add":
                logs += asked
            logs += sign * 8.0 * UNIT * (np.abs(asked) + math.log(self.steps) + 1.0)
            if self.side == "upper":
                logs = np.logaddexp(logs, np.log(self.infinite))
            elif self.side == "lower":
                logs[epsilons > _LARGEST_EPSILON] = -np.inf
        return np.minimum(logs, 0.0)


@dataclass(frozen=True, eq=False)
class Allocation:
    """An epoch in one direction, as `refine.direct_bounds` composes it.

    Attributes
    ----------
    sources : the losses of one step, from below and from above
    steps : of the epoch, at least 2
    """

    sources: tuple[Step, Step]
    steps: int
    direction: Direction
    log_delta: float

    @property
    def uses(self) -> float:
        return float(self.steps)

    def at(self, log_delta: float) -> Allocation:
        """The same, for a question about another delta; as it is where that is not known."""
        return self if log_delta == -math.inf else dataclasses.replace(self, log_delta=log_delta)

    @property
    def operations(self) -> list[tuple[bool, int]]:
        """The products in order: with itself or with one step, and how often the result counts."""
        found: list[tuple[bool, int]] = []
        for bit in range(self.steps.bit_length() - 2, -1, -1):
            found.append((True, 1 << bit))
            if self.steps >> bit & 1:
                found.append((False, 1 << bit))
        return found

    def compose(self, side: Side, nodes: int, plan: Plan | None) -> tuple[AllocationBound, Stages]:
        """The profile of one side, and the bins of every stage of one that is in the middle."""
        stages: Stages = {}
        one = self._base(side, nodes, plan, stages)
        current = one
        operations = self.operations
        for place, (square, uses) in enumerate(operations[:-1]):
            other = current if square else one
            current = self._product(current, other, ("product", place), uses, nodes, plan, stages)
        last = current if operations[-1][0] else one
        return AllocationBound(current, last, self.direction, self.steps), stages

    def work(self, nodes: int, plan: Plan) -> float:
        """About how many products of masses an epoch takes, on both sides."""
        counts = [plan.count(key, nodes) for key in plan.spreads]
        return 2.0 * nodes * float(sum(counts))

    def plan(self, bound: AllocationBound, stages: Stages, epsilon: float, slope: float) -> Plan:
        """Where a finer epoch should have its nodes, from a coarse one."""
        del slope
        density = _Density.of(bound, epsilon)
        spreads = {}
        for key, (bins, uses) in stages.items():
            bins = grouped(bins)
            log_gaps = np.minimum(density.log_gaps(bins), bound.log_delta(epsilon) - math.log(uses))
            spreads[key] = spread(bins, [log_gaps], _log_widths(bins.edges), uses)
        return Plan(spreads)

    def _base(self, side: Side, nodes: int, plan: Plan | None, stages: Stages) -> Ratios:
        parts = self._parts(side)
        key: Key = "base", 0
        low, high = parts.span
        if plan is not None and key in plan.spreads:
            ends = np.exp(np.clip(np.array([low, high]), -600.0, 600.0))
            ends = ends if self.direction == "remove" else -ends[::-1]
            count = plan.count(key, nodes)
            values = np.abs(plan.spreads[key].edges(float(ends[0]), float(ends[1]), count))
            inner = np.unique(np.log(values[values > 0.0]))
        else:
            inner = first_edges(low, high, *parts.moments, nodes)
        edges = base_edges(parts, inner, 0 < parts.atoms.size <= nodes)
        made = base(parts, edges, side)
        if side == "middle" and (parts.panels or parts.atoms.size > nodes):
            stages[key] = base_bins(parts, edges, made), float(self.steps)
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
        low, high = a.value[0] + b.value[0], a.value[-1] + b.value[-1]
        low, high = low - 1e-15 * abs(low) - 1e-300, high + 1e-15 * abs(high) + 1e-300
        if plan is not None and planned:
            edges = plan.spreads[key].edges(low, high, count)
        else:
            edges = _first_edges(a, b, low, high, count)
        made, bins = product(a, b, edges)
        stages[key] = bins, float(uses)
        return made


def _first_edges(a: Ratios, b: Ratios, low: float, high: float, count: int) -> Float:
    """Edges for a first look at a sum: even in the log of the ratio, but for its tails."""
    x, y = (_thinned(part) for part in (a, b))
    loss = np.log(np.maximum(np.abs(np.add.outer(x[0], y[0])), 1e-300))
    mass = np.multiply.outer(x[1], y[1])
    total = float(mass.sum())
    center = float(np.sum(mass * loss)) / total
    deviation = 3.0 * math.sqrt(float(np.sum(mass * (loss - center) ** 2)) / total)
    sign = 1.0 if high > 1e-300 else -1.0
    ends = np.log(np.maximum(np.abs(np.array([low, high])[:: int(sign)]), 1e-290))
    inner = sign * np.exp(first_edges(float(ends[0]), float(ends[1]), center, deviation, count))
    inner = inner[(inner > low) & (inner < high)]
    return np.unique(np.concatenate([[low], inner, [high]]))


def _thinned(part: Ratios) -> tuple[Float, Float]:
    """A few of the nodes, with the masses of those between."""
    each = -(-part.value.size // 64)
    starts = np.arange(0, part.value.size, each)
    return part.value[starts], np.add.reduceat(part.mass, starts)


def _log_widths(edges: Float) -> Float:
    """Widths of bins in the log of the ratio, as far as ratios matter."""
    logs = np.log(np.maximum(np.abs(edges), 1e-30 * np.abs(edges).max()))
    return np.asarray(np.abs(np.diff(logs))) + 1e-300


@dataclass(frozen=True, eq=False)
class _Density:
    """The density of the sum of all ratios, from its mean, and where it is asked.

    A bin of width ``w`` and mass ``m`` adds about ``m w^2 f(c - z) / 12`` to delta, where ``z`` is
    its distance from the mean and ``f`` the density of the rest, here of the whole.
    """

    at: Float
    log_density: Float
    crossing: float
    log_scale: float

    @classmethod
    def of(cls, bound: AllocationBound, epsilon: float) -> _Density:
        a, b = bound.first, bound.second
        low, high = a.value[0] + b.value[0], a.value[-1] + b.value[-1]
        edges = _first_edges(a, b, low, high, _DENSITY_BINS)
        mass, _ = core.binned_products(a.value, a.mass, b.value, b.mass, edges, 0)
        mean = float(a.mass @ a.value) + float(b.mass @ b.value)
        with np.errstate(divide="ignore"):
            log_density = np.maximum(np.log(mass / np.diff(edges)), _LEAST_LOG)
        middle = 0.5 * (edges[1:] + edges[:-1])
        log_scale = -math.log(bound.steps) + (epsilon if bound.direction == "add" else 0.0)
        return cls(middle - mean, log_density, bound.crossing_value(epsilon) - mean, log_scale)

    def log_gaps(self, bins: Bins) -> Float:
        """Log of what splitting each bin to its ends adds to delta, for one use of a part."""
        total = max(float(bins.mass.sum()), 1e-300)
        mean = float(bins.mass @ bins.middle) / total
        width = np.diff(bins.edges)
        places = (bins.middle, bins.edges[1:], bins.edges[:-1])
        curvature = np.max(
            [
                np.interp(
                    self.crossing - (z - mean), self.at, self.log_density, _LEAST_LOG, _LEAST_LOG
                )
                for z in places
            ],
            axis=0,
        )
        with np.errstate(divide="ignore"):
            log_mass = np.log(bins.mass)
        return np.asarray(
            log_mass + 2.0 * np.log(width) + curvature + self.log_scale - math.log(12.0)
        )
