"""The steps of a composition, and what is known of it before anything is composed.

Infinite losses
---------------

A loss is infinite where the other data set cannot have given the output at all. If it is so with
probability ``f_i`` for each of ``n_i`` uses, some loss of the composition is with probability
``f = 1 - prod (1 - f_i)^n_i``, and

    ``delta(eps) = f + E_P[(1 - e^{eps - L})^+; L < inf]``.

All else in this package is about the second term. There is an epsilon for a delta above ``f``; at
``f`` itself it is the largest finite loss. A delta that a law was made for and its ``f`` are
roundings of the same number: where they agree to their roundings delta counts as ``f`` from above,
and as ``f`` and as much as it may be more from below.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeGuard

from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.numerics.rational import rounded


class Step(Protocol):
    """Anything that is composed: a pair, or a step that is known by measures of its loss.

    ``largest_loss`` and ``certain_loss`` bound the supremum of the finite losses from above and
    from below, and ``total_variation_bound`` bounds delta(0) of one use from above. ``attained``
    stands for it where lower ends of brackets are computed; None leaves it out. ``revealed`` is
    nowhere below it, and stands for it where upper ends are wide.
    """

    @property
    def attained(self) -> Step | None: ...
    @property
    def revealed(self) -> Step: ...
    @property
    def symmetric(self) -> bool: ...
    @property
    def total_variation_bound(self) -> float: ...
    def infinite(self, direction: Direction) -> float: ...
    def largest_loss(self, direction: Direction) -> float: ...
    def certain_loss(self, direction: Direction) -> float: ...
    def __hash__(self) -> int: ...


#: Distinct steps, each with the number of its uses.
Steps = tuple[tuple[Step, int], ...]
#: Those whose loss has a transform that can be computed.
Pairs = tuple[tuple[Dominating, int], ...]

#: Relative error of the probability of infinite losses. That of a law is right to some ulp, but for
#: an exponential of up to 700, whose argument is; of a composition it is as right.
MASS_ROUNDING = 2e-13
# Of a difference of two logarithms, per unit of their size.
_LOG_ROUNDING = 2.0**-51


def are_pairs(steps: Steps) -> TypeGuard[Pairs]:
    """Whether no step is known by measures of its loss alone."""
    return all(isinstance(step, Pair | AtomPair) for step, _ in steps)


def several(steps: Steps) -> bool:
    """Whether a step stands for several pairs, of which only each alone is attained."""
    return any(isinstance(step, AtomPair) and step.several for step, _ in steps)


def directions(steps: Steps) -> tuple[Direction, ...]:
    """One is enough where a reflection maps each step to that of the other direction."""
    return ("remove",) if all(pair.symmetric for pair, _ in steps) else ("remove", "add")


def largest_loss(steps: Steps, direction: Direction) -> float:
    """The supremum of the composed loss; ``inf`` if there is none."""
    if any(pair.infinite(direction) > 0.0 for pair, _ in steps):
        return math.inf
    return largest_finite_loss(steps, direction)


def infinite_mass(steps: Steps, direction: Direction) -> float:
    """Probability under ``P`` that the loss of the composition is infinite."""
    return some_of([(pair.infinite(direction), count) for pair, count in steps])


def log_infinite_mass(steps: Steps, direction: Direction) -> float:
    """Its logarithm; ``-inf`` if there is none."""
    mass = infinite_mass(steps, direction)
    return math.log(mass) if mass > 0.0 else -math.inf


def some_of(chances: list[tuple[float, int]]) -> float:
    """Probability that something happens, of what has a chance in each of so many trials."""
    if max((chance for chance, _ in chances), default=0.0) >= 1.0:
        return 1.0
    return abs(math.expm1(math.fsum(n * math.log1p(-chance) for chance, n in chances)))


def largest_finite_loss(steps: Steps, direction: Direction) -> float:
    """Supremum of the composed loss where it is finite, rounded up; ``inf`` if there is none."""
    return _total([(pair.largest_loss(direction), count) for pair, count in steps], up=True)


def certain_finite_loss(steps: Steps, direction: Direction) -> float:
    """A lower bound on that supremum."""
    return _total([(pair.certain_loss(direction), count) for pair, count in steps], up=False)


def _total(losses: list[tuple[float, int]], *, up: bool) -> float:
    """``sum count * loss``, rounded once, to one side."""
    if any(loss == -math.inf for loss, _ in losses):
        return -math.inf  # a step whose losses are all infinite
    if not all(math.isfinite(loss) for loss, _ in losses):
        return math.fsum(count * loss for loss, count in losses)
    return rounded(sum((Fraction(loss) * n for loss, n in losses), Fraction()), up=up)


class Share(NamedTuple):
    """Logs of what infinite losses leave of delta, which is known to their rounding.

    ``least`` is ``-inf`` where it may be nothing, or less: epsilon is infinite then, unless delta
    is meant to be the probability of infinite losses, which may be off as much.
    """

    least: float
    middle: float
    most: float


def finite_share(steps: Steps, direction: Direction, log_delta: float) -> Share | None:
    """What infinite losses leave of delta; None if they are certainly more."""
    mass = infinite_mass(steps, direction)
    if mass == 0.0:
        return Share(log_delta, log_delta, log_delta)
    log_ratio = math.log(mass) - log_delta
    if log_ratio > 1.0:
        return None
    room = -math.expm1(log_ratio)
    # Of the probability and of both logarithms, as parts of delta.
    off = math.exp(log_ratio) * (MASS_ROUNDING + _LOG_ROUNDING * (1.0 - log_delta))
    if room + off <= 0.0:
        return None
    least = math.log(room - off) if room > off else -math.inf
    most = math.log(room + off)
    middle = math.log(room) if room > off else most
    return Share(log_delta + least, log_delta + middle, log_delta + most)
