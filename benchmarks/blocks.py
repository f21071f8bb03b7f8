"""Many samples in bounded memory: one process, Dask with one worker and with two, a mapped file.

    pip install "psinoise[dask]" distributed
    python benchmarks/blocks.py [--elements 1e9] [--rounds 3] [--file samples.bin]

Each block is drawn and summed, its numbers and its words of 64 bits, on one thread of a process of
its own; the rows of a round come in turn. All must have the sums of one process, bit for bit, and
E|X| that of the law. The ratio is the median over the rounds of one worker's time over two
workers'. On a machine that others use, look at the CPU seconds of the busiest process instead: what
it would take where nothing waits. The last columns are the most memory that a process had, and how
much of that it had before its first block. A mapped file holds the numbers themselves, 8 bytes
each: its row is what the process has without the pages of the file.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import psinoise as pn
from psinoise.adapters.dask import samples

LAW = pn.Airy(mean_abs=2.0)
SEED = 7
BLOCK = 1 << 22
MEGABYTE = 2.0**20


def summary(block: NDArray[np.float64]) -> NDArray[np.uint64]:
    """The sum of absolute values and that of the words, which one other bit changes."""
    parts = np.array_split(block, 64)  # that stay in the cache
    total = math.fsum(float(np.abs(part).sum()) for part in parts)
    words = [part.view(np.uint64).sum() for part in parts]
    return np.array([np.float64(total).view(np.uint64), np.sum(words)], dtype=np.uint64)


def own_memory() -> float:
    """Megabytes of this process that belong to no file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return float(line.split()[1]) / 1024.0
    return math.nan


def peak_memory() -> float:
    """The most megabytes that this process has had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def cpu_seconds() -> float:
    """What this process has had of the processors."""
    return time.process_time()


def blocks(elements: int) -> list[tuple[int, int]]:
    """First elements and lengths."""
    return [(start, min(BLOCK, elements - start)) for start in range(0, elements, BLOCK)]


def alone(elements: int) -> NDArray[np.uint64]:
    """Summaries of all blocks, drawn one after the other."""
    buffer = np.empty(min(BLOCK, elements))
    found = []
    for start, size in blocks(elements):
        part = LAW.sample(out=buffer[:size], rng=SEED, threads=1, offset=start)
        found.append(summary(part))
    return np.concatenate(found)


def mapped(elements: int, path: Path) -> tuple[NDArray[np.uint64], float]:
    """The same into a file, read back from it; and the most memory on the way."""
    most = 0.0
    try:
        with path.open("wb") as file:
            file.truncate(8 * elements)
        for start, size in blocks(elements):
            part = np.memmap(path, np.float64, "r+", offset=8 * start, shape=(size,))
            LAW.sample(out=part, rng=SEED, threads=1, offset=start)
            most = max(most, own_memory())
            del part  # writes nothing more, and gives the pages back
        found = []
        for start, size in blocks(elements):
            part = np.memmap(path, np.float64, "r", offset=8 * start, shape=(size,))
            found.append(summary(np.asarray(part)))
            most = max(most, own_memory())
        return np.concatenate(found), most
    finally:
        path.unlink(missing_ok=True)


def distributed(elements: int, client: Any) -> NDArray[np.uint64]:
    """The same by a cluster, from a Dask array that never exists as a whole."""
    noise = samples(LAW, elements, rng=SEED, chunks=BLOCK)
    made = noise.map_blocks(summary, dtype=np.uint64, chunks=((2,) * len(noise.chunks[0]),))
    return np.asarray(client.compute(made, sync=True))


def main() -> int:
    """Print a table; status 1 if bytes differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=float, default=1e9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--file", type=Path, default=Path("samples.bin"))
    arguments = parser.parse_args()
    elements = int(arguments.elements)

    from dask.distributed import Client, LocalCluster

    def cluster(workers: int) -> Any:
        return LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        )

    times: dict[str, list[float]] = {"alone": [], "1 worker": [], "2 workers": []}
    busiest: dict[str, list[float]] = {name: [] for name in times}
    with cluster(1) as one, cluster(2) as two, Client(one) as first, Client(two) as second:
        clients = {"1 worker": first, "2 workers": second}
        before = {name: max(client.run(peak_memory).values()) for name, client in clients.items()}
        before["alone"] = before["mapped file"] = peak_memory()
        alone(BLOCK)
        for client in clients.values():
            distributed(4 * BLOCK, client)  # imports, tables
        for _ in range(arguments.rounds):
            began, used = time.perf_counter(), cpu_seconds()
            expected = alone(elements)
            times["alone"].append(time.perf_counter() - began)
            busiest["alone"].append(cpu_seconds() - used)
            for name, client in clients.items():
                known = client.run(cpu_seconds)
                began = time.perf_counter()
                found = distributed(elements, client)
                times[name].append(time.perf_counter() - began)
                after = client.run(cpu_seconds)
                busiest[name].append(max(after[key] - known[key] for key in after))
                if found.tobytes() != expected.tobytes():
                    print(f"{name}: other bytes than those of one process")
                    return 1
        peak = {name: max(client.run(peak_memory).values()) for name, client in clients.items()}
        peak["alone"] = peak_memory()
    began, used = time.perf_counter(), cpu_seconds()
    found, peak["mapped file"] = mapped(elements, arguments.file)
    times["mapped file"] = [time.perf_counter() - began]
    busiest["mapped file"] = [cpu_seconds() - used]
    if found.tobytes() != expected.tobytes():
        print("mapped file: other bytes than those of one process")
        return 1

    mean = math.fsum(expected[::2].copy().view(np.float64)) / elements
    error = abs(mean - LAW.mean_abs) / math.sqrt((LAW.var - LAW.mean_abs**2) / elements)
    print(f"{elements:.3g} elements of {LAW!r}, {os.cpu_count()} cores, blocks of {BLOCK:,}")
    print(f"load before: {os.getloadavg()[0]:.1f}; E|X| is off by {error:.1f} standard errors")
    print(f"the whole array would take {8 * elements / MEGABYTE:,.0f} MB\n")
    print(f"{'':<12} {'seconds':>8} {'CPU':>8} {'MB':>8} {'before':>8}")
    for name, taken in times.items():
        seconds = statistics.median(taken)
        print(
            f"{name:<12} {seconds:8.2f} {statistics.median(busiest[name]):8.2f} "
            f"{peak[name]:8.0f} {before[name]:8.0f}"
        )
    for title, taken in (("time", times), ("CPU of the busiest process", busiest)):
        pairs = zip(taken["1 worker"], taken["2 workers"], strict=True)
        ratios = sorted(one / two for one, two in pairs)
        print(f"\n1 worker / 2 workers, {title}: {statistics.median(ratios):.2f} ", end="")
        print(f"({ratios[0]:.2f} to {ratios[-1]:.2f})", end="")
    print()
    return 0 if error < 6.0 else 1


if __name__ == "__main__":
    sys.exit(main())
