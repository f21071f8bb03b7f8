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
Arguments that are costs are objects (`psinoise.accounting.arguments`).
Reading looks names up in the list of laws and evaluates nothing.

Imported losses have no such text: they are measures of any size, not the arguments of a law.
Neither has cactus noise, whose masses are the solution of a program: ``Cactus.save`` writes it; nor
sums of releases, which are no use of one law.
"""

from __future__ import annotations

from typing import Any

from psinoise import _hashed_json, _validate
from psinoise._hashed_json import canonical, hexadecimal, members_of
from psinoise.accounting import contract
from psinoise.accounting.arguments import read_argument, written_argument
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


def dumps(adjacency: str, steps: Steps) -> str:
    """Write what an accountant has composed; equal steps give equal text, in any order.

    Raises
    ------
    DomainError
        if they hold something that cannot be written: a law that is not one of the library, cactus
        noise, or parameters other than real numbers and costs, such as functions
    """
    written = sorted((_written(pair, count) for pair, count in steps), key=canonical)
    return _hashed_json.dumps(_FORMAT, _VERSION, {"adjacency": adjacency, "steps": written})


def loads(text: str) -> tuple[str, Steps]:
    """Read what `dumps` wrote.

    Raises
    ------
    TypeError
        if ``text`` is not a string
    DomainError
        for anything that `dumps` would not have written
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

    Raises
    ------
    DomainError
        if it is not one of the library, or has arguments that cannot be written
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
        "arguments": {name: written_argument(name, value) for name, value in arguments.items()},
    }


def read_law(name: object, arguments: object) -> Any:
    """The law of two members that `written_law` wrote.

    Raises
    ------
    DomainError, TypeError, OverflowError
        for anything that it would not have written
    """
    if not isinstance(name, str) or name not in (*_WRITTEN, _LATTICE):
        raise DomainError(f"law must be one of {', '.join((*_WRITTEN, _LATTICE))}, got {name!r}")
    if not isinstance(arguments, dict):
        raise DomainError(f"arguments must be an object, got {arguments!r}")
    if name == _LATTICE:
        return LatticeNoise.from_json(members_of("arguments", arguments, (_INTEGERS,))[_INTEGERS])
    law: Any = _WRITTEN[name]
    return law(**{key: read_argument(key, value) for key, value in arguments.items()})


def _written(step: Step, count: int) -> dict[str, Any]:
    noise: object
    if isinstance(step, BlockPair) and step.one_law is not None:
        noise, distance = step.one_law, step.shift
    elif isinstance(step, Pair | CellPair):
        noise, distance = step.noise, step.distance
    else:
        raise DomainError(f"an accountant must hold mechanisms alone to be written, got {step!r}")
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
