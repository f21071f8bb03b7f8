"""Laplace noise: losses with atoms, whose characteristic function does not decay."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import (
    laplace_delta,
    laplace_delta_once,
    sampled_laplace_delta_twice,
    sampled_laplace_losses,
    subsampled_delta,
)

import psinoise as pn
from refusals import for_each, for_rows


@for_each([0.1, 1.0, 25.0], [-1.5, -0.4, 0.0, 0.3, 0.999, 1.0, 2.0])
def test_one_use(scale, share):
    epsilon = share / scale
    exact = float(laplace_delta_once(epsilon, scale))
    value = pn.Mechanism(pn.Laplace(scale=scale)).composed().estimate.delta(epsilon)
    assert value == pytest.approx(exact, rel=1e-8, abs=0.0)


@for_each([0.3, 1e-3, 1e-12, 1e-300])
def test_one_use_inverted(delta):
    """1 - exp((eps - 1)/2) = delta."""
    epsilon = pn.Mechanism(pn.Laplace(scale=1.0)).composed().estimate.epsilon(delta)
    assert epsilon == pytest.approx(1.0 + 2.0 * math.log1p(-delta), abs=1e-9)


@pytest.mark.deep
@for_rows([(2, 1.0), (2, 0.2), (3, 2.0), (5, 1.0), (10, 5.0)])
def test_few_uses_against_the_exact_sum(count, scale):
    mechanism = pn.Mechanism(pn.Laplace(scale=scale))
    top = count / scale
    # 0 and 0.2 * top are break points of the profile for some counts, the others are not.
    for share in (-0.3, 0.0, 0.2, 0.37, 0.99):
        exact = float(laplace_delta(share * top, scale, count))
        delta = mechanism.composed(count).estimate.delta(share * top)
        # At a break point the end of the contour counts like 1/t^2, elsewhere much less.
        assert delta == pytest.approx(exact, rel=1e-4)
        if share >= 0.0:
            epsilon = mechanism.composed(count).estimate.epsilon(exact)
            # Where 1 - delta is 1e-6, rounding of delta alone moves epsilon by 1e-10.
            assert epsilon == pytest.approx(share * top, rel=2e-6, abs=1e-6)


@pytest.mark.deep
def test_a_hundred_uses_against_the_exact_sum():
    mechanism = pn.Mechanism(pn.Laplace(scale=10.0))
    for epsilon in (2.0, 3.7):
        exact = laplace_delta(epsilon, 10.0, 100)
        found = mechanism.delta(epsilon, 100)
        assert found.lower <= exact <= found.upper
        assert found.width <= 1e-2 * exact
        found = mechanism.epsilon(float(exact), 100)
        assert found.lower - 1e-12 <= epsilon <= found.upper + 1e-12


@pytest.mark.deep
@for_each([2, 7, 40])
def test_saturation_at_the_largest_loss(count):
    mechanism = pn.Mechanism(pn.Laplace(scale=2.0))
    top = count * 0.5
    assert mechanism.composed(count).estimate.epsilon(0.0) == top
    found = mechanism.epsilon(1e-300, count)
    assert found.lower <= top == found.upper
    assert mechanism.composed(count).estimate.epsilon(1e-300) == pytest.approx(top, rel=1e-4)
    assert mechanism.composed(count).estimate.delta(top) == 0.0
    # Just below the top only the product of the largest atoms counts: 2^-n (1 - e^{eps - top}).
    gap = 1e-9
    exact = -math.expm1(-gap) / 2.0**count
    below = mechanism.delta(top - gap, count)
    # top - gap is rounded: half an ulp of top in a gap of 1e-9, and the next term is gap * n.
    error = 2e-16 * top / gap + 1e-7
    assert below.lower <= exact * (1.0 + error)
    assert below.upper >= exact * (1.0 - error)


@for_each(["remove", "add"], [0.01, 0.5])
def test_two_sampled_uses(direction, rate):
    scale = 1.0
    values = {}
    for share in (0.1, 0.5, 0.93):
        epsilon = share * 2.0 * math.log1p(rate * math.expm1(1.0 / scale))
        values[epsilon] = float(sampled_laplace_delta_twice(epsilon, scale, rate, direction))
    other = "add" if direction == "remove" else "remove"
    mechanism = pn.Mechanism(pn.Laplace(scale=scale))
    for epsilon, exact in values.items():
        opposite = float(sampled_laplace_delta_twice(epsilon, scale, rate, other))
        delta = mechanism.composed(2, rate).estimate.delta(epsilon)
        assert delta == pytest.approx(max(exact, opposite), rel=1e-5)


@for_each([0.1, 0.6])
def test_three_sampled_uses_by_brute_force(rate):
    """Midpoint rule in the losses of two uses, closed form for the third; direction remove wins."""
    scale, points = 0.7, 3000
    atoms, _, a = sampled_laplace_losses(scale, rate, "remove")
    ratio = float(a) * (2.0 * np.arange(points) + 1.0 - points) / points
    width = 2.0 * float(a) / points
    loss = np.log1p(rate * np.expm1(ratio))
    mass = 0.25 * np.exp(-(ratio + float(a)) / 2.0) * np.exp(loss) * width
    losses = np.concatenate([loss, [float(x) for x, _ in atoms]])
    masses = np.concatenate([mass, [float(w) for _, w in atoms]])

    def once(e):
        """q H(1 + (e^eps - 1)/q), with the profile of one Laplace use."""
        inside = 1.0 + np.expm1(e) / rate
        plain = np.log(np.maximum(inside, 1e-300))
        one = np.where(
            plain <= -1.0 / scale, -np.expm1(plain), -np.expm1((plain - 1.0 / scale) / 2)
        )
        one = np.where(plain >= 1.0 / scale, 0.0, one)
        return np.where(inside <= 0.0, -np.expm1(e), rate * one)

    epsilon = 0.4 * 3.0 * float(atoms[0][0])
    total = 0.0
    for start in range(0, losses.size, 500):
        part = slice(start, start + 500)
        rest = epsilon - losses[part, None] - losses
        total += float(masses[part] @ (once(rest) @ masses))
    delta = pn.Mechanism(pn.Laplace(scale=scale)).composed(3, rate).estimate.delta(epsilon)
    # The midpoint rule is off by (2 a / points)^2.
    assert delta == pytest.approx(total, rel=3e-6)


@for_each([-2.0, -0.05, 0.0, 0.02, 0.09, 0.3, 1.0], [0.05, 0.7])
def test_one_sampled_use_in_closed_form(epsilon, rate):
    exact = max(
        subsampled_delta(lambda e: laplace_delta_once(e, 1.0), epsilon, rate, direction)
        for direction in ("remove", "add")
    )
    delta = pn.Mechanism(pn.Laplace(scale=1.0)).composed(sampling_rate=rate).estimate.delta(epsilon)
    assert delta == pytest.approx(float(exact), rel=1e-8, abs=1e-300)


def test_incommensurable_atoms_compose():
    """Scales 1 and sqrt(2): the profile of one use averaged over the loss of the other."""
    scales = (1.0, math.sqrt(2.0))
    accountant = pn.Accountant()
    for scale in scales:
        accountant.compose(pn.Mechanism(pn.Laplace(scale=scale)))
    a = 1.0 / scales[1]
    for epsilon in (0.0, 0.3, 1.2, 1.7):
        with mp.workdps(30):
            total = laplace_delta_once(epsilon - a, scales[0]) / 2
            total += mp.exp(-a) / 2 * laplace_delta_once(epsilon + a, scales[0])
            cuts = sorted({-a, a, *(x for x in (epsilon - 1.0, epsilon + 1.0) if -a < x < a)})
            total += mp.quad(
                lambda y, e=epsilon: (
                    mp.exp(-mp.mpf(a) / 2 + y / 2) / 4 * laplace_delta_once(e - y, scales[0])
                ),
                cuts,
            )
        assert accountant.estimate.delta(epsilon) == pytest.approx(float(total), rel=1e-5)


@for_each([1, 3], [1.0, 0.1])
def test_delta_below_all_losses(count, rate):
    """It is ``1 - e^epsilon``, between both ends. Kills: its rounding as a lower end."""
    accountant = pn.Mechanism(pn.Laplace(scale=1e4)).composed(count, rate)
    spread = np.random.default_rng(8).uniform(-3.4, 1.6, 200)
    epsilons = np.array([*-(10.0**spread), -37.5, -700.0])
    nothing = np.array([*epsilons, -1e-300, -1e-310, -5e-324])
    with mp.workdps(700):
        for steps, asked in ((accountant, epsilons), (pn.Accountant(), nothing)):
            for epsilon, found in zip(asked.tolist(), steps.delta(asked), strict=True):
                exact = -mp.expm1(mp.mpf(epsilon))
                for bracket in (found, steps.delta(epsilon)):
                    assert bracket.lower <= exact <= bracket.upper
                assert steps is accountant or found.width <= 1e-14 * exact + 5e-324


@for_rows(
    [
        ((5.0, 6), (5.0, 0), 1.0),
        ((5.0, 12), (5.0, 0), 1.0),
        ((5.0, 30), (5.0, 0), 1.0),
        ((1.0, 6), (1.0, 0), 0.1),
        ((5.0, 12), (5.0, 0), 0.01),
        ((1.0, 2), (3.0, 5), 1.0),
        ((1.0, 2), (3.0, 5), 0.1),
    ]
)
def test_deltas_next_to_the_largest_loss(first, second, rate):
    """There all uses have their largest loss, which is an atom. Kills: the atom merged with what
    lies below it, after which delta was anything up to 250 times too much."""
    top, atom, steepest = mp.mpf(0), mp.mpf(1), 0.0
    for scale, uses in (first, second):
        ratio = mp.exp(1 / mp.mpf(scale))
        top += uses * mp.log(1 - rate + rate * ratio)
        atom *= (rate * 0.5 + (1 - rate) * 0.5 / ratio) ** uses
        # How fast other losses of one use come up below, relative to the atom.
        steepest += uses / rate
    for share in (1e-4, 1e-5, 1e-6):
        accountant = pn.Accountant()
        for scale, uses in (first, second):
            if uses:
                accountant.compose(pn.Mechanism(pn.Laplace(scale=scale)), uses, rate)
        epsilon = float(top * (1 - mp.mpf(share)))
        distance = top - mp.mpf(epsilon)
        least = atom * -mp.expm1(-distance)
        bracket = accountant.delta(epsilon)
        assert bracket.lower <= least * mp.exp(steepest * distance)
        assert bracket.upper >= least
        assert bracket.upper - bracket.lower <= 3e-3 * bracket.upper
