"""Fits on dyadic panels: accuracy, refusal of what is not smooth, the same bits every time."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from psinoise.compile import FitError, Layout, compile_law
from psinoise.compile.panels import fit
from psinoise.numerics import double_double as dd

LAYOUT = Layout(-4, 8)  # panels up to 16


def exact_pairs(function):
    """A callable for ``fit`` from a function of mpmath numbers."""

    def values(t):
        with mpmath.workdps(40):
            truths = [function(mpmath.mpf(float(point))) for point in t]
            hi = np.array([float(truth) for truth in truths])
            lo = np.array([float(truth - h) for truth, h in zip(truths, hi.tolist(), strict=True)])
        return hi, lo

    return values


def points(limit):
    generator = np.random.default_rng(31)
    edges = np.concatenate([2.0**k * np.arange(8, 17) / 8.0 for k in range(-4, 4)])
    edges = edges[edges < limit]
    return np.concatenate(
        [[0.0], edges, np.nextafter(edges, 0.0), generator.uniform(0.0, limit, 400)]
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda t: mpmath.exp(-t),
        lambda t: mpmath.exp(t / 16),
        lambda t: -t * t / 2 - mpmath.log(2 * mpmath.pi) / 2,
        lambda t: mpmath.sqrt(1 + t),
    ],
    ids=["exp(-t)", "exp(t/16)", "log p of the Gaussian", "sqrt(1+t)"],
)
def test_fits_are_right_to_1e15(core, function):
    rows, *panels = fit(exact_pairs(function), LAYOUT, tolerance=1e-15)
    t = points(LAYOUT.limit)
    with mpmath.workdps(40):
        truths = np.array([float(function(mpmath.mpf(float(point)))) for point in t])
    errors = np.abs(core.panel_values(rows, *panels, t) - truths)
    # The fit, and half an ulp of the result where it is above 1.
    assert (errors / np.maximum(1.0, np.abs(truths))).max() < 1e-15


def test_a_wrong_coefficient_would_be_seen(core):
    """Mutant: one coefficient off by 1e-14 of its panel's value."""
    rows, *panels = fit(exact_pairs(lambda t: mpmath.exp(-t)), LAYOUT, tolerance=1e-15)
    broken = rows.copy()
    broken[8, 3] += 1e-14
    t = points(LAYOUT.limit)
    difference = np.abs(core.panel_values(broken, *panels, t) - core.panel_values(rows, *panels, t))
    assert difference.max() > 2e-15


def test_values_are_nan_outside(core):
    rows, *panels = fit(exact_pairs(lambda t: t), LAYOUT, tolerance=1e-15)
    t = np.array([-1e-300, -np.inf, LAYOUT.limit, np.inf, np.nan])
    assert np.isnan(core.panel_values(rows, *panels, t)).all()
    inside = np.array([0.0, 5e-324, np.nextafter(LAYOUT.limit, 0.0)])
    np.testing.assert_allclose(core.panel_values(rows, *panels, inside), inside, rtol=0, atol=2e-15)


@pytest.mark.deep
@pytest.mark.parametrize("back_end", ["_core", "reference"])
def test_minus_zero_is_zero(run_python, back_end):
    """Panels are found from the bits of a number, and -0.0 >= 0 passes the check of the range.

    In a process of its own: a read outside the table can end it.
    """
    code = f"""
import numpy as np
from psinoise import {back_end} as core
rows = np.zeros((9, 12))
rows[:, 0] = 1.5
print([float(core.panel_values(rows, -4, 3, np.array([x]))[0]) for x in (0.0, -0.0)])
"""
    assert run_python(code) == "[1.5, 1.5]\n"


def test_a_kink_inside_a_panel_is_refused():
    def kink(t):
        return np.abs(t - 1.07), np.zeros_like(t)

    with pytest.raises(FitError, match=r"not smooth enough near 1\.0"):
        fit(kink, LAYOUT, tolerance=2e-15)
    # At an edge of a panel the same kink does no harm.
    fit(lambda t: (np.abs(t - 1.125), np.zeros_like(t)), LAYOUT, tolerance=2e-15)


def test_nan_is_refused():
    with pytest.raises(FitError):
        fit(lambda t: (np.full_like(t, np.nan), np.zeros_like(t)), LAYOUT, tolerance=2e-15)


def test_the_low_part_of_the_first_coefficient_is_kept():
    """Kills: the constant rounded to one double (values of -700 would lose 5e-14)."""
    rows, *_ = fit(exact_pairs(lambda t: -700 - t / 3), LAYOUT, tolerance=2e-15)
    centers, _ = LAYOUT.centers()
    with mpmath.workdps(40):
        for row, center in zip(rows, centers, strict=True):
            truth = -700 - mpmath.mpf(float(center)) / 3
            total = mpmath.mpf(float(row[0])) + mpmath.mpf(float(row[1]))
            assert abs(total - truth) < 1e-28
    assert np.abs(rows[:, 1]).max() > 1e-15


def test_layout_has_no_gaps():
    centers, halves = LAYOUT.centers()
    left, right = centers - halves, centers + halves
    assert left[0] == 0.0
    assert right[-1] == LAYOUT.limit
    np.testing.assert_array_equal(left[1:], right[:-1])


def test_bad_tables_are_refused(core):
    t = np.zeros(1)
    for shape in ((1, 12), (10, 12), (9, 11), (0, 12)):
        with pytest.raises(
            ValueError, match=r"rows must have shape \(1 \+ 2\*\*bits exponents, 12\)"
        ):
            core.panel_values(np.zeros(shape), 0, 3, t)


def test_compilation_is_deterministic(law, law_class, tables_of):
    """Two compilations, by fresh objects, give the same bits; so does a scaled law."""
    first, second = (tables_of.__wrapped__(law_class) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    assert type(compile_law(law)) is type(law._table)


def test_tables_reproduce_the_law(law, law_class, tables_of, core):
    """The density table against the law's own formula, at points the fit has not seen."""
    tables = tables_of(law_class)
    last = min(20.0, float(np.log2(law.layout.limit)))
    t = np.random.default_rng(32).uniform(-4.0, last, 4000)
    t = np.exp2(t)
    hi, lo = law.log_density(t)
    values = core.panel_values(*tables.log_density, t)
    assert (np.abs((values - hi) - lo) / np.maximum(1.0, np.abs(hi))).max() < 2e-15
    mills = core.panel_values(*tables.log_mills, t)
    assert (np.abs(mills - law.log_mills(t)) / np.maximum(1.0, np.abs(mills))).max() < 2e-15


def test_quantile_tables_invert_the_survival_function(law, law_class, tables_of, core):
    tables = tables_of(law_class)
    depth = np.concatenate([np.linspace(0.7, 40.0, 500), np.linspace(41.0, 2047.9, 500)])
    log_t = core.panel_values(*tables.tail_quantile, depth)
    t = core.exponential(log_t, np.zeros_like(log_t))
    pair = dd.add(law.log_density(t), (law.log_mills(t), np.full_like(t, np.log(2.0))))
    # A relative error of 2e-15 * max(1, |log t|) in t, and its effect on the depth.
    slope = t / np.exp(law.log_mills(t))
    bound = 2e-15 * depth + slope * 4e-15 * np.maximum(1.0, np.abs(log_t))
    assert (np.abs((pair[0] + depth) + pair[1]) <= bound).all()
