"""The Schrodinger law of costs with kinks: split tables against Airy functions in pieces."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import psinoise as pn
from psinoise import costs

EPS = 2.0**-53
QUANTITIES = ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf")


def near(value, relative):
    return pytest.approx(value, rel=relative, abs=0.0)


@pytest.mark.parametrize(
    "breakpoints",
    [(0.01,), (0.7, 1.9), (3.3, 3.31, 3.35), (20.0,), (0.5, 1.03, 1.94, 2.5, 3.7, 5.1, 7.7, 12.3)],
    ids=repr,
)
def test_breakpoints_of_a_smooth_cost_change_nothing(breakpoints):
    """Every table is split, in the center, in quantiles and in the tail, and it is still Airy."""
    noise = pn.Schrodinger(cost=costs.Custom(np.abs, breakpoints), mean_cost=1.0)
    airy = pn.Airy(mean_abs=1.0)
    points = np.array(breakpoints)
    x = np.concatenate(
        [np.linspace(0.0, 90.0, 5001), points, points * (1 - EPS), points * (1 + EPS)]
    )
    for name in ("pdf", "ccdf"):
        ours, theirs = getattr(noise, name)(x), getattr(airy, name)(x)
        normal = theirs > 1e-300
        np.testing.assert_allclose(ours[normal], theirs[normal], rtol=5e-14)
    p = np.concatenate([10.0 ** -np.linspace(0.3, 300.0, 1000), np.linspace(0.001, 0.499, 999)])
    np.testing.assert_allclose(noise.iccdf(p), airy.iccdf(p), rtol=4e-15)
    assert noise.kl(0.3) == near(airy.kl(0.3), 1e-12)
    assert noise.kinks == (0.0, *breakpoints)


def two_slopes(x):
    return np.abs(x) + 3.0 * np.maximum(np.abs(x) - 1.3, 0.0)


def airy_pieces(theta, kink, slope):
    """Ground state of the cost ``|x|`` up to the kink and ``slope`` times as steep beyond: Airy
    functions on both sides, the energy by matching, in mpmath."""
    theta, kink, slope = mpf(theta), mpf(kink), mpf(slope)

    def outer(x, energy):
        k = mpmath.cbrt(theta * slope)
        z = k * (x - kink) + (theta * kink - energy) / k**2
        return mpmath.airyai(z), k * mpmath.airyai(z, derivative=1)

    def inner(x, energy):
        k = mpmath.cbrt(theta)
        value, change = outer(kink, energy)
        z = k * kink - energy / k**2
        a, b = mpmath.airyai(z), mpmath.airybi(z)
        da, db = k * mpmath.airyai(z, derivative=1), k * mpmath.airybi(z, derivative=1)
        det = a * db - b * da
        c1, c2 = (value * db - change * b) / det, (change * a - value * da) / det
        z = k * x - energy / k**2
        y = c1 * mpmath.airyai(z) + c2 * mpmath.airybi(z)
        return y, k * (c1 * mpmath.airyai(z, derivative=1) + c2 * mpmath.airybi(z, derivative=1))

    def tail(x, energy):
        """The integral of y**2 from x on: ``(Q y**2 - y'**2)' = Q' y**2``, and Q' is constant."""

        def primitive(x, piece, steepness):
            y, change = piece(x, energy)
            q = theta * (kink + steepness * (x - kink)) - energy
            return (q * y**2 - change**2) / (theta * steepness)

        if x >= kink:
            return -primitive(x, outer, slope)
        return primitive(kink, inner, 1) - primitive(x, inner, 1) - primitive(kink, outer, slope)

    return inner, outer, tail


@pytest.mark.parametrize("bound", [0.1, 1.0])
def test_a_kink_against_airy_functions(bound):
    """The independent truth of a cost with a kink: far in the tail and in the center of the law."""
    noise = pn.Schrodinger(cost=costs.Custom(two_slopes, [1.3]), mean_cost=bound)
    with mpmath.workdps(80):
        inner, outer, tail = airy_pieces(noise.theta, 1.3, 4.0)
        guess = mpf(noise.ground_energy)
        energy = mpmath.findroot(
            lambda e: inner(mpf(0), e)[1], (guess, guess * (1 + mpf(10) ** -10)), tol=1e-100
        )
        assert abs(noise.ground_energy / energy - 1) < 4 * 2.0**-52
        mass = 2 * tail(mpf(0), energy)
        for x in (0.0, 0.5, 1.2, 1.29, 1.3, 1.31, 1.5, 3.0, 6.0):
            y, _ = (inner if x < 1.3 else outer)(mpf(x), energy)
            assert abs(float(noise.pdf(x) / (y**2 / mass) - 1)) < 5e-14, x
            assert abs(float(noise.ccdf(x) / (tail(mpf(x), energy) / mass) - 1)) < 5e-14, x
    assert noise.mean_cost == near(bound, 1e-13)
    assert noise.log_concave


@pytest.mark.parametrize("bound", [0.05, 1.0, 7.0])
def test_maxima(bound):
    """Kinks wherever terms cross, also where they are far out in the tail."""
    cost = costs.maximum(
        costs.Power(0.5), costs.Power(1.0, weight=0.5), costs.Power(2.0, weight=0.01)
    )
    noise = pn.Schrodinger(cost=cost, mean_cost=bound)
    assert noise.expected_cost(cost) == near(bound, 1e-13)
    assert noise.moment(0) == near(1.0, 1e-14)
    fisher = 4.0 * (noise.ground_energy - noise.theta * bound)
    assert fisher == near(pn.Noise._standard_fisher_information(noise) / noise.scale**2, 1e-10)
    x = np.linspace(0.0, 12.0, 2001) * noise.std
    hi, lo = noise.log_density(x / noise.scale)
    np.testing.assert_allclose(
        noise.logpdf(x), (hi - np.log(noise.scale)) + lo, rtol=2e-15, atol=2e-15
    )
    p = 10.0 ** -np.linspace(0.31, 300.0, 500)
    np.testing.assert_allclose(noise.ccdf(noise.iccdf(p)), p, rtol=2e-12)
    sample = noise.sample(100_000, rng=3)
    assert np.mean(cost(sample)) == pytest.approx(bound, rel=0.02)
    epsilon = pn.Mechanism(noise, noise.std).epsilon(1e-6, 10)
    assert epsilon.lower <= epsilon.estimate <= epsilon.upper


def test_the_twins_split_too(tables_of):
    """The kernels and the twins agree where panels are split."""
    from psinoise import _core, reference
    from psinoise.noise import Family

    tables = tables_of(Family(pn.Schrodinger, cost=costs.Custom(two_slopes, [1.3])))
    assert all(np.isnan(rows[-1, -1]) for rows, *_ in tables[:2])
    t = np.concatenate([np.linspace(0.0, 60.0, 20001), np.full(3, 1.3) * [1 - EPS, 1.0, 1 + EPS]])
    laws = _core.LawTable(*tables), reference.LawTable(*tables)
    for quantity in QUANTITIES:
        found = []
        for core, law in zip((_core, reference), laws, strict=True):
            out = np.empty_like(t)
            core.evaluate(law, quantity, 1.0, t, out, 1)
            found.append(out)
        np.testing.assert_array_equal(*found)
    for panels in tables[:4]:
        np.testing.assert_array_equal(
            _core.panel_values(*panels, t), reference.panel_values(*panels, t)
        )
    samples = []
    for core, law in zip((_core, reference), laws, strict=True):
        out = np.empty(50_000)
        core.sample(law, bytes(32), 0, 1.0, out, 1)
        samples.append(out)
    np.testing.assert_array_equal(*samples)
    for core in (_core, reference):
        ours = core.ziggurat(tables.log_density, tables.log_mills, tables.wide[2], 2048)
        np.testing.assert_array_equal(ours[0], tables.wide[0])
        np.testing.assert_array_equal(ours[1], tables.wide[1])
    # Rows of the other side of a kink would show.
    rows, *place = tables.log_density
    blind = rows[: rows.shape[0] - 2 * int(np.isnan(rows[:, -1]).sum())]
    assert (_core.panel_values(blind, *place, t) != _core.panel_values(rows, *place, t)).any()
    # Descriptions that point elsewhere, or are out of order, are refused.
    panels = rows.shape[0] - 2 * int(np.isnan(rows[:, -1]).sum())
    for column, value in ((0, panels), (0, 0.5), (2, panels), (3, np.inf), (4, 0.0)):
        wrong = rows.copy()
        wrong[-1, column] = value
        with pytest.raises(ValueError, match="a part must belong to a panel"):
            _core.panel_values(wrong, *place, t)
    wrong = rows.copy()
    wrong[-1, 1] = wrong[-3, 1]
    with pytest.raises(ValueError, match="parts must be in ascending order"):
        _core.panel_values(wrong, *place, t)
