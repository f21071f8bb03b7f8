"""Points beyond the tables of a law, from its own formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.noise._elementary import logarithm_pair, minus
from psinoise.numerics import double_double as dd

if TYPE_CHECKING:
    from psinoise.noise._base import Noise

__all__ = ["fill_beyond"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]

_LARGEST = np.finfo(float).max


def fill_beyond(law: Noise, quantity: str, points: Numbers, out: Numbers) -> None:
    """Write a quantity at the points beyond the tables to ``out``."""
    x = points.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        t = np.abs(x) / law.scale
        beyond = t >= law.layout.limit
        t, right = t[beyond], x[beyond] > 0.0
        if "pdf" in quantity:
            out[beyond] = _density(law, t, logarithm=quantity == "logpdf")
        else:
            upper = right == ("ccdf" in quantity)
            out[beyond] = _distribution(law, t, upper, logarithm=quantity.startswith("log"))


def _density(law: Noise, t: Float, *, logarithm: bool) -> Float:
    log_density = _unless_infinite(t, law.log_density(np.minimum(t, _LARGEST)))
    log_scale = logarithm_pair(np.array([law.scale]))
    if logarithm:
        return np.asarray((log_density[0] - log_scale[0]) + log_density[1])
    # Not exp(log p) / scale: p may underflow where its quotient does not.
    return _exponential(_unless_infinite(t, dd.add(log_density, minus(log_scale))))


def _distribution(law: Noise, t: Float, upper: NDArray[np.bool_], *, logarithm: bool) -> Float:
    """The probability beyond ``t``, or what it leaves."""
    log_survival = _unless_infinite(t, law.log_survival(np.minimum(t, _LARGEST)))
    survival = _exponential(log_survival)
    if logarithm:
        return np.where(upper, log_survival[0] + log_survival[1], np.log1p(-survival))
    return np.where(upper, survival, 1.0 - survival)


def _exponential(pair: dd.Pair) -> Float:
    # The low part of an enormous logarithm is itself more than the kernel takes.
    hi = np.maximum(pair[0], -1600.0)
    return core.exponential(hi, np.where(pair[0] > -1600.0, pair[1], 0.0))


def _unless_infinite(t: Float, pair: dd.Pair) -> dd.Pair:
    """The pair, with ``-inf`` where ``t`` or the pair is infinite."""
    infinite = np.isinf(t) | ~np.isfinite(pair[0])
    return np.where(infinite, -np.inf, pair[0]), np.where(infinite, 0.0, pair[1])
