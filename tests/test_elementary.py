"""exp, log, log1p and double-double arithmetic against mpmath and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psinoise import _core as native
from psinoise import reference
from psinoise.numerics import double_double as dd

# The claims of csrc/math/elementary.hpp, in ulp of the true result. exp passes 1 ulp where the
# reduced argument is near -log(2) / 2: the largest error at 150,000 points there is 1.09.
EXP_ULP = 1.2
LOG_ULP = 1.5
LOG1P_ULP = 2.0

TINY = 2.0**-1074
SMALLEST_NORMAL = 2.0**-1022


def ulp_errors(values, truths):
    """Errors in ulp of the true value (of 2**-1074 where that is subnormal)."""
    errors = []
    for value, truth in zip(values, truths, strict=True):
        exponent = int(mpmath.floor(mpmath.log(abs(truth), 2))) if truth else -1074
        errors.append(float(abs(mpmath.mpf(float(value)) - truth) / _ulp(exponent)))
    return np.array(errors)


def _ulp(exponent):
    return mpmath.ldexp(1, max(exponent - 52, -1074))


def around(points, steps=3):
    """The points and their neighbors on both sides."""
    out = [np.asarray(points, dtype=float)]
    up = down = out[0]
    for _ in range(steps):
        up, down = np.nextafter(up, np.inf), np.nextafter(down, -np.inf)
        out += [up, down]
    return np.concatenate(out)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def exponents():
    generator = np.random.default_rng(11)
    reduced = np.log(2.0) * (np.arange(-1074, 1023) + 0.5)  # where k changes: |r| is largest
    return np.concatenate(
        [
            around([0.0, 1.0, -1.0, np.log(2.0), -708.396, -745.133, 709.782, -0.0, 1e-300]),
            around(reduced[::7], 1),
            reduced + generator.uniform(-0.003, 0.003, reduced.size),
            generator.uniform(-745.0, 709.7, 4000),
            generator.uniform(-0.35, 0.35, 2000),
            np.copysign(2.0 ** generator.uniform(-1074.0, -1.0, 500), generator.normal(size=500)),
        ]
    )


def positive_numbers():
    generator = np.random.default_rng(12)
    return np.concatenate(
        [
            around([1.0, 0.5, 2.0, np.sqrt(0.5), np.sqrt(2.0), 1e-308, SMALLEST_NORMAL], 20),
            np.array([TINY, 2 * TINY, 3 * TINY, SMALLEST_NORMAL - TINY, np.finfo(float).max]),
            1.0 + np.copysign(2.0 ** generator.uniform(-52, -1, 2000), generator.normal(size=2000)),
            2.0 ** generator.uniform(-1074.0, 1023.9, 4000),
            generator.uniform(0.70, 1.42, 2000),
        ]
    )


def test_exponential_is_within_its_claim(core):
    hi = exponents()
    generator = np.random.default_rng(13)
    for share in (0.0, 1.0, -1.0, generator.uniform(-1.0, 1.0, hi.size)):
        lo = share * np.spacing(np.abs(hi))
        values = core.exponential(hi, lo)
        pairs = zip(hi, lo, strict=True)
        truths = [mpmath.exp(mpmath.mpf(float(a)) + mpmath.mpf(float(b))) for a, b in pairs]
        finite = np.isfinite(values)
        assert all(truth > 1.797e308 for truth in np.array(truths)[~finite])
        errors = ulp_errors(values[finite], np.array(truths)[finite])
        assert errors.max() < EXP_ULP


def test_exponential_without_the_low_part_would_fail():
    """The mutant ``lo`` ignored: the bound above sees it (|lo| is one ulp of hi, 1e-13)."""
    hi = np.linspace(-700.0, -600.0, 50)
    values = reference.exponential(hi, np.zeros_like(hi))
    lo = np.spacing(np.abs(hi))
    truths = [mpmath.exp(mpmath.mpf(a) + mpmath.mpf(b)) for a, b in zip(hi, lo, strict=True)]
    assert ulp_errors(values, truths).max() > EXP_ULP


def test_logarithm_is_within_its_claim(core):
    x = positive_numbers()
    truths = [mpmath.log(mpmath.mpf(float(value))) for value in x]
    assert ulp_errors(core.logarithm(x), truths).max() < LOG_ULP


def test_log_one_plus_is_within_its_claim(core):
    generator = np.random.default_rng(14)
    x = np.concatenate(
        [
            positive_numbers(),
            -(2.0 ** generator.uniform(-1074.0, -0.001, 3000)),
            around([-0.5, -0.25, -1.0 + 2.0**-53, 1e-17, -1e-17], 5)[:-5],
        ]
    )
    x = x[x > -1.0]
    truths = [mpmath.log1p(mpmath.mpf(float(value))) for value in x]
    assert ulp_errors(core.log_one_plus(x), truths).max() < LOG1P_ULP


def test_edge_values(core):
    inf, nan = np.inf, np.nan
    x = np.array([-inf, -800.0, -745.2, 0.0, -0.0, 709.79, 1e300, inf, nan])
    with np.errstate(over="ignore"):
        values = core.exponential(x, np.zeros_like(x))
    np.testing.assert_array_equal(values, [0.0, 0.0, 0.0, 1.0, 1.0, inf, inf, inf, nan])
    x = np.array([0.0, -0.0, inf, -1.0, -TINY, -inf, nan, 1.0])
    np.testing.assert_array_equal(core.logarithm(x), [-inf, -inf, inf, nan, nan, nan, nan, 0.0])
    x = np.array([-1.0, inf, -2.0, -inf, nan, 0.0, TINY, -TINY])
    expected = [-inf, inf, nan, nan, nan, 0.0, TINY, -TINY]
    np.testing.assert_array_equal(core.log_one_plus(x), expected)


def random_bits(count, seed):
    """Every kind of float64 there is: the patterns are uniform, NaN payloads included."""
    bits = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
    return bits.view(np.float64)


def same_bits(a, b):
    """Equality of bits, except that one NaN is as good as another."""
    return np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(
        a[~np.isnan(a)].view(np.uint64), b[~np.isnan(b)].view(np.uint64)
    )


def test_native_equals_reference_bit_for_bit():
    anything = random_bits(1_000_000, 21)
    near_one = 1.0 + np.random.default_rng(22).normal(size=200_000) * 1e-3
    for x in (anything, near_one):
        assert same_bits(native.logarithm(x), reference.logarithm(x))
        assert same_bits(native.log_one_plus(x), reference.log_one_plus(x))
    generator = np.random.default_rng(23)
    hi = np.concatenate([anything, generator.uniform(-760.0, 720.0, 1_000_000)])
    with np.errstate(all="ignore"):
        lo = generator.uniform(-1.0, 1.0, hi.size) * np.spacing(np.abs(hi))
    lo = np.where(np.isfinite(lo), lo, 0.0)
    assert same_bits(native.exponential(hi, lo), reference.exponential(hi, lo))


# -- double-double ---------------------------------------------------------------------------------

# Products need room for their low part below and above: 2**-1074 < 2**(2e - 106), 2**(2e) < 2**996.
moderate = st.floats(min_value=-(2.0**480), max_value=2.0**480, allow_nan=False).filter(
    lambda x: x == 0.0 or abs(x) > 2.0**-450
)
summands = st.floats(min_value=-(2.0**1000), max_value=2.0**1000, allow_nan=False)


def _array(x):
    return np.array([x])


def _exact(pair):
    return Fraction(float(pair[0][0])) + Fraction(float(pair[1][0]))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(summands, summands)
def test_sums_are_exact(a, b):
    assert _exact(dd.two_sum(_array(a), _array(b))) == Fraction(a) + Fraction(b)
    a, b = (a, b) if abs(a) >= abs(b) else (b, a)
    assert _exact(dd.quick_two_sum(_array(a), _array(b))) == Fraction(a) + Fraction(b)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(moderate, moderate)
def test_products_are_exact_and_quotients_nearly(a, b):
    hi, lo = dd.two_product(_array(a), _array(b))
    assert _exact((hi, lo)) == Fraction(a) * Fraction(b)
    assert abs(lo[0]) <= 0.5 * np.spacing(abs(hi[0]))
    if b != 0.0 and a != 0.0 and 2.0**-450 < abs(a / b) < 2.0**480:
        quotient = Fraction(a) / Fraction(b)
        # One rounding of the low part, which is half an ulp of the high one at most.
        assert abs(_exact(dd.divide(_array(a), _array(b))) - quotient) <= abs(quotient) / 2**104


@settings(max_examples=200, deadline=None, derandomize=True)
@given(moderate, moderate, st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
def test_pairs_multiply_add_and_take_roots_to_a_hundred_bits(a, b, a_share, b_share):
    x = _array(a), _array(a_share * np.spacing(abs(a)))
    y = _array(b), _array(b_share * np.spacing(abs(b)))
    product = _exact(x) * _exact(y)
    assert abs(_exact(dd.multiply(x, y)) - product) <= abs(product) / 2**100
    # `add` is the short form: its error is relative to the summands, not to a sum that cancels.
    bound = (abs(_exact(x)) + abs(_exact(y))) / 2**104
    assert abs(_exact(dd.add(x, y)) - (_exact(x) + _exact(y))) <= bound
    if a > 0.0:
        root = _exact(dd.square_root(x))
        assert abs(root * root - _exact(x)) <= _exact(x) / 2**99
