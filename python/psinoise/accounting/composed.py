"""A whole privacy profile: few compositions, read at many epsilons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.compose.choose import one_use
from psinoise.accounting.compose.measures.bound import Bound, delta_of
from psinoise.accounting.compose.measures.dense import Mask
from psinoise.accounting.compose.measures.measure import SIDES, Side
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.steps import MASS_ROUNDING, infinite_mass, log_infinite_mass
from psinoise.accounting.one_direction import MOST_KEPT, UNDERFLOW
from psinoise.accounting.question import Question, certain_delta
from psinoise.accounting.widths import DEFAULT_WIDTH

_MOST_COMPOSITIONS = 48
# Between the epsilons that compositions are made for bounds may be so many times as wide.
_ROOM = 2.0
# Of a log delta below this one, 1e-30, no more is asked than epsilon to the default share of it.
_SMALL = -70.0
# So many of them may end wider than is asked for.
_MOST_MISSED = 4
# Chernoff's bound is less than so much above delta.
_LEAST_LOG_DELTA = UNDERFLOW + 10.0

# Where narrow bins end below an epsilon, in terms of the largest, and which epsilons lie apart.
_NARROW, _APART = 2.0 ** np.arange(-40.0, 1.0), 1.0 / 64.0

#: Indices of epsilons.
Places = NDArray[np.intp]
#: Logs of both bounds on what finite losses of each direction contribute to delta.
Known = dict[Direction, dict[Side, Float]]


@dataclass(frozen=True, eq=False)
class Composed:
    """Bounds on the profile of each direction of a composition, each of them valid everywhere.

    ``known`` has logs of what they say that finite losses contribute to delta at the epsilons that
    were ``asked``, where they are sharp.
    """

    question: Question
    bounds: dict[Direction, list[Bound]]
    asked: Float
    known: Known

    def delta(self) -> tuple[Float, Float]:
        """Both bounds on delta where they were asked for."""
        lower, upper = (
            self._delta(side, self.asked, {d: logs[side] for d, logs in self.known.items()})
            for side in SIDES
        )
        return lower, np.maximum(upper, lower)

    def upper(self, epsilons: Float) -> Float:
        """The upper one elsewhere."""
        question, logs = self.question, {}
        for direction, bounds in self.bounds.items():
            known = [*bounds, *_one_use(question, direction, epsilons)]
            logs[direction] = _log(question, direction, known, epsilons, "upper")
        return self._delta("upper", epsilons, logs)

    def _delta(self, side: Side, epsilons: Float, logs: dict[Direction, Float]) -> Float:
        """A bound on delta from logs of what finite losses of each direction contribute."""
        question, upper = self.question, side == "upper"
        found = certain_delta(epsilons, side)
        for direction, log in logs.items():
            mass = infinite_mass(question.steps, direction)
            mass *= 1.0 + MASS_ROUNDING if upper else 1.0 - MASS_ROUNDING
            found = np.maximum(found, delta_of(log, side) + mass)
        if upper:
            found = np.minimum(found, np.where(epsilons >= 0.0, question.at_most, 1.0))
        return np.asarray(np.minimum(found, 1.0))


def composed(question: Question, epsilons: Float) -> Composed:
    """Bounds as sharp as certified brackets, at finite epsilons that rise; few compositions."""
    kept, directions = question.kept, question.directions if question.steps else ()
    # What is kept is read here, for all at once.
    question = replace(question, kept={})
    bounds: dict[Direction, list[Bound]] = {}
    known: Known = {}
    for direction in directions:
        found = [*kept.get(direction, ()), *_one_use(question, direction, epsilons)]
        bounds[direction] = found
        known[direction] = {
            side: _log(question, direction, found, epsilons, side) for side in SIDES
        }
    if bounds and question.uses != 1.0:
        _sharpen(question, epsilons, bounds, known)
    kept.update({direction: found[-MOST_KEPT:] for direction, found in bounds.items()})
    return Composed(question, bounds, epsilons, known)


def _one_use(question: Question, direction: Direction, epsilons: Float) -> list[Bound]:
    """Bounds on a single use, exact at the epsilons, where their bins end.

    From above what ends at an epsilon counts as far as losses are rounded: below those that lie
    apart bins begin narrow.
    """
    if question.uses != 1.0 or not (epsilons < question.largest_loss(direction)).any():
        return []
    distances = (float(np.abs(epsilons).max()) or 1.0) * _NARROW
    with np.errstate(over="ignore"):
        apart = np.diff(epsilons, prepend=-np.inf) > _APART * distances[-1]
        edges = np.append(epsilons, np.subtract.outer(epsilons[apart], distances))
    edges = np.unique(edges[np.isfinite(edges)])
    return list(one_use(question.steps, direction, _LEAST_LOG_DELTA, edges))


def _log(
    question: Question, direction: Direction, bounds: list[Bound], epsilons: Float, side: Side
) -> Float:
    """Logs of a bound on what finite losses of a direction contribute to delta."""
    log = np.full(epsilons.shape, -np.inf if side == "lower" else 0.0)
    for bound in bounds:
        if bound.side == side:
            _say(bound, epsilons, np.arange(epsilons.size), log)
    return np.where(epsilons >= question.largest_loss(direction), -np.inf, log)


def _say(bound: Bound, epsilons: Float, places: Places, log: Float) -> None:
    """Let a bound say what it knows at some of the epsilons."""
    tighter = np.maximum if bound.side == "lower" else np.minimum
    log[places] = tighter(log[places], bound.log_deltas(epsilons[places]))


def _sharpen(
    question: Question,
    epsilons: Float,
    bounds: dict[Direction, list[Bound]],
    known: Known,
) -> None:
    """Add compositions where bounds are wide, and what they say to what is known.

    Each is made where bounds are the widest beside what is asked, for the largest such epsilon:
    what it cuts off counts as an infinite loss, which hardly matters at smaller epsilons, where
    delta is larger.
    """
    done = np.zeros(epsilons.size, dtype=bool)
    for _ in range(_MOST_COMPOSITIONS):
        total = _with_infinite(question, known)
        gap, allowed, small = _gaps(question, epsilons, total)
        wide = gap > allowed
        left = np.flatnonzero(wide & ~done)
        # Those that were made for an epsilon where they are wide spent all the work that they may.
        if np.count_nonzero(wide & done) >= _MOST_MISSED or not left.size:
            return
        excess = (gap / allowed)[left]
        place = int(left[np.flatnonzero(excess == excess.max())[-1]])
        done[place] = True
        for direction, so_far in bounds.items():
            # Of a direction that is behind, or a delta that float64 has no room for, none matters.
            total = _with_infinite(question, known)
            ceiling = max(
                _LEAST_LOG_DELTA, *(float(logs["lower"][place]) for logs in total.values())
            )
            low, high = total[direction]["lower"], total[direction]["upper"]
            if high[place] <= ceiling or not high[place] - low[place] > allowed[place]:
                continue
            epsilon, asked = float(epsilons[place]), question
            if small[place]:
                asked = replace(question, tolerance=DEFAULT_WIDTH * epsilon)
            found, line = asked.bounds_at(direction, epsilon, ceiling)
            for bound in [*found, *([line] if line else [])]:
                _say(bound, epsilons, np.flatnonzero(wide), known[direction][bound.side])
            so_far.extend(found)


def _with_infinite(question: Question, known: Known) -> Known:
    """The same of all of delta."""
    found: Known = {}
    for direction, logs in known.items():
        log_mass = log_infinite_mass(question.steps, direction)
        found[direction] = {side: np.logaddexp(log, log_mass) for side, log in logs.items()}
    return found


def _gaps(question: Question, epsilons: Float, known: Known) -> tuple[Float, Float, Mask]:
    """How far the bounds on log delta are apart, how far they may be, and where that is what
    epsilon may be: where delta is small, and no tolerance is given."""
    lower = np.max([logs["lower"] for logs in known.values()], axis=0)
    upper = np.minimum.accumulate(np.max([logs["upper"] for logs in known.values()], axis=0))
    with np.errstate(all="ignore"):  # of epsilons next to each other, and next to infinity
        # Nothing is asked of a delta that float64 has no room for.
        gap = np.where((upper > lower) & (upper > _LEAST_LOG_DELTA), upper - lower, 0.0)
        slope = -np.gradient(lower, epsilons) if epsilons.size > 1 else np.ones(1)
    slope = np.where(np.isfinite(slope) & (slope > 0.0), slope, 1.0)
    allowed = question.widths.log_at(epsilons, slope)
    small = (upper < _SMALL) & (epsilons > 0.0) & (question.tolerance is None)
    allowed = np.maximum(allowed, np.where(small, DEFAULT_WIDTH * slope * epsilons, 0.0))
    return gap, _ROOM * allowed, small
