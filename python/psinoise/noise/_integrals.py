"""Expectations under a standardized law, by quadrature on panels graded like its tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.errors import DomainError
from psinoise.numerics.gauss_legendre import NODES, WEIGHTS

if TYPE_CHECKING:
    from psinoise.noise._base import Noise

Float = NDArray[np.float64]

_NODES = np.array(NODES)
_WEIGHTS = np.array(WEIGHTS)
# Densities below exp(-760) are 0 in float64 and contribute nothing.
_NEGLIGIBLE = -760.0
# Below this shift the loss is integrated from the score; above, it is a difference of logarithms,
# which has lost at most one digit there.
_SMALL_SHIFT = 0.1
# And from here on differences of logarithms as large lose digits of what varies.
_LARGE_SHIFT = 64.0
_OCTAVE = 4 * len(NODES)
# Next to a kink, in its distance from 0.
_OCTAVES = 2.0 ** np.arange(-12.0, -2.0)
_UNSETTLED = 1e-13
_FAR = 2.0**30
_SMALLEST_NORMAL = 2.0**-1022


def panels(edges: Float) -> tuple[Float, Float]:
    """Gauss-Legendre nodes and weights between the edges."""
    half = 0.5 * np.diff(edges)
    center = 0.5 * (edges[1:] + edges[:-1])
    nodes = center[:, None] + half[:, None] * _NODES
    return nodes.reshape(-1), (half[:, None] * _WEIGHTS).reshape(-1)


def graded_edges(law: Noise) -> Float:
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


def cut(edges: Float, kinks: tuple[float, ...]) -> Float:
    """With edges at kinks, and octaves next to these: what begins there may be all there is."""
    if not kinks:
        return edges
    octaves = np.concatenate([[1.0], 1.0 - _OCTAVES, 1.0 + _OCTAVES])
    more = np.multiply.outer(np.array(kinks), octaves)
    return np.union1d(edges, more[(more > edges[0]) & (more < edges[-1])])


def expectation(
    law: Noise, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
) -> float:
    """``E[function(|Z|)]`` of a function smooth but for kinks; as `settled`."""
    t, weights = panels(cut(graded_edges(law), kinks))
    hi, lo = law.log_density(t)
    density = np.exp(hi) * (1.0 + lo)
    end = np.flatnonzero(density >= _SMALLEST_NORMAL)[-1] + 1
    with np.errstate(over="ignore"):
        parts = weights[:end] * density[:end] * function(t[:end])
    total = float(2.0 * np.sum(parts))
    # What begins so late, at the end of a light tail, cannot be seen to have come to its own end.
    late = max(kinks, default=0.0) > 0.25 * float(t[end - 1])
    return total if late and math.isfinite(total) else settled(total, parts)


def settled(total: float, parts: Float) -> float:
    """An expectation, if its parts have come to an end: the last of them on four panels an octave.

    ``inf`` if it does not converge; DomainError if parts fall so slowly that some lie where the
    density underflows.
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


def log_moment(law: Noise, order: float) -> float:
    """``log E|Z|**order``, the powers inside exponentials, where they cannot overflow."""
    t, weights = panels(graded_edges(law))
    hi, lo = law.log_density(t)
    exponent = hi + order * np.log(t)
    top = float(exponent.max())
    return top + math.log(float(2.0 * np.sum(weights * np.exp(exponent - top) * (1.0 + lo))))


class _HalfLine(NamedTuple):
    """Nodes ``u > -s / 2`` about the moved center, and what is there.

    The loss is ``log p(u) - log p(u + s)``, that at the center and the rest: far out it hardly
    varies beside its size.
    """

    weights: Float
    moved: Float  # p(u)
    here: Float  # p(u + s)
    center: float
    rest: Float


def divergence(law: Noise, shift: float) -> float:
    """``D(p || T_shift p)`` for ``shift > 0``.

    The integrand ``(p(x - s) - p(x)) (log p(x - s) - log p(x)) / 2`` is positive and symmetric
    about ``s / 2``: no cancellation between points, and half the line is enough. It is not analytic
    at ``x = s``, where a panel ends.
    """
    weights, moved, here, center, rest = _half_line(law, shift)
    if shift < _SMALL_SHIFT:
        return float(np.sum(weights * here * np.expm1(rest) * rest))
    if math.isinf(center):
        return math.inf
    return float(np.sum(weights * (moved - here) * (center + rest)))


def variance_of_loss(law: Noise, shift: float) -> float:
    """``V(p || T_shift p)`` for ``shift > 0``: both halves of the line, which the reflection about
    ``s / 2`` exchanges, with the sign of the loss."""
    weights, moved, here, center, rest = _half_line(law, shift)
    if math.isinf(center):
        return math.inf
    # The mean less the loss at the center.
    mean = float(np.sum(weights * (moved * rest - here * (2.0 * center + rest))))
    # Where there is no mass a square may overflow.
    other = np.where(here > 0.0, 2.0 * center + rest + mean, 0.0)
    return float(np.sum(weights * (moved * (rest - mean) ** 2 + here * other**2)))


def _half_line(law: Noise, shift: float) -> _HalfLine:
    if math.isinf(shift) and law.score_limit < math.inf:  # of light tails all losses are infinite
        raise DomainError(f"shift must be at most 1.8e308 times the scale of {law!r}, got more")
    outer = graded_edges(law)
    # Powers: beyond here the integrand, p (s / x)^2, is below 1e-17 of the whole.
    outer = outer[outer <= _FAR * max(1.0, shift)]
    inner = outer[outer < 0.5 * shift]
    edges = np.concatenate([[-0.5 * shift], -inner[:0:-1], outer])
    if law.breaks:
        edges = np.union1d(edges, [b - shift for b in law.breaks if b > 0.5 * shift])
    u, weights = panels(edges)
    near = np.concatenate(law.log_density(np.abs(u))).reshape(2, -1)
    far = np.concatenate(law.log_density(u + shift)).reshape(2, -1)
    moved, here = (np.exp(hi) * (1.0 + lo) for hi, lo in (near, far))
    if shift < _SMALL_SHIFT:
        # log p(u) - log p(u + s): from |u| to u + s.
        half = 0.5 * np.where(u >= 0.0, shift, 2.0 * u + shift)
        return _HalfLine(weights, moved, here, 0.0, _integrals_of_score(law, np.abs(u), half))
    peak, there = (np.array(law.log_density(np.array([t])))[:, 0] for t in (0.0, shift))
    center = float((peak[0] - there[0]) + (peak[1] - there[1]))
    rest = np.zeros(u.size)
    if math.isinf(center):
        return _HalfLine(weights, moved, here, center, rest)
    # What nodes far out miss has no mass, or is a power.
    alive = (moved > 0.0) | (here > 0.0)
    fallen, gone = (
        (logs[:, alive] - at[:, None]).sum(axis=0) for logs, at in ((near, peak), (far, there))
    )
    falls = fallen - gone
    if shift >= _LARGE_SHIFT:
        close = np.abs(u[alive]) <= 0.5 * shift
        # From s to s + u: the score is smooth there.
        half = 0.5 * u[alive][close]
        falls[close] = fallen[close] + _integrals_of_score(law, np.full_like(half, shift), half)
    rest[alive] = falls
    return _HalfLine(weights, moved, here, center, rest)


def _integrals_of_score(law: Noise, low: Float, half: Float) -> Float:
    """From each of some points, over twice such a length."""
    points = low[:, None] + half[:, None] * (1.0 + _NODES)
    scores = law.score(points.reshape(-1)).reshape(points.shape)
    return np.asarray(half * (scores @ _WEIGHTS))
