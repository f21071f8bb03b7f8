"""Sums by group whose sensitivity is that of a unit: a person, a household, a firm with many rows.

**Neighbors.** One data set has all rows that the other one has, in the same order, and besides
them, anywhere between, the rows of one more unit. What is protected is the presence of a whole
unit, however many rows it has.

**Which rows count.** Of each unit, in the order of its rows: the first ``groups_per_unit`` groups
that it comes to, and in each of them its first ``rows`` rows. That depends on the rows of this unit
alone and on their order among themselves, so that for all units but one the rows that count are the
same in both data sets.

**Sensitivity.** Let ``g`` be the grid, ``D = max(|low|, |high|)`` and ``s(x)`` the whole number of
cells of a value, clipped to the cells from ``ceil(low / g)`` to ``floor(high / g)``: bounds are
rounded inwards, so that ``g |s(x)| <= D`` whether or not they are multiples of the grid. The sums
are ``g`` times sums of these integers, without rounding. Of the unit more, at most ``rows`` rows
count in each of at most ``groups_per_unit`` groups; it moves

    at most  groups_per_unit  sums, each by at most  rows D,

so that the vector of all sums moves by at most ``rows D`` in the l-infinity norm, ``groups_per_unit
rows D`` in l1 and ``sqrt(groups_per_unit) rows D`` in l2. The clamp at ``2^53`` cells moves no two
sums apart.

**What a release of all sums costs.** The noise of the groups is independent, and those that do not
move lose nothing: the losses are those of at most ``groups_per_unit`` uses of a mechanism of
sensitivity ``rows D``. So that is its ``count``; on a grid that is at least as coarse as that of
the sums, the rounded sums move by no more than ``ceil(rows D / G)`` cells, which is what such a
mechanism accounts for (`psinoise.release.grid.cells_of`).

**Replacing a unit** by another one is to remove it and to add one: at most twice as many groups
move, each by at most ``rows (max(0, high) - min(0, low))``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.errors import DomainError
from psinoise.release.data import declares_a_type, is_masked, read
from psinoise.release.exact_sum import LARGEST_SUM, cells, checked_bounds, exponent_of
from psinoise.release.tables import column_of

__all__ = ["exact_sums"]

_MOST_GROUPS = 2**24
_MOST_ROWS = 2**20


def exact_sums(
    values: ArrayLike,
    grid: float,
    *,
    bounds: tuple[float, float],
    units: ArrayLike,
    rows: int = 1,
    groups: ArrayLike | None = None,
    group_count: int | None = None,
    groups_per_unit: int = 1,
) -> NDArray[np.float64]:
    """Sum values by group, with a bound on what all rows of one unit can do.

    Adding or removing a unit with all its rows moves at most ``groups_per_unit`` of the sums, each
    by at most ``rows * max(|low|, |high|)``. So all sums together may be released by ``count =
    groups_per_unit`` uses of a :class:`psinoise.Mechanism` of that sensitivity, on this grid or a
    coarser one.

    Parameters
    ----------
    values : array_like of real numbers
        One for each row, or one for all rows: with 1 the sums are counts.
    grid : float
        A power of two that is at most the grid of the mechanism, which is one where its
        sensitivity is.
    bounds : (float, float)
        To which values are clipped, rounded inwards to the grid; at most 2**31 cells from 0. Chosen
        without the data. NaN counts as the lower one.
    units : array_like of integers, strings or other hashable objects
        Whose row it is. Rows without a unit (None, NaN or NA) do not count.
    rows : int
        How many rows of a unit count in one group: its first ones. 1 to 2**20.
    groups : array_like of whole numbers, optional
        From 0 to ``group_count - 1``. Rows of another group, or of none (NaN or NA), do not count,
        so that it shows in no error that there are such rows. By default all rows are of group 0.
    group_count : int, optional
        How many groups there are: known without the data, and given where ``groups`` are. 1 to
        2**24.
    groups_per_unit : int
        In how many groups a unit counts: the first ones that it comes to.

    Returns
    -------
    ndarray of shape (group_count,)
        Multiples of ``grid``, exact. Sums beyond 2**53 cells are clamped to that.

    Raises
    ------
    TypeError
        For values that are not real numbers, groups that are not numbers or come without
        their count, units that cannot be told apart, or anything masked.
    DomainError
        For a grid that is no power of two, bounds without a multiple of it between them, counts
        out of range, or columns of pandas with different indexes.
    ValueError
        If values, units and groups are not one-dimensional and of one length.

    Notes
    -----
    The module has the neighboring relation and the proof. The order of a unit's rows must not
    depend on other units.

    Examples
    --------
    Doses by month, at most two a person in each of at most two months:

    >>> import psinoise as pn
    >>> person = ["ann", "ann", "ann", "bob", "eve", "ann"]
    >>> month = [0, 0, 0, 2, 2, 1]
    >>> dose = [1.0, 2.5, 1.0, 9.0, 0.5, 1.0]
    >>> pn.exact_sums(dose, 0.5, bounds=(0.0, 3.0), units=person, rows=2, groups=month,
    ...               group_count=3, groups_per_unit=2)
    array([3.5, 1. , 3.5])
    """
    exponent = exponent_of(grid)
    low, high = checked_bounds(bounds, exponent)
    rows = _from_one("rows", rows, _MOST_ROWS)
    if group_count is None:
        if groups is not None:
            raise TypeError("group_count must be given with groups: how many there are")
        group_count = 1
    group_count = _from_one("group_count", group_count, _MOST_GROUPS)
    groups_per_unit = _from_one("groups_per_unit", groups_per_unit, _MOST_GROUPS)
    _check_indexes(values, units, groups)
    owners = _owners(units)
    array = read("values", values, (low, high))
    places = np.zeros(owners.size, np.int64) if groups is None else _places(groups, group_count)
    if array.ndim == 0:
        array = np.broadcast_to(array, owners.shape)
    if not array.shape == owners.shape == places.shape:
        raise ValueError(
            f"values, units and groups must be one-dimensional and of one length, got shapes "
            f"{array.shape}, {owners.shape} and {places.shape}"
        )
    counted = np.flatnonzero((places >= 0) & (owners >= 0))
    places = places[counted]
    kept = _first(owners[counted], places, rows, groups_per_unit)
    chosen = array[counted[kept]]
    chosen = chosen.astype(chosen.dtype.newbyteorder("="))
    # Below 2^32 rows of at most 2^31 cells: int64 holds the sums.
    totals = np.zeros(group_count, dtype=np.int64)
    np.add.at(totals, places[kept], cells(chosen, exponent, low, high))
    return np.ldexp(np.clip(totals, -LARGEST_SUM, LARGEST_SUM).astype(np.float64), exponent)


def _check_indexes(*columns: object) -> None:
    """Refuse columns of pandas with different indexes, which rows of a table never have: rows are
    paired by position."""
    found = [getattr(column, "index", None) for column in columns]
    indexes: list[Any] = [index for index in found if hasattr(index, "equals")]
    if not all(index.equals(indexes[0]) for index in indexes):
        raise DomainError(
            "values, units and groups must have one index: rows are paired by position"
        )


def _from_one(name: str, value: int, most: int) -> int:
    number = _validate.count(name, value)
    if not 1 <= number <= most:
        raise DomainError(f"{name} must be 1 to {most}, got {value!r}")
    return number


def _owners(units: ArrayLike) -> NDArray[np.int64]:
    """A number for the unit of each row, -1 for none."""
    if is_masked(units):
        raise TypeError("units must not have masked values")
    column = column_of(units)
    if column is not None and column.values.dtype.kind in "iu":
        numbered = np.unique(column.values, return_inverse=True)[1].reshape(column.values.shape)
        return numbered if column.missing is None else np.where(column.missing, -1, numbered)
    array = np.asarray(units) if declares_a_type(units) else _objects(units)
    if array.dtype.kind == "T":  # strings of NumPy that have no length
        array = array.astype(object)
    if array.dtype.kind in "iuSU":
        return np.unique(array, return_inverse=True)[1].reshape(array.shape)
    if array.dtype.kind != "O":
        raise TypeError(
            f"units must be integers, strings or hashable objects, and integers of a nullable "
            f"type where some are missing, got {array.dtype.type.__name__}"
        )
    numbers: dict[Any, int] = {}
    items = array.reshape(-1).tolist()
    try:
        found = [numbers.setdefault(unit, len(numbers)) for unit in items]
    except TypeError:
        raise TypeError("units must be integers, strings or hashable objects") from None
    if any(isinstance(unit, float | np.floating) and unit == unit for unit in items):  # noqa: PLR0124
        raise TypeError("units must be integers, strings or hashable objects, got numbers of float")
    # NaN, NaT and NA are not equal to themselves.
    absent = {n for unit, n in numbers.items() if unit is None or not _is_itself(unit)}
    return np.array([-1 if n in absent else n for n in found], np.int64).reshape(array.shape)


def _is_itself(unit: object) -> bool:
    if isinstance(unit, tuple):  # which is itself where its items are the same objects
        return all(map(_is_itself, unit))
    try:
        return bool(operator.eq(unit, unit))
    except (TypeError, ValueError):
        return False


def _objects(units: ArrayLike) -> NDArray[Any]:
    """A sequence as an array of its items, which may be tuples."""
    if not isinstance(units, Sequence) or isinstance(units, str | bytes):
        raise TypeError(f"units must be an array or a sequence, got {type(units).__name__}")
    array = np.empty(len(units), dtype=object)
    for i, unit in enumerate(units):
        array[i] = unit
    return array


def _places(groups: ArrayLike, group_count: int) -> NDArray[np.int64]:
    """The group of each row, -1 for none.

    Columns of whole numbers with gaps may come as floating-point numbers: so these are read too.
    """
    if is_masked(groups):
        raise TypeError("groups must not have masked values")
    column = column_of(groups)
    try:
        # What declares no type of numbers has no gaps that are known.
        array = np.asarray(groups) if column is None or column.missing is None else column.values
    except ValueError:
        raise TypeError("groups must be an array of whole numbers") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"groups must be whole numbers, got {array.dtype.type.__name__}")
    there = (array >= 0) & (array < group_count) & (array == np.floor(array))
    if column is not None and column.missing is not None:
        there &= ~column.missing
    places = np.full(array.shape, -1, dtype=np.int64)
    places[there] = array[there]
    return places


def _first(
    owners: NDArray[np.int64], places: NDArray[np.int64], rows: int, groups_per_unit: int
) -> NDArray[np.bool_]:
    """Which rows count: of each owner the first rows in its first groups."""
    # Rows of one owner in one place side by side, and in their order, since sorting is stable.
    order = np.lexsort((places, owners))
    owner = owners[order]
    pair, starts = _runs(owner, places[order])
    early = np.arange(owner.size) - starts[pair] < rows
    # The same once more: such pairs of one owner, by the row in which they begin.
    by_begin = np.lexsort((order[starts], owner[starts]))
    run, firsts = _runs(owner[starts][by_begin])
    taken = np.empty(starts.size, dtype=bool)
    taken[by_begin] = np.arange(starts.size) - firsts[run] < groups_per_unit
    kept = np.empty(owner.size, dtype=bool)
    kept[order] = early & taken[pair]
    return kept


def _runs(*keys: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For sorted keys, the number of the run of equal ones for each, and where runs start."""
    new = np.ones(keys[0].size, dtype=bool)
    if new.size:
        new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.cumsum(new) - 1, np.flatnonzero(new)
