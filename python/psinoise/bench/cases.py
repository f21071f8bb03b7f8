"""The matrix: every law in every operation.

A law enters by being in `psinoise.noise.LAWS` or `DESIGNED`, once for each of its representatives;
the latter are sampled, and of a cactus law the solution is timed. An operation
enters as one entry of `_OPERATIONS`, its sizes as one line of `matrix`, its reference rows in
:mod:`psinoise.bench.references`.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import psinoise
from psinoise.accounting import Accountant
from psinoise.bench import checks
from psinoise.bench.timing import Workload
from psinoise.calibration import calibrate
from psinoise.compile import compile_law
from psinoise.mechanisms import Mechanism
from psinoise.noise import DESIGNED, FAMILIES, Cactus, Noise, NoiseLaw
from psinoise.optimize import Solution, solve

__all__ = [
    "DELTA",
    "EPSILON_MEAN_ABS",
    "EVALUATIONS",
    "SAMPLING_RATE",
    "TARGET_EPSILON",
    "Case",
    "coarse_cactus",
    "find",
    "import_workload",
    "matrix",
    "optimum",
    "points",
    "standard_law",
]

#: Elementwise functions of a law.
EVALUATIONS = ("pdf", "logpdf", "ccdf", "iccdf")

# What draws noise, for elements of a type and on threads.
_DRAWN = ("sample", "release", "vector")

# Fewer elements are learned by the branch predictor when they repeat.
_LARGE = 1 << 20
_SEED = 20260131

# The question of "epsilon" and "certified".
DELTA = 1e-8
SAMPLING_RATE = 0.01
EPSILON_MEAN_ABS = 2.0
# What "calibrate" is asked for, at the same delta and sampling rate.
TARGET_EPSILON = 1.0

# The divergence of the cactus law of figure 1 of its paper, by cells to a sensitivity: by an
# interior point method with dense algebra that verified every shift to 1e-9.
_OPTIMA = {20: 1.7283085033, 200: 1.7272985311}


@dataclass(frozen=True)
class Case:
    """One row of the matrix.

    Parameters
    ----------
    operation
        "sample", "release", "vector" (a release with a bound in the l2 norm), one of
        `EVALUATIONS`, "epsilon" (the estimate), "certified" (its bounds), "calibrate", "compile",
        "optimize" or "import"
    law
        name of a family in `psinoise.noise.FAMILIES`, or of a law in `psinoise.noise.DESIGNED`;
        empty where no law is involved
    size
        elements; for "epsilon", "certified" and "calibrate" the number of compositions, for
        "optimize" cells to a sensitivity
    dtype, threads
        of "sample", "release" and "vector"; the other operations have one choice
    """

    operation: str
    law: str = ""
    size: int = 1
    dtype: str = "float64"
    threads: int = 1

    @property
    def name(self) -> str:
        """Unique in the matrix; what ``--select`` looks at."""
        drawn = [self.dtype, f"{self.threads}t"] if self.operation in _DRAWN else []
        return "-".join(filter(None, [self.operation, self.law, _size_label(self.size), *drawn]))

    @property
    def group(self) -> str:
        """Rows of one group do the same work and share their reference rows."""
        dtype = self.dtype if self.operation in _DRAWN else ""
        return "-".join(filter(None, [self.operation, _size_label(self.size), dtype]))

    @property
    def elements(self) -> int:
        """By how many the time is divided; compositions are not elements."""
        return self.size if self.operation in (*_DRAWN, *EVALUATIONS) else 1

    def shrunk(self, largest: int) -> Case:
        """This case with at most so many elements, for running it without timing it."""
        return replace(self, size=min(self.size, largest)) if self.elements > 1 else self

    def make(self) -> Workload:
        """Prepare the data, so that only the operation remains to be timed."""
        return _OPERATIONS[self.operation](self)


def matrix(*, quick: bool = False) -> tuple[Case, ...]:
    """All cases, or the few that ``--quick`` has time for."""
    return tuple(_quick() if quick else itertools.chain(_quick(), _slow()))


def find(name: str) -> Case:
    """The case of the matrix with this name.

    Raises
    ------
    ValueError
        If there is none.
    """
    for case in matrix():
        if case.name == name:
            return case
    raise ValueError(f"name must be that of a case, got {name!r}")


def standard_law(name: str, size: float = 1.0) -> Noise:
    """The member of this family with ``mean_abs=size``, or ``scale=size`` where that is infinite.

    Raises
    ------
    ValueError
        If there is no such family.
    """
    for law in FAMILIES:
        if law.__name__ == name:
            try:
                return cast(Noise, law(mean_abs=size))
            except ValueError:
                return cast(Noise, law(scale=size))
    raise ValueError(
        f"law must be one of {', '.join(law.__name__ for law in FAMILIES)}, got {name!r}"
    )


def coarse_cactus(width: int) -> Cactus:
    """The cactus law of figure 1 of its paper with so many cells to a sensitivity."""
    return Cactus(cells_per_sensitivity=width, cells=8 * width, tail_ratio=0.9 ** (200 / width))


def optimum(width: int, found: float, tolerance: float) -> None:
    """Check the divergence of `coarse_cactus`."""
    checks.near("largest divergence", found, _OPTIMA[width], tolerance)


def points(case: Case) -> NDArray[np.float64]:
    """Arguments of an evaluation: a draw from the law, or its tail probabilities for ``iccdf``."""
    law = standard_law(case.law)
    x = law.sample(case.size, rng=_SEED)
    return np.asarray(law.ccdf(x) if case.operation == "iccdf" else x, dtype=np.float64)


def import_workload(before: str, module: str, file: str) -> Workload:
    """Nanoseconds of an import in a fresh interpreter, after a statement that is not timed.

    The module must come from the file, so that no other installation is measured.
    """
    code = (
        f"{before}; import time; start = time.perf_counter_ns(); import {module}; "
        f"end = time.perf_counter_ns(); assert {module}.__file__ == {file!r}; print(end - start)"
    )
    command = [sys.executable, "-c", code]
    return Workload(
        lambda: int(subprocess.run(command, check=True, capture_output=True).stdout),
        checks.finite,
        self_timed=True,
    )


def _quick() -> Iterator[Case]:
    for law in (law.__name__ for law in FAMILIES):
        yield Case("sample", law, 16)
        yield Case("sample", law, _LARGE)
        yield Case("sample", law, _LARGE, threads=2)
        yield Case("sample", law, _LARGE, "float32")
        yield Case("release", law, _LARGE)
        for operation in ("pdf", "ccdf", "iccdf"):
            yield Case(operation, law, _LARGE)
        yield Case("epsilon", law, 2000)
        yield Case("compile", law)
    for designed in DESIGNED:
        for dtype in ("float64", "float32"):
            yield Case("sample", designed.__name__, _LARGE, dtype)
    yield Case("optimize", Cactus.__name__, 20)
    yield Case("import")


def _slow() -> Iterator[Case]:
    for law in (law.__name__ for law in FAMILIES):
        yield Case("sample", law, 16, "float32")
        yield Case("sample", law, _LARGE, "float32", threads=2)
        for dtype, threads in itertools.product(("float64", "float32"), (1, 2)):
            yield Case("sample", law, 1 << 24, dtype, threads)
        yield Case("release", law, 16)
        yield Case("logpdf", law, _LARGE)
        yield Case("epsilon", law, 10**9)
        yield Case("certified", law, 2000)
        yield Case("calibrate", law, 2000)
    for designed in DESIGNED:
        yield Case("sample", designed.__name__, 16)
        yield Case("sample", designed.__name__, _LARGE, threads=2)
    yield Case("vector", "Gaussian", _LARGE)
    yield Case("optimize", Cactus.__name__, 200)


def _sample(case: Case) -> Workload:
    designed = {law.__name__: law for law in DESIGNED}.get(case.law)
    law: NoiseLaw = designed(**designed.representatives[0]) if designed else standard_law(case.law)
    # Warm memory: the first touch of fresh pages costs more than the sampling.
    out = np.empty(case.size, dtype=case.dtype)
    rng = np.random.Generator(np.random.PCG64(_SEED))

    def run() -> NDArray[Any]:
        law.sample(out=out, rng=rng, threads=case.threads)
        return out

    return Workload(run, lambda answer: checks.sample(law, answer), case.size)


def _release(case: Case) -> Workload:
    law = standard_law(case.law)
    dimension, norm = (case.size, "l2") if case.operation == "vector" else (1, "linf")
    lattice = Mechanism(law, dimension=dimension, norm=norm).on_lattice()
    # Multiples of every grid, so that what is added can be seen.
    x = np.arange(case.size, dtype=case.dtype) % 1024
    out = np.empty_like(x)

    def run() -> NDArray[Any]:
        lattice.release(x, out=out, threads=case.threads)
        return out

    return Workload(run, lambda answer: checks.released(law, answer - x, lattice.grid), case.size)


def _evaluation(case: Case) -> Workload:
    law, x = standard_law(case.law), points(case)
    function, out = getattr(law, case.operation), np.empty_like(x)
    return Workload(
        lambda: function(x, out=out, threads=case.threads),
        lambda answer: checks.evaluation(law, case.operation, x, answer),
        case.size,
    )


def _sensitivities() -> Iterator[float]:
    """Of one mechanism for each call, a few ulp apart: the accounting keeps what it made for equal
    ones, and what is timed is the first question about a mechanism."""
    return (1.0 + 2.0**-50 * call for call in itertools.count())


def _epsilon(case: Case) -> Workload:
    law, sensitivities = standard_law(case.law, EPSILON_MEAN_ABS), _sensitivities()

    def composed() -> Accountant:
        return Mechanism(law, next(sensitivities)).composed(case.size, SAMPLING_RATE)

    known = composed()
    if case.operation == "epsilon":
        return Workload(
            lambda: composed().estimate.epsilon(DELTA),
            lambda answer: checks.epsilon(known, answer, DELTA),
        )
    return Workload(
        lambda: composed().epsilon(DELTA), lambda answer: checks.bracket(known, answer, DELTA)
    )


def _calibrate(case: Case) -> Workload:
    (family,) = (family for family in FAMILIES if family.__name__ == case.law)
    sensitivities = _sensitivities()
    asked: dict[str, Any] = {"delta": DELTA, "count": case.size, "sampling_rate": SAMPLING_RATE}

    def run() -> Noise:
        sensitivity = next(sensitivities)
        found = calibrate(family, epsilon=TARGET_EPSILON, sensitivity=sensitivity, **asked)
        return cast(Noise, found)

    def check(answer: Noise) -> None:
        # Epsilon falls about as fast as the scale grows.
        epsilon = float(Mechanism(answer).epsilon(**asked))
        checks.near("epsilon", epsilon, TARGET_EPSILON * (1.0 - 1e-4), TARGET_EPSILON * 1e-4)

    return Workload(run, check)


def _compile(case: Case) -> Workload:
    law = standard_law(case.law)
    return Workload(lambda: compile_law(law), lambda answer: checks.table(law, answer))


def _optimize(case: Case) -> Workload:
    law = coarse_cactus(case.size)

    def check(answer: Solution) -> None:
        optimum(case.size, answer.certificate.largest_kl, 1e-8)
        optimum(case.size, answer.certificate.lower_bound, 1e-8)

    # The law itself would remember its solution.
    return Workload(lambda: solve(law._grid, law._costs_of_cells, law._bound), check)


_OPERATIONS: dict[str, Callable[[Case], Workload]] = {
    "sample": _sample,
    "release": _release,
    "vector": _release,
    **dict.fromkeys(EVALUATIONS, _evaluation),
    "epsilon": _epsilon,
    "certified": _epsilon,
    "calibrate": _calibrate,
    "compile": _compile,
    "optimize": _optimize,
    "import": lambda _: import_workload("import numpy", "psinoise", psinoise.__file__),
}


def _size_label(size: int) -> str:
    # 2^20 would be shorter to explain, but neither pytest -k nor every shell lets it through.
    for unit, label in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size % unit == 0:
            return f"{size // unit}{label}"
    if size == 1:
        return ""
    return f"{size:.0e}".replace("e+0", "e") if size % 10**6 == 0 else str(size)
