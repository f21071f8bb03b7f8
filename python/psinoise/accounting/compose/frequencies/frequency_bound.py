"""Bounds on a profile from the frequencies of a composition on a window of a lattice.

With ``w(y) = (1 - e^{-y}) e^{-t y}`` for ``y > 0``, and 0 elsewhere, delta is a sum of
``w(l_k - eps)`` over the tilted masses ``g_k`` of the composition. On a window of ``N`` nodes

    ``sum g_k w(l_k - eps) = 1/N sum over |m| <= N/2 of G_m conj(W_m)``,

with the Fourier sums ``G`` of the masses and ``W`` of the weights, ``theta = 2 pi m / N``. Most of
``G`` is next to nothing (``spectra``), and ``W`` is the difference of two geometric series,

    ``sum over k >= 0 of w(y + k h) e^{i theta k} = e^{-t y}
    ((1 - e^{-y}) + (1 - e^{-h}) r / (1 - r)) / (1 - r e^{-h})``, ``r = e^{i theta - t h}``,

in which nothing cancels, however small the losses. With direct sums neither time nor memory depends
on the length of the window, which need not be a power of two.

Errors that are added to the bound
----------------------------------
*Outside* of the window: sums see it as if it lay inside, mass comes back around. Under the tilt it
is at most twice the tail, by Chernoff's bound with the exact moment generating functions of the
measures (``window_needed``); it counts with the largest weight.

*Rounding.* ``G_m`` is off by what ``spectra`` says, ``W_m`` by ``32 (m + 1) u`` of its largest
value over ``y``: its phase ``m theta (k - first)`` is less than ``2 pi m``, and every factor is
right to some ulp. Their sum is off by a share of the sum of their moduli, by a transform
(`measures.measure.transform_units`) or one by one (``csrc/kernels/characteristic.cpp``).

*What is lost*, with a 2-norm that is known in terms of masses, counts with that of the weights
(Cauchy and Schwarz, Parseval).

*Frequencies left out of direct sums* are small (``last_frequency``): the 2-norm of what they make
is no more than the largest of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.accounting.compose.frequencies.last_frequency import last_frequency
from psinoise.accounting.compose.frequencies.lattice import Parts
from psinoise.accounting.compose.frequencies.spectra import Frequencies, Product, low_frequencies
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.measure import UNIT, Side, transform_of, transform_units
from psinoise.accounting.loss.pairs import Float
from psinoise.accounting.loss.steps import some_of
from psinoise.errors import CertificationError

# A window is no longer than so many times that of normal losses, or than is found.
_NEAR = 1.05
# Of direct sums. On windows longer than any of transforms they may have so many terms, or for each
# step.
_MOST_FREQUENCIES = 512
_MOST_TERMS, _TERMS = 1e8, 1e6
_LONGEST = 2**18
# So many take less time than to look for fewer.
_ENOUGH = 256
# More terms of sums for each node than these take longer than a transform, for all nodes at once.
_MANY = 32


class Lattice(NamedTuple):
    """Where the losses of a composition lie, and how they are tilted; see `NodeMeasure`.

    ``first`` and ``size`` are of the window, and ``outside`` bounds the tilted mass outside of it.
    """

    step: float
    offset: float
    tilt: float
    log_norm: float
    infinite: float
    slack: float
    first: int
    size: int
    outside: float


@dataclass(frozen=True, eq=False)
class FrequencyBound(Bound):
    """A bound on the profile from the low frequencies of a composition."""

    composer = "frequencies"
    between = 2.0 / 3.0
    same = 1e-10

    lattice: Lattice
    low: Frequencies
    side: Side

    @cached_property
    def _terms(self) -> tuple[NDArray[np.complex128], Float]:
        """``conj(G_m) / (N (1 - r e^{-h}))`` and that times ``r / (1 - r)``; what sums are off by.

        Twice that for ``0 < m < N/2``, which stands for ``-m`` as well.
        """
        t, h, turn = self.lattice.tilt, self.lattice.step, 2.0 * math.pi / self.lattice.size
        exponent = 1j * turn * np.arange(self.low.values.size) - t * h
        weight = (-2.0 / self.lattice.size) / np.expm1(exponent - h)
        weight[0] *= 0.5
        weight[self.lattice.size // 2 :] *= 0.5
        repeat = -np.exp(exponent) / np.expm1(exponent)
        terms = np.conj(self.low.values) * weight
        units = 32.0 * (1.0 + np.arange(terms.size))
        units += max(transform_units(self.lattice.size), terms.size / 8.0 + 4.0)
        error = UNIT * units * np.abs(terms) + self.low.error * np.abs(weight)
        off = np.array([np.sum(error), np.sum(error * np.abs(repeat))])
        return np.array([terms, terms * repeat]), off

    @cached_property
    def _totals(self) -> Float:
        """The sums over both terms."""
        return np.asarray(self._terms[0].real.sum(axis=1))

    def log_deltas(self, epsilons: Float) -> Float:
        lattice = self.lattice
        t, h = lattice.tilt, lattice.step
        ends = abs(lattice.first) + lattice.size
        margin = 8.0 * UNIT * (np.abs(epsilons) + abs(lattice.offset) + ends * h)
        shifted = epsilons - self.sign * (lattice.slack + margin)
        with np.errstate(over="ignore"):  # of epsilons next to the largest number
            k = np.maximum(np.floor((shifted - lattice.offset) / h) + 1 - lattice.first, 0.0)
        # What is outside of the window, and what was lost.
        spill = largest_weight(t) * lattice.outside + _weights_norm(t, h) * self.low.lost
        value = np.full(epsilons.size, self.sign * spill)
        within = k < lattice.size
        inside = k[within]
        y = np.maximum(lattice.offset + (lattice.first + inside) * h - shifted[within], 0.0)
        # From the k-th node on, at y, but not beyond the last one.
        beyond = y + (lattice.size - inside) * h
        near = self._weighed(y, self._sums(inside), self.sign)
        value[within] += near - self._weighed(beyond, self._totals, -self.sign)
        rounding = 8.0 * UNIT * (1.0 + abs(lattice.log_norm) + np.abs(t * shifted))
        with np.errstate(divide="ignore"):
            finite = np.log(np.maximum(value, 0.0))
        finite += lattice.log_norm - t * shifted + self.sign * rounding
        if self.sign > 0.0 and lattice.infinite > 0.0:
            return np.asarray(np.logaddexp(finite, math.log(lattice.infinite)))
        return np.asarray(finite)

    @cached_property
    def _table(self) -> Float:
        """The sums over both terms that begin at each node."""
        spectra = 0.5 * self._terms[0]
        spectra[:, :: self.lattice.size // 2] *= 2.0
        return transform_of(self.lattice.size).inverse(spectra)

    def _sums(self, k: Float) -> Float:
        """Those that begin at the ``k``-th node; ``G_m conj(W_m)`` and its conjugate add up."""
        terms, size = self._terms[0], self.lattice.size
        if k.size * terms.shape[1] > _MANY * size and not size & (size - 1):
            return self._table[:, k.astype(np.int64)]
        return core.wave_sums(terms, 2.0 * math.pi / size, k)

    def _weighed(self, y: Float, sums: Float, sign: float) -> Float:
        """The sum of weighed masses from a node at ``y`` on, with its rounding on one side."""
        one, rise = -np.expm1(-y), -math.expm1(-self.lattice.step)
        (tilted, more), (off, off_later) = sums, self._terms[1]
        found = one * tilted + rise * more + sign * (off * one + off_later * rise)
        return np.asarray(np.exp(-self.lattice.tilt * y) * found)


def lattice_profile(parts: Parts, tail: float, side: Side) -> FrequencyBound:
    """A bound on the profile of a composition, of which a window leaves out twice the tail.

    Raises
    ------
    CertificationError
        if many frequencies matter, on a window that is too long for transforms
    """
    first, size = window_needed(parts, tail)
    size = max(size, 16)
    # What is left out may cost as much as what is outside.
    tilt, step = parts[0][0].tilt, parts[0][0].step
    lost = tail * largest_weight(tilt) / _weights_norm(tilt, step)
    turn = 2.0 * math.pi / size
    needed = last_frequency(parts, -math.log(lost), _ENOUGH * turn) / turn + 1.0
    transformed = 2 ** math.ceil(math.log2(size))
    most = _MOST_FREQUENCIES
    if transformed > _LONGEST:
        terms = max(_MOST_TERMS, _TERMS * len(parts))
        most = max(int(terms / sum(measure.mass.size for measure, _ in parts)), most)
    if needed <= min(most, size // 4):
        low = low_frequencies(parts, first, size, math.ceil(needed), lost)
    else:
        size = transformed
        if size > _LONGEST:
            raise CertificationError(f"the window needs {size} nodes, more than {_LONGEST}")
        product = Product.of(size)
        for measure, count in parts:
            product = product.times(measure, count)
        low = product.frequencies(first, lost)
    lattice = Lattice(
        step,
        math.fsum(count * measure.offset for measure, count in parts),
        tilt,
        math.fsum(count * measure.log_norm for measure, count in parts),
        some_of([(measure.infinite, count) for measure, count in parts]),
        math.fsum(count * measure.slack for measure, count in parts),
        first,
        size,
        2.0 * tail,
    )
    return FrequencyBound(lattice, low, side)


def window_needed(parts: Parts, tail: float) -> tuple[int, int]:
    """First node and length of a window that holds all but ``2 tail`` of the composition."""
    offset = math.fsum(count * measure.offset for measure, count in parts)
    mean = math.fsum(count * measure.moments[0] for measure, count in parts)
    variance = math.fsum(count * measure.moments[1] for measure, count in parts)
    above, below = (_reach(parts, mean, variance, sign, tail) for sign in (1.0, -1.0))
    step = parts[0][0].step
    low = math.floor((mean - offset - below) / step) - 1
    return low, math.ceil((mean - offset + above) / step) + 2 - low


def _reach(parts: Parts, mean: float, variance: float, sign: float, tail: float) -> float:
    """``T`` with ``P(sign (L - mean) >= T) <= tail``.

    Any ``s`` gives a bound: some are tried, until it is near that of a normal loss.
    """
    log_tail = -math.log(tail)
    normal = math.sqrt(2.0 * log_tail * max(variance, 1e-300))
    s = 2.0 * log_tail / normal
    best = math.inf
    for _ in range(24):
        log_mgf = math.fsum(count * measure.log_mgf(sign * s) for measure, count in parts)
        reach = (log_mgf + log_tail) / s - sign * mean
        if reach >= best:
            break
        best = reach
        if best <= _NEAR * normal:
            break
        s *= 0.7
    return best


def largest_weight(tilt: float) -> float:
    """Maximum of ``(1 - e^{-y}) e^{-t y}`` over ``y >= 0``: ``t^t / (1 + t)^(1 + t)``."""
    return math.exp(-tilt * math.log1p(1.0 / tilt) - math.log1p(tilt))


def _weights_norm(tilt: float, step: float) -> float:
    """A bound on the 2-norm of these weights on a lattice: the integral, and a maximum for it."""
    square = 0.5 / (tilt * (2.0 * tilt + 1.0) * (tilt + 1.0) * step) + largest_weight(tilt) ** 2
    return math.sqrt(square)
