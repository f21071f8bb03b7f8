"""From a grid and a cost to the optimal masses: coarse to fine, generating shifts as they bind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import MOST_SOLVED, Grid
from psinoise.optimize.certificate import Certificate, certify
from psinoise.optimize.continued import continued
from psinoise.optimize.interior_point import minimize
from psinoise.optimize.program import Float, Program, Shifts

__all__ = ["CostOfCells", "Progress", "Solution", "solve"]

# Masses are continued where cells reach this many sensitivities, from ones that are so much closer
# to the optimum, and taken where their gap is this share of the divergence.
_LARGE, _CLOSER, _NEAR = 40, 0.1, 1e-9
# Below this many cells per unit of sensitivity all shifts are taken at once.
_ALL_SHIFTS = 48
_REFINEMENT = 5
_MOST_ROUNDS = 30
# Of the cost bound; iterates stay inside it, so that nothing but rounding can exceed it.
_ROUNDING = 1e-12
# Violated shifts that enter in one round.
_MOST_NEW = 40


CostOfCells = Callable[[Grid], Float]
Progress = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """Optimal masses on a grid, and the proof that they are."""

    masses: Float
    certificate: Certificate


def solve(
    grid: Grid,
    cost_of_cells: CostOfCells,
    mean_cost: float,
    *,
    tolerance: float = 1e-10,
    progress: Progress | None = None,
) -> Solution:
    """Solve program (20) of Alghamdi et al., "Cactus mechanisms", for a grid.

    Parameters
    ----------
    cost_of_cells : callable
        From a grid to the expected cost per unit of each mass (tail included in the last).
    mean_cost : float
        Bound of the expected cost.
    tolerance : float
        Of the complementarity gap, relative to the divergence where that is below 1.
    progress : callable, optional
        Called with the number of cells per unit of sensitivity that are being worked on and the
        gap, in every iteration.

    Raises
    ------
    CalibrationError
        If no law on the grid meets the cost bound, or the method does not converge.
    """
    program = Program(grid.width, grid.tail_ratio, cost_of_cells(grid), mean_cost)
    least = float((program.costs / program.multiplicities).min())
    if not (least < mean_cost):
        raise CalibrationError(
            f"mean_cost must be above {least!r}, the cost of the law that is uniform on the "
            f"cheapest cell, got {mean_cost!r}; take more cells or allow a larger cost"
        )
    known = _continued(program, grid, cost_of_cells, tolerance, progress)
    if known is not None:
        return known
    if grid.last > MOST_SOLVED:
        raise CalibrationError(
            f"cells must be at most {MOST_SOLVED} but for large noise of the cost x**2, "
            f"got {grid.last}"
        )
    shifts = _first_shifts(grid, cost_of_cells, mean_cost, progress)
    start = _start(program)
    report = None if progress is None else (lambda gap: progress(grid.width, gap))
    for _ in range(_MOST_ROUNDS):
        optimum = minimize(program, shifts, start, tolerance=tolerance, progress=report)
        # Divide out the rounding of the total.
        masses = optimum.masses / float(program.multiplicities @ optimum.masses)
        divergences = program.divergences(masses, program.all_shifts)
        largest = float(divergences.max())
        met = float(divergences[shifts - 1].max())
        if largest - met <= tolerance * min(1.0, largest):
            break
        shifts = np.union1d(shifts, _violated(divergences, met))
    else:
        raise CalibrationError(f"the binding shifts were not found in {_MOST_ROUNDS} rounds")
    return _certified(program, masses, shifts, optimum.weights)


def _certified(program: Program, masses: Float, shifts: Shifts, weights: Float) -> Solution:
    used, mean_cost = float(program.costs @ masses), program.mean_cost
    if not (used <= mean_cost * (1.0 + _ROUNDING) and (masses > 0.0).all()):
        raise CalibrationError(
            f"the optimum is not feasible: its expected cost is {used!r}, the bound {mean_cost!r}"
        )
    return Solution(masses, certify(program, masses, shifts, weights))


def _continued(
    program: Program,
    grid: Grid,
    cost_of_cells: CostOfCells,
    tolerance: float,
    progress: Progress | None,
) -> Solution | None:
    """The optimum on cells of one sensitivity continued to narrower ones, where that is optimal."""
    if grid.width == 1 or grid.last < _LARGE * grid.width:
        return None
    wide = Grid(1, math.ceil(grid.last / grid.width), grid.tail_ratio**grid.width)
    costs = cost_of_cells(wide)
    # Wide cells cost more in themselves: by the same for all where the cost is x**2.
    more = float(costs[0] - program.costs[0])
    bound, closer = program.mean_cost + more, _CLOSER * tolerance
    try:
        found = solve(wide, cost_of_cells, bound, tolerance=closer, progress=progress)
        used = min(float(costs @ found.masses), bound) - more
        masses = continued(program, found.masses, used)
        solution = _certified(program, masses, np.array([grid.width]), np.ones(1))
    except CalibrationError:
        return None
    certificate = solution.certificate
    return solution if certificate.gap <= _NEAR * certificate.largest_kl else None


def _first_shifts(
    grid: Grid, cost_of_cells: CostOfCells, mean_cost: float, progress: Progress | None
) -> Shifts:
    """All shifts of a small grid; of a fine one those near what binds on a coarser one.

    Some in between are added: with shift ``n`` alone the program falls apart into one for each
    residue class modulo ``n``, whose shares are then left to the barrier.
    """
    everything = np.arange(1, grid.width + 1)
    if grid.width <= _ALL_SHIFTS:
        return everything
    spread = everything[:: -(grid.width // 20)]
    coarse = _coarser(grid)
    try:
        binding = solve(
            coarse, cost_of_cells, mean_cost, tolerance=1e-6, progress=progress
        ).certificate.active_shifts
    except CalibrationError:
        # Wide cells may be too expensive where narrow ones are not.
        return everything
    distance = np.abs(everything[:, None] / grid.width - np.array(binding))
    near = everything[(distance < 1.0 / coarse.width).any(axis=1)]
    return np.union1d(near, spread[2 * spread > grid.width])


def _coarser(grid: Grid) -> Grid:
    """The same support and tail with a fifth of the cells."""
    width = max(1, round(grid.width / _REFINEMENT))
    factor = grid.width / width
    last = max(width + 1, round(grid.last / factor))
    return Grid(width, last, grid.tail_ratio**factor)


def _violated(divergences: Float, met: float) -> Shifts:
    """Shifts that exceed the divergence of those that were considered, at most ``_MOST_NEW``."""
    above = np.flatnonzero(divergences > met)
    if above.size <= _MOST_NEW:
        return above + 1
    padded = np.concatenate([[-np.inf], divergences, [-np.inf]])
    peaks = above[(divergences[above] >= padded[above]) & (divergences[above] >= padded[above + 2])]
    spread = above[np.linspace(0, above.size - 1, _MOST_NEW).astype(int)]
    return np.union1d(peaks, spread) + 1


def _start(program: Program) -> Float:
    """Masses of total 1 that use nine tenths of the room between the cheapest law and the bound.

    A tenth of the room goes to a uniform background, which keeps small masses from having to grow
    by many orders; the rest to a peak ``1 / (1 + (i / b)**4)`` of fitting width.
    """
    cells = np.arange(program.last + 1.0)
    unit_costs = program.costs / program.multiplicities
    cheapest = int(np.argmin(unit_costs))
    flat = np.full(cells.size, 1.0 / program.multiplicities.sum())
    room = program.mean_cost - float(unit_costs[cheapest])
    excess = float(program.costs @ flat - unit_costs[cheapest])
    share = 0.1 if excess <= room else 0.1 * room / excess

    def family(log_width: float) -> Float:
        peak = 1.0 / (1.0 + ((cells - cheapest) * np.exp(-log_width)) ** 4)
        return np.asarray((1.0 - share) * peak / (program.multiplicities @ peak) + share * flat)

    low, high = -20.0, np.log(10.0 * program.last)
    target = program.mean_cost - 0.1 * room
    for _ in range(60):
        middle = 0.5 * (low + high)
        if program.costs @ family(middle) < target:
            low = middle
        else:
            high = middle
    return family(low)
