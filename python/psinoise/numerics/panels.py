"""Panels on which a privacy loss is a polynomial, as ``csrc/losses/loss_panels.cpp`` finds them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: ``left``, ``right``, log Q and the loss at the nodes, and whether the loss is constant.
Panels = tuple[Float, Float, Float, Float, Mask]
#: log Q, the loss without sampling, and the loss.
Sample = Callable[[Float], tuple[Float, Float, Float]]

_ULP = 2.0**-52
_LARGEST_RANGE = 8.0
_LARGEST_COEFFICIENT = 3e-8
_MOST_HALVINGS = 4
_MOST_ROUNDS = 60


def refined_panels(
    sample: Sample, points: Float, last: Float, edges: Float, floor: float
) -> Panels:
    """Panels between the edges, cut until each is fine, for any way to evaluate a loss."""
    left, right = edges[:-1], edges[1:]
    done: list[tuple[Float, ...]] = []
    for halving in range(_MOST_ROUNDS):
        half = 0.5 * (right - left)
        base, ratio, loss = sample((left + half)[:, None] + half[:, None] * points)
        relevant = np.maximum(base, base + loss).max(axis=1, initial=-np.inf) > floor
        fine, pieces = _resolved(base, loss, last, floor)
        fine |= halving == _MOST_ROUNDS - 1
        keep = relevant & fine
        samples = left, right, base, loss, _constant(base, ratio, loss)
        done.append(tuple(values[keep] for values in samples))
        again = relevant & ~fine
        if not again.any():
            break
        left, right = _cut_panels(left[again], right[again], pieces[again])
    parts = [np.concatenate(part) for part in zip(*done, strict=True)]
    order = np.argsort(parts[0], kind="stable")
    return tuple(part[order] for part in parts)  # type: ignore[return-value]


def _cut_panels(left: Float, right: Float, pieces: NDArray[np.int64]) -> tuple[Float, Float]:
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
    base: Float, loss: Float, last: Float, floor: float
) -> tuple[Mask, NDArray[np.int64]]:
    """Which panels are fine enough, and into how many pieces the others go: a power of two."""
    span = np.zeros(base.shape[0])
    rounding = 64.0 * _ULP * (1.0 + np.abs(base).max(axis=1) + np.abs(loss).max(axis=1))
    for log_density in (base, base + loss):
        seen = np.maximum(log_density, floor - _LARGEST_RANGE)
        span = np.maximum(span, np.ptp(seen, axis=1))
    fine = span <= _LARGEST_RANGE
    for values in (base, loss):
        largest = np.abs(values @ last).max(axis=1)
        fine &= largest <= _LARGEST_COEFFICIENT * np.ptp(values, axis=1) + rounding
    # Several halvings at once, and no more than the mean over the pieces asks for.
    halvings = np.floor(np.log2(np.maximum(span, _LARGEST_RANGE) / _LARGEST_RANGE))
    return fine, 2 ** np.clip(halvings, 1.0, _MOST_HALVINGS).astype(np.int64)


def _constant(base: Float, ratio: Float, loss: Float) -> Mask:
    """Whether the loss is constant to rounding on a whole panel."""
    rounding = 8.0 * _ULP * np.maximum(1.0, np.abs(base).max(axis=1))
    same = np.ptp(loss, axis=1) <= 4.0 * _ULP * np.abs(loss).max(axis=1)
    return np.asarray((np.ptp(ratio, axis=1) <= rounding) | same)
