"""Expectations under a standardized law, by quadrature on panels graded like its tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psinoise.compile import Layout
from psinoise.errors import DomainError
from psinoise.numerics.gauss_legendre import NODES, WEIGHTS

Float = NDArray[np.float64]

_NODES = np.array(NODES)
_WEIGHTS = np.array(WEIGHTS)
# Densities below exp(-760) are 0 in float64 and contribute nothing.
_NEGLIGIBLE = -760.0
# Below this shift the loss is integrated from the score; above, it is a difference of logarithms,
# which has lost at most one digit there.
_SMALL_SHIFT = 0.1
_OCTAVE = 4 * len(NODES)
_UNSETTLED = 1e-13
_FAR = 2.0**30
_SMALLEST_NORMAL = 2.0**-1022


class _Law(Protocol):
    @property
    def layout(self) -> Layout: ...
    @property
    def breaks(self) -> tuple[float, ...]: ...
    def log_density(self, t: Float) -> tuple[Float, Float]: ...

    def score(self, t: Float) -> Float: ...


def panels(edges: Float) -> tuple[Float, Float]:
    """Gauss-Legendre nodes and weights between the edges."""
    half = 0.5 * np.diff(edges)
    center = 0.5 * (edges[1:] + edges[:-1])
    nodes = center[:, None] + half[:, None] * _NODES
    return nodes.reshape(-1), (half[:, None] * _WEIGHTS).reshape(-1)


def graded_edges(law: _Law) -> Float:
    """Edges from 0 to where the density underflows: octaves near 0, then four panels per octave.

    The octaves reach down to 2^-60, so that fractional powers of ``t`` are integrated too.
    """
    octaves = 2.0 ** np.arange(-12.0, 1000.0, 0.25)
    # Far points cost some laws an integral each: none if the tables end in nothing.
    within = octaves[octaves < law.layout.limit]
    if law.log_density(within[-1:])[0][0] < _NEGLIGIBLE:
        octaves = within
    alive = law.log_density(octaves)[0] > _NEGLIGIBLE
    last = min(int(np.flatnonzero(alive)[-1]) + 2, octaves.size)
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-60.0, -12.0), octaves[:last]])
    return np.union1d(edges, np.array(law.breaks)) if law.breaks else edges


def expectation(law: _Law, function: Callable[[Float], Float]) -> float:
    """``E[function(|Z|)]``; ``inf`` if the integral does not converge.

    Raises
    ------
    DomainError
        If it converges so slowly that part of it lies where the density underflows.
    """
    t, weights = panels(graded_edges(law))
    hi, lo = law.log_density(t)
    density = np.exp(hi) * (1.0 + lo)
    end = np.flatnonzero(density >= _SMALLEST_NORMAL)[-1] + 1
    with np.errstate(over="ignore"):
        parts = weights[:end] * density[:end] * function(t[:end])
    return settled(float(2.0 * np.sum(parts)), parts)


def settled(total: float, parts: Float) -> float:
    """An expectation, if its parts have come to an end: the last of them on four panels an octave.

    Raises
    ------
    DomainError
        If they fall so slowly that some lie where the density underflows.
    """
    if math.isinf(total):
        return total
    # A light tail is over within a panel; of others the last two octaves, of four panels each.
    end = parts.size
    if not float(np.abs(parts[end - len(NODES) :]).sum()) > _UNSETTLED * abs(total):
        return total
    last, before = (float(np.abs(parts[end - k - _OCTAVE : end - k]).sum()) for k in (0, _OCTAVE))
    if not last > _UNSETTLED * abs(total):
        return total
    if last >= before * (1.0 - 1e-9):
        return math.inf
    raise DomainError("cost must grow more slowly: its expectation is not settled within float64")


def moment(law: _Law, order: float) -> float:
    """``E|Z|**order``, with the power inside the exponential, where it cannot overflow alone."""
    t, weights = panels(graded_edges(law))
    hi, lo = law.log_density(t)
    with np.errstate(over="ignore"):
        return float(2.0 * np.sum(weights * np.exp(hi + order * np.log(t)) * (1.0 + lo)))


def divergence(law: _Law, shift: float) -> float:
    """``D(p || T_shift p)`` for ``shift > 0``.

    The integrand ``(p(x - s) - p(x)) (log p(x - s) - log p(x)) / 2`` is positive and symmetric
    about ``s / 2``: no cancellation between points, and half the line is enough. It is not analytic
    at ``x = s``, where a panel ends.
    """
    weights, near, here, loss = _half_line(law, shift)
    if shift < _SMALL_SHIFT:
        return float(np.sum(weights * here * np.expm1(loss) * loss))
    return float(np.sum(weights * (near - here) * loss))


def variance_of_loss(law: _Law, shift: float) -> float:
    """``V(p || T_shift p)`` for ``shift > 0``: both halves of the line, which the reflection about
    ``s / 2`` exchanges, with the sign of the loss."""
    mean = divergence(law, shift)
    weights, near, here, loss = _half_line(law, shift)
    return float(np.sum(weights * (here * (loss + mean) ** 2 + near * (loss - mean) ** 2)))


def _half_line(law: _Law, shift: float) -> tuple[Float, Float, Float, Float]:
    """Weights of nodes ``x > s / 2``, ``p(x - s)`` and ``p(x)`` there, and the logarithm of their
    ratio."""
    outer = graded_edges(law)
    # Powers: beyond here the integrand, p (s / x)^2, is below 1e-17 of the whole.
    outer = outer[outer <= _FAR * max(1.0, shift)]
    inner = outer[outer < 0.5 * shift]
    edges = np.concatenate([[0.5 * shift], shift - inner[:0:-1], shift + outer])
    if law.breaks:
        edges = np.union1d(edges, [b for b in law.breaks if b > 0.5 * shift])
    x, weights = panels(edges)
    near = np.concatenate(law.log_density(np.abs(x - shift))).reshape(2, -1)
    far = np.concatenate(law.log_density(x)).reshape(2, -1)
    moved, here = (np.exp(hi) * (1.0 + lo) for hi, lo in (near, far))
    if shift < _SMALL_SHIFT:
        return weights, moved, here, _loss_from_score(law, x, shift)
    return weights, moved, here, (near[0] - far[0]) + (near[1] - far[1])


def _loss_from_score(law: _Law, x: Float, shift: float) -> Float:
    """``log p(x - s) - log p(x)``, the integral of the score from ``|x - s|`` to ``x``."""
    low = np.abs(x - shift)
    half = 0.5 * np.where(x >= shift, shift, 2.0 * x - shift)
    points = low[:, None] + half[:, None] * (1.0 + _NODES)
    scores = law.score(points.reshape(-1)).reshape(points.shape)
    return np.asarray(half * (scores @ _WEIGHTS))
