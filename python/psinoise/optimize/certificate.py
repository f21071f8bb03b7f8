"""How far masses can be from optimal: a bound that any multipliers give, and the gap to it.

Let ``F = sum_k y_k KL_k``, ``y >= 0``, ``sum y = 1``. Each ``KL_k`` is convex and homogeneous,
so ``F(q) >= F(p) + grad F(p) (q - p) = grad F(p) q`` for every ``q``. For masses ``q`` of total 1
and expected cost at most ``C``, and every ``lambda >= 0``,

    max_k KL_k(q) >= F(q) >= grad F(p) q + lambda (E_q[cost] - C)
                 >= min_i (grad F(p)_i + lambda c_i) / m_i - lambda C,

where ``m_i`` and ``c_i`` are the mass and the cost of a unit of ``q_i``. The right side is concave
and piecewise linear in ``lambda``; its maximum bounds the optimum from below, whatever ``p`` and
``y`` are. Weak duality, stated so that nothing has to be feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psinoise.optimize.program import Float, Program, Shifts, weighted

__all__ = ["Certificate", "certify", "lower_bound"]

# Smaller multipliers are of the barrier, not of the optimum.
_ACTIVE = 1e-6
# Slopes are sums of a few logarithms for each shift; their terms have one sign or nearly.
_ROUNDING = 2.0**-48


@dataclass(frozen=True)
class Certificate:
    """What is known about the divergence of a cactus law.

    Parameters
    ----------
    largest_kl : float
        Largest Kullback-Leibler divergence of the law from itself over *all* shifts up to the
        sensitivity. It is an upper bound of the optimum of the discretized program.
    lower_bound : float
        A lower bound of that optimum, from multipliers; no solver has to be trusted.
    shifts, weights : tuple of float
        The multipliers that prove the lower bound: shifts, in units of the sensitivity, and their
        weights, which add up to 1.
    """

    largest_kl: float
    lower_bound: float
    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def active_shifts(self) -> tuple[float, ...]:
        """Shifts with a weight above 1e-6: those at which the largest divergence is attained."""
        pairs = zip(self.shifts, self.weights, strict=True)
        return tuple(shift for shift, weight in pairs if weight > _ACTIVE)

    @property
    def gap(self) -> float:
        """``largest_kl - lower_bound``: the law is that close to optimal on its grid."""
        return self.largest_kl - self.lower_bound


def lower_bound(program: Program, p: Float, shifts: Shifts, weights: Float) -> float:
    """The largest of the bounds above, for multipliers at the masses ``p``.

    Parameters
    ----------
    weights : ndarray
        Not negative; scaled here to add up to 1.
    """
    _, gradients = program.derivatives(p, shifts)
    slopes = weighted(weights / weights.sum(), gradients) / p / program.multiplicities
    costs = program.costs / program.multiplicities

    def line(multiplier: float) -> tuple[float, int]:
        """The bound at a multiplier, less its rounding errors, and which cell attains it."""
        i = int(np.argmin(slopes + multiplier * costs))
        rounding = _ROUNDING * (abs(slopes[i]) + multiplier * (costs[i] + program.mean_cost))
        return float(slopes[i] + multiplier * (costs[i] - program.mean_cost) - rounding), i

    best, left = line(0.0)
    if costs[left] <= program.mean_cost:
        return best
    # Two lines on either side of the maximum; where they meet is the next multiplier to try.
    multiplier = 1.0
    value, right = line(multiplier)
    while costs[right] > program.mean_cost:
        best, left = max(best, value), right
        multiplier *= 2.0
        value, right = line(multiplier)
    best = max(best, value)
    for _ in range(program.costs.size):
        multiplier = (slopes[right] - slopes[left]) / (costs[left] - costs[right])
        value, i = line(float(multiplier))
        best = max(best, value)
        if i in (left, right):
            break
        if costs[i] > program.mean_cost:
            left = i
        else:
            right = i
    return best


def certify(program: Program, p: Float, shifts: Shifts, weights: Float) -> Certificate:
    """Evaluate masses at every shift, and what multipliers prove about them.

    Parameters
    ----------
    shifts : ndarray of int
        In cells.
    weights : ndarray
        Not negative; scaled here to add up to 1.
    """
    weights = weights / weights.sum()
    return Certificate(
        largest_kl=float(program.divergences(p, program.all_shifts).max()),
        lower_bound=lower_bound(program, p, shifts, weights),
        shifts=tuple((shifts / program.width).tolist()),
        weights=tuple(weights.tolist()),
    )
