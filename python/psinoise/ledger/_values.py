"""What a ledger counts: the values that are released, read once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psinoise.release.data import declares_a_type, is_masked

__all__ = ["Held", "read_once"]


class Held(NamedTuple):
    """Values that nobody else holds, how many there are, and whether any is masked."""

    values: ArrayLike
    size: int
    masked: bool


def read_once(x: ArrayLike) -> Held:
    """The values of an array-like, in an array, or in lists where nothing declares a type.

    Array-likes may say anything of their size, give other values when they are read again, or
    change in another thread. Masks are lost on the way, and what is under them would be released.
    """
    if declares_a_type(x):
        found = np.asanyarray(x)
        # The second step copies whatever the first one found, and drops subclasses.
        held = np.array(found, copy=True, subok=False)
        return Held(held, held.size, is_masked(x) or is_masked(found))
    try:
        items = np.array(x, dtype=object)
    except ValueError:
        raise TypeError("x must be a rectangular array of real numbers") from None
    # Which type they get is for the release to say, by its bounds.
    values = items.tolist()
    return Held(values, items.size, is_masked(x) or is_masked(values))
