"""Gaussian differential privacy of one use, and of a budget: sums that Gaussian noise meets.

A pair is mu-GDP if telling its two laws apart is nowhere easier than telling ``N(0, 1)`` from
``N(mu, 1)``: the power of a test of size ``b`` is at most ``Phi(Phi^-1(b) + mu)``. Uses that are
mu_i-GDP are ``sqrt(sum mu_i^2)``-GDP together (J. Dong, A. Roth and W. Su, "Gaussian differential
privacy", JRSS B 2022, corollary 3.3), and mu-GDP is (eps, delta)-privacy with

    ``delta(eps) = Phi(mu / 2 - eps / mu) - e^eps Phi(-mu / 2 - eps / mu)``

(the same, corollary 2.13), which rises in ``mu``.

*Gaussian noise* without sampling is ``s / std``-GDP.

*Noise on a lattice* has finitely many losses. Its best tests are thresholds of the loss, with
``b_k`` and ``p_k`` the probabilities under ``Q`` and ``P`` of the ``k`` largest losses, and chords
between them. The power of the Gaussian pair is concave in ``b``: it is above the chords if it is
above their ends, so that ``mu = max_k Phi^-1(p_k) - Phi^-1(b_k)``. The pairs here are mirror images
of themselves, which maps ``(b, p)`` to ``(1 - p, 1 - b)``: losses of at least 0 are enough. What
rounding does to the probabilities is added, as a distance of normal quantiles.
"""

from __future__ import annotations

import math

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Pair, normal_std
from psinoise.accounting.loss.steps import Step

__all__ = ["gaussian_parameter", "largest_parameter"]

# Relative errors of one probability, and of a normal quantile.
_MASS_ROUNDING, _QUANTILE_ROUNDING = 4e-14, 1e-14
_UNIT = 2.0**-53
# The parameter of a budget is less by this share; delta changes by more than its rounding then.
_MARGIN = 1e-9
_ROUNDS = 200


@kept()
def gaussian_parameter(pair: Step) -> float:
    """A ``mu`` for which one use is mu-GDP; ``inf`` where none is known."""
    if not pair.symmetric or pair.infinite("remove") != 0.0:
        return math.inf
    if isinstance(pair, CellPair):
        return _of_atoms(pair)
    std = normal_std(pair) if isinstance(pair, Pair) else None
    return math.inf if std is None else (1.0 + 4.0 * _UNIT) / std


def _of_atoms(pair: CellPair) -> float:
    from scipy.special import ndtri  # slow to import

    log_mass, loss = pair.atoms
    order = np.argsort(-loss, kind="stable")
    order = order[loss[order] >= 0.0]
    if not order.size:
        return 0.0
    base = np.cumsum(np.exp(log_mass[order]))
    power = np.cumsum(np.exp(log_mass[order] + loss[order]))
    # A threshold below which everything is: nothing to tell apart.
    inside = (base < 1.0 - 1e-9) & (power < 1.0 - 1e-9)
    if not bool(inside.any()) or not bool((base > 0.0).all()):
        return math.inf
    if not bool(inside.all()) and not float(base[~inside].min()) > 1.0 - 1e-6:
        return math.inf  # so large a mu that it is of no use
    base, power = base[inside], power[inside]
    rounding = _MASS_ROUNDING * max(1.0, float(np.abs(loss).max())) + 2.0 * _UNIT * loss.size
    below, above = ndtri(base), ndtri(power)
    error = rounding * (base / _density(below) + power / _density(above))
    error += _QUANTILE_ROUNDING * (1.0 + np.abs(below) + np.abs(above))
    found = float((above - below + error).max())
    return max(found, 0.0) if found < math.inf else math.inf


def _density(z: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi))


def largest_parameter(epsilon: float, delta: float) -> float:
    """The largest ``mu`` for which mu-GDP is (epsilon, delta)-privacy, rounded down."""
    if delta == 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while _log_delta(high, epsilon) <= math.log(delta) and high < 1e6:
        low, high = high, 2.0 * high
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _log_delta(middle, epsilon) <= math.log(delta):
            low = middle
        else:
            high = middle
    return low * (1.0 - _MARGIN)


def _log_delta(mu: float, epsilon: float) -> float:
    """Log of delta: the density at ``a = eps / mu - mu / 2`` times a difference of Mills ratios.

    Rounded up where the ratios cancel.
    """
    from scipy.special import erfcx  # slow to import

    a, b = epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu
    if a < -5.0:
        # Nearly everything can be told apart: the first term alone.
        return math.log1p(-0.5 * math.erfc(-a / math.sqrt(2.0)) * (1.0 - 1e-12))
    near, far = float(erfcx(a / math.sqrt(2.0))), float(erfcx(b / math.sqrt(2.0)))
    return -0.5 * a * a + math.log(0.5 * (near - far + 16.0 * _UNIT * (near + far)))
