"""Primal-dual interior point method for the cactus program on a set of shifts.

Minimizes ``tau`` subject to ``KL_k(p) <= tau`` for the shifts, ``E[cost] / C - 1 <= 0``, total mass
1 and ``p > 0``: Mehrotra's predictor and corrector on the perturbed conditions of optimality

    sum_j y_j grad g_j + nu m = z,   sum of y over the shifts = 1,   s_j y_j = mu,   p_i z_i = mu,

where ``g_j + s_j = tau`` for a shift and ``g_j + s_j = 0`` for the cost. Unknown is the relative
change ``u = dp / p``. Its matrix is a band, factored once per iteration; the multipliers follow
from a system of the size of the number of shifts. All iterates are strictly feasible: slacks are
recomputed from the new masses, and ``tau`` is raised where curvature asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psinoise._backend import core
from psinoise.errors import CalibrationError
from psinoise.optimize.program import Float, Program, Shifts, weighted

__all__ = ["Optimum", "minimize"]

_MOST_ITERATIONS = 200
# Next to infeasibility rounding keeps the gradient from vanishing; the certificate tells.
_MOST_CENTERING = 20
# A step may use up this part of a mass, and multiply it by at most _RISE: the logarithms of masses
# that fall to nothing in one step are worthless in the next.
_FALL, _RISE = 0.9, 10.0
# Shares of the way to the border; a multiplier that is there is 0, where others are divided by it.
_LEAST_SHARE, _MOST_SHARE = 0.9, 1.0 - 2.0**-30
# Of a linear slack, what curvature must leave; and of the gap, what raising tau may give back.
_KEEP, _GIVE_BACK = 0.2, 0.25


@dataclass(frozen=True)
class Optimum:
    """Masses, the multipliers of the shifts, and the number of iterations that found them."""

    masses: Float
    weights: Float
    iterations: int


@dataclass(frozen=True)
class _Point:
    """Masses with everything that a Newton step needs to know about them."""

    p: Float
    values: Float  # of the constraints: the shifts, then the cost
    gradients: Float  # p_i dg_j / dp_i, one row for each constraint

    @classmethod
    def of(cls, program: Program, shifts: Shifts, p: Float) -> _Point:
        divergences, rows = program.derivatives(p, shifts)
        cost = program.costs * p / program.mean_cost
        values = np.append(divergences, cost.sum() - 1.0)
        return cls(p, values, np.vstack([rows, cost]))


@dataclass(frozen=True)
class _Step:
    u: Float
    multipliers: Float
    nu: float
    tau: float
    slacks: Float
    barrier: Float  # change of z times p

    def longest(self, state: _State) -> tuple[float, float]:
        """The longest primal and dual steps, up to 1, that stay inside."""
        primal = max(0.0, -self.u.min(), _fall(self.slacks, state.slacks))
        dual = max(_fall(self.multipliers, state.multipliers), _fall(self.barrier, state.pz))
        return 1.0 / max(1.0, primal), 1.0 / max(1.0, dual)


def _fall(change: Float, value: Float) -> float:
    """The largest share of a value that a change takes away; values may have underflowed to 0."""
    falling = change < 0.0
    with np.errstate(divide="ignore"):
        return float((-change[falling] / value[falling]).max(initial=0.0))


@dataclass
class _State:
    point: _Point
    slacks: Float
    multipliers: Float
    nu: float
    tau: float
    pz: Float

    @property
    def gap(self) -> float:
        return float(self.slacks @ self.multipliers + self.pz.sum())


def minimize(
    program: Program,
    shifts: Shifts,
    start: Float,
    *,
    tolerance: float,
    progress: Callable[[float], None] | None = None,
) -> Optimum:
    """Solve the program on the given shifts.

    Parameters
    ----------
    start : ndarray
        Masses that add up to 1 with an expected cost below the bound.
    tolerance : float
        Of the complementarity gap, relative to the largest divergence where that is below 1; the
        gradient of the Lagrangian, per unit of mass, ends below a hundred times that, or where
        rounding stops it.
    progress : callable, optional
        Called with the gap in every iteration.

    Raises
    ------
    CalibrationError
        If the method does not converge.
    """
    state = _first(program, shifts, start)
    last, centered = 1.0, 0
    for iteration in range(_MOST_ITERATIONS):
        if progress is not None:
            progress(state.gap)
        dual = _dual_residual(program, state)
        bound = tolerance * min(1.0, state.tau)
        # Per unit of mass, as the lower bound sees it: there cells of mass 1e-30 count as well.
        slope = np.abs(dual / (program.multiplicities * state.point.p)).max()
        centered = centered + 1 if state.gap < bound else 0
        if centered and (slope < 100.0 * bound or centered == _MOST_CENTERING):
            return Optimum(state.point.p, state.multipliers[:-1].copy(), iteration)
        last = _advance(program, shifts, state, dual, last, 0.3 * bound)
    raise CalibrationError(
        f"the cactus program did not converge in {_MOST_ITERATIONS} iterations: the gap is "
        f"{state.gap:.1e}"
    )


def _first(program: Program, shifts: Shifts, start: Float) -> _State:
    point = _Point.of(program, shifts, start)
    largest = float(point.values[:-1].max())
    tau = 1.1 * largest + 1e-3
    slacks = np.append(tau - point.values[:-1], -point.values[-1])
    mu = tau / shifts.size
    multipliers = mu / slacks
    multipliers[:-1] /= multipliers[:-1].sum()
    return _State(point, slacks, multipliers, 0.0, tau, np.full(start.size, mu))


def _dual_residual(program: Program, state: _State) -> Float:
    mass = program.multiplicities * state.point.p
    return weighted(state.multipliers, state.point.gradients) + state.nu * mass - state.pz


def _advance(
    program: Program, shifts: Shifts, state: _State, dual: Float, last: float, least_gap: float
) -> float:
    """One predictor and corrector step in place; returns its length.

    ``last`` is the length of the step before; below ``least_gap`` steps only center.
    """
    unknowns = state.slacks.size + state.pz.size
    mu = state.gap / unknowns
    newton = _Newton(program, shifts, state, dual)
    predictor = newton.step(0.0, 0.0, 0.0)
    primal, free = predictor.longest(state)
    predicted = (state.slacks + primal * predictor.slacks) @ (
        state.multipliers + free * predictor.multipliers
    ) + ((1.0 + primal * predictor.u) * (state.pz + free * predictor.barrier)).sum()
    # After a short step the complementarity products are uneven: center before going on.
    centering = max(1e-4, (predicted / state.gap) ** 3, 0.9 * (1.0 - last) ** 2)
    damping = primal * free
    step = newton.step(
        max(least_gap / unknowns, min(0.9, centering) * mu),
        damping * predictor.slacks * predictor.multipliers,
        damping * predictor.u * predictor.barrier,
    )
    length = min(max(_LEAST_SHARE, 1.0 - mu), _MOST_SHARE) * min(step.longest(state))
    length = min(length, _FALL / max(_FALL, -step.u.min()), _RISE / max(_RISE, step.u.max()))
    return _move(program, shifts, state, step, length)


def _move(program: Program, shifts: Shifts, state: _State, step: _Step, length: float) -> float:
    """Shorten the step until the constraints, which are convex, stay satisfied; then take it."""
    for _ in range(30):
        point = _Point.of(program, shifts, state.point.p * (1.0 + length * step.u))
        linear = state.slacks + length * step.slacks
        tau = state.tau + length * step.tau
        lack = point.values + _KEEP * linear
        raised = max(0.0, float((lack[:-1] - tau).max()))
        # The cost is linear: its slack is what it was predicted to be, but for rounding.
        if raised <= _GIVE_BACK * length * state.gap + 1e-15:
            break
        length *= 0.6
    state.point = point
    state.tau = tau + raised
    # Where rounding is all there is of a slack, the linear prediction is as good.
    slacks = np.append(state.tau - point.values[:-1], -point.values[-1])
    state.slacks = np.where(slacks > 0.1 * linear, slacks, linear)
    state.multipliers = state.multipliers + length * step.multipliers
    state.nu += length * step.nu
    state.pz = (state.pz + length * step.barrier) * (1.0 + length * step.u)
    return length


class _Newton:
    """The factored system of one iteration; solves it for several targets."""

    def __init__(self, program: Program, shifts: Shifts, state: _State, dual: Float) -> None:
        p, constraints = state.point.p, state.slacks.size
        self._state, self._dual = state, dual
        self._mass = program.multiplicities * p
        # By homogeneity the masses are a null vector of every Hessian, and the barrier fades. The
        # entry of cell 0, where the elimination ends, is raised; an unknown and an equation more
        # take that back exactly.
        self._band = program.hessian_band(p, shifts, state.multipliers[:-1])
        self._band[:, 0] += state.pz[::-1]
        raised = float(self._band[-1, 0])
        self._band[-1, 0] += raised
        if not core.band_cholesky(self._band):
            raise CalibrationError("the Newton matrix of the cactus program is not definite")

        rows = np.zeros((constraints + 2, p.size))
        rows[:constraints] = state.point.gradients[:, ::-1]
        rows[constraints] = self._mass[::-1]
        rows[constraints + 1, -1] = np.sqrt(raised)
        core.band_forward(self._band, rows)
        self._rows = rows
        bordered = np.zeros((constraints + 3, constraints + 3))
        bordered[:-1, :-1] = -core.gram(rows)
        diagonal = np.append(-state.slacks / state.multipliers, [0.0, 1.0, 0.0])
        bordered[np.diag_indices_from(bordered)] += diagonal
        bordered[: constraints - 1, -1] = -1.0
        bordered[-1, : constraints - 1] = 1.0
        self._bordered = bordered

    def step(
        self, target: float, slack_product: Float | float, mass_product: Float | float
    ) -> _Step:
        """Towards ``s y = target - slack_product`` and ``p z = target - mass_product``."""
        state = self._state
        constraints = state.slacks.size
        slack_change = (target - slack_product) / state.multipliers - state.slacks
        barrier_change = target - mass_product - state.pz
        right = np.ascontiguousarray((barrier_change - self._dual)[None, ::-1])
        core.band_forward(self._band, right)
        border = np.zeros(constraints + 3)
        border[:constraints] = -slack_change
        border[constraints] = 1.0 - self._mass.sum()
        border[:-1] -= np.einsum("ki,i->k", self._rows, right[0])
        border[-1] = 1.0 - state.multipliers[:-1].sum()
        y: Float = np.asarray(np.linalg.solve(self._bordered, border), dtype=np.float64)
        right[0] -= weighted(y[:-1], self._rows)
        core.band_backward(self._band, right)
        u = right[0, ::-1]
        return _Step(
            u=u,
            multipliers=y[:constraints],
            nu=float(y[constraints]),
            tau=float(y[-1]),
            slacks=slack_change - state.slacks / state.multipliers * y[:constraints],
            barrier=barrier_change - state.pz * u,
        )
