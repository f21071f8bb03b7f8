"""What laws that NumPy evaluates have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fill_in_blocks", "from_survival"]

Float = NDArray[np.float64]

# What is made on the way stays in the cache.
_BLOCK = 1 << 12


def fill_in_blocks(function: Callable[[Float], Float], x: NDArray[Any], out: NDArray[Any]) -> None:
    """Write an elementwise function of 1-d float64 arrays to an array of float64 or float32."""
    flat, results = x.reshape(-1), out.reshape(-1)
    # Values too large or small for float32 become infinite or 0.
    with np.errstate(over="ignore", under="ignore"):
        for start in range(0, flat.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            results[part] = function(flat[part].astype(np.float64, copy=False))


def from_survival(quantity: str, x: Float, survival: Float, log_survival: Float) -> Float:
    """One of cdf, ccdf, logcdf and logccdf at ``x``, from the tail beyond ``|x|`` and its log.

    NaN where ``x`` is. The point 0 counts as positive, for laws that have an atom there.
    """
    upper = (x >= 0.0) if "ccdf" in quantity else (x < 0.0)
    if quantity.startswith("log"):
        found = np.where(upper, log_survival, np.log1p(-survival))
    else:
        found = np.where(upper, survival, 1.0 - survival)
    return np.where(np.isnan(x), np.nan, found)
