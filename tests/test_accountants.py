"""The comparison with other accountants: what it prints, and that it refuses wrong answers."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

import psinoise as pn

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "accountants.py"


@pytest.fixture
def accountants(monkeypatch):
    spec = importlib.util.spec_from_file_location("benchmark_accountants", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks its own module up.
    monkeypatch.setitem(importlib.import_module("sys").modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "USES", 100)
    return module


def test_a_rival_that_is_not_installed_is_left_out_with_a_note(accountants, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    rows = list(accountants.beside(pn.Gaussian(mean_abs=2.0), 10.0))
    assert [row[1] for row in rows[:2]] == ["psinoise, certified", "psinoise, upper"]
    assert [row[2] for row in rows[2:]] == ["not installed"] * 3


@pytest.mark.deep
def test_rivals_are_set_to_the_error_and_timed(accountants, monkeypatch):
    chosen = tuple(rival for rival in accountants.RIVALS if rival.package == "dp_accounting")
    monkeypatch.setattr(accountants, "RIVALS", chosen)
    rows = list(accountants.beside(pn.Gaussian(mean_abs=2.0), 100.0))
    errors = [float(row[2].removesuffix(" above")) for row in rows[2:]]
    exact = accountants.estimate(pn.Gaussian(mean_abs=2.0))
    ours = accountants.ours(pn.Gaussian(mean_abs=2.0))().upper - exact
    alone = accountants.ours_above(pn.Gaussian(mean_abs=2.0))() - exact
    asked = (accountants.WIDTH, ours, accountants.WIDTH, alone)
    for found, most in zip(errors, asked, strict=False):
        assert 0.0 < found <= 1.05 * most + 1e-7
    assert errors[4] == pytest.approx(1e-2, rel=0.2)
    assert len(errors) == 5
    assert all("[" in row[4] for row in rows[2:])


def test_a_wrong_rival_is_not_timed(accountants, monkeypatch):
    wrong = accountants.Rival("wrong", "numpy", ("Gaussian",), True, lambda *_: lambda: (0.0, 0.1))
    monkeypatch.setattr(accountants, "RIVALS", (wrong,))
    with pytest.raises(AssertionError, match="outside"):
        list(accountants.beside(pn.Gaussian(mean_abs=2.0), 10.0))


def test_questions_report_seconds_and_memory(accountants, capsys):
    assert accountants.answer("calibrate, n = 2000") == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.0 < found["seconds"] < math.inf
    assert 10.0 < found["megabytes"] < math.inf
