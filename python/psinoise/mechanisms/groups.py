"""Groups of records: data sets that differ in several of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from psinoise import _validate
from psinoise.accounting.loss.steps import Step, Steps
from psinoise.errors import DomainError
from psinoise.mechanisms.accounted import Accounted
from psinoise.numerics.rational import rounded
from psinoise.sampling import Poisson, Sampling

__all__ = ["Group", "group_of", "group_size"]


@dataclass(frozen=True)
class Group(Accounted):
    """A mechanism whose neighbors differ in several records; made by ``for_group``.

    Without sampling ``k`` records move a query by at most ``k`` times as far as one, and so far
    they can move it: the pair is that of a sensitivity which is as large. With sampling a random
    number of them is drawn, and the worst case is not known: refused.

    Attributes
    ----------
    mechanism
        with the sensitivity of the group
    size
        number of records
    """

    mechanism: Accounted
    size: int

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """What dominates one use for the group, and how many uses of it.

        Raises
        ------
        DomainError
            with sampling; and where the worst case is not proven for one record
        """
        self._check(sampling_rate)
        return self.mechanism.dominating(sampling_rate, adjacency)

    def sampled(self, sampling_rate: float, sampling: Sampling | None, adjacency: str) -> Steps:
        """What dominates one use for the group: all that the mechanism names."""
        if not isinstance(sampling, Poisson | None):
            raise DomainError(
                f"sampling must be Poisson sampling for groups of records, got {sampling!r}"
            )
        self._check(sampling_rate if sampling is None else sampling.rate)
        return self.mechanism.sampled(sampling_rate, sampling, adjacency)

    def _check(self, sampling_rate: float) -> None:
        if self.size > 1 and 0.0 < sampling_rate < 1.0:
            raise DomainError(
                "sampling_rate must be 1 for groups of records (the worst case is not known), got "
                f"{sampling_rate!r}"
            )


def group_size(size: int) -> int:
    """A positive number of records."""
    return _validate.positive_count("size", size)


def group_of(mechanism: Any, size: int, **changes: Any) -> Group:
    """A mechanism for data sets that differ in so many records, which move its query farther."""
    moved = rounded(group_size(size) * Fraction(mechanism.sensitivity), up=True)
    return Group(replace(mechanism, sensitivity=moved, **changes), group_size(size))
