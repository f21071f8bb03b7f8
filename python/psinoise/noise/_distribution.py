"""From the tail of a symmetric law to its distribution function and their logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["from_survival"]

Float = NDArray[np.float64]


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
