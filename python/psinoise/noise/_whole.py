"""Laws on the whole numbers: what they have in place of a density, quantiles, a lattice, shifts."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise.errors import DomainError
from psinoise.noise._by_numpy import fill_in_blocks, from_survival
from psinoise.noise._interface import NoiseLaw

__all__ = ["LARGEST_NUMBER", "WholeNoise", "least_whole"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]

#: Beyond, whole numbers are rounded.
LARGEST_NUMBER = 2.0**1000
# Of a number: shorter brackets are straight enough in the numbers themselves.
_SHORT = 0.125
# And this is where the rounding of tails, and not their fall, decides which number is enough.
_SAME = 2.0**-46


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

    def _inverse_cdf(self, p: Numbers, out: Numbers, workers: int) -> None:
        """The smallest whole numbers with ``cdf(k) >= p``."""
        fill_in_blocks(functools.partial(self._quantile, "cdf"), p, out)

    def _inverse_survival(self, p: Numbers, out: Numbers, workers: int) -> None:
        """The smallest whole numbers with ``ccdf(k) <= p``."""
        fill_in_blocks(functools.partial(self._quantile, "ccdf"), p, out)

    def _quantile(self, quantity: str, p: Float) -> Float:
        rising = quantity == "cdf"
        inside = (p > 0.0) & (p < 1.0)
        found = np.where(p == (0.0 if rising else 1.0), -np.inf, np.inf)
        found[~((p >= 0.0) & (p <= 1.0))] = np.nan
        function = functools.partial(self._evaluate_block, quantity)
        found[inside] = least_whole(function, p[inside], rising, self._length, LARGEST_NUMBER)
        return found

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


def least_whole(
    function: Callable[[Float], Float], p: Float, rising: bool, spread: float, largest: float
) -> Float:
    """The least ``k`` with ``function(k) >= p``, or ``<= p`` of one that falls.

    Beyond 2**46 one within 2**-46 of it, beyond ``largest`` an infinity. ``p`` is in (0, 1), and
    ``spread`` where tails set in.

    It is bracketed by 2**2, 2**4, 2**8 and so on, then by the rule of false position between log
    odds, which are logarithms of tails on both sides, and, as power laws are straight lines there,
    of numbers. Every fourth round halves the bracket instead, which moves an end that stays (other
    rules for that, such as Illinois', save nothing then), so that it always ends. The function
    alone decides whether a number is enough.
    """

    def excess(k: Float, p: Float) -> Float:
        """By how much ``k`` is more than enough, negative if it is not."""
        value = function(k)
        enough, more = value >= p, _log_odds(value) - _log_odds(p)
        if not rising:
            enough, more = value <= p, -more
        return np.where(enough, np.maximum(more, 0.0), np.minimum(more, -5e-324))

    low, high = np.full(p.shape, -1.0), np.full(p.shape, 1.0)
    below, above = excess(low, p), excess(high, p)
    reach = 4.0
    while (wide := np.flatnonzero((below >= 0.0) & (low > -largest))).size:
        high[wide], above[wide] = low[wide], below[wide]
        low[wide] = -reach
        below[wide] = excess(low[wide], p[wide])
        reach = min(reach * reach, largest)
    reach = 4.0
    while (wide := np.flatnonzero((above < 0.0) & (high < largest))).size:
        low[wide], below[wide] = high[wide], above[wide]
        high[wide] = reach
        above[wide] = excess(high[wide], p[wide])
        reach = min(reach * reach, largest)
    beyond = np.where(below >= 0.0, -np.inf, np.where(above < 0.0, np.inf, 0.0))

    rounds = 0
    while True:
        middle = np.floor(0.5 * (low + high))
        between = (middle > low) & (middle < high) & (high - low > _SAME * np.abs(low))
        left = np.flatnonzero(between & (beyond == 0.0))
        if left.size == 0:
            return np.where(beyond == 0.0, high, beyond)
        rounds += 1
        a, b = low[left], high[left]
        if rounds % 4:
            with np.errstate(invalid="ignore"):
                share = below[left] / (below[left] - above[left])
            share = np.where(np.isfinite(share), share, 0.5)
            ends = np.arcsinh(a / spread), np.arcsinh(b / spread)
            curved = spread * np.sinh(ends[0] + share * (ends[1] - ends[0]))
            short = b - a < _SHORT * np.abs(a)
            tried = np.floor(np.where(short, a + share * (b - a), curved))
            least = np.ceil(np.maximum(1.0, 0.5 * _SAME * np.abs(a)))
            tried = np.clip(tried, a + least, b - least)
        else:
            tried = middle[left]
        more = excess(tried, p[left])
        enough = more >= 0.0
        high[left], low[left] = np.where(enough, tried, b), np.where(enough, a, tried)
        above[left] = np.where(enough, more, above[left])
        below[left] = np.where(enough, below[left], more)


def _log_odds(p: Float) -> Float:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))
