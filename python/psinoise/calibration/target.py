"""What is asked of a law: a target, and how far a scale is from it.

Scales are on a logarithmic axis, in units of the sensitivity: a *position* is the logarithm of
scale over sensitivity. By the lemma of ``psinoise.accounting.loss.pairs``, and that of
``adjacency`` for replaced records, delta at a fixed epsilon falls as the position grows, and
epsilon at a fixed delta does. Under random allocation, too: a pair whose profiles of both
directions are below those of another one is post-processing of it (Blackwell's theorem), and what
is done to each output of an epoch makes one epoch of the other. Of batches of fixed size the bound
is an increasing function of the profile of one use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psinoise import _validate
from psinoise.accounting import contract
from psinoise.accounting.adjacency import worst_shift
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.loss.steps import Steps
from psinoise.accounting.question import Question
from psinoise.accounting.widths import DEFAULT_WIDTH
from psinoise.errors import CalibrationError, CertificationError, DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import Family, NoiseLaw
from psinoise.sampling import RandomAllocation, Sampling, WithoutReplacement

__all__ = ["NOTHING", "Law", "Target", "checked", "log_ratio"]

NOTHING = Bracket(0.0, 0.0, 0.0)
"""The delta of what has no loss above epsilon."""

_LARGEST_EPSILON = 1e5
# Of scales in sensitivities, and of sensitivities in scales.
_FARTHEST = 2.0**40
# Of positions.
_ROUNDING = 1e-14
# A logarithm this far from its goal is as good as an infinite one, and easier to interpolate.
_FAR = 30.0

Law = Callable[..., NoiseLaw]


@dataclass(frozen=True)
class Target:
    """A law without its scale, and what it is to meet."""

    law: Law
    epsilon: float
    delta: float
    sensitivity: float
    count: int
    sampling_rate: float
    adjacency: str
    contribution: float | None
    sampling: RandomAllocation | WithoutReplacement | None = None
    """A scheme in the place of Poisson sampling, whose rate is 1 then."""
    width: float = DEFAULT_WIDTH
    """Of certified brackets, as a share of epsilon."""

    @property
    def use(self) -> dict[str, Any]:
        """Arguments of `Mechanism.epsilon` and `Mechanism.delta`."""
        return {
            "count": self.count,
            "sampling_rate": self.sampling_rate,
            "adjacency": self.adjacency,
            "sampling": self.sampling,
        }

    @property
    def releases(self) -> tuple[int, float]:
        """How many releases there are, and the share of the records that one of them sees."""
        scheme = self.sampling
        if isinstance(scheme, RandomAllocation):
            return self.count * scheme.steps, scheme.participations / scheme.steps
        if isinstance(scheme, WithoutReplacement):
            return self.count, scheme.batch / scheme.population
        return self.count, self.sampling_rate

    @property
    def exposed(self) -> float:
        """The probability that some release sees a record at all."""
        count, rate = self.releases
        if rate == 1.0 or isinstance(self.sampling, RandomAllocation):
            return 1.0
        return -math.expm1(count * math.log1p(-rate))

    def noise(self, position: float) -> NoiseLaw:
        """The law at a position, the logarithm of scale over sensitivity."""
        scale = math.exp(position) * self.sensitivity
        if not 0.0 < scale < math.inf:
            raise CalibrationError(
                f"no float64 scale meets the target: it would be exp({position:.6g}) times the "
                f"sensitivity {self.sensitivity!r}"
            )
        return self._of_scale(scale)

    def _of_scale(self, scale: float) -> NoiseLaw:
        noise = self.law(scale=scale)
        if not (isinstance(noise, NoiseLaw) and noise.ordered_by_scale):
            raise TypeError(f"law must make noise laws from scale=, got {noise!r}")
        return noise

    @property
    def positions(self) -> tuple[float, float]:
        """The least and the largest position: that of the least scale of the law, or one where one
        use is no protection at all, to one where its loss is lost in the rounding of ``log p``."""
        _check_parameters(self.law)
        unit = self._of_scale(1.0)
        # The sensitivity must be one of the law's, and the worst case under sampling proven.
        self._one_use(unit)
        least, most = (scale / self.sensitivity for scale in unit.scale_limits)
        low, high = max(least, 1.0 / _FARTHEST), min(most, _FARTHEST)
        return math.log(low) + _ROUNDING, math.log(high) - _ROUNDING

    def mechanism(self, noise: Any) -> Mechanism:
        """The query with some noise."""
        return Mechanism(noise, self.sensitivity, contribution=self.contribution)

    def _one_use(self, noise: NoiseLaw) -> Steps:
        mechanism = self.mechanism(noise)
        return mechanism.sampled(self.sampling_rate, self.sampling, self.adjacency)

    def largest_loss(self, noise: NoiseLaw) -> float:
        """The largest loss of all uses together, rounded up; ``inf`` if there is none."""
        found = self.mechanism(noise).epsilon(0.0, **self.use)
        return float(found.upper)

    def capped(self, delta: Bracket) -> Bracket:
        """Bounds on the delta of what is known to meet the target."""
        lower, estimate, upper = (min(value, self.delta) for value in delta)
        return Bracket(lower, estimate, upper, delta.composer)

    @property
    def by_delta(self) -> bool:
        """Whether delta at the target's epsilon is asked for, not epsilon at the target's delta.

        A share of the scale takes about that share of ``delta (1 - delta/E)`` from delta, ``E`` the
        most that delta can be (`exposed`). Epsilon then falls by that over the slope of the
        profile, ``e^epsilon Q(L > epsilon) = P(L > epsilon) - delta``, at most ``E - delta``: by
        ``delta/E`` or more. Where that is above epsilon its logarithm falls without end.
        """
        return self.epsilon * self.exposed < self.delta

    def asked(self, noise: NoiseLaw, method: str, tolerance: float | None = None) -> Bracket:
        """Epsilon at the target's delta, or delta at its epsilon.

        By the "estimate" all three numbers are that; a tolerance is how close it is to be.
        """
        return self._answer(noise, method, tolerance, self.by_delta)

    def above(self, value: float) -> float:
        """How far what is asked is above the target, on an axis on which it falls about as fast as
        the position grows: the logarithm of epsilon, or of the odds of delta."""
        if not self.by_delta:
            return log_ratio(value, self.epsilon)
        rest = max(self.exposed - value, 0.0)
        odds = value / rest if rest > 0.0 else math.inf
        return log_ratio(odds, self.delta / (self.exposed - self.delta))

    @property
    def goal(self) -> float:
        """What `asked` may be at most."""
        return self.delta if self.by_delta else self.epsilon

    def evidence(
        self, noise: NoiseLaw, method: str, found: Bracket, both: bool = True
    ) -> Bracket | None:
        """Delta at the target's epsilon, if what is ``found`` and the other question meet the
        target.

        If the other need not be asked (not ``both``), what follows. A CertificationError where no
        loss above epsilon was found, and there are some.
        """
        if not found.upper <= self.goal:
            return None
        if not both:
            return Bracket(0.0, self.delta, self.delta)
        other = self._answer(noise, method, None, not self.by_delta)
        delta, epsilon = (found, other) if self.by_delta else (other, found)
        nothing = method == "certified" and not delta.upper > 0.0
        if nothing and not self.largest_loss(noise) <= self.epsilon:
            raise CertificationError(
                f"delta at epsilon {self.epsilon!r} could not be told from 0 for {noise!r}"
            )
        return delta if delta.upper <= self.delta and epsilon.upper <= self.epsilon else None

    def _answer(
        self, noise: NoiseLaw, method: str, tolerance: float | None, of_delta: bool
    ) -> Bracket:
        steps = tuple((step, self.count * uses) for step, uses in self._one_use(noise))
        if tolerance is None and self.width != DEFAULT_WIDTH and not self.by_delta:
            tolerance = self.width * self.epsilon
        question = Question(steps, tolerance=tolerance, estimating=method == "estimate")
        found = question.delta(self.epsilon) if of_delta else question.epsilon(self.delta)
        if method == "certified":
            return found
        return Bracket(found.estimate, found.estimate, found.estimate)


def checked(
    law: object,
    epsilon: float,
    delta: float,
    sensitivity: float,
    count: int,
    rate: float,
    direction: str,
    contribution: float | None,
    sampling: Sampling | None = None,
) -> Target:
    """The target of valid arguments, which are those of :func:`psinoise.calibrate`."""
    other = isinstance(law, type) and not issubclass(law, NoiseLaw)
    if not callable(law) or isinstance(law, NoiseLaw) or other:
        raise TypeError(f"law must be a noise class such as psinoise.Airy, got {law!r}")
    epsilon = _validate.real_below("epsilon", epsilon)
    delta = _validate.probability_below("delta", delta)
    sensitivity = _validate.positive_above("sensitivity", sensitivity)
    count = _validate.count("count", count)
    rate, scheme = contract.check_sampling(rate, sampling)
    direction = contract.check_adjacency(direction)
    if contribution is not None:
        contribution = _validate.positive_above("contribution", contribution)
    worst_shift(sensitivity, contribution, rate, direction)
    if not 0.0 <= epsilon <= _LARGEST_EPSILON:
        raise DomainError(f"epsilon must be in [0, {_LARGEST_EPSILON:g}], got {epsilon!r}")
    if delta == 1.0:
        raise DomainError("delta must be below 1 (any noise meets 1), got 1.0")
    if count == 0:
        raise DomainError("count must be at least 1 (no use needs no noise), got 0")
    if rate == 0.0:
        raise DomainError("sampling_rate must be positive (no record is ever used), got 0.0")
    if epsilon == delta == 0.0:
        raise CalibrationError("no noise meets epsilon = 0 and delta = 0 together")
    target = Target(law, epsilon, delta, sensitivity, count, rate, direction, contribution, scheme)
    # Without noise, a record shows whenever it is sampled.
    if delta >= target.exposed:
        raise CalibrationError(
            f"every scale meets the target: delta {delta!r} is not below {target.exposed!r}, the "
            "probability that a record is sampled at all"
        )
    return target


def _check_parameters(law: Law) -> None:
    """Refuse laws that need parameters besides their size, and say how to give them."""
    if isinstance(law, type) and issubclass(law, NoiseLaw):
        law = Family(law)
    if isinstance(law, Family) and law.missing:
        name, given = law.law.__name__, ", ".join(f"{name}=..." for name in law.missing)
        raise TypeError(
            f"{name} needs {', '.join(law.missing)}: law must be "
            f"psinoise.noise.Family(psinoise.{name}, {given})"
        )


def log_ratio(value: float, goal: float) -> float:
    """The logarithm of a ratio, not far from 0."""
    if not value > 0.0:
        return -_FAR
    return min(max(math.log(value) - math.log(goal), -_FAR), _FAR)
