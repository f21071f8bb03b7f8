"""Fits of smooth functions on dyadic panels.

Everything here uses IEEE additions, multiplications and divisions in a fixed order and no
linear-algebra library: the tables, and with them every sample, are the same bits on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import cos, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]
PanelArguments = tuple[Float, int, int]

ROW = 12
DEGREE = 10
# Chebyshev points of the first kind, shortened so that center + half * point is exact.
_SHORT = 2**30


def chebyshev_points(degree: int) -> tuple[float, ...]:
    """The points of interpolation by polynomials of a degree."""
    count = degree + 1
    return tuple(
        round(-cos(pi * (2 * k + 1) / (2 * count)) * _SHORT) / _SHORT for k in range(count)
    )


POINTS = chebyshev_points(DEGREE)
# Where a fit is checked: between the interpolation points, where the error is largest.
CHECKS = (-0.9912109375, -0.5, 0.1416015625, 0.9912109375)


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
def _interpolation(degree: int) -> tuple[Float, Float]:
    """Matrix from values at `chebyshev_points` to monomial coefficients, as hi + lo.

    Exact arithmetic in integers, in units of the points' last bit, then two roundings: Python
    rounds a quotient of integers once. With the products also accumulated in pairs, the
    coefficients carry only the errors of the values, which interpolation amplifies by at most 2.5.
    """
    nodes = [int(point * _SHORT) for point in chebyshev_points(degree)]
    hi = np.empty((degree + 1, degree + 1))
    lo = np.empty_like(hi)
    for k, node in enumerate(nodes):
        basis, divisor = [1], 1
        for other in nodes:
            if other != node:
                basis = [a - other * b for a, b in zip([0, *basis], [*basis, 0], strict=True)]
                divisor *= node - other
        for power, coefficient in enumerate(basis):
            dividend = coefficient * _SHORT**power
            hi[power, k] = dividend / divisor
            above, below = float(hi[power, k]).as_integer_ratio()
            lo[power, k] = (dividend * below - above * divisor) / (divisor * below)
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
    rows, error = fit_rows(function, centers, halves, check=tolerance is not None)
    bad = ~(error <= (tolerance or 0.0))
    if bad.any():
        raise FitError(f"the law is not smooth enough near {float(centers[bad][0])!r}")
    return rows, layout.first_exponent, layout.bits


def fit_rows(
    function: Callable[[Float], dd.Pair], centers: Float, halves: Float, *, check: bool = True
) -> tuple[Float, Float]:
    """Polynomials on intervals: their rows, and the largest error of each between the interpolation
    points, relative to ``max(1, |value|)``; 0 if they are not checked."""
    places = POINTS + CHECKS if check else POINTS
    # One call for everything: many laws cost more by the call than by the point.
    points = centers[:, None] + halves[:, None] * np.array(places)
    hi, lo = function(points.reshape(-1))
    hi, lo = hi.reshape(points.shape), lo.reshape(points.shape)
    size = DEGREE + 1
    found_hi, found_lo = coefficients((hi[:, :size], lo[:, :size]))
    rows = np.zeros((centers.size, ROW))
    rows[:, 0], rows[:, 1] = found_hi[:, 0], found_lo[:, 0]
    rows[:, 2:] = found_hi[:, 1:] + found_lo[:, 1:]
    if not check:
        return rows, np.zeros_like(centers)
    return rows, _errors(rows, (hi[:, size:], lo[:, size:]))


def coefficients(values: dd.Pair) -> dd.Pair:
    """Monomial coefficients from values at `chebyshev_points`, for each row of values.

    The constant is the value in the middle, so the number of points must be odd.
    """
    hi, lo = values
    degree = hi.shape[1] - 1
    middle_hi, middle_lo = hi[:, degree // 2, None], lo[:, degree // 2, None]
    matrix_hi, matrix_lo = _interpolation(degree)
    differences = dd.add((hi, lo), (-middle_hi, -middle_lo))
    total = (np.zeros((hi.shape[0], degree)), np.zeros((hi.shape[0], degree)))
    for k in range(degree + 1):
        difference = (differences[0][:, k, None], differences[1][:, k, None])
        entry = (matrix_hi[1:, k], matrix_lo[1:, k])
        total = dd.add(total, dd.multiply(difference, entry))
    constant = dd.quick_two_sum(middle_hi, middle_lo)
    return tuple(np.concatenate(both, axis=1) for both in zip(constant, total, strict=True))  # type: ignore[return-value]


def _errors(rows: Float, values: dd.Pair) -> Float:
    hi, lo = values
    u = np.array(CHECKS)
    total = np.broadcast_to(rows[:, ROW - 1, None], hi.shape)
    for power in range(DEGREE - 1, 0, -1):
        total = total * u + rows[:, power + 1, None]
    error = np.abs(((rows[:, 0, None] - hi) + (rows[:, 1, None] - lo)) + total * u)
    return np.asarray((error / np.maximum(1.0, np.abs(hi))).max(axis=1))
