"""The losses of one use under a tilt: moments, and what a use multiplies waves by.

*Rounding.* A symbol ``E_P[e^{(c + i w) L}]`` is off by its transform (`Frame.transformed`), and
every argument ``(c + i w) L`` by some roundings of its parts, whose means count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._kept import cached_property
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

    @cached_property
    def _joined(self) -> tuple[Float, Float, NDArray[np.intp], NDArray[np.intp], Float]:
        """All losses and masses in a row; where those of each shift begin; whose they are; the
        largest losses."""
        sizes = [measure.loss.size for measure in self.measures]
        loss = np.concatenate([measure.loss for measure in self.measures])
        mass = np.concatenate([measure.mass for measure in self.measures])
        first = np.cumsum([0, *sizes[:-1]])
        owner = np.repeat(np.arange(first.size), sizes)
        return loss, mass, first, owner, np.maximum.reduceat(loss, first)

    def each(self, tilt: float) -> Float:
        """A row for each shift: ``log E_P[e^{tilt L}]``, and its first two derivatives."""
        loss, mass, first, owner, top = self._joined
        weight = mass * np.exp(tilt * (loss - top[owner]))
        total = np.add.reduceat(weight, first)
        mean = np.add.reduceat(weight * loss, first) / total
        variance = np.add.reduceat(weight * (loss - mean[owner]) ** 2, first) / total
        return np.stack([np.log(total) + tilt * top, mean, variance], axis=-1)

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Those of the largest."""
        value, mean, variance = largest(self.each(tilt))
        return float(value), float(mean), float(variance)

    def near(self, tilt: float, most: float) -> Losses:
        """Without shifts whose log moment is farther behind the largest."""
        logs = self.each(tilt)[:, 0]
        held = (logs >= logs.max() - most).tolist()
        return Losses(tuple(m for m, is_held in zip(self.measures, held, strict=True) if is_held))

    def symbols(
        self, frame: Frame, log_scale: float, most: float = math.inf
    ) -> tuple[Complex, Float]:
        """``E_P[e^{(c + i w) L}] / e^log_scale`` for each shift and frequency; their errors.

        Losses of shifts whose log moment is farther behind are moved up to where it is not.
        """
        made, error, tilt = [], np.zeros(frame.degree + 1), frame.tilt
        for measure, log_moment in zip(self.measures, self.each(tilt)[:, 0].tolist(), strict=True):
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


def largest(each: Float) -> Float:
    """The row with the largest moment."""
    return np.asarray(each[int(np.argmax(each[:, 0]))])
