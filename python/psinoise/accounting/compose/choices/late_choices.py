"""Choices in the last uses alone, after many uses of one shift.

What choices add falls fast with the uses that are still to come. Let ``T_s`` take a function of the
loss so far to its mean after one use of a shift ``s``, and let ``f`` be at least ``V_k``, what
``k`` further uses add to delta (``induction``). If there are a shift ``r`` and ``a, b >= 0`` with

    ``T_s f <= (1 + a) T_r f + b e^{-t y}``  for every ``s``,   and ``M >= 1`` is at least every
    ``E_{P_s}[e^{-t L}]``,  then  ``V_{k+m} <= (1 + a)^m (T_r^m f + m M^m b e^{-t y})``.       (1)

That is so for ``m = 0``; and as all means commute, keep order, and those of ``e^{-t y}`` are at
most ``M e^{-t y}``, ``T_s`` of the right side is at most ``(1 + a)^m`` times
``(1 + a) T_r^{m+1} f + T_r^m b e^{-t y} + m M^{m+1} b e^{-t y}``, which is the right side for
``m + 1``, or less. ``T_r^m`` is a composition without choices (``direct``).

*On a grid.* The premise of (1) has to hold for every loss so far. So the losses of one use of every
shift are split to the points of a grid that is fine enough for all uses, ``r`` among them: these
are pairs that dominate the true ones, all sums of their losses are points, and (1) is asked for
there alone. ``f`` comes from a coarser grid: its chords are a function like any other.

*Beyond the ends.* Below the first point ``f`` is constant. As it rises, ``T_s f`` is at most what
it is at that point, and ``T_r f`` at least ``f`` times the mass; ``e^{-t y}`` is larger. Beyond the
last point ``f`` is the chord to 1 at ``x = e^{-y} = 0``. ``T_s f``, which is convex in ``x``, lies
below its own chord to 1; ``f`` lies nowhere below the line of its chord, and ``T_r f`` not either,
but for rounding. So there the premise holds where it holds at the last point with ``b = 0``.

*From below* neighbors take ``r`` first, and choose later.

*Wide bounds.* Where rare large losses decide no one shift may be the worst before, and blocks are
of no use either. Then all uses have choices, on as coarse a grid as there is time for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from psinoise.accounting.compose.choices.induction import (
    SAME,
    Attained,
    AttainedBound,
    Grid,
    GridBound,
    Induction,
    Use,
)
from psinoise.accounting.compose.direct.composition import Composition as Direct
from psinoise.accounting.compose.direct.refine import Crossing, Width, distance
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.dense import Dense, atoms_source
from psinoise.accounting.compose.measures.measure import SIDES, UNIT, Side
from psinoise.accounting.loss.pairs import Float

# Uses with choices: after so many, and after no more than so many, it is asked whether one shift is
# the worst from there on; of so many in all, if none is, all have choices.
_LEAST, _MOST_FEW, _MOST_CHOSEN = 4, 128, 500
# What choices add does not fall faster than with this power of the uses after them, by experience.
_FASTEST = 10.0
# Shares of a width that go to the uses with choices, to splitting losses of the uses before, to
# composing these, and to what choices could still add there; to the first where there is nothing
# before; and to a coarse first look.
_CHOSEN, _SPLIT, _COMPOSED, _ADDED, _ALONE, _ROUGH = 0.27, 0.2, 0.1, 0.1, 0.65, 3.0
# ``t`` as a share of the slope of delta; the log of ``M^m``, about and at most.
_TILT, _GROWTH, _MOST_GROWTH = 0.5, 2.0, 4.0
# Terms of all sums; points of a grid that is looked at once, of all uses with choices together, of
# which two bytes each are kept, and of one with what its losses reach.
_MOST_SUMS, _MOST_POINTS, _MOST_KEPT, _MOST_REACHED = 3e10, 2**19, 3e7, 2**23
# Terms of wide bounds; grids are coarser for these by so much at most.
_WIDE_SUMS, _COARSEST = 8e9, 30.0
# How much closer than asked the next bounds should be; they are closer by so much, or none are.
_CLOSER, _PROGRESS = 0.85, 0.7
# What one use may leave out of its losses is so much less than of delta, as a log.
UNTRIMMED = 40.0
# Nodes of a first composition, and of others.
_FIRST_NODES, _LEAST_NODES, _MOST_NODES = 512, 1024, 8192

#: Losses of one use from below and from above, and how often it is used.
Step = tuple[tuple[Dense, Dense], int]


@dataclass(frozen=True)
class Target:
    """Where a bound is asked for, about: a point of the profile, how fast the log of delta falls
    there, and how wide a bracket of epsilon may be."""

    epsilon: float
    delta: float
    tilt: float
    asked: float

    @property
    def added(self) -> float:
        """What choices may add, as a share of delta."""
        return _ADDED * self.asked * self.tilt

    def grid(self, uses: int, share: float, fall: float) -> Grid:
        """A grid whose chords take a share of the width in so many uses."""
        step = math.sqrt(8.0 * share * self.asked / (uses * (1.0 + self.tilt)))
        return Grid.of(step, self.epsilon, self.tilt, fall)


@dataclass(frozen=True, eq=False)
class LateChoices:
    """Uses with choices, of so many of the pair, and what comes before them.

    What choices could add there is ``relative``, as a share of delta, and ``added`` apart: a log
    where ``y = 0``, and how fast it falls with ``y``.
    """

    induction: Induction
    count: int
    others: tuple[Use, ...] = ()
    relative: float = 0.0
    added: tuple[float, float] = (-math.inf, 0.0)

    @property
    def sums(self) -> float:
        """Terms of all sums of the uses with choices, about."""
        return len(self.induction.choices) * self.induction.sums

    def upper(self) -> GridBound:
        """A bound from above."""
        grid, values = self.induction.grid, self.induction.values
        for other in self.others:
            once = Induction(other, grid, values)
            once.advance()
            values = once.values
        log_added, fall = self.added
        values = values + np.exp(np.minimum(log_added - fall * grid.y, 0.0))
        # Delta rises with y.
        values = np.minimum.accumulate(values[::-1])[::-1]
        relative, slack = self._errors("upper")
        return GridBound(grid, values, relative + self.relative, slack)

    def lower(self) -> AttainedBound:
        """A bound from below, by the choices made from above."""
        grid, made = self.induction.grid, Attained(self.induction.grid)
        made.advance(self.induction.use, self.induction.choices)
        for other in self.others:
            made.advance(other, [np.zeros(grid.points, dtype=np.int16)])
        return AttainedBound(grid, made.under_p, made.under_q, *self._errors("lower"))

    def _errors(self, side: Side) -> tuple[float, float]:
        """Of all uses, the relative error of values or masses, and the error of losses."""
        relative, slack = 16.0 * UNIT, 0.0
        uses = [(self.induction.use, self.count), *((other, 1) for other in self.others)]
        for use, count in uses:
            once, off = use.errors(side, self.induction.grid)
            relative, slack = relative + count * once, slack + count * off
        return relative, slack


def induced_bounds(
    use: Use,
    count: int,
    others: Sequence[Step],
    target: Target,
    wide: bool,
    crossing: Crossing,
    width: Width,
) -> Generator[Bound, None, bool]:
    """Bounds from above and below on finer and finer grids; whether they are as close as asked.

    With so many uses with choices, beside steps without one. If they may be ``wide`` a grid is as
    coarse as the work that there may be asks for.
    """
    finer, spent, before = 1.0, 0.0, math.inf
    while spent <= (0.3 * _WIDE_SUMS if wide else _MOST_SUMS):
        asked = width(target.epsilon, target.tilt)
        if not asked > 0.0:
            return False
        target = dataclasses.replace(target, asked=finer * asked)
        made = _late(use, count, others, target, wide)
        if made is None:
            return False
        spent += made.sums
        upper = made.upper()
        yield upper
        epsilon = crossing(upper, target.epsilon, 1.0 / target.tilt)
        if not math.isfinite(epsilon):
            return False
        lower = made.lower()
        yield lower
        found = distance(lower, upper, epsilon, target.tilt, crossing)
        if found <= asked:
            return True
        if found >= _PROGRESS * before or made.relative > 2.0 * target.added:
            return False
        before = found
        finer *= max(min(_CLOSER * asked / found, 0.5), 0.01)
        delta = math.exp(upper.log_delta(epsilon))
        target = dataclasses.replace(target, epsilon=epsilon, delta=delta)
    return False


def _late(
    use: Use, count: int, others: Sequence[Step], target: Target, wide: bool
) -> LateChoices | None:
    """As few uses with choices as will do; None if they are too many."""
    fall = math.inf if others else use.fall(count)
    few = _few(use, count, target, wide)
    if few is None:
        return None
    share = _CHOSEN if others or few < count else _ALONE
    made = _induction(use, target.grid(few, share, fall))
    if wide and made is not None and few * made.sums > _WIDE_SUMS:
        # A grid has as many points as the root of the width asks for.
        coarser = min(few * made.sums / _WIDE_SUMS, _COARSEST)
        target = dataclasses.replace(target, asked=coarser**2 * target.asked)
        made = _induction(use, target.grid(few, share, fall))
    if made is None or few * made.grid.points > _MOST_KEPT or few * made.sums > _MOST_SUMS:
        return None
    for _ in range(few):
        made.advance()
    if few < count:
        return with_one_shift(made, count, others, target)
    return LateChoices(made, count, _composed(others, target))


def _few(use: Use, count: int, target: Target, wide: bool) -> int | None:
    """After how many uses one shift may be taken for all before, on a coarse grid.

    Where none may it is all of few uses, and none of many, but for wide bounds.
    """
    most, few = min(count, _MOST_FEW), _LEAST
    made = _induction(use, target.grid(most, _ROUGH, use.fall(count)))
    if made is None or most * made.sums > _MOST_SUMS:
        return None
    while few < most:
        while len(made.choices) < few:
            made.advance()
        spare = _spare(made.grid, count, _TILT * target.tilt, _GROWTH, target)
        added = (count - few) * _reference(made, spare)[0]
        if added <= 0.5 * target.added:
            return few
        if added * (few / most) ** _FASTEST > 0.5 * target.added:
            break
        few += max(few // 3, 1)
    return count if wide or count <= _MOST_CHOSEN else None


def with_one_shift(
    made: Induction, count: int, others: Sequence[Step], target: Target
) -> LateChoices | None:
    """All uses before of one shift, with (1)."""
    rest = count - len(made.choices)
    grid = target.grid(rest, _SPLIT, math.inf if others else made.use.fall(count))
    check = _induction(made.use, grid, made)
    if check is None:
        return None
    first = check.values
    check.advance()
    # Means of e^{-L} are at most 1, and so are those of smaller powers, of the others too.
    tilt = min(_TILT * target.tilt, 1.0 if others else math.inf)
    while (growth := rest * max(math.log(check.moment(-tilt)), 0.0)) > _MOST_GROWTH:
        tilt *= 0.5
    spare = _spare(grid, rest, tilt, growth, target)
    log_added = math.log(rest) + growth + math.log(spare[0]) + tilt * float(grid.y[0])
    spare[-1] = 0.0
    surplus, shift = _reference(check, spare)
    loss, mass, infinite = check.split(shift)
    below_first = first[:1] * (float(mass.sum()) + infinite)
    surplus = max(surplus, _surplus(check.values[:1], below_first, spare[:1]))
    # Of both means, and of what is certain beyond the last point.
    relative = rest * (surplus + (8.0 * UNIT * (mass.size + 64) + 4.0 * SAME) / first[-1])
    if not relative <= 1.0:
        return None
    measure = made.use.shifts[shift][0]
    held = measure.mass > 0.0
    below = atoms_source(np.log(measure.mass[held]), measure.loss[held])
    above = dataclasses.replace(atoms_source(np.log(mass), loss), beyond=infinite)
    composed = _composed([*others, ((below, above), rest)], target)
    return LateChoices(made, count, composed, relative, (log_added + 1e-9, tilt))


def _induction(use: Use, grid: Grid, after: Induction | None = None) -> Induction | None:
    """None if there are too many points, of the grid or of what losses reach beyond it."""
    if grid.points > _MOST_POINTS:
        return None
    values = None if after is None else after.grid.chords(after.values, grid.y)
    made = Induction(use, grid, values)
    return made if made.points <= _MOST_REACHED else None


def _reference(made: Induction, spare: Float) -> tuple[float, int]:
    """The least surplus of choices in the last use over a shift, and which that is."""
    return min(
        (_surplus(made.values, made.without_choice(shift), spare), shift)
        for shift in np.unique(made.choices[-1]).tolist()
    )


def _surplus(best: Float, one: Float, spare: Float) -> float:
    """The least ``a`` with ``best <= (1 + a) one + spare``."""
    more = best - one - spare
    with np.errstate(over="ignore"):
        found = np.divide(more, one, out=np.where(more > 0.0, np.inf, 0.0), where=one > 0.0)
    return max(float(found.max()), 0.0)


def _spare(grid: Grid, uses: int, tilt: float, growth: float, target: Target) -> Float:
    """``b e^{-t y}``, of which so many make a share of delta."""
    share = target.added * target.delta / uses
    return np.asarray(share * np.exp(-growth - tilt * (grid.y + target.epsilon)))


def _composed(steps: Sequence[Step], target: Target) -> tuple[Use, ...]:
    """Steps without a choice as one or two uses, with nodes where the profile asks for them."""
    if not steps:
        return ()
    sources, counts = zip(*steps, strict=True)
    whole, sides = Direct(sources, counts, math.log(target.delta)), []
    for side in SIDES:
        sided = whole.sided(side)
        middle, stages = sided.compose("middle", _FIRST_NODES, None)
        scale = max(1e-3 * middle.largest, 1e-300)
        slope = middle.slope(target.epsilon, 1e-3 * max(target.epsilon, scale))
        log_delta = middle.log_delta(target.epsilon)
        sided = sided.at(log_delta - UNTRIMMED)
        plan = sided.plan(middle, stages, target.epsilon, slope)
        nodes = plan.nodes_for(math.log(_COMPOSED * target.asked * slope) + log_delta)
        bound, _ = sided.compose(side, int(min(max(nodes, _LEAST_NODES), _MOST_NODES)), plan)
        sides.append((bound.first, bound.second))
    return tuple(Use((pair,)) for pair in zip(*sides, strict=True) if None not in pair)
