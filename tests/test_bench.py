"""The benchmark's matrix, the checks of its answers, and its report."""

from __future__ import annotations

import argparse
import json
import math
import platform

import numpy as np
import pytest

import psinoise
from psinoise.accounting.bracket import Bracket
from psinoise.bench import add_arguments, cases, checks, report, run
from psinoise.bench.cases import Case, find, matrix, standard_law
from psinoise.bench.references import FEW, group_references, references
from psinoise.bench.report import fingerprint
from psinoise.bench.timing import LEAST_ROUNDS, Band
from psinoise.noise import DESIGNED, FAMILIES

QUICK_OPERATIONS = {"sample", "release", "pdf", "ccdf", "iccdf", "epsilon", "compile"}
LAW_OPERATIONS = QUICK_OPERATIONS | {"logpdf", "certified", "calibrate"}


# -- the matrix ---------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [False, True])
def test_every_law_in_every_operation(quick):
    found = {(case.operation, case.law) for case in matrix(quick=quick)}
    operations = QUICK_OPERATIONS if quick else LAW_OPERATIONS
    expected = {(operation, law.__name__) for operation in operations for law in FAMILIES}
    expected |= {("sample", law.__name__) for law in DESIGNED}
    expected |= set() if quick else {("vector", "Gaussian")}
    assert found == expected | {("optimize", "Cactus"), ("import", "")}


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


@pytest.mark.parametrize("law", [law.__name__ for law in DESIGNED])
@pytest.mark.parametrize(
    "spoil", [lambda answer: answer * 1.02, np.abs, lambda answer: -np.abs(answer)]
)
def test_wrong_samples_of_designed_laws_are_noticed(law, spoil):
    workload = Case("sample", law, 1 << 18).make()
    answer = workload.run()
    workload.check(answer)
    with pytest.raises(AssertionError, match="must be"):
        workload.check(spoil(answer))


def test_wrong_optima_are_noticed():
    workload = Case("optimize", "Cactus", 20).make()
    answer = workload.run()
    workload.check(answer)
    with pytest.raises(AssertionError, match="largest divergence must be"):
        workload.check(Case("optimize", "Cactus", 200).make().run())


def test_a_conic_solver_finds_the_same_optimum():
    pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    reference, *_ = references(Case("optimize", "Cactus", 20))
    assert reference.name == "cvxpy + Clarabel"
    workload = reference.make()
    workload.check(workload.run())


@pytest.mark.parametrize("law", [law.__name__ for law in FAMILIES])
@pytest.mark.parametrize(
    "spoil", [lambda answer: answer + 1e-4, lambda answer: answer + 0.125], ids=["grid", "sign"]
)
def test_wrong_releases_are_noticed(law, spoil):
    workload = Case("release", law, 1 << 18).make()
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


@pytest.mark.deep
@pytest.mark.parametrize("case", [c for c in matrix() if c.operation == "epsilon"], ids=str)
def test_wrong_epsilon_is_noticed(case):
    workload = case.make()
    answer = workload.run()
    workload.check(answer)
    with pytest.raises(AssertionError, match="must be"):
        workload.check(answer * (1.0 + 1e-4))


@pytest.mark.parametrize("law", [law.__name__ for law in FAMILIES])
def test_wrong_bounds_are_noticed(law):
    workload = find(f"certified-{law}-2000").make()
    answer = workload.run()
    workload.check(answer)
    lower, estimate, upper = answer
    for wrong in (
        Bracket(upper, estimate, upper),
        Bracket(lower, estimate, lower),
        Bracket(lower, estimate, lower + 1.1e-4 * upper),
        Bracket(lower + 1e-4, estimate + 1e-4, upper + 1e-4),
    ):
        with pytest.raises(AssertionError, match="must"):
            workload.check(wrong)


@pytest.mark.parametrize("law", FAMILIES, ids=lambda law: law.__name__)
def test_wrong_calibration_is_noticed(law):
    workload = find(f"calibrate-{law.__name__}-2000").make()
    answer = workload.run()
    workload.check(answer)
    for factor in (1.0 - 2e-4, 1.0 + 4e-4):
        with pytest.raises(AssertionError, match="epsilon"):
            workload.check(law(scale=answer.scale * factor))


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
    monkeypatch.setattr(report, "_QUICK_LIMIT_SECONDS", math.inf)  # on a busy machine too


def test_json_file(tmp_path, capsys, no_waiting):
    target = tmp_path / "result.json"
    assert run(options("--select", "sample-Airy-16-float64", "--json", str(target))) == 0
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
    assert run(options("--select", "le-Laplace", "--quick")) == 1  # sample and compile
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
