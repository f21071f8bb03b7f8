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
``t`` is attained. Of ``t`` in ``[a, b]`` the envelope is that of ``a`` up to ``eps = 2 a - eta``,
this one up to ``2 b - eta``, and that of ``b`` from there on.

*Choices.* In compositions neighbors may choose ``t`` for each use. The profile of two answers is
the largest of 0, ``1 - e^eps`` and ``u(t) = (1 - e^{t - eta} - e^{eps - t} + e^{eps - eta}) /
(1 - e^{-eta})``: that of the test that accepts the upper answer. ``u`` is concave in ``t``, with
``-u'' <= (e^{b - eta} + e^{eps - a}) / (1 - e^{-eta})`` in ``[a, b]``, so that for
``t = (1 - s) a + s b``

    ``u(t) <= (1 - s) u(a) + s u(b) + ((b - a)^2/8) (e^{b - eta} + e^{eps - a}) / (1 - e^{-eta})``.

Let the upper answers of ``a`` and ``b`` be likelier under ``P`` and less likely under ``Q``, each
by the part of the last term that belongs to it. Then the mean of their profiles with the weights
``1 - s`` and ``s`` is above that of ``t`` at every eps. So of any convex function of the likelihood
ratio one of both has a larger expectation than ``t``: who chooses from a list of ``t`` so
stretched, and the envelopes of what is left at both ends, has no less than who chooses any ``t``.
Sampling, and an exchange of ``P`` and ``Q``, map averages of profiles to averages.

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
_LEAST_BINS = 32
# Values of t of two answers, among which the worst is sought first; and of a list to choose from,
# at most, within what share of the range of the worst one they are equally far apart.
_ANSWERS, _MOST_ANSWERS, _NEAR = 31, 96, 0.03
# What stretches two answers is rounded up, by more than losses are off.
_ROUNDED = 1.0 + 1e-6


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
    among : of which shares of the range ``t`` may be
    """

    eta: float
    sampling_rate: float
    merged: bool = False
    among: tuple[float, float] = (0.0, 1.0)

    stated = True

    @property
    def unsampled(self) -> tuple[Float, Float]:
        low, high = (self.eta * share for share in self.among)
        # Delta falls to 0 as a square at the ends of the range, where bins get as narrow.
        turns = np.arcsin(2.0 * np.array(self.among) - 1.0) / np.pi
        bins = max(math.ceil(_BINS * float(turns[1] - turns[0])), _LEAST_BINS)
        edges = self.eta * np.sin(np.pi * np.linspace(turns[0], turns[1], bins + 1))
        half = 0.5 * np.diff(edges)
        # Under Q: e^{-(a + eta)/2} (1 - e^{-w/2}) / (1 - e^{-eta}).
        log_mass = np.log(-np.expm1(-half)) - 0.5 * (edges[:-1] + self.eta) - _log_less(self.eta)
        if self.merged:
            return log_mass, edges[:-1] + half
        # Shares 1/(1 + e^{w/2}) and 1/(1 + e^{-w/2}) of the mass under Q.
        up = log_mass - np.logaddexp(0.0, half)
        down = log_mass - np.logaddexp(0.0, -half)
        log_mass = np.logaddexp(np.append(down, -np.inf), np.append(-np.inf, up))
        # The lower answer of the least t, and the upper one of the largest.
        if low > 0.0:
            log_mass = np.append(_log_less(low) - _log_less(self.eta), log_mass)
            edges = np.append(low - self.eta, edges)
        if high < self.eta:
            last = _log_less(self.eta - high) - high - _log_less(self.eta)
            log_mass, edges = np.append(log_mass, last), np.append(edges, high)
        return log_mass, edges

    @property
    def exact_loss(self) -> float | None:
        return None if self.merged or self.among[1] < 1.0 else self.eta

    @property
    def several(self) -> bool:
        return not self.merged

    def below(self, direction: Direction, tilt: float | None) -> AtomPair:
        """Of one use with bins merged, of several the worst two answers."""
        return replace(self, merged=True) if tilt is None else self.at_tilt(direction, tilt)

    @property
    def compares_all(self) -> bool:
        return True

    @property
    def countless(self) -> bool:
        return True

    def _answers(self, share: float) -> RandomizedResponse:
        up = self.eta * share
        return RandomizedResponse(up, self.eta - up, 0.0, self.sampling_rate)

    def _worst(self, direction: Direction, tilt: float) -> float:
        """The share with the largest `moment`: between the neighbors of the best of some."""

        def moment(share: float) -> float:
            return _moment(self._answers(share), direction, tilt)

        shares = np.linspace(0.0, 1.0, _ANSWERS + 2).tolist()
        best = max(range(1, _ANSWERS + 1), key=lambda k: moment(shares[k]))
        return float(peak(moment, shares[best - 1], shares[best + 1])[0])

    def at_tilt(self, direction: Direction, tilt: float) -> AtomPair:
        return self._answers(self._worst(direction, tilt))

    def groups(
        self, direction: Direction, tilt: float, most: int
    ) -> tuple[tuple[AtomPair, AtomPair], ...]:
        """Two answers and the same `_stretched`, and the envelopes at both ends of the range."""
        worst, most = self._worst(direction, tilt), max(min(most, _MOST_ANSWERS), 2)
        ends = np.arcsinh(np.array([-worst, 1.0 - worst]) / _NEAR)
        inner = (worst + _NEAR * np.sinh(np.linspace(ends[0], ends[1], most + 1)))[1:-1].tolist()
        found: list[tuple[AtomPair, AtomPair]] = [
            (self._answers(0.5 * (low + high)), replace(self, among=(low, high)))
            for low, high in ((0.0, inner[0]), (inner[-1], 1.0))
        ]
        beside = zip([0.0, *inner[:-1]], inner, [*inner[1:], 1.0], strict=True)
        for before, share, after in beside:
            found.append((self._answers(share), self._stretched(before, share, after)))
        return tuple(found)

    def _stretched(self, before: float, share: float, after: float) -> AtomPair:
        """Two answers, of a list with the neighbors of their share; see above."""
        eta, up, width = self.eta, self.eta * share, self.eta * max(share - before, after - share)
        whole = -math.expm1(-eta)
        bend = _ROUNDED * width * (width / whole) / 8.0
        more, less = bend * math.exp((after - 1.0) * eta), bend * math.exp(-before * eta)
        p_up = -math.expm1(up - eta) / whole
        apart = p_up * -math.expm1(-up) + more + less  # of P and Q
        q_up = p_up * math.exp(-up) - less
        p_low = math.exp(up - eta) * -math.expm1(-up) / whole - more
        if not min(q_up, p_low) > 0.0:
            return replace(self, among=(before, after))
        losses = math.log1p(apart / q_up), math.log1p(apart / p_low)
        return RandomizedResponse(*losses, 0.0, self.sampling_rate)


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
