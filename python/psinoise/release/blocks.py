"""Uniform noise on more integers than are listed: blocks of integers that are equally likely.

Of a law that is level from the first cell to the edge nothing is lost by blocks but for the last
one, in which the edge is, and there the law falls a little earlier and a little later than it does.
A unimodal law is level where two halves of its width are as likely.

*What it costs.* Losses of level noise, an atom at 0 included, are 0 or infinite, so that its
profile has one value ``delta`` for all ``epsilon >= 0``: that of the total variation, which of a
unimodal law moved by ``J`` integers is the probability of the ``J`` innermost ones. A profile does
not increase with ``epsilon``, and what it is below 0 follows from what it is above. So a unimodal
table whose ``J`` innermost integers are no likelier than those of the law is dominated by it. Noise
is wider by ``2**-18``; an integer has more than ``2**20`` words, and rounding adds two words to
that of the center at most, ``2**-40`` and a word for a block to the others.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["width_of", "words_of"]

Words = NDArray[np.uint64]

# Blocks that are listed at most: their weights are above 2**47.
_MOST = 1 << 16
# Integers on either side at most, so that one has 2**20 words.
_FARTHEST = 1 << 42
# Of a probability: how near two halves of a level law are.
_LEVEL = 2.0**-40


class _Law(Protocol):
    @property
    def unimodal(self) -> bool: ...
    def iccdf(self, p: float) -> float: ...
    def ccdf(self, x: Any) -> Any: ...


def width_of(law: _Law, grid: float, count: int) -> int:
    """How many integers a block has, a power of two, where ``count`` are on one side of 0 and too
    many to be listed; 0 if the law is not level, or too wide."""
    if not (law.unimodal and count <= _FARTHEST):
        return 0
    width = 1 << (math.ceil(count / _MOST) - 1).bit_length()
    end = float(law.iccdf(0.0)) - grid
    center, middle, edge = (float(law.ccdf(x)) for x in (0.5 * grid, 0.5 * end, end))
    near, far = (center - middle) / (0.5 * (end - grid)), (middle - edge) / (0.5 * end)
    return width if abs(near - far) <= _LEVEL * far else 0


def words_of(law: _Law, grid: float, width: int, blocks: int, draws: int) -> Words:
    """Weights of 0 and of blocks, ``draws`` words in all, for a law that is level."""
    tails = np.asarray(law.ccdf((0.5 + width * np.arange(blocks + 1.0)) * grid), dtype=np.float64)
    # Differences of tails are right to 2**-36 of themselves.
    masses = np.minimum.accumulate(2.0 * (tails[:-1] - tails[1:]))
    listed = np.maximum(np.floor(masses * (draws * (1.0 - 2.0**-40))), 1.0).astype(np.uint64)
    center = max(int((1.0 - 2.0 * float(tails[0])) * draws), int(listed[0]) // (2 * width) + 2)
    each, rest = divmod(draws - center - int(listed.sum()), blocks)
    listed += np.uint64(each)
    listed[:rest] += np.uint64(1)
    return np.append(np.uint64(center), listed)
