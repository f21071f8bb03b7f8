"""Which compositions have certified bounds, and which are exact but for rounding."""

from __future__ import annotations

from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.steps import Steps
from psinoise.errors import CertificationError

#: Relative rounding of the delta of one use of a law in cells: a sum of positive terms.
SUM_ROUNDING = 1e-12


def single_atoms(steps: Steps) -> bool:
    """Whether this is one use of a law in cells."""
    return len(steps) == 1 and steps[0][1] == 1 and isinstance(steps[0][0], CellPair)


def check_certifiable(steps: Steps) -> None:
    """Refuse laws that are not compiled to the tables that the certified kernels read."""
    for pair, _ in steps:
        if isinstance(pair, Pair) and not hasattr(pair.noise, "_table"):
            raise CertificationError(
                f"certified bounds need a law of psinoise.noise, got {pair.noise!r}"
            )
