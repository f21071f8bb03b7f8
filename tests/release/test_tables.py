"""Columns and tables of pandas, polars and Arrow: the same type back, and nothing told by gaps."""

from __future__ import annotations

import numpy as np
import pytest

import psinoise as pn
from psinoise.testing import replay

LATTICE = pn.Mechanism(pn.DiscreteLaplace(epsilon=1.0)).on_lattice()
DATA = {"day": ["a", "b", "c"], "count": [41, 7, 1200], "sales": [1.5, 2.25, -3.0]}
BOUNDS = (-10.0, 2000.0)


class Pandas:
    name = "pandas"

    @staticmethod
    def table(data):
        import pandas

        frame = pandas.DataFrame(data)
        return frame.set_axis(-frame.index, axis=0)

    @staticmethod
    def with_gaps(values, whole):
        import pandas

        return pandas.Series(values, dtype="Int64" if whole else "Float64", name="c", index=[3, 1])

    @staticmethod
    def rows(table):
        return {name: table[name].tolist() for name in table.columns}


class PandasOnArrow(Pandas):
    name = "pyarrow"

    @staticmethod
    def with_gaps(values, whole):
        import pandas

        kind = "int64[pyarrow]" if whole else "double[pyarrow]"
        return pandas.Series(values, dtype=kind, name="c", index=[3, 1])


class Polars:
    name = "polars"

    @staticmethod
    def table(data):
        import polars

        return polars.DataFrame(data)

    @staticmethod
    def with_gaps(values, whole):
        import polars

        return polars.Series("c", values, dtype=polars.Int64 if whole else polars.Float64)

    @staticmethod
    def rows(table):
        return table.to_dict(as_series=False)


class Arrow:
    name = "pyarrow"

    @staticmethod
    def table(data):
        import pyarrow

        return pyarrow.table(data)

    @staticmethod
    def with_gaps(values, whole):
        import pyarrow

        return pyarrow.chunked_array([values], pyarrow.int64() if whole else pyarrow.float64())

    @staticmethod
    def rows(table):
        return table.to_pydict()


class Batch(Arrow):
    @staticmethod
    def table(data):
        import pyarrow

        return pyarrow.record_batch(data)

    @staticmethod
    def with_gaps(values, whole):
        import pyarrow

        return pyarrow.array(values, pyarrow.int64() if whole else pyarrow.float64())


@pytest.fixture(
    params=[Pandas, PandasOnArrow, Polars, Arrow, Batch], ids=lambda kind: kind.__name__
)
def kind(request):
    pytest.importorskip(request.param.name)
    return request.param


def test_tables_come_back_as_they_are_but_for_what_was_named(kind):
    """Mutants: columns that are not copied; the noise of one column for another; a lost index."""
    table = kind.table(DATA)
    found = LATTICE.release(table, columns=["sales", "count"], bounds=BOUNDS)
    assert type(found) is type(table)
    rows = kind.rows(found)
    assert list(rows) == list(DATA)
    assert rows["day"] == DATA["day"]
    assert all(type(value) is int for value in rows["count"])
    assert all(type(value) is float for value in rows["sales"])
    assert kind.rows(table) == DATA
    if hasattr(table, "index"):
        assert found.index.tolist() == [0, -1, -2]
    same = kind.table({"a": [0.0] * 64, "b": [0.0] * 64})
    noise = kind.rows(LATTICE.release(same, columns=["a", "b"]))
    assert noise["a"] != noise["b"]


def test_columns_come_back_as_columns(kind):
    table = kind.table(DATA)
    column = table.column(1) if kind in (Arrow, Batch) else table["count"]
    found = replay(LATTICE, column, bytes(32))
    assert type(found) is type(column)
    assert np.asarray(found).tolist() == replay(LATTICE, DATA["count"], bytes(32)).tolist()
    assert getattr(found, "name", None) == getattr(column, "name", None)
    if hasattr(column, "index") and not callable(column.index):
        assert found.index.equals(column.index)
    out = np.empty(3, np.int64)
    assert replay(LATTICE, column, bytes(32), out=out) is out


@pytest.mark.parametrize("whole", [True, False])
def test_gaps_are_what_bounds_say_and_change_no_type(kind, whole):
    """Mutant: whole numbers with gaps as floats, whose type would tell that there is one."""
    number = int if whole else float
    full = kind.with_gaps([number(5), number(7)], whole)
    gaps = kind.with_gaps([number(5), None], whole)
    low = np.array([5, -10], dtype=number)
    for bounded, same in ((gaps, low), (full, np.array([5, 7], dtype=number))):
        found = replay(LATTICE, bounded, bytes(32), bounds=BOUNDS)
        expected = replay(LATTICE, same, bytes(32), bounds=BOUNDS)
        assert np.asarray(found).dtype == expected.dtype
        assert np.asarray(found).tolist() == expected.tolist()
    with pytest.raises(pn.DomainError, match="no missing values where no bounds"):
        LATTICE.release(gaps)
    assert pn.exact_sum(gaps, 1.0, bounds=BOUNDS) == 5.0 - 10.0


def test_what_nullable_columns_are_made_of_is_read_as_they_are():
    """Kills: the float64 that NumPy makes of them where something is missing, which tells it."""
    pandas = pytest.importorskip("pandas")
    for values, low in (([5, 2**53 + 1], 2**53 + 1), ([5, None], -10)):
        column = pandas.Series(values, dtype="Int64")
        for inner in (column.array, pandas.Index(column)):
            found = replay(LATTICE, inner, bytes(32), bounds=(-10, 2**60))
            expected = replay(LATTICE, np.array([5, low]), bytes(32), bounds=(-10, 2**60))
            assert found.dtype == expected.dtype == np.int64
            np.testing.assert_array_equal(found, expected)
        people = pandas.array([1, 2 if low > 0 else None], dtype="Int64")
        sums = pn.exact_sums([4.0, 5.0], 1.0, bounds=(0, 9), units=people)
        assert sums.tolist() == [9.0 if low > 0 else 4.0]


def test_a_ledger_counts_and_releases_what_it_holds(kind):
    table = kind.table(DATA)
    ledger = pn.Ledger(epsilon=6.5, delta=0.0)
    found = ledger.release(LATTICE, table, columns=["count", "sales"], bounds=BOUNDS)
    assert type(found) is type(table)
    assert ledger.charges[0].count == 6
    with pytest.raises(pn.BudgetError):
        ledger.release(LATTICE, table, columns="count")
    found = pn.Ledger(epsilon=1.1, delta=0.0).release(LATTICE, table, columns="count", count=1)
    assert type(found) is type(table)


def test_units_of_sums_may_be_columns(kind):
    people = kind.with_gaps([1, None], True)
    assert pn.exact_sums([4.0, 5.0], 1.0, bounds=(0, 9), units=people).tolist() == [4.0]


def test_groups_of_sums_may_be_columns_with_gaps(kind):
    for whole in (True, False):
        groups = kind.with_gaps([1, None], whole)
        found = pn.exact_sums(
            [4.0, 5.0], 1.0, bounds=(0, 9), units=range(2), groups=groups, group_count=2
        )
        assert found.tolist() == [0.0, 4.0]


def test_whole_tables_and_wrong_names_are_refused(kind):
    table = kind.table(DATA)
    ledger = pn.Ledger(epsilon=100.0, delta=0.0)
    for release in (LATTICE.release, lambda x, **words: ledger.release(LATTICE, x, **words)):
        with pytest.raises(TypeError, match="columns must name what is released"):
            release(table)
        for wrong in (["nothing"], ["count", "count"], []):
            with pytest.raises(pn.DomainError, match="columns must name"):
                release(table, columns=wrong)
        with pytest.raises(TypeError, match="x must be real numbers"):
            release(table, columns=["day"])
        assert type(release(table, columns=np.array(["count"]))) is type(table)
    with pytest.raises(TypeError, match="got a whole table"):
        pn.exact_sum(table, 1.0, bounds=BOUNDS)
    with pytest.raises(TypeError, match="a table takes no out="):
        LATTICE.release(table, columns=["count"], out=np.empty(3))
    with pytest.raises(TypeError, match="columns are for a table"):
        LATTICE.release([1, 2], columns=["count"])


def test_kinds_that_declare_no_number_are_refused(kind):
    if kind is Polars:
        import polars

        refused = [polars.Series([True, None]), polars.Series(["1"]), polars.Series([{"a": 1}])]
        refused += [polars.Series([1, 2], dtype=polars.Int128), polars.Series([None, None])]
        with pytest.raises(TypeError, match="collect"):
            LATTICE.release(polars.LazyFrame(DATA), columns=["count"])
    elif kind in (Pandas, PandasOnArrow):
        import pandas

        refused = [
            pandas.Series([True, None], dtype="boolean"),
            pandas.Series([1, 2], dtype="category"),  # with a gap it would be of floats
            pandas.Series(["a"]),
        ]
    else:
        import pyarrow

        refused = [pyarrow.array([True, None]), pyarrow.array(["a", None])]
        refused.append(pyarrow.RunEndEncodedArray.from_arrays([2, 3], [1, 2]))
        # A gap among the values of a dictionary is a gap.
        indexed = pyarrow.DictionaryArray.from_arrays([0, 1], [2**53 + 1, None])
        found = replay(LATTICE, indexed, bytes(32), bounds=(0, 2**60))
        expected = replay(LATTICE, np.array([2**53 + 1, 0]), bytes(32), bounds=(0, 2**60))
        assert np.asarray(found).tolist() == expected.tolist()
    for column in refused:
        with pytest.raises(TypeError, match="x must be real numbers"):
            LATTICE.release(column, bounds=(0, 1))


def test_a_truth_value_is_no_name():
    """Kills: True for a column that is called 1."""
    pandas = pytest.importorskip("pandas")
    with pytest.raises(pn.DomainError, match="columns must name"):
        LATTICE.release(pandas.DataFrame({0: [1.0], 1: [2.0]}), columns=True, bounds=BOUNDS)
