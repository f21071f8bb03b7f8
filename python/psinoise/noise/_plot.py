"""The density of a law, or its masses, drawn; a law keeps its color in every plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._style import MORE_COLORS, PALETTE, draw_lines, label_ends, name_in_corner
from psinoise.errors import DomainError
from psinoise.noise import _checks
from psinoise.noise._interface import NoiseLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_each", "color_of", "colors_of", "law_colors", "names_of", "plot_density"]

Float = NDArray[np.float64]

# Of heavy tails, how many quartiles are drawn: of normal noise 1e-4 is left out after 6 of them.
_QUARTILES = 16.0
# Of whole numbers, more than a picture is wide.
_MOST_POINTS = 4001
# Beyond what is drawn to the end: where laws that end fall, and the height that names are above.
_ROOM, _HEADROOM = 1.05, 1.15
# What adding up masses can make of a law without an atom.
_ROUNDING = 1e-9


@cache
def law_colors() -> dict[str, str]:
    """The color of each law, by its name."""
    from psinoise.noise import DESIGNED, FAMILIES, Schrodinger  # they import this module

    names = [law.__name__ for law in FAMILIES] + [law.__name__ for law in DESIGNED]
    return dict(zip([*names, Schrodinger.__name__], cycle(PALETTE + MORE_COLORS)))


def color_of(law: str, otherwise: int = 0) -> str:
    """Color of the law of this name; ``otherwise`` picks one for a name that is not a law's.

    >>> color_of("Gaussian") != color_of("Airy")
    True
    """
    return law_colors().get(law, PALETTE[otherwise % len(PALETTE)])


def plot_density(
    noise: NoiseLaw | Iterable[NoiseLaw],
    ax: Axes | None = None,
    *,
    x: ArrayLike | None = None,
    log: bool = False,
    thin: Collection[str] = (),
) -> Axes:
    """Draw the density of one noise law, or of several; of laws on the whole numbers the masses.

    An atom at 0 is a thin line up and said beside the name.

    Parameters
    ----------
    noise : NoiseLaw or iterable of NoiseLaw
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None makes a new figure.
    x : array_like, optional
        Increasing points; None takes 1001 that leave out 1e-4 of the probability of the widest
        law, or of heavy tails all beyond 16 quartiles.
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
    >>> from psinoise.plotting import new_figure, plot_density
    >>> laws = [pn.Airy(mean_abs=1.0), pn.Gaussian(mean_abs=1.0)]
    >>> ax = plot_density(laws, new_figure().subplots())
    >>> [line.get_label() for line in ax.get_lines()]
    ['Airy', 'Gaussian']
    """
    noises = [noise] if isinstance(noise, NoiseLaw) else list(dict.fromkeys(noise))
    check_each("noise", noises, NoiseLaw)
    log = _validate.flag("log", log)
    reach = max(map(_reach, noises))
    points = np.linspace(-reach, reach, 1001) if x is None else _increasing(x)
    for law, name, color in zip(noises, names_of(noises, noises), colors_of(noises), strict=True):
        atom = 0.0 if law.for_whole_numbers else 1.0 - 2.0 * float(law.ccdf(0.0))
        label = f"{name}, {atom:.2g} at 0" if atom > _ROUNDING else name
        at = points
        if law.for_whole_numbers:
            at = _whole_numbers(points[0], points[-1])
        ax = draw_lines(
            at,
            {label: _heights(law, at, atom)},
            [color],
            ax=ax,
            thin=[label] if name in thin else [],
            name=False,
            steps=law.for_whole_numbers,
        )
        if atom > _ROUNDING:
            ax.axvline(0.0, color=color, linewidth=1.1, label="_")
    assert ax is not None
    if log:
        ax.set_yscale("log")
    if points.size > 1:
        ax.set_xlim(points[0], points[-1])
    if log:
        label_ends(ax)
    else:
        named = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
        highest = max(float(np.max(line.get_ydata())) for line in named)
        ax.set_ylim(0.0, _HEADROOM * highest)
        name_in_corner(ax)  # all densities end at 0: nothing there to hang a name on
    ax.set_xlabel("Noise")
    ax.set_ylabel("Mass" if all(law.for_whole_numbers for law in noises) else "Density")
    return ax


def _increasing(x: ArrayLike) -> Float:
    points = _checks.real_array("x", x)
    if points.ndim != 1 or not points.size or not np.all(np.isfinite(points)):
        raise DomainError(f"x must be a list of finite numbers, got {x!r}")
    if not np.all(np.diff(points) > 0.0):
        raise DomainError("x must increase")
    return points


def _whole_numbers(low: float, high: float) -> Float:
    """All from ``low`` to ``high``, or as many of them as a picture shows."""
    first, last = np.ceil(low), np.floor(high)
    if first > last:
        raise DomainError(
            f"x must reach a whole number, got those from {float(low)!r} to {float(high)!r}"
        )
    number = int(min(last - first + 1.0, _MOST_POINTS))
    return np.unique(np.rint(np.linspace(first, last, number)))


def _reach(law: NoiseLaw) -> float:
    """As far as is drawn to either side."""
    most, quartile = float(law.iccdf(5e-5)), float(law.iccdf(0.25))
    reach = _ROOM * (min(most, _QUARTILES * quartile) if quartile > 0.0 else most)
    return max(reach, 1.0) if law.for_whole_numbers or reach == 0.0 else reach


def _heights(law: NoiseLaw, x: Float, atom: float) -> Float:
    """Density, or masses of whole numbers; beside an atom what is left of it between points."""
    if law.for_whole_numbers:
        below = np.asarray(law.ccdf(np.abs(x) - 1.0)) - law.ccdf(np.abs(x))
        return np.where(x == 0.0, 1.0 - 2.0 * float(law.ccdf(0.0)), below)
    if atom <= _ROUNDING:
        return np.asarray(law.pdf(x))
    half = 0.5 * float(np.min(np.diff(x)))
    inner = np.asarray(law.ccdf(np.maximum(np.abs(x) - half, 0.0))) - law.ccdf(np.abs(x) + half)
    return np.asarray(inner / np.minimum(np.abs(x) + half, 2.0 * half))


def names_of(drawn: Sequence[object], noises: Sequence[object]) -> list[str]:
    """Names of the laws; where one law comes twice, everything about it."""
    uses = Counter(type(noise).__name__ for noise in noises)
    return [
        type(noise).__name__ if uses[type(noise).__name__] == 1 else repr(what)
        for what, noise in zip(drawn, noises, strict=True)
    ]


def colors_of(noises: Sequence[object]) -> list[str]:
    """The law's color, or where one law comes twice one color each."""
    names = [type(noise).__name__ for noise in noises]
    if len(set(names)) < len(names):
        return [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    return [color_of(name, i) for i, name in enumerate(names)]


def check_each(name: str, values: Sequence[object], kind: type) -> None:
    """Refuse nothing, and what is of another kind."""
    if not values:
        raise DomainError(f"{name} must hold at least one {kind.__name__}, got none")
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {value!r}")
