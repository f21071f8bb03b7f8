"""Staircase noise: optimal for pure differential privacy of one release."""

from __future__ import annotations

import math
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from psinoise import _validate
from psinoise._kept import cached_property
from psinoise.errors import DomainError
from psinoise.noise._cells import Cells
from psinoise.noise._elementary import exponential, exponential_minus_one, logarithm
from psinoise.noise._family import Parameter
from psinoise.noise._moments import OwnUnit
from psinoise.noise._piecewise import PiecewiseNoise
from psinoise.noise._target import PrivacyTarget
from psinoise.numerics.rational import rounded

__all__ = ["Staircase"]

_LARGEST_EPSILON = 700.0


class Staircase(OwnUnit, PiecewiseNoise):
    """The law of least ``E|X|`` or ``E X**2`` under epsilon-differential privacy, for one release.

    The density falls by the factor ``exp(-epsilon)`` at ``gamma, 1 + gamma, 2 + gamma, ...`` times
    the sensitivity and is constant in between. It is epsilon-private for every ``gamma``, since
    steps that are a sensitivity apart differ by that factor; this one makes the cost least.

    Parameters
    ----------
    epsilon : float
        In (0, 700].
    sensitivity : float
        By how much neighboring data sets can move the query.
    power : 1 or 2
        The cost is ``E|X|**power``.

    Attributes
    ----------
    gamma : float
        Where the first step ends, in units of the sensitivity; below 1/2.
    least_cost : float
        ``E|X|**power``, the least that epsilon-differential privacy allows.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or value.

    Notes
    -----
    Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy", IEEE Trans.
    Inf. Theory 62(2), 2016, who prove that a staircase is optimal for every cost that grows with
    ``|x|``. For ``|x|`` the optimal ``gamma`` is ``1 / (1 + exp(epsilon / 2))``, with the cost
    ``exp(epsilon / 2) / (exp(epsilon) - 1)``; for ``x**2``, with ``b = exp(-epsilon)``, it is
    ``-b / (1 - b) + (b - 2 b**2 + 2 b**4 - b**5)**(1/3) / (2**(1/3) (1 - b)**2)``, here in a form
    that does not cancel.

    Examples
    --------
    >>> import psinoise as pn
    >>> law = pn.Staircase(epsilon=2.0)
    >>> round(law.least_cost, 6), round(float(law.pdf(0.0) / law.pdf(1.0)), 6)
    (0.425459, 7.389056)
    """

    unimodal = True
    representatives = ({"epsilon": 1.0},)
    shape_parameters = MappingProxyType(
        {
            "epsilon": Parameter("epsilon that it is the best for", required=True),
            "power": Parameter("1 (default) or 2"),
        }
    )

    epsilon: float
    sensitivity: float
    power: int

    def __init__(self, *, epsilon: float, sensitivity: float = 1.0, power: int = 1) -> None:
        budget = _validate.positive_below("epsilon", epsilon)
        if not budget <= _LARGEST_EPSILON:
            raise DomainError(f"epsilon must be at most {_LARGEST_EPSILON}, got {epsilon!r}")
        exponent = _validate.real("power", power)
        if exponent not in (1.0, 2.0):
            raise DomainError(f"power must be 1 or 2, got {power!r}")
        scale = _validate.positive_above("sensitivity", sensitivity)
        self._set(epsilon=budget, sensitivity=scale, power=int(exponent), _scale=scale)

    @classmethod
    def for_target(cls, target: PrivacyTarget, **arguments: Any) -> Staircase:
        """The member whose largest losses add up to epsilon."""
        each = target.largest_loss(cls.__name__)
        return cls(epsilon=each, sensitivity=target.sensitivity, **arguments)

    @property
    def _fall(self) -> float:
        """``exp(-epsilon)``."""
        return exponential(-self.epsilon)

    @property
    def gamma(self) -> float:
        """Where the first step ends, in units of the sensitivity."""
        if self.power == 1:
            half = exponential(-0.5 * self.epsilon)
            return half / (1.0 + half)
        b = self._fall
        # With c**3 = b (1 + b) / 2, gamma = (c - b) / (1 - b); b below 1/2**52 leaves c alone.
        log_cube = -self.epsilon + logarithm(0.5 * (1.0 + b))
        c = exponential(log_cube / 3.0)
        return 0.5 * b * (1.0 + 2.0 * b) / (c * c + c * b + b * b)

    @property
    def least_cost(self) -> float:
        """``E|X|**power``."""
        return self.moment(self.power)

    @property
    def _shares(self) -> tuple[float, float]:
        """Probabilities of the two parts of a period."""
        gamma, b = self.gamma, self._fall
        whole = gamma + b * (1.0 - gamma)
        return gamma / whole, b * (1.0 - gamma) / whole

    @cached_property
    def partition(self) -> Cells:
        """The two cells of the first period, in units of the sensitivity; they repeat."""
        return Cells(
            np.array([0.0, self.gamma, 1.0]),
            self._complement * np.array(self._shares),
            repeated=2,
            rate=self.epsilon,
            complement=self._complement,
            right_closed=False,
            falls=np.array([0.0, self.epsilon]),
        )

    def largest_piece_loss(self, shift: float) -> float:
        """The largest of the `piece_losses`, rounded up once: of so many steps, exactly."""
        steps = math.ceil(Fraction(shift) / Fraction(self.sensitivity))
        return rounded(steps * Fraction(self.epsilon), up=True)

    @property
    def _complement(self) -> float:
        """``1 - exp(-epsilon)``."""
        return -exponential_minus_one(-self.epsilon)

    @property
    def _moment_unit(self) -> float:
        """The sensitivity times the mean number of steps: their number is geometric."""
        return self.sensitivity / self._complement

    def _unit_moment(self, order: float) -> float:
        complement = self._complement
        if order not in (1.0, 2.0):
            with np.errstate(over="ignore", invalid="ignore"):
                found = self.partition.expectation(
                    lambda t: (t * complement) ** order, (self._peak(order),)
                )
            return math.inf if math.isnan(found) else found
        # A geometric number of whole sensitivities, and a place within one, which is independent.
        gamma, (first, second), b = self.gamma, self._shares, self._fall
        place = 0.5 * complement * (first * gamma + second * (1.0 + gamma))
        if order == 1.0:
            return b + place
        square = (first * gamma**2 + second * (1.0 + gamma + gamma**2)) / 3.0
        return b * (1.0 + b) + 2.0 * b * place + complement * (complement * square)

    @property
    def _shape(self) -> tuple[Any, ...]:
        return (self.epsilon, self.power)

    def _arguments(self) -> dict[str, float]:
        return {"epsilon": self.epsilon, "sensitivity": self.sensitivity, "power": self.power}
