"""Integers of lattice laws and their release: twin of ``csrc/kernels/lattice*.cpp``."""

from __future__ import annotations

import copy
import itertools
import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.reference.stream import FurtherWords, Words64, first_words

Integers = NDArray[np.int64]

_ROUNDS = 20
_BLOCK = 1 << 16
_MOST_LISTED = 1 << 20
_MOST_DRAW_BITS, _HEAD_BITS = 63, 31
_MOST_NOISE, _MOST_DOUBLINGS = 1 << 62, 62
_MOST_VALUE, _MOST_INTEGER = 1 << 61, 1 << 62
# How far a sum of digits may reach, and the elements between those of one and of the next.
_MOST_SUM, _DIGIT_ELEMENTS = 1 << 60, 1 << 48


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


class LatticeTable:
    """A lattice law of integers with the columns of the alias method; immutable.

    ``above`` has the further digits of a sum, as pairs of a table and a shift; the last integer of
    a table with a ``rest`` is a draw from that.
    """

    entries: Words64
    column_mask: int
    draw_mask: int
    tail_first: int
    tail: str
    repeated: int
    ratio: int
    last: int
    rest: LatticeTable | None
    above: tuple[tuple[LatticeTable, int], ...]

    def __init__(self, weights: Words64, tail: str, repeated: int, ratio: int) -> None:
        columns, draw_bits = _shape_of(weights)
        if tail not in ("none", "translate", "dilate", "blocks"):
            raise ValueError("tail must be none, translate, dilate or blocks")
        count = weights.size
        if repeated != 0 if tail == "none" else not 1 <= repeated <= count:
            raise ValueError("repeated must be 1 to the number of weights where there is a tail")
        if tail == "dilate" and (count != columns or 2 * repeated != count):
            raise ValueError("repeated must be half the weights, a power of two, in a dilated tail")
        power = ratio >= 1 << 22 and ratio & (ratio - 1) == 0
        if tail == "blocks" and not (repeated + 1 == count and power):
            raise ValueError("repeated must be all weights but one, ratio 2^22 to 2^63, of blocks")
        for name, value in (
            ("entries", lattice_columns(weights)),
            ("column_mask", columns - 1),
            ("draw_mask", (1 << draw_bits) - 1),
            ("tail_first", columns if tail == "none" else count - repeated),
            ("tail", tail),
            ("repeated", repeated),
            ("ratio", ratio),
            ("last", count - 1),
            ("rest", None),
            ("above", ()),
        ):
            object.__setattr__(self, name, value)

    def with_rest(self, rest: LatticeTable) -> LatticeTable:
        """The same law, whose last integer stands for one of another."""
        if any(table.above or table.tail != "none" for table in (self, rest)):
            raise ValueError("rest must be a law without a tail or digits, for such a law")
        if rest.last >= self.last:
            raise ValueError("rest must have fewer integers")
        made = copy.copy(self)
        for name, value in (("tail", "rest"), ("tail_first", self.last), ("rest", rest)):
            object.__setattr__(made, name, value)
        return made

    def plus(self, other: LatticeTable, shift: int) -> LatticeTable:
        """The sum with ``2**shift`` times another law, the digits of which come after its own."""
        if not 0 <= shift <= 60:
            raise ValueError("shift must be 0 to 60")
        digits = [*self.digits, *((table, further + shift) for table, further in other.digits)]
        if any(table.tail not in ("none", "rest") for table, _ in digits):
            raise ValueError("tail must be none where laws are added")
        if sum(table.column_mask << further for table, further in digits) > _MOST_SUM:
            raise ValueError("shift must keep the sum within 2^60")
        made = copy.copy(self)
        object.__setattr__(made, "above", tuple(digits[1:]))
        return made

    @property
    def digits(self) -> list[tuple[LatticeTable, int]]:
        """The tables of a sum and their shifts."""
        return [(self, 0), *self.above]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("LatticeTable is immutable")


def _listed(table: LatticeTable, words: Words64) -> Integers:
    mask = np.uint64(table.column_mask)
    entries = table.entries[(words & mask).astype(np.intp)]
    own = (words & np.uint64(table.draw_mask)) < (entries & ~mask)
    return np.asarray((np.where(own, words, entries) & mask).astype(np.int64))


def _with_sign(numbers: Integers, words: Words64) -> Integers:
    return np.where(words >> np.uint64(63) == 0, numbers, -numbers)


def lattice_choices(table: LatticeTable, words: Words64) -> Integers:
    """The listed integers, with their signs, that words choose."""
    if table.above:
        raise ValueError("table must have one digit")
    return _with_sign(_listed(table, words), words)


def _beyond(table: LatticeTable, listed: int, copies: int, word: int) -> int:
    if table.tail == "blocks" and listed > 0:
        return 1 + (listed - 1) * (2**64 // table.ratio) + word // table.ratio
    if table.tail == "dilate":
        if listed >= _MOST_NOISE >> copies:
            return _MOST_NOISE
        return (listed << copies) + (word >> (64 - copies) if copies else 0)
    return min(listed + copies * table.repeated, _MOST_NOISE)


def _copies(table: LatticeTable, listed: Integers, further: FurtherWords, tail: Any) -> Integers:
    """How often each integer of the tail, where it is among those listed, is moved on."""
    copies = np.zeros_like(listed)
    most = np.full_like(listed, _MOST_DOUBLINGS)
    if table.tail == "translate":
        most = (_MOST_NOISE - listed) // table.repeated + 1
    going = tail
    while going.size:
        going = going[copies[going] < most[going]]
        going = going[further.next(going) < np.uint64(table.ratio)]
        copies[going] += 1
    return np.asarray(copies[tail])


def _draw(law: LatticeTable, key: bytes, first: int, count: int) -> Integers:
    total = np.zeros(count, np.int64)
    for place, (table, shift) in enumerate(law.digits):
        total += _draw_digit(table, key, place * _DIGIT_ELEMENTS + first, count) << shift
    return total


def _completed(table: LatticeTable, heads: Words64, further: Words64) -> Words64:
    """Draws whose upper bits are those of first words, and the lower ones of other words."""
    column_bits = np.uint64(table.column_mask.bit_length())
    lower_bits = max(table.draw_mask.bit_length() - _HEAD_BITS, 0)
    positions = (heads & np.uint64(table.draw_mask & (1 << _HEAD_BITS) - 1)) >> column_bits
    if lower_bits:
        positions = positions << np.uint64(lower_bits) | further >> np.uint64(64 - lower_bits)
    return positions << column_bits | heads & np.uint64(table.column_mask)


def _draw_digit(table: LatticeTable, key: bytes, first: int, count: int) -> Integers:
    words: Words64 = first_words(key, _ROUNDS, first, count, 32).astype(np.uint64)
    negative = words >> np.uint64(31) == 1
    least = _completed(table, words, np.zeros(count, np.uint64))
    most = _completed(table, words, np.full(count, 2**64 - 1, np.uint64))
    numbers = _listed(table, least)
    thresholds = table.entries[(least & np.uint64(table.column_mask)).astype(np.intp)]
    thresholds &= ~np.uint64(table.column_mask)
    lowest = least & ~np.uint64(table.column_mask)
    highest = most | np.uint64(table.column_mask)
    open_ones = (lowest <= thresholds) & (thresholds <= highest)
    pending = np.flatnonzero(open_ones | (numbers >= table.tail_first))
    if pending.size:
        further = FurtherWords(key, _ROUNDS, pending.astype(np.uint64) + np.uint64(first))
        everywhere = np.arange(pending.size)
        listed = _listed(table, _completed(table, words[pending], further.next(everywhere)))
        copies = np.zeros_like(listed)
        tail = np.flatnonzero(listed >= table.tail_first)
        if table.rest is not None:
            listed[tail] = _listed(table.rest, further.next(tail))
            tail = tail[:0]
        low = np.zeros(pending.size, dtype=np.uint64)
        if table.tail == "blocks":
            low[tail] = further.next(tail)
            tail = tail[:0]
        copies[tail] = _copies(table, listed, further, tail)
        if table.tail == "dilate":
            moved = np.flatnonzero((copies > 0) & (listed < _MOST_NOISE >> copies))
            low[moved] = further.next(moved)
        numbers[pending] = [
            _beyond(table, *each)
            for each in zip(listed.tolist(), copies.tolist(), low.tolist(), strict=True)
        ]
    return np.where(negative, -numbers, numbers)


def lattice_noise(table: LatticeTable, key: bytes, first: int, out: Integers, threads: int) -> None:
    """Integers of elements ``first, first + 1, ...`` of the stream of ``key``."""
    del threads
    flat = out.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        size = min(_BLOCK, flat.size - start)
        flat[start : start + size] = _draw(table, key, first + start, size)


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
    flat, finite = x.reshape(-1), True
    for start in range(0, flat.size, _BLOCK):
        finite &= bool(np.isfinite(flat[start : start + _BLOCK]).all())
    return finite


def lattice_cells(x: NDArray[Any], grid: float, low: float, high: float, out: Integers) -> None:
    """Values within bounds, rounded half up to multiples of a grid, counted in these."""
    if x.size != out.size:
        raise ValueError("arrays must have the same size")
    least, most = _range_of(x.dtype, x.dtype)
    if x.dtype.kind != "f" or not 2.0**least <= grid <= 2.0**most:
        raise ValueError("grid must be in the range of x and out")
    if not low <= high:
        raise ValueError("low must be at most high")
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
    del threads
    if x.size != out.size:
        raise ValueError("arrays must have the same size")
    least, most = _range_of(x.dtype, out.dtype)
    if not 2.0**least <= grid <= 2.0**most:
        raise ValueError("grid must be in the range of x and out")
    if not low <= high:
        raise ValueError("low must be at most high")
    if out.dtype.kind == "i" and not grid.is_integer():
        raise ValueError("grid must be whole for integer results")
    values, flat = x.reshape(-1), out.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            size = min(_BLOCK, flat.size - start)
            noise = _draw(table, key, first + start, size)
            total = _snapped(values[start : start + size], grid, low, high) + noise
            bounded = np.clip(total, -_MOST_VALUE, _MOST_VALUE)
            flat[start : start + size] = _converted(bounded, grid, out.dtype)


def _range_of(x: np.dtype[Any], out: np.dtype[Any]) -> tuple[int, int]:
    """Powers of two between which the grid is where values of one type are released as another."""
    ranges = {
        ("float64", "float64"): (-1000, 900),
        ("float32", "float32"): (-100, 60),
        ("int64", "float64"): (-61, 62),
        ("int64", "int64"): (0, 62),
    }
    if (x.name, out.name) not in ranges:
        raise TypeError("x and out must be float64, float32 or int64")
    return ranges[x.name, out.name]
