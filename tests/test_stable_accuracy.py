"""Symmetric stable densities, tails and quantiles against values that no formula of theirs made.

Over the whole range of the index: stored values, closed forms, leading terms, continuity.
"""

from __future__ import annotations

import math
from collections import defaultdict

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import psinoise as pn
import stable_truth
from stable_truth import DATA, INDICES

ACCURACY = 2e-14
EPS = 2.0**-53


def stable(alpha, scale=1.0):
    return pn.SymmetricStable(alpha=alpha, scale=scale)


def near(value, relative):
    return pytest.approx(value, rel=relative, abs=0.0)


def relative_errors(values, truths):
    return np.array(
        [float(abs(mpf(float(v)) / mpf(t) - 1)) for v, t in zip(values, truths, strict=True)]
    )


@pytest.fixture(autouse=True)
def thirty_digits():
    with mpmath.workdps(30):
        yield


# -- accuracy --------------------------------------------------------------------------------------


def rows_by_index():
    rows = defaultdict(list)
    for alpha, x, *values in DATA["values"]:
        rows[alpha].append((x, *values))
    return rows


@pytest.mark.parametrize("alpha", rows_by_index())
def test_reference_values(alpha):
    """1e-8 to 1e8, through 1 +- 1e-3 and up to 1.9999."""
    x, density, tail, log_density = zip(*rows_by_index()[alpha], strict=True)
    x = np.array([float(value) for value in x])
    law = stable(float(alpha))
    normal = np.array([mpf(value) > mpf("1e-300") for value in density])
    assert relative_errors(law.pdf(x), density)[normal].max() < 5e-15
    normal = np.array([mpf(value) > mpf("1e-300") for value in tail])
    assert relative_errors(law.ccdf(x), tail)[normal].max() < 5e-15
    assert relative_errors(law.cdf(x), [1 - mpf(value) for value in tail]).max() < 1e-15
    error = np.abs(law.logpdf(x) - [float(value) for value in log_density])
    assert (error <= 4e-15 * np.maximum(1.0, np.abs(law.logpdf(x)))).all()
    # The test of the test: the index off by 1e-13 shows in the far tail.
    if alpha not in ("2", "1"):
        other = stable(float(alpha) + 1e-13)
        assert relative_errors(other.pdf(x), density).max() > 1e-13


@pytest.mark.parametrize(("alpha", "probability", "x"), DATA["quantiles"])
def test_reference_quantiles(alpha, probability, x):
    """To the rounding of the logarithm of the probability, and to infinity beyond float64."""
    found = float(stable(float(alpha)).iccdf(float(probability)))
    if mpf(x) > mpf(np.finfo(float).max):
        assert found == math.inf
    else:
        rounding = 4 * EPS * (1.0 + abs(math.log(float(probability))) / float(alpha))
        assert found == near(float(mpf(x)), rounding)


SWEEP = [(entry["index"], entry["rows"]) for entry in DATA["sweep"]]


@pytest.mark.parametrize(("words", "rows"), SWEEP, ids=[str(index) for index in INDICES])
def test_sweep_against_fourier_integral(words, rows):
    """Where the regions meet, far out and close in, by an integral that the package does not use
    (tools/stable_reference.py)."""
    law = pn.SymmetricStable(**words, scale=1.0)
    y = np.array([float.fromhex(point) for point, _, _ in rows])
    bound = ACCURACY if law.two_minus_alpha >= 1e-5 else 2e-13
    assert relative_errors(law.pdf(y), [density for _, density, _ in rows]).max() < bound
    assert relative_errors(law.ccdf(y), [tail for _, _, tail in rows]).max() < bound


@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.0 + 1e-9, 1.5, 1.9999])
def test_tails_to_1e60_and_beyond(alpha):
    """The leading terms in mpmath, where they are all there is; the logarithms to 1e308."""
    law = stable(alpha)
    for y in (1e25, 1e40, 1e60):
        w = mpf(y) ** -mpf(alpha)
        a = [
            (-1) ** (k + 1) * mpmath.gamma(alpha * mpf(k) + 1) / mpmath.factorial(k)
            * mpmath.sinpi(alpha * mpf(k) / 2) / mpmath.pi
            for k in (1, 2, 3, 4)
        ]  # fmt: skip
        density = sum(c * w**k for k, c in enumerate(a, 1)) / mpf(y)
        tail = sum(c * w**k / (k * mpf(alpha)) for k, c in enumerate(a, 1))
        assert relative_errors([law.pdf(y), law.ccdf(y)], [density, tail]).max() < ACCURACY
    for y in (1e200, 1.7e308):
        log_tail = mpmath.log(a[0] / alpha) - mpf(alpha) * mpmath.log(mpf(y))
        assert law.logccdf(y) == near(float(log_tail), 1e-15)
        assert law.logpdf(y) == near(
            float(mpmath.log(a[0]) - (1 + mpf(alpha)) * mpmath.log(mpf(y))), 1e-15
        )


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.2, 1.9, 1.9999])
def test_distribution_near_the_median_has_relative_accuracy(alpha):
    """``F - 1/2`` through the quantile: the series at 0 in mpmath, to the last bit of p."""
    law = stable(alpha)
    for difference in (2.0**-53, 1e-12, 1e-6, 1e-3):
        y = mpf(float(law.iccdf(0.5 - difference)))
        v = 0.5 - (0.5 - difference)  # as rounded
        mass = sum(
            (-1) ** k * mpmath.gamma((2 * k + 1) / mpf(alpha)) / mpmath.factorial(2 * k + 1)
            * y ** (2 * k + 1)
            for k in range(8)
        ) / (mpmath.pi * alpha)  # fmt: skip
        assert float(mass) == near(v, 3e-15)


ROUND_TRIP = [{"alpha": a} for a in (0.1, 0.5, 1.0, 1.2, 1.9, 1.99, 1.9999)] + [
    {"two_minus_alpha": 1e-6},
    {"two_minus_alpha": 1e-12},
    {"two_minus_alpha": 1e-16},
    {"alpha_minus_one": 1e-12},
]


@pytest.mark.parametrize("words", ROUND_TRIP, ids=str)
def test_quantiles_invert_the_tail_to_1e300(words):
    """Through the bend where a Gaussian core meets a tail, in steps of a hundredth of a decade."""
    law = pn.SymmetricStable(**words, scale=1.0)
    p = 10.0 ** -np.concatenate([np.linspace(0.31, 60.0, 6000), np.linspace(60.1, 300.0, 2000)])
    x = law.iccdf(p)
    finite = np.isfinite(x)
    # Infinite only where the quantile is: p = K x^-alpha / alpha at the largest float64.
    largest = float(law.logccdf(np.finfo(float).max))
    np.testing.assert_array_equal(finite, np.log(p) > largest)
    error = np.abs(law.ccdf(x[finite]) / p[finite] - 1.0)
    smooth = 5e-15 if 1e-5 < law.two_minus_alpha < 1.8 else 5e-14
    assert (error <= smooth + 4 * EPS * np.abs(np.log(p[finite]))).all()
    assert (np.diff(x[finite]) > 0.0).all()


# -- closed forms ----------------------------------------------------------------------------------

POINTS = [1e-3, 0.01, 0.1, 0.3, 0.7, 1.0, 1.9, 4.0, 11.0, 80.0, 1e4]


def test_index_one_half():
    """By Fresnel's integrals (Nolan, Univariate Stable Distributions, section 3)."""
    law = stable(0.5)
    for y in POINTS:
        x = mpf(y)
        w, u = 1 / (4 * x), 1 / mpmath.sqrt(2 * mpmath.pi * x)
        cosine = mpmath.cos(w) * (mpf(1) / 2 - mpmath.fresnelc(u))
        sine = mpmath.sin(w) * (mpf(1) / 2 - mpmath.fresnels(u))
        density = (cosine + sine) / mpmath.sqrt(2 * mpmath.pi * x**3)
        assert law.pdf(y) == near(float(density), ACCURACY)


def test_index_two_thirds():
    """By Whittaker's function; alpha is the float64 nearest to 2/3."""
    law = stable(2.0 / 3.0)
    for y in POINTS:
        x = mpf(y)
        density = mpmath.exp(2 / (27 * x**2)) * mpmath.whitw(
            mpf(-1) / 2, mpf(1) / 6, 4 / (27 * x**2)
        )
        assert law.pdf(y) == near(float(density / (2 * mpmath.sqrt(3 * mpmath.pi) * x)), ACCURACY)


def test_index_one_is_cauchy():
    law = pn.Cauchy(scale=2.0)
    x = np.concatenate([np.linspace(0.0, 100.0, 1001), 10.0 ** np.arange(2.0, 150.0)])
    np.testing.assert_allclose(law.pdf(x), 2.0 / (np.pi * (4.0 + x * x)), rtol=1e-14)
    np.testing.assert_allclose(law.ccdf(x), np.arctan2(2.0, x) / np.pi, rtol=1e-14)
    assert law == stable(1.0, 2.0) == eval(repr(law), {"SymmetricStable": pn.SymmetricStable})
    np.testing.assert_array_equal(law.sample(100, rng=3), stable(1.0, 2.0).sample(100, rng=3))
    assert law.kl(3.0) == near(math.log1p(9.0 / 16.0), 1e-15)
    assert law.fisher_information() == near(1.0 / 8.0, 1e-15)
    p = np.array([0.3, 1e-3, 1e-100, 1e-300])
    np.testing.assert_allclose(law.iccdf(p), 2.0 / np.tan(np.pi * p), rtol=2e-13)


def test_index_two_is_normal():
    law, normal = stable(2.0, 0.3), pn.Gaussian(std=math.sqrt(2.0) * 0.3)
    x = np.linspace(-11.0, 11.0, 501)
    for name in ("pdf", "cdf", "ccdf"):
        np.testing.assert_allclose(getattr(law, name)(x), getattr(normal, name)(x), rtol=3e-13)
    np.testing.assert_allclose(law.logpdf(x), normal.logpdf(x), rtol=1e-15, atol=4e-16)
    assert law.std == near(normal.std, 1e-15)
    assert law.mean_abs == near(normal.mean_abs, 1e-15)
    assert law.moment(4) == near(normal.moment(4), 1e-14)
    assert law.kl(0.2) == near(normal.kl(0.2), 1e-15)
    assert law.fisher_information() == near(normal.fisher_information(), 1e-15)
    assert law.log_concave
    assert pn.Mechanism(law).pure_epsilon() == math.inf


def test_holtsmark():
    law = stable(1.5)
    for y in POINTS:
        density, tail = stable_truth.holtsmark(y)
        assert law.pdf(y) == near(float(density), ACCURACY)
        assert law.ccdf(y) == near(float(tail), ACCURACY)


# -- continuity in the index -----------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1e-15, 1e-12, 1e-9, 1e-6])
def test_continuous_across_one(distance):
    """Both sides are off the Cauchy law by multiples of the distance, of opposite sign."""
    cauchy = stable(1.0)
    y = np.array([1e-3, 0.1, 0.4, 0.6, 1.0, 1.7, 2.3, 10.0, 1e3, 1e6])
    above = pn.SymmetricStable(alpha_minus_one=distance, scale=1.0)
    below = pn.SymmetricStable(alpha_minus_one=-distance, scale=1.0)
    for name in ("logpdf", "logccdf"):
        center = getattr(cauchy, name)(y)
        up, down = getattr(above, name)(y) - center, getattr(below, name)(y) - center
        np.testing.assert_allclose(up, -down, rtol=0, atol=1e-14 + 400 * distance**2)
        assert np.abs(up).max() < 20 * distance + 1e-14
        if distance > 1e-12:  # the test of the test: the two differ
            assert np.abs(up).max() > distance


@pytest.mark.parametrize("distance", [1e-16, 1e-12, 1e-8, 1e-5])
def test_continuous_at_two(distance):
    """The core is normal to a multiple of the distance; the tail is a power of its weight."""
    normal, law = stable(2.0), pn.SymmetricStable(two_minus_alpha=distance, scale=1.0)
    y = np.linspace(0.0, 4.0, 81)
    np.testing.assert_allclose(law.pdf(y), normal.pdf(y), rtol=200 * distance + 1e-14)
    # K = Gamma(alpha) sin(pi alpha / 2) / pi is half the distance.
    assert law.ccdf(1e6) * 1e12 == near(0.5 * distance, 1e-9 + 20 * distance)
    assert law.std == math.inf
    assert not law.log_concave
