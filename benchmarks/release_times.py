"""Whether the time of a release depends on the data: subnormal, huge and ordinary values.

    python benchmarks/release_times.py [--rounds 200] [--size 65536]

Each kind of data is released in turn, on one thread, with and without bounds, in float64 and
float32. The least times of all rounds, which others on the machine disturb least, are compared with
that of ordinary values; the exit status is 1 if one of them is more than a tenth away.
`PSINOISE_ISA` chooses the instruction set.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import psinoise as pn

MOST = 0.1
ORDINARY = "ordinary"


def kinds(size: int, dtype: str) -> dict[str, np.ndarray]:
    """Data that processors, or careless code, treat in different ways."""
    normal = np.random.default_rng(1).normal(size=size)
    tiny = np.finfo(dtype).smallest_normal
    made = {
        ORDINARY: normal * 10.0,
        "subnormal": normal * (tiny / 16.0),
        "smallest": normal * tiny,
        "zero": normal * 0.0,
        "huge": np.clip(normal, -4.0, 4.0) * (np.finfo(dtype).max / 8.0),
        "large": normal * 2.0**58,
        "half cells": (np.floor(normal * 1e3) + 0.5) * (0.3 / 64),
    }
    return {name: values.astype(dtype) for name, values in made.items()}


def main() -> int:
    """Print a table of least times in ns a value, and their ratios to that of ordinary values."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--size", type=int, default=2**16)
    arguments = parser.parse_args()
    lattice = pn.Mechanism(pn.Gaussian(std=1.0), sensitivity=0.3).on_lattice()
    worst = 0.0
    for dtype in ("f8", "f4"):
        data = kinds(arguments.size, dtype)
        out = np.empty(arguments.size, dtype)
        for bounds in (None, (-20.0, 20.0)):
            times: dict[str, list[float]] = {name: [] for name in data}
            for _ in range(arguments.rounds):
                for name, values in data.items():
                    start = time.perf_counter()
                    lattice.release(values, out=out, bounds=bounds, threads=1)
                    times[name].append((time.perf_counter() - start) / arguments.size * 1e9)
            least = {name: min(found) for name, found in times.items()}
            for name, found in least.items():
                ratio = found / least[ORDINARY]
                worst = max(worst, abs(ratio - 1.0))
                print(f"{dtype} bounds={bounds!s:14} {name:12} {found:6.2f} ns {ratio:6.3f}")
    print(f"farthest from 1: {worst:.3f}")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
