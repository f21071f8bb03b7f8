"""Sums whose sensitivity is that of one value.

A floating-point sum does not have the sensitivity that people think: every addition rounds, and how
it rounds depends on all values before it. One record more or less can move the sum of ``n`` values
by far more than that record (S. Casacuberta, M. Shoate, S. Vadhan and C. Wagaman, "Widespread
underestimation of sensitivity in differentially private libraries and how to fix it", CCS 2022).
Integers do not round.

**Sensitivity.** Let ``g`` be the grid and ``[low, high]`` the bounds. A value counts as
``s(x) = floor(x / g + 1/2)`` cells, but not less than ``ceil(low / g)`` and not more than
``floor(high / g)``, so that ``g s(x)`` is within the bounds. The sum is ``g`` times the sum of the
integers ``s(x)``: adding or removing one record moves it by ``g |s(x)|``, replacing one by
``g |s(x) - s(y)|``, and so

    add-remove:  at most  max(|low|, |high|),
    replace:     at most  high - low.

Both are reached where the bounds are multiples of ``g``. The clamp at ``2^53`` cells moves no two
sums apart, and the sum is a float64 exactly, since ``g`` is a power of two. So a mechanism of that
sensitivity may release it, whatever its own grid is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise.errors import DomainError
from psinoise.release.data import read
from psinoise.release.grid import MOST_CELLS, grid_from

__all__ = ["LARGEST_SUM", "cells", "checked_bounds", "exact_sum", "exponent_of"]

#: Values converted at a time: temporary arrays stay in the cache, and memory flat.
_BLOCK = 2**16
#: Cells of a sum: what float64 holds without rounding.
LARGEST_SUM = 2**53
# Of grids on which subnormal numbers of float32 are 0.
_FLOAT32_EXPONENTS = range(-100, 61)


def exact_sum(
    values: ArrayLike | Iterator[ArrayLike], grid: float, *, bounds: tuple[float, float]
) -> float:
    """Sum values that are clipped to bounds and rounded to a grid, without any other rounding.

    Adding or removing one value moves the sum by at most ``max(|low|, |high|)``, replacing one by
    at most ``high - low``. So a :class:`psinoise.Mechanism` of that sensitivity may release the
    sum, and what is accounted is what is released.

    Parameters
    ----------
    values : array_like of real numbers, or iterator of such arrays
        Integers, float32 or float64 in any byte order, shape and layout; Python numbers and lists
        of them are float64, with None as NaN. A memory map is read block by block. An iterator
        gives the chunks of a stream. Order and chunks do not matter.
    grid : float
        A power of two from 2**-1000 to 2**900: values count as multiples of it.
    bounds : (float, float)
        To which values are clipped, or else to the multiples of the grid next to them inside; at
        most 2**31 cells from 0. Chosen without the data. NaN counts as the lower one.

    Returns
    -------
    float
        A multiple of ``grid``, exact. Sums beyond 2**53 cells are clamped to that.

    Raises
    ------
    TypeError
        For values that are not real numbers, or masked; for a grid or bounds of the wrong kind.
    DomainError
        For a grid that is no power of two, or bounds that are not finite, in the wrong order, too
        far from 0 for the grid, or without a multiple of it between them; beyond 2**53 for values
        in lists.

    Notes
    -----
    The module says why the sensitivity is what it is. No message shows a value.

    Examples
    --------
    >>> import psinoise as pn
    >>> ages = [34.0, 51.5, 29.0, 70.25, float("nan")]
    >>> pn.exact_sum(ages, 0.5, bounds=(0.0, 60.0))
    174.5

    A stream, of which the order does not matter, unlike that of floating-point numbers:

    >>> chunks = [[1e9, 0.25], [-1e9, 0.25]]
    >>> pn.exact_sum(iter(chunks), 2.0**-10, bounds=(-1.0, 1.0))
    0.5
    """
    exponent = exponent_of(grid)
    low, high = checked_bounds(bounds, exponent)
    chunks = values if isinstance(values, Iterator) else (values,)
    # The sum of one block is at most 2^47 cells; all blocks are added as Python integers.
    total = sum(
        int(cells(block, exponent, low, high).sum())
        for chunk in chunks
        for block in _blocks(read("values", chunk, (low, high)))
    )
    return math.ldexp(max(-LARGEST_SUM, min(total, LARGEST_SUM)), exponent)


def exponent_of(grid: float) -> int:
    """``e`` of the grid ``2**e`` of a sum."""
    mantissa, exponent = math.frexp(grid_from(grid))
    if mantissa != 0.5:
        near = math.ldexp(1.0, exponent - 1)
        raise DomainError(f"grid must be a power of two, such as {near!r}, got {grid!r}")
    return exponent - 1


def checked_bounds(bounds: tuple[float, float], exponent: int) -> tuple[float, float]:
    """The multiples of the grid that are farthest apart within the bounds; see `exact_sum`."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise TypeError(f"bounds must be a pair of real numbers, got {bounds!r}") from None
    low, high = _validate.real("the lower bound", low), _validate.real("the upper bound", high)
    if not low <= high:
        raise DomainError(f"bounds must be in order, got {bounds!r}")
    if not max(-low, high) <= math.ldexp(MOST_CELLS, exponent):
        raise DomainError(
            f"bounds must be at most 2**31 times the grid {math.ldexp(1.0, exponent)!r}, "
            f"got {bounds!r}"
        )
    unit = Fraction(2) ** exponent
    first, last = math.ceil(Fraction(low) / unit), math.floor(Fraction(high) / unit)
    if not first <= last:
        raise DomainError(
            f"bounds must have a multiple of the grid {math.ldexp(1.0, exponent)!r} between them, "
            f"got {bounds!r}"
        )
    return math.ldexp(first, exponent), math.ldexp(last, exponent)


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """One-dimensional blocks in the machine's byte order, of an array of any layout."""
    # Buffered, the iterator copies where it must and never more than one block.
    yield from np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_dtypes=[array.dtype.newbyteorder("=")],
        casting="equiv",
        buffersize=_BLOCK,
    )


def cells(block: NDArray[Any], exponent: int, low: float, high: float) -> NDArray[np.int64]:
    """``floor(x / grid + 1/2)`` of the clipped values; rounding is monotone, so the order of
    clipping and rounding does not matter."""
    if block.dtype.kind in "iu" and exponent > 0:
        # Without a float, which has 53 bits: a shift rounds down, the bit below it decides.
        signed, shift = _signed(block, exponent)
        whole = (signed >> min(shift, 63)) + ((signed >> min(shift - 1, 63)) & 1)
        first, last = _rounded(np.array([low, high]), exponent, low, high)
        return np.clip(whole, first, last)
    if block.dtype.kind in "iu":
        # The bounds are at most 2^31 here, so that these integers lose no digit that is left.
        block = np.clip(_signed(block, 0)[0], -(2**53), 2**53)
    narrow = block.dtype == np.float32 and exponent in _FLOAT32_EXPONENTS
    x = block if narrow else block.astype(np.float64, copy=False)
    return _rounded(x, exponent, low, high)


def _signed(block: NDArray[Any], exponent: int) -> tuple[NDArray[np.int64], int]:
    """The same values as int64, or their halves where the last bit does not matter."""
    if block.dtype != np.uint64:
        return block.astype(np.int64), exponent
    if exponent > 1:
        return (block >> np.uint64(1)).astype(np.int64), exponent - 1
    # The bounds are below 2^33 for such a grid.
    return np.minimum(block, np.uint64(2**63 - 1)).astype(np.int64), exponent


def _rounded(x: NDArray[Any], exponent: int, low: float, high: float) -> NDArray[np.int64]:
    """Half up, without an error; NaN counts as the lower bound."""
    found = np.empty(x.shape, np.int64)
    core.lattice_cells(np.ascontiguousarray(x), math.ldexp(1.0, exponent), low, high, found)
    return found
