"""Panels on which a privacy loss is a polynomial, as ``csrc/losses/loss_panels.cpp`` finds them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: ``left``, ``right``, log Q and the loss at the nodes, whether the loss is constant, and whether
#: outputs do not resolve the panel.
Panels = tuple[Float, Float, Float, Float, Mask, Mask]
#: log Q, the loss without sampling, and the loss.
Sample = Callable[[Float], tuple[Float, Float, Float]]

_ULP = 2.0**-52
_LARGEST_RANGE = 8.0
_LARGEST_COEFFICIENT = 3e-8
_MOST_HALVINGS = 4
_ROUNDED_NODES = 8.0
_MOST_ROUNDS = 60
# Of the outputs of a panel, the width of the narrowest that is cut: a shift that is large beside
# the noise takes digits from the distance to its center.
_NARROWEST = 2.0**-36
# Error of log P from which its density is lost.
_LOST_DIGITS = 0.05


def refined_panels(
    sample: Sample, points: Float, last: Float, edges: Float, floor: float, close: float = 0.0
) -> Panels:
    """Panels between the edges, cut until each is fine or narrow, for any way to evaluate one.

    ``close`` is how far losses of close neighbors may be off (`LawTable.close_error`).
    """
    left, right = edges[:-1], edges[1:]
    done: list[tuple[Float | Mask, ...]] = []
    for halving in range(_MOST_ROUNDS):
        half = 0.5 * (right - left)
        base, ratio, loss = sample((left + half)[:, None] + half[:, None] * points)
        rounding = 64.0 * _ULP * (np.abs(base) + np.abs(loss))
        above = base + loss + rounding > floor
        relevant = (above | (base > floor)).any(axis=1)
        lost = (above & (rounding > _LOST_DIGITS)).any(axis=1)
        farthest = np.maximum(np.abs(left), np.abs(right))
        fine, pieces = _resolved(base, loss, last, floor, (right - left) / (_ULP * farthest), close)
        fine |= halving == _MOST_ROUNDS - 1
        narrow = lost | (~fine & (right - left <= _NARROWEST * farthest))
        keep = relevant & (fine | narrow)
        samples = left, right, base, loss, _constant(base, ratio, loss, close), narrow
        done.append(tuple(values[keep] for values in samples))
        again = relevant & ~keep
        if not again.any():
            break
        left, right = cut_panels(left[again], right[again], pieces[again])
    parts = [np.concatenate(part) for part in zip(*done, strict=True)]
    order = np.argsort(parts[0], kind="stable")
    return tuple(part[order] for part in parts)  # type: ignore[return-value]


def cut_panels(left: Float, right: Float, pieces: NDArray[np.int64]) -> tuple[Float, Float]:
    """Panels cut into equal pieces, which share their ends to the last bit."""
    owner = np.repeat(np.arange(left.size), pieces)
    index = np.arange(owner.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    width = (right - left)[owner] / pieces[owner]
    start = left[owner] + index * width
    end = np.append(start[1:], right[-1])
    last = index + 1 == pieces[owner]
    end[last] = right
    return start, end


def _resolved(
    base: Float, loss: Float, last: Float, floor: float, outputs: Float, close: float
) -> tuple[Mask, NDArray[np.int64]]:
    """Which panels are fine enough, and into how many pieces the others go: a power of two.

    ``outputs`` is how many of them a panel has, about, to which nodes are rounded.
    """
    span = np.zeros(base.shape[0])
    of_base = 64.0 * _ULP * (1.0 + np.abs(base).max(axis=1) + np.abs(loss).max(axis=1))
    of_loss = np.full(base.shape[0], 8.0 * close) if close > 0.0 else of_base
    for log_density in (base, base + loss):
        seen = np.maximum(log_density, floor - _LARGEST_RANGE)
        span = np.maximum(span, np.ptp(seen, axis=1))
    fine = span <= _LARGEST_RANGE
    for values, rounding in ((base, of_base), (loss, of_loss)):
        largest = np.abs(values @ last).max(axis=1)
        share = _LARGEST_COEFFICIENT + _ROUNDED_NODES / outputs
        fine &= largest <= share * np.ptp(values, axis=1) + rounding
    # Several halvings at once, and no more than the mean over the pieces asks for.
    halvings = np.floor(np.log2(np.maximum(span, _LARGEST_RANGE) / _LARGEST_RANGE))
    return fine, 2 ** np.clip(halvings, 1.0, _MOST_HALVINGS).astype(np.int64)


def _constant(base: Float, ratio: Float, loss: Float, close: float) -> Mask:
    """Whether the loss is constant to rounding on a whole panel."""
    rounding = 8.0 * _ULP * np.maximum(1.0, np.abs(base).max(axis=1))
    if close > 0.0:
        rounding[:] = close
    same = np.ptp(loss, axis=1) <= 4.0 * _ULP * np.abs(loss).max(axis=1)
    return np.asarray((np.ptp(ratio, axis=1) <= rounding) | same)
