"""Nodes and matrices of the collocation panels, from exact integer arithmetic.

The nodes ``-cos(2 pi j / (2 n - 1))`` include the left end of the panel, where a solution arrives
that is computed inward, and not the right end, where it comes from: that makes the method damp what
is wrong with the start (stiff accuracy). They are shortened to 30 bits, so that ``center + half *
node`` is exact on dyadic panels; all else is exact for the shortened nodes and rounded to pairs.
"""

from __future__ import annotations

from functools import cache
from math import cos, lcm, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

SIZE = 20
_SHORT = 30
_INTEGERS = (
    -(1 << _SHORT),
    *(round(-cos(2 * pi * j / (2 * SIZE - 1)) * (1 << _SHORT)) for j in range(1, SIZE)),
)
NODES = np.array(_INTEGERS) / float(1 << _SHORT)


class Matrices(NamedTuple):
    """Pairs of matrices; the second index is that of the node."""

    #: Entry (k, j), by columns: the integral of basis polynomial ``k`` from node ``j`` to 1.
    inward: tuple[Float, Float]
    #: Entry (k): the integral of basis polynomial ``k`` over the panel.
    whole: tuple[Float, Float]
    #: Coefficients of the integral from -1, in powers of ``u``: shape ``(SIZE + 1, SIZE)``.
    integral: tuple[Float, Float]
    #: Coefficients of the interpolating polynomial: shape ``(SIZE, SIZE)``.
    values: tuple[Float, Float]


@cache
def matrices() -> Matrices:
    """All of them; a few milliseconds, once."""
    # In the integer variable w = 2^30 u the basis polynomials have integer coefficients over one
    # integer denominator each.
    whole = [1]
    for node in _INTEGERS:
        whole = [a - node * b for a, b in zip([0, *whole], [*whole, 0], strict=True)]
    bases, denominators = [], []
    for node in _INTEGERS:
        quotient = [whole[-1]]
        for coefficient in whole[-2:0:-1]:
            quotient.append(coefficient + node * quotient[-1])
        quotient.reverse()
        bases.append(quotient)
        denominators.append(_at(quotient, node))
    common = lcm(*range(1, SIZE + 1))
    # Antiderivatives in w times `common`, by powers of w.
    primitives = [
        [0, *(coefficient * (common // (p + 1)) for p, coefficient in enumerate(basis))]
        for basis in bases
    ]
    one = 1 << _SHORT
    ends = [(_at(primitive, one), _at(primitive, -one)) for primitive in primitives]
    # du = dw / 2^30
    scales = [denominator * common << _SHORT for denominator in denominators]
    inward = [
        [(end - _at(primitive, node), scale) for node in _INTEGERS]
        for primitive, (end, _), scale in zip(primitives, ends, scales, strict=True)
    ]
    panel = [(right - left, scale) for (right, left), scale in zip(ends, scales, strict=True)]
    integral = [
        [
            (primitive[p] << (_SHORT * p), scale) if p else (-left, scale)
            for primitive, (_, left), scale in zip(primitives, ends, scales, strict=True)
        ]
        for p in range(SIZE + 1)
    ]
    values = [
        [
            (basis[p] << (_SHORT * p), denominator)
            for basis, denominator in zip(bases, denominators, strict=True)
        ]
        for p in range(SIZE)
    ]
    return Matrices(_pairs(inward), _pairs([panel]), _pairs(integral), _pairs(values))


def _at(coefficients: list[int], w: int) -> int:
    total = 0
    for coefficient in reversed(coefficients):
        total = total * w + coefficient
    return total


def _pairs(ratios: list[list[tuple[int, int]]]) -> tuple[Float, Float]:
    hi = np.empty((len(ratios), SIZE))
    lo = np.empty_like(hi)
    for i, row in enumerate(ratios):
        for j, (numerator, denominator) in enumerate(row):
            hi[i, j] = numerator / denominator
            a, b = float(hi[i, j]).as_integer_ratio()
            lo[i, j] = (numerator * b - a * denominator) / (denominator * b)
    return hi, lo
