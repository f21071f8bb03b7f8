"""How far a unimodal law can be from the best: a bound that holds for every unimodal law.

``F`` is convex and homogeneous, so that for every law ``q`` and every ``theta >= 0``, if ``q`` is
symmetric, unimodal and of expected cost at most ``C``,

    F(q) >= grad F(p) q + theta (E_q[cost] - C) >= inf over a of (g(a) + theta c(a)) - theta C,

where ``g(a)`` and ``c(a)`` are the means of the gradient and of the cost over ``[-a, a]``: by
Khinchine's theorem ``q`` is a mixture of the uniform laws on such intervals, with an atom at 0 for
``a = 0``. The gradient is constant in cells, because the shift is a whole number of them, and on a
cell ``g(a) + theta c(a)`` with ``c(a) = |a|**power / (power + 1)`` has one stationary point: the
infimum over *all* ``a`` is found, and the bound holds for every unimodal law, on whatever grid, and
for those without any.
"""

from __future__ import annotations

import numpy as np

from psinoise.optimize.unimodal.generator import Generator
from psinoise.optimize.unimodal.program import Float, Program

__all__ = ["Intervals", "lower_bound", "lower_bound_on_grid"]

# Of the sums of gradients, whose terms mostly have one sign.
_ROUNDING = 2.0**-46
_STEPS = 60
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
    power : float
        Of the cost ``|x|**power``.
    """

    def __init__(self, line: Float, width: int, power: float) -> None:
        edges = np.append(0.0, (np.arange(line.size) + 0.5) / width)
        integral = np.append(0.0, np.cumsum(line * np.diff(edges)))
        # Cells that begin at an edge, the last of them without end; there a times the mean on
        # [0, a] is constant + slope * a.
        self._begin, self._end = edges[1:], np.append(edges[2:], np.inf)
        self._slope = np.append(line[1:], line[-1])
        self._constant = integral[1:] - self._slope * self._begin
        self._at_zero = float(line[0])
        self._power = power

    def least(self, multiplier: float) -> float:
        """At most the infimum over all ``a`` of the mean and ``multiplier`` times the cost."""
        begin, end, power = self._begin, self._end, self._power
        with np.errstate(invalid="ignore", divide="ignore"):
            share = self._constant * (power + 1.0) / (multiplier * power)
            a = share ** (1.0 / (power + 1.0))
            a = np.clip(np.nan_to_num(a, posinf=np.inf), begin, end)
            # Without end, which only a multiplier of 0 asks for, the cost is left out.
            costs = np.where(np.isinf(a), 0.0, multiplier * (a**power / (power + 1.0)))
            sums = self._slope + self._constant / a + costs
        best = min(self._at_zero, float(sums.min()))
        return best - _ROUNDING * abs(best)


def lower_bound(
    program: Program,
    p: Float,
    generator: Generator,
    theta: float,
    mean_cost: float,
    power: float,
) -> tuple[float, float]:
    """The bound for all unimodal laws, and the multiplier that gives it.

    Parameters
    ----------
    theta : float
        Where to look for the best multiplier; every one is valid.
    mean_cost : float
        Bound of the expected cost.
    power : float
        Of the cost ``|x|**power``.
    """
    intervals = Intervals(program.gradient_on_line(p, generator), program.width, power)

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
