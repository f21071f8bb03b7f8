"""A law in cells beside itself, shifted: pieces on which both densities are constant."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from psinoise.noise._cells import Cells

__all__ = ["lattice_shifts", "overlay"]

Float = NDArray[np.float64]

# Edges that are this close, relative to the farthest, are one edge and its rounding: cells that end
# together would otherwise leave slivers between them, on which any two cells meet.
_SAME_EDGE = 2.0**-48
_MOST_SHIFTS = 1 << 16


def overlay(cells: Cells, shift: float) -> tuple[Float, Float]:
    """Probabilities of pieces of the line under the shifted law and under the law itself.

    On each piece the ratio of the densities is constant, and the pieces are all of the line. Only
    ``x >= shift / 2`` is looked at: the reflection ``x -> shift - x`` exchanges the two laws.
    Beyond the listed cells both repeat, and the copies of a piece are a geometric series.

    Parameters
    ----------
    shift
        positive, in units of the standardized law

    Returns
    -------
    tuple of ndarray
        each right to a few ulp of itself
    """
    half, far = 0.5 * shift, cells.end + shift
    edges = cells.edges
    last = far
    if cells.repeated:
        copies = math.ceil(shift / cells.period) + 2
        block = edges[-cells.repeated :]
        tail = (block + cells.period * np.arange(1.0, copies + 1.0)[:, None]).reshape(-1)
        edges, last = np.concatenate([edges, tail]), far + cells.period
    points = np.concatenate([edges, shift + edges, shift - edges, [half, far, last]])
    points = np.sort(points[(points >= half) & (points <= last * (1.0 + _SAME_EDGE))])
    points = points[np.diff(points, prepend=-np.inf) > _SAME_EDGE * last]
    middle, widths = 0.5 * (points[1:] + points[:-1]), np.diff(points)
    shifted = widths * np.exp(cells.log_density(np.abs(middle - shift)))
    base = widths * np.exp(cells.log_density(middle))
    if cells.repeated:
        repeated = middle > far
        shifted[repeated] /= cells.complement
        base[repeated] /= cells.complement
    if cells.atom > 0.0:
        shifted, base = np.append(shifted, cells.atom), np.append(base, 0.0)
    return np.concatenate([shifted, base]), np.concatenate([base, shifted])


def lattice_shifts(step: float, sensitivity: float) -> tuple[float, ...] | None:
    """The shifts up to a sensitivity among which one is the worst, for cells of one width.

    Let all cells be ``step`` wide. As the shift goes from one multiple of the width to the next,
    the pieces on which two given cells meet grow or shrink in proportion, and every profile
    ``sum over pieces of (T_a p - gamma p)^+`` is affine. So its largest value is at a multiple, or
    at the sensitivity itself. None if there are more than 65,536 of them.
    """
    most = math.floor(sensitivity / step * (1.0 + _SAME_EDGE))
    if most > _MOST_SHIFTS:
        return None
    shifts = [k * step for k in range(1, most + 1)]
    if not shifts or sensitivity - shifts[-1] > _SAME_EDGE * sensitivity:
        shifts.append(sensitivity)
    else:
        shifts[-1] = sensitivity
    return tuple(shifts)
