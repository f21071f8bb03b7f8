"""Upper bounds on Renyi divergences that add up: what quick checks and the filter are made of.

For one use with the pair ``(P, Q)`` and a whole order ``a >= 2``

    ``K(a) = log E_P[e^{(a - 1) L}] = (a - 1) D_a(P || Q)``,   ``L = log P/Q``,

one row for each direction. Both are bounds from above, not estimates:

*Noise on a lattice* has finitely many losses, with probabilities right to some ulp of themselves
(`psinoise.release.pieces`): ``K`` is the logarithm of a sum of positive terms. What losses,
exponents and sums can be off by is added. Where several shifts may be the worst the pair is their
envelope, whose divergences are at least those of each of them (it dominates them, and a divergence
is an integral of hockey-sticks with positive weights).

*Gaussian noise* without sampling has ``K = a (a - 1) s^2 / (2 std^2)``. With Poisson sampling at
rate ``q`` the expansion of ``((1 - q) + q e^l)^a`` gives

    ``e^K = sum_k C(a, k) (1 - q)^(a - k) q^k exp(k (k - 1) s^2 / (2 std^2))``

for *remove*, and *add* has no more (I. Mironov, K. Talwar and L. Zhang, "Renyi differential privacy
of the sampled Gaussian mechanism", 2019). Sums of positive terms again.

*Other noise in floating point*: its moments are quadratures without a proven error, so that nothing
rests on them. ``K(a) <= c m`` with the largest loss ``m``; where there is none, the same mechanism
on a lattice may have a bound.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from psinoise._kept import kept
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Direction, Pair, normal_std
from psinoise.accounting.loss.steps import Step
from psinoise.numerics.rational import rounded

__all__ = ["DIRECTIONS", "largest_losses", "log_conversion", "log_moments"]

Float = NDArray[np.float64]

DIRECTIONS: tuple[Direction, ...] = ("remove", "add")
# Of a loss of an atom, relative or absolute: twice what ``compose.measures.dense`` takes.
_LOSS_ROUNDING = 16e-15
# Of a sum of positive terms and its logarithm, and per unit of an exponent.
_SUM_ROUNDING, _UNIT = 1e-13, 2.0**-51


def log_conversion(order: int) -> float:
    """``log(c^c / (1 + c)^{1 + c})``, ``c = a - 1``: ``delta(eps) <= e^{K(a) - c eps}`` times that.

    C. Canonne, G. Kamath and T. Steinke, "The discrete Gaussian for differential privacy", 2020,
    proposition 12: ``(1 - e^{-y})^+ <= e^{c y} c^c / (1 + c)^{1 + c}`` for every ``y``.
    """
    c = order - 1.0
    return -c * math.log1p(1.0 / c) - math.log1p(c)


@kept()
def log_moments(pair: Step, orders: tuple[int, ...]) -> Float:
    """Upper bounds on ``K`` of one use, shape ``(2, len(orders))``; ``inf`` where none is known."""
    if isinstance(pair, CellPair):
        found = np.array(
            [[_of_atoms(pair, direction, a) for a in orders] for direction in DIRECTIONS]
        )
    elif isinstance(pair, Pair) and (std := normal_std(pair)) is not None:
        ratio = 0.5 * std**-2
        found = np.array([[_of_gaussian(ratio, pair.sampling_rate, a) for a in orders]] * 2)
    else:
        losses = largest_losses(pair)
        most = [math.inf if loss is None else rounded(loss, up=True) for loss in losses]
        found = np.nextafter(np.outer(most, np.array(orders) - 1.0), math.inf)
    found.flags.writeable = False
    return found


def largest_losses(pair: Step) -> tuple[Fraction | None, ...]:
    """Upper bounds on the loss of one use in each direction, the accountant's; None without one."""

    def bound(direction: Direction) -> Fraction | None:
        loss = pair.largest_loss(direction)
        known = loss < math.inf and pair.infinite(direction) == 0.0
        return Fraction(max(loss, 0.0)) if known else None

    return tuple(map(bound, DIRECTIONS))


def _of_atoms(pair: CellPair, direction: Direction, order: int) -> float:
    if pair.infinite(direction) != 0.0:
        return math.inf
    log_mass, loss = pair.atoms
    # Losses are those of "remove", probabilities those of Q there.
    power = float(order if direction == "remove" else 1 - order)
    slack = abs(power) * _LOSS_ROUNDING * max(1.0, float(np.abs(loss).max(initial=0.0)))
    return _log_sum(log_mass + power * loss) + slack


def _of_gaussian(ratio: float, q: float, order: int) -> float:
    if q == 1.0:
        return order * (order - 1.0) * ratio * (1.0 + 4.0 * _UNIT)
    k = np.arange(order + 1.0)
    factorial = np.array([math.lgamma(i + 1.0) for i in range(order + 1)])  # its logarithm
    binomial = factorial[-1] - (factorial + factorial[::-1])
    terms = binomial + (order - k) * math.log1p(-q) + k * math.log(q) + k * (k - 1.0) * ratio
    # Of three logarithms of factorials and of the other terms, which are as large as this.
    size = float(factorial[-1]) - order * math.log(q) + order**2 * ratio
    return _log_sum(terms) + 8.0 * _UNIT * size


def _log_sum(exponents: Float) -> float:
    """The logarithm of a sum of exponentials, rounded up."""
    most = float(exponents.max(initial=-math.inf))
    if not math.isfinite(most):
        return math.inf if most != -math.inf else -math.inf
    total = most + math.log(float(np.exp(exponents - most).sum()))
    # Terms that are smaller by e^-800 do not count.
    size = float(np.abs(np.maximum(exponents, most - 800.0)).max())
    return total + _SUM_ROUNDING + _UNIT * size
