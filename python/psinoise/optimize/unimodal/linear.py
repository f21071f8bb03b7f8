"""The linear program of one use: the cheapest unimodal law at an epsilon and a delta.

With ``E = exp(epsilon)``,

    delta(p) = sum over x of (p(x) - E p(x - n))^+

is linear in the masses and one slack for each place, so that the least cost at (epsilon, delta) is
a linear program, and so is the least delta at (epsilon, cost). Masses are solved for in units of
``exp(-epsilon x / n)``, which is about what they are: tolerances of the solver are relative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import dot
from psinoise.optimize.unimodal.program import Float, Places, Program

__all__ = [
    "Cheapest",
    "NoLawError",
    "epsilon_of_one_use",
    "least_cost",
    "least_delta",
    "places_of",
    "resolved",
]

# Tolerances of the solver, of constraints that are of order 1, and deltas that it loses.
_FEASIBLE, _LEAST_RESOLVED = 1e-10, 1e-11
# The share of delta that is spent on masses where the program has none, and the least exponent.
_SPARE, _LOWEST = 1e-12, -600.0
# The logarithm of the largest mass over the smallest unit: smaller numbers the solver takes for 0.
_DEEPEST = 35.0


class NoLawError(CalibrationError):
    """The program has none."""


@dataclass(frozen=True, eq=False)
class Cheapest:
    """The law of least cost at an epsilon, and multipliers of the places in `places_of`."""

    masses: Float
    cost: float
    multipliers: Float
    slope: float


def resolved(delta: float) -> float:
    """The delta that a program is solved for: 0 where the solver would lose it.

    It knows rows of delta to an absolute error: of 1e-15 its laws were worse than the one of delta
    = 0, which is one for any delta, or there were none. Laws of these two deltas have the same
    epsilon to 1e-11 of it, as far as cells go.
    """
    return delta if delta > _LEAST_RESOLVED else 0.0


def places_of(program: Program) -> tuple[Places, Places, Places, Places]:
    """Where the law can exceed the moved one and is not in its tail: see `Program._pairs`."""
    n, last = program.width, program.last
    x = np.arange(-last + 1, n // 2 + 1, dtype=np.intp)
    return x, np.abs(x), np.abs(x - n), np.maximum(np.abs(x - n) - last, 0)


class _Rows(NamedTuple):
    """What both programs consist of, of masses in units: by how much the law exceeds the moved one
    at places, and masses the next ones; the total and the cost; delta per unit of slacks."""

    unit: Float
    excess: Any
    steps: Any
    total: Float
    cost: Float
    spent: Float
    falls: Float


def _rows(program: Program, epsilon: float) -> _Rows:
    from scipy import sparse  # slow to import

    n, last, ratio = program.width, program.last, program.tail_ratio
    grown = math.exp(epsilon)
    _, here, moved, beyond = places_of(program)
    places = here.size
    unit = np.exp(np.maximum(-epsilon / n * np.arange(last + 1.0), -_DEEPEST))
    fall = np.asarray(ratio**beyond, dtype=np.float64)
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
    # What the left tail exceeds its copy by, per unit of the last mass.
    tail = max(0.0, 1.0 - grown * ratio**n) / (1.0 - ratio)
    spent = np.concatenate([np.zeros(last), [tail * unit[-1]], unit[here]])
    total, cost = program.multiplicities * unit, program.costs * unit
    return _Rows(unit, excess, steps, total, cost, spent, fall)


def _solved(cost: Float, upper: Any, bound: Float, total: Float) -> Any:
    """The solver's answer, or None."""
    from scipy import optimize, sparse  # slow to import

    found = optimize.linprog(
        cost,
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
    return found if found.status == 0 else None


def least_cost(program: Program, epsilon: float, delta: float) -> Cheapest:
    """The linear program; ``epsilon`` and ``delta`` are those of one use without sampling."""
    from scipy import sparse  # slow to import

    n, last, ratio = program.width, program.last, program.tail_ratio
    grown = math.exp(epsilon)
    _, here, moved, _ = places_of(program)
    places = here.size
    unit, excess, steps, total, cost, spent, fall = _rows(program, epsilon)
    typical = float(cost.sum() / total.sum())
    if delta > 0.0:
        upper = sparse.block_array(
            [
                [excess, -sparse.eye_array(places)],
                [steps, None],
                [
                    sparse.csr_matrix(spent[: last + 1] / delta),
                    sparse.csr_matrix(spent[last + 1 :] / delta),
                ],
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
    found = _solved(cost / typical, upper, bound, total)
    if found is None:
        raise NoLawError(f"no law on these cells has epsilon {epsilon!r} in one use")
    masses = _repaired(program, found.x[: last + 1] * unit, epsilon, delta)
    # Multipliers of places as they are, in units of the cost.
    y = np.maximum(-found.ineqlin.marginals[:places], 0.0) * typical / unit[here]
    if delta > 0.0:
        y = np.minimum(y, max(-float(found.ineqlin.marginals[-1]), 0.0) * typical / delta)
    slope = grown * float(y @ (masses[np.minimum(moved, last)] * fall))
    return Cheapest(masses, dot(program.costs, masses), y, slope)


def least_delta(
    program: Program, epsilon: float, mean_cost: float, guess: float
) -> tuple[Cheapest, float]:
    """The same program the other way round: the least delta at an epsilon and a cost.

    Parameters
    ----------
    guess : float
        Of delta: the solver's tolerances are relative to it.

    Raises
    ------
    NoLawError
        If none of the cost is found, or one of less cost has the least delta as well.
    """
    from scipy import sparse  # slow to import

    _, here, moved, _ = places_of(program)
    places = here.size
    unit, excess, steps, total, cost, spent, fall = _rows(program, epsilon)
    upper = sparse.block_array(
        [
            [excess, -sparse.eye_array(places)],
            [steps, None],
            [sparse.csr_matrix(cost / mean_cost), None],
        ]
    )
    bound = np.append(np.zeros(upper.shape[0] - 1), 1.0)
    found = _solved(spent / guess, upper, bound, np.append(total, np.zeros(places)))
    theta = 0.0 if found is None else -float(found.ineqlin.marginals[-1])
    if found is None or not theta > 0.0:
        raise NoLawError(f"no law on these cells needs all of the cost {mean_cost!r}")
    # In units of the cost, of which delta has the multiplier mean_cost / (theta guess).
    y = -found.ineqlin.marginals[:places] / unit[here]
    y = np.clip(y, 0.0, 1.0 / guess) * (mean_cost / theta)
    delta = max(float(found.fun) * guess, 0.0)
    masses = _repaired(program, found.x[: program.last + 1] * unit, epsilon, delta)
    slope = math.exp(epsilon) * float(y @ (masses[np.minimum(moved, program.last)] * fall))
    return Cheapest(masses, dot(program.costs, masses), y, slope), delta


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
    return np.asarray(p / dot(program.multiplicities, p))


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
