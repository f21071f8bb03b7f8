"""Samples of piecewise constant laws: twin of ``csrc/kernels/cells.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.reference.stream import (
    FurtherWords,
    NarrowWords,
    WideWords,
    Words64,
    first_words,
)
from psinoise.reference.variates import exponential_variates

Float = NDArray[np.float64]

_ROUNDS = 8
_BLOCK = 1 << 16
_TEST_BITS = 12
_ALIAS_MASK = np.uint64((1 << 20) - 1)
_ALIAS_BITS = np.uint64(20)
_MOST_COLUMNS = 1 << 20
_NARROW_COLUMNS = 1 << 12


class _Wide(WideWords):
    test_bits = _TEST_BITS


class _Narrow(NarrowWords):
    """Tests have the first bits of thresholds."""

    test_bits = 9


_Format = type[_Wide] | type[_Narrow]


class CellTable:
    """Cells of ``|x|`` with the columns of the alias method; immutable."""

    entries: Words64
    fractions: Words64
    starts: Float
    widths: Float
    step: float
    column_bits: int
    narrow: bool
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
            ("narrow", columns <= _NARROW_COLUMNS and _in_float32(starts, widths, step)),
            ("tail_first", tail_first),
            ("tail_rate", tail_rate),
            ("tail_period", tail_period),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("CellTable is immutable")


def _in_float32(starts: Float, widths: Float, step: float) -> bool:
    numbers = np.concatenate([starts, widths, [step]])
    return bool(((numbers == 0.0) | ((numbers > 2.0**-60) & (numbers < 2.0**60))).all())


def _columns(form: _Format, table: CellTable, words: NDArray[Any]) -> NDArray[np.intp]:
    return np.asarray(words & form.word((1 << table.column_bits) - 1), dtype=np.intp)


def _tests(form: _Format, table: CellTable, words: NDArray[Any]) -> Words64:
    tests = (words >> form.word(table.column_bits + 1)) & form.word((1 << form.test_bits) - 1)
    return np.asarray(tests, dtype=np.uint64)


def _points(
    form: _Format, table: CellTable, words: NDArray[Any], cells: NDArray[np.intp]
) -> NDArray[Any]:
    bits, real = table.column_bits, form.real
    mask = form.word((1 << form.bits) - (2 << bits))
    half = form.word((1 << bits) | form.one)
    position = (((words >> form.word(form.test_bits)) & mask) | half).view(real) - real(1.0)
    if table.step > 0.0:
        return np.asarray((cells.astype(real) + (position - real(0.5))) * real(table.step))
    return np.asarray(
        table.starts.astype(real)[cells] + table.widths.astype(real)[cells] * position
    )


def _with_sign(
    form: _Format, table: CellTable, x: NDArray[Any], words: NDArray[Any]
) -> NDArray[Any]:
    shift, top = form.bits - 1 - table.column_bits, 1 << (form.bits - 1)
    sign = (words << form.word(shift)) & form.word(top)
    return np.asarray((x.view(form.word) ^ sign).view(form.real) + form.real(0.0))


def _settle(form: _Format, table: CellTable, words: NDArray[Any], further: FurtherWords) -> Float:
    which = np.arange(words.size)
    columns, tests = _columns(form, table, words), _tests(form, table, words)
    entries = table.entries[columns]
    thresholds = entries >> _ALIAS_BITS
    rest = np.uint64(_TEST_BITS - form.test_bits)
    own = tests < thresholds >> rest
    level = np.flatnonzero(tests == thresholds >> rest)
    if level.size:
        last = thresholds[level] & ((np.uint64(1) << rest) - np.uint64(1))
        fractions = last << np.uint64(52) | table.fractions[columns[level]]
        own[level] = further.next(level) >> np.uint64(form.test_bits) < fractions
    cells = np.where(own, columns, (entries & _ALIAS_MASK).astype(np.intp))
    points = _points(form, table, words, cells).astype(np.float64)
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
    form: _Format = _Narrow if out.dtype == np.float32 and table.narrow else _Wide
    rest = np.uint64(_TEST_BITS - form.test_bits)
    flat = out.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            size = min(_BLOCK, flat.size - start)
            words = np.array(
                first_words(key, _ROUNDS, first + start, size, form.bits), dtype=form.word
            )
            columns, tests = _columns(form, table, words), _tests(form, table, words)
            entries = table.entries[columns]
            thresholds = entries >> _ALIAS_BITS >> rest
            cells = np.where(tests < thresholds, columns, (entries & _ALIAS_MASK).astype(np.intp))
            points = _points(form, table, words, cells) * form.real(scale)
            pending = np.flatnonzero((tests == thresholds) | (cells >= table.tail_first))
            elements = pending.astype(np.uint64) + np.uint64(first + start)
            further = FurtherWords(key, _ROUNDS, elements)
            settled = _settle(form, table, words[pending], further).astype(form.real)
            points[pending] = settled * form.real(scale)
            signed = _with_sign(form, table, points, words)
            flat[start : start + size] = signed.astype(out.dtype)
