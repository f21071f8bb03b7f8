"""A whole privacy profile: few compositions, read at many epsilons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psinoise.accounting.compose.bound import Bound
from psinoise.accounting.compose.choose import one_use
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.steps import SAME, infinite_mass
from psinoise.accounting.question import DEFAULT_WIDTH, Question

_MOST_COMPOSITIONS = 32
# So many of them may end wider than is asked for.
_MOST_MISSED = 4
_LEAST_LOG_DELTA = -700.0


@dataclass(frozen=True, eq=False)
class Composed:
    """Bounds on the profile of each direction of a composition, each of them valid everywhere.

    Where they are sharp is for `composed` to decide.
    """

    question: Question
    pairs: dict[Direction, list[tuple[Bound, Bound]]]

    def logs(self, way: Direction, epsilons: Float) -> tuple[Float, Float]:
        """Logs of both bounds on what finite losses of a direction contribute to delta."""
        lower, upper = np.full(epsilons.shape, -np.inf), np.zeros(epsilons.shape)
        for below, above in self.pairs[way]:
            lower = np.maximum(lower, below.log_deltas(epsilons))
            upper = np.minimum(upper, above.log_deltas(epsilons))
        beyond = epsilons >= self.question.largest_loss(way)
        return np.where(beyond, -np.inf, lower), np.where(beyond, -np.inf, upper)

    def delta(self, epsilons: Float) -> tuple[Float, Float]:
        """Both bounds on delta, never rising where epsilon rises."""
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
    ways = question.directions if question.steps else ()
    pairs = {way: list(question.kept.get(way, ())) for way in ways}
    made = Composed(question, pairs)
    if not pairs:
        return made
    if question.uses == 1.0:
        for way, found in pairs.items():
            found.append(one_use(question.steps, way, _LEAST_LOG_DELTA, epsilons))
        return made
    known = {way: made.logs(way, epsilons) for way in pairs}
    done = np.zeros(epsilons.size, dtype=bool)
    place = missed = 0
    for _ in range(_MOST_COMPOSITIONS):
        open_places = _wide(question, epsilons, known)
        # A composition that does not reach its width has spent all the work that it may.
        missed += bool(done.any() and open_places[place])
        wide = np.flatnonzero(open_places & ~done)
        if not wide.size or missed >= _MOST_MISSED:
            break
        place = int(wide[wide.size // 2])
        done[place] = True
        epsilon = float(epsilons[place])
        for way, kept in pairs.items():
            ceiling = max(float(low[place]) for low, _ in known.values())
            if known[way][1][place] <= ceiling:
                continue
            new = question.bounds_at(way, epsilon)
            kept.extend(new)
            low, high = known[way]
            for below, above in new:
                low[open_places] = np.maximum(
                    low[open_places], below.log_deltas(epsilons[open_places])
                )
                high[open_places] = np.minimum(
                    high[open_places], above.log_deltas(epsilons[open_places])
                )
    return made


def _wide(
    question: Question, epsilons: Float, known: dict[Direction, tuple[Float, Float]]
) -> np.typing.NDArray[np.bool_]:
    """Where the upper bound is above the lower one of an epsilon that is smaller by the width."""
    lower = np.max([low for low, _ in known.values()], axis=0)
    upper = np.max([high for _, high in known.values()], axis=0)
    with np.errstate(invalid="ignore"):
        gap = np.where(upper > lower, upper - lower, 0.0)
        slope = -np.gradient(lower, epsilons) if epsilons.size > 1 else np.ones(1)
    slope = np.where(np.isfinite(slope) & (slope > 0.0), slope, 1.0)
    width = DEFAULT_WIDTH * np.maximum(np.abs(epsilons), 1.0 / slope)
    if question.tolerance is not None:
        width = np.full(epsilons.shape, question.tolerance)
    return np.asarray(gap > np.maximum(slope * width, 1e-9))
