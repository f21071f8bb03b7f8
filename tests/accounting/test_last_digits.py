"""Bounds where float64 has few digits left: trade-offs next to 1, deltas below normal numbers,
tiny losses, and powers beyond the largest number. Oracles in mpmath."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np

import psinoise as pn
from refusals import for_each, for_rows

PROMISES = pn.promises


def gaussian_delta(mu: mpmath.mpf, epsilon: float) -> mpmath.mpf:
    at = mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - at / mu) - mpmath.exp(at) * mpmath.ncdf(-mu / 2 - at / mu)


@for_each((0.1, 0.7, 4.0))
def test_tradeoffs_next_to_1(mu):
    """``1 - delta`` loses what ``1 - alpha - delta`` is of: 56 % too high before."""
    rest = np.concatenate([2.0**-53 * np.array([1, 2, 3, 5, 9, 101]), [1e-12, 1e-8, 1e-3]])
    found = pn.Mechanism(pn.Gaussian(std=1.0 / mu)).tradeoff(1.0 - rest)
    with mpmath.workdps(50):
        for alpha, value in zip(1.0 - rest, found.tolist(), strict=True):
            z = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(alpha) - 1)
            exact = mpmath.ncdf(-z - mu)
            assert value <= exact
            # Lines are sought to 1e-15.
            assert value >= 0.99 * exact - 1e-15


def test_a_tradeoff_of_laplace_noise_is_below_the_exact_one():
    """Lines that touch it are rounded down: an ulp too high at half of all places before."""
    alphas = np.random.default_rng(5).uniform(0.01, 0.99, 400)
    found = pn.Mechanism(pn.Laplace(scale=1.0)).tradeoff(alphas)
    with mpmath.workdps(40):
        e = mpmath.e
        for alpha, value in zip(alphas.tolist(), found.tolist(), strict=True):
            a = mpmath.mpf(alpha)
            exact = 1 - e * a if a < 1 / (2 * e) else 1 / (4 * e * a) if a < 0.5 else (1 - a) / e
            assert value <= exact
            assert value >= exact * (1 - mpmath.mpf(10) ** -6)


@for_rows([(1.166, 1, 6.1936135227e-314), (1.166, 1, 2.05e-320), (30.0, 3, 3.5e-322)])
def test_deltas_below_normal_numbers(std, uses, delta):
    """Kills: nothing taken off from below for masses that underflow; roundings of ``exp``."""
    found = pn.Mechanism(pn.Gaussian(std=std)).composed(uses)
    epsilon = found.epsilon(delta)
    with mpmath.workdps(40):
        mu = mpmath.sqrt(uses) / mpmath.mpf(std)
        assert gaussian_delta(mu, epsilon.lower) >= mpmath.mpf(delta)
        # Below what masses that underflow add to 1e-316 nothing is known from above.
        assert np.isfinite(epsilon.upper) == (delta > 1e-316)
        for at in {epsilon.lower, min(epsilon.upper, 1.01 * epsilon.lower)}:
            bracket = found.delta(at)
            assert bracket.lower <= gaussian_delta(mu, at) <= bracket.upper


def test_powers_beyond_the_largest_number():
    """Kills: a mass times a power that overflows, which ended in an OverflowError after 38 s."""
    plan = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=3.4)))
    plan = plan.compose(PROMISES.PureDP(8.6), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = plan.delta(36.2)
    exact = 5.2378e-274
    assert found.lower <= exact * 1.0001
    assert exact * 0.9999 <= found.upper <= 1.02 * exact


@for_each((10**13, 2 * 10**13, 10**14))
def test_so_many_uses_that_roundings_add_up_to_1(count):
    """Of what only says where to look they do not count: [0, 2000000] before."""
    found = pn.Mechanism(pn.Laplace(scale=1e7)).epsilon(1e-6, count)
    assert found.lower > 0.0
    assert found.width <= 1.1e-4 * found
    gaussian = pn.Mechanism(pn.Gaussian(std=1e7)).epsilon(1e-6, count)
    assert abs(found - gaussian) <= 1e-3 * gaussian


@for_rows([(1.9e-3, 1.5e-6, 2.0), (2.7e-4, 1.0, 1.0 + 1e-9), (1.5e-5, 0.0126, 2.0)])
def test_renyi_divergences_of_tiny_ranges(eta, rate, order):
    """At least that of the worst two answers: an eighth to 97 % of it before."""
    found = float(PROMISES.BoundedRange(eta).renyi_divergence([order], 1, rate)[0])
    with mpmath.workdps(60):
        worst = mpmath.mpf(0)
        for share in (0.4, 0.45, 0.5, 0.55, 0.6):
            up = mpmath.mpf(eta) * share
            low, one = up - mpmath.mpf(eta), mpmath.mpf(1)
            p = mpmath.exp(up) * (one - mpmath.exp(low)) / (mpmath.exp(up) - mpmath.exp(low))
            shifted = (p, one - p)
            base = (p * mpmath.exp(-up), (one - p) * mpmath.exp(-low))
            mixed = [q + rate * (s - q) for s, q in zip(shifted, base, strict=True)]
            for of, under in ((mixed, base), (base, mixed)):
                sum_of = sum(
                    a * (a / b) ** (mpmath.mpf(order) - 1) for a, b in zip(of, under, strict=True)
                )
                worst = max(worst, mpmath.log(sum_of) / (mpmath.mpf(order) - 1))
    assert found >= worst * (1 - mpmath.mpf(10) ** -9)


@for_each(([0.01, 0.5, 1e160], [0.0, 1e-200, 3e-200], [-1e308], [-1.7e308, 1.7e308]))
def test_profiles_at_any_epsilons(epsilons):
    """Without warnings of numbers that are too large, or next to each other."""
    laplace = pn.Mechanism(pn.Laplace(scale=1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for uses in (1, 3):
            profile = laplace.composed(uses).profile(epsilons)
            assert (profile.lower <= profile.upper).all()
            for epsilon, low, high in zip(epsilons, profile.lower, profile.upper, strict=True):
                bracket = laplace.composed(uses).delta(epsilon)
                assert bracket.lower <= high
                assert low <= bracket.upper


@for_each(("epsilon", "delta"), (1e12, 1e20, 1e40))
def test_ranges_beyond_the_digits_of_masses(asked, eta):
    """Masses are sums of logarithms as large as the range, and none is above 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accountant = pn.Accountant().compose(PROMISES.BoundedRange(eta))
        found = getattr(accountant, asked)({"epsilon": 1e-6, "delta": 1e-3 * eta}[asked])
    assert found.upper >= {"epsilon": eta * (1.0 - 1e-6), "delta": 1.0 - 1e-9}[asked]


@for_rows([(0.0393, 1115.0, None), (1.0, 562181.5, 1.0)])
def test_masses_of_very_narrow_atoms(scale, sensitivity, grid):
    """Of logs of tens of thousands: the total variation was short of 1 by up to 5e-11, and deltas
    above it had epsilons of 0."""
    law = pn.Gaussian(std=scale) if grid else pn.DiscreteLaplace(scale=scale)
    mechanism = pn.Mechanism(law, sensitivity)
    mechanism = mechanism.on_lattice(grid) if grid else mechanism
    assert mechanism.delta(0.0).upper == 1.0
    for below in (7e-13, 5e-11):
        assert mechanism.epsilon(1.0 - below).upper > 1e4
        assert mechanism.epsilon(0.1 - 0.1 * below, sampling_rate=0.1).upper > 1e4
        assert not pn.Ledger(1e-3, 1.0 - below).affords(mechanism)
