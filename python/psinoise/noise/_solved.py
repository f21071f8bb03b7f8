"""Laws in cells that carry the solution of a program: kept in memory, compared, pickled, saved."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._kept import cached_property
from psinoise.errors import DomainError
from psinoise.noise._cells import Cells
from psinoise.noise._grid import cells_of
from psinoise.noise._piecewise import PiecewiseNoise
from psinoise.optimize.cells import Grid

__all__ = ["SolvedNoise"]

Float = NDArray[np.float64]


class SolvedNoise(PiecewiseNoise):
    """A law in cells whose masses solve a program, with a certificate of how well they do.

    The masses, and not the program, are the law: they are compared, pickled and saved, because
    another machine would round its own optimum differently.
    """

    made_by_arguments = False

    #: Solutions to keep, by what they solve, and how many; the oldest goes first.
    _solutions: ClassVar[dict[Hashable, Any]]
    _most_solutions: ClassVar[int]
    #: What a file says that it is, and what a message calls it.
    _format: ClassVar[str]
    _kind: ClassVar[str]
    #: Arguments that, with the masses, make the law again.
    _stated: ClassVar[tuple[str, ...]]

    cost: Any
    sensitivity: float
    cells_per_sensitivity: int
    cells: int
    tail_ratio: float
    certificate: Any
    masses: Float

    @classmethod
    @abstractmethod
    def _of_masses(cls, arguments: Mapping[str, Any], masses: Float, certificate: Any) -> Self:
        """The law of arguments and masses with a certificate that is known."""

    def _keep(self, solution: Any, *keys: Hashable) -> None:
        """Take a solution, and keep it for laws that ask the same."""
        masses = solution.masses.copy()
        masses.flags.writeable = False
        self._set(masses=masses, certificate=solution.certificate)
        for key in keys:
            self._solutions.setdefault(key, solution)
        while len(self._solutions) > self._most_solutions:
            self._solutions.pop(next(iter(self._solutions)), None)

    @property
    def _grid(self) -> Grid:
        return Grid(self.cells_per_sensitivity, self.cells, self.tail_ratio)

    @cached_property
    def unimodal(self) -> bool:
        """Whether no cell is likelier than one that is nearer to 0."""
        return bool((np.diff(self.masses) <= 0.0).all())

    @cached_property
    def partition(self) -> Cells:
        """Cells, masses and tail of the law of unit sensitivity."""
        return cells_of(self._grid, np.append(self.masses[0], 2.0 * self.masses[1:]))

    def expected_cost(self, cost: float | Callable[[Float], ArrayLike]) -> float:
        """Expected cost; a number stands for that power of ``|x|``, as in the law's own cost."""
        if not callable(cost):
            return self.moment(_validate.positive("cost", cost))
        return super().expected_cost(cost)

    # -- identity --------------------------------------------------------------------------------

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._stated}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = self._arguments() == other._arguments()
        return same and np.array_equal(self.masses, other.masses)

    def __hash__(self) -> int:
        return super().__hash__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._arguments(), self.masses, self.certificate)

    # -- files -----------------------------------------------------------------------------------

    def _write(self, path: str | Path, **evidence: Any) -> None:
        """Write a JSON file with the bits of the masses, and what the certificate says; a cost that
        is no power is left out."""
        arguments = self._arguments()
        arguments["cost"] = self.cost if isinstance(self.cost, float) else None
        document = {
            "format": self._format,
            "version": 1,
            "arguments": arguments,
            "masses": [mass.hex() for mass in self.masses.tolist()],
            **evidence,
        }
        Path(path).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def _read(
        cls,
        path: str | Path,
        make: Callable[[dict[str, Any], Float], Self],
        cost: Callable[[Float], ArrayLike] | None,
    ) -> Self:
        """The law that is made of a file and its masses, neither of which is taken on trust, and of
        the cost that the file leaves out."""
        data = Path(path).read_bytes()
        try:
            document = json.loads(data.decode("utf-8"))
            if document["format"] != cls._format or document["version"] != 1:
                raise DomainError(f"{path} is not {cls._kind} of version 1")
            masses = np.array([float.fromhex(mass) for mass in document["masses"]])
            arguments = dict(document["arguments"])
            if (arguments["cost"] is None) != (cost is not None):
                raise DomainError("cost must be given for a law that was made for a callable")
            document["arguments"] = {**arguments, "cost": cost or arguments["cost"]}
            return make(document, masses)
        except DomainError:
            raise
        except (
            *(KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError),
        ) as error:
            raise DomainError(f"{path} is not {cls._kind}: {error}") from error


def _restored(
    law: type[SolvedNoise], arguments: Mapping[str, Any], masses: Float, certificate: Any
) -> SolvedNoise:
    return law._of_masses(arguments, masses, certificate)
