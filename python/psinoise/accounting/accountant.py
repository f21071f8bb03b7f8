"""Composition of different mechanisms."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.accounting import contract, queries, serialize
from psinoise.accounting.bracket import Bracket, Brackets
from psinoise.accounting.loss.steps import Step, Steps
from psinoise.accounting.one_direction import Kept
from psinoise.accounting.question import Question
from psinoise.errors import CertificationError, DomainError
from psinoise.sampling import Sampling

__all__ = ["Accountant", "is_within"]

_MOST_USES = 2**63 - 1


@runtime_checkable
class Dominated(Protocol):
    """A mechanism: it says which steps dominate one use under sampling, and how many of each."""

    def sampled(self, sampling_rate: float, sampling: Sampling | None, adjacency: str) -> Steps: ...


class Accountant:
    """Adds up the privacy loss of any sequence of mechanisms applied to the same data.

    The order of the calls does not matter, and equal steps are merged.

    Steps may also be losses that another accountant knows (`psinoise.mechanisms.DiscreteLoss`, see
    `psinoise.adapters.dp_accounting.from_pld`). They are bounds from above: the lower end of a
    bracket speaks of the other steps alone, and there are no estimates. Of promises
    (`psinoise.promises`) brackets give the worst mechanism that keeps them.

    What is composed for one question is kept for the next one, whose bracket can be narrower for
    it; the same question has the same answer. Threads may compose and ask at once, and a copy goes
    its own way.

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
        self._counts: dict[Step, int] = {}
        self._kept: Kept = {}
        # By what was asked, where, and the tolerance.
        self._answers: dict[tuple[str, float, float | None], Bracket] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Accountant adjacency={self._adjacency!r}, {len(self._counts)} distinct steps>"

    def __getstate__(self) -> tuple[str, Steps]:
        return self._adjacency, self._steps

    def __setstate__(self, state: tuple[str, Steps]) -> None:
        self.__init__(state[0])  # type: ignore[misc]
        self._counts.update(state[1])

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
            for laws that are not of the library or are made from functions, for cactus and optimal
            unimodal noise, and for steps that are no law on a query: promises but that of mu-GDP,
            imported losses, schemes other than Poisson sampling, vectors under one coin, noise in
            digits
        """
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
        mechanism: Dominated,
        count: int = 1,
        sampling_rate: float = 1.0,
        *,
        sampling: Sampling | None = None,
    ) -> Accountant:
        """Add ``count`` uses of a mechanism; returns self.

        Parameters
        ----------
        mechanism
            a mechanism, and ``mechanism.on_lattice()`` for what that releases; a promise
            (`psinoise.promises`); or an imported loss
        count
            uses, at least 0; with random allocation each of them is an epoch
        sampling_rate, sampling
            as in `Mechanism.epsilon`; none for an imported loss

        Raises
        ------
        TypeError
            if ``mechanism`` is none of them, or for numbers of the wrong kind
        DomainError
            for a rate outside [0, 1], a negative count, or where the worst case is not proven (see
            `Mechanism.epsilon`), as for an imported loss with a sampling rate or under "replace"
        OverflowError
            if the uses of equal steps add up to more than 2**63 - 1
        """
        if isinstance(mechanism, type) or not isinstance(mechanism, Dominated):
            raise TypeError(
                f"mechanism must be a Mechanism, a promise or a DiscreteLoss, got {mechanism!r}"
            )
        count = _validate.count("count", count)
        steps = mechanism.sampled(sampling_rate, sampling, self._adjacency)
        if count and steps:
            with self._lock:
                totals = {step: self._counts.get(step, 0) + count * uses for step, uses in steps}
                if max(totals.values()) > _MOST_USES:
                    raise OverflowError(
                        f"count must add up to at most 2**63 - 1, got {max(totals.values())!r}"
                    )
                self._counts.update(totals)
                # New ones: what is being asked about the old composition keeps those it began with.
                self._kept, self._answers = {}, {}
        return self

    @overload
    def epsilon(self, delta: float, *, tolerance: float | None = None) -> Bracket: ...

    @overload
    def epsilon(
        self, delta: ArrayLike, *, tolerance: float | None = None
    ) -> Bracket | Brackets: ...

    def epsilon(self, delta: ArrayLike, *, tolerance: float | None = None) -> Bracket | Brackets:
        """Epsilon of everything composed so far; see `Mechanism.epsilon`."""
        tolerance = contract.check_tolerance(tolerance)
        if contract.is_array("delta", delta):
            deltas = contract.check_probabilities("delta", delta)
            return queries.epsilons_of(self._question(tolerance), deltas)
        return self._answer("epsilon", queries.epsilon_of, contract.check_delta(delta), tolerance)

    @overload
    def delta(self, epsilon: float, *, tolerance: float | None = None) -> Bracket: ...

    @overload
    def delta(
        self, epsilon: ArrayLike, *, tolerance: float | None = None
    ) -> Bracket | Brackets: ...

    def delta(self, epsilon: ArrayLike, *, tolerance: float | None = None) -> Bracket | Brackets:
        """Delta of everything composed so far; see `Mechanism.delta`."""
        if contract.is_array("epsilon", epsilon):
            return self.profile(epsilon, tolerance=tolerance)
        tolerance = contract.check_tolerance(tolerance)
        return self._answer("delta", queries.delta_of, contract.check_epsilon(epsilon), tolerance)

    def profile(self, epsilons: ArrayLike, *, tolerance: float | None = None) -> Brackets:
        """The privacy profile: delta at many epsilons, from few compositions.

        Parameters
        ----------
        epsilons
            real or infinite numbers, of any shape
        tolerance
            as in `Mechanism.delta`, as far as the work allowed suffices; never an error

        Returns
        -------
        Brackets
            An array of the upper bounds, with ``lower`` and ``estimate``, of the same shape. As a
            rule twice as wide as one `delta`; of deltas below 1e-30 as what 2e-4 of epsilon
            changes them by.

        Examples
        --------
        >>> import psinoise as pn
        >>> accountant = pn.Accountant().compose(pn.Mechanism(pn.Airy(mean_abs=2.0)), 10)
        >>> profile = accountant.profile([0.0, 1.0, 2.0])
        >>> bool((profile.lower <= profile.upper).all())
        True
        """
        values = contract.check_epsilons(epsilons)
        return queries.deltas_of(self._question(contract.check_tolerance(tolerance)), values)

    def tradeoff(self, alphas: ArrayLike, *, tolerance: float | None = None) -> NDArray[np.float64]:
        """The trade-off function: how few false negatives a test can have.

        An adversary who tells apart two neighbors with false positive rate ``alpha`` has a false
        negative rate of at least ``f(alpha)``.

        Parameters
        ----------
        alphas
            false positive rates in [0, 1], of any shape
        tolerance
            as in `profile`

        Returns
        -------
        numpy.ndarray
            A certified *lower* bound on ``f`` at each alpha, for both orders of the neighbors,
            under "remove" and "add" too: the largest of finitely many supporting lines, drawn with
            upper bounds on delta. Those of ``estimate.tradeoff`` are drawn with estimates.

        Examples
        --------
        >>> import psinoise as pn
        >>> accountant = pn.Accountant().compose(pn.Mechanism(pn.Laplace(scale=1.0)))
        >>> accountant.tradeoff([0.1, 0.5]).round(5)
        array([0.72817, 0.18394])
        """
        values = contract.check_probabilities("alphas", alphas)
        question = self._question(contract.check_tolerance(tolerance), one_direction=False)
        return queries.tradeoff_bound(question, values)

    @property
    def estimate(self) -> queries.Numbers:
        """Numbers without a proven error bound: ``estimate.epsilon(delta)``, ``.delta(epsilon)``.

        By contour integration, to 1e-9 of ``max(epsilon, 1)``; where that does not converge
        (few uses of noise whose losses are atoms, rare large losses) they lie between bounds 1e-6
        of epsilon apart, of epochs of random allocation and of few uses of noise without one worst
        shift 1e-4. Of many uses of the latter, as of laws in cells, it is that of the pair which
        dominates all shifts: some percent above the certified bracket.
        Refused with a `DomainError` where an imported loss is composed, as are `renyi` and `clt`.
        """
        return queries.estimates(self._question(None))

    @property
    def renyi(self) -> queries.Numbers:
        """Numbers of the moments accountant: upper bounds, up to the errors of a quadrature.

        `CertificationError` where losses are no float64, as of noise of 1e-160 of a sensitivity.
        """
        return queries.moments(self._question(None))

    @property
    def clt(self) -> queries.Numbers:
        """Numbers of the Gaussian limit of many uses: approximations that can be too small.

        `CertificationError` where losses are no float64, as of noise of 1e-160 of a sensitivity.
        """
        return queries.central_limit(self._question(None))

    def renyi_divergence(self, orders: ArrayLike) -> NDArray[np.float64]:
        """Renyi divergences of everything composed so far, the larger of the directions.

        Parameters
        ----------
        orders
            at least 1, of any shape: 1 is the Kullback-Leibler divergence, infinity the largest
            loss

        Returns
        -------
        numpy.ndarray
            Of the same shape; ``inf`` where outputs of one data set are impossible for the other.
            Estimates, not rounded outwards: right to 1e-10 of themselves, to 1e-7 for sensitivities
            below 1e-4 of the noise. Promises of zCDP count with their bound.

        Raises
        ------
        DomainError, TypeError
            for other orders, and for steps that are known by bounds on their loss alone
        CertificationError
            for orders so large that their divergence lies in tails that no quadrature reaches

        Examples
        --------
        >>> import psinoise as pn
        >>> accountant = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=5.0)), 10)
        >>> accountant.renyi_divergence([1.0, 2.0, 32.0]).round(9).tolist()
        [0.2, 0.4, 6.4]
        """
        return queries.renyi_of(self._question(None), contract.check_orders(orders))

    def zcdp(self) -> float:
        """The least rho such that everything composed so far is rho-zCDP.

        Renyi divergences of all orders ``a > 1`` are at most ``rho a``. An estimate, as those are;
        ``inf`` where they are.

        Raises
        ------
        DomainError
            with sampling, which leaves rho as it is for Gaussian noise and says nothing in general;
            and for steps that are known by bounds on their loss alone
        CertificationError
            if no line is seen to be above: the ratio rises as far as the quadrature reaches

        Examples
        --------
        >>> import psinoise as pn
        >>> accountant = pn.Accountant().compose(pn.Mechanism(pn.Gaussian(std=5.0)), 10)
        >>> round(accountant.zcdp(), 9)
        0.2
        """
        if any(getattr(step, "sampling_rate", 1.0) < 1.0 for step, _ in self._steps):
            raise DomainError("sampling_rate must be 1 for rho, got steps with sampling")
        return queries.zcdp_of(self._question(None))

    def _question(self, tolerance: float | None, *, one_direction: bool = True) -> Question:
        """A question about the composition so far, with what is known of that."""
        only = contract.directions_of(self._adjacency) if one_direction else None
        with self._lock:
            return Question(self._steps, only, tolerance, kept=self._kept)

    def _answer(
        self,
        name: str,
        ask: Callable[[Question, float], Bracket],
        at: float,
        tolerance: float | None,
    ) -> Bracket:
        """The answer to a question, the same one whenever it is asked."""
        # Read first: what is composed meanwhile has new answers, where this one does not belong.
        answers, asked = self._answers, (name, at, tolerance)
        if asked not in answers:
            # Of threads that ask it at once all get the answer of the first.
            answers.setdefault(asked, ask(self._question(tolerance), at))
        return answers[asked]

    @property
    def _steps(self) -> Steps:
        return tuple(self._counts.items())


def is_within(accountant: Accountant, epsilon: float, delta: float) -> bool:
    """Whether everything composed is proven to be (epsilon, delta)-private.

    Either bound is a proof, and one may hold where the other cannot be had or is a little too wide.
    Only the largest loss proves a delta of 0: bounds on delta are 0 below the least float64.
    """
    try:
        if delta > 0.0 and accountant.delta(epsilon).upper <= delta:
            return True
    except CertificationError:
        pass
    try:
        return accountant.epsilon(delta).upper <= epsilon
    except CertificationError:
        return False
