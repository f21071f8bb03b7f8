"""The best unimodal law of one use, or of any number at delta = 0: linear programs over cells.

Of one use, with ``E = exp(epsilon)``,

    delta(p) = sum over x of (p(x) - E p(x - n))^+

is linear in the masses and one slack for each place, so that the least cost at (epsilon, delta) is
a linear program; a root in epsilon turns it round. At delta = 0 losses of uses add up to their
largest values, so that the law of one use at an epsilon of its own is the answer for all. Sampling
at rate ``q`` only changes what one use is asked for (`Problem.inner`).

Masses are solved for in units of ``exp(-epsilon x / n)``, which is about what they are: tolerances
of the solver are relative. The multipliers ``0 <= y(x) <= z`` of the program prove how good a law
is: for every law ``q`` of at most ``delta``, on whatever cells,

    E_q[cost] >= E_q[cost] + integral of y(x) (q(x) - E q(x - 1)) - z delta,

and the right-hand side is linear in ``q``: by Khinchine's theorem it is at least what it is for one
of the uniform laws on ``[-a, a]`` (`certificate.Intervals`). At a smaller ``E``, with the same
``y``, it still is a bound; where it exceeds the cost, no law of that cost has that epsilon. This is
no statement to first order: it holds for all unimodal laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import Grid
from psinoise.optimize.unimodal.certificate import Intervals
from psinoise.optimize.unimodal.first import coarser
from psinoise.optimize.unimodal.problem import Law, Problem, UnimodalCertificate
from psinoise.optimize.unimodal.program import Float, Places, Program

__all__ = [
    "certify_one_use",
    "epsilon_of_one_use",
    "grid_for_one_use",
    "least_cost_of_one_use",
    "least_epsilon_of_one_use",
    "masses_of_one_use",
]

# Tolerances of the solver, of constraints that are of order 1.
_FEASIBLE = 1e-10
# The share of delta that is spent on masses where the program has none, and the least exponent.
_SPARE, _LOWEST = 1e-12, -600.0
# Logarithms of the largest mass over those that are left to the tail, and over the smallest unit:
# smaller numbers the solver takes for 0.
_DEEP, _DEEPEST = 28.0, 35.0
_ROOM, _SHORTEST = 1.3, 2.5
# Of the tail of a law that needs none.
_STEEP = 2.0
_FINEST, _MANY, _MOST = 200, 6000, 32_767
# Of staircases: terms, in units of 1 / epsilon, and the least epsilon.
_PERIODS, _SMALLEST = 40.0, 1e-4
_GOLDEN = 0.6180339887498949
# Into how many a cell is cut where a bound is sought.
_FINER, _HALVINGS = 9, 40
# Sensitivities by which multipliers are continued.
_BEYOND = 12
# By how much a step is longer than it must be to first order.
_MORE = 1.2
# Of the cost, roots, and the largest epsilon.
_CLOSE, _MOST_ROOTS, _LARGEST = 1e-9, 60, 500.0


class _NoLawError(CalibrationError):
    """The program has none."""


@dataclass(frozen=True, eq=False)
class _Cheapest:
    """The law of least cost at an epsilon, and multipliers of the places in `_places`."""

    masses: Float
    cost: float
    multipliers: Float
    slope: float


def _places(program: Program) -> tuple[Places, Places, Places, Places]:
    """Where the law can exceed the moved one and is not in its tail: see `Program._pairs`."""
    n, last = program.width, program.last
    x = np.arange(-last + 1, n // 2 + 1, dtype=np.intp)
    return x, np.abs(x), np.abs(x - n), np.maximum(np.abs(x - n) - last, 0)


def _least_cost(program: Program, epsilon: float, delta: float) -> _Cheapest:
    """The linear program; ``epsilon`` and ``delta`` are those of one use without sampling."""
    from scipy import optimize, sparse  # slow to import

    n, last, ratio = program.width, program.last, program.tail_ratio
    grown = math.exp(epsilon)
    _, here, moved, beyond = _places(program)
    places = here.size
    unit = np.exp(np.maximum(-epsilon / n * np.arange(last + 1.0), -_DEEPEST))
    fall = ratio**beyond
    rows = np.arange(places)
    at = np.minimum(moved, last)
    excess = sparse.csr_matrix(
        (
            np.concatenate([np.ones(places), -grown * fall * unit[at] / unit[here]]),
            (np.concatenate([rows, rows]), np.concatenate([here, at])),
        ),
        shape=(places, last + 1),
    )
    steps = sparse.diags_array(
        [-np.ones(last), unit[1:] / unit[:-1]], offsets=[0, 1], shape=(last, last + 1)
    )
    total, cost = program.multiplicities * unit, program.costs * unit
    typical = float(cost.sum() / total.sum())
    # What the left tail exceeds its copy by, per unit of the last mass.
    tail = max(0.0, 1.0 - grown * ratio**n) / (1.0 - ratio)
    if delta > 0.0:
        spent = np.append(np.zeros(last), tail * unit[-1])
        upper = sparse.block_array(
            [
                [excess, -sparse.eye_array(places)],
                [steps, None],
                [sparse.csr_matrix(spent / delta), sparse.csr_matrix(unit[here] / delta)],
            ]
        )
        bound = np.append(np.zeros(places + last), 1.0)
        total, cost = (np.append(row, np.zeros(places)) for row in (total, cost))
    else:
        if grown * ratio**n < 1.0:
            raise CalibrationError(
                f"tail_ratio must be at least {math.exp(-epsilon / n)!r}, so that the tail meets "
                f"epsilon, got {ratio!r}"
            )
        upper = sparse.vstack([excess, steps])
        bound = np.zeros(places + last)
    found = optimize.linprog(
        cost / typical,
        A_ub=upper.tocsc(),
        b_ub=bound,
        A_eq=sparse.csr_matrix(total),
        b_eq=[1.0],
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": _FEASIBLE,
            "dual_feasibility_tolerance": _FEASIBLE,
        },
    )
    if found.status != 0:
        raise _NoLawError(f"no law on these cells has epsilon {epsilon!r} in one use")
    masses = _repaired(program, found.x[: last + 1] * unit, epsilon, delta)
    # Multipliers of places as they are, in units of the cost.
    y = np.maximum(-found.ineqlin.marginals[:places], 0.0) * typical / unit[here]
    if delta > 0.0:
        y = np.minimum(y, max(-float(found.ineqlin.marginals[-1]), 0.0) * typical / delta)
    slope = grown * float(y @ (masses[at] * fall))
    return _Cheapest(masses, float(program.costs @ masses), y, slope)


def _repaired(program: Program, p: Float, epsilon: float, delta: float) -> Float:
    """Masses that are positive and do not increase, whatever the solver rounded."""
    p = np.maximum.accumulate(np.maximum(p, 0.0)[::-1])[::-1]
    n, decay = program.width, math.log(program.tail_ratio)
    if delta == 0.0:
        floor = math.exp(-epsilon) * (1.0 + 2.0**-50)
        for begin in range(n, p.size, n):
            end = min(begin + n, p.size)
            p[begin:end] = np.maximum(p[begin:end], floor * p[begin - n : end - n])
        # The last n masses and the tail: p(x) is at most E times the tail's.
        x = np.arange(max(p.size - n, 0), p.size)
        needed = p[x] * floor * np.exp(-decay * (x + n - p.size + 1))
        p[-1] = max(p[-1], float(needed[x + n >= p.size].max()))
        p = np.maximum.accumulate(p[::-1])[::-1].copy()
    else:
        # A geometric law whose losses are at most epsilon, or a flat one.
        rate = max(-epsilon / n, decay)
        little = np.exp(np.maximum(rate * np.arange(p.size), _LOWEST))
        p = p + _SPARE * delta * float(p.max()) * little
    return np.asarray(p / float(program.multiplicities @ p))


def epsilon_of_one_use(program: Program, masses: Float, delta: float) -> float:
    """The epsilon at which ``delta(p)`` is delta, exactly; infinite losses of tails are none."""
    inner = Program(program.width, program.tail_ratio, program.costs, 1.0)
    base, ratio = inner.ratios(masses)
    order = np.argsort(ratio)
    # Places of the law with the largest p(x) / p(x - n) first; ratio is its inverse.
    mass, other = np.cumsum(base[order]), np.cumsum((base * ratio)[order])
    if delta == 0.0:
        return -math.log(float(ratio[order[0]]))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log((mass - delta) / other)
    return max(float(np.nanmax(np.where(mass > delta, found, -np.inf))), 0.0)


def _least_possible(
    problem: Problem, program: Program, cheapest: _Cheapest, epsilon: float, mean_cost: float
) -> float:
    """An epsilon of one use, at most ``epsilon``, that no unimodal law of the cost is below."""
    delta = problem.inner_delta
    if epsilon == 0.0:
        return 0.0
    if delta == 0.0:
        low, high = 0.0, epsilon
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            ruled_out = _staircase_cost(problem, middle) > mean_cost
            low, high = (middle, high) if ruled_out else (low, middle)
        return low
    # Multipliers are those of a smaller epsilon, which is ruled out if its bound is above the cost.
    short = mean_cost - _lower_bound(problem, program, cheapest, epsilon)
    step = _MORE * max(short, 1e-9 * mean_cost) / max(cheapest.slope, 1e-300)
    while step < epsilon and cheapest.slope > 0.0:
        try:
            known = _least_cost(program, epsilon - step, delta)
        except _NoLawError:
            return 0.0
        if _lower_bound(problem, program, known, epsilon - step) > mean_cost:
            return epsilon - step
        step *= 2.0 * _MORE
    return 0.0


def _lower_bound(problem: Problem, program: Program, known: _Cheapest, epsilon: float) -> float:
    """Of the cost of every unimodal law at an epsilon of one use."""
    delta = problem.inner_delta
    place, y = _continued(problem, program, known, epsilon, delta)
    sums = (_least_sum(problem, program, place, y, epsilon, times) for times in (1, _FINER))
    return max(sums) - float(y.max()) * delta


def _continued(
    problem: Problem, program: Program, cheapest: _Cheapest, epsilon: float, delta: float
) -> tuple[Places, Float]:
    """Multipliers of places, further to the left than the program has them: those for which the
    sum that a uniform law is asked for does not fall, where there are such between 0 and ``z``."""
    n, x, grown = program.width, _places(program)[0], math.exp(epsilon)
    reach, more = -int(x[0]), _BEYOND * program.width
    z = float(cheapest.multipliers.max())
    edges = (np.arange(reach, reach + more + 1) + 0.5) / n
    costs = np.diff(edges * problem.cost_of_interval(edges)) * n
    level = cheapest.cost + z * delta
    y = np.append(np.zeros(more), cheapest.multipliers)
    for i in range(more - 1, -1, -1):
        y[i] = min(max(grown * y[i + n] + 2.0 * (level - costs[more - 1 - i]), 0.0), z)
    return np.arange(x[0] - more, x[-1] + 1), y


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
        half = np.array([0.0, 0.5 / program.width])
        nothing, mean = problem.cost_of_interval(half)
        multipliers = multipliers.copy()
        own = multipliers[x == 0] + mean - nothing
        multipliers[x == 0] = np.minimum(own, multipliers.max())
    y = np.interp(place / times, x, multipliers, right=0.0)
    # Multipliers to both sides of 0, and of the places that are moved there.
    far = np.arange(reach + n + 1)

    def at(where: Places) -> Float:
        inside = np.abs(where) <= reach
        return np.where(inside, y[np.clip(where, -reach, reach) + reach], 0.0)

    shifted = at(n + far) + at(n - far)
    line = np.append(0.5 * (at(far) + at(-far) - math.exp(epsilon) * shifted), 0.0)
    return Intervals(line, n, problem.cost_of_interval, problem.power).least(1.0)


def _staircase_cost(problem: Problem, epsilon: float) -> float:
    """The least cost of all laws at delta = 0: that of the staircase (Geng and Viswanath 2016).

    It falls by the factor ``exp(-epsilon)`` at ``k + gamma`` for ``k = 0, 1, ...``: a mixture of
    uniform laws up to there.
    """
    if epsilon <= _SMALLEST:
        return math.inf
    k = np.arange(math.ceil(_PERIODS / epsilon) + 2.0)

    def cost(gamma: float) -> float:
        weights = (k + gamma) * np.exp(-epsilon * k)
        return float(weights @ problem.cost_of_interval(k + gamma)) / float(weights.sum())

    gammas = np.linspace(0.0, 1.0, 33)[1:]
    best = int(np.argmin([cost(gamma) for gamma in gammas]))
    low, high = gammas[max(best - 1, 0)], gammas[min(best + 1, gammas.size - 1)]
    for _ in range(40):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if cost(left) < cost(right) else (left, high)
    return cost(0.5 * (low + high)) * (1.0 - 1e-14)


def certify_one_use(
    problem: Problem,
    program: Program,
    masses: Float,
    mean_cost: float,
    cheapest: _Cheapest | None = None,
) -> UnimodalCertificate:
    """What can be said of masses, whoever found them."""
    delta = problem.inner_delta
    epsilon = epsilon_of_one_use(program, masses, delta)
    known = cheapest or _least_cost(program, epsilon, delta)
    low = _least_possible(problem, program, known, epsilon, mean_cost)
    outer = problem.outer(epsilon)
    rise = (problem.outer(epsilon + 1e-6) - outer) / 1e-6
    slope = rise / known.slope if known.slope > 0.0 else 0.0
    gap = max(outer - problem.outer(low), 0.0)
    return UnimodalCertificate(outer, math.inf, gap, slope)


def least_cost_of_one_use(problem: Problem, grid: Grid, epsilon: float) -> Law:
    """The law of least expected cost at an epsilon of all uses."""
    program = problem.program(grid)
    inner = problem.inner(epsilon)
    found = _least_cost(program, inner, problem.inner_delta)
    certificate = certify_one_use(problem, program, found.masses, found.cost, found)
    return Law(grid, found.masses, found.cost, certificate)


def least_epsilon_of_one_use(problem: Problem, grid: Grid, mean_cost: float) -> Law:
    """The law of least epsilon at an expected cost: a root, on coarse cells first.

    Raises
    ------
    CalibrationError
        If no law on the cells has the cost, or epsilon is 0 at less than it.
    """
    delta = problem.inner_delta
    coarse = coarser(grid)
    guess: float | None = None
    for cells, close in ((coarse, 1e-3), (grid, _CLOSE)):
        program = problem.program(cells)
        found, guess = _root(program, delta, mean_cost, guess, close)
        if coarse == grid:
            found, _ = _root(program, delta, mean_cost, guess, _CLOSE)
            break
    certificate = certify_one_use(problem, program, found.masses, mean_cost, found)
    return Law(grid, found.masses, mean_cost, certificate)


def masses_of_one_use(program: Program, mean_cost: float, delta: float) -> Float:
    """The law of least epsilon of one use without sampling at a delta and an expected cost."""
    return _root(program, delta, mean_cost, None, _CLOSE)[0].masses


def _root(
    program: Program, delta: float, mean_cost: float, guess: float | None, close: float
) -> tuple[_Cheapest, float]:
    """The cheapest law of about a cost, at most the cost, and its epsilon."""
    # At delta = 0 the tail allows no less.
    least = -math.log(program.tail_ratio) * program.width * (1.0 + 1e-12) if delta == 0.0 else 0.0
    under, high = None, math.inf
    over, low = None, least
    epsilon = least if guess is None else max(guess, least)
    for _ in range(_MOST_ROOTS):
        try:
            found = _least_cost(program, epsilon, delta)
        except _NoLawError:
            low, epsilon = epsilon, 2.0 * epsilon + 0.1
            continue
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
        if epsilon > _LARGEST:
            break
    if under is None:
        raise CalibrationError(f"no law on these cells has the mean cost {mean_cost!r}")
    if over is None and under.cost < mean_cost * (1.0 - close):
        raise CalibrationError(
            f"mean_cost must be at most {under.cost!r} on these cells, got {mean_cost!r}: epsilon "
            f"of one use is {least!r} there"
        )
    return _mixed(program, under, over, mean_cost), high


def _mixed(
    program: Program, under: _Cheapest, over: _Cheapest | None, mean_cost: float
) -> _Cheapest:
    """A law of exactly the cost: the dearer one has less epsilon, and delta is convex."""
    if over is None or over.cost - under.cost <= 0.0:
        return under
    share = (mean_cost - under.cost) / (over.cost - under.cost)
    masses = (1.0 - share) * under.masses + share * over.masses
    masses = masses / float(program.multiplicities @ masses)
    return _Cheapest(masses, mean_cost, under.multipliers, under.slope)


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
    delta = problem.inner_delta
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
    if width is None:
        width = max(1, min(_FINEST, int(_MANY / far)))
    last = max(width + 1, math.ceil(far * width))
    if last > _MOST:
        raise CalibrationError(f"noise that large takes {last} cells, and {_MOST} are the most")
    return Grid(width, last, min(math.exp(-rate / width), 1.0 - 1e-6))
