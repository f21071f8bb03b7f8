"""Samplers of tables and of cells, and the stream of words behind them."""

from __future__ import annotations

import numpy as np
import pytest

from comparisons.registry import KEY, compares, law_tables, same_bits
from psinoise import _core as native
from psinoise import reference
from psinoise.compile.cells import alias_columns


@compares("LawTable")
def compare_law_table(tables):
    with pytest.raises(AttributeError):
        native.LawTable(*tables).new = 1
    for bad in (tables[:3], (*tables, None)):
        for core in (native, reference):
            with pytest.raises(TypeError):
                core.LawTable(*bad)


@compares("sample")
def compare_sample(tables):
    for dtype in ("float64", "float32"):
        for first, size in ((0, 0), (0, 1), (511, 3), (2**40 + 1, 50_000)):
            results = []
            for core, law in zip((native, reference), law_tables(tables), strict=True):
                out = np.full((size,), np.nan, dtype=dtype)
                core.sample(law, KEY, first, 0.1, out, 2)
                results.append(out)
            same_bits(*results)


def cell_tables(*, step=0.0, seed=3, cells=37, tail=0.2):
    """A table with empty columns, cells of every size, an atom, and a tail that is not rare."""
    generator = np.random.default_rng(seed)
    masses = np.exp(-generator.uniform(0.0, 60.0, cells))
    masses[-2:] = tail
    entries, fractions = alias_columns(masses.tolist())
    widths = generator.uniform(0.1, 1.0, cells)
    starts = np.concatenate([[0.0], np.cumsum(widths)[:-1]])
    widths[0] = 0.0
    empty = np.empty(0)
    shape = (empty, empty) if step else (starts, widths)
    return (entries, fractions, *shape, step, cells - 2, 0.7, float(widths[-2:].sum()))


@compares("CellTable")
def compare_cell_table(tables):
    arguments = cell_tables()
    with pytest.raises(AttributeError):
        native.CellTable(*arguments).new = 1
    with pytest.raises(AttributeError):
        reference.CellTable(*arguments).step = 1
    entries, fractions, starts, widths, *rest = arguments
    for core in (native, reference):
        for bad in (
            (entries[:-1], fractions[:-1], starts, widths, *rest),
            (entries, fractions[:-1], starts, widths, *rest),
            (entries, fractions, starts[:-1], widths, *rest),
            (entries, fractions, starts[:5], widths[:5], *rest),
            (entries, fractions, starts[:0], widths[:0], *rest),
            (entries, fractions, starts, widths, 0.0, 3, 0.0, 1.0),
            (entries, fractions, starts, widths, 0.0, 3, np.nan, 1.0),
            (np.zeros(2**21, np.uint64), np.zeros(2**21, np.uint64), starts, widths, *rest),
        ):
            with pytest.raises(ValueError, match="must"):
                core.CellTable(*bad)


@compares("sample_cells")
def compare_sample_cells(tables):
    one = (np.array([4096 << 20], np.uint64), np.zeros(1, np.uint64), np.zeros(1), np.ones(1))
    for arguments in (
        cell_tables(),
        cell_tables(step=0.25),
        cell_tables(cells=2**15),
        cell_tables(cells=2**17 + 1, step=1.0),
        cell_tables(cells=700, tail=1e-3, step=1.0),
        (*one, 0.0, 1, 0.0, 0.0),
        (*one, 0.0, 0, 1e-17, 2.0),  # more than 2**53 periods
    ):
        both = native.CellTable(*arguments), reference.CellTable(*arguments)
        for dtype in ("float64", "float32"):
            for first, size in ((0, 0), (0, 1), (511, 3), (2**40 + 1, 50_000)):
                results = []
                for core, table in zip((native, reference), both, strict=True):
                    out = np.full((size,), np.nan, dtype=dtype)
                    core.sample_cells(table, KEY, first, 0.3, out, 2)
                    results.append(out)
                same_bits(*results)


@compares("stream_words")
def compare_stream_words(tables):
    for rounds in (8, 20):
        for first, count in ((0, 0), (5, 1000), (2**45 + 3, 300)):
            same_bits(
                native.stream_words(KEY, rounds, first, count),
                reference.stream_words(KEY, rounds, first, count),
            )


@compares("chacha_block")
def compare_chacha_block(tables):
    for rounds in (8, 20):
        for counter, nonce in ((0, 0), (2**64 - 1, 1), (2**32, 2**63)):
            same_bits(
                native.chacha_block(KEY, rounds, counter, nonce),
                reference.chacha_block(KEY, rounds, counter, nonce),
            )
