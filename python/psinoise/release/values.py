"""Values as they come from users: checked before any bit is drawn, and never shown.

Messages name what is wrong with the kind of the data, or that some value is not finite; not which
value, where, or how many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise.errors import DomainError
from psinoise.release.data import read
from psinoise.release.digit_noise import DigitNoise
from psinoise.release.entropy import fresh_key
from psinoise.release.lattice_noise import LatticeNoise
from psinoise.release.tables import Table, column_of

__all__ = ["Release", "TableRelease", "prepared"]

# Below this many elements one thread is faster than waking another.
_SERIAL = 1 << 17
# Integers beyond are saturated by the kernel as well.
_MOST_INTEGER = 1 << 62
_FLOAT64: np.dtype[Any] = np.dtype(np.float64)
_FLOAT32: np.dtype[Any] = np.dtype(np.float32)
_INT64: np.dtype[Any] = np.dtype(np.int64)
_WITHOUT_COLUMNS = (np.ndarray, float)  # most calls; to ask others what they can do takes 1 us
# Powers of two between which the grid must be.
_RANGES = {_FLOAT64: (-1000, 900), _FLOAT32: (-100, 60), _INT64: (-61, 62)}


class Release(NamedTuple):
    """A release that only lacks its bits."""

    noise: LatticeNoise | DigitNoise
    values: NDArray[Any]
    limits: tuple[float, float]
    out: NDArray[Any]
    scalar: bool
    threads: int
    like: Callable[[NDArray[Any]], Any] | None = None

    def draw(self, key: core.SecretKey | bytes | None = None) -> Any:
        """Write the values with the noise of a key; one from the operating system by default."""
        if self.out.size:  # no bits for no values
            core.lattice_release(
                self.noise._table,
                fresh_key() if key is None else key,
                0,
                self.values,
                self.noise.grid,
                *self.limits,
                self.out,
                self.threads,
            )
        if self.like is not None:
            return self.like(self.out)
        return self.out[()] if self.scalar else self.out


class TableRelease(NamedTuple):
    """Releases of the columns of a table."""

    table: Table
    columns: dict[Any, Release]

    def draw(self) -> Any:
        """The table with these columns released, each with bits of its own."""
        return self.table.replaced({name: column.draw() for name, column in self.columns.items()})


def prepared(
    noise: LatticeNoise | DigitNoise,
    x: ArrayLike,
    out: object = None,
    bounds: object = None,
    threads: int | None = None,
) -> Release:
    """Check everything that a release is given.

    Parameters
    ----------
    noise : LatticeNoise or DigitNoise
    x : array_like of float64, float32, float16 or integers, or a column of them
        Of any layout and byte order; Python numbers and lists of them are float64.
    out : ndarray, optional
    bounds : pair of real numbers, optional
        Values are clipped to them; NaN becomes the lower one.
    threads : int, optional

    Raises
    ------
    TypeError, DomainError, ValueError
        See `psinoise.LatticeMechanism.release`.
    """
    limits = None if bounds is None else _limits(bounds)
    column = None if type(x) in _WITHOUT_COLUMNS else column_of(x)
    array = read("x", x if column is None else column, limits)  # type: ignore[arg-type]
    values = _native(array)
    dtype = values.dtype
    low, high = _RANGES[dtype]
    if not 2.0**low <= noise.grid <= 2.0**high:
        raise DomainError(
            f"grid must be in [2**{low}, 2**{high}] for values of type {dtype}, got {noise.grid!r}"
        )
    if limits is None and dtype.kind == "f" and not core.all_finite(values):
        raise DomainError("x must be finite where no bounds are given")
    # Values are clipped where they are rounded, in a time that does not depend on them.
    limits = (-math.inf, math.inf) if limits is None else limits
    if dtype.kind == "i":
        limits = _whole(*limits)
        if not noise.grid.is_integer():
            dtype = _FLOAT64
    target = np.empty(array.shape, dtype) if out is None else _checked_out(out, array, dtype)
    if threads is None:
        workers = 1 if array.size < _SERIAL else 0
    else:
        workers = _validate.count("threads", threads)
    like = None if column is None or out is not None else column.like
    return Release(noise, values, limits, target, array.ndim == 0 and out is None, workers, like)


def _limits(bounds: object) -> tuple[float, float]:
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"bounds must be a pair (low, high), got {bounds!r}")
    low, high = bounds
    if type(low) is not float or type(high) is not float:
        low, high = _validate.real("bounds", low), _validate.real("bounds", high)
    if not (-math.inf < low <= high < math.inf):
        raise DomainError(f"bounds must be finite, the lower one first, got {bounds!r}")
    return low, high


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, contiguous, as float64, float32 or int64."""
    dtype = array.dtype
    if dtype.kind == "f":
        native = _FLOAT64 if dtype.itemsize == 8 else _FLOAT32
    else:
        native = _INT64
        if dtype.kind == "u" and dtype.itemsize == 8:
            array = np.minimum(array, np.uint64(_MOST_INTEGER))
    if not array.flags.aligned:
        array = array.copy()
    return np.asarray(array, dtype=native, order="C")


def _whole(low: float, high: float) -> tuple[int, int]:
    """The whole numbers within the bounds, however large those are."""
    least = -_MOST_INTEGER if low < -_MOST_INTEGER else math.ceil(min(low, _MOST_INTEGER))
    most = _MOST_INTEGER if high > _MOST_INTEGER else math.floor(max(high, -_MOST_INTEGER))
    if not least <= most:
        raise DomainError(
            f"bounds must have a whole number between them for whole numbers, got {low!r} and "
            f"{high!r}"
        )
    return least, most


def _checked_out(out: object, x: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise TypeError(f"out must be an array, got {type(out).__name__}")
    if out.dtype != dtype or not out.dtype.isnative:
        raise TypeError(f"out must have dtype {dtype}, as the result has, got {out.dtype}")
    if out.shape != x.shape:
        raise ValueError(f"out must have the shape of x, {x.shape}, got {out.shape}")
    if not out.flags.c_contiguous or not out.flags.writeable or not out.flags.aligned:
        raise ValueError("out must be C-contiguous, aligned and writable")
    if np.may_share_memory(out, x):
        raise ValueError("out must not overlap x")
    return out
