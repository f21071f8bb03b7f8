"""Figures of the paper on cactus mechanisms.

"cactus-1", "cactus-2a", "cactus-2b" and "cactus-2c" are figures 1 and 2 of Alghamdi, Asoodeh,
Calmon, Kosut, Sankar and Wei, "Cactus mechanisms: optimal differential privacy mechanisms in the
large-composition regime" (ISIT 2022). Figure 2d is examples/private_digits.py, on other data.

The paper accounts by the moments accountant. Its curves are drawn here, at the full sensitivity and
for one direction, beside epsilon by this library: over all shifts and both directions. They differ
twice. The moments accountant gives an upper bound, and not a sharp one, which puts the
curves above epsilon; and a cactus law has smaller shifts that are worse than the full one, which
the moments at the full sensitivity do not see.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psinoise import plotting
from psinoise._progress import track
from psinoise.figures._figure import FigureData, PaperFigure
from psinoise.figures._moments import cactus_moments, gaussian_moments, moments_epsilon
from psinoise.mechanisms import Mechanism
from psinoise.noise import Cactus, Gaussian

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Float = NDArray[np.float64]

_SOURCE = "of Alghamdi et al., Cactus mechanisms (ISIT 2022)"

# Figure 2a. The standard deviations of the authors' published values (TestData of their program)
# are among these.
_DEVIATIONS = tuple(np.round(np.arange(0.105, 2.0, 0.135), 3).tolist())
_WIDTH, _REACH = 200, 8
# Figures 2b and 2c: variance, and the compositions, by epochs of 240 steps in the latter.
_VARIANCE = 0.1
_COUNTS = tuple(range(1, 21))
_EPOCHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 21, 25, 30)
_STEPS, _RATE = 240, 250 / 60_000


# -- figure 1: the density ------------------------------------------------------------------------


def _density_data(progress: bool) -> FigureData:
    law = Cactus()
    # Middles of cells.
    x = np.arange(-800, 801) / law.cells_per_sensitivity
    columns = {"x": x, "Cactus": law.pdf(x), "Gaussian": Gaussian(std=0.5).pdf(x)}
    found = law.certificate
    notes = (
        "Density of the cactus law: cost x**2, bound 0.25, sensitivity 1, n = 200, N = 1600, "
        "r = 0.9; and of the Gaussian of the same variance.",
        f"Largest divergence over all shifts {found.largest_kl:.10f}, at most {found.gap:.1e} "
        "above the optimum on these cells; the Gaussian's is 2.",
        f"After figure 1 {_SOURCE}, which has no Gaussian.",
    )
    return FigureData(columns, notes)


def _draw_density(data: FigureData) -> Figure:
    figure = plotting.new_figure(6.8, 4.2)
    ax = figure.subplots()
    plotting.plot_lines(
        data.columns["x"], data.lines(), ax=ax, thin=("Gaussian",), log_y=True, name=False
    )
    ax.set(xlim=(-3.0, 3.0), ylim=(1e-9, 9.0), xlabel="x", ylabel="Density")
    plotting.name_in_corner(ax)
    plotting.set_title(ax, "Spines near every multiple of the sensitivity", "variance 1/4")
    return figure


# -- figure 2a: divergence ------------------------------------------------------------------------


def _divergence_data(progress: bool) -> FigureData:
    found = [_certified(sigma) for sigma in track(_DEVIATIONS, "cactus-2a", enabled=progress)]
    sigma = np.array(_DEVIATIONS)
    cactus, gap = (np.array(column) for column in zip(*found, strict=True))
    gaussian = 0.5 / sigma**2
    columns = {
        "sigma": sigma,
        "Cactus": cactus,
        "Gaussian": gaussian,
        "gain": gaussian / cactus - 1.0,
        "gap": gap,
    }
    notes = (
        "Largest Kullback-Leibler divergence over all shifts up to the sensitivity, 1, at variance "
        f"sigma**2; cactus laws of {_WIDTH} cells to a sensitivity, and what theirs is above the "
        "optimum at most (gap).",
        f"After figure 2a {_SOURCE}.",
    )
    return FigureData(columns, notes)


def _certified(sigma: float) -> tuple[float, float]:
    cells = _WIDTH * max(_REACH, math.ceil(_REACH * sigma))
    law = Cactus(1.0, 2.0, sigma**2, _WIDTH, cells, 0.9)
    return law.certificate.largest_kl, law.certificate.gap


def _draw_divergences(data: FigureData) -> Figure:
    figure = plotting.new_figure(9.4, 4.0)
    left, right = figure.subplots(1, 2)
    sigma = data.columns["sigma"]
    lines = {name: data.columns[name] for name in ("Cactus", "Gaussian")}
    plotting.plot_lines(sigma, lines, ax=left, log_y=True, name=False)
    left.set(xlabel=r"Standard deviation $\sigma$", ylabel="Largest divergence")
    plotting.name_in_corner(left)
    plotting.set_title(left, "Less divergence at every variance", "sensitivity 1")
    gain = {"gain": 100.0 * data.columns["gain"]}
    color = plotting.color_of("Cactus")
    plotting.plot_lines(sigma, gain, ax=right, colors=[color], log_y=True, name=False)
    right.set(xlabel=r"Standard deviation $\sigma$")
    right.set_yticks([0.01, 0.1, 1.0, 10.0, 100.0], ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"])
    plotting.set_title(right, "The Gaussian's, beyond the cactus law's")
    return figure


# -- figures 2b and 2c: epsilon -------------------------------------------------------------------


def _epsilon_data(
    name: str, delta: float, counts: tuple[int, ...], rate: float, progress: bool
) -> FigureData:
    cactus, gaussian = Cactus(mean_cost=_VARIANCE), Gaussian(std=math.sqrt(_VARIANCE))
    shifts = range(1, cactus.cells_per_sensitivity + 1)
    each = np.array([cactus_moments(cactus, shift, rate) for shift in shifts])
    moments = {
        "Gaussian, moments": gaussian_moments(gaussian, 1.0, rate),
        "Cactus, moments": each[-1],
        "Cactus, moments of all shifts": each.max(axis=0),
    }
    columns = {"compositions": np.array(counts, dtype=np.float64)}
    for label, values in moments.items():
        columns[label] = np.array([moments_epsilon(values, delta, count) for count in counts])
    for label, mechanism in (("Gaussian", Mechanism(gaussian)), ("Cactus", Mechanism(cactus))):
        tasks = track(counts, f"cactus-{name}, {label}", enabled=progress)
        columns[label] = np.array([_epsilon(mechanism, delta, count, rate) for count in tasks])
    sampling = "no sampling" if rate == 1.0 else f"Poisson sampling at rate {rate:.6f}"
    notes = (
        f"Epsilon against the number of compositions: variance {_VARIANCE:g}, sensitivity 1, "
        f"{sampling}, delta {delta:g}.",
        "'moments': the moments accountant of Abadi et al. (2016) with real orders, at the full "
        "sensitivity and for the direction 'remove'. It overstates epsilon, and for a cactus law "
        "it is no bound: other shifts have larger moments ('moments of all shifts').",
        "Without addition: certified upper bounds of this library, over all shifts and both "
        "directions.",
        f"After figure {name} {_SOURCE}.",
    )
    return FigureData(columns, notes)


def _epsilon(mechanism: Mechanism, delta: float, count: int, rate: float) -> float:
    return float(mechanism.epsilon(delta, count, rate))


def _draw_epsilons(data: FigureData, unit: float, axis: str, title: str, terms: str) -> Figure:
    figure = plotting.new_figure(7.2, 4.4)
    ax = figure.subplots()
    lines = data.lines()
    colors = [plotting.color_of(name.split(",")[0]) for name in lines]
    thin = tuple(name for name in lines if "," in name)
    plotting.plot_lines(
        data.columns["compositions"] / unit,
        lines,
        ax=ax,
        colors=colors,
        thin=thin,
        log_y=True,
        name=False,
    )
    for line in ax.get_lines():
        line.set_marker("")
        if line.get_label() in thin:
            line.set_linestyle((0, (1, 1.5)) if "all" in str(line.get_label()) else (0, (5, 3)))
    ax.set(xlabel=axis, ylabel="Epsilon")
    ax.legend(frameon=False, labelcolor="linecolor", loc="lower right", fontsize=9.0)
    plotting.set_title(ax, title, terms)
    return figure


FIGURES: dict[str, PaperFigure] = {
    "cactus-1": PaperFigure("The cactus density", _density_data, _draw_density),
    "cactus-2a": PaperFigure(
        "Divergence of cactus and Gaussian noise", _divergence_data, _draw_divergences
    ),
    "cactus-2b": PaperFigure(
        "Epsilon of cactus and Gaussian noise",
        lambda progress: _epsilon_data("2b", 1e-3, _COUNTS, 1.0, progress),
        lambda data: _draw_epsilons(
            data,
            1.0,
            "Compositions",
            "Half the epsilon of the Gaussian",
            r"variance 0.1, sensitivity 1, $\delta = 10^{-3}$; dashed: moments accountant",
        ),
    ),
    "cactus-2c": PaperFigure(
        "Epsilon of cactus and Gaussian noise with sampling",
        lambda progress: _epsilon_data(
            "2c", 1e-5, tuple(_STEPS * epochs for epochs in _EPOCHS), _RATE, progress
        ),
        lambda data: _draw_epsilons(
            data,
            float(_STEPS),
            f"Epochs of {_STEPS} steps",
            "A fraction of the Gaussian's under sampling",
            r"variance 0.1, sensitivity 1, $\delta = 10^{-5}$, $q = 1/240$; "
            "dashed: moments accountant",
        ),
    ),
}
