"""Points beyond the tables of a law, from its own formulas."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.compile import Layout
from psinoise.noise._logarithm import logarithm_pair
from psinoise.numerics import double_double as dd

__all__ = ["fill_beyond"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]


class _Law(Protocol):
    @property
    def layout(self) -> Layout: ...
    def log_density(self, t: Float) -> dd.Pair: ...
    def log_survival(self, t: Float) -> dd.Pair: ...


def fill_beyond(law: _Law, scale: float, quantity: str, points: Numbers, out: Numbers) -> None:
    """Write a quantity of ``scale * Z`` at the points beyond the tables to ``out``."""
    x = points.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        t = np.abs(x) / scale
        beyond = t >= law.layout.limit
        t = t[beyond]
        finite = np.minimum(t, np.finfo(float).max)
        log_density = _unless_infinite(t, law.log_density(finite))
        log_survival = _unless_infinite(t, law.log_survival(finite))
        log_scale = logarithm_pair(np.array([scale]))
        upper = (x[beyond] > 0.0) == ("ccdf" in quantity)
        survival = _exponential(log_survival)
        # Not exp(log p) / scale: p may underflow where its quotient does not.
        scaled = dd.add(log_density, (-log_scale[0] + 0.0 * t, -log_scale[1] + 0.0 * t))
        values = {
            "pdf": _exponential(_unless_infinite(t, scaled)),
            "logpdf": (log_density[0] - log_scale[0]) + log_density[1],
            "cdf": np.where(upper, survival, 1.0 - survival),
            "logcdf": np.where(upper, log_survival[0] + log_survival[1], np.log1p(-survival)),
        }
        out[beyond] = values[quantity.replace("ccdf", "cdf")]


def _exponential(pair: dd.Pair) -> Float:
    # The low part of an enormous logarithm is itself more than the kernel takes.
    hi = np.maximum(pair[0], -1600.0)
    return core.exponential(hi, np.where(pair[0] > -1600.0, pair[1], 0.0))


def _unless_infinite(t: Float, pair: dd.Pair) -> dd.Pair:
    """The pair, with ``-inf`` where ``t`` or the pair is infinite."""
    infinite = np.isinf(t) | ~np.isfinite(pair[0])
    return np.where(infinite, -np.inf, pair[0]), np.where(infinite, 0.0, pair[1])
