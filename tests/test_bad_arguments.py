"""What users get for bad arguments of laws and of accounting, row by row of the promised table.

``TypeError`` is the wrong kind, ``DomainError`` (a ValueError) the right kind with a wrong value,
``OverflowError`` what no number of the machine holds.
"""

from __future__ import annotations

import inspect
import math
import warnings
from functools import partial

import numpy as np
import pytest

import psinoise as pn
from psinoise import costs, figures, plotting
from psinoise.accounting import Accountant
from psinoise.noise import DESIGNED, FAMILIES
from refusals import GAUSSIAN, for_each, for_rows, refused

pytestmark = pytest.mark.filterwarnings("error")

SIZES = ("scale", "std", "mean_abs")
WRONG_KIND = ["1", None, 1j, True, np.array([1.0]), [1.0], b"1", object()]


# -- scale, sensitivity, mean_abs ------------------------------------------------------------------


def numbers():
    """Every argument that is a size, as a name and a function of its value."""
    for family in FAMILIES:
        for size in SIZES:
            yield size, lambda value, family=family, size=size: family(**{size: value})
    yield "sensitivity", lambda value: pn.Mechanism(pn.Laplace(scale=1.0), value)
    for law in DESIGNED:
        arguments = {"epsilon": 1.0, "delta": 0.1, "count": 10}
        names = inspect.signature(law).parameters
        needed = {name: arguments[name] for name in arguments if name in names}
        if law.for_whole_numbers:
            continue  # a whole number: below
        yield "sensitivity", lambda value, law=law, needed=needed: law(sensitivity=value, **needed)


@for_rows(numbers())
def test_sizes(name, make):
    for value in (0, 0.0, -1.0, math.nan, math.inf, -math.inf, np.float32(-2)):
        refused(pn.DomainError, f"^{name} must be ", make, value)
    for value in WRONG_KIND:
        refused(TypeError, f"{name}|takes exactly one", make, value)


@for_rows(
    [
        (0, pn.DomainError),
        (-1, pn.DomainError),
        (1.0, TypeError),
        ("1", TypeError),
        (1j, TypeError),
    ],
)
def test_a_sensitivity_in_whole_numbers(value, error):
    refused(error, "sensitivity must be", pn.DiscreteLaplace, epsilon=1.0, sensitivity=value)


@for_each(FAMILIES)
def test_scales_at_the_ends_of_float64(family):
    refused(pn.DomainError, "at least 2", family, scale=5e-324)
    for scale in (2.0**-1022, 2.0**1023):
        refused((pn.DomainError, OverflowError), "", pn.Mechanism(family(scale=scale)).on_lattice)
    lattice = pn.Mechanism(family(scale=2.0**-900), 2.0**-900).on_lattice()
    assert math.isfinite(lattice.release(0.0))


# -- epsilon, delta, sampling_rate, count ----------------------------------------------------------


@for_each([GAUSSIAN, GAUSSIAN.composed().estimate])
def test_epsilons(asked):
    refused(pn.DomainError, "epsilon must not be NaN", asked.delta, math.nan)
    assert float(asked.delta(-math.inf)) == 1.0
    assert float(asked.delta(math.inf)) == 0.0
    wide = pn.Mechanism(pn.Gaussian(std=0.02)).composed()
    wide = wide if asked is GAUSSIAN else wide.estimate
    with np.errstate(all="raise"):
        for epsilon in (709.0, 710.5, 745.5, 1e4):
            assert 0.0 <= float(wide.delta(epsilon)) <= 1.0


def test_negative_epsilons_are_refused_where_they_are_a_target():
    for epsilon in (-1.0, -1e-300, math.nan):
        for lattice in (False, True):
            target = {"epsilon": epsilon, "delta": 1e-6, "on_lattice": lattice}
            refused(ValueError, "epsilon", pn.calibrate, pn.Gaussian, **target)
        refused(pn.DomainError, "epsilon", pn.Ledger, epsilon, 1e-6)


@for_each([False, True])
def test_deltas(lattice):
    mechanism = GAUSSIAN.on_lattice() if lattice else GAUSSIAN
    for delta in (-1e-300, 1.0 + 2.0**-52, math.nan, math.inf):
        refused(pn.DomainError, "delta must be in", mechanism.epsilon, delta)
    assert float(mechanism.epsilon(1.0)) == 0.0
    pure = mechanism.epsilon(0.0).upper
    assert pure == mechanism.pure_epsilon()
    # An ideal normal law loses any amount; its table ends with a slope.
    assert math.isinf(pure) == (not lattice)


@for_each([pn.Gaussian, pn.Airy, pn.Laplace])
def test_a_tiny_delta_is_right_or_refused(law):
    """Kills: a scale from an underflow."""
    for delta in (1e-300, 5e-324):
        try:
            noise = pn.calibrate(law, epsilon=1.0, delta=delta)
        except pn.CertificationError:
            continue
        assert noise.scale >= pn.calibrate(law, epsilon=1.0, delta=1e-100).scale
        with np.errstate(all="raise"):
            assert pn.Mechanism(noise).delta(1.0).upper <= delta


def test_epsilons_beyond_the_exponential_function():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for std in (0.03, 0.01):
            found = pn.Mechanism(pn.Gaussian(std=std)).epsilon(1e-6).upper
            assert 500.0 < found < 1e5
        assert pn.Mechanism(pn.Laplace(scale=1e-3)).pure_epsilon() == pytest.approx(1e3)


@for_each([-1e-300, 1.0 + 1e-15, math.nan, math.inf])
def test_sampling_rates(rate):
    for call in (
        lambda: GAUSSIAN.epsilon(1e-6, sampling_rate=rate),
        lambda: Accountant().compose(GAUSSIAN, sampling_rate=rate),
        lambda: pn.Ledger(1.0, 1e-6).charge(GAUSSIAN, sampling_rate=rate),
    ):
        refused(pn.DomainError, r"sampling_rate must be in \[0, 1\]", call)


def test_ends_of_the_sampling_rate():
    lattice = GAUSSIAN.on_lattice()
    for mechanism in (GAUSSIAN, lattice):
        assert float(mechanism.epsilon(1e-6, sampling_rate=0.0)) == 0.0
        assert mechanism.epsilon(1e-6, sampling_rate=1.0) == mechanism.epsilon(1e-6)


@for_rows(
    [
        (-1, pn.DomainError),
        (2.5, TypeError),
        (2.0, TypeError),
        ("3", TypeError),
        (True, TypeError),
        (None, TypeError),
        (2**63, OverflowError),
    ],
)
def test_counts(count, error):
    for call in (
        lambda: GAUSSIAN.epsilon(1e-6, count),
        lambda: Accountant().compose(GAUSSIAN, count),
        lambda: pn.Ledger(1.0, 1e-6).charge(GAUSSIAN, count),
    ):
        refused(error, "count must be", call)


def test_ends_of_the_count():
    assert float(GAUSSIAN.epsilon(1e-6, 0)) == 0.0
    wide = pn.Mechanism(pn.Gaussian(std=1e6))
    assert 0.0 < wide.composed(10**12).estimate.epsilon(1e-6) < 10.0


# -- laws ------------------------------------------------------------------------------------------


@for_each([0.0, -1.0, 2.0 + 1e-15, math.nan, math.inf])
def test_indices(alpha):
    refused(pn.DomainError, "alpha must", pn.SymmetricStable, alpha=alpha, scale=1.0)


def test_indices_with_a_name():
    x = np.linspace(0.0, 9.0, 20)
    normal, cauchy = (pn.SymmetricStable(alpha=alpha, scale=1.5) for alpha in (2.0, 1.0))
    assert normal.std**2 == pytest.approx(2.0 * 1.5**2, rel=1e-15)
    np.testing.assert_allclose(normal.pdf(x), pn.Gaussian(std=normal.std).pdf(x), rtol=1e-13)
    np.testing.assert_allclose(cauchy.pdf(x), pn.Cauchy(scale=1.5).pdf(x), rtol=1e-13)


@for_each([pn.Gaussian, pn.Laplace, pn.Airy, pn.Cauchy, pn.DiscreteLaplace])
def test_moments_of_orders_whose_powers_have_no_float64_logarithm(law):
    """Kills: math range errors, and infinity for noise of any scale."""
    refused(pn.DomainError, "order must be at most 1e\\+300", law(scale=1.0).moment, 1e308)
    assert law(scale=1.0).moment(1e300) == math.inf


def test_moments_that_do_not_exist():
    assert pn.Cauchy(scale=1.0).mean_abs == math.inf
    assert pn.Cauchy(scale=1.0).std == math.inf
    assert pn.Cauchy(scale=1.0).moment(2) == math.inf
    for size in ("mean_abs", "std"):
        refused(
            pn.DomainError,
            f"{size} must be left out, since it is infinite",
            lambda size=size: pn.SymmetricStable(alpha=1.0, **{size: 1.0}),
        )


def _asymmetric(x):
    return np.where(x < 0.0, 2.0, 1.0) * np.abs(x)


@for_rows(
    [
        (3, TypeError, "cost must be callable"),
        ("x", TypeError, "cost must be callable"),
        (lambda x: 1 // 0, ZeroDivisionError, ""),
        (lambda x: np.where(np.abs(x) > 1.0, math.nan, x), pn.DomainError, "NaN at x = "),
        (lambda x: -np.abs(x), pn.DomainError, "must not decrease.* at x = "),
        (_asymmetric, pn.DomainError, r"must be even, got cost\("),
        (np.tanh, pn.DomainError, "must be even"),
        (lambda x: np.tanh(np.abs(x)), pn.DomainError, "must grow without bound"),
        (lambda x: np.abs(x)[:-1], TypeError, "must have the shape of x"),
        (lambda x: x.astype(str), TypeError, "must be real numbers"),
    ],
)
def test_costs(cost, error, match):
    refused(error, match, costs.Custom, cost)


@for_rows(
    [
        ({"cells": 1, "cells_per_sensitivity": 1}, pn.DomainError),
        ({"cells": 100.0}, TypeError),
        ({"cells_per_sensitivity": 2.5}, TypeError),
        ({"cells_per_sensitivity": 0}, pn.DomainError),
        ({"tail_ratio": 0.0}, pn.DomainError),
        ({"tail_ratio": 1.0}, pn.DomainError),
        ({"tail_ratio": math.nan}, pn.DomainError),
        ({"mean_cost": 1e-9, "cells_per_sensitivity": 2, "cells": 4}, pn.CalibrationError),
    ],
)
def test_cacti(arguments, error):
    refused(error, "", pn.Cactus, **arguments)


@for_rows(
    [
        (lambda: pn.Gaussian(std=1.0).sample(2**62), pn.DomainError, "shape must be of fewer"),
        (lambda: pn.Gaussian(std=1.0).sample((2**40, 2**40)), pn.DomainError, "shape must be of"),
        (lambda: pn.Gaussian(std=1.0).sample(3, rng=-1), ValueError, "^rng must"),
        (lambda: pn.Gaussian(std=1.0).sample(3, rng=[-1]), ValueError, "^rng must"),
        (lambda: pn.calibrate(int, epsilon=1, delta=1e-6), TypeError, "^law must be a noise class"),
        (
            lambda: pn.calibrate(pn.DiscreteLaplace, epsilon=1e4, delta=0),
            pn.CalibrationError,
            "below 0.01 sensitivities",
        ),
        (lambda: costs.Power(2)("a"), TypeError, "^x must be real numbers"),
        (lambda: costs.Power(2)([[1.0], [1.0, 2.0]]), TypeError, "^x must be real numbers"),
        (lambda: pn.promises.PureDP(1e153), pn.DomainError, "^epsilon must be at most"),
        (lambda: pn.promises.ApproximateDP(1e153, 0.1), pn.DomainError, "^epsilon must be at most"),
        (lambda: pn.promises.BoundedRange(1e153), pn.DomainError, "^eta must be at most"),
        (
            lambda: pn.exact_sums([0.5, 0.25], 2.0**-10, bounds=(0, 1), units=[1.0, 2.0]),
            TypeError,
            "^units must be",
        ),
    ]
)
def test_what_once_failed_far_inside(call, error, match):
    refused(error, match, call)


def test_what_once_failed_at_the_limits_of_numbers():
    for unit in (1e-200, 1e200):
        for law in (pn.Gaussian(std=unit), pn.Laplace(scale=unit), pn.Cauchy(scale=unit)):
            assert law.fisher_information() == (math.inf if unit < 1.0 else 0.0)
    assert costs.LogCosh(1.0)(1e308) == pytest.approx(1e308)
    epsilons = [700.0 + 1e-9, 9000.0]
    for epsilon in epsilons:
        each = pn.calibrate(pn.Staircase, epsilon=epsilon, delta=0, count=90).epsilon
        assert each == pytest.approx(epsilon / 90.0)


# -- True or False ---------------------------------------------------------------------------------


LAPLACE = pn.Laplace(scale=1.0)
FLAGS = {
    (pn.calibrate, "on_lattice"): partial(pn.calibrate, pn.Laplace, epsilon=1.0, delta=0.0),
    (pn.Ledger, "adaptive"): partial(pn.Ledger, 1.0, 1e-6),
    (pn.Ledger.create, "adaptive"): partial(pn.Ledger.create, "no such/file", 1.0, 1e-6),
    (pn.compare, "progress"): partial(pn.compare, laws=[pn.Laplace]),
    (pn.compare, "speed"): partial(pn.compare, laws=[pn.Laplace], counts=[1], progress=False),
    (plotting.plot_density, "log"): partial(plotting.plot_density, LAPLACE),
    (pn.Noise.plot, "log"): LAPLACE.plot,
    (plotting.plot_epsilon, "log"): partial(plotting.plot_epsilon, GAUSSIAN, [1], 1e-6),
    (plotting.plot_epsilon, "progress"): partial(plotting.plot_epsilon, GAUSSIAN, [1], 1e-6),
    (plotting.plot_lines, "log_x"): partial(plotting.plot_lines, [1, 2], {"a": [1, 2]}),
    (plotting.plot_lines, "log_y"): partial(plotting.plot_lines, [1, 2], {"a": [1, 2]}),
    (plotting.plot_lines, "name"): partial(plotting.plot_lines, [1, 2], {"a": [1, 2]}),
    (figures.save_figures, "progress"): partial(figures.save_figures, "no such", []),
}


@for_rows((name, call) for (_, name), call in FLAGS.items())
def test_flags(name, call):
    """A word is true, "no" too; 1 is, and a list that happens to be full."""
    for value in ("x", "no", 1, 0, None, [1], np.array([True])):
        refused(TypeError, f"^{name} must be a boolean, got ", call, **{name: value})


ERRORS = (pn.BudgetError, pn.CalibrationError, pn.CertificationError, pn.DomainError)


def test_no_flag_is_left_out():
    """Every public argument that is annotated as a boolean."""
    owners = [
        getattr(module, name) for module in (pn, plotting, figures) for name in module.__all__
    ]
    owners += [
        getattr(owner, name, None)
        for owner in owners
        if inspect.isclass(owner)
        for name in dir(owner)
        if not name.startswith("_")
    ]
    found = {
        (owner.__qualname__, argument.name)
        for owner in owners
        if callable(owner) and hasattr(owner, "__qualname__") and owner not in ERRORS
        if (getattr(owner, "__module__", None) or "").startswith("psinoise")
        for argument in inspect.signature(owner).parameters.values()
        if argument.annotation == "bool"
    }
    # Laws inherit one method; `compare` reads its words itself.
    listed = {(owner.__qualname__, name) for owner, name in FLAGS}
    assert found | {("compare", "speed")} == listed


def test_booleans_of_numpy_are_flags():
    assert pn.Ledger(1.0, 1e-6, adaptive=np.True_).adaptive is True
    assert isinstance(
        pn.calibrate(pn.Laplace, epsilon=1.0, delta=0.0, on_lattice=np.False_), pn.Laplace
    )
