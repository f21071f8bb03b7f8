"""Calibration and comparison for a cost of one's own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import psinoise as pn
from psinoise import costs
from psinoise.__main__ import main
from psinoise.errors import CalibrationError, DomainError
from psinoise.noise import Family

TARGET = {"epsilon": 1.0, "delta": 1e-6, "count": 100}
BENT = costs.Power(1) + costs.Hinge(1.0, weight=5.0)


@pytest.mark.deep
@pytest.mark.parametrize("cost", [BENT, costs.Huber(5.0), costs.Power(1.5), costs.Hinge(20.0)])
def test_the_law_of_a_cost_is_not_beaten_by_stretching_another(cost):
    """Kills: the search among stretched laws of mean cost 1 only."""
    law = pn.calibrate(pn.Schrodinger, cost=cost, **TARGET)
    assert pn.Mechanism(law).epsilon(1e-6, 100).upper <= 1.0
    paid = law.expected_cost(cost)
    others = [pn.Gaussian, pn.Airy]
    if not isinstance(cost, costs.Power):  # of which all laws are stretched ones of each other
        shares = (0.3, 1.0, 3.0)
        others += [Family(pn.Schrodinger, cost=cost, mean_cost=paid * share) for share in shares]
    for other in others:
        assert paid <= pn.calibrate(other, **TARGET).expected_cost(cost) * (1.0 + 1e-3), other


def test_comparison_at_a_target_for_a_cost():
    laws = [pn.Gaussian, pn.Airy, pn.Schrodinger, Family(pn.Schrodinger, cost=BENT)]
    found = pn.compare(laws=laws, cost=BENT, progress=False, **TARGET)
    least = {row.law: row.cost for row in found.rows}
    assert least["Schrodinger"] == least[laws[-1].__name__]
    assert least["Schrodinger"] <= least["Airy"] * (1.0 + 1e-4)
    assert least["Schrodinger"] < least["Gaussian"]


def test_comparison_at_an_equal_cost():
    laws = [pn.Gaussian, pn.Laplace, pn.Schrodinger]
    found = pn.compare(
        cost=BENT, mean_cost=3.0, laws=laws, counts=[10**6], speed=False, sensitivity=0.001
    )
    for row in found.rows:
        assert row.noise.expected_cost(BENT) == pytest.approx(3.0, rel=1e-9)
    fisher = {row.noise.name: row.noise.fisher_information() for row in found.rows}
    assert found.rows[0].noise.fisher_information() == min(fisher.values())
    assert isinstance(found.rows[0].noise, pn.Schrodinger)
    assert found.to_dict()["mean_cost"] == 3.0
    assert "E cost(Z) = 3" in str(found)


def test_what_does_not_go_together():
    for words in ({"mean_abs": 1.0, "cost": BENT}, {"mean_cost": 1.0}, {"cost": "variance"}):
        with pytest.raises(TypeError):
            pn.compare(**words)
    with pytest.raises(TypeError, match="cost belongs to"):
        pn.calibrate(pn.Gaussian, cost=BENT, **TARGET)


def test_costs_on_the_command_line(capsys):
    words = ["compare", "--cost", "hinge:3", "--mean-cost", "2", "--counts", "9", "--no-speed"]
    assert main(words) == 0
    assert "equal expected cost E cost(Z) = 2" in capsys.readouterr().out
    assert main(["compare", "--cost", "nonsense"]) != 0
    assert "instead of 'nonsense'" in capsys.readouterr().err


def test_a_cactus_knows_its_own_cost():
    law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=20, cells=160, tail_ratio=0.35)
    assert law.expected_cost(law.cost) == pytest.approx(0.25, rel=1e-6)
    assert np.isfinite(law.moment(2))


@pytest.mark.deep
@pytest.mark.parametrize(
    "bound",
    [1e-5, 0.04, 1.0, 1.5, 24.9, 36.0, 562.0, 1.7e3, 4e4],
)
def test_a_cactus_on_cells_of_its_own_choice_beats_the_gaussian(bound):
    """The Gaussian of the law's own variance; from the masses, and piece by piece from densities.
    Kills: half as many cells, masses that are interpolated linearly, no tilt to the cost."""
    law = pn.Cactus(mean_cost=bound, sensitivity=1.0)
    variance = law.std**2
    assert variance == pytest.approx(bound, rel=1e-12 if bound > 5.0 else 1e-6)
    assert variance <= bound * (1.0 + 1e-12)
    gain = 1.0 - 2.0 * variance * law.certificate.largest_kl
    assert gain == pytest.approx(1.0 - 2.0 * variance * law.kl(1.0), abs=2e-14)
    assert law.certificate.gap <= 1e-9 * law.certificate.largest_kl
    # A share of 1 / (96 C**2) is what can be gained; cells take 1 / (12 n**2 C) of it.
    cells = 1.0 / (12.0 * law.cells_per_sensitivity**2 * bound)
    assert gain > min(0.5, 0.24 / (96.0 * bound**2))
    if bound > 1.0:
        assert gain == pytest.approx(1.0 / (96.0 * bound**2) - cells, rel=0.4 / bound + 0.01)


@pytest.mark.deep
@pytest.mark.parametrize("bound", [4.1e4, 1e5])
def test_of_enormous_mean_costs_no_law_on_the_cells_beats_the_gaussian(bound):
    """Which is proven by the certificate; kills a solver that stops early, as its bound would
    be below. No law at all is much below it either."""
    with pytest.warns(UserWarning, match="take Gaussian noise"):
        law = pn.Cactus(mean_cost=bound, sensitivity=1.0)
    assert law.certificate.largest_kl >= law.certificate.lower_bound > 0.5 / bound
    assert law.certificate.largest_kl - law.gap_off_grid() > 0.5 / bound * (1.0 - 1e-7)


def test_noise_that_is_too_large_for_cells_is_refused():
    with pytest.raises(CalibrationError, match=r"3\.16e\+05 sensitivities needs more than 32,767"):
        pn.Cactus(mean_cost=1e11)
    with pytest.raises(CalibrationError, match="at most 32767 but for large noise"):
        pn.Cactus(mean_cost=1.0, cells_per_sensitivity=5000, cells=40_000, tail_ratio=0.99)
    with pytest.raises(CalibrationError, match="at most 32767 but for large noise"):
        pn.Cactus(1.0, 1.0, 30.0, cells_per_sensitivity=150, cells=45_000, tail_ratio=0.999)


def test_large_cactus_noise_is_unimodal_and_small_is_not():
    """So that one shift is accounted; kills a law that is taken for unimodal whatever it is."""
    large, small = pn.Cactus(mean_cost=400.0), pn.Cactus(mean_cost=0.25)
    assert large.unimodal
    assert large.worst_shifts(1.0) == (1.0,)
    assert not small.unimodal
    assert len(small.worst_shifts(1.0)) == 200
    shifts = np.linspace(0.05, 1.0, 20)
    assert (np.diff([large.kl(shift) for shift in shifts]) > 0.0).all()


def test_a_cactus_on_cells_that_do_not_fit_says_so():
    with pytest.warns(UserWarning, match="above that of Gaussian noise of the same mean cost"):
        law = pn.Cactus(0.1, 2.0, 0.2, 20, 160, 0.35)
    with pytest.warns(UserWarning, match=r"share of .*, take Gaussian noise"):
        pn.Cactus(mean_cost=1e6)  # whose cells are as many as there can be
    assert law.certificate.largest_kl > 0.5 * 0.1**2 / 0.2
    huber = pn.Cactus(cost=costs.Huber(2.0), mean_cost=9.0)
    gaussian = pn.Gaussian(std=1.0)
    assert huber.cells > 8 * huber.cells_per_sensitivity
    assert huber.expected_cost(costs.Huber(2.0)) == pytest.approx(9.0, rel=1e-5)
    assert gaussian.expected_cost(costs.Huber(2.0)) < 9.0


def test_a_calibration_warns_of_the_law_that_it_returns() -> None:
    """Kills a warning for each law of the search, of which there are about five; and cells that a
    calibration chooses in another way than the law, which gave a law that is above the Gaussian."""
    target = {"epsilon": 1.0, "delta": 1e-6, "count": 10}
    cells = {"cells_per_sensitivity": 5, "cells": 600, "tail_ratio": 0.8}
    with pytest.warns(UserWarning, match="take finer cells, more of them, or Gaussian") as seen:
        law = pn.calibrate(Family(pn.Cactus, **cells), **target)
    assert [repr(law) in str(warning.message) for warning in seen] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = pn.calibrate(pn.Cactus, **target)
    assert fine.certificate.largest_kl < 0.5 / fine.mean_cost
    assert fine.mean_cost == pytest.approx(law.mean_cost, rel=2e-3)


def test_a_comparison_for_a_cost_has_the_law_of_the_cost():
    """Kills: the list of laws that is the same for every cost."""
    from psinoise import plotting
    from psinoise.noise._plot import law_colors

    use = {"delta": 1e-6, "sensitivity": 0.01, "speed": False, "progress": False}
    found = pn.compare(cost=BENT, mean_cost=3.0, counts=[10**5], **use)
    assert isinstance(found.rows[0].noise, pn.Schrodinger)
    assert found.rows[0].noise == pn.Schrodinger(cost=BENT, mean_cost=3.0)
    colors = [plotting.color_of(law) for law in ("Schrodinger", *law_colors())]
    assert len(set(colors)) == len(law_colors())


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
def test_a_comparison_lists_no_law_twice(power):
    """Airy and Gaussian noise are those of their costs; kills a row of the same epsilon."""
    use = {"delta": 1e-6, "counts": [10], "speed": False, "progress": False}
    found = pn.compare(cost=costs.Power(power, weight=2.0), mean_cost=4.0, **use)
    epsilons = [row.epsilons[0] for row in found.rows]
    assert len({round(epsilon, 9) for epsilon in epsilons}) == len(epsilons)
    made = pn.Schrodinger(cost=costs.Power(power, weight=2.0), mean_cost=4.0)
    assert (made in [row.noise for row in found.rows]) == (power == 3.0)


@pytest.mark.parametrize(
    "cost", [costs.Power(1.5), costs.Power(4.0), costs.Hinge(3.0) + costs.Power(2.0)]
)
def test_laws_whose_tails_are_too_heavy_for_a_cost_are_left_out(cost):
    """Unless they are named; kills a list of laws that its own cost refuses."""
    use = {"cost": cost, "mean_cost": 3.0, "counts": [100], "speed": False, "progress": False}
    found = pn.compare(**use)
    assert found.left_out == ("SymmetricStable(alpha=1.5)",)
    assert "SymmetricStable(alpha=1.5): left out" in str(found)
    assert {"Gaussian", "Laplace", "Airy"} <= {row.law for row in found.rows}
    for row in found.rows:
        assert row.noise.expected_cost(cost) == pytest.approx(3.0, rel=1e-9)
    heavy = Family(pn.SymmetricStable, alpha=1.5)
    with pytest.raises(DomainError, match="no finite expectation"):
        pn.compare(**use, laws=[pn.Gaussian, heavy])
