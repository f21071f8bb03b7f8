"""An epoch of steps of which each record takes part in one, as a step of a composition.

Asked alone it is read from its last product (``allocation``). Composed with anything else it is a
loss of atoms from below and one from above, with nodes for questions at any delta.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.compose.direct.plan import Plan, first_edges
from psinoise.accounting.compose.measures.dense import Dense, Measured, atoms_source, dense
from psinoise.accounting.compose.schemes.allocation import Allocation, plan_for, unseen_in
from psinoise.accounting.compose.schemes.ratios import Ratios, span_of
from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import REACHES
from psinoise.accounting.loss.steps import Step
from psinoise.errors import CertificationError
from psinoise.numerics.distinct import distinct

#: Nodes of the stages of an epoch that is composed with anything else, from round to round.
RESOLUTIONS = (2048, 4096)
# Nodes of coarse epochs.
_PLANNING = 512, 1024
# Of these deltas stages have nodes for so many epsilons.
_LARGEST_LOG_DELTA, _LEAST_LOG_DELTA, _QUESTIONS = -1.0, -40.0, 48
_UP = 1.0 + 2.0**-50


@dataclass(frozen=True)
class Epoch(Measured):
    """Random allocation: of ``steps`` uses of one mechanism each record takes part in one.

    Attributes
    ----------
    pair : dominates a step in which the record takes part, without sampling
    exact : whether this is the scheme itself, and not a bound on it from above
    """

    pair: Dominating
    steps: int
    exact: bool = True

    @property
    def attained(self) -> Epoch | None:
        return self if self.exact else None

    @property
    def revealed(self) -> Step:
        """One use without sampling.

        Who is told in which step the record takes part, which does not depend on the data, knows
        the law of all outputs from one use of the pair. An epoch is that, untold.
        """
        return self.pair

    @property
    def symmetric(self) -> bool:
        return self.steps == 1 and self.pair.symmetric

    def infinite(self, direction: Direction) -> float:
        """Probability under ``P`` of an infinite loss: in one step, or (*add*) in all of them."""
        one = self.pair.infinite(direction)
        return one if direction == "remove" else unseen_in(one, self.steps)

    def largest_loss(self, direction: Direction) -> float:
        """The largest finite loss, rounded up.

        An average is as large as the largest ratio, and as small as the least one; or a share of
        that, where the other ratios can be 0.
        """
        found = self.pair.largest_loss(direction)
        if direction == "add" and self.steps > 1 and self.pair.infinite("add") > 0.0:
            return (found + math.log(self.steps)) * _UP
        return found

    def certain_loss(self, direction: Direction) -> float:
        return self.pair.certain_loss(direction)

    @property
    def total_variation_bound(self) -> float:
        """An upper bound on delta(0): that of one step, since delta is convex in the average."""
        return self.pair.total_variation_bound

    def sources(
        self, direction: Direction, reach: float = REACHES[-1], nodes: int = RESOLUTIONS[0]
    ) -> tuple[Dense, Dense]:
        """The loss of an epoch from below and from above; panels of one step as far as ``reach``.

        Losses so large that a question with this reach does not see them are infinite from above.
        """
        if self.steps == 1:
            found = dense(self.pair, direction, reach)
            return found, found
        return _sources(self, direction, reach, nodes)

    def allocation(self, direction: Direction, log_delta: float, tilt: float) -> Allocation:
        """The epoch alone, for a question about a delta."""
        below = self.pair
        if isinstance(below, AtomPair):
            below = below.below(direction, tilt)
        return Allocation(below, self.pair, self.steps, direction, log_delta)


@kept()
def _sources(
    epoch: Epoch, direction: Direction, reach: float, resolution: int
) -> tuple[Dense, Dense]:
    # The least delta that has this reach.
    log_delta = max(38.0 + math.log(epoch.steps) - reach, -700.0)
    made = epoch.allocation(direction, log_delta, 1.0)
    plan = Plan({})
    for nodes in _PLANNING:
        middle, stages = made.compose("middle", nodes, plan)
        # Whatever it is composed with, a question is about losses between these.
        near = middle.epsilon(_LARGEST_LOG_DELTA, 0.1, 1e-3)
        far = middle.epsilon(max(log_delta, _LEAST_LOG_DELTA), near, 1e-3)
        plan = plan_for(middle, stages, np.linspace(near, far, _QUESTIONS).tolist())
    # Losses need not reach as far up as down: of what is left beyond the ends one bin is made.
    ends = np.log(np.abs(span_of(middle.first, middle.second)) / epoch.steps)
    ends = ends if direction == "remove" else -ends
    low, high = min(-middle.largest, *ends.tolist()), max(middle.largest, *ends.tolist())
    even = np.linspace(low, high, _PLANNING[0])
    edges = _edges(made, made.measure("middle", _PLANNING[0], plan, even), resolution)
    below = _source(made, made.measure("lower", resolution, plan, edges))
    above = _source(made, made.measure("upper", resolution, plan, edges))
    return below, above


def _losses_of(made: Allocation, ratios: Ratios) -> tuple[Float, Float]:
    """Losses and their masses under ``P``."""
    average = np.abs(ratios.value) / made.steps
    if made.direction == "remove":
        return np.log(average), ratios.mass * average
    return -np.log(average), ratios.mass


def _edges(made: Allocation, first: Ratios, count: int) -> Float:
    """Losses where bins of an epoch end: so many around the mean, and as many evenly."""
    loss, mass = _losses_of(made, first)
    seen = mass > 1e-300
    low, high = float(loss[seen].min()), float(loss[seen].max())
    total = float(mass.sum())
    center = float(mass @ loss) / total
    deviation = 3.0 * math.sqrt(float(mass @ (loss - center) ** 2) / total)
    around = first_edges(low, high, center, deviation, count)
    return distinct(np.concatenate([around, np.linspace(low, high, count)]))


def _source(made: Allocation, ratios: Ratios) -> Dense:
    """The loss as atoms, whose masses are rounded outwards."""
    loss, mass = _losses_of(made, ratios)
    share, beyond = 1.0 - ratios.rounding - 1e-15, 0.0
    if ratios.side == "upper":
        mass = mass / share
        beyond = ratios.infinite * (1.0 + 1e-8)
        if made.direction == "add":
            beyond += max(ratios.zero - made.unseen, 0.0)
    else:
        mass = mass * share
    held = mass > 0.0
    if not held.any():
        raise CertificationError("the likelihood ratios of an epoch have no mass")
    return dataclasses.replace(atoms_source(np.log(mass[held]), loss[held]), beyond=beyond)
