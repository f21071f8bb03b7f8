"""Frequencies of a composition on a lattice: products of powers of those of its measures.

Over a window of ``N`` nodes the ``n_i``-fold convolutions of tilted measures have the Fourier sums
``G_m = prod F_im^{n_i}``, ``theta = 2 pi m / N``. Most of them are next to nothing: ``|F|^n`` is
about ``exp(-n sigma^2 theta^2 / 2)``. There are two ways to the others.

*Transforms* of the whole window (`Product`), for few uses. One transform has a relative 2-norm
error of ``t = 6 u log2 N`` (Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2),
``u = 2^-53``. With ``|F_i| <= 1`` the product of powers is off by at most
``sum n_i (t + 4 u) ||F_i||``, which by Parseval is ``sqrt(N)`` times that in terms of masses.

*Direct sums* (`low_frequencies`), for many uses: each ``F_i`` as
``1 + sum f_j (e^{i theta (j - m)} - 1)`` with a whole ``m`` near the mean. The sum is of the order
of ``theta sigma``, and with it the error of ``log F_i``, which the power multiplies by ``n_i``.
``core.characteristic`` forms ``e_k = e^{i k theta d} - 1`` by ``e_{k+1} = e_k + e_1 + e_k e_1``. A
step has an error of at most ``7 u (|e_k| + |e_1|)`` and passes earlier ones on unchanged
(``|1 + e_1| = 1``); ``e_1`` itself is off by ``4 u |e_1|``, once for each step. So ``e_k`` is off
by at most ``18 u k min(2, k theta |d|)``. The sum over nodes runs in 8 lanes of 16 within tiles of
128: its relative error is at most ``(24 + nodes / 128) u`` of ``sum f_j |e_kj|``, which
Cauchy-Schwarz bounds by ``sqrt(sum f_j |e_kj|^2) = sqrt(-2 Re sum f_j e_kj)``. A factor that is off
by ``r`` relative to itself makes its power off by ``(1 + r)^n - 1``. Logarithms of the powers are
added up in blocks of steps: that rounds each of them as often as it is in a sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.frequencies.lattice import NodeMeasure, Parts
from psinoise.accounting.compose.measures.measure import UNIT, transform_of
from psinoise.accounting.estimate.line import log_power
from psinoise.accounting.loss.pairs import Float

# Of a sum as ``log_power`` sees it; what is less is off by as much.
_LEAST_MODULUS = 1e-8
_LARGEST_EXPONENT = 300.0
# Steps whose powers are formed together: a call of NumPy takes longer than one step has to.
_TOGETHER = 64
# Frequencies that are left out add this share of what rounding does to the error.
_LEFT_OUT = 0.25


class Frequencies(NamedTuple):
    """The first frequencies of a composition on a window; the others are left out.

    Attributes
    ----------
    values : ``sum g_k e^{i m theta (k - first)}`` over the tilted masses, ``m = 0, 1, ...`` up to
        half of the size and ``theta = 2 pi / size``
    error : bounds on what each of them is off by
    lost : bound on the 2-norm of the masses that make up for all other errors: frequencies that
        were left out, and those of transforms
    """

    values: NDArray[np.complex128]
    error: Float
    lost: float


@dataclass(frozen=True, eq=False)
class Product:
    """A product of powers of transforms, of all frequencies of a window.

    ``rounding`` is a bound on the 2-norm of its error, in terms of masses.
    """

    spectrum: NDArray[np.complex128]
    rounding: float = 0.0

    @staticmethod
    def of(size: int) -> Product:
        """That of no factors, on a window of some length, a power of two."""
        return Product(np.ones(size // 2 + 1, dtype=np.complex128))

    @property
    def size(self) -> int:
        return 2 * (self.spectrum.size - 1)

    def times(self, measure: NodeMeasure, count: int) -> Product:
        """With some uses of a measure."""
        wrapped = np.bincount(measure.index % self.size, measure.mass, self.size).astype(np.float64)
        spectrum = self.spectrum.copy()
        transform_of(self.size).compose_into(wrapped, count, spectrum)
        norm = math.sqrt(float(np.sum(wrapped * wrapped)))
        error = count * (6.0 * math.log2(self.size) + 4.0) * UNIT * norm
        return Product(spectrum, self.rounding + error)

    def frequencies(self, first: int, lost: float = 0.0) -> Frequencies:
        """Those of a window that begins at some node.

        What is left out has a 2-norm of at most ``lost``, or of what rounding makes anyway.
        """
        square = (self.spectrum.real**2 + self.spectrum.imag**2) * (2.0 / self.size)
        beyond = np.sqrt(np.append(np.cumsum(square[::-1])[::-1], 0.0)) * (1.0 + 1e-9)
        count = max(int(np.count_nonzero(beyond > max(_LEFT_OUT * self.rounding, lost))), 1)
        turns = _turns(-first, count, self.size)
        values = np.conj(self.spectrum[:count]) * np.exp(1j * turns)
        return Frequencies(values, np.zeros(count), self.rounding + float(beyond[count]))


def low_frequencies(
    parts: Parts, first: int, size: int, frequencies: int, lost: float
) -> Frequencies:
    """The same by direct sums; what is left out is known to the caller."""
    exponent = np.zeros(frequencies, dtype=np.complex128)
    error, total = np.zeros(frequencies), np.zeros(frequencies)
    shift, theta = -first, 2.0 * math.pi / size
    for start in range(0, len(parts), _TOGETHER):
        some = parts[start : start + _TOGETHER]
        changes = np.empty((len(some), frequencies), dtype=np.complex128)
        for change, (measure, count) in zip(changes, some, strict=True):
            center = round((measure.moments[0] - measure.offset) / measure.step)
            shift += count * center
            distance = (measure.index - center).astype(np.float64)
            change[:] = core.characteristic(measure.mass, distance, theta, frequencies)
        counts = np.array([[float(count)] for _, count in some])
        sizes = np.array([[measure.mass.size] for measure, _ in some])
        spread = np.sqrt(np.maximum(-2.0 * changes.real, 0.0))
        modulus = np.maximum(np.abs(1.0 + changes), _LEAST_MODULUS)
        units = 18.0 * np.arange(frequencies) + 24.0 + sizes / 128.0
        # The second term is that of the logarithm, whose digits cancel near 0.
        each = np.log1p(UNIT * spread * (units / modulus + 4.0 / modulus**2))
        error += (counts * each).sum(axis=0)
        powers = log_power(changes, counts)
        exponent += powers.sum(axis=0)
        total += np.abs(powers).sum(axis=0)
    # Terms of the sums, and the exponential.
    sums = min(len(parts), _TOGETHER) + len(parts) / _TOGETHER
    error += UNIT * (8.0 + (4.0 + sums) * total)
    values = np.exp(exponent + 1j * _turns(shift, frequencies, size))
    relative = np.expm1(np.minimum(error, _LARGEST_EXPONENT))
    return Frequencies(values, np.abs(values) * relative, lost)


def _turns(shift: int, count: int, size: int) -> Float:
    """Angles of a shift, modulo the length of the window in whole numbers: no digit is lost."""
    return np.asarray((shift % size) * np.arange(count) % size * (2.0 * math.pi / size))
