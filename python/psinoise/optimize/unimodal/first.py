"""Where to begin: sizes, grids and laws for a cost or an epsilon, by Laplace noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import MOST_SOLVED, Grid, dot
from psinoise.optimize.unimodal.problem import Problem
from psinoise.optimize.unimodal.program import Float, Program

__all__ = [
    "COARSE",
    "STEEPEST",
    "at_cost",
    "coarser",
    "covering",
    "fitted",
    "last_of",
    "least_size",
    "moved",
    "size_of",
    "start",
    "width_for",
]

#: Cells to a sensitivity of the first rounds.
COARSE = 20
# The least number of them in all, and how many times as many may be taken for common edges.
_FEW, _ALIGNED = 200, 3
# The cells to a sensitivity, and in all, of a grid that is chosen.
_FINEST, _MANY = 200, 6000
# The scale of Laplace noise up to which noise is small, in sensitivities.
_SMALL = 0.5
#: The largest rate of the first law and of tails, in a sensitivity.
STEEPEST = 4.0
# Of staircases: periods, places of the first step, and the largest one for which cells are chosen.
_PERIODS, _PLACES, _FAR = 40, 4096, 0.2
# The lowest logarithm of a mass.
_LOWEST = 600.0
# Logarithms of sizes of Laplace noise among which a first one is sought, and how closely.
_SMALLEST, _LARGEST, _ABOUT = -6.0, 10.0, 1e-2


def coarser(grid: Grid) -> Grid:
    """The same support and tail with cells for the first rounds."""
    width = min(grid.width, max(COARSE, math.ceil(_FEW * grid.width / grid.last)))
    if width >= 0.7 * grid.width:
        return grid
    # Edges are common where an odd number of cells becomes one.
    common = (n for n in range(width, min(_ALIGNED * width, grid.width)) if grid.width % n == 0)
    width = next((n for n in common if grid.width // n % 2 == 1), width)
    factor = grid.width / width
    return Grid(width, max(width + 1, round(grid.last / factor)), grid.tail_ratio**factor)


def start(program: Program, mean_cost: float) -> Float:
    """Differences of the geometric law of the cost, with a little of a straight one; of small noise
    a tenth of the cost is that of wider noise, so that no ratio is enormous."""
    x = np.arange(program.last + 1.0)
    flat = np.ones(program.last + 1) / program.multiplicities.sum()

    def law(rate: float) -> Float:
        p = np.exp(-np.minimum(rate * x, _LOWEST))
        return np.asarray(p / dot(program.multiplicities, p))

    wide = law(STEEPEST / program.width)
    share = min(0.5, 0.1 * mean_cost / dot(program.costs, wide))
    low, high = 1e-8, 50.0

    def mixed(rate: float) -> Float:
        added = share if rate * program.width > STEEPEST else 0.0
        return np.asarray((1.0 - added) * law(rate) + added * wide)

    least, most = dot(program.costs, law(high)), dot(program.costs, flat)
    if not least < mean_cost < most:
        raise CalibrationError(
            f"mean_cost must be between {least!r} and {most!r} for these cells, got {mean_cost!r}"
        )
    for _ in range(45):
        middle = math.sqrt(low * high)
        dear = dot(program.costs, mixed(middle)) > mean_cost
        low, high = (middle, high) if dear else (low, middle)
    return np.asarray(-np.diff(np.append(mixed(high), 0.0)) + 1e-14 * flat[0])


def moved(before: Grid, masses: Float, grid: Grid) -> Float:
    """A law on other cells, which have its mean densities."""
    edges = (np.arange(grid.last + 1) + 0.5) / grid.width
    more = max(0, math.ceil(edges[-1] * before.width) - before.last)
    tail = masses[-1] * np.exp(np.log(before.tail_ratio) * np.arange(1.0, more + 1.0))
    known = np.append(0.0, np.cumsum(np.concatenate([[0.5 * masses[0]], masses[1:], tail])))
    old = np.append(0.0, (np.arange(known.size - 1) + 0.5) / before.width)
    below = np.interp(edges, old, known)
    found = np.diff(np.append(0.0, below))
    found[0] *= 2.0
    return np.asarray(np.minimum.accumulate(np.maximum(found, 1e-300)))


def width_for(far: float) -> int:
    """Cells to a sensitivity where none are asked for, by how far they must reach."""
    return max(1, min(_FINEST, int(_MANY / far)))


def last_of(width: int, far: float) -> int:
    """The number of the last cell.

    Raises
    ------
    CalibrationError
        If it is too large.
    """
    last = max(width + 1, math.ceil(far * width))
    if last > MOST_SOLVED:
        raise CalibrationError(
            f"noise that large takes {last} cells, and {MOST_SOLVED} are the most"
        )
    return last


def covering(width: int, far: float, size: float) -> Grid:
    """Cells up to a distance, with the tail of Laplace noise of a scale, in sensitivities."""
    return Grid(width, last_of(width, far), max(math.exp(-1.0 / (width * size)), 1e-6))


def fitted(
    problem: Problem, grid: Grid, *, mean_cost: float = math.inf, epsilon: float = 0.0
) -> Grid:
    """About the same cells, one of whose edges is the first step of the staircase of a cost or of
    an epsilon of one use: of small noise the best laws are close to it, and a step that is between
    edges costs as much as the square of its distance over where it is."""
    periods, steps = np.arange(_PERIODS), np.arange(1.0, _PLACES + 1.0) / _PLACES
    edges = periods[:, None] + steps
    integrals = problem.cost.integral(edges.reshape(-1)).reshape(edges.shape)

    def costs(log_epsilon: float) -> Float:
        falls = np.exp(-np.minimum(math.exp(log_epsilon) * periods, _LOWEST))
        return np.asarray((falls @ integrals) / (falls @ edges))

    low, high = 0.0, math.log(_LOWEST)
    if epsilon > 0.0:
        low = high = min(max(math.log(epsilon), low), high)
    while high - low > _ABOUT * _ABOUT:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if costs(middle).min() > mean_cost else (low, middle)
    first = float(steps[int(np.argmin(costs(high)))])
    if first > _FAR:
        return grid
    widths = np.arange(math.ceil(0.9 * grid.width), math.floor(1.1 * grid.width) + 1)
    off = np.abs(np.remainder(first * widths, 1.0) - 0.5)
    width = int(widths[int(np.argmin(off))])
    last = max(width + 1, round(grid.last * width / grid.width))
    return Grid(width, last, grid.tail_ratio ** (grid.width / width))


def size_of(problem: Problem, mean_cost: float) -> float:
    """The scale of Laplace noise of about a cost."""
    low, high = -14.0, 14.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _laplace_cost(problem, middle) < mean_cost else (low, middle)
    return math.exp(middle)


def at_cost(problem: Problem, mean_cost: float) -> Problem:
    """The problem, with what the cost says about the size of noise."""
    return replace(problem, small=size_of(problem, mean_cost) < _SMALL)


def _laplace_cost(problem: Problem, log_size: float) -> float:
    size = math.exp(log_size)
    edges = np.concatenate([[0.0], size * np.linspace(1e-3, 40.0, 4000)])
    values = problem.cost.integral(edges)
    weights = np.exp(-edges / size)
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.diff(values) @ (0.5 * (weights[1:] + weights[:-1])) / size)


def least_size(problem: Problem, epsilon: float) -> float:
    """The cost of about the least Laplace noise that meets a target."""
    low, high = _SMALLEST, _LARGEST
    while high - low > _ABOUT:
        middle = 0.5 * (low + high)
        size = math.exp(middle)
        grid = _laplace_grid(size)
        program = problem.program(grid)
        p = np.exp(-np.minimum(np.arange(grid.last + 1.0) / (grid.width * size), _LOWEST))
        p /= dot(program.multiplicities, p)
        cost = dot(program.costs, p)
        point, _ = problem.worst(program, p)
        low, high = (middle, high) if point.epsilon > epsilon else (low, middle)
    return cost


def _laplace_grid(size: float) -> Grid:
    """A few cells for Laplace noise of a scale in sensitivities."""
    width = max(1, round(8.0 / min(size, 8.0)))
    last = max(width + 1, math.ceil(30.0 * size * width))
    return Grid(width, last, math.exp(-1.0 / (width * size)))
