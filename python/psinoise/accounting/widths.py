"""How wide a bracket may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psinoise.accounting.loss.pairs import Float

__all__ = ["DEFAULT_WIDTH", "Widths"]

#: Default width of a bracket, as a share of epsilon.
DEFAULT_WIDTH = 1e-4
# An estimate that no contour gives lies between bounds this close, as a share of epsilon.
_ESTIMATE_WIDTH = 1e-6
# Of epsilon it is a share of no less than this part of the distance over which delta falls by e.
_LEAST_PART = 1e-3
# One of log delta is as wide as this changes it, but 1 to so many such shares.
_MOST_LOG_WIDTHS = 10.0
# Brackets of log delta need not be narrower.
_LEAST_LOG_WIDTH = 1e-9


@dataclass(frozen=True)
class Widths:
    """What is asked for: a width in units of epsilon, or (None) the default one."""

    tolerance: float | None
    estimating: bool

    def at(self, epsilon: float, slope: float) -> float:
        """Of a bracket of epsilon: a share of it, or of what changes delta by much."""
        if self.tolerance is not None:
            return self.tolerance
        return self._share * max(abs(epsilon), _LEAST_PART / slope)

    def log_at(self, epsilon: Float | float, slope: Float | float) -> Float:
        """Of one of log delta: what a share of epsilon changes, within limits."""
        if self.tolerance is not None:
            return np.maximum(np.multiply(slope, self.tolerance), _LEAST_LOG_WIDTH)
        times = np.clip(np.multiply(slope, np.abs(epsilon)), 1.0, _MOST_LOG_WIDTHS)
        return np.asarray(self._share * times)

    @property
    def _share(self) -> float:
        return _ESTIMATE_WIDTH if self.estimating else DEFAULT_WIDTH
