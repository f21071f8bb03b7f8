"""What is asked of a composition, and one of its directions.

A direction collects bounds on its profile, each of them valid everywhere, and says what the
tightest of them mean for the value that is asked for. The loop over both is in ``question``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.compose.choose import Guess, Sought, bounds
from psinoise.accounting.compose.measures.bound import Bound, ChernoffBound
from psinoise.accounting.compose.measures.dense import uses_of
from psinoise.accounting.concentrated import added
from psinoise.accounting.estimate.composition import LEAST_LOG_DELTA, NotConvergedError
from psinoise.accounting.estimate.estimate import (
    contour_epsilon,
    contour_log_delta,
    start_at_delta,
    start_at_epsilon,
)
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.steps import (
    Pairs,
    Share,
    Steps,
    are_pairs,
    directions,
    finite_share,
    largest_finite_loss,
    log_infinite_mass,
    several,
)
from psinoise.accounting.widths import Widths
from psinoise.errors import CertificationError

_UNASKED = Share(math.nan, math.nan, math.nan)
# Bounds this close may change places: crossings are found to 1e-13 of themselves.
_SAME_VALUE = 1e-11
#: Log of a delta that leaves float64 no room for the masses that make it.
UNDERFLOW = -690.0
# How far below its guess log delta may be, where it is what is asked.
_BELOW_GUESS = 40.0
# Share of the distance to a larger direction by which bounds on a smaller one may be apart.
_ROOM = 0.3
# Of a ratio of deltas.
_MOST_LOG = 700.0
# A direction that is behind by so little, in log delta, may be ahead: that is a guess.
_GUESSED = 5.0
# Of more uses float64 has no digits for sums of losses and their errors.
_MOST_USES = 2.0**50
# Of a slope that is read from a bound.
_LEAST_TILT = 1e-6
#: So many bounds of a direction are kept for other questions.
MOST_KEPT = 12

#: Bounds on the profile of each direction, from below and from above, valid everywhere.
Kept = dict[Direction, list[Bound]]


@dataclass(frozen=True)
class Asked:
    """Steps, composed in one direction or both, and how closely bounds on them are asked for.

    With ``estimating`` an estimate is enough: a contour integral that converges needs no bounds,
    and where none does bounds are brought close together. ``kept`` holds bounds of earlier
    questions about the same composition.
    """

    steps: Steps
    only: tuple[Direction, ...] | None = None
    tolerance: float | None = None
    estimating: bool = False
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
        # Bounds on what is chosen, and on epochs, take minutes to come within a millionth.
        exact = are_pairs(self.steps) and not several(self.steps)
        return Widths(self.tolerance, self.estimating and exact)

    @property
    def uses(self) -> float:
        return uses_of(self.steps)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Those that matter: "remove" for "add" where a reflection maps each step of one to that of
        the other, so that their profiles are the same, but float64 is not."""
        found = directions(self.steps)
        return found if self.only is None or len(found) == 1 else self.only

    @cached_property
    def at_most(self) -> float:
        """What no delta at an epsilon of 0 or more exceeds."""
        return math.fsum(count * step.total_variation_bound for step, count in self.steps)

    def largest_loss(self, direction: Direction) -> float:
        return largest_finite_loss(self.steps, direction)


class Point(NamedTuple):
    """What is asked: epsilon at a log delta, or (None) delta at an epsilon."""

    log_delta: float | None
    epsilon: float = math.nan


@dataclass
class OneDirection:
    """One direction of a composition at the point that is asked about.

    ``lower`` and ``upper`` bound the value that is asked for: epsilon, or the log of what finite
    losses contribute to delta. ``log_beside`` is that of the infinite ones.
    """

    question: Asked
    direction: Direction
    point: Point
    lower: float
    upper: float
    share: Share = _UNASKED  # of delta, where epsilon is asked for
    meant: float = -math.inf  # at most, if delta is meant to be all infinite losses
    composer: str = "exact"
    between: float = 0.5
    tilt: float = 1.0
    guess: Guess | None = None
    around: float = 0.0
    log_beside: float = -math.inf
    rounds: Iterator[Bound] | None = None
    found: dict[str, Bound] = field(default_factory=dict)
    crossed: dict[str, tuple[Bound, float]] = field(default_factory=dict)
    line: ChernoffBound | None = None
    ceiling: float = -math.inf  # below which nothing more need be known
    done: bool = False

    def begin(self) -> None:
        """What is known without composing anything, and where to look."""
        question, direction, point = self.question, self.direction, self.point
        steps, top = question.steps, question.largest_loss(direction)
        if point.log_delta is not None:
            share = finite_share(steps, direction, point.log_delta)
            if share is None:
                self.lower = self.upper = math.inf
            elif top <= 0.0:
                self.upper = 0.0
            else:
                self.share, self.upper = share, top
                if share.least == -math.inf:
                    self.meant, self.share = top, share._replace(least=share.most)
        else:
            self.log_beside = log_infinite_mass(steps, direction)
            if point.epsilon >= top:
                self.lower = self.upper = -math.inf
        countless = question.uses > _MOST_USES and not question.estimating
        self.done = countless or not self.lower < self.upper
        if self.done:
            return
        # One use is read from its bins; only of a delta one must know how small it may be.
        if (question.uses > 1.0 or point.log_delta is None) and are_pairs(steps):
            self._start(steps, top)
        if self._slope_unknown and 0.0 < top < 1.0:
            # Delta falls to 0 up to there.
            self.tilt = 1.0 / top
        for bound in question.kept.get(direction, ()):
            self.read(bound)
        # Of a delta below all float64 nothing more is to be known.
        below = point.log_delta is None and self.upper < LEAST_LOG_DELTA
        self.done = below or not self.lower < self.upper

    def _start(self, steps: Pairs, top: float) -> None:
        """A first guess, from the saddle point; none where outputs do not resolve the noise."""
        given, uses = self.point.log_delta is None, self.question.uses
        start = start_at_epsilon if given else start_at_delta
        epsilon, log_delta = self.point.epsilon, self.share.middle
        at = epsilon if given else log_delta
        try:
            composition, saddle = start(steps, self.direction, at, uses)
        except CertificationError:
            return
        if given:
            # Next to the largest loss the exponent is a difference of large numbers, of any sign.
            log_delta = min(max(saddle.log_delta, LEAST_LOG_DELTA), 0.0)
            if not saddle.saturated and saddle.log_chernoff(epsilon) < UNDERFLOW:
                # Masses underflow there. With the errors of its quadrature, which does not resolve
                # a loss near its largest value under the tilts that belong there.
                self.line = ChernoffBound(composition.certain_chernoff(0.0, saddle.c), saddle.c)
                self.read(self.line)
        else:
            epsilon = min(max(saddle.epsilon, 0.0), top)
        self.guess = Guess(epsilon, log_delta, composition)
        self.tilt, self.around = saddle.c, epsilon

    @property
    def _slope_unknown(self) -> bool:
        """Whether epsilon is asked for, and no saddle point knows how fast delta falls there.

        Bounds on small epsilons of little privacy loss would be close enough to any slope of 1. A
        single use is read as exactly as it can be.
        """
        asked = self.point.log_delta is not None and self.question.uses > 1.0
        return asked and self.guess is None

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
        if self.guess is None or self.point.log_delta is None or math.isinf(value):
            return False
        return self.guess.composition.stays_below(value, self.share.least, self.tilt)

    def sharpen(self) -> None:
        """One more bound: from above, from below, and finer ones in turn."""
        if self.rounds is None:
            self.question.check_certifiable()
            self.rounds = self._rounds()
        found = next(self.rounds, None)
        if found is None:
            self.done = True
            return
        if self.guess is None and found.side == "upper":
            if self.point.log_delta is None:
                epsilon = self.point.epsilon
                self.tilt = max(found.slope(epsilon, 1e-3 * max(epsilon, 1e-6)), _LEAST_TILT)
            elif self._slope_unknown and 0.0 < (epsilon := self._value(found)) < math.inf:
                self.tilt = max(found.slope(epsilon, 1e-3 * epsilon), _LEAST_TILT)
        before = self.lower, self.upper
        self.read(found)
        # Later ones are sharper, unless another composer made them.
        if found.side not in self.found or (self.lower, self.upper) != before:
            self.found[found.side] = found

    def keep(self) -> None:
        """Leave the sharpest bounds to later questions."""
        kept = self.question.kept.setdefault(self.direction, [])
        kept.extend(self.found.values())
        del kept[:-MOST_KEPT]

    def _rounds(self) -> Iterator[Bound]:
        guess, log_delta = self.guess, self.share.middle
        if self.point.log_delta is None:
            log_delta = guess.log_delta if guess else 0.0
            log_delta -= _BELOW_GUESS
        # Where no contour converges there are atoms, of which lattices do not know a millionth;
        # those of several pairs neighbors choose from.
        if self.question.estimating and not several(self.question.steps):
            guess = None
        sought = Sought(
            self.question.steps,
            self.direction,
            log_delta,
            self.tilt,
            guess,
            self._crossing,
            self._width,
            self.point.log_delta is None,
        )
        return bounds(sought, self.ceiling > -math.inf)

    def _width(self, epsilon: float, slope: float) -> float:
        """How close bounds should be, in units of epsilon."""
        if self.point.log_delta is None:
            log_width = float(self.question.widths.log_at(epsilon, slope))
            if self.guess is not None:
                behind = self.ceiling - self.guess.log_delta - _GUESSED
                log_width = max(self._beside(log_width), _ROOM * behind)
            return log_width / slope
        return max(self.question.widths.at(epsilon, slope), _ROOM * (self.ceiling - epsilon))

    def _beside(self, log_width: float) -> float:
        """How wide finite losses may leave the log of delta, for one of all of it."""
        if self.question.tolerance is not None or self.guess is None:
            return log_width
        ratio = math.exp(min(self.log_beside - self.guess.log_delta, _MOST_LOG))
        return max(min(log_width * (1.0 + ratio), 1.0), log_width)

    def total(self, value: float) -> float:
        """The value that is asked for, with infinite losses."""
        return float(np.logaddexp(value, self.log_beside))

    def finite(self, total: float) -> float:
        """What finite losses have of it."""
        if self.log_beside == -math.inf:
            return total
        share = -math.expm1(self.log_beside - total) if total > self.log_beside else 0.0
        return total + math.log(share) if share > 0.0 else -math.inf

    def converged(self) -> float | None:
        """The value by contour integration, if that converges in a moment."""
        if self.guess is None or self.question.uses == 1.0:
            return None
        composition = self.guess.composition
        saddle = composition.saddle(self.tilt)
        try:
            if self.point.log_delta is None:
                return contour_log_delta(composition, saddle, self.point.epsilon)
            if self.meant > -math.inf:
                return self.meant
            value = contour_epsilon(composition, saddle, self.share.middle)
            return min(max(value, 0.0), self.upper)
        except NotConvergedError:
            return None

    def _crossing(self, bound: Bound, around: float, scale: float) -> float:
        """The epsilon of a bound; of the last one of each side it is known."""
        if self.point.log_delta is None:
            return self.point.epsilon
        last, value = self.crossed.get(bound.side, (None, math.nan))
        if last is not bound:
            share = self.share.most if bound.side == "lower" else self.share.least
            value = bound.epsilon(share, around, scale)
            self.crossed[bound.side] = bound, value
        return value

    def _value(self, bound: Bound) -> float:
        if self.point.log_delta is None:
            return bound.log_delta(self.point.epsilon)
        value = self._crossing(bound, self.around, 1.0 / max(self.tilt, 1e-6))
        self.around = value if math.isfinite(value) else self.around
        return value
