"""Airy noise: the Schrodinger mechanism of the cost ``|x|``."""

from __future__ import annotations

import math

import numpy as np

from psinoise._backend import core
from psinoise.noise._base import Float, ScaleFamily
from psinoise.noise._elementary import constant
from psinoise.numerics import double_double as dd
from psinoise.numerics.airy import airy
from psinoise.numerics.airy_coefficients import (
    FIRST_SLOPE_ZERO_HI,
    FIRST_SLOPE_ZERO_LO,
    LOG_PEAK_HI,
    LOG_PEAK_LO,
)

__all__ = ["Airy"]

# kappa = 2 |a1'| / 3, the argument of Ai per unit of E|X|, as a pair (tools/airy_constants.py has
# a1'; the division is exact to 2^-104 in pairs).
_FIRST_SLOPE_ZERO = constant(FIRST_SLOPE_ZERO_HI, FIRST_SLOPE_ZERO_LO)
_KAPPA = dd.multiply(
    constant(-2.0 * FIRST_SLOPE_ZERO_HI, -2.0 * FIRST_SLOPE_ZERO_LO),
    constant(1.0 / 3.0, 1.850371707708594e-17),
)
_MINUS_LOG3 = constant(-1.0986122886681098, 9.07129723500153e-17)
_A = -FIRST_SLOPE_ZERO_HI
# E X^2 / C^2 = 9 / (20 |a1'|^3) + 6 / 5, from the moments of Ai^2 (A''' = 4 z A' + 2 A).
_SECOND_MOMENT = 9.0 / (20.0 * _A**3) + 1.2


class Airy(ScaleFamily):
    """Airy noise with density ``Ai(a1' + 2 |a1'| |x| / (3 C))**2 / (3 C Ai(a1')**2)``.

    Here ``C`` is ``mean_abs`` and ``a1' = -1.0188`` the first zero of ``Ai'``. It has the least
    Fisher information among all laws with ``E|X| <= C``, which makes it the best noise for many
    compositions of small sensitivity under the cost ``|x|`` (Alghamdi et al., "Schrodinger
    mechanisms", proposition 4). The tail is ``exp(-(4/3) (kappa |x|)**1.5)``, lighter than
    Laplace's and heavier than the Gaussian's.

    Parameters
    ----------
    mean_abs, scale, std : float
        Exactly one of: mean absolute value (``scale`` is the same), standard deviation.

    Examples
    --------
    >>> import psinoise as pn
    >>> round(float(pn.Airy(mean_abs=1.0).pdf(0.0)), 12)
    0.333333333333
    """

    _statistics = {"scale": 1.0, "std": math.sqrt(_SECOND_MOMENT), "mean_abs": 1.0}  # noqa: RUF012
    _canonical = "mean_abs"
    _score_limit = math.inf

    @property
    def costly(self) -> bool:
        """True: an Airy function."""
        return True

    def log_density(self, t: Float) -> dd.Pair:
        """``2 log(Ai(z) / Ai(a1')) - log 3``, ``z = a1' + kappa t``."""
        log_hi, log_lo, _, _ = airy(*_argument(t))
        # Far out log Ai overflows when doubled; the pair arithmetic needs finite numbers.
        huge = ~(log_hi > -1e300)
        ratio = dd.add(
            (np.where(huge, -1.0, log_hi), np.where(huge, 0.0, log_lo)),
            constant(-LOG_PEAK_HI, -LOG_PEAK_LO),
        )
        hi, lo = dd.add((2.0 * ratio[0], 2.0 * ratio[1]), _MINUS_LOG3)
        with np.errstate(over="ignore"):
            return np.where(huge, 2.0 * log_hi, hi), np.where(huge, 0.0, lo)

    def log_mills(self, t: Float) -> Float:
        """``log(rho'(z) / kappa)``, ``rho = -Ai' / Ai``, from ``rho' = rho**2 - z``."""
        _, _, _, decay_slope = airy(*_argument(t))
        return core.logarithm(np.ascontiguousarray(decay_slope / _KAPPA[0]))

    def score(self, t: Float) -> Float:
        """``2 kappa rho(z)``, which goes with the root of ``z`` far out."""
        _, _, decay, _ = airy(*_argument(t))
        return 2.0 * _KAPPA[0] * decay * np.sqrt(np.maximum(t / _FARTHEST, 1.0))

    def _standard_fisher_information(self) -> float:
        return 16.0 * _A**3 / 27.0


# Log Ai is -inf long before, and products stay finite.
_FARTHEST = 2.0**960


def _argument(t: Float) -> dd.Pair:
    with np.errstate(over="ignore", invalid="ignore"):
        t = np.minimum(t, _FARTHEST)
        product = dd.multiply((t, np.zeros_like(t)), _KAPPA)
    return dd.add(product, _FIRST_SLOPE_ZERO)
