"""Masses and tails of the discrete stable law, to full relative accuracy, for any distance.

``phi(u) = exp(-f(u))``, ``f(u) = (2 scale sin(u / 2))**alpha``, and ``p(k) = Re integral of
exp(i k u - f(u)) du / pi`` from 0 to pi.

*The path.* The integrand is analytic on ``0 < Re u < 2 pi``, ``Im u > 0``. On the line
``u = pi + i y`` it is real for whole k, and ``du`` is not, so that any path from 0 to that line
does. This one goes up the imaginary axis to a height Y, and from there along a ray to the line.

*Up the axis* ``f = g(y) exp(i pi alpha / 2)``, ``g = (2 scale sinh(y / 2))**alpha``, and what is
integrated is ``exp(-k y - g cos(pi alpha / 2)) sin(g sin(pi alpha / 2))``. It is positive as far as
the path goes, ``g sin(pi alpha / 2) <= pi / 2``. This is the power tail; for ``alpha = 2`` it is 0.

*Along the ray* at the angle ``phi``, ``alpha phi <= 0.3 pi``, the integrand falls like
``exp(-abs(f) cos(alpha phi))``, and with ``exp(-k y)``. For ``alpha > 1`` it starts at the saddle
point of the axis, ``k = -cos(pi alpha / 2) g'(Y)``, if that is lower. This is the bulk. Its terms
have different signs, but their moduli add up to a few times the sum.

*The tail* ``P(X >= k)`` is the same for ``k - 1/2`` with the factor ``i / (2 sin(u / 2))``, by the
sum of a geometric series; its pole at 0 has no real part on the axis, and Y is never 0.

*Nodes.* Both parts by the double exponential rule in ``r = end / (1 + exp(-pi sinh t))``, for any
singularity at their ends: 0.03 is the step at which the rule is right to rounding, and 0.02 near
``alpha = 2``, where a deep tail lies on the ray alone (0.03 leaves 4e-10 of masses of 1e-240 there,
0.025 some 1e-12). Everything is a logarithm until terms are added up, so that nothing underflows,
but for what is itself in the exponent: f, in thousands, has all its digits.

Relative errors against mpmath: below 1e-13 down to masses of 1e-250
(``tests/test_discrete_stable.py``).

*Many distances at once* are interpolated, from 32 on, where the path ends high enough for ``p`` to
be smooth between whole numbers (what is left out on the line is below ``exp(-1.6 k)`` of it): by
polynomials in k on panels of an octave, of half a scale at most in the bulk, where a normal law and
its power tail meet and ``p`` has complex zeros half a scale off. They agree with the integrals to
4e-14, and are kept.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["DiscreteStableMasses"]

Float = NDArray[np.float64]

_STEP, _LAST_NODE = 0.03, 3.3
_NEARLY_NORMAL, _FINE_STEP = 1.95, 0.02
# Integrands are cut where they are below exp(-44) of their largest value; the axis a little later.
_CUT, _AXIS_CUT, _FAR_CUT = 44.0, 55.0, 50.0
# The axis is climbed at least to g = 1/5: the ray keeps away from the singularity at 0.
_LEAST_HEIGHT = 0.2
_HIGHEST = 1400.0  # sinh does not overflow
_BISECTIONS = 48
# Points that are computed together, and from how many on they are interpolated.
_CHUNK, _MANY = 1 << 9, 1 << 12
# Panels; in units of the scale where bulk and tail meet, and where a Skellam law has no mass left.
_FEW, _NODES, _BULK, _ALL = 32.0, 24, 24.0, 80.0


class DiscreteStableMasses:
    """Logarithms of the masses and tails of one index and scale."""

    def __init__(self, alpha: float, scale: float) -> None:
        self.alpha, self.scale = alpha, scale
        self.twice, self.log_twice = 2.0 * scale, math.log(2.0 * scale)
        self.step = _STEP if alpha < _NEARLY_NORMAL else _FINE_STEP
        # By the distance from 1 or 2: to full relative accuracy.
        turn = 0.5 * math.pi * (2.0 - alpha)
        self.sine = math.sin(turn if alpha >= 1.0 else 0.5 * math.pi * alpha)
        self.cosine = math.sin(0.5 * math.pi * (1.0 - alpha)) if alpha < 1.5 else -math.cos(turn)
        self.angle = min(math.pi / 3.0, 0.3 * math.pi / alpha)
        self.lowest = self.height(_LEAST_HEIGHT)
        self.highest = _HIGHEST
        if self.sine > 0.0:
            self.highest = min(_HIGHEST, self.height(0.5 * math.pi / self.sine))
            # Where the axis may end, in units of 1 / k: it carries a share of the size of the sine.
            self.end = _FAR_CUT - math.log(self.sine)
        falls = math.cos(alpha * self.angle)
        sine = math.exp(math.log(_CUT / falls) / alpha - self.log_twice)
        self.longest = math.pi / math.cos(self.angle)
        if sine < 0.7:
            self.longest = min(self.longest, 2.6 * math.asin(sine))
        self.edges = _edges(alpha, scale)
        self.known: dict[tuple[bool, int], Float] = {}

    def log_masses(self, k: Float) -> Float:
        """``log P(X = k)`` for ``k >= 0``; beyond 32, and for large scales, smooth between them."""
        return self._in_chunks(k, False) if k.size < _MANY else self._in_parts(k, False)

    def log_tails(self, k: Float) -> Float:
        """``log P(X >= k)`` for whole ``k >= 1``; alone or among others, the same."""
        return self._in_parts(k - 0.5, True)

    def _in_parts(self, k: Float, tail: bool) -> Float:
        """The nearest numbers, of which most are asked for more than once, and the others."""
        found, near = np.empty_like(k), k < self.edges[0]
        distinct, place = np.unique(k[near], return_inverse=True)
        found[near] = self._in_chunks(distinct, tail)[place]
        found[~near] = self._interpolated(k[~near], tail)
        return found

    def _in_chunks(self, k: Float, tail: bool) -> Float:
        parts = np.array_split(k, k.size // _CHUNK + 1)
        return np.concatenate([self._integral(part, tail) for part in parts])

    def _interpolated(self, k: Float, tail: bool) -> Float:
        """By Clenshaw's recurrence, every point with the coefficients of its panel."""
        panel = np.searchsorted(self.edges, k, side="right") - 1
        used, place = np.unique(panel, return_inverse=True)
        center, half = self._panels(used)
        coefficients = self._coefficients(used, tail).T
        x = (k - center[place]) / half[place]
        one, two = np.zeros_like(x), np.zeros_like(x)
        for row in coefficients[:0:-1]:
            one, two = row[place] + 2.0 * x * one - two, one
        rest = coefficients[0][place] + x * one - two
        return np.asarray(rest - self._power(tail, center)[place] * np.log(k / center[place]))

    def _coefficients(self, panels: NDArray[np.intp], tail: bool) -> Float:
        """Of polynomials on panels, which are kept."""
        wanted = [(tail, panel) for panel in panels.tolist()]
        new = np.array([key[1] for key in wanted if key not in self.known], dtype=np.intp)
        if new.size:
            nodes = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
            center, half = (part[:, None] for part in self._panels(new))
            points = center + half * nodes
            values = self._in_chunks(points.ravel(), tail).reshape(points.shape)
            values += self._power(tail, center) * np.log(points / center)
            fits = np.polynomial.chebyshev.chebvander(nodes, _NODES - 1) * (2.0 / _NODES)
            fits[:, 0] *= 0.5
            # Only what changes within a panel is rounded in many terms.
            mean = values.mean(axis=1, keepdims=True)
            found = (values - mean) @ fits
            found[:, :1] += mean
            self.known.update(zip([(tail, panel) for panel in new.tolist()], found, strict=True))
        return np.array([self.known[key] for key in wanted]).reshape(-1, _NODES)

    def _panels(self, which: NDArray[np.intp]) -> tuple[Float, Float]:
        """Centers and half widths."""
        low, high = self.edges[which], self.edges[which + 1]
        return 0.5 * (low + high), 0.5 * (high - low)

    def _power(self, tail: bool, center: Float) -> Float:
        """Of the distance, with which masses or tails fall in the end: their product with it hardly
        changes in a panel, nor do they themselves within the scale."""
        return np.where(center > self.scale, self.alpha + (0.0 if tail else 1.0), 0.0)

    def _integral(self, k: Float, tail: bool) -> Float:
        found = np.empty_like(k)
        with np.errstate(under="ignore", over="ignore"):
            far = self.far(k)
            if far.any():
                distant = k[far][:, None]
                found[far] = _summed(_axis(self, distant, self.end / distant, tail))
            if not far.all():
                close = k[~far][:, None]
                top = self.top(k[~far])[:, None]
                parts = [_ray(self, close, top, tail)]
                if self.sine > 0.0:
                    parts.append(_axis(self, close, top, tail))
                found[~far] = _summed(*parts)
        return found

    def height(self, g: float) -> float:
        """Where ``g(y)`` is that."""
        return 2.0 * math.asinh(math.exp(math.log(g) / self.alpha - self.log_twice))

    def log_g(self, y: Float) -> Float:
        return np.asarray(self.alpha * (np.log(np.sinh(0.5 * y)) + self.log_twice))

    def slope(self, y: Float) -> Float:
        """``g'``."""
        return np.asarray(0.5 * self.alpha * np.exp(self.log_g(y)) / np.tanh(0.5 * y))

    def far(self, k: Float) -> NDArray[np.bool_]:
        """Whether the axis is all: what grows on it up to `end` is at most ``exp(2)``, so that what
        is beyond is less than ``exp(-48)`` of what is before."""
        if self.sine == 0.0:
            return np.zeros(k.shape, dtype=np.bool_)
        with np.errstate(divide="ignore", over="ignore"):
            y = np.minimum(self.end / k, _HIGHEST)
            g = np.exp(self.log_g(np.maximum(y, 1e-300)))
        return np.asarray(g * max(0.5 * abs(self.cosine), self.sine / (0.5 * math.pi)) <= 1.0)

    def top(self, k: Float) -> Float:
        """Y: to a few digits is enough."""
        if self.cosine >= 0.0:
            y = np.full(k.shape, self.highest)
        else:
            low = np.full(k.shape, math.log(self.lowest))
            high = np.full(k.shape, math.log(self.highest))
            for _ in range(_BISECTIONS):
                middle = 0.5 * (low + high)
                below = -self.cosine * self.slope(np.exp(middle)) < k
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            y = np.exp(0.5 * (low + high))
        if self.sine > 0.0:
            # Beyond, the ray is less than exp(-55) of the axis: g |cosine| is at most k y / alpha
            # up to the saddle point, and at most pi / 2 |cosine| / sine.
            cut = _AXIS_CUT - math.log(self.sine)
            reach = cut + 0.5 * math.pi * abs(self.cosine) / self.sine
            if self.alpha > 1.0:
                reach = min(reach, cut / (1.0 - 1.0 / self.alpha))
            y = np.minimum(y, reach / np.maximum(k, 1e-300))
        return np.asarray(y)


def _edges(alpha: float, scale: float) -> Float:
    """The panels, from the first number that is interpolated on. A narrow Skellam law, whose
    logarithm falls too fast for few terms, has nothing left there."""
    bulk = (_BULK if alpha < 2.0 else _ALL) * scale
    edges = [_FEW if scale >= 2.0 * _FEW else 2.0 * _FEW + bulk]
    while (low := edges[-1]) < 2.0**1001:
        edges.append(low + max(_FEW, min(low, 0.5 * scale) if low < bulk else low))
    return np.array(edges)


def _nodes(first: float, step: float) -> tuple[Float, Float]:
    """Points of the unit interval, as exponents of a share, and their weights; as logarithms."""
    count = math.ceil((first + _LAST_NODE) / step)
    t = _LAST_NODE - step * np.arange(count)
    swing = np.pi * np.sinh(t)
    log_share = -np.logaddexp(0.0, -swing)
    log_weight = log_share - np.logaddexp(0.0, swing) + np.log(np.pi * step * np.cosh(t))
    return log_share, log_weight


def _summed(*parts: tuple[Float, Float]) -> Float:
    """Logarithms of sums of terms: their moduli, as logarithms, and signs or cosines."""
    peak = np.max([sizes.max(axis=1) for sizes, _ in parts], axis=0)
    sums = [np.sum(np.exp(sizes - peak[:, None]) * signs, axis=1) for sizes, signs in parts]
    # Terms of exponents beyond 1e15 have no phase left. The largest one is the answer, to rounding.
    total = np.maximum(np.sum(sums, axis=0), 2.0**-53)
    return np.asarray(peak + np.log(total) - math.log(math.pi))


def _axis(law: DiscreteStableMasses, k: Float, top: Float, tail: bool) -> tuple[Float, Float]:
    """Logarithms of the terms on the axis, which are positive."""
    # They begin like (k y)**(1 + alpha), or (k y)**alpha, with dy / y; k Y is below exp(6).
    power = law.alpha + (0.0 if tail else 1.0)
    share, weight = _nodes(math.asinh((40.0 / power + 6.0) / math.pi), law.step)
    log_y = share + np.log(top)
    y = np.exp(log_y)
    # sinh(y / 2) of the smallest numbers, in logarithms.
    log_sinh = np.where(y < 1e-8, log_y - math.log(2.0), np.log(np.sinh(0.5 * np.maximum(y, 1e-9))))
    log_g = law.alpha * (log_sinh + law.log_twice)
    turn = np.exp(log_g) * law.sine
    log_sine = np.log(np.sin(np.maximum(turn, 1e-9)))
    log_sine = np.where(turn < 1e-9, log_g + math.log(law.sine), log_sine)
    found = -k * y - np.exp(log_g) * law.cosine + log_sine + weight + np.log(top)
    if tail:
        found = found - log_sinh - math.log(2.0)
    return found, np.ones(1)


def _ray(law: DiscreteStableMasses, k: Float, top: Float, tail: bool) -> tuple[Float, Float]:
    """Logarithms of the moduli of the terms on the ray, and cosines of their arguments."""
    # By how much exp(-k y) prevails over what the axis adds to f.
    falls = np.maximum(k - law.slope(top), 1e-300) * math.sin(law.angle)
    longest = np.minimum(_CUT / falls, law.longest)
    share, weight = _nodes(-math.asinh(-40.0 / math.pi), law.step)
    r = longest * np.exp(share)
    x, y = math.cos(law.angle) * r, top + math.sin(law.angle) * r
    real, imaginary = np.sin(0.5 * x) * np.cosh(0.5 * y), np.cos(0.5 * x) * np.sinh(0.5 * y)
    chord, turn = np.hypot(real, imaginary), np.arctan2(imaginary, real)
    size, around = (law.twice * chord) ** law.alpha, law.alpha * turn
    found = -k * y - size * np.cos(around) + weight + np.log(longest)
    phase = k * x - size * np.sin(around) + law.angle
    if tail:
        found = found - np.log(chord) - math.log(2.0)
        phase = phase + 0.5 * math.pi - turn
    return found, np.cos(phase)
