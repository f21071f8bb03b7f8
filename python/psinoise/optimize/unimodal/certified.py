"""What can be said of a law that was found: its epsilon, how far it is from the best, the slope."""

from __future__ import annotations

import math

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import dot
from psinoise.optimize.unimodal.certificate import lower_bound, refined
from psinoise.optimize.unimodal.few_bound import least_of_few
from psinoise.optimize.unimodal.first import at_cost, start
from psinoise.optimize.unimodal.interior_point import Optimum, masses_of, minimize
from psinoise.optimize.unimodal.one_use import certify_one_use
from psinoise.optimize.unimodal.problem import Problem, UnimodalCertificate
from psinoise.optimize.unimodal.program import Float, Program
from psinoise.optimize.unimodal.uses import Point, Uses

__all__ = ["LARGEST_LOG_RATIO", "MARGIN", "SHARP", "certify"]

# Of epsilon: how sharply programs are solved.
SHARP = 1e-7
# Of logarithms of ratios, beyond those of the law, and at most.
MARGIN, LARGEST_LOG_RATIO = 0.3, 60.0
# Shares of delta below which places do not count in a certificate, until one is narrow.
_RARER, _NARROW = (1e-4, 1e-7, 1e-10), 1e-4
# The gap over epsilon from which on a bound that is not to first order is sought for few uses.
_WIDE = 1e-3
# By how much the divergence may differ from what it must be, for a certificate.
_SAME = 0.02
# Into how many a cell is cut where the bound is sought.
_FINER = 3
# By which share the cost is changed for the slope of epsilon, and weights at most.
_NEARBY, _MOST_CHANGE = 1e-3, 0.5


def certify(
    problem: Problem,
    program: Program,
    masses: Float,
    mean_cost: float,
    solved: Optimum | None = None,
) -> UnimodalCertificate:
    """What can be said of masses, whoever found them.

    Of a few uses the gap may take longer than the law: it is found when it is asked for.

    Parameters
    ----------
    solved : Optimum, optional
        Of a similar program on these cells, to begin with.
    """
    if problem.single:
        return certify_one_use(problem, program, masses, mean_cost)
    problem = at_cost(problem, mean_cost)
    point, uses = problem.worst(program, masses)
    near: Float | Optimum = solved or start(program, mean_cost)

    def bound() -> tuple[float, float]:
        return _gap(problem, program, masses, mean_cost, point, uses, near)

    if problem.few:
        slope = _slope(problem, program, masses)
        return UnimodalCertificate(point.epsilon, point.order, lambda: bound()[0], slope)
    return UnimodalCertificate(point.epsilon, point.order, *bound())


def _gap(
    problem: Problem,
    program: Program,
    masses: Float,
    mean_cost: float,
    point: Point,
    uses: Uses,
    near: Float | Optimum,
) -> tuple[float, float]:
    """The gap, and the multiplier of the cost that gives it.

    The bound is that of the gradient at the best law for one of the uses, whose tail is determined,
    where that of the masses hardly counts.
    """
    low, high = program.log_ratios(masses, program.last)
    low, high = low - MARGIN, min(high + MARGIN, LARGEST_LOG_RATIO)
    value = uses.value(point, uses.generator(point, low, high))
    best, slope = -math.inf, 0.0
    # Beyond ratios of places that are too rare the generator goes on as a straight line, which is
    # below it: what is proven for that one is a bound for the other.
    ends = [
        min(program.log_ratios(masses, problem.reach(program, masses, rare))[1], high)
        for rare in _RARER
    ]
    sharp = SHARP * max(1.0, point.epsilon)
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
    seen = uses.divergence(point)
    if not abs(value - seen) <= _SAME * seen:
        # The contour integral does not see losses this close to the largest one.
        gap = math.inf
    if problem.few and (best <= 0.0 or gap > _WIDE * point.epsilon):
        # Of few uses the divergence is delta itself, and where the largest losses decide tangents
        # say no more than that it is not negative.
        least = least_of_few(problem.bounding, mean_cost, program.width)
        gap = min(gap if best > 0.0 else math.inf, max(point.epsilon - least, 0.0))
    return gap, slope


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
