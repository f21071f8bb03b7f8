"""Families of laws: a class with every argument fixed but the size."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from psinoise.noise._interface import NoiseLaw, family_name

__all__ = ["Family"]


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

    def __call__(self, **size: Any) -> NoiseLaw:
        return self.law(**self.shape, **size)

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in self.shape.items())
        return f"Family({self.law.__name__}{arguments})"
