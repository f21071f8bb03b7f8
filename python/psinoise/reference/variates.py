"""Variates from further words: twin of ``csrc/kernels/variates.hpp``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psinoise.numerics.bits import double_from
from psinoise.numerics.elementary import LOG2_HI, LOG2_LO, logarithm
from psinoise.reference.stream import FurtherWords, Words64

_DEEPEST = 2880
_ONE = np.uint64(0x3FF0000000000000)


def exponential_variates(
    words: Words64, further: FurtherWords, which: NDArray[np.intp]
) -> NDArray[np.float64]:
    """``-log(u)`` for the elements ``which``, whose next words are given."""
    zeros = np.zeros(which.shape, dtype=np.int64)
    words = words.copy()
    empty = (words == 0) & (zeros < _DEEPEST)
    while empty.any():
        zeros[empty] += 64
        words[empty] = further.next(which[empty])
        empty = (words == 0) & (zeros < _DEEPEST)
    lengths = np.array([int(word).bit_length() for word in words], dtype=np.int64)
    zeros = np.where(words != 0, zeros + 64 - lengths, zeros)
    mantissa = double_from((further.next(which) >> np.uint64(12)) | _ONE)
    halvings = (zeros + 1).astype(np.float64)
    return np.asarray(halvings * LOG2_HI + (halvings * LOG2_LO - logarithm(mantissa)))
