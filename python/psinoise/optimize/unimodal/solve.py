"""The unimodal law of least epsilon: rounds of convex programs, on coarse cells and then on fine.

Epsilon of a law at a delta is a saddle point over orders. At a fixed order the best law solves a
convex program, and the order is that of the law: a few rounds. The same program with another
generator then makes delta itself stationary, in what one of the uses contributes to it (`uses`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import Grid, dot
from psinoise.optimize.unimodal.certified import LARGEST_LOG_RATIO, MARGIN, SHARP, certify
from psinoise.optimize.unimodal.few import KERNELS
from psinoise.optimize.unimodal.first import (
    COARSE,
    STEEPEST,
    at_cost,
    coarser,
    covering,
    fitted,
    least_size,
    moved,
    size_of,
    start,
    width_for,
)
from psinoise.optimize.unimodal.generator import Generator
from psinoise.optimize.unimodal.interior_point import Optimum, masses_of, minimize
from psinoise.optimize.unimodal.linear import resolved
from psinoise.optimize.unimodal.one_use import (
    MOST_LINEAR,
    grid_for_one_use,
    least_cost_of_one_use,
    least_epsilon_of_one_use,
    masses_of_one_use,
)
from psinoise.optimize.unimodal.problem import Law, Problem, Progress
from psinoise.optimize.unimodal.program import Float
from psinoise.optimize.unimodal.uses import Point

__all__ = ["grid_for", "least_cost", "least_epsilon"]

_ORDER_ROUNDS, _DELTA_ROUNDS, _FINE_ROUNDS = 6, 30, 3
# Of epsilon: what a round must gain for another one, what is rough, and of laws that are the same.
_GAIN, _ROUGH, _SAME = 2e-6, 1e-4, 1e-5
_SHORTEST = 1.0 / 64.0
# Of delta, at which rounds for few uses begin with a law of one; how far costs are apart that are
# mixed; of epsilon, from which on a program is not solved, and up to which others are tried.
_SHARE, _APART, _UNSOLVED, _ALMOST = 0.3, 2.0, 1e-5, 1.01
# Cells of the first look at how far a law reaches.
_WIDE = 1500
_ROOM = 1.15
# Roots for the cost: by how much epsilon may be off, and rounds.
_CLOSE, _MOST_ROOTS = 1e-7, 40
# Shares by which costs differ whose laws are near one another.
_NEAR = 0.03


def least_epsilon(
    problem: Problem,
    grid: Grid | None,
    width: int | None,
    mean_cost: float,
    progress: Progress | None = None,
) -> Law:
    """The law of least epsilon at an expected cost.

    Parameters
    ----------
    grid : Grid or None
        Cells of the law; coarser ones are solved first. None takes what fits the cost.
    width : int or None
        Cells to a sensitivity where ``grid`` is None; by default what fits.
    progress : callable, optional
        Called with the number of cells per unit of sensitivity that are worked on and the gap.

    Raises
    ------
    CalibrationError
        If no law on the grid has the cost, or the method does not converge.
    """

    def solved(problem: Problem) -> Law:
        cells = grid or grid_for(problem, mean_cost, width)
        if problem.single:
            return least_epsilon_of_one_use(problem, cells, mean_cost, progress)
        return searched(problem, cells, mean_cost, progress, None).law()

    return _or_of_no_delta(problem, solved, lambda law: law.certificate.epsilon)


def least_cost(
    problem: Problem,
    grid: Grid | None,
    width: int | None,
    epsilon: float,
    progress: Progress | None = None,
) -> Law:
    """The law of least expected cost at an epsilon; parameters as of `least_epsilon`."""

    def solved(problem: Problem) -> Law:
        return _least_cost(problem, grid, width, epsilon, progress)

    return _or_of_no_delta(problem, solved, lambda law: law.mean_cost)


def _or_of_no_delta(
    problem: Problem, solved: Callable[[Problem], Law], size: Callable[[Law], float]
) -> Law:
    """The better of two laws: that of delta, and that of delta = 0, which is one for any delta.

    Of a few uses rounds begin with a law of one. Where programs do not resolve its delta it may be
    worse than that of delta = 0, for whose tail cells have to be made.
    """
    if problem.single or not problem.few or resolved(problem.rare(_SHARE)) > 0.0:
        return solved(problem)
    none = solved(replace(problem, delta=0.0))
    program = problem.program(none.grid)
    none = replace(none, certificate=certify(problem, program, none.masses, none.mean_cost))
    try:
        return min(none, solved(problem), key=size)
    except CalibrationError:
        return none


def _least_cost(
    problem: Problem,
    grid: Grid | None,
    width: int | None,
    epsilon: float,
    progress: Progress | None,
) -> Law:
    if problem.single:
        if grid is None:
            grid = grid_for_one_use(problem, width, epsilon=epsilon)
            grid = grid if width else fitted(problem, grid, epsilon=problem.inner(epsilon))
        return least_cost_of_one_use(problem, grid, epsilon, progress)
    cost, seen = least_size(problem, epsilon), {}
    search: _Search | None = None
    cells, made_for = grid or grid_for(problem, cost, width), cost
    for _ in range(_MOST_ROOTS):
        if grid is None and not _near(cost, made_for):
            cells, made_for = grid_for(problem, cost, width), cost
        search = searched(problem, coarser(cells), cost, None, search)
        law = search.law()
        miss = math.log(max(law.certificate.epsilon, 1e-9) / epsilon)
        seen[cost] = miss
        if abs(miss) < _ROUGH:
            break
        cost = _next(seen, cost, law.certificate.slope * cost / max(law.certificate.epsilon, 1e-9))
    for _ in range(3):
        search = searched(problem, cells, cost, progress, search)
        law = search.law()
        off = law.certificate.epsilon - epsilon
        if abs(off) <= _CLOSE * max(1.0, epsilon):
            break
        step = off / max(law.certificate.slope, 1e-300)
        cost += float(np.clip(step, -0.1 * cost, 0.1 * cost))
    return law


def searched(
    problem: Problem,
    grid: Grid,
    mean_cost: float,
    progress: Progress | None,
    near: _Search | None,
) -> _Search:
    """Rounds on coarse cells, unless there is a law of about the cost, and then on finer ones."""
    problem = at_cost(problem, mean_cost)
    coarse = coarser(grid)
    known = near is not None and near.grid in (coarse, grid) and _near(mean_cost, near.mean_cost)
    if near is None or not known or coarse == grid:
        near = _Search(problem, coarse, mean_cost, progress)
        near.rounds_of_orders()
        near.rounds_of_delta(_DELTA_ROUNDS)
        near.rounds_from_one_use(_DELTA_ROUNDS)
        if coarse == grid:
            return near
    search = _Search(problem, grid, mean_cost, progress, near)
    search.rounds_of_delta(_FINE_ROUNDS)
    search.rounds_from_one_use(_FINE_ROUNDS, _ALMOST)
    return search


def _near(cost: float, other: float) -> bool:
    return abs(cost - other) < _NEAR * cost


def _next(seen: dict[float, float], cost: float, elasticity: float) -> float:
    """A step in logarithms, kept between costs that are known to be too small and large: that of
    the secant through the last two, and of the slope at first or where a secant rises."""
    if len(seen) > 1:
        other = list(seen)[-2]
        secant = (seen[other] - seen[cost]) / math.log(cost / other)
        elasticity = secant if secant > 0.0 else elasticity
    step = math.exp(float(np.clip(seen[cost] / max(elasticity, 0.05), -1.0, 1.0)))
    low = max((c for c, miss in seen.items() if miss > 0.0), default=0.0)
    high = min((c for c, miss in seen.items() if miss <= 0.0), default=math.inf)
    found = cost * step
    return found if low < found < high else math.sqrt(low * high)


class _Search:
    """Rounds on one grid."""

    def __init__(
        self,
        problem: Problem,
        grid: Grid,
        mean_cost: float,
        progress: Progress | None,
        before: _Search | None = None,
    ) -> None:
        self.problem, self.grid, self.mean_cost = problem, grid, mean_cost
        self.program = problem.program(grid)
        self._report = None if progress is None else lambda gap: progress(grid.width, gap)
        self._start = start(self.program, mean_cost)
        # The last program that was solved: the next one begins near it.
        self.solved: Optimum | None = None
        # About the epsilon that programs are solved for.
        self.goal = 1.0 if before is None else before.point.epsilon
        if before is None:
            self.masses = masses_of(self._start)
        elif problem.few:
            # What losses make of coarse and of fine cells is far apart: rounds begin at the law.
            self.masses = self._law_of(before)
        else:
            self.masses = self._minimize(before.generator()).masses
        self.masses = self.masses / dot(self.program.multiplicities, self.masses)
        self.point: Point
        self.point, self.uses = problem.worst(self.program, self.masses)

    def _minimize(self, generator: Generator) -> Optimum:
        self.solved = minimize(
            self.program,
            generator,
            self.mean_cost,
            self.solved or self._start,
            tolerance=SHARP * max(1.0, self.goal),
            progress=self._report,
        )
        return self.solved

    def rounds_of_orders(self) -> None:
        """Optimal laws for the order of the law before."""
        order = min(self.point.order, self.uses.order_of_normal(self.problem.delta))
        best, last = self.point.epsilon, math.inf
        masses = self.masses
        point, uses = Point(best, order), self.uses
        for number in range(_ORDER_ROUNDS):
            found = self._minimize(uses.power_generator(point))
            masses = found.masses / dot(self.program.multiplicities, found.masses)
            point, uses = self.problem.worst(self.program, masses)
            if point.epsilon < best or number == 0:
                best = point.epsilon
                self.masses, self.point, self.uses = masses, point, uses
            if abs(point.epsilon - last) < _ROUGH * point.epsilon:
                return
            last = point.epsilon

    def rounds_from_one_use(self, most: int, near: float = math.inf) -> None:
        """Rounds from the best law of one use at a share of delta, where they end better.

        Delta is convex in the law of one use, and not in that of all: of few uses there are laws
        from which rounds do not lead to better ones. They are left out where they begin with an
        epsilon that is larger by more than a factor.
        """
        if not self.problem.few or self.program.last > MOST_LINEAR:
            return
        kept = self.masses, self.point, self.uses, self.solved
        known = self.point.epsilon
        guess, delta = self.problem.inner(known), self.problem.rare(_SHARE)
        try:
            self.masses = masses_of_one_use(self.program, self.mean_cost, delta, guess)
        except CalibrationError:
            return
        self.point, self.uses = self.problem.worst(self.program, self.masses)
        if self.point.epsilon < near * known:
            self.solved = None
            self.rounds_of_delta(most, known)
        if not self.point.epsilon < known:
            self.masses, self.point, self.uses, self.solved = kept

    def _law_of(self, before: _Search) -> Float:
        """The law of other cells; a little of a wider or narrower one makes up for the cost that
        steps have which are not at edges here."""
        masses = moved(before.grid, before.masses, self.grid)
        masses = masses / dot(self.program.multiplicities, masses)
        cost = dot(self.program.costs, masses)
        goal = self.mean_cost * (_APART if cost < self.mean_cost else 1.0 / _APART)
        try:
            other = masses_of(start(self.program, goal))
        except CalibrationError:
            return self._minimize(before.generator()).masses
        other = other / dot(self.program.multiplicities, other)
        share = (cost - self.mean_cost) / (cost - dot(self.program.costs, other))
        return (1.0 - share) * masses + share * other

    def generator(self, smoothed: int = 0) -> Generator:
        """What the law of one use contributes to delta."""
        low, high = self.program.log_ratios(self.masses, self.program.last)
        high = min(high + MARGIN, LARGEST_LOG_RATIO)
        return self.uses.generator(self.point, low - MARGIN, high, smoothed)

    def rounds_of_delta(self, most: int, known: float = math.inf) -> None:
        """Optimal laws for one of the uses, mixed with the law until epsilon falls or is the one of
        a law that is known.

        Of few uses the program has curvature in few places, and where it is not solved its answer
        may be worse than the law: it is smoothed more, until an answer is better.
        """
        ways = len(KERNELS) if self.problem.few else 1
        smoothed = failed = 0
        for _ in range(most):
            solved, gain = False, 0.0
            try:
                found = self._minimize(self.generator(smoothed))
            except CalibrationError:
                if ways == 1:
                    raise
            else:
                solved = found.value - found.bound < _UNSOLVED * self.point.epsilon
                gain = self._improved_by(found.masses)
            if gain > _GAIN * self.point.epsilon:
                if abs(self.point.epsilon / known - 1.0) < _SAME:
                    return
                failed = 0
                continue
            failed += 1
            if solved or failed == ways:
                return
            smoothed, self.solved = (smoothed + 1) % ways, None

    def _improved_by(self, other: Float) -> float:
        """Take the first mixture with another law that is better; what it gains, or 0."""
        other = other / dot(self.program.multiplicities, other)
        share = 1.0
        while share >= _SHORTEST:
            masses = (1.0 - share) * self.masses + share * other
            share *= 0.5
            if not self.uses.may_fall(self.point, *self.program.ratios(masses)):
                continue
            point, uses = self.problem.worst(self.program, masses)
            gain = self.point.epsilon - point.epsilon
            if gain > 0.0:
                self.masses, self.point, self.uses = masses, point, uses
                return gain
        return 0.0

    def law(self) -> Law:
        """What has been found."""
        certificate = certify(self.problem, self.program, self.masses, self.mean_cost, self.solved)
        return Law(self.grid, self.masses, self.mean_cost, certificate)


def grid_for(problem: Problem, mean_cost: float, width: int | None) -> Grid:
    """Cells that cover the best law of a cost.

    Parameters
    ----------
    width : int or None
        Cells to a sensitivity; by default 200, or as many as there is room for, with an edge at the
        first step of the staircase of small noise.

    Raises
    ------
    CalibrationError
        If that takes too many cells.
    """
    size = size_of(problem, mean_cost)
    if problem.single:
        found = grid_for_one_use(problem, width, size=size)
        return found if width else fitted(problem, found, mean_cost=mean_cost)
    far = max(2.5, -math.log(problem.rare()) * size)
    size = max(size, 1.0 / STEEPEST)
    # The law may have a lighter tail than Laplace noise.
    coarse = min(width or COARSE, max(1, min(COARSE, round(_WIDE / far))))
    first = _Search(problem, covering(coarse, far, size), mean_cost, None)
    first.rounds_of_orders()
    reach = problem.reach(first.program, first.masses) / coarse
    far = _ROOM * max(2.0, min(reach, far))
    found = covering(width or width_for(far), far, size)
    return found if width else fitted(problem, found, mean_cost=mean_cost)
