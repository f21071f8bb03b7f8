"""Functions of arrays, a block at a time: what is made on the way stays in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fill_in_blocks"]

Float = NDArray[np.float64]

_BLOCK = 1 << 12


def fill_in_blocks(function: Callable[[Float], Float], x: NDArray[Any], out: NDArray[Any]) -> None:
    """Write an elementwise function of 1-d float64 arrays to an array of float64 or float32."""
    flat, results = x.reshape(-1), out.reshape(-1)
    # Values too large or small for float32 become infinite or 0.
    with np.errstate(over="ignore", under="ignore"):
        for start in range(0, flat.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            results[part] = function(flat[part].astype(np.float64, copy=False))
