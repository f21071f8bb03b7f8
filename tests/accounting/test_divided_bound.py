"""Bounds where a single rare loss decides, under two tilts: around exact sums, and narrow.

Each test names the mutant that it kills.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_epsilon, sampled_gaussian_delta_twice

import psinoise as pn
from psinoise.accounting.certified import certify_epsilon
from psinoise.accounting.lattice import divided_bound, target
from psinoise.accounting.lattice.bounds import NodeMeasure
from psinoise.accounting.lattice.convolution import Profile, compose, window_size
from psinoise.accounting.lattice.divided_bound import divided_bound as bound_of
from psinoise.accounting.lattice.divided_bound import retilted
from psinoise.accounting.lattice.division import Division, Norms
from psinoise.accounting.lattice.stages import profile_bound
from psinoise.accounting.lattice.target import Target
from psinoise.accounting.loss.pairs import Pair

STEP, TILT, COUNT = 0.01, 2.0, 8
# A narrow bulk and rare large losses: a share of 1e-16 lies between.
INDEX = np.array([-2, -1, 0, 1, 2, 30, 60, 61])
MASS = np.array([0.1, 0.2, 0.35, 0.25, 0.1 - 3e-8, 1e-8, 1e-8, 1e-8])


def measure():
    tilted = MASS * np.exp(TILT * STEP * INDEX)
    total = tilted.sum()
    return NodeMeasure(STEP, 0.0, INDEX, tilted / total, TILT, math.log(total), 0.0, 0.0)


def exact_delta(epsilon):
    """By plain convolution in 50 digits."""
    with mp.workdps(50):
        held = measure()
        scale = mp.exp(mp.mpf(held.log_norm))
        # The masses that the floats of the measure stand for.
        true = [
            mp.mpf(float(m)) * scale * mp.exp(-mp.mpf(TILT) * mp.mpf(STEP) * int(k))
            for m, k in zip(held.mass, INDEX, strict=True)
        ]
        total = {0: mp.mpf(1)}
        for _ in range(COUNT):
            after: dict[int, mp.mpf] = {}
            for k, weight in total.items():
                for j, m in zip(INDEX.tolist(), true, strict=True):
                    after[k + j] = after.get(k + j, mp.mpf(0)) + weight * m
            total = after
        epsilon = mp.mpf(epsilon)
        step = mp.mpf(STEP)
        above = {k: m for k, m in total.items() if k * step > epsilon}
        return sum(m * (1 - mp.exp(epsilon - k * step)) for k, m in above.items())


def bounds_at(epsilon, division):
    log_delta = float(mp.log(exact_delta(epsilon)))
    return [
        bound_of([(measure(), COUNT)], division, log_delta, epsilon, 1e-10, sign).log_delta(epsilon)
        for sign in (-1.0, 1.0)
    ]


# At 0.9 two large losses or more decide; below 0.1 none is needed.
EPSILONS = (0.05, 0.25, 0.503, 0.58, 0.9)
DIVISION = Division(0.1, 20.0, 3.0, (Norms(0.0, 0.0, 0.0, float(COUNT)),))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.604])
def test_they_are_around_the_exact_sum(epsilon, threshold):
    """Kills: compositions with two large losses left out, and errors with a wrong sign."""
    exact = mp.log(exact_delta(epsilon))
    low, high = bounds_at(epsilon, DIVISION._replace(threshold=threshold))
    assert low <= exact <= high
    if threshold == 0.1:
        assert high - low <= 1e-5


def test_they_are_narrower_than_those_of_the_whole():
    """What they are for. The mutant: the difference of two powers as it stands."""
    epsilon = 0.503
    exact = float(mp.log(exact_delta(epsilon)))
    low, high = bounds_at(epsilon, DIVISION)
    assert low <= exact <= high
    assert high - low <= 1e-7
    whole = [(retilted(measure(), 9.0), COUNT)]
    coarse = [
        Profile(compose(whole, *window_size(whole, 1e-30)), sign).log_delta(epsilon)
        for sign in (-1.0, 1.0)
    ]
    assert coarse[1] - coarse[0] > 10.0 * (high - low)


@pytest.mark.parametrize(("rate", "epsilon"), [(1e-3, 0.4), (1e-3, 3.0), (1e-4, 0.5)])
def test_two_uses(rate, epsilon):
    """Against an integral over the first loss, at 30 digits."""
    way = "remove"
    delta = float(sampled_gaussian_delta_twice(epsilon, 1.0, rate, way))
    pair = Pair(pn.Gaussian(std=1.0), 1.0, rate)
    question = Target(((pair, 2),), way, math.log(delta), epsilon, 1e-7)
    assert question.division is not None
    # The lower bound of a coarse lattice has little to balance with.
    low = certify_epsilon.crossing(question, 0.1 * question.first_step, "lower", True)
    high = certify_epsilon.crossing(question, question.first_step, "upper")
    assert low <= epsilon <= high
    assert high - low <= 1e-6


@pytest.mark.parametrize("count", [2, 30, 3000])
def test_any_division_of_gaussian_losses(count):
    """Where there is no need for one: the analytic profile at 60 digits."""
    exact = float(gaussian_epsilon(mp.sqrt(count), 1e-8))
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 1.0)
    question = Target(((pair, count),), "remove", math.log(1e-8), exact, 1e-4 * exact)
    assert question.division is None
    step = question.first_step
    plain = [profile_bound(question, step, side).log_delta(exact) for side in ("lower", "upper")]
    tilt = question.tilt
    for threshold in (0.5, 2.0, 3.0):
        parts = {
            side: target.bound_of_step(question, pair, step, side, False)
            for side in ("lower", "upper")
        }
        division = Division(threshold, 1.1 * tilt, 0.95 * tilt, ())
        found = [
            bound_of([(parts[side], count)], division, math.log(1e-8), exact, 1e-6, sign).log_delta(
                exact
            )
            for side, sign in (("lower", -1.0), ("upper", 1.0))
        ]
        assert found[0] <= math.log(1e-8) <= found[1]
        # The measures are the same: so are the bounds, but for rounding.
        assert found == pytest.approx(plain, abs=3e-4)


def test_rounding_of_what_is_large_counts(monkeypatch):
    """Sums that are off, and say so: the bound holds. The mutant: an error that is not added."""
    epsilon = 0.503
    exact = float(mp.log(exact_delta(epsilon)))
    honest = divided_bound._sums

    def shifted(mass, distance, size, frequencies, *, said):
        sums, _ = honest(mass, distance, size, frequencies)
        return sums * (1.0 - 1e-7), said * float(mass.sum())

    monkeypatch.setattr(divided_bound, "_sums", lambda *a: shifted(*a, said=1e-7))
    assert bounds_at(epsilon, DIVISION)[1] >= exact
    monkeypatch.setattr(divided_bound, "_sums", lambda *a: shifted(*a, said=0.0))
    assert bounds_at(epsilon, DIVISION)[1] < exact


def test_retilting_keeps_the_masses():
    before = measure()
    after = retilted(before, 7.5)
    for held in (before, after):
        true = held.mass * np.exp(held.log_norm - held.tilt * held.losses)
        assert true == pytest.approx(MASS, rel=1e-12)
    some = retilted(before, 7.5, before.losses > 0.1)
    assert some.index.tolist() == [30, 60, 61]
    true = some.mass * np.exp(some.log_norm - some.tilt * some.losses)
    assert true == pytest.approx(MASS[-3:], rel=1e-12)
