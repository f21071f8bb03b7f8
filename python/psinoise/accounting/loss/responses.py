"""Pairs that dominate what is promised: randomized response, and bounded range.

*Randomized response.* With probability ``delta`` the answer tells which data set it is; else it is
one of two, with losses ``up`` and ``-down``. With ``up = down = epsilon`` this pair dominates every
mechanism that is (epsilon, delta)-differentially private, and is one itself: Kairouz, Oh and
Viswanath, "The composition theorem for differential privacy", 2015. With probability ``silent`` the
answer is one of those, of more than two, that both data sets give alike.

*Bounded range.* A mechanism has range ``eta`` if its losses on any two neighbors lie in an interval
of length ``eta``, ``[t - eta, t]`` (Durfee and Rogers, "Practical differentially private top-k
selection with pay-what-you-get composition", 2019). Under ``Q`` the likelihood ratio has mean 1, so
that the expectation of a convex function of it is largest for two answers, with losses ``t`` and
``t - eta``, for some ``t`` in ``[0, eta]`` (Dong, Durfee and Rogers, "Optimal differential privacy
composition for exponential mechanisms", 2020). Their profile

    ``(1 - e^{t - eta}) (1 - e^{eps - t}) / (1 - e^{-eta})``,   ``eps <= t``,

is largest at ``t = (eps + eta)/2``, where it is ``(1 - e^{(eps - eta)/2})^2 / (1 - e^{-eta})``.
This envelope is convex in ``e^eps`` and is the profile of a pair, with

    ``P(L > l) = (1 - e^{(l - eta)/2}) / (1 - e^{-eta})``,   ``-eta <= l <= eta``

(minus the derivative in eps, plus the value). The pair dominates every ``t``, and in compositions
the mechanism, adaptive ones too. It is symmetric: ``Q(L < -l) = P(L > l)``. From below each fixed
``t`` is attained.

A bin ``[a, a + w]`` has masses in the ratio ``e^{a + w/2}``: merged, its node is the middle. Split
to its ends with both masses kept, the share of the upper one is ``1/(1 + e^{-w/2})``.

Sampling
--------
Let ``(P, Q)`` dominate a mechanism under *remove* and ``(Q, P)`` under *add*. With rate ``q`` the
neighbors give ``(1 - q) A + q B`` and ``A``, averaged over the other records that are drawn, where
``B`` has the record and ``A`` has not. By joint convexity the worst draw bounds the average, and

    ``H_gamma((1 - q) A + q B, A) = q H_{1 + (gamma - 1)/q}(B, A)``,
    ``H_gamma(A, (1 - q) A + q B) = (1 - gamma (1 - q)) H_{gamma q / (1 - gamma (1 - q))}(A, B)``

wherever these are not trivial: the sampled pairs ``((1 - q) Q + q P, Q)`` and its reverse dominate
(Zhu, Dong and Wang 2022, theorem 11).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from psinoise._backend import core
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.numerics.golden import peak

# Bins of a loss of bounded range: both bounds on one use are 3e-7 of the range apart.
_BINS = 4096
# Values of t of two answers, among which the worst is sought first.
_ANSWERS = 31


@dataclass(frozen=True)
class RandomizedResponse(AtomPair):
    """Two answers with losses ``up`` and ``-down``, and with probability ``delta`` a certain one.

    Attributes
    ----------
    up, down : not negative, and both 0 or both positive
    delta : in [0, 1]
    sampling_rate : of Poisson sampling
    silent : in [0, 1 - delta)
    """

    up: float
    down: float
    delta: float
    sampling_rate: float
    silent: float = 0.0

    stated = True

    @property
    def unsampled(self) -> tuple[Float, Float]:
        if self.delta == 1.0:
            return np.empty(0), np.empty(0)
        if self.up == 0.0:
            log_mass, loss = np.zeros(1), np.zeros(1)
        else:
            # e^{-up} (1 - e^{-down}) / (1 - e^{-up - down}), and what is left of 1.
            both = _log_less(self.up + self.down)
            log_mass = np.array([_log_less(self.down) - self.up, _log_less(self.up)]) - both
            loss = np.array([self.up, -self.down])
        log_mass += math.log1p(-self.delta - self.silent)
        if self.silent > 0.0:
            log_mass, loss = np.append(log_mass, math.log(self.silent)), np.append(loss, 0.0)
        return log_mass, loss

    @property
    def told(self) -> float:
        return self.delta

    @property
    def exact_loss(self) -> float | None:
        return self.up if self.up == self.down and self.delta < 1.0 else None

    @property
    def symmetric(self) -> bool:
        return self.up == self.down and self.sampling_rate == 1.0


@dataclass(frozen=True)
class RangePair(AtomPair):
    """The pair that dominates all mechanisms of bounded range.

    Attributes
    ----------
    eta : the range, positive
    sampling_rate : of Poisson sampling
    merged : whether bins are merged, for a bound from below, and not split for one from above
    """

    eta: float
    sampling_rate: float
    merged: bool = False

    stated = True

    @property
    def unsampled(self) -> tuple[Float, Float]:
        # Delta falls to 0 as a square at the ends, where bins get as narrow.
        half_turns = np.linspace(-0.5, 0.5, _BINS + 1)
        edges = self.eta * np.sin(np.pi * half_turns)
        half = 0.5 * np.diff(edges)
        # Under Q: e^{-(a + eta)/2} (1 - e^{-w/2}) / (1 - e^{-eta}).
        log_mass = np.log(-np.expm1(-half)) - 0.5 * (edges[:-1] + self.eta) - _log_less(self.eta)
        if self.merged:
            return log_mass, edges[:-1] + half
        # Shares 1/(1 + e^{w/2}) and 1/(1 + e^{-w/2}) of the mass under Q.
        up = log_mass - np.logaddexp(0.0, half)
        low = log_mass - np.logaddexp(0.0, -half)
        return np.logaddexp(np.append(low, -np.inf), np.append(-np.inf, up)), edges

    @property
    def exact_loss(self) -> float | None:
        return None if self.merged else self.eta

    @property
    def several(self) -> bool:
        return not self.merged

    def below(self, direction: Direction, tilt: float | None) -> AtomPair:
        """Of one use with bins merged, of several the worst two answers."""
        return replace(self, merged=True) if tilt is None else self.at_tilt(direction, tilt)

    def at_tilt(self, direction: Direction, tilt: float) -> AtomPair:
        """The two answers with the largest `moment`: between the neighbors of the best of some."""

        def pair(up: float) -> RandomizedResponse:
            return RandomizedResponse(up, self.eta - up, 0.0, self.sampling_rate)

        def moment(up: float) -> float:
            return _moment(pair(up), direction, tilt)

        shares = np.linspace(0.0, 1.0, _ANSWERS + 2).tolist()
        best = max(range(1, _ANSWERS + 1), key=lambda k: moment(self.eta * shares[k]))
        found = peak(lambda share: moment(self.eta * share), shares[best - 1], shares[best + 1])
        return pair(self.eta * found[0])


def _moment(pair: AtomPair, direction: Direction, tilt: float) -> float:
    """`AtomPair.moment` of a loss without infinite ones; small ones keep their digits, as the
    cumulants of `measure.LossMeasure` do."""
    log_p, loss = pair.under_p(direction)
    if tilt == 0.0 or max(tilt, 1.0) * float(np.abs(loss).max(initial=0.0)) > 1.0:
        return pair.moment(direction, tilt)
    terms = log_p, np.exp(log_p), loss
    drift = core.tilted_moments(*terms, -1.0, 0.0, 0.0)[1]
    return math.log1p(core.tilted_moments(*terms, tilt, drift, 0.0)[1]) / tilt


def _log_less(x: float) -> float:
    """``log(1 - e^{-x})``."""
    return math.log(-math.expm1(-x)) if x < 1.0 else math.log1p(-math.exp(-x))
