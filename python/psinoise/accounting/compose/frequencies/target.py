"""One step of a composition on a lattice, as fine as the question about the composition asks for.

The saddle point of the estimate is the tilt, and the bias of both bounds (``lattice``) gives the
step. Mass whose loss is so large, or so small, that it matters less than the bias is cut off: from
above it goes to ``+infinity``, from below to the lowest node.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from psinoise._kept import cached_property
from psinoise.accounting.compose.frequencies.frequency_bound import lattice_profile
from psinoise.accounting.compose.frequencies.lattice import (
    NodeMeasure,
    Side,
    graded_bins,
    node_measure,
)
from psinoise.accounting.compose.frequencies.window import tail_within
from psinoise.accounting.compose.measures.bins import Bins, parts_of
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.dense import Dense, Mask, dense_on
from psinoise.accounting.estimate.composition import Composition, Saddle
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import Nodes, reach_for
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
_LEAST_LOG_TAIL = -200.0


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
    kept : bins of the last length of a step that was asked for
    """

    steps: Pairs
    direction: Direction
    log_delta: float
    epsilon: float
    slope: float
    width: float
    composition: Composition
    kept: dict[float, dict[Dominating, Bins]] = field(default_factory=dict, init=False)

    @cached_property
    def uses(self) -> float:
        return float(sum(count for _, count in self.steps))

    @cached_property
    def reach(self) -> float:
        return reach_for(self.log_delta, self.uses)

    @cached_property
    def _at_tilt(self) -> Saddle:
        largest = min(_LARGEST_TILT, _LARGEST_EXPONENT / self.width)
        return self.composition.saddle(min(self.slope, largest))

    @property
    def tilt(self) -> float:
        return self._at_tilt.c

    @cached_property
    def grids(self) -> dict[Dominating, Nodes]:
        """The panels of each step."""
        measures = self.composition.measures
        return {pair: found.nodes for (pair, _), found in zip(self.steps, measures, strict=True)}

    @cached_property
    def log_norms(self) -> dict[Dominating, float]:
        """``K(t)`` of one use of each step."""
        return {
            pair: value for (pair, _), value in zip(self.steps, self._at_tilt.values, strict=True)
        }

    @cached_property
    def matter(self) -> frozenset[Dominating]:
        """The pairs that are not left out from below.

        Leaving out what a step releases is post-processing: delta can only fall. Delta of the
        finite losses falls too if those of the step are all finite; else it would rise by the
        factor ``1 - f`` that the step brings, so that such steps are never left out. What the
        others would add to epsilon, by their moments, is a small share of the width together.
        """
        finite = [step for step in self.steps if step[0].infinite(self.direction) == 0.0]
        added = np.array([count * max(self.log_norms[pair], 0.0) for pair, count in finite])
        order = np.argsort(added)
        out = order[np.cumsum(added[order]) <= _LEFT_OUT * self.width * self.tilt]
        pairs = frozenset(pair for pair, _ in self.steps)
        return pairs - {finite[k][0] for k in out.tolist()} or pairs

    @cached_property
    def _own_steps(self) -> dict[Dominating, float]:
        """How far apart the nodes of each may be: halves of each other, or the same.

        The bias of both bounds, ``n h^2 (t + 1) / 4`` in epsilon together, is three quarters of
        the width; of losses with little spread the nodes have to be closer than that. The nodes of
        a loss of deviation ``s`` are some ``s / h``, of all losses the fewest where ``h^3`` goes
        with ``s / n``.
        """
        # A loss that hardly varies moves by a bin at most, and n bins this small are in the width.
        least = 0.5 * self.width / self.uses
        most, counts = [], np.array([count for _, count in self.steps], dtype=np.float64)
        deviations = np.sqrt(self._at_tilt.parts[:, 2])
        for (pair, count), measure, value, varies in zip(
            self.steps,
            self.composition.measures,
            self._at_tilt.values,
            deviations.tolist(),
            strict=True,
        ):
            most.append(_LARGEST_STEP)
            if pair in self.matter:
                # The bias formula takes the loss to vary over several bins.
                bulk = measure.spread(self.tilt, value)
                if count * bulk <= _LEFT_OUT * self.width:
                    bulk = varies
                most[-1] = max(min(_LARGEST_STEP, _SPREAD * min(bulk, varies)), least)
        wanted = np.log2(np.maximum(deviations / counts, 1e-300)) / 3.0
        coarser = _COARSER if len(most) > _FEW else 0.0
        shares = np.exp2(np.maximum(np.round(wanted - wanted.max()), -coarser))
        steps = _filled(np.array(most), shares, counts, 3.0 * self.width / (self.tilt + 1.0))
        return {pair: step for (pair, _), step in zip(self.steps, steps.tolist(), strict=True)}

    @cached_property
    def doublings(self) -> dict[Dominating, int]:
        """How often each doubles the step of the lattice.

        Nothing but losses on the finest nodes makes a product small at angles near ``pi``
        (``last_frequency``): each has the nodes that one some places before it asks for.
        """
        order = sorted(self._own_steps, key=self._own_steps.__getitem__)
        steps = [self._own_steps[pair] for pair in order]
        shared = [steps[0]] * _SHARING + steps
        return {
            pair: round(math.log2(step / self.first_step))
            for pair, step in zip(order, shared, strict=False)
        }

    @cached_property
    def first_step(self) -> float:
        """That of both bounds."""
        return min(self._own_steps.values())

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


def profile_bound(target: Target, step: float, side: Side) -> Bound:
    """A bound on the profile of one direction, sharp around the target."""
    steps = [each for each in target.steps if side == "upper" or each[0] in target.matter]
    parts = [(_bound_of_step(target, pair, step, side), count) for pair, count in steps]
    tail = tail_within(parts, target.log_delta, target.epsilon, target.share, _LEAST_LOG_TAIL)
    return lattice_profile(parts, tail, side)


def _bound_of_step(target: Target, pair: Dominating, step: float, side: Side) -> NodeMeasure:
    """The bound of one step; both sides are made of the same bins, the lower one last.

    Where its own lattice is coarser, its nodes are some of those of the lattice of all.
    """
    if step not in target.kept:
        target.kept.clear()
    kept = target.kept.setdefault(step, {})
    bins = kept.pop(pair, None) or _bins(target, pair, step)
    if side == "upper" and pair in target.matter:
        kept[pair] = bins
    return node_measure(bins, side, target.doublings[pair])


def _bins(target: Target, pair: Dominating, step: float) -> Bins:
    """Bins of one step, out to where what is cut off costs no more than the share of delta."""
    source = dense_on(target.grids[pair], target.direction, target.reach)
    tilt, log_norm = target.tilt, target.log_norms[pair]
    chosen, large = _cut_tails(target, source, tilt, log_norm)
    lattice = _lattice(target, pair, math.ldexp(step, target.doublings[pair]))
    high = source.highest[chosen].max(initial=-math.inf)
    span = (high - source.lowest[chosen].min(initial=math.inf)) / lattice[0]
    if not span * float(parts_of(np.array(lattice[0]))) < _LARGEST_SPAN:
        raise CertificationError(f"losses of one step span {span:.3g} nodes, which is too many")
    bins = graded_bins(source, chosen, large, lattice, tilt, log_norm)
    if target.uses * float(bins.rounding.max()) <= 0.1 * target.share:
        # Each mass may bear the largest rounding, which is quicker.
        largest = np.broadcast_to(bins.rounding.max(), bins.rounding.shape)
        bins = dataclasses.replace(bins, whole=False, rounding=largest)
    return bins


def _cut_tails(target: Target, source: Dense, tilt: float, log_norm: float) -> tuple[Mask, Mask]:
    """Which panels and atoms to keep, and which of the others have large losses.

    From above untilted mass goes to infinity, once for each use; from below mass moves up to the
    first node, where the tilt weighs it.
    """
    order = np.argsort(source.highest, kind="stable")
    mass = np.exp(source.log_mass[order])
    share = target.share / target.uses
    large = np.cumsum(mass[::-1])[::-1] < math.exp(target.log_delta + math.log(share))
    # The most that any of them would weigh there; 5e-324 is as good as nothing.
    gained = np.log(np.cumsum(mass) + 5e-324) + (tilt * source.highest[order] - log_norm)
    small = np.maximum.accumulate(gained) < math.log(1e-2 * share)
    chosen, far = np.empty(mass.size, dtype=bool), np.empty(mass.size, dtype=bool)
    chosen[order], far[order] = ~(small | large), large
    return chosen, far


def _lattice(target: Target, pair: Dominating, step: float) -> tuple[float, float]:
    """Step and offset that put the ends of a bounded loss on nodes, where its mass crowds.

    The lower bound moves what it cannot balance down by a whole step; mass at an end can only be
    balanced if a node lies there. With one kind of step both ends fit; the offsets of different
    steps add up in the composition.
    """
    opposite: Direction = "add" if target.direction == "remove" else "remove"
    low, high = -pair.largest_loss(opposite), pair.largest_loss(target.direction)
    if math.isinf(low):
        return step, high if math.isfinite(high) else 0.0
    if math.isfinite(high) and len(target.steps) == 1 and high > low:
        # The contraction joins pairs of bins, whose number should be even.
        parts = math.ceil((high - low) / step)
        return (high - low) / (parts + parts % 2), low
    return step, low
