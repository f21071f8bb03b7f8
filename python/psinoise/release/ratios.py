"""Masses whose integer weights lose no more than the law does, whatever the shift.

The largest loss of a law is a ratio of masses, and what there is of epsilon where delta is 0 or
tiny. Rounding weights of ``2**24`` to whole numbers moves a ratio by ``2**-24``, which is much of a
loss that is small itself. So what is rounded must leave room.

*A few words for each integer* (`raised`). Let ``R`` be the largest ratio of two masses, in either
order, that are up to some shift apart, ``p`` masses in words of ``2**63``, ``|K| = 0`` counted
twice as the others are, and ``w[k] = floor(p[k] + U)`` with ``U >= R / (R - 1)``. From
``p[k] <= R p[l]``

    ``w[k] <= p[k] + U <= R (p[l] + U - 1) < R w[l]``,

whatever the shape of the law. ``R`` grows with the shift, so that the ``R`` of neighbors will do
for all: neither a shift nor the sensitivity need be known. All words together are ``2**-25`` of
``2**63`` where a table is as long as it can be, and ``2**-41`` for Laplace noise on a grid of a
128-th of its scale. Raising all masses to a least one first (`LEAST_MASS`) makes no ratio larger.

*Geometric tails.* Masses ``P`` fall by ``q`` in a period of ``r`` cells from some place on, and the
last ``r`` listed weights are continued by copies. They are raised too, the least of them is ``b``,
and ``rho = (q b + U) / (b + U)`` is by how much copies fall. Shifts are of a period at least, so
that ``R >= q**-n`` for one of ``n`` periods.

* *A copy is not too rare.* As ``(q x + U) / (x + U)`` decreases in ``x`` and is above ``q``,
  ``(x + U) rho**n >= q**n x + q**(n - 1) U`` for ``x >= b``. Let ``P[k] <= R q**n P[l]`` for some
  ``k`` that is listed. Copy ``n`` of ``l`` is ``n - 1`` periods away at least: ``R q**(n - 1)`` is
  at least 1, and ``R`` times the copy is at least ``P[k] + U``.
* *Nor too likely.* ``q**n b + U`` falls by less from period to period: copies of ``b`` are at most
  that. Those of another ``x <= b / q`` are larger by ``(x - b) rho**n``, and above ``q**n x + U``
  by at most ``n q**(n - 1) (1 - q) U (x / b - 1) <= (1 / q - 1) U <= (R - 1) U``.
* Within a copy, and between copies, it is as in the first one.

*Masses that are not exact.* A law's own error of masses may make ratios larger. So masses are
raised to a power just below 1 first, by which the logarithm of ``R`` falls by more than that error,
and those of all other ratios by the same share: what is said of ``R`` here is then true of its
power.

Roundings, of weights and of seams that must not increase, take up to three words of a mass; ``U``
is such that ``(1 - q) U`` and ``(1 - 1 / R) U`` are four. (What is added up is more than ``2**63``
by that, so that the largest weight, which has what is left, is not raised by it.) A period of
masses that fall to ``q`` of the first at its end, as stairs do, has no room for ``rho``: there it
is what the last mass is of the first, by which the next period begins no higher. Where the last
``r`` masses are below the least mass the shape of the tail is lost: it falls by ``sqrt(q)``, since
a shift of ``n`` periods leads to copies ``n + 1`` apart at most, and ``q**((n + 1) / 2) >= q**n``.

*Periods that are no whole number of cells.* Of a law that falls by ``q`` in a period of ``z`` cells
``r`` is ``z`` rounded up. A shift of up to ``n z`` cells is one of up to ``n r``, and leads to the
same copy or at most ``n`` further, less what the place within the period loses: masses of tails do
not increase, so that ``k + J <= k + n r`` has at least ``q**n`` of the mass of ``k``. Where stairs
are shorter than a cell, or of no whole number of them, listed masses do not fall evenly, and the
seam may lose up to a few percent of a small loss more: of `Staircase` at sensitivities of many
steps, and on grids of one's own.

*Power laws* (`joined`). The mass of copy ``i`` of entry ``j`` is spread over ``2**i`` integers.
With the masses of the law and the share of its tail copies do not quite meet where they join. This
is a step, which may lose more than the law does anywhere. So the last half is multiplied by
``1 + b (j - h) / h`` for ``h <= j < 2 h``, and ``rho`` is what makes copies meet as the law does,

    ``rho = (1 + b) (p[2 h] + p[2 h + 1]) / p[h]``,

with the ``b``, well below 1, for which the tail has as much as that of the law:
``(M + b N) / (1 - rho) = M / (1 - share)`` for ``M = sum p[j]``, ``N = sum p[j] (j - h) / h``,
which is linear in ``b``.

*Power laws whose sums are accounted* (`covering`). There the price is not that of a ratio: it is
how much rarer than the law any integer is (``psinoise.mechanisms.sums``), and bending may make
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

__all__ = ["LARGEST_RATIO", "LEAST_MASS", "covering", "joined", "raised"]

Float = NDArray[np.float64]

_WORDS = 2.0**63
# The room that is made, in words, of which roundings take no more than three.
_ROOM, _TAKEN = 4.0, 3.0
# Of a ratio of masses, as they are computed, and of what is left for the largest weight: these are
# right to a tenth of that.
_MASS_ERROR = 2.0**-36
_LEAST_FALL = 1e-300
# Masses that rise by no more are level.
_LEVEL = 2.0**-28
# Of sums, and of ratios.
_SUM_ROUNDING, _RATIO_ROUNDING = 2.0**-50, 2.0**-50

#: Copies are counted one by one: not more than 2**20 in the mean.
LARGEST_RATIO = 1.0 - 2.0**-20

#: A mass of a listed integer is at least this, of 1.
LEAST_MASS = 2.0**-53


def raised(masses: Float, repeated: int, fall: float) -> tuple[Float, float]:
    """Masses, and the ratio of a geometric tail, that whole numbers may be made of.

    Parameters
    ----------
    masses
        of ``|K| = 0, 1, ...``, where the first has one sign; the last ``repeated`` without those of
        their copies
    repeated, fall
        the cells of a period, and by what masses fall in it

    Returns
    -------
    masses, ratio
        In words, to be rounded down after the last ``repeated`` were divided by ``1 - ratio``; that
        of 0 is what is left.
    """
    start = masses.size - repeated
    p = masses / _total(masses, repeated, fall)
    if p[start:].min() < LEAST_MASS:
        fall = math.sqrt(fall)
    # One that underflows is as good as this.
    p, fall = np.maximum(p, LEAST_MASS), max(fall, _LEAST_FALL)
    # The mass of 0 has one sign, those of all others two.
    p[0] *= 2.0
    steps = np.append(p[1:], fall * p[start]) / p
    steepest = min(float(steps.min()), 1.0 / float(steps.max()))
    power = 1.0 - _MASS_ERROR / -math.log(steepest)
    p, fall = _powers(p, power), float(_powers(np.array([fall]), power)[0])
    p *= _WORDS / (_total(p, repeated, fall) - 0.5 * p[0])
    steepest **= power
    room = _ROOM / (1.0 - max(steepest, fall))
    least = float(p[start:].min())
    ratio = (fall * least + room) / (least + room) * (1.0 + _RATIO_ROUNDING)
    listed = p + room
    listed[0] /= 2.0
    if (np.diff(listed[start:]) <= _LEVEL * listed[start:-1]).all():
        # Of masses that fall no copy begins above where the one before ends.
        ratio = min(ratio, float(listed[-1] / listed[start]))
    ratio = min(ratio, LARGEST_RATIO)
    share = _WORDS * (1.0 + _SUM_ROUNDING) + _TAKEN * p.size
    return listed * (share / _total(listed, repeated, ratio)), ratio


def _powers(masses: Float, power: float) -> Float:
    """The same at every level, and on every machine."""
    return core.exponential(power * core.logarithm(masses), np.zeros_like(masses))


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
