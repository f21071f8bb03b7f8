"""How a law declares its parameters other than the size to programs that read text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Parameter"]


class Parameter(NamedTuple):
    """A keyword argument of a law that may be given as text."""

    description: str
    """A few words for help."""
    read: Callable[[str], Any] = float
    """Makes the argument from text; raises ValueError for text that is none."""
    placeholder: str = "X"
    """What stands for the text in help."""
    required: bool = False
    """Whether there is no law without it."""
