"""Symmetric laws that are uniform in cells: an atom at 0, cells of ``|x|``, a geometric tail.

All sums run from the tail inwards over positive terms, so that probabilities keep their relative
accuracy however small they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.compile.cells import alias_columns
from psinoise.errors import DomainError
from psinoise.numerics.distinct import distinct
from psinoise.numerics.gauss_legendre import NODES, WEIGHTS

__all__ = ["Cells"]

Float = NDArray[np.float64]

_NODES, _WEIGHTS = np.array(NODES), np.array(WEIGHTS)
# Copies of the repeated cells that are listed one by one; exp(-200) is nothing even against the
# growth of a thirtieth power.
_LISTED, _NOTHING = 1 << 14, 200.0
# The number of a copy of which a moment is asked.
_FARTHEST = 2.0**1000
# The sampler lists copies until the rest is below exp(-7), within this many cells.
_RARE, _SAMPLED = 7.0, 1 << 12


@dataclass(frozen=True, eq=False)
class Cells:
    """A law of ``|Z|``.

    Parameters
    ----------
    edges : ndarray of shape (J + 1,)
        Increasing from 0.
    masses : ndarray of shape (J,)
        ``P(|Z| in cell)``, positive; with the atom and the tail they add up to 1.
    atom : float
        ``P(Z = 0)``.
    repeated : int
        How many of the last cells repeat without end, each time ``exp(-rate)`` times as likely.
    rate, complement : float
        Positive where cells repeat; ``complement`` is ``1 - exp(-rate)``.
    right_closed : bool
        To which cell an edge belongs: to the one that it ends, or to the one that it begins.
    step : float
        Where positive, the cells are ``[0, step / 2]`` and then ``step`` wide each.
    falls : ndarray of shape (J,)
        By how much the log density of each cell is below that of the first, where that is known
        better than from masses.
    """

    edges: Float
    masses: Float
    atom: float = 0.0
    repeated: int = 0
    rate: float = math.inf
    complement: float = 1.0
    right_closed: bool = True
    step: float = 0.0
    falls: Float | None = None
    widths: Float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", np.diff(self.edges))
        for array in (self.edges, self.masses, self.widths):
            array.flags.writeable = False

    @property
    def end(self) -> float:
        """Where the listed cells end."""
        return float(self.edges[-1])

    @property
    def per_unit(self) -> Fraction:
        """How many cells of one width are a unit: the whole number that ``step`` is made of."""
        whole = Fraction(round(1.0 / self.step))
        return whole if 1.0 / whole == self.step else 1 / Fraction(self.step)

    @cached_property
    def depths(self) -> Float:
        """Minus the logarithm of the density of each cell, but for a constant."""
        if self.falls is not None:
            return self.falls
        return np.asarray(np.log(self.widths) - np.log(self.masses))

    @property
    def period(self) -> float:
        """Length of what repeats; 0 where nothing does."""
        return float(self.edges[-1] - self.edges[-1 - self.repeated])

    @cached_property
    def above(self) -> Float:
        """``P(|Z| > edge)`` for each edge, correctly rounded but for the last."""
        tail = 0.0
        if self.repeated:
            block = math.fsum(self.masses[-self.repeated :])
            tail = block * math.exp(-self.rate) / self.complement
        sums = itertools.accumulate([_exact(tail), *map(_exact, self.masses[::-1].tolist())])
        return np.array([total / _UNIT for total in sums])[::-1].copy()

    @cached_property
    def below(self) -> Float:
        """``P(0 < |Z| <= edge)`` for each edge, correctly rounded."""
        sums = itertools.accumulate([0, *map(_exact, self.masses.tolist())])
        return np.array([total / _UNIT for total in sums])

    # -- evaluation ------------------------------------------------------------------------------

    @cached_property
    def law(self) -> core.CellLaw:
        """What the kernels of values and quantiles read."""
        log_densities = np.append(np.log(self.masses / (2.0 * self.widths)), -np.inf)
        return core.CellLaw(
            np.ascontiguousarray(self.edges),
            np.ascontiguousarray(self.masses),
            self.above,
            self.below,
            log_densities,
            self.atom,
            self.repeated,
            self.rate if self.repeated else 0.0,
            self.period,
            self.right_closed,
        )

    # -- expectations ----------------------------------------------------------------------------

    def expectation(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> float:
        """``E[function(|Z|)]``, of a function that is smooth but for ``kinks``."""
        terms = self._expectations(function, kinks, self.masses).tolist()
        if self.atom > 0.0:
            terms.append(self.atom * float(function(np.zeros(1))[0]))
        return math.fsum(terms)

    def unit_expectations(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...] = ()
    ) -> Float:
        """What a unit of each mass contributes to ``E[function(|Z|)]``, its copies included."""
        return self._expectations(function, kinks, np.ones(self.masses.size))

    def _expectations(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...], masses: Float
    ) -> Float:
        """What each cell and its copies contribute to ``E[function(|Z|)]`` with such masses.

        By Gauss-Legendre in each cell, cut at kinks; that at the origin is graded down to 2**-60 of
        its width.
        """
        found = _means(function, self.edges[:-1], self.edges[1:])
        inside = np.array([kink for kink in kinks if kink < self.end])
        graded = np.concatenate([[0.0], self.edges[1] * 2.0 ** np.arange(-60.0, 1.0)])
        wide = 1 + np.flatnonzero(self.edges[2:] > 2.0 * self.edges[1:-1])
        for cell in {0, *wide.tolist(), *(np.searchsorted(self.edges, inside) - 1).tolist()}:
            low, high = self.edges[cell : cell + 2].tolist()
            # Powers change with each octave.
            octaves = low * 2.0 ** np.arange(math.log2(high / low)) if low > 0.0 else graded[:-1]
            ends = np.append(octaves, high)
            cuts = inside[(inside > ends[0]) & (inside < ends[-1])]
            ends = np.sort(np.concatenate([ends, cuts]))
            found[cell] = _integrals(function, ends[:-1], ends[1:]).sum() / self.widths[cell]
        found *= masses
        if self.repeated:
            beyond = tuple(kink for kink in kinks if kink > self.end)
            found[-self.repeated :] += self._copies_beyond(
                function, masses[-self.repeated :], beyond
            )
        return found

    def _copies_beyond(
        self, function: Callable[[Float], Float], masses: Float, kinks: tuple[float, ...]
    ) -> Float:
        """``sum over k >= 1 of mass exp(-rate k) E[function]`` on copy ``k`` of repeated cells."""
        starts, ends = self.edges[-1 - self.repeated : -1], self.edges[-self.repeated :]

        def copies(k: Float) -> Float:
            """The summands; ``k`` may be any numbers."""
            move = k[:, None] * self.period
            means = _means(function, (starts + move).reshape(-1), (ends + move).reshape(-1))
            weights = np.exp(-self.rate * k)[:, None] * masses
            # A mass that underflows is none, also where the function overflows.
            with np.errstate(over="ignore", invalid="ignore"):
                return np.where(weights > 0.0, weights * means.reshape(k.size, -1), 0.0)

        # A function may begin at the last of them.
        turns = [(kink - self.end) / self.period for kink in kinks]
        latest = max(turns, default=0.0)
        farthest = 2.0 * _NOTHING / self.rate + latest
        if not farthest < _FARTHEST:
            raise DomainError(
                f"rate of noise in cells must be above {2.0 * _NOTHING / _FARTHEST!r} for its "
                f"expectations, got {self.rate!r}"
            )
        count = 1 + min(_LISTED, math.ceil(_NOTHING / self.rate + latest))
        total = np.asarray(copies(np.arange(1.0, count)).sum(axis=0))
        for k in {math.ceil(turn) for turn in turns if turn < count - 1.0}:
            weights = math.exp(-self.rate * k) * masses
            total += weights * self._cut_copy(function, kinks, k * self.period)
        if count <= _LISTED:
            return total
        # Euler and Maclaurin: from here on copies change by parts in 2**14 to the next.
        octaves = np.append(0.0, 2.0 ** np.arange(0.0, math.log2(farthest), 0.5)) + count
        octaves = np.union1d(octaves, [turn for turn in turns if count < turn < octaves[-1]])
        half = 0.5 * np.diff(octaves)
        nodes = octaves[:-1, None] + half[:, None] * (1.0 + _NODES)
        weights = (half[:, None] * _WEIGHTS).reshape(-1)
        around = copies(count + np.array([-1.0, 0.0, 1.0]))
        with np.errstate(over="ignore"):
            rest = weights @ copies(nodes.reshape(-1)) + 0.5 * around[1]
        return np.asarray(total + rest - (around[2] - around[0]) / 24.0)

    def _cut_copy(
        self, function: Callable[[Float], Float], kinks: tuple[float, ...], move: float
    ) -> Float:
        """What cutting a copy at kinks adds to the means of its cells."""
        edges = self.edges[-1 - self.repeated :] + move
        cuts = np.array([kink for kink in kinks if edges[0] < kink < edges[-1]])
        pieces = np.union1d(edges, cuts)
        owner = np.searchsorted(edges, pieces[:-1], side="right") - 1
        parts = np.bincount(owner, _integrals(function, pieces[:-1], pieces[1:]), self.repeated)
        return np.asarray(parts / np.diff(edges) - _means(function, edges[:-1], edges[1:]))

    # -- sampling --------------------------------------------------------------------------------

    def lattice_masses(self, step: float, start: int, stop: int) -> Float:
        """``P(|Z|`` rounds to ``k step)`` for ``start <= k < stop``.

        Those of later periods are multiples of those of the first, where a period is so many steps:
        places of edges are rounded, and small parts of a cell with them.
        """
        count = round(self.period / step) if self.repeated else 0
        first = math.ceil(self.edges[-1 - self.repeated] / step + 0.5)
        if not abs(self.period / step - count) <= _SAME_PERIOD * count or stop <= first + count:
            return self._overlaps(step, start, stop)
        found = np.empty(stop - start)
        before = max(min(first - start, found.size), 0)
        found[:before] = self._overlaps(step, start, start + before) if before else 0.0
        period, place = np.divmod(np.arange(start + before, stop) - first, count)
        falls = core.exponential(-self.rate * period, np.zeros(period.size))
        found[before:] = self._overlaps(step, first, first + count)[place] * falls
        return found

    def _overlaps(self, step: float, start: int, stop: int) -> Float:
        """The same from lengths of what cells and roundings have in common: nothing cancels."""
        borders = np.maximum((np.arange(start, stop + 1.0) - 0.5) * step, 0.0)
        edges, masses = self.edges, self.masses
        beyond = borders[-1] - self.end
        if self.repeated and beyond > 0.0:
            # Copies that end before the first border are left out, and all cells before them.
            before = max(0, math.floor((borders[0] - self.end) / self.period) - 1)
            ends, repeated = self._copies(before + 1.0, math.ceil(beyond / self.period))
            edges = np.append(edges if before == 0 else edges[-1] + before * self.period, ends)
            masses = np.append(masses, repeated) if before == 0 else repeated
        widths = np.diff(edges)
        # Far out a copy of a cell may be narrower than the rounding of its edges.
        seen = widths > 0.0
        densities = np.append(np.divide(masses, widths, np.zeros(widths.size), where=seen), 0.0)
        inside = edges[(edges > borders[0]) & (edges < borders[-1])]
        points = distinct(np.concatenate([borders, inside]))
        middles = 0.5 * (points[1:] + points[:-1])
        cell = np.searchsorted(edges, middles, "right") - 1
        place = np.searchsorted(borders, middles, "right") - 1
        parts = densities[cell] * np.diff(points)
        found = np.asarray(np.bincount(place, parts, stop - start), dtype=np.float64)
        if start == 0:
            found[0] += self.atom
        return found

    def _copies(self, first: float, last: int) -> tuple[Float, Float]:
        """Ends and masses of copies of the repeated cells, by their numbers."""
        k = np.arange(first, last + 1.0)
        falls = core.exponential(-self.rate * k, np.zeros_like(k))
        ends = self.edges[-self.repeated :] + k[:, None] * self.period
        return ends.reshape(-1), (self.masses[-self.repeated :] * falls[:, None]).reshape(-1)

    def table(self) -> core.CellTable:
        """The columns, starts and widths that the sampler reads."""
        edges, masses, repeated = self.edges, self.masses, self.repeated
        if repeated and not self.step:
            # The tail costs the sampler a logarithm: list copies until it is rare.
            room = _SAMPLED - masses.size
            last = min(max(0, room // repeated), math.ceil(_RARE / self.rate))
            ends, further = self._copies(1.0, last)
            edges, masses = np.append(edges, ends), np.append(masses, further)
        starts, widths, weights = edges[:-1], np.diff(edges), masses.copy()
        if repeated:
            weights[-repeated:] /= self.complement
        if self.atom > 0.0:
            starts, widths = np.append(0.0, starts), np.append(0.0, widths)
            weights = np.append(self.atom, weights)
        first = weights.size - repeated
        if self.step:
            starts = widths = np.empty(0)
        return core.CellTable(
            *alias_columns(weights.tolist()),
            np.ascontiguousarray(starts),
            np.ascontiguousarray(widths),
            self.step,
            first,
            self.rate if repeated else 0.0,
            self.period if repeated else 0.0,
        )


# Sums of masses are exact in units of 2**-1074, of which every double is a whole number.
_UNIT = 1 << 1074
# A period is a whole number of steps if it is one but for this share of it.
_SAME_PERIOD = 1e-12


def _exact(mass: float) -> int:
    numerator, denominator = mass.as_integer_ratio()
    return numerator * (_UNIT // denominator)


def _integrals(function: Callable[[Float], Float], low: Float, high: Float) -> Float:
    half = 0.5 * (high - low)
    return np.asarray(half * _sums(function, low, half))


def _means(function: Callable[[Float], Float], low: Float, high: Float) -> Float:
    return np.asarray(0.5 * _sums(function, low, 0.5 * (high - low)))


def _sums(function: Callable[[Float], Float], low: Float, half: Float) -> Float:
    if not low.size:
        return np.zeros(0)
    points = (low[:, None] + half[:, None] * (1.0 + _NODES)).reshape(-1)
    return np.asarray(function(points).reshape(low.size, -1) @ _WEIGHTS)
