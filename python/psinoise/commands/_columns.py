"""Tables read and written block by block, with some of their columns put through a function.

Nothing here shows data: a message names the file or a column that the caller named, never a value,
a row or the names in the file (the first row of a file without a header is data).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from psinoise._optional import required
from psinoise._progress import track
from psinoise.errors import DomainError

__all__ = ["FORMATS", "map_columns", "rows_of"]

Values = NDArray[Any]
Function = Callable[[Any], Values]

_NEEDS_ARROW = 'Parquet tables need pyarrow: pip install "psinoise[arrow]"'

FORMATS = (".csv", ".parquet", ".npy")
#: Values in a block: what is held in memory at a time.
_BLOCK = 2**16
#: Up to here a cell has more than two float64 numbers.
_MOST_CELLS = 2.0**50
# Characters in a field of CSV; Python's reader refuses more than 2**17 unless it is told.
_LONGEST_FIELD = 2**30


def map_columns(
    source: Path,
    target: Path,
    columns: Sequence[str],
    function: Function,
    *,
    grid: float,
    bounds: tuple[float, float] | None,
    delimiter: str = ",",
    missing: Sequence[str] = (),
    ready: Callable[[], None] = lambda: None,
) -> list[str]:
    """Write ``source`` to ``target`` with a function applied to some columns, block by block.

    Returns the names of the columns that were copied.

    Parameters
    ----------
    source
        ``.csv`` with a header, in UTF-8, ``.parquet`` or ``.npy``, which is the format of both
    target
        an existing file, which is overwritten, whatever its name
    columns
        names in the header, or fields of a structured array; none for an array of numbers
    function
        from a one-dimensional array, or a column of Arrow, to one of the same length
    grid
        to which the function rounds, half up: text is rounded as the decimal number that it is
    bounds
        to which the function clips; with bounds, an empty field is NaN
    delimiter
        one character between the fields of a line, in both files
    missing
        words that stand for an empty field in the columns
    ready
        called once, when names and types are seen to be right, before any value is read
    """
    kind = source.suffix.lower()
    if kind == ".parquet":
        return _map_parquet(source, target, columns, function, ready)
    if kind == ".npy":
        return _map_npy(source, target, columns, function, ready)
    words = frozenset(missing)
    return _map_csv(source, target, columns, function, grid, bounds, delimiter, words, ready)


def rows_of(source: Path, delimiter: str = ",") -> int:
    """How many values a column of a table has, or all of an array."""
    kind = source.suffix.lower()
    if kind == ".npy":
        return int(_loaded(source).size)
    if kind == ".parquet":
        return int(_parquet(source).metadata.num_rows)
    with _readable(source), source.open(encoding="utf-8-sig", newline="") as readable:
        lines = (row for row in csv.reader(readable, delimiter=delimiter, strict=True) if row)
        return max(sum(1 for _ in lines) - 1, 0)


# -- text ------------------------------------------------------------------------------------------


def _map_csv(
    source: Path,
    target: Path,
    columns: Sequence[str],
    function: Function,
    grid: float,
    bounds: tuple[float, float] | None,
    delimiter: str,
    missing: frozenset[str],
    ready: Callable[[], None],
) -> list[str]:
    if not columns:
        raise TypeError("a CSV table needs --column")
    # Multiples of a grid of whole numbers are written without a point.
    shown = int if grid.is_integer() else repr
    with (
        _readable(source),
        source.open(encoding="utf-8-sig", newline="") as readable,
        target.open("w", encoding="utf-8", newline="") as writable,
    ):
        reader = csv.reader(readable, delimiter=delimiter, strict=True)
        writer = csv.writer(writable, delimiter=delimiter, lineterminator="\n")
        header = next(reader, None)
        if header is None:
            raise DomainError(f"{source} must have a header")
        places = [_place(header, column) for column in columns]
        ready()
        writer.writerow(header)
        for rows in track(_batched(reader), "releasing"):
            if any(len(row) != len(header) for row in rows):
                raise DomainError(f"{source} must have as many fields in each row as in the header")
            for place, column in zip(places, columns, strict=True):
                fields = (row[place] for row in rows)
                texts = ["" if field.strip() in missing else field for field in fields]
                values = _numbers(texts, column, grid, bounds)
                for row, value in zip(rows, function(values).tolist(), strict=True):
                    row[place] = str(shown(value))
            writer.writerows(rows)
    return [name for name in header if name not in columns]


@contextmanager
def _readable(source: Path) -> Iterator[None]:
    """What the reader says about a file, without the bytes that it found."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    except csv.Error:
        raise DomainError(f"{source} must be a table of comma-separated values") from None
    except UnicodeDecodeError:
        raise DomainError(f"{source} must be text in UTF-8") from None
    finally:
        csv.field_size_limit(before)


def _batched(reader: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    rows = (row for row in reader if row)  # lines without a character are no rows
    while batch := list(islice(rows, _BLOCK)):
        yield batch


def _place(names: Sequence[str], column: str) -> int:
    if names.count(column) != 1:
        number = "twice" if column in names else "not"
        raise DomainError(
            f"--column must be one name of the header, but {column!r} is {number} there"
        )
    return names.index(column)


def _numbers(
    texts: list[str], column: str, grid: float, bounds: tuple[float, float] | None
) -> NDArray[np.float64]:
    """The float64 numbers that are rounded to the grid as the decimal numbers are.

    Rounding to float64 changes the rounding to the grid where the middle of a cell is between the
    decimal number and the float64 one. Both are then close to it, and are looked at in rational
    arithmetic. Below ``_MOST_CELLS`` a cell has more than two float64 numbers, so that a step of
    one leads back.
    """
    try:
        if any("_" in text for text in texts):
            raise ValueError  # which Python reads, and nobody else
        values = np.array([float(text) if text.strip() else math.nan for text in texts])
    except ValueError:
        raise DomainError(
            f"column {column!r} must hold real numbers; --missing names words for none"
        ) from None
    if bounds is None and not np.isfinite(values).all():
        raise DomainError(
            f"column {column!r} must hold finite numbers in every row; --bounds says to what "
            "others are mapped"
        )
    inside = np.isfinite(values)
    if bounds is not None:
        inside &= (values >= bounds[0]) & (values <= bounds[1])
    with np.errstate(under="ignore", over="ignore"):
        cells = np.where(inside, values, 0.0) / grid
    for index in np.flatnonzero(np.abs(cells) >= _MOST_CELLS):
        if _decimal(texts[index], column) != Decimal(float(values[index])):
            raise DomainError(
                f"column {column!r} must hold numbers of at most 2**50 times the grid {grid!r}, or "
                "that float64 holds exactly; --bounds or --grid can see to it"
            )
    close = np.abs(cells - np.floor(cells) - 0.5) <= 2.0**-50 * np.maximum(np.abs(cells), 1.0)
    for index in np.flatnonzero(close & (np.abs(cells) < _MOST_CELLS)):
        meant = _half_up(Fraction(_decimal(texts[index], column)), grid)
        found = _half_up(Fraction(float(values[index])), grid)
        if meant != found:
            values[index] = np.nextafter(values[index], math.copysign(math.inf, meant - found))
    return values


def _half_up(value: Fraction, grid: float) -> int:
    return math.floor(value / Fraction(grid) + Fraction(1, 2))


def _decimal(text: str, column: str) -> Decimal:
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        raise DomainError(f"column {column!r} must hold decimal numbers") from None


# -- arrays ----------------------------------------------------------------------------------------


def _map_npy(
    source: Path,
    target: Path,
    columns: Sequence[str],
    function: Function,
    ready: Callable[[], None],
) -> list[str]:
    array = _loaded(source)
    names = array.dtype.names
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    if names is None and columns:
        raise TypeError("--column is for CSV tables and structured arrays")
    if names is None:
        kind = function(np.zeros(0, array.dtype)).dtype
    else:
        kind = _replaced(array.dtype, columns, function)
    ready()
    written = np.lib.format.open_memmap(target, "w+", kind, array.shape, fortran_order=order == "F")
    # Views: neither array is ever in memory as a whole.
    before, after = array.reshape(-1, order=order), written.reshape(-1, order=order)
    for start in track(range(0, before.size, _BLOCK), "releasing"):
        block = slice(start, start + _BLOCK)
        if names is None:
            after[block] = function(before[block])
        for name in names or ():
            part = before[name][block]
            after[name][block] = function(part) if name in columns else part
    written.flush()
    return [name for name in names or () if name not in columns]


def _loaded(source: Path) -> Values:
    try:
        array = np.load(source, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError):
        raise DomainError(f"{source} must be an array in NumPy's format, without objects") from None
    if not isinstance(array, np.ndarray):
        raise DomainError(f"{source} must be one array, not an archive of arrays")
    return array


def _replaced(kind: np.dtype[Any], columns: Sequence[str], function: Function) -> np.dtype[Any]:
    """The type of the released records."""
    if not columns:
        raise TypeError("a structured array needs --column")
    names = kind.names or ()
    kinds = {name: kind[name] for name in names}
    for column in columns:
        _place(names, column)
        if kinds[column].subdtype is not None:
            raise TypeError(f"column {column!r} must hold one number in each record")
        kinds[column] = function(np.zeros(0, kinds[column])).dtype
    return np.dtype(list(kinds.items()))


# -- Parquet ---------------------------------------------------------------------------------------


def _map_parquet(
    source: Path,
    target: Path,
    columns: Sequence[str],
    function: Function,
    ready: Callable[[], None],
) -> list[str]:
    """What a writer has noted about a file is not copied: it may tell of what is released."""
    arrow: Any = required("pyarrow", _NEEDS_ARROW)
    parquet: Any = required("pyarrow.parquet", _NEEDS_ARROW)
    if not columns:
        raise TypeError("a Parquet table needs --column")
    readable = _parquet(source)
    fields = [field.remove_metadata() for field in readable.schema_arrow]
    names = [field.name for field in fields]
    for place in [_place(names, column) for column in columns]:
        field = fields[place]
        empty: Any = function(arrow.array([], field.type))
        fields[place] = field.with_type(empty.type)
    ready()
    with parquet.ParquetWriter(target, arrow.schema(fields)) as writable:
        for batch in track(readable.iter_batches(batch_size=_BLOCK), "releasing"):
            released = [
                function(column) if name in columns else column
                for name, column in zip(names, batch.columns, strict=True)
            ]
            writable.write_batch(arrow.record_batch(released, schema=arrow.schema(fields)))
    return [name for name in names if name not in columns]


def _parquet(source: Path) -> Any:
    parquet: Any = required("pyarrow.parquet", _NEEDS_ARROW)
    try:
        return parquet.ParquetFile(source, memory_map=True)
    except (ValueError, OSError):  # ArrowInvalid is a ValueError
        raise DomainError(f"{source} must be a Parquet table") from None
