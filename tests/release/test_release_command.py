"""``python -m psinoise release``: a table with noise, its record, and nothing by halves."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import psinoise as pn
from psinoise import __main__ as command_line
from psinoise.accounting import Accountant
from psinoise.commands import release as command
from psinoise.mechanisms.lattice_mechanism import LatticeMechanism

SECRET = "8675309"
TARGET = ["--noise", "airy", "--epsilon", "1", "--delta", "1e-6", "--sensitivity", "1"]
TARGET += ["--count", "1"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of counts with the month that they are of."""
    monkeypatch.chdir(tmp_path)
    with open("table.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["month", "c", "d"])
        writer.writerows([[f"m{i}", 1000 * i, 0.5] for i in range(12)])
    return tmp_path


def run(capsys, *words):
    """Run the command; what it prints."""
    assert command_line.main(["release", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def mistake(capsys, *words):
    """Run the command with something wrong; its one line."""
    before = set(Path().iterdir())
    assert command_line.main(["release", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert SECRET not in captured.err
    assert set(Path().iterdir()) == before, "a mistake leaves no file"
    return captured.err.removeprefix("psinoise: error: ").rstrip("\n")


def columns(path):
    """A table as columns."""
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_the_command_of_the_manual(capsys, table):
    words = ["table.csv", "--column", "c", *TARGET, "--out", "private.csv"]
    text = run(capsys, *words)
    found, original = columns("private.csv"), columns("table.csv")
    assert (found["month"], found["d"]) == (original["month"], original["d"])
    errors = np.array(found["c"], dtype=float) - np.array(original["c"], dtype=float)
    record = json.loads(Path("private.csv.json").read_text())
    mechanism = LatticeMechanism.from_json(json.dumps(record["mechanism"]))
    assert np.unique(errors).size > 6
    assert (errors % mechanism.grid == 0.0).all()
    assert np.abs(errors).max() < 60.0 * mechanism.noise.mean_abs
    assert "epsilon <= " in text
    assert "copied as they are, without protection: month, d" in text


def test_the_record_is_enough_to_compute_epsilon_again(capsys, table):
    run(capsys, "table.csv", "--column", "c", *TARGET, "--out", "private.csv")
    record = json.loads(Path("private.csv.json").read_text())
    mechanism = LatticeMechanism.from_json(json.dumps(record["mechanism"]))
    assert float(mechanism.delta(1.0).upper) <= 1e-6
    assert 0.99 < record["epsilon"] <= 1.0
    assert (record["delta"], record["count"], record["adjacency"]) == (1e-6, 1, "add-remove")
    assert (record["released"], record["copied"]) == (["c"], ["month", "d"])
    digest = hashlib.sha256(Path("private.csv").read_bytes()).hexdigest()
    assert record["table_sha256"] == digest


def test_every_column_is_a_use(capsys, table):
    run(
        capsys,
        *("table.csv", "--column", "c", "--column", "d", *TARGET),
        *("--count", "3", "--out", "private.csv", "--record", "what.json"),
    )
    record = json.loads(Path("what.json").read_text())
    assert record["count"] == 6
    mechanism = LatticeMechanism.from_json(json.dumps(record["mechanism"]))
    assert float(mechanism.delta(1.0, 6).upper) <= 1e-6
    assert float(mechanism.composed(7).estimate.delta(1.0)) > 1e-6
    assert columns("private.csv")["month"] == columns("table.csv")["month"]


def test_without_a_count_every_value_is_one(capsys, table, monkeypatch):
    """As in a ledger. Mutants: a count of 1; rows that come after they were counted."""
    words = ["table.csv", "--column", "c", "--column", "d", *TARGET[:-2]]
    run(capsys, *words, "--out", "private.csv")
    assert json.loads(Path("private.csv.json").read_text())["count"] == 24
    np.save("array.npy", np.zeros((5, 3)))
    run(capsys, "array.npy", *TARGET[:-2], "--out", "out.npy")
    assert json.loads(Path("out.npy.json").read_text())["count"] == 15
    monkeypatch.setattr(command, "rows_of", lambda *_: 11)
    assert "must not change while" in mistake(capsys, *words, "--out", "more.csv")


def test_parquet(capsys, table):
    """Types and other columns stay; what a writer noted about a column does not."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    note = {"largest": SECRET}
    fields = [arrow.field("day", arrow.string()), arrow.field("c", arrow.int32(), metadata=note)]
    fields.append(arrow.field("x", arrow.float64()))
    days = [f"d{i}" for i in range(100_000)]
    data = [days, [7] * 99_999 + [None], [0.25] * 100_000]
    made = arrow.table(data, arrow.schema(fields, metadata=note))
    parquet.write_table(made, "table.parquet")
    words = ["table.parquet", "--column", "c", *TARGET, "--out", "private.parquet"]
    assert "no missing values where no bounds" in mistake(capsys, *words)
    run(capsys, *words, "--bounds", "0", "9", "--grid", "1")
    found = parquet.read_table("private.parquet")
    assert found.schema.names == ["day", "c", "x"]
    assert found.column("day").to_pylist() == days
    assert [str(field.type) for field in found.schema] == ["string", "int64", "double"]
    assert SECRET not in str(found.schema.metadata) + str(found.schema.field("c").metadata)
    released = np.asarray(found.column("c"))
    assert len(np.unique(released)) > 5
    assert abs(released.mean() - 7.0) < 1.0
    Path("broken.parquet").write_text(SECRET)
    wrong = ["broken.parquet", *words[1:-1], "other.parquet"]
    assert "must be a Parquet table" in mistake(capsys, *wrong)
    assert "must be one name of the header" in mistake(
        capsys, "table.parquet", "--column", "e", *TARGET, "--out", "other.parquet"
    )


@pytest.mark.parametrize(
    "size", [["--scale", "10"], ["--std", "10"], ["--mean-abs", "10"]], ids=lambda size: size[0]
)
def test_noise_of_a_size(capsys, table, size):
    words = ["table.csv", "--column", "c", "--noise", "laplace", *size, "--sensitivity", "2"]
    words += ["--count", "1"]
    run(capsys, *words, "--delta", "0", "--out", "private.csv")
    record = json.loads(Path("private.csv.json").read_text())
    noise = pn.Laplace(**{size[0][2:].replace("-", "_"): 10.0})
    lattice = pn.Mechanism(noise, 2.0).on_lattice()
    assert record["epsilon"] == Accountant().compose(lattice).epsilon(0.0).upper
    assert record["epsilon"] == pytest.approx(2.0 / noise.scale, rel=2e-3)
    enough = [*words, "--delta", "0", "--epsilon", "0.3", "--force", "--out", "private.csv"]
    run(capsys, *enough)
    enough[enough.index("0.3")] = "0.1"
    assert "noise must be larger" in mistake(capsys, *enough)


def test_laws_without_a_scale(capsys, table):
    words = ["table.csv", "--column", "c", "--sensitivity", "2", "--out", "private.csv", "--force"]
    words += ["--count", "1"]
    run(capsys, *words, "--noise", "discrete-laplace", "--epsilon", "1", "--delta", "0")
    found = np.array(columns("private.csv")["c"], dtype=float)
    assert (found == np.floor(found)).all()
    record = json.loads(Path("private.csv.json").read_text())
    assert 0.99 < record["epsilon"] <= 1.0
    run(capsys, *words, "--noise", "staircase", "--noise-epsilon", "0.5", "--delta", "0")
    record = json.loads(Path("private.csv.json").read_text())
    assert record["mechanism"]["record"]["law"].startswith("Staircase(epsilon=0.5, sensitivity=2")
    assert record["epsilon"] == pytest.approx(0.5, rel=1e-3)
    own = ["--noise", "staircase", "--noise-epsilon", "0.5", "--delta", "0"]
    run(capsys, *words, *own, "--epsilon", "0.6")
    assert "must be larger for epsilon 0.4" in mistake(capsys, *words, *own, "--epsilon", "0.4")


def test_arrays(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.arange(12.0).reshape(3, 4)
    np.save("table.npy", values)
    run(capsys, "table.npy", *TARGET, "--grid", "0.125", "--out", "private.npy")
    found = np.load("private.npy")
    assert (found.shape, found.dtype) == ((3, 4), np.float64)
    assert np.unique(found - values).size > 6
    assert (found * 8.0 == np.floor(found * 8.0)).all()


def test_bounds(capsys, table):
    Path("table.csv").write_text("c,d\n,1\nnan,2\n1e300,3\n-5,4\n")
    words = ["table.csv", "--column", "c", "--noise", "laplace", "--sensitivity", "1"]
    words += ["--scale", "0.01", "--delta", "0", "--bounds", "0", "10", "--out", "private.csv"]
    run(capsys, *words)
    found = [float(text) for text in columns("private.csv")["c"]]
    np.testing.assert_allclose(found, [0.0, 0.0, 10.0, 0.0], atol=0.3)
    assert json.loads(Path("private.csv.json").read_text())["bounds"] == [0.0, 10.0]
    assert mistake(capsys, *words[:-5], "--out", "other.csv").startswith("column 'c' must hold")


def test_many_rows_in_blocks(capsys, table):
    """More than one block, every one with noise of its own."""
    number = 150_000
    Path("table.csv").write_text("c,d\n" + "0,x\n" * number)
    run(capsys, "table.csv", "--column", "c", *TARGET, "--out", "private.csv")
    errors = np.array(columns("private.csv")["c"], dtype=float)
    assert errors.size == number
    record = json.loads(Path("private.csv.json").read_text())
    noise = LatticeMechanism.from_json(json.dumps(record["mechanism"])).noise
    assert abs(np.abs(errors).mean() / noise.mean_abs - 1.0) < 0.02  # six standard errors
    assert (errors[: 2**16] == errors[2**16 : 2**17]).mean() < 0.01


def test_existing_files_stay(capsys, table):
    words = ["table.csv", "--column", "c", *TARGET, "--out", "private.csv"]
    run(capsys, *words)
    before = Path("private.csv").read_bytes()
    assert "private.csv must not exist" in mistake(capsys, *words)
    assert Path("private.csv").read_bytes() == before
    run(capsys, *words, "--force")
    assert Path("private.csv").read_bytes() != before
    Path("private.csv").unlink()
    assert "private.csv.json must not exist" in mistake(capsys, *words)


@pytest.mark.parametrize("stage", ["release", "record", "interrupt"])
def test_a_failure_leaves_nothing(monkeypatch, table, stage):
    """At a later block, or when the record is written."""
    Path("table.csv").write_text("c\n" + "1\n" * 70_000)
    calls = []

    def fail(*_, **__):
        calls.append(1)
        raise OSError("disk full") if stage == "record" else KeyboardInterrupt

    original = LatticeMechanism.release

    def second(self, x, **options):
        return fail() if calls.append(1) or len(calls) > 1 else original(self, x, **options)

    if stage == "record":
        monkeypatch.setattr(command, "write_text", fail)
    else:
        monkeypatch.setattr(LatticeMechanism, "release", second)
    status = command_line.main(
        ["release", "table.csv", "--column", "c", *TARGET, "--out", "private.csv"]
    )
    assert status == (2 if stage == "record" else 130)
    assert len(calls) >= 1
    assert [path.name for path in Path().iterdir()] == ["table.csv"]


def test_a_crash_leaves_no_half_table(table):
    """Killed while it writes: nothing under the name of the table."""
    Path("table.csv").write_text("c\n" + "1\n" * 2_000_000)
    words = ["release", "table.csv", "--column", "c", *TARGET, "--out", "private.csv"]
    environment = {**os.environ, "PYTHONPATH": str(Path(pn.__file__).resolve().parents[1])}
    program = subprocess.Popen([sys.executable, "-m", "psinoise", *words], env=environment)
    try:
        while program.poll() is None:
            written = [path for path in Path().glob(".private.csv.*.tmp") if path.stat().st_size]
            if written:
                break
            time.sleep(0.01)
        program.send_signal(signal.SIGKILL)
    finally:
        program.wait()
    assert program.returncode == -signal.SIGKILL
    assert not Path("private.csv").exists()
    assert not Path("private.csv.json").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"--column": "other"},
            "--column must be one name of the header, but 'other' is not there",
        ),
        ({"--column": None}, "a CSV table needs --column"),
        ({"table.csv": "nowhere.csv"}, "nowhere.csv does not exist"),
        ({"table.csv": "table.txt"}, "table.txt must end with .csv or .parquet or .npy"),
        ({"--out": "private.npy"}, "private.npy must end with .csv, as table.csv does"),
        ({"--out": "table.csv"}, "must be three different files"),
        ({"--out": "nowhere/private.csv"}, "does not exist"),
        ({"--record": "table.csv"}, "must be three different files"),
        ({"--epsilon": None}, "Airy takes exactly one of"),
        ({"--epsilon": "-1"}, "epsilon must be"),
        ({"--epsilon": "x"}, "invalid float value"),
        ({"--delta": "2"}, "delta must be in"),
        ({"--delta": "nan"}, "delta must be in"),
        ({"--delta": "0"}, "airy"),
        ({"--sensitivity": "0"}, "sensitivity must be positive"),
        ({"--sensitivity": None}, "--sensitivity"),
        ({"--count": "0"}, "--count must be at least 1, got 0"),
        ({"--count": "-2"}, "--count must be at least 1, got -2"),
        ({"--grid": "-0.3"}, "grid must be positive"),
        ({"--adjacency": "other"}, "adjacency must be one of"),
        ({"--noise": "other"}, "invalid choice"),
        ({"--bounds": ("1", "0")}, "bounds must be"),
    ],
    ids=lambda value: " ".join(map(str, next(iter(value.items())))) if type(value) is dict else "",
)
def test_mistakes(capsys, table, changed, message):
    Path("table.csv").write_text(f"month,c\n1,{SECRET}\n")
    Path("table.txt").write_text("c\n1\n")
    options = {"table.csv": "table.csv", "--column": "c", "--out": "private.csv"}
    options.update(zip(TARGET[::2], TARGET[1::2], strict=True))
    options.update(changed)
    words = [options.pop("table.csv")]
    for name, value in options.items():
        if value is not None:
            words += [name, *([value] if isinstance(value, str) else value)]
    found = mistake(capsys, *words)
    assert message.lower() in found.lower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"c\n{SECRET}x\n", "column 'c' must hold real numbers"),
        (f"c,d\nnan,{SECRET}\n", "column 'c' must hold finite numbers"),
        (f"c,d\n1\n2,{SECRET}\n", "as many fields"),
        (f"{SECRET}\n1\n", "'c' is not there"),
    ],
    ids=range(4),
)
def test_mistakes_in_the_table(capsys, table, text, message):
    """A line on standard error, without data."""
    Path("table.csv").write_text(text)
    assert message in mistake(capsys, "table.csv", "--column", "c", *TARGET, "--out", "private.csv")


def test_it_is_in_the_list_of_commands(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["release", "--help"])
    text = capsys.readouterr().out
    assert "--column" in text
    assert "how many values of a column one record can move" in " ".join(text.split())


def test_a_name_that_is_not_there_costs_nothing(capsys, table):
    """Kills: a charge before the header is read: the right command would not fit any more."""
    assert command_line.main(["ledger", "create", "L", "--epsilon", "1", "--delta", "1e-6"]) == 0
    capsys.readouterr()
    words = ["table.csv", *TARGET, "--out", "private.csv", "--ledger", "L"]
    assert "is not there" in mistake(capsys, *words, "--column", "typo")
    assert not pn.Ledger.open("L").charges
    assert "charged to L" in run(capsys, *words, "--column", "c")
    assert len(pn.Ledger.open("L").charges) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_release_whose_report_cannot_be_written_is_done(table):
    """Kills: an exit status that makes a script spend the budget again."""
    words = [sys.executable, "-m", "psinoise", "release", "table.csv", "--column", "c", *TARGET]
    environment = {**os.environ, "PYTHONPATH": str(Path(pn.__file__).resolve().parents[1])}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*words, "--out", "private.csv"],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 0
    assert b"all is done, but cannot be said" in done.stderr
    assert Path("private.csv").exists()
    named = [*words, "--out", "pr\u00edvate.csv"]
    environment["PYTHONIOENCODING"] = "ascii"
    done = subprocess.run(named, env=environment, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"pr\\xedvate.csv" in done.stdout


def test_long_fields_are_copied(capsys, table):
    """Kills: the limit of Python's reader, 2**17 characters."""
    Path("long.csv").write_text(f"c,note\n5,{'x' * 200_000}\n")
    run(capsys, "long.csv", "--column", "c", *TARGET, "--out", "private.csv")
    assert len(Path("private.csv").read_text()) > 200_000
    assert csv.field_size_limit() == 2**17
