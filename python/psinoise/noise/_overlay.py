"""A law in cells beside itself, shifted: pieces on which both densities are constant.

Edges are compared exactly, as whole numbers of a common unit: floats are fractions, and so is the
shift in units of the law's scale. Edges that meet are one, whatever their rounding would say, and
those that do not leave a piece between them, however thin: its probability is a quotient of whole
numbers, rounded once.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from psinoise.errors import DomainError
from psinoise.noise._cells import Cells

__all__ = ["Pieces", "lattice_overlay", "lattice_shifts", "multiple", "overlay"]

Float = NDArray[np.float64]
#: Probabilities under the shifted law and under the law, and the logarithm of their ratio.
Pieces = tuple[Float, Float, Float]

_MOST_SHIFTS = 1 << 16
_MOST_EDGES = 1 << 20


def overlay(cells: Cells, shift: Fraction) -> Pieces:
    """Pieces of the line under the shifted law and under the law itself.

    On each piece the ratio of the densities is constant, and the pieces are all of the line. Only
    ``x >= shift / 2`` is looked at: the reflection ``x -> shift - x`` exchanges the two laws.
    Beyond the listed cells both repeat, and the copies of a piece are a geometric series. The shift
    is positive, in units of the standardized law; each probability is right to a few ulp of itself.
    DomainError if the shift is so many periods that there are more than 2**20 edges.
    """
    exact = [Fraction(edge) for edge in cells.edges.tolist()]
    # Middles of pieces that begin at half the shift are whole numbers, too.
    unit = 4 * math.lcm(shift.denominator, *(edge.denominator for edge in exact))
    edges, far = [int(edge * unit) for edge in exact], int(shift * unit)
    half, end = far // 2, edges[-1] + far
    last, period, listed = end, 0, edges
    if cells.repeated:
        period = edges[-1] - edges[-1 - cells.repeated]
        copies = -(-far // period) + 2
        if copies * cells.repeated > _MOST_EDGES:
            raise DomainError(f"sensitivity must be at most {_MOST_EDGES} cells of noise in cells")
        block = edges[-cells.repeated :]
        listed = edges + [edge + k * period for k in range(1, copies + 1) for edge in block]
        last += period
    points = {half, end, last, *listed}
    points |= {far + edge for edge in listed} | {far - edge for edge in listed}
    cuts = sorted(point for point in points if half <= point <= last)

    def place(point: int) -> tuple[int, int]:
        """The cell of a point that is on no edge, and its copy; after the last there is nothing."""
        copy = 0
        if period and point > edges[-1]:
            copy = -(-(point - edges[-1]) // period)
        return bisect_right(edges, point - copy * period) - 1, copy

    shifted, base, loss = [], [], []
    for left, right in itertools.pairwise(cuts):
        middle = (left + right) // 2
        moved, own = place(abs(middle - far)), place(middle)
        # All copies of a period beyond the end, added up.
        share = 1.0 / cells.complement if cells.repeated and left >= end else 1.0
        shifted.append(share * _part(cells, edges, moved, right - left))
        base.append(share * _part(cells, edges, own, right - left))
        loss.append(_log_ratio(cells, moved, own))
    return _both_sides(cells.atom, np.array(shifted), np.array(base), np.array(loss))


def _part(cells: Cells, edges: list[int], place: tuple[int, int], width: int) -> float:
    """Probability of a part of a cell."""
    cell, copy = place
    if cell == cells.masses.size:
        return 0.0
    share = width / (edges[cell + 1] - edges[cell])
    return float(0.5 * cells.masses[cell]) * share * math.exp(-cells.rate * copy if copy else 0.0)


def _log_ratio(cells: Cells, moved: tuple[int, int], own: tuple[int, int]) -> float:
    """Of the densities in two places."""
    size = cells.masses.size
    if moved[0] == size or own[0] == size:
        return 0.0 if moved[0] == own[0] else math.inf if own[0] == size else -math.inf
    copies = (own[1] - moved[1]) * cells.rate if own[1] != moved[1] else 0.0
    return float(cells.depths[own[0]] - cells.depths[moved[0]]) + copies


def _both_sides(atom: float, shifted: Float, base: Float, loss: Float) -> Pieces:
    """With what the reflection makes of the pieces; each atom is where the other law has none."""
    if atom > 0.0:
        shifted, base = np.append(shifted, atom), np.append(base, 0.0)
        loss = np.append(loss, np.inf)
    both = np.concatenate([shifted, base]), np.concatenate([base, shifted])
    return *both, np.concatenate([loss, -loss])


def lattice_overlay(cells: Cells, shift: Fraction) -> Pieces:
    """As `overlay`, for cells that are all of one width, around whole numbers, and a shift in units
    of that width.

    With a shift of ``m + f``, ``0 <= f < 1``, cell ``k`` meets cell ``k - m - 1`` of the moved law
    on its first part ``f`` and cell ``k - m`` on the rest. The line is halved within the one piece
    on which both are the same cell.
    """
    whole = math.floor(shift)
    first, rest = float(shift - whole), float(1 - (shift - whole))
    numbers, last = np.arange(cells.masses.size), cells.masses.size - 1
    weights = np.where(numbers == 0, cells.masses, 0.5 * cells.masses)

    def probability(k: NDArray[np.int64]) -> Float:
        if not cells.repeated:
            return np.where(k <= last, weights[np.minimum(k, last)], 0.0)
        return np.asarray(weights[np.minimum(k, last)] * np.exp(-cells.rate * _beyond(k, last)))

    found = []
    for part, moved in ((first, whole + 1), (rest, whole)):
        if part > 0.0:
            k = np.arange(moved // 2 + 1, last + moved + 1)
            parts = np.full(k.size, part)
            if cells.repeated:
                # Both are in the tail from the last one on.
                parts[-1] /= cells.complement
            near, own = np.abs(k - moved), k
            with np.errstate(invalid="ignore"):
                fall = cells.rate * (_beyond(own, last) - _beyond(near, last))
                ends = cells.depths[np.minimum(own, last)] - cells.depths[np.minimum(near, last)]
            if not cells.repeated:
                fall = np.where(own > last, np.inf, 0.0)
            found.append((parts * probability(near), parts * probability(own), ends + fall))
    # Where the line is halved.
    same, part = (whole // 2, rest) if whole % 2 == 0 else (whole // 2 + 1, first)
    if part > 0.0:
        level = 0.5 * part * probability(np.array([same]))
        found.append((level, level, np.zeros(1)))
    shifted, base, loss = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return _both_sides(cells.atom, shifted, base, loss)


def _beyond(k: NDArray[np.int64], last: int) -> Float:
    return np.maximum(k - last, 0).astype(np.float64)


def multiple(step: float, shift: float) -> int | None:
    """Of a step, if a number is what a multiple of it is rounded to."""
    count = round(shift / step)
    return count if count >= 1 and count * step == shift else None


def lattice_shifts(step: float, sensitivity: float, cells: Fraction) -> tuple[float, ...] | None:
    """The shifts up to a sensitivity among which one is the worst, for cells of one width.

    Let all cells be ``step`` wide. As the shift goes from one multiple of the width to the next,
    the pieces on which two given cells meet grow or shrink in proportion, and every profile
    ``sum over pieces of (T_a p - gamma p)^+`` is affine. So its largest value is at a multiple, or
    at the sensitivity itself. None if there are more than 65,536 of them.

    ``step`` is rounded, and what ``k * step`` is rounded to stands for exactly ``k`` cells;
    ``cells`` is how many of them the sensitivity is, exactly. If it is rounded to a number that
    stands for fewer cells, the next number stands for it: between both the profile is affine.
    """
    most = math.floor(cells)
    if most > _MOST_SHIFTS:
        return None
    shifts = [k * step for k in range(1, most + 1)]
    if cells == most:
        return (*shifts[:-1], sensitivity)
    if shifts and sensitivity <= shifts[-1]:
        sensitivity = math.nextafter(shifts[-1], math.inf)
    return (*shifts, sensitivity)
