"""The convex program of the best unimodal law: an f-divergence, derivatives, a band matrix.

Unknown are the masses ``p_0 >= p_1 >= ... >= p_N > 0`` of cells of width ``1 / n`` around
``0, +-1 / n, ...``; beyond cell ``N`` they go on as ``p_N r, p_N r**2, ...``. The law is moved by
``n`` cells, the sensitivity, and of

    F(p) = sum over x of p(x) f(1 - q + q p(x - n) / p(x)),

with ``f`` convex and ``q`` the sampling rate, every term is the perspective of a convex function,
so that ``F`` is convex and homogeneous of degree 1. As in `psinoise.optimize.program` everything is
in terms of the relative change ``u = dp / p``: the Hessian is then the Laplacian of a graph, whose
edge between ``p(x)`` and ``p(x - n)`` has the weight ``q**2 f'' p(x - n)**2 / p(x)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise._kept import cached_property
from psinoise.optimize.cells import CellProgram, Float, dot
from psinoise.optimize.unimodal.generator import Generator, Tangent

Places = NDArray[np.intp]

__all__ = ["Float", "Places", "Program", "Values"]


class Values(NamedTuple):
    """``F``, its gradient, and the weights of the edges of its Hessian."""

    value: float
    gradient: Float
    weights: Float


@dataclass(frozen=True, eq=False)
class Program(CellProgram):
    """A grid, a sampling rate and a cost.

    Parameters
    ----------
    sampling_rate : float
        ``q``.
    """

    sampling_rate: float

    @cached_property
    def _pairs(self) -> tuple[Places, Float, Places, Float]:
        """For all ``x`` where not both laws are in one tail, and the places next to them: which
        mass the law and the moved law have, and by which factor it is less in the tail."""
        x = np.arange(-self.last + 1, self.last + self.width)
        here, moved = np.abs(x), np.abs(x - self.width)
        last, decay = self.last, np.log(self.tail_ratio)
        fall = np.exp(decay * np.maximum(here - last, 0))
        far = np.exp(decay * np.maximum(moved - last, 0))
        return np.minimum(here, last), fall, np.minimum(moved, last), far

    @cached_property
    def _ends(self) -> tuple[Float, Float]:
        """Total mass of the law where both are in the left or the right tail, per unit of the last
        mass, and the ratio there."""
        power = self.tail_ratio**self.width
        masses = np.array([1.0, power]) / (1.0 - self.tail_ratio)
        return masses, np.array([power, 1.0 / power])

    def _mixed(self, ratio: Float) -> Float:
        if self.sampling_rate == 1.0:
            return ratio  # which may be smaller than the rounding of 1
        return 1.0 + self.sampling_rate * (ratio - 1.0)

    def ratios(self, p: Float) -> tuple[Float, Float]:
        """Probabilities under the law, and the ratio of the sampled law that is moved to it."""
        here, fall, moved, far = self._pairs
        base = p[here] * fall
        masses, ratios = self._ends
        mixed = self._mixed(np.append(p[moved] * far / base, ratios))
        return np.append(base, p[-1] * masses), mixed

    def log_ratios(self, p: Float, reach: int) -> tuple[float, float]:
        """The least and the largest logarithm of a ratio, the largest up to a cell."""
        here, _, _, _ = self._pairs
        _, ratio = self.ratios(p)
        logs = np.log(ratio)
        near = logs[:-2][here <= min(reach, self.last - 1)]
        return float(logs.min()), float(near.max())

    def values(self, p: Float, generator: Generator) -> Values:
        """Everything that Newton's method needs to know."""
        here, fall, moved, far = self._pairs
        rate = self.sampling_rate
        base, ratio = self.ratios(p)
        f, slope, curvature = generator(ratio)
        masses, _ = self._ends
        size = p.size
        inner, plain = slice(None, -2), (p[moved] * far) / (p[here] * fall)
        gradient = np.bincount(here, fall * (f[inner] - rate * plain * slope[inner]), size)
        gradient += np.bincount(moved, far * rate * slope[inner], size)
        gradient[-1] += float(masses @ f[-2:])
        weights = rate**2 * curvature[inner] * plain**2 * base[inner]
        return Values(dot(base, f), np.asarray(gradient, dtype=np.float64), weights)

    def gradient_on_line(self, p: Float, tangent: Tangent) -> Float:
        """The derivative of ``F``, or of lines below it, by the mass in a place ``x = 0, 1, ...``,
        beyond the last cell too, up to where it no longer changes."""
        rate = self.sampling_rate
        x = np.arange(self.last + 2 * self.width)

        def mass(place: Places) -> Float:
            fall = np.exp(np.log(self.tail_ratio) * np.maximum(place - self.last, 0))
            return np.asarray(p[np.minimum(place, self.last)] * fall)

        own = mass(x)
        found = np.zeros(x.size)
        for other in (np.abs(x - self.width), x + self.width):
            ratio = mass(other) / own
            at_zero, slope = tangent(self._mixed(ratio))
            _, back = tangent(self._mixed(1.0 / ratio))
            found += at_zero + (1.0 - rate) * slope + rate * back
        return 0.5 * found

    def hessian_band(self, weights: Float) -> Float:
        """``diag(p) F'' diag(p)``, a band of ``n`` subdiagonals, in the reversed order of cells.

        Row ``j`` of the result is ``A[j, j], A[j + 1, j], ...`` in that order.
        """
        here, _, moved, _ = self._pairs
        size, breadth = self.costs.size, self.width + 1
        row = self.last - np.maximum(here, moved)
        offset = np.abs(here - moved)
        apart = np.where(offset > 0, weights, 0.0)
        flat = np.bincount(row * breadth + offset, -apart, size * breadth)
        band = np.asarray(flat, dtype=np.float64).reshape(size, breadth)
        diagonal = np.bincount(here, apart, size) + np.bincount(moved, apart, size)
        band[:, 0] = diagonal[::-1]
        return band
