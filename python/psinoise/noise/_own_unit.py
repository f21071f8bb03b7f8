"""Moments of laws whose scale may be far from their draws: in units of a length near these."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

from psinoise._kept import cached_property
from psinoise.noise import _checks

__all__ = ["OwnUnit"]


class OwnUnit:
    """What is added to such a law, before its base class; `Any` stands for the law.

    Powers of the scale leave float64 where those of a draw do not: the scale of a truncated Laplace
    law, ``1 / epsilon``, may be 1e200 and its half width 1.
    """

    @property
    @abstractmethod
    def _unit(self) -> float:
        """A length near that of most draws."""

    @abstractmethod
    def _unit_moment(self, order: float) -> float:
        """``E|X / unit|**order``."""

    def moment(self: Any, order: float) -> float:
        """Absolute moment ``E|X|**order``.

        For even whole orders this is the ordinary moment; odd ordinary moments are 0 by symmetry.

        Parameters
        ----------
        order : float
            At least 0.

        Returns
        -------
        float
            ``inf`` where the moment overflows. Relative error below 1e-13.
        """
        power = _checks.moment_order(order)
        try:
            return float(self._unit_moment(power) * self._unit**power)
        except OverflowError:
            return math.inf

    def _standard_moment(self: Any, order: float) -> float:
        return float(self._unit_moment(order) * (self._unit / self._scale) ** order)

    @cached_property
    def std(self: Any) -> float:
        """Standard deviation."""
        return float(math.sqrt(self._unit_moment(2.0)) * self._unit)

    @cached_property
    def mean_abs(self: Any) -> float:
        """Mean absolute value ``E|X|``."""
        return float(self._unit_moment(1.0) * self._unit)
