"""Absolute moments of all laws, in units of a length for which no factor leaves float64."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

from psinoise._kept import cached_property
from psinoise.noise import _checks

__all__ = ["Moments", "OwnUnit"]

# Numbers with all of their digits, and the logarithm of the largest.
_LEAST_NORMAL, _LOG_LARGEST = 2.0**-1022, 709.782712893384


class Moments:
    """What a law has whose moments at scale 1 are known."""

    _scale: float

    def moment(self, order: float) -> float:
        """Absolute moment ``E|X|**order``.

        For even whole orders this is the ordinary moment; odd ordinary moments are 0 by symmetry.

        Parameters
        ----------
        order : float
            At least 0.

        Returns
        -------
        float
            ``inf`` where the moment does not exist or overflows. Relative error below 1e-13; where
            the power of a length or the moment in units of it is beyond float64, 1e-15 of their
            logarithms.
        """
        power, unit = _checks.moment_order(order), self._moment_unit
        try:
            own, scaled = float(self._unit_moment(power)), unit**power
        except OverflowError:
            own = scaled = math.inf
        if all(_LEAST_NORMAL <= factor < math.inf for factor in (own, scaled)):
            return float(own * scaled)
        log_moment = float(self._log_unit_moment(power)) + power * math.log(unit)
        return math.exp(log_moment) if log_moment < _LOG_LARGEST else math.inf

    @property
    def _moment_unit(self) -> float:
        """The length that moments are in."""
        return self._scale

    def _unit_moment(self, order: float) -> float:
        """``E|X / unit|**order``."""
        return self._standard_moment(order)

    def _log_unit_moment(self, order: float) -> float:
        """Its logarithm, ``inf`` if there is none: of laws whose own moments leave float64."""
        try:
            moment = self._unit_moment(order)
        except OverflowError:
            return math.inf
        return math.log(moment) if moment > 0.0 else -math.inf

    @abstractmethod
    def _standard_moment(self, order: float) -> float:
        """``E|Z|**order`` of the standardized law."""


class OwnUnit:
    """What is added to such a law, before its base class; `Any` stands for the law.

    Powers of the scale leave float64 where those of a draw do not: the scale of a truncated Laplace
    law, ``1 / epsilon``, may be 1e200 and its half width 1.
    """

    @property
    @abstractmethod
    def _moment_unit(self) -> float:
        """A length near that of most draws."""

    @abstractmethod
    def _unit_moment(self, order: float) -> float:
        """``E|X / unit|**order``."""

    def _standard_moment(self: Any, order: float) -> float:
        return float(self._unit_moment(order) * (self._moment_unit / self._scale) ** order)

    @cached_property
    def std(self: Any) -> float:
        """Standard deviation."""
        return float(math.sqrt(self._unit_moment(2.0)) * self._moment_unit)

    @cached_property
    def mean_abs(self: Any) -> float:
        """Mean absolute value ``E|X|``."""
        return float(self._unit_moment(1.0) * self._moment_unit)
