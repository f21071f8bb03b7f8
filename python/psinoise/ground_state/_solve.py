"""The ground energy of ``-y'' + theta c y`` by Newton on the inward Riccati equation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.errors import DomainError
from psinoise.ground_state._collocation import SIZE, matrices
from psinoise.ground_state._mesh import Mesh
from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]
ScalarPair = tuple[float, float]

# Decay exp(-depth) at which the start of the inward solution does not matter any more.
_SEARCH_DEPTH = 64.0
# Panels, beyond those that count, in which the approximate start dies out.
LAYER = 2
# Newton in doubles until its steps are this small; one step in pairs squares that.
_LAST_STEP = 1e-9
_MOST_STEPS = 200
_ROUNDING = 2.0**-44
# What a share of the mean cost counts against one of log p.
_COST_SHARE = 1e-2


@dataclass(frozen=True, eq=False)
class Solution:
    """r, Mills ratio and tail cost at the nodes of a mesh, for one energy."""

    mesh: Mesh
    theta: ScalarPair
    energy: ScalarPair
    decay: dd.Pair
    mills: dd.Pair
    tail_cost: dd.Pair

    @property
    def mean_cost(self) -> float:
        """``E[c]``: what ``dE / dtheta`` is."""
        return float(self.tail_cost[0][0, 0] / self.mills[0][0, 0])

    @property
    def energy_step(self) -> float:
        """Newton's next step for the energy."""
        return float(self.decay[0][0, 0] / self.mills[0][0, 0])

    def until(self, count: int) -> Solution:
        """The first panels alone."""
        cut = [(hi[:count], lo[:count]) for hi, lo in (self.decay, self.mills, self.tail_cost)]
        return Solution(self.mesh.until(count), self.theta, self.energy, *cut)

    def unresolved(self) -> Float:
        """For each panel, the share of log p that the last two coefficients of r make there, or a
        part of the share of the mean cost that those of the tail cost do."""
        decay, tail = self.decay[0], self.tail_cost[0]
        last = matrices().values[0][-2:].T
        top = np.abs(decay @ last) @ np.array([2.0, 1.0]) * 2.0 ** (2 - SIZE)
        cost = np.abs(tail @ last) @ np.array([2.0, 1.0]) * 2.0 ** (2 - SIZE)
        whole = np.cumsum(self.mesh.half * (decay @ matrices().whole[0][0]))
        before = np.append(0.0, np.maximum(whole[:-1], 0.0))
        with np.errstate(under="ignore"):
            share = cost * np.exp(-2.0 * before) / tail[0, 0]
        missing = self.mesh.half * top / (SIZE * np.maximum(1.0, whole))
        return np.asarray(np.maximum(missing, _COST_SHARE * share))


def riccati(
    mesh: Mesh, theta: ScalarPair, energy: ScalarPair, guess: Float | None, refinements: int
) -> Solution | None:
    """Solve inward; None if there is a pole."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = dd.multiply((mesh.cost_hi, mesh.cost_lo), (np.array(theta[0]), np.array(theta[1])))
        hi, lo = dd.add(scaled, (np.array(-energy[0]), np.array(-energy[1])))
    half = mesh.half
    if guess is None:
        # Where a panel is wider than the decay length, the solution follows the square root.
        lowest = hi.min(axis=1, keepdims=True)
        wide = lowest * half[:, None] ** 2 > 1.0
        guess = np.where(wide, np.sqrt(np.maximum(hi, 0.0)), np.nan)
    end = math.sqrt(float(hi[-1, -1]))
    cost_end = float(mesh.cost_hi[-1, -1])
    start = np.array([end, 0.5 / end, 0.5 * cost_end / end])
    b_hi, b_lo = matrices().inward
    found = core.riccati(
        half, hi, lo, mesh.cost_hi, np.ascontiguousarray(guess), start, b_hi, b_lo, refinements
    )
    shaped = [values.reshape(-1, SIZE) for values in found]
    if not np.isfinite(shaped[2][0, 0]) or not shaped[2][0, 0] > 0.0:
        return None
    return Solution(
        mesh,
        theta,
        energy,
        (shaped[0], shaped[1]),
        (shaped[2], shaped[3]),
        (shaped[4], shaped[5]),
    )


def semiclassical_energy(mesh: Mesh, theta: float) -> float:
    """The energy with ``integral sqrt(E - theta c) = pi / 4``: within about ten percent, more for
    potentials like walls."""
    weights = mesh.half[:, None] * matrices().whole[0]
    with np.errstate(over="ignore"):
        potential = theta * mesh.cost_hi

    def action(energy: float, count: int) -> float:
        if energy == math.inf:
            return math.inf
        kinetic = np.maximum(energy - potential[:count], 0.0)
        return float((weights[:count] * np.sqrt(kinetic)).sum())

    # The panel with the turning point first: potentials range over hundreds of octaves.
    inside, outside = 0, mesh.half.size - 1
    while outside - inside > 1:
        middle = (inside + outside) // 2
        small = action(float(potential[middle, -1]), middle + 1) < 0.25 * math.pi
        inside, outside = (middle, outside) if small else (inside, middle)
    low, high = float(potential[inside, -1]), float(potential[outside, -1])
    if action(low, inside + 1) > 0.25 * math.pi:
        low = float(potential[0, 0])
    if not math.isfinite(low + high):
        raise DomainError("cost must have a ground state that can be resolved")
    for _ in range(12):
        energy = 0.5 * (low + high)
        small = action(energy, outside + 1) < 0.25 * math.pi
        low, high = (energy, high) if small else (low, energy)
    # Few bits, so that the order in which a machine sums does not show in what comes after.
    mantissa, exponent = math.frexp(0.5 * (low + high))
    return math.ldexp(round(mantissa * 1024.0), exponent - 10)


def reach(mesh: Mesh, theta: float, energy: float, depth: float) -> int:
    """Panels up to where ``integral 2 sqrt(theta c - E)`` exceeds ``depth``."""
    with np.errstate(over="ignore"):
        q = np.maximum(theta * mesh.cost_hi - energy, 0.0)
        depths = np.cumsum(2.0 * mesh.half * (np.sqrt(q) @ matrices().whole[0][0]))
    return min(int(np.searchsorted(depths, depth)) + 1, mesh.half.size)


def ground_energy(mesh: Mesh, theta: ScalarPair, start: float | None = None) -> Solution:
    """The solution in pairs at the ground energy, on the panels that decide it.

    ``-r(0; E)`` increases and is convex below the first odd state, where it has a pole (it is a
    Herglotz function), so Newton's method from either side meets the energy; a pole halves.
    """
    energy = semiclassical_energy(mesh, theta[0]) if start is None else start
    floor = theta[0] * float(mesh.cost_hi[0, 0])
    # The first guess may be low: the panels must reach deep enough for a higher energy too.
    count = reach(mesh, theta[0], energy + 0.25 * (energy - floor), _SEARCH_DEPTH) + LAYER
    short = mesh.until(count)
    low, high = floor, math.inf
    guess: Float | None = None
    for _ in range(_MOST_STEPS):
        solution = riccati(short, theta, (energy, 0.0), guess, 1)
        if solution is None:
            high, guess = energy, None
            energy = 0.5 * (low + high)
            continue
        step = solution.energy_step
        low, high = (energy, high) if step > 0.0 else (low, energy)
        guess = solution.decay[0]
        proposal = energy + step
        if abs(step) <= _LAST_STEP * (energy - floor):
            energy = proposal
            break
        energy = proposal if low < proposal < high else 0.5 * (low + high)
    exact = (energy, 0.0)
    for _ in range(2):
        solution = riccati(short, theta, exact, guess, 3)
        if solution is None:
            break
        guess = solution.decay[0]
        total = dd.add(
            (np.array(exact[0]), np.array(exact[1])), (np.array(solution.energy_step), np.zeros(()))
        )
        exact = (float(total[0]), float(total[1]))
        if abs(solution.energy_step) <= _ROUNDING * abs(exact[0]):
            return replace(solution, energy=exact)
    raise DomainError("cost must have a ground state that can be resolved")
