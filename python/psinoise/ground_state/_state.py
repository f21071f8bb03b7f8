"""A solved ground state as a law on the half line: log density, Mills ratio and score anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.compile import Layout
from psinoise.compile.panels import DEGREE
from psinoise.errors import DomainError
from psinoise.ground_state._collocation import matrices
from psinoise.ground_state._decimal import log_of_half_inverse
from psinoise.ground_state._mesh import PairFunction, layer_edges, smooth_exponent
from psinoise.ground_state._solve import ScalarPair, Solution
from psinoise.numerics import double_double as dd
from psinoise.numerics.gauss_legendre import NODES, WEIGHTS

Float = NDArray[np.float64]

_PAIR_TERMS = 5
# The first panel of the tables, [0, 2**e), is at most 1/16 and fits costs as small powers do.
_FIRSTS = np.arange(-40.0, -3.0, 2.0)
# Samples and quantiles go down to a depth of 2048.
_DEEPEST = 2100.0
_LAST_EXPONENT = 1022
# Finite differences of log Q for the score beyond the panels, where they are a small correction.
_DIFFERENCE = 2.0**-10
# Samples of the slope of the score between nodes, for the certificate of log-concavity.
_SAMPLES = (65, 513, 4097)
# Depth from which on the proof alone stands for log-concavity: no probability is that small.
_CERTIFIED = 1e5


@dataclass(frozen=True, eq=False)
class GroundState:
    """``p = y**2`` for the ground state ``y`` of ``-y'' + theta c y``, normalized on the line.

    ``log p = log p(0) - 2 integral r`` with ``r = -y'/y``. On the panels all is a polynomial;
    beyond them ``r = sqrt(Q) + Q' / (4 Q)``, whose relative error there is below 1e-14.
    """

    solution: Solution
    cost: PairFunction
    breakpoints: tuple[float, ...] = ()

    @property
    def theta(self) -> ScalarPair:
        """The factor of the cost in the potential."""
        return self.solution.theta

    @property
    def energy(self) -> ScalarPair:
        """The ground energy."""
        return self.solution.energy

    @property
    def mean_cost(self) -> float:
        """``E[c]``."""
        return self.solution.mean_cost

    @property
    def fisher_information(self) -> float:
        """``4 (E - theta C)``: the kinetic energy times 4."""
        ratio = _quotient(
            (self.solution.tail_cost[0][0, 0], self.solution.tail_cost[1][0, 0]),
            (self.solution.mills[0][0, 0], self.solution.mills[1][0, 0]),
        )
        potential = dd.multiply(_array(self.theta), _array(ratio))
        total = dd.add(_array(self.energy), (-potential[0], -potential[1]))
        return 4.0 * float(total[0][0])

    @cached_property
    def log_peak(self) -> ScalarPair:
        """``log p(0) = -log(2 m(0))``."""
        m = self.solution.mills
        return log_of_half_inverse(float(m[0][0, 0]), float(m[1][0, 0]))

    # -- on the panels -------------------------------------------------------------------------

    @cached_property
    def _panels(self) -> tuple[Float, Float, Float, Float, Float, Float]:
        """Arguments of the kernel but for the points."""
        mesh, found = self.solution.mesh, matrices()
        half = mesh.half
        unit = np.ldexp(1.0, np.frexp(half)[1] - 1)
        r, m = self.solution.decay, self.solution.mills
        scaled = dd.multiply(r, (half[:, None], np.zeros_like(half)[:, None]))
        whole_hi, whole_lo = _product(found.whole, scaled)
        left_hi, left_lo = _running_sums(whole_hi[:, 0], whole_lo[:, 0])
        hi, lo = _product(found.integral, scaled)
        # The polynomial vanishes at the left end by construction; what lies before comes on top.
        hi[:, 0], lo[:, 0] = dd.add((hi[:, 0], lo[:, 0]), (left_hi, left_lo))
        mills = _product(found.values, m)
        if (unit != half).any():
            hi, lo = _rescaled((hi, lo), unit, half)
            mills = _rescaled(mills, unit, half)
        return (
            mesh.edges,
            mesh.center,
            1.0 / unit,
            np.ascontiguousarray(hi),
            np.ascontiguousarray(lo[:, :_PAIR_TERMS]),
            np.ascontiguousarray(mills[0] + mills[1]),
        )

    @property
    def limit(self) -> float:
        """Right end of the panels."""
        return float(self.solution.mesh.edges[-1])

    def log_density(self, t: Float) -> dd.Pair:
        """``log p(t)`` for ``t >= 0`` as ``hi + lo``."""
        hi, lo, _, _ = core.ground_state(*self._panels, np.ascontiguousarray(t))
        peak = (np.full_like(hi, self.log_peak[0]), np.full_like(hi, self.log_peak[1]))
        hi, lo = dd.add((-2.0 * hi, -2.0 * lo), peak)
        beyond = t > self.limit
        if beyond.any():
            hi[beyond], lo[beyond] = self._far_log_density(t[beyond]), 0.0
        return hi, lo

    def log_mills(self, t: Float) -> Float:
        """``log(P(X > t) / p(t))``."""
        _, _, _, mills = core.ground_state(*self._panels, np.ascontiguousarray(t))
        beyond = t > self.limit
        if beyond.any():
            mills[beyond] = 0.5 / self._far_decay(t[beyond])
        return core.logarithm(mills)

    def score(self, t: Float) -> Float:
        """``-(log p)'(t) = 2 r``."""
        _, _, decay, _ = core.ground_state(*self._panels, np.ascontiguousarray(t))
        beyond = t > self.limit
        if beyond.any():
            decay[beyond] = self._far_decay(t[beyond])
        return 2.0 * decay

    @cached_property
    def breaks(self) -> tuple[float, ...]:
        """Breakpoints of the cost, points that grade the layers before them, and the ends of panels
        that were refined for its sake."""
        near = [b for b in self.breakpoints if b < 2.0 * self.layout.limit]
        decay = 0.5 * self.score(np.array(near))
        refined = (*self.solution.mesh.narrow.tolist(), *self.found_kinks)
        points = {*near, *layer_edges(near, decay.tolist()), *refined}
        return tuple(sorted(point for point in points if point < self.layout.limit))

    @cached_property
    def found_kinks(self) -> tuple[float, ...]:
        """Kinks of the cost that were not among its breakpoints, up to where samples reach."""
        known = np.array([0.0, *self.breakpoints])
        return tuple(
            kink
            for kink in self.solution.mesh.kinks.tolist()
            if kink < self.layout.limit and np.abs(known - kink).min() > 1e-9 * kink
        )

    @cached_property
    def layout(self) -> Layout:
        """Panels for tables: from where the cost is smooth at 0 to the depth that samples reach."""
        first = smooth_exponent(self.cost, self.theta[0], DEGREE, _FIRSTS, 2)
        # The compiler looks for quantiles up to the last power of two before the limit.
        ends = 2.0 ** np.arange(0.0, np.ceil(np.log2(self.limit)) + 1.0)
        deep = np.flatnonzero(self.log_density(ends)[0] < -_DEEPEST)
        if not deep.size:
            raise DomainError("cost must grow enough for a tail that float64 can follow")
        return Layout(first, int(deep[0]) + 1 - first)

    @cached_property
    def log_concave(self) -> bool:
        """Certificate that the score does not decrease, panel by panel.

        Where ``Q < 0`` up to the right end of a panel, ``r' = r**2 - Q > 0`` there, since the cost
        does not decrease. On the others ``r'`` is positive at samples, by more than its own slope,
        bounded from the coefficients, lets it fall between them.
        """
        _, _, inverse, integral, _, _ = self._panels
        half = self.solution.mesh.half * inverse
        order = np.arange(integral.shape[1])
        second = (order * (order - 1) * integral)[:, 2:]
        third = np.abs(order * (order - 1) * (order - 2) * integral)[:, 3:]
        bound = np.zeros_like(half)
        for column in third.T[::-1]:
            bound = bound * half + column
        # Rounding of the coefficients, 20 of them with factors up to 20 * 19.
        rounding = 2.0**-40 * np.abs(integral[:, 1])
        edges = self.solution.mesh.edges
        below = self._potential(edges[1:]) < 0.0
        far = -self.log_density(edges[:-1])[0] > _CERTIFIED
        uncertain = np.flatnonzero(~(below | far))
        for samples in _SAMPLES:
            v = half[uncertain, None] * np.linspace(-1.0, 1.0, samples)
            slope = np.zeros_like(v)
            for column in second[uncertain].T[::-1]:
                slope = slope * v + column[:, None]
            spacing = half[uncertain] / (samples - 1)
            certain = slope.min(axis=1) > spacing * bound[uncertain] + rounding[uncertain]
            uncertain = uncertain[~certain]
            if not uncertain.size:
                return True
        return False

    # -- beyond the panels -----------------------------------------------------------------------

    def _potential(self, t: Float) -> Float:
        with np.errstate(over="ignore"):
            return self.theta[0] * self.cost(t)[0] - self.energy[0]

    @cached_property
    def _far_octaves(self) -> tuple[Float, Float]:
        """Edges of octaves beyond the panels, and ``2 integral sqrt(Q)`` up to them."""
        edges = self.limit * 2.0 ** np.arange(0.0, _LAST_EXPONENT - np.log2(self.limit))
        with np.errstate(over="ignore"):
            totals = np.cumsum(_twice_root_integral(self._potential, edges[:-1], edges[1:]))
        return edges, np.concatenate([[0.0], totals])

    def _far_log_density(self, t: Float) -> Float:
        edges, totals = self._far_octaves
        octave = np.searchsorted(edges, t, side="right") - 1
        start = edges[octave]
        at_limit = self.log_density(np.array([self.limit]))[0][0]
        q_limit = self._potential(np.array([self.limit]))[0]
        with np.errstate(over="ignore", invalid="ignore"):
            depth = totals[octave] + _twice_root_integral(self._potential, start, t)
            drift = 0.5 * (np.log(self._potential(t)) - np.log(q_limit))
            value = at_limit - depth - drift
        return np.where(np.isnan(value), -np.inf, value)

    def _far_decay(self, t: Float) -> Float:
        with np.errstate(over="ignore", invalid="ignore"):
            q = self._potential(t)
            above, below = (
                self._potential(t * (1.0 + _DIFFERENCE)),
                self._potential(t * (1.0 - _DIFFERENCE)),
            )
            slope = (above - below) / (2.0 * _DIFFERENCE * t)
            correction = slope / (4.0 * q)
        root = np.sqrt(q)
        return np.where(np.isfinite(correction), root + correction, root)


def _twice_root_integral(potential: object, start: Float, end: Float) -> Float:
    half = 0.5 * (end - start)
    nodes = (start + half)[:, None] + half[:, None] * np.array(NODES)
    values = np.sqrt(potential(nodes.reshape(-1)).reshape(nodes.shape))  # type: ignore[operator]
    return np.asarray(2.0 * half * (values @ np.array(WEIGHTS)))


def _product(matrix: dd.Pair, values: dd.Pair) -> dd.Pair:
    """Rows ``matrix @ values[panel]`` for every panel, in pairs."""
    shape = (values[0].shape[0], matrix[0].shape[0])
    total = (np.zeros(shape), np.zeros(shape))
    for k in range(matrix[0].shape[1]):
        column = (matrix[0][None, :, k], matrix[1][None, :, k])
        entry = (values[0][:, k, None], values[1][:, k, None])
        total = dd.add(total, dd.multiply(column, entry))
    return total


def _running_sums(hi: Float, lo: Float) -> dd.Pair:
    """Sums of all earlier entries."""
    total = (0.0, 0.0)
    sums = []
    for a, b in zip(hi.tolist(), lo.tolist(), strict=True):
        sums.append(total)
        total = dd.add(total, (a, b))  # type: ignore[arg-type, assignment]
    array = np.array(sums)
    return array[:, 0], array[:, 1]


def _rescaled(coefficients: dd.Pair, unit: Float, half: Float) -> dd.Pair:
    """Coefficients in powers of ``v = u half / unit`` from those in powers of ``u``."""
    hi, lo = coefficients[0].copy(), coefficients[1].copy()
    ratio = dd.divide(unit, half)
    power = (np.ones_like(unit), np.zeros_like(unit))
    for k in range(1, hi.shape[1]):
        power = dd.multiply(power, ratio)
        hi[:, k], lo[:, k] = dd.multiply((hi[:, k], lo[:, k]), power)
    return hi, lo


def _array(pair: ScalarPair) -> dd.Pair:
    return np.array([pair[0]]), np.array([pair[1]])


def _quotient(a: ScalarPair, b: ScalarPair) -> ScalarPair:
    quotient = a[0] / b[0]
    product = dd.multiply((quotient, 0.0), b)  # type: ignore[arg-type]
    rest = dd.add(a, (-product[0], -product[1]))  # type: ignore[arg-type]
    return float(quotient), float(rest[0] / b[0])
