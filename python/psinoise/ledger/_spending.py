"""Sums of what was charged, and what they prove; the same for a plan and for a filter.

With ``S(a)`` the sum of the bounds ``K(a)`` of `psinoise.ledger._moments` and ``c = a - 1``,

    ``delta(eps) <= e^{S(a) - c eps} c^c / (1 + c)^{1 + c}``

for a composition that was fixed in advance. So it is within the budget if one order says so; or if
the largest losses add up to epsilon or less; or if the squares of the parameters of
`psinoise.ledger._gaussian` add up to no more than that of the budget. For a filter these proofs
share delta, and ``psinoise.ledger._filter`` has the reason. Leaks of noise in digits are added up
for a filter, which has a share for them; a plan of such noise is composed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.loss.responses import RandomizedResponse
from psinoise.accounting.loss.steps import Step
from psinoise.ledger._charge import Charge
from psinoise.ledger._gaussian import gaussian_parameter, largest_parameter
from psinoise.ledger._moments import largest_losses, log_conversion, log_moments
from psinoise.numerics.rational import rounded

__all__ = ["Limits", "Sums", "best_order"]

Float = NDArray[np.float64]

_LARGEST_ORDER = 1 << 16
# Limits are computed to some ulp, and products too.
_ROUNDING, _UP = 1e-13, 2.0**-51


def best_order(epsilon: float, delta: float) -> int:
    """The order that lets most small losses into a budget.

    Many small losses have ``K(a) = a (a - 1) m / 2``, as Gaussian noise has: the order for which
    the largest ``m`` is within the budget. Any order gives a valid bound.
    """
    orders = np.unique(np.geomspace(2.0, _LARGEST_ORDER, 800).astype(np.int64))
    limits = np.array([_limit(int(a), epsilon, delta) for a in orders])
    return int(orders[np.argmax(limits / (orders * (orders - 1.0)))])


def _limit(order: int, epsilon: float, delta: float) -> float:
    found = (order - 1.0) * epsilon + math.log(delta) - log_conversion(order)
    size = (order - 1.0) * epsilon - math.log(delta) + abs(log_conversion(order))
    return found - _ROUNDING * size


@dataclass(frozen=True)
class Limits:
    """Orders, and how large ``S`` may be at each of them."""

    epsilon: float
    orders: tuple[int, ...]
    most: Float
    """The largest ``S(a)`` that is within the budget."""
    square: float
    """The largest square of the parameter of Gaussian differential privacy."""
    leak: float
    """The largest probability that noise in digits tells all."""

    @staticmethod
    def of(
        epsilon: float,
        orders: tuple[int, ...],
        shares: tuple[float, ...],
        gaussian: float,
        leak: float = 0.0,
    ) -> Limits:
        """The limits of a budget whose delta is in shares; no orders where it is 0.

        ``gaussian`` is the share of Gaussian differential privacy, ``leak`` that of leaks.
        """
        pairs = zip(orders, shares, strict=True)
        most = np.array([_limit(order, epsilon, share) for order, share in pairs])
        square = largest_parameter(epsilon, gaussian) ** 2 * (1.0 - _ROUNDING)
        return Limits(epsilon, orders, most, square, leak)


@dataclass(frozen=True)
class Sums:
    """``S(a)`` and the sum of the largest losses, of each direction, and of squares; rounded up."""

    orders: tuple[int, ...]
    moments: Float
    losses: tuple[Fraction | None, ...]
    """None where a loss has no bound."""
    square: float = 0.0
    """Of the parameter of Gaussian differential privacy."""
    leak: float = 0.0
    """The probabilities of answers that tell all or nothing (`psinoise.mechanisms.leak`), which are
    in nothing else here."""

    @staticmethod
    def none(orders: tuple[int, ...]) -> Sums:
        """Nothing charged."""
        return Sums(orders, np.zeros((2, len(orders))), (Fraction(0), Fraction(0)))

    def plus(self, charge: Charge, adjacency: str) -> Sums:
        """These sums and a charge."""
        if charge.count == 0:
            return self
        found = self
        for pair, uses in charge.mechanism.sampled(charge.sampling_rate, None, adjacency):
            found = found._with(pair, uses * charge.count)
        return found

    def _with(self, pair: Step, uses: int) -> Sums:
        """These sums and some uses of a step."""
        if isinstance(pair, RandomizedResponse) and pair.up == 0.0:
            told = math.nextafter(uses * pair.infinite("remove"), math.inf)
            return replace(self, leak=math.nextafter(self.leak + told, math.inf))
        more = _up(math.nextafter(float(uses), math.inf) * log_moments(pair, self.orders))
        losses = (
            None if before is None or loss is None else before + uses * loss
            for before, loss in zip(self.losses, largest_losses(pair), strict=True)
        )
        square = math.nextafter(uses * gaussian_parameter(pair) ** 2, math.inf) * (1.0 + _UP)
        square = math.nextafter(self.square + square, math.inf)
        return Sums(self.orders, _up(self.moments + more), tuple(losses), square, self.leak)

    def worst(self) -> tuple[Float, float]:
        """The larger of both directions: of each moment, and of the losses, rounded up.

        Neighbors choose a direction once, so that either row alone is about them.
        """
        loss = math.inf
        if None not in self.losses:
            loss = rounded(max(filter(None, self.losses), default=Fraction(0)), up=True)
        return np.asarray(self.moments.max(axis=0)), loss

    def within(self, limits: Limits) -> bool:
        """Whether one of these sums proves the budget."""
        moments, loss = self.worst()
        return self.leak <= limits.leak and (
            loss <= limits.epsilon
            or self.square <= limits.square
            or bool((moments <= limits.most).any())
        )


def _up(values: Float) -> Float:
    return np.asarray(np.nextafter(values, math.inf))
