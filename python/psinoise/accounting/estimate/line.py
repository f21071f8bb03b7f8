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
``t = 8.9`` standard deviations). It may come back: tilted losses that cluster around two values
make ``|phi_i|`` return to almost 1 when ``t`` times their distance is a multiple of ``2 pi``, which
for large ``n_i`` is far beyond the first 96 steps. So ``sum n_i log|phi_i(c + i t)|`` is probed on
the scale of a *single* loss, where it is smooth, with peaks between the probes from parabolas. If
it lives for too long the contour is given up; so it is where the integral is much smaller than that
of its modulus, which the caller sees from `Line.error`: the saddle point belongs to outcomes too
rare to matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._kept import cached_property
from psinoise.accounting.estimate.composition import Composition, NotConvergedError, Saddle
from psinoise.accounting.estimate.integrand import (
    DEAD,
    DIRECT_STEPS,
    DIRECT_TERMS,
    horizon_of,
    integrand,
)

Float = NDArray[np.float64]
Complex = NDArray[np.complex128]

STEPS_PER_DEVIATION = 8.0
_FIRST_STEPS = 96
# Error relative to the modulus, of the recurrence.
_DIRECT_ERROR = 1e-15
# Searches for an epsilon end one step after log delta is as close.
_MOST_ITERATIONS, _CLOSE = 30, 1e-8


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

        Raises
        ------
        NotConvergedError
            if rounding leaves nothing, or it does not converge
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

    Raises
    ------
    NotConvergedError
        where it lives for long
    """
    step = _step_of(composition, saddle, epsilon)
    finer = composition.resolved(saddle, _FIRST_STEPS * step)
    composition, saddle = finer or (composition, saddle)
    values = integrand(composition, saddle, step, _FIRST_STEPS)
    horizon = horizon_of(composition, saddle, _FIRST_STEPS * step, DIRECT_STEPS * step)
    if _dead(values) and horizon <= _FIRST_STEPS * step:
        return Line(saddle, step, values)
    steps = _FIRST_STEPS
    while steps < DIRECT_STEPS and horizon <= DIRECT_STEPS * step:
        steps = min(max(2 * steps, 16 * math.ceil(horizon / (16.0 * step))), DIRECT_STEPS)
        finer = composition.resolved(saddle, steps * step)
        if finer is None or steps * max(m.loss.size for m in finer[0].measures) > DIRECT_TERMS:
            break
        values = integrand(*finer, step, steps)
        if _dead(values) and steps * step >= horizon:
            return Line(finer[1], step, values)
    raise NotConvergedError("the contour integral is long")


def _step_of(composition: Composition, saddle: Saddle, epsilon: float) -> float:
    """The step, whose inverse is the distance of the nearest alias of the loss."""
    distance = 2.0 * math.pi * STEPS_PER_DEVIATION * math.sqrt(saddle.curvature)
    far = composition.alias_distance(saddle, epsilon, distance)
    return 2.0 * math.pi / max(distance, far)


def _dead(values: Complex) -> bool:
    return float(np.abs(values[-8:]).max()) < DEAD
