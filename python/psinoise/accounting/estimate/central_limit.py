"""The central limit of many uses: Gaussian differential privacy.

Dong, Roth and Su, "Gaussian differential privacy", 2022 (arXiv 1905.02383), theorem 3.5 (and 3.4
with a bound on the error): the composition of many trade-off functions tends to that of a Gaussian
of unit scale shifted by

    ``mu = 2 ||kl||_1 / sqrt(||kappa_2||_1 - ||kl||_2^2)``,

with ``kl_i = E_P[L_i]`` and ``kappa_2_i = E_P[L_i^2]`` of each use: twice the mean of the composed
loss over its standard deviation. Their trade-off functions are symmetric. Those of sampled steps
are not, and each direction has a ``mu`` of its own; the larger one is used, and in the limit they
agree.

This is an *approximation*, neither an upper nor a lower bound: for few uses, small sampling rates
or small delta it can be far too small.
"""

from __future__ import annotations

import math

from psinoise.accounting.estimate.composition import Composition
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.steps import Pairs
from psinoise.errors import DomainError
from psinoise.noise import Gaussian

# The untilted mean and variance need no tail beyond exp(-80).
_REACH = 80.0
# Shifts for which log p(x - mu) - log p(x) has digits, and whose square does not overflow.
_SMALLEST_SHIFT, _LARGEST_SHIFT = 1e-12, 1e12


def gaussian_limit(steps: Pairs, directions: tuple[Direction, ...]) -> Pairs:
    """One use of a Gaussian of unit scale moved by ``mu``."""
    if not steps:
        return ()
    if any(pair.infinite(direction) > 0.0 for pair, _ in steps for direction in directions):
        raise DomainError("method 'clt' must have finite losses, got a mechanism without")
    saddles = (Composition.of(steps, direction, _REACH).saddle(0.0) for direction in directions)
    shift = max(2.0 * at.mean / math.sqrt(at.variance) if at.variance else 0.0 for at in saddles)
    if not _SMALLEST_SHIFT <= shift <= _LARGEST_SHIFT:
        raise DomainError(
            f"method 'clt' must have a Gaussian shift between {_SMALLEST_SHIFT:g} and "
            f"{_LARGEST_SHIFT:g}, got {shift!r}"
        )
    return ((Pair(Gaussian(std=1.0), shift, 1.0), 1),)
