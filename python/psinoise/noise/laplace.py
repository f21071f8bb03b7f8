"""Laplace noise."""

from __future__ import annotations

import math

import numpy as np

from psinoise.compile.quantiles import LOG2_HI, LOG2_LO
from psinoise.noise._base import Float, ScaleFamily
from psinoise.noise._elementary import constant, exponential_series, minus
from psinoise.numerics import double_double as dd

__all__ = ["Laplace"]

_MINUS_LOG2 = minus(constant(LOG2_HI, LOG2_LO))


class Laplace(ScaleFamily):
    """Laplace noise with density ``exp(-|x| / scale) / (2 scale)``.

    Its privacy loss is bounded by ``sensitivity / scale``: pure differential privacy (Dwork,
    McSherry, Nissim and Smith, TCC 2006).

    Parameters
    ----------
    scale, std, mean_abs : float
        Exactly one of: scale (the mean absolute value is the same), standard deviation.

    Examples
    --------
    >>> import psinoise as pn
    >>> round(float(pn.Laplace(scale=1.0).ccdf(1.0)), 12)
    0.183939720586
    """

    _statistics = {"scale": 1.0, "std": math.sqrt(2.0), "mean_abs": 1.0}  # noqa: RUF012
    _canonical = "scale"
    _score_limit = 1.0
    # The law of ``sum min(max(x_i, 0), a_i)`` is most spread where one a_i is not 0.
    axis_is_worst = True

    @property
    def decay(self) -> float:
        """``1 / scale``, everywhere."""
        return 1.0 / self._scale

    def log_density(self, t: Float) -> dd.Pair:
        """``-t - log 2``."""
        return dd.add((-t, np.zeros_like(t)), _MINUS_LOG2)

    def log_mills(self, t: Float) -> Float:
        """0: the exponential law has no memory."""
        return np.zeros_like(t)

    def score(self, t: Float) -> Float:
        """1."""
        return np.ones_like(t)

    def _standard_moment(self, order: float) -> float:
        return math.gamma(order + 1.0) if order < 170.0 else math.inf

    def _log_unit_moment(self, order: float) -> float:
        return math.lgamma(order + 1.0)

    def _standard_fisher_information(self) -> float:
        return 1.0

    def _standard_kl(self, shift: float) -> float:
        # s + exp(-s) - 1, whose leading term s^2 / 2 cancels for small s.
        if shift > 0.5:
            return shift + math.expm1(-shift)
        return exponential_series(-shift, 0.5 * shift * shift, 2)
