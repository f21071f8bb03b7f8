"""JSON objects of one exact form, with a SHA-256 of their content.

An object has the members ``format``, ``version``, others that its format names, and ``sha256``: the
hash of the others, as JSON with sorted keys, without spaces, in ASCII. The hash finds accidents and
careless edits; it is no signature, since anybody can compute it.

A *line* is such an object without spaces and without a format, one of a chain: its hash is of the
hash of the line before it and of its other members.

Reading evaluates nothing and refuses what writing would not have made: other members, a member
twice, numbers that are not finite.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from psinoise.errors import DomainError

__all__ = [
    "canonical",
    "dumps",
    "hexadecimal",
    "line",
    "loads",
    "members_of",
    "parsed",
    "read_line",
]


def dumps(form: str, version: int, content: Mapping[str, Any]) -> str:
    """Write members of finite numbers, strings, lists and objects.

    Examples
    --------
    >>> text = dumps("example", 1, {"answer": 42})
    >>> loads(text, "example", 1, ["answer"])
    {'answer': 42}
    >>> loads(text.replace("42", "43"), "example", 1, ["answer"])
    Traceback (most recent call last):
    ...
    psinoise.errors.DomainError: sha256 must be that of the content: the text was changed
    """
    stated = {"format": form, "version": version, **content}
    return json.dumps({**stated, "sha256": _digest(stated)}, indent=1)


def loads(text: str, form: str, version: int, members: Sequence[str]) -> dict[str, Any]:
    """Read what `dumps` wrote with these members; without format, version and hash.

    Raises
    ------
    TypeError
        If ``text`` is not a string.
    DomainError
        For anything that `dumps` would not have written.
    """
    found = members_of("text", parsed(text), ["format", "version", *members, "sha256"])
    if found["format"] != form:
        raise DomainError(f"format must be {form!r}, got {found['format']!r}")
    if type(found["version"]) is not int or found["version"] != version:
        raise DomainError(f"version must be {version}, got {found['version']!r}")
    digest = found.pop("sha256")
    if not isinstance(digest, str) or not hmac.compare_digest(
        digest.encode("ascii", "replace"), _digest(found).encode()
    ):
        raise DomainError("sha256 must be that of the content: the text was changed")
    return {name: found[name] for name in members}


def line(previous: str, content: Mapping[str, Any]) -> tuple[str, str]:
    """One line of a chain, without its end, and its hash.

    Examples
    --------
    >>> text, digest = line("", {"answer": 42})
    >>> read_line("", text) == ({"answer": 42}, digest)
    True
    """
    digest = _digest(dict(content), previous)
    return canonical({**content, "sha256": digest}), digest


def read_line(previous: str, text: str) -> tuple[dict[str, Any], str]:
    """The members of a line that `line` wrote after the line with this hash, and its own hash.

    Raises
    ------
    DomainError
        For anything else.
    """
    found = parsed(text)
    if not isinstance(found, dict):
        raise DomainError(f"a line must be a JSON object, got {type(found).__name__}")
    digest = found.pop("sha256", None)
    if not isinstance(digest, str) or digest != _digest(found, previous):
        raise DomainError("sha256 must be that of the content and of what is before it")
    return found, digest


def members_of(what: str, value: object, names: Sequence[str]) -> dict[str, Any]:
    """A JSON object with exactly these members.

    Raises
    ------
    DomainError
        If it is not one.
    """
    if not isinstance(value, dict):
        raise DomainError(f"{what} must be a JSON object, got {type(value).__name__}")
    if set(value) != set(names):
        raise DomainError(f"{what} must have the members {', '.join(names)}")
    return value


def hexadecimal(name: str, text: object) -> float:
    """The finite float of a text that ``float.hex`` wrote."""
    if isinstance(text, str):
        try:
            value = float.fromhex(text)
        except (ValueError, OverflowError):
            value = math.nan
        if math.isfinite(value) and value.hex() == text:
            return value
    raise DomainError(f"{name} must be a finite float as float.hex writes it, got {text!r}")


def canonical(value: object) -> str:
    """The one text of a JSON value that is hashed and sorted by."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parsed(text: str) -> object:
    """A JSON value without members twice and without numbers that are not finite.

    Raises
    ------
    TypeError
        If ``text`` is not a string.
    DomainError
        If it is no such JSON.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}")

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


def _digest(content: dict[str, Any], previous: str = "") -> str:
    try:
        return hashlib.sha256((previous + canonical(content)).encode("ascii")).hexdigest()
    except (ValueError, RecursionError) as error:
        raise DomainError(f"text must hold finite numbers: {error}") from error
