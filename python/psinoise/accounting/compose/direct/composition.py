"""The composer that always works: all products of two measures, binned again.

All terms are positive, so that a delta of 1e-200 has as many digits as one of 1e-2, and nodes are
free: losses of any scales compose. Uses are composed by binary powers (``powers``). The last
product of two measures is never binned, since the profile can be read from both.

Any nodes give bounds. A first composition of a few hundred says where more of them should be
(``plan``).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.compose.direct.plan import (
    Key,
    LossPlan,
    Rest,
    Stages,
    first_edges,
    spread_of,
)
from psinoise.accounting.compose.direct.powers import halves
from psinoise.accounting.compose.direct.profile import DirectBound, SampledBound
from psinoise.accounting.compose.measures.bins import BinMasses, masses_in_bins
from psinoise.accounting.compose.measures.dense import Dense, Mask
from psinoise.accounting.compose.measures.measure import (
    Bins,
    Measure,
    Side,
    exact_product,
    lattice_edges,
    product,
    trimmed,
)
from psinoise.accounting.compose.measures.source import (
    apart,
    covering,
    measure_of,
    measure_of_masses,
)
from psinoise.accounting.loss.pairs import Float
from psinoise.numerics.distinct import distinct

# Masses of bins, their edges, and whether there are panels among what they are of.
_Cut = tuple[BinMasses, Float, bool]


class _Alone(NamedTuple):
    """The loss of one use: what is cut into bins, what counts as infinite, and the outer ends."""

    source: Dense
    chosen: Mask
    large: Mask
    ends: tuple[float, float]


# Share of delta that may be trimmed, over all uses, on either side.
_TRIMMED, _TRIMMED_OF_ONE = 1e-7, 1e-15

# So many products for each node are tried as nodes of their own: equal losses are one.
_TRIED = 64

# Runs of bins of equal width, before there is a plan.
_FIRST_RUNS = 32

# Bins are wider than so many roundings of a loss.
_LEAST_BIN = 4.0


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

    def compose(self, side: Side, nodes: int, plan: LossPlan | None) -> tuple[DirectBound, Stages]:
        """The profile of one side; the bins of every stage, and the uses that they stand for."""
        stages: Stages = {}
        bases = [self._base(k, side, nodes, plan, stages) for k in range(len(self.counts))]

        def composed(a: Measure, b: Measure, key: Key, uses: int) -> Measure:
            return self._product(a, b, key, uses, nodes, plan, stages)

        return DirectBound(*halves(bases, self.counts, composed)), stages

    def measure(self, side: Side, nodes: int) -> Measure:
        """All steps as one measure, which can be changed and composed further."""
        bound, _ = self.compose(side, nodes, None)
        if bound.second is None:
            return bound.first
        return self._product(bound.first, bound.second, ("product", -1), 1, nodes, None, {})

    def one_use(self, inner: Float) -> tuple[DirectBound, DirectBound]:
        """The profile of one use from both sides, from bins that end at some losses.

        It is exact at these: a loss beyond both ends of its bin from epsilon counts whole or not at
        all, whichever side.
        """
        below, above = self._alone
        low = _cut(below, inner)
        high = low if above is below else _cut(above, inner)
        sides: tuple[tuple[Side, _Cut], ...] = (("lower", low), ("upper", high))
        lower, upper = (
            DirectBound(measure_of_masses(masses, edges, side, smooth=smooth)[0], None)
            for side, (masses, edges, smooth) in sides
        )
        return lower, upper

    @property
    def sampled(self) -> SampledBound:
        """About the profile of one use."""
        source, chosen, *_ = self._alone[1]
        return SampledBound(source, chosen)

    @property
    def span(self) -> tuple[float, float]:
        """An interval that holds the losses of one use from above."""
        return self._alone[1].ends

    @property
    def rounding(self) -> float:
        """The error of a loss of one use from above."""
        return self._alone[1].source.rounding

    @cached_property
    def _alone(self) -> tuple[_Alone, _Alone]:
        """The loss of one use from below and from above, as it is cut."""
        low, high = self.sources[0]
        below = self._alone_of(low)
        return below, below if high is low else self._alone_of(high)

    def _alone_of(self, source: Dense) -> _Alone:
        chosen, large = self._chosen(source, 1)
        source = source.rounded_within(chosen)
        return _Alone(source, chosen, large, covering(source, chosen))

    def _product(
        self,
        a: Measure,
        b: Measure,
        key: Key,
        uses: float,
        nodes: int,
        plan: LossPlan | None,
        stages: Stages,
    ) -> Measure:
        count = nodes if plan is None or key not in plan.spreads else plan.count(key, nodes)
        if a.loss.size * b.loss.size <= _TRIED * count:
            made = exact_product(a, b)
            if made.loss.size <= 2 * count:
                return self._trimmed(made, key, uses, plan)
        low, high = a.span[0] + b.span[0], a.span[1] + b.span[1]
        room = 1e-15 * max(abs(low), abs(high)) + 1e-300
        low, high = low - room, high + room
        if plan is not None and key in plan.spreads:
            edges = lattice_edges(*plan.spreads[key].runs(low, high, count))
        else:
            means, variances = zip(*(_moments(m.loss, m.mass) for m in (a, b)), strict=True)
            edges = _first(low, high, sum(means), sum(variances), count)
        made, bins = product(a, b, edges)
        stages[key] = bins, float(uses)
        return self._trimmed(made, key, uses, plan)

    def _base(
        self,
        k: int,
        side: Side,
        nodes: int,
        plan: LossPlan | None,
        stages: Stages,
    ) -> Measure:
        source, uses, key = self.sources[k][side == "upper"], self.counts[k], ("base", k)
        chosen, large = self._chosen(source, uses)
        source = source.rounded_within(chosen)
        low, high = covering(source, chosen)
        atoms = source.atom_loss[chosen[source.panels :]]
        exact = atoms.size <= nodes
        if exact and atoms.size == chosen.sum():
            # Nothing lies between them.
            edges = np.array([low, high])
        elif plan is not None and key in plan.spreads:
            edges = lattice_edges(*plan.spreads[key].runs(low, high, plan.count(key, nodes)))
        else:
            edges = _first(low, high, *_moments_of(source, chosen), nodes)
        edges = apart(edges, _LEAST_BIN * source.rounding)
        if atoms.size and exact:
            edges = distinct(np.concatenate([edges, atoms]))
        made, bins = measure_of(source, chosen, large, edges, side)
        if atoms.size < chosen.sum() or not exact:
            stages[key] = bins, float(uses)
        return self._trimmed(made, key, uses, plan)

    def _chosen(self, source: Dense, uses: int) -> tuple[Mask, Mask]:
        """Panels and atoms whose loss is neither as rare nor as small as not to matter.

        Losses below ``-x`` have a probability of at most ``e^-x``, whatever they are; their
        rounding, which grows with their size, would be that of all.
        """
        share = _TRIMMED if sum(self.counts) > 1 else _TRIMMED_OF_ONE
        log_limit = self.log_delta + math.log(share / uses)
        large = source.rarest(np.exp(source.log_mass), math.exp(log_limit))
        chosen = ~large & (source.highest >= log_limit)
        return (chosen if chosen.any() else ~large), large

    def _trimmed(self, measure: Measure, key: Key, uses: float, plan: LossPlan | None) -> Measure:
        log_share = self.log_delta + math.log(_TRIMMED / uses)
        if plan is None or key not in plan.means:
            return trimmed(measure, log_share, None)
        log_value = plan.rest.hull(measure.loss - plan.means[key])
        return trimmed(measure, log_share, log_share - log_value)

    def plan(self, bound: DirectBound, stages: Stages, epsilon: float, slope: float) -> LossPlan:
        """Where a finer composition should have its nodes, from a coarse one."""
        means = {key: _mean(bins) for key, (bins, _) in stages.items()}
        if not means:
            return LossPlan({}, Rest.of(bound, epsilon, slope, (-1.0, 1.0)), {})
        ends = [bins.edges[[0, -1]] - means[key] for key, (bins, _) in stages.items()]
        low, high = min(float(e[0]) for e in ends), max(float(e[1]) for e in ends)
        rest = Rest.of(bound, epsilon, slope, (low, high))
        spreads = {
            key: spread_of(bins, rest, means[key], uses) for key, (bins, uses) in stages.items()
        }
        return LossPlan(spreads, rest, means)


def _cut(alone: _Alone, inner: Float) -> _Cut:
    """The loss of one use in bins that end at some losses."""
    low, high = alone.ends
    inner = inner[(inner > low) & (inner < high)]
    edges = distinct(np.concatenate([[low], inner, [high]]))
    masses = masses_in_bins(alone.source, alone.chosen, alone.large, edges)
    return masses, edges, alone.source.panels > 0


def _first(low: float, high: float, mean: float, variance: float, count: int) -> Float:
    """The same as `first_edges` three deviations around a mean, in runs on lattices."""
    ends = first_edges(low, high, mean, 3.0 * math.sqrt(variance), _FIRST_RUNS)
    return lattice_edges(ends, np.full(ends.size - 1, count / _FIRST_RUNS))


def _moments_of(source: Dense, chosen: Mask) -> tuple[float, float]:
    """About the mean and the variance of the chosen losses."""
    low, high = source.lowest[chosen], source.highest[chosen]
    masses = np.exp(source.log_mass[chosen])
    return _moments(0.5 * (low + high), masses, (high - low) ** 2 / 12.0)


def _moments(losses: Float, masses: Float, within: Float | float = 0.0) -> tuple[float, float]:
    """Mean and variance of losses that vary so much each; without mass, all equally likely."""
    total = float(masses.sum())
    weights = masses / total if total > 0.0 else np.full(losses.size, 1.0 / losses.size)
    mean = float(np.sum(weights * losses))
    return mean, float(np.sum(weights * ((losses - mean) ** 2 + within)))


def _mean(bins: Bins) -> float:
    return float(np.sum(bins.mass * bins.middle) / max(bins.mass.sum(), 1e-300))
