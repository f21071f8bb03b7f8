"""Logarithms as pairs, for laws whose log-density grows to hundreds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.numerics import double_double as dd
from psinoise.numerics.bits import exponent_and_mantissa
from psinoise.numerics.elementary import LOG2_HI, LOG2_LO

__all__ = ["logarithm_pair"]

Float = NDArray[np.float64]


def logarithm_pair(x: Float) -> dd.Pair:
    """Natural logarithm of normal numbers as ``hi + lo``; error below 2**-53 absolute."""
    exponent, m = exponent_and_mantissa(x)
    k = exponent.astype(np.float64)
    hi, lo = dd.two_sum(k * LOG2_HI, core.logarithm(m))  # the product is exact
    return dd.quick_two_sum(hi, lo + k * LOG2_LO)
