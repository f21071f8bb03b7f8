"""The program of the cactus law in a general conic solver, for comparison.

Program (20) of Alghamdi et al., "Cactus mechanisms" (ISIT 2022), with one exponential cone for each
pair of cells and shift, by cvxpy and Clarabel. Neither is a dependency of the package.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psinoise.noise import Cactus

__all__ = ["conic_solver", "has_conic_solver"]


def has_conic_solver() -> bool:
    """Whether cvxpy and Clarabel are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("cvxpy", "clarabel"))


def conic_solver(law: Cactus) -> Callable[[], float]:
    """A function that states and solves the program of a law and returns the optimum."""
    cvxpy = importlib.import_module("cvxpy")
    width, last, ratio = law.cells_per_sensitivity, law.cells, law.tail_ratio
    counts = np.append(1.0, np.full(last, 2.0))
    counts[-1] /= 1.0 - ratio
    costs = law._costs_of_cells(law._grid)

    def run() -> float:
        p, largest = cvxpy.Variable(last + 1), cvxpy.Variable()
        constraints = [p >= 0, counts @ p == 1, costs @ p <= law.mean_cost]
        for shift in range(1, width + 1):
            cells = np.arange(1 - last, last + shift)
            pair = _masses(cells, last, ratio) @ p, _masses(cells - shift, last, ratio) @ p
            tail = (1.0 - ratio**shift) / (1.0 - ratio) * -shift * np.log(ratio)
            constraints.append(cvxpy.sum(cvxpy.rel_entr(*pair)) + tail * p[last] <= largest)
        problem = cvxpy.Problem(cvxpy.Minimize(largest), constraints)
        with warnings.catch_warnings():
            # At 20 cells to a sensitivity Clarabel ends with an "inaccurate" solution: 6e-5 off.
            warnings.simplefilter("ignore", UserWarning)
            return float(problem.solve(solver="CLARABEL"))

    return run


def _masses(cells: NDArray[np.int64], last: int, ratio: float) -> sparse.csr_array:
    """The matrix that takes the variables to the masses of these cells, of both signs."""
    away = np.abs(cells)
    values = ratio ** np.maximum(away - last, 0).astype(float)
    places = np.arange(cells.size), np.minimum(away, last)
    return sparse.csr_array((values, places), shape=(cells.size, last + 1))
