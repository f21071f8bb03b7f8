"""Quantiles of a law on the whole numbers, by its distribution function.

The least number that is enough is bracketed by 2**2, 2**4, 2**8 and so on, then by the rule of
false position between log odds, which are logarithms of tails on both sides, and, as power laws are
straight lines there, of numbers. Every fourth round halves the bracket instead, which moves an end
that stays (other rules for that, such as Illinois', save nothing then), so that it always ends. The
function alone decides whether a number is enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["least_whole"]

Float = NDArray[np.float64]

# Of a number: shorter brackets are straight enough in the numbers themselves.
_SHORT = 0.125
# And this is where the rounding of tails, and not their fall, decides which number is enough.
_SAME = 2.0**-46


def least_whole(
    function: Callable[[Float], Float], p: Float, rising: bool, spread: float, largest: float
) -> Float:
    """The least ``k`` with ``function(k) >= p``, or ``<= p`` of one that falls.

    Beyond 2**46 one within 2**-46 of it, beyond ``largest`` an infinity. ``p`` is in (0, 1), and
    ``spread`` where tails set in.
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
