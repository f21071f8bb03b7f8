"""Many values of a characteristic function at once: a non-uniform fast Fourier transform.

``core.characteristic`` costs nodes times frequencies, which is right for a hundred frequencies.
Integrands that decay slowly need up to 2^20 of them and as many nodes. Here each node is spread
over 16 points of a periodic grid with twice the bandwidth by the kernel
``exp(beta (sqrt(1 - x^2) - 1))``, one real FFT follows, and the kernel's transform is divided out
(Barnett, Magland and af Klinteberg 2019, "A parallel nonuniform fast Fourier transform library
based on an exponential of semicircle kernel"; beta = 2.30 width from their section 3.3).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Complex = NDArray[np.complex128]

_WIDTH = 16
_BETA = 2.30 * _WIDTH
# 48 Gauss-Legendre points integrate the kernel times a cosine of at most 4 pi to 1e-15.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_CHUNK = 2**15
_SLOW = 8.0


def _kernel(x: Float) -> Float:
    return np.exp(_BETA * (np.sqrt(np.maximum(1.0 - x * x, 0.0)) - 1.0))


def characteristic_many(weights: Float, losses: Float, step: float, count: int) -> Complex:
    """``sum_j weights[j] (exp(i m step losses[j]) - 1)`` for ``m = 0, ..., count - 1``.

    Slow nodes (``count step |loss|`` at most 8) go through the differences in ``m``, whose weights
    are ``w (exp(i step loss) - 1)``: their error is then relative to ``sum w |m step loss|``.
    """
    slow = np.abs(losses) * (step * count) <= _SLOW
    out = _transform(weights[~slow], losses[~slow], step, count)
    out -= float(weights[~slow].sum())
    if slow.any():
        theta = step * losses[slow]
        chord = -2.0 * weights[slow] * np.sin(0.5 * theta) ** 2
        real = _transform(chord, losses[slow], step, count)
        imag = _transform(weights[slow] * np.sin(theta), losses[slow], step, count)
        out[1:] += np.cumsum(real + 1j * imag)[:-1]
    return out


def _transform(weights: Float, losses: Float, step: float, count: int) -> Complex:
    """``sum_j weights[j] exp(i m step losses[j])``, error 1e-14 of ``sum |weights|``."""
    from scipy import fft  # slow to import, and rarely needed

    size = fft.next_fast_len(4 * count, real=True)
    grid = np.zeros(size)
    taps = np.arange(_WIDTH)
    for start in range(0, losses.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        turns = losses[part] * (step / (2.0 * math.pi))
        position = (turns - np.floor(turns)) * size
        first = np.ceil(position - 0.5 * _WIDTH)
        distance = (first - position)[:, None] + taps
        values = weights[part][:, None] * _kernel(distance * (2.0 / _WIDTH))
        index = (first.astype(np.int64)[:, None] + taps) % size
        grid += np.bincount(index.ravel(), values.ravel(), minlength=size)
    return np.asarray(np.conj(fft.rfft(grid)[:count]) / _kernel_transform(size, count))


@functools.lru_cache(maxsize=8)
def _kernel_transform(size: int, count: int) -> Float:
    """Fourier transform of the kernel, an integral of cosines as the kernel is even."""
    angle = (math.pi * _WIDTH / size) * np.arange(count)
    transform = np.zeros(count)
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        if point > 0.0:
            transform += weight * _WIDTH * float(_kernel(np.array(point))) * np.cos(point * angle)
    return transform
