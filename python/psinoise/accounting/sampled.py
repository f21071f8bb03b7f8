"""What a scheme of sampling makes of the pair that dominates one use of a mechanism."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

from psinoise.accounting import contract
from psinoise.accounting.compose.schemes.batches import Batches
from psinoise.accounting.compose.schemes.epoch import Epoch
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.steps import Step
from psinoise.errors import DomainError
from psinoise.numerics.rational import rounded
from psinoise.sampling import RandomAllocation, Sampling, WithoutReplacement

__all__ = ["sampled"]

#: The step that dominates one use, and how many of them, given a sampling rate.
Dominating = Callable[[float], tuple[Step, int]]


def sampled(
    dominating: Dominating, sampling_rate: float, sampling: Sampling | None, adjacency: str
) -> tuple[Step, int]:
    """The step that dominates one use under a scheme of sampling, and how many of them; may be 0.

    Raises as `contract.check_sampling`, and `DomainError` where the worst case is not proven.
    """
    rate, sampling = contract.check_sampling(sampling_rate, sampling)
    if sampling is None:
        step, uses = dominating(rate)
        return step, uses if rate else 0
    if isinstance(sampling, RandomAllocation):
        return _allocated(dominating, sampling, adjacency)
    return _batched(dominating, sampling, adjacency)


def _allocated(
    dominating: Dominating, sampling: RandomAllocation, adjacency: str
) -> tuple[Step, int]:
    if adjacency == "replace":
        raise DomainError(
            "adjacency must not be 'replace' with random allocation: the worst case of two records "
            f"that are allocated alike is not known, got {adjacency!r}"
        )
    step, uses = dominating(1.0)
    taken = sampling.participations
    if taken == sampling.steps:
        return step, uses * taken
    if not isinstance(step, Pair | AtomPair) or uses != 1:
        raise DomainError(
            "sampling must not be random allocation for an imported loss, or for a vector whose "
            f"worst case is that of many coordinates, got {step!r} {uses} times"
        )
    return Epoch(step, sampling.steps // taken, exact=taken == 1), taken


def _batched(
    dominating: Dominating, sampling: WithoutReplacement, adjacency: str
) -> tuple[Step, int]:
    if adjacency != "replace":
        raise DomainError(
            "adjacency must be 'replace' for sampling without replacement, which is from a "
            f"population of known size, got {adjacency!r}"
        )
    step, uses = dominating(1.0)
    if sampling.batch == sampling.population:
        return step, uses
    if not isinstance(step, Pair | CellPair) or uses != 1:
        raise DomainError(
            "sampling must not be without replacement for a promise, a law of whole numbers that "
            "has no table, or a vector whose worst case is that of many coordinates, got "
            f"{step!r} {uses} times"
        )
    rate = rounded(Fraction(sampling.batch, sampling.population), up=True)
    return Batches(dataclasses.replace(step, sampling_rate=rate)), 1
