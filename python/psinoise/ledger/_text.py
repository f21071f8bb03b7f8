"""The lines of a ledger: JSON objects, chained as `psinoise._hashed_json` does.

The first line is the budget:

``format``, ``version``, ``id``
    "psinoise-ledger", 2, and random digits, so that no two ledgers have the same hashes
``epsilon``, ``delta``, ``adjacency``
    the budget
``orders``
    null, or the orders of the filter of an adaptive ledger

Every other line is a charge: ``mechanism``, ``count``, ``sampling_rate``, ``label``, ``time``. The
mechanism is the number of an earlier line that has the same one; or an object with the member
``lattice``, the text of `LatticeMechanism.to_json`, with its integers; or one with ``law``,
``arguments``, ``sensitivity``, ``contribution`` (which may be null), ``dimension`` and ``norm``.

Floats are strings in hexadecimal, as in `psinoise.accounting.serialize`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from psinoise import _validate
from psinoise._hashed_json import hexadecimal, members_of
from psinoise.accounting import contract
from psinoise.accounting.serialize import read_law, written_law
from psinoise.errors import DomainError
from psinoise.ledger._charge import Charge
from psinoise.mechanisms import LatticeMechanism, Mechanism

__all__ = ["Budget", "read_budget", "read_charge", "written_budget", "written_charge"]

_FORMAT, _VERSION = "psinoise-ledger", 2
_BUDGET = ("format", "version", "id", "epsilon", "delta", "adjacency", "orders")
_CHARGE = ("mechanism", "count", "sampling_rate", "label", "time")
_MECHANISM = ("law", "arguments", "sensitivity", "contribution", "dimension", "norm")

_AnyMechanism = Mechanism | LatticeMechanism


class Budget(NamedTuple):
    """What a ledger may spend."""

    epsilon: float
    delta: float
    adjacency: str
    orders: tuple[int, ...] | None
    """Of the filter; None where mechanisms are chosen in advance."""

    @staticmethod
    def of(epsilon: float, delta: float, adjacency: str, orders: tuple[int, ...] | None) -> Budget:
        """A budget of arguments that are checked."""
        epsilon = _validate.positive_below("epsilon", epsilon)
        delta = _validate.probability_below("delta", delta)
        if not delta < 1.0:
            raise DomainError(f"delta must be in [0, 1), got {delta!r}")
        return Budget(epsilon, delta, contract.check_adjacency(adjacency), orders)


def written_budget(budget: Budget) -> dict[str, Any]:
    """The members of the first line."""
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "id": secrets.token_hex(16),
        "epsilon": budget.epsilon.hex(),
        "delta": budget.delta.hex(),
        "adjacency": budget.adjacency,
        "orders": None if budget.orders is None else list(budget.orders),
    }


def read_budget(line: Mapping[str, Any]) -> Budget:
    """Read what `written_budget` made; a DomainError refuses all that it would not have made."""
    found = members_of("the first line of a ledger", line, _BUDGET)
    if found["format"] != _FORMAT or type(found["version"]) is not int:
        raise DomainError(f"format must be {_FORMAT!r}, got {found['format']!r}")
    if found["version"] != _VERSION:
        raise DomainError(f"version must be {_VERSION}, got {found['version']!r}")
    orders = found["orders"]
    if orders is not None:
        if not isinstance(orders, list) or not all(
            type(order) is int and 2 <= order < 2**31 for order in orders
        ):
            raise DomainError(f"orders must be whole numbers of at least 2, got {orders!r}")
        if len(set(orders)) != len(orders):
            raise DomainError("orders must be distinct")
        orders = tuple(orders)
    try:
        epsilon, delta = (hexadecimal(name, found[name]) for name in ("epsilon", "delta"))
        budget = Budget.of(epsilon, delta, found["adjacency"], orders)
    except (TypeError, OverflowError) as error:
        raise DomainError(str(error)) from error
    if orders and delta == 0.0:
        raise DomainError("orders must be none where delta is 0")
    return budget


def written_charge(charge: Charge, places: Mapping[_AnyMechanism, int]) -> dict[str, Any]:
    """The members of the line of a charge; ``places`` are numbers of lines with a mechanism.

    A DomainError refuses a law that is made from a function, or not on a lattice and not one of the
    library.
    """
    place = places.get(charge.mechanism)
    return {
        "mechanism": _written(charge.mechanism) if place is None else place,
        "count": charge.count,
        "sampling_rate": charge.sampling_rate.hex(),
        "label": charge.label,
        "time": charge.time,
    }


def read_charge(line: Mapping[str, Any], before: Sequence[Charge]) -> Charge:
    """Read what `written_charge` made, given the charges of the lines before it.

    A DomainError refuses all that it would not have made.
    """
    found = members_of("a charge", line, _CHARGE)
    time = found["time"]
    try:
        datetime.fromisoformat(time)
    except (TypeError, ValueError):
        raise DomainError(f"time must be as ISO 8601 says, got {time!r}") from None
    try:
        mechanism = _read(found["mechanism"], before)
        rate = hexadecimal("sampling_rate", found["sampling_rate"])
        charge = Charge.of(mechanism, found["count"], rate, found["label"])
    except (TypeError, OverflowError) as error:
        raise DomainError(str(error)) from error
    return replace(charge, time=time)


def _written(mechanism: _AnyMechanism) -> dict[str, Any]:
    if isinstance(mechanism, LatticeMechanism):
        return {"lattice": mechanism.to_json()}
    moved = mechanism.contribution
    return {
        **written_law(mechanism.noise),
        "sensitivity": mechanism.sensitivity.hex(),
        "contribution": None if moved is None else moved.hex(),
        "dimension": mechanism.dimension,
        "norm": mechanism.norm,
    }


def _read(value: object, before: Sequence[Charge]) -> _AnyMechanism:
    if isinstance(value, int):
        place = _validate.count("mechanism", value)
        if not 1 <= place <= len(before):
            raise DomainError(f"mechanism must be the number of an earlier line, got {place!r}")
        return before[place - 1].mechanism
    if isinstance(value, dict) and "lattice" in value:
        return LatticeMechanism.from_json(members_of("a mechanism", value, ["lattice"])["lattice"])
    found = members_of("a mechanism", value, _MECHANISM)
    moved = found["contribution"]
    return Mechanism(
        read_law(found["law"], found["arguments"]),
        hexadecimal("sensitivity", found["sensitivity"]),
        contribution=None if moved is None else hexadecimal("contribution", moved),
        dimension=found["dimension"],
        norm=found["norm"],
    )
