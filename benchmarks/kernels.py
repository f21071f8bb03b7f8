"""What kernels cost, beside their rivals and the limits of the machine.

    python benchmarks/kernels.py [--select sample] [--seconds 2]

Every line is a group of rows that are timed in turn in one process, on one thread and into warm
arrays: medians in ns a value (a call, where it says so), and the median ratio of each row to the
first. `store` fills the same memory, `ChaCha8` is the stream alone; rows of `mkl_random` appear
where it is installed. `PSINOISE_ISA` chooses the instruction set.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import fft, special

import psinoise as pn
from psinoise import _core
from psinoise.bench.timing import Workload, interleave
from psinoise.release import exact_sum

MANY = 2**20
KEY = bytes(range(32))

Rows = dict[str, Callable[[], Any]]
Group = tuple[str, int, Rows]


def samples() -> Iterator[Group]:
    """Laws of all kinds over the stream alone, in both types."""
    generator = np.random.default_rng(1)
    out, narrow = np.empty(MANY), np.empty(MANY, np.float32)
    laws = {
        "Gaussian": pn.Gaussian(std=1.0),
        "Laplace": pn.Laplace(scale=1.0),
        "Airy": pn.Airy(std=1.0),
        "Cauchy": pn.Cauchy(scale=1.0),
        "Staircase": pn.Staircase(epsilon=1.0),
        "Cactus": pn.Cactus(mean_cost=4.0),
    }
    rows: Rows = {
        "ChaCha8": partial(_core.stream_words, KEY, 8, 0, MANY),
        "store": partial(out.fill, 1.0),
        "NumPy normal": partial(generator.standard_normal, out=out),
    }
    for name, law in laws.items():
        rows[name] = partial(law.sample, out=out, threads=1)
        rows[f"{name}, float32"] = partial(law.sample, out=narrow, dtype=np.float32, threads=1)
    yield "sample", MANY, rows


def calls() -> Iterator[Group]:
    """Calls for a few numbers, and sizes from small to large."""
    normal, cauchy = pn.Gaussian(std=1.0), pn.Cauchy(scale=1.0)
    generator = np.random.default_rng(1)
    sizes: Rows = {f"sample({size})": partial(normal.sample, size) for size in (1, 16, 256)}
    sizes["a Generator, 16"] = partial(normal.sample, 16, rng=generator)
    yield "sample, a call", 1, sizes
    if importlib.util.find_spec("mkl_random") is None:
        return
    import mkl_random

    rival = mkl_random.MKLRandomState(1)
    for size in (256, 1024, 4096, MANY):
        pairs: Rows = {
            "normal": partial(normal.sample, size, threads=1 if size > 2**16 else None),
            "mkl_random": partial(rival.standard_normal, size),
        }
        yield f"sample, normal of {size}", size, pairs
        heavy: Rows = {
            "Cauchy": partial(cauchy.sample, size, threads=1 if size > 2**16 else None),
            "mkl_random": partial(rival.standard_cauchy, size),
        }
        yield f"sample, Cauchy of {size}", size, heavy


def values() -> Iterator[Group]:
    """Evaluation of the Gaussian beside `scipy.special`, of the Airy law and of laws in cells."""
    out = np.empty(MANY)
    generator = np.random.default_rng(2)
    uniform = generator.random(MANY)
    law = pn.Gaussian(std=1.0)
    probabilities = {
        "center": 0.2 + 0.6 * uniform,
        "uniform": uniform,
        "tails": np.where(uniform < 0.5, 0.25 * 10.0 ** (-300.0 * uniform), 1.0 - 0.2 * uniform**9),
        "0 and 1": np.round(uniform),
        "no probability": 1.0 + uniform,
    }
    for place, p in probabilities.items():
        ours = partial(law.icdf, p, out=out, threads=1)
        yield f"icdf, {place}", MANY, {"ours": ours, "ndtri": partial(special.ndtri, p, out=out)}
    points = {
        "samples": generator.standard_normal(MANY),
        "center": uniform - 0.5,
        "0 to 1": uniform,
        "2 to 5": 2.0 + 3.0 * uniform,
        "4 to 8": 4.0 + 4.0 * uniform,
        "tails": np.where(uniform < 0.5, -1.0, 1.0) * (4.0 + 30.0 * uniform),
        "beyond 40": 40.0 + 20.0 * uniform,
        "NaN": np.full(MANY, np.nan),
    }
    for place, x in points.items():
        ours = partial(law.cdf, x, out=out, threads=1)
        yield f"cdf, {place}", MANY, {"ours": ours, "ndtr": partial(special.ndtr, x, out=out)}
    airy = pn.Airy(std=1.0)
    drawn = airy.sample(MANY, rng=1)
    rows: Rows = {
        name: partial(getattr(airy, name), drawn, out=out, threads=1)
        for name in ("pdf", "logpdf", "ccdf")
    }
    rows["scipy airy"] = partial(special.airy, drawn)
    yield "Airy", MANY, rows
    for cells in (pn.Staircase(epsilon=1.0), pn.Cactus(mean_cost=4.0)):
        at = cells.sample(MANY, rng=1)
        rows = {n: partial(getattr(cells, n), at, out=out, threads=1) for n in ("pdf", "cdf")}
        rows["icdf"] = partial(cells.icdf, uniform, out=out, threads=1)
        yield f"cells, {type(cells).__name__}", MANY, rows


def transforms() -> Iterator[Group]:
    """The spectrum of some losses times another, by our transform and by that of SciPy."""
    sizes = {f"2^{bits}": 2**bits for bits in range(12, 22, 3)} | {"3 2^12": 3 * 2**12}
    for name, size in sizes.items():
        # Factors of modulus 1: products that underflow would take longer.
        mass = np.zeros(size)
        mass[3] = 1.0
        product = np.ones(size // 2 + 1, complex)
        other = np.ones(size // 2 + 1, complex)

        def scipy(mass: Any = mass, other: Any = other) -> None:
            other *= fft.rfft(mass)

        ours = partial(_core.Transform(size).compose_into, mass, 1, product)
        yield f"transform of {name}", size, {"SciPy": scipy, "ours": ours}


def sums() -> Iterator[Group]:
    """Sums without rounding, of values that are clipped and rounded to a grid."""
    values = 100.0 * np.random.default_rng(3).random(MANY)
    for kind in (np.float64, np.float32, np.int64):
        of = values.astype(kind)
        rows: Rows = {
            "exact_sum": partial(exact_sum, of, 2.0**-20, bounds=(0.0, 100.0)),
            "NumPy clip, sum": lambda of=of: of.clip(0, 100).sum(),
            "NumPy sum": of.sum,
        }
        yield f"exact_sum, {of.dtype}", MANY, rows


def main() -> int:
    """Print the groups that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--select", default="", help="part of the name of a group")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each group")
    arguments = parser.parse_args()
    print(f"instruction set {pn.build_config()['isa']}")
    for part in (samples, calls, values, transforms, sums):
        for name, elements, rows in part():
            if arguments.select not in name:
                continue
            works = [Workload(run, lambda answer: None, elements) for run in rows.values()]
            times = interleave(works, arguments.seconds)
            for row, found in zip(rows, times, strict=True):
                ratio = np.median(found / times[0])
                print(f"{name:24} {row:20} {np.median(found):10.3f} ns {ratio:8.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
