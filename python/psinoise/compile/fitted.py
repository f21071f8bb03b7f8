"""A law as its own tables give it: for quantiles of laws whose formulas are costly."""

from __future__ import annotations

import math

import numpy as np

from psinoise._backend import core
from psinoise.compile.panels import Float, Layout, PanelArguments, fit
from psinoise.numerics import double_double as dd
from psinoise.numerics.gauss_legendre import NODES, WEIGHTS

_NODES = np.array(NODES)
# More than the mass that the central quantile is asked for.
_HALF_OF_HALF = 0.2505
# Exponent of the first panel, for laws whose own first panel is not below.
_FIRST = -6


class Fitted:
    """Density and Mills ratio from their panels, right to a few ulp of the logarithms."""

    def __init__(
        self, layout: Layout, density: PanelArguments, mills: PanelArguments, tolerance: float
    ) -> None:
        self.layout = layout
        self._tolerance = tolerance
        self._density = density
        self._mills = mills

    def log_density(self, t: Float) -> dd.Pair:
        """``log p(t)``."""
        return core.panel_values(*self._density, t), np.zeros_like(t)

    def log_mills(self, t: Float) -> Float:
        """``log(P(X > t) / p(t))``."""
        return core.panel_values(*self._mills, t)

    def _mass(self, left: Float, right: Float) -> Float:
        """``P(left < X < right)`` inside a panel, where the rule of order 20 is exact."""
        half = 0.5 * (right - left)
        nodes = (left + half) + half * _NODES[:, None]
        total = np.zeros_like(left)
        for weight, values in zip(WEIGHTS, self._values(nodes), strict=True):
            total = total + weight * values
        return total * half

    def _values(self, t: Float) -> Float:
        log_density = core.panel_values(*self._density, np.ascontiguousarray(t.reshape(-1)))
        return core.exponential(log_density, np.zeros_like(log_density)).reshape(t.shape)

    def central_quantile(self) -> PanelArguments:
        """``t / v`` as a function of ``v = 1/2 - P(X > t)``.

        Masses of whole panels, added up from the center, and a part of one. The first panel of the
        quantile ends near the mass of the first panel of the density.
        """
        centers, halves = self.layout.centers()
        edges = np.concatenate([[0.0], centers + halves])
        masses = self._mass(edges[:-1], edges[1:])
        below = _sums(masses)
        last = int(np.searchsorted(below, _HALF_OF_HALF))
        below, edges = below[: last + 1], edges[: last + 1]

        def ratio(v: Float) -> dd.Pair:
            panel = np.minimum(np.searchsorted(below, v, side="right") - 1, last - 1)
            left, start = edges[panel], below[panel]
            t = left + (edges[panel + 1] - left) * ((v - start) / masses[panel])
            for _ in range(6):
                t = t + ((v - start) - self._mass(left, t)) / self._values(t)
            # One more step, kept as a low part.
            rest = ((v - start) - self._mass(left, t)) / self._values(t)
            hi, lo = dd.divide(t, v)
            return hi, lo + rest / v

        first = min(_FIRST, math.frexp(masses[0])[1] - 1)
        return fit(ratio, Layout(first, -2 - first), tolerance=self._tolerance)


def _sums(values: Float) -> Float:
    """Compensated sums of 0, 1, 2, ... of the values."""
    out = [0.0]
    total = carry = 0.0
    for value in values.tolist():
        whole = total + value
        part = whole - total
        carry += (total - (whole - part)) + (value - part)
        total = whole
        out.append(total + carry)
    return np.array(out)
