"""Noise that is almost the one that is accounted: the price of a total variation.

A release draws ``K'`` where the proof is about ``K``. In one use, whatever the data are, each event
has ``P'(E) <= P(E) + a`` and ``P'(E) >= (1 - r) (P(E) - b)``: ``a`` bounds the total variation, and
``K'`` has all of what ``K`` has but for a mass ``b`` and a common share ``r <= 1/2`` of it. So for
the two data sets, with ``t = exp(e)``,

    ``P'(E) - t Q'(E) <= P(E) + a - t (1 - r) (Q(E) - b) <= delta((1 - r) t) + a + t b``.

The profile of the proof, ``delta``, is convex in ``t`` with the slope ``-Q(E)`` for an event that
has ``t Q(E) <= P(E) <= 1``, so that ``delta((1 - r) t) <= delta(t) + r / (1 - r)``. With
``eta = a + 2 r`` the release has

    ``delta'(e) <= delta(e) + eta + exp(e) b``,                                                 (1)

and it is not above 1 nor increasing in ``e``. (Without more than the total variation ``b = eta =
a``.) Laws of a sample are mixtures of the two and have the same bounds. This is dominated by a
second mechanism beside the first: with probability ``c`` it tells which of the two data sets there
is, else nothing (randomized response with the losses 0). Together they have
``c + (1 - c) delta(e)`` for ``e >= 0``, in both directions. For any ``u >= 0`` let

    ``c = (delta(u) + eta + exp(u) b) / (1 - delta(0))``.                                       (2)

For ``0 <= e <= u``, ``c (1 - delta(e)) >= c (1 - delta(0)) >= eta + exp(e) b``, so that
``c + (1 - c) delta(e)`` is at least (1). For ``e > u`` it is at least ``c``, which is at least (1)
at ``u``, and ``delta'`` does not increase. For ``e < 0`` exchange the two laws. So the pair with
``c`` dominates one use, and pairs that dominate compose (Zhu, Dong and Wang 2022, theorem 10).

For a normal law of variance 1 moved by ``m``, ``delta(e) <= Phi(m/2 - e/m)`` and ``delta(0) = 2
Phi(m/2) - 1``. A sample at rate ``q`` has ``q delta(log(1 + (exp(e) - 1) / q))`` under *remove*;
under *add* it has ``(p - exp(e) ((1 - q) p + q p'))^+ = 0`` for ``exp(e) >= 1 / (1 - q)``, and at
most ``q delta(e)`` before, since the term in brackets is at most ``q (p - exp(e) p')``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["leak_of_normal"]

Float = NDArray[np.float64]

# Where (2) is tried: the least of them is taken.
_POINTS = np.append(0.0, np.geomspace(1e-6, 60.0, 400))
_ROUNDING = 1.0 + 1e-9


def leak_of_normal(shift: float, sampling_rate: float, eta: float, missing: float) -> float:
    """The ``c`` that covers ``eta`` and ``b`` of (1) beside a normal law of variance 1.

    Parameters
    ----------
    shift
        how far neighbors are apart
    sampling_rate
        of the records
    eta, missing
        of one use
    """
    gamma = np.exp(_POINTS)
    # log(1 + (gamma - 1) / q), which is e itself without sampling.
    losses = np.log1p(np.expm1(_POINTS) / sampling_rate)
    told = sampling_rate * _upper_tail(losses / shift - 0.5 * shift)
    if sampling_rate < 1.0:
        early = gamma < 1.0 / (1.0 - sampling_rate)
        other = sampling_rate * _upper_tail(_POINTS / shift - 0.5 * shift)
        told = np.where(early, np.maximum(told, other), told)
    same = sampling_rate * math.erf(0.5 * shift / math.sqrt(2.0))
    found = float(((told + eta + gamma * missing) / max(1.0 - same, 1e-300)).min()) * _ROUNDING
    return min(found, 1.0)


def _upper_tail(x: Float) -> Float:
    """``1 - Phi(x)``."""
    return np.array([0.5 * math.erfc(value / math.sqrt(2.0)) for value in x.tolist()])
