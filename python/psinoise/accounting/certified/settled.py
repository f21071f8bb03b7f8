"""Epsilon and delta from lattices, where the contour integral is long or does not settle.

A few uses may have a long contour; losses that are atoms, many of them, have none that
ends. Both are short on a lattice, whose bounds come from either side: the lower one is off twice as
far as the upper one, and what lies between is an estimate. Atoms have upper bounds alone that come
close quickly, and estimates from those.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np

from psinoise.accounting.contour.composition import Composition
from psinoise.accounting.contour.estimate import (
    epsilons,
    estimate_delta,
    estimate_epsilon,
    finite_log_delta,
    known_epsilon,
)
from psinoise.accounting.contour.line import UnsettledError
from psinoise.accounting.lattice.stages import profile_bound
from psinoise.accounting.lattice.target import Target
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Direction
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import (
    Steps,
    directions,
    doubt_of_share,
    finite_share,
    infinite_mass,
    largest_finite_loss,
)
from psinoise.errors import CertificationError

DEFAULT_TOLERANCE = 1e-4
_ATTEMPTS = 16
# Lattices that look for epsilon around the saddle point begin with this share of it as their width.
_FIRST_LOOK = 0.25
# ... or this many times the distance over which delta falls by a factor of e.
_FIRST_DISTANCE = 4.0
# The next width to ask for, and how much finer than its own the step may be at first.
_NEXT = 0.1
_CLOSE = 0.7
# Offsets of more lattices than these take too long to find.
_MOST_TUNED = 16
# Bounds this many widths apart tell nothing about where to look.
_FAR = 4.0
# ... and end with this one, if they can.
_RELATIVE = 1e-2
# An estimate has settled where the last step moved it by this share of the width.
_ESTIMATE = 1e-2


def width_of(epsilon: float, tolerance: float | None) -> float:
    """The width that is asked for at an epsilon."""
    return DEFAULT_TOLERANCE * max(1.0, abs(epsilon)) if tolerance is None else tolerance


def settled_epsilon(steps: Steps, delta: float) -> float:
    """As `estimate_epsilon`; from lattices where laws in cells leave nothing else."""
    try:
        return estimate_epsilon(steps, delta)
    except UnsettledError:
        if not has_cells(steps):
            raise
        return max(settled_epsilons(steps, math.log(delta), None).values())


def settled_delta(steps: Steps, epsilon: float) -> float:
    """As `estimate_delta`; from lattices where laws in cells leave nothing else."""
    if not steps or math.isinf(epsilon) or not has_cells(steps):
        return estimate_delta(steps, epsilon)
    logs = [settled_log_delta(steps, way, epsilon) for way in directions(steps)]
    return min(math.exp(max(logs)), 1.0)


def has_cells(steps: Steps) -> bool:
    return any(isinstance(pair, CellPair) for pair, _ in steps)


def settled_log_delta(steps: Steps, way: Direction, epsilon: float) -> float:
    """Log of the delta of one direction."""
    mass, finite = infinite_mass(steps, way), settled_finite_log_delta(steps, way, epsilon)
    return float(np.logaddexp(finite, math.log(mass))) if mass > 0.0 else finite


def settled_finite_log_delta(steps: Steps, way: Direction, epsilon: float) -> float:
    """What finite losses contribute to the delta of one direction, as a logarithm."""
    try:
        return finite_log_delta(steps, way, epsilon)
    except UnsettledError:
        if not has_cells(steps):
            raise
        return _log_delta_from_above(steps, way, epsilon)


def settled_epsilons(
    steps: Steps, log_delta: float, tolerance: float | None, *, behind: bool = True
) -> dict[Direction, float]:
    """Where to look, by the fastest way that gets there; ``behind`` is that of `epsilons`."""
    with contextlib.suppress(UnsettledError):
        return epsilons(steps, log_delta, patient=False, behind=behind)
    from_lattices = _epsilon_from_above if has_cells(steps) else _epsilon_from_lattices
    # The contour is long, and lattices are short.
    with contextlib.suppress(CertificationError):
        found: dict[Direction, float] = {}
        for way in sorted(directions(steps), key=lambda way: -_guess(steps, way, log_delta)):
            if not found or not stays_below(steps, way, log_delta, max(found.values())):
                found[way] = from_lattices(steps, way, log_delta, tolerance)
        return found
    return epsilons(steps, log_delta)


def _guess(steps: Steps, way: Direction, log_delta: float) -> float:
    """About the epsilon of one direction."""
    known, log_delta = known_epsilon(steps, way, log_delta)
    if known is not None:
        return known
    saddle = Composition.of(steps, way, reach_for(log_delta, 1.0)).saddle_at_delta(log_delta)
    return min(saddle.epsilon, largest_finite_loss(steps, way))


def stays_below(steps: Steps, way: Direction, log_delta: float, epsilon: float) -> bool:
    """Whether the largest loss or Chernoff's bound puts one direction's epsilon below this one."""
    goal = finite_share(steps, way, log_delta)
    if goal is None:
        return False
    if largest_finite_loss(steps, way) <= epsilon:
        return True
    if goal == -math.inf:
        return False
    uses = float(sum(count for _, count in steps))
    composition = Composition.of(steps, way, reach_for(goal, uses))
    return composition.stays_below(epsilon, goal - doubt_of_share(steps, way, log_delta))


def _epsilon_from_above(
    steps: Steps, way: Direction, log_delta: float, tolerance: float | None
) -> float:
    """An estimate from upper bounds alone: their bias is quadratic in the step.

    Lower bounds of atoms come close much more slowly (``bounds``).
    """
    known, log_delta = known_epsilon(steps, way, log_delta)
    if known is not None:
        return known
    composition = Composition.of(steps, way, reach_for(log_delta, 1.0))
    top = largest_finite_loss(steps, way)
    epsilon = min(max(composition.saddle_at_delta(log_delta).epsilon, 0.0), top)
    width = max(_FIRST_LOOK * epsilon, width_of(epsilon, tolerance))
    previous = step = math.inf
    for _ in range(_ATTEMPTS):
        target = Target(steps, way, log_delta, epsilon, width)
        step = min(0.5 * step, target.first_step)
        goal = _ESTIMATE * width_of(epsilon, tolerance)
        bound = profile_bound(target, step, "upper")
        upper = min(bound.root(log_delta, epsilon, width, 0.1 * goal), top)
        moved = previous - upper
        previous = upper
        if abs(upper - epsilon) > width:
            # The tilt belongs to another epsilon: look again with the right one.
            epsilon, previous = upper, math.inf
            continue
        epsilon = max(upper - max(moved, 0.0) / 3.0, 0.0) if math.isfinite(moved) else upper
        # What is cut off costs a share of the width that was asked for.
        if abs(moved) <= goal and width <= width_of(epsilon, tolerance):
            return epsilon
        width = max(min(width, 4.0 * abs(moved)), width_of(epsilon, tolerance))
    raise CertificationError("neither the contour nor lattices settle for this composition")


def _epsilon_from_lattices(
    steps: Steps, way: Direction, log_delta: float, tolerance: float | None
) -> float:
    """An estimate from both bounds, on lattices around the saddle point that become finer.

    The lower bound is off twice as far as the upper one, and to the other side.
    """
    known, log_delta = known_epsilon(steps, way, log_delta)
    if known is not None:
        return known
    composition = Composition.of(steps, way, reach_for(log_delta, 1.0))
    top = largest_finite_loss(steps, way)
    saddle = composition.saddle_at_delta(log_delta)
    epsilon = min(max(saddle.epsilon, 0.0), top)
    look = min(_FIRST_LOOK * epsilon, _FIRST_DISTANCE / saddle.c)
    width = max(look, width_of(epsilon, tolerance))
    step, best, known = math.inf, epsilon, math.inf
    tuned, tunable = False, len(steps) <= _MOST_TUNED
    for _ in range(_ATTEMPTS):
        target = Target(steps, way, log_delta, epsilon, width)
        step = min(step, target.first_step)
        # Bounds of a few atoms can be much closer than was asked for.
        resolution = 1e-3 * min(width, width_of(epsilon, tolerance))
        try:
            asked = log_delta, epsilon, width, resolution
            upper = profile_bound(target, step, "upper").root(*asked)
            lower = profile_bound(target, step, "lower", tuned).root(*asked)
        except CertificationError:
            break  # the lattice would be too long
        found, before = upper - lower, epsilon
        if found > _FAR * width and lower <= epsilon <= upper:
            # Too coarse to say anything: the lower bound has nothing to balance with.
            step *= 1.0 if tunable else shrinkage(width, found)
            tuned, tunable = tuned or tunable, False
            continue
        epsilon = min(upper - found / 3.0, top)
        if abs(epsilon - before) > max(width, known):
            # The tilt belongs to another epsilon: look again with the right one.
            width = max(abs(epsilon - before), found)
            continue
        best, known = epsilon, found
        goal = min(width_of(epsilon, tolerance), _RELATIVE * epsilon)
        if found <= goal:
            return epsilon
        own = Target(steps, way, log_delta, epsilon, goal).first_step
        if step > own:
            step = max(step * shrinkage(goal, found), _CLOSE * own)
        elif width <= goal and not tunable:
            step *= shrinkage(goal, found)
        elif width <= goal:
            # The lower bound loses what it cannot balance, unless its lattice is shifted.
            tuned, tunable = True, False
        # Else the cut tails, or the rounding, of a larger width may be what keeps them apart.
        width = max(goal, _NEXT * found)
    if not known <= width_of(best, tolerance):
        raise CertificationError("neither the contour nor lattices settle for this composition")
    return best


def _log_delta_from_above(steps: Steps, way: Direction, epsilon: float) -> float:
    saddle = Composition.of(steps, way, reach_for(-700.0, 1.0)).saddle_at_epsilon(epsilon)
    target = Target(steps, way, saddle.log_delta, epsilon, width_of(epsilon, None))
    step, previous = target.first_step, math.inf
    for _ in range(_ATTEMPTS):
        upper = profile_bound(target, step, "upper").log_delta(epsilon)
        moved, previous = previous - upper, upper
        if abs(moved) <= _ESTIMATE * max(target.tilt * target.width, 1e-6):
            return upper - max(moved, 0.0) / 3.0
        step *= 0.5
    raise CertificationError("neither the contour nor lattices settle for this composition")


def shrinkage(wanted: float, found: float) -> float:
    """How much smaller the step must be for bounds this far apart: the bias is quadratic in it."""
    return max(min(math.sqrt(0.7 * wanted / found), 0.7), 0.1)
