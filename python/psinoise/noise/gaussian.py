"""Gaussian noise: the Schrodinger mechanism of the cost ``x**2``."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from psinoise._backend import core
from psinoise.noise._base import Float, ScaleFamily
from psinoise.noise._elementary import constant
from psinoise.numerics import double_double as dd
from psinoise.numerics.gauss_legendre import NODES, WEIGHTS

__all__ = ["Gaussian"]

# -log sqrt(2 pi); 40 digits: 0.9189385332046727417803297364056176398613
_LOG_NORM = constant(-0.9189385332046728, 3.8782941580672414e-17)
# Panels of the Mills ratio integral, cut where the integrand is below exp(-40) of its start. The
# remainder of the rule of order 20 on a panel of width H is 6e-71 H^41 times the 40th derivative,
# at most sqrt(40!) = 9e23 for small t and exp(-left) for large t: below 3e-18 on each of these.
_MILLS_EDGES = (0.0, 5.0, 10.0, 18.0, 40.0)


class Gaussian(ScaleFamily):
    """Gaussian noise with density ``exp(-x**2 / (2 std**2)) / (std sqrt(2 pi))``.

    It minimises the Fisher information among all laws of a given variance, and is the squared
    ground state for the cost ``x**2`` (Alghamdi et al., "Schrodinger mechanisms", section III).

    Parameters
    ----------
    std, scale, mean_abs : float
        Exactly one of: standard deviation (``scale`` is the same), mean absolute value.

    Examples
    --------
    >>> import psinoise as pn
    >>> round(float(pn.Gaussian(std=2.0).ccdf(4.0)), 12)
    0.022750131948
    """

    _statistics = {"scale": 1.0, "std": 1.0, "mean_abs": math.sqrt(2.0 / math.pi)}  # noqa: RUF012
    _canonical = "std"
    _score_limit = math.inf
    normal_variance = 1

    @property
    def costly(self) -> bool:
        """True: a Mills ratio is a sum over eighty points."""
        return True

    def log_density(self, t: Float) -> dd.Pair:
        """``-t**2 / 2 - log sqrt(2 pi)``."""
        with np.errstate(over="ignore", invalid="ignore"):
            hi, lo = dd.two_product(t, 0.5 * t)
            # Where the square overflows the low part is NaN: log p is -inf there.
            huge = ~(t < 2.0**500)
            pair = dd.add((np.where(huge, -1.0, -hi), np.where(huge, 0.0, -lo)), _LOG_NORM)
            return np.where(huge, -0.5 * (t * t), pair[0]), pair[1]

    def log_mills(self, t: Float) -> Float:
        """``log m``, ``m = integral of exp(-t y - y**2 / 2) dy over y > 0`` (DLMF 7.7.1).

        A positive integrand in ``w = y max(1, t)``: relative error a few ulp at every ``t``, where
        differences of ``erf`` and the asymptotic series each fail somewhere.
        """
        width = np.maximum(t, 1.0)
        slope = t / width
        curvature = 0.5 / (np.minimum(width, 2.0**500) * np.minimum(width, 2.0**500))
        total = zero = np.zeros_like(t)
        carry = zero
        for left, right in pairwise(_MILLS_EDGES):
            half = 0.5 * (right - left)
            for node, weight in zip(NODES, WEIGHTS, strict=True):
                w = left + half * (1.0 + node)
                term = core.exponential(-w * (slope + w * curvature), zero)
                total, error = dd.two_sum(total, (half * weight) * term)
                carry = carry + error
        return core.logarithm(total + carry) - core.logarithm(width)

    def score(self, t: Float) -> Float:
        """``t``."""
        return t

    def _log_unit_moment(self, order: float) -> float:
        return 0.5 * order * math.log(2.0) + math.lgamma(0.5 * (order + 1.0)) - math.lgamma(0.5)

    def _standard_fisher_information(self) -> float:
        return 1.0

    def _standard_kl(self, shift: float) -> float:
        return 0.5 * shift * shift

    def _standard_kl_variance(self, shift: float) -> float:
        return shift * shift
