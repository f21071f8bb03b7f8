"""What a ledger counts: the values that are released, read once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["read_once"]


def read_once(x: ArrayLike) -> tuple[NDArray[Any], bool]:
    """An array that nobody else holds, with the values of an array-like; and whether any is masked.

    Array-likes may say anything of their size, give other values when they are read again, or
    change in another thread. Masks are lost on the way, and what is under them would be released.
    """
    # The second step copies whatever the first one found, and drops subclasses.
    found = np.asanyarray(x)
    return np.array(found, copy=True, subok=False), _has_masked(x) or _has_masked(found)


def _has_masked(x: object) -> bool:
    if isinstance(x, list | tuple):
        # Lists of numbers may be long.
        return any(_has_masked(item) for item in x if not isinstance(item, int | float))
    return bool(np.ma.is_masked(x))
