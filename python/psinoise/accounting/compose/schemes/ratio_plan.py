"""Where nodes go in the stages of random allocation, from a coarse epoch.

As in ``plan``; but the profile is piecewise linear in the sum of ratios, and what makes a gap is
the density of the rest. A bin of width ``w`` and mass ``m`` of a part that stands for ``k`` uses
adds about ``k m w^2 f(c - z) / 12`` to ``E (z - c)^+``, where ``z`` is its distance from what is
usual and ``f`` the density of the rest, for which that of the whole stands. Nothing here is part of
a proof: any nodes give bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psinoise.accounting.compose.direct.plan import Plan, Stages, first_edges, grouped, spread
from psinoise.accounting.compose.measures.measure import Bins
from psinoise.accounting.compose.schemes.ratio_profile import AllocationBound
from psinoise.accounting.compose.schemes.ratios import Ratios, binned, span_of
from psinoise.accounting.loss.pairs import Float
from psinoise.numerics.distinct import distinct

# Bins of the whole epoch, from which a plan takes its density.
_DENSITY_BINS = 512
_LEAST_LOG = -1500.0
# Nodes that are even in the log of the ratio, to 2 that go with gaps: of ratios over hundreds of
# e-folds a coarse epoch does not see the small part that matters.
_EVEN = 2.0


def plan_for(bound: AllocationBound, stages: Stages, epsilons: Sequence[float]) -> Plan:
    """Where a finer epoch should have its nodes for questions at some epsilons."""
    density = _Density.of(bound)
    spreads = {}
    for key, (found, uses) in stages.items():
        bins = grouped(found)
        gaps = [density.log_gaps(bins, uses, bound, epsilon) for epsilon in epsilons]
        spreads[key] = spread(bins, gaps, _log_widths(bins.edges), uses, _EVEN)
    return Plan(spreads)


def edges_of_sum(a: Ratios, b: Ratios, low: float, high: float, count: int) -> Float:
    """Edges for a first look at a sum: even in the log of the ratio, but for its tails."""
    x, y = (_thinned(part) for part in (a, b))
    loss = np.log(np.maximum(np.abs(np.add.outer(x[0], y[0])), 1e-300))
    mass = np.multiply.outer(x[1], y[1])
    total = float(mass.sum())
    center = float(np.sum(mass * loss)) / total
    deviation = 3.0 * math.sqrt(float(np.sum(mass * (loss - center) ** 2)) / total)
    sign = 1.0 if low > 0.0 else -1.0
    ends = np.log(np.abs(np.array([low, high])[:: int(sign)]))
    inner = sign * np.exp(first_edges(float(ends[0]), float(ends[1]), center, deviation, count))
    inner = inner[(inner > low) & (inner < high)]
    return distinct(np.concatenate([[low], inner, [high]]))


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
    """The density of the sum of all ratios."""

    edges: Float
    passed: Float
    at: Float
    log_density: Float

    @classmethod
    def of(cls, bound: AllocationBound) -> _Density:
        a, b = bound.first, bound.second
        edges = edges_of_sum(a, b, *span_of(a, b), _DENSITY_BINS)
        mass, _ = binned(a.all_nodes, b.all_nodes, edges)
        with np.errstate(divide="ignore"):
            log_density = np.maximum(np.log(mass) - np.log(np.diff(edges)), _LEAST_LOG)
        passed = np.concatenate([[0.0], np.cumsum(mass)])
        return cls(edges, passed, 0.5 * (edges[1:] + edges[:-1]), log_density)

    def log_gaps(self, bins: Bins, uses: float, bound: AllocationBound, epsilon: float) -> Float:
        """Log of what splitting each bin to its ends adds to delta, for one of some uses."""
        # Means may be those of rare large ratios.
        passed = np.cumsum(bins.mass)
        usual = bins.middle[np.searchsorted(passed, 0.5 * passed[-1])]
        far = bound.crossing_value(epsilon) + usual
        width = np.diff(bins.edges)
        places = far - np.stack([bins.middle, bins.edges[1:], bins.edges[:-1]])
        curvature = np.interp(places, self.at, self.log_density, _LEAST_LOG, _LEAST_LOG).max(axis=0)
        # Of bins as wide as the density, its mean.
        within = np.interp(places[2], self.edges, self.passed)
        within -= np.interp(places[1], self.edges, self.passed)
        with np.errstate(divide="ignore"):
            curvature = np.maximum(curvature, np.log(within) - np.log(width))
        log_scale = (epsilon if bound.direction == "add" else 0.0) - math.log(12.0 * bound.steps)
        with np.errstate(divide="ignore"):
            log_mass = np.log(bins.mass)
        log_gap = log_mass + 2.0 * np.log(width) + curvature + log_scale
        # A bin that is much too wide tells that, and no more.
        return np.asarray(np.minimum(log_gap, bound.log_delta(epsilon) - math.log(uses)))
