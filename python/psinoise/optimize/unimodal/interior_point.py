"""Primal-dual interior point method for the best unimodal law.

Minimizes ``F(p)`` subject to total mass 1, expected cost ``C`` and ``d_i = p_i - p_(i + 1) > 0``,
``d_N = p_N``: Mehrotra's predictor and corrector on

    grad F + theta c + nu m = D' z,   z_i d_i = mu,   z > 0,

with ``D p = d``. Differences are what is kept, so that they stay right where masses are nearly
equal; masses are their sums from the tail inwards, which never rise outwards, whatever is rounded.
The Newton matrix is a band, eliminated from the small masses to the large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psinoise._backend import core
from psinoise.errors import CalibrationError
from psinoise.optimize.cells import dot
from psinoise.optimize.unimodal.certificate import lower_bound_on_grid
from psinoise.optimize.unimodal.generator import Generator
from psinoise.optimize.unimodal.program import Float, Program, Values

__all__ = ["Optimum", "masses_of", "minimize"]

_MOST_ITERATIONS = 120
# Shares of a step to the border, and of a mass that one step may take away.
_INSIDE, _FALL = 0.995, 0.9
# The gap, as a share of the value, at which an iterate is kept for a similar program.
_NEAR = 0.02


@dataclass(frozen=True, eq=False)
class _State:
    d: Float
    p: Float
    z: Float
    theta: float
    nu: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """Differences of masses, the multiplier of the cost, and what the grid allows at most.

    ``interior`` is an iterate near the central path from which similar programs are solved.
    """

    differences: Float
    theta: float
    value: float
    bound: float
    interior: _State

    @property
    def masses(self) -> Float:
        """Of the cells, the one at 0 first."""
        return masses_of(self.differences)


def masses_of(differences: Float) -> Float:
    """Sums of differences, from the tail inwards."""
    return np.cumsum(differences[::-1])[::-1].copy()


@dataclass(frozen=True)
class _Step:
    p: Float
    d: Float
    z: Float
    theta: float
    nu: float


@np.errstate(over="ignore")  # what leads nowhere does not converge
def minimize(
    program: Program,
    generator: Generator,
    mean_cost: float,
    start: Float | Optimum,
    *,
    tolerance: float,
    progress: Callable[[float], None] | None = None,
) -> Optimum:
    """Solve the program.

    Parameters
    ----------
    start : ndarray or Optimum
        Differences, all positive, or the optimum of a similar program on the same cells.
    tolerance : float
        Of ``F``: how far it may be above the bound for all laws on the grid.

    Raises
    ------
    CalibrationError
        If the method does not converge.
    """
    state = start.interior if isinstance(start, Optimum) else _cold(program, generator, start)
    values = program.values(state.p, generator)
    best: Optimum | None = None
    interior: _State | None = None
    stalled = 0
    for _ in range(_MOST_ITERATIONS):
        met = abs(dot(program.costs, state.p) / mean_cost - 1.0) < 1e-9
        if state.theta > 0.0 and met:
            bound = lower_bound_on_grid(program, values.gradient, state.theta, mean_cost)
            if interior is None and values.value - bound < _NEAR * abs(values.value):
                interior = state
            if best is None or values.value - bound < best.value - best.bound:
                best = Optimum(state.d, state.theta, values.value, bound, interior or state)
                stalled = 0
            else:
                stalled += 1
            if progress is not None:
                progress(best.value - best.bound)
            if best.value - best.bound <= tolerance or stalled > 15:
                break
        moved = _advance(program, state, values, mean_cost, 0.01 * tolerance / state.d.size)
        if moved is None:
            break
        state = moved
        values = program.values(state.p, generator)
    if best is None:
        raise CalibrationError("the program of the best unimodal law did not converge")
    return best


def _cold(program: Program, generator: Generator, start: Float) -> _State:
    """Multipliers for differences of which nothing else is known."""
    p = masses_of(start)
    total = dot(program.multiplicities, p)
    d, p = start / total, p / total
    spread = max(program.values(p, generator).value, 1e-9)
    return _State(d, p, spread / start.size / d, 0.0, 0.0)


def _advance(
    program: Program, state: _State, values: Values, mean_cost: float, least: float
) -> _State | None:
    """One predictor and corrector step; None if there is none."""
    newton = _Newton(program, state, values, mean_cost)
    if not newton.definite:
        return None
    mu = dot(state.d, state.z) / state.d.size
    predictor = newton.step(0.0, 0.0)
    primal, dual = _longest(state, predictor)
    predicted = dot(state.d + primal * predictor.d, state.z + dual * predictor.z)
    share = min(max(predicted / state.d.size / mu, 0.0), 1.0) ** 3
    share = max(share, 0.9 * (1.0 - min(primal, dual)) ** 2, 1e-4)
    step = newton.step(max(share * mu, least), primal * dual * predictor.d * predictor.z)
    primal, dual = _longest(state, step)
    primal, dual = min(1.0, _INSIDE * primal), min(1.0, _INSIDE * dual)
    length = min(primal, dual) if max(primal, dual) < 0.9 else None
    primal, dual = (length, length) if length is not None else (primal, dual)
    d = state.d + primal * step.d
    return _State(
        d,
        masses_of(d),
        state.z + dual * step.z,
        state.theta + dual * step.theta,
        state.nu + dual * step.nu,
    )


def _longest(state: _State, step: _Step) -> tuple[float, float]:
    """The longest primal and dual steps, up to 1, that stay inside."""
    fall = max(float((-step.d / state.d).max()), float((-step.p / state.p).max()) / _FALL, 0.0)
    rise = max(float((-step.z / state.z).max()), 0.0)
    return 1.0 / max(1.0, fall), 1.0 / max(1.0, rise)


class _Newton:
    """The factored system of one iteration; solves it for several targets."""

    def __init__(self, program: Program, state: _State, values: Values, mean_cost: float) -> None:
        p = state.p
        self._state = state
        self._ratio = state.z / state.d
        band = program.hessian_band(values.weights)
        weighted = self._ratio * p
        diagonal = weighted * p
        diagonal[1:] += self._ratio[:-1] * p[1:] ** 2
        band[:, 0] += diagonal[::-1]
        band[: p.size - 1, 1] -= (weighted[:-1] * p[1:])[::-1]
        # Masses are a null vector of the Hessian, and the barrier fades: the entry of cell 0, where
        # the elimination ends, is raised; one more unknown and equation take that back exactly.
        raised = float(band[-1, 0])
        band[-1, 0] += raised
        self.definite = bool(core.band_cholesky(band))
        self._band = band
        rows = np.zeros((3, p.size))
        rows[0] = (program.costs * p)[::-1]
        rows[1] = (program.multiplicities * p)[::-1]
        self._lack = np.array([mean_cost - rows[0].sum(), 1.0 - rows[1].sum(), 0.0])
        rows[2, -1] = np.sqrt(raised)
        self._slope = (
            values.gradient + state.theta * program.costs + state.nu * program.multiplicities
        )
        core.band_forward(band, rows)
        self._rows = rows
        self._bordered = -core.gram(rows)
        self._bordered[2, 2] += 1.0

    def step(self, target: float, product: Float | float) -> _Step:
        """Towards ``z d = target - product``."""
        state = self._state
        pull = (target - product) / state.d
        right = -self._slope + pull
        right[1:] -= pull[:-1]
        right = np.ascontiguousarray((right * state.p)[None, ::-1])
        core.band_forward(self._band, right)
        border = self._lack - np.einsum("ki,i->k", self._rows, right[0])
        y = np.linalg.solve(self._bordered, border)
        right[0] -= np.einsum("k,ki->i", y, self._rows)
        core.band_backward(self._band, right)
        change = state.p * right[0, ::-1]
        d = change.copy()
        d[:-1] -= change[1:]
        return _Step(
            p=change,
            d=d,
            z=pull - state.z - self._ratio * d,
            theta=float(y[0]),
            nu=float(y[1]),
        )
