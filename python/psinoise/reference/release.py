"""Integers of lattice laws and their release: twin of ``csrc/kernels/lattice*.cpp``."""

from __future__ import annotations

import copy
import itertools
import math
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.reference.stream import BLOCK, FurtherWords, Words64, first_words

Integers = NDArray[np.int64]

_ROUNDS = 20
_MOST_LISTED = 1 << 20
_MOST_DRAW_BITS, _HEAD_BITS = 63, 31
_MOST_NOISE, _MOST_DOUBLINGS = 1 << 62, 62
_MOST_VALUE, _MOST_INTEGER = 1 << 61, 1 << 62
# How far a sum of digits may reach, and the elements between those of one and of the next.
_MOST_SUM, _DIGIT_ELEMENTS = 1 << 60, 1 << 48
# Powers of two between which the grid is where values of one type are released as another.
_RANGES = {
    ("float64", "float64"): (-1000, 900),
    ("float32", "float32"): (-100, 60),
    ("int64", "float64"): (-61, 62),
    ("int64", "int64"): (0, 62),
}


class SecretKey(bytes):
    """32 bytes of the operating system, or given ones. Python cannot overwrite them."""

    def __new__(cls, key: bytes | None) -> SecretKey:
        if key is None:
            key = os.urandom(32)
        if len(key) != 32:
            raise ValueError("key must be 32 bytes")
        return super().__new__(cls, key)


def _shape_of(weights: Words64) -> tuple[int, int]:
    """How many columns the weights have, and of how many bits a draw is."""
    if weights.dtype != np.uint64 or not weights.flags.c_contiguous:
        raise TypeError("weights must be a C-contiguous uint64 array")
    if not 1 <= weights.size <= _MOST_LISTED:
        raise ValueError("weights must be 1 to 2^20 in number")
    columns = 1 << (weights.size - 1).bit_length()
    total = sum(weights.tolist())
    if total > 1 << _MOST_DRAW_BITS:
        raise ValueError("weights must add up to at most 2^63")
    if total < columns or total & (total - 1):
        raise ValueError("weights must add up to a power of two, at least one for each column")
    return columns, total.bit_length() - 1


def lattice_columns(weights: Words64) -> Words64:
    """Columns of the alias method, by one sweep with two pointers."""
    columns, draw_bits = _shape_of(weights)
    capacity = (1 << draw_bits) // columns
    listed = weights.tolist() + [0] * (columns - weights.size)
    # A full column takes itself as its alias.
    entries = list(range(columns))
    lights = iter([k for k in range(columns) if listed[k] <= capacity])
    heavies = [k for k in range(columns) if listed[k] > capacity]
    for heavy, following in itertools.zip_longest(heavies, heavies[1:]):
        left = listed[heavy]
        while left > capacity:
            light = next(lights)
            if listed[light] < capacity:
                entries[light] = listed[light] * columns | heavy
            left -= capacity - listed[light]
        if following is not None and left < capacity:
            entries[heavy] = left * columns | following
            listed[following] -= capacity - left
    return np.array(entries, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class LatticeTable:
    """A lattice law of integers with the columns of the alias method; immutable.

    ``above`` has the further digits of a sum, as pairs of a table and a shift; the last integer of
    a table with a ``rest`` is a draw from that.
    """

    weights: Words64
    tail: str
    repeated: int
    ratio: int
    rest: LatticeTable | None = field(default=None, init=False)
    above: tuple[tuple[LatticeTable, int], ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        columns, _ = self.shape
        count, repeated, ratio = self.weights.size, self.repeated, self.ratio
        if self.tail not in ("none", "translate", "dilate", "blocks"):
            raise ValueError("tail must be none, translate, dilate or blocks")
        if repeated != 0 if self.tail == "none" else not 1 <= repeated <= count:
            raise ValueError("repeated must be 1 to the number of weights where there is a tail")
        if self.tail == "dilate" and (count != columns or 2 * repeated != count):
            raise ValueError("repeated must be half the weights, a power of two, in a dilated tail")
        power = ratio >= 1 << 22 and ratio & (ratio - 1) == 0
        if self.tail == "blocks" and not (repeated + 1 == count and power):
            raise ValueError("repeated must be all weights but one, ratio 2^22 to 2^63, of blocks")

    @cached_property
    def shape(self) -> tuple[int, int]:
        """How many columns there are, and of how many bits a draw is."""
        return _shape_of(self.weights)

    @cached_property
    def entries(self) -> Words64:
        """The columns."""
        return lattice_columns(self.weights)

    @property
    def tail_first(self) -> int:
        """The first integer that stands for others."""
        return self.shape[0] if self.tail == "none" else self.weights.size - self.repeated

    @property
    def digits(self) -> list[tuple[LatticeTable, int]]:
        """The tables of a sum and their shifts."""
        return [(self, 0), *self.above]

    def with_rest(self, rest: LatticeTable) -> LatticeTable:
        """The same law, whose last integer stands for one of another."""
        if any(table.above or table.tail != "none" for table in (self, rest)):
            raise ValueError("rest must be a law without a tail or digits, for such a law")
        if rest.weights.size >= self.weights.size:
            raise ValueError("rest must have fewer integers")
        return self._with(tail="rest", repeated=1, rest=rest)

    def plus(self, other: LatticeTable, shift: int) -> LatticeTable:
        """The sum with ``2**shift`` times another law, the digits of which come after its own."""
        if not 0 <= shift <= 60:
            raise ValueError("shift must be 0 to 60")
        digits = [*self.digits, *((table, further + shift) for table, further in other.digits)]
        if any(table.tail not in ("none", "rest") for table, _ in digits):
            raise ValueError("tail must be none where laws are added")
        if sum((table.shape[0] - 1) << further for table, further in digits) > _MOST_SUM:
            raise ValueError("shift must keep the sum within 2^60")
        return self._with(above=tuple(digits[1:]))

    def _with(self, **fields: Any) -> LatticeTable:
        made = copy.copy(self)
        vars(made).update(fields)
        return made


def _listed(table: LatticeTable, words: Words64) -> Integers:
    columns, draw_bits = table.shape
    mask = np.uint64(columns - 1)
    entries = table.entries[(words & mask).astype(np.intp)]
    own = (words & np.uint64((1 << draw_bits) - 1)) < (entries & ~mask)
    return np.asarray((np.where(own, words, entries) & mask).astype(np.int64))


def lattice_choices(table: LatticeTable, words: Words64) -> Integers:
    """The listed integers, with their signs, that words choose."""
    if table.above:
        raise ValueError("table must have one digit")
    numbers = _listed(table, words)
    return np.where(words >> np.uint64(63) == 0, numbers, -numbers)


def _beyond(
    table: LatticeTable, listed: Integers, further: FurtherWords, which: NDArray[np.intp]
) -> Integers:
    """What integers of the tail stand for."""
    if table.rest is not None:
        return _listed(table.rest, further.next(which))
    if table.tail == "blocks":
        places = (further.next(which) // np.uint64(table.ratio)).astype(np.int64)
        return np.asarray(1 + (listed - 1) * (2**64 // table.ratio) + places)
    most = np.full_like(listed, _MOST_DOUBLINGS)
    if table.tail == "translate":
        most = (_MOST_NOISE - listed) // table.repeated + 1
    copies, going = np.zeros_like(listed), np.arange(listed.size)
    while going.size:
        going = going[copies[going] < most[going]]
        going = going[further.next(which[going]) < np.uint64(table.ratio)]
        copies[going] += 1
    if table.tail == "translate":
        return np.asarray(np.minimum(listed + copies * table.repeated, _MOST_NOISE))
    within = listed < _MOST_NOISE >> copies
    wide = np.flatnonzero(within & (copies > 0))
    low = np.zeros_like(listed)
    low[wide] = further.next(which[wide]) >> (64 - copies[wide]).astype(np.uint64)
    return np.asarray(np.where(within, (listed << copies) + low, _MOST_NOISE))


def _draw_digit(table: LatticeTable, key: bytes, first: int, count: int) -> Integers:
    """Integers by draws whose upper bits are those of first words, the lower ones of others."""
    words: Words64 = first_words(key, _ROUNDS, first, count, 32).astype(np.uint64)
    further = FurtherWords.of_range(key, _ROUNDS, first, count)
    seconds = further.next(np.arange(count))
    columns, draw_bits = table.shape
    column_mask, column_bits = np.uint64(columns - 1), np.uint64(columns.bit_length() - 1)
    positions = (words & np.uint64((1 << min(draw_bits, _HEAD_BITS)) - 1)) >> column_bits
    if draw_bits > _HEAD_BITS:
        lower_bits = draw_bits - _HEAD_BITS
        positions = positions << np.uint64(lower_bits) | seconds >> np.uint64(64 - lower_bits)
    numbers = _listed(table, positions << column_bits | words & column_mask)
    tail = np.flatnonzero(numbers >= table.tail_first)
    numbers[tail] = _beyond(table, numbers[tail], further, tail)
    return np.where(words >> np.uint64(31) == 0, numbers, -numbers)


def _draw(law: LatticeTable, key: bytes, first: int, count: int) -> Integers:
    total = np.zeros(count, np.int64)
    for place, (table, shift) in enumerate(law.digits):
        total += _draw_digit(table, key, place * _DIGIT_ELEMENTS + first, count) << shift
    return total


def lattice_noise(table: LatticeTable, key: bytes, first: int, out: Integers, threads: int) -> None:
    """Integers of elements ``first, first + 1, ...`` of the stream of ``key``."""
    del threads
    flat = out.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        part[:] = _draw(table, key, first + start, part.size)


def _snapped(x: NDArray[Any], grid: float, low: float, high: float) -> Integers:
    """``floor(x / grid + 1/2)`` of values within bounds and 2**61 cells, in rational arithmetic."""
    numerator, denominator = grid.as_integer_ratio()
    most = float(_MOST_VALUE) * grid
    low, high = max(low, -most), min(high, most)
    if x.dtype.kind == "i":
        clipped = np.clip(
            x, max(math.ceil(low), -_MOST_INTEGER), min(math.floor(high), _MOST_INTEGER)
        )
        pairs = ((value, 1) for value in clipped.tolist())
    else:
        # NaN fails the comparison.
        values = np.where(x >= low, np.minimum(x.astype(np.float64), high), low)
        pairs = (value.as_integer_ratio() for value in values.tolist())
    return np.array(
        [(2 * n * denominator + d * numerator) // (2 * d * numerator) for n, d in pairs],
        dtype=np.int64,
    )


def _converted(numbers: Integers, grid: float, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "i":
        most = (1 << 62) // int(grid)
        return np.asarray(np.clip(numbers, -most, most) * np.int64(grid))
    return np.asarray((numbers.astype(np.float64) * grid).astype(dtype))


def all_finite(x: NDArray[Any]) -> bool:
    """Whether all values are finite; takes as long wherever one is not."""
    if x.dtype not in (np.float64, np.float32) or not x.flags.c_contiguous:
        raise TypeError("x must be a C-contiguous float64 or float32 array")
    return bool(np.count_nonzero(np.isfinite(x)) == x.size)


def _check(
    x: NDArray[Any], out: NDArray[Any], dtype: np.dtype[Any], grid: float, low: float, high: float
) -> None:
    if x.size != out.size:
        raise ValueError("arrays must have the same size")
    if (x.dtype.name, dtype.name) not in _RANGES:
        raise TypeError("x and out must be float64, float32 or int64")
    least, most = _RANGES[x.dtype.name, dtype.name]
    if not 2.0**least <= grid <= 2.0**most:
        raise ValueError("grid must be in the range of x and out")
    if not low <= high:
        raise ValueError("low must be at most high")


def lattice_cells(x: NDArray[Any], grid: float, low: float, high: float, out: Integers) -> None:
    """Values within bounds, rounded half up to multiples of a grid, counted in these."""
    if x.dtype.kind != "f":
        raise TypeError("x must be float64 or float32")
    _check(x, out, x.dtype, grid, low, high)
    with np.errstate(all="ignore"):
        out.reshape(-1)[...] = _snapped(x.reshape(-1), grid, low, high)


def lattice_release(
    table: LatticeTable,
    key: bytes,
    first: int,
    x: NDArray[Any],
    grid: float,
    low: float,
    high: float,
    out: NDArray[Any],
    threads: int,
) -> None:
    """Values within bounds, rounded half up to multiples of a grid, plus noise."""
    _check(x, out, out.dtype, grid, low, high)
    if out.dtype.kind == "i" and not grid.is_integer():
        raise ValueError("grid must be whole for integer results")
    noise = np.empty(x.size, np.int64)
    lattice_noise(table, key, first, noise, threads)
    with np.errstate(all="ignore"):
        total = _snapped(x.reshape(-1), grid, low, high) + noise
        bounded = np.clip(total, -_MOST_VALUE, _MOST_VALUE)
        out.reshape(-1)[...] = _converted(bounded, grid, out.dtype)
