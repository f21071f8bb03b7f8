"""Symmetric stable noise beside the contract that all laws share (test_laws.py).

Statistics, stability under sums against an independent sampler, the largest loss, the object.
Accuracy is in test_stable_accuracy.py.
"""

from __future__ import annotations

import math
import pickle
import re
from collections import OrderedDict

import numpy as np
import pytest
from scipy import special, stats

import psinoise as pn
from psinoise.noise import _base
from stable_truth import DATA, INDICES


def stable(alpha, scale=1.0):
    return pn.SymmetricStable(alpha=alpha, scale=scale)


def near(value, relative):
    return pytest.approx(value, rel=relative, abs=0.0)


# -- statistics ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "distortion"),
    [(2.0, 1.1284), (1.999, 1.1289), (1.99, 1.1340), (1.95, 1.1576), (1.9, 1.1903), (1.8, 1.2687)],
)
def test_distortion_of_table_1(alpha, distortion):
    """E|Y| / scale as the paper prints it, to its four decimals."""
    assert stable(alpha, 3.0).mean_abs / 3.0 == pytest.approx(distortion, abs=6e-5)


def test_infinite_moments():
    assert stable(1.0).mean_abs == stable(0.5).mean_abs == math.inf
    law = stable(1.5)
    assert law.moment(1.5) == law.moment(2) == law.expected_cost(np.square) == math.inf
    assert law.moment(1.4999) > 1e3
    assert law.std == math.inf
    assert stable(1.0).expected_cost(np.abs) == math.inf


@pytest.mark.parametrize(("alpha", "expected", "error"), DATA["fisher"])
def test_fisher_information(alpha, expected, error):
    # The error that the reference states of itself, where its step was too long.
    bound = max(1e-12, float(error))
    assert stable(float(alpha)).fisher_information() == pytest.approx(float(expected), abs=bound)


def test_kl_grows_like_a_logarithm():
    """``D ~ (1 + alpha) log s``: a cost that light tails do not have."""
    for alpha in (0.5, 1.5, 1.9):
        law = stable(alpha)
        growth = (law.kl(1e9) - law.kl(1e8)) / math.log(10.0)
        assert growth == near(1.0 + alpha, 1e-3)


# -- sums ------------------------------------------------------------------------------------------


def test_aggregate():
    law = stable(1.5, 2.0)
    assert law.aggregate(1) == law
    assert law.aggregate(8).alpha == 1.5
    assert law.aggregate(8).scale == near(8.0, 2e-16)
    assert law.aggregate(4).aggregate(2).scale == near(8.0, 1e-15)
    exact = pn.SymmetricStable(two_minus_alpha=1e-12, scale=1.0)
    assert exact.aggregate(100).two_minus_alpha == 1e-12
    for bad, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)):
        with pytest.raises(error, match="count must be"):
            law.aggregate(bad)


def test_weighted_sums():
    """Against the product of characteristic functions, by the logarithm of each."""
    laws, weights = [stable(1.5, s) for s in (2.0, 0.5, 1e3)], [-3.0, 1e3, 0.25]
    total = pn.SymmetricStable.weighted_sum(laws, weights)
    exponent = sum(abs(a * law.scale) ** 1.5 for a, law in zip(weights, laws, strict=True))
    assert total.scale**1.5 == near(exponent, 1e-13)
    assert pn.SymmetricStable.weighted_sum([laws[0]] * 8).scale == near(8.0, 1e-14)
    assert pn.SymmetricStable.weighted_sum([stable(2.0, 3e200), stable(2.0, 4e200)]).scale == near(
        5e200, 1e-14
    )
    for bad, factors, error in (
        ([], None, ValueError),
        ([stable(1.5), stable(1.4)], None, ValueError),
        ([stable(1.5), pn.Laplace(scale=1.0)], None, TypeError),
        (laws, [1.0], ValueError),
        (laws, [0.0, 0.0, 0.0], ValueError),
        (laws, [1.0, math.nan, 1.0], ValueError),
        (laws, [1.0, math.inf, 1.0], ValueError),
    ):
        with pytest.raises(error, match=r"laws must|weights must"):
            pn.SymmetricStable.weighted_sum(bad, factors)


@pytest.mark.parametrize(
    ("alpha", "scale", "dtype"), [(0.1, 1.0, "f4"), (0.4, 1.0, "f4"), (1.0, 1e25, "f4")]
)
def test_no_sample_overflows_its_type(alpha, scale, dtype):
    with pytest.raises(pn.DomainError, match="dtype must be wider"):
        stable(alpha, scale).sample(1000, rng=1, dtype=dtype)
    if scale == 1.0:
        with pytest.raises(pn.DomainError, match="dtype must be wider"):
            pn.DiscreteStable(alpha=alpha, scale=scale).sample(2, rng=1, dtype=dtype)
    assert np.isfinite(stable(alpha, scale).sample(100_000, rng=1)).all()
    assert np.isfinite(stable(2.0, 1e30).sample(1000, rng=1, dtype=dtype)).all()
    # The index 2 has a normal tail, and is refused where other normal laws are.
    assert np.isfinite(stable(2.0, 1e306).sample(1000, rng=1)).all()
    with pytest.raises(pn.DomainError, match="dtype must be wider"):
        stable(2.0, 1.7e308).sample(1000, rng=1)


def kolmogorov(law, x):
    """p-value of Kolmogorov's distance on 2^16 cells."""
    cells = 1 << 16
    counts = np.bincount((law.cdf(x) * cells).astype(np.int64).clip(0, cells - 1), minlength=cells)
    gap = np.abs(np.cumsum(counts) / x.size - np.arange(1, cells + 1) / cells).max()
    return float(special.kolmogorov(gap * math.sqrt(x.size)))


@pytest.mark.deep
@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.5, 1.9])
def test_sums_of_samples_have_the_law_of_the_aggregate(alpha):
    """1e7 sums of three draws (4e6 where the sampling is not in question)."""
    count = 10_000_000 if alpha == 1.5 else 4_000_000
    law = stable(alpha)
    total = law.sample(count, rng=1)
    for seed in (2, 3):
        total += law.sample(count, rng=seed)
    assert kolmogorov(law.aggregate(3), total) > 1e-6
    # Mutants: the scale of another index, and of another number of draws.
    assert kolmogorov(stable(alpha, 3.0 ** (1.0 / (alpha + 0.03))), total) < 1e-6
    assert kolmogorov(law, total) < 1e-6


def chambers_mallows_stuck(alpha, count, seed):
    """The symmetric case of Chambers, Mallows and Stuck (JASA 71, 1976), in plain NumPy."""
    generator = np.random.default_rng(seed)
    angle = np.pi * (generator.uniform(size=count) - 0.5)
    w = generator.exponential(size=count)
    return (
        np.sin(alpha * angle)
        / np.cos(angle) ** (1.0 / alpha)
        * (np.cos((1.0 - alpha) * angle) / w) ** ((1.0 - alpha) / alpha)
    )


@pytest.mark.deep
@pytest.mark.parametrize("alpha", [0.4, 0.99, 1.3, 1.97])
def test_two_samples_with_chambers_mallows_stuck(alpha):
    count = 400_000
    theirs = chambers_mallows_stuck(alpha, count, 8)
    ours = stable(alpha).sample(count, rng=8)
    assert stats.ks_2samp(ours, theirs, method="asymp").pvalue > 1e-6
    assert kolmogorov(stable(alpha), theirs) > 1e-6
    # The test of the test: an index off by two hundredths.
    other = stable(alpha + 0.02 if alpha < 1.9 else alpha - 0.04).sample(count, rng=8)
    tails = [np.quantile(np.abs(x), 0.999) for x in (other, theirs)]
    assert (
        stats.ks_2samp(other, theirs, method="asymp").pvalue < 1e-3
        or abs(math.log(tails[0] / tails[1])) > 0.05
    )


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.9])
def test_tails_of_samples_by_counts(alpha):
    """Counts beyond quantiles of 1e-3 to 1e-6 on both sides; a tail that is cut has none."""
    law, count = stable(alpha), 20_000_000
    x = law.sample(count, rng=77)
    for p in (1e-3, 1e-4, 1e-5, 1e-6):
        edge = float(law.iccdf(p))
        for beyond in (np.count_nonzero(x > edge), np.count_nonzero(x < -edge)):
            low, high = (
                stats.poisson.cdf(beyond, p * count),
                stats.poisson.sf(beyond - 1, p * count),
            )
            assert 2.0 * min(low, high) > 1e-7
    assert np.isfinite(x).all()


# -- privacy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "shift", "loss"), DATA["losses"])
def test_largest_loss(alpha, shift, loss):
    mechanism = pn.Mechanism(stable(float(alpha), 1.0 / float(shift)))
    assert mechanism.pure_epsilon() == near(float(loss), 1e-12)


@pytest.mark.parametrize("ratio", [0.01, 0.03, 0.3, 1.0, 7.0, 100.0])
def test_largest_loss_of_cauchy(ratio):
    """``2 asinh(s / 2)``: theorem 25 of the paper, simplified."""
    loss = pn.Mechanism(pn.Cauchy(scale=ratio)).pure_epsilon()
    assert loss == near(2.0 * math.asinh(0.5 / ratio), 1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.7, 1.3, 1.9, 1.9999])
@pytest.mark.parametrize("ratio", [0.01, 1.0, 100.0])
def test_largest_loss_is_the_largest(alpha, ratio):
    """No loss on a fine grid over all scales of the density exceeds it, and one comes close."""
    law = stable(alpha, ratio)
    found = pn.Mechanism(law).pure_epsilon()
    away = np.concatenate([[0.0], ratio * 10.0 ** np.linspace(-9.0, 9.0, 200_001)])
    x = np.concatenate([0.5 + away, 1.0 - away, 1.0 + away])
    loss = law.logpdf(x - 1.0) - law.logpdf(x)
    assert loss.max() <= found * (1.0 + 1e-12)
    assert loss.max() >= found * (1.0 - 1e-6)


# -- the object ------------------------------------------------------------------------------------


def test_three_ways_to_give_the_index():
    assert pn.SymmetricStable(two_minus_alpha=0.5, scale=1.0) == stable(1.5)
    assert pn.SymmetricStable(alpha_minus_one=-0.5, scale=1.0) == stable(0.5)
    assert pn.SymmetricStable(two_minus_alpha=0.0, scale=1.0) == stable(2.0)
    assert pn.SymmetricStable(alpha_minus_one=0.0, scale=1.0) == stable(1.0)
    tiny = pn.SymmetricStable(two_minus_alpha=1e-16, scale=1.0)
    assert tiny != stable(2.0)
    assert tiny.alpha == 2.0
    assert tiny.two_minus_alpha == 1e-16
    for words in INDICES:
        law = pn.SymmetricStable(**words, scale=0.3)
        for again in (
            pickle.loads(pickle.dumps(law)),
            eval(repr(law), {"SymmetricStable": pn.SymmetricStable}),
        ):
            assert again == law
            assert hash(again) == hash(law)
            assert again._shape == law._shape
    # 1.001 and 1 + 0.001 are different numbers; both are kept.
    assert pn.SymmetricStable(alpha_minus_one=1e-3, scale=1.0) != stable(1.001)


def test_mean_abs_gives_the_scale():
    law = pn.SymmetricStable(alpha=1.5, mean_abs=2.0)
    assert law.mean_abs == near(2.0, 1e-15)
    assert law.moment(1) == near(2.0, 1e-14)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"alpha": 0.0999}, ValueError, "alpha must be in [0.1, 2.0], got 0.0999"),
        ({"alpha": 2.0000001}, ValueError, "alpha must be in [0.1, 2.0], got 2.0000001"),
        ({"alpha": math.nan}, ValueError, "alpha must not be NaN"),
        ({"alpha": math.inf}, ValueError, "alpha must be in [0.1, 2.0], got inf"),
        ({"alpha": "1.5"}, TypeError, "alpha must be a real number, got '1.5'"),
        ({"alpha": True}, TypeError, "alpha must be a real number, got True"),
        ({"two_minus_alpha": -1e-9}, ValueError, "two_minus_alpha must be in [0.0, 1.9]"),
        ({"two_minus_alpha": 1e-17}, ValueError, "two_minus_alpha must be 0 or at least 1e-16"),
        ({"alpha_minus_one": 1.5}, ValueError, "alpha_minus_one must be in [-0.9, 1.0], got 1.5"),
        ({}, TypeError, "SymmetricStable takes exactly one of alpha, two_minus_alpha, alpha_minus"),
        ({"alpha": 1.5, "two_minus_alpha": 0.5}, TypeError, "exactly one of alpha"),
    ],
)
def test_bad_indices(words, error, message):
    with pytest.raises(error, match=re.escape(message)):
        pn.SymmetricStable(**words, scale=1.0)


def test_infinite_statistics_give_no_scale():
    with pytest.raises(pn.DomainError, match="mean_abs must be left out, since it is infinite"):
        pn.SymmetricStable(alpha=1.0, mean_abs=1.0)
    with pytest.raises(pn.DomainError, match="std must be left out, since it is infinite"):
        pn.SymmetricStable(alpha=1.9, std=1.0)
    with pytest.raises(TypeError, match=r"Cauchy\(\) missing .* 'scale'"):
        pn.Cauchy()
    with pytest.raises(TypeError, match="Cauchy"):
        pn.Cauchy(alpha=1.5)


def test_a_sweep_over_the_index_keeps_few_tables(monkeypatch):
    monkeypatch.setattr(_base, "_MOST_TABLES", 5)
    monkeypatch.setattr(pn.Noise, "_tables", OrderedDict())
    first = stable(1.0)._table
    for k in range(8):
        assert stable(1.0, 1.0 + k)._table is first  # one shape, one table
    for k in range(7):
        pn.SymmetricStable(alpha_minus_one=1e-3 + 1e-6 * k, scale=1.0).pdf(1.0)
    assert len(pn.Noise._tables) == 5
    assert stable(1.0).pdf(0.0) == near(1.0 / math.pi, 1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e10])
@pytest.mark.parametrize(("alpha", "power"), [(0.5, 0.5), (1.0, 1.0), (1.5, 2.0), (1.9, 30.0)])
def test_powers_that_tails_are_too_heavy_for_are_infinite_at_every_scale(alpha, power, scale):
    """Kills: values that underflow before the tail is reached, and infinity times 0."""
    law = pn.SymmetricStable(alpha=alpha, scale=scale)
    assert law.moment(power) == math.inf
    assert law.expected_cost(pn.costs.Power(power, weight=1e-9)) == math.inf
    less = pn.costs.Power(0.5 * alpha, weight=3.0)
    assert law.expected_cost(less) == pytest.approx(3.0 * law.moment(0.5 * alpha), rel=1e-15)
    assert law.expected_cost(less + pn.costs.Power(power)) == math.inf
    twice = less + pn.costs.Power(0.25 * alpha)
    parts = law.expected_cost(less), law.moment(0.25 * alpha)
    assert law.expected_cost(twice) == pytest.approx(sum(parts), rel=1e-15)
