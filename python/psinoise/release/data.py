"""Data as arrays, of a type that their values have no say in.

Where bounds are given, neither the type of what is released nor whether there is an error may
depend on the values. What declares a type (arrays, NumPy scalars, data frames, buffers) has that
one; an array of Python objects is refused. Python numbers and sequences of them declare none, and
NumPy would choose by the values: ``[3]`` would be int64, ``[2**64]`` objects. With bounds they are
float64, whatever they are. Without bounds errors depend on the values anyway, and whole numbers
alone are int64, as users of NumPy expect.

**Whole numbers in sequences.** Rounding to float64 would move neighbors apart: ``2**53`` and
``2**53 + 1`` both become ``2**53``, and the next one ``2**53 + 2``. So they are clipped to
``+-2**53`` first, exactly, which moves no two numbers apart; up to there float64 holds them all.
Bounds must be within ``+-2**53`` too, so that this clip changes nothing. Without bounds, larger
whole numbers beside others are an error.

**Missing values.** None counts as NaN, which bounds take to the lower one; so do gaps in a column
of pandas, polars or Arrow (``tables``). An element that is no number at all, such as text, a truth
value or a masked one, is always an error, which shows that there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise.errors import DomainError
from psinoise.release.tables import column_of, table_of

__all__ = ["declares_a_type", "is_masked", "read"]

_MOST_WHOLE = 1 << 53
_LARGEST_INT64 = (1 << 63) - 1
_DEEPEST = 64  # dimensions of an array of NumPy
_ONE_NUMBER = (float, int, np.generic)  # quick to pass over


def read(name: str, x: ArrayLike, limits: tuple[float, float] | None) -> NDArray[Any]:
    """The data as an array of real numbers of at most 64 bits; not a copy where it is one.

    Parameters
    ----------
    name : str
        What messages call the data.
    x : array_like
    limits : (low, high), optional
        To which the caller will clip.

    Raises
    ------
    TypeError
        If it is something else, or partly masked.
    DomainError
        For data without a type: if bounds, or a whole number without bounds, are beyond ``2**53``.
    """
    if type(x) is np.ndarray:
        array = x
    elif type(x) is float:
        _limits_fit(name, limits)
        return np.array(x)
    elif (column := column_of(x)) is not None:
        array = column.filled(name, limits is not None)
    else:
        if table_of(x) is not None:
            raise TypeError(f"{name} must be a column of numbers, got a whole table")
        typed = declares_a_type(x)
        found = np.asanyarray(x) if typed else x  # whose mask np.asarray would drop
        if is_masked(found):
            raise TypeError(f"{name} must not have masked values")
        if not typed:
            return _listed(name, x, limits)
        array = np.asarray(found)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        # The kind alone: the dtype of strings tells how long the longest of them is.
        raise _not_real(name, array.dtype.type)
    return array


def is_masked(x: object, depth: int = 0) -> bool:
    """Whether there is a masked value in arrays or in sequences of them."""
    if hasattr(x, "__array__"):
        return bool(np.ma.is_masked(np.asanyarray(x)))
    if not isinstance(x, Sequence) or depth == _DEEPEST:
        return False
    if isinstance(x, str) or declares_a_type(x):
        return False
    return any(is_masked(item, depth + 1) for item in x if not isinstance(item, _ONE_NUMBER))


def declares_a_type(x: object) -> bool:
    """Whether data have a type of their own, which their values have no say in."""
    if isinstance(x, list | tuple | int | float | str | None):
        return isinstance(x, np.generic)  # np.float64 is a float
    if any(hasattr(x, f"__array{how}__") for how in ("", "_interface", "_struct")):
        return True
    try:
        memoryview(x)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _listed(name: str, x: ArrayLike, limits: tuple[float, float] | None) -> NDArray[Any]:
    """Numbers without a declared type, as float64 or, without bounds, int64."""
    _limits_fit(name, limits)
    try:
        array = np.array(x, dtype=object)
    except ValueError:
        raise TypeError(f"{name} must be a rectangular array of real numbers") from None
    items = array.reshape(-1).tolist()
    kinds = set(map(type, items)) - {float}
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        if not _is_real(kind) and (kind is not type(None) or array.ndim == 0):
            raise _not_real(name, kind)
    if kinds:
        whole = [int(item) for item in items if isinstance(item, int | np.integer)]
        alone = len(whole) == len(items)
        most = _LARGEST_INT64 if alone else _MOST_WHOLE
        if limits is None and not all(abs(number) <= most for number in whole):
            raise DomainError(
                f"{name} must have no whole number beyond 2**53, or 2**63 - 1 where all are, if it "
                "is no array and no bounds are given"
            )
        if limits is None and alone:
            return np.array(whole, dtype=np.int64).reshape(array.shape)
        items = [_float(item) for item in items]
    return np.array(items, dtype=np.float64).reshape(array.shape)


def _limits_fit(name: str, limits: tuple[float, float] | None) -> None:
    if limits is not None and not max(-limits[0], limits[1]) <= _MOST_WHOLE:
        raise DomainError(
            f"bounds must be within 2**53 where {name} is no array, got {limits!r}; "
            f"np.asarray({name}, dtype=float) has no such limit"
        )


def _is_real(kind: type) -> bool:
    if issubclass(kind, np.floating):
        return np.dtype(kind).itemsize <= 8
    return issubclass(kind, float | int | np.integer) and kind is not bool


def _float(item: Any) -> float:
    if isinstance(item, int | np.integer):
        return float(max(-_MOST_WHOLE, min(int(item), _MOST_WHOLE)))
    return math.nan if item is None else float(item)


def _not_real(name: str, kind: type) -> TypeError:
    return TypeError(f"{name} must be real numbers of at most 64 bits, got {kind.__name__}")
