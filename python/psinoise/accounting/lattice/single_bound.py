"""Bounds on the profile of a single use, which needs no lattice.

With the levels ``l_0 = eps < l_1 < ...``, half a unit apart, and the masses ``A_j = P(bin)`` and
excesses ``u_j = P(bin) - e^{l_j} Q(bin)`` of the losses between them (``bins``),

    ``delta(eps) = integral over {L > eps} of dP - e^eps dQ
    = sum of A_j (1 - e^{eps - l_j}) + u_j e^{eps - l_j}``,

because ``e^eps Q(bin) = e^{eps - l_j} (A_j - u_j)``. Every term is positive: the sum has the
relative error of its terms, that of the masses and of the sums over their pieces. The levels are
met to a *slack* ``s``: what is summed is ``E_P[(1 - e^{eps - L'})^+]`` with ``|L' - L| <= s``, and
that is at least ``delta(eps + s)`` and at most ``delta(eps - s)``, since ``(1 - e^{eps - L})^+``
rises with ``L``. Masses beyond the panels, and of losses so large that they do not matter, count in
full from above and not at all from below.

Where a loss turns, as a heavy-tailed one does at its largest value, level points are found less
well; the panel is cut there, by bisection.

So epsilon is known to ``s + r / |d log delta / d eps|``, with ``r`` the relative error: about 1e-13
where delta falls as losses do. Where delta hardly falls (next to the total variation distance, at a
tiny rate) the bounds are as far apart as that makes them.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from psinoise._backend import core
from psinoise.accounting.lattice.bins import Dense, dense, loss_bins, samples
from psinoise.accounting.lattice.bounds import MASS_ROUNDING
from psinoise.accounting.lattice.crossing import ProfileBound
from psinoise.accounting.lattice.transforms import UNIT
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.errors import CertificationError
from psinoise.reference.losses import PIECES_PER_PANEL

# Bins may be this wide (``bins``).
_STEP = 0.5
# Large losses with a smaller share of delta than e^-_NEGLIGIBLE are not cut into bins.
_NEGLIGIBLE = 40.0
# Keeps masses of order 1 inside float64.
_LEAST_LOG_NORM = -600.0
_ATTEMPTS = 12
# They leave neighboring outputs.
_BISECTIONS = 64


def _cut_at(source: Dense, level: float) -> tuple[Dense, float]:
    """The same, with panels on which the loss passes a level cut there.

    And how far above the level the losses begin that are left.
    """
    count = source.panels
    rows = np.flatnonzero((source.lowest[:count] < level) & (source.highest[:count] > level))
    if rows.size == 0 or not isinstance(source.pair, Pair):
        return source, 0.0
    rising = source.loss[rows, -1] > source.loss[rows, 0]
    low, high = source.x[rows, 0], source.x[rows, -1]
    # The end that is above, and the one that is not.
    above, below = np.where(rising, high, low), np.where(rising, low, high)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (above + below)
        is_above = source.sign * source.pair.loss(middle) > level
        above, below = np.where(is_above, middle, above), np.where(is_above, below, middle)
    low, high = np.where(rising, above, low), np.where(rising, high, above)
    x, loss, slope = source.x.copy(), source.loss.copy(), source.slope.copy()
    x[rows], loss[rows], slope[rows] = samples(source.pair, source.sign, low, high)
    lowest, highest = source.lowest.copy(), source.highest.copy()
    lowest[rows], highest[rows] = loss[rows].min(axis=1), loss[rows].max(axis=1)
    gap = float(np.abs(np.where(rising, loss[rows, 0], loss[rows, -1]) - level).max())
    cut = dataclasses.replace(source, x=x, loss=loss, slope=slope, lowest=lowest, highest=highest)
    return cut, gap


@dataclass(frozen=True, eq=False)
class SingleBound(ProfileBound):
    """A bound on the profile of one use: above if ``sign`` is 1, below if -1.

    Attributes
    ----------
    pair, direction, reach : the use, and how far its panels reach
    near : a log delta of the order of those that are asked about
    rate : about how fast log delta falls there
    sign : of the side
    """

    pair: Pair
    direction: Direction
    reach: float
    near: float
    rate: float
    sign: float

    @property
    def tilt(self) -> float:
        return self.rate

    def log_delta(self, epsilon: float) -> float:
        """Log of the bound on delta at ``epsilon``, which may be negative."""
        whole = dense(self.pair, self.direction, self.reach)
        source, gap = whole, 0.0
        # That of the levels and of the losses, and a little for sums.
        slack = 3.0 * source.rounding
        for _ in range(_ATTEMPTS):
            bound, found = self._profile(source, epsilon - self.sign * slack)
            if found + gap <= slack:
                return bound
            # Where a loss turns its level points are found less well than those of a cut panel.
            slack = 2.0 * (slack if source is whole else max(slack, found + gap))
            source, gap = _cut_at(whole, epsilon - self.sign * slack)
        raise CertificationError(f"the level points of the loss at {epsilon!r} were not found")

    def _profile(self, source: Dense, level: float) -> tuple[float, float]:
        """Log of the sum at a level, rounded outwards, and the slack of its losses."""
        log_norm = max(self.near, _LEAST_LOG_NORM)
        cut = source.highest, source.log_mass, 0.0, 0.0, self.near - _NEGLIGIBLE, -math.inf
        large = core.cut_tails(*cut)[1] & (source.lowest > level)
        chosen = (source.highest > level) & ~large
        value = 0.0
        above = float(np.logaddexp.reduce(source.log_mass[large], initial=-math.inf)) + 1e-12
        slack = source.rounding
        rounding = MASS_ROUNDING + UNIT * (4.0 * abs(log_norm) + 64.0)
        if chosen.any():
            low, high = float(source.lowest[chosen].min()), float(source.highest[chosen].max())
            first = math.floor((min(low, level) - level) / _STEP) - 1
            edges = np.arange(first, math.floor((high - level) / _STEP) + 3)
            bins = loss_bins(source, chosen, large, (_STEP, level), edges, 0.0, log_norm)
            distance = edges[-first:] * _STEP
            outer = -np.expm1(-distance)
            value = float(
                np.sum(bins.mass[-first:] * outer[:-1])
                + np.sum(bins.excess[-first:] * np.exp(-distance[:-1]))
            )
            if bins.at_edges is not None:
                value += float(np.sum(bins.at_edges[-first:] * outer))
            slack += bins.slack + UNIT * max(abs(level), abs(high))
            rounding += UNIT * (PIECES_PER_PANEL * np.count_nonzero(chosen) + edges.size)
        logs = [math.log(value) + log_norm + self.sign * rounding] if value > 0.0 else []
        if self.sign > 0.0:
            logs.append(above)
            if source.beyond > 0.0:
                logs.append(math.log(source.beyond))
        return float(np.logaddexp.reduce(logs, initial=-math.inf)), slack
