"""Outputs that no panel holds: beyond both ends and between two centers, where densities are low.

What a record does that is rarely sampled, and far away, may be all that there is of delta.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
from profile_oracles import gaussian_delta, subsampled_delta

import psinoise as pn
from psinoise.accounting.loss.pairs import DIRECTIONS, Pair
from psinoise.accounting.loss.quadrature import _gaps, nodes
from refusals import for_each, for_rows


def either_way(profile):
    """A profile for epsilons of either sign, from that of a symmetric pair for those above 0."""

    def found(epsilon):
        if epsilon >= 0:
            return profile(epsilon)
        return 1 - mp.exp(epsilon) + mp.exp(epsilon) * profile(-epsilon)

    return found


def laplace(shift):
    return either_way(lambda e: -mp.expm1((e - shift) / 2) if e < shift else mp.mpf(0))


def gaussian(mu):
    return either_way(lambda e: gaussian_delta(e, mu, mp.mp.dps))


def cauchy(shift):
    """Between the two outputs at which ``1 + (x - s)^2 = e^epsilon (1 + x^2)``."""

    def mass(low, high):
        return mp.atan2(high - low, 1 + low * high) / mp.pi

    def profile(epsilon):
        gamma, s = mp.exp(epsilon), mp.mpf(shift)
        root = mp.sqrt(max(gamma * s * s - (gamma - 1) ** 2, 0))
        low, high = (-s - root) / (gamma - 1), (-s + root) / (gamma - 1)
        return mass(low, high) - gamma * mass(low - s, high - s)

    return either_way(profile)


@for_rows(
    [
        (pn.Laplace(scale=1.0), 300.0, laplace, 1e-40),
        (pn.Laplace(scale=1.0), 300.0, laplace, 1e-35),
        (pn.Laplace(scale=1.0), 300.0, laplace, 1e-30),
        (pn.Laplace(scale=1.0), 40.0, laplace, 1e-12),
        (pn.Laplace(scale=1.0), 80.0, laplace, 1e-25),
        (pn.Laplace(scale=1.0), 1500.0, laplace, 1e-250),
        (pn.Gaussian(std=1.0), 33.25, gaussian, 1e-32),
        (pn.Gaussian(std=1.0), 33.25, gaussian, 1e-34),
        (pn.Gaussian(std=1.0), 33.25, gaussian, 1e-200),
        (pn.Gaussian(std=1.0), 12.0, gaussian, 1e-12),
        (pn.Gaussian(std=1.0), 90.0, gaussian, 1e-60),
    ]
)
def test_a_record_that_is_rare_and_far_away(noise, shift, profile, rate):
    """Against 400 digits. Kills: a center beyond both ends whose mass is nowhere, a gap before it
    that counts nowhere (deltas were [0, 0], or ended a few 1e-9 below the value), and nodes for a
    delta that is e^88 times as large as all that there is."""
    mechanism = pn.Mechanism(noise, shift)
    for epsilon in (1e-3, 2.0):
        with mp.workdps(400):
            exact = subsampled_delta(profile(shift), epsilon, rate, "remove")
            found = mechanism.delta(epsilon, 1, rate, "remove")
            assert found.lower <= exact <= found.upper
            assert found.upper - found.lower <= 1e-3 * exact
            both = mechanism.delta(epsilon, 1, rate)
            assert both.lower <= exact <= both.upper
    # As many uses have that of one, but for a square.
    once = mechanism.delta(1e-3, 1, rate, "remove")
    few = mechanism.delta(1e-3, 3, rate, "remove")
    assert 2.99 * once.lower <= few.upper <= 3.0 * rate


@for_each([1e-60, 1e-85, 1e-120], [0.6, 0.8])
def test_a_support_that_ends_far_out(rate, share):
    """Kills: an end of the panels that is taken for that of the support."""
    law = pn.TruncatedLaplace(epsilon=1.8, delta=1e-230)
    shift = share * law.half_width
    found = pn.Mechanism(law, shift).delta(1e-3, 1, rate, "remove")
    with mp.workdps(400):
        # But for the ends of the support, which are 1e-45 and less beside it.
        exact = subsampled_delta(laplace(mp.mpf(shift) / law.scale), 1e-3, rate, "remove")
        assert exact > 0.5 * rate
        assert found.lower <= exact * (1 + mp.mpf(10) ** -20)
        assert found.upper >= exact * (1 - mp.mpf(10) ** -20)


@for_each([1e13, 1e20, 1e27], [1.0 - 1e-12, 0.5], DIRECTIONS)
def test_gaps_of_heavy_tails_have_losses(shift, rate, direction):
    """Kills: what is between the tails of two centers as if its loss were 0 or nothing, by which
    deltas ended 2e-12 of themselves too low."""
    top = -math.log1p(-rate) if direction == "add" else 30.0
    mechanism = pn.Mechanism(pn.Cauchy(scale=1.0), shift)
    for epsilon in (1e-3 * top, 0.5 * top, 0.9 * top):
        with mp.workdps(120):
            exact = subsampled_delta(cauchy(shift), epsilon, rate, direction)
            found = mechanism.delta(epsilon, 1, rate, direction)
            assert found.lower <= exact <= found.upper


def test_gaps_are_what_is_left_out():
    """Kills: ends of panels that do not touch to the last bit, and intervals that overlap."""
    left, right = np.array([5.0, 0.0, 2.0, 1.0]), np.array([6.0, 4.0, 3.0, 2.0])
    np.testing.assert_array_equal(_gaps(left, right), [[4.0, 5.0]])
    assert _gaps(np.empty(0), np.empty(0)).shape == (0, 2)
    laws = (pn.Gaussian, pn.Laplace, pn.Airy, pn.Cauchy)
    for noise in [law(scale=scale) for law in laws for scale in (0.2, 1.0, 37.0, 1e6)]:
        for rate in (1.0, 0.1, 1e-6):
            grid = nodes(Pair(noise, 1.0, rate), 80.0)
            assert not grid.gaps.size
            assert grid.between == (0.0, 0.0)
    grid = nodes(Pair(pn.Gaussian(std=1.0), 40.0, 1.0), 80.0)
    ((low, high),) = grid.gaps
    assert 10.0 < low < 20.0 < high < 30.0
    np.testing.assert_allclose(grid.between, pn.Gaussian(std=1.0).ccdf(low), rtol=1e-9)
