"""Cactus noise: the least divergence for a bounded cost, by convex optimization."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate, costs, optimize
from psinoise.compile.cells import MOST_CELLS
from psinoise.errors import DomainError
from psinoise.noise._cell_costs import Cost, UnitCost, checked_cost
from psinoise.noise._family import Parameter
from psinoise.noise._grid import (
    PAPER,
    checked_grid,
    checked_width,
    costs_of_cells,
    gaussian_deviation,
    grid_for,
)
from psinoise.noise._solved import SolvedNoise
from psinoise.optimize.cells import MOST_SOLVED, Grid

__all__ = ["Cactus"]

Float = NDArray[np.float64]

# Largest difference between the divergence that a file states and that of its masses.
_AGREEMENT = 1e-9
# Of the divergence, for the comparison with Gaussian noise.
_ROUNDING = 1e-12
# Cells per sensitivity, cells and ratio of the tail that are to be chosen.
_FITTING = (None, None, None)


class Cactus(SolvedNoise):
    """Cactus noise: the least Kullback-Leibler divergence under a bound of the expected cost.

    After many compositions the privacy loss is close to its mean, the divergence of the noise from
    itself shifted by the sensitivity. Among all laws that are constant on cells and end in a
    geometric tail, this one has the least largest divergence over *all* shifts up to the
    sensitivity. It beats the Gaussian of the same variance. Where noise is not much larger than the
    sensitivity it is neither unimodal nor smooth: the density is full of spines, which the name is
    for.

    Parameters
    ----------
    sensitivity : float
        By how much neighboring data sets can move the query.
    cost : float, Cost or callable
        A number ``p`` stands for ``|x|**p``, in [1/100, 100], and is what ``costs.Power(p)``
        becomes. Else a cost from :mod:`psinoise.costs`, or a function of arrays that meets what
        `costs.Custom` asks of it.
    mean_cost : float
        Bound of the expected cost ``E[cost(X)]``; with the default cost, of the variance.
    cells_per_sensitivity : int, optional
        Without this and the next two, cells that fit Gaussian noise of the same mean cost: those of
        the paper, 200, 1600 and 0.9, up to a deviation of one sensitivity. Finer cells come closer
        to the optimum over all laws; 200 are within 1e-5 of it. With the default cost the
        divergence is below that of Gaussian noise up to mean costs of 40,000 squared
        sensitivities.
    cells : int
        Number of the cell from which on masses form a geometric series; more than
        ``cells_per_sensitivity``, at most 32,767, and 1,048,575 of large noise with the default
        cost. The cells should cover some eight times the typical size of the noise: a law that is
        cut short has a larger divergence.
    tail_ratio : float
        Ratio of neighboring masses in the tail, in (0, 1).
    progress : callable, optional
        Called in every iteration with the number of cells per sensitivity that are being worked on
        and the gap that is left; optima are found on coarse cells first.

    Attributes
    ----------
    certificate : Certificate
        The largest divergence over all shifts, evaluated on the masses that are sampled; a lower
        bound of the optimum for these cells; the gap; the active shifts.
    masses : ndarray of shape (cells + 1,)
        Probabilities of the cells around ``0, 1, ..., cells`` times
        ``sensitivity / cells_per_sensitivity``. They, and not the program that they solve, are the
        law. Densities below 1e-15 of the largest are not determined by the program.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or value.
    CalibrationError
        If no law on these cells meets the cost bound, or there are more than can be solved for.

    Warns
    -----
    UserWarning
        If the divergence is above that of Gaussian noise of the same mean cost: the cells that were
        given do not fit, or the noise is so large that the most cells there can be are too wide.

    Notes
    -----
    Theorem 2 of Alghamdi et al., "Cactus mechanisms: optimal differential privacy mechanisms in
    the large-composition regime" (ISIT 2022), solved by a primal-dual interior point method to a
    gap of 1e-10. That the law is optimal in the limit of fine cells is their theorem 3.

    *Large noise with the cost* ``x**2``. To the density of Gaussian noise of variance ``C``, in
    squared sensitivities, add ``a He_4`` times itself, ``He_4`` being Hermite's polynomial. The
    variance stays, and the divergence changes by ``-a / C**2 + 48 a**2 / C`` to leading orders. The
    least is at ``a = 1 / (96 C)``: the law gains a share of ``1 / (96 C**2)`` on the Gaussian.
    Cells of width ``h`` take back ``h**2 / (12 C)``, so that there are four times as many in a
    sensitivity as sensitivities in a deviation, up to a million in all: half of the gain is left,
    and a quarter at ``C = 40000``. Beyond, it is below 7e-12, and the law warns that Gaussian noise
    is better. From ``C = 36`` or so the masses of few cells are continued to these, and certified
    (``psinoise.optimize.continued``).

    Optima are kept in memory while the program runs, and on disk by `save`.

    Examples
    --------
    >>> import psinoise as pn
    >>> law = pn.Cactus(mean_cost=0.25, cells_per_sensitivity=20, cells=160, tail_ratio=0.35)
    >>> round(law.certificate.largest_kl, 6), 1 / (2 * 0.25)
    (1.728309, 2.0)
    """

    shape_parameters = MappingProxyType(
        {
            "cost": Parameter("power:P, log, ... (default power:2)", costs.parse, "COST"),
            "mean_cost": Parameter("bound of the mean cost (default 0.25)"),
            "cells_per_sensitivity": Parameter(
                "cells to a sensitivity (default: what fits)", int, "N"
            ),
            "cells": Parameter("cells before the tail (default: what fits)", int, "N"),
            "tail_ratio": Parameter("ratio of neighboring cells in the tail"),
        }
    )

    _solutions: ClassVar[dict[Hashable, optimize.Solution]] = {}
    _most_solutions = 64  # of at most 260 kB each
    _format, _kind = "psinoise cactus", "a cactus law"
    _stated = ("sensitivity", "cost", "mean_cost", "cells_per_sensitivity", "cells", "tail_ratio")

    cost: float | costs.Cost
    mean_cost: float
    _unit_cost: UnitCost
    certificate: optimize.Certificate

    def __init__(
        self,
        sensitivity: float = 1.0,
        cost: Cost = 2.0,
        mean_cost: float = 0.25,
        cells_per_sensitivity: int | None = None,
        cells: int | None = None,
        tail_ratio: float | None = None,
        *,
        progress: Callable[[int, float], None] | None = None,
    ) -> None:
        grid = (cells_per_sensitivity, cells, tail_ratio)
        excess = self._solve(sensitivity, cost, mean_cost, *grid, progress=progress)
        if excess > _ROUNDING:
            finer = "" if grid == _FITTING else "finer cells, more of them, or "
            warnings.warn(
                f"the divergence of {self!r} is above that of Gaussian noise of the same mean cost "
                f"by a share of {excess:.2g}: its cells are too few or too wide, "
                f"take {finer}Gaussian noise",
                stacklevel=2,
            )

    @classmethod
    def _candidate(cls, **arguments: Any) -> Self:
        """One of the laws that a search makes: the one that it returns is warned of, as any is."""
        law = cls.__new__(cls, **arguments)
        law._solve(**arguments)
        return law

    def _solve(
        self,
        sensitivity: float,
        cost: Cost,
        mean_cost: float,
        cells_per_sensitivity: int | None = None,
        cells: int | None = None,
        tail_ratio: float | None = None,
        *,
        progress: Callable[[int, float], None] | None = None,
    ) -> float:
        """Be the law; by which share its divergence is above that of Gaussian noise."""
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be callable, got {progress!r}")
        grid = (cells_per_sensitivity, cells, tail_ratio)
        chosen = (fit if given is None else given for given, fit in zip(grid, PAPER, strict=True))
        self._state(sensitivity, cost, mean_cost, *chosen)
        size = gaussian_deviation(self.cost, self.mean_cost) / self.sensitivity
        if grid == _FITTING:
            self._state(sensitivity, cost, mean_cost, *grid_for(self.cost, size))
        solution = self._solutions.get(self._problem)
        if solution is None:
            solution = optimize.solve(
                self._grid, self._costs_of_cells, self._bound, progress=progress
            )
        self._keep(solution, *self._keys)
        return self.certificate.largest_kl * 2.0 * (size * size) - 1.0

    def _state(
        self,
        sensitivity: object,
        cost: object,
        mean_cost: object,
        cells_per_sensitivity: object,
        cells: object,
        tail_ratio: object,
    ) -> None:
        """Check the arguments and set them."""
        grid = checked_grid(checked_width(cells_per_sensitivity), cells, tail_ratio, MOST_CELLS - 1)
        chosen = checked_cost(cost)
        if isinstance(chosen, costs.Cost) and not chosen(0.0) >= 0.0:
            raise DomainError(f"cost must not be negative, got {float(chosen(0.0))!r} at x = 0.0")
        scale = _validate.positive_above("sensitivity", sensitivity)
        self._set(
            _scale=scale,
            sensitivity=scale,
            cost=chosen,
            mean_cost=_validate.positive("mean_cost", mean_cost),
            _unit_cost=UnitCost(chosen, scale),
            cells_per_sensitivity=grid.width,
            cells=grid.last,
            tail_ratio=grid.tail_ratio,
        )

    @classmethod
    def _of_masses(
        cls, arguments: Mapping[str, Any], masses: Float, certificate: optimize.Certificate
    ) -> Self:
        law = cls.__new__(cls)
        law._state(**arguments)
        law._keep(optimize.Solution(masses, certificate), *law._keys)
        return law

    # -- the program -----------------------------------------------------------------------------

    @property
    def _bound(self) -> float:
        """The bound of the expected cost of the law of unit sensitivity."""
        found = self._unit_cost.of_unit(self.mean_cost)
        if not found < math.inf:
            raise DomainError(
                f"mean_cost must be a float64 in powers of the sensitivity, got {self.mean_cost!r}"
            )
        return found

    @property
    def _problem(self) -> tuple[Any, ...]:
        """What the optimal masses depend on."""
        return (*self._unit_cost.key, self._bound, self._grid)

    @property
    def _keys(self) -> tuple[Hashable, ...]:
        """What the solution is kept by: nothing where it is long, and soon found again."""
        return (self._problem,) if self.cells <= MOST_SOLVED else ()

    @property
    def _program(self) -> optimize.Program:
        costs = self._costs_of_cells(self._grid)
        return optimize.Program(self.cells_per_sensitivity, self.tail_ratio, costs, self._bound)

    def _costs_of_cells(self, grid: Grid) -> Float:
        """Expected cost per unit of each mass of the program."""
        found = costs_of_cells(grid, self._unit_cost.at)
        if not np.isfinite(found).all():
            raise DomainError("cost must be finite and must not grow exponentially")
        return found

    # -- the law ---------------------------------------------------------------------------------

    @property
    def _shape(self) -> tuple[Any, ...]:
        return (self.mean_cost, self.cells_per_sensitivity, self.cells, self.tail_ratio)

    def gap_off_grid(self) -> float:
        """How far the largest divergence can be above that of any law within the cost bound.

        ``certificate.gap`` is about laws on the same cells; this one is about all laws, symmetric
        or not, on cells or not, by convexity and data processing (``psinoise.optimize.off_grid``).
        It is not sharp: 4e-5 of 1.73 for the default arguments, and a share of 1e-2 where the cost
        is not smooth at 0 or cells end before the law is rare. Some tenths of a second.

        Examples
        --------
        >>> import psinoise as pn
        >>> round(pn.Cactus(mean_cost=0.25).gap_off_grid(), 6)
        4.2e-05
        """
        known, program = self.certificate, self._program
        places = np.rint(np.array(known.shifts) * program.width).astype(np.intp)
        cost = self.cost if isinstance(self.cost, float) else self._unit_cost.at
        weights = np.array(known.weights)
        least = optimize.lower_bound_off_grid(program, self.masses, places, weights, cost)
        return max(known.largest_kl - max(least, 0.0), known.gap)

    # -- files -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the law to a JSON file, with the bits of its masses.

        A cost that is a callable is not written: `load` must be given it again.
        """
        self._write(
            path,
            largest_kl=self.certificate.largest_kl,
            shifts=self.certificate.shifts,
            weights=self.certificate.weights,
        )

    @classmethod
    def load(cls, path: str | Path, *, cost: Callable[[Float], ArrayLike] | None = None) -> Cactus:
        """Read a law that `save` wrote, without solving anything.

        Nothing is taken on trust: total mass, cost and divergence at every shift are computed
        from the masses again, and the lower bound from the multipliers.

        Parameters
        ----------
        cost : callable, optional
            Where the law was made for a callable.

        Raises
        ------
        DomainError
            If the file is not what `save` writes, or its contents contradict each other.
        """

        def make(document: dict[str, Any], masses: Float) -> Cactus:
            stated = float(document["largest_kl"])
            shifts, weights = np.array(document["shifts"]), np.array(document["weights"])
            law = cls.__new__(cls)
            law._state(**document["arguments"])
            certificate = law._checked(masses, stated, shifts, weights)
            law._keep(optimize.Solution(masses, certificate), *law._keys)
            return law

        return cls._read(path, make, cost)

    def _checked(
        self, masses: Float, stated: float, shifts: Float, weights: Float
    ) -> optimize.Certificate:
        """The certificate of masses that came from outside."""
        program = self._program
        if masses.shape != program.costs.shape or not ((masses > 0.0) & (masses < 1.0)).all():
            raise DomainError(f"masses must be {program.costs.size} probabilities above 0")
        if not abs(float(program.multiplicities @ masses) - 1.0) <= 1e-14:
            raise DomainError("masses must add up to 1")
        if not float(program.costs @ masses) <= program.mean_cost * (1.0 + 1e-12):
            raise DomainError("masses must meet the cost bound")
        places = np.rint(shifts * program.width).astype(np.intp)
        known = places.size and (places >= 1).all() and (places <= program.width).all()
        if not known or weights.shape != places.shape or not (weights > 0.0).all():
            raise DomainError("shifts and weights must be multipliers of the program")
        certificate = optimize.certify(program, masses, places, weights)
        if not abs(certificate.largest_kl - stated) <= _AGREEMENT * max(1.0, stated):
            raise DomainError(
                f"largest_kl must be that of the masses, {certificate.largest_kl!r}, got {stated!r}"
            )
        return certificate
