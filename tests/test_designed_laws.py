"""Laws made for a target: cactus, uniform with atom, staircase, truncated and discrete Laplace."""

from __future__ import annotations

import copy
import math
import pickle
import re

import numpy as np
import pytest
from scipy import optimize, stats

import psinoise as pn
from psinoise import DomainError
from psinoise.noise import DESIGNED, LAWS

SMALL = {"cells_per_sensitivity": 20, "cells": 160, "tail_ratio": 0.35}
MEMBERS = {
    "cactus": lambda: pn.Cactus(**SMALL),
    "cactus of |x|": lambda: pn.Cactus(3.0, 1.0, 1.5, 10, 120, 0.7),
    "cactus that is mostly tail": lambda: pn.Cactus(1.0, 2.0, 0.9, 2, 3, 0.8),
    "uniform": lambda: pn.UniformAtom(delta=0.3, sensitivity=2.0),
    "uniform with an atom": lambda: pn.UniformAtom(delta=0.9, power=2),
    "staircase": lambda: pn.Staircase(epsilon=1.0),
    "fine staircase": lambda: pn.Staircase(epsilon=1e-3, sensitivity=0.3, power=2),
    "truncated Laplace": lambda: pn.TruncatedLaplace(epsilon=1.0, delta=1e-3, sensitivity=0.7),
    "discrete Laplace": lambda: pn.DiscreteLaplace(scale=2.5),
    "wide discrete Laplace": lambda: pn.DiscreteLaplace(epsilon=1e-4, sensitivity=3),
}
WITH_DENSITY = [name for name in MEMBERS if "discrete" not in name and "atom" not in name]


@pytest.fixture(params=MEMBERS)
def law(request):
    """Each member in turn."""
    return MEMBERS[request.param]()


@pytest.fixture(params=WITH_DENSITY)
def smooth(request):
    """Members that have a density."""
    return MEMBERS[request.param]()


def points(law):
    """Points from the center to tail probabilities of 1e-30, atoms left out."""
    p = np.concatenate([np.linspace(0.499, 0.01, 60), 10.0 ** -np.linspace(2.1, 30.0, 60)])
    x = law.iccdf(p)
    return np.unique(x[x > 0.0])


def test_the_lists_are_complete():
    assert {type(make()) for make in MEMBERS.values()} == set(DESIGNED)
    assert not set(DESIGNED) & set(LAWS)
    assert all(getattr(pn, law.__name__) is law for law in DESIGNED)


# -- evaluation ------------------------------------------------------------------------------------


def test_symmetry_and_sum_of_the_tails(law):
    x = points(law)
    np.testing.assert_array_equal(law.cdf(x) + law.ccdf(x), 1.0)
    if not isinstance(law, pn.DiscreteLaplace):
        np.testing.assert_array_equal(law.cdf(-x), law.ccdf(x))
        np.testing.assert_array_equal(law.logcdf(-x), law.logccdf(x))
    assert law.cdf(np.inf) == law.ccdf(-np.inf) == 1.0
    assert law.cdf(-np.inf) == law.ccdf(np.inf) == 0.0
    assert law.logccdf(np.inf) == -np.inf
    for name in ("cdf", "ccdf", "logcdf", "logccdf", "icdf", "iccdf"):
        assert np.isnan(getattr(law, name)(np.nan))
    assert law.cdf(0.0) + law.ccdf(0.0) == 1.0
    assert isinstance(law.cdf(0.1), float)
    assert law.cdf(np.zeros((2, 3))).shape == (2, 3)


def test_monotone(law):
    x = np.sort(np.concatenate([-points(law), points(law)]))
    assert (np.diff(law.cdf(x)) >= 0.0).all()
    assert (np.diff(law.ccdf(x)) <= 0.0).all()
    inside = x[law.ccdf(x) > 0.0]
    assert (np.diff(law.logccdf(inside)) <= 0.0).all()


def test_logarithms(law):
    x = points(law)
    x = x[law.ccdf(x) > 0.0]
    np.testing.assert_allclose(law.logccdf(x), np.log(law.ccdf(x)), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(law.logcdf(x), np.log1p(-law.ccdf(x)), rtol=1e-13)


def test_quantiles_invert_the_distribution(smooth):
    p = np.concatenate([10.0 ** -np.arange(1.0, 13.0), [0.5, 0.25, 0.2500001, 0.4999999, 0.3]])
    x = smooth.iccdf(p)
    slope = np.abs(x) * smooth.pdf(x) / p
    assert (np.abs(smooth.ccdf(x) / p - 1.0) <= 1e-13 + 1e-15 * slope).all()
    np.testing.assert_array_equal(smooth.icdf(p), -x)
    # Kills: quantiles off by 1e-11.
    assert (np.abs(smooth.ccdf(x * (1 + 1e-11)) / p - 1.0) > 1e-13 + 1e-15 * slope).any()
    v = 2.0 ** -np.arange(10.0, 50.0)
    np.testing.assert_allclose(smooth.iccdf(0.5 - v) * smooth.pdf(0.0), v, rtol=1e-3)


def test_quantiles_far_out():
    law = MEMBERS["cactus that is mostly tail"]()
    p = 10.0 ** -np.linspace(1.0, 307.0, 500)
    x = law.iccdf(p)
    assert (np.diff(x) > 0.0).all()
    np.testing.assert_allclose(law.ccdf(x), p, rtol=1e-12)
    # logccdf goes on where ccdf underflows.
    far = np.array([1e4, 1e5])
    assert (law.ccdf(far) == 0.0).all()
    rate = -2.0 * math.log(0.8)
    assert np.diff(law.logccdf(far))[0] == pytest.approx(-rate * 9e4, rel=1e-9)


def test_ends_of_the_quantiles(law):
    end = getattr(law, "half_width", np.inf)
    np.testing.assert_allclose(law.icdf([0.0, 1.0]), [-end, end], rtol=1e-15)
    np.testing.assert_allclose(law.iccdf([0.0, 1.0]), [end, -end], rtol=1e-15)
    assert law.icdf(0.5) == law.iccdf(0.5) == 0.0
    assert np.isnan(law.icdf([-1e-300, 1.0 + 2.0**-52, np.nan, np.inf])).all()


def test_density_is_the_slope_of_the_distribution(smooth):
    """On intervals so short that none of the laws has many edges in one."""
    edges = np.linspace(0.0, float(smooth.iccdf(1e-9)), 4001)
    fine = np.linspace(edges[:-1], edges[1:], 401)
    middles = 0.5 * (fine[1:] + fine[:-1])
    mass = smooth.pdf(middles).mean(axis=0) * np.diff(edges)
    change = smooth.ccdf(edges[:-1]) - smooth.ccdf(edges[1:])
    # An edge of a cell moves the sum by one of 400 parts.
    jump = np.abs(np.diff(smooth.pdf(fine), axis=0)).sum(axis=0) * np.diff(edges) / 400
    assert (np.abs(mass - change) <= jump + 1e-12 * mass + 1e-15).all()
    np.testing.assert_allclose(np.log(smooth.pdf(middles)), smooth.logpdf(middles), rtol=1e-13)
    assert smooth.pdf(-0.1) == smooth.pdf(0.1)
    assert np.isnan(smooth.pdf(np.nan))
    # Kills: a density off by 1e-4.
    assert (np.abs(mass * (1 + 1e-4) - change) > jump + 1e-12 * mass + 1e-15).any()


def test_unimodal_as_declared(smooth):
    log_density = smooth.logpdf(np.linspace(0.0, float(smooth.iccdf(1e-6)), 20_001))
    assert (np.diff(log_density) <= 1e-12).all() == smooth.unimodal


def test_distribution_of_whole_numbers():
    for scale in (0.3, 2.5, 1000.0):
        law = pn.DiscreteLaplace(scale=scale)
        k = np.arange(-60.0, 61.0)
        a = math.exp(-1.0 / scale)
        np.testing.assert_allclose(
            law.pmf(k), (1 - a) / (1 + a) * np.exp(-np.abs(k) / scale), rtol=1e-12
        )
        np.testing.assert_allclose(np.diff(law.cdf(k)), law.pmf(k)[1:], rtol=1e-9, atol=1e-16)
        np.testing.assert_allclose(law.ccdf(k - 1) - law.ccdf(k), law.pmf(k), rtol=1e-9, atol=1e-16)
        np.testing.assert_array_equal(law.cdf(k + 0.7), law.cdf(k))
        assert law.pmf(0.5) == 0.0
        assert law.logpmf(0.5) == -np.inf
        small = k[(law.cdf(k) > 1e-12) & (law.ccdf(k) > 1e-12)]
        np.testing.assert_array_equal(law.icdf(law.cdf(small)), small)
        np.testing.assert_array_equal(law.iccdf(law.ccdf(small)), small)
        # Between two probabilities the quantile is the next whole number.
        between = law.cdf(small) - 0.3 * law.pmf(small)
        np.testing.assert_array_equal(law.icdf(between), small)
        np.testing.assert_array_equal(law.iccdf(law.ccdf(small) + 0.3 * law.pmf(small)), small)


def test_an_atom_is_a_step():
    law = pn.UniformAtom(delta=0.9)
    assert law.atom == pytest.approx(0.8, rel=1e-15)
    assert law.cdf(0.0) - law.cdf(-1e-300) == pytest.approx(0.8, rel=1e-15)
    np.testing.assert_array_equal(law.icdf([0.11, 0.5, 0.89]), 0.0)
    assert law.icdf(0.95) == pytest.approx(0.5 * law.half_width, rel=1e-13)


def test_what_has_no_density_says_so():
    for name in ("uniform with an atom", "discrete Laplace"):
        for method in ("pdf", "logpdf"):
            with pytest.raises(DomainError, match="no density"):
                getattr(MEMBERS[name](), method)(0.0)


# -- expectations ----------------------------------------------------------------------------------


def summed(law, function):
    """An expectation, from the distribution function alone: 2 integral of f' P(X > x)."""
    x = np.concatenate([[0.0], np.geomspace(1e-9, float(law.iccdf(1e-17)) + 1.0, 400_001)])
    middle = 0.5 * (x[1:] + x[:-1])
    return float(2.0 * np.sum(np.diff(function(x)) * law.ccdf(middle)) + function(np.zeros(1))[0])


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.0, 6.0])
def test_moments(law, order):
    assert law.moment(order) == pytest.approx(summed(law, lambda x: x**order), rel=2e-3)
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


# -- what the laws are for -------------------------------------------------------------------------


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
def test_truncated_laplace_spends_delta_exactly(epsilon, delta):
    law = pn.TruncatedLaplace(epsilon=epsilon, delta=delta, sensitivity=2.0)
    # Where the loss exceeds epsilon is where the shifted law has no density.
    assert law.ccdf(law.half_width - 2.0) == pytest.approx(delta, rel=1e-11)
    x = np.linspace(-law.half_width, law.half_width, 2001) * (1 - 1e-12)
    for shift in (0.3, 1.0, 2.0):
        both = np.abs(x - shift) <= law.half_width * (1 - 1e-12)
        ratio = law.logpdf(x[both]) - law.logpdf(x[both] - shift)
        assert np.abs(ratio).max() <= epsilon * (1 + 1e-12)
        assert law.ccdf(law.half_width - shift) <= delta * (1 + 1e-11)
    q = math.expm1(epsilon) / (2 * delta)
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
    assert law.scale == 3 / 0.7


# -- sampling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_samples_follow_the_law(law, dtype):
    """Chi-square on cells of equal probability, the outermost of 1e-4; false alarms 1e-6.

    Kills: an alias off by one, a sign that follows the position, a tail that ends.
    """
    count = 1_000_000
    x = law.sample(count, rng=2718, dtype=dtype)
    assert x.dtype == np.dtype(dtype)
    assert np.isfinite(x).all()
    inner = np.concatenate([[1e-4, 1e-3], np.linspace(0.01, 0.99, 99), [1 - 1e-3, 1 - 1e-4]])
    edges = np.unique(law.icdf(inner))
    if isinstance(law, pn.DiscreteLaplace):
        assert (x == np.rint(x)).all()
        edges = edges + 0.5
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * count
    found = np.bincount(np.searchsorted(edges, x, side="left"), minlength=edges.size + 1)
    keep = expected > 10.0
    statistic = np.sum((found[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-6
    # The sign says nothing about the size.
    right = np.abs(x[x > 0.0])
    assert abs(right.size - (x < 0.0).sum()) <= 5.0 * math.sqrt(count)
    shift = right.mean() - np.abs(x[x < 0.0]).mean()
    assert abs(shift) <= 5.0 * 2.0 * law.std / math.sqrt(count)


def test_the_tail_of_a_cactus_has_no_end():
    """Copies of the last cell, geometric: counts of 20 of them against their probabilities."""
    law = MEMBERS["cactus that is mostly tail"]()
    x = np.abs(law.sample(2_000_000, rng=5))
    number = np.ceil(2.0 * x - 0.5)
    masses = 2.0 * law.masses[-1] * 0.8 ** np.arange(200.0)
    expected = masses * x.size
    found = np.array([(number == 3 + k).sum() for k in range(200)])
    keep = expected > 10.0
    assert keep.sum() > 20
    statistic = np.sum((found[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum()) > 1e-6
    # Uniform in its cell.
    place = (2.0 * x[number > 0] + 0.5) % 1.0
    assert stats.kstest(place[:100_000], "uniform").pvalue > 1e-6


def test_sampling_arguments(law):
    flat = law.sample(1000, rng=1)
    np.testing.assert_array_equal(law.sample((10, 100), rng=1).ravel(), flat)
    np.testing.assert_array_equal(law.sample(1000, rng=1, threads=2), flat)
    out = np.empty(1000)
    assert law.sample(rng=1, out=out) is out
    np.testing.assert_array_equal(out, flat)
    assert isinstance(law.sample(rng=1), float)
    assert law.sample(rng=1) == flat[0]
    assert law.sample(0, rng=1).shape == (0,)
    with pytest.raises(TypeError, match="dtype must be float64 or float32"):
        law.sample(3, dtype=int)
    long = law.sample(200_003, rng=2, threads=1)
    np.testing.assert_array_equal(law.sample(200_003, rng=2, threads=3), long)


def test_samples_are_the_same_bytes_on_every_machine(run_python):
    """Not those of a cactus, whose masses are solved for: the kernel is covered by test_cells."""
    code = """
import hashlib
import psinoise as pn
found = hashlib.sha256()
for law in (
    pn.UniformAtom(delta=0.3), pn.UniformAtom(delta=0.9, power=2), pn.Staircase(epsilon=1.0),
    pn.Staircase(epsilon=0.1, power=2), pn.TruncatedLaplace(epsilon=0.3, delta=1e-5),
    pn.DiscreteLaplace(scale=7.3),
):
    for dtype in ("float64", "float32"):
        found.update(law.sample(50_003, rng=2024, dtype=dtype).tobytes())
print(found.hexdigest())
"""
    expected = "2042577ab95fa59bb0d67daad06526cf69efcbcab28623d977b77ede4b10a84d\n"
    for level in pn.build_config()["isa_available"]:
        assert run_python(code, PSINOISE_ISA=level) == expected
    assert run_python(code, PSINOISE_BACKEND="reference") == expected


# -- laws as objects -------------------------------------------------------------------------------


def test_laws_are_values(law):
    for other in (
        pickle.loads(pickle.dumps(law)),
        copy.copy(law),
        copy.deepcopy(law),
        eval(repr(law), vars(pn)),
    ):
        assert other == law
        assert hash(other) == hash(law)
        assert repr(other) == repr(law)
        np.testing.assert_array_equal(other.sample(5, rng=1), law.sample(5, rng=1))
    others = [make() for make in MEMBERS.values()]
    assert sum(law == other for other in others) == 1
    with pytest.raises(AttributeError):
        law.scale = 2.0
    with pytest.raises(AttributeError):
        law.new = 2.0


SIZES = [
    ("UniformAtom", {"delta": 0.3}, ("delta", "sensitivity", "power")),
    ("Staircase", {"epsilon": 1.0}, ("epsilon", "sensitivity", "power")),
    ("TruncatedLaplace", {"epsilon": 1.0, "delta": 0.1}, ("epsilon", "delta", "sensitivity")),
    ("DiscreteLaplace", {"epsilon": 1.0}, ("epsilon",)),
    ("DiscreteLaplace", {}, ("scale",)),
    ("Cactus", SMALL, ("sensitivity", "mean_cost", "tail_ratio", "cost")),
]


@pytest.mark.parametrize(
    ("law", "given", "name"), [(law, given, name) for law, given, names in SIZES for name in names]
)
def test_bad_numbers(law, given, name):
    for value in (0, -1.0, np.nan, np.inf, 5e-324):
        with pytest.raises(DomainError, match=f"^{name} must"):
            getattr(pn, law)(**{**given, name: value})
    for value in ("1", None, 1j, True, np.array([1.0])):
        with pytest.raises(TypeError, match=f"^{name} must"):
            getattr(pn, law)(**{**given, name: value})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pn.UniformAtom(delta=1.0), DomainError, "delta must be in (0, 1), got 1.0"),
        (lambda: pn.UniformAtom(delta=1.5), DomainError, "delta must be in [0, 1], got 1.5"),
        (
            lambda: pn.TruncatedLaplace(epsilon=1, delta=0.5),
            DomainError,
            "delta must be in (0, 1/2)",
        ),
        (
            lambda: pn.TruncatedLaplace(epsilon=701, delta=0.1),
            DomainError,
            "epsilon must be at most",
        ),
        (lambda: pn.TruncatedLaplace(epsilon=700, delta=1e-10), DomainError, "delta must be above"),
        (
            lambda: pn.Staircase(epsilon=701.0),
            DomainError,
            "epsilon must be at most 700.0, got 701.0",
        ),
        (lambda: pn.Staircase(epsilon=1.0, power=3), DomainError, "power must be 1 or 2, got 3"),
        (
            lambda: pn.DiscreteLaplace(scale=1, epsilon=1),
            TypeError,
            "exactly one of scale, epsilon",
        ),
        (pn.DiscreteLaplace, TypeError, "exactly one of scale, epsilon"),
        (
            lambda: pn.DiscreteLaplace(scale=1, sensitivity=1),
            TypeError,
            "sensitivity must be given",
        ),
        (lambda: pn.DiscreteLaplace(epsilon=1, sensitivity=0), DomainError, "at least 1, got 0"),
        (lambda: pn.DiscreteLaplace(epsilon=1, sensitivity=1.5), TypeError, "must be an integer"),
        (lambda: pn.DiscreteLaplace(scale=1e-3), DomainError, "scale must be in [0.01, 2**40]"),
        (lambda: pn.DiscreteLaplace(scal=1), TypeError, "did you mean 'scale'?"),
        (lambda: pn.Cactus(cells_per_sensitivity=0), DomainError, "must be at least 1, got 0"),
        (lambda: pn.Cactus(cells_per_sensitivity=2.0), TypeError, "must be an integer, got 2.0"),
        (lambda: pn.Cactus(cells=1), DomainError, "cells must be above cells_per_sensitivity"),
        (lambda: pn.Cactus(cells=2**15), DomainError, "at most 32767, got 32768"),
        (lambda: pn.Cactus(cells=1600.0), TypeError, "cells must be an integer, got 1600.0"),
        (lambda: pn.Cactus(tail_ratio=1.0), DomainError, "tail_ratio must be in [1e-6, 1 - 1e-6]"),
        (
            lambda: pn.Cactus(cost=13.0),
            DomainError,
            "cost must be a power in [1/8, 12] or callable",
        ),
        (lambda: pn.Cactus(cost=[1]), TypeError, "cost must be a real number, got [1]"),
        (lambda: pn.Cactus(cost=lambda x: x), DomainError, "cost must be even"),
        (lambda: pn.Cactus(cost=lambda x: -(x**2)), DomainError, "cost must not decrease in |x|"),
        (lambda: pn.Cactus(cost=lambda x: x**2 - 1), DomainError, "must not be negative"),
        (lambda: pn.Cactus(cost=lambda x: np.minimum(x * x, 9)), DomainError, "must grow without"),
        (lambda: pn.Cactus(cost=lambda x: x * np.nan), DomainError, "must not be NaN"),
        (lambda: pn.Cactus(cost=lambda x: x[:3]), TypeError, "cost(x) must have the shape of x"),
        (lambda: pn.Cactus(cost=lambda x: "no"), TypeError, "cost(x) must be real numbers"),
        (lambda: pn.Cactus(cost=lambda x: 1 / 0), ZeroDivisionError, "division"),
        (lambda: pn.Cactus(sensitivity=1e200), DomainError, "sensitivity must be of a size"),
        (lambda: pn.Cactus(sensitivity=1e-200), DomainError, "sensitivity must be of a size"),
        (lambda: pn.Cactus(progress=3), TypeError, "progress must be callable, got 3"),
        (lambda: pn.Cactus(mean_cost=1e-7), pn.CalibrationError, "mean_cost must be above"),
        (lambda: pn.Cactus(sensitvity=1.0), TypeError, "did you mean 'sensitivity'?"),
        (lambda: pn.UniformAtom(dleta=0.3), TypeError, "did you mean 'delta'?"),
        (
            lambda: pn.Staircase(epsilon=1.0, gama=3),
            TypeError,
            "unexpected keyword argument 'gama'",
        ),
        (pn.Staircase, TypeError, "missing 1 required keyword-only argument: 'epsilon'"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()


# -- the cactus ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figure_1():
    """The instance of figure 1 of the paper, which the default arguments are."""
    return pn.Cactus()


def test_figure_1(figure_1):
    certificate = figure_1.certificate
    assert certificate.largest_kl == pytest.approx(1.7272985311, abs=1e-8)
    assert 0.0 <= certificate.gap <= 1e-9
    assert certificate.active_shifts == (0.625, 0.72, 1.0)
    assert figure_1.pdf(0.0) == pytest.approx(2.458508775, rel=1e-6)
    assert figure_1.expected_cost(np.square) <= 0.25 * (1 + 1e-12)
    assert figure_1.std**2 == pytest.approx(0.25, rel=1e-12)
    mass = figure_1.masses[0] + 2 * figure_1.masses[1:-1].sum() + 20.0 * figure_1.masses[-1]
    assert mass == pytest.approx(1.0, abs=1e-15, rel=0)
    assert figure_1.pdf(0.6125) == pytest.approx(200 * figure_1.masses[122], rel=1e-14)  # its edge
    assert not figure_1.masses.flags.writeable


def test_no_shift_exceeds_the_certificate(figure_1):
    """Shifts between multiples of a cell too: there the divergence is linear."""
    shifts = np.concatenate([np.arange(1, 201) / 200, [0.6249, 0.62501, 0.99999, 0.1234]])
    divergences = np.array([figure_1.kl(shift) for shift in shifts])
    assert divergences.max() == pytest.approx(figure_1.certificate.largest_kl, abs=1e-10)
    assert (divergences <= figure_1.certificate.largest_kl + 1e-11).all()
    between = 0.3 * figure_1.kl(0.5) + 0.7 * figure_1.kl(0.505)
    assert figure_1.kl(0.5035) == pytest.approx(between, rel=1e-9)
    assert figure_1.kl(1.01) > figure_1.certificate.largest_kl


def test_sensitivity_is_a_unit_of_length(figure_1):
    wide = pn.Cactus(sensitivity=3.0, mean_cost=2.25)
    assert wide.certificate is figure_1.certificate
    assert wide.kl(3.0) == pytest.approx(figure_1.kl(1.0), rel=1e-12)
    assert wide.std == pytest.approx(1.5, rel=1e-12)
    assert wide != figure_1


def square(x):
    return x**2


def test_any_cost(figure_1):
    law = pn.Cactus(cost=square, **SMALL)
    assert law.certificate.largest_kl == pytest.approx(
        pn.Cactus(**SMALL).certificate.largest_kl, abs=1e-9
    )
    scaled = pn.Cactus(2.0, lambda x: 3.0 * x**2, 3.0, **SMALL)
    assert scaled.certificate.largest_kl == pytest.approx(law.certificate.largest_kl, abs=1e-9)
    logarithmic = pn.Cactus(cost=lambda x: np.log1p(np.abs(x)), mean_cost=0.3, **SMALL)
    assert logarithmic.certificate.gap < 1e-8
    assert logarithmic.expected_cost(lambda x: np.log1p(np.abs(x))) == pytest.approx(0.3, rel=1e-9)
    for copied in (pickle.loads(pickle.dumps(law)), copy.copy(scaled)):
        assert copied in (law, scaled)


def test_optima_are_kept_in_memory(figure_1, monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("solved again")

    monkeypatch.setattr("psinoise.noise.cactus.solve", fail)
    assert eval(repr(figure_1), vars(pn)) == figure_1
    with pytest.raises(AssertionError, match="solved again"):
        pn.Cactus(mean_cost=0.123, **SMALL)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("psinoise.noise.cactus._MOST_SOLUTIONS", 3)
    monkeypatch.setattr(pn.Cactus, "_solutions", {})
    for mean_cost in (0.2, 0.3, 0.4, 0.5):
        pn.Cactus(1.0, 2.0, mean_cost, 3, 24, 0.5)
    assert len(pn.Cactus._solutions) == 3


def test_progress():
    seen = []
    pn.Cactus(1.0, 2.0, 0.2501, 60, 240, 0.8, progress=lambda width, gap: seen.append((width, gap)))
    assert {width for width, _ in seen} == {12, 60}
    assert seen[-1][1] < 1e-9


def test_files(figure_1, tmp_path, monkeypatch):
    path = tmp_path / "cactus.json"
    figure_1.save(path)
    monkeypatch.setattr(pn.Cactus, "_solutions", {})
    loaded = pn.Cactus.load(path)
    assert loaded == figure_1
    assert loaded.certificate == figure_1.certificate
    np.testing.assert_array_equal(loaded.masses, figure_1.masses)
    assert eval(repr(loaded), vars(pn)) == figure_1
    law = pn.Cactus(cost=square, **SMALL)
    law.save(path)
    assert pn.Cactus.load(path, cost=square) == law
    with pytest.raises(DomainError, match="cost must be given"):
        pn.Cactus.load(path)
    with pytest.raises(FileNotFoundError):
        pn.Cactus.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("psinoise cactus", "other", "is not a cactus law of version 1"),
        ('"version": 1', '"version": 2', "is not a cactus law of version 1"),
        ('"mean_cost": 0.25', '"mean_cost": 0.2', "masses must meet the cost bound"),
        ('"cells": 160', '"cells": 161', "masses must be 162 probabilities"),
        ('"largest_kl": 1.7', '"largest_kl": 1.6', "largest_kl must be that of the masses"),
        ('"tail_ratio": 0.35', '"tail_ratio": 1.35', "tail_ratio must be"),
        ('"sensitivity"', '"sensitvity"', "is not a cactus law"),
        ('"0x1', '"zebra', "is not a cactus law"),
        ('"shifts": [', '"shifts": [7.0, ', "shifts and weights must be multipliers"),
        ("{", "[", "is not a cactus law"),
    ],
)
def test_damaged_files(tmp_path, old, new, message):
    path = tmp_path / "cactus.json"
    pn.Cactus(**SMALL).save(path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DomainError, match=message):
        pn.Cactus.load(path)
