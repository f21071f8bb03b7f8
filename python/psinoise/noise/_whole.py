"""Laws on the whole numbers: what they have in place of a density, a lattice and shifts."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise.errors import DomainError
from psinoise.noise._by_numpy import fill_in_blocks, from_survival
from psinoise.noise._interface import NoiseLaw

__all__ = ["WholeNoise"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]


class WholeNoise(NoiseLaw):
    """A law whose masses do not increase in ``|k|``.

    Whole numbers do not stretch: the standardized law is the law itself, and ``_scale`` is 1.
    """

    log_concave = False
    unimodal = True
    for_whole_numbers = True

    _length: float

    @property
    def scale(self) -> float:
        """The scale that the masses are stated with."""
        return self._length

    def pmf(self, k: ArrayLike) -> Any:
        """``P(X = k)``; 0 where ``k`` is not whole."""
        return np.exp(self.logpmf(k))

    @abstractmethod
    def logpmf(self, k: ArrayLike) -> Any:
        """Logarithm of ``pmf``."""

    @abstractmethod
    def _log_tails(self, k: Float) -> Float:
        """``log P(X >= k)`` for whole ``k >= 1`` and ``inf``; anything for NaN."""

    def _evaluate(self, quantity: str, x: Numbers, out: Numbers, workers: int) -> None:
        if quantity in ("pdf", "logpdf"):
            raise DomainError(f"{self!r} has no density; use pmf")
        fill_in_blocks(lambda part: self._evaluate_block(quantity, part), x, out)

    def _evaluate_block(self, quantity: str, x: Float) -> Float:
        # P(X > x) for x >= 0 is P(X >= floor(x) + 1), P(X <= x) for x < 0 is P(X >= -floor(x)).
        floor = np.floor(x)
        log_tails = self._log_tails(np.where(x < 0.0, -floor, floor + 1.0))
        return from_survival(quantity, x, np.exp(log_tails), log_tails)

    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]:
        """The sensitivity itself: the masses do not increase in ``|k|``.

        Raises
        ------
        DomainError
            If it is not a whole number: then neighbors would have no output in common.
        """
        if not (sensitivity >= 1.0 and sensitivity == math.floor(sensitivity)):
            raise DomainError(
                f"sensitivity must be a whole number for {self!r}, got {sensitivity!r}"
            )
        return (sensitivity,)

    @property
    def own_grid(self) -> float:
        """That of the whole numbers."""
        return 1.0

    def lattice_masses(self, grid: float, start: int, stop: int) -> Float:
        """``P(|X| = k)``; see `psinoise.noise.NoiseLaw.lattice_masses`.

        Raises
        ------
        DomainError
            If the lattice is not that of the whole numbers.
        """
        if grid != 1.0:
            raise DomainError(f"grid must be 1.0 for {self!r}, got {grid!r}")
        return self._size_masses(float(start) + np.arange(float(stop - start)))

    @abstractmethod
    def _size_masses(self, k: Float) -> Float:
        """``P(|X| = k)`` for whole ``k >= 0``."""

    def _standard_fisher_information(self) -> float:
        raise DomainError(f"{self!r} has no density, and so no Fisher information")
