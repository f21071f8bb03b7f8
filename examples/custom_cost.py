"""The best noise for a cost of your own: a cost in five lines, then noise, accounting and a plot.

Say that errors up to 1 hurt with their square and larger ones in proportion (Huber's cost). The law
of least Fisher information at a given mean cost is the best noise for many compositions of small
sensitivity (Alghamdi et al., "Schrodinger mechanisms", theorem 3); `psinoise.Schrodinger` makes it
from the cost. The table compares it with the usual laws *at the same mean cost*: how much Fisher
information each one has more, and what that means for epsilon. The gain over the best of them is
small, and that is worth knowing too.

    pip install "psinoise[plot]"
    python examples/custom_cost.py --mean-cost 0.5 --plot custom_cost.png
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

import psinoise as pn
from psinoise import costs

Float = NDArray[np.float64]


def huber(x: Float) -> Float:
    """Squares up to 1, straight lines beyond: smooth but for its second derivative at 1."""
    return np.where(np.abs(x) <= 1.0, 0.5 * x**2, np.abs(x) - 0.5)


HUBER = costs.Custom(huber, breakpoints=[1.0])

SENSITIVITY, COUNT, DELTA = 0.01, 10_000, 1e-6


class Row(NamedTuple):
    """One law at the mean cost."""

    noise: pn.Noise
    excess: float
    """Fisher information beyond the least possible, relative."""
    epsilon: float


def at_mean_cost(law: Callable[..., pn.Noise], cost: costs.Cost, mean_cost: float) -> pn.Noise:
    """The member of a family of laws that has the mean cost."""

    def miss(log_scale: float) -> float:
        return float(np.log(law(scale=np.exp(log_scale)).expected_cost(cost) / mean_cost))

    return law(scale=float(np.exp(brentq(miss, -40.0, 40.0, xtol=1e-13))))


def table(cost: costs.Cost, mean_cost: float) -> list[Row]:
    """The optimal law and the usual ones, best first in Fisher information."""
    best = pn.Schrodinger(cost=cost, mean_cost=mean_cost)
    least = best.fisher_information()
    laws = [at_mean_cost(law, cost, mean_cost) for law in (pn.Gaussian, pn.Airy, pn.Laplace)]
    # The sensitivity is small against the noise, as the theorem wants it.
    sensitivity = SENSITIVITY * best.std
    rows = [
        Row(
            noise,
            noise.fisher_information() / least - 1.0,
            float(pn.Mechanism(noise, sensitivity).composed(COUNT).estimate.epsilon(DELTA)),
        )
        for noise in (best, *laws)
    ]
    return sorted(rows, key=lambda row: row.excess)


def show(rows: Sequence[Row]) -> str:
    """The table as text."""
    lines = [f"{'law':<12} {'std':>8} {'Fisher information':>20} {'epsilon':>9}"]
    for row in rows:
        name, excess = type(row.noise).__name__, f"+{row.excess:.2%}"
        lines.append(f"{name:<12} {row.noise.std:8.4f} {excess:>20} {row.epsilon:9.5f}")
    return "\n".join(lines)


def draw(cost: costs.Cost, mean_cost: float, path: Path) -> None:
    """The densities, and the excess of Fisher information over a range of bounds."""
    from psinoise import plotting  # needs matplotlib

    figure = plotting.new_figure(9.4, 3.8)
    left, right = figure.subplots(1, 2)
    noises = {type(row.noise).__name__: row.noise for row in table(cost, mean_cost)}
    x = np.linspace(0.0, 6.0 * noises["Schrodinger"].std, 601)
    densities = {name: noise.pdf(x) for name, noise in noises.items()}
    colors = [plotting.color_of(name, 6) for name in densities]
    plotting.plot_lines(x, densities, ax=left, colors=colors, log_y=True)
    plotting.set_title(left, "Density", f"laws of mean cost {mean_cost:g}")
    left.set_xlabel("Noise")
    bounds = np.geomspace(0.05, 20.0, 25)
    excess: dict[str, list[float]] = {}
    for bound in bounds:
        for row in table(cost, float(bound)):
            excess.setdefault(type(row.noise).__name__, []).append(100.0 * row.excess)
    del excess["Schrodinger"]  # the least: 0 % everywhere
    plotting.plot_lines(bounds, excess, ax=right, log_x=True, log_y=True, name=False)
    right.set_ylim(1e-2, 200.0)
    plotting.label_ends(right)
    plotting.set_title(right, "Fisher information beyond the least", "percent")
    right.set_xlabel("Mean cost")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; draw it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mean-cost", type=float, default=0.5, help="E[cost(X)] (default 0.5)")
    parser.add_argument("--plot", type=Path, help="file for the figure")
    chosen: Any = parser.parse_args(arguments)
    noise = pn.Schrodinger(cost=HUBER, mean_cost=chosen.mean_cost)
    print(f"theta {noise.theta:.6g}, ground energy {noise.ground_energy:.6g}")
    print(f"log-concave: {noise.log_concave}; three draws: {noise.sample(3)}")
    print(show(table(HUBER, chosen.mean_cost)))
    if chosen.plot is not None:
        draw(HUBER, chosen.mean_cost, chosen.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
