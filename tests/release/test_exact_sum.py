"""Sums of snapped values: exact, of the sensitivity that the docstring proves."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import psinoise as pn
from case_names import case_name

EXPONENTS = st.integers(-60, 60)


def snapped(x, grid, bounds):
    """The definition, in rational numbers."""
    low, high = map(Fraction, bounds)
    if not math.isfinite(x):
        x = high if x > 0 else low  # NaN is not above 0
    cells = math.floor(Fraction(x) / Fraction(grid) + Fraction(1, 2))
    first, last = math.ceil(low / Fraction(grid)), math.floor(high / Fraction(grid))
    return min(max(cells, first), last) * Fraction(grid)


@st.composite
def problems(draw):
    grid = 2.0 ** draw(EXPONENTS)
    cells = st.floats(-(2.0**31), 2.0**31)
    low, high = sorted((draw(cells) * grid, draw(cells) * grid))
    assume(math.ceil(Fraction(low) / Fraction(grid)) <= math.floor(Fraction(high) / Fraction(grid)))
    halves = st.integers(-(2**33), 2**33).map(lambda k: 0.5 * k * grid)
    near = st.builds(math.nextafter, halves, st.sampled_from([-math.inf, math.inf]))
    values = draw(st.lists(st.one_of(halves, near, st.floats(width=64)), max_size=30))
    return np.array(values, dtype=np.float64), grid, (low, high)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_it_is_the_sum_of_the_snapped_values(problem):
    """Kills: rint (half to even), half down, a sum in float, NaN to the upper bound."""
    values, grid, bounds = problem
    expected = sum((snapped(x, grid, bounds) for x in values.tolist()), Fraction(0))
    assert Fraction(pn.exact_sum(values, grid, bounds=bounds)) == expected


@pytest.mark.parametrize(
    ("x", "cells"),
    [
        (math.nextafter(0.5, 0.0), 0),
        (0.5, 1),
        (math.nextafter(0.5, 1.0), 1),
        (-0.5, 0),
        (math.nextafter(-0.5, -1.0), -1),
        (math.nextafter(-0.5, 0.0), 0),
        (1.5, 2),
        (2.5, 3),
        (-1.5, -1),
        (math.nextafter(2.0**30 + 0.5, 0.0), 2**30),
    ],
)
@pytest.mark.parametrize("grid", [1.0, 2.0**-700, 2.0**900])
def test_halves_go_up(x, cells, grid):
    """Kills: floor(t + 0.5), which rounds the number below 1/2 up."""
    values = np.array([x * grid])
    assert pn.exact_sum(values, grid, bounds=(-grid * 2**31, grid * 2**31)) == cells * grid


@settings(max_examples=150, deadline=None)
@given(problems(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_one_record_moves_it_by_no_more_than_is_proven(problem, first, second):
    values, grid, (low, high) = problem
    x, y = (min(max(low + share * (high - low), low), high) for share in (first, second))
    total, with_x, with_y = (
        Fraction(pn.exact_sum(np.append(values, more), grid, bounds=(low, high)))
        for more in ([], x, y)
    )
    largest = max(abs(Fraction(low)), abs(Fraction(high)))
    assert abs(with_x - total) <= largest
    assert abs(with_x - with_y) <= Fraction(high) - Fraction(low)


@pytest.mark.parametrize("ratio", [1, 2, 3, 4, 2.25, 2.5, 2.75])
def test_the_bounds_are_reached(ratio):
    """For all pairs on a fine mesh: the sensitivity is that many cells, and not fewer."""
    mesh = np.arange(-64, 65) / 16.0
    moved = [
        abs(pn.exact_sum([x], 1.0, bounds=(-4, 4)) - pn.exact_sum([x + ratio], 1.0, bounds=(-9, 9)))
        for x in mesh[mesh + ratio <= 4]
    ]
    assert max(moved) == math.ceil(ratio)


def test_a_floating_point_sum_does_not_have_this_sensitivity():
    """The test of the test: a record of 2 moves the sum in float32 by 4, and this one by 2."""
    before, after = np.float32([2**24, 1]), np.float32([2**24, 2, 1])
    assert np.cumsum(after)[-1] - np.cumsum(before)[-1] == 4.0
    bounds = (0.0, 2.0**24)
    assert pn.exact_sum(after, 1.0, bounds=bounds) - pn.exact_sum(before, 1.0, bounds=bounds) == 2.0


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
@pytest.mark.parametrize("exponent", [-3, 0, 1, 2, 7, 31, 33, 40, 62, 63, 64, 65, 90])
def test_integers_of_every_kind(kind, exponent):
    """Kills: a way through float64, which rounds beyond 2**53; a shift by the width of the type."""
    info = np.iinfo(kind)
    values = sorted({0, 1, 5, info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1})
    grid = 2.0**exponent
    bounds = (-grid * (2**31 - 1), grid * 2**31)
    expected = [snapped(value, grid, bounds) for value in map(Fraction, values)]
    found = [pn.exact_sum(np.array([value], kind), grid, bounds=bounds) for value in values]
    assert [Fraction(value) for value in found] == expected


@pytest.mark.parametrize("grid", [1.0, 2.0**-10, 2.0**8])
def test_any_layout_gives_the_same(grid, tmp_path):
    values = np.random.default_rng(3).normal(0.0, 1e4, (60, 700))
    expected = pn.exact_sum(values, grid, bounds=(-9e3, 1e4))
    first = values[:2]
    assert pn.exact_sum(first, grid, bounds=(-9e3, 1e4)) == float(
        sum(snapped(x, grid, (-9e3, 1e4)) for x in first.reshape(-1).tolist())
    )
    stored = np.memmap(tmp_path / "values", values.dtype, "w+", shape=values.shape)
    stored[:] = values
    spread = np.zeros((120, 700))
    spread[::2] = values
    for other in (
        values.T,
        values[::-1, ::-1],
        spread[::2],
        values.astype(">f8"),
        stored,
        values.tolist(),
        iter(values),
        (row[::-1] for row in np.array_split(values, 7)),
    ):
        assert pn.exact_sum(other, grid, bounds=(-9e3, 1e4)) == expected


def test_edges():
    assert pn.exact_sum([], 1.0, bounds=(0, 1)) == 0.0
    assert pn.exact_sum(np.zeros((3, 0)), 1.0, bounds=(0, 1)) == 0.0
    assert pn.exact_sum(iter([]), 1.0, bounds=(0, 1)) == 0.0
    assert pn.exact_sum(7, 1.0, bounds=(0, 5)) == 5.0
    assert pn.exact_sum([math.inf, -math.inf, math.nan], 1.0, bounds=(-1, 4)) == 2.0
    assert pn.exact_sum(np.ma.array([1.0, 2.0]), 1.0, bounds=(0, 5)) == 3.0
    tiny = [5e-324, -5e-324, 2.0**-1022, -(2.0**-1000)]
    with np.errstate(all="raise"):
        assert pn.exact_sum(tiny, 2.0**900, bounds=(-1.0, 1.0)) == 0.0
        least = 2.0**-1000
        assert pn.exact_sum(tiny, least, bounds=(-1e-292, 1e-292)) == -least


def test_it_is_clamped_where_float64_ends():
    """A sum beyond 2**53 cells moves no more than one within."""
    chunk = np.full(2**20, 2.0**31)
    chunks = [chunk] * 4
    assert pn.exact_sum(iter([*chunks, [-1.0]]), 1.0, bounds=(-1.0, 2.0**31)) == 2.0**53 - 1.0
    assert pn.exact_sum(iter([*chunks, [5.0]]), 1.0, bounds=(0.0, 2.0**31)) == 2.0**53


def test_blocks_are_small(monkeypatch):
    sizes = []
    module = sys.modules["psinoise.release.exact_sum"]
    original = module.cells
    monkeypatch.setattr(
        module, "cells", lambda block, *rest: sizes.append(block.size) or original(block, *rest)
    )
    pn.exact_sum(np.ones(200_000), 1.0, bounds=(0, 1))
    assert sum(sizes) == 200_000
    assert max(sizes) <= 2**16


SECRET = 8675309.0


@pytest.mark.parametrize(
    "values",
    [
        [1j],
        ["8675309"],
        None,
        [object()],
        [True, 1.0],
        [np.ma.masked, 1.0],
        [SECRET, "8675309"],
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=[("a", float)]),
        np.array([True]),
        np.longdouble([SECRET]),
        np.ma.array([SECRET, 2.0], mask=[False, True]),
        iter([[SECRET], ["8675309"]]),
    ],
    ids=lambda value: case_name(value)[:30],
)
def test_values_of_the_wrong_kind(values):
    with pytest.raises(TypeError, match=r"^values must ") as caught:
        pn.exact_sum(values, 1.0, bounds=(0, 1))
    assert "8675309" not in str(caught.value)


@pytest.mark.parametrize(
    ("grid", "bounds", "error", "message"),
    [
        (0.3, (0, 1), pn.DomainError, "grid must be a power of two, such as 0.25, got 0.3"),
        (0.0, (0, 1), pn.DomainError, "grid must be positive and finite"),
        (math.nan, (0, 1), pn.DomainError, "grid must be positive and finite"),
        (2.0**-1001, (0, 1), pn.DomainError, "grid must be in"),
        ("1", (0, 1), TypeError, "grid must be a real number"),
        (1.0, None, TypeError, "bounds must be a pair"),
        (1.0, (1,), TypeError, "bounds must be a pair"),
        (1.0, 3.0, TypeError, "bounds must be a pair"),
        (1.0, ("0", 1), TypeError, "the lower bound must be a real number"),
        (1.0, (2, 1), pn.DomainError, "bounds must be in order"),
        (1.0, (0, math.nan), pn.DomainError, "the upper bound must not be NaN"),
        (1.0, (0, math.inf), pn.DomainError, "bounds must be at most 2"),
        (1.0, (-(2.0**31) - 1, 0), pn.DomainError, "bounds must be at most 2"),
    ],
)
def test_bad_grids_and_bounds(grid, bounds, error, message):
    with pytest.raises(error, match=message):
        pn.exact_sum([1.0], grid, bounds=bounds)


def test_bounds_are_asked_for():
    with pytest.raises(TypeError, match="bounds"):
        pn.exact_sum([1.0], 1.0)
