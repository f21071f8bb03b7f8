"""How plots of this package look: colors, lines with their names at the ends, quiet axes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psinoise._optional import required

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FAINT",
    "MORE_COLORS",
    "PALETTE",
    "draw_lines",
    "dress",
    "label_ends",
    "name_in_corner",
    "new_figure",
    "require_matplotlib",
    "set_title",
]

# Okabe and Ito, "Color universal design" (2008), for any color vision; no yellow, for white paper.
PALETTE = ("#009E73", "#D55E00", "#0072B2", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Dark ones of Tol, "Colour schemes" (2021), for the laws that are left.
MORE_COLORS = ("#882255", "#332288", "#999933", "#117733", "#AA4499", "#44AA99", "#661100")
_INK = "#333333"
#: The color of what stands back.
FAINT = "#6b6b6b"
_GRID = "#e6e6e6"
_FONT_SIZE = 10.0
_LINE_WIDTH = 2.2
_THIN = 1.1
# Distance between neighboring end labels, in font heights.
_LABEL_SPACING = 1.45


def require_matplotlib() -> None:
    """Import matplotlib, or say how to get it.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.

    >>> require_matplotlib()
    """
    required("matplotlib", 'plots need matplotlib: pip install "psinoise[plot]"')


def new_figure(width: float = 6.4, height: float = 4.0) -> Figure:
    """Return an empty figure, in inches, that needs no display and no pyplot.

    >>> new_figure(3.0, 2.0).get_size_inches().tolist()
    [3.0, 2.0]
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_lines(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    colors: Sequence[str],
    *,
    ax: Axes | None = None,
    thin: Collection[str] = (),
    log_x: bool = False,
    log_y: bool = False,
    name: bool = True,
    steps: bool = False,
) -> Axes:
    """What `psinoise.plotting.plot_lines` draws, in these colors; ``steps`` are around each x."""
    ax = _new_axes() if ax is None else ax
    points = np.asarray(x, dtype=np.float64)
    marker = "o" if points.size < 16 and not steps else ""
    for (line, values), color in zip(lines.items(), colors, strict=True):
        width = _THIN if line in thin else _LINE_WIDTH
        finite = np.asarray(values, dtype=np.float64)
        finite = np.where(np.isfinite(finite), finite, np.nan)
        ax.plot(
            points,
            finite,
            label=line,
            color=color,
            linewidth=width,
            marker=marker,
            markersize=4.5,
            solid_capstyle="round",
            drawstyle="steps-mid" if steps else "default",
        )
    if log_x:
        ax.set_xscale("log")
    if log_y:
        ax.set_yscale("log")
    if points.size > 1 and not marker:
        ax.set_xlim(points[0], points[-1])
    dress(ax)
    if name:
        label_ends(ax)
    return ax


def label_ends(ax: Axes, values: str | None = None) -> None:
    """Write the name of each line of ``ax`` at its right end, moved apart where they would touch.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Its limits and scales must be final. Labels of an earlier call are replaced.
    values : str, optional
        Format of the last value, such as ".3f", to follow the name.

    >>> ax = new_figure().subplots()
    >>> ax = draw_lines([1, 2], {"ours": [1.0, 2.0]}, PALETTE[:1], ax=ax, name=False)
    >>> label_ends(ax, ".1f")
    >>> ax.texts[0].get_text()
    'ours 2.0'
    """
    for old in [text for text in ax.texts if text.get_gid() == "psinoise-end"]:
        old.remove()
    ax.autoscale_view()  # limits that matplotlib has put off
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = []
    for line in ax.get_lines():
        data = np.asarray(line.get_xydata(), dtype=np.float64)
        data = data[np.isfinite(data).all(axis=1)]
        places = to_axes.transform(data)
        seen = np.flatnonzero(np.all((places > -1e-9) & (places < 1.0 + 1e-9), axis=1))
        if seen.size and not str(line.get_label()).startswith("_"):
            ends.append((places[seen[-1]], float(data[seen[-1], 1]), line))
    pixels = _FONT_SIZE * ax.figure.dpi / 72.0
    gap = _LABEL_SPACING * pixels / max(ax.bbox.height, 1.0)
    heights = _spread([float(point[1]) for point, _, _ in ends], gap)
    for (point, value, line), height in zip(ends, heights, strict=True):
        suffix = "" if values is None else f" {value:{values}}"
        ax.annotate(
            f"{line.get_label()}{suffix}",
            (float(point[0]), height),
            xycoords="axes fraction",
            xytext=(7, 0),
            textcoords="offset points",
            color=line.get_color(),
            va="center",
            fontsize=_FONT_SIZE,
            annotation_clip=False,
            gid="psinoise-end",
        )


def name_in_corner(ax: Axes) -> None:
    """Write the names of the lines into the upper right corner, for lines that end together.

    >>> ax = new_figure().subplots()
    >>> ax = draw_lines([1, 2], {"ours": [1.0, 2.0]}, PALETTE[:1], ax=ax, name=False)
    >>> name_in_corner(ax)
    >>> ax.get_legend().get_texts()[0].get_text()
    'ours'
    """
    ax.legend(
        frameon=False,
        labelcolor="linecolor",
        handlelength=1.2,
        fontsize=_FONT_SIZE,
        loc="upper right",
    )


def set_title(ax: Axes, title: str, conditions: str = "") -> None:
    """A title flush left, with the conditions in smaller letters below it.

    >>> ax = new_figure().subplots()
    >>> set_title(ax, "Epsilon", "1,000 uses")
    >>> ax.get_title(loc="left")
    'Epsilon'
    """
    if conditions:
        ax.annotate(
            conditions,
            (0.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 7),
            textcoords="offset points",
            color=FAINT,
            fontsize=_FONT_SIZE - 1.0,
            va="bottom",
        )
    pad = 24.0 if conditions else 9.0
    ax.set_title(title, loc="left", color=_INK, fontsize=_FONT_SIZE + 2.0, pad=pad, weight="bold")


def dress(ax: Axes) -> None:
    """Light grid, no box, quiet ticks.

    >>> ax = new_figure().subplots()
    >>> dress(ax)
    >>> ax.spines["top"].get_visible()
    False
    """
    ax.grid(True, color=_GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    ax.tick_params(which="both", length=0, colors=_INK, labelsize=_FONT_SIZE - 1.0)
    ax.minorticks_off()
    for label in (ax.xaxis.label, ax.yaxis.label):
        label.set(color=_INK, fontsize=_FONT_SIZE)


def _new_axes() -> Axes:
    require_matplotlib()
    from matplotlib import pyplot  # a figure that notebooks and show() know of

    return pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]


def _spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move heights apart by at least ``gap``, keeping the mean of each cluster where that does not
    lift one above 1, where the title is."""
    order = np.argsort(np.asarray(heights), kind="stable")
    clusters: list[list[float]] = []
    for i in order:
        clusters.append([heights[int(i)]])
        while len(clusters) > 1 and _low(clusters[-1], gap) < _low(clusters[-2], gap) + gap * len(
            clusters[-2]
        ):
            upper = clusters.pop()
            clusters[-1] += upper
    moved = [_low(c, gap) + k * gap for c in clusters for k in range(len(c))]
    result = [0.0] * len(heights)
    for i, height in zip(order, moved, strict=True):
        result[int(i)] = height
    return result


def _low(cluster: list[float], gap: float) -> float:
    spread = gap * (len(cluster) - 1)
    return min(math.fsum(cluster) / len(cluster) - 0.5 * spread, 1.0 - spread)
