"""The best unimodal law of one use, or of any number at delta = 0.

The least cost at (epsilon, delta) is a linear program; a root in epsilon turns it round. At delta =
0 losses of uses add up to their largest values, so that the law of one use at an epsilon of its own
is the answer for all. Sampling at rate ``q`` only changes what one use is asked for
(`Problem.inner`).
"""

from __future__ import annotations

import math

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import Grid, dot
from psinoise.optimize.unimodal.first import coarser, last_of, width_for
from psinoise.optimize.unimodal.linear import Cheapest, NoLawError, epsilon_of_one_use, least_cost
from psinoise.optimize.unimodal.one_use_bound import least_possible
from psinoise.optimize.unimodal.problem import Law, Problem, Progress, UnimodalCertificate
from psinoise.optimize.unimodal.program import Float, Program

__all__ = [
    "MOST_LINEAR",
    "certify_one_use",
    "grid_for_one_use",
    "least_cost_of_one_use",
    "least_epsilon_of_one_use",
    "masses_of_one_use",
]

# The logarithm of the largest mass over those that are left to the tail.
_DEEP = 28.0
_ROOM, _SHORTEST = 1.3, 2.5
# Of the tail of a law that needs none.
_STEEP = 2.0
# Of the cost, roots, and the largest epsilon.
_CLOSE, _MOST_ROOTS, _LARGEST = 1e-9, 60, 500.0
# Of the cost on coarse cells; the cells up to which a search begins with a law of one use.
_NEAR = 1e-3
MOST_LINEAR = 4000


def certify_one_use(
    problem: Problem,
    program: Program,
    masses: Float,
    mean_cost: float,
    cheapest: Cheapest | None = None,
) -> UnimodalCertificate:
    """What can be said of masses, whoever found them."""
    delta = problem.solved_delta
    epsilon = epsilon_of_one_use(program, masses, delta)
    known = cheapest or least_cost(program, epsilon, delta)
    outer = problem.outer(epsilon)
    rise = (problem.outer(epsilon + 1e-6) - outer) / 1e-6
    slope = rise / known.slope if known.slope > 0.0 else 0.0

    def gap() -> float:
        if (bounding := problem.bounding) is problem:
            low = least_possible(problem, program, known, epsilon, mean_cost)
        else:
            low = _least_of_laws(bounding, program, masses, mean_cost)
        return max(outer - problem.outer(low), 0.0)

    return UnimodalCertificate(outer, math.inf, gap, slope)


def _least_of_laws(problem: Problem, program: Program, masses: Float, mean_cost: float) -> float:
    """An epsilon of one use without sampling that no law of the cost is below."""
    epsilon = epsilon_of_one_use(program, masses, problem.inner_delta)
    try:
        known = least_cost(program, epsilon, problem.inner_delta)
    except NoLawError:
        return 0.0
    return least_possible(problem, program, known, epsilon, mean_cost)


def least_cost_of_one_use(
    problem: Problem, grid: Grid, epsilon: float, progress: Progress | None = None
) -> Law:
    """The law of least expected cost at an epsilon of all uses."""
    program = problem.program(grid)
    inner = problem.inner(epsilon)
    found = least_cost(program, inner, problem.solved_delta)
    certificate = certify_one_use(problem, program, found.masses, found.cost, found)
    if progress is not None:
        progress(grid.width, certificate.gap)
    return Law(grid, found.masses, found.cost, certificate)


def least_epsilon_of_one_use(
    problem: Problem, grid: Grid, mean_cost: float, progress: Progress | None = None
) -> Law:
    """The law of least epsilon at an expected cost: a root, on coarse cells first.

    Parameters
    ----------
    progress : callable, optional
        Called after each linear program with the cells to a unit of sensitivity, and by which share
        its cost is off.

    Raises
    ------
    CalibrationError
        If no law on the cells has the cost, or epsilon is 0 at less than it.
    """
    delta = problem.solved_delta
    guess: float | None = None
    for cells, close in ((coarser(grid), _NEAR), (grid, _CLOSE)):
        program = problem.program(cells)
        found, guess = _root(program, delta, mean_cost, guess, close, progress)
    certificate = certify_one_use(problem, program, found.masses, mean_cost, found)
    return Law(grid, found.masses, mean_cost, certificate)


def masses_of_one_use(program: Program, mean_cost: float, delta: float, guess: float) -> Float:
    """About the law of least epsilon of one use without sampling at a delta and an expected cost.

    Parameters
    ----------
    guess : float
        Of that epsilon.
    """
    return _root(program, delta, mean_cost, guess, _CLOSE)[0].masses


def _root(
    program: Program,
    delta: float,
    mean_cost: float,
    guess: float | None,
    close: float,
    progress: Progress | None = None,
) -> tuple[Cheapest, float]:
    """The cheapest law of about a cost, at most the cost, and its epsilon."""
    report: Progress = progress or (lambda width, gap: None)
    # At delta = 0 the tail allows no less.
    least = -math.log(program.tail_ratio) * program.width * (1.0 + 1e-12) if delta == 0.0 else 0.0
    under, high = None, math.inf
    over, low = None, least
    epsilon = least if guess is None else max(guess, least)
    for _ in range(_MOST_ROOTS):
        if epsilon > _LARGEST:
            break
        try:
            found = least_cost(program, epsilon, delta)
        except NoLawError:
            low, epsilon = epsilon, 2.0 * epsilon + 0.1
            continue
        report(program.width, abs(found.cost / mean_cost - 1.0))
        if found.cost > mean_cost:
            over, low = found, epsilon
        else:
            under, high = found, epsilon
            if found.cost >= mean_cost * (1.0 - close):
                break
        if high < math.inf and high - low <= 1e-13 * high:
            break
        if epsilon == least:
            if under is found:
                break
            epsilon = max(1.0, 2.0 * least)
            continue
        # Newton's step for the logarithm of the cost, between what is known.
        rate = found.slope / found.cost
        miss = math.log(found.cost / mean_cost) + 0.3 * close
        step = miss / rate if rate > 0.0 else math.inf
        epsilon += min(max(step, -0.5 * epsilon), 1.0 + epsilon)
        if not low < epsilon < high:
            epsilon = 0.5 * (low + high) if high < math.inf else 2.0 * low + 1.0
    if under is None:
        raise CalibrationError(f"no law on these cells has the mean cost {mean_cost!r}")
    if over is None and under.cost < mean_cost * (1.0 - close):
        raise CalibrationError(
            f"mean_cost must be at most {under.cost!r} on these cells, got {mean_cost!r}: epsilon "
            f"of one use is {least!r} there"
        )
    return _mixed(program, under, over, mean_cost), high


def _mixed(program: Program, under: Cheapest, over: Cheapest | None, mean_cost: float) -> Cheapest:
    """A law of exactly the cost: the dearer one has less epsilon, and delta is convex."""
    if over is None or over.cost - under.cost <= 0.0:
        return under
    share = (mean_cost - under.cost) / (over.cost - under.cost)
    masses = (1.0 - share) * under.masses + share * over.masses
    masses = masses / dot(program.multiplicities, masses)
    return Cheapest(masses, mean_cost, under.multipliers, under.slope)


def grid_for_one_use(
    problem: Problem,
    width: int | None,
    *,
    size: float | None = None,
    epsilon: float | None = None,
) -> Grid:
    """Cells for noise of about the size of Laplace noise, in sensitivities, or for an epsilon.

    Raises
    ------
    CalibrationError
        If that takes too many cells.
    """
    delta = problem.solved_delta
    if epsilon is None:
        # Laplace noise has at least the epsilon of the best law; of small noise it says little.
        inner = min(1.0 / (size or 1.0), 2.0)
        rate = 0.5 * inner
    else:
        inner = problem.inner(epsilon)
        rate = 0.9 * inner
    if delta > 0.0:
        rate = max(rate, _STEEP)
    far = _DEEP / max(inner, 1e-9)
    if delta > 0.0:
        # The reach of truncated Laplace noise, and of the uniform law at epsilon = 0.
        share = math.expm1(inner) / inner if inner > 1e-9 else 1.0
        truncated = math.log1p(0.5 * math.expm1(inner) / delta) / inner if inner > 1e-9 else 0.0
        far = min(far, max(truncated, 0.5 * share / delta if inner < 1e-9 else 0.0))
    far = _ROOM * max(far, _SHORTEST)
    cells = width or width_for(far)
    return Grid(cells, last_of(cells, far), min(math.exp(-rate / cells), 1.0 - 1e-6))
