"""Neighbors that hardly differ: losses far below the rounding of logs of densities.

Oracles: logs of densities in mpmath; sums of signs, which the losses of Laplace noise become up to
a share of 1e-6 or less; and the Gaussian limit of 10^9 uses, which differs from them by less than
1e-6.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from profile_oracles import gaussian_epsilon

import psinoise as pn
from law_truth import airy_log_density
from psinoise._backend import core
from psinoise.accounting.loss.pairs import Pair
from refusals import for_each, for_rows

SHIFTS = (2.0**-14, 3e-7, 1e-9, 1e-14, 1e-60)
LAWS = {
    "Gaussian": lambda scale: pn.Gaussian(scale=scale),
    "Laplace": lambda scale: pn.Laplace(scale=scale),
    "Cauchy": lambda scale: pn.Cauchy(scale=scale),
    "Airy": lambda scale: pn.Airy(scale=scale),
    "stable 1.5": lambda scale: pn.SymmetricStable(alpha=1.5, scale=scale),
    "stable 0.5": lambda scale: pn.SymmetricStable(alpha=0.5, scale=scale),
    "stable 1.99": lambda scale: pn.SymmetricStable(alpha=1.99, scale=scale),
    "hinge": lambda scale: pn.Schrodinger(cost=pn.costs.Hinge(1.0), scale=scale),
    "root": lambda scale: pn.Schrodinger(cost=pn.costs.Power(0.5), scale=scale),
}


def half_stable(t):
    """The density of index 1/2, by Fresnel integrals; 1 / pi at 0, times 2."""
    if t == 0:
        return 2 / mpmath.pi
    place = 1 / mpmath.sqrt(2 * mpmath.pi * t)
    real = mpmath.cos(1 / (4 * t)) * (mpf(1) / 2 - mpmath.fresnelc(place))
    imaginary = mpmath.sin(1 / (4 * t)) * (mpf(1) / 2 - mpmath.fresnels(place))
    return (real + imaginary) / mpmath.sqrt(2 * mpmath.pi * t**3)


# Logs of standard densities up to a constant, and where what is asked of them ends.
LOG_DENSITIES = {
    "Gaussian": (lambda t: -t * t / 2, 37.0),
    "Laplace": (lambda t: -t, 700.0),
    "Cauchy": (lambda t: -mpmath.log1p(t * t), 2.0**36),
    "Airy": (airy_log_density, 40.0),
    "stable 0.5": (lambda t: mpmath.log(half_stable(t)), 2.0**36),
}


@for_each(list(LOG_DENSITIES))
def test_losses_are_right_to_a_tenth_of_what_they_are_charged(name):
    """Next to the center, between the centers, where panels meet, and in the tails.

    Kills differences of logs, a shift across a panel's edge that ends there, and the other sign of
    what lies between the centers.
    """
    law, (log_density, end) = LAWS[name](1.0), LOG_DENSITIES[name]
    generator = np.random.default_rng(5)
    tails = 10.0 ** generator.uniform(-6.0, math.log10(end), 40)
    meeting = 2.0 ** np.arange(-4.0, 5.0)
    outputs = np.concatenate([tails, -tails, meeting[meeting < end], generator.normal(size=20)])
    for shift in SHIFTS:
        x = np.concatenate([outputs, shift * generator.uniform(-2.0, 2.0, 20), [0.0, shift]])
        # Those just before an edge are moved across it.
        x = np.concatenate([x, meeting[meeting < end] + 0.3 * shift])
        error = law._table.close_error(1.0, shift, 1.0)
        if name == "stable 0.5" and not 1e-20 < shift < 1e-6:
            continue  # a difference of logs is as good; or the oracle has no digits at the center
        assert error > 0.0
        _, ratio, loss = core.point_losses(law._table, 1.0, shift, 0.0, 1.0, x)
        np.testing.assert_array_equal(ratio, loss)
        with mpmath.workdps(90):
            for output, found in zip(x.tolist(), loss.tolist(), strict=True):
                here, there = (abs(mpf(output) - move) for move in (0, mpf(shift)))
                exact = log_density(there) - log_density(here)
                assert abs(found - exact) <= 0.1 * error, (output, shift)


def test_sampling_keeps_the_digits():
    """``log(1 - q + q e^r)`` of a ratio with all its digits, for a replaced record too."""
    law, shift, x = pn.Cauchy(scale=1.0), 1e-9, np.array([-2.0, -0.3, 0.0, 0.7, 40.0])
    for rate in (1.0, 0.3, 1e-6):
        for replaced in (False, True):
            laplace = pn.Laplace(scale=1.0)
            pair = Pair(laplace if replaced else law, shift, rate, replaced)
            log_density, _ = LOG_DENSITIES["Laplace" if replaced else "Cauchy"]
            with mpmath.workdps(60):
                centers = [mpf(shift), mpf(-shift if replaced else 0.0)]
                ratios = [
                    [log_density(abs(mpf(v) - c)) - log_density(abs(mpf(v))) for c in centers]
                    for v in x.tolist()
                ]
                exact = [
                    float(
                        mpmath.log1p(rate * mpmath.expm1(p)) - mpmath.log1p(rate * mpmath.expm1(q))
                    )
                    for p, q in ratios
                ]
            np.testing.assert_allclose(pair.loss(x), exact, rtol=1e-11, atol=1e-21)


def check_brackets(name, scale):
    mechanism = pn.Mechanism(LAWS[name](scale))
    for count in (1, 20, 1000, 10**6, 10**9):
        # Panels of stable laws know slopes to fewer digits, which so many uses see.
        most = 5e-4 if name.startswith("stable") and count == 10**9 else 1.05e-4
        # Where a tenth of all losses decides.
        found = mechanism.epsilon(0.1 * math.sqrt(count) / scale, count)
        assert 0.0 < found.upper - found.lower <= most * found.upper, (count, found)
        found = mechanism.delta(0.0, count)
        assert found.upper - found.lower <= most * found.upper, (count, found)


@for_rows([("Laplace", 1e9), ("Airy", 1e12), ("Cauchy", 1e6), ("root", 1e12)])
def test_brackets_are_as_narrow_as_others(name, scale):
    """Few and many uses, and delta at epsilon 0. Kills losses by differences of logs."""
    check_brackets(name, scale)


@pytest.mark.deep
@for_each(list(LAWS), [1e6, 1e14])
def test_all_brackets_are_as_narrow_as_others(name, scale):
    """The same at more points."""
    check_brackets(name, scale)


def test_differences_of_logs_know_less(monkeypatch):
    """What the test above sees of them: the mutant."""
    monkeypatch.setattr(Pair, "close_error", 0.0)
    mechanism = pn.Mechanism(pn.Airy(scale=2.71e9))
    found = mechanism.epsilon(1e-6, 10**9)
    assert found.upper - found.lower > 1e-2 * found.upper


def above(count, level):
    """``E (S - level)^+`` of a sum ``S`` of signs."""
    with mpmath.workdps(60):
        total = sum(
            mpmath.binomial(count, k) * (2 * k - count - level)
            for k in range(count + 1)
            if 2 * k - count > level
        )
        return total / mpf(2) ** count


@for_rows([(scale, count) for scale in (1e8, 1e10, 1e13) for count in (1, 2, 10, 101, 1000)])
def test_laplace_noise_is_a_sum_of_signs(scale, count):
    """But for outputs between the centers, of mass 1 / (2 scale), and the square of the loss."""
    accountant = pn.Accountant().compose(pn.Mechanism(pn.Laplace(scale=scale)), count)
    near = 4.0 * count / scale + 1e-13
    for share in (0.0, 0.3, 0.9):
        level = share * math.sqrt(count)
        exact = float(above(count, level)) / scale
        found = accountant.delta(level / scale)
        assert found.lower <= exact * (1.0 + near)
        assert found.upper >= exact * (1.0 - near)
        assert found.upper - found.lower <= 1e-3 * found.upper


@for_rows(
    [
        *((name, 1e7) for name in ("Laplace", "Airy", "Cauchy", "stable 1.5", "root")),
        *((name, 1e13) for name in ("Airy", "root")),
    ]
)
def test_very_many_uses_have_the_gaussian_limit(name, scale):
    """Of its Fisher information: the next terms are below a millionth."""
    law, count = LAWS[name](scale), 10**9
    std = 1.0 / math.sqrt(count * law.fisher_information())
    for share in (1e-3, 1e-7):
        delta = share / std
        exact = float(gaussian_epsilon(1.0 / std, delta))
        found = pn.Mechanism(law).epsilon(delta, count)
        assert found.lower <= exact * (1.0 + 2e-6)
        assert found.upper >= exact * (1.0 - 2e-6)
        assert found.upper - found.lower <= 1.05e-4 * exact


def test_sampled_and_mixed_steps_of_close_neighbors():
    """Total variation of one use is a certain share of that without sampling; sums bound plans."""
    for law in LAWS.values():
        mechanism = pn.Mechanism(law(1e10))
        whole = mechanism.delta(0.0)
        part = mechanism.delta(0.0, 1, sampling_rate=0.01)
        assert part.estimate == pytest.approx(0.01 * whole.estimate, rel=1e-8, abs=0.0)
        one, several = mechanism.epsilon(1e-12), mechanism.epsilon(1e-12, 50, sampling_rate=0.1)
        for found in (one, several):
            assert found.upper - found.lower <= 1e-4 * found.upper
    accountant = pn.Accountant()
    for law in LAWS.values():
        accountant.compose(pn.Mechanism(law(1e10)), 100)
    found = accountant.epsilon(1e-11)
    assert found.upper - found.lower <= 1e-4 * found.upper


@for_each(["Cauchy", "stable 1.5", "hinge"])
def test_renyi_divergences_are_those_of_the_fisher_information(name):
    """``c (c + 1) V / 2`` but for a share of the square of the shift."""
    law = LAWS[name](1e7)
    accountant = pn.Accountant().compose(pn.Mechanism(law), 10)
    orders = np.array([1.0, 2.0, 30.0])
    exact = 10.0 * orders * law.fisher_information() / 2.0
    np.testing.assert_allclose(accountant.renyi_divergence(orders), exact, rtol=1e-9, atol=0.0)


@for_rows(
    [
        ("Airy", 1e30, 1e-89, 100),
        ("Laplace", 1e59, 1e-60, 7),
        ("Cauchy", 1e6, 1e-110, 20),
        ("Airy", 1e30, 1e-130, 100),
        ("Laplace", 1e3, 1e-160, 100),
    ]
)
def test_very_small_rates(name, scale, rate, count):
    """Losses are linear in the rate and the distance. Kills squares of steep slopes, which
    overflow; the last two are too small for anything but an upper bound, or a difference of logs.
    """
    unit = rate / scale
    known = pn.Mechanism(LAWS[name](1e9)).composed(count, 1e-6)
    found = pn.Mechanism(LAWS[name](scale)).composed(count, rate)
    wide = unit < 2.0**-400 and scale > 1e10
    near = 1e-9 if scale > 1e4 else 2e-3
    for asked, at in (("delta", 0.0), ("epsilon", 0.05)):
        before, after = (
            getattr(each, asked)(at * one) for each, one in ((known, 1e-15), (found, unit))
        )
        assert after.lower / unit <= before.upper / 1e-15 * (1.0 + near)
        assert after.upper / unit >= before.lower / 1e-15 * (1.0 - near)
        assert wide or after.upper - after.lower <= 1e-3 * after.upper


@for_rows([(1e62, 1e-15), (1e62, 1e-17), (1e70, 1e-20), (3e15, 1e-17), (1e62, 1.2e-16)])
def test_rates_below_the_rounding_of_1(scale, rate):
    """Total variation of one use is the rate times that of Airy noise, of which 1 / (3 scale) is
    the first term. Kills the slope of a sampled loss as a difference from 1, which charges nothing
    for the rounding of its ratio."""
    found = pn.Mechanism(pn.Airy(scale=scale)).composed(1, rate).delta(0.0)
    assert found.lower <= rate / scale / 3.0 * (1.0 + 1e-9)
    assert found.upper >= rate / scale / 3.0 * (1.0 - 1e-9)


@for_each(["Airy", "Laplace", "hinge"], [1e-3, 1e-9], [1e6, 1e12])
def test_replaced_records_that_are_sampled(name, rate, scale):
    """Kills a rounding of logs of 1 - q, however small the ratios are."""
    mechanism = pn.Mechanism(LAWS[name](scale), 2.0, contribution=1.0)
    for count in (1, 10**4):
        delta = 0.05 * rate * math.sqrt(count) / scale
        found = mechanism.epsilon(delta, count, rate, "replace")
        assert found.upper - found.lower <= 1.05e-4 * found.upper


def test_losses_of_flat_panels_are_not_one():
    """Far less than a rounding of logs apart, and not equal: epsilon goes with the distance, but
    for what a delta becomes beside it. Kills a run of panels that is an atom because each differs
    little from the one before.
    """
    near, far = (
        pn.Mechanism(LAWS["root"](scale)).epsilon(1e-294, 7) * scale for scale in (1e6, 1e12)
    )
    assert 0.99 * near <= far <= near


@for_rows([(1e-170, 0.1), (1e-3, 0.1), (1.0, 0.5), (1e9, 0.5)])
def test_logs_that_both_fall(scale, rate):
    """Kills: a ratio that is no number taken for none."""
    with np.errstate(all="ignore"):
        found = Pair(pn.Laplace(scale=scale), 1.0, rate, replaced=True).both_fall
        gauss = Pair(pn.Gaussian(std=scale), 1.0, rate, replaced=True).both_fall
    x = np.linspace(-0.5, 0.5, 101)
    for shift in (1.0, -1.0):
        ratio = (np.abs(x) - np.abs(x - shift)) / scale
        assert found >= -np.log1p(rate * np.expm1(ratio)).min()
        assert found >= -np.log1p(rate * np.expm1(ratio)).max()
    assert found <= -math.log1p(-rate)
    assert 0.0 < gauss <= -math.log1p(-rate)


@for_each([1e4, 1e8], [(pn.Laplace, "scale"), (pn.Gaussian, "std")], [1, 2])
def test_epsilon_of_steps_known_by_measures_alone(size, law, count):
    """Epsilons of weak noise are those of ten times less in proportion; they had no lower end."""
    make, name = law
    allocation = pn.sampling.RandomAllocation(5)

    def found(size):
        mechanism = pn.Mechanism(make(**{name: size}))
        return mechanism.epsilon(0.01 / size, count, sampling=allocation)

    once, more = found(size), found(10.0 * size)
    assert once.width <= 3e-4 * once.upper
    assert once.lower <= 1.001 * 10.0 * more.upper
    assert more.lower <= 1.001 * once.upper / 10.0
    if make is pn.Laplace:
        vector = pn.Mechanism(make(scale=size), dimension=3).epsilon(1e-3 / size, 2, 0.1)
        assert 0.0 < vector.width <= 3e-4 * vector.upper
