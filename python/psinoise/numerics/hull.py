"""The hull of points in the plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["concave_hull"]

# Passes over all points of a hull, before they are looked at one by one.
_PASSES = 8


def concave_hull(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices of the upper concave hull of some points, by Andrew's monotone chain."""
    order = np.lexsort((-y, x))
    order = order[np.diff(x[order], prepend=-np.inf) > 0.0]
    for _ in range(_PASSES):
        # Quotients: products of small probabilities would underflow.
        slope = np.diff(y[order]) / np.diff(x[order])
        # Most points are below the chord of their neighbors.
        above = np.concatenate([[True], slope[:-1] > slope[1:], [True]])
        order = order[above[: order.size]]
    kept: list[int] = []
    for i in order.tolist():
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) / (x[b] - x[a]) > (y[i] - y[a]) / (x[i] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)
