"""Optimal unimodal noise: the least epsilon at a cost for one target, by convex optimization."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate, costs
from psinoise.errors import CalibrationError, DomainError
from psinoise.noise._cell_costs import Cost, UnitCost, checked_cost
from psinoise.noise._family import Parameter
from psinoise.noise._grid import checked_grid, checked_width
from psinoise.noise._solved import SolvedNoise
from psinoise.optimize import unimodal as program
from psinoise.optimize.cells import MOST_SOLVED, Grid

__all__ = ["OptimalUnimodal"]

Float = NDArray[np.float64]

# Largest difference between what a file states and what its masses say, of epsilon.
_AGREEMENT = 1e-6


class OptimalUnimodal(SolvedNoise):
    """The unimodal law of least epsilon for a delta, a number of uses, a sampling rate and a cost.

    Schrodinger and cactus laws are optimal for infinitely many uses, the staircase for one; this
    law is made for the target at hand. It is a mixture of uniform laws around 0, constant on cells,
    found by convex programs, with a certificate of how far it can be from the best of *all*
    unimodal laws. It does not increase in ``|x|``, so that the sensitivity is the worst shift.

    Parameters
    ----------
    delta : float
        In [0, 1). At 0 epsilon is the sum of the largest losses.
    count : int
        Uses of the mechanism. For one use or delta = 0 the law is that of a linear program, of
        which `Staircase` (delta = 0) and `UniformAtom` (epsilon = 0) are the closed forms. For one
        use the law of a delta of at most 1e-11 is that of delta = 0.
    sampling_rate : float
        Rate of Poisson sampling, in (0, 1]; 1 is no sampling. Neighbors differ by one record.
    mean_cost : float, optional
        The expected cost ``E[cost(X)]``, for which epsilon is the least; above the cost of 0.
        Either this or ``epsilon`` must be given.
    epsilon : float, optional
        The epsilon at ``delta``, for which the cost is the least; 0 for one use. It is met as far
        as an estimate tells; `calibrate` makes the law that is certified to meet it.
    cost : float, Cost or callable
        A number ``p`` stands for ``|x|**p``, in [1/100, 100], and is what ``costs.Power(p)``
        becomes. Else a cost from :mod:`psinoise.costs`, or a function of arrays that meets what
        `costs.Custom` asks of it.
    sensitivity : float
        By how much neighboring data sets can move the query.
    cells_per_sensitivity : int, optional
        By default 200, or as many as make 6,000 cells; of noise below a quarter of the sensitivity
        160 to 200, so that the first step of the staircase of that cost is an edge.
    cells : int, optional
        Number of the cell from which on masses form a geometric series; more than
        ``cells_per_sensitivity``, at most 32,767. By default as far as counts for ``delta``.
    tail_ratio : float, optional
        Ratio of neighboring masses in that series, in (0, 1).
    progress : callable, optional
        Called in every iteration with the number of cells per sensitivity that are being worked on
        and the gap that is left; coarse cells come first.

    Attributes
    ----------
    certificate : UnimodalCertificate
        Epsilon as estimated, the order of its saddle point, and the gap: by how much epsilon would
        fall at most, to first order, with any other unimodal law of the cost. Its slope is that of
        the law of unit sensitivity; `slope` is in the units of ``mean_cost``.
    masses : ndarray of shape (cells + 1,)
        Probabilities of the cells around ``0, 1, ..., cells`` times
        ``sensitivity / cells_per_sensitivity``. They, and not the program that they solve, are the
        law.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or value; of a cost that is not even or decreases the
        message names the point, and what to do (docs/choosing.md).
    CalibrationError
        If no law on these cells has the cost, or the method does not converge.

    Notes
    -----
    A symmetric unimodal law is a mixture of uniform laws on ``[-a, a]`` (Khinchine). Delta of many
    uses is a convex function of the law of each of them while the others are fixed, and a moment of
    the privacy loss is one of the law of all. Rounds of the second, whose order is that of the
    saddle point of delta, lead to rounds of the first; each is solved by an interior point method.
    Epsilon is that of the accountant only where the accountant is asked.

    Of few uses (up to 64; hundreds of small noise; more of which hardly more than 16 see a record)
    losses are convolved, and the rounds also begin at the best law of one use, because delta is not
    convex in all uses at once; the better one is taken. Where their largest losses decide, the gap
    is a bound for all unimodal laws, by the least delta that one use can have at each epsilon.

    Examples
    --------
    >>> import psinoise as pn
    >>> use = {"delta": 1e-5, "count": 2400, "sampling_rate": 1 / 240}
    >>> law = pn.OptimalUnimodal(mean_cost=0.615**2, cells_per_sensitivity=20, **use)
    >>> round(pn.Mechanism(law).epsilon(1e-5, 2400, 1 / 240).estimate, 2)
    1.85
    >>> law.certificate.gap < 5e-3
    True
    >>> round(pn.Mechanism(pn.Laplace(std=0.615)).epsilon(1e-5, 2400, 1 / 240).estimate, 2)
    2.0
    """

    representatives = (
        {
            "delta": 1e-5,
            "count": 100,
            "sampling_rate": 0.1,
            "mean_cost": 1.0,
            "cells_per_sensitivity": 20,
        },
    )
    shape_parameters = MappingProxyType(
        {
            "delta": Parameter("delta that it is the best for", required=True),
            "count": Parameter("uses that it is the best for", int, "N", required=True),
            "sampling_rate": Parameter("sampling rate that it is the best for (default 1)"),
            "mean_cost": Parameter("mean cost for which epsilon is the least", required=True),
            "cost": Parameter("power:P, huber:K, ... (default power:2)", costs.parse, "COST"),
            "cells_per_sensitivity": Parameter("cells to a sensitivity", int, "N"),
        }
    )

    _solutions: ClassVar[dict[Hashable, program.Law]] = {}
    _most_solutions = 32  # of at most 300 kB each
    _format, _kind = "psinoise optimal unimodal", "an optimal unimodal law"
    _stated = (
        "delta",
        "count",
        "sampling_rate",
        "mean_cost",
        "cost",
        "sensitivity",
        "cells_per_sensitivity",
        "cells",
        "tail_ratio",
    )

    delta: float
    count: int
    sampling_rate: float
    mean_cost: float
    cost: float | costs.Cost
    _unit_cost: UnitCost
    certificate: program.UnimodalCertificate

    def __init__(
        self,
        *,
        delta: float,
        count: int,
        sampling_rate: float = 1.0,
        mean_cost: float | None = None,
        epsilon: float | None = None,
        cost: Cost = 2.0,
        sensitivity: float = 1.0,
        cells_per_sensitivity: int | None = None,
        cells: int | None = None,
        tail_ratio: float | None = None,
        progress: Callable[[int, float], None] | None = None,
    ) -> None:
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be callable, got {progress!r}")
        self._state_target(delta, count, sampling_rate, cost, sensitivity)
        name, goal = self._goal(mean_cost, epsilon)
        width = checked_width(cells_per_sensitivity)
        if (cells is None) != (tail_ratio is None):
            raise TypeError("cells and tail_ratio must be given together")
        grid = None if cells is None else checked_grid(width, cells, tail_ratio, MOST_SOLVED)
        bound = goal if name == "epsilon" else self._unit_cost.of_unit(goal)
        key = (self._problem_key, name, bound, width, grid)
        found = self._solutions.get(key)
        if found is None:
            best = program.least_cost if name == "epsilon" else program.least_epsilon
            found = best(self._problem, grid, width, bound, progress)
        self._take(found, mean_cost, key)

    def _state_target(
        self, delta: object, count: object, rate: object, cost: object, sensitivity: object
    ) -> None:
        """Check what the law is for and set it."""
        chosen_cost = checked_cost(cost)
        uses = _validate.positive_count("count", count)
        chosen = _validate.probability_below("delta", delta)
        if not (chosen == 0.0 or 1e-100 <= chosen < 1.0):
            raise DomainError(f"delta must be 0 or in [1e-100, 1), got {delta!r}")
        sampled = _validate.probability_above("sampling_rate", rate)
        if not sampled > 0.0:
            raise DomainError(f"sampling_rate must be in (0, 1], got {rate!r}")
        if uses == 1 and not chosen < sampled:
            raise DomainError(
                f"delta of one use must be below sampling_rate, {sampled!r}, got {delta!r}: a use "
                "that reveals everything has no more"
            )
        scale = _validate.positive_above("sensitivity", sensitivity)
        self._set(
            _unit_cost=UnitCost.above_least(chosen_cost, scale),
            _scale=scale,
            sensitivity=scale,
            cost=chosen_cost,
            delta=chosen,
            count=uses,
            sampling_rate=sampled,
        )

    def _goal(self, mean_cost: object, epsilon: object) -> tuple[str, float]:
        """Which of the two is given, and its value."""
        given = {"mean_cost": mean_cost, "epsilon": epsilon}
        nothing = mean_cost is None and epsilon is not None
        if nothing and _validate.real("epsilon", epsilon) == 0.0 and self.count == 1:
            if self.delta == 0.0:
                raise DomainError("epsilon and delta must not both be 0")
            return "epsilon", 0.0
        name, value = _validate.exactly_one(type(self).__name__, **given)
        return name, _validate.positive_below(name, epsilon) if name == "epsilon" else value

    def _take(self, found: program.Law, stated: float | None, *keys: Hashable) -> None:
        """Be the law that was found; its cost is the one that was stated, if one was."""
        # That the sensitivity is the worst shift rests on this.
        if not (np.diff(found.masses) <= 0.0).all():
            raise CalibrationError("masses must not increase from the center outwards")
        cost = stated if stated is not None else self._unit_cost.stated(found.mean_cost)
        grid = found.grid
        self._set(
            mean_cost=float(cost),
            cells_per_sensitivity=grid.width,
            cells=grid.last,
            tail_ratio=grid.tail_ratio,
        )
        bound = self._unit_cost.of_unit(self.mean_cost)
        exact = (self._problem_key, "mean_cost", bound, grid.width, grid)
        self._keep(found, *keys, exact)

    @classmethod
    def _of_masses(
        cls,
        arguments: Mapping[str, Any],
        masses: Float,
        certificate: program.UnimodalCertificate | None,
    ) -> Self:
        if set(arguments) != set(cls._stated):
            raise DomainError(f"arguments must be those of the law, got {sorted(arguments)!r}")
        law = cls.__new__(cls)
        target = ("delta", "count", "sampling_rate", "cost", "sensitivity")
        law._state_target(*(arguments[name] for name in target))
        cost = _validate.positive("mean_cost", arguments["mean_cost"])
        width = checked_width(arguments["cells_per_sensitivity"])
        grid = checked_grid(width, arguments["cells"], arguments["tail_ratio"], MOST_SOLVED)
        bound = law._unit_cost.of_unit(cost)
        known = certificate or law._checked(grid, masses, bound)
        law._take(program.Law(grid, masses, bound, known), cost)
        return law

    # -- the program -----------------------------------------------------------------------------

    @property
    def _problem_key(self) -> tuple[Any, ...]:
        return (self.delta, self.count, self.sampling_rate, *self._unit_cost.key)

    @property
    def _problem(self) -> program.Problem:
        cost = self._unit_cost
        use = (self.delta, self.count, self.sampling_rate)
        return program.Problem(*use, cost.of_cells, cost.on_intervals)

    # -- the law ---------------------------------------------------------------------------------

    @property
    def slope(self) -> float:
        """By how much epsilon falls for a unit of ``mean_cost``, to first order."""
        return self.certificate.slope / self._unit_cost.unit

    @property
    def _shape(self) -> tuple[Any, ...]:
        return (*self._problem_key, self.mean_cost, self.cells_per_sensitivity, self.cells)

    # -- files -----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the law to a JSON file, with the bits of its masses.

        A cost that is no power is not written: `load` must be given it again.
        """
        self._write(path, epsilon=self.certificate.epsilon)

    @classmethod
    def load(
        cls, path: str | Path, *, cost: Callable[[Float], ArrayLike] | None = None
    ) -> OptimalUnimodal:
        """Read a law that `save` wrote.

        Nothing is taken on trust: that masses do not increase, their total, cost and epsilon are
        computed again, and so is the certificate.

        Parameters
        ----------
        cost : callable, optional
            Where the law was made for a cost that is no power.

        Raises
        ------
        DomainError
            If the file is not what `save` writes, or its contents contradict each other.
        """

        def make(document: dict[str, Any], masses: Float) -> OptimalUnimodal:
            law = cls._of_masses(document["arguments"], masses, None)
            known, stated = law.certificate.epsilon, float(document["epsilon"])
            if not abs(known - stated) <= _AGREEMENT * max(1.0, stated):
                raise DomainError(f"epsilon must be that of the masses, {known!r}, got {stated!r}")
            return law

        return cls._read(path, make, cost)

    def _checked(self, grid: Grid, masses: Float, bound: float) -> program.UnimodalCertificate:
        """The certificate of masses that came from outside."""
        stated = self._problem.program(grid)
        if masses.shape != stated.costs.shape or not ((masses > 0.0) & (masses < 1.0)).all():
            raise DomainError(f"masses must be {stated.costs.size} probabilities above 0")
        if not (np.diff(masses) <= 0.0).all():
            raise DomainError("masses must not increase from the center outwards")
        if not abs(float(stated.multiplicities @ masses) - 1.0) <= 1e-13:
            raise DomainError("masses must add up to 1")
        if not abs(float(stated.costs @ masses) / bound - 1.0) <= 1e-8:
            raise DomainError("masses must have the expected cost")
        return program.certify(self._problem, stated, masses, bound)
