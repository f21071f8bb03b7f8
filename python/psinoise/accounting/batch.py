"""The measures of many distinct steps at once: one pass over all nodes instead of one for each."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.measure import (
    LARGEST_EXPONENT,
    Cumulants,
    LossMeasure,
    expectations,
    panel_pieces,
)
from psinoise.accounting.pairs import Float
from psinoise.accounting.quadrature import ORDER

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Several measures, whose nodes lie end to end."""

    measures: tuple[LossMeasure, ...]

    @functools.cached_property
    def _starts(self) -> Index:
        sizes = [measure.loss.size for measure in self.measures]
        return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

    @functools.cached_property
    def _sizes(self) -> Index:
        return np.array([measure.loss.size for measure in self.measures])

    @functools.cached_property
    def _log_mass(self) -> Float:
        return np.concatenate([measure.log_mass for measure in self.measures])

    @functools.cached_property
    def _loss(self) -> Float:
        return np.concatenate([measure.loss for measure in self.measures])

    @functools.cached_property
    def _mass(self) -> Float:
        return np.exp(self._log_mass)

    @functools.cached_property
    def _drift(self) -> Float:
        lost = np.array([measure.lost[1] - measure.lost[0] for measure in self.measures])
        mirrored = expectations(self._log_mass, self._mass, self._loss, -1.0)[0]
        return np.asarray(self._sums(mirrored) + lost)

    def _sums(self, terms: Float) -> Float:
        return np.asarray(np.add.reduceat(terms, self._starts))

    def cumulants(self, c: float) -> tuple[Cumulants, ...]:
        """Those of each measure at a real ``c > 0``, as :meth:`LossMeasure.cumulants`."""
        top = np.maximum.reduceat(self._log_mass + c * self._loss, self._starts)
        with np.errstate(over="ignore", invalid="ignore"):
            second, first, tilted = expectations(self._log_mass, self._mass, self._loss, c)
            lost = np.array([measure.lost[0] for measure in self.measures])
            excess = self._sums(second) + c * self._drift - lost
            mean = (self._sums(first) + self._drift) / (1.0 + excess)
            deviation = self._loss - np.repeat(mean, self._sizes)
            variance = self._sums(tilted * deviation**2) / (1.0 + excess)
        near = (top <= LARGEST_EXPONENT) & (excess >= -0.5)
        values = zip(self.measures, near, excess, mean, variance, strict=True)
        return tuple(
            Cumulants(float(np.log1p(e)), float(m), float(v)) if ok else measure.cumulants(c)
            for measure, ok, e, m, v in values
        )

    def pieces(self, c: float, values: Float, frequency: float) -> list[Index]:
        """Those of each measure, as :meth:`LossMeasure.pieces`; ``values`` are the ``K_i(c)``."""
        panels = np.array([measure.panels for measure in self.measures])
        rows = [
            (measure.log_mass[: n * ORDER], measure.loss[: n * ORDER])
            for measure, n in zip(self.measures, panels, strict=True)
        ]
        log_mass, loss = (
            np.concatenate([row[k] for row in rows]).reshape(-1, ORDER) for k in range(2)
        )
        tilted = log_mass + (c * loss - np.repeat(values, panels)[:, None])
        return np.split(panel_pieces(tilted, loss, frequency), np.cumsum(panels)[:-1])
