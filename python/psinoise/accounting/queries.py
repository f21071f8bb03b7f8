"""What is asked of a composition: certified answers, and numbers without a certificate.

A question about one point reads what earlier questions composed, and composes more where that is
not narrow enough. Questions about many points choose few to compose at (``composed``).

Numbers that are no brackets have names of their own:

============ =============================================================================
estimate     contour integration to working precision, without a proven bound
renyi        the moments accountant: an upper bound, up to quadrature
clt          the Gaussian limit of many uses: an approximation that can be too small
============ =============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise.accounting import contract
from psinoise.accounting.bracket import Bracket, Brackets
from psinoise.accounting.composed import composed
from psinoise.accounting.concentrated import Concentrated
from psinoise.accounting.estimate.central_limit import gaussian_limit
from psinoise.accounting.estimate.estimate import contour_log_deltas
from psinoise.accounting.estimate.renyi import (
    concentration,
    divergences,
    renyi_delta,
    renyi_epsilon,
)
from psinoise.accounting.loss.steps import Pairs, Steps, are_pairs, directions, infinite_mass
from psinoise.accounting.question import Question
from psinoise.accounting.tradeoff import tradeoff_of
from psinoise.errors import CertificationError, DomainError

__all__ = [
    "Numbers",
    "central_limit",
    "delta_of",
    "deltas_of",
    "epsilon_of",
    "epsilons_of",
    "estimates",
    "moments",
    "renyi_of",
    "zcdp_of",
]

Float = NDArray[np.float64]

# Bounds on delta give way to rounding by this share.
_ROUNDING = 1e-7
# Lines of a trade-off function are added until none can raise any value by more than this share.
_CLOSE = 1e-8
# Of a profile, whose bounds come from several compositions.
_BETWEEN = 0.5


def epsilon_of(question: Question, delta: float) -> Bracket:
    """Epsilon at ``delta``; the arguments have been checked."""
    with np.errstate(under="ignore"):
        found, asked = question.epsilon(delta), question.tolerance
    if asked is not None and not (found.width <= asked or found.lower == found.upper):
        raise CertificationError(f"epsilon could not be certified to {asked!r}: {found!r}", found)
    return found


def epsilons_of(question: Question, deltas: Float) -> Brackets:
    """Epsilon at each delta, each distinct one asked once."""
    distinct, where = np.unique(deltas, return_inverse=True)
    found = [epsilon_of(question, delta) for delta in distinct.tolist()]
    ends = np.array([tuple(bracket) for bracket in found], np.float64).reshape(-1, 3).T
    # Epsilon falls in delta: a bound holds for all larger deltas, or all smaller ones.
    lower = np.maximum.accumulate(ends[0][::-1])[::-1]
    upper = np.minimum.accumulate(ends[2])
    lower = np.minimum(lower, upper)
    estimate = np.clip(ends[1], lower, upper)
    where = where.reshape(deltas.shape)
    return Brackets(lower[where], estimate[where], upper[where])


def delta_of(question: Question, epsilon: float) -> Bracket:
    """Delta at ``epsilon``; the arguments have been checked."""
    with np.errstate(under="ignore"):
        found, asked = question.delta(epsilon), question.tolerance
        if asked is not None and not found.upper <= _moved(question, epsilon, found):
            raise CertificationError(
                f"delta could not be certified to a width of {asked!r} in epsilon: {found!r}", found
            )
    return found


def _moved(question: Question, epsilon: float, found: Bracket) -> float:
    """What the upper bound may be: a lower bound at an epsilon that is smaller by the tolerance."""
    assert question.tolerance is not None
    least = found.lower * (1.0 + _ROUNDING)
    if found.upper <= least or math.isinf(epsilon):
        return max(least, found.upper)
    return max(least, question.delta(epsilon - question.tolerance).lower)


def renyi_of(question: Question, orders: Float) -> Float:
    """Renyi divergences of these orders, the larger of the directions."""
    rho, pairs = _moments(question)
    found = divergences(pairs, question.directions, orders)
    return np.asarray(found + rho * orders if rho else found)


def zcdp_of(question: Question) -> float:
    """The least rho with divergences of at most ``rho a`` for all orders ``a > 1``."""
    rho, pairs = _moments(question)
    return rho + concentration(pairs, question.directions)


def _moments(question: Question) -> tuple[float, Pairs]:
    """What is known by its rho, and the pairs."""
    pairs = tuple(entry for entry in question.steps if not isinstance(entry[0], Concentrated))
    if not are_pairs(pairs):
        raise DomainError(
            "divergences must be known of each step, got one that is known by bounds on its loss"
        )
    return sum(step.rho for step, _ in question.steps if isinstance(step, Concentrated)), pairs


def deltas_of(question: Question, epsilons: Float) -> Brackets:
    """Delta at each epsilon, each distinct one computed once, never rising where epsilon rises.

    Delta falls in epsilon, so a bound from above holds for all larger epsilons as well, and a bound
    from below for all smaller ones.
    """
    distinct, where = np.unique(epsilons, return_inverse=True)
    where = where.reshape(epsilons.shape)
    lower, upper = np.empty(distinct.size), np.empty(distinct.size)
    finite = np.isfinite(distinct)
    for place in np.flatnonzero(~finite):
        ends = question.delta(float(distinct[place]))
        lower[place], upper[place] = ends.lower, ends.upper
    if finite.any():
        with np.errstate(under="ignore"):
            asked = distinct[finite]
            lower[finite], upper[finite] = composed(question.shorter, asked).delta(asked)
            if (below := question.below) is not None:
                lower[finite], _ = composed(below, asked).delta(asked)
    upper = np.minimum.accumulate(upper)
    lower = np.minimum(np.maximum.accumulate(lower[::-1])[::-1], upper)
    between = np.minimum(lower + _BETWEEN * (upper - lower), upper)
    return Brackets(lower[where], between[where], upper[where])


@dataclass(frozen=True)
class Numbers:
    """Epsilon and delta of a composition as plain numbers; see `Accountant.estimate` and others."""

    _steps: Steps
    _epsilon: Callable[[float], float]
    _delta: Callable[[float], float]
    _deltas: Callable[[Float], Float]
    # Of both directions: lines of a trade-off function need both.
    _larger_deltas: Callable[[Float], Float]
    _largest: float

    def epsilon(self, delta: float) -> float:
        """Epsilon at ``delta``, in [0, 1]."""
        delta = contract.check_delta(delta)
        with np.errstate(under="ignore"):
            return float(self._epsilon(delta))

    def delta(self, epsilon: float) -> float:
        """Delta at ``epsilon``, any real or infinite number."""
        epsilon = contract.check_epsilon(epsilon)
        with np.errstate(under="ignore"):
            return float(self._delta(epsilon))

    def profile(self, epsilons: ArrayLike) -> Float:
        """Delta at each of the epsilons, an array of any shape."""
        values = contract.check_epsilons(epsilons)
        distinct, where = np.unique(values, return_inverse=True)
        with np.errstate(under="ignore"):
            return np.asarray(self._deltas(distinct)[where].reshape(values.shape))

    def tradeoff(self, alphas: ArrayLike) -> Float:
        """The trade-off function, within 1e-8 of the supremum over all its supporting lines."""
        values = contract.check_probabilities("alphas", alphas)
        if not self._steps:
            return 1.0 - values
        with np.errstate(under="ignore"):
            deltas = self._larger_deltas
            infinite = float(deltas(np.array([math.inf]))[0])
            return tradeoff_of(values, lambda _: self._largest, infinite, lambda _: deltas, _CLOSE)


def estimates(question: Question) -> Numbers:
    """The numbers of contour integration; see `Accountant.estimate`."""
    if question.below is not None:
        _known(question, "an estimate")
    return _of(Question(question.steps, only=question.only, estimating=True))


def central_limit(question: Question) -> Numbers:
    """The Gaussian limit; see `Accountant.clt`."""
    steps = _known(question, "a limit")
    return _of(Question(gaussian_limit(steps, question.directions), estimating=True))


def moments(question: Question) -> Numbers:
    """The bounds of Renyi divergences; see `Accountant.renyi`."""
    steps, asked = _known(question, "a Renyi divergence"), question.directions
    both = directions(steps)
    return Numbers(
        steps,
        lambda delta: renyi_epsilon(steps, delta, asked),
        lambda epsilon: renyi_delta(steps, epsilon, asked),
        lambda at: np.array([renyi_delta(steps, epsilon, asked) for epsilon in at.tolist()]),
        lambda at: np.array([renyi_delta(steps, epsilon, both) for epsilon in at.tolist()]),
        _largest(question),
    )


def _of(question: Question) -> Numbers:
    both = replace(question, only=None)
    return Numbers(
        question.steps,
        lambda delta: question.epsilon(delta).estimate,
        lambda epsilon: question.delta(epsilon).estimate,
        lambda at: _estimated(question, at),
        lambda at: _estimated(both, at),
        _largest(question),
    )


def _estimated(question: Question, epsilons: Float) -> Float:
    """Estimates of delta at epsilons that rise, from few contours where these converge."""
    steps, found = question.steps, np.full(epsilons.size, np.nan)
    finite = np.isfinite(epsilons)
    if are_pairs(steps) and question.uses > 1.0:
        found[finite] = np.maximum(-np.expm1(np.minimum(epsilons[finite], 0.0)), 0.0)
        for direction in question.directions:
            logs = np.full(epsilons.size, -np.inf)
            held = finite & (epsilons < question.largest_loss(direction))
            logs[held] = contour_log_deltas(steps, direction, epsilons[held], question.uses)
            found = np.maximum(found, np.exp(logs) + infinite_mass(steps, direction))
    for place in np.flatnonzero(np.isnan(found)):
        found[place] = question.delta(float(epsilons[place])).estimate
    return np.asarray(np.minimum(found, 1.0))


def _largest(question: Question) -> float:
    steps = question.steps
    return max((question.largest_loss(direction) for direction in directions(steps)), default=0.0)


def _known(question: Question, what: str) -> Pairs:
    """The steps, where their moments are known: of measures of a loss only bounds are."""
    if not are_pairs(question.steps):
        raise DomainError(
            f"there is no number for {what} where a step is composed that is known by bounds on "
            "its loss alone"
        )
    return question.steps
