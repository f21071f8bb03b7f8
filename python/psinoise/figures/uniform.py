"""Figure and tables of the paper on the best noise at epsilon 0.

"uniform-5" is figure 5, "uniform-table-1" and "uniform-table-2" are tables 1 and 2 of Geng, Ding,
Guo and Kumar, "Optimal noise-adding mechanism in additive differential privacy" (AISTATS 2019).

The paper compares with Gaussian noise of ``sigma = s / (2 delta)``, theorem 2 of Balle and Wang
(ICML 2018), which is sufficient for (0, delta) and not the least that is; and it takes sigma for
the mean magnitude, which is ``sqrt(2 / pi) sigma``. Least is ``sigma = s / (2 z)`` with
``Phi(z) = (1 + delta) / 2``: the total variation distance of two normal laws at distance ``s`` is
``2 Phi(s / (2 sigma)) - 1`` (theorem 8 of Balle and Wang at epsilon 0). Both are shown.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from psinoise import plotting
from psinoise.figures._figure import FigureData, PaperFigure, draw_table
from psinoise.noise import UniformAtom

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

_SOURCE = "of Geng, Ding, Guo and Kumar, Optimal noise-adding mechanism (AISTATS 2019)"
_DELTAS = tuple(np.linspace(0.005, 0.995, 199).tolist())
# Both regimes of both tables, and where each of them changes.
_TABLE_DELTAS = (0.001, 0.01, 0.1, 0.25, 0.5, 0.6, 2.0 / 3.0, 0.75, 0.9, 0.99)
_POWERS = {1: "magnitude", 2: "power"}
_LABELS = {1: "E|Z|", 2: "E Z^2"}


def _costs(delta: float, power: int) -> tuple[float, float, float]:
    """Least cost at sensitivity 1, the Gaussian's as printed, and that of the least Gaussian."""
    printed = 0.5 / delta
    least = 0.5 / float(special.ndtri(0.5 * (1.0 + delta)))
    mean = math.sqrt(2.0 / math.pi) * least if power == 1 else least**2
    return UniformAtom(delta=delta, power=power).least_cost, printed**power, mean


# -- figure 5 -------------------------------------------------------------------------------------


def _ratio_data(progress: bool) -> FigureData:  # quick, nothing to show
    columns = {"delta": np.array(_DELTAS)}
    for power, name in _POWERS.items():
        costs = np.array([_costs(delta, power) for delta in _DELTAS])
        columns[f"{name}, printed Gaussian"] = costs[:, 0] / costs[:, 1]
        columns[f"{name}, least Gaussian"] = costs[:, 0] / costs[:, 2]
    notes = (
        "Least expected cost at (0, delta), relative to that of Gaussian noise.",
        f"After figure 5 {_SOURCE}, whose Gaussian has sigma = s / (2 delta) and its magnitude "
        "taken for sigma: the columns 'printed Gaussian'.",
        "The least Gaussian noise that is (0, delta) has sigma = s / (2 z), Phi(z) = (1 + delta) "
        "/ 2: the gain at small delta is 4 / pi and 6 / pi, not 2 and 3.",
    )
    return FigureData(columns, notes)


def _draw_ratios(data: FigureData) -> Figure:
    figure = plotting.new_figure(6.8, 4.2)
    ax = figure.subplots()
    lines = data.lines()
    colors = [plotting.color_of("", i) for i in (2, 2, 1, 1)]
    thin = tuple(name for name in lines if "printed" in name)
    plotting.plot_lines(data.columns["delta"], lines, ax=ax, colors=colors, thin=thin, name=False)
    for line in ax.get_lines():
        if line.get_label() in thin:
            line.set_linestyle((0, (4, 3)))
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel=r"$\delta$", ylabel="Cost, Gaussian = 1")
    ax.legend(frameon=False, labelcolor="linecolor", loc="lower left", fontsize=9.0)
    plotting.set_title(
        ax,
        r"Uniform noise with an atom is the best at $\varepsilon = 0$",
        "dashed: the Gaussian of the paper, which is not the least",
    )
    return figure


# -- tables 1 and 2 -------------------------------------------------------------------------------


def _table_data(power: int) -> FigureData:
    costs = np.array([_costs(delta, power) for delta in _TABLE_DELTAS])
    columns = {
        "delta": np.array(_TABLE_DELTAS),
        "Gaussian, printed": costs[:, 1],
        "Gaussian, least": costs[:, 2],
        "optimal": costs[:, 0],
        "atom": np.array([UniformAtom(delta=d, power=power).atom for d in _TABLE_DELTAS]),
    }
    notes = (
        f"Expected noise {_POWERS[power]} {_LABELS[power]} at (0, delta), sensitivity 1.",
        f"Table {power} {_SOURCE}, evaluated. Its Gaussian has sigma = 1 / (2 delta)"
        + (", and that for its magnitude" if power == 1 else "")
        + "; the least Gaussian and the atom are not in the table.",
    )
    return FigureData(columns, notes)


def _draw_costs(data: FigureData) -> Figure:
    names = [r"$\delta$", *list(data.columns)[1:]]
    return draw_table(data, names, width=6.4, height=3.4)


FIGURES: dict[str, PaperFigure] = {
    "uniform-5": PaperFigure(
        "Least cost at epsilon 0, relative to the Gaussian's", _ratio_data, _draw_ratios
    ),
    "uniform-table-1": PaperFigure(
        "Noise magnitude at epsilon 0", lambda progress: _table_data(1), _draw_costs
    ),
    "uniform-table-2": PaperFigure(
        "Noise power at epsilon 0", lambda progress: _table_data(2), _draw_costs
    ),
}
