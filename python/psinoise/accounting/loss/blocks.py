"""One use of noise on the whole numbers whose masses have a formula: a loss of blocks of numbers.

A wide law without end has too many numbers to list. Those from half of the shift on are cut into
blocks: single numbers near the shift, then runs of ``2**-8`` of the distance from it, on which the
loss hardly changes. The rest is their mirror image, with the two laws exchanged.

*From above* the mass of a block is moved to the ends ``[low, high]`` of an interval that contains
its losses, so that both laws keep their masses. The expectation of a convex function of the
likelihood ratio grows by that, so that the pair dominates, and the largest ``high`` is the pure
epsilon. *From below* a block is one answer: merging answers is post-processing.

``low`` and ``high`` are those of seven points of a block, widened by its second difference where it
has more numbers: wrong where the loss bends far more in a block of ``2**-8`` of a length on which
it is smooth, which does not happen (``tests/test_discrete_stable.py`` compares with all numbers).
The rounding of the masses is added to the ends. What masses of blocks, which are sums by a rule,
may be off is added to them from above, and taken away from below.

Several laws, each with a probability that does not depend on the data, are told apart by who sees
the answer: the blocks of all of them, times these probabilities. What they leave of 1 tells all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from psinoise._kept import cached_property, kept
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.pairs import Direction, Float

# Lengths of blocks in units of that on which a law is smooth: of the likeliest one, and of others.
_LENGTHS = 2.0**-8, 2.0**-6
# Logarithms of masses are right to 2e-13, and ends of losses are wider by more than twice that.
_MASS_ROUNDING, _ROUNDING = 2.5e-13, 1e-12
# The last block goes on without end: losses there are below 1e-12 of the largest one. Of a law that
# falls faster than any power less than 1e-300 is beyond.
_FAR, _DEEP = 2.0**40, 52.0
# What sums over a block are made of.
_POINTS = 7


class BlockLaw(Protocol):
    """A law on the whole numbers: hashable, symmetric and unimodal, with smooth masses.

    ``log_mass(k)`` is smooth on the length ``finest``, and where ``bounded_loss`` holds on that of
    ``k`` too, as a power is; else masses fall faster than any power. ``log_tail(k)`` is
    ``log P(X >= k)``.
    """

    @property
    def finest(self) -> float: ...
    @property
    def bounded_loss(self) -> bool: ...
    @property
    def scale(self) -> float: ...
    def log_mass(self, k: Float) -> Float: ...
    def log_tail(self, k: Float) -> Float: ...
    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]: ...
    def __hash__(self) -> int: ...


def in_blocks(noise: object) -> TypeGuard[BlockLaw]:
    """Whether a law is accounted in blocks."""
    return callable(getattr(noise, "log_mass", None)) and hasattr(noise, "finest")


class _Blocks(NamedTuple):
    """Logs of the masses of each block under both laws, the ends of its losses, how far both logs
    may be off, and the mass under the moved law of what is beyond, where losses have no bound."""

    moved: Float
    base: Float
    low: Float
    high: Float
    off: Float
    beyond: float = 0.0


@dataclass(frozen=True)
class BlockPair(AtomPair):
    """One use of noise in blocks, for both directions at once.

    Attributes
    ----------
    parts : laws with their probabilities, the likeliest first; what these leave of 1 is ``leak``
    shift : how far neighbors are apart, a whole number of at least 1
    sampling_rate : of Poisson sampling
    leak : the probability that the answer tells which data set it is
    merged : whether a block is one answer, for a bound from below
    """

    parts: tuple[tuple[float, BlockLaw], ...]
    shift: float
    sampling_rate: float
    leak: float = 0.0
    merged: bool = False

    @property
    def one_law(self) -> BlockLaw | None:
        """The law that is alone, if there is one."""
        return self.parts[0][1] if len(self.parts) == 1 and self.leak == 0.0 else None

    @property
    def unsampled(self) -> tuple[Float, Float]:
        found = []
        for share, blocks in self._blocks:
            mass, loss = _one_answer(blocks) if self.merged else _two_answers(blocks)
            found.append((mass + math.log(share), loss))
        log_mass, loss = (np.concatenate(column) for column in zip(*found, strict=True))
        return log_mass, loss

    @property
    def _blocks(self) -> list[tuple[float, _Blocks]]:
        return [
            (share, _blocks(law, self.shift, _LENGTHS[min(place, 1)]))
            for place, (share, law) in enumerate(self.parts)
        ]

    @cached_property
    def told(self) -> float:
        """The leak, and from above what is beyond all blocks."""
        beyond = 0.0 if self.merged else sum(share * part.beyond for share, part in self._blocks)
        return self.leak + beyond

    @property
    def several(self) -> bool:
        return not self.merged

    def below(self, direction: Direction, tilt: float | None) -> BlockPair:
        return replace(self, merged=True)


# Of atoms with losses ``L >= 0`` and their mirror images delta at an epsilon of 0 or more is a sum
# of terms ``b (e^L - e^epsilon)^+``, which rise with the mass ``b`` under the law itself and with
# the loss, and so does the sum ``T`` of all masses. Below 0 delta is
# ``T (1 - e^epsilon) + e^epsilon delta(-epsilon)``. So less of both is a bound from below, and more
# of both one from above: of a mass ``off``, and of the loss, a difference of two logs, twice that.


def _one_answer(blocks: _Blocks) -> tuple[Float, Float]:
    base = blocks.base - blocks.off
    loss = np.maximum(blocks.moved - blocks.base - 2.0 * blocks.off, 0.0)
    return np.append(base, base + loss), np.append(loss, -loss)


def _two_answers(blocks: _Blocks) -> tuple[Float, Float]:
    # With masses b e^low and b e^high of the moved law the share of the upper one is what makes
    # them add up to a.
    low, high, base = blocks.low, blocks.high, blocks.base + blocks.off
    loss = np.clip(blocks.moved - blocks.base + 2.0 * blocks.off, low, high)
    share = np.expm1(loss - low) / np.expm1(high - low)
    with np.errstate(divide="ignore"):
        mass = np.append(base + np.log1p(-share), base + np.log(share))
    loss = np.append(low, high)
    kept = mass > -np.inf
    mass, loss = mass[kept], loss[kept]
    return np.append(mass, mass + loss), np.append(loss, -loss)


@kept()
def _blocks(law: BlockLaw, shift: float, length: float) -> _Blocks:
    """Those from half of the shift on, and half of the mass of a number right on it."""
    start = math.floor(0.5 * shift) + 1.0
    first, last = _edges(law, shift, start, length)
    parts = [_runs(law, shift, first, last)]
    end, beyond, none = last[-1:] + 1.0, 0.0, np.zeros(1)
    log_moved, log_base = law.log_tail(end - shift), law.log_tail(end)
    if law.bounded_loss:
        # Losses fall to 0 there.
        parts.append((log_moved, log_base, none, _runs(law, shift, end, end)[3], none))
    else:
        beyond = max(math.exp(log_moved[0]), 5e-324)
    if shift % 2.0 == 0.0:
        middle = law.log_mass(np.array([0.5 * shift])) - math.log(2.0)
        parts.append((middle, middle, none, np.full(1, _ROUNDING), none))
    moved, base, low, high, off = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Blocks(moved, base, low, high, off + _MASS_ROUNDING, beyond)


def _edges(law: BlockLaw, shift: float, start: float, length: float) -> tuple[Float, Float]:
    """First and last numbers of the blocks."""
    power, finest = law.bounded_loss, law.finest
    firsts, far = [start], shift + (_FAR if power else _DEEP) * max(law.scale, 1.0)
    while firsts[-1] < far:
        k = firsts[-1]
        smooth = max(abs(k - shift), finest) if power else finest
        firsts.append(k + max(1.0, math.floor(length * smooth)))
    first = np.array(firsts)
    return first[:-1], first[1:] - 1.0


def _runs(law: BlockLaw, shift: float, first: Float, last: Float) -> tuple[Float, ...]:
    """Sums over up to seven numbers; over more those of the polynomial through seven points.

    With central differences ``d2, d4, d6`` of equal steps ``h`` around the middle, and the means of
    even powers of ``u``, the place in steps, the mean of that polynomial (Stirling's) is
    ``f + E[u^2] d2 / 2 + E[u^2 (u^2 - 1)] d4 / 24 + E[u^2 (u^2 - 1) (u^2 - 4)] d6 / 720``. What is
    off in a sum counts as the last term, which is at least 30 times the first that is left out,
    ``E[u^2 (u^2 - 1) (u^2 - 4) (u^2 - 9)] d8 / 40320``, unless ``d8 > d6``: the law would change by
    its own size within a step, a sixth of a block.
    """
    width = last - first + 1.0
    listed = width <= _POINTS
    place = np.arange(_POINTS)[:, None]
    step = np.maximum(width - 1.0, 1.0) / (_POINTS - 1.0)
    points = first + np.where(listed, np.minimum(place, width - 1.0), place * step)
    logs = [law.log_mass(np.abs(points - by).ravel()).reshape(points.shape) for by in (shift, 0.0)]
    # Means of even powers of the numbers of a block around its middle, in steps.
    square = width * width
    two = (square - 1.0) / 12.0 / step**2
    four = two * (3.0 * square - 7.0) / 20.0 / step**2
    six = two * (3.0 * square**2 - 18.0 * square + 31.0) / 112.0 / step**4
    weights = two / 2.0, (four - two) / 24.0, (six - 5.0 * four + 4.0 * two) / 720.0
    sums, off = [], np.zeros(width.size)
    for log_mass in logs:
        ratio = np.exp(log_mass - log_mass[0])
        each = np.where(place < width, ratio, 0.0).sum(axis=0)
        outer, far, near = ratio[0] + ratio[6], ratio[1] + ratio[5], ratio[2] + ratio[4]
        differences = (
            near - 2.0 * ratio[3],
            far - 4.0 * near + 6.0 * ratio[3],
            outer - 6.0 * far + 15.0 * near - 20.0 * ratio[3],
        )
        terms = [weight * part for weight, part in zip(weights, differences, strict=True)]
        mean = ratio[3] + terms[0] + terms[1] + terms[2]
        sums.append(log_mass[0] + np.log(np.where(listed, each, width * mean)))
        off = np.maximum(off, np.where(listed, 0.0, np.abs(terms[2]) / mean))
    loss = logs[0] - logs[1]
    bend = np.abs(loss[0] - 2.0 * loss[3] + loss[6])
    doubt = np.where(listed, 0.0, bend) + _ROUNDING
    return *sums, np.maximum(loss.min(axis=0) - doubt, 0.0), loss.max(axis=0) + doubt, off
