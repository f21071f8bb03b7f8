"""The lattice that values are rounded to: powers of two, chosen before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from psinoise import _validate
from psinoise.errors import DomainError

__all__ = ["LEAST_EXPONENT", "MOST_CELLS", "MOST_EXPONENT", "cells_of", "default_exponent"]
__all__ += ["exponent_of"]

#: Exponents of lattices on which the arithmetic of a release is exact.
LEAST_EXPONENT, MOST_EXPONENT = -1000, 900

#: The most cells that a sensitivity may have.
MOST_CELLS = 1 << 31

# There are at least 2**7 cells in a unit of the noise: rounding adds a variance of a twelfth of a
# squared cell, which is 2**-17 of that unit squared. Privacy does not depend on it: to round the
# noise is post-processing. It does depend on the sensitivity, to which rounding may add so much.
_FINENESS = 7
_PRICE = Fraction(1, 1000)


def exponent_of(grid: float) -> int:
    """The exponent of a power of two.

    Raises
    ------
    TypeError, DomainError
        If ``grid`` is not one, or beyond ``2**-1000 ... 2**900``.
    """
    number = _validate.positive("grid", grid)
    mantissa, exponent = math.frexp(number)
    if mantissa != 0.5:
        near = 2.0 ** (exponent - 1)
        raise DomainError(f"grid must be a power of two, such as {near!r}, got {grid!r}")
    return checked_exponent(exponent - 1)


def checked_exponent(exponent: int) -> int:
    """An exponent in the range of lattices."""
    if not LEAST_EXPONENT <= exponent <= MOST_EXPONENT:
        raise DomainError(
            f"grid must be in [2**{LEAST_EXPONENT}, 2**{MOST_EXPONENT}], got 2**{exponent}"
        )
    return exponent


def cells_of(sensitivity: float, exponent: int) -> int:
    """By how many cells rounded values of neighbors differ at most: ``ceil(sensitivity / grid)``.

    Values are rounded half up, ``floor(x / grid + 1/2)``. For ``|x - y| <= D`` the two floors
    differ by at most the largest whole number of ``[0, D / grid + 1)``, which is
    ``ceil(D / grid)``. Exact: no rounding.

    Raises
    ------
    DomainError
        If they are more than ``MOST_CELLS``.
    """
    cells = math.ceil(Fraction(sensitivity) / _power(exponent))
    if not cells <= MOST_CELLS:
        least = math.frexp(sensitivity)[1] - 31
        raise DomainError(
            f"grid must be at least 2**{least} for sensitivity {sensitivity!r} (which may be 2**31 "
            f"cells), got 2**{exponent}"
        )
    return cells


def default_exponent(spread: float, sensitivity: float, fits: Callable[[int], bool]) -> int:
    """The coarsest lattice on which rounding costs little.

    The grid is the largest power of two that is at most ``spread / 2**7`` and on which the
    sensitivity grows by at most a thousandth, or on the best that fits where none does.

    Parameters
    ----------
    spread : float
        The size of the noise.
    sensitivity : float
    fits : callable
        Whether the noise can be listed on the lattice of an exponent.
    """
    exponent = max(math.frexp(spread)[1] - 1 - _FINENESS, LEAST_EXPONENT)
    while exponent < MOST_EXPONENT and not fits(exponent):
        exponent += 1
    best, least = exponent, None
    while exponent >= LEAST_EXPONENT and fits(exponent):
        length = Fraction(sensitivity) / _power(exponent)
        price = math.ceil(length) / length - 1
        if least is None or price < least:
            best, least = exponent, price
        if price <= _PRICE:
            break
        exponent -= 1
    return checked_exponent(best)


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent
