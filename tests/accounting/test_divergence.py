"""Renyi divergences and rho as values, and groups of records, against closed forms."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import psinoise as pn
from refusals import for_each, for_rows, refused


@pytest.mark.deep
@for_each([0.3, 1e3], [1.5], [1, 10**6])
def test_rho_of_gaussian_noise(std, sensitivity, count):
    mechanism = pn.Mechanism(pn.Gaussian(std=std), sensitivity)
    exact = count * sensitivity**2 / (2.0 * std**2)
    assert mechanism.zcdp(count) == pytest.approx(exact, rel=1e-12)
    orders = np.array([[1.0, 1.001], [2.0, 5.0]])
    found = mechanism.renyi_divergence(orders, count)
    np.testing.assert_allclose(found, exact * orders, rtol=1e-12)
    # Adding rho is adding uses.
    accountant = pn.Accountant().compose(mechanism, count).compose(pn.promises.ZCDP(exact))
    assert accountant.zcdp() == pytest.approx(2.0 * exact, rel=1e-12)
    np.testing.assert_allclose(accountant.renyi_divergence(orders), 2 * exact * orders, rtol=1e-12)


@for_each([0.2, 1.0, 50.0])
def test_laplace_noise(scale):
    """Mironov, "Renyi differential privacy", proposition 6, at 60 digits."""
    mechanism = pn.Mechanism(pn.Laplace(scale=scale))
    orders = [1.0001, 1.5, 2.0, 20.0, 1000.0]
    with mp.workdps(60):
        s = 1 / mp.mpf(scale)
        exact = []
        for order in map(mp.mpf, orders):
            grown = order / (2 * order - 1) * mp.exp((order - 1) * s)
            shrunk = (order - 1) / (2 * order - 1) * mp.exp(-order * s)
            exact.append(float(mp.log(grown + shrunk) / (order - 1)))
        kullback = float(s - 1 + mp.exp(-s))
    np.testing.assert_allclose(mechanism.renyi_divergence(orders), exact, rtol=1e-10)
    ends = mechanism.renyi_divergence([1.0, math.inf])
    assert ends.tolist() == [pytest.approx(kullback, rel=1e-10), 1.0 / scale]
    # No order needs a steeper line than order 1.
    assert mechanism.zcdp() == pytest.approx(kullback, rel=1e-10)


@for_each([2, 7, 16], [0.01, 0.5])
def test_sampled_gaussian_noise(order, rate):
    """Integer orders under "remove", the larger direction, are a binomial sum."""
    k = np.arange(order + 1)
    terms = special.binom(order, k) * rate**k * (1.0 - rate) ** (order - k)
    exact = math.log1p(float(terms @ np.expm1(k * (k - 1) / 8.0))) / (order - 1)
    mechanism = pn.Mechanism(pn.Gaussian(std=2.0))
    both = mechanism.renyi_divergence([float(order)], 3, rate)
    assert both[0] == pytest.approx(3 * exact, rel=1e-10)
    single = mechanism.renyi_divergence([float(order)], 3, rate, "add")
    assert single[0] < both[0]


@for_rows([(0.1,), (1.0,), (5.0,)])
def test_randomized_response_and_bounded_range(epsilon):
    up = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    promise = pn.promises.PureDP(epsilon)
    for order in (1.5, 3.0, 40.0):
        c = order - 1.0
        moment = up * math.exp(c * epsilon) + (1.0 - up) * math.exp(-c * epsilon)
        found = promise.renyi_divergence([order])[0]
        assert found == pytest.approx(math.log(moment) / c, rel=1e-12)
    # Bun and Steinke 2016, proposition 1.4, and half the range of it: both are nearly attained.
    assert 0.8 <= promise.zcdp() / (epsilon**2 / 2.0) <= 1.0 or epsilon > 1.0
    assert promise.zcdp() <= epsilon**2 / 2.0
    assert pn.promises.BoundedRange(epsilon).zcdp() <= epsilon**2 / 8.0 * (1.0 + 1e-9)
    assert pn.promises.BoundedRange(epsilon).zcdp() >= 0.75 * epsilon**2 / 8.0


@for_each([0.1, 1.0, 5.0, 20.0], [1.0, 1.5, 8.0])
def test_the_worst_answers_of_a_range(eta, order):
    """Kills: answers that are chosen at order 1 where all moments are 0; the best of a grid."""
    ups = np.linspace(0.0, eta, 400_001)[1:-1]
    likely = np.expm1(ups - eta) / np.expm1(-eta)
    if order == 1.0:
        exact = (likely * ups + (1.0 - likely) * (ups - eta)).max()
    else:
        c = order - 1.0
        low = np.log1p(-likely) + c * (ups - eta)
        exact = (np.logaddexp(np.log(likely) + c * ups, low) / c).max()
    found = pn.promises.BoundedRange(eta).renyi_divergence([order])[0]
    assert found == pytest.approx(exact, rel=1e-9)
    assert found >= exact * (1.0 - 1e-12)


def test_several_shifts_are_told_apart_order_by_order():
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=6, cells=48, tail_ratio=0.5)
    assert len(law.worst_shifts(1.0)) > 1
    orders = np.array([1.0, 1.5, 4.0, 30.0])
    found = pn.Mechanism(law).renyi_divergence(orders)
    for order, value in zip(orders, found, strict=True):
        largest = -math.inf
        for shift in law.worst_shifts(1.0):
            p, q = law.pieces(shift)
            held = (p > 0.0) & (q > 0.0)
            p, q = p[held], q[held]
            if order == 1.0:
                largest = max(largest, (p * np.log(p / q)).sum())
            else:
                logs = order * np.log(p) + (1.0 - order) * np.log(q)
                largest = max(largest, float(np.logaddexp.reduce(logs)) / (order - 1.0))
        assert value == pytest.approx(largest, rel=1e-9)


def test_where_divergences_are_infinite_or_unknown():
    truncated = pn.Mechanism(pn.TruncatedLaplace(epsilon=1.0, delta=1e-5))
    assert truncated.zcdp() == math.inf
    assert truncated.renyi_divergence([1.0, 2.0]).tolist() == [math.inf, math.inf]
    assert pn.Accountant().zcdp() == 0.0
    assert pn.Accountant().renyi_divergence([2.0, math.inf]).tolist() == [0.0, 0.0]
    # Beyond the tails of the quadrature nothing is claimed, and no line is above x^6.
    airy = pn.Mechanism(pn.Airy(scale=1.0))
    refused(pn.CertificationError, "out of reach", airy.renyi_divergence, [1e9])
    steep = pn.Mechanism(pn.Schrodinger(cost=pn.costs.Power(6.0), mean_cost=1.0))
    refused(pn.CertificationError, "out of reach", steep.zcdp)


@for_rows(
    [
        (pn.DomainError, "orders must be at least 1", [0.5]),
        (pn.DomainError, "orders must be at least 1", [math.nan]),
        (TypeError, "orders must be real", ["2"]),
    ]
)
def test_orders_are_checked(error, match, orders):
    refused(error, match, pn.Accountant().renyi_divergence, orders)
    refused(error, match, pn.Mechanism(pn.Laplace(scale=1.0)).renyi_divergence, orders)


def test_what_has_no_divergences():
    sampled = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=1.0)), 1, 0.5)
    refused(pn.DomainError, "sampling_rate must be 1", sampled.zcdp)
    vector = pn.Mechanism(pn.Cauchy(scale=1.0), dimension=2, norm="l1")
    refused(pn.DomainError, "divergences must be known", vector.zcdp)
    refused(pn.DomainError, "divergences must be known", vector.renyi_divergence, [2.0])


# -- groups ----------------------------------------------------------------------------------------


@for_each([1, 2, 7])
def test_groups_move_queries_farther(size):
    for noise in (pn.Gaussian(std=3.0), pn.Cauchy(scale=3.0), pn.Laplace(scale=3.0)):
        group = pn.Mechanism(noise, 0.5).for_group(size)
        far = pn.Mechanism(noise, 0.5 * size)
        assert group.epsilon(1e-6, 5) == far.epsilon(1e-6, 5)
        assert group.epsilon(1e-6, 5, adjacency="replace") == far.epsilon(1e-6, 5)
    lattice = pn.Mechanism(pn.Laplace(scale=3.0)).on_lattice()
    far = pn.Mechanism(pn.Laplace(scale=3.0), size).on_lattice(lattice.grid)
    assert lattice.for_group(size).pure_epsilon() == pytest.approx(far.pure_epsilon(), rel=1e-9)
    exact = pn.Mechanism(pn.Gaussian(std=3.0)).zcdp() * size**2
    group = pn.Mechanism(pn.Gaussian(std=3.0)).for_group(size)
    assert group.zcdp() == pytest.approx(exact, rel=1e-12)
    assert pn.Accountant().compose(group, 4).zcdp() == pytest.approx(4 * exact, rel=1e-12)


def test_groups_refuse_sampling():
    group = pn.Mechanism(pn.Gaussian(std=3.0)).for_group(2)
    refused(pn.DomainError, "for groups of records", group.epsilon, 1e-6, 5, 0.1)
    refused(pn.DomainError, "for groups", pn.Accountant().compose, group, 5, 0.1)
    alone = pn.Mechanism(pn.Gaussian(std=3.0))
    assert alone.for_group(1).epsilon(1e-6, 5, 0.1) == alone.epsilon(1e-6, 5, 0.1)
    refused(pn.DomainError, "size must be at least 1", alone.for_group, 0)
    refused(TypeError, "size", alone.for_group, 1.5)


def test_the_moments_accountant_of_papers() -> None:
    """Gaussian noise in closed form, and a cactus law, whose worst shift is not the largest one,
    against sums over its cells; kills one direction or shift alone, and the tighter conversion."""
    from psinoise.figures import _moments

    composed = pn.Mechanism(pn.Gaussian(std=4.0)).composed(100)
    c = np.geomspace(0.02, 40.0, 250)
    exact = (100 * c * (c + 1.0) / 32.0 - math.log(1e-6)) / c
    found = pn.accounting.moments_epsilon(composed, 1e-6)
    assert found == pytest.approx(exact.min(), rel=1e-12)
    assert found > composed.renyi.epsilon(1e-6)
    law = pn.Cactus(mean_cost=0.1, cells_per_sensitivity=20, cells=160, tail_ratio=0.35)
    for rate in (1.0, 0.1):
        each = [_moments.cactus_moments(law, shift, rate) for shift in range(1, 21)]
        known = _moments.moments_epsilon(np.max(each, axis=0), 1e-3, 10)
        use = pn.Mechanism(law).composed(10, rate)
        assert pn.accounting.moments_epsilon(use, 1e-3) == pytest.approx(known, rel=1e-9)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(pn.DomainError, match="delta must be"):
            pn.accounting.moments_epsilon(composed, delta)
    with pytest.raises(TypeError, match="accountant must be an Accountant"):
        pn.accounting.moments_epsilon(law, 1e-3)
