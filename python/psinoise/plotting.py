"""Plots of noise laws and of their privacy: axes in, axes out.

They need matplotlib, which the first plot imports. A law keeps its color in every plot. `FAINT` is
the color of what stands back:

>>> FAINT
'#6b6b6b'
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psinoise import _validate
from psinoise._optional import required
from psinoise._progress import track
from psinoise.errors import DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import DESIGNED, FAMILIES, Noise, Schrodinger

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FAINT",
    "color_of",
    "dress",
    "label_ends",
    "name_in_corner",
    "new_figure",
    "plot_density",
    "plot_epsilon",
    "plot_lines",
    "require_matplotlib",
    "set_title",
]

# Okabe and Ito, "Color universal design" (2008), for any color vision; no yellow, for white paper.
_PALETTE = ("#009E73", "#D55E00", "#0072B2", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Dark ones of Tol, "Colour schemes" (2021), for the laws that are left.
_MORE = ("#882255", "#332288", "#999933", "#117733", "#AA4499", "#44AA99", "#661100")
_NAMES = [law.__name__ for law in FAMILIES] + [law.__name__ for law in DESIGNED]
_LAW_COLORS = dict(zip([*_NAMES, Schrodinger.__name__], cycle(_PALETTE + _MORE)))
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


def color_of(law: str, otherwise: int = 0) -> str:
    """Color of the law of this name; ``otherwise`` picks one for a name that is not a law's.

    >>> color_of("Gaussian") != color_of("Airy")
    True
    """
    return _LAW_COLORS.get(law, _PALETTE[otherwise % len(_PALETTE)])


def plot_density(
    noise: Noise | Iterable[Noise],
    ax: Axes | None = None,
    *,
    x: ArrayLike | None = None,
    log: bool = False,
    thin: Collection[str] = (),
) -> Axes:
    """Draw the density of one noise law, or of several.

    Parameters
    ----------
    noise : Noise or iterable of Noise
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None makes a new figure.
    x : array_like, optional
        Increasing points; None takes 1001 that leave out 1e-4 of the probability of the widest
        law.
    log : bool
        Logarithmic density axis.
    thin : collection of str
        Names of laws in a thinner line.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    TypeError, DomainError
        If something else than noise laws is given, or none.

    Examples
    --------
    >>> import psinoise as pn
    >>> laws = [pn.Airy(mean_abs=1.0), pn.Gaussian(mean_abs=1.0)]
    >>> ax = plot_density(laws, new_figure().subplots())
    >>> [line.get_label() for line in ax.get_lines()]
    ['Airy', 'Gaussian']
    """
    noises = [noise] if isinstance(noise, Noise) else list(dict.fromkeys(noise))
    _check_each("noise", noises, Noise)
    if x is None:
        reach = max(float(law.iccdf(5e-5)) for law in noises)
        points = np.linspace(-reach, reach, 1001)
    else:
        points = np.asarray(x, dtype=np.float64)
    lines = dict(zip(_names(noises, noises), (law.pdf(points) for law in noises), strict=True))
    ax = plot_lines(points, lines, ax=ax, colors=_colors(noises), thin=thin, log_y=log, name=log)
    if not log:
        ax.set_ylim(bottom=0.0)
        # All densities end at 0: nothing there to hang a name on.
        ax.legend(
            frameon=False,
            labelcolor="linecolor",
            handlelength=1.2,
            fontsize=_FONT_SIZE,
            loc="upper right",
        )
    ax.set_xlabel("Noise")
    ax.set_ylabel("Density")
    return ax


def plot_epsilon(
    mechanisms: Mechanism | Iterable[Mechanism],
    counts: Iterable[int],
    delta: float,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    *,
    ax: Axes | None = None,
    log: bool = False,
    thin: Collection[str] = (),
    progress: bool = True,
) -> Axes:
    """Draw epsilon against the number of compositions.

    Parameters
    ----------
    mechanisms : Mechanism or iterable of Mechanism
        What to draw.
    counts : iterable of int
        Numbers of compositions, increasing.
    delta, sampling_rate, adjacency
        As in :meth:`psinoise.Mechanism.epsilon`; the method is "estimate".
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None makes a new figure.
    log : bool
        Logarithmic axes.
    thin : collection of str
        Names of laws in a thinner line.
    progress : bool
        Show progress on standard error if it is a terminal and tqdm is installed.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    TypeError, DomainError, OverflowError
        For arguments that :meth:`psinoise.Mechanism.epsilon` refuses, or nothing to draw.

    Examples
    --------
    >>> import psinoise as pn
    >>> mechanisms = [pn.Mechanism(pn.Airy(std=9.0)), pn.Mechanism(pn.Laplace(std=9.0))]
    >>> ax = plot_epsilon(mechanisms, [1, 10, 100], 1e-6, ax=new_figure().subplots())
    >>> ax.get_ylabel()
    'Epsilon'
    """
    drawn = [mechanisms] if isinstance(mechanisms, Mechanism) else list(dict.fromkeys(mechanisms))
    _check_each("mechanisms", drawn, Mechanism)
    numbers = [_validate.count("counts", count) for count in counts]
    if not numbers:
        raise DomainError("counts must name at least one number of compositions, got none")
    require_matplotlib()
    tasks = [(mechanism, count) for mechanism in drawn for count in numbers]
    found = [
        float(mechanism.composed(count, sampling_rate, adjacency).estimate.epsilon(delta))
        for mechanism, count in track(tasks, "accounting", enabled=progress)
    ]
    noises = [mechanism.noise for mechanism in drawn]
    values = np.array(found).reshape(len(drawn), len(numbers))
    lines = dict(zip(_names(drawn, noises), values, strict=True))
    ax = plot_lines(numbers, lines, ax=ax, colors=_colors(noises), thin=thin, log_x=log, log_y=log)
    ax.set_xlabel("Compositions")
    ax.set_ylabel("Epsilon")
    return ax


def plot_lines(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    ax: Axes | None = None,
    colors: Sequence[str] | None = None,
    thin: Collection[str] = (),
    log_x: bool = False,
    log_y: bool = False,
    name: bool = True,
) -> Axes:
    """Draw named lines over common ``x`` in the style of this module.

    Parameters
    ----------
    x : array_like
        Increasing.
    lines : mapping from name to array_like
        Infinite values are left out.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None makes a new figure.
    colors : sequence of str, optional
        One for each line; None goes by the names of the laws.
    thin : collection of str
        Names of lines that stand back.
    log_x, log_y : bool
        Logarithmic axes.
    name : bool
        Write the names at the right ends.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> ax = plot_lines([1, 2, 3], {"ours": [1, 2, 4]}, ax=new_figure().subplots(), log_y=True)
    >>> ax.get_yscale()
    'log'
    """
    ax = _new_axes() if ax is None else ax
    points = np.asarray(x, dtype=np.float64)
    marker = "o" if points.size < 16 else ""
    if colors is None:
        colors = [color_of(line, i) for i, line in enumerate(lines)]
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

    >>> ax = plot_lines([1, 2], {"ours": [1.0, 2.0]}, ax=new_figure().subplots(), name=False)
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

    >>> ax = plot_lines([1, 2], {"ours": [1.0, 2.0]}, ax=new_figure().subplots(), name=False)
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


def _names(drawn: Sequence[object], noises: Sequence[object]) -> list[str]:
    """Names of the laws; where one law comes twice, everything about it."""
    uses = Counter(type(noise).__name__ for noise in noises)
    return [
        type(noise).__name__ if uses[type(noise).__name__] == 1 else repr(what)
        for what, noise in zip(drawn, noises, strict=True)
    ]


def _colors(noises: Sequence[object]) -> list[str]:
    """The law's color, or where one law comes twice one color each."""
    names = [type(noise).__name__ for noise in noises]
    if len(set(names)) < len(names):
        return [_PALETTE[i % len(_PALETTE)] for i in range(len(names))]
    return [color_of(name, i) for i, name in enumerate(names)]


def _check_each(name: str, values: Sequence[object], kind: type) -> None:
    if not values:
        raise DomainError(f"{name} must hold at least one {kind.__name__}, got none")
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {value!r}")
