"""Where the bins of a loss end: twin of ``csrc/losses/loss_edges.cpp``."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

# Blocks of 2^4 nodes share one width, which divides them; the widest bins have 2^8 nodes.
_BLOCK, _WIDEST = 4, 8
# What all wide bins together may add to the bias, as a share, if each adds all that it may; they
# add a tenth of that.
_SHARE = 1.0
# Where bins become wider the lower bound loses mass times width: little beside the bias of one
# width if (t + 1) times that is more than this, and else where masses are so much smaller.
_STEEP = 0.005
# Tilts change by no more than e to this over a bin.
_LARGEST_EXPONENT = 40.0


def graded_edges(
    lowest: Float,
    highest: Float,
    log_mass: Float,
    step: float,
    offset: float,
    rounding: float,
    tilt: float,
    log_norm: float,
) -> NDArray[np.int64]:
    """Nodes that end bins of widths 1, 2, 4, ..., 256 steps, by the tilted mass around them."""
    if not lowest.size:
        raise ValueError("there must be at least one part")
    # A loss that is a node but for rounding begins a bin there.
    first = math.floor((lowest.min() + rounding - offset) / step)
    last = math.floor((highest.max() + rounding - offset) / step) + 1
    last = max(last, first + 2)
    # Whole bins of the largest width.
    begin = first >> _WIDEST << _WIDEST - _BLOCK
    end = (last >> _WIDEST) + 1 << _WIDEST - _BLOCK
    widest = math.floor(math.log2(max(_LARGEST_EXPONENT / ((tilt + 1.0) * step), 1.0)))
    widest = min(_WIDEST, widest)
    # The widest power of two with mass * width^2 e^{t (width - 1)} at most the part's own part of
    # the share.
    exponent = np.maximum((log_mass + tilt * highest - log_norm) / math.log(2.0), -997.0)
    share = _SHARE * min((tilt + 1.0) * step / _STEEP, 1.0)
    ratio = math.log2(share / lowest.size) - exponent
    sizes = np.arange(1, widest + 1)
    needed = 2.0 * sizes + (tilt + 1.0) * step / math.log(2.0) * (2.0**sizes - 1.0)
    power = np.searchsorted(needed, ratio, side="right")
    low = (np.floor((lowest - offset) / step).astype(np.int64) >> _BLOCK) - begin
    high = (np.floor((highest - offset) / step).astype(np.int64) >> _BLOCK) - begin
    blocks = np.full(end - begin, widest)
    # A block is as fine as the finest part that reaches into it or next to it.
    for k in range(lowest.size):
        reached = slice(max(low[k] - 1, 0), high[k] + 2)
        blocks[reached] = np.minimum(blocks[reached], power[k])
    # Aligned blocks that allow it are one bin.
    wide = np.minimum(blocks, _BLOCK)
    for size in range(_BLOCK + 1, _WIDEST + 1):
        together = 1 << size - _BLOCK
        least = blocks.reshape(-1, together).min(axis=1)
        wide = np.where(np.repeat(least, together) >= size, size, wide)
    edges = np.arange(begin << _BLOCK, end << _BLOCK)
    edges = edges[edges % (1 << np.repeat(wide, 1 << _BLOCK)) == 0]
    edges = edges[(edges > first) & (edges < last)]
    return np.concatenate([[first], edges, [last]]).astype(np.int64)
