"""Ground states of any cost in mpmath: pieces of Taylor series, Airy functions, entire functions.

Nothing in common with the package. `oracle_of` has one for each kind of cost that is tried.
"""

from __future__ import annotations

import mpmath
from mpmath import mpf

import ground_state_truth as taylor

_DIGITS = 40


def straight_truth(points, theta, guess):
    """Cosine or Airy functions between the points of a table: the energy, the density, and tails.

    Masses by ``(Q y**2 - y'**2)' = Q' y**2``, and where ``Q' = 0`` by
    ``(x (y'**2 - Q y**2) - y y')' = -2 Q y**2``.
    """
    theta = mpf(theta)
    x = [mpf(a) for a, _ in points]
    c = [mpf(b) for _, b in points]
    slopes = [(c[i + 1] - c[i]) / (x[i + 1] - x[i]) for i in range(len(x) - 1)]

    def basis(i, at, energy):
        """Two solutions and their slopes."""
        slope = theta * slopes[i]
        if slope == 0:
            k = mpmath.sqrt(energy - theta * c[i])
            z = k * (at - x[i])
            return mpmath.cos(z), -k * mpmath.sin(z), mpmath.sin(z), k * mpmath.cos(z)
        k = mpmath.cbrt(slope)
        z = k * (at - x[i]) + (theta * c[i] - energy) / k**2
        a, b = mpmath.airyai(z), mpmath.airybi(z)
        return a, k * mpmath.airyai(z, derivative=1), b, k * mpmath.airybi(z, derivative=1)

    def solved(energy):
        """Coefficients in each piece, from the last inward."""
        found = [(mpf(1), mpf(0))]
        for i in range(len(slopes) - 2, -1, -1):
            a, da, b, db = basis(i + 1, x[i + 1], energy)
            y = found[0][0] * a + found[0][1] * b
            dy = found[0][0] * da + found[0][1] * db
            a, da, b, db = basis(i, x[i + 1], energy)
            det = a * db - b * da
            found.insert(0, ((y * db - dy * b) / det, (dy * a - y * da) / det))
        return found

    def solution(i, at, energy, found):
        a, da, b, db = basis(i, at, energy)
        return found[i][0] * a + found[i][1] * b, found[i][0] * da + found[i][1] * db

    guess = mpf(guess)
    energy = mpmath.findroot(
        lambda e: solution(0, mpf(0), e, solved(e))[1],
        (guess, guess * (1 + mpf(10) ** -9)),
        tol=1e-90,
        # The solution is 1 far out, and enormous at 0.
        verify=False,
    )
    found = solved(energy)

    def mass(i, low, high):
        """The integral of y**2 inside a piece; ``high`` may be infinite."""

        def primitive(at):
            y, dy = solution(i, at, energy, found)
            q = theta * (c[i] + slopes[i] * (at - x[i])) - energy
            if slopes[i] == 0:
                return (at * (dy**2 - q * y**2) - y * dy) / (-2 * q)
            return (q * y**2 - dy**2) / (theta * slopes[i])

        return (0 if high == mpmath.inf else primitive(high)) - primitive(low)

    ends = [*x[:-1], mpmath.inf]

    def piece(at):
        return max(i for i in range(len(slopes)) if ends[i] <= at)

    def tail(at):
        i = piece(at)
        total = mass(i, at, ends[i + 1])
        return total + sum(mass(j, ends[j], ends[j + 1]) for j in range(i + 1, len(slopes)))

    whole = 2 * tail(mpf(0))
    return (
        energy,
        lambda at: solution(piece(mpf(at)), mpf(at), energy, found)[0] ** 2 / whole,
        lambda at: tail(mpf(at)) / whole,
    )


def log_cosh_series(x0, terms):
    """Taylor coefficients of ``log(cosh(x))``, by those of its slope ``t`` with t' = 1 - t**2."""
    tanh = [mpmath.tanh(x0)]
    for k in range(terms):
        square = mpmath.fdot(zip(tanh, tanh[::-1], strict=True))
        tanh.append(((1 if k == 0 else 0) - square) / (k + 1))
    return [mpmath.log(mpmath.cosh(x0)), *(tanh[k] / (k + 1) for k in range(terms - 1))]


def entire(p, energy, terms):
    """Taylor coefficients at 0 of the even solution of ``y'' = (x**p - E) y``, p even."""
    a = [mpf(1), mpf(0)]
    for k in range(terms):
        a.append(((a[k - p] if k >= p else 0) - energy * a[k]) / ((k + 1) * (k + 2)))
    return a


def polynomial(*coefficients):
    """Taylor coefficients of ``c0 + c1 x + c2 x**2``."""
    c0, c1, c2 = (mpf(c) for c in (*coefficients, 0, 0, 0)[:3])

    def series(x0, terms):
        return [c0 + c1 * x0 + c2 * x0**2, c1 + 2 * c2 * x0, c2, *[mpf(0)] * (terms - 3)]

    return series


def whole_power(p):
    return lambda x0, terms: [
        mpmath.binomial(p, k) * x0 ** (p - k) if k <= p else mpf(0) for k in range(terms)
    ]


def total(*several):
    return lambda x0, terms: [
        sum(c, mpf(0)) for c in zip(*(s(x0, terms) for s in several), strict=True)
    ]


def wide_log_cosh(scale, weight):
    k, w = mpf(scale), mpf(weight)
    return lambda x0, terms: [w * c / k**i for i, c in enumerate(log_cosh_series(x0 / k, terms))]


def step_series(width):
    """Of ``x + (tanh((x - 2) / (2 width)) + tanh(1 / width)) / 2``."""
    unit = 2 * mpf(width)

    def series(x0, terms):
        tanh = [mpmath.tanh((x0 - 2) / unit)]
        for k in range(terms):
            square = mpmath.fdot(zip(tanh, tanh[::-1], strict=True))
            tanh.append(((1 if k == 0 else 0) - square) / (k + 1))
        found = [c / unit**i / 2 for i, c in enumerate(tanh[:terms])]
        found[0] += x0 + mpmath.tanh(1 / mpf(width)) / 2
        found[1] += 1
        return found

    return series


class Pieces(taylor.Truth):
    """A cost of pieces: disks of the series begin at its kinks, and end there.

    Parameters
    ----------
    radius : callable, optional
        Distance from a point to the nearest one where the cost is singular, off the real line.
    """

    def __init__(self, kinks, pieces, theta, guess, reach, radius=None):
        self.kinks, self.pieces, self.radius = [mpf(k) for k in kinks], pieces, radius
        super().__init__(lambda x: self.piece(x)(x, 3)[0], None, None, theta, guess, reach)

    def piece(self, x):
        return self.pieces[sum(x > k for k in self.kinks)]

    def _disks_for(self, energy, reach):
        centers, switch = [mpf("1e-20") * mpf(reach)], None
        while centers[-1] < reach or switch is None:
            x = centers[-1]
            q = self.theta * self.piece(x)(x, 3)[0] - energy
            ahead = [k for k in self.kinks if k > x]
            # The series of the tail needs room, but none from what is too far to matter.
            free = x - (self.kinks[-1] if self.kinks and not ahead else 0)
            if self.radius is not None:
                free = min(free, self.radius(x))
            deep = q > 0 and free * mpmath.sqrt(q) > 60
            step = x / 3
            if switch is None:
                step = min(step, 4 / mpmath.sqrt(abs(q) + max(energy, 0)))
            if self.radius is not None:
                step = min(step, self.radius(x) / 3)
            if switch is None and deep and (not ahead or x > reach):
                switch = len(centers)
            after = x + step
            centers.append(ahead[0] if ahead and after >= ahead[0] - step / 50 else after)
        self.centers, self.switch = centers, switch
        self.costs = [self.piece(center)(center, taylor._TERMS) for center in centers]

    def _edge(self, low, high):
        return low if low in self.kinks else (low + high) / 2


_FINE = 600


class Steep:
    """The ground state of ``theta x**p`` with p even, by scaling that of theta = 1."""

    def __init__(self, p, end, theta, guess):
        unit = mpf(theta) ** (mpf(1) / (p + 2))
        self.unit, self.end = unit, mpf(end)
        guess = mpf(guess) / unit**2
        root = mpmath.findroot(
            lambda e: taylor.value(entire(p, e, 3000), self.end),
            (guess, guess * (1 + mpf(10) ** -8)),
            tol=1e-80,
        )
        # In units of the end and multiples of 2**-_FINE: Horner's rule in integers.
        series = enumerate(entire(p, root, 3000)[::2])
        self.series = [int(mpmath.ldexp(a * self.end ** (2 * k), _FINE)) for k, a in series]
        self.energy = root * unit**2
        self.whole = 2 * self._mass(mpf(0))

    def _square(self, t):
        step, total = int(mpmath.ldexp((t / self.end) ** 2, _FINE)), 0
        for coefficient in reversed(self.series):
            total = (total * step >> _FINE) + coefficient
        return mpmath.ldexp(total, -_FINE) ** 2

    def _mass(self, t):
        points = mpmath.linspace(t, self.end, 5)
        return mpmath.quad(self._square, points, method="gauss-legendre", maxdegree=4)

    def density(self, x):
        return self._square(mpf(x) * self.unit) * self.unit / self.whole

    def survival(self, x):
        return self._mass(mpf(x) * self.unit) / self.whole


class Known:
    """An energy, a density and a survival function."""

    def __init__(self, energy, density, survival):
        self.energy, self.density, self.survival = energy, density, survival


def _log_meets_square():
    """Where ``log(1 + x) = x**2 / 10``."""
    return [mpmath.findroot(lambda x: mpmath.log1p(x) - mpf(0.1) * x**2, (mpf(3), mpf(6)))]


def _zone(start):
    return (0, 0), (start, 0), (start + 1, 1)


_BENT = ((0, 0), (1, 1), (2, 7))
_TABLE = ((0, 0), (0.3, 0.1), (1, 1), (1.01, 1.5), (40, 50))
_OTHER = ((0, 0), (1, 1), (2, 1.5), (5, 6), (6, 8))
STRAIGHT = {
    "hinge": _BENT,
    "hinge, not declared": _BENT,
    "dead zone": _zone(3),
    "dead zone, narrow": ((0, 0), (0.01, 0), (1, mpf(1) - mpf(0.01))),
    "dead zone, wide": _zone(100),
    "dead zone, not declared": _zone(3),
    "dead zone, between edges": ((0, 0), (2.9, 0), (4, mpf(4) - mpf(2.9))),
    "table": _TABLE,
    "table, not declared": _OTHER,
    "table, declared": _OTHER,
}
_HUBER = [1], [polynomial(0, 0, 0.5), polynomial(-0.5, 1)]
PIECES = {
    "max of powers": ([1], [polynomial(0, 1), polynomial(0, 0, 1)]),
    "max far apart": ([1], [taylor.power_series(0.5), whole_power(3)]),
    "max of three": (
        [4, mpf(0.5) / mpf(0.01)],
        [taylor.power_series(0.5), polynomial(0, 0.5), polynomial(0, 0, 0.01)],
    ),
    "max with log": (_log_meets_square, [taylor.log_series(1), polynomial(0, 0, 0.1)]),
    "sum": ([], [total(polynomial(0, 1), taylor.log_series(1), whole_power(3))]),
    "dead zone, squared": ([1], [polynomial(), polynomial(1, -2, 1)]),
    "Huber": _HUBER,
    "Huber, not declared": _HUBER,
    "Huber, wide": ([30], [polynomial(0, 0, 1.5), polynomial(-1350, 90)]),
    "log-cosh": ([], [wide_log_cosh(3, 0.2)]),
    "log-cosh that rounds": ([], [wide_log_cosh(1, 1)]),
    "log-cosh that overflows": ([], [wide_log_cosh(1, 1)]),
    "step": ([], [step_series(0.1)], 0.1),
    "sharp step": ([], [step_series(0.001)], 0.001),
    "power 0.05": ([], [taylor.power_series(0.05)]),
    "power 0.3": ([], [taylor.power_series(0.3)]),
    "power 7.7": ([], [taylor.power_series(7.7)]),
}
STEEP = {"power 14": (14, 2.2), "power 20 as a function": (20, 1.8), "power 30": (30, 1.48)}


def oracle_of(kind, law, far):
    """What a law of a kind of cost must be, up to beyond ``far``; in 40 digits or more."""
    if kind in STRAIGHT:
        return Known(*straight_truth(STRAIGHT[kind], law.theta, law.ground_energy))
    if kind in STEEP:
        return Steep(*STEEP[kind], law.theta, law.ground_energy)
    kinks, pieces, *widths = PIECES[kind]

    def radius(x):
        return mpmath.sqrt((x - 2) ** 2 + (mpmath.pi * mpf(widths[0])) ** 2)

    truth = Pieces(
        kinks() if callable(kinks) else kinks,
        pieces,
        law.theta,
        law.ground_energy,
        2.5 * far,
        radius if widths else None,
    )
    return Known(truth.energy, lambda x: mpmath.exp(truth.log_density(x)), truth.survival)
