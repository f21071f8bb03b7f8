"""Double-double arithmetic, operation for operation as ``csrc/math/double_double.hpp``.

A pair is an unevaluated sum ``hi + lo`` of two arrays with ``|lo| <= ulp(hi) / 2``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Pair = tuple[Float, Float]


def two_sum(a: Float, b: Float) -> Pair:
    """Exact sum of two doubles."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def quick_two_sum(a: Float, b: Float) -> Pair:
    """Exact sum of two doubles with ``|a| >= |b|``."""
    total = a + b
    return total, b - (total - a)


def _split(a: Float) -> Pair:
    scaled = 134217729.0 * a
    hi = scaled - (scaled - a)
    return hi, a - hi


def two_product(a: Float, b: Float) -> Pair:
    """Exact product of two doubles, barring underflow of the low part."""
    product = a * b
    a_hi, a_lo = _split(a)
    b_hi, b_lo = _split(b)
    return product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def multiply(a: Pair, b: Pair) -> Pair:
    """Product of two pairs."""
    hi, lo = two_product(a[0], b[0])
    return quick_two_sum(hi, lo + (a[0] * b[1] + a[1] * b[0]))


def add(a: Pair, b: Pair) -> Pair:
    """Sum of two pairs."""
    hi, lo = two_sum(a[0], b[0])
    return quick_two_sum(hi, lo + (a[1] + b[1]))


def divide(a: Float, b: Float) -> Pair:
    """Quotient of two doubles as a pair."""
    quotient = a / b
    hi, lo = two_product(quotient, b)
    return quotient, ((a - hi) - lo) / b


def quotient(a: Float, b: Float, inverse: Float) -> Pair:
    """Quotient of two doubles as a pair, given ``1 / b``; ``hi`` may be an ulp or two off."""
    hi = a * inverse
    product_hi, product_lo = two_product(hi, b)
    return hi, ((a - product_hi) - product_lo) * inverse


def square_root(a: Pair) -> Pair:
    """Square root of a positive pair."""
    root = np.sqrt(a[0])
    hi, lo = two_product(root, root)
    return quick_two_sum(root, (((a[0] - hi) - lo) + a[1]) / (root + root))
