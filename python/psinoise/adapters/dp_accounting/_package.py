"""The package of the other side, imported when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["module"]


def module(name: str) -> Any:
    """A module of ``dp_accounting``.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed; it names the extra that brings it.
    """
    try:
        return importlib.import_module(f"dp_accounting.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "dp_accounting":
            raise
        message = 'this exchange needs dp_accounting: pip install "psinoise[dp-accounting]"'
        raise ModuleNotFoundError(message, name="dp_accounting") from None
