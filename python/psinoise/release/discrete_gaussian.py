"""The discrete Gaussian law as integer weights, and sums of such laws that are one again.

``DG(v)`` gives ``k`` the probability ``exp(-k**2 / (2 v)) / S(v)``, with ``S`` the sum over all
whole numbers. It is listed by integer arithmetic alone, so that the weights are the same on every
machine. They are multiples of ``2**-63``; what rounding them down leaves over is a second table,
from which is drawn where the first one says so (`Digit`). The two are right to some ``2**-110``.

*Nothing listed is too rare.* What the two tables give to ``k`` is rounded up, except for 0, which
has what is left. So a table ``T`` has ``T >= (1 - eta) (DG - U)``, where ``U`` is the mass of what
is not listed, some ``2**-122``, and ``eta`` what was added in all over the probability of 0. A sum
of digits has ``T >= (1 - eta) (DG - U)`` with the sums of ``eta`` and of the masses.

*Sums.* Let ``K = B + M A`` with independent ``B`` of ``DG(t)`` and ``A`` of ``DG(u)``, and let
``v = t + M**2 u``. Completing the square,

    ``P(K = k) = exp(-k**2 / (2 v)) / (S(t) S(u)) * sum over a of exp(-(a - c)**2 / (2 w))``

with ``w = u t / v`` and ``c = k M u / v``. By Poisson summation the last sum is ``sqrt(2 pi w)``
times a number within ``2 sum over j >= 1 of exp(-2 pi**2 w j**2)`` of 1, whatever ``c`` is. So
``K`` has the law ``DG(v)`` but for that share of each probability, which is below ``1e-80`` for
``w >= 10`` (Micciancio and Peikert, "Hardness of SIS and LWE with small parameters", CRYPTO 2013,
theorem 3.3, for the general statement).

*Beside the rounded normal law* of variance ``v``, which has a variance of ``v + 1/12``: this is the
variance that is drawn. For the density ``f_v`` of the normal law the integral over ``[k - 1/2,
k + 1/2]`` is that of ``f_v + D2 f_v / 24`` at ``k`` but for ``max |D4 f_v| / 1920`` over the
interval. As ``f_v`` grows with ``v`` by ``D2 f_v / 2``, ``f_u`` with ``u = v + 1/12`` is the same
but for the integral of ``(u - w) D4 f_w / 4`` over ``w`` from ``v`` to ``u``, of which the factors
add up to ``1 / 1152``. The sum over all ``k`` of maxima over their cells is at most the integral
of ``|D4 f_w|`` and the total variation, that of ``|D5 f_w|``. These are ``E|He_4| / w**2`` and
``E|He_5| / w**2.5`` with Hermite polynomials of a normal number, at most ``sqrt(24) / v**2`` and
``sqrt(120) / v**2.5``, since ``E He_n**2 = n!``. And ``f_u(k)`` is ``DG(u)`` but for a share below
``1e-80``. So for ``v >= 1000`` the total variation between the two is below ``0.004 / v**2``.

*One number of it.* At ``|k| <= 14 sqrt(v)`` the same differences are at most ``1/1920 + 1/1152``
times the largest ``|D4 f_w|`` over the cell and ``w``, and ``D4 f_w(x) = He_4(z) f_w(x) / w**2``
with ``z = x / sqrt(w)`` and ``|He_4(z)| <= z**4 + 6``. As ``w <= u``, ``f_w(x) <= sqrt(u / w)
exp(|k| / (2 u)) f_u(k)``. For ``v >= 1e6`` all this is below ``0.00145 (14**4 + 6) / v**2 < 56 /
v**2`` of ``f_u(k)``. So ``DG(u)`` has all of the rounded law but for this share, and but for what
is farther out, which is below ``exp(-97) < 2**-139``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.release.weights import DRAWS, MOST_LISTED, Weights, frozen

__all__ = ["Digit", "digits_of", "rounding_of"]

# Bits of the fixed-point numbers: after 2**18 products of factors below 1 at least 150 are right.
_BITS = 192
# Integers are listed down to a share of 2**-118 of that of 0.
_LEAST = 118
# Digits below the top one have this variance, and the next one is worth so many of its units: the
# standard deviation below it is four of those, and w above 12.
_VARIANCE = Fraction(1 << 20)
_LOG_MARGIN = 2
# The largest variance of a top digit. Beyond it there is room for one more digit, of which the next
# top digit has at least a variance of 47.
_LARGEST = Fraction(1 << 22)
# From this variance on rounding is a share of each number.
_WIDE = 1 << 48


class Digit(NamedTuple):
    """One term of the sum: the weights of ``A``, the unit ``2**shift``, and bounds on the total
    variation between the tables and ``DG``, on ``eta`` and on ``U``. The last of the weights is
    that of a draw from ``rest``."""

    weights: Weights
    rest: Weights
    shift: int
    price: float
    lack: float
    unlisted: float


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


class Rounding(NamedTuple):
    """How far ``DG`` is from a normal law that is rounded: bounds on the total variation, and on a
    share and a mass of the rounded law so that ``DG`` has all but these."""

    price: float
    lack: float
    missing: float


def rounding_of(variance: Fraction) -> Rounding:
    """That of the normal law of a variance, at least 1000, and ``DG`` of a twelfth more."""
    square = float(variance) ** 2
    # Where the share is below what weights round, it is better than a mass, which losses multiply.
    if variance >= _WIDE:
        return Rounding(0.004 / square, 56.0 / square, 2.0**-139)
    return Rounding(0.004 / square, 0.0, 0.004 / square)


def _digit(variance: Fraction, shift: int) -> Digit:
    listed, rest, *bounds = _tables(variance)
    return Digit(Weights(listed, "none", 0, 0), Weights(rest, "none", 0, 0), shift, *bounds)


def _tables(
    variance: Fraction,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], float, float, float]:
    """Weights of ``|A| = 0, 1, ...`` and of the rest, those there, and the bounds of `Digit`."""
    first = _exponential(1 / (2 * variance))
    square = (first * first) >> _BITS
    # exp(-k**2 / (2 v)): the ratio of two of them falls by a constant factor.
    values, ratio = [1 << _BITS], first
    while values[-1] >> (_BITS - _LEAST) and len(values) < MOST_LISTED:
        values.append((values[-1] * ratio) >> _BITS)
        ratio = (ratio * square) >> _BITS
    last = values.pop()
    # The rest is geometric or less: its sum is at most that of a geometric one.
    rest = (last << _BITS) // ((1 << _BITS) - ratio) + 1
    total = 2 * (sum(values) + rest) - values[0]
    # Probabilities of |A| in units of 2**-127, above the exact ones by less than 2: the upper bits
    # are weights, the lower ones together two more, and the second table says what these stand for,
    # a unit of it for 2 * beside. In each 0 takes what is left.
    shares = [(value << 128) // total + 2 for value in values[1:]]
    lower = [share & ((1 << 64) - 1) for share in shares]
    beside = (sum(lower) >> 64) + 2
    weights = [*(share >> 64 for share in shares), beside]
    finer = [-(-share // (2 * beside)) for share in lower]
    added = sum(2 * beside * words for words in finer) - sum(lower) + 2 * len(shares)
    beyond = (rest << 128) // total + 1
    price, lack, unlisted = (
        math.ldexp(bound, -127) * (1.0 + 2.0**-40) + 2.0**-140
        for bound in (added + beyond, added * total // values[0] + 1, beyond)
    )
    first_table, second = ([DRAWS - sum(part), *part] for part in (weights, finer))
    return frozen(first_table), frozen(second), price, lack, unlisted


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
