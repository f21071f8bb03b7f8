"""Strips of equal area under a decreasing half density: twin of ``csrc/kernels/ziggurat.cpp``.

A recursion of scalars, so it is written in Python floats, which are the same IEEE doubles.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.elementary import exponential, logarithm
from psinoise.reference.law import PanelArguments, Panels, ZigguratArguments

Float = NDArray[np.float64]


def _log(x: float) -> float:
    return float(logarithm(np.array([x]))[0])


def _exp(x: float) -> float:
    return float(exponential(np.array([x]), np.zeros(1))[0])


class _ScalarPanels:
    """One panel table, evaluated at one point at a time."""

    def __init__(self, arguments: PanelArguments) -> None:
        rows, self._first, self._bits = arguments
        self._rows: list[list[float]] = rows.tolist()
        self._parts = Panels(*arguments).parts

    def _locate(self, t: float) -> tuple[list[float], float, float, float]:
        mantissa, exponent = math.frexp(t)
        exponent -= 1
        if t == 0.0 or exponent < self._first:
            inverse = 2.0 ** (1 - self._first)
            row, u = 0, t * inverse - 1.0
        else:
            inverse = 2.0 ** (1 + self._bits - exponent)
            octave = 2**self._bits
            parts = 2.0 * octave * mantissa - octave
            panel = int(parts)
            u = 2.0 * (1.0 + (parts - panel)) - 3.0
            row = octave * (exponent - self._first) + panel + 1
        whole, place, stretch = row, u, 1.0
        for panel, begin, own, center, local in self._parts:
            if whole == panel and place >= begin:
                row, u, stretch = own, (place - center) * local, local
        return self._rows[row], u, inverse, stretch

    def value(self, t: float) -> float:
        row, u, _, _ = self._locate(t)
        c = row[1:]
        v = u * u
        odd = (((c[9] * v + c[7]) * v + c[5]) * v + c[3]) * v + c[1]
        even = (((c[10] * v + c[8]) * v + c[6]) * v + c[4]) * v + c[2]
        return row[0] + ((u * odd + v * even) + row[1])

    def slope(self, t: float) -> float:
        row, u, inverse, stretch = self._locate(t)
        total = 10.0 * row[11]
        for k in range(9, 0, -1):
            total = total * u + float(k) * row[k + 1]
        return total * inverse * stretch


def _inverse(density: _ScalarPanels, log_height: float, right: float, start: float) -> float:
    low, high, t = 0.0, right, start
    for _ in range(100):
        excess = density.value(t) - log_height
        if excess >= 0.0:
            low = t
        if excess <= 0.0:
            high = t
        slope = density.slope(t)
        step = t - excess / slope if slope != 0.0 else math.nan
        if not (low < step < high):
            step = low + 0.5 * (high - low)
        if abs(step - t) <= 2.0**-30 * t or step in (low, high):
            return step
        t = step
    return t


class _Wide:
    low_bits = 32
    dtype = np.uint64

    @staticmethod
    def round_down(width: float) -> int:
        return int(struct.unpack("<Q", struct.pack("<d", width))[0])

    @staticmethod
    def width(entry: int) -> float:
        return float(struct.unpack("<d", struct.pack("<Q", entry))[0])


class _Narrow:
    low_bits = 12
    dtype = np.uint32

    @staticmethod
    def round_down(width: float) -> int:
        bits = int(struct.unpack("<Q", struct.pack("<d", width))[0])
        return (bits >> 29) - ((1023 - 127) << 23)

    @staticmethod
    def width(entry: int) -> float:
        return float(struct.unpack("<f", struct.pack("<I", entry))[0])


_Form = type[_Wide] | type[_Narrow]


def _with_threshold(form: _Form, entry: int, threshold: int) -> int:
    return (entry >> form.low_bits << form.low_bits) | threshold


def _threshold(form: _Form, inner: float, width: float) -> int:
    fractions = float(1 << form.low_bits)
    safe = min(inner / width * fractions, fractions)
    return 0 if safe < 2.0 else int(safe) - 1


def ziggurat(
    log_density: PanelArguments, log_mills: PanelArguments, edge: float, layers: int
) -> ZigguratArguments:
    """Strips for the edge of strip 0; the last heights are infinite if the edge is too small."""
    if layers not in (2048, 1024):
        raise ValueError("layers must be 2048 or 1024")
    form = _Wide if layers == 2048 else _Narrow
    density, mills = _ScalarPanels(log_density), _ScalarPanels(log_mills)
    mode = _exp(density.value(0.0))
    log_survival = density.value(edge) + mills.value(edge)
    survival = _exp(log_survival)
    entries = [0] * layers
    heights = [0.0] * (layers + 1)

    entries[0] = form.round_down(edge + survival / _exp(density.value(edge)))
    fitting = _threshold(form, edge, form.width(entries[0]))
    if entries[0] - _with_threshold(form, entries[0], 0) > fitting:
        entries[0] = _with_threshold(form, entries[0], fitting)
    base_width = form.width(entries[0])
    heights[1] = survival / (base_width - edge)
    area = base_width * heights[1]
    reach = edge
    for i in range(1, layers):
        above = _with_threshold(form, form.round_down(reach), 0) + (1 << form.low_bits)
        wanted = (1 << form.low_bits) - 1
        inner = reach
        while True:
            entries[i] = _with_threshold(form, above, wanted)
            width = form.width(entries[i])
            heights[i + 1] = heights[i] + area / width
            below = heights[i + 1] < mode
            inner = _inverse(density, _log(heights[i + 1]), reach, inner) if below else 0.0
            most = _threshold(form, inner, width)
            if wanted <= most:
                break
            wanted = most
        if heights[i + 1] >= mode:
            heights[i + 2 :] = [math.inf] * (layers - i - 1)
            break
        reach = inner
    return (
        np.array(entries, dtype=form.dtype),
        np.array(heights),
        edge,
        -log_survival - math.log(2.0),
    )
