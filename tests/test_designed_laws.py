"""The contract of laws made for a target: evaluation, the laws as objects, bad arguments.

Expectations, samples and privacy are in test_designed_*.py, the optimum in test_cactus_law.py.
"""

from __future__ import annotations

import copy
import math
import pickle
import re

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import psinoise as pn
from designed_members import MEMBERS, SMALL, WITH_DENSITY, points
from psinoise import DomainError
from psinoise.noise import DESIGNED, LAWS

# Small cactus laws are quick, not good.
pytestmark = pytest.mark.filterwarnings("ignore:the divergence of:UserWarning")


@pytest.fixture(params=MEMBERS)
def law(request):
    """Each member in turn."""
    return MEMBERS[request.param]()


@pytest.fixture(params=WITH_DENSITY)
def smooth(request):
    """Members that have a density."""
    return MEMBERS[request.param]()


def test_the_lists_are_complete():
    assert {type(make()) for make in MEMBERS.values()} == set(DESIGNED)
    assert not set(DESIGNED) & set(LAWS)
    assert all(getattr(pn, law.__name__) is law for law in DESIGNED)


# -- evaluation ------------------------------------------------------------------------------------


def test_symmetry_and_sum_of_the_tails(law):
    x = points(law)
    np.testing.assert_array_equal(law.cdf(x) + law.ccdf(x), 1.0)
    if not law.for_whole_numbers:
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
    # None is what is not given; cells of a cactus law need not be.
    missing = () if name == "tail_ratio" else (None,)
    for value in ("1", *missing, 1j, True, np.array([1.0])):
        with pytest.raises(TypeError, match=f"^{name} must|takes exactly one of .*, got 0"):
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
        (
            lambda: pn.TruncatedLaplace(epsilon=700, delta=2.7e-5),
            DomainError,
            "delta must be above exp(epsilon) / 3.5e308, got 2.7e-05",
        ),
        (
            lambda: pn.TruncatedLaplace(epsilon=700, delta=3e-5, sensitivity=1.79e308),
            DomainError,
            "half_width must be positive and finite, got inf",
        ),
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
        (lambda: pn.Cactus(cells=2**20), DomainError, "at most 1048575, got 1048576"),
        (lambda: pn.Cactus(cells=1600.0), TypeError, "cells must be an integer, got 1600.0"),
        (lambda: pn.Cactus(tail_ratio=1.0), DomainError, "tail_ratio must be in [1e-6, 1 - 1e-6]"),
        (
            lambda: pn.Cactus(cost=101.0),
            DomainError,
            "cost must be a power in [1/100, 100] or callable",
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


def test_the_end_of_a_support_is_one_number() -> None:
    """Kills: an end in units of the scale, which is rounded on its own: tails beyond the half width
    in one law of twenty, no density at it in one of twelve."""
    random = np.random.default_rng(5)
    for _ in range(200):
        epsilon, delta, sensitivity = np.exp(random.uniform([-6, -300, -300], [5, -1, 300]))
        law = pn.TruncatedLaplace(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        end = law.half_width
        inside, outside = np.nextafter(end, [0.0, np.inf])
        assert law.ccdf(end) == law.cdf(-end) == law.pdf(outside) == 0.0
        assert law.ccdf(-end) == 1.0
        assert min(law.pdf(end), law.ccdf(inside)) > 0.0


def test_densities_far_out_are_as_right_as_is_said():
    """Of the staircase and of truncated Laplace noise, in units that float64 hardly holds too."""
    random = np.random.default_rng(1)
    for _ in range(150):
        epsilon, unit = 10.0 ** random.uniform(-4.0, 2.0), 10.0 ** random.uniform(-250.0, 250.0)
        law = pn.Staircase(epsilon=epsilon, sensitivity=unit)
        x = float(law.iccdf(10.0 ** random.uniform(-290.0, -1.0)))
        density = float(law.pdf(x))
        with mpmath.workdps(40):
            e, (copies, place) = mpf(epsilon), divmod(mpf(x) / mpf(unit), 1)
            step = 1 / (1 + mpmath.exp(e / 2))
            if min(place, 1 - place, abs(place - step)) < 1e-6 or not 1e-307 < density < 1e307:
                continue
            height = -mpmath.expm1(-e) / (2 * (step + mpmath.exp(-e) * (1 - step)))
            share = mpmath.exp(-e * (copies + (place > step)))
            error = abs(mpf(density) / (height * share / mpf(unit)) - 1)
        assert error < 2e-13
    law = pn.TruncatedLaplace(epsilon=2.0, delta=1e-280)
    x = random.uniform(0.0, law.support, 150)
    with mpmath.workdps(40):
        height = 1 / (2 * mpf(law._inside) * mpf(law._scale))
        for at, density in zip(x.tolist(), law.pdf(x).tolist(), strict=True):
            share = mpmath.exp(-mpf(at) / mpf(law._scale))
            error = abs(mpf(density) / (height * share) - 1)
            assert error < 2e-13
