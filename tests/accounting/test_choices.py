"""Several worst shifts, which neighbors choose as they go: against enumeration of all choices."""

from __future__ import annotations

import contextlib
import itertools
import math
import tracemalloc
from unittest import mock

import mpmath
import numpy as np
import pytest
from cell_oracles import cactus_pieces, integer_atoms, merged

import psinoise as pn
from psinoise._backend import core
from psinoise.accounting.compose import choose
from psinoise.accounting.compose.choices import composer
from psinoise.accounting.compose.choices.followed import Followed
from psinoise.accounting.compose.choices.induction import Grid as Points
from psinoise.accounting.compose.choices.induction import GridBound, Induction, Use, Values
from psinoise.accounting.compose.choices.late_choices import Target, with_one_shift
from psinoise.accounting.compose.choices.recursion import Losses, Recursion
from psinoise.accounting.compose.choices.waves import Frame, Grid, hinge
from psinoise.accounting.compose.measures.dense import atoms_source
from psinoise.accounting.compose.measures.measure import Measure
from psinoise.accounting.loss.envelope import undominated
from refusals import for_each, for_rows

TINY = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=18, tail_ratio=0.05)
WIDE = pn.Cactus(mean_cost=4.0, cells_per_sensitivity=6, cells=120, tail_ratio=0.7)
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
    """Mutants: chords in y, none beyond the last point, no merging there, a shift not looked at."""
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
        above = GridBound(Values(grid, values), 0.0, 0.0)
        for epsilon in (0.0, 0.1, 0.8, 1.7):
            exact = adaptive_delta(shifts, epsilon, count, other)
            over = math.exp(above.log_delta(epsilon)) - exact
            followed = Followed(grid, epsilon, exact)
            if other is not None:
                followed.once(use_of([other]).shifts[0][0])
            followed.choosing(pair, made.after)
            under = exact - math.exp(followed.bound(0.0, 0.0).log_delta(epsilon))
            # Rounding, and what a grid of so many uses is off by.
            assert -1e-13 <= over <= 2.0 * count * step**2
            assert -1e-13 <= under <= 2.0 * count * step**2


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
                below = math.exp(late.lower(epsilon, exact).log_delta(epsilon))
                assert below <= exact * (1.0 + 1e-12)
                assert above >= exact * (1.0 - 1e-12)
                gaps.append(above / exact - 1.0)
    assert min(gaps) <= 0.3


@pytest.mark.deep
@for_rows([(1.0, 1000, 0.01, 1e-6), (2.0, 2000, 0.01, 1e-30), (1.0, 200, 0.1, 1e-60)])
def test_many_uses_of_a_fine_cactus(mean_cost, count, rate, delta):
    """Rare large losses, which blocks are no good for: 1 % wide before.

    Of the last row epsilon is above the largest loss that is followed: 5e-4 wide before.
    """
    found = pn.Mechanism(pn.Cactus(mean_cost=mean_cost)).epsilon(delta, count, rate)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


@pytest.mark.deep
@for_rows(
    [(1.0, 10, 0.1, 1e-3), (0.25, 2, 0.01, 1e-3), (1.0, 60, 1e-3, 1e-6), (0.25, 20, 1.0, 1e-9)]
)
def test_few_uses_of_a_fine_cactus(mean_cost, count, rate, delta):
    """Two hundred cells a sensitivity, of which 60 to 90 shifts matter: up to 22 % wide before."""
    found = pn.Mechanism(pn.Cactus(mean_cost=mean_cost)).epsilon(delta, count, rate)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


def test_choices_matter():
    """Of ten sampled uses the best fixed shift is 2 % below, and the envelope as much above."""
    found = pn.Mechanism(pn.Cactus(mean_cost=0.25, cells_per_sensitivity=8, cells=80)).epsilon(
        1e-9, 10, 0.1
    )
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found


@for_each(
    [pn.promises.BoundedRange(1.0), pn.Mechanism(pn.DiscreteStable(alpha=1.5, scale=4.0), 1.0)]
)
def test_pairs_that_do_not_list_what_they_dominate(mechanism):
    """Of bounded range the pairs are a continuum; of blocks of whole numbers some are not seen."""
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
        kept = undominated(pieces, shifts)
        assert len(kept) == needed
        for rate, direction in ((1.0, "remove"), (0.2, "remove"), (0.2, "add")):
            losses = [merged(p, q, rate, direction)[:2] for p, q in pieces]
            for epsilon in (0.0, 0.3, 2.0):
                every = adaptive_delta(losses, epsilon, 2)
                some = adaptive_delta([losses[k] for k in kept], epsilon, 2)
                assert abs(some - every) <= 1e-12 * every


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


@for_rows((tilt, degree) for tilt in (0.01, 0.7, 30.0, 1e13, 1e17) for degree in (512, 4096))
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


def test_lattices_and_long_plans_where_products_end():
    """All products of losses of atoms are 2.6e-4 apart and more there."""
    lattice = pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice()
    found = lattice.epsilon(1e-8, 10**9)
    assert found.composer == "choices"
    assert found.width <= 1e-4 * found
    # Many uses: a normal loss, of the same mean and variance.
    exact = pn.Mechanism(pn.Laplace(scale=1.0)).epsilon(1e-8, 10**9)
    assert abs(found / exact - 1.0) <= 2e-4


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


def test_a_width_that_is_many_times_a_slope():
    """Mutant: an error from above is at most a tenth of delta, which takes all the work: 6 %."""
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=8, cells=80, tail_ratio=0.7)
    accountant = pn.Accountant(adjacency="replace").compose(pn.Mechanism(law), 10**9)
    found = accountant.epsilon(1e-30)
    assert found.width <= 1e-4 * found


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
            assert found.lower == found.upper
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
    losses, tilt, frame = Losses(tuple(each)), 0.5, Frame(0.5, 3.0, 512)
    log_scale = losses.cumulants(tilt)[0] + 1e-13
    symbols, error = losses.symbols(frame, log_scale, most)
    away = log_scale - losses.each(tilt)[1][0]
    moved = max(away - most, 0.0) / tilt
    for k in (0, 1, 100, 511):
        power = mpmath.mpc(tilt, 2 * mpmath.pi * k / 3)
        exact = sum(
            mpmath.mpf(m) * mpmath.exp(power * (mpmath.mpf(x) + moved) - mpmath.mpf(log_scale))
            for m, x in zip(mass.tolist(), far.tolist(), strict=True)
        )
        assert abs(complex(symbols[1, k]) - complex(exact)) <= error[k]
    assert len(losses.near(tilt, most).measures) == (2 if away <= most else 1)


@pytest.mark.deep
@for_rows([(5e13, 1e-8, 12.51), (1e14, 1e-8, 22.86)])
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
