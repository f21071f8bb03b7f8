"""Choices of shifts for few uses, on a grid: from above by backward induction, from below followed.

*Convex.* As a function of ``x = e^{-y}`` every ``V_k`` (``composer``) is convex and falls, from 1
at ``x = 0``: ``V_0 = (1 - x)^+`` does, and means over factors of ``x`` and maxima leave that so.

*From above* they are followed at the points ``y_i = i h``. Between two of them, and from the last
one to ``x = 0``, a convex function is at most its chord, and before the first one at most its value
there. So every loss is split to the points around it, as in the upper construction of ``measure``;
and as the shares do not depend on ``i``, the mean of one shift is the same sum of values at points
for all ``i``: positive terms, whatever the tilt. Every sixteenth point comes first, for all shifts.
Between these the mean of one shift, being convex, is at most its chord, and it is formed only where
that is above what others have.

*From below* every choice is a bound. Neighbors take the shift that is the largest, from above, at
the point that is nearest to the loss so far. After each use the bins of the grid are merged
(``measure``): these are neighbors who forget some of what they have seen.

*Width.* A chord is above by ``h^2/8`` of the second derivative, about ``c (1 + c)`` of ``V`` where
delta falls by ``e^{-c epsilon}``; that adds up over the uses. Merging takes away as much.

*Rounding.* A sum of ``T`` terms is right to ``(T + 8) u`` of itself, the share of a chord as for a
loss that is off by ``8 u (|L| + h)``. As maxima of means are monotone and move with ``y``, what is
relative adds up over the uses, and so does what losses are off by.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.direct.profile import DirectBound
from psinoise.accounting.compose.measures.measure import UNIT, Measure, Side
from psinoise.accounting.loss.pairs import Float

Index = NDArray[np.int64]
Shift = NDArray[np.int16]

# Every so many points all shifts are looked at.
_COARSE = 16
# Logs of what is left of delta where the grid begins, and of 1 where values are 1 for certain.
_FIRST, _CERTAIN = -16.0, -40.0
# The grid ends here, at the latest: from there on the chord to 1 is as good; and minus the log of a
# chance that is rare enough for that.
_LAST, _RARE = 4.0, 14.0
# Terms of the sums of one point: those of so many shifts, about, beside a share of all.
_FORMED = 4.0
#: Means that are above others by less, relative to these, are the same.
SAME = 1e-13
#: Where a choice is between upper bounds and lower ones, of several uses.
BETWEEN = 0.35
# Nodes are left out from below which have such a share of delta together.
_NEGLIGIBLE = 1e-7
# Labels are followed together over so many, at least.
_LEAST_BAND = 512
# Log of the least factor of sums that fade.
_FADE = 32.0


@dataclass(frozen=True)
class Grid:
    """The points ``i h`` for ``-below <= i <= above``; a multiple of the coarse ones apart."""

    step: float
    below: int
    above: int

    @classmethod
    def of(cls, step: float, epsilon: float, tilt: float, rise: float) -> Grid:
        """About an epsilon where delta falls by ``e^{-tilt}``; losses fall by ``rise``, about."""
        below = math.ceil((epsilon - _FIRST / tilt) / step)
        above = max(math.ceil(min(rise, _LAST) / step), 1)
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
        #: Values after each use from the last one on, and the shift that is chosen at each point.
        self.after: list[tuple[Float, Shift]] = []
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
        self.after.append((self.values, choice))

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
        return max(float(mass @ np.exp(tilt * loss)) for loss, mass, _ in each) * (1.0 + 1e-12)

    def _mean(self, losses: Measure) -> _Mean:
        """Shares of chords: every loss is split between the points around."""
        step = self.grid.step
        place = np.floor(losses.loss / step)
        share = _far_share(np.maximum(losses.loss - place * step, 0.0), step)
        place = np.clip(place, -float(self._before), float(self._beyond))
        at = np.concatenate([place, place + 1.0]).astype(np.int64)
        places, where = np.unique(at, return_inverse=True)
        weights = np.zeros(places.size)
        mass = np.concatenate([losses.mass * (1.0 - share), losses.mass * share])
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


class FollowedBound(DirectBound):
    """What one choice makes of delta."""

    composer = "choices"
    between = BETWEEN


class Followed:
    """Losses of uses one after the other, merged on a grid of labels; sharp at an epsilon, where
    delta is about what is said: that says what does not matter."""

    def __init__(self, grid: Grid, epsilon: float, delta: float) -> None:
        self.grid, self.epsilon, self.delta = grid, epsilon, delta
        label = max(-round(epsilon / grid.step), -grid.below)
        # Of each label, a loss so far less epsilon, the mass, and that under Q times e^y.
        self._mass, self._base = np.zeros((2, grid.points))
        self._mass[label + grid.below] = 1.0
        self._base[label + grid.below] = math.exp(label * grid.step + epsilon)

    def once(self, losses: Measure) -> None:
        """A use without a choice."""
        labels = _Labels.of(losses, self.grid)
        none = np.zeros(self.grid.points, dtype=np.int16)
        self._follow(lambda _: labels, none, self._mass)

    def choosing(self, use: Use, after: Sequence[tuple[Float, Shift]]) -> None:
        """Uses with the choices of an `Induction`, the first of which come last in it."""

        @functools.cache
        def labels(shift: int) -> _Labels:
            return _Labels.of(use.shifts[shift][0], self.grid)

        for values, choice in after[::-1]:
            nearest = np.rint(self._loss() / self.grid.step) + self.grid.below
            place = np.clip(nearest, 0.0, self.grid.points - 1.0).astype(np.int64)
            weight = self._mass * values[place]
            limit = _NEGLIGIBLE * self.delta / (len(after) * self.grid.points)
            held = np.where(weight >= min(limit, float(weight.max())), self._mass, 0.0)
            self._follow(labels, choice[place], held)

    def bound(self, relative: float, slack: float) -> FollowedBound:
        """What has been followed, with the errors of all uses."""
        loss = self._loss() + self.epsilon
        order = np.argsort(loss, kind="stable")
        order = order[self._mass[order] > 0.0]
        loss, mass = loss[order], self._mass[order]
        # A loss is a ratio of two sums that are right to the error, beside a label.
        slack += 2.0 * relative + 8.0 * UNIT * (self.epsilon + self.grid.points * self.grid.step)
        return FollowedBound(Measure("lower", loss, loss, mass, 0.0, relative, slack), None)

    def _follow(self, labels: Callable[[int], _Labels], taken: Shift, held: Float) -> None:
        """One use: of each label with a mass that is held the shift that is taken there."""
        found = np.zeros((2, held.size))
        for shift in np.unique(taken[held > 0.0]).tolist():
            here = np.flatnonzero((held > 0.0) & (taken == shift))
            found += labels(shift).follow(here, np.stack([held[here], self._base[here]]))
        self._mass, self._base = found

    def _loss(self) -> Float:
        """Of each label, ``y = j h - log(base / mass)``."""
        mass = self._mass
        ratio = np.divide(self._base, mass, out=np.ones(mass.size), where=mass > 0.0)
        return np.asarray(self.grid.y - np.log(ratio))


@dataclass(frozen=True, eq=False)
class _Labels:
    """Losses of one shift from below, merged where the nearest whole number of steps is the same.

    Of each number that there is, from as many below 0 as there are labels on, the mass, and that
    under ``Q`` times ``e^{number h}``; and the sums of both over all numbers from each on, with the
    factor of that one for ``Q``.
    """

    labels: int
    number: Index
    weights: Float
    sums_from: Float

    @classmethod
    def of(cls, losses: Measure, grid: Grid) -> _Labels:
        points, step = grid.points, grid.step
        held = losses.loss > (0.5 - points) * step
        loss, mass = losses.loss[held], losses.mass[held]
        number = np.minimum(np.rint(loss / step), float(points))
        place = number.astype(np.int64) + points
        whole = np.zeros((2, 2 * points + 1))
        np.add.at(whole[0], place, mass)
        np.add.at(whole[1], place, mass * np.exp(number * step - loss))
        sums_from = np.stack([np.cumsum(whole[0, ::-1])[::-1], _faded(whole[1], step)])
        there = np.flatnonzero(whole[0])
        return cls(points, there - points, whole[:, there], sums_from)

    def follow(self, labels: Index, sums: Float) -> Float:
        """What masses, and those under ``Q``, on labels that rise become."""
        first, last = int(labels[0]), int(labels[-1])
        length = max(last + 1 - first, _LEAST_BAND)
        # What is on the labels, with room for numbers of losses that differ by less.
        band = np.zeros((2, last + 1 - first + 2 * length))
        band[:, labels - first + length] = sums
        found, group = np.zeros((2, self.labels)), self.number // length
        for start in np.unique(group).tolist():
            here = group == start
            low = max(first + start * length, 0)
            high = min(last + (start + 1) * length, self.labels)
            if low < high:
                places = low - self.number[here] - first + length
                for k in range(2):
                    found[k, low:high] += core.placed_sums(
                        band[k], places, self.weights[k, here], high - low
                    )
        beyond = 2 * self.labels - 1 - labels
        found[:, -1] = (sums * self.sums_from[:, beyond]).sum(axis=1)
        return found


def _faded(values: Float, step: float) -> Float:
    """Sums of all from each on, of which one ``k`` farther counts ``e^{-k h}`` times."""
    found, rest = np.empty(values.size), 0.0
    length = max(int(_FADE / step), 1)
    for start in range((values.size - 1) // length * length, -1, -length):
        part = values[start : start + length]
        fade = np.exp(-step * np.arange(part.size + 1))
        sums = np.cumsum((part * fade[:-1])[::-1])[::-1] / fade[:-1] + rest * fade[:0:-1]
        found[start : start + length], rest = sums, float(sums[0])
    return found
