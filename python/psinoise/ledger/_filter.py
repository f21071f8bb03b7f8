"""A budget for mechanisms that may be chosen by what was released before: a privacy filter.

Setting
-------
In step ``t`` anybody may choose the next mechanism, its count and its rate by all results so far.
Given these results it is a fixed mechanism, with ``K_t(a)`` of `psinoise.ledger._moments`, a
largest loss ``m_t`` and a parameter ``g_t`` of Gaussian differential privacy
(`psinoise.ledger._gaussian`), for every pair of neighbors and both directions. It is released only
if the filter lets it, a decision that depends on parameters alone. ``L_t`` is the privacy loss of
all results up to ``t`` for one pair of neighbors, ``S_t(a)``, ``M_t`` and ``G_t`` the sums of
``K``, ``m`` and ``g^2``.

*Martingales.* For ``c = a - 1`` the process ``Z_t(a) = exp(c L_t - S_t(a))`` is a non-negative
supermartingale under the data, with ``Z_0 = 1``: given the past, ``E exp(c (L_t - L_{t-1}))`` is at
most ``exp(K_t(a))``. Hence ``E Z_T(a) <= 1`` at every time ``T``, which may depend on results.

*Filter.* Fix orders ``a_j`` and shares ``d_0 + sum d_j + d_l <= delta`` before anything is
released. Let
``B_j = c_j eps + log d_j - log k_j`` with ``k_j = c_j^c_j / (1 + c_j)^(1 + c_j)``, and ``mu`` such
that mu-GDP is (eps, d_0)-privacy. A charge passes if afterwards ``M <= eps``, or ``G <= mu^2``, or
``S(a_j) <= B_j`` for *some* ``j``. Then everything together is (epsilon, delta)-private.

*Proof.* After the last release some condition holds; let ``J`` be the first one that does: a random
one, since charges depend on results. Delta is the expectation of ``(1 - e^{eps - L})^+``, the sum
of its expectations over the events that ``J`` is this condition or that one.

* ``M <= eps``: then ``L <= M <= eps``, and there is nothing.
* ``G <= mu^2``: sums rise, so that it held all the time. The process that stops before it would not
  hold any more has ``G <= mu^2`` always, and is mu-GDP (A. Koskela, M. Tobaben and A. Honkela,
  "Individual privacy accounting with Gaussian differential privacy", ICLR 2023, and A. Smith and A.
  Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022: for parameters
  that are chosen by earlier results and whose squares add up to at most a fixed number). On this
  event it is the whole process: at most its delta, ``d_0``.
* ``S(a_j) <= B_j``: ``(1 - e^{eps - L})^+`` is at most ``k_j e^{c_j (L - eps)}``, which is
  ``k_j e^{S(a_j) - c_j eps} Z(a_j) <= d_j Z(a_j)``, with an expectation of at most ``d_j``. QED

*Leaks.* Noise in digits is dominated by Gaussian noise and, beside it, an independent coin that
tells all with probability ``c_t`` and nothing otherwise (`psinoise.mechanisms.leak`): what is
released is a function of both (Blackwell's theorem), so that one may think of both as seen. A
charge passes only if ``sum c_t <= d_l`` afterwards, so that the expected number of coins that tell,
over steps that may be chosen by all results, is at most ``d_l``, and so is the probability of any.
Where none tells, coins have the same probability for both neighbors: the loss is that of the rest,
and what was said above bounds its delta. Together they have ``d_l`` more.

With one order alone this is the Renyi filter of V. Feldman and T. Zrnic, "Individual privacy
accounting via a Renyi filter", NeurIPS 2021 (sums of divergences of one order that was fixed in
advance); with the largest losses alone the basic composition of R. Rogers, A. Roth, J. Ullman and
S. Vadhan, "Privacy odometers and filters", NIPS 2016, for pure epsilon. Several conditions are not
free here, as they are for a plan: which of them holds in the end depends on the results, so that
they share delta. A share of ``d_j`` costs an order ``log(delta / d_j) / c_j``.

*Odometer.* ``sum (d_j / delta) Z_t(a_j)`` is a non-negative supermartingale that begins at 1 or
below. By the inequality of Ville it is below ``1 / delta`` at all times with probability at least
``1 - delta``, so that at all times together, and at any time that is chosen by looking,

    ``L_t <= min(M_t, min_j (S_t(a_j) + log(1 / d_j)) / c_j)``,

where the shares ``d_j`` of the orders are those of an odometer without ``d_0``, and ``d_l`` is left
for leaks.

(J. Whitehouse, A. Ramdas, R. Rogers and Z. S. Wu, "Fully-adaptive composition in differential
privacy", ICML 2023, have this method.) The bound is on the loss itself, with probability
``1 - delta``, which is more than (epsilon, delta)-privacy says: it may be a little above the budget
of a filter that still lets charges pass.

*Rounding.* ``K``, ``m`` and their sums are rounded up, and ``B_j`` down.
"""

from __future__ import annotations

import math

import numpy as np

from psinoise.errors import BudgetError, CertificationError
from psinoise.ledger._charge import Charge
from psinoise.ledger._spending import Limits, Sums, best_order
from psinoise.mechanisms import LatticeMechanism

__all__ = ["Filter", "orders_of"]

# The shares of delta of leaks, of Gaussian differential privacy, of the first order and of all
# others, 1 but for rounding; those of an odometer; and those others, as powers of two times the
# first one.
_LEAK, _GAUSSIAN, _FIRST, _REST = 0.001, 0.6, 0.35, 0.049 - 2.0**-40
_ODOMETER_FIRST, _ODOMETER_REST = 0.9, 0.099 - 2.0**-40
_BESIDE = (-3, -2, -1, 1, 2, 3, 4, 5, 6)
# Shares of less are rounded by more than the sums above leave room for, or to 0.
_SMALLEST_DELTA = 2.0**-1014


def orders_of(epsilon: float, delta: float) -> tuple[int, ...]:
    """The orders of a filter, the best one for many small losses first; none if delta is 0.

    They must not change while a budget is spent: a file keeps them.
    """
    if delta == 0.0:
        return ()
    best = best_order(epsilon, delta)
    beside = {max(2, round(best * 2.0**power)) for power in _BESIDE} - {best}
    return (best, *sorted(beside))


class Filter:
    """What was charged so far, and whether more passes."""

    def __init__(
        self, epsilon: float, delta: float, adjacency: str, orders: tuple[int, ...]
    ) -> None:
        self._epsilon, self._delta, self._adjacency = epsilon, delta, adjacency
        if delta < _SMALLEST_DELTA:
            orders = ()  # the largest losses and Gaussian noise alone
        shares = _shares(delta, len(orders), _FIRST, _REST)
        self._limits = Limits.of(epsilon, orders, shares, delta * _GAUSSIAN, delta * _LEAK)
        self._odometer = _shares(delta, len(orders), _ODOMETER_FIRST, _ODOMETER_REST)
        self._sums = Sums.none(orders)

    def enter(self, charge: Charge) -> None:
        """Count a charge, whether it passes or not."""
        self._sums = self._sums.plus(charge, self._adjacency)

    def check(self, charge: Charge) -> None:
        """Refuse a charge that the filter does not let pass, with a BudgetError.

        A CertificationError says that nothing is known of it that a filter could add up.
        """
        after = self._sums.plus(charge, self._adjacency)
        if after.within(self._limits):
            return
        budget = f"the budget of epsilon {self._epsilon!r} at delta {self._delta!r}"
        alone = Sums.none(self._limits.orders).plus(charge, self._adjacency)
        moments, loss = alone.worst()
        if not (loss < math.inf or alone.square < math.inf or bool((moments < math.inf).any())):
            released = isinstance(charge.mechanism, LatticeMechanism)
            hint = "" if released else "; mechanism.on_lattice() may have that"
            raise CertificationError(
                f"this could not be certified to be within {budget}: nothing is known of it that "
                f"an adaptive ledger adds up{hint}"
            )
        raise BudgetError(f"this would exceed {budget}, as an adaptive ledger adds up")

    @property
    def spent(self) -> float:
        """The odometer."""
        if self._sums.leak > self._limits.leak:
            return math.inf
        moments, loss = self._sums.worst()
        bounds = [
            (moment - math.log(share)) / (order - 1.0) * (1.0 + 1e-14)
            for order, share, moment in zip(
                self._limits.orders, self._odometer, moments.tolist(), strict=True
            )
        ]
        return float(min([loss, *bounds]))

    @property
    def remaining(self) -> float:
        """Epsilon of any mechanism without delta that is sure to pass.

        Its losses, and so ``K(a) / c``, are at most its epsilon.
        """
        moments, loss = self._sums.worst()
        rooms = (self._limits.most - moments) / (np.array(self._limits.orders) - 1.0)
        return float(max(0.0, self._epsilon - loss, *rooms.tolist())) * (1.0 - 1e-12)


def _shares(delta: float, count: int, first: float, rest: float) -> tuple[float, ...]:
    """Shares of delta for the first order and for the others."""
    return tuple(delta * (rest / (count - 1) if i else first) for i in range(count))
