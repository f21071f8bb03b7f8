"""Arguments of laws as JSON values, and back: floats in hexadecimal, costs as objects.

A cost is an object with ``cost``, the name of its class, and one member for each parameter of its
constructor: a number; ``of``, the cost that is stretched; ``terms``, a list of costs; ``points``, a
list of lists of two numbers. Functions (`costs.Custom`) have no such text: it would have to be
evaluated.
"""

from __future__ import annotations

import inspect
from typing import Any

from psinoise import costs
from psinoise._hashed_json import hexadecimal
from psinoise.errors import DomainError

__all__ = ["read_argument", "written_argument"]

_PLAIN = costs.Power, costs.Log, costs.LogCosh, costs.Huber, costs.Hinge, costs.Piecewise
_KINDS: dict[str, type[costs.Cost]] = {
    kind.__name__: kind for kind in (*_PLAIN, costs.Sum, costs.Maximum, costs.Stretched)
}
# The member of a stretched cost: "cost" is the name of its class.
_OF = "of"
# Costs of costs of costs: far below what recursion allows, far above what means something.
_DEEPEST = 32


def written_argument(name: str, value: object) -> Any:
    """A float or a cost as a JSON value.

    Raises
    ------
    DomainError
        if it is neither, or a cost holds a function
    """
    if isinstance(value, costs.Cost) or (
        isinstance(value, float | int) and not isinstance(value, bool)
    ):
        return _written(value, 0)
    raise DomainError(f"{name} must be a float or a cost to be written, got {value!r}")


def read_argument(name: str, value: object) -> float | costs.Cost:
    """What `written_argument` wrote.

    Raises
    ------
    DomainError, TypeError
        for anything that it would not have written
    """
    if not isinstance(value, dict):
        return hexadecimal(name, value)
    cost = _read_cost(value, 0)
    # A sum within a sum, which the constructor flattens.
    if _written(cost, 0) != value:
        raise DomainError(f"{name} must be a cost in its simplest form, {cost!r}")
    return cost


def _parameters(kind: type[costs.Cost]) -> dict[str, str]:
    """Parameters of the constructor, which are attributes, by their members."""
    names = inspect.signature(kind).parameters
    return {_OF if name == "cost" else name: name for name in names}


def _written(value: Any, depth: int) -> Any:
    if isinstance(value, tuple):
        return [_written(part, depth) for part in value]
    if not isinstance(value, costs.Cost):
        return float(value).hex()
    _check_depth(depth)
    name = type(value).__name__
    if type(value) is not _KINDS.get(name):
        raise DomainError(f"cost must be made of {', '.join(_KINDS)} to be written, got {value!r}")
    members = _parameters(type(value)).items()
    return {
        "cost": name,
        **{key: _written(getattr(value, parameter), depth + 1) for key, parameter in members},
    }


def _read_cost(value: object, depth: int) -> costs.Cost:
    _check_depth(depth)
    if not isinstance(value, dict):
        raise DomainError(f"a cost must be a JSON object, got {type(value).__name__}")
    name = value.get("cost")
    if not isinstance(name, str) or name not in _KINDS:
        raise DomainError(f"cost must be one of {', '.join(_KINDS)}, got {name!r}")
    kind: Any = _KINDS[name]
    members = _parameters(kind)
    if set(value) != {"cost", *members}:
        raise DomainError(f"cost {name} must have the members cost, {', '.join(members)}")
    read = [_read(member, value[member], depth + 1) for member in members]
    cost: costs.Cost = kind(*read[0]) if "terms" in members else kind(*read)
    return cost


def _read(member: str, value: Any, depth: int) -> Any:
    if member == _OF:
        return _read_cost(value, depth)
    if member == "terms":
        if not isinstance(value, list) or not value:
            raise DomainError(f"terms must be a list of costs, got {value!r}")
        return [_read_cost(term, depth) for term in value]
    if member == "points":
        if not isinstance(value, list) or not all(isinstance(p, list) for p in value):
            raise DomainError(f"points must be a list of pairs of numbers, got {value!r}")
        return [[hexadecimal("a coordinate", x) for x in point] for point in value]
    return hexadecimal(member, value)


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise DomainError(f"cost must have at most {_DEEPEST} levels")
