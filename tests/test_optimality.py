"""Theorems 1 to 3 of Alghamdi et al., "Schrodinger mechanisms", with proven bounds on epsilon; and
where they end.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import psinoise as pn
from psinoise import costs

# Theorem 1 is about n -> infinity and definition 1 about s -> 0 after that.
SENSITIVITY = 0.01


def laws_of(cost: costs.Cost) -> list[pn.Noise]:
    """The best law and the classical ones, at mean cost 1."""

    def at_bound(law: type[pn.Noise]) -> pn.Noise:
        def miss(log_scale: float) -> float:
            return math.log(law(scale=math.exp(log_scale)).expected_cost(cost))  # type: ignore[call-arg]

        return law(scale=math.exp(brentq(miss, -20.0, 20.0, xtol=1e-13)))  # type: ignore[call-arg]

    best = pn.Schrodinger(cost=cost, mean_cost=1.0)
    return [best, *map(at_bound, (pn.Gaussian, pn.Airy, pn.Laplace))]


@pytest.mark.parametrize("count", [10**4, 10**6, 10**8])
@pytest.mark.parametrize(
    "cost", [costs.Power(0.5), costs.Power(4.0), costs.Log(), costs.Power(2.0) + costs.Log()]
)
def test_certified_epsilons_are_in_the_order_of_the_information(
    cost: costs.Cost, count: int
) -> None:
    """Theorem 3: the ground state first; the brackets do not even touch."""
    laws = laws_of(cost)
    sensitivity = SENSITIVITY * laws[0].std
    assert [law.expected_cost(cost) for law in laws] == pytest.approx([1.0] * 4, rel=1e-11)
    laws.sort(key=lambda law: law.fisher_information())
    assert isinstance(laws[0], pn.Schrodinger)
    brackets = []
    for law in laws:
        mechanism = pn.Mechanism(law, sensitivity)
        # The gaps are 0.4 percent and more.
        width = 5e-4 * mechanism.composed(count).estimate.epsilon(1e-6)
        brackets.append(mechanism.epsilon(1e-6, count, tolerance=width))
    for less, more in itertools.pairwise(brackets):
        assert less.upper < more.lower


@pytest.mark.parametrize("cost", [costs.Power(0.5), costs.Power(4.0), costs.Log()])
def test_epsilon_of_a_use_tends_to_half_the_information(cost: costs.Cost) -> None:
    """Theorem 1, and KL(p, T_s p) = I s**2 / 2 to first order."""
    best, *_ = laws_of(cost)
    sensitivity = SENSITIVITY * best.std
    limit = best.kl(sensitivity)
    assert limit == pytest.approx(0.5 * best.fisher_information() * sensitivity**2, rel=2e-5)
    misses = []
    for count in (10**6, 10**8, 10**10):
        epsilon = pn.Mechanism(best, sensitivity).composed(count).estimate.epsilon(1e-6)
        misses.append(epsilon / count / limit - 1.0)
    # z sqrt(variance / n) / KL: a tenth for a hundred times the uses.
    assert misses[2] == pytest.approx(0.1 * misses[1], rel=0.01)
    assert 0.0 < misses[2] < 0.012 < misses[1]


def chi_square(law: pn.Noise, shift: float) -> float:
    """``chi^2(T_s p || p)``, of which a composition of rare samples is a function in the limit."""

    def ratio(x: float) -> float:
        return math.exp(2.0 * law.logpdf(x - shift) - law.logpdf(x))

    reach = 60.0 * law.mean_abs
    edges = (-reach, 0.0, shift, reach + shift)
    parts = [quad(ratio, *ends, limit=500) for ends in itertools.pairwise(edges)]
    return math.fsum(part for part, _ in parts) - 1.0


def test_at_a_large_sensitivity_another_law_is_ahead() -> None:
    """The optimum of a cost is asymptotic: at equal E|X|, sampled, the law of the logarithm beats
    Airy where the sensitivity is about E|X|, and loses where it is a fifth of it."""
    ahead = []
    for size in (1.0, 5.0):
        log = pn.Schrodinger(cost=costs.Log(), mean_abs=size)
        airy = pn.Airy(mean_abs=size)
        assert log.mean_abs == pytest.approx(airy.mean_abs, rel=1e-13)
        assert log.fisher_information() > 1.015 * airy.fisher_information()
        first, second = (
            pn.Mechanism(law, 1.0).epsilon(1e-6, 1000, 0.01, tolerance=1e-5) for law in (log, airy)
        )
        # Proven on both sides: no matter of rounding.
        assert first.upper < second.lower or second.upper < first.lower
        assert (first.upper < second.lower) == (chi_square(log, 1.0) < chi_square(airy, 1.0))
        ahead.append(first.upper < second.lower)
    assert ahead == [True, False]


def test_chi_square_of_the_gaussian_is_known() -> None:
    for shift in (0.1, 1.0, 2.0):
        found = chi_square(pn.Gaussian(std=1.0), shift)
        assert found == pytest.approx(np.expm1(shift**2), rel=1e-9)
