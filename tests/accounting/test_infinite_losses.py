"""Epsilon at a delta next to the probability of infinite losses, which is known to its rounding."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import subsampled_delta

import psinoise as pn
from psinoise.accounting.one_direction import OneDirection
from refusals import for_each, for_rows

USES = 200


def crossing(epsilon, infinite, above):
    """Epsilon of many uses of randomized response at a delta this much above all infinite losses.

    Uses have losses of plus and minus epsilon, or an infinite one with a probability; 40 digits.
    """
    with mp.workdps(40):
        odds, share = mp.exp(epsilon), above / (1 - mp.mpf(infinite)) ** USES
        if share <= 0:
            return math.inf if share < 0 else USES * epsilon
        mass, passed = mp.mpf(0), mp.mpf(0)  # of larger losses, and that times e^-loss
        for k in range(USES, -1, -1):
            # Within a gap between losses delta is a line in e^epsilon.
            loss, below = (2 * k - USES) * epsilon, (2 * k - 2 - USES) * epsilon
            chance = mp.binomial(USES, k) * odds**k / (1 + odds) ** USES
            mass, passed = mass + chance, passed + chance * mp.exp(-loss)
            if mass - mp.exp(below) * passed >= share:
                return float(mp.log((mass - share) / passed))
        return 0.0


@for_each([1e-3, 1e-7])
def test_next_to_all_infinite_losses(infinite):
    """Kills: a lower bound that takes a delta for all infinite losses where it may be more; an
    upper one where it is certainly less."""
    composed = pn.promises.ApproximateDP(1.0, infinite).composed(USES)
    with mp.workdps(40):
        mass = 1 - (1 - mp.mpf(infinite)) ** USES
        signs = [sign * 10.0**-k for k in range(9, 17) for sign in (-1.0, 1.0)]
        for share in sorted([*signs, *(0.5 * share for share in signs), 0.0]):
            delta = float(mass * (1 + share))
            true = crossing(1.0, infinite, mp.mpf(delta) - mass)
            found = composed.epsilon(delta)
            assert found.lower <= true
            if abs(share) > 3e-13:
                assert found.upper >= true
                assert found.upper <= true + 1.0 or share < 1e-11
            else:
                # As if it were meant to be them.
                assert found.upper == USES


@for_each(
    [pn.TruncatedLaplace(epsilon=8.0, delta=1e-5), pn.TruncatedLaplace(epsilon=0.5, delta=1e-9)],
    [(1, 1.0), (100, 1e-4), (100, 1.0), (10**6, 1e-3)],
)
def test_there_and_back(law, uses_and_rate):
    """Kills: the largest loss for a delta that was reported for a smaller one."""
    composed = pn.Mechanism(law).composed(*uses_and_rate)
    infinite = composed.delta(math.inf).upper
    largest = composed.epsilon(infinite).upper
    for epsilon in np.array([0.05, 2.0]) * composed.epsilon(min(2.0 * infinite, 0.5)).upper:
        delta = composed.delta(float(epsilon))
        assert composed.epsilon(delta.upper).lower <= epsilon
        assert composed.epsilon(delta.lower).upper >= min(epsilon, largest) * (1.0 - 1e-12)


@for_rows([(34.5, 4), (740.0, 7)])
def test_a_delta_is_as_sharp_as_a_share_of_all_of_it(epsilon, most):
    """Kills: a share of what finite losses contribute, e^-140 beside .01, and a direction without
    infinite losses that is followed on its own: 9 to 13 compositions, some of a second each."""
    mechanism = pn.Mechanism(pn.TruncatedLaplace(epsilon=8.0, delta=1e-5))
    sharpen, asked = OneDirection.sharpen, []

    def counted(part):
        asked.append(part)
        sharpen(part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneDirection, "sharpen", counted)
        found = mechanism.delta(epsilon, 10**6, 1e-3)
    assert 1 <= len(asked) <= most
    assert found.width <= 1e-3 * found.upper
    whole = mechanism.profile([epsilon], 10**6, 1e-3)
    assert max(whole.lower[0], found.lower) <= min(whole.upper[0], found.upper)


@for_rows(
    [
        (pn.TruncatedLaplace(epsilon=1.0, delta=0.1, sensitivity=0.1),),
        (pn.UniformAtom(delta=0.1, sensitivity=0.01),),
    ]
)
def test_where_all_losses_are_infinite(law):
    """The shift is longer than the support: there was no largest finite loss."""
    mechanism = pn.Mechanism(law, 1.0)
    for count in (1, 3):
        found = mechanism.profile([-1.0, 0.0, 1e-3, 50.0], count)
        np.testing.assert_array_equal(found.upper, 1.0)
        np.testing.assert_allclose(found.lower, 1.0, rtol=1e-9)
        np.testing.assert_array_equal(mechanism.tradeoff([0.0, 0.1, 1.0], count), 0.0)
        assert mechanism.epsilon(0.5, count) == math.inf


@for_each([pn.Gaussian(std=1.0), pn.Laplace(scale=1.0)], [1, 3])
def test_no_step_makes_infinite_losses_finite(law, count):
    """Kills: a largest loss that adds infinity to that of a step without finite losses."""
    alone = pn.Mechanism(pn.UniformAtom(delta=0.4), 2.5)
    accountant = pn.Accountant().compose(alone, count).compose(pn.Mechanism(law), 2)
    for delta in (0.0, 1e-5, 0.999):
        assert accountant.epsilon(delta).lower == math.inf
    assert accountant.delta(1.0).lower >= 1.0 - 1e-9


def test_the_delta_that_a_law_was_made_for():
    """Kills: an infinite epsilon at it."""
    for delta in (1e-3, 1e-9, 1e-30, 1e-200):
        found = pn.Mechanism(pn.TruncatedLaplace(epsilon=1.5, delta=delta)).epsilon(delta)
        assert found.upper == pytest.approx(1.5, rel=1e-12)
        assert found.lower == pytest.approx(1.5, rel=1e-10)
        assert math.isinf(pn.promises.ApproximateDP(1.5, delta).epsilon(delta * (1.0 - 1e-12)))
    for delta in (1e-310, 5e-324):
        assert math.isinf(pn.promises.ApproximateDP(1.5, 0.5).epsilon(delta, 50))


def truncated_delta(law, shift, rate, epsilon, direction):
    """Delta of truncated Laplace noise that is sampled, at 60 digits.

    Losses of the shift are infinite beyond ``A`` and rise from ``-s`` to ``s`` on ``[0, s]``, in
    units of the scale.
    """
    reach, s = mp.mpf(law.half_width) / law.scale, mp.mpf(shift) / law.scale

    def above(x):
        part = max(mp.exp(-abs(x)) - mp.exp(-reach), mp.mpf(0)) / (-2 * mp.expm1(-reach))
        return part if x >= 0 else 1 - part

    def unsampled(log_gamma):
        if log_gamma < 0:
            return 1 - mp.exp(log_gamma) + mp.exp(log_gamma) * unsampled(-log_gamma)
        start = min((s + log_gamma) / 2, reach) if log_gamma < s else reach
        return above(start - s) - mp.exp(log_gamma) * above(start)

    return subsampled_delta(unsampled, mp.mpf(epsilon), rate, direction)


@for_each([1e-3, 1e-6, 1e-9, 1e-14, 0.3, 1.0], [0.5, 0.1, 1.0 - 1e-9], [1.0, 4.0])
def test_what_a_small_shift_leaves_of_a_sampled_support(shift, rate, budget):
    """Kills: the mass of ``X <= s - A``, from a difference that has lost the digits of ``s``; of
    epsilon .1 at 1e-14 it was 6 % too large, and epsilons at that delta a tenth."""
    law = pn.TruncatedLaplace(epsilon=budget, delta=1e-6)
    mechanism, top = pn.Mechanism(law, shift), -math.log1p(-rate)
    with mp.workdps(60):
        for epsilon in (0.1 * top, 0.9 * top):
            exact = truncated_delta(law, shift, rate, epsilon, "add")
            found = mechanism.delta(epsilon, 1, rate, "add")
            assert found.lower <= exact <= found.upper
            assert found.upper - found.lower <= 1e-10 * exact
            found = mechanism.epsilon(float(exact), 1, rate, "add")
            assert found.lower - 1e-10 <= epsilon <= found.upper + 1e-10


@pytest.mark.filterwarnings("error")
@for_each([(0.844, 0.477), (0.07, 0.07), (5.8, 0.25), (0.02, 0.21)], [1.0, 0.5, 0.01])
def test_shifts_beyond_the_support(made_for, rate):
    """Neighbors have the outputs from ``s - A`` to ``A`` in common. Kills: that first one, which
    rounds out of the support; it was a warning, [.87, 1] of one use and an error of three."""
    law = pn.TruncatedLaplace(epsilon=made_for[0], delta=made_for[1])
    generator = np.random.default_rng(3)
    shares = [*generator.uniform(0.5, 2.0, 8), *(2.0 - 10.0 ** generator.uniform(-14.0, -1.0, 2))]
    for shift in (float(share) * law.half_width for share in shares):
        mechanism = pn.Mechanism(law, shift)
        for epsilon in (0.0, 0.1, -0.1):
            for direction in ("remove", "add"):
                found = mechanism.delta(epsilon, 1, rate, direction)
                with mp.workdps(60):
                    exact = truncated_delta(law, shift, rate, epsilon, direction)
                    assert found.lower <= exact <= found.upper
                assert found.width <= 1e-11
        assert found.lower <= mechanism.delta(-0.1, 3, rate, "add").upper
        assert mechanism.epsilon(0.9, 3, rate).upper >= 0.0


@for_rows(
    [
        (1.3393531846713977, 0.03760794438708154, 50, 0.1, 1.0),
        (1.0, 1e-3, 100, 0.05, 0.4),
        (1.0, 1e-3, 100, 0.05, 1.2),
        (2.0, 1e-2, 20, 0.3, 3.0),
        (0.3, 1e-2, 10, 0.5, 0.05),
        (0.3, 1e-2, 10, 0.5, -0.05),
    ]
)
def test_a_direction_is_behind_by_all_its_losses(budget, delta, count, rate, epsilon):
    """Kills: the finite losses of an added record beside the infinite ones of a removed one, of
    which the bracket was a quarter wide."""
    mechanism = pn.Mechanism(pn.TruncatedLaplace(epsilon=budget, delta=delta))
    remove, add, both = (
        mechanism.delta(epsilon, count, rate, adjacency)
        for adjacency in ("remove", "add", "add-remove")
    )
    assert both.lower == pytest.approx(max(remove.lower, add.lower), rel=1e-12)
    assert both.upper == pytest.approx(max(remove.upper, add.upper), rel=1e-12)
    assert both.lower <= both.estimate <= both.upper <= both.lower * (1.0 + 1e-3)


@for_rows(
    [(3.0, 0.1, 4, 2, 0.5), (6.0, 0.2, 3, 3, 1.0), (8.0, 0.01, 4, 2, 5.0), (2.0, 1e-3, 20, 5, 3.0)]
)
def test_infinite_losses_beside_choices_count_once(epsilon, delta, promised, count, at):
    """With some probability all is told; else there is pure privacy, whose profile is known.

    Kills: a yes to everything, of probability 1, that has the infinite losses of other steps too:
    the lower end of finite ones was above all that they are.
    """
    cells = pn.Mechanism(pn.Cactus(1.0, 1.0, cells_per_sensitivity=10, cells=80, tail_ratio=0.35))
    promises = pn.promises.ApproximateDP(epsilon, delta), pn.promises.PureDP(epsilon)
    plans = [pn.Accountant().compose(each, promised).compose(cells, count) for each in promises]
    found, pure = (plan.delta(at) for plan in plans)
    finite = (1.0 - delta) ** promised
    assert found.composer == "choices"
    assert found.lower <= (1.0 - finite + finite * pure.upper) * (1.0 + 1e-12)
    assert found.upper >= (1.0 - finite + finite * pure.lower) * (1.0 - 1e-12)
    assert found.width <= 1e-4
