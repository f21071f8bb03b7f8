"""Certified bounds on delta of a composition, whose width is a distance in epsilon."""

from __future__ import annotations

import math

import numpy as np

from psinoise.accounting.certified.bracket import Bracket
from psinoise.accounting.certified.certifiable import (
    SUM_ROUNDING,
    check_certifiable,
    single_atoms,
)
from psinoise.accounting.certified.certify_cells import cells_delta
from psinoise.accounting.certified.settled import (
    has_cells,
    settled_delta,
    settled_finite_log_delta,
    width_of,
)
from psinoise.accounting.contour.composition import LEAST_LOG_DELTA, Composition
from psinoise.accounting.lattice.stages import profile_bound
from psinoise.accounting.lattice.target import Target
from psinoise.accounting.loss.pairs import Direction
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import (
    SAME,
    Steps,
    directions,
    infinite_mass,
    largest_finite_loss,
)
from psinoise.errors import CertificationError

# The bounds on delta give way to rounding by 1e-9 of it on each side.
_LEAST_WIDTH = 1e-7
_RETRIES = 4
# Lattices grow as the root of this; bounds that need more do not converge as they should.
_SHRINK = 3e-2


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
    width = asked = width_of(epsilon, tolerance)
    bounds = delta_bounds(steps, epsilon, width)
    if has_cells(steps):
        return bounds  # verified already
    if bounds.lower == bounds.upper or bounds.estimate == 0.0:
        return bounds
    # At least that of the epsilon itself, where delta stays at 1 or the estimate is rough.
    moved = max(settled_delta(steps, epsilon - width), bounds.estimate)
    allowed = max(math.log(moved / bounds.estimate), _LEAST_WIDTH)
    found = _logwidth_of(bounds, above)
    for _ in range(_RETRIES):
        if found <= allowed:
            break
        width *= max(0.7 * allowed / found, _SHRINK)
        bounds = delta_bounds(steps, epsilon, width)
        found = _logwidth_of(bounds, above)
    if found > allowed:
        raise CertificationError(
            f"delta could not be certified to a width of {asked!r} in epsilon: the logarithms of "
            f"the bounds are {found:.3g} apart and may be {allowed:.3g}"
            + ("" if above else "; method='upper' asks for the upper bound alone")
        )
    return bounds


def _logwidth_of(bounds: Bracket, above: bool) -> float:
    low = bounds.estimate if above else bounds.lower
    return math.log(bounds.upper / low) if low > 0.0 else math.inf


def delta_bounds(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    """Bounds on delta at ``epsilon``, on the lattice that the tolerance suggests, of any width."""
    check_certifiable(steps)
    with np.errstate(under="ignore"):
        return _delta_bounds(steps, epsilon, tolerance)


def _delta_bounds(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    estimate = settled_delta(steps, epsilon)
    top = max((largest_finite_loss(steps, way) for way in directions(steps)), default=0.0)
    if not steps or math.isinf(epsilon) or epsilon >= top:
        return Bracket(estimate, estimate, estimate)
    if estimate == 0.0:
        return _vanishing(steps, epsilon)
    if single_atoms(steps):
        off = SUM_ROUNDING * estimate
        return Bracket(estimate - off, estimate, min(estimate + off, 1.0))
    if has_cells(steps):
        return cells_delta(steps, epsilon, tolerance)
    width = width_of(epsilon, tolerance)
    lower, upper = -math.inf, -math.inf
    for way in directions(steps):
        below, above = _log_bounds(steps, way, epsilon, estimate, width)
        lower, upper = max(lower, below), max(upper, above)
    floor = -math.expm1(min(epsilon, 0.0))
    return Bracket(
        min(max(math.exp(lower), floor), estimate),
        estimate,
        max(min(math.exp(upper), 1.0), estimate),
    )


def _log_bounds(
    steps: Steps, way: Direction, epsilon: float, estimate: float, width: float
) -> tuple[float, float]:
    """Logs of both bounds on the delta of one direction; the estimate is the larger one's."""
    mass = infinite_mass(steps, way)
    beyond = math.log(mass) if mass > 0.0 else -math.inf
    if largest_finite_loss(steps, way) <= epsilon:
        return beyond - SAME, beyond + SAME
    log_delta = math.log(estimate) if mass == 0.0 else settled_finite_log_delta(steps, way, epsilon)
    target = Target(steps, way, max(log_delta, LEAST_LOG_DELTA), epsilon, width)
    step = target.first_step
    lower = profile_bound(target, step, "lower").log_delta(epsilon)
    upper = profile_bound(target, step, "upper").log_delta(epsilon)
    if mass == 0.0:
        return lower, upper
    return float(np.logaddexp(lower, beyond - SAME)), float(np.logaddexp(upper, beyond + SAME))


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
