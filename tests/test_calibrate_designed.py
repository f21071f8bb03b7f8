"""Laws that are made for a target: calibrated, compared, and refused where they do not apply."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import numpy as np
import pytest

import psinoise as pn
from psinoise.accounting.bracket import Bracket
from psinoise.calibration import calibration
from psinoise.noise import DESIGNED, FAMILIES, Family
from refusals import for_rows

COARSE = {"cells_per_sensitivity": 10, "cells": 100, "tail_ratio": 0.12}


def largest_loss(law: pn.NoiseLaw, sensitivity: float, rate: float) -> float:
    """On a fine grid of outputs and shifts, both directions, sampled at a rate; of one use."""
    x = np.linspace(-15.0, 15.0, 20_001) * sensitivity + 1e-9
    worst = 0.0
    for shift in np.linspace(0.05, 1.0, 20) * sensitivity:
        ratio = np.exp(law.logpdf(x - shift) - law.logpdf(x))
        mixed = np.log1p(rate * (ratio - 1.0))
        worst = max(worst, mixed.max(), -mixed.min())
    return worst


@pytest.mark.parametrize(("count", "rate"), [(1, 1.0), (3, 1.0), (4, 0.25)])
@pytest.mark.parametrize("power", [1, 2])
def test_staircases_share_a_pure_target(count: int, rate: float, power: int) -> None:
    law = functools.partial(pn.Staircase, power=power)
    words = {"sensitivity": 2.0, "count": count, "sampling_rate": rate}
    found = calibration(law, epsilon=1.5, delta=0.0, **words)
    assert isinstance(found.noise, pn.Staircase)
    assert (found.noise.power, found.noise.sensitivity) == (power, 2.0)
    assert found.delta == Bracket(0.0, 0.0, 0.0)
    each = largest_loss(found.noise, 2.0, rate)
    # Not a bit more than the target, and all of it.
    assert count * each == pytest.approx(1.5, rel=1e-9)
    assert count * each <= 1.5 * (1.0 + 1e-13)


def test_other_arguments_are_given_in_any_way() -> None:
    """Kills: a family that is asked for a scale, and a cost that only one law may have."""
    words = {"epsilon": 1.5, "delta": 0.0}
    by_name = functools.partial(pn.Staircase, power=2)
    assert pn.calibrate(Family(pn.Staircase, power=2), **words) == pn.calibrate(by_name, **words)
    square, words = pn.costs.Power(2), {"epsilon": 1.0, "delta": 0.1}
    noise = pn.calibrate(pn.OptimalUnimodal, cost=square, **words)
    assert noise == pn.calibrate(functools.partial(pn.OptimalUnimodal, cost=square), **words)
    assert noise.expected_cost(square) == pytest.approx(noise.mean_cost, rel=1e-9)
    for law in (pn.Staircase, functools.partial(pn.OptimalUnimodal, cost=1.0)):
        with pytest.raises(TypeError, match="cost belongs to"):
            pn.calibrate(law, cost=square, **words)


@pytest.mark.parametrize(("delta", "rate"), [(0.3, 1.0), (0.05, 0.1), (0.9, 1.0)])
def test_uniform_noise_at_epsilon_zero(delta: float, rate: float) -> None:
    law = pn.calibrate(pn.UniformAtom, epsilon=0.0, delta=delta, sampling_rate=rate)
    assert law.delta == pytest.approx(delta / rate, rel=2e-9)
    # The mass that moves where the law is shifted by the sensitivity (theorem 1 of the paper).
    distance = rate * (law.cdf(0.5) - law.cdf(-0.5 * (1.0 + 1e-15)))
    # An ulp of the point counts in the distance as seen here.
    assert delta * (1.0 - 2e-9) <= distance <= delta * (1.0 + 4e-16)
    bounds = pn.Mechanism(law).delta(0.0, 1, rate)
    assert bounds.lower <= distance * (1.0 + 1e-13)
    assert distance <= bounds.upper * (1.0 + 1e-13)


def test_truncated_laplace_is_what_its_theorem_says() -> None:
    law = pn.calibrate(pn.TruncatedLaplace, epsilon=2.0, delta=1e-4, sensitivity=3.0)
    assert (law.epsilon, law.delta) == pytest.approx((2.0, 1e-4), rel=2e-9)
    # The mass that the shifted law has where this one has none, and the ratio elsewhere.
    assert law.ccdf(law.half_width - 3.0) <= 1e-4
    x = np.linspace(-law.half_width, law.half_width, 2001) * (1.0 - 1e-12)
    inside = np.abs(x - 3.0) < law.half_width
    assert np.abs(law.logpdf(x[inside]) - law.logpdf(x[inside] - 3.0)).max() <= 2.0 * (1 + 1e-13)


def test_discrete_laplace_for_whole_numbers() -> None:
    law = pn.calibrate(pn.DiscreteLaplace, epsilon=1.0, delta=0.0, sensitivity=2.0, count=2)
    assert law.scale == pytest.approx(4.0, rel=1e-12)
    for sensitivity in (0.5, 1e-4):
        with pytest.raises(pn.DomainError, match="sensitivity must be a whole number"):
            pn.calibrate(pn.DiscreteLaplace, epsilon=1.0, delta=0.0, sensitivity=sensitivity)


@for_rows(
    [
        (pn.DiscreteLaplace, {"count": 20}),
        (pn.DiscreteLaplace, {"count": 1000, "sampling_rate": 0.01}),
        (pn.DiscreteLaplace, {"count": 20, "sensitivity": 7.0, "adjacency": "replace"}),
        (Family(pn.DiscreteStable, alpha=1.7), {"count": 20, "sensitivity": 3.0}),
    ]
)
def test_laws_of_whole_numbers_have_the_least_scale_for_a_delta(
    law: Any, words: dict[str, Any]
) -> None:
    """Kills: noise for which the largest losses of all uses add up to epsilon, 14 % more or
    twice as much; a refusal."""
    target = {"epsilon": 1.0, "delta": 1e-6}
    noise, use = pn.calibrate(law, **target, **words), dict(words)
    sensitivity = use.pop("sensitivity", 1.0)
    assert pn.Mechanism(noise, sensitivity).epsilon(1e-6, **use).upper <= 1.0
    less = law(scale=noise.scale * (1.0 - 2e-4))
    assert pn.Mechanism(less, sensitivity).epsilon(1e-6, **use).lower > 1.0


@for_rows(
    [
        (pn.DiscreteLaplace, {"epsilon": 120.0, "delta": 1e-9}, "below 0.01 sensitivities"),
        (
            pn.DiscreteLaplace,
            {"epsilon": 4e-8, "delta": 1e-9, "sensitivity": 180363.0},
            "above 6.0961e",
        ),
        (Family(pn.DiscreteStable, alpha=1.7), {"epsilon": 1e3, "delta": 1e-6}, "below 0.015625"),
    ]
)
def test_scales_that_a_law_does_not_have(law: Any, target: dict[str, float], match: str) -> None:
    """Kills: an error about a scale that nobody has given."""
    with pytest.raises(pn.CalibrationError, match=match):
        pn.calibrate(law, **target)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (2.0, {"epsilon": 8.0, "delta": 1e-5}),
        (1.0, {"epsilon": 8.0, "delta": 1e-5, "sensitivity": 3.0}),
        (2.0, {"epsilon": 2.0, "delta": 1e-5, "count": 240, "sampling_rate": 1 / 240}),
    ],
)
def test_the_cost_of_a_cactus_is_found(cost: float, words: dict[str, float]) -> None:
    found = calibration(functools.partial(pn.Cactus, cost=cost, **COARSE), **words)
    law = found.noise
    assert isinstance(law, pn.Cactus)
    assert (law.cost, law.sensitivity) == (cost, words.get("sensitivity", 1.0))
    assert found.delta.upper <= 1e-5
    use = (words.get("count", 1), words.get("sampling_rate", 1.0))
    width = 5e-3 * words["epsilon"]
    epsilon = functools.partial(_upper, use=use, width=width)
    assert epsilon(law) <= words["epsilon"]
    # A little less cost would not do.
    assert 0.0 < found.excess < 3e-3
    less = pn.Cactus(law.sensitivity, cost, law.mean_cost / (1.0 + 1.001 * found.excess), **COARSE)
    assert epsilon(less) > words["epsilon"]
    # And a Gaussian needs more.
    assert law.mean_cost < pn.calibrate(pn.Gaussian, **words).moment(cost)


def _upper(law: pn.Cactus, use: tuple[float, float], width: float) -> float:
    """The upper bound that a width aims at, met or not."""
    mechanism = pn.Mechanism(law, law.sensitivity)
    try:
        return float(mechanism.epsilon(1e-5, int(use[0]), use[1], tolerance=width))
    except pn.CertificationError as unmet:
        return float(unmet.bracket)


@pytest.mark.deep
def test_any_cost_of_a_cactus() -> None:
    law = functools.partial(pn.Cactus, cost=pn.costs.Log(), **COARSE)
    found = pn.calibrate(law, epsilon=8.0, delta=1e-5)
    assert found.expected_cost(pn.costs.Log()) == pytest.approx(found.mean_cost, rel=1e-6)
    assert pn.Cactus(cost=pn.costs.Power(2), **COARSE) == pn.Cactus(cost=2.0, **COARSE)


@pytest.mark.parametrize(
    ("law", "target", "message"),
    [
        (pn.UniformAtom, {"epsilon": 0.1, "delta": 0.1}, "made for epsilon = 0"),
        (pn.UniformAtom, {"epsilon": 0.0, "delta": 0.1, "count": 2}, "made for one use"),
        (pn.Staircase, {"epsilon": 0.0, "delta": 0.1}, "made for epsilon above 0"),
        (pn.Staircase, {"epsilon": 1.0, "delta": 0.1, "count": 2}, "delta = 0, or for one use"),
        (pn.TruncatedLaplace, {"epsilon": 1.0, "delta": 0.0}, "delta in"),
        (pn.TruncatedLaplace, {"epsilon": 1.0, "delta": 0.1, "count": 2}, "one use without"),
        (pn.Cactus, {"epsilon": 1.0, "delta": 0.0}, "epsilon and delta above 0"),
        (pn.Cactus, {"epsilon": 1e-4, "delta": 1e-6}, "more than 32,767 cells"),
    ],
)
def test_targets_that_a_law_is_not_made_for(
    law: type[pn.NoiseLaw], target: dict[str, float], message: str
) -> None:
    with pytest.raises(pn.CalibrationError, match=message):
        pn.calibrate(law, **target)


def test_replaced_records_with_sampling_are_refused() -> None:
    words = {"sampling_rate": 0.5, "adjacency": "replace", "contribution": 0.5}
    with pytest.raises(pn.CalibrationError, match='not made for "replace" with sampling'):
        pn.calibrate(pn.Staircase, epsilon=1.0, delta=0.0, **words)
    law = pn.calibrate(pn.Staircase, epsilon=1.0, delta=0.0, adjacency="replace")
    assert law.epsilon == pytest.approx(1.0, rel=1e-11)


def test_what_is_searched_for_is_not_given() -> None:
    law = functools.partial(pn.Cactus, mean_cost=1.0)
    with pytest.raises(TypeError, match="mean_cost is what is calibrated"):
        pn.calibrate(law, epsilon=1.0, delta=1e-5)


def test_a_search_refuses_what_the_law_does() -> None:
    """By the names that its user knows; kills a search that makes laws without these checks."""
    with pytest.raises(TypeError, match=r"^Cactus\(\) got an unexpected keyword argument 'celss'"):
        pn.calibrate(functools.partial(pn.Cactus, celss=3), epsilon=1.0, delta=1e-5)
    with pytest.raises(TypeError, match="progress must be callable, got 3"):
        pn.calibrate(functools.partial(pn.Cactus, progress=3), epsilon=1.0, delta=1e-5)
    with pytest.raises(TypeError, match="law must be a noise class"):
        pn.calibrate(pn.Staircase(epsilon=1.0), epsilon=1.0, delta=0.0)


# -- compare ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison() -> pn.compare:
    return pn.compare(epsilon=4.0, delta=1e-5)


@pytest.mark.deep
def test_compare_shows_every_law(comparison: pn.compare) -> None:
    names = [law.__name__ for law in FAMILIES] + [law.__name__ for law in DESIGNED]
    assert sorted(row.law for row in comparison.rows) == sorted(names)
    # What is best for one use at a pure epsilon is nearly so for next to no delta as well.
    assert [row.law for row in comparison.rows[:2]] == ["OptimalUnimodal", "Staircase"]
    costs = [row.cost for row in comparison.rows]
    assert costs == sorted(costs)
    rows = {row.law: row for row in comparison.rows}
    assert rows["Cactus"].noise.cost == 1.0
    assert rows["Cactus"].cost < rows["Airy"].cost < rows["Gaussian"].cost
    missing = {"UniformAtom": "epsilon = 0"}
    missing |= dict.fromkeys(["DiscreteLaplace", "DiscreteStable"], "whole numbers")
    for name, reason in missing.items():
        row = rows[name]
        assert row.calibration is row.noise is None
        assert row.cost == math.inf
        assert reason in row.reason


def test_laws_for_whole_numbers_are_compared_where_they_are_named() -> None:
    laws = [pn.DiscreteLaplace, Family(pn.DiscreteStable, alpha=1.7), pn.Staircase]
    found = pn.compare(epsilon=1.0, delta=0.0, sensitivity=16.0, laws=laws)
    names = [row.law for row in found.rows]
    assert names == ["Staircase", "DiscreteLaplace", "DiscreteStable(alpha=1.7)"]
    assert found.rows[1].noise.mean_abs < found.rows[2].noise.mean_abs < 1.6 * 16.0
    # A column of scales that no law has.
    assert str(pn.compare(epsilon=1.0, delta=0.0, laws=[pn.Staircase])).count(" -\n") == 1


def test_the_table_has_dashes_where_there_is_nothing(comparison: pn.compare) -> None:
    lines = {line.split()[0]: line.split()[1:] for line in str(comparison).splitlines() if line}
    assert lines["UniformAtom"] == ["-", "-", "-", "-"]
    assert lines["Staircase"][-1] == "-"  # its scale is the sensitivity
    assert "UniformAtom: not applicable: UniformAtom noise is made" in str(comparison)
    # It may spend delta, which the staircase does not; kills cells of which no edge is its step.
    assert json.loads(json.dumps(comparison.to_dict()))["best"] == "OptimalUnimodal"


def test_the_plot_says_what_is_missing(comparison: pn.compare) -> None:
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    comparison.plot(ax)
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("not applicable") == 3
    assert not any("inf" in text for text in texts)


def test_the_cost_decides_which_member_is_made() -> None:
    laws = [pn.Staircase, pn.Laplace]
    found = pn.compare(epsilon=4.0, delta=0.0, cost="variance", laws=laws)
    assert found.best.noise == pn.Staircase(epsilon=4.0, power=2)
    found = pn.compare(epsilon=0.0, delta=0.8, cost="variance", laws=[pn.UniformAtom])
    assert found.best.noise.power == 2.0
    with pytest.raises(TypeError, match="laws must have a scale"):
        pn.compare(laws=[pn.Staircase], speed=False)


def test_what_cannot_be_certified_is_a_row_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from psinoise.comparison import target

    def vague(law: object, **words: object) -> object:
        if law is pn.Airy:
            raise pn.CertificationError("too wide")
        return calibration(law, **words)

    monkeypatch.setattr(target, "calibration", vague)
    found = pn.compare(epsilon=4.0, delta=1e-5, laws=[pn.Airy, pn.Gaussian])
    assert [row.law for row in found.rows] == ["Gaussian", "Airy"]
    assert "Airy: not applicable: too wide" in str(found)
