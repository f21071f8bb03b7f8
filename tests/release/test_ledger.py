"""The ledger: charged first, never overspent, never copied, and the same after a night on disk."""

from __future__ import annotations

import concurrent.futures
import copy
import json
import math
import os
import pickle
import threading

import numpy as np
import pytest

import psinoise as pn
from psinoise import _hashed_json
from psinoise.accounting import Accountant

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=12.0))
LAPLACE = pn.Mechanism(pn.Laplace(scale=10.0))


def ledger():
    """A budget that five releases of GAUSSIAN fit in."""
    return pn.Ledger(epsilon=1.0, delta=1e-6)


def used_up():
    """A ledger in which nothing fits any more."""
    made = ledger()
    while made.affords(GAUSSIAN):
        made.charge(GAUSSIAN)
    return made


def test_it_counts_what_is_released():
    """The mechanism on its lattice, not the ideal law."""
    made = ledger()
    assert made.spent == 0.0
    assert made.remaining == 1.0
    made.release(GAUSSIAN, 3.0, label="first")
    made.release(LAPLACE, np.zeros(3), label="second")
    made.release(LAPLACE, np.zeros(3), count=1, label="a histogram")
    expected = Accountant().compose(GAUSSIAN.on_lattice()).compose(LAPLACE.on_lattice(), 4)
    assert made.spent == expected.epsilon(1e-6).upper
    assert made.remaining == 1.0 - made.spent
    assert [(entry.label, entry.count) for entry in made.charges] == [
        ("first", 1),
        ("second", 3),
        ("a histogram", 1),
    ]
    assert made.charges[0].mechanism == GAUSSIAN.on_lattice()


def test_it_never_spends_more_than_its_budget():
    """Kills: a comparison with an estimate, or of what was spent before."""
    made = ledger()
    results = []
    with pytest.raises(pn.BudgetError, match=r"exceed the budget of epsilon 1\.0 at delta 1e-06"):
        while True:
            results.append(made.release(GAUSSIAN, 3.0))
    assert 0.9 < made.spent <= 1.0
    assert len(results) == len(made.charges)
    more = Accountant().compose(GAUSSIAN.on_lattice(), len(results) + 1)
    assert more.epsilon(1e-6).lower > 1.0, "and one more would have been too much"
    # What is smaller may still fit.
    made.release(pn.Mechanism(pn.Gaussian(std=500.0)), 3.0)
    assert made.spent <= 1.0


def test_charges_come_before_bits(monkeypatch):
    made = used_up()
    entries = made.charges

    def drawn(*_):
        raise AssertionError("bits were drawn")

    monkeypatch.setattr(os, "urandom", drawn)
    monkeypatch.setattr(os, "getrandom", drawn, raising=False)
    with pytest.raises(pn.BudgetError):
        made.release(GAUSSIAN, 3.0)
    assert made.charges == entries
    fresh = ledger()
    with pytest.raises(AssertionError, match="bits were drawn"):
        fresh.release(GAUSSIAN, 3.0)
    assert len(fresh.charges) == 1, "a release that fails stays charged"


def test_data_that_are_refused_stay_charged():
    """Whether they are is an answer."""
    made = ledger()
    with pytest.raises(pn.DomainError):
        made.release(GAUSSIAN, math.nan)
    assert len(made.charges) == 1


def test_threads_share_one_budget():
    """Kills: a check outside of the lock. All threads ask at once for what one of them gets."""
    mechanism = pn.Mechanism(pn.Gaussian(std=5.0))
    for _ in range(2):
        made = ledger()
        barrier = threading.Barrier(4)

        def together(_, made=made, barrier=barrier):
            barrier.wait()
            try:
                made.release(mechanism, 0.0)
            except pn.BudgetError:
                return 0
            return 1

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(together, range(4))) == 1
        assert made.spent <= 1.0


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_there_are_no_copies(make):
    with pytest.raises(TypeError, match="must not be copied or pickled"):
        make(ledger())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_has_no_budget(run_python):
    code = """
import os
import psinoise as pn
ledger = pn.Ledger(epsilon=1.0, delta=1e-6)
if os.fork() == 0:
    try:
        ledger.release(pn.Mechanism(pn.Gaussian(std=12.0)), 1.0)
    except pn.BudgetError as error:
        print("process that made it" in str(error), flush=True)
    os._exit(0)
os.wait()
print(len(ledger.charges))
"""
    assert run_python(code) == "True\n0\n"


def test_sampling_is_of_one_vector():
    made = ledger()
    made.release(GAUSSIAN, 3.0, sampling_rate=0.1)
    for x, options in ((np.zeros(3), {}), (0.0, {"count": 2})):
        with pytest.raises(pn.DomainError, match="values of one draw are one vector"):
            made.release(GAUSSIAN, x, sampling_rate=0.1, **options)
    assert len(made.charges) == 1


def test_vectors_are_counted_as_vectors():
    made = pn.Ledger(epsilon=5.0, delta=1e-6)
    vector = pn.Mechanism(pn.Gaussian(std=30.0), dimension=4)
    made.release(vector, np.zeros((3, 4)))
    made.release(vector, np.zeros(4))
    assert [entry.count for entry in made.charges] == [3, 1]


def test_pure_budgets():
    made = pn.Ledger(epsilon=0.25, delta=0.0)
    assert not made.affords(GAUSSIAN)
    made.charge(LAPLACE, 2)
    assert made.spent == pytest.approx(0.2)
    with pytest.raises(pn.BudgetError):
        made.charge(LAPLACE)


def test_a_delta_that_underflows_is_not_0(monkeypatch):
    """Kills: a bound on delta, 0 below the least float64, as proof of pure privacy."""
    monkeypatch.setattr(Accountant, "delta", lambda *_, **__: 0.0)
    made = pn.Ledger(epsilon=3000.0, delta=0.0)
    with pytest.raises(pn.BudgetError):
        made.charge(pn.Mechanism(pn.Gaussian(std=1.0)).on_lattice(0.125), 1000)
    made.charge(pn.Mechanism(pn.Gaussian(std=1.0)).on_lattice(0.125), 400)


def test_what_cannot_be_certified_does_not_fit(monkeypatch):
    def fail(*_, **__):
        raise pn.CertificationError("no")

    monkeypatch.setattr(Accountant, "epsilon", fail)
    monkeypatch.setattr(Accountant, "delta", fail)
    with pytest.raises(pn.BudgetError):
        ledger().charge(GAUSSIAN)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0.0, 1e-6), pn.DomainError),
        ((math.inf, 1e-6), pn.DomainError),
        ((math.nan, 1e-6), pn.DomainError),
        ((1.0, 1.0), pn.DomainError),
        ((1.0, -1e-9), pn.DomainError),
        ((1.0, math.nan), pn.DomainError),
        (("1", 1e-6), TypeError),
        ((1.0, None), TypeError),
        ((1.0, 1e-6, "other"), pn.DomainError),
        ((1.0, 1e-6, None), TypeError),
    ],
)
def test_bad_budgets(arguments, error):
    with pytest.raises(error):
        pn.Ledger(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("gaussian",), TypeError),
        ((pn.Gaussian(std=1.0),), TypeError),
        ((GAUSSIAN, -1), pn.DomainError),
        ((GAUSSIAN, 1.0), TypeError),
        ((GAUSSIAN, 1, 1.5), pn.DomainError),
        ((GAUSSIAN, 1, "0.1"), TypeError),
        ((GAUSSIAN, 2**63), OverflowError),
    ],
)
def test_bad_charges_are_not_entered(arguments, error):
    made = ledger()
    with pytest.raises(error):
        made.charge(*arguments)
    with pytest.raises(error):
        made.affords(*arguments)
    with pytest.raises(TypeError, match="label must be a string"):
        made.charge(GAUSSIAN, label=3)
    assert made.charges == ()


# -- on disk ---------------------------------------------------------------------------------------


def test_a_ledger_comes_back(tmp_path):
    path = tmp_path / "ledger.json"
    made = ledger()
    made.release(GAUSSIAN, 3.0, label="visitors \u00e9")
    made.charge(pn.Mechanism(pn.Airy(mean_abs=20.0), 2.0), 3, label="elsewhere")
    made.charge(pn.Mechanism(pn.Gaussian(std=9.0)), 2, 0.01)
    made.save(path)
    again = pn.Ledger.load(path)
    assert (again.epsilon, again.delta, again.adjacency) == (1.0, 1e-6, "add-remove")
    assert again.charges == made.charges
    assert again.spent == made.spent
    again.release(GAUSSIAN, 3.0)
    again.save(path)
    assert len(pn.Ledger.load(path).charges) == 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger.json"]


def test_texts_that_no_ledger_wrote(tmp_path):
    """With a hash that is right: anybody can compute it."""
    path = tmp_path / "ledger.json"
    made = ledger()
    made.charge(GAUSSIAN, 2)
    made.save(path)
    members = ("epsilon", "delta", "adjacency", "mechanisms", "charges")
    good = _hashed_json.loads(path.read_text(), "psinoise-ledger", 1, members)
    (charge,), (mechanism,) = good["charges"], good["mechanisms"]
    bad = [
        {"epsilon": 1.0},
        {"epsilon": "inf"},
        {"delta": (2.0).hex()},
        {"adjacency": 3},
        {"adjacency": "other"},
        {"charges": {}},
        {"charges": [3]},
        {"mechanisms": [3]},
        {"mechanisms": [{"lattice": 3}]},
        {"mechanisms": [{"lattice": "{}"}]},
        {"mechanisms": [{**mechanism, "law": "Other"}]},
        {"mechanisms": [{**mechanism, "sensitivity": (-1.0).hex()}]},
        {"mechanisms": [{**mechanism, "norm": "l3"}]},
        {"mechanisms": [{**mechanism, "dimension": "1"}]},
        *(
            {"charges": [{**charge, name: value}]}
            for name, value in [
                ("mechanism", 1),
                ("mechanism", -1),
                ("mechanism", "0"),
                ("count", -1),
                ("count", 1.5),
                ("sampling_rate", (1.5).hex()),
                ("label", 3),
                ("time", "yesterday"),
                ("time", 3),
            ]
        ),
    ]
    for change in bad:
        path.write_text(_hashed_json.dumps("psinoise-ledger", 1, {**good, **change}))
        with pytest.raises(pn.DomainError):
            pn.Ledger.load(path)


def test_damaged_ledgers(tmp_path):
    """Kills: a hash that leaves out a member."""
    path = tmp_path / "ledger.json"
    made = ledger()
    made.release(GAUSSIAN, 3.0, label="visitors")
    made.save(path)
    text = path.read_text()
    generator = np.random.default_rng(1)
    places = [i for i, letter in enumerate(text) if letter.isalnum()]
    damaged = [
        text[:i] + ("7" if text[i] != "7" else "3") + text[i + 1 :]
        for i in generator.choice(places, 60)
    ]
    for other in [*damaged, "", "{}", "[]", "null", text[:-5], text + text, "[" * 100_000]:
        path.write_text(other)
        with pytest.raises(pn.DomainError):
            pn.Ledger.load(path)
    content = json.loads(text)
    content["charges"][0]["count"] += 1
    changes = [{name: value} for name, value in content.items() if name == "charges"]
    changes += [{"epsilon": (2.0).hex()}, {"delta": (1e-3).hex()}, {"adjacency": "replace"}]
    changes += [{"mechanisms": []}, {"charges": []}, {"version": 2}, {"format": "other"}]
    original = json.loads(text)
    for change in changes:
        path.write_text(json.dumps({**original, **change}))
        with pytest.raises(pn.DomainError):
            pn.Ledger.load(path)
    path.write_text(json.dumps(original))
    assert pn.Ledger.load(path).charges == made.charges, "the form of the text does not matter"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(pn.DomainError):
        pn.Ledger.load(path)
