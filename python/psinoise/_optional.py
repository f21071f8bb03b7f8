"""Packages that only some uses need: imported by these, and named where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["required"]


def required(module: str, message: str) -> Any:
    """A module of an optional package.

    Raises
    ------
    ModuleNotFoundError
        With the message, if the package is not installed; as it is, if the package misses another.
    """
    package = module.split(".", maxsplit=1)[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise
        raise ModuleNotFoundError(message, name=package) from None
