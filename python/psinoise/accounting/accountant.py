"""Composition of different mechanisms."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.accounting import contract, serialize
from psinoise.accounting.accounted import Accounted, total_uses
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.contract import Certified, Number
from psinoise.accounting.imports import DiscreteLoss, Imports
from psinoise.accounting.loss.cells import Dominating
from psinoise.accounting.loss.steps import Steps
from psinoise.accounting.queries import ProfileBracket, delta_of, epsilon_of, profile_of
from psinoise.accounting.question import Question
from psinoise.accounting.tradeoff import tradeoff_of
from psinoise.errors import DomainError


class Accountant:
    """Adds up the privacy loss of any sequence of mechanisms applied to the same data.

    The order of the calls does not matter, and equal steps are merged.

    Steps may also be losses that another accountant knows (`psinoise.accounting.DiscreteLoss`, see
    `psinoise.adapters.dp_accounting.from_pld`). They are bounds from above: the lower end of a
    bracket speaks of the other steps alone, and methods that estimate refuse them.

    Parameters
    ----------
    adjacency
        "add-remove", one of its directions, or "replace", for all mechanisms; see
        `Mechanism.epsilon`

    Examples
    --------
    >>> import psinoise as pn
    >>> accountant = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=3.0)))
    >>> accountant = accountant.compose(pn.Mechanism(pn.Gaussian(std=4.0)))
    >>> both = pn.Mechanism(pn.Gaussian(std=2.4))  # 1/3^2 + 1/4^2 = 1/2.4^2
    >>> accountant.delta(1.0).lower <= both.delta(1.0).upper
    True
    >>> accountant.delta(1.0).upper >= both.delta(1.0).lower
    True
    """

    def __init__(self, adjacency: str = "add-remove") -> None:
        self._adjacency = contract.check_adjacency_or_direction(adjacency)
        self._counts: dict[Dominating, int] = {}
        self._losses: dict[DiscreteLoss, int] = {}

    def __repr__(self) -> str:
        imported = f", {len(self._losses)} imported losses" if self._losses else ""
        return (
            f"<Accountant adjacency={self._adjacency!r}, {len(self._counts)} distinct steps"
            f"{imported}>"
        )

    @property
    def adjacency(self) -> str:
        """The neighboring relation."""
        return self._adjacency

    def to_json(self) -> str:
        """The composition so far as JSON text, with a SHA-256 of its content.

        Equal compositions give equal text, whatever the order of the calls.

        Raises
        ------
        DomainError
            for laws that are not of the library or are made from functions, for cactus noise, and
            for imported losses
        """
        if self._losses:
            raise DomainError(
                "an accountant must hold mechanisms alone to be written, got "
                f"{len(self._losses)} imported losses"
            )
        return serialize.dumps(self._adjacency, self._steps)

    @staticmethod
    def from_json(text: str) -> Accountant:
        """The accountant that `to_json` wrote.

        Raises
        ------
        DomainError
            for text that is not what `to_json` writes, or was changed
        TypeError
            if ``text`` is not a string
        """
        adjacency, steps = serialize.loads(text)
        accountant = Accountant(adjacency)
        accountant._counts.update(steps)
        return accountant

    def compose(
        self,
        mechanism: Accounted | DiscreteLoss,
        count: int = 1,
        sampling_rate: float = 1.0,
    ) -> Accountant:
        """Add ``count`` uses of a mechanism under Poisson sampling; returns self.

        Parameters
        ----------
        mechanism
            a mechanism, with ``on_lattice()`` for what its ``release`` returns; or an imported
            loss: an upper bound on both directions of "add-remove"
        count
            uses, at least 0
        sampling_rate
            as in `Mechanism.epsilon`; 1 for an imported loss, whose sampling is part of it

        Raises
        ------
        TypeError
            if ``mechanism`` is neither, or for numbers of the wrong kind
        DomainError
            for a rate outside [0, 1], a negative count, or where the worst case is not proven (see
            `Mechanism.epsilon`); for an imported loss with a sampling rate, on another lattice than
            those before it, or under "replace"
        OverflowError
            if the uses of equal steps add up to more than 2**63 - 1
        """
        if not isinstance(mechanism, Accounted | DiscreteLoss):
            raise TypeError(f"mechanism must be a Mechanism or a DiscreteLoss, got {mechanism!r}")
        count = _validate.count("count", count)
        sampling_rate = _validate.probability("sampling_rate", sampling_rate)
        if isinstance(mechanism, DiscreteLoss):
            self._check_loss(mechanism, sampling_rate)
            if count:
                self._losses[mechanism] = total_uses(self._losses.get(mechanism, 0) + count)
            return self
        pair, uses = mechanism.dominating(sampling_rate, self._adjacency)
        if count and sampling_rate:
            self._counts[pair] = total_uses(self._counts.get(pair, 0) + count * uses)
        return self

    @overload
    def epsilon(
        self, delta: float, *, tolerance: float | None = None, method: Certified = "certified"
    ) -> Bracket: ...

    @overload
    def epsilon(self, delta: float, *, tolerance: float | None = None, method: Number) -> float: ...

    def epsilon(
        self, delta: float, *, tolerance: float | None = None, method: str = "certified"
    ) -> Bracket | float:
        """Epsilon of everything composed so far; see `Mechanism.epsilon`."""
        delta = contract.check_delta(delta)
        method, tolerance = contract.check_method(method, tolerance)
        return epsilon_of(self._question(tolerance), delta, method)

    @overload
    def delta(
        self, epsilon: float, *, tolerance: float | None = None, method: Certified = "certified"
    ) -> Bracket: ...

    @overload
    def delta(self, epsilon: float, *, tolerance: float | None = None, method: Number) -> float: ...

    def delta(
        self, epsilon: float, *, tolerance: float | None = None, method: str = "certified"
    ) -> Bracket | float:
        """Delta of everything composed so far; see `Mechanism.delta`."""
        epsilon = contract.check_epsilon(epsilon)
        method, tolerance = contract.check_method(method, tolerance)
        return delta_of(self._question(tolerance), epsilon, method)

    @overload
    def profile(
        self,
        epsilons: ArrayLike,
        *,
        tolerance: float | None = None,
        method: Certified = "certified",
    ) -> ProfileBracket: ...

    @overload
    def profile(
        self, epsilons: ArrayLike, *, tolerance: float | None = None, method: Number
    ) -> NDArray[np.float64]: ...

    def profile(
        self, epsilons: ArrayLike, *, tolerance: float | None = None, method: str = "certified"
    ) -> ProfileBracket | NDArray[np.float64]:
        """The privacy profile: delta at many epsilons.

        Parameters
        ----------
        epsilons
            real or infinite numbers, of any shape
        tolerance, method
            as in `Mechanism.delta`

        Returns
        -------
        ProfileBracket or numpy.ndarray
            Arrays ``lower``, ``estimate`` and ``upper`` of the same shape; one array for the
            methods that give one number.

        Examples
        --------
        >>> import psinoise as pn
        >>> accountant = pn.Accountant().compose(pn.Mechanism(pn.Airy(mean_abs=2.0)), 10)
        >>> profile = accountant.profile([0.0, 1.0, 2.0])
        >>> bool((profile.lower <= profile.upper).all())
        True
        """
        values = contract.check_epsilons(epsilons)
        method, tolerance = contract.check_method(method, tolerance)
        return profile_of(self._question(tolerance), values, method)

    def tradeoff(
        self, alphas: ArrayLike, *, tolerance: float | None = None, method: str = "certified"
    ) -> NDArray[np.float64]:
        """The trade-off function: how few false negatives a test can have.

        An adversary who tells apart two neighbors with false positive rate ``alpha`` has a false
        negative rate of at least ``f(alpha)``.

        Parameters
        ----------
        alphas
            false positive rates in [0, 1], of any shape
        tolerance, method
            as in `Mechanism.delta`

        Returns
        -------
        numpy.ndarray
            ``f`` at each alpha. With "certified" a certified *lower* bound on it, since it is the
            largest of finitely many supporting lines, drawn with upper bounds on delta; with
            "estimate" these lines are drawn with estimates, and their maximum is within 1e-8 of the
            supremum over all lines.

        Examples
        --------
        >>> import psinoise as pn
        >>> accountant = pn.Accountant().compose(pn.Mechanism(pn.Laplace(scale=1.0)))
        >>> accountant.tradeoff([0.1, 0.5], method="estimate").round(6)
        array([0.728172, 0.18394 ])
        """
        values = contract.check_alphas(alphas)
        method, tolerance = contract.check_method(method, tolerance)
        return tradeoff_of(self._question(tolerance), values, method)

    def _question(self, tolerance: float | None) -> Question:
        ways = contract.ways_of(self._adjacency)
        return Question(self._steps, self._imports, ways, tolerance)

    @property
    def _steps(self) -> Steps:
        return tuple(self._counts.items())

    @property
    def _imports(self) -> Imports:
        return tuple(self._losses.items())

    def _check_loss(self, loss: DiscreteLoss, sampling_rate: float) -> None:
        if self._adjacency == "replace":
            raise DomainError(
                "adjacency must not be 'replace' for an imported loss, which says nothing about "
                f"other neighbors, got {self._adjacency!r}"
            )
        if sampling_rate != 1.0:
            raise DomainError(
                "sampling_rate must be 1 for an imported loss, whose sampling is part of it, got "
                f"{sampling_rate!r}"
            )
        if any(other.step != loss.step for other in self._losses):
            raise DomainError(
                "imported losses must share one lattice, got steps "
                f"{sorted({loss.step, *(other.step for other in self._losses)})}"
            )
