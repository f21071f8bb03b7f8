"""A mechanism on a lattice: what its epsilon speaks of is what `release` does.

The query is rounded half up to the multiples of a grid ``g``, ``X = floor(x / g + 1/2)``, and the
integer noise ``K`` of a `LatticeNoise` is added: what is released is a function of ``X + K``.

*Sensitivity.* Neighbors that move a query by at most ``D`` move ``X`` by at most
``J = ceil(D / g)`` cells, each coordinate by itself; `psinoise.release.grid.cells_of` proves it.
Rounding half to even or away from 0 would need ``J + 1``. By default ``g = D / 2**k`` exactly, and
what is released costs no more than the ideal mechanism (``psinoise.release.grid``).

*Losses.* They are those of the integers of the noise, for all shifts of up to ``J`` cells. Where
``P(K = 0) >= P(K = 1) >= ...``, which `LatticeNoise.unimodal` decides on the integers, the density
that is constant on each ``[k - 1/2, k + 1/2)`` is symmetric and unimodal. Moved by whole numbers it
gives the pairs of the lattice law, and by the lemma of ``accounting.loss.pairs`` the largest shift
is the worst. For other laws the accounting takes the envelope over all ``J`` shifts.

*Post-processing.* Conversion to floating point and saturation are functions of ``X + K``.

*Vectors with a bound in the l2 norm, Gaussian noise.* Each coordinate is rounded by at most
``g / 2``, so that ``|m - m'|_2 g <= s + g sqrt(d)`` in ``d`` dimensions: what is released is the
Gaussian mechanism of that sensitivity, rounded to the grid, but for how ``K`` differs from rounded
normal noise, at most ``d`` times as much as one coordinate does, which is accounted beside it
(``mechanisms.leak``). A bound in the l1 norm is one in the l2 norm. The grid is at most
``2**-13 / sqrt(d)`` of ``s``. Other laws have no proven worst direction on a lattice: refused.

*Noise that is wide against the sensitivity* (`DigitNoise`) is accounted in the same way: from the
normal law, at the sensitivity of the rounded query, with the total variation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

from numpy.typing import ArrayLike, NDArray

from psinoise import _hashed_json, _validate
from psinoise._hashed_json import hexadecimal
from psinoise._version import __version__
from psinoise.accounting import vectors
from psinoise.accounting.loss.responses import RandomizedResponse
from psinoise.accounting.loss.steps import Step, Steps
from psinoise.errors import DomainError
from psinoise.mechanisms.accounted import Accounted
from psinoise.mechanisms.groups import Group, group_of
from psinoise.mechanisms.leak import leak_of_normal
from psinoise.noise import NoiseLaw
from psinoise.release import (
    WIDEST,
    DigitNoise,
    LatticeNoise,
    Release,
    TableRelease,
    cells_of,
    coarser,
    default_grid,
    fits,
    grid_from,
    prepared,
    table_of,
)
from psinoise.sampling import Poisson, Sampling

__all__ = ["LatticeMechanism"]

_FORMAT, _VERSION = "psinoise-lattice-mechanism", 1
_TRUST = ("rng", "seed", "key", "random_state")


@dataclass(frozen=True)
class LatticeMechanism(Accounted):
    """Adds integer noise to a query that is rounded to a lattice.

    Made by `psinoise.Mechanism.on_lattice`.

    Parameters
    ----------
    noise : LatticeNoise or DigitNoise
    sensitivity : float
        How far neighboring data sets can move the query before it is rounded.
    dimension : int
        Number of coordinates.
    norm : str
        Of the sensitivity, as for `psinoise.Mechanism`; other ones than "linf" are for vectors with
        a ``DigitNoise``.
    law : str
        The noise law that was put on the lattice, for the record.

    Attributes
    ----------
    grid : float
        The distance of neighboring values.
    cells : int
        ``ceil(sensitivity / grid)``: how far neighbors move the rounded query, in cells.

    Examples
    --------
    >>> import psinoise as pn
    >>> lattice = pn.Mechanism(pn.Airy(mean_abs=2.0), sensitivity=1.0).on_lattice()
    >>> noisy = lattice.release(41.5)
    >>> float(noisy) % lattice.grid, bool(lattice.epsilon(1e-6) < 3.5)
    (0.0, True)
    """

    one_record: ClassVar[bool] = True

    noise: LatticeNoise | DigitNoise
    sensitivity: float
    dimension: int = field(default=1, kw_only=True)
    norm: str = field(default="linf", kw_only=True)
    law: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.noise, LatticeNoise | DigitNoise):
            raise TypeError(f"noise must be a LatticeNoise or a DigitNoise, got {self.noise!r}")
        vectors.check_query(self)
        if isinstance(self.noise, LatticeNoise):
            _refuse_norm(self.dimension, self.norm)
            cells_of(self.sensitivity, self.noise.grid)

    @property
    def grid(self) -> float:
        """The distance of neighboring values."""
        return self.noise.grid

    @property
    def cells(self) -> int:
        """How far neighbors move the rounded query, or a coordinate of it, in cells."""
        return math.ceil(Fraction(self.sensitivity) / Fraction(self.grid))

    # -- accounting ------------------------------------------------------------------------------

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """The pair of the noise and the sensitivity after rounding, and how many uses of it.

        Raises
        ------
        DomainError
            where the worst case is not proven: for "replace" with sampling
        """
        build, use = vectors.dominating_pair, (None, sampling_rate, adjacency)
        if isinstance(self.noise, LatticeNoise):
            return build(self.noise, self.cells * self.grid, *use, self.dimension)
        return build(self.noise.ideal, self._moved, *use)

    def sampled(self, sampling_rate: float, sampling: Sampling | None, adjacency: str) -> Steps:
        """What dominates one use under sampling, with what noise in digits costs beside it.

        Raises
        ------
        DomainError
            where the worst case is not proven: for noise in digits under other schemes than Poisson
            sampling
        """
        steps = super().sampled(sampling_rate, sampling, adjacency)
        if isinstance(self.noise, LatticeNoise) or not steps:
            return steps
        if not isinstance(sampling, Poisson | None):
            raise DomainError(
                "sampling must be Poisson sampling for noise in digits (the price of its tables is "
                f"not known for other schemes), got {sampling!r}"
            )
        rate = sampling_rate if sampling is None else sampling.rate
        shift = self._moved / self.noise.std * (1.0 + 2.0**-50)
        eta, missing = (self.dimension * each for each in (self.noise.price, self.noise.missing))
        told = leak_of_normal(shift, rate, eta, missing)
        return (*steps, (RandomizedResponse(0.0, 0.0, told, 1.0), 1))

    @property
    def _moved(self) -> float:
        """How far neighbors move the vector of all coordinates after rounding, in the l2 norm."""
        root = math.sqrt(self.dimension) if self.dimension > 1 else 1.0
        if self.dimension == 1 or self.norm == "linf":
            moved = self.cells * self.grid * root
        else:
            moved = self.sensitivity + self.grid * root
        exact = self.dimension == 1 and math.frexp(self.cells)[0] == 0.5
        return moved if exact else moved * (1.0 + 2.0**-50)

    def for_group(self, size: int) -> Group:
        """The same mechanism for data sets that differ in several records; see `Mechanism`."""
        return group_of(self, size)

    # -- release ---------------------------------------------------------------------------------

    def release(
        self,
        x: Any,
        *,
        columns: Hashable | Sequence[Hashable] | None = None,
        out: NDArray[Any] | None = None,
        bounds: tuple[float, float] | None = None,
        threads: int | None = None,
        **unknown: Any,
    ) -> Any:
        """Release values with noise on the lattice.

        Each element gets noise of its own, drawn exactly, with bits from the operating system that
        cannot be chosen. It is one use of the mechanism, and an array of them that all depend on
        one record are as many uses (or coordinates, where the mechanism has a dimension: those of
        the last axis). `epsilon` is what they cost.

        Parameters
        ----------
        x : array_like of float64, float32, float16 or integers, column or table
            Of any layout and byte order; no value may be masked. Rounded half up to the grid.
            Values beyond ``2**61`` cells are saturated, as is the result; whole numbers beyond
            ``2**62`` are too. A column or a table is one of pandas, polars or Arrow.
        columns : name or list of names, for a table
            What is released of it, each value as an element of an array. The rest is in what is
            returned as it is, without protection.
        out : ndarray, optional
            Where to write; of the type and shape of the result, C-contiguous, apart from ``x``.
        bounds : (low, high), optional
            Clip values to them first. NaN, or a missing value, becomes ``low``, whatever the data
            are.
        threads : int, optional
            As for `psinoise.Noise.sample`; the time and the result do not depend on the values.

        Returns
        -------
        ndarray, scalar, column or table
            As ``x`` is, with its index and names. Multiples of the grid, each rounded once to its
            type: float64 for float64, float32 for float32 and float16, int64 for integers, or
            float64 where the grid is not whole.

        Raises
        ------
        TypeError
            For data of another kind, a table without ``columns``, a seed, ``rng`` or key, a wrong
            ``out``.
        DomainError
            If a value is missing or not finite and there are no bounds; the message does not tell
            which. If the grid is out of the range of the type of ``x``.
        ValueError
            If ``out`` is of another shape, strided, read-only or overlaps ``x``.
        OSError
            If the operating system has no entropy to give.

        Examples
        --------
        >>> import numpy as np
        >>> import psinoise as pn
        >>> counts = np.array([12, 40, 7])
        >>> noisy = pn.Mechanism(pn.DiscreteLaplace(epsilon=1.0)).on_lattice().release(counts)
        >>> noisy.dtype, noisy.shape
        (dtype('int64'), (3,))
        """
        _refuse(unknown)
        # Everything is checked before bits are drawn.
        table = table_of(x)
        if table is None and columns is not None:
            raise TypeError(f"columns are for a table, got {type(x).__name__}")
        if table is None:
            return self._prepared(x, out, bounds, threads).draw()
        chosen = table.chosen(columns)
        if out is not None or self.dimension > 1:
            raise TypeError("a table takes no out=, and a mechanism of one dimension")
        each = {name: self._prepared(table.column(name), None, bounds, threads) for name in chosen}
        return TableRelease(table, each).draw()

    def _prepared(
        self, x: ArrayLike, out: object = None, bounds: object = None, threads: int | None = None
    ) -> Release:
        found = prepared(self.noise, x, out, bounds, threads)
        if self.dimension > 1 and found.values.shape[-1:] != (self.dimension,):
            raise DomainError(
                f"x must have {self.dimension} coordinates along its last axis, as the mechanism "
                f"has, got shape {found.values.shape}"
            )
        return found

    # -- record ----------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """What a later reader needs to know of a release, as a dictionary that JSON can hold.

        The hash names the integers that were drawn from; `to_json` has them all.
        """
        return {
            "library": f"psinoise {__version__}",
            "law": self.law,
            "sensitivity": float(self.sensitivity).hex(),
            "dimension": self.dimension,
            "norm": self.norm,
            "grid": self.grid.hex(),
            "cells": self.cells,
            "sha256": self.noise.sha256,
        }

    def to_json(self) -> str:
        """The mechanism with its integers, from which epsilon can be computed again."""
        content = {"record": self.record(), "noise": json.loads(self.noise.to_json())}
        return _hashed_json.dumps(_FORMAT, _VERSION, content)

    @classmethod
    def from_json(cls, text: str) -> LatticeMechanism:
        """Read what `to_json` wrote, and check all of it.

        Raises
        ------
        TypeError
            If ``text`` is not a string.
        DomainError
            For anything that `to_json` would not have written.
        """
        found = _hashed_json.loads(text, _FORMAT, _VERSION, ("record", "noise"))
        record = found["record"]
        try:
            kind = LatticeNoise if "weights" in found["noise"] else DigitNoise
            made = cls(
                kind.from_json(json.dumps(found["noise"])),
                hexadecimal("sensitivity", record["sensitivity"]),
                dimension=record["dimension"],
                norm=record["norm"],
                law=str(record["law"]),
            )
            if made.record() != {**record, "library": made.record()["library"]}:
                raise DomainError("the record must be that of the noise")
        except DomainError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise DomainError("record must be what LatticeMechanism.to_json writes") from error
        return made


def on_lattice(
    noise: object, sensitivity: float, dimension: int, norm: str, grid: float | None
) -> LatticeMechanism:
    """The mechanism of the lattice; see `psinoise.Mechanism.on_lattice`."""
    if not isinstance(noise, NoiseLaw):
        raise TypeError(f"noise must be a noise law to be put on a lattice, got {noise!r}")
    made: LatticeNoise | DigitNoise
    vector = dimension > 1 and norm != "linf"
    if grid is None:
        grid = noise.own_grid
    if grid is None and not vector:
        grid = default_grid(
            noise.spread, sensitivity, lambda tried: fits(noise, tried), noise.unimodal
        )
    if noise.rotation_invariant and (vector or grid is None):
        made = _in_digits(noise, sensitivity, dimension, grid)
    else:
        _refuse_norm(dimension, norm)
        if grid is None:
            _too_wide(noise, sensitivity)
        grid = grid_from(grid)
        made = LatticeNoise.of(noise, grid, cells_of(sensitivity, grid))
    return LatticeMechanism(made, sensitivity, dimension=dimension, norm=norm, law=repr(noise))


def _refuse_norm(dimension: int, norm: str) -> None:
    if dimension > 1 and norm != "linf":
        raise DomainError(
            "norm must be 'linf' for a vector on a lattice (for other norms the worst direction is "
            f"proven there for Gaussian noise only), got {norm!r}"
        )


def _in_digits(
    noise: NoiseLaw, sensitivity: float, dimension: int, grid: float | None
) -> DigitNoise:
    """On the sensitivity divided by a power of two, far finer than the noise and than rounding to
    it costs in so many dimensions."""
    if grid is None:
        finest = min(noise.std * 2.0**-26, sensitivity)
        if dimension > 1:
            finest = min(finest, sensitivity * 2.0**-13 / math.sqrt(dimension))
        halvings = max(0, math.ceil(math.log2(sensitivity / finest)))
        grid = math.ldexp(sensitivity, -halvings)
    if not noise.std <= WIDEST * grid:
        raise DomainError(
            f"noise must have a standard deviation of at most 2**50 times the grid {grid!r} for "
            f"sensitivity {sensitivity!r}, got {noise!r}"
        )
    return DigitNoise(noise.std, grid)


def _too_wide(noise: NoiseLaw, sensitivity: float) -> NoReturn:
    least = coarser(noise, sensitivity)
    raise DomainError(
        f"noise must be narrower for sensitivity {sensitivity!r}, by a factor of "
        f"{least / sensitivity:.3g}: 2**20 multiples of it do not reach far enough; those of a "
        f"grid of {least!r} do, to which it is rounded up, got {noise!r}"
    )


def _refuse(unknown: dict[str, Any]) -> None:
    """Raise the error for keywords that `release` does not have."""
    for name in unknown:
        if name in _TRUST:
            raise TypeError(
                f"release() takes no {name!r}: its bits come from the operating system and cannot "
                "be chosen; noise.sample(rng=...) is for simulation"
            )
        raise _validate.unknown_keyword(
            "release", name, ("x", "columns", "out", "bounds", "threads")
        )
