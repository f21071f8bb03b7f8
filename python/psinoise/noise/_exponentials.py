"""Exponentials and logarithms of single numbers, the same bits on every machine."""

from __future__ import annotations

import numpy as np

from psinoise._backend import core

__all__ = ["exponential", "exponential_minus_one", "logarithm"]

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
    term, total, k = x, 0.0, 1
    while abs(term) > 1e-18 * abs(total):
        total += term
        k += 1
        term *= x / k
    return total
