"""Steps that are known only by a distribution of their privacy loss, such as an imported one.

A `DiscreteLoss` is a measure on the nodes of a lattice whose profile lies *above* that of some true
step: what the upper bound of ``bounds`` makes of a mechanism, and what other accountants exchange.
It composes with the steps of mechanisms, from above: all of them are put on the lattice of the
discrete ones, tilted at a common saddle point and convolved with the error bounds of
``convolution``. There is no bound from below, because a discrete loss says nothing about how far
it is above the truth.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from psinoise.accounting.lattice.bins import dense, loss_bins
from psinoise.accounting.lattice.bounds import NodeMeasure, node_measure, retilted
from psinoise.accounting.lattice.convolution import (
    Profile,
    compose,
    infinite_mass,
    largest_weight,
    window_size,
)
from psinoise.accounting.lattice.grading import even_edges
from psinoise.accounting.loss.cells import Dominating
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import Steps, directions
from psinoise.errors import CertificationError, DomainError

__all__ = [
    "DiscreteLoss",
    "Imports",
    "LossNodes",
    "largest_imported_loss",
    "upper_delta",
    "upper_epsilon",
    "upper_nodes",
]

Imports = tuple[tuple["DiscreteLoss", int], ...]

_MOST_NODES = 2**22
_LARGEST_WINDOW = 2**22
# Losses and tails of delta this small do not change an answer in float64.
_SHARE = 1e-9
_LOG_TILTS = (-30.0, 14.0)
_BISECTIONS = 60
# Masses below the smallest float64 are lost; this much is counted as infinite loss instead.
_UNDERFLOW = 1e-300
_FIRST_STRIDE = 1e-3
_EPSILON_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class LossNodes:
    """One direction: probabilities ``mass[k]`` of the loss ``(first + k) * step``, and the rest.

    Probabilities are those under ``P``; ``infinite`` is the probability of an infinite loss.
    """

    first: int
    mass: Float
    infinite: float


@dataclass(frozen=True, eq=False)
class DiscreteLoss:
    """A step as a measure of its privacy loss on a lattice, from above.

    `Accountant.compose` takes it, for upper bounds only. Two of them are the same step if they are
    the same object.

    Attributes
    ----------
    step
        distance of the nodes, positive and at most 1/2
    nodes
        for "remove" and "add"; the same object where they are equal

    Raises
    ------
    DomainError
        for a step or masses that are no such measure
    """

    step: float
    nodes: Mapping[Direction, LossNodes]

    def __post_init__(self) -> None:
        if not 0.0 < self.step <= 0.5:
            raise DomainError(f"step must be in (0, 1/2], got {self.step!r}")
        for found in self.nodes.values():
            if found.mass.ndim != 1 or not 0 < found.mass.size <= _MOST_NODES:
                raise DomainError(f"mass must have 1 to {_MOST_NODES} entries")
            if not (np.all(found.mass >= 0.0) and found.infinite >= 0.0):
                raise DomainError("probabilities of losses must be at least 0 and not NaN")
            total = float(found.mass.sum()) + found.infinite
            if not abs(total - 1.0) < 1e-6:
                raise DomainError(f"probabilities of losses must add up to 1, got {total!r}")

    @property
    def symmetric(self) -> bool:
        """Whether both directions are the same."""
        return self.nodes["remove"] is self.nodes["add"]


def upper_nodes(pair: Dominating, direction: Direction, step: float, reach: float) -> LossNodes:
    """The upper bound of ``bounds`` on a pair, without a tilt, with its slack made good.

    Losses are known to within the slack of their nodes; sending the share
    ``(1 - e^-slack) / (1 - e^-step)`` of each node one up moves every loss up by that much, keeping
    both masses.

    Raises
    ------
    CertificationError
        if the losses span more than 2^22 nodes
    """
    source = dense(pair, direction, reach)
    span = float(source.highest.max() - source.lowest.min()) / step
    if not span < _MOST_NODES:
        raise CertificationError(
            f"the losses span {span:.3g} nodes of a lattice of step {step!r}, more than "
            f"{_MOST_NODES}: a larger step is needed"
        )
    chosen = np.ones(source.log_mass.size, dtype=np.bool_)
    edges = even_edges(source, chosen, (step, 0.0))
    bins = loss_bins(source, chosen, ~chosen, (step, 0.0), edges, 0.0, 0.0)
    measure = node_measure(bins, "upper")
    masses = measure.mass * math.exp(measure.log_norm)
    share = math.expm1(-measure.slack) / math.expm1(-step)
    nodes = np.zeros(masses.size + 1)
    nodes[:-1] = masses * (1.0 - share)
    nodes[1:] += masses * share
    infinite = measure.infinite + pair.infinite(direction) * (1.0 + 1e-15)
    return LossNodes(int(measure.index[0]), nodes, infinite + _UNDERFLOW)


def upper_epsilon(steps: Steps, imports: Imports, delta: float) -> float:
    """An upper bound on epsilon at ``delta`` of pairs and discrete losses composed together.

    Raises
    ------
    DomainError
        if the discrete losses do not share one lattice
    CertificationError
        if the lattice would be too large
    """
    if delta >= 1.0:
        return 0.0
    if delta <= 0.0:
        return math.inf
    goal = math.log(delta)

    def answer(parts: list[tuple[NodeMeasure, int]]) -> float:
        room = delta - infinite_mass(parts)
        if not room > 0.0:
            return math.inf
        tilt = _tilt(parts, lambda saddle: saddle[1] - math.log(room))
        around = max(_saddle(parts, tilt)[0], 0.0)
        profile = _profile(parts, tilt, around)
        size = max(1.0, around)
        return profile.root(goal, around, _FIRST_STRIDE * size, _EPSILON_ROUNDING * size)

    return max(answer(parts) for parts in _parts(steps, imports, goal))


def upper_delta(steps: Steps, imports: Imports, epsilon: float) -> float:
    """An upper bound on delta at ``epsilon``; see `upper_epsilon`."""
    if epsilon == -math.inf:
        return 1.0

    def answer(parts: list[tuple[NodeMeasure, int]]) -> float:
        if epsilon == math.inf:
            return infinite_mass(parts)
        tilt = _tilt(parts, lambda saddle: epsilon - saddle[0])
        return math.exp(min(_profile(parts, tilt, epsilon).log_delta(epsilon), 0.0))

    return max(answer(parts) for parts in _parts(steps, imports, -700.0))


def largest_imported_loss(imports: Imports) -> float:
    """The largest finite loss of all discrete losses together, over both directions."""
    return math.fsum(
        count
        * loss.step
        * max(n.first + int(np.flatnonzero(n.mass)[-1]) for n in loss.nodes.values())
        for loss, count in imports
    )


# A profile asks for the measures of the same steps at many epsilons.
@functools.lru_cache(maxsize=1)
def _parts(steps: Steps, imports: Imports, log_delta: float) -> list[list[tuple[NodeMeasure, int]]]:
    """The measures of each direction, untilted, on the lattice of the discrete losses."""
    lattices = {loss.step for loss, _ in imports}
    if len(lattices) != 1:
        raise DomainError(f"discrete losses must share one lattice, got steps {sorted(lattices)}")
    (step,) = lattices
    uses = float(sum(count for _, count in steps))
    reach = reach_for(log_delta, max(uses, 1.0))
    ways: tuple[Direction, ...] = ("remove", "add")
    if all(loss.symmetric for loss, _ in imports) and len(directions(steps)) == 1:
        ways = ("remove",)
    found = []
    for way in ways:
        nodes = [(upper_nodes(pair, way, step, reach), count) for pair, count in steps]
        nodes += [(loss.nodes[way], count) for loss, count in imports]
        found.append([(_measure(part, step), count) for part, count in nodes])
    return found


def _measure(nodes: LossNodes, step: float) -> NodeMeasure:
    total = float(nodes.mass.sum())
    if not total > 0.0:
        raise DomainError("a discrete loss must have some finite loss")
    return NodeMeasure(
        step,
        0.0,
        nodes.first + np.arange(nodes.mass.size),
        nodes.mass / total,
        0.0,
        math.log(total),
        nodes.infinite,
        0.0,
    )


def _saddle(parts: list[tuple[NodeMeasure, int]], tilt: float) -> tuple[float, float]:
    """The epsilon whose saddle point is the tilt, and an estimate of log delta there."""
    value = mean = variance = 0.0
    for measure, count in parts:
        tilted = retilted(measure, tilt)
        own_mean, own_variance = tilted.moments
        value += count * tilted.log_norm
        mean += count * own_mean
        variance += count * own_variance
    offset = 1.0 / tilt + 1.0 / (tilt + 1.0)
    curvature = variance + 1.0 / tilt**2 + 1.0 / (tilt + 1.0) ** 2
    log_delta = value - tilt * (mean - offset) - math.log(tilt) - math.log1p(tilt)
    return mean - offset, log_delta - 0.5 * math.log(2.0 * math.pi * curvature)


def _tilt(
    parts: list[tuple[NodeMeasure, int]], falling: Callable[[tuple[float, float]], float]
) -> float:
    """Where a falling function of the saddle changes its sign, by bisection in the logarithm.

    Any tilt gives a bound; a tilt within a few percent gives a sharp one.
    """
    low, high = _LOG_TILTS
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if high - low < 1e-3:
            break
        if falling(_saddle(parts, math.exp(middle))) > 0.0:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


def _profile(parts: list[tuple[NodeMeasure, int]], tilt: float, epsilon: float) -> Profile:
    tilted = [(retilted(measure, tilt), count) for measure, count in parts]
    log_norm = math.fsum(count * measure.log_norm for measure, count in tilted)
    log_main = _saddle(parts, tilt)[1] - (log_norm - tilt * epsilon)
    log_tail = log_main + math.log(_SHARE / largest_weight(tilt))
    tail = math.exp(min(max(log_tail, -200.0), math.log(1e-6)))
    first, size, outside = window_size(tilted, tail)
    if size > _LARGEST_WINDOW:
        raise CertificationError(
            f"the bound needs a lattice of {size} nodes, more than {_LARGEST_WINDOW}"
        )
    return Profile(compose(tilted, first, size, outside), 1.0)
