"""Bounds on the profile where one large loss decides, and rounding would drown what it leaves.

With a small rate and few uses one tilt does not do: most of the tilted mass is next to 0 and far
beyond epsilon, and what lies around epsilon is a small share ``s`` of it. The rounding of a Fourier
sum, some ``n u`` of *all* of the tilted mass, is ``n u / s`` of delta. So the nodes of each step
are divided at a loss ``lambda``, ``f = b + e``, and

    ``prod f^n = prod b^n + R``,  ``R = prod f^n - prod b^n``.

Both are measures, and what they contribute to delta adds up. Each is composed under a tilt of its
own: ``b``, which is bounded, under a larger one, and ``R``, of which one loss at least is larger
than ``lambda``, under a smaller one. ``lambda`` and the tilts are those that make Chernoff's bounds
of both at epsilon least: they bound what their rounding can be.

Fourier sums of ``R``
---------------------
With ``F = B + E`` at one frequency, ``R = F^n - B^n = F^n (1 - (1 - E / F)^n)``, of which nothing
cancels where ``E`` is small. Let all ``B`` be off by ``r``, and ``E`` by ``r`` times the mass ``e``
of its nodes. By the product rule, and because the products of all factors but one differ by at most
``sum n e`` times the modulus ``m >= |F|, |B|`` of the others, ``R`` is off by at most

    ``(sum n r) (sum n e) prod m^n / min m^2``:

``n r`` of the tilted mass of ``R``, and not of that of all.

Tilting the masses anew is right to a rounding ``w`` of each; the composition is that of other
masses, and its profile off by a factor of ``(1 + w)^n``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np

from psinoise.accounting.contour.integrand import log_power
from psinoise.accounting.lattice.band import band_sums
from psinoise.accounting.lattice.bins import Index
from psinoise.accounting.lattice.bounds import NodeMeasure, retilted
from psinoise.accounting.lattice.convolution import (
    Profile,
    compose,
    infinite_mass,
    largest_weight,
    tail_within,
    window_size,
)
from psinoise.accounting.lattice.crossing import ProfileBound
from psinoise.accounting.lattice.division import Division
from psinoise.accounting.lattice.frequencies import (
    DEAD,
    FrequencyProfile,
    Lattice,
    last_frequency,
    low_profile,
)
from psinoise.accounting.lattice.spectra import (
    LEAST_MODULUS,
    Complex,
    LowFrequencies,
)
from psinoise.accounting.lattice.transforms import UNIT, transform_error, transform_of, wrap
from psinoise.accounting.loss.pairs import Float
from psinoise.errors import CertificationError

Parts = list[tuple[NodeMeasure, int]]

_MOST_FREQUENCIES = 2**19
# What can contribute no more than this share of delta is not composed.
_LOG_NEGLIGIBLE = -40.0
_LEAST_LOG_TAIL = -600.0
_LEAST_WINDOW = 64
# Fewer frequencies than nodes by this factor are worth transforms of their own.
_FEW = 64
_TINY = 1e-300
_LINEAR = -37.0
_LARGEST_EXPONENT = 700.0
_MULTIPLES = 2.0 ** np.arange(-6.0, 12.0, 0.5)


@dataclass(frozen=True, eq=False)
class DividedBound(ProfileBound):
    """The sum of the bounds of both measures; above if ``sign`` is 1, below if -1.

    ``infinite`` is the log of the probability of infinite losses.
    """

    terms: tuple[ProfileBound, ...]
    infinite: float
    rate: float
    sign: float
    rounding: float

    @property
    def tilt(self) -> float:
        return self.rate

    def log_delta(self, epsilon: float) -> float:
        """Log of the bound on delta at ``epsilon``."""
        logs = [term.log_delta(epsilon) for term in self.terms]
        if self.sign > 0.0:
            logs.append(self.infinite)
        return float(np.logaddexp.reduce(logs)) + self.sign * self.rounding


def _rounding(parts: Parts, tilt: float) -> float:
    """Of the log of a profile, from tilting the masses anew."""
    sizes = (count * float(np.abs((tilt - m.tilt) * m.losses).max() + 20.0) for m, count in parts)
    return 8.0 * UNIT * math.fsum(sizes)


@dataclass(frozen=True, eq=False)
class _Chernoff(ProfileBound):
    """Chernoff's bound from above, of compositions that hardly matter."""

    parts: Parts
    sign: float = 1.0

    @property
    def tilt(self) -> float:
        return self.parts[0][0].tilt

    @functools.cached_property
    def _at_zero(self) -> float:
        log_norm = math.fsum(count * m.log_norm for m, count in self.parts)
        slack = math.fsum(count * m.slack for m, count in self.parts)
        return log_norm + self.tilt * slack + math.log(largest_weight(self.tilt))

    def log_delta(self, epsilon: float) -> float:
        return self._at_zero - self.tilt * epsilon


def divided_bound(
    parts: Parts, division: Division, log_delta: float, epsilon: float, share: float, sign: float
) -> DividedBound:
    """The bound on the profile of a composition, sharp around epsilon.

    Parameters
    ----------
    parts
        bounds on the masses of the steps, on lattices of one step, and their counts
    division
        where they are divided
    log_delta, epsilon
        a point on the profile
    share
        of delta that leaving out tails may cost
    sign
        1 from above, -1 from below

    Raises
    ------
    CertificationError
        if a window would be too long
    """
    infinite = infinite_mass(parts)
    parts = [(dataclasses.replace(m, infinite=0.0), n) for m, n in parts]
    terms: list[ProfileBound] = []
    # Each part has half of the share.
    place = log_delta, epsilon, 0.5 * share, _LEAST_LOG_TAIL
    small = [(retilted(m, division.below, m.losses <= division.threshold), n) for m, n in parts]
    alone = _Chernoff(small)
    if alone.log_delta(epsilon) > log_delta + _LOG_NEGLIGIBLE:
        terms.append(_composed(small, tail_within(small, *place), sign))
    elif sign > 0.0:
        terms.append(alone)
    whole = [(retilted(m, division.above), n) for m, n in parts]
    tail = tail_within(whole, *place)
    if any(_has(m, division.threshold) for m, _ in whole):
        terms.append(_large_profile(whole, division.threshold, tail, sign))
    rounding = max(_rounding(parts, division.below), _rounding(parts, division.above))
    return DividedBound(
        tuple(terms),
        math.log(infinite) if infinite > 0.0 else -math.inf,
        division.above,
        sign,
        rounding,
    )


def _composed(parts: Parts, tail: float, sign: float) -> ProfileBound:
    profile = low_profile(parts, tail, sign)
    if profile is not None:
        return profile
    first, size, outside = window_size(parts, tail)
    if size > 2 * _MOST_FREQUENCIES:
        raise _too_long(size)
    return Profile(compose(parts, first, size, outside), sign)


def _too_long(size: int) -> CertificationError:
    return CertificationError(
        f"the bounds need a lattice of {size} nodes, more than {2 * _MOST_FREQUENCIES}"
    )


def _large_profile(parts: Parts, threshold: float, tail: float, sign: float) -> FrequencyProfile:
    """The bound on what compositions with at least one large loss contribute."""
    step, tilt = parts[0][0].step, parts[0][0].tilt
    offset = math.fsum(count * measure.offset for measure, count in parts)
    small = [(retilted(m, tilt, m.losses <= threshold), n) for m, n in parts]
    low, high = _ends(parts, small, threshold, math.log(tail))
    first = math.floor((low - offset) / step) - 1
    size = max(math.ceil((high - offset) / step) + 2 - first, _LEAST_WINDOW)
    theta = max(last_frequency(parts), last_frequency(small))
    frequencies = math.ceil(min(theta * size / (2.0 * math.pi), size) + 1.0)
    if frequencies > size // _FEW:
        size = 2 ** math.ceil(math.log2(size))
        frequencies = size // 2 + 1
    if frequencies > _MOST_FREQUENCIES:
        raise _too_long(size)
    weight = largest_weight(tilt)
    # F^n and B^n are left out, each below e^-DEAD.
    dead = math.exp(-DEAD) * (1.0 + 1.0 / (tilt * (tilt + 1.0) * step * weight))
    lattice = Lattice(
        step,
        offset,
        tilt,
        math.fsum(count * measure.log_norm for measure, count in parts),
        0.0,
        math.fsum(count * measure.slack for measure, count in parts),
        first,
        size,
        2.0 * tail + dead,
    )
    return FrequencyProfile(lattice, _large_sums(parts, threshold, first, size, frequencies), sign)


def _ends(parts: Parts, small: Parts, threshold: float, log_tail: float) -> tuple[float, float]:
    """What the sum of losses, one of them large, is below and above of with the mass of a tail."""
    tilt = parts[0][0].tilt
    large = [retilted(m, tilt, m.losses > threshold) for m, _ in parts if _has(m, threshold)]
    large_counts = [n for m, n in parts if _has(m, threshold)]
    beside = [s for (s, _), (m, _) in zip(small, parts, strict=True) if _has(m, threshold)]

    def log_mgf(s: float) -> float:
        below = math.fsum(
            n * (b.log_mgf(s) + b.log_norm - m.log_norm)
            for (b, n), (m, _) in zip(small, parts, strict=True)
        )
        gaps = (
            (e.log_mgf(s) + e.log_norm) - (b.log_mgf(s) + b.log_norm)
            for e, b in zip(large, beside, strict=True)
        )
        terms = (math.log(n) + _log_log1p_exp(g) for n, g in zip(large_counts, gaps, strict=True))
        log_rise = float(np.logaddexp.reduce(list(terms)))
        # B^n (e^rise - 1).
        if log_rise < _LINEAR:
            return below + log_rise
        rise = math.exp(log_rise)
        return below + rise + math.log(-math.expm1(-rise))

    ends = []
    for sign in (-1.0, 1.0):
        best = math.inf
        for multiple in _MULTIPLES:
            s = multiple * tilt
            reach = (log_mgf(sign * s) - log_tail) / s
            if reach > best:
                break
            best = reach
        ends.append(sign * best)
    return ends[0], ends[1]


def _has(measure: NodeMeasure, threshold: float) -> bool:
    return bool((measure.losses > threshold).any())


def _log_log1p_exp(x: float) -> float:
    """``log log(1 + e^x)``; for very negative x it is x to double precision."""
    return x if x < _LINEAR else math.log(float(np.logaddexp(0.0, x)))


def _large_sums(
    parts: Parts, threshold: float, first: int, size: int, frequencies: int
) -> LowFrequencies:
    """``F^n - B^n``, and its error; proofs at the head of this module."""
    exponent = np.zeros(frequencies, dtype=np.complex128)
    without = np.zeros(frequencies, dtype=np.complex128)
    shares = np.zeros(frequencies, dtype=np.complex128)
    log_moduli = np.zeros(frequencies)
    least = np.zeros(frequencies)
    powers = np.zeros(frequencies)
    residual = np.zeros(frequencies)
    large_mass, off = 0.0, 0.0
    shift = -first
    for measure, count in parts:
        center = round((measure.moments[0] - measure.offset) / measure.step)
        distance = measure.index - center
        shift += count * center
        large = measure.losses > threshold
        mass = float(np.sum(measure.mass[large]))
        small, small_off = _sums(measure.mass[~large], distance[~large], size, frequencies)
        rest, rest_off = _sums(measure.mass[large], distance[large], size, frequencies)
        whole = small + rest
        error = max(small_off, rest_off / mass if mass > 0.0 else 0.0) + 8.0 * UNIT
        modulus = np.maximum(np.abs(whole), _TINY)
        part = rest / np.where(modulus > _TINY, whole, _TINY)
        exponent += log_power(whole - 1.0, count)
        shares += log_power(-part, count)
        without += log_power(small - 1.0, count)
        log_modulus = np.log(np.maximum(np.abs(whole), np.abs(small)) + error)
        log_moduli += count * log_modulus
        least = np.minimum(least, log_modulus)
        # log_power is right to a rounding of 1, divided by the square of the modulus.
        powers += count * np.log1p(4.0 * UNIT / np.maximum(modulus, LEAST_MODULUS) ** 2)
        size_of = np.abs(part)
        left = np.maximum(np.minimum(np.abs(1.0 - part), 1.0) ** 2, _TINY)
        residual += count * 4.0 * UNIT * size_of * (1.0 + size_of) / left
        large_mass += count * mass
        off += count * error
    # F^n (1 - e^s) = B^n (e^{-s} - 1), the one whose exponential does not grow.
    rises = shares.real > 0.0
    shares[rises] *= -1.0
    value = np.where(rises, 1.0, -1.0) * np.exp(np.where(rises, without, exponent))
    value *= np.expm1(shares)
    turns = np.array([(shift * k) % size for k in range(frequencies)]) * (2.0 * math.pi / size)
    modulus = np.maximum(np.abs(value), _TINY)
    relative = np.expm1(np.minimum(powers, _LARGEST_EXPONENT))
    relative += UNIT * (24.0 + 4.0 * np.maximum(np.abs(exponent), np.abs(without)))
    absolute = 1.001 * off * large_mass * np.exp(log_moduli - 2.0 * least) + residual * np.exp(
        without.real
    )
    value = np.where(np.abs(value) > _TINY, value, _TINY)
    if 2 * (frequencies - 1) == size:
        value[-1] *= 0.5  # each stands for two, but for the last one
    return LowFrequencies(value * np.exp(1j * turns), np.log1p(absolute / modulus + relative))


def _sums(mass: Float, distance: Index, size: int, frequencies: int) -> tuple[Complex, float]:
    """As `band_sums`; by one transform of the window where all frequencies are asked for."""
    if 2 * (frequencies - 1) != size:
        return band_sums(mass, distance, size, frequencies)
    spectrum = np.ones(frequencies, dtype=np.complex128)
    transform_of(size).compose_into(wrap(mass, distance, size), 1, spectrum)
    longest = float(np.bincount(distance % size).max(initial=0))
    off = UNIT * longest + transform_error(size)
    return np.conj(spectrum), off * float(np.sum(mass)) * (1.0 + 1e-9)
