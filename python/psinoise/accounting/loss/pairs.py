"""The pair of output densities that dominates one use of a mechanism, and its privacy loss.

Noise with density ``p`` and a query of sensitivity ``s`` give the pair ``(T_s p, p)``, with
``T_a p(x) = p(x - a)``. Poisson sampling at rate ``q`` gives two pairs, which are composed apart:

* *remove*: ``P = (1 - q) p + q T_s p`` against ``Q = p``;
* *add*: ``P = p`` against ``Q = (1 - q) p + q T_s p``.

With ``Lambda = log(1 - q + q T_s p / p)`` the loss ``log P/Q`` is ``Lambda`` under *remove* and
``-Lambda`` under *add*; at ``q = 1`` the reflection ``x -> s - x`` maps one pair to the other.

Replacing a sampled record gives ``P = (1 - q) p + q T_s p`` against ``Q = (1 - q) p + q T_{-s} p``
(``adjacency`` says why), which the reflection ``x -> -x`` maps to ``(Q, P)``. Every pair here is of
the form ``((1 - q) p + q T_a p, (1 - q) p + q T_b p)`` with ``b`` 0 or ``-a``; both directions are
computed from ``Q`` and the loss ``Lambda`` of *remove*, since ``P = Q e^Lambda``.

Worst shift
-----------
Neighbors differ by any shift ``|a| <= s``; the guarantee is a supremum over ``a``.

*Lemma.* If ``p`` is symmetric and unimodal (non-increasing in ``|x|``), then
``H_gamma(a) = integral (p - gamma T_a p)^+`` is non-decreasing in ``a >= 0`` for every
``gamma >= 1``; hence ``a = s`` is the worst shift.

*Proof.* Let ``A = {p > gamma T_a p}``, ``a > 0``. Differentiating under the integral,
``dH/da = gamma * integral over A of p'(x - a) dx``, which is the sum over the intervals ``(l, r)``
of ``A`` of ``p(r) - p(l)``, because ``gamma p(x - a) = p(x)`` at their ends (ends at infinity
contribute 0). ``A`` lies in ``x < a/2``, where alone ``p(x) > p(x - a)`` is possible. If
``r <= 0``, unimodality gives ``p(r) >= p(l)``. If ``l < 0 < r`` and ``|l| < r``, then
``p(l) >= p(r)`` and ``p(a + |l|) <= p(a - r)``, so the ratio at ``l`` is at least the ratio at
``r``; both equal ``gamma``, hence equality throughout. On ``(0, a/2)`` the ratio
``p(x)/p(a - x)`` is non-increasing, so no interval of ``A`` begins there. Kinks and jumps follow
by approximation. The case ``gamma < 1`` follows from
``H_gamma(P, Q) = 1 - gamma + gamma H_{1/gamma}(Q, P)``. QED

The profile of a subsampled pair is an increasing function of the unsubsampled one (remove:
``q H(1 + (e^eps - 1)/q)``), so the supremum over shifts commutes with Poisson sampling; and a pair
that dominates each step dominates the composition (Zhu, Dong and Wang 2022, theorem 10).

Laws that are not unimodal have no single worst shift: those in cells have the envelope over shifts
(``cells``), others are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.accounting.loss.largest import largest_log_ratio_bounds, turning_distance
from psinoise.accounting.loss.law import Law
from psinoise.errors import DomainError

Float = NDArray[np.float64]
Direction = Literal["remove", "add"]
#: What a record that is removed, or added, changes.
DIRECTIONS: tuple[Direction, ...] = ("remove", "add")

# Above this log-ratio expm1 overflows, and 1 - q + q exp(l) equals q exp(l) to double precision
# for every sampling rate above exp(-650).
_LARGE_RATIO = 700.0
# A log ratio is a difference of two logs of densities, each right to half of this per unit of its
# size (tests/test_laws.py).
_LOG_ROUNDING = 8e-16
# Of the elementary functions that make the largest loss of a sampled pair.
_LOSS_ROUNDING = 2.0**-50


def mixture_loss(log_ratio: Float, sampling_rate: float) -> Float:
    """``log(1 - q + q exp(l))`` with relative accuracy for any ``q`` and ``l``."""
    if sampling_rate == 1.0:
        return log_ratio
    capped = np.minimum(log_ratio, _LARGE_RATIO)
    change = sampling_rate * np.expm1(capped)
    # Near -q, 1 + change has lost the digits of 1 - q, which the plain sum keeps.
    moderate = np.where(
        change > -0.5,
        np.log1p(change),
        np.log((1.0 - sampling_rate) + sampling_rate * np.exp(capped)),
    )
    return np.where(log_ratio > _LARGE_RATIO, log_ratio + math.log(sampling_rate), moderate)


@dataclass(frozen=True)
class Pair:
    """One use of a mechanism at the worst shift, for both directions at once.

    Attributes
    ----------
    noise, sampling_rate : ``p`` and ``q``, which is positive
    sensitivity : how far the sampled record moves the query under ``P``
    replaced : whether another record moves it the other way under ``Q``; else there is none

    Raises
    ------
    DomainError
        if the law is not unimodal, or not log-concave for a replaced record
    """

    noise: Law
    sensitivity: float
    sampling_rate: float
    replaced: bool = False

    def __post_init__(self) -> None:
        if not self.noise.unimodal:
            raise DomainError(
                "noise must be unimodal or uniform in cells (the worst shift of other laws is not "
                f"known), got {self.noise!r}"
            )
        if self.replaced and not (self.noise.log_concave and math.isinf(self.noise.support)):
            raise DomainError(
                "noise must be log-concave on the whole line for adjacency 'replace' with sampling "
                f"(the worst case of other laws is not known), got {self.noise!r}"
            )

    def _log_density(self, x: Float) -> Float:
        """``log p`` at points of the support, if it ends: but for rounding.

        An end of one law, ``s - A``, may round to an output that it does not have, and so may its
        distance from the other center. A point is moved by less than an ulp of ``A`` more than by
        that, which changes a log by less than an ulp of its size where it falls as an exponential
        function does.
        """
        last = self.noise.support
        if last < math.inf:
            last = math.nextafter(last, 0.0)
            x = np.clip(x, -last, last)
        found: Float = self.noise.logpdf(x)
        return found

    def evaluate(self, x: Float) -> tuple[Float, Float, Float]:
        """``log Q``, the loss without sampling, and the loss ``Lambda``, all under *remove*.

        At outputs that both laws have.
        """
        if self.close_error > 0.0:
            noise, moves = self.noise, (*self.shifts("remove"), self.sampling_rate)
            found = core.point_losses(noise._table, noise.scale, *moves, x)
            return found[0] - noise._log_kept, found[1], found[2]
        base, moved = self._log_density(x), self._log_density(x - self.sensitivity)
        loss = mixture_loss(moved - base, self.sampling_rate)
        if not self.replaced:
            return base, moved - base, loss
        opposite: Float = self.noise.logpdf(x + self.sensitivity)
        other = mixture_loss(opposite - base, self.sampling_rate)
        return base + other, moved - opposite, loss - other

    @cached_property
    def close_error(self) -> float:
        """How far a loss of one shift, without sampling, may be off for close neighbors.

        A difference of logs would be off by more, so that it comes from a difference on a panel of
        the table of the noise (``csrc/kernels/close_ratios.hpp``). 0 of other neighbors.
        """
        if not hasattr(self.noise, "_table"):
            return 0.0
        pair = self.noise.scale, self.sensitivity, self.sampling_rate
        return float(self.noise._table.close_error(*pair))

    @cached_property
    def both_fall(self) -> float:
        """Of a replaced record: how large logs of ``P/p`` and of ``Q/p`` may be that are both
        negative.

        There ``|x| < s / 2``, and ratios are above that of ``p(3 s / 2)`` and ``p(0)``: with
        ``r = log p(3 s / 2) - log p(s / 2)``, the one of ``P`` at ``-s / 2``, above ``3 r / 2``, as
        ``log p`` is concave.
        """
        _, at_half, _ = self.evaluate(np.array([-0.5 * self.sensitivity]))
        # Of larger logs the ratio is so large that it does not matter, and so it is without one.
        ratio = 1.5 * abs(float(at_half[0])) * (1.0 + 1e-9) + self.rounding(1e4)
        known = math.expm1(-ratio) if ratio < math.inf else -1.0
        return -math.log1p(self.sampling_rate * known)

    def rounding(self, size: float) -> float:
        """How far losses without sampling may be off where logs of densities have some size."""
        each = self.close_error if self.close_error > 0.0 else _LOG_ROUNDING * size
        return (len(self.centers) - 1) * each

    def loss(self, x: Float) -> Float:
        """``Lambda(x)``: the loss under *remove*, minus the loss under *add*."""
        return self.evaluate(x)[2]

    def shifts(self, direction: Direction) -> tuple[float, float]:
        """How far the sampled record moves the query under ``P`` and under ``Q``."""
        moved, other = self.sensitivity, -self.sensitivity if self.replaced else 0.0
        return (moved, other) if direction == "remove" else (other, moved)

    def infinite(self, direction: Direction) -> float:
        """Probability under ``P`` of outputs that ``Q`` does not have.

        The shifted law leaves a support that ends at ``A`` with ``P(Z > A - s)``, which the law
        knows best: of a small ``s`` the difference has few digits.
        """
        if math.isinf(self.noise.support) or (direction == "add" and self.sampling_rate < 1.0):
            return 0.0
        return self.sampling_rate * self.noise._left_by(self.sensitivity)

    @property
    def distance(self) -> float:
        """How far the shifts under ``P`` and ``Q`` are apart."""
        return 2.0 * self.sensitivity if self.replaced else self.sensitivity

    @property
    def attained(self) -> Pair:
        """What stands for it where lower ends of brackets are computed."""
        return self

    @property
    def revealed(self) -> Pair:
        """What stands for it where upper ends of brackets are wide."""
        return self

    @property
    def symmetric(self) -> bool:
        """Whether a reflection maps one direction to the other."""
        return self.replaced or self.sampling_rate == 1.0

    @cached_property
    def centers(self) -> tuple[float, ...]:
        """Modes of the densities ``p``, ``T_a p`` and ``T_b p``, from left to right."""
        return tuple(sorted({0.0, *self.shifts("remove")}))

    @property
    def breaks(self) -> set[float]:
        """Where the loss has a kink or turns: it is smooth and monotone in between."""
        noise, s = self.noise, self.sensitivity
        found = {k + a for kink in noise.kinks for k in (kink, -kink) for a in self.centers}
        if not noise.log_concave:
            beyond = turning_distance(noise, s)
            found |= {s + beyond, -beyond} if beyond < math.inf else set()
        return found

    @property
    def total_variation_bound(self) -> float:
        """An upper bound on ``delta(0)`` of one use; that of a composition is at most the sum.

        With ``d = a - b`` it is ``q integral (T_d p - p)^+ = q P(|Z| < d/2) <= q min(1, d p(0))``
        for a symmetric unimodal law. Rounded up by more than some ulp of a logarithm of up to 745.
        """
        peak = math.exp(min(float(self.noise.logpdf(0.0)), 700.0))
        return self.sampling_rate * min(1.0, self.distance * peak * (1.0 + 1e-12))

    def largest_loss(self, direction: Direction) -> float:
        """Supremum of the finite losses, rounded up; ``inf`` if there is none."""
        return self._largest_losses[1][direction]

    def certain_loss(self, direction: Direction) -> float:
        """A lower bound on that supremum."""
        return self._largest_losses[0][direction]

    @cached_property
    def _largest_losses(self) -> list[dict[Direction, float]]:
        """Bounds on the largest losses from below and above: those of bounds on the loss of the
        shift, rounded outwards once more where they take more than that."""
        found = [self._losses_of(x) for x in largest_log_ratio_bounds(self.noise, self.sensitivity)]
        if self.sampling_rate < 1.0 or self.replaced:
            for losses, outwards in zip(found, (-_LOSS_ROUNDING, _LOSS_ROUNDING), strict=True):
                for each, x in losses.items():
                    losses[each] = x * (1.0 + outwards * math.copysign(1.0, x))
        return found

    def _losses_of(self, pure: float) -> dict[Direction, float]:
        """The largest loss of each direction, from that of the shift; right to some ulp."""
        q, bounded = self.sampling_rate, math.isfinite(self.noise.support)
        if 2.0 * self.noise.support <= self.sensitivity:
            # Neighbors have no output in common.
            alone = math.log1p(-q) if q < 1.0 else -math.inf
            return {"remove": alone, "add": -alone if q < 1.0 else alone}
        gain = loss = pure
        if q < 1.0:
            if math.isfinite(pure):
                gain = float(mixture_loss(np.array(pure), q))
            # Where the support of the shifted law ends, sampling leaves log(1 - q); elsewhere
            # log(1 - q + q e^-pure), two positive terms, of which rates near 1 need the digits.
            ends = bounded or pure == math.inf
            loss = -math.log1p(-q) if ends else -float(mixture_loss(np.array(-pure), q))
        if self.replaced:
            # log P/p is largest and log Q/p least at the same end, both being monotone.
            gain = loss = gain + loss
        return {"remove": gain, "add": loss}


def normal_std(pair: Pair) -> float | None:
    """The standard deviation of normal noise, in sensitivities, to 2 ulp; None for other pairs."""
    if pair.replaced or not getattr(pair.noise, "rotation_invariant", False):
        return None
    return float(getattr(pair.noise, "std")) / pair.sensitivity  # noqa: B009  not of every law
