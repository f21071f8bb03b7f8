"""The benchmark's matrix, the checks of its answers, and its report."""

from __future__ import annotations

import argparse
import json
import math
import platform

import numpy as np
import pytest

import psinoise
from psinoise.bench import add_arguments, cases, checks, report, run
from psinoise.bench.cases import Case, find, matrix, standard_law
from psinoise.bench.references import FEW, references
from psinoise.bench.report import fingerprint
from psinoise.bench.timing import LEAST_ROUNDS, Band
from psinoise.noise import DESIGNED, FAMILIES

QUICK_OPERATIONS = {"sample", "release", "pdf", "ccdf", "iccdf", "compile"}
NAME = "sample-Airy-16-float64-1t"
LAW_OPERATIONS = QUICK_OPERATIONS | {"logpdf"}


# -- the matrix ---------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [False, True])
def test_every_law_in_every_operation(quick):
    found = {(case.operation, case.law) for case in matrix(quick=quick)}
    operations = QUICK_OPERATIONS if quick else LAW_OPERATIONS
    expected = {(operation, law.__name__) for operation in operations for law in FAMILIES}
    expected |= {("sample", law.__name__) for law in DESIGNED}
    expected |= set() if quick else {("vector", "Gaussian")}
    assert found == expected


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


@pytest.mark.parametrize("case", matrix(quick=True), ids=lambda case: case.name)
def test_references_do_as_many_elements(case):
    small = case.shrunk(1 << 10)
    rows = references(small)
    assert rows
    for name, make in rows.items():
        workload = make()
        slow = name == "scipy levy_stable" and case.operation != "sample"
        assert workload.elements == (min(FEW, small.size) if slow else small.size)


def test_labels():
    assert Case("sample", "Airy", 1 << 20, "float32", 2).name == "sample-Airy-1Mi-float32-2t"
    assert Case("pdf", "Airy", 1 << 12).name == "pdf-Airy-4Ki"
    assert Case("compile", "Airy").name == "compile-Airy"


def test_standard_law():
    assert all(standard_law(law.__name__).mean_abs == pytest.approx(1.0) for law in FAMILIES)


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
    monkeypatch.setattr(report, "_QUICK_SECONDS", 0.0)


def test_json_file(tmp_path, capsys, no_waiting):
    target = tmp_path / "result.json"
    assert run(options("--select", NAME, "--json", str(target))) == 0
    found = json.loads(target.read_text("utf-8"))
    assert set(found) == {"schema", "created", "quick", "fingerprint", "rows"}
    assert set(found["fingerprint"]) == {
        *("cpu", "cores", "platform", "python", "numpy", "scipy", "psinoise")
    }
    assert set(found["fingerprint"]["psinoise"]) == set(psinoise.build_config())
    assert [row["reference"] for row in found["rows"]] == list(references(find(NAME)))
    for row in found["rows"]:
        assert set(row) == {
            *("case", "operation", "law", "size", "dtype", "threads"),
            *("reference", "ns", "reference_ns", "ratio"),
            *("shows_difference", "rounds"),
        }
        assert row["case"] == NAME
        assert row["rounds"] >= LEAST_ROUNDS
        assert row["ratio"]["low"] <= row["ratio"]["median"] <= row["ratio"]["high"]
    output = capsys.readouterr().out
    assert NAME in output
    assert "plain store" in output


def test_infinite_band_is_null_in_json():
    row = report.Row(Case("compile", "Airy"), "other", 1.0, 2.0, Band(2.0, 0.0, math.inf), 3)
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
