"""Certified bounds on epsilon of a composition.

The estimate by contour integration tells where to look (``target``); both bounds are composed on a
lattice of the step that follows from the width that was asked for (``stages``), and the width is
*verified*: if it is larger than asked, the step shrinks. What cannot be reached raises, and nothing
falls back to an estimate.
"""

from __future__ import annotations

import dataclasses
import math

from psinoise.accounting.certified.bracket import Bracket
from psinoise.accounting.certified.certifiable import (
    SUM_ROUNDING,
    check_certifiable,
    single_atoms,
)
from psinoise.accounting.certified.certify_cells import cells_epsilon
from psinoise.accounting.certified.settled import (
    has_cells,
    settled_delta,
    settled_epsilon,
    settled_epsilons,
    shrinkage,
    stays_below,
    width_of,
)
from psinoise.accounting.contour.composition import Composition
from psinoise.accounting.contour.estimate import estimate_epsilon
from psinoise.accounting.lattice.bounds import Side
from psinoise.accounting.lattice.stages import profile_bound
from psinoise.accounting.lattice.target import Target
from psinoise.accounting.loss.pairs import Direction
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import (
    Steps,
    directions,
    doubt_of_share,
    finite_share,
    largest_finite_loss,
)
from psinoise.errors import CertificationError

_ATTEMPTS = 8
_LOOKS_BEHIND = 2
# The lower bound is off twice as far as the upper one; if it is more, tuning may help.
_LOPSIDED = 2.5
# ... where a little smaller a step would not be enough.
_FAR = 3.0


def certify_epsilon(
    steps: Steps, delta: float, tolerance: float | None, *, above: bool = False
) -> Bracket:
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
    above
        the upper bound is all that matters: ``upper - estimate`` is held to that width instead, and
        the lower bound is 0

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
    top = max(largest_finite_loss(steps, way) for way in directions(steps))
    if top <= 0.0 or any(finite_share(steps, w, log_delta) is None for w in directions(steps)):
        # Decided by infinite losses alone.
        exact = estimate_epsilon(steps, delta)
        return Bracket(exact, exact, exact)
    if single_atoms(steps):
        # A sum of positive terms, each right to a few ulp.
        exact = estimate_epsilon(steps, delta)
        low, high = (
            estimate_epsilon(steps, min(delta * (1.0 + sign * SUM_ROUNDING), 1.0))
            for sign in (1.0, -1.0)
        )
        return Bracket(min(low, exact), exact, max(high, exact))
    below_top = _below_largest_loss(steps, delta, top, tolerance)
    if below_top is not None:
        return below_top
    if has_cells(steps):
        return cells_epsilon(steps, log_delta, tolerance)
    found = settled_epsilons(steps, log_delta, tolerance, behind=False)
    bracket = _bracket_of(steps, log_delta, found, tolerance, above)
    if any(
        way not in found and not _stays_behind(steps, way, log_delta, bracket)
        for way in directions(steps)
    ):
        found = settled_epsilons(steps, log_delta, tolerance)
        bracket = _bracket_of(steps, log_delta, found, tolerance, above)
    return bracket


def _bracket_of(
    steps: Steps,
    log_delta: float,
    found: dict[Direction, float],
    tolerance: float | None,
    above: bool,
) -> Bracket:
    """Bounds on the largest of the epsilons of some directions, which are known by estimates."""
    estimate = max(found.values())
    width = width_of(estimate, tolerance)
    targets = [
        Target(steps, way, goal, epsilon, width, doubt_of_share(steps, way, log_delta))
        for way, epsilon in found.items()
        if (goal := finite_share(steps, way, log_delta)) is not None and goal > -math.inf
    ]
    leading = max(targets, key=lambda target: target.epsilon)
    lower, upper = _upper_epsilon(leading) if above else _epsilon_bounds(leading)
    for target in targets:
        if target is not leading:
            # The other direction matters only if its upper bound is the larger one.
            upper = max(upper, _epsilon_below(target, upper))
    return _checked(Bracket(lower, estimate, upper), width)


def _stays_behind(steps: Steps, way: Direction, log_delta: float, bracket: Bracket) -> bool:
    """Whether one direction's epsilon is shown to be at most an upper bound on that of the others.

    That takes Chernoff's bound, or else a bound on delta at one epsilon, and a lattice as coarse as
    its distance allows.
    """
    ceiling = bracket.upper
    if stays_below(steps, way, log_delta, ceiling):
        return True
    goal = finite_share(steps, way, log_delta)
    if goal is None or goal == -math.inf:
        return False
    doubt = doubt_of_share(steps, way, log_delta)
    composition = Composition.of(
        steps, way, reach_for(goal, float(sum(count for _, count in steps)))
    )
    saddle = composition.saddle_at_epsilon(ceiling)
    room = (goal - saddle.log_delta) / saddle.c
    width = max(room, bracket.upper - bracket.estimate)
    for _ in range(_LOOKS_BEHIND):
        target = Target(steps, way, goal, ceiling, width, doubt)
        bound = profile_bound(target, target.upper_step, "upper")
        if bound.log_delta(ceiling) <= target.goal("upper"):
            return True
        width *= 0.1
    return False


def _below_largest_loss(
    steps: Steps, delta: float, top: float, tolerance: float | None
) -> Bracket | None:
    """Bounds just below the largest loss; None if epsilon is not that close to it.

    Chernoff's bound, which is quick, tells most questions that are far from it.
    """
    near = top - 0.5 * width_of(top, tolerance)
    ways, log_delta = directions(steps), math.log(delta)
    if math.isinf(top) or all(stays_below(steps, way, log_delta, near) for way in ways):
        return None
    estimate = settled_epsilon(steps, delta)
    width = width_of(estimate, tolerance)
    if not estimate > top - 0.5 * width > 0.0:
        return None
    easier = settled_delta(steps, top - 0.5 * width)
    below = certify_epsilon(steps, easier, 0.5 * width)
    return Bracket(min(below.lower, estimate), estimate, top)


def _epsilon_bounds(target: Target) -> tuple[float, float]:
    step, width = target.first_step, target.width
    found = math.inf
    tuned = False
    for _ in range(_ATTEMPTS):
        upper = crossing(target, step, "upper")
        lower = crossing(target, step, "lower", tuned)
        upper = min(upper, target.top)
        lopsided = target.epsilon - lower > _LOPSIDED * (upper - target.epsilon)
        if upper - lower > _FAR * width and lopsided and not tuned:
            # The mass crowds in a few bins at an end of the loss: where they begin matters.
            tuned = True
            lower = crossing(target, step, "lower", tuned)
        found = upper - lower
        if found <= width:
            return lower, upper
        step *= shrinkage(width, found)
    raise CertificationError(
        f"epsilon could not be certified to {width!r}: the bounds are {found!r} apart"
    )


def _upper_epsilon(target: Target) -> tuple[float, float]:
    """0, and the upper bound, no further from the estimate than the width."""
    step = target.upper_step
    found = math.inf
    for _ in range(_ATTEMPTS):
        upper = min(crossing(target, step, "upper"), target.top)
        found = upper - target.epsilon
        if found <= target.width:
            return 0.0, upper
        step *= shrinkage(target.width, found)
    raise CertificationError(
        f"epsilon could not be certified to {target.width!r}: the upper bound is {found!r} above "
        "the estimate"
    )


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
    return profile.epsilon(target.goal(side), target.epsilon, target.width)


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
