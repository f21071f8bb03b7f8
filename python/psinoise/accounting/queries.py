"""Answers about a composition, by each of the methods.

=========== ==============================================================================
certified   a `Bracket`: the true value lies between its ends (``certify``)
upper       the upper end alone; the only answer about imported losses (``discrete``)
estimate    contour integration to working precision, without a proven bound (``estimate``)
renyi       the moments accountant: an upper bound, up to quadrature (``renyi``)
clt         the Gaussian limit of many uses: an approximation (``central_limit``)
=========== ==============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.bracket import Bracket
from psinoise.accounting.central_limit import central_limit_delta, central_limit_epsilon
from psinoise.accounting.certify import DEFAULT_TOLERANCE, certify_delta, certify_epsilon
from psinoise.accounting.composition import Composition
from psinoise.accounting.discrete import Imports, upper_delta, upper_epsilon
from psinoise.accounting.estimate import (
    Steps,
    directions,
    estimate_delta,
    estimate_epsilon,
    largest_loss,
)
from psinoise.accounting.quadrature import reach_for
from psinoise.accounting.renyi import renyi_delta, renyi_epsilon
from psinoise.errors import CertificationError, DomainError

Float = NDArray[np.float64]

_EPSILON: dict[str, Callable[[Steps, float], float]] = {
    "estimate": estimate_epsilon,
    "renyi": renyi_epsilon,
    "clt": central_limit_epsilon,
}
_DELTA: dict[str, Callable[[Steps, float], float]] = {
    "estimate": estimate_delta,
    "renyi": renyi_delta,
    "clt": central_limit_delta,
}


#: Methods whose answers are proven.
CERTIFIED = ("certified", "upper")
# The bounds give way to rounding by 1e-9 of delta on each side.
_LEAST_WIDTH = 1e-7
_RETRIES = 4
# Lattices grow as the root of this; bounds that need more do not converge as they should.
_SHRINK = 3e-2


class ProfileBracket(NamedTuple):
    """A privacy profile with certified bounds: ``lower <= true delta <= upper`` at each epsilon.

    Attributes
    ----------
    lower, upper : numpy.ndarray
        Certified bounds.
    estimate : numpy.ndarray
        The values by contour integration, not certified themselves.
    """

    lower: Float
    estimate: Float
    upper: Float


def epsilon_of(
    steps: Steps, delta: float, tolerance: float | None, method: str, imports: Imports = ()
) -> Bracket | float:
    """Epsilon at ``delta``; the arguments have been checked."""
    with np.errstate(under="ignore"):
        if imports:
            check_from_above(steps, tolerance, method)
            return upper_epsilon(steps, imports, delta)
        if method in CERTIFIED:
            bounds = verified_epsilon(steps, delta, tolerance)
            return bounds if method == "certified" else bounds.upper
        return _EPSILON[method](steps, delta)


def delta_of(
    steps: Steps, epsilon: float, tolerance: float | None, method: str, imports: Imports = ()
) -> Bracket | float:
    """Delta at ``epsilon``; the arguments have been checked."""
    with np.errstate(under="ignore"):
        if imports:
            check_from_above(steps, tolerance, method)
            return upper_delta(steps, imports, epsilon)
        if method in CERTIFIED:
            bounds = verified_delta(steps, epsilon, tolerance, above=method == "upper")
            return bounds if method == "certified" else bounds.upper
        return _DELTA[method](steps, epsilon)


def verified_epsilon(steps: Steps, delta: float, tolerance: float | None) -> Bracket:
    """Certified bounds on epsilon, no further apart than the tolerance.

    Just below the largest loss delta falls too steeply for a lattice. There the largest loss itself
    is the bound from above, and the bound from below is that of a larger delta: epsilon falls as
    delta grows.

    Parameters
    ----------
    tolerance
        None is ``1e-4 * max(1, epsilon)``

    Raises
    ------
    CertificationError
        if that width cannot be reached
    """
    check_certifiable(steps)
    top = max((largest_loss(steps, way) for way in directions(steps)), default=math.inf)
    if math.isfinite(top) and 0.0 < delta < 1.0:
        width = DEFAULT_TOLERANCE * max(1.0, top) if tolerance is None else tolerance
        if _stays_below(steps, top - 0.5 * width, delta):
            return certify_epsilon(steps, delta, tolerance)
        estimate = estimate_epsilon(steps, delta)
        width = DEFAULT_TOLERANCE * max(1.0, estimate) if tolerance is None else tolerance
        if estimate > top - 0.5 * width > 0.0:
            easier = estimate_delta(steps, top - 0.5 * width)
            below = certify_epsilon(steps, easier, 0.5 * width)
            return Bracket(min(below.lower, estimate), estimate, top)
    return certify_epsilon(steps, delta, tolerance)


def _stays_below(steps: Steps, epsilon: float, delta: float) -> bool:
    """Whether Chernoff's bound, which is quick, shows that the epsilon of delta is below this."""
    log_delta, uses = math.log(delta), float(sum(count for _, count in steps))
    return all(
        Composition.of(steps, way, reach_for(log_delta, uses)).stays_below(epsilon, log_delta)
        for way in directions(steps)
    )


def delta_bounds(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    """Certified bounds on delta, on the lattice that the tolerance suggests, of any width."""
    with np.errstate(under="ignore"):
        check_certifiable(steps)
        return certify_delta(steps, epsilon, tolerance)


def verified_delta(
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
    asked = DEFAULT_TOLERANCE * max(1.0, abs(epsilon)) if tolerance is None else tolerance
    width = asked
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


def profile_of(
    steps: Steps,
    epsilons: Float,
    tolerance: float | None,
    method: str,
    imports: Imports = (),
) -> ProfileBracket | Float:
    """Delta at each epsilon, each distinct one computed once, never rising where epsilon rises.

    Delta falls in epsilon, so a bound from above holds for all larger epsilons as well, and a bound
    from below for all smaller ones.
    """
    distinct, where = np.unique(epsilons, return_inverse=True)
    found = [delta_of(steps, float(epsilon), tolerance, method, imports) for epsilon in distinct]
    where = where.reshape(epsilons.shape)
    if method != "certified":
        values = np.array(found, dtype=np.float64)
        values = np.minimum.accumulate(values) if method == "upper" else values
        return np.asarray(values[where])
    lower, estimate, upper = np.array(found, dtype=np.float64).reshape(-1, 3).T
    lower = np.maximum.accumulate(lower[::-1])[::-1]
    upper = np.minimum.accumulate(upper)
    return ProfileBracket(lower[where], estimate[where], upper[where])


def check_certifiable(steps: Steps) -> None:
    """Refuse laws that are not compiled to the tables that the certified kernels read."""
    for pair, _ in steps:
        if not hasattr(pair.noise, "_table"):
            raise CertificationError(
                f"certified bounds need a law of psinoise.noise, got {pair.noise!r}"
            )


def check_from_above(steps: Steps, tolerance: float | None, method: str) -> None:
    """Refuse all but upper bounds where an imported loss is composed.

    Such a loss is known from above only, and its lattice decides how far the bound is off.
    """
    if method != "upper":
        raise DomainError(
            "method must be 'upper' where an imported loss is composed, which bounds nothing from "
            f"below, got {method!r}"
        )
    if tolerance is not None:
        raise DomainError(
            "tolerance must be None where an imported loss is composed, whose lattice is given, "
            f"got {tolerance!r}"
        )
    check_certifiable(steps)
