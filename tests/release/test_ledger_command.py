"""``python -m psinoise ledger``, and releases that are charged to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import psinoise as pn
from command_line_calls import answer, mistake, strict

CREATE = ["ledger", "create", "b.ledger", "--epsilon", "1", "--delta", "1e-6"]
RELEASE = ["release", "table.csv", "--column", "v", "--noise", "gaussian", "--std", "7"]
RELEASE += ["--count", "1", "--sensitivity", "1", "--delta", "1e-6", "--ledger", "b.ledger"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a table."""
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("d,v\na,8675309\nb,20\n")


def files():
    return sorted(path.name for path in Path().iterdir())


def test_a_budget_from_beginning_to_end(capsys):
    """Kills: a release that is not charged, or is written before it is."""
    assert "epsilon 1 at delta 1e-06, add-remove" in answer(capsys, *CREATE)
    for turn, label in enumerate(("", "the second"), 1):
        text = answer(capsys, *RELEASE, "--out", f"{turn}.csv", "--label", label)
        assert "charged to b.ledger" in text
        assert len(pn.Ledger.open("b.ledger").charges) == turn
    before = files()
    error = mistake(capsys, *RELEASE, "--out", "3.csv")
    assert error == "this would exceed the budget of epsilon 1.0 at delta 1e-06"
    assert files() == before
    text = answer(capsys, "ledger", "show", "b.ledger")
    assert "spent: epsilon <= 0.84322" in text
    assert "Gaussian(std=7.0), sensitivity 1" in text
    found = strict(answer(capsys, "ledger", "show", "b.ledger", "--json"))
    assert [charge["label"] for charge in found["charges"]] == ["1.csv: v", "the second"]
    ledger = pn.Ledger.open("b.ledger")
    assert found["spent"] == ledger.spent
    assert found["remaining"] == ledger.remaining
    lattice = pn.Mechanism(pn.Gaussian(std=7.0)).on_lattice()
    assert [charge.mechanism for charge in ledger.charges] == [lattice] * 2
    assert not found["adaptive"]


def test_all_columns_and_counts_are_charged(capsys):
    """Kills: a charge for one column of two."""
    Path("table.csv").write_text("v,w\n1,2\n")
    answer(capsys, *CREATE[:4], "30", *CREATE[5:])
    answer(capsys, *RELEASE, "--column", "w", "--count", "3", "--out", "o.csv")
    assert [charge.count for charge in pn.Ledger.open("b.ledger").charges] == [6]


def test_a_release_that_fails_stays_charged(capsys):
    """Whether it does is an answer. Kills: a charge after the values were read."""
    answer(capsys, *CREATE)
    Path("table.csv").write_text("d,v\na,nan\n")
    assert "must hold finite numbers" in mistake(capsys, *RELEASE, "--out", "o.csv")
    assert len(pn.Ledger.open("b.ledger").charges) == 1
    assert "o.csv" not in files()


def test_other_kinds_of_ledgers(capsys):
    found = strict(answer(capsys, *CREATE, "--adaptive", "--json"))
    assert found["adaptive"]
    assert (found["spent"], found["charges"]) == (0.0, [])
    answer(capsys, *RELEASE, "--out", "o.csv")
    assert "adaptive" in answer(capsys, "ledger", "show", "b.ledger")
    words = [word.replace("b.ledger", "c.ledger") for word in (*CREATE, "--adjacency", "replace")]
    answer(capsys, *words)
    charged = [word.replace("b.ledger", "c.ledger") for word in RELEASE]
    assert ", replace" in answer(capsys, *charged, "--out", "p.csv")
    error = mistake(capsys, *charged, "--out", "q.csv", "--adjacency", "add-remove")
    assert "--adjacency must be replace" in error


def test_labels_stay_on_their_line(capsys):
    """Kills: a label that looks like a charge, and one that no stream can write."""
    pn.Ledger.create("b.ledger", 1.0, 1e-6).charge(
        pn.Mechanism(pn.Gaussian(std=30.0)), label="é \udcff\n    2  2026-01-01"
    )
    text = answer(capsys, "ledger", "show", "b.ledger")
    assert "é \\udcff\\n    2  2026-01-01" in text
    assert len(text.splitlines()) == 4


def test_mistakes(capsys):
    """One line each, status 2, and nothing left behind."""
    answer(capsys, *CREATE)
    Path("empty").touch()
    Path("empty.head").touch()
    before = files()
    for words, error in [
        (CREATE, "File exists"),
        (["ledger"], "required: ACTION"),
        (["ledger", "show"], "required: FILE"),
        (["ledger", "burn", "x"], "invalid choice"),
        ([*CREATE[:2], "x", "--delta", "1e-6"], "required: --epsilon"),
        ([*CREATE[:2], "x", "--epsilon", "0", "--delta", "0"], "epsilon must be positive"),
        ([*CREATE[:2], "no/x", *CREATE[3:]], "No such file"),
        (["ledger", "show", "x"], "No such file"),
        (["ledger", "show", "table.csv"], "must have both"),
        (["ledger", "show", "empty"], "must be the head of a ledger"),
        ([*RELEASE[:-1], "x", "--out", "o.csv"], "No such file"),
        ([*RELEASE, "--out", "o.csv", "--record", "b.ledger", "--force"], "must be another file"),
        ([*RELEASE, "--out", "o.csv", "--record", "b.ledger.head", "--force"], "must be another"),
        ([*RELEASE[:-2], "--out", "o.csv", "--label", "x"], "--label is for --ledger"),
    ]:
        assert error in mistake(capsys, *words), words
    assert files() == before
    assert pn.Ledger.open("b.ledger").charges == ()
