"""Fits of smooth functions on dyadic panels.

Everything here uses IEEE additions, multiplications and divisions in a fixed order and no
linear-algebra library: the tables, and with them every sample, are the same bits on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import cos, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.reference import double_double as dd

Float = NDArray[np.float64]

PanelArguments = tuple[Float, int, int]

ROW = 12
DEGREE = 10
# Chebyshev points of the first kind, shortened so that center + half * point is exact.
_SHORT = 2**30
POINTS = tuple(
    round(-cos(pi * (2 * k + 1) / (2 * DEGREE + 2)) * _SHORT) / _SHORT for k in range(DEGREE + 1)
)
_MIDDLE = DEGREE // 2
# Where a fit is checked: between the interpolation points, where the error is largest.
_CHECKS = (-0.9912109375, -0.5, 0.1416015625, 0.9912109375)


class FitError(RuntimeError):
    """A law is not smooth enough for its panels."""


class Layout(NamedTuple):
    """Panel 0 is ``[0, 2**first_exponent)``; then ``2**bits`` panels for each of the exponents."""

    first_exponent: int
    exponents: int
    bits: int = 3

    @property
    def limit(self) -> float:
        """Right end of the last panel."""
        return float(2.0 ** (self.first_exponent + self.exponents))

    def centers(self) -> tuple[Float, Float]:
        """Centers and half widths of all panels."""
        first = 2.0**self.first_exponent
        panels = 2**self.bits
        octave = np.arange(self.exponents).repeat(panels)
        part = np.tile(np.arange(panels), self.exponents)
        scale = np.ldexp(first, octave)
        centers = np.concatenate([[0.5 * first], scale * (1.0 + (part + 0.5) / panels)])
        halves = np.concatenate([[0.5 * first], scale / (2.0 * panels)])
        return centers, halves


@cache
def _interpolation() -> tuple[Float, Float]:
    """Matrix from values at ``POINTS`` to monomial coefficients, as hi + lo.

    Exact rational arithmetic, then two roundings. With the products also accumulated in pairs, the
    coefficients carry only the errors of the values, which interpolation amplifies by at most 2.5.
    """
    nodes = [Fraction(point) for point in POINTS]
    hi = np.empty((DEGREE + 1, DEGREE + 1))
    lo = np.empty_like(hi)
    for k, node in enumerate(nodes):
        basis = [Fraction(1)]
        for other in nodes:
            if other != node:
                shifted = [Fraction(0), *basis]
                scaled = [c * other for c in basis] + [Fraction(0)]
                basis = [(a - b) / (node - other) for a, b in zip(shifted, scaled, strict=True)]
        for power, coefficient in enumerate(basis):
            hi[power, k] = float(coefficient)
            lo[power, k] = float(coefficient - Fraction(hi[power, k]))
    return hi, lo


def fit(
    function: Callable[[Float], dd.Pair], layout: Layout, *, tolerance: float | None
) -> PanelArguments:
    """Fit ``function``, which returns pairs, on the panels of a layout.

    Parameters
    ----------
    function : callable
        Takes points (1-d float64) and returns values as ``hi + lo``.
    layout : Layout
        The panels.
    tolerance : float or None
        Largest error allowed between the interpolation points, relative to ``max(1, |value|)``.
        ``None`` skips the check, for functions that are exact polynomials or checked elsewhere.

    Returns
    -------
    rows : float64 array of shape ``(1 + 2**bits * exponents, 12)``
    first_exponent, bits : int

    Raises
    ------
    FitError
        If the check fails: the function has a singularity too near to a panel.
    """
    centers, halves = layout.centers()
    points = centers[:, None] + halves[:, None] * np.array(POINTS)
    hi, lo = function(points.reshape(-1))
    hi, lo = hi.reshape(points.shape), lo.reshape(points.shape)
    middle_hi, middle_lo = hi[:, _MIDDLE], lo[:, _MIDDLE]
    matrix_hi, matrix_lo = _interpolation()
    rows = np.zeros((centers.size, ROW))
    rows[:, 0], rows[:, 1] = dd.quick_two_sum(middle_hi, middle_lo)
    differences = [
        dd.add((hi[:, k], lo[:, k]), (-middle_hi, -middle_lo)) for k in range(DEGREE + 1)
    ]
    zero = np.zeros(centers.size)
    for power in range(1, DEGREE + 1):
        total = (zero, zero)
        for k, difference in enumerate(differences):
            entry = (
                np.full(centers.size, matrix_hi[power, k]),
                np.full(centers.size, matrix_lo[power, k]),
            )
            total = dd.add(total, dd.multiply(difference, entry))
        rows[:, power + 1] = total[0] + total[1]
    if tolerance is not None:
        _check(function, rows, centers, halves, tolerance)
    return rows, layout.first_exponent, layout.bits


def _check(
    function: Callable[[Float], dd.Pair],
    rows: Float,
    centers: Float,
    halves: Float,
    tolerance: float,
) -> None:
    for u in _CHECKS:
        t = centers + halves * u
        hi, lo = function(t)
        total = rows[:, ROW - 1]
        for power in range(DEGREE - 1, 0, -1):
            total = total * u + rows[:, power + 1]
        error = np.abs(((rows[:, 0] - hi) + (rows[:, 1] - lo)) + total * u)
        bad = ~(error <= tolerance * np.maximum(1.0, np.abs(hi)))
        if bad.any():
            where = float(t[bad][0])
            raise FitError(f"the law is not smooth enough near {where!r}")
