"""What makes a law a value: immutable, hashable, pickled, and written as what makes it again."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from typing import Any, Self

from psinoise import _validate

__all__ = ["Value"]


class Value(ABC):
    """An immutable object that is equal to another of its class with the same arguments."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Refuse unknown keywords before anything else, with the nearest known one."""
        names = _keywords_of(cls)
        for name in keywords:
            if names and name not in names:
                raise _validate.unknown_keyword(cls.__name__, name, names)
        return super().__new__(cls)

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Keyword arguments that make this law again."""

    def _canonical_arguments(self) -> dict[str, Any]:
        """Keyword arguments that make this law again, the same for equal laws."""
        return self._arguments()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments().items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._arguments() == other._arguments()

    def __hash__(self) -> int:
        return hash((type(self), *self._arguments().items()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments())


@functools.cache
def _keywords_of(law: type[Value]) -> tuple[str, ...]:
    """Names that a law's constructor takes; none for one that checks them itself."""
    parameters = list(inspect.signature(law.__init__).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return ()
    return tuple(parameter.name for parameter in parameters)


def _rebuild(law: type[Value], arguments: dict[str, float]) -> Value:
    return law(**arguments)
