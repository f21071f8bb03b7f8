"""Names of an earlier version: who asks for one is told what is there now."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["Replaced"]


class Replaced:
    """An attribute of a class that is not there any more.

    >>> class Ledger:
    ...     save = Replaced("in 0.2 by Ledger.create")
    >>> hasattr(Ledger, "save")
    False
    >>> Ledger.save
    Traceback (most recent call last):
    AttributeError: Ledger.save was replaced in 0.2 by Ledger.create
    """

    def __init__(self, how: str) -> None:
        self._how = how

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__}.{self._name} was replaced {self._how}")
