"""Masses and tails of the discrete stable law, to full relative accuracy, for any distance.

``phi(u) = exp(-f(u))``, ``f(u) = (2 scale sin(u / 2))**alpha``. Two formulas, of terms that hardly
cancel.

*A contour.* ``p(k) = Re integral of exp(i k u - f(u)) du / pi`` from 0 to pi. The integrand is
analytic on ``0 < Re u < pi``, ``Im u > 0``. The path may be moved to any other from 0 to
``pi + i infinity``, since on the line ``u = pi + i y`` both ``f`` and ``exp(i k u)`` are real and
``du`` is not. Take the path on which ``Im f(u) = k Re u``, where the integrand is positive: at each
``x = Re u`` there is one ``y = Im u``, as ``Im f`` increases from 0 to infinity with ``y``. (For
``alpha <= 1`` modulus and argument of ``sin(u / 2)`` both increase with ``y`` and the argument
stays below ``pi / 2``. For ``alpha > 1``, ``d Im f / dy = Re f'(u)``, and ``f'`` has the argument
``(alpha - 1) arg sin(u / 2) + arg cos(u / 2)``, the first in ``(0, pi / 2)``, the other in
``(-pi / 2, 0)``.) It is Zolotarev's integral of the stable laws on a circle. The same path, for
``k - 1/2``, gives ``P(X >= k) = Re integral of exp(i (k - 1/2) u - f(u)) i du / (2 sin(u / 2)) /
pi``, by the sum of a geometric series; it starts along the imaginary axis, where the pole at 0 has
no real part. In ``t = log(x / (pi - x))`` the integrand falls exponentially on the left and doubly
so on the right, and the trapezoidal rule converges geometrically.

*A series*, from afar: ``exp(-f)`` in powers of ``f``, and ``integral of (2 sin(u / 2))**(2 b)
cos(k u) du / pi = -Gamma(2 b + 1) sin(pi b) / pi * Gamma(k - b) / Gamma(k + 1 + b)``; the sum of
the last quotient over ``m >= k`` is ``Gamma(k - b) / (2 b Gamma(k + b))``.

Relative errors of masses are below 1e-13 against mpmath, of tails below 1e-8
(``tests/test_discrete_stable.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

__all__ = ["far", "log_masses", "log_tails"]

Float = NDArray[np.float64]

_Function = Callable[[Float], Float]

# Distances, in scales and in whole numbers, from which the series serves.
_FAR, _FAR_NUMBER = 400.0, 128.0
_STEP = 0.09
_CUT = 42.0  # exp(-42) is below an ulp of the sum
_MOST_TERMS = 12
_NEWTON = 60
_CHUNK = 1 << 4
# Panels of so many nodes; shorter ranges are not interpolated.
_NODES, _FEW = 24, 32


def far(scale: float) -> float:
    """From where the series serves, for indices above 1.1."""
    return max(_FAR * scale, _FAR_NUMBER)


def log_masses(alpha: float, scale: float, k: Float) -> Float:
    """``log P(X = k)`` for ``k >= 0``; between whole numbers, smooth."""
    return _either(k, far(scale), partial(_near_mass, alpha, scale), partial(_far, alpha, scale, 1))


def log_masses_between(alpha: float, scale: float, start: int, stop: int) -> Float:
    """The same for all whole numbers of a range, by interpolation in panels of a third octave."""
    k = np.arange(float(start), float(stop))
    if k.size <= _FEW:
        return log_masses(alpha, scale, k)
    edges = [float(start)]
    while edges[-1] < stop:
        edges.append(max(edges[-1] + _FEW, math.ceil(edges[-1] * 2.0 ** (1.0 / 3.0))))
    edges[-1] = float(stop)
    nodes = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    lows, highs = np.array(edges[:-1]), np.array(edges[1:])
    centers, halves = 0.5 * (lows + highs), 0.5 * (highs - lows)
    values = log_masses(alpha, scale, (centers[:, None] + halves[:, None] * nodes).ravel())
    fits = np.polynomial.chebyshev.chebvander(nodes, _NODES - 1) * (2.0 / _NODES)
    fits[:, 0] *= 0.5
    coefficients = values.reshape(-1, _NODES) @ fits
    found = np.empty_like(k)
    for low, high, center, half, row in zip(
        lows, highs, centers, halves, coefficients, strict=True
    ):
        part = slice(int(low) - start, int(high) - start)
        found[part] = np.polynomial.chebyshev.chebval((k[part] - center) / half, row)
    return found


def log_tails(alpha: float, scale: float, k: Float) -> Float:
    """``log P(X >= k)`` for whole ``k >= 1``."""
    return _either(k, far(scale), partial(_near_tail, alpha, scale), partial(_far, alpha, scale, 0))


def _either(k: Float, limit: float, near: _Function, beyond: _Function) -> Float:
    found = np.empty(k.shape)
    inside = k < limit
    found[inside], found[~inside] = near(k[inside]), beyond(k[~inside])
    return found


def _near_mass(alpha: float, scale: float, k: Float) -> Float:
    return _in_parts(k, lambda part: _contour(alpha, scale, part, tail=False))


def _near_tail(alpha: float, scale: float, k: Float) -> Float:
    return _in_parts(k - 0.5, lambda part: _contour(alpha, scale, part, tail=True))


def _in_parts(k: Float, function: _Function) -> Float:
    parts = [function(part) for part in np.array_split(k, k.size // _CHUNK + 1) if part.size]
    return np.concatenate(parts) if parts else k


def _contour(alpha: float, scale: float, k: Float, tail: bool) -> Float:
    # Where the integrand of a power tail is largest: y about 1 / k.
    cut = _CUT
    peak = np.full_like(k, -math.log(scale))
    if alpha < 2.0:
        y = 1.0 / np.maximum(k, scale)
        sine = math.sin(0.5 * math.pi * (2.0 - alpha))
        rise = sine * (2.0 * scale * np.sinh(0.5 * y)) ** alpha / np.maximum(k, scale)
        peak = np.minimum(peak, np.log(rise))
        # The angle from the imaginary axis is of the order of x**(1 - 1 / alpha).
        cut = cut / (1.0 - 1.0 / alpha) if tail else cut
    high = min(math.log(60.0) / alpha - math.log(scale), 5.0) + 1.0
    if k.min() == 0.0:
        high = _CUT  # On the real axis, to pi, where only dx / dt falls.
    count = int((high - float(peak.min()) + cut) / _STEP) + 2
    t = high - _STEP * np.arange(count)[None, :]
    x, rest = math.pi / (1.0 + np.exp(-t)), math.pi / (1.0 + np.exp(t))
    path = _Path(alpha, scale, k[:, None], x, rest)
    exponent = path.real + (np.log(x) + np.log(rest) - math.log(math.pi))  # dx / dt
    top = exponent.max(axis=1, keepdims=True)
    terms = np.exp(exponent - top)
    if tail:
        terms = terms * path.tail_weight()
    return np.asarray(top[:, 0] + np.log(terms.sum(axis=1)) + math.log(_STEP / math.pi))


class _Path:
    """The path of constant phase: the exponent on it, and ``Re(i u'(x) / (2 sin(u / 2)))``."""

    def __init__(self, alpha: float, scale: float, k: Float, x: Float, rest: Float) -> None:
        self._alpha, self._log_scale = alpha, math.log(2.0 * scale)
        self._sine, self._cosine = np.sin(0.5 * x), np.sin(0.5 * rest)
        with np.errstate(all="ignore"):
            y = self._solved(np.log(k) + np.log(x)) if k.max() > 0.0 else 0.0 * (k * x)
            y = np.where(k > 0.0, y, 0.0)
            modulus, real, imaginary, _ = self._power(y)
            exponent = -k * y - np.exp(modulus) * real
        self.real = np.where(np.isnan(exponent), -np.inf, exponent)
        self._k, self._y, self._f = k, y, (modulus, real, imaginary)

    def tail_weight(self) -> Float:
        """``Re(i u'(x) / (2 sin(u / 2)))``."""
        y, (modulus, real, imaginary) = self._y, self._f
        with np.errstate(all="ignore"):
            # f' = (alpha / 2) f cot(u / 2), and y' = (k - Im f') / Re f' on the path.
            sinh, cosh = np.sinh(0.5 * y), np.cosh(0.5 * y)
            sin_u = self._sine * cosh + 1j * self._cosine * sinh
            cos_u = self._cosine * cosh - 1j * self._sine * sinh
            slope = 0.5 * self._alpha * np.exp(modulus) * (real + 1j * imaginary) * cos_u / sin_u
            turn = (self._k - slope.imag) / slope.real
            weight = (1j * (1.0 + 1j * turn) / (2.0 * sin_u)).real
        return np.where(np.isfinite(weight), weight, 0.0)

    def _power(self, y: Float) -> tuple[Float, Float, Float, Float]:
        """``log|f|``, cosine and sine of its argument, and the argument of ``sin(u / 2)``."""
        sinh, cosh = np.sinh(0.5 * y), np.cosh(0.5 * y)
        across, along = self._sine * cosh, self._cosine * sinh
        modulus = self._alpha * (np.log(np.hypot(across, along)) + self._log_scale)
        angle = np.arctan2(along, across)
        # Near the imaginary axis by the angle to it: sin(alpha angle) may be small there.
        other = 0.5 * math.pi * (2.0 - self._alpha) + self._alpha * np.arctan2(across, along)
        steep = along > across
        real = np.where(steep, -np.cos(other), np.cos(self._alpha * angle))
        imaginary = np.where(steep, np.sin(other), np.sin(self._alpha * angle))
        return modulus, real, imaginary, angle

    def _solved(self, log_goal: Float) -> Float:
        """``y`` with ``log Im f = log(k x)``: Newton's method in ``log y``, kept in a bracket."""
        low, high = np.full(log_goal.shape, -1200.0), np.full(log_goal.shape, math.log(1300.0))
        low = np.maximum(low, -700.0)
        log_y = np.minimum(np.zeros_like(log_goal) - self._log_scale, high - 1.0)
        for _ in range(_NEWTON):
            y = np.exp(log_y)
            modulus, _, imaginary, angle = self._power(y)
            excess = modulus + np.log(imaginary) - log_goal
            low = np.where(excess < 0.0, log_y, low)
            high = np.where(excess >= 0.0, log_y, high)
            # d log|f| / dy and d arg f / dy, from f' / f = (alpha / 2) cot(u / 2).
            sinh, cosh = np.sinh(0.5 * y), np.cosh(0.5 * y)
            squares = (self._sine * cosh) ** 2 + (self._cosine * sinh) ** 2
            by_modulus = 0.5 * self._alpha * sinh * cosh / squares
            by_angle = 0.5 * self._alpha * self._sine * self._cosine / squares
            cotangent = np.cos(self._alpha * angle) / imaginary
            step = excess / (y * (by_modulus + by_angle * cotangent))
            trial = log_y - step
            inside = (trial > low) & (trial < high)
            following = np.where(inside, trial, 0.5 * (low + high))
            done = np.abs(following - log_y) <= 1e-14
            log_y = following
            if done.all():
                break
        return np.exp(log_y)


def _far(alpha: float, scale: float, one: int, k: Float) -> Float:
    """By the series: the mass, or without ``one`` the tail; ``-inf`` of a normal tail."""
    if alpha == 2.0 or k.size == 0:
        return np.full(k.shape, -math.inf)
    log_k, total = np.log(k), np.zeros_like(k)
    for j in range(1, _MOST_TERMS + 1):
        order = alpha * j
        # (-1)**(j + 1) sin(pi alpha j / 2), by the distance of alpha from 2.
        sine = math.sin(0.5 * math.pi * (2.0 - alpha) * j)
        log_size = math.lgamma(order + 1.0) - math.lgamma(j + 1.0)
        size = np.exp(log_size + order * (math.log(scale) - log_k))
        quotient = np.exp(_quotient(k, 0.5 * order, float(one)))
        total += sine / math.pi * size * quotient / (1.0 if one else order)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(total) - one * log_k)


def _quotient(k: Float, b: float, one: float) -> Float:
    """``log(k**(2 b + one) Gamma(k - b) / Gamma(k + b + one))`` by Stirling's series."""
    below, above = k - b, k + b + one
    found = (below - 0.5) * np.log1p(-b / k) - (above - 0.5) * np.log1p((b + one) / k)
    return found + (2.0 * b + one) + _stirling(below) - _stirling(above)


def _stirling(x: Float) -> Float:
    y = (1.0 / x) ** 2
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x
