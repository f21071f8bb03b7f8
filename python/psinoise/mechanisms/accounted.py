"""What can be accounted for: everything that follows from the pair that dominates one use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._kept import kept
from psinoise.accounting import contract
from psinoise.accounting.accountant import Accountant
from psinoise.accounting.bracket import Bracket, Brackets
from psinoise.accounting.loss.steps import Step, Steps, largest_loss
from psinoise.accounting.sampled import sampled
from psinoise.errors import DomainError
from psinoise.sampling import Poisson, Sampling

__all__ = ["Accounted"]


class Accounted(ABC):
    """A mechanism whose uses an accountant can compose.

    A subclass says which pair dominates one use.
    """

    #: Whether neighbors differ in one record, which each release uses once: what schemes of
    #: sampling other than Poisson's are about. They are refused where this is not said.
    one_record: ClassVar[bool] = False

    @abstractmethod
    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
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
        return largest_loss(((pair, uses),), "remove")

    def composed(
        self,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
    ) -> Accountant:
        """A new accountant with ``count`` uses of the mechanism; the parameters are `epsilon`'s.

        Examples
        --------
        >>> import psinoise as pn
        >>> training = pn.Mechanism(pn.Gaussian(std=1.0)).composed(2000, 0.01)
        >>> round(training.estimate.epsilon(1e-8), 6)
        3.635618
        """
        return Accountant(adjacency).compose(self, count, sampling_rate, sampling=sampling)

    @overload
    def epsilon(
        self,
        delta: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> Bracket: ...

    @overload
    def epsilon(
        self,
        delta: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> Bracket | Brackets: ...

    def epsilon(
        self,
        delta: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> Bracket | Brackets:
        """The privacy parameter epsilon of ``count`` uses at ``delta``.

        Parameters
        ----------
        delta
            in [0, 1]; 0 gives the largest loss, 1 gives 0. For an array the answer is one, too.
        count
            uses of the mechanism, from 0 to 2**63 - 1
        sampling_rate
            rate of Poisson sampling in [0, 1]: every record is drawn by a coin of its own, and a
            vector is released for one draw; 1 is no sampling. Other sampling is *not* covered by
            these numbers: see ``sampling``.
        adjacency
            "add-remove": neighbors differ in one record that one of them lacks; the larger of the
            two directions is returned. "remove" and "add" are one of these, as in the figures of
            papers, and no guarantee alone. "replace": they differ in the value of one record;
            proven for any unimodal noise without sampling, and for log-concave noise with it, if
            the ``contribution`` is known (``accounting.adjacency`` says why).
        sampling
            another scheme than that: `psinoise.sampling.RandomAllocation` or
            `psinoise.sampling.WithoutReplacement`
        tolerance
            the largest width ``upper - lower``. Without it the bracket is as narrow as 1e-4 of
            epsilon where the work allowed suffices, and says how wide it is.

        Returns
        -------
        Bracket or Brackets
            The certified upper bound, a float that knows its lower bound and an estimate; an array
            of them for an array. ``composed(count, sampling_rate, adjacency)`` answers other
            questions about the same uses, and has the estimates and bounds of other methods.

        Raises
        ------
        CertificationError
            if a tolerance is not met: its ``bracket`` is what was reached
        DomainError, TypeError, OverflowError
            for arguments outside these ranges, and where the worst case is not proven

        Notes
        -----
        Answers depend on the question alone, and recent ones are kept. Who has several questions
        about the same uses asks ``composed(...)``, which composes them once for all.
        """
        return self._asked("epsilon", delta, (count, sampling_rate, adjacency, sampling), tolerance)

    @overload
    def delta(
        self,
        epsilon: float,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> Bracket: ...

    @overload
    def delta(
        self,
        epsilon: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> Bracket | Brackets: ...

    def delta(
        self,
        epsilon: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> Bracket | Brackets:
        """The privacy parameter delta of ``count`` uses at ``epsilon``.

        ``epsilon`` is any real or infinite number, or an array; the other parameters and the errors
        are those of `epsilon`, and ``tolerance`` is a width in epsilon here too: the upper bound is
        at most the delta of an epsilon that is smaller by it. Below 5e-324 delta cannot be told
        from 0.
        """
        return self._asked("delta", epsilon, (count, sampling_rate, adjacency, sampling), tolerance)

    def profile(
        self,
        epsilons: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> Brackets:
        """Delta of ``count`` uses at many epsilons; see `psinoise.Accountant.profile`."""
        composed = self.composed(count, sampling_rate, adjacency, sampling=sampling)
        return composed.profile(epsilons, tolerance=tolerance)

    def tradeoff(
        self,
        alphas: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
        *,
        sampling: Sampling | None = None,
        tolerance: float | None = None,
    ) -> NDArray[np.float64]:
        """The trade-off function of ``count`` uses; see `psinoise.Accountant.tradeoff`."""
        composed = self.composed(count, sampling_rate, adjacency, sampling=sampling)
        return composed.tradeoff(alphas, tolerance=tolerance)

    def sampled(self, sampling_rate: float, sampling: Sampling | None, adjacency: str) -> Steps:
        """What dominates one use under sampling; nothing if no record is ever drawn.

        Raises
        ------
        DomainError
            where the worst case is not proven
        """
        if not (self.one_record or sampling is None or isinstance(sampling, Poisson)):
            raise DomainError(
                "sampling must be Poisson sampling for steps other than mechanisms, of single "
                f"records, got {sampling!r} for {self!r}"
            )
        step, uses = sampled(
            lambda rate: self.dominating(rate, adjacency), sampling_rate, sampling, adjacency
        )
        return ((step, uses),) if uses else ()

    def renyi_divergence(
        self,
        orders: ArrayLike,
        count: int = 1,
        sampling_rate: float = 1.0,
        adjacency: str = "add-remove",
    ) -> NDArray[np.float64]:
        """Renyi divergences of ``count`` uses; see `psinoise.Accountant.renyi_divergence`."""
        return self.composed(count, sampling_rate, adjacency).renyi_divergence(orders)

    def zcdp(self, count: int = 1, adjacency: str = "add-remove") -> float:
        """Rho of ``count`` uses; see `psinoise.Accountant.zcdp`.

        Sampling does not improve it in general.
        """
        return self.composed(count, 1.0, adjacency).zcdp()

    def _asked(
        self, name: str, at: ArrayLike, use: tuple[Any, ...], tolerance: float | None
    ) -> Bracket | Brackets:
        """The answer of an accountant; that of a question about one point is kept for a while."""
        count, rate, adjacency, sampling = use
        if not (isinstance(at, float) and isinstance(sampling, Sampling | None)):
            asked = getattr(self.composed(count, rate, adjacency, sampling=sampling), name)
            return cast(Bracket | Brackets, asked(at, tolerance=tolerance))
        count = _validate.count("count", count)
        rate = _validate.probability_above("sampling_rate", rate)
        adjacency = contract.check_adjacency_or_direction(adjacency)
        width = contract.check_tolerance(tolerance)
        return _answer(self, name, at, (count, rate, adjacency, sampling), width)


@kept()
def _answer(
    mechanism: Accounted, name: str, at: float, use: tuple[Any, ...], width: float | None
) -> Bracket:
    *composition, sampling = use
    composed = mechanism.composed(*composition, sampling=sampling)
    return cast(Bracket, getattr(composed, name)(at, tolerance=width))
