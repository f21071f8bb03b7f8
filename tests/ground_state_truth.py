"""Ground states to 30 digits by Taylor series, for the tests: nothing in common with the package.

``y'' = (theta c - E) y`` is integrated inward from far out, where ``y`` grows and errors die, through
disks of Taylor series in mpmath; ``E`` by the secant method on ``y'(0) = 0``. Far out, where steps
would be too many, the semiclassical integral takes over, continued from a matching point.
"""

from __future__ import annotations

import functools

import mpmath
import numpy as np
from mpmath import mp, mpf

_TERMS = 56
_RATIO = mpf(3) / 4
_DIGITS = 40


def power_series(p):
    """Taylor coefficients of ``x**p`` around ``x0 > 0``."""
    p = mpf(p)

    def series(x0, terms):
        coefficients = [x0**p]
        for k in range(1, terms):
            coefficients.append(coefficients[-1] * (p - k + 1) / k / x0)
        return coefficients

    return series


def log_series(unit):
    """Taylor coefficients of ``log(1 + unit * x)``."""
    unit = mpf(unit)

    def series(x0, terms):
        step = unit / (1 + unit * x0)
        coefficients = [mpmath.log1p(unit * x0)]
        factor = -mpf(1)
        for k in range(1, terms):
            factor = -factor * step
            coefficients.append(factor / k)
        return coefficients

    return series


class Truth:
    """Density, tail and score of ``y**2`` on ``x >= 0``."""

    def __init__(self, cost, series, theta, guess, *, reach, first="1e-14"):
        with mp.workdps(_DIGITS):
            self.cost, self.series, self.theta = cost, series, mpf(theta)
            centers = [mpf(first)]
            while centers[-1] < reach:
                centers.append(centers[-1] / _RATIO)
            # Every disk serves the points between its neighbors' centers.
            self.costs = [series(center, _TERMS) for center in centers]
            self.centers = centers
            self.energy = mpmath.findroot(
                self._slope_at_zero, (mpf(guess), mpf(guess) * (1 + mpf(10) ** -8)), tol=1e-60
            )
            self._integrate(self.energy)
            self._normalize()

    def _integrate(self, energy):
        """Coefficients of y in every disk, each scaled to y = 1 at its center, and log scales."""
        far = self.centers[-1]
        q = self.theta * self.costs[-1][0] - energy
        value, slope, log_scale = mpf(1), -mpmath.sqrt(q), mpf(0)
        disks, scales = [], []
        for i in range(len(self.centers) - 1, -1, -1):
            a = [mpf(1), slope / value]
            log_scale += mpmath.log(value)
            potential = [self.theta * c for c in self.costs[i]]
            potential[0] -= energy
            for k in range(_TERMS - 2):
                total = mpmath.fdot(zip(potential[: k + 1], a[k::-1], strict=True))
                a.append(total / ((k + 1) * (k + 2)))
            disks.append(a)
            scales.append(log_scale)
            if i:
                step = self.centers[i - 1] - self.centers[i]
                value = mpmath.polyval(a[::-1], step)
                slope = mpmath.polyval([k * a[k] for k in range(_TERMS - 1, 0, -1)], step)
        self.disks, self.scales = disks[::-1], scales[::-1]
        assert far == self.centers[-1]

    def _slope_at_zero(self, energy):
        self._integrate(energy)
        # One step of the Riccati equation over the last 1e-14: r = E x there.
        x = self.centers[0]
        return -self.disks[0][1] - (energy * x - self.theta * self.cost(x) * x)

    def _normalize(self):
        self.edges = [mpf(0)]
        for low, high in zip(self.centers[:-1], self.centers[1:], strict=True):
            self.edges.append((low + high) / 2)
        self.edges.append(self.centers[-1])
        self.squares = []
        tails = [mpf(0)]
        for i in range(len(self.centers) - 1, -1, -1):
            a = self.disks[i]
            square = [
                mpmath.fdot(zip(a[: k + 1], a[k::-1], strict=True)) for k in range(_TERMS)
            ]
            primitive = [mpf(0)] + [c / (k + 1) for k, c in enumerate(square)]
            self.squares.append(primitive)
            weight = mpmath.exp(2 * (self.scales[i] - self.scales[0]))
            tails.append(tails[-1] + weight * self._piece(primitive, i, self.edges[i]))
        self.squares.reverse()
        self.tails = tails[:0:-1]
        self.log_peak = -mpmath.log(2 * self.tails[0])

    def _piece(self, primitive, i, start):
        end = mpmath.polyval(primitive[::-1], self.edges[i + 1] - self.centers[i])
        return end - mpmath.polyval(primitive[::-1], start - self.centers[i])

    def _disk(self, x):
        return min(
            max(int(np.searchsorted(self._float_edges, float(x), side="right")) - 1, 0),
            len(self.centers) - 1,
        )

    @functools.cached_property
    def _float_edges(self):
        return np.array([float(edge) for edge in self.edges])

    def log_density(self, x):
        x = mpf(x)
        if x > self.centers[-2]:
            return self._far(x)
        i = self._disk(x)
        y = mpmath.polyval(self.disks[i][::-1], x - self.centers[i])
        return self.log_peak + 2 * (mpmath.log(y) + self.scales[i] - self.scales[0])

    def survival(self, x):
        x = mpf(x)
        if x > self.centers[-2]:
            q = self.theta * self.cost(x) - self.energy
            return mpmath.exp(self._far(x)) / (2 * mpmath.sqrt(q))
        i = self._disk(x)
        weight = mpmath.exp(2 * (self.scales[i] - self.scales[0]))
        after = self.tails[i + 1] if i + 1 < len(self.tails) else mpf(0)
        total = weight * self._piece(self.squares[i], i, x) + after
        return total * mpmath.exp(self.log_peak)

    def score(self, x):
        i = self._disk(x)
        a, s = self.disks[i], mpf(x) - self.centers[i]
        slope = mpmath.polyval([k * a[k] for k in range(_TERMS - 1, 0, -1)], s)
        return -2 * slope / mpmath.polyval(a[::-1], s)

    def _far(self, x):
        """Two terms of the semiclassical series from the last disk but one."""
        start = self.centers[-2] * (1 - mpf(10) ** -9)
        at_start = self.log_density(start)

        def q(point):
            return self.theta * self.cost(point) - self.energy

        octaves = int(mpmath.ceil(mpmath.log(x / start, 2)))
        edges = [start * (x / start) ** (mpf(k) / max(octaves // 8, 1)) for k in range(max(octaves // 8, 1) + 1)]
        logs = [mpmath.log(edge) for edge in edges]
        depth = mpmath.quad(lambda u: mpmath.sqrt(q(mpmath.exp(u))) * mpmath.exp(u), logs)
        return at_start - 2 * depth - (mpmath.log(q(x)) - mpmath.log(q(start))) / 2


@functools.cache
def power_truth(p, theta, guess, reach):
    """The ground state of ``theta |x|**p``."""
    return Truth(lambda x: mpf(x) ** mpf(p), power_series(p), theta, guess, reach=reach)


@functools.cache
def log_truth(unit, theta, guess, reach):
    """The ground state of ``theta log(1 + unit |x|)``."""
    scale = mpf(unit)
    return Truth(lambda x: mpmath.log1p(scale * x), log_series(unit), theta, guess, reach=reach)
