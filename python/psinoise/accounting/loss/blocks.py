"""One use of noise on the whole numbers whose masses have a formula: a loss of blocks of numbers.

A wide law without end has too many numbers to list. Those from half of the shift on are cut into
blocks: single numbers near the shift, then runs of ``2**-8`` of the distance from it, on which the
loss hardly changes. The rest is their mirror image, with the two laws exchanged.

*From above* the mass of a block is moved to the ends ``[low, high]`` of an interval that contains
its losses, so that both laws keep their masses. The expectation of a convex function of the
likelihood ratio grows by that, so that the pair dominates, and the largest ``high`` is the pure
epsilon. *From below* a block is one answer: merging answers is post-processing.

``low`` and ``high`` are those of five points of a block, widened by its second difference: wrong
where the loss bends far more in a block of ``2**-8`` of a length on which it is smooth, which does
not happen (``tests/test_discrete_stable.py`` compares with all numbers). The rounding of the
masses, 1e-13, is added to the ends.

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
# Logarithms of masses are right to this.
_ROUNDING = 1e-12
# The last block goes on without end: losses there are below 1e-12 of the largest one. Of a law that
# falls faster than any power less than 1e-300 is beyond.
_FAR, _DEEP = 2.0**40, 52.0
_GAUSS = math.sqrt(0.6)


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
    """Logs of the masses of each block under both laws, the ends of its losses, and the mass under
    the moved law of what is beyond, where losses have no bound."""

    moved: Float
    base: Float
    low: Float
    high: Float
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


def _one_answer(blocks: _Blocks) -> tuple[Float, Float]:
    loss = np.maximum(blocks.moved - blocks.base - _ROUNDING, 0.0)
    return np.append(blocks.base, blocks.base + loss), np.append(loss, -loss)


def _two_answers(blocks: _Blocks) -> tuple[Float, Float]:
    # With masses b e^low and b e^high of the moved law the share of the upper one is what makes
    # them add up to a.
    low, high = blocks.low, blocks.high
    loss = np.clip(blocks.moved - blocks.base, low, high)
    share = np.expm1(loss - low) / np.expm1(high - low)
    with np.errstate(divide="ignore"):
        mass = np.append(blocks.base + np.log1p(-share), blocks.base + np.log(share))
    loss = np.append(low, high)
    kept = mass > -np.inf
    mass, loss = mass[kept], loss[kept]
    return np.append(mass, mass + loss), np.append(loss, -loss)


@kept()
def _blocks(law: BlockLaw, shift: float, length: float) -> _Blocks:
    """Those from half of the shift on, and half of the mass of a number right on it."""
    start = math.floor(0.5 * shift) + 1.0
    first, last = _edges(law, shift, start, length)
    single = last == first
    parts = [_single(law, shift, first[single]), _runs(law, shift, first[~single], last[~single])]
    end, beyond = last[-1:] + 1.0, 0.0
    log_moved, log_base = law.log_tail(end - shift), law.log_tail(end)
    if law.bounded_loss:
        # Losses fall to 0 there.
        parts.append((log_moved, log_base, np.zeros(1), _single(law, shift, end)[3]))
    else:
        beyond = max(math.exp(log_moved[0]), 5e-324)
    if shift % 2.0 == 0.0:
        middle = law.log_mass(np.array([0.5 * shift])) - math.log(2.0)
        parts.append((middle, middle, np.zeros(1), np.full(1, _ROUNDING)))
    moved, base, low, high = (np.concatenate(c) for c in zip(*parts, strict=True))
    return _Blocks(moved, base, low, high, beyond)


def _edges(law: BlockLaw, shift: float, start: float, length: float) -> tuple[Float, Float]:
    """First and last numbers of the blocks."""
    power = law.bounded_loss
    firsts, far = [start], shift + (_FAR if power else _DEEP) * max(law.scale, 1.0)
    while firsts[-1] < far:
        k = firsts[-1]
        smooth = max(abs(k - shift), law.finest) if power else law.finest
        firsts.append(k + max(1.0, math.floor(length * smooth)))
    first = np.array(firsts)
    return first[:-1], first[1:] - 1.0


def _single(law: BlockLaw, shift: float, k: Float) -> tuple[Float, ...]:
    moved, base = law.log_mass(np.abs(k - shift)), law.log_mass(k)
    loss = moved - base
    return moved, base, np.maximum(loss - _ROUNDING, 0.0), loss + _ROUNDING


def _runs(law: BlockLaw, shift: float, first: Float, last: Float) -> tuple[Float, ...]:
    """Sums by Gauss' rule of three points on ``[first - 1/2, last + 1/2]``, less a 24th of the
    second derivative of each mass, which is the next term of Euler and Maclaurin."""
    width = last - first + 1.0
    middle = 0.5 * (first + last)
    off = 0.5 * width * _GAUSS
    points = np.stack([first, middle - off, middle, middle + off, last])
    logs = [law.log_mass(np.abs(points - by).ravel()).reshape(points.shape) for by in (shift, 0.0)]
    sums = []
    for log_mass in logs:
        ratio = np.exp(log_mass - log_mass[2])
        mean = (5.0 * ratio[1] + 8.0 + 5.0 * ratio[3]) / 18.0
        bend = (ratio[0] - 2.0 + ratio[4]) / (0.5 * (width - 1.0)) ** 2
        sums.append(log_mass[2] + np.log(width * (mean - bend / 24.0)))
    loss = logs[0] - logs[1]
    doubt = np.abs(loss[0] - 2.0 * loss[2] + loss[4]) + _ROUNDING
    return *sums, np.maximum(loss.min(axis=0) - doubt, 0.0), loss.max(axis=0) + doubt
