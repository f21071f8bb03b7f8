"""The least scale that meets a target, from the safe side.

``log delta(epsilon)``, by the fast estimate, crosses the target once. The answer is then approached
from the safe side: the certified upper bound on delta says how far it is above the target, the
slope of ``log delta`` in ``log scale`` turns that into a relative change of the scale, and the
scale grows by a little more until the bound itself meets the target. A narrower certificate is
asked for where the first one costs too much noise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

from psinoise.accounting.bracket import Bracket
from psinoise.accounting.question import DEFAULT_WIDTH as DEFAULT_TOLERANCE
from psinoise.calibrate.target import Target, log_ratio
from psinoise.errors import CalibrationError, CertificationError
from psinoise.noise import Noise, NoiseLaw

__all__ = ["Calibration", "search"]

# The scale may exceed the least one by this share, and a little more for the last step.
_LARGEST_EXCESS = 8e-5
# Scales in units of the sensitivity. Beyond, the loss of one use is lost in the rounding of log p
# (above), or one use is no protection at all (below).
_LARGEST_LOG_RATIO = 40.0 * math.log(2.0)
# The root is found to this in log scale.
_ROOT = 1e-9
_ROUGHLY = 0.05
_BESIDE = 0.01
_SLOPE_STEP = 1e-5
_FIRST_STRIDE = 0.25
# Where each use has its share of delta and one large loss decides, the guess is this close.
_SHORT_STRIDE = 0.03
_LONGEST_STRIDE = math.log(64.0)
_MOST_CERTIFICATES = 12
# Of the largest loss of a composition, a few elementary functions of parameters.
_LOSS_ROUNDING = 2.0**-50
# Certificates are made narrower by up to this factor.
_NARROWEST = 1e-4


@dataclass(frozen=True)
class Calibration:
    """A calibrated law, and the evidence that it meets its target."""

    noise: NoiseLaw
    delta: Bracket
    """Delta at the target's epsilon, at most the target's; 0 where no loss is above epsilon. Three
    times the estimate if the method is "estimate"."""
    excess: float
    """Share by which the scale, or what is calibrated in its place, exceeds the least one."""
    method: str


def search(target: Target, method: str) -> Calibration:
    """The least scale that meets a target, by "certified" bounds on delta or by the "estimate".

    Raises
    ------
    CalibrationError
        If no scale does, or none of a permitted size.
    CertificationError
        If none could be certified.
    """
    pure = _pure(target)
    if target.delta == 0.0:
        if pure is None:
            name = getattr(target.law, "__name__", target.law)
            raise CalibrationError(
                f"{name} noise has no largest privacy loss: no scale meets delta = 0"
            )
        return Calibration(pure[1], Bracket(0.0, 0.0, 0.0), 0.0, method)
    start = _first_position(target)
    if pure is not None:
        if target.log_delta(pure[0] - _LARGEST_EXCESS) > 0.0:
            # Noise that has no loss above epsilon at all, for next to nothing.
            return Calibration(pure[1], Bracket(0.0, 0.0, 0.0), _LARGEST_EXCESS, method)
        start = min(start, pure[0])
    position = _position(target, start)
    if method == "estimate":
        position = _estimated(target, position)
        value = target.delta * math.exp(target.log_delta(position))
        return Calibration(target.noise(position), Bracket(value, value, value), 0.0, method)
    try:
        return _certified(target, position)
    except CertificationError:
        if pure is None:
            raise
        # Noise that has no loss above epsilon needs no certificate.
        excess = max(math.expm1(pure[0] - position), 0.0)
        return Calibration(pure[1], Bracket(0.0, 0.0, 0.0), excess, method)


def _pure(target: Target) -> tuple[float, Noise] | None:
    """Position and noise of the least scale without a loss above epsilon; None if there is none."""
    unit = target.mechanism(target.noise(0.0))
    if target.epsilon == 0.0 or math.isinf(unit.pure_epsilon()):
        return None

    def excess(position: float) -> float:
        return log_ratio(target.largest_loss(target.noise(position)), target.epsilon)

    position = _root(excess, math.log(unit.pure_epsilon() * target.count / target.epsilon), 1e-15)
    scale = target.noise(position).scale
    noise = target.law(scale=float(f"{scale:.14e}"))
    # A short decimal that meets the target as it stands, or else the next scale that does so
    # beyond the rounding of the loss.
    step, margin = 2.0**-52, 0.0
    while not target.largest_loss(noise) * (1.0 + margin) <= target.epsilon:
        noise = target.law(scale=scale * (1.0 + step))
        step, margin = 2.0 * step, _LOSS_ROUNDING
    return math.log(noise.scale / target.sensitivity), noise


def _central_limit(target: Target) -> float:
    """A guess: Gaussian noise in the central limit, for losses of a few deviations."""
    tail = math.sqrt(2.0 * max(-math.log(target.delta), 0.5))
    deviation = max(target.epsilon / tail, target.delta)
    return min(
        max(math.log(target.sampling_rate * math.sqrt(target.count) / deviation), -3.0), 20.0
    )


def _first_position(target: Target) -> float:
    """A guess: that of the central limit, or more.

    With a small sampling rate one use with a large loss may be all that matters: then each has its
    share of delta, and the scale of one use with that share is quickly found.
    """
    guess = _central_limit(target)
    if not _rare(target):
        return guess
    alone = dataclasses.replace(target, count=1, delta=target.delta / target.count)
    with contextlib.suppress(CalibrationError):
        # Not where epsilon is the largest loss of one use, at which the profile may have a kink.
        return max(_root(alone.log_delta, guess, _ROUGHLY) + _BESIDE, guess)
    return guess


def _position(target: Target, start: float) -> float:
    """Where the estimate meets the target."""
    if _rare(target):
        # An estimate may not settle next to the guess, and do so on other ways to the root.
        with contextlib.suppress(CertificationError):
            return _root(target.log_delta, start, _ROOT, _SHORT_STRIDE)
        start = _central_limit(target)
    return _root(target.log_delta, start, _ROOT)


def _rare(target: Target) -> bool:
    """Whether one use with a large loss may be all that matters."""
    return target.count > 1 and target.sampling_rate < 1.0


def _root(
    function: Callable[[float], float],
    start: float,
    tolerance: float,
    stride: float = _FIRST_STRIDE,
) -> float:
    """Where a decreasing function of the position is 0."""
    start = min(max(start, -_LARGEST_LOG_RATIO), _LARGEST_LOG_RATIO)
    value = function(start)
    if value == 0.0:
        return start
    sign = 1.0 if value > 0.0 else -1.0
    near = start
    while True:
        far = min(max(near + sign * stride, -_LARGEST_LOG_RATIO), _LARGEST_LOG_RATIO)
        if function(far) * sign <= 0.0:
            break
        if abs(far) == _LARGEST_LOG_RATIO:
            side = "above 2**40" if sign > 0.0 else "below 2**-40"
            raise CalibrationError(f"the scale that meets the target is {side} sensitivities")
        near, stride = far, min(2.0 * stride, _LONGEST_STRIDE)
    from scipy import optimize  # slow to import

    return float(optimize.brentq(function, near, far, xtol=tolerance, rtol=1e-15))


def _estimated(target: Target, position: float) -> float:
    """The position, or one next to it, on the safe side of the estimate."""
    step = _ROOT
    while target.log_delta(position) > 0.0:
        position, step = position + step, 2.0 * step
    return position


def _certified(target: Target, start: float) -> Calibration:
    """Grow the scale from the estimated one until the certified bound meets the target."""
    # Shares of delta that one share of the scale is worth.
    slope = (target.log_delta(start) - target.log_delta(start + _SLOPE_STEP)) / _SLOPE_STEP
    if not slope > 0.0:
        raise CertificationError(f"delta does not fall with the scale near {target.noise(start)!r}")
    tolerance, missing = _tolerance(target, start, slope)
    position, margin = start, 1.02
    for _ in range(_MOST_CERTIFICATES):
        position += margin * missing + _ROOT
        noise = target.noise(position)
        bounds = target.bounds(noise, tolerance)
        missing = _missing(target, bounds, slope)
        if missing <= 0.0:
            excess = max(math.expm1(position - start), 0.0)
            missing = 0.0 if tolerance is not None else _missing_by_default(target, noise)
            if missing <= 0.0 or excess + missing > _LARGEST_EXCESS:
                return Calibration(noise, bounds, excess, "certified")
        margin *= 1.5
    raise CertificationError(
        f"no scale near {target.noise(start)!r} could be certified for delta {target.delta!r} at "
        f"epsilon {target.epsilon!r}"
    )


def _missing(target: Target, bounds: Bracket, slope: float) -> float:
    """By which share the scale is too small for the upper bound; negative if it is not."""
    if bounds.upper == 0.0:
        return -math.inf
    return log_ratio(bounds.upper, target.delta) / slope


def _tolerance(target: Target, start: float, slope: float) -> tuple[float | None, float]:
    """A width of certificates that costs little noise, None for the default; and what it costs."""
    tolerance: float | None = None
    default = width = DEFAULT_TOLERANCE * max(1.0, target.epsilon)
    noise = target.noise(start)
    missing = max(_missing(target, target.bounds(noise, None), slope), 0.0)
    while missing > _LARGEST_EXCESS and width > _NARROWEST * default:
        # What a certificate costs is proportional to its width.
        width = max(0.8 * _LARGEST_EXCESS / missing * width, _NARROWEST * default)
        try:
            bounds = target.bounds(noise, width)
        except CertificationError:
            break  # this narrow it cannot be had: the wider one is as safe, and costs more noise
        tolerance, missing = width, max(_missing(target, bounds, slope), 0.0)
    return tolerance, missing


def _missing_by_default(target: Target, noise: Noise) -> float:
    """By which share the scale is too small for ``Mechanism.epsilon`` to say so by default.

    That bound is made to be sharp in epsilon at a given delta: the last digits differ. Epsilon
    falls at least about as fast as the scale grows.
    """
    try:
        return (
            target.certified_epsilon(noise) / target.epsilon - 1.0 if target.epsilon > 0.0 else 0.0
        )
    except CertificationError:
        # Both bounds on epsilon cannot be had at this width; the upper one on delta has been.
        return 0.0
