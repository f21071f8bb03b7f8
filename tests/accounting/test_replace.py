"""Replaced records under Poisson sampling: the lemma of ``adjacency``, and the pair it names.

Mutants killed here: the pair of ``c`` against 0 and of ``2c`` against 0, the sampled record moved
the same way under both hypotheses, and sampling applied to one of them only.
"""

from __future__ import annotations

import itertools
import json
import math

import mpmath as mp
import numpy as np
import pytest

import psinoise as pn
from psinoise.__main__ import main
from psinoise.accounting.loss.measure import LossMeasure
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.quadrature import nodes
from psinoise.accounting.question import Question
from refusals import for_each, for_rows

NOISES = [pn.Gaussian(std=1.2), pn.Laplace(scale=0.9), pn.Airy(mean_abs=1.0)]


def replaceable(noise, contribution=1.0):
    return pn.Mechanism(noise, 2.0 * contribution, contribution=contribution)


def epsilon_of(noise, delta, count, rate, contribution=1.0):
    return replaceable(noise, contribution).composed(count, rate, "replace").estimate.epsilon(delta)


# -- the lemma -------------------------------------------------------------------------------------


def profiles(density, shifts, rate, gamma, x):
    """``H_gamma(P_v, P_v')`` for all pairs of shifts, by the midpoint rule."""
    sampled = np.array([(1.0 - rate) * density(x) + rate * density(x - v) for v in shifts])
    step = x[1] - x[0]
    return np.array([np.maximum(p - gamma * sampled, 0.0).sum(axis=1) * step for p in sampled])


@for_each(NOISES, [0.02, 0.5, 0.97], [0.4, 2.5])
def test_opposite_records_are_the_worst(noise, rate, contribution):
    x = np.linspace(-20.0, 20.0, 16001)
    shifts = contribution * np.linspace(-1.0, 1.0, 9)
    for gamma in (0.3, 0.9, 0.99, 1.0, 1.01, 1.1, 1.5, 3.0, 20.0):
        found = profiles(noise.pdf, shifts, rate, gamma, x)
        # The rule is off by the step squared where the positive part has a kink.
        assert found.max() <= found[-1, 0] + 1e-6
        assert found[0, -1] == pytest.approx(found[-1, 0], abs=1e-12)


def test_opposite_vectors_are_the_worst_for_gaussian_noise():
    axis = np.linspace(-8.0, 8.0, 161)
    x, y = (a.ravel() for a in np.meshgrid(axis, axis))
    area = (axis[1] - axis[0]) ** 2 / (2.0 * math.pi)
    shifts = [
        (r * math.cos(t), r * math.sin(t)) for r in (0.5, 1.5) for t in np.linspace(0.0, math.pi, 7)
    ]
    rate = 0.3
    rest = (1.0 - rate) * np.exp(-0.5 * (x * x + y * y))
    sampled = [rest + rate * np.exp(-0.5 * ((x - a) ** 2 + (y - b) ** 2)) for a, b in shifts]
    for gamma in (0.8, 1.0, 1.2, 2.0):
        found = [[np.maximum(p - gamma * q, 0.0).sum() * area for q in sampled] for p in sampled]
        assert np.max(found) <= found[7][-1] + 1e-3
        assert found[7][-1] > found[7][7] + 0.01


def test_the_lemma_needs_its_assumptions():
    """Two far peaks that a shift by ``c`` exchanges: a record against none is worse."""

    def two_peaks(x):
        return np.exp(-50.0 * (x - 3.0) ** 2) + np.exp(-50.0 * (x + 3.0) ** 2)

    x = np.linspace(-12.0, 12.0, 8001)
    norm = two_peaks(x).sum() * (x[1] - x[0])
    shifts = np.array([-3.0, 0.0, 3.0])
    found = profiles(lambda x: two_peaks(x) / norm, shifts, 0.9, 1.05, x)
    assert found[2, 1] > found[2, 0] + 0.4


def test_other_laws_are_refused():
    with pytest.raises(pn.DomainError, match="log-concave"):
        replaceable(pn.Cauchy(scale=1.0)).composed(10, 0.5, "replace").estimate.epsilon(1e-6)
    assert (
        replaceable(pn.Cauchy(scale=1.0)).composed(10, 1.0, "replace").estimate.epsilon(1e-6) > 0.0
    )


# -- values ----------------------------------------------------------------------------------------


def tails(noise, rate, x, shift):
    """``P(X > x)`` of the sampled pair whose record moves the query by a shift."""
    return (1.0 - rate) * noise.ccdf(x) + rate * noise.ccdf(x - shift)


def loss_at(noise, rate, contribution, x):
    base = noise.logpdf(x)
    up = np.expm1(noise.logpdf(x - contribution) - base)
    down = np.expm1(noise.logpdf(x + contribution) - base)
    return np.log1p(rate * up) - np.log1p(rate * down)


def delta_once(noise, rate, contribution, epsilon):
    """Delta of one use from the half-line on which the loss, which rises, exceeds epsilon."""
    low, high = np.full_like(epsilon, -60.0), np.full_like(epsilon, 60.0)
    for _ in range(70):
        middle = 0.5 * (low + high)
        above = loss_at(noise, rate, contribution, middle) > epsilon
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    p, q = (tails(noise, rate, high, sign * contribution) for sign in (1.0, -1.0))
    return np.maximum(p - np.exp(epsilon) * q, 0.0)


@for_rows(
    (noise, rate, contribution)
    for noise in NOISES
    for rate, contribution in [(0.01, 1.0), (0.4, 0.3), (0.9, 4.0)]
)
def test_one_use(noise, rate, contribution):
    mechanism = replaceable(noise, contribution)
    top = mechanism.composed(1, rate, "replace").estimate.epsilon(0.0)
    for share in (0.1, 0.4, 0.8):
        # Below 1e-12 the oracle has lost its digits.
        epsilon = share * min(top, epsilon_of(noise, 1e-12, 1, rate, contribution))
        exact = float(delta_once(noise, rate, contribution, np.array([epsilon]))[0])
        bounds = mechanism.delta(epsilon, 1, rate, "replace")
        assert bounds.estimate == pytest.approx(exact, rel=1e-8, abs=1e-15)
        assert bounds.lower <= exact * (1.0 + 1e-8)
        assert exact * (1.0 - 1e-8) <= bounds.upper
        found = mechanism.epsilon(bounds.estimate, 1, rate, "replace")
        assert found.lower - 1e-9 <= epsilon <= found.upper + 1e-9
        assert found.upper - found.lower <= 1e-4 * max(1.0, epsilon)


def test_one_gaussian_use_at_40_digits():
    rate, epsilon = mp.mpf(1) / 10, mp.mpf(1) / 2
    with mp.workdps(40):

        def sampled(x, shift, function):
            return (1 - rate) * function(x) + rate * function(x - shift)

        def excess(x):
            return mp.log(sampled(x, 1, mp.npdf) / sampled(x, -1, mp.npdf)) - epsilon

        x = mp.findroot(excess, 2)
        exact = sampled(-x, -1, mp.ncdf) - mp.exp(epsilon) * sampled(-x, 1, mp.ncdf)
    delta = replaceable(pn.Gaussian(std=1.0)).composed(1, 0.1, "replace").estimate.delta(0.5)
    assert delta == pytest.approx(float(exact), rel=1e-12)


@for_each(NOISES, [0.05, 0.6])
def test_two_uses(noise, rate):
    """``delta_2(eps) = E_P[delta_1(eps - L)]``, over all outputs of the first use."""
    points, weights = np.polynomial.legendre.leggauss(12)
    # Even numbers of panels to each side of the kinks of Laplace noise, and of its atoms.
    edges = np.linspace(-30.0, 30.0, 601)
    half = 0.5 * np.diff(edges)[:, None]
    x = (edges[:-1, None] + half + half * points).ravel()
    loss = loss_at(noise, rate, 1.0, x)
    mass = (half * weights).ravel() * ((1.0 - rate) * noise.pdf(x) + rate * noise.pdf(x - 1.0))
    for epsilon in (0.3, 1.1):
        inner = delta_once(noise, rate, 1.0, epsilon - loss)
        exact = float(mass @ inner)
        bounds = replaceable(noise).delta(epsilon, 2, rate, "replace")
        assert bounds.estimate == pytest.approx(exact, rel=1e-4, abs=1e-12)
        assert bounds.lower <= exact * (1.0 + 1e-5)
        assert exact * (1.0 - 1e-5) <= bounds.upper


@for_each(NOISES)
def test_many_uses_lie_between_rounded_lattices(noise):
    """Losses rounded up and down to a lattice, convolved: bounds that share nothing with ours."""
    rate, count, step, size = 0.05, 64, 1e-3, 2**15
    x = np.linspace(-25.0, 25.0, 400_001)
    mass = -np.diff(tails(noise, rate, x, 1.0))
    loss = loss_at(noise, rate, 1.0, x)
    deltas = []
    for place in (np.floor(loss[:-1] / step), np.ceil(loss[1:] / step)):
        single = np.zeros(size)
        np.add.at(single, place.astype(int) % size, mass)
        composed = np.fft.irfft(np.fft.rfft(single) ** count, size)
        position = np.fft.fftfreq(size, 1.0 / size) * step
        weight = np.maximum(-np.expm1(np.minimum(1.0 - position, 0.0)), 0.0)
        deltas.append(float(composed @ weight))
    bounds = replaceable(noise).delta(1.0, count, rate, "replace")
    assert deltas[0] <= bounds.upper
    assert bounds.lower <= deltas[1]
    assert deltas[0] <= bounds.estimate <= deltas[1]
    # Narrow enough to tell the pairs of c and of 2c against no record from this one.
    for shift in (1.0, 2.0):
        other = pn.Mechanism(noise, shift).composed(count, rate).estimate.delta(1.0)
        assert not deltas[0] <= other <= deltas[1]


@for_each(NOISES, [1e-4, 0.3, 0.999], [0.1, 8.0])
def test_masses_of_both_densities(noise, rate, contribution):
    measure = LossMeasure(nodes(Pair(noise, contribution, rate, replaced=True), 60.0), "remove")
    assert math.fsum(measure.mass) == pytest.approx(1.0, abs=1e-13)
    assert math.fsum(np.exp(measure.log_mass - measure.loss)) == pytest.approx(1.0, abs=1e-13)


@for_each(NOISES)
def test_both_directions_are_the_same(noise):
    steps = ((Pair(noise, 1.0, 0.1, replaced=True), 30),)
    directions = [
        Question(steps, only=(direction,), estimating=True).epsilon(1e-6).estimate
        for direction in ("remove", "add")
    ]
    assert directions[0] == pytest.approx(directions[1], rel=1e-11)


@for_each(NOISES)
def test_monotone(noise):
    def rising(values):
        return all(a < b for a, b in itertools.pairwise(values))

    def upper(delta, count, rate, contribution=1.0):
        mechanism = replaceable(noise, contribution)
        return mechanism.epsilon(delta, count, rate, "replace").upper

    assert rising([upper(1e-6, n, 0.05) for n in (1, 2, 10, 300, 10**4, 10**8)])
    assert rising([upper(1e-6, 50, q) for q in (1e-3, 0.05, 0.5, 0.9, 1.0)])
    assert rising([upper(1e-6, 50, 0.1, c) for c in (0.1, 0.5, 0.51, 2.0)])
    assert rising([upper(d, 50, 0.1) for d in (1e-2, 1e-6, 1e-20)])


@for_each(NOISES, [1, 12])
def test_limits_of_the_rate(noise, count):
    whole = pn.Mechanism(noise, 2.0).composed(count).estimate.epsilon(1e-5)
    assert epsilon_of(noise, 1e-5, count, 1.0) == whole
    assert epsilon_of(noise, 1e-5, count, 1.0 - 1e-12) == pytest.approx(whole, rel=2e-6)
    assert epsilon_of(noise, 1e-5, count, 1e-7) == 0.0
    # A record against none is better than two against each other, and twice it is worse.
    for rate in (0.01, 0.4):
        lower, upper = (
            pn.Mechanism(noise, shift).composed(count, rate).estimate.epsilon(1e-5)
            for shift in (1.0, 2.0)
        )
        found = epsilon_of(noise, 1e-5, count, rate)
        assert lower < found
        assert found < upper or rate < 0.1


@for_rows(
    (noise, count, rate)
    for noise in NOISES
    for count, rate in [(1, 0.1), (2000, 0.01), (10**6, 1e-3)]
)
def test_brackets(noise, count, rate):
    mechanism = replaceable(noise)
    for delta in (1e-4, 1e-10):
        bounds = mechanism.epsilon(delta, count, rate, "replace", tolerance=2e-4 * count**0.25)
        assert bounds.lower <= bounds.estimate <= bounds.upper
        renyi = mechanism.composed(count, rate, "replace").renyi.epsilon(delta)
        assert bounds.lower <= renyi
    limit = mechanism.composed(count, rate, "replace").clt.epsilon(1e-4)
    assert count < 10**6 or limit == pytest.approx(epsilon_of(noise, 1e-4, count, rate), rel=0.05)


def test_narrow_bracket():
    bounds = replaceable(pn.Gaussian(std=1.0)).epsilon(1e-8, 100, 0.1, "replace", tolerance=1e-6)
    assert bounds.lower <= bounds.estimate <= bounds.upper <= bounds.lower + 1e-6


# -- everything around it --------------------------------------------------------------------------


def test_contributions_are_checked():
    noise = pn.Gaussian(std=1.0)
    for wrong, error in ((0.0, pn.DomainError), (math.nan, pn.DomainError), ("1", TypeError)):
        with pytest.raises(error, match="contribution"):
            pn.Mechanism(noise, contribution=wrong)
    small = pn.Mechanism(noise, 1.5, contribution=1.0)
    with pytest.raises(pn.DomainError, match="at most half the sensitivity"):
        small.epsilon(1e-6, 10, 0.5, "replace")
    assert small.composed(10, 1.0, "replace").estimate.epsilon(1e-6) > 0.0
    with pytest.raises(pn.DomainError, match="at most the sensitivity"):
        pn.Mechanism(noise, 0.5, contribution=1.0).epsilon(1e-6, 10, 0.5)
    # Only the contribution matters where the sensitivity is larger than it can be.
    large = pn.Mechanism(noise, 3.0, contribution=1.0).epsilon(1e-6, 10, 0.5, "replace")
    assert large == replaceable(noise).epsilon(1e-6, 10, 0.5, "replace")
    assert "contribution=1.0" in repr(small)


def test_vectors():
    def epsilon(noise, **words):
        mechanism = pn.Mechanism(noise, 2.0, contribution=1.0, **words)
        return mechanism.composed(20, 0.2, "replace").estimate.epsilon(1e-6)

    gaussian = pn.Gaussian(std=3.0)
    assert epsilon(gaussian, dimension=9, norm="l2") == epsilon(gaussian)
    assert epsilon(gaussian, dimension=9) == pytest.approx(epsilon(pn.Gaussian(std=1.0)), rel=1e-12)
    laplace = pn.Laplace(scale=1.0)
    assert epsilon(laplace, dimension=9, norm="l1") == epsilon(laplace)
    with pytest.raises(pn.DomainError, match="one coin"):
        epsilon(laplace, dimension=9)


def test_accountant_and_json():
    accountant = pn.Accountant("replace").compose(replaceable(pn.Airy(mean_abs=1.0)), 30, 0.1)
    accountant.compose(pn.Mechanism(pn.Gaussian(std=4.0), 2.0), 3)
    again = pn.Accountant.from_json(accountant.to_json())
    assert again.to_json() == accountant.to_json()
    found = accountant.epsilon(1e-6)
    assert again.epsilon(1e-6) == found
    assert found.lower <= found.estimate <= found.upper
    assert found.estimate > epsilon_of(pn.Airy(mean_abs=1.0), 1e-6, 30, 0.1)
    curve = accountant.estimate.tradeoff([0.1, 0.5])
    assert 0.0 < curve[1] < curve[0] < 0.9
    profile = accountant.profile([0.0, 1.0])
    assert np.all(profile.lower <= profile.upper)


@for_each([pn.Gaussian, pn.Laplace, pn.Airy])
def test_calibrate(law):
    target = {"epsilon": 1.0, "delta": 1e-6, "count": 500, "sampling_rate": 0.02}
    words = {"sensitivity": 2.0, "contribution": 1.0, "adjacency": "replace"}
    noise = pn.calibrate(law, **target, **words)
    epsilon = epsilon_of(noise, 1e-6, 500, 0.02)
    assert 1.0 - 2e-4 < epsilon <= 1.0
    with pytest.raises(pn.DomainError, match="contribution must be given"):
        pn.calibrate(law, **target, adjacency="replace")


def test_compare():
    words = {"sensitivity": 2.0, "contribution": 1.0, "adjacency": "replace", "sampling_rate": 0.1}
    laws = [pn.Gaussian, pn.Airy]
    found = pn.compare(laws=laws, counts=[100], speed=False, **words)
    assert found.to_dict()["contribution"] == 1.0
    for row in found.rows:
        assert row.epsilons[0] == epsilon_of(row.noise, 1e-6, 100, 0.1)
    target = pn.compare(laws=laws, epsilon=1.0, delta=1e-6, count=10, method="estimate", **words)
    assert target.to_dict()["contribution"] == 1.0


def test_exported_distribution_is_an_upper_bound():
    pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    from psinoise.adapters.dp_accounting import to_pld

    mechanism = replaceable(pn.Gaussian(std=1.5))
    accountant = pn.Accountant("replace").compose(mechanism, 50, 0.1)
    theirs = to_pld(accountant).get_epsilon_for_delta(1e-6)
    assert 0.0 <= theirs - epsilon_of(pn.Gaussian(std=1.5), 1e-6, 50, 0.1) < 1e-4


@for_each([1e-3, 0.5])
def test_largest_loss_of_laplace_noise(rate):
    exact = math.log((1.0 + rate * math.expm1(0.5)) / (1.0 + rate * math.expm1(-0.5)))
    assert epsilon_of(pn.Laplace(scale=2.0), 0.0, 7, rate) == pytest.approx(7.0 * exact, rel=1e-13)
    assert epsilon_of(pn.Gaussian(std=2.0), 0.0, 7, rate) == math.inf


def test_command_line(capsys):
    words = ["epsilon", "--noise", "gaussian", "--std", "2", "--delta", "1e-6", "--count", "10"]
    words += ["--sampling-rate", "0.1", "--adjacency", "replace", "--method", "estimate"]
    assert main([*words, "--sensitivity", "2", "--contribution", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["contribution"] == 1.0
    assert found["epsilon"] == epsilon_of(pn.Gaussian(std=2.0), 1e-6, 10, 0.1)
