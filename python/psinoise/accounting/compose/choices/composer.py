"""The composer of noise with several worst shifts, and of many uses of atoms: what is left to come.

Neighbors may choose the shift of each use by what they have seen before. With ``y`` for the loss so
far less epsilon, what ``k`` further uses contribute to delta is at most

    ``V_0(y) = (1 - e^{-y})^+``,   ``V_k(y) = max_s E_{P_s}[V_{k-1}(y + L_s)]``,

and ``delta(eps) = V_n(-eps)`` is attained by one of all such choices (dynamic programming). Few
uses are followed one by one until one shift is the worst for all that come before
(``late_choices``). More are followed in blocks (``recursion``), in a time that rises with the
logarithm of ``n``, unless rare large losses decide. Of one shift there is nothing to choose, and
all uses are one block.

*Losses.* A shift has the measures of its loss from below and from above (``measure``). From above
several shifts may share the pair that dominates them all, their envelope; from below some may be
left out.

*Other steps.* A step with one worst pair is an average ``T``, which commutes with that of any
shift, and ``max_s T_s T f <= T max_s T_s f``: it is the worst if neighbors see it before they
choose. So it is the last factor here. Of two kinds with several worst shifts the worst order is not
known: the shifts of one are chosen, the other has its envelope from above and a fixed shift from
below.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from psinoise._kept import cached_property
from psinoise.accounting.compose.choices.blocks import (
    FINENESS,
    MOST_LOG,
    MOST_WORK,
    Steps,
    best_frame,
    choice_bound,
)
from psinoise.accounting.compose.choices.induction import Use
from psinoise.accounting.compose.choices.late_choices import UNTRIMMED, Target, induced_bounds
from psinoise.accounting.compose.direct.composition import Composition as Direct
from psinoise.accounting.compose.direct.refine import Crossing, Width, distance
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.dense import Dense, dense
from psinoise.accounting.compose.measures.measure import Measure, Side
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.pairs import Direction

_SIDES: tuple[Side, Side] = ("upper", "lower")
# Points of all transforms together.
_ALL_WORK = 2.0 * MOST_WORK
# A recursion takes so many blocks, with so many points each for one of the degree.
_BLOCKS, _TIMES = 150, 6
# One that takes more than a share of all work is for a bracket so many times wider first; the next
# one has to be narrower by a factor, and is as wide as is asked if it may nearly be that.
_MUCH, _LOOSE, _CLOSER, _LITTLE = 0.08, 16.0, 0.5, 2.0
# Groups of shifts, or each shift; nodes of the loss of one for each fineness.
_LEAST_GROUPS, _MOST_GROUPS, _ALL, _LOSSES, _MOST_LOSSES = 8, 128, 2**20, 128, 4096
_FEW_USES, _FEW_GROUPS = 500, 12
# So few uses are followed one by one in less time than it takes to look for blocks.
_FOLLOWED = 32
# Of more uses functions that are smaller where they are asked about take too many blocks if there
# are choices.
_LEAST_SIZE = 5e-7
# Logs of deltas below are those of no float64, or nearly so.
_LEAST_LOG = -690.0
# Logs of deltas that are large, or next to 1; a share of what the envelope and one shift are apart
# by their moments that bounds are, surely.
_LARGE, _NEXT_TO_1, _APART = math.log(0.9), math.log(0.999), 0.3
# A finer recursion brings both sides closer than this share, or nothing does; and the share of the
# width that a side may lose to errors.
_PROGRESS, _SHARE = 0.7, 0.2
# Nodes of a composition with a fixed shift; what one block may say else about the log of delta, and
# its error as a share of delta.
_FIRST_NODES, _NEAR, _NEGLIGIBLE = 512, 2.0, 1e-3


@dataclass(frozen=True, eq=False)
class Choices:
    """Uses of a pair that dominates several, beside other steps, in one direction.

    Attributes
    ----------
    pair, count : what has several worst shifts, and how often it is used
    alone : its losses with one fixed shift, from below, and of its envelope, from above
    others : the losses of the other steps from below and from above, and their counts
    direction, log_delta : where the profile is asked about
    epsilon, given : where bounds are asked for, and whether that is given, or a guess
    crossing, width : what is asked of a bound, and how close both should be
    """

    pair: AtomPair
    count: int
    alone: tuple[Dense, Dense]
    others: tuple[tuple[tuple[Dense, Dense], int], ...]
    direction: Direction
    log_delta: float
    epsilon: float
    given: bool
    crossing: Crossing
    width: Width
    _measures: dict[tuple[Dense, Side, int], Measure] = field(default_factory=dict)

    def bounds(self, behind: bool) -> Generator[Bound, None, bool]:
        """Bounds from above and below, each pair finer than the last, until the work is spent.

        Of a direction that is ``behind`` another one the envelope is enough as a rule. Returned is
        whether they are as close as is asked, or closer than those of any composer that takes one
        shift from below and the envelope from above, which are the logs of their moments apart.
        """
        if behind or self.epsilon <= 0.0:
            yield self._envelope
        fixed, around, scale = self._fixed("lower")
        around = self.crossing(fixed, around, scale)
        if around <= 0.0:
            yield self._envelope
        if fixed.log_delta(around) > _NEXT_TO_1:
            return False  # the envelope has that, too
        made: dict[Side, Bound] = {}
        if (yield from _noted(self._of_choices(around, fixed, scale), made)):
            return True
        yield self._envelope
        if fixed.side == "lower":
            yield fixed
        if not self.pair.several or len(made) < 2:
            return False
        tilt = fixed.slope(around, 0.03 * scale)
        gap = distance(made["lower"], made["upper"], around, tilt, self.crossing)
        return gap <= _APART * self._apart(tilt)

    @property
    def _uses(self) -> int:
        return self.count + sum(count for _, count in self.others)

    @cached_property
    def _envelope(self) -> Bound:
        return self._fixed("upper")[0]

    def _apart(self, tilt: float) -> float:
        """How far the envelope and one shift are apart in units of epsilon, by their moments."""
        alone = self.pair.at_tilt(self.direction, tilt).moment(self.direction, tilt)
        return self.count * (self.pair.moment(self.direction, tilt) - alone) / tilt

    def _fixed(self, side: Side) -> tuple[Bound, float, float]:
        """With one shift from below, or the envelope from above; epsilon, if it is not given, and a
        distance that matters there, about.

        All uses are one block. Where that cannot be, products are, for one shift between bounds.
        """
        steps = self._steps(side, [self.alone[side == "upper"]], FINENESS)
        tilt = None
        if not steps.uncertain:
            tilt = steps.saddle(self.epsilon) if self.given else steps.saddle_at(self.log_delta)
        # Products of few uses take little time.
        if tilt is not None and self._uses > _FEW_USES:
            around, log_delta = steps.estimate(tilt)
            asked = self.width(around, tilt)
            found = best_frame(steps, tilt, around, asked, FINENESS, log_delta)
            made = found and choice_bound(side, steps, found, FINENESS, _NEGLIGIBLE)
            # Where rare large losses decide that may be far off, and of large deltas it is.
            value = made[0].log_delta(around) if made else math.inf
            if made and abs(value - log_delta) <= _NEAR and value < _LARGE:
                return made[0], around, 1.0 / tilt
        sources, counts = zip((self.alone, self.count), *self.others, strict=True)
        composed = Direct(sources, counts, self.log_delta).sided(side)
        whole, _ = composed.compose("upper" if side == "upper" else "middle", _FIRST_NODES, None)
        return whole, self.epsilon, 0.03 * max(whole.largest, 1e-300)

    def _of_choices(
        self, epsilon: float, fixed: Bound, scale: float
    ) -> Generator[Bound, None, bool]:
        """In blocks, or by induction for few uses; whether both bounds are as close as asked.

        With one shift delta is about what the bound `fixed` says, and falls over a scale.
        """
        log_delta = fixed.log_delta(epsilon)
        rough = self._steps("lower", self._groups("lower", 1.0, _MOST_GROUPS), FINENESS)
        blocks = self._in_blocks(rough, epsilon, log_delta)
        # All others as one measure, that is as fine, takes longer than blocks of them. Of a
        # continuum of pairs groups are no finer by induction, and all uses have choices.
        countless, central = self.pair.countless, rough.central(epsilon, log_delta)
        first = self._uses > _FOLLOWED and (self.others or central or countless)
        if first and (yield from blocks):
            return True
        known = all(below is above for (below, above), _ in self.others)
        by_induction = self.pair.several and known and not (first and countless)
        if by_induction and log_delta > _LEAST_LOG:
            target = Target(epsilon, math.exp(log_delta), fixed.slope(epsilon, 0.03 * scale), 0.0)
            rest = self.count, self.others, target
            for groups in (_ALL, _FEW_GROUPS):
                use, wide = self._use(groups), groups < _ALL
                if (yield from induced_bounds(use, *rest, wide, self.crossing, self.width)):
                    return True
                if (yield from blocks):  # nothing if these have ended
                    return True
        return bool((yield from blocks))

    def _in_blocks(
        self, rough: Steps, epsilon: float, log_delta: float
    ) -> Generator[Bound, None, bool]:
        """By trigonometric polynomials; whether both bounds are as close as asked."""
        fineness, loose, spent, before = FINENESS, 1.0, 0.0, math.inf
        while (tilt := rough.saddle(epsilon)) is not None:
            asked, made = loose * self.width(epsilon, tilt), {}
            found = best_frame(rough, tilt, epsilon, asked, fineness, log_delta)
            many = self.pair.several and self.count > _FEW_USES
            if found is None or (many and found[2] < _LEAST_SIZE):
                return False
            frame = found[0]
            each = _TIMES * min(self.count, _BLOCKS) * frame.degree
            groups = min(max(int(MOST_WORK / each), _LEAST_GROUPS), _MOST_GROUPS)
            once, untried = 0.0, loose == 1.0 and spent == 0.0
            for side in _SIDES:
                shifts = self._groups(side, frame.tilt, groups)
                if untried and each * len(shifts) > _MUCH * _ALL_WORK:
                    loose = _LOOSE  # first a wider bracket, which says what a narrow one takes
                    break
                # From below an error has to be small, from above it costs its logarithm.
                most = 0.1 if side == "lower" else MOST_LOG
                allowed = math.expm1(min(_SHARE * tilt * asked, most))
                steps = self._steps(side, shifts, fineness)
                bound = choice_bound(side, steps, found, fineness, allowed)
                if bound is None and untried and self._apart(tilt) > asked:
                    loose, spent = _LOOSE, MOST_WORK
                    break
                if bound is None:
                    return False
                made[side], more = bound
                once += more
                yield made[side]
            if len(made) < 2:
                continue
            spent += once
            epsilon = self.crossing(made["upper"], epsilon, 1.0 / tilt)
            if not math.isfinite(epsilon):
                return False
            gap = distance(made["lower"], made["upper"], epsilon, tilt, self.crossing)
            reached = gap <= self.width(epsilon, tilt)
            log_delta = made["upper"].log_delta(epsilon)
            if loose > 1.0:
                # Work rises as the width that is asked falls.
                least = loose * once / max(0.5 * (_ALL_WORK - spent), once)
                if reached or least > _CLOSER * loose:
                    return reached
                loose = least if least > _LITTLE else 1.0
                continue
            if reached or not gap < _PROGRESS * before or spent + 3.0 * once > _ALL_WORK:
                return reached
            fineness, before = 2 * fineness, gap
        return False

    def _use(self, most: int) -> Use:
        """One use with so many groups of shifts."""
        above, below = (
            [self._measure(shift, side, _MOST_LOSSES) for shift in self._groups(side, 1.0, most)]
            for side in _SIDES
        )
        return Use(tuple(zip(below, above, strict=True)))

    def _groups(self, side: Side, tilt: float, most: int) -> list[Dense]:
        """The losses of one use of each of so many groups of shifts."""
        pairs = self.pair.groups(self.direction, tilt, most)
        return [dense(pair[side == "upper"], self.direction, math.inf) for pair in pairs]

    def _steps(self, side: Side, shifts: Iterable[Dense], fineness: int) -> Steps:
        """The losses of one use of each shift, and those of the other steps."""
        nodes = min(_LOSSES * fineness, _MOST_LOSSES)
        others = [pair[side == "upper"] for pair, _ in self.others]
        return Steps(
            tuple(self._measure(loss, side, nodes) for loss in shifts),
            tuple(self._measure(loss, side, nodes) for loss in others),
            (self.count, *(count for _, count in self.others)),
        )

    def _measure(self, source: Dense, side: Side, nodes: int) -> Measure:
        key = source, side, nodes
        if key not in self._measures:
            one = Direct(((source, source),), (1,), self.log_delta - UNTRIMMED)
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
