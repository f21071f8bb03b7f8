"""The moments accountant as papers draw it: one direction, one shift, the plain conversion.

Abadi et al., "Deep learning with differential privacy" (CCS 2016), theorem 2: logarithms of moments
``K(c) = log E_P[exp(c L)]`` add up over compositions, and any order ``c > 0`` gives

    ``epsilon(delta) <= (count * K(c) + log(1 / delta)) / c``.

``P = (1 - q) p + q T p`` and ``Q = p`` are the output with and without a record, sampled at rate
``q``, of noise ``p`` that the record moves to ``T p``. The package's own accountant of this kind,
``Accountant.renyi``, converts more tightly; this one is for the comparison with published curves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from psinoise.noise import Cactus, Gaussian

__all__ = ["ORDERS", "cactus_moments", "gaussian_moments", "moments_epsilon"]

Float = NDArray[np.float64]

#: Real orders ``c``, 3 % apart: the best of them gives epsilon to 2e-4 of that of the best order.
ORDERS = np.geomspace(0.02, 40.0, 250)
# Points of the trapezoidal rule to a standard deviation, which is right to rounding for these.
_POINTS, _REACH = 12, 12.0


def moments_epsilon(log_moments: Float, delta: float, count: int) -> float:
    """Epsilon from the log moments of one use at :data:`ORDERS`."""
    return float(((count * log_moments - math.log(delta)) / ORDERS).min())


def gaussian_moments(noise: Gaussian, sensitivity: float, rate: float) -> Float:
    """Log moments of Gaussian noise: closed without sampling, else by the trapezoidal rule."""
    mu = sensitivity / float(noise.std)
    if rate == 1.0:
        return np.asarray(0.5 * mu**2 * ORDERS * (ORDERS + 1.0))
    # The integrand of order c is centered between 0 and (c + 1) mu.
    end = (float(ORDERS[-1]) + 1.0) * mu + _REACH
    z = np.arange(-_REACH * _POINTS, end * _POINTS) / _POINTS
    log_masses = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - math.log(_POINTS)
    return _log_moments(log_masses, mu * z - 0.5 * mu**2, rate)


def cactus_moments(noise: Cactus, shift: int, rate: float) -> Float:
    """Log moments of a cactus law and itself moved by so many cells.

    Both tails are geometric: from cell ``N + shift`` on, and before cell ``-N``, the ratio of the
    two laws is constant, and the cells there are one.
    """
    p, last, ratio = noise.masses, noise.cells, noise.tail_ratio

    def log_masses(cells: Float) -> Float:
        beyond = np.maximum(np.abs(cells) - last, 0.0)
        return np.asarray(np.log(p[np.minimum(np.abs(cells), last).astype(int)]) + beyond * decay)

    decay = math.log(ratio)
    inner = np.arange(1.0 - last, last + shift)
    tail = math.log(p[-1]) - math.log1p(-ratio)
    here = np.concatenate([[tail], log_masses(inner), [tail + shift * decay]])
    losses = log_masses(inner - shift) - log_masses(inner)
    return _log_moments(here, np.concatenate([[shift * decay], losses, [-shift * decay]]), rate)


def _log_moments(log_masses: Float, losses: Float, rate: float) -> Float:
    """``log E_Q[(P / Q)^(c + 1)]``, with the loss without sampling given."""
    sampled = losses if rate == 1.0 else np.log1p(rate * np.expm1(np.minimum(losses, 700.0)))
    powers = log_masses + (ORDERS[:, None] + 1.0) * sampled
    return np.asarray(special.logsumexp(powers, axis=1))
