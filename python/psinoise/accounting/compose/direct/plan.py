"""Where the direct composer puts its nodes; no part of a proof, since any nodes give bounds.

A bin of width ``w`` and mass ``m`` of a part that stands for ``c`` uses adds about
``c m w^2 k(l) / 12`` to delta, its *gap*, with ``k`` the curvature ``t (t + 1) D(eps - l)`` of the
profile ``D`` of the rest of the composition, and ``t`` its logarithmic slope. A first, coarse
composition knows the masses of every stage and the profile of the rest. The sum of the gaps of so
many bins is least where the number of nodes goes with the cube root of the gap, and that over
stages where it goes with the fourth root of a stage's gap. So a plan says how many nodes reach a
width.

Bounds from above move mass up, and what has moved is composed again. Where masses fall steeply it
would soon outweigh what is there, so that a part of the nodes goes where masses fall, and another
where a profile that has been filled up, the hull of ``D``, would see gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.compose.direct.profile import DirectBound
from psinoise.accounting.compose.measures.measure import UNIT, Bins, averages
from psinoise.accounting.loss.pairs import Float
from psinoise.errors import CertificationError
from psinoise.numerics.distinct import distinct
from psinoise.numerics.hull import concave_hull

#: A step, by its number, or a product, by its place in the order of products.
Key = tuple[str, int]
#: The bins of each stage, and for how many uses they stand.
Stages = dict[Key, tuple[Bins, float]]

# Of nodes, for stages that matter least: what moves up there is composed most often.
_LEAST_NODES, _LEAST_SHARE = 24, 0.5
# Of a plan: nodes that go with how masses fall, and that are spread evenly.
_ROUGH, _EVEN = 0.5, 0.05
# Logarithms that stand for that of 0.
_LEAST_LOG, _LEAST_LOG_DELTA = -1500.0, -740.0
_LEAST_MASS = 1e-300
_STEEPEST = 40.0
# Squares of steeper slopes overflow.
_MOST_SLOPE = 1e150
_LEAST_GAP = 1e-40
_GRID = 193
# Points of the grid over which slopes are taken.
_REACHES = (1, 4, 12)
# Parts of a plan, and the fewest bins of a run of equal width.
_GROUPS, _LEAST_RUN = 256, 16
# Roundings of the largest edge that a bin of a product is wide, at least.
_LEAST_WIDTH = 64.0


@dataclass(frozen=True)
class Spread:
    """How the nodes of one stage are spread: ``share`` of them lie below each of ``points``.

    ``log_gap`` is the log of what one node would add to delta: ``k`` nodes add a ``k^2``-th of it.
    """

    points: Float
    share: Float
    log_gap: float

    def runs(self, low: float, high: float, count: int) -> tuple[Float, Float]:
        """Ends of runs of bins of equal width, from ``low`` to ``high``, and the bins of each."""
        # Few bins of one width are no gain: then a run is that of several parts of the plan.
        parts = max(count // _LEAST_RUN, 2)
        chosen = distinct(np.linspace(0, self.points.size - 1, parts + 1, dtype=int))
        points, share = self.points[chosen], self.share[chosen]
        first, last = np.diff(points)[[0, -1]] / np.maximum(np.diff(share)[[0, -1]] * count, 1)
        below = points[0] - doubling(float(first), float(points[0]) - low)
        above = points[-1] + doubling(float(last), high - float(points[-1]))
        inner = np.concatenate([below, points, above])
        ends = distinct(np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]]))
        return ends, count * np.diff(np.interp(ends, points, share))

    def edges(self, low: float, high: float, count: int) -> Float:
        """Edges of bins from ``low`` to ``high``, on no lattice."""
        ends, counts = self.runs(low, high, count)
        passed = np.concatenate([[0.0], np.cumsum(np.maximum(counts, 1e-3))])
        wanted = np.linspace(0.0, passed[-1], count + 1)
        beyond = ends[(ends < self.points[0]) | (ends > self.points[-1])]
        return distinct(np.concatenate([[low], np.interp(wanted, passed, ends), beyond, [high]]))


def doubling(first: float, reach: float) -> Float:
    """Distances that double, up to some reach: bins beyond those of the plan."""
    if not reach > first > 0.0:
        return np.empty(0)
    return first * np.expm1(math.log(2.0) * np.arange(1.0, math.log2(reach / first) + 1.0))


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


def first_edges(low: float, high: float, center: float, deviation: float, count: int) -> Float:
    """Edges that are close around the center and apart in proportion to their distance from it."""
    deviation = max(deviation, 1e-12 * (high - low), 1e-300)
    ends = np.arcsinh((np.array([low, high]) - center) / deviation)
    edges = center + deviation * np.sinh(np.linspace(ends[0], ends[1], count + 1))
    edges[0], edges[-1] = low, high
    return distinct(np.clip(edges, low, high))


@dataclass(frozen=True, eq=False)
class Rest:
    """What a part is composed with: the profile ``D`` of the whole, from the mean of the part on.

    Its logarithm becomes its hull where bounds from above fill the gaps between losses of different
    sizes.
    """

    epsilon: float  # of the question, and log delta there
    log_delta: float
    at: Float  # epsilons of the tables
    hull: Float
    log_curvatures: tuple[Float, Float]  # of D and of its hull

    @classmethod
    def of(
        cls, profile: DirectBound, epsilon: float, slope: float, ends: tuple[float, float]
    ) -> Rest:
        """For losses of parts between some ends, counted from the mean of the part."""
        (low, high), scale = ends, 1.0 / slope
        far = np.arcsinh(np.array([-high, -low]) / scale)
        at = epsilon + scale * np.sinh(np.linspace(min(far[0], -1e-3), max(far[1], 1e-3), _GRID))
        if np.isnan(at).any():
            raise CertificationError("losses are too far apart for nodes between them")
        log_value = np.maximum(profile.log_deltas(at), _LEAST_LOG_DELTA)
        kept = concave_hull(at, log_value)
        hull = np.interp(at, at[kept], log_value[kept])
        curvatures = _log_curvature(at, log_value), _log_curvature(at, hull)
        return cls(epsilon, profile.log_delta(epsilon), at, hull, curvatures)

    def log_gaps(self, bins: Bins, mean: float, uses: float) -> list[Float]:
        """Logs of what splitting each bin to its ends adds to delta, for one use of a part.

        By ``D`` and by its hull. Losses of the part are counted from its ``mean``.
        """
        width, rest = np.diff(bins.edges), self.epsilon - (bins.middle - mean)
        with np.errstate(divide="ignore"):
            log_mass = np.log(bins.mass)
        # A bin that is much too wide tells that, and no more.
        most = self.log_delta - math.log(uses)
        curvatures = [np.interp(rest, self.at, table) for table in self.log_curvatures]
        return [
            np.minimum(log_mass + curvature + 2.0 * np.log(width) - math.log(12.0), most)
            for curvature in curvatures
        ]


def _log_curvature(at: Float, log_value: Float) -> Float:
    """Log of ``D t (t + 1)``, with the steepest slope ``t`` over some distances.

    A coarse profile has kinks, between which it is flat.
    """
    index, slope = np.arange(at.size), np.zeros(at.size)
    for reach in _REACHES:
        first, last = np.maximum(index - reach, 0), np.minimum(index + reach, at.size - 1)
        fall, far = log_value[first] - log_value[last], at[last] - at[first]
        # Epsilons may be closer than their rounding.
        slope = np.maximum(slope, averages(fall, far))
    slope = np.minimum(slope, _MOST_SLOPE)
    with np.errstate(divide="ignore"):
        return np.maximum(log_value + np.log(slope * (slope + 1.0)), _LEAST_LOG)


def spread(
    bins: Bins, log_gaps: list[Float], even: Float, uses: float, share_even: float = _EVEN
) -> Spread:
    """Nodes that go with the cube roots of gaps in delta, from bins of a coarser composition.

    ``log_gaps`` are logs of what each bin adds to delta for one use, by one estimate or more; the
    first says how many nodes the stage should have, which stands for some ``uses``. To 2 nodes that
    go with gaps ``share_even`` go with ``even``, a number for each bin.
    """
    width = np.diff(bins.edges)
    parts, totals = [], []
    for log_gap in log_gaps:
        largest = float(np.max(log_gap, initial=-1e6))
        root = np.exp(np.maximum(log_gap - largest, math.log(_LEAST_GAP)) / 3.0)
        # A bin of one node tells little about its density: neighbors share their gaps.
        with np.errstate(over="ignore", invalid="ignore"):
            fine = _widened(root / width) * width
        if not np.isfinite(fine).all():
            raise CertificationError("losses are too far apart for nodes between them")
        parts.append(fine / fine.sum())
        totals.append(math.log(uses) + largest + 3.0 * math.log(float(root.sum())))
    # Tails that fall steeply: what moves up by a bin must not outweigh what is there.
    log_density = np.log(np.maximum(bins.mass, _LEAST_MASS)) - np.log(width)
    rough = _widened(np.abs(np.gradient(log_density))) if width.size > 1 else np.ones(1)
    rough = np.minimum(rough, _STEEPEST) + 1e-9
    share = (2.0 / len(parts)) * sum(parts) + (_ROUGH / rough.sum()) * rough
    share = share + (share_even / even.sum()) * even
    points = np.concatenate([[0.0], np.cumsum(share)])
    return Spread(bins.edges, points / points[-1], totals[0])


def grouped(bins: Bins) -> Bins:
    """At most ``_GROUPS`` bins: a plan wants densities, not their noise."""
    each = -(-bins.mass.size // _GROUPS)
    if each == 1:
        return bins
    starts = np.arange(0, bins.mass.size, each)
    edges = np.append(bins.edges[starts], bins.edges[-1])
    mass = np.add.reduceat(bins.mass, starts)
    owner = np.arange(bins.mass.size) // each
    mean = np.add.reduceat(bins.mass * (bins.middle - edges[owner]), starts)
    return Bins(edges, mass, np.clip(averages(mean, mass), 0.0, np.diff(edges)))


def _widened(values: Float) -> Float:
    """Of each value and its neighbors the largest."""
    found = values.copy()
    found[1:] = np.maximum(found[1:], values[:-1])
    found[:-1] = np.maximum(found[:-1], values[1:])
    return found


@dataclass(frozen=True, eq=False)
class Plan:
    """Where nodes go in every stage, and how many reach a gap.

    Of losses there is also the rest of the composition, and the mean of each stage.
    """

    spreads: dict[Key, Spread]
    rest: Rest | None = None
    means: dict[Key, float] = field(default_factory=dict)

    def log_rest(self, key: Key, loss: Float) -> Float | None:
        """The hull of the rest for losses of one stage; None if nothing is planned for it."""
        if self.rest is None or key not in self.means:
            return None
        places = self.rest.epsilon - (loss - self.means[key])
        return np.interp(places, self.rest.at, self.rest.hull)

    def count(self, key: Key, nodes: int) -> int:
        """Nodes of one stage, if that with the largest gap has so many; of others all of them."""
        if key not in self.spreads:
            return nodes
        share = math.exp(0.25 * (self.spreads[key].log_gap - self._largest_log_gap))
        return max(int(nodes * max(share, _LEAST_SHARE)), _LEAST_NODES)

    @cached_property
    def _largest_log_gap(self) -> float:
        return max(spread.log_gap for spread in self.spreads.values())

    def work(self, nodes: int) -> float:
        """About how many products of masses a composition of both sides takes."""
        return 2.0 * nodes * float(sum(self.count(key, nodes) for key in self.spreads))

    def nodes_for(self, log_gap: float) -> float:
        """Nodes of the largest stage at which all stages add this to delta."""
        gaps = np.array([spread.log_gap for spread in self.spreads.values()])
        if not gaps.size:
            return 0.0
        shares = float(np.exp(0.5 * (gaps - gaps.max())).sum())
        return math.exp(min(0.5 * (float(gaps.max()) - log_gap), 40.0)) * math.sqrt(shares)
