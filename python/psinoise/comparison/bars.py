"""Bars, one for each law, in the law's color."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from psinoise import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_bars"]

_HEIGHT = 0.62
# Room to the right of the longest bar for its number, as a share of it.
_MARGIN = 1.18


def plot_bars(
    values: Mapping[str, float], ax: Axes | None = None, *, missing: Collection[str] = ()
) -> Axes:
    """Draw one horizontal bar for each value, the first one on top, with its number at its end.

    Parameters
    ----------
    values : mapping of str to float
        Names of laws and values of at least 0; one that is not finite gets its word and no bar.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None makes a new figure.
    missing : collection of str
        Names of laws that have no value: words in its place.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    """
    plotting.require_matplotlib()
    if ax is None:
        from matplotlib import pyplot  # a figure that notebooks and show() know of

        ax = pyplot.subplots(figsize=(6.4, 1.4 + 0.5 * len(values)), layout="constrained")[1]
    lengths = [value if math.isfinite(value) else 0.0 for value in values.values()]
    colors = [plotting.color_of(name, i) for i, name in enumerate(values)]
    places = range(len(lengths))
    ax.barh(places, lengths, height=_HEIGHT, color=colors)
    for place, (name, value), length in zip(places, values.items(), lengths, strict=True):
        ax.annotate(
            "not applicable" if name in missing else f"{value:.4g}",
            (length, place),
            xytext=(5, 0),
            textcoords="offset points",
            color=plotting.FAINT,
            va="center",
        )
    ax.set_yticks(places, list(values))
    ax.invert_yaxis()
    plotting.dress(ax)
    ax.grid(False, axis="y")
    ax.set_xlim(0.0, _MARGIN * max(lengths) or 1.0)
    return ax
