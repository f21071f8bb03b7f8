"""Powers, sums and multiples of values as pairs, the same bits on every machine."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]

_DECIMAL = Context(prec=36)
_LOG2_HI = float.fromhex("0x1.62e42fefa39efp-1")
_LOG2_LO = float.fromhex("0x1.abc9e3b39803fp-56")
# Different mantissas up to which a power is computed in decimal: 30 microseconds each.
_FEW = 128


def add(a: dd.Pair, b: dd.Pair) -> dd.Pair:
    with np.errstate(invalid="ignore", over="ignore"):
        hi, lo = dd.add(a, b)
        sound = np.isfinite(hi)
        return np.where(sound, hi, a[0] + b[0]), np.where(sound, lo, 0.0)


def times(a: dd.Pair, factor: float) -> dd.Pair:
    if factor == 1.0:
        return a
    with np.errstate(invalid="ignore", over="ignore"):
        hi, lo = dd.multiply(a, (np.array(factor), np.zeros(())))
        huge = ~np.isfinite(lo) | ~np.isfinite(hi)
        return np.where(huge, a[0] * factor, hi), np.where(huge, 0.0, lo)


def power_pair(t: Float, p: float) -> dd.Pair:
    """``t**p``: by multiplication and square roots for multiples of 1/8; else rounded once from 36
    digits where the mantissas are as few as those of collocation nodes, and to about ``p`` ulp for
    other arrays."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if p.is_integer():
            return _whole_power(t, int(p))
        if (8.0 * p).is_integer():
            return _eighth_power(t, int(8.0 * p))
        mantissas, exponents = np.frexp(t)
        distinct, where = np.unique(mantissas, return_inverse=True)
        if distinct.size > _FEW:
            return _any_power(mantissas, exponents, p)
        power = np.array([_decimal_power(m, p) for m in distinct.tolist()]).reshape(-1, 2)
        few, which = np.unique(exponents, return_inverse=True)
        scale = np.array([_decimal_power_of_two(e, p) for e in few.tolist()]).reshape(-1, 2)
        a, b = power[where], scale[which]
        hi, lo = dd.multiply((a[:, 0], a[:, 1]), (b[:, 0], b[:, 1]))
        sound = np.isfinite(hi) & np.isfinite(lo)
        return np.where(sound, hi, a[:, 0] * b[:, 0]), np.where(sound, lo, 0.0)


def _whole_power(t: Float, p: int) -> dd.Pair:
    return _whole_power_of((t, np.zeros_like(t)), p)


def _whole_power_of(base: dd.Pair, p: int) -> dd.Pair:
    plain, pair = base[0], base
    for bit in bin(p)[3:]:
        plain, pair = plain * plain, dd.multiply(pair, pair)
        if bit == "1":
            plain, pair = plain * base[0], dd.multiply(pair, base)
    sound = np.isfinite(pair[0]) & np.isfinite(pair[1])
    return np.where(sound, pair[0], plain), np.where(sound, pair[1], 0.0)


def _eighth_power(t: Float, eighths: int) -> dd.Pair:
    """``t**(eighths / 8)`` by square roots, which IEEE defines, and multiplication."""
    positive = (t > 0.0) & (t < np.inf)
    root = (np.where(positive, t, 1.0), np.zeros_like(t))
    denominator = 8
    while denominator > 1:
        if eighths % 2 == 0:
            eighths //= 2
        else:
            root = dd.square_root(root)
        denominator //= 2
    hi, lo = _whole_power_of(root, eighths)
    return np.where(positive, hi, t), np.where(positive, lo, 0.0)


def _any_power(mantissas: Float, exponents: NDArray[np.intc], p: float) -> dd.Pair:
    """``exp(p (log m + e log 2))`` with the product in pairs."""
    e = exponents.astype(np.float64)
    zero = np.zeros_like(e)
    logs = dd.add(
        dd.multiply((e, zero), (_LOG2_HI + zero, _LOG2_LO + zero)),
        (core.logarithm(np.ascontiguousarray(mantissas)), zero),
    )
    hi, lo = dd.multiply(logs, (p + zero, zero))
    values = core.exponential(
        np.where(mantissas == 0.0, -np.inf, hi), np.where(np.isfinite(lo), lo, 0.0)
    )
    return np.where(np.isinf(mantissas), np.inf, values), zero


@lru_cache(maxsize=4096)
def _decimal_power(x: float, p: float) -> tuple[float, float]:
    return _split(_DECIMAL.power(Decimal(x), Decimal(p))) if x else (0.0, 0.0)


@lru_cache(maxsize=4096)
def _decimal_power_of_two(exponent: int, p: float) -> tuple[float, float]:
    return _split(_DECIMAL.power(Decimal(2), _DECIMAL.multiply(Decimal(p), Decimal(exponent))))


def _split(value: Decimal) -> tuple[float, float]:
    hi = float(value)
    if not math.isfinite(hi):
        return hi, 0.0
    return hi, float(_DECIMAL.subtract(value, Decimal(hi)))
