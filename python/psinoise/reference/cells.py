"""Samples of piecewise constant laws: twin of ``csrc/kernels/cells.hpp``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.reference.stream import (
    BLOCK,
    Format,
    FurtherWords,
    NarrowWords,
    WideWords,
    Words64,
    exponential_variates,
    first_words,
    positions,
)

Float = NDArray[np.float64]

_ROUNDS = 8
# Of words of 64 and of 32 bits; those have the first bits of thresholds alone.
_TEST_BITS, _NARROW_TEST_BITS = 12, 9
_ALIAS_MASK = np.uint64((1 << 20) - 1)
_ALIAS_BITS = np.uint64(20)
_MOST_COLUMNS = 1 << 20
_NARROW_COLUMNS = 1 << 12


@dataclass(frozen=True, eq=False)
class CellTable:
    """Cells of ``|x|`` with the columns of the alias method; immutable."""

    entries: Words64
    fractions: Words64
    starts: Float
    widths: Float
    step: float
    tail_first: int
    tail_rate: float
    tail_period: float

    def __post_init__(self) -> None:
        columns, starts, widths = self.entries.size, self.starts, self.widths
        cells = columns if self.step > 0.0 else starts.size
        power = columns & (columns - 1) == 0
        if not (1 <= columns <= _MOST_COLUMNS and power and self.fractions.size == columns):
            raise ValueError("entries and fractions must have one length, a power of two to 2**20")
        if not 1 <= cells <= columns or widths.size != starts.size:
            raise ValueError("starts and widths must have one length, at most that of entries")
        if ((self.entries & _ALIAS_MASK) >= np.uint64(cells)).any():
            raise ValueError("entries must name cells")
        if self.tail_first < cells and not self.tail_rate > 0.0:
            raise ValueError("tail_rate must be positive where there is a tail")

    @property
    def column_bits(self) -> int:
        """How many bits of a word choose the column."""
        return self.entries.size.bit_length() - 1

    @property
    def narrow(self) -> bool:
        """Whether words of 32 bits are enough for float32."""
        numbers = np.concatenate([self.starts, self.widths, [self.step]])
        in_float32 = (numbers == 0.0) | ((numbers > 2.0**-60) & (numbers < 2.0**60))
        return self.entries.size <= _NARROW_COLUMNS and bool(in_float32.all())


def _points(table: CellTable, cells: NDArray[np.intp], place: NDArray[Any]) -> NDArray[Any]:
    real = place.dtype.type
    if table.step > 0.0:
        return np.asarray((cells.astype(real) + (place - real(0.5))) * real(table.step))
    # A column without a cell of its own has one at 0.
    padding = np.zeros(table.entries.size - table.starts.size)
    starts, widths = (np.append(part, padding)[cells] for part in (table.starts, table.widths))
    return np.asarray(starts.astype(real) + widths.astype(real) * place)


def _draw(
    form: Format, table: CellTable, key: bytes, first: int, count: int, scale: float
) -> NDArray[Any]:
    words: NDArray[Any] = first_words(key, _ROUNDS, first, count, form.bits)
    further = FurtherWords.of_range(key, _ROUNDS, first, count)
    # From the low end: column, sign, test and place.
    bits, test_bits = table.column_bits, _TEST_BITS if form is WideWords else _NARROW_TEST_BITS
    columns = (words & form.word((1 << bits) - 1)).astype(np.intp)
    positive = words & form.word(1 << bits) == 0
    tests = words >> form.word(bits + 1) & form.word((1 << test_bits) - 1)
    place = positions(words, bits + 1 + test_bits)
    entries = table.entries[columns]
    thresholds = entries >> _ALIAS_BITS
    rest = np.uint64(_TEST_BITS - test_bits)
    own = np.asarray(tests < thresholds >> rest)
    level = np.flatnonzero(tests == thresholds >> rest)
    last = thresholds[level] & ((np.uint64(1) << rest) - np.uint64(1))
    fractions = last << np.uint64(52) | table.fractions[columns[level]]
    own[level] = further.next(level) >> np.uint64(test_bits) < fractions
    cells = np.where(own, columns, (entries & _ALIAS_MASK).astype(np.intp))
    points = _points(table, cells, place).astype(np.float64)
    tail = np.flatnonzero(cells >= table.tail_first)
    variates = exponential_variates(further.next(tail), further, tail)
    points[tail] += np.floor(variates / table.tail_rate) * table.tail_period
    scaled = points.astype(form.real) * form.real(scale)
    # Adding +0 turns -0 into +0.
    return np.asarray(np.where(positive, scaled, -scaled) + form.real(0.0))


def sample_cells(
    table: CellTable, key: bytes, first: int, scale: float, out: NDArray[Any], threads: int
) -> None:
    """Write elements ``first, first + 1, ...`` of the stream of ``key``, times ``scale``."""
    del threads
    form = NarrowWords if out.dtype == np.float32 and table.narrow else WideWords
    flat = out.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, BLOCK):
            part = flat[start : start + BLOCK]
            part[:] = _draw(form, table, key, first + start, part.size, scale)
