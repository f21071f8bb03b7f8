"""Lattices of losses: twins of ``csrc/losses/loss_edges.cpp``, of the contraction in
``csrc/kernels/pieces.cpp`` and of ``csrc/kernels/compose.cpp``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Complex = NDArray[np.complex128]

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
_BALANCE_ROUNDING, _WIDEST_GROWTH = 2e-13, 1e200


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


def _balance(mass: Float, excess: Float, room: Float, falling: Float) -> tuple[Float, int, float]:
    """Shares that do not go up, from both ends towards the largest bin; and the bin of which a part
    goes down by one node more than the rest of its share, and that part: 0 of the first if none.

    `falling` has the excess of each bin over the level before its own.
    """
    count, meeting = mass.size, max(int(np.argmax(mass)), 1)
    share = np.zeros(count)

    def needed(j: int) -> float:
        """At a node, for what comes up to it: not a number if that is nothing of an endless room,
        which is not below anything."""
        return float((1.0 - share[j - 1]) * room[j - 1])

    def from_left(j: int) -> float:
        return needed(j) / excess[j] if needed(j) < excess[j] else 1.0

    for j in range(1, meeting):
        share[j] = from_left(j)
    share[-1] = 1.0
    for j in range(count - 1, meeting, -1):
        wanted = share[j] * excess[j]
        share[j - 1] = 1.0 - wanted / room[j - 1] if wanted < room[j - 1] else 0.0
    if meeting == count - 1 or needed(meeting) < share[meeting] * excess[meeting]:
        share[meeting] = from_left(meeting)
        meeting += 1
    if meeting + 1 >= count:
        return share, 0, 0.0
    missing = needed(meeting) - share[meeting] * excess[meeting]
    far = meeting + 1
    # It is not there for the node between, to which less goes up.
    less = excess[far] / room[meeting]
    most = min(share[far], (1.0 - share[meeting]) / less)
    part = missing / (falling[far] + less * excess[meeting])
    # Nothing pays for an endless need.
    if not (part > 0.0 and most > 0.0 and missing < np.inf):
        return share, 0, 0.0
    part = min(part, most)
    share[meeting] = min(share[meeting] + part * less, 1.0)
    return share, far, part


def balanced_nodes(mass: Float, excess: Float, widths: Float, tilt: float) -> Float:
    """Masses of the nodes of the balanced contraction (``frequencies.lattice`` of accounting)."""
    if mass.size < 2:
        raise ValueError("there must be at least two bins")
    with np.errstate(all="ignore"):
        rise, growth = np.exp(tilt * widths), np.expm1(widths)
        held = (1.0 + growth) * excess
        deficit = np.maximum(mass * growth - held + _BALANCE_ROUNDING * held, 0.0)
        room = np.where(growth < _WIDEST_GROWTH, deficit, np.inf) * rise
        gone = np.where(growth < _WIDEST_GROWTH, growth / (1.0 + growth), 1.0)
        falling = np.zeros(mass.size)
        falling[1:] = (excess[1:] / (1.0 + growth[:-1]) + mass[1:] * gone[:-1]) / rise[:-1]
        share, far, part_of_far = _balance(mass, excess, room, falling)
        up, down = 1.0 - share, share.copy()
        down[far] -= part_of_far
        need = up * room
        paid = np.append(down[1:] * excess[1:], 0.0)
        paid[far - 2] += part_of_far * falling[far]
        part = np.where(need > 0.0, up * (paid / need), 0.0)
        # No part of an endless room is a part of it.
        part = np.where(need <= paid * (1.0 + 1e-14), up, part)
        nodes = np.zeros(mass.size + 1)
        nodes[:-1] = down * mass + (up - part) * mass
        nodes[1:] += np.where(part > 0.0, part * mass * rise, 0.0)
        nodes[far - 1] += part_of_far * mass[far] / rise[far - 1]
    return nodes


@dataclass(frozen=True)
class Transform:
    """Real transforms of one length, a power of two or three times one."""

    size: int

    def __post_init__(self) -> None:
        even = self.size // 3 if self.size % 3 == 0 and self.size >= 12 else self.size
        if even < 2 or even & (even - 1):
            raise ValueError("size must be a power of two, or three times one")

    def compose_into(self, masses: Float, count: int, product: Complex) -> None:
        """``product *= rfft(masses) ** count``, the power by repeated squaring."""
        if masses.shape != (self.size,) or product.shape != (self.size // 2 + 1,):
            raise ValueError("masses or product has the wrong size")
        base = np.fft.rfft(masses)
        with np.errstate(under="ignore"):
            while True:
                if count & 1:
                    product *= base
                count >>= 1
                if count == 0:
                    return
                base = base * base

    def inverse(
        self, spectra: Complex, factors: Complex | None = None, out: Float | None = None
    ) -> Float:
        """Sums over the frequencies of both signs; spectra end in zeros that are left out."""
        if not 1 <= spectra.shape[-1] <= self.size // 2 + 1:
            raise ValueError("spectra have the wrong size")
        if factors is not None and factors.shape != spectra.shape[-1:]:
            raise ValueError("factors have the wrong size")
        rows = spectra if factors is None else spectra * factors
        values = np.fft.irfft(rows, self.size, norm="forward")
        if out is None:
            return values
        if out.shape != values.shape:
            raise ValueError("out has the wrong shape")
        out[...] = values
        return out
