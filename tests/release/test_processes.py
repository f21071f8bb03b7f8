"""Nobody prints the same noise twice, in child processes, threads or pickles; no bits, no noise.

Kills: a stream that is kept between calls (fork and pickle would duplicate it), a key from the
clock or the process number, a second source behind the first.
"""

from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import pickle
import platform
import sys
import threading

import numpy as np
import pytest

import psinoise as pn
from psinoise.testing import replay

MECHANISM = pn.Mechanism(pn.Gaussian(std=2.0)).on_lattice()
SIZE = 64
METHODS = multiprocessing.get_all_start_methods()


def noise(_=0):
    """Some noise, from a process or a thread."""
    return MECHANISM.release(np.zeros(SIZE)).tolist()


def all_different(found):
    """No two streams agree in more elements than chance gives (about one in 450 here)."""
    for i, first in enumerate(found):
        for second in found[:i]:
            assert (np.array(first) == np.array(second)).sum() <= 6


@pytest.mark.deep
@pytest.mark.parametrize("method", METHODS)
def test_processes(method):
    """A pool of two workers, and the process itself before and after."""
    before = noise()
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        found = list(pool.map(noise, range(6)))
    all_different([before, *found, noise()])


def test_forks_in_the_middle_of_everything(run_python):
    """Parent and child after a release, with the threads of the pool awake before."""
    code = """
import os, numpy as np, psinoise as pn
mechanism = pn.Mechanism(pn.Airy(scale=2.0)).on_lattice()
mechanism.release(np.zeros(2**18))
reader, writer = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os.write(writer, (repr(mechanism.release(np.zeros(8)).tolist()) + "\\n").encode())
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
os.close(writer)
lines = os.fdopen(reader).read().splitlines() + [repr(mechanism.release(np.zeros(8)).tolist())]
print(len(lines), len(set(lines)))
"""
    assert run_python(code) == "5 5\n"


def test_threads():
    barrier = threading.Barrier(8)

    def together(_):
        barrier.wait()
        return noise()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        all_different(list(pool.map(together, range(8))))


_DAEMONS = """
import threading, time
import numpy as np
import psinoise as pn
mechanism = pn.Mechanism(pn.Gaussian(std=2.0)).on_lattice()
CALL
call()
def work():
    while True:
        call()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.deep
@pytest.mark.parametrize(
    "call",
    [
        "x = np.zeros(2**18)\ncall = lambda: mechanism.release(x, threads=2)",
        "x = np.zeros(2**12)\ncall = lambda: mechanism.release(x)",
        "call = lambda: pn.Gaussian(std=2.0).sample(2**14)",
    ],
    ids=["pool", "alone", "sample"],
)
def test_daemon_threads_at_the_end(run_python, call):
    """The interpreter ends while others are in a kernel: no abort, no message.

    Kills: taking the interpreter's lock again in a destructor that may not throw.
    """
    for _ in range(3):
        assert run_python(_DAEMONS.replace("CALL", call)) == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads by Linux's /proc")
def test_threads_are_few_and_end(run_python):
    """Kills: a thread for each one asked for; workers that wait for ever."""
    code = """
import os, time
import numpy as np
import psinoise as pn
count = lambda: len(os.listdir("/proc/self/task"))
before = count()
mechanism = pn.Mechanism(pn.Gaussian(std=2.0)).on_lattice()
mechanism.release(np.zeros(2**23), threads=10**9)
print(before < count() < before + max(64, len(os.sched_getaffinity(0))))
deadline = time.monotonic() + 20.0
while count() > before and time.monotonic() < deadline:
    time.sleep(0.1)
print(count() == before)
mechanism.release(np.zeros(2**18), threads=2)
"""
    assert run_python(code, OPENBLAS_NUM_THREADS="1") == "True\nTrue\n"


def test_copies():
    copies = [
        MECHANISM,
        MECHANISM,
        copy.copy(MECHANISM),
        copy.deepcopy(MECHANISM),
        pickle.loads(pickle.dumps(MECHANISM)),
        pickle.loads(pickle.dumps(MECHANISM)),
    ]
    stored = pickle.dumps(MECHANISM)
    MECHANISM.release(np.zeros(SIZE))
    assert pickle.dumps(MECHANISM) == stored, "a release leaves no state"
    all_different([made.release(np.zeros(SIZE)).tolist() for made in copies])


def test_numpy_seeds_do_not_matter():
    found = []
    for _ in range(3):
        np.random.seed(0)  # noqa: NPY002  that is the point
        found.append(noise())
    all_different(found)


# A filter of system calls: getrandom fails from then on, and cannot be repaired.
_NO_ENTROPY = """
import ctypes, errno, os, platform, struct
import numpy as np
import psinoise as pn

class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

def stop_entropy():
    getrandom = {"x86_64": 318, "aarch64": 278}[platform.machine()]
    load, equal, give = 0x20, 0x15, 0x06
    code = b"".join(struct.pack("HBBI", *line) for line in [
        (load, 0, 0, 0),
        (equal, 0, 1, getrandom),
        (give, 0, 0, 0x50000 | errno.EIO),
        (give, 0, 0, 0x7FFF0000),
    ])
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    filter = Filter(4, code)
    if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.byref(filter)):
        print("no filters here")
        raise SystemExit

def fails(call):
    try:
        call()
    except OSError as error:
        return error.errno == errno.EIO
    return False

mechanism = pn.Mechanism(pn.Gaussian(std=2.0)).on_lattice()
mechanism.release(np.zeros(3))
ledger = pn.Ledger(10.0, 1e-6)
out = np.full(3, 7.0)
stop_entropy()
"""


def without_entropy(run_python, code):
    """What code prints in a process whose operating system has no entropy to give."""
    printed = run_python(_NO_ENTROPY + code)
    if printed == "no filters here\n":
        pytest.skip("this system does not let processes filter their calls")
    return printed


NEEDS_LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in {"x86_64", "aarch64"},
    reason="filters system calls by seccomp, which only Linux has, and by their numbers",
)


@NEEDS_LINUX
def test_a_source_that_fails_is_an_error(run_python):
    """No second source, and nothing left of the first: no key is kept from the release before."""
    code = """
calls = [lambda: mechanism.release(1.0), lambda: mechanism.release(np.zeros(3), out=out)]
calls += [lambda: mechanism.release(np.zeros((100, 100)))]
calls += [lambda: ledger.release(mechanism, 1.0)]
print([fails(call) for call in calls], out.tolist())
"""
    found = without_entropy(run_python, code)
    assert found == "[True, True, True, True] [7.0, 7.0, 7.0]\n"


@NEEDS_LINUX
def test_an_empty_release_takes_no_bits(run_python):
    code = "print(mechanism.release(np.zeros(0)).tolist())"
    assert without_entropy(run_python, code) == "[]\n"


def test_no_variable_weakens_the_source(run_python):
    """Whatever the library reads from its environment, the noise differs."""
    code = (
        "import numpy as np, psinoise as pn; "
        "print(pn.Mechanism(pn.Gaussian(std=2.0)).on_lattice().release(np.zeros(8)).tolist())"
    )
    names = ("PSINOISE_SEED", "PSINOISE_RNG", "PSINOISE_KEY", "PYTHONHASHSEED", "SOURCE_DATE_EPOCH")
    found = {run_python(code, **dict.fromkeys(names, "0")) for _ in range(2)}
    assert len(found) == 2


# -- the state of the processor --------------------------------------------------------------------

_STATE = """
import ctypes, ctypes.util, sys
import numpy as np
import psinoise as pn
from psinoise.testing import replay

noises = [pn.Gaussian(std=2.0), pn.Laplace(scale=0.3), pn.Cauchy(scale=5.0)]
lattices = [pn.Mechanism(noise).on_lattice() for noise in noises]
lattices.append(pn.Mechanism(pn.Airy(scale=1e-200), 1e-200).on_lattice())
x = np.concatenate([np.linspace(-9.0, 9.0, 500), [5e-324, -1e-310, 0.5, -0.5, 1e-200, -1e-201]])
grids = [lattice.grid for lattice in lattices]
inputs = [(x, np.arange(-300, 300))] * 3 + [(x[500:] * grids[3], x[np.abs(x) < 1e-199])]
CHANGE
for lattice, grid, tried in zip(lattices, grids, inputs):
    for values in tried:
        if CHANGED is not None:
            CHANGED()
        found = np.asarray(replay(lattice, values, bytes(range(32))), dtype=np.float64)
        # Integers that float64 holds; how multiples of the grid are rounded is post-processing.
        held = np.abs(found) <= 2.0**51 * grid
        assert held.mean() > 0.9
        sys.stdout.write(np.floor(found[held] / grid + 0.5).tobytes().hex())
"""


def in_state(run_python, change):
    """What is released after some change to the floating-point environment."""
    return run_python(_STATE.replace("CHANGE\n", change + "\n"))


NEEDS_X86 = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64",
    reason="modes by their numbers on x86, and the environment of the GNU C library",
)


@pytest.mark.deep
@NEEDS_X86
@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00], ids=["down", "up", "towards zero"])
def test_another_rounding_mode_changes_nothing(run_python, mode):
    plain = in_state(run_python, "CHANGED = None")
    assert len(plain) > 16 * 3000
    changed = in_state(
        run_python,
        "library = ctypes.CDLL(ctypes.util.find_library('m'))\n"
        f"CHANGED = lambda: library.fesetround({mode})\n"
        "CHANGED()\n"
        f"assert library.fegetround() == {mode}",
    )
    assert changed == plain


@NEEDS_X86
def test_flushing_to_zero_changes_nothing(run_python):
    """Subnormal numbers read and written as 0, as programs do that were compiled for speed."""
    plain = in_state(run_python, "CHANGED = None")
    changed = in_state(
        run_python,
        "library = ctypes.CDLL(ctypes.util.find_library('m'))\n"
        "environment = ctypes.create_string_buffer(64)\n"
        "library.fegetenv(environment)\n"
        "status = int.from_bytes(environment.raw[28:32], 'little') | 0x8040\n"
        "environment[28:32] = status.to_bytes(4, 'little')\n"
        "CHANGED = lambda: library.fesetenv(environment)\n"
        "CHANGED()\n"
        "assert (np.full(9, 1e-310) * 0.5 == 0.0).all()",
    )
    assert changed == plain


def test_the_state_of_numpy_changes_nothing():
    x = np.array([5e-324, -1e-310, 1e300, 0.5, -0.5, 1e-300])
    plain = replay(MECHANISM, x, bytes(32))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(replay(MECHANISM, x, bytes(32)), plain)
