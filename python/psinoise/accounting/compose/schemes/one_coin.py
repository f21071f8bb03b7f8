"""A vector under one coin: uses that are sampled together, or not at all.

``m`` uses of a pair ``(P, Q)`` without sampling make a pair of products, whose loss is a sum of
``m``. One coin with rate ``q`` turns it into ``((1 - q) Q + q P, Q)`` and its reverse, which
dominate (``loss.responses``, "Sampling"). Their profiles are increasing functions of those without
sampling, so that bounds stay bounds. In terms of a measure with masses ``p_k`` at losses ``l_k``:

* *remove*: masses ``p_k (q + (1 - q) e^{-l_k})`` at ``log(1 - q + q e^{l_k})``. What this leaves of
  1 is the share of outputs that only ``Q`` has, at ``log(1 - q)``, where the profile is
  ``1 - gamma`` and smaller losses do not exist. From below what is more than 1 is taken from the
  smallest losses, where small masses ``p_k`` stand for large ones of ``Q`` and their roundings are
  as large. Less mass is a smaller profile, and it is affine in ``gamma`` on ``[0, 1 - q]``: at most
  ``1 - gamma`` at both ends, hence between.
* *add*: masses ``p_k`` at ``-log(1 - q + q e^{-l_k})``; an infinite loss becomes ``-log(1 - q)``.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.compose.direct.composition import Composition
from psinoise.accounting.compose.measures.dense import Dense, Measured, atoms_source, dense
from psinoise.accounting.compose.measures.measure import SIDES, Measure
from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Float, mixture_loss
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import (
    Steps,
    certain_finite_loss,
    infinite_mass,
    largest_finite_loss,
)

# Of the measure of all coordinates: bounds on it are some 1e-7 of its deviation apart.
_NODES = 4000
# No smaller delta is asked for.
_LEAST_LOG_DELTA = -690.0
# Of several shifts, from below, the worst at this tilt.
_TILT = 1.0
# Of a sum of nodes.
_SUM_ROUNDING = 1e-12
# Of the elementary functions that mix a loss.
_UP = 1.0 + 2.0**-50


@dataclass(frozen=True)
class SampledVector(Measured):
    """Uses of a pair without sampling, about which one coin decides; its rate is less than 1."""

    pair: Dominating
    uses: int
    sampling_rate: float

    def infinite(self, direction: Direction) -> float:
        if direction == "add":
            return 0.0
        return self.sampling_rate * infinite_mass(self.without_coin, direction)

    @property
    def without_coin(self) -> Steps:
        """All uses, without it."""
        return ((self.pair, self.uses),)

    def largest_loss(self, direction: Direction) -> float:
        """The largest finite loss, rounded up: that of all uses together, under the coin."""
        return self._under_coin(direction, largest_finite_loss(self.without_coin, direction), _UP)

    def certain_loss(self, direction: Direction) -> float:
        return self._under_coin(
            direction, certain_finite_loss(self.without_coin, direction), 1.0 / _UP
        )

    def _under_coin(self, direction: Direction, loss: float, share: float) -> float:
        if direction == "add" and infinite_mass(self.without_coin, direction) > 0.0:
            # Of outputs that a record which was drawn does not give.
            return -math.log1p(-self.sampling_rate) * share
        sign = 1.0 if direction == "remove" else -1.0
        mixed = sign * float(mixture_loss(np.array([sign * loss]), self.sampling_rate)[0])
        return mixed * (share if mixed > 0.0 else 1.0 / share)

    def sources(self, direction: Direction) -> tuple[Dense, Dense]:
        return _sources(self, direction)


@kept()
def _sources(step: SampledVector, direction: Direction) -> tuple[Dense, Dense]:
    reach = reach_for(_LEAST_LOG_DELTA, float(step.uses))
    pair = step.pair
    low = pair.below(direction, _TILT) if isinstance(pair, AtomPair) else pair
    source = dense(low, direction, reach), dense(pair, direction, reach)
    if not source[1].log_mass.size:  # neighbors have no output in common
        nothing = np.empty(0)
        both = (Measure(side, nothing, nothing, nothing, 0.0, 0.0, 0.0) for side in SIDES)
        below, above = (_mixed(step, direction, measure) for measure in both)
        return below, above
    whole = Composition((source,), (step.uses,), _LEAST_LOG_DELTA)
    below, above = (_mixed(step, direction, whole.measure(side, _NODES)) for side in SIDES)
    return below, above


def _mixed(step: SampledVector, direction: Direction, measure: Measure) -> Dense:
    """The loss under the coin, from a measure of all uses without it."""
    rate, lost = step.sampling_rate, infinite_mass(step.without_coin, direction)
    # Errors of masses and losses go to the side of the measure.
    sign, held = 1.0 if measure.side == "upper" else -1.0, measure.mass > 0.0
    log_mass = np.log(measure.mass[held] * (1.0 + sign * measure.rounding))
    loss = measure.loss[held] + sign * measure.slack
    if direction == "remove":
        mixed, end = mixture_loss(loss, rate), math.log1p(-rate)
        log_mass += mixed - loss
        total, beyond = float(np.exp(log_mass).sum()), rate * measure.infinite
        rest = 1.0 - total - rate * lost - beyond
        if measure.side == "lower" and rest < 0.0:
            mixed, log_mass = _largest(mixed, log_mass, (1.0 - rate * lost) * (1.0 - _SUM_ROUNDING))
    else:
        mixed, end = -mixture_loss(-loss, rate), -math.log1p(-rate)
        rest, beyond = lost + measure.infinite, 0.0
    if rest > 0.0:
        mixed, log_mass = np.append(mixed, end), np.append(log_mass, math.log(rest))
    return dataclasses.replace(atoms_source(log_mass, mixed), beyond=beyond)


def _largest(loss: Float, log_mass: Float, total: float) -> tuple[Float, Float]:
    """The largest losses, as many as have a mass in all."""
    order = np.argsort(-loss, kind="stable")
    mass = np.exp(log_mass[order])
    mass = np.minimum(mass, total - (np.cumsum(mass) - mass))
    held = mass > 0.0
    return loss[order][held], np.log(mass[held])
