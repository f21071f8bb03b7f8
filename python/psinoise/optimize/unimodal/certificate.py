"""How far a unimodal law can be from the best: a bound that holds for every unimodal law.

``F`` is convex and homogeneous, so that for every law ``q`` and every ``theta >= 0``, if ``q`` is
symmetric, unimodal and of expected cost at most ``C``,

    F(q) >= grad F(p) q + theta (E_q[cost] - C) >= inf over a of (g(a) + theta c(a)) - theta C,

where ``g(a)`` and ``c(a)`` are the means of the gradient and of the cost over ``[-a, a]``: by
Khinchine's theorem ``q`` is a mixture of the uniform laws on such intervals, with an atom at 0 for
``a = 0``. The gradient is constant in cells, because the shift is a whole number of them, so that
``a g(a)`` is linear there. The cost does not decrease, so that ``a c(a)``, its integral, is convex,
and above its tangents at both ends of a cell. With the larger of these in its place the sum is
monotone on either side of where they meet: its least value is at an end or there, and is below the
infimum over *all* ``a``. The bound holds for every unimodal law, on whatever grid, and for those
without any.
"""

from __future__ import annotations

import numpy as np

from psinoise.optimize.unimodal.cost import IntervalCost
from psinoise.optimize.unimodal.generator import Tangent
from psinoise.optimize.unimodal.program import Float, Program

__all__ = ["Intervals", "lower_bound", "lower_bound_on_grid"]

# Of the sums of gradients, whose terms mostly have one sign.
_ROUNDING = 2.0**-46
_STEPS = 60
# Into how many parts a cell is cut, and parts in all.
_MOST_PARTS, _MANY = 8, 60_000
# Edges beyond the last cell, in units of the last edge.
_BEYOND = 2.0 ** np.arange(0.01, 40.0, 0.01)
_GOLDEN = 0.6180339887498949


def lower_bound_on_grid(program: Program, gradient: Float, theta: float, mean_cost: float) -> float:
    """The bound for laws whose steps are edges of cells, up to the last one."""
    mass = np.cumsum(program.multiplicities)
    total = np.cumsum(gradient + theta * program.costs)
    return float((total / mass).min()) - theta * mean_cost


def refined(program: Program, p: Float, times: int) -> tuple[Program, Float]:
    """The law with straight lines in place of steps that are many and small, on finer cells.

    The bound holds wherever the gradient is taken; of laws that slope it is better where they are
    not held up by cells. In each cell a density falls by the lesser of the steps at its ends, so
    that a large step between flat cells stays one.

    Parameters
    ----------
    times : int
        Odd: into how many a cell is cut.
    """
    d = p - np.append(p[1:], p[-1] * program.tail_ratio)
    # A peak at 0 of which the first cell has the mean.
    d[0] = max(d[0], min(d[0] * 4.0 / 3.0, d[1]))
    fall = np.minimum(np.append(d[0], d[:-1]), d)
    inside = (np.arange(times) - times // 2) / times
    parts = (p[:, None] - fall[:, None] * inside) / times
    parts[0] = (p[0] + fall[1] * (0.25 - np.abs(inside))) / times
    cells = parts.reshape(-1)[times // 2 :]
    finer = Program(
        program.width * times,
        program.tail_ratio ** (1.0 / times),
        np.zeros(cells.size),
        program.sampling_rate,
    )
    return finer, cells


class Intervals:
    """The mean over ``[0, a]`` of a function that is constant in cells, and of the cost.

    Parameters
    ----------
    line : ndarray
        The function in the cells around ``0, 1, ...``; the last value goes on without end.
    width : int
        Cells to a unit.
    cost : IntervalCost
    """

    def __init__(self, line: Float, width: int, cost: IntervalCost) -> None:
        # Of cells that are cut tangents are closer.
        parts = max(1, min(_MOST_PARTS, _MANY // line.size))
        edges = 0.5 + np.arange((line.size - 1) * parts + 1.0) / parts
        edges = np.append(edges, edges[-1] * _BEYOND) / width
        slope = np.append(np.repeat(line[1:], parts), np.full(_BEYOND.size, line[-1]))
        values, costs = cost(edges), cost.integral(edges)
        known = np.isfinite(values) & np.isfinite(costs)
        edges, values, costs = edges[known], values[known], costs[known]
        slope = slope[: edges.size - 1]
        whole = line[0] * edges[0] + np.append(0.0, np.cumsum(slope * np.diff(edges)))
        begin, end = slice(None, -1), slice(1, None)
        # Where the tangents of the integral at both ends of a cell meet.
        lever, rise = values * edges - costs, np.diff(values)
        meet = np.divide(np.diff(lever), rise, where=rise > 0.0, out=edges[begin].copy())
        meet = np.clip(meet, edges[begin], edges[end])
        under = costs[begin] + values[begin] * (meet - edges[begin])
        constant = whole[begin] - slope * edges[begin]
        # Means of the function and of the cost: at 0, at edges, between them, without end.
        self._means = np.concatenate([line[:1], whole / edges, slope + constant / meet, line[-1:]])
        self._costs = np.concatenate([[0.0], costs / edges, under / meet, values[-1:]])

    def least(self, multiplier: float) -> float:
        """At most the infimum over all ``a`` of the mean and ``multiplier`` times the cost."""
        sums = self._means + multiplier * self._costs
        best = int(np.argmin(sums))
        size = abs(float(self._means[best])) + multiplier * float(self._costs[best])
        return float(sums[best]) - _ROUNDING * size


def lower_bound(
    program: Program,
    p: Float,
    tangent: Tangent,
    theta: float,
    mean_cost: float,
    cost: IntervalCost,
) -> tuple[float, float]:
    """The bound for all unimodal laws, and the multiplier that gives it.

    Parameters
    ----------
    tangent : callable
        Lines below the generator.
    theta : float
        Where to look for the best multiplier; every one is valid.
    mean_cost : float
        Bound of the expected cost.
    """
    intervals = Intervals(program.gradient_on_line(p, tangent), program.width, cost)

    def bound(multiplier: float) -> float:
        return intervals.least(multiplier) - multiplier * mean_cost * (1.0 + _ROUNDING)

    low, high = 0.0, 4.0 * theta + 1e-300
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    values = {x: bound(x) for x in (theta, left, right)}
    for _ in range(_STEPS):
        if values[left] < values[right]:
            low, left = left, right
            right = low + _GOLDEN * (high - low)
            values[right] = bound(right)
        else:
            high, right = right, left
            left = high - _GOLDEN * (high - low)
            values[left] = bound(left)
    best = max(values, key=values.__getitem__)
    return values[best], best
