"""Standardized symmetric stable laws: closed forms at alpha = 1 and 2, one form for the rest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np

from psinoise._backend import core
from psinoise.compile import LAYOUT, FarTail, Layout
from psinoise.compile.quantiles import LOG2_HI, LOG2_LO
from psinoise.noise._base import Float
from psinoise.noise._elementary import constant, logarithm_pair, minus
from psinoise.noise._stable_integral import MINUS_LOG_PI, Integral
from psinoise.noise._stable_series import series
from psinoise.noise.gaussian import Gaussian
from psinoise.numerics import double_double as dd
from psinoise.numerics.trigonometric import arctangent

__all__ = ["Form", "form"]

_MINUS_LOG2 = minus(constant(LOG2_HI, LOG2_LO))
_LOG_SQRT2 = 0.5 * LOG2_HI, 0.5 * LOG2_LO
# sqrt(1/2) = 0.70710678118654752440084436210484903928
_ROOT_HALF = (0.7071067811865476, -4.833646656726457e-17)
_GAUSSIAN = Gaussian(std=1.0)


class Form(ABC):
    """Formulas of one standardized law for ``t >= 0``; members as in `compile.HalfLaw`."""

    layout: Layout = LAYOUT
    costly: bool = False
    fit_tolerance: float = 4e-15
    far_tail: FarTail | None = None

    @abstractmethod
    def log_density(self, t: Float) -> dd.Pair:
        """``log p(t)``."""

    @abstractmethod
    def log_mills(self, t: Float) -> Float:
        """``log(P(Y > t) / p(t))``."""

    @abstractmethod
    def score(self, t: Float) -> Float:
        """``-(log p)'(t)``."""

    def log_survival(self, t: Float) -> dd.Pair:
        """``log P(Y > t)``."""
        return dd.add(self.log_density(t), (self.log_mills(t), np.zeros_like(t)))


class _Normal(Form):
    """alpha = 2: variance 2."""

    def log_density(self, t: Float) -> dd.Pair:
        scaled, rest = _times_root_half(t)
        hi, lo = _GAUSSIAN.log_density(scaled)
        # What the product leaves moves log p by the score times itself; huge points have no pair.
        moderate = t < 2.0**500
        shift = np.where(moderate, scaled, 0.0) * np.where(moderate, rest, 0.0)
        near = dd.add(
            (np.where(moderate, hi, 0.0), np.where(moderate, lo, 0.0)),
            (np.full_like(t, -_LOG_SQRT2[0]), -_LOG_SQRT2[1] - shift),
        )
        return np.where(moderate, near[0], hi), np.where(moderate, near[1], 0.0)

    def log_mills(self, t: Float) -> Float:
        return _GAUSSIAN.log_mills(_times_root_half(t)[0]) + _LOG_SQRT2[0]

    def score(self, t: Float) -> Float:
        return 0.5 * t


class _Cauchy(Form):
    """alpha = 1: ``1 / (pi (1 + t**2))``."""

    def __init__(self) -> None:
        self.far_tail = FarTail(8.0, self._far_quantile)

    def log_density(self, t: Float) -> dd.Pair:
        u, log_t = _beyond_one(t)
        rest = core.log_one_plus(np.ascontiguousarray(u * u))
        doubled = dd.add(_minus_log_pi(t), (-rest, 0.0 * rest))
        return dd.add((-2.0 * log_t[0], -2.0 * log_t[1]), doubled)

    def log_mills(self, t: Float) -> Float:
        angle, log_t = self._angle(t)
        u, _ = _beyond_one(t)
        return core.logarithm(angle * (1.0 + u * u)) + log_t[0]

    def log_survival(self, t: Float) -> dd.Pair:
        angle, log_t = self._angle(t)
        return dd.add(minus(log_t), dd.add(logarithm_pair(angle), _minus_log_pi(t)))

    def _angle(self, t: Float) -> tuple[Float, dd.Pair]:
        """``pi P(Y > t) max(t, 1)``, and ``log max(t, 1)``."""
        u, log_t = _beyond_one(t)
        tiny = u < 2.0**-500
        beyond = np.where(tiny, 1.0, arctangent(u) / np.where(tiny, 1.0, u))
        return np.where(t > 1.0, beyond, 0.5 * math.pi - arctangent(u)), log_t

    def score(self, t: Float) -> Float:
        u, _ = _beyond_one(t)
        return 2.0 * u / (1.0 + u * u)

    def _far_quantile(self, depth: Float) -> dd.Pair:
        # t = cot(x) with x = pi P(Y > t), and log(x cot x) = -x^2/3 - 7 x^4/90 - ...
        log_x = dd.add(dd.add(minus(MINUS_LOG_PI), (-depth, 0.0 * depth)), _MINUS_LOG2)
        square = core.exponential(2.0 * log_x[0], 2.0 * log_x[1])
        rest = -(square * (1.0 / 3.0 + square * (7.0 / 90.0)))
        return dd.add(minus(log_x), (rest, 0.0 * rest))


class _General(Form):
    """Any other alpha: a series at 0, Zolotarev's integral, a series at infinity."""

    costly = True

    def __init__(self, alpha_hi: float, alpha_lo: float) -> None:
        self._series = series(alpha_hi, alpha_lo)
        above_one, below_two = (alpha_hi - 1.0) + alpha_lo, (2.0 - alpha_hi) - alpha_lo
        self._integral = Integral(alpha_hi, above_one, below_two)
        # P(Y > t) is near t^-alpha Gamma(alpha) sin(pi alpha / 2) / pi, at most t^-alpha / 2: the
        # edge of the ziggurat's tail, where it is 2^-11 or more, lies inside.
        last = max(LAYOUT.first_exponent + LAYOUT.exponents, math.ceil(12.0 / alpha_hi) + 1)
        first = self._series.first_exponent
        self.layout = Layout(first, last - first, _panel_bits(below_two))
        self.fit_tolerance = 1e-14 if below_two >= 1e-5 and alpha_hi >= 0.3 else 5e-14
        hi, lo = self._series.tail_values(np.array([self._series.far]))[1]
        self.far_tail = FarTail(-float(hi[0] + lo[0]) - LOG2_HI, self._far_quantile)

    def log_density(self, t: Float) -> dd.Pair:
        return self._values(t)[0]

    def log_survival(self, t: Float) -> dd.Pair:
        return self._values(t)[1]

    def log_mills(self, t: Float) -> Float:
        log_density, log_survival, _ = self._values(t)
        hi, lo = dd.add(log_survival, minus(log_density))
        return hi + lo

    def score(self, t: Float) -> Float:
        return self._values(t)[2]

    def _far_quantile(self, depth: Float) -> dd.Pair:
        return self._series.log_quantile(dd.add((-depth, 0.0 * depth), _MINUS_LOG2))

    def _values(self, t: Float) -> tuple[dd.Pair, dd.Pair, Float]:
        """``log p``, ``log P(Y > t)`` and the score."""
        out = np.empty((5, t.size))
        near, far = t <= self._series.near, t >= self._series.far
        between = ~(near | far)
        for chosen, values in (
            (near, self._series.central_values),
            (between, self._integral.values),
            (far, self._series.tail_values),
        ):
            if chosen.any():
                density, survival, score = values(np.ascontiguousarray(t[chosen]))
                out[:, chosen] = *density, *survival, score
        return (out[0], out[1]), (out[2], out[3]), out[4]


def _panel_bits(below_two: float) -> int:
    """How finely an octave is divided.

    Near ``alpha = 2`` a Gaussian core meets a tail of weight ``2 - alpha``, the sooner the larger
    that is, at ``y = 5, ..., 15``. Their sum vanishes at complex points about ``2 pi / y`` away
    from the line, and panels must be narrow beside that.
    """
    if below_two >= 0.35:
        return 3
    return 4 if below_two >= 4e-3 else 5 if below_two >= 1e-4 else 6


@lru_cache(maxsize=64)
def form(alpha_hi: float, alpha_lo: float) -> Form:
    """The formulas of index ``alpha_hi + alpha_lo``."""
    if alpha_lo == 0.0 and alpha_hi == 1.0:
        return _Cauchy()
    if alpha_lo == 0.0 and alpha_hi == 2.0:
        return _Normal()
    return _General(alpha_hi, alpha_lo)


def _times_root_half(t: Float) -> dd.Pair:
    with np.errstate(over="ignore", invalid="ignore"):
        hi, lo = dd.two_product(t, np.full_like(t, _ROOT_HALF[0]))
        return hi, lo + t * _ROOT_HALF[1]


def _minus_log_pi(t: Float) -> dd.Pair:
    """NaN where ``t`` is infinite, and its logarithm no number."""
    return MINUS_LOG_PI[0] + 0.0 * t, MINUS_LOG_PI[1] + 0.0 * t


def _beyond_one(t: Float) -> tuple[Float, dd.Pair]:
    """``min(t, 1 / t)`` and ``log max(t, 1)``."""
    beyond = t > 1.0
    larger = np.where(beyond, t, 1.0)
    return np.where(beyond, 1.0 / larger, t), logarithm_pair(larger)
