"""What laws that are made for a target are for: their guarantee, and what is least about them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

import psinoise as pn


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("power", [1, 2])
def test_staircase_is_private_and_optimal(epsilon, power):
    law = pn.Staircase(epsilon=epsilon, sensitivity=2.0, power=power)
    x = np.linspace(-9.0, 9.0, 3001) + 1e-7
    for shift in np.linspace(0.01, 2.0, 40):
        assert np.abs(law.logpdf(x) - law.logpdf(x - shift)).max() <= epsilon * (1 + 1e-12)
    b = math.exp(-epsilon)
    published = {
        1: math.exp(epsilon / 2) / math.expm1(epsilon),
        2: (2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2,
    }
    assert law.least_cost == pytest.approx(published[power] * 2.0**power, rel=1e-12)

    def cost(gamma):
        """From the density, step by step."""
        k = np.arange(0.0, 60.0 / epsilon)
        height = (1 - b) / (2 * (gamma + b * (1 - gamma)))
        p = power + 1
        low = ((k + gamma) ** p - k**p) * height
        high = ((k + 1) ** p - (k + gamma) ** p) * height * b
        return 2 * np.sum((low + high) * b**k) / p

    best = optimize.minimize_scalar(cost, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
    assert law.gamma == pytest.approx(best.x, abs=1e-5)
    assert law.least_cost == pytest.approx(best.fun * 2.0**power, rel=1e-9)
    # Less than Laplace noise with the same guarantee.
    assert law.least_cost < (2.0 / epsilon) ** power * math.factorial(power)


@pytest.mark.parametrize("delta", [0.01, 0.3, 0.5, 0.6, 0.7, 0.95])
@pytest.mark.parametrize("power", [0.5, 1, 2, 3.5])
def test_uniform_with_an_atom_is_that_of_theorem_3(delta, power):
    law = pn.UniformAtom(delta=delta, sensitivity=3.0, power=power)
    alpha = max(0.0, (power + 1) * delta - power)
    assert law.atom == pytest.approx(alpha, abs=1e-15)
    assert law.half_width == pytest.approx((1 - alpha) / (delta - alpha) * 1.5, rel=1e-14)
    if alpha == 0.0:
        cost = 3.0**power / (2**power * (power + 1) * delta**power)
    else:
        cost = (power + 1) ** power / (2**power * power**power) * (1 - delta) * 3.0**power
    assert law.least_cost == pytest.approx(cost, rel=1e-13)

    def other(a):
        return 3.0**power / ((power + 1) * 2**power) * (1 - a) ** (power + 1) / (delta - a) ** power

    assert law.least_cost <= min(other(a) for a in np.linspace(0.0, delta, 500)[:-1]) * (1 + 1e-12)
    # (0, delta): the mass within half a sensitivity (theorem 1).
    assert law.cdf(1.5) - law.cdf(-1.5 * (1 + 1e-15)) == pytest.approx(delta, rel=1e-13)


def test_corollaries_4_and_5():
    for delta in (0.1, 0.5, 0.8):
        first = pn.UniformAtom(delta=delta, power=1).least_cost
        assert first == pytest.approx(1 / (4 * delta) if delta <= 0.5 else 1 - delta, rel=1e-14)
        second = pn.UniformAtom(delta=delta, power=2).least_cost
        expected = 1 / (12 * delta**2) if delta <= 2 / 3 else 9 / 16 * (1 - delta)
        assert second == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.01), (1.0, 1e-6), (4.0, 0.3)])
def test_truncated_laplace_spends_delta(epsilon, delta):
    law = pn.TruncatedLaplace(epsilon=epsilon, delta=delta, sensitivity=2.0)
    # Where the loss exceeds epsilon is where the shifted law has no density.
    # It is below delta by a part in 2^36, as the documentation of the law says.
    spent = delta / (1.0 + 2.0**-36)
    found, _, upper = pn.Mechanism(law, 2.0).delta(epsilon)
    assert found == pytest.approx(spent, rel=1e-12)
    assert upper < delta
    assert law.ccdf(law.half_width - 2.0) == pytest.approx(spent, rel=2e-11)
    x = np.linspace(-law.half_width, law.half_width, 2001) * (1 - 1e-12)
    for shift in (0.3, 1.0, 2.0):
        both = np.abs(x - shift) <= law.half_width * (1 - 1e-12)
        ratio = law.logpdf(x[both]) - law.logpdf(x[both] - shift)
        assert np.abs(ratio).max() <= epsilon * (1 + 1e-12)
        assert law.ccdf(law.half_width - shift) <= delta * (1 + 1e-11)
    # A part in 2^36 is room for rounding.
    q = math.expm1(epsilon) / (2 * delta) * (1 + 2**-36)
    assert law.half_width == pytest.approx(2.0 / epsilon * math.log1p(q), rel=1e-14)
    amplitude = 2.0 / epsilon * (1 - math.log1p(q) / q)
    assert law.mean_abs == pytest.approx(amplitude, rel=1e-9)
    variance = 8 / epsilon**2 * (1 - (0.5 * math.log1p(q) ** 2 + math.log1p(q)) / q)
    assert law.std**2 == pytest.approx(variance, rel=1e-9)


def test_discrete_laplace_is_private():
    law = pn.DiscreteLaplace(epsilon=0.7, sensitivity=3)
    k = np.arange(-50.0, 51.0)
    for shift in (1, 2, 3):
        assert np.abs(law.logpmf(k) - law.logpmf(k - shift)).max() <= 0.7 * (1 + 1e-13)
    assert law.scale == math.nextafter(3 / 0.7, 5.0)  # 3 / 0.7 is too little, by its rounding
    assert Fraction(3) / Fraction(law.scale) <= Fraction(0.7) < Fraction(3) / Fraction(3 / 0.7)


def test_a_truncated_law_meets_its_own_target():
    """At the very delta that it is made for. Mutant: a support without room for rounding, of which
    one in three was outside of it."""
    generator = np.random.default_rng(3)
    for _ in range(60):
        sensitivity = float(generator.choice([1.0, 1.0 / 3.0, 0.3, np.pi, 1e-9, 1000.0 / 3.0]))
        epsilon, delta = (
            10.0 ** generator.uniform(-4.0, 1.0),
            10.0 ** generator.uniform(-15.0, -1.0),
        )
        law = pn.TruncatedLaplace(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        found = pn.Mechanism(law, sensitivity).epsilon(delta)
        assert epsilon * (1.0 - 1e-9) <= found <= epsilon * (1.0 + 1e-12)
