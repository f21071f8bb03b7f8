"""The benchmark's instruments, on clocks that do not depend on the machine, and their verdicts."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import psinoise
from psinoise.bench import checks
from psinoise.bench.report import fingerprint
from psinoise.bench.timing import LEAST_ROUNDS, Band, Workload, interleave

COMPARE = Path(__file__).resolve().parents[1] / "benchmarks" / "compare.py"


class Machine:
    """A clock that only work moves, with noise and a drift that both rows share."""

    def __init__(self, seed, drift=0.0):
        self.now = 0
        self.drift = drift
        self.rng = np.random.default_rng(seed)
        self.log = []

    def clock(self):
        return self.now

    def work(self, label, nanoseconds):
        def call():
            slow = 1.0 + self.drift * self.now * 1e-9
            self.now += int(nanoseconds * slow * self.rng.lognormal(0.0, 0.05))
            self.log.append(label)
            return label

        return Workload(call, [label].index)


# -- the band -----------------------------------------------------------------------------------


def test_band_of_the_fewest_values_is_their_range():
    assert Band.of([3, 1, 2, 6, 5, 4]) == Band(3.5, 1.0, 6.0)


def test_fewer_values_have_no_band():
    band = Band.of(np.full(LEAST_ROUNDS - 1, 2.0))
    assert (band.low, band.high) == (0.0, math.inf)
    assert not band.shows_difference


def test_band_ranks_match_published_tables():
    # 95 % intervals of the median from the binomial distribution: n = 20 has ranks 6 and 15,
    # n = 100 has 40 and 61 (Conover, Practical nonparametric statistics, section 3.2).
    for count, low, high in ((20, 6, 15), (100, 40, 61)):
        band = Band.of(np.arange(1, count + 1))
        assert (band.low, band.high) == (low, high)


def test_band_covers_the_median():
    # Coverage is at least 95 %; 1899 or fewer of 2000 by chance has a probability below 1e-4 for
    # n = 21, whose exact coverage is 97.3 %.
    rng = np.random.default_rng(1)
    bands = [Band.of(sample) for sample in rng.lognormal(size=(2000, 21))]
    assert sum(band.low <= 1.0 <= band.high for band in bands) >= 1900


# -- interleaved timing -------------------------------------------------------------------------


@pytest.mark.deep
def test_equal_workloads_show_no_difference(monkeypatch):
    # To collect all garbage of a session of tests 40 times takes half a minute.
    monkeypatch.setattr("psinoise.bench.timing.collector_off", contextlib.nullcontext)
    # Each abstains with at least 95 %; more than 12 of 40 that do not has probability 1e-8.
    shown = 0
    for seed in range(40):
        machine = Machine(seed)
        times = interleave(
            [machine.work("a", 1e6), machine.work("b", 1e6)], 0.05, clock=machine.clock
        )
        shown += Band.of(times[1] / times[0]).shows_difference
    assert shown <= 12


def test_twice_the_time_is_shown_under_drift():
    # The clock slows down threefold during the run; pairs do not see it.
    machine = Machine(3, drift=20.0)
    work = [machine.work("a", 1e6), machine.work("b", 2e6)]
    times = interleave(work, 0.1, clock=machine.clock)
    assert times[0, -1] > 2.0 * times[0, 0]
    band = Band.of(times[1] / times[0])
    assert band.shows_difference
    assert band.low < 2.0 < band.high
    assert band.high - band.low < 0.4


def test_rows_take_turns():
    machine = Machine(4)
    interleave([machine.work("a", 1e6), machine.work("b", 1e6)], 0.0, clock=machine.clock)
    # warm-up, calibration and the fewest rounds
    assert machine.log == ["a", "b"] * (2 + LEAST_ROUNDS)


def test_short_work_is_repeated():
    machine = Machine(5)
    times = interleave([machine.work("a", 1000.0)], 0.0, clock=machine.clock)
    assert len(machine.log) > 100 * LEAST_ROUNDS
    assert times == pytest.approx(1000.0, rel=0.1)


def test_time_limit_holds():
    machine = Machine(6)
    times = interleave([machine.work("a", 1e6)], 0.05, clock=machine.clock)
    assert 0.05 <= machine.now * 1e-9 < 0.06
    assert LEAST_ROUNDS < times.shape[1] <= 51


def test_times_and_ratios_are_per_element():
    """A rival that does fewer elements is not as fast as its call is short."""
    machine = Machine(7)
    few = replace(machine.work("few", 1e6), elements=10)
    many = replace(machine.work("many", 2e6), elements=1000)
    times = interleave([few, many], 0.0, clock=machine.clock)
    assert times.mean(axis=1) == pytest.approx([1e5, 2e3], rel=0.1)


def test_collector_is_off_during_timing_and_on_again():
    seen = []
    interleave([Workload(gc.isenabled, seen.append)], 0.0)
    assert seen == [False]
    assert gc.isenabled()


def test_wrong_answer_is_not_timed():
    calls = []
    with pytest.raises(AssertionError, match="must be finite"):
        interleave([Workload(lambda: calls.append(1) or math.nan, checks.finite)], 0.0)
    assert len(calls) == 1
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("band", "text"),
    [
        (Band(1.02, 0.99, 1.05), "no difference shown"),
        (Band(2.0, 1.91, 2.08), "2 [1.91, 2.08]"),
        (Band(0.5, 0.45, 0.999), "0.5 [0.45, 0.999]"),
        (Band(math.nan, math.nan, math.nan), "nan [nan, nan]"),
    ],
)
def test_band_as_text(band, text):
    assert str(band) == text


# -- compare.py ---------------------------------------------------------------------------------


@pytest.fixture
def compare(monkeypatch):
    specification = importlib.util.spec_from_file_location("benchmarks_compare", COMPARE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    # One pair of processes shows that they talk; it has no band.
    monkeypatch.setattr(module, "LEAST_ROUNDS", 1)
    return module


def fake_worker(compare, nanoseconds, failing=()):
    """Workers that make up their times; ``nanoseconds`` by label."""
    rng = np.random.default_rng(8)

    class Fake(compare.Worker):
        def __init__(self, label, installation):
            self.label = label
            self.hello = {
                "cases": ["one", "two"] if label == "A" else ["two", "three", "one"],
                "fingerprint": fingerprint(),
                "file": psinoise.__file__,
            }

        def ask(self, verb, name, calls):
            if (self.label, name) in failing:
                raise compare.CaseError(f"{self.label}: AssertionError: wrong")
            return {"ns": list(nanoseconds[self.label] * rng.lognormal(0.0, 0.02, calls))}

        def close(self):
            pass

    return Fake


@pytest.mark.parametrize(
    ("b", "status", "text"),
    [(1e6, 0, "no difference shown"), (2e6, 1, "SLOWER"), (0.5e6, 0, "0."), (1.07e6, 0, "1.0")],
)
def test_compare_verdict(compare, monkeypatch, capsys, b, status, text):
    monkeypatch.setattr(compare, "Worker", fake_worker(compare, {"A": 1e6, "B": b}))
    assert compare.main(["a", "b", "--starts=9"]) == status
    lines = capsys.readouterr().out.splitlines()
    # Only what both have, in the order of A.
    assert [line.split()[0] for line in lines[3:]] == ["one", "two"]
    assert all(text in line for line in lines[3:])


def test_compare_reports_a_failing_case_and_goes_on(compare, monkeypatch, capsys):
    fake = fake_worker(compare, {"A": 1e6, "B": 1e6}, failing={("B", "one")})
    monkeypatch.setattr(compare, "Worker", fake)
    assert compare.main(["a", "b"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "failed in B: AssertionError: wrong" in lines[3]
    assert lines[4].startswith("two")


@pytest.mark.deep
def test_compare_runs_both_installations(compare, capsys):
    home = Path(psinoise.__file__).parents[1]
    words = [str(home), str(home), "--select=sample-Airy-16-float64", "--starts=1", "--rounds=1"]
    assert compare.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("A: psinoise")
    assert lines[1].startswith("B: psinoise")
    assert lines[-1].startswith("sample-Airy-16-float64-1t")
    assert lines[-1].endswith("no difference shown")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no-such", "no-such"], "A must be an interpreter or a directory"),
        ([".", ".", "--starts=0"], "starts must be at least"),
        ([".", ".", "--rounds=0"], "rounds must be at least 1"),
        ([".", ".", "--tolerance=0.9"], "tolerance must be at least 1"),
        ([".", ".", "--tolerance=nan"], "tolerance must be at least 1"),
    ],
)
def test_compare_refuses(compare, capsys, words, message):
    assert compare.main(words) == 2
    assert message in capsys.readouterr().err


def test_compare_refuses_a_directory_without_an_installation(compare, tmp_path, capfd):
    assert compare.main([str(tmp_path), str(tmp_path)]) == 2
    assert "compare.py: A must" in capfd.readouterr().err
