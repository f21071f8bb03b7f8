"""Epsilon and delta of a composition: which method, which directions, which edge cases.

The decision looks at the steps and at the integrand, never at the name of a law: one use in all is
a level set of the loss (``single``); anything else is a contour integral (``line``), which finds
out by itself how far it has to go.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np

from psinoise.accounting.contour.composition import LEAST_LOG_DELTA, Composition, Saddle
from psinoise.accounting.contour.large_losses import DividedProfile, Division
from psinoise.accounting.contour.line import (
    LARGEST_ERROR,
    Line,
    LongContourError,
    UnsettledError,
    trace,
)
from psinoise.accounting.contour.single import SingleStep
from psinoise.accounting.contour.solve import solve_epsilon
from psinoise.accounting.loss.pairs import Direction
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import (
    Steps,
    directions,
    finite_share,
    infinite_mass,
    largest_finite_loss,
    largest_loss,
)

# A contour belongs to the epsilons within this many standard deviations of its saddle point.
_LARGEST_MISS = 4.0
_MOST_CONTOURS = 6
_MOST_SEARCHES = 3
# A contour that was cut off for one epsilon serves another this close, in units of 1/c.
_SAME_EPSILON = 1e-6
# Lines of a divided measure are drawn where saddle points alone put epsilon, and once more.
_ROUGHLY = 1e-2
_MOST_DIVISIONS = 5
# An estimate whose own error estimate is worse than this is refused.
_LARGEST_ACCEPTED_ERROR = 1e-6
_FIRST_REACH = 80.0
_CHERNOFF_GAP = 2.0
# Saddle-point estimates of delta are right to 10 % or so, and off by about the same in both
# directions.
_BEHIND = 0.1


def estimate_epsilon(steps: Steps, delta: float) -> float:
    """The smallest ``epsilon >= 0`` with ``delta(epsilon) <= delta``, over all directions.

    Parameters
    ----------
    steps
        distinct pairs and positive counts
    delta
        in [0, 1]; 0 gives the largest loss

    Raises
    ------
    CertificationError
        if the integral does not settle to 1e-6 of delta

    Notes
    -----
    Accurate to about 1e-10 of ``max(epsilon, 1)``; the tests state it by regime. Gaussian and Airy
    noise, rates down to 1e-3, any number of uses and delta settle, within a fifth of a second; so
    they do at rates down to 1e-6, but for few of the cells with delta 1e-100. The losses of other
    laws may crowd at their largest one: two or three uses of them, with a delta that only losses
    next to that one reach, may be refused.
    """
    if delta >= 1.0 or sum(count * pair.total_variation_bound for pair, count in steps) <= delta:
        return 0.0
    with np.errstate(under="ignore"):
        if delta == 0.0:
            return max(largest_loss(steps, direction) for direction in directions(steps))
        return max(epsilons(steps, math.log(delta)).values())


def estimate_delta(steps: Steps, epsilon: float) -> float:
    """``delta(epsilon)``, the larger of the directions; ``epsilon`` is any real or infinite."""
    if epsilon == -math.inf:
        return 1.0
    if epsilon == math.inf:
        return max((infinite_mass(steps, way) for way in directions(steps)), default=0.0)
    if not steps:
        return max(0.0, -math.expm1(epsilon)) if epsilon < 0.0 else 0.0
    largest = -math.inf
    with np.errstate(under="ignore"):
        for direction in directions(steps):
            found = log_delta_in_direction(steps, direction, epsilon, largest)
            largest = max(largest, found)
    return min(math.exp(largest), 1.0)


def _single(steps: Steps) -> bool:
    return len(steps) == 1 and steps[0][1] == 1


def epsilons(
    steps: Steps, log_delta: float, *, patient: bool = True, behind: bool = True
) -> dict[Direction, float]:
    """The epsilon >= 0 of each direction that may have the largest one.

    A direction whose delta at another one's epsilon is smaller by Chernoff's bound is left out; if
    nothing is asked about those ``behind``, so is one whose saddle point puts it there.

    Raises
    ------
    UnsettledError
        if the integral does not settle; without patience, if that takes more than a moment
    """
    if _single(steps):
        return {way: epsilon_in_direction(steps, way, log_delta) for way in directions(steps)}
    found: dict[Direction, float] = {}
    starts = []
    for way in directions(steps):
        known, goal = known_epsilon(steps, way, log_delta)
        if known is None:
            starts.append((way, goal, *_start(steps, way, goal)))
        else:
            found[way] = known
    starts.sort(key=lambda start: -start[3].epsilon)
    for way, goal, composition, saddle in starts:
        if not behind and found and starts[0][3].epsilon - saddle.epsilon > _BEHIND / saddle.c:
            continue
        # Chernoff's bound is a few 1/c from the truth: nearer than that there is no need to ask.
        ahead = max(found.values(), default=-math.inf) - saddle.epsilon > _CHERNOFF_GAP / saddle.c
        if not (ahead and composition.stays_below(max(found.values()), goal)):
            epsilon = _contour_epsilon(composition, saddle, goal, patient=patient)
            found[way] = max(0.0, min(epsilon, largest_finite_loss(steps, way)))
    return found


def epsilon_in_direction(steps: Steps, direction: Direction, log_delta: float) -> float:
    """The epsilon >= 0 of one direction, composed on its own."""
    if _single(steps):
        return SingleStep(steps[0][0], direction).epsilon(log_delta)
    known, goal = known_epsilon(steps, direction, log_delta)
    if known is not None:
        return known
    epsilon = _contour_epsilon(*_start(steps, direction, goal), goal)
    return max(0.0, min(epsilon, largest_finite_loss(steps, direction)))


def known_epsilon(
    steps: Steps, direction: Direction, log_delta: float
) -> tuple[float | None, float]:
    """Epsilon where infinite losses decide it; else None, and the log of what they leave of delta.

    Where the largest finite loss is 0 there is nothing else to decide.
    """
    goal, top = finite_share(steps, direction, log_delta), largest_finite_loss(steps, direction)
    if goal is None:
        return math.inf, -math.inf
    if goal == -math.inf or top <= 0.0:
        return max(top, 0.0), goal
    return None, goal


def _start(steps: Steps, direction: Direction, log_delta: float) -> tuple[Composition, Saddle]:
    composition = Composition.of(steps, direction, reach_for(log_delta, _uses(steps)))
    return _resolved(composition, lambda finer: finer.saddle_at_delta(log_delta))


def _resolved(
    composition: Composition, search: Callable[[Composition], Saddle]
) -> tuple[Composition, Saddle]:
    """A composition whose panels resolve the tilt of its own saddle point, and that."""
    saddle = search(composition)
    for _ in range(_MOST_SEARCHES):
        finer = composition.resolved(saddle, 0.0)
        if finer is None or finer is composition:
            break
        composition, saddle = finer, search(finer)
    return composition, saddle


def _contour_epsilon(
    composition: Composition, saddle: Saddle, log_delta: float, *, patient: bool = True
) -> float:
    epsilon, error, long = math.nan, math.inf, False
    try:
        epsilon, error = _line_epsilon(composition, saddle, log_delta, patient=False)
    except LongContourError:
        long = True
    ways = [_divided_epsilon, *([_line_epsilon] if long and patient else [])]
    for way in ways:
        if error > LARGEST_ERROR:
            found = way(composition, saddle, log_delta)
            epsilon, error = min((epsilon, error), found, key=_error_of)
    if error > LARGEST_ERROR and not patient:
        raise UnsettledError("the contour integral is long, or its digits cancel")
    return _settled(epsilon, error)


def _line_epsilon(
    composition: Composition, saddle: Saddle, log_delta: float, *, patient: bool = True
) -> tuple[float, float]:
    """Epsilon from one line, and the relative error of delta there."""
    epsilon, error = saddle.epsilon, 0.0
    at = epsilon
    for _ in range(_MOST_CONTOURS):
        if saddle.saturated:
            return saddle.mean, 0.0
        line = trace(composition, saddle, at, patient=patient)
        epsilon = solve_epsilon(line, log_delta, at, 1.0 / saddle.c)
        error, missed = line.error(epsilon), abs(epsilon - at)
        near = line.doubt == 0.0 or missed <= _SAME_EPSILON / saddle.c
        if abs(epsilon - saddle.epsilon) > _LARGEST_MISS * math.sqrt(saddle.curvature):
            saddle = composition.saddle_at_epsilon(epsilon)
        elif near:
            break
        # The doubt of a line that was cut off is that of another epsilon.
        if error > (LARGEST_ERROR if near else 1.0):
            break
        at = epsilon
    return epsilon, error


def _divided_epsilon(
    composition: Composition, saddle: Saddle, log_delta: float
) -> tuple[float, float]:
    """Epsilon from the sizes of losses, and the relative error of delta there."""
    division = Division.of(composition)
    if division is None:
        return math.nan, math.inf
    scale = 1.0 / saddle.c
    epsilon = solve_epsilon(division, log_delta, saddle.epsilon, scale, _ROUGHLY)
    error = math.inf
    for _ in range(_MOST_DIVISIONS):
        profile = division.profile(epsilon)
        if not profile.error(epsilon) < 1.0:
            break
        at, scale = epsilon, -1.0 / profile.log_delta(epsilon)[1]
        epsilon = solve_epsilon(profile, log_delta, at, scale)
        error = profile.error(epsilon)
        if error <= LARGEST_ERROR and abs(epsilon - at) <= scale:
            break
    return epsilon, error


def _settled(value: float, error: float) -> float:
    """Fail closed where the integral did not settle."""
    if not error < _LARGEST_ACCEPTED_ERROR:
        raise UnsettledError(
            "the estimate did not settle for this composition: its relative error in delta may be "
            f"{error:.0e}"
        )
    return value


def log_delta_in_direction(
    steps: Steps, direction: Direction, epsilon: float, least: float = -math.inf
) -> float:
    """Log of one direction's delta, composed on its own; ``-inf`` below any float64.

    Or where Chernoff's bound shows that it is below the ``least`` one of interest.
    """
    if _single(steps):
        return SingleStep(steps[0][0], direction).log_delta(epsilon)[0]
    mass = infinite_mass(steps, direction)
    if mass == 1.0:
        return 0.0
    finite = finite_log_delta(steps, direction, epsilon, least)
    return float(np.logaddexp(finite, math.log(mass))) if mass > 0.0 else finite


def finite_log_delta(
    steps: Steps, direction: Direction, epsilon: float, least: float = -math.inf
) -> float:
    """What the finite losses of one direction contribute to its delta, as a logarithm.

    ``-inf`` where Chernoff's bound is below the ``least`` one of interest.
    """
    if epsilon >= largest_finite_loss(steps, direction):
        return -math.inf
    if _single(steps):
        return SingleStep(steps[0][0], direction).finite_log_delta(epsilon)[0]
    reach = _FIRST_REACH
    while True:
        composition, saddle = _resolved(
            Composition.of(steps, direction, reach),
            lambda finer: finer.saddle_at_epsilon(epsilon),
        )
        bound = saddle.log_chernoff(epsilon)
        if bound < least:
            return -math.inf
        value, error = -math.inf, 0.0
        if reach_for(max(bound, LEAST_LOG_DELTA), _uses(steps)) > reach:
            value = bound
        elif bound >= LEAST_LOG_DELTA:
            value, error = _log_delta(composition, saddle, epsilon)
        need = reach_for(max(value, LEAST_LOG_DELTA), _uses(steps))
        if need <= reach:
            return _settled(value, error)
        reach = need


def _log_delta(composition: Composition, saddle: Saddle, epsilon: float) -> tuple[float, float]:
    """Log delta and the relative error of delta, by the first way that settles or the best."""
    line = _quick_line(composition, saddle, epsilon)
    best = _value_and_error(line, epsilon)
    if best[1] > LARGEST_ERROR:
        division = Division.of(composition)
        divided = None if division is None else division.profile(epsilon)
        best = min(best, _value_and_error(divided, epsilon), key=_error_of)
    if best[1] > LARGEST_ERROR and line is None:
        line = trace(composition, saddle, epsilon)
        best = min(best, _value_and_error(line, epsilon), key=_error_of)
    return best


def _quick_line(composition: Composition, saddle: Saddle, epsilon: float) -> Line | None:
    with contextlib.suppress(LongContourError):
        return trace(composition, saddle, epsilon, patient=False)
    return None


def _value_and_error(profile: Line | DividedProfile | None, epsilon: float) -> tuple[float, float]:
    if profile is None:
        return -math.inf, math.inf
    return profile.log_delta(epsilon)[0], profile.error(epsilon)


def _error_of(found: tuple[float, float]) -> float:
    return found[1]


def _uses(steps: Steps) -> float:
    return float(sum(count for _, count in steps))
