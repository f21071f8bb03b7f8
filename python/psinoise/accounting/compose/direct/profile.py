"""The profile that two measures make together, read without binning their product."""

from __future__ import annotations

import math

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.dense import BETWEEN_SAMPLES, Dense, Mask
from psinoise.accounting.compose.measures.measure import MASS_UNDERFLOW, UNIT, Measure
from psinoise.accounting.loss.pairs import Float

# Steps towards the root of a cubic, in what is at most so far in epsilon.
_NEWTON, _FARTHEST = 6, 700.0


class DirectBound(Bound):
    """The bound on delta that two measures of one side make together, or one alone.

    Nothing is binned: for every node of the first the nodes of the second that lie above the rest
    of epsilon are summed, from sums that are kept.
    """

    composer = "direct"
    between = 0.375
    same = 1e-14

    def __init__(self, first: Measure, second: Measure | None) -> None:
        both = [first] if second is None else [first, second]
        self.first, self.second = first, second
        self.side = first.side
        self.infinite = math.fsum(m.infinite for m in both)
        self.slack = math.fsum(m.slack for m in both)
        self._offset, self._weight = np.zeros(1), np.ones(1)
        if second is not None:
            self._offset, self._weight = first.loss, first.mass
        self._loss = both[-1].loss
        self._total, self._excess = core.suffix_sums(self._loss, both[-1].mass)
        sizes = sum(m.loss.size for m in both)
        self.rounding = math.fsum(m.rounding for m in both) + 4.0 * UNIT * (sizes + 16)
        if self.side == "middle":  # no bound: it says where to look for one
            self.rounding = 0.0
        # From above it is in what is infinite.
        self._lost = MASS_UNDERFLOW if self.side == "lower" else 0.0
        self.largest = math.fsum(m.span[1] for m in both)

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound, what was moved to infinity included."""
        sums = (self._loss, self._total, self._excess, self._offset, self._weight)
        seen = core.excess_above(*sums, epsilons - self.sign * self.slack)
        value = seen * (1.0 + self.sign * self.rounding)
        found = np.maximum(value - self._lost, 0.0) + self.infinite
        with np.errstate(divide="ignore"):
            return np.log(np.minimum(found, 1.0))


class SampledBound(DirectBound):
    """The profile of one use by the quadrature itself: no bound, but where to look for one.

    Integrals of the polynomials through the nodes give the masses between samples, and so the
    profile and its slope at the samples, where the loss is monotone.
    """

    def __init__(self, source: Dense, chosen: Mask) -> None:
        rows, atoms = np.flatnonzero(chosen[: source.panels]), chosen[source.panels :]
        ends, weight = source.loss[rows], np.exp(source.log_weights[rows])
        low, high = np.minimum(ends[:, 1:], ends[:, :-1]), np.maximum(ends[:, 1:], ends[:, :-1])
        least = source.lowest[rows, None]
        mass = np.maximum(weight @ BETWEEN_SAMPLES, 0.0)
        atom_loss, atom_log_mass = source.atom_loss[atoms], source.log_mass[source.panels :][atoms]
        # Where masses are none, or overflow, means are at an end.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            other = (weight * np.exp(least - ends[:, 1:-1])) @ BETWEEN_SAMPLES
            mean = np.fmin(np.fmax(least + np.log(mass / other), low), high)
        loss = np.concatenate([low, atom_loss, mean], axis=None)
        mass = np.concatenate([np.zeros(low.size), np.exp(atom_log_mass), mass], axis=None)
        order = np.argsort(loss, kind="stable")
        loss, mass = loss[order], mass[order]
        super().__init__(Measure("lower", loss, loss, mass, 0.0, 0.0, 0.0), None)
        self._samples = np.flatnonzero(order < low.size + atom_loss.size)

    def epsilon(self, log_delta: float, around: float, scale: float) -> float:
        """About where delta is: on the cubic in e^epsilon between two samples."""
        del around, scale
        delta = math.exp(log_delta)
        after = int(np.searchsorted(-self._excess[self._samples], -delta))
        if after in (0, self._samples.size):
            nearest = self._samples[0 if after == 0 else -1]
            return max(float(self._loss[nearest]), 0.0)
        first, last = (int(k) for k in self._samples[after - 1 : after + 1])
        width = math.expm1(min(float(self._loss[last] - self._loss[first]), _FARTHEST))
        fall, missing = (float(self._excess[k]) for k in (first, last))
        fall, missing = fall - missing, fall - delta
        # An atom at the first sample is passed.
        start = float(self._total[first] - self._excess[first] - self.first.mass[first]) * width
        end = float(self._total[last] - self._excess[last]) * width / (1.0 + width)
        a, b = start + end - 2.0 * fall, 3.0 * fall - 2.0 * start - end
        share = missing / fall if fall > 0.0 else 0.0
        for _ in range(_NEWTON):
            slope = (3.0 * a * share + 2.0 * b) * share + start
            if not slope > 0.0:
                break
            value = ((a * share + b) * share + start) * share - missing
            share = min(max(share - value / slope, 0.0), 1.0)
        return max(float(self._loss[first]) + math.log1p(width * share), 0.0)
