"""A mechanism: noise of some law on a query of some sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

from psinoise import _validate
from psinoise._kept import kept
from psinoise.accounting import vectors
from psinoise.accounting.loss.blocks import BlockLaw
from psinoise.accounting.loss.cells import CellLaw, in_cells
from psinoise.accounting.loss.largest import turning_distance
from psinoise.accounting.loss.law import Law
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.steps import Step
from psinoise.errors import DomainError
from psinoise.mechanisms.accounted import Accounted
from psinoise.mechanisms.groups import Group, group_of
from psinoise.mechanisms.lattice_mechanism import LatticeMechanism, on_lattice
from psinoise.mechanisms.sums import SumOfReleases
from psinoise.release import grid_from


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
        moves by the sensitivity), "l1" (Laplace and discrete Laplace, Gaussian, and from above any
        noise with a bounded score, such as stable noise) or "l2" (Gaussian noise)

    Examples
    --------
    >>> import psinoise as pn
    >>> mechanism = pn.Mechanism(pn.Airy(mean_abs=2.0))
    >>> round(mechanism.epsilon(1e-8, count=2000, sampling_rate=0.01).estimate, 5)
    0.94027

    A gradient with 1000 coordinates, clipped to an l2 norm of 1:

    >>> gradient = pn.Mechanism(pn.Gaussian(std=2.0), dimension=1000, norm="l2")
    >>> round(gradient.epsilon(1e-6), 7)
    2.2540847

    The same under "replace", where a clipped gradient can take the place of its opposite:

    >>> gradient = pn.Mechanism(pn.Gaussian(std=2.0), 2.0, contribution=1.0, dimension=1000,
    ...                         norm="l2")
    >>> round(gradient.epsilon(1e-6, 1000, 0.01, "replace").estimate, 5)
    1.37449
    """

    one_record: ClassVar[bool] = True

    noise: Law | CellLaw | BlockLaw
    sensitivity: float = 1.0
    contribution: float | None = field(default=None, kw_only=True)
    dimension: int = field(default=1, kw_only=True)
    norm: str = field(default="linf", kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.noise, type):
            name = self.noise.__name__
            raise TypeError(f"noise must be a noise law, got the class {name}: call it first")
        smooth = callable(getattr(self.noise, "logpdf", None)) and hasattr(self.noise, "scale")
        if not (smooth or in_cells(self.noise)):
            raise TypeError(f"noise must be a noise law, got {self.noise!r}")
        vectors.check_query(self)
        if self.contribution is not None:
            contribution = _validate.positive_above("contribution", self.contribution)
            object.__setattr__(self, "contribution", contribution)

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
        return group_of(self, size, contribution=None)

    def for_sum(self, count: int) -> SumOfReleases:
        """The sum of what ``count`` clients release, each by `on_lattice`.

        Neighbors differ in what one client adds noise to, by at most the sensitivity. The sum is
        all that is seen: messages are added up under encryption, modulo a power of two or not.
        After dropouts ``count`` is how many messages are in the sum.

        Parameters
        ----------
        count : int
            Number of releases, at least 1.

        Returns
        -------
        SumOfReleases
            With `epsilon`, `delta` and the like of the sum of draws from the table, certified; at
            delta 0 they are those of one message.

        Raises
        ------
        DomainError
            For noise that is not closed under sums on the whole numbers (`DiscreteStable` is).

        Notes
        -----
        ``psinoise.mechanisms.sums`` has the proofs. Lower ends of brackets are those of the pair
        that dominates the sum, which tells besides how many draws are not of the law.

        Examples
        --------
        >>> import psinoise as pn
        >>> message = pn.Mechanism(pn.DiscreteStable(alpha=1.8, scale=8.0), sensitivity=4)
        >>> round(float(message.on_lattice().epsilon(1e-9)), 3)
        0.628
        >>> round(float(message.for_sum(1000).epsilon(1e-9)), 3)
        0.014
        """
        return SumOfReleases(self.on_lattice(), self.noise, count)

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
        return pair.distance + turning_distance(pair.noise, pair.distance)

    # -- release ---------------------------------------------------------------------------------

    def on_lattice(self, grid: float | None = None) -> LatticeMechanism:
        """The same mechanism on a lattice: what can be released, and is accounted exactly.

        Parameters
        ----------
        grid : float, optional
            The distance of neighboring values. By default the sensitivity divided by a power of
            two, which costs no privacy (``psinoise.release.grid`` proves it), at most 2**-7 of the
            size of the noise as far as 2**20 values can be listed. On another grid the sensitivity
            is rounded up to a multiple.

        Returns
        -------
        LatticeMechanism
            With `epsilon`, `delta` and the like of the integers that are drawn from, and
            `LatticeMechanism.release`.

        Raises
        ------
        TypeError, DomainError
            If ``grid`` is too fine or too coarse, or the noise too wide for the sensitivity (by
            more than 2**40, and some 2**15 for laws other than `Gaussian`), or without a ``grid``
            too narrow (by some 2**24); for vectors with another norm than "linf" and other noise
            than Gaussian.

        Notes
        -----
        Gaussian noise that is wide against the sensitivity, and on vectors with another norm, is
        drawn in digits, and accounted from the normal law with a bound on the total variation
        between the two, some 1e-15 of each coordinate (``psinoise.mechanisms.leak``).

        Examples
        --------
        >>> import psinoise as pn
        >>> lattice = pn.Mechanism(pn.Laplace(scale=1.0), sensitivity=0.3).on_lattice()
        >>> lattice.grid == 0.3 / 64, lattice.cells
        (True, 64)
        >>> round(lattice.pure_epsilon(), 6)
        0.3
        """
        if grid is not None:
            grid_from(grid)
        return _lattice_of(self, grid)

    @property
    def release(self) -> NoReturn:
        """Not here: `on_lattice` has it.

        Raises
        ------
        AttributeError
            Always: the ideal law cannot be drawn from, and its epsilon is not that of a release.
        """
        raise AttributeError(
            "a Mechanism is the ideal law, of which nothing can be released: use "
            "mechanism.on_lattice(), which has its own epsilon, and its release()"
        )

    # -- the pair --------------------------------------------------------------------------------

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """The one-dimensional pair that dominates one use, and how many uses of it.

        Raises
        ------
        DomainError
            where the worst case is not proven
        """
        return vectors.dominating_pair(
            self.noise,
            self.sensitivity,
            self.contribution,
            sampling_rate,
            adjacency,
            self.dimension,
            self.norm,
        )


@kept()
def _lattice_of(mechanism: Mechanism, grid: float | None) -> LatticeMechanism:
    return on_lattice(
        mechanism.noise, mechanism.sensitivity, mechanism.dimension, mechanism.norm, grid
    )
