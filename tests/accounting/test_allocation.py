"""Random allocation: an epoch of steps of which each record takes part in one.

Mutants that these tests kill: the mean of a bin taken for its upper edge or left where it is (both
sides), the two directions exchanged, the weight of a square forgotten, outputs without a record's
share dropped, ``t + 1`` steps for ``t``.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_epsilon

import psinoise as pn
from psinoise.accounting.compose.schemes.epoch import Epoch
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.question import Question
from psinoise.mechanisms.imports import DiscreteLoss, LossNodes
from psinoise.sampling import Poisson, RandomAllocation
from refusals import for_each, for_rows

WIDTH = 1e-4
DIRECTIONS = ("remove", "add")


# -- brute force -----------------------------------------------------------------------------------


class Ratio:
    """``T_1 p / p`` of a law whose ratio rises, with its distribution under both."""

    def __init__(self, law, log_ratio, inverse, edges):
        self.law, self.log_ratio, self.inverse = law, log_ratio, inverse
        nodes, weights = np.polynomial.legendre.leggauss(6)
        half = 0.5 * np.diff(edges)[:, None]
        self.x = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
        self.weight = (half * weights).ravel() * np.exp(law.logpdf(self.x))

    def above(self, least):
        """``E_Q (R - k)^+``."""
        k = np.maximum(least, 1e-300)
        at = self.inverse(np.log(k))
        value = self.law.ccdf(at - 1.0) - k * self.law.ccdf(at)
        return np.where(least > 0.0, np.maximum(value, 0.0), 1.0 - least)


def gaussian(std):
    return Ratio(
        pn.Gaussian(std=std),
        lambda x: (x - 0.5) / std**2,
        lambda loss: 0.5 + std**2 * loss,
        np.linspace(-11.0 * std, 11.0 * std + 1.0, 121),
    )


def laplace(scale, panels):
    def inverse(loss):
        inside = 0.5 * (1.0 + scale * loss)
        return np.where(loss >= 1.0 / scale, np.inf, np.where(loss < -1.0 / scale, -np.inf, inside))

    return Ratio(
        pn.Laplace(scale=scale),
        lambda x: (np.abs(x) - np.abs(x - 1.0)) / scale,
        inverse,
        # The ratio is constant outside, and the rest of the integrand has kinks inside.
        np.unique(
            np.concatenate(
                [
                    np.linspace(-36.0 * scale, 0.0, 25),
                    np.linspace(0.0, 1.0, panels + 1),
                    np.linspace(1.0, 1.0 + 36.0 * scale, 25),
                ]
            )
        ),
    )


def profile(ratio, steps, direction, epsilon):
    """Delta of 2 or 3 steps: quadrature over all ratios but one."""
    one = np.exp(ratio.log_ratio(ratio.x))
    rest, weight = one, ratio.weight
    if steps == 3:
        rest, weight = np.add.outer(one, one).ravel(), np.outer(weight, weight).ravel()
    c = steps * math.exp(epsilon if direction == "remove" else -epsilon)
    above = float(weight @ ratio.above(c - rest))
    if direction == "remove":
        return above / steps
    # E (c - z)^+ = E (z - c)^+ - E z + c
    return (above - steps + c) * math.exp(epsilon) / steps


CASES = [
    (gaussian(1.0), 2, 0.5),
    (gaussian(1.0), 2, 2.0),
    (gaussian(3.0), 2, 0.1),
    (gaussian(0.7), 3, 1.0),
    (gaussian(2.0), 3, 0.2),
    (laplace(1.0, 4000), 2, 0.3),
    (laplace(3.0, 4000), 2, 0.1),
    (laplace(1.0, 150), 3, 0.2),
]


@pytest.mark.parametrize(("ratio", "steps", "epsilon"), CASES)
def test_brute_force(ratio, steps, epsilon):
    mechanism, sampling = pn.Mechanism(ratio.law), RandomAllocation(steps)
    for direction in DIRECTIONS:
        exact = profile(ratio, steps, direction, epsilon)
        assert exact > 1e-5
        found = mechanism.delta(epsilon, adjacency=direction, sampling=sampling, tolerance=WIDTH)
        # Kinks keep the quadrature from more digits.
        doubt = 1e-7 if steps == 2 else 1e-5
        assert found.lower <= exact * (1.0 + doubt)
        assert found.upper >= exact * (1.0 - doubt)
        assert found.upper <= found.lower * 1.001
        # And the epsilon of that delta.
        found = mechanism.epsilon(exact, adjacency=direction, sampling=sampling, tolerance=WIDTH)
        assert found.lower - 1e-5 <= epsilon <= found.upper + 1e-5


def enumerated(step, steps, direction):
    """Losses of an epoch under ``P`` and their masses, by all products of outcomes."""
    log_mass, loss = step.atoms
    unseen = step.infinite("add")
    ratio, q = np.append(np.exp(loss), 0.0), np.append(np.exp(log_mass), unseen)
    outcomes = list(itertools.product(range(ratio.size), repeat=steps))
    average = np.array([ratio[list(k)].mean() for k in outcomes])
    mass = np.array([q[list(k)].prod() for k in outcomes])
    with np.errstate(divide="ignore"):
        loss = np.log(average)
    if direction == "remove":
        loss, mass = loss[average > 0.0], (mass * average)[average > 0.0]
        return np.append(loss, np.inf), np.append(mass, step.infinite("remove"))
    return -loss, mass


def small_pairs():
    """Pairs with few atoms, the last with outputs that one of both cannot give."""
    return [Pieces((0.6, 0.3, 0.1), (0.1, 0.3, 0.6)), Pieces((0.5, 0.5, 0.0), (0.0, 0.5, 0.5))]


class Pieces:
    """Noise in three cells, as accounting knows it."""

    def __init__(self, shifted, base):
        self.masses = np.array(shifted), np.array(base)

    def worst_shifts(self, sensitivity):
        return (sensitivity,)

    def pieces(self, shift):
        return self.masses


@pytest.mark.parametrize("law", small_pairs())
@pytest.mark.parametrize("steps", [2, 3, 5])
@pytest.mark.parametrize("epochs", [1, 2])
def test_enumeration(law, steps, epochs):
    step = CellPair(law, 1.0, 1.0)
    question = ((Epoch(step, steps), epochs),)
    for direction in DIRECTIONS:
        loss, mass = enumerated(step, steps, direction)
        assert math.isclose(mass.sum(), 1.0, rel_tol=1e-12)
        if epochs == 2:
            loss, mass = np.add.outer(loss, loss).ravel(), np.outer(mass, mass).ravel()
        for epsilon in (0.0, 0.1, 0.4, 1.0):
            exact = float(mass @ np.maximum(-np.expm1(epsilon - loss), 0.0))
            found = Question(question, (direction,)).delta(epsilon)
            assert found.lower <= exact * (1.0 + 1e-12) + 1e-300
            assert found.upper >= exact * (1.0 - 1e-12)
            assert found.width <= 2e-4 * exact + 1e-300 + (1e-12 if epochs == 2 else 0.0)


# -- another accountant ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("std", "steps", "delta", "low", "high"),
    [
        # PLD_accounting 2.0 of V. Feldman and M. Shenfeld, "remove", its bounds from both sides.
        (1.0, 100, 1e-6, 0.84367, 0.87450),
        (0.9, 60, 1e-7, 2.05045, 2.08172),
        # All products in NumPy, 1600 nodes, without a plan.
        (1.0, 100, 1e-6, 0.857835, 0.858281),
        (0.9, 60, 1e-7, 2.06520, 2.06614),
        (2.0, 500, 1e-5, 0.071369, 0.071392),
    ],
)
def test_other_accountants(std, steps, delta, low, high):
    mechanism = pn.Mechanism(pn.Gaussian(std=std))
    found = mechanism.epsilon(delta, sampling=RandomAllocation(steps), tolerance=WIDTH)
    assert low - 1e-6 <= found.upper
    assert found.lower <= high + 1e-6
    assert found.width <= WIDTH
    assert (
        found.lower
        >= mechanism.epsilon(delta, adjacency="add", sampling=RandomAllocation(steps)).lower - WIDTH
    )


# -- properties ------------------------------------------------------------------------------------


def test_one_step_is_no_sampling():
    mechanism = pn.Mechanism(pn.Airy(mean_abs=2.0))
    assert mechanism.epsilon(1e-5, 3, sampling=RandomAllocation(1)) == mechanism.epsilon(1e-5, 3)
    lattice = pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice()
    assert lattice.epsilon(1e-5, sampling=RandomAllocation(1)) == lattice.epsilon(1e-5)
    every = mechanism.epsilon(1e-5, sampling=RandomAllocation(4, participations=4))
    assert every == mechanism.epsilon(1e-5, 4)


@pytest.mark.parametrize("law", [pn.Gaussian(std=1.0), pn.Cauchy(scale=2.0), pn.Airy(mean_abs=1.0)])
def test_more_steps_hide_more(law):
    mechanism = pn.Mechanism(law)
    found = [
        mechanism.epsilon(1e-6, sampling=RandomAllocation(steps)) for steps in (1, 2, 7, 64, 4096)
    ]
    for fewer, more in itertools.pairwise(found):
        assert more.upper < fewer.lower
    # Each record in one of t steps reveals no more than one that is in the one step there is, and
    # at least what the step alone reveals of which it is known that it was drawn at rate 1/t.
    assert found[1].upper < found[0].lower


def test_many_steps_need_few_seconds_and_reach_the_width():
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    found = mechanism.epsilon(1e-6, sampling=RandomAllocation(10_000), tolerance=WIDTH)
    assert found.width <= WIDTH
    assert 0.0458 <= found.upper <= 0.0459


def test_small_delta_keeps_its_digits():
    mechanism, sampling = pn.Mechanism(pn.Gaussian(std=2.0)), RandomAllocation(50)
    found = mechanism.epsilon(1e-40, sampling=sampling)
    assert found.width <= 2e-4 * found.upper
    # One in 50 steps is at most one step, and P(loss of the step > eps + log t) is within.
    assert found.upper < mechanism.epsilon(1e-40).lower
    assert found.lower > mechanism.epsilon(1e-40).upper - math.log(50)


@for_each(["add", "remove"], [0.0, 100.0])
def test_ratios_that_are_all_as_small_as_can_be(direction, epsilon):
    """Noise of 1e-5 of the sensitivity. Kills: a plan for a stage without bins."""
    mechanism, sampling = pn.Mechanism(pn.Airy(mean_abs=1e-5), 0.3), RandomAllocation(10)
    found = mechanism.delta(epsilon, adjacency=direction, sampling=sampling)
    assert found.lower <= 1.0 == found.upper


def test_several_participations_are_bounded_from_above():
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    twice = mechanism.epsilon(1e-6, sampling=RandomAllocation(101, participations=2))
    epochs = mechanism.epsilon(1e-6, 2, sampling=RandomAllocation(50))
    assert twice.lower == 0.0
    assert twice.upper == pytest.approx(epochs.upper, rel=1e-3)
    # With anything else the lower end is that of what is known.
    other = pn.Mechanism(pn.Gaussian(std=5.0))
    accountant = pn.Accountant().compose(other)
    accountant.compose(mechanism, sampling=RandomAllocation(101, participations=2))
    found = accountant.epsilon(1e-6)
    assert found.lower == other.epsilon(1e-6).lower
    assert found.upper > twice.upper


def test_epochs_compose():
    mechanism, sampling = pn.Mechanism(pn.Gaussian(std=1.0)), RandomAllocation(100)
    once = mechanism.epsilon(1e-6, sampling=sampling)
    twice = mechanism.epsilon(1e-6, 2, sampling=sampling)
    accountant = pn.Accountant().compose(mechanism, sampling=sampling)
    accountant.compose(mechanism, sampling=sampling)
    assert accountant.epsilon(1e-6) == twice
    assert once.upper < twice.lower < twice.upper < 2.0 * once.lower
    assert twice.width <= 3e-4 * twice.upper
    # The same release without anything else, and with one that reveals next to nothing.
    accountant = pn.Accountant().compose(mechanism, sampling=sampling)
    accountant.compose(pn.Mechanism(pn.Gaussian(std=1e7)))
    found = accountant.epsilon(1e-6)
    assert found.lower <= once.upper + 1e-5
    assert found.upper >= once.lower


def test_profile_and_tradeoff():
    mechanism, sampling = pn.Mechanism(pn.Gaussian(std=1.0)), RandomAllocation(10)
    epsilons = np.array([0.1, 0.5, 1.5])
    curve = mechanism.profile(epsilons, sampling=sampling)
    for k, epsilon in enumerate(epsilons.tolist()):
        single = mechanism.delta(epsilon, sampling=sampling)
        assert curve.lower[k] <= single.upper
        assert curve.upper[k] >= single.lower
        assert curve.upper[k] <= 1.002 * curve.lower[k]
    (found,) = mechanism.tradeoff([0.2], sampling=sampling)
    assert mechanism.tradeoff([0.2])[0] < found < 0.8


# -- schemes ---------------------------------------------------------------------------------------


def test_poisson_is_the_sampling_rate():
    mechanism = pn.Mechanism(pn.Gaussian(std=2.0))
    assert mechanism.delta(0.2, 5, sampling=Poisson(0.1)) == mechanism.delta(0.2, 5, 0.1)
    accountant = pn.Accountant().compose(mechanism, 5, sampling=Poisson(0.1))
    assert accountant.delta(0.2) == mechanism.delta(0.2, 5, 0.1)
    assert mechanism.epsilon(1e-5, sampling=Poisson(0.0)).upper == 0.0


def test_refusals():
    mechanism, sampling = pn.Mechanism(pn.Laplace(scale=1.0)), RandomAllocation(10)
    with pytest.raises(pn.DomainError, match="sampling_rate must not be given"):
        mechanism.epsilon(1e-5, 1, 0.5, sampling=sampling)
    with pytest.raises(TypeError, match="sampling must be a scheme"):
        mechanism.epsilon(1e-5, sampling=0.5)
    with pytest.raises(pn.DomainError, match="adjacency must not be 'replace'"):
        mechanism.epsilon(1e-5, adjacency="replace", sampling=sampling)
    loss = DiscreteLoss(0.5, dict.fromkeys(DIRECTIONS, LossNodes(0, np.ones(1), 0.0)))
    for scheme in (sampling, pn.sampling.WithoutReplacement(1, 2)):
        with pytest.raises(pn.DomainError, match="single records"):
            pn.Accountant().compose(loss, sampling=scheme)
    with pytest.raises(pn.DomainError, match="vector"):
        pn.Mechanism(pn.Laplace(scale=1.0), dimension=3).epsilon(1e-5, sampling=sampling)
    with pytest.raises(pn.DomainError, match="mechanisms alone"):
        pn.Accountant().compose(mechanism, sampling=sampling).to_json()
    for method in ("renyi", "clt"):
        with pytest.raises(pn.DomainError, match="no number"):
            getattr(mechanism.composed(sampling=sampling), method)
    for arguments in ((0,), (10, 0), (10, 11), (2**31,)):
        with pytest.raises(pn.DomainError):
            RandomAllocation(*arguments)
    with pytest.raises(pn.DomainError, match="rate"):
        Poisson(math.nan)


@for_rows([(0.1, 60, 1e-8), (0.1, 1000, 1e-6), (0.2, 300, 1e-5)])
def test_little_noise_has_ratios_of_all_sizes(std, steps, delta):
    """The average is at least the ratio of the one step by their number, and hardly more."""
    least = gaussian_epsilon(1 / mp.mpf(std), delta) - mp.log(steps)
    scheme = pn.sampling.RandomAllocation(steps)
    found = pn.Mechanism(pn.Gaussian(std=std)).composed(sampling=scheme).epsilon(delta)
    assert found.upper >= least
    assert abs(found.upper - least) <= 1e-4 * least
    assert found.width <= 1e-4 * found.upper


@for_each([2, 5, 100], [1, 3], ["remove", "add", "add-remove"])
def test_epochs_of_noise_with_an_end_beside_something_else(steps, count, adjacency):
    """Kills: nodes from minus the largest loss, where losses reach farther down than up."""
    for noise in (
        pn.UniformAtom(delta=0.01, sensitivity=1.0),
        pn.TruncatedLaplace(epsilon=0.1, delta=0.01, sensitivity=1.0),
    ):
        plan = pn.Accountant(adjacency).compose(pn.promises.PureDP(0.5))
        plan.compose(pn.Mechanism(noise), count, sampling=RandomAllocation(steps))
        found = plan.epsilon(0.15)
        assert 0.2 < found.lower <= found.upper <= found.lower * (1.0 + 2e-4)
        found = plan.delta(0.4)
        assert 0.05 < found.lower <= found.upper <= found.lower * (1.0 + 2e-4)


def test_density_of_the_rest_is_none_but_for_rounding():
    """Kills: logs of differences that rounding makes negative, a warning and no plan."""
    noise = pn.Mechanism(pn.Gaussian(std=0.5492960655731639))
    plan = pn.Accountant().compose(noise, 23, sampling=RandomAllocation(steps=3694))
    found = plan.epsilon(8.3e-7, tolerance=0.02)
    assert 3.1 < found.lower < found.upper < 3.3


@pytest.mark.parametrize("std", [0.05, 0.03, 0.02, 1e-3])
def test_hardly_any_noise_is_no_worse_than_without_sampling(std):
    """Kills: upper ends of inf and 1, which epochs of little noise had."""
    mechanism, epochs = pn.Mechanism(pn.Gaussian(std=std)), pn.sampling.RandomAllocation(100)
    for count in (1, 2):
        one, found = (mechanism.epsilon(1e-5, count, sampling=s) for s in (None, epochs))
        assert found.lower <= found.upper <= one.upper
        epsilons = np.array([1.0, one.upper])
        known = mechanism.delta(epsilons, count).upper
        assert mechanism.delta(one.upper, count, sampling=epochs).upper <= known[1]
        profile = mechanism.profile(epsilons, count, sampling=epochs)
        assert np.all(profile.upper <= known * (1.0 + 3e-3))


def test_a_multiplier_for_hardly_any_privacy():
    """Kills: a ValueError of NumPy for ratios that have no mass."""
    epochs = pn.sampling.RandomAllocation(100)
    multiplier = pn.noise_multiplier(1e3, 1e-5, steps=100, sampling=epochs)
    step = pn.Mechanism(pn.Gaussian(std=multiplier))
    assert step.epsilon(1e-5, sampling=epochs).upper <= 1e3
    assert step.epsilon(1e-5).upper <= 1.001e3
