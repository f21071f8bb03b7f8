"""The profile that two measures make together, read without binning their product."""

from __future__ import annotations

import math

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.bound import Bound
from psinoise.accounting.compose.measure import UNIT, Measure
from psinoise.accounting.loss.pairs import Float

# Products of nodes and epsilons that are looked at together.
_LARGEST_BLOCK = 1 << 18


class DirectBound(Bound):
    """The bound on delta that two measures of one side make together, or one alone.

    Nothing is binned: for every node of the first the nodes of the second that lie above the rest
    of epsilon are summed, from sums that are kept.
    """

    composer = "direct"
    between = 0.375

    def __init__(self, first: Measure, second: Measure | None) -> None:
        self.first, self.second = first, second
        self.side = first.side
        both = [first] if second is None else [first, second]
        self.infinite = math.fsum(m.infinite for m in both)
        self.slack = math.fsum(m.slack for m in both)
        self._offset = np.zeros(1) if second is None else first.loss
        self._weight = np.ones(1) if second is None else first.mass
        last = both[-1]
        self._loss = last.loss
        total, excess = core.suffix_sums(last.loss, last.mass)
        self._total, self._excess = np.append(total, 0.0), np.append(excess, 0.0)
        self._ends = np.append(last.loss, np.inf)
        sizes = sum(m.loss.size for m in both)
        self.rounding = math.fsum(m.rounding for m in both) + 4.0 * UNIT * (sizes + 16)
        self.largest = math.fsum(m.span[1] for m in both)

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound at some epsilons, what was moved to infinity included.

        With ``d`` the distance of the first node above, ``1 - e^{-(x + d)}`` is
        ``(1 - e^{-d}) + e^{-d} (1 - e^{-x})``: all terms are positive, however small the losses.
        """
        sign = self.sign
        found = np.empty(epsilons.size)
        rows = max(_LARGEST_BLOCK // self._offset.size, 1)
        for start in range(0, epsilons.size, rows):
            at = epsilons[start : start + rows, None] - sign * self.slack
            place = np.searchsorted(self._loss, at - self._offset, side="right")
            above = -np.maximum(self._ends[place] + (self._offset - at), 0.0)
            seen = self._excess[place] * np.exp(above) - self._total[place] * np.expm1(above)
            value = (seen @ self._weight) * (1.0 + sign * self.rounding)
            found[start : start + rows] = np.maximum(value, 0.0) + self.infinite
        with np.errstate(divide="ignore"):
            return np.log(np.minimum(found, 1.0))
