"""Steps that are known only by a distribution of their privacy loss, such as an imported one.

A `DiscreteLoss` is a measure on the nodes of a lattice whose profile lies *above* that of some true
step: what the upper bound of ``compose.measures.measure`` makes of a mechanism, and what other
accountants exchange. It composes with everything else, from above. It says nothing from below,
where the steps that are known otherwise count alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from psinoise import _validate
from psinoise.accounting.compose.measures.dense import Dense, Measured, atoms_source, dense
from psinoise.accounting.compose.measures.measure import covering, measure_of
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.pairs import DIRECTIONS, Direction, Float
from psinoise.accounting.loss.steps import Step, largest_loss
from psinoise.errors import CertificationError, DomainError
from psinoise.mechanisms.accounted import Accounted

__all__ = ["DiscreteLoss", "LossNodes", "upper_nodes"]

_MOST_NODES = 2**22
# Masses that add up to 1 but for so much do. Where dots are connected they make more than 1, often
# composed much more: from above still.
_ROUNDING, _MOST_LACKING, _MOST_ADDED = 1e-12, 1e-6, 1e-2
# And so do those under the other law, which losses that are rounded up make less.
_MOST_EXCEEDING, _FARTHEST = 1e-4, 2**52
# Of masses that do not: more than this is not what rounding and cutting tails leave.
_MOST_MOVED = 1e-3
# Masses below the smallest float64 are lost; this much is counted as infinite loss instead.
_UNDERFLOW = 1e-300


@dataclass(frozen=True, eq=False)
class LossNodes:
    """One direction: probabilities ``mass[k]`` of the loss ``(first + k) * step``, and the rest.

    Probabilities are those under ``P``; ``infinite`` is the probability of an infinite loss.
    """

    first: int
    mass: Float
    infinite: float

    def _other(self, step: float) -> float:
        """What the probabilities under ``Q``, of losses that are finite, add up to."""
        held = np.flatnonzero(self.mass)
        with np.errstate(over="ignore"):
            return float(np.sum(np.exp(np.log(self.mass[held]) - (self.first + held) * step)))

    def adding_up(self, step: float) -> LossNodes:
        """A copy whose probabilities under ``Q`` add up, as far as little mass goes.

        Rounding errors of convolutions far below 0, and tails that were cut there, make more than
        1 of them. They are moved to the first loss from which on all adds up, and the profile up.
        """
        below, mass = np.cumsum(self.mass), self.mass.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # what is not known to add up does not
            factor = np.exp(-(self.first + np.arange(mass.size)) * step)
            above = np.append(np.cumsum((mass * factor)[:0:-1])[::-1], 0.0)
            kept = int(np.argmax(above + below * factor < 1.0 + _MOST_EXCEEDING))
        if below[kept] < _MOST_MOVED:
            mass[:kept], mass[kept] = 0.0, below[kept]
        return LossNodes(self.first, mass, self.infinite)

    def completed(self) -> LossNodes:
        """A copy that cannot change; what is lacking of 1, beyond rounding, is infinite."""
        mass = np.array(self.mass, dtype=np.float64)
        mass.flags.writeable = False
        lacking = 1.0 - (float(mass.sum()) + self.infinite)
        more = lacking if lacking > _ROUNDING else 0.0
        return LossNodes(self.first, mass, self.infinite + more)


def _check_kinds(found: object) -> None:
    if not isinstance(found, LossNodes):
        raise TypeError(f"nodes must be LossNodes, got {found!r}")
    if type(found.mass) is not np.ndarray or found.mass.dtype.kind != "f":
        raise TypeError(f"mass must be an array of floats, got {found.mass!r}")
    if not isinstance(found.first, int | np.integer) or isinstance(found.first, bool):
        raise TypeError(f"first must be an integer, got {found.first!r}")
    _validate.probability_below("infinite", found.infinite)


@dataclass(frozen=True, eq=False)
class DiscreteLoss(Accounted, Measured):
    """A step as a measure of its privacy loss on a lattice, from above.

    `psinoise.Accountant.compose` takes it. Two of them are the same step if they are the same
    object.

    Attributes
    ----------
    step
        distance of the nodes, positive and at most 1/2
    nodes
        for "remove" and "add"; the same object where they are equal. They are copied, and what
        their probabilities lack of 1 counts as infinite

    Raises
    ------
    DomainError
        for a step or masses that are no such measure

    Examples
    --------
    A loss of 0 or 1/2, for either neighbor:

    >>> import numpy as np
    >>> import psinoise as pn
    >>> from psinoise.mechanisms import DiscreteLoss
    >>> from psinoise.mechanisms.imports import LossNodes
    >>> nodes = LossNodes(0, np.array([0.5, 0.5]), 0.0)
    >>> step = DiscreteLoss(0.5, {"remove": nodes, "add": nodes})
    >>> round(float(pn.Accountant().compose(step).epsilon(0.0)), 9)
    0.5
    """

    step: float
    nodes: Mapping[Direction, LossNodes]

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", _validate.positive("step", self.step))
        if not self.step <= 0.5:
            raise DomainError(f"step must be in (0, 1/2], got {self.step!r}")
        if not isinstance(self.nodes, Mapping):
            raise TypeError(f"nodes must be a mapping, got {self.nodes!r}")
        if set(self.nodes) != set(DIRECTIONS):
            raise DomainError(f"nodes must be of {DIRECTIONS}, got {tuple(self.nodes)}")
        for found in self.nodes.values():
            _check_kinds(found)
            if found.mass.ndim != 1 or not 0 < found.mass.size <= _MOST_NODES:
                raise DomainError(f"mass must have 1 to {_MOST_NODES} entries")
            if not abs(int(found.first)) < _FARTHEST:
                raise DomainError("first must be within 2**52")
            if not (np.all(found.mass >= 0.0) and found.infinite >= 0.0):
                raise DomainError("probabilities of losses must be at least 0 and not NaN")
            if not found.mass.any():
                raise DomainError("some loss must be finite")
            total = float(found.mass.sum()) + found.infinite
            if not -_MOST_LACKING < total - 1.0 < _MOST_ADDED:
                raise DomainError(f"probabilities of losses must add up to 1, got {total!r}")
            if not (other := found._other(self.step)) < 1.0 + _MOST_EXCEEDING:
                raise DomainError(
                    "probabilities under the other law, exp(-loss) times those of losses, must add "
                    f"up to at most 1, got {other!r}: losses are log(P / Q) under P"
                )
        remove = self.nodes["remove"].completed()
        add = remove if self.symmetric else self.nodes["add"].completed()
        object.__setattr__(self, "nodes", {"remove": remove, "add": add})

    @property
    def attained(self) -> Step | None:
        """Nothing is known from below."""
        return None

    @property
    def symmetric(self) -> bool:
        """Whether both directions are the same."""
        return self.nodes["remove"] is self.nodes["add"]

    def infinite(self, direction: Direction) -> float:
        """Probability of an infinite loss."""
        return self.nodes[direction].infinite

    def largest_loss(self, direction: Direction) -> float:
        """The largest finite loss: that of the last node, which is exact."""
        found = self.nodes[direction]
        return (found.first + int(np.flatnonzero(found.mass)[-1])) * self.step

    def sources(self, direction: Direction) -> tuple[Dense, Dense]:
        """The loss of one use."""
        found = self.nodes[direction]
        held = np.flatnonzero(found.mass)
        loss: Float = np.asarray((found.first + held) * self.step, dtype=np.float64)
        source = atoms_source(np.log(found.mass[held]), loss)
        return source, source

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """Itself.

        Raises
        ------
        DomainError
            for "replace", and with a sampling rate
        """
        if adjacency == "replace":
            raise DomainError(
                "adjacency must not be 'replace' for an imported loss, which says nothing about "
                f"other neighbors, got {adjacency!r}"
            )
        if sampling_rate != 1.0:
            raise DomainError(
                "sampling_rate must be 1 for an imported loss, whose sampling is part of it, got "
                f"{sampling_rate!r}"
            )
        return self, 1

    def pure_epsilon(self) -> float:
        """The largest privacy loss of one use; may be inf."""
        return max(largest_loss(((self, 1),), direction) for direction in DIRECTIONS)


def upper_nodes(pair: Dominating, direction: Direction, step: float, reach: float) -> LossNodes:
    """The measure of a pair from above, with nodes on a lattice alone and its slack made good.

    Losses are known to within the slack of their nodes; sending the share
    ``(1 - e^-slack) / (1 - e^-step)`` of each node one up moves every loss up by that much, keeping
    both masses.

    Raises
    ------
    CertificationError
        if the losses span more than 2^22 nodes
    """
    source = dense(pair, direction, reach)
    every = np.ones(source.log_mass.size, dtype=np.bool_)
    low, high = covering(source, every)
    if not (high - low) / step < _MOST_NODES:
        raise CertificationError(
            f"the losses span {(high - low) / step:.3g} nodes of a lattice of step {step!r}, more "
            f"than {_MOST_NODES}: a larger step is needed"
        )
    first = math.floor(low / step)
    edges = step * np.arange(first, math.ceil(high / step) + 1.0)
    measure, _ = measure_of(source, every, ~every, edges, "upper")
    masses = np.zeros(edges.size)
    np.add.at(masses, np.rint(measure.loss / step).astype(int) - first, measure.mass)
    masses *= 1.0 + measure.rounding
    share = math.expm1(-measure.slack) / math.expm1(-step)
    nodes = np.zeros(masses.size + 1)
    nodes[:-1] = masses * (1.0 - share)
    nodes[1:] += masses * share
    infinite = measure.infinite + pair.infinite(direction) * (1.0 + 1e-15)
    return LossNodes(first, nodes, infinite + _UNDERFLOW)
