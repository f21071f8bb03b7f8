"""Columns and tables of other libraries: read as arrays, and made again around what was released.

No library is imported or asked for by its name: a column is known by what it can do.

========== =========================== ============================================
column     says what is missing by     is made again by
========== =========================== ============================================
pandas     ``isna``; has ``iloc``      its type, from an array, its index and name
polars     ``is_null``; has ``name``   its type, from its name and an array
Arrow      ``is_null``; has ``type``   its package, from an array
========== =========================== ============================================

**What a column declares.** The type of an array must not depend on whether a value is missing (see
``data``): whole numbers with gaps would become floats, and the type of what is released would tell.
So the type is that of the column without any row, gaps of floating-point numbers are NaN, and gaps
of whole numbers are the least whole number, which bounds take to the lower one, as they do NaN.
Without bounds a gap is refused, as NaN is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.errors import DomainError

__all__ = ["Column", "Table", "column_of", "table_of"]

Values = NDArray[Any]
_LEAST = -(1 << 62)
# As a rule; five attributes that are looked for in vain cost 2 us.
_PLAIN = (np.ndarray, list, tuple, float, int)


class Column(NamedTuple):
    """A column as an array, where it has gaps, and how to make one like it of other values."""

    values: Values
    missing: NDArray[np.bool_] | None
    like: Callable[[Values], Any]

    def filled(self, name: str, bounded: bool) -> Values:
        """The values with gaps as what bounds take to the lower one.

        Raises
        ------
        DomainError
            For a gap without bounds.
        """
        values, missing = self.values, self.missing
        if missing is None:
            return values
        if not bounded:
            if missing.any():
                raise DomainError(f"{name} must have no missing values where no bounds are given")
            return values
        if values.dtype.kind == "f":
            return np.where(missing, np.array(np.nan, values.dtype), values)
        most = min(np.iinfo(values.dtype).max, -_LEAST)
        whole = np.minimum(values, values.dtype.type(most)).astype(np.int64)
        return np.where(missing, np.int64(_LEAST), whole)

    def held(self) -> Column:
        """The same, with values that nobody else can change."""
        missing = None if self.missing is None else np.array(self.missing)
        return Column(np.array(self.values), missing, self.like)


class Table(NamedTuple):
    """A table by its columns."""

    names: Sequence[Hashable]
    column: Callable[[Any], Any]
    replaced: Callable[[Mapping[Any, Any]], Any]

    def held(self, columns: object) -> Table:
        """The same, with values of the chosen columns that nobody else can change."""
        found = {}
        for name in self.chosen(columns):
            column = column_of(self.column(name))
            if column is None:
                raise TypeError(f"columns must name columns of numbers, got {name!r}")
            found[name] = column.held()
        return Table(self.names, found.__getitem__, self.replaced)

    def chosen(self, columns: object) -> list[Any]:
        """The names of the columns to release.

        Raises
        ------
        TypeError
            Without names: what a table has besides may not be meant.
        DomainError
            If a name is not that of one column, or is given twice.
        """
        if columns is None:
            raise TypeError(
                "columns must name what is released of a table: the others are copied as they are"
            )
        columns = columns.tolist() if hasattr(columns, "tolist") else columns
        chosen = list(columns) if isinstance(columns, list | tuple) else [columns]
        if not chosen:
            raise DomainError("columns must name at least one column, got none")
        names = list(self.names)
        for name in chosen:
            if isinstance(name, bool) or names.count(name) != 1 or chosen.count(name) != 1:
                raise DomainError(f"columns must name one column of the table each, got {name!r}")
        return chosen


def column_of(x: Any) -> Column | None:
    """A column of pandas, polars or Arrow; None for anything else."""
    if isinstance(x, Column):
        return x
    if hasattr(x, "iloc") and hasattr(x, "isna") and hasattr(x, "name"):
        return _of_pandas(x, lambda values: type(x)(values, index=x.index, name=x.name))
    if hasattr(x, "isna") and not isinstance(getattr(x, "dtype", None), np.dtype | None):
        # What is within a nullable column, or an index of such a type: as NumPy's arrays.
        return _of_pandas(x, lambda values: values)
    if hasattr(x, "is_null") and hasattr(x, "fill_null"):
        return _of_polars_or_arrow(x)
    return None


def _of_pandas(x: Any, like: Callable[[Values], Any]) -> Column:
    if isinstance(x.dtype, np.dtype):
        return Column(np.asarray(x), None, like)
    kind = getattr(x.dtype, "numpy_dtype", np.dtype(object))
    if kind.kind not in "fiu":
        return _without_numbers(x)
    gaps = np.asarray(x.isna(), dtype=bool)
    return Column(x.to_numpy(dtype=kind, na_value=0), gaps, like)


def _of_polars_or_arrow(x: Any) -> Column:
    try:
        if hasattr(getattr(x, "type", None), "index_type"):  # a dictionary may have gaps too
            x = x.cast(x.type.value_type)
        declared = np.asarray(x[:0])  # of no row: whatever is missing in others
        kind = declared.dtype
        numeric = getattr(getattr(x, "dtype", None), "is_numeric", lambda: True)
        if kind.kind not in "fiu" or declared.ndim != 1 or not numeric():
            return _without_numbers(x)
        gaps = np.asarray(x.is_null(), dtype=bool)
        values = np.asarray(x.fill_null(0)).astype(kind, copy=False)
    except Exception:  # of the other library, of a type that is none of NumPy's
        return _without_numbers(x)
    return Column(values, gaps, _like_arrow(x) if hasattr(x, "type") else _like_polars(x))


def _without_numbers(x: Any) -> Column:
    """Refused by whoever reads it: the type of other columns may depend on what is missing."""
    return Column(np.empty(len(x), dtype=object), None, lambda values: values)


def _like_polars(x: Any) -> Callable[[Values], Any]:
    return lambda values: type(x)(x.name, values)


def _like_arrow(x: Any) -> Callable[[Values], Any]:
    arrow = sys.modules[type(x).__module__.split(".", maxsplit=1)[0]]

    def made(values: Values) -> Any:
        return arrow.chunked_array([values]) if hasattr(x, "chunks") else arrow.array(values)

    return made


def table_of(x: Any) -> Table | None:
    """A table of pandas, polars or Arrow; None for anything else.

    Raises
    ------
    TypeError
        For a table whose rows are not there yet.
    """
    if isinstance(x, Table):
        return x
    if isinstance(x, _PLAIN):
        return None
    if hasattr(x, "collect_schema") and not hasattr(x, "get_column"):
        raise TypeError("x must be a table with its rows: collect() a lazy one first")
    if hasattr(x, "set_column") and hasattr(x, "column_names"):
        return Table(x.column_names, x.column, lambda new: _set(x, new))
    if hasattr(x, "with_columns") and hasattr(x, "get_column"):
        return Table(x.columns, x.get_column, lambda new: x.with_columns(*new.values()))
    if hasattr(x, "assign") and hasattr(x, "iloc") and hasattr(x, "columns"):
        return Table(list(x.columns), x.__getitem__, lambda new: _assigned(x, new))
    return None


def _set(x: Any, new: Mapping[str, Any]) -> Any:
    for name, column in new.items():
        x = x.set_column(x.column_names.index(name), name, column)
    return x


def _assigned(x: Any, new: Mapping[Any, Any]) -> Any:
    found = x.copy()
    for name, column in new.items():
        found[name] = column
    return found
