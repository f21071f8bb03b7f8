"""The keyword ``method`` of earlier versions, where numbers had no names of their own."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from psinoise import _validate
from psinoise.accounting.bracket import Bracket, Brackets
from psinoise.errors import CertificationError

__all__ = ["accepts_method"]

_NUMBERS = ("estimate", "renyi", "clt")
_METHODS = ("certified", "upper", *_NUMBERS)
_FIRST = ("delta", "epsilon", "epsilons", "alphas")

Function = TypeVar("Function", bound=Callable[..., Any])


def accepts_method(function: Function) -> Function:
    """Let a question have a ``method=``, with a warning that says what takes its place."""
    name = function.__name__

    @functools.wraps(function)
    def wrapper(self: Any, *at_and_use: Any, **words: Any) -> Any:
        if "method" not in words:
            return function(self, *at_and_use, **words)
        method = _validate.choice("method", words.pop("method"), _METHODS)
        instead = f"composed(...).{method}.{name}(...)" if method in _NUMBERS else f"{name}(...)"
        warnings.warn(
            f"{name}(..., method={method!r}) is deprecated: use {instead}",
            DeprecationWarning,
            stacklevel=2,
        )
        if method in _NUMBERS:
            words.pop("tolerance", None)
            named = {key: words.pop(key) for key in _FIRST if key in words}
            place = 0 if named else 1
            at, use = at_and_use[:place], at_and_use[place:]
            composed = self.composed(*use, **words) if hasattr(self, "composed") else self
            return getattr(getattr(composed, method), name)(*at, **named)
        try:
            found = function(self, *at_and_use, **words)
        except CertificationError as unmet:
            # By "upper" a tolerance was aimed at, and not enforced.
            if method == "certified" or unmet.bracket is None:
                raise
            found = unmet.bracket
        return found.upper if method == "upper" and isinstance(found, Bracket | Brackets) else found

    return cast(Function, wrapper)
