"""Doubles and their bit fields."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

_ROOT_HALF = np.uint64(0x3FE6A09E00000000)  # sqrt(1/2), its high bits
_EXPONENT = np.uint64(0xFFF0000000000000)


def bits_of(x: Float) -> NDArray[np.uint64]:
    """Reinterpret float64 as uint64."""
    return np.ascontiguousarray(x).view(np.uint64)


def double_from(bits: NDArray[np.uint64]) -> Float:
    """Reinterpret uint64 as float64."""
    return np.ascontiguousarray(bits).view(np.float64)


def exponent_and_mantissa(x: Float) -> tuple[NDArray[np.int64], Float]:
    """``k`` and ``m`` of normal numbers ``x = 2**k m > 0``, where ``0.70 <= m < 1.42``."""
    bits = bits_of(x)
    offset = bits - _ROOT_HALF
    return offset.view(np.int64) >> np.int64(52), double_from(bits - (offset & _EXPONENT))
