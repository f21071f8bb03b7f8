"""The direct composer: any nodes give bounds, and they agree with those of the lattices."""

from __future__ import annotations

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import atoms_delta, gaussian_delta, gaussian_epsilon, laplace_delta

import psinoise as pn
from psinoise.accounting.compose import choose
from psinoise.accounting.compose.direct.composition import Composition
from psinoise.accounting.compose.direct.plan import lattice_edges
from psinoise.accounting.compose.direct.products import (
    exact_product,
    least_excess,
    most_excess,
    product,
    trimmed,
)
from psinoise.accounting.compose.direct.profile import DirectBound, SampledBound
from psinoise.accounting.compose.direct.refine import direct_bounds
from psinoise.accounting.compose.measures.dense import atoms_source, dense
from psinoise.accounting.compose.measures.measure import (
    Bins,
    Measure,
    in_order,
    lower_nodes,
    upper_nodes,
)
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
    bounds = direct_bounds(composition, crossing, lambda epsilon, slope: 1e-4)
    for upper, lower in zip(bounds, bounds, strict=True):
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
    return Bins(edges, random.random(count), mean)


@for_each(range(6))
def test_nodes_keep_what_they_should(seed):
    bins = random_bins(seed, 50)
    over = -np.expm1(-bins.mean)
    total = bins.mass.sum()
    other = np.sum(bins.mass * np.exp(-bins.middle))
    for loss, _, mass in (upper_nodes(bins, over), lower_nodes(bins, over)):
        assert mass.sum() == pytest.approx(total, rel=1e-14)
        assert np.sum(mass * np.exp(-loss)) == pytest.approx(other, rel=1e-9)
    # Merged losses that lie above the next are put in order, with their masses. Kills: the least of
    # those that follow for each, of which a light one has a heavy one far below its own loss.
    own = bins.edges[:-1] - np.log1p(-np.minimum(over * 1e3, 1.0 - 2.0**-53))
    loss, _, mass = lower_nodes(bins, np.minimum(over * 1e3, 1.0))
    order = np.argsort(own)
    np.testing.assert_allclose(loss, own[order], rtol=1e-12)
    assert np.array_equal(mass, bins.mass[order])


@for_each([1e-9, 1e-3, 0.7, 5.0, 60.0], range(4))
def test_two_moments_bound_the_excess(width, seed):
    """From both sides, closely in narrow bins, and exactly at their ends."""
    random = np.random.default_rng(seed)
    x = width * random.random((50, 3)) ** random.choice([0.2, 1.0, 9.0])
    x[0], x[1] = 0.0, width
    share = random.dirichlet(np.ones(3), 50)
    true = np.sum(share * -np.expm1(-x), axis=1)
    mean, square = np.sum(share * x, axis=1), np.sum(share * x**2, axis=1)
    low, high = least_excess(mean, square), most_excess(mean, square, np.full(50, width))
    room = 1e-13 * true
    assert np.all(low <= true + room)
    assert np.all(high >= true - room)
    assert np.all(high - low <= width**3 / 4.0 + room)
    assert low[0] == high[0] == 0.0
    assert low[1] == pytest.approx(true[1], rel=1e-13)
    assert high[1] == pytest.approx(true[1], rel=1e-13)


@for_each([0.0, 1.0, 12.5, 3000.0], [1e-3, 1.0], range(3))
def test_edges_lie_on_lattices(offset, scale, seed):
    random = np.random.default_rng(seed)
    ends = offset + scale * np.concatenate([[0.0], np.cumsum(10.0 ** random.uniform(-4, 1, 30))])
    counts = random.uniform(0.5, 40.0, 30)
    edges = lattice_edges(ends, counts)
    width = np.diff(edges)
    assert edges[0] <= ends[0] <= ends[-1] <= edges[-1]
    assert np.all(np.frexp(width)[0] == 0.5)
    assert np.all(edges[:-1] % width == 0.0)
    assert edges.size <= 2.0 * np.maximum(counts, 1.0).sum() + 40 * 30


def measure(side, seed, count=20):
    """Losses anywhere, or near points of lattices; from above they are points."""
    random = np.random.default_rng(seed)
    mass = random.random(count) ** 6
    if seed % 2:
        loss = point = np.sort(random.standard_normal(count))
    else:
        step = 2.0 ** -random.integers(1, 5)
        point = step * (np.arange(count) - random.integers(0, count))
        far = 0.0 if side == "upper" else random.uniform(-0.24, 0.24, count)
        loss = point + step * far
    return Measure(side, loss, point, mass / mass.sum(), 0.0, 0.0, 0.0)


def excess(held, epsilon):
    """The profile of a measure, from its definition."""
    return math.fsum(held.mass * np.maximum(-np.expm1(epsilon - held.loss), 0.0)) + held.infinite


@for_each([0, 1, 2, 3, 4, 5, 6, 8], ["lower", "upper"])
def test_products_and_trimming_stay_on_their_side(seed, side):
    """Kills: bins of points without room below, first moments alone, second ones too small."""
    a, b = measure(side, seed, 40), measure(side, 100 + seed, 70)
    exact = exact_product(a, b)
    sign = 1.0 if side == "upper" else -1.0
    ends = sum(m.span[0] for m in (a, b)) - 1e-9, sum(m.span[1] for m in (a, b)) + 1e-9
    spread = lattice_edges(np.linspace(*ends, 7), np.full(6, 9.0))
    for edges in (np.linspace(*ends, 12), spread):
        binned, _ = product(a, b, edges)
        assert np.all(np.diff(binned.loss) >= 0.0)
        for epsilon in np.linspace(*ends, 41):
            truth = excess(exact, epsilon)
            assert sign * (excess(binned, epsilon) - truth) >= -1e-13 * truth
            if truth > 1e-200:
                found = DirectBound(a, b).log_delta(epsilon)
                assert found == pytest.approx(math.log(truth), abs=1e-9)
    cut = trimmed(a, math.log(5e-2), np.full(40, math.log(5e-2)))
    assert cut.loss.size == cut.point.size < 40
    assert cut.mass.sum() + cut.infinite <= 1.0 + 1e-11
    for epsilon in np.linspace(*a.span, 11):
        assert sign * (excess(cut, epsilon) - excess(a, epsilon)) >= -1e-14


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


def no_lattices(*_):
    """What they say where there are none."""
    yield from ()
    return math.inf


def test_the_composers_agree(monkeypatch):
    """Each bracket holds the value, and so do both together."""
    seen = set()
    for law, count, rate, delta, exact in QUESTIONS:
        mechanism = pn.Mechanism(law)
        found = [mechanism.composed(count, rate).epsilon(delta)]
        with monkeypatch.context() as patch:
            patch.setattr(choose, "_on_lattices", no_lattices)
            found.append(mechanism.composed(count, rate).epsilon(delta))
        assert found[1].composer == "direct"
        seen.add(found[0].composer)
        for bracket in found:
            assert bracket.lower <= exact * (1 + 1e-10), (law, count, bracket)
            assert bracket.upper >= exact * (1 - 1e-10), (law, count, bracket)
            assert bracket.width <= 1e-3 * exact
        assert max(b.lower for b in found) <= min(b.upper for b in found)
    assert "frequencies" in seen


@for_each(["lower", "upper"], [0.0, 3e-6, 0.02])
def test_the_profile_of_one_measure_is_inverted_outwards(side, rest):
    """Every crossing answers, and one a little further in does not."""
    draw = np.random.default_rng(3)
    loss = np.sort(draw.normal(size=40))
    mass = draw.random(40)
    infinite = rest if side == "upper" else 0.0
    measure = Measure(side, loss, loss, mass / mass.sum(), infinite, 1e-12, 1e-11)
    bound, out = DirectBound(measure, None), 1.0 if side == "upper" else -1.0
    for delta in 10.0 ** -np.linspace(0.5, 12.0, 60):
        found = bound.epsilon(math.log(delta), 0.0, 1.0)
        if delta <= infinite:
            assert found == math.inf
            continue
        if found == 0.0:
            assert bound.log_delta(0.0) <= math.log(delta)
            continue
        assert out * (bound.log_delta(found) - math.log(delta)) <= 0.0
        further_in = found - out * 5e-13
        assert out * (bound.log_delta(further_in) - math.log(delta)) > 0.0
        assert bound.log_delta(found) == pytest.approx(bound.log_deltas(np.array([found]))[0])


# -- masses that share a total ---------------------------------------------------------------------


@for_each(["lower", "upper"], [0, 1, 2, 3])
def test_masses_in_order_are_ahead_whatever_their_errors(side, seed):
    """Kills: factors the other way around, a pivot that keeps its own mass."""
    generator = np.random.default_rng(seed)
    sign = 1.0 if side == "upper" else -1.0
    loss = np.sort(generator.normal(size=300))
    true = generator.uniform(size=300) ** 4
    true /= math.fsum(true)
    rounding = 1e-9 * generator.uniform(size=300)
    direction = (1.0, -1.0, np.sign(loss), -np.sign(loss))[seed]
    found = in_order(loss, true * (1.0 + direction * rounding), rounding, 1.0, sign)
    tails, exact = (np.cumsum(part[::-1])[::-1] for part in (found, true))
    assert (sign * (tails - exact) >= -1e-14).all()
    assert tails[0] == pytest.approx(1.0, abs=1e-14)
    # Masses that lack more than rounding are of another total.
    assert in_order(loss, 0.999 * true, rounding, 1.0, sign) is None


def test_rounding_of_a_billion_uses_does_not_add_up():
    """The mutant: masses that each bear their own rounding in every product."""
    count, log_delta = 10**9, math.log(1e-5)
    std = math.sqrt(count)
    exact = float(gaussian_epsilon(mp.sqrt(count) / mp.mpf(std), 1e-5))
    source = dense(Pair(pn.Gaussian(std=std), 1.0, 1.0), "remove", 80.0)
    assert source.whole
    width = {}
    for whole in (True, False):
        each = dataclasses.replace(source, whole=whole)
        composition = Composition(((each, each),), (count,), log_delta)
        plan = composition.plan(
            *composition.compose("middle", 256, None), exact, -log_delta / exact
        )
        low, high = (
            composition.compose(side, 3000, plan)[0].epsilon(log_delta, exact, 0.1)
            for side in ("lower", "upper")
        )
        assert low <= exact <= high
        width[whole] = high - low
    assert width[True] <= 0.7 * width[False]


# -- one use ---------------------------------------------------------------------------------------


@for_each(
    [pn.Laplace(scale=1.0), pn.Laplace(scale=100.0), pn.Gaussian(std=1.0), pn.Airy(mean_abs=2.0)],
    [1.0, 0.01],
    [1e-3, 1e-6, 1e-30],
    ["remove", "add"],
)
def test_samples_know_where_one_use_is(law, rate, delta, direction):
    """Kills: masses lumped at the nodes; a chord for the cubic."""
    found = pn.Accountant(direction).compose(pn.Mechanism(law), 1, rate).epsilon(delta)
    source = dense(Pair(law, 1.0, rate), direction, 150.0)
    sampled = SampledBound(source, np.ones(source.lowest.size, dtype=bool))
    assert sampled.epsilon(math.log(delta), 0.0, 1.0) == pytest.approx(found, rel=1e-4)
