"""The steps of an accountant as text, and back.

The text is that of `psinoise._hashed_json`, format "psinoise-accountant", with the members

``adjacency``
    the neighboring relation
``steps``
    a list of objects with ``law`` (a name of ``psinoise.noise.LAWS`` or ``DESIGNED``),
    ``arguments`` (its keyword arguments), ``sensitivity``, ``sampling_rate`` and ``count``; sorted,
    each step once. For "replace" with sampling the sensitivity is twice the contribution. Noise on
    a lattice has the law ``LatticeNoise``, with its integers as text for its only argument

Floats are strings in hexadecimal, as ``float.hex`` writes them: exact, and one text for each value.
A cost is an object with ``cost``, the name of its class, and one member for each parameter of its
constructor: a number; ``of``, the cost that is stretched; ``terms``, a list of costs; ``points``, a
list of lists of two numbers. Reading looks names up in lists and evaluates nothing.

These have no such text: functions, of costs and laws, which it would have to evaluate; imported
losses, which are measures of any size; cactus noise, whose masses are the solution of a program
(``Cactus.save`` writes it); sums of releases, which are no use of one law.
"""

from __future__ import annotations

import inspect
from typing import Any

from psinoise import _hashed_json, _validate, costs
from psinoise._hashed_json import canonical, hexadecimal, members_of
from psinoise.accounting import contract
from psinoise.accounting.loss.blocks import BlockPair
from psinoise.accounting.loss.cells import CellPair
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.steps import Step, Steps
from psinoise.accounting.vectors import dominating_pair
from psinoise.errors import DomainError
from psinoise.noise import DESIGNED, LAWS, NoiseLaw
from psinoise.release import LatticeNoise

__all__ = ["dumps", "loads", "read_law", "written_law"]

_FORMAT = "psinoise-accountant"
_VERSION = 1
_MEMBERS = ("adjacency", "steps")
_WRITTEN = {law.__name__: law for law in (*LAWS, *DESIGNED) if law.made_by_arguments}
_LATTICE, _INTEGERS = "LatticeNoise", "integers"
_STEP_MEMBERS = ("law", "arguments", "sensitivity", "sampling_rate", "count")
_PLAIN = costs.Power, costs.Log, costs.LogCosh, costs.Huber, costs.Hinge, costs.Piecewise
_COSTS: dict[str, type[costs.Cost]] = {
    kind.__name__: kind for kind in (*_PLAIN, costs.Sum, costs.Maximum, costs.Stretched)
}
# The member of a stretched cost: "cost" is the name of its class.
_OF = "of"
# Costs of costs of costs: far below what recursion allows, far above what means something.
_DEEPEST = 32


def dumps(adjacency: str, steps: Steps) -> str:
    """Write what an accountant has composed; equal steps give equal text, in any order.

    Raises `DomainError` if they hold something that cannot be written: a law that is not one of the
    library, cactus noise, or parameters other than real numbers and costs, such as functions.
    """
    written = sorted((_written(pair, count) for pair, count in steps), key=canonical)
    return _hashed_json.dumps(_FORMAT, _VERSION, {"adjacency": adjacency, "steps": written})


def loads(text: str) -> tuple[str, Steps]:
    """Read what `dumps` wrote.

    Raises `TypeError` if ``text`` is not a string, and `DomainError` for anything that `dumps`
    would not have written.
    """
    found = _hashed_json.loads(text, _FORMAT, _VERSION, _MEMBERS)
    adjacency, steps = found["adjacency"], found["steps"]
    if not isinstance(adjacency, str):
        raise DomainError(f"adjacency must be a string, got {adjacency!r}")
    adjacency = contract.check_adjacency_or_direction(adjacency)
    if not isinstance(steps, list):
        raise DomainError(f"steps must be a list, got {type(steps).__name__}")
    read = tuple(_read_step(step, adjacency) for step in steps)
    if len(dict(read)) != len(read):
        raise DomainError("steps must be distinct")
    return adjacency, read


def written_law(noise: object) -> dict[str, Any]:
    """A law as a JSON object with its name and its arguments.

    Raises `DomainError` if it is not one of the library, or has arguments that cannot be written.
    """
    if isinstance(noise, LatticeNoise):
        return {"law": _LATTICE, "arguments": {_INTEGERS: noise.to_json()}}
    if not isinstance(noise, NoiseLaw) or type(noise) not in _WRITTEN.values():
        raise DomainError(
            f"noise must be one of {', '.join(_WRITTEN)} to be written, got {noise!r}"
        )
    arguments = noise._canonical_arguments()
    return {
        "law": type(noise).__name__,
        "arguments": {name: _written_argument(name, value) for name, value in arguments.items()},
    }


def read_law(name: object, arguments: object) -> Any:
    """The law of two members that `written_law` wrote.

    Raises `DomainError`, `TypeError`, `OverflowError` for anything that it would not have written.
    """
    if not isinstance(name, str) or name not in (*_WRITTEN, _LATTICE):
        raise DomainError(f"law must be one of {', '.join((*_WRITTEN, _LATTICE))}, got {name!r}")
    if not isinstance(arguments, dict):
        raise DomainError(f"arguments must be an object, got {arguments!r}")
    if name == _LATTICE:
        return LatticeNoise.from_json(members_of("arguments", arguments, (_INTEGERS,))[_INTEGERS])
    law: Any = _WRITTEN[name]
    return law(**{key: _read_argument(key, value) for key, value in arguments.items()})


def _written(step: Step, count: int) -> dict[str, Any]:
    noise: object
    if isinstance(step, BlockPair) and step.one_law is not None:
        noise, distance = step.one_law, step.shift
    elif isinstance(step, Pair | CellPair):
        noise, distance = step.noise, step.distance
    else:
        raise DomainError(
            "an accountant must hold mechanisms alone to be written, no promises or imported "
            f"losses, got {step!r}"
        )
    return {
        **written_law(noise),
        "sensitivity": float(distance).hex(),
        "sampling_rate": float(step.sampling_rate).hex(),
        "count": count,
    }


def _read_step(step: object, adjacency: str) -> tuple[Step, int]:
    found = members_of("a step", step, _STEP_MEMBERS)
    count = found["count"]
    if type(count) is not int or not count >= 1:
        raise DomainError(f"count must be a positive integer, got {count!r}")
    try:
        noise = read_law(found["law"], found["arguments"])
        sensitivity = _validate.positive(
            "sensitivity", hexadecimal("sensitivity", found["sensitivity"])
        )
        rate = _validate.probability("sampling_rate", hexadecimal("rate", found["sampling_rate"]))
        if rate == 0.0:
            raise DomainError("sampling_rate must be positive, got 0.0")
        pair, _ = dominating_pair(noise, sensitivity, 0.5 * sensitivity, rate, adjacency)
        return pair, _validate.count("count", count)
    except (TypeError, OverflowError) as error:
        raise DomainError(str(error)) from error


def _written_argument(name: str, value: object) -> Any:
    """A float or a cost as a JSON value; nothing else."""
    if isinstance(value, costs.Cost) or (
        isinstance(value, float | int) and not isinstance(value, bool)
    ):
        return _written_cost(value, 0)
    raise DomainError(f"{name} must be a float or a cost to be written, got {value!r}")


def _read_argument(name: str, value: object) -> float | costs.Cost:
    """What `_written_argument` wrote."""
    if not isinstance(value, dict):
        return hexadecimal(name, value)
    cost = _read_cost(value, 0)
    # A sum within a sum, which the constructor flattens.
    if _written_cost(cost, 0) != value:
        raise DomainError(f"{name} must be a cost in its simplest form, {cost!r}")
    return cost


def _parameters(kind: type[costs.Cost]) -> dict[str, str]:
    """Parameters of the constructor, which are attributes, by their members."""
    names = inspect.signature(kind).parameters
    return {_OF if name == "cost" else name: name for name in names}


def _written_cost(value: Any, depth: int) -> Any:
    if isinstance(value, tuple):
        return [_written_cost(part, depth) for part in value]
    if not isinstance(value, costs.Cost):
        return float(value).hex()
    _check_depth(depth)
    name = type(value).__name__
    if type(value) is not _COSTS.get(name):
        raise DomainError(f"cost must be made of {', '.join(_COSTS)} to be written, got {value!r}")
    members = _parameters(type(value)).items()
    return {
        "cost": name,
        **{key: _written_cost(getattr(value, parameter), depth + 1) for key, parameter in members},
    }


def _read_cost(value: object, depth: int) -> costs.Cost:
    _check_depth(depth)
    if not isinstance(value, dict):
        raise DomainError(f"a cost must be a JSON object, got {type(value).__name__}")
    name = value.get("cost")
    if not isinstance(name, str) or name not in _COSTS:
        raise DomainError(f"cost must be one of {', '.join(_COSTS)}, got {name!r}")
    kind: Any = _COSTS[name]
    members = _parameters(kind)
    if set(value) != {"cost", *members}:
        raise DomainError(f"cost {name} must have the members cost, {', '.join(members)}")
    read = [_read_member(member, value[member], depth + 1) for member in members]
    cost: costs.Cost = kind(*read[0]) if "terms" in members else kind(*read)
    return cost


def _read_member(member: str, value: Any, depth: int) -> Any:
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
