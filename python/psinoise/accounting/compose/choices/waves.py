"""Functions of a loss as trigonometric polynomials under a tilt, and the grids they are seen on.

*Between the points of a grid* of spacing ``h`` a function is at most the larger of both values and
``h^2/8`` times its second derivative, of which the sum over coefficients is a bound
(`Grid.between`). The second derivative itself is seen on the grid, and what that misses between
points is ``h^2/8`` times the fourth one (`Grid.highest`): functions that bend in a few places alone
cost little elsewhere.

*The largest of several* has kinks. What its smoothed version misses is added near them alone
(`Grid.above`), so that it costs the square of the resolution.

*Rounding* of transforms: `Grid.error`, of all values together in the 2-norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.ndimage import maximum_filter1d

from psinoise._kept import cached_property
from psinoise.accounting.compose.measures.measure import UNIT, Side
from psinoise.accounting.loss.pairs import Float

Complex = NDArray[np.complex128]

#: Smoothing, in terms of the shortest wave of all: what is cut off is below 1e-4 of the rest.
SMOOTHING = 1.1 / 2.0
# What is missing near kinks is raised by this, and spread this far, in terms of the smoothing.
_RAISED, _SPREAD = 1.1, 2.0
# Room between points, for what bends: of both functions, and of what is added.
_MARGIN = 0.4
# What a hinge is smoothed by twice, in terms of the first time.
_WIDER = (2.05, 2.1, 2.2, 2.5, 3.0)
# Terms of products of matrices that OpenBLAS forms on one thread, and rows of one of them.
_ON_ONE_THREAD, _ROWS = 2**16, 4
#: Deviations of smoothing up to which it need not be moved from below.
STEEPEST = 0.6
#: Deviations by which a hinge that is smoothed is moved to stay below it.
MOVED = 7.0


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

    def values(self, coefficients: Complex) -> Float:
        """Of polynomials, at all points."""
        return np.asarray(irfft(coefficients, self.points, norm="forward"))

    def smooth(self, values: Float) -> Complex:
        """A polynomial that follows values but at kinks: smoothing leaves cubics as they are."""
        square = 0.5 * (self.frame.smoothing * self.frame.waves) ** 2
        return np.asarray(self._transformed(values) * (1.0 + square) * np.exp(-square))

    def above(self, values: Float) -> Complex:
        """A polynomial above values, but for what is checked."""
        made = self.smooth(values)
        bent = np.abs(self.values(made * self.frame.waves**2)) * (_MARGIN * self.spacing**2)
        missing = np.maximum(
            values + maximum_filter1d(bent, 3, mode="wrap") - self.values(made), 0.0
        )
        reach = round(_SPREAD * self.frame.smoothing / self.spacing)
        spread = maximum_filter1d(missing, 2 * reach + 1, mode="wrap")
        square = 0.5 * (self.frame.smoothing * self.frame.waves) ** 2
        return made + _RAISED * self._transformed(spread) * np.exp(-square)

    def _transformed(self, values: Float) -> Complex:
        return np.asarray(rfft(values, norm="forward")[: self.frame.degree + 1])

    def highest(self, values: Float, coefficients: Complex) -> Float:
        """Bounds from each point to the next on a polynomial that has these values at points.

        Values may be larger, where something is added that is bounded between points elsewhere.
        """
        falls = np.maximum(self.values(coefficients * self.frame.waves**2), 0.0)
        fourth = float(weighted_sums(np.abs(coefficients), 2.0 * self.frame.waves**4))
        share = self.spacing**2 / 8.0
        fourth += self.error(total_of(coefficients * self.frame.waves**2)) / share
        return larger_of_neighbors(values) + share * (larger_of_neighbors(falls) + share * fourth)

    def between(self, coefficients: Complex) -> float:
        """How far polynomials may be above both neighboring points."""
        second = weighted_sums(np.abs(coefficients), 2.0 * self.frame.waves**2)
        return float(second.max()) * (self.spacing**2 / 8.0)

    def error(self, total: float) -> float:
        """Of values whose coefficients add up to a total, by transforms."""
        return 4.0 * UNIT * math.log2(self.points) * math.sqrt(self.points) * total


def weighted_sums(rows: Float, column: Float) -> Float:
    """A matrix times a vector, on one thread.

    The threads of a library wait for each other: up to twenty times as long as it takes, where
    other processes have their cores.
    """
    return np.asarray(np.einsum("...k,k->...", rows, column))


def row_products(rows: Complex, others: Complex) -> Complex:
    """Products of all rows of two matrices, in blocks that a library gives to one thread."""
    few = max(_ON_ONE_THREAD // (_ROWS * rows.shape[1]), _ROWS)
    # Of about the same size: one row alone is a vector, which it gives to several.
    upper, lower = (np.array_split(m, -(-len(m) // n)) for m, n in ((rows, _ROWS), (others, few)))
    return np.block([[a @ b.T for b in lower] for a in upper])


def larger_of_neighbors(values: Float) -> Float:
    """Of each point of a period and the next one."""
    found = np.empty(values.size)
    np.maximum(values[:-1], values[1:], out=found[:-1])
    found[-1] = max(values[-1], values[0])
    return found


def total_of(coefficients: Complex | Float) -> float:
    """The sum of all coefficients, a bound on values."""
    return float(2.0 * np.abs(coefficients).sum(axis=-1).max())


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
    count = 4 * frame.degree
    waves = 2.0 * math.pi / frame.period * np.arange(count + 1)
    z = frame.tilt + 1j * waves
    whole = np.asarray(1.0 / (z * (z + 1.0)) / frame.period, dtype=complex)
    s = frame.smoothing

    def smoothed(deviation: float) -> Complex:
        return np.asarray(np.exp((z + z * z) * (0.5 * deviation**2)))

    missed = 0.0
    if side == "upper":
        whole = whole * smoothed(s)
    else:
        wider = [b for b in _WIDER if s * s <= 8.0 * math.log(b / 2.0) / (b * b - 1.0)]
        if wider:
            whole = whole * (2.0 * smoothed(s) - smoothed(wider[0] * s))
        else:
            whole = whole * np.exp(z * (0.5 * s * s * z - MOVED * s))
            missed = math.exp(-0.5 * MOVED**2) if frame.tilt * s <= MOVED else math.inf
    cut = float(2.0 * np.abs(whole[frame.degree + 1 :]).sum())
    return np.asarray(whole[: frame.degree + 1]), 1.01 * cut + missed + 64.0 * UNIT * total_of(
        whole
    )
