"""Instruments: interleaved timing in one process, and a verdict that may be "nothing shown".

Two rows are compared in pairs (A, B, A, B, ...) because clock speed, temperature and neighbors
change within seconds: both halves of a pair meet the same machine. What is reported is the median
of the ratios of pairs, with the order-statistic interval around it (`scipy.stats.quantile_test`):
it assumes nothing about the shape of the distribution, and timings have a long right tail. It does
assume independent pairs; a disturbance that outlasts several pairs makes it too narrow, so a small
difference wants a second run.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = ["LEAST_ROUNDS", "Band", "Workload", "collector_off", "interleave", "measure"]

#: The fewest pairs whose smallest and largest ratio hold the median with 95 %: 1 - 2 / 2**6.
LEAST_ROUNDS = 6
# More rounds than this narrow the band by less than a disturbance moves it.
_MOST_ROUNDS = 201
# Shorter measurements are repeated: the clock and the loop cost about 50 ns per call.
_SHORTEST_NS = 500_000

Clock = Callable[[], int]


@dataclass(frozen=True)
class Workload:
    """Something to time, an assertion on its answer, and by how many its time is divided."""

    run: Callable[[], Any]
    check: Callable[[Any], None]
    elements: int = 1


@dataclass(frozen=True)
class Band:
    """A median and the interval that holds the true one with 95 %."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: ArrayLike) -> Band:
        """The band of independent values, at least one; unbounded if they are fewer than
        `LEAST_ROUNDS`."""
        found = np.asarray(values, dtype=np.float64)
        low, high = 0.0, math.inf
        if found.size >= LEAST_ROUNDS:
            low, high = stats.quantile_test(found, q=1.0, p=0.5).confidence_interval(0.95)
        return cls(float(np.median(found)), float(low), float(high))

    @property
    def shows_difference(self) -> bool:
        """False if the band covers 1."""
        return not (self.low <= 1.0 <= self.high)

    def __str__(self) -> str:
        if not self.shows_difference:
            return "no difference shown"
        return f"{self.median:.3g} [{self.low:.3g}, {self.high:.3g}]"


def measure(workload: Workload, repeats: int = 1, clock: Clock = time.perf_counter_ns) -> float:
    """Nanoseconds of one call, as the mean of consecutive ones."""
    run, start = workload.run, clock()
    for _ in range(repeats):
        run()
    return max(clock() - start, 1) / repeats


def interleave(
    workloads: Sequence[Workload], seconds: float, *, clock: Clock = time.perf_counter_ns
) -> NDArray[np.float64]:
    """Time workloads in turn, round after round, without the garbage collector.

    Everything runs once to warm up (code, caches, first touch of buffers), which is when its answer
    is checked (AssertionError if it is wrong), and once to see how often a short one must be
    repeated. At least `LEAST_ROUNDS` rounds are made, whatever they cost.

    Returns
    -------
    ndarray of shape (len(workloads), rounds)
        Nanoseconds per element.
    """
    with collector_off():
        stop = clock() + int(1e9 * seconds)
        for work in workloads:
            work.check(work.run())
        repeats = [math.ceil(_SHORTEST_NS / measure(work, 1, clock)) for work in workloads]
        rounds: list[list[float]] = []
        while len(rounds) < LEAST_ROUNDS or (len(rounds) < _MOST_ROUNDS and clock() < stop):
            rounds.append([measure(*row, clock) for row in zip(workloads, repeats, strict=True)])
    return np.array(rounds).T / [[work.elements] for work in workloads]


@contextmanager
def collector_off() -> Iterator[None]:
    """A collection in the middle of a measurement belongs to whoever made the garbage before."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
