"""Pieces of a lattice law on which the privacy loss of a shift is constant.

With ``p`` the law and ``T_J p`` the law moved by ``J`` cells, the reflection ``k -> J - k`` maps
``(T_J p, p)`` to ``(p, T_J p)``: pieces are made of ``k > J / 2``, and those of ``k < J / 2`` are
the same with the two laws exchanged. ``k = J / 2``, where there is one, has the loss 0.

Beyond the listed integers and the shift, where ``k`` and ``k - J`` are both in the tail, ratios
recur, and integers of one ratio are added up in closed form:

* *translate*: the ratio at ``k`` is that at ``k + repeated``. The sum over ``k + i repeated``,
  ``i = 0, 1, ...``, is ``1 / (1 - rho)`` times the first term, for both laws.
* *dilate*: take ``2**i >= J`` and ``n = j 2**i``, where a block of integers of equal probability
  begins. On ``n <= k < n + J`` the moved law is still in the block before and the ratio is that of
  the two blocks, whatever ``i`` is; on the rest of the block it is 1. The probabilities of one
  ``j`` fall by ``rho / 2`` from ``i`` to ``i + 1``, and so do ``J`` of them.

In *blocks* the law is constant from edge to edge, and pieces are what edges of either law leave.

So nothing is left out, and nothing is merged that has not the same ratio.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.errors import DomainError
from psinoise.numerics import double_double as dd
from psinoise.numerics.distinct import distinct
from psinoise.release.weights import DRAWS, ONE, Weights

__all__ = ["log_pieces", "multiples", "pieces", "probabilities"]

Float = NDArray[np.float64]
Integers = NDArray[np.int64]

# Below this logarithm probabilities are subnormal.
_LOG_NORMAL = -708.0
# Digits of copies.
_BITS = 8
_DIGIT = (1 << _BITS) - 1
# Integers that are pieces one by one.
_MOST_PIECES = 1 << 24


def multiples(name: str, value: float, grid: float) -> int:
    """How many cells a length is, which is that many times the grid, rounded to float64.

    Raises
    ------
    DomainError
        If it is no multiple of the grid other than 0.
    """
    cells = round(Fraction(value) / Fraction(grid))
    if cells == 0 or float(cells * Fraction(grid)) != value:
        raise DomainError(f"{name} must be a multiple of {grid!r} other than 0, got {value!r}")
    return cells


def probabilities(weights: Weights, k: Integers) -> Float:
    """``P(K = k)`` for ``k >= 0``; relative error below 4 ulp."""
    listed, tail, repeated, _ = weights
    start = listed.size - repeated
    shares = listed / (2.0 * DRAWS)
    shares[0] *= 2.0
    found = np.where(k < listed.size, shares[np.minimum(k, listed.size - 1)], 0.0)
    if tail == "none":
        return found
    beyond = k >= start
    over = k[beyond]
    if tail == "blocks":
        width = ONE // weights.ratio
        place = 1 + (over - 1) // width
        inside = place < listed.size
        found[beyond] = np.where(inside, shares[np.minimum(place, listed.size - 1)], 0.0) / width
        return found
    if tail == "translate":
        copies, place = np.divmod(over - start, repeated)
        found[beyond] = shares[start + place] * _falls(weights, copies)
        return found
    copies = np.frexp((over // repeated).astype(np.float64))[1].astype(np.int64) - 1
    most = int(copies.max(initial=0))
    falls = np.array([_dilated(weights, i) for i in range(most + 1)])
    found[beyond] = shares[over >> copies] * falls[copies]
    return found


def _dilated(weights: Weights, i: int) -> float:
    """What an integer of copy ``i`` has of its entry's share."""
    rho = Fraction(weights.ratio, ONE)
    return float((1 - rho) * (rho / 2) ** i)


def _falls(weights: Weights, copies: Integers) -> Float:
    """``(1 - rho) rho**copies``, by pairs of doubles: a factor for each digit of the copies."""
    high, low = _powers(weights.ratio, 0)
    digit, left, place = copies & _DIGIT, copies >> _BITS, 1
    total = high[digit], low[digit]
    while left.any():
        high, low = _powers(weights.ratio, place)
        digit, left, place = left & _DIGIT, left >> _BITS, place + 1
        total = dd.multiply(total, (high[digit], low[digit]))
    return np.asarray(total[0] + total[1])


@functools.lru_cache(maxsize=64)
def _powers(parts: int, place: int) -> dd.Pair:
    """``rho`` to the power of each digit at a place, those at the first one times ``1 - rho``."""
    step = _pair(parts)
    for _ in range(_BITS * place):
        step = dd.multiply(step, step)
    high, low = _pair(ONE - parts) if place == 0 else _pair(ONE)
    for _ in range(_BITS):
        more = dd.multiply((high, low), step)
        high, low = np.append(high, more[0]), np.append(low, more[1])
        step = dd.multiply(step, step)
    return high, low


def log_probabilities(weights: Weights, k: Integers) -> Float:
    """Logarithms of `probabilities`, of those that underflow too; right to some ulp."""
    with np.errstate(divide="ignore"):
        found = np.log(probabilities(weights, k))
    far = (found < _LOG_NORMAL) & (k >= weights.listed.size)
    if weights.tail == "translate" and far.any():
        copies, place = np.divmod(k[far] - weights.listed.size + weights.repeated, weights.repeated)
        stop = (ONE - weights.ratio) / ONE
        listed = weights.listed[weights.listed.size - weights.repeated :] / (2.0 * DRAWS)
        found[far] = np.log(listed[place] * stop) + copies * math.log1p(-stop)
    return found


def _pair(parts: int) -> dd.Pair:
    """A share of `ONE`, by its whole number of parts."""
    value = Fraction(parts, ONE)
    high = float(value)
    return np.array([high]), np.array([float(value - Fraction(high))])


def pieces(weights: Weights, cells: int) -> tuple[Float, Float]:
    """Probabilities of pieces under the law moved by ``cells`` and under the law.

    Raises
    ------
    DomainError
        If there are too many.
    """
    half = _half(weights, cells)
    with np.errstate(under="ignore"):
        moved = probabilities(weights, np.abs(half.starts - cells)) * half.sizes
        base = probabilities(weights, half.starts) * half.sizes
        level = probabilities(weights, half.middle)
    right = np.concatenate([moved, half.moved_far]), np.concatenate([base, half.base_far])
    return np.concatenate([*right, level]), np.concatenate([*right[::-1], level])


def log_pieces(weights: Weights, cells: int) -> tuple[Float, Float]:
    """Logarithms of the same; ``-inf`` only where the law has nothing."""
    half = _half(weights, cells)
    with np.errstate(divide="ignore"):
        sizes, far = np.log(half.sizes), (np.log(half.moved_far), np.log(half.base_far))
    moved = log_probabilities(weights, np.abs(half.starts - cells)) + sizes
    base = log_probabilities(weights, half.starts) + sizes
    level = log_probabilities(weights, half.middle)
    right = np.concatenate([moved, far[0]]), np.concatenate([base, far[1]])
    return np.concatenate([*right, level]), np.concatenate([*right[::-1], level])


class _Half(NamedTuple):
    """Pieces to the right of the middle: where they begin and how many integers they have, or how
    often a piece stands for others; both probabilities of those beyond; and the middle itself."""

    starts: Integers
    sizes: Float
    moved_far: Float
    base_far: Float
    middle: Integers


def _half(weights: Weights, cells: int) -> _Half:
    middle = np.arange(cells // 2, cells // 2 + 1 - cells % 2)
    if weights.tail == "dilate":
        return _Half(*_dilated_pieces(weights, cells), middle)
    none = np.empty(0)
    if weights.tail == "blocks":
        edges = np.append(0, 1 + np.arange(weights.repeated + 1) * (ONE // weights.ratio))
        return _Half(*_between(edges, cells, int(edges[-1]) + cells), none, none, middle)
    first, end = cells // 2 + 1, weights.listed.size + cells
    _limit(end - first)
    starts, sizes = np.arange(first, end), np.ones(end - first)
    if weights.repeated:
        # The last period stands for all that follow.
        sizes[-weights.repeated :] = ONE / (ONE - weights.ratio)
    return _Half(starts, sizes, none, none, middle)


def _limit(count: int) -> None:
    if count > _MOST_PIECES:
        raise DomainError(
            f"grid must be coarser, or noise wider: there are {count} pieces for this shift, and "
            f"at most {_MOST_PIECES} are accounted for"
        )


def _between(edges: Integers, cells: int, end: int) -> tuple[Integers, Float]:
    """Pieces of the right half up to an end, for blocks with these first integers: where they begin
    and how many integers they have."""
    points = np.concatenate([edges, edges + cells, cells - edges + 1, [cells // 2 + 1, end]])
    points = distinct(points[(points > cells // 2) & (points <= end)])
    return points[:-1], np.diff(points).astype(np.float64)


def _dilated_pieces(weights: Weights, cells: int) -> tuple[Integers, Float, Float, Float]:
    """First integers and sizes of pieces up to where ratios recur, and the sums beyond."""
    listed, half = weights.listed, weights.repeated
    octave = max(0, (cells - 1).bit_length())
    _limit(2 * half * (octave + 2))
    # Where blocks begin, up to beyond the last one that is a piece by itself.
    blocks = [np.arange(half)]
    blocks += [np.arange(half, 2 * half) << i for i in range(octave + 1)]
    edges = np.concatenate(blocks)
    starts, sizes = _between(edges, cells, (half << octave) + cells)

    # The first integers of the first block of this octave are among the pieces already.
    rho = Fraction(weights.ratio, ONE)
    ends = (1 - rho) * (rho / 2) ** octave / (1 - rho / 2) * cells
    shares = listed[half:] / (2.0 * DRAWS)
    moved_far = np.append(shares[:-1] * float(ends), shares[-1] * float(ends))
    base_far = np.append(shares[1:] * float(ends), shares[0] * float(ends * rho / 2))
    entries = listed[half:].tolist()
    level = Fraction(sum(entries), 2 * DRAWS) * (rho**octave - ends)
    return starts, sizes, np.append(moved_far, float(level)), np.append(base_far, float(level))
