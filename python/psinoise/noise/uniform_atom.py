"""Uniform noise with an atom at 0: optimal for (0, delta)-differential privacy."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np

from psinoise import _validate
from psinoise._kept import cached_property
from psinoise.errors import CalibrationError, DomainError
from psinoise.noise._cells import Cells
from psinoise.noise._family import Parameter
from psinoise.noise._moments import OwnUnit
from psinoise.noise._piecewise import PiecewiseNoise
from psinoise.noise._target import PrivacyTarget

__all__ = ["UniformAtom"]


class UniformAtom(OwnUnit, PiecewiseNoise):
    """The law of least ``E|X|**power`` under (0, delta)-differential privacy, for one release.

    Uniform on ``[-h, h]`` but for an atom at 0, which appears when ``delta`` is above
    ``power / (power + 1)``: then it is better to tell the truth now and then. The total variation
    distance between the law and a shift of it by the sensitivity is ``delta``, no more and no less;
    the privacy loss itself is unbounded, since supports differ.

    Parameters
    ----------
    delta : float
        In (0, 1).
    sensitivity : float
        By how much neighboring data sets can move the query.
    power : float
        The cost is ``E|X|**power``; positive.

    Attributes
    ----------
    atom : float
        ``P(X = 0)``, ``max(0, (power + 1) delta - power)``.
    half_width : float
        ``h = (1 - atom) / (delta - atom) * sensitivity / 2``.
    least_cost : float
        ``E|X|**power``, the least that (0, delta)-differential privacy allows among the symmetric
        laws that decrease in ``|x|``.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or value.

    Notes
    -----
    Geng, Ding, Guo and Kumar, "Optimal noise-adding mechanism in additive differential privacy"
    (AISTATS 2019): optimality is theorem 2, the atom and the cost theorem 3, ``power`` 1 and 2
    corollaries 4 and 5; ``sample`` draws what algorithm 1 does. Where there is an atom there is no
    density, and ``pdf`` and ``logpdf`` raise an error.

    Examples
    --------
    >>> import psinoise as pn
    >>> pn.UniformAtom(delta=0.25).least_cost, pn.UniformAtom(delta=0.75).atom
    (1.0, 0.5)
    """

    unimodal = True
    representatives = ({"delta": 0.3},)
    shape_parameters = MappingProxyType(
        {
            "delta": Parameter("delta that it is the best for", required=True),
            "power": Parameter("its cost is the mean of |x|**power (default 1)"),
        }
    )
    #: The loss is unbounded: supports differ.
    score_limit = math.inf

    delta: float
    sensitivity: float
    power: float

    def __init__(self, *, delta: float, sensitivity: float = 1.0, power: float = 1.0) -> None:
        probability = _validate.probability_below("delta", delta)
        if not (0.0 < probability < 1.0):
            raise DomainError(f"delta must be in (0, 1), got {delta!r}")
        _validate.positive("delta", delta)
        scale = _validate.positive_above("sensitivity", sensitivity)
        exponent = _validate.positive("power", power)
        self._set(delta=probability, sensitivity=scale, power=exponent, _scale=scale)
        _validate.positive("half_width", self.half_width)

    @classmethod
    def for_target(cls, target: PrivacyTarget, **arguments: Any) -> UniformAtom:
        """The member for (0, delta), of one use.

        Sampling at rate ``q`` scales the total variation distance by ``q``:
        ``(1 - q) p + q T p - p = q (T p - p)``.
        """
        if target.epsilon > 0.0:
            raise CalibrationError("UniformAtom noise is made for epsilon = 0")
        if target.count > 1:
            raise CalibrationError("UniformAtom noise is made for one use")
        delta = target.delta / target.sampling_rate
        return cls(delta=delta, sensitivity=target.sensitivity, **arguments)

    @property
    def log_concave(self) -> bool:
        """True where there is no atom."""
        return self.atom == 0.0

    @property
    def _free(self) -> float:
        """``1 - atom``, without its cancellation."""
        return min(1.0, (self.power + 1.0) * (1.0 - self.delta))

    @property
    def support(self) -> float:
        """``half_width``."""
        return self.half_width

    @property
    def half_width(self) -> float:
        """The density is positive up to here."""
        if self._free < 1.0:
            return 0.5 * (1.0 + 1.0 / self.power) * self.sensitivity
        return 0.5 / self.delta * self.sensitivity

    @property
    def least_cost(self) -> float:
        """``E|X|**power`` (theorem 3)."""
        return self.moment(self.power)

    @cached_property
    def partition(self) -> Cells:
        """One cell, in units of the sensitivity, and the atom."""
        edges = np.array([0.0, self.half_width / self.sensitivity])
        return Cells(edges, np.array([self._free]), atom=1.0 - self._free)

    @property
    def _moment_unit(self) -> float:
        """The half width."""
        return self.half_width

    def _unit_moment(self, order: float) -> float:
        return 1.0 if order == 0.0 else self._free / (order + 1.0)

    @property
    def _shape(self) -> tuple[Any, ...]:
        return (self.delta, self.power)

    def _arguments(self) -> dict[str, float]:
        return {"delta": self.delta, "sensitivity": self.sensitivity, "power": self.power}
