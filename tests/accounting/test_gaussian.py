"""Gaussian noise without sampling: n uses of std sigma are one use of sigma / sqrt(n), exactly.

The analytic profile is evaluated with 60 digits; an epsilon is judged by a Newton step with it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from profile_oracles import (
    airy_delta_once,
    gaussian_delta,
    gaussian_epsilon_error,
    laplace_delta_once,
    subsampled_delta,
)

import psinoise as pn
from psinoise.accounting.gaussians import gaussians
from psinoise.accounting.loss.pairs import Pair
from refusals import for_each, for_rows

# Of one use, between bounds; and of few uses where no contour converges.
EXACT, FEW = 1e-9, 1e-6
COUNTS = [1, 2, 3, 10, 1000, 10**6, 10**9, 10**12]
DELTAS = [0.5, 1e-5, 1e-12, 1e-100, 1e-300]


@for_each(COUNTS, [0.3, 1.0, 30.0], DELTAS)
def test_epsilon_of_any_count(count, composed_std, delta):
    std = composed_std * math.sqrt(count)
    mu = mp.sqrt(count) / mp.mpf(std)
    epsilon = pn.Mechanism(pn.Gaussian(std=std)).composed(count).estimate.epsilon(delta)
    if epsilon == 0.0:
        assert gaussian_delta(0.0, mu) <= delta
        return
    # log p, of size 10 to 30, is rounded to 1e-15; its differences, the losses, are of size 1/std.
    tolerance = 1e-12 + 3e-14 * math.sqrt(count)
    tolerance = EXACT if count == 1 else FEW if count < 4 else tolerance
    assert abs(gaussian_epsilon_error(epsilon, delta, mu)) <= tolerance * max(1.0, epsilon)


@for_each([1, 2, 50, 10**9], [0.5, 1e-8, 1e-300])
def test_epsilon_of_large_losses(count, delta):
    """Std 1 whatever the count: epsilon up to 5e8, where rounding of epsilon itself decides."""
    epsilon = pn.Mechanism(pn.Gaussian(std=1.0)).composed(count).estimate.epsilon(delta)
    if epsilon == 0.0:
        assert gaussian_delta(0.0, mp.sqrt(count)) <= delta
        return
    # At n = 1e9, c = 3e-5: epsilon follows the mean loss, known to a few ulp.
    tolerance = EXACT if count == 1 else FEW if count < 4 else 2e-14
    error = gaussian_epsilon_error(epsilon, delta, mp.sqrt(count))
    assert abs(error) <= tolerance * max(epsilon, 1.0)


@for_each([1, 2, 7, 10**4, 10**9], [-3.0, -0.1, 0.0, 0.2, 1.0, 5.0, 20.0])
def test_delta(count, epsilon):
    std = math.sqrt(count)
    exact = gaussian_delta(epsilon, mp.sqrt(count) / mp.mpf(std))
    delta = pn.Mechanism(pn.Gaussian(std=std)).composed(count).estimate.delta(epsilon)
    tolerance = EXACT if count == 1 else 1e-12 + 1e-15 * math.sqrt(count)
    assert delta == pytest.approx(float(exact), rel=tolerance)


def test_delta_below_float64_is_zero():
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    assert mechanism.composed(10).estimate.delta(1e6) == 0.0
    assert mechanism.composed(10).estimate.delta(1e300) == 0.0
    assert mechanism.composed().estimate.delta(1e6) == 0.0


def test_different_steps_compose_like_their_precisions_add():
    stds = [0.7, 1.0, 3.0, 20.0]
    counts = [1, 3, 40, 2000]
    accountant = pn.Accountant()
    for std, count in zip(stds, counts, strict=True):
        accountant.compose(pn.Mechanism(pn.Gaussian(std=std), sensitivity=2.0), count)
    mu = mp.sqrt(sum(4 * n / mp.mpf(std) ** 2 for std, n in zip(stds, counts, strict=True)))
    for delta in (0.3, 1e-6, 1e-200):
        epsilon = accountant.estimate.epsilon(delta)
        assert abs(gaussian_epsilon_error(epsilon, delta, mu)) <= 1e-12 * epsilon


@for_rows(
    [
        # google/differential-privacy b5b0286, pld/privacy_loss_mechanism_test.py: 7 decimals.
        (1.0, 0.3, 2.0, 0.0003341102928869332),
        (1.0, 0.8, 1.0, 0.0816951786585355),
    ]
)
def test_published_single_sampled_use(std, rate, epsilon, published):
    mechanism = pn.Mechanism(pn.Gaussian(std=std))
    value = mechanism.composed(sampling_rate=rate).estimate.delta(epsilon)
    assert value == pytest.approx(published, abs=1e-7)


@for_rows([(1693, 1.75592350046330798), (3048, 2.34648478669313655), (4112, 2.72517962023909074)])
def test_published_sampled_compositions(count, published):
    """Felipe-Gomez/saddlepoint_accountant 7b39cdb, mpmath; delta 1e-15, std 2, rate 0.01."""
    mechanism = pn.Mechanism(pn.Gaussian(std=2.0))
    epsilon = mechanism.composed(count, 0.01).estimate.epsilon(1e-15)
    assert epsilon == pytest.approx(published, abs=1e-8)


# -- narrow noise: losses as large as 10^16, whose logs have no digits left of masses --------------


@for_each([1e-1, 1e-3, 1e-5, 1e-8], [1.0, 0.3, 1e-9], [0.3, 1e-10, 1e-300], ["remove", "add"])
def test_narrow_noise_of_one_use(std, rate, delta, direction):
    """Kills: masses charged a fixed 1e-13; atoms moved within their rounding; losses that do not
    matter, whose rounding is that of all."""
    mu = 1 / mp.mpf(std)

    def unsampled(epsilon):
        return gaussian_delta(epsilon, mu, 80)

    with mp.workdps(80):
        holds_one_use(pn.Gaussian(std=std), rate, delta, direction, unsampled)


@for_each([1e-1, 1e-3, 1e-5, 1e-8], [1.0, 0.3, 1e-9], [0.3, 1e-10, 1e-300], ["remove", "add"])
def test_narrow_laplace_noise_of_one_use(scale, rate, delta, direction):
    with mp.workdps(80):
        holds_one_use(
            pn.Laplace(scale=scale), rate, delta, direction, lambda x: laplace_delta_once(x, scale)
        )


@pytest.mark.deep
@for_each([1e-1, 1e-5, 1e-8], [1.0, 1e-9], [0.3, 1e-10, 1e-300], ["remove", "add"])
def test_narrow_airy_noise_of_one_use(mean_abs, rate, delta, direction):
    with mp.workdps(80):
        holds_one_use(
            pn.Airy(mean_abs=mean_abs),
            rate,
            delta,
            direction,
            lambda x: airy_delta_once(x, mean_abs),
        )


def holds_one_use(law, rate, delta, direction, unsampled):
    """Epsilon, and delta at both its ends, around the exact profile; and close together."""
    accountant = pn.Accountant(direction).compose(pn.Mechanism(law), 1, rate)
    found = accountant.epsilon(delta)
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        exact = subsampled_delta(unsampled, end, rate, direction)
        assert end == 0.0 or sign * (exact - delta) >= 0, (found, mp.nstr(exact / delta - 1))
        around = accountant.delta(end)
        assert around.lower <= exact <= around.upper, (around, mp.nstr(exact))
    # Where sampling leaves next to no loss, rounding is a share of the rate.
    assert found.width <= 1e-9 * found.upper + 0.01 * (rate if rate < 1.0 else 0.0)


@for_each([1e-2, 1e-3, 1e-4, 1e-6], [2, 10, 1000], [0.1, 1e-10, 1e-100])
def test_narrow_noise_of_several_uses(std, count, delta):
    """Beside other noise too, which is composed by the direct composer."""
    mechanism = pn.Mechanism(pn.Gaussian(std=std))
    mu = mp.sqrt(count) / mp.mpf(std)
    both = pn.Accountant().compose(mechanism, count).compose(pn.Mechanism(pn.Laplace(scale=1e6)), 1)
    alone, more = mechanism.epsilon(delta, count), both.epsilon(delta)
    with mp.workdps(60):
        assert gaussian_delta(alone.lower, mu) >= delta >= gaussian_delta(alone.upper, mu)
        # A loss of at most 1e-6, either way.
        assert gaussian_delta(mp.mpf(more.lower) - mp.mpf("1.1e-6"), mu) >= delta
        assert delta >= gaussian_delta(mp.mpf(more.upper) + mp.mpf("1.1e-6"), mu)
    assert alone.width <= 1e-4 * alone.upper


@for_each([1e-3, 0.3, 40.0], [1e-2, 1e-12])
def test_uses_without_sampling_add_up(smallest, delta):
    """One use of mu^2 = sum mu_i^2, to twelve digits: around the exact value, for any scales."""
    plan = [(smallest, 1.0, 3), (7.0 * smallest, 0.7, 10**6), (1e3 * smallest, 1.3, 1)]
    accountant = pn.Accountant()
    for std, sensitivity, count in plan:
        accountant.compose(pn.Mechanism(pn.Gaussian(std=std), sensitivity), count)
    mu = mp.sqrt(mp.fsum(n * (mp.mpf(s) / mp.mpf(std)) ** 2 for std, s, n in plan))
    found = accountant.epsilon(delta)
    assert gaussian_delta(found.lower, mu) >= delta >= gaussian_delta(found.upper, mu)
    assert found.width <= 1e-11 * found.upper
    at = accountant.delta(found.estimate)
    assert at.lower <= gaussian_delta(found.estimate, mu) <= at.upper


def test_only_what_is_gaussian_and_not_sampled_adds_up():
    gaussian = Pair(pn.Gaussian(std=2.0), 1.0, 1.0)
    laplace, sampled = Pair(pn.Laplace(scale=2.0), 1.0, 1.0), Pair(pn.Gaussian(std=2.0), 1.0, 0.5)
    for steps in (((gaussian, 1),), ((gaussian, 4), (laplace, 1)), ((gaussian, 4), (sampled, 1))):
        assert gaussians(steps) is None
    ((found, count),) = gaussians(((gaussian, 3), (Pair(pn.Gaussian(std=0.7), 1.3, 1.0), 2)))
    exact = Fraction(3, 4) + 2 * (Fraction(1.3) / Fraction(0.7)) ** 2
    least = found.below("remove", None).sensitivity
    assert count == 1
    assert Fraction(least) ** 2 < exact < Fraction(found.sensitivity) ** 2
    assert found.sensitivity - least <= 4.0 * math.ulp(least)


def test_the_normal_law_by_its_other_name():
    """Stable noise of index 2 has twice the variance of its squared scale. Kills: its scale as the
    standard deviation in sums, with lower ends a third too large."""
    stable, normal = pn.SymmetricStable(alpha=2.0, scale=3.0), pn.Gaussian(std=3.0 * math.sqrt(2.0))
    for count in (1, 2, 100):
        one, two = (pn.Mechanism(law).epsilon(1e-6, count) for law in (stable, normal))
        assert float(one) == pytest.approx(float(two), rel=1e-12)
        assert one.lower == pytest.approx(two.lower, rel=1e-12)
        one, two = (
            pn.Mechanism(law, 2.0, contribution=1.0).delta(1.0, count, adjacency="replace")
            for law in (stable, normal)
        )
        assert one.lower == pytest.approx(two.lower, rel=1e-12)
    both = pn.Accountant().compose(pn.Mechanism(stable), 3).compose(pn.Mechanism(normal), 4)
    exact = pn.Mechanism(normal).epsilon(1e-6, 7)
    assert float(both.epsilon(1e-6)) == pytest.approx(float(exact), rel=1e-12)
    vectors = [
        pn.Mechanism(law, norm="l2", dimension=9).epsilon(1e-6, 5) for law in (stable, normal)
    ]
    assert float(vectors[0]) == pytest.approx(float(vectors[1]), rel=1e-12)
    family = pn.noise.Family(pn.SymmetricStable, alpha=2.0)
    found = pn.calibrate(family, epsilon=1.0, delta=1e-6, count=10)
    wanted = pn.calibrate(pn.Gaussian, epsilon=1.0, delta=1e-6, count=10)
    assert found.std == pytest.approx(wanted.std, rel=1e-6)
