"""A mechanism on a lattice: what its epsilon speaks of is what `release` does.

The query is rounded half up to the multiples of ``g = 2**e``, ``X = floor(x / g + 1/2)``, and the
integer noise ``K`` of a `LatticeNoise` is added: what is released is a function of ``X + K``.

*Sensitivity.* Neighbors that move a query by at most ``D`` move ``X`` by at most
``J = ceil(D / g)`` cells, each coordinate by itself; `psinoise.release.grid.cells_of` proves it.
Rounding half to even or away from 0 would need ``J + 1``.

*Losses.* They are those of the integers of the noise, for all shifts of up to ``J`` cells. Where
``P(K = 0) >= P(K = 1) >= ...``, which `LatticeNoise.unimodal` decides on the integers, the density
that is constant on each ``[k - 1/2, k + 1/2)`` is symmetric and unimodal. Moved by whole numbers it
gives the pairs of the lattice law, and by the lemma of ``accounting.pairs`` the largest shift is
the worst. For other laws the accounting takes the envelope over all ``J`` shifts.

*Post-processing.* Conversion to floating point and saturation are functions of ``X + K``.

*Vectors.* Bounds in the l1 or l2 norm have no proven worst direction for lattice noise (rounding
adds ``k g`` to the first and ``sqrt(k) g`` to the second for ``k`` coordinates): refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._version import __version__
from psinoise.accounting import vectors
from psinoise.errors import DomainError
from psinoise.noise import NoiseLaw
from psinoise.release import (
    LatticeNoise,
    Release,
    cells_of,
    default_exponent,
    exponent_of,
    fits,
    fresh_key,
    prepared,
)

if TYPE_CHECKING:
    from psinoise.accounting.mechanism import Mechanism

__all__ = ["LatticeMechanism"]

_FORMAT, _VERSION = "psinoise-lattice-mechanism", 1
_MEMBERS = ("format", "version", "law", "sensitivity", "dimension", "grid", "cells", "sha256")
_TRUST = ("rng", "seed", "key", "random_state")


@dataclass(frozen=True)
class LatticeMechanism:
    """Adds integer noise to a query that is rounded to a lattice.

    Made by `psinoise.Mechanism.on_lattice`.

    Parameters
    ----------
    noise : LatticeNoise
    sensitivity : float
        How far neighboring data sets can move the query before it is rounded.
    dimension : int
        Number of coordinates, each of which moves by at most the sensitivity.
    law : str
        The noise law that was put on the lattice, for the record.

    Attributes
    ----------
    grid : float
        The distance of neighboring values.
    cells : int
        ``ceil(sensitivity / grid)``: how far neighbors move the rounded query, in cells.
    """

    noise: LatticeNoise
    sensitivity: float
    dimension: int = field(default=1, kw_only=True)
    law: str = field(default="", kw_only=True, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.noise, LatticeNoise):
            raise TypeError(f"noise must be a LatticeNoise, got {self.noise!r}")
        object.__setattr__(self, "sensitivity", _validate.positive("sensitivity", self.sensitivity))
        object.__setattr__(self, "dimension", vectors.check_dimension(self.dimension))
        cells_of(self.sensitivity, self.noise.exponent)

    @property
    def grid(self) -> float:
        """The distance of neighboring values."""
        return self.noise.grid

    @property
    def cells(self) -> int:
        """How far neighbors move the rounded query, in cells."""
        return cells_of(self.sensitivity, self.noise.exponent)

    # -- accounting ------------------------------------------------------------------------------

    @property
    def accounted(self) -> Mechanism:
        """The mechanism that the accounting sees: the noise, and the sensitivity after rounding."""
        from psinoise.accounting.mechanism import Mechanism

        return Mechanism(self.noise, self.cells * self.grid, dimension=self.dimension)

    def epsilon(self, delta: float, *arguments: Any, **keywords: Any) -> Any:
        """The privacy parameter epsilon at ``delta``; see `Mechanism.epsilon`."""
        return self.accounted.epsilon(delta, *arguments, **keywords)

    def delta(self, epsilon: float, *arguments: Any, **keywords: Any) -> Any:
        """The privacy parameter delta at ``epsilon``; see `Mechanism.delta`."""
        return self.accounted.delta(epsilon, *arguments, **keywords)

    def profile(self, epsilons: ArrayLike, *arguments: Any, **keywords: Any) -> Any:
        """Delta at many epsilons; see `Mechanism.profile`."""
        return self.accounted.profile(epsilons, *arguments, **keywords)

    def tradeoff(self, alphas: ArrayLike, *arguments: Any, **keywords: Any) -> Any:
        """The trade-off function; see `Mechanism.tradeoff`."""
        return self.accounted.tradeoff(alphas, *arguments, **keywords)

    def pure_epsilon(self) -> float:
        """The largest loss of one use; may be inf."""
        return self.accounted.pure_epsilon()

    # -- release ---------------------------------------------------------------------------------

    def release(
        self,
        x: ArrayLike,
        *,
        out: NDArray[Any] | None = None,
        bounds: tuple[float, float] | None = None,
        threads: int | None = None,
        **unknown: Any,
    ) -> Any:
        """Release values with noise; see `psinoise.Mechanism.release`."""
        refuse(unknown)
        # Everything is checked before bits are drawn.
        return self._prepared(x, out, bounds, threads).draw(fresh_key())

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
            "grid": f"2**{self.noise.exponent}",
            "cells": self.cells,
            "sha256": self.noise.sha256,
        }

    def to_json(self) -> str:
        """The mechanism with its integers, from which epsilon can be computed again."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "record": self.record(),
            "noise": json.loads(self.noise.to_json()),
        }
        return json.dumps({**content, "sha256": _digest(content)}, separators=(",", ":"))

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
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        try:
            content = json.loads(text)
            stated = content.pop("sha256")
            if content["format"] != _FORMAT or content["version"] != _VERSION:
                raise DomainError(f"text must be of format {_FORMAT!r}, version {_VERSION}")
            if stated != _digest(content):
                raise DomainError("sha256 must be that of the content: the text was changed")
            record = content["record"]
            made = cls(
                LatticeNoise.from_json(json.dumps(content["noise"])),
                float.fromhex(record["sensitivity"]),
                dimension=record["dimension"],
                law=str(record["law"]),
            )
            if made.record() != {**record, "library": made.record()["library"]}:
                raise DomainError("the record must be that of the noise")
        except DomainError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise DomainError("text must be JSON that LatticeMechanism.to_json wrote") from error
        return made


def on_lattice(mechanism: Mechanism, grid: float | None) -> LatticeMechanism:
    """The mechanism of the lattice; see `psinoise.Mechanism.on_lattice`."""
    noise = mechanism.noise
    if not isinstance(noise, NoiseLaw):
        raise TypeError(f"noise must be a noise law to be put on a lattice, got {noise!r}")
    if mechanism.dimension > 1 and mechanism.norm != "linf":
        raise DomainError(
            "norm must be 'linf' for a vector on a lattice (for other norms the worst direction is "
            f"not proven there), got {mechanism.norm!r}"
        )
    grid = noise.own_grid if grid is None else grid
    if grid is not None:
        exponent = exponent_of(grid)
    else:
        exponent = default_exponent(
            noise.spread, mechanism.sensitivity, lambda tried: fits(noise, tried)
        )
    cells_of(mechanism.sensitivity, exponent)
    lattice = LatticeNoise.of(noise, 2.0**exponent)
    return LatticeMechanism(
        lattice, mechanism.sensitivity, dimension=mechanism.dimension, law=repr(noise)
    )


def refuse(unknown: dict[str, Any]) -> None:
    """Raise the error for keywords that `release` does not have."""
    for name in unknown:
        if name in _TRUST:
            raise TypeError(
                f"release() takes no {name!r}: its bits come from the operating system and cannot "
                "be chosen; noise.sample(rng=...) is for simulation"
            )
        raise _validate.unknown_keyword("release", name, ("x", "out", "bounds", "threads"))


def _digest(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
