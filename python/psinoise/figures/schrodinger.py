"""Figures of the paper on Schrodinger mechanisms.

"schrodinger-1" and "schrodinger-2" are figures 1 and 2 of Alghamdi, Asoodeh, Calmon, Gomez, Kosut
and Sankar, "Schrodinger mechanisms: optimal differential privacy mechanisms for small sensitivity"
(ISIT 2023). The Gaussian is not in the paper's figures.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from psinoise import plotting
from psinoise._progress import track
from psinoise.figures._figure import FigureData, PaperFigure
from psinoise.mechanisms import Mechanism
from psinoise.noise import Airy, Gaussian, Laplace, Noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

# Not in the paper's figures: drawn thinner.
_EXTRA = ("Gaussian",)

# Figure 2. Laplace is ahead of Airy up to 15 compositions; both sides of that have to be there.
_COUNTS = (
    *(1, 2, 3, 5, 8, 10, 13, 15, 16, 20, 25),
    *range(30, 100, 10),
    *range(100, 300, 25),
    *range(300, 2001, 50),
)
_CLOSE_UP = 40
_MEAN_ABS, _SENSITIVITY, _SAMPLING_RATE, _DELTA = 2.0, 1.0, 0.01, 1e-8


# -- figure 1: densities --------------------------------------------------------------------------


def _density_data(progress: bool) -> FigureData:  # quick, nothing to show
    x = np.linspace(-9.0, 9.0, 1801)
    laws: tuple[Noise, ...] = (Laplace(mean_abs=1.0), Airy(mean_abs=1.0), Gaussian(mean_abs=1.0))
    densities = {type(law).__name__: law.pdf(x) for law in laws}
    notes = (
        "Densities of noise laws at equal expected cost E|X| = 1.",
        "After figure 1 of Alghamdi et al., Schrodinger mechanisms (ISIT 2023), which shows "
        "Laplace and Airy.",
    )
    return FigureData({"x": x, **densities}, notes)


def _draw_densities(data: FigureData) -> Figure:
    figure = plotting.new_figure(9.4, 3.9)
    near, far = figure.subplots(1, 2)
    x = data.columns["x"]
    center, right = np.abs(x) <= 4.0, x >= 0.0
    lines = data.lines()
    plotting.plot_lines(
        x[center], {n: v[center] for n, v in lines.items()}, ax=near, thin=_EXTRA, name=False
    )
    near.set(ylim=(0.0, 0.53), xlabel="x", ylabel="Density")
    plotting.name_in_corner(near)
    plotting.set_title(near, "Densities at E|X| = 1")
    plotting.plot_lines(
        x[right],
        {n: v[right] for n, v in lines.items()},
        ax=far,
        thin=_EXTRA,
        log_y=True,
        name=False,
    )
    far.set(ylim=(1e-12, 1.0), xlabel="x")
    plotting.label_ends(far)
    plotting.set_title(far, "Tails, logarithmic")
    return figure


# -- figure 2: epsilon against compositions -------------------------------------------------------


def _epsilon_data(progress: bool) -> FigureData:
    tasks = [(law, count) for law in (Laplace, Airy, Gaussian) for count in _COUNTS]
    found: dict[str, list[float]] = {}
    for law, count in track(tasks, "schrodinger-2", enabled=progress):
        mechanism = Mechanism(law(mean_abs=_MEAN_ABS), _SENSITIVITY)
        epsilon = mechanism.composed(count, _SAMPLING_RATE).estimate.epsilon(_DELTA)
        found.setdefault(law.__name__, []).append(float(epsilon))
    notes = (
        f"Epsilon against the number of compositions: E|Z| = {_MEAN_ABS:g}, sensitivity "
        f"{_SENSITIVITY:g}, Poisson sampling rate {_SAMPLING_RATE:g}, delta {_DELTA:g}.",
        "Adjacency add-remove: both directions, remove and add, are composed and the larger "
        "epsilon is shown; estimates to working precision.",
        "After figure 2 of Alghamdi et al., Schrodinger mechanisms (ISIT 2023), which shows "
        "Laplace and Airy for one direction.",
    )
    counts = np.array(_COUNTS, dtype=np.float64)
    columns = {name: np.array(values) for name, values in found.items()}
    return FigureData({"compositions": counts, **columns}, notes)


def _draw_epsilons(data: FigureData) -> Figure:
    figure = plotting.new_figure(9.4, 4.4)
    whole, start = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.6, 1.0]})
    counts, lines = data.columns["compositions"], data.lines()
    plotting.plot_lines(counts, lines, ax=whole, thin=_EXTRA, name=False)
    whole.set(xlim=(0, counts[-1]), ylim=(0.0, 1.15), xlabel="Compositions", ylabel="Epsilon")
    plotting.label_ends(whole, ".3f")
    plotting.set_title(whole, "Airy keeps epsilon lowest over many compositions")
    first = counts <= _CLOSE_UP
    few = {name: values[first] for name, values in lines.items()}
    plotting.plot_lines(counts[first], few, ax=start, thin=_EXTRA, name=False)
    start.set(xlim=(0, _CLOSE_UP), ylim=(0.0, 0.16), xlabel="Compositions")
    plotting.label_ends(start)
    ahead = int(counts[lines["Laplace"] < lines["Airy"]].max())
    plotting.set_title(start, f"Laplace leads up to {ahead}")
    figure.supxlabel(
        f"E|Z| = {_MEAN_ABS:g}, sensitivity {_SENSITIVITY:g}, Poisson sampling rate "
        f"{_SAMPLING_RATE:g}, $\\delta = 10^{{{round(math.log10(_DELTA))}}}$; "
        "add-remove: the larger of the two directions",
        x=0.01,
        ha="left",
        fontsize=9,
        color=plotting.FAINT,
    )
    return figure


FIGURES: dict[str, PaperFigure] = {
    "schrodinger-1": PaperFigure(
        "Densities of Airy and Laplace at E|X| = 1", _density_data, _draw_densities
    ),
    "schrodinger-2": PaperFigure(
        "Epsilon against compositions, Airy and Laplace at E|Z| = 2", _epsilon_data, _draw_epsilons
    ),
}
