"""Choices of shifts for few uses: backward induction on a grid, and the choice that it finds.

Let ``V_k(y)`` be what ``k`` further uses add to delta where the losses so far, less epsilon, are
``y`` (``choices``):

    ``V_0(y) = (1 - e^{-y})^+``,   ``V_k(y) = max_s E_{P_s}[V_{k-1}(y + L_s)]``.               (1)

*Convex.* As a function of ``x = e^{-y}`` every ``V_k`` is convex and falls, from 1 at ``x = 0``:
``V_0 = (1 - x)^+`` is, and means over factors of ``x`` and maxima leave that as it is.

*From above* (1) is followed at the points ``y_i = i h`` of a grid. Between two of them, and from
the last one to ``x = 0``, a convex function is at most its chord, and before the first one it is at
most its value there. So every loss is split to the points around it, as in the upper construction
of ``measure``; and as the shares do not depend on ``i``, the mean of one shift is the same sum of
values at points for all ``i``: positive terms, whatever the tilt.

*From below* every choice is a bound. The one that was found from above is followed forward: at each
loss so far it takes the shift that is the largest at the nearest point. After each use the bins of
the grid are merged (``measure``): these are neighbors who forget some of what they have seen.

*Shifts that cannot be the largest.* Every sixteenth point comes first, for all shifts. Between
these the mean of one shift, being convex, is at most its chord, and it is formed only where that
is above what others have.

*Width.* A chord is above by ``h^2/8`` of the second derivative, about ``c (1 + c)`` of ``V`` where
delta falls by ``e^{-c epsilon}``, and merging takes as much away; both add up over the uses.

*Other steps* come first, as ``choices`` says: one more use without a choice.

*Rounding.* A sum of ``T`` terms is right to ``(T + 8) u`` of itself, the share of a chord as for a
loss that is off by ``8 u (|L| + h)``. As (1) is monotone and moves with ``y``, what is relative
adds up over the uses, and so does what losses are off by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.bound import Bound
from psinoise.accounting.compose.measure import UNIT, Measure, Side
from psinoise.accounting.compose.profile import DirectBound
from psinoise.accounting.compose.refine import Crossing, Width, distance
from psinoise.accounting.loss.pairs import Float

Index = NDArray[np.int64]
Shift = NDArray[np.int16]

# Every so many points all shifts are looked at.
_COARSE = 16
# Logs of what is left of delta where the grid begins, and of 1 where values are 1 for certain.
_FIRST, _CERTAIN = -16.0, -40.0
# The grid ends here, at the latest: from there on the chord to 1 is as good.
_LAST = 4.0
# Shares of a width that the first grid should take.
_SHARE = 0.85
# Terms of sums that all grids may take; each point has those of so many shifts, about, beside a
# share of all.
_MOST_SUMS, _FORMED = 3e10, 4.0
# Points of one grid, and of all uses together: ten bytes each are kept.
_MOST_POINTS, _MOST_KEPT = 2**17, 1e7
# From below nodes are left out which have such a share of delta together.
_NEGLIGIBLE = 1e-7
# Log of the least factor of sums that fade.
_FADE = 32.0
# Means that are above others by less, relative to these, are the same.
_SAME = 1e-13


@dataclass(frozen=True)
class Grid:
    """The points ``i h`` for ``-below <= i <= above``; a multiple of the coarse ones apart."""

    step: float
    below: int
    above: int

    @classmethod
    def of(cls, step: float, epsilon: float, tilt: float, rise: float) -> Grid:
        """About an epsilon where delta falls by ``e^{-tilt}``; losses fall by ``rise`` at most."""
        below = math.ceil((epsilon - _FIRST / tilt) / step)
        above = max(math.ceil(min(rise, _LAST) / step), 1)
        return cls(step, below, above + -(below + above) % _COARSE)

    @property
    def points(self) -> int:
        return self.below + self.above + 1

    @property
    def y(self) -> Float:
        return np.asarray(np.arange(-self.below, self.above + 1) * self.step, dtype=float)


@dataclass(frozen=True, eq=False)
class _Mean:
    """``E[V(y_i + L)]`` of one shift, as sums of values at points that are padded at both ends."""

    places: Index  # in padded values, of the first point
    coarse: Index  # the same where every sixteenth value is next to each other
    weights: Float
    certain: float


@dataclass(frozen=True, eq=False)
class Use:
    """One use of a step: the losses of each of its shifts, from below and from above."""

    shifts: tuple[tuple[Measure, Measure], ...]

    @property
    def fall(self) -> float:
        """By how much losses fall, at most."""
        return max(-upper.span[0] for _, upper in self.shifts)


def induced_bounds(
    use: Use,
    count: int,
    others: Use | None,
    epsilon: float,
    tilt: float,
    crossing: Crossing,
    width: Width,
) -> Generator[Bound, None, bool]:
    """Bounds from above and below on finer and finer grids; whether they are as close as asked.

    Parameters
    ----------
    use, count, others
        as for `Induction`
    epsilon, tilt
        where they are asked for, about, and how fast delta falls there
    crossing, width
        what is asked of a bound, and how close both should be
    """
    step, spent = 0.0, 0.0
    while True:
        asked = width(epsilon, tilt)
        if not (asked > 0.0 and math.isfinite(epsilon)):
            return False
        if step == 0.0:
            step = math.sqrt(8.0 * _SHARE * asked / (count * (1.0 + tilt)))
        grid = Grid.of(step, epsilon, tilt, count * use.fall)
        if not (grid.points <= _MOST_POINTS and count * grid.points <= _MOST_KEPT):
            return False
        induction = Induction(use, count, others, grid)
        spent += induction.sums
        if not spent <= _MOST_SUMS:
            return False
        upper = induction.upper()
        yield upper
        epsilon = crossing(upper, epsilon, 1.0 / tilt)
        if not math.isfinite(epsilon):
            return False
        lower = induction.lower(epsilon, math.exp(upper.log_delta(epsilon)))
        yield lower
        found = distance(lower, upper, epsilon, tilt, crossing)
        if found <= asked:
            return True
        step *= max(min(math.sqrt(_SHARE * asked / found), 0.7), 0.1)


class Induction:
    """Uses of a step with several worst shifts, after one use of all others together.

    Parameters
    ----------
    use, count
        the step with the choices
    others
        what comes before, without a choice
    grid
        where functions are known
    """

    def __init__(self, use: Use, count: int, others: Use | None, grid: Grid) -> None:
        self.use, self.count, self.others, self.grid = use, count, others, grid
        # Points before the first, and beyond the last, that places may fall on.
        self._before = -(-grid.points // _COARSE) * _COARSE
        beyond = min(
            math.ceil(-_CERTAIN / grid.step) + grid.points,
            max(self._place(each) for each in [use, others] if each is not None) + grid.points,
        )
        self._beyond = beyond + -(self._before + grid.points + beyond) % _COARSE
        self._means = [self._mean(upper) for _, upper in use.shifts]
        self._labels: dict[int, _Labels] = {}
        self._after: list[tuple[Float, Shift]] = []

    @property
    def sums(self) -> float:
        """Terms of all sums of one bound from above, about."""
        terms = np.array([mean.weights.size for mean in self._means])
        each = terms.sum() / _COARSE + min(_FORMED, terms.size) * terms.mean()
        return float(self.count * self.grid.points * each)

    def _place(self, use: Use) -> int:
        """Of the largest loss."""
        most = max(upper.span[1] for _, upper in use.shifts)
        return max(math.ceil(min(most / self.grid.step, 2.0**40)) + 2, 2)

    def upper(self) -> GridBound:
        """A bound from above; what it chooses is kept."""
        values = -np.expm1(-np.maximum(self.grid.y, 0.0))
        self._after = []
        for _ in range(self.count):
            values, choice = self._largest(self._means, self._padded(values))
            self._after.append((values, choice))
        if self.others is not None:
            ((_, upper),) = self.others.shifts
            values, _ = self._largest([self._mean(upper)], self._padded(values))
        return GridBound(self.grid, values, *self._errors("upper"))

    def _errors(self, side: Side) -> tuple[float, float]:
        """Of all uses, the relative error of values or masses, and the error of losses."""
        relative, slack = 16.0 * UNIT, 0.0
        for use, count in ((self.use, self.count), (self.others, 1)):
            if use is not None:
                each = [pair[side == "upper"] for pair in use.shifts]
                terms = self.grid.points + max(one.loss.size for one in each)
                largest = max(abs(end) for one in each for end in one.span)
                rounding = max(one.rounding for one in each) + 4.0 * UNIT * (terms + 64.0)
                relative += count * (rounding + _SAME)
                slack += count * (
                    max(one.slack for one in each) + 8.0 * UNIT * (largest + self.grid.step)
                )
        return relative, slack

    def lower(self, epsilon: float, delta: float) -> FollowedBound:
        """A bound from below that is sharp at an epsilon, by the choice made from above.

        ``delta`` says what does not matter.
        """
        grid, none = self.grid, np.zeros(self.grid.points, dtype=np.int16)
        label = max(-round(epsilon / grid.step), -grid.below)
        mass, base = np.zeros((2, grid.points))
        mass[label + grid.below] = 1.0
        base[label + grid.below] = math.exp(label * grid.step + epsilon)
        if self.others is not None:
            others = _Labels.of(self.others.shifts[0][0], grid)
            mass, base = self._follow(lambda _: others, none, mass, base)
        for values, choice in self._after[::-1]:
            nearest = np.rint(self._loss(mass, base) / grid.step) + grid.below
            place = np.clip(nearest, 0.0, grid.points - 1.0).astype(np.int64)
            weight = mass * values[place]
            limit = _NEGLIGIBLE * delta / (self.count * grid.points)
            held = np.where(weight >= min(limit, float(weight.max())), mass, 0.0)
            mass, base = self._follow(self._labels_of, choice[place], held, base)
        loss = self._loss(mass, base) + epsilon
        order = np.argsort(loss, kind="stable")
        order = order[mass[order] > 0.0]
        loss, mass = loss[order], mass[order]
        rounding, slack = self._errors("lower")
        # A loss is a ratio of two sums that are right to the rounding, beside a label.
        slack += 2.0 * rounding + 8.0 * UNIT * (epsilon + grid.points * grid.step)
        return FollowedBound(Measure("lower", loss, loss, mass, 0.0, rounding, slack), None)

    def _follow(
        self, labels: Callable[[int], _Labels], taken: Shift, mass: Float, base: Float
    ) -> Float:
        """One use: of each label with a mass the shift that is taken there."""
        found = np.zeros((2, mass.size))
        for k in np.unique(taken[mass > 0.0]).tolist():
            here = np.flatnonzero((mass > 0.0) & (taken == k))
            found += labels(k).follow(here, mass[here], base[here])
        return found

    def _labels_of(self, k: int) -> _Labels:
        if k not in self._labels:
            self._labels[k] = _Labels.of(self.use.shifts[k][0], self.grid)
        return self._labels[k]

    def _loss(self, mass: Float, base: Float) -> Float:
        """Of each label, ``y = j h - log(base / mass)``."""
        ratio = np.divide(base, mass, out=np.ones(mass.size), where=mass > 0.0)
        return np.asarray(self.grid.y - np.log(ratio))

    def _mean(self, losses: Measure) -> _Mean:
        """Shares of chords: every loss is split between the points around."""
        step, grid = self.grid.step, self.grid
        place = np.floor(losses.loss / step)
        over = np.maximum(losses.loss - place * step, 0.0)
        share = _far_share(over, step)
        place = np.clip(place, -float(self._before), float(self._beyond))
        at = np.concatenate([place, place + 1.0]).astype(np.int64)
        places, where = np.unique(at, return_inverse=True)
        mass = np.concatenate([losses.mass * (1.0 - share), losses.mass * share])
        weights = np.zeros(places.size)
        np.add.at(weights, where, mass)
        inside = places <= self._beyond - grid.points
        certain = losses.infinite + float(weights[~inside].sum()) * (1.0 + 1e-12)
        held = inside & (weights > 0.0)
        places = np.maximum(places[held] + self._before, 0)
        row = (self._before + grid.points + self._beyond) // _COARSE
        coarse = places % _COARSE * row + places // _COARSE
        return _Mean(places, coarse, weights[held], certain)

    def _padded(self, values: Float) -> Float:
        """Values with those before the first point, and on the chord to 1 beyond the last."""
        fade = np.exp(-self.grid.step * np.arange(1, self._beyond + 1))
        beyond = 1.0 - (1.0 - values[-1]) * fade
        return np.concatenate([np.full(self._before, values[0]), values, beyond])

    def _largest(self, means: Sequence[_Mean], padded: Float) -> tuple[Float, Shift]:
        """The largest mean at every point, and which it is."""
        points = self.grid.points
        tiles = points // _COARSE
        rows = np.ascontiguousarray(padded.reshape(-1, _COARSE).T).ravel()
        ends = np.empty((len(means), tiles + 1))
        for k, mean in enumerate(means):
            ends[k] = core.placed_sums(rows, mean.coarse, mean.weights, tiles + 1) + mean.certain
        best = np.zeros((tiles, _COARSE))
        choice = np.zeros(best.shape, dtype=np.int16)
        places = np.arange(float(_COARSE))
        share = _far_share(self.grid.step * places, self.grid.step * _COARSE)
        done = np.zeros((len(means), tiles), dtype=bool)
        done[ends.argmax(axis=0)[:-1], np.arange(tiles)] = True
        done[ends.argmax(axis=0)[1:], np.arange(tiles)] = True
        self._form(means, padded, done, best, choice)
        rest = np.zeros_like(done)
        for k in range(len(means)):
            chord = ends[k, :-1, None] * (1.0 - share) + ends[k, 1:, None] * share
            rest[k] = ~done[k] & (chord > best * (1.0 + _SAME)).any(axis=1)
        self._form(means, padded, rest, best, choice)
        last = int(ends[:, -1].argmax())
        return np.append(best, ends[last, -1]), np.append(choice, last)

    def _form(
        self,
        means: Sequence[_Mean],
        padded: Float,
        where: NDArray[np.bool_],
        best: Float,
        choice: Shift,
    ) -> None:
        """Means of some shifts on some tiles, where they are the largest so far."""
        for k, mean in enumerate(means):
            edges = np.flatnonzero(np.diff(where[k], prepend=False, append=False))
            for start, end in edges.reshape(-1, 2).tolist():
                found = core.placed_sums(
                    padded, mean.places + start * _COARSE, mean.weights, (end - start) * _COARSE
                )
                found = found.reshape(-1, _COARSE) + mean.certain
                above = found > best[start:end]
                best[start:end][above] = found[above]
                choice[start:end][above] = k


def _far_share(distance: Float, length: float) -> Float:
    """Of a chord in ``e^{-y}``, the share of its far end at distances from the near one."""
    return np.minimum(np.expm1(-distance) / math.expm1(-length), 1.0)


@dataclass(frozen=True, eq=False)
class _Labels:
    """Losses of one shift from below, merged where the nearest whole number of steps is the same.

    Of each number, from as many below 0 as there are labels on, the mass, and that under ``Q``
    times ``e^{number h}``; and the sums of both over all numbers from each on, with the factor of
    that one for ``Q``.
    """

    labels: int
    mass: Float
    base: Float
    mass_from: Float
    base_from: Float

    @classmethod
    def of(cls, losses: Measure, grid: Grid) -> _Labels:
        points, step = grid.points, grid.step
        held = losses.loss > (0.5 - points) * step
        loss, mass = losses.loss[held], losses.mass[held]
        number = np.minimum(np.rint(loss / step), float(points))
        place = number.astype(np.int64) + points
        whole, base = np.zeros((2, 2 * points + 1))
        np.add.at(whole, place, mass)
        np.add.at(base, place, mass * np.exp(number * step - loss))
        return cls(points, whole, base, np.cumsum(whole[::-1])[::-1], _faded(base, step))

    def follow(self, labels: Index, mass: Float, base: Float) -> Float:
        """What masses on some labels become, and those under ``Q``."""
        at, found = self.labels - labels, np.empty((2, self.labels))
        found[0] = core.placed_sums(self.mass, at, mass, self.labels)
        found[1] = core.placed_sums(self.base, at, base, self.labels)
        last = at + self.labels - 1
        found[:, -1] = mass @ self.mass_from[last], base @ self.base_from[last]
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


class FollowedBound(DirectBound):
    """What one choice makes of delta."""

    composer = "choices"
    between = 0.35


@dataclass(frozen=True, eq=False)
class GridBound(Bound):
    """Values at points, the chords in ``e^{-y}`` between them, ``y = -epsilon <= 0``.

    ``relative`` is the error of values, ``slack`` that of epsilon.
    """

    grid: Grid
    values: Float
    relative: float
    slack: float
    side = "upper"
    composer = "choices"
    between = FollowedBound.between

    def log_deltas(self, epsilons: Float) -> Float:
        """Logs of the bound on delta at some epsilons, rounded outwards."""
        y = self.slack - np.asarray(epsilons, dtype=float)
        y = y + 8.0 * UNIT * (np.abs(y) + self.grid.step)
        step = self.grid.step
        place = np.clip(np.floor(y / step) + self.grid.below, 0.0, self.grid.points - 2.0)
        index = place.astype(np.int64)
        over = np.maximum(y - (place - self.grid.below) * step, 0.0)
        share = _far_share(over, step)
        found = self.values[index] * (1.0 - share) + self.values[index + 1] * share
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(np.log(found) + self.relative, 0.0))
