"""From which angle on the frequencies of a composition are next to nothing.

Let ``F`` be the Fourier sum of one measure on a lattice, with angles ``theta`` per node up to
``pi``. A product of powers of such sums is below ``e^-dead`` where bounds on their logarithms add
up to less. There are two such bounds:

* *From nodes that lie near each other.* Take those in an interval of length ``D``, with mass ``w``,
  variance ``v`` and the Fourier sum ``w E``. For two independent draws ``x, x'`` of them and
  ``theta <= pi / D`` the angle ``a = theta (x - x')`` is at most ``pi``, where
  ``1 - cos a >= 2 a^2 / pi^2``. So ``|E|^2``, the mean of ``cos a``, is at most
  ``1 - (4 / pi^2) theta^2 v``, and ``|F| <= w |E| + 1 - w <= 1 - (2 / pi^2) theta^2 w v``.
  Intervals of all lengths show that many factors are dead at most angles, however different their
  scales are.
* *By transforms.* ``F``, turned by the mean, changes by at most the standard deviation per unit of
  ``theta``. The transform of the masses wrapped around any number ``n`` of nodes has ``F`` at ``n``
  angles; half way between them ``|F|`` is larger by at most the deviation times ``pi / n``. Factors
  of a small deviation take few angles, and are the smallest at large ones.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.compose.frequencies.lattice import NodeMeasure, Parts
from psinoise.accounting.compose.frequencies.spectra import Product
from psinoise.accounting.loss.pairs import Float

# Half of a cell times the standard deviation, at most; cells of one transform, and of all.
_CELL = 0.05
_CELLS = (2**12, 2**20)
_MOST_WORK = 2**24
# After so many factors one looks whether that is enough.
_FACTORS = 8
# Standard deviations in the longest interval, at least, and lengths per power of two.
_NEAR, _LENGTHS = 6.0, 4


def last_frequency(parts: Parts, dead: float, enough: float = 0.0) -> float:
    """An angle from which on, to ``pi``, the product is below ``e^-dead``; inf if none is seen.

    One that is no larger than ``enough`` is looked for no further.
    """
    deviations = [math.sqrt(measure.moments[1]) / measure.step for measure, _ in parts]
    starts, ends = _dead(parts, deviations, dead)
    last = float(starts[-1]) if ends.size and ends[-1] == math.pi else math.inf
    if last <= enough:
        return last
    cells = [_cells(deviation) for deviation in deviations]
    order = sorted(range(len(parts)), key=lambda k: cells[k] / parts[k][1])
    bound, work = np.zeros(_CELLS[0] // 2 + 1), 0
    for place, k in enumerate(order):
        measure, count = parts[k]
        work += cells[k]
        if cells[k] > _CELLS[1] or work > _MOST_WORK:
            break
        alone = Product.of(cells[k]).times(measure, 1)
        error = math.sqrt(cells[k]) * alone.rounding + 1.001 * math.pi * deviations[k] / cells[k]
        modulus = np.sqrt(alone.spectrum.real**2 + alone.spectrum.imag**2)
        factor = count * np.log(np.minimum(modulus + error, 1.0))
        size = max(bound.size, factor.size)
        bound = _finer(bound, size) + _finer(factor, size)
        if place % _FACTORS == _FACTORS - 1 or place == len(order) - 1:
            last = min(last, _last_alive(bound <= -dead, starts, ends))
            if last <= enough:
                break
    return last


def _cells(deviation: float) -> int:
    """Angles of a transform, half of whose distance is short beside a wave."""
    return int(2 ** math.ceil(math.log2(max(math.pi * deviation / _CELL, _CELLS[0]))))


def _finer(bound: Float, size: int) -> Float:
    """Bounds on cells around angles, on those around angles that lie closer by a power of two."""
    while bound.size < size:
        halves = np.empty(2 * bound.size - 1)
        halves[::2] = bound
        # Half of it lies in either cell.
        halves[1::2] = np.maximum(bound[1:], bound[:-1])
        bound = halves
    return bound


def _last_alive(dead: NDArray[np.bool_], starts: Float, ends: Float) -> float:
    """Where the last cell that is not known to be dead ends, or the interval with its end begins;
    inf if it is the last one of all."""
    width = math.pi / (dead.size - 1)
    alive = ~dead
    for start, end in zip(starts / width, ends / width, strict=True):
        # Cells that begin and end within; the last one ends at pi.
        first = math.ceil(start + 0.5)
        beyond = dead.size if end >= dead.size - 1 else math.floor(end - 0.5) + 1
        alive[first : max(beyond, first)] = False
    last = int(np.flatnonzero(alive)[-1])
    if last == dead.size - 1:
        return math.inf
    end = (last + 0.5) * width
    return float(np.min(starts[(starts <= end) & (end <= ends)], initial=end))


def _dead(parts: Parts, deviations: list[float], dead: float) -> tuple[Float, Float]:
    """Intervals of angles, which do not touch, at which nodes near each other make it small."""
    longest = math.ceil(_LENGTHS * math.log2(max(_NEAR * max(deviations), 1.0)))
    lengths = np.exp2(np.arange(longest + 1) / _LENGTHS)
    variance = np.zeros(lengths.size)
    for measure, count in parts:
        variance += count * _near_variances(measure, lengths)
    with np.errstate(divide="ignore"):
        starts = math.pi * np.sqrt(0.5 * dead / variance)  # 1 - x <= e^-x
    ends = math.pi / lengths
    found: list[list[float]] = []
    for k in np.argsort(starts):
        if found and starts[k] <= found[-1][1]:
            found[-1][1] = max(found[-1][1], ends[k])
        elif starts[k] < ends[k]:
            found.append([starts[k], ends[k]])
    made = np.array(found).reshape(-1, 2)
    return made[:, 0], made[:, 1]


def _near_variances(measure: NodeMeasure, lengths: Float) -> Float:
    """``w v`` of the nodes in intervals of some lengths around the median, in squared nodes."""
    median = int(np.searchsorted(np.cumsum(measure.mass), 0.5))
    # Half a node beside it, so that the shortest one holds two.
    distance = measure.index - (measure.index[min(median, measure.index.size - 1)] + 0.5)
    begins = np.searchsorted(distance, -0.5 * lengths)
    ends = np.searchsorted(distance, 0.5 * lengths, side="right")
    # A place beyond the last, where intervals end.
    mass, distance = np.append(measure.mass, 0.0), np.append(distance, 0.0)
    terms = np.array([mass, mass * distance, mass * distance * distance])
    weight, first, second = np.add.reduceat(terms, np.array([begins, ends]).T.ravel(), 1)[:, ::2]
    # All terms of the last sum are positive, and the square of the first is no larger.
    off = np.divide(first**2, weight, out=np.zeros(lengths.size), where=weight > 0.0)
    return np.asarray(0.999 * np.maximum(second - off - 1e-9 * second, 0.0))
