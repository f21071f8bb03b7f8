"""Panels with kinks: one polynomial for each part, in the variable of the whole panel.

A part that covers the share ``h`` of a panel is interpolated like a panel of its own, in ``w`` in
[-1, 1], and rewritten in ``u = m + h w``. That multiplies the rounding errors of the coefficient of
degree ``k`` by ``h**-k``, so short parts get the lowest degrees that do: they drop what is of the
order of ``(h / 16)**k``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise.compile.panels import (
    CHECKS,
    DEGREE,
    ROW,
    FitError,
    Layout,
    PanelArguments,
    chebyshev_points,
    coefficients,
    fit,
)
from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]
PairFunction = Callable[[Float], dd.Pair]
ScalarPair = tuple[float, float]

_TOLERANCE = 2e-15
# -log of the smallest positive float64.
_DEEPEST = 745.0
# A part shorter than this is left to its neighbor: at this distance from a kink, a jump in the
# third derivative does not show.
_SHORTEST = 2.0**-13
# Terms of a part below this power of 2 are dropped; those of a whole panel fall like 16**-k.
_NEGLIGIBLE = 60.0


def fit_parts(
    function: PairFunction,
    layout: Layout,
    breaks: tuple[float, ...],
    depth: Callable[[Float], Float],
    tolerance: float,
) -> PanelArguments:
    """Fit a function that has kinks at the breaks, with more rows for panels that hold some.

    Parts whose ``depth`` is beyond every probability that a float64 can hold are fitted to what
    logarithms of that size need.

    Raises
    ------
    FitError
        If the function is not smooth on a part.
    """
    rows, first_exponent, bits = fit(function, layout, tolerance=tolerance, breaks=breaks)
    if not breaks:
        return rows, first_exponent, bits
    centers, halves = layout.centers()
    edges = np.append(centers - halves, layout.limit)
    inside = np.array([b for b in breaks if 0.0 < b < layout.limit])
    owner = np.searchsorted(edges, inside, side="right") - 1
    extra: list[Float] = []
    for panel in sorted(set(owner.tolist())):
        center, half = float(centers[panel]), float(halves[panel])
        cuts = [(float(b) - center) / half for b in inside[owner == panel]]
        ends = [-1.0]
        ends += [cut for cut in cuts if cut - ends[-1] > _SHORTEST and 1.0 - cut > _SHORTEST]
        parts = [
            _part(function, depth, center, half, left, right)
            for left, right in zip(ends, [*ends[1:], 1.0], strict=True)
        ]
        rows[panel] = parts[0]
        before = panel
        for cut, part in zip(ends[1:], parts[1:], strict=True):
            own = rows.shape[0] + len(extra)
            extra += [part, np.array([before, cut, own, *[np.nan] * (ROW - 3)])]
            before = own
    return np.concatenate([rows, np.array(extra).reshape(-1, ROW)]), first_exponent, bits


def _part(
    function: PairFunction,
    depth: Callable[[Float], Float],
    center: float,
    half: float,
    left: float,
    right: float,
) -> Float:
    # Few bits, so that the points are exact unless the part is short.
    share = _shortened(0.5 * (right - left))
    middle = _shortened(0.5 * (right + left), share)
    # Even: the middle point of the interpolation is 0.
    degree = min(DEGREE, 2 * int(0.5 * _NEGLIGIBLE / (4.0 - np.log2(share)) + 0.5))
    deep = depth(np.array([center + half * left]))[0]
    # A function that is not as smooth as its panel needs more.
    for tried in range(degree, DEGREE + 1, 2):
        w = np.array(chebyshev_points(tried) + CHECKS)
        t = center + half * (middle + share * w)
        hi, lo = function(t)
        size = tried + 1
        found_hi, found_lo = coefficients((hi[None, :size], lo[None, :size]))
        local = list(zip(found_hi[0].tolist(), found_lo[0].tolist(), strict=True))
        row = _row(_substituted(local, share, middle))
        u = middle + share * w[size:]
        total = np.full_like(u, row[ROW - 1])
        for power in range(DEGREE - 1, 0, -1):
            total = total * u + row[power + 1]
        error = np.abs(((row[0] - hi[size:]) + (row[1] - lo[size:])) + total * u)
        bound = _TOLERANCE * np.maximum(1.0, np.abs(hi[size:]))
        bad = ~(error <= (bound if deep < _DEEPEST else 1e-14 * deep))
        if not bad.any():
            return row
    raise FitError(f"the law is not smooth enough near {float(t[size:][bad][0])!r}")


def _shortened(x: float, size: float | None = None) -> float:
    """``x`` to ten bits below the size."""
    unit = 2.0 ** (np.frexp(x if size is None else size)[1] - 10)
    return float(np.floor(x / unit) * unit)


def _substituted(local: list[ScalarPair], share: float, middle: float) -> list[ScalarPair]:
    """Coefficients in ``u`` of a polynomial in ``w = (u - middle) / share``."""
    slope: Any = dd.divide(1.0, share)  # type: ignore[arg-type]
    shift: Any = dd.multiply(slope, (-middle, 0.0))  # type: ignore[arg-type]
    result: list[Any] = [(0.0, 0.0)]
    for coefficient in reversed(local):
        scaled: list[Any] = [(0.0, 0.0), *(dd.multiply(c, slope) for c in result)]
        shifted: list[Any] = [*(dd.multiply(c, shift) for c in result), (0.0, 0.0)]
        result = [dd.add(a, b) for a, b in zip(shifted, scaled, strict=True)]
        result[0] = dd.add(result[0], coefficient)  # type: ignore[arg-type]
    return result


def _row(polynomial: list[ScalarPair]) -> Float:
    row = np.zeros(ROW)
    row[:2] = polynomial[0]
    for k, (hi, lo) in enumerate(polynomial[1 : DEGREE + 1], start=1):
        row[k + 1] = hi + lo
    return row
