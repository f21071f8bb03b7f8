"""Families of laws: a class with every argument fixed but the size, and how these are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from psinoise.noise._interface import NoiseLaw

__all__ = ["Family", "Parameter", "family_name"]


class Parameter(NamedTuple):
    """A keyword argument of a law, other than the size, that may be given as text."""

    description: str
    """A few words for help."""
    read: Callable[[str], Any] = float
    """Makes the argument from text; raises ValueError for text that is none."""
    placeholder: str = "X"
    """What stands for the text in help."""
    required: bool = False
    """Whether there is no law without it."""


class Family:
    """Laws that differ only by their size; calling it with the size makes one.

    It stands wherever a class of laws without further arguments can: in `psinoise.compare`, in
    `psinoise.calibrate`.

    Parameters
    ----------
    law : class of noise laws
    **shape
        The arguments of ``law`` other than its size.

    Examples
    --------
    >>> from psinoise.noise import Family, Airy
    >>> Family(Airy)(mean_abs=2.0)
    Airy(mean_abs=2.0)
    """

    __slots__ = ("__name__", "law", "shape")

    law: type[NoiseLaw]
    shape: Mapping[str, Any]

    def __init__(self, law: type[NoiseLaw], **shape: Any) -> None:
        self.law = law
        self.shape = MappingProxyType(shape)
        self.__name__ = family_name(law, shape)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the arguments that the law needs besides its size, and that are not given."""
        known = self.law.shape_parameters.items()
        return tuple(name for name, one in known if one.required and name not in self.shape)

    def __call__(self, **size: Any) -> NoiseLaw:
        return self.law(**self.shape, **size)

    def __reduce__(self) -> tuple[Any, ...]:
        return _family_of, (self.law, dict(self.shape))

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in self.shape.items())
        return f"Family({self.law.__name__}{arguments})"


def _family_of(law: type[NoiseLaw], shape: dict[str, Any]) -> Family:
    return Family(law, **shape)


def family_name(law: type[NoiseLaw], shape: Mapping[str, Any]) -> str:
    """The name of a law's class with the arguments other than the size."""
    listed = ", ".join(f"{name}={value!r}" for name, value in shape.items())
    return f"{law.__name__}({listed})" if listed else law.__name__
