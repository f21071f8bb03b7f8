"""Answers about a composition, by each of the methods.

=========== ==============================================================================
certified   a `Bracket`: the true value lies between its ends (``certified``)
upper       the upper end alone; the only answer about imported losses (``discrete``)
estimate    contour integration to working precision, without a proven bound (``estimate``)
renyi       the moments accountant: an upper bound, up to quadrature (``renyi``)
clt         the Gaussian limit of many uses: an approximation (``central_limit``)
=========== ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.certified.bracket import Bracket
from psinoise.accounting.certified.certifiable import check_certifiable
from psinoise.accounting.certified.certify_delta import certify_delta
from psinoise.accounting.certified.certify_epsilon import certify_epsilon
from psinoise.accounting.certified.settled import settled_delta, settled_epsilon
from psinoise.accounting.contour.central_limit import central_limit_delta, central_limit_epsilon
from psinoise.accounting.contour.renyi import renyi_delta, renyi_epsilon
from psinoise.accounting.lattice.discrete import Imports, upper_delta, upper_epsilon
from psinoise.accounting.loss.steps import Steps
from psinoise.errors import DomainError

Float = NDArray[np.float64]

_EPSILON: dict[str, Callable[[Steps, float], float]] = {
    "estimate": settled_epsilon,
    "renyi": renyi_epsilon,
    "clt": central_limit_epsilon,
}
_DELTA: dict[str, Callable[[Steps, float], float]] = {
    "estimate": settled_delta,
    "renyi": renyi_delta,
    "clt": central_limit_delta,
}


#: Methods whose answers are proven.
CERTIFIED = ("certified", "upper")


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
            bounds = certify_epsilon(steps, delta, tolerance, above=method == "upper")
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
            bounds = certify_delta(steps, epsilon, tolerance, above=method == "upper")
            return bounds if method == "certified" else bounds.upper
        return _DELTA[method](steps, epsilon)


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
