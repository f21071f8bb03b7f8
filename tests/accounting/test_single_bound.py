"""Certified bounds of one use: as narrow as rounding, and never on the wrong side.

Exact values: analytic profiles at 60 digits, and what Poisson sampling makes of them. Each test
names the mutant that it kills.
"""

from __future__ import annotations

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_delta, gaussian_epsilon, laplace_delta_once, subsampled_delta

import psinoise as pn
from psinoise.accounting.certified import certify_epsilon
from psinoise.accounting.lattice import single_bound
from psinoise.accounting.lattice.bins import dense
from psinoise.accounting.lattice.single_bound import SingleBound
from psinoise.accounting.loss.pairs import Pair

DELTAS = (1e-2, 1e-12, 1e-100, 1e-300)


@pytest.mark.parametrize("std", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian(std, delta):
    """Kills: excesses forgotten, levels a bin too high, masses beyond the panels forgotten."""
    exact = gaussian_epsilon(1 / mp.mpf(std), delta)
    width = 1e-9 * max(1.0, float(exact))
    bracket = certify_epsilon.certify_epsilon(
        ((Pair(pn.Gaussian(std=std), 1.0, 1.0), 1),), delta, width
    )
    assert bracket.lower <= exact <= bracket.upper
    assert bracket.width <= width


@pytest.mark.parametrize("way", ["remove", "add"])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("rate", [0.3, 1e-3])
def test_profiles_of_sampled_laws(way, law, rate):
    """Kills: ``remove`` for ``add``, and atoms of the loss that are left out."""
    noise = pn.Gaussian(std=1.0) if law == "gaussian" else pn.Laplace(scale=2.0)
    pair = Pair(noise, 1.0, rate)

    def unsampled(epsilon):
        if law == "gaussian":
            return gaussian_delta(epsilon, 1)
        return laplace_delta_once(epsilon, 2)

    for epsilon in (-2.0, -0.5 * rate, 0.0, 0.1 * rate, 0.3 * rate, 0.6, 3.0):
        with mp.workdps(60):
            exact = subsampled_delta(unsampled, epsilon, rate, way)
        if exact < 1e-300 or epsilon >= pair.largest_loss(way):
            continue
        near = float(mp.log(exact))
        low, high = (
            SingleBound(pair, way, 850.0, near, 1.0, sign).log_delta(epsilon)
            for sign in (-1.0, 1.0)
        )
        with mp.workdps(60):
            assert mp.exp(low) <= exact <= mp.exp(high)
        # Losses of a tiny rate are off by a larger share of what is above epsilon.
        assert high - low <= 3e-10 / rate


def test_excesses_are_needed(monkeypatch):
    """The mutant: bins as if all of their losses were at the lower level."""
    pair, epsilon = Pair(pn.Gaussian(std=1.0), 1.0, 1.0), 3.0
    exact = float(mp.log(gaussian_delta(epsilon, 1)))
    bound = SingleBound(pair, "remove", 80.0, exact, 5.0, 1.0)
    assert bound.log_delta(epsilon) >= exact
    honest = single_bound.loss_bins

    def without(*arguments):
        bins = honest(*arguments)
        return dataclasses.replace(bins, excess=np.zeros_like(bins.excess))

    monkeypatch.setattr(single_bound, "loss_bins", without)
    assert bound.log_delta(epsilon) < exact


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_slack_counts(monkeypatch, sign):
    """Level points that are off, and say so. The mutant: they do not."""
    pair, epsilon, off = Pair(pn.Gaussian(std=1.0), 1.0, 1.0), 3.0, 1e-5
    exact = float(mp.log(gaussian_delta(epsilon, 1)))
    honest = single_bound.loss_bins

    def shifted(source, chosen, large, lattice, *rest, said):
        step, offset = lattice
        bins = honest(source, chosen, large, (step, offset + sign * off), *rest)
        return dataclasses.replace(bins, slack=said)

    bound = SingleBound(pair, "remove", 80.0, exact, 5.0, sign)
    monkeypatch.setattr(single_bound, "loss_bins", lambda *a: shifted(*a, said=off))
    assert (bound.log_delta(epsilon) - exact) * sign >= 0.0
    monkeypatch.setattr(single_bound, "loss_bins", lambda *a: shifted(*a, said=0.0))
    assert (bound.log_delta(epsilon) - exact) * sign < 0.0


def test_what_is_beyond_counts_from_above():
    """Panels that end early: their ends are where the bounds part. The mutant: they do not."""
    pair, epsilon = Pair(pn.Gaussian(std=1.0), 1.0, 1.0), 8.0
    exact = float(mp.log(gaussian_delta(epsilon, 1)))
    source = dense(pair, "remove", 50.0)
    assert 0.0 < source.beyond < math.exp(exact)
    near = math.log(source.beyond)
    low, high = (
        SingleBound(pair, "remove", 50.0, near, 5.0, sign).log_delta(epsilon)
        for sign in (-1.0, 1.0)
    )
    assert low <= exact <= high
    # Half of the losses above epsilon count as too large to be cut into bins.
    low, high = (
        SingleBound(pair, "remove", 50.0, exact + 39.0, 5.0, sign).log_delta(epsilon)
        for sign in (-1.0, 1.0)
    )
    assert low <= exact <= high


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("below", [1e-3, 1e-6, 1e-9])
def test_where_a_loss_turns(rate, below):
    """Cauchy noise next to its largest loss: the level set is an interval with known ends.

    Kills: a bound that is returned with less slack than was found, and a panel that is cut on the
    wrong side.
    """
    pair = Pair(pn.Cauchy(scale=2.0), 1.0, rate)
    epsilon = pair.largest_loss("remove") - below * rate
    with mp.workdps(60):
        # p(x - 1) / p(x) = g on a parabola.
        gamma = (mp.exp(mp.mpf(epsilon)) - 1) / mp.mpf(rate) + 1
        square = 4
        a, b, c = gamma - 1, -2 * gamma, gamma * (1 + square) - square
        root = mp.sqrt(b * b - 4 * a * c)
        ends = [(-b - root) / (2 * a), (-b + root) / (2 * a)]

        def mass(low, high):
            return (mp.atan(high / 2) - mp.atan(low / 2)) / mp.pi

        exact = rate * (mass(ends[0] - 1, ends[1] - 1) - gamma * mass(*ends))
    near = float(mp.log(exact))
    low, high = (
        SingleBound(pair, "remove", 850.0, near, 1.0, sign).log_delta(epsilon)
        for sign in (-1.0, 1.0)
    )
    with mp.workdps(60):
        assert mp.exp(low) <= exact <= mp.exp(high)
    # Delta falls by its 3/2 power next to the largest loss; heavy tails have a slack of 1e-11.
    assert high - low <= 3e-10 / (below * rate)
