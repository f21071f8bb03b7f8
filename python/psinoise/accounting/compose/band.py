"""Thousands of low frequencies of a measure on a lattice, by transforms as long as they are many.

``core.characteristic`` costs nodes times frequencies, and a transform of the window grows with the
window. Here the frequencies ``2 pi m / N``, ``m < M``, of a window of ``N`` nodes come from a
circle of ``n >= 4 M`` cells: a node at ``d`` nodes from the middle lies in cell ``g``,
``d n / N = g + r`` with ``|r| <= 1/2``, and

    ``e^{2 pi i m d / N} = e^{2 pi i m g / n} sum over p of (i pi m / n)^p (2 r)^p / p!``.

As ``pi m / n <= pi / 4``, 18 terms leave out less than 3e-18. Each is one transform of the sums of
``f_j (2 r_j)^p`` over the nodes of each cell.

Error
-----
``g`` is exact and ``r`` right to a rounding, in whole numbers. A sum over a cell goes over some
lanes, at most 32, each of at most ``k`` nodes: it is off by ``(k + 32) u`` of the sum of moduli,
and each of its terms by ``(p + 2) u``. A transform of ``n`` points adds at most ``6 u log2 n`` of
the sum of moduli of all its points to every frequency: the induction of Higham's theorem 24.2 over
the passes holds for each output with sums of moduli of the points that it depends on in place of
2-norms, because all factors have modulus 1. So every frequency is off by at most ``e^{pi / 4}``
times the sum of these, and the terms that are left out, of ``sum f_j``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.compose.bins import Index
from psinoise.accounting.compose.transforms import UNIT, transform_of
from psinoise.accounting.loss.pairs import Float

Complex = NDArray[np.complex128]

_TERMS = 18
_MOST_LANES = 32
# Of all cells together.
_LANES = 2**20
_LEFT_OUT = 3e-18


def band_sums(mass: Float, distance: Index, size: int, frequencies: int) -> tuple[Complex, float]:
    """``sum f_j e^{2 pi i m d_j / size}`` for ``m < frequencies``, and what it is off by.

    Parameters
    ----------
    mass
        ``f``, not negative
    distance
        whole ``d``, below ``2^31`` in modulus
    size
        of the window
    frequencies
        at most ``2^20``
    """
    cells: int = 2 ** max(math.ceil(math.log2(4 * frequencies)), 4)
    # d n / size = g + r in whole numbers: the rounded quotient, and what is left.
    scaled = distance.astype(np.int64) * cells
    cell = (2 * scaled + size) // (2 * size)
    rest = (scaled - cell * size) * (2.0 / size)
    lanes = min(max(_LANES // cells, 1), _MOST_LANES)
    lane = (cell % cells) * lanes + np.arange(cell.size) % lanes
    longest = int(np.bincount(lane, minlength=1).max())
    transform = transform_of(cells)
    angle = (math.pi / cells) * np.arange(frequencies)
    total = np.zeros(frequencies, dtype=np.complex128)
    factor = np.ones(frequencies, dtype=np.complex128)
    weights = mass.copy()
    for power in range(_TERMS):
        sums = np.bincount(lane, weights=weights, minlength=cells * lanes)
        spectrum = np.ones(cells // 2 + 1, dtype=np.complex128)
        transform.compose_into(sums.reshape(cells, lanes).sum(axis=1), 1, spectrum)
        # A transform turns the other way.
        total += factor * np.conj(spectrum[:frequencies])
        weights *= rest
        factor *= (1j / (power + 1)) * angle
    units = longest + lanes + _TERMS + 8.0 + 6.0 * math.log2(cells)
    error = math.exp(0.25 * math.pi) * UNIT * units + _LEFT_OUT
    return total, error * float(np.sum(mass)) * (1.0 + 1e-9)
