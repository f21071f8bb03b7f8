"""What a figure is: numbers, and how to draw them."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psinoise import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FigureData", "PaperFigure", "draw_table", "panel"]


@dataclass(frozen=True)
class FigureData:
    """The numbers of a figure: equally long columns, the first of them the horizontal axis."""

    columns: Mapping[str, NDArray[np.float64]]
    notes: tuple[str, ...]
    """What the numbers are and under which conditions; comment lines of the CSV file."""

    def lines(self) -> dict[str, NDArray[np.float64]]:
        """The columns to be drawn against the first one."""
        return dict(list(self.columns.items())[1:])

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


def panel(title: str, x: str, y: str, conditions: str = "") -> tuple[Figure, Axes]:
    """A figure of one panel, with the names of its axes."""
    figure = plotting.new_figure(6.8, 4.2)
    ax = figure.subplots()
    ax.set(xlabel=x, ylabel=y)
    plotting.set_title(ax, title, conditions)
    return figure, ax


def draw_table(data: FigureData, names: Sequence[str], *, width: float, height: float) -> Figure:
    """Draw columns as a table, four decimals or digits, with these names above them."""
    figure = plotting.new_figure(width, height)
    ax = figure.subplots()
    ax.set_axis_off()
    rows = zip(*(column.tolist() for column in data.columns.values()), strict=True)
    cells = [[f"{first:.4g}", *(_cell(value) for value in values)] for first, *values in rows]
    table = ax.table(cells, colLabels=list(names), loc="center", edges="B")
    table.auto_set_font_size(False)
    table.set_fontsize(10.0)
    table.scale(1.0, 1.25)
    return figure


def _cell(value: float) -> str:
    if not math.isfinite(value):
        return r"$\infty$"
    return f"{value:.4f}" if value < 10.0 else f"{value:.6g}"
