"""Band matrices: twin of ``csrc/kernels/band.cpp``, to rounding."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Float = NDArray[np.float64]


def _shape(band: Float, right: Float | None = None) -> tuple[int, int]:
    """Size and width of a band matrix; ``right`` has rows of its size."""
    if band.ndim != 2 or not 1 <= band.shape[1] <= band.shape[0]:
        raise ValueError("band must have shape (size, width + 1), width below size")
    if right is not None and (right.ndim != 2 or right.shape[1] != band.shape[0]):
        raise ValueError("right must have one column for each of the band's")
    return band.shape[0], band.shape[1] - 1


def band_cholesky(band: Float) -> bool:
    """Replace a band matrix by its Cholesky factor; False if it is not positive definite."""
    size, width = _shape(band)
    for j in range(size):
        if not band[j, 0] > 0.0:
            return False
        band[j, 0] = np.sqrt(band[j, 0])
        below = min(width, size - 1 - j)
        column = band[j, 1 : below + 1] / band[j, 0]
        band[j, 1 : below + 1] = column
        if below:
            # Row d of the window is the column from its entry d on, which meets that entry.
            window = sliding_window_view(np.append(column, np.zeros(below)), below)[:below]
            band[j + 1 : j + 1 + below, :below] -= column[:, None] * window
    return True


def band_forward(band: Float, right: Float) -> None:
    """Replace each row of ``right`` by ``L^-1`` times it."""
    size, width = _shape(band, right)
    for j in range(size):
        right[:, j] /= band[j, 0]
        below = min(width, size - 1 - j)
        right[:, j + 1 : j + 1 + below] -= right[:, j, None] * band[j, 1 : below + 1]


def band_backward(band: Float, right: Float) -> None:
    """Replace each row of ``right`` by ``L'^-1`` times it."""
    size, width = _shape(band, right)
    for j in range(size - 1, -1, -1):
        below = min(width, size - 1 - j)
        inner = (right[:, j + 1 : j + 1 + below] * band[j, 1 : below + 1]).sum(axis=1)
        right[:, j] = (right[:, j] - inner) / band[j, 0]


def gram(rows: Float) -> Float:
    """Products of all pairs of rows."""
    if rows.ndim != 2:
        raise ValueError("rows must have two dimensions")
    return np.asarray(np.einsum("ri,si->rs", rows, rows))
