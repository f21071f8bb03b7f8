"""A whole privacy profile: few compositions, read at many epsilons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from psinoise.accounting.compose.bound import Bound
from psinoise.accounting.compose.choose import one_use
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.steps import SAME, infinite_mass
from psinoise.accounting.question import DEFAULT_WIDTH, Question

_MOST_COMPOSITIONS = 48
# Of the reach of a composition: how far the next is looked at.
_SEEN = 4.0
# Slopes that are read from a table are known to this factor.
_ROOM = 1.25
# So many of them may end wider than is asked for.
_MOST_MISSED = 4
_LEAST_LOG_DELTA = -700.0


@dataclass(frozen=True, eq=False)
class Composed:
    """Bounds on the profile of each direction of a composition, each of them valid everywhere.

    Where they are sharp is for `composed` to decide. ``known`` has logs of both bounds on what
    finite losses contribute to delta, at the epsilons that were ``asked``.
    """

    question: Question
    pairs: dict[Direction, list[tuple[Bound, Bound]]]
    asked: Float
    known: dict[Direction, tuple[Float, Float]]

    def logs(self, way: Direction, epsilons: Float) -> tuple[Float, Float]:
        """Logs of both bounds on what finite losses of a direction contribute to delta."""
        if epsilons is self.asked:
            return self.known[way]
        return _logs(self.question, way, self.pairs[way], epsilons)

    def delta(self, epsilons: Float) -> tuple[Float, Float]:
        """Both bounds on delta."""
        lower = upper = np.maximum(-np.expm1(np.minimum(epsilons, 0.0)), 0.0)
        for way in self.pairs:
            mass = infinite_mass(self.question.steps, way)
            low, high = self.logs(way, epsilons)
            lower = np.maximum(lower, np.exp(low) + mass * (1.0 - SAME))
            upper = np.maximum(upper, np.exp(high) + mass * (1.0 + SAME))
        return np.minimum(lower, 1.0), np.minimum(upper, 1.0)


def composed(question: Question, epsilons: Float) -> Composed:
    """Bounds that are as sharp at these epsilons as certified brackets are, with few compositions.

    Parameters
    ----------
    question
        what is composed
    epsilons
        finite numbers that rise
    """
    # Of no delta more than four digits are asked for.
    question = replace(question, least=1.0)
    ways = question.directions if question.steps else ()
    pairs = {way: list(question.kept.get(way, ())) for way in ways}
    if question.uses == 1.0:
        for way, found in pairs.items():
            found.append(one_use(question.steps, way, _LEAST_LOG_DELTA, epsilons))
    known = {way: _logs(question, way, found, epsilons) for way, found in pairs.items()}
    if pairs and question.uses != 1.0:
        _sharpen(question, epsilons, pairs, known)
    # Delta falls in epsilon.
    for low, high in known.values():
        low[:] = np.maximum.accumulate(low[::-1])[::-1]
        np.minimum.accumulate(high, out=high)
    return Composed(question, pairs, epsilons, known)


def _logs(
    question: Question, way: Direction, pairs: list[tuple[Bound, Bound]], epsilons: Float
) -> tuple[Float, Float]:
    lower, upper = np.full(epsilons.shape, -np.inf), np.zeros(epsilons.shape)
    for below, above in pairs:
        lower = np.maximum(lower, below.log_deltas(epsilons))
        upper = np.minimum(upper, above.log_deltas(epsilons))
    beyond = epsilons >= question.largest_loss(way)
    return np.where(beyond, -np.inf, lower), np.where(beyond, -np.inf, upper)


def _sharpen(
    question: Question,
    epsilons: Float,
    pairs: dict[Direction, list[tuple[Bound, Bound]]],
    known: dict[Direction, tuple[Float, Float]],
) -> None:
    """Add compositions where bounds are wide, and what they say to what is known.

    Most composers are sharp around one epsilon. As far as the last one was, the next is put from
    what is done.
    """
    done = np.zeros(epsilons.size, dtype=bool)
    wide = _wide(question, epsilons, known)
    reach, missed = 0.0, 0
    for _ in range(_MOST_COMPOSITIONS):
        if missed >= _MOST_MISSED or not (wide & ~done).any():
            return
        place = _next(wide & ~done, epsilons, reach)
        done[place] = True
        epsilon = float(epsilons[place])
        # Beyond, a bound says little.
        seen = wide & (np.abs(epsilons - epsilon) <= (_SEEN * reach or np.inf))
        for way, kept in pairs.items():
            ceiling = max(float(low[place]) for low, _ in known.values())
            low, high = known[way]
            if high[place] <= ceiling:
                continue
            found, known_upper = question.bounds_at(way, epsilon)
            high[place:] = np.minimum(high[place:], known_upper)
            # Where nothing new was composed what is kept is sharp enough.
            for below, above in found or kept:
                low[seen] = np.maximum(low[seen], below.log_deltas(epsilons[seen]))
                high[seen] = np.minimum(high[seen], above.log_deltas(epsilons[seen]))
            kept.extend(found)
        wide = _wide(question, epsilons, known)
        if wide[place]:
            # A composition that does not reach its width has spent all the work that it may.
            missed += 1
            continue
        still = np.flatnonzero(wide)
        first = int(still[still < place].max(initial=-1)) + 1
        last = int(still[still > place].min(initial=epsilons.size)) - 1
        reach = 0.5 * float(epsilons[last] - epsilons[first])


def _next(wide: np.typing.NDArray[np.bool_], epsilons: Float, reach: float) -> int:
    """Where to compose next: a reach into the first run of places that are wide."""
    places = np.flatnonzero(wide)
    first = int(places[0])
    last = int(places[np.append(np.diff(places) > 1, True)][0])
    if reach == 0.0:
        return (first + last) // 2
    if first > 0:
        return min(max(int(np.searchsorted(epsilons, epsilons[first] + reach)), first), last)
    if last < epsilons.size - 1:
        return max(min(int(np.searchsorted(epsilons, epsilons[last] - reach)), last), first)
    return (first + last) // 2


def _wide(
    question: Question, epsilons: Float, known: dict[Direction, tuple[Float, Float]]
) -> np.typing.NDArray[np.bool_]:
    """Where the upper bound is above the lower one of an epsilon that is smaller by the width."""
    lower = np.max([low for low, _ in known.values()], axis=0)
    upper = np.minimum.accumulate(np.max([high for _, high in known.values()], axis=0))
    with np.errstate(invalid="ignore"):
        # Nothing is asked of a delta that float64 has no room for.
        gap = np.where((upper > lower) & (upper > _LEAST_LOG_DELTA), upper - lower, 0.0)
        slope = -np.gradient(lower, epsilons) if epsilons.size > 1 else np.ones(1)
    slope = np.where(np.isfinite(slope) & (slope > 0.0), slope, 1.0)
    width = DEFAULT_WIDTH * np.maximum(np.abs(epsilons), 1.0 / slope)
    if question.tolerance is not None:
        width = np.full(epsilons.shape, question.tolerance)
    return np.asarray(gap > np.maximum(_ROOM * slope * width, 1e-9))
