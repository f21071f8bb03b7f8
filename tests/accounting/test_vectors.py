"""Queries with many coordinates: which one-dimensional mechanism they amount to."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import subsampled_delta

import psinoise as pn
from psinoise import Laplace, Mechanism  # noqa: F401  names that repr evaluates in
from psinoise.accounting.compose.schemes.one_coin import SampledVector
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.question import Question
from refusals import for_each, for_rows

LAWS = [pn.Gaussian, pn.Airy, pn.Laplace]


@for_rows([(0.1, "add-remove"), (1.0, "add-remove"), (1.0, "replace")])
def test_gaussian_is_rotation_invariant(rate, adjacency):
    def epsilon(sensitivity, **vector):
        mechanism = pn.Mechanism(pn.Gaussian(std=2.0), sensitivity, **vector)
        return mechanism.composed(30, rate, adjacency).estimate.epsilon(1e-6)

    assert epsilon(1.5, dimension=100, norm="l2") == epsilon(1.5)
    assert epsilon(1.5, dimension=100, norm="l1") == epsilon(1.5)
    assert epsilon(0.15, dimension=100, norm="linf") == pytest.approx(epsilon(1.5), rel=1e-12)


def test_gaussian_coordinates_compose():
    vector = pn.Mechanism(pn.Gaussian(std=2.0), dimension=9)
    scalar = pn.Mechanism(pn.Gaussian(std=2.0))
    assert vector.composed(2).estimate.epsilon(1e-6) == pytest.approx(
        scalar.composed(18).estimate.epsilon(1e-6), rel=1e-11
    )


@for_each(LAWS)
def test_one_dimension_is_no_vector(law):
    for norm in ("linf", "l1", "l2"):
        mechanism = pn.Mechanism(law(mean_abs=2.0), dimension=1, norm=norm)
        assert mechanism.composed(5, 0.2).estimate.epsilon(1e-6) == pn.Mechanism(
            law(mean_abs=2.0)
        ).composed(5, 0.2).estimate.epsilon(1e-6)


@for_each([pn.Airy, pn.Laplace])
def test_coordinates_of_other_laws_compose(law):
    vector = pn.Mechanism(law(mean_abs=2.0), 0.5, dimension=7)
    scalar = pn.Mechanism(law(mean_abs=2.0), 0.5)
    for adjacency in ("add-remove", "replace"):
        assert vector.epsilon(1e-6, 3, 1.0, adjacency) == scalar.epsilon(1e-6, 21)
    accountant = pn.Accountant().compose(vector).compose(scalar, 14)
    assert accountant.epsilon(1e-6) == scalar.epsilon(1e-6, 21)
    assert vector.pure_epsilon() == 7.0 * scalar.pure_epsilon()


def plane_deltas(law, shift, epsilons):
    """Delta of a shift in two dimensions, by quadrature on a grid."""
    axis = np.linspace(-22.0, 24.0, 2301)
    step = axis[1] - axis[0]
    before = np.multiply.outer(law.pdf(axis), law.pdf(axis))
    after = np.multiply.outer(law.pdf(axis - shift[0]), law.pdf(axis - shift[1]))
    excess = [np.maximum(after - math.exp(e) * before, 0.0).sum() for e in epsilons]
    return np.array(excess) * step**2


def test_corner_of_the_square_is_attained():
    law = pn.Airy(mean_abs=1.0)
    epsilons = [0.1, 0.5, 1.5]
    found = pn.Mechanism(law, 1.0, dimension=2).composed().estimate.profile(epsilons)
    np.testing.assert_allclose(plane_deltas(law, (1.0, 1.0), epsilons), found, rtol=1e-4)


@for_each([(0.5, 0.5), (0.9, 0.1), (-0.3, 0.7)])
def test_laplace_moves_most_in_one_coordinate(shift):
    """The lemma of ``vectors``, by quadrature: any shift of the same l1 norm is more private."""
    law = pn.Laplace(scale=0.5)
    mechanism = pn.Mechanism(law, 1.0, dimension=2, norm="l1")
    epsilons = [0.0, 0.3, 1.0, 1.6]
    worst = mechanism.composed().estimate.profile(epsilons)
    assert np.array_equal(worst, pn.Mechanism(law, 1.0).composed().estimate.profile(epsilons))
    # Kinks between the points of the grid cost 2e-4 of the density.
    assert np.all(plane_deltas(law, shift, epsilons) <= worst * (1.0 + 1e-3))
    np.testing.assert_allclose(plane_deltas(law, (1.0, 0.0), epsilons), worst, rtol=1e-3)


def test_laplace_with_an_l1_bound():
    vector = pn.Mechanism(pn.Laplace(scale=2.0), 1.5, dimension=50, norm="l1")
    scalar = pn.Mechanism(pn.Laplace(scale=2.0), 1.5)
    assert vector.pure_epsilon() == 0.75
    for rate in (0.1, 1.0):
        assert vector.epsilon(1e-6, 20, rate) == scalar.epsilon(1e-6, 20, rate)


@for_rows(
    [
        (pn.Airy, "l1", 1.0, "add-remove", "worst direction"),
        (pn.Airy, "l2", 1.0, "add-remove", "worst direction"),
        (pn.Laplace, "l2", 1.0, "add-remove", "worst direction"),
        (pn.Airy, "linf", 0.5, "replace", "worst case"),
        (pn.Staircase, "l1", 1.0, "add-remove", "worst direction"),
        (pn.TruncatedLaplace, "l1", 1.0, "add-remove", "worst direction"),
    ]
)
def test_refused(law, norm, rate, adjacency, match):
    target = {pn.Staircase: {"epsilon": 1.0}, pn.TruncatedLaplace: {"epsilon": 1.0, "delta": 0.01}}
    noise = law(**target.get(law, {"mean_abs": 2.0}))
    mechanism = pn.Mechanism(noise, contribution=0.5, dimension=2, norm=norm)
    with pytest.raises(pn.DomainError, match=match):
        mechanism.epsilon(1e-6, 10, rate, adjacency)
    with pytest.raises(pn.DomainError, match=match):
        pn.Accountant(adjacency).compose(mechanism, 10, rate)


# -- one coin --------------------------------------------------------------------------------------


def two_laplace_delta(epsilon, shift):
    """Delta of two uses without sampling: the loss of the first one under the integral."""
    epsilon, shift = mp.mpf(epsilon), mp.mpf(shift)

    def once(e):
        if e >= shift:
            return mp.mpf(0)
        return 1 - mp.exp(e) if e <= -shift else 1 - mp.exp((e - shift) / 2)

    cuts = sorted(
        {-shift, shift, *(x for x in (epsilon - shift, epsilon + shift) if abs(x) < shift)}
    )
    inner = mp.quad(lambda x: mp.exp((x - shift) / 2) / 4 * once(epsilon - x), cuts)
    return inner + (once(epsilon - shift) + mp.exp(-shift) * once(epsilon + shift)) / 2


@for_each([0.02, 0.6], ["remove", "add"], [-0.7, -0.2, 0.0, 0.01, 0.4])
def test_one_coin_for_two_coordinates(rate, direction, epsilon):
    shift = 0.75
    exact = subsampled_delta(lambda e: two_laplace_delta(e, shift), epsilon, rate, direction)
    found = pn.Mechanism(pn.Laplace(scale=1.0 / shift), dimension=2).delta(
        epsilon, 1, rate, direction
    )
    assert found.lower <= exact * (1 + mp.mpf(1e-13)) + 1e-16
    assert exact <= found.upper * (1 + 1e-13)
    # The loss has an atom at 0.
    assert found.upper - found.lower <= 1e-4 * max(float(exact), 1e-6)


@for_rows([(0.1, 4, 1), (0.02, 9, 60), (0.3, 16, 5)])
def test_one_coin_for_gaussian_coordinates(rate, dimension, count):
    """The loss of normal coordinates is known, since rotations do not change it."""
    known = pn.Mechanism(pn.Gaussian(std=4.0), dimension=dimension)
    step = SampledVector(Pair(pn.Gaussian(std=4.0), 1.0, 1.0), dimension, rate)
    for direction in ("remove", "add"):
        question = Question(((step, count),), only=(direction,))
        for epsilon in (-0.1, 0.3):
            found, true = question.delta(epsilon), known.delta(epsilon, count, rate, direction)
            assert found.lower <= true.upper * (1.0 + 1e-12)
            assert true.lower <= found.upper * (1.0 + 1e-12)
            assert found.upper - found.lower <= 2e-3 * found.upper
    found, true = Question(((step, count),)).epsilon(1e-6), known.epsilon(1e-6, count, rate)
    assert found.lower <= true.upper
    assert true.lower <= found.upper <= true.upper * (1.0 + 1e-3)


@pytest.mark.deep
def test_one_coin_is_worse_than_one_for_each():
    law, rate = pn.Laplace(scale=3.0), 0.1
    together = pn.Mechanism(law, dimension=5).epsilon(1e-6, 20, rate)
    assert together.lower > pn.Mechanism(law).epsilon(1e-6, 100, rate).upper
    assert together.upper < pn.Mechanism(law, dimension=5).epsilon(1e-6, 20).lower
    assert together.upper - together.lower < 1e-3 * together.upper
    estimate = pn.Mechanism(law, dimension=5).composed(20, rate).estimate.epsilon(1e-6)
    assert together.lower <= estimate <= together.upper


def test_one_coin_and_infinite_losses():
    law = pn.TruncatedLaplace(epsilon=1.0, delta=1e-3)
    vector = pn.Mechanism(law, dimension=3)
    lost = 1.0 - (1.0 - pn.Mechanism(law).delta(math.inf).upper) ** 3
    found = vector.delta(math.inf, 1, 0.2)
    assert found.lower <= 0.2 * lost * (1 + 1e-12)
    assert 0.2 * lost <= found.upper * (1 + 1e-12)
    # Under "add" an output that only this data set has is one that the coin may have made rare.
    top = -math.log1p(-0.2)
    found, exact = vector.delta(0.99 * top, 1, 0.2, "add"), lost * -math.expm1(-0.01 * top)
    assert found.lower <= exact * (1 + 1e-9)
    assert exact <= found.upper * (1 + 1e-9)
    for epsilon in (-0.5, 0.0, 0.3):
        least = most = -math.expm1(epsilon)
        if epsilon >= 0.0:
            unsampled = vector.delta(math.log1p(math.expm1(epsilon) / 0.2), tolerance=1e-7)
            least, most = 0.2 * unsampled.lower, 0.2 * unsampled.upper
            assert most - least <= 2e-7
        found = vector.delta(epsilon, 1, 0.2, "remove")
        assert found.lower <= most * (1 + 1e-9)
        assert least <= found.upper * (1 + 1e-9)


# -- bounded scores --------------------------------------------------------------------------------


def test_an_l1_bound_and_a_bounded_score():
    """Cauchy noise has the score ``2 t / (1 + t^2)``, at most 1: pure, for shifts of any kind."""
    law = pn.Cauchy(scale=4.0)
    vector = pn.Mechanism(law, 1.5, dimension=7, norm="l1")
    assert 1.5 / 4.0 <= vector.pure_epsilon() <= 1.5 / 4.0 * (1 + 1e-9)
    bound = pn.promises.PureDP(vector.pure_epsilon())
    axis = pn.Mechanism(law, 1.5)
    for count, rate in ((1, 1.0), (5, 1.0), (5, 0.1)):
        found = vector.epsilon(1e-4, count, rate)
        assert found.upper == pytest.approx(bound.epsilon(1e-4, count, rate).upper, rel=1e-6)
        assert found.lower == pytest.approx(axis.epsilon(1e-4, count, rate).lower, rel=1e-3)
    # Of narrow noise no coordinate has more than the largest loss of a shift.
    steep = pn.SymmetricStable(alpha=0.3, scale=3.0)
    plane, axis = (pn.Mechanism(steep, dimension=d, norm="l1").pure_epsilon() for d in (2, 1))
    assert axis <= plane <= 2.0 * axis * (1 + 1e-9)
    # Shifts in two dimensions, by quadrature.
    epsilons = [0.0, 0.1, 0.25]
    law = pn.Cauchy(scale=1.5)
    plane = pn.Mechanism(law, 0.5, dimension=2, norm="l1").profile(epsilons)
    for shift in ((0.5, 0.0), (0.25, 0.25), (-0.4, 0.1)):
        assert np.all(plane_deltas(law, shift, epsilons) <= plane.upper)
    # Where the axis is known to be the worst the bound is not needed.
    laplace = pn.Mechanism(pn.Laplace(scale=4.0), 1.5, dimension=7, norm="l1")
    assert laplace.epsilon(1e-4, 5).upper < bound.epsilon(1e-4, 5).lower


def test_stable_noise_of_index_two_is_invariant_too():
    stable = pn.Mechanism(pn.SymmetricStable(alpha=2.0, scale=2.0), dimension=9, norm="l2")
    normal = pn.Mechanism(pn.Gaussian(std=2.0 * math.sqrt(2.0)), dimension=9, norm="l2")
    assert stable.epsilon(1e-6, 5, 0.1).lower <= normal.epsilon(1e-6, 5, 0.1).upper
    assert normal.epsilon(1e-6, 5, 0.1).lower <= stable.epsilon(1e-6, 5, 0.1).upper


def test_arguments():
    noise = pn.Laplace(scale=1.0)
    for dimension, error in ((0, pn.DomainError), (-1, pn.DomainError), (1.5, TypeError)):
        with pytest.raises(error, match="dimension"):
            pn.Mechanism(noise, dimension=dimension)
    with pytest.raises(pn.DomainError, match="norm"):
        pn.Mechanism(noise, dimension=2, norm="l3")
    with pytest.raises(TypeError, match="norm"):
        pn.Mechanism(noise, dimension=2, norm=2)
    with pytest.raises(TypeError):
        pn.Mechanism(noise, 1.0, 2)
    with pytest.raises(OverflowError, match="count"):
        pn.Mechanism(noise, dimension=2**32).composed(2**32).estimate.epsilon(1e-6)


def test_a_vector_mechanism_is_a_value():
    mechanism = pn.Mechanism(pn.Laplace(scale=1.0), 2.0, dimension=3, norm="l1")
    assert eval(repr(mechanism)) == mechanism
    assert hash(mechanism) != hash(pn.Mechanism(pn.Laplace(scale=1.0), 2.0))
    assert mechanism != pn.Mechanism(pn.Laplace(scale=1.0), 2.0, dimension=3)
    assert repr(pn.Mechanism(pn.Laplace(scale=1.0))) == (
        "Mechanism(noise=Laplace(scale=1.0), sensitivity=1.0)"
    )


@for_each([1, 3], [(1.0, 2), (0.3, 5)])
def test_largest_loss_under_one_coin(count, shape):
    """Kills: a lower bound that is the bound from above, here infinity."""
    shift, dimension = shape
    vector = pn.Mechanism(pn.Laplace(scale=1.0), shift, dimension=dimension)
    top = count * math.log1p(0.5 * math.expm1(shift * dimension))
    for direction, exact in (
        ("remove", top),
        ("add", -count * math.log1p(0.5 * math.expm1(-shift * dimension))),
        ("add-remove", top),
    ):
        found = vector.epsilon(0.0, count, 0.5, direction)
        assert found.lower <= exact * (1.0 + 1e-15)
        assert exact <= found.upper * (1.0 + 1e-15)
        assert found.width <= 1e-12 * exact


@for_each([0.02, 0.03, 0.031, 0.05, 0.3], [2, 5], [0.01, 0.5, 0.99])
def test_one_coin_about_little_noise(scale, dimension, rate):
    """Two answers a coordinate, whose likelihoods are ``1 : e^{1 / scale}`` or the inverse.

    Kills: from below one factor on all masses, for that of a smallest loss which was too large.
    """
    with mp.workdps(60):
        a, q = mp.exp(-1 / mp.mpf(scale)), mp.mpf(rate)
        exact = {0.1: mp.mpf(0), 20.0: mp.mpf(0)}
        for k in range(dimension + 1):
            each = mp.binomial(dimension, k) / (1 + a) ** dimension
            base, moved = each * a**k, each * a ** (dimension - k)
            for at in exact:
                exact[at] += max((1 - q) * base + q * moved - mp.exp(mp.mpf(at)) * base, 0)
    plan = pn.Accountant("remove")
    plan.compose(pn.Mechanism(pn.DiscreteLaplace(scale=scale), dimension=dimension), 1, rate)
    for at, delta in exact.items():
        found = plan.delta(at)
        assert found.lower <= delta * (1 + 1e-13)
        assert delta <= found.upper * (1 + 1e-13)
        assert found.width <= 1e-9 * found.upper


@for_each(
    [
        pn.UniformAtom(delta=0.4),
        pn.TruncatedLaplace(epsilon=1.0, delta=0.1),
    ],
    [0.3, 0.01],
)
def test_neighbors_without_a_common_output(law, rate):
    """Kills: an IndexError where no finite loss is left."""
    vector = pn.Mechanism(law, 10.0, dimension=2)
    number = pn.Mechanism(law, 10.0)
    for adjacency in ("add-remove", "remove", "add"):
        words = {"count": 2, "sampling_rate": rate, "adjacency": adjacency}
        for epsilon in (-0.1, 0.0, 0.2, 1.0):
            found, known = vector.delta(epsilon, **words), number.delta(epsilon, **words)
            assert found.lower == pytest.approx(known.lower, rel=1e-9, abs=1e-12)
            assert found.upper == pytest.approx(known.upper, rel=1e-9, abs=1e-12)
    assert vector.epsilon(0.5 * rate, 1, rate).lower == math.inf
    assert vector.delta(1.0, 1, rate) == pytest.approx(rate, rel=1e-12)


def delta_of_two_coordinates(law, cells, epsilon):
    """The largest over all vectors of shifts by whole cells, by all pairs of outputs."""
    half = np.concatenate([law.masses, law.masses[-1] * law.tail_ratio ** np.arange(1, 40)])
    masses = np.concatenate([half[:0:-1], half])
    moved = [
        (np.pad(masses, (shift, cells - shift)), np.pad(masses, (0, cells)))
        for shift in range(cells + 1)
    ]
    return max(
        np.maximum(np.outer(p, r) - math.exp(epsilon) * np.outer(q, s), 0.0).sum()
        for (p, q), (r, s) in itertools.combinations_with_replacement(moved, 2)
    )


@for_rows([(0.25, 8, 0.3, 3.0), (0.25, 8, 0.3, 0.5), (0.25, 12, 0.2, 1.0)])
def test_one_vector_has_one_shift(mean_cost, cells, ratio, epsilon):
    """Kills: a lower end at which the second coordinate moves by what the first output says."""
    law = pn.Cactus(mean_cost=mean_cost, cells_per_sensitivity=3, cells=cells, tail_ratio=ratio)
    exact = delta_of_two_coordinates(law, 3, epsilon)
    found = pn.Mechanism(law, dimension=2).delta(epsilon)
    assert 0.85 * exact < found.lower <= exact * (1.0 + 1e-12)
    assert exact * (1.0 - 1e-9) <= found.upper < 1.1 * exact
    several = pn.Mechanism(law, dimension=2).profile([epsilon, 2.0 * epsilon])
    assert several.lower[0] <= exact * (1.0 + 1e-12)
    there = pn.Mechanism(law, dimension=2).epsilon(exact)
    assert there.lower <= epsilon <= there.upper * (1.0 + 1e-12)
