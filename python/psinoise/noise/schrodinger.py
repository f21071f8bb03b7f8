"""Schrodinger noise: the law of least Fisher information for any cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from psinoise import _validate, costs
from psinoise._backend import core
from psinoise.compile import FitError, Layout
from psinoise.costs import Cost, Power, Stretched, as_cost
from psinoise.costs._pairs import add
from psinoise.errors import DomainError
from psinoise.ground_state import GroundState, natural_state, power_state, theta_of_mean_cost
from psinoise.noise._base import Float, Noise
from psinoise.noise._family import Parameter
from psinoise.numerics.double_double import Pair

__all__ = ["Schrodinger"]

_DECIMAL = Context(prec=45)
_SIZES = ("scale", "std", "mean_abs")
# By how much the computed values of a cost may fall as |x| grows, as a share of its mean.
_MOST_FALL = 1e-10


class Schrodinger(Noise):
    """Noise with the least Fisher information of all laws of its mean cost.

    Its density is ``y**2`` for the ground state of ``-y'' + theta c y = E y``: the optimal additive
    noise for many compositions of small sensitivity under the cost ``c`` (Alghamdi et al.,
    "Schrodinger mechanisms", theorems 2 and 3). The cost ``x**2`` gives the Gaussian, ``|x|`` Airy
    noise. Each law is unimodal, since ``y`` has one turning point, and log-concave, since the cost
    does not decrease (docs/schrodinger.md proves both); `log_concave` is certified on the solution.

    Parameters
    ----------
    cost : Cost or callable
        From :mod:`psinoise.costs`, or a function of arrays that satisfies assumption 1 there.
    mean_cost, theta : float
        ``E[cost(X)]``, above the cost of 0, or the factor of the cost in the potential.
    scale, std, mean_abs : float
        The size instead. For other costs than powers, the law of mean cost 1 (or of the given
        ``mean_cost`` or ``theta``) is stretched to it, and is then optimal for the stretched cost.

    Raises
    ------
    TypeError
        If ``cost`` is not callable, or too many or too few of the other arguments are given.
    DomainError
        If the cost is seen to violate assumption 1 (the message names the point), is smooth nowhere
        near some point, or cannot have the mean cost; if its rounding is seen at the mean cost.

    Notes
    -----
    ``mean_cost`` is met to 1e-13 and the ground energy to 4 ulp; densities and tails are as
    accurate as those of other laws (tests/test_schrodinger.py).

    Examples
    --------
    >>> import psinoise as pn
    >>> noise = pn.Schrodinger(cost=pn.costs.Power(2), mean_cost=1.0)
    >>> round(noise.theta, 12), round(noise.ground_energy, 12), round(noise.std, 12)
    (0.25, 0.5, 1.0)
    """

    representatives: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"cost": costs.Power(1.5)},
        {"cost": costs.Log()},
    )
    shape_parameters = MappingProxyType(
        {
            "cost": Parameter(
                "power:P, log:POWER, logcosh:SCALE, huber:THRESHOLD, hinge:START, each with an "
                "optional :WEIGHT; piecewise(X:COST, X:COST); sums with +; max(COST, COST)",
                costs.parse,
                "COST",
                required=True,
            ),
            "mean_cost": Parameter("mean cost; fixes the size too"),
            "theta": Parameter("... or the factor of the cost in the potential"),
        }
    )

    _score_limit = math.inf

    _cost: Cost
    _strength: dict[str, float]
    _size: dict[str, float]
    _state: GroundState
    _unit: float
    _given_theta: float
    _floor: float

    def __init__(
        self,
        *,
        cost: Cost | Callable[[Float], Any],
        mean_cost: float | None = None,
        theta: float | None = None,
        scale: float | None = None,
        std: float | None = None,
        mean_abs: float | None = None,
    ) -> None:
        if not callable(cost):
            raise TypeError(f"cost must be callable, got {cost!r}")
        chosen = as_cost(cost)
        strength, size = _chosen(
            isinstance(chosen, Power),
            {"mean_cost": mean_cost, "theta": theta},
            {"scale": scale, "std": std, "mean_abs": mean_abs},
        )
        self._set(_cost=chosen, _strength=strength, _size=size)
        if isinstance(chosen, Power):
            scale = self._power_scale(chosen)
        else:
            scale = self._general_scale(chosen)
        self._set(_scale=_validate.positive("scale", scale))

    def _power_scale(self, cost: Power) -> float:
        """Standardized: mean cost 1 for weight 1."""
        self._set(_state=power_state(Power(cost.p), cost.p), _unit=1.0)
        ((name, value),) = (self._strength | self._size).items()
        if name in _SIZES:
            return self._scale_of(name, value)
        exponent, weight = Decimal(cost.p), Decimal(cost.weight)
        if name == "mean_cost":
            return _power(_DECIMAL.divide(Decimal(value), weight), 1 / exponent)
        theta = _DECIMAL.multiply(Decimal(value), weight)
        standard = _DECIMAL.add(Decimal(self._state.theta[0]), Decimal(self._state.theta[1]))
        return _power(_DECIMAL.divide(standard, theta), 1 / (2 + exponent))

    def _general_scale(self, cost: Cost) -> float:
        """Standardized: natural units of the ground state."""
        floor = float(cost(0.0))
        strength = self._strength or {"mean_cost": floor + 1.0}
        theta, grown = strength.get("theta", 0.0), _Grown(cost) if floor else cost
        if not theta:
            mean_cost = strength["mean_cost"]
            if not mean_cost > floor:
                raise DomainError(
                    f"mean_cost must be above the cost of 0, {floor!r}, got {mean_cost!r}"
                )
            theta = theta_of_mean_cost(grown, mean_cost - floor)
        found = natural_state(grown, theta)
        (fall, place), above = cost.fall, found.state.mean_cost
        if not fall <= _MOST_FALL * above:
            raise DomainError(
                f"cost must not decrease in |x|, got a value smaller by {fall!r} at x = {place!r}, "
                f"which shows at mean_cost {floor + above!r}"
            )
        self._set(_state=found.state, _unit=found.unit, _given_theta=theta, _floor=floor)
        return self._scale_of(*next(iter(self._size.items()))) if self._size else found.unit

    def _scale_of(self, name: str, value: float) -> float:
        if name == "scale":
            return value
        self._set(_scale=1.0)
        return value / float(getattr(self, name))

    # -- what the law states about itself ------------------------------------------------------

    def log_density(self, t: Float) -> Pair:
        """``log p(0) - 2 integral of r`` of the ground state, ``r = -y'/y``."""
        return self._state.log_density(t)

    def log_mills(self, t: Float) -> Float:
        """From ``m' = 2 r m - 1``."""
        return self._state.log_mills(t)

    def score(self, t: Float) -> Float:
        """``2 r``."""
        return self._state.score(t)

    @property
    def log_concave(self) -> bool:
        """Whether the solved score is certified not to decrease."""
        return self._state.log_concave

    @property
    def layout(self) -> Layout:
        """Panels from where the cost is smooth at 0 to the depth that samples reach."""
        return self._state.layout

    @property
    def kinks(self) -> tuple[float, ...]:
        """0, the breakpoints of the cost, and other kinks of it that were found."""
        found = (self._scale * kink for kink in self._state.found_kinks)
        return (0.0, *sorted((*self.cost.breakpoints, *found)))

    @property
    def breaks(self) -> tuple[float, ...]:
        """The breakpoints of the cost and cuts of the layers before them, in units of the scale."""
        return self._state.breaks

    @property
    def _table(self) -> core.LawTable:
        try:
            return super()._table
        except FitError as error:
            raise DomainError(
                f"cost must be smooth but for a few kinks: {error}, in units of {self._scale!r}"
            ) from None

    @property
    def _shape(self) -> tuple[Any, ...]:
        if isinstance(self._cost, Power):
            return (Power(self._cost.p),)
        return self._cost, self._state.theta[0] / self._unit**2

    def _shape_arguments(self) -> dict[str, Any]:
        if isinstance(self._cost, Power):
            return {"cost": self._cost}
        return {"cost": self._cost, **self._strength}

    def _arguments(self) -> dict[str, Any]:
        return {"cost": self._cost, **self._strength, **self._size}

    def _canonical_arguments(self) -> dict[str, Any]:
        """By scale; of other costs than powers after the strength that the solver was given."""
        strength = {} if isinstance(self._cost, Power) else {"theta": self._given_theta}
        return {"cost": self._cost, **strength, "scale": self._scale}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (self._cost, self._shape, self._scale) == (other._cost, other._shape, other._scale)

    def __hash__(self) -> int:
        return hash((type(self), self._cost, self._shape, self._scale))

    # -- the mechanism -------------------------------------------------------------------------

    @property
    def cost(self) -> Cost:
        """The cost that the law is optimal for."""
        if isinstance(self._cost, Power) or self._scale == self._unit:
            return self._cost
        return Stretched(self._cost, self._scale / self._unit)

    @property
    def mean_cost(self) -> float:
        """``E[cost(X)]``."""
        if isinstance(self._cost, Power):
            exponent = Decimal(self._cost.p)
            return self._cost.weight * _power(Decimal(self._scale), exponent)
        return self._floor + self._state.mean_cost

    @property
    def theta(self) -> float:
        """The factor of the cost in ``-y'' + theta cost y``; the privacy that a unit of cost buys,
        ``-(dI / dC) / 4`` for the Fisher information ``I``."""
        theta = self._state.theta[0]
        if isinstance(self._cost, Power):
            exponent = -Decimal(2) - Decimal(self._cost.p)
            return theta * _power(Decimal(self._scale), exponent) / self._cost.weight
        return theta / self._scale / self._scale

    @property
    def ground_energy(self) -> float:
        """The smallest eigenvalue of ``-y'' + theta cost y``."""
        raised = 0.0 if isinstance(self._cost, Power) else self._state.theta[0] * self._floor
        return (self._state.energy[0] + raised) / self._scale / self._scale

    @property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self._standard_moment(2.0)) * self._scale

    @property
    def mean_abs(self) -> float:
        """Mean absolute value ``E|X|``."""
        return self.moment(1)

    def _standard_fisher_information(self) -> float:
        return self._state.fisher_information


def _power(base: Decimal, exponent: Decimal) -> float:
    """Rounded once, so that the same arguments give the same law on every machine."""
    return float(_DECIMAL.power(base, exponent))


class _Grown(Cost):
    """A cost less its value at 0, which shifts the energy and nothing else."""

    __slots__ = ("cost",)

    cost: Cost

    def __init__(self, cost: Cost) -> None:
        object.__setattr__(self, "cost", cost)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.cost.breakpoints

    @property
    def fall(self) -> tuple[float, float]:
        return self.cost.fall

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.cost,), {}

    def pair(self, t: Float) -> Pair:
        hi, lo = self.cost.pair(np.zeros(1))
        return add(self.cost.pair(t), (-hi, -lo))


def _chosen(
    is_power: bool, strengths: dict[str, float | None], sizes: dict[str, float | None]
) -> tuple[dict[str, float], dict[str, float]]:
    """What was given of what fixes the shape, and of what fixes the size."""
    strength, size = (
        {name: _validate.positive(name, value) for name, value in kind.items() if value is not None}
        for kind in (strengths, sizes)
    )
    given = len(strength) + len(size)
    most = given if is_power else max(len(strength), len(size))
    if not given or most > 1:
        either = "" if is_power else " (or one of the first two and one of the others)"
        names = ", ".join([*strengths, *sizes])
        raise TypeError(f"Schrodinger takes exactly one of {names}{either}, got {given}")
    return strength, size
