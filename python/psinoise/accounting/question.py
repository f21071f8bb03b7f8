"""One question about a composition, and the one loop that answers it.

The loop takes the direction whose upper bound is the largest, asks the composers for finer bounds,
and ends when the bracket is as narrow as was asked for or nothing is left to try. What it returns
is the tightest sound bracket that was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.compose.measures.bound import Bound, ChernoffBound, delta_of
from psinoise.accounting.compose.measures.measure import SIDES, Side
from psinoise.accounting.gaussians import gaussians
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.steps import (
    MASS_ROUNDING,
    Step,
    certain_finite_loss,
    infinite_mass,
    largest_loss,
)
from psinoise.accounting.one_direction import Asked, OneDirection, Point

#: The share by which a bracket is as wide as none should be.
POOR = 0.05
# Deltas from here on are 1 but for rounding.
_ALL = 1.0 - 1e-12


def certain_delta(epsilon: float | Float, side: Side) -> Float:
    """A bound on ``1 - e^epsilon``, or 0 above an epsilon of 0.

    No delta is less: it is the largest of ``P(A) - e^epsilon Q(A)``, and for all outcomes that is
    this. ``expm1`` is right to 4 ulp, and 2**-49 is 8 of a normal number; of others it is nothing,
    but the next number is on the other side.
    """
    near = np.abs(np.expm1(np.minimum(epsilon, 0.0)))
    if side == "upper":
        return np.asarray(np.minimum(near * (1.0 + 2.0**-49), 1.0))
    return np.asarray(np.nextafter(near * (1.0 - 2.0**-49), 0.0))


@dataclass(frozen=True)
class Question(Asked):
    """What is asked; attributes as of `Asked`."""

    @cached_property
    def shorter(self) -> Question:
        """The same composition in fewer steps, if possible; estimates need no fewer."""
        steps = None if self.estimating else gaussians(self.steps)
        return self if steps is None else replace(self, steps=steps, kept={})

    @cached_property
    def below(self) -> Question | None:
        """What bounds the profile from below, if that is something else: what is attained."""
        return self._of([step.attained for step, _ in self.steps])

    @cached_property
    def above(self) -> Question | None:
        """What bounds the profile from above where bounds on all of it are wide."""
        return self._of([step.revealed for step, _ in self.steps])

    def _of(self, others: Sequence[Step | None]) -> Question | None:
        """The same of others in the place of the steps, or of nothing; None if these are they."""
        kept: dict[Step, int] = {}
        for found, (_, count) in zip(others, self.steps, strict=True):
            if found is not None:
                kept[found] = kept.get(found, 0) + count
        steps = tuple(kept.items())
        return None if steps == self.steps else replace(self, steps=steps, kept={})

    def epsilon(self, delta: float) -> Bracket:
        """Bounds on epsilon at ``delta``."""
        return self._between(self.shorter._epsilon(delta), lambda other: other.epsilon(delta))

    def _between(self, found: Bracket, ask: Callable[[Question], Bracket]) -> Bracket:
        """A bracket with the ends of what is known from below, and from above where it is wide."""
        if self.below is not None:
            found = Bracket.holding(
                ask(self.below).lower, found.estimate, found.upper, found.composer
            )
        poor = found.upper == math.inf or found.lower < (1.0 - POOR) * found.upper
        if not poor or self.above is None or not (known := ask(self.above)).upper < found.upper:
            return found
        return Bracket.holding(found.lower, found.estimate, known.upper, known.composer)

    def _epsilon(self, delta: float) -> Bracket:
        """The same, taking what is known from above for what is known from below."""
        if delta >= 1.0 or not self.steps:
            return Bracket(0.0, 0.0, 0.0)
        if delta == 0.0:
            top = max(largest_loss(self.steps, direction) for direction in self.directions)
            least = max(certain_finite_loss(self.steps, direction) for direction in self.directions)
            if any(infinite_mass(self.steps, direction) > 0.0 for direction in self.directions):
                least = math.inf
            return Bracket.holding(max(least, 0.0), top, top)
        if self.at_most <= delta:
            return Bracket(0.0, 0.0, 0.0)
        with np.errstate(under="ignore"):
            return self._answer(self._parts(Point(math.log(delta))))

    def delta(self, epsilon: float) -> Bracket:
        """Bounds on delta at ``epsilon``."""
        return self._between(self.shorter._delta(epsilon), lambda other: other.delta(epsilon))

    def _delta(self, epsilon: float) -> Bracket:
        lower, upper = (float(certain_delta(epsilon, side)) for side in SIDES)
        estimate = abs(math.expm1(min(epsilon, 0.0)))
        # Delta is between this and 1, which is the same but for rounding from about -34 down.
        if not self.steps or upper == 1.0:
            return Bracket.holding(lower, estimate, upper)
        mass = max(infinite_mass(self.steps, direction) for direction in self.directions)
        if (mass := mass * (1.0 - MASS_ROUNDING)) >= _ALL:
            return Bracket.holding(mass, 1.0, 1.0)
        with np.errstate(under="ignore"):
            parts = self._parts(Point(None, epsilon))
            found = self._answer(parts)
        for part in parts:
            mass = infinite_mass(self.steps, part.direction)
            low = float(delta_of(part.lower, "lower"))
            high = float(delta_of(part.upper, "upper"))
            # No loss says more than the largest.
            top = self.largest_loss(part.direction)
            high = min(high, -math.expm1(min(epsilon - top, 0.0)) * (1.0 + 2.0**-50))
            lower = max(lower, low + mass * (1.0 - MASS_ROUNDING))
            upper = max(upper, high + mass * (1.0 + MASS_ROUNDING))
        estimate = max(estimate, math.exp(found.estimate))
        lower, upper = min(lower, 1.0), min(upper, 1.0)
        if epsilon >= 0.0:
            # Delta falls, and deltas at 0 add up: sharp where losses are lost in their rounding.
            upper = max(min(upper, self.at_most), lower)
        return Bracket.holding(lower, estimate, upper, found.composer)

    def _parts(self, point: Point) -> list[OneDirection]:
        """All directions, with what epsilon or log delta is certainly between."""
        ends = (-math.inf, 0.0) if point.log_delta is None else (0.0, math.inf)
        return [OneDirection(self, direction, point, *ends) for direction in self.directions]

    def bounds_at(
        self, direction: Direction, epsilon: float, ceiling: float
    ) -> tuple[list[Bound], ChernoffBound | None]:
        """Bounds on the profile of one direction, as sharp at an epsilon as is asked for.

        Less sharp where delta is below the ceiling. A line comes besides where masses underflow.
        """
        part = OneDirection(self, direction, Point(None, epsilon), -math.inf, 0.0)
        part.begin()
        while not part.done and part.total(part.upper) > ceiling and self._is_wide(part):
            part.sharpen()
        return list(part.found.values()), part.line

    def _answer(self, parts: list[OneDirection]) -> Bracket:
        """The loop: finer bounds where the bracket is widest, until it is narrow enough."""
        for part in parts:
            part.begin()
        if self.estimating:
            converged = self._estimated(parts)
            if converged is not None:
                return Bracket(converged, converged, converged, "contour")
        while True:
            dominant = max(parts, key=lambda part: (part.total(part.lower), _ahead(part)))
            if not dominant.done and self._is_wide(dominant):
                dominant.ceiling = -math.inf
                dominant.sharpen()
                continue
            # The others matter as far as their upper bounds are larger.
            ceiling = max(dominant.total(dominant.upper), self._enough(dominant))
            others = [p for p in parts if not p.done and p.total(p.upper) > ceiling]
            if not others:
                break
            other = max(others, key=lambda part: part.total(part.upper))
            if other.rounds is None and other.stays_below(dominant.upper):
                other.upper, other.done = dominant.upper, True
            else:
                other.ceiling = other.finite(ceiling)
                other.sharpen()
        for part in parts:
            part.keep()
        lower = dominant.total(dominant.lower)
        upper = max(part.total(part.upper) for part in parts)
        finite = math.isfinite(lower) and math.isfinite(upper)
        estimate = lower + dominant.between * (upper - lower) if finite else upper
        meant = max(part.meant for part in parts)
        if meant >= upper:
            upper = estimate = meant
        return Bracket.holding(lower, estimate, upper, dominant.composer)

    @staticmethod
    def _estimated(parts: list[OneDirection]) -> float | None:
        """The largest value by contour integrals, where those of all directions converge."""
        found = max((part.total(part.lower) for part in parts if part.done), default=-math.inf)
        for part in sorted((part for part in parts if not part.done), key=_ahead, reverse=True):
            if part.stays_below(found):
                continue
            converged = part.converged()
            if converged is None:
                return None
            found = max(found, part.total(converged))
        return found

    def _is_wide(self, dominant: OneDirection) -> bool:
        return dominant.total(dominant.upper) > self._enough(dominant)

    def _enough(self, dominant: OneDirection) -> float:
        """Where the upper end of the leading direction is close enough to the lower one."""
        lower, upper = dominant.lower, dominant.upper
        if self.uses == 1.0:
            return dominant.total(lower)  # nothing is composed: only rounding keeps them apart
        if dominant.point.log_delta is None:
            width = float(self.widths.log_at(dominant.point.epsilon, dominant.tilt))
            if self.tolerance is not None:
                return dominant.total(lower + width)  # in units of epsilon
            return dominant.total(lower) + width
        return lower + (self.widths.at(upper, dominant.tilt) if upper < math.inf else 0.0)


def _ahead(part: OneDirection) -> float:
    if part.guess is None:
        return 0.0
    given = part.point.log_delta is None
    return part.total(part.guess.log_delta) if given else part.guess.epsilon
