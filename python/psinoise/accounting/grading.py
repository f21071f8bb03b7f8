"""Edges of loss bins: every node where the tilted mass lies, few where there is next to none.

The bias of both bounds is a sum over bins of mass times width squared (``bounds``), so a bin that
holds little mass may be wide. Both constructions hold for any widths; what is chosen here only
decides how close they come.
"""

from __future__ import annotations

import math

import numpy as np

from psinoise.accounting.bins import Dense, Index, Mask

# Blocks of 2^8 nodes share one width, which divides them.
_BLOCK = 8
# What all wide bins together may add to the bias, as a share.
_SHARE = 0.1
# The bias is quadratic in the width only while (t + 1) times it is small.
_LARGEST_WIDTH = 0.25


def even_edges(source: Dense, chosen: Mask, lattice: tuple[float, float]) -> Index:
    """Every node from below the smallest to above the largest of the chosen losses."""
    first, last = _ends(source, chosen, lattice)
    return np.arange(first, last + 1)


def graded_edges(
    source: Dense, chosen: Mask, lattice: tuple[float, float], tilt: float, log_norm: float
) -> Index:
    """Nodes that end bins of widths 1, 2, 4, ..., 256 steps, by the tilted mass around them.

    Parameters
    ----------
    source, chosen
        the loss of one step, and which of its panels and atoms count
    lattice
        step and offset
    tilt, log_norm
        of the tilted masses, as in `Bins`
    """
    first, last = _ends(source, chosen, lattice)
    step, offset = lattice
    begin, end = first >> _BLOCK, (last >> _BLOCK) + 1
    tilted = np.exp(source.log_mass + tilt * source.highest - log_norm)[chosen]
    # The widest power of two with mass * width^2 at most the panel's part of the share.
    ratio = math.log2(_SHARE / tilted.size) - np.log2(np.maximum(tilted, 1e-300))
    widest = math.floor(math.log2(max(_LARGEST_WIDTH / ((tilt + 1.0) * step), 1.0)))
    power = np.clip(np.floor(0.5 * ratio), 0, min(_BLOCK, widest)).astype(np.int64)
    low = (np.floor((source.lowest[chosen] - offset) / step).astype(np.int64) >> _BLOCK) - begin
    high = (np.floor((source.highest[chosen] - offset) / step).astype(np.int64) >> _BLOCK) - begin
    blocks = np.full(end - begin, min(_BLOCK, widest))
    # A block is as fine as the finest panel or atom that reaches into it or next to it.
    long = high > low
    for k in np.flatnonzero(long):
        reached = slice(max(low[k] - 1, 0), high[k] + 2)
        blocks[reached] = np.minimum(blocks[reached], power[k])
    for beside in (-1, 0, 1):
        block = np.clip(low[~long] + beside, 0, blocks.size - 1)
        np.minimum.at(blocks, block, power[~long])
    count = 2 ** (_BLOCK - blocks)
    start = np.repeat(begin + np.arange(end - begin), count) << _BLOCK
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    edges = start + (within << np.repeat(blocks, count))
    edges = edges[(edges > first) & (edges < last)]
    return np.concatenate([[first], edges, [last]]).astype(np.int64)


def _ends(source: Dense, chosen: Mask, lattice: tuple[float, float]) -> tuple[int, int]:
    step, offset = lattice
    # A loss that is a node but for rounding begins a bin there.
    first = math.floor((source.lowest[chosen].min() - offset + source.rounding) / step)
    last = math.floor((source.highest[chosen].max() - offset + source.rounding) / step) + 1
    return first, max(last, first + 2)
