"""The privacy profile as a contour integral, at a cost independent of the number of compositions.

For any real ``c > 0``, with ``phi_i(z) = E[exp(z L_i)]`` and ``n_i`` uses of step ``i``,

    ``delta(eps) = 1/(2 pi i) int_{c + iR} prod phi_i(z)^{n_i} e^{-z eps} / (z (z + 1)) dz``.

``c`` is a saddle point (see ``composition``): the integrand is real, positive and largest at
``t = 0``, and everything is divided by its value there, so that delta = 1e-300 is no harder than
1e-5. The trapezoidal rule with step ``2 pi / D`` adds ``sum delta(eps + k D) e^{c k D}`` over
``k != 0`` to ``delta(eps)``. With ``D`` 50 standard deviations, the terms below are smaller than
``e^{-50}`` as ``curvature >= 1/c^2``; those above by Chernoff's bound, or else ``D`` is larger.

When it is given up
-------------------
A sum of many losses has died within 96 steps (Gaussian decay: ``exp(-t^2 / 2) < 1e-17`` at
``t = 8.9`` standard deviations). It may come back: where tilted losses cluster around two values
``|phi_i|`` returns to almost 1 when ``t`` times their distance is a multiple of ``2 pi``, for large
``n_i`` far beyond those steps. So ``sum n_i log|phi_i(c + i t)|`` is probed on the scale of a
*single* loss, where it is smooth, with peaks between the probes from parabolas. If it lives for too
long the contour is given up; so it is where the integral is much smaller than that of its modulus
(`Line.error`): the saddle point belongs to outcomes too rare to matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.accounting.estimate.composition import Composition, NotConvergedError, Saddle
from psinoise.accounting.loss.pairs import Float

Complex = NDArray[np.complex128]

_STEPS_PER_DEVIATION = 8.0
_FIRST_STEPS = 96
# Error relative to the modulus, of the recurrence.
_DIRECT_ERROR = 1e-15
# Searches for an epsilon end one step after log delta is as close.
_MOST_ITERATIONS, _CLOSE = 30, 1e-8
_DIRECT_STEPS = 2**13
# Direct sums of more terms than this take longer than other ways to the answer.
_DIRECT_TERMS = 2**22
_DEAD = 1e-17
_LOG_DEAD = math.log(_DEAD)
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


@dataclass(frozen=True, eq=False)
class Line:
    """The integrand along ``c + iR`` relative to its value at ``t = 0``, without ``e^{-i t eps}``.

    Losses are measured from ``K'(c)``.
    """

    saddle: Saddle
    step: float
    values: Complex

    @cached_property
    def _frequencies(self) -> Float:
        return self.step * np.arange(self.values.size, dtype=np.float64)

    @cached_property
    def _weights(self) -> Complex:
        weights = self.values * (self.step / math.pi)
        weights[0] *= 0.5
        return weights

    @cached_property
    def _modulus(self) -> float:
        return float(np.abs(self._weights).sum())

    def error(self, epsilon: float) -> float:
        """Estimated relative error of delta: rounding, beside what is left of what cancels."""
        total, _ = self._total(epsilon)
        return _DIRECT_ERROR * self._modulus / total if total > 0.0 else math.inf

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Log delta and its derivative in epsilon; ``-inf`` where rounding leaves nothing."""
        saddle, c = self.saddle, self.saddle.c
        total, slope = self._total(epsilon)
        if not total > 0.0:
            return -math.inf, -c
        exponent = (saddle.value - c * saddle.mean) + c * (saddle.mean - epsilon)
        log_scale = exponent - math.log(c) - math.log1p(c)  # of the integrand at t = 0
        return log_scale + math.log(total), -(c + slope / total)

    def epsilon(self, log_delta: float, start: float) -> float:
        """Newton's method on log delta, which is nearly straight, from the saddle point.

        Raises `NotConvergedError` if rounding leaves nothing, or it does not converge.
        """
        epsilon = start
        for _ in range(_MOST_ITERATIONS):
            value, slope = self.log_delta(epsilon)
            step = (log_delta - value) / slope if slope < 0.0 else math.nan
            if not math.isfinite(step):
                break
            epsilon += step
            if abs(log_delta - value) <= _CLOSE or abs(step) <= 4e-16 * abs(epsilon):
                # Quadratic convergence: what is left after such a step is below rounding.
                return epsilon
        raise NotConvergedError("the epsilon of a contour is not found")

    def _total(self, epsilon: float) -> tuple[float, float]:
        """The integral relative to the integrand at ``t = 0``, and its derivative in ``-eps``."""
        shift = self.saddle.mean - epsilon
        terms = self._weights * np.exp((1j * shift) * self._frequencies)
        return float(terms.real.sum()), float(-(self._frequencies * terms.imag).sum())


def trace(composition: Composition, saddle: Saddle, epsilon: float) -> Line:
    """Evaluate the integrand as far as it lives.

    Raises `NotConvergedError` where it lives for long.
    """
    step = _step_of(composition, saddle, epsilon)
    finer = composition.resolved(saddle, _FIRST_STEPS * step)
    composition, saddle = finer or (composition, saddle)
    values = _integrand(composition, saddle, step, _FIRST_STEPS)
    horizon = _horizon(composition, saddle, _FIRST_STEPS * step, _DIRECT_STEPS * step)
    if _dead(values) and horizon <= _FIRST_STEPS * step:
        return Line(saddle, step, values)
    steps = _FIRST_STEPS
    while steps < _DIRECT_STEPS and horizon <= _DIRECT_STEPS * step:
        steps = min(max(2 * steps, 16 * math.ceil(horizon / (16.0 * step))), _DIRECT_STEPS)
        finer = composition.resolved(saddle, steps * step)
        if finer is None or steps * max(m.loss.size for m in finer[0].measures) > _DIRECT_TERMS:
            break
        values = _integrand(*finer, step, steps)
        if _dead(values) and steps * step >= horizon:
            return Line(finer[1], step, values)
    raise NotConvergedError("the contour integral is long")


def _step_of(composition: Composition, saddle: Saddle, epsilon: float) -> float:
    """The step, whose inverse is the distance of the nearest alias of the loss."""
    distance = 2.0 * math.pi * _STEPS_PER_DEVIATION * math.sqrt(saddle.curvature)
    far = composition.alias_distance(saddle, epsilon, distance)
    return 2.0 * math.pi / max(distance, far)


def _dead(values: Complex) -> bool:
    return float(np.abs(values[-8:]).max()) < _DEAD


# -- the integrand, and how far along the contour it lives -----------------------------------------


def _ratios(
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


def _damping(saddle: Saddle, frequencies: Float) -> Complex:
    """``c (c + 1) / (z (z + 1))`` at ``z = c + i t``."""
    c = saddle.c
    denominator = (1.0 + 1j * (frequencies / c)) * (1.0 + 1j * (frequencies / (c + 1.0)))
    return np.asarray(1.0 / denominator)


def _integrand(composition: Composition, saddle: Saddle, step: float, steps: int) -> Complex:
    exponent = np.zeros(steps, dtype=np.complex128)
    for ratio, count in _ratios(composition, saddle, step, steps):
        exponent += log_power(ratio, count)
    return np.asarray(
        np.exp(exponent) * _damping(saddle, step * np.arange(steps, dtype=np.float64))
    )


def _horizon(composition: Composition, saddle: Saddle, start: float, limit: float) -> float:
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
    level = np.log(np.abs(_damping(saddle, frequencies)))
    for ratio, count in _ratios(composition, saddle, float(frequencies[1]), frequencies.size):
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
        total = np.log(np.abs(_damping(saddle, frequencies)))
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
