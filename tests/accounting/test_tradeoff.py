"""Trade-off functions and profiles of whole arrays."""

from __future__ import annotations

import contextlib
import itertools
import math
from unittest import mock

import numpy as np
import pytest
from scipy import stats

import psinoise as pn
from psinoise.accounting.compose.direct.composition import Composition
from psinoise.accounting.question import Question
from refusals import for_each, for_rows

ALPHAS = np.array([0.0, 1e-12, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0 - 1e-9, 1.0])


def gaussian_tradeoff(alphas, shift):
    return stats.norm.cdf(stats.norm.isf(alphas) - shift)


def laplace_tradeoff(alphas, shift):
    """Dong, Roth and Su 2022, proposition A.6."""
    small = 1.0 - math.exp(shift) * alphas
    with np.errstate(divide="ignore"):
        middle = math.exp(-shift) / (4.0 * alphas)
    large = math.exp(-shift) * (1.0 - alphas)
    return np.where(alphas < 0.5 * math.exp(-shift), small, np.where(alphas <= 0.5, middle, large))


@pytest.mark.deep
@for_each([0.1, 1.0, 3.0], [1, 25])
def test_gaussian(shift, count):
    mechanism = pn.Mechanism(pn.Gaussian(std=math.sqrt(count)), shift)
    exact = gaussian_tradeoff(ALPHAS, shift)
    found = mechanism.composed(count).estimate.tradeoff(ALPHAS)
    assert np.all(found <= exact + 1e-10)
    np.testing.assert_allclose(found, exact, rtol=2e-8, atol=1e-10)


@for_each([0.1, 1.0, 8.0])
def test_laplace(shift):
    found = pn.Mechanism(pn.Laplace(scale=2.0), 2.0 * shift).composed().estimate.tradeoff(ALPHAS)
    exact = laplace_tradeoff(ALPHAS, shift)
    np.testing.assert_allclose(found, exact, rtol=2e-8, atol=1e-10)


@for_rows([(4.0, 16), (1.0, 1)])
def test_certified_is_below_and_close(std, count):
    accountant = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=std)), count)
    exact = gaussian_tradeoff(ALPHAS, 1.0)
    found = accountant.tradeoff(ALPHAS)
    assert np.all(found <= exact)
    # The default width in epsilon is 1e-4.
    np.testing.assert_allclose(found, exact, atol=1e-4)
    sharper = accountant.tradeoff(ALPHAS, tolerance=1e-6)
    assert np.all(sharper <= exact)
    np.testing.assert_allclose(sharper, exact, atol=1e-6)


@for_rows(
    [
        (pn.Cauchy(scale=3.0), 10, 1.0),
        (pn.Laplace(scale=3.0), 100, 1.0),
        (pn.Gaussian(std=1.0), 2000, 0.01),
    ]
)
def test_lines_are_as_high_as_the_profile_says(noise, count, rate):
    """Mutant: of the bounds only those that are tight at the next smaller epsilon (off by 1e-2)."""
    alphas = np.concatenate([np.geomspace(1e-6, 0.5, 60), 1.0 - np.geomspace(1e-6, 0.4, 40)])
    found = pn.Mechanism(noise).composed(count, rate).tradeoff(alphas)
    composed = pn.Mechanism(noise).composed(count, rate)
    epsilons = np.linspace(0.0, composed.epsilon(1e-7).upper, 2000)
    epsilons = np.concatenate([-epsilons[:0:-1], epsilons])
    rest, slopes = 1.0 - composed.profile(epsilons).upper, np.exp(epsilons)
    lines = np.array([np.max(rest - slopes * alpha) for alpha in alphas])
    # It chooses among more lines, so that it may be higher.
    assert np.all(found >= lines - 1e-5)
    np.testing.assert_allclose(found, np.maximum(lines, 0.0), atol=1e-4)


def test_one_use_is_smooth():
    """Mutant: bounds that are exact at 17 epsilons, read between them (off by .0095)."""
    alphas = np.linspace(0.0, 1.0, 101)
    exact = gaussian_tradeoff(alphas, 0.4)
    found = pn.Mechanism(pn.Gaussian(std=2.5)).composed().tradeoff(alphas)
    assert np.all(found <= exact)
    np.testing.assert_allclose(found, exact, atol=1e-5)


@for_rows([(80.0, 16), (20.0, 1)])
def test_certified_is_close_at_both_ends(std, count):
    """Mutant: lines that end where others might gain 1e4 times as much (off by 6 %)."""
    alphas = np.array([1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999])
    exact = gaussian_tradeoff(alphas, 0.05)
    found = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=std)), count).tradeoff(alphas)
    assert np.all(found <= exact)
    np.testing.assert_allclose(found, exact, rtol=1e-4)


@for_rows([(pn.Airy, 50, 0.1), (pn.Laplace, 1000, 0.03)])
def test_shape_of_a_sampled_tradeoff(law, count, rate):
    accountant = pn.Accountant().compose(pn.Mechanism(law(mean_abs=2.0)), count, rate)
    alphas = np.linspace(0.0, 1.0, 11)
    found = accountant.estimate.tradeoff(alphas)
    assert np.all(np.diff(found) < 0.0)
    assert np.all(np.diff(found, 2) > -1e-8)
    assert np.all(found <= 1.0 - alphas)
    # Symmetric: f is its own inverse.
    np.testing.assert_allclose(accountant.estimate.tradeoff(found), alphas, atol=1e-7)
    assert np.all(accountant.tradeoff(alphas[::5]) <= found[::5] + 1e-8)
    more = pn.Accountant().compose(pn.Mechanism(law(mean_abs=2.0)), count + 10, rate)
    assert np.all(more.estimate.tradeoff(alphas[1:-1]) < found[1:-1])


@for_each([-3.0, -0.5, 0.0, 0.7, 2.0, 5.0])
def test_no_test_beats_it(threshold):
    """Rejecting above a threshold: p + e^eps q >= 1 - delta, and q >= f(p)."""
    noise = pn.Airy(mean_abs=1.5)
    mechanism = pn.Mechanism(noise, 2.0)
    false_positives = float(noise.ccdf(threshold))
    false_negatives = float(noise.cdf(threshold - 2.0))
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        rest = 1.0 - mechanism.composed().estimate.delta(epsilon)
        assert false_positives + math.exp(epsilon) * false_negatives >= rest - 1e-14
        assert math.exp(epsilon) * false_positives + false_negatives >= rest - 1e-14
    # These tests are the most powerful ones for log-concave noise: f is attained.
    found = mechanism.composed().estimate.tradeoff([false_positives])
    assert found[0] == pytest.approx(false_negatives, abs=1e-8)


def test_tradeoff_edges():
    zero, quarter, one = pn.Accountant().tradeoff([0.0, 0.25, 1.0]).tolist()
    assert (zero, one) == (1.0, 0.0)
    assert 0.75 - 4e-15 <= quarter <= 0.75
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    assert mechanism.tradeoff([0.0, 1.0]).tolist() == [1.0, 0.0]
    assert mechanism.composed().estimate.tradeoff(0.5).shape == ()
    assert mechanism.composed().estimate.tradeoff([[0.5, 0.2]]).shape == (1, 2)
    for bad in ([-0.1], [1.1], [math.nan]):
        with pytest.raises(pn.DomainError, match="alphas"):
            mechanism.tradeoff(bad)
    with pytest.raises(TypeError, match="alphas"):
        mechanism.tradeoff(["0.5"])


def test_profile():
    accountant = pn.Accountant().compose(pn.Mechanism(pn.Airy(mean_abs=2.0)), 20, 0.3)
    epsilons = np.array([[2.0, 0.0, 1.0], [0.5, 1.0, math.inf]])
    profile = accountant.profile(epsilons)
    assert profile.lower.shape == profile.estimate.shape == profile.upper.shape == (2, 3)
    assert np.all(profile.lower <= profile.estimate)
    assert np.all(profile.estimate <= profile.upper)
    assert np.all(profile.upper - profile.lower <= 1e-3)
    estimate = accountant.estimate.profile(epsilons)
    np.testing.assert_allclose(estimate, profile.estimate, rtol=1e-3)
    assert estimate[0, 2] == estimate[1, 1] == accountant.estimate.delta(1.0)
    assert estimate[1, 2] == 0.0
    assert np.all(accountant.renyi.profile(epsilons) >= estimate)
    order = np.argsort(epsilons, axis=None)
    for bound in (profile.lower, profile.upper):
        assert all(a >= b for a, b in itertools.pairwise(bound.ravel()[order]))


@for_rows([(100, 0.1), (3, 1.0)])
def test_profile_of_cells_takes_few_compositions(count, rate):
    """Mutants: lower bounds that are sharp at one epsilon alone (48 compositions, .02 apart), and
    compositions at the largest epsilon whose bounds are wide (48 more, 2 apart)."""
    law = pn.Cactus(cost=1.0, mean_cost=0.5, cells_per_sensitivity=20, cells=160, tail_ratio=0.35)
    mechanism, made = pn.Mechanism(law), []
    epsilons = np.linspace(0.0, mechanism.epsilon(1e-8, count, rate).upper, 300)
    honest = Question.bounds_at

    def counted(*arguments):
        made.append(arguments)
        return honest(*arguments)

    with mock.patch.object(Question, "bounds_at", counted):
        profile = mechanism.composed(count, rate).profile(epsilons)
    assert len(made) <= 6
    # Twice the default width of delta, which is ten of epsilon's at most.
    assert np.all(np.log(profile.upper / profile.lower) <= 2e-3)
    for k in (30, 150, 270):
        alone = mechanism.delta(epsilons[k], count, rate)
        assert profile.lower[k] <= alone.upper
        assert alone.lower <= profile.upper[k]


@contextlib.contextmanager
def counted_nodes():
    """The nodes of all compositions by the direct composer."""
    nodes, honest = [], Composition.compose

    def counted(self, side, count, plan):
        nodes.append(count)
        return honest(self, side, count, plan)

    with mock.patch.object(Composition, "compose", counted):
        yield nodes


@for_each([0.6, 0.973, 1.02, 1.4])
def test_a_wrong_guess_of_delta_costs_few_nodes(epsilon):
    """The saddle point is e^60 off there. Mutant: nodes that are placed for the first guess, four
    times as many from round to round, before there is another one (51,000 to 91,000)."""
    with counted_nodes() as nodes:
        delta = pn.Mechanism(pn.Gaussian(std=5.0)).delta(epsilon, 10, 0.01)
    assert delta.width <= 1e-3 * delta.upper
    assert sum(nodes) <= 20_000


def test_a_profile_of_deltas_beyond_use_takes_few_nodes():
    """Below 1e-30 a profile is as close as its epsilons are. Mutant: .2 % of delta (770,000 nodes
    where there are 155,000)."""
    mechanism, epsilons = pn.Mechanism(pn.Gaussian(std=5.0)), np.linspace(0.05, 1.5, 30)
    with counted_nodes() as nodes:
        profile = mechanism.profile(epsilons, 10, 0.01)
    assert sum(nodes) <= 250_000
    assert 0.0 < profile.lower[-1] <= 3e-190
    slopes = -np.gradient(np.log(profile.lower), epsilons)
    close = np.log(profile.upper / profile.lower) <= 2.5e-4 * slopes * epsilons
    assert np.count_nonzero(~close) <= 4
    alone = mechanism.delta(float(epsilons[10]), 10, 0.01)
    assert profile.lower[10] <= alone.upper
    assert alone.lower <= profile.upper[10]


@for_each([[9.0], [0.0, 9.0], [3.0, 9.0, 9.5]])
def test_profile_of_one_use_at_few_epsilons(epsilons):
    """Mutant: no edges but the epsilons: all below one stands a rounding above it (9.6e-13)."""
    epsilons = np.array(epsilons)
    exact = stats.norm.cdf(0.5 - epsilons) - np.exp(epsilons) * stats.norm.cdf(-0.5 - epsilons)
    for std, count in ((1.0, 1), (4.0, 16)):
        found = pn.Mechanism(pn.Gaussian(std=std)).delta(epsilons, count)
        assert np.all(found.lower <= exact * (1.0 + 1e-9))
        assert np.all(exact * (1.0 - 1e-9) <= found.upper)
        assert np.all(found.upper <= found.lower * (1.0 + 1e-6))
    sampled = pn.Mechanism(pn.Gaussian(std=1.0))
    alone = [sampled.delta(epsilon, 1, 0.01) for epsilon in epsilons.tolist()]
    np.testing.assert_allclose(sampled.delta(epsilons, 1, 0.01).upper, alone, rtol=1e-6)


def test_profile_edges():
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    assert mechanism.composed().estimate.profile([]).shape == (0,)
    assert mechanism.profile([]).upper.shape == (0,)
    assert mechanism.composed().estimate.profile(1.0).shape == ()
    assert mechanism.profile(1, 3, 0.5).upper.shape == ()
    assert mechanism.profile([-math.inf, math.inf]).upper.tolist() == [1.0, 0.0]
    with pytest.raises(pn.DomainError, match="epsilons"):
        mechanism.profile([math.nan])
    with pytest.raises(TypeError, match="epsilons"):
        mechanism.profile([True])


@for_each(["add", "remove"])
def test_one_direction_bounds_both_orders(adjacency):
    """Kills: lines that are mirrored with the delta of one direction."""
    std, rate, alphas = 0.5, 0.1, np.array([0.01, 0.3, 0.8])
    # The likelihood ratio rises with the output: both tests are half-lines.
    cuts = np.linspace(-12.0, 14.0, 200_001)
    plain = stats.norm.sf(cuts, scale=std)
    mixed = (1.0 - rate) * plain + rate * stats.norm.sf(cuts, loc=1.0, scale=std)
    one = np.interp(alphas, plain[::-1], 1.0 - mixed[::-1])
    other = np.interp(alphas, 1.0 - mixed, plain)
    composed = pn.Mechanism(pn.Gaussian(std=std)).composed(1, rate, adjacency)
    for found in (composed.tradeoff(alphas), composed.estimate.tradeoff(alphas)):
        assert np.all(found <= np.minimum(one, other) + 1e-6)
    assert np.all(composed.tradeoff(alphas) >= 0.1)


@for_rows(
    [
        (pn.Gaussian(std=1.0), 2000, 0.01, 1e-9),
        (pn.Airy(mean_abs=2.0), 100, 1.0, 1e-9),
        (pn.Gaussian(std=2.0), 10, 0.1, 1e-9),
        # Their contours do not all converge.
        (pn.Laplace(scale=2.0), 30, 1.0, 2e-6),
        (pn.TruncatedLaplace(epsilon=0.1, delta=1e-6), 20, 1.0, 2e-6),
    ]
)
def test_estimates_of_a_profile_are_those_of_each_epsilon(law, count, rate, close):
    """Kills: a contour that is read far from its saddle point; infinite losses left out."""
    estimate = pn.Mechanism(law).composed(count, rate).estimate
    epsilons = np.array([-2.0, -0.1, 0.0, 0.2, 0.21, 0.7, 1.9, 2.0, 2.1, 5.0, 40.0, math.inf])
    found = estimate.profile(epsilons)
    alone = [estimate.delta(epsilon) for epsilon in epsilons.tolist()]
    np.testing.assert_allclose(found, alone, rtol=close, atol=1e-300)
