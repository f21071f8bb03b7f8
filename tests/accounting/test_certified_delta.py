"""Certified delta: around the exact profile, and as narrow as the tolerance says.

The tolerance is a distance in epsilon: ``upper / lower`` is at most ``delta(epsilon - tolerance)``
over ``delta(epsilon)``. Exact values: the analytic Gaussian profile at 60 digits.
"""

from __future__ import annotations

import math

import mpmath
import pytest
from profile_oracles import gaussian_delta, gaussian_epsilon, laplace_delta

import psinoise as pn
from psinoise.accounting.certified import certify_delta
from psinoise.accounting.certified.certify_delta import delta_bounds
from psinoise.accounting.loss.pairs import Pair

# On the lattice that the tolerance suggests these are up to twice as wide as asked.
WIDE = [(2, 1e-8), (3, 1e-30), (10**9, 1e-2)]


@pytest.mark.parametrize(
    ("count", "delta", "tolerance"),
    [
        *((count, delta, None) for count, delta in [*WIDE, (20, 1e-5), (2000, 1e-100)]),
        *((count, delta, 1e-2) for count, delta in [(1, 1e-8), (20, 1e-5), (2000, 1e-100)]),
        *((count, delta, 1e-6) for count, delta in [(1, 1e-8), (20, 1e-5)]),
    ],
)
def test_gaussian(count, delta, tolerance):
    mu = mpmath.sqrt(count)
    epsilon = float(gaussian_epsilon(mu, delta))
    width = tolerance or 1e-4 * max(1.0, epsilon)
    bounds = pn.Mechanism(pn.Gaussian(std=1.0)).delta(epsilon, count, tolerance=tolerance)
    exact = gaussian_delta(epsilon, mu)
    assert bounds.lower <= exact <= bounds.upper
    moved = gaussian_delta(epsilon - width, mu) / exact
    # 1e-9 for the estimates of delta that decide.
    assert bounds.upper / bounds.lower <= moved * (1 + 1e-9) or bounds.upper <= 1.0000001 * exact


@pytest.mark.parametrize(("count", "delta"), WIDE)
def test_what_is_not_verified_is_wider(count, delta):
    """The mutant: the first bounds, as they come."""
    epsilon = float(gaussian_epsilon(mpmath.sqrt(count), delta))
    steps = ((Pair(pn.Gaussian(std=1.0), 1.0, 1.0), count),)
    width = 1e-4 * max(1.0, epsilon)
    mu = mpmath.sqrt(count)
    moved = gaussian_delta(epsilon - width, mu) / gaussian_delta(epsilon, mu)
    unverified = delta_bounds(steps, epsilon, None)
    assert unverified.upper / unverified.lower > moved
    verified = certify_delta.certify_delta(steps, epsilon, None)
    assert verified.upper / verified.lower <= moved * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 4.9])
def test_laplace(epsilon):
    bounds = pn.Mechanism(pn.Laplace(scale=2.0)).delta(epsilon, 10)
    exact = laplace_delta(epsilon, 2.0, 10)
    assert bounds.lower * (1 - 1e-13) <= exact <= bounds.upper * (1 + 1e-13)


def test_the_upper_bound_alone():
    """Atoms of sampled Laplace noise: the lower bound converges slowly, the upper one does not."""
    mechanism, words = pn.Mechanism(pn.Laplace(scale=15.87)), {"count": 188, "sampling_rate": 0.344}
    upper = mechanism.delta(0.0, method="upper", **words)
    estimate = mechanism.delta(0.0, method="estimate", **words)
    moved = mechanism.delta(-1e-4, method="estimate", **words)
    assert estimate <= upper <= estimate * (moved / estimate) * (1.0 + 1e-9)
    # Two-sided bounds are as narrow as they say, or refused.
    try:
        bounds = mechanism.delta(0.0, **words)
    except pn.CertificationError as error:
        assert "method='upper'" in str(error)
    else:
        assert bounds.upper / bounds.lower <= moved / estimate * (1.0 + 1e-9)


@pytest.mark.parametrize("epsilon", [-math.inf, -40.0, 0.0, 40.0, 700.0, math.inf])
def test_ends_of_the_profile(epsilon):
    """Near 1 delta hardly moves, and the floor of 1e-7 is what can be asked; near 0 it vanishes."""
    bounds = pn.Mechanism(pn.Gaussian(std=2.0)).delta(epsilon, 3, 0.5)
    assert bounds.lower <= bounds.estimate <= bounds.upper
    assert bounds.upper <= bounds.lower * (1.0 + 1e-2) or bounds.upper <= 5e-324


def test_a_width_that_cannot_be_had_is_refused(monkeypatch):
    steps = ((Pair(pn.Gaussian(std=1.0), 1.0, 1.0), 2000),)
    with pytest.raises(pn.CertificationError):
        certify_delta.certify_delta(steps, 1000.0, 1e-14)
    wide = pn.Bracket(1e-9, 1e-8, 1e-7)
    monkeypatch.setattr(certify_delta, "delta_bounds", lambda *_: wide)
    with pytest.raises(pn.CertificationError, match=r"a width of 0\.01 in epsilon"):
        certify_delta.certify_delta(steps, 2000.0, 0.01)
