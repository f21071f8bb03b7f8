"""The best unimodal law at any delta: below some it is the law of delta = 0.

The programs of `solve` have rows of delta, which solvers know to an absolute error: of a delta of
1e-15 their laws are worse than the one without losses above epsilon, or there are none. That one is
a law for any delta. What a delta allows beyond it is to move a mass of delta, for each use, whose
cost is next to that of the whole law unless epsilon is large: it is some ``delta exp(epsilon)`` of
the cost. That is why it is taken, and no proof: the gap is the bound of a larger delta, which
excludes no fewer laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import Grid
from psinoise.optimize.unimodal import certified, solve
from psinoise.optimize.unimodal.problem import Law, Problem, Progress, UnimodalCertificate
from psinoise.optimize.unimodal.program import Float, Program

__all__ = ["certify", "least_cost", "least_epsilon"]

# Down to here programs are solved as they are; the delta of which the gap is.
_SMALL, _LARGER = 1e-11, 1e-9
# Of the cost: what is not worth a law of its own.
_NOTHING = 1e-9


def least_epsilon(
    problem: Problem,
    grid: Grid | None,
    width: int | None,
    mean_cost: float,
    progress: Progress | None = None,
) -> Law:
    """The law of least epsilon at an expected cost; all as of `solve.least_epsilon`."""

    def solved(problem: Problem) -> Law:
        return solve.least_epsilon(problem, grid, width, mean_cost, progress)

    return _best(problem, solved, lambda law: law.certificate.epsilon)


def least_cost(
    problem: Problem,
    grid: Grid | None,
    width: int | None,
    epsilon: float,
    progress: Progress | None = None,
) -> Law:
    """The law of least expected cost at an epsilon; all as of `solve.least_cost`."""

    def solved(problem: Problem) -> Law:
        return solve.least_cost(problem, grid, width, epsilon, progress)

    return _best(problem, solved, lambda law: law.mean_cost)


def certify(
    problem: Problem, program: Program, masses: Float, mean_cost: float
) -> UnimodalCertificate:
    """What can be said of masses, whoever found them; of small deltas that of delta = 0."""
    if 0.0 < problem.delta <= _SMALL:
        known = certified.certify(replace(problem, delta=0.0), program, masses, mean_cost)
        if _is_nothing(problem, known.epsilon):
            grid = Grid(program.width, program.last, program.tail_ratio)
            return _of_delta(problem, known, grid, mean_cost)
    return certified.certify(problem, program, masses, mean_cost)


def _best(problem: Problem, solved: Callable[[Problem], Law], size: Callable[[Law], float]) -> Law:
    if not 0.0 < problem.delta <= _SMALL:
        return solved(problem)
    try:
        pure = solved(replace(problem, delta=0.0))
    except CalibrationError:
        return solved(problem)
    known = _of_delta(problem, pure.certificate, pure.grid, pure.mean_cost)
    pure = replace(pure, certificate=known)
    if _is_nothing(problem, known.epsilon):
        return pure
    try:
        return min(pure, solved(problem), key=size)
    except CalibrationError:
        return pure


def _is_nothing(problem: Problem, epsilon: float) -> bool:
    """Whether delta gains nothing over laws without losses above an epsilon."""
    inner = problem.inner(epsilon)
    return problem.delta * problem.count * math.exp(inner) < _NOTHING * problem.sampling_rate


def _of_delta(
    problem: Problem, known: UnimodalCertificate, grid: Grid, mean_cost: float
) -> UnimodalCertificate:
    """The certificate of a law of delta = 0 as one of a delta: the gap is that of a larger one."""

    def gap() -> float:
        larger = replace(problem, delta=_LARGER)
        try:
            found = solve.least_epsilon(larger, grid, None, mean_cost).certificate
        except CalibrationError:
            return known.epsilon
        return max(known.epsilon - (found.epsilon - found.gap), 0.0)

    return replace(known, _gap=gap)
