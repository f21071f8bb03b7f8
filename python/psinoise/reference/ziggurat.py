"""Strips of equal area under a decreasing half density: twin of ``csrc/kernels/ziggurat.cpp``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.elementary import exponential, logarithm
from psinoise.reference.law import ZigguratArguments
from psinoise.reference.panels import PanelArguments, Panels, odd_and_even
from psinoise.reference.stream import Format, NarrowWords, WideWords


def _scalar(function: Callable[..., NDArray[np.float64]], *x: float) -> float:
    """A function of arrays at one point."""
    return float(function(*(np.array([value]) for value in x))[0])


class _Panels:
    """A panel table at one point at a time, which the recursion asks for a thousand times as often
    as arrays of one number would allow."""

    def __init__(self, arguments: PanelArguments) -> None:
        rows, self._first, self._bits = arguments
        self._rows: list[list[float]] = rows.tolist()
        self._parts = Panels(*arguments).parts

    def at(self, t: float) -> tuple[float, float]:
        """Value and derivative."""
        mantissa, exponent = math.frexp(t)
        octave = exponent - 1 - self._first
        if t < 2.0**self._first:
            row, slope = 0, 2.0 ** (1 - self._first)
            u = t * slope - 1.0
        else:
            place = (2.0 * mantissa - 1.0) * 2**self._bits
            row, slope = 1 + octave * 2**self._bits + int(place), 2.0 ** (2 + self._bits - exponent)
            u = 2.0 * (place - int(place)) - 1.0
        whole, whole_u, whole_slope = row, u, slope
        for cut, begin, own, center, stretch in self._parts:
            if whole == cut and whole_u >= begin:
                row, u, slope = own, (whole_u - center) * stretch, whole_slope * stretch
        c = self._rows[row]
        odd, even = odd_and_even(c[1:], u)
        derivative = 10.0 * c[11]
        for k in range(9, 0, -1):
            derivative = derivative * u + float(k) * c[k + 1]
        return c[0] + ((odd + even) + c[1]), derivative * slope


def _inverse(density: _Panels, log_height: float, right: float, start: float) -> float:
    low, high, t = 0.0, right, start
    for _ in range(100):
        value, slope = density.at(t)
        excess = value - log_height
        if excess >= 0.0:
            low = t
        if excess <= 0.0:
            high = t
        step = t - excess / slope if slope != 0.0 else math.nan
        if not (low < step < high):
            step = low + 0.5 * (high - low)
        if abs(step - t) <= 2.0**-30 * t or step in (low, high):
            return step
        t = step
    return t


@dataclass(frozen=True)
class _Form:
    """How a word holds a width, and a threshold in its low bits."""

    words: Format
    low_bits: int

    def round_down(self, width: float) -> int:
        bits = int(np.float64(width).view(np.uint64))
        return bits if self.words is WideWords else (bits >> 29) - ((1023 - 127) << 23)

    def width(self, entry: int) -> float:
        return float(self.words.word(entry).view(self.words.real))

    def with_threshold(self, entry: int, threshold: int) -> int:
        return (entry >> self.low_bits << self.low_bits) | threshold

    def threshold(self, inner: float, width: float) -> int:
        fractions = float(1 << self.low_bits)
        safe = min(inner / width * fractions, fractions)
        return 0 if safe < 2.0 else int(safe) - 1


_FORMS = {2048: _Form(WideWords, 32), 1024: _Form(NarrowWords, 12)}


def ziggurat(
    log_density: PanelArguments, log_mills: PanelArguments, edge: float, layers: int
) -> ZigguratArguments:
    """Strips for the edge of strip 0; the last heights are infinite if the edge is too small."""
    if layers not in _FORMS:
        raise ValueError("layers must be 2048 or 1024")
    form, density = _FORMS[layers], _Panels(log_density)
    mode = _scalar(exponential, density.at(0.0)[0], 0.0)
    log_at_edge = density.at(edge)[0]
    log_survival = log_at_edge + _Panels(log_mills).at(edge)[0]
    survival = _scalar(exponential, log_survival, 0.0)
    entries = [0] * layers
    heights = [0.0] * (layers + 1)

    entries[0] = form.round_down(edge + survival / _scalar(exponential, log_at_edge, 0.0))
    fitting = form.threshold(edge, form.width(entries[0]))
    if entries[0] - form.with_threshold(entries[0], 0) > fitting:
        entries[0] = form.with_threshold(entries[0], fitting)
    base_width = form.width(entries[0])
    heights[1] = survival / (base_width - edge)
    area = base_width * heights[1]
    reach = edge
    for i in range(1, layers):
        above = form.with_threshold(form.round_down(reach), 0) + (1 << form.low_bits)
        wanted = (1 << form.low_bits) - 1
        inner = reach
        while True:
            entries[i] = form.with_threshold(above, wanted)
            width = form.width(entries[i])
            heights[i + 1] = heights[i] + area / width
            below = heights[i + 1] < mode
            log_height = _scalar(logarithm, heights[i + 1])
            inner = _inverse(density, log_height, reach, inner) if below else 0.0
            most = form.threshold(inner, width)
            if wanted <= most:
                break
            wanted = most
        if heights[i + 1] >= mode:
            heights[i + 2 :] = [math.inf] * (layers - i - 1)
            break
        reach = inner
    return (
        np.array(entries, dtype=form.words.word),
        np.array(heights),
        edge,
        -log_survival - math.log(2.0),
    )
