"""Samples of piecewise constant laws: twin of ``csrc/kernels/cells.cpp``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.bits import double_from
from psinoise.reference.stream import FurtherWords, Words64, first_words
from psinoise.reference.variates import exponential_variates

Float = NDArray[np.float64]

_ROUNDS = 8
_BLOCK = 1 << 16
_TEST_MASK = np.uint64(0xFFF)
_ALIAS_MASK = np.uint64((1 << 20) - 1)
_ALIAS_BITS = np.uint64(20)
_ONE = 0x3FF0000000000000
_MOST_COLUMNS = 1 << 20


class CellTable:
    """Cells of ``|x|`` with the columns of the alias method; immutable."""

    entries: Words64
    fractions: Words64
    starts: Float
    widths: Float
    step: float
    column_bits: int
    tail_first: int
    tail_rate: float
    tail_period: float

    def __init__(
        self,
        entries: NDArray[np.uint64],
        fractions: NDArray[np.uint64],
        starts: Float,
        widths: Float,
        step: float,
        tail_first: int,
        tail_rate: float,
        tail_period: float,
    ) -> None:
        columns = entries.size
        cells = columns if step > 0.0 else starts.size
        if (
            not 1 <= columns <= _MOST_COLUMNS
            or columns & (columns - 1)
            or fractions.size != columns
        ):
            raise ValueError("entries and fractions must have one length, a power of two to 2**20")
        if not 1 <= cells <= columns or widths.size != starts.size:
            raise ValueError("starts and widths must have one length, at most that of entries")
        if ((entries & _ALIAS_MASK) >= np.uint64(cells)).any():
            raise ValueError("entries must name cells")
        if tail_first < cells and not tail_rate > 0.0:
            raise ValueError("tail_rate must be positive where there is a tail")
        padding = np.zeros(columns - starts.size)
        for name, value in (
            ("entries", entries.copy()),
            ("fractions", fractions.copy()),
            ("starts", np.concatenate([starts, padding])),
            ("widths", np.concatenate([widths, padding])),
            ("step", step),
            ("column_bits", columns.bit_length() - 1),
            ("tail_first", tail_first),
            ("tail_rate", tail_rate),
            ("tail_period", tail_period),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("CellTable is immutable")


def _columns(table: CellTable, words: Words64) -> NDArray[np.intp]:
    return np.asarray(words & np.uint64((1 << table.column_bits) - 1), dtype=np.intp)


def _tests(table: CellTable, words: Words64) -> Words64:
    return (words >> np.uint64(table.column_bits + 1)) & _TEST_MASK


def _points(table: CellTable, words: Words64, cells: NDArray[np.intp]) -> Float:
    bits = table.column_bits
    mask = np.uint64((1 << 64) - (2 << bits))
    half = np.uint64((1 << bits) | _ONE)
    position = double_from(((words >> np.uint64(12)) & mask) | half) - 1.0
    if table.step > 0.0:
        return np.asarray((cells.astype(np.float64) + (position - 0.5)) * table.step)
    return np.asarray(table.starts[cells] + table.widths[cells] * position)


def _with_sign(table: CellTable, x: Float, words: Words64) -> Float:
    sign = (words << np.uint64(63 - table.column_bits)) & np.uint64(1 << 63)
    return np.asarray(double_from(x.view(np.uint64) ^ sign) + 0.0)


def _settle(table: CellTable, words: Words64, further: FurtherWords) -> Float:
    which = np.arange(words.size)
    columns, tests = _columns(table, words), _tests(table, words)
    entries = table.entries[columns]
    thresholds = entries >> _ALIAS_BITS
    own = tests < thresholds
    level = np.flatnonzero(tests == thresholds)
    if level.size:
        own[level] = further.next(level) >> np.uint64(12) < table.fractions[columns[level]]
    cells = np.where(own, columns, (entries & _ALIAS_MASK).astype(np.intp))
    points = _points(table, words, cells)
    tail = which[cells >= table.tail_first]
    if tail.size:
        variates = exponential_variates(further.next(tail), further, tail)
        points[tail] += np.floor(variates / table.tail_rate) * table.tail_period
    return points


def sample_cells(
    table: CellTable, key: bytes, first: int, scale: float, out: NDArray[Any], threads: int
) -> None:
    """Write elements ``first, first + 1, ...`` of the stream of ``key``, times ``scale``."""
    del threads
    flat = out.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            size = min(_BLOCK, flat.size - start)
            words = np.array(first_words(key, _ROUNDS, first + start, size, 64), dtype=np.uint64)
            columns, tests = _columns(table, words), _tests(table, words)
            entries = table.entries[columns]
            thresholds = entries >> _ALIAS_BITS
            cells = np.where(tests < thresholds, columns, (entries & _ALIAS_MASK).astype(np.intp))
            points = _points(table, words, cells)
            pending = np.flatnonzero((tests == thresholds) | (cells >= table.tail_first))
            elements = pending.astype(np.uint64) + np.uint64(first + start)
            further = FurtherWords(key, _ROUNDS, elements)
            points[pending] = _settle(table, words[pending], further)
            signed = _with_sign(table, points * scale, words)
            flat[start : start + size] = signed.astype(out.dtype)
