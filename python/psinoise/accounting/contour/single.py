"""The privacy profile of a single step, from the exact level set of its loss.

``delta(eps) = integral over {L > eps} of P (1 - e^{eps - L})``. The ends of the level set are found
by root finding inside the panels of the quadrature, where the loss crosses epsilon (once for a
log-concave law, twice for one whose loss rises and falls); panels are cut there. Every term of the
sum is positive: nothing cancels, and in logs delta = 1e-300 keeps its digits.

Negative epsilon goes through ``delta(eps; P, Q) = 1 - e^eps + e^eps delta(-eps; Q, P)``, whose
level set leaves out the tails on which a heavy-tailed loss tends to 0.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.contour.solve import solve_epsilon
from psinoise.accounting.loss.cells import Dominating
from psinoise.accounting.loss.measure import LossMeasure, loss_measure
from psinoise.accounting.loss.pairs import Direction
from psinoise.accounting.loss.quadrature import ORDER, REACHES, panel_points
from psinoise.accounting.loss.steps import finite_share

Float = NDArray[np.float64]

_OPPOSITE: dict[Direction, Direction] = {"remove": "add", "add": "remove"}
# Panels with a larger range of the loss are halved towards epsilon, unless it is this far below.
_STEEP = 4.0
_FLAT = 40.0
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class _FinitePart:
    """The part of a profile that varies: solved for, it keeps the digits of a small remainder."""

    step: SingleStep

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        return self.step.finite_log_delta(epsilon)


@dataclass(frozen=True)
class SingleStep:
    """Profile of one pair in one direction, relative error of delta about 1e-13.

    For losses much smaller than 1 the error grows as ``1e-16 / loss``: that much is lost in
    ``log p(x - s) - log p(x)``.
    """

    pair: Dominating
    direction: Direction

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Log delta and its derivative in epsilon; ``-inf`` at or above the largest loss."""
        if epsilon >= 0.0:
            finite, slope = self._log_delta(epsilon)
            infinite = self.pair.infinite(self.direction)
            if infinite == 0.0:
                return finite, slope
            total = float(np.logaddexp(finite, math.log(infinite)))
            return total, slope * math.exp(finite - total)
        inner, slope = SingleStep(self.pair, _OPPOSITE[self.direction]).log_delta(-epsilon)
        opposite = math.exp(inner)
        value = -math.expm1(epsilon) + math.exp(epsilon) * opposite
        rate = math.exp(epsilon) * (opposite - 1.0)
        rate -= math.exp(epsilon) * opposite * slope if opposite else 0.0
        return math.log(value), rate / value

    def finite_log_delta(self, epsilon: float) -> tuple[float, float]:
        """The same of the finite losses alone."""
        if epsilon >= 0.0:
            return self._log_delta(epsilon)
        total, slope = self.log_delta(epsilon)
        infinite = self.pair.infinite(self.direction)
        share = -math.expm1(math.log(infinite) - total) if infinite > 0.0 else 1.0
        return (total + math.log(share), slope / share) if share > 0.0 else (-math.inf, 0.0)

    def epsilon(self, log_delta: float) -> float:
        """The epsilon >= 0 of a given log delta; 0 if delta(0) is below it already."""
        top = self.pair.largest_loss(self.direction)
        share = finite_share(((self.pair, 1),), self.direction, log_delta)
        if share is None:
            return math.inf
        if self.log_delta(0.0)[0] <= log_delta:
            return 0.0
        if share == -math.inf:
            return max(top, 0.0)
        # The loss varies by about one standard deviation of its untilted distribution.
        scale = min(
            1.0,
            loss_measure(self.pair, self.direction, REACHES[-1]).cumulants(1e-9).variance ** 0.5,
        )
        return min(max(solve_epsilon(_FinitePart(self), share, 0.0, scale), 0.0), top)

    def _log_delta(self, epsilon: float) -> tuple[float, float]:
        measure = loss_measure(self.pair, self.direction, REACHES[-1])
        if epsilon >= self.pair.largest_loss(self.direction):
            return -math.inf, 0.0
        panels = measure.nodes.left.size
        left, right = measure.edge_losses
        inner = measure.loss[: panels * ORDER].reshape(panels, ORDER)
        above = np.column_stack([left, inner, right]) > epsilon
        crossing = above.any(axis=1) & ~above.all(axis=1)
        atoms_above = measure.loss[panels * ORDER :] > epsilon
        # 1 - e^{eps - L} varies on the scale of 1 just above epsilon, however fast the loss rises.
        lowest = np.minimum(left, right)
        steep = above.all(axis=1) & (np.abs(right - left) > _STEEP) & (lowest < epsilon + _FLAT)
        whole = np.append(np.repeat(above[:, 0] & ~crossing & ~steep, ORDER), atoms_above)
        log_mass, loss = measure.log_mass[whole], measure.loss[whole]
        if crossing.any() or steep.any():
            lefts, rights = self._cut(measure, np.flatnonzero(crossing), epsilon)
            lefts = np.append(lefts, measure.nodes.left[steep])
            rights = np.append(rights, measure.nodes.right[steep])
            cut_mass, cut_loss = measure.on(*self._graded(measure, lefts, rights))
            log_mass = np.append(log_mass, cut_mass)
            loss = np.append(loss, cut_loss)
        gap = epsilon - loss
        inside = gap < 0.0
        if not inside.any():
            return -math.inf, 0.0
        log_mass, gap = log_mass[inside], gap[inside]
        terms = log_mass + np.log(-np.expm1(gap))
        top = float(terms.max())
        total = float(np.exp(terms - top).sum())
        return top + math.log(total), -float(np.exp(log_mass + gap - top).sum()) / total

    def _cut(
        self, measure: LossMeasure, crossing: NDArray[np.intp], epsilon: float
    ) -> tuple[Float, Float]:
        """Ends of the parts of the crossing panels on which the loss is above epsilon."""
        grid = measure.nodes
        points, _ = panel_points(grid.left[crossing], grid.right[crossing])
        points = np.column_stack([grid.left[crossing], points, grid.right[crossing]])
        lefts, rights = [], []
        for row in points:
            excess = measure.loss_at(row) - epsilon
            changes = np.flatnonzero((excess[1:] > 0.0) != (excess[:-1] > 0.0))
            roots = [self._root(measure, row[k], row[k + 1], epsilon) for k in changes]
            ends = [float(row[0]), *roots, float(row[-1])]
            inside = bool(excess[0] > 0.0)
            for low, high in itertools.pairwise(ends):
                if inside and low < high:
                    lefts.append(low)
                    rights.append(high)
                inside = not inside
        return np.array(lefts), np.array(rights)

    @staticmethod
    def _graded(measure: LossMeasure, left: Float, right: Float) -> tuple[Float, Float]:
        """Intervals halved again and again towards their end of smaller loss, where it is steep."""
        ends = measure.loss_at(left), measure.loss_at(right)
        pieces: list[tuple[float, float]] = []
        for low, high, at_low, at_high in zip(left, right, *ends, strict=True):
            halvings = max(math.ceil(math.log2(max(abs(at_high - at_low), 1.0) / _STEEP)), 0)
            cuts = np.concatenate([[0.0], 0.5 ** np.arange(halvings, -1.0, -1.0)])
            cuts = low + (high - low) * (cuts if at_low <= at_high else 1.0 - cuts[::-1])
            pieces += itertools.pairwise(cuts.tolist())
        return np.array([low for low, _ in pieces]), np.array([high for _, high in pieces])

    @staticmethod
    def _root(measure: LossMeasure, low: float, high: float, epsilon: float) -> float:
        def excess(x: float) -> float:
            return float(measure.loss_at(np.array(x))) - epsilon

        if excess(low) == 0.0:
            return low
        from scipy import optimize  # slow to import, and rarely needed

        return float(optimize.brentq(excess, low, high, xtol=1e-300, rtol=4.0 * _EPS))
