"""Sums by group, against plain Python; what one unit can do to them, by trying; bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psinoise as pn
from refusals import for_rows, refused


def by_hand(table, grid, bounds, rows, group_count, groups_per_unit):
    """The documented sums of rows (unit, group, value), in rational arithmetic, row by row."""
    cell = Fraction(grid)
    low, high = math.ceil(Fraction(bounds[0]) / cell), math.floor(Fraction(bounds[1]) / cell)
    sums, met = [Fraction(0)] * group_count, {}
    for unit, group, value in table:
        if unit is None or not 0 <= group < group_count:
            continue
        counts = met.setdefault(unit, {})
        if group not in counts and len(counts) == groups_per_unit:
            continue
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= rows:
            whole = math.floor(Fraction(value) / cell + Fraction(1, 2))
            sums[group] += cell * max(low, min(whole, high))
    return [float(total) for total in sums]


ROWS = st.lists(
    st.tuples(st.sampled_from([*"abcd", None]), st.integers(-1, 4), st.floats(-9.0, 9.0)),
    max_size=40,
)
BOUNDS = st.sampled_from([(0.0, 1.0), (-1.0, 3.0), (-2.3, 0.7), (0.6, 5.9), (-4.0, -1.0)])
LIMITS = st.tuples(st.integers(1, 4), st.integers(1, 4))


def sums(table, grid, bounds, limits):
    units, groups, values = zip(*table, strict=True) if table else ((), (), ())
    return pn.exact_sums(
        values,
        grid,
        bounds=bounds,
        units=units,
        rows=limits[0],
        groups=groups,
        group_count=4,
        groups_per_unit=limits[1],
    )


@settings(max_examples=300, deadline=None)
@given(ROWS, st.sampled_from([0.25, 0.5, 2.0**-10]), BOUNDS, LIMITS)
def test_sums_are_what_they_are_said_to_be(table, grid, bounds, limits):
    """Kills: rows counted over all groups, the last groups of a unit, ties out of order, rows of
    unknown groups that use a unit up."""
    expected = by_hand(table, grid, bounds, limits[0], 4, limits[1])
    assert sums(table, grid, bounds, limits).tolist() == expected


@settings(max_examples=300, deadline=None)
@given(ROWS, st.sampled_from([0.25, 0.5]), BOUNDS, LIMITS)
def test_a_unit_moves_them_by_no_more_than_is_proven(table, grid, bounds, limits):
    """Add-remove, and replacement by the rows of another unit, on the sums and on what a mechanism
    with a coarser grid rounds them to.

    Kills: a choice of rows that sees other units, bounds rounded outwards.
    """
    rows, groups = limits
    without = [row for row in table if row[0] != "a"]
    other = [("a", (group + 1) % 4, -value) for unit, group, value in table if unit == "a"]
    largest = max(abs(bound) for bound in bounds)
    width = max(0.0, bounds[1]) - min(0.0, bounds[0])
    ours = sums(table, grid, bounds, limits)
    for neighbor, most, moving in (
        (sums(without, grid, bounds, limits), rows * largest, groups),
        (sums([*other, *without], grid, bounds, limits), rows * width, 2 * groups),
    ):
        moved = np.abs(ours - neighbor)
        assert (moved > 0.0).sum() <= moving
        assert moved.max() <= most
        coarse = 4.0 * grid
        rounded = np.floor(ours / coarse + 0.5) - np.floor(neighbor / coarse + 0.5)
        assert np.abs(rounded).max() <= math.ceil(Fraction(most) / Fraction(coarse))


def test_the_bounds_are_reached():
    """Nothing smaller would be a bound."""
    table = [("a", group, 3.0) for group in (0, 0, 0, 1, 1, 1, 2)]
    moved = sums(table, 0.5, (-1.0, 3.0), (2, 2))
    assert moved.tolist() == [6.0, 6.0, 0.0, 0.0]


@for_rows(
    [
        (np.array([7, 7, 9]),),
        (np.array([2**64 - 1, 2**64 - 1, 0], dtype=np.uint64),),
        (np.array(["x", "x", "y"]),),
        (np.array([b"x", b"x", b"y"]),),
        (np.array(["x", "x", "y"], dtype=np.dtypes.StringDType()),),
        (["x", "x", "y"],),
        ([(1, 2), (1, 2), (1, 3)],),
        ([1, 1, "1"],),
    ]
)
def test_units_of_every_kind(units):
    assert pn.exact_sums(1, 1.0, bounds=(0, 1), units=units).tolist() == [2.0]


@for_rows([(None,), (math.nan,), (float("nan"),), (pandas.NA,), (pandas.NaT,)])
def test_a_row_without_a_unit_does_not_count(missing):
    """Two people without a name are not one unit, nor one each."""
    found = pn.exact_sums(1, 1.0, bounds=(0, 1), units=["x", missing, "x", missing], rows=2)
    assert found.tolist() == [2.0]
    many = np.array([float("nan") for _ in range(5)], dtype=object)
    assert pn.exact_sums(1, 1.0, bounds=(0, 1), units=many).tolist() == [0.0]


@for_rows(
    [
        (np.array([0, -1, 2, 3]),),
        (np.array([0, 2**64 - 1, 2, 2**63], dtype=np.uint64),),
        (np.array([0, 127, 2, -128], dtype=np.int8),),
        (np.array([0.0, math.nan, 2.0, math.inf]),),
        (np.array([0.0, 1.5, 2.0, -math.inf], dtype=np.float16),),
        (pandas.Series([0, None, 2, 5], dtype="Int64"),),
        (pandas.Series([0, None, 2, 1e300]),),
    ]
)
def test_a_row_without_a_group_does_not_count(groups):
    """Nor does it show in an error that there is such a row: `Series.map` makes gaps of names that
    it does not know, and floating-point numbers of whole ones beside a gap."""
    found = pn.exact_sums(1, 1.0, bounds=(0, 1), units=range(4), groups=groups, group_count=3)
    assert found.tolist() == [1.0, 0.0, 1.0]


def test_large_sums_are_exact():
    ids = np.arange(2**12)
    found = pn.exact_sums(2.0**31, 1.0, bounds=(0, 2.0**31), units=ids)
    assert found.tolist() == [2.0**43]
    found = pn.exact_sums(
        np.full(2**12, 2**62),
        2.0**20,
        bounds=(0, 2.0**51),
        units=ids,
        groups=ids % 2,
        group_count=2,
    )
    assert found.tolist() == [2.0**62] * 2
    swapped = np.arange(4.0).astype(">f8")
    assert pn.exact_sums(swapped, 1.0, bounds=(0, 9), units=range(4)).tolist() == [6.0]


GOOD = {"bounds": (0.0, 1.0), "units": ["a", "b"]}


@for_rows(
    [
        ({"bounds": (0.3, 0.4)}, pn.DomainError, "bounds must have a multiple"),
        ({"bounds": (1.0, 0.0)}, pn.DomainError, "bounds must be in order"),
        ({"bounds": 3}, TypeError, "bounds must be a pair"),
        ({"rows": 0}, pn.DomainError, "rows must be 1 to"),
        ({"rows": 1.5}, TypeError, "rows must be an integer"),
        ({"groups_per_unit": 0}, pn.DomainError, "groups_per_unit must be 1 to"),
        ({"group_count": 2**40}, pn.DomainError, "group_count must be 1 to"),
        ({"units": ["a"]}, ValueError, "of one length"),
        ({"units": "ab"}, TypeError, "units must be an array"),
        ({"units": None}, TypeError, "units must be an array"),
        ({"units": [[1], [2]]}, TypeError, "units must be integers"),
        ({"units": np.array([1.0, 2.0])}, TypeError, "of a nullable type"),
        ({"units": np.ma.array([1, 2], mask=[True, False])}, TypeError, "units must not"),
        ({"groups": [0, 1]}, TypeError, "group_count must be given with groups"),
        ({"groups": ["a", "b"], "group_count": 2}, TypeError, "groups must be whole numbers"),
        ({"groups": [[0], [1, 2]], "group_count": 2}, TypeError, "groups must be"),
        ({"groups": [0, None], "group_count": 2}, TypeError, "groups must be whole numbers"),
        (
            {"groups": np.ma.array([1, 2], mask=[True, False]), "group_count": 2},
            TypeError,
            "groups must not",
        ),
        ({"groups": [0], "group_count": 2}, ValueError, "of one length"),
        ({"groups": [[0, 1]], "group_count": 2}, ValueError, "of one length"),
        ({"values": ["8675309", 1.0]}, TypeError, "values must be real numbers"),
        ({"values": [np.ma.masked, 1.0]}, TypeError, "values must not"),
        ({"grid": 0.3}, pn.DomainError, "grid must be a power of two"),
    ]
)
def test_bad_input(changed, error, message):
    arguments = {"values": [1.0, 0.5], "grid": 0.5, **GOOD, **changed}
    found = refused(error, message, pn.exact_sums, **arguments)
    assert "8675309" not in found


def test_what_is_released_is_within_what_was_charged():
    """The recipe of the documentation, end to end: counts by group of units in two groups."""
    generator = np.random.default_rng(3)
    ids, groups = generator.integers(500, size=4000), generator.integers(6, size=4000)
    mechanism = pn.calibrate(
        pn.Laplace, epsilon=1.0, delta=1e-9, sensitivity=3.0, count=2, on_lattice=True
    )
    counts = pn.exact_sums(
        1,
        1.0,
        bounds=(0, 1),
        units=ids,
        rows=3,
        groups=groups,
        group_count=6,
        groups_per_unit=2,
    )
    ledger = pn.Ledger(epsilon=1.0, delta=1e-9)
    assert ledger.release(mechanism, counts, count=2).shape == (6,)
    with pytest.raises(pn.BudgetError):
        ledger.release(mechanism, counts, count=2)


def test_a_unit_of_two_columns_of_which_one_is_missing():
    """Kills: tuples of different NaN as units of their own, of which one person had five."""
    units = [(1, float("nan")) for _ in range(5)]
    assert pn.exact_sums(1, 1.0, bounds=(0, 1), units=units).tolist() == [0.0]
    assert pn.exact_sums(1, 1.0, bounds=(0, 1), units=[(1, math.nan)] * 5).tolist() == [0.0]
    assert pn.exact_sums(1, 1.0, bounds=(0, 1), units=[(1, "a"), (1, "b")] * 2).tolist() == [2.0]
    for mixed in ([1, 1.0], [1.0, 1]):
        with pytest.raises(TypeError, match="numbers of float"):
            pn.exact_sums(1, 1.0, bounds=(0, 1), units=mixed)


def test_columns_of_different_tables_are_refused():
    """Kills: rows of one unit that count as those of another, paired by position."""
    words = {"bounds": (0.0, 4.0), "rows": 1}
    values = pandas.Series([1.0, 2.0], index=[5, 6])
    for units in (pandas.Series([1, 2], index=[6, 5]), pandas.Series([1, 2])):
        refused(pn.DomainError, "one index", pn.exact_sums, values, 1.0, units=units, **words)
    for units in ([1, 2], np.array([1, 2]), pandas.Series([1, 2], index=[5, 6])):
        assert pn.exact_sums(values, 1.0, units=units, **words).tolist() == [3.0]
