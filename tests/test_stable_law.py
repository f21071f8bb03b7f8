"""Symmetric stable noise against values that none of its formulas made.

Beside the contract that all laws share (test_laws.py): accuracy over the whole range of the index,
closed forms, series, stability under sums, and an independent sampler.
"""

from __future__ import annotations

import json
import math
import pickle
import re
from collections import OrderedDict, defaultdict
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy import special, stats

import psinoise as pn
import stable_truth
from psinoise import _core as native
from psinoise import reference
from psinoise.compile import FitError, compile_law
from psinoise.noise import _base, _stable_forms, _stable_integral
from psinoise.noise._stable_forms import form

DATA = json.loads((Path(__file__).parent / "data" / "symmetric_stable.json").read_text("utf-8"))
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
INDICES = [index for index, _ in SWEEP]


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


def test_the_bend_needs_newton_in_the_kernels():
    """Mutant: the table of quantiles alone, right to 1e-4 only."""
    law = pn.SymmetricStable(two_minus_alpha=1e-6, scale=1.0)
    captured = capture_tables(law)
    depth = np.linspace(16.0, 20.0, 400)
    log_t = native.panel_values(*captured[2], depth)
    p = 0.5 * np.exp(-depth)
    assert np.abs(law.ccdf(np.exp(log_t)) / p - 1.0).max() > 1e-12


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


# -- tables ----------------------------------------------------------------------------------------


def capture_tables(law):
    """The arguments of ``LawTable`` for a law."""
    from types import SimpleNamespace
    from unittest import mock

    recorder = SimpleNamespace(LawTable=lambda *tables: tables)
    with mock.patch("psinoise.compile.core", recorder):
        return compile_law(law)


def test_tables_are_the_same_bits_at_every_level_and_in_the_twins(run_python):
    """Series in decimals, integrals without libm: indices of every region and kind of panel."""
    code = """
import hashlib, numpy as np
import psinoise as pn
from psinoise import _backend
from psinoise.noise._stable_forms import form
state = hashlib.sha256()
t = np.concatenate([2.0 ** np.arange(-30.0, 60.0, 0.37), np.linspace(0.01, 30.0, 40)])
for index in ((0.3, 0.0), (0.9, 0.0), (1.0, 0.0), (1.0, 1e-12), (1.6, 0.0), (2.0, -1e-7)):
    law = form(*index)
    for part in (*law.log_density(t), *law.log_survival(t), law.log_mills(t), law.score(t)):
        state.update(part.tobytes())
    if law.far_tail is not None:
        for part in law.far_tail.log_quantile(np.linspace(60.0, 2000.0, 50)):
            state.update(part.tobytes())
print(_backend.core.build_config()["isa"], state.hexdigest())
"""
    levels = native.build_config()["isa_available"]
    answers = [run_python(code, PSINOISE_ISA=level).split() for level in levels]
    answers.append(run_python(code, PSINOISE_BACKEND="reference").split())
    assert [answer[0] for answer in answers] == [*levels, "numpy"]
    assert len({answer[1] for answer in answers}) == 1


@pytest.mark.parametrize("alpha", [0.5, 1.9, 1.9999])
def test_kernels_and_twins_agree_on_every_kind_of_table(alpha):
    """The contract tests see one index; here finer panels and lower first exponents."""
    tables = capture_tables(stable(alpha))
    laws = native.LawTable(*tables), reference.LawTable(*tables)
    generator = np.random.default_rng(17)
    x = 10.0 ** generator.uniform(-12.0, 14.0, 4000)
    p = 10.0 ** -np.concatenate(
        [generator.uniform(0.0, 320.0, 2000), generator.uniform(0, 30, 2000)]
    )
    results = []
    for core, law in zip((native, reference), laws, strict=True):
        parts = []
        for name in ("pdf", "logpdf", "ccdf", "logccdf"):
            out = np.empty_like(x)
            core.evaluate(law, name, 0.3, x, out)
            parts.append(out)
        out = np.empty_like(p)
        core.inverse_survival(law, 1.0, p, out)
        parts.append(out)
        for dtype in ("float64", "float32"):
            out = np.empty(200_000, dtype=dtype)
            core.sample(law, bytes(range(32)), 5, 1.0, out, 1)
            parts.append(out)
        results.append(parts)
    for ours, theirs in zip(*results, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_too_coarse_a_rule_or_panel_is_refused(monkeypatch):
    """Mutants of the build: a step of the integral twice as long, panels of an octave's eighth."""
    y = np.linspace(2.0, 6.0, 50)
    exact = form(1.7, 0.0)._integral.values(y)[0]
    with monkeypatch.context() as patch:
        patch.setattr(_stable_integral, "_STEP", 0.5)
        coarse = _stable_integral.Integral(1.7, 1.7 - 1.0, 2.0 - 1.7).values(y)[0]
    assert np.abs(coarse[0] - exact[0]).max() > 1e-11
    _stable_forms.form.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(_stable_forms, "_panel_bits", lambda below_two: 3)
        with pytest.raises(FitError):
            compile_law(stable(1.999))
    _stable_forms.form.cache_clear()


@pytest.mark.parametrize("alpha", [1.6, 1.64, 1.66, 1.69, 1.7, 1.72, 1.75, 1.76])
def test_panels_are_narrow_enough_where_the_quantile_bends(alpha):
    """Once, 1.69 to 1.75 made no tables: panels of an eighth of an octave are too wide there."""
    law = stable(alpha)
    y = np.array([0.5, 4.125, 4.285, 4.785, 8.0])
    round_trip = law.iccdf(law.ccdf(y))
    np.testing.assert_allclose(round_trip, y, rtol=1e-14)


def test_series_and_integral_agree_where_they_meet():
    for words in INDICES:
        law = pn.SymmetricStable(**words, scale=1.0)
        general = form(*law._shape)
        for y, values in (
            (general._series.near, general._series.central_values),
            (general._series.far, general._series.tail_values),
        ):
            point = np.array([y])
            ours, theirs = values(point), general._integral.values(point)
            for our, their in zip(ours[:2], theirs[:2], strict=True):
                difference = float(((our[0] - their[0]) + (our[1] - their[1]))[0])
                assert abs(difference) < (4e-15 if law.two_minus_alpha > 1e-5 else 2e-14), words
            assert abs(float((ours[2] - theirs[2])[0])) * y < 2e-14, words


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


def kolmogorov(law, x):
    """p-value of Kolmogorov's distance on 2^16 cells."""
    cells = 1 << 16
    counts = np.bincount((law.cdf(x) * cells).astype(np.int64).clip(0, cells - 1), minlength=cells)
    gap = np.abs(np.cumsum(counts) / x.size - np.arange(1, cells + 1) / cells).max()
    return float(special.kolmogorov(gap * math.sqrt(x.size)))


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
    with pytest.raises(TypeError, match="Cauchy takes exactly one of scale, got 0"):
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
