"""Where a smooth density falls most steeply: the loss of a small shift is at most that times it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from psinoise._backend import core

if TYPE_CHECKING:
    from psinoise.noise._base import Noise

__all__ = ["steepest"]

Float = NDArray[np.float64]

# Values of the score on a panel: more than the fits of its integral have.
_DEGREE = 15
_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1.0) + 0.5) / (_DEGREE + 1.0))
_FROM_VALUES = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE))
# On the nodes of Chebyshev's polynomial of degree N > n, a polynomial of degree n reaches its
# largest absolute value but for the factor cos(n pi / (2 N)) (Ehlich and Zeller, Mathematische
# Zeitschrift 86, 1964).
_FINE = 64
_FINE_NODES = np.cos(np.pi * (np.arange(float(_FINE)) + 0.5) / _FINE)
_OVERSHOOT = 1.0 / math.cos(_DEGREE * math.pi / (2.0 * _FINE))
_PARTS, _ROUNDS = 8, 12
# What the derivative of a fit is off, relative to the largest: noise, amplified a thousandfold.
_FIT_ERROR = 1e-6
_SETTLED = 2e-14
# Formulas are right to 5e-14 of the score, or of 1 in the logarithm of t.
_FORMULA_ERROR = 5e-14


def steepest(law: Noise) -> tuple[float, float]:
    """Where ``-(log p)'`` of the standardized law is largest, and an upper bound of it anywhere.

    A polynomial is at most the middle of its values on the nodes plus half of their range times the
    factor of Ehlich and Zeller. By the slopes of the fits, which cost nothing, this leaves few
    panels; on these the score is interpolated, and parts of them are cut until their bounds are no
    more than the best value. Beyond the tables the score is at most the larger of its mean over the
    last octave and its limit: the tails of laws that are not log-concave are powers, along which it
    falls.
    """
    edges = law._panel_edges
    low, high = edges[:-1], edges[1:]
    fits = np.empty((low.size, _NODES.size))
    core.evaluate(law._table, "logpdf", 1.0, _places(low, high), fits, 1)
    series = chebyshev.chebder(_FROM_VALUES @ fits.T) * (-2.0 / (high - low))
    slopes = chebyshev.chebval(_FINE_NODES, series)
    left = np.flatnonzero(_bounds(slopes) > slopes.max() * (1.0 - _FIT_ERROR))
    t = _places(low[left], high[left])
    series = _FROM_VALUES @ law.score(t.reshape(-1)).reshape(t.shape).T
    place = best = most = 0.0
    for panel, terms in zip(left, series.T, strict=True):
        u, value, bound = _largest(terms)
        if value > best:
            place, best = float(0.5 * ((low + high)[panel] + u * (high - low)[panel])), value
        most = max(most, bound)
    most += _FORMULA_ERROR * max(most, 1.0 / place)
    last = edges[-1]
    ends = np.add(*law.log_density(np.array([0.5 * last, last])))
    beyond = max(2.0 * float(ends[0] - ends[1]) / float(last), law.score_limit * law.scale)
    return place, max(most, beyond)


def _largest(terms: Float) -> tuple[float, float, float]:
    """Where on [-1, 1] a series is largest, its value there, and an upper bound."""
    low, high, place, best = np.array([-1.0]), np.array([1.0]), 0.0, 0.0
    for _ in range(_ROUNDS):
        u = 0.5 * ((low + high)[:, None] + (high - low)[:, None] * _FINE_NODES)
        values = chebyshev.chebval(u, terms)
        if values.max() > best:
            place, best = float(u.flat[values.argmax()]), float(values.max())
        bound = _bounds(values)
        left = bound > best * (1.0 + _SETTLED)
        if not left.any():
            break
        cuts = low[left, None] + (high - low)[left, None] * (np.arange(_PARTS + 1.0) / _PARTS)
        low, high = cuts[:, :-1].reshape(-1), cuts[:, 1:].reshape(-1)
    return place, best, max(best * (1.0 + _SETTLED), float(bound.max()))


def _places(low: Float, high: Float) -> Float:
    return np.asarray(0.5 * ((low + high)[:, None] + (high - low)[:, None] * _NODES))


def _bounds(values: NDArray[np.floating[Any]]) -> Float:
    """Of the polynomial in each row, by its values on the nodes."""
    least, most = values.min(axis=1), values.max(axis=1)
    return np.asarray(0.5 * ((most + least) + _OVERSHOOT * (most - least)))
