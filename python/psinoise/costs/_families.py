"""Smooth costs with a name: powers, powers of logarithms, logarithms of hyperbolic cosines."""

from __future__ import annotations

import math

import numpy as np

from psinoise import _validate
from psinoise._backend import core
from psinoise.costs._cost import Float, Weighted
from psinoise.costs._pairs import add, power_pair, times
from psinoise.errors import DomainError
from psinoise.numerics import double_double as dd

# sinh(x) / x in powers of x**2, highest first: enough for x below 1.
_SINH = tuple(1.0 / math.factorial(2 * k + 1) for k in range(10, -1, -1))
# exp(-2 x) is 0 from here on.
_FLAT = 400.0
_LOG2 = (float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56"))


class Power(Weighted):
    """``weight * |x|**p``.

    Parameters
    ----------
    p : float
        In [1/100, 100]: smaller powers are logarithms but for their tails, larger ones walls.
    weight : float
        Positive.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.Power(1.5)([-4.0, 1.0])
    array([8., 1.])
    """

    __slots__ = ("p",)

    p: float

    def __init__(self, p: float, weight: float = 1.0) -> None:
        power = _validate.positive("p", p)
        if not (0.01 <= power <= 100.0):
            raise DomainError(f"p must be in [1/100, 100], got {p!r}")
        self._state(power, weight)

    def pair(self, t: Float) -> dd.Pair:
        return times(power_pair(t, self.p), self.weight)


class Log(Weighted):
    """``weight * log(1 + |x|)**power``: a cost of orders of magnitude.

    Parameters
    ----------
    power, weight : float
        ``power`` in [1/100, 100], ``weight`` positive.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.Log()(0.0)
    np.float64(0.0)
    """

    __slots__ = ("power",)

    power: float

    def __init__(self, power: float = 1.0, weight: float = 1.0) -> None:
        exponent = _validate.positive("power", power)
        if not (0.01 <= exponent <= 100.0):
            raise DomainError(f"power must be in [1/100, 100], got {power!r}")
        self._state(exponent, weight)

    def pair(self, t: Float) -> dd.Pair:
        logs = core.log_one_plus(np.ascontiguousarray(t))
        if self.power == 1.0:
            return times((logs, np.zeros_like(logs)), self.weight)
        return times(power_pair(logs, self.power), self.weight)


class LogCosh(Weighted):
    """``weight * log(cosh(x / scale))``: a square near 0, an absolute value far out, smooth.

    Parameters
    ----------
    scale, weight : float
        Positive.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.LogCosh()([0.0, 1.0, 1000.0])
    array([0.00000000e+00, 4.33780830e-01, 9.99306853e+02])
    """

    __slots__ = ("scale",)

    scale: float

    def __init__(self, scale: float = 1.0, weight: float = 1.0) -> None:
        self._state(scale, weight)

    def pair(self, t: Float) -> dd.Pair:
        with np.errstate(over="ignore"):
            x = t / self.scale
        # log cosh x = log(1 + sinh(x)**2) / 2, and x - log 2 + log(1 + exp(-2 x)) far out.
        near = x < 1.0
        u = np.where(near, x, 0.0)
        square = u * u
        series = np.full_like(u, _SINH[0])
        for coefficient in _SINH[1:]:
            series = series * square + coefficient
        inner = 0.5 * core.log_one_plus(np.ascontiguousarray(square * (series * series)))
        v = np.where(near, 1.0, x)
        zero = np.zeros_like(v)
        decay = core.exponential(np.ascontiguousarray(-2.0 * np.minimum(v, _FLAT)), zero)
        line = add((v, zero), (zero - _LOG2[0], zero - _LOG2[1]))
        hi, lo = add(line, (core.log_one_plus(decay), zero))
        return times((np.where(near, inner, hi), np.where(near, 0.0, lo)), self.weight)
