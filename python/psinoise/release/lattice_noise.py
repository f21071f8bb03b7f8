"""Noise on a lattice, as integers: what is sampled and what is accounted for are the same."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise._hashed_json import canonical, hexadecimal, members_of, parsed
from psinoise._kept import cached_property
from psinoise.errors import DomainError
from psinoise.noise import NoiseLaw
from psinoise.release.followed import followed
from psinoise.release.grid import grid_from
from psinoise.release.pieces import log_pieces, multiples, pieces, probabilities
from psinoise.release.weights import DRAWS, MOST_LISTED, ONE, Weights, frozen, is_unimodal

__all__ = ["LatticeNoise"]

Float = NDArray[np.float64]

_FORMAT, _VERSION = "psinoise-lattice-noise", 1
_MEMBERS = ("format", "version", "grid", "tail", "repeated", "ratio", "weights", "sha256")
# Pieces of all shifts together.
_MOST_OF_SHIFTS = 1 << 27
_TAILS = ("none", "translate", "dilate", "blocks")


class LatticeNoise:
    """A law of multiples of a grid, symmetric about 0, given by integers alone.

    Immutable and hashable; equal where the integers are. Made from a noise law by `of`, and read
    from text by `from_json`. ``psinoise.release.weights`` says what the integers mean.

    Attributes
    ----------
    grid : float
        The distance of neighboring values.
    weights : ndarray of uint64, read-only
        ``weights[k]`` words of ``2**63`` mean ``|K| = k``; those of a law are positive.
    tail : {"none", "translate", "dilate", "blocks"}
        How the last ``repeated`` weights go on.
    repeated, ratio : int
        Each copy of them has another with probability ``ratio / 2**64``; an integer of a block has
        that share of it.

    Examples
    --------
    >>> import psinoise as pn
    >>> from psinoise.release import LatticeNoise
    >>> noise = LatticeNoise.of(pn.Gaussian(std=1.0), grid=2.0**-4)
    >>> noise.unimodal, abs(noise.std - 1.0) < 1e-3, sum(noise.weights.tolist()) == 2**63
    (True, True, True)
    """

    grid: float
    weights: NDArray[np.uint64]
    tail: str
    repeated: int
    ratio: int

    #: Losses of lattice laws rise and fall, whatever law they come from.
    log_concave = False

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        raise TypeError("LatticeNoise is made by LatticeNoise.of(noise, grid) or from_json(text)")

    @classmethod
    def of(cls, noise: NoiseLaw, grid: float, cells: int = 0) -> LatticeNoise:
        """Put a law on the lattice of the multiples of ``grid``.

        Parameters
        ----------
        noise : NoiseLaw
        grid : float
        cells : int
            How many multiples neighbors are apart, where it is known: of a power law so many more
            are listed, and what the noise costs is compared with its law.

        Returns
        -------
        LatticeNoise
            ``P(K = k)`` is the probability that ``noise`` rounds to ``k grid``, to a relative error
            of 2**-23 for all that are above 2**-39; the rest is a tail without end. Bounded noise
            has none. Where the noise has a geometric tail, probabilities are larger by some words
            of 2**-63 (``psinoise.release.ratios``), so that the largest loss is no larger; bounded
            noise is wider by 2**-18, and other noise by 2**-18 to 2**-6, so much that it costs no
            more than the law (``psinoise.release.followed``). A power law takes over where it has
            set in to 2 %, with a common factor to all probabilities (0.3 % at a stable index of
            0.4, less above). The privacy of the result rests on its integers, not on this.

        Raises
        ------
        TypeError, DomainError
            If ``grid`` is beyond 2**-1000 to 2**900, or so fine that more than 2**20 multiples
            would have to be listed, of uniform noise more than 2**42.
        """
        if not isinstance(noise, NoiseLaw):
            raise TypeError(f"noise must be a noise law, got {noise!r}")
        grid = grid_from(grid)
        return cls._made(grid, followed(noise, grid, _validate.count("cells", cells)))

    @classmethod
    def _made(cls, grid: float, weights: Weights) -> LatticeNoise:
        made = cls.__new__(cls)
        for name, value in (
            ("grid", grid),
            ("weights", frozen(weights.listed)),
            ("tail", weights.tail),
            ("repeated", weights.repeated),
            ("ratio", weights.ratio),
        ):
            object.__setattr__(made, name, value)
        return made

    # -- what the integers say -------------------------------------------------------------------

    @property
    def integers(self) -> Weights:
        """Weights and tail."""
        return Weights(self.weights, self.tail, self.repeated, self.ratio)

    @cached_property
    def unimodal(self) -> bool:
        """Whether probabilities do not increase with ``|K|``: the largest shift is the worst."""
        return is_unimodal(self.integers)

    def pmf(self, k: ArrayLike) -> Any:
        """``P(K = k)`` for whole numbers ``k``; relative error below 4 ulp.

        Raises
        ------
        TypeError
            If ``k`` is not of an integer type.
        """
        numbers = np.asarray(k)
        if numbers.dtype.kind not in "iu":
            raise TypeError(f"k must be whole numbers, got dtype {numbers.dtype}")
        distance = np.abs(numbers.astype(np.int64))
        return probabilities(self.integers, distance)[()]

    @cached_property
    def mean_abs(self) -> float:
        """Mean absolute value; ``inf`` where it does not exist."""
        return self.grid * self._moments[0]

    @cached_property
    def std(self) -> float:
        """Standard deviation; ``inf`` where it does not exist."""
        return self.grid * math.sqrt(self._moments[1])

    @property
    def scale(self) -> float:
        """A length of the size of the noise: the mean absolute value, or where it has none the
        least multiple of the grid that at least half of all values do not exceed."""
        if self.mean_abs < math.inf:
            return max(self.mean_abs, self.grid)
        halves = np.cumsum(self.weights / 2.0**63)
        return self.grid * max(1.0, float(np.searchsorted(halves, 0.5)))

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """``E|K|`` and ``E K**2``."""
        shares = self.weights / 2.0**63
        k = np.arange(float(shares.size))
        first, second = shares * k, shares * k * k
        if self.tail == "none":
            return math.fsum(first.tolist()), math.fsum(second.tolist())
        rho, stop = self.ratio / ONE, (ONE - self.ratio) / ONE
        copies = slice(shares.size - self.repeated, None)
        if self.tail == "blocks":
            middle = (k[1:] - 0.5) / rho + 0.5
            first[1:] = shares[1:] * middle
            second[1:] = shares[1:] * (middle**2 + (1.0 / rho**2 - 1.0) / 12.0)
            return math.fsum(first.tolist()), math.fsum(second.tolist())
        if self.tail == "translate":
            move, square = rho / stop, rho * (1.0 + rho) / stop**2
            period = float(self.repeated)
            second[copies] += shares[copies] * (2.0 * k[copies] * period * move)
            second[copies] += shares[copies] * period**2 * square
            first[copies] += shares[copies] * period * move
            return math.fsum(first.tolist()), math.fsum(second.tolist())
        # 2**i integers from j 2**i on: their mean and mean square, over the law of i.
        if not 2.0 * rho < 1.0:
            return math.inf, math.inf
        wide = stop / (1.0 - 2.0 * rho)
        first[copies] = shares[copies] * ((k[copies] + 0.5) * wide - 0.5)
        if not 4.0 * rho < 1.0:
            return math.fsum(first.tolist()), math.inf
        wider = stop / (1.0 - 4.0 * rho)
        square_of = k[copies] * (k[copies] + 1.0) + 1.0 / 3.0
        second[copies] = shares[copies] * (square_of * wider - (k[copies] + 0.5) * wide + 1.0 / 6.0)
        return math.fsum(first.tolist()), math.fsum(second.tolist())

    # -- what accounting asks --------------------------------------------------------------------

    def worst_shifts(self, sensitivity: float) -> tuple[float, ...]:
        """Shifts among which the worst is, for each epsilon, of all up to the sensitivity.

        Parameters
        ----------
        sensitivity : float
            A multiple of the grid.

        Raises
        ------
        DomainError
            If it is none, or so many multiples that the shifts take too much memory.
        """
        cells = multiples("sensitivity", sensitivity, self.grid)
        if self.unimodal:
            return (cells * self.grid,)
        if cells * (self.weights.size + cells) > _MOST_OF_SHIFTS:
            raise DomainError(
                f"grid must be coarser for noise that is not unimodal: sensitivity {sensitivity!r} "
                f"is {cells} cells, and all shifts are accounted"
            )
        return tuple(j * self.grid for j in range(1, cells + 1))

    def pieces(self, shift: float) -> tuple[Float, Float]:
        """Pieces on which the ratio of the law moved by ``shift`` to the law itself is constant.

        Parameters
        ----------
        shift : float
            A multiple of the grid, not 0.

        Returns
        -------
        moved, base : ndarray
            The probabilities of the pieces under the moved law and under the law, to 4 ulp each; no
            integer is left out.

        Raises
        ------
        DomainError
            If ``shift`` is no multiple of the grid, or more than 2**24 integers would be pieces.
        """
        return pieces(self.integers, abs(multiples("shift", shift, self.grid)))

    def log_pieces(self, shift: float) -> tuple[Float, Float]:
        """Logarithms of the `pieces`, which have digits where these underflow."""
        return log_pieces(self.integers, abs(multiples("shift", shift, self.grid)))

    # -- sampling --------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> core.LatticeTable:
        return core.LatticeTable(self.weights, self.tail, self.repeated, self.ratio)

    # -- identity and files ----------------------------------------------------------------------

    @cached_property
    def sha256(self) -> str:
        """The hash of the integers, in hexadecimal.

        Of a line ``psinoise-lattice-noise 1 grid tail repeated ratio count`` in ASCII, ended by a
        line feed, and the weights as 64-bit little-endian words; the grid as ``float.hex`` has it.
        """
        header = (
            f"{_FORMAT} {_VERSION} {self.grid.hex()} {self.tail} {self.repeated} {self.ratio} "
            f"{self.weights.size}\n"
        )
        return hashlib.sha256(header.encode() + self.weights.astype("<u8").tobytes()).hexdigest()

    def to_json(self) -> str:
        """The integers as JSON text; equal laws give equal text."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "grid": self.grid.hex(),
            "tail": self.tail,
            "repeated": self.repeated,
            "ratio": f"{self.ratio:x}",
            "weights": " ".join(f"{weight:x}" for weight in self.weights.tolist()),
            "sha256": self.sha256,
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> LatticeNoise:
        """Read what `to_json` wrote, and check all of it.

        Raises
        ------
        TypeError
            If ``text`` is not a string.
        DomainError
            For anything that `to_json` would not have written.
        """
        content = members_of("text", parsed(text), _MEMBERS)
        try:
            weights = [int(word, 16) for word in content["weights"].split(" ")]
            read = Weights(
                _checked(weights),
                content["tail"],
                content["repeated"],
                int(content["ratio"], 16),
            )
            if type(read.repeated) is not int:
                raise DomainError("repeated must be a whole number")
            _check_tail(read)
            made = cls._made(grid_from(hexadecimal("grid", content["grid"])), read)
        except DomainError:
            raise
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise DomainError("text must be JSON that LatticeNoise.to_json wrote") from error
        if content["sha256"] != made.sha256:
            raise DomainError("sha256 must be that of the integers: the text was changed")
        if canonical(json.loads(made.to_json())) != canonical(content):
            raise DomainError("text must be what LatticeNoise.to_json writes")
        return made

    def __repr__(self) -> str:
        return f"<LatticeNoise on multiples of {self.grid!r}, sha256 {self.sha256[:16]}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatticeNoise):
            return NotImplemented
        return self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("LatticeNoise is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("LatticeNoise is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return LatticeNoise.from_json, (self.to_json(),)


def _checked(weights: list[int]) -> NDArray[np.uint64]:
    if not 1 <= len(weights) <= MOST_LISTED or sum(weights) != DRAWS or min(weights) < 0:
        raise DomainError(f"weights must be 1 to {MOST_LISTED} numbers that add up to 2**63")
    return np.array(weights, dtype=np.uint64)


def _check_tail(weights: Weights) -> None:
    count, tail, repeated = weights.listed.size, weights.tail, weights.repeated
    if tail not in _TAILS:
        raise DomainError(f"tail must be one of {', '.join(_TAILS)}, got {tail!r}")
    if tail == "none":
        if repeated != 0 or weights.ratio != 0:
            raise DomainError("repeated and ratio must be 0 where there is no tail")
        return
    if not (1 <= repeated < count and 1 <= weights.ratio < ONE):
        raise DomainError("repeated and ratio must be positive, and below the weights and 2**64")
    power = weights.ratio >= 1 << 22 and not weights.ratio & (weights.ratio - 1)
    if tail == "blocks" and not (repeated == count - 1 and power):
        raise DomainError("repeated must be all weights but one, ratio 2**22 to 2**63, of blocks")
    if tail == "dilate" and (2 * repeated != count or count & (count - 1)):
        raise DomainError("repeated must be half the weights, a power of two, in a dilated tail")
