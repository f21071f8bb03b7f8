"""One entry of a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from psinoise import _validate
from psinoise.mechanisms import LatticeMechanism, Mechanism

__all__ = ["Charge"]


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger."""

    mechanism: Mechanism | LatticeMechanism
    """What was counted: the mechanism on its lattice for a release."""
    count: int
    """How many uses of it."""
    sampling_rate: float
    """Rate of Poisson sampling of each use."""
    label: str
    """The caller's words."""
    time: str
    """When it was charged, in UTC, as ISO 8601 says."""

    @staticmethod
    def of(
        mechanism: Mechanism | LatticeMechanism,
        count: int,
        sampling_rate: float,
        label: str = "",
    ) -> Charge:
        """A charge of now, of arguments that are checked.

        Raises
        ------
        TypeError, DomainError, OverflowError
            As `Ledger.charge`.
        """
        if not isinstance(mechanism, Mechanism | LatticeMechanism):
            raise TypeError(f"mechanism must be a Mechanism, got {mechanism!r}")
        if not isinstance(label, str):
            raise TypeError(f"label must be a string, got {label!r}")
        return Charge(
            mechanism,
            _validate.count("count", count),
            _validate.probability_above("sampling_rate", sampling_rate),
            label,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
