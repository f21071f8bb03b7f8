"""Certified bounds on epsilon and delta of a composition.

The estimate by contour integration tells where to look: its saddle point is the tilt. The step of
the lattice follows from the width that was asked for (the bias of ``bounds``), both bounds are
composed on it, and the width is *verified*: if it is larger than asked, the step shrinks. What
cannot be reached raises, and nothing falls back to an estimate.

For many uses one lattice would need too many nodes: with ``n`` uses the window grows like
``sqrt(n)`` while the step shrinks like ``1/sqrt(n)``. Then ``n / r`` uses are composed on a fine
lattice, the result is moved to a lattice ``sqrt(n / r)`` times as coarse by the same two
constructions (still bounds), and composed ``r`` times: both lattices have about ``n^(1/4)`` times
the nodes of a single use. A third and fourth stage do the same once more.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np

from psinoise.accounting.bins import Bins, dense, loss_bins
from psinoise.accounting.bounds import NodeMeasure, Side, best_offset, coarsen, node_measure
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.composition import LEAST_LOG_DELTA, Composition, Saddle
from psinoise.accounting.convolution import (
    Composed,
    Profile,
    compose,
    largest_weight,
    window_size,
)
from psinoise.accounting.estimate import (
    Steps,
    directions,
    epsilons,
    estimate_delta,
    estimate_epsilon,
    largest_loss,
)
from psinoise.accounting.grading import graded_edges
from psinoise.accounting.pairs import Direction, Pair
from psinoise.accounting.quadrature import reach_for
from psinoise.errors import CertificationError

DEFAULT_TOLERANCE = 1e-4
_LARGEST_STEP = 0.25
# A window of this many nodes needs about 64 bytes for each.
_LARGEST_WINDOW = 2**21
_LARGEST_SPAN = 2**30
_COMFORTABLE_WINDOW = 2**17
# More stages are worth their bias above this.
_LONG_WINDOW = 2**19
_MOST_STAGES = 4
_MANY_USES = 64.0
_ATTEMPTS = 8
_LARGEST_TILT = 1e6
# The lower bound is off twice as far as the upper one; if it is more, tuning may help.
_LOPSIDED = 2.5
# Part of the width that cutting off tails may cost.
_CUT = 0.02


@dataclass(frozen=True, eq=False)
class _Target:
    """One direction of a composition, and where on its profile to be sharp."""

    steps: Steps
    direction: Direction
    log_delta: float
    epsilon: float
    kept: dict[tuple[Pair, float, float], Bins] = field(default_factory=dict, init=False)

    @functools.cached_property
    def uses(self) -> float:
        return float(sum(count for _, count in self.steps))

    @functools.cached_property
    def reach(self) -> float:
        return reach_for(self.log_delta, self.uses)

    @functools.cached_property
    def composition(self) -> Composition:
        return Composition.of(self.steps, self.direction, self.reach)

    @functools.cached_property
    def _at_tilt(self) -> Saddle:
        saddle = self.composition.saddle_at_epsilon(self.epsilon)
        return saddle if saddle.c <= _LARGEST_TILT else self.composition.saddle(_LARGEST_TILT)

    @property
    def tilt(self) -> float:
        return self._at_tilt.c

    @functools.cached_property
    def log_norms(self) -> dict[Pair, float]:
        """``K(t)`` of one use of each step."""
        return {
            pair: part.value
            for (pair, _), part in zip(self.steps, self._at_tilt.parts, strict=True)
        }

    @functools.cached_property
    def top(self) -> float:
        return largest_loss(self.steps, self.direction)

    def first_step(self, width: float) -> float:
        """The step whose bias, ``n h^2 (t + 1) / 4`` in epsilon, takes four fifths of the width."""
        step = math.sqrt(3.2 * width / (self.uses * (self.tilt + 1.0)))
        # The bias formula takes the loss to vary over several bins.
        spread = min(part.variance for part in self._at_tilt.parts)
        step = min(step, 0.25 * math.sqrt(spread), _LARGEST_STEP)
        # A loss that hardly varies moves by a bin at most, and n bins this small are in the width.
        return max(step, 0.5 * width / self.uses)

    def share(self, width: float) -> float:
        """Share of delta that costs ``_CUT`` of the width: delta falls at a rate of about t."""
        return min(_CUT * width * self.tilt, 1e-2)


def certify_epsilon(steps: Steps, delta: float, tolerance: float | None) -> Bracket:
    """Bounds on epsilon at ``delta``, no further apart than the tolerance.

    Parameters
    ----------
    steps
        distinct pairs and positive counts
    delta
        in [0, 1]
    tolerance
        largest ``upper - lower``; None is ``1e-4 * max(1, epsilon)``

    Raises
    ------
    CertificationError
        if that width cannot be reached
    """
    if not steps or delta in (0.0, 1.0):
        exact = estimate_epsilon(steps, delta)
        return Bracket(exact, exact, exact)
    log_delta = math.log(delta)
    targets = [
        _Target(steps, way, log_delta, epsilon)
        for way, epsilon in epsilons(steps, log_delta).items()
    ]
    leading = max(targets, key=lambda target: target.epsilon)
    estimate = leading.epsilon
    width = DEFAULT_TOLERANCE * max(1.0, estimate) if tolerance is None else tolerance
    lower, upper = _epsilon_bounds(leading, width)
    for target in targets:
        if target is not leading:
            # The other direction matters only if its upper bound is the larger one.
            upper = max(upper, _epsilon_below(target, upper, width))
    return _checked(Bracket(lower, estimate, upper), width)


def certify_delta(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    """Bounds on delta at ``epsilon``, on the lattice that the tolerance asks for.

    They hold whatever their width, which by the bias formula is that of a shift of epsilon by the
    tolerance; unlike that of `certify_epsilon` it is not verified.
    """
    estimate = estimate_delta(steps, epsilon)
    top = max((largest_loss(steps, way) for way in directions(steps)), default=0.0)
    if not steps or math.isinf(epsilon) or epsilon >= top:
        return Bracket(estimate, estimate, estimate)
    if estimate == 0.0:
        return _vanishing(steps, epsilon)
    width = DEFAULT_TOLERANCE * max(1.0, abs(epsilon)) if tolerance is None else tolerance
    lower, upper = -math.inf, -math.inf
    for way in directions(steps):
        target = _Target(steps, way, math.log(estimate), epsilon)
        if target.top <= epsilon:
            continue  # this direction has delta 0
        step = target.first_step(width)
        lower = max(lower, _profile(target, step, width, "lower").log_delta(epsilon))
        upper = max(upper, _profile(target, step, width, "upper").log_delta(epsilon))
    floor = -math.expm1(min(epsilon, 0.0))
    return Bracket(
        min(max(math.exp(lower), floor), estimate),
        estimate,
        max(min(math.exp(upper), 1.0), estimate),
    )


def _vanishing(steps: Steps, epsilon: float) -> Bracket:
    """Where delta is below every float64, by Chernoff's bound; else it cannot be told from 0."""
    uses = float(sum(count for _, count in steps))
    bounds = []
    for way in directions(steps):
        composition = Composition.of(steps, way, reach_for(LEAST_LOG_DELTA, uses))
        bounds.append(composition.saddle_at_epsilon(epsilon).log_chernoff(epsilon))
    if not max(bounds) < LEAST_LOG_DELTA + 1.0:
        raise CertificationError("delta is too small to be told from 0, and not below 5e-324")
    return Bracket(0.0, 0.0, 5e-324)


def _epsilon_bounds(target: _Target, width: float) -> tuple[float, float]:
    step = target.first_step(width)
    found = math.inf
    tuned = False
    for _ in range(_ATTEMPTS):
        upper = _profile(target, step, width, "upper").epsilon(
            target.log_delta, target.epsilon, width
        )
        lower = _profile(target, step, width, "lower", tuned).epsilon(
            target.log_delta, target.epsilon, width
        )
        upper = min(upper, target.top)
        lopsided = target.epsilon - lower > _LOPSIDED * (upper - target.epsilon)
        if upper - lower > width and lopsided and not tuned:
            # The mass crowds in a few bins at an end of the loss: where they begin matters.
            tuned = True
            lower = _profile(target, step, width, "lower", tuned).epsilon(
                target.log_delta, target.epsilon, width
            )
        found = upper - lower
        if found <= width:
            return lower, upper
        step *= max(min(math.sqrt(0.7 * width / found), 0.7), 0.1)
    raise CertificationError(
        f"epsilon could not be certified to {width!r}: the bounds are {found!r} apart"
    )


def _epsilon_below(target: _Target, ceiling: float, width: float) -> float:
    """An upper bound that is below the ceiling, if possible, on as coarse a lattice as will do."""
    if target.top <= ceiling or target.composition.stays_below(ceiling, target.log_delta):
        return min(target.top, ceiling)
    room = max(ceiling - target.epsilon, width)
    step = target.first_step(room)
    upper = math.inf
    for _ in range(_ATTEMPTS):
        upper = _profile(target, step, width, "upper").epsilon(
            target.log_delta, target.epsilon, room
        )
        upper = min(upper, target.top)
        if upper <= ceiling or upper - target.epsilon <= 0.5 * width:
            break
        step *= 0.4
    return upper


def _profile(
    target: _Target, step: float, width: float, side: Side, tuned: bool = False
) -> Profile:
    composed = _composed(target, step, width, side, tuned)
    return Profile(composed, 1.0 if side == "upper" else -1.0)


def _composed(target: _Target, step: float, width: float, side: Side, tuned: bool) -> Composed:
    parts = [
        (_measure(target, pair, step, width, side, tuned), count) for pair, count in target.steps
    ]
    tail = _tail(target, parts, width)
    stages = _stages(window_size(parts, tail)[1], target.uses)
    return _compose_in_stages(
        [(measure, count, 0.0) for measure, count in parts], side, tail, stages
    )


def _measure(
    target: _Target, pair: Pair, step: float, width: float, side: Side, tuned: bool
) -> NodeMeasure:
    """The bound of one step; `tuned` looks for the offset of the lattice that loses least.

    Any offset gives a bound. The larger the tilted mass of a lower bound, the better it is.
    """

    if not tuned:
        # Both bounds are made of the same bins.
        key = pair, step, width
        if key not in target.kept:
            if any(kept[1:] != key[1:] for kept in target.kept):
                target.kept.clear()
            target.kept[key] = _bins(target, pair, step, width, 0.0)
        return node_measure(target.kept[key], side)
    target.kept.clear()
    return best_offset(
        lambda fraction: node_measure(_bins(target, pair, step, width, fraction % 1.0), side)
    )


def _tail(target: _Target, parts: list[tuple[NodeMeasure, int]], width: float) -> float:
    """Tilted mass outside the window that costs no more than the share of delta."""
    log_norm = math.fsum(count * measure.log_norm for measure, count in parts)
    log_main = target.log_delta - (log_norm - target.tilt * target.epsilon)
    log_tail = log_main + math.log(target.share(width) / (4.0 * largest_weight(target.tilt)))
    return math.exp(min(max(log_tail, -200.0), math.log(1e-6)))


def _stages(size: int, uses: float) -> int:
    """How many stages compose ``uses`` that would take one window of ``size`` nodes.

    ``k`` stages take the power ``(k - 1)/(2 k)`` of the number of uses off its length. Each has a
    bias of its own, and the first must hold the largest losses however many there are.
    """
    if size <= _COMFORTABLE_WINDOW or uses < _MANY_USES:
        return 1
    sizes = [size * uses ** (-0.5 + 0.5 / k) for k in range(2, _MOST_STAGES)]
    return next((k for k, length in enumerate(sizes, 2) if length <= _LONG_WINDOW), _MOST_STAGES)


# A bound on the masses of one step, its count, and how far off its masses are in total.
_Part = tuple[NodeMeasure, int, float]


def _compose_in_stages(parts: list[_Part], side: Side, tail: float, stages: int) -> Composed:
    """Compose a share of the uses, move the result to a coarser lattice, and go on with that.

    Convolving ``n`` measures of mass 1, each off by ``d`` in total, gives one off by ``n d``.
    """
    if stages == 1:
        return _compose_once(parts, tail)
    uses = sum(count for _, count, _ in parts)
    repeats = max(uses // max(round(float(uses) ** (1.0 / stages)), 2), 1)
    factor = max(2 ** round(0.5 * math.log2(uses / repeats)), 2)
    inner = [(measure, count // repeats, off) for measure, count, off in parts if count >= repeats]
    rest = [(measure, count % repeats, off) for measure, count, off in parts if count % repeats]
    coarse: list[_Part] = []
    for group, count in ((inner, repeats), (rest, 1)):
        if group:
            fine = _compose_once(group, tail / repeats)
            coarse.append((node_measure(coarsen(fine.measure, factor), side), count, fine.distance))
    return _compose_in_stages(coarse, side, tail, stages - 1)


def _compose_once(parts: list[_Part], tail: float) -> Composed:
    plain = [(measure, count) for measure, count, _ in parts]
    first, size, outside = window_size(plain, tail)
    if size > _LARGEST_WINDOW:
        raise CertificationError(
            f"the bounds need a lattice of {size} nodes, more than {_LARGEST_WINDOW}"
        )
    inherited = math.fsum(count * off for _, count, off in parts)
    return compose(plain, first, size, outside + inherited)


def _bins(target: _Target, pair: Pair, step: float, width: float, fraction: float) -> Bins:
    """Bins of one step, out to where what is cut off costs no more than the share of delta."""
    source = dense(pair, target.direction, target.reach)
    log_norm = target.log_norms[pair]
    chosen = np.ones(source.log_mass.size, dtype=np.bool_)
    # From above: untilted mass goes to infinity, once for each use.
    order = np.argsort(-source.highest)
    total = np.logaddexp.accumulate(source.log_mass[order])
    limit = target.log_delta + math.log(target.share(width) / target.uses)
    chosen[order[: int(np.searchsorted(total, limit))]] = False
    # From below: mass moves up to the first node, where the tilt weighs it.
    order = np.argsort(source.highest)
    total = np.logaddexp.accumulate(source.log_mass[order])
    gained = total + target.tilt * source.highest[order] - log_norm
    cut = np.maximum.accumulate(gained) < math.log(1e-2 * target.share(width) / target.uses)
    chosen[order[cut]] = False
    if not chosen.any():
        raise CertificationError("the bounds find no mass where the estimate has put it")
    step, offset = _lattice(target, pair, step)
    span = (source.highest[chosen].max() - source.lowest[chosen].min()) / step
    if not span < _LARGEST_SPAN:
        raise CertificationError(
            f"the losses of one step span {span:.3g} nodes, more than {_LARGEST_SPAN}"
        )
    lattice = step, offset + fraction * step
    edges = graded_edges(source, chosen, lattice, target.tilt, log_norm)
    return loss_bins(source, chosen, lattice, edges, target.tilt, log_norm)


def _lattice(target: _Target, pair: Pair, step: float) -> tuple[float, float]:
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
        return (high - low) / math.ceil((high - low) / step), low
    return step, low


def _checked(bracket: Bracket, width: float) -> Bracket:
    if not bracket.lower <= bracket.estimate <= bracket.upper:
        # Rounding may put the estimate an ulp or so outside of a very narrow bracket.
        miss = max(bracket.lower - bracket.estimate, bracket.estimate - bracket.upper)
        if miss > 0.01 * width:
            raise CertificationError(
                f"estimate and bounds disagree: {bracket.estimate!r} is outside "
                f"[{bracket.lower!r}, {bracket.upper!r}]"
            )
        return Bracket(
            min(bracket.lower, bracket.estimate),
            bracket.estimate,
            max(bracket.upper, bracket.estimate),
        )
    return bracket
