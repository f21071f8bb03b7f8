"""What holds for every law: order, composition, contour, laws without log-concavity."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import brute_force_delta, sampled_gaussian_delta_twice

import psinoise as pn
from psinoise.accounting.estimate.composition import Composition
from psinoise.accounting.estimate.line import trace
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.quadrature import reach_for
from refusals import for_each, for_rows

LAWS = [pn.Gaussian, pn.Airy, pn.Laplace]


def rising(values):
    return all(a < b for a, b in itertools.pairwise(values))


@for_each(LAWS)
def test_monotone_in_every_parameter(law):
    def epsilon(delta=1e-6, count=300, rate=0.05, sensitivity=1.0, mean_abs=1.5):
        mechanism = pn.Mechanism(law(mean_abs=mean_abs), sensitivity)
        return mechanism.epsilon(delta, count, rate).upper

    assert rising([epsilon(count=n) for n in (1, 2, 3, 10, 100, 300, 1000, 10**5, 10**9)])
    assert rising([epsilon(rate=q) for q in (1e-3, 0.01, 0.1, 0.5, 0.9, 1.0)])
    assert rising([epsilon(sensitivity=s) for s in (0.01, 0.3, 1.0, 1.01, 2.0, 10.0)])
    assert rising([-epsilon(delta=d) for d in (1e-300, 1e-30, 1e-6, 1e-3, 0.1)])
    assert rising([-epsilon(mean_abs=b) for b in (0.2, 0.5, 1.5, 3.0, 50.0)])


@for_each(LAWS, [1, 2, 60])
def test_delta_falls_in_epsilon(law, count):
    mechanism = pn.Mechanism(law(mean_abs=2.0))
    epsilons = np.linspace(-1.0, 0.49 * count, 10)
    deltas = [mechanism.delta(float(e), count, 0.9).upper for e in epsilons]
    assert rising([-delta for delta in deltas])


@pytest.mark.deep
@for_each(LAWS, [0.02, 1.0])
def test_five_and_seven_are_twelve(law, rate):
    mechanism = pn.Mechanism(law(mean_abs=2.0))
    split = pn.Accountant().compose(mechanism, 5, rate).compose(mechanism, 7, rate)
    assert split.estimate.epsilon(1e-7) == mechanism.composed(12, rate).estimate.epsilon(1e-7)


@for_each(LAWS, [0.3, 1.0])
def test_steps_that_are_equal_but_not_merged(law, rate):
    """A factor of 1 + 1e-13 in the noise keeps the steps apart and changes nothing else."""
    accountant = pn.Accountant()
    for count, mean_abs in ((5, 2.0), (7, 2.0 * (1.0 + 1e-13))):
        accountant.compose(pn.Mechanism(law(mean_abs=mean_abs)), count, rate)
    together = pn.Mechanism(law(mean_abs=2.0)).composed(12, rate).estimate.epsilon(1e-4)
    assert accountant.estimate.epsilon(1e-4) == pytest.approx(together, rel=2e-6)


@pytest.mark.deep
@for_rows(
    (law, count, rate)
    for law in LAWS
    for count, rate in [(2, 1.0), (2, 0.2), (40, 0.2), (10**7, 0.01)]
)
def test_epsilon_and_delta_are_inverse(law, count, rate):
    mechanism = pn.Mechanism(law(mean_abs=2.0))
    for delta in (1e-2, 1e-9, 1e-150):
        epsilon = mechanism.composed(count, rate).estimate.epsilon(delta)
        back = mechanism.composed(count, rate).estimate.delta(epsilon)
        if epsilon < mechanism.composed(count, rate).estimate.epsilon(0.0) * (1 - 1e-4):
            # Where no contour converges, estimates lie in brackets of a millionth of epsilon.
            rel = 1e-5 if count == 2 else 1e-7 if law is pn.Laplace else 1e-8
            assert math.log(back) == pytest.approx(math.log(delta), rel=rel)


@for_rows(
    (direction, law, count, rate, delta)
    for direction in ["remove", "add"]
    for law, count, rate, delta in [
        (pn.Gaussian(std=1.0), 500, 0.05, 1e-10),
        (pn.Airy(mean_abs=2.0), 2000, 0.01, 1e-8),
        (pn.Airy(mean_abs=1.0), 3, 1.0, 1e-10),
        (pn.Laplace(scale=2.0), 2000, 0.01, 1e-8),
    ]
)
def test_the_contour_may_be_anywhere(direction, law, count, rate, delta):
    """Any c > 0 and any reach give the same integral: a wrong panel, step or end would not."""
    log_delta = math.log(delta)
    values = []
    for reach in (reach_for(log_delta, count), 1.4 * reach_for(log_delta, count)):
        composition = Composition.of(((Pair(law, 1.0, rate), count),), direction, reach)
        saddle = composition.saddle_at_delta(log_delta)
        for factor in (0.85, 1.0, 1.1):
            c = factor * saddle.c
            epsilon = saddle.epsilon
            for _ in range(2):
                # A line that was cut off has converged to 1e-11 of delta at one epsilon.
                line = trace(composition, composition.saddle(c), epsilon)
                epsilon = line.epsilon(log_delta, epsilon)
            values.append(epsilon)
    assert np.ptp(values) <= 1e-10 * max(1.0, *values)


@for_each([0.3, 1.0, 20.0])
def test_pure_epsilon_of_a_heavy_tailed_law(scale):
    """log((sqrt(4 g^2 + 1) + 1)/(sqrt(4 g^2 + 1) - 1)) with g = scale / sensitivity."""
    root = math.sqrt(4.0 * scale * scale + 1.0)
    exact = math.log((root + 1.0) / (root - 1.0))
    assert pn.Mechanism(pn.Cauchy(scale=scale)).pure_epsilon() == pytest.approx(exact, rel=1e-12)


@for_each([-0.6, 0.0, 0.3, 0.9])
def test_one_use_of_a_heavy_tailed_law(epsilon):
    law = pn.Cauchy(scale=1.0)
    exact = brute_force_delta(law.logpdf, epsilon, 1e9, 2_000_001)
    delta = pn.Mechanism(law).composed().estimate.delta(epsilon)
    # The oracle is a trapezoidal rule with kinks: 1e-9 at two million points.
    assert delta == pytest.approx(exact, abs=1e-8)


def test_compositions_of_a_heavy_tailed_law():
    """Saturated shifts: epsilon per use tends to the mean loss, KL = log(1 + s^2/(4 g^2))."""
    epsilon = pn.Mechanism(pn.Cauchy(scale=1.0)).composed(10**12).estimate.epsilon(1e-6)
    mean = 10**12 * math.log(1.25)
    # Within 6 standard deviations of the composed loss, whose variance per use is below 1.
    assert 0.0 < epsilon - mean < 6.0 * 1e6


def test_a_law_without_known_worst_shift_is_refused():
    class Bimodal(pn.Laplace):
        unimodal = False

    mechanism = pn.Mechanism(Bimodal(scale=1.0))
    for call in (
        lambda: mechanism.composed().estimate.epsilon(1e-6),
        lambda: mechanism.composed().estimate.delta(1.0),
        mechanism.pure_epsilon,
        lambda: pn.Accountant().compose(mechanism),
    ):
        with pytest.raises(pn.DomainError, match="unimodal"):
            call()


def test_tiny_sampling_rate_of_many_uses():
    """n q^2 fixed and q -> 0 is the Gaussian limit with mu^2 = n q^2 (e^{1/sigma^2} - 1)."""
    rate, count = 1e-8, 10**16
    mu = math.sqrt(count * rate**2 * math.expm1(1.0))
    epsilon = pn.Mechanism(pn.Gaussian(std=1.0)).composed(count, rate).estimate.epsilon(1e-5)
    limit = pn.Mechanism(pn.Gaussian(std=1.0 / mu)).composed().estimate.epsilon(1e-5)
    # The skewness of a step, of order q, is all that is left; 1e16 steps cost 8 digits.
    assert epsilon == pytest.approx(limit, rel=1e-6)


def test_extreme_ratio_of_sensitivity_and_scale():
    for sensitivity, count in ((1e-7, 10**12), (1e3, 3)):
        mechanism = pn.Mechanism(pn.Gaussian(std=1.0), sensitivity)
        one = pn.Mechanism(pn.Gaussian(std=1.0), sensitivity * math.sqrt(count))
        epsilon = mechanism.composed(count).estimate.epsilon(1e-9)
        assert epsilon == pytest.approx(one.composed().estimate.epsilon(1e-9), rel=1e-6)


def test_mpmath_is_not_the_limit():
    """The oracle for two uses agrees with the analytic profile where both apply (rate near 1)."""
    value = sampled_gaussian_delta_twice(1.0, 2.0, 1.0 - 1e-15, "remove")
    exact = pn.Mechanism(pn.Gaussian(std=2.0)).composed(2).estimate.delta(1.0)
    assert float(mp.mpf(value)) == pytest.approx(exact, rel=1e-10)
