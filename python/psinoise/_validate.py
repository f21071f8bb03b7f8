"""Checks of arguments, done once at the border.

Messages read ``<name> must be <requirement>, got <repr>``. ``TypeError`` means the wrong kind,
:class:`~psinoise.errors.DomainError` the right kind with a wrong value. Comparisons are written
positively, so that NaN never passes.
"""

from __future__ import annotations

import difflib
import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

from psinoise.errors import DomainError

_LARGEST_COUNT = 2**63 - 1


def real(name: str, value: object) -> float:
    """A real number, infinities included, NaN excluded."""
    number = _number(name, value)
    if not (number == number):  # noqa: PLR0124  NaN is the one number that differs from itself
        raise DomainError(f"{name} must not be NaN")
    return number


def positive(name: str, value: object) -> float:
    """A finite normal number above 0 (a subnormal scale has lost its digits)."""
    number = _number(name, value)
    if not (0.0 < number < math.inf):
        raise DomainError(f"{name} must be positive and finite, got {value!r}")
    if number < 2.0**-1022:
        raise DomainError(f"{name} must be at least 2**-1022 (a normal float64), got {value!r}")
    return number


def positive_above(name: str, value: object) -> float:
    """`positive`, and not below the number that was given, which may be no float64.

    So are what bounds what may happen: sensitivities, rates, promises.
    """
    return _not_below(positive(name, value), value)


def positive_below(name: str, value: object) -> float:
    """`positive`, and not above the number that was given: targets and budgets."""
    return _not_above(positive(name, value), value)


def real_below(name: str, value: object) -> float:
    """`real`, and not above the number that was given."""
    return _not_above(real(name, value), value)


def probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    number = _number(name, value)
    if not (0.0 <= number <= 1.0 and 0.0 <= value <= 1.0):  # type: ignore[operator]
        raise DomainError(f"{name} must be in [0, 1], got {value!r}")
    return number


def probability_above(name: str, value: object) -> float:
    """`probability`, and not below the number that was given."""
    return _not_below(probability(name, value), value)


def probability_below(name: str, value: object) -> float:
    """`probability`, and not above the number that was given."""
    return _not_above(probability(name, value), value)


def count(name: str, value: object) -> int:
    """A whole number from 0 to 2**63 - 1; floats, strings and booleans are refused."""
    if type(value) is int and 0 <= value <= _LARGEST_COUNT:
        return value
    if _is_boolean(value):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if number < 0:
        raise DomainError(f"{name} must be at least 0, got {value!r}")
    if number > _LARGEST_COUNT:
        raise OverflowError(f"{name} must be at most 2**63 - 1, got {value!r}")
    return number


def positive_count(name: str, value: object) -> int:
    """`count`, and not 0."""
    number = count(name, value)
    if number == 0:
        raise DomainError(f"{name} must be at least 1, got 0")
    return number


def flag(name: str, value: object) -> bool:
    """True or False; other objects that are true or false, such as words, are refused."""
    if _is_boolean(value):
        return bool(value)
    raise TypeError(f"{name} must be a boolean, got {value!r}")


def choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of a few words."""
    words = tuple(allowed)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(words)}, got {value!r}")
    if value not in words:
        raise DomainError(f"{name} must be one of {', '.join(words)}, got {value!r}")
    return value


def exactly_one(owner: str, **given: object) -> tuple[str, float]:
    """The one keyword that is not None, with its positive value."""
    present = {name: value for name, value in given.items() if value is not None}
    if len(present) != 1:
        raise TypeError(f"{owner} takes exactly one of {', '.join(given)}, got {len(present)}")
    ((name, value),) = present.items()
    return name, positive(name, value)


def unknown_keyword(owner: str, name: str, names: Iterable[str]) -> TypeError:
    """The error for a keyword that does not exist, with the nearest one and all that do."""
    names = tuple(names)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}? It" if near else "; it"
    return TypeError(
        f"{owner}() got an unexpected keyword argument {name!r}{hint} takes {', '.join(names)}"
    )


def _not_below(number: float, value: object) -> float:
    if type(value) is float or number >= _exact(value):
        return number
    return math.nextafter(number, math.inf)


def _not_above(number: float, value: object) -> float:
    if type(value) is float or number <= _exact(value):
        return number
    return math.nextafter(number, -math.inf)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}  # of NumPy


def _exact(value: object) -> Any:
    """A number that Python compares with a float exactly, as integers and fractions are."""
    # NumPy's integers are rounded first.
    return int(value) if isinstance(value, numbers.Integral) else value


def _number(name: str, value: object) -> float:
    # NumPy scalars are Real; arrays, strings, None and complex numbers are not; booleans are, and
    # a scale of True is a mistake.
    if not isinstance(value, numbers.Real) or _is_boolean(value):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{name} must fit a float64") from None
