"""One ledger and many processes: killed or interrupted, forked at any moment, one budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import psinoise as pn

fcntl = pytest.importorskip("fcntl")

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=40.0)).on_lattice()


def test_processes_that_are_killed(tmp_path):
    """Kills: no lock; a check against what was known before the lock; values before the line is
    written; a line of a process that was killed which others do not read.
    """
    script = Path(__file__).with_name("ledger_crashes.py")
    sizes = ["--processes", "4", "--charges", "120", "--kills", "10"]
    done = subprocess.run(
        [sys.executable, "-W", "error", script, tmp_path, *sizes],
        env={**os.environ, "PYTHONPATH": str(Path(pn.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["failed"], found["unknown"], found["twice"]) == (0, 0, 0), done.stderr
    assert found["kills"] == 10
    assert found["charges"] == 120
    assert 100 < found["released"] <= 120
    assert found["upper"] <= 1.0 < found["lower_of_one_more"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files")
def test_a_line_beyond_the_head_is_on_the_disk_before_the_head_says_so(monkeypatch, tmp_path):
    """Kills: a power cut that leaves a head which has seen more than the file, for ever."""
    path = tmp_path / "survey.ledger"
    head, made = path.with_name(path.name + ".head"), pn.Ledger.create(path, 1.0, 1e-6)
    before = head.read_bytes()
    made.charge(GAUSSIAN)
    head.write_bytes(before)  # as a process that was killed between both leaves it
    sync, events = os.fsync, []

    def synced(file):
        events.append(os.readlink(f"/proc/self/fd/{file}").rsplit("/", 1)[-1])
        sync(file)

    monkeypatch.setattr(os, "fsync", synced)
    assert len(pn.Ledger.open(path).charges) == 1
    assert events == [path.name, head.name]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("turn", [1, 2])
def test_what_interrupts_the_unlocking_leaves_no_lock(monkeypatch, tmp_path, error, turn):
    """Kills: a lock that is kept when the other one cannot be let go, and a file closed twice."""
    path = tmp_path / "survey.ledger"
    made = pn.Ledger.create(path, 1.0, 1e-6)
    unlocked, real = [], fcntl.flock

    def interrupted(file, operation):
        if operation == fcntl.LOCK_UN:
            unlocked.append(file)
            if len(unlocked) == turn:
                raise error
        return real(file, operation)

    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr(fcntl, "flock", interrupted)
        made.charge(GAUSSIAN)
    assert len(unlocked) == 2
    assert made._state.journal._descriptors == []
    assert len(made.charges) == len(pn.Ledger.open(path).charges) == 1


def test_forks_during_charges(run_python, tmp_path):
    """A thread charges while others fork; each child charges, too, and none of them waits for ever.

    Kills: a lock of the parent that stays locked in a child; sums that a child has by halves.
    """
    code = f"""
import os, threading, psinoise as pn
mechanism = pn.Mechanism(pn.Gaussian(std=40.0)).on_lattice()
ledger = pn.Ledger.create({str(tmp_path / "a.ledger")!r}, 2.0, 1e-6)
memory = pn.Ledger(2.0, 1e-6)
ready, stop, count = threading.Event(), threading.Event(), 0
def charging():
    global count
    while not stop.is_set():
        memory.charge(mechanism)
        ledger.charge(mechanism)
        count += 1
        ready.set()
        if count > 60:
            break
thread = threading.Thread(target=charging)
thread.start()
ready.wait()
statuses = []
for i in range(12):
    child = os.fork()
    if child == 0:
        import faulthandler
        faulthandler.dump_traceback_later(20, exit=True)
        ledger.charge(mechanism, label="child")
        try:
            memory.charge(mechanism)
        except pn.BudgetError as error:
            if ledger.charges[-1].label is not None and "process that made it" in str(error):
                os._exit(7)
        os._exit(1)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
thread.join()
again = pn.Ledger.open(ledger.path)
labels = [charge.label for charge in again.charges]
print(statuses == [7] * 12, labels.count("child"), len(labels) == count + 12)
print(ledger.charges == again.charges, ledger.spent == again.spent, len(memory.charges) == count)
"""
    environment = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
    assert run_python(code, **environment) == "True 12 True\nTrue True True\n"


def test_a_child_keeps_no_lock_of_a_parent_that_died(run_python, tmp_path):
    """A child is forked in the middle of a charge, whose process is killed then.

    Kills: descriptors that a child inherits, and with them the lock of its parent.
    """
    path = tmp_path / "a.ledger"
    pn.Ledger.create(path, 1.0, 1e-6)
    code = f"""
import os, signal, time, psinoise as pn
from psinoise.ledger import _journal
sync, reader_writer = _journal._sync, os.pipe()
def killed(file):
    sync(file)
    if os.fork() == 0:
        os.close(1), os.close(2)
        os.write(reader_writer[1], b"x")
        time.sleep(30)
        os._exit(0)
    os.read(reader_writer[0], 1)
    os.kill(os.getpid(), signal.SIGKILL)
parent = os.fork()
if parent == 0:
    ledger = pn.Ledger.open({str(path)!r})
    _journal._sync = killed
    ledger.charge(pn.Mechanism(pn.Gaussian(std=40.0)).on_lattice(), label="killed")
os.waitpid(parent, 0)
signal.alarm(20)
pn.Ledger.open({str(path)!r}).charge(pn.Mechanism(pn.Gaussian(std=40.0)).on_lattice())
print("charged")
"""
    assert run_python(code) == "charged\n"
    # The line was whole: it counts, though nothing was released for it.
    assert [charge.label for charge in pn.Ledger.open(path).charges] == ["killed", ""]


def test_a_child_notices_that_the_file_went_back(tmp_path):
    """Kills: a child that forgets what its parent saw."""
    path = tmp_path / "a.ledger"
    ledger = pn.Ledger.create(path, 1.0, 1e-6)
    files = (path, path.with_name("a.ledger.head"))
    before = [file.read_bytes() for file in files]
    ledger.charge(GAUSSIAN)
    for file, data in zip(files, before, strict=True):
        file.write_bytes(data)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ledger.charge(GAUSSIAN)
        except pn.DomainError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
