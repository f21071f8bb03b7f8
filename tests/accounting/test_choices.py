"""Several worst shifts, which neighbors choose as they go: against enumeration of all choices."""

from __future__ import annotations

import contextlib
import itertools
import math
import tracemalloc
import warnings
from unittest import mock

import numpy as np
import pytest
from cell_oracles import cactus_pieces, integer_atoms, merged
from scipy import stats

import psinoise as pn
from psinoise.accounting.compose.choices import composer, late_choices
from psinoise.accounting.compose.choices.induction import Attained, AttainedBound, Induction, Use
from psinoise.accounting.compose.choices.induction import Grid as Points
from psinoise.accounting.compose.choices.late_choices import GridBound, Target, with_one_shift
from psinoise.accounting.compose.measures.dense import atoms_source
from psinoise.accounting.compose.measures.measure import Measure
from psinoise.accounting.loss.envelope import Curve, undominated
from refusals import for_rows

TINY = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=18, tail_ratio=0.05)
WIDE = pn.Cactus(mean_cost=4.0, cells_per_sensitivity=6, cells=120, tail_ratio=0.7)
LARGE = pn.Cactus(mean_cost=0.1, cells_per_sensitivity=6, cells=18, tail_ratio=0.01)
SMALL = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=48, tail_ratio=0.5)


def adaptive_delta(pieces, epsilon: float, count: int, before=None) -> float:
    """Delta for neighbors who choose each shift by the losses so far, by trying them all.

    They may have seen the loss of another step ``before``.
    """

    def best(losses: np.ndarray, left: int) -> np.ndarray:
        if left == 0:
            return np.maximum(-np.expm1(epsilon - losses), 0.0)
        following = [
            best((losses[:, None] + loss).ravel(), left - 1).reshape(losses.size, -1) @ mass
            for loss, mass in pieces
        ]
        return np.max(following, axis=0)

    loss, mass = (np.zeros(1), np.ones(1)) if before is None else before
    return float(mass @ best(loss, count))


def in_blocks() -> contextlib.AbstractContextManager[object]:
    """Few uses in blocks, as many are."""
    return mock.patch.object(composer, "induced_bounds", lambda *_: iter(()))


def in_no_blocks() -> contextlib.AbstractContextManager[object]:
    return mock.patch.object(composer.Choices, "_in_blocks", lambda *_: iter(()))


@for_rows(
    [
        (1.0, "remove", 0, False),
        (0.1, "remove", 1, False),
        (0.1, "add", 0, False),
        (1.0, "remove", 1, True),
        (0.1, "add", 0, True),
    ]
)
def test_shifts_that_are_chosen_as_neighbors_go(rate, direction, others, blocks):
    """Mutants: one fixed shift from below; the envelope, or the other step last, from above."""
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=3, cells=12, tail_ratio=0.02)
    mechanism, other = pn.Mechanism(law), pn.Mechanism(pn.DiscreteLaplace(epsilon=0.7))
    shifts = [cactus_pieces(law, shift) for shift in np.arange(1, 4) / 3.0]
    losses = [merged(shifted, base, rate, direction)[:2] for shifted, base in shifts]
    before = merged(*integer_atoms(other.noise, 1), 1.0, direction)[:2] if others else None
    top = mechanism.dominating(rate, "add-remove")[0].largest_loss(direction)
    for count in (2, 3):
        accountant = pn.Accountant(direction).compose(mechanism, count, rate).compose(other, others)
        for share in (0.0, 0.9) if count == 3 else (0.2,):
            epsilon = share * (count * top + 0.7 * others)
            exact = adaptive_delta(losses, epsilon, count, before)
            with in_blocks() if blocks else contextlib.nullcontext():
                found = accountant.delta(epsilon)
            assert found.lower * (1.0 - 1e-9) <= exact <= found.upper * (1.0 + 1e-9)
            assert found.upper <= found.lower * (1.0 + 1e-2)


def use_of(losses) -> Use:
    """One use of shifts with these losses and masses, known exactly."""
    each = [(loss[order], mass[order]) for loss, mass in losses for order in [loss.argsort()]]
    sides = ("lower", "upper")
    return Use(
        tuple(
            tuple(Measure(side, loss, loss, mass, 0.0, 0.0, 0.0) for side in sides)
            for loss, mass in each
        )
    )


@pytest.mark.deep
@for_rows(
    (step, rate, direction)
    for step in (0.7, 0.04)
    for rate, direction in ((1.0, "remove"), (0.3, "remove"), (0.3, "add"))
)
def test_induction_on_any_grid(step, rate, direction):
    """Mutants: chords in y, none beyond the last point, no test there, a shift not looked at."""
    shifts = [
        merged(*cactus_pieces(TINY, shift), rate, direction)[:2] for shift in np.arange(1, 7) / 6.0
    ]
    before = merged(*integer_atoms(pn.DiscreteLaplace(epsilon=0.7), 1), rate, direction)[:2]

    for count, other in ((1, None), (3, None), (2, before)):
        pair = use_of(shifts)
        grid = Points.of(step, 2.0, 4.0, count * 2.0)
        made = Induction(pair, grid)
        for _ in range(count):
            made.advance()
        values = made.values
        if other is not None:
            last = Induction(use_of([other]), grid, values)
            last.advance()
            values = last.values
        above, tests = GridBound(grid, values, 0.0, 0.0), Attained(grid)
        tests.advance(pair, made.choices)
        if other is not None:
            tests.advance(use_of([other]), [np.zeros(grid.points, dtype=np.int16)])
        below = AttainedBound(grid, tests.under_p, tests.under_q, 0.0, 0.0)
        for epsilon in (0.0, 0.1, 0.8, 1.7):
            exact = adaptive_delta(shifts, epsilon, count, other)
            over = math.exp(above.log_delta(epsilon)) - exact
            under = exact - math.exp(below.log_delta(epsilon))
            # Rounding, and what a grid of so many uses is off by.
            assert -1e-13 <= over <= 2.0 * count * step**2
            assert -1e-13 <= under <= 2.0 * count * step**2


def test_tests_where_rare_large_losses_decide():
    """Mutant: beyond the grid the test of its last point is held: .2 % too low."""
    law = pn.Cactus(
        mean_cost=0.06135039192522627, cells_per_sensitivity=4, cells=12, tail_ratio=2.5352446e-5
    )
    found = pn.Mechanism(law).delta(18.61409549156558, 2)
    assert found.upper <= found.lower * (1.0 + 1e-4)


def test_tests_far_beyond_the_grid():
    """Mutants: a cut exponent, or no room for what underflows (1,900 times the truth)."""
    loss = np.array([800.0, math.log1p(-1e-3)])
    grid = Points.of(0.01, 1.0, 1.0, 1.0)
    tests = Attained(grid)
    tests.advance(
        use_of([(loss, np.array([1e-3, 1.0 - 1e-3]))]), [np.zeros(grid.points, dtype=np.int16)] * 2
    )
    below = AttainedBound(grid, tests.under_p, tests.under_q, 0.0, 0.0)
    for epsilon in (0.0, 1.0, 500.0, 790.0, 900.0, 1200.0, 1e300):
        sums = np.array([1600.0, 800.0 + loss[1]])
        gain = -np.expm1(-np.maximum(sums - epsilon, 0.0))
        assert math.exp(below.log_delta(epsilon)) <= (1e-6 * gain[0] + 2e-3 * gain[1]) * 1.0001


CACTUS = {"cost": 1.0, "mean_cost": 0.5, "cells_per_sensitivity": 20, "cells": 160}


def test_estimates_of_many_uses_are_those_of_the_envelope():
    composed = pn.Mechanism(pn.Cactus(**CACTUS, tail_ratio=0.35)).composed(100, 0.1)
    estimate, certified = composed.estimate.epsilon(1e-6), composed.epsilon(1e-6)
    assert certified.upper < estimate <= 1.09 * certified.upper


@for_rows(
    [
        (pn.Mechanism(pn.Cactus(**CACTUS, tail_ratio=0.35)), 10, 1.0, 1e-6),
        (pn.promises.BoundedRange(1.0), 3, 0.01, 1e-4),
    ]
)
def test_estimates_of_few_uses_lie_between_bounds(step, count, rate, delta):
    """Kills: a point between one fixed shift and the envelope, 16 % below what is certain."""
    composed = pn.Accountant().compose(step, count, rate)
    certified, estimate = composed.epsilon(delta), composed.estimate.epsilon(delta)
    assert certified.lower <= estimate <= certified.upper
    profile = composed.estimate.delta(certified.estimate)
    assert profile == pytest.approx(delta, rel=1e-3)


def test_losses_between_the_points_of_a_grid():
    """Mutant: always the test of the nearest point, .4 of a step away in each of 200 uses."""
    step, count = 0.01, 200
    loss = step * np.array([10.4, -2.6])
    high = math.expm1(-loss[1]) / (math.exp(-loss[1]) - math.exp(-loss[0]))
    grid = Points.of(step, 3.0, 2.0, 3.0)
    tests, none = Attained(grid), np.zeros(grid.points, dtype=np.int16)
    tests.advance(use_of([(loss, np.array([high, 1.0 - high]))]), [none] * count)
    below, often = AttainedBound(grid, tests.under_p, tests.under_q, 0.0, 0.0), np.arange(count + 1)
    sums = loss[0] * often + loss[1] * (count - often)
    chance = stats.binom.pmf(often, count, high)
    for epsilon in (0.0, 0.5, 1.03, 3.0):
        exact = float(chance @ -np.expm1(-np.maximum(sums - epsilon, 0.0)))
        found = math.exp(below.log_delta(epsilon))
        assert 0.95 * exact <= found <= exact * (1.0 + 1e-12)


@pytest.mark.deep
@for_rows(
    (few, rate, direction, other)
    for few, rate, direction in ((1, 1.0, "remove"), (1, 0.3, "add"), (2, 0.3, "remove"))
    for other in (False, True)
)
def test_choices_in_the_last_uses_alone(few, rate, direction, other):
    """Mutants: what choices before could add is left out, or what of it is no share of delta."""
    shifts = [
        merged(*cactus_pieces(TINY, shift), rate, direction)[:2] for shift in np.arange(1, 7) / 6.0
    ]
    before = merged(*integer_atoms(pn.DiscreteLaplace(epsilon=0.7), 1), rate, direction)[:2]
    others = [((atoms_source(np.log(before[1]), before[0]),) * 2, 1)] if other else []
    count, gaps = 3, []
    for epsilon in (0.1, 0.8, 1.7):
        exact = adaptive_delta(shifts, epsilon, count, before if other else None)
        if exact == 0.0:
            continue
        # A part of the width is what choices before may add, whatever shift they take.
        for width in (1e-3, 1.0, 30.0):
            target = Target(epsilon, exact, 1.0, width)
            made = Induction(use_of(shifts), Points.of(1e-2, epsilon, 1.0, 4.0))
            for _ in range(few):
                made.advance()
            late = with_one_shift(made, count, others, target)
            if late is not None:
                above = math.exp(late.upper().log_delta(epsilon))
                below = math.exp(late.lower().log_delta(epsilon))
                assert below <= exact * (1.0 + 1e-12)
                assert above >= exact * (1.0 - 1e-12)
                gaps.append(above / exact - 1.0)
    assert min(gaps) <= 0.3


@for_rows([(20, 0.1, 1e-7), (40, 0.03, 1e-9)])
def test_wide_bounds_of_many_uses(count, rate, delta):
    """On a coarse grid, of few groups of shifts: they hold what finer ones hold, and are near."""
    accountant = pn.Accountant("remove").compose(pn.Mechanism(SMALL), count, rate)
    sharp = accountant.epsilon(delta)
    assert sharp.width <= 1e-4 * sharp
    few = mock.patch.multiple(late_choices, _MOST_CHOSEN=1, _MOST_FEW=1, _WIDE_SUMS=1e6)
    with few, mock.patch.object(composer, "_FEW_GROUPS", 3), in_no_blocks():
        wide = pn.Accountant("remove").compose(pn.Mechanism(SMALL), count, rate).epsilon(delta)
    assert wide.composer == "choices"
    assert 2e-4 * sharp < wide.width <= 0.03 * sharp
    assert wide.lower <= sharp.upper
    assert sharp.lower <= wide.upper


def test_choices_matter():
    """Of ten sampled uses the best fixed shift is 2 % below, and the envelope as much above."""
    found = pn.Mechanism(pn.Cactus(mean_cost=0.25, cells_per_sensitivity=8, cells=80)).epsilon(
        1e-9, 10, 0.1
    )
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


def test_pairs_that_do_not_list_what_they_dominate() -> None:
    """Of blocks of whole numbers some are not seen."""
    mechanism = pn.Mechanism(pn.DiscreteStable(alpha=1.5, scale=4.0), 1.0)
    pair, _ = mechanism.dominating(1.0, "add-remove")
    assert pair.several
    assert pn.Accountant().compose(mechanism, 50).epsilon(1e-6).composer != "choices"


def split(loss: np.ndarray, mass: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Losses on multiples of a step, with mass and ``E[e^{-L}]`` kept: a pair that dominates."""
    low = np.floor(loss / step)
    share = np.expm1(low * step - loss) / np.expm1(-step)
    index = np.concatenate([low, low + 1.0]).astype(int)
    masses = np.concatenate([mass * (1.0 - share), mass * share])
    start = index.min()
    return start, np.bincount(index - start, masses)


@pytest.mark.deep
@for_rows(
    [
        (20, 0.1, "remove", False),
        (10, 0.1, "add", False),
        (40, 1.0, "remove", False),
        (20, 0.1, "remove", True),
        (40, 1.0, "remove", True),
    ]
)
def test_against_all_sums_on_a_fine_lattice(count, rate, direction, blocks):
    """Every choice after every sum, on a lattice: an independent upper bound that is close."""
    mechanism, step = pn.Mechanism(SMALL), {0.1: 2e-3, 1.0: 1e-2}[rate]
    shifts = [cactus_pieces(SMALL, shift) for shift in np.arange(1, 7) / 6.0]
    losses = [split(*merged(p, q, rate, direction)[:2], step) for p, q in shifts]
    with in_blocks() if blocks else contextlib.nullcontext():
        found = pn.Accountant(direction).compose(mechanism, count, rate).epsilon(1e-7)
    assert found.composer == "choices"
    assert found.width <= (2e-3 if blocks else 1e-4) * found
    reach = max(abs(start) + mass.size for start, mass in losses)
    places = np.arange(-count * reach, count * reach + 1)
    values = -np.expm1(-np.maximum(places * step, 0.0))
    for _ in range(count):
        ahead = []
        for start, mass in losses:
            # The mean of the values from each place on; beyond the ends they are 0 and 1.
            whole = np.concatenate([np.zeros(reach), values, np.ones(reach)])
            first = reach + start
            mean = np.convolve(whole, mass[::-1], mode="full")[mass.size - 1 :]
            ahead.append(mean[first : first + values.size])
        values = np.max(ahead, axis=0)
    above = -float(np.interp(1e-7, values, step * places))
    assert found.lower <= above + step
    assert above <= found.upper * (1.0 + 2e-4) + step


def test_shifts_that_are_never_a_better_choice():
    """Mutants: a shift is left out if its profile is below the envelope of the others."""
    for law, needed in ((TINY, 4), (WIDE, 1)):
        shifts = np.arange(1, 7) / 6.0
        pieces = [cactus_pieces(law, shift) for shift in shifts]
        kept = undominated([Curve.of(*pair) for pair in pieces], shifts)
        assert len(kept) == needed
        for rate, direction in ((1.0, "remove"), (0.2, "remove"), (0.2, "add")):
            losses = [merged(p, q, rate, direction)[:2] for p, q in pieces]
            for epsilon in (0.0, 0.3, 2.0):
                every = adaptive_delta(losses, epsilon, 2)
                some = adaptive_delta([losses[k] for k in kept], epsilon, 2)
                assert abs(some - every) <= 1e-12 * every


def test_lattices_and_long_plans_where_products_end():
    """All products of losses of atoms are 2.6e-4 apart and more there."""
    lattice = pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice()
    found = lattice.epsilon(1e-8, 10**9)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found
    # Many uses: a normal loss, of the same mean and variance.
    exact = pn.Mechanism(pn.Laplace(scale=1.0)).epsilon(1e-8, 10**9)
    assert abs(found / exact - 1.0) <= 2e-4


def test_rare_large_losses():
    """Mutant: the tilt of the saddle alone, whose period is four times as long: 4 % apart."""
    law = pn.Cactus(cost=1.0, cells_per_sensitivity=20, cells=160, tail_ratio=0.35, mean_cost=0.5)
    found = pn.Mechanism(law).epsilon(1e-3, 10**4, 0.01)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


@pytest.mark.deep
def test_tiny_epsilons_of_large_losses_take_no_memory():
    """Losses of 10 on a grid of 1e-8 of it: nine gigabytes before."""
    law = pn.Cactus(cost=1.0, cells_per_sensitivity=20, cells=160, tail_ratio=0.35, mean_cost=0.5)
    tracemalloc.start()
    try:
        found = pn.Mechanism(law).epsilon(1e-8, 1000, 1e-8)
        assert tracemalloc.get_traced_memory()[1] < 300 * 2**20
    finally:
        tracemalloc.stop()
    assert 0.0 < found.lower < found.upper < 1.3 * found.lower


def test_many_uses_of_cactus_noise():
    """One fixed shift, and the envelope of all, are 6 % apart for any number of uses."""
    mechanism = pn.Mechanism(SMALL)
    for count in (10**3, 10**4, 10**6, 10**9):
        found = mechanism.epsilon(1e-12, count)
        assert found.composer == "choices"
        assert found.width <= 1e-4 * found
        # The first term of its expansion for many uses, with the worst moments.
        pair, _ = mechanism.dominating(1.0, "add-remove")
        moments = min(
            (count * max(pn_pair.log_transform("remove", c) for pn_pair in fixed(pair)) + 27.7) / c
            for c in np.geomspace(1e-6, 10.0, 300)
        )
        assert found.lower <= moments
        assert found.upper >= count * max(pn_pair.moment("remove", 0.0) for pn_pair in fixed(pair))


def fixed(pair) -> list:
    """Each of the shifts alone."""
    return [below for below, _ in pair.groups("remove", 1.0, 1000)]


class TwoShifts:
    """One shift leaves more to infinite losses, the other one has the larger finite loss."""

    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]:
        return (0.5 * sensitivity, sensitivity)

    def pieces(self, shift: float) -> tuple[np.ndarray, np.ndarray]:
        if shift == 0.5:
            return np.array([0.1, 0.6, 0.3, 0.0]), np.array([0.0, 0.5, 0.4, 0.1])
        return np.array([0.05, 0.4, 0.55, 0.0]), np.array([0.0, 0.1, 0.85, 0.05])


def test_the_largest_loss_of_an_envelope_is_attained_once():
    """Kills: a lower bound from the envelope, which lets each use choose its shift by outcome."""
    mechanism = pn.Mechanism(TwoShifts())
    for count in (1, 2, 3):
        found = mechanism.epsilon(1.0 - 0.9**count, count)
        assert found.lower <= found.upper
        assert found.upper >= count * math.log(1.2)
        if count == 1:
            assert found.lower >= found.upper * (1.0 - 1e-12)
            continue
        # Largest over all choices of a shift for each use, by enumeration of outcomes.
        best = 0.0
        for shifts in itertools.combinations_with_replacement((0.5, 1.0), count):
            shifted, base = np.ones(1), np.ones(1)
            for shift in shifts:
                p, q = mechanism.noise.pieces(shift)
                shifted, base = np.outer(shifted, p).ravel(), np.outer(base, q).ravel()
            epsilons = np.linspace(0.0, 5.0, 5001)
            deltas = np.maximum(shifted - np.exp(epsilons)[:, None] * base, 0.0).sum(axis=1)
            best = max(best, float(epsilons[deltas > 1.0 - 0.9**count + 1e-12].max(initial=0.0)))
        assert found.lower <= best + 1e-3 <= found.upper + 2e-3


def test_shifts_with_infinite_losses_of_their_own():
    """Mutant: finite losses of one shift beside the infinite ones of another, which contradict."""
    mechanism = pn.Mechanism(TwoShifts())

    def largest(epsilon: float, count: int, ratio: float = 1.0) -> float:
        if count == 0:
            return max(1.0 - math.exp(epsilon) * ratio, 0.0)
        pairs = [zip(*mechanism.noise.pieces(shift), strict=True) for shift in (0.5, 1.0)]
        return max(
            sum(p * largest(epsilon, count - 1, ratio * q / p) for p, q in pair if p > 0.0)
            for pair in pairs
        )

    for count in (1, 2, 3):
        for epsilon in (0.0, 0.1, 0.5, 0.8, 1.2, 1.38, 2.0, 2.7, 3.5):
            found = mechanism.delta(epsilon, count)
            exact = largest(epsilon, count)
            assert found.lower * (1.0 - 1e-12) <= exact <= found.upper * (1.0 + 1e-12)


def test_epsilons_beyond_the_largest_exponent():
    """Tests are followed where ``e^-y`` is no number, and probabilities of a yes are 0."""
    with in_no_blocks(), warnings.catch_warnings():
        warnings.simplefilter("error")
        induced = pn.Mechanism(LARGE).epsilon(1e-6, 200)
    found = pn.Mechanism(LARGE).epsilon(1e-6, 200)
    assert induced.width <= 1e-3 * induced
    assert max(found.lower, induced.lower) <= min(found.upper, induced.upper)
