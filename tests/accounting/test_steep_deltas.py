"""Deltas far below what the saddle point says (one use of Gaussian and one of Laplace noise, whose
composition is an integral over one output), next to 1, and at epsilons below 0 or beyond all."""

from __future__ import annotations

import math
import warnings

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import gaussian_delta
from scipy import optimize, signal

import psinoise as pn
from psinoise.mechanisms.promises import ZCDP
from refusals import for_each, for_rows


def laplace_delta(scale, epsilon):
    """One use at sensitivity 1, for any epsilon: Balle and Wang 2018."""
    top = 1 / mp.mpf(scale)
    if epsilon >= top:
        return mp.mpf(0)
    return 1 - mp.exp((epsilon - top) / 2) if epsilon > -top else 1 - mp.exp(epsilon)


def sampled(delta, rate, epsilon):
    """``(P' - e^eps Q)^+`` with ``P' = (1 - q) Q + q P``."""
    rest = (mp.exp(epsilon) - 1 + rate) / rate
    return rate * delta(mp.log(rest)) if rest > 0 else 1 - mp.exp(epsilon)


def truth(std, rate, scale, other_rate, epsilon):
    """Delta when the record is there, at 40 digits."""
    with mp.workdps(40):
        std, rate, other = mp.mpf(std), mp.mpf(rate), mp.mpf(other_rate)

        def integrand(x):
            ratio = 1 - rate + rate * mp.exp((x - mp.mpf(1) / 2) / std**2)
            rest = sampled(lambda e: laplace_delta(scale, e), other, epsilon - mp.log(ratio))
            return ratio * mp.npdf(x, 0, std) * rest

        # Where the loss of the Gaussian alone, or with the largest or smallest other, is epsilon.
        def output(loss):
            inner = (mp.exp(loss) - 1 + rate) / rate
            return std**2 * mp.log(inner) + mp.mpf(1) / 2

        top = 1 / mp.mpf(scale)
        losses = [mp.log(1 - other + other * mp.exp(sign * top)) for sign in (1, -1)]
        first, last = (output(epsilon - loss) for loss in losses)
        steps = [last + std * step for step in (mp.mpf(1) / 4, 1, 3, 8, 30)]
        halves = [first + (last - first) * k / 16 for k in range(17)]
        return mp.quad(integrand, [*halves, *steps])


@for_rows(
    [
        (4.14, 0.01, 5.36, 0.1, 0.5),
        (4.66, 0.01, 7.2, 1.0, 0.35),
        (4.66, 0.01, 7.2, 1.0, 0.4),
        (4.35, 0.001, 1.912, 0.1, 0.5),
        (4.35, 0.001, 1.912, 0.1, 0.8),
        (5.8, 0.01, 3.0, 0.01, 0.45),
        (3.0, 0.001, 9.0, 1.0, 0.6),
        (1.5, 0.1, 2.0, 0.5, 8.0),
    ]
)
def test_two_uses(std, rate, scale, other_rate, epsilon):
    """Kills: a guess that is too large, by which all that reaches epsilon is trimmed, or out of the
    reach of nodes; bounds that may stay apart by a share of epsilon."""
    exact = truth(std, rate, scale, other_rate, epsilon)
    plan = pn.Accountant("remove")
    plan = plan.compose(pn.Mechanism(pn.Gaussian(std=std)), 1, rate)
    plan = plan.compose(pn.Mechanism(pn.Laplace(scale=scale)), 1, other_rate)
    found = plan.delta(epsilon)
    assert found.lower <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= found.upper
    assert found.upper - found.lower <= 5e-3 * found.upper
    assert exact < 1e-12


def fresh(laws):
    plan = pn.Accountant()
    for law, count, rate in laws:
        plan = plan.compose(pn.Mechanism(law), count, rate)
    return plan


@pytest.mark.parametrize(
    ("laws", "epsilon"),
    [
        ([(pn.Gaussian(std=5.82), 3, 0.01)], 0.5),
        ([(pn.Gaussian(std=7.704), 2, 0.001)], 0.0541),
        ([(pn.Laplace(scale=4.882), 3, 1.0), (pn.Gaussian(std=6.615), 1, 0.01)], 0.8782),
        ([(pn.Airy(mean_abs=2.175), 3, 0.001)], 0.0654),
        ([(pn.Gaussian(std=9.37), 1, 0.001)], 0.0144),
    ],
)
def test_there_and_back(laws, epsilon):
    """Epsilon at the delta that is found: another way there."""
    found = fresh(laws).delta(epsilon)
    assert found.upper - found.lower <= 1e-3 * found.upper
    assert math.log(found.upper) < -200.0
    assert (
        fresh(laws).epsilon(found.upper).lower <= epsilon <= fresh(laws).epsilon(found.lower).upper
    )


def test_epochs():
    """Kills: bounded losses that count as infinite; an epoch of which all was trimmed."""
    sampling = pn.sampling.RandomAllocation(steps=20)
    plan = pn.Accountant().compose(pn.Mechanism(pn.Laplace(scale=3.0)), 10, sampling=sampling)
    found = plan.delta(2.0)
    assert 0.0 < found.lower < found.upper < 4e-19
    one = pn.Mechanism(pn.Gaussian(std=1.0))
    found = one.delta(10.0, sampling=pn.sampling.RandomAllocation(steps=100))
    assert 0.0 < found.upper - found.lower < 1e-2 * found.upper < 1e-46
    found = one.delta(30.0, 5, sampling=pn.sampling.RandomAllocation(steps=100))
    assert 0.0 < found.lower < found.upper < 5.0 * found.lower < 1e-112


@for_rows([(1.0, 2, 2, 1e-27), (1.0, 3, 2, 1e-100), (100.0, 2, 2, 1e-30)])
def test_epochs_there_and_back(std, steps, count, delta):
    """Kills: what was trimmed for a delta of e^-40, taken for those down to e^-65."""
    sampling = pn.sampling.RandomAllocation(steps)
    epsilon = pn.Mechanism(pn.Gaussian(std=std)).epsilon(delta, count, sampling=sampling).upper
    found = pn.Mechanism(pn.Gaussian(std=std)).delta(epsilon, count, sampling=sampling)
    assert found.lower <= delta
    assert 0.8 * delta < found.upper < 1.2 * delta


@for_rows([(5e-324,), (1e-300,)])
def test_rates_that_leave_masses_no_digits(rate):
    with pytest.raises(pn.DomainError, match="sampling_rate must be 0 or at least"):
        pn.Mechanism(pn.Gaussian(std=1.0)).delta(0.0, 10**9, rate)


@for_each([0.01, 1.0], [6.0, 20.0, 30.0, 36.0])
def test_small_deltas_of_one_use_known_by_measures(rho, deviations):
    """Kills: nodes for a delta of 2e-93 at the least, beyond which all mass was infinite."""
    mu = math.sqrt(2.0 * rho)
    epsilon = rho + deviations * mu
    found = ZCDP(rho).delta(epsilon)
    least = found.lower
    assert gaussian_delta(epsilon, mu) * (1.0 - 1e-12) <= found.upper
    # The conversion at the best order, over Gaussian noise, is about the deviations.
    assert 0.0 < found.upper <= 10.0 * deviations * least


@for_rows([(pn.Airy(mean_abs=0.5), 3, 30.0), (pn.Gaussian(std=2.0), 1, 12.0)])
def test_small_deltas_of_one_use_of_schemes(noise, dimension, epsilon):
    if dimension > 1:
        found = pn.Mechanism(noise, dimension=dimension).delta(epsilon, 1, 0.01)
        assert 0.0 < found.lower <= found.upper <= 2.0 * found.lower
    else:
        scheme = pn.sampling.WithoutReplacement(1, 10)
        found = pn.Mechanism(noise).delta(epsilon, adjacency="replace", sampling=scheme)
        # From above a record that is in the batch for certain is worse.
        assert found.upper <= pn.Mechanism(noise).delta(epsilon, adjacency="replace").upper < 1e-93


def ten_of_each(adjacency):
    """At an epsilon of 1.5566, where the smaller direction is below the other by e^-77."""
    accountant = pn.Accountant(adjacency)
    accountant.compose(pn.Mechanism(pn.Gaussian(std=3.8427578)), 10, 0.00203943349)
    return accountant.compose(pn.Mechanism(pn.Laplace(scale=6.24693870)), 10, 0.96688996)


def test_no_lattice_is_as_fine_as_is_asked():
    """A coarser one is tried: a bracket that began at 0 before. Any width says the same."""
    at, found = 1.5566, ten_of_each("add").delta(1.5566)
    assert found.width <= 2e-2 * found
    for tolerance in (1e-6, 1e-5, 1e-4):
        other = ten_of_each("add").delta(at, tolerance=tolerance)
        assert max(found.lower, other.lower) <= min(found.upper, other.upper)


def test_a_direction_far_behind_does_not_matter():
    """It is asked for no more than to be behind: a bracket wide by a factor of 24 before."""
    both, larger = (ten_of_each(adjacency).delta(1.5566) for adjacency in ("add-remove", "remove"))
    assert (both.lower, both.upper) == (larger.lower, larger.upper)
    assert both.width <= 1e-3 * both


def test_a_new_plan_is_judged_by_its_own_compositions():
    """It was given up where its first composition came no closer than the last of the old one."""
    accountant = pn.Accountant()
    accountant.compose(pn.Mechanism(pn.Gaussian(std=19.6752012)), 1, 0.0085144330)
    accountant.compose(pn.Mechanism(pn.Gaussian(std=0.970191122)), 2, 0.00216230501)
    accountant.compose(pn.Mechanism(pn.Laplace(scale=2.45132061)), 5, 0.61945857599)
    found = accountant.epsilon(9.688178708073988e-10)
    assert found.width <= 1e-4 * found


def laplace_epsilon(scale, uses, delta, nodes=8001):
    """Bounds on epsilon of unsampled Laplace noise of one sensitivity: its loss on two lattices, of
    the same number of nodes for each size."""
    top = 1.0 / scale
    step = 2.0 * top / (nodes - 1)
    ends = top - step * np.arange(nodes)  # P(L <= top - d) = e^{-d/2} / 2 below top
    below = 0.5 * np.exp(-(top - ends) / 2.0)
    below[-1] = 0.5 * math.exp(-top)
    found = []
    for up in (False, True):
        # Masses between ends to one of them; atoms at both of the largest losses stay.
        between = -np.diff(below)
        mass = np.zeros(nodes)
        mass[0], mass[-1] = 0.5, below[-1]
        mass[slice(None, -1) if up else slice(1, None)] += between
        whole = mass
        for _ in range(uses - 1):
            whole = signal.fftconvolve(whole, mass)
        losses = uses * top - step * np.arange(whole.size)

        def excess(epsilon, whole=whole, losses=losses):
            return float(whole @ -np.expm1(np.minimum(epsilon - losses, 0.0))) - delta

        found.append(optimize.brentq(excess, 0.0, uses * top))
    return found


@for_rows([(0.1, 10, 1e-7), (0.1, 6, 1e-7), (0.2, 12, 1e-6)])
def test_deltas_next_to_1_of_few_uses(scale, uses, rest):
    """Kills: trimming a share of delta, which is not little beside 1 - delta: [0, 30] for 29.8."""
    low, high = laplace_epsilon(scale, uses, 1.0 - rest)
    found = pn.Mechanism(pn.Laplace(scale=scale)).epsilon(1.0 - rest, uses)
    assert low <= found.upper
    assert found.lower <= high
    assert found.width <= 1e-3 * found


@for_rows([(2, 0.0), (3, 18.1781)])
def test_randomized_response_next_to_1(uses, epsilon):
    """Of a loss of 20 and -20: the second largest sum, by the binomial."""
    p = 1.0 / (1.0 + math.exp(-20.0))
    rest = 1e-9
    losses = [20.0 * (uses - 2 * k) for k in range(uses + 1)]
    masses = [math.comb(uses, k) * p ** (uses - k) * (1.0 - p) ** k for k in range(uses + 1)]

    def delta(at):
        return sum(m * -math.expm1(min(at - x, 0.0)) for x, m in zip(losses, masses, strict=True))

    found = pn.promises.PureDP(20.0).epsilon(1.0 - rest, uses)
    assert found == pytest.approx(epsilon, abs=2e-3)
    assert delta(float(found)) <= 1.0 - rest
    if found.lower > 0.0:
        assert delta(found.lower) >= 1.0 - rest


def test_negative_epsilons_where_no_loss_is_above_0():
    """Uniform laws with an atom: losses are 0 or infinite. Kills: asking at an epsilon of 0 whether
    anything is known of losses."""
    for uses in (2, 6):
        exact = 1.0 - 0.75**uses * math.exp(-0.35)
        accountant = pn.Accountant().compose(pn.Mechanism(pn.UniformAtom(delta=0.25)), uses)
        found, profile = accountant.delta(-0.35), accountant.profile([-0.35])
        assert found.lower <= exact <= found.upper <= exact + 1e-10
        assert profile.lower[0] <= exact <= profile[0] <= exact + 1e-3
        assert accountant.estimate.delta(-0.35) == pytest.approx(exact, rel=1e-9)


def test_the_far_end_of_all_numbers():
    """Without warnings: epsilons that strides take to infinity."""
    accountant = pn.Accountant().compose(pn.promises.ZCDP(0.1), 10)
    accountant = accountant.compose(pn.Mechanism(pn.UniformAtom(delta=0.1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert accountant.delta(1e300).upper == pytest.approx(0.1, rel=1e-9)
    # Nearly all losses are infinite: nothing is composed.
    assert pn.promises.ApproximateDP(3.1, 5.3e-5).delta(0.0, 2_576_836).composer == "exact"
