"""The composer of noise with several worst shifts, and of many uses of atoms: what is left to come.

Neighbors may choose the shift of each use by what they have seen before. With ``y`` for the loss so
far less epsilon, what ``k`` further uses contribute to delta is at most

    ``V_0(y) = (1 - e^{-y})^+``,   ``V_k(y) = max_s E_{P_s}[V_{k-1}(y + L_s)]``,                 (1)

and ``delta(eps) = V_n(-eps)``: the largest value over all such choices, which is attained by one of
them (dynamic programming). Uses are followed one by one until one shift is the worst for all that
come before (``late_choices``). Where that takes too many, or losses are many and small, they are
followed in blocks (``recursion``), in a time that rises with the logarithm of ``n``. Of one shift
there is nothing to choose, and all uses are one block.

*Losses.* A shift has the measures of its loss from below and from above (``measure``). From above
several shifts may share the pair that dominates them all, their envelope; from below some may be
left out.

*Shifts that are far behind.* Of very many uses one shift that has a smaller moment than another
one by some hundred, over all of them, is a choice only in the last few. Its losses may be moved up
until it is no farther behind from above, as every ``V_k`` rises; from below it is left out. What
such a shift takes away from the functions then is not large beside what matters.

*Other steps.* A step with one worst pair is an average ``T``, which commutes with that of any
shift, and ``max_s T_s T f <= T max_s T_s f``: it is the worst if it comes first, and neighbors see
it before they choose. So it is the last factor here. Of steps of two kinds with several worst
shifts each the order that is the worst is not known: the shifts of one kind are chosen, the others
have their envelope from above and a fixed shift from below.

*Images.* A period ``p`` adds ``e^{-c k p} V_0(y + k p)`` to ``V_0(y)``, for all ``k`` but 0. From
below they have to go. As ``V_0 <= 1``, those of ``k > 0`` are ``1/(e^{c p} - 1)`` together at
most.
With ``V_0(y) <= e^{m y}`` for any ``m > 0`` those of ``k < 0`` become at most
``M(m)^n e^{m y} / (e^{(m - c) p} - 1)`` for ``m > c``.

*Rounding.* Each use adds a relative error of the masses, and one of ``y``. As (1) is monotone and
moves with ``y``, these add up over the uses, whatever is chosen.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from psinoise.accounting.compose.choices.choice_bound import ChoiceBound
from psinoise.accounting.compose.choices.induction import Use
from psinoise.accounting.compose.choices.late_choices import Target, induced_bounds
from psinoise.accounting.compose.choices.losses import Losses
from psinoise.accounting.compose.choices.recursion import Recursion
from psinoise.accounting.compose.choices.steps import FINENESS, MOST_LOG, Steps, best_frame
from psinoise.accounting.compose.choices.waves import Frame, hinge, power_error, total_of
from psinoise.accounting.compose.direct.composition import Composition as Direct
from psinoise.accounting.compose.direct.refine import Crossing, Width, distance
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.dense import Dense, dense
from psinoise.accounting.compose.measures.measure import UNIT, Measure, Side
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.pairs import Direction

_SIDES: tuple[Side, Side] = ("upper", "lower")
# Points of all transforms together.
_MOST_WORK = 7e8
# Share of one recursion. It takes so many blocks, with so many points each for one of the degree.
_SIDE, _BLOCKS, _TIMES = 0.5, 150, 6
# A recursion that takes more than a share of it is for a bracket so many times wider first; the
# next one has to be narrower by a factor.
_MUCH, _LOOSE, _CLOSER = 0.08, 16.0, 0.5
# Groups of shifts, and nodes of the loss of one for each fineness.
_LEAST_GROUPS, _MOST_GROUPS, _LOSSES, _MOST_LOSSES = 8, 128, 128, 4096
# Few uses.
_FEW_USES = 500
# Logs of deltas below are those of no float64, or nearly so.
_LEAST_LOG = -690.0
# Logs of deltas that are large, or next to 1; a share of what the envelope and one shift are apart
# by their moments that bounds are, surely.
_LARGE, _NEXT_TO_1, _APART = math.log(0.9), math.log(0.999), 0.3
# As groups, each shift.
_ALL = 2**20
# A finer recursion brings both sides closer than this share, or nothing does.
_PROGRESS = 0.7
# Logs of moments of all uses by which a shift may be behind.
_BEHIND = 400.0
# Share of the width that a side may lose to errors.
_SHARE = 0.2
# What one use may leave out of its losses is so much less than of delta, as a log.
_UNTRIMMED = 40.0
# Nodes of a composition with a fixed shift; what one block may say else about the log of delta, and
# its error as a share of delta.
_FIRST_NODES, _NEAR, _NEGLIGIBLE = 512, 2.0, 1e-3


@dataclass(frozen=True)
class Choices:
    """Uses of a pair that dominates several, beside other steps, in one direction.

    Attributes
    ----------
    pair, count : what has several worst shifts, and how often it is used
    alone : its losses with one fixed shift, from below, which says where to look, and of the pair
        that dominates all of its shifts, from above
    others : the losses of the other steps from below and from above, and their counts
    direction, log_delta : where the profile is asked about
    """

    pair: AtomPair
    count: int
    alone: tuple[Dense, Dense]
    others: tuple[tuple[tuple[Dense, Dense], int], ...]
    direction: Direction
    log_delta: float
    _measures: dict[tuple[Dense, Side, int], Measure] = field(
        default_factory=dict, compare=False, repr=False
    )

    def bounds(
        self, epsilon: float, given: bool, crossing: Crossing, width: Width, behind: bool
    ) -> Generator[Bound, None, bool]:
        """Bounds from above and below, each pair finer than the last, until the work is spent.

        ``epsilon`` is where they are asked for, if that is given, or a guess at it; ``behind`` is
        true of a direction that the other one may be ahead of. Returned is whether they are as
        close as is asked, or closer than those of any composer that takes one shift from below and
        the envelope from above, which are the logs of their moments apart.
        """

        @functools.cache
        def envelope() -> Bound:
            return self._fixed("upper", epsilon, given, width)[0]

        # Of a direction that is behind it is enough as a rule.
        if behind or epsilon <= 0.0:
            yield envelope()
        fixed, around, scale = self._fixed("lower", epsilon, given, width)
        around = crossing(fixed, around, scale)
        if around <= 0.0:
            yield envelope()
        if fixed.log_delta(around) > _NEXT_TO_1:
            return False  # the envelope has that, too
        made: dict[Side, Bound] = {}
        if (yield from _noted(self._of_choices(around, fixed, scale, crossing, width), made)):
            return True
        yield envelope()
        if fixed.side == "lower":
            yield fixed
        if not self.pair.several or len(made) < 2:
            return False
        tilt = fixed.slope(around, 0.03 * scale)
        gap = distance(made["lower"], made["upper"], around, tilt, crossing)
        return gap <= _APART * self._apart(tilt)

    def _apart(self, tilt: float) -> float:
        """How far the envelope and one shift are apart in units of epsilon, by their moments."""
        alone = self.pair.at_tilt(self.direction, tilt).moment(self.direction, tilt)
        return self.count * (self.pair.moment(self.direction, tilt) - alone) / tilt

    def _fixed(
        self, side: Side, epsilon: float, given: bool, width: Width
    ) -> tuple[Bound, float, float]:
        """With one shift from below, or the envelope from above: all uses are one block, or, where
        that cannot be, products, which are no bound but something between for the former. Epsilon,
        if it is not given, and a distance that matters there, about."""
        nodes = _LOSSES * FINENESS
        once = self._measure(self.alone[side == "upper"], side, nodes)
        steps = Steps(((Losses((once,)), self.count), *self._of_others(side, nodes)))
        tilt = steps.saddle(epsilon) if given else steps.saddle_at(self.log_delta)
        # Products of few uses of one step take little time.
        if tilt is not None and (self.others or self.count > _FEW_USES):
            around, log_delta = steps.estimate(tilt)
            asked = width(around, tilt)
            found = best_frame(steps, tilt, around, asked, FINENESS, log_delta)
            bound = found and _bound(side, steps, *found[:2], FINENESS, _NEGLIGIBLE * found[2])
            # Where rare large losses decide that may be far off, and of large deltas it is.
            value = bound[0].log_delta(around) if bound else math.inf
            if bound and abs(value - log_delta) <= _NEAR and value < _LARGE:
                return bound[0], around, 1.0 / tilt
        sources = tuple((pair[side == "upper"],) * 2 for pair, _ in self.others)
        composed = Direct(
            ((self.alone[side == "upper"],) * 2, *sources),
            (self.count, *(count for _, count in self.others)),
            self.log_delta,
        )
        made, _ = composed.compose("upper" if side == "upper" else "middle", _FIRST_NODES, None)
        return made, epsilon, 0.03 * max(made.largest, 1e-300)

    def _of_choices(
        self, epsilon: float, fixed: Bound, scale: float, crossing: Crossing, width: Width
    ) -> Generator[Bound, None, bool]:
        """In blocks, or by induction for few uses; whether both bounds are as close as asked.

        With one shift delta is about what the bound `fixed` says, and falls over a scale.
        """
        log_delta = fixed.log_delta(epsilon)
        rough = self._steps("lower", 1.0, _MOST_GROUPS, FINENESS)
        blocks = self._in_blocks(rough, epsilon, log_delta, crossing, width)
        # All others as one measure, that is as fine, takes longer than blocks of them.
        central = rough.central(epsilon, log_delta)
        first = self.others or (self.count > _FEW_USES and central)
        if first and (yield from blocks):
            return True
        known = all(below is above for (below, above), _ in self.others)
        if self.pair.several and known and log_delta > _LEAST_LOG:
            target = Target(epsilon, math.exp(log_delta), fixed.slope(epsilon, 0.03 * scale), 0.0)
            steps = self._use(), self.count, self.others
            for loose in (False, True):
                if (yield from induced_bounds(*steps, target, loose, crossing, width)):
                    return True
                if (yield from blocks):  # nothing if these have ended
                    return True
        return bool((yield from blocks))

    def _in_blocks(
        self, rough: Steps, epsilon: float, log_delta: float, crossing: Crossing, width: Width
    ) -> Generator[Bound, None, bool]:
        """By trigonometric polynomials; whether both bounds are as close as asked."""
        fineness, loose, spent, before = FINENESS, 1.0, 0.0, math.inf
        while True:
            tilt = rough.saddle(epsilon)
            if tilt is None:
                return False
            asked, made = loose * width(epsilon, tilt), {}
            found = best_frame(rough, tilt, epsilon, asked, fineness, log_delta)
            if found is None:
                return False
            frame, farther, size = found
            each = _TIMES * min(self.count, _BLOCKS) * frame.degree
            groups = min(max(int(_SIDE * _MOST_WORK / each), _LEAST_GROUPS), _MOST_GROUPS)
            once, untried = 0.0, loose == 1.0 and spent == 0.0
            for side in _SIDES:
                steps = self._steps(side, frame.tilt, groups, fineness)
                if untried and each * len(steps.each[0][0].measures) > _MUCH * _MOST_WORK:
                    loose = _LOOSE  # first a wider bracket, which says what a narrow one takes
                    break
                # From below an error has to be small, from above it costs its logarithm.
                most = 0.1 if side == "lower" else MOST_LOG
                allowed = size * math.expm1(min(_SHARE * tilt * asked, most))
                bound = _bound(side, steps, frame, farther, fineness, allowed)
                if bound is None and untried and self._apart(tilt) > asked:
                    loose, spent = _LOOSE, _SIDE * _MOST_WORK
                    break
                if bound is None:
                    return False
                made[side], more = bound
                once += more
                yield made[side]
            if len(made) < 2:
                continue
            spent += once
            epsilon = crossing(made["upper"], epsilon, 1.0 / tilt)
            if not math.isfinite(epsilon):
                return False
            gap = distance(made["lower"], made["upper"], epsilon, tilt, crossing)
            reached = gap <= width(epsilon, tilt)
            log_delta = made["upper"].log_delta(epsilon)
            if loose > 1.0:
                # Work rises as the width that is asked falls.
                least = loose * once / max(_SIDE * (_MOST_WORK - spent), once)
                if reached or least > _CLOSER * loose:
                    return reached
                loose = max(least, 1.0)
                continue
            if reached or gap >= _PROGRESS * before or spent + 3.0 * once > _MOST_WORK:
                return reached
            fineness, before = 2 * fineness, gap

    def _use(self) -> Use:
        """One use with all shifts apart."""
        upper, lower = (self._losses(side, 1.0, _ALL, _MOST_LOSSES) for side in _SIDES)
        return Use(tuple(zip(lower, upper, strict=True)))

    def _steps(self, side: Side, tilt: float, groups: int, fineness: int) -> Steps:
        """The losses of one use of each group of shifts, and those of the other steps."""
        nodes = min(_LOSSES * fineness, _MOST_LOSSES)
        chosen = Losses(self._losses(side, tilt, groups, nodes))
        return Steps(((chosen, self.count), *self._of_others(side, nodes)))

    def _of_others(self, side: Side, nodes: int) -> Iterator[tuple[Losses, int]]:
        for pair, count in self.others:
            yield Losses((self._measure(pair[side == "upper"], side, nodes),)), count

    def _losses(self, side: Side, tilt: float, groups: int, nodes: int) -> tuple[Measure, ...]:
        """The losses of one use of each group of shifts."""
        parts = self.pair.groups(self.direction, tilt, groups)
        each = [dense(pair[side == "upper"], self.direction, math.inf) for pair in parts]
        return tuple(self._measure(source, side, nodes) for source in each)

    def _measure(self, source: Dense, side: Side, nodes: int) -> Measure:
        key = source, side, nodes
        if key not in self._measures:
            one = Direct(((source, source),), (1,), self.log_delta - _UNTRIMMED)
            self._measures[key] = one.measure(side, nodes)
        return self._measures[key]


def _noted(
    bounds: Generator[Bound, None, bool], made: dict[Side, Bound]
) -> Generator[Bound, None, bool]:
    """Bounds as they come, the last one of each side being noted."""
    while True:
        try:
            bound = next(bounds)
        except StopIteration as end:
            return bool(end.value)
        made[bound.side] = bound
        yield bound


def _bound(
    side: Side,
    steps: Steps,
    frame: Frame,
    farther: float,
    fineness: int,
    allowed: float,
) -> tuple[ChoiceBound, float] | None:
    """A bound of one side, and the work that it took; None if it takes too much."""
    (losses, count), *others = steps.each
    tilt, period = frame.tilt, frame.period
    log_scale, drift, variance = losses.cumulants(tilt)
    log_scale += _sum_rounding(losses)
    chosen = losses if side == "upper" else losses.near(tilt, _BEHIND / count)
    symbols, doubt = chosen.symbols(frame, log_scale, _BEHIND / count)
    start, error = hinge(frame, side)
    made = Recursion(side, frame, symbols, doubt, start, error, fineness, drift)
    if not made.advance(count, allowed, variance, _SIDE * _MOST_WORK):
        return None
    scale = count * log_scale
    for other, uses in others:
        scaled = other.cumulants(tilt)[0] + _sum_rounding(other)
        factor, more = other.symbols(made.frame, scaled)
        made.error += total_of(power_error(factor[0], more, uses) * made.coefficients)
        made.coefficients = made.coefficients * np.exp(uses * np.log(factor[0]))
        scale += uses * scaled
    relative = sum(uses * (each.rounding + 4.0 * UNIT) for each, uses in steps.each)
    relative += 16.0 * UNIT * (1.0 + abs(scale) + tilt * period)
    slack = sum(uses * each.slack for each, uses in steps.each)
    slack += 4.0 * UNIT * count * abs(drift)
    infinite = sum(uses * each.infinite for each, uses in steps.each)

    def image(power: float) -> float:
        """Log of ``1/(e^{power p} - 1)``, rounded up."""
        return -power * period - math.log1p(-math.exp(-power * period)) + 1e-9

    before = steps.cumulants(farther)[0] + image(farther - tilt) + relative
    bound = ChoiceBound(
        side,
        made.frame,
        made.coefficients,
        scale,
        made.error,
        infinite if side == "upper" else 0.0,
        relative,
        slack,
        ((image(tilt), 0.0), (before, farther)),
    )
    return bound, made.work


def _sum_rounding(losses: Losses) -> float:
    """Of the logarithm of a moment."""
    return 16.0 * UNIT * (max(measure.loss.size for measure in losses.measures) + 32)
