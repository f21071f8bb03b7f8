"""The trade-off function: what an adversary can achieve in telling neighbors apart.

A test with false positive rate ``p`` has a false negative rate ``q`` of at least ``f(p)``. If
``delta(eps)`` is the profile over both directions, then for every ``eps >= 0``

    ``p + e^eps q >= 1 - delta(eps)``   and   ``e^eps p + q >= 1 - delta(eps)``

(Wasserman and Zhou 2010, theorem 2.4; Kairouz, Oh and Viswanath 2015, theorem 2.1; Zawacki and
Abed, the symmetric alpha-stable mechanism, section 2.2, for ``delta = 0``). ``f`` is the smallest
convex function that obeys all of them: the convex conjugate of the profile (Dong, Roth and Su 2022,
propositions 2.11 and 2.12),

    ``f(p) = sup over eps of max(0, 1 - delta(eps) - e^eps p, e^{-eps} (1 - delta(eps) - p))``.

Every epsilon gives two supporting lines *below* ``f``, also with an upper bound for delta: so the
largest of finitely many is certified. Few compositions give the upper bound at every epsilon
(``composed``), and lines are added until no other could be higher.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.loss.pairs import Float

#: Delta at many epsilons; and what makes one that is sharp in the range of some.
Delta = Callable[[Float], Float]
Prepare = Callable[[Float], Delta]

# Lines are added in so many parts of a gap: delta is known at a few epsilons as soon as at one.
_PARTS = 4
# Part of that which lines beyond the last may gain.
_BEYOND = 0.1
# Lines to either side that are looked at together.
_LOOK = 2
_LEAST = 1e-15
_UNIT = 2.0**-53
_MOST_ROUNDS = 60
_FIRST_LINES = 17
# exp(700) is finite.
_LARGEST_EPSILON = 700.0


def tradeoff_of(
    alphas: Float,
    beyond: Callable[[float], float],
    infinite: float,
    prepare: Prepare,
    close: float,
) -> Float:
    """``f(alpha)`` at each false positive rate; with bounds from above on delta a lower bound.

    Parameters
    ----------
    beyond
        an epsilon beyond which delta falls by less than a given number, at most the largest loss
    infinite
        delta at an infinite epsilon
    close
        lines are added until none can raise any value by more than this share of it
    """
    with np.errstate(under="ignore"):
        values = np.zeros(alphas.shape)
        inside = (alphas > 0.0) & (alphas < 1.0)
        # A test without false positives says yes to an infinite loss alone.
        values[alphas == 0.0] = max(math.nextafter(1.0 - infinite, 0.0), 0.0) if infinite else 1.0
        if inside.any():
            distinct, where = np.unique(alphas[inside], return_inverse=True)
            values[inside] = _highest(distinct, beyond, prepare, close)[where]
        return values


def _highest(
    alphas: Float, beyond: Callable[[float], float], prepare: Prepare, close: float
) -> Float:
    """The highest line at each of alphas that rise, as close as a share of it to the supremum."""
    # The steep line is the highest where f >= alpha, for f is its own inverse, and the flat one is
    # a multiple of 1 - delta - alpha. What delta falls by beyond the end raises neither by more
    # than a part of the closeness.
    least = min(float(alphas[0]), 1.0 - float(alphas[-1]))
    # Where all losses are infinite, none is the largest finite one.
    end = max(min(beyond(_BEYOND * (close * least + _LEAST)), _LARGEST_EPSILON), 0.0)
    # The steep line is below 0 beyond log(1/alpha), and the flat one mirrors it.
    reach = min(end, max(1.0, -math.log(float(alphas.min()))))
    lines, first, highest = _Lines(), 0.0, np.zeros(alphas.size)
    while True:
        lines.delta = prepare(np.unique(np.linspace(0.0, reach, _FIRST_LINES)))
        lines.add(np.linspace(first, reach, _FIRST_LINES))
        best = lines.refine(alphas, close, highest)
        highest = lines.epsilons[best]
        if float(np.abs(highest).max()) < reach or reach >= end:
            return np.maximum(lines.values(alphas, best), 0.0)
        first, reach = reach, min(2.0 * reach, end)


class _Lines:
    """Lines ``1 - delta - gamma alpha``, ``gamma = e^eps``, for epsilons of both signs, in order.

    ``delta(-eps) = 1 - e^{-eps} + e^{-eps} delta(eps)`` gives those of negative sign.
    """

    delta: Delta

    def __init__(self) -> None:
        self._positive, self._deltas = np.empty(0), np.empty(0)

    def add(self, epsilons: Float) -> None:
        new = np.setdiff1d(np.abs(epsilons), self._positive)
        if new.size:
            positive = np.append(self._positive, new)
            order = np.argsort(positive)
            self._positive = positive[order]
            self._deltas = np.append(self._deltas, self.delta(new))[order]
        positive, delta = self._positive, self._deltas
        mirrored = positive > 0.0
        self.epsilons = np.concatenate([-positive[mirrored][::-1], positive])
        self.slopes = np.exp(self.epsilons)
        self._both = np.concatenate([delta[mirrored][::-1], delta])

    def values(self, alphas: Float, k: NDArray[np.intp]) -> Float:
        """Heights of some lines, each at an alpha, less what they may be off by rounding.

        Exponentials are right to 4 ulp; of ``1 - alpha`` and delta either may be the smaller.
        """
        slope, delta = self.slopes[k], self._both[k]
        flat, steep = (1.0 - alphas) - delta, slope * alphas
        off = 4.0 * _UNIT * ((1.0 - alphas) + delta) + 16.0 * _UNIT * np.abs(flat)
        lower = slope * (flat - off)
        upper = (1.0 - delta) - steep - 8.0 * _UNIT * ((1.0 - delta) + steep)
        return np.asarray(np.where(self.epsilons[k] < 0.0, lower, upper))

    def _climbed(self, alphas: Float, start: NDArray[np.intp]) -> NDArray[np.intp]:
        """The highest line at each alpha; along the slopes heights rise to it and fall."""
        best = start
        last = self.epsilons.size - 1
        for _ in range(self.epsilons.size):
            near = np.clip(best + np.arange(-_LOOK, _LOOK + 1)[:, None], 0, last)
            highest = np.argmax(self.values(alphas, near), axis=0)
            before, best = best, near[highest, np.arange(alphas.size)]
            if np.array_equal(before, best):
                break
        return best

    def refine(self, alphas: Float, share: float, around: Float) -> NDArray[np.intp]:
        """The highest lines at each alpha, sought from those of some epsilons.

        The gaps beside them are cut into parts until no line between can rise above them: as a
        function of the slope the height at alpha is concave, below the extended chords of its
        neighbors.
        """
        best = self._climbed(alphas, np.searchsorted(self.epsilons, around))
        for _ in range(_MOST_ROUNDS):
            close = share * np.maximum(self.values(alphas, best), 0.0) + _LEAST
            new = []
            for side in (-1, 1):
                gain = self._gain(alphas, best, side)
                k = np.unique(best[gain > close])
                gap = self.epsilons[k + side] - self.epsilons[k]
                new.append(self.epsilons[k] + np.outer(np.arange(1, _PARTS) / _PARTS, gap))
            before, known = self.epsilons[best], self.epsilons.size
            self.add(_short(np.concatenate(new, axis=1)))
            if self.epsilons.size == known:
                break
            best = self._climbed(alphas, np.searchsorted(self.epsilons, before))
        return best

    def _gain(self, alphas: Float, best: NDArray[np.intp], side: int) -> Float:
        """How far a line between the best one and its neighbor might rise above the best."""
        # The line behind the best, the best, its neighbor, and the one beyond; at an end the last.
        offsets = side * np.arange(-1, 3)[:, None]
        places = np.clip(best + offsets, 0, self.epsilons.size - 1)
        heights = self.values(alphas, places)
        widths = np.abs(np.diff(self.slopes[places], axis=0))
        drop = heights[1] - heights[2]

        def fall(near: int, far: int) -> Float:
            """Of heights from one line to the next, per slope; not known beyond the last."""
            width = widths[min(near, far)]
            rate = (heights[near] - heights[far]) / np.maximum(width, 1e-300)
            return np.maximum(np.where(width > 0.0, rate, np.inf), 0.0)

        # Towards the neighbor they rise at most as from the other side of the best line, and back
        # from the neighbor at most as they go on falling beyond it.
        rise, back = fall(1, 0), fall(2, 3)
        with np.errstate(invalid="ignore", divide="ignore"):
            meeting = (back * widths[1] - drop) / (rise + back)
            found = np.where(np.isfinite(back), rise * meeting, rise * widths[1])
            found = np.where(np.isfinite(rise), found, back * widths[1] - drop)
        # No better line where there is no neighbor, where rise and fall are both 0, or unknown.
        return np.where(np.isnan(found), 0.0, np.maximum(found, 0.0))


def _short(epsilons: Float) -> Float:
    """Of 40 bits: a gap is cut from both ends, and lines that differ by rounding say nothing."""
    mantissa, exponent = np.frexp(epsilons)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, 40)), exponent - 40))
