"""The ledger: a budget, what was charged to it, and one lock around both."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from psinoise import _validate
from psinoise._atomic import write_text
from psinoise.accounting import Accountant, LatticeMechanism, Mechanism, contract
from psinoise.accounting.budget import is_within
from psinoise.errors import BudgetError, DomainError
from psinoise.ledger._charge import Charge
from psinoise.ledger._text import dumps, loads

__all__ = ["Ledger"]


class Ledger:
    """A budget of epsilon and delta for releases about one data set.

    Parameters
    ----------
    epsilon : float
        Of everything together; positive and finite.
    delta : float
        Of everything together; in [0, 1). With 0, only mechanisms with a largest privacy loss fit.
    adjacency : str
        The neighboring relation, as in :meth:`psinoise.Mechanism.epsilon`.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or outside these ranges.

    Notes
    -----
    Threads may share a ledger: of two releases that do not fit together, one is refused.
    Composition is that of :class:`psinoise.Accountant`, certified. It is proven for mechanisms
    whose order is fixed without looking at what was released, while queries may depend on it; the
    package says more about that, and why a charge stays when the release fails.

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

    def __init__(self, epsilon: float, delta: float, adjacency: str = "add-remove") -> None:
        self._epsilon = _validate.positive("epsilon", epsilon)
        self._delta = _validate.probability("delta", delta)
        if not self._delta < 1.0:
            raise DomainError(f"delta must be in [0, 1), got {delta!r}")
        self._adjacency = contract.check_adjacency(adjacency)
        self._charges: list[Charge] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    # -- what it says ----------------------------------------------------------------------------

    @property
    def epsilon(self) -> float:
        """The budget's epsilon."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The budget's delta."""
        return self._delta

    @property
    def adjacency(self) -> str:
        """The neighboring relation."""
        return self._adjacency

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What has been charged, in order."""
        return tuple(self._charges)

    @property
    def spent(self) -> float:
        """A certified upper bound on the epsilon of everything charged, at the budget's delta.

        Raises
        ------
        CertificationError
            If there is none, for charges whose fit was shown by delta at the budget's epsilon.
        """
        return _accountant(self._adjacency, self.charges).epsilon(self._delta).upper

    @property
    def remaining(self) -> float:
        """Epsilon of any mechanism without delta that is sure to fit: ``epsilon - spent``.

        By basic composition: an (a, delta)-private and a (b, 0)-private mechanism together are
        (a + b, delta)-private. What fits beyond that only :meth:`affords` can tell.
        """
        return max(self._epsilon - self.spent, 0.0)

    def affords(
        self,
        mechanism: Mechanism | LatticeMechanism,
        count: int = 1,
        sampling_rate: float = 1.0,
    ) -> bool:
        """Whether :meth:`charge` with the same arguments would be accepted now."""
        charge = Charge.of(mechanism, count, sampling_rate)
        return self._fits([*self._charges, charge])

    def __repr__(self) -> str:
        return (
            f"<Ledger epsilon={self._epsilon!r}, delta={self._delta!r}, "
            f"adjacency={self._adjacency!r}, {len(self._charges)} charges>"
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
            Counted as it is; ``mechanism.on_lattice()`` for what ``mechanism.release`` returns.
        count : int
            Number of uses, each with sampling of its own.
        sampling_rate : float
            Rate of Poisson sampling, as in :meth:`psinoise.Mechanism.epsilon`.
        label : str
            For the record.

        Raises
        ------
        BudgetError
            If all uses together are not certified to be within the budget; nothing is entered then.
        TypeError, DomainError, OverflowError
            For arguments of the wrong kind, outside their ranges, or too large.
        """
        charge = Charge.of(mechanism, count, sampling_rate, label)
        if os.getpid() != self._process:
            raise BudgetError(
                "a ledger must be charged in the process that made it: a copy of it would spend "
                "the same budget again"
            )
        with self._lock:
            if not self._fits([*self._charges, charge]):
                raise BudgetError(
                    f"this would exceed the budget of epsilon {self._epsilon!r} at delta "
                    f"{self._delta!r}"
                )
            self._charges.append(charge)
        return charge

    def release(
        self,
        mechanism: Mechanism | LatticeMechanism,
        x: ArrayLike,
        *,
        count: int | None = None,
        sampling_rate: float = 1.0,
        label: str = "",
        out: np.ndarray[Any, Any] | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> Any:
        """Charge for a release, and then release; see :meth:`psinoise.Mechanism.release`.

        Parameters
        ----------
        mechanism : Mechanism or LatticeMechanism
            It is counted as what is released: ``mechanism.on_lattice()``.
        x : array_like of real numbers
            The result of the query.
        count : int, optional
            How many of the values (of the vectors, for a mechanism of more dimensions) one record
            can move. None is all of them. 1 is a histogram, of which a record moves one cell (2
            under "replace": it leaves a cell for another).
        sampling_rate : float
            Rate at which the records behind ``x`` were drawn, in secret and for this release
            alone. Below 1, ``count`` must be 1: values computed from one draw are one vector.
        label : str
            For the record.
        out, bounds
            As in :meth:`psinoise.Mechanism.release`.

        Raises
        ------
        BudgetError
            If the budget does not cover it; nothing is drawn or entered then.
        TypeError, DomainError, OverflowError
            As :meth:`charge`, before anything is entered; and as
            :meth:`psinoise.Mechanism.release`, in which case the charge stays.
        """
        lattice = _on_lattice(mechanism)
        uses = _uses(lattice, np.size(x)) if count is None else count
        if sampling_rate != 1.0 and uses != 1:
            raise DomainError(
                "count must be 1 where records were sampled: values of one draw are one vector, "
                f"and draws of their own are releases of their own, got {uses!r}"
            )
        self.charge(lattice, uses, sampling_rate, label=label)
        return lattice.release(x, out=out, bounds=bounds)

    def _fits(self, charges: list[Charge]) -> bool:
        return is_within(_accountant(self._adjacency, charges), self._epsilon, self._delta)

    # -- on disk ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, whole or not at all.

        Save before what was released leaves the process: a ledger that is loaded again knows what
        was saved and no more. A hash in the file finds accidents; it keeps nobody from editing it.

        Raises
        ------
        DomainError
            If a law was charged that cannot be written: one that is made from a function, or not
            on a lattice and not in ``psinoise.noise.LAWS``.
        OSError
            If the file cannot be written.
        """
        with self._lock:
            text = dumps(self._epsilon, self._delta, self._adjacency, self._charges)
            write_text(Path(path), text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """The ledger that `save` wrote. Load it once: two of them would spend one budget twice.

        Raises
        ------
        DomainError
            For a file that is not what `save` writes, or was changed.
        OSError
            If there is none.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise DomainError("the file must be text in UTF-8") from None
        epsilon, delta, adjacency, charges = loads(text)
        ledger = cls(epsilon, delta, adjacency)
        ledger._charges.extend(charges)
        return ledger

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a ledger must not be copied or pickled: both would spend its budget")


def _accountant(adjacency: str, charges: list[Charge] | tuple[Charge, ...]) -> Accountant:
    accountant = Accountant(adjacency)
    for charge in charges:
        accountant.compose(charge.mechanism, charge.count, charge.sampling_rate)
    return accountant


def _on_lattice(mechanism: Mechanism | LatticeMechanism) -> LatticeMechanism:
    if isinstance(mechanism, LatticeMechanism):
        return mechanism
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a Mechanism, got {mechanism!r}")
    return mechanism.on_lattice()


def _uses(mechanism: LatticeMechanism, size: int) -> int:
    """Vectors in so many values, every one of which a record may move."""
    return -(-size // mechanism.dimension)
