"""The ledger: what it says of a budget, and releases that are charged to it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from psinoise import _validate
from psinoise._replaced import Replaced
from psinoise.errors import BudgetError, CertificationError, DomainError
from psinoise.ledger._charge import Charge
from psinoise.ledger._filter import orders_of
from psinoise.ledger._journal import Journal
from psinoise.ledger._plan import Plan, spent_by
from psinoise.ledger._state import State
from psinoise.ledger._text import Budget, written_budget
from psinoise.ledger._values import read_once
from psinoise.mechanisms import LatticeMechanism, Mechanism

__all__ = ["Ledger"]


class Ledger:
    """A budget of epsilon and delta for releases about one data set.

    A ledger made by this constructor lives in memory, for one process; `create` and `open` give
    one that lasts, in a file that processes share.

    Parameters
    ----------
    epsilon : float
        Of everything together; positive and finite.
    delta : float
        Of everything together; in [0, 1). With 0, only mechanisms with a largest privacy loss fit.
    adjacency : str
        The neighboring relation, as in :meth:`psinoise.Mechanism.epsilon`.
    adaptive : bool
        Whether mechanisms, counts and rates may be chosen by what was released before. A privacy
        filter adds up then, which lets a little less pass; :mod:`psinoise.ledger` has the proof.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or outside these ranges.

    Notes
    -----
    Threads may share a ledger: of two releases that do not fit together, one is refused.

    Examples
    --------
    >>> import psinoise as pn
    >>> ledger = pn.Ledger(epsilon=1.0, delta=1e-6)
    >>> mechanism = pn.Mechanism(pn.Gaussian(std=7.0))
    >>> noisy = ledger.release(mechanism, 1234, label="visitors")
    >>> noisy = ledger.release(mechanism, 567, label="of these, for the first time")
    >>> round(ledger.spent, 3), ledger.affords(mechanism)
    (0.843, False)
    >>> ledger.release(mechanism, 89)
    Traceback (most recent call last):
    ...
    psinoise.errors.BudgetError: this would exceed the budget of epsilon 1.0 at delta 1e-06
    """

    if not TYPE_CHECKING:
        save = Replaced("in 0.2 by Ledger.create(path, ...)")
        load = Replaced("in 0.2 by Ledger.open(path)")

    def __init__(
        self,
        epsilon: float,
        delta: float,
        adjacency: str = "add-remove",
        *,
        adaptive: bool = False,
    ) -> None:
        self._state = State(_budget(epsilon, delta, adjacency, adaptive), None)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        epsilon: float,
        delta: float,
        adjacency: str = "add-remove",
        *,
        adaptive: bool = False,
    ) -> Ledger:
        """Make a ledger in a new file, with ``path.head`` beside it; the parameters as above.

        Every charge is on the disk before random bits are drawn, and processes that have the file
        open share one budget. The file must lie on a file system with ``flock``, a local one.

        Raises
        ------
        FileExistsError
            If one of the two files is there.
        OSError
            If they cannot be written, or on systems without ``fcntl.flock``.

        Examples
        --------
        >>> import tempfile
        >>> import psinoise as pn
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = directory + "/survey.ledger"
        ...     ledger = pn.Ledger.create(path, epsilon=1.0, delta=1e-6)
        ...     noisy = ledger.release(pn.Mechanism(pn.Gaussian(std=7.0)), 1234, label="visitors")
        ...     [charge.label for charge in pn.Ledger.open(path).charges]
        ['visitors']
        """
        budget = _budget(epsilon, delta, adjacency, adaptive)
        Journal.create(path, written_budget(budget))
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """The ledger in a file that `create` made.

        Raises
        ------
        DomainError
            For a file that is no ledger, was changed, or is older than ``path.head``.
        OSError
            If one of both files is missing or cannot be read and written.
        """
        ledger = cls.__new__(cls)
        ledger._state = State(None, Journal(path))
        with ledger._state.turn():
            pass
        return ledger

    # -- what it says ----------------------------------------------------------------------------

    @property
    def epsilon(self) -> float:
        """The budget's epsilon."""
        return self._state.budget.epsilon

    @property
    def delta(self) -> float:
        """The budget's delta."""
        return self._state.budget.delta

    @property
    def adjacency(self) -> str:
        """The neighboring relation."""
        return self._state.budget.adjacency

    @property
    def adaptive(self) -> bool:
        """Whether mechanisms may be chosen by what was released before."""
        return self._state.budget.orders is not None

    @property
    def path(self) -> Path | None:
        """The file, links followed; None for a ledger in memory."""
        journal = self._state.journal
        return None if journal is None else journal.path

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What has been charged, in order, by other processes too."""
        with self._state.turn():
            return tuple(self._state.charges)

    @property
    def spent(self) -> float:
        """An upper bound on the epsilon of everything charged.

        Certified, at the budget's delta. Of an adaptive ledger it is an odometer: with probability
        at least ``1 - delta`` the privacy loss is at most this, at all times together, however
        mechanisms and the time to look were chosen. That says more than (epsilon, delta)-privacy,
        so that it may be somewhat above `spent_as_plan`, and even above the budget. ``inf`` for
        charges that sum up to more uses than an `Accountant` counts, 2**63 - 1.

        Raises
        ------
        CertificationError
            If there is none, for charges whose fit was shown by delta at the budget's epsilon.
        """
        with self._state.turn():
            return self._state.book.spent

    @property
    def spent_as_plan(self) -> float:
        """What the same charges cost if they were written down before the first release.

        The same as `spent`, unless the ledger is adaptive; then the difference is the price of
        being it.

        Raises
        ------
        CertificationError
            If no bound can be certified.
        """
        with self._state.turn():
            if isinstance(self._state.book, Plan):
                return self._state.book.spent
            uses = ((c.mechanism, c.sampling_rate, c.count) for c in self._state.charges)
            return spent_by(uses, self.delta, self.adjacency)

    @property
    def remaining(self) -> float:
        """Epsilon of any mechanism without delta that is sure to fit.

        That is ``epsilon - spent`` by basic composition: an (a, delta)-private and a (b, 0)-private
        mechanism together are (a + b, delta)-private. For an adaptive ledger it is what its filter
        has left. What fits beyond that only `affords` can tell.
        """
        with self._state.turn():
            return self._state.book.remaining

    def affords(
        self,
        mechanism: Mechanism | LatticeMechanism,
        count: int = 1,
        sampling_rate: float = 1.0,
    ) -> bool:
        """Whether :meth:`charge` with the same arguments would be accepted now."""
        charge = Charge.of(mechanism, count, sampling_rate)
        with self._state.turn():
            try:
                self._state.book.check(charge)
            except (BudgetError, CertificationError):
                return False
            return True

    def __repr__(self) -> str:
        kind = ", adaptive" if self.adaptive else ""
        place = "" if self.path is None else f", {str(self.path)!r}"
        return (
            f"<Ledger epsilon={self.epsilon!r}, delta={self.delta!r}, "
            f"adjacency={self.adjacency!r}{kind}, {len(self._state.charges)} charges{place}>"
        )

    # -- what it does ----------------------------------------------------------------------------

    def charge(
        self,
        mechanism: Mechanism | LatticeMechanism,
        count: int = 1,
        sampling_rate: float = 1.0,
        *,
        label: str = "",
    ) -> Charge:
        """Enter uses of a mechanism that releases elsewhere; do so before they happen.

        Parameters
        ----------
        mechanism : Mechanism or LatticeMechanism
            Counted as it is; ``mechanism.on_lattice()`` for what its ``release`` returns.
        count : int
            Number of uses, each with sampling of its own.
        sampling_rate : float
            Rate of Poisson sampling, as in :meth:`psinoise.Mechanism.epsilon`.
        label : str
            For the record.

        Raises
        ------
        BudgetError
            If all uses together would exceed the budget; nothing is entered then.
        CertificationError
            If it cannot be certified whether they do; nothing is entered then.
        TypeError, DomainError, OverflowError
            For arguments of the wrong kind, outside their ranges, or too large; for a law that
            cannot be written to the file of the ledger.
        DomainError, OSError
            If the file is not what it was, or cannot be written.
        """
        charge = Charge.of(mechanism, count, sampling_rate, label)
        self._state.charge(charge)
        return charge

    def release(
        self,
        mechanism: Mechanism | LatticeMechanism,
        x: Any,
        *,
        columns: Hashable | Sequence[Hashable] | None = None,
        count: int | None = None,
        sampling_rate: float = 1.0,
        label: str = "",
        out: np.ndarray[Any, Any] | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> Any:
        """Charge for a release, and then release; see :meth:`psinoise.LatticeMechanism.release`.

        Parameters
        ----------
        mechanism : Mechanism or LatticeMechanism
            It is counted as what is released: ``mechanism.on_lattice()``.
        x : array_like of real numbers, column or table
            The result of the query. It is read once, into an array of its own, whose values are
            counted and released.
        count : int, optional
            How many of the values (of the vectors, for a mechanism of more dimensions) one record
            can move, in all columns together. None is all of them. 1 is a histogram, of which a
            record moves one cell (2 under "replace": it leaves a cell for another); a row of two
            columns that it moves is 2. At least 1 where there are values.
        sampling_rate : float
            Rate at which the records behind ``x`` were drawn, in secret and for this release
            alone; above 0 where there are values. Below 1, ``count`` must be 1: values computed
            from one draw are one vector.
        label : str
            For the record.
        columns, out, bounds
            As in :meth:`psinoise.LatticeMechanism.release`.

        Raises
        ------
        BudgetError, CertificationError
            If the budget does not cover it; nothing is drawn or entered then.
        TypeError, DomainError, OverflowError, OSError
            As :meth:`charge`, before anything is entered; and as
            :meth:`psinoise.LatticeMechanism.release`, in which case the charge stays.
        """
        lattice = _on_lattice(mechanism)
        values, size, masked = read_once(x, columns)
        # Of all values, which are as many vectors, one record may move every one.
        uses = -(-size // lattice.dimension) if count is None else _validate.count("count", count)
        sampling_rate = _validate.probability_above("sampling_rate", sampling_rate)
        if sampling_rate != 1.0 and uses != 1:
            raise DomainError(
                "count must be 1 where records were sampled: values of one draw are one vector, "
                f"and draws of their own are releases of their own, got {uses!r}"
            )
        for name, number in (("count", uses), ("sampling_rate", sampling_rate)):
            if size and number == 0:
                raise DomainError(f"{name} must be more than 0 where there are values, got 0")
        try:
            self.charge(lattice, uses, sampling_rate, label=label)
        except BudgetError as error:
            if count is not None or uses <= 1:
                raise
            raise BudgetError(
                f"{error}; all values were counted, and count is how many one record can move"
            ) from None
        # After the charge, like everything that depends on values.
        if masked:
            raise TypeError("x must not have masked values")
        return lattice.release(values, columns=columns, out=out, bounds=bounds)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a ledger must not be copied or pickled: both would spend its budget (other processes "
            "can open the file of one that has a file)"
        )


def _budget(epsilon: float, delta: float, adjacency: str, adaptive: bool) -> Budget:
    chosen = _validate.flag("adaptive", adaptive)
    made = Budget.of(epsilon, delta, adjacency, None)
    return made._replace(orders=orders_of(made.epsilon, made.delta)) if chosen else made


def _on_lattice(mechanism: Mechanism | LatticeMechanism) -> LatticeMechanism:
    if isinstance(mechanism, LatticeMechanism):
        return mechanism
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a Mechanism, got {mechanism!r}")
    return mechanism.on_lattice()
