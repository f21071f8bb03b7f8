"""Edges of loss bins: every node where the tilted mass lies, few where there is next to none.

Both constructions of ``bounds`` hold for any widths; what is chosen here, and in
``csrc/losses/loss_edges.cpp``, only decides how close they come.
"""

from __future__ import annotations

import math

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.bins import Dense, Index, Mask


def even_edges(source: Dense, chosen: Mask, lattice: tuple[float, float]) -> Index:
    """Every node from below the smallest to above the largest of the chosen losses."""
    step, offset = lattice
    # A loss that is a node but for rounding begins a bin there.
    first = math.floor((source.lowest[chosen].min() - offset + source.rounding) / step)
    last = math.floor((source.highest[chosen].max() - offset + source.rounding) / step) + 1
    return np.arange(first, max(last, first + 2) + 1)


def graded_edges(
    source: Dense, chosen: Mask, lattice: tuple[float, float], tilt: float, log_norm: float
) -> Index:
    """Nodes that end bins of widths 1, 2, 4, ..., 256 steps, by the tilted mass around them.

    Parameters
    ----------
    source, chosen
        the loss of one step, and which of its panels and atoms count
    lattice
        step and offset
    tilt, log_norm
        of the tilted masses, as in `Bins`
    """
    parts = source.lowest[chosen], source.highest[chosen], source.log_mass[chosen]
    return core.graded_edges(*parts, *lattice, source.rounding, tilt, log_norm)
