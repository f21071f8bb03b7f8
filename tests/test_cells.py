"""Piecewise constant sampling: the columns of the alias method, and how a word is read."""

from __future__ import annotations

import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

from psinoise import _core as native
from psinoise.compile.cells import MOST_CELLS, alias_columns
from psinoise.reference.stream import first_words

KEY = bytes(range(32))
EMPTY = np.empty(0)


def probabilities(entries, fractions, cells):
    """What the columns say, as exact fractions."""
    found = [Fraction(0)] * cells
    capacity = 2**64
    for column, (entry, fraction) in enumerate(
        zip(entries.tolist(), fractions.tolist(), strict=True)
    ):
        own = (entry >> 20 << 52) + fraction
        if own:
            found[column] += Fraction(own, capacity * entries.size)
        found[entry & 0xFFFFF] += Fraction(capacity - own, capacity * entries.size)
    return found


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 64, 1000])
def test_columns_add_up_to_the_masses(cells):
    """Exactly, but for the rounding down to multiples of 2**-64 of a column."""
    generator = np.random.default_rng(cells)
    masses = np.exp(-generator.uniform(0.0, 90.0, cells))
    masses[generator.integers(cells)] = 1.0
    entries, fractions = alias_columns(masses.tolist())
    assert entries.size >= cells
    assert (entries >> np.uint64(20) <= 4096).all()
    found = probabilities(entries, fractions, cells)
    assert sum(found) == 1
    total = sum(Fraction(mass) for mass in masses.tolist())
    unit = Fraction(1, 2**64 * entries.size)
    largest = int(np.argmax(masses))
    for i, mass in enumerate(masses.tolist()):
        expected = Fraction(mass) / total
        if i == largest:
            assert expected <= found[i] < expected + cells * unit
        else:
            assert expected - unit < found[i] <= expected
    # The test of the test: a threshold off by one unit.
    shared = np.flatnonzero(entries >> np.uint64(20) < 4096)
    if shared.size:
        fractions[shared[0]] ^= np.uint64(1)
        assert probabilities(entries, fractions, cells) != found


def test_columns_of_extreme_masses():
    entries, fractions = alias_columns([1.0, 5e-324, 0.0, 1e-300])
    assert probabilities(entries, fractions, 4) == [1, 0, 0, 0]
    entries, _ = alias_columns([1.0] * MOST_CELLS)
    assert entries.size == MOST_CELLS
    assert (entries >> np.uint64(20) == 4096).all()


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("f8", bits) for bits in (0, 1, 5, 11, 15, 20)] + [("f4", bits) for bits in (0, 1, 5, 12)],
)
def test_column_sign_test_and_position_are_disjoint_bits(core, dtype, bits):
    """The mapping from words to samples, in integers. Kills: sign bit reused, position shifted by a
    bit, a bias of half a cell, a test that shares bits with the position."""
    columns = 1 << bits
    # Even columns take themselves for tests below their threshold, and else the next column.
    # Multiples of 8, so that the first 9 bits of them are all of them.
    thresholds = np.arange(columns, dtype=np.uint64) % np.uint64(500) * np.uint64(8) + np.uint64(48)
    aliases = np.arange(columns, dtype=np.uint64) ^ np.uint64(1 if bits else 0)
    entries = thresholds << np.uint64(20) | aliases
    starts = np.arange(columns) * 2.0
    table = core.CellTable(
        entries, np.zeros(columns, np.uint64), starts, np.ones(columns), 0.0, columns, 0.0, 0.0
    )
    count, first = 30_000, 1_000
    out = np.empty(count, dtype)
    core.sample_cells(table, KEY, first, 1.0, out, 1)
    word_bits, tests = (64, 12) if dtype == "f8" else (32, 9)
    words = [int(word) for word in first_words(KEY, 8, first, count, word_bits)]
    expected = []
    for word in words:
        column = word % columns
        sign = -1.0 if word >> bits & 1 else 1.0
        test = (word >> (bits + 1) & (2**tests - 1)) << (12 - tests)
        # At the threshold itself the fraction, 0 here, gives the alias.
        cell = column if test < int(thresholds[column]) else int(aliases[column])
        k = word >> (bits + 1 + tests)
        position = (2 * k + 1) / 2.0 ** (word_bits - tests - bits)
        expected.append(sign * (starts[cell] + position))
    # Sums are rounded once, to the type.
    np.testing.assert_array_equal(out, np.array(expected, dtype))


def test_half_words_serve_small_tables_of_moderate_cells(core):
    """Samples of others are those of whole words, rounded. Kills: tables by columns alone, widths
    that float32 does not hold."""
    for columns, width, halves in ((4, 0.5, True), (4, 2.0**-70, False), (8192, 0.5, False)):
        entries = np.uint64(4096 << 20) | np.arange(columns, dtype=np.uint64)
        starts, widths = width * np.arange(columns), np.full(columns, width)
        table = core.CellTable(
            entries, np.zeros(columns, np.uint64), starts, widths, 0.0, columns, 0.0, 0.0
        )
        wide, narrow = np.empty(5_000), np.empty(5_000, np.float32)
        core.sample_cells(table, KEY, 3, 1.0, wide, 1)
        core.sample_cells(table, KEY, 3, 1.0, narrow, 1)
        assert np.array_equal(wide.astype(np.float32), narrow) != halves


def test_fractions_decide_where_the_test_does_not(core):
    """One column of two cells: 52 bits of the next word against the fraction."""
    half = np.uint64(2**51)
    counts = []
    for fraction in (np.uint64(0), half, np.uint64(2**52 - 1)):
        table = core.CellTable(
            np.array([0 << 20 | 1, 4096 << 20 | 1], np.uint64),
            np.array([fraction, np.uint64(0)]),
            np.array([0.0, 10.0]),
            np.ones(2),
            0.0,
            2,
            0.0,
            0.0,
        )
        out = np.empty(400_000)
        core.sample_cells(table, KEY, 0, 1.0, out, 1)
        counts.append(int((np.abs(out) < 5.0).sum()))
    # Column 0 comes with 1/2, its test is 0 with 2**-12: 49 of 400,000, of which the fraction.
    assert counts[0] == 0
    assert 5 <= counts[1] <= 50
    assert counts[1] < counts[2] <= 90


def test_half_words_keep_all_bits_of_thresholds(core):
    """At 9 bits of the threshold its other 3 and the fraction decide: the share of column 0 that
    takes cell 0 is ``(threshold + fraction / 2**52) / 4096``. Kills: the 3 bits left out or counted
    as 12, a fraction of 2**-52 of all 55."""
    for threshold, fraction in ((0, 0), (0, 2**51), (1, 0), (4, 2**51), (8, 0), (13, 0)):
        table = core.CellTable(
            np.array([threshold << 20 | 1, 4096 << 20 | 1], np.uint64),
            np.array([fraction, 0], np.uint64),
            np.array([0.0, 10.0]),
            np.ones(2),
            0.0,
            2,
            0.0,
            0.0,
        )
        out = np.empty(4_000_000, np.float32)
        core.sample_cells(table, KEY, 0, 1.0, out, 1)
        found = int((np.abs(out) < 5.0).sum())
        mean = out.size / 2 * (threshold + fraction / 2**52) / 4096
        assert abs(found - mean) <= 5.0 * mean**0.5


@pytest.mark.parametrize("level", native.build_config()["isa_available"])
def test_every_level_gives_the_same_bytes(level, run_python):
    code = """
import hashlib, numpy as np
from psinoise import _core as core
from psinoise.compile.cells import alias_columns
empty, found = np.empty(0), hashlib.sha256()
masses = np.arange(1601.0, 0.0, -1.0)
entries, fractions = alias_columns(masses.tolist())
starts, widths = np.arange(1601) / 200.0, np.full(1601, 0.005)
for shape in ((empty, empty, 0.005), (starts, widths, 0.0)):
    table = core.CellTable(entries, fractions, *shape, 1500, 0.1, 0.505)
    for dtype in ("f4", "f8"):
        out = np.empty(200_003, dtype)
        core.sample_cells(table, bytes(range(32)), 77, 1.7, out, 1)
        found.update(out.tobytes())
print(found.hexdigest())
"""
    expected = "c1be30e757057d060154ff4d59eec56825aa33f7136df251e1b2d05dadb2f3c0"
    assert run_python(code, PSINOISE_ISA=level) == expected + "\n"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_split_and_any_number_of_threads(core, dtype):
    masses = np.exp(-np.linspace(0.0, 9.0, 200))
    table = core.CellTable(*alias_columns(masses.tolist()), EMPTY, EMPTY, 0.1, 190, 0.2, 0.1)
    total, start = 100_000, 2**33 - 7_777
    whole = np.empty(total, dtype=dtype)
    core.sample_cells(table, KEY, start, 0.7, whole, 1)
    for bounds in ([0, 1, 3, 130, 511, 512, 1024, total], [0, 40_000, 99_999, total]):
        parts = np.empty(total, dtype=dtype)
        for a, b in itertools.pairwise(bounds):
            core.sample_cells(table, KEY, start + a, 0.7, parts[a:b], 3)
        np.testing.assert_array_equal(parts, whole)
    # Not a constant by mistake.
    assert (
        hashlib.sha256(whole.tobytes()).digest() != hashlib.sha256(whole[::-1].tobytes()).digest()
    )
    assert np.unique(whole).size > (0.98 if dtype == "float64" else 0.9) * total


def test_kernels_refuse_what_they_cannot_index():
    entries, fractions = alias_columns([0.5, 0.25, 0.25])
    table = native.CellTable(entries, fractions, np.arange(3.0), np.ones(3), 0.0, 3, 0.0, 0.0)
    with pytest.raises(ValueError, match="entries must name cells"):
        native.CellTable(
            entries | np.uint64(3), fractions, np.arange(3.0), np.ones(3), 0.0, 3, 0.0, 0.0
        )
    with pytest.raises(ValueError, match="key must be 32 bytes"):
        native.sample_cells(table, b"short", 0, 1.0, np.empty(4), 1)
    for wrong in (np.empty(8)[::2], np.empty(4, dtype=int)):
        with pytest.raises(TypeError, match="out must be a C-contiguous writable"):
            native.sample_cells(table, KEY, 0, 1.0, wrong, 1)
    with pytest.raises(TypeError):
        native.CellTable(
            entries.view(float), fractions, np.arange(3.0), np.ones(3), 0.0, 3, 0.0, 0.0
        )
