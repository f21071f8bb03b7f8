"""Steps known by a distribution of their loss: upper bounds, against rational arithmetic.

Exact values: randomized response as a binomial sum of rationals (odds of 2, so that all losses are
multiples of log 2 and every exponential is a power of 2), and uniform noise with an atom, whose
loss is 0 or infinite.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from profile_oracles import gaussian_delta

import psinoise as pn
from psinoise.accounting.loss.pairs import Pair
from psinoise.mechanisms import DiscreteLoss
from psinoise.mechanisms.imports import LossNodes, upper_nodes
from refusals import for_each, for_rows, refused

STEP = math.log(2.0) / 4.0


def both_ways(step: float, nodes: LossNodes) -> DiscreteLoss:
    return DiscreteLoss(step, {"remove": nodes, "add": nodes})


def randomized_response(infinite: float = 0.0, step: float = STEP) -> DiscreteLoss:
    """Losses of four steps up with probability 2/3 and down with 1/3, or an infinite one."""
    mass = np.zeros(9)
    mass[-1], mass[0] = (1.0 - infinite) * 2.0 / 3.0, (1.0 - infinite) / 3.0
    return both_ways(step, LossNodes(-4, mass, infinite))


def uniform_with_atom(infinite: float) -> DiscreteLoss:
    """Where both densities are positive they are equal; elsewhere the loss is infinite."""
    return both_ways(STEP, LossNodes(0, np.array([1.0 - infinite]), infinite))


def exact_delta(count: int, infinite: Fraction, level: int) -> Fraction:
    """Delta of composed randomized response at ``epsilon = level * log 2``, in rationals."""
    total = Fraction(0)
    for ups in range(count + 1):
        above = 2 * ups - count - level
        if above > 0:
            weight = math.comb(count, ups) * Fraction(2) ** ups / Fraction(3) ** count
            total += weight * (1 - Fraction(1, 2**above))
    kept = (1 - infinite) ** count
    return 1 - kept + kept * total


@pytest.mark.deep
@for_each([1, 3, 40, 500], [Fraction(0), Fraction(1, 2**23), Fraction(3, 4)])
def test_randomized_response_is_a_binomial_sum(count: int, infinite: Fraction) -> None:
    accountant = pn.Accountant().compose(randomized_response(float(infinite)), count)
    for level in {0, count // 2, count - 1}:
        exact = exact_delta(count, infinite, level)
        epsilon = level * math.log(2.0)
        found = accountant.delta(epsilon).upper
        # The float that stands for log 2 is off by 2^-55, count times.
        assert exact * (1 - Fraction(count, 2**50)) <= Fraction(found)
        # As much as a ten-thousandth of epsilon makes.
        assert found <= float(exact) * (1.0 + 1e-4 * count) + 1e-14
        if level > 0 and infinite == 0:
            again = accountant.epsilon(float(exact)).upper
            assert epsilon * (1.0 - 1e-12) <= again <= epsilon * (1.0 + 1e-3)


@for_each([1, 2, 30], [1e-9, 0.1, 0.9])
def test_uniform_noise_with_an_atom(count: int, infinite: float) -> None:
    """``1 - (1 - d)^n`` at every epsilon, alone; with Gaussian noise the profiles combine."""
    accountant = pn.Accountant().compose(uniform_with_atom(infinite), count)
    exact = -math.expm1(count * math.log1p(-infinite))
    for epsilon in (0.0, 3.0, math.inf):
        found = accountant.delta(epsilon).upper
        assert exact * (1.0 - 1e-15) <= found <= exact * (1.0 + 1e-9) + 1e-14
    accountant.compose(pn.Mechanism(pn.Gaussian(std=2.0)))
    together = exact + (1.0 - exact) * float(gaussian_delta(1.0, 0.5))
    found = accountant.delta(1.0).upper
    # STEP is coarse: connecting the dots of a loss of deviation 1/2 on it costs a few percent.
    assert together <= found <= exact + 1.1 * (together - exact) + 1e-14


def test_infinite_mass_is_never_lost() -> None:
    once = pn.Accountant().compose(randomized_response(1e-3))
    assert once.epsilon(0.9e-3).upper == math.inf
    assert once.epsilon(1.1e-3).upper < math.log(2.0)
    twice = pn.Accountant().compose(randomized_response(1e-3), 2)
    assert twice.delta(math.inf).upper == pytest.approx(1.0 - 0.999**2)
    assert twice.delta(-math.inf).upper == 1.0


def test_nodes_bound_the_profile_of_the_pair() -> None:
    for noise in (pn.Gaussian(std=1.5), pn.Laplace(scale=1.3), pn.Airy(mean_abs=1.2)):
        pair = Pair(noise, 1.0, 0.3)
        for direction in ("remove", "add"):
            nodes = upper_nodes(pair, direction, 0.01, 60.0)  # type: ignore[arg-type]
            losses = (nodes.first + np.arange(nodes.mass.size)) * 0.01
            assert nodes.mass.sum() + nodes.infinite == pytest.approx(1.0, abs=1e-10)
            # The Q-mass is kept as well: the measure is that of a pair of distributions.
            assert nodes.mass @ np.exp(-losses) == pytest.approx(1.0, abs=1e-8)


# -- as steps of an accountant ---------------------------------------------------------------------


def test_profile_and_tradeoff_are_bounds() -> None:
    mechanism = pn.Mechanism(pn.Airy(mean_abs=2.0))
    pair = Pair(mechanism.noise, 1.0, 1.0)
    fine = both_ways(0.01, upper_nodes(pair, "remove", 0.01, 80.0))
    known = pn.Accountant().compose(mechanism, 5)
    mixed = pn.Accountant().compose(mechanism, 2).compose(fine, 3)
    epsilons = np.array([2.0, -1.0, 0.0, 0.5, math.inf])
    exact = known.estimate.profile(epsilons)
    found = mixed.profile(epsilons).upper
    assert isinstance(found, np.ndarray)
    assert np.all(exact * (1.0 - 1e-12) <= found)
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-30)
    alphas = np.array([0.0, 1e-3, 0.2, 0.7, 1.0])
    least = mixed.tradeoff(alphas)
    assert np.all(least <= known.estimate.tradeoff(alphas) + 1e-8)
    np.testing.assert_allclose(least, known.estimate.tradeoff(alphas), atol=1e-4)


def test_tradeoff_of_uniform_noise_with_an_atom() -> None:
    """A test is right for sure with probability d, and blind otherwise."""
    accountant = pn.Accountant().compose(uniform_with_atom(0.25))
    alphas = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    exact = np.array([0.75, 0.5, 0.25, 0.0, 0.0])
    np.testing.assert_allclose(accountant.tradeoff(alphas), exact, atol=1e-6)
    assert np.all(accountant.tradeoff(alphas) <= exact + 1e-15)


def test_upper_is_within_its_width() -> None:
    mechanism = pn.Mechanism(pn.Airy(mean_abs=2.0))
    accountant = pn.Accountant().compose(mechanism, 10)
    both = mechanism.epsilon(1e-6, 10)
    # Held to its width on the upper side alone, which takes a coarser lattice.
    assert both.estimate <= mechanism.epsilon(1e-6, 10).upper <= both.estimate * (1.0 + 1e-4)
    # Delta is held to its width on the upper side alone, which may take a coarser lattice.
    assert (
        accountant.delta(0.5).lower
        <= accountant.delta(0.5).upper
        <= float(accountant.delta(0.4999))
    )
    profile = accountant.profile([0.5, 1.0]).upper
    single = [accountant.delta(epsilon).upper for epsilon in (0.5, 1.0)]
    np.testing.assert_allclose(profile, single, rtol=1e-3)
    alphas = [0.1, 0.5]
    assert np.all(accountant.tradeoff(alphas) >= 0.0)


def test_what_an_accountant_with_imported_losses_refuses() -> None:
    loss = randomized_response()
    accountant = pn.Accountant().compose(loss, 3)
    assert "1 distinct" in repr(accountant)
    for name in ("estimate", "renyi", "clt"):
        with pytest.raises(pn.DomainError, match="bounds on its loss alone"):
            getattr(accountant, name)
    with pytest.raises(pn.DomainError, match="mechanisms alone"):
        accountant.to_json()
    with pytest.raises(pn.DomainError, match="sampling_rate must be 1"):
        accountant.compose(loss, 1, 0.5)
    with pytest.raises(pn.DomainError, match="adjacency must not be 'replace'"):
        pn.Accountant("replace").compose(loss)
    with pytest.raises(OverflowError, match="count"):
        accountant.compose(loss, 2**63 - 1)
    # A loss on another lattice composes: nodes are free.
    half = LossNodes(0, np.array([0.5, 0.5]), 0.0)
    other = DiscreteLoss(0.25, {"remove": half, "add": half})
    assert pn.Accountant().compose(loss).compose(other).epsilon(0.1).upper
    # What was refused is not composed, and no use is no step.
    assert accountant.compose(loss, 0)._steps == ((loss, 3),)


def test_the_lower_end_counts_the_other_steps_alone() -> None:
    loss, mechanism = randomized_response(), pn.Mechanism(pn.Gaussian(std=2.0))
    alone = pn.Accountant().compose(loss, 3)
    assert alone.epsilon(1e-3).lower == 0.0
    assert alone.delta(0.5).lower == 0.0
    assert alone.epsilon(1e-3).upper == alone.epsilon(1e-3).upper > 0.0
    mixed = pn.Accountant().compose(loss, 3).compose(mechanism, 4)
    found, known = mixed.epsilon(1e-3), mechanism.epsilon(1e-3, 4)
    assert found.lower <= known.upper
    assert known.lower <= found.lower * (1.0 + 1e-3)
    assert found.lower < found.upper == mixed.epsilon(1e-3).upper
    assert alone.epsilon(1e-3).upper < found.upper
    found, known = mixed.delta(1.0), mechanism.delta(1.0, 4)
    assert known.lower * (1.0 - 1e-3) <= found.lower <= known.upper < found.upper
    with pytest.raises(pn.CertificationError) as caught:
        mixed.epsilon(1e-3, tolerance=1e-3)
    assert caught.value.bracket.upper >= known.lower


def test_the_profile_from_below_is_that_of_the_other_steps() -> None:
    epsilons = [-1.0, 0.0, 0.7, 1.5]
    mechanism = pn.Mechanism(pn.Gaussian(std=2.0))
    mixed = pn.Accountant().compose(randomized_response(), 3).compose(mechanism, 4)
    alone = pn.Accountant().compose(mechanism, 4).profile(epsilons)
    np.testing.assert_allclose(mixed.profile(epsilons).lower, alone.lower, rtol=1e-3)
    # Nothing at all is known from below here, and nothing at all is composed there.
    floor = [-math.expm1(-1.0), 0.0, 0.0, 0.0]
    one_sided = pn.Accountant().compose(randomized_response())
    np.testing.assert_allclose(one_sided.profile(epsilons).lower, floor, rtol=1e-14)
    np.testing.assert_allclose(pn.Accountant().profile(epsilons).upper, floor, rtol=1e-14)


def test_a_loss_is_asked_alone() -> None:
    loss = randomized_response(0.1)
    assert loss.epsilon(0.2, 3) == pn.Accountant().compose(loss, 3).epsilon(0.2)
    assert loss.pure_epsilon() == math.inf
    assert randomized_response().pure_epsilon() == 4.0 * STEP


def test_equal_losses_are_merged() -> None:
    loss = randomized_response()
    split = pn.Accountant().compose(loss, 2).compose(loss, 5)
    assert split._steps == ((loss, 7),)
    assert split.delta(1.0) == pn.Accountant().compose(loss, 7).delta(1.0)


def test_discrete_losses_are_checked() -> None:
    good = randomized_response().nodes["remove"]
    for step in (0.0, -1.0, 0.75, math.nan):
        with pytest.raises(pn.DomainError, match="step must be"):
            DiscreteLoss(step, {"remove": good, "add": good})
    for mass in ([0.5, 0.4], [1.5, -0.5], [math.nan, 1.0], []):
        bad = LossNodes(0, np.array(mass), 0.0)
        with pytest.raises(pn.DomainError):
            DiscreteLoss(0.1, {"remove": good, "add": bad})


@for_rows(
    [
        ([0.5, 0.5], 0.0, "mass must be an array of floats"),
        (np.array([0.5, 0.5], dtype=object), 0.0, "mass must be an array of floats"),
        (np.array([0.5, 0.5], dtype=complex), 0.0, "mass must be an array of floats"),
        (np.array([True]), 0.0, "mass must be an array of floats"),
        (np.array([0.5, 0.5]), None, "infinite must be a real number"),
        (np.array([0.5, 0.5]), "0", "infinite must be a real number"),
    ]
)
def test_masses_of_the_wrong_kind(mass, infinite, match) -> None:
    nodes = LossNodes(0, mass, infinite)
    refused(TypeError, match, DiscreteLoss, 0.5, {"remove": nodes, "add": nodes})


def test_steps_and_nodes_of_the_wrong_kind() -> None:
    """Kills: a step of float32, which failed when it was asked."""
    good = LossNodes(0, np.array([0.5, 0.5]), 0.0)
    refused(TypeError, "step must be a real", DiscreteLoss, None, {"remove": good, "add": good})
    refused(TypeError, "nodes must be LossNodes", DiscreteLoss, 0.5, {"remove": 1, "add": 2})
    loss = DiscreteLoss(np.float32(0.5), {"remove": good, "add": good})
    assert loss.epsilon(0.0) == DiscreteLoss(0.5, {"remove": good, "add": good}).epsilon(0.0)


def test_first_nodes_are_checked() -> None:
    """Kills: NaN, for which epsilon and delta were 0."""
    for first in (math.nan, 0.5, "a", True, None):
        nodes = LossNodes(first, np.array([0.5, 0.5]), 0.0)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="first must be an integer"):
            DiscreteLoss(0.5, {"remove": nodes, "add": nodes})
    nodes = LossNodes(-(10**400), np.array([0.5, 0.5]), 0.0)
    with pytest.raises(pn.DomainError, match="first must be within"):
        DiscreteLoss(0.5, {"remove": nodes, "add": nodes})


def test_losses_that_no_pair_of_laws_has() -> None:
    """The other law's probabilities add up to at most 1. Kills: losses of the wrong sign, for which
    epsilon was 0."""
    for first in (-(10**9), -3, -1):
        nodes = LossNodes(first, np.array([0.5, 0.5]), 0.0)
        with pytest.raises(pn.DomainError, match="probabilities under the other law"):
            DiscreteLoss(0.5, {"remove": nodes, "add": nodes})


def test_losses_that_are_no_measure() -> None:
    whole = LossNodes(0, np.array([0.9]), 0.1)
    for nodes in (
        {"remove": whole},
        {"remove": LossNodes(0, np.zeros(1), 1.0), "add": LossNodes(0, np.zeros(1), 1.0)},
    ):
        with pytest.raises(pn.DomainError):
            DiscreteLoss(0.25, nodes)


def test_what_masses_lack_counts_as_infinite() -> None:
    """And what happens to an array, or to a mapping, after it was given changes nothing."""
    mass = np.array([0.5, 0.5 - 9e-7])
    nodes = {"remove": LossNodes(0, mass, 0.0), "add": LossNodes(0, mass, 0.0)}
    loss = DiscreteLoss(0.25, nodes)
    before = pn.Accountant().compose(loss).delta(0.3)
    assert before.upper >= 9e-7
    mass[:] = 1.0, 0.0
    nodes["remove"] = nodes["add"]
    assert pn.Accountant().compose(loss).delta(0.3) == before
    assert math.isinf(pn.Accountant().compose(loss).epsilon(1e-7).upper)
