"""What can be accounted for: everything that follows from the pair that dominates one use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.accounting import contract, vectors
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.contract import Certified, Number
from psinoise.accounting.loss.cells import CellLaw, CellPair, Dominating, in_cells
from psinoise.accounting.loss.pairs import Law, Pair
from psinoise.accounting.loss.steps import Steps
from psinoise.accounting.queries import ProfileBracket, delta_of, epsilon_of, profile_of
from psinoise.accounting.question import Question
from psinoise.accounting.tradeoff import tradeoff_of
from psinoise.errors import DomainError

__all__ = ["Accounted", "dominating_pair", "total_uses"]

_MOST_USES = 2**63 - 1


class Accounted(ABC):
    """A mechanism whose uses an accountant can compose.

    A subclass says which pair dominates one use.
    """

    @abstractmethod
    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Dominating, int]:
        """The one-dimensional pair that dominates one use, and how many uses of it.

        Raises
        ------
        DomainError
            where the worst case is not proven
        """

    def pure_epsilon(self) -> float:
        """The largest privacy loss of one use over all shifts up to the sensitivity; may be inf.

        Raises
        ------
        DomainError
            if the law is not unimodal, or the worst direction of a vector is not known
        """
        pair, uses = self.dominating(1.0, "replace")
        return math.inf if pair.infinite("remove") > 0.0 else uses * pair.largest_loss("remove")

    @overload
    def epsilon(
        self,
        delta: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: Certified = "certified",
    ) -> Bracket: ...

    @overload
    def epsilon(
        self,
        delta: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: Number,
    ) -> float: ...

    def epsilon(
        self,
        delta: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: str = "certified",
    ) -> Bracket | float:
        """The privacy parameter epsilon of ``count`` uses at ``delta``.

        Parameters
        ----------
        delta
            in [0, 1]; 0 gives the largest loss, 1 gives 0
        count
            uses of the mechanism, from 0 to 2**63 - 1
        sampling_rate
            rate of Poisson sampling in [0, 1]: every record is drawn by a coin of its own, and a
            vector is released for one draw; 1 is no sampling. Sampling without replacement is *not*
            covered by these numbers, and there is no parameter for it.
        adjacency
            "add-remove": neighbors differ in one record that one of them lacks; the larger of the
            two directions is returned. "remove" and "add" are one of these, as in the figures of
            papers, and no guarantee alone. "replace": they differ in the value of one record;
            proven for any unimodal noise without sampling, and for log-concave noise with it, if
            the ``contribution`` is known (``accounting.adjacency`` says why).
        tolerance
            the largest width ``upper - lower``. Without it the bracket is as narrow as 1e-4 of
            epsilon where the work allowed suffices, and says how wide it is.
        method
            "certified" (default) for a `Bracket`, whose ``float()`` is the upper bound; "upper" for
            that bound alone, as a float; "estimate" for a float without a proven error bound;
            "renyi" for the upper bound of the moments accountant; "clt" for the Gaussian limit of
            many uses, an approximation that can be too small

        Raises
        ------
        CertificationError
            if a tolerance is not met: its ``bracket`` is what was reached
        DomainError, TypeError, OverflowError
            for arguments outside these ranges, and where the worst case is not proven

        Notes
        -----
        Estimates by contour integration are accurate to 1e-9 of ``max(epsilon, 1)``; where it does
        not settle (few uses of noise whose losses are atoms, rare large losses) they lie between
        bounds 1e-6 of epsilon apart.
        """
        delta = contract.check_delta(delta)
        method, tolerance = contract.check_method(method, tolerance)
        return epsilon_of(self._question(count, sampling_rate, adjacency, tolerance), delta, method)

    @overload
    def delta(
        self,
        epsilon: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: Certified = "certified",
    ) -> Bracket: ...

    @overload
    def delta(
        self,
        epsilon: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: Number,
    ) -> float: ...

    def delta(
        self,
        epsilon: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: str = "certified",
    ) -> Bracket | float:
        """The privacy parameter delta of ``count`` uses at ``epsilon``.

        ``epsilon`` is any real or infinite number; the other parameters and the errors are those of
        `epsilon`, and ``tolerance`` is a width in epsilon here too: ``upper`` is at most the delta
        of an epsilon that is smaller by it. Below 5e-324 delta cannot be told from 0.
        """
        epsilon = contract.check_epsilon(epsilon)
        method, tolerance = contract.check_method(method, tolerance)
        return delta_of(self._question(count, sampling_rate, adjacency, tolerance), epsilon, method)

    def profile(
        self,
        epsilons: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: str = "certified",
    ) -> ProfileBracket | NDArray[np.float64]:
        """Delta of ``count`` uses at many epsilons; see `Accountant.profile`."""
        values = contract.check_epsilons(epsilons)
        method, tolerance = contract.check_method(method, tolerance)
        return profile_of(
            self._question(count, sampling_rate, adjacency, tolerance), values, method
        )

    def tradeoff(
        self,
        alphas: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        tolerance: float | None = None,
        method: str = "certified",
    ) -> NDArray[np.float64]:
        """The trade-off function of ``count`` uses; see `Accountant.tradeoff`."""
        values = contract.check_alphas(alphas)
        method, tolerance = contract.check_method(method, tolerance)
        return tradeoff_of(
            self._question(count, sampling_rate, adjacency, tolerance), values, method
        )

    def _question(
        self, count: int, sampling_rate: float, adjacency: str, tolerance: float | None
    ) -> Question:
        steps = self._steps(count, sampling_rate, adjacency)
        return Question(steps, ways=contract.ways_of(adjacency), tolerance=tolerance)

    def _steps(self, count: int, sampling_rate: float, adjacency: str) -> Steps:
        count = _validate.count("count", count)
        sampling_rate = _validate.probability("sampling_rate", sampling_rate)
        adjacency = contract.check_adjacency_or_direction(adjacency)
        pair, uses = self.dominating(sampling_rate, adjacency)
        return ((pair, total_uses(count * uses)),) if count and sampling_rate else ()


def dominating_pair(
    noise: Law | CellLaw,
    shift: float,
    replaced: bool,
    sampling_rate: float,
    dimension: int,
    norm: str,
) -> tuple[Dominating, int]:
    """The pair of noise on a query that a record moves by ``shift``, and how many uses of it.

    Raises
    ------
    DomainError
        where the worst case is not proven
    """
    shift, uses = vectors.one_dimensional(noise, shift, dimension, norm, sampling_rate)
    if not in_cells(noise):
        return Pair(cast(Law, noise), shift, sampling_rate, replaced), uses
    if replaced:
        raise DomainError(
            "noise must be log-concave for adjacency 'replace' with sampling (the worst case "
            f"of other laws is not known), got {noise!r}"
        )
    return CellPair(noise, shift, sampling_rate), uses


def total_uses(total: int) -> int:
    """Refuse more one-dimensional uses than a 64-bit integer holds."""
    if total > _MOST_USES:
        raise OverflowError(f"count must add up to at most 2**63 - 1, got {total!r}")
    return total
