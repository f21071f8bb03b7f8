"""Panels, edges and bins of a loss: equal within rounding, and right by their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from comparisons.losses import law_values, loss_at
from comparisons.registry import compares
from psinoise import _core as native
from psinoise import reference

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(16)
LAST = np.stack(
    [
        (k + 0.5) * WEIGHTS * np.polynomial.legendre.legval(POINTS, [0.0] * k + [1.0])
        for k in (14, 15)
    ],
    axis=1,
)
BOTH = (native, reference)
SHIFTS = ((0.7, 0.0), (0.0, 0.7), (0.7, -0.7))


def losses_at(law, pair, x):
    return loss_at(law, pair, x.ravel()).reshape(x.shape)


def density_of_q(law, pair, x):
    scale, _, shift_q, rate = pair
    flat = x.ravel()
    plain, moved = (np.exp(law_values(law, (flat - s) / scale)) for s in (0.0, shift_q))
    return (((1.0 - rate) * plain + rate * moved) / scale).reshape(x.shape)


@compares("loss_panels")
def compare_loss_panels(tables):
    """The same panels where no criterion is met to rounding; they integrate both densities."""
    law = reference.LawTable(*tables)
    edges = np.array([-6.0, -3.0, 0.0, 0.7, 3.0, 6.0])
    peak = float(law.log_density.value(np.zeros(1))[0])
    for rate in (1.0, 0.3, 1e-6):
        for shifts in SHIFTS:
            pair = (1.25, *shifts, rate)
            found = [
                core.loss_panels(core.LawTable(*tables), *pair, POINTS, LAST, edges, peak - 60.0)
                for core in BOTH
            ]
            for left, right, base, loss, flat, narrow in found:
                assert not narrow.any()
                assert (left[1:] == right[:-1]).all()
                assert base.shape == loss.shape == (*left.shape, 16)
                assert flat.dtype == np.bool_
                half = 0.5 * (right - left)
                x = (left + half)[:, None] + half[:, None] * POINTS
                np.testing.assert_allclose(loss, losses_at(law, pair, x), rtol=1e-9, atol=1e-14)
                exact = density_of_q(law, pair, x)
                np.testing.assert_allclose(np.exp(base), exact, rtol=1e-12)
                # A finer rule on the same panels finds the same mass of Q and P.
                fine, fine_weights = np.polynomial.legendre.leggauss(40)
                y = (left + half)[:, None] + half[:, None] * fine
                density = density_of_q(law, pair, y)
                for factor, values in ((1.0, 1.0), (np.exp(loss), np.exp(losses_at(law, pair, y)))):
                    ours = (half[:, None] * WEIGHTS * np.exp(base) * factor).sum()
                    theirs = (half[:, None] * fine_weights * density * values).sum()
                    assert ours == pytest.approx(theirs, rel=1e-12)
            same = [panels[0].size for panels in found]
            if same[0] == same[1]:
                np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-12)
                np.testing.assert_array_equal(found[0][4], found[1][4])
    for core in BOTH:
        arguments = (core.LawTable(*tables), 1e-200, 0.7, 0.0, 1.0)
        assert core.loss_panels(*arguments, POINTS, LAST, edges, -1e300) is None
    with pytest.raises(ValueError, match="2 to 96 points"):
        native.loss_panels(native.LawTable(*tables), 1.0, 0.7, 0.0, 1.0, edges[:1], edges, edges, 0)


@compares("point_losses")
def compare_point_losses(tables):
    """The same losses, of close neighbors too, and those that the density says for others."""
    law = reference.LawTable(*tables)
    generator = np.random.default_rng(83)
    x = np.concatenate([generator.normal(0.0, 3.0, 60), [0.0, -0.0, np.nan, 1e300, 2.5]])
    for rate in (1.0, 0.3, 1e-6):
        for share in (1.0, 1e-5, 1e-9, 1e-50):
            for shifts in SHIFTS:
                pair = (1.25, *(share * shift for shift in shifts), rate)
                # Outputs between the centers too.
                points = np.concatenate([x, share * x])
                found = [core.point_losses(core.LawTable(*tables), *pair, points) for core in BOTH]
                size = np.abs(found[1][1][np.isfinite(found[1][1])]).max()
                for ours, theirs, near in zip(
                    *found, (1e-14, 1e-12 * size, 1e-12 * size), strict=True
                ):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=max(near, 1e-300))
                    lost = np.isnan(x) | (np.abs(x) >= 1.25 * law.log_density.limit)
                    np.testing.assert_array_equal(np.isnan(ours[: x.size]), lost)
                if share == 1.0:
                    inside = points[np.isfinite(found[0][2])]
                    exact = loss_at(law, pair, inside)
                    np.testing.assert_allclose(
                        found[0][2][np.isfinite(found[0][2])], exact, rtol=1e-9, atol=1e-13
                    )
    for core in BOTH:
        table = core.LawTable(*tables)
        assert 0.0 < table.close_error(1.0, 1e-9, 1.0) < 1e-12
        assert table.close_error(2.0, -2e-9, 0.1) == table.close_error(1.0, 1e-9, 1.0)
        others = (0.0, 1.0), (1e-70, 1.0), (1e-30, 1e-100), (1e-3, 1.0)
        assert [table.close_error(1.0, *other) for other in others] == [0.0] * 4


@compares("panel_pieces")
def compare_panel_pieces(tables):
    generator = np.random.default_rng(81)
    for panels, order in ((0, 16), (1, 16), (30, 16), (5, 3)):
        size = panels * order + 2  # two atoms
        log_mass = generator.uniform(-80.0, 0.0, size)
        loss = np.sort(generator.normal(size=size))
        for c, frequency in ((0.0, 0.0), (3.0, 1.0), (1.0, 5e3), (200.0, 1e15)):
            ours, theirs = (
                core.panel_pieces(log_mass, loss, panels, order, c, 1.0, frequency) for core in BOTH
            )
            np.testing.assert_array_equal(ours, theirs)
            assert ours.shape == (panels,)
            assert (ours >= 1).all()
    # A range of the tilted mass, one of the phase, and a panel that does not matter.
    log_mass, loss = np.tile([0.0, -28.0], 2), np.array([0.0, 0.0, 0.0, 6.0])
    assert native.panel_pieces(log_mass, loss, 2, 2, 0.0, 0.0, 7.0).tolist() == [2, 4]
    assert native.panel_pieces(log_mass - 50.0, loss, 2, 2, 0.0, 0.0, 7.0).tolist() == [1, 1]
    for core in BOTH:
        with pytest.raises(ValueError, match="a node for each point"):
            core.panel_pieces(loss, loss, 3, 2, 0.0, 0.0, 1.0)


@compares("loss_bins")
def compare_loss_bins(tables):
    """Masses of all bins together are those of the panels, whatever the levels."""
    law = reference.LawTable(*tables)
    edges = np.linspace(1.5, 5.0, 9)
    x = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0.0, 1.0, 18)
    x[:, -1] = edges[1:]
    for rate in (1.0, 0.3, 1e-6):
        for shifts in SHIFTS:
            pair = (1.25, *shifts, rate)
            loss = losses_at(law, pair, x)
            slope = np.gradient(loss.ravel(), x.ravel() + 1e-12 * np.arange(x.size))
            slope = np.ascontiguousarray(slope.reshape(x.shape))
            if not np.abs(slope).min() > 1e-3 * rate:
                continue  # the loss is constant
            levels = np.linspace(loss.min() - 0.01 * rate, loss.max() + 0.01 * rate, 97)
            found = [
                core.loss_bins(
                    core.LawTable(*tables), *pair, x, loss, slope, levels, 1.5, 0.2, 1e-14
                )
                for core in BOTH
            ]
            for mass, excess, error in found:
                assert mass.shape == excess.shape == (96,)
                assert error <= 2e-14
                assert (excess >= 0.0).all()
                assert (excess <= mass * -np.expm1(levels[:-1] - levels[1:]) * (1 + 1e-9)).all()
            np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-14)
            # Each bin is weighed by its level: taken off, the masses are those of P.
            nodes, weights = np.polynomial.legendre.leggauss(30)
            half = 0.5 * np.diff(edges)
            y = (edges[:-1] + half)[:, None] + half[:, None] * nodes
            swapped = (pair[0], pair[2], pair[1], pair[3])
            exact = (half[:, None] * weights * density_of_q(law, swapped, y)).sum()
            whole = (found[0][0] * np.exp(0.2 - 1.5 * levels[:-1])).sum()
            assert whole == pytest.approx(exact, rel=1e-12)
    compare_a_wide_bin(tables)
    for core in BOTH:
        arguments = (core.LawTable(*tables), 1.0, 0.7, 0.0, 1.0)
        two = np.zeros((1, 2))
        with pytest.raises(ValueError, match="two samples"):
            core.loss_bins(*arguments, edges, edges, edges, edges, 0.0, 0.0, 0.0)
        with pytest.raises(ValueError, match="two levels"):
            core.loss_bins(*arguments, two, two, two, edges[:1], 0.0, 0.0, 0.0)


def compare_a_wide_bin(tables):
    """All pieces in one bin, which ends where the largest losses lie; against quadrature."""
    law = reference.LawTable(*tables)
    # Both densities have kinks at edges.
    edges = np.union1d(np.linspace(-6.0, 7.0, 60), [0.0, 0.7, -0.7])
    nodes, weights = np.polynomial.legendre.leggauss(30)
    half = 0.5 * np.diff(edges)
    x = np.stack([edges[:-1], edges[1:]], axis=1)
    y = x[:, :1] + half[:, None] * (1.0 + nodes)
    for rate in (0.3, 1e-6, 1.0 - 1e-9):
        for shifts in SHIFTS:
            pair, swapped = (1.25, *shifts, rate), (1.25, *shifts[::-1], rate)
            loss, inner = losses_at(law, pair, x), losses_at(law, pair, y)
            weight = half[:, None] * weights * density_of_q(law, swapped, y)
            for width in (float(np.ptp(loss)) + 1e-3, 40.0, 800.0):
                level = loss.max() - width
                levels = np.array([level, level + 2.0 * width])
                exact = weight.sum(), (weight * -np.expm1(level - inner)).sum()
                for core in BOTH:
                    table = core.LawTable(*tables)
                    *found, error = core.loss_bins(table, *pair, x, loss, x, levels, 0.0, 0.0, 0.0)
                    assert error == 0.0
                    np.testing.assert_allclose(np.ravel(found), exact, rtol=1e-12)


@compares("graded_edges")
def compare_graded_edges(tables):
    generator = np.random.default_rng(79)
    for size in (1, 3, 60):
        lowest = generator.normal(size=size)
        highest = lowest + generator.uniform(0.0, 0.3, size)
        log_mass = generator.uniform(-60.0, 0.0, size)
        for step, tilt in ((1e-3, 5.0), (0.2, 1.0), (1e-4, 300.0)):
            arguments = (lowest, highest, log_mass, step, 0.37 * step, 1e-15, tilt, -1.0)
            ours, theirs = (core.graded_edges(*arguments) for core in BOTH)
            np.testing.assert_array_equal(ours, theirs)
            assert (np.diff(ours) > 0).all()
            assert np.diff(ours).max() <= 256
            nodes = 0.37 * step + ours * step
            assert nodes[0] <= lowest.min()
            assert nodes[-1] >= highest.max()
    # A lone part with all of the mass has every node; next to nothing has few.
    one = np.zeros(1), np.ones(1)
    assert native.graded_edges(*one, np.zeros(1), 1e-3, 0.0, 0.0, 1.0, 0.0).size == 1002
    assert native.graded_edges(*one, np.full(1, -99.0), 1e-3, 0.0, 0.0, 1.0, 0.0).size < 30
    for core in BOTH:
        with pytest.raises(ValueError, match="at least one part"):
            core.graded_edges(*(np.empty(0),) * 3, 1e-3, 0.0, 0.0, 1.0, 0.0)


@compares("log_mgf")
def compare_log_mgf(tables):
    generator = np.random.default_rng(80)
    for size in (1, 7, 128, 1000):
        mass, places = generator.uniform(size=size), generator.integers(-9000, 9000, size)
        mass[size // 2 :: 3] = 0.0
        mass[0] = 0.5
        for s in (-0.8, -1e-3, 0.0, 1e-12, 0.04, 10.0):
            ours, theirs = (core.log_mgf(mass, places, s) for core in BOTH)
            assert ours == pytest.approx(theirs, rel=1e-14, abs=1e-13)
        exact = np.log((mass * np.exp(0.01 * places)).sum())
        assert native.log_mgf(mass, places, 0.01) == pytest.approx(exact, rel=1e-13)
    for core in BOTH:
        assert core.log_mgf(np.zeros(3), np.arange(3), 1.0) == -np.inf
