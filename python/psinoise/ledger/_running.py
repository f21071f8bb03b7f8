"""Both bounds on what was charged, kept from charge to charge: many different mechanisms.

`psinoise.accounting.compose.growing` has a composition to which a step is added in the same time
however many there are. At the budget's epsilon an upper bound on delta that is at most the budget's
proves that a charge fits, and a lower bound above it that it does not; between the two, which are
some 1e-5 of epsilon apart, it is for others to say.

Steps whose two directions mirror each other are counted once. With the first step that is otherwise
both directions are kept, beginning with what was common so far.
"""

from __future__ import annotations

import math
from dataclasses import replace

from psinoise.accounting.compose.growing import Growing, Point
from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.steps import Step
from psinoise.errors import CertificationError
from psinoise.ledger._charge import Charge
from psinoise.ledger._gaussian import largest_parameter

__all__ = ["Running"]

# Steps that wait until an answer needs them, or more of them wait: a ledger that is far from its
# budget, or has few steps, never needs them.
_WAITING = 8

_Bounds = dict[Direction, tuple[Growing, Growing]]


class Running:
    """What was charged so far, and whether more of it is within the budget.

    Parameters
    ----------
    epsilon, delta
        of the budget, both positive
    adjacency
        of the ledger
    """

    def __init__(self, epsilon: float, delta: float, adjacency: str) -> None:
        self._adjacency, self._log_delta = adjacency, math.log(delta)
        parameter = largest_parameter(epsilon, delta)
        upper, lower = (
            Growing.of(Point(epsilon, self._log_delta, parameter, "remove", side))
            for side in ("upper", "lower")
        )
        self._bounds: _Bounds | None = {"remove": (upper, lower)}
        self._waiting: dict[Step, int] = {}

    def enter(self, charge: Charge) -> None:
        """Count a charge."""
        if self._bounds is None:
            return
        for step, uses in self._steps(charge):
            self._waiting[step] = self._waiting.get(step, 0) + uses
        while len(self._waiting) > _WAITING:
            self._take_in(next(iter(self._waiting)))

    def fits(self, charge: Charge) -> bool | None:
        """Whether a charge is within the budget, with all others; None where it is not known."""
        while self._waiting:
            self._take_in(next(iter(self._waiting)))
        if self._bounds is None:
            return None
        bounds = self._bounds
        try:
            for step, uses in self._steps(charge):
                bounds = _with(bounds, step, uses)
        except CertificationError:
            return None
        if all(upper.log_delta <= self._log_delta for upper, _ in bounds.values()):
            return True
        beyond = any(lower.log_delta > self._log_delta for _, lower in bounds.values())
        return False if beyond else None

    def _steps(self, charge: Charge) -> list[tuple[Step, int]]:
        steps = charge.mechanism.sampled(charge.sampling_rate, None, self._adjacency)
        return [(step, uses * charge.count) for step, uses in steps if charge.count]

    def _take_in(self, step: Step) -> None:
        uses = self._waiting.pop(step)
        if self._bounds is not None:
            try:
                self._bounds = _with(self._bounds, step, uses)
            except CertificationError:
                self._bounds = None


def _with(bounds: _Bounds, step: Step, uses: int) -> _Bounds:
    if not isinstance(step, Pair | AtomPair):
        raise CertificationError("the step is known by bounds on its loss alone")
    if not step.symmetric and "add" not in bounds:
        turned = tuple(
            replace(found, point=replace(found.point, direction="add"))
            for found in bounds["remove"]
        )
        bounds = {**bounds, "add": (turned[0], turned[1])}
    return {way: _both(pair, step, uses) for way, pair in bounds.items()}


def _both(bounds: tuple[Growing, Growing], step: Dominating, uses: int) -> tuple[Growing, Growing]:
    upper, lower = bounds
    return upper.plus(step, uses), lower.plus(step, uses)
