"""Threads, forks and spawned processes: the same bytes, and nobody waits for a lost thread."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from psinoise import Mechanism
from psinoise import _core as core
from psinoise.noise import FAMILIES, Airy, Gaussian

LARGE = 1_000_000  # thirty tasks: enough for every worker to take part


def digest(seed, threads=0, size=LARGE):
    """Runs in workers too, so it takes and returns plain values."""
    return hashlib.sha256(Airy(mean_abs=1.0).sample(size, rng=seed, threads=threads)).hexdigest()


@pytest.mark.parametrize("size", [1, 32_768, 32_769, 131_072, 300_001])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_number_of_threads_gives_the_same_bytes(law, size, dtype):
    expected = law.sample(size, rng=1, dtype=dtype, threads=1)
    for threads in (None, 0, 2, 7, 100):
        x = law.sample(size, rng=1, dtype=dtype, threads=threads)
        np.testing.assert_array_equal(x, expected)


def test_concurrent_callers_do_not_disturb_each_other():
    """More callers than cores, each of which uses the pool."""
    serial = [digest(seed, threads=1) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for threads in (1, 2, 0, 100):
            assert list(pool.map(lambda seed, t=threads: digest(seed, t), range(8))) == serial


def test_laws_compile_once_for_concurrent_first_users():
    """Tables are shared per family; a race may compile twice but never mixes tables."""
    cache = Airy._tables
    key = (Airy, ())
    Airy(scale=1.0).sample(rng=1)
    kept = cache.pop(key)
    try:
        with ThreadPoolExecutor(4) as pool:
            tables = list(pool.map(lambda _: Airy(scale=1.0)._table, range(4)))
        assert all(table is cache[key] for table in tables)
    finally:
        cache[key] = kept


def test_the_gil_is_released_while_sampling():
    """Another thread gets its turn during a call; with a switch interval of a quarter of an hour it
    would have none while the lock is held."""
    law, out = FAMILIES[0](scale=1.0), np.empty(1 << 23)
    law.sample(rng=1)
    go, moved = threading.Event(), threading.Event()

    def follow():
        go.wait()
        moved.set()

    other = threading.Thread(target=follow)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(900.0)
    try:
        other.start()
        go.set()
        sum(range(1_000_000))  # work that keeps the lock: the test of the test
        held = not moved.is_set()
        for _ in range(50):
            law.sample(rng=1, out=out, threads=1)
            if moved.is_set():
                break
        released = moved.is_set()
    finally:
        sys.setswitchinterval(interval)
        other.join()
    assert released
    assert held


def test_a_forked_child_samples_with_threads_of_its_own():
    """The pool's threads do not exist in the child; waiting for them would hang for ever."""
    expected = digest(5)  # starts the pool
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 and later, and JAX, warn about forks in processes with threads: that is the
        # subject.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            os.write(write, digest(5).encode() + digest(6, threads=3).encode())
        finally:
            os._exit(0)
    os.close(write)
    received = b""
    while len(received) < 128:
        part = os.read(read, 128)
        if not part:
            break
        received += part
    os.close(read)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert received.decode() == expected + digest(6, threads=3)
    assert digest(5) == expected  # the parent's pool still works


def test_unseeded_samples_differ_between_parent_and_child():
    law = FAMILIES[0](scale=1.0)
    law.sample(LARGE, threads=2)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            os.write(write, law.sample(4).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    theirs = os.read(read, 32)
    os.close(read)
    os.waitpid(child, 0)
    assert len(theirs) == 32
    assert theirs != law.sample(4).tobytes()


def test_spawned_processes_agree():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(digest, [5, 6]) == [digest(5), digest(6)]


def test_transforms_are_shared_by_threads():
    """A transform has room to work in, and threads that account at once share transforms.

    Kills: that room without a lock.
    """
    size = 2**16
    transform = core.Transform(size)
    masses = np.random.default_rng(3).uniform(size=(8, size)) / size

    def compose(row):
        product = np.ones(size // 2 + 1, dtype=np.complex128)
        for _ in range(5):
            transform.compose_into(row, 1, product)
        return transform.inverse(product)

    serial = [compose(row) for row in masses]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for ours, theirs in zip(pool.map(compose, masses), serial, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_threads_account_as_one_does():
    """The same questions at once: searches of one composition are shared too."""
    laws = [Gaussian(std=1.0), Airy(mean_abs=2.0)]

    def ask(law):
        mechanism = Mechanism(law)
        return [mechanism.epsilon(1e-6, count, 0.05) for count in (3, 30, 300)]

    serial = [ask(law) for law in laws]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, laws * 6)) == serial * 6
