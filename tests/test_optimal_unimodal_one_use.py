"""Optimal unimodal noise of one use: what theorems say."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import optimize

import psinoise as pn


@pytest.mark.parametrize(
    ("target", "power", "known"),
    [
        ({"epsilon": 1.0, "delta": 0.0}, 1.0, pn.Staircase(epsilon=1.0)),
        ({"epsilon": 4.0, "delta": 0.0}, 2.0, pn.Staircase(epsilon=4.0, power=2)),
        ({"epsilon": 4.0, "delta": 0.0, "count": 2}, 1.0, pn.Staircase(epsilon=2.0)),
        ({"epsilon": 0.0, "delta": 0.1}, 1.0, pn.UniformAtom(delta=0.1)),
        ({"epsilon": 0.0, "delta": 0.7}, 2.0, pn.UniformAtom(delta=0.7, power=2)),
        (
            {"epsilon": 0.0, "delta": 0.1, "sampling_rate": 0.5},
            1.0,
            pn.UniformAtom(delta=0.2),
        ),
    ],
)
def test_one_use_is_the_staircase_and_the_uniform_law_with_an_atom(
    target: dict[str, float], power: float, known: pn.Staircase | pn.UniformAtom
) -> None:
    """At 40 cells; kills an excess counted on one side, and a tail that leaks."""
    width = 100 if target["epsilon"] > 1.0 else 40
    law = functools.partial(pn.OptimalUnimodal, cost=power, cells_per_sensitivity=width)
    found = pn.calibrate(law, **target)
    assert 1.0 - 1e-9 <= found.moment(power) / known.moment(power) < 1.0 + 1e-3
    use = (target.get("count", 1), target.get("sampling_rate", 1.0))
    assert pn.Mechanism(found).delta(target["epsilon"], *use).upper <= target["delta"]
    for place in (0.1, 0.3, 1.7, 2.4):
        assert float(found.cdf(place)) == pytest.approx(float(known.cdf(place)), abs=0.015)


@pytest.mark.parametrize(("power", "epsilon"), [(1, 5.8918), (2, 8.2808)])
def test_small_noise_has_a_step_where_the_staircase_has_one(power: int, epsilon: float) -> None:
    """Halfway between the edges of 200 cells; kills these (3.6e-4 and 3.8e-4 behind)."""
    known = pn.Staircase(epsilon=epsilon, power=power)
    law = pn.OptimalUnimodal(delta=1e-6, count=1, mean_cost=known.moment(power), cost=power)
    assert law.certificate.epsilon < epsilon * (1.0 + 1e-5)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "gap"),
    [
        ({"delta": 0.0, "mean_cost": 0.7}, 1e-4),
        ({"delta": 1e-6, "mean_cost": 2.0}, 1e-3),
        ({"delta": 1e-3, "mean_cost": 2.0, "sampling_rate": 0.1}, 1e-3),
        ({"delta": 0.0, "mean_cost": 2.0, "sampling_rate": 0.1, "count": 10}, 1e-4),
    ],
)
def test_certificate_of_one_use(words: dict[str, float], gap: float) -> None:
    """Of all unimodal laws, so that finer cells are not below it; epsilon is the accountant's."""
    count, rate = words.get("count", 1), words.get("sampling_rate", 1.0)
    law, finer = (
        pn.OptimalUnimodal(**{"count": 1, "cells_per_sensitivity": width, **words})
        for width in (20, 60)
    )
    found = pn.Mechanism(law).epsilon(words["delta"], count, rate)
    assert law.certificate.epsilon == pytest.approx(found.estimate, abs=3e-4)
    assert 0.0 < law.certificate.gap < gap
    least = law.certificate.epsilon - law.certificate.gap
    assert least < finer.certificate.epsilon < law.certificate.epsilon + 1e-6
    assert law.moment(2) == pytest.approx(words["mean_cost"], rel=1e-8)
    # To first order, what a unit of the cost is worth.
    dearer = pn.OptimalUnimodal(
        **{
            "count": 1,
            "cells_per_sensitivity": 20,
            **words,
            "mean_cost": words["mean_cost"] * 1.001,
        }
    )
    fall = (law.certificate.epsilon - dearer.certificate.epsilon) / (1e-3 * words["mean_cost"])
    assert fall == pytest.approx(law.certificate.slope, rel=5e-2)


def test_a_law_of_one_use_beats_the_staircase_and_truncated_laplace_noise() -> None:
    target = {"epsilon": 1.0, "delta": 0.01}
    law = functools.partial(pn.OptimalUnimodal, cost=1.0, cells_per_sensitivity=40)
    found = pn.calibrate(law, **target).mean_abs
    for other in (pn.Staircase, pn.TruncatedLaplace, pn.Laplace):
        assert found < pn.calibrate(other, **target).mean_abs * (1.0 - 1e-3)


@pytest.mark.parametrize(("epsilon", "power"), [(10.0, 1.0), (15.0, 1.0), (20.0, 1.0), (15.0, 2.0)])
def test_gaps_of_large_epsilons_know_the_staircase(epsilon, power):
    """Kills: first steps of staircases sought from 1/32 on, while the best are as small as
    ``exp(-epsilon / (power + 1))``: gaps of 2e-11 for 6."""
    law = pn.noise.Family(pn.OptimalUnimodal, cost=power)
    found = pn.calibrate(law, epsilon=epsilon, delta=0.0)
    cost = found.expected_cost(found.cost)
    best = optimize.brentq(
        lambda at: (
            pn.Staircase(epsilon=at, power=power).expected_cost(pn.costs.Power(power)) - cost
        ),
        0.3 * epsilon,
        epsilon,
    )
    gap = found.certificate.gap
    assert gap == pytest.approx(epsilon - best, rel=1e-5, abs=1e-9)


def test_costs_that_no_law_on_the_cells_has():
    """Kills: a search that goes on to epsilons whose exponential is no number."""
    for delta in (0.0, 1e-6):
        with pytest.raises(pn.CalibrationError, match="no law on these cells"):
            pn.OptimalUnimodal(mean_cost=0.003, cost=1, delta=delta, count=1)
    with pytest.raises(pn.CalibrationError, match="epsilon must be at most 700"):
        pn.calibrate(pn.noise.Family(pn.OptimalUnimodal, cost=1), epsilon=720.0, delta=0.0)


def test_a_cost_that_is_rounding_next_to_0_is_asked_for_few_values() -> None:
    """Kills: panels at 1e-10 that are halved until they agree to a share of what is left of them,
    forty times, in 7 s."""
    values = []

    def root(x: np.ndarray) -> np.ndarray:
        values.append(np.size(x))
        return np.sqrt(1.0 + np.square(x)) - 1.0

    words = {"delta": 0.01, "count": 1, "epsilon": 1.0, "cells_per_sensitivity": 5}
    law = pn.OptimalUnimodal(**words, cost=root)
    assert sum(values) < 3e6
    other = pn.OptimalUnimodal(**words, cost=lambda x: np.square(x) / (np.sqrt(1.0 + x * x) + 1.0))
    assert law.mean_abs == pytest.approx(other.mean_abs, rel=1e-9)
    assert law.certificate.gap == pytest.approx(other.certificate.gap, rel=1e-6)
