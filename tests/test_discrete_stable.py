"""Discrete stable noise: masses against other formulas, sums, losses, release."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

import psinoise as pn


def mass(alpha: float, scale: float, k: int) -> mp.mpf:
    """The Fourier integral, in 40 digits."""

    def integrand(u: mp.mpf) -> mp.mpf:
        return mp.cos(k * u) * mp.exp(-((2 * mp.mpf(scale) * mp.sin(u / 2)) ** mp.mpf(alpha)))

    with mp.workdps(40):
        points = {mp.pi * mp.mpf(2) ** -j for j in range(50)} | {mp.mpf(0)}
        points |= {mp.pi * j / k for j in range(1, k)}
        return mp.quad(integrand, sorted(points)) / mp.pi


@pytest.mark.parametrize(("alpha", "scale"), [(1.1, 3.0), (1.9, 0.5), (1.99, 2.0)])
def test_masses(alpha: float, scale: float) -> None:
    law = pn.DiscreteStable(alpha=alpha, scale=scale)
    k = [0, 1, 12]
    exact = [float(mass(alpha, scale, j)) for j in k]
    np.testing.assert_allclose(law.pmf(k), exact, rtol=1e-13)
    tails = law.ccdf(np.arange(0.0, 12.0))
    np.testing.assert_allclose(-np.diff(tails), law.pmf(np.arange(1.0, 12.0)), rtol=1e-8)
    assert law.pmf(0) + 2.0 * tails[0] == pytest.approx(1.0, abs=1e-9)


def test_two_is_skellam() -> None:
    k = np.array([0.0, 1.0, 7.0, 40.0])
    found = pn.DiscreteStable(alpha=2.0, scale=3.0).pmf(k)
    np.testing.assert_allclose(found, special.ive(k, 18.0), rtol=1e-13)


@pytest.mark.parametrize("alpha", [1.2, 1.9])
def test_the_series_meets_the_contour_and_goes_on(alpha: float) -> None:
    law = pn.DiscreteStable(alpha=alpha, scale=1.0)
    # Third differences of the logarithm are smooth across the seam, at 400.
    logs = law.logpmf(np.arange(390.0, 410.0))
    assert np.abs(np.diff(logs, 3)).max() < 1e-6
    k = 2.0**270
    tail = math.gamma(1.0 + alpha) * math.sin(0.5 * math.pi * alpha) / math.pi
    expected = math.log(tail) - (1.0 + alpha) * math.log(k)
    assert law.logpmf(k) == pytest.approx(expected, rel=1e-14)


def test_sums_of_draws_have_the_law_of_the_aggregate() -> None:
    law = pn.DiscreteStable(alpha=1.6, scale=1.0)
    draws = law.sample((4, 40_000), rng=3).sum(axis=0)
    p_values = []
    for total in (law.aggregate(4), law.aggregate(5)):
        k = np.arange(-12.0, 13.0)
        expected = np.append(total.pmf(k), 2.0 * total.ccdf(12.0)) * draws.size
        seen = np.array([np.count_nonzero(draws == j) for j in k])
        seen = np.append(seen, draws.size - seen.sum())
        p_values.append(stats.chisquare(seen, expected, sum_check=False).pvalue)
    assert p_values[0] > 1e-6 > p_values[1]


def test_a_message_is_released_as_it_is_accounted() -> None:
    law = pn.DiscreteStable(alpha=1.7, scale=4.0)
    loss = law.largest_loss(4)
    lattice = pn.Mechanism(law, 4.0).on_lattice()
    assert lattice.noise.unimodal
    assert lattice.pure_epsilon() == pytest.approx(loss, rel=1e-6)
    assert float(lattice.epsilon(1e-6)) <= lattice.pure_epsilon()
    assert float(lattice.release([3.0])[0]).is_integer()
    assert law.aggregate(10).largest_loss(4) < 0.5 * loss
    assert law.mean_abs == pytest.approx(lattice.noise.mean_abs, rel=1e-3)


def test_near_the_continuous_law() -> None:
    """At a grid of 1/64 of the scale errors and losses are those of the continuous law to 1 %."""
    law = pn.DiscreteStable(alpha=1.92, scale=64.0)
    ideal = pn.SymmetricStable(alpha=1.92, scale=64.0)
    assert law.mean_abs == pytest.approx(ideal.mean_abs, rel=1e-3)
    assert law.largest_loss(64) == pytest.approx(pn.Mechanism(ideal, 64.0).pure_epsilon(), rel=1e-2)


def test_bad_arguments() -> None:
    for alpha, scale in ((1.0, 1.0), (1.999, 1.0), (2.1, 1.0), (math.nan, 1.0), (1.5, 0.1)):
        with pytest.raises(pn.DomainError, match=r"must"):
            pn.DiscreteStable(alpha=alpha, scale=scale)
    law = pn.DiscreteStable(alpha=1.5, scale=1.0)
    for refused in (
        lambda: law.aggregate(0),
        lambda: law.largest_loss(0),
        lambda: law.pdf(0.0),
        lambda: pn.Mechanism(law).pure_epsilon(),
        lambda: pn.Mechanism(law).epsilon(1e-6),
    ):
        with pytest.raises(pn.DomainError):
            refused()
    assert pn.DiscreteStable(alpha=2.0, scale=1.0).largest_loss(1) == math.inf
