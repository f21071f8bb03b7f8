"""Programs over the masses of cells: the grid, what it costs, and what a mass stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._kept import cached_property

Float = NDArray[np.float64]


__all__ = ["MOST_SOLVED", "CellProgram", "Float", "Grid", "dot"]

#: The most cells before the tail of a program that is solved.
MOST_SOLVED = (1 << 15) - 1


def dot(a: Float, b: Float) -> float:
    """The inner product, without a library that would start threads for it."""
    return float(np.einsum("i,i->", a, b))


@dataclass(frozen=True)
class Grid:
    """Cells of width ``1 / width`` up to number ``last``, then a geometric tail."""

    width: int
    last: int
    tail_ratio: float


@dataclass(frozen=True, eq=False)
class CellProgram:
    """Masses ``p_0, ..., p_N`` of a symmetric law, and ``p_N r, p_N r**2, ...`` without end.

    Parameters
    ----------
    width : int
        Cells per unit of sensitivity, ``n``.
    tail_ratio : float
        ``r``, the ratio of neighboring masses beyond cell ``N``.
    costs : ndarray of shape (N + 1,)
        Expected cost per unit of each mass, of both sides; that of the last one includes the tail.
    """

    width: int
    tail_ratio: float
    costs: Float

    @property
    def last(self) -> int:
        """``N``."""
        return self.costs.size - 1

    @cached_property
    def multiplicities(self) -> Float:
        """Total mass of the law per unit of each mass; the last one includes the tail."""
        counts = np.full(self.costs.size, 2.0)
        counts[0] = 1.0
        counts[-1] = 2.0 / (1.0 - self.tail_ratio)
        return counts
