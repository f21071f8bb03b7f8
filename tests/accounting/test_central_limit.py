"""The Gaussian limit of many uses, and the limit of very many."""

from __future__ import annotations

import itertools
import math

import pytest

import psinoise as pn
from refusals import for_each


@for_each([1, 30, 10**4])
def test_exact_for_gaussian_noise(count):
    mechanism = pn.Mechanism(pn.Gaussian(std=3.0))
    epsilon = mechanism.composed(count).estimate.epsilon(1e-7)
    assert mechanism.composed(count).clt.epsilon(1e-7) == pytest.approx(epsilon, rel=1e-10)
    delta = mechanism.composed(count).estimate.delta(epsilon)
    assert mechanism.composed(count).clt.delta(epsilon) == pytest.approx(delta, rel=1e-8)


@for_each([pn.Airy, pn.Laplace], [0.1, 1.0])
def test_converges(law, rate):
    """Noise grows with sqrt(n), so that the limit is one Gaussian; the error falls with n."""
    errors = []
    for count in (10, 100, 1000, 10**4, 10**5):
        mechanism = pn.Mechanism(law(mean_abs=rate * math.sqrt(count)))
        exact = mechanism.composed(count, rate).estimate.epsilon(1e-5)
        errors.append(abs(mechanism.composed(count, rate).clt.epsilon(1e-5) / exact - 1.0))
    assert all(b < 0.6 * a for a, b in itertools.pairwise(errors))
    assert errors[-1] < 1e-3


def test_an_approximation_can_be_too_small():
    mechanism = pn.Mechanism(pn.Gaussian(std=0.5))
    assert mechanism.composed(100, 0.001).clt.epsilon(1e-6) < 0.1 * mechanism.composed(
        100, 0.001
    ).estimate.epsilon(1e-6)


def test_edges():
    mechanism = pn.Mechanism(pn.Airy(mean_abs=2.0))
    assert mechanism.composed(4).clt.epsilon(1.0) == 0.0
    assert mechanism.composed(4).clt.epsilon(0.0) == math.inf
    assert mechanism.composed(4).clt.delta(math.inf) == 0.0
    assert pn.Accountant().clt.epsilon(1e-6) == 0.0
    assert pn.Accountant().clt.delta(0.0) == 0.0
    with pytest.raises(pn.DomainError, match="clt"):
        pn.Mechanism(pn.Gaussian(std=1e20)).composed().clt.epsilon(1e-6)


@for_each([pn.Gaussian, pn.Airy, pn.Laplace])
def test_epsilon_per_use_tends_to_the_divergence(law):
    """Alghamdi et al., "Schrodinger mechanisms", theorem 1: epsilon/n -> KL(p, T_s p)."""
    noise = law(mean_abs=2.0)
    mechanism = pn.Mechanism(noise, 1.5)
    limit = noise.kl(1.5)
    misses = [
        mechanism.composed(count).estimate.epsilon(1e-6) / count / limit - 1.0
        for count in (10**4, 10**6, 10**8)
    ]
    # The miss is z sqrt(variance / n) / kl: a tenth for a hundred times the uses.
    for first, second in itertools.pairwise(misses):
        assert second == pytest.approx(first / 10.0, rel=0.05)
    assert 0.0 < misses[-1] < 2e-3
