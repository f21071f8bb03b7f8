"""The profile of an epoch of random allocation, read from two sums of ratios."""

from __future__ import annotations

import math

import numpy as np

from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.measure import UNIT
from psinoise.accounting.compose.schemes.ratios import Ratios, span_of
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.errors import CertificationError

# Products of nodes and epsilons that are looked at together, and the largest exponent there.
_LARGEST_BLOCK = 1 << 18
_LARGEST_EPSILON = 650.0
# Relative error of all masses, at most.
_MOST_ROUNDING = 0.5


class _Excess:
    """``E (z - c)^+`` over some nodes, from sums that are kept."""

    def __init__(self, nodes: Ratios) -> None:
        self._value = nodes.value
        self._total = np.append(np.cumsum(nodes.mass[::-1])[::-1], 0.0)
        # Over the nodes from each on: the sum of mass times the distance from the first of them.
        gaps = np.append(np.diff(nodes.value), 0.0) * self._total[1:]
        self._over = np.append(np.cumsum(gaps[::-1])[::-1], 0.0)
        self._ends = np.append(nodes.value, np.inf)

    def __call__(self, at: Float) -> Float:
        place = np.searchsorted(self._value, at, side="right")
        first = np.where(place < self._value.size, self._ends[place] - at, 0.0)
        return np.asarray(self._over[place] + self._total[place] * first)


class AllocationBound(Bound):
    """The bound on delta of an epoch, from the two sums of ratios that make it.

    It is one on the finite losses: where under *add* every step gave an output that it cannot give
    with the record, which has probability ``unseen``, the loss is infinite.

    Raises
    ------
    CertificationError
        if masses have no digits
    """

    composer = "direct"
    between = 0.375

    def __init__(
        self, first: Ratios, second: Ratios, direction: Direction, steps: int, unseen: float
    ) -> None:
        self.first, self.second, self.direction, self.steps = first, second, direction, steps
        self.side = first.side
        # Values are a constant times those of e^epsilon, or of e^-epsilon.
        self._forth = 1.0 if direction == "remove" else -1.0
        sizes = first.value.size + second.value.size
        self._rounding = first.rounding + second.rounding + 4.0 * UNIT * (sizes + 16)
        if not self._rounding < _MOST_ROUNDING:
            raise CertificationError("the masses of the likelihood ratios are not known")
        self._infinite = max(first.infinite, second.infinite) * (1.0 + 1e-8)
        if direction == "add":
            # From above more may count as such.
            self._infinite += max(first.zero * second.zero - unseen, 0.0)
        self._offset, self._weight = first.all_nodes
        self._rest, self._alone = _Excess(second), _Excess(first)
        high = span_of(first, second)[1]
        self.largest = abs(math.log(self._forth * high / steps)) + 1e-12

    def crossing_value(self, epsilon: float) -> float:
        """The sum of ratios at which an outcome begins to add to delta."""
        size = math.exp(self._forth * min(epsilon, _LARGEST_EPSILON))
        return self._forth * self.steps * size

    def log_deltas(self, epsilons: Float) -> Float:
        sign = self.sign
        # Delta falls: what holds at a smaller epsilon is a bound from above, and 0 is from below.
        asked = np.minimum(epsilons, _LARGEST_EPSILON)
        at_value = self._forth * self.steps * np.exp(self._forth * asked)
        found = np.empty(epsilons.size)
        rows = max(_LARGEST_BLOCK // self._offset.size, 1)
        for start in range(0, epsilons.size, rows):
            at = at_value[start : start + rows, None]
            room = sign * 8.0 * UNIT * (np.abs(at) + np.abs(self._offset))
            seen = self._rest(at - self._offset - room) @ self._weight
            alone = self._alone(at - sign * 8.0 * UNIT * np.abs(at))[:, 0]
            found[start : start + rows] = seen + self.second.zero * alone
        share = self._rounding + 16.0 * UNIT
        if self.side == "upper":
            # What underflows in products is as little for each node.
            found = (found + 5e-324 * self._offset.size) / (1.0 - share)
        else:
            found = np.maximum(found * (1.0 - share), 0.0)
        with np.errstate(divide="ignore"):
            logs = np.log(found) - math.log(self.steps)
            if self.direction == "add":
                logs += asked
            size = np.where(found > 0.0, np.abs(logs), 0.0)
            logs += sign * 8.0 * UNIT * (size + np.abs(asked) + math.log(self.steps) + 1.0)
            if self.side == "upper":
                logs = np.logaddexp(logs, np.log(self._infinite))
            elif self.side == "lower":
                logs[epsilons > _LARGEST_EPSILON] = -np.inf
        return np.minimum(logs, 0.0)
