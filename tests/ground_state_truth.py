"""Ground states to 30 digits by Taylor series, for the tests: nothing in common with the package.

``y'' = (theta c - E) y`` is integrated inward from far out, where ``y`` grows and errors die,
through disks of Taylor series in mpmath; ``E`` by the secant method on ``y'(0) = 0``. Far out the
disks hold series of ``r = -y'/y`` and of the Mills ratio, which converge asymptotically there;
beyond the last one two terms of the semiclassical series go on.
"""

from __future__ import annotations

import functools
import math
import operator

import mpmath
import numpy as np
from mpmath import mp, mpf

_TERMS = 56
_RATIO = mpf(3) / 4
_DIGITS = 40
# Series of r from this value of x sqrt(Q) on, and how often they are iterated; before, disks of y
# reach over this many decay lengths.
_ASYMPTOTIC = 60
_ITERATIONS = 16
_DECAY_LENGTHS = 4
_BITS = 240


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


def value(coefficients, step):
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * step + coefficient
    return total


def _slope(coefficients, step):
    return value([k * coefficients[k] for k in range(1, len(coefficients))], step)


def _root(q):
    """Series of the square root."""
    root = [mpmath.sqrt(q[0])]
    for k in range(1, len(q)):
        inner = mpmath.fdot(zip(root[1:], root[:0:-1], strict=True)) if k > 1 else mpf(0)
        root.append((q[k] - inner) / (2 * root[0]))
    return root


def _quotient(a, b):
    quotient = []
    for k in range(min(len(a), len(b))):
        known = mpmath.fdot(zip(quotient, b[k:0:-1], strict=True))
        quotient.append((a[k] - known) / b[0])
    return quotient


def _derivative(a):
    return [k * a[k] for k in range(1, len(a))]


def _primitive(a):
    return [mpf(0)] + [c / (k + 1) for k, c in enumerate(a)]


def _fixed(value, exponent=0):
    """``value * 2**exponent`` in multiples of ``2**-_BITS``: sums of integers are fast."""
    return int(mpmath.ldexp(value, _BITS + exponent))


def _fixed_product(a, b, k):
    """Coefficient k of the product of two series of such multiples."""
    return sum(map(operator.mul, a[: k + 1], b[k::-1])) >> _BITS


class _Oscillator:
    """A disk of the series of ``y`` itself, in units of a length that all coefficients fit."""

    def __init__(self, center, potential, decay):
        self.center = center
        length = min(center / 2, _DECAY_LENGTHS / mpmath.sqrt(abs(potential[0])))
        self._unit = math.floor(mpmath.log(length, 2))
        q = [_fixed(c, (k + 2) * self._unit) for k, c in enumerate(potential)]
        y = [_fixed(1), _fixed(-decay, self._unit)]
        for k in range(_TERMS - 2):
            y.append(_fixed_product(q, y, k) // ((k + 1) * (k + 2)))
        self._scaled, self.y = y, self._of_x(y)

    def _of_x(self, scaled):
        return [mpmath.ldexp(c, -_BITS - k * self._unit) for k, c in enumerate(scaled)]

    @functools.cached_property
    def mass(self):
        y = self._scaled
        return _primitive(self._of_x([_fixed_product(y, y, k) for k in range(_TERMS)]))

    def log_square(self, x):
        return 2 * mpmath.log(value(self.y, x - self.center))

    def decay(self, x):
        return -_slope(self.y, x - self.center) / value(self.y, x - self.center)

    def mass_between(self, a, b):
        return value(self.mass, b - self.center) - value(self.mass, a - self.center)


class _Tail:
    """A disk far out, where ``r = sqrt(Q + r')`` and ``m = (1 + m') / (2 r)`` converge
    asymptotically as series."""

    def __init__(self, center, potential):
        self.center = center
        r = _root(potential)
        for _ in range(_ITERATIONS):
            slope = _derivative(r)
            r = _root([q + d for q, d in zip(potential, slope, strict=False)])
        m = _quotient([mpf(1) / 2] + [mpf(0)] * (len(r) - 1), r)
        for _ in range(_ITERATIONS):
            slope = _derivative(m)
            m = _quotient([(mpf(1 if k == 0 else 0) + d) / 2 for k, d in enumerate(slope)], r)
        self.r, self.m, self.depth = r, m, _primitive(r)

    def log_square(self, x):
        return -2 * value(self.depth, x - self.center)

    def decay(self, x):
        return value(self.r, x - self.center)

    def mills(self, x):
        return value(self.m, x - self.center)


class Truth:
    """Density, tail and score of ``y**2`` on ``x >= 0``."""

    def __init__(self, cost, series, depth, theta, guess, reach):
        self.cost, self.series, self.depth, self.theta = cost, series, depth, mpf(theta)
        self._disks_for(mpf(guess), reach)
        self.energy = self._secant(mpf(guess), mpf(guess) * (1 + mpf(10) ** -8))
        self._integrate(self.energy)
        self._normalize()

    def _disks_for(self, energy, reach):
        """Centers: a quarter of the way to 0 apart, and not more than a few decay lengths where the
        series of y are used; series of r from where 1 / (x r) is small."""
        centers, switch = [mpf("1e-16")], None
        while centers[-1] < reach:
            x = centers[-1]
            q = self.theta * self.cost(x) - energy
            tail = q > 0 and x * mpmath.sqrt(q) > _ASYMPTOTIC
            step = x * (1 / _RATIO - 1)
            if switch is None and q > 0:
                step = min(step, _DECAY_LENGTHS / mpmath.sqrt(q))
            if tail and switch is None:
                switch = len(centers)
            centers.append(x + step)
        self.centers, self.switch = centers, switch
        self.costs = [self.series(center, _TERMS) for center in centers]

    def _potential(self, i, energy):
        potential = [self.theta * c for c in self.costs[i]]
        potential[0] -= energy
        return potential

    def _secant(self, before, now):
        miss_before = self._slope_at_zero(before)
        # What is left after a step is about its product with the one before.
        while abs(now - before) > mpf(10) ** (-_DIGITS // 2) * now:
            miss = self._slope_at_zero(now)
            after = now - miss * (now - before) / (miss - miss_before)
            before, now, miss_before = now, after, miss
        return now

    def _integrate(self, energy):
        """Inner disks from the first of the tail inward."""
        self.tail = _Tail(self.centers[self.switch], self._potential(self.switch, energy))
        outer, disks = self.tail, []
        for i in range(self.switch - 1, -1, -1):
            center = self.centers[i]
            outer = _Oscillator(center, self._potential(i, energy), outer.decay(center))
            disks.append(outer)
        self.disks = disks[::-1]

    def _slope_at_zero(self, energy):
        self._integrate(energy)
        # One step of the Riccati equation over the last 1e-16, where r = E x.
        x = self.centers[0]
        return self.disks[0].decay(x) - (energy - self.theta * self.cost(x)) * x

    def _normalize(self):
        for i in range(self.switch + 1, len(self.centers)):
            self.disks.append(_Tail(self.centers[i], self._potential(i, self.energy)))
        self.disks.insert(self.switch, self.tail)
        # Point i is where disk i hands over to disk i + 1.
        self.edges = [mpf(0)]
        for low, high in zip(self.centers[:-1], self.centers[1:], strict=True):
            self.edges.append(self._edge(low, high))
        self._float_edges = np.array([float(edge) for edge in self.edges])
        # Logarithms of y^2 at the edges, 0 at 0.
        self.logs = [mpf(0)]
        for disk, a, b in zip(self.disks, self.edges[:-1], self.edges[1:], strict=False):
            self.logs.append(self.logs[-1] + disk.log_square(b) - disk.log_square(a))
        # Masses beyond the inner edges, in units of y(0)^2.
        edge = self.edges[self.switch]
        beyond = self.tail.mills(edge) * mpmath.exp(self.logs[self.switch])
        self.beyond = [beyond]
        for i in range(self.switch - 1, -1, -1):
            self.beyond.append(self.beyond[-1] + self._mass(i, self.edges[i], self.edges[i + 1]))
        self.beyond.reverse()
        self.log_peak = -mpmath.log(2 * self.beyond[0])

    def _edge(self, low, high):
        """Where a disk hands over to the next one."""
        return (low + high) / 2

    def _mass(self, i, a, b):
        disk = self.disks[i]
        unit = mpmath.exp(self.logs[i] - disk.log_square(self.edges[i]))
        return unit * disk.mass_between(a, b)

    def _disk(self, x):
        return max(int(np.searchsorted(self._float_edges, float(x), side="right")) - 1, 0)

    def log_density(self, x):
        x = mpf(x)
        return self._far(x) if x > self.centers[-1] else self._near(x)

    def _near(self, x):
        i = self._disk(x)
        disk = self.disks[i]
        change = disk.log_square(x) - disk.log_square(self.edges[i])
        return self.log_peak + self.logs[i] + change

    def survival(self, x):
        x = mpf(x)
        if x > self.centers[-1]:
            q = self.theta * self.cost(x) - self.energy
            return mpmath.exp(self._far(x)) / (2 * mpmath.sqrt(q))
        i = self._disk(x)
        if i >= self.switch:
            return mpmath.exp(self.log_density(x)) * self.disks[i].mills(x)
        inner = self._mass(i, x, self.edges[i + 1])
        return mpmath.exp(self.log_peak) * (inner + self.beyond[i + 1])

    def score(self, x):
        return 2 * self.disks[self._disk(x)].decay(mpf(x))

    def _far(self, x):
        """Two terms of the semiclassical series from the last disk."""
        start = self.centers[-1]

        def log_q(point):
            return mpmath.log(self.theta * self.cost(point) - self.energy)

        depth = self.depth(x, self.theta, self.energy) - self.depth(start, self.theta, self.energy)
        return self._near(start) - 2 * depth - (log_q(x) - log_q(start)) / 2


def _power_depth(p):
    """An antiderivative of ``sqrt(theta x**p - E)``, by the binomial series in ``E``."""
    p = mpf(p)

    def depth(x, theta, energy):
        terms = (
            mpmath.binomial(mpf(1) / 2, j)
            * (-energy / theta) ** j
            * x ** (1 + p / 2 - p * j)
            / (1 + p / 2 - p * j)
            for j in range(40)
        )
        return mpmath.sqrt(theta) * mpmath.fsum(terms)

    return depth


def _log_depth(unit):
    """An antiderivative of ``sqrt(theta log(1 + unit x) - E)``, with the error function."""
    unit = mpf(unit)

    def depth(x, theta, energy):
        w = mpmath.log1p(unit * x) - energy / theta
        root = mpmath.sqrt(w)
        inner = root * mpmath.exp(w) - mpmath.sqrt(mpmath.pi) / 2 * mpmath.erfi(root)
        return mpmath.sqrt(theta) * mpmath.exp(energy / theta) / unit * inner

    return depth


@functools.cache
def power_truth(p, theta, guess, reach):
    """The ground state of ``theta |x|**p``."""
    with mp.workdps(_DIGITS):
        exponent = mpf(p)
        return Truth(
            lambda x: mpf(x) ** exponent, power_series(p), _power_depth(p), theta, guess, reach
        )


@functools.cache
def log_truth(unit, theta, guess, reach):
    """The ground state of ``theta log(1 + unit |x|)``."""
    with mp.workdps(_DIGITS):
        scale = mpf(unit)
        return Truth(
            lambda x: mpmath.log1p(scale * x),
            log_series(unit),
            _log_depth(unit),
            theta,
            guess,
            reach,
        )


class Rescaled:
    """The law of ``X / sigma``."""

    def __init__(self, truth, sigma):
        self.truth, self.sigma = truth, sigma

    def log_density(self, t):
        return self.truth.log_density(self.sigma * t) + mpmath.log(self.sigma)

    def survival(self, t):
        return self.truth.survival(self.sigma * t)


@functools.cache
def unit_power_truth(p, guess, reach):
    """The ground state of ``|x|**p`` with mean cost 1: ``C = 2 E/(2 + p)`` (virial theorem)."""
    truth = power_truth(p, 1.0, guess, reach)
    with mp.workdps(_DIGITS):
        return Rescaled(truth, (2 * truth.energy / (2 + mpf(p))) ** (1 / mpf(p)))
