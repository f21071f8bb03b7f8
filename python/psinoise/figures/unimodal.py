"""Figures of the best unimodal law for a target, beside the laws that have a formula.

They are in no paper: `psinoise.OptimalUnimodal` computes what theorems say for one use and for
infinitely many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psinoise import plotting
from psinoise._progress import track
from psinoise.figures._figure import FigureData, PaperFigure, panel
from psinoise.mechanisms import Mechanism
from psinoise.noise import Airy, Cactus, Gaussian, Laplace, Noise, OptimalUnimodal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Float = NDArray[np.float64]

_RIVALS = (Gaussian, Airy, Laplace)
_STD, _RATE, _COUNT, _DELTA = 0.615, 1.0 / 240.0, 2400, 1e-5
_COUNTS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
# Cells to a sensitivity, and points of the drawing.
_CELLS, _LARGEST, _POINTS = 120, 2.5, 1001
# For epsilon against the number of uses, without sampling.
_LARGE, _LARGE_DELTA, _FEW_CELLS = 2.0, 1e-6, 10


def _densities(progress: bool) -> FigureData:
    x = np.linspace(-_LARGEST, _LARGEST, _POINTS)
    laws: list[Noise | OptimalUnimodal] = [law(std=_STD) for law in _RIVALS]
    laws.append(_optimal(_STD, _COUNT, _RATE, _DELTA, _CELLS))
    columns = {
        type(law).__name__: np.asarray(law.pdf(x))
        for law in track(laws, "unimodal-density", enabled=progress)
    }
    epsilons = [
        f"{type(law).__name__} {float(Mechanism(law).epsilon(_DELTA, _COUNT, _RATE)):.4f}"
        for law in laws
    ]
    notes = (
        f"Densities of noise of standard deviation {_STD:g} sensitivities.",
        f"Certified epsilon at delta {_DELTA:g} for {_COUNT} uses sampled at rate 1/240: "
        + ", ".join(epsilons),
    )
    return FigureData({"x": x, **columns}, notes)


def _optimal(
    std: float, count: int, sampling_rate: float, delta: float, cells: int
) -> OptimalUnimodal:
    return OptimalUnimodal(
        delta=delta,
        count=count,
        sampling_rate=sampling_rate,
        mean_cost=std**2,
        cells_per_sensitivity=cells,
    )


def _draw_densities(data: FigureData) -> Figure:
    conditions = f"Standard deviation {_STD:g}; 2,400 uses sampled at 1/240, delta 1e-5"
    words = "The best unimodal law for a training run", "Noise in sensitivities", "Density"
    return _lines(data, (*words, conditions), (-_LARGEST, _LARGEST), (1e-4, 5.0), log_y=True)


def _lines(
    data: FigureData,
    words: tuple[str, str, str, str],
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """Lines over the first column, named where they end."""
    figure, ax = panel(*words)
    first = next(iter(data.columns.values()))
    plotting.plot_lines(first, data.lines(), ax=ax, log_x=log_x, log_y=log_y, name=False)
    ax.set(xlim=x, ylim=y)
    plotting.label_ends(ax)
    return figure


def _epsilons(progress: bool) -> FigureData:
    rivals: list[Noise | Cactus] = [law(std=_LARGE) for law in _RIVALS]
    rivals.append(Cactus(mean_cost=_LARGE**2, cells_per_sensitivity=20, cells=320, tail_ratio=0.9))
    columns: dict[str, list[float]] = {type(law).__name__: [] for law in rivals}
    columns["OptimalUnimodal"] = []
    for count in track(_COUNTS, "unimodal-epsilon", enabled=progress):
        best = _optimal(_LARGE, count, 1.0, _LARGE_DELTA, _FEW_CELLS)
        for law in (*rivals, best):
            found = float(Mechanism(law).composed(count).estimate.epsilon(_LARGE_DELTA))
            columns[type(law).__name__].append(found)
    least = np.array(columns.pop("OptimalUnimodal"))
    notes = (
        "Epsilon of laws of equal variance over that of the best unimodal law for each count.",
        f"Standard deviation {_LARGE:g} sensitivities, delta {_LARGE_DELTA:g}, no sampling.",
    )
    shares = {name: np.array(values) / least for name, values in columns.items()}
    counts = np.array(_COUNTS, dtype=np.float64)
    return FigureData({"count": counts, **shares, "OptimalUnimodal": least / least}, notes)


def _draw_epsilons(data: FigureData) -> Figure:
    title = "What the best unimodal law saves, by the number of uses"
    words = title, "Number of uses", "Epsilon over that of the best unimodal law"
    conditions = f"Standard deviation {_LARGE:g} sensitivities, delta 1e-6, no sampling"
    return _lines(data, (*words, conditions), (1.0, _COUNTS[-1]), (0.9, 1.75), log_x=True)


#: By the names that the command line uses.
FIGURES: dict[str, PaperFigure] = {
    "unimodal-density": PaperFigure(
        "The best unimodal law for a training run beside its rivals", _densities, _draw_densities
    ),
    "unimodal-epsilon": PaperFigure(
        "Epsilon of all laws over that of the best unimodal one", _epsilons, _draw_epsilons
    ),
}
