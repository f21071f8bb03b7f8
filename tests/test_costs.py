"""Costs: values, algebra, identity, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psinoise as pn
from case_names import case_name
from psinoise import DomainError, costs

X = np.array([-3.0, -1.0, 0.0, 0.5, 2.0, 1e3])


def smooth_absolute(x):
    return np.sqrt(1.0 + x * x) - 1.0


EXAMPLES = [
    costs.Power(1.5),
    costs.Power(3, weight=0.5),
    costs.Log(),
    costs.Log(2, weight=3.0),
    costs.Power(1) + costs.Log(),
    costs.maximum(costs.Power(1), costs.Power(2)),
    costs.Stretched(costs.Log(), 4.0),
    costs.Custom(smooth_absolute),
    costs.Custom(smooth_absolute, breakpoints=[2.0, 1.0]),
    costs.maximum(costs.Power(2) + costs.Power(1), costs.Custom(np.abs), costs.Power(3)),
]


@pytest.mark.parametrize("cost", EXAMPLES, ids=case_name)
def test_identity(cost):
    assert hash(cost) == hash(pickle.loads(pickle.dumps(cost)))
    assert cost == pickle.loads(pickle.dumps(cost))
    assert cost != 3
    if "Custom" not in repr(cost):
        assert eval(repr(cost), {"costs": costs}) == cost
    with pytest.raises(AttributeError, match="is immutable"):
        cost.weight = 2.0


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("power:1.5", costs.Power(1.5)),
        ("  power : 3: 5e-1 ", costs.Power(3, weight=0.5)),
        ("power:2e+0+log", costs.Power(2) + costs.Log()),
        ("log", costs.Log()),
        ("log:2.", costs.Log(2)),
        ("log:.5:3", costs.Log(0.5, weight=3.0)),
        ("log+log", costs.Sum(costs.Log(), costs.Log())),
        ("max(log)", costs.maximum(costs.Log())),
        (
            "power:1+max(power:2,log+power:3)",
            costs.Power(1) + costs.maximum(costs.Power(2), costs.Log() + costs.Power(3)),
        ),
    ],
)
def test_costs_from_text(text, cost):
    assert costs.parse(text) == cost


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "power, log, logcosh, huber, hinge, piecewise or max instead of the end, got ''"),
        ("  ", "power, log, logcosh, huber, hinge, piecewise or max instead of the end"),
        ("cube", "power, log, logcosh, huber, hinge, piecewise or max instead of 'cube'"),
        ("Power:2", "power, log, logcosh, huber, hinge, piecewise or max instead of 'Power:2'"),
        ("2", "power, log, logcosh, huber, hinge, piecewise or max instead of '2'"),
        ("power", ": and a number instead of the end"),
        ("power:", "a positive number instead of the end"),
        ("power:-1", "a positive number instead of '-1'"),
        ("power:nan", "a positive number instead of 'nan'"),
        ("power:1:2:3", "[+] or the end instead of ':3'"),
        ("power:1 2", "[+] or the end instead of '2'"),
        ("power:\N{ARABIC-INDIC DIGIT ONE}", "a positive number instead of"),
        ("power:1 +", "power, log, logcosh, huber, hinge, piecewise or max instead of the end"),
        ("+power:1", "power, log, logcosh, huber, hinge, piecewise or max instead of"),
        ("max", r"'\(' instead of the end"),
        ("max()", r"power, log, logcosh, huber, hinge, piecewise or max instead of '\)'"),
        ("max(log, log", r"'\)' instead of the end"),
        ("max(log))", "[+] or the end instead of"),
        (
            "__import__('os')",
            'power, log, logcosh, huber, hinge, piecewise or max instead of "__import__',
        ),
        ("power:200", r"p must be in \[1/100, 100\], got 200.0"),
        ("power:0", "p must be positive"),
        ("log:1:1e999", "weight must be positive and finite"),
        ("max(" * 10_000, "at most 16 levels"),
    ],
)
def test_text_that_is_no_cost(text, message):
    with pytest.raises(DomainError, match=message):
        costs.parse(text)


def test_costs_are_read_from_strings_alone():
    for text in (b"log", None, 1.5, costs.Log()):
        with pytest.raises(TypeError, match="text must be a string"):
            costs.parse(text)


@given(text=st.text(alphabet="powerlgmax:+(), 1.5e-", max_size=30))
def test_any_text_is_a_cost_or_an_error(text):
    try:
        found = costs.parse(text)
    except DomainError:
        return
    assert isinstance(found, costs.Cost)


@pytest.mark.parametrize("cost", EXAMPLES, ids=case_name)
def test_every_example_is_a_cost(cost):
    """Even, finite, not decreasing; scalars and shapes as NumPy has them."""
    values = cost(X)
    np.testing.assert_array_equal(values, cost(-X))
    assert cost(X.reshape(2, 3)).shape == (2, 3)
    assert np.ndim(cost(2.0)) == 0
    assert (np.diff(cost(np.linspace(0.0, 50.0, 501))) >= 0.0).all()
    assert cost([]).shape == (0,)
    assert cost(np.array([np.inf]))[0] == np.inf


def test_values():
    np.testing.assert_allclose(costs.Power(1.5, 2.0)(X), 2.0 * np.abs(X) ** 1.5, rtol=1e-15)
    np.testing.assert_allclose(costs.Log(2, 3.0)(X), 3.0 * np.log1p(np.abs(X)) ** 2, rtol=1e-14)
    np.testing.assert_array_equal((costs.Power(1) + costs.Power(2))(X), np.abs(X) + X * X)
    np.testing.assert_array_equal(
        costs.maximum(costs.Power(1), np.square)(X), np.maximum(np.abs(X), X * X)
    )
    np.testing.assert_array_equal(costs.Stretched(costs.Power(1), 4.0)(X), np.abs(X) / 4.0)
    np.testing.assert_array_equal((np.abs + costs.Power(2))(X), np.abs(X) + X * X)


def test_kinks_of_maxima_are_found_to_the_last_bit():
    assert costs.maximum(costs.Power(1), costs.Power(2)).breakpoints == (1.0,)
    (kink,) = costs.maximum(costs.Power(1, weight=3.0), costs.Power(2)).breakpoints
    assert kink == pytest.approx(3.0, rel=4e-16)
    three = costs.maximum(costs.Power(0.5), costs.Power(1, weight=0.5), costs.Power(2, weight=0.01))
    assert three.breakpoints == pytest.approx((4.0, 50.0), rel=4e-16)
    assert costs.Stretched(three, 2.0).breakpoints == pytest.approx((8.0, 100.0), rel=4e-16)
    assert (three + costs.Custom(np.abs, [7.0])).breakpoints[1] == 7.0
    assert costs.maximum(costs.Power(1), costs.Power(1, weight=2.0)).breakpoints == ()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: costs.Power(0.001), DomainError, r"p must be in \[1/100, 100\], got 0.001"),
        (lambda: costs.Power(130), DomainError, r"p must be in \[1/100, 100\], got 130"),
        (lambda: costs.Power(np.nan), DomainError, "p must be positive and finite"),
        (lambda: costs.Power("2"), TypeError, "p must be a real number"),
        (lambda: costs.Power(2, weight=0.0), DomainError, "weight must be positive"),
        (lambda: costs.Log(0.0), DomainError, "power must be positive"),
        (lambda: costs.Stretched(np.abs, -1.0), DomainError, "factor must be positive"),
        (costs.Sum, TypeError, "Sum takes at least one cost"),
        (lambda: costs.Power(1) + 3, TypeError, "unsupported operand"),
        (lambda: costs.Custom(3), TypeError, "cost must be callable, got 3"),
        (lambda: costs.Custom(np.abs, breakpoints="1"), TypeError, "breakpoints must be numbers"),
        (
            lambda: costs.Custom(np.abs, breakpoints=[0.0]),
            DomainError,
            "breakpoints must be positive",
        ),
        (lambda: costs.Custom(np.abs, range(1, 300)), DomainError, "at most 256, got 299"),
        (lambda: costs.Custom(lambda x: x), DomainError, r"cost must be even, got cost\("),
        (lambda: costs.Custom(lambda x: -np.abs(x)), DomainError, "must not decrease"),
        (
            lambda: costs.Custom(lambda x: np.cos(x) + np.abs(x) * 0.1),
            DomainError,
            "must not decrease in |x|",
        ),
        (lambda: costs.Custom(lambda x: 1.0 / np.abs(x)), DomainError, "cost must be finite at 0"),
        (
            lambda: costs.Custom(lambda x: np.where(np.abs(x) > 0.7, np.inf, 0.0)),
            DomainError,
            "cost must be finite",
        ),
        (lambda: costs.Custom(np.tanh), DomainError, "cost must be even"),
        (
            lambda: costs.Custom(lambda x: np.tanh(np.abs(x))),
            DomainError,
            "cost must grow without bound",
        ),
        (
            lambda: costs.Custom(lambda x: 1.0 - 1.0 / (1.0 + np.abs(x))),
            DomainError,
            "without bound",
        ),
        (
            lambda: costs.Custom(lambda x: np.cosh(x) - 1.0),
            DomainError,
            "faster than a power of x, which it does before x = ",
        ),
        (
            lambda: costs.Custom(lambda x: np.where(np.abs(x) > 5.0, np.nan, np.abs(x))),
            DomainError,
            "cost must not be NaN, got NaN at x = 5.0",
        ),
        (lambda: costs.Custom(lambda x: x[:-1]), TypeError, "must have the shape of x"),
        (lambda: costs.Custom(lambda x: x + 1j), TypeError, "must be real numbers"),
        (lambda: costs.Custom(lambda x: "a"), TypeError, "must be real numbers"),
        (lambda: costs.Custom(lambda x: 1 // 0), ZeroDivisionError, "division"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_unhashable_callables_are_refused():
    class Absolute:
        __hash__ = None

        def __call__(self, x):
            return np.abs(x)

    with pytest.raises(TypeError, match="cost must be hashable"):
        costs.Custom(Absolute())


def test_overflow_on_the_way_is_infinity():
    """x^4 / (1 + x^2) is NaN where its numerator and denominator overflow."""

    def ratio(x):
        return x**4 / (1.0 + x * x)

    with np.errstate(all="ignore"):
        cost = costs.Custom(ratio)
        assert cost(1e200) == np.inf
    assert pn.Schrodinger(cost=cost, mean_cost=1.0).logpdf(1e200) == -np.inf


@given(st.floats(0.125, 12.0), st.floats(1e-3, 1e3))
def test_powers_are_rounded_well(p, x):
    assert costs.Power(p)(x) == pytest.approx(x**p, rel=1e-15 * (1.0 + p))
