"""Arguments, edge cases and the shape of the interface."""

from __future__ import annotations

import math

import numpy as np
import pytest

import psinoise as pn
from psinoise import Airy, Gaussian, Laplace, Mechanism  # noqa: F401  names that repr evaluates in
from refusals import for_each, for_rows

MECHANISM = pn.Mechanism(pn.Airy(mean_abs=2.0), sensitivity=1.5)


def test_mechanism_is_a_value():
    same = pn.Mechanism(pn.Airy(mean_abs=2.0), 1.5)
    assert same == MECHANISM
    assert hash(MECHANISM) == hash(same)
    assert pn.Mechanism(pn.Airy(mean_abs=2.0), 1.0) != MECHANISM
    assert eval(repr(MECHANISM)) == MECHANISM
    assert MECHANISM.noise == pn.Airy(mean_abs=2.0)
    assert MECHANISM.sensitivity == 1.5
    with pytest.raises(AttributeError):
        MECHANISM.sensitivity = 2.0


def test_pure_epsilon():
    assert MECHANISM.pure_epsilon() == math.inf
    assert pn.Mechanism(pn.Laplace(scale=4.0), 2.0).pure_epsilon() == 0.5


def test_certified_is_the_default():
    accountant = pn.Accountant().compose(MECHANISM)
    for call in (MECHANISM.epsilon, MECHANISM.delta, accountant.epsilon, accountant.delta):
        bracket = call(0.01)
        assert bracket.lower <= bracket.estimate <= bracket.upper == float(bracket)
        lower, estimate, upper = bracket
        assert (lower, estimate, upper) == (bracket.lower, bracket.estimate, bracket.upper)
        assert bracket.width == upper - lower
    # Without a contour that converges both are as close as their brackets.
    for name in ("epsilon", "delta"):
        bracket = getattr(accountant, name)(0.01)
        number = getattr(accountant.estimate, name)(0.01)
        assert type(number) is float
        assert bracket.estimate == pytest.approx(number, rel=1e-6)


@for_each([1e-2, 1e-4])
def test_tolerance_is_a_width_in_epsilon(tolerance):
    bracket = MECHANISM.epsilon(1e-6, 50, tolerance=tolerance)
    assert 0.0 < bracket.width <= tolerance


def test_tolerance_may_be_wider_than_any_epsilon():
    """Kills: a step of that width, the square of which overflows."""
    accountant = pn.Accountant().compose(MECHANISM, 3)
    with np.errstate(over="raise"):
        assert accountant.delta(0.1, tolerance=1e300).upper <= 1.0


def test_what_cannot_be_reached_is_refused_and_shown():
    """Only where a tolerance is given; the error has what was reached."""
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    with pytest.raises(pn.CertificationError) as caught:
        mechanism.epsilon(1e-8, 2000, 0.01, tolerance=1e-13)
    bracket, known = caught.value.bracket, mechanism.epsilon(1e-8, 2000, 0.01)
    assert bracket.lower <= known.upper
    assert known.lower <= bracket.upper
    assert 1e-13 < bracket.width <= 1e-3
    for tolerance in (1e-3, 1e-5):
        found = mechanism.epsilon(1e-8, 2000, 0.01, tolerance=tolerance)
        assert found.width <= tolerance


@for_each([-math.inf, -40.0, 0.0, 40.0, 700.0, math.inf])
def test_ends_of_the_profile(epsilon):
    """Near 1 delta hardly moves; near 0 it vanishes."""
    bounds = pn.Mechanism(pn.Gaussian(std=2.0)).delta(epsilon, 3, 0.5)
    assert bounds.lower <= bounds.estimate <= bounds.upper
    assert bounds.upper <= bounds.lower * (1.0 + 1e-1) or bounds.upper <= 5e-324


def test_edges_of_brackets():
    mechanism = pn.Mechanism(pn.Laplace(scale=2.0))
    assert tuple(mechanism.epsilon(1.0, 3)) == (0.0, 0.0, 0.0)
    for end in mechanism.epsilon(0.0, 3):
        assert end == pytest.approx(1.5, rel=1e-15)
    assert mechanism.epsilon(0.0, 3).lower <= 1.5 <= mechanism.epsilon(0.0, 3).upper
    assert tuple(pn.Accountant().epsilon(1e-6)) == (0.0, 0.0, 0.0)
    assert tuple(mechanism.delta(math.inf, 3)) == (0.0, 0.0, 0.0)


def test_a_law_without_a_table_is_not_certified():
    class Law:
        scale, log_concave, unimodal, kinks = 1.0, True, True, ()
        score_limit = support = math.inf

        def logpdf(self, x):
            return pn.Gaussian(std=1.0).logpdf(x)

    mechanism, known = pn.Mechanism(Law()), pn.Mechanism(pn.Gaussian(std=1.0))
    assert mechanism.composed(30).estimate.delta(9.0) == pytest.approx(
        known.composed(30).estimate.delta(9.0), rel=1e-12
    )
    assert mechanism.composed(30).estimate.epsilon(1e-6) == pytest.approx(
        known.composed(30).estimate.epsilon(1e-6), rel=1e-12
    )
    with pytest.raises(pn.CertificationError, match=r"psinoise\.noise"):
        mechanism.delta(1.0)


@for_rows(
    [
        ({"delta": -0.1}, pn.DomainError, "delta"),
        ({"delta": 1.1}, pn.DomainError, "delta"),
        ({"delta": math.nan}, pn.DomainError, "delta"),
        ({"delta": "1e-6"}, TypeError, "delta"),
        ({"delta": [[0.1], [0.1, 0.2]]}, TypeError, "of one shape"),
        ({"delta": 1e-6, "count": -1}, pn.DomainError, "count"),
        ({"delta": 1e-6, "count": 2.5}, TypeError, "count"),
        ({"delta": 1e-6, "count": "3"}, TypeError, "count"),
        ({"delta": 1e-6, "count": True}, TypeError, "count"),
        ({"delta": 1e-6, "count": 2**63}, OverflowError, "count"),
        ({"delta": 1e-6, "sampling_rate": 1.5}, pn.DomainError, "sampling_rate"),
        ({"delta": 1e-6, "sampling_rate": math.nan}, pn.DomainError, "sampling_rate"),
        ({"delta": 1e-6, "sampling_rate": 0.5, "adjacency": "replace"}, pn.DomainError, "proven"),
        ({"delta": 1e-6, "adjacency": "swap"}, pn.DomainError, "add-remove"),
        ({"delta": 1e-6, "adjacency": None}, TypeError, "adjacency"),
        ({"delta": 1e-6, "tolerance": -1.0}, pn.DomainError, "tolerance"),
        ({"delta": 1e-6, "tolerance": 0.0}, pn.DomainError, "tolerance"),
        ({"delta": 1e-6, "tolerance": "1e-3"}, TypeError, "tolerance"),
    ]
)
def test_bad_arguments(arguments, error, match):
    with pytest.raises(error, match=match):
        MECHANISM.epsilon(**arguments)


@for_each(
    ["epsilon", "delta", "profile", "tradeoff", "renyi_divergence"],
    [[[0.1], [0.1, 0.2]], np.ma.array([0.5, 0.1], mask=[True, False]), np.ma.masked, ["a"]],
)
def test_arrays_that_are_no_numbers(question, values):
    """Kills: what is under a mask is used; rows of different lengths that NumPy complains about."""
    for asked in (MECHANISM, MECHANISM.composed(), MECHANISM.composed().estimate):
        if hasattr(asked, question):
            with pytest.raises(TypeError):
                getattr(asked, question)(values)


@for_each([math.nan, "1", None])
def test_bad_epsilon(epsilon):
    with pytest.raises((pn.DomainError, TypeError), match="epsilon"):
        MECHANISM.composed().estimate.delta(epsilon)
    with pytest.raises((pn.DomainError, TypeError), match="epsilon"):
        MECHANISM.delta(epsilon)


@for_each([0.0, -1.0, math.nan, math.inf])
def test_bad_sensitivity(sensitivity):
    with pytest.raises(pn.DomainError, match="sensitivity"):
        pn.Mechanism(pn.Gaussian(std=1.0), sensitivity)
    with pytest.raises(TypeError, match="sensitivity"):
        pn.Mechanism(pn.Gaussian(std=1.0), "1")
    with pytest.raises(TypeError, match="noise"):
        pn.Mechanism("gaussian")


@for_rows([(0, 1.0), (0, 0.1), (5, 0.0), (2**63 - 1, 0.0)])
def test_the_identity(count, rate):
    for nothing in (MECHANISM.composed(count, rate), MECHANISM.composed(count, rate).estimate):
        assert nothing.epsilon(0.0) == 0.0
        assert nothing.epsilon(1e-9) == 0.0
        assert nothing.delta(0.0) == 0.0
        assert nothing.delta(1.0) == 0.0
        assert nothing.delta(-1.0) == pytest.approx(-math.expm1(-1.0), rel=1e-14)
    assert pn.Accountant().estimate.epsilon(0.0) == 0.0


@for_each([1, 2, 1000], [0.1, 1.0])
def test_ends_of_the_range(count, rate):
    estimate = MECHANISM.composed(count, rate).estimate
    assert estimate.epsilon(1.0) == 0.0
    assert estimate.epsilon(0.0) == math.inf
    assert estimate.delta(math.inf) == 0.0
    assert estimate.delta(-math.inf) == 1.0
    assert 0.0 < estimate.delta(-30.0) <= 1.0
    at_zero = estimate.delta(0.0)
    assert estimate.epsilon(min(at_zero * (1.0 + 1e-5), 1.0)) == 0.0
    assert estimate.epsilon(at_zero * (1.0 - 1e-5)) > 0.0


def test_largest_loss_of_sampled_laplace_steps():
    accountant = pn.Accountant()
    accountant.compose(pn.Mechanism(pn.Laplace(scale=1.0)), 3, 0.25)
    accountant.compose(pn.Mechanism(pn.Laplace(scale=0.001)), 2, 0.5)
    exact = 3.0 * math.log1p(0.25 * math.expm1(1.0)) + 2.0 * (1000.0 + math.log(0.5))
    assert accountant.estimate.epsilon(0.0) == pytest.approx(exact, rel=1e-15)


def test_counts_up_to_the_largest_integer():
    mechanism = pn.Mechanism(pn.Gaussian(std=1e10))
    epsilon = mechanism.composed(2**63 - 1).estimate.epsilon(1e-6)
    one = pn.Mechanism(pn.Gaussian(std=1e10 / math.sqrt(2**63))).composed().estimate.epsilon(1e-6)
    # 1e-16 of a loss of 1e-10, averaged over the nodes and squared by sqrt(n) = 3e9.
    assert epsilon == pytest.approx(one, rel=1e-5)
    accountant = pn.Accountant().compose(mechanism, 2**63 - 1)
    with pytest.raises(OverflowError, match="count"):
        accountant.compose(mechanism, 1)


def test_accountant_interface():
    accountant = pn.Accountant()
    assert accountant.compose(MECHANISM) is accountant
    assert accountant.adjacency == "add-remove"
    for wrong in (pn.Airy(mean_abs=1.0), pn.Mechanism, pn.promises.PureDP, None):
        with pytest.raises(TypeError, match="mechanism must be"):
            accountant.compose(wrong)
    assert pn.Accountant(adjacency="replace").adjacency == "replace"
    with pytest.raises(pn.DomainError, match="add-remove"):
        pn.Accountant(adjacency="swap")
    assert "1 distinct" in repr(accountant)


def test_numpy_scalars_are_numbers():
    value = MECHANISM.composed(np.int64(10), np.float64(0.5)).estimate.epsilon(np.float64(1e-6))
    assert type(value) is float
    assert value == MECHANISM.composed(10, 0.5).estimate.epsilon(1e-6)


def test_users_numpy_error_state_does_not_matter():
    with np.errstate(all="raise"):
        assert MECHANISM.composed(10, 0.5).estimate.epsilon(1e-12) > 0.0
        assert MECHANISM.composed(10, 0.5).estimate.delta(3.0) > 0.0
        assert MECHANISM.composed(sampling_rate=0.5).estimate.delta(3.0) > 0.0
