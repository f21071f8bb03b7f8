"""Plots of noise laws and of their privacy: axes in, axes out.

They need matplotlib, which the first plot imports. A law keeps its color in every plot. `FAINT` is
the color of what stands back:

>>> FAINT
'#6b6b6b'
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psinoise import _validate
from psinoise._progress import track
from psinoise._style import (
    FAINT,
    draw_lines,
    dress,
    label_ends,
    name_in_corner,
    new_figure,
    require_matplotlib,
    set_title,
)
from psinoise.errors import DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise._plot import check_each, color_of, colors_of, names_of, plot_density

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    check_each("mechanisms", drawn, Mechanism)
    log, progress = _validate.flag("log", log), _validate.flag("progress", progress)
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
    lines = dict(zip(names_of(drawn, noises), values, strict=True))
    ax = plot_lines(
        numbers, lines, ax=ax, colors=colors_of(noises), thin=thin, log_x=log, log_y=log
    )
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
    log_x, log_y = _validate.flag("log_x", log_x), _validate.flag("log_y", log_y)
    name = _validate.flag("name", name)
    if colors is None:
        colors = [color_of(line, i) for i, line in enumerate(lines)]
    return draw_lines(x, lines, colors, ax=ax, thin=thin, log_x=log_x, log_y=log_y, name=name)
