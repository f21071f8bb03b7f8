"""How much of a law the panels of a quadrature hold.

What heavy tails have beyond their ends, and what they leave out, is bounded by the law's own
distribution. So the masses of all must add up to 1, but for the errors that they are charged with.
Where they do not something was lost, wherever it was: nothing is known then of the losses that are
left.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.narrow import masses_of
from psinoise.accounting.loss.pairs import DIRECTIONS, Pair
from psinoise.accounting.loss.quadrature import Nodes, quadrature

# What quadratures may miss: seventy times what they do.
_LOST = 1e-11


@kept()
def nodes(pair: Dominating, reach: float) -> Nodes:
    """The nodes of a pair out to ``log p(0) - reach``; they are narrow everywhere if some of a law
    is lost; cached."""
    found = quadrature(pair, reach)
    # Nothing is certified of a law without a table.
    if not isinstance(pair, Pair) or not hasattr(pair.noise, "_table") or _everything(found):
        return found
    return replace(found, narrow=np.array([[-np.inf, np.inf]]))


def _everything(grid: Nodes) -> bool:
    """Whether all of both laws is accounted for."""
    pair = grid.pair
    assert isinstance(pair, Pair)
    (log_masses, errors), panels, doubt = grid.of_panels, grid.left.size, grid.doubt
    atoms = np.stack([grid.atom_log_mass + grid.atom_loss, grid.atom_log_mass])
    held = (np.exp(log_masses) * (1.0 + errors + doubt[:panels])).sum(axis=1)
    held += (np.exp(atoms) * (1.0 + doubt[panels:])).sum(axis=1)
    # Of other tails less is beyond the ends than is known of masses.
    tails = grid.beyond if pair.noise.score_limit == 0.0 else (0.0, 0.0)
    for mass, beyond, direction in zip(held, tails, DIRECTIONS, strict=True):
        narrow = float(masses_of(pair, grid.narrow, direction)[1].sum())
        if not mass + beyond + narrow + pair.infinite(direction) > 1.0 - _LOST:
            return False
    return True
