"""Masses of narrow cells where noise is large and the cost is ``x**2``, without a program for them.

Then only the largest shift binds, and points whole sensitivities apart have an optimum of their
own, which says nothing about other points. It is the same function for all of them, but for
differences that fall exponentially with the variance. So the program is solved for cells of one
sensitivity, and the logarithms of its masses are interpolated. They are tilted until the expected
cost is what it is to be: along that line it falls the fastest for the divergence. Whatever comes
out is evaluated and certified like any other masses.
"""

from __future__ import annotations

import numpy as np

from psinoise.errors import CalibrationError
from psinoise.optimize.cells import Float
from psinoise.optimize.program import Program

__all__ = ["continued"]

_MOST_STEPS = 30
# Of the expected cost, in shares.
_CLOSE = 2.0**-50


def continued(program: Program, masses: Float, mean_cost: float) -> Float:
    """Masses of total 1 and an expected cost, from those of cells of one sensitivity.

    Raises
    ------
    CalibrationError
        If the cost is too far from that of the interpolated masses.
    """
    from scipy.interpolate import make_interp_spline  # slow to import

    far, logs = np.arange(1.0 - masses.size, masses.size), np.log(masses)
    line = make_interp_spline(far, np.concatenate([logs[:0:-1], logs]), k=5)
    logs = line(np.arange(program.last + 1.0) / program.width)
    costs = program.costs / program.multiplicities
    tilt = 0.0
    for _ in range(_MOST_STEPS):
        found = program.multiplicities * np.exp(logs - logs[0] - tilt * costs)
        found /= found.sum()
        used = float(costs @ found)
        if abs(used - mean_cost) <= _CLOSE * mean_cost:
            return np.asarray(found / program.multiplicities)
        tilt += (used - mean_cost) / float((costs - used) ** 2 @ found)
    raise CalibrationError(
        f"{program.last} cells cost {used!r}, where {mean_cost!r} was meant; take fewer cells"
    )
