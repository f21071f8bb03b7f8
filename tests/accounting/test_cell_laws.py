"""Accounting of laws in cells, of bounded laws and of infinite losses, against enumeration.

The oracles know the laws by their densities alone: they cut the line at the edges of both densities
themselves, and compose by enumerating outcomes.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from cell_oracles import cactus_pieces, integer_atoms, merged, staircase_atoms
from hypothesis import given, settings
from hypothesis import strategies as st

import psinoise as pn
from psinoise.accounting.compose.measures.dense import dense
from psinoise.accounting.estimate.renyi import renyi_delta
from psinoise.accounting.loss import cells
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.quadrature import nodes
from refusals import for_each, for_rows

SMALL = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=48, tail_ratio=0.5)
WIDE = pn.Cactus(mean_cost=4.0, cells_per_sensitivity=10, cells=200, tail_ratio=0.5)


def enumerated_delta(atoms, count: int, epsilon: float) -> float:
    """Delta of ``count`` uses, from all combinations of how often each loss occurs."""
    loss, mass, infinite = atoms
    total = 0.0
    for times in itertools.product(range(count + 1), repeat=loss.size):
        if sum(times) != count:
            continue
        sum_of_losses = float(np.dot(times, loss))
        if sum_of_losses > epsilon:
            directions = math.factorial(count) / math.prod(math.factorial(t) for t in times)
            weight = directions * math.prod(m**t for m, t in zip(mass, times, strict=True))
            total += weight * -math.expm1(epsilon - sum_of_losses)
    return total - math.expm1(count * math.log1p(-infinite))


@for_rows(
    (law, sensitivity, oracle, rate, count)
    for law, sensitivity, oracle in [
        (pn.Staircase(epsilon=1.0), 1.0, staircase_atoms),
        (pn.Staircase(epsilon=0.5), 2.0, staircase_atoms),
        (pn.DiscreteLaplace(scale=2.0), 2.0, integer_atoms),
        (pn.DiscreteLaplace(epsilon=1.0), 1.0, integer_atoms),
    ]
    for rate in [1.0, 0.3]
    for count in [1, 2, 5]
)
def test_delta_by_enumeration(law, sensitivity, oracle, rate, count):
    pieces = oracle(law, sensitivity)
    mechanism = pn.Mechanism(law, sensitivity)
    for epsilon in (0.0, 0.1, 0.3, 0.7, 1.5):
        exact = max(
            enumerated_delta(merged(*pieces, rate, direction), count, epsilon)
            for direction in ("remove", "add")
        )
        found = mechanism.delta(epsilon, count, rate)
        assert found.estimate == pytest.approx(exact, rel=1e-6, abs=1e-13)
        assert found.lower <= exact * (1.0 + 1e-11) + 1e-14
        assert found.upper >= exact * (1.0 - 1e-11) - 1e-14


@for_each([1e-9, 0.1, 0.5, 0.7])
def test_uniform_with_an_atom_is_private_at_its_delta_alone(delta):
    mechanism = pn.Mechanism(pn.UniformAtom(delta=delta))
    assert tuple(mechanism.epsilon(delta)) == (0.0, 0.0, 0.0)
    assert mechanism.epsilon(delta * 0.999).upper == math.inf
    assert mechanism.pure_epsilon() == math.inf
    assert mechanism.delta(0.0).upper == pytest.approx(delta, rel=1e-12)
    composed = -math.expm1(7 * math.log1p(-delta))
    assert mechanism.delta(3.0, 7).estimate == pytest.approx(composed, rel=1e-12)
    assert mechanism.delta(math.inf, 7).estimate == pytest.approx(composed, rel=1e-12)
    sampled = -math.expm1(7 * math.log1p(-0.25 * delta))
    assert mechanism.delta(3.0, 7, 0.25).upper == pytest.approx(sampled, rel=1e-9)
    with pytest.raises(pn.DomainError, match="finite losses"):
        mechanism.composed(7).clt.epsilon(delta)
    assert mechanism.composed(7).renyi.epsilon(delta) == math.inf


def test_a_larger_shift_than_the_law_was_made_for():
    law = pn.UniformAtom(delta=0.1)
    assert pn.Mechanism(law, 4.0).delta(0.0).upper == pytest.approx(0.4, rel=1e-12)
    assert pn.Mechanism(law, 1e6).delta(5.0).upper == 1.0
    assert pn.Mechanism(law, 1e6).delta(5.0, 3, 0.1).upper == pytest.approx(0.271, rel=1e-9)


def truncated_delta(law: pn.TruncatedLaplace, shift: float, epsilon: float) -> float:
    """One use: the density is above ``e^epsilon`` times the shifted one on an interval."""
    with mp.workdps(40):
        scale, end = mp.mpf(law.scale), mp.mpf(law.half_width)
        kept = 1 - mp.exp(-end / scale)

        def density(x):
            return mp.exp(-abs(x) / scale) / (2 * scale * kept) if abs(x) <= end else mp.mpf(0)

        # log p(x) / p(x - s) falls from s / scale at 0 to - s / scale at s.
        turn = (shift - epsilon * scale) / 2
        points = sorted({-end, shift - end, mp.mpf(0), turn, mp.mpf(shift), end})
        return mp.quad(
            lambda x: max(density(x) - mp.exp(epsilon) * density(x - shift), 0),
            [x for x in points if x <= end],
        )


@for_each([0.4, 1.0, 1.7])
def test_truncated_laplace_once(shift):
    law = pn.TruncatedLaplace(epsilon=1.0, delta=1e-4)
    mechanism = pn.Mechanism(law, shift)
    for epsilon in (0.0, 0.2, 0.37, 0.9):
        exact = float(truncated_delta(law, shift, epsilon))
        found = mechanism.delta(epsilon)
        assert found.estimate == pytest.approx(exact, rel=1e-12)
        assert found.lower <= exact * (1.0 + 1e-12)
        assert found.upper >= exact * (1.0 - 1e-12)


def test_truncated_laplace_meets_what_it_was_made_for():
    law = pn.TruncatedLaplace(epsilon=1.0, delta=1e-4)
    mechanism = pn.Mechanism(law)
    assert mechanism.delta(1.0).upper == pytest.approx(1e-4, rel=1e-12)
    assert mechanism.epsilon(1e-4).upper == pytest.approx(1.0, abs=1e-12)
    assert mechanism.epsilon(0.999e-4).upper == math.inf


def test_truncated_laplace_composes_like_its_parts():
    """Four uses, one of them at least with an infinite loss, or none: Laplace losses, scaled."""
    law = pn.TruncatedLaplace(epsilon=1.0, delta=1e-2)
    bounds = pn.Mechanism(law).delta(2.0, 4)
    infinite = 1.0 - 0.99**4
    grid = np.linspace(-law.half_width + 1.0, law.half_width, 400_001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    mass = np.diff(grid) * law.pdf(middle - 1.0)
    loss = (np.abs(middle) - np.abs(middle - 1.0)) / law.scale
    bins = np.rint((loss + 1.0) * 2000).astype(int)
    single = np.bincount(bins, weights=mass, minlength=4001)
    twice = np.convolve(single, single)
    four = np.convolve(twice, twice)
    total = np.arange(four.size) / 2000 - 4.0
    finite = float(four @ np.maximum(-np.expm1(2.0 - total), 0.0))
    assert bounds.lower <= bounds.estimate <= bounds.upper
    assert bounds.estimate == pytest.approx(infinite + finite, rel=1e-4)


# -- laws that are not unimodal --------------------------------------------------------------------


def hockey_stick(pieces, gamma: float) -> float:
    shifted, base = pieces
    return float(np.maximum(shifted - gamma * base, 0.0).sum())


@for_each([1.0, 0.73, 0.05])
def test_one_use_is_the_worst_over_a_fine_grid_of_shifts(sensitivity):
    """Shifts between the multiples of the cells are never worse, and some multiple is."""
    mechanism = pn.Mechanism(SMALL, sensitivity)
    shifts = np.concatenate([np.linspace(0.0, sensitivity, 97)[1:], np.arange(1, 7) / 6.0])
    pieces = [cactus_pieces(SMALL, a) for a in shifts[shifts <= sensitivity * (1 + 1e-12)]]
    winners = set()
    for epsilon in np.linspace(0.0, 4.0, 41):
        profiles = [hockey_stick(p, math.exp(epsilon)) for p in pieces]
        winners.add(int(np.argmax(profiles)))
        found = mechanism.delta(epsilon)
        assert found.upper >= max(profiles) * (1.0 - 1e-11)
        assert found.estimate == pytest.approx(max(profiles), rel=1e-9, abs=1e-14)
    if sensitivity == 1.0:
        assert len(winners) > 1, "a law for which one shift would do proves nothing"


def test_two_uses_lie_between_the_fixed_shifts_and_their_envelope():
    mechanism = pn.Mechanism(SMALL)
    log_mass, loss = mechanism.dominating(1.0, "add-remove")[0].atoms
    both, mass = np.add.outer(loss, loss), np.exp(np.add.outer(log_mass + loss, log_mass + loss))

    def enveloped(epsilon: float) -> float:
        return float((mass * np.maximum(-np.expm1(epsilon - both), 0.0)).sum())

    for epsilon in (0.5, 2.0, 4.0):
        fixed = 0.0
        for shift in np.arange(1, 7) / 6.0:
            shifted, base = cactus_pieces(SMALL, shift)
            p, q = np.outer(shifted, shifted), np.outer(base, base)
            fixed = max(fixed, float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()))
        found = mechanism.delta(epsilon, 2)
        assert found.lower >= fixed * (1.0 - 1e-4)
        assert found.upper <= enveloped(epsilon) * (1.0 + 1e-9)


def test_a_single_worst_shift_leaves_no_gap():
    """Where one shift dominates, both bounds are about the same pair."""
    found = pn.Mechanism(WIDE).epsilon(1e-5, 50)
    assert found.upper - found.lower < 2e-3 * found.upper
    assert found.upper - found.estimate <= 1e-4 * max(1.0, found.estimate)


def test_renyi_takes_the_supremum_over_shifts_order_by_order():
    pair, _ = pn.Mechanism(SMALL).dominating(1.0, "add-remove")
    assert isinstance(pair, CellPair)
    for epsilon in (30.0, 60.0, 100.0):
        found = renyi_delta(((pair, 30),), epsilon, ("remove",))
        best = math.inf
        for c in np.geomspace(0.02, 20.0, 400):
            values = []
            for shift in np.arange(1, 7) / 6.0:
                shifted, base = cactus_pieces(SMALL, shift)
                values.append(math.log(float(np.sum(shifted * (shifted / base) ** c))))
            bound = 30 * max(values) - c * epsilon - c * math.log1p(1.0 / c) - math.log1p(c)
            best = min(best, bound)
        assert found == pytest.approx(min(math.exp(best), 1.0), rel=1e-2)
        assert found >= min(math.exp(best), 1.0) * (1.0 - 1e-3)


def test_mutant_largest_shift_only(monkeypatch):
    # A law of its own: what others have asked of a pair is kept.
    law = pn.Cactus(1.0, 2.0, 0.26, 20, 160, 0.5)
    epsilons = np.linspace(0.5, 4.0, 15)
    honest = [pn.Mechanism(law).delta(epsilon).upper for epsilon in epsilons]
    monkeypatch.setattr(cells, "_worst", lambda law, s: (s,))
    caches = (nodes, dense)
    for cache in caches:
        cache.cache_clear()
    mutant = [pn.Mechanism(law).composed().delta(epsilon).upper for epsilon in epsilons]
    for cache in caches:
        cache.cache_clear()
    assert min(m / h for m, h in zip(mutant, honest, strict=True)) < 0.99


def test_mutant_infinite_mass_dropped(monkeypatch):
    mechanism = pn.Mechanism(pn.TruncatedLaplace(epsilon=1.0, delta=1e-2))
    assert mechanism.delta(5.0, 5).upper == pytest.approx(1.0 - 0.99**5, rel=1e-9)
    monkeypatch.setattr(Pair, "infinite", lambda pair, direction: 0.0)
    assert mechanism.composed(5).delta(5.0).upper == 0.0


# -- how it fits in --------------------------------------------------------------------------------


def test_steps_of_all_kinds_compose():
    gaussian, staircase = (
        pn.Mechanism(pn.Gaussian(std=2.0)),
        pn.Mechanism(pn.Staircase(epsilon=0.3)),
    )
    uniform = pn.Mechanism(pn.UniformAtom(delta=1e-7))
    accountant = pn.Accountant().compose(gaussian, 10, 0.1).compose(staircase, 3)
    without = accountant.estimate.delta(1.0)
    accountant.compose(uniform, 2)
    found = accountant.delta(1.0)
    # Losses of the third mechanism are 0 or infinite.
    infinite = 1.0 - (1.0 - 1e-7) ** 2
    expected = infinite + (1.0 - infinite) * without
    assert accountant.estimate.delta(1.0) == pytest.approx(expected, rel=1e-7)
    assert found.lower <= expected <= found.upper
    assert accountant.epsilon(infinite * 0.99).upper == math.inf
    assert accountant.epsilon(1e-3).upper >= accountant.epsilon(1e-3).estimate


@settings(max_examples=15, deadline=None)
@given(
    scale=st.floats(0.6, 8.0),
    rate=st.floats(0.02, 1.0),
    count=st.integers(1, 40),
    epsilon=st.floats(0.0, 2.0),
)
def test_monotone_in_everything(scale, rate, count, epsilon):
    def delta(scale, rate, count, epsilon):
        return pn.Mechanism(pn.DiscreteLaplace(scale=scale), 2.0).delta(epsilon, count, rate)

    here = delta(scale, rate, count, epsilon)
    assert here.lower <= here.estimate <= here.upper
    slack = 1e-9
    assert delta(1.3 * scale, rate, count, epsilon).lower <= here.upper + slack
    assert delta(scale, 0.7 * rate, count, epsilon).lower <= here.upper + slack
    assert delta(scale, rate, count + 3, epsilon).upper >= here.lower - slack
    assert delta(scale, rate, count, epsilon + 0.2).lower <= here.upper + slack


def test_replace_with_sampling_is_refused():
    mechanism = pn.Mechanism(pn.Staircase(epsilon=1.0), 2.0, contribution=1.0)
    assert mechanism.epsilon(1e-6, adjacency="replace").upper == pytest.approx(2.0)
    with pytest.raises(pn.DomainError, match="log-concave"):
        mechanism.epsilon(1e-6, 1, 0.5, "replace")


def test_whole_numbers_need_a_whole_sensitivity():
    with pytest.raises(pn.DomainError, match="whole number"):
        pn.Mechanism(pn.DiscreteLaplace(scale=1.0), 0.5).epsilon(1e-6)


def test_there_is_no_most_revealing_output():
    with pytest.raises(pn.DomainError, match="smooth density"):
        pn.Mechanism(SMALL).most_revealing_output()


@for_each([SMALL, pn.Staircase(epsilon=1.0), pn.DiscreteLaplace(scale=2.0)])
def test_pure_epsilon_is_the_largest_ratio(law):
    mechanism = pn.Mechanism(law)
    assert mechanism.delta(mechanism.pure_epsilon()).upper <= 1e-15
    assert mechanism.delta(mechanism.pure_epsilon() * 0.999).lower > 0.0


def test_dp_accounting_agrees_on_discrete_laplace():
    library = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    found = pn.Mechanism(pn.DiscreteLaplace(scale=2.0), 1.0).epsilon(1e-6, 100)
    theirs = [
        library.from_discrete_laplace_mechanism(
            0.5, 1, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic
        )
        .self_compose(100)
        .get_epsilon_for_delta(1e-6)
        for pessimistic in (False, True)
    ]
    assert theirs[0] - 1e-6 <= found.upper
    assert found.lower <= theirs[1] + 1e-6


@for_each([1e-3, 1e-7, 1e-11])
def test_a_delta_just_above_the_probability_of_an_infinite_loss(excess):
    """What is left of delta is a difference of nearly equal numbers; the bounds know it."""
    law = pn.TruncatedLaplace(epsilon=1.0, delta=1e-2)
    delta = 1e-2 * (1.0 + excess)
    found = pn.Mechanism(law).epsilon(delta)
    assert found.lower < found.upper <= 1.0
    # The profile itself falls through this delta between the ends; rounding of one ulp of 1.
    assert truncated_delta(law, 1.0, mp.mpf(found.lower) - 1e-15) >= delta
    assert found.upper == 1.0 or truncated_delta(law, 1.0, mp.mpf(found.upper) + 1e-15) <= delta
    assert found.width <= 1e-9


def far_shifts():
    """Laws, shifts whose loss is just where masses lose digits, and beyond."""
    for shift in (709, 712, 733, 740, 744, 745, 746, 1100, 1489):
        yield pn.DiscreteLaplace(scale=1.0), float(shift)
    yield pn.DiscreteLaplace(scale=2.5), 1861.0
    for epsilon, shift in ((355.0, 2.0), (372.0, 2.0), (240.0, 3.0), (247.5, 3.0), (700.0, 2.0)):
        yield pn.Staircase(epsilon=epsilon), shift
    for shift in (712.0, 740.0):
        yield pn.Mechanism(pn.DiscreteLaplace(scale=1.0), shift).on_lattice().noise, shift


@for_rows(far_shifts())
def test_masses_below_normal_numbers_keep_their_digits(law, shift):
    """Both laws of a pair have all of their mass. Kills: losses above 708 times masses that float64
    rounds to few digits."""
    log_mass, loss = CellPair(law, shift, 1.0).unsampled
    for logs in (log_mass, log_mass + loss):
        assert math.fsum(np.exp(logs)) == pytest.approx(1.0, abs=1e-12)


@for_each([709, 740, 744, 745, 1100], [1.0, 0.5, 1e-3], ["remove", "add"])
def test_discrete_laplace_noise_far_below_the_shift(shift, rate, adjacency):
    """Against 400 digits: what is beyond the shift, and geometric sums of what is before it."""
    mechanism = pn.Mechanism(pn.DiscreteLaplace(scale=1.0), shift)

    def unsampled(epsilon):
        if epsilon >= shift:
            return mp.mpf(0)
        fall, growth = mp.exp(-1), mp.exp(epsilon)
        count = min(int(mp.ceil((shift - epsilon) / 2)), shift) - 1
        near = (fall - fall ** (count + 1)) / (1 - fall)
        far = fall ** (shift - count) * (1 - fall**count) / (1 - fall)
        beyond = (1 - growth * fall**shift) / (1 - fall)
        return (beyond + near - growth * far) * (1 - fall) / (1 + fall)

    with mp.workdps(400):
        for epsilon in (0.0, 1.0, shift - 30.0, shift - 1.0):
            growth, q = mp.exp(mp.mpf(epsilon)), mp.mpf(rate)
            rest = 1 - (1 - q) * growth
            if adjacency == "remove":
                exact = q * unsampled(mp.log1p((growth - 1) / q))
            else:
                exact = rest * unsampled(mp.log(q * growth / rest)) if rest > 0 else 0
            found = mechanism.delta(epsilon, sampling_rate=rate, adjacency=adjacency)
            assert found.lower <= exact <= found.upper
            assert found.width <= 1e-7 * found.upper


def test_masses_of_several_shifts_that_float64_does_not_hold():
    """Kills: a mass that underflows taken for none: at 53 cells delta(731.7) was 0, where one shift
    has 2.8e-6, and at 54 cells the lower end of delta(748) 6.8e-6, above the largest loss."""
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=8, cells=24, tail_ratio=1e-6)
    largest = [pn.Mechanism(law, shift / 8.0).epsilon(0.0) for shift in (24, 48)]
    assert all(found.lower == found.upper or found.width <= 1e-9 * found for found in largest)
    assert largest == sorted(largest)
    for shift in (53, 64):
        mechanism = pn.Mechanism(law, shift / 8.0)
        for ask in (
            lambda m: m.epsilon(1e-6),
            lambda m: m.delta(731.7),
            lambda m: m.delta(1.0, 2),
            lambda m: m.composed(2, 0.5).profile([1.0]),
        ):
            with pytest.raises(pn.DomainError, match="that float64 holds"):
                ask(mechanism)
