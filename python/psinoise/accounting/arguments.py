"""Arguments of laws as JSON values, and back: floats in hexadecimal, costs as objects.

A cost is an object with ``cost``, the name of its class, and one member for each parameter:

``Power``
    ``p``, ``weight``
``Log``
    ``power``, ``weight``
``LogCosh``
    ``scale``, ``weight``
``Huber``
    ``threshold``, ``weight``
``Hinge``
    ``start``, ``weight``
``Piecewise``
    ``points``, a list of lists of two numbers
``Sum``, ``Maximum``
    ``terms``, a list of costs
``Stretched``
    ``of``, a cost, and ``factor``

Functions (`costs.Custom`) have no such text: it would have to be evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psinoise import costs
from psinoise._hashed_json import hexadecimal
from psinoise.errors import DomainError

__all__ = ["read_argument", "written_argument"]

_NUMBERS: Mapping[str, tuple[type[costs.Cost], tuple[str, ...]]] = {
    "Power": (costs.Power, ("p", "weight")),
    "Log": (costs.Log, ("power", "weight")),
    "LogCosh": (costs.LogCosh, ("scale", "weight")),
    "Huber": (costs.Huber, ("threshold", "weight")),
    "Hinge": (costs.Hinge, ("start", "weight")),
}
_TERMS: Mapping[str, type[costs.Cost]] = {"Sum": costs.Sum, "Maximum": costs.Maximum}
_NAMES = (*_NUMBERS, "Piecewise", *_TERMS, "Stretched")
# Costs of costs of costs: far below what recursion allows, far above what means something.
_DEEPEST = 32


def written_argument(name: str, value: object) -> Any:
    """A float or a cost as a JSON value.

    Raises
    ------
    DomainError
        if it is neither, or a cost holds a function
    """
    if isinstance(value, float | int) and not isinstance(value, bool):
        return float(value).hex()
    if isinstance(value, costs.Cost):
        return _written_cost(value, 0)
    raise DomainError(f"{name} must be a float or a cost to be written, got {value!r}")


def read_argument(name: str, value: object) -> float | costs.Cost:
    """What `written_argument` wrote.

    Raises
    ------
    DomainError
        for anything that it would not have written
    """
    if not isinstance(value, dict):
        return hexadecimal(name, value)
    cost = _read_cost(value, 0)
    # A sum within a sum, which the constructor flattens.
    if _written_cost(cost, 0) != value:
        raise DomainError(f"{name} must be a cost in its simplest form, {cost!r}")
    return cost


def _written_cost(cost: costs.Cost, depth: int) -> dict[str, Any]:
    _check_depth(depth)
    name = type(cost).__name__
    if name in _NUMBERS and type(cost) is _NUMBERS[name][0]:
        numbers = {parameter: getattr(cost, parameter).hex() for parameter in _NUMBERS[name][1]}
        return {"cost": name, **numbers}
    if isinstance(cost, costs.Piecewise) and type(cost) is costs.Piecewise:
        return {"cost": name, "points": [[x.hex(), y.hex()] for x, y in cost.points]}
    if isinstance(cost, costs.Sum | costs.Maximum) and type(cost) is _TERMS.get(name):
        return {"cost": name, "terms": [_written_cost(term, depth + 1) for term in cost.terms]}
    if isinstance(cost, costs.Stretched) and type(cost) is costs.Stretched:
        of = _written_cost(cost.cost, depth + 1)
        return {"cost": name, "of": of, "factor": cost.factor.hex()}
    raise DomainError(f"cost must be made of {', '.join(_NAMES)} to be written, got {cost!r}")


def _read_cost(value: object, depth: int) -> costs.Cost:
    _check_depth(depth)
    if not isinstance(value, dict):
        raise DomainError(f"a cost must be a JSON object, got {type(value).__name__}")
    name = value.get("cost")
    if not isinstance(name, str) or name not in _NAMES:
        raise DomainError(f"cost must be one of {', '.join(_NAMES)}, got {name!r}")
    if name in _NUMBERS:
        kind, parameters = _NUMBERS[name]
        _check_members(name, value, parameters)
        return kind(*(hexadecimal(parameter, value[parameter]) for parameter in parameters))
    if name == "Piecewise":
        return _read_points(value)
    if name in _TERMS:
        _check_members(name, value, ("terms",))
        terms = value["terms"]
        if not isinstance(terms, list) or not terms:
            raise DomainError(f"terms must be a list of costs, got {terms!r}")
        return _TERMS[name](*(_read_cost(term, depth + 1) for term in terms))
    _check_members(name, value, ("of", "factor"))
    factor = hexadecimal("factor", value["factor"])
    return costs.Stretched(_read_cost(value["of"], depth + 1), factor)


def _read_points(value: dict[str, Any]) -> costs.Cost:
    _check_members("Piecewise", value, ("points",))
    points = value["points"]
    pairs = isinstance(points, list) and all(
        isinstance(point, list) and len(point) == 2 for point in points
    )
    if not pairs:
        raise DomainError(f"points must be a list of pairs of numbers, got {points!r}")
    return costs.Piecewise([(hexadecimal("x", x), hexadecimal("cost", y)) for x, y in points])


def _check_members(name: str, value: dict[str, Any], members: tuple[str, ...]) -> None:
    if set(value) != {"cost", *members}:
        raise DomainError(f"cost {name} must have the members cost, {', '.join(members)}")


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise DomainError(f"cost must have at most {_DEEPEST} levels")
