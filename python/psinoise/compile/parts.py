"""Panels in parts: where a function has kinks, or bends within a small share of a panel.

A part is a share of a panel with a polynomial in a variable of its own. Panels that one polynomial
does not fit are bisected until their parts fit: a table is as fine as its function needs, and no
finer. At the breaks of a function parts begin from the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from psinoise.compile.panels import ROW, FitError, Layout, PanelArguments, fit_rows
from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]
PairFunction = Callable[[Float], dd.Pair]

# -log of the smallest positive float64, and what logarithms need beyond it, relative to them.
_DEEPEST, _DEEP = 745.0, 1e-14
# A break this near to another end of a part is left to it: at this distance from a kink, a jump in
# the third derivative does not show.
_NEAREST = 2.0**-13
# In half panels; no part is shorter. Even a jump in the second derivative does not show there.
_SHORTEST = 2.0**-26
# A function that is rough everywhere is not bisected for long.
_MOST_PARTS = 2048


def fit_parts(
    functions: Sequence[PairFunction],
    layout: Layout,
    breaks: tuple[float, ...],
    depth: Callable[[Float], Float],
    tolerance: float,
) -> list[PanelArguments]:
    """Fit functions on common panels and parts of panels.

    Parameters
    ----------
    functions : sequence of callables
        They take points and return values as ``hi + lo``.
    layout : Layout
        The panels.
    breaks : tuple of float
        Where the functions have kinks.
    depth : callable
        Parts that begin where it is beyond every probability that a float64 can hold are fitted to
        what logarithms of that size need.
    tolerance : float
        Largest error allowed between the interpolation points, relative to ``max(1, |value|)``.

    Raises
    ------
    FitError
        If a function is smooth on no part of a panel, however short.
    """
    centers, halves = layout.centers()
    fits = [fit_rows(function, centers, halves) for function in functions]
    error = np.max([error for _, error in fits], axis=0)
    inside = np.array([b for b in breaks if 0.0 < b < layout.limit])
    owner = np.searchsorted(np.append(centers - halves, layout.limit), inside, side="right") - 1
    cut = ~(error <= tolerance)
    cut[owner] = True
    panels = [rows for rows, _ in fits]
    if not cut.any():
        return [(rows, layout.first_exponent, layout.bits) for rows in panels]
    pending: list[tuple[int, float, float]] = []
    for panel in np.flatnonzero(cut).tolist():
        ends = _ends((inside[owner == panel] - centers[panel]) / halves[panel])
        pending += [(panel, *pair) for pair in pairwise(ends)]
    done: list[tuple[int, float, list[Float], float, float]] = []
    while pending:
        if len(done) + len(pending) > _MOST_PARTS:
            raise _rough(centers, halves, pending[0])
        number = np.array([panel for panel, _, _ in pending])
        left, right = np.array([ends for _, *ends in pending]).T
        share = _shortened(0.5 * (right - left), 0.5 * (right - left))
        middle = _shortened(0.5 * (right + left), share)
        fitted = [
            fit_rows(function, centers[number] + halves[number] * middle, halves[number] * share)
            for function in functions
        ]
        error = np.max([error for _, error in fitted], axis=0)
        deep = depth(centers[number] + halves[number] * left) >= _DEEPEST
        fine = error <= np.where(deep, max(_DEEP, tolerance), tolerance)
        again: list[tuple[int, float, float]] = []
        for i, (panel, start, end) in enumerate(pending):
            if fine[i]:
                rows = [found[i] for found, _ in fitted]
                done.append((panel, start, rows, float(middle[i]), float(1.0 / share[i])))
            elif end - start < _SHORTEST:
                raise _rough(centers, halves, pending[i])
            else:
                between = 0.5 * (start + end)
                again += [(panel, start, between), (panel, between, end)]
        pending = again
    done.sort(key=lambda part: part[:2])
    return [
        (_with_parts(rows, done, i), layout.first_exponent, layout.bits)
        for i, rows in enumerate(panels)
    ]


def _with_parts(
    rows: Float, parts: list[tuple[int, float, list[Float], float, float]], which: int
) -> Float:
    """Rows of panels, then of parts and their descriptions (``csrc/bindings/law_store.hpp``)."""
    extra: list[Float] = []
    for panel, start, polynomials, middle, inverse in parts:
        own = rows.shape[0] + len(extra)
        begin = start if start > -1.0 else -math.inf
        description = [panel, begin, own, middle, inverse, *[math.nan] * (ROW - 5)]
        extra += [polynomials[which], np.array(description)]
    return np.concatenate([rows, np.array(extra)])


def _ends(cuts: Float) -> list[float]:
    """-1, the cuts that are not too near to each other or to the ends, and 1."""
    ends = [-1.0]
    for cut in cuts.tolist():
        if cut - ends[-1] > _NEAREST and 1.0 - cut > _NEAREST:
            ends.append(cut)
    return [*ends, 1.0]


def _shortened(x: Float, size: Float) -> Float:
    """``x`` to ten bits below a size, so that the points are exact unless the part is short."""
    unit = np.ldexp(1.0, np.frexp(size)[1] - 10)
    return np.asarray(np.floor(x / unit) * unit)


def _rough(centers: Float, halves: Float, part: tuple[int, float, float]) -> FitError:
    panel, left, _ = part
    place = float(centers[panel] + halves[panel] * left)
    return FitError(f"the law is not smooth enough near {place!r}")
