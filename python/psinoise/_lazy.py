"""Names of a package whose modules are loaded when a name is first asked for (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str,
    modules: Mapping[str, tuple[str, ...]],
    replaced: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a package.

    Type checkers read imports, which stand beside the call under ``TYPE_CHECKING``.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    modules : mapping of str to tuple of str
        What is taken from each module; of the package itself, modules. No module may have the name
        of something else: importing it would put the module in the place of what is meant.
    replaced : mapping of str to str
        Names of an earlier version, and how they were replaced.
    """
    this = sys.modules[package]
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in homes:
            message = f"module {package!r} has no attribute {name!r}"
            if name in replaced:
                message = f"{package}.{name} was replaced {replaced[name]}"
            raise AttributeError(message, name=name, obj=this)
        if homes[name] == package:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(this, name, value)  # is asked for once
        return value

    def names() -> list[str]:
        return sorted(this.__all__)

    return load, names
