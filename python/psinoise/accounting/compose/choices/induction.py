"""Choices of shifts for few uses, on a grid: from the last use on, from above and from below.

*Convex.* As a function of ``x = e^{-y}`` every ``V_k`` (``composer``) is convex and falls, from 1
at ``x = 0``: ``V_0 = (1 - x)^+`` does, and means over factors of ``x`` and maxima leave that so.

*From above* they are followed at the points ``y_i = i h``. Between two of them, and from the last
one to ``x = 0``, a convex function is at most its chord, and before the first one at most its value
there. So every loss is split to the points around it, as in the upper construction of ``measure``;
and as the shares do not depend on ``i``, the mean of one shift is the same sum of values at points
for all ``i``: positive terms, whatever the tilt. Every sixteenth point comes first, for all shifts.
Between these the mean of one shift, being convex, is at most its chord, and it is formed only where
that is above what others have.

*From below* every choice with every test is a bound. For each point hold a test of the uses to
come, that says yes with probability ``p`` under ``P`` and ``q`` under ``Q``: whatever the loss so
far, ``V_k(y) >= p - q e^{-y}``. One use before, neighbors take the shift that is the largest from
above at the point, see the loss ``L``, and go on with the test of one of the points around
``y_i + L``, by a coin with the shares above: another test, of ``E_P[p]`` and ``E_P[e^{-L} q]``.
Both are sums at points again. (Always the nearest point would be off to one side, in each use.) So
one pass gives a test for every epsilon; that of a nearby point is a bound, too. Beyond the last
point its test is held or all say yes, whichever is better, and before the first one none does. As
``V`` has no infinite losses, which count apart, ``p`` of a yes to everything is their rest.

*Width.* A chord is above by ``h^2/8`` of the second derivative, about ``c (1 + c)`` of ``V`` where
delta falls by ``e^{-c epsilon}``; that adds up over the uses. A test is a line below ``V`` as a
function of ``x``: those of the points around take away as much.

*Rounding.* A sum of ``T`` terms is right to ``(T + 8) u`` of itself, the share of a chord as for a
loss that is off by ``8 u (|L| + h)``. As maxima of means are monotone and move with ``y``, what is
relative adds up over the uses, and so does what losses are off by.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.measure import UNIT, Measure, Side
from psinoise.accounting.loss.pairs import Float

Index = NDArray[np.int64]
Shift = NDArray[np.int16]

# Every so many points all shifts are looked at.
_COARSE = 16
# Logs of what is left of delta where the grid begins, and of 1 where values are 1 for certain.
_FIRST, _CERTAIN = -16.0, -40.0
# By how much the log of delta may be off where a grid is sought, if losses hardly fall.
_OFF = 8.0
# The grid ends here, at the latest: from there on the chord to 1 is as good; and minus the log of a
# chance that is rare enough for that.
_LAST, _RARE = 4.0, 14.0
# Terms of the sums of one point: those of so many shifts, about, beside a share of all.
_FORMED = 4.0
#: Means that are above others by less, relative to these, are the same.
SAME = 1e-13
#: Where a choice is between upper bounds and lower ones, of several uses.
BETWEEN = 0.35
# Farther beyond the grid nothing is said; and what probabilities may lose below float64, in sums of
# a million terms in each of a thousand uses.
_LARGEST_RISE, _UNDERFLOW = 600.0, 1e-305


@dataclass(frozen=True)
class Grid:
    """The points ``i h`` for ``-below <= i <= above``; a multiple of the coarse ones apart."""

    step: float
    below: int
    above: int

    @classmethod
    def of(cls, step: float, epsilon: float, tilt: float, fall: float) -> Grid:
        """About an epsilon where delta falls by ``e^{-tilt}``; losses fall by ``fall``, about."""
        below = math.ceil((epsilon + min(fall + _OFF / tilt, -_FIRST / tilt)) / step)
        above = max(math.ceil(min(fall, _LAST) / step), 1)
        return cls(step, below, above + -(below + above) % _COARSE)

    @property
    def points(self) -> int:
        return self.below + self.above + 1

    @property
    def y(self) -> Float:
        return np.asarray(np.arange(-self.below, self.above + 1) * self.step, dtype=float)

    def chords(self, values: Float, y: Float) -> Float:
        """A function by its values at the points: on chords in ``e^{-y}``, beyond the last point on
        that to 1, and before the first one its value there."""
        place = np.clip(np.floor(y / self.step) + self.below, 0.0, self.points - 2.0)
        index = place.astype(np.int64)
        over = np.maximum(y - (place - self.below) * self.step, 0.0)
        share = _far_share(np.minimum(over, self.step), self.step)
        found = values[index] * (1.0 - share) + values[index + 1] * share
        beyond = np.maximum(y - self.above * self.step, 0.0)
        return np.asarray(np.where(beyond > 0.0, 1.0 - (1.0 - values[-1]) * np.exp(-beyond), found))


def _far_share(distance: Float, length: float) -> Float:
    """Of a chord in ``e^{-y}``, the share of its far end at distances from the near one."""
    return np.minimum(np.expm1(-distance) / math.expm1(-length), 1.0)


def _split(losses: Measure, step: float) -> tuple[Float, Float]:
    """Every loss between the points around it: these in steps, all lower ones first, and the shares
    of its mass."""
    place = np.floor(losses.loss / step)
    share = _far_share(np.maximum(losses.loss - place * step, 0.0), step)
    mass = np.concatenate([losses.mass * (1.0 - share), losses.mass * share])
    return np.concatenate([place, place + 1.0]), mass


@dataclass(frozen=True, eq=False)
class Use:
    """One use of a step: the losses of each of its shifts, from below and from above."""

    shifts: tuple[tuple[Measure, Measure], ...]

    def fall(self, count: int) -> float:
        """By how much losses of so many uses fall but for a rare chance, by Chernoff's bound."""
        found = count * max(0.0, *(-upper.span[0] for _, upper in self.shifts))
        tilt, log_moment = 1.0, 0.0
        while count * log_moment < _RARE < tilt * found:
            tilt *= 2.0
            log_moment = math.log(
                max(float(upper.mass @ np.exp(-tilt * upper.loss)) for _, upper in self.shifts)
            )
            found = min(found, (count * max(log_moment, 0.0) + _RARE) / tilt)
        return found

    def errors(self, side: Side, grid: Grid) -> tuple[float, float]:
        """The relative error of values or masses by a use, and that of losses."""
        each = [pair[side == "upper"] for pair in self.shifts]
        terms = grid.points + max(one.loss.size for one in each)
        largest = max(abs(end) for one in each for end in one.span)
        relative = max(one.rounding for one in each) + 4.0 * UNIT * (terms + 64.0) + 2.0 * SAME
        return relative, max(one.slack for one in each) + 8.0 * UNIT * (largest + grid.step)


@dataclass(frozen=True, eq=False)
class _Mean:
    """``E[V(y_i + L)]`` of one shift, as sums of values at points that are padded at both ends."""

    places: Index  # in padded values, of the first point
    coarse: Index  # the same where every sixteenth value is next to each other
    weights: Float
    certain: float

    def sums(self, padded: Float, first: int, count: int) -> Float:
        """At so many points from one on."""
        sums = core.placed_sums(padded, self.places + first, self.weights, count)
        return np.asarray(sums + self.certain)


class Induction:
    """Uses of a step with several shifts, from the last one on: functions at the points of a grid.

    ``values`` are of what comes after; of nothing by default.
    """

    def __init__(self, use: Use, grid: Grid, values: Float | None = None) -> None:
        self.use, self.grid = use, grid
        self.values = -np.expm1(-np.maximum(grid.y, 0.0)) if values is None else values
        #: The shift that is chosen at each point, from the last use on.
        self.choices: list[Shift] = []
        # Points before the first, and beyond the last, that places may fall on.
        self._before = -(-grid.points // _COARSE) * _COARSE
        most = max(upper.span[1] for _, upper in use.shifts)
        beyond = grid.points + min(
            math.ceil(-_CERTAIN / grid.step),
            max(math.ceil(min(most / grid.step, 2.0**40)) + 2, 2),
        )
        self._beyond = beyond + -(self._before + grid.points + beyond) % _COARSE
        self._means = [self._mean(upper) for _, upper in use.shifts]

    @property
    def points(self) -> int:
        """Those of the grid, and those before and beyond that places may fall on."""
        return self._before + self.grid.points + self._beyond

    @property
    def sums(self) -> float:
        """Terms of all sums of one use, about."""
        terms = np.array([mean.weights.size for mean in self._means])
        each = terms.sum() / _COARSE + min(_FORMED, terms.size) * terms.mean()
        return float(self.grid.points * each)

    def advance(self) -> None:
        """One use more."""
        self._padded = self._pad(self.values)
        self.values, choice = self._largest(self._padded)
        self.choices.append(choice)

    def without_choice(self, shift: int) -> Float:
        """What the values would be if the last use had had one shift."""
        return self._means[shift].sums(self._padded, 0, self.grid.points)

    def split(self, shift: int) -> tuple[Float, Float, float]:
        """The losses of one shift on points of the grid, their masses, and that of infinite ones.

        It is the pair whose means these are, and dominates the shift.
        """
        mean = self._means[shift]
        loss = np.asarray((mean.places - self._before) * self.grid.step, dtype=float)
        return loss, mean.weights, mean.certain

    def moment(self, tilt: float) -> float:
        """The largest ``E[e^{tilt L}]`` of a shift, infinite losses aside, rounded up."""
        each = (self.split(shift) for shift in range(len(self._means)))
        with np.errstate(over="ignore"):
            largest = max(float(mass @ np.exp(tilt * loss)) for loss, mass, _ in each)
        return largest * (1.0 + 1e-12)

    def _mean(self, losses: Measure) -> _Mean:
        """Shares of chords."""
        number, mass = _split(losses, self.grid.step)
        at = np.clip(number, -float(self._before), self._beyond + 1.0).astype(np.int64)
        places, where = np.unique(at, return_inverse=True)
        weights = np.zeros(places.size)
        np.add.at(weights, where, mass)
        inside = places <= self._beyond
        certain = losses.infinite + float(weights[~inside].sum()) * (1.0 + 1e-12)
        held = inside & (weights > 0.0)
        places = np.maximum(places[held] + self._before, 0)
        coarse = places % _COARSE * (self.points // _COARSE) + places // _COARSE
        return _Mean(places, coarse, weights[held], certain)

    def _pad(self, values: Float) -> Float:
        """Values with those before the first point, and on the chord to 1 beyond the last."""
        fade = np.exp(-self.grid.step * np.arange(1, self._beyond + 1))
        beyond = 1.0 - (1.0 - values[-1]) * fade
        return np.concatenate([np.full(self._before, values[0]), values, beyond])

    def _largest(self, padded: Float) -> tuple[Float, Shift]:
        """The largest mean at every point, and which it is."""
        means, tiles = self._means, self.grid.points // _COARSE
        rows = np.ascontiguousarray(padded.reshape(-1, _COARSE).T).ravel()
        ends = np.empty((len(means), tiles + 1))
        for k, mean in enumerate(means):
            ends[k] = core.placed_sums(rows, mean.coarse, mean.weights, tiles + 1) + mean.certain
        best = np.zeros((tiles, _COARSE))
        choice = np.zeros(best.shape, dtype=np.int16)
        share = _far_share(self.grid.step * np.arange(float(_COARSE)), self.grid.step * _COARSE)
        # Of those that are the same the first: neighboring points have the same shift.
        first = (ends >= ends.max(axis=0) * (1.0 - SAME)).argmax(axis=0)
        done = np.zeros((len(means), tiles), dtype=bool)
        done[first[:-1], np.arange(tiles)] = True
        done[first[1:], np.arange(tiles)] = True
        self._form(padded, done, best, choice)
        rest = np.zeros_like(done)
        for k in range(len(means)):
            chord = ends[k, :-1, None] * (1.0 - share) + ends[k, 1:, None] * share
            rest[k] = ~done[k] & (chord > best * (1.0 + SAME)).any(axis=1)
        self._form(padded, rest, best, choice)
        last = int(first[-1])
        return np.append(best, ends[last, -1]), np.append(choice, last)

    def _form(self, padded: Float, where: NDArray[np.bool_], best: Float, choice: Shift) -> None:
        """Means of some shifts on some tiles, where they are the largest so far."""
        shifts, edges = np.nonzero(np.diff(np.pad(where, ((0, 0), (1, 1))), axis=1))
        tiles = zip(shifts[::2].tolist(), edges.reshape(-1, 2).tolist(), strict=True)
        for k, (start, end) in tiles:
            found = self._means[k].sums(padded, start * _COARSE, (end - start) * _COARSE)
            found = found.reshape(-1, _COARSE)
            above = found > best[start:end] * (1.0 + SAME)
            best[start:end][above] = found[above]
            choice[start:end][above] = k


@dataclass(frozen=True, eq=False)
class GridBound(Bound):
    """Values at ``y = -epsilon``; ``relative`` is their error, ``slack`` that of epsilon."""

    grid: Grid
    values: Float
    relative: float
    slack: float
    side = "upper"
    composer = "choices"
    between = BETWEEN

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound on delta at some epsilons, rounded outwards."""
        y = self.slack - np.asarray(epsilons, dtype=float)
        y = y + 8.0 * UNIT * (np.abs(y) + self.grid.step)
        with np.errstate(divide="ignore"):
            found = np.log(self.grid.chords(self.values, y)) + self.relative
        return np.asarray(np.minimum(found, 0.0))


class Attained:
    """Tests of the uses to come, one for each point of a grid, and what they say with certainty.

    ``under_p`` and ``under_q`` are probabilities of a yes, those under ``Q`` times ``e^{-y}`` at
    the point. At first a test says yes where the loss exceeds epsilon.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        above = grid.y > 0.0
        self.under_p = above.astype(float)
        self.under_q = self.under_p * np.exp(-np.maximum(grid.y, 0.0))
        self.finite = 1.0  # probability under P of finite losses of all uses so far, at least

    def advance(self, use: Use, choices: Sequence[Shift]) -> None:
        """So many uses more, of the shifts that are chosen at each point."""
        points, step = self.grid.points, self.grid.step
        # From the lowest point on farther tests are all the same.
        most = max(lower.span[1] for lower, _ in use.shifts) / step
        reach = math.ceil(min(max(most, 0.0), points - _CERTAIN / step)) + 2
        none, fade = np.zeros(points), np.exp(-step * np.arange(1, reach + 1))
        least = min(float(lower.mass.sum()) for lower, _ in use.shifts)
        # Under Q a yes to everything, beyond the last point.
        certain = math.exp(-self.grid.above * step) * fade

        @functools.cache
        def shares(shift: int) -> tuple[Index, Float, Float]:
            lower = use.shifts[shift][0]
            number, mass = _split(lower, step)
            number = np.minimum(number, float(reach))
            base = mass * np.exp(number * step - np.tile(lower.loss, 2))
            held = number > -points  # others are before the first point, wherever they begin
            places, where = np.unique(number[held].astype(np.int64), return_inverse=True)
            under_p, under_q = np.zeros((2, places.size))
            np.add.at(under_p, where, mass[held])
            np.add.at(under_q, where, base[held])
            return places + points, under_p, under_q

        for choice in choices:
            last_p, last_q = self.under_p[-1], self.under_q[-1] * fade
            better = last_p - last_q > self.finite - certain
            after_p = np.concatenate([none, self.under_p, np.where(better, last_p, self.finite)])
            after_q = np.concatenate([none, self.under_q, np.where(better, last_q, certain)])
            ends = np.flatnonzero(np.diff(choice)) + 1
            for start, end in zip([0, *ends.tolist()], [*ends.tolist(), points], strict=True):
                places, under_p, under_q = shares(int(choice[start]))
                here, count = places + start, end - start
                self.under_p[start:end] = core.placed_sums(after_p, here, under_p, count)
                self.under_q[start:end] = core.placed_sums(after_q, here, under_q, count)
            self.finite *= min(least, 1.0)


@dataclass(frozen=True, eq=False)
class AttainedBound(Bound):
    """What tests attain at every epsilon; ``relative`` and ``slack`` are errors of all uses."""

    grid: Grid
    under_p: Float
    under_q: Float
    relative: float
    slack: float
    side = "lower"
    composer = "choices"
    between = BETWEEN

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound on delta at some epsilons, rounded outwards."""
        grid, y = self.grid, -np.asarray(epsilons, dtype=float)
        nearest = np.rint(y / grid.step) + grid.below + np.array([[-1.0], [0.0], [1.0]])
        place = np.clip(nearest, 0.0, grid.points - 1.0)
        off = self.slack + 8.0 * UNIT * (np.abs(y) + grid.points * grid.step)
        rise = (place - grid.below) * grid.step - y + off
        index = place.astype(np.int64)
        under_p = self.under_p[index] * (1.0 - self.relative)
        under_q = (self.under_q[index] + _UNDERFLOW) * (1.0 + self.relative)
        found = under_p - under_q * np.exp(np.minimum(rise, _LARGEST_RISE))
        found[rise > _LARGEST_RISE] = 0.0
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(found.max(axis=0), 0.0)))
