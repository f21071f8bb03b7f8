"""What further uses add to delta when neighbors choose each shift: one side of the recursion.

With a tilt ``c > 0`` and ``M`` at least every ``E_{P_s}[e^{c L}]``, write the ``V_k`` of
``composer`` as ``M^k e^{c y} p_k(y)``, and ``A_s p(y) = E_{P_s}[e^{c L} p(y + L)] / M``. Then

    ``p_k = max_s A_s p_{k-1}``,                                                               (1)

and every ``A_s`` keeps order and takes 1 to 1 at most. So if ``f_0, f_1, ...`` have

    ``f_{j+1} >= A_s f_j - e``  for every ``s``,  from  ``f_0 >= p_0 - e_0``,                  (2)

then ``p_j <= f_j + e_0 + j e``, by induction; and with ``f_{j+1} <= max_s A_s f_j + e`` from
``f_0 <= p_0 + e_0`` the same from below. Any ``f`` will do: (2) is checked.

*Functions* are trigonometric polynomials of a long period, on which ``A_s`` multiplies the
coefficient of ``e^{i w y}`` by ``E_{P_s}[e^{(c + i w) L}] / M``. A period adds the images of
``p_0``, which are positive: from above they may stay, from below they are bounded
(``blocks``).

*Uses in blocks.* All ``y`` are taken from where the uses so far have moved the mean of one shift:
a factor ``e^{-i w m}`` of every symbol, on which nothing above depends. With a reference shift
``r``, the worst at the tilt, from the start of a block of ``B`` uses on:
``f_{j+1} = A_r f_j + g_j`` with ``g_j = g_0 + (j/B) (g_B - g_0)``, in closed form. (2) asks for
``g_j >= (A_s - A_r) f_j - e``. At both ends of the block that is seen on a grid. In between the
right side differs from its chord by ``B^2/8`` of its second difference in ``j`` at most, to the
side that this bends to. As ``g_j`` is affine, ``f_j`` is an affine function of ``j`` and
``A_r^j t`` for some ``t``; so the second difference is ``A_r^j W_s`` with
``W_s = (A_s - A_r) (1 - A_r)^2 t``. It is seen at both ends of the block, on a grid that is fine
enough for its waves (`Grid.parts`), and in between it differs from its own chord by ``B^2/8`` of
the sum of ``|1 - A_r|^2`` times its size (`Recursion._bend`). Waves that change much in a block are
``A_r^j t`` but for what is affine: they differ from their chord by ``2 |t|`` at most. Chords lie
above the largest of the right sides but for that; from below one shift is held at each place for a
block. Where no other shift adds enough to matter ``g`` is left out, and a block may have any number
of uses (`_most`).

*Rounding.* The error of a symbol times its coefficient counts for each use (of uses without a
block, of what they leave of it), that of transforms for each block.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.choices.waves import (
    Complex,
    Frame,
    Grid,
    between,
    degree_of,
    power_error,
    total_of,
    weighted_sums,
)
from psinoise.accounting.compose.measures.measure import UNIT, Side
from psinoise.accounting.loss.pairs import Float

# Points of a grid for each half of a wave, at least; with more of them so many at most.
_LEAST_OVER, _MOST_POINTS = 2, 2**16
# A function that fails by so many times what is allowed so far may take this share of the work: it
# still says where epsilon is.
_HOPELESS, _LONG = 16.0, 0.5
# Share of the error of a use that may be missed between points.
_MISSED = 0.5
# Uses of a block for each use before it: first, least, and most; and how that grows.
_BLOCK, _SMALLEST_BLOCK, _LARGEST_BLOCK, _GROWTH = 0.02, 1e-4, 0.1, 1.4
# Transforms of a block beside those for each shift.
_OTHER_TRANSFORMS = 9
# Rows that are held, where all are.
_ALL = np.empty(0, dtype=np.int64)
# Share of what is allowed that may be lost with short waves, each time.
_CUT = 256.0


@dataclass
class Recursion:
    """The functions (2) of one side, block after block."""

    side: Side
    frame: Frame
    symbols: Complex  # what a use of each shift multiplies waves by, and the errors of that
    doubt: Float
    coefficients: Complex  # of the function so far, and how far it may be on the wrong side
    error: float
    fineness: int  # shortest waves of all for one of what the function is made of
    drift: float  # by how much a use moves the function
    work: float = 0.0  # points of transforms so far

    def __post_init__(self) -> None:
        # Coordinates that move with the mean of the reference: what is left changes slowly.
        self.symbols = self.symbols * np.exp(-1j * self.drift * self.frame.waves)
        # What is added changes by so much in a use, as far as is known.
        self._turn: Complex = np.zeros(self.coefficients.size, dtype=complex)
        self._take(self.frame.degree)

    def _take(self, degree: int) -> None:
        """Go on with polynomials of a degree, which is not above that before."""
        self.frame = dataclasses.replace(self.frame, degree=degree)
        self.coefficients, self._turn = self.coefficients[: degree + 1], self._turn[: degree + 1]
        self.symbols, self.doubt = self.symbols[:, : degree + 1], self.doubt[: degree + 1]
        # The reference comes last, with differences of 0.
        last = int(np.argmax(self.symbols[:, 0].real))
        self._reference = self.symbols[last]
        others = np.delete(self.symbols, last, axis=0)
        self._differences = np.vstack([others, self._reference]) - self._reference
        self._sizes = np.abs(self._differences)
        self._lag = 1.0 - self._reference
        # The logarithm: of a number next to 1 its size has no digits to spare.
        size = np.maximum(np.abs(self._reference), 1e-300)
        square = np.maximum(self._lag.real * (self._lag.real - 2.0) + self._lag.imag**2, -0.9)
        turn = np.arctan2(self._reference.imag, self._reference.real)
        self._log = np.where(size > 0.5, 0.5 * np.log1p(square), np.log(size)) + 1j * turn
        self._grid = Grid(self.frame, _LEAST_OVER)
        self._values: Float | None = None

    def advance(self, count: int, allowed: float, variance: float, most_work: float) -> bool:
        """Uses in blocks, with about so much error more; False, and nothing is known, if that takes
        more work than is allowed, or there is much more error."""
        # A smooth function changes as if some uses had been before.
        before = 1.0 + self.frame.smoothing**2 / max(variance, 1e-300)
        before = min(before, 1e6 * count)
        share = allowed / math.log1p(count / before)
        pace, done, start = _BLOCK, 0, self.error
        while done < count:
            so_far = share * math.log1p(done / before) + 0.05 * allowed
            hopeless = self.error - start > _HOPELESS * so_far
            if self.work > most_work * (_LONG if hopeless else 1.0):
                return False
            self._shorten(allowed / _CUT, self.fineness)
            block = min(max(int(pace * (done + before)), 1), count - done)
            wanted = share * math.log1p(block / (done + before))
            most = self._most()
            if (count - done) * most <= 0.25 * allowed:
                self._stay(count - done, most)
                break
            if block * most <= 0.5 * wanted:
                self._stay(block, most)
                pace, done = min(_GROWTH * pace, _LARGEST_BLOCK), done + block
                continue
            made, error, curved = self._block(block, 0.5 * wanted)
            if curved > 2.0 * wanted and block > 1 and pace > _SMALLEST_BLOCK:
                pace *= max(0.7 * math.sqrt(wanted / curved), 0.1)
                continue
            if curved < 0.5 * wanted:
                pace = min(_GROWTH * pace, _LARGEST_BLOCK)
            self.coefficients, self._values, self._turn = made
            self.error += error
            done += block
        self._shorten(allowed / _CUT, 1)
        turns = math.fmod(self.drift * count, self.frame.period)
        self.error += 32.0 * UNIT * self.frame.degree * total_of(self.coefficients)
        self.coefficients = self.coefficients * np.exp(1j * turns * self.frame.waves)
        return True

    def _shorten(self, allowed: float, fineness: int) -> None:
        """Leave out waves that are much shorter than what the function is made of by now."""
        rest = 2.0 * np.cumsum(np.abs(self.coefficients)[::-1])[::-1]
        degree = degree_of(fineness * int((rest > allowed).sum()))
        if degree < self.frame.degree:
            self.error += float(rest[degree + 1])
            self._take(degree)

    def _seen(self, coefficients: Complex, among: slice | NDArray[np.intp] = slice(-1)) -> Float:
        """What other shifts add, or some of them, on the grid, and at last the reference."""
        rows = self._differences[among]
        self.work += self._grid.points * rows.shape[0]
        values = np.zeros((rows.shape[0] + 1, self._grid.points))
        self._grid.values(rows, coefficients, out=values[:-1])
        return values

    def _on_grid(self, wanted: float) -> Float:
        """The same at the start of a block, on a grid that is fine enough."""
        over, size = _LEAST_OVER, np.abs(self.coefficients)
        while (
            4 * over * self.frame.degree <= _MOST_POINTS
            and self._largest(size * Grid(self.frame, over).fourth) > _MISSED * wanted
        ):
            over *= 2
        if self._values is None or over != self._grid.over:
            self._grid = Grid(self.frame, over)
            self._values = self._seen(self.coefficients)
        return self._values

    def _block(
        self, uses: int, wanted: float
    ) -> tuple[tuple[Complex, Float, Complex], float, float]:
        """The function after a block, what shifts add there and how that changes; by how much it
        may fail, and how much of that is for blocks of several uses."""
        start, c = self._on_grid(wanted / uses), self.coefficients
        powers, once, rising = self._sums(uses)
        highest = start.max(axis=0)
        top = np.flatnonzero((start[:-1] >= highest).any(axis=1))
        kept = np.append(top, start.shape[0] - 1)
        after = before = start if kept.size == start.shape[0] else start[kept]
        if uses > 1:
            # Where the block ends, about: as if what is added changed as before.
            added = once * self._grid.smooth(highest) + rising * self._turn
            after = self._seen(powers * c + added, top)
        held = None if self.side == "upper" else core.largest_rows(before, after)
        first = self._follow(before, held)
        last = first if uses == 1 else self._follow(after, held)
        held = held if held is None else kept[held]
        turn = (last - first) / uses
        made = powers * c + once * first + rising * turn
        end = self._seen(made)
        bend, missed = self._bend(uses, wanted, c, first, last, powers)
        failed = [self._beyond(start, first, c, held, bend)]
        if uses > 1:
            failed.append(self._beyond(end, last, made, held, bend))
        error = float(np.max(failed)) + missed
        self.work += _OTHER_TRANSFORMS * self._grid.points
        fourth = self._grid.fourth
        steady = self._largest(np.abs(c) * fourth) + float(np.abs(first) @ fourth)
        curved = uses * max(error - steady, 0.0)
        # What waves may be at most in a block.
        reach = np.minimum(uses, 1.0 / np.maximum(1.0 - np.abs(self._reference), 1e-300))
        reached = np.abs(c) + reach * np.maximum(np.abs(first), np.abs(last))
        error += 8.0 * float(self.doubt @ reached)
        return (made, end, turn), uses * error + 1e-12 * total_of(rising * turn), curved

    def _bend(
        self, uses: int, wanted: float, c: Complex, first: Complex, last: Complex, powers: Complex
    ) -> tuple[Float, float]:
        """How far what shifts add may be from chords: in each part of a period, and anywhere."""
        count = self._differences.shape[0]
        if uses == 1:
            return np.zeros((count, self._grid.points // self._grid.parts(1))), 0.0
        turn = (last - first) / uses
        bent, lag = turn - self._lag * (first - self._lag * c), np.abs(self._lag)
        most = uses**2 / 8.0
        # Waves that change much in a block differ from their chord by twice what fades at most.
        size = np.minimum(most, 2.0 / np.maximum(lag, 1e-150) ** 2) * np.abs(bent)
        local = 2.0 * most * lag**2
        long = (local + self._grid.second < 2.0) & (size == most * np.abs(bent))
        held = slice(int(np.flatnonzero(long).max(initial=0)) + 1)
        parts = self._grid.parts(held.stop)
        missed = weighted_sums(
            self._sizes, np.where(long, local + self._grid.second * parts**2, 2.0) * size
        )
        seen = np.where(long, most * bent, 0.0)[held]
        whole = weighted_sums(self._sizes[:, held], 2.0 * np.abs(seen))
        rows = np.flatnonzero(whole > wanted / (8.0 * uses))
        bend = np.zeros((count, self._grid.points // parts))
        if rows.size:
            self.work += 2 * (self._grid.points // parts) * rows.size
            each = self._differences[rows, held]
            ends = [self._grid.values(each, s, parts) for s in (seen, seen * powers[held])]
            sign = -1.0 if self.side == "upper" else 1.0
            bend[rows] = between(np.maximum(sign * ends[0], sign * ends[1]))
        rounding = self._grid.error(float(whole.max()))
        whole[rows] = 0.0
        return bend, float((missed + whole).max()) + rounding

    def _largest(self, column: Float) -> float:
        """Of sums of sizes of all differences, with factors."""
        return float(weighted_sums(self._sizes, column).max())

    def _most(self) -> float:
        """The most that one use may add to what the reference alone does, from here on.

        Without ``g`` that is ``A_r^j (A_s - A_r) f_0``, at most the largest value at the start.
        """
        if len(self.symbols) == 1:
            return 0.0
        if self._values is None:
            self._values = self._seen(self.coefficients)
        size = np.abs(self.coefficients)
        highest = self._values.max(axis=1) + weighted_sums(self._sizes, size * self._grid.second)
        return max(float(highest.max()), 0.0) + self._grid.error(self._largest(2.0 * size))

    def _stay(self, uses: int, most: float) -> None:
        """Some uses of the reference alone: from below nothing is wrong with that."""
        doubt = power_error(self._reference, self.doubt, uses)
        self.error += total_of(doubt * self.coefficients)
        if self.side == "upper":
            self.error += uses * most
        self.coefficients = np.exp(uses * self._log) * self.coefficients
        self._values, self._turn = None, np.zeros_like(self._turn)

    def _sums(self, uses: int) -> tuple[Complex, Complex, Complex]:
        """``A^B`` and the sums of ``A^{B-1-i}`` and of ``i A^{B-1-i}`` over ``i < B``."""
        lag, n = self._lag, float(uses)
        # The exponential less 1, of which negative parts add up.
        size, turn = np.expm1(n * self._log.real), n * self._log.imag
        change: Complex = np.empty(lag.size, dtype=complex)
        change.real = size - 2.0 * (1.0 + size) * np.sin(0.5 * turn) ** 2
        change.imag = (1.0 + size) * np.sin(turn)
        zero = lag == 0.0
        safe = np.where(zero, 1.0, lag)
        once: Complex = np.where(zero, n, -change / safe)
        # n - once loses what lag n is small by: four terms of a series are as good there.
        terms = [math.prod((n - i) / (i + 1.0) for i in range(k)) for k in range(2, 6)]
        rising: Complex = (n - once) / safe
        small = np.flatnonzero(np.abs(lag) * n < 2e-3)
        rising[small] = np.polynomial.polynomial.polyval(-lag[small], terms)
        return 1.0 + change, once, rising

    def _follow(self, values: Float, held: NDArray[np.intp] | None) -> Complex:
        """A polynomial above what every shift adds, or below what those that are held add."""
        if held is None:
            return self._grid.above(values.max(axis=0))
        # Of each point the shifts that are held after and before it.
        near = values[np.stack([held, np.roll(held, 1)]), np.arange(held.size)]
        return -self._grid.above(-near.min(axis=0))

    def _beyond(
        self,
        values: Float,
        followed: Complex,
        coefficients: Complex,
        held: NDArray[np.intp] | None,
        bend: Float,
    ) -> float:
        """By how much that fails, anywhere."""
        # Where a function has to be above, or below.
        rows, sign = (_ALL, 1.0) if held is None else (held, -1.0)
        highest = core.peaks_above(values, self._grid.values(followed), bend, rows, sign)
        size, size_followed = np.abs(coefficients), np.abs(followed)
        fourth = weighted_sums(self._sizes, size * self._grid.fourth)
        highest += fourth + float(size_followed @ self._grid.fourth)
        total = self._largest(2.0 * size) + 2.0 * float(size_followed.sum())
        return max(float(highest.max()), 0.0) + 1.5 * self._grid.error(total)
