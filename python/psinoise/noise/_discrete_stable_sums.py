"""Expectations and divergences of the discrete stable law: sums over the whole numbers.

The first 2**12 terms are added up one by one. Beyond, masses are smooth between whole numbers, on
the length of k or of the scale, and so is what is summed: by Euler and Maclaurin's formula

    ``sum of f(k), k >= m  =  integral of f from m - 1/2  +  f'(m - 1/2) / 24  -  ...``,

whose next term is ``7 f''' / 5760``, less than ``m**-4`` of the sum. The integral is by Gauss and
Legendre, on four panels to an octave, of half a scale at most in the bulk.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from psinoise.noise._discrete_stable_masses import DiscreteStableMasses
from psinoise.noise._integrals import panels, settled

__all__ = ["expectation", "loss_moments"]

Float = NDArray[np.float64]

_LISTED = 1 << 12
# The bulk, in scales: beyond twice as many a Skellam law is over. Masses below the least normal
# number are left out, and those of index 0.1 and more are that at 2**1000. Terms of a divergence
# fall like ``p(k) (s / k)**2``.
_BULK, _LOG_SMALLEST, _LAST, _FAR = 32.0, -708.0, 2.0**1000, 2.0**30


def expectation(law: DiscreteStableMasses, function: Callable[[Float], Float]) -> float:
    """``E[function(abs(X))]``; as `psinoise.noise._integrals.settled`."""
    last = _LAST if law.alpha < 2.0 else 2.0 * _BULK * law.scale
    k, weights = _nodes(0, last, law.scale)
    logs = law.log_masses(k)
    keep = logs > _LOG_SMALLEST
    with np.errstate(over="ignore"):
        parts = 2.0 * weights[keep] * np.exp(logs[keep]) * function(k[keep])
    parts[0] *= 0.5
    return settled(float(np.sum(parts)), parts)


def loss_moments(law: DiscreteStableMasses, shift: int) -> tuple[float, float]:
    """Mean and variance of ``log p(X) / p(X - shift)``.

    Terms at k and ``shift - k`` have losses of opposite signs: ``(p(k - s) - p(k)) log p(k - s) /
    p(k)`` is not negative, and is summed from half of the shift on.
    """
    scale = law.scale
    last = _FAR * max(scale, shift) if law.alpha < 2.0 else 2.0 * _BULK * scale + shift
    k, weights = _nodes(shift // 2 + 1, last, scale, shift)
    moved, here = (law.log_masses(np.abs(points)) for points in (k - shift, k))
    keep = moved > _LOG_SMALLEST
    weights, moved, here = weights[keep], moved[keep], here[keep]
    loss, near, base = moved - here, np.exp(moved), np.exp(here)
    mean = float(np.sum(weights * base * np.expm1(loss) * loss))
    variance = float(np.sum(weights * (base * (loss + mean) ** 2 + near * (loss - mean) ** 2)))
    if shift % 2 == 0:
        middle = np.exp(law.log_masses(np.array([0.5 * shift])))
        variance += float(middle[0]) * mean**2
    return mean, variance


def _nodes(first: int, last: float, scale: float, shift: int = 0) -> tuple[Float, Float]:
    """Whole numbers from the first on, and nodes beyond, with the weights of a sum over all."""
    stop = max(first, shift) + _LISTED
    listed = np.arange(float(first), float(stop))
    edges = [stop - 0.5]
    while len(edges) == 1 or edges[-1] < last:
        distance = edges[-1] - shift
        wide = distance * (2.0**0.25 - 1.0)
        if distance < _BULK * scale:
            wide = min(wide, 0.5 * scale)
        edges.append(edges[-1] + wide)
    nodes, weights = panels(np.array(edges))
    # The slope at stop - 1/2, over 24.
    around = np.array([stop - 1.0, float(stop)])
    return (
        np.concatenate([listed, around, nodes]),
        np.concatenate([np.ones_like(listed), [-1.0 / 24.0, 1.0 / 24.0], weights]),
    )
