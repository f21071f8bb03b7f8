"""Exponential and logarithm with the order of operations of ``csrc/math/elementary.hpp``.

Only IEEE additions, multiplications, divisions and bit operations are used, so the results are the
same bits as the compiled kernels on every machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.bits import bits_of, double_from, exponent_and_mantissa

Float = NDArray[np.float64]

# log 2 with 21 trailing zero bits, and the rest.
LOG2_HI = float.fromhex("0x1.62e42fee00000p-1")
LOG2_LO = float.fromhex("0x1.a39ef35793c76p-33")
_LOG2 = float.fromhex("0x1.62e42fefa39efp-1")
_INVERSE_LOG2 = float.fromhex("0x1.71547652b82fep+0")
_SHIFT = float.fromhex("0x1.8p52")
_EXP_COEFFICIENTS = [1.0 / math.factorial(n) for n in range(13, 1, -1)]
_LOG_COEFFICIENTS = [2.0 / n for n in range(21, 1, -2)]


def exponential_shifted(hi: Float, lo: Float, shift: int) -> Float:
    """``exp(hi + lo) * 2**shift`` where ``|lo|`` is at most about one ulp of ``hi``."""
    with np.errstate(all="ignore"):
        lift = _LOG2 * shift
        level = hi + lift
        x = np.where(np.abs(level) > 746.0, np.copysign(1418.2, level) - lift, hi)
        shifted = x * _INVERSE_LOG2 + _SHIFT
        k = shifted - _SHIFT
        r = ((x - k * LOG2_HI) - k * LOG2_LO) + lo
        total = np.full_like(r, _EXP_COEFFICIENTS[0])
        for coefficient in _EXP_COEFFICIENTS[1:]:
            total = total * r + coefficient
        value = 1.0 + (r + (r * r) * total)
        biased = (bits_of(shifted) + np.uint64(shift + 2046)) & np.uint64(0xFFF)
        half = biased >> np.uint64(1)
        low = double_from(half << np.uint64(52))
        high = double_from((biased - half) << np.uint64(52))
        return np.asarray((value * low) * high)


def exponential(hi: Float, lo: Float) -> Float:
    """``exp(hi + lo)`` where ``|lo|`` is at most about one ulp of ``hi``."""
    return exponential_shifted(hi, lo, 0)


def logarithm(x: Float) -> Float:
    """Natural logarithm; ``-inf`` at 0 and NaN below."""
    with np.errstate(all="ignore"):
        subnormal = (x > 0.0) & (x < float.fromhex("0x1p-1022"))
        normal = np.where(subnormal, x * float.fromhex("0x1p54"), x)
        k, m = exponent_and_mantissa(normal)
        k = k + np.where(subnormal, -54, 0)
        f = m - 1.0
        s = f / (2.0 + f)
        z = s * s
        total = np.full_like(z, _LOG_COEFFICIENTS[0])
        for coefficient in _LOG_COEFFICIENTS[1:]:
            total = total * z + coefficient
        half_square = 0.5 * f * f
        scale = k.astype(np.float64)
        value = scale * LOG2_HI - (
            (half_square - (s * (half_square + z * total) + scale * LOG2_LO)) - f
        )
        value = np.where(x > 0.0, value, np.where(x == 0.0, -np.inf, np.nan))
        return np.asarray(np.where(x == np.inf, np.inf, value))


def log_one_plus(x: Float) -> Float:
    """``log(1 + x)`` without cancellation for small ``x``."""
    with np.errstate(all="ignore"):
        u = 1.0 + x
        corrected = logarithm(u) - ((u - 1.0) - x) / u
        return np.asarray(np.where((u < np.inf) & (u > 0.0), corrected, logarithm(u)))
