"""Vector queries: independent noise of one law on each of ``m`` coordinates.

Neighbors move the query by a vector ``a`` in a ball of radius ``s``; ``P_a`` is the law of the
output moved by ``a``. Each case below is reduced to one-dimensional pairs; anything else (other
laws with an l1 or l2 bound) has no known worst direction and is refused. What a law knows about
itself (``rotation_invariant``, ``axis_is_worst``) decides which case it is.

*Gaussian noise, any norm.* It is invariant under rotations, so that ``(P_a, P_0)`` is the
one-dimensional pair with shift ``|a|_2``, of which the largest is the worst (lemma of ``pairs``):
``s`` in the l2 ball and, at its corners, in the l1 ball; ``s sqrt(m)`` at those of the l-infinity
ball.

Sampling acts on the whole output, here and for Laplace noise: its profile is an increasing function
of the unsampled one (``pairs``), and the lemma of ``adjacency`` holds for vectors.

*Any unimodal noise, l-infinity.* ``P_a`` and ``P_0`` are products over the coordinates, each factor
is dominated by ``(T_s p, p)``, and products of dominating pairs dominate (Zhu, Dong and Wang 2022,
theorem 10): ``m`` uses of the one-dimensional pair, attained at ``a = (s, ..., s)``. Of laws with
several worst shifts, which need not be unimodal, neighbors that choose a shift for each coordinate
as outputs come dominate; one release has one vector, chosen before. From below all coordinates
move by the same shift. With sampling
one coin decides about all coordinates, and these are no independent uses:
``compose.schemes.one_coin`` has their measures.

*Laplace noise, l1.* The worst ``a`` moves a single coordinate by ``s``.

*Proof.* Let the scale be 1. By induction over the coordinates (products of dominating pairs
dominate) and by the lemma of ``pairs`` it is enough that a shift by ``(a_1, a_2)``, both positive,
is dominated by the one-dimensional shift ``a = a_1 + a_2``. The likelihood ratio ``T_b p/p`` at
``x`` is ``exp(2 w - b)`` with ``w = min(max(x, 0), b)``, and that of the two coordinates is
``exp(2 w - a)`` with ``w = w_1 + w_2`` in ``[0, a]``: the same function of ``w`` as for a single
coordinate with shift ``a``, and only the laws of ``w`` under ``p`` differ. The law of ``w`` for a
shift ``b`` is ``e^{-w}/2`` times the measure ``D(0) + D(b) + dw`` on ``[0, b]``, ``D`` unit atoms.
Since ``e^{-w_1} e^{-w_2} = e^{-w}``, the law for ``(a_1, a_2)`` is ``e^{-w}/4`` times the
convolution of two such measures:

    ``D(0) + D(a_1) + D(a_2) + D(a) + 2 dw + (the convolution of the two intervals)``.

It exceeds twice the measure of the single coordinate by ``D(a_1) + D(a_2)`` and that convolution,
all inside ``(0, a)``, and falls short of it by ``D(0) + D(a)``, at the ends. Let ``h`` be convex
and ``l`` the chord of ``h`` between the extreme likelihood ratios ``e^{-a}`` and ``e^a``. Both laws
have mass 1 and mean likelihood ratio 1, so that the expectations of ``h`` differ by those of
``h - l``, which is 0 at the ends and at most 0 inside: the law of ``(a_1, a_2)`` has the smaller
expectation. With ``h(y) = (y - gamma)^+``: the smaller profile. QED

*Discrete Laplace noise, whole numbers, l1.* The same, by the same proof. With ``a = e^{-1/scale}``
and ``c = 1 - a`` the law of ``w`` for a shift ``b`` is ``a^w/(1 + a)`` times the measure
``D(0) + D(b) + c (D(1) + ... + D(b - 1))``. The law for ``(a_1, a_2)`` is ``a^w/(1 + a)^2`` times
the convolution of two of these; in that unit the single coordinate has ``1 + a = 2 - c`` at both
ends and ``c (2 - c)`` inside. The convolution has 1 at the ends, which is less. Inside it has more:
at least ``2 c`` at each ``k`` other than ``a_1`` and ``a_2``, and ``1 + c`` or 2 at these.

*Any noise with a bounded score, l1.* With ``|(log p)'| <= B`` the loss of a shift by ``a_i`` is at
most ``B |a_i|``, that of the vector at most ``B s``; and no coordinate has more than the largest
loss of a shift by ``s``, as the worst shift is the largest (`pairs`), so that ``m`` times that is a
bound too, the smaller one of narrow noise. From above it is pure differential privacy at the
smaller of both, which is dominated by randomized response. (For stable noise that the privacy is
pure is theorem 16 of Zawacki and Abed, the symmetric alpha-stable mechanism.) From below a single
coordinate moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

from psinoise import _validate
from psinoise.accounting.adjacency import worst_shift
from psinoise.accounting.compose.measures.dense import Dense, Measured, dense
from psinoise.accounting.compose.schemes.one_coin import SampledVector
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.blocks import BlockLaw, BlockPair, in_blocks
from psinoise.accounting.loss.cells import CellLaw, CellPair, in_cells
from psinoise.accounting.loss.largest import largest_score
from psinoise.accounting.loss.law import Law
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.responses import RandomizedResponse
from psinoise.accounting.loss.steps import Step
from psinoise.errors import DomainError

_NORMS = ("linf", "l1", "l2")
# Lengths above two to this, or below the inverse, are taken in another unit.
_FAR = 900
_TILT = 1.0


def check_query(mechanism: Any) -> None:
    """Refuse what is no sensitivity, dimension or norm; the former become plain numbers."""
    sensitivity = _validate.positive_above("sensitivity", mechanism.sensitivity)
    object.__setattr__(mechanism, "sensitivity", sensitivity)
    dimension = _validate.positive_count("dimension", mechanism.dimension)
    object.__setattr__(mechanism, "dimension", dimension)
    _validate.choice("norm", mechanism.norm, _NORMS)


@dataclass(frozen=True)
class ScoreBound(Measured):
    """A vector whose loss is at most ``epsilon`` in both directions.

    ``axis`` is the pair of a single coordinate that moves.
    """

    epsilon: float
    axis: Pair

    @property
    def symmetric(self) -> bool:
        return self.axis.symmetric

    @property
    def attained(self) -> Step:
        return self.axis

    def sources(self, direction: Direction) -> tuple[Dense, Dense]:
        """Randomized response, twice."""
        rate = self.axis.sampling_rate
        found = dense(RandomizedResponse(self.epsilon, self.epsilon, 0.0, rate), direction, 0.0)
        return found, found


@dataclass(frozen=True)
class Coordinates(CellPair):
    """A coordinate of a vector that moves as a whole: of several shifts only a fixed one is
    attained, the worst at some tilt."""

    @property
    def attained(self) -> CellPair:
        return self.at_tilt("remove", _TILT)


def _in_a_unit(noise: Law, shift: float) -> tuple[Law, float]:
    """The same losses of lengths in another unit, a power of two, where float64 ends near them."""
    exponents = [math.frexp(length)[1] for length in (noise.scale, shift)]
    divided = getattr(noise, "divided", None)
    if max(map(abs, exponents)) <= _FAR or divided is None:
        return noise, shift
    # Of lengths up to 2**1024 the unit is at most 2**1023, the largest power that is a float64.
    unit = math.ldexp(1.0, min(sum(exponents) // 2, 1023))
    return divided(unit), shift / unit


def dominating_pair(
    noise: Law | CellLaw | BlockLaw,
    sensitivity: float,
    contribution: float | None,
    sampling_rate: float,
    adjacency: str,
    dimension: int = 1,
    norm: str = "linf",
) -> tuple[Step, int]:
    """What dominates one use of noise on a query, and how many uses of it.

    Raises `DomainError` where the worst case is not proven.
    """
    shift, replaced = worst_shift(sensitivity, contribution, sampling_rate, adjacency)
    if replaced and (in_cells(noise) or in_blocks(noise)):
        raise DomainError(
            "noise must be log-concave for adjacency 'replace' with sampling (the worst case "
            f"of other laws is not known), got {noise!r}"
        )

    def pair(shift: float, rate: float) -> Dominating:
        if in_blocks(noise):
            return BlockPair(((1.0, noise),), noise.worst_shifts(shift)[-1], rate)
        if in_cells(noise):
            return CellPair(noise, shift, rate)
        return Pair(*_in_a_unit(cast(Law, noise), shift), rate, replaced)

    if dimension > 1 and getattr(noise, "rotation_invariant", False):
        longest = shift * (math.sqrt(dimension) if norm == "linf" else 1.0)
        return pair(longest, sampling_rate), 1
    one = pair(shift, sampling_rate)
    if dimension == 1 or (norm == "l1" and getattr(noise, "axis_is_worst", False)):
        return one, 1
    if replaced:
        raise DomainError(
            "adjacency must not be 'replace' for this noise on a vector with sampling (one coin "
            "decides about all coordinates, and the worst case is not known), got "
            f"{noise!r} in {dimension} dimensions"
        )
    if norm == "linf":
        if 0.0 < sampling_rate < 1.0:
            return SampledVector(pair(shift, 1.0), dimension, sampling_rate), 1
        if isinstance(one, CellPair) and one.several:
            one = Coordinates(one.noise, one.sensitivity, one.sampling_rate)
        return one, dimension
    if norm == "l1" and isinstance(one, Pair):
        score = largest_score(cast(Law, noise))
        if score < math.inf:
            largest = pair(shift, 1.0).largest_loss("remove")
            most = min(shift * score, dimension * largest) * (1.0 + 2.0**-51)
            return ScoreBound(most, one), 1
    raise DomainError(
        f"norm must be 'linf' for this noise (for {norm!r} the worst direction is not known), got "
        f"{noise!r} in {dimension} dimensions"
    )
