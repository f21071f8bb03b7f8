"""What is asked of a composition: certified answers, and numbers without a certificate.

A question about one point reads what earlier questions composed, and composes more where that is
not narrow enough. Questions about many points choose few to compose at (``composed``).

Numbers without a certificate are from contour integration (to working precision), of the moments
accountant (upper bounds, up to quadrature), or of the Gaussian limit of many uses (which can be too
small).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

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
from psinoise.accounting.loss.pairs import Float, Pair, normal_std
from psinoise.accounting.loss.steps import Pairs, Step, are_pairs, infinite_mass
from psinoise.accounting.question import POOR, Question
from psinoise.accounting.tradeoff import tradeoff_of
from psinoise.errors import CertificationError, DomainError

# Bounds on delta give way to rounding by this share.
_ROUNDING = 1e-7
# Of a tolerance in epsilon for delta, in turn.
_SHARES = (1.0, 0.1, 1e-3, 1e-5)
# Lines of a trade-off function are added until none can raise any value by more than this share:
# of estimates, and of bounds, which are no smoother than their width.
_CLOSE, _CLOSE_BOUND = 1e-8, 3e-6
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
    lower, upper = _falling(ends[0], ends[2])
    estimate = np.clip(ends[1], lower, upper)
    where = where.reshape(deltas.shape)
    return Brackets(lower[where], estimate[where], upper[where])


def _falling(lower: Float, upper: Float) -> tuple[Float, Float]:
    """Bounds on what falls: one from above holds farther on as well, one from below before."""
    upper = np.minimum.accumulate(upper)
    return np.minimum(np.maximum.accumulate(lower[::-1])[::-1], upper), upper


def delta_of(question: Question, epsilon: float) -> Bracket:
    """Delta at ``epsilon``; the arguments have been checked.

    What a tolerance allows goes by the slope there, which is not that over all of the tolerance.
    """
    asked = question.tolerance
    with np.errstate(under="ignore"):
        if asked is None:
            return question.delta(epsilon)
        for share in _SHARES:
            closer = replace(question, tolerance=share * asked)
            found = closer.delta(epsilon)
            least = found.lower * (1.0 + _ROUNDING)
            if found.upper <= least or math.isinf(epsilon):
                return found
            # The lower one at an epsilon that is smaller by the tolerance is above it.
            if found.upper <= closer.delta(epsilon - asked).lower:
                return found
    raise CertificationError(
        f"delta could not be certified to a width of {asked!r} in epsilon: {found!r}", found
    )


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
    """The rho of all steps whose divergences are ``rho a``, and the other pairs."""
    known = [(_rho(step), step, count) for step, count in question.steps]
    pairs = tuple((step, count) for rho, step, count in known if rho is None)
    if not are_pairs(pairs):
        raise DomainError(
            "divergences must be known of each step, got one that is known by bounds on its loss"
        )
    return math.fsum(count * rho for rho, _, count in known if rho is not None), pairs


def _rho(step: Step) -> float | None:
    """Of normal noise without sampling, and of what is known by its rho alone; never 0."""
    if isinstance(step, Concentrated):
        return step.rho
    if not isinstance(step, Pair) or step.sampling_rate < 1.0:
        return None
    std = normal_std(step)
    return None if std is None else max(0.5 / std / std, 5e-324)


def deltas_of(question: Question, epsilons: Float) -> Brackets:
    """Delta at each epsilon, each distinct one computed once, never rising where epsilon rises."""
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
            lower[finite], upper[finite] = composed(question.shorter, asked).delta()
            if (below := question.below) is not None:
                lower[finite], _ = composed(below, asked).delta()
            poor = (lower[finite] < (1.0 - POOR) * upper[finite]).any()
            if poor and (above := question.above) is not None:
                upper[finite] = np.minimum(upper[finite], composed(above, asked).delta()[1])
    lower, upper = _falling(lower, upper)
    between = np.minimum(lower + _BETWEEN * (upper - lower), upper)
    return Brackets(lower[where], between[where], upper[where])


def tradeoff_bound(question: Question, alphas: Float) -> Float:
    """The trade-off function from upper bounds on delta, of both directions: a lower bound."""

    def prepare(epsilons: Float) -> Callable[[Float], Float]:
        return composed(question, epsilons).upper

    largest = max(map(question.largest_loss, question.directions))
    infinite = question.delta(math.inf).upper

    def beyond(share: float) -> float:
        return min(largest, question.epsilon(min(infinite + share, 1.0)).upper)

    return tradeoff_of(alphas, beyond, infinite, prepare, _CLOSE_BOUND)


@dataclass(frozen=True)
class Numbers(ABC):
    """Epsilon and delta of a composition as plain numbers; see `Accountant.estimate` and others."""

    _question: Question

    @abstractmethod
    def _epsilon(self, delta: float) -> float: ...
    @abstractmethod
    def _delta(self, epsilon: float) -> float: ...
    @abstractmethod
    def _deltas(self, epsilons: Float) -> Float:
        """Delta at epsilons that rise."""

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
        # Lines need both directions.
        question = replace(self._question, only=None)
        deltas = replace(self, _question=question)._deltas
        with np.errstate(under="ignore"):
            largest = max(map(question.largest_loss, question.directions))
            infinite = float(deltas(np.array([math.inf]))[0])
            return tradeoff_of(values, lambda _: largest, infinite, lambda _: deltas, _CLOSE)


class Estimates(Numbers):
    """Those between the bounds of a question that is content with an estimate."""

    def _epsilon(self, delta: float) -> float:
        return self._question.epsilon(delta).estimate

    def _delta(self, epsilon: float) -> float:
        return self._question.delta(epsilon).estimate

    def _deltas(self, epsilons: Float) -> Float:
        """From few contours, where these converge."""
        question, found = self._question, np.full(epsilons.size, np.nan)
        steps, finite = question.steps, np.isfinite(epsilons)
        if are_pairs(steps) and question.uses > 1.0:
            found[finite] = np.maximum(-np.expm1(np.minimum(epsilons[finite], 0.0)), 0.0)
            for direction in question.directions:
                logs = np.full(epsilons.size, -np.inf)
                held = finite & (epsilons < question.largest_loss(direction))
                logs[held] = contour_log_deltas(steps, direction, epsilons[held], question.uses)
                found = np.maximum(found, np.exp(logs) + infinite_mass(steps, direction))
        for place in np.flatnonzero(np.isnan(found)):
            found[place] = self._delta(float(epsilons[place]))
        return np.asarray(np.minimum(found, 1.0))


@dataclass(frozen=True)
class Moments(Numbers):
    """Those of the moments accountant."""

    _steps: Pairs

    def _epsilon(self, delta: float) -> float:
        return renyi_epsilon(self._steps, delta, self._question.directions)

    def _delta(self, epsilon: float) -> float:
        return renyi_delta(self._steps, epsilon, self._question.directions)

    def _deltas(self, epsilons: Float) -> Float:
        return np.array([self._delta(epsilon) for epsilon in epsilons.tolist()])


def estimates(question: Question) -> Numbers:
    """The numbers of contour integration; see `Accountant.estimate`."""
    if question.below is not None:
        _known(question, "an estimate")
    return Estimates(Question(question.steps, only=question.only, estimating=True))


def moments(question: Question) -> Numbers:
    """The bounds of Renyi divergences; see `Accountant.renyi`."""
    # Gaussian noise has all divergences of what is known by its rho.
    steps = [
        ((step.attained or step) if isinstance(step, Concentrated) else step, count)
        for step, count in question.steps
    ]
    known = replace(question, steps=tuple(steps), kept={})
    return Moments(question, _known(known, "a Renyi divergence"))


def central_limit(question: Question) -> Numbers:
    """The Gaussian limit; see `Accountant.clt`."""
    steps = gaussian_limit(_known(question, "a limit"), question.directions)
    return Estimates(Question(steps, estimating=True))


def _known(question: Question, what: str) -> Pairs:
    """The steps, where their moments are known: of measures of a loss only bounds are."""
    if not are_pairs(question.steps):
        raise DomainError(
            f"there is no number for {what} where a step is composed that is known by bounds on "
            "its loss alone"
        )
    return question.steps
