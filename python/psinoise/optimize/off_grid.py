"""How far masses can be from the least divergence of all laws, on cells or not.

Let ``F`` be the sum of `psinoise.optimize.certificate`, here of any law, with half of each weight
for the shift to either side. For every law ``q`` and masses ``p > 0``, the law ``q`` moved by a
uniform variable of the width ``h`` of a cell and gathered into cells has masses ``m`` with

    max over shifts of KL(q) >= F(q) >= F(m) >= sum over i of G(i) m(i),

by convexity and data processing, as shifts are whole cells, and since tangents are below a convex
function; ``G`` is its gradient at ``p``. A point ``x`` gives its mass to the two nearest centers as
linear interpolation does, so that the sum is ``E_q[G(X)]`` with ``G`` a broken line through the
values at the centers. With ``E_q[cost] <= C`` and any ``lambda >= 0`` therefore

    max over shifts of KL(q) >= inf over x of (G(x) + lambda cost(x)) - lambda C.

No solver has to be trusted; ``q`` need be neither symmetric nor constant anywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psinoise.numerics.golden import peak
from psinoise.optimize.cells import Float
from psinoise.optimize.program import Program, Shifts

__all__ = ["lower_bound_off_grid"]

# Probabilities beyond which masses are replaced by copies of the last period, and how many.
_RARE = 10.0 ** -np.arange(2.0, 16.0)
_COPIES = 4
# Into how many parts a cell is cut where all that is known of the cost is that it does not fall.
_PARTS = 64
_ROUNDING = 2.0**-46


def lower_bound_off_grid(
    program: Program,
    p: Float,
    shifts: Shifts,
    weights: Float,
    cost: float | Callable[[Float], Float],
) -> float:
    """A lower bound of the largest divergence of any law whose expected cost is within the bound.

    It holds for tangents at any masses. Those of the law fall to nothing towards their tail, where
    tangents are steep: they are continued from where they are rare, in several ways.

    Parameters
    ----------
    shifts : ndarray of int
        In cells.
    weights : ndarray
        Not negative; scaled here to add up to 1.
    cost : float or callable
        The power, or a function of ``x >= 0`` in sensitivities that does not decrease; for one the
        infimum in a cell is exact, for the other from below by a 64th of what the cost rises there.
    """
    above = np.cumsum((p * program.multiplicities)[::-1])[::-1]
    ends = {max(int(np.searchsorted(-above, -rare)) - 1, program.width) for rare in _RARE}
    lines = (
        _gradient_on_line(_continued(np.log(p), end, program.width), shifts, weights)
        for end in ends
    )
    return max(_largest_bound(program, line, cost) for line in lines)


def _continued(logs: Float, end: int, period: int) -> Float:
    """Masses up to a cell and copies of the last period, which fall as that one does."""
    copies = np.arange(1.0, _COPIES + 1.0) * (logs[end] - logs[end - period])
    more = (logs[end - period + 1 : end + 1] + copies[:, None]).reshape(-1)
    return np.append(logs[: end + 1], more)


def _gradient_on_line(logs: Float, shifts: Shifts, weights: Float) -> Float:
    """The derivative of ``F`` by the mass at ``0, 1, ...``, up to a period that repeats itself."""
    width = int(shifts.max())
    place = np.arange(logs.size - width)
    found = np.zeros(place.size)
    for shift, weight in zip(shifts.tolist(), (weights / weights.sum()).tolist(), strict=True):
        for other in (np.abs(place - shift), place + shift):
            loss = logs[place] - logs[other]
            found += 0.5 * weight * (loss + 1.0 - np.exp(-loss))
    return found


def _largest_bound(program: Program, line: Float, cost: float | Callable[[Float], Float]) -> float:
    """The largest over multipliers of the bound that a gradient gives."""
    x = np.arange(line.size) / program.width
    rise = np.diff(line)
    if isinstance(cost, float):
        values = x**cost
    else:
        fine = np.arange(rise.size * _PARTS + 1.0) / (_PARTS * program.width)
        finer, values = np.interp(fine, x, line), np.asarray(cost(fine))
        low = np.minimum(finer[:-1], finer[1:])

    def bound(log_multiplier: float) -> float:
        multiplier = float(np.exp(log_multiplier))
        if isinstance(cost, float):
            place = _lowest(x, -rise * program.width / multiplier, cost)
            inner = line[:-1] + (place - x[:-1]) * program.width * rise + multiplier * place**cost
        else:
            inner = low + multiplier * values[:-1]
        least = int(np.argmin(inner))
        rounding = _ROUNDING * (abs(float(inner[least])) + multiplier * program.mean_cost)
        return float(inner[least]) - multiplier * program.mean_cost - rounding

    size = np.log(max(float(line[0]), 1e-300) / program.mean_cost)
    return peak(bound, size - 6.0, size + 6.0)[1]


def _lowest(x: Float, slope: Float, power: float) -> Float:
    """Where between neighbors ``x**power`` less a straight line of a slope is least."""
    begin, end = x[:-1], x[1:]
    if power <= 1.0:
        # Concave: at one of the ends.
        return np.where(slope * (end - begin) > end**power - begin**power, end, begin)
    with np.errstate(divide="ignore"):
        place = np.exp(np.log(np.maximum(slope, 0.0) / power) / (power - 1.0))
    return np.clip(place, begin, end)
