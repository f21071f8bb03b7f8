"""Independent truth of the laws, and what the contract tests measure them with."""

from __future__ import annotations

import functools

import mpmath
import numpy as np
import pytest

import stable_truth
from ground_state_truth import log_truth, unit_power_truth
from psinoise import costs
from psinoise.noise import Schrodinger

EPS = 2.0**-53
SMALLEST_NORMAL = 2.0**-1022
# The documented accuracy of values, and of logarithms relative to max(1, |value|).
ACCURACY = 5e-14


def near(value, relative):
    """``pytest.approx`` without its absolute tolerance, which hides errors of small numbers."""
    return pytest.approx(value, rel=relative, abs=0.0)


def gaussian_tail(t):
    return mpmath.erfc(t / mpmath.sqrt(2)) / 2


with mpmath.workdps(60):
    SLOPE_ZERO = mpmath.airyaizero(1, derivative=1)
    PEAK = mpmath.airyai(SLOPE_ZERO)


def airy_argument(t):
    return SLOPE_ZERO + 2 * abs(SLOPE_ZERO) / 3 * t


def airy_log_density(t):
    return 2 * mpmath.log(mpmath.airyai(airy_argument(t)) / PEAK) - mpmath.log(3)


def airy_tail(t):
    z = airy_argument(t)
    tail = mpmath.airyai(z, derivative=1) ** 2 - z * mpmath.airyai(z) ** 2
    return tail / (2 * abs(SLOPE_ZERO) * PEAK**2)


def unit_power(p, guess):
    """|x|**p at mean cost 1; a first guess of the energy at theta = 1."""
    truth = functools.partial(unit_power_truth, p, guess, 400.0)
    return (lambda t: truth().log_density(t)), (lambda t: truth().survival(t))


def unit_log():
    """log(1 + |x|), in the units and with the theta of the package; the rest is its own."""
    noise = Schrodinger(cost=costs.Log(), scale=1.0)

    def truth():
        guess = noise.ground_energy * (1.0 + 1e-9)
        return log_truth(1.0 / noise.cost.factor, noise.theta, guess, 1500.0)

    return (lambda t: truth().log_density(t)), (lambda t: truth().survival(t))


# log density and survival function of the standardized law at t >= 0, in mpmath.
TRUTH = {
    "Schrodinger(cost=costs.Power(1.5))": unit_power(1.5, 1.001),
    "Schrodinger(cost=costs.Log(1.0))": unit_log(),
    "Gaussian": (lambda t: -t * t / 2 - mpmath.log(2 * mpmath.pi) / 2, gaussian_tail),
    "Laplace": (lambda t: -t - mpmath.log(2), lambda t: mpmath.exp(-t) / 2),
    "Airy": (airy_log_density, airy_tail),
    "SymmetricStable(alpha=1.5)": (
        lambda t: mpmath.log(stable_truth.holtsmark(t)[0]),
        lambda t: stable_truth.holtsmark(t)[1],
    ),
}
# Tails are powers: moments of this order and above are infinite, and so is what follows from them.
TAIL_INDEX = {"SymmetricStable(alpha=1.5)": 1.5}
# Absolute moments of orders 1, 2, 3, 4 and 1/2, where they have a closed form.
MOMENTS = {
    "Gaussian": {
        1: (2 / np.pi) ** 0.5,
        2: 1.0,
        3: (8 / np.pi) ** 0.5,
        4: 3.0,
        0.5: 0.8221789586623885,  # 2^(1/4) Gamma(3/4) / sqrt(pi)
    },
    "Laplace": {1: 1.0, 2: 2.0, 3: 6.0, 4: 24.0, 0.5: 0.886226925452758},  # Gamma(3/2)
    "Airy": {1: 1.0, 2: 1.6255540157285766, 3: 3.45785021363573769, 4: 8.86600710880008324},
    # 2^q Gamma((1 + q) / 2) Gamma(1 - q / alpha) / (sqrt(pi) Gamma(1 - q / 2))
    "SymmetricStable(alpha=1.5)": {0.5: 1.0804297973745145, 1: 1.7054652401523882, 2: np.inf},
}


# -- a quadrature of the tests' own ----------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def integral(function, edges):
    """Gauss-Legendre between the edges, one value for each pair of neighbors."""
    half, center = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    values = function((center[:, None] + half[:, None] * _NODES).reshape(-1))
    return half * (values.reshape(half.size, -1) @ _WEIGHTS)


def is_heavy(law):
    return law.name in TAIL_INDEX


def half_line(law):
    """Edges from 0 to where the density is negligible, eight to an octave."""
    octaves = 2.0 ** np.arange(-10.0, 1000.0, 0.125)
    end = law.iccdf(1e-60 if is_heavy(law) else 1e-300)
    return np.concatenate([[0.0], law.scale * octaves[octaves < end / law.scale]])


def grid(law):
    """Points from the center to probabilities of 1e-300, or 1e-120 where tails are powers:
    densities are 1e-240 there, and points need to be closer for a quadrature between them."""
    deepest, count = (120.0, 3000) if is_heavy(law) else (300.0, 120)
    p = np.concatenate([np.linspace(0.5, 0.01, 60)[1:], 10.0 ** -np.linspace(2.1, deepest, count)])
    return law.iccdf(p)
