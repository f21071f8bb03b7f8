"""The losses of one use under a tilt: moments, and what a use multiplies waves by.

*Rounding.* A symbol ``E_P[e^{(c + i w) L}]`` is off by its transform (`Frame.transformed`), and
every argument ``(c + i w) L`` by some roundings of its parts, whose means count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psinoise.accounting.compose.choices.waves import Complex, Frame
from psinoise.accounting.compose.measures.measure import UNIT, Measure
from psinoise.accounting.loss.pairs import Float


@dataclass(frozen=True, eq=False)
class Losses:
    """One use of each of several shifts: the losses on one side, and their masses."""

    measures: tuple[Measure, ...]

    @property
    def infinite(self) -> float:
        return max(measure.infinite for measure in self.measures)

    @property
    def rounding(self) -> float:
        return max(measure.rounding for measure in self.measures)

    @property
    def slack(self) -> float:
        return max(measure.slack for measure in self.measures)

    def each(self, tilt: float) -> list[tuple[float, float, float]]:
        """Of each shift ``log E_P[e^{tilt L}]``, and its first two derivatives."""
        found = []
        for measure in self.measures:
            top = float(measure.loss.max())
            weight = measure.mass * np.exp(tilt * (measure.loss - top))
            total = float(weight.sum())
            mean = float(weight @ measure.loss) / total
            variance = float(weight @ (measure.loss - mean) ** 2) / total
            found.append((math.log(total) + tilt * top, mean, variance))
        return found

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Those of the largest."""
        return max(self.each(tilt))

    def near(self, tilt: float, most: float) -> Losses:
        """Without shifts whose log moment is farther behind the largest."""
        logs = np.array([found[0] for found in self.each(tilt)])
        held = (logs >= logs.max() - most).tolist()
        return Losses(tuple(m for m, is_held in zip(self.measures, held, strict=True) if is_held))

    def symbols(
        self, frame: Frame, log_scale: float, most: float = math.inf
    ) -> tuple[Complex, Float]:
        """``E_P[e^{(c + i w) L}] / e^log_scale`` for each shift and frequency; their errors.

        Losses of shifts whose log moment is farther behind are moved up to where it is not.
        """
        made, error, tilt = [], np.zeros(frame.degree + 1), frame.tilt
        for measure, (log_moment, *_) in zip(self.measures, self.each(tilt), strict=True):
            loss, behind = measure.loss, log_scale - log_moment
            moved = max(behind - most, 0.0) / tilt
            weight = measure.mass * np.exp(tilt * loss - log_moment)
            sums, rounding = frame.transformed(loss, weight)
            size = float(weight @ np.abs(loss))
            logs = tilt * size + abs(log_moment) + abs(log_scale)
            rounding = rounding + 4.0 * UNIT * (logs + frame.waves * (size + moved))
            scaled = math.exp(-min(behind, most))
            made.append(sums * (scaled * np.exp(1j * moved * frame.waves)))
            error = np.maximum(error, scaled * rounding)
        return np.array(made), error
