"""Optimal unimodal noise of few uses: bounds for all laws, beginnings, convolved losses."""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import pytest

import psinoise as pn
from psinoise.noise._cell_costs import UnitCost
from psinoise.optimize import unimodal
from psinoise.optimize.cells import Grid
from psinoise.optimize.unimodal import certified, solve


@pytest.mark.deep
@pytest.mark.parametrize(
    ("count", "cost", "delta", "gap"),
    [(2, 2.0, 1e-6, 1e-3), (3, 0.3, 1e-3, 0.09), (8, 0.5, 1e-5, 0.22), (16, 4.0, 1e-5, 0.06)],
)
def test_certificate_of_few_uses(count: int, cost: float, delta: float, gap: float) -> None:
    """Epsilon is that of the accountant, and no other law is below the bound: not on finer cells,
    not the one of one use; kills tangents where delta is due to atoms, whose gap is 1e-5."""
    words = {"delta": delta, "count": count, "mean_cost": cost, "cost": 1.0}
    law, finer = (pn.OptimalUnimodal(**words, cells_per_sensitivity=width) for width in (10, 15))
    found = pn.Mechanism(law).epsilon(delta, count)
    assert law.certificate.epsilon == pytest.approx(float(found), rel=5e-5)
    assert 0.0 < law.certificate.gap < gap
    assert finer.certificate.epsilon > law.certificate.epsilon - law.certificate.gap
    assert finer.certificate.epsilon < law.certificate.epsilon * (1.0 + 1e-4)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("count", "rate", "cost", "delta"),
    [(2, 0.5, 1.0, 0.01), (5, 0.9, 1.0, 1e-5), (3, 0.2, 0.5, 1e-4), (8, 0.3, 2.0, 1e-6)],
)
def test_certificate_of_few_sampled_uses(
    count: int, rate: float, cost: float, delta: float
) -> None:
    """No other law is below the bound: not on finer cells, not those of more and of fewer uses;
    kills a bound that takes a sampled loss for one that is not."""
    words = {"delta": delta, "sampling_rate": rate, "mean_cost": cost, "cost": 1.0}
    law = pn.OptimalUnimodal(**words, count=count, cells_per_sensitivity=10)
    least = law.certificate.epsilon - law.certificate.gap
    assert 0.0 < law.certificate.gap < 0.15 * law.certificate.epsilon
    others = [
        pn.OptimalUnimodal(**words, count=count, cells_per_sensitivity=20),
        pn.OptimalUnimodal(**words, count=1, cells_per_sensitivity=10),
        pn.OptimalUnimodal(**words, count=10 * count, cells_per_sensitivity=10),
    ]
    for other in others:
        assert float(pn.Mechanism(other).epsilon(delta, count, rate)) > least


@pytest.mark.parametrize(
    ("delta", "count", "cost", "width"), [(1e-8, 5, 0.1, 10), (1e-6, 10, 0.2, 8)]
)
def test_laws_of_few_uses_spend_their_cost(delta, count, cost, width, tmp_path) -> None:
    """And come back from files. Kills beginnings with laws of one use that cost 3e-5 less."""
    law = pn.OptimalUnimodal(delta=delta, count=count, mean_cost=cost, cells_per_sensitivity=width)
    assert law.expected_cost(law.cost) == pytest.approx(cost, rel=2e-9)
    law.save(tmp_path / "law.json")
    assert pn.OptimalUnimodal.load(tmp_path / "law.json") == law


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("delta", [1e-11, 1e-20, 1e-100])
@pytest.mark.parametrize("count", [1, 2])
def test_small_deltas_cost_no_more_than_none(delta: float, count: int, tmp_path: Path) -> None:
    """Kills programs with rows of such deltas: 3.1 for 1.96, no law at all, or no answer."""
    words = {"count": count, "mean_cost": 2.0, "cells_per_sensitivity": 5}
    none, law = (pn.OptimalUnimodal(delta=d, **words) for d in (0.0, delta))
    assert law.certificate.epsilon <= none.certificate.epsilon * (1.0 + 1e-12)
    assert pn.Mechanism(law).epsilon(delta, count) <= none.certificate.epsilon * (1.0 + 1e-9)
    law.save(tmp_path / "law.json")
    again = pn.OptimalUnimodal.load(tmp_path / "law.json")
    assert again == law
    if count == 1:
        assert 0.0 <= again.certificate.gap == law.certificate.gap < 5e-3


@pytest.mark.parametrize(
    ("delta", "count", "std"), [(1e-20, 1000, 10.0), (1e-12, 100, 5.0), (1e-15, 20, 2.0)]
)
def test_small_deltas_of_many_uses_cost_less_than_none(delta, count, std) -> None:
    """Kills the law of delta = 0 for any number of uses, which has 141 for 33.8 of a thousand."""
    law = pn.OptimalUnimodal(delta=delta, count=count, mean_cost=std**2, cells_per_sensitivity=20)
    gaussian = pn.Mechanism(pn.Gaussian(std=std)).epsilon(delta, count)
    assert pn.Mechanism(law).epsilon(delta, count) <= gaussian


def test_gap_near_the_largest_loss() -> None:
    """Where the delta of one use falls from its root to delta itself within 1 % of epsilon; kills
    as many levels that are evenly spaced (.030)."""
    law = pn.OptimalUnimodal(delta=1e-6, count=2, mean_cost=1.0, cells_per_sensitivity=20)
    assert 0.0 < law.certificate.gap < 4e-3


@pytest.mark.deep
@pytest.mark.parametrize(
    ("count", "cost", "delta"), [(2, 2.0, 1e-6), (3, 0.3, 1e-3), (5, 4.0, 1e-6), (8, 0.5, 1e-5)]
)
def test_slope_of_few_uses(count: int, cost: float, delta: float) -> None:
    """As laws of more and of less cost; kills the multiplier of a program that is not solved where
    the largest losses decide, a fifth of it."""
    words = {"delta": delta, "count": count, "cost": 1.0, "cells_per_sensitivity": 10}
    less, law, more = (
        pn.OptimalUnimodal(mean_cost=cost * factor, **words).certificate
        for factor in (0.99, 1.0, 1.01)
    )
    assert law.slope == pytest.approx((less.epsilon - more.epsilon) / (0.02 * cost), rel=0.05)


@pytest.mark.deep
def test_calibration_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certified and close in a few laws; kills halving, which takes sixteen."""
    solved = []

    def counted(*arguments: Any) -> Any:
        solved.append(arguments)
        return searched(*arguments)

    searched = solve.searched
    monkeypatch.setattr(solve, "searched", counted)
    law = functools.partial(pn.OptimalUnimodal, cost=1.0, cells_per_sensitivity=5)
    found = pn.calibrate(law, epsilon=1.0, delta=1e-6, count=2)
    bracket = pn.Mechanism(found).epsilon(1e-6, 2)
    assert 1.0 - 1e-4 < bracket.lower <= bracket.upper <= 1.0
    assert 1 < len(solved) <= 8


@pytest.mark.deep
def test_a_gap_of_few_uses_is_found_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; copies have it. Kills a search that bounds each of its laws."""
    asked = []

    def counted(*arguments: Any) -> float:
        asked.append(arguments)
        return least_of_few(*arguments)

    least_of_few = certified.least_of_few
    monkeypatch.setattr(certified, "least_of_few", counted)
    law = functools.partial(pn.OptimalUnimodal, cost=1.0, cells_per_sensitivity=4)
    found = pn.calibrate(law, epsilon=1.0, delta=1e-6, count=2)
    assert not asked
    other = pickle.loads(pickle.dumps(found))
    assert 0.0 < found.certificate.gap == other.certificate.gap < 2e-3
    assert other.certificate == found.certificate
    assert len(asked) == 1
    assert f"gap={found.certificate.gap!r}" in repr(found.certificate)


@pytest.mark.deep
@pytest.mark.parametrize(("count", "cost", "delta"), [(2, 2.0, 1e-6), (3, 0.3, 1e-3)])
def test_few_uses(count: int, cost: float, delta: float) -> None:
    """Below Laplace noise and below the staircase, from which it starts; kills rounds that begin
    with laws of orders alone, which end far above, and contour integrals of atoms."""
    law = pn.OptimalUnimodal(
        delta=delta, count=count, mean_cost=cost, cost=1.0, cells_per_sensitivity=10
    )
    found = pn.Mechanism(law).epsilon(delta, count)
    assert law.certificate.epsilon == pytest.approx(float(found), rel=5e-5)
    assert found < float(pn.Mechanism(pn.Laplace(mean_abs=cost)).epsilon(delta, count)) * 0.995
    stairs = pn.OptimalUnimodal(
        delta=0.0, count=count, mean_cost=cost, cost=1.0, cells_per_sensitivity=10
    )
    assert found <= float(pn.Mechanism(stairs).epsilon(delta, count)) * 1.0005


@pytest.mark.parametrize(
    ("count", "rate", "power", "size", "delta"),
    [(17, 1.0, 2.0, 0.069, 4e-10), (25, 1.0, 2.0, 0.353, 3e-12), (33, 0.1, 2.0, 0.067, 1.3e-10)],
)
def test_few_uses_of_laws_with_steps(
    count: int, rate: float, power: float, size: float, delta: float
) -> None:
    """Epsilon of the law that is best at delta = 0, whose largest losses add up; kills a lattice
    that splits the largest loss (too much by 1.8e-4), or in which sums that are beyond it come in
    on the other side (174.8 instead of 93.1)."""
    words = {"delta": 0.0, "cost": power, "mean_cost": size**power, "cells_per_sensitivity": 40}
    law = pn.OptimalUnimodal(count=1, **words)
    problem = unimodal.Problem(
        delta, count, rate, UnitCost(power, 1.0).of_cells, unimodal.PowerCost(power)
    )
    grid = Grid(law.cells_per_sensitivity, law.cells, law.tail_ratio)
    point, _ = problem.worst(problem.program(grid), law.masses)
    assert point.epsilon == pytest.approx(
        float(pn.Mechanism(law).epsilon(delta, count, rate)), rel=5e-5
    )


@pytest.mark.deep
@pytest.mark.parametrize(
    ("power", "size", "count", "rate", "delta", "at_most"),
    [
        (1.0, 1.0, 2, 1.0, 0.1, 1.3430),
        (2.0, 1.0, 2, 1.0, 0.01, 2.5950),
        (2.0, 1.0, 4, 1.0, 0.01, 5.1335),
        (2.0, 1.0, 2, 1.0, 1e-6, 2.7210),
        (1.0, 1.0, 2, 0.5, 0.01, 1.0515),
        (1.0, 1.0, 5, 0.9, 1e-5, 4.4940),
        (1.0, 3.0, 64, 0.005, 1e-10, 0.0591),
        (2.0, 2.0, 500, 0.0005, 1e-6, 0.01965),
        (1.0, 0.053, 17, 0.1, 1.4e-11, 46.02),
        (2.0, 0.067, 33, 0.1, 1.3e-10, 91.52),
        (2.0, 0.379, 65, 1.0, 7e-12, 199.42),
    ],
)
def test_few_uses_from_several_beginnings(power, size, count, rate, delta, at_most):
    """Rounds that began with one law ended at 1.4187, 2.6347, 5.1474, 2.7217, and, where a
    contour integral stood for sampled uses, at 1.4168, 10.66, .0859 and .0312; those whose
    programs were smoothed in one way, and not solved, at 47.05, 92.57 and 201.18."""
    words = {"cost": power, "delta": delta, "count": count, "cells_per_sensitivity": 40}
    law = pn.OptimalUnimodal(mean_cost=size**power, sampling_rate=rate, **words)
    found = float(pn.Mechanism(law).epsilon(delta, count, rate))
    assert found <= at_most
    assert law.certificate.epsilon == pytest.approx(found, rel=1e-4)
