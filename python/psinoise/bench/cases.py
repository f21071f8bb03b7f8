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
from psinoise.accounting import Mechanism
from psinoise.accounting.bracket import Bracket
from psinoise.bench import checks
from psinoise.bench.timing import Workload
from psinoise.calibrate import calibrate
from psinoise.compile import compile_law
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
    "member",
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

# The question of "epsilon" and "certified": its anchor value is stated for this one.
DELTA = 1e-8
SAMPLING_RATE = 0.01
EPSILON_MEAN_ABS = 2.0
# What "calibrate" is asked for, at the same delta and sampling rate.
TARGET_EPSILON = 1.0


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
        parts = [self.operation]
        if self.law:
            parts.append(self.law)
        if self.size > 1:
            parts.append(_size_label(self.size))
        if self.operation in _DRAWN:
            parts += [self.dtype, f"{self.threads}t"]
        return "-".join(parts)

    @property
    def group(self) -> str:
        """Rows of one group do the same work and share their reference rows."""
        parts = [self.operation]
        if self.size > 1:
            parts.append(_size_label(self.size))
        if self.operation in _DRAWN:
            parts.append(self.dtype)
        return "-".join(parts)

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
    return tuple(_cases(quick))


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
    """The law of this name with ``mean_abs=size``, or ``scale=size`` where it has no such mean.

    Raises
    ------
    ValueError
        If there is no such law, or it takes neither.
    """
    found = [law for law in FAMILIES if law.__name__ == name]
    if not found:
        raise ValueError(
            f"law must be one of {', '.join(law.__name__ for law in FAMILIES)}, got {name!r}"
        )
    for statistic in ("mean_abs", "scale"):
        try:
            return cast(Noise, found[0](**{statistic: size}))
        except (TypeError, ValueError):
            continue
    raise ValueError(f"law must be made from mean_abs or scale alone, which {name} is not")


def member(name: str) -> NoiseLaw:
    """The standard law of a family, or the law that stands for one of `DESIGNED`."""
    for law in DESIGNED:
        if law.__name__ == name:
            return law(**law.representatives[0])
    return standard_law(name)


def coarse_cactus(width: int) -> Cactus:
    """The cactus law of figure 1 of its paper with so many cells to a sensitivity."""
    return Cactus(cells_per_sensitivity=width, cells=8 * width, tail_ratio=0.9 ** (200 / width))


def points(case: Case) -> NDArray[np.float64]:
    """Arguments of an evaluation: a draw from the law, or its tail probabilities for ``iccdf``."""
    law = standard_law(case.law)
    x = law.sample(case.size, rng=_SEED)
    return np.asarray(law.ccdf(x) if case.operation == "iccdf" else x, dtype=np.float64)


def import_workload(before: str, module: str, file: str | None = None) -> Workload:
    """Nanoseconds that a fresh interpreter needs for an import after others.

    Parameters
    ----------
    before
        statement that is not timed
    module
        what is imported
    file
        where it must come from, so that no other installation is measured
    """
    code = (
        f"{before}; import time; start = time.perf_counter_ns(); import {module}; "
        f"print(time.perf_counter_ns() - start, {module}.__file__)"
    )

    def run() -> int:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        nanoseconds, origin = done.stdout.strip().split(" ", 1)
        if file is not None:
            checks.equal(f"import {module}", origin, file)
        return int(nanoseconds)

    return Workload(run, checks.positive, self_timed=True)


def _cases(quick: bool) -> Iterator[Case]:
    for law in (law.__name__ for law in FAMILIES):
        yield Case("sample", law, 16)
        yield Case("sample", law, _LARGE)
        yield Case("sample", law, _LARGE, threads=2)
        yield Case("sample", law, _LARGE, "float32")
        if not quick:
            yield Case("sample", law, 16, "float32")
            yield Case("sample", law, _LARGE, "float32", threads=2)
            for dtype in ("float64", "float32"):
                for threads in (1, 2):
                    yield Case("sample", law, 1 << 24, dtype, threads)
        yield Case("release", law, _LARGE)
        for operation in ("pdf", "ccdf", "iccdf") if quick else EVALUATIONS:
            yield Case(operation, law, _LARGE)
        for count in (2000,) if quick else (2000, 10**9):
            yield Case("epsilon", law, count)
        if not quick:
            yield Case("release", law, 16)
            yield Case("certified", law, 2000)
            yield Case("calibrate", law, 2000)
        yield Case("compile", law)
    if not quick:
        yield Case("vector", "Gaussian", _LARGE)
    for designed in DESIGNED:
        for dtype in ("float64", "float32"):
            yield Case("sample", designed.__name__, _LARGE, dtype)
        if not quick:
            yield Case("sample", designed.__name__, 16)
            yield Case("sample", designed.__name__, _LARGE, threads=2)
    for width in (20,) if quick else (20, 200):
        yield Case("optimize", Cactus.__name__, width)
    yield Case("import")


def _sample(case: Case) -> Workload:
    law = member(case.law)
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
    law = standard_law(case.law, EPSILON_MEAN_ABS)
    sensitivities = _sensitivities()

    def run() -> float:
        composed = Mechanism(law, next(sensitivities)).composed(case.size, SAMPLING_RATE)
        return composed.estimate.epsilon(DELTA)

    def check(answer: float) -> None:
        checks.epsilon(law, answer, DELTA, case.size, SAMPLING_RATE)

    return Workload(run, check)


def _certified(case: Case) -> Workload:
    law = standard_law(case.law, EPSILON_MEAN_ABS)
    sensitivities = _sensitivities()

    def run() -> Bracket:
        return Mechanism(law, next(sensitivities)).epsilon(DELTA, case.size, SAMPLING_RATE)

    def check(answer: Bracket) -> None:
        checks.bracket(law, answer, DELTA, case.size, SAMPLING_RATE)

    return Workload(run, check)


def _calibrate(case: Case) -> Workload:
    (family,) = (family for family in FAMILIES if family.__name__ == case.law)
    sensitivities = _sensitivities()

    def run() -> Noise:
        found = calibrate(
            family,
            epsilon=TARGET_EPSILON,
            delta=DELTA,
            sensitivity=next(sensitivities),
            count=case.size,
            sampling_rate=SAMPLING_RATE,
        )
        return cast(Noise, found)

    def check(answer: Noise) -> None:
        checks.calibrated(answer, TARGET_EPSILON, DELTA, case.size, SAMPLING_RATE)

    return Workload(run, check)


def _compile(case: Case) -> Workload:
    law = standard_law(case.law)
    return Workload(lambda: compile_law(law), lambda answer: checks.table(law, answer))


def _optimize(case: Case) -> Workload:
    law = coarse_cactus(case.size)

    def run() -> Solution:
        # The law itself would remember its solution.
        return solve(law._grid, law._costs_of_cells, law._bound)

    def check(answer: Solution) -> None:
        checks.optimum(case.size, answer.certificate.largest_kl, 1e-8)
        checks.optimum(case.size, answer.certificate.lower_bound, 1e-8)

    return Workload(run, check)


def _import(_case: Case) -> Workload:
    return import_workload("import numpy", "psinoise", psinoise.__file__)


_OPERATIONS: dict[str, Callable[[Case], Workload]] = {
    "sample": _sample,
    "release": _release,
    "vector": _release,
    **dict.fromkeys(EVALUATIONS, _evaluation),
    "epsilon": _epsilon,
    "certified": _certified,
    "calibrate": _calibrate,
    "compile": _compile,
    "optimize": _optimize,
    "import": _import,
}


def _size_label(size: int) -> str:
    # 2^20 would be shorter to explain, but neither pytest -k nor every shell lets it through.
    for unit, label in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size % unit == 0:
            return f"{size // unit}{label}"
    return f"{size:.0e}".replace("e+0", "e") if size % 10**6 == 0 else str(size)
