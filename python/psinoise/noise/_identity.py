"""What makes a law a value: immutable, hashable, pickled, and written as what makes it again."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from typing import Any, Self

from psinoise import _validate
from psinoise._kept import cached_property

__all__ = ["Value"]


class _OfInit:
    """The signature of a class: that of ``__init__``, where `inspect` would show ``__new__``."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return signature.replace(parameters=[*signature.parameters.values()][1:])


class Value(ABC):
    """An immutable object that is equal to another of its class with the same arguments."""

    __signature__ = _OfInit()

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Refuse what ``__init__`` does not take before anything else, and say what it takes."""
        names, positional = _parameters_of(cls)
        if len(arguments) > positional:
            raise TypeError(
                f"{cls.__name__}() takes {positional or 'no'} arguments without a name, got "
                f"{len(arguments)}; it takes {', '.join(names)}"
            )
        for name in keywords:
            if name not in names:
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
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), *self._arguments().items()))

    def _set(self, **attributes: Any) -> None:
        """Set attributes, while the object is made."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments())


@functools.cache
def _parameters_of(law: type[Value]) -> tuple[tuple[str, ...], int]:
    """Names that a constructor takes, and how many of them may be given by their place."""
    parameters = inspect.signature(law).parameters
    by_place = [p for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return tuple(parameters), len(by_place)


def _rebuild(law: type[Value], arguments: dict[str, float]) -> Value:
    return law(**arguments)
