"""A budget for mechanisms that were chosen without looking at what was released.

What is proven is the composition of everything charged, as a plan that was fixed in advance. Four
proofs are tried, the quick ones first:

1. sums that are kept: of Renyi divergences, of largest losses, and of the squares of parameters of
   Gaussian differential privacy, sharp for Gaussian noise (`psinoise.ledger._spending`);
2. a larger plan that is known to be within the budget: a part of it is, too, since what is left out
   can be left out of the results (post-processing);
3. both bounds on a composition that is kept from charge to charge, for more than a few different
   mechanisms (`psinoise.ledger._running`), which also prove that a charge does not fit;
4. certified composition (`psinoise.Accountant`). Where the same charge comes again and again it is
   asked about more of them than there are, twice as many each time, for the second proof to know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from psinoise.accounting import Accountant
from psinoise.accounting.accountant import is_within
from psinoise.errors import BudgetError, CertificationError
from psinoise.ledger._charge import Charge
from psinoise.ledger._running import Running
from psinoise.ledger._spending import Limits, Sums, best_order
from psinoise.mechanisms import LatticeMechanism, Mechanism
from psinoise.numerics.rational import rounded

__all__ = ["Plan", "spent_by"]

# Orders around the best one, in both directions: powers of two times it.
_BELOW, _ABOVE = 4, 6
# Certified composition is quick for so many different steps.
_FEW = 2
# Of more than so many it takes seconds, and is not asked if it would not know better.
_MANY = 16
# Beyond this many charges at once nothing is asked for in advance.
_MOST_AHEAD = 1 << 20

# What charges of one kind have in common: the mechanism, and the rate of sampling.
_Kind = tuple[Mechanism | LatticeMechanism, float]


def spent_by(
    uses: Iterable[tuple[Mechanism | LatticeMechanism, float, int]], delta: float, adjacency: str
) -> float:
    """A certified upper bound on epsilon of mechanisms, each at a rate and so often; ``inf`` of
    more uses than an accountant counts."""
    accountant = Accountant(adjacency)
    try:
        for mechanism, rate, count in uses:
            accountant.compose(mechanism, count, rate)
    except OverflowError:
        return math.inf
    return accountant.epsilon(delta).upper


class Plan:
    """What was charged so far, and whether more of it fits."""

    def __init__(self, epsilon: float, delta: float, adjacency: str) -> None:
        self._epsilon, self._delta, self._adjacency = epsilon, delta, adjacency
        orders: tuple[int, ...] = ()
        if delta > 0.0:
            best = best_order(epsilon, delta)
            around = (best * 2.0**power for power in range(-_BELOW, _ABOVE + 1))
            orders = tuple(sorted({max(2, round(order)) for order in around}))
        # One proof is enough, and which one does not depend on what was released.
        self._limits = Limits.of(epsilon, orders, (delta,) * len(orders), delta)
        self._sums = Sums.none(orders)
        self._counts: dict[_Kind, int] = {}
        self._proven: dict[_Kind, int] = {}
        self._running = Running(epsilon, delta, adjacency) if delta > 0.0 else None
        self._ahead = 0
        self._last: _Kind | None = None
        self._spent: float | None = 0.0
        self._at_most = 0.0

    def enter(self, charge: Charge) -> None:
        """Count a charge, whether it fits or not."""
        self._at_most = self._basic(charge)
        self._sums = self._sums.plus(charge, self._adjacency)
        self._counts = self._with(charge)
        if self._running is not None:
            self._running.enter(charge)
        self._spent = None

    def check(self, charge: Charge) -> None:
        """Refuse a charge that does not fit.

        A BudgetError says that all together is certified to be beyond the budget, a
        CertificationError that it is certified to be neither within nor beyond it.
        """
        if self._sums.plus(charge, self._adjacency).within(self._limits):
            return
        wanted = self._with(charge)
        if all(count <= self._proven.get(key, 0) for key, count in wanted.items()):
            return
        budget = f"the budget of epsilon {self._epsilon!r} at delta {self._delta!r}"
        if self._running is not None and len(wanted) > _FEW:
            try:
                if self._running.fits(charge, budget):
                    return
            except CertificationError:
                if len(wanted) > _MANY:
                    raise
        if self._certified(charge):
            return
        if math.isfinite(self.spent) and self._basic(charge) <= self._epsilon:
            return
        try:
            found = self._accountant(wanted).epsilon(self._delta)
        except CertificationError as error:
            raise CertificationError(
                f"this could not be certified to be within {budget}: {error}", error.bracket
            ) from error
        if found.lower > self._epsilon:
            raise BudgetError(f"this would exceed {budget}")
        raise CertificationError(
            f"this could not be certified to be within {budget}: epsilon is at least "
            f"{found.lower!r} and at most {found.upper!r}",
            found,
        )

    def _basic(self, charge: Charge) -> float:
        """What is spent so far, if that is known, and the largest loss: basic composition."""
        loss = Sums.none(()).plus(charge, self._adjacency)
        most = loss.worst()[1]
        if loss.leak > 0.0 or self._spent is None or not math.isfinite(self._spent + most):
            return math.inf
        return rounded(Fraction(self._spent) + Fraction(most), up=True)

    @property
    def spent(self) -> float:
        """A certified upper bound on epsilon at the budget's delta."""
        if self._spent is None:
            uses = ((*kind, count) for kind, count in self._counts.items())
            self._spent = min(spent_by(uses, self._delta, self._adjacency), self._at_most)
        return self._spent

    @property
    def remaining(self) -> float:
        """Epsilon of any mechanism without delta that is sure to fit."""
        if not self.spent < self._epsilon:
            return 0.0
        return rounded(Fraction(self._epsilon) - Fraction(self.spent), up=False)

    def _certified(self, charge: Charge) -> bool:
        """Whether a certified composition proves it; remembers what was proven."""
        kind = charge.mechanism, charge.sampling_rate
        ahead, self._last = (self._ahead if kind == self._last else 0), kind
        while True:
            more = replace(charge, count=charge.count * (1 + ahead))
            asked = self._with(more)
            if is_within(self._accountant(asked), self._epsilon, self._delta):
                self._proven, self._ahead = asked, min(2 * ahead + 1, _MOST_AHEAD)
                return True
            if ahead == 0:
                self._ahead = 0
                return False
            # What is left is shorter than the last stride.
            ahead //= 4

    def _with(self, charge: Charge) -> dict[_Kind, int]:
        kind = charge.mechanism, charge.sampling_rate
        return {**self._counts, kind: self._counts.get(kind, 0) + charge.count}

    def _accountant(self, counts: dict[_Kind, int]) -> Accountant:
        accountant = Accountant(self._adjacency)
        for (mechanism, rate), count in counts.items():
            accountant.compose(mechanism, count, rate)
        return accountant
