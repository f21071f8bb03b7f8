"""Expectations of the laws that are made for a target."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import psinoise as pn
from designed_members import MEMBERS
from refusals import for_each, for_rows

# Small cactus laws are quick, not good.
pytestmark = pytest.mark.filterwarnings("ignore:the divergence of:UserWarning")


@pytest.fixture(params=MEMBERS)
def law(request):
    """Each member in turn."""
    return MEMBERS[request.param]()


def summed(law, function):
    """An expectation, from the distribution function alone: 2 integral of f' P(X > x)."""
    x = np.concatenate([[0.0], np.geomspace(1e-9, float(law.iccdf(1e-17)) + 1.0, 400_001)])
    middle = 0.5 * (x[1:] + x[:-1])
    return float(2.0 * np.sum(np.diff(function(x)) * law.ccdf(middle)) + function(np.zeros(1))[0])


@pytest.mark.deep
@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.0, 6.0])
def test_moments(law, order):
    exists = order < getattr(law, "tail_index", 0.0) or law.std < math.inf
    expected = summed(law, lambda x: x**order) if exists else math.inf
    assert law.moment(order) == pytest.approx(expected, rel=2e-3)
    assert law.moment(0) == pytest.approx(1.0, rel=1e-14)


def test_expectations_agree_with_each_other(law):
    if law.scale > 1e4:
        return
    assert law.expected_cost(np.abs) == pytest.approx(law.mean_abs, rel=1e-12)
    assert law.expected_cost(np.square) == pytest.approx(law.std**2, rel=1e-12)
    assert law.moment(1.0) == pytest.approx(law.mean_abs, rel=1e-14)
    assert law.moment(2.0) == pytest.approx(law.std**2, rel=1e-14)
    assert law.expected_cost(np.ones_like) == pytest.approx(1.0, rel=1e-13)


def test_long_tails_are_summed():
    """Euler and Maclaurin beyond 2**14 steps, against the closed form."""
    law = pn.Staircase(epsilon=1e-6)
    assert law.expected_cost(np.abs) == pytest.approx(law.mean_abs, rel=1e-12)
    assert law.expected_cost(np.square) == pytest.approx(law.std**2, rel=1e-12)
    # Where the summands are near their largest after 2**14 steps: against the plain sum.
    law = pn.Staircase(epsilon=5e-4)
    k, gamma = np.arange(0.0, 400_000.0), law.gamma
    first, second = law.pdf(0.0), law.pdf(0.5 * (1.0 + gamma))
    steps = first * ((k + gamma) ** 7 - k**7) + second * ((k + 1) ** 7 - (k + gamma) ** 7)
    expected = 2.0 / 7.0 * np.sum(np.exp(-5e-4 * k) * steps)
    assert law.moment(6.0) == pytest.approx(expected, rel=1e-11)
    # Nearly the Laplace law of scale 1e6.
    law = pn.Staircase(epsilon=1e-6)
    assert law.moment(0.5) == pytest.approx(1e3 * math.gamma(1.5), rel=1e-6)
    assert law.moment(3.0) == pytest.approx(6e18, rel=1e-5)


@for_each([1e-18, 1e-20, 1e-100, 1e-160, 1e-200, 1e-250], [1.0, 1e-5, 1e-50])
def test_moments_of_the_longest_tails(epsilon, scale):
    """A staircase of such an epsilon is the Laplace law of a scale."""
    law = pn.Staircase(epsilon=epsilon, sensitivity=epsilon * scale)
    assert law.expected_cost(np.abs) == pytest.approx(scale, rel=1e-12, abs=0.0)
    assert law.std == pytest.approx(math.sqrt(2.0) * scale, rel=1e-14, abs=0.0)
    for order in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        expected = math.gamma(order + 1.0) * scale**order
        assert law.moment(order) == pytest.approx(expected, rel=1e-12, abs=0.0)


@for_rows(
    [
        (pn.TruncatedLaplace(epsilon=1e-90, delta=1e-5), 5e4, 1e-10),
        (pn.TruncatedLaplace(epsilon=1e-150, delta=1e-12), 5e11, 1e-10),
        (pn.TruncatedLaplace(epsilon=1e-200, delta=1e-5), 5e4, 1e-10),
        (pn.TruncatedLaplace(epsilon=1e-300, delta=0.25, sensitivity=1e-6), 2e-6, 1e-10),
        (pn.UniformAtom(delta=1e-200, sensitivity=1e-200), 0.5, 1e-13),
        (pn.UniformAtom(delta=1e-160, sensitivity=1e-150), 5e9, 1e-13),
    ]
)
def test_moments_of_bounded_laws_far_from_their_scale(law, half_width, error):
    """They are uniform: the density of the truncated Laplace law falls by nothing."""
    assert law.std == pytest.approx(half_width / math.sqrt(3.0), rel=error, abs=0.0)
    assert law.mean_abs == pytest.approx(0.5 * half_width, rel=error, abs=0.0)
    for order in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 7.5):
        expected = half_width**order / (order + 1.0)
        assert law.moment(order) == pytest.approx(expected, rel=10 * error, abs=0.0)


def test_high_moments_of_the_truncated_laplace_law():
    """Powers overflow where their product with the density does not."""
    law = pn.TruncatedLaplace(epsilon=700.0, delta=1e-3, sensitivity=700.0)
    assert law.moment(110.0) == pytest.approx(math.gamma(111.0), rel=1e-12)
    assert law.moment(400.0) == math.inf


def test_divergences():
    for law, shift in ((MEMBERS["staircase"](), 0.37), (MEMBERS["cactus of |x|"](), 1.234)):
        x = np.linspace(-80.0, 80.0, 4_000_001) + 1e-7
        here, there = law.logpdf(x), law.logpdf(x - shift)
        expected = np.sum(np.exp(here) * (here - there)) * (x[1] - x[0])
        assert law.kl(shift) == pytest.approx(expected, rel=1e-4)
        assert law.kl(-shift) == law.kl(shift)
        assert law.kl(0.0) == 0.0
        # Linear up to the narrowest cell, and so exact where differences of edges are not.
        assert law.kl(1e-300) == pytest.approx(law.kl(0.02) * 5e-299, rel=1e-11)
        assert law.kl(0.02) == pytest.approx(law.kl(0.25) * 0.08, rel=1e-11)
    law = pn.DiscreteLaplace(scale=3.0)
    k = np.arange(-500.0, 501.0)
    for shift in (1.0, 4.0):
        expected = np.sum(law.pmf(k) * (np.abs(k - shift) - np.abs(k))) / 3.0
        assert law.kl(shift) == pytest.approx(expected, rel=1e-13)
    assert law.kl(0.5) == math.inf
    wide = pn.DiscreteLaplace(scale=1e6)
    for shift in (2**20, 2**21):  # a sum, and the closed form
        x = shift / 1e6
        assert wide.kl(shift) == pytest.approx(x + math.expm1(-x), rel=1e-9)
    for name in ("uniform", "uniform with an atom", "truncated Laplace"):
        assert MEMBERS[name]().kl(0.1) == math.inf
    assert MEMBERS["staircase"]().fisher_information() == math.inf


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("epsilon", [0.01, 5.0, 38.0, 66.0, 100.0, 300.0, 690.0])
def test_divergences_of_thin_steps(epsilon, power):
    """Kills: pieces at rounded places, where steps of e^(-epsilon / 2) next to 1 have another width
    or none; 48 for 74, and 1e-20 for 100."""
    law = pn.Staircase(epsilon=epsilon, power=power)
    for shift in (1e-9, 0.3, 1.0, 2.0):
        renyi = pn.Mechanism(law, shift).composed(1).renyi_divergence(1.0)
        assert law.kl(shift) == pytest.approx(renyi, rel=1e-9)
        assert law.kl(shift) <= epsilon * math.ceil(shift) * (1.0 + 1e-12)
        assert law.kl_variance(shift) >= 0.0
    # Moved by its period the law is at losses of epsilon and -epsilon, but for the middle.
    with mpmath.workdps(400):
        e, width = mpmath.mpf(epsilon), mpmath.mpf(float(law.partition.edges[1]))
        fall = mpmath.exp(-e)
        center = 0.5 + (1 - fall) / 2 * width / (width + fall * (1 - width))
        mean, square = e * (1 - fall) * center, e**2 * (1 + fall) * center
        assert law.kl(1.0) == pytest.approx(float(mean), rel=1e-11)
        assert law.kl_variance(1.0) == pytest.approx(float(square - mean**2), rel=1e-9, abs=1e-300)


def test_moments_of_enormous_orders_of_a_bounded_law():
    """Kills: quadrature that finds nothing where a power is at the end of the support alone."""
    for sensitivity in (1.0, 0.3):
        law = pn.UniformAtom(delta=0.1, sensitivity=sensitivity)
        assert law.support > 1.0
        for order in (5e5, 1e8, 1e300):
            assert law.moment(order) == math.inf
    unit = pn.UniformAtom(delta=0.1, sensitivity=0.2)  # on [-1, 1]
    assert unit.moment(1e6) == pytest.approx(1.0 / (1e6 + 1.0), rel=1e-9)
