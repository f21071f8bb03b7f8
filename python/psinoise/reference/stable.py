"""Integrals of the symmetric stable laws, operation for operation as ``csrc/math/stable.hpp``.

The formula, its regions and its errors are documented there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics import double_double as dd
from psinoise.numerics.elementary import exponential, logarithm
from psinoise.numerics.trigonometric import arctangent, sine

Float = NDArray[np.float64]

_QUARTER_TURN = 0.5 * math.pi
# exp(exp(6.6)) overflows nothing and exp(-exp(6.6)) is 0 beside any sum.
_LARGEST_EXPONENT = 6.6


def _log_factor(cotangent: Float, sine_part: Float, half: Float, q: Float) -> Float:
    """``log q`` where ``q - 1 = cotangent * sine_part - 2 half**2`` may be tiny."""
    excess = cotangent * sine_part - 2.0 * half * half
    near = np.abs(excess) < 0.5
    w = np.where(near, 1.0 + excess, q)
    return logarithm(w) - np.where(near, ((w - 1.0) - excess) / w, 0.0)


def _terms(alpha: float, above_one: float, below_two: float, log_y: dd.Pair, d: Float) -> Float:
    """The integrands of density, survival function and slope at ``s = log y + d``."""
    s, s_lo = dd.two_sum(log_y[0], d)
    s_lo = s_lo + log_y[1]
    upper = s > 0.0
    ratio = exponential(np.where(upper, -s, s), np.where(upper, -s_lo, s_lo))
    root = np.sqrt(1.0 + ratio * ratio)
    angle = arctangent(ratio)
    theta = np.where(upper, _QUARTER_TURN - angle, angle)
    eta = np.where(upper, angle, _QUARTER_TURN - angle)
    sin_theta = np.where(upper, 1.0, ratio) / root
    cos_theta = np.where(upper, ratio, 1.0) / root
    cotangent = np.where(upper, ratio, 1.0 / ratio)

    half = sine(0.5 * above_one * theta)
    sine_part = 2.0 * half * np.sqrt(1.0 - half * half)
    cosine_part = 1.0 - 2.0 * half * half
    if above_one > 0.5:
        opposite = sine(0.5 * (_QUARTER_TURN * below_two + above_one * eta))
        through_eta = 2.0 * opposite * np.sqrt(1.0 - opposite * opposite)
        cosine_part = np.where(upper, through_eta, cosine_part)
    q = cosine_part + cotangent * sine_part
    ratio_log = _log_factor(cotangent, sine_part, half, q)
    exponent = (alpha / above_one) * (-d - ratio_log) + (
        logarithm(cosine_part * root) + np.where(upper, s, 0.0)
    )
    exponent = np.where(exponent < _LARGEST_EXPONENT, exponent, _LARGEST_EXPONENT)
    g = exponential(exponent, np.zeros_like(exponent))
    weight = exponential(*dd.two_sum(exponent, -g))

    turned = cos_theta * cosine_part - sin_theta * sine_part
    along = alpha * (cos_theta / q) * (sine_part / (above_one * sin_theta) - turned) + sin_theta * (
        sin_theta - above_one * (sine_part / cosine_part) * cos_theta
    )
    measure = sin_theta * cos_theta
    turning = (cos_theta - sin_theta) * (cos_theta + sin_theta)
    return np.stack(
        [
            weight * measure,
            weight * (eta * np.abs(along - alpha / above_one)),
            weight * (measure * ((1.0 - g) * along + turning)),
        ]
    )


def stable_sums(
    alpha: float,
    above_one: float,
    below_two: float,
    log_y_hi: Float,
    log_y_lo: Float,
    start: Float,
    step: float,
    count: int,
) -> tuple[Float, Float, Float]:
    """Sums of the integrands at ``d = start + k * step``, ``0 <= k < count``."""
    total = np.zeros((3, log_y_hi.size))
    carry = np.zeros_like(total)
    with np.errstate(all="ignore"):
        for k in range(count):
            d = start + float(k) * step
            terms = _terms(alpha, above_one, below_two, (log_y_hi, log_y_lo), d)
            total, error = dd.two_sum(total, terms)
            carry = carry + error
        total = total + carry
    return total[0], total[1], total[2]
