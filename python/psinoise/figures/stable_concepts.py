"""Figures of the paper on symmetric stable noise that explain: 1, 2, 4 and 5.

Zawacki and Abed, "Heavy-tailed privacy: the symmetric alpha-stable privacy mechanism"
(arXiv:2504.18411, 2025); figures of its results are in `psinoise.figures.stable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from psinoise import plotting
from psinoise.accounting import hypotheses
from psinoise.figures._figure import FigureData, PaperFigure, panel
from psinoise.noise import SymmetricStable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

_SOURCE = "of Zawacki and Abed, Heavy-tailed privacy (2025)"
_ALPHA = 1.5
_EPSILONS = (0.5, 1.0, 2.0, 4.0)
_POINT = 10.0  # of figure 4
# Of figure 5: the point that is looked at, the two locations, and a further shift.
_AT, _LOW, _HIGH, _FURTHER = 2.0, -1.0, 1.0, 0.8


def _law() -> SymmetricStable:
    return SymmetricStable(alpha=_ALPHA, scale=1.0)


def _legend(ax: Axes, place: Literal["upper left", "upper right", "center right"]) -> None:
    ax.legend(frameon=False, labelcolor="linecolor", handlelength=1.2, loc=place)


def _neighbor_data(progress: bool) -> FigureData:  # quick, nothing to show
    x = np.linspace(-6.0, 8.0, 1401)
    law = _law()
    notes = (
        "Densities of the answer to a count of 0 or 1 records, with symmetric stable noise of "
        f"index {_ALPHA:g} and scale 1.",
        f"After figure 1 {_SOURCE}.",
    )
    return FigureData({"x": x, "without": law.pdf(x), "with the record": law.pdf(x - 1.0)}, notes)


def _draw_neighbors(data: FigureData) -> Figure:
    figure, ax = panel(
        "With a record and without: nearly the same answers", "Answer", "Density", "sensitivity 1"
    )
    plotting.plot_lines(data.columns["x"], data.lines(), ax=ax, name=False)
    ax.set_ylim(bottom=0.0)
    _legend(ax, "upper right")
    return figure


def _posterior_data(progress: bool) -> FigureData:  # quick, nothing to show
    prior = np.linspace(0.0, 1.0, 401)
    columns = {"prior": prior}
    for epsilon in _EPSILONS:
        lower, upper = hypotheses.posterior_bounds(prior, epsilon)
        columns[f"epsilon={epsilon:g}"] = upper
        columns[f"epsilon={epsilon:g}, lower"] = lower
    notes = (
        "What the probability of one of two neighbors can become when the output of a purely "
        "private mechanism has been seen: the upper and the lower bound.",
        f"After figure 2 {_SOURCE}.",
    )
    return FigureData(columns, notes)


def _draw_posteriors(data: FigureData) -> Figure:
    figure, ax = panel("How much an adversary can learn", "Probability before", "and after")
    lines, prior = data.lines(), data.columns["prior"]
    names = [name for name in lines if "lower" not in name]
    colors = [plotting.color_of("", i) for i in range(len(names))]
    uppers = {name.replace("epsilon=", r"$\varepsilon$ = "): lines[name] for name in names}
    plotting.plot_lines(prior, uppers, ax=ax, colors=colors, name=False)
    for name, color in zip(names, colors, strict=True):
        ax.plot(
            prior, lines[f"{name}, lower"], color=color, linewidth=ax.get_lines()[0].get_linewidth()
        )
    # Room for the legend, where no curve is.
    ax.set(xlim=(0.0, 1.25), ylim=(0.0, 1.0), xticks=np.linspace(0.0, 1.0, 6))
    _legend(ax, "center right")
    return figure


def _integrand_data(progress: bool) -> FigureData:  # quick, nothing to show
    t = np.linspace(-4.0, 4.0, 2001)
    envelope = np.exp(-(np.abs(t) ** _ALPHA))
    notes = (
        f"The real part of the integrand of the density at x = {_POINT:g}, cos(x t) exp(-|t|^"
        f"{_ALPHA:g}), and what it lies between; the density is its integral over 2 pi.",
        f"After figure 4 {_SOURCE}. The package does not integrate it: see docs/stable.md.",
    )
    return FigureData(
        {"t": t, "integrand": np.cos(_POINT * t) * envelope, "envelope": envelope}, notes
    )


def _draw_integrand(data: FigureData) -> Figure:
    figure, ax = panel(
        "A density in the tail is what oscillations leave",
        "t",
        "Integrand",
        rf"$\alpha$ = {_ALPHA:g}, $\gamma$ = 1, x = {_POINT:g}",
    )
    plotting.plot_lines(data.columns["t"], data.lines(), ax=ax, thin=("envelope",), name=False)
    _legend(ax, "upper right")
    return figure


def _shift_data(progress: bool) -> FigureData:  # quick, nothing to show
    x = np.linspace(-5.0, 6.0, 1101)
    law = _law()
    columns = {
        "x": x,
        "p1": law.pdf(x - _HIGH),
        "p2": law.pdf(x - _LOW),
        "p1, moved": law.pdf(x - _HIGH - _FURTHER),
    }
    notes = (
        f"Densities of index {_ALPHA:g} and scale 1 around {_HIGH:g} and {_LOW:g}, and the first "
        f"moved on by {_FURTHER:g}: at x = {_AT:g}, moved along with it, the first stays what it "
        "was and the second falls, so that the loss grows with the shift.",
        f"After figure 5 {_SOURCE}.",
    )
    return FigureData(columns, notes)


def _draw_shift(data: FigureData) -> Figure:
    figure, ax = panel(
        "The farther apart, the larger the loss", "x", "Density", rf"$\alpha$ = {_ALPHA:g}, scale 1"
    )
    names = {"p1": "$p_1$", "p2": "$p_2$", "p1, moved": "$p_1$, moved on"}
    lines = {names[name]: values for name, values in data.lines().items()}
    colors = [plotting.color_of("", i) for i in (0, 1, 0)]
    x = data.columns["x"]
    plotting.plot_lines(x, lines, ax=ax, colors=colors, thin=(names["p1, moved"],), name=False)
    law = _law()
    for point, color in ((_HIGH, colors[0]), (_LOW, colors[1])):
        for at, height in (
            (_AT, law.pdf(_AT - point)),
            (
                _AT + _FURTHER,
                law.pdf(_AT - _HIGH) if point == _HIGH else law.pdf(_AT + _FURTHER - _LOW),
            ),
        ):
            ax.plot([at], [float(height)], "o", color=color)
    ax.set_ylim(bottom=0.0)
    _legend(ax, "upper left")
    return figure


FIGURES: dict[str, PaperFigure] = {
    "stable-1": PaperFigure("Answers with and without a record", _neighbor_data, _draw_neighbors),
    "stable-2": PaperFigure(
        "What an adversary can learn from a pure epsilon", _posterior_data, _draw_posteriors
    ),
    "stable-4": PaperFigure("The integrand of a density", _integrand_data, _draw_integrand),
    "stable-5": PaperFigure("Losses grow with the shift", _shift_data, _draw_shift),
}
