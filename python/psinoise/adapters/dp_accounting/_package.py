"""The package of the other side, imported when it is needed."""

from __future__ import annotations

from typing import Any

from psinoise._optional import required

__all__ = ["module"]


def module(name: str) -> Any:
    """A module of ``dp_accounting``.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed; it names the extra that brings it.
    """
    message = 'this exchange needs dp_accounting: pip install "psinoise[dp-accounting]"'
    return required(f"dp_accounting.{name}", message)
