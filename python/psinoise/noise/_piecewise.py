"""Laws that are uniform in each of some cells: evaluation, quantiles, sampling, expectations."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.errors import DomainError
from psinoise.noise import _checks
from psinoise.noise._cells import Cells
from psinoise.noise._interface import NoiseLaw
from psinoise.noise._overlay import Pieces, lattice_overlay, lattice_shifts, multiple, overlay

__all__ = ["PiecewiseNoise"]

Float = NDArray[np.float64]
Numbers = NDArray[Any]

# Twice and more of it is still the logarithm of a number.
_LARGE_LOG = 300.0
# The farthest shift of a divergence, in cells that repeat.
_MOST_SHIFTED = 1 << 20


class PiecewiseNoise(NoiseLaw):
    """A symmetric law ``scale * Z`` with a piecewise constant density.

    What is sampled is what is evaluated and accounted, to multiples of 2**-64 in the probabilities
    of cells. A subclass states the cells. The errors of values are those that every law documents,
    beyond what the rounding of ``x`` implies: an ulp of it may lie on either side of an edge.
    """

    @property
    def log_concave(self) -> bool:
        """False: densities with steps are not."""
        return False

    @property
    @abstractmethod
    def partition(self) -> Cells:
        """Cells, masses and tail of the standardized law."""

    # -- what the accountant reads ---------------------------------------------------------------

    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]:
        """Shifts up to a sensitivity of which one is the worst, whatever it is measured by.

        Raises
        ------
        DomainError
            If they are not known, or more than 65,536.
        """
        if self.unimodal:
            return (sensitivity,)
        found = None
        if self.partition.step:
            found = lattice_shifts(self._step, sensitivity, self._cells_of(sensitivity))
        if found is None:
            raise DomainError(
                f"sensitivity must be at most 65,536 cells of {self!r}, got {sensitivity!r}"
            )
        return found

    def pieces(self, shift: float) -> tuple[Float, Float]:
        """Probabilities of pieces of the line under the law moved by ``shift``, and under the law.

        The ratio of the densities is constant on each; relative error a few ulp.
        """
        shifted, base, _ = self._overlay(shift)
        return shifted, base

    def piece_losses(self, shift: float) -> Float:
        """``log`` of the ratio of the densities on each of the `pieces`.

        Absolute error a few ulp of 1, and none to speak of where it is a multiple of a rate: a
        ratio that is 1 but for less than rounding has its logarithm.
        """
        return self._overlay(shift)[2]

    def _overlay(self, shift: float) -> Pieces:
        if self.partition.step:
            count = multiple(self._step, shift)
            cells = self._cells_of(shift) if count is None else Fraction(count)
            return lattice_overlay(self.partition, cells)
        return overlay(self.partition, Fraction(shift) / Fraction(self._scale))

    @property
    def _step(self) -> float:
        """The width of cells that have one."""
        return self.partition.step * self._scale

    def _cells_of(self, length: float) -> Fraction:
        """How many cells of one width a length is, exactly."""
        return Fraction(length) / Fraction(self._scale) * self.partition.per_unit

    @property
    def atom(self) -> float:
        """``P(X = 0)``."""
        return self.partition.atom

    @cached_property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.partition.expectation(np.square)) * self._scale

    @cached_property
    def mean_abs(self) -> float:
        """Mean absolute value ``E|X|``."""
        return self.partition.expectation(np.abs) * self._scale

    @property
    def period(self) -> float:
        """The length after which the tail repeats itself but for a factor; 0 if it does not."""
        return self.partition.period * self._scale

    @property
    def decay(self) -> float:
        """By how much the logarithm of a tail that repeats itself falls in a unit of length."""
        return self.partition.rate / self.period if self.partition.repeated else 0.0

    @property
    def repeats_from(self) -> float:
        """Where the first of the cells begins that repeat."""
        return float(self.partition.edges[-1 - self.partition.repeated]) * self._scale

    def lattice_masses(self, grid: float, start: int, stop: int) -> Float:
        """``P(|X|`` rounds to ``k grid)``; see `psinoise.noise.NoiseLaw.lattice_masses`."""
        return self.partition.lattice_masses(grid / self._scale, start, stop)

    @cached_property
    def _table(self) -> core.CellTable:
        return self.partition.table()

    @cached_property
    def _drawn(self) -> core.CellTable:
        """The table of draws, which float64 holds."""
        return self._drawn_in(np.dtype(np.float64))

    @cached_property
    def _drawn_float32(self) -> core.CellTable:
        """The table of draws, which float32 holds."""
        return self._drawn_in(np.dtype(np.float32))

    def _drawn_in(self, dtype: np.dtype[Any]) -> core.CellTable:
        _checks.wide_enough(self, dtype)
        # The scale need not be near them: the inner step of a staircase is exp(-epsilon / 2) of it.
        usual = self.iccdf(0.25 * float(self.partition.above[0]))
        _checks.fine_enough(self, dtype, usual)
        return self._table

    def _draw(self, key: bytes, first: int, out: NDArray[Any], workers: int) -> None:
        table = self._drawn if out.itemsize == 8 else self._drawn_float32
        core.sample_cells(table, key, first, self._scale, out, workers)

    def _evaluate(self, quantity: str, x: Numbers, out: Numbers, workers: int) -> None:
        if quantity in ("pdf", "logpdf") and self.atom > 0.0:
            raise DomainError(f"{self!r} has an atom at 0 and therefore no density")
        core.evaluate_cells(self.partition.law, quantity, self._scale, x, out, workers)

    def _inverse_survival(self, p: Numbers, out: Numbers, workers: int) -> None:
        core.inverse_survival_cells(self.partition.law, self._scale, p, out, workers)

    def _standard_moment(self, order: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.partition.expectation(lambda t: t**order, (self._peak(order),))
        return math.inf if math.isnan(found) else found

    def _peak(self, order: float) -> float:
        """Where powers are largest, times masses that fall from copy to copy; the end of others."""
        part = self.partition
        return max(part.end, order * part.period / part.rate if part.repeated else 0.0)

    def _log_unit_moment(self, order: float) -> float:
        part, peak = self.partition, self._peak(order)
        if not part.repeated:
            # Powers of parts of the support, which are 0 or 1 in the end.
            edges = part.edges / part.end
            means = np.diff(edges ** (order + 1.0)) / np.diff(edges)
            own = math.log(part.end) + math.log(self._scale) - math.log(self._moment_unit)
            return math.log(float(part.masses @ means)) - math.log(order + 1.0) + order * own
        fallen = (peak - part.end) * part.rate / part.period
        if fallen > 3.0 * _LARGE_LOG:
            about = order * math.log(peak * self._scale) - fallen
            if abs(about) > 3.0 * _LARGE_LOG:
                return math.copysign(math.inf, about)
            raise DomainError(f"order must be smaller for {self!r}, got {order!r}")
        # In a unit in which neither the powers nor their products with masses leave float64: beyond
        # the limit there is nothing left of them.
        unit = peak * math.exp(-min(fallen, _LARGE_LOG) / max(order, 1.0))
        scaled = part.expectation(
            lambda t: np.exp(np.minimum(order * np.log(t / unit), 2.3 * _LARGE_LOG)), (peak,)
        )
        own = math.log(unit) + math.log(self._scale) - math.log(self._moment_unit)
        return math.log(scaled) + order * own if scaled > 0.0 else -math.inf

    def _standard_expectation(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> float:
        with np.errstate(over="ignore"):
            return self.partition.expectation(function, kinks)

    def _standard_fisher_information(self) -> float:
        return math.inf  # the density jumps

    def _kl(self, shift: float) -> float:
        return self._loss_moments(shift)[0]

    def _kl_variance(self, shift: float) -> float:
        return self._loss_moments(shift)[1]

    def _loss_moments(self, shift: float) -> tuple[float, float]:
        """Mean and variance of the loss, from the pieces that are accounted: the cells of a
        staircase may be narrower than the rounding of a shift in units of the scale."""
        part = self.partition
        if part.atom > 0.0 or not part.repeated:
            return math.inf, math.inf  # supports or atoms differ
        if shift / self._scale * part.repeated > _MOST_SHIFTED * part.period:
            raise DomainError(f"shift must be at most {_MOST_SHIFTED} cells of noise in cells")
        shifted, base, loss = self._overlay(shift)
        # The reflection exchanges both laws, so that this is the mean of -loss, without cancelling.
        moved = np.where(np.abs(loss) < 1.0, base * np.expm1(np.minimum(loss, 1.0)), shifted - base)
        mean = 0.5 * math.fsum((moved * loss).tolist())
        return mean, math.fsum((base * (loss + mean) ** 2).tolist())
