"""Zolotarev's integral of the symmetric stable laws: where to put the nodes, and what comes out.

The integrands, in ``s = log y + d``, are those of ``csrc/math/stable.hpp``. Along the line
``log g`` moves by at most ``max(alpha, 1) / abs(alpha - 1)`` per unit of ``d``: ``exp(-g)`` stays
bounded for imaginary parts up to ``pi / 2`` divided by that, and ``arctan(exp(s))`` is analytic up
to ``pi / 2`` itself. With steps of a quarter of the one, and at most 0.2, the trapezoidal rule is
right to about ``exp(-2 pi (pi / 2) / 0.25) = 7e-18``.
"""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np

from psinoise._backend import core
from psinoise.noise._base import Float
from psinoise.noise._elementary import constant, logarithm_pair, minus
from psinoise.numerics import double_double as dd

__all__ = ["MINUS_LOG_PI", "Integral"]

_STEP = 0.25
_LARGEST_STEP = 0.2
# Integrands are cut where they are below this share of their largest value.
_NEGLIGIBLE = 1e-18
MINUS_LOG_PI = constant(-1.1447298858494002, -1.0265951162707826e-17)
# Results kept until they are asked for again: fits take the density and then the Mills ratio at the
# same points.
_KEPT = 12


class Integral:
    """Values of one symmetric stable law, ``alpha = 1 + above_one = 2 - below_two``, not 1 or 2.

    Serves from ``near`` to ``far``; relative errors of density and survival function a few units of
    2**-53, of the score too.
    """

    def __init__(self, alpha: float, above_one: float, below_two: float) -> None:
        self._alpha = alpha
        self._above_one = above_one
        self._below_two = below_two
        self._unit = abs(above_one) / alpha
        self._step = min(_STEP * abs(above_one) / max(alpha, 1.0), _LARGEST_STEP)
        self._kept: OrderedDict[bytes, tuple[dd.Pair, dd.Pair, Float]] = OrderedDict()

    def values(self, y: Float) -> tuple[dd.Pair, dd.Pair, Float]:
        """``log p``, ``log P(Y > y)`` and ``-(log p)'`` at ``y > 0``."""
        key = y.tobytes()
        found = self._kept.pop(key, None)
        if found is None:
            found = self._kept[key] = self._computed(y)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    def _computed(self, y: Float) -> tuple[dd.Pair, dd.Pair, Float]:
        log_y = logarithm_pair(y)
        start, count = self._window(log_y[0])
        density, survival, slope = core.stable_sums(
            self._alpha, self._above_one, self._below_two, *log_y, start, self._step, count
        )
        # alpha step / (pi |alpha - 1| y) times the first sum, step / pi times the second.
        factor = logarithm_pair(np.array([self._step / self._unit]))
        spacing = logarithm_pair(np.array([self._step]))
        log_density = dd.add(
            dd.add(logarithm_pair(density), minus(log_y)), dd.add(factor, MINUS_LOG_PI)
        )
        log_survival = dd.add(logarithm_pair(survival), dd.add(spacing, MINUS_LOG_PI))
        return log_density, log_survival, (1.0 - slope / density) / y

    def _window(self, log_y: Float) -> tuple[Float, int]:
        """First node of each point, and how many nodes all of them take.

        The integrands are looked at on a coarse grid of nodes for a coarse grid of points; a point
        in between takes what its two neighbors need together.
        """
        alpha = self._alpha
        lowest, highest = float(log_y.min()), float(log_y.max())
        cells = max(1, math.ceil((highest - lowest) / 0.35))
        places = lowest + (highest - lowest) / cells * np.arange(cells + 1.0)
        plateau = max(0.0, -float(logarithm_pair(np.array([self._below_two]))[0][0]))
        stride = 0.5 / alpha
        units = np.arange(-(4.0 / alpha + 3.0), 46.0 / alpha + 8.0 + plateau, stride) * alpha
        offsets = (self._above_one / alpha) * units
        points: Float = places.repeat(offsets.size)
        sums = core.stable_sums(
            alpha,
            self._above_one,
            self._below_two,
            points,
            0.0 * points,
            np.tile(offsets, places.size),
            0.0,
            1,
        )
        needed = np.zeros((places.size, offsets.size), dtype=bool)
        for raw in sums[:2]:
            values = np.nan_to_num(raw.reshape(needed.shape), nan=0.0, posinf=0.0)
            needed |= values > _NEGLIGIBLE * values.max(axis=1, keepdims=True)
        first = np.maximum(np.argmax(needed, axis=1) - 1, 0)
        last = offsets.size - 1 - np.maximum(np.argmax(needed[:, ::-1], axis=1) - 1, 0)
        ends = np.sort(np.stack([offsets[first], offsets[last]]), axis=0)
        width = (highest - lowest) / cells
        cell = ((log_y - lowest) / max(width, 1e-9)).astype(int)
        cell = np.minimum(cell, cells - 1)
        start = np.minimum(ends[0, cell], ends[0, cell + 1])
        stop = np.maximum(ends[1, cell], ends[1, cell + 1])
        return start, int(np.ceil((stop - start).max() / self._step)) + 1
