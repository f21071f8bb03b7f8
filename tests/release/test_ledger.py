"""The ledger: charged first, never overspent, never copied; what it counts is what is released."""

from __future__ import annotations

import collections
import concurrent.futures
import copy
import functools
import math
import pickle
import threading
import types

import numpy as np
import pytest

import psinoise as pn
from psinoise.accounting import Accountant
from psinoise.release import values
from refusals import for_rows

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=12.0))
LAPLACE = pn.Mechanism(pn.Laplace(scale=10.0))
# More charges than any budget here allows: a ledger that never refuses fails a test, and ends.
MANY = 500


def ledger():
    """A budget that five releases of GAUSSIAN fit in."""
    return pn.Ledger(epsilon=1.0, delta=1e-6)


def used_up():
    """A ledger in which nothing fits any more."""
    made = ledger()
    while made.affords(GAUSSIAN) and len(made.charges) < MANY:
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
        results.extend(made.release(GAUSSIAN, 3.0) for _ in range(MANY))
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

    monkeypatch.setattr(values, "fresh_key", drawn)
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
    """Kills: one error for both. That it would exceed the budget is certified, or not said."""

    def fail(*_, **__):
        raise pn.CertificationError("no")

    monkeypatch.setattr(Accountant, "epsilon", fail)
    monkeypatch.setattr(Accountant, "delta", fail)
    made = ledger()
    with pytest.raises(pn.CertificationError, match="could not be certified to be within"):
        made.charge(GAUSSIAN, 20)
    assert not made.affords(GAUSSIAN, 20)
    assert made.charges == ()


def test_a_bracket_around_the_budget_proves_neither(monkeypatch):
    between = types.SimpleNamespace(lower=0.99, upper=1.01)
    monkeypatch.setattr(
        Accountant, "epsilon", lambda *_, **words: 1.01 if "method" in words else between
    )
    with pytest.raises(pn.CertificationError, match=r"at least 0\.99 and at most 1\.01"):
        ledger().charge(GAUSSIAN, 20)


def test_what_is_accepted_quickly_is_certified():
    """Kills: sums of moments with a factor missing. Charges of several kinds, by chance."""
    generator = np.random.default_rng(3)
    kinds = [
        (pn.Mechanism(pn.Gaussian(std=20.0)).on_lattice(), 1.0),
        (pn.Mechanism(pn.Laplace(scale=20.0)).on_lattice(), 1.0),
        (pn.Mechanism(pn.Gaussian(std=15.0), dimension=4, norm="l2"), 1.0),
    ]
    made = ledger()
    accountant = Accountant()
    with pytest.raises((pn.BudgetError, pn.CertificationError)):
        for _ in range(MANY):
            mechanism, rate = kinds[generator.integers(3)]
            made.charge(mechanism, int(generator.integers(1, 4)), rate)
            accountant.compose(mechanism, made.charges[-1].count, rate)
    found = accountant.epsilon(1e-6)
    assert 0.9 < found.lower <= found.upper <= 1.0


def test_the_same_charge_again_and_again():
    """As many as are certified to fit, though most are not asked about.

    Kills: a plan that is believed to be within the budget without a proof, or beyond what it has.
    """
    mechanism = pn.Mechanism(pn.Laplace(scale=20.0)).on_lattice()
    made = ledger()
    with pytest.raises(pn.BudgetError):
        for _ in range(MANY):
            made.charge(mechanism)
    plan = Accountant().compose(mechanism, len(made.charges))
    assert plan.epsilon(1e-6).upper <= 1.0 < plan.compose(mechanism).epsilon(1e-6).lower


def test_many_different_mechanisms(monkeypatch):
    """Charged and refused with nothing composed anew, up to the last that fits.

    Kills: steps that wait and are not counted; the candidate left out; one bound for both.
    """
    laws = [pn.Laplace(scale=18.0 + 0.1 * i) for i in range(14)]
    laws += [pn.Airy(scale=18.0 + 0.1 * i) for i in range(14)]
    mechanisms = [pn.Mechanism(law).on_lattice() for law in laws]
    made, plan = ledger(), Accountant()
    with monkeypatch.context() as patched:
        patched.setattr(Accountant, "_answer", lambda *_: pytest.fail("composed anew"))
        with pytest.raises(pn.BudgetError):
            for mechanism in mechanisms:
                made.charge(mechanism)
    assert 10 < len(made.charges) < len(mechanisms)
    for charge in made.charges:
        plan.compose(charge.mechanism)
    assert plan.delta(1.0).upper <= 1e-6
    refused = mechanisms[len(made.charges)]
    assert plan.compose(refused).delta(1.0).lower > 1e-6


# -- what is counted -------------------------------------------------------------------------------


class Lying:
    """An array-like that says that it has one value."""

    size, shape = 1, ()

    def __init__(self):
        self.read = 0

    def __array__(self, dtype=None, copy=None):
        self.read += 1
        return np.zeros(1000 if self.read == 1 else 5000, dtype)

    def __len__(self):
        return 1


class Tensor:
    """Its size is a method."""

    def __array__(self, dtype=None, copy=None):
        return np.zeros(3, dtype)

    def size(self):
        return 3


class Subclass(np.ndarray):
    """An array whose size is not its size."""

    size = 1


@pytest.mark.parametrize(
    ("x", "count"),
    [(Lying(), 1000), (Tensor(), 3), (np.zeros(30).view(Subclass), 30), ([[1, 2], [3, 4]], 4)],
)
def test_what_is_counted_is_what_is_released(x, count):
    """Kills: the size that an array-like states; a second reading."""
    made = pn.Ledger(1.0, 1e-6)
    released = made.release(pn.Mechanism(pn.Gaussian(std=1000.0)), x)
    assert released.size == count
    assert [charge.count for charge in made.charges] == [count]


def test_what_changes_after_it_was_counted_is_not_released(monkeypatch):
    """Kills: the caller's array, which another thread may resize or overwrite."""
    x = np.zeros(3)
    seen = []
    monkeypatch.setattr(
        pn.LatticeMechanism, "release", lambda _, values, **__: seen.append(values) or values
    )
    pn.Ledger(1.0, 1e-6).release(GAUSSIAN, x)
    assert not np.shares_memory(seen[0], x)
    assert type(seen[0]) is np.ndarray


@pytest.mark.parametrize(
    ("x", "options"),
    [
        ([1e6, 2e6, 3e6], {"count": 0}),
        (1e6, {"count": False}),
        (1e6, {"sampling_rate": 0.0}),
        ([1e6], {"count": 0, "sampling_rate": 0.0}),
    ],
)
def test_nothing_is_free(x, options):
    """Kills: a charge of 0 for values."""
    made = ledger()
    with pytest.raises((pn.DomainError, TypeError)):
        made.release(GAUSSIAN, x, **options)
    assert made.charges == ()
    assert made.release(GAUSSIAN, np.zeros(0), count=0).size == 0


@pytest.mark.parametrize(
    "x",
    [
        np.ma.array([1.0, 2.0], mask=[False, True]),
        [np.ma.masked, 1.0],
        [[1.0, 2.0], (3.0, np.ma.masked)],
        [np.ma.array([1.0, 2.0], mask=[True, False])],
        collections.deque([np.ma.array([1.0, 2.0], mask=[True, False])]),
    ],
)
@pytest.mark.filterwarnings("ignore:Warning. converting a masked element")
@pytest.mark.parametrize("bounds", [None, (0.0, 5.0)])
def test_masked_values_are_refused(x, bounds):
    """After the charge, as NaN is: whether there are any is an answer."""
    made = ledger()
    with pytest.raises(TypeError, match="masked"):
        made.release(GAUSSIAN, x, count=1, bounds=bounds)
    assert len(made.charges) == 1


@pytest.mark.parametrize("bounds", [None, (0, 10)])
def test_types_and_errors_are_those_of_a_release(bounds):
    """Kills: a ledger that reads data before it is known whether there are bounds."""
    lattice = pn.Mechanism(pn.DiscreteLaplace(epsilon=1e-3)).on_lattice()
    for x in (3, [3], [3.0], [3, 2.5], [3, None], [None], [2**64], [True, 1], np.array([3]), "a"):
        seen = []
        charged = functools.partial(ledger().release, lattice, count=1)
        for release in (lattice.release, charged):
            try:
                seen.append(np.asarray(release(x, bounds=bounds)).dtype)
            except (TypeError, pn.DomainError) as error:
                seen.append(type(error))
        assert seen[0] == seen[1], x


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


@pytest.mark.parametrize(
    ("old", "now"),
    [
        (lambda: pn.calibrate_release, r"calibrate\(\.\.\., on_lattice=True\)"),
        (lambda: pn.Ledger.load, r"Ledger\.open\(path\)"),
        (lambda: pn.Ledger(1.0, 1e-6).save, r"Ledger\.create\(path, \.\.\.\)"),
    ],
)
def test_names_of_the_first_version_say_what_is_there_now(old, now):
    with pytest.raises(AttributeError, match=f"was replaced in 0.2 by {now}"):
        old()
    assert not hasattr(pn.Ledger, "load")


def test_where_all_values_are_counted_the_refusal_says_so():
    """Kills: the hint at one value, or where count is given; how many there are, which is data."""
    made, x = pn.Ledger(epsilon=1.0, delta=1e-6), np.zeros(1234)
    with pytest.raises(pn.BudgetError, match="all values were counted, and count is") as caught:
        made.release(GAUSSIAN, x)
    assert "1234" not in str(caught.value)
    small = pn.Mechanism(pn.Gaussian(std=1.0))
    for data, count in ((x, 1234), (1.0, None)):
        with pytest.raises(pn.BudgetError, match=r"at delta 1e-06$"):
            made.release(small, data, count=count)
    assert made.charges == ()
    made.release(GAUSSIAN, x, count=1)


@for_rows([(2.7808019285942787, 0.0), (1.6786377437237006, 1e-6), (1.0, 1e-6)])
def test_what_remains_is_sure_to_fit(epsilon, delta):
    """By basic composition: refused before where both composed anew came out a little too wide."""
    ledger = pn.Ledger(epsilon, delta)
    ledger.charge(pn.Mechanism(pn.Laplace(scale=1.3145152485659164)).on_lattice())
    left = ledger.remaining
    assert left > 0.0
    scale = np.nextafter(1.0 / left, np.inf)
    while (last := pn.Mechanism(pn.Laplace(scale=scale))).pure_epsilon() > left:
        scale = np.nextafter(scale, np.inf)
    ledger.charge(last)
    assert ledger.spent <= epsilon
    assert ledger.remaining <= 1e-5 * epsilon
