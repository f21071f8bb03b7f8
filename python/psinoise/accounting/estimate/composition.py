"""A composition of steps in one direction, and the saddle point of its contour integral.

With ``K(c) = sum_i n_i log phi_i(c)`` the exponent ``K(c) - c eps - log c - log(c + 1)`` is convex
in ``c > 0``. Its minimizer satisfies ``K'(c) = eps + 1/c + 1/(c + 1)``, which is read in both
directions: given epsilon it is an equation for ``c``; given delta it makes epsilon an explicit
function of ``c``, and the saddle-point estimate of ``log delta`` a decreasing one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.loss.measure import LossMeasure
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import ORDER, nodes
from psinoise.accounting.loss.steps import Pairs
from psinoise.errors import CertificationError

# Float64 cannot hold a delta below exp(-745.2).
LEAST_LOG_DELTA = -746.0
_MOST_ITERATIONS = 200
# Any c > 0 gives the same integral; a hundredth of a standard deviation from the saddle is close.
_SADDLE_TOLERANCE = 1e-2
# Keeps c^2, 1/c^2 and their products with any loss inside float64.
_LARGEST_LOG_C = 200.0
_LONGEST_STEP = 3.0
_MOST_NODES = 2**20
_MOST_REFINEMENTS = 8
_MOST_SADDLES = 16
# Of sums and products of a few numbers, relative.
_SUM_ROUNDING = 2.0**-50
_LARGER_TILTS = (2.0, 1.5, 1.25, 1.1, 1.05)
_ALIAS = 45.0


class NotConvergedError(CertificationError):
    """A contour integral does not converge, or would take very long, or nodes miss some mass."""


@dataclass(frozen=True)
class Saddle:
    """A point ``c`` of the real axis and the cumulants of the composition there.

    The rows of ``parts`` are those of one use of each step.
    """

    c: float
    parts: Float
    value: float
    mean: float
    variance: float

    @property
    def values(self) -> list[float]:
        """``K(c)`` of one use of each step."""
        values: list[float] = self.parts[:, 0].tolist()
        return values

    @property
    def curvature(self) -> float:
        """Second derivative of the exponent."""
        return self.variance + 1.0 / self.c**2 + 1.0 / (self.c + 1.0) ** 2

    @property
    def offset(self) -> float:
        """``K'(c) - eps`` where ``c`` is the saddle point of ``eps``."""
        return 1.0 / self.c + 1.0 / (self.c + 1.0)

    @property
    def epsilon(self) -> float:
        """The epsilon whose saddle point is ``c``."""
        return self.mean - self.offset

    @property
    def saturated(self) -> bool:
        """Whether epsilon is the largest loss to double precision."""
        return self.offset <= 2.0**-54 * abs(self.mean)

    @property
    def log_delta(self) -> float:
        """Saddle-point estimate of log delta at ``epsilon``; within about 10 % of delta."""
        exponent = (self.value - self.c * self.mean) + self.c * self.offset
        prefactor = math.log(self.c) + math.log1p(self.c)
        return exponent - prefactor - 0.5 * math.log(2.0 * math.pi * self.curvature)

    def log_chernoff(self, epsilon: float) -> float:
        """Upper bound on log delta at any epsilon: that of the order ``c + 1`` (``renyi``)."""
        exponent = self.value - self.c * epsilon
        return exponent - self.c * math.log1p(1.0 / self.c) - math.log1p(self.c)


@dataclass(frozen=True, eq=False)
class Composition:
    """``n_i`` uses of each step ``i``, all in the same direction."""

    measures: tuple[LossMeasure, ...]
    counts: tuple[float, ...]
    _known: dict[float, Saddle] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    @kept()
    def of(steps: Pairs, direction: Direction, reach: float) -> Composition:
        """All steps in one direction, from nodes that reach that far.

        Raises `NotConvergedError` if outputs do not resolve the noise of a step, of which nodes
        leave out some mass then.
        """
        measures = tuple(LossMeasure(nodes(pair, reach), direction) for pair, _ in steps)
        for measure in measures:
            if measure.nodes.narrow.size:
                raise NotConvergedError(
                    f"outputs do not resolve the noise of {measure.nodes.pair!r}: its sensitivity "
                    "is too large beside it for anything but certified bounds"
                )
        return Composition(measures, tuple(float(count) for _, count in steps))

    def saddle(self, c: float) -> Saddle:
        """The composition at ``c``; the last few are kept, since searches begin alike."""
        found = self._known.get(c)
        if found is None:
            parts = [measure.cumulants(c) for measure in self.measures]
            totals = (
                math.fsum(n * part[k] for part, n in zip(parts, self.counts, strict=True))
                for k in range(3)
            )
            found = Saddle(c, np.array(parts).reshape(-1, 3), *totals)
            # Another thread may do the same: nothing is read back.
            if len(self._known) >= _MOST_SADDLES:
                self._known.clear()
            self._known[c] = found
        return found

    def each(self, saddle: Saddle) -> Iterable[tuple[LossMeasure, float, list[float]]]:
        """Each measure, the number of its uses, and ``K``, ``K'`` and ``K''`` of one use."""
        return zip(self.measures, self.counts, saddle.parts.tolist(), strict=True)

    def saddle_at_delta(self, log_delta: float) -> Saddle:
        """Saddle point of the epsilon of about this log delta, or a saturated one.

        The slope of the estimate in ``log c`` is ``-c^2 curvature`` up to the prefactor's share.
        """

        def newton(saddle: Saddle) -> float:
            return _miss(-saddle.log_delta, -log_delta) / (saddle.c**2 * saddle.curvature)

        start = self.tilt_of(math.sqrt(2.0 * max(-log_delta, 0.0)) + 1.0)
        return self.search(start, newton, lambda at, step: _close(at, step) or at.saturated)

    def saddle_at_epsilon(self, epsilon: float) -> Saddle:
        """The same for an epsilon, or a point whose Chernoff bound is below any float64."""

        def newton(saddle: Saddle) -> float:
            return _miss(saddle.epsilon, epsilon) / (saddle.c * saddle.curvature)

        def done(saddle: Saddle, step: float) -> bool:
            return _close(saddle, step) or saddle.log_chernoff(epsilon) < LEAST_LOG_DELTA

        tiny = self.saddle(1e-8)
        # Of noise that is wide enough the variance is below float64.
        deviation = math.sqrt(tiny.variance)
        excess = (epsilon - tiny.mean) / deviation if deviation else 0.0
        start = self.tilt_of(max(excess, -1.0) + 1.5)
        return self.search(start, newton, done)

    def alias_distance(self, saddle: Saddle, epsilon: float, enough: float) -> float:
        """A distance ``D`` above epsilon beyond which the tilted loss weighs less than ``e^-45``.

        The log of Chernoff's bound at a tilt ``b > c`` is ``K(b) - K(c) - (b - c)(eps + D)``. Below
        ``enough`` no smaller distance is looked for.
        """
        best = math.inf
        for factor in _LARGER_TILTS:
            more = (factor - 1.0) * saddle.c
            gain = self.saddle(factor * saddle.c).value - saddle.value
            best = min(best, (gain + _ALIAS) / more - epsilon)
            if best <= enough:
                break
        return best

    def tilt_of(self, count: float) -> float:
        """The tilt that moves the mean by ``count`` untilted standard deviations, at a guess."""
        return min(max(count, 0.1) / math.sqrt(self.saddle(1e-8).variance + 1e-300), 1e6)

    def search(
        self,
        start: float,
        newton: Callable[[Saddle], float],
        done: Callable[[Saddle, float], bool],
    ) -> Saddle:
        """Safeguarded Newton in ``log c``; the sign of ``newton``'s step is always right."""
        low, high = -_LARGEST_LOG_C, _LARGEST_LOG_C
        position = math.log(start)
        for _ in range(_MOST_ITERATIONS):
            saddle = self.saddle(math.exp(position))
            step = newton(saddle)
            if done(saddle, step):
                break
            if step > 0.0:
                low = position
            else:
                high = position
            position += min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
            if not low < position < high:
                position = 0.5 * (low + high)
        for measure in self.measures:
            measure.forget_mass()
        return saddle

    def resolved(
        self, saddle: Saddle, frequency: float, *, ends: bool = False
    ) -> tuple[Composition, Saddle] | None:
        """A composition whose panels resolve ``exp((c + i t) L)`` for ``|t| <= frequency``.

        And next to their ``ends``, where that is asked for. With ``c`` there; itself if its panels
        do, and None if that takes more than 2^20 nodes. Each refinement shows what coarser panels
        could not: with a large tilt the mass may lie between their nodes.
        """
        composition = self
        for _ in range(_MOST_REFINEMENTS):
            finer = composition._refined(saddle, frequency, ends)
            if finer is None:
                return None
            if finer is composition:
                break
            composition = finer
        return composition, saddle if composition is self else composition.saddle(saddle.c)

    def _refined(self, saddle: Saddle, frequency: float, ends: bool) -> Composition | None:
        parts = [(measure, value) for measure, _, (value, _, _) in self.each(saddle)]
        pieces = [measure.pieces(saddle.c, value, frequency) for measure, value in parts]
        if ends:
            more = [measure.pieces_for_ends(saddle.c, value) for measure, value in parts]
            pieces = [np.maximum(*both) for both in zip(pieces, more, strict=True)]
        cut = [place for place, cuts in enumerate(pieces) if cuts.max(initial=1) > 1]
        if not cut:
            return self
        if max(float(pieces[k].sum(dtype=float)) for k in cut) * ORDER > _MOST_NODES:
            return None
        measures = list(self.measures)
        for k in cut:
            measures[k] = measures[k].split(pieces[k])
        return Composition(tuple(measures), self.counts)

    def stays_below(self, epsilon: float, log_delta: float, known: float) -> bool:
        """Whether Chernoff's bound shows that log delta at ``epsilon`` is below ``log_delta``."""
        # Far from epsilon any tilt will do, and one is known.
        if self.certain_chernoff(epsilon, known) < log_delta:
            return True
        return self.certain_chernoff(epsilon, self.saddle_at_epsilon(epsilon).c) < log_delta

    def certain_chernoff(self, epsilon: float, c: float) -> float:
        """Chernoff's bound on log delta at ``epsilon`` by a tilt, with the error of ``K``.

        The mass that the quadrature leaves out, ``e^{-38}`` of delta (`quadrature.reach_for`), is
        within the rounding of the result.
        """
        saddle = self.saddle(c)
        error = math.fsum(n * part.doubt(c, value) for part, n, (value, _, _) in self.each(saddle))
        size = 1.0 + saddle.value + c * (abs(epsilon) + 1.0)
        return saddle.log_chernoff(epsilon) + error + _SUM_ROUNDING * size


def _miss(value: float, target: float) -> float:
    """How much a value that rises with ``log c`` should rise, to first order.

    Above its target it may fall as an exponential function does: that of its logarithm.
    """
    if not value > target > 0.0:
        return target - value
    share = target / value
    # Next to the least float64 it underflows.
    return value * (math.log(share) if share > 0.0 else math.log(target) - math.log(value))


def _close(saddle: Saddle, step: float) -> bool:
    """Whether a step in ``log c`` is small: ``1/(c sqrt(curvature))`` is a standard deviation."""
    return abs(step) * saddle.c * math.sqrt(saddle.curvature) < _SADDLE_TOLERANCE
