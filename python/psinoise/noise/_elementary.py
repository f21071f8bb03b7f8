"""Exponentials and logarithms, the same bits on every machine: of single numbers, and as pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.numerics import double_double as dd
from psinoise.numerics.bits import exponent_and_mantissa
from psinoise.numerics.elementary import LOG2_HI, LOG2_LO

__all__ = [
    "constant",
    "exponential",
    "exponential_minus_one",
    "exponential_series",
    "logarithm",
    "logarithm_pair",
    "minus",
]

Float = NDArray[np.float64]

# The series of exp(x) - 1 is summed up to here.
_SMALL = 0.5


def exponential(x: float) -> float:
    """``exp(x)``, within an ulp."""
    return float(core.exponential(np.array([x]), np.zeros(1))[0])


def logarithm(x: float) -> float:
    """``log(x)`` of a normal number."""
    return float(core.logarithm(np.array([x]))[0])


def exponential_minus_one(x: float) -> float:
    """``exp(x) - 1``, without its cancellation."""
    if abs(x) > _SMALL:
        return exponential(x) - 1.0
    return exponential_series(x, x, 1)


def exponential_series(x: float, term: float, k: int) -> float:
    """The series of ``exp(x)`` from the term ``x**k / k!`` on, which is given."""
    total = 0.0
    while abs(term) > 1e-18 * abs(total):
        total += term
        k += 1
        term *= x / k
    return total


def logarithm_pair(x: Float) -> dd.Pair:
    """Natural logarithm of normal numbers as ``hi + lo``; error below 2**-53 absolute."""
    exponent, m = exponent_and_mantissa(x)
    k = exponent.astype(np.float64)
    hi, lo = dd.two_sum(k * LOG2_HI, core.logarithm(m))  # the product is exact
    return dd.quick_two_sum(hi, lo + k * LOG2_LO)


def constant(hi: float, lo: float) -> dd.Pair:
    """A pair that goes with those of any number of points."""
    return np.array([hi]), np.array([lo])


def minus(pair: dd.Pair) -> dd.Pair:
    """The pair with the other sign."""
    return -pair[0], -pair[1]
