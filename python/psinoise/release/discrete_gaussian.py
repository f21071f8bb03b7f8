"""The discrete Gaussian law as integer weights, and sums of such laws that are one again.

``DG(v)`` gives ``k`` the probability ``exp(-k**2 / (2 v)) / S(v)``, with ``S`` the sum over all
whole numbers. `table` rounds it to multiples of ``2**-63``, by integer arithmetic alone, so that
the weights are the same on every machine.

*Sums.* Let ``K = B + M A`` with independent ``B`` of ``DG(t)`` and ``A`` of ``DG(u)``, and let
``v = t + M**2 u``. Completing the square,

    ``P(K = k) = exp(-k**2 / (2 v)) / (S(t) S(u)) * sum over a of exp(-(a - c)**2 / (2 w))``

with ``w = u t / v`` and ``c = k M u / v``. By Poisson summation the last sum is ``sqrt(2 pi w)``
times a number within ``2 sum over j >= 1 of exp(-2 pi**2 w j**2)`` of 1, whatever ``c`` is. So
``K`` has the law ``DG(v)`` but for that share of each probability, which is below ``1e-80`` for
``w >= 10`` (Micciancio and Peikert, "Hardness of SIS and LWE with small parameters", CRYPTO 2013,
theorem 3.3, for the general statement).

*Beside the rounded normal law* of variance ``v``: for the density ``f`` of that law the integral
over ``[k - 1/2, k + 1/2]`` is ``f(k)`` but for ``max |f''| / 24`` over the interval. The sum of
these maxima is at most the integral of ``|f''|``, which is below ``0.97 / v``, and the total
variation of ``f''``, below ``4 / v**1.5``. For ``v >= 1000`` the total variation between the two
laws is hence below ``0.023 / v``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.release.weights import DRAWS, MOST_LISTED, Weights

__all__ = ["Digit", "digits_of", "rounding_price"]

# Bits of the fixed-point numbers: after 2**18 products of factors below 1 at least 150 are right.
_BITS = 192
# Digits below the top one have this variance, and the next one is worth so many of its units: the
# standard deviation below it is four of those, and w above 12.
_VARIANCE = Fraction(1 << 20)
_LOG_MARGIN = 2
# The largest variance of a top digit. Beyond it there is room for one more digit, of which the next
# top digit has at least a variance of 47.
_LARGEST = Fraction(1 << 22)


class Digit(NamedTuple):
    """One term of the sum: the weights of ``A``, the unit ``2**shift``, and the total variation
    between the table and ``DG``."""

    weights: Weights
    shift: int
    price: float


def digits_of(variance: Fraction) -> tuple[Digit, ...]:
    """Digits whose sum is of the law ``DG(variance)``, the lowest first.

    Parameters
    ----------
    variance : Fraction
        At least 1.
    """
    found, total, shift = [], Fraction(0), 0
    while (variance - total) / 4**shift > _LARGEST:
        found.append(_digit(_VARIANCE, shift))
        total += _VARIANCE * 4**shift
        # The standard deviation of what there is, in bits, rounded down.
        shift = (math.isqrt(math.floor(total)).bit_length() - 1) - _LOG_MARGIN
    return (*found, _digit((variance - total) / 4**shift, shift))


def rounding_price(variance: Fraction) -> float:
    """A bound on the total variation between ``DG`` and the rounded normal law."""
    return 0.023 / float(variance)


def _digit(variance: Fraction, shift: int) -> Digit:
    listed, price = _table(variance)
    return Digit(Weights(listed, "none", 0, 0), shift, price)


def _table(variance: Fraction) -> tuple[NDArray[np.uint64], float]:
    """Weights of ``|A| = 0, 1, ...``, which add up to ``2**63``, and the total variation."""
    first = _exponential(1 / (2 * variance))
    square = (first * first) >> _BITS
    # exp(-k**2 / (2 v)): the ratio of two of them falls by a constant factor.
    values, ratio = [1 << _BITS], first
    while values[-1] >> (_BITS - 70) and len(values) < MOST_LISTED:
        values.append((values[-1] * ratio) >> _BITS)
        ratio = (ratio * square) >> _BITS
    last = values.pop()
    # The rest is geometric or less: its sum is at most that of a geometric one.
    rest = (last << _BITS) // ((1 << _BITS) - ratio) + 1
    total = 2 * (sum(values) + rest) - values[0]
    # Probabilities of |A| in units of 2**-127, of which the weights keep the upper bits.
    shares = [(value << 128) // total for value in values]
    weights = [(share + (1 << 63)) >> 64 for share in shares[1:]]
    missed = sum(
        abs(share - (weight << 64)) for share, weight in zip(shares[1:], weights, strict=True)
    )
    while not weights[-1]:
        weights.pop()
    # What the others have too much or too little, 0 has too little or too much.
    price = math.ldexp(missed + (rest << 128) // total, -127) * (1.0 + 2.0**-40) + 2.0**-80
    return np.array([DRAWS - sum(weights), *weights], dtype=np.uint64), price


def _exponential(x: Fraction) -> int:
    """``exp(-x)`` in fixed point, for ``0 < x <= 1/2``."""
    numerator = (x.numerator << _BITS) // x.denominator
    total = term = 1 << _BITS
    order = 0
    while term:
        order += 1
        term = ((term * numerator) >> _BITS) // order
        total += -term if order % 2 else term
    return total
