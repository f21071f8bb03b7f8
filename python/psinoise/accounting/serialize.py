"""The steps of an accountant as text, and back.

The text is JSON with these members, no others and none twice:

``format``, ``version``
    "psinoise-accountant", 1
``adjacency``
    the neighboring relation
``steps``
    a list of objects with ``law`` (a name of ``psinoise.noise.LAWS``), ``arguments`` (its keyword
    arguments), ``sensitivity``, ``sampling_rate`` and ``count``; sorted, each step once. For
    "replace" with sampling the sensitivity is twice the contribution
``sha256``
    of the other members, as JSON with sorted keys, without spaces, in ASCII

Floats are strings in hexadecimal, as ``float.hex`` writes them: exact, and one text for each value.
Arguments that are costs are objects (`psinoise.accounting.arguments`).
Reading looks names up in the list of laws and evaluates nothing. The hash finds accidents and
careless edits; it is no signature, since anybody can compute it.

Imported losses have no such text: they are measures of any size, not the arguments of a law.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from psinoise import _validate
from psinoise.accounting import contract
from psinoise.accounting.arguments import hexadecimal, read_argument, written_argument
from psinoise.accounting.cells import Dominating
from psinoise.accounting.mechanism import Mechanism
from psinoise.accounting.steps import Steps
from psinoise.errors import DomainError
from psinoise.noise import LAWS, Noise

__all__ = ["dumps", "loads"]

_FORMAT = "psinoise-accountant"
_VERSION = 1
_MEMBERS = ("format", "version", "adjacency", "steps", "sha256")
_STEP_MEMBERS = ("law", "arguments", "sensitivity", "sampling_rate", "count")


def dumps(adjacency: str, steps: Steps) -> str:
    """Write what an accountant has composed; equal steps give equal text, in any order.

    Raises
    ------
    DomainError
        if they hold something that cannot be written: a law that is not in
        ``psinoise.noise.LAWS``, or parameters other than real numbers and costs, such as
        functions
    """
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "adjacency": adjacency,
        "steps": sorted((_written(pair, count) for pair, count in steps), key=_canonical),
    }
    return json.dumps({**content, "sha256": _digest(content)}, indent=1)


def loads(text: str) -> tuple[str, Steps]:
    """Read what `dumps` wrote.

    Raises
    ------
    TypeError
        if ``text`` is not a string
    DomainError
        for anything that `dumps` would not have written
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}")
    found = _object("text", _parsed(text), _MEMBERS)
    if found["format"] != _FORMAT:
        raise DomainError(f"format must be {_FORMAT!r}, got {found['format']!r}")
    if type(found["version"]) is not int or found["version"] != _VERSION:
        raise DomainError(f"version must be {_VERSION}, got {found['version']!r}")
    digest = found.pop("sha256")
    expected = _digest(found)
    if not isinstance(digest, str) or not hmac.compare_digest(
        digest.encode("ascii", "replace"), expected.encode()
    ):
        raise DomainError("sha256 must be that of the content: the text was changed")
    adjacency, steps = found["adjacency"], found["steps"]
    if not isinstance(adjacency, str):
        raise DomainError(f"adjacency must be a string, got {adjacency!r}")
    adjacency = contract.check_adjacency(adjacency)
    if not isinstance(steps, list):
        raise DomainError(f"steps must be a list, got {type(steps).__name__}")
    read = tuple(_read_step(step, adjacency) for step in steps)
    if len(dict(read)) != len(read):
        raise DomainError("steps must be distinct")
    return adjacency, read


def _written(pair: Dominating, count: int) -> dict[str, Any]:
    noise = pair.noise
    if type(noise) not in LAWS or not isinstance(noise, Noise):
        raise DomainError(f"noise must be one of psinoise.noise.LAWS to be written, got {noise!r}")
    arguments = noise._canonical_arguments()
    return {
        "law": type(noise).__name__,
        "arguments": {name: written_argument(name, value) for name, value in arguments.items()},
        "sensitivity": float(pair.distance).hex(),
        "sampling_rate": float(pair.sampling_rate).hex(),
        "count": count,
    }


def _read_step(step: object, adjacency: str) -> tuple[Dominating, int]:
    found = _object("a step", step, _STEP_MEMBERS)
    laws = {law.__name__: law for law in LAWS}
    name, arguments, count = found["law"], found["arguments"], found["count"]
    if not isinstance(name, str) or name not in laws:
        raise DomainError(f"law must be one of {', '.join(laws)}, got {name!r}")
    if not isinstance(arguments, dict):
        raise DomainError(f"arguments must be an object, got {arguments!r}")
    if type(count) is not int or not count >= 1:
        raise DomainError(f"count must be a positive integer, got {count!r}")
    law: Any = laws[name]
    try:
        noise = law(**{key: read_argument(key, value) for key, value in arguments.items()})
        sensitivity = hexadecimal("sensitivity", found["sensitivity"])
        mechanism = Mechanism(noise, sensitivity, contribution=0.5 * sensitivity)
        rate = _validate.probability("sampling_rate", hexadecimal("rate", found["sampling_rate"]))
        if rate == 0.0:
            raise DomainError("sampling_rate must be positive, got 0.0")
        return mechanism.dominating(rate, adjacency)[0], _validate.count("count", count)
    except (TypeError, OverflowError) as error:
        raise DomainError(str(error)) from error


def _object(what: str, value: object, members: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DomainError(f"{what} must be a JSON object, got {type(value).__name__}")
    if set(value) != set(members):
        raise DomainError(f"{what} must have the members {', '.join(members)}")
    return value


def _parsed(text: str) -> object:
    def refuse(constant: str) -> None:
        raise DomainError(f"text must be JSON, which has no {constant}")

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=_unique)
    except RecursionError:
        raise DomainError("text must be JSON of a few levels") from None
    except DomainError:
        raise
    except ValueError as error:
        raise DomainError(f"text must be JSON: {error}") from error


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise DomainError("text must not have a member twice in one object")
    return found


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(content: dict[str, Any]) -> str:
    try:
        return hashlib.sha256(_canonical(content).encode("ascii")).hexdigest()
    except (ValueError, RecursionError) as error:
        raise DomainError(f"text must hold finite numbers: {error}") from error
