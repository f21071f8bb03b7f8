"""One step of a composition on a lattice, as fine as the question about the composition asks for.

The saddle point of the estimate is the tilt, and the bias of both bounds (``lattice``) gives the
step. Mass whose loss is so large, or so small, that it matters less than the bias is cut off: from
above it goes to ``+infinity``, from below to the lowest node.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.compose.frequencies.frequency_bound import largest_weight, lattice_profile
from psinoise.accounting.compose.frequencies.lattice import graded_bins, node_measure
from psinoise.accounting.compose.measures.bins import LatticeBins, parts_of
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.dense import Dense, Mask, dense_on
from psinoise.accounting.compose.measures.measure import Side
from psinoise.accounting.estimate.composition import Composition, Saddle
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import Pairs
from psinoise.errors import CertificationError

_LARGEST_STEP = 0.25
_LARGEST_SPAN = 2**22
_LARGEST_TILT = 1e6
# Over the width the tilt changes weights by this exponent at most: beyond, errors would drown what
# is a width away.
_LARGEST_EXPONENT = 25.0
# So many places, of steps in the order of what they ask for.
_SHARING = 8
# Share of the width that is left to steps that are left out from below; and to the bulk of a loss,
# whose nodes are as far apart as its deviation asks for if its spread costs no more.
_LEFT_OUT = 0.1
# Nodes of no step are closer by more powers of two than those of another, unless its spread asks
# for that; of few steps, whose nodes cost little, by none. So many passes fill a sum of squares
# to a hundredth.
_COARSER, _FEW, _PASSES = 2.0, 64, 3
# Nodes of a loss that matters are at most this share of its deviation apart.
_SPREAD = 0.36
# Part of the width that cutting off tails may cost.
_CUT = 0.02
# Of the tilted mass on one side of a window.
_LEAST_LOG_TAIL, _LARGEST_LOG_TAIL = -200.0, math.log(1e-6)


@dataclass(frozen=True, eq=False)
class Target:
    """One direction of a composition, where on its profile to be sharp, and how sharp.

    Attributes
    ----------
    steps, direction : what is composed
    log_delta, epsilon : a point on its profile without infinite losses, by the estimate
    slope : about how fast log delta falls there: the saddle point
    width : largest distance of the bounds, in units of epsilon
    composition : the transforms of the steps
    """

    steps: Pairs
    direction: Direction
    log_delta: float
    epsilon: float
    slope: float
    width: float
    composition: Composition

    @cached_property
    def uses(self) -> float:
        return float(sum(count for _, count in self.steps))

    @cached_property
    def reach(self) -> float:
        return reach_for(self.log_delta, self.uses)

    @cached_property
    def at_tilt(self) -> Saddle:
        largest = min(_LARGEST_TILT, _LARGEST_EXPONENT / self.width)
        return self.composition.saddle(min(self.slope, largest))

    @property
    def tilt(self) -> float:
        return self.at_tilt.c

    @cached_property
    def matter(self) -> Mask:
        """Which steps are not left out from below.

        Leaving out what a step releases is post-processing: delta can only fall. Delta of the
        finite losses falls too if those of the step are all finite; else it would rise by the
        factor ``1 - f`` that the step brings, so that such steps are never left out. What the
        others would add to epsilon, by their moments, is a small share of the width together.
        """
        finite = [pair.infinite(self.direction) == 0.0 for pair, _ in self.steps]
        may = np.flatnonzero(finite)
        added = self._counts[may] * np.maximum(self.at_tilt.parts[may, 0], 0.0)
        order = np.argsort(added)
        matter = np.ones(len(self.steps), dtype=bool)
        matter[may[order[np.cumsum(added[order]) <= _LEFT_OUT * self.width * self.tilt]]] = False
        return matter if matter.any() else ~matter

    @cached_property
    def _counts(self) -> Float:
        return np.array([count for _, count in self.steps], dtype=np.float64)

    @cached_property
    def _own_steps(self) -> Float:
        """How far apart the nodes of each may be: halves of each other, or the same.

        The bias of both bounds, ``n h^2 (t + 1) / 4`` in epsilon together, is three quarters of
        the width; of losses with little spread the nodes have to be closer than that. The nodes of
        a loss of deviation ``s`` are some ``s / h``, of all losses the fewest where ``h^3`` goes
        with ``s / n``.
        """
        # A loss that hardly varies moves by a bin at most, and n bins this small are in the width.
        least = 0.5 * self.width / self.uses
        counts, values = self._counts, self.at_tilt.values
        deviations = np.sqrt(self.at_tilt.parts[:, 2])
        most = np.full(counts.size, _LARGEST_STEP)
        for k in np.flatnonzero(self.matter).tolist():
            # The bias formula takes the loss to vary over several bins.
            varies = float(deviations[k])
            bulk = self.composition.measures[k].spread(self.tilt, values[k])
            if counts[k] * bulk <= _LEFT_OUT * self.width:
                bulk = varies
            most[k] = max(min(_LARGEST_STEP, _SPREAD * min(bulk, varies)), least)
        wanted = np.log2(np.maximum(deviations / counts, 1e-300)) / 3.0
        coarser = _COARSER if counts.size > _FEW else 0.0
        shares = np.exp2(np.maximum(np.round(wanted - wanted.max()), -coarser))
        return _filled(most, shares, counts, 3.0 * self.width / (self.tilt + 1.0))

    @cached_property
    def doublings(self) -> list[int]:
        """How often each doubles the step of the lattice.

        Nothing but losses on the finest nodes makes a product small at angles near ``pi``
        (``last_frequency``): each has the nodes that one some places before it asks for.
        """
        order = np.argsort(self._own_steps, kind="stable")
        before = order[np.maximum(np.arange(order.size) - _SHARING, 0)]
        doublings = np.empty(order.size, dtype=np.int64)
        doublings[order] = np.rint(np.log2(self._own_steps[before] / self.first_step))
        found: list[int] = doublings.tolist()
        return found

    @cached_property
    def first_step(self) -> float:
        """That of both bounds."""
        return float(self._own_steps.min())

    @property
    def share(self) -> float:
        """Share of delta that costs ``_CUT`` of the width: delta falls at a rate of about t."""
        return min(_CUT * self.width * self.tilt, 1e-2)


def _filled(most: Float, shares: Float, counts: Float, sum_of_squares: float) -> Float:
    """Steps that go with shares, powers of two, but are no longer than most; halves of each other.

    Their squares, each as often as is counted, have about the sum that is given, and no larger one.
    """
    one = math.sqrt(sum_of_squares / float(np.sum(counts * shares**2)))
    for _ in range(_PASSES):
        one = min(one, float((most / shares).max()))
        # A ratio that is a power of two, but for its rounding, is one.
        powers = np.floor(np.log2(np.minimum(most / one, shares)) + 1e-9)
        steps = one * np.exp2(powers)
        # A number becomes larger by this factor at most.
        one *= math.sqrt(sum_of_squares / float(np.sum(counts * steps**2)))
    return np.asarray(steps)


def bins_of(target: Target, step: float) -> list[LatticeBins]:
    """The bins of each step that both bounds are made of."""
    return [_bins(target, k, step) for k in range(len(target.steps))]


def profile_bound(target: Target, bins: list[LatticeBins], side: Side) -> Bound:
    """A bound on the profile of one direction, sharp around the target.

    Where the lattice of a step is coarser, its nodes are some of those of the lattice of all.
    """
    parts = [
        (node_measure(bins[k], side, target.doublings[k]), count)
        for k, (_, count) in enumerate(target.steps)
        if side == "upper" or target.matter[k]
    ]
    # The tail on one side of the window may cost a quarter of the share of delta.
    log_norm = math.fsum(count * measure.log_norm for measure, count in parts)
    log_main = target.log_delta - (log_norm - target.tilt * target.epsilon)
    log_tail = log_main + math.log(target.share / (4.0 * largest_weight(target.tilt)))
    tail = math.exp(min(max(log_tail, _LEAST_LOG_TAIL), _LARGEST_LOG_TAIL))
    return lattice_profile(parts, tail, side)


def _bins(target: Target, k: int, step: float) -> LatticeBins:
    """Bins of one step, out to where what is cut off costs no more than the share of delta."""
    source = dense_on(target.composition.measures[k].nodes, target.direction, target.reach)
    log_norm = float(target.at_tilt.parts[k, 0])
    chosen, large = _cut_tails(target, source, log_norm)
    lattice = _lattice(target, k, math.ldexp(step, target.doublings[k]))
    high = source.highest[chosen].max(initial=-math.inf)
    span = (high - source.lowest[chosen].min(initial=math.inf)) / lattice[0]
    if not span * float(parts_of(np.array(lattice[0]))) < _LARGEST_SPAN:
        raise CertificationError(f"losses of one step span {span:.3g} nodes, which is too many")
    bins = graded_bins(source, chosen, large, lattice, target.tilt, log_norm)
    if target.uses * float(bins.rounding.max()) <= 0.1 * target.share:
        # Each mass may bear the largest rounding, which is quicker.
        largest = np.broadcast_to(bins.rounding.max(), bins.rounding.shape)
        bins = dataclasses.replace(bins, whole=False, rounding=largest)
    return bins


def _cut_tails(target: Target, source: Dense, log_norm: float) -> tuple[Mask, Mask]:
    """Which panels and atoms to keep, and which of the others have large losses.

    From above untilted mass goes to infinity, once for each use; from below mass moves up to the
    first node, where the tilt weighs it.
    """
    order = np.argsort(source.highest, kind="stable")
    mass = np.exp(source.log_mass[order])
    share = target.share / target.uses
    large = np.cumsum(mass[::-1])[::-1] < math.exp(target.log_delta + math.log(share))
    # The most that any of them would weigh there; 5e-324 is as good as nothing.
    gained = np.log(np.cumsum(mass) + 5e-324) + (target.tilt * source.highest[order] - log_norm)
    small = np.maximum.accumulate(gained) < math.log(1e-2 * share)
    chosen, far = np.empty(mass.size, dtype=bool), np.empty(mass.size, dtype=bool)
    chosen[order], far[order] = ~(small | large), large
    return chosen, far


def _lattice(target: Target, k: int, step: float) -> tuple[float, float]:
    """Step and offset that put the ends of a bounded loss on nodes, where its mass crowds.

    The lower bound moves what it cannot balance down by a whole step; mass at an end can only be
    balanced if a node lies there. With one kind of step both ends fit; the offsets of different
    steps add up in the composition.
    """
    pair, _ = target.steps[k]
    opposite: Direction = "add" if target.direction == "remove" else "remove"
    low, high = -pair.largest_loss(opposite), pair.largest_loss(target.direction)
    if math.isinf(low):
        return step, high if math.isfinite(high) else 0.0
    if math.isfinite(high) and len(target.steps) == 1 and high > low:
        # The contraction joins pairs of bins, whose number should be even.
        parts = math.ceil((high - low) / step)
        return (high - low) / (parts + parts % 2), low
    return step, low
