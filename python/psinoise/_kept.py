"""Results kept for later questions: as many as one number of bytes holds, whatever they are.

Entries of the accounting are from a hundred bytes to a hundred megabytes, so that a number of
entries bounds nothing. `kept` remembers what a function returned, by its arguments, as
``functools.lru_cache`` does; arrays that arguments and results hold are counted, each once, and
when all that is kept by all functions is more than ``MOST_BYTES`` everything is forgotten. What
was used lately is then made once more: after ``MOST_BYTES`` of new arrays were made this is little
beside them, and a hit costs nothing over that of ``lru_cache``. What was forgotten but is in use
is found again: the nodes of five thousand steps are more than is kept, and both directions of a
question read them.

An array that an object fills in later is not counted: it is one of a length that was.

Neither waits in a child process for a thread of its parent.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

import numpy as np

__all__ = ["MOST_BYTES", "cached_property", "kept"]

#: All entries of all functions together.
MOST_BYTES = 1 << 26

# What an entry takes besides its arrays.
_ENTRY = 1 << 10
# What most fields of an object are: no arrays, and counted with the entry.
_PLAIN = frozenset({float, int, bool, str, type(None)})

_Result = TypeVar("_Result")


class _Counted:
    """The bytes of what is kept, each object once."""

    def __init__(self) -> None:
        self.caches: list[Any] = []
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._bytes = 0
        # By identity: what was freed is not what has its place now.
        self._seen: dict[int, weakref.ref[Any]] = {}

    def add(self, entry: object) -> None:
        with self._lock:
            self._bytes += _ENTRY + self._new(entry)
            if self._bytes <= MOST_BYTES:
                return
            self._forget()
        for cache in self.caches:
            cache.cache_clear()

    def unlock(self) -> None:
        """A new lock."""
        self._lock = threading.Lock()

    def _new(self, entry: object) -> int:
        """The bytes of objects that were not seen before."""
        total, waiting = 0, [entry]
        while waiting:
            thing = waiting.pop()
            if type(thing) in _PLAIN:
                continue
            if isinstance(thing, (tuple, list)):  # of a union it would make one each time
                waiting.extend(thing)
            elif isinstance(thing, dict):
                waiting.extend(thing.values())
            elif isinstance(thing, np.ndarray):
                while isinstance(thing.base, np.ndarray):
                    thing = thing.base  # which a part of it keeps as a whole
                # A small one may be counted twice.
                total += thing.nbytes if thing.nbytes <= _ENTRY or self._first(thing) else 0
            elif hasattr(thing, "__dict__") and self._first(thing):
                total += sys.getsizeof(thing)
                waiting.append(vars(thing))
        return total

    def _first(self, thing: object) -> bool:
        seen = self._seen.get(id(thing))
        if seen is not None and seen() is thing:
            return False
        try:
            self._seen[id(thing)] = weakref.ref(thing)
        except TypeError:  # of a type that does not say when an object goes
            return False
        return True


_COUNTED = _Counted()

if hasattr(os, "register_at_fork"):
    # In a child nobody holds the lock, whoever did in the parent.
    os.register_at_fork(after_in_child=_COUNTED.unlock)


class cached_property(functools.cached_property[_Result]):
    """What an object computes once, without a lock, as the one of Python 3.12 on.

    The one before has a lock for all objects of a class: threads wait for each other's, and a
    child process that was forked while another thread held it waits for ever.
    """

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _Result: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | _Result:
        if instance is None:
            return self
        assert self.attrname is not None  # set with the class
        found = self.func(instance)
        # From now on this is not asked: attributes of an object come first.
        instance.__dict__[self.attrname] = found
        return found


def kept(
    most: int | None = None,
) -> Callable[[Callable[..., _Result]], functools._lru_cache_wrapper[_Result]]:
    """Keep what a function of hashable arguments returns, which nobody may change.

    Parameters
    ----------
    most
        how many results, where most are asked for once
    """

    def keeping(function: Callable[..., _Result]) -> functools._lru_cache_wrapper[_Result]:
        in_use: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()

        @functools.lru_cache(maxsize=most)
        @functools.wraps(function)
        def made(*arguments: Any) -> _Result:
            found = in_use.get(arguments)
            if found is None:
                found = function(*arguments)
                with contextlib.suppress(TypeError):  # of a type without weak references
                    in_use[arguments] = found
            _COUNTED.add((arguments, found))
            return found

        _COUNTED.caches.append(made)
        return made

    return keeping
