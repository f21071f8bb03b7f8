"""Sine and arctangent with the order of operations of ``csrc/math/stable.hpp``."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

_SINE = [(-1.0) ** n / math.factorial(2 * n + 1) for n in range(8, 0, -1)]
_ARCTANGENT = [(-1.0) ** n / (2 * n + 1) for n in range(11, 0, -1)]


def sine(x: Float) -> Float:
    """``sin x`` for ``|x| <= pi / 4``; relative error 2e-16."""
    square = x * x
    total = np.full_like(x, _SINE[0])
    for coefficient in _SINE[1:]:
        total = total * square + coefficient
    return np.asarray(x + x * (square * total))


def arctangent(x: Float) -> Float:
    """``arctan x`` for ``0 <= x <= 1`` by halving the angle twice; relative error 5e-16."""
    half = x / (1.0 + np.sqrt(1.0 + x * x))
    t = half / (1.0 + np.sqrt(1.0 + half * half))
    square = t * t
    total = np.full_like(x, _ARCTANGENT[0])
    for coefficient in _ARCTANGENT[1:]:
        total = total * square + coefficient
    return np.asarray(4.0 * (t + t * (square * total)))
