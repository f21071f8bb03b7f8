"""Ground states of Schrodinger operators ``-y'' + theta c y`` with an even cost ``c``.

The density ``y**2`` has the least Fisher information for its mean cost (docs/schrodinger.md).
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.errors import DomainError
from psinoise.ground_state import _mesh, _solve
from psinoise.ground_state._collocation import SIZE
from psinoise.ground_state._decimal import join, power, ratio, split
from psinoise.ground_state._mesh import Mesh, PairFunction, Unresolved, smooth_exponent
from psinoise.ground_state._solve import ScalarPair, Solution
from psinoise.ground_state._state import GroundState
from psinoise.numerics import double_double as dd

__all__ = [
    "CostFunction",
    "GroundState",
    "NaturalState",
    "natural_state",
    "power_state",
    "smooth_exponent",
    "theta_of_mean_cost",
]

Float = NDArray[np.float64]

# The next term of the semiclassical series, beyond this depth, is below 1e-15 of the whole.
_FAR_DEPTH = 6e7
# Squares of larger potentials would overflow.
_HIGHEST_POTENTIAL = 2.0**400
# Natural units: the panels reach 2**40 of them.
_LAST = 40
_FIRSTS = np.arange(-60.0, 0.0, 2.0)
_UNITS = np.arange(-400.0, 401.0)
# Bisections of panels on which r is not a polynomial of degree 19, and the share of log p that may
# be missing after them.
_MOST_BISECTIONS = 16
_RESOLVED, _ACCEPTED = 1e-16, 3e-15
# Relative error of a mean cost, and steps to get there.
_MET, _POLISH = 1e-14, 12
# Ground states to keep: 100 kB each.
_CACHED = 64


class CostFunction(Protocol):
    """What is needed of a cost: hashable, values as pairs, and where it is not smooth."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Points above 0 where the cost is continuous but not smooth."""

    def pair(self, t: Float) -> dd.Pair:
        """Values at ``t >= 0``."""

    def __hash__(self) -> int: ...


class NaturalState(NamedTuple):
    """A ground state in natural units, and the unit: a power of two."""

    state: GroundState
    unit: float


def _mesh_of(cost: PairFunction, theta: float, breakpoints: tuple[float, ...]) -> Mesh:
    first = smooth_exponent(cost, theta, SIZE - 1, _FIRSTS, 1)
    return _mesh.evaluate(cost, _mesh.first_edges(first, _LAST, breakpoints))


def _full(mesh: Mesh, theta: ScalarPair, energy: ScalarPair) -> Solution:
    """The solution on all panels up to where the semiclassical series takes over."""
    count = _solve.reach(mesh, theta[0], energy[0], _FAR_DEPTH) + _solve.LAYER
    with np.errstate(over="ignore"):
        high = theta[0] * mesh.cost_hi[:, -1] > _HIGHEST_POTENTIAL
    count = min(count, int(np.argmax(np.append(high, True))))
    solution = _solve.riccati(mesh.until(count), theta, energy, None, 3)
    if solution is None:
        raise DomainError("cost must have a ground state that can be resolved")
    return solution.until(count - _solve.LAYER)


def _resolved(mesh: Mesh, solution: Solution, cost: PairFunction) -> Mesh | None:
    """None if the solution is resolved, else the mesh with the panels refined that are not."""
    missing = solution.unresolved()
    bad = np.flatnonzero(missing > _RESOLVED)
    return _mesh.refined(cost, mesh, bad, solution.theta[0]) if bad.size else None


def _solved(
    cost: PairFunction, theta: float, breakpoints: tuple[float, ...]
) -> tuple[Mesh, Solution]:
    """The ground state on panels that resolve it, and all panels there are."""
    mesh = _mesh.towards_kinks(cost, _mesh_of(cost, theta, breakpoints), theta)
    pair = (theta, 0.0)
    energy: float | None = None
    for attempt in range(_MOST_BISECTIONS):
        found = _solve.ground_energy(mesh, pair, energy)
        energy = found.energy[0]
        if breakpoints and attempt == 0:
            q = theta * cost(np.array(breakpoints))[0] - energy
            decay = np.sqrt(np.maximum(q, 0.0)).tolist()
            layers = _mesh.layer_edges(breakpoints, decay)
            if layers:
                mesh = _mesh.with_edges(cost, mesh, layers)
                continue
        finer = _resolved(mesh, found.until(found.mesh.half.size - _solve.LAYER), cost)
        if finer is None:
            solution = _full(mesh, pair, found.energy)
            finer = _resolved(mesh, solution, cost)
            if finer is None:
                return mesh, solution
        mesh = finer
    solution = _full(mesh, pair, _solve.ground_energy(mesh, pair, energy).energy)
    missing = solution.unresolved()
    if missing.max() > _ACCEPTED:
        raise Unresolved(float(solution.mesh.edges[int(np.argmax(missing))]))
    return mesh, solution


@lru_cache(maxsize=_CACHED)
def power_state(cost: CostFunction, p: float) -> GroundState:
    """The ground state of ``cost = |x|**p`` at mean cost 1.

    By scaling: if ``E`` is the energy at ``theta = 1``, the mean cost there is ``C = 2 E/(2 + p)``
    (virial theorem), and mean cost 1 belongs to ``theta = C**((2 + p)/p)`` with the energy
    ``E theta**(2/(2 + p)) = E C**(2/p)``.
    """
    mesh, unit = _solved(cost.pair, 1.0, ())
    energy = join(unit.energy)
    exponent = Decimal(p)
    mean = ratio(2 * energy, 2 + exponent)
    theta = split(power(mean, ratio(2 + exponent, exponent)))
    solution = _full(mesh, theta, split(energy * power(mean, ratio(Decimal(2), exponent))))
    return GroundState(solution, cost.pair)


@lru_cache(maxsize=_CACHED)
def natural_state(cost: CostFunction, theta: float) -> NaturalState:
    """The ground state of any cost in units in which the potential and the kinetic energy are of
    the same size: ``theta unit**2 (c(unit) - c(0)) = 1`` up to a factor of 8.

    Raises
    ------
    DomainError
        If the cost is smooth nowhere near some point, or no unit fits into float64.
    """
    unit = _unit(cost, theta)
    try:
        _, solution = _solved(
            _in_units(cost, unit),
            theta * unit**2,
            tuple(point / unit for point in cost.breakpoints),
        )
    except Unresolved as error:
        raise DomainError(
            "cost must be smooth but for a few kinks, which it is not near "
            f"x = {error.place * unit!r}"
        ) from None
    breakpoints = tuple(point / unit for point in cost.breakpoints)
    return NaturalState(GroundState(solution, _in_units(cost, unit), breakpoints), unit)


def theta_of_mean_cost(cost: CostFunction, mean_cost: float) -> float:
    """The factor ``theta`` with ``E[c] = mean_cost``, by the secant method in logarithms.

    Raises
    ------
    DomainError
        If ``mean_cost`` is not above ``c(0)``, or no unit fits into float64.
    """
    units = 2.0**_UNITS
    with np.errstate(over="ignore"):
        values = cost.pair(np.concatenate([[0.0], units]))[0]
    floor, grown = float(values[0]), values[1:] - values[0]
    excess = mean_cost - floor
    if not (excess > 0.0):
        raise DomainError(f"mean_cost must be above the cost of 0, {floor!r}, got {mean_cost!r}")
    k = int(np.searchsorted(grown, excess))
    if not (0 < k < units.size - 1):
        raise DomainError(
            f"mean_cost must be reached between 2**-400 and 2**400, got {mean_cost!r}"
        )
    _check_finite(grown, k)
    unit = float(units[k])
    mesh = _mesh_of(
        _in_units(cost, unit),
        0.3 / excess,
        tuple(point / unit for point in cost.breakpoints),
    )
    # The local power p of the cost gives the slope of the first step: C ~ theta**(-p/(2 + p)).
    p = _log(grown[k + 1] / grown[k]) / _log(2.0)
    slope = -min(max(p / (2.0 + p), 1e-3), 0.9)
    log_theta = _log(0.3 / excess)
    energy: float | None = None
    solution: Solution | None = None
    known: list[tuple[float, float]] = []
    for _ in range(60):
        theta = float(core.exponential(np.array([log_theta]), np.zeros(1))[0])
        if solution is not None:
            # dE / dtheta = C.
            energy = solution.energy[0] + solution.mean_cost * (theta - solution.theta[0])
        solution = _solve.ground_energy(mesh, (theta, 0.0), energy)
        miss = _log((solution.mean_cost - floor) / excess)
        known.append((log_theta, miss))
        if abs(miss) <= 4.0 * 2.0**-53 or (len(known) > 2 and known[-2][0] == log_theta):
            break
        if len(known) > 1:
            (x0, y0), (x1, y1) = known[-2:]
            if y1 != y0 and x1 != x0 and (y1 - y0) / (x1 - x0) < 0.0:
                slope = (y1 - y0) / (x1 - x0)
        step = -miss / slope
        log_theta += min(max(step, -3.0), 3.0)
    # On panels that resolve the cost, which these need not be, the last digits may differ.
    polished: list[tuple[float, float]] = []
    for _ in range(_POLISH):
        theta = float(core.exponential(np.array([log_theta]), np.zeros(1))[0]) / unit**2
        miss = _log((natural_state(cost, theta).state.mean_cost - floor) / excess)
        if abs(miss) <= _MET:
            break
        if len(polished) > 0 and abs(miss) > 0.1 * abs(polished[-1][1]):
            # The secant was one of roundings.
            (x0, y0), x1 = polished[-1], log_theta
            slope = (miss - y0) / (x1 - x0) if abs(x1 - x0) > 1e-10 else slope
            slope = slope if slope < 0.0 else -p / (2.0 + p)
        polished.append((log_theta, miss))
        log_theta -= miss / slope
    return theta


def _log(x: float) -> float:
    return float(core.logarithm(np.array([float(x)]))[0])


def _unit(cost: CostFunction, theta: float) -> float:
    units = 2.0**_UNITS
    with np.errstate(over="ignore", under="ignore"):
        values = cost.pair(np.concatenate([[0.0], units]))[0]
        size = theta * units * units * (values[1:] - values[0])
    k = int(np.searchsorted(size, 1.0))
    if not (0 < k < units.size - 1):
        raise DomainError(f"theta must give a law of size 2**-400 to 2**400, got {theta!r}")
    _check_finite(values[1:], k)
    return float(units[k])


def _check_finite(values: Float, k: int) -> None:
    """A power of ``x`` beyond the range of float64 is infinite where the law still is."""
    infinite = ~np.isfinite(values[k : k + 2])
    if infinite.any():
        point = float(2.0 ** _UNITS[k + int(np.argmax(infinite))])
        raise DomainError(f"cost must be finite where the law is, got infinity at x = {point!r}")


def _in_units(cost: CostFunction, unit: float) -> PairFunction:
    return lambda t: cost.pair(t * unit)
