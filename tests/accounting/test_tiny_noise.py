"""Noise that is finer than the outputs it is added to: nothing may be lost between them."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_epsilon

import psinoise as pn
from psinoise.accounting.loss import quadrature
from psinoise.accounting.loss.narrow import masses_of
from psinoise.accounting.loss.pairs import DIRECTIONS, Pair

LAWS = {
    "Gaussian": pn.Gaussian,
    "Laplace": pn.Laplace,
    "Airy": pn.Airy,
    "Schrodinger": lambda scale: pn.Schrodinger(cost=pn.costs.Power(1.5), scale=scale),
    "stable 1.5": lambda scale: pn.SymmetricStable(alpha=1.5, scale=scale),
    "Cauchy": lambda scale: pn.SymmetricStable(alpha=1.0, scale=scale),
}


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("scale", [1e-14, 2e-16, 1e-16, 3e-17, 1e-20, 1e-40, 1e-100])
@pytest.mark.parametrize(
    ("count", "rate", "delta", "adjacency"),
    [
        (1, 1.0, 1e-6, "add-remove"),
        (1, 0.1, 1e-6, "add-remove"),
        (3, 0.1, 1e-6, "add-remove"),
        (50, 0.01, 1e-3, "add-remove"),
        (2, 1.0, 0.3, "replace"),
    ],
)
def test_epsilon_is_never_small(law, scale, count, rate, delta, adjacency):
    """A record is seen with a probability above delta, so that epsilon is large. Kills panels that
    begin at a center and end there: certified epsilons were 0."""
    noise = LAWS[law](scale=scale)
    # By what is left of the peak of the other center, where one record is seen for certain.
    least = -2.0 * math.log(1e8 * scale) if law in ("Cauchy", "stable 1.5") else 1e8
    for sensitivity in (1.0, 0.7 * 2.0**60):
        noise = LAWS[law](scale=scale * sensitivity)
        mechanism = pn.Mechanism(noise, sensitivity)
        bracket = mechanism.epsilon(delta, count, rate, adjacency)
        assert bracket.lower <= bracket.upper
        assert bracket.upper > least


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_what_is_lost_counts_as_infinite(law, rate, monkeypatch):
    """Whatever loses it: here what a quadrature would miss without `_hidden`. Kills masses that are
    not added up, in bounds and in Chernoff's lines."""
    monkeypatch.setattr(quadrature, "_hidden", lambda *_: np.empty((0, 2)))
    bracket = pn.Mechanism(LAWS[law](scale=1.3e-20)).epsilon(1e-6, 3, rate)
    assert bracket.upper > 80.0


@pytest.mark.parametrize("rate", [1.0, 1e-5])
@pytest.mark.parametrize("power", [3.0, 30.0])
def test_peaks_are_not_lost_on_flat_laws(power, rate):
    """Panels were left out that are flat between nodes that are too low, with all of the mass of
    the other center (ten, at 1e-3)."""
    for scale in (1e-3, 1e-5):
        law = pn.Schrodinger(cost=pn.costs.Power(power), scale=scale)
        assert pn.Mechanism(law).epsilon(1e-7, 2, rate).upper > 1.0 / scale


@pytest.mark.parametrize("scale", [1e-7, 1e-9, 1e-12, 1e-16, 1e-20])
@pytest.mark.parametrize("delta", [0.3, 1e-6, 1e-20, 1e-100])
def test_gaussian_noise_has_its_value(scale, delta):
    """However fine the noise is. Kills parts without the distance of their losses, and masses that
    are those of densities."""
    found = pn.Mechanism(pn.Gaussian(std=scale)).epsilon(delta)
    assert found.lower <= gaussian_epsilon(1 / mp.mpf(scale), delta) <= found.upper
    assert found.width <= 1e-5 * found.upper


@pytest.mark.parametrize("law", ["Laplace", "Airy"])
@pytest.mark.parametrize("scale", [1e-9, 1e-14, 1e-20])
def test_brackets_of_log_concave_noise_are_narrow(law, scale):
    """Sampled or not, of one use or fifty. Kills parts that count as infinite."""
    mechanism = pn.Mechanism(LAWS[law](scale=scale))
    for count, rate, delta in [(1, 1.0, 1e-6), (3, 0.1, 1e-6), (50, 0.01, 1e-3), (3, 1e-13, 1e-14)]:
        found = mechanism.epsilon(delta, count, rate)
        assert found.lower <= found.upper
        assert found.width <= 1e-3 * found.upper, (found, count, rate)


@pytest.mark.deep
@pytest.mark.parametrize("law", [*LAWS, "flat"])
@pytest.mark.parametrize("scale", [1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-15])
def test_rates_below_what_masses_resolve(law, scale):
    """What a record is seen with is a part of 1e13, or of 1e17, of all mass, so that nothing misses
    it; yet there is an answer. Kills an untyped error where no mass is left to have moments, and
    lattices of 1e8 parts of bins, which took 12 GB."""
    laws = {**LAWS, "flat": lambda scale: pn.Schrodinger(cost=pn.costs.Power(10.0), scale=scale)}
    mechanism = pn.Mechanism(laws[law](scale=scale))
    heavy = law in ("Cauchy", "stable 1.5")
    for count, rate, delta in [(1, 1e-13, 1e-14), (3, 1e-17, 1e-19), (100, 1e-13, 1e-12)]:
        found = mechanism.epsilon(delta, count, rate)
        # Heavy tails fall as |x|^-2 at least, and sampling takes log q at most.
        least = -2.0 * math.log(20.0 * scale) + math.log(rate) if heavy else 0.1 / scale - 50.0
        assert found.lower <= found.upper
        assert found.upper > least


@pytest.mark.parametrize("rate", [1.0, 1e-13])
@pytest.mark.parametrize("scale", [3e-3, 1e-3, 3e-4, 1e-5])
def test_panels_of_a_peak_are_kept(scale, rate):
    """Whether a panel matters is asked of log Q + loss, where hundreds are lost to rounding. Kills
    panels that are left out by that: five millionths of the peak were left."""
    noise = pn.Schrodinger(cost=pn.costs.Power(10.0), scale=scale)
    grid = quadrature.nodes(Pair(noise, 1.0, rate, replaced=False), 100.0)
    peak = np.abs(0.5 * (grid.left + grid.right) - 1.0) < 0.3
    held = float(np.exp((grid.log_mass + grid.loss)[peak]).sum())
    assert held + masses_of(grid.pair, grid.narrow, "remove")[0].sum() > 0.98 * rate


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("scale", [1e-14, 1e-17, 1e-100])
def test_delta_holds_what_is_seen(law, rate, scale):
    """Of two uses the record is in one at least, with a probability of 1 - (1 - q)^2. Kills masses
    of nodes that are below 0, and NaN among masses, which is no mass at all."""
    steps = pn.Accountant().compose(pn.Mechanism(LAWS[law](scale=scale)), 2, rate)
    bracket = steps.delta(1.0)
    assert bracket.lower <= 1.0
    assert bracket.upper >= (1.0 - (1.0 - rate) ** 2) * (1.0 - 1e-9)


@pytest.mark.deep
@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("scale", [1e-3, 1e-8, 1e-10, 1e-13, 1e-17, 1e-100])
def test_random_allocation_has_an_answer(law, scale):
    """Likelihood ratios that no float64 holds leave the largest loss. An average of ten ratios is a
    tenth of one at least, so that delta is a tenth of that of a step at an epsilon that is log 10
    more. Kills products of no nodes, an IndexError, and edges that took all memory."""
    mechanism = pn.Mechanism(LAWS[law](scale=scale))
    once = pn.Accountant().compose(mechanism, sampling=pn.sampling.RandomAllocation(steps=10))
    bracket = once.epsilon(1e-6)
    assert bracket.lower <= bracket.upper
    assert bracket.upper >= mechanism.epsilon(1e-6 * 10.0).lower - math.log(10.0) - 1e-9
    more = once.compose(pn.Mechanism(pn.Gaussian(std=10.0)), 3).epsilon(1e-6)
    assert more.upper >= bracket.lower


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("rate", [1.0, 0.1, 1e-13])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_masses_of_intervals_add_up(law, rate, direction):
    """Of all intervals, also of those without end. Kills an infinite interval times a density of 0,
    which is NaN, and a center that both parts of a mixture have and one is counted for."""
    for scale in (0.3, 1e-3, 1e-9, 1e-20):
        offsets = scale * np.array([-90.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 90.0])
        ends = np.unique([-math.inf, *offsets, *(1.0 + offsets), math.inf])
        pair = Pair(LAWS[law](scale=scale), 1.0, rate)
        least, most = masses_of(pair, np.stack([ends[:-1], ends[1:]], axis=1), direction)
        assert (least <= most).all()
        assert 1.0 - 1e-9 <= least.sum() <= 1.0 <= most.sum() <= 1.0 + 1e-9


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("scale", [1e-155, 1e-160, 1e-300])
@pytest.mark.parametrize(("count", "rate"), [(1, 1.0), (1, 0.1), (5, 1.0), (5, 0.1)])
def test_losses_that_are_no_float64_are_no_refusal(law, scale, count, rate):
    """Nothing may be known of them but how large they are at most: a wide bracket, no error and no
    warning. Gaussian noise of 1e-155 of the sensitivity has losses of 5e309."""
    accountant = pn.Mechanism(LAWS[law](scale=scale)).composed(count, rate)
    seen = 1.0 - (1.0 - rate) ** count
    found = accountant.epsilon(1e-6 * seen)
    assert found.lower <= found.upper
    # Cauchy noise has the least: its largest loss is twice the logarithm.
    assert found.upper >= -0.9 * math.log(scale)
    delta = accountant.delta(1.0)
    assert delta.lower <= seen * (1.0 + 1e-12)
    assert delta.upper >= seen * (1.0 - 1e-9)
    profile = accountant.profile([0.0, 1.0, 100.0])
    assert np.all(profile.lower <= profile.upper)
    assert np.all(profile.upper >= seen * (1.0 - 1e-9))
    if law == "Gaussian":
        assert found.upper == math.inf


def test_steps_of_which_nothing_is_certain_leave_the_others_their_lower_bound():
    """Schrodinger noise whose table does not reach its neighbor, beside others: the upper end is
    infinite, the lower one that of the others, and nothing warns."""
    unknown = pn.Mechanism(pn.Schrodinger(cost=pn.costs.Power(1.5), mean_abs=4e-6))
    for law, count, delta in (
        (pn.Laplace(scale=3.0), 7, 1e-5),
        (pn.DiscreteLaplace(scale=17.68), 42, 1e-40),
    ):
        mechanism = pn.Mechanism(law)
        plan = pn.Accountant().compose(unknown, 27).compose(mechanism, count)
        alone, found = mechanism.epsilon(delta, count), plan.epsilon(delta)
        assert found.upper == math.inf
        assert 0.98 * alone.lower <= found.lower <= alone.upper
    assert plan.delta(0.5).upper == 1.0
    assert unknown.epsilon(1e-6).lower == 0.0


@pytest.mark.parametrize("std", [7.514731508504751e-17, 1e-30, 1e-12, 1e-10, 0.5])
def test_without_sampling_both_directions_are_one(std):
    """Kills: "add" asked alone as another composition, of which less was known: [0, ..], [.., inf],
    or an upper end below the value."""
    mechanism = pn.Mechanism(pn.Gaussian(std=std))
    for delta in (1.0070364871706107e-223, 1e-6, 0.3):
        found = mechanism.epsilon(delta, adjacency="add")
        assert tuple(found) == tuple(mechanism.epsilon(delta, adjacency="remove"))
        assert tuple(found) == tuple(mechanism.epsilon(delta))
        with mp.workdps(120):
            exact = gaussian_epsilon(1 / mp.mpf(std), delta)
            assert found.lower * (1 - 1e-12) <= exact <= found.upper * (1 + 1e-12)
    for law in LAWS.values():
        asked = pn.Mechanism(law(scale=std))
        for count in (1, 3):
            found = [asked.epsilon(1e-6, count, 1.0, each) for each in ("add", "remove")]
            assert tuple(found[0]) == tuple(found[1])
            found = [asked.delta(2.0, count, 1.0, each) for each in ("add", "remove")]
            assert tuple(found[0]) == tuple(found[1])
