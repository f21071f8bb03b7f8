"""Choices of shifts for few uses, from below: the choice that was found from above is followed.

Every choice is a bound. Neighbors take the shift that is the largest, from above, at the point of
the grid that is nearest to the loss so far (``induction``). After each use the bins of the grid are
merged (``measure``): these are neighbors who forget some of what they have seen. Merging takes away
as much as chords add.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.choices.induction import BETWEEN, Grid, Index, Shift, Use
from psinoise.accounting.compose.direct.profile import DirectBound
from psinoise.accounting.compose.measures.measure import UNIT, Measure
from psinoise.accounting.loss.pairs import Float

# Nodes are left out which have such a share of delta together.
_NEGLIGIBLE = 1e-7
# Labels are followed together over so many, at least.
_LEAST_BAND = 512
# Log of the least factor of sums that fade.
_FADE = 32.0


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
