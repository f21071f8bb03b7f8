"""Whether a table of integers costs no more than its law, in any composition and under sampling.

A table has whole words for weights, and one tail for all that it does not list: a geometric one, or
copies of a power law, which are blocks of equal probability. Its losses are not those of a law
without a largest loss. So one profile is compared with the other, at every epsilon:

    ``delta(t) = sup over events A of P(A) - t Q(A)``,   ``t = exp(epsilon) >= 1``,

with ``Q`` the law of the noise and ``P`` that law moved by the shift. It is convex in ``t``.

*The law, from below.* Any event is a bound: a line ``P(A) - t Q(A)``. Taken are intervals of whole
cells about the one with the largest ratio of ``P`` to ``Q``, which grow to either side as ratios
fall; far cells are put together, and the last has all that is beyond. A line is used from the ratio
at which its interval was reached to the next one, and the first where the largest ratio is, beyond
which a profile is 0.

*The table, exactly.* Its profile is a sum over the pieces of ``psinoise.release.pieces``, convex
too: if it is not above a line at the two ends of an interval of ``t``, it is not between them. So
all that is asked is asked at the ends, and nothing beyond the largest ratio of the table.

*Enough.* Both laws are symmetric, so that one direction has the profile of the other, and this for
``t < 1`` too. Both are unimodal, so that the largest shift is the worst one. If the table is
nowhere above, the pair of the law dominates that of the table, and so it does in all compositions
and samples (Zhu, Dong and Wang, AISTATS 2022, theorems 10 and 11).

*Rounding.* Tails of laws are right to `_LAW` of themselves, probabilities of a table to 4 ulp, and
sums of n numbers to some 2 sqrt(n) ulp: all is charged, to the disadvantage of the table. Where an
event reaches beyond the median of the law that is moved, its complement is compared, so that noise
much narrower than the sensitivity has its digits.

*Not decided* are shifts of more than `_LONGEST` cells, and laws that have less than `_LEAST` beyond
half the shift (Gaussian noise below a 71st of the sensitivity, of an epsilon above 600): a power
law is as wide as it can be there, others as little as they can be.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.release.pieces import pieces
from psinoise.release.weights import WIDER, Law, Weights, weights_of

__all__ = ["Lines", "followed", "follows", "lines_of"]

Float = NDArray[np.float64]

# Of tails of laws, relative.
_LAW = 2.0**-40
# Masses of cells that are looked at.
_LEAST = 1e-280
# Cells of the law are put together from where the table has copies, so many to an octave.
_OCTAVE, _END = 16, 61
# Longer shifts take too many pieces: those of noise below a 1000th of the sensitivity.
_LONGEST = 1 << 17


class Lines(NamedTuple):
    """Lower bounds ``p - t q`` of a profile, each for ``t`` from ``low`` to ``high``; of ``p``
    1 is left out where ``whole``."""

    p: Float
    whole: NDArray[np.bool_]
    q: Float
    low: Float
    high: Float


def followed(law: Law, grid: float, cells: int) -> Weights:
    """The weights of a law at a shift of so many cells, 0 where it is not known; those of a law
    without a largest loss are of the least wide noise whose profile is nowhere above its own.

    Raises
    ------
    DomainError
        as `weights_of`
    """
    made = weights_of(law, grid, cells)
    if made.tail in ("none", "blocks") or (made.tail == "translate" and law.decay > 0.0):
        return made
    if 0 < cells <= _LONGEST:
        lines = lines_of(law, grid, cells, made.listed.size)
        for wider in WIDER if lines.high.size else ():
            tried = weights_of(law, grid, cells, wider)
            if follows(tried, cells, lines):
                return tried
    return made if made.tail == "translate" else weights_of(law, grid, cells, WIDER[-1])


def lines_of(law: Law, grid: float, cells: int, listed: int) -> Lines:
    """Those of a law rounded to a grid and a shift of so many cells."""
    near = listed + cells
    far = np.exp2(np.arange(np.log2(near), _END, 1.0 / _OCTAVE))
    edges = np.append(np.arange(cells // 2 + 1.0, near), np.floor(far[1:]))
    base = np.append(_signed(law, grid, edges, near), 0.0)
    moved = np.append(_signed(law, grid, edges - cells, near), 0.0)
    left_of = np.append(edges - cells < 1.0, False)
    # Further out tails are too small for digits: the last cell has all of them.
    kept = int(np.append(base[:-1] - base[1:] > _LEAST, False).argmin()) + 1
    base, moved, left_of = base[:kept], moved[:kept], left_of[:kept]
    base[-1], moved[-1], left_of[-1] = 0.0, 0.0, False
    ratio = (np.diff(moved) + np.diff(left_of.astype(np.float64))) / np.diff(base)
    peak = int(np.argmax(ratio)) if kept > 1 else 0
    falling = np.append(
        np.minimum.accumulate(ratio[peak::-1])[:0:-1], np.minimum.accumulate(ratio[peak:])
    )
    order = np.lexsort((np.abs(np.arange(ratio.size) - peak), -falling))
    order = order[falling[order] > 1.0]
    left, right = np.minimum.accumulate(order), np.maximum.accumulate(order) + 1
    p, q = (part[left] - part[right] for part in (moved, base))
    p -= 2.0 * _LAW * (np.abs(moved[left]) + np.abs(moved[right]))
    q += 2.0 * _LAW * base[left]
    high = falling[order]
    return Lines(p, left_of[left] & ~left_of[right], q, np.append(high, 1.0)[1:], high)


def _signed(law: Law, grid: float, k: Float, near: int) -> Float:
    """``P(K >= k)`` for whole numbers, one of which is ``near``, less 1 where ``k < 1``; to
    `_LAW` of itself."""
    ahead = np.where(k >= 1.0, k, 1.0 - k)
    if law.own_grid is None:
        tail = np.asarray(law.ccdf((ahead - 0.5) * grid), dtype=np.float64)
    else:
        # One by one tails take long.
        masses = 0.5 * law.lattice_masses(grid, 1, near)
        listed = np.append(masses, law.ccdf(np.array([near - 0.5])))[::-1].cumsum()[::-1]
        beyond = ahead > near
        tail = listed[np.minimum(ahead, near).astype(np.int64) - 1]
        tail[beyond] = law.ccdf(ahead[beyond] - 0.5)
    return np.where(k >= 1.0, tail, -tail)


def follows(weights: Weights, cells: int, lines: Lines) -> bool:
    """Whether the profile of a table is nowhere above the lines."""
    moved, base = pieces(weights, cells)
    there = (moved > 0.0) | (base > 0.0)
    moved, base = moved[there], base[there]
    with np.errstate(divide="ignore"):
        ratio = moved / base
    order = np.argsort(-ratio, kind="stable")
    rounding = 2.0**-48 + 2.0**-50 * math.sqrt(order.size)
    p, q = (np.append(0.0, _sums(part[order])) for part in (moved, base))
    rest = np.append(_sums(moved[order[::-1]])[::-1], 0.0)
    falling, largest = -ratio[order], float(ratio.max()) * (1.0 + 2.0**-48)
    p, q, rest = p * (1.0 + rounding), q * (1.0 - rounding), rest * (1.0 - rounding)
    asked = lines.low < largest
    whole = lines.whole[asked]
    for t in (lines.low[asked], np.minimum(lines.high[asked], largest)):
        above = np.searchsorted(falling, -t)
        found = np.where(whole, -rest[above], p[above])
        if (found - t * q[above] > lines.p[asked] - t * lines.q[asked]).any():
            return False
    return bool(asked.any())


def _sums(parts: Float) -> Float:
    """Of the first 1, 2, ... of them; to ``2**-51 sqrt(n)`` of itself for n positive ones."""
    side = math.isqrt(max(parts.size, 1) - 1) + 1
    rows = np.append(parts, np.zeros(side * side - parts.size)).reshape(side, side).cumsum(axis=1)
    rows[1:] += rows[:-1, -1].cumsum()[:, np.newaxis]
    return rows.ravel()[: parts.size]
