"""The privacy profile as a contour integral, at a cost independent of the number of compositions.

For any real ``c > 0``, with ``phi_i(z) = E[exp(z L_i)]`` and ``n_i`` uses of step ``i``,

    ``delta(eps) = 1/(2 pi i) int_{c + iR} prod phi_i(z)^{n_i} e^{-z eps} / (z (z + 1)) dz``.

``c`` is a saddle point (see ``composition``): the integrand is real, positive and largest at
``t = 0``, and everything is divided by its value there, so that delta = 1e-300 is no harder than
1e-5. The trapezoidal rule with step ``2 pi / D`` adds ``sum delta(eps + k D) e^{c k D}`` over
``k != 0`` to ``delta(eps)``. With ``D`` 50 standard deviations, the terms below are smaller than
``e^{-50}`` as ``curvature >= 1/c^2``; those above by Chernoff's bound, or else ``D`` is larger.

How the integrand decides
-------------------------
1. 96 steps. A sum of many losses has died by then (Gaussian decay: ``exp(-t^2 / 2) < 1e-17`` at
   ``t = 8.9`` standard deviations), and this is all.
2. It may come back: tilted losses that cluster around two values make ``|phi_i|`` return to
   almost 1 when ``t`` times their distance is a multiple of ``2 pi``, which for large ``n_i`` is
   far beyond the first 96 steps. So ``sum n_i log|phi_i(c + i t)|`` is probed on the scale of a
   *single* loss, where it is smooth, with peaks between the probes from parabolas.
3. If it lives on for a while, the steps go on directly; if it lives long, by a non-uniform FFT
   (``nonuniform``) with up to 2^20 of them, on panels refined for the frequencies in use.
4. If it does not decay at all, the losses have atoms (Laplace noise, few compositions). The sum
   over the atoms of the composed loss is exact and finite (``atoms``); the integral is taken of the
   rest, which decays like ``t^{-3}`` or faster, with a smooth cut-off, which removes the
   contribution of the truncated end unless epsilon is within a few ``1/t`` of a break point. The
   number of steps is quadrupled until delta no longer changes.

5. If the integral is much smaller than that of the modulus, the saddle point belongs to outcomes
   too rare to matter. The caller sees that from `Line.error` and divides the measure
   (``large_losses``), as it does where the integrand lives long.

No lattice of losses is involved: nothing has to be aligned with the atoms, and mechanisms with
incommensurable atoms compose.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.contour.atoms import Atoms, atoms_integrand, composed_atoms
from psinoise.accounting.contour.composition import Composition, Saddle, Transform
from psinoise.accounting.contour.integrand import (
    DEAD,
    DIRECT_STEPS,
    DIRECT_TERMS,
    horizon_of,
    integrand,
    large_atoms_matter,
)
from psinoise.accounting.loss.windows import descent
from psinoise.errors import CertificationError

Float = NDArray[np.float64]
Complex = NDArray[np.complex128]

STEPS_PER_DEVIATION = 8.0
_FIRST_STEPS = 96
_LONG_STEPS = (2**12, 2**14, 2**16, 2**18, 2**20)
# Errors relative to the modulus: of the recurrence, and of the non-uniform FFT.
_DIRECT_ERROR = 1e-15
_CUT_ERROR = 1e-12
# Relative error above which one line is not enough and the measure is divided (`large_losses`).
LARGEST_ERROR = 1e-10


@dataclass(frozen=True, eq=False)
class Line:
    """The integrand along ``c + iR`` relative to its value at ``t = 0``, without ``e^{-i t eps}``.

    Losses are measured from ``K'(c)``; ``shift`` below is ``K'(c) - eps``. ``doubt`` is the
    absolute error of the integral; 0 for a line that was followed to its end.
    """

    saddle: Saddle
    step: float
    values: Complex
    atoms: Atoms
    doubt: float = 0.0

    @functools.cached_property
    def _frequencies(self) -> Float:
        return self.step * np.arange(self.values.size, dtype=np.float64)

    @functools.cached_property
    def _weights(self) -> Complex:
        weights = self.values * (self.step / math.pi)
        weights[0] *= 0.5
        return weights

    def cut(self, previous: Line | None, epsilon: float) -> Line:
        """The line with its end cut off; the doubt is how much it changed the integral."""
        line = Line(self.saddle, self.step, self.values * cut_off(self.values.size), self.atoms)
        change = math.inf
        if previous is not None:
            change = abs(line._total(epsilon)[0] - previous._total(epsilon)[0])
        doubt = change + _CUT_ERROR * line._modulus
        return Line(line.saddle, line.step, line.values, line.atoms, doubt)

    def hopeless(self, epsilon: float) -> bool:
        """Whether so much cancels that more steps would settle on digits that are lost already."""
        total = self._total(epsilon)[0]
        return not _CUT_ERROR * self._modulus < LARGEST_ERROR * total

    @functools.cached_property
    def _modulus(self) -> float:
        return float(np.abs(self._weights).sum())

    @property
    def rounding(self) -> float:
        """Absolute error of the integral from rounding, to which what cancels must be compared."""
        return _DIRECT_ERROR * self._modulus

    @property
    def relative_doubt(self) -> float:
        """The doubt relative to what the integral would be if nothing canceled."""
        return self.doubt / self._modulus

    def value(self, epsilon: float) -> float:
        """The integral relative to the integrand at ``t = 0``."""
        return self._total(epsilon)[0]

    def error(self, epsilon: float) -> float:
        """Estimated relative error of delta, from what cancels and from how well it settled."""
        total = self.value(epsilon)
        return (self.rounding + self.doubt) / total if total > 0.0 else math.inf

    def log_modulus(self, epsilon: float) -> float:
        """Log of what delta would be if nothing canceled."""
        return self.log_scale(epsilon) + math.log(max(self._modulus, 1e-300))

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Log delta and its derivative in epsilon; ``-inf`` where rounding leaves nothing."""
        c = self.saddle.c
        total, slope = self._total(epsilon)
        if not total > 0.0:
            return -math.inf, -c
        return self.log_scale(epsilon) + math.log(total), -(c + slope / total)

    def log_scale(self, epsilon: float) -> float:
        """Log of the integrand at ``t = 0``."""
        saddle, c = self.saddle, self.saddle.c
        exponent = (saddle.value - c * saddle.mean) + c * (saddle.mean - epsilon)
        return exponent - math.log(c) - math.log1p(c)

    def _total(self, epsilon: float) -> tuple[float, float]:
        """The integral relative to the integrand at ``t = 0``, and its derivative in ``shift``."""
        c, shift = self.saddle.c, self.saddle.mean - epsilon
        terms = self._weights * np.exp((1j * shift) * self._frequencies)
        total = float(terms.real.sum())
        slope = float(-(self._frequencies * terms.imag).sum())
        if self.atoms.positions.size:
            above = self.atoms.positions + shift
            seen = above > 0.0
            above, weights = above[seen], self.atoms.weights[seen] * (c * (c + 1.0))
            decay = weights * np.exp(-c * above)
            gap = -np.expm1(-above)
            total += float((decay * gap).sum())
            slope += float((decay * (np.exp(-above) - c * gap)).sum())
        return total, slope


class UnsettledError(CertificationError):
    """The contour integral did not settle, or would take very long."""


class LongContourError(UnsettledError):
    """The integrand lives long, and no atoms of large losses are to blame."""


def trace(
    composition: Composition, saddle: Saddle, epsilon: float, *, patient: bool = True
) -> Line:
    """Evaluate the integrand as far as it lives, or until delta at ``epsilon`` has settled.

    Raises
    ------
    LongContourError
        without patience, where it lives long and no atoms of large losses are to blame
    UnsettledError
        where the losses are nothing but atoms, too many of them
    """
    step = step_of(composition, saddle, epsilon)
    composition, saddle = _resolved(composition, saddle, _FIRST_STEPS * step) or (
        composition,
        saddle,
    )
    values = integrand(composition, saddle, step, _FIRST_STEPS)
    horizon = horizon_of(composition, saddle, _FIRST_STEPS * step)
    if dead(values) and horizon <= _FIRST_STEPS * step:
        return Line(saddle, step, values, Atoms.none())
    steps = _FIRST_STEPS
    while steps < DIRECT_STEPS and horizon <= DIRECT_STEPS * step:
        steps = min(max(2 * steps, 16 * math.ceil(horizon / (16.0 * step))), DIRECT_STEPS)
        finer = _resolved(composition, saddle, steps * step)
        if finer is None or steps * max(m.loss.size for m in finer[0].measures) > DIRECT_TERMS:
            break
        values = integrand(*finer, step, steps)
        if dead(values) and steps * step >= horizon:
            return Line(finer[1], step, values, Atoms.none())
    if not patient and not large_atoms_matter(composition, saddle):
        raise LongContourError("the contour integral is long")
    return _long_line(composition, saddle, step, horizon, epsilon)


def step_of(transform: Transform, saddle: Saddle, epsilon: float) -> float:
    """The step, whose inverse is the distance of the nearest alias of the loss."""
    distance = 2.0 * math.pi * STEPS_PER_DEVIATION * math.sqrt(saddle.curvature)
    far = transform.alias_distance(saddle, epsilon, distance)
    return 2.0 * math.pi / max(distance, far)


def dead(values: Complex) -> bool:
    return float(np.abs(values[-8:]).max()) < DEAD


def _resolved(
    composition: Composition, saddle: Saddle, frequency: float
) -> tuple[Composition, Saddle] | None:
    """Refine the panels for a range of frequencies; None if that takes too many nodes."""
    finer = composition.resolved(saddle, frequency)
    if finer is None or finer is composition:
        return None if finer is None else (composition, saddle)
    return finer, finer.saddle(saddle.c)


def _long_line(
    composition: Composition, saddle: Saddle, step: float, horizon: float, epsilon: float
) -> Line:
    """Slow decay: exact atoms, and more steps for the rest until they change nothing."""
    # The non-uniform FFT has an absolute error; near t = 0 the integrand needs a relative one.
    first = integrand(composition, saddle, step, _FIRST_STEPS)
    atoms = composed_atoms(composition, saddle)
    if all(measure.panels == 0 for measure in composition.measures):
        # The atoms are all there is.
        if not atoms.positions.size:
            raise UnsettledError("the loss is made of too many atoms for its contour integral")
        return Line(saddle, step, np.zeros(_FIRST_STEPS, dtype=np.complex128), atoms, _CUT_ERROR)
    line: Line | None = None
    for steps in _LONG_STEPS:
        finer = _resolved(composition, saddle, steps * step)
        if finer is None and line is not None:
            break
        # Beyond 2^20 nodes the fastest oscillations stay unresolved; so far out they cancel.
        values = integrand(*(finer or (composition, saddle)), step, steps)
        values[:_FIRST_STEPS] = first
        if atoms.positions.size:
            values -= atoms_integrand(composition, saddle, step, steps)
        previous = line
        line = Line(saddle, step, values, atoms).cut(previous, epsilon)
        reached = steps * step >= (horizon if math.isfinite(horizon) else 0.0)
        if line.hopeless(epsilon) or (reached and line.error(epsilon) < LARGEST_ERROR):
            break
    return line if line is not None else Line(saddle, step, first, Atoms.none(), math.inf)


def cut_off(steps: int) -> Float:
    """1 on the first half, then a smooth descent to 0 with all derivatives zero at both ends."""
    return np.concatenate(
        [np.ones(steps // 2), descent(np.linspace(-1.0, 1.0, steps - steps // 2 + 2)[1:-1])]
    )
