"""Pairs of distributions whose loss takes countable values: nothing has to be integrated."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.loss.pairs import Direction, Float, Pair, mixture_loss

#: Losses of atoms are right to this share of the largest of them, or of 1.
LOSS_ROUNDING = 1e-15
#: Of the exponential of a log, per unit of its size: of the table, of outputs, and of sums.
EXP_ROUNDING = 2e-15


class AtomPair(ABC):
    """One use with a loss of atoms, for both directions at once; hashable. See `Pair` for sampling.

    Mass where the other distribution has none is an infinite loss, kept apart: all else here is
    about the finite part, whose masses add up to less than 1 then.
    """

    sampling_rate: float

    @property
    @abstractmethod
    def unsampled(self) -> tuple[Float, Float]:
        """The atoms without sampling."""

    @property
    def told(self) -> float:
        """Probability under ``P`` of an infinite loss, without sampling: the same both ways."""
        return 0.0

    @cached_property
    def atoms(self) -> tuple[Float, Float]:
        """Log of the probability of each atom under ``Q``, and its loss, under *remove*."""
        (log_mass, loss), rate = self.unsampled, self.sampling_rate
        loss = mixture_loss(loss, rate)
        if self.told > 0.0 and rate < 1.0:
            # What a record that was drawn makes impossible.
            log_mass = np.append(log_mass, math.log(self.told))
            loss = np.append(loss, math.log1p(-rate))
        return log_mass, loss

    @property
    def symmetric(self) -> bool:
        """Whether a reflection maps one direction to the other."""
        return self.sampling_rate == 1.0

    def infinite(self, direction: Direction) -> float:
        """Probability under ``P`` of an infinite loss."""
        if direction == "add" and self.sampling_rate < 1.0:
            return 0.0
        return self.sampling_rate * self.told

    @property
    def stated(self) -> bool:
        """Whether small losses keep their digits, being no differences of logarithms."""
        return False

    @property
    def several(self) -> bool:
        """Whether it dominates several pairs, of which only each alone is attained."""
        return False

    @property
    def attained(self) -> Dominating:
        """What stands for it where lower ends of brackets are computed: itself, or a pair that is
        nowhere above."""
        return self

    @property
    def revealed(self) -> AtomPair:
        """What stands for it where upper ends of brackets are wide."""
        return self

    @property
    def compares_all(self) -> bool:
        """Whether `at_tilt` compares all of them, and its moment is the largest for certain."""
        return not self.several

    @property
    def countless(self) -> bool:
        """Whether they are a continuum, of which no group is one pair."""
        return False

    def at_tilt(self, direction: Direction, tilt: float) -> AtomPair:
        """The one of them with the largest `moment` at a tilt."""
        return self

    def groups(
        self, direction: Direction, tilt: float, most: int
    ) -> tuple[tuple[AtomPair, AtomPair], ...]:
        """The pairs that it dominates in so many groups, finer near the worst pair at a tilt: of
        each group one pair, and what dominates it."""
        return ((self, self),)

    def under_p(self, direction: Direction) -> tuple[Float, Float]:
        """Logs of the masses under ``P``, and the losses, of one direction.

        No mass is above 1; by rounding sums of large logarithms may be.
        """
        log_mass, loss = self.atoms
        if direction == "remove":
            return np.minimum(log_mass + loss, 0.0), loss
        return log_mass, -loss

    def moment(self, direction: Direction, tilt: float) -> float:
        """``log E_P[exp(tilt L)] / tilt``, infinite losses aside; at 0 its limit, ``E_P[L]``."""
        if tilt != 0.0:
            return self.log_transform(direction, tilt) / tilt
        log_p, loss = self.under_p(direction)
        return float(np.exp(log_p) @ loss)

    def below(self, direction: Direction, tilt: float | None) -> AtomPair:
        """A pair whose profile lies below, in compositions with others and itself.

        Without a tilt: of a single use, whose profile is the supremum over all of them.
        """
        return self if tilt is None else self.at_tilt(direction, tilt)

    @property
    def exact_loss(self) -> float | None:
        """The largest loss without sampling, rounded up once, where it is known so."""
        return None

    def largest_loss(self, direction: Direction) -> float:
        """The largest finite loss, rounded up; ``-inf`` if there is none."""
        exact = self.exact_loss if self.sampling_rate == 1.0 else None
        if exact is not None:
            return exact
        found, rounding = self._largest(direction)
        return found + rounding

    def certain_loss(self, direction: Direction) -> float:
        """A lower bound on the largest finite loss."""
        found, rounding = self._largest(direction)
        return found - 4.0 * rounding

    def _largest(self, direction: Direction) -> tuple[float, float]:
        """The largest finite loss, and its rounding.

        Sampling passes that of the loss without it on by its slope, ``1 - (1 - q) e^{-Lambda}``,
        and adds that of two logarithms. Losses that are stated are right to an ulp; others are
        differences of logarithms of masses, and equal but for rounding where they were merged.
        """
        loss = self.atoms[1] if direction == "remove" else -self.atoms[1]
        found = float(loss.max(initial=-math.inf))
        if math.isinf(found):
            return found, 0.0
        # Of two terms of one sign, as 1 - (1 - q) e^-end is 0 at rates and losses below an ulp.
        end = max(found, 0.0)
        steepest = -math.expm1(-end) + self.sampling_rate * math.exp(-end)
        logs, size = (float(np.abs(each).max(initial=0.0)) for each in self.unsampled)
        rounding = 2.0**-52 * size
        if not self.stated:
            rounding = LOSS_ROUNDING * max(size, 1.0) + 2.0**-51 * (logs + size)
        return found, LOSS_ROUNDING * abs(found) + steepest * rounding

    @cached_property
    def total_variation_bound(self) -> float:
        """``delta(0)`` of one use, a little rounded up."""
        log_p, loss = self.under_p("remove")
        doubt = EXP_ROUNDING * (np.abs(log_p) + np.abs(loss))
        gain = np.exp(log_p) * np.exp(np.minimum(doubt, 1.0)) * -np.expm1(-np.maximum(loss, 0.0))
        total = float(gain.sum()) + self.infinite("remove")
        return min(total * (1.0 + 1e-12), 1.0)

    def log_transform(self, direction: Direction, tilt: float) -> float:
        """``log E_P[exp(tilt L)]`` over the finite losses."""
        log_p, loss = self.under_p(direction)
        return float(np.logaddexp.reduce(log_p + tilt * loss, initial=-np.inf))


#: A pair of distributions that dominates one use of a mechanism.
Dominating = Pair | AtomPair
