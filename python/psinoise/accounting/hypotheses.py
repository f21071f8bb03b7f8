"""What an epsilon says about an adversary: tests between two data sets, and beliefs about them.

A test that takes one neighbor for the other with probability ``p`` (false positive) and the other
way round with ``q`` (false negative) has, under (epsilon, delta)-differential privacy, for the set
of outputs that it rejects and for its complement,

    ``p + exp(epsilon) q >= 1 - delta``   and   ``exp(epsilon) p + q >= 1 - delta``,

equation (14) of Zawacki and Abed (arXiv:2504.18411, 2025) for ``delta = 0``; Wasserman and Zhou, "A
statistical framework for differential privacy", 2010. Added up: ``p + q >= 2 (1 - delta) / (1 +
exp(epsilon))``, (15). The whole curve of a mechanism is `psinoise.Mechanism.tradeoff`.

By Bayes' rule the odds of one neighbor change by the likelihood ratio of the output, which for pure
privacy is in ``[exp(-epsilon), exp(epsilon)]``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from psinoise import _validate
from psinoise.accounting import contract
from psinoise.accounting.loss.pairs import Float
from psinoise.errors import DomainError

__all__ = ["epsilon_for_errors", "epsilon_of_errors", "posterior_bounds"]

_LEAST_NORMAL = 2.0**-1022


def posterior_bounds(prior: ArrayLike, epsilon: float) -> tuple[Float, Float]:
    """What the probability of one of two neighbors can become when an output has been seen.

    Parameters
    ----------
    prior : array_like
        The probability before, in [0, 1].
    epsilon : float
        Pure, of all that is seen; at least 0, may be infinite.

    Returns
    -------
    lower, upper : ndarray
        Of the shape of ``prior``. Attained by randomized response.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or outside their ranges.

    Examples
    --------
    >>> from psinoise.accounting import hypotheses
    >>> lower, upper = hypotheses.posterior_bounds(0.5, epsilon=1.0)
    >>> round(float(lower), 4), round(float(upper), 4)
    (0.2689, 0.7311)
    """
    loss = contract.check_epsilon(epsilon)
    if not loss >= 0.0:
        raise DomainError(f"epsilon must be at least 0, got {epsilon!r}")
    p = contract.check_probabilities("prior", prior)
    fall = math.exp(-loss)
    with np.errstate(invalid="ignore"):
        lower = np.where(p == 1.0, 1.0, p * fall / (p * fall + (1.0 - p)))
        upper = np.where(p == 0.0, 0.0, p / (p + (1.0 - p) * fall))
    return lower, upper


def epsilon_of_errors(false_positive: float, false_negative: float, delta: float = 0.0) -> float:
    """The least epsilon that a mechanism can have if some test has these errors, by (14).

    A bound from below: what an audit has seen, if the rates are known and not estimated.

    Parameters
    ----------
    false_positive, false_negative : float
        In [0, 1].
    delta : float
        In [0, 1].

    Returns
    -------
    float
        0 for a test that is no better than a guess, ``inf`` for one that is never wrong on one
        side.

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or outside their ranges.

    Examples
    --------
    >>> from psinoise.accounting import hypotheses
    >>> round(hypotheses.epsilon_of_errors(0.05, 0.5), 4)
    2.3026
    """
    p = _validate.probability("false_positive", false_positive)
    q = _validate.probability("false_negative", false_negative)
    room = 1.0 - _validate.probability("delta", delta)
    found = 0.0
    for one, other in ((p, q), (q, p)):
        if one < room:
            # A larger error has a smaller epsilon; the quotient is finite.
            least = max(other, _LEAST_NORMAL)
            found = max(found, math.log((room - one) / least) if other > 0.0 else math.inf)
    return found


def epsilon_for_errors(total: float) -> float:
    """The largest pure epsilon at which false positives and negatives of any test add up to
    ``total`` at least, by (15): ``log(2 / total - 1)``.

    Parameters
    ----------
    total : float
        In (0, 1].

    Raises
    ------
    TypeError, DomainError
        For arguments of the wrong kind or outside their ranges.

    Examples
    --------
    >>> from psinoise.accounting import hypotheses
    >>> round(hypotheses.epsilon_for_errors(0.5), 4)
    1.0986
    """
    least = _validate.positive("total", total)
    if not least <= 1.0:
        raise DomainError(f"total must be at most 1 (a guess has 1), got {total!r}")
    return math.log((2.0 - least) / least)
