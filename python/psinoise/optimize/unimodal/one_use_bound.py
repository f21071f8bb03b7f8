"""How little epsilon, or cost, any unimodal law of one use can have.

The multipliers ``0 <= y(x) <= z`` of the linear program prove how good a law is: for every law
``q`` of at most ``delta``, on whatever cells,

    E_q[cost] >= E_q[cost] + integral of y(x) (q(x) - E q(x - 1)) - z delta,

and the right-hand side is linear in ``q``: by Khinchine's theorem it is at least what it is for one
of the uniform laws on ``[-a, a]`` (`certificate.Intervals`). Where that exceeds the cost, no law of
that cost has that epsilon, or a smaller one. This is no statement to first order: it holds for all
unimodal laws.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from psinoise.numerics.crossing import narrowed
from psinoise.numerics.golden import peak
from psinoise.optimize.unimodal.certificate import Intervals
from psinoise.optimize.unimodal.linear import Cheapest, NoLawError, least_cost, places_of
from psinoise.optimize.unimodal.problem import Problem
from psinoise.optimize.unimodal.program import Float, Places, Program

__all__ = ["Multipliers", "least_possible", "least_sum", "multipliers_of"]


class Multipliers(NamedTuple):
    """Between 0 and their largest value, of places."""

    places: Places
    values: Float


# Of staircases: terms, in units of 1 / epsilon, and the least epsilon.
_PERIODS, _SMALLEST = 40.0, 1e-4
# Costs whose logs differ by less are the same; a share of epsilon that is no gap of note; the log
# of how small a first step may be, beside a factor exp(-epsilon).
_SAME, _FIRST_SHARE, _AROUND = 1e-13, 1e-9, 4.0
# Into how many a cell is cut where a bound is sought.
_FINER = 9
# Sensitivities by which multipliers are continued.
_BEYOND = 12
# By how much a step is longer than it must be to first order.
_MORE = 1.2


def least_possible(
    problem: Problem, program: Program, cheapest: Cheapest, epsilon: float, mean_cost: float
) -> float:
    """An epsilon of one use, at most ``epsilon``, that no unimodal law of the cost is below."""
    delta = problem.inner_delta
    if epsilon == 0.0:
        return 0.0
    if delta == 0.0:

        def spare(at: float) -> float:  # what does not rise above 0 is ruled out
            return math.log(mean_cost) - math.log(_staircase_cost(problem, at))

        # Farther and farther below epsilon: as a rule the gap is small, and sums are longer there.
        at, share, allowed = epsilon, _FIRST_SHARE, (math.inf, math.inf)
        while at > _SMALLEST:
            if (found := spare(at)) <= 0.0:
                return at if at == epsilon else narrowed(spare, allowed, (at, found), _SAME)
            allowed, at = (at, found), epsilon * (1.0 - share)
            share = min(16.0 * share, 0.5 * (1.0 + share))
        return 0.0
    # Multipliers are those of a smaller epsilon, which is ruled out if its bound is above the cost.
    short = mean_cost - _lower_bound(problem, program, cheapest, epsilon)
    step = _MORE * max(short, 1e-9 * mean_cost) / max(cheapest.slope, 1e-300)
    while step < epsilon and cheapest.slope > 0.0:
        try:
            known = least_cost(program, epsilon - step, delta)
        except NoLawError:
            return 0.0
        if _lower_bound(problem, program, known, epsilon - step) > mean_cost:
            return epsilon - step
        step *= 2.0 * _MORE
    return 0.0


def _lower_bound(problem: Problem, program: Program, known: Cheapest, epsilon: float) -> float:
    """Of the cost of every unimodal law at an epsilon of one use."""
    found = multipliers_of(problem, program, known, epsilon)
    z = float(found.values.max())
    return least_sum(problem, program, found, epsilon) - z * problem.inner_delta


def multipliers_of(
    problem: Problem, program: Program, cheapest: Cheapest, epsilon: float
) -> Multipliers:
    """Multipliers of places, further to the left than the program has them: those for which the
    sum that a uniform law is asked for does not fall, where there are such between 0 and ``z``."""
    n, x, grown = program.width, places_of(program)[0], math.exp(epsilon)
    reach, more = -int(x[0]), _BEYOND * program.width
    z = float(cheapest.multipliers.max())
    edges = (np.arange(reach, reach + more + 1) + 0.5) / n
    costs = np.diff(problem.cost.integral(edges)) * n
    level = cheapest.cost + z * problem.inner_delta
    y = np.append(np.zeros(more), cheapest.multipliers)
    for i in range(more - 1, -1, -1):
        y[i] = min(max(grown * y[i + n] + 2.0 * (level - costs[more - 1 - i]), 0.0), z)
    return Multipliers(np.arange(x[0] - more, x[-1] + 1), y)


def least_sum(problem: Problem, program: Program, known: Multipliers, epsilon: float) -> float:
    """The infimum over uniform laws of their cost and the sum with multipliers, of any epsilon."""
    return max(_least_sum(problem, program, *known, epsilon, times) for times in (1, _FINER))


def _least_sum(
    problem: Problem,
    program: Program,
    x: Places,
    multipliers: Float,
    epsilon: float,
    times: int,
) -> float:
    """The infimum over uniform laws, with multipliers in between on cells that are cut."""
    n, reach = program.width * times, times * int(-x[0])
    place = np.arange(-reach, reach + 1)
    if times > 1:
        # Around 0 the sum is to be level in the cell that is cut too: an atom at 0 costs nothing.
        half = np.array([0.5 / program.width])
        multipliers = multipliers.copy()
        own = multipliers[x == 0] + problem.cost.integral(half) / half
        multipliers[x == 0] = np.minimum(own, multipliers.max())
    y = np.interp(place / times, x, multipliers, right=0.0)
    # Multipliers to both sides of 0, and of the places that are moved there.
    far = np.arange(reach + n + 1)

    def at(where: Places) -> Float:
        inside = np.abs(where) <= reach
        return np.where(inside, y[np.clip(where, -reach, reach) + reach], 0.0)

    shifted = at(n + far) + at(n - far)
    line = np.append(0.5 * (at(far) + at(-far) - math.exp(epsilon) * shifted), 0.0)
    return Intervals(line, n, problem.cost).least(1.0)


def _staircase_cost(problem: Problem, epsilon: float) -> float:
    """The least cost of all laws at delta = 0: that of the staircase (Geng and Viswanath 2016), of
    any even cost that does not decrease.

    It falls by the factor ``exp(-epsilon)`` at ``k + gamma`` for ``k = 0, 1, ...``: a mixture of
    uniform laws up to there. The cost is a convex function of ``gamma`` over a positive linear one,
    and has no second minimum. Without its last periods it is less. Of large epsilons ``gamma`` is
    as small as a power of ``exp(-epsilon)``, of a cost that hardly grows nearly the first.
    """
    k = np.arange(math.ceil(_PERIODS / epsilon) + 2.0)
    falls = np.exp(-epsilon * k)

    def gain(log_gamma: float) -> float:
        ends = k + math.exp(log_gamma)
        return -float(falls @ problem.cost.integral(ends)) / float(falls @ ends)

    logs = np.linspace(-epsilon - _AROUND, 0.0, 33).tolist()
    best = max(range(len(logs)), key=lambda place: gain(logs[place]))
    found = peak(gain, logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)])
    return -found[1] * (1.0 - 1e-14)
