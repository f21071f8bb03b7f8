"""Figures of the paper on the symmetric stable mechanism, and one that it leaves open.

"stable-3" and "stable-6" to "stable-10" are figures, "stable-table-1" is table 1 of Zawacki and
Abed, "Heavy-tailed privacy: the symmetric alpha-stable privacy mechanism" (arXiv:2504.18411, 2025).
"stable-index" is not in the paper: the index that costs least at a pure epsilon.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special

from psinoise import plotting
from psinoise._progress import track
from psinoise.calibration.stable import calibrate_stable
from psinoise.figures._figure import FigureData, PaperFigure, draw_table, panel
from psinoise.mechanisms import Mechanism
from psinoise.noise import Laplace, Noise, Staircase, SymmetricStable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

_SOURCE = "of Zawacki and Abed, Heavy-tailed privacy (2025)"
_ALPHA, _SCALE = r"$\alpha$", r"$\gamma$"
_DENSITY_INDICES = (1.0, 1.5, 2.0)
_LOSS_INDICES = (1.0, 1.5, 1.9, 1.99, 2.0)
_LOSS_SCALES = (0.5, 1.0, 2.0, 4.0)
_BUDGET_INDICES = (1.0, 1.5, 1.9)
_SCALES = np.geomspace(0.01, 100.0, 81)
_TABLE_INDICES = (2.0, 1.999, 1.99, 1.95, 1.9, 1.8, 1.0)
# Stable noise is ahead of Laplace from 5.46 on; both sides of that have to be there.
_EPSILONS = tuple(sorted([*np.geomspace(0.1, 20.0, 24).tolist(), 5.4, 5.5]))


def _stable(alpha: float, scale: float = 1.0) -> SymmetricStable:
    return SymmetricStable(alpha=alpha, scale=scale)


def _budgets(laws: list[Noise]) -> NDArray[np.float64]:
    return np.array([Mechanism(law).pure_epsilon() for law in laws])


def _symbols(lines: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Names of columns as labels."""
    return {
        name.replace("alpha=", f"{_ALPHA} = ").replace("scale=", f"{_SCALE} = "): values
        for name, values in lines.items()
    }


def _colors(lines: dict[str, NDArray[np.float64]]) -> list[str]:
    """Laplace keeps its color, and no other line has it."""
    laplace = plotting.color_of("Laplace")
    palette = [plotting.color_of("", i) for i in range(len(lines) + 1)]
    others = iter([color for color in palette if color != laplace])
    return [laplace if name == "Laplace" else next(others) for name in lines]


# -- figure 3: densities --------------------------------------------------------------------------


def _density_data(progress: bool) -> FigureData:  # quick, nothing to show
    x = np.linspace(-5.0, 5.0, 1001)
    densities = {f"alpha={alpha:g}": _stable(alpha).pdf(x) for alpha in _DENSITY_INDICES}
    notes = (
        "Densities of symmetric stable laws of scale 1; alpha=1 is Cauchy, alpha=2 the normal law "
        "of variance 2.",
        f"After figure 3 {_SOURCE}.",
    )
    return FigureData({"x": x, **densities}, notes)


def _draw_densities(data: FigureData) -> Figure:
    figure, ax = panel("The lower the index, the heavier the tails", "x", "Density", "scale 1")
    plotting.plot_lines(data.columns["x"], _symbols(data.lines()), ax=ax, name=False)
    ax.set_ylim(0.0, 0.33)
    plotting.name_in_corner(ax)
    return figure


# -- figures 6 and 7: privacy loss ----------------------------------------------------------------


def _losses(x: NDArray[np.float64], laws: dict[str, SymmetricStable]) -> FigureData:
    losses = {name: law.logpdf(x - 0.5) - law.logpdf(x + 0.5) for name, law in laws.items()}
    return FigureData({"x": x, **losses}, ())


def _index_data(progress: bool) -> FigureData:  # quick, nothing to show
    x = np.linspace(-15.0, 15.0, 1501)
    found = _losses(x, {f"alpha={alpha:g}": _stable(alpha) for alpha in _LOSS_INDICES})
    notes = (
        "Privacy loss log p(x - 1/2) / p(x + 1/2) of symmetric stable laws: scale 1, "
        "sensitivity 1.",
        f"After figure 6 {_SOURCE}. Its caption has the loss x at alpha = 2; at scale 1 and "
        "sensitivity 1 that is x / 2, since the variance is 2.",
    )
    return FigureData(found.columns, notes)


def _draw_index_losses(data: FigureData) -> Figure:
    figure, ax = panel(
        "Below 2, every index bounds the loss", "x", "Privacy loss", "scale 1, sensitivity 1"
    )
    ax.set_ylim(-2.6, 2.6)
    plotting.plot_lines(data.columns["x"], _symbols(data.lines()), ax=ax, name=False)
    ax.set_ylim(-2.6, 2.6)
    _legend(ax)
    return figure


def _scale_data(progress: bool) -> FigureData:  # quick, nothing to show
    x = np.linspace(-15.0, 15.0, 1501)
    found = _losses(x, {f"scale={scale:g}": _stable(1.5, scale) for scale in _LOSS_SCALES})
    notes = (
        "Privacy loss log p(x - 1/2) / p(x + 1/2) of symmetric stable laws: alpha = 1.5, "
        "sensitivity 1.",
        f"After figure 7 {_SOURCE}.",
    )
    return FigureData(found.columns, notes)


def _draw_scale_losses(data: FigureData) -> Figure:
    figure, ax = panel(
        "More noise, less loss everywhere", "x", "Privacy loss", f"{_ALPHA} = 1.5, sensitivity 1"
    )
    plotting.plot_lines(data.columns["x"], _symbols(data.lines()), ax=ax, name=False)
    _legend(ax)
    return figure


def _legend(ax: Axes) -> None:
    ax.legend(frameon=False, labelcolor="linecolor", handlelength=1.2, loc="upper left")


# -- figures 8 and 9: the largest loss ------------------------------------------------------------


def _budget_data(progress: bool) -> FigureData:  # quick, nothing to show
    columns = {"scale": _SCALES, "Laplace": _budgets([Laplace(scale=g) for g in _SCALES.tolist()])}
    for alpha in _BUDGET_INDICES:
        columns[f"alpha={alpha:g}"] = _budgets([_stable(alpha, g) for g in _SCALES.tolist()])
    notes = (
        "Largest privacy loss (pure epsilon) against the scale, sensitivity 1.",
        f"After figure 8 {_SOURCE}.",
    )
    return FigureData(columns, notes)


def _limit_data(progress: bool) -> FigureData:  # quick, nothing to show
    cauchy = _budgets([_stable(1.0, g) for g in _SCALES.tolist()])
    small = -2.0 * np.log(_SCALES)
    columns = {
        "scale": _SCALES,
        "Laplace": 1.0 / _SCALES,
        "alpha=1": cauchy,
        "small-scale limit": np.where(small > 0.0, small, np.nan),
        "small-scale limit (95)": np.where(
            small + math.log(2.0) > 0.0, small + math.log(2.0), np.nan
        ),
        "large-scale limit": 1.0 / _SCALES,
    }
    notes = (
        "Largest privacy loss of Cauchy noise against the scale, sensitivity 1, and its limits.",
        f"After figure 9 {_SOURCE}. The loss is 2 asinh(1 / (2 scale)), so that the limit for "
        "small scales is 2 log(1 / scale); equation (95) of the paper, 2 log(sqrt(2) / scale), "
        "has lost a factor 2 between (93) and (94) and is log 2 too large.",
    )
    return FigureData(columns, notes)


def _draw_budgets(data: FigureData) -> Figure:
    figure, ax = panel(
        "Small scales cost stable noise only a logarithm",
        "Scale",
        "Largest privacy loss",
        "sensitivity 1",
    )
    lines = _symbols(data.lines())
    plotting.plot_lines(
        data.columns["scale"],
        lines,
        ax=ax,
        colors=_colors(lines),
        log_x=True,
        log_y=True,
        name=False,
    )
    plotting.name_in_corner(ax)
    return figure


def _draw_limits(data: FigureData) -> Figure:
    figure, ax = panel(
        "Cauchy noise between its limits",
        "Scale",
        "Largest privacy loss",
        f"{_ALPHA} = 1, sensitivity 1",
    )
    lines = _symbols(data.lines())
    thin = tuple(name for name in lines if "limit" in name)
    plotting.plot_lines(
        data.columns["scale"],
        lines,
        ax=ax,
        colors=_colors(lines),
        thin=thin,
        log_x=True,
        log_y=True,
        name=False,
    )
    # The large-scale limit and Laplace's loss are one line.
    for line in ax.get_lines():
        if str(line.get_label()).startswith("large"):
            line.set_linestyle((0, (4, 4)))
    plotting.name_in_corner(ax)
    return figure


# -- figure 10 and table 1: distortion ------------------------------------------------------------


def _gamma_data(progress: bool) -> FigureData:  # quick, nothing to show
    x = np.linspace(0.02, 4.0, 399)
    inside = x <= 0.5
    columns = {
        "x": x,
        "Gamma": special.gamma(x),
        "1 - 1/alpha": np.where(inside, special.gamma(x), np.nan),
    }
    notes = (
        "The Gamma function, and its part that E|Y| = (2 / pi) Gamma(1 - 1 / alpha) scale takes.",
        f"After figure 10 {_SOURCE}.",
    )
    return FigureData(columns, notes)


def _draw_gamma(data: FigureData) -> Figure:
    figure, ax = panel("E|Y| falls as the index grows to 2", "x", r"$\Gamma(x)$")
    lines = {
        r"$\Gamma(x)$": data.columns["Gamma"],
        f"x = 1 - 1 / {_ALPHA}": data.columns["1 - 1/alpha"],
    }
    plotting.plot_lines(data.columns["x"], lines, ax=ax, thin=(r"$\Gamma(x)$",), name=False)
    ax.set_ylim(0.0, 6.0)
    ax.legend(frameon=False, labelcolor="linecolor", handlelength=1.2, loc="upper center")
    return figure


def _table_data(progress: bool) -> FigureData:  # quick, nothing to show
    laws = [_stable(alpha) for alpha in _TABLE_INDICES]
    columns = {
        "alpha": np.array(_TABLE_INDICES),
        "distortion": np.array([law.mean_abs for law in laws]),
        "pure epsilon": _budgets([*laws]),
    }
    notes = (
        "E|Y| of symmetric stable noise of scale 1, and its largest privacy loss at sensitivity 1.",
        f"After table 1 {_SOURCE}, which has no largest losses.",
    )
    return FigureData(columns, notes)


def _draw_table(data: FigureData) -> Figure:
    names = [_ALPHA, f"E|Y| / {_SCALE}", r"$\varepsilon$ at sensitivity $\gamma$"]
    return draw_table(data, names, width=4.6, height=2.6)


# -- the index that costs least -------------------------------------------------------------------


def _best_data(progress: bool) -> FigureData:
    noises = [
        calibrate_stable(epsilon=epsilon)
        for epsilon in track(_EPSILONS, "stable-index", enabled=progress)
    ]
    epsilon = np.array(_EPSILONS)
    columns = {
        "epsilon": epsilon,
        "best alpha": np.array([noise.alpha for noise in noises]),
        "stable": epsilon * np.array([noise.mean_abs for noise in noises]),
        "Laplace": np.ones_like(epsilon),
        "Staircase": epsilon * np.array([Staircase(epsilon=e).mean_abs for e in _EPSILONS]),
    }
    notes = (
        "The index of symmetric stable noise that has the least E|Y| at a pure epsilon of one use, "
        "and that E|Y| in units of Laplace's, sensitivity / epsilon.",
        "The least of all laws is that of the staircase law (Geng and Viswanath 2016). Not "
        f"in a figure {_SOURCE}, who leave the best index open.",
    )
    return FigureData(columns, notes)


def _draw_best(data: FigureData) -> Figure:
    figure = plotting.new_figure(9.4, 4.0)
    left, right = figure.subplots(1, 2)
    epsilon = data.columns["epsilon"]
    best = {f"best {_ALPHA}": data.columns["best alpha"]}
    plotting.plot_lines(epsilon, best, ax=left, log_x=True, name=False)
    left.set(ylim=(1.0, 2.0), xlabel="Pure epsilon", ylabel=f"Index {_ALPHA}")
    plotting.set_title(left, "The index of least E|Y|")
    names = ("stable", "Laplace", "Staircase")
    costs = {name: data.columns[name] for name in names}
    plotting.plot_lines(
        epsilon, costs, ax=right, colors=_colors(costs), log_x=True, log_y=True, name=False
    )
    right.set(ylim=(1e-3, 3.0), xlabel="Pure epsilon", ylabel="E|Y| in units of Laplace's")
    ahead = float(np.interp(0.0, -np.log(costs["stable"]), epsilon))
    plotting.set_title(right, f"Ahead of Laplace only beyond {ahead:.2f}")
    right.legend(frameon=False, labelcolor="linecolor", handlelength=1.2, loc="lower left")
    return figure


FIGURES: dict[str, PaperFigure] = {
    "stable-3": PaperFigure("Densities of symmetric stable laws", _density_data, _draw_densities),
    "stable-6": PaperFigure("Privacy loss against the index", _index_data, _draw_index_losses),
    "stable-7": PaperFigure("Privacy loss against the scale", _scale_data, _draw_scale_losses),
    "stable-8": PaperFigure(
        "Largest privacy loss of stable and Laplace noise", _budget_data, _draw_budgets
    ),
    "stable-9": PaperFigure(
        "Largest privacy loss of Cauchy noise and its limits", _limit_data, _draw_limits
    ),
    "stable-10": PaperFigure("The Gamma function in E|Y|", _gamma_data, _draw_gamma),
    "stable-table-1": PaperFigure("Distortion of stable noise", _table_data, _draw_table),
    "stable-index": PaperFigure(
        "The index of least E|Y| at a pure epsilon, beside Laplace", _best_data, _draw_best
    ),
}
