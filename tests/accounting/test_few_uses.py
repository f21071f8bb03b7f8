"""One use and few uses, where rare and large losses decide: exact values by other formulas.

One use has the profile of the unsampled one, moved; of two uses one is averaged over the other. The
values of `SETTLED` are contour integrals of an earlier accountant, right to ten digits.
"""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from profile_oracles import (
    cauchy_delta,
    cauchy_delta_twice,
    gaussian_delta,
    gaussian_epsilon,
    laplace_delta,
    laplace_delta_once,
    sampled_gaussian_delta_twice,
    sampled_laplace_delta_twice,
    subsampled_delta,
)

import psinoise as pn
from refusals import for_each, for_rows

WAYS = ("remove", "add")
# What rounding leaves of one use, as a share of epsilon.
EXACT = 1e-9


def holds(bracket, exact, share, error=0.0):
    """Around a value that is known to a relative error, no wider than a share of it."""
    assert bracket.lower <= exact * (1 + error), (bracket, float(exact))
    assert bracket.upper >= exact * (1 - error), (bracket, float(exact))
    assert bracket.lower <= bracket.estimate <= bracket.upper
    assert bracket.width <= share * abs(exact), (bracket, float(exact))


# -- one use ---------------------------------------------------------------------------------------


@pytest.mark.deep
@for_each([1e-3, 0.1, 1.0, 37.0, 100.0, 333.0, 1000.0], [0.3, 1e-2, 1e-10, 1e-100, 1e-300])
def test_gaussian_noise_of_any_size(mu, delta):
    """Kills: wide bins whose excess is not resolved, rounding that is not that of large logs."""
    mechanism, exact = pn.Mechanism(pn.Gaussian(std=1.0), mu), gaussian_epsilon(mu, delta)
    holds(mechanism.epsilon(delta), exact, EXACT)
    if exact > 0:
        found = mechanism.delta(float(exact))
        # Large losses are known to fewer digits, and delta follows.
        holds(found, gaussian_delta(float(exact), mu), 1e-6)


@for_each([0.01, 0.03, 0.3, 1.0, 25.0], [0.3, 1e-3, 1e-12, 1e-300])
def test_laplace_noise(scale, delta):
    """``1/b + 2 log(1 - delta)``."""
    mechanism = pn.Mechanism(pn.Laplace(scale=scale))
    with mp.workdps(60):
        exact = max(1 / mp.mpf(scale) + 2 * mp.log1p(-mp.mpf(delta)), mp.mpf(0))
    found = mechanism.epsilon(delta)
    # One ulp where the largest loss itself is the answer.
    holds(found, exact, EXACT, 3e-16)
    if exact > 0:
        assert mechanism.composed().estimate.epsilon(delta) == pytest.approx(
            float(exact), rel=EXACT
        )


@for_each(["gaussian", "laplace"], [0.7, 0.3, 0.05, 1e-3])
def test_sampled_noise(law, rate):
    """Kills: one direction for the other, atoms of the loss left out, excesses forgotten."""
    noise = pn.Gaussian(std=1.0) if law == "gaussian" else pn.Laplace(scale=2.0)
    mechanism = pn.Mechanism(noise)
    top = mechanism.epsilon(0.0, 1, rate).upper

    def unsampled(epsilon):
        return gaussian_delta(epsilon, 1) if law == "gaussian" else laplace_delta_once(epsilon, 2)

    for epsilon in (-2.0, -0.5 * rate, 0.0, 0.1 * rate, 0.3 * rate, 0.6, 3.0):
        with mp.workdps(60):
            exact = max(subsampled_delta(unsampled, epsilon, rate, direction) for direction in WAYS)
        if exact < 1e-300 or epsilon >= top:
            continue
        holds(mechanism.delta(epsilon, 1, rate), exact, 1e-8 / rate, 1e-15)
        if epsilon > 0.0:
            holds(mechanism.epsilon(float(exact), 1, rate), epsilon, 3e-8, 1e-12)


@pytest.mark.deep
@for_each([1.0, 0.1], [0.2, 2.0, 20.0], [1e-3, 1e-6, 1e-9])
def test_where_a_loss_turns(rate, scale, below):
    """Cauchy noise next to its largest loss, where delta falls by its 3/2 power."""
    mechanism = pn.Mechanism(pn.Cauchy(scale=scale))
    top = mechanism.epsilon(0.0, 1, rate).lower
    epsilon = top * (1.0 - below)
    exact = cauchy_delta(scale, epsilon, rate)
    found = mechanism.delta(epsilon, 1, rate)
    holds(found, exact, 1.0)
    # Heavy tails have a slack of 1e-11.
    assert found.upper <= found.lower * (1.0 + 1e-9 / (below * top))
    assert mechanism.epsilon(float(exact), 1, rate).lower <= epsilon * (1.0 + 1e-12)
    assert mechanism.epsilon(float(exact), 1, rate).upper >= epsilon * (1.0 - 1e-12)


@for_each([0.2, 1.0, 2.0, 20.0], [0.05, 0.4, 0.8, 0.99])
def test_cauchy_noise(scale, share):
    """A monotone loss would give delta(0.4) = 0 at scale 2, where it is 0.0151."""
    mechanism = pn.Mechanism(pn.Cauchy(scale=scale))
    epsilon = share * mechanism.pure_epsilon()
    exact = cauchy_delta(scale, epsilon)
    holds(mechanism.delta(epsilon), exact, 1e-6)
    holds(mechanism.epsilon(float(exact)), epsilon, 1e-6, 1e-9)
    assert float(cauchy_delta(2.0, 0.4)) == pytest.approx(0.0151, abs=1e-4)


# -- two uses --------------------------------------------------------------------------------------


@pytest.mark.deep
@for_rows(
    [
        (0.01, 0.2454),
        (0.01, 1.5),
        (0.2, 0.5),
        (0.2, 6.0),
        (0.001, 0.01),
        (0.001, 0.4),
        (0.001, 3.0),
        (0.001, 4.3),
        (1e-4, 0.5),
        (1e-5, 1e-3),
        (1e-6, 3e-7),
    ]
)
def test_two_sampled_gaussian_uses(rate, epsilon):
    """One rare large loss decides, where each must be a number of its own."""

    def profile(epsilon):
        return float(
            max(sampled_gaussian_delta_twice(epsilon, 1.0, rate, direction) for direction in WAYS)
        )

    mechanism, exact = pn.Mechanism(pn.Gaussian(std=1.0)), profile(epsilon)
    found = mechanism.delta(epsilon, 2, rate)
    holds(found, exact, 1.0, 1e-11)
    # As wide as two thousandths of epsilon make it.
    change = exact - profile(epsilon * (1.0 + 1e-3))
    assert found.width <= 2.0 * change + 1e-6 * exact
    holds(mechanism.epsilon(exact, 2, rate), epsilon, 1e-3, 1e-10)
    estimate = mechanism.composed(2, rate).estimate.delta(epsilon)
    assert estimate == pytest.approx(exact, rel=1e-4)
    assert mechanism.composed(2, rate).estimate.epsilon(exact) == pytest.approx(epsilon, rel=2e-6)


@for_each([0.01, 0.5], [0.1, 0.5, 0.93])
def test_two_sampled_laplace_uses(rate, share):
    epsilon = share * 2.0 * math.log1p(rate * math.expm1(1.0))
    exact = float(
        max(sampled_laplace_delta_twice(epsilon, 1.0, rate, direction) for direction in WAYS)
    )
    mechanism = pn.Mechanism(pn.Laplace(scale=1.0))
    holds(mechanism.delta(epsilon, 2, rate), exact, 1e-2, 1e-10)
    holds(mechanism.epsilon(exact, 2, rate), epsilon, 1e-3, 1e-9)


@for_rows([(1.0, 0.1, 0.2999444261559871), (1.0, 0.1, 0.29), (2.0, 1.0, 0.9)])
def test_two_uses_next_to_the_largest_loss(scale, rate, epsilon):
    """Of Cauchy noise, whose loss has a maximum inside: the tilted mass is between coarse nodes."""
    exact = float(cauchy_delta_twice(scale, rate, epsilon))
    mechanism = pn.Mechanism(pn.Cauchy(scale=scale))
    holds(mechanism.epsilon(exact, 2, rate), epsilon, 1e-3, 1e-10)
    found = mechanism.delta(epsilon, 2, rate)
    assert found.lower <= exact * (1.0 + 1e-8)
    assert found.upper >= exact * (1.0 - 1e-8)


# -- more ------------------------------------------------------------------------------------------


@pytest.mark.deep
@for_rows([(2, 1.0), (2, 0.2), (3, 2.0), (5, 1.0), (10, 2.0), (10, 5.0), (30, 3.0)])
def test_laplace_uses_against_the_exact_sum(count, scale):
    mechanism, top = pn.Mechanism(pn.Laplace(scale=scale)), count / scale
    # 0 and 0.2 * top are break points of the profile for some counts, the others are not.
    for share in (-0.3, 0.0, 0.06, 0.2, 0.37, 0.8, 0.98, 0.99):
        exact = laplace_delta(share * top, scale, count)
        found = mechanism.delta(share * top, count)
        before = laplace_delta((share - 1e-3 * max(abs(share), 0.01)) * top, scale, count)
        holds(found, exact, 1.0, 1e-14)
        # Or a ten-thousandth of delta, next to epsilon 0.
        assert found.upper <= before * (1.0 + 1e-4)
        if share > 0.0:
            holds(mechanism.epsilon(float(exact), count), share * top, 1e-3, 1e-10)


SETTLED = [
    (pn.Gaussian(std=1.0), 0.01, 3, 1e-8, 0.9769082162211885),
    (pn.Gaussian(std=1.0), 0.001, 10, 1e-6, 0.044097705369079816),
    (pn.Gaussian(std=1.0), 0.0001, 10, 1e-12, 0.04680707776887743),
    (pn.Gaussian(std=1.0), 0.01, 10, 1e-100, 24.99915942450542),
    (pn.Gaussian(std=1.0), 0.0001, 2000, 1e-100, 12.349484678366016),
    (pn.Gaussian(std=1.0), 0.0001, 10000, 1e-100, 12.468854430920688),
    (pn.Gaussian(std=1.0), 1e-06, 10000, 1e-9, 0.0005485542781915697),
    (pn.Gaussian(std=0.44), 1.0 / 2400.0, 2400, 1e-5, 4.0727890901519315),
    # All of the bulk in a bin or two: the typical loss is tiny, and rare ones are large.
    (pn.Gaussian(std=0.442), 1.0 / 2400.0, 2400, 1e-5, 4.002947469209274),
    (pn.Airy(mean_abs=2.0), 0.001, 2, 1e-100, 0.03932823502398507),
    # The other direction is next to its largest loss there.
    (pn.Airy(mean_abs=2.0), 0.01, 2, 1e-5, 0.01831809635373494),
    (pn.Cauchy(scale=1.0), 0.001, 5, 1e-5, 0.0038089374751600165),
    # Small noise at a small rate: nine tenths of the losses next to log(1 - q).
    (pn.Gaussian(std=0.3), 0.001, 10, 1e-12, 22.55303274021161),
    (pn.Gaussian(std=1.0), 0.001, 2, 1e-12, 0.4301919606673336),
    (pn.Gaussian(std=1.0), 0.1, 1, 1e-3, 0.6498847707031122),
    (pn.Gaussian(std=1.0), 0.1, 10, 1e-8, 4.64909119416195),
    (pn.Gaussian(std=1.0), 0.1, 2000, 1e-8, 48.40201342853727),
    (pn.Gaussian(std=1.0), 0.1, 10**6, 1e-12, 8165.811060486438),
    (pn.Gaussian(std=1.0), 0.01, 1, 1e-3, 0.021673409840147855),
    (pn.Gaussian(std=1.0), 0.01, 10, 1e-8, 1.1385201318611895),
    (pn.Gaussian(std=1.0), 0.01, 10**6, 1e-12, 175.76356068854702),
    (pn.Airy(mean_abs=2.0), 0.1, 1, 1e-3, 0.07875297704721565),
    (pn.Airy(mean_abs=2.0), 0.1, 10, 1e-8, 0.7429494636510143),
    (pn.Airy(mean_abs=2.0), 0.1, 10**6, 1e-12, 1103.4853929749117),
    (pn.Airy(mean_abs=2.0), 0.01, 1, 1e-3, 0.001840985577655209),
    (pn.Airy(mean_abs=2.0), 0.01, 10, 1e-8, 0.06841609248855884),
    (pn.Airy(mean_abs=2.0), 0.01, 2000, 1e-8, 0.940270409056225),
    (pn.Laplace(scale=2.0), 0.1, 1, 1e-3, 0.05976888800780069),
    (pn.Laplace(scale=2.0), 0.1, 10, 1e-8, 0.6277467366476019),
    (pn.Laplace(scale=2.0), 0.1, 2000, 1e-8, 13.614332820018651),
    (pn.Laplace(scale=2.0), 0.01, 1, 1e-3, 0.003349028032600889),
    (pn.Laplace(scale=2.0), 0.01, 10, 1e-8, 0.06347368301956245),
    (pn.Laplace(scale=2.0), 0.01, 10**6, 1e-12, 43.6155172933696),
]


@pytest.mark.deep
@for_rows(SETTLED)
def test_contour_integrals(law, rate, count, delta, exact):
    mechanism = pn.Mechanism(law)
    holds(mechanism.epsilon(delta, count, rate), exact, EXACT if count == 1 else 1e-3, 1e-10)
    if count in {2, 3, 10}:
        estimate = mechanism.composed(count, rate).estimate.epsilon(delta)
        assert estimate == pytest.approx(exact, rel=2e-6)


def test_two_kinds_of_few_uses():
    accountant = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=1.0)), 2, 0.01)
    accountant.compose(pn.Mechanism(pn.Airy(mean_abs=2.0)), 3, 0.05)
    holds(accountant.epsilon(1e-12), 2.177247262090981, 1e-3, 1e-10)


@for_rows(
    [
        (pn.TruncatedLaplace(epsilon=1.0, delta=1e-6), 300, 1.0, 0.0, 1.0),
        (pn.Staircase(epsilon=1.0), 20, 0.1, 0.0, 1.0),
        (pn.Staircase(epsilon=1.0), 300, 0.1, 0.0, 1e-5),
        (pn.Laplace(scale=2.0), 300, 0.001, 0.1, 0.1),
        (pn.Airy(mean_abs=1.0), 300, 1.0, 20.0, 1.0),
    ]
)
def test_delta_to_any_width_in_epsilon(noise, count, rate, epsilon, tolerance):
    """Refused before where the slope of delta changes over the tolerance, though the default width
    was no trouble. The upper end is no more than the lower one a tolerance before."""
    composed = pn.Mechanism(noise).composed(count, rate)
    found = composed.delta(epsilon, tolerance=tolerance)
    close = pn.Mechanism(noise).composed(count, rate)
    assert found.lower <= close.delta(epsilon).upper
    assert found.upper >= close.delta(epsilon).lower
    assert found.upper <= close.delta(epsilon - tolerance).upper
