"""Gaussian noise that is wide against its grid: a sum of a few tables.

A table of ``2**20`` integers reaches no farther than some ``2**17`` cells of a standard deviation.
``K = A_0 + 2**a_1 A_1 + ...`` with discrete Gaussian digits is a discrete Gaussian again, of any
width (``psinoise.release.discrete_gaussian`` has the proof), and each digit is drawn from a table.

The law of such a ``K`` is not listed, so that its losses cannot be added up. It is accounted from
the normal law instead, with two bounds (``psinoise.mechanisms.leak``): `price`, on how much more
likely than of a normal number that is rounded to the grid an event can be, and `missing`, on how
much of one ``K`` does not have. On the grids that mechanisms choose the first is below 1e-25, and
the second, which is what losses multiply, below 1e-35.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from psinoise import _hashed_json, _validate
from psinoise._backend import core
from psinoise._hashed_json import hexadecimal
from psinoise._kept import cached_property
from psinoise.errors import DomainError
from psinoise.noise import Gaussian
from psinoise.release.discrete_gaussian import Digit, digits_of, rounding_of
from psinoise.release.grid import grid_from

__all__ = ["WIDEST", "DigitNoise"]

_FORMAT, _VERSION = "psinoise-digit-noise", 1

#: The largest standard deviation, in cells.
WIDEST = 2.0**50


@dataclass(frozen=True)
class DigitNoise:
    """A discrete Gaussian law of multiples of a grid, drawn in digits.

    Parameters
    ----------
    std : float
        That of the normal law that it follows.
    grid : float
        The distance of neighboring values; the standard deviation is 2**10 to 2**50 of them.
    """

    std: float
    grid: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", _validate.positive("std", self.std))
        object.__setattr__(self, "grid", grid_from(self.grid))
        if not 2.0**10 * self.grid <= self.std <= WIDEST * self.grid:
            raise DomainError(
                f"std must be in [2**10, 2**50] times the grid {self.grid!r}, got {self.std!r}"
            )

    @property
    def ideal(self) -> Gaussian:
        """The normal law that it follows, from which it is accounted."""
        return Gaussian(std=self.std)

    @cached_property
    def digits(self) -> tuple[Digit, ...]:
        """The tables, the lowest digit first."""
        return digits_of(self._variance + Fraction(1, 12))

    @property
    def _variance(self) -> Fraction:
        return (Fraction(self.std) / Fraction(self.grid)) ** 2

    @cached_property
    def price(self) -> float:
        """A bound on the total variation between ``K`` and the rounded normal law, and on twice how
        much rarer than there any number can be that is not `missing`."""
        drawn = math.fsum(digit.price + 2.0 * digit.lack for digit in self.digits)
        rounding = rounding_of(self._variance)
        return (drawn + rounding.price + 2.0 * rounding.lack) * (1.0 + 2.0**-40)

    @cached_property
    def missing(self) -> float:
        """A bound on what ``K`` does not have of the rounded normal law, but for a common factor of
        its probabilities."""
        unlisted = math.fsum(digit.unlisted for digit in self.digits)
        return (unlisted + rounding_of(self._variance).missing) * (1.0 + 2.0**-40)

    @cached_property
    def sha256(self) -> str:
        """The hash of the integers, in hexadecimal.

        Of a line ``psinoise-digit-noise 1 std grid`` in ASCII, ended by a line feed, the numbers as
        ``float.hex`` has them, and for each digit its shift, the number of its weights, and its
        weights and those of its rest as 64-bit little-endian words.
        """
        header = f"{_FORMAT} {_VERSION} {self.std.hex()} {self.grid.hex()}\n"
        found = hashlib.sha256(header.encode())
        for digit in self.digits:
            words = np.array([digit.shift, digit.weights.listed.size], "<u8")
            found.update(words.tobytes() + digit.weights.listed.astype("<u8").tobytes())
            found.update(digit.rest.listed.astype("<u8").tobytes())
        return found.hexdigest()

    def to_json(self) -> str:
        """What the integers follow from, and their hash."""
        content = {"std": self.std.hex(), "grid": self.grid.hex(), "integers": self.sha256}
        return _hashed_json.dumps(_FORMAT, _VERSION, content)

    @classmethod
    def from_json(cls, text: str) -> DigitNoise:
        """Read what `to_json` wrote, and make the integers again.

        Raises
        ------
        TypeError
            If ``text`` is not a string.
        DomainError
            For anything that `to_json` would not have written.
        """
        found = _hashed_json.loads(text, _FORMAT, _VERSION, ("std", "grid", "integers"))
        made = cls(hexadecimal("std", found["std"]), hexadecimal("grid", found["grid"]))
        if found["integers"] != made.sha256:
            raise DomainError("integers must be those of this std and grid")
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return DigitNoise, (self.std, self.grid)

    # -- sampling --------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> core.LatticeTable:
        lowest, *above = self.digits
        made = _table_of(lowest)
        for digit in above:
            made = made.plus(_table_of(digit), digit.shift)
        return made


def _table_of(digit: Digit) -> core.LatticeTable:
    return core.LatticeTable(*digit.weights).with_rest(core.LatticeTable(*digit.rest))
