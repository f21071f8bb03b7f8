"""The Airy function on ``[a1', inf)`` in the form that a log-concave density needs.

Computes, at ``z = z_hi + z_lo``: log Ai(z) as hi + lo, ``rho = -Ai'/Ai``, ``rho' = rho^2 - z``.
Only tables are made from it (``compile``), so that it has no kernel.

Regions, in ``d = z - a1'`` where ``a1' = -1.0187...`` is the first zero of Ai':

* ``d < 5``: panels of width 1/4 for log Ai, ``rho / d`` and ``rho'`` (rho vanishes at d = 0);
* above: with ``zeta = (2/3) z^(3/2)`` and ``w = FAR_ZETA / zeta`` in (0, 1]
  ``log Ai = -zeta - log(2 sqrt pi) - log(z) / 4 + w F0(w)``, ``rho = sqrt(z) (1 + w F1(w))``,
  ``rho' = (1 + w F2(w)) / (2 sqrt(z))``;
* ``z > 2^600``: the leading terms alone, since zeta as a pair nears overflow.

Error: log Ai 1.2e-16 (d < 5) or 4e-17 + 2^-100 zeta (above), absolute; rho 0.65 ulp + 5e-34 (the
error of a1' as a pair); rho' 0.7 ulp (``tests/test_airy_functions.py``, 4e4 random points). Edge
values: NaN if ``z < a1' - 2^-52`` or z is NaN, analytic values between there and a1'; at infinity
log Ai = -inf, rho = inf, rho' = 0. Every operation is rounded once, in this order: the same bits on
every machine. Constants: ``tools/airy_constants.py``. References: DLMF 9.2(vi) (Riccati form),
9.7(i), 9.7(ii) (expansions in 1/zeta).
"""

from __future__ import annotations

import numpy as np

from psinoise.numerics.airy_coefficients import (
    FAR,
    FAR_DEGREE,
    FAR_ZETA,
    FIRST_SLOPE_ZERO_HI,
    FIRST_SLOPE_ZERO_LO,
    LOG_TWO_SQRT_PI_HI,
    LOG_TWO_SQRT_PI_LO,
    NEAR,
    NEAR_DEGREE,
    NEAR_END,
    PANELS_PER_UNIT,
    QUARTER_LOG_TWO_HI,
    QUARTER_LOG_TWO_LO,
    TWO_THIRDS_HI,
    TWO_THIRDS_LO,
)
from psinoise.numerics.bits import exponent_and_mantissa
from psinoise.numerics.double_double import (
    Float,
    Pair,
    add,
    divide,
    multiply,
    quick_two_sum,
    square_root,
    two_sum,
)
from psinoise.numerics.elementary import logarithm

Values = tuple[Float, Float, Float, Float]

_LARGEST_FAR = float.fromhex("0x1p600")
_BELOW_ZERO = float.fromhex("-0x1p-52")


def _row(row: Float, degree: int, u: Float) -> Pair:
    """c0 + c1 u + ... of rows ``[c0 hi, c0 lo, c1, ...]`` (last axis), one row for each u."""
    c = row[..., 1:]
    v = u * u
    last_even = degree - degree % 2
    last_odd = degree - 1 + degree % 2
    odd = c[..., last_odd]
    for power in range(last_odd - 2, 0, -2):
        odd = odd * v + c[..., power]
    even = c[..., last_even]
    for power in range(last_even - 2, 0, -2):
        even = even * v + c[..., power]
    return quick_two_sum(row[..., 0], row[..., 1] + (u * odd + v * even))


def _distance(z_hi: Float, z_lo: Float) -> Pair:
    """``z - a1'``, to the last bit of the low part near a1': rho is proportional to it."""
    upper = two_sum(z_hi, np.full_like(z_hi, -FIRST_SLOPE_ZERO_HI))
    lower = two_sum(z_lo, np.full_like(z_lo, -FIRST_SLOPE_ZERO_LO))
    hi, lo = two_sum(upper[0], lower[0])
    return quick_two_sum(hi, lo + (upper[1] + lower[1]))


def _near(d: Pair) -> Values:
    panel = (d[0] * PANELS_PER_UNIT).astype(np.int64)
    middle = (panel + 0.5) / PANELS_PER_UNIT
    scale = 2.0 * PANELS_PER_UNIT
    u = (d[0] - middle) * scale + d[1] * scale
    log, ratio, slope = (_row(NEAR[panel, function], NEAR_DEGREE, u) for function in range(3))
    return log[0], log[1], multiply(d, ratio)[0], slope[0]


def _quarter_log(z_hi: Float, z_lo: Float) -> Pair:
    """``log(z) / 4``; the power of two is taken out first: the error is one of ``log m``."""
    exponent, m = exponent_and_mantissa(z_hi)
    k = exponent.astype(np.float64)
    return k * QUARTER_LOG_TWO_HI, k * QUARTER_LOG_TWO_LO + 0.25 * (logarithm(m) + z_lo / z_hi)


def _far(z: Pair) -> Values:
    root = square_root(z)
    two_thirds = np.full_like(z[0], TWO_THIRDS_HI), np.full_like(z[0], TWO_THIRDS_LO)
    zeta = multiply(multiply(root, z), two_thirds)
    w = FAR_ZETA / (TWO_THIRDS_HI * (z[0] * root[0]))
    u = 2.0 * w - 1.0
    log_factor, decay_factor, slope_factor = (w * _row(row, FAR_DEGREE, u)[0] for row in FAR)

    quarter_log = _quarter_log(*z)
    level = two_sum(np.full_like(u, -LOG_TWO_SQRT_PI_HI), -quarter_log[0])
    rest = (level[1] - LOG_TWO_SQRT_PI_LO) + (log_factor - quarter_log[1])
    log = add((-zeta[0], -zeta[1]), (level[0], rest))

    # The corrections to sqrt(z) and 1 / (2 sqrt(z)) are below 4 % and 6 %: one rounding dominates.
    inverse = divide(np.full_like(u, 0.5), root[0])
    root_error = root[1] * (inverse[0] + inverse[0])
    decay = root[0] + (root[1] + root[0] * decay_factor)
    slope = inverse[0] + (inverse[1] + inverse[0] * (slope_factor - root_error))
    return log[0], log[1], decay, slope


def _leading(z: Float) -> Values:
    root = np.sqrt(z)
    return -(TWO_THIRDS_HI * z * root), np.zeros_like(z), root, 0.5 / root


def airy(z_hi: Float, z_lo: Float) -> Values:
    """Log Ai(z) as hi and lo, rho = -Ai'(z) / Ai(z) and rho', at ``z = z_hi + z_lo``.

    Both arguments are one-dimensional, ``|z_lo|`` is at most one ulp of ``z_hi``, and the results
    are NaN where z lies below a1', the first zero of Ai', by more than rounding.
    """
    out = np.full((4, *z_hi.shape), np.nan)
    with np.errstate(all="ignore"):
        d_hi, d_lo = _distance(z_hi, z_lo)
        huge = z_hi > _LARGEST_FAR
        near = ~huge & (d_hi >= _BELOW_ZERO) & (d_hi < NEAR_END)
        far = ~huge & (d_hi >= NEAR_END)
        out[:, near] = _near((d_hi[near], d_lo[near]))
        out[:, far] = _far((z_hi[far], z_lo[far]))
        out[:, huge] = _leading(z_hi[huge])
    return out[0], out[1], out[2], out[3]
