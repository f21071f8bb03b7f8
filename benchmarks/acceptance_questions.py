"""The questions of ``acceptance.py``: the grid, random plans, special ones, as plain data.

Combinations for which no worst case is proven are left out by rule: see `proven`.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psinoise as pn
from psinoise import costs


@dataclass(frozen=True)
class Step:
    """Uses of one mechanism: the key of its law in `LAWS`, with a size, and how it is asked for."""

    law: str
    size: float
    count: int = 1
    rate: float = 1.0
    lattice: bool = False
    sensitivity: float = 1.0
    dimension: int = 1
    norm: str = "linf"
    contribution: float | None = None

    def mechanism(self) -> Any:
        """A new mechanism, or an imported loss."""
        noise = LAWS[self.law](self.size)
        if self.law in IMPORTED:
            return noise
        mechanism = pn.Mechanism(
            noise,
            self.sensitivity,
            contribution=self.contribution,
            dimension=self.dimension,
            norm=self.norm,
        )
        return mechanism.on_lattice() if self.lattice else mechanism


@dataclass(frozen=True)
class Question:
    """Epsilon at ``delta`` of the steps; or delta at ``epsilon``, where that is given."""

    name: str
    steps: tuple[Step, ...]
    delta: float = 0.0
    adjacency: str = "add-remove"
    epsilon: float | None = None

    @property
    def digest(self) -> str:
        """The same for equal questions, whatever made them."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]

    def ask(self, mechanisms: list[Any]) -> Any:
        """Ask the library: a single mechanism directly, everything else by an accountant."""
        step = self.steps[0]
        if len(self.steps) == 1 and step.law not in IMPORTED and self.epsilon is None:
            return mechanisms[0].epsilon(self.delta, step.count, step.rate, self.adjacency)
        accountant = pn.Accountant(adjacency=self.adjacency)
        for mechanism, step in zip(mechanisms, self.steps, strict=True):
            accountant.compose(mechanism, step.count, step.rate)
        if self.epsilon is not None:
            return accountant.delta(self.epsilon)
        return accountant.epsilon(self.delta)


def cactus(mean_cost: float) -> Any:
    """Few cells: it is made in a twentieth of a second."""
    cells = 80 if mean_cost <= 1.0 else 160
    return pn.Cactus(mean_cost=mean_cost, cells_per_sensitivity=8, cells=cells, tail_ratio=0.7)


def imported(std: float) -> Any:
    """A Gaussian loss on the lattice of another library."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    from psinoise.adapters.dp_accounting import from_pld

    return from_pld(pld.from_gaussian_mechanism(std, value_discretization_interval=1e-3))


MAXIMUM = costs.maximum(costs.Power(1.0), costs.Power(2.0, 0.5)) + costs.Power(3.0, 0.1)

LAWS: dict[str, Callable[[float], Any]] = {
    "Gaussian": lambda size: pn.Gaussian(std=size),
    "Laplace": lambda size: pn.Laplace(scale=size),
    "Airy": lambda size: pn.Airy(mean_abs=size),
    "Stable": lambda size: pn.SymmetricStable(alpha=1.5, scale=size),
    "Cauchy": lambda size: pn.Cauchy(scale=size),
    "Power": lambda size: pn.Schrodinger(cost=costs.Power(1.5), mean_abs=size),
    "Log": lambda size: pn.Schrodinger(cost=costs.Log(), mean_abs=size),
    "Maximum": lambda size: pn.Schrodinger(cost=MAXIMUM, mean_abs=size),
    "Cactus": cactus,
    "UniformAtom": lambda size: pn.UniformAtom(delta=size),
    "Staircase": lambda size: pn.Staircase(epsilon=size),
    "TruncatedLaplace": lambda size: pn.TruncatedLaplace(epsilon=0.5, delta=size),
    "DiscreteLaplace": lambda size: pn.DiscreteLaplace(scale=size),
    # Laws of special questions.
    "Stable(.12)": lambda size: pn.SymmetricStable(alpha=0.12, scale=size),
    "Stable(.7)": lambda size: pn.SymmetricStable(alpha=0.7, scale=size),
    "Stable(1.8)": lambda size: pn.SymmetricStable(alpha=1.8, scale=size),
    "Cactus(20)": lambda size: pn.Cactus(2.0, **_TWENTY, mean_cost=size),
    "Cactus(abs)": lambda size: pn.Cactus(cost=1.0, **_TWENTY, mean_cost=size),
    "Cactus(200)": lambda size: pn.Cactus(mean_cost=size),
    "imported Gaussian": imported,
}
IMPORTED = ("imported Gaussian",)
_TWENTY: dict[str, Any] = {"cells_per_sensitivity": 20, "cells": 160, "tail_ratio": 0.35}

#: The grid: two sizes for each of 13 families (for three of them it is the delta or the cost).
SIZES: dict[str, tuple[float, ...]] = {
    "Gaussian": (0.8, 20.0),
    "Laplace": (1.0, 30.0),
    "Airy": (1.0, 20.0),
    "Stable": (1.0, 20.0),
    "Cauchy": (1.0, 20.0),
    "Power": (1.0, 20.0),
    "Log": (1.0, 20.0),
    "Maximum": (1.0, 20.0),
    "Cactus": (0.25, 4.0),
    "UniformAtom": (0.05, 1e-7),
    "Staircase": (1.0, 0.1),
    "TruncatedLaplace": (1e-3, 1e-10),
    "DiscreteLaplace": (1.0, 10.0),
}
COUNTS = (1, 2, 5, 20, 100, 2000, 10**4, 10**6, 10**9)
RATES = (1.0, 0.1, 0.01, 1e-3, 1e-5)
DELTAS = (1e-2, 1e-5, 1e-8, 1e-12, 1e-30, 1e-100, 0.0)
ADJACENCIES = ("add-remove", "replace")
#: Log-concave on the whole line: "replace" with sampling is proven for them, off the lattice.
LOG_CONCAVE = ("Gaussian", "Laplace", "Airy", "Power", "Log", "Maximum")
#: Laws whose size is a length, for random plans.
SCALED = (*LOG_CONCAVE, "Stable", "Cauchy", "DiscreteLaplace")


def proven(law: str, rate: float, lattice: bool, adjacency: str) -> bool:
    """Whether the library has a worst case; it refuses the others by design."""
    return adjacency == "add-remove" or rate == 1.0 or (law in LOG_CONCAVE and not lattice)


def full_grid() -> list[Question]:
    """All combinations that are proven."""
    found = []
    for law, sizes in SIZES.items():
        for size, lattice, count, rate, delta, adjacency in itertools.product(
            sizes, (False, True), COUNTS, RATES, DELTAS, ADJACENCIES
        ):
            if proven(law, rate, lattice, adjacency):
                moved = 0.5 if adjacency == "replace" and rate < 1.0 else None
                step = Step(law, size, count, rate, lattice, contribution=moved)
                name = (
                    f"grid/{law}({size:g}){'/lattice' if lattice else ''}/{adjacency}"
                    f"/n={count:.0e}/q={rate:g}/delta={delta:g}"
                )
                found.append(Question(name, (step,), delta, adjacency))
    return found


def strata(question: Question) -> set[tuple[Any, ...]]:
    """What a sample must have at least once: each family with each value of each axis."""
    (step,) = question.steps
    values = (step.count, step.rate, question.delta, step.lattice, question.adjacency, step.size)
    return {(step.law, axis, value) for axis, value in enumerate(values)}


def sampled_grid(size: int, seed: int) -> list[Question]:
    """At least ``size`` questions of the grid, all strata among them, families in turn."""
    shuffled = full_grid()
    random.Random(seed).shuffle(shuffled)
    seen: set[tuple[Any, ...]] = set()
    first: list[Question] = []
    rest: list[Question] = []
    for question in shuffled:
        missing = strata(question) - seen
        seen |= missing
        (first if missing else rest).append(question)
    turns: dict[str, int] = dict.fromkeys(SIZES, 0)
    ranked = []
    for question in rest:
        law = question.steps[0].law
        turns[law] += 1
        ranked.append((turns[law], question))
    ranked.sort(key=lambda pair: pair[0])
    return first + [question for _, question in ranked[: max(size - len(first), 0)]]


def plans(number: int, seed: int) -> Iterator[Question]:
    """Random plans of 2 to 50 steps.

    One of eight is Gaussian noise without sampling, and one of eight a short plan of Gaussian and
    Laplace noise at moderate rates: their truth is known, of the second kind to a few digits.
    """
    for k in range(number):
        draw = random.Random(f"{seed}/{k}")
        kind = {3: "moderate", 7: "gaussian"}.get(k % 8, "mixed")
        length = draw.randint(2, 8) if kind == "moderate" else round(2 * 25 ** draw.random())
        steps = tuple(random_step(draw, kind) for _ in range(length))
        deltas = (1e-2, 1e-5, 1e-8, 1e-12, 1e-30)[: 3 if kind == "moderate" else 5]
        delta = draw.choice(deltas)
        yield Question(f"plan/{k:03}/{kind}/steps={length}/delta={delta:g}", steps, delta)


def random_step(draw: random.Random, kind: str) -> Step:
    """Sizes over four decades, rates over six, counts over five; a tenth on the lattice."""
    size = 10 ** draw.uniform(-1.0, 3.0)
    rate = 1.0 if draw.random() < 0.15 else 10 ** draw.uniform(-6.0, 0.0)
    count = round(10 ** draw.uniform(0.0, 5.0))
    if kind == "gaussian":
        return Step("Gaussian", size, count)
    if kind == "moderate":
        law = draw.choice(("Gaussian", "Laplace"))
        return Step(law, 10 ** draw.uniform(0.0, 2.0), round(count**0.7), max(rate, 1e-4) ** 0.7)
    if draw.random() < 0.1:
        # A staircase with the largest loss that a law of that size would have, and two cacti.
        law, size = draw.choice((("Staircase", 1.0 / size), ("Cactus", 0.25), ("Cactus", 4.0)))
    else:
        law = draw.choice(SCALED)
    return Step(law, size, count, rate, draw.random() < 0.1)


def special() -> Iterator[Question]:
    """Questions that were answered badly once."""

    def one(name: str, delta: float, *steps: Step, **more: Any) -> Question:
        return Question(f"special/{name}", steps, delta, **more)

    for k in range(0, 13, 4):
        yield one(f"A1 largest loss 1e{k}", 0.0, Step("Stable(.12)", 10.0**k))
    yield one("A1 largest loss, delta 1e-6", 1e-6, Step("Stable(.12)", 1e6))
    for size in (1e-15, 1e-17, 1e-290):
        for count in (1, 1000):
            step = Step("UniformAtom", size, count)
            yield one(f"A2 sliver {size:g}, n={count}", 0.0, step, epsilon=0.0)
    yield one("A2 shallow staircase", 0.0, Step("Staircase", 1e-18), epsilon=0.0)
    for length in (3, 5, 10):
        steps = tuple(Step("Gaussian", 2.0 + i / 3.0, 100, 0.01) for i in range(length))
        for epsilon in (0.1, 0.5, 1.0, 1.5, 2.0):
            yield one(f"A3 {length} steps, epsilon={epsilon}", 0.0, *steps, epsilon=epsilon)
    yield one("A4 two cacti", 1e-6, Step("Cactus(20)", 0.25, 2))
    for law in ("Cactus(20)", "Cactus(200)"):
        yield one(f"A5 {law} .25, n=10", 1e-3, Step(law, 0.25, 10))
        for count in (10, 20, 50, 100):
            yield one(f"A5 {law} 1, n={count}", 1e-3, Step(law, 1.0, count, 0.01))
    rare = (Step("Gaussian", 3.0, 60), Step("Gaussian", 1.0, 1000, 1e-5))
    yield one("A6 rare step", 1e-5, *rare)
    yield one("A6 large noise", 1e-5, Step("Gaussian", 2.0, 60), Step("Gaussian", 2e4))
    yield one("A7 discrete Laplace", 1e-5, Step("DiscreteLaplace", 10.0, 10**5, 0.1))
    yield one("A7 Gaussian lattice", 1e-5, Step("Gaussian", 1.0, 10**5, 0.01, lattice=True))
    yield one("A8 Laplace", 1e-8, Step("Laplace", 100.0, 10**5, 0.1))
    for size in (1.0, 10.0, 100.0):
        yield one(f"A8 Cauchy {size:g}", 1e-8, Step("Cauchy", size, 10**5, 1e-3))
    yield one("A9 Laplace", 0.0, Step("Laplace", 0.3, 3, sensitivity=0.1))
    yield one("A9 Staircase", 0.0, Step("Staircase", 1.0, 2))
    draw = random.Random(9)
    for _ in range(20):
        size = draw.random()
        yield one(f"A9 atom {size:.17g}", 0.0, Step("UniformAtom", size), epsilon=0.0)
    for size in (1.0, 3.0, 10.0, 30.0):
        step = Step("DiscreteLaplace", size)
        yield one(f"A9 discrete Laplace {size:g}", 0.0, step, epsilon=0.0)
    yield one("A10 stable 1.8", 0.0, Step("Stable(1.8)", 1e4))
    yield one("A10 stable .7", 0.0, Step("Stable(.7)", 1e10))
    yield one("A12 Laplace", 1e-6, Step("Laplace", 50.0, 20))
    yield one("A12 Staircase", 1e-6, Step("Staircase", 0.5, 2000, 0.01))
    for lattice in (False, True):
        step = Step("Cauchy", 1.0, 2000, 0.01, lattice, sensitivity=1e-3)
        yield one(f"A13 small sensitivity{', lattice' if lattice else ''}", 1e-6, step)
    yield one("A14 cactus", 1e-3, Step("Cactus(abs)", 0.5, 10, 0.01))
    tiny = Step("Gaussian", 1.0, 10, sensitivity=1e-9)
    yield one("A15 tiny sensitivity", 0.0, tiny, epsilon=0.0)
    # Losses that are 0, negative or infinite: no finite number separates them.
    yield one("B1 atoms that end", 0.45, Step("UniformAtom", 0.05, 100, 0.1))
    yield one("B1 atoms that end, half", 0.5, Step("UniformAtom", 0.05, 100, 0.1))
    yield one("B2 lattice of atoms", 1e-5, Step("UniformAtom", 1e-7, 2, lattice=True))


def close() -> Iterator[Question]:
    """Noise far above the sensitivity, at deltas that a tenth of the loss of all uses decides."""
    for law, size, count in itertools.product(
        (*LOG_CONCAVE, "Stable", "Cauchy"), (1e7, 1e10, 1e13), (1, 20, 2000, 10**6, 10**9)
    ):
        delta = 0.1 * math.sqrt(count) / size
        yield Question(f"close/{law}({size:g})/n={count:.0e}", (Step(law, size, count),), delta)


def others() -> Iterator[Question]:
    """Laws in cells at a sensitivity that is not theirs, mixtures, imported losses, vectors."""
    cells = (
        ("UniformAtom", 0.05),
        ("Staircase", 1.0),
        ("Cactus", 0.25),
        ("TruncatedLaplace", 1e-6),
    )
    for law, size in cells:
        for sensitivity, count, rate in itertools.product((0.3, 2.0), (1, 50), (1.0, 0.01)):
            step = Step(law, size, count, rate, sensitivity=sensitivity)
            name = f"cells/{law}({size:g})/s={sensitivity}/n={count}/q={rate}"
            yield Question(name, (step,), 1e-5)
        for smooth in ("Gaussian", "Laplace", "Cauchy"):
            steps = (Step(law, size, 3, 0.1), Step(smooth, 3.0, 50, 0.1))
            yield Question(f"cells/{law}({size:g})/with {smooth}", steps, 1e-5)
    loss = Step("imported Gaussian", 4.0, 10)
    yield Question("imported/alone", (loss,), 1e-5)
    yield Question("imported/with Gaussian", (loss, Step("Gaussian", 3.0, 10, 0.1)), 1e-5)
    yield Question("imported/with Staircase", (loss, Step("Staircase", 0.1, 5)), 1e-5)
    vectors = (
        ("Gaussian", "l2", 1000), ("Gaussian", "l1", 1000), ("Gaussian", "linf", 1000),
        ("Laplace", "l1", 1000), ("Laplace", "linf", 7), ("Airy", "linf", 7), ("Cauchy", "linf", 7),
        ("Staircase", "linf", 7),
    )  # fmt: skip
    for law, norm, dimension in vectors:
        size = 1.0 if law == "Staircase" else 20.0
        joint = law == "Gaussian" or norm == "l1"
        for lattice, count, rate, adjacency in itertools.product(
            (False, True), (1, 500), (1.0, 0.02), ADJACENCIES
        ):
            # One coin for all coordinates is proven for norms that become one coordinate.
            if (rate < 1.0 and not joint) or (lattice and (norm != "linf" or rate < 1.0)):
                continue
            if not proven(law, rate, lattice, adjacency):
                continue
            moved = 0.5 if adjacency == "replace" and rate < 1.0 else None
            shape = {"dimension": dimension, "norm": norm, "contribution": moved}
            step = Step(law, size, count, rate, lattice, **shape)  # type: ignore[arg-type]
            name = (
                f"vector/{law}/{norm}{'/lattice' if lattice else ''}/{adjacency}/n={count}/q={rate}"
            )
            yield Question(name, (step,), 1e-6, adjacency)


def all_questions(sample: int | None, number_of_plans: int, seed: int) -> list[Question]:
    """Everything that is asked, in an order that mixes fast and slow."""
    grid = full_grid() if sample is None else sampled_grid(sample, seed)
    found = [*grid, *plans(number_of_plans, seed), *special(), *close(), *others()]
    random.Random(seed).shuffle(found)
    if len({question.name for question in found}) != len(found):
        raise AssertionError("names of questions must differ")
    return found
