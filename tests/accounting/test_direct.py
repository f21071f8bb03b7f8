"""The direct composer: any nodes give bounds, and they agree with those of the lattices."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import atoms_delta, gaussian_delta, gaussian_epsilon, laplace_delta

import psinoise as pn
from psinoise.accounting.compose import choose
from psinoise.accounting.compose.bins import atoms_source, dense
from psinoise.accounting.compose.direct import Composition
from psinoise.accounting.compose.measure import (
    Bins,
    Measure,
    exact_product,
    lower_nodes,
    product,
    trimmed,
    upper_nodes,
)
from psinoise.accounting.compose.profile import DirectBound
from psinoise.accounting.compose.refine import direct_bounds
from psinoise.accounting.loss.pairs import Pair
from refusals import for_each

# A narrow bulk and rare large losses, with a share of 1e-16 between.
STEP, COUNT = 0.01, 8
INDEX = [-2, -1, 0, 1, 2, 30, 60, 61]
MASS = [0.1, 0.2, 0.35, 0.25, 0.1 - 3e-8, 1e-8, 1e-8, 1e-8]
# At 0.9 two large losses or more decide; below 0.1 none is needed.
EPSILONS = (0.05, 0.25, 0.503, 0.58, 0.9)


def rare_losses(epsilon):
    """Log of the exact delta, and the same losses as atoms to compose."""
    exact = mp.log(atoms_delta(INDEX, MASS, STEP, COUNT, epsilon))
    source = atoms_source(np.log(MASS), STEP * np.array(INDEX))
    return exact, Composition(((source, source),), (COUNT,), float(exact))


def gaussian_uses(count, epsilon):
    exact = mp.log(gaussian_delta(epsilon, mp.sqrt(count)))
    source = dense(Pair(pn.Gaussian(std=1.0), 1.0, 1.0), "remove", 80.0)
    return exact, Composition(((source, source),), (count,), float(exact))


def bounds_at(composition, epsilon, count, plan=None):
    return [
        composition.compose(side, count, plan)[0].log_delta(epsilon) for side in ("lower", "upper")
    ]


@for_each(EPSILONS, [4, 9, 33, 200])
def test_any_nodes_give_bounds_on_atoms(epsilon, count):
    """Kills: nodes on the wrong side, products left out, trimmed mass that is lost."""
    exact, composition = rare_losses(epsilon)
    low, high = bounds_at(composition, epsilon, count)
    assert low <= exact <= high
    _, stages = composition.compose("middle", count, None)
    middle, _ = composition.compose("middle", count, None)
    plan = composition.plan(middle, stages, epsilon, 20.0)
    low, high = bounds_at(composition, epsilon, count, plan)
    assert low <= exact <= high


@for_each([2, 3, 7, 64], [-1.0, 0.5, 4.0], [3, 20, 300])
def test_any_nodes_give_bounds_on_densities(count, deviations, nodes):
    epsilon = count / 2 + deviations * math.sqrt(count)
    exact, composition = gaussian_uses(count, epsilon)
    low, high = bounds_at(composition, epsilon, nodes)
    assert low <= exact <= high


def test_rounds_are_ever_closer():
    """Each pair of bounds holds, and the last is as close as was asked for."""
    epsilon = 30.0
    exact, composition = gaussian_uses(20, epsilon)

    def crossing(bound, around, stride):
        return bound.epsilon(float(exact), around, stride)

    widths = []
    for lower, upper in direct_bounds(composition, crossing, lambda epsilon, slope: 1e-4):
        low, high = (crossing(bound, 29.0, 0.1) for bound in (lower, upper))
        assert low <= epsilon * (1.0 + 1e-12)
        assert high >= epsilon * (1.0 - 1e-12)
        widths.append(high - low)
        if widths[-1] <= 1e-4:
            break
    assert 1 < len(widths) < 10
    assert widths[-1] == min(widths) <= 1e-4


# -- the pieces ------------------------------------------------------------------------------------


def random_bins(seed, count):
    random = np.random.default_rng(seed)
    width = 10.0 ** random.uniform(-6.0, 1.0, count)
    edges = np.concatenate([[-3.0], -3.0 + np.cumsum(width)])
    mean = random.random(count) * np.diff(edges)
    return Bins(edges, random.random(count), (mean, mean))


@for_each(range(6))
def test_nodes_keep_what_they_should(seed):
    bins = random_bins(seed, 50)
    loss, mass = upper_nodes(bins)
    total = bins.mass.sum()
    assert mass.sum() == pytest.approx(total, rel=1e-14)
    # Of a loss at the mean alone the mass under Q is kept too.
    other = np.sum(bins.mass * np.exp(-bins.middle))
    assert np.sum(mass * np.exp(-loss)) == pytest.approx(other, rel=1e-9)
    loss, mass = lower_nodes(bins)
    assert mass.sum() == pytest.approx(total, rel=1e-14)
    assert np.all(loss <= bins.middle * (1.0 + 1e-15 * np.sign(bins.middle)))
    assert np.all(loss >= bins.edges[:-1])
    # The merged loss of the worst spread with this mean, which has mass at both ends alone.
    width = np.diff(bins.edges)
    share = bins.mean[0] / width
    merged = bins.edges[:-1] - np.log1p(share * np.expm1(-width))
    assert np.all(loss <= merged + 1e-13 * np.maximum(np.abs(merged), 1.0))


def measure(side, seed, count=20):
    random = np.random.default_rng(seed)
    loss = np.sort(random.standard_normal(count))
    mass = random.random(count) ** 6
    return Measure(side, loss, mass / mass.sum(), 0.0, 0.0, 0.0)


def excess(held, epsilon):
    """The profile of a measure, from its definition."""
    return math.fsum(held.mass * np.maximum(-np.expm1(epsilon - held.loss), 0.0)) + held.infinite


@for_each(range(4))
def test_products_and_trimming_stay_on_their_side(seed):
    a, b = measure("upper", seed), measure("upper", 100 + seed)
    exact = exact_product(a, b)
    assert exact.loss.size == 400
    edges = np.linspace(exact.span[0] - 1e-9, exact.span[1] + 1e-9, 12)
    for epsilon in np.linspace(-2.0, 3.0, 11):
        truth = excess(exact, epsilon)
        if truth > 1e-200:
            found = DirectBound(a, b).log_delta(epsilon)
            assert found == pytest.approx(math.log(truth), abs=1e-9)
        for side, sign in (("lower", -1.0), ("upper", 1.0)):
            sided = [Measure(side, m.loss, m.mass, 0.0, 0.0, 0.0) for m in (a, b)]
            binned, _ = product(*sided, edges)
            assert sign * (excess(binned, epsilon) - truth) >= -1e-14
            small = np.full(20, math.log(1e-2))
            cut = trimmed(sided[0], math.log(1e-2), small)
            assert cut.loss.size < 20
            assert sign * (excess(cut, epsilon) - excess(a, epsilon)) >= -1e-14
            assert cut.mass.sum() + cut.infinite <= 1.0 + 1e-11


# -- against the lattices --------------------------------------------------------------------------

LAPLACE = 1.0 / 3.0
QUESTIONS = [
    (pn.Gaussian(std=1.0), 10, 1.0, 1e-8, gaussian_epsilon(mp.sqrt(10), 1e-8)),
    (pn.Gaussian(std=1.0), 100, 1.0, 1e-30, gaussian_epsilon(10, 1e-30)),
    (pn.Gaussian(std=30.0), 3000, 1.0, 1e-6, gaussian_epsilon(mp.sqrt(3000) / 30, 1e-6)),
    (pn.Laplace(scale=3.0), 10, 1.0, float(laplace_delta(1.5, 3.0, 10)), 1.5),
    (pn.Laplace(scale=3.0), 30, 1.0, float(laplace_delta(2.5, 3.0, 30)), 2.5),
    (pn.Gaussian(std=1.0), 2000, 0.01, 1e-8, 3.635618467349736),
    (pn.Airy(mean_abs=2.0), 2000, 0.01, 1e-8, 0.940270409056225),
    (pn.Laplace(scale=2.0), 2000, 0.01, 1e-8, 1.0878258217641747),
]


def test_the_composers_agree(monkeypatch):
    """Each bracket holds the value, and so do both together."""
    seen = set()
    for law, count, rate, delta, exact in QUESTIONS:
        mechanism = pn.Mechanism(law)
        found = [mechanism.composed(count, rate).epsilon(delta)]
        with monkeypatch.context() as patch:
            patch.setattr(choose, "_on_lattices", lambda *_: iter(()))
            found.append(mechanism.composed(count, rate).epsilon(delta))
        assert found[1].composer == "direct"
        seen.add(found[0].composer)
        for bracket in found:
            assert bracket.lower <= exact * (1 + 1e-10), (law, count, bracket)
            assert bracket.upper >= exact * (1 - 1e-10), (law, count, bracket)
            assert bracket.width <= 1e-3 * exact
        assert max(b.lower for b in found) <= min(b.upper for b in found)
    assert seen >= {"window", "frequencies"}
