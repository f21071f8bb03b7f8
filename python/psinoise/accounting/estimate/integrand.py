"""The integrand of the contour integral, and how far along the contour it lives."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.estimate.composition import Composition, Saddle

Float = NDArray[np.float64]
Complex = NDArray[np.complex128]

DIRECT_STEPS = 2**13
# Direct sums of more terms than this take longer than other ways to the answer.
DIRECT_TERMS = 2**22
DEAD = 1e-17
_LOG_DEAD = math.log(DEAD)
_NEGLIGIBLE_WEIGHT = 1e-18
# Probes, and more of them where losses have very different scales.
_PROBES = (64, 256, 1024)
_PROBE_STEP = 0.35
_LOW_CHANGE = -0.75
# Stands for 0, whose logarithm is not finite.
_LEAST_MODULUS = 1e-300
_MANY_ATOMS = 64
# Nodes of all peaks that are looked for; sections after which they are flat.
_MOST_LOOKED_AT, _SECTIONS, _TOGETHER = 10_000, 30, 8


def ratios(
    composition: Composition, saddle: Saddle, step: float, steps: int
) -> list[tuple[Complex, float]]:
    """``exp(-i t K_i'(c)) phi_i(c + i t)/phi_i(c) - 1`` and ``n_i`` for each step ``i``.

    Sums of ``M (exp(i t (L - K')) - 1)`` over the tilted masses ``M``, without nodes that change
    all uses by less than 1e-18. The first-order term vanishes by definition of ``K'``; what is left
    of it is rounding, and is taken off.
    """
    result = []
    frequencies = step * np.arange(steps, dtype=np.float64)
    for measure, count, (value, mean, _) in composition.each(saddle):
        weights = np.exp(measure.log_tilted(saddle.c, value))
        losses = measure.loss - mean
        effect = weights * np.minimum(1.0, np.abs(losses) * (step * steps)) ** 2
        keep = effect * (count * weights.size) > _NEGLIGIBLE_WEIGHT
        weights, losses = weights[keep], losses[keep]
        sums = core.characteristic(weights, losses, step, steps)
        result.append((sums - (1j * float(weights @ losses)) * frequencies, count))
    return result


def log_power(ratio: Complex, count: float | Float) -> Complex:
    """``count * log(1 + ratio)`` with relative accuracy for small ratios."""
    re, im = ratio.real, ratio.imag
    change = re * (2.0 + re) + im * im
    # Near -1 it has lost the digits of the modulus, which the plain sum of squares keeps.
    low = change < _LOW_CHANGE
    log_modulus = 0.5 * np.log1p(np.maximum(change, _LOW_CHANGE))
    log_modulus[low] = np.log(np.maximum(np.hypot(1.0 + re[low], im[low]), _LEAST_MODULUS))
    return np.asarray(count * log_modulus + (1j * count) * np.arctan2(im, 1.0 + re))


def damping(saddle: Saddle, frequencies: Float) -> Complex:
    """``c (c + 1) / (z (z + 1))`` at ``z = c + i t``."""
    c = saddle.c
    denominator = (1.0 + 1j * (frequencies / c)) * (1.0 + 1j * (frequencies / (c + 1.0)))
    return np.asarray(1.0 / denominator)


def integrand(composition: Composition, saddle: Saddle, step: float, steps: int) -> Complex:
    exponent = np.zeros(steps, dtype=np.complex128)
    for ratio, count in ratios(composition, saddle, step, steps):
        exponent += log_power(ratio, count)
    return np.asarray(np.exp(exponent) * damping(saddle, step * np.arange(steps, dtype=np.float64)))


def horizon_of(composition: Composition, saddle: Saddle, start: float, limit: float) -> float:
    """The largest frequency beyond ``start`` at which the integrand is seen alive; 0 if none.

    ``inf`` if it is alive at the end of the probes, which are at most four times as far as the
    limit, or if losses with atoms revive it for ever.
    """
    widest = math.sqrt(saddle.parts[:, 2].max())
    if widest == 0.0:
        return math.inf
    step = _PROBE_STEP / widest
    for probes in _PROBES:
        # Noise of coarse panels would look alive.
        finer = composition.resolved(saddle, step * probes)
        if finer is None or _log_atoms(*finer) > _LOG_DEAD:
            return math.inf
        frequencies = step * np.arange(probes, dtype=np.float64)
        level = _log_moduli(*finer, frequencies)
        alive = np.flatnonzero((level > _LOG_DEAD) & (frequencies > start))
        # Of very many uses a peak that is no parabola may be anything: it is looked for.
        if alive.size * sum(m.loss.size for m in finer[0].measures) <= _MOST_LOOKED_AT:
            alive = _up_to_last(*finer, frequencies, alive)
        if alive.size == 0:
            return 0.0
        if alive[-1] < probes - 2:
            return float(frequencies[alive[-1]] + step)
        if step * probes > limit:
            break
    return math.inf


def _log_moduli(composition: Composition, saddle: Saddle, frequencies: Float) -> Float:
    """Logs of the modulus of the integrand about equidistant frequencies, with peaks between."""
    level = np.log(np.abs(damping(saddle, frequencies)))
    for ratio, count in ratios(composition, saddle, float(frequencies[1]), frequencies.size):
        level += log_power(ratio, count).real
    before, middle, after = level[:-2], level[1:-1], level[2:]
    bend = 2.0 * middle - before - after
    peak = (middle >= before) & (middle >= after) & (bend > 0.0)
    gain = np.where(peak, (after - before) ** 2 / (8.0 * np.where(peak, bend, 1.0)), 0.0)
    # A tenth more than the parabola says.
    level[1:-1] += 1.1 * gain
    return np.asarray(level)


def _up_to_last(
    composition: Composition, saddle: Saddle, frequencies: Float, candidates: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The candidates up to the last one that is alive: as a rule that of all, or none."""
    for end in range(candidates.size, 0, -_TOGETHER):
        start = max(end - _TOGETHER, 0)
        near = frequencies[candidates[start:end]]
        peaks = _log_peaks(composition, saddle, near, float(frequencies[1]))
        alive = np.flatnonzero(peaks > _LOG_DEAD)
        if alive.size:
            return candidates[: start + int(alive[-1]) + 1]
    return candidates[:0]


def _log_peaks(composition: Composition, saddle: Saddle, near: Float, step: float) -> Float:
    """The largest logs of the modulus within a step of some frequencies, by golden sections."""

    def level(frequencies: Float) -> Float:
        total = np.log(np.abs(damping(saddle, frequencies)))
        for measure, count, (value, mean, _) in composition.each(saddle):
            turned = np.expm1(1j * np.multiply.outer(frequencies, measure.loss - mean))
            ratio = turned @ np.exp(measure.log_tilted(saddle.c, value))
            total += log_power(ratio, count).real
        return np.asarray(total)

    low, high = near - step, near + step
    share = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(_SECTIONS):
        left, right = high - share * (high - low), low + share * (high - low)
        rising = level(left) < level(right)
        low, high = np.where(rising, left, low), np.where(rising, high, right)
    return level(0.5 * (low + high))


def _log_atoms(composition: Composition, saddle: Saddle) -> float:
    """Log of the modulus to which losses that are all atoms revive the integrand far out.

    A few atoms return to their whole probability again and again. Many in no order do not, within
    any distance of interest.
    """
    total = 0.0
    for measure, count, (value, _, _) in composition.each(saddle):
        if measure.atoms == 0:
            return -math.inf
        where = slice(measure.loss.size - measure.atoms, None)
        atoms = measure.log_tilted(saddle.c, value)[where]
        log_mass = float(np.logaddexp.reduce(atoms))
        if measure.atoms > _MANY_ATOMS and not _evenly_spaced(measure.loss[where]):
            # Far out their phases are as good as random: the mean square of the sum of all.
            log_mass = 0.5 * float(np.logaddexp.reduce(2.0 * atoms))
        total += count * log_mass
    return total


def _evenly_spaced(positions: Float) -> bool:
    """Whether atoms lie on a lattice without gaps, on which their phases return together."""
    gaps = np.diff(np.sort(positions))
    return float(np.ptp(gaps)) <= 1e-6 * float(gaps.max())
