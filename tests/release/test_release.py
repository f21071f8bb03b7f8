"""Releases: exact rounding, noise that does not see the data, what is accepted and refused."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_oracles import KEY, MECHANISMS

import psinoise as pn
from psinoise.release import values
from psinoise.release.grid import cells_of
from psinoise.testing import integers, replay

MECHANISM = pn.Mechanism(pn.Gaussian(std=1.0)).on_lattice()
COUNTS = pn.Mechanism(pn.DiscreteLaplace(epsilon=0.5)).on_lattice()


def snapped(x, grid):
    return math.floor(Fraction(x) / Fraction(grid) + Fraction(1, 2))


def saturated(x, most):
    return max(-most, min(most, x))


def expected(x, noise, grid, dtype):
    """The documented result of one value, in rational arithmetic."""
    total = saturated(saturated(snapped(x, grid), 2**61) + noise, 2**61)
    exact = total * Fraction(grid)
    if dtype == np.int64:
        return int(saturated(total, 2**62 // int(grid)) * int(grid))
    return dtype(float(exact)) if math.frexp(grid)[0] == 0.5 else dtype(float(total) * grid)


# -- rounding --------------------------------------------------------------------------------------

VALUES = [
    *(0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 5e-324, -5e-324, 1e-310, 0.1, -0.1, 1 / 3),
    *(0.49999999999999994, -0.49999999999999994, 0.5000000000000001, -0.5000000000000001),
    *(2.0**51 + 0.5, -(2.0**51) - 0.5, 2.0**52 - 0.5, 0.5 - 2.0**52, 2.0**53, 2.0**53 + 2),
    *(2.0**60, -(2.0**60), 2.0**61, 2.0**62, -(2.0**62), 2.0**63, -(2.0**63), 1e300, -1e300),
    *(1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308),
]


@pytest.mark.parametrize(
    "grid",
    [2.0**-1000, 2.0**-60, 0.3 / 64, 1 / 3, 0.5, 1.0, math.pi, 1000 / 3, 2.0**53 + 2, 2.0**900],
)
def test_float64_is_rounded_half_up(grid):
    """Every release equals rational arithmetic.

    Kills: half to even, half away from 0, floor(t + 0.5) in floating point (which is 1 at
    0.49999999999999994), a saturation that wraps.
    """
    lattice = pn.Mechanism(pn.Gaussian(std=10.0 * grid), grid).on_lattice(grid)
    x = np.array([*VALUES, *(value * grid for value in VALUES if abs(value * grid) < 1e308)])
    found = replay(lattice, x, KEY)
    noise = integers(lattice.noise, x.size, KEY).tolist()
    for value, k, released in zip(x.tolist(), noise, found.tolist(), strict=True):
        assert released == expected(value, k, grid, np.float64), value


@pytest.mark.parametrize("grid", [2.0**-100, 0.3 / 64, 0.125, 1.0, math.pi, 2.0**60])
def test_float32_is_rounded_half_up(grid):
    lattice = pn.Mechanism(pn.Gaussian(std=10.0 * grid), grid).on_lattice(grid)
    with np.errstate(over="ignore"):
        x = np.array([*VALUES, *(value * grid for value in VALUES)]).astype(np.float32)
    x = x[np.isfinite(x)]
    found = replay(lattice, x, KEY)
    assert found.dtype == np.float32
    noise = integers(lattice.noise, x.size, KEY).tolist()
    for value, k, released in zip(x.tolist(), noise, found, strict=True):
        assert released == expected(value, k, grid, np.float32)


@pytest.mark.parametrize(
    "grid", [2.0**-61, 0.3, 1.0, 2.0, 2.5, 3.0, 1000 / 3, 2.0**53 + 2, 2.0**62]
)
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u4", "u8"])
def test_integers_are_exact(grid, dtype):
    lattice = pn.Mechanism(pn.Gaussian(std=10.0 * grid), grid).on_lattice(grid)
    limits = np.iinfo(dtype)
    numbers = [0, 1, 2, 3, 4, 5, 7, 12, 100, 2**31 - 1, 2**53 + 1, 2**60 + 1, 2**61 - 1, 2**63]
    numbers = {s * n for s in (1, -1) for n in numbers} | {limits.min, limits.max, limits.max - 1}
    x = np.array(sorted(n for n in numbers if limits.min <= n <= limits.max), dtype=dtype)
    found = replay(lattice, x, KEY)
    kind = np.int64 if float(grid).is_integer() else np.float64
    assert found.dtype == kind
    noise = integers(lattice.noise, x.size, KEY).tolist()
    for value, k, released in zip(x.tolist(), noise, found.tolist(), strict=True):
        # Integers are saturated at 2**62 before they are rounded.
        known = saturated(value, 2**62)
        assert released == expected(known, k, grid, kind), value


@settings(max_examples=300, deadline=None)
@given(
    x=st.floats(-1e6, 1e6),
    distance=st.floats(0.0, 4.0),
    grid=st.one_of(st.integers(-20, 3).map(lambda e: 2.0**e), st.floats(1e-6, 8.0)),
)
def test_neighbors_are_apart_by_no_more_than_the_cells_of_the_sensitivity(x, distance, grid):
    """``ceil(D / g)`` for any two values at most ``D`` apart, in exact arithmetic."""
    y = x + distance
    apart = abs(Fraction(y) - Fraction(x))
    if apart:
        cells = math.ceil(apart / Fraction(grid))
        assert abs(snapped(y, grid) - snapped(x, grid)) <= cells
        if Fraction(float(apart)) == apart:
            assert cells_of(float(apart), grid) == cells


def test_the_number_of_cells_is_attained():
    """``D / g`` = 1, 2, 3, 4 move by 1, 2, 3, 4 cells, and a hair more by one more.

    Rounding half to even would move by ``D / g + 1``.
    """
    x = np.arange(-64, 65) / 16.0
    for ratio in (1.0, 2.0, 3.0, 4.0, 1.0625, 2.5):
        moved = {snapped(a + ratio, 1.0) - snapped(a, 1.0) for a in x.tolist()}
        assert max(moved) == cells_of(ratio, 1.0)
    halves = {round(a + 1.0) - round(a) for a in x.tolist()}
    assert max(halves) == 2


# -- the noise does not see the data ---------------------------------------------------------------

FINITE = st.one_of(
    st.floats(-1e9, 1e9),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-(2.0**40), max_value=2.0**40),
    st.sampled_from([0.5, -0.5, 1.5, 5e-324, -5e-324]),
)


@settings(max_examples=200, deadline=None)
@given(
    pairs=st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=40),
    key=st.binary(min_size=32, max_size=32),
    name=st.sampled_from(["Gaussian", "Cauchy", "discrete Laplace", "uniform with an atom"]),
)
def test_the_same_bits_translate(pairs, key, name):
    """With the same bits two releases differ by exactly the difference of the rounded values."""
    lattice = MECHANISMS[name]().on_lattice()
    x, y = np.array(pairs).T
    a, b = replay(lattice, x, key), replay(lattice, y, key)
    for one, other, value, twin in zip(a.tolist(), b.tolist(), x.tolist(), y.tolist(), strict=True):
        cells = (Fraction(one) - Fraction(other)) / Fraction(lattice.grid)
        assert cells == snapped(value, lattice.grid) - snapped(twin, lattice.grid)


def test_layout_and_byte_order_change_nothing(tmp_path):
    x = np.random.default_rng(2).normal(size=(60, 40))
    whole = replay(MECHANISM, x, KEY)
    stored = np.memmap(tmp_path / "x", dtype="f8", mode="w+", shape=x.shape)
    stored[:] = x
    unaligned = np.zeros(x.nbytes + 1, "u1")[1:].view("f8").reshape(x.shape)
    unaligned[:] = x
    wide = np.zeros((60, 80))
    wide[:, ::2] = x
    twisted = np.asfortranarray(x)
    layouts = [stored, unaligned, wide[:, ::2], twisted, x.astype(">f8"), x.tolist(), x[:, ::-1]]
    layouts[-1] = np.ascontiguousarray(x[:, ::-1])[:, ::-1]
    for layout in layouts:
        np.testing.assert_array_equal(replay(MECHANISM, layout, KEY), whole)
    for threads in (0, 1, 3):
        np.testing.assert_array_equal(replay(MECHANISM, x, KEY, threads=threads), whole)
    np.testing.assert_array_equal(replay(MECHANISM, np.ma.masked_array(x), KEY), whole)


def test_shapes_and_scalars():
    assert replay(MECHANISM, np.zeros((2, 0, 3)), KEY).shape == (2, 0, 3)
    for scalar in (1.0, np.float64(1.0), np.array(1.0)):
        found = replay(MECHANISM, scalar, KEY)
        assert isinstance(found, np.float64)
        assert found == replay(MECHANISM, [1.0], KEY)[0]
    assert isinstance(replay(COUNTS, np.int64(41), KEY), np.int64)
    assert isinstance(replay(MECHANISM, np.float32(1.0), KEY), np.float32)
    assert replay(MECHANISM, np.float16(1.0), KEY).dtype == np.float32
    assert replay(MECHANISM, [], KEY).shape == (0,)
    out = np.zeros(())
    assert replay(MECHANISM, 1.0, KEY, out=out) is out


def test_out_is_written_and_returned():
    x = np.linspace(-1.0, 1.0, 50).reshape(5, 10)
    out = np.full((5, 10), np.nan)
    assert replay(MECHANISM, x, KEY, out=out) is out
    np.testing.assert_array_equal(out, replay(MECHANISM, x, KEY))
    whole = np.zeros(3, np.int64)
    replay(COUNTS, np.array([1, 2, 3]), KEY, out=whole)
    np.testing.assert_array_equal(whole, replay(COUNTS, [1, 2, 3], KEY))


def test_no_warning_and_no_floating_point_trap():
    x = np.array([value for value in VALUES if math.isfinite(value)])
    plain = replay(MECHANISM, x, KEY)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for noise in (pn.Gaussian(std=1.0), pn.Cauchy(scale=1e-3)):
            lattice = pn.Mechanism(noise).on_lattice(2.0**-11)
            replay(lattice, x, KEY)
            lattice.noise.pieces(lattice.cells * lattice.grid)
        np.testing.assert_array_equal(replay(MECHANISM, x, KEY), plain)
        replay(MECHANISM, np.array([np.nan, np.inf, 1.0]), KEY, bounds=(-1.0, 1.0))


# -- bounds ----------------------------------------------------------------------------------------


def test_bounds_clip_and_take_nan_to_the_lower_one():
    x = np.array([-np.inf, -3.0, -1.0, 0.25, 2.0, 7.0, np.inf, np.nan])
    clipped = np.array([-1.0, -1.0, -1.0, 0.25, 2.0, 2.0, 2.0, -1.0])
    for dtype in ("f8", "f4"):
        found = replay(MECHANISM, x.astype(dtype), KEY, bounds=(-1.0, 2.0))
        np.testing.assert_array_equal(found, replay(MECHANISM, clipped.astype(dtype), KEY))
    found = replay(COUNTS, np.array([-5, 0, 3, 2**62]), KEY, bounds=(-1.5, 2.5))
    np.testing.assert_array_equal(found, replay(COUNTS, np.array([-1, 0, 2, 2]), KEY))
    np.testing.assert_array_equal(
        replay(COUNTS, np.array([2**64 - 1], np.uint64), KEY, bounds=(-1e300, 1e300)),
        replay(COUNTS, np.array([2**62]), KEY),
    )


def test_float32_bounds_do_not_let_more_in():
    """The float32 number 0.1 is above the float64 one: nothing beyond the bounds comes back."""
    grid = 2.0**-26
    lattice = pn.Mechanism(pn.Gaussian(std=64 * grid), grid).on_lattice(grid)
    x = np.array([1.0, -1.0, 0.1], np.float32)
    found = replay(lattice, x, KEY, bounds=(-0.1, 0.1))
    noise = integers(lattice.noise, 3, KEY)
    clipped = found.astype(float) - noise * grid
    assert (np.abs(clipped) <= snapped(0.1, grid) * grid).all()
    assert len(set(np.abs(clipped).tolist())) == 1


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        (1.0, TypeError),
        ((1.0,), TypeError),
        (("0", "1"), TypeError),
        ((True, 2.0), TypeError),
        ((1j, 2.0), TypeError),
        (np.array([0.0, 1.0]), TypeError),
        ((2.0, 1.0), pn.DomainError),
        ((0.0, math.inf), pn.DomainError),
        ((math.nan, 1.0), pn.DomainError),
    ],
)
def test_wrong_bounds(bounds, error):
    with pytest.raises(error, match="bounds must"):
        MECHANISM.release([1.0], bounds=bounds)
    with pytest.raises(pn.DomainError, match="whole number between"):
        COUNTS.release(np.array([1]), bounds=(0.25, 0.75))


# -- what is refused, before any bit is drawn ------------------------------------------------------


@pytest.fixture
def no_entropy(monkeypatch):
    """Entropy that must not be asked for."""

    def fail():
        raise AssertionError("bits were drawn")

    monkeypatch.setattr(values, "fresh_key", fail)


SECRET = 8675309.25
REFUSED = [
    (np.array([SECRET, 1j]), TypeError),
    (np.array([SECRET, None]), TypeError),
    (np.array(["8675309"]), TypeError),
    (np.array(["2020-01-01"], "M8[D]"), TypeError),
    (np.array([(SECRET,)], dtype=[("a", "f8")]), TypeError),
    (np.array([True]), TypeError),
    (np.ma.masked_array([SECRET, 1.0], [False, True]), TypeError),
    (np.array([SECRET], np.longdouble), TypeError),
    (10**30, pn.DomainError),
    ([SECRET, 2**53 + 1], pn.DomainError),
    ([SECRET, True], TypeError),
    ([np.ma.masked, SECRET], TypeError),
    ([np.ma.masked_array([SECRET], [True])], TypeError),
    ([SECRET, None], pn.DomainError),
    ([[SECRET], [SECRET, 1.0]], TypeError),
    (None, TypeError),
    ("8675309", TypeError),
    (np.array([SECRET, np.nan]), pn.DomainError),
    (np.array([SECRET, -np.inf], np.float32), pn.DomainError),
]


@pytest.mark.parametrize(("x", "error"), REFUSED)
def test_bad_values_are_refused_and_not_shown(x, error, no_entropy):
    with pytest.raises(error, match="x must") as caught:
        MECHANISM.release(x)
    assert "8675309" not in str(caught.value)
    assert "nan" not in str(caught.value)


def overlapping():
    whole = np.zeros(20)
    return whole[:10], whole[5:15]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: ([1.0], [0.0]), TypeError),
        (lambda: ([1.0], np.zeros(1, np.float32)), TypeError),
        (lambda: ([1.0], np.zeros(1, ">f8")), TypeError),
        (lambda: ([1.0], np.ma.masked_array([0.0])), TypeError),
        (lambda: ([1.0, 2.0], np.zeros(3)), ValueError),
        (lambda: ([1.0, 2.0], np.zeros((2, 1))), ValueError),
        (lambda: ([1.0, 2.0], np.zeros(4)[::2]), ValueError),
        (lambda: ([1.0, 2.0], np.frombuffer(bytes(16))), ValueError),
        (overlapping, ValueError),
    ],
)
def test_wrong_out(make, error, no_entropy):
    x, out = make()
    with pytest.raises(error, match="out must"):
        MECHANISM.release(x, out=out)


@pytest.mark.parametrize("name", ["rng", "seed", "key", "random_state"])
def test_bits_cannot_be_chosen(name, no_entropy):
    for mechanism in (MECHANISM, COUNTS):
        with pytest.raises(TypeError, match="sample"):
            mechanism.release([1.0], **{name: 7})
        with pytest.raises(TypeError, match="did you mean 'bounds'"):
            mechanism.release([1.0], bound=(0.0, 1.0))


def test_grids_beyond_the_type_of_the_values(no_entropy):
    tiny = pn.Mechanism(pn.Gaussian(std=1e-40), 1e-40).on_lattice(2.0**-140)
    with pytest.raises(pn.DomainError, match="float32"):
        tiny.release(np.zeros(1, np.float32))
    with pytest.raises(pn.DomainError, match="int64"):
        tiny.release(np.array([1]))


# -- bits ------------------------------------------------------------------------------------------


def test_entropy_is_asked_for_once_a_call_and_its_failure_is_an_error(monkeypatch):
    asked = []

    def key():
        asked.append(1)
        return KEY

    monkeypatch.setattr(values, "fresh_key", key)
    x = np.arange(1000.0)
    np.testing.assert_array_equal(MECHANISM.release(x), replay(MECHANISM, x, KEY))
    assert len(asked) == 1

    def fail():
        raise OSError("no entropy")

    monkeypatch.setattr(values, "fresh_key", fail)
    out = np.full(1, 5.0)
    with pytest.raises(OSError, match="no entropy"):
        MECHANISM.release([1.0], out=out)
    assert out[0] == 5.0


def test_no_two_releases_are_the_same():
    x = np.zeros(64)
    assert len({MECHANISM.release(x).tobytes() for _ in range(50)}) == 50


@pytest.mark.parametrize("key", [b"short", "0" * 32, bytearray(32), None])
def test_replay_wants_32_bytes(key):
    with pytest.raises((TypeError, ValueError), match="key must be"):
        replay(MECHANISM, 1.0, key)


def test_vectors_have_their_coordinates_along_the_last_axis():
    vector = pn.Mechanism(pn.Laplace(scale=1.0), dimension=3).on_lattice()
    assert vector.release(np.zeros((5, 3))).shape == (5, 3)
    for shape in ((3, 5), (), (4,)):
        with pytest.raises(pn.DomainError, match="3 coordinates"):
            vector.release(np.zeros(shape))
    with pytest.raises(pn.DomainError, match="norm must be 'linf'"):
        pn.Mechanism(pn.Laplace(scale=1.0), dimension=3, norm="l1").on_lattice()
