"""Certified bounds on epsilon and delta of a composition.

The estimate by contour integration tells where to look (``target``); both bounds are composed on a
lattice of the step that follows from the width that was asked for (``stages``), and the width is
*verified*: if it is larger than asked, the step shrinks. What cannot be reached raises, and nothing
falls back to an estimate.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math

import numpy as np

from psinoise.accounting.bounds import Side
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.composition import LEAST_LOG_DELTA, Composition
from psinoise.accounting.contour import UnsettledError
from psinoise.accounting.estimate import (
    Steps,
    directions,
    epsilons,
    estimate_delta,
    estimate_epsilon,
    largest_loss,
)
from psinoise.accounting.pairs import Direction
from psinoise.accounting.quadrature import reach_for
from psinoise.accounting.stages import profile_bound
from psinoise.accounting.target import Target
from psinoise.errors import CertificationError

DEFAULT_TOLERANCE = 1e-4
_ATTEMPTS = 8
# The bounds on delta give way to rounding by 1e-9 of it on each side.
_LEAST_WIDTH = 1e-7
_RETRIES = 4
# Lattices grow as the root of this; bounds that need more do not converge as they should.
_SHRINK = 3e-2
# Lattices that look for epsilon around the saddle point begin with this share of it as their width.
_FIRST_LOOK = 0.25
# ... and end with this one, if they can.
_RELATIVE = 1e-2
# The lower bound is off twice as far as the upper one; if it is more, tuning may help.
_LOPSIDED = 2.5


def certify_epsilon(steps: Steps, delta: float, tolerance: float | None) -> Bracket:
    """Bounds on epsilon at ``delta``, no further apart than the tolerance.

    Just below the largest loss delta falls too steeply for a lattice. There the largest loss itself
    is the bound from above, and the bound from below is that of a larger delta: epsilon falls as
    delta grows.

    Parameters
    ----------
    steps
        distinct pairs and positive counts
    delta
        in [0, 1]
    tolerance
        largest ``upper - lower``; None is ``1e-4 * max(1, epsilon)``

    Raises
    ------
    CertificationError
        if that width cannot be reached
    """
    if not steps or delta in (0.0, 1.0):
        exact = estimate_epsilon(steps, delta)
        return Bracket(exact, exact, exact)
    log_delta = math.log(delta)
    check_certifiable(steps)
    found = _estimates(steps, log_delta, tolerance)
    estimate = max(found.values())
    width = _width(estimate, tolerance)
    top = max(largest_loss(steps, way) for way in directions(steps))
    if estimate > top - 0.5 * width > 0.0:
        easier = estimate_delta(steps, top - 0.5 * width)
        below = certify_epsilon(steps, easier, 0.5 * width)
        return Bracket(min(below.lower, estimate), estimate, top)
    targets = [Target(steps, way, log_delta, epsilon, width) for way, epsilon in found.items()]
    leading = max(targets, key=lambda target: target.epsilon)
    lower, upper = _epsilon_bounds(leading)
    for target in targets:
        if target is not leading:
            # The other direction matters only if its upper bound is the larger one.
            upper = max(upper, _epsilon_below(target, upper))
    return _checked(Bracket(lower, estimate, upper), width)


def certify_delta(
    steps: Steps, epsilon: float, tolerance: float | None, *, above: bool = False
) -> Bracket:
    """Certified bounds on delta whose width is that of the tolerance, a distance in epsilon.

    The width is verified: ``upper / lower`` is at most ``delta(epsilon - tolerance)`` over
    ``delta(epsilon)``, by the estimate, or ``1 + 1e-7`` where that is more. Bounds that are further
    apart are made again, for smaller tolerances.

    Parameters
    ----------
    tolerance
        None is ``1e-4 * max(1, |epsilon|)``
    above
        the upper bound is all that matters: ``upper / estimate`` is held to that width instead

    Raises
    ------
    CertificationError
        if that width cannot be reached
    """
    width = asked = _width(epsilon, tolerance)
    bounds = delta_bounds(steps, epsilon, width)
    if bounds.lower == bounds.upper or bounds.estimate == 0.0:
        return bounds
    # At least that of the epsilon itself, where delta stays at 1 or the estimate is rough.
    moved = max(estimate_delta(steps, epsilon - width), bounds.estimate)
    allowed = max(math.log(moved / bounds.estimate), _LEAST_WIDTH)
    found = _log_width(bounds, above)
    for _ in range(_RETRIES):
        if found <= allowed:
            break
        width *= max(0.7 * allowed / found, _SHRINK)
        bounds = delta_bounds(steps, epsilon, width)
        found = _log_width(bounds, above)
    if found > allowed:
        raise CertificationError(
            f"delta could not be certified to a width of {asked!r} in epsilon: the logarithms of "
            f"the bounds are {found:.3g} apart and may be {allowed:.3g}"
            + ("" if above else "; method='upper' asks for the upper bound alone")
        )
    return bounds


def _log_width(bounds: Bracket, above: bool) -> float:
    low = bounds.estimate if above else bounds.lower
    return math.log(bounds.upper / low) if low > 0.0 else math.inf


def delta_bounds(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    """Bounds on delta at ``epsilon``, on the lattice that the tolerance suggests, of any width."""
    check_certifiable(steps)
    with np.errstate(under="ignore"):
        return _delta_bounds(steps, epsilon, tolerance)


def _delta_bounds(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    estimate = estimate_delta(steps, epsilon)
    top = max((largest_loss(steps, way) for way in directions(steps)), default=0.0)
    if not steps or math.isinf(epsilon) or epsilon >= top:
        return Bracket(estimate, estimate, estimate)
    if estimate == 0.0:
        return _vanishing(steps, epsilon)
    width = _width(epsilon, tolerance)
    lower, upper = -math.inf, -math.inf
    for way in directions(steps):
        target = Target(steps, way, math.log(estimate), epsilon, width)
        if target.top <= epsilon:
            continue  # this direction has delta 0
        step = target.first_step
        lower = max(lower, profile_bound(target, step, "lower").log_delta(epsilon))
        upper = max(upper, profile_bound(target, step, "upper").log_delta(epsilon))
    floor = -math.expm1(min(epsilon, 0.0))
    return Bracket(
        min(max(math.exp(lower), floor), estimate),
        estimate,
        max(min(math.exp(upper), 1.0), estimate),
    )


def _width(epsilon: float, tolerance: float | None) -> float:
    return DEFAULT_TOLERANCE * max(1.0, abs(epsilon)) if tolerance is None else tolerance


def _estimates(steps: Steps, log_delta: float, tolerance: float | None) -> dict[Direction, float]:
    """Where to look, by the fastest way that gets there."""
    with contextlib.suppress(UnsettledError):
        return epsilons(steps, log_delta, patient=False)
    # A few uses at a small rate: the contour is long, and lattices are short.
    with contextlib.suppress(CertificationError):
        return {
            way: _epsilon_from_lattices(steps, way, log_delta, tolerance)
            for way in directions(steps)
        }
    return epsilons(steps, log_delta)


def _epsilon_from_lattices(
    steps: Steps, way: Direction, log_delta: float, tolerance: float | None
) -> float:
    """An estimate from both bounds, on lattices around the saddle point that become finer.

    The lower bound is off twice as far as the upper one, and to the other side.
    """
    composition = Composition.of(steps, way, reach_for(log_delta, 1.0))
    top = largest_loss(steps, way)
    epsilon = min(max(composition.saddle_at_delta(log_delta).epsilon, 0.0), top)
    width = max(_FIRST_LOOK * epsilon, _width(epsilon, tolerance))
    step, best, known = math.inf, epsilon, math.inf
    for _ in range(2 * _ATTEMPTS):
        target = Target(steps, way, log_delta, epsilon, width)
        step = min(step, target.first_step)
        try:
            upper, lower = (
                profile_bound(target, step, side).root(log_delta, epsilon, width, 1e-3 * width)
                for side in ("upper", "lower")
            )
        except CertificationError:
            break  # the lattice would be too long
        found, before = upper - lower, epsilon
        epsilon = min(upper - found / 3.0, top)
        if abs(epsilon - before) > width:
            # The tilt belongs to another epsilon: look again with the right one.
            width = max(abs(epsilon - before), found)
            continue
        best, known = epsilon, found
        goal = min(_width(epsilon, tolerance), _RELATIVE * epsilon)
        if found <= goal:
            return epsilon
        step *= _shrinkage(goal, found)
        width = found
    if not known <= _width(best, tolerance):
        raise CertificationError("neither the contour nor lattices settle for this composition")
    return best


def _vanishing(steps: Steps, epsilon: float) -> Bracket:
    """Where delta is below every float64, by Chernoff's bound; else it cannot be told from 0."""
    uses = float(sum(count for _, count in steps))
    bounds = []
    for way in directions(steps):
        composition = Composition.of(steps, way, reach_for(LEAST_LOG_DELTA, uses))
        bounds.append(composition.saddle_at_epsilon(epsilon).log_chernoff(epsilon))
    if not max(bounds) < LEAST_LOG_DELTA + 1.0:
        raise CertificationError("delta is too small to be told from 0, and not below 5e-324")
    return Bracket(0.0, 0.0, 5e-324)


def _epsilon_bounds(target: Target) -> tuple[float, float]:
    step, width = target.first_step, target.width
    found = math.inf
    tuned = False
    for _ in range(_ATTEMPTS):
        upper = crossing(target, step, "upper")
        lower = crossing(target, step, "lower", tuned)
        upper = min(upper, target.top)
        lopsided = target.epsilon - lower > _LOPSIDED * (upper - target.epsilon)
        if upper - lower > width and lopsided and not tuned:
            # The mass crowds in a few bins at an end of the loss: where they begin matters.
            tuned = True
            lower = crossing(target, step, "lower", tuned)
        found = upper - lower
        if found <= width:
            return lower, upper
        step *= _shrinkage(width, found)
    raise CertificationError(
        f"epsilon could not be certified to {width!r}: the bounds are {found!r} apart"
    )


def _shrinkage(wanted: float, found: float) -> float:
    """How much smaller the step must be for bounds this far apart: the bias is quadratic in it."""
    return max(min(math.sqrt(0.7 * wanted / found), 0.7), 0.1)


def _epsilon_below(target: Target, ceiling: float) -> float:
    """An upper bound that is below the ceiling, if possible, on as coarse a lattice as will do."""
    if target.top <= ceiling or target.composition.stays_below(ceiling, target.log_delta):
        return min(target.top, ceiling)
    room = max(ceiling - target.epsilon, target.width)
    target = dataclasses.replace(target, width=room)
    step = target.first_step
    upper = math.inf
    for _ in range(_ATTEMPTS):
        upper = crossing(target, step, "upper")
        upper = min(upper, target.top)
        if upper <= ceiling or upper - target.epsilon <= 0.5 * target.width:
            break
        step *= 0.4
    return upper


def crossing(target: Target, step: float, side: Side, tuned: bool = False) -> float:
    """Where the bound of the profile has the target's delta."""
    profile = profile_bound(target, step, side, tuned)
    return profile.epsilon(target.log_delta, target.epsilon, target.width)


def _checked(bracket: Bracket, width: float) -> Bracket:
    if not bracket.lower <= bracket.estimate <= bracket.upper:
        # Rounding may put the estimate an ulp or so outside of a very narrow bracket.
        miss = max(bracket.lower - bracket.estimate, bracket.estimate - bracket.upper)
        if miss > 0.01 * width:
            raise CertificationError(
                f"estimate and bounds disagree: {bracket.estimate!r} is outside "
                f"[{bracket.lower!r}, {bracket.upper!r}]"
            )
        return Bracket(
            min(bracket.lower, bracket.estimate),
            bracket.estimate,
            max(bracket.upper, bracket.estimate),
        )
    return bracket


def check_certifiable(steps: Steps) -> None:
    """Refuse laws that are not compiled to the tables that the certified kernels read."""
    for pair, _ in steps:
        if not hasattr(pair.noise, "_table"):
            raise CertificationError(
                f"certified bounds need a law of psinoise.noise, got {pair.noise!r}"
            )
