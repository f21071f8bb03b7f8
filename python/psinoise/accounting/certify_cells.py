"""Certified bounds on compositions with laws in cells.

From above the dominating pair of each step is composed on a lattice, and the tolerance is verified:
the bound is no farther than that from the estimate, which is the value of the composed pairs.

From below there is less to be had, and the tolerance is not asked of it. A lattice takes from an
isolated atom what that is above the node below it, times the distance to the next atom, where from
a density it takes the square of its step. And where a law has several worst shifts, the bound is
that of one fixed shift, the same in all uses: what some pair of neighbors does suffer. The envelope
over shifts, which is the bound from above, lets them choose again for each output.
"""

from __future__ import annotations

import math

from psinoise.accounting.bracket import Bracket
from psinoise.accounting.cells import CellPair, Dominating
from psinoise.accounting.lattices import (
    settled_epsilons,
    settled_finite_log_delta,
    settled_log_delta,
    shrinkage,
    width_of,
)
from psinoise.accounting.pairs import Direction
from psinoise.accounting.stages import profile_bound
from psinoise.accounting.steps import (
    SAME,
    Steps,
    directions,
    finite_share,
    infinite_mass,
    largest_finite_loss,
)
from psinoise.accounting.target import Target
from psinoise.errors import CertificationError

__all__ = ["cells_delta", "cells_epsilon"]

_ATTEMPTS = 8
_LEAST_WIDTH = 1e-7


def cells_epsilon(steps: Steps, log_delta: float, tolerance: float | None) -> Bracket:
    """Bounds on epsilon, of which the upper one is no farther from the estimate than the tolerance.

    Raises
    ------
    CertificationError
        if it is
    """
    found = settled_epsilons(steps, log_delta, tolerance)
    estimate = max(found.values())
    width = width_of(estimate, tolerance)
    lower, upper = 0.0, 0.0
    for way, epsilon in found.items():
        goal = finite_share(steps, way, log_delta)
        if goal is None or goal == -math.inf:
            upper = max(upper, epsilon)
            continue
        target = Target(steps, way, goal, epsilon, width)
        # Another direction matters only where it comes near to the leading one.
        step, above = _above(target, goal, max(epsilon + width, estimate))
        upper = max(upper, above)
        if epsilon == estimate:
            lower = _below(_fixed(steps, target), way, goal, step, width)
    return Bracket(min(lower, estimate), estimate, max(upper, estimate))


def _above(target: Target, goal: float, ceiling: float) -> tuple[float, float]:
    step, upper = target.first_step, math.inf
    for _ in range(_ATTEMPTS):
        bound = profile_bound(target, step, "upper")
        resolution = 1e-3 * target.width
        upper = min(bound.root(goal, target.epsilon, target.width, resolution), target.top)
        if upper <= ceiling:
            return step, upper
        step *= shrinkage(target.width, max(upper - target.epsilon, target.width))
    raise CertificationError(
        f"epsilon could not be certified to {target.width!r}: the bound is {upper!r} and the "
        f"estimate {target.epsilon!r}"
    )


def _below(steps: Steps, way: Direction, goal: float, step: float, width: float) -> float:
    """A lower bound on the finite part; any one will do."""
    try:
        epsilon = settled_epsilons(steps, goal, None)[way]
        bound = profile_bound(Target(steps, way, goal, epsilon, width), step, "lower")
    except CertificationError:
        return 0.0
    return max(bound.root(goal, epsilon, width, 1e-3 * width) - 1e-3 * width, 0.0)


def cells_delta(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    """Bounds on delta, of which the upper one is no farther above the estimate than the tolerance.

    The tolerance is a distance in epsilon, as in `certify.certify_delta`.
    """
    width = width_of(epsilon, tolerance)
    ways = directions(steps)
    logs = {way: settled_log_delta(steps, way, epsilon) for way in ways}
    estimate = max(logs.values())
    moved = max(settled_log_delta(steps, way, epsilon - width) for way in ways)
    allowed = max(moved - estimate, _LEAST_WIDTH)
    lower, upper = -math.inf, estimate
    for way in ways:
        mass = infinite_mass(steps, way)
        beyond = math.log(mass) if mass > 0.0 else -math.inf
        if largest_finite_loss(steps, way) <= epsilon:
            lower, upper = max(lower, beyond - SAME), max(upper, beyond + SAME)
            continue
        finite = settled_finite_log_delta(steps, way, epsilon)
        target = Target(steps, way, finite, epsilon, width)
        step, above = target.first_step, math.inf
        for _ in range(_ATTEMPTS):
            found = profile_bound(target, step, "upper").log_delta(epsilon)
            above = _sum(found, beyond + SAME)
            if above <= estimate + allowed:
                break
            step *= shrinkage(allowed, above - estimate)
        if not above <= estimate + allowed:
            raise CertificationError(
                f"delta could not be certified to a width of {width!r} in epsilon: the logarithm "
                f"of the bound is {above - estimate:.3g} above and may be {allowed:.3g}"
            )
        upper = max(upper, above)
        if logs[way] == estimate:
            below = profile_bound(
                Target(_fixed(steps, target), way, finite, epsilon, width), step, "lower"
            )
            lower = max(lower, _sum(below.log_delta(epsilon), beyond - SAME))
    floor = -math.expm1(min(epsilon, 0.0))
    found = math.exp(min(estimate, 0.0))
    return Bracket(
        min(max(math.exp(min(lower, 0.0)), floor), found), found, math.exp(min(upper, 0.0))
    )


def _sum(one: float, other: float) -> float:
    top = max(one, other)
    if top == -math.inf:
        return top
    return top + math.log1p(math.exp(min(one, other) - top))


def _fixed(steps: Steps, target: Target) -> Steps:
    """The steps with one shift each, which reveals most at the tilt of the target.

    One use needs no other: the supremum over shifts is attained.
    """

    def at_shift(pair: Dominating) -> Dominating:
        if isinstance(pair, CellPair) and len(pair.shifts) > 1:
            return pair.at_shift(target.direction, target.tilt)
        return pair

    return tuple((at_shift(pair), count) for pair, count in steps)
