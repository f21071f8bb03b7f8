"""Both bounds on what was charged, kept from charge to charge: many different mechanisms.

`psinoise.accounting.compose.frequencies.growing` has a composition to which a step is added in the
same time however many there are. At the budget's epsilon an upper bound on delta that is at most
the budget's proves that a charge fits, and a lower bound above it that it does not. Between the two
neither is proven; to compose everything anew would not prove more where the upper bound is as sharp
as the accountant's are, and otherwise it is for others to say. The lower bound takes up to a step
of the lattice from atoms that lie apart (Laplace noise on a grid of its sensitivity has two): some
thousandths of epsilon in all for a thousand of them.

Steps whose two directions mirror each other are counted once. With the first step that is otherwise
both directions are kept, beginning with what was common so far.
"""

from __future__ import annotations

import math
from dataclasses import replace

from psinoise.accounting.compose.frequencies.growing import Growing, Point
from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.steps import Step
from psinoise.accounting.widths import DEFAULT_WIDTH
from psinoise.errors import BudgetError, CertificationError
from psinoise.ledger._charge import Charge
from psinoise.ledger._gaussian import largest_parameter

__all__ = ["Running"]

# Steps that wait until an answer needs them, or more of them wait: a ledger that is far from its
# budget, or has few steps, never needs them.
_WAITING = 8
# Of the logs of both bounds on delta: farther apart the tilt has missed.
_CLOSE = 1.0

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
        self._adjacency, self._epsilon, self._log_delta = adjacency, epsilon, math.log(delta)
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

    def fits(self, charge: Charge, budget: str) -> bool:
        """Whether a charge is certified to be within the budget; if not, others may know better.

        Raises
        ------
        BudgetError
            If it is certified to be beyond.
        CertificationError
            If it is neither, and the bounds are as sharp as others.
        """
        while self._waiting:
            self._take_in(next(iter(self._waiting)))
        if self._bounds is None:
            return False
        bounds = self._bounds
        try:
            for step, uses in self._steps(charge):
                bounds = _with(bounds, step, uses)
        except CertificationError:
            return False
        upper = max(upper.log_delta for upper, _ in bounds.values())
        if upper <= self._log_delta:
            return True
        lower = max(lower.log_delta for _, lower in bounds.values())
        if lower > self._log_delta:
            raise BudgetError(f"this would exceed {budget}")
        bias = bounds["remove"][0].bias
        if bias <= DEFAULT_WIDTH * self._epsilon and upper - lower < _CLOSE:
            raise CertificationError(
                f"this could not be certified to be within {budget}: delta there is at least "
                f"{math.exp(lower)!r} and at most {math.exp(upper)!r}"
            )
        return False

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
    return {direction: _both(pair, step, uses) for direction, pair in bounds.items()}


def _both(bounds: tuple[Growing, Growing], step: Dominating, uses: int) -> tuple[Growing, Growing]:
    upper, lower = bounds
    return upper.plus(step, uses), lower.plus(step, uses)
