"""What dominates one use of noise on a query, a vector or a number."""

from __future__ import annotations

from typing import cast

from psinoise.accounting import vectors
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.blocks import BlockLaw, BlockPair, in_blocks
from psinoise.accounting.loss.cells import CellLaw, CellPair, in_cells
from psinoise.accounting.loss.law import Law
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.steps import Step
from psinoise.errors import DomainError

__all__ = ["dominating_pair"]


def dominating_pair(
    noise: Law | CellLaw | BlockLaw,
    shift: float,
    replaced: bool,
    sampling_rate: float,
    dimension: int,
    norm: str,
) -> tuple[Step, int]:
    """The pair of noise on a query that a record moves by ``shift``, and how many uses of it.

    Raises
    ------
    DomainError
        where the worst case is not proven
    """
    if (in_cells(noise) or in_blocks(noise)) and replaced:
        raise DomainError(
            "noise must be log-concave for adjacency 'replace' with sampling (the worst case "
            f"of other laws is not known), got {noise!r}"
        )

    def pair(shift: float, rate: float) -> Dominating:
        if in_blocks(noise):
            return BlockPair(((1.0, noise),), noise.worst_shifts(shift)[-1], rate)
        if in_cells(noise):
            return CellPair(noise, shift, rate)
        return Pair(cast(Law, noise), shift, rate, replaced)

    return vectors.dominating(noise, pair, shift, dimension, norm, sampling_rate)
