"""Elementary and special functions, tables and their evaluation, ground states."""

from __future__ import annotations

import numpy as np
import pytest

from comparisons.registry import compares, law_tables, points, same_bits
from psinoise import _core as native
from psinoise import reference


@compares("evaluate")
def compare_evaluate(tables):
    x = points()
    for quantity in ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf"):
        for scale in (1.0, 0.3, 1e-200, 1e200, 2.0**-1022):
            results = []
            for core, law in zip((native, reference), law_tables(tables), strict=True):
                out = np.empty_like(x)
                results.append((core.evaluate(law, quantity, scale, x, out, 1), out))
            assert results[0][0] == results[1][0]
            same_bits(results[0][1], results[1][1])
    for core, law in zip((native, reference), law_tables(tables), strict=True):
        with pytest.raises(ValueError, match="unknown quantity"):
            core.evaluate(law, "sf", 1.0, x, x.copy(), 1)


@compares("inverse_survival")
def compare_inverse_survival(tables):
    generator = np.random.default_rng(72)
    p = np.concatenate(
        [
            [0.0, 1.0, 0.5, 0.25, 0.75, np.nan, -1.0, 2.0, np.inf, 5e-324, 1e-310, 1 - 2.0**-53],
            np.nextafter([0.25, 0.5, 0.75], 0.0),
            np.nextafter([0.25, 0.5, 0.75], 1.0),
            generator.uniform(size=5000),
            10.0 ** generator.uniform(-320, 0, 5000),
        ]
    )
    results = []
    for core, law in zip((native, reference), law_tables(tables), strict=True):
        out = np.empty_like(p)
        core.inverse_survival(law, 0.7, p, out, 1)
        results.append(out)
    same_bits(*results)


@compares("ziggurat")
def compare_ziggurat(tables):
    for name, layers in (("wide", 2048), ("narrow", 1024)):
        edge = getattr(tables, name)[2]
        ours, theirs = (
            core.ziggurat(tables.log_density, tables.log_mills, edge, layers)
            for core in (native, reference)
        )
        same_bits(ours[0], theirs[0])
        same_bits(ours[1], theirs[1])
        assert ours[2:] == theirs[2:]


@compares("panel_values")
def compare_panel_values(tables):
    t = np.abs(points())  # -0.0 has a test of its own in test_panels
    for panels in tables[:4]:
        same_bits(native.panel_values(*panels, t), reference.panel_values(*panels, t))
    generator = np.random.default_rng(74)
    for bits in range(3, 9):
        panels = (generator.normal(size=(1 + 3 * 2**bits, 12)), -1, bits)
        same_bits(native.panel_values(*panels, t), reference.panel_values(*panels, t))


@compares("exponential")
def compare_exponential(tables):
    x = points()
    lo = np.where(np.isfinite(x), 1e-17 * x, 0.0)
    same_bits(native.exponential(x, lo), reference.exponential(x, lo))


@compares("logarithm")
def compare_logarithm(tables):
    same_bits(native.logarithm(points()), reference.logarithm(points()))


@compares("log_one_plus")
def compare_log_one_plus(tables):
    same_bits(native.log_one_plus(points()), reference.log_one_plus(points()))


@compares("stable_sums")
def compare_stable_sums(tables):
    generator = np.random.default_rng(73)
    log_y = generator.uniform(-40.0, 5.0, 71)
    lo = generator.uniform(-1.0, 1.0, 71) * np.spacing(log_y) / 2
    for alpha in (0.1, 0.5, 1.0 - 1e-9, 1.0 + 1e-12, 1.3, 1.5, 1.75, 1.9999, 2.0 - 1e-12):
        above_one, below_two = alpha - 1.0, 2.0 - alpha
        step = 0.2 * min(abs(above_one) / alpha, 0.4)
        start = -150.0 * step + generator.uniform(-1.0, 1.0, 71)
        arguments = (alpha, above_one, below_two, log_y, lo, start, step, 300)
        ours, theirs = native.stable_sums(*arguments), reference.stable_sums(*arguments)
        for our, their in zip(ours, theirs, strict=True):
            assert np.isfinite(our).all()
            same_bits(our, their)


def riccati_problem():
    """|x| on half octaves, at an energy a little below that of the ground state."""
    from psinoise.ground_state._collocation import NODES, matrices

    edges = np.concatenate(
        [[0.0, 0.5], (2.0 ** np.arange(-1.0, 5.0)[:, None] * [1.5, 2.0]).ravel()]
    )
    half = 0.5 * np.diff(edges)
    cost = (edges[:-1] + half)[:, None] + half[:, None] * NODES
    q = cost - 1.0
    guess = np.where(q > 2.0, np.sqrt(np.maximum(q, 0.0)), np.nan)
    end = np.sqrt(q[-1, -1])
    start = np.array([end, 0.5 / end, 0.5 * cost[-1, -1] / end])
    return half, q, 1e-17 * q, cost, guess, start, *matrices().inward


@compares("riccati")
def compare_riccati(tables):
    problem = riccati_problem()
    for refinements in (0, 1, 3):
        found = [core.riccati(*problem, refinements) for core in (native, reference)]
        for ours, theirs in zip(*found, strict=True):
            assert np.isfinite(ours).all()
            same_bits(ours, theirs)
    # Above the first odd state there is a pole: no solution before it.
    high = (problem[0], problem[1] - 4.0, *problem[2:])
    found = [core.riccati(*high, 1) for core in (native, reference)]
    for ours, theirs in zip(*found, strict=True):
        assert np.isnan(ours[0]).all()
        same_bits(ours, theirs)


@compares("ground_state")
def compare_ground_state(tables):
    generator = np.random.default_rng(77)
    edges = np.array([0.0, 0.5, 1.0, 3.0, 4.0])
    panels = (
        edges,
        0.5 * (edges[1:] + edges[:-1]),
        np.array([4.0, 4.0, 1.0, 2.0]),
        generator.normal(size=(4, 21)),
        1e-17 * generator.normal(size=(4, 5)),
        generator.normal(size=(4, 20)),
    )
    t = np.concatenate([generator.uniform(0.0, 4.0, 1000), edges, [-1.0, 4.1, np.nan, np.inf]])
    found = [core.ground_state(*panels, t) for core in (native, reference)]
    for ours, theirs in zip(*found, strict=True):
        assert np.isnan(ours[-4:]).all()
        assert np.isfinite(ours[:-4]).all()
        same_bits(ours, theirs)
