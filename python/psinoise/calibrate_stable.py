"""The symmetric stable law of least mean absolute value at a pure epsilon.

Zawacki and Abed leave the choice of the index open: ``E|Y| / scale`` falls as alpha grows (their
corollary 32), while the scale that an epsilon takes grows without bound towards 2. Here the product
is minimized.

Both factors scale with the sensitivity, so the best index is a function of epsilon alone. In terms
of ``r = sensitivity / scale`` the largest loss is ``e(alpha, r)``, the same for ``-r``, hence
``e = r max(score) + O(r**3)``: the best index tends to a limit, 1.704, with an error of order
``epsilon**2`` as epsilon falls. As epsilon grows, ``e ~ (1 + alpha) log r`` and ``E|Y|`` has a pole
at 1: minimizing ``-epsilon / (1 + alpha) - log(alpha - 1)`` gives ``alpha - 1 ~ 4 / epsilon``.
"""

from __future__ import annotations

import math
from typing import cast

from psinoise import _validate
from psinoise.calibrate import calibrate
from psinoise.errors import DomainError
from psinoise.noise import Family, SymmetricStable

__all__ = ["calibrate_stable"]

# The best index decreases from 1.704 as epsilon grows, by the asymptotics above to 1.07 at the
# largest epsilon that `calibrate` finds a scale for, about 57.
_LOWEST_INDEX, _HIGHEST_INDEX = 1.03, 1.8
# Below, the best index is that of the limit to 1e-6, and the loss has too few digits to find it.
_SMALLEST_EPSILON = 1e-3
# E|Y| is flat at its minimum: this costs 1e-10 of it, about what the loss is known to.
_INDEX_TOLERANCE = 1e-5


def calibrate_stable(
    *, epsilon: float, sensitivity: float = 1.0, count: int = 1
) -> SymmetricStable:
    """Return the symmetric stable law of least ``E|Y|`` that is purely differentially private.

    Parameters
    ----------
    epsilon : float
        The target, for all uses together; positive.
    sensitivity : float
        How far neighboring data sets can move the query; positive and finite.
    count : int
        Uses of the mechanism, at least 1; pure losses add.

    Returns
    -------
    SymmetricStable
        Its index is within 1e-4 of the best one and its ``mean_abs`` within 1e-6 of the least; the
        scale is that of ``calibrate`` with ``delta=0``, whose largest loss never exceeds epsilon.

    Raises
    ------
    CalibrationError
        If the scale would be outside ``2**-40`` to ``2**40`` times the sensitivity.
    TypeError, DomainError
        For arguments of the wrong kind or outside their ranges.

    See Also
    --------
    calibrate : for a given index, ``calibrate(Family(SymmetricStable, alpha=1.5), ...)``.

    Notes
    -----
    Laplace noise at the same epsilon has ``E|Y| = sensitivity / epsilon``. The best stable law has
    1.57 times that as epsilon tends to 0, the same at 5.46, and less beyond; `Staircase` noise,
    which is the best of all laws (Geng and Viswanath 2016), is ahead of both. What a stable law
    has and they have not is that independent draws add up to one (`SymmetricStable.aggregate`).

    Takes about a second, for the tables of some fifteen indices.

    Examples
    --------
    >>> import psinoise as pn
    >>> noise = pn.calibrate_stable(epsilon=1.0)
    >>> round(noise.alpha, 2), round(noise.mean_abs, 3)
    (1.7, 1.553)
    """
    from scipy import optimize  # slow to import

    epsilon = _validate.positive("epsilon", epsilon)
    sensitivity = _validate.positive("sensitivity", sensitivity)
    uses = _validate.count("count", count)
    if uses == 0:
        raise DomainError("count must be at least 1 (no use needs no noise), got 0")
    each = max(epsilon / uses, _SMALLEST_EPSILON)

    def log_mean_abs(alpha: float) -> float:
        family = Family(SymmetricStable, alpha=alpha)
        return math.log(calibrate(family, epsilon=each, delta=0.0).mean_abs)

    found = optimize.minimize_scalar(
        log_mean_abs,
        bounds=(_LOWEST_INDEX, _HIGHEST_INDEX),
        method="bounded",
        options={"xatol": _INDEX_TOLERANCE},
    )
    best = Family(SymmetricStable, alpha=float(f"{found.x:.5f}"))
    noise = calibrate(best, epsilon=epsilon, delta=0.0, sensitivity=sensitivity, count=uses)
    return cast(SymmetricStable, noise)
