"""The lattice that values are rounded to, chosen before any data are seen.

A query ``x`` is rounded half up to the multiples of a grid ``g``, ``m = R(x / g)`` with
``R(t) = floor(t + 1/2)``, and ``g (m + K)`` is released, where ``g K`` is the noise ``Z`` rounded
to the same grid.

**A grid that costs nothing.** Let ``g = s / 2**k``, exactly, for the sensitivity ``s`` and any
whole ``k >= 0``.

* *Neighbors are at most ``2**k`` cells apart.* ``R`` does not decrease, and
  ``R(t + 2**k) = R(t) + 2**k``. So ``|x - x'| <= s = 2**k g`` gives ``|m - m'| <= 2**k``.
* *The release is the ideal mechanism, rounded.* ``g m`` is a query of sensitivity ``2**k g = s``,
  and ``g m + g K`` is ``g m + Z`` rounded to the grid, since ``R`` moves with whole numbers:
  post-processing of noise ``Z`` on a query of sensitivity ``s``.

So whatever the law, the sensitivity, the count of uses and the sampling rate, the noise ``g K``
costs no more than ``Z`` does. What is drawn is a table of integers: each probability is a multiple
of ``2**-63``, and a tail beyond those of ``2**-39`` takes the place of that of the law. This is the
only difference, and it is accounted, since the losses are those of the table; where the law has a
largest one, that of the table is no larger (``psinoise.release.ratios``).

``s`` is a float64 and ``s / 2**k`` is one too. On any other grid ``s`` is ``ceil(s / g)`` cells
(`cells_of`), which is what is accounted then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from psinoise import _validate
from psinoise.errors import DomainError

__all__ = ["LARGEST_GRID", "LEAST_GRID", "MOST_CELLS", "cells_of", "default_grid"]
__all__ += ["grid_from"]

#: Grids on which a release is exact.
LEAST_GRID, LARGEST_GRID = 2.0**-1000, 2.0**900

#: The most cells that a sensitivity may have.
MOST_CELLS = 1 << 31

# There are at least 2**7 cells in a unit of the noise: rounding adds a variance of a twelfth of a
# squared cell, which is 2**-17 of that unit squared. Privacy does not depend on it.
_FINENESS = 7
# By how much it may divide the sensitivity where all shifts are accounted.
_MOST_HALVINGS = 9


def grid_from(grid: float) -> float:
    """A grid in the range of lattices.

    Raises
    ------
    TypeError, DomainError
        If it is no number from ``2**-1000`` to ``2**900``.
    """
    number = _validate.positive("grid", grid)
    if not LEAST_GRID <= number <= LARGEST_GRID:
        raise DomainError(f"grid must be in [2**-1000, 2**900], got {grid!r}")
    return number


def cells_of(sensitivity: float, grid: float) -> int:
    """By how many cells rounded values of neighbors differ at most: ``ceil(sensitivity / grid)``.

    Values are rounded half up, ``floor(x / grid + 1/2)``. For ``|x - y| <= D`` the two floors
    differ by at most the largest whole number of ``[0, D / grid + 1)``, which is
    ``ceil(D / grid)``. Exact: no rounding.

    Raises
    ------
    DomainError
        If they are more than ``MOST_CELLS``.
    """
    cells = math.ceil(Fraction(sensitivity) / Fraction(grid))
    if not cells <= MOST_CELLS:
        raise DomainError(
            f"grid must be at least {sensitivity / MOST_CELLS!r} for sensitivity {sensitivity!r} "
            f"(which may be 2**31 cells), got {grid!r}"
        )
    return cells


def default_grid(
    spread: float, sensitivity: float, fits: Callable[[float], bool], unimodal: bool
) -> float | None:
    """The coarsest ``sensitivity / 2**k`` that resolves the noise; None if it cannot be listed.

    That is at most ``spread / 2**7``, or else the finest on which the noise can be listed.

    Parameters
    ----------
    spread : float
        The size of the noise.
    sensitivity : float
    fits : callable
        Whether the noise can be listed on a grid.
    unimodal : bool
        Whether the largest shift is the worst. Of other noise all are accounted, and the
        sensitivity is ``2**9`` cells at most.

    Raises
    ------
    DomainError
        If a sensitivity would be more than ``MOST_CELLS``, or the grid beyond all grids.
    """
    halvings = max(0, math.frexp(sensitivity)[1] - math.frexp(spread)[1] + _FINENESS)
    if halvings and math.ldexp(sensitivity, 1 - halvings) * 2.0**_FINENESS <= spread:
        halvings -= 1
    while math.ldexp(sensitivity, -halvings) * 2.0**_FINENESS > spread:
        halvings += 1
    halvings = halvings if unimodal else min(halvings, _MOST_HALVINGS)
    grid = math.ldexp(sensitivity, -halvings)
    while grid <= LARGEST_GRID and halvings and not fits(grid):
        halvings, grid = halvings - 1, 2.0 * grid
    too_many = halvings - (MOST_CELLS.bit_length() - 1)
    if too_many > 0:
        raise DomainError(
            f"noise must be wider for sensitivity {sensitivity!r}, by a factor of 2**{too_many}: "
            "it is more than 2**31 cells of a grid that resolves the noise; a coarser one can be "
            "given as grid"
        )
    if not LEAST_GRID <= grid <= LARGEST_GRID:
        raise DomainError(
            "sensitivity must be such that its grid is in [2**-1000, 2**900], got "
            f"{sensitivity!r}, whose grid would be {grid!r}"
        )
    return grid if halvings or fits(grid) else None
