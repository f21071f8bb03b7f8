"""After a release its key, its random words and its noise are nowhere in the process.

A child releases with a key that a system call puts into it, and its own copy of the key is erased;
then all memory that it can write is searched, from here. A signal has the kernel store what is left
in the registers as well.

Kills: a stack that is not wiped, in the caller's thread or in a worker's; registers that are not
cleared; a key that is not overwritten.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import psinoise as pn
from psinoise import _core as native
from psinoise.testing import integers

KEY = bytes.fromhex("9d5c1b7ae2f84063d1b92e7f5a60c38e47f19ab3286dce05bb71f4930e8ad652")
SIZE = 2**16  # two tasks, for two threads
LEVELS = pn.build_config()["isa_available"]
pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="searches memory by Linux's /proc"
    ),
    pytest.mark.skipif(
        pn.build_config()["backend"] != "native", reason="Python's integers cannot be overwritten"
    ),
]

_CHILD = f"""
import ctypes, os, signal, sys
import numpy as np
import psinoise as pn
from psinoise.testing import replay

lattice = pn.Mechanism(pn.Cauchy(scale=1.0)).on_lattice(2.0**-10)
coarse = pn.Mechanism(pn.Cauchy(scale=1024.0)).on_lattice(1.0)
assert lattice.noise.weights.size == coarse.noise.weights.size
signal.signal(signal.SIGUSR1, lambda *_: None)
key = bytes(32)
place = (ctypes.c_char * 32).from_address(id(key) + bytes.__basicsize__ - 1)
assert os.readv(0, [place]) == 32
size = {SIZE}
what = sys.argv[1]
data = {{
    "float64": np.full(size, 1e6), "float32": np.full(size, 1e6, np.float32),
    "int64": np.full(size, 10**6), "scalar": 1e6,
}}[what]
mechanism = coarse if what == "int64" else lattice
kept = replay(mechanism, data, key, threads=2)
os.kill(os.getpid(), signal.SIGUSR1)
ctypes.memset(place, 0, 32)
print("ready", flush=True)
sys.stdin.read()
"""


def secrets(noise):
    """What nobody may find: words of 64 bits, and runs of three integers as one word."""
    words = native.stream_words(KEY, 20, 0, SIZE)
    drawn = integers(noise, SIZE, KEY)
    last = np.flatnonzero(np.abs(drawn) >= noise.weights.size - noise.repeated)
    assert 3 < last.size < SIZE / 8, "some are of the tail"
    blocks = [native.chacha_block(KEY, 20, int(i), 1) for i in last]
    return words, runs(drawn), np.concatenate(blocks).astype(np.uint32).view(np.uint64)


def runs(integers):
    """Three neighbors, mixed into one word."""
    a, b, c = (integers.view(np.uint64)[i : integers.size - 2 + i] for i in range(3))
    return (a * np.uint64(0x9E3779B97F4A7C15) + b) * np.uint64(0xC2B2AE3D27D4EB4F) + c


def count_of(wanted, found):
    """How many of the words that are found are wanted; by a table of their low bits first."""
    low = found.dtype.type(2**22 - 1)
    table = np.zeros(2**22, dtype=bool)
    table[wanted & low] = True
    likely = found[table[found & low]]
    return int(np.isin(likely, wanted).sum()) if likely.size else 0


def memory(process):
    """All parts of another process's memory that it may write, as words."""
    maps = Path(f"/proc/{process}/maps").read_text()
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as source:
        for first, last in re.findall(r"^(\w+)-(\w+) rw", maps, re.MULTILINE):
            source.seek(int(first, 16))
            words = np.frombuffer(source.read(int(last, 16) - int(first, 16)), dtype=np.uint64)
            # Most are pages of zeros, which hide nothing.
            pages = words.reshape(-1, 512)
            yield pages[pages.any(axis=1)].reshape(-1)


def found_in_child(level, what, noise, code=_CHILD):
    """How many words of the key, the stream, the noise and the tail are left."""
    wanted = secrets(noise)
    key = np.frombuffer(KEY, dtype=np.uint32)
    package = Path(pn.__file__).parents[1]
    child = subprocess.Popen(
        [sys.executable, "-c", code, what],
        env={**os.environ, "PYTHONPATH": str(package), "PSINOISE_ISA": level},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        os.write(child.stdin.fileno(), KEY)
        assert child.stdout.readline() == b"ready\n"
        counts = np.zeros(4, dtype=int)
        for part in memory(child.pid):
            counts[0] += count_of(key, part.view(np.uint32))
            counts[1] += count_of(wanted[0], part)
            counts[2] += count_of(wanted[1], runs(part))
            counts[3] += count_of(wanted[2], part)
        return dict(zip(("key", "words", "noise", "tail"), counts.tolist(), strict=True))
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait()


NOTHING = {"key": 0, "words": 0, "noise": 0, "tail": 0}
LATTICE = pn.Mechanism(pn.Cauchy(scale=1.0)).on_lattice(2.0**-10).noise


CASES = [(level, what) for level in LEVELS for what in ("float64", "scalar")]
CASES += [(LEVELS[-1], "float32"), (LEVELS[0], "int64")]


@pytest.mark.deep
@pytest.mark.parametrize(("level", "what"), CASES)
def test_nothing_is_left(level, what):
    assert found_in_child(level, what, LATTICE) == NOTHING


@pytest.mark.deep
def test_what_is_kept_would_be_found():
    """The test of the test: a child that keeps its key, its noise and its words."""
    keeping = _CHILD.replace(
        "kept = replay(mechanism, data, key, threads=2)",
        "from psinoise import _core\n"
        "from psinoise.testing import integers\n"
        "kept = integers(lattice.noise, size, key), _core.stream_words(key, 20, 0, size)",
    ).replace("ctypes.memset(place, 0, 32)", "")
    found = found_in_child(LEVELS[-1], "scalar", LATTICE, keeping)
    assert found["key"] >= 8
    assert found["words"] >= SIZE
    assert found["noise"] >= SIZE - 2
