"""A mechanism: noise of some law on a query of some sensitivity."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.accounting import vectors
from psinoise.accounting.accounted import Accounted
from psinoise.accounting.adjacency import worst_shift
from psinoise.accounting.dominating import dominating_pair
from psinoise.accounting.groups import Group, group_size
from psinoise.accounting.lattice_mechanism import LatticeMechanism, on_lattice, refuse
from psinoise.accounting.loss.cells import CellLaw, in_cells
from psinoise.accounting.loss.largest import rounded
from psinoise.accounting.loss.pairs import Law, Pair, turning_point
from psinoise.accounting.loss.steps import Step
from psinoise.errors import DomainError


@dataclass(frozen=True)
class Mechanism(Accounted):
    """Adds noise to a query, ``Y = X + Z``, so that its privacy can be accounted for.

    Parameters
    ----------
    noise
        the law of ``Z``; on a vector, of each coordinate independently
    sensitivity
        how far neighboring data sets can move the query; positive and finite. Under "replace" this
        is by how much replacing a record moves it.
    contribution
        how far adding or removing one record moves the query at most, in the norm of the
        sensitivity; needed for "replace" with sampling, where the sensitivity must be at least
        twice that
    dimension
        number of coordinates of the query
    norm
        of the sensitivity of a vector: "linf" (the default, and the most cautious: every coordinate
        moves by the sensitivity), "l1" (Laplace, Gaussian, and from above any noise with a bounded
        score, such as stable noise) or "l2" (Gaussian noise)

    Examples
    --------
    >>> import psinoise as pn
    >>> mechanism = pn.Mechanism(pn.Airy(mean_abs=2.0))
    >>> round(mechanism.epsilon(1e-8, count=2000, sampling_rate=0.01).estimate, 7)
    0.9402704

    A gradient with 1000 coordinates, clipped to an l2 norm of 1:

    >>> gradient = pn.Mechanism(pn.Gaussian(std=2.0), dimension=1000, norm="l2")
    >>> round(gradient.epsilon(1e-6), 7)
    2.2540847

    The same under "replace", where a clipped gradient can take the place of its opposite:

    >>> gradient = pn.Mechanism(pn.Gaussian(std=2.0), 2.0, contribution=1.0, dimension=1000,
    ...                         norm="l2")
    >>> round(gradient.epsilon(1e-6, 1000, 0.01, "replace").estimate, 7)
    1.3744934
    """

    one_record: ClassVar[bool] = True

    noise: Law | CellLaw
    sensitivity: float = 1.0
    contribution: float | None = field(default=None, kw_only=True)
    dimension: int = field(default=1, kw_only=True)
    norm: str = field(default="linf", kw_only=True)

    def __post_init__(self) -> None:
        if not (in_cells(self.noise) or callable(getattr(self.noise, "logpdf", None))):
            raise TypeError(f"noise must be a noise law, got {self.noise!r}")
        object.__setattr__(self, "sensitivity", _validate.positive("sensitivity", self.sensitivity))
        if self.contribution is not None:
            contribution = _validate.positive("contribution", self.contribution)
            object.__setattr__(self, "contribution", contribution)
        object.__setattr__(self, "dimension", vectors.check_dimension(self.dimension))
        vectors.check_norm(self.norm)

    def __repr__(self) -> str:
        vector = f", dimension={self.dimension}, norm={self.norm!r}" if self.dimension > 1 else ""
        moved = "" if self.contribution is None else f", contribution={self.contribution!r}"
        return f"Mechanism(noise={self.noise!r}, sensitivity={self.sensitivity!r}{moved}{vector})"

    def for_group(self, size: int) -> Group:
        """The same mechanism for data sets that differ in several records: group privacy.

        Parameters
        ----------
        size : int
            Number of records, at least 1.

        Returns
        -------
        Group
            With `epsilon`, `delta` and the like; without sampling.

        Examples
        --------
        >>> import psinoise as pn
        >>> couples = pn.Mechanism(pn.Laplace(scale=2.0)).for_group(2)
        >>> couples.pure_epsilon()
        1.0
        """
        size = group_size(size)
        moved = rounded(size * Fraction(self.sensitivity), up=True)
        return Group(replace(self, sensitivity=moved, contribution=None), size)

    def most_revealing_output(self) -> float:
        """The output at which the loss of one use is largest, on each coordinate that moves.

        Outputs are counted from the value of the query on the neighbor that is less likely to have
        given them, towards the other one.

        Returns
        -------
        float
            ``inf`` for log-concave noise, whose loss does not fall as the output grows. Relative
            error 1e-6: the loss is flat at its maximum.

        Raises
        ------
        DomainError
            if the law is not unimodal, or the worst direction of a vector is not known

        Examples
        --------
        >>> import psinoise as pn
        >>> round(pn.Mechanism(pn.Cauchy(scale=2.0)).most_revealing_output(), 6)
        2.561553
        """
        pair, _ = self.dominating(1.0, "replace")
        if not isinstance(pair, Pair):
            raise DomainError(
                "noise must have a smooth density for one output to reveal most, got "
                f"{self.noise!r}"
            )
        if pair.noise.log_concave:
            return math.inf
        return turning_point(pair.noise, pair.distance)

    # -- release ---------------------------------------------------------------------------------

    def on_lattice(self, grid: float | None = None) -> LatticeMechanism:
        """The same mechanism on a lattice, where what is accounted is what is released, exactly.

        Parameters
        ----------
        grid : float, optional
            A power of two: the distance of neighboring values. By default at most 2**-7 of the
            size of the noise, and so fine that rounding adds at most a thousandth of the
            sensitivity, as far as 2**20 values can be listed.

        Returns
        -------
        LatticeMechanism
            With `epsilon`, `delta` and the like of the integers that are drawn from.

        Raises
        ------
        TypeError, DomainError
            If ``grid`` is no power of two or too fine; for vectors with another norm than "linf".

        Examples
        --------
        >>> import psinoise as pn
        >>> lattice = pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice()
        >>> lattice.grid == 2.0**-7, lattice.cells
        (True, 128)
        >>> round(lattice.pure_epsilon(), 6)
        1.0
        """
        return _lattice_of(self, grid)

    def release(
        self,
        x: ArrayLike,
        *,
        out: NDArray[Any] | None = None,
        bounds: tuple[float, float] | None = None,
        threads: int | None = None,
        **unknown: Any,
    ) -> Any:
        """Release values with noise on the lattice of `on_lattice`.

        Each element gets noise of its own, drawn exactly, with bits from the operating system that
        cannot be chosen. It is one use of the mechanism, and an array of them that all depend on
        one record are as many uses (or coordinates, where the mechanism has a dimension: those of
        the last axis). ``mechanism.on_lattice().epsilon(...)`` is what they cost.

        Parameters
        ----------
        x : array_like of float64, float32, float16 or integers
            Of any layout and byte order; no value may be masked. Rounded half up to the grid.
            Values beyond ``2**61`` cells are saturated, as is the result.
        out : ndarray, optional
            Where to write; of the type and shape of the result, C-contiguous, apart from ``x``.
        bounds : (low, high), optional
            Clip values to them first. NaN becomes ``low``, whatever the data are.
        threads : int, optional
            As for `sample`; the time and the result do not depend on the values.

        Returns
        -------
        ndarray or scalar
            Multiples of the grid: float64 for float64, float32 for float32 and float16, int64 for
            integers, or float64 where the grid is below 1.

        Raises
        ------
        TypeError
            For data of another kind, for a seed, ``rng`` or key, for a wrong ``out``.
        DomainError
            If a value is not finite and there are no bounds; the message does not tell which. If
            the grid is out of the range of the type of ``x``.
        ValueError
            If ``out`` is of another shape, strided, read-only or overlaps ``x``.
        OSError
            If the operating system has no entropy to give.

        Examples
        --------
        >>> import numpy as np
        >>> import psinoise as pn
        >>> counts = np.array([12, 40, 7])
        >>> noisy = pn.Mechanism(pn.DiscreteLaplace(epsilon=1.0)).release(counts)
        >>> noisy.dtype, noisy.shape
        (dtype('int64'), (3,))
        """
        refuse(unknown)
        return self.on_lattice().release(x, out=out, bounds=bounds, threads=threads)

    # -- the pair --------------------------------------------------------------------------------

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """The one-dimensional pair that dominates one use, and how many uses of it.

        Raises
        ------
        DomainError
            where the worst case is not proven
        """
        shift, replaced = worst_shift(self.sensitivity, self.contribution, sampling_rate, adjacency)
        return dominating_pair(
            self.noise, shift, replaced, sampling_rate, self.dimension, self.norm
        )


@functools.lru_cache(maxsize=32)
def _lattice_of(mechanism: Mechanism, grid: float | None) -> LatticeMechanism:
    return on_lattice(
        mechanism.noise, mechanism.sensitivity, mechanism.dimension, mechanism.norm, grid
    )
