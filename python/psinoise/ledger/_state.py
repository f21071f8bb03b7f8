"""What a ledger knows: its budget, its charges and what they add up to, with locks around them."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from psinoise.errors import BudgetError
from psinoise.ledger._charge import Charge
from psinoise.ledger._filter import Filter
from psinoise.ledger._journal import Journal
from psinoise.ledger._plan import Plan
from psinoise.ledger._text import Budget, read_budget, read_charge, written_charge
from psinoise.mechanisms import LatticeMechanism, Mechanism

__all__ = ["State"]


class State:
    """The state of a ledger: in memory, with a budget, or in a file that others write to."""

    def __init__(self, budget: Budget | None, journal: Journal | None) -> None:
        self.journal = journal
        self.charges: list[Charge] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._known: Budget | None = budget
        # What is counted is not what is in the list of charges while one is entered.
        self._unsure = True
        _STATES.add(self)

    @property
    def budget(self) -> Budget:
        assert self._known is not None
        return self._known

    def charge(self, charge: Charge) -> None:
        """Write a charge down and count it, if it fits."""
        if self.journal is None and os.getpid() != self._process:
            raise BudgetError(
                "a ledger in memory must be charged in the process that made it: a copy of it "
                "would spend the same budget again"
            )
        with self.turn() as append:
            self.book.check(charge)
            self._unsure = True
            append(charge)
            self.book.enter(charge)
            self._unsure = False

    @contextlib.contextmanager
    def turn(self) -> Iterator[Callable[[Charge], None]]:
        """Be alone, with everything counted that others have charged.

        Yields what writes a charge down.
        """
        with self._lock:
            if self.journal is None:
                if self._unsure:
                    self._begin_book()
                    for charge in self.charges:
                        self.book.enter(charge)
                    self._unsure = False
                yield self.charges.append
                return
            if self._unsure:
                self.journal.forget()
                self.charges.clear()
                self._places: dict[Mechanism | LatticeMechanism, int] = {}
            self._unsure = True
            with self.journal.locked(self._read) as write:
                self._unsure = False

                def append(charge: Charge) -> None:
                    write(written_charge(charge, self._places))
                    self._note(charge)

                yield append

    def _read(self, number: int, line: dict[str, Any]) -> None:
        """Count a line that is new in the file."""
        if number == 0:
            self._known = read_budget(line)
            self._begin_book()
            return
        charge = read_charge(line, self.charges)
        self._note(charge)
        self.book.enter(charge)

    def _note(self, charge: Charge) -> None:
        self.charges.append(charge)
        self._places.setdefault(charge.mechanism, len(self.charges))

    def _begin_book(self) -> None:
        epsilon, delta, adjacency, orders = self.budget
        terms = epsilon, delta, adjacency
        self.book: Plan | Filter = Plan(*terms) if orders is None else Filter(*terms, orders)


# -- children ------------------------------------------------------------------------------------

# What a child must set right before it does anything else: a lock that another thread of the parent
# held would stay locked for ever.
_STATES: weakref.WeakSet[State] = weakref.WeakSet()


def _after_fork() -> None:
    for state in list(_STATES):
        state._lock = threading.Lock()
        if state.journal is not None:
            state.journal.after_fork()
            state._unsure = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
