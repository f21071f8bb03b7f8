"""Laws whose privacy loss rises and falls: bounded losses with several modes, and heavy tails."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from profile_oracles import even_edges

import psinoise as pn
from psinoise.accounting.compose.measures.bins import loss_bins
from psinoise.accounting.compose.measures.dense import dense
from psinoise.accounting.loss.pairs import Pair
from refusals import for_each

LAWS = [
    pn.Cauchy(scale=2.0),
    pn.SymmetricStable(alpha=0.7, scale=2.0),
    pn.SymmetricStable(alpha=1.5, scale=2.0),
    pn.SymmetricStable(alpha=1.9, scale=1.0),
]
QUESTIONS = [
    (1e-2, 1, 1.0),
    (1e-6, 1, 1.0),
    (1e-5, 10, 1.0),
    (1e-8, 1000, 1.0),
    (1e-6, 100, 0.1),
    (1e-8, 2000, 0.01),
]


def cauchy_delta(scale, epsilon):
    """Delta of one use at sensitivity 1, in 40 digits: a quadratic bounds the level set."""
    with mpmath.workdps(40):
        g2, gamma = mpmath.mpf(scale) ** 2, mpmath.exp(mpmath.mpf(epsilon))
        # (g^2 + x^2) > gamma (g^2 + (x - 1)^2) between the roots.
        a, b, c = 1 - gamma, 2 * gamma, g2 * (1 - gamma) - gamma
        root = b * b - 4 * a * c
        if root <= 0:
            return mpmath.mpf(0)
        low, high = sorted((-b + sign * mpmath.sqrt(root)) / (2 * a) for sign in (1, -1))

        def mass(x, center):
            return mpmath.atan((x - center) / mpmath.mpf(scale)) / mpmath.pi

        p = mass(high, 1) - mass(low, 1)
        q = mass(high, 0) - mass(low, 0)
        return p - gamma * q


@for_each([0.2, 1.0, 2.0, 20.0], [0.05, 0.4, 0.8, 0.99])
def test_one_use_of_cauchy_noise(scale, share):
    """A monotone loss would give delta(0.4) = 0 at scale 2, where it is 0.0151."""
    mechanism = pn.Mechanism(pn.Cauchy(scale=scale))
    epsilon = share * mechanism.pure_epsilon()
    exact = cauchy_delta(scale, epsilon)
    bounds = mechanism.delta(epsilon)
    assert bounds.lower <= exact <= bounds.upper
    found = mechanism.epsilon(float(exact))
    assert found.lower - 1e-9 <= epsilon <= found.upper + 1e-9
    assert float(cauchy_delta(2.0, 0.4)) == pytest.approx(0.0151, abs=1e-4)


def peak_delta(noise, epsilon):
    """Delta of one use where losses above epsilon are next to the sensitivity, 1, alone.

    So near that the density of the other data set is the same everywhere there.
    """
    other = float(noise.logpdf(1.0))
    low, high = -300.0, math.log(1e-3)
    for _ in range(200):
        middle = 0.5 * (low + high)
        above = float(noise.logpdf(math.exp(middle))) - other > epsilon
        low, high = (middle, high) if above else (low, middle)
    reach = math.exp(low)
    return 2.0 * (0.5 - float(noise.ccdf(reach))) - 2.0 * reach * math.exp(epsilon + other)


@for_each([1e-12, 1e-11, 1e-10, 1e-9, 1e-7], [1e-3, 1e-6, 1e-12])
def test_noise_that_outputs_hardly_resolve(scale, delta):
    """Next to the sensitivity there is an output every 2e-16. Such panels were cut for minutes.

    Mutant: nodes that count as exact (``_ROUNDED_NODES`` 0): 7 % wide at 1e-9.
    """
    found = pn.Mechanism(pn.Cauchy(scale=scale)).epsilon(delta)
    assert cauchy_delta(scale, found.upper) <= delta * (1 + 1e-12)
    assert found.lower == 0.0 or cauchy_delta(scale, found.lower) >= delta * (1 - 1e-12)
    assert found.width <= (0.03 * found if scale > 1e-12 else found)


@pytest.mark.deep
@for_each([(0.1, 1e-3), (0.1, 1.0), (0.12, 1e-3), (0.2, 1e-3), (0.3, 1e-6)], [1e-3, 1e-6])
def test_peaks_that_outputs_do_not_resolve(law, delta):
    """Mutant: the mass of what is not resolved left out from above (``dense._within``)."""
    alpha, scale = law
    noise = pn.SymmetricStable(alpha=alpha, scale=scale)
    use = pn.Mechanism(noise)
    once, twice = use.epsilon(delta), use.epsilon(delta, 2)
    assert peak_delta(noise, once.upper) <= delta * (1.0 + 1e-6)
    assert peak_delta(noise, once.lower) >= delta * (1.0 - 1e-6)
    assert once.upper <= use.pure_epsilon()
    assert once.lower <= twice.upper <= 2.0 * use.pure_epsilon()


@for_each([0.01, 0.5, 2.0, 100.0])
def test_where_the_loss_is_largest(scale):
    """Cauchy: (g^2 + x^2) / (g^2 + (x - s)^2) is largest at (s + sqrt(s^2 + 4 g^2)) / 2."""
    found = pn.Mechanism(pn.Cauchy(scale=scale), 3.0).most_revealing_output()
    assert found == pytest.approx(0.5 * (3.0 + math.sqrt(9.0 + 4.0 * scale**2)), rel=1e-6)
    law = pn.SymmetricStable(alpha=1.5, scale=scale)
    x, mechanism = pn.Mechanism(law, 3.0).most_revealing_output(), pn.Mechanism(law, 3.0)
    assert law.logpdf(x - 3.0) - law.logpdf(x) == pytest.approx(mechanism.pure_epsilon(), rel=1e-12)
    assert pn.Mechanism(pn.Airy(mean_abs=scale)).most_revealing_output() == math.inf


@for_each(LAWS, QUESTIONS)
def test_default_width(law, question):
    """Kills: one balanced recursion over all modes, tails at infinity, cuts told by a midpoint."""
    found = pn.Mechanism(law).epsilon(*question)
    assert found.lower <= found.estimate <= found.upper
    assert found.upper - found.lower <= 1e-4 * max(1.0, found.estimate)


@for_each(LAWS, [0.01, 1.0], ["remove", "add"])
def test_no_mass_is_lost(law, rate, direction):
    """Cauchy noise has mass beyond the panels: left out, upper bounds would be none."""
    source = dense(Pair(law, 1.0, rate), direction, 80.0)
    chosen = np.ones(source.log_mass.size, bool)
    edges = even_edges(source, 0.01)
    bins = loss_bins(source, chosen, ~chosen, (0.01, 0.0), edges, 0.0, 0.0)
    assert bins.above == 0.0
    on_edges = bins.at_edges
    assert bins.mass.sum() + on_edges.sum() + bins.below == pytest.approx(1.0, abs=3e-13)
    levels = bins.offset + bins.edges * bins.step
    other = np.append(bins.mass - bins.excess, 0.0) + on_edges
    assert (other * np.exp(-levels)).sum() == pytest.approx(1.0, abs=1e-10)


def test_two_uses_of_cauchy_noise():
    """Against a plain convolution of exact bin masses on a fine grid, rounded both ways."""
    scale, step, epsilon = 1.0, 2e-4, 0.9
    top = 2.0 * math.asinh(0.5 / scale)
    levels = np.arange(math.floor(-top / step), math.ceil(top / step) + 1) * step

    # P(loss > l), from delta' = -e^eps Q(loss > eps) and P - e^eps Q = delta.
    def above(level):
        if level >= top:
            return 0.0
        if level <= -top:
            return 1.0
        gamma = math.exp(level)
        a, b, c = 1.0 - gamma, 2.0 * gamma, scale**2 * (1.0 - gamma) - gamma
        if abs(a) < 1e-14:
            return 0.5 + math.atan(0.5 / scale) / math.pi
        root = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
        x = sorted(((-b + root) / (2.0 * a), (-b - root) / (2.0 * a)))
        between = (math.atan((x[1] - 1.0) / scale) - math.atan((x[0] - 1.0) / scale)) / math.pi
        return between if gamma > 1.0 else 1.0 - between

    survival = np.array([above(level) for level in levels])
    mass = -np.diff(survival)
    deltas = []
    for side in (0, 1):
        nodes = levels[:-1] + side * step
        total = np.convolve(mass, mass)
        losses = 2.0 * nodes[0] + step * np.arange(total.size)
        deltas.append(float(np.sum(total * np.maximum(-np.expm1(epsilon - losses), 0.0))))
    bounds = pn.Mechanism(pn.Cauchy(scale=scale)).delta(epsilon, 2)
    assert deltas[0] <= bounds.upper
    assert bounds.lower <= deltas[1]
    assert deltas[0] * (1.0 - 1e-6) <= bounds.estimate <= deltas[1] * (1.0 + 1e-6)
    assert deltas[1] - deltas[0] < 1e-3
