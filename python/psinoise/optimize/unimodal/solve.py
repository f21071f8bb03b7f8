"""The unimodal law of least epsilon: rounds of convex programs, on coarse cells and then on fine.

Epsilon of a law at a delta is a saddle point over orders. At a fixed order the best law solves a
convex program, and the order is that of the law: a few rounds. The same program with another
generator then makes delta itself stationary, in what one of the uses contributes to it (`uses`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.solve import Grid
from psinoise.optimize.unimodal.certificate import lower_bound, refined
from psinoise.optimize.unimodal.generator import Generator
from psinoise.optimize.unimodal.interior_point import Optimum, masses_of, minimize
from psinoise.optimize.unimodal.program import Float, Program
from psinoise.optimize.unimodal.uses import Point, Uses

__all__ = [
    "Law",
    "Problem",
    "UnimodalCertificate",
    "certify",
    "grid_for",
    "least_cost",
    "least_epsilon",
]

# Cells to a sensitivity of the first rounds, and the least number of them in all.
_COARSE, _FEW = 20, 200
_ORDER_ROUNDS, _DELTA_ROUNDS, _FINE_ROUNDS = 6, 30, 3
# Of epsilon: what a round must gain for another one, and how sharply programs are solved.
_GAIN, _SHARP, _ROUGH = 2e-6, 1e-7, 1e-4
_SHORTEST = 1.0 / 64.0
# Cells of the first look at how far a law reaches, of a grid that is chosen, and in all.
_WIDE, _MANY, _FINEST, _MOST = 1500, 6000, 200, 32_767
# How much likelier than this share of delta ratios are that count; for noise to reach this far.
_RARE = 1e-4
# The same for a certificate, until one is narrow.
_RARER, _NARROW = (1e-4, 1e-7, 1e-10), 1e-4
_ROOM = 1.15
# Of logarithms of ratios, beyond those of the law.
_MARGIN = 0.3
# Into how many a cell is cut where the bound is sought.
_FINER = 3
_LARGEST_LOG_RATIO = 60.0
# Roots for the cost: by how much epsilon may be off, and rounds.
_CLOSE, _MOST_ROOTS = 1e-7, 40


@dataclass(frozen=True)
class UnimodalCertificate:
    """How good a law is, as far as convexity tells.

    Parameters
    ----------
    epsilon : float
        Of the law, estimated by a contour integral.
    order : float
        Of the saddle point there: delta is about the moment of the loss of this order.
    gap : float
        By how much epsilon would fall at most, to first order, if uses had other noise: any
        symmetric unimodal law of at most the same expected cost, on whatever grid or on none.
        Delta is a convex function of the law of each use while the others are what they are, which
        makes this a bound, for one use at a time.
    slope : float
        By how much epsilon falls for a unit of the expected cost.
    """

    epsilon: float
    order: float
    gap: float
    slope: float


@dataclass(frozen=True)
class Problem:
    """What a law is to be the best for, at unit sensitivity.

    Parameters
    ----------
    cost_of_cells : callable
        From a grid to the expected cost per unit of each mass.
    cost_of_interval : callable
        The mean cost on ``[0, a]``, of an array.
    power : float or None
        Of a cost ``|x|**power``.
    """

    delta: float
    count: int
    sampling_rate: float
    cost_of_cells: Callable[[Grid], Float]
    cost_of_interval: Callable[[Float], Float]
    power: float | None

    def program(self, grid: Grid) -> Program:
        """The program on a grid."""
        costs = self.cost_of_cells(grid)
        return Program(grid.width, grid.tail_ratio, costs, self.sampling_rate)

    def uses(self, program: Program, masses: Float) -> tuple[Uses, ...]:
        """Of each direction that matters."""
        base, ratio = program.ratios(masses)
        ways = (False,) if self.sampling_rate == 1.0 else (False, True)
        return tuple(Uses(base, ratio, self.count, add) for add in ways)

    def worst(self, program: Program, masses: Float) -> tuple[Point, Uses]:
        """The larger epsilon of the directions."""
        found = [(uses.at_delta(self.delta), uses) for uses in self.uses(program, masses)]
        return max(found, key=lambda pair: pair[0].epsilon)

    def rare(self, share: float = _RARE) -> float:
        """A probability too small to matter: a share of delta, for each use."""
        return share * self.delta / (self.count * self.sampling_rate)

    def reach(self, program: Program, masses: Float, share: float = _RARE) -> int:
        """The cell beyond which the law is rare."""
        above = np.cumsum((masses * program.multiplicities)[::-1])[::-1]
        return int(np.searchsorted(-above, -self.rare(share)))


@dataclass(frozen=True, eq=False)
class Law:
    """Masses on a grid, with their certificate."""

    grid: Grid
    masses: Float
    mean_cost: float
    certificate: UnimodalCertificate


Progress = Callable[[int, float], None]


def least_epsilon(
    problem: Problem, grid: Grid, mean_cost: float, progress: Progress | None = None
) -> Law:
    """The law of least epsilon at an expected cost.

    Parameters
    ----------
    grid : Grid
        Cells of the law; coarser ones are solved first.
    progress : callable, optional
        Called with the number of cells per unit of sensitivity that are worked on and the gap.

    Raises
    ------
    CalibrationError
        If no law on the grid has the cost, or the method does not converge.
    """
    coarse = _coarser(grid)
    first = _Search(problem, coarse, mean_cost, progress)
    first.rounds_of_orders()
    first.rounds_of_delta(_DELTA_ROUNDS)
    if coarse == grid:
        return first.law()
    last = _Search(problem, grid, mean_cost, progress, first)
    last.rounds_of_delta(_FINE_ROUNDS)
    return last.law()


def least_cost(
    problem: Problem, grid_of: Callable[[float], Grid], epsilon: float, progress: Progress | None
) -> Law:
    """The law of least expected cost at an epsilon.

    Parameters
    ----------
    grid_of : callable
        From an expected cost to the grid for it.
    """
    rough = least_size(problem, epsilon)
    cost, seen = rough, {}
    for _ in range(_MOST_ROOTS):
        law = least_epsilon(problem, _coarser(grid_of(cost)), cost)
        miss = math.log(max(law.certificate.epsilon, 1e-9) / epsilon)
        seen[cost] = miss
        if abs(miss) < 1e-5:
            break
        cost = _next(seen, cost, law.certificate.slope * cost / law.certificate.epsilon)
    grid = grid_of(cost)
    for _ in range(3):
        law = least_epsilon(problem, grid, cost, progress)
        off = law.certificate.epsilon - epsilon
        if abs(off) <= _CLOSE * max(1.0, epsilon):
            break
        cost += off / law.certificate.slope
    return law


def _next(seen: dict[float, float], cost: float, elasticity: float) -> float:
    """Newton's step in logarithms, kept between costs that are known to be too small and large."""
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
        self._start = _start(self.program, mean_cost)
        self.theta = 0.0
        if before is None:
            self.masses = masses_of(self._start)
        else:
            self.point = before.point
            found = self._minimize(before.generator())
            self.masses, self.theta = found.masses, found.theta
        self.masses = self.masses / float(self.program.multiplicities @ self.masses)
        self.point, self.uses = problem.worst(self.program, self.masses)

    def _minimize(self, generator: Generator) -> Optimum:
        return minimize(
            self.program,
            generator,
            self.mean_cost,
            self._start,
            tolerance=_SHARP * max(1.0, self.point.epsilon),
            progress=self._report,
        )

    def rounds_of_orders(self) -> None:
        """Optimal laws for the order of the law before."""
        order = min(self.point.order, self.uses.order_of_normal(self.problem.delta))
        best, last = self.point.epsilon, math.inf
        masses = self.masses
        point, uses = Point(best, order), self.uses
        for number in range(_ORDER_ROUNDS):
            found = self._minimize(uses.power_generator(point))
            masses = found.masses / float(self.program.multiplicities @ found.masses)
            point, uses = self.problem.worst(self.program, masses)
            if point.epsilon < best or number == 0:
                best = point.epsilon
                self.masses, self.point, self.uses, self.theta = masses, point, uses, found.theta
            if abs(point.epsilon - last) < _ROUGH * point.epsilon:
                return
            last = point.epsilon

    def generator(self) -> Generator:
        """What the law of one use contributes to delta."""
        low, high = self.program.log_ratios(self.masses, self.program.last)
        high = min(high + _MARGIN, _LARGEST_LOG_RATIO)
        return self.uses.generator(self.point, low - _MARGIN, high)

    def rounds_of_delta(self, most: int) -> None:
        """Optimal laws for one of the uses, mixed with the law until epsilon falls."""
        for _ in range(most):
            found = self._minimize(self.generator())
            self.theta = found.theta
            other = found.masses / float(self.program.multiplicities @ found.masses)
            gain = max((pair for pair in self._mixtures(other)), default=0.0)
            if gain <= _GAIN:
                return

    def _mixtures(self, other: Float) -> Iterator[float]:
        """Take the first mixture with another law that is better; what it gains."""
        share = 1.0
        while share >= _SHORTEST:
            masses = (1.0 - share) * self.masses + share * other
            point, uses = self.problem.worst(self.program, masses)
            gain = self.point.epsilon - point.epsilon
            if gain > 0.0:
                self.masses, self.point, self.uses = masses, point, uses
                yield gain
                return
            share *= 0.5

    def law(self) -> Law:
        """What has been found."""
        certificate = certify(self.problem, self.program, self.masses, self.mean_cost)
        return Law(self.grid, self.masses, self.mean_cost, certificate)


def certify(
    problem: Problem, program: Program, masses: Float, mean_cost: float
) -> UnimodalCertificate:
    """What can be said of masses, whoever found them.

    The bound is that of the gradient at the best law for one of the uses, which is solved for: its
    tail is determined, where that of the masses hardly counts.
    """
    point, uses = problem.worst(program, masses)
    low, high = program.log_ratios(masses, program.last)
    low, high = low - _MARGIN, min(high + _MARGIN, _LARGEST_LOG_RATIO)
    value = program.values(masses, uses.generator(point, low, high)).value
    sharp = _SHARP * max(1.0, point.epsilon)
    start = _start(program, mean_cost)
    best, slope = -math.inf, 0.0
    for rare in _RARER:
        # Beyond ratios of places that are too rare the generator goes on as a straight line, which
        # is below it: what is proven for that one is a bound for the other.
        end = min(program.log_ratios(masses, problem.reach(program, masses, rare))[1], high)
        generator = uses.generator(point, low, end)
        try:
            other = minimize(program, generator, mean_cost, start, tolerance=sharp)
        except CalibrationError:
            continue
        for times in (1, _FINER):
            finer, places = refined(program, other.masses, times)
            bound, theta = lower_bound(
                finer,
                places,
                generator,
                other.theta,
                mean_cost,
                problem.cost_of_interval,
                problem.power,
            )
            if bound > best:
                best, slope = bound, theta
        if value - best < _NARROW * point.epsilon:
            break
    return UnimodalCertificate(point.epsilon, point.order, max(value - best, 0.0), slope)


def _coarser(grid: Grid) -> Grid:
    """The same support and tail with cells for the first rounds."""
    width = min(grid.width, max(_COARSE, math.ceil(_FEW * grid.width / grid.last)))
    if width >= 0.7 * grid.width:
        return grid
    factor = grid.width / width
    return Grid(width, max(width + 1, round(grid.last / factor)), grid.tail_ratio**factor)


def _start(program: Program, mean_cost: float) -> Float:
    """Differences of the geometric law of the cost, with a little of a straight one."""
    x = np.arange(program.last + 1.0)
    flat = np.ones(program.last + 1) / program.multiplicities.sum()

    def law(rate: float) -> Float:
        p = np.exp(-rate * x)
        return np.asarray(p / (program.multiplicities @ p))

    low, high = 1e-8, 50.0
    least, most = float(program.costs @ law(high)), float(program.costs @ flat)
    if not least < mean_cost < most:
        raise CalibrationError(
            f"mean_cost must be between {least!r} and {most!r} for these cells, got {mean_cost!r}"
        )
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if program.costs @ law(middle) > mean_cost else (low, middle)
    return np.asarray(-np.diff(np.append(law(high), 0.0)) + 1e-14 * flat[0])


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
    size = _size_of(problem, mean_cost)
    far = max(2.5, -math.log(problem.rare()) * size)
    # The law may have a lighter tail than Laplace noise.
    coarse = min(width or _COARSE, max(1, min(_COARSE, round(_WIDE / far))))
    found = _Search(problem, _covering(coarse, far, size), mean_cost, None)
    found.rounds_of_orders()
    reach = problem.reach(found.program, found.masses) / coarse
    far = _ROOM * max(2.0, min(reach, far))
    if width is None:
        width = max(1, min(_FINEST, int(_MANY / far)))
    return _covering(width, far, size)


def _covering(width: int, far: float, size: float) -> Grid:
    last = max(width + 1, math.ceil(far * width))
    if last > _MOST:
        raise CalibrationError(f"noise that large takes {last} cells, and {_MOST} are the most")
    return Grid(width, last, max(math.exp(-1.0 / (width * size)), 1e-6))


def _size_of(problem: Problem, mean_cost: float) -> float:
    """The scale of Laplace noise of about a cost."""
    low, high = -14.0, 14.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _laplace_cost(problem, middle) < mean_cost else (low, middle)
    return math.exp(middle)


def _laplace_cost(problem: Problem, log_size: float) -> float:
    size = math.exp(log_size)
    edges = np.concatenate([[0.0], size * np.linspace(1e-3, 40.0, 4000)])
    values = edges * problem.cost_of_interval(edges)
    weights = np.exp(-edges / size)
    return float(np.diff(values) @ (0.5 * (weights[1:] + weights[:-1])) / size)


def least_size(problem: Problem, epsilon: float) -> float:
    """The cost of about the least Laplace noise that meets a target."""
    low, high = -12.0, 12.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        size = math.exp(middle)
        grid = laplace_grid(size)
        program = problem.program(grid)
        p = np.exp(-np.arange(grid.last + 1.0) / (grid.width * size))
        p /= float(program.multiplicities @ p)
        cost = float(program.costs @ p)
        point, _ = problem.worst(program, p)
        low, high = (middle, high) if point.epsilon > epsilon else (low, middle)
    return cost


def laplace_grid(size: float) -> Grid:
    """A few cells for Laplace noise of a scale in sensitivities."""
    width = max(1, round(8.0 / min(size, 8.0)))
    last = max(width + 1, math.ceil(30.0 * size * width))
    return Grid(width, last, math.exp(-1.0 / (width * size)))
