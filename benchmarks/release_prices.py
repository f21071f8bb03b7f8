"""What a release costs over the ideal mechanism, of one use and of many.

    python benchmarks/release_prices.py --seconds 300 --seed 1

Each question is of a law, its width and sensitivity, a delta, a number of uses and a sampling rate,
by the certified brackets of both mechanisms. The price is what the lower end for the release is
above the upper end for the ideal law: more than 1e-9 is proven to be too much. The largest is
printed for each law, with its question, and so is the largest of the upper ends, which has the
widths of both brackets in it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import psinoise as pn
from psinoise.noise import FAMILIES

LAWS: dict[str, Callable[[float], Any]] = {
    **{family.__name__: lambda s, law=family: law(scale=s) for family in FAMILIES},
    "Cauchy": lambda s: pn.Cauchy(scale=s),
    "SymmetricStable(alpha=0.5)": lambda s: pn.SymmetricStable(alpha=0.5, scale=s),
    "SymmetricStable(alpha=1.9)": lambda s: pn.SymmetricStable(alpha=1.9, scale=s),
    "Staircase": lambda s: pn.Staircase(epsilon=1.0, sensitivity=s),
    "TruncatedLaplace": lambda s: pn.TruncatedLaplace(epsilon=1.0, delta=1e-3, sensitivity=s),
    "UniformAtom": lambda s: pn.UniformAtom(delta=0.75, sensitivity=s),
}
WHOLE: dict[str, Callable[[float], Any]] = {
    "DiscreteLaplace": lambda s: pn.DiscreteLaplace(epsilon=1.0 / s),
    "DiscreteStable(alpha=0.5)": lambda s: pn.DiscreteStable(alpha=0.5, scale=min(s, 200.0)),
    "DiscreteStable(alpha=1)": lambda s: pn.DiscreteStable(alpha=1.0, scale=s),
    "DiscreteStable(alpha=1.5)": lambda s: pn.DiscreteStable(alpha=1.5, scale=s),
    "DiscreteStable(alpha=2)": lambda s: pn.DiscreteStable(alpha=2.0, scale=s),
}
SENSITIVITIES = (
    0.3,
    1 / 3,
    math.pi,
    1e-9,
    1000 / 3,
    2**53 + 1,
    Fraction(1, 2) + Fraction(1, 2**80),
)
WHOLE_SENSITIVITIES = (1, 2, 3)
WIDTHS = (1.0, 7.0, 100.0, 3000.0)
COUNTS = (1, 2, 20, 1000, 10**6)
RATES = (1.0, 0.1, 0.01, 1e-4)
DELTAS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 0.0)
MOST = 1e-9

Question = tuple[str, Any, float, float, int, float]


def questions(generator: np.random.Generator) -> Iterator[Question]:
    """Law, sensitivity, width, delta, count and rate, one after the other without end."""
    while True:
        for name in (*LAWS, *WHOLE):
            moved = WHOLE_SENSITIVITIES if name in WHOLE else SENSITIVITIES
            lists = (moved, WIDTHS, DELTAS, COUNTS, RATES)
            yield name, *(each[generator.integers(len(each))] for each in lists)


def price(asked: Question) -> tuple[float, float] | None:
    """By how much the lower and the upper end of the release are above the ideal upper end."""
    name, sensitivity, width, delta, count, rate = asked
    law = (LAWS | WHOLE)[name](float(sensitivity) * width)
    mechanism = pn.Mechanism(law, sensitivity)
    ideal = mechanism.epsilon(delta, count, rate)
    if not 0.0 < ideal.upper < math.inf:
        return None
    found = mechanism.on_lattice().epsilon(delta, count, rate)
    return found.lower / ideal.upper - 1.0, found.upper / ideal.upper - 1.0


def main() -> int:
    """Print the largest prices; 1 if one is too high."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--law", choices=sorted(LAWS | WHOLE))
    chosen = parser.parse_args()
    worst: dict[str, tuple[float, object]] = {}
    widest: dict[str, float] = {}
    number, begun = dict.fromkeys(LAWS | WHOLE, 0), time.perf_counter()
    for asked in questions(np.random.default_rng(chosen.seed)):
        if time.perf_counter() - begun > chosen.seconds:
            break
        if chosen.law not in (None, asked[0]):
            continue
        found = price(asked)
        if found is None:
            continue
        name = asked[0]
        number[name] += 1
        worst[name] = max(worst.get(name, (-math.inf, ())), (found[0], str(asked[1:])))
        widest[name] = max(widest.get(name, -math.inf), found[1])
    for name, (highest, at) in worst.items():
        print(f"{name:34} {number[name]:5} {highest:+.1e} {widest[name]:+.1e}  {at}")
    print(f"{sum(number.values())} questions in {time.perf_counter() - begun:.0f} s")
    return int(max((highest for highest, _ in worst.values()), default=0.0) > MOST)


if __name__ == "__main__":
    sys.exit(main())
