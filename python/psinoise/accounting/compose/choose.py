"""Which composer answers: one ordered table.

=========== ============================ =========================================================
composer    when                         what limits it
=========== ============================ =========================================================
choices     pairs with several worst     its work and its rounding: see ``late_choices`` and
            shifts; many uses of atoms   ``recursion``; of two pairs with several worst shifts one
                                         has its envelope; last of few uses of atoms
frequencies smooth losses, tables        rounding, where little tilted mass is near epsilon; few
                                         uses whose losses differ in scale, of which many
                                         frequencies matter on a long window
direct      always                       its work: see `refine`; of pairs with several worst shifts
                                         it has their envelope from above and one from below
=========== ============================ =========================================================

What one cannot do, or not to the width that is asked for, goes to the next if that may come closer.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from psinoise.accounting.compose.choices.composer import Choices
from psinoise.accounting.compose.direct.composition import Composition as Direct
from psinoise.accounting.compose.direct.refine import (
    Crossing,
    Width,
    direct_bounds,
    distance,
    one_use_bounds,
)
from psinoise.accounting.compose.frequencies.target import Target, bins_of, profile_bound
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.dense import Dense, Measured, dense, uses_of
from psinoise.accounting.compose.measures.measure import SIDES
from psinoise.accounting.compose.schemes.epoch import RESOLUTIONS, Epoch
from psinoise.accounting.estimate.composition import LEAST_LOG_DELTA, Composition
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.steps import Pairs, Step, Steps, are_pairs, several
from psinoise.errors import CertificationError

# So many lattices are tried, if bounds are no more times farther apart than asked: of the first,
# and of later ones.
_LATTICES, _FARTHER, _FAR = 4, 1e3, 30.0
# Where there is no lattice of a width, so many times as wide ones are tried.
_WIDER = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
# Log of how far delta may be below the guess that nodes reach for, and that epochs do, which trim
# for it; of the next guess, if all of it was trimmed; and how many more guesses there are.
_MISSED, _MISSED_BY_EPOCHS, _FARTHER_DOWN, _GUESSES = 25.0, 10.0, 60.0, 4
_LEAST_GUESS = LEAST_LOG_DELTA + 1.0
# Of fewer uses of atoms all products are formed, or nearly so, in less time.
_MANY_USES = 100.0


class Guess(NamedTuple):
    """A point on the profile of the finite losses, by an estimate, and its composition."""

    epsilon: float
    log_delta: float
    composition: Composition


@dataclass(frozen=True, eq=False)
class Sought:
    """Bounds on the finite losses of one direction of a composition.

    Attributes
    ----------
    steps, direction : the composition
    log_delta, tilt : about the log delta that is asked for, and the slope there
    guess : a point on the profile, about; without it nothing but all products is tried
    crossing, width : what is asked of a bound, and how close both should be
    given : whether epsilon is what is asked at, and not looked for
    """

    steps: Steps
    direction: Direction
    log_delta: float
    tilt: float
    guess: Guess | None
    crossing: Crossing
    width: Width
    given: bool


def bounds(sought: Sought, behind: bool) -> Iterator[Bound]:
    """Bounds from above and below in turn, until nothing is left to try.

    If the direction is ``behind`` another one its first bound from above is enough as a rule.
    """
    steps, guess = sought.steps, sought.guess
    uses, choices, first = uses_of(steps), None, False
    if guess is not None and uses > 1.0 and are_pairs(steps):
        choices = _choices(sought, steps, guess.epsilon)
        # The envelope lets neighbors choose a shift for each outcome, which nobody can.
        first = several(steps) or uses >= _MANY_USES
        if choices is not None and first and (yield from choices.bounds(behind)):
            return
        yield from _on_lattices(sought, steps, guess)
    yield from _by_products(sought)
    if choices is not None and not first:
        yield from choices.bounds(behind)


def _by_products(sought: Sought) -> Iterator[Bound]:
    """Bounds by all products, for smaller deltas while what nodes do not reach may be more."""
    reached = math.inf
    epochs = any(isinstance(step, Epoch) for step, _ in sought.steps)
    missed = _MISSED_BY_EPOCHS if epochs else _MISSED
    crossing, log_delta = sought.crossing, sought.log_delta
    for guess, resolutions in enumerate([RESOLUTIONS, *[RESOLUTIONS[:1]] * _GUESSES]):
        found: dict[str, Bound] = {}
        # Nodes are placed well for a delta that is about right; those of epochs take long.
        leaves = sought.given and guess == 0 and not epochs
        for bound in _products(sought, log_delta, resolutions):
            found[bound.side] = bound
            yield bound
            if leaves and _are_below(found, crossing, log_delta - missed):
                break
        if not sought.given or "upper" not in found:
            return
        upper, lower = found["upper"], found.get("lower")
        epsilon, last, before = crossing(upper, 0.0, 1.0), reached, log_delta
        log_delta = reached = upper.log_delta(epsilon)
        # Of a single use there is a lower bound even if all of it was trimmed: nothing.
        if lower is None or lower.log_delta(epsilon) == -math.inf:
            log_delta = max(min(reached, before - max(_FARTHER_DOWN, -before)), _LEAST_GUESS)
        if not (log_delta < before - missed and LEAST_LOG_DELTA < reached < last - 1.0):
            return


def _are_below(found: dict[str, Bound], crossing: Crossing, log_delta: float) -> bool:
    """Whether bounds from both sides are, at the epsilon that is given."""
    if len(found) < len(SIDES):
        return False
    epsilon = crossing(found["upper"], 0.0, 1.0)
    return -math.inf < found["lower"].log_delta(epsilon) and (
        found["upper"].log_delta(epsilon) < log_delta
    )


def _epoch_alone(steps: Steps) -> Epoch | None:
    """A single epoch, which is composed as deep as it has to be."""
    (step, count), *others = steps
    return step if isinstance(step, Epoch) and count == 1 and not others else None


def _products(sought: Sought, log_delta: float, resolutions: tuple[int, ...]) -> Iterator[Bound]:
    """Bounds by all products, for a delta of about that, of epochs at some resolutions."""
    steps, direction, asked = sought.steps, sought.direction, (sought.crossing, sought.width)
    epoch, uses = _epoch_alone(steps), uses_of(steps)
    if epoch is not None:
        with contextlib.suppress(CertificationError):  # of ratios that are no float64
            yield from direct_bounds(epoch.allocation(direction, log_delta, sought.tilt), *asked)
        return
    # A single use has the supremum of the profiles of all shifts from below too. Of several the
    # worst shift is a guess, by a moment.
    reach, lean = reach_for(log_delta, uses), None if uses == 1.0 else sought.tilt
    epochs = any(isinstance(step, Epoch) for step, _ in steps)
    for nodes in resolutions[: None if epochs else 1]:
        try:
            sources = tuple(_sources(step, direction, reach, lean, nodes) for step, _ in steps)
        except CertificationError:
            return  # an epoch has ratios that are no float64
        composed = Direct(sources, tuple(count for _, count in steps), log_delta)
        if uses == 1.0:
            yield from one_use_bounds(composed, sought.crossing)
            return
        trimmed = True
        with contextlib.suppress(CertificationError):  # of losses that are too far apart
            for bound in direct_bounds(composed, *asked):
                trimmed = trimmed and bound.side == "upper"
                yield bound
        if trimmed:
            return


def _choices(sought: Sought, steps: Pairs, epsilon: float) -> Choices | None:
    """What composes uses of a pair whose losses are atoms with all others; None if there is none.

    Of pairs that dominate several the one whose envelope costs most, by a moment, else the one that
    is used most.
    """
    direction, tilt = sought.direction, sought.tilt

    def cost(step: tuple[AtomPair, int]) -> tuple[float, int]:
        pair, count = step
        if not pair.several:
            return 0.0, count
        fixed = pair.at_tilt(direction, tilt)
        gain = pair.moment(direction, tilt) - fixed.moment(direction, tilt)
        return count * max(gain, 0.0), count  # what is below 0 is rounding

    atoms = [(p, n) for p, n in steps if isinstance(p, AtomPair) and p.compares_all]
    if not atoms:
        return None
    pair, count = max(atoms, key=cost)
    reach = reach_for(sought.log_delta, uses_of(steps))
    return Choices(
        pair,
        count,
        _sources(pair, direction, reach, tilt),
        tuple((_sources(step, direction, reach, tilt), n) for step, n in steps if step is not pair),
        direction,
        sought.log_delta,
        epsilon,
        sought.given,
        sought.crossing,
        sought.width,
    )


def one_use(
    steps: Steps, direction: Direction, log_delta: float, epsilons: Float
) -> tuple[Bound, ...]:
    """Bounds on a single use, exact at some epsilons; none of losses that are no float64."""
    ((step, _),) = steps
    try:
        source = _sources(step, direction, reach_for(log_delta, 1.0), None)
    except CertificationError:
        return ()
    return Direct((source,), (1,), log_delta).one_use(epsilons)


def _sources(
    step: Step,
    direction: Direction,
    reach: float,
    tilt: float | None,
    nodes: int = RESOLUTIONS[0],
) -> tuple[Dense, Dense]:
    """The loss of one use from below and from above.

    With a tilt, from below: the pair that is the worst there of those that are attained.
    """
    if isinstance(step, Epoch):
        return step.sources(direction, reach, nodes)
    if isinstance(step, Measured):
        return step.sources(direction)
    below = step.below(direction, tilt) if isinstance(step, AtomPair) else step
    return dense(below, direction, reach), dense(step, direction, reach)


def _on_lattices(sought: Sought, steps: Pairs, guess: Guess) -> Iterator[Bound]:
    """Bounds by frequencies.

    Where delta falls so steeply that no lattice is as fine as is asked, of a wider width: products,
    which know epsilon well there, may trim all of a given one.
    """
    if any(isinstance(pair, AtomPair) for pair, _ in steps):
        return  # what a lower bound takes from an isolated atom falls slowly with the step
    epsilon, tilt, found = guess.epsilon, sought.tilt, math.inf
    asked = sought.width(epsilon, tilt)
    point = guess.log_delta, epsilon, tilt
    for times in _WIDER if sought.given else _WIDER[:1]:
        wanted, most = times * asked, _FARTHER
        with contextlib.suppress(CertificationError):
            target = Target(steps, sought.direction, *point, wanted, guess.composition)
            step = target.first_step
            for _ in range(_LATTICES):
                bins = bins_of(target, step)
                upper = profile_bound(target, bins, "upper")
                yield upper
                lower = profile_bound(target, bins, "lower")
                yield lower
                found = distance(lower, upper, epsilon, tilt, sought.crossing)
                if not 0.0 < found < most * wanted:
                    break
                # It falls with the square of the step.
                step *= max(min(math.sqrt(0.7 * wanted / found), 0.7), 0.1)
                most = _FAR
        if found < math.inf:
            return
