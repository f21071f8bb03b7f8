"""The benchmark's instruments, on clocks that do not depend on the machine."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import math
import platform
from pathlib import Path

import numpy as np
import pytest

import psinoise
from psinoise.bench import add_arguments, cases, checks, report, run
from psinoise.bench.cases import Case, find, matrix, standard_law
from psinoise.bench.fingerprint import file_name, fingerprint
from psinoise.bench.references import FEW, group_references, references
from psinoise.bench.timing import LEAST_ROUNDS, Band, Workload, interleave, median_band, ratio_band
from psinoise.noise import FAMILIES

COMPARE = Path(__file__).resolve().parents[1] / "benchmarks" / "compare.py"
LAW_OPERATIONS = {"sample", "pdf", "logpdf", "ccdf", "iccdf", "epsilon", "compile"}


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

        return Workload(call, lambda answer: checks.equal("answer", answer, label))


# -- the band -----------------------------------------------------------------------------------


def test_band_of_the_fewest_values_is_their_range():
    assert median_band([3, 1, 2, 6, 5, 4]) == Band(3.5, 1.0, 6.0)


def test_fewer_values_have_no_band():
    band = median_band(np.full(LEAST_ROUNDS - 1, 2.0))
    assert (band.low, band.high) == (0.0, math.inf)
    assert not band.shows_difference


def test_band_ranks_match_published_tables():
    # 95 % intervals of the median from the binomial distribution: n = 20 has ranks 6 and 15,
    # n = 100 has 40 and 61 (Conover, Practical nonparametric statistics, section 3.2).
    for count, low, high in ((20, 6, 15), (100, 40, 61)):
        band = median_band(np.arange(1, count + 1))
        assert (band.low, band.high) == (low, high)


def test_band_covers_the_median():
    # Coverage is at least 95 %; 1899 or fewer of 2000 by chance has a probability below 1e-4 for
    # n = 21, whose exact coverage is 97.3 %.
    rng = np.random.default_rng(1)
    bands = [median_band(sample) for sample in rng.lognormal(size=(2000, 21))]
    assert sum(band.low <= 1.0 <= band.high for band in bands) >= 1900


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_band_refuses_confidence(confidence):
    with pytest.raises(ValueError, match="confidence must be"):
        median_band([1.0], confidence)


def test_band_refuses_nothing():
    with pytest.raises(ValueError, match="must not be empty"):
        median_band([])


# -- interleaved timing -------------------------------------------------------------------------


def test_equal_workloads_show_no_difference():
    # Each abstains with at least 95 %; more than 12 of 40 that do not has probability 1e-8.
    shown = 0
    for seed in range(40):
        machine = Machine(seed)
        times = interleave(
            [machine.work("a", 1e6), machine.work("b", 1e6)], 0.05, clock=machine.clock
        )
        shown += ratio_band(times[1], times[0]).shows_difference
    assert shown <= 12


def test_twice_the_time_is_shown_under_drift():
    # The clock slows down threefold during the run; pairs do not see it.
    machine = Machine(3, drift=20.0)
    work = [machine.work("a", 1e6), machine.work("b", 2e6)]
    times = interleave(work, 0.1, clock=machine.clock)
    assert times[0, -1] > 2.0 * times[0, 0]
    band = ratio_band(times[1], times[0])
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


def test_self_timed_work_counts_its_own_nanoseconds():
    times = interleave([Workload(lambda: 42, checks.positive, self_timed=True)], 0.0)
    assert (times == 42.0).all()


def test_collector_is_off_during_timing_and_on_again():
    seen = []
    interleave([Workload(gc.isenabled, seen.append)], 0.0)
    assert seen == [False]
    assert gc.isenabled()


def test_wrong_answer_is_not_timed():
    calls = []
    with pytest.raises(AssertionError, match="must be positive"):
        interleave([Workload(lambda: calls.append(1) or -1, checks.positive)], 0.0)
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


# -- the matrix ---------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [False, True])
def test_every_law_in_every_operation(quick):
    found = {(case.operation, case.law) for case in matrix(quick=quick)}
    operations = LAW_OPERATIONS - ({"logpdf"} if quick else set())
    expected = {(operation, law.__name__) for operation in operations for law in FAMILIES}
    assert found == expected | {("import", "")}


def test_sampling_covers_sizes_types_and_threads():
    for law in FAMILIES:
        found = {
            (case.size, case.dtype, case.threads)
            for case in matrix()
            if (case.operation, case.law) == ("sample", law.__name__)
        }
        large = {
            (1 << power, dtype, threads)
            for power in (20, 24)
            for dtype in ("float64", "float32")
            for threads in (1, 2)
        }
        assert found == large | {(16, "float64", 1), (16, "float32", 1)}


def test_names_are_unique_and_found():
    names = [case.name for case in matrix()]
    assert len(set(names)) == len(names)
    assert all(find(name).name == name for name in names)
    with pytest.raises(ValueError, match="name must be that of a case"):
        find("sample")


def test_quick_is_part_of_the_matrix():
    assert set(matrix(quick=True)) < set(matrix())


def test_every_case_and_group_has_a_reference_row():
    groups = group_references(matrix())
    for case in matrix():
        rows = references(case)
        assert rows
        assert {row.name for row in rows} <= {row.name for row in groups[case.group]}
    for group, rows in groups.items():
        assert len({row.name for row in rows}) == len(rows), group


@pytest.mark.parametrize("case", matrix(quick=True), ids=lambda case: case.name)
def test_references_do_as_many_elements(case):
    small = case.shrunk(1 << 10)
    for reference in references(small):
        workload = reference.make()
        slow = reference.name == "scipy levy_stable" and case.operation != "sample"
        assert workload.elements == (min(FEW, small.elements) if slow else small.elements)


def test_labels():
    assert Case("sample", "Airy", 1 << 20, "float32", 2).name == "sample-Airy-1Mi-float32-2t"
    assert Case("epsilon", "Airy", 10**9).name == "epsilon-Airy-1e9"
    assert Case("epsilon", "Airy", 2000).group == "epsilon-2000"
    assert Case("pdf", "Airy", 1 << 12).group == "pdf-4Ki"
    assert Case("compile", "Airy").name == "compile-Airy"


def test_standard_law():
    assert all(standard_law(law.__name__).mean_abs == pytest.approx(1.0) for law in FAMILIES)
    with pytest.raises(ValueError, match="law must be one of"):
        standard_law("Nobody")


def test_law_without_a_size_is_refused(monkeypatch):
    class Shape:
        def __init__(self, *, alpha):
            pass

    monkeypatch.setattr(cases, "FAMILIES", (Shape,))
    with pytest.raises(ValueError, match="from mean_abs or scale alone, which Shape is not"):
        standard_law("Shape")


# -- the checks kill wrong answers --------------------------------------------------------------


@pytest.mark.parametrize("law", [law.__name__ for law in FAMILIES])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda answer: answer * 1.02,
        np.abs,
        lambda answer: np.where(np.abs(answer) > 2.0, 0.0, answer),
        lambda answer: np.where(np.arange(answer.size) == 5, np.nan, answer),
    ],
    ids=["scale", "sign", "tail", "nan"],
)
def test_wrong_samples_are_noticed(law, spoil):
    workload = Case("sample", law, 1 << 18).make()
    answer = workload.run()
    workload.check(answer)
    with pytest.raises(AssertionError, match="must be"):
        workload.check(spoil(answer))


@pytest.mark.parametrize("law", [law.__name__ for law in FAMILIES])
@pytest.mark.parametrize("operation", cases.EVALUATIONS)
def test_wrong_values_are_noticed(law, operation):
    workload = Case(operation, law, 1 << 10).make()
    answer = workload.run()
    workload.check(answer)
    # iccdf is compared through ccdf with a tolerance of 1e-10.
    for wrong in (answer * (1.0 + 1e-8), np.full_like(answer, np.nan), answer[1:]):
        with pytest.raises(AssertionError, match="must be"):
            workload.check(wrong)


@pytest.mark.parametrize("law", [law.__name__ for law in FAMILIES])
@pytest.mark.parametrize("operation", ["pdf", "logpdf", "ccdf"])
def test_closed_forms_agree_with_what_the_law_states(law, operation, monkeypatch):
    monkeypatch.setattr(checks, "closed_form", lambda law, operation: None)
    Case(operation, law, 1 << 10).check()


@pytest.mark.parametrize("case", [c for c in matrix() if c.operation == "epsilon"], ids=str)
def test_wrong_epsilon_is_noticed(case):
    workload = case.make()
    answer = workload.run()
    workload.check(answer)
    with pytest.raises(AssertionError, match="must be"):
        workload.check(answer * (1.0 + 1e-4))


def test_table_of_another_law_is_noticed():
    answers = {law.__name__: Case("compile", law.__name__).make() for law in FAMILIES}
    tables = {name: workload.run() for name, workload in answers.items()}
    for name, workload in answers.items():
        workload.check(tables[name])
        other = next(other for other in tables if other != name)
        with pytest.raises(AssertionError, match="log density must be"):
            workload.check(tables[other])


# -- the report ---------------------------------------------------------------------------------


def options(*words):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def no_waiting(monkeypatch):
    monkeypatch.setattr(report, "_SECONDS", 0.0)
    monkeypatch.setattr(report, "_QUICK_SHARED_SECONDS", 0.0)


def test_json_file(tmp_path, capsys, no_waiting):
    target = tmp_path / "result.json"
    assert run(options("--select", "Airy-16-float64", "--json", str(target))) == 0
    found = json.loads(target.read_text("utf-8"))
    assert set(found) == {"schema", "created", "quick", "left_out", "fingerprint", "rows"}
    assert set(found["fingerprint"]) == {
        *("cpu", "cores", "machine", "platform", "python", "numpy", "scipy", "psinoise")
    }
    assert set(found["fingerprint"]["psinoise"]) == set(psinoise.build_config())
    assert [row["reference"] for row in found["rows"]] == ["numpy standard_normal", "plain store"]
    for row in found["rows"]:
        assert set(row) == {
            *("case", "group", "operation", "law", "size", "dtype", "threads", "elements"),
            *("reference", "ns_per_element", "reference_ns_per_element", "ratio"),
            *("shows_difference", "rounds"),
        }
        assert find(row["case"]).group == row["group"]
        assert row["rounds"] >= LEAST_ROUNDS
        assert row["ratio"]["low"] <= row["ratio"]["median"] <= row["ratio"]["high"]
    output = capsys.readouterr().out
    assert "sample-Airy-16-float64-1t" in output
    assert "plain store" in output


def test_json_on_standard_output_is_nothing_else(capsys, no_waiting):
    assert run(options("--quick", "--select", "Airy-16", "--json", "-")) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["quick"] is True
    assert captured.err == ""


def test_json_in_a_directory_is_named_after_the_machine(tmp_path, capsys, no_waiting):
    assert run(options("--select", "Airy-16-float32", "--json", str(tmp_path))) == 0
    (made,) = tmp_path.iterdir()
    assert psinoise.build_config()["isa"] in made.name
    assert made.suffix == ".json"


def test_infinite_band_is_null_in_json():
    row = report.Row(Case("import"), "other", 1.0, 2.0, Band(2.0, 0.0, math.inf), 3)
    assert row.as_dict()["ratio"] == {"median": 2.0, "low": 0.0, "high": None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--select", "nothing-like-it"], "select must be"),
        (["--json", "no/such/folder/x.json"], "json must be a file in an existing directory"),
        (["--json", ""], "json must be"),
    ],
)
def test_bad_input_is_one_clear_line(words, message):
    with pytest.raises(ValueError, match=message) as caught:
        run(options(*words))
    assert "\n" not in str(caught.value)


def test_wrong_answer_is_reported_and_the_rest_goes_on(monkeypatch, capsys, no_waiting):
    def spoiled(law, values):
        raise AssertionError("mean must be 1, got 2")

    monkeypatch.setattr(checks, "sample", spoiled)
    assert run(options("--select", "Laplace", "--quick")) == 1
    captured = capsys.readouterr()
    assert "wrong answer: sample-Laplace-16-float64-1t: mean must be 1, got 2" in captured.err
    assert "compile-Laplace" in captured.out
    assert "sample-Laplace" not in captured.out


def test_quick_stops_in_time_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(report, "_QUICK_LIMIT_SECONDS", -1.0)
    assert run(options("--quick", "--select", "Airy-16")) == 0
    assert "left out, no time: sample-Airy-16-float64-1t" in capsys.readouterr().err


def test_table_is_aligned():
    rows = [
        report.Row(Case("compile", law), other, 1234567.0, 0.25, Band(2.0, 1.9, 2.1), 7)
        for law in ("Airy", "Gaussian")
        for other in ("numpy", "plain store")
    ]
    lines = report.table(rows).splitlines()
    assert lines[1].split() == ["compile-Airy", "1,234,567", "numpy", "0.25", "2", "[1.9,", "2.1]"]
    assert len({line.index("2 [1.9") for line in lines[1:]}) == 1
    assert lines[2].startswith(" " * len("compile-Gaussian"))


def test_fingerprint_does_not_name_the_host():
    values = json.dumps(fingerprint())
    assert platform.node() == "" or f'"{platform.node()}"' not in values


@pytest.mark.parametrize(
    ("cpu", "name"),
    [
        ("AMD EPYC 9R14 96-Core Processor", "amd-epyc-9r14-avx512-2026-01-31.json"),
        (
            "Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz",
            "intel-xeon-platinum-8175m-avx512-2026-01-31.json",
        ),
        ("", "avx512-2026-01-31.json"),
    ],
)
def test_file_name(cpu, name):
    assert file_name({"cpu": cpu, "psinoise": {"isa": "avx512"}}, "2026-01-31") == name


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


def test_compare_runs_both_installations(compare, capsys):
    home = Path(psinoise.__file__).parents[1]
    words = [str(home), str(home), "--select=Airy-16-float64", "--starts=1", "--rounds=1"]
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
