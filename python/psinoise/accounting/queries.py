"""Answers about a composition, by each of the methods.

=========== ==============================================================================
certified   a `Bracket`: the true value lies between its ends (``question``)
upper       the upper end alone
estimate    contour integration to working precision, without a proven bound (``contour``)
renyi       the moments accountant: an upper bound, up to quadrature (``renyi``)
clt         the Gaussian limit of many uses: an approximation (``central_limit``)
=========== ==============================================================================
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.bracket import Bracket
from psinoise.accounting.composed import composed
from psinoise.accounting.estimate.central_limit import gaussian_limit
from psinoise.accounting.estimate.renyi import renyi_delta, renyi_epsilon
from psinoise.accounting.loss.steps import Steps
from psinoise.accounting.question import BETWEEN, Question
from psinoise.errors import CertificationError, DomainError

Float = NDArray[np.float64]

# Bounds on delta give way to rounding by this share.
_ROUNDING = 1e-7

#: Methods whose answers are proven.
CERTIFIED = ("certified", "upper")


class ProfileBracket(NamedTuple):
    """A privacy profile with certified bounds: ``lower <= true delta <= upper`` at each epsilon.

    Attributes
    ----------
    lower, upper : numpy.ndarray
        Certified bounds.
    estimate : numpy.ndarray
        The values by contour integration, not certified themselves.
    """

    lower: Float
    estimate: Float
    upper: Float


def epsilon_of(question: Question, delta: float, method: str) -> Bracket | float:
    """Epsilon at ``delta``; the arguments have been checked."""
    with np.errstate(under="ignore"):
        if method in CERTIFIED:
            found, asked = question.epsilon(delta), question.tolerance
            if method == "upper":
                return found.upper
            if asked is not None and not (found.width <= asked or found.lower == found.upper):
                raise CertificationError(
                    f"epsilon could not be certified to {asked!r}: {found!r}", found
                )
            return found
        if method == "renyi":
            return renyi_epsilon(_known(question, method), delta, question.directions)
        return _estimating(question, method).epsilon(delta).estimate


def delta_of(question: Question, epsilon: float, method: str) -> Bracket | float:
    """Delta at ``epsilon``; the arguments have been checked."""
    with np.errstate(under="ignore"):
        if method in CERTIFIED:
            found, asked = question.delta(epsilon), question.tolerance
            if method == "upper":
                return found.upper
            if asked is not None and not found.upper <= _moved(question, epsilon, found):
                raise CertificationError(
                    f"delta could not be certified to a width of {asked!r} in epsilon: {found!r}",
                    found,
                )
            return found
        if method == "renyi":
            return renyi_delta(_known(question, method), epsilon, question.directions)
        return _estimating(question, method).delta(epsilon).estimate


def _moved(question: Question, epsilon: float, found: Bracket) -> float:
    """What the upper bound may be: a lower bound at an epsilon that is smaller by the tolerance."""
    assert question.tolerance is not None
    least = found.lower * (1.0 + _ROUNDING)
    if found.upper <= least or math.isinf(epsilon):
        return max(least, found.upper)
    return max(least, question.delta(epsilon - question.tolerance).lower)


def _known(question: Question, method: str) -> Steps:
    """The steps, where nothing else is composed: of imported losses only bounds are known."""
    if question.imports:
        raise DomainError(_FROM_ABOVE.format(method))
    return question.steps


def _estimating(question: Question, method: str) -> Question:
    """The question whose estimate is the answer of a method."""
    steps = _known(question, method)
    if method == "clt":
        return Question(gaussian_limit(steps, question.directions), settle=True)
    return Question(steps, ways=question.ways, settle=True)


_FROM_ABOVE = (
    "method must be 'certified' or 'upper' where an imported loss is composed, which is known from "
    "above alone, got {!r}"
)


def profile_of(question: Question, epsilons: Float, method: str) -> ProfileBracket | Float:
    """Delta at each epsilon, each distinct one computed once, never rising where epsilon rises.

    Delta falls in epsilon, so a bound from above holds for all larger epsilons as well, and a bound
    from below for all smaller ones.
    """
    distinct, where = np.unique(epsilons, return_inverse=True)
    where = where.reshape(epsilons.shape)
    if method not in CERTIFIED:
        found = (delta_of(question, at, method) for at in distinct.tolist())
        return np.array([float(value) for value in found])[where]
    lower, upper = np.empty(distinct.size), np.empty(distinct.size)
    finite = np.isfinite(distinct)
    for place in np.flatnonzero(~finite):
        ends = question.delta(float(distinct[place]))
        lower[place], upper[place] = ends.lower, ends.upper
    if finite.any():
        with np.errstate(under="ignore"):
            made = composed(question, distinct[finite])
            lower[finite], upper[finite] = made.delta(distinct[finite])
    lower = np.maximum.accumulate(lower[::-1])[::-1]
    upper = np.minimum.accumulate(upper)
    if method == "upper":
        return np.asarray(upper[where])
    between = lower + BETWEEN * (upper - lower)
    return ProfileBracket(lower[where], between[where], upper[where])
