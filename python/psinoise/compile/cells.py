"""From the masses of cells to the columns of Walker's alias method, in exact integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALIAS_BITS", "MOST_CELLS", "alias_columns"]

#: Bits of an entry that name a cell, and the most cells that they can name.
ALIAS_BITS = 20
MOST_CELLS = 1 << ALIAS_BITS

_CAPACITY_BITS = 64
_FRACTION_BITS = 52


def alias_columns(masses: Sequence[float]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Entries and fractions of a ``CellTable`` (see ``csrc/kernels/tables.hpp``).

    Parameters
    ----------
    masses : sequence of float
        Not negative; in proportion to the probabilities of the cells, at most ``MOST_CELLS``.

    Returns
    -------
    entries, fractions : ndarray of uint64
        As many columns as the next power of two. Probabilities are multiples of ``2**-64`` of a
        column, rounded down, but that of the largest cell, which takes what is left: the total
        variation distance from ``masses`` is at most ``2**-64``.
    """
    bits = max(0, (len(masses) - 1).bit_length())
    columns, capacity = 1 << bits, 1 << _CAPACITY_BITS
    # A double times 2**1074 is an integer: no rounding before the division.
    exact = [_integer(mass) for mass in masses]
    total, whole = sum(exact), columns * capacity
    left = [mass * whole // total for mass in exact]
    left[max(range(len(left)), key=left.__getitem__)] += whole - sum(left)
    left += [0] * (columns - len(left))

    thresholds, aliases = [capacity] * columns, list(range(columns))
    small = [i for i in range(columns) if left[i] < capacity]
    large = [i for i in range(columns) if left[i] > capacity]
    while small:
        i, donor = small.pop(), large[-1]
        thresholds[i], aliases[i] = left[i], donor
        left[donor] -= capacity - left[i]
        if left[donor] <= capacity:
            large.pop()
            if left[donor] < capacity:
                small.append(donor)
    # A full column never reaches its alias, which must be a cell all the same.
    entries = [
        (threshold >> _FRACTION_BITS) << ALIAS_BITS | alias
        for threshold, alias in zip(thresholds, aliases, strict=True)
    ]
    fractions = [threshold & ((1 << _FRACTION_BITS) - 1) for threshold in thresholds]
    return np.array(entries, dtype=np.uint64), np.array(fractions, dtype=np.uint64)


def _integer(mass: float) -> int:
    mantissa, exponent = math.frexp(mass)
    return int(math.ldexp(mantissa, 53)) << (exponent + 1074) if exponent > -1021 else 0
