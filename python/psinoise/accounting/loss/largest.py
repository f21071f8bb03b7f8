"""The largest privacy loss of a shift, bounded from both sides, and where it is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol, cast

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.loss.law import Float, Law
from psinoise.numerics.crossing import narrowed
from psinoise.numerics.rational import rounded

# A polynomial of degree n on its interval reaches its largest absolute value on the nodes of
# Chebyshev's polynomial of degree N, but for the factor cos(n pi / (2 N)) (Ehlich and Zeller,
# Mathematische Zeitschrift 86, 1964). Log densities have degree 10 on their panels.
_NODES = np.cos(np.pi * (np.arange(32.0) + 0.5) / 32.0)
_OVERSHOOT = 1.0 / math.cos(10.0 * math.pi / 64.0)
_PARTS, _MOST_CUT, _MOST_PARTS = 8, 1 << 13, 1 << 19
# Errors of logpdf: of the standardized law, and of adding the logarithm of the scale.
_LOG_ERROR, _UNIT = 5e-14, 2.0**-52
# What bounds by monotony alone may leave.
_MONOTONE_GAP = 1e-8
# Shifts, relative to where the score is largest, up to which the score is integrated; up to which
# it is all but constant; and the part of the place of a maximum about it that is looked at apart.
_SMALL_SHIFT, _TINY_SHIFT, _NEAR = 0.3, 1e-7, 1e-3
_MOST_PANELS = 64
_GAUSS, _WEIGHTS = np.polynomial.legendre.leggauss(12)
# Nothing is evaluated deeper than this but where the shift is as long; nor beyond float64.
_DEEPEST, _FARTHEST, _FARTHEST_SHIFT = 1000.0, 2.0**1020, 2.0**1000


class _Tabulated(Law, Protocol):
    """What laws from tables know besides, for sharper bounds."""

    @property
    def _panel_edges(self) -> Float: ...
    @property
    def _steepest(self) -> tuple[float, float]: ...
    def score(self, t: Float) -> Float: ...


def largest_log_ratio_bounds(noise: Law, sensitivity: float) -> tuple[float, float]:
    """A lower and an upper bound of the supremum of ``log p(x - a)/p(x)``.

    Log-concave: ``log p(x - s) - log p(x) <= s score(x) <= s score_limit``, approached at infinity;
    both bounds are that product, rounded outwards. Otherwise the shift ``a = s`` is worst by the
    lemma, and `_rise` has the proof.
    """
    if noise.score_limit == math.inf:
        return math.inf, math.inf
    if not noise.log_concave:
        return _rise(noise, sensitivity)[1:]
    limit = Fraction(noise.score_limit)
    if hasattr(noise, "_score_limit"):  # of the standardized law
        limit = Fraction(noise._score_limit) / Fraction(noise.scale)
    exact = Fraction(sensitivity) * limit
    return rounded(exact, up=False), rounded(exact, up=True)


def largest_score(noise: Law) -> float:
    """An upper bound of ``|(log p)'|``; inf where there is none, or where ``p`` ends."""
    if math.isfinite(noise.support):
        return math.inf
    if noise.log_concave:
        return noise.score_limit
    if not hasattr(noise, "_steepest"):
        return math.inf
    return cast(_Tabulated, noise)._steepest[1] / noise.scale * (1.0 + 4.0 * _UNIT)


def turning_distance(noise: Law, sensitivity: float) -> float:
    """How far beyond ``s`` the loss ``log p(x - s)/p(x)`` of a law that is not log-concave turns.

    Relative error 1e-6; of its sum with ``s`` where it is below the table.
    """
    return _rise(noise, sensitivity)[0] if noise.score_limit < math.inf else math.inf


@kept()
def _rise(noise: Law, s: float) -> tuple[float, float, float]:
    """Where beyond ``s`` the loss is largest, and bounds of it, for a law that is not log-concave.

    *Where to look.* With ``g(t) = log p(t)``, not increasing in ``t >= 0``, the loss at ``s - u``
    is ``g(u) - g(s - u)`` and does not increase in ``0 <= u <= s / 2``; so its supremum is that of
    ``L(u) = g(u) - g(u + s)`` over ``u >= 0``.

    *A support that ends at ``A <= s``.* Both laws have the outputs from ``s - A`` to ``A``, and the
    loss rises to the last of them, for ``g`` does not increase.

    *Any interval.* ``L <= g(a) - g(b + s)`` on ``[a, b]``, since ``g`` does not increase. Intervals
    whose bound is above the best value seen are cut; the largest bound of the others is an upper
    bound. This takes evaluations alone, but some ``h**-1/2`` of them for a gap of ``h``.

    *Panels.* Where ``g`` is a polynomial between edges, so is ``L`` between the edges and the edges
    less ``s``: it is at most the middle of its values on the nodes plus half of their range times
    the factor of Ehlich and Zeller. Near the maximum the range is quadratic in the width, and each
    round leaves a few intervals. Beyond the table edges go on in the same proportion, against which
    a tail is as smooth.

    *Far out.* Beyond the last edge less ``s``, which is at least ``3 s``, ``L <= s max score``, and
    the score is at most the larger of its mean over the octave before and its limit, as `Law`
    demands. (Stable laws: for ``alpha <= 1`` the law of ``log |X|`` is the convolution of those of
    ``log |N|`` for normal ``N`` and half the logarithm of a positive stable variable of index
    ``alpha / 2 <= 1/2``, which are log-concave (Simon, Proc. AMS 140, 2012); so ``t score(t)``
    increases, to ``1 + alpha``. For ``alpha > 1`` the tail is ``t**(-1 - alpha)`` times a series in
    ``t**-alpha``, which is below ``2**-39`` there.)

    *Small shifts.* ``L`` is a difference that cancels, but also the integral of the score from
    ``u`` to ``u + s``: at most ``s max score``, and known at a point. About the maximum its slope,
    a difference of scores, is seen to fall through 0; the maximum is then above the value at a
    point by at most the slope there times the width. All else is bounded as above, where rounding
    matters less, for ``L`` is less there.

    *Rounding.* How far values of ``g`` may be off (`_logs`) is added to upper and taken from lower
    bounds.
    """
    if not s <= _FARTHEST_SHIFT * noise.scale:
        return s, 0.0, math.inf  # no float64 holds distances in units of the scale
    if 2.0 * noise.support <= s:
        return noise.support - s, -math.inf, -math.inf  # neighbors have no output in common
    if noise.support <= s:
        (near, far), errors = _logs(noise, np.array([s - noise.support, noise.support]))
        loss, error = float(near - far), float(errors.sum())
        # A density may be 0 at its end.
        return noise.support - s, loss - error if loss < math.inf else -math.inf, loss + error
    if not hasattr(noise, "_steepest"):
        place, low, high = _branch_and_bound(noise, s, _edges(noise, s), polynomial=False)
    else:
        place, low, high = _rise_of_table(cast(_Tabulated, noise), s)
    # The loss at infinity is approached, too.
    at_infinity = s * noise.score_limit * (1.0 - _UNIT) if math.isinf(noise.support) else low
    return place, max(low, at_infinity), high


def _rise_of_table(noise: _Tabulated, s: float) -> tuple[float, float, float]:
    steepest, most = noise._steepest
    shift = s / noise.scale
    ceiling = shift * most * (1.0 + 4.0 * _UNIT)
    if shift <= _TINY_SHIFT * steepest:
        u = steepest - 0.5 * shift
        return u * noise.scale, _integral(noise, u, shift)[0], ceiling
    edges, low, small = _edges(noise, s), -math.inf, shift <= _SMALL_SHIFT * steepest
    if small:
        u = _turn(noise, shift, steepest - 0.5 * shift)
        low, high = _integral(noise, u, shift)
        slopes = _slope(noise, shift, u * (1.0 + _NEAR * np.linspace(-1.0, 1.0, 9)))
        if slopes[0] > 0.0 > slopes[-1] and bool((np.diff(slopes) < 0.0).all()):
            above = abs(float(slopes[4])) * _NEAR * u
            ends = u * noise.scale * (1.0 + 0.999 * _NEAR * np.array([-1.0, 1.0]))
            _, least, rest = _branch_and_bound(noise, s, edges, polynomial=True, known=ends)
            return u * noise.scale, max(low, least), min(ceiling, max(high + above, rest))
    place, least, high = _branch_and_bound(noise, s, edges, polynomial=True)
    u = u if small else _turn(noise, shift, place / noise.scale)
    return u * noise.scale, max(low, least), min(ceiling, high)


def _slope(noise: _Tabulated, shift: float, u: Float) -> Float:
    """``L'`` of the standardized law."""
    far, near = noise.score(np.stack([u + shift, u]))
    return np.asarray(far - near)


def _turn(noise: _Tabulated, shift: float, u: float) -> float:
    """Where ``L`` of the standardized law turns, from a place that is near."""

    def slope(u: float) -> float:
        return float(_slope(noise, shift, np.array([u]))[0])

    for width in (0.01, 0.08, 0.64):
        left, right = u * (1.0 - width), u * (1.0 + width)
        rise, fall = slope(left), slope(right)
        if rise > 0.0 > fall:
            return narrowed(slope, (left, rise), (right, fall), 0.0, 1e-8)
    return u


def _integral(noise: _Tabulated, u: float, shift: float) -> tuple[float, float]:
    """``L(u)`` of the standardized law as an integral of the score, from below and above."""
    edges = noise._panel_edges
    panel = int(np.searchsorted(edges, u))
    # As many parts as panels: on twice the width of one the rule is exact.
    parts = min(math.ceil(shift / float(edges[panel] - edges[panel - 1])), _MOST_PANELS)
    places = (np.arange(parts)[:, None] + (0.5 + 0.5 * _GAUSS)) / parts
    mean = 0.5 * float((noise.score(u + shift * places) @ _WEIGHTS).mean())
    # Formulas are right to this, relatively or of the score times t.
    error = _LOG_ERROR * max(mean, 1.0 / u)
    return shift * (mean - error), shift * (mean + error)


def _logs(noise: Law, t: Float) -> tuple[Float, Float]:
    """Log densities, and how far they may be off."""
    logs = noise.logpdf(t)
    standard = np.abs(logs + math.log(noise.scale))
    return logs, _LOG_ERROR * np.maximum(1.0, standard) + _UNIT * np.abs(logs)


def _edges(noise: Law, s: float) -> Float:
    """Distances from the center, from 0 to beyond four shifts or to the end of the support."""
    if hasattr(noise, "_panel_edges"):
        edges = cast(_Tabulated, noise)._panel_edges * noise.scale
    else:
        grid = np.concatenate([[0.0], noise.scale * 2.0 ** np.arange(-60.0, 40.0625, 0.125)])
        edges = np.union1d(grid, [kink for kink in noise.kinks if kink > 0.0])
    growth = edges[-1] / edges[-2]
    if edges[-1] < 4.0 * s:
        count = math.ceil(math.log(4.0 * s / edges[-1]) / math.log(growth))
        more = edges[-1] * np.exp(math.log(growth) * np.arange(1.0, count + 2.0))
        edges = np.concatenate([edges, more])
    edges = edges[edges < min(noise.support, _FARTHEST)]
    if math.isfinite(noise.support):
        return np.append(edges, noise.support)
    logs = noise.logpdf(edges)
    return np.asarray(edges[(edges <= 8.0 * s) | (logs > logs[0] - _DEEPEST)])


def _far_out(noise: Law, s: float, last: float) -> float:
    """A bound of ``L`` beyond the last edge."""
    if math.isfinite(noise.support):
        return -math.inf
    logs, errors = _logs(noise, np.array([0.5 * last, last]))
    mean = float(logs[0] - logs[1] + errors.sum()) / (0.5 * last)
    return s * max(mean, noise.score_limit) * (1.0 + 4.0 * _UNIT)


def _branch_and_bound(
    noise: Law, s: float, edges: Float, *, polynomial: bool, known: Float | None = None
) -> tuple[float, float, float]:
    """Where ``L`` is largest, and bounds of it, but for an interval that is known; see `_rise`."""
    cuts = np.union1d(edges, edges - s)
    cuts = cuts[(cuts >= 0.0) & (cuts <= edges[-1] - s)]
    if known is not None:
        cuts = np.union1d(cuts[(cuts <= known[0]) | (cuts >= known[1])], known)
    low, high = cuts[:-1], cuts[1:]
    if known is not None:
        low, high = low[low != known[0]], high[low != known[0]]
    place, least, floor = 0.0, -math.inf, -math.inf

    def note(u: Float, values: Float, errors: Float) -> None:
        """The best value, and what a bound must be above to be followed."""
        nonlocal place, least, floor
        best = int(np.argmax(values - errors))
        if values.flat[best] - errors.flat[best] > least:
            place, least = float(u.flat[best]), float(values.flat[best] - errors.flat[best])
        gap = 0.0 if polynomial else _MONOTONE_GAP * max(least, 0.0)
        floor = max(floor, least + 3.0 * float(errors.flat[best]) + gap)

    def bound(low: Float, high: Float) -> Float:
        (near, e), (far, e_far), (end, e_end) = (_logs(noise, t) for t in (low, low + s, high + s))
        note(low, near - far, e + e_far)
        bounds = np.asarray(near - end + e + e_end)
        left = bounds > floor
        if polynomial and left.any():
            u = low[left, None] + (high - low)[left, None] * (0.5 + 0.5 * _NODES)
            (near, e), (far, e_far) = _logs(noise, u), _logs(noise, u + s)
            values, errors = near - far, e + e_far
            note(u, values, errors)
            most = values.max(axis=1) + (_OVERSHOOT - 1.0) * (0.5 * np.ptp(values, axis=1))
            bounds[left] = np.minimum(bounds[left], most + errors.max(axis=1))
        return bounds

    bounds, most, evaluated = bound(low, high), _far_out(noise, s, float(cuts[-1])), 0
    while True:
        most = max(most, float(bounds[bounds <= floor].max(initial=-math.inf)))
        left = np.flatnonzero(bounds > floor)
        if not left.size or evaluated > _MOST_PARTS:
            break
        # The largest bounds first, where there are too many.
        chosen = left[np.argsort(bounds[left])[-_MOST_CUT:]]
        a, b = low[chosen, None], high[chosen, None]
        parts = a + (b - a) * (np.arange(_PARTS + 1.0) / _PARTS)
        new = parts[:, :-1].reshape(-1), parts[:, 1:].reshape(-1)
        evaluated += new[0].size
        others = left[np.isin(left, chosen, invert=True, assume_unique=True)]
        bounds = np.concatenate([bounds[others], bound(*new)])
        low, high = (np.concatenate([o[others], n]) for o, n in zip((low, high), new, strict=True))
    return place, least, max(most, float(bounds.max()))
