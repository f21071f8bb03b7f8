"""Figures of the papers, drawn again from this library, with the data behind them.

"schrodinger-1" and "schrodinger-2" are figures 1 and 2 of Alghamdi, Asoodeh, Calmon, Gomez, Kosut
and Sankar, "Schrodinger mechanisms: optimal differential privacy mechanisms for small sensitivity"
(ISIT 2023). The Gaussian is not in the paper's figures. "schrodinger-costs" shows the theorems of
that paper for costs that it does not draw.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psinoise import _validate, figure_of_costs, plotting
from psinoise._progress import track
from psinoise.accounting import Mechanism
from psinoise.noise import Airy, Gaussian, Laplace, Noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "FORMATS", "FigureData", "PaperFigure", "save_figures"]

FORMATS = ("png", "svg", "pdf")
_PIXELS_PER_INCH = 200

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


@dataclass(frozen=True)
class FigureData:
    """The numbers of a figure: equally long columns, the first of them the horizontal axis."""

    columns: Mapping[str, NDArray[np.float64]]
    notes: tuple[str, ...]
    """What the numbers are and under which conditions; comment lines of the CSV file."""

    def save(self, path: Path) -> None:
        """Write a CSV file: ``#`` lines of notes, a header, rows in full precision."""
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"# {note}\n" for note in self.notes)
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            values = (column.tolist() for column in self.columns.values())
            writer.writerows(zip(*values, strict=True))


@dataclass(frozen=True)
class PaperFigure:
    """How to compute the data of one figure and how to draw them."""

    title: str
    compute: Callable[[bool], FigureData]
    """Takes whether to show progress."""
    draw: Callable[[FigureData], Figure]


def save_figures(
    directory: str | Path,
    names: Iterable[str] | None = None,
    formats: Sequence[str] = ("png",),
    *,
    progress: bool = True,
) -> list[Path]:
    """Draw figures into files, each with its data as a CSV file beside it.

    Parameters
    ----------
    directory : str or Path
        Made if it does not exist.
    names : iterable of str, optional
        Keys of :data:`FIGURES`; None draws all.
    formats : sequence of str
        Of "png", "svg" and "pdf".
    progress : bool
        Show progress on standard error if it is a terminal and tqdm is installed.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    DomainError
        For a name or a format that does not exist.
    OSError
        If a file cannot be written.
    """
    chosen = [_validate.choice("figure", name, FIGURES) for name in FIGURES if names is None]
    chosen += [_validate.choice("figure", name, FIGURES) for name in dict.fromkeys(names or ())]
    endings = [_validate.choice("format", ending, FORMATS) for ending in dict.fromkeys(formats)]
    plotting.require_matplotlib()
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in chosen:
        data = FIGURES[name].compute(progress)
        written.append(folder / f"{name}.csv")
        data.save(written[-1])
        figure = FIGURES[name].draw(data)
        for ending in endings:
            written.append(folder / f"{name}.{ending}")
            _save(figure, written[-1])
    return written


def _save(figure: Figure, path: Path) -> None:
    import matplotlib  # optional, and slow to import

    # No dates and no random identifiers: the same data give the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with matplotlib.rc_context({"svg.hashsalt": "psinoise", "pdf.fonttype": 42}):
        figure.savefig(path, dpi=_PIXELS_PER_INCH, metadata=metadata)


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
    lines = _lines(data)
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
        epsilon = mechanism.epsilon(_DELTA, count, _SAMPLING_RATE, method="estimate")
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
    counts, lines = data.columns["compositions"], _lines(data)
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


def _lines(data: FigureData) -> dict[str, NDArray[np.float64]]:
    return dict(list(data.columns.items())[1:])


#: The figures by the names that the command line uses.
FIGURES: dict[str, PaperFigure] = {
    "schrodinger-1": PaperFigure(
        "Densities of Airy and Laplace at E|X| = 1", _density_data, _draw_densities
    ),
    "schrodinger-2": PaperFigure(
        "Epsilon against compositions, Airy and Laplace at E|Z| = 2", _epsilon_data, _draw_epsilons
    ),
    "schrodinger-costs": PaperFigure(
        "What the best law for a cost gains, by the power of the cost",
        lambda progress: FigureData(*figure_of_costs.compute(progress)),
        lambda data: figure_of_costs.draw(data.columns),
    ),
}
