"""One question about a composition, and the one loop that answers it.

A direction of a composition collects bounds on its profile, each of them valid everywhere. The loop
takes the direction whose upper bound is the largest, asks the composers for finer bounds, and ends
when the bracket is as narrow as was asked for or nothing is left to try. What it returns is the
tightest sound bracket that was found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.compose.choose import Guess, bounds
from psinoise.accounting.compose.measures.bound import Bound, ChernoffBound
from psinoise.accounting.compose.measures.measured import Measured, uses_of
from psinoise.accounting.concentrated import added
from psinoise.accounting.estimate.composition import LEAST_LOG_DELTA, Composition
from psinoise.accounting.estimate.estimate import (
    contour_epsilon,
    contour_log_delta,
    start_at_delta,
    start_at_epsilon,
)
from psinoise.accounting.estimate.line import UnsettledError
from psinoise.accounting.gaussians import gaussians
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.steps import (
    MASS_ROUNDING,
    Pairs,
    Step,
    Steps,
    are_pairs,
    certain_finite_loss,
    directions,
    doubt_of_share,
    finite_share,
    infinite_mass,
    largest_finite_loss,
    largest_loss,
    several,
)
from psinoise.accounting.widths import Widths
from psinoise.errors import CertificationError

# Bounds this close may change places: crossings are found to 1e-13 of themselves.
_SAME_VALUE = 1e-11
#: Log of a delta that leaves float64 no room for the masses that make it.
UNDERFLOW = -690.0
# How far below its guess log delta may be, where it is what is asked.
_BELOW_GUESS = 40.0
# The least positive float64: delta is below it where its logarithm is that small.
_LEAST = 5e-324
# Share of the distance to a larger direction by which bounds on a smaller one may be apart.
_ROOM = 0.3
# Of a slope that is read from a bound.
_LEAST_TILT = 1e-6
#: So many bounds of a direction are kept for other questions.
MOST_KEPT = 12

#: Bounds on the profile of each direction, from below and from above, valid everywhere.
Kept = dict[Direction, list[Bound]]


class Point(NamedTuple):
    """What is asked: epsilon at a log delta, or (None) delta at an epsilon."""

    log_delta: float | None
    epsilon: float = math.nan


@dataclass
class _Part:
    """One direction of a composition at the point that is asked about.

    ``lower`` and ``upper`` bound the value that is asked for: epsilon, or log delta.
    """

    question: Question
    way: Direction
    point: Point
    lower: float
    upper: float
    goal: float = math.nan  # log delta of the finite losses, where epsilon is asked for
    doubt: float = 0.0
    composer: str = "exact"
    between: float = 0.5
    tilt: float = 1.0
    guess: Guess | None = None
    around: float = 0.0
    composition: Composition | None = None
    rounds: Iterator[Bound] | None = None
    found: dict[str, Bound] = field(default_factory=dict)
    crossed: dict[str, tuple[Bound, float]] = field(default_factory=dict)
    line: ChernoffBound | None = None
    ceiling: float = -math.inf  # below which nothing more need be known
    done: bool = False

    def begin(self) -> None:
        """What is known without composing anything, and where to look."""
        steps = self.question.steps
        way, point = self.way, self.point
        top = self.question.largest_loss(way)
        if point.log_delta is not None:
            share = finite_share(steps, way, point.log_delta)
            if share is None:
                self.lower = self.upper = math.inf
            elif share == -math.inf or top <= 0.0:
                self.upper = max(top, 0.0)
                # The envelope of several pairs is attained in one use alone.
                self.lower = 0.0 if self.question.uses > 1.0 and several(steps) else self.upper
                self.done = True
                return
            else:
                self.goal, self.upper = share, top
                self.doubt = doubt_of_share(steps, way, point.log_delta)
        elif point.epsilon >= top:
            self.lower = self.upper = -math.inf
        self.done = not self.lower < self.upper
        # One use is read from its bins; only of a delta one must know how small it may be.
        more = self.question.uses > 1.0 or point.log_delta is None
        if not self.done and more and are_pairs(steps):
            self._start(steps, top)
        for bound in () if self.done else self.question.kept.get(way, ()):
            self.read(bound)
        # Of a delta below all float64 nothing more is to be known.
        below = point.log_delta is None and self.upper < LEAST_LOG_DELTA
        self.done = below or not self.lower < self.upper

    def _start(self, steps: Pairs, top: float) -> None:
        """A first guess, from the saddle point."""
        way, point, uses = self.way, self.point, self.question.uses
        if point.log_delta is not None:
            self.composition, saddle = start_at_delta(steps, way, self.goal, uses)
            epsilon, log_delta = min(max(saddle.epsilon, 0.0), top), self.goal
        else:
            self.composition, saddle = start_at_epsilon(steps, way, point.epsilon, uses)
            epsilon, log_delta = point.epsilon, max(saddle.log_delta, LEAST_LOG_DELTA)
            if not saddle.saturated and saddle.log_chernoff(point.epsilon) < UNDERFLOW:
                # Masses underflow there. With the errors of its quadrature, which does not resolve
                # a loss near its largest value under the tilts that belong there.
                log_norm = self.composition.certain_chernoff(0.0, saddle.c)
                self.line = ChernoffBound(log_norm, saddle.c)
                self.read(self.line)
        self.guess = Guess(epsilon, log_delta, self.composition)
        self.tilt, self.around = saddle.c, epsilon

    def read(self, bound: Bound) -> None:
        """Take what a bound says about the value."""
        before = self.upper - self.lower
        value = self._value(bound)
        if bound.side == "lower":
            self.lower = max(self.lower, value)
        else:
            self.upper = min(self.upper, value)
        if self.upper - self.lower < before:
            self.composer, self.between = bound.composer, bound.between
        if self.lower > self.upper:
            if self.lower - self.upper > _SAME_VALUE * max(abs(self.lower), abs(self.upper)):
                raise CertificationError(f"the bounds of {self.composer} contradict others")
            self.lower, self.upper = self.upper, self.lower

    def stays_below(self, value: float) -> bool:
        """Whether the value is at most this one, by Chernoff's bound; quick."""
        if self.composition is None or self.point.log_delta is None or math.isinf(value):
            return False
        return self.composition.stays_below(value, self.goal - self.doubt)

    def sharpen(self) -> None:
        """One more bound: from above, from below, and finer ones in turn."""
        if self.rounds is None:
            self.question.check_certifiable()
            self.rounds = self._rounds()
        found = next(self.rounds, None)
        if found is None:
            self.done = True
            return
        # Later ones are sharper.
        self.found[found.side] = found
        if self.composition is None and self.point.log_delta is None and found.side == "upper":
            # There is no saddle point that knows how fast delta falls.
            epsilon = self.point.epsilon
            self.tilt = max(found.slope(epsilon, 1e-3 * max(epsilon, 1e-6)), _LEAST_TILT)
        self.read(found)

    def keep(self) -> None:
        """Leave the sharpest bounds to later questions."""
        kept = self.question.kept.setdefault(self.way, [])
        kept.extend(self.found.values())
        del kept[:-MOST_KEPT]

    def _rounds(self) -> Iterator[Bound]:
        guess, log_delta = self.guess, self.goal
        if self.point.log_delta is None:
            log_delta = (guess.log_delta if guess else 0.0) - _BELOW_GUESS
        # Where no contour settles there are atoms, of which lattices do not know a millionth.
        if self.question.settle:
            guess = None
        return bounds(
            self.question.steps,
            self.way,
            log_delta,
            self.tilt,
            guess,
            self._crossing,
            self._width,
            self._enough,
        )

    @property
    def _enough(self) -> float:
        """How close bounds on log delta may stay, in units of epsilon: as on epsilon itself."""
        if self.point.log_delta is not None or self.question.tolerance is not None:
            return 0.0
        return self.question.widths.at(self.point.epsilon, self.tilt)

    def _width(self, epsilon: float, slope: float) -> float:
        """How close bounds should be, in units of epsilon."""
        if self.point.log_delta is None:
            return float(self.question.widths.log_at(epsilon, slope)) / slope
        return max(self.question.widths.at(epsilon, slope), _ROOM * (self.ceiling - epsilon))

    def settled(self) -> float | None:
        """The value by contour integration, if that settles in a moment."""
        if self.composition is None or self.question.uses == 1.0:
            return None
        saddle = self.composition.saddle(self.tilt)
        try:
            if self.point.log_delta is None:
                return contour_log_delta(self.composition, saddle, self.point.epsilon)
            value = contour_epsilon(self.composition, saddle, self.goal)
            return min(max(value, 0.0), self.upper)
        except UnsettledError:
            return None

    def _crossing(self, bound: Bound, around: float, scale: float) -> float:
        """The epsilon of a bound; of the last one of each side it is known."""
        if self.point.log_delta is None:
            return self.point.epsilon
        last, value = self.crossed.get(bound.side, (None, math.nan))
        if last is not bound:
            doubt = self.doubt if bound.side == "lower" else -self.doubt
            value = bound.epsilon(self.goal + doubt, around, scale)
            self.crossed[bound.side] = bound, value
        return value

    def _value(self, bound: Bound) -> float:
        if self.point.log_delta is None:
            return bound.log_delta(self.point.epsilon)
        value = self._crossing(bound, self.around, 1.0 / max(self.tilt, 1e-6))
        self.around = value if math.isfinite(value) else self.around
        return value


@dataclass(frozen=True)
class Question:
    """Steps, composed in one direction or both.

    With ``settle`` an estimate is enough: a contour integral that settles needs no bounds, and
    where none does bounds are brought close together. ``kept`` holds bounds of earlier questions
    about the same composition.
    """

    steps: Steps
    ways: tuple[Direction, ...] | None = None
    tolerance: float | None = None
    settle: bool = False
    kept: Kept = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", added(self.steps))

    def check_certifiable(self) -> None:
        """Refuse laws that are not compiled to the tables that certified kernels read."""
        for pair, _ in self.steps:
            if isinstance(pair, Pair) and not hasattr(pair.noise, "_table"):
                raise CertificationError(
                    f"certified bounds need a law of psinoise.noise, got {pair.noise!r}"
                )

    @cached_property
    def widths(self) -> Widths:
        return Widths(self.tolerance, self.settle)

    @property
    def uses(self) -> float:
        return uses_of(self.steps)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Those that matter."""
        return self.ways if self.ways is not None else directions(self.steps)

    @cached_property
    def shorter(self) -> Question:
        """The same composition in fewer steps, where that is possible; estimates need no fewer."""
        steps = None if self.settle else gaussians(self.steps)
        return self if steps is None else replace(self, steps=steps, kept={})

    @cached_property
    def below(self) -> Question | None:
        """What bounds the profile from below, if that is something else: what is attained."""
        kept: dict[Step, int] = {}
        for step, count in self.steps:
            found = step.attained if isinstance(step, Measured) else step
            if found is not None:
                kept[found] = kept.get(found, 0) + count
        steps = tuple(kept.items())
        return None if steps == self.steps else replace(self, steps=steps, kept={})

    def largest_loss(self, way: Direction) -> float:
        return largest_finite_loss(self.steps, way)

    def epsilon(self, delta: float) -> Bracket:
        """Bounds on epsilon at ``delta``."""
        found, below = self.shorter._epsilon(delta), self.below
        return found if below is None else _from_below(found, below.epsilon(delta))

    def _epsilon(self, delta: float) -> Bracket:
        """The same, taking what is known from above for what is known from below."""
        if delta >= 1.0 or not self.steps:
            return Bracket(0.0, 0.0, 0.0)
        if delta == 0.0:
            top = max(largest_loss(self.steps, way) for way in self.directions)
            least = max(certain_finite_loss(self.steps, way) for way in self.directions)
            if any(infinite_mass(self.steps, way) > 0.0 for way in self.directions):
                least = math.inf
            return Bracket(min(max(least, 0.0), top), top, top)
        if sum(count * step.total_variation_bound for step, count in self.steps) <= delta:
            return Bracket(0.0, 0.0, 0.0)
        point = Point(math.log(delta))
        parts = [_Part(self, way, point, 0.0, math.inf) for way in self.directions]
        with np.errstate(under="ignore"):
            return self._answer(parts)

    def delta(self, epsilon: float) -> Bracket:
        """Bounds on delta at ``epsilon``."""
        found, below = self.shorter._delta(epsilon), self.below
        return found if below is None else _from_below(found, below.delta(epsilon))

    def _delta(self, epsilon: float) -> Bracket:
        floor = max(0.0, -math.expm1(epsilon)) if epsilon < 0.0 else 0.0
        # Delta is between this and 1, which is the same number from about -37 down.
        if not self.steps or floor == 1.0:
            return Bracket(floor, floor, floor)
        with np.errstate(under="ignore"):
            parts = [
                _Part(self, way, Point(None, epsilon), -math.inf, 0.0) for way in self.directions
            ]
            found = self._answer(parts)
        lower = upper = estimate = floor
        for part in parts:
            mass = infinite_mass(self.steps, part.way)
            low, high = math.exp(part.lower), math.exp(part.upper)
            if part.upper > -math.inf:
                high = max(high, _LEAST)
            lower = max(lower, low + mass * (1.0 - MASS_ROUNDING))
            upper = max(upper, high + mass * (1.0 + MASS_ROUNDING))
            estimate = max(estimate, math.exp(found.estimate) + mass)
        lower, upper = min(lower, 1.0), min(upper, 1.0)
        return Bracket(lower, min(max(estimate, lower), upper), upper, found.composer)

    def bounds_at(
        self, way: Direction, epsilon: float, ceiling: float
    ) -> tuple[list[Bound], ChernoffBound | None]:
        """Bounds on the profile of one direction, as sharp at an epsilon as is asked for.

        Unless a line that bounds it is below the ceiling; it comes besides where masses underflow.
        """
        part = _Part(self, way, Point(None, epsilon), -math.inf, 0.0)
        part.begin()
        while not part.done and part.upper - part.lower > self._allowed(part):
            if part.upper <= ceiling:
                break
            part.sharpen()
        return list(part.found.values()), part.line

    def _answer(self, parts: list[_Part]) -> Bracket:
        """The loop: finer bounds where the bracket is widest, until it is narrow enough."""
        for part in parts:
            part.begin()
        if self.settle:
            settled = self._estimated(parts)
            if settled is not None:
                return Bracket(settled, settled, settled, "contour")
        while True:
            leader = max(parts, key=lambda part: (part.lower, _ahead(part)))
            allowed = self._allowed(leader)
            if not leader.done and leader.upper - leader.lower > allowed:
                leader.ceiling = -math.inf
                leader.sharpen()
                continue
            # The others matter as far as their upper bounds are larger.
            ceiling = max(leader.upper, leader.lower + allowed)
            others = [part for part in parts if not part.done and part.upper > ceiling]
            if not others:
                break
            other = max(others, key=lambda part: part.upper)
            if other.rounds is None and other.stays_below(leader.upper):
                other.upper, other.done = leader.upper, True
            else:
                other.ceiling = ceiling
                other.sharpen()
        for part in parts:
            part.keep()
        lower, upper = leader.lower, max(part.upper for part in parts)
        finite = math.isfinite(lower) and math.isfinite(upper)
        estimate = lower + leader.between * (upper - lower) if finite else upper
        return Bracket(lower, estimate, upper, leader.composer)

    @staticmethod
    def _estimated(parts: list[_Part]) -> float | None:
        """The largest value of the directions by contour integrals; None if they do not settle."""
        found = max((part.lower for part in parts if part.done), default=-math.inf)
        for part in sorted((part for part in parts if not part.done), key=_ahead, reverse=True):
            if part.stays_below(found):
                continue
            settled = part.settled()
            if settled is None:
                return None
            found = max(found, settled)
        return found

    def _allowed(self, leader: _Part) -> float:
        """How wide the bracket of the leading direction may be."""
        if self.uses == 1.0:
            return 0.0  # nothing is composed: only rounding keeps the bounds apart
        if leader.point.log_delta is None:
            return float(self.widths.log_at(leader.point.epsilon, leader.tilt))
        return self.widths.at(leader.upper, leader.tilt) if leader.upper < math.inf else 0.0


def _ahead(part: _Part) -> float:
    if part.guess is None:
        return 0.0
    return part.guess.epsilon if part.point.log_delta is not None else part.guess.log_delta


def _from_below(found: Bracket, below: Bracket) -> Bracket:
    """A bracket with the lower end of what is known from below."""
    return Bracket(min(below.lower, found.upper), found.estimate, found.upper, found.composer)
