"""Costs of every kind that the assumption allows: none is refused, and all are right."""

from __future__ import annotations

import functools
import math
import warnings

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import psinoise as pn
from cost_truth import (
    STEEP,
    STRAIGHT,
    entire,
    log_cosh_series,
    oracle_of,
    straight_truth,
)
from ground_state_truth import Truth, power_truth, value
from psinoise import DomainError, costs


def bent(x):
    return np.abs(x) + 5.0 * np.maximum(np.abs(x) - 1.0, 0.0)


def zone(width):
    return lambda x: np.maximum(np.abs(x) - width, 0.0)


def table(x):
    x = np.abs(x)
    return np.interp(x, [0.0, 1.0, 2.0, 5.0], [0.0, 1.0, 1.5, 6.0]) + 2.0 * np.maximum(x - 5.0, 0.0)


def huber(x):
    return np.where(np.abs(x) <= 1.0, 0.5 * x * x, np.abs(x) - 0.5)


def step(width):
    def cost(x):
        edge = np.tanh((np.abs(x) - 2.0) / (2.0 * width)) + np.tanh(1.0 / width)
        return np.abs(x) + 0.5 * edge

    return cost


KINDS = {
    "max of powers": lambda: costs.parse("max(power:1,power:2)"),
    "max far apart": lambda: costs.parse("max(power:.5,power:3)"),
    "max of three": lambda: costs.parse("max(power:.5,power:1:.5,power:2:.01)"),
    "max with log": lambda: costs.parse("max(log,power:2:.1)"),
    "sum": lambda: costs.parse("power:1+log+power:3"),
    "hinge": lambda: costs.Power(1) + costs.Hinge(1.0, weight=5.0),
    "hinge, not declared": lambda: costs.Custom(bent),
    "dead zone": lambda: costs.Hinge(3.0),
    "dead zone, narrow": lambda: costs.Hinge(0.01),
    "dead zone, wide": lambda: costs.Hinge(100.0),
    "dead zone, not declared": lambda: costs.Custom(zone(3.0)),
    "dead zone, between edges": lambda: costs.Custom(zone(2.9)),
    "dead zone, squared": lambda: costs.Custom(lambda x: zone(1.0)(x) ** 2),
    "table": lambda: costs.Piecewise([(0, 0), (0.3, 0.1), (1, 1), (1.01, 1.5), (40, 50)]),
    "table, not declared": lambda: costs.Custom(table),
    "table, declared": lambda: costs.Custom(table, [1.0, 2.0, 5.0]),
    "Huber": lambda: costs.Huber(1.0),
    "Huber, wide": lambda: costs.Huber(30.0, weight=3.0),
    "Huber, not declared": lambda: costs.Custom(huber),
    "log-cosh": lambda: costs.LogCosh(3.0, weight=0.2),
    "log-cosh that rounds": lambda: costs.Custom(lambda x: np.logaddexp(x, -x) - np.log(2.0)),
    "log-cosh that overflows": lambda: costs.Custom(lambda x: np.log(np.cosh(x))),
    "step": lambda: costs.Custom(step(0.1)),
    "sharp step": lambda: costs.Custom(step(0.001)),
    "power 0.05": lambda: costs.Power(0.05),
    "power 0.3": lambda: costs.Power(0.3),
    "power 7.7": lambda: costs.Power(7.7),
    "power 14": lambda: costs.Power(14),
    "power 20 as a function": lambda: costs.Custom(lambda x: x**20),
    "power 30": lambda: costs.Power(30),
}


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_no_cost_is_refused(kind):
    """Each quantity against another way to it; 7 of the 29 mean costs that it was tried at."""
    cost = KINDS[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bound in 10.0 ** np.linspace(-4.0, 3.0, 7):
            noise = pn.Schrodinger(cost=cost, mean_cost=bound)
            assert noise.log_concave
            assert noise.mean_cost == pytest.approx(bound, rel=1e-12)
            assert noise.expected_cost(cost) == pytest.approx(bound, rel=2e-12)
            assert noise.moment(0) == pytest.approx(1.0, abs=1e-12)
            t = np.append(0.0, np.geomspace(1e-3, 1.0, 200)) * noise.iccdf(1e-290) / noise.scale
            (hi, lo), mills = noise.log_density(t), noise.log_mills(t)
            size = np.maximum(1.0, np.abs(hi) + abs(np.log(noise.scale)))
            tables = noise.logpdf(t * noise.scale)
            assert (np.abs(tables - (hi - np.log(noise.scale) + lo)) <= 4e-15 * size).all()
            assert (np.abs(noise.logccdf(t * noise.scale) - (hi + mills)) <= 4e-15 * size).all()
            p = np.exp(-np.linspace(0.7, 600.0, 50))
            np.testing.assert_allclose(noise.ccdf(noise.iccdf(p)), p, rtol=2e-12)


TABLES = {
    "dead zone": ((0, 0), (3, 0), (4, 1)),
    "hinge": ((0, 0), (1, 1), (2, 7)),
    "table": ((0, 0), (0.3, 0.1), (1, 1), (1.25, 1.5), (40, 50)),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("bound", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("known", [True, False])
def test_straight_lines_against_airy_functions(name, bound, known):
    cost = costs.Piecewise(TABLES[name])
    law = pn.Schrodinger(cost=cost if known else costs.Custom(cost), mean_cost=bound)
    with mpmath.workdps(120):
        energy, density, tail = straight_truth(TABLES[name], law.theta, law.ground_energy)
        assert abs(law.ground_energy / energy - 1) < 1e-14
        for x in np.append(0.0, law.iccdf([0.4, 0.1, 1e-3, 1e-9, 1e-60])):
            # Float64 points far out move a tail by more than the tail is off.
            near = 1e-12
            assert abs(law.pdf(x) / density(float(x)) - 1) < near, x
            assert abs(law.ccdf(x) / tail(float(x)) - 1) < near, x


@functools.cache
def log_cosh_truth(theta, guess, reach):
    with mp.workdps(40):
        return Truth(
            lambda x: mpmath.log(mpmath.cosh(x)),
            log_cosh_series,
            lambda x, theta, energy: (
                2 * (theta * (x - mpmath.log(2)) - energy) ** 1.5 / (3 * theta)
            ),
            theta,
            guess,
            reach,
        )


@pytest.mark.deep
@pytest.mark.parametrize("bound", [0.01, 2.0])
@pytest.mark.parametrize(
    "cost",
    [costs.LogCosh(), costs.Custom(lambda x: np.log(np.cosh(x)))],
    ids=["pair", "function"],
)
def test_log_cosh_against_taylor_series(cost, bound):
    law = pn.Schrodinger(cost=cost, mean_cost=bound)
    far = float(law.iccdf(1e-60))
    truth = log_cosh_truth(law.theta, law.ground_energy, 1.5 * far)
    with mp.workdps(40):
        assert abs(law.ground_energy / truth.energy - 1) < 1e-13
        for x in (0.0, *law.iccdf([0.4, 0.1, 1e-3, 1e-9]).tolist(), far):
            assert abs(law.pdf(x) / mpmath.exp(truth.log_density(x)) - 1) < 1e-12, x
            assert abs(law.ccdf(x) / truth.survival(x) - 1) < 1e-12, x


@pytest.mark.parametrize(("p", "end"), [(14, 2.2), (30, 1.48)])
def test_steep_powers_against_their_entire_functions(p, end):
    """The energy at which the even solution vanishes far out, where any other has grown."""
    law = pn.Schrodinger(cost=costs.Power(p), theta=1.0)
    with mp.workdps(120):
        end, guess = mpf(end), mpf(law.ground_energy)
        energy = mpmath.findroot(
            lambda e: value(entire(p, e, 3000), end),
            (guess, guess * (1 + mpf(10) ** -8)),
            tol=1e-100,
        )
        assert abs(law.ground_energy / energy - 1) < 1e-14
        series = entire(p, energy, 3000)[::2]

        peak = law.pdf(0.0)
        for x in law.iccdf([0.4, 0.1, 1e-3, 1e-9, 1e-20]).tolist():
            assert abs(law.pdf(x) / (peak * value(series, mpf(x) ** 2) ** 2) - 1) < 1e-12, x
    assert law.moment(0) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.deep
def test_a_small_power_against_taylor_series():
    law = pn.Schrodinger(cost=costs.Power(0.05), theta=1.0)
    points = np.append(0.0, law.iccdf([0.4, 0.1, 1e-3, 1e-9]))
    truth = power_truth(0.05, 1.0, law.ground_energy, float(100.0 * law.iccdf(1e-300)))
    with mp.workdps(40):
        assert abs(law.ground_energy / truth.energy - 1) < 1e-14
        for x in points.tolist():
            assert abs(law.pdf(x) / mpmath.exp(truth.log_density(x)) - 1) < 1e-12, x
            assert abs(law.ccdf(x) / truth.survival(x) - 1) < 1e-12, x


@pytest.mark.parametrize("kink", [1.3, 2.9, 3.0, 0.07])
def test_kinks_that_were_not_declared_are_found(kink):
    """In the user's units, also where an edge of a panel hides them."""
    found = pn.Schrodinger(cost=costs.Custom(zone(kink)), mean_cost=1.0)
    declared = pn.Schrodinger(cost=costs.Hinge(kink), mean_cost=1.0)
    assert found.theta == pytest.approx(declared.theta, rel=1e-13)
    assert max(abs(k - kink) for k in found.kinks[1:]) < 1e-3 * kink
    ours, theirs = (
        pn.Mechanism(law).epsilon(1e-6, 10, tolerance=1e-6) for law in (found, declared)
    )
    assert ours.upper == pytest.approx(theirs.upper, rel=1e-7)


def test_a_function_of_numbers_is_told_how_to_take_arrays():
    for function in (lambda x: x * x if x < 1.0 else abs(x), lambda x: math.log1p(abs(x))):
        with pytest.raises(TypeError, match=r"cost must take arrays.* numpy\.vectorize"):
            costs.Custom(function)


def test_rounding_is_told_from_a_fall_at_any_size():
    """Kills: a tolerance in absolute units."""
    for size, unit in ((1.0, 1.0), (1e-9, 1.0), (1e9, 1e6), (1.0, 1e6)):
        cost = costs.Custom(
            lambda x, size=size, unit=unit: size * (np.logaddexp(x / unit, -x / unit) - np.log(2.0))
        )
        assert cost.fall[0] < 1e-15 * size
        assert pn.Schrodinger(cost=cost, mean_cost=0.1 * size).log_concave
        with pytest.raises(DomainError, match="cost must"):
            pn.Schrodinger(cost=cost, mean_cost=1e-9 * size)
        with pytest.raises(DomainError, match="cost must not decrease"):
            costs.Custom(lambda x, size=size: size * (np.abs(x) + 1e-9 * np.cos(1e10 * x)))


@pytest.mark.parametrize(
    ("cost", "reason"),
    [
        (lambda x: np.where(np.abs(x) < 1.0, np.abs(x), np.inf), "infinity at x = 1.0: .* bounded"),
        (lambda x: np.where(np.abs(x) < 9.0, x * x, np.inf), "infinity at x = 9.0.*: .* bounded"),
        (lambda x: np.where(x < 0.0, np.inf, x), r"even, got cost\(1.0\) != cost\(-1.0\)"),
        (lambda x: np.where(x < 0.0, -3.0 * x, x), r"even, .* larger of cost\(x\) and cost\(-x\)"),
    ],
    ids=["straight, bounded", "square, bounded", "half line", "asymmetric"],
)
def test_what_is_beyond_the_assumption_is_refused_with_the_reason(cost, reason):
    """A wall is no overflow: a straight line up to it was continued beyond, silently."""
    use = {"delta": 1e-5, "count": 100, "mean_cost": 0.3}
    for make in (
        lambda: pn.Schrodinger(cost=cost, mean_cost=0.3),
        lambda: pn.OptimalUnimodal(cost=cost, **use),
        lambda: pn.Cactus(cost=cost, mean_cost=0.3),
        lambda: pn.compare(cost=cost, epsilon=1.0, delta=1e-6, laws=[pn.Schrodinger]),
    ):
        with pytest.raises(DomainError, match=reason):
            make()


# Where the energy is that of the function as it rounds, and by how much that is off.
ROUNDS = {"log-cosh that rounds", "log-cosh that overflows"}


def rounding_of(law, kind):
    """By which share the energy is off at most because a function rounds: ``dE = theta E[dc]``."""
    if kind not in ROUNDS:
        return 0.0
    x = np.linspace(0.0, 1.0, 400)[1:] * law.iccdf(1e-12)
    exact = np.array([float(mpmath.log(mpmath.cosh(mpf(v)))) for v in x.tolist()])
    off, weight = np.abs(law.cost(x) - exact), law.pdf(x)
    return float(law.theta * (off @ weight) / weight.sum() / law.ground_energy)


@pytest.mark.deep
@pytest.mark.parametrize(("kind", "bound"), list(zip(KINDS, [1e-4, 0.316, 1e3] * 10, strict=True)))
def test_every_cost_against_an_oracle(kind, bound):
    """Each of the thirty costs; all three mean costs of each were tried."""
    law = pn.Schrodinger(cost=KINDS[kind](), mean_cost=bound)
    points = np.append(0.0, law.iccdf([0.4, 0.1, 1e-2, 1e-4, 1e-9, 1e-20]))
    with mp.workdps(160 if kind in STRAIGHT else 120 if kind in STEEP else 40):
        truth = oracle_of(kind, law, float(law.iccdf(1e-40)))
        share = rounding_of(law, kind)
        assert abs(law.ground_energy / truth.energy - 1) < 1e-14 + share
        for x in points.tolist():
            assert abs(law.pdf(x) / truth.density(x) - 1) < 1e-12 + 100 * share, x
            assert abs(law.ccdf(x) / truth.survival(x) - 1) < 1e-12 + 100 * share, x


@pytest.mark.deep
@pytest.mark.parametrize("bound", [0.2, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["dead zone", "table", "Huber", "max far apart", "hinge"])
def test_kinks_and_their_neighbors_against_an_oracle(kind, bound):
    """Kills a mesh that is cut a millionth beside the kink: 8e-14 for the dead zone at 1."""
    law = pn.Schrodinger(cost=KINDS[kind](), mean_cost=bound)
    kinks = [kink for kink in law.kinks[1:] if law.ccdf(kink) > 1e-30]
    assert kinks
    with mpmath.workdps(160 if kind in STRAIGHT else 40):
        truth = oracle_of(kind, law, float(law.iccdf(1e-40)))
        for kink in kinks:
            beside = (np.nextafter(kink, 0.0), np.nextafter(kink, np.inf))
            for x in (kink, *beside, kink * (1.0 - 1e-9), kink * (1.0 + 1e-9)):
                assert abs(law.pdf(x) / truth.density(float(x)) - 1) < 3e-14, x
                assert abs(law.ccdf(x) / truth.survival(float(x)) - 1) < 3e-14, x


class Rounded:
    """``sqrt(1 + x^2) - 1``; all of these are the same."""

    def __call__(self, x):
        return np.sqrt(1.0 + np.square(x)) - 1.0

    def __eq__(self, other):
        return type(other) is Rounded

    def __hash__(self):
        return 1


def test_a_seed_names_one_stream_wherever_a_function_is():
    """Kills: a key of its place in memory, which is another one in each process."""

    def power(x):
        return np.abs(x) ** 1.3

    laws = [
        lambda cost: pn.Schrodinger(cost=cost, theta=1.0),
        lambda cost: pn.Schrodinger(cost=costs.Power(2.0) + costs.Stretched(cost, 2.0), theta=1.0),
        lambda cost: pn.OptimalUnimodal(
            epsilon=1.0, delta=0.01, count=1, cost=cost, cells_per_sensitivity=5
        ),
    ]
    for law in laws:
        first, same = (law(cost).sample(3, rng=1) for cost in (Rounded(), Rounded()))
        np.testing.assert_array_equal(first, same)
        other = functools.partial(power)
        first, same = (law(cost).sample(3, rng=1) for cost in (power, other))
        np.testing.assert_array_equal(first, same)
    # Laws of other functions are independent.
    assert law(power)._tag != law(lambda x: np.abs(x) ** 1.31)._tag
