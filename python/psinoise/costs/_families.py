"""Costs with a name: powers and powers of logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from psinoise import _validate
from psinoise._backend import core
from psinoise.costs._cost import Cost, Float
from psinoise.costs._pairs import power_pair, times
from psinoise.errors import DomainError
from psinoise.numerics import double_double as dd


class Power(Cost):
    """``weight * |x|**p``.

    Parameters
    ----------
    p : float
        In [1/8, 12]: smaller powers are logarithms but for their tails, larger ones walls.
    weight : float
        Positive.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.Power(1.5)([-4.0, 1.0])
    array([8., 1.])
    """

    __slots__ = ("p", "weight")

    p: float
    weight: float

    def __init__(self, p: float, weight: float = 1.0) -> None:
        power = _validate.positive("p", p)
        if not (0.125 <= power <= 12.0):
            raise DomainError(f"p must be in [1/8, 12], got {p!r}")
        object.__setattr__(self, "p", power)
        object.__setattr__(self, "weight", _validate.positive("weight", weight))

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.p,), {} if self.weight == 1.0 else {"weight": self.weight}

    def pair(self, t: Float) -> dd.Pair:
        return times(power_pair(t, self.p), self.weight)


class Log(Cost):
    """``weight * log(1 + |x|)**power``: a cost of orders of magnitude.

    Parameters
    ----------
    power, weight : float
        ``power`` in [1/8, 12], ``weight`` positive.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.Log()(0.0)
    np.float64(0.0)
    """

    __slots__ = ("power", "weight")

    power: float
    weight: float

    def __init__(self, power: float = 1.0, weight: float = 1.0) -> None:
        exponent = _validate.positive("power", power)
        if not (0.125 <= exponent <= 12.0):
            raise DomainError(f"power must be in [1/8, 12], got {power!r}")
        object.__setattr__(self, "power", exponent)
        object.__setattr__(self, "weight", _validate.positive("weight", weight))

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.power,), {} if self.weight == 1.0 else {"weight": self.weight}

    def pair(self, t: Float) -> dd.Pair:
        logs = core.log_one_plus(np.ascontiguousarray(t))
        if self.power == 1.0:
            return times((logs, np.zeros_like(logs)), self.weight)
        return times(power_pair(logs, self.power), self.weight)
