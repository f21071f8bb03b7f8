"""Piecewise polynomials: twin of ``math/panels.hpp`` and ``kernels/close_ratios.hpp``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]
PanelArguments = tuple[Float, int, int]

_ROW = 12
# As in ``csrc/kernels/quadrature.cpp``.
_DEEPEST, _SPARE = 1000.0, 16.0


@dataclass(frozen=True)
class Panels:
    """Piecewise polynomials on dyadic panels; see ``csrc/math/panels.hpp``."""

    rows: Float
    first_exponent: int
    bits: int

    def __post_init__(self) -> None:
        if not 3 <= self.bits <= 8:
            raise ValueError("an octave must have 8 to 256 panels")
        count, width = self.panels, self.rows.shape[1]
        if width != _ROW or count < 2 or (count - 1) % (1 << self.bits):
            raise ValueError("rows must have shape (1 + 2**bits exponents, 12)")

    @cached_property
    def panels(self) -> int:
        """Rows that are panels: parts come after them, two rows each, the second ends in NaN."""
        count: int = self.rows.shape[0]
        while count > 2 and np.isnan(self.rows[count - 1, -1]):
            count -= 2
        return count

    @cached_property
    def parts(self) -> list[tuple[int, float, int, float, float]]:
        """The panel of a part, the position from which it serves, its own row, its center, and one
        over its half width."""
        found = self.rows[self.panels + 1 :: 2, :5].tolist()
        return [(int(panel), u, int(own), *local) for panel, u, own, *local in found]

    @property
    def limit(self) -> float:
        """Right end of the last panel."""
        return float(2.0 ** (self.first_exponent + ((self.panels - 1) >> self.bits)))

    def _locate(self, t: Float, correction: Float | None) -> dd.Pair:
        """The row of ``t``, and the position ``u`` of ``t + correction`` there."""
        mantissa, exponent = np.frexp(t)
        octave = exponent - 1 - self.first_exponent
        central = t < 2.0**self.first_exponent
        place = (2.0 * mantissa - 1.0) * 2**self.bits
        panel = place.astype(np.int64)
        row = np.where(central, 0, 1 + octave * 2**self.bits + panel)
        slope = np.ldexp(1.0, np.where(central, 0, self.bits - octave) + 1 - self.first_exponent)
        u = np.where(central, t * slope - 1.0, 2.0 * (place - panel) - 1.0)
        if correction is not None:
            u = u + correction * slope
        whole, whole_u = row, u
        for cut, begin, own, center, stretch in self.parts:
            here = (whole == cut) & (whole_u >= begin)
            row = np.where(here, own, row)
            u = np.where(here, (whole_u - center) * stretch, u)
        return np.moveaxis(self.rows[row], -1, 0), u

    def pair(self, t: Float, correction: Float | None = None) -> dd.Pair:
        """Value at ``t + correction`` as ``hi + lo``; ``t`` must lie in ``[0, limit)``."""
        row, u = self._locate(t, correction)
        odd, even = odd_and_even(row[1:], u)
        return dd.two_sum(row[0], (odd + even) + row[1])

    @cached_property
    def _pieces(self) -> tuple[Float, Float, Float, Float]:
        """Panels without parts, and parts, from left to right: where each begins, its center, one
        over its half width, and its row."""
        # Panel 0 is as wide as all of the first octave.
        octave = np.append(self.bits, np.arange(self.panels - 1) >> self.bits)
        half = np.ldexp(1.0, self.first_exponent - 1 + octave - self.bits)
        left = np.concatenate([[0.0], np.cumsum(2.0 * half)[:-1]])
        owners = {panel for panel, *_ in self.parts}
        whole = [(panel, -1.0, panel, 0.0, 1.0) for panel in range(self.panels)]
        parts = sorted([part for part in whole if part[0] not in owners] + self.parts)
        panel, begin, own, center, stretch = (np.array(field) for field in zip(*parts, strict=True))
        begin, center = (
            left[panel] + (place + 1.0) * half[panel] for place in (np.maximum(begin, -1.0), center)
        )
        return begin, center, stretch / half[panel], np.moveaxis(self.rows[own], -1, 0)

    @cached_property
    def slope_error(self) -> float:
        """How far slopes of a log density may be off, from their steps where panels meet."""
        begin, center, inverse, row = self._pieces
        kept = np.logical_and.accumulate(row[0] >= row[0, 0] - _DEEPEST)
        first, last = (
            (inverse * _divided_difference(row, u, u))[kept]
            for u in ((x - center) * inverse for x in (begin, np.append(begin[1:], self.limit)))
        )
        steps = np.abs(first[1:] - last[:-1])
        largest = max(np.abs(first).max(), np.abs(last).max())
        return float(_SPARE * (steps.max(initial=0.0) + 2.0**-50 * largest))

    def rise(self, t: Float, rise: Float) -> Float:
        """``f(t + rise) - f(t)`` for short rises; NaN where one of both is beyond the panels."""
        begin, center, inverse, row = self._pieces
        ends, piece = np.append(begin[1:], self.limit), np.searchsorted(begin, t, side="right") - 1
        pending = t < self.limit
        total = np.where(pending, 0.0, np.nan)
        while pending.any():
            step = np.minimum(rise, ends[piece] - t)
            u, wide = (t - center[piece]) * inverse[piece], step * inverse[piece]
            part = wide * _divided_difference(row[:, piece], u, u + wide)
            total = np.where(pending, total + part, total)
            t, rise = ends[piece], rise - step
            pending &= rise > 0.0
            total = np.where(pending & (t == self.limit), np.nan, total)
            pending &= t < self.limit
            piece = np.minimum(piece + 1, begin.size - 1)
        return total

    def value(self, t: Float, correction: Float | None = None) -> Float:
        """Value at ``t + correction``."""
        return self.pair(t, correction)[0]


def odd_and_even(c: Any, u: Any) -> tuple[Any, Any]:
    """The odd powers of ``sum c[k] u**k``, k < 11, and the even ones from the square on."""
    v = u * u
    odd = (((c[9] * v + c[7]) * v + c[5]) * v + c[3]) * v + c[1]
    even = (((c[10] * v + c[8]) * v + c[6]) * v + c[4]) * v + c[2]
    return u * odd, v * even


def _divided_difference(row: Any, u: Float, v: Float) -> Float:
    """``(f(v) - f(u)) / (v - u)`` of the polynomial of a row."""
    partial = total = row[11]
    for k in range(10, 1, -1):
        partial = row[k] + u * partial
        total = total * v + partial
    return np.asarray(total)
