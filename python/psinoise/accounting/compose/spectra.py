"""Spectra of measures on a lattice: transforms, and the few frequencies that many uses leave.

The product of powers ``prod F_i^{n_i}`` of the spectra of many uses dies within some tens of
frequencies around 0 (``|F|^n`` is about ``exp(-n sigma^2 theta^2 / 2)``). There each ``F_i`` is
summed directly as ``1 + sum f_j (e^{i theta (j - m)} - 1)`` with a whole ``m`` near the mean: the
sum is of the order of ``theta sigma``, and with it the error of ``log F_i``, which the power
multiplies by ``n_i``. A transform has an error of the order of 1 times that.

Error of the direct sums
------------------------
``core.characteristic`` forms ``e_k = e^{i k theta d} - 1`` by ``e_{k+1} = e_k + e_1 + e_k e_1``. A
step has an error of at most ``7 u (|e_k| + |e_1|)`` and passes earlier ones on unchanged
(``|1 + e_1| = 1``); ``e_1`` itself is off by ``4 u |e_1|``, once for each step. So ``e_k`` is off
by at most ``18 u k min(2, k theta |d|)``. The sum over nodes runs in 8 lanes of 16 within tiles of
128: its relative error is at most ``(24 + nodes / 128) u`` of ``sum f_j |e_kj|``, which
Cauchy-Schwarz bounds by ``sqrt(sum f_j |e_kj|^2) = sqrt(-2 Re sum f_j e_kj)``.

A factor that is off by ``r`` relative to itself makes its power off by ``(1 + r)^n - 1``.

All other frequencies are set to 0. Of a subset of the factors, whose transforms are taken, the
modulus bounds that of the product (``|F_i| <= 1``), and what was dropped is added to the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.band import band_sums
from psinoise.accounting.compose.lattice import NodeMeasure
from psinoise.accounting.compose.transforms import UNIT, transform_error, transform_of, wrap
from psinoise.accounting.estimate.integrand import log_power
from psinoise.accounting.loss.pairs import Float

Complex = NDArray[np.complex128]

# Frequencies at which the product may be larger than exp(-_LOG_DEAD): their error counts.
_LOG_DEAD = 80.0
_MOST_FREQUENCIES = 256
# More than these are not summed directly.
MOST_DIRECT = 512
# Of a sum as ``log_power`` sees it; what is less is off by as much.
LEAST_MODULUS = 1e-8
_LARGEST_EXPONENT = 300.0


@dataclass(frozen=True, eq=False)
class Product:
    """A product of powers of transforms, of all frequencies of a window; ``window`` has the errors.

    Attributes
    ----------
    spectrum : the product
    rounding : bound on the 2-norm of its error
    smallest : the least 2-norm of a factor
    """

    spectrum: Complex
    rounding: float
    smallest: float

    @staticmethod
    def of(size: int) -> Product:
        """That of no factors, on a window of some length."""
        return Product(np.ones(size // 2 + 1, dtype=np.complex128), 0.0, 1.0)

    @property
    def size(self) -> int:
        """Length of the window."""
        return 2 * (self.spectrum.size - 1)

    def times(self, measure: NodeMeasure, count: int) -> Product:
        """With some uses of a measure."""
        wrapped = wrap(measure.mass, measure.index, self.size)
        spectrum = self.spectrum.copy()
        transform_of(self.size).compose_into(wrapped, count, spectrum)
        norm = math.sqrt(float(np.sum(wrapped * wrapped)))
        rounding = self.rounding + count * (transform_error(self.size) + 4.0 * UNIT) * norm
        return Product(spectrum, rounding, min(self.smallest, norm))

    def masses(self, first: int) -> tuple[Float, float]:
        """Masses from a node on, not negative, and a bound on the 2-norm of their error."""
        masses = np.roll(transform_of(self.size).inverse(self.spectrum), -(first % self.size))
        rounding = self.rounding + transform_error(self.size) * self.smallest
        return np.maximum(masses, 0.0), rounding


def compose_low(
    parts: list[tuple[NodeMeasure, int]], first: int, size: int
) -> tuple[Float, float] | None:
    """Masses of a composition from its low frequencies, and a bound on the 2-norm of their error.

    None if too many frequencies matter.
    """
    bound = _log_modulus_bound(parts, size)
    if bound is None:
        return None
    frequencies = int(np.flatnonzero(bound > -_LOG_DEAD)[-1]) + 1
    low = low_frequencies(parts, first, size, frequencies)
    product = np.zeros(size // 2 + 1, dtype=np.complex128)
    product[:frequencies] = np.conj(low.values)
    modulus = np.abs(low.values)
    dropped = np.exp(2.0 * bound[frequencies:])
    square = float(
        np.sum((modulus * np.expm1(np.minimum(low.error, _LARGEST_EXPONENT))) ** 2)
        + np.sum(dropped)
    )
    norm = math.sqrt(2.0 * float(np.sum(modulus**2)) / size)
    rounding = math.sqrt(2.0 * square / size) + transform_error(size) * norm
    return np.maximum(transform_of(size).inverse(product), 0.0), rounding


class LowFrequencies(NamedTuple):
    """The first frequencies of a composition.

    Attributes
    ----------
    values : ``sum g_k e^{i m theta (k - first)}`` over the tilted masses, ``m = 0, 1, ...`` and
        ``theta = 2 pi / size``
    error : bounds on the error of their logarithms
    """

    values: Complex
    error: Float


def low_frequencies(
    parts: list[tuple[NodeMeasure, int]], first: int, size: int, frequencies: int
) -> LowFrequencies:
    """Direct sums, with the error that the head of this module has; thousands by ``band``."""
    exponent = np.zeros(frequencies, dtype=np.complex128)
    error = np.zeros(frequencies)
    shift = -first
    theta = 2.0 * math.pi / size
    order = np.arange(frequencies)
    for measure, count in parts:
        center = round((measure.moments[0] - measure.offset) / measure.step)
        distance = (measure.index - center).astype(np.float64)
        shift += count * center
        if frequencies > MOST_DIRECT:
            sums, off = band_sums(measure.mass, measure.index - center, size, frequencies)
            change = sums - 1.0
            modulus = np.maximum(np.abs(sums), LEAST_MODULUS)
            relative = off / modulus + 4.0 * UNIT / modulus**2
        else:
            change = core.characteristic(measure.mass, distance, theta, frequencies)
            spread = np.sqrt(np.maximum(-2.0 * change.real, 0.0))
            modulus = np.maximum(np.abs(1.0 + change), LEAST_MODULUS)
            units = 18.0 * order + 24.0 + measure.mass.size / 128.0
            # The second term is that of the logarithm, whose digits cancel near 0.
            relative = UNIT * spread * (units / modulus + 4.0 / modulus**2)
        error += count * np.log1p(relative)
        exponent += log_power(change, count)
    # The turn of the window is taken modulo its length in whole numbers: no digit is lost.
    turns = np.array([(shift * k) % size for k in range(frequencies)]) * theta
    error += UNIT * (8.0 + 4.0 * np.abs(exponent))
    return LowFrequencies(np.exp(exponent + 1j * turns), error)


def _log_modulus_bound(parts: list[tuple[NodeMeasure, int]], size: int) -> Float | None:
    """An upper bound on the log of the modulus of the product at each frequency.

    It takes in factor after factor, those that decay fastest first, until only few frequencies are
    left; None if all of them together do not get there.
    """
    transform = transform_of(size)
    bound = np.zeros(size // 2 + 1)
    for measure, count in sorted(parts, key=lambda part: -part[1] * part[0].moments[1]):
        wrapped = wrap(measure.mass, measure.index, size)
        spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
        transform.compose_into(wrapped, 1, spectrum)
        # The 2-norm of the error of all frequencies bounds each.
        error = transform_error(size) * math.sqrt(size * float(np.sum(wrapped * wrapped)))
        bound += count * np.log(np.minimum(np.abs(spectrum) + error, 1.0))
        if not (bound[_MOST_FREQUENCIES:] > -_LOG_DEAD).any():
            return bound
    return None
