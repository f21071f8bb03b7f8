"""Values and quantiles of laws in cells."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import psinoise as pn
from comparisons.registry import compares, points, same_bits
from psinoise import _core as native
from psinoise import reference
from psinoise.noise import _cells

LAWS = (
    pn.Staircase(epsilon=0.7, sensitivity=1.0),
    pn.UniformAtom(delta=0.3),
    pn.UniformAtom(delta=0.9, power=2),
    pn.Cactus(cells_per_sensitivity=10, cells=40, tail_ratio=0.7),
)


def _both(law):
    """One law as both back ends have it."""
    found = []
    for core in (native, reference):
        with mock.patch.object(_cells, "core", core):
            found.append(_cells.Cells.law.func(law.partition))
    return found


@compares("CellLaw")
def compare_cell_law(tables):
    edges, masses = np.array([0.0, 1.0, 3.0]), np.array([0.6, 0.3])
    above, below, logs = np.array([0.9, 0.3, 0.1]), np.array([0.0, 0.6, 0.9]), np.zeros(3)
    rest = (0.0, 1, 0.5, 2.0, True)
    for core in (native, reference):
        with pytest.raises(AttributeError):
            core.CellLaw(edges, masses, above, below, logs, *rest).atom = 0.5
        for bad in (
            (edges[:2], masses, above, below, logs, *rest),
            (edges, masses[:0], above[:1], below[:1], logs[:1], *rest),
            (edges[::-1].copy(), masses, above, below, logs, *rest),
            (edges, masses, below, above, logs, *rest),
            (edges - 1.0, masses, above, below, logs, *rest),
            (np.append(edges[:2], np.inf), masses, above, below, logs, *rest),
            (edges, masses, above, below, logs, 0.0, 3, 0.5, 2.0, True),
            (edges, masses, above, below, logs, 0.0, 1, 0.0, 2.0, True),
            (edges, masses, above, below, logs, 0.0, 1, np.nan, 2.0, True),
        ):
            with pytest.raises(ValueError, match="must be"):
                core.CellLaw(*bad)


@compares("evaluate_cells")
def compare_evaluate_cells(tables):
    for law in LAWS:
        x = np.concatenate([points(), law.partition.edges, law.partition.edges + law.period])
        for quantity in ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf"):
            for scale in (1.0, 0.3, 1e-200, 1e200):
                results = []
                for core, table in zip((native, reference), _both(law), strict=True):
                    out = np.empty_like(x)
                    core.evaluate_cells(table, quantity, scale, x, out, 1)
                    results.append(out)
                same_bits(*results)
    for core, table in zip((native, reference), _both(LAWS[0]), strict=True):
        with pytest.raises(ValueError, match="unknown quantity"):
            core.evaluate_cells(table, "sf", 1.0, np.zeros(3), np.zeros(3), 1)


@compares("inverse_survival_cells")
def compare_inverse_survival_cells(tables):
    generator = np.random.default_rng(72)
    ends = [0.0, 1.0, 0.5, 0.25, np.nan, -1.0, 2.0, np.inf, 5e-324, 1e-310, 1 - 2.0**-53]
    spread = [generator.uniform(size=5000), 10.0 ** generator.uniform(-320, 0, 5000)]
    for law in LAWS:
        p = np.concatenate([ends, *spread, 0.5 * law.partition.above])
        results = []
        for core, table in zip((native, reference), _both(law), strict=True):
            out = np.empty_like(p)
            core.inverse_survival_cells(table, 0.7, p, out, 1)
            results.append(out)
        same_bits(*results)
