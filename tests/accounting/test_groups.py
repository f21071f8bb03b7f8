"""Promises to groups of records, against discrete Laplace noise and linear programs over tests."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import linprog

import psinoise as pn
from psinoise.mechanisms.promises import ApproximateDP, PureDP
from refusals import for_each, for_rows


def worst_chain(epsilon, delta, size, at, outcomes):
    """The largest ``P_0(S) - e^at P_k(S)`` of sequences of so many outcomes, by a linear program.

    ``S`` is the first half of the outcomes; slacks hold what exceeds ``e^epsilon`` times a
    neighbor, delta in all.
    """
    count, pairs = (size + 1) * outcomes, [(i, i + 1) for i in range(size)]
    pairs += [(j, i) for i, j in pairs]
    width = count + len(pairs) * outcomes
    rows, limits = [], []
    for place, (i, j) in enumerate(pairs):
        first = count + place * outcomes
        for outcome in range(outcomes):
            row = np.zeros(width)
            row[[i * outcomes + outcome, j * outcomes + outcome]] = 1.0, -math.exp(epsilon)
            row[first + outcome] = -1.0
            rows.append(row)
            limits.append(0.0)
        rows.append(np.zeros(width))
        rows[-1][first : first + outcomes] = 1.0
        limits.append(delta)
    sums = np.zeros((size + 1, width))
    for i in range(size + 1):
        sums[i, i * outcomes : (i + 1) * outcomes] = 1.0
    gain = np.zeros(width)
    gain[: outcomes // 2] = -1.0
    gain[size * outcomes : size * outcomes + outcomes // 2] = math.exp(at)
    found = linprog(gain, rows, limits, sums, np.ones(size + 1), method="highs")
    return -found.fun


@for_each([(1.0, 2), (0.5, 3), (2.0, 2), (0.3, 5)], [0.0, 0.4, 0.8])
def test_pure_privacy_of_groups_is_the_worst_of_all_mechanisms(case, share):
    epsilon, size = case
    at = share * epsilon * size
    exact = max(worst_chain(epsilon, 0.0, size, at, outcomes) for outcomes in (4, 6))
    found = PureDP(epsilon).for_group(size).delta(at)
    assert found.lower == pytest.approx(exact, rel=1e-7) == found.upper


@for_each([(1.0, 0.01, 2), (0.5, 0.05, 3), (0.0, 0.1, 4)], [0.0, 0.5, 0.9])
def test_approximate_privacy_of_groups_holds_the_worst_of_all_mechanisms(case, share):
    epsilon, delta, size = case
    at = share * epsilon * size
    exact = max(worst_chain(epsilon, delta, size, at, outcomes) for outcomes in (4, 6))
    found = ApproximateDP(epsilon, delta).for_group(size).delta(at)
    assert found.lower <= exact * (1 + 1e-7)
    assert exact <= found.upper * (1 + 1e-7)


@for_each(
    [(1.0, 2), (0.5, 3), (0.01, 5), (20.0, 2), (0.125, 40), (2.0**-10, 1000)], [1, 4], [False, True]
)
def test_pure_privacy_of_groups_is_discrete_laplace_noise(case, count, approximate):
    """Delta(0) of one use in closed form, and the mechanism otherwise."""
    (epsilon, size), each = case, 0.0
    promise = ApproximateDP(epsilon, 0.0) if approximate else PureDP(epsilon)
    group = promise.for_group(size)
    noise = pn.Mechanism(pn.DiscreteLaplace(scale=1.0 / epsilon), sensitivity=size)
    for at in (-0.3 * epsilon, 0.0, 0.6 * size * epsilon):
        found, same = group.delta(at, count), noise.delta(at, count)
        assert found.lower <= same.upper * (1 + 1e-12)
        assert same.lower <= found.upper * (1 + 1e-12)
    with mp.workdps(40):
        a, half = mp.exp(-mp.mpf(epsilon)), (size + 1) // 2
        each = 1 - (a**half + a ** (size + 1 - half)) / (1 + a)
    found = group.delta(0.0)
    assert found.lower <= each <= found.upper <= each * (1 + 1e-12)
    found, same = group.epsilon(1e-3, count), noise.epsilon(1e-3, count)
    assert found.lower <= same.upper * (1 + 1e-12)
    assert same.lower <= found.upper * (1 + 1e-12)
    assert group.pure_epsilon() == pytest.approx(size * epsilon, rel=1e-15)


@for_rows([(1e-3, 5000), (1e-4, 10**5), (1e-9, 10**9), (1e-15, 2**60), (1e-30, 2**62)])
def test_groups_of_many_records_hold_laplace_noise(epsilon, size):
    group = PureDP(epsilon).for_group(size)
    noise = pn.Mechanism(pn.Laplace(scale=1.0), sensitivity=epsilon * size)
    for found, same in (
        (group.delta(0.0), noise.delta(0.0)),
        (group.delta(0.5 * epsilon * size, 3), noise.delta(0.5 * epsilon * size, 3)),
    ):
        assert found.lower <= same.upper * (1 + 1e-12)
        assert same.lower <= found.upper <= 1.001 * same.upper + 1e-13
    assert group.epsilon(0.0).upper == pytest.approx(epsilon * size, rel=1e-3)


@for_rows([(1.0, 0.01, 2), (0.1, 1e-5, 10), (1e-3, 1e-9, 5000), (0.5, 1e-300, 3)])
def test_approximate_privacy_of_groups_tells_less_than_its_bound(epsilon, delta, size):
    """From below no more than what one record is told may be told for certain."""
    group = ApproximateDP(epsilon, delta).for_group(size)
    found = group.delta(3.0 * epsilon * size * (1 + 1e-9), 3)
    assert found.lower <= -math.expm1(3.0 * math.log1p(-delta)) < found.upper
    assert PureDP(epsilon).for_group(size).delta(0.0).lower <= group.delta(0.0).upper
    between = 0.5 * group.parameters["delta"]
    assert group.epsilon(between).lower <= epsilon * size * (1 + 1e-12)
    assert group.epsilon(between).upper == math.inf
    assert group.profile([0.0]).lower[0] == pytest.approx(group.delta(0.0).lower, rel=1e-9)
    composed = pn.Accountant().compose(group, 2).compose(pn.Mechanism(pn.Gaussian(std=1.0)))
    assert composed.delta(0.0).lower <= composed.estimate.delta(0.0)
