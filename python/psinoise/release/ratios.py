"""Masses whose integer weights lose no more than the law does, whatever the shift.

The largest loss of a law is a ratio of masses, and what there is of epsilon where delta is 0 or
tiny. Rounding weights of ``2**24`` to whole numbers moves a ratio by ``2**-24``, which is much of a
loss that is small itself. So what is rounded must leave room: if ``w[k] / p[k]`` does not decrease
in ``k`` and neither ``w`` nor ``p`` increases, then for ``k < l``

    ``w[k] / w[l] <= p[k] / p[l]``,

and every loss of ``w`` is at most the loss of ``p`` there, for every shift: neither a shift nor the
sensitivity need be known.

*Geometric tails* (`raised`). Masses fall by ``q`` in a period of ``r`` cells from some place on,
and the last ``r`` listed weights are continued by copies. Let ``d`` run through the *drops*, where
``p[d]`` is below ``p[d - 1]``, and let

    ``c[k] = A (1 + sum over drops d <= k of u / p[d])``,   ``v[k] = p[k] c[k]``,

in units of one word of ``2**63``, and in the tail ``v`` falls by ``rho = q c[m] / c[m - r]`` from
copy to copy, where ``m`` is the number of listed integers and ``p[m] = q p[m - r]``. Rounding a
weight down, that of a copy, and making seams non-increasing take away at most three words,
relative to the copy, and ``u = 4``. For ``k < l`` with a drop between them the last one, ``d``, has
``p[d] = p[l]``, and ``c[l] - 3 / p[l] >= c[d - 1] >= c[k]``, if ``A`` is at least 3/4: so
``w[k] / w[l] <= v[k] / (v[l] - 3) <= p[k] / p[l]``. With no drop between them both are all but
equal. The weight of 0 is what is left, at most ``A p[0]``: ``A`` is such that the others have as
much as that, less three words each.

Weights are larger than masses by some ``u`` words for each drop within the length in which masses
fall to a half: all moved together are ``2**-40`` of the words for Laplace noise on a grid of a
128-th of its scale, and ``2**-24`` where a table is as long as it can be.

*Periods that are no whole number of cells.* Of a law that falls by ``q`` in a period of ``z`` cells
``r`` is ``z`` rounded up. A shift of up to ``n z`` cells is one of up to ``n r``, and leads to the
same copy or at most ``n`` further, less what the place within the period loses: masses do not
increase, so that ``k + J <= k + n r`` has at least ``q**n`` of the mass of ``k``.

*Laws that are not unimodal* are raised too, which bounds their losses outwards, ``k < l``.

*Power laws* (`joined`). The mass of copy ``i`` of entry ``j`` is spread over ``2**i`` integers.
With the masses of the law and the share of its tail copies do not quite meet where they join. This
is a step, which may lose more than the law does anywhere. So the last half is multiplied by
``1 + b (j - h) / h`` for ``h <= j < 2 h``, and ``rho`` is what makes copies meet as the law does,

    ``rho = (1 + b) (p[2 h] + p[2 h + 1]) / p[h]``,

with the ``b``, well below 1, for which the tail has as much as that of the law:
``(M + b N) / (1 - rho) = M / (1 - share)`` for ``M = sum p[j]``, ``N = sum p[j] (j - h) / h``,
which is linear in ``b``.

*Power laws whose sums are accounted* (`covering`). There the price is not that of a ratio: it is
how much rarer than the law any integer is (``psinoise.accounting.sums``), and bending may make
integers rarer. So the last half is raised to the power law through its first mass, and the ratio
is at least that of masses in the first copy, and that of the law in the end: with ``v[h] = p[h]``
copies of ``h`` have at least the mass of the law at ``2 h``, and those of ``j > h`` fall from ``h``
on no faster than the law does in the end. What is missing all the same is computed there, from the
integers, so that nothing rests on this. Of a law whose sums are not accounted it would be wrong to
raise: its tail is joined from where it is a power to 2 %, and would be that much too heavy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core

__all__ = ["LEAST_MASS", "covering", "joined", "raised"]

Float = NDArray[np.float64]

_WORDS = 2.0**63
# The room that a drop makes, in words, of which roundings take no more than three.
_ROOM, _TAKEN = 4.0, 3.0
# Masses that differ by less, relatively, are equal but for their rounding.
_EQUAL = 2.0**-40
# Of sums, and of ratios.
_SUM_ROUNDING, _RATIO_ROUNDING = 2.0**-50, 2.0**-50

#: A mass of a listed integer is at least this, of 1: the room for a drop is little of it.
LEAST_MASS = 2.0**-53


def raised(masses: Float, repeated: int, fall: float) -> tuple[Float, float]:
    """Masses, and the ratio of a geometric tail, that whole numbers may be made of.

    Parameters
    ----------
    masses
        of ``|K| = 0, 1, ...``, not increasing but for the first, which has one sign; the last
        ``repeated`` without those of their copies
    repeated, fall
        the cells of a period, and by what masses fall in it

    Returns
    -------
    masses, ratio
        In words, to be rounded down after the last ``repeated`` were divided by ``1 - ratio``; that
        of 0 is what is left.
    """
    start = masses.size - repeated
    whole = _total(masses, repeated, fall)
    p = np.maximum(masses * (_WORDS / whole), LEAST_MASS * _WORDS)
    next_one = min(fall * float(p[start]), float(p[-1]))
    # The mass of 0 has one sign, those of all others two.
    before = np.concatenate([[p[0], 2.0 * p[0]], p[1:-1]])[: p.size]
    c = 1.0 + np.cumsum(np.where(np.abs(p / before - 1.0) > _EQUAL, _ROOM / p, 0.0))
    # The seam between copies falls as the masses do, with the room that was made since, and with
    # its own if it is a drop; the next mass may be 0.
    drop = abs(next_one / float(p[-1]) - 1.0) > _EQUAL
    seam = next_one * float(c[-1]) + (_ROOM if drop else 0.0)
    ratio = seam / (float(p[start]) * float(c[start])) * (1.0 + _RATIO_ROUNDING)
    listed = p * c
    share = _WORDS * (1.0 + _SUM_ROUNDING) + _TAKEN * p.size
    return listed * (share / _total(listed, repeated, ratio)), ratio


def _total(masses: Float, repeated: int, ratio: float) -> float:
    """The sum of masses and of all copies of the last ones."""
    start = masses.size - repeated
    return math.fsum(masses[:start].tolist()) + math.fsum(masses[start:].tolist()) / (1.0 - ratio)


def joined(masses: Float, beyond: Float, share: float) -> tuple[Float, float]:
    """Masses, and the ratio of a dilated tail, whose copies meet as those of the law do.

    Parameters
    ----------
    masses
        of ``|K| = 0, 1, ..., 2 h - 1``
    beyond
        of ``2 h`` and ``2 h + 1``
    share
        what is at ``2 h`` and beyond of what is at ``h`` and beyond
    """
    half = masses.size // 2
    tail, along = masses[half:], np.arange(half) / half
    step = float(beyond[0] + beyond[1]) / float(tail[0])
    total = math.fsum(tail.tolist())
    moment = math.fsum((tail * along).tolist())
    bend = total * (share - step) / (moment * (1.0 - share) + step * total)
    found = masses.copy()
    found[half:] *= 1.0 + bend * along
    return found, step * (1.0 + bend)


def covering(masses: Float, index: float) -> Float:
    """Masses of ``|K| = 0, 1, ..., 2 h - 1``, from ``h`` on nowhere below the power law of the
    index of a tail through that of ``h``."""
    half = masses.size // 2
    places = np.arange(float(half), float(masses.size)) / half
    power = core.exponential(-(1.0 + index) * core.logarithm(places), np.zeros_like(places))
    return np.append(masses[:half], np.maximum(masses[half:], masses[half] * power))
