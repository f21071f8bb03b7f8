"""From a law to the integers that are drawn from and accounted for.

A lattice law is ``2**63`` words shared out among ``|K| = 0, 1, ..., m - 1``: ``weights[k]`` of them
mean ``|K| = k``, and an independent fair bit is the sign. A tail continues the list without end:
its entries, the last ``repeated`` of them, hold the mass of all their copies, and each copy has one
more with the dyadic probability ``rho = ratio / 2**64``.

========== ================================================== =========================
tail       copy i of entry j                                  probability of copy i
========== ================================================== =========================
translate  the integer ``j + i repeated``                     ``(1 - rho) rho**i``
dilate     ``2**i`` integers from ``j 2**i``, equally likely  ``(1 - rho) rho**i``
blocks     the integer ``1 + (j - 1) w + i``, ``w = 1 / rho`` ``rho`` for ``i < w``
none                                                          1 for ``i = 0``
========== ================================================== =========================

A translated tail is geometric, a dilated one a power law; ``repeated`` is ``m / 2`` there, and
``m`` a power of two, so that the copies cover each integer once. Uniform noise that is too wide for
a list is in blocks of ``w``, a power of two: of it all entries but the first are blocks.

For a unimodal law the probabilities of ``0, 1, 2, ...`` do not increase, and this is a statement
about integers: `is_unimodal` has it, and `rounded` keeps it. Where the law has a geometric tail
the largest loss of the integers is no larger than that of the law, as ``psinoise.release.ratios``
proves.

A bounded law leaves its support with a probability that is its delta at any epsilon, and some are
made for just that delta. Of such a law noise is drawn that is wider by ``2**-18``: the law at a
sensitivity that is as much smaller. This takes ``2**-18`` of that delta and as much of the losses,
more than roundings add where a weight at the edge is above ``2**20`` words over its loss. Weights
are rounded down, and what is left goes to the inner ones, one word each: none that a shift moves
out of the support is heavier.

Laws without a largest loss are widened too: where the least listed weights decide, at deltas of
``1e-12``, roundings were 5e-9 of epsilon, and 2e-6 at ``1e-14`` for the widest noise; and copies of
a power law are blocks of equal probability, whose losses are not those of the law. The share is
the least of seven, ``2**-18`` to ``2**-6``, for which the table costs no more than the law in any
composition; ``psinoise.release.followed`` decides this from both profiles. A geometric tail falls
as the wider law does where it begins, and so no faster than that law does anywhere beyond.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise._backend import core
from psinoise.errors import DomainError
from psinoise.release.blocks import width_of, words_of
from psinoise.release.grid import LARGEST_GRID
from psinoise.release.ratios import LARGEST_RATIO, covering, joined, raised

__all__ = [
    "DRAWS",
    "MOST_LISTED",
    "ONE",
    "Law",
    "Weights",
    "coarser",
    "fits",
    "is_unimodal",
    "weights_of",
]

Float = NDArray[np.float64]

#: The sum of the weights, and what a ratio is a numerator over.
DRAWS, ONE = 1 << 63, 1 << 64

#: By what factors noise may be wider than its law; power laws take other ones than the first.
WIDER = tuple(1.0 + 2.0**-k for k in range(18, 5, -2))

#: The most integers that are listed.
MOST_LISTED = 1 << 20

# Integers are listed down to this probability: their weights are above 2**24, so that rounding
# changes them by less than 2**-24 of themselves and losses by no more.
_LEAST = 2.0**-39
# What may be beyond all of them, where they are not continued by a power law.
_RARE = 2.0**-20
# Where more than so many units of the spread are above that, a power law is looked for: from so
# many units on, and with probabilities that fall by the same factor, but for so much, in one octave
# and in one three octaves later.
_LONG, _FAR, _SELF_SIMILAR = 64, 32, 0.02
# What is listed of it, for copies to begin far out: so many units, and times the shift, if it is no
# longer than a list that accountants pass through in a moment.
_UNITS, _SHIFTS, _QUICK = 128, 16, 1 << 16
# The same of a law that states its power law, whose copies are a little too heavy instead.
_STATED = 0.005
# The last listed probability of a law that states a power law: weights are above 2**11.
_RAREST = 2.0**-52
# Periods of a law that are added up one by one.
_PERIODS = 1 << 12
_LOG_TWO = float.fromhex("0x1.62e42fefa39efp-1")
# Room for the rounding of sums: the weight that takes the rest never loses by it.
_SHRINK = 1.0 - 2.0**-50


class Law(Protocol):
    @property
    def unimodal(self) -> bool: ...
    @property
    def spread(self) -> float: ...
    @property
    def period(self) -> float: ...
    @property
    def decay(self) -> float: ...
    @property
    def repeats_from(self) -> float: ...
    @property
    def tail_index(self) -> float: ...
    @property
    def adds_up(self) -> bool: ...
    @property
    def own_grid(self) -> float | None: ...
    def iccdf(self, p: float) -> float: ...
    def ccdf(self, x: Any) -> Any: ...
    def widened(self, factor: float) -> Any: ...
    def lattice_masses(self, grid: float, start: int, stop: int) -> Float: ...


class Weights(NamedTuple):
    """Integer weights and their tail; the module has the meaning."""

    listed: NDArray[np.uint64]
    tail: str
    repeated: int
    ratio: int


class _Plan(NamedTuple):
    """How many integers are listed, and how they go on."""

    listed: int
    tail: str
    repeated: int
    ratio: float


def frozen(words: ArrayLike) -> NDArray[np.uint64]:
    """Weights that nobody can change: an array of bytes, which cannot be made writable again."""
    return np.frombuffer(np.asarray(words, dtype=np.uint64).tobytes(), dtype=np.uint64)


def fits(law: Law, grid: float) -> bool:
    """Whether a law can be listed on the lattice of a grid."""
    return _plan(law, grid) is not None


def coarser(law: Law, grid: float) -> float:
    """The least power of two times a grid on which a law can be listed.

    Raises
    ------
    DomainError
        If it is beyond the largest grid.
    """
    while not fits(law, grid):
        grid *= 2.0
        if grid > LARGEST_GRID:
            raise DomainError(f"noise must be narrower to be put on a lattice, got {law!r}")
    return grid


def weights_of(law: Law, grid: float, cells: int = 0, wider: float = WIDER[0]) -> Weights:
    """The weights of a law on the lattice of a grid.

    Parameters
    ----------
    law, grid
    cells
        how far neighbors will be apart, where it is known
    wider
        by what factor noise is wider than the law, one of `WIDER`; where the tail is geometric it
        is not

    Raises
    ------
    DomainError
        If the lattice is so fine that more than ``MOST_LISTED`` integers would have to be listed,
        and the law is not level (``psinoise.release.blocks``).
    """
    plan = _plan(law, grid, cells)
    if plan is None and law.own_grid is not None:
        raise DomainError(
            f"noise must be narrower, by a factor of some {_too_wide(law, grid):.2g}, for 2**20 of "
            f"its values to reach to where its tail sets in, got {law!r}"
        )
    if plan is None:
        raise DomainError(
            f"grid must be at least {coarser(law, grid)!r} for {law!r} (of which 2**20 multiples "
            f"can be listed), got {grid!r}"
        )
    drawn, narrowed = law, grid
    if plan.tail in ("none", "blocks") or law.decay == 0.0:
        drawn, narrowed = _widened(law, grid, wider)
    if plan.tail == "blocks":
        listed = words_of(drawn, narrowed, round(1.0 / plan.ratio), plan.repeated, DRAWS)
        return Weights(listed, plan.tail, plan.repeated, int(plan.ratio * ONE))
    masses = drawn.lattice_masses(narrowed, 0, plan.listed)
    ratio, unit = plan.ratio, None
    if plan.tail == "dilate" and law.tail_index > 0.0:
        masses = covering(masses, law.tail_index)
    elif plan.tail == "dilate":
        beyond = drawn.lattice_masses(narrowed, plan.listed, plan.listed + 2)
        share = _share(drawn, narrowed, plan.listed, plan.repeated)
        masses, ratio = joined(masses, beyond, share)
    elif plan.tail == "translate" and law.decay == 0.0:
        ratio = _falls(drawn, narrowed, plan.listed)
    elif plan.tail == "translate":
        (masses, ratio), unit = raised(masses, plan.repeated, ratio), 1.0
    return rounded(masses, plan.tail, plan.repeated, int(ratio * ONE), law.unimodal, unit)


def _plan(law: Law, grid: float, cells: int = 0) -> _Plan | None:
    end = float(law.iccdf(0.0))
    if end < math.inf:
        return _bounded(law, grid, int(min(end * WIDER[0] / grid + 1.5, LARGEST_GRID)))
    reach = _reach(law, grid)
    if reach * grid > _LONG * law.spread or law.tail_index > 0.0:
        dilated = _dilated(law, grid, cells)
        if dilated is not None:
            return dilated
    # Of a law far wider than the grid all integers are rare, and not only those of the tail.
    if reach >= MOST_LISTED or law.ccdf((reach - 0.5) * grid) > _RARE:
        return None
    if law.decay == 0.0:
        return _Plan(reach, "translate", 1, _falls(law, grid, reach))
    # A period, in whole cells; where it is less than one, the tail falls as on average.
    repeated = max(1, math.ceil(Fraction(law.period) / Fraction(grid)))
    reach = max(reach, repeated + 1 + math.ceil(law.repeats_from / grid))
    if reach >= MOST_LISTED:
        return None
    fall = core.exponential(np.array([-law.decay * max(law.period, grid)]), np.zeros(1))
    return _Plan(reach, "translate", repeated, float(fall[0]))


def _bounded(law: Law, grid: float, count: int) -> _Plan | None:
    if count < MOST_LISTED:
        return _Plan(count, "none", 0, 0.0)
    width = width_of(law, grid, count)
    blocks = -(-(count - 1) // width) if width else 0
    return _Plan(1 + blocks, "blocks", blocks, 1.0 / width) if width else None


def _widened(law: Law, grid: float, wider: float) -> tuple[Law, float]:
    """A law and a grid for noise that is wider against the grid."""
    return (law, grid / wider) if law.own_grid is None else (law.widened(wider), grid)


def _share(law: Law, grid: float, count: int, repeated: int) -> float:
    """How much of the tail is beyond the listed integers: so that these have the probabilities of
    the law, and all that follow together have too."""
    whole, rest = (float(law.ccdf((k - 0.5) * grid)) for k in (count - repeated, count))
    # A law far narrower than a cell: any tail will do.
    return rest / whole if whole > 0.0 else 0.0


def _falls(law: Law, grid: float, count: int) -> float:
    """By how much a tail without a largest loss falls, beyond so many integers, in a cell."""
    share = _share(law, grid, count, 1)
    if not law.adds_up:
        return share
    return max(share, _above(_mass(law, grid, count) / _mass(law, grid, count - 1)))


def _mass(law: Law, grid: float, k: int) -> float:
    if grid > _PERIODS * law.period > 0.0:
        # One by one these would take long, and no grid is chosen on which they are so many.
        return 2.0 * float(law.ccdf((k - 0.5) * grid) - law.ccdf((k + 0.5) * grid))
    return float(law.lattice_masses(grid, k, k + 1)[0])


def _too_wide(law: Law, grid: float) -> float:
    """By what factor a law is wider than ``MOST_LISTED`` integers, or twice that."""
    if law.tail_index > 0.0:
        set_in = _dilated(law, grid, 0, 1 << 60, 0.0)
        wanted = 2.0 * _FAR * law.spread / grid if set_in is None else float(set_in.listed)
        return wanted / MOST_LISTED
    factor = 1
    # Of a law that is narrower masses are as much larger; of a very wide one all are small.
    while (
        factor * MOST_LISTED * grid < law.spread
        or _mass(law, grid, factor * MOST_LISTED) * factor >= _LEAST
    ):
        factor *= 2
    return float(factor)


def _reach(law: Law, grid: float) -> int:
    """The first integer that is rarer than ``_LEAST``, from 2 to ``MOST_LISTED``."""
    below, reach = 1, 2
    while reach < MOST_LISTED and _mass(law, grid, reach) >= _LEAST:
        below, reach = reach, 2 * reach
    while reach - below > 1 and reach > 2:
        middle = (below + reach) // 2
        if _mass(law, grid, middle) >= _LEAST:
            below = middle
        else:
            reach = middle
    return reach


def _dilated(
    law: Law, grid: float, cells: int, most: int = MOST_LISTED, rarest: float = _RAREST
) -> _Plan | None:
    """A power law from ``count / 2`` on, if there is one, with ``count`` up to the most."""
    similar = _SELF_SIMILAR if law.tail_index == 0.0 else _STATED
    units = law.spread / grid
    wanted = min(max(_UNITS * units, _SHIFTS * cells), _QUICK)
    count = max(64, 1 << math.ceil(math.log2(max(_FAR * units, wanted, 1.0))))
    while count <= most:
        near, first, before, last = (
            _mass(law, grid, k) for k in (count // 2, count, 8 * count, 16 * count)
        )
        if near > 0.0 and last > 0.0:
            change = (first / near) * (before / last)
            if abs(change - 1.0) < similar and 2.0 * first < near:
                half = count // 2
                if law.tail_index == 0.0:
                    return _Plan(count, "dilate", half, 0.0)
                if first < rarest:
                    return None
                ratio = max(_in_the_end(law.tail_index), _above(2.0 * first / near))
                return _Plan(count, "dilate", half, ratio)
        count *= 2
    return None


def _above(fall: float) -> float:
    """The same, and not below by the rounding of a quotient."""
    return fall * (1.0 + 2.0**-48)


def _in_the_end(index: float) -> float:
    """By how much copies of a power law fall from one octave to the next, far out."""
    return _above(float(core.exponential(np.array([-index * _LOG_TWO]), np.zeros(1))[0]))


def rounded(
    masses: Float,
    tail: str,
    repeated: int,
    ratio: int,
    unimodal: bool,
    unit: float | None = None,
) -> Weights:
    """Integer weights for masses. All rounding is downwards; the largest weight, or in a bounded
    law each of the inner ones, takes the rest.

    A mass is as many words as ``unit`` says; by default all of them are ``2**63``.
    """
    if unimodal:
        masses = _non_increasing(masses)
    if tail != "none":
        masses = masses.copy()
        ratio = min(max(ratio, 1), int(LARGEST_RATIO * ONE))
        masses[-repeated:] /= (ONE - ratio) / 2.0**64
    if unit is None:
        # Correctly rounded, and so the same on every machine.
        unit = 2.0**63 / math.fsum(masses.tolist()) * _SHRINK
    listed = np.floor(masses * unit).astype(np.uint64)
    if tail == "none":
        listed = listed[: int(np.flatnonzero(listed)[-1]) + 1]
    listed = np.maximum(listed, np.uint64(1))
    if tail == "none":
        listed[: max(0, DRAWS - int(listed.sum()))] += np.uint64(1)
    found = _settled(listed, unimodal, repeated, ratio)
    if unimodal and tail != "none":
        ratio = _continued(found, tail, repeated, ratio)
        listed[-repeated:] = np.minimum(listed[-repeated:], found[-repeated:])
        found = _settled(listed, unimodal, repeated, ratio)
    return Weights(found, tail, repeated, ratio)


def _non_increasing(masses: Float) -> Float:
    return np.append(masses[:1], np.minimum.accumulate(masses[1:]))


def _settled(
    listed: NDArray[np.uint64], unimodal: bool, repeated: int, ratio: int
) -> NDArray[np.uint64]:
    """The same, and what is left of the words for the largest weight: in a unimodal law that of 0.

    Where that is too little for such a law, the others are cut at a level, as little as that takes:
    as many as reach it are equal then, but for a word.
    """
    found = listed.copy()
    at = 0 if unimodal else int(np.argmax(listed))
    found[at] = 0
    found[at] = DRAWS - int(found.sum())
    inner, tail = np.split(listed[1:], [listed.size - repeated - 1])
    most = max(int(inner.max(initial=0)), -(-int(tail.max(initial=0)) * (ONE - ratio) // ONE))
    if not unimodal or 2 * int(found[0]) >= most:
        return found
    level = _level(inner, tail, ratio, DRAWS, most)
    tail = np.minimum(tail, np.uint64(_of_copies(level, ratio)))
    left = DRAWS - int(tail.sum())
    level = _level(inner, tail[:0], ratio, left, most)
    inner = np.minimum(inner, np.uint64(level))
    left -= int(inner.sum()) + -(-(level + 1) // 2)
    if inner.size and left > 0:
        inner[:left] += np.uint64(1)
    found[1:] = np.concatenate([inner, tail])
    found[0] = DRAWS - int(found[1:].sum())
    return found


def _level(
    inner: NDArray[np.uint64], tail: NDArray[np.uint64], ratio: int, words: int, most: int
) -> int:
    """The largest one below ``most`` at which words are enough for 0 too.

    The weight of k is that of k and -k together, and in the tail that of all copies.
    """
    low, high = 0, most
    while high - low > 1:
        level = (low + high) // 2
        needed = -(-level // 2) + int(np.minimum(inner, np.uint64(level)).sum())
        needed += int(np.minimum(tail, np.uint64(_of_copies(level, ratio))).sum())
        low, high = (level, high) if needed <= words else (low, level)
    return low


def _of_copies(level: int, ratio: int) -> int:
    """What all copies have, of which the first has a level."""
    return min(level * ONE // (ONE - ratio), DRAWS)


def _continued(listed: NDArray[np.uint64], tail: str, repeated: int, ratio: int) -> int:
    """Make a tail of floored integers non-increasing again, and return its ratio.

    From copy to copy by a smaller ratio, and then where the copies begin by smaller weights, which
    leaves the first as it is.
    """
    first, last = int(listed[-repeated]), int(listed[-1])
    wider = 2 if tail == "dilate" else 1
    ratio = min(ratio, last * wider * ONE // first)
    before = listed.size - repeated - 1
    most = int(listed[before]) * (2 if before == 0 else 1) * ONE // (ONE - ratio)
    if most < DRAWS:
        np.minimum(listed[-repeated:], np.uint64(most), out=listed[-repeated:])
    return ratio


def is_unimodal(weights: Weights) -> bool:
    """Whether ``P(K = 0) >= P(K = 1) >= ...`` without end: decided on the integers."""
    listed, tail, repeated, ratio = weights
    start = listed.size - repeated
    if tail == "blocks":
        falls = not (listed[2:] > listed[1:-1]).any()
        return falls and int(listed[1]) * ratio <= 2 * int(listed[0]) * ONE
    if start > 1 and int(listed[1]) > 2 * int(listed[0]):
        return False
    parts = (listed[1:start], listed[max(start, 1) :])
    if any((part[1:] > part[:-1]).any() for part in parts):
        return False
    if tail == "none":
        return True
    before = int(listed[start - 1]) * (2 if start == 1 else 1)
    if int(listed[start]) * (ONE - ratio) > before * ONE:
        return False
    wider = 2 if tail == "dilate" else 1
    return int(listed[start]) * ratio <= int(listed[-1]) * wider * ONE
