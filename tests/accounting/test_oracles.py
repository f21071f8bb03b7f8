"""Questions with exact answers: every bracket holds its answer, and is as narrow as it should be.

Gaussian noise without sampling has an analytic profile, whatever the numbers and the scales;
discrete Laplace noise is randomized response, whose profile is a binomial sum. Values of others
come from the tables in ``tests/data``.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import (
    gaussian_delta,
    gaussian_epsilon,
    response_delta,
    two_responses_delta,
)

import psinoise as pn
from refusals import for_each, for_rows

DATA = Path(__file__).parents[1] / "data"
# A bracket is a ten-thousandth of epsilon wide; ten times that where work is spent first.
ASKED, SPENT = 1.0001e-4, 1e-3
LAWS = {"Gaussian": pn.Gaussian(std=1.0), "Airy": pn.Airy(mean_abs=2.0)}


def table(name):
    """Rows of one of the tables, without its remarks."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def holds(bracket, exact, share=math.inf):
    """Around the exact value, the estimate inside, no wider than a share of it."""
    assert bracket.lower <= exact <= bracket.upper, (bracket, float(exact))
    assert bracket.lower <= bracket.estimate <= bracket.upper
    assert bracket.width <= share * abs(float(exact)), (bracket, float(exact))


def holds_delta(bracket, profile, epsilon, share=SPENT):
    """Around the exact delta, and as narrow as a share of epsilon makes it."""
    holds(bracket, profile(epsilon))
    before, after = (profile(epsilon * (1.0 + sign * share)) for sign in (-1.0, 1.0))
    assert bracket.upper <= before * (1.0 + 1e-6), (bracket, float(before))
    assert bracket.lower >= after * (1.0 - 1e-6), (bracket, float(after))


def composed(*steps):
    accountant = pn.Accountant()
    for step in steps:
        accountant.compose(*step)
    return accountant


# -- Gaussian noise --------------------------------------------------------------------------------


@pytest.mark.deep
@for_each([1, 2, 3, 10, 100, 2000, 10**4, 10**6, 10**9], [1e-2, 1e-8, 1e-30, 1e-100])
def test_gaussian_noise(count, delta):
    mechanism, mu = pn.Mechanism(pn.Gaussian(std=1.0)), mp.sqrt(count)
    exact = gaussian_epsilon(mu, delta)
    holds(mechanism.epsilon(delta, count), exact, ASKED)
    epsilon = float(exact)
    holds_delta(mechanism.delta(epsilon, count), lambda e: gaussian_delta(e, mu), epsilon, 1.5e-4)


@pytest.mark.deep
@for_each([0.05, 0.3, 30.0, 1e4], [1, 2, 7, 500], [1e-2, 1e-12, 1e-300])
def test_gaussian_noise_of_other_scales(std, count, delta):
    exact = gaussian_epsilon(mp.sqrt(count) / mp.mpf(std), delta)
    holds(pn.Mechanism(pn.Gaussian(std=std)).epsilon(delta, count), exact, SPENT)


def gaussian_plans():
    """Different scales and numbers, over four decades."""
    yield [(3.0, 5), (4.0, 5)]
    yield [(2.0, 60), (2e4, 1)]
    yield [(1.0, 1), (1e4, 1)]
    yield [(0.5, 1), (5.0, 10), (50.0, 1000), (5000.0, 10**6)]
    yield [(1.0, 3), (100.0, 7), (1e4, 11)]
    yield [(300.0, 2), (0.7, 1)]
    yield [(0.7, 1), (1.0, 3), (3.0, 40), (20.0, 2000)]
    random = np.random.default_rng(20)
    for _ in range(12):
        size = int(random.integers(2, 6))
        stds = 10.0 ** random.uniform(0.0, 4.0, size)
        counts = np.ceil(10.0 ** random.uniform(0.0, 3.0, size))
        yield [(float(std), int(count)) for std, count in zip(stds, counts, strict=True)]


@pytest.mark.deep
@for_each(list(gaussian_plans()), [1e-3, 1e-10])
def test_gaussian_noise_of_different_scales(plan, delta):
    steps = [(pn.Mechanism(pn.Gaussian(std=std)), count) for std, count in plan]
    mu = mp.sqrt(mp.fsum(count / mp.mpf(std) ** 2 for std, count in plan))
    exact = gaussian_epsilon(mu, delta)
    holds(composed(*steps).epsilon(delta), exact, SPENT)
    if exact > 0:
        found = composed(*steps).delta(float(exact))
        holds_delta(found, lambda epsilon: gaussian_delta(epsilon, mu), float(exact))


@for_rows([(1, 1e-8), (20, 1e-5), (2000, 1e-100), (3, 1e-30), (10**9, 1e-2)])
def test_gaussian_noise_to_a_width_that_is_asked_for(count, delta):
    mechanism, mu = pn.Mechanism(pn.Gaussian(std=1.0)), mp.sqrt(count)
    exact = gaussian_epsilon(mu, delta)
    for share in (1e-2, 1e-3, 1e-6):
        width = share * float(exact)
        found = mechanism.epsilon(delta, count, tolerance=width)
        holds(found, exact)
        assert found.width <= width


# -- randomized response ---------------------------------------------------------------------------


@pytest.mark.deep
@for_rows(
    [
        (0.25, 1, 1.0),
        (0.25, 2, 1.0),
        (0.25, 15, 1.0),
        (0.25, 200, 1.0),
        (1.0, 3, 1.0),
        (0.01, 3000, 1.0),
        (3.0, 4, 1e-3),
        (1.0, 10, 0.01),
        (0.5, 1000, 0.1),
        (0.1, 6000, 0.1),
    ]
)
def test_randomized_response(loss, count, rate):
    mechanism = pn.Mechanism(pn.DiscreteLaplace(epsilon=loss))

    def profile(epsilon):
        return max(
            response_delta(loss, count, epsilon, rate, direction) for direction in ("remove", "add")
        )

    top = count * math.log1p(rate * math.expm1(loss))
    spread = math.sqrt(count) * rate * loss
    for epsilon in (0.1 * top, 0.9 * top, 0.5 * top, min(spread, 0.7 * top), 0.97 * top):
        exact = profile(epsilon)
        if exact < 1e-250:
            continue
        holds_delta(mechanism.delta(epsilon, count, rate), profile, epsilon)
        back = mechanism.epsilon(float(exact), count, rate)
        assert back.lower <= epsilon * (1.0 + 1e-12), back
        assert back.upper >= epsilon * (1.0 - 1e-12), back
        assert back.width <= SPENT * epsilon, back


@for_rows([((0.3, 20), (0.4, 30)), ((1.0, 3), (0.01, 50)), ((0.2, 1), (0.2000001, 40))])
def test_two_randomized_responses(first, second):
    accountant = composed(
        *((pn.Mechanism(pn.DiscreteLaplace(epsilon=a)), n) for a, n in (first, second))
    )
    top = first[0] * first[1] + second[0] * second[1]
    for share in (0.05, 0.3, 0.6, 0.95):
        found = accountant.delta(share * top)
        holds_delta(found, lambda e: two_responses_delta(first, second, e), share * top)


# -- values of others ------------------------------------------------------------------------------


@for_rows(tuple(row.values()) for row in table("tight_epsilons.csv"))
def test_contour_integrals(law, rate, count, delta, epsilon):
    """Sampled noise at rates where rare losses decide, and 10^9 uses; known to ten digits."""
    mechanism, exact = pn.Mechanism(LAWS[law]), float(epsilon)
    found = mechanism.epsilon(float(delta), int(count), float(rate))
    assert found.lower <= exact * (1.0 + 1e-9)
    assert found.upper >= exact * (1.0 - 1e-9)
    assert found.width <= SPENT * exact, found


def test_published_bounds_and_values_agree():
    """Exact values of others lie inside our bounds; their own bounds overlap with ours."""
    for row in table("epsilon_oracles.csv"):
        mechanism = pn.Mechanism(pn.Gaussian(std=float(row["std"])))
        found = mechanism.epsilon(float(row["delta"]), int(row["count"]), float(row["rate"]))
        tolerance = 1e-8
        if row["kind"] in ("exact", "upper"):
            assert found.lower <= float(row["epsilon"]) + tolerance, row
        if row["kind"] in ("exact", "lower"):
            assert found.upper >= float(row["epsilon"]) - tolerance, row
