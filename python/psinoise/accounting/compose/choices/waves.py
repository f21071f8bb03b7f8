"""Functions of a loss as trigonometric polynomials under a tilt, and the grids they are seen on.

*Between the points of a grid* of spacing ``h`` a function is at most the larger of both values and
``h^2/8`` times its second derivative, of which the sum over coefficients is a bound
(`Grid.second`). Where second differences of the values are known, these say what it is at points
but for ``h^2/12`` of the fourth derivative, and between points it differs by ``h^2/8`` of that
(`Grid.fourth`): functions that bend in a few places alone cost little elsewhere.

*Sums of* ``e^{i w L}`` *over masses* (`Frame.transformed`): these are spread to the points of a
grid by a normal law of deviation ``s``, in units of their distance, whose transform divides that of
the grid. With ``N`` points wave ``k`` is off by the waves ``k + r N``, of which there is
``e^{-(2 pi s / N)^2 ((N - k)^2 - k^2) / 2}`` as much (Poisson's formula), and by what is cut off:
1e-16 for both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.accounting.compose.measures.measure import UNIT, Side, transform_of, transform_units
from psinoise.accounting.loss.pairs import Float

Complex = NDArray[np.complex128]

#: Smoothing, in terms of the shortest wave of all: what is cut off is below 1e-4 of the rest.
SMOOTHING = 1.1 / 2.0
# What is missing near kinks is raised by this, and spread this far, in terms of the smoothing.
_RAISED, _SPREAD = 1.1, 2.0
# Room between points, for what bends: of both functions, and of what is added.
_MARGIN = 0.4
# Points of the shortest wave that is seen on a coarser grid, at least; roundings of a product.
_POINTS, _PRODUCT = 8, 3.0
# Of a fourth derivative, an eighth of 1/12 for second differences and of 1/8 between points.
_FOURTH = 5.0 / 192.0
# What a hinge is smoothed by twice, in terms of the first time.
_WIDER = (2.05, 2.1, 2.2, 2.5, 3.0)
# The normal law that spreads masses to points: deviation, and where it ends, in their distance; and
# points for each wave.
_WIDTH, _REACH, _FINER = 1.604, 14, 8
#: Deviations of smoothing up to which a hinge need not be moved to stay below, and of the move.
STEEPEST, MOVED = 0.6, 7.0


@dataclass(frozen=True, eq=False)
class Frame:
    """``e^{tilt y}`` times trigonometric polynomials of a degree, with a period."""

    tilt: float
    period: float
    degree: int

    @cached_property
    def waves(self) -> Float:
        """Frequencies."""
        return np.asarray(2.0 * math.pi / self.period * np.arange(self.degree + 1))

    @property
    def smoothing(self) -> float:
        """Deviation of what smooths kinks."""
        return SMOOTHING * self.period / self.degree

    def transformed(self, loss: Float, weight: Float) -> tuple[Complex, Float]:
        """Sums of ``weight e^{i w loss}``; their errors, but for those of phases, relative to the
        sum of weights."""
        points = _FINER * self.degree
        order = np.argsort(weight)
        place, weight = loss[order] * (points / self.period), weight[order]
        near = np.rint(place)
        reach = np.arange(-_REACH, _REACH + 1)
        share = np.exp(-0.5 * ((reach + (near - place)[:, None]) / _WIDTH) ** 2)
        share *= weight[:, None] / (_WIDTH * math.sqrt(2.0 * math.pi))
        at = (np.mod(near, points).astype(np.int64)[:, None] + (reach + _REACH)).ravel()
        found = np.asarray(np.bincount(at, share.ravel(), points + 2 * _REACH), dtype=float)
        # Of each sum as many roundings as it has terms, or of all sums so far: small ones first.
        terms = min(float(np.bincount(at).max()), float(np.cumsum(weight).sum() / weight.sum()))
        found[: 2 * _REACH] += found[points:]
        turns = 2.0 * math.pi / points * np.arange(self.degree + 1)
        sums = np.conj(_transformed(found[:points], self.degree)) * np.exp(-1j * _REACH * turns)
        divided = np.exp(0.5 * (_WIDTH * turns) ** 2)
        return sums * divided, divided * ((terms + transform_units(points) + 32.0) * UNIT)


@dataclass(frozen=True, eq=False)
class Grid:
    """Equidistant points of a period, some for each wave."""

    frame: Frame
    over: int

    @property
    def points(self) -> int:
        return 2 * self.over * self.frame.degree

    @property
    def spacing(self) -> float:
        return self.frame.period / self.points

    def values(
        self,
        coefficients: Complex,
        factors: Complex | None = None,
        parts: int = 1,
        out: Float | None = None,
    ) -> Float:
        """Of a polynomial, or of rows of them times factors, at every so many points."""
        return transform_of(self.points // parts).inverse(coefficients, factors, out)

    def parts(self, degree: int) -> int:
        """Each so many points are enough to see waves of a degree: a power of two."""
        return 1 << max((self.points // (_POINTS * degree)).bit_length() - 1, 0)

    @cached_property
    def second(self) -> Float:
        """Factors of sizes of coefficients: how far functions may be above both near points."""
        return np.asarray(2.0 * self.frame.waves**2 * (self.spacing**2 / 8.0))

    @cached_property
    def fourth(self) -> Float:
        """The same, where second differences at points are known."""
        return np.asarray(2.0 * self.frame.waves**4 * (self.spacing**4 * _FOURTH))

    @cached_property
    def _smoother(self) -> Float:
        """Factors of the smoothing by a normal law."""
        return np.exp(-0.5 * (self.frame.smoothing * self.frame.waves) ** 2)

    @cached_property
    def _flat(self) -> Float:
        """Factors that leave cubics as they are."""
        return self._smoother * (1.0 + 0.5 * (self.frame.smoothing * self.frame.waves) ** 2)

    def smooth(self, values: Float) -> Complex:
        """A polynomial that follows values but at kinks."""
        return np.asarray(self._transformed(values) * self._flat)

    def above(self, values: Float) -> Complex:
        """A polynomial above values, but for what is checked.

        What a smooth one misses is added near kinks alone: it costs the square of the resolution.
        """
        made = self.smooth(values)
        reach = round(_SPREAD * self.frame.smoothing / self.spacing)
        spread = core.missing_near(values, self.values(made), _MARGIN, reach)
        return made + _RAISED * self._transformed(spread) * self._smoother

    def _transformed(self, values: Float) -> Complex:
        return _transformed(values, self.frame.degree) / self.points

    def error(self, total: float) -> float:
        """Of values, by transforms, whose coefficients, maybe products, have sizes of a total."""
        return (transform_units(self.points) + _PRODUCT) * UNIT * total


def between(values: Float) -> Float:
    """The larger one, or 0, of what is known at both ends of each interval of a period."""
    return np.asarray(np.maximum(np.maximum(values, np.roll(values, -1, axis=-1)), 0.0))


def degree_of(waves: float) -> int:
    """The least power of two, or three quarters of one, that is not below: 48 or more."""
    degree = 1 << math.ceil(math.log2(max(waves, 64.0)))
    return degree - degree // 4 if waves <= 0.75 * degree else degree


def _transformed(values: Float, degree: int) -> Complex:
    """Sums of ``values e^{-i w j}`` over the points ``j`` of a period, up to a degree."""
    whole = np.ones(values.size // 2 + 1, dtype=complex)
    transform_of(values.size).compose_into(values, 1, whole)
    return whole[: degree + 1]


def weighted_sums(rows: Float, column: Float) -> Float:
    """A matrix times a vector, on one thread: those of a library wait for each other, up to twenty
    times as long as it takes where other processes have their cores."""
    return np.asarray(np.einsum("...k,k->...", rows, column))


def total_of(coefficients: Complex) -> float:
    """The sum of all coefficients, a bound on values."""
    return float(2.0 * np.abs(coefficients).sum())


def power_error(value: Complex, error: Float, count: int) -> Float:
    """How far powers of numbers of size 1 at most are off that are off themselves.

    Powers of two numbers differ by their difference and what is left of either of one less, for
    each use; a logarithm that is off by some roundings counts as often.
    """
    left = np.exp((count - 1.0) * np.log(np.abs(value) + error))
    return np.asarray(count * (error + 8.0 * UNIT) * left)


def hinge(frame: Frame, side: Side) -> tuple[Complex, float]:
    """``e^{-c y} (1 - e^{-y})^+`` and its images, from one side; and how far it may fail.

    *From above*: ``E[(1 - x e^{-Z})^+] >= (1 - x)^+`` for every ``Z`` with ``E[e^{-Z}] = 1``
    (Jensen's inequality), here normal of deviation ``s`` and mean ``s^2/2``. *From below*: twice
    that of ``s`` less that of ``b s``. The difference of the latter from the hinge, as a function
    of ``s``, has the derivative ``x phi(log(1/x)/s + s/2)``, and that at ``b s`` is at least
    ``exp(-s^2 (b^2 - 1)/8)`` times the one at ``s``: so the difference grows at least twofold where
    ``b exp(-s^2 (b^2 - 1)/8) >= 2``. *Where s is too large for that*: moved by ``7 s``. As the
    hinge rises and is at most 1, ``V(y - 7 s + Z)`` for a normal ``Z`` of mean 0 exceeds ``V(y)``
    only if ``Z > 7 s``; with ``c s <= 7`` that is ``e^{-24.5}`` of ``e^{c y}`` at most.
    """
    waves = 2.0 * math.pi / frame.period * np.arange(4 * frame.degree + 1)
    z = frame.tilt + 1j * waves
    whole = np.asarray(1.0 / (z * (z + 1.0)) / frame.period, dtype=complex)
    s, missed = frame.smoothing, 0.0

    def smoothed(deviation: float) -> Complex:
        return np.asarray(np.exp((z + z * z) * (0.5 * deviation**2)))

    wider = [b for b in _WIDER if s * s <= 8.0 * math.log(b / 2.0) / (b * b - 1.0)]
    if side == "upper":
        whole = whole * smoothed(s)
    elif wider:
        whole = whole * (2.0 * smoothed(s) - smoothed(wider[0] * s))
    else:
        whole = whole * np.exp(z * (0.5 * s * s * z - MOVED * s))
        missed = math.exp(-0.5 * MOVED**2) if frame.tilt * s <= MOVED else math.inf
    cut = 1.01 * float(2.0 * np.abs(whole[frame.degree + 1 :]).sum())
    return whole[: frame.degree + 1], cut + missed + 64.0 * UNIT * total_of(whole)
