"""Noise far too small, and sampling rates almost 1: cases in which one panel sees huge losses.

Kills: panels that do not resolve ``1 - e^{eps - L}`` just above epsilon (off by 0.8 at 1000
std), a resolution criterion that ignores the rounding of large losses (halves without end), and
``log1p(-q + ...)`` for q near 1.
"""

from __future__ import annotations

import math
import warnings
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_epsilon

import psinoise as pn
from psinoise.accounting.loss.steps import MASS_ROUNDING
from refusals import for_each


@for_each([0.1, 37.0, 100.0, 333.0, 1000.0], [1e-2, 1e-10, 1e-100])
def test_one_use_with_little_noise(mu, delta):
    found = pn.Mechanism(pn.Gaussian(std=1.0), mu).composed().estimate.epsilon(delta)
    assert found == pytest.approx(float(gaussian_epsilon(mu, delta)), rel=1e-9)


@for_each([100.0, 300.0, 1000.0])
def test_laplace_with_little_noise(ratio):
    """``eps = s/b + 2 log(1 - delta)`` for one use (Laplace, closed form)."""
    found = pn.Mechanism(pn.Laplace(scale=1.0), ratio).composed().estimate.epsilon(1e-6)
    assert found == pytest.approx(ratio + 2.0 * math.log1p(-1e-6), rel=1e-9)


def test_a_sampling_rate_of_almost_one_is_almost_no_sampling():
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    full = mechanism.composed(count=10).estimate.epsilon(1e-6)
    values = [
        mechanism.composed(count=10, sampling_rate=1.0 - gap).estimate.epsilon(1e-6)
        for gap in (1e-3, 1e-6, 1e-9, 1e-12)
    ]
    assert values == sorted(values)
    assert full - values[1] == pytest.approx(1.3e-5, rel=0.1)
    assert values[-1] == pytest.approx(full, rel=1e-9)


def test_infinite_losses_of_small_shifts_keep_their_digits():
    """Against 60 digits. Kills: a tail at ``A - s``, off by 1e-4 of itself; brackets without it."""
    generator, worst = np.random.default_rng(5), 0.0
    for _ in range(400):
        budget = 10 ** generator.uniform(-4.0, 2.8)
        least = max(-60.0, budget / math.log(10.0) - 300.0)
        law = pn.TruncatedLaplace(
            epsilon=budget, delta=10 ** generator.uniform(least, -0.31), sensitivity=3.0
        )
        shift = law.half_width * 10 ** generator.uniform(-12.0, 0.0)
        with mp.workdps(60):
            growth = mp.expm1(mp.mpf(budget)) / (2 * mp.mpf(law.delta)) * (1 + mp.mpf(2) ** -36)
            exact = mp.expm1(mp.mpf(shift) * mp.mpf(budget) / 3) / (2 * growth)
            found = pn.Mechanism(law, shift).delta(800.0)
            assert found.lower <= exact <= found.upper
            worst = max(worst, float(abs(found.estimate / exact - 1)))
    assert worst <= 0.5 * MASS_ROUNDING


@for_each([1e-280, 1e-100, 1e15, 1e40, 1e70, 1e250], [1e-200, 1e-250, 1e-300])
def test_units_change_nothing(unit, delta):
    """Mutant: densities per unit of outputs, which underflow (1e-9 below the truth)."""
    for count in (1, 4):
        found = pn.Mechanism(pn.Gaussian(std=unit), 0.5 * unit).epsilon(delta, count)
        exact = gaussian_epsilon(0.5 * math.sqrt(count), delta)
        assert found.lower <= exact <= found.upper
    sampled = pn.Mechanism(pn.Laplace(scale=unit), unit).epsilon(delta, 2, 0.5)
    plain = pn.Mechanism(pn.Laplace(scale=1.0), 1.0).epsilon(delta, 2, 0.5)
    assert sampled == pytest.approx(plain, rel=1e-9)


def test_deltas_that_float64_hardly_holds():
    """Kills: composers that underflow, of which upper ends were 30 times as large."""
    composed = pn.Mechanism(pn.Airy(mean_abs=1.0)).composed(30)
    found = composed.delta(1.03 * composed.estimate.epsilon(1e-290))
    assert 7.5e-318 <= found.lower <= found.upper <= min(1.01 * found.lower, 7.6e-318)
    beyond = composed.delta(1.2 * composed.estimate.epsilon(1e-290))
    assert (beyond.lower, beyond.upper) == (0.0, 5e-324)


@for_each(
    [pn.Gaussian, pn.Laplace, pn.Airy, partial(pn.SymmetricStable, alpha=1.5), pn.Cauchy],
    [2.0**1023, 1.7e308],
    [2.0**1023, 1.7e308],
    [1.0, 0.1],
)
def test_lengths_next_to_the_largest_float64(law, scale, shift, rate):
    """The unit of both is a float64. Two to the 1024th was no answer but an OverflowError."""
    unit = 2.0**1000
    far = pn.Mechanism(law(scale=scale), shift)
    near = pn.Mechanism(law(scale=scale / unit), shift / unit)
    words = {"sampling_rate": rate}
    found = far.epsilon(1e-5, **words)
    assert tuple(found) == pytest.approx(tuple(near.epsilon(1e-5, **words)), rel=1e-12)
    assert far.delta(0.5, **words) == pytest.approx(near.delta(0.5, **words), rel=1e-12)


@pytest.mark.filterwarnings("error")
@for_each([pn.Gaussian, pn.Laplace, pn.Cauchy], [5.0, 1e4])
def test_epsilons_that_float64_hardly_holds(law, ratio):
    """Kills: the logarithm of a quotient that underflows, a math domain error."""
    mechanism = pn.Mechanism(law(scale=1.0), ratio)
    for count, rate in ((1, 1.0), (3, 1.0), (3, 0.1)):
        near = mechanism.delta(1e-15, count, rate)
        for epsilon in (5e-324, 1e-310, 0.0):
            found = mechanism.delta(epsilon, count, rate)
            assert found.upper >= near.lower
            assert found.lower <= near.upper * (1.0 + 1e-12)
            assert found.width <= 1e-3 * found.upper


@pytest.mark.filterwarnings("error")
@for_each([1.38e5, 1.4e5, 3e5], [0.0, 1e-310, 1.0])
def test_next_to_no_noise_warns_of_nothing(ratio, epsilon):
    """Kills: quotients of masses that overflow between two samples of a loss."""
    found = pn.Mechanism(pn.Gaussian(std=1.0), ratio).delta(epsilon)
    assert 1.0 - 1e-9 <= found.lower <= found.upper <= 1.0


@for_each([(1e-8, 10**11), (1e-8, 10**12), (1e-11, 10**9)], [1, 150])
def test_very_many_uses_of_hardly_any_noise_beside_atoms(steps, atoms):
    """Kills: masses that miss 1 by 1e-11, to the power of 1e11, which overflowed."""
    scale, uses = steps
    accountant = pn.Accountant().compose(pn.Mechanism(pn.DiscreteLaplace(scale=2.44)), atoms)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = accountant.compose(pn.Mechanism(pn.Laplace(scale=scale)), uses).epsilon(1e-6)
    # A loss is the largest, 1 / scale, but for a few units.
    assert found.upper <= uses / scale * (1.0 + 1e-9)
    assert found.lower >= uses / scale * (1.0 - 1e-6)
