"""How much of a law the panels of a quadrature hold.

What is beyond their ends, and what they leave out, is bounded by the law's own distribution. So the
masses of all must add up to 1, but for the errors that they are charged with. Where they do not
something was lost, wherever it was: nothing is known then of the losses that are left.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.narrow import masses_of
from psinoise.accounting.loss.pairs import Direction, Float, Pair
from psinoise.accounting.loss.quadrature import ORDER, Nodes, quadrature

#: Of the exponential of a log, per unit of its size: of the table, of outputs, and of sums.
EXP_ROUNDING = 2e-15
_UNIT = 2.0**-53
_LOG_WEIGHTS = np.log(np.polynomial.legendre.leggauss(ORDER)[1])
# Log densities are steeper somewhere on a panel than from end to end, by less than this factor.
_STEEPER = 8.0
# Of masses beyond this no log matters: they are 0 and stay so.
_MOST_ERROR = 600.0
# What quadratures may miss: seventy times what they do.
_LOST = 1e-11
_DIRECTIONS: tuple[Direction, Direction] = ("remove", "add")


@kept()
def nodes(pair: Dominating, reach: float) -> Nodes:
    """The nodes of a pair out to ``log p(0) - reach``; they are narrow everywhere if some of a law
    is lost; cached."""
    found = quadrature(pair, reach)
    # Nothing is certified of a law without a table.
    if not isinstance(pair, Pair) or not hasattr(pair.noise, "_table") or _everything(found):
        return found
    return replace(found, narrow=np.array([[-math.inf, math.inf]]))


def _everything(grid: Nodes) -> bool:
    """Whether all of both laws is accounted for."""
    pair = grid.pair
    assert isinstance(pair, Pair)
    doubt = EXP_ROUNDING * (np.abs(grid.log_mass) + np.abs(grid.loss)).max(axis=1, initial=0.0)
    of_atoms = EXP_ROUNDING * (np.abs(grid.atom_log_mass) + np.abs(grid.atom_loss))
    for direction in _DIRECTIONS:
        moved = direction == "remove"
        log_p = grid.log_mass + (grid.loss if moved else 0.0)
        atoms = grid.atom_log_mass + (grid.atom_loss if moved else 0.0)
        masses = np.exp(log_p).sum(axis=1)
        held = float(masses @ (1.0 + errors_on_panels(grid, log_p) + doubt))
        held += float(np.exp(atoms) @ (1.0 + of_atoms))
        held += beyond_ends(grid, direction) + float(
            masses_of(pair, grid.narrow, direction)[1].sum()
        )
        if not held + pair.infinite(direction) > 1.0 - _LOST:
            return False
    return True


def errors_on_panels(grid: Nodes, log_p: Float) -> Float:
    """Relative error of masses under ``P`` on each panel.

    Logs of densities are right to some roundings of their size, and outputs to some of theirs.
    Those of the distance from a center move the log by some of its size, and those of the center
    itself by as much times how steep it is.
    """
    pair = grid.pair
    assert isinstance(pair, Pair)
    width = grid.right - grid.left
    log_p = log_p - (_LOG_WEIGHTS + np.log(0.5 * width)[:, None]) + math.log(pair.noise.scale)
    steep = _STEEPER * np.ptp(log_p, axis=1) / width
    distance = max(abs(center) for center in pair.centers)
    size = np.abs(log_p).max(axis=1, initial=0.0)
    error = EXP_ROUNDING * size + 4.0 * _UNIT * distance * steep
    return np.asarray(np.expm1(np.minimum(error, _MOST_ERROR)))


def beyond_ends(grid: Nodes, direction: Direction) -> float:
    """Probability under ``P`` beyond the ends of the quadrature, rounded up."""
    pair = grid.pair
    assert isinstance(pair, Pair)
    noise, q = pair.noise, pair.sampling_rate
    if math.isfinite(noise.support) or (grid.atom_loss.size and noise.score_limit != 0.0):
        # Runs of constant loss reach to the ends of the first edges and hold the rest of the mass.
        return 0.0
    shift, _ = pair.shifts(direction)
    moved = np.array([0.0, shift])
    outside, shifted = noise.cdf(grid.ends[0] - moved) + noise.ccdf(grid.ends[1] - moved)
    return float((1.0 - q) * outside + q * shifted) * (1.0 + 1e-12)
