"""What must hold for certified bounds whatever the law, its scale, the rate and the uses.

Two brackets that contradict a property of the true values cannot both hold: where the true values
are ordered, the lower bound of the smaller one is below the upper bound of the larger one.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_oracles import laplace_delta_once

import psinoise as pn

FEW = settings(max_examples=6, deadline=None, derandomize=True)

LAWS = (pn.Gaussian, pn.Airy, pn.Laplace)
laws = st.sampled_from(LAWS)
sizes = st.floats(0.7, 20.0)
rates = st.just(1.0) | st.floats(0.01, 0.9)
counts = st.integers(1, 1000)
deltas = st.floats(-10.0, -2.0).map(lambda power: 10.0**power)
larger = st.floats(1.05, 2.0)
# Losses of very different sizes, and few of them.
scales = st.floats(-0.3, 3.5).map(lambda power: 10.0**power)
steps = st.tuples(laws, scales, st.integers(1, 40), st.sampled_from([1.0, 0.2, 1e-3]))
plans = st.lists(steps, min_size=1, max_size=3)


def epsilon(law, size, delta, count, rate, sensitivity=1.0):
    return pn.Mechanism(law(mean_abs=size), sensitivity).epsilon(delta, count, rate)


def composed(plan):
    accountant = pn.Accountant()
    for law, size, count, rate in plan:
        accountant.compose(pn.Mechanism(law(mean_abs=size)), count, rate)
    return accountant


def overlap(one, other):
    """Whether one true value can lie in both."""
    return one.lower <= other.upper and other.lower <= one.upper


def apart(plan):
    """The same plan in two parts, whose steps are too close to differ but are not merged."""
    for law, size, count, rate in plan:
        if count > 1:
            yield law, size, count // 2, rate
            yield law, size * (1.0 + 1e-13), count - count // 2, rate
        else:
            yield law, size, count, rate


@pytest.mark.deep
@settings(max_examples=8, deadline=None, derandomize=True)
@given(plans, deltas, steps)
def test_plans(plan, delta, more):
    """Order of the ends, monotone in delta and in steps, and the same for the same steps."""
    accountant = composed(plan)
    base = accountant.epsilon(delta)
    assert 0.0 <= base.lower <= base.estimate <= base.upper
    assert base.width <= 3e-3 * max(base.upper, 1e-9)
    assert base.lower <= accountant.epsilon(delta / 3.0).upper
    assert base.lower <= composed([*plan, more]).epsilon(delta).upper
    assert overlap(composed(list(apart(plan))).epsilon(delta), base)
    # Epsilon and delta are inverse: the true delta of each end is known from its bracket.
    assert accountant.delta(base.upper).lower <= delta
    if base.lower > 0.0:
        assert accountant.delta(base.lower).upper >= delta
        below, above = (accountant.delta(base.lower * factor) for factor in (0.9, 1.1))
        assert below.upper >= above.lower


@FEW
@given(laws, sizes, deltas, rates)
def test_five_and_seven_are_twelve(law, size, delta, rate):
    """Composed by different powers, from steps that are not merged."""
    twelve = composed([(law, size, 12, rate)]).epsilon(delta)
    nearly = size * (1.0 + 2.0**-52)
    for five, seven in ((5, 7), (7, 5), (1, 11)):
        found = composed([(law, size, five, rate), (law, nearly, seven, rate)]).epsilon(delta)
        assert overlap(found, twelve)


@FEW
@given(laws, sizes, deltas, counts, rates, larger)
def test_monotone_in_every_parameter(law, size, delta, count, rate, factor):
    base = epsilon(law, size, delta, count, rate)
    assert base.lower <= base.estimate <= base.upper
    assert base.width <= 1e-3 * base.estimate
    for above in (
        epsilon(law, size, delta, math.ceil(factor * count), rate),
        epsilon(law, size, delta / factor, count, rate),
        epsilon(law, size / factor, delta, count, rate),
        epsilon(law, size, delta, count, rate, factor),
        epsilon(law, size, delta, count, min(factor * rate, 1.0)),
    ):
        assert base.lower <= above.upper
        assert base.estimate <= above.estimate * (1.0 + 1e-3)


@FEW
@given(laws, sizes, deltas, counts, rates)
def test_a_split_count_is_one_count(law, size, delta, count, rate):
    mechanism = pn.Mechanism(law(mean_abs=size))
    split = pn.Accountant().compose(mechanism, 3, rate).compose(mechanism, count, rate)
    assert split.epsilon(delta) == mechanism.epsilon(delta, count + 3, rate)


@FEW
@given(st.permutations([0, 1, 2]), st.lists(sizes, min_size=3, max_size=3), deltas, rates)
def test_the_order_of_composition_does_not_matter(order, scales, delta, rate):
    steps = [
        (pn.Mechanism(law(mean_abs=size)), count, rate)
        for law, size, count in zip(LAWS, scales, (3, 5, 2), strict=True)
    ]
    forward, shuffled = pn.Accountant(), pn.Accountant()
    for k in range(3):
        forward.compose(*steps[k])
        shuffled.compose(*steps[order[k]])
    one, other = forward.epsilon(delta), shuffled.epsilon(delta)
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    assert one.estimate == pytest.approx(other.estimate, rel=1e-4)


@pytest.mark.deep
@FEW
@given(laws, sizes, counts, rates, st.floats(0.0, 3.0), st.floats(0.01, 1.0))
def test_delta_is_convex_in_the_exponential_of_epsilon(law, size, count, rate, epsilon, gap):
    """``delta = sup over events of P - gamma Q``: a supremum of lines in ``gamma = e^epsilon``."""
    gammas = math.exp(epsilon) + gap * np.array([0.0, 0.4, 1.0])
    mechanism = pn.Mechanism(law(mean_abs=size))
    composed = mechanism.composed(count, rate)
    upper, exact = (made.profile(np.log(gammas)) for made in (composed, composed.estimate))
    upper = upper.upper
    assert exact[1] <= (0.6 * exact[0] + 0.4 * exact[2]) * (1.0 + 1e-3) + 1e-300
    assert exact[1] <= (0.6 * upper[0] + 0.4 * upper[2]) * (1.0 + 1e-3) + 1e-300
    assert np.all(exact <= upper * (1.0 + 1e-9))
    assert np.all(np.diff(upper) <= 0.0)


@FEW
@given(laws, sizes, deltas, counts, rates)
def test_the_round_trip_stays_on_the_safe_side(law, size, delta, count, rate):
    mechanism = pn.Mechanism(law(mean_abs=size))
    bounds = mechanism.epsilon(delta, count, rate)
    # The true delta at the upper bound is at most delta, and that at the lower one at least.
    assert mechanism.delta(bounds.upper, count, rate).lower <= delta
    if bounds.lower > 0.0:
        assert mechanism.delta(bounds.lower, count, rate).upper >= delta
        middle = mechanism.composed(count, rate).estimate.epsilon(delta)
        back = mechanism.delta(middle, count, rate)
        assert back.lower * (1.0 - 1e-3) <= delta <= back.upper * (1.0 + 1e-3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(0.2, 30.0), st.floats(-30.0, -0.5).map(lambda power: 10.0**power))
def test_one_laplace_use_up_to_its_largest_loss(scale, delta):
    """``1/b + 2 log(1 - delta)``; near the largest loss no lattice resolves the profile."""
    exact = max(1.0 / scale + 2.0 * math.log1p(-delta), 0.0)
    bounds = pn.Mechanism(pn.Laplace(scale=scale)).epsilon(delta)
    assert bounds.lower <= exact + 4e-16 * max(1.0, exact)
    assert bounds.upper >= exact - 4e-16 * max(1.0, exact)
    assert bounds.width <= 1e-9 * max(1e-3, exact)
    assert float(laplace_delta_once(bounds.upper, scale)) <= delta * (1.0 + 1e-12) + 4e-16
