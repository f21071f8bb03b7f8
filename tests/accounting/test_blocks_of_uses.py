"""Uses in blocks, by polynomials under a tilt: against use by use, mpmath, and far from where they
are sharp."""

from __future__ import annotations

import math
from unittest import mock

import mpmath
import numpy as np
import pytest

import psinoise as pn
from psinoise._backend import core
from psinoise.accounting.compose import choose
from psinoise.accounting.compose.choices.blocks import Steps, symbols
from psinoise.accounting.compose.choices.recursion import Recursion
from psinoise.accounting.compose.choices.waves import Frame, Grid, between, hinge
from psinoise.accounting.compose.measures.measure import Measure
from refusals import for_each, for_rows

TINY = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=18, tail_ratio=0.05)
SMALL = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=48, tail_ratio=0.5)


def test_what_a_grid_may_miss():
    """Mutants: nothing, or half of it, is missed between the points of a grid."""
    frame = Frame(0.5, 40.0, 32)
    generator = np.random.default_rng(7)
    coarse, fine = Grid(frame, 2), Grid(frame, 64)
    above = []
    for _ in range(50):
        waves = generator.normal(size=33) + 1j * generator.normal(size=33)
        waves *= np.arange(33) == generator.integers(1, 33)
        between = np.abs(waves) @ coarse.second
        above.append((fine.values(waves).max() - coarse.values(waves).max()) / between)
    assert 0.5 < max(above) <= 1.0


def test_what_a_polynomial_is_at_most_between_two_points():
    """Mutants: the second difference of the left end alone, half of it, no fourth derivative."""
    frame = Frame(0.5, 40.0, 32)
    generator = np.random.default_rng(8)
    tight = []
    for over in (2, 4):
        coarse, fine = Grid(frame, over), Grid(frame, 32 * over)
        for _ in range(200):
            waves = generator.normal(size=33) + 1j * generator.normal(size=33)
            waves *= np.exp(-generator.uniform(0.0, 0.3) * np.arange(33))
            if generator.uniform() < 0.5:
                waves *= np.arange(33) >= generator.integers(1, 33)
            waves[0] = waves[0].real
            values = coarse.values(waves)
            inside = fine.values(waves).reshape(-1, 32)
            highest = np.maximum(inside.max(axis=1), np.roll(inside[:, 0], -1))
            rows = np.tile(values, (values.size, 1))  # a row for each interval
            each = np.arange(values.size)
            bound = core.peaks_above(rows, 0.0 * values, 0.0 * rows, each, 1.0)
            bound += np.abs(waves) @ coarse.fourth
            assert (highest <= bound + 1e-12).all()
            ends = np.maximum(values, np.roll(values, -1))
            tight.append(((highest - ends) / (bound - ends)).max())
    assert max(tight) > 0.95


@for_rows((degree, parts) for degree, parts in ((1, 256), (5, 32), (40, 4), (300, 1)))
def test_long_waves_are_seen_at_every_so_many_points(degree, parts):
    """Between two of them by what both have. Mutants: the value of one side alone, twice as many
    parts."""
    frame = Frame(0.5, 40.0, 512)
    grid, fine = Grid(frame, 2), Grid(frame, 64)
    assert grid.parts(degree) == parts
    generator = np.random.default_rng(degree)
    tight = []
    for _ in range(50):
        rows = generator.normal(size=(3, degree + 1)) + 1j * generator.normal(size=(3, degree + 1))
        rows[:, 0] = rows[:, 0].real
        ends = between(grid.values(rows, np.ones(degree + 1, complex), parts))
        more = np.abs(rows) @ grid.second[: degree + 1] * parts**2
        for row, highest, beyond in zip(rows, ends, more, strict=True):
            inside = fine.values(row).reshape(highest.size, -1).max(axis=1)
            assert (inside <= highest + beyond + 1e-12).all()
            tight.append(((inside - highest) / beyond).max())
    assert max(tight) > (0.5 if degree == 1 else 0.0)


@for_rows((tilt, degree) for tilt in (0.01, 30.0, 1e17) for degree in (512, 4096))
def test_a_smooth_hinge(tilt, degree):
    """Mutants: from below the hinge is smoothed once, or not moved; waves are left out; their
    coefficients are differences, which are 0 at 1e17."""
    period = max(40.0 / tilt, 3.0 if tilt < 1e3 else 0.0)
    frame, over = Frame(tilt, period, degree), 64
    y = Grid(frame, over).spacing * np.arange(Grid(frame, over).points)
    images = np.arange(40)[:, None] * period
    exact = (np.exp(-tilt * (y + images)) * -np.expm1(-(y + images))).sum(axis=0)
    for side, sign in (("upper", 1.0), ("lower", -1.0)):
        waves, error = hinge(frame, side)
        over_exact = sign * (Grid(frame, over).values(waves) - exact)
        assert over_exact.min() >= -error
        assert error <= 1e-3 * exact.max()
        assert np.abs(over_exact).sum() <= 0.5 * exact.sum()


@for_rows((count, rate) for count in (100, 1000, 10**6) for rate in (1.0, 0.01))
def test_many_uses_of_one_shift_are_one_block(count, rate):
    """And are what all products are. Mutants: all products first, which take ten times as long;
    what one use adds has the rounding of a grid that is not needed, and many blocks are made."""
    mechanism = pn.Mechanism(pn.Airy(std=3.0)).on_lattice()
    with mock.patch.object(Recursion, "_block", side_effect=AssertionError("a block was made")):
        found = mechanism.epsilon(1e-6, count, rate)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found
    with mock.patch.object(choose, "_MANY_USES", math.inf):
        products = mechanism.composed(count, rate).epsilon(1e-6)
    assert products.composer == "direct"
    assert max(found.lower, products.lower) <= min(found.upper, products.upper)


@pytest.mark.deep
@for_rows(((10**8, 36833411.139, 0.02), (10**9, 368026336.06, 0.03), (10**11, 36789397756.7, 0.4)))
def test_deltas_of_very_many_uses(count, epsilon, width):
    """Rounding keeps all from the width that is asked for; products are 0.2 to 1 apart. Mutant: the
    errors of all uses count for what there is before them: 0.02, 0.09 and 1."""
    found = pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice().delta(epsilon, count)
    assert found.composer == "choices"
    assert found.width <= width * found


@for_rows([(1, 256, 10.0, 3.0), (300, 384, 50.0, 1.0), (200, 1024, 1e-3, 1e3)])
def test_transforms_of_free_nodes(nodes, degree, period, scale):
    """Against mpmath. Mutants: a normal law that is cut off three points earlier, or is narrower by
    a tenth; half as many points; a shift by one of them."""
    generator = np.random.default_rng(nodes)
    frame = Frame(1.0, period, degree)
    loss, weight = generator.normal(scale=scale, size=nodes), generator.uniform(size=nodes)
    found, error = frame.transformed(loss, weight)
    phases = 2.0**-52 * frame.waves * abs(loss).max()
    for k in (0, 1, degree // 2, degree - 1, degree):
        turn = mpmath.mpf(2 * k) / mpmath.mpf(period)
        pairs = zip(weight.tolist(), loss.tolist(), strict=True)
        exact = complex(mpmath.fsum(w * mpmath.expjpi(turn * x) for w, x in pairs))
        assert abs(found[k] - exact) <= (error[k] + phases[k]) * weight.sum()
    assert error.max() <= 1e-13


@for_rows(
    (side, uses, seed) for side in ("upper", "lower") for uses in (1, 2, 6, 40) for seed in range(4)
)
def test_every_use_of_a_block(side, uses, seed):
    """What all uses of a block add, one by one, against what the block says of them.

    Mutants: nothing bends, or half as much; it bends to the other side; of waves that change much
    nothing counts.
    """
    generator = np.random.default_rng(seed)
    frame, above = Frame(1.0, 40.0, 256), 1.0 if side == "upper" else -1.0
    losses = generator.normal(scale=(0.2, 1.0)[seed % 2], size=(3, 6))
    masses = generator.dirichlet(np.ones(6), size=3) * np.exp(-losses)
    log_scale = math.log((masses * np.exp(losses)).sum(axis=1).max())
    tilted = masses * np.exp(losses - log_scale)
    sums = [frame.transformed(*each)[0] for each in zip(losses, tilted, strict=True)]
    start, _ = hinge(frame, side)
    tight = []
    for smooth in (0.3, 5.0):
        made = Recursion(side, frame, np.array(sums), np.zeros(257), start, 0.0, 8, 0.0)
        c = made.coefficients = start * np.exp(-0.5 * (smooth * frame.waves) ** 2)
        reference = made.symbols[np.argmax(made.symbols[:, 0].real)]
        (after, _, turn), error, _ = made._block(uses, 1e-9)
        # What was added at first is what is left at the end.
        powers, once, rising = made._sums(uses)
        first = (after - powers * c - rising * turn) / once
        bend, missed = made._bend(uses, 1e-9, c, first, first + uses * turn, powers)
        bend = np.repeat(bend, made._grid.points // bend.shape[1], axis=1)
        grid, same = Grid(frame, 8), made._grid
        ends = [same.values(made._differences * part) for part in (c, after)]
        for use in range(uses):
            others = grid.values((made.symbols - reference) * c).max(axis=0)
            failed = above * (others - grid.values(first + use * turn))
            assert failed.max() <= error / uses + 1e-13
            chord = ends[0] + use / uses * (ends[1] - ends[0])
            bent = above * (same.values(made._differences * c) - chord)
            assert (bent <= bend + missed + 1e-13).all()
            tight.append((bent / (bend + missed + 1e-13)).max())
            c = reference * c + first + use * turn
        assert c == pytest.approx(after, abs=1e-12)
    assert max(tight) >= {1: 0.0, 2: 0.5, 6: 0.3, 40: 0.25}[uses]


@for_rows((side, uses) for side in ("upper", "lower") for uses in (4, 6, 10))
def test_what_moves_in_a_block(side, uses):
    """A smooth hill that moves by most of its width. Mutants: it bends as at the start alone, or
    between start and end not at all."""
    frame, above = Frame(1.0, 400.0, 256), 1.0 if side == "upper" else -1.0
    waves = frame.waves
    symbols = np.exp(np.multiply.outer([1.0, 0.8], 1j * waves) - np.array([[0.0], [0.002]]))
    hill = np.exp(-0.5 * (10.0 * waves) ** 2 + 200j * waves) / 40.0
    made = Recursion(side, frame, symbols, np.zeros(257), hill, 0.0, 8, 0.0)
    none = np.zeros_like(hill)
    bend, missed = made._bend(uses, 1e-12, hill, none, none, symbols[0] ** uses)
    bend = np.repeat(bend, made._grid.points // bend.shape[1], axis=1)
    each = [
        made._grid.values(made._differences * hill * symbols[0] ** use) for use in range(uses + 1)
    ]
    for use in range(uses):
        bent = above * (each[use] - each[0] - use / uses * (each[-1] - each[0]))
        assert (bent <= bend + missed + 1e-15).all()


@pytest.mark.deep
def test_few_large_losses_of_many_uses():
    """A delta that three or four large losses of rare samples decide: under the tilt at the saddle
    a period is seven times as long. Was 4.8e-4 wide at 1e-13. Kills: that tilt alone."""
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=20, cells=200, tail_ratio=0.5)
    accountant = pn.Accountant().compose(pn.Mechanism(law), 1000, 0.01)
    for delta in (1e-10, 1e-13):
        found = accountant.epsilon(delta)
        assert found.composer == "choices"
        assert found.upper <= found.lower * (1.0 + 1.01e-4)


@for_each([-5.0, -300.0, -1000.0, -3000.0], [0.4, 50.0])
def test_shifts_that_are_far_behind(behind, most):
    """Against mpmath, of losses that are moved up too. Kills: an error that knows of the masses
    under the tilt of the largest alone; exponentials that overflow, or weights that underflow."""
    near, far = np.array([-0.01, 0.0123]), behind + np.array([-0.0123, 0.623])
    mass = np.array([0.4, 0.6])
    each = (Measure("upper", loss, loss, mass, 0.0, 0.0, 0.0) for loss in (near, far))
    steps, tilt, frame = Steps(tuple(each), (), (1,)), 0.5, Frame(0.5, 3.0, 512)
    logs, log_scale = steps.moments(tilt)[:, 0], steps.cumulants(tilt)[0] + 1e-13
    found, error = symbols("upper", frame, steps.shifts, logs, log_scale, most)
    away = log_scale - logs[1]
    moved = max(away - most, 0.0) / tilt
    for k in (0, 1, 100, 511):
        power = mpmath.mpc(tilt, 2 * mpmath.pi * k / 3)
        exact = sum(
            mpmath.mpf(m) * mpmath.exp(power * (mpmath.mpf(x) + moved) - mpmath.mpf(log_scale))
            for m, x in zip(mass.tolist(), far.tolist(), strict=True)
        )
        assert abs(complex(found[1, k]) - complex(exact)) <= error[k]
    kept, _ = symbols("lower", frame, steps.shifts, logs, log_scale, most)
    assert len(kept) == (2 if away <= most else 1)


def test_nothing_is_moved_up_from_below():
    """Where a shift may be less far behind than the scale is rounded up by, as of 1e15 uses."""
    loss, mass, frame = np.array([-0.01, 0.0123]), np.array([0.4, 0.6]), Frame(0.5, 3.0, 512)
    measure = Measure("lower", loss, loss, mass, 0.0, 0.0, 0.0)
    logs = Steps((measure,), (), (1,)).moments(0.5)[:, 0]
    (found,), error = symbols("lower", frame, [measure], logs, float(logs[0]) + 1e-3, 1e-4)
    exact = float(mass @ np.exp(0.5 * loss)) * math.exp(-float(logs[0]) - 1e-3)
    assert abs(float(found[0].real) - exact) <= error[0]


@pytest.mark.deep
@for_rows([(5e13, 1e-8, 12.51)])
def test_where_blocks_say_nothing(count, rate, most):
    """What all products say of so many uses stays. Was the largest loss of all, 499,999."""
    accountant = pn.Accountant("add").compose(pn.Mechanism(TINY), int(count), rate)
    assert accountant.epsilon(1e-6).upper <= most


@pytest.mark.deep
def test_a_first_look_from_far_off():
    """Where the fixed shift says an epsilon that is 4 % off, bounds of many times the error that is
    allowed say where to look. Kills: none of these."""
    found = pn.Accountant("add").compose(pn.Mechanism(SMALL), 67, 0.001).epsilon(1e-30)
    assert found.composer == "choices"
    assert found.upper <= found.lower * (1.0 + 1.01e-4)


@pytest.mark.deep
def test_waves_that_are_too_long_for_a_hinge():
    """Kills: a hinge that overflows where a period has no waves as short as it needs."""
    other = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=8, cells=80, tail_ratio=0.7)
    steps = (pn.Staircase(epsilon=0.3), 22, 0.5), (SMALL, 42473296649, 0.5), (other, 2, 1.0)
    accountant = pn.Accountant()
    for law, count, rate in steps:
        accountant.compose(pn.Mechanism(law), count, rate)
    with np.errstate(over="raise", invalid="raise"):
        found = accountant.delta(10.0)
    assert found.upper == 1.0
    assert found.lower > 0.9999
