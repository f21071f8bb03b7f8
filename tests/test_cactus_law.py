"""The cactus law: the optimum of the paper, its certificate, costs, progress, files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import psinoise as pn
from designed_members import SMALL
from psinoise import DomainError


@pytest.fixture(scope="module")
def figure_1():
    """The instance of figure 1 of the paper, which the default arguments are."""
    return pn.Cactus()


def test_figure_1(figure_1):
    certificate = figure_1.certificate
    assert certificate.largest_kl == pytest.approx(1.7272985311, abs=1e-8)
    assert 0.0 <= certificate.gap <= 1e-9
    assert certificate.active_shifts == (0.625, 0.72, 1.0)
    assert figure_1.pdf(0.0) == pytest.approx(2.458508775, rel=1e-6)
    assert figure_1.expected_cost(np.square) <= 0.25 * (1 + 1e-12)
    assert figure_1.std**2 == pytest.approx(0.25, rel=1e-12)
    mass = figure_1.masses[0] + 2 * figure_1.masses[1:-1].sum() + 20.0 * figure_1.masses[-1]
    assert mass == pytest.approx(1.0, abs=1e-15, rel=0)
    assert figure_1.pdf(0.6125) == pytest.approx(200 * figure_1.masses[122], rel=1e-14)  # its edge
    assert not figure_1.masses.flags.writeable


def test_no_shift_exceeds_the_certificate(figure_1):
    """Shifts between multiples of a cell too: there the divergence is linear."""
    shifts = np.concatenate([np.arange(1, 201) / 200, [0.6249, 0.62501, 0.99999, 0.1234]])
    divergences = np.array([figure_1.kl(shift) for shift in shifts])
    assert divergences.max() == pytest.approx(figure_1.certificate.largest_kl, abs=1e-10)
    assert (divergences <= figure_1.certificate.largest_kl + 1e-11).all()
    between = 0.3 * figure_1.kl(0.5) + 0.7 * figure_1.kl(0.505)
    assert figure_1.kl(0.5035) == pytest.approx(between, rel=1e-9)
    assert figure_1.kl(1.01) > figure_1.certificate.largest_kl


def test_sensitivity_is_a_unit_of_length(figure_1):
    wide = pn.Cactus(sensitivity=3.0, mean_cost=2.25)
    assert wide.certificate is figure_1.certificate
    assert wide.kl(3.0) == pytest.approx(figure_1.kl(1.0), rel=1e-12)
    assert wide.std == pytest.approx(1.5, rel=1e-12)
    assert wide != figure_1


def square(x):
    return x**2


def test_any_cost(figure_1):
    law = pn.Cactus(cost=square, **SMALL)
    assert law.certificate.largest_kl == pytest.approx(
        pn.Cactus(**SMALL).certificate.largest_kl, abs=1e-9
    )
    scaled = pn.Cactus(2.0, lambda x: 3.0 * x**2, 3.0, **SMALL)
    assert scaled.certificate.largest_kl == pytest.approx(law.certificate.largest_kl, abs=1e-9)
    logarithmic = pn.Cactus(cost=lambda x: np.log1p(np.abs(x)), mean_cost=0.3, **SMALL)
    assert logarithmic.certificate.gap < 1e-8
    assert logarithmic.expected_cost(lambda x: np.log1p(np.abs(x))) == pytest.approx(0.3, rel=1e-9)
    for copied in (pickle.loads(pickle.dumps(law)), copy.copy(scaled)):
        assert copied in (law, scaled)


def test_no_law_off_the_grid_is_far_below(figure_1):
    """Kills: tangents of steep tails, a gradient that is not interpolated."""
    law, same = pn.Cactus(**SMALL), pn.Cactus(cost=square, **SMALL)
    least = law.certificate.largest_kl - law.gap_off_grid()
    assert law.certificate.largest_kl - 0.006 < least <= figure_1.certificate.lower_bound
    assert 3e-5 < figure_1.gap_off_grid() < 5e-5
    assert law.gap_off_grid() <= same.gap_off_grid() < 0.02


def test_optima_are_kept_in_memory(figure_1, monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("solved again")

    monkeypatch.setattr("psinoise.optimize.solve", fail)
    assert eval(repr(figure_1), vars(pn)) == figure_1
    with pytest.raises(AssertionError, match="solved again"):
        pn.Cactus(mean_cost=0.123, **SMALL)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(pn.Cactus, "_most_solutions", 3)
    monkeypatch.setattr(pn.Cactus, "_solutions", {})
    for mean_cost in (0.2, 0.3, 0.4, 0.5):
        pn.Cactus(1.0, 2.0, mean_cost, 3, 24, 0.5)
    assert len(pn.Cactus._solutions) == 3


def test_progress():
    seen = []
    pn.Cactus(1.0, 2.0, 0.2501, 60, 240, 0.8, progress=lambda width, gap: seen.append((width, gap)))
    assert {width for width, _ in seen} == {12, 60}
    assert seen[-1][1] < 1e-9


def test_files(figure_1, tmp_path, monkeypatch):
    path = tmp_path / "cactus.json"
    figure_1.save(path)
    monkeypatch.setattr(pn.Cactus, "_solutions", {})
    loaded = pn.Cactus.load(path)
    assert loaded == figure_1
    assert loaded.certificate == figure_1.certificate
    np.testing.assert_array_equal(loaded.masses, figure_1.masses)
    assert eval(repr(loaded), vars(pn)) == figure_1
    law = pn.Cactus(cost=square, **SMALL)
    law.save(path)
    assert pn.Cactus.load(path, cost=square) == law
    with pytest.raises(DomainError, match="cost must be given"):
        pn.Cactus.load(path)
    with pytest.raises(FileNotFoundError):
        pn.Cactus.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("psinoise cactus", "other", "is not a cactus law of version 1"),
        ('"version": 1', '"version": 2', "is not a cactus law of version 1"),
        ('"mean_cost": 0.25', '"mean_cost": 0.2', "masses must meet the cost bound"),
        ('"cells": 160', '"cells": 161', "masses must be 162 probabilities"),
        ('"largest_kl": 1.7', '"largest_kl": 1.6', "largest_kl must be that of the masses"),
        ('"tail_ratio": 0.35', '"tail_ratio": 1.35', "tail_ratio must be"),
        ('"sensitivity"', '"sensitvity"', "is not a cactus law"),
        ('"0x1', '"zebra', "is not a cactus law"),
        ('"shifts": [', '"shifts": [7.0, ', "shifts and weights must be multipliers"),
        ("{", "[", "is not a cactus law"),
    ],
)
def test_damaged_files(tmp_path, old, new, message):
    path = tmp_path / "cactus.json"
    pn.Cactus(**SMALL).save(path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DomainError, match=message):
        pn.Cactus.load(path)


@pytest.mark.parametrize("data", [b"\xa0", b"[" * 100_000, b"", b"{}", b"null"])
@pytest.mark.parametrize("law", [pn.Cactus, pn.OptimalUnimodal])
def test_files_of_something_else(tmp_path, law, data):
    """Kills: errors of decoding, and of lists in lists, that are no `DomainError`."""
    path = tmp_path / "law.json"
    path.write_bytes(data)
    with pytest.raises(DomainError, match="is not a"):
        law.load(path)


@pytest.mark.parametrize(("cost", "mean_cost"), [(pn.costs.Log(), 500.0), (0.01, 3000.0)])
def test_gaussian_noise_of_any_size_is_compared_with(cost, mean_cost):
    """Kills: the square of its deviation, or a power that is it, raises OverflowError."""
    with pytest.warns(UserWarning, match="by a share of inf"):
        law = pn.Cactus(1.0, cost, mean_cost, **SMALL)
    assert law.certificate.largest_kl > 0.0
    with pytest.raises(DomainError, match="float64 in powers of the sensitivity"):
        pn.Cactus(1e-160, 2.0, 1.5, **SMALL)
    with pytest.raises(pn.CalibrationError, match="needs more than 32,767 cells"):
        pn.Cactus(1.0, cost, mean_cost)
