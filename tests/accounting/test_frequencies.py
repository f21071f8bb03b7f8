"""Bounds from low frequencies: those of the whole lattice, with every error that is added to them.

Each test names the mutant that it kills.
"""

from __future__ import annotations

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_epsilon
from targets import plain_log_deltas, target_of

import psinoise as pn
from psinoise.accounting.compose.frequencies import last_frequency as last_frequencies
from psinoise.accounting.compose.frequencies.frequency_bound import FrequencyBound, lattice_profile
from psinoise.accounting.compose.frequencies.last_frequency import last_frequency
from psinoise.accounting.compose.frequencies.lattice import NodeMeasure, node_measure
from psinoise.accounting.compose.frequencies.target import bins_of, profile_bound
from psinoise.accounting.loss.pairs import Pair
from refusals import for_each, for_rows

# Minus the log of what may be left out.
DEAD = 80.0
LAWS = [pn.Gaussian(std=1.0), pn.Laplace(scale=2.0), pn.Airy(mean_abs=2.0)]


def question(law, rate, count, delta=1e-8, width=1e-3):
    steps = ((Pair(law, 1.0, rate), count),)
    epsilon = pn.Mechanism(law).composed(count, rate).estimate.epsilon(delta)
    return target_of(steps, delta, epsilon, width * max(epsilon, 1.0))


def parts_of(target, side, step=None):
    step = step or target.first_step
    each = zip(bins_of(target, step), target.doublings, target.steps, strict=True)
    return [(node_measure(bins, side, doublings), n) for bins, doublings, (_, n) in each]


@pytest.mark.deep
@for_rows(
    (law, rate, count, side)
    for law in LAWS
    for rate, count in [(0.01, 2000), (1.0, 300), (1.0, 20), (0.05, 3)]
    for side in ["lower", "upper"]
)
def test_they_agree_with_the_whole_lattice(law, rate, count, side):
    """Kills: the end of the window forgotten, a conjugate too few, half of the frequency 0.

    By direct sums, by sums of transforms, and by a transform of these for every node.
    """
    target = question(law, rate, count)
    parts = parts_of(target, side)
    bound = lattice_profile(parts, 1e-18, side)
    sign = {"lower": -1.0, "upper": 1.0}[side]
    epsilons = target.epsilon + np.array([-2.0, -1.0, -0.3, 0.0]) / target.tilt
    exact = plain_log_deltas(parts, epsilons - sign * bound.lattice.slack)
    if bound.lattice.infinite > 0.0:
        exact = np.logaddexp(exact, math.log(bound.lattice.infinite))
    ahead = sign * (bound.log_deltas(epsilons) - exact)
    assert (ahead >= -1e-9).all()
    assert (ahead <= 3e-9).all()


def test_against_plain_convolution():
    """Two losses, 600 uses: binomial, at 40 digits. Kills: any of the errors with a wrong sign."""
    count, step, tilt = 600, 0.01, 2.0
    mass = np.array([0.3, 0.0, 0.0, 0.0, 0.7])
    measure = NodeMeasure(step, 0.003, np.arange(-1, 4), mass, tilt, 0.0, 0.0, 0.0)
    for epsilon in (9.5, 10.803, 11.0, 12.1):
        with mp.workdps(40):
            exact = mp.mpf(0)
            for k in range(count + 1):
                loss = count * mp.mpf(0.003) + (4 * k - count) * mp.mpf(step) + k * 0
                if loss > epsilon:
                    weight = mp.binomial(count, k) * mp.mpf(0.7) ** k * mp.mpf(0.3) ** (count - k)
                    exact += weight * mp.exp(-tilt * loss) * (1 - mp.exp(epsilon - loss))
            exact = mp.log(exact)
        found = {}
        for side in ("upper", "lower"):
            # Two losses four nodes apart: revived three times, and never dead.
            bound = lattice_profile([(measure, count)], 1e-18, side)
            assert bound.low.values.size > bound.lattice.size // 4
            found[side] = bound.log_delta(epsilon)
        assert found["lower"] <= exact <= found["upper"]


@for_rows(
    (law, rate, count) for law in LAWS for rate, count in [(0.01, 2000), (1.0, 2000), (0.1, 10**6)]
)
def test_what_is_left_out_is_dead(law, rate, count):
    """The product at many angles. Kills: cells without their Lipschitz term."""
    target = question(law, rate, count)
    parts = parts_of(target, "upper")
    theta = last_frequency(parts, DEAD)
    ((measure, _),) = parts
    angles = np.concatenate([theta * np.geomspace(1.0, 2.0, 300), np.linspace(theta, np.pi, 4000)])
    modulus = np.abs(np.exp(1j * np.outer(angles, measure.index)) @ measure.mass)
    with np.errstate(divide="ignore"):
        assert (count * np.log(modulus) <= -DEAD + 1e-6).all()
    # It is not much too late either.
    deviation = math.sqrt(count * measure.moments[1]) / measure.step
    assert theta * deviation <= 4.0 * math.sqrt(2.0 * DEAD)


def scales_and_rates(count, scales, log_rates, seed):
    """Those of sampled Gaussian noise, at random."""
    rng = np.random.default_rng(seed)
    return list(
        zip(rng.uniform(*scales, count), 10.0 ** rng.uniform(*log_rates, count), strict=True)
    )


def sampled_steps(count, seed):
    rows = scales_and_rates(count, (0.7, 3.3), (-3.0, -1.0), seed)
    return tuple((Pair(pn.Gaussian(scale=scale), 1.0, rate), 1) for scale, rate in rows)


@for_each([60, 400], [15.0, 30.0])
def test_what_is_left_out_of_steps_of_many_scales_is_dead(count, dead):
    """Kills: an interval thrice as long as its angle allows; cells without their Lipschitz term."""
    steps = sampled_steps(count, 1)
    target = target_of(steps, 1e-6, 3.0, 1e-2)
    assert max(target.doublings) > 1
    parts = parts_of(target, "upper")
    theta = last_frequency(parts, dead)
    angles = np.linspace(theta, np.pi, 400) if theta < np.pi else np.array([])
    total = np.zeros(angles.size)
    for measure, uses in parts:
        index = measure.index - measure.index[0]
        with np.errstate(divide="ignore"):
            total += uses * np.log(np.abs(np.exp(1j * np.outer(angles, index)) @ measure.mass))
    assert (total <= -dead + 1e-6).all()
    assert math.isfinite(theta) or count < 400


def test_transforms_are_asked_where_intervals_are_not_enough():
    """Kills: the first angle of an interval taken for the least that can be shown."""
    parts = parts_of(target_of(sampled_steps(400, 1), 1e-6, 3.0, 1e-2), "upper")
    least = last_frequency(parts, 15.0)
    starts, _ = last_frequencies._dead(
        parts, [math.sqrt(m.moments[1]) / m.step for m, _ in parts], 15.0
    )
    assert not starts.size or least < starts[0]
    for factor in (1.0, 1.5, 4.0):
        assert least <= last_frequency(parts, 15.0, factor * least) <= factor * least


def test_nodes_near_each_other_show_a_product_of_all_scales_dead(monkeypatch):
    """Without a transform. Kills: variances about a point that is not the mean, too large ones."""
    monkeypatch.setattr(last_frequencies, "_CELLS", (2**8, 0))
    steps = sampled_steps(30, 2)
    parts = [(m, 10**5) for m, _ in parts_of(target_of(steps, 1e-6, 3.0, 1e-2), "lower")]
    theta = last_frequency(parts, DEAD)
    angles = np.concatenate([theta * np.geomspace(1.0, 4.0, 200), np.linspace(theta, np.pi, 200)])
    total = np.zeros(angles.size)
    for measure, uses in parts:
        index = measure.index - measure.index[0]
        total += uses * np.log(np.abs(np.exp(1j * np.outer(angles, index)) @ measure.mass))
    assert (total <= -DEAD).all()


def test_what_two_nodes_of_many_say():
    """Kills: their variance without their mass; angles of twice that."""
    index = np.array([-1000, 0, 1, 999])
    measure = NodeMeasure(0.01, 0.0, index, np.array([0.3, 0.35, 0.15, 0.2]), 1.0, 0.0, 0.0, 0.0)
    curvature = last_frequencies._near_variances(measure, np.array([1.0]))[0]
    # Nodes 0 and 1 turn against each other at pi, and nothing is said of the others.
    assert 1.0 - 2.0 / math.pi**2 * math.pi**2 * curvature >= 0.3 + 0.2 + 0.35 - 0.15
    assert curvature == pytest.approx(0.5 * 0.7 * 0.3, rel=2e-3)


def test_the_share_of_an_angle_that_is_certain():
    """Two nodes that are not dead at pi. Kills: half of the square of the angle at all angles."""
    measure = NodeMeasure(0.01, 0.0, np.array([0, 1]), np.array([0.7, 0.3]), 1.0, 0.0, 0.0, 0.0)
    assert math.isinf(last_frequency([(measure, 100)], 95.0))
    assert last_frequency([(measure, 100)], 30.0) < math.pi


def test_the_end_of_what_is_alive():
    """Beside all points of fine angles. Kills: a cell that begins before an interval, or ends
    behind it; the middle of the last cell, and an interval that begins in it and ends there."""
    rng = np.random.default_rng(5)
    reached = 0
    for _ in range(4000):
        cells = int(rng.choice([4, 8, 16]))
        width = math.pi / cells
        dead = rng.random(cells + 1) < 0.6
        dead[0] = False
        edges = np.sort(rng.uniform(0.2, cells, 2 * int(rng.integers(0, 3)))) * width
        starts, ends = edges[::2], edges[1::2]
        end = last_frequencies._last_alive(dead, starts, ends)
        fine = np.linspace(0.0, math.pi, 4001)[1:-1]
        known = dead[np.rint(fine / width).astype(int)]
        for start, stop in zip(starts, ends, strict=True):
            known |= (fine >= start) & (fine <= stop)
        if math.isfinite(end):
            assert known[fine >= end + 1e-9].all()
            reached += end in starts
        else:
            assert not dead[-1]
    assert reached > 50


def test_a_cell_between_two_coarser_ones_has_the_larger_bound():
    """Kills: the smaller one."""
    finer = last_frequencies._finer(np.array([-1.0, -4.0, -2.0]), 9)
    assert finer.tolist() == [-1.0, -1.0, -1.0, -1.0, -4.0, -2.0, -2.0, -2.0, -2.0]


@for_each([1e-4, 3e-4, 1e-3, 1e-2], [2.0, 17.0], ["remove", "add-remove"])
def test_steps_of_infinite_losses_are_never_left_out(infinite, times, adjacency):
    """Steps whose finite losses are next to nothing. Kills: to leave them out from below, which
    takes away their factor of the finite losses; lower ends were above the truth."""
    accountant = pn.Accountant(adjacency=adjacency)
    accountant.compose(pn.Mechanism(pn.Gaussian(std=1.0)), 10)
    accountant.compose(pn.Mechanism(pn.TruncatedLaplace(epsilon=1e-3, delta=infinite)))
    found, exact = (
        accountant.epsilon(times * infinite),
        accountant.estimate.epsilon(times * infinite),
    )
    assert found.lower <= exact <= found.upper
    # The exact profile: infinite or not, and then Gaussian noise but for a loss of 1e-3.
    rest = (times * infinite - infinite) / (1.0 - infinite)
    plain = pn.Mechanism(pn.Gaussian(std=1.0)).epsilon(rest, 10).upper
    assert found.lower <= plain + 1.1e-3


@pytest.mark.deep
@for_rows([((0.7, 3.3), (-3.0, -1.0)), ((0.8, 2.0), (-2.5, -1.5)), ((0.7, 8.0), (-5.0, -1.0))])
def test_a_thousand_steps_of_many_scales(scales, log_rates):
    """Default width, where each step has a lattice of its own; the finest one for all was .4 %
    wide, or took 20 s."""
    accountant = pn.Accountant()
    for scale, rate in scales_and_rates(1000, scales, log_rates, 3):
        accountant.compose(pn.Mechanism(pn.Gaussian(scale=scale)), sampling_rate=rate)
    found = accountant.epsilon(1e-6)
    assert found.composer == "frequencies"
    assert found.upper - found.lower <= 1e-4 * found.upper
    assert found.lower <= accountant.estimate.epsilon(1e-6) * (1.0 + 1e-6)
    assert accountant.estimate.epsilon(1e-6) * (1.0 - 1e-6) <= found.upper


def test_a_lattice_within_the_lattice_is_never_dead():
    """Masses on every other node come back at pi: nothing may be left out."""
    index = np.arange(-40, 41)
    mass = np.where(index % 2 == 0, np.exp(-0.5 * (index / 8.0) ** 2), 0.0)
    measure = NodeMeasure(0.01, 0.0, index, mass / mass.sum(), 1.0, 0.0, 0.0, 0.0)
    assert math.isinf(last_frequency([(measure, 10**4)], DEAD))
    bound = lattice_profile([(measure, 10**4)], 1e-18, "upper")
    assert bound.low.values.size == bound.lattice.size // 2 + 1


def test_many_uses_take_low_frequencies():
    target = question(pn.Gaussian(std=1.0), 0.01, 10**9)
    profile = profile_bound(target, bins_of(target, target.first_step), "upper")
    assert isinstance(profile, FrequencyBound)
    assert profile.low.values.size < 200


@for_each(["fewer frequencies", "no rounding", "no window", "one node"])
def test_mutants_are_seen(mutant):
    """Each makes an upper bound fall below the truth, or a sum wrong beyond its own error."""
    target = question(pn.Gaussian(std=1.0), 1.0, 100, width=1e-4)
    profile = profile_bound(target, bins_of(target, target.first_step), "upper")
    exact = gaussian_epsilon(mp.sqrt(100), 1e-8)
    honest = profile.log_delta(float(exact))
    assert math.log(1e-8) <= honest <= math.log(1e-8) + 1e-2
    low, lattice = profile.low, profile.lattice
    if mutant == "fewer frequencies":
        few = low.values.size // 8
        low = low._replace(values=low.values[:few], error=low.error[:few])
    elif mutant == "no rounding":
        low = low._replace(values=low.values * (1.0 + 1e-3 * np.cos(np.arange(low.values.size))))
    elif mutant == "no window":
        lattice = lattice._replace(size=lattice.size // 3)
    else:
        turn = 2j * math.pi / lattice.size * np.arange(low.values.size)
        low = low._replace(values=low.values * np.exp(turn))
    changed = dataclasses.replace(profile, low=low, lattice=lattice).log_delta(float(exact))
    assert abs(changed - honest) > 2e-6


@for_each(["lower", "upper"])
def test_a_factor_that_is_next_to_0(side):
    """Few uses of a wide loss. Kills: a multiple of an error that is larger than its factor."""
    narrow, wide = (
        NodeMeasure(0.01, 0.0, index, mass / mass.sum(), 2.0, 0.0, 0.0, 0.0)
        for index, mass in (
            (np.arange(-8 * k, 8 * k + 1), np.exp(-0.5 * (np.arange(-8 * k, 8 * k + 1) / k) ** 2))
            for k in (9, 60)
        )
    )
    parts = [(narrow, 30), (wide, 3)]
    bound = lattice_profile(parts, 1e-36, side)
    assert bound.low.lost < 1e-30
    epsilons = np.array([0.5, 2.0, 4.0])
    exact = plain_log_deltas(parts, epsilons)
    assert bound.log_deltas(epsilons) == pytest.approx(exact, abs=3e-9)
