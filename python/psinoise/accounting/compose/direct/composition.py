"""The composer that always works: all products of two measures, binned again.

All terms are positive, so that a delta of 1e-200 has as many digits as one of 1e-2, and nodes are
free: losses of any scales compose. The last product of two measures is never binned, since the
profile can be read from both.

Any nodes give bounds. A first composition of a few hundred says where more of them should be
(``plan``).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.compose.direct.plan import (
    Key,
    Plan,
    Rest,
    Stages,
    first_edges,
    grouped,
    lattice_edges,
    spread,
)
from psinoise.accounting.compose.direct.products import exact_product, halves, product, trimmed
from psinoise.accounting.compose.direct.profile import DirectBound
from psinoise.accounting.compose.measures.bins import BinMasses, masses_in_bins
from psinoise.accounting.compose.measures.dense import Dense, Mask
from psinoise.accounting.compose.measures.measure import (
    Measure,
    Side,
    apart,
    certain,
    covering,
    measure_of,
    measure_of_masses,
)
from psinoise.accounting.loss.pairs import Float
from psinoise.numerics.distinct import distinct

# Share of delta, and of what finite losses have beside it, that may be trimmed, over all uses, on
# either side; the least such rest.
_TRIMMED, _TRIMMED_OF_ONE, _LEAST_REST = 1e-7, 1e-15, 2.0**-60
# So many products for each node are tried as nodes of their own: equal losses are one.
_TRIED = 64
# Runs of bins of equal width, before there is a plan.
_FIRST_RUNS = 32
# The least mass whose logarithm is asked for.
_LEAST_MASS = 1e-300
# Bins are wider than so many roundings of a loss.
_LEAST_BIN = 4.0


class OneUse(NamedTuple):
    """The loss of one use: what is cut into bins, what counts as infinite, and the outer ends."""

    source: Dense
    chosen: Mask
    large: Mask
    low: float
    high: float

    def bins(self, inner: Float) -> tuple[BinMasses, Float]:
        """Bins that end at some losses, and their edges."""
        inner = inner[(inner > self.low) & (inner < self.high)]
        edges = distinct(np.concatenate([[self.low], inner, [self.high]]))
        return masses_in_bins(self.source, self.chosen, self.large, edges), edges


@dataclass(frozen=True, eq=False)
class Composition:
    """Steps in one direction: the loss of one use of each, and how often it is used."""

    sources: tuple[tuple[Dense, Dense], ...]  # from below and from above
    counts: tuple[int, ...]
    log_delta: float
    plans: ClassVar[int] = 1

    def at(self, log_delta: float) -> Composition:
        """The same, for a question about another delta; as it is where that is not known."""
        return self if log_delta == -math.inf else dataclasses.replace(self, log_delta=log_delta)

    def sided(self, side: Side) -> Composition:
        """The losses of one side alone; the same composition where both are the same."""
        if all(low is high for low, high in self.sources):
            return self
        sources = tuple((pair[side == "upper"],) * 2 for pair in self.sources)
        return dataclasses.replace(self, sources=sources)

    def compose(self, side: Side, nodes: int, plan: Plan | None) -> tuple[DirectBound, Stages]:
        """The profile of one side; the bins of every stage, and the uses that they stand for."""
        composing = _Composing(self, side, nodes, Plan({}) if plan is None else plan)
        return composing.bound(), composing.stages

    def measure(self, side: Side, nodes: int) -> Measure:
        """All steps as one measure, which can be changed and composed further."""
        composing = _Composing(self, side, nodes, Plan({}))
        bound = composing.bound()
        if bound.second is None:
            return bound.first
        return composing.product(bound.first, bound.second, ("product", -1), 1)

    def plan(self, bound: DirectBound, stages: Stages, epsilon: float, slope: float) -> Plan:
        """Where a finer composition should have its nodes, from a coarse one."""
        means = {
            key: float(np.sum(bins.mass * bins.middle) / max(bins.mass.sum(), 1e-300))
            for key, (bins, _) in stages.items()
        }
        ends = [bins.edges[[0, -1]] - means[key] for key, (bins, _) in stages.items()]
        low = min((float(end[0]) for end in ends), default=-1.0)
        high = max((float(end[1]) for end in ends), default=1.0)
        rest, spreads = Rest.of(bound, epsilon, slope, (low, high)), {}
        for key, (found, uses) in stages.items():
            bins = grouped(found)
            gaps = rest.log_gaps(bins, means[key], uses)
            spreads[key] = spread(bins, gaps, np.diff(bins.edges), uses)
        return Plan(spreads, rest, means)

    def one_use(self, inner: Float) -> tuple[DirectBound, DirectBound]:
        """The profile of one use from both sides, from bins that end at some losses.

        It is exact at these: a loss beyond both ends of its bin from epsilon counts whole or not at
        all, whichever side.
        """
        below, above = self.alone
        low = below.bins(inner)
        high = low if above is below else above.bins(inner)
        lower, _ = measure_of_masses(*low, "lower", smooth=below.source.panels > 0)
        upper, _ = measure_of_masses(*high, "upper", smooth=above.source.panels > 0)
        lower, upper = certain(lower, below.source), certain(upper, above.source)
        return DirectBound(lower, None), DirectBound(upper, None)

    @cached_property
    def log_least(self) -> float:
        """The log of delta times the share of finite losses that is left: little beside both."""
        masses = [float(np.exp(above.log_mass).sum()) for _, above in self.sources]
        finite = sum(
            count * math.log(min(max(mass, _LEAST_MASS), 1.0))
            for mass, count in zip(masses, self.counts, strict=True)
        )
        rest = -math.expm1(min(self.log_delta - finite, 0.0))
        return self.log_delta + math.log(max(rest, _LEAST_REST))

    @cached_property
    def alone(self) -> tuple[OneUse, OneUse]:
        """The loss of a single use from below and from above."""
        low, high = self.sources[0]
        below = self.cut(low, 1)
        return below, below if high is low else self.cut(high, 1)

    def cut(self, source: Dense, uses: int) -> OneUse:
        """Panels and atoms whose loss is neither as rare nor as small as not to matter.

        Losses below ``-x`` have a probability of at most ``e^-x``, whatever they are; their
        rounding, which grows with their size, would be that of all.
        """
        share = _TRIMMED if sum(self.counts) > 1 else _TRIMMED_OF_ONE
        log_limit = self.log_least + math.log(share / uses)
        large = source.rarest(np.exp(source.log_mass), math.exp(log_limit))
        chosen = ~large & (source.highest >= log_limit)
        if not chosen.any():
            chosen = ~large
        source = source.rounded_within(chosen)
        return OneUse(source, chosen, large, *covering(source, chosen))


@dataclass(frozen=True, eq=False)
class _Composing:
    """A composition on one side as it is made, with nodes where a plan has them."""

    whole: Composition
    side: Side
    nodes: int
    plan: Plan
    stages: Stages = field(default_factory=dict)

    def bound(self) -> DirectBound:
        """The profile of all uses."""
        counts = self.whole.counts
        bases = [self._base(k) for k in range(len(counts))]
        return DirectBound(*halves(bases, counts, self.product))

    def product(self, a: Measure, b: Measure, key: Key, uses: int) -> Measure:
        """Two parts as one, which stands for some uses."""
        count = self.plan.count(key, self.nodes)
        if a.loss.size * b.loss.size <= _TRIED * count:
            made = exact_product(a, b)
            if made.loss.size <= 2 * count:
                return self._trimmed(made, key, uses)
        low, high = a.span[0] + b.span[0], a.span[1] + b.span[1]
        room = 1e-15 * max(abs(low), abs(high)) + 1e-300
        parts = [(m.loss, m.mass, 0.0) for m in (a, b)]
        edges = self._edges(key, low - room, high + room, parts)
        if low < high - 4.0 * room and self._decides(float(a.mass[-1] * b.mass[-1]), uses):
            edges = np.append(edges[edges < high - 2.0 * room], [high - room, high + room])
        made, bins = product(a, b, edges)
        self.stages[key] = bins, float(uses)
        return self._trimmed(made, key, uses)

    def _base(self, k: int) -> Measure:
        """One use of a step."""
        uses, key = self.whole.counts[k], ("base", k)
        cut = self.whole.cut(self.whole.sources[k][self.side == "upper"], uses)
        source, chosen = cut.source, cut.chosen
        atoms = source.atom_loss[chosen[source.panels :]]
        kept = atoms.size <= self.nodes
        exact = kept and atoms.size == chosen.sum()
        if exact:
            # Nothing lies between them.
            edges = np.array([cut.low, cut.high])
        else:
            low, high = source.lowest[chosen], source.highest[chosen]
            mass = np.exp(source.log_mass[chosen])
            each = 0.5 * (low + high), mass, (high - low) ** 2 / 12.0
            edges = self._edges(key, cut.low, cut.high, [each])
            if source.panels and self._decides(float(mass[np.argmax(high)]), uses):
                # Beyond there are masses of panels by rounding alone.
                edges = np.append(edges[edges < cut.high], cut.high)
        edges = apart(edges, _LEAST_BIN * source.rounding)
        if atoms.size and kept:
            edges = distinct(np.concatenate([edges, atoms]))
        made, bins = measure_of(source, chosen, cut.large, edges, self.side)
        if not exact:
            self.stages[key] = bins, float(uses)
        return self._trimmed(certain(made, source), key, uses)

    def _decides(self, mass: float, uses: int) -> bool:
        """Whether the largest loss of all uses, of such a mass each, is more likely than delta.

        Then it is not merged with what lies below.
        """
        return uses * math.log(max(mass, _LEAST_MASS)) > self.whole.log_delta

    def _edges(
        self, key: Key, low: float, high: float, parts: Sequence[tuple[Float, Float, Float | float]]
    ) -> Float:
        """Edges by the plan; without one, for parts with such losses, masses and variances."""
        count = self.plan.count(key, self.nodes)
        if key in self.plan.spreads:
            return lattice_edges(*self.plan.spreads[key].runs(low, high, count))
        means, variances = zip(*(_moments(*part) for part in parts), strict=True)
        ends = first_edges(low, high, sum(means), 3.0 * math.sqrt(sum(variances)), _FIRST_RUNS)
        return lattice_edges(ends, np.full(ends.size - 1, count / _FIRST_RUNS))

    def _trimmed(self, measure: Measure, key: Key, uses: int) -> Measure:
        log_share = self.whole.log_least + math.log(_TRIMMED / uses)
        log_rest = self.plan.log_rest(key, measure.loss)
        return trimmed(measure, log_share, None if log_rest is None else log_share - log_rest)


def _moments(losses: Float, masses: Float, within: Float | float) -> tuple[float, float]:
    """Mean and variance of losses that vary so much each; without mass, all equally likely."""
    total = float(masses.sum())
    weights = masses / total if total > 0.0 else np.full(losses.size, 1.0 / losses.size)
    mean = float(np.sum(weights * losses))
    return mean, float(np.sum(weights * ((losses - mean) ** 2 + within)))
