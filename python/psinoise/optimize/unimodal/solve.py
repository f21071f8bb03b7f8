"""The unimodal law of least epsilon: rounds of convex programs, on coarse cells and then on fine.

Epsilon of a law at a delta is a saddle point over orders. At a fixed order the best law solves a
convex program, and the order is that of the law: a few rounds. The same program with another
generator then makes delta itself stationary, in what one of the uses contributes to it (`uses`).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import Grid, dot
from psinoise.optimize.unimodal.certificate import lower_bound, refined
from psinoise.optimize.unimodal.few_bound import least_of_few
from psinoise.optimize.unimodal.first import (
    COARSE,
    STEEPEST,
    coarser,
    covering,
    least_size,
    moved,
    size_of,
    start,
    width_for,
)
from psinoise.optimize.unimodal.generator import Generator
from psinoise.optimize.unimodal.interior_point import Optimum, masses_of, minimize
from psinoise.optimize.unimodal.one_use import (
    MOST_LINEAR,
    certify_one_use,
    grid_for_one_use,
    least_cost_of_one_use,
    least_epsilon_of_one_use,
    masses_of_one_use,
)
from psinoise.optimize.unimodal.problem import Law, Problem, Progress, UnimodalCertificate
from psinoise.optimize.unimodal.program import Float, Program
from psinoise.optimize.unimodal.uses import Point

__all__ = ["certify", "grid_for", "least_cost", "least_epsilon"]

_ORDER_ROUNDS, _DELTA_ROUNDS, _FINE_ROUNDS = 6, 30, 3
# Of epsilon: what a round must gain for another one, and how sharply programs are solved.
_GAIN, _SHARP, _ROUGH = 2e-6, 1e-7, 1e-4
_SHORTEST = 1.0 / 64.0
# Of delta, at which a law of one use is tried for few, and how far costs are apart that are mixed.
_SHARE, _APART = 0.03, 2.0
# Cells of the first look at how far a law reaches.
_WIDE = 1500
# Shares of delta below which places do not count in a certificate, until one is narrow.
_RARER, _NARROW = (1e-4, 1e-7, 1e-10), 1e-4
_ROOM = 1.15
# Of logarithms of ratios, beyond those of the law.
_MARGIN = 0.3
# By how much the divergence may differ from what it must be, for a certificate.
_SAME = 0.02
# Into how many a cell is cut where the bound is sought.
_FINER = 3
_LARGEST_LOG_RATIO = 60.0
# By which share the cost is changed for the slope of epsilon, and weights at most.
_NEARBY, _MOST_CHANGE = 1e-3, 0.5
# Roots for the cost: by how much epsilon may be off, and rounds.
_CLOSE, _MOST_ROOTS = 1e-7, 40


def least_epsilon(
    problem: Problem,
    grid: Grid | None,
    width: int | None,
    mean_cost: float,
    progress: Progress | None = None,
    *,
    bounded: bool = True,
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
    bounded : bool
        False leaves the gap unknown where it takes longer than the law.

    Raises
    ------
    CalibrationError
        If no law on the grid has the cost, or the method does not converge.
    """
    grid = grid or grid_for(problem, mean_cost, width)
    if problem.single:
        return least_epsilon_of_one_use(problem, grid, mean_cost, progress)
    coarse = coarser(grid)
    first = _Search(problem, coarse, mean_cost, progress)
    first.rounds_of_orders()
    if problem.few:
        first.begin_with_one_use()
    first.rounds_of_delta(_DELTA_ROUNDS)
    if coarse == grid:
        return first.law(bounded)
    last = _Search(problem, grid, mean_cost, progress, first)
    if first.solvable or not problem.few:
        last.rounds_of_delta(_FINE_ROUNDS)
    return last.law(bounded)


def least_cost(
    problem: Problem,
    grid: Grid | None,
    width: int | None,
    epsilon: float,
    progress: Progress | None = None,
) -> Law:
    """The law of least expected cost at an epsilon; parameters as of `least_epsilon`."""
    if problem.single:
        cells = grid or grid_for_one_use(problem, width, epsilon=epsilon)
        return least_cost_of_one_use(problem, cells, epsilon, progress)
    rough = least_size(problem, epsilon)
    cost, seen = rough, {}
    for _ in range(_MOST_ROOTS):
        first = coarser(grid or grid_for(problem, cost, width))
        law = least_epsilon(problem, first, None, cost, bounded=False)
        miss = math.log(max(law.certificate.epsilon, 1e-9) / epsilon)
        seen[cost] = miss
        if abs(miss) < 1e-5:
            break
        cost = _next(seen, cost, law.certificate.slope * cost / max(law.certificate.epsilon, 1e-9))
    grid = grid or grid_for(problem, cost, width)
    for _ in range(3):
        law = least_epsilon(problem, grid, None, cost, progress, bounded=not problem.few)
        off = law.certificate.epsilon - epsilon
        if abs(off) <= _CLOSE * max(1.0, epsilon):
            break
        step = off / max(law.certificate.slope, 1e-300)
        cost += float(np.clip(step, -0.1 * cost, 0.1 * cost))
    if problem.few:
        # Its bound takes longer than the law, and only the last law needs one.
        certificate = certify(problem, problem.program(grid), law.masses, law.mean_cost)
        law = replace(law, certificate=certificate)
    return law


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
            tolerance=_SHARP * max(1.0, self.goal),
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

    def begin_with_one_use(self) -> None:
        """Take the best law of one use at a share of delta, if it is better.

        Delta is convex in the law of one use, and not in that of all: of few uses there are laws
        from which rounds do not lead to better ones.
        """
        if self.program.last > MOST_LINEAR:
            return
        delta = _SHARE * self.problem.delta / self.problem.count
        guess = self.point.epsilon / self.problem.count
        with contextlib.suppress(CalibrationError):
            masses = masses_of_one_use(self.program, self.mean_cost, delta, guess)
            point, uses = self.problem.worst(self.program, masses)
            if point.epsilon < self.point.epsilon:
                self.masses, self.point, self.uses = masses, point, uses

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

    @property
    def solvable(self) -> bool:
        """Whether the last program was solved. That of a few uses whose largest losses decide has
        next to no curvature, and its optimum nothing to do with delta."""
        found = self.solved
        return found is not None and found.value - found.bound <= _ROUGH * max(1.0, self.goal)

    def generator(self) -> Generator:
        """What the law of one use contributes to delta."""
        low, high = self.program.log_ratios(self.masses, self.program.last)
        high = min(high + _MARGIN, _LARGEST_LOG_RATIO)
        return self.uses.generator(self.point, low - _MARGIN, high)

    def rounds_of_delta(self, most: int) -> None:
        """Optimal laws for one of the uses, mixed with the law until epsilon falls."""
        for _ in range(most):
            found = self._minimize(self.generator())
            other = found.masses / dot(self.program.multiplicities, found.masses)
            if self._improved_by(other) <= _GAIN:
                return

    def _improved_by(self, other: Float) -> float:
        """Take the first mixture with another law that is better; what it gains, or 0."""
        share = 1.0
        while share >= _SHORTEST:
            masses = (1.0 - share) * self.masses + share * other
            point, uses = self.problem.worst(self.program, masses)
            gain = self.point.epsilon - point.epsilon
            if gain > 0.0:
                self.masses, self.point, self.uses = masses, point, uses
                return gain
            share *= 0.5
        return 0.0

    def law(self, bounded: bool) -> Law:
        """What has been found."""
        certificate = certify(
            self.problem, self.program, self.masses, self.mean_cost, self.solved, bounded=bounded
        )
        return Law(self.grid, self.masses, self.mean_cost, certificate)


def certify(
    problem: Problem,
    program: Program,
    masses: Float,
    mean_cost: float,
    solved: Optimum | None = None,
    *,
    bounded: bool = True,
) -> UnimodalCertificate:
    """What can be said of masses, whoever found them.

    The bound is that of the gradient at the best law for one of the uses, whose tail is determined,
    where that of the masses hardly counts.

    Parameters
    ----------
    solved : Optimum, optional
        Of a similar program on these cells, to begin with.
    """
    if problem.single:
        return certify_one_use(problem, program, masses, mean_cost)
    point, uses = problem.worst(program, masses)
    low, high = program.log_ratios(masses, program.last)
    low, high = low - _MARGIN, min(high + _MARGIN, _LARGEST_LOG_RATIO)
    value = uses.value(point, uses.generator(point, low, high))
    best, slope = -math.inf, 0.0
    # Beyond ratios of places that are too rare the generator goes on as a straight line, which is
    # below it: what is proven for that one is a bound for the other.
    ends = [
        min(program.log_ratios(masses, problem.reach(program, masses, rare))[1], high)
        for rare in (_RARER[:1] if problem.few else _RARER)
    ]
    sharp = _SHARP * max(1.0, point.epsilon)
    near: Float | Optimum = solved or start(program, mean_cost)
    for end in ends:
        generator = uses.generator(point, low, end)
        try:
            near = other = minimize(program, generator, mean_cost, near, tolerance=sharp)
        except CalibrationError:
            continue
        for times in (1, _FINER):
            finer, places = refined(program, other.masses, times)
            bound, theta = lower_bound(
                finer,
                places,
                uses.tangent(point, generator),
                other.theta,
                mean_cost,
                problem.cost,
            )
            if bound > best:
                best, slope = bound, theta
        if value - best < _NARROW * point.epsilon:
            break
    gap = max(value - best, 0.0)
    if problem.few:
        slope = _slope(problem, program, masses)
    if problem.few and best <= 0.0:
        # Of few uses the divergence is delta itself: the tangents say no more than that it is not
        # negative.
        least = least_of_few(problem, mean_cost, program.width) if bounded else -math.inf
        gap = max(point.epsilon - least, 0.0)
    elif not abs(value / uses.divergence(point) - 1.0) <= _SAME:
        # The contour integral does not see losses this close to the largest one.
        gap = math.inf
    return UnimodalCertificate(point.epsilon, point.order, gap, slope)


def _slope(problem: Problem, program: Program, masses: Float) -> float:
    """By how much the epsilon of a best law falls for a unit of its cost.

    At a best law the derivatives of epsilon by the weights of the uniform laws that it is a mixture
    of are a constant less the slope times their costs, for all that have a weight. So the slope is
    that of any change of these weights alone (the envelope theorem): here in proportion to how far
    the costs are from the mean.
    """
    sizes = np.cumsum(program.multiplicities)
    costs = np.cumsum(program.costs) / sizes
    differences = -np.diff(np.append(masses, 0.0))
    weights = differences * sizes
    mean = dot(weights, costs) / weights.sum()
    spread = dot(weights, (costs - mean) ** 2) / weights.sum()
    change = np.clip(_NEARBY * mean * (costs - mean) / spread, -_MOST_CHANGE, _MOST_CHANGE)

    def changed(factor: float) -> tuple[float, float]:
        p = masses_of(differences * (1.0 + factor * change))
        p = p / dot(program.multiplicities, p)
        return problem.worst(program, p)[0].epsilon, dot(program.costs, p)

    (less, dear), (more, cheap) = changed(1.0), changed(-1.0)
    return (more - less) / (dear - cheap)


def grid_for(problem: Problem, mean_cost: float, width: int | None) -> Grid:
    """Cells that cover the best law of a cost.

    Parameters
    ----------
    width : int or None
        Cells to a sensitivity; by default 200, or as many as there is room for.

    Raises
    ------
    CalibrationError
        If that takes too many cells.
    """
    size = size_of(problem, mean_cost)
    if problem.single:
        return grid_for_one_use(problem, width, size=size)
    far = max(2.5, -math.log(problem.rare()) * size)
    size = max(size, 1.0 / STEEPEST)
    # The law may have a lighter tail than Laplace noise.
    coarse = min(width or COARSE, max(1, min(COARSE, round(_WIDE / far))))
    found = _Search(problem, covering(coarse, far, size), mean_cost, None)
    found.rounds_of_orders()
    reach = problem.reach(found.program, found.masses) / coarse
    far = _ROOM * max(2.0, min(reach, far))
    return covering(width or width_for(far), far, size)
