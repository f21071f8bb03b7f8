"""The least noise that meets a privacy target.

The scale is found on a logarithmic axis. By the lemma of ``psinoise.accounting.pairs``, and that of
``adjacency`` for replaced records, delta at a fixed epsilon falls as the scale grows: ``log
delta(epsilon)``, by the fast estimate, crosses the target once. The answer is then approached from
the safe side: the certified upper bound on delta says how far it is above the target, the slope of
``log delta`` in ``log scale`` turns that into a relative change of the scale, and the scale grows
by a little more until the bound itself meets the target. A narrower certificate is asked for where
the first one costs too much noise.

With delta = 0 the target is a bound on the largest loss, which needs no certificate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from psinoise import _validate
from psinoise.accounting import Mechanism, contract
from psinoise.accounting.adjacency import worst_shift
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.certify import delta_bounds
from psinoise.accounting.lattices import DEFAULT_TOLERANCE
from psinoise.errors import CalibrationError, CertificationError, DomainError
from psinoise.noise import Noise

__all__ = ["Calibration", "calibrate", "calibration"]

# The scale may exceed the least one by this share, and a little more for the last step.
_LARGEST_EXCESS = 8e-5
# Scales in units of the sensitivity. Beyond, the loss of one use is lost in the rounding of log p
# (above), or one use is no protection at all (below).
_LARGEST_LOG_RATIO = 40.0 * math.log(2.0)
_LARGEST_EPSILON = 1e5
# The root is found to this in log scale.
_ROOT = 1e-9
_SLOPE_STEP = 1e-5
_FIRST_STRIDE = 0.25
_LONGEST_STRIDE = math.log(64.0)
# A logarithm this far below its goal is as good as minus infinity, and easier to interpolate.
_FAR_BELOW = -30.0
_MOST_CERTIFICATES = 12
# Of the largest loss of a composition, a few elementary functions of parameters.
_LOSS_ROUNDING = 2.0**-50
# Certificates are made narrower by up to this factor.
_NARROWEST = 1e-4

_AnyNoise = TypeVar("_AnyNoise", bound=Noise)
_Law = Callable[..., Noise]


@dataclass(frozen=True)
class Calibration:
    """A calibrated law, and the evidence that it meets its target."""

    noise: Noise
    delta: Bracket
    """Delta at the target's epsilon, at most the target's; 0 where no loss is above epsilon. Three
    times the estimate if the method is "estimate"."""
    excess: float
    """Share by which the scale exceeds the least one, as measured."""
    method: str


@dataclass(frozen=True)
class _Task:
    """A law without its scale, and a target."""

    law: _Law
    epsilon: float
    delta: float
    sensitivity: float
    count: int
    sampling_rate: float
    adjacency: str
    contribution: float | None

    def noise(self, position: float) -> Noise:
        """The law at a position, the logarithm of scale over sensitivity."""
        scale = math.exp(position) * self.sensitivity
        if not 0.0 < scale < math.inf:
            raise CalibrationError(
                f"no float64 scale meets the target: it would be exp({position:.6g}) times the "
                f"sensitivity {self.sensitivity!r}"
            )
        noise = self.law(scale=scale)
        if not isinstance(noise, Noise):
            raise TypeError(f"law must make noise laws from scale=, got {noise!r}")
        return noise

    def mechanism(self, noise: Noise) -> Mechanism:
        """The query with some noise."""
        return Mechanism(noise, self.sensitivity, contribution=self.contribution)

    def largest_loss(self, noise: Noise) -> float:
        """The largest loss of all uses together; ``inf`` if there is none."""
        mechanism = self.mechanism(noise)
        return float(
            mechanism.epsilon(
                0.0, self.count, self.sampling_rate, self.adjacency, method="estimate"
            )
        )

    def log_delta(self, position: float) -> float:
        """Estimate of log delta at the target's epsilon, relative to the target."""
        mechanism = self.mechanism(self.noise(position))
        delta = mechanism.delta(
            self.epsilon, self.count, self.sampling_rate, self.adjacency, method="estimate"
        )
        return _log_ratio(float(delta), self.delta)

    def bounds(self, noise: Noise, tolerance: float | None) -> Bracket:
        """Certified bounds on delta at the target's epsilon."""
        steps = self.mechanism(noise)._steps(self.count, self.sampling_rate, self.adjacency)
        # How wide they are is not of interest, but what the upper one costs: see `_tolerance`.
        found = delta_bounds(steps, self.epsilon, tolerance)
        if not found.upper > 0.0:
            # Nothing was found above epsilon. That is proof only if no loss is that large.
            if not self.largest_loss(noise) <= self.epsilon:
                raise CertificationError(
                    f"delta at epsilon {self.epsilon!r} could not be told from 0 for {noise!r}"
                )
            return Bracket(0.0, 0.0, 0.0)
        return found

    def certified_epsilon(self, noise: Noise) -> float:
        """What ``Mechanism.epsilon`` says by default."""
        mechanism = self.mechanism(noise)
        return float(mechanism.epsilon(self.delta, self.count, self.sampling_rate, self.adjacency))


def calibrate(
    law: Callable[..., _AnyNoise],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    contribution: float | None = None,
    method: str = "certified",
) -> _AnyNoise:
    """Return the law with the least scale that meets a privacy target.

    Parameters
    ----------
    law : class of noise laws, or callable
        Something that takes ``scale`` as a keyword and returns a :class:`psinoise.Noise`, such as
        ``psinoise.Airy``; delta must fall as the scale grows, as it does for every unimodal law.
    epsilon : float
        The target, in [0, 1e5]; 0 is legal with a positive delta.
    delta : float
        In [0, 1). With 0, only laws with a largest privacy loss can meet the target.
    sensitivity : float
        How far neighboring data sets can move the query; positive and finite.
    count : int
        Uses of the mechanism, at least 1.
    sampling_rate : float
        Rate of Poisson sampling, in (0, 1]; 1 is no sampling.
    adjacency : str
        The neighboring relation; see :meth:`psinoise.Mechanism.epsilon`.
    contribution : float, optional
        For "replace" with sampling; see :class:`psinoise.Mechanism`.
    method : str
        "certified": the certified upper bound on delta meets the target. "estimate": the estimate
        does, which is faster and not proven.

    Returns
    -------
    Noise
        An instance of ``law``.

    Raises
    ------
    CalibrationError
        If no scale meets the target, if every scale does, or if the scale would be outside
        ``2**-40`` to ``2**40`` times the sensitivity.
    CertificationError
        If the accountant cannot certify the answer.
    TypeError, DomainError, OverflowError
        For arguments of the wrong kind, outside their ranges, or too large.

    Notes
    -----
    The scale is never too small: what is returned has been verified. It exceeds the least scale by
    a share of at most 1e-4, mostly 1e-5 to 8e-5, by ``tests/test_calibrate.py``; where a
    certificate that narrow cannot be had the share is larger, and `calibration` reports it.

    Where the default width of certified bounds is fine enough for that (epsilon above about 0.5)
    ``Mechanism.epsilon(delta, ...)`` of the answer is at most the target as well; below, its
    ``tolerance`` must be 1e-4 of epsilon to show it.

    Examples
    --------
    >>> import psinoise as pn
    >>> pn.calibrate(pn.Laplace, epsilon=0.5, delta=0.0, sensitivity=3.0)
    Laplace(scale=6.0)
    """
    found = calibration(
        law,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        count=count,
        sampling_rate=sampling_rate,
        adjacency=adjacency,
        contribution=contribution,
        method=method,
    )
    return cast(_AnyNoise, found.noise)


def calibration(
    law: _Law,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    contribution: float | None = None,
    method: str = "certified",
) -> Calibration:
    """Calibrate a law and keep the evidence; the parameters are those of :func:`calibrate`."""
    task = _checked(law, epsilon, delta, sensitivity, count, sampling_rate, adjacency, contribution)
    certified = _validate.choice("method", method, ("certified", "estimate")) == "certified"
    pure = _pure(task)
    if task.delta == 0.0:
        if pure is None:
            name = getattr(law, "__name__", law)
            raise CalibrationError(
                f"{name} noise has no largest privacy loss: no scale meets delta = 0"
            )
        return Calibration(pure[1], Bracket(0.0, 0.0, 0.0), 0.0, method)
    start = _first_position(task)
    if pure is not None:
        if task.log_delta(pure[0] - _LARGEST_EXCESS) > 0.0:
            # Noise that has no loss above epsilon at all, for next to nothing.
            return Calibration(pure[1], Bracket(0.0, 0.0, 0.0), _LARGEST_EXCESS, method)
        start = min(start, pure[0])
    position = _root(task.log_delta, start, _ROOT)
    if not certified:
        position = _estimated(task, position)
        value = task.delta * math.exp(task.log_delta(position))
        return Calibration(task.noise(position), Bracket(value, value, value), 0.0, method)
    try:
        return _certified(task, position)
    except CertificationError:
        if pure is None:
            raise
        # Noise that has no loss above epsilon needs no certificate.
        excess = max(math.expm1(pure[0] - position), 0.0)
        return Calibration(pure[1], Bracket(0.0, 0.0, 0.0), excess, method)


def _checked(
    law: object,
    epsilon: float,
    delta: float,
    sensitivity: float,
    count: int,
    rate: float,
    way: str,
    contribution: float | None,
) -> _Task:
    if not callable(law) or isinstance(law, Noise):
        raise TypeError(f"law must be a noise class such as psinoise.Airy, got {law!r}")
    epsilon = _validate.real("epsilon", epsilon)
    delta = _validate.probability("delta", delta)
    sensitivity = _validate.positive("sensitivity", sensitivity)
    count = _validate.count("count", count)
    rate = _validate.probability("sampling_rate", rate)
    way = contract.check_adjacency(way)
    if contribution is not None:
        contribution = _validate.positive("contribution", contribution)
    worst_shift(sensitivity, contribution, rate, way)
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
    # Without noise, a record shows whenever it is sampled.
    exposed = -math.expm1(count * math.log1p(-rate)) if rate < 1.0 else 1.0
    if delta >= exposed:
        raise CalibrationError(
            f"every scale meets the target: delta {delta!r} is not below {exposed!r}, the "
            "probability that a record is sampled at all"
        )
    return _Task(law, epsilon, delta, sensitivity, count, rate, way, contribution)


def _pure(task: _Task) -> tuple[float, Noise] | None:
    """Position and noise of the least scale without a loss above epsilon; None if there is none."""
    unit = task.mechanism(task.noise(0.0))
    if task.epsilon == 0.0 or math.isinf(unit.pure_epsilon()):
        return None

    def excess(position: float) -> float:
        return _log_ratio(task.largest_loss(task.noise(position)), task.epsilon)

    position = _root(excess, math.log(unit.pure_epsilon() * task.count / task.epsilon), 1e-15)
    scale = task.noise(position).scale
    noise = task.law(scale=float(f"{scale:.14e}"))
    # A short decimal that meets the target as it stands, or else the next scale that does so
    # beyond the rounding of the loss.
    step, margin = 2.0**-52, 0.0
    while not task.largest_loss(noise) * (1.0 + margin) <= task.epsilon:
        noise = task.law(scale=scale * (1.0 + step))
        step, margin = 2.0 * step, _LOSS_ROUNDING
    return math.log(noise.scale / task.sensitivity), noise


def _first_position(task: _Task) -> float:
    """A guess: Gaussian noise in the central limit, for losses of a few deviations."""
    tail = math.sqrt(2.0 * max(-math.log(task.delta), 0.5))
    deviation = max(task.epsilon / tail, task.delta)
    return min(max(math.log(task.sampling_rate * math.sqrt(task.count) / deviation), -3.0), 20.0)


def _log_ratio(value: float, goal: float) -> float:
    return max(math.log(value) - math.log(goal), _FAR_BELOW) if value > 0.0 else _FAR_BELOW


def _root(function: Callable[[float], float], start: float, tolerance: float) -> float:
    """Where a decreasing function of the position is 0."""
    decreasing = functools.lru_cache(maxsize=None)(function)
    start = min(max(start, -_LARGEST_LOG_RATIO), _LARGEST_LOG_RATIO)
    value = decreasing(start)
    if value == 0.0:
        return start
    sign = 1.0 if value > 0.0 else -1.0
    near, stride = start, _FIRST_STRIDE
    while True:
        far = min(max(near + sign * stride, -_LARGEST_LOG_RATIO), _LARGEST_LOG_RATIO)
        if decreasing(far) * sign <= 0.0:
            break
        if abs(far) == _LARGEST_LOG_RATIO:
            side = "above 2**40" if sign > 0.0 else "below 2**-40"
            raise CalibrationError(f"the scale that meets the target is {side} sensitivities")
        near, stride = far, min(2.0 * stride, _LONGEST_STRIDE)
    from scipy import optimize  # slow to import

    return float(optimize.brentq(decreasing, near, far, xtol=tolerance, rtol=1e-15))


def _estimated(task: _Task, position: float) -> float:
    """The position, or one next to it, on the safe side of the estimate."""
    step = _ROOT
    while task.log_delta(position) > 0.0:
        position, step = position + step, 2.0 * step
    return position


def _certified(task: _Task, start: float) -> Calibration:
    """Grow the scale from the estimated one until the certified bound meets the target."""
    # Shares of delta that one share of the scale is worth.
    slope = (task.log_delta(start) - task.log_delta(start + _SLOPE_STEP)) / _SLOPE_STEP
    if not slope > 0.0:
        raise CertificationError(f"delta does not fall with the scale near {task.noise(start)!r}")
    tolerance, missing = _tolerance(task, start, slope)
    position, margin = start, 1.02
    for _ in range(_MOST_CERTIFICATES):
        position += margin * missing + _ROOT
        noise = task.noise(position)
        bounds = task.bounds(noise, tolerance)
        missing = _missing(task, bounds, slope)
        if missing <= 0.0:
            excess = max(math.expm1(position - start), 0.0)
            missing = 0.0 if tolerance is not None else _missing_by_default(task, noise)
            if missing <= 0.0 or excess + missing > _LARGEST_EXCESS:
                return Calibration(noise, bounds, excess, "certified")
        margin *= 1.5
    raise CertificationError(
        f"no scale near {task.noise(start)!r} could be certified for delta {task.delta!r} at "
        f"epsilon {task.epsilon!r}"
    )


def _missing(task: _Task, bounds: Bracket, slope: float) -> float:
    """By which share the scale is too small for the upper bound; negative if it is not."""
    if bounds.upper == 0.0:
        return -math.inf
    return _log_ratio(bounds.upper, task.delta) / slope


def _tolerance(task: _Task, start: float, slope: float) -> tuple[float | None, float]:
    """A width of certificates that costs little noise, None for the default; and what it costs."""
    tolerance: float | None = None
    default = width = DEFAULT_TOLERANCE * max(1.0, task.epsilon)
    noise = task.noise(start)
    missing = max(_missing(task, task.bounds(noise, None), slope), 0.0)
    while missing > _LARGEST_EXCESS and width > _NARROWEST * default:
        # What a certificate costs is proportional to its width.
        width = max(0.8 * _LARGEST_EXCESS / missing * width, _NARROWEST * default)
        try:
            bounds = task.bounds(noise, width)
        except CertificationError:
            break  # this narrow it cannot be had: the wider one is as safe, and costs more noise
        tolerance, missing = width, max(_missing(task, bounds, slope), 0.0)
    return tolerance, missing


def _missing_by_default(task: _Task, noise: Noise) -> float:
    """By which share the scale is too small for ``Mechanism.epsilon`` to say so by default.

    That bound is made to be sharp in epsilon at a given delta: the last digits differ. Epsilon
    falls at least about as fast as the scale grows.
    """
    try:
        return task.certified_epsilon(noise) / task.epsilon - 1.0 if task.epsilon > 0.0 else 0.0
    except CertificationError:
        # Both bounds on epsilon cannot be had at this width; the upper one on delta has been.
        return 0.0
