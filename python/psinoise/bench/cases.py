"""The matrix: every law in every operation.

A law enters by being in `psinoise.noise.LAWS` or `DESIGNED`, once for each of its representatives;
the latter are sampled. An operation enters as one entry of `_OPERATIONS`, its sizes as one line of
`matrix`, its reference rows in :mod:`psinoise.bench.references`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from psinoise.bench import checks
from psinoise.bench.timing import Workload
from psinoise.compile import compile_law
from psinoise.mechanisms import Mechanism
from psinoise.noise import DESIGNED, FAMILIES, Noise, NoiseLaw

__all__ = ["EVALUATIONS", "Case", "find", "matrix", "points", "standard_law"]

#: Elementwise functions of a law.
EVALUATIONS = ("pdf", "logpdf", "ccdf", "iccdf")

# Fewer elements are learned by the branch predictor when they repeat.
_LARGE = 1 << 20
_SEED = 20260131


@dataclass(frozen=True)
class Case:
    """One row of the matrix.

    The operation is "sample", "release", "vector" (a release with a bound in the l2 norm), one of
    `EVALUATIONS`, or "compile": the tables of a law, one element. The law is the name of a family
    in `FAMILIES` or of one in `DESIGNED`. Types and threads are of what draws noise.
    """

    operation: str
    law: str
    size: int = 1
    dtype: str = "float64"
    threads: int = 1

    @property
    def name(self) -> str:
        """Unique in the matrix; what ``--select`` looks at."""
        drawn = self.operation in ("sample", "release", "vector")
        choice = [self.dtype, f"{self.threads}t"] if drawn else []
        return "-".join(filter(None, [self.operation, self.law, _size_label(self.size), *choice]))

    def shrunk(self, largest: int) -> Case:
        """This case with at most so many elements, for running it without timing it."""
        return replace(self, size=min(self.size, largest))

    def make(self) -> Workload:
        """Prepare the data, so that only the operation remains to be timed."""
        return _OPERATIONS[self.operation](self)


def matrix(*, quick: bool = False) -> tuple[Case, ...]:
    """All cases, or the few that ``--quick`` has time for."""
    return tuple(_quick() if quick else itertools.chain(_quick(), _slow()))


def find(name: str) -> Case:
    """The case of the matrix with this name; ValueError if there is none."""
    for case in matrix():
        if case.name == name:
            return case
    raise ValueError(f"name must be that of a case, got {name!r}")


def standard_law(name: str) -> Noise:
    """The member of a family with ``mean_abs=1``, or ``scale=1`` where that is infinite."""
    family = next(law for law in FAMILIES if law.__name__ == name)
    try:
        return cast(Noise, family(mean_abs=1.0))
    except ValueError:
        return cast(Noise, family(scale=1.0))


def points(case: Case) -> NDArray[np.float64]:
    """Arguments of an evaluation: a draw from the law, or its tail probabilities for ``iccdf``."""
    law = standard_law(case.law)
    x = law.sample(case.size, rng=_SEED)
    return np.asarray(law.ccdf(x) if case.operation == "iccdf" else x, dtype=np.float64)


def _quick() -> Iterator[Case]:
    for law in (law.__name__ for law in FAMILIES):
        yield Case("sample", law, 16)
        yield from (Case("sample", law, _LARGE, dtype) for dtype in ("float64", "float32"))
        for operation in ("release", "pdf", "ccdf", "iccdf"):
            yield Case(operation, law, _LARGE)
        yield Case("compile", law)
    yield from (Case("sample", law.__name__, _LARGE) for law in DESIGNED)


def _slow() -> Iterator[Case]:
    for law in (law.__name__ for law in FAMILIES):
        yield Case("sample", law, 16, "float32")
        for dtype in ("float64", "float32"):
            yield Case("sample", law, _LARGE, dtype, threads=2)
            yield from (Case("sample", law, 1 << 24, dtype, threads) for threads in (1, 2))
        yield Case("release", law, 16)
        yield Case("logpdf", law, _LARGE)
    for law in (law.__name__ for law in DESIGNED):
        yield Case("sample", law, 16)
        yield Case("sample", law, _LARGE, "float32")
        yield Case("sample", law, _LARGE, threads=2)
    yield Case("vector", "Gaussian", _LARGE)


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


def _compile(case: Case) -> Workload:
    law = standard_law(case.law)
    return Workload(lambda: compile_law(law), lambda answer: checks.table(law, answer))


_OPERATIONS: dict[str, Callable[[Case], Workload]] = {
    "sample": _sample,
    "release": _release,
    "vector": _release,
    **dict.fromkeys(EVALUATIONS, _evaluation),
    "compile": _compile,
}


def _size_label(size: int) -> str:
    # 2^20 would be shorter to explain, but neither pytest -k nor every shell lets it through.
    for unit, label in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size % unit == 0:
            return f"{size // unit}{label}"
    return "" if size == 1 else str(size)
