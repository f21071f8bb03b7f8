"""The sum of what many clients release, each with noise of its own: modular secure aggregation.

Each of ``n`` clients releases a whole number with noise of a law ``P`` that is closed under sums,
``P * ... * P`` (m factors) ``= P_m``, drawn from a table ``Q`` of integers (`LatticeNoise`). Only
the sum is seen. Neighbors differ in the number of one client, which adds noise in both cases.

*A table draw is a draw of the law, or a client that dropped out.* Let ``Q(k) >= (1 - eta) P(k)``
for all k. Then ``Q = (1 - eta) P + eta R`` with a law ``R``: a draw of Q is one of P but for a
probability ``eta``, whatever the data are. Of n draws J are of R, J binomial, and with J known
their sum is a sum of ``n - J`` draws of P and of noise that is independent of these and of the
data: post-processing of noise ``P_(n-J)``. So the pair of the sum is dominated by the mixture of
the pairs of ``P_(n-J)`` with J told beside the sum. (The profile of a mixture with known weights is
at most the mixture of the profiles; and if J is told it is equal to that.) As the largest shift is
the worst for each ``P_m``, and profiles grow as m falls, values of J are put together and accounted
at the largest of them. J = n, and what is beyond the last group, tells all.

*eta* is the largest of ``1 - Q(k) / P(k)``: for listed numbers one by one; in copies of a dilated
tail, where Q is constant on a block and P falls, at the first number of each block; in a tail that
is moved along, one by one to where P ends. The probability that ``abs(K)`` reaches ``2**61``, where
a release saturates, is added to it.

*At delta 0* the epsilon of one message is that of the sum, and no smaller one would hold. A message
beyond ``2**61`` is brought back to it. Where that happened to all others, the sum is ``(n - 1)
2**61`` and the one message; what else leads there is rarer by the mass of a single number near
``2**61`` over that of all beyond, some ``2**-61``, and by the masses of numbers far from where the
others' values are. So for some values of the others the largest loss of the sum is that of a
message but for such shares. (Modulo ``2**b``, b <= 61, what was brought back is 0, and that sum is
not told from others. But tables are above the law by up to a share ``r`` of 0.5 % in their tails,
and all that is bounded with ease is a factor ``((1 + r) / (1 - eta))**n``.)

*Those that dropped out* add no noise: with m clients left the sum is that of m messages.

*Values modulo 2**b.* Reducing is a homomorphism of rings: the residue of a sum is the sum of the
residues. So the sum of residues is a function of the sum: post-processing. Each residue is a
function of a message. So no epsilon grows, of message or sum, for any b. The sum is read off right
if it is in ``[-2**(b - 1), 2**(b - 1))``; how often noise of the law leaves that is
``2 law.aggregate(m).ccdf(2.0**(b - 1) - 1 - abs(sum))``, for ``b <= 61``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from psinoise import _validate
from psinoise._kept import kept
from psinoise.accounting.bracket import Bracket, Brackets
from psinoise.accounting.loss.blocks import BlockLaw, BlockPair, in_blocks
from psinoise.accounting.loss.steps import Step
from psinoise.errors import DomainError
from psinoise.mechanisms.accounted import Accounted
from psinoise.mechanisms.lattice_mechanism import LatticeMechanism
from psinoise.release import WIDER, LatticeNoise

__all__ = ["SumOfReleases", "shortfall"]

# Of masses, and of the probabilities of a table.
_ROUNDING = 1e-12
# What is left of the binomial law of the missing draws is told.
_LEAST = 1e-300
_SATURATED = 61
_MOST_MOVED = 1 << 22
# Numbers by which the laws that a table may be drawn from are compared.
_SOME = 1 << 16
# The logarithm of a probability that does not count.
_NOTHING = -700.0


@dataclass(frozen=True)
class SumOfReleases(Accounted):
    """The sum of as many releases, of which neighbors move one; made by ``Mechanism.for_sum``.

    Attributes
    ----------
    message : LatticeMechanism
        What one client releases.
    law : NoiseLaw
        Of its noise: a law in blocks, whose ``aggregate(count)`` is the law of a sum.
    count : int
        How many releases there are in the sum.
    """

    message: LatticeMechanism
    law: Any
    count: int

    def __post_init__(self) -> None:
        number = _validate.positive_count("count", self.count)
        aggregate = getattr(self.law, "aggregate", None)
        if not (in_blocks(self.law) and callable(aggregate)):
            raise DomainError(
                "noise must be closed under sums on the whole numbers, as DiscreteStable is, got "
                f"{self.law!r}"
            )
        if self.message.dimension != 1:
            raise DomainError(
                f"dimension must be 1 for sums of releases, got {self.message.dimension}"
            )
        object.__setattr__(self, "count", number)
        aggregate(number)

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """The mixture over the number of draws that are not of the law.

        Raises
        ------
        DomainError
            where the worst case is not proven: for "replace" with sampling
        """
        pair, uses = self.message.dominating(sampling_rate, adjacency)
        if self.count == 1:
            return pair, uses
        parts, leak = _missing(self.count, self.shortfall)
        if not parts:
            return pair, uses
        laws = tuple((share, self.drawn.aggregate(self.count - lost)) for lost, share in parts)
        return BlockPair(laws, float(self.message.cells), sampling_rate, leak), uses

    def _asked(
        self, name: str, at: ArrayLike, use: tuple[Any, ...], tolerance: float | None
    ) -> Bracket | Brackets:
        """For deltas that the mixture cannot meet the upper ends of one release, of which the sum
        is a function; a larger delta, which it meets, has no larger epsilon."""
        found = super()._asked(name, at, use, tolerance)
        if name != "epsilon" or self.count == 1:
            return found
        deltas = np.asarray(at, np.float64)
        least = min(1.0, use[0] * _missing(self.count, self.shortfall)[1])
        if not (deltas <= least).any():
            return found
        one = self.message._asked(name, at, use, tolerance)
        met = super()._asked(name, min(2.0 * least, 1.0), use, tolerance)
        lower = np.where(deltas == 0.0, one.lower, np.minimum(met.lower, one.lower))
        ends = [
            np.where(deltas <= least, new, old)
            for new, old in (
                (lower, found.lower),
                (one.estimate, found.estimate),
                (one.upper, found.upper),
            )
        ]
        if isinstance(one, Bracket):
            low, estimate, high = map(float, ends)
            return Bracket.holding(low, estimate, high, one.composer)
        return Brackets(*ends)

    def pure_epsilon(self) -> float:
        """That of one release: where all others are saturated it shows through the sum.

        The sum is a function of one release and of what is independent of it, so that its epsilon
        is no larger. For the sum of draws of the law itself, which are never saturated:
        ``Mechanism(law.aggregate(count), sensitivity).pure_epsilon()``.
        """
        return self.message.pure_epsilon()

    @property
    def shortfall(self) -> float:
        """How likely a draw from the table is not one of the law that it was made of."""
        return shortfall(cast(LatticeNoise, self.message.noise), self.drawn)

    @property
    def drawn(self) -> Any:
        """The law that the table was made of: that of the noise, or one that is a little wider."""
        return _drawn(cast(LatticeNoise, self.message.noise), self.law)


@kept()
def _drawn(noise: LatticeNoise, law: Any) -> Any:
    # Whichever it is: what is left of its shortfall is accounted. So it is chosen by some numbers.
    wider = (law, *(law.widened(factor) for factor in WIDER))
    return min(wider, key=lambda law: _lacking(noise, law, _SOME))


@kept()
def shortfall(noise: LatticeNoise, law: BlockLaw) -> float:
    """The least ``eta`` with ``Q >= (1 - eta) P``, rounded up; 1 if nothing is known."""
    return _lacking(noise, law, 1 << _SATURATED)


def _lacking(noise: LatticeNoise, law: BlockLaw, most: int) -> float:
    """The same of as many numbers at most, or twice that."""
    listed, tail, repeated, _ = noise.integers
    start = listed.size - repeated
    numbers = [np.arange(start)]
    over = 2.0 * math.exp(float(law.log_tail(np.array([2.0**_SATURATED]))[0]))
    if tail == "dilate":
        octaves = _SATURATED - (2 * repeated).bit_length() + 2
        numbers += [np.arange(repeated, 2 * repeated) << i for i in range(octaves)]
    else:
        end = listed.size
        while float(law.log_tail(np.array([float(end)]))[0]) > _NOTHING:
            end *= 2
            if end > _MOST_MOVED:
                return 1.0
        numbers.append(np.arange(start, end))
        over += 2.0 * math.exp(_NOTHING)
    k = np.concatenate(numbers)
    k = k[k < 1 << _SATURATED]
    k = k[:: max(k.size // most, 1)]
    excess = np.log(noise.pmf(k)) - law.log_mass(k.astype(np.float64))
    lack = -np.expm1(np.minimum(excess, 0.0))
    return min(max(float(lack.max()), 0.0) + over + _ROUNDING, 1.0)


def _missing(count: int, eta: float) -> tuple[list[tuple[int, float]], float]:
    """Numbers of missing draws with probabilities: of none, 1, up to 3, up to 7, ...; and the rest.

    Those of a group count as its largest number.
    """
    from scipy import special  # slow to import

    def more_than(lost: int) -> float:
        """Of the binomial law: an incomplete beta function, right to 1e-12."""
        if lost >= count:
            return 0.0
        return float(special.betainc(lost + 1.0, count - lost, eta)) * (1.0 + _ROUNDING)

    groups, lost, rest = [], 0, more_than(0)
    none = max(1.0 - rest, 0.0)
    while rest > _LEAST and lost + 1 < count:
        lost = min(2 * lost + 1, count - 1)
        beyond = more_than(lost)
        groups.append((lost, max(rest - beyond, 0.0)))
        rest = beyond
    groups = [(0, none), *groups]
    return [group for group in groups if group[1] > 0.0], min(rest, 1.0)
