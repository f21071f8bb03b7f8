"""A ledger in a file: on the disk before bits are drawn, appended in place, and not rolled back.

Each test names the mutant that it kills; what several processes do is in ``test_ledger_processes``.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import psinoise as pn
from psinoise import _hashed_json
from psinoise.ledger import _journal
from psinoise.release import values

fcntl = pytest.importorskip("fcntl")

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=12.0)).on_lattice()
LAPLACE = pn.Mechanism(pn.DiscreteLaplace(epsilon=0.01)).on_lattice()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "survey.ledger"


@pytest.fixture
def made(path):
    return pn.Ledger.create(path, epsilon=1.0, delta=1e-6)


def head_of(path):
    return path.with_name(path.name + ".head")


def copied(path, name):
    """Copies of both files, as a backup has them."""
    for file in (path, head_of(path)):
        shutil.copy(file, file.with_name(f"{name}{file.suffix}"))


def refused(path, match):
    """Nobody opens it."""
    with pytest.raises(pn.DomainError, match=match):
        pn.Ledger.open(path)


# -- it comes back ---------------------------------------------------------------------------------


def test_a_ledger_comes_back(path, made):
    made.release(GAUSSIAN, 3.0, label="visitors \u00e9\n")
    made.charge(pn.Mechanism(pn.Airy(mean_abs=20.0), 2.0), 3, label="elsewhere")
    made.charge(pn.Mechanism(pn.Gaussian(std=9.0)), 2, 0.01)
    made.charge(GAUSSIAN)
    again = pn.Ledger.open(path)
    assert (again.epsilon, again.delta, again.adjacency) == (1.0, 1e-6, "add-remove")
    assert not again.adaptive
    assert again.charges == made.charges
    assert again.spent == made.spent
    assert path.read_text().count("sha256") > 5
    assert len(path.read_text().splitlines()) == 5
    with pytest.raises(FileExistsError):
        pn.Ledger.create(path, 5.0, 1e-6)
    assert pn.Ledger.open(path).charges == made.charges


def test_two_that_are_open_share_one_budget(path, made):
    """Kills: a check against what was known when the file was opened."""
    other = pn.Ledger.open(path)
    with pytest.raises(pn.BudgetError):
        for turn in range(100):
            (made, other)[turn % 2].charge(GAUSSIAN)
    count = len(made.charges)
    assert 2 < count == len(other.charges)
    plan = pn.Accountant().compose(GAUSSIAN, count)
    assert plan.epsilon(1e-6).upper <= 1.0
    assert plan.compose(GAUSSIAN).epsilon(1e-6).lower > 1.0
    assert not made.affords(GAUSSIAN)
    assert not other.affords(GAUSSIAN)


def test_the_charge_is_on_the_disk_before_bits_are_drawn(monkeypatch, path, made):
    """Kills: bits before the line, before one of both syncs, or before the head."""
    events = []
    sync = os.fsync

    def synced(file):
        events.append(("sync", os.readlink(f"/proc/self/fd/{file}").rsplit("/", 1)[-1]))
        sync(file)

    class DrawnError(Exception):
        pass

    def drawn(*_):
        events.append(("bits", len(path.read_text().splitlines())))
        raise DrawnError

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(values, "fresh_key", drawn)
    with pytest.raises(DrawnError):
        made.release(GAUSSIAN, 3.0)
    if not hasattr(fcntl, "F_FULLFSYNC") and Path("/proc/self/fd").exists():
        assert events == [("sync", path.name), ("sync", head_of(path).name), ("bits", 2)]
    assert len(pn.Ledger.open(path).charges) == 1


@pytest.mark.parametrize("where", ["write", "fsync", "pwrite"])
def test_a_disk_that_fails_draws_nothing(monkeypatch, path, made, where):
    """Kills: an error that is passed over; afterwards the file is as it must be."""
    made.charge(GAUSSIAN, label="before")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_journal.os, where, full)
        patch.setattr(pn.LatticeMechanism, "release", lambda *_, **__: pytest.fail("released"))
        with pytest.raises(OSError, match="No space"):
            made.release(GAUSSIAN, 3.0, label="failed")
    made.charge(GAUSSIAN, label="after")
    labels = [charge.label for charge in made.charges]
    # A line that was written whole counts: fail closed.
    assert labels == (["before", "after"] if where == "write" else ["before", "failed", "after"])
    assert pn.Ledger.open(path).charges == made.charges


# -- crashes ---------------------------------------------------------------------------------------


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def test_torn_lines(path, made):
    """A line that is not whole was never released: it goes; a whole one counts.

    Kills: a torn line that is kept (the next one would be glued to it), or one that is refused for
    ever, or a whole line beyond the head that is cut off.
    """
    made.charge(GAUSSIAN, label="first")
    head = head_of(path).read_bytes()
    made.charge(LAPLACE, label="second")
    whole = path.read_bytes()
    end = len(b"".join(lines_of(path)[:2]))
    generator = np.random.default_rng(1)
    cuts = [end + 1, len(whole) - 1, *generator.integers(end + 1, len(whole), 10)]
    torn = [whole[:cut] for cut in cuts]
    # Blocks of a line that came to the disk in another order.
    torn += [whole[:end] + bytes(len(whole) - end), whole[: end + 40] + bytes(20) + b"\n"]
    torn += [whole[:end] + b"{}\n", whole[:end] + b"\xff\n", whole[:end] + b"\n"]
    for data in torn:
        path.write_bytes(data)
        head_of(path).write_bytes(head)
        again = pn.Ledger.open(path)
        assert [charge.label for charge in again.charges] == ["first"]
        again.charge(GAUSSIAN, label="third")
        assert [charge.label for charge in pn.Ledger.open(path).charges] == ["first", "third"]
    path.write_bytes(whole)
    head_of(path).write_bytes(head)
    assert [charge.label for charge in pn.Ledger.open(path).charges] == ["first", "second"]
    # That was written into the head: it cannot be taken away any more.
    path.write_bytes(whole[:end])
    refused(path, "has 1 charges where 2 were entered")


def test_a_torn_line_that_was_released_is_no_torn_line(path, made):
    """Kills: cutting off what the head knows."""
    made.charge(GAUSSIAN)
    made.charge(GAUSSIAN)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    refused(path, "was changed")
    assert path.read_bytes() == whole[:-5], "and nothing was cut off"


def test_a_torn_head(path, made):
    """Kills: one place for the head, which a crash could leave torn."""
    for _ in range(3):
        made.charge(GAUSSIAN)
    good = head_of(path).read_bytes()
    half = len(good) // 2
    older, newer = good[:half], good[half:]
    # While the next head is written its place is torn; the other one is the last one.
    for cut in (0, 3, half // 2, half - 1):
        head_of(path).write_bytes(older[:cut] + bytes(half - cut) + newer)
        assert len(pn.Ledger.open(path).charges) == 3
    for place, flipped in itertools.product((0, 17, 40, half - 1), (0x01, 0x80)):
        damaged = bytearray(good)
        damaged[place] ^= flipped
        head_of(path).write_bytes(damaged)
        assert len(pn.Ledger.open(path).charges) == 3
    head_of(path).write_bytes(bytes(2 * half))
    refused(path, "must be the head of a ledger")


# -- copies and changes ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", [shutil.copy, os.replace])
def test_an_older_copy_is_noticed(path, made, how):
    """Kills: a file that is believed without its head; a new process sees it, too."""
    made.charge(GAUSSIAN)
    copied(path, "older")
    made.charge(GAUSSIAN)
    how(path.with_name("older.ledger"), path)
    refused(path, "has 1 charges where 2 were entered")
    with pytest.raises(pn.DomainError, match="an older copy"):
        made.charge(GAUSSIAN)
    with pytest.raises(pn.DomainError, match="an older copy"):
        _ = made.spent


def test_older_copies_of_both_are_noticed_by_who_has_it_open(path, made):
    """Kills: a process that believes both files together. A new process cannot know."""
    made.charge(GAUSSIAN)
    copied(path, "older")
    made.charge(GAUSSIAN)
    for file in (path, head_of(path)):
        shutil.copy(file.with_name(f"older{file.suffix}"), file)
    assert len(pn.Ledger.open(path).charges) == 1
    for _ in range(2):
        with pytest.raises(pn.DomainError, match="an older copy"):
            made.charge(GAUSSIAN)
    # Also where it has become as long as before.
    pn.Ledger.open(path).charge(GAUSSIAN, label="another line")
    with pytest.raises(pn.DomainError, match="not what"):
        made.charge(GAUSSIAN)


def test_a_ledger_with_a_reset_budget_is_another_one(path, made):
    """Kills: hashes that two ledgers with the same charges would share."""
    made.charge(GAUSSIAN)
    pn.Ledger.create(path.with_name("other.ledger"), 1.0, 1e-6).charge(GAUSSIAN)
    shutil.copy(path.with_name("other.ledger"), path)
    refused(path, "is not what it was")
    with pytest.raises(pn.DomainError, match="not what"):
        made.charge(GAUSSIAN)
    shutil.copy(path.with_name("other.ledger.head"), head_of(path))
    with pytest.raises(pn.DomainError, match=r"not what|do not belong together"):
        made.charge(GAUSSIAN)


def test_damaged_files(path, made):
    """Kills: a hash that leaves out a member, or the line before."""
    made.charge(GAUSSIAN, label="visitors")
    made.charge(LAPLACE, 2, label="buyers")
    made.charge(LAPLACE, label="once more")
    good, lines = path.read_bytes(), lines_of(path)
    generator = np.random.default_rng(1)
    places = [i for i, letter in enumerate(good) if chr(letter).isalnum()]
    damaged = [
        good[:i] + (b"7" if good[i : i + 1] != b"7" else b"3") + good[i + 1 :]
        for i in generator.choice(places, 60)
    ]
    damaged += [b"", b"\n", b"{}\n", b"[" * 100_000, good + good, good + b"more\n" + b"more"]
    damaged += [b"".join(lines[:-1]), b"".join([*lines[:2], lines[3]]), b"".join(lines[1:])]
    damaged += [b"".join([lines[0], lines[2], lines[1], lines[3]]), good[:-1], b"\xff\xfe"]
    for data in damaged:
        path.write_bytes(data)
        refused(path, "ledger")
        assert path.read_bytes() == data
    path.write_bytes(good)
    assert made.charges == pn.Ledger.open(path).charges
    assert len(made.charges) == 3


def test_lines_that_no_ledger_wrote(path, made):
    """With hashes that are right: anybody can compute them."""
    made.charge(LAPLACE, 2)
    budget, charge = (json.loads(line) for line in lines_of(path))
    for line in (budget, charge):
        del line["sha256"]
    law = {
        "law": "Gaussian",
        "arguments": {"scale": (9.0).hex()},
        "sensitivity": (1.0).hex(),
        "contribution": None,
        "dimension": 1,
        "norm": "linf",
    }

    def written(*lines):
        last, text = "", ""
        for line in lines:
            one, last = _hashed_json.line(last, line)
            text += one + "\n"
        path.write_text(text)
        head_of(path).write_bytes(_journal._head(len(lines) - 1, last))

    written(budget, charge, {**charge, "mechanism": law}, {**charge, "mechanism": 2})
    assert [entry.count for entry in pn.Ledger.open(path).charges] == [2, 2, 2]
    for change in [
        {"epsilon": 1.0},
        {"epsilon": "inf"},
        {"delta": (2.0).hex()},
        {"adjacency": 3},
        {"adjacency": "other"},
        {"version": 1},
        {"version": True},
        {"format": "other"},
        {"more": 3},
        {"orders": 3},
        {"orders": [1]},
        {"orders": [2, 2]},
        {"orders": [2.0]},
        {"orders": [2], "delta": (0.0).hex()},
    ]:
        written({**budget, **change}, charge)
        with pytest.raises(pn.DomainError):
            pn.Ledger.open(path)
    for change in [
        {"mechanism": 3},
        {"mechanism": 0},
        {"mechanism": -1},
        {"mechanism": True},
        {"mechanism": None},
        {"mechanism": {"lattice": 3}},
        {"mechanism": {"lattice": "{}"}},
        {"mechanism": {**law, "law": "Other"}},
        {"mechanism": {**law, "sensitivity": (-1.0).hex()}},
        {"mechanism": {**law, "norm": "l3"}},
        {"mechanism": {**law, "dimension": "1"}},
        {"count": -1},
        {"count": 1.5},
        {"sampling_rate": (1.5).hex()},
        {"label": 3},
        {"time": "yesterday"},
        {"time": 3},
        {"more": 3},
    ]:
        written(budget, charge, {**charge, **change})
        with pytest.raises(pn.DomainError):
            pn.Ledger.open(path)
    written(budget, budget)
    with pytest.raises(pn.DomainError):
        pn.Ledger.open(path)


# -- the file itself -------------------------------------------------------------------------------


def test_permissions_and_links_stay(tmp_path, path, made):
    """Kills: a file that is replaced: new permissions, a link that becomes a file."""
    path.chmod(0o600)
    head_of(path).chmod(0o640)
    before = [file.stat() for file in (path, head_of(path))]
    link, elsewhere = tmp_path / "link", tmp_path / "elsewhere"
    elsewhere.mkdir()
    link.symlink_to(path)
    os.link(path, elsewhere / "hard.ledger")
    opened = pn.Ledger.open(link)
    opened.charge(GAUSSIAN)
    made.charge(GAUSSIAN)
    after = [file.stat() for file in (path, head_of(path))]
    assert [(s.st_ino, s.st_mode, s.st_uid, s.st_gid) for s in before] == [
        (s.st_ino, s.st_mode, s.st_uid, s.st_gid) for s in after
    ]
    assert stat.S_IMODE(after[0].st_mode) == 0o600
    assert link.is_symlink()
    assert opened.path == path.resolve()
    assert (elsewhere / "hard.ledger").read_bytes() == path.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "elsewhere",
        "link",
        "survey.ledger",
        "survey.ledger.head",
    ]
    # Another name without a head is no other ledger.
    with pytest.raises(FileNotFoundError, match="must have both"):
        pn.Ledger.open(elsewhere / "hard.ledger")


def test_missing_files(tmp_path, path, made):
    with pytest.raises(FileNotFoundError):
        pn.Ledger.open(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        pn.Ledger.create(tmp_path / "no" / "such.ledger", 1.0, 1e-6)
    made.charge(GAUSSIAN)
    path.unlink()
    with pytest.raises(FileExistsError):
        pn.Ledger.create(path, 1.0, 1e-6)
    assert not path.exists(), "a ledger that was deleted does not come back by accident"
    with pytest.raises(FileNotFoundError):
        made.charge(GAUSSIAN)
    with pytest.raises(pn.DomainError):
        pn.Ledger.create(tmp_path / "other", -1.0, 1e-6)
    assert not (tmp_path / "other").exists()


def test_only_ordinary_files(tmp_path, path, made):
    made.charge(GAUSSIAN)
    (tmp_path / "null.head").write_bytes(head_of(path).read_bytes())
    (tmp_path / "null").symlink_to(os.devnull)
    with pytest.raises((pn.DomainError, FileNotFoundError)):
        pn.Ledger.open(tmp_path / "null")
    with pytest.raises(FileNotFoundError):
        pn.Ledger.open(tmp_path)
    path.unlink()
    path.symlink_to(os.devnull)
    with pytest.raises((pn.DomainError, FileNotFoundError)):
        pn.Ledger.open(path)


def test_a_file_that_is_replaced_meanwhile_accepts_nothing(monkeypatch, path, made):
    """Kills: a line that is appended to a file that nobody finds any more."""
    write = _journal._write

    def replaced(file, data):
        write(file, data)
        shutil.copy(path, path.with_name("new"))
        os.replace(path.with_name("new"), path)

    monkeypatch.setattr(_journal, "_write", replaced)
    with pytest.raises(pn.DomainError, match="was replaced while it was in use"):
        made.charge(GAUSSIAN)


def test_systems_without_locks(monkeypatch, path):
    monkeypatch.setattr(_journal, "fcntl", None)
    for call in (lambda: pn.Ledger.create(path, 1.0, 1e-6), lambda: pn.Ledger.open(path)):
        with pytest.raises(OSError, match="fcntl"):
            call()
    assert not path.exists()


def test_laws_that_cannot_be_written(path, made):
    """Nothing is entered, and nothing is left in the file."""

    class Own(pn.Gaussian):
        pass

    before = path.read_bytes()
    with pytest.raises(pn.DomainError, match="to be written"):
        made.charge(pn.Mechanism(Own(std=12.0)))
    assert path.read_bytes() == before
    assert made.charges == ()
    made.charge(GAUSSIAN)


def test_an_interrupt_in_the_middle_counts_once(monkeypatch, path, made):
    """Kills: a charge that is in the file and not in the sums, or in them twice."""
    from psinoise.ledger._plan import Plan

    def interrupted(*_):
        raise KeyboardInterrupt

    made.charge(GAUSSIAN)
    for target in ((Plan, "enter"), (_journal.Journal, "_write_head")):
        with monkeypatch.context() as patch:
            patch.setattr(*target, interrupted)
            with pytest.raises(KeyboardInterrupt):
                made.charge(GAUSSIAN)
    assert len(made.charges) == 3
    assert made.spent == pn.Ledger.open(path).spent
    memory = pn.Ledger(1.0, 1e-6)
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "enter", interrupted)
        with pytest.raises(KeyboardInterrupt):
            memory.charge(GAUSSIAN)
    fresh = pn.Ledger(1.0, 1e-6)
    fresh.charge(GAUSSIAN)
    assert memory.spent == fresh.spent


def test_threads_with_ledgers_of_their_own(monkeypatch, path, made):
    """Kills: a lock between processes that threads of one process share, or none."""
    large = pn.Mechanism(pn.Gaussian(std=5.0)).on_lattice()
    write, results = _journal._write, []

    def slow(file, data):
        time.sleep(0.05)
        write(file, data)

    monkeypatch.setattr(_journal, "_write", slow)

    def together():
        try:
            pn.Ledger.open(path).charge(large)
            results.append(1)
        except pn.BudgetError:
            results.append(0)

    threads = [threading.Thread(target=together) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 0, 0, 1]
    assert len(made.charges) == 1
