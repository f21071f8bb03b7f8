"""What is kept for later questions is bounded by its bytes, however many questions there were."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from psinoise import _kept

MANY = """
import psinoise as pn
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20
found = []
for number in range(160):
    scale = 0.2 * 1.02**number
    law = (
        pn.Cauchy(scale=scale),
        pn.SymmetricStable(alpha=1.5, scale=scale),
        pn.DiscreteStable(alpha=1.3, scale=10.0 * scale),
    )[number % 3]
    pn.Mechanism(law).on_lattice().epsilon(1e-6)
    found.append(resident())
print(max(found), max(found) - found[79])
"""


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_memory_has_an_end():
    """Kills: any of the caches with a number of entries alone (2 GB, and growing by as much)."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    most, growth = map(float, done.stdout.split())
    assert most < 500.0
    assert growth < 150.0


@pytest.fixture
def counted(monkeypatch):
    made = _kept._Counted()
    monkeypatch.setattr(_kept, "_COUNTED", made)
    monkeypatch.setattr(_kept, "MOST_BYTES", 1 << 20)
    return made


def test_all_is_forgotten_at_once(counted):
    """Kills: a bound for each function; a result that is measured by its first array."""
    calls = []
    small = _kept.kept()(lambda n: calls.append(n) or (n, [np.zeros(n)]))
    large = _kept.kept()(lambda n: {"found": np.zeros(n)})
    small(10), small(10)
    assert calls == [10]
    large(100_000), small(10)
    assert calls == [10]
    large(50_000), small(10)
    assert calls == [10, 10]
    assert large.cache_info().currsize == small.cache_info().currsize == 1


def test_an_array_counts_once_and_as_a_whole(counted):
    """Kills: a part that is counted as its length; the array of many results, each time."""
    array = np.zeros(100_000)
    part = _kept.kept()(lambda n: array[n : n + 1])
    for n in range(100):
        part(n)
    assert part.cache_info().currsize == 100
    assert counted._bytes >= array.nbytes


def test_arguments_count(counted):
    """Kills: a number by a law that holds a table."""

    class Law:
        def __init__(self):
            self.table = np.zeros(100_000)

    number = _kept.kept()(lambda law: 1.0)
    number(Law()), number(Law())
    assert number.cache_info().currsize == 1


def test_what_was_freed_is_not_taken_for_what_has_its_place(counted):
    """Kills: identities that are never forgotten."""
    last = _kept.kept(1)(lambda n: np.zeros(1000))
    for n in range(100):
        last(n)
    assert counted._bytes >= 100 * 8000


def test_objects_that_have_no_weak_references(counted):
    class Model:
        __slots__ = ("__dict__",)

    model = Model()
    model.itself = model
    assert _kept.kept()(lambda n: model)(1) is model


def test_what_is_in_use_is_found_again(counted):
    """Kills: nodes of many steps that are made once more for the other direction."""
    calls = []

    class Result:
        def __init__(self, n):
            calls.append(n)
            self.values = np.zeros(n)

    made, large = _kept.kept()(Result), _kept.kept()(np.zeros)
    held = made(10)
    large(200_000)
    assert made(10) is held
    assert calls == [10]
    del held
    large(200_001)
    made(10)
    assert calls == [10, 10]


def test_children_that_are_forked_while_others_compute(run_python):
    """A thread is in a property, and one holds the lock of what is counted: a child needs both.

    Kills: functools.cached_property, which before Python 3.12 has a lock for a class; a lock that
    is not opened in a child. Two of 56 runs of a ledger hung under load.
    """
    code = """
import os, signal, threading
from psinoise import _kept
entered, leave = threading.Event(), threading.Event()
class Slow:
    @_kept.cached_property
    def value(self):
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            leave.wait()
        return 3
def hold():
    with _kept._COUNTED._lock:
        Slow().value
thread = threading.Thread(target=hold)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    made = _kept.kept()(lambda x: Slow().value + x)
    os._exit(made(4))
leave.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
    assert run_python(code, **environment) == "7\n"
