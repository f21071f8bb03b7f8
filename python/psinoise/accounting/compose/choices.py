"""The composer of noise with several worst shifts: the recursion over what is left.

Neighbors may choose the shift of each use by what they have seen before. With ``y`` for the loss so
far less epsilon, what ``k`` further uses contribute to delta is at most

    ``V_0(y) = (1 - e^{-y})^+``,   ``V_k(y) = max_s E_{P_s}[V_{k-1}(y + L_s)]``,                 (1)

and ``delta(eps) = V_n(-eps)``: the largest value over all such choices, which is attained by one of
them (dynamic programming).

*Both sides.* As a function of ``x = e^{-y}`` every ``V_k`` is convex and falls: (1) takes averages
of ``V_{k-1}(x e^{-L})``, and the largest of them. So between nodes chords lie above it, and the
larger of the tangents at both nodes below; (1) is monotone and keeps both. Both are off by the
square of the distance of nodes.

*Losses.* A shift has the measures of its loss from below and from above (``measure``). From above
several shifts may share the pair that dominates them all, their envelope; from below some may be
left out.

*Other steps.* A step with one worst pair is an average ``T``, which commutes with that of any
shift, and ``max_s T_s T f <= T max_s T_s f``: it is the worst if it comes first, and neighbors see
it before they choose. Steps of two kinds with several worst shifts each are not composed here: the
order that is the worst is not known.

*Rounding.* Each use adds a relative error of the masses and of sums of positive terms, and one of
``y``. As (1) is monotone and moves with ``y``, these add up over the uses, whatever is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.bound import Bound
from psinoise.accounting.compose.dense import dense
from psinoise.accounting.compose.direct import Composition as Direct
from psinoise.accounting.compose.measure import UNIT, Measure, Side
from psinoise.accounting.compose.refine import Crossing, Width, distance
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.pairs import Direction, Float

_SIDES: tuple[Side, Side] = ("upper", "lower")
# Nodes of the first recursion.
_FIRST_NODES = 256
# What all recursions may take together, in terms of the sums: two seconds.
_MOST_TERMS = 6e8
# Groups of shifts, and nodes of the loss of one, for each node.
_GROUPS, _LOSSES = 1.0 / 32.0, 0.5
# ``e^{-y}`` is a float64 within these.
_FARTHEST = 600.0
# Beyond so large a ``y`` the function is 1 but for 1e-17.
_CERTAIN = 40.0
# Nodes are densest within so many deviations of the loss that is left, or was seen.
_DEVIATIONS = 0.5


@dataclass(frozen=True, eq=False)
class Segments:
    """A function of ``x = e^{-y}``: ``value + slope (x - x_k)`` from break ``k`` on."""

    y: Float
    x: Float
    value: Float
    slope: Float

    def log_at(self, y: Float) -> Float:
        """Its logarithm; that of its first value before the first break."""
        k = np.searchsorted(self.y, y, side="right") - 1
        inside = k >= 0
        k = np.maximum(k, 0)
        over = self.slope[k] * self.x[k] * np.expm1(np.minimum(self.y[k] - y, 0.0))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.value[k] + np.where(inside, over, 0.0)))


#: What is left when nothing is left: ``(1 - x)^+``.
NOTHING = Segments(np.zeros(1), np.ones(1), np.zeros(1), -np.ones(1))


@dataclass(frozen=True, eq=False)
class ChoiceBound(Bound):
    """A profile by the recursion, with what rounding may have changed.

    ``relative`` is the error of delta, ``slack`` that of epsilon.
    """

    segments: Segments
    side: Side
    relative: float
    slack: float
    composer = "choices"
    between = 0.5

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound on delta at some epsilons, rounded outwards."""
        moved = self.segments.log_at(self.sign * self.slack - epsilons)
        return np.minimum(moved + self.sign * self.relative, 0.0)


@dataclass(frozen=True)
class Choices:
    """Uses of a pair that dominates several, after other steps, in one direction.

    Attributes
    ----------
    pair, count : what has several worst shifts, and how often it is used
    others : the other steps as sources and counts; none of them has several
    direction, log_delta, tilt : where the profile is asked about, and its slope there
    """

    pair: AtomPair
    count: int
    others: Direct | None
    direction: Direction
    log_delta: float
    tilt: float

    def bounds(self, epsilon: float, crossing: Crossing, width: Width) -> Iterator[Bound]:
        """Bounds from above and below, each pair finer than the last, until the work is spent."""
        if not 0.0 <= epsilon < _FARTHEST:
            return
        nodes, spent, slope = float(_FIRST_NODES), 0.0, self.tilt
        while True:
            uses = {side: self._uses(side, round(nodes)) for side in _SIDES}
            work = self.count * nodes * sum(use.loss.size for use, _ in uses.values())
            spent += work
            if spent > _MOST_TERMS:
                return
            upper, lower = (
                self._bound(side, *uses[side], epsilon, round(nodes)) for side in _SIDES
            )
            yield upper
            yield lower
            epsilon = crossing(upper, epsilon, 1.0 / slope)
            slope = max(upper.slope(epsilon, 1e-3 * max(epsilon, 1e-6)), 1e-6)
            asked = width(epsilon, slope)
            gap = distance(lower, upper, epsilon, slope, crossing)
            if not gap > asked:
                return
            # The work rises with the square of the nodes, or the third power of few.
            most = ((_MOST_TERMS - spent) / work) ** (1.0 / 2.5)
            more = min(1.15 * math.sqrt(gap / asked), 4.0, most)
            if more < 1.2:
                return
            nodes *= more

    def _uses(self, side: Side, nodes: int) -> tuple[_Losses, _Losses | None]:
        """The losses of one use of each group of shifts, and those of the other steps."""
        parts = self.pair.groups(self.direction, self.tilt, max(round(_GROUPS * nodes), 8))
        each = [pair[side == "upper"] for pair in parts]
        made = []
        for pair in each:
            source = dense(pair, self.direction, math.inf)
            one = Direct(((source, source),), (1,), self.log_delta)
            made.append(one.measure(side, round(_LOSSES * nodes)))
        others = None
        if self.others is not None:
            others = _Losses.of([self.others.sided(side).measure(side, nodes)])
        return _Losses.of(made), others

    def _bound(
        self, side: Side, use: _Losses, others: _Losses | None, epsilon: float, nodes: int
    ) -> ChoiceBound:
        total, relative, slack = self.count + (others is not None), 0.0, 0.0
        left, low, high = NOTHING, 0.0, 0.0
        for k in range(1, total + 1):
            step = others if others is not None and k == total else use
            low, high = low - step.highest, max(high - step.lowest, 1.0)
            # The path from the start, where nothing was seen, to the end, where epsilon was.
            center = -epsilon * k / total
            spread = step.deviation * math.sqrt(max(min(k, total - k), 1))
            span = max(low, center - 80.0 * spread - 40.0, -_FARTHEST), min(high, _CERTAIN)
            y = _nodes(span, center, _DEVIATIONS * spread, nodes)
            value, slope = step.before(left, y)
            relative += step.rounding + UNIT * (step.loss.size + 64)
            slack += step.slack + 16.0 * UNIT * (1.0 + max(-y[0], y[-1]) + step.reach)
            left = _chords(y, value) if side == "upper" else _tangents(y, value, slope, relative)
        return ChoiceBound(left, side, relative + 64.0 * UNIT, slack)


@dataclass(frozen=True, eq=False)
class _Losses:
    """The losses of some shifts, one after the other; see `core.chosen_values`."""

    starts: NDArray[np.int64]
    certain: Float
    loss: Float
    ratio: Float
    mass: Float
    deviation: float
    rounding: float
    slack: float

    @classmethod
    def of(cls, measures: list[Measure]) -> _Losses:
        sizes = [measure.loss.size for measure in measures]
        loss, mass = (
            np.concatenate([getattr(measure, name) for measure in measures])
            for name in ("loss", "mass")
        )
        return cls(
            np.append(0, np.cumsum(sizes)),
            np.array([measure.infinite for measure in measures]),
            loss,
            np.exp(-loss),
            mass,
            max(_deviation(measure) for measure in measures),
            max(measure.rounding for measure in measures),
            max(measure.slack for measure in measures),
        )

    @property
    def lowest(self) -> float:
        return float(self.loss.min())

    @property
    def highest(self) -> float:
        return float(self.loss.max())

    @property
    def reach(self) -> float:
        return float(np.abs(self.loss).max())

    def before(self, after: Segments, y: Float) -> tuple[Float, Float]:
        """The function before one use, and its slope in ``x``."""
        return core.chosen_values(
            after.y,
            after.x,
            after.value,
            after.slope,
            self.starts,
            self.certain,
            self.loss,
            self.ratio,
            self.mass,
            y,
            np.exp(-y),
        )


def _deviation(measure: Measure) -> float:
    weight = measure.mass / measure.mass.sum()
    mean = float(weight @ measure.loss)
    return math.sqrt(float(weight @ (measure.loss - mean) ** 2))


def _nodes(span: tuple[float, float], center: float, width: float, count: int) -> Float:
    """Nodes of a span, densest around a center."""
    low, high = span
    center = min(max(center, low), high)
    width = max(width, 1e-6 * (high - low))
    ends = np.arcsinh((low - center) / width), np.arcsinh((high - center) / width)
    y = center + width * np.sinh(np.linspace(*ends, count))
    y[0], y[-1] = low, high
    return np.unique(y)


def _chords(y: Float, value: Float) -> Segments:
    """From node to node, and from the last one to 1, which no delta exceeds, at ``x = 0``."""
    x = np.exp(-y)
    value = np.minimum(value, 1.0)
    slope = np.diff(value, append=1.0) / np.diff(x, append=0.0)
    return Segments(y, x, value, np.minimum(slope, 0.0))


def _tangents(y: Float, value: Float, slope: Float, relative: float) -> Segments:
    """The larger of the tangents at neighboring nodes, where errors leave it: from where they meet.

    A tangent gives way to the next a little later than where they meet, and goes on from its own
    value there: below both.
    """
    held = (value > 0.0) & (slope < 0.0)
    y, value, slope = y[held], value[held], slope[held]
    if not y.size:
        return Segments(np.zeros(1), np.ones(1), np.zeros(1), np.zeros(1))
    x = np.exp(-y)
    # Where the first one is 0.
    first = x[0] + (1.0 - 1e-9) * value[0] / -slope[0]
    run = -np.diff(x)
    rise = -slope[:-1] * run
    error = (relative + 16.0 * UNIT) * (value[1:] + value[:-1] + rise)
    gap = np.maximum(np.diff(value) - rise - error, 0.0)
    turn = slope[:-1] - slope[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        met = x[1:] + np.where(turn > 0.0, np.minimum(gap / turn, run), 0.0)
    at = value[:-1] - slope[:-1] * (x[:-1] - met)
    breaks = np.append(first, met)
    return Segments(-np.log(breaks), breaks, np.append(0.0, at), slope)
