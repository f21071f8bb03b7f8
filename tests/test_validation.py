"""What users get for bad input: TypeError for the wrong kind, DomainError for a wrong value."""

from __future__ import annotations

import inspect
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import psinoise
from psinoise import DomainError, _validate
from psinoise.noise import DESIGNED, FAMILIES
from psinoise.noise import LAWS as FAMILY_CLASSES
from refusals import check_rows, for_each, for_rows

LAWS = [family(scale=1.0) for family in FAMILIES]
STATISTICS = ("scale", "std", "mean_abs")
QUANTITIES = ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf", "icdf", "iccdf")


@for_each(FAMILIES, STATISTICS, [0, 0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, np.float32(-2)])
def test_wrong_values_of_a_scale(law_class, name, value):
    message = f"{name} must be positive and finite, got {value!r}"
    with pytest.raises(DomainError, match=f"^{re.escape(message)}$"):
        law_class(**{name: value})


@for_each(
    FAMILIES,
    STATISTICS,
    ["1", b"1", 1j, True, np.True_, np.array([1.0]), np.array(1.0), [1.0], (1.0,), object()],
)
def test_wrong_kinds_of_a_scale(law_class, name, value):
    with pytest.raises(TypeError, match=f"^{name} must be a real number, got "):
        law_class(**{name: value})


@for_each(FAMILIES, [5e-324, 2.0**-1023, np.nextafter(2.0**-1022, 0.0)])
def test_subnormal_scales(law_class, value):
    with pytest.raises(ValueError, match=r"must be at least 2\*\*-1022"):
        law_class(scale=value)


@for_each(FAMILIES)
def test_statistics_whose_scale_over_or_underflows(law_class):
    """A legal statistic can still ask for a scale that is not: never inf or 0 in silence."""
    largest = float(np.finfo(float).max)
    for name in STATISTICS:
        if getattr(law_class(scale=1.0), name) == np.inf:
            with pytest.raises(DomainError, match=f"{name} must be left out, since it is infinite"):
                law_class(**{name: 1.0})
            continue
        ratio = law_class(**{name: 1.0}).scale
        for value in (largest, 2.0**-1022):
            if 2.0**-1022 <= value * ratio < np.inf:
                assert 0.0 < law_class(**{name: value}).scale < np.inf
            else:
                with pytest.raises((DomainError, OverflowError)):
                    law_class(**{name: value})


@for_each(FAMILIES, [1, 2.5, np.float32(0.5), np.float64(3), np.int8(4), Fraction(1, 3), 10**300])
def test_every_real_number_is_accepted(law_class, value):
    assert law_class(scale=value).scale == float(value)


@for_each(FAMILIES)
def test_integers_too_large_for_float64(law_class):
    with pytest.raises(OverflowError, match="scale must fit a float64"):
        law_class(scale=10**400)


@for_each(FAMILIES)
def test_exactly_one_statistic(law_class):
    name = law_class.law.__name__
    for arguments in ({}, {"scale": 1.0, "std": 1.0}, {"scale": 1, "std": 1, "mean_abs": 1}):
        with pytest.raises(
            TypeError, match=f"{name} takes exactly one of .*, got {len(arguments)}"
        ):
            law_class(**arguments)
    with pytest.raises(TypeError, match=f"{name} takes exactly one of .*, got 0"):
        law_class(scale=None)


@pytest.mark.parametrize("law", [*FAMILY_CLASSES, *DESIGNED], ids=lambda law: law.__name__)
def test_arguments_without_a_name(law):
    """The signature that is shown is the one that holds, and a wrong call is told its names."""
    parameters = inspect.signature(law).parameters
    assert parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    most = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())
    message = (
        rf"^{law.__name__}\(\) takes {most or 'no'} arguments without a name, got {most + 1}; "
    )
    with pytest.raises(TypeError, match=f"{message}it takes {', '.join(parameters)}$"):
        law(*[1.0] * (most + 1))
    with pytest.raises(TypeError, match=f"takes {', '.join(parameters)}$"):
        law(qqq=1.0)


@pytest.mark.parametrize("law", [*FAMILY_CLASSES, *DESIGNED], ids=lambda law: law.__name__)
def test_a_class_is_no_law(law):
    with pytest.raises(TypeError, match=f"got the class {law.__name__}: call it first"):
        psinoise.Mechanism(law)


@for_each(LAWS)
def test_names_of_scipy_stats(law):
    """Mutant: ``sf`` and ``isf`` that are ``cdf`` and ``icdf``."""
    x, p = np.array([-0.7, 0.0, 1.3]), np.array([0.1, 0.5, 0.97])
    for theirs, ours, at in (
        ("sf", "ccdf", x),
        ("logsf", "logccdf", x),
        ("ppf", "icdf", p),
        ("isf", "iccdf", p),
    ):
        assert (getattr(law, theirs)(at) == getattr(law, ours)(at)).all()
    assert (law.rvs((2, 3), random_state=5) == law.sample((2, 3), rng=5)).all()
    assert law.var == law.std**2
    assert law.mean == 0.0 if np.isfinite(law.mean_abs) else np.isnan(law.mean)


@for_each(LAWS, ["variance", "standard_deviation", "median", "expect"])
def test_names_that_are_near(law, name):
    with pytest.raises(AttributeError, match=f"noise has no '{name}': here it is ") as caught:
        getattr(law, name)
    ours = str(caught.value).split("here it is ")[1]
    assert ours.startswith("0.0") or eval(f"law.{ours}", {"law": law}) is not None


@for_each(LAWS)
def test_what_a_law_shows(law):
    names = dir(law)
    assert {"pdf", "iccdf", "sample", "std", "mean_abs", "kl"} <= set(names)
    assert not [n for n in names if n.startswith("_") and not n.startswith("__")]
    assert not {"log_density", "layout", "spread", "period", "for_target"} & set(names)
    assert all(hasattr(law, name) for name in names if not name.startswith("__"))


@for_each(
    FAMILIES,
    [("sclae", "scale"), ("mean_ab", "mean_abs"), ("stdev", "std"), ("Scale", "scale")],
)
def test_unknown_keywords_name_the_nearest(law_class, names):
    wrong, nearest = names
    message = rf"{law_class.law.__name__}\(\) got an unexpected keyword argument '{wrong}'"
    with pytest.raises(TypeError, match=rf"{message}; did you mean '{nearest}'\? It takes "):
        law_class(**{wrong: 1.0})
    with pytest.raises(TypeError, match=message):
        law_class(scale=1.0, **{wrong: 1.0})


@for_each(FAMILIES)
def test_unknown_keywords_without_a_near_one(law_class):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'qqq'; it takes "):
        law_class(qqq=1.0)


@for_each(
    LAWS,
    QUANTITIES,
    [
        1j,
        "1.0",
        None,
        object(),
        True,
        np.array(["1"]),
        np.array([1.0, None]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=[("a", float)]),
        np.array([True, False]),
        np.array([1 + 0j]),
        b"1",
    ],
)
def test_points_of_the_wrong_kind(law, quantity, x):
    name = "p" if "icdf" in quantity or "iccdf" in quantity else "x"
    with pytest.raises(TypeError, match=f"^{name} must be real numbers, got dtype "):
        getattr(law, quantity)(x)


@for_each(LAWS)
def test_longdouble_points_are_refused(law):
    """They would lose digits in silence."""
    with pytest.raises(TypeError, match="x must be real numbers"):
        law.pdf(np.longdouble(1.0))


@for_each(LAWS)
def test_masked_points_are_refused(law):
    """They would lose their mask in silence."""
    with pytest.raises(TypeError, match="x must"):
        law.pdf(np.ma.array([1.0, 2.0], mask=[False, True]))


@for_each(
    LAWS,
    [
        [1, 2, 3],
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1, 2, 3], dtype=np.float32),
        np.array([1, 2, 3], dtype=">f8"),
        np.array([1, 2, 3], dtype=np.float16),
        np.arange(1.0, 7.0)[::2] / 1.0 - np.array([0.0, 1.0, 2.0]),
        (1, 2, 3),
        np.ma.array([1.0, 2.0, 3.0]),
    ],
)
def test_points_that_are_accepted_exactly(law, x):
    np.testing.assert_array_equal(law.pdf(x), law.pdf(np.array([1.0, 2.0, 3.0])))


@for_each(FAMILIES)
def test_integers_beyond_2_to_53_are_rounded_to_nearest(law_class):
    law = law_class(scale=2.0**50)
    assert law.pdf(2**53 + 1) == law.pdf(float(2**53 + 1))
    assert law.cdf(np.int64(2**60 + 1)) == law.cdf(2.0**60)


# -- the checks themselves -------------------------------------------------------------------------


@for_rows(
    [
        (_validate.real, np.nan, DomainError, "name must not be NaN"),
        (_validate.real, "1", TypeError, "name must be a real number, got '1'"),
        (_validate.real, Decimal(1), TypeError, "name must be a real number, got Decimal('1')"),
        (_validate.probability, 1.5, DomainError, "name must be in [0, 1], got 1.5"),
        (_validate.probability, -1e-300, DomainError, "name must be in [0, 1], got -1e-300"),
        (_validate.probability, np.nan, DomainError, "name must be in [0, 1], got nan"),
        (_validate.count, -1, DomainError, "name must be at least 0, got -1"),
        (_validate.count, 2.5, TypeError, "name must be an integer, got 2.5"),
        (_validate.count, "3", TypeError, "name must be an integer, got '3'"),
        (_validate.count, True, TypeError, "name must be an integer, got True"),
        (_validate.count, np.True_, TypeError, "name must be an integer, got np.True_"),
        (_validate.count, None, TypeError, "name must be an integer, got None"),
        (_validate.count, 2**63, OverflowError, f"name must be at most 2**63 - 1, got {2**63}"),
    ]
)
def test_messages(check, value, error, message):
    with pytest.raises(error) as caught:
        check("name", value)
    assert str(caught.value) == message


@for_each(
    [
        Fraction(1, 3),
        Fraction(2, 3),
        Fraction(1, 7),
        Fraction(6, 7),
        Fraction(2**60 + 1, 2**61),
        Fraction(1),
    ],
    [1, 2**53 + 1],
)
def test_numbers_that_are_no_float64_are_rounded_to_the_safe_side(share, size):
    """What bounds what may happen up; targets, budgets and questions down."""
    third, tiny = share * size, share / 10**9
    promises = psinoise.promises
    for kind in (promises.PureDP, promises.BoundedRange, promises.GDP, promises.ZCDP):
        (found,) = kind(third).parameters.values()
        assert third <= Fraction(found) <= third * (1 + Fraction(1, 2**51))
    assert float(promises.PureDP(third).epsilon(0.0)) >= third
    for number in promises.ApproximateDP(share, tiny).parameters.values():
        assert Fraction(number) >= (tiny if number < 1e-6 else share)
    assert psinoise.sampling.Poisson(share).rate >= share
    mechanism = psinoise.Mechanism(LAWS[0], third, contribution=third)
    assert min(mechanism.sensitivity, mechanism.contribution) >= third
    ledger = psinoise.Ledger(share, tiny)
    assert ledger.epsilon <= share
    assert ledger.delta <= tiny
    noise = psinoise.calibrate(psinoise.Laplace, epsilon=share, delta=0, sensitivity=third)
    assert Fraction(third) / Fraction(noise.scale) <= share
    # A law that is made for a sensitivity hides that of the query: a step of it is no shorter.
    for law in (
        psinoise.Staircase(epsilon=share, sensitivity=third),
        psinoise.TruncatedLaplace(epsilon=share, delta=tiny, sensitivity=third),
    ):
        assert law.epsilon <= share
        assert law.sensitivity == psinoise.Mechanism(law, third).sensitivity
        assert float(psinoise.Mechanism(law, third).epsilon(tiny)) <= share
    assert Fraction(1) / Fraction(psinoise.DiscreteLaplace(epsilon=share).scale) <= share


def test_integers_of_numpy_are_compared_exactly():
    number = np.int64(2**53 + 1)
    assert _validate.positive_above("name", number) == 2.0**53 + 2.0
    assert _validate.positive_below("name", number) == 2.0**53
    for check in (_validate.probability_above, _validate.probability_below):
        with pytest.raises(DomainError, match=r"name must be in \[0, 1\]"):
            check("name", Fraction(10**30 + 1, 10**30))
    assert _validate.probability_below("name", Fraction(10**30 - 1, 10**30)) < 1.0


def test_choices():
    assert _validate.choice("name", "a", ["a", "b"]) == "a"
    with pytest.raises(DomainError, match=r"^name must be one of a, b, got 'c'$"):
        _validate.choice("name", "c", iter(["a", "b"]))
    with pytest.raises(TypeError, match=r"^name must be one of a, b, got 1$"):
        _validate.choice("name", 1, ["a", "b"])


def test_good_values_pass_unchanged():
    assert _validate.real("x", -np.inf) == -np.inf
    assert _validate.positive("x", np.float32(0.5)) == 0.5
    assert _validate.positive("x", 2.0**-1022) == 2.0**-1022
    assert _validate.probability("x", 1) == 1.0
    assert _validate.probability("x", 0.0) == 0.0
    assert _validate.count("x", np.uint8(7)) == 7
    assert _validate.count("x", 2**63 - 1) == 2**63 - 1
    assert isinstance(_validate.count("x", np.int64(3)), int)


def test_domain_errors_are_value_errors():
    assert issubclass(DomainError, ValueError)


def test_a_table_names_every_row_that_fails():
    def positive(name, value):
        with pytest.raises(DomainError):
            _validate.positive(name, value)

    check_rows([("x", 0.0), ("y", -1.0)], positive)
    with pytest.raises(BaseExceptionGroup) as caught:
        check_rows([("x", 0.0), ("y", 1.0), ("z", "1")], positive)
    assert caught.value.message == "row 1 ('y', 1.0); row 2 ('z', '1')"
    assert len(caught.value.exceptions) == 2
