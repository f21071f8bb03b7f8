"""A ledger as text, and back.

The text is that of `psinoise._hashed_json`, format "psinoise-ledger", with the members

``epsilon``, ``delta``, ``adjacency``
    the budget
``mechanisms``
    every mechanism once: an object with the member ``lattice``, the text of
    `LatticeMechanism.to_json`, with its integers; or with ``law``, ``arguments``, ``sensitivity``,
    ``contribution`` (which may be null), ``dimension`` and ``norm``
``charges``
    a list of objects with ``mechanism``, a position in that list, ``count``, ``sampling_rate``,
    ``label`` and ``time``, in order

Floats are strings in hexadecimal, as in `psinoise.accounting.serialize`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psinoise import _hashed_json, _validate
from psinoise._hashed_json import members_of
from psinoise.accounting import LatticeMechanism, Mechanism, contract
from psinoise.accounting.arguments import hexadecimal
from psinoise.accounting.serialize import read_law, written_law
from psinoise.errors import DomainError
from psinoise.ledger._charge import Charge

__all__ = ["dumps", "loads"]

_FORMAT, _VERSION = "psinoise-ledger", 1
_MEMBERS = ("epsilon", "delta", "adjacency", "mechanisms", "charges")
_MECHANISM = ("law", "arguments", "sensitivity", "contribution", "dimension", "norm")
_CHARGE = ("mechanism", "count", "sampling_rate", "label", "time")

_AnyMechanism = Mechanism | LatticeMechanism


def dumps(epsilon: float, delta: float, adjacency: str, charges: Sequence[Charge]) -> str:
    """Write a ledger.

    Raises
    ------
    DomainError
        If it holds a law that cannot be written.
    """
    places: dict[_AnyMechanism, int] = {}
    for charge in charges:
        places.setdefault(charge.mechanism, len(places))
    content = {
        "epsilon": epsilon.hex(),
        "delta": delta.hex(),
        "adjacency": adjacency,
        "mechanisms": [_written(mechanism) for mechanism in places],
        "charges": [
            {
                "mechanism": places[charge.mechanism],
                "count": charge.count,
                "sampling_rate": charge.sampling_rate.hex(),
                "label": charge.label,
                "time": charge.time,
            }
            for charge in charges
        ],
    }
    return _hashed_json.dumps(_FORMAT, _VERSION, content)


def loads(text: str) -> tuple[float, float, str, list[Charge]]:
    """Read what `dumps` wrote.

    Raises
    ------
    DomainError
        For anything that it would not have written.
    """
    found = _hashed_json.loads(text, _FORMAT, _VERSION, _MEMBERS)
    for name in ("mechanisms", "charges"):
        if not isinstance(found[name], list):
            raise DomainError(f"{name} must be a list, got {type(found[name]).__name__}")
    try:
        mechanisms = [_read(mechanism) for mechanism in found["mechanisms"]]
        return (
            hexadecimal("epsilon", found["epsilon"]),
            hexadecimal("delta", found["delta"]),
            contract.check_adjacency(found["adjacency"]),
            [_read_charge(charge, mechanisms) for charge in found["charges"]],
        )
    except (TypeError, OverflowError) as error:
        raise DomainError(str(error)) from error


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


def _read(value: object) -> _AnyMechanism:
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


def _read_charge(value: object, mechanisms: list[_AnyMechanism]) -> Charge:
    found = members_of("a charge", value, _CHARGE)
    place, time = _validate.count("mechanism", found["mechanism"]), found["time"]
    if not place < len(mechanisms):
        raise DomainError(f"mechanism must be a position in the list, got {place!r}")
    try:
        datetime.fromisoformat(time)
    except ValueError:
        raise DomainError(f"time must be as ISO 8601 says, got {time!r}") from None
    rate = hexadecimal("sampling_rate", found["sampling_rate"])
    charge = Charge.of(mechanisms[place], found["count"], rate, found["label"])
    return Charge(charge.mechanism, charge.count, charge.sampling_rate, charge.label, time)
