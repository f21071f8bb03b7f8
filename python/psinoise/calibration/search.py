"""The least scale that meets a target, from the safe side.

Epsilon at the target's delta falls at least about as fast as the scale grows, and its logarithm
is nearly a straight line in that of the scale; where epsilon is small beside delta, the odds of
delta at the target's epsilon are so (`Target.by_delta`). Where that crosses the target is found
roughly first, by estimates. Then certified bounds are asked for: how far the upper one is from the
target, over the slope, says where to ask again, until it meets the target with hardly any noise to
spare. Both questions must be answered so: epsilon at the target's delta, and delta at its epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from psinoise.accounting.bracket import Bracket
from psinoise.calibration.target import NOTHING, Target, log_ratio
from psinoise.errors import CalibrationError, CertificationError
from psinoise.noise import NoiseLaw

__all__ = ["Calibration", "roughly", "search"]

# The first estimates are this good, in units of the width of a bracket; the crossing that they lead
# to is this good as a share of epsilon.
_ROUGHLY, _ROUGH_CROSSING = 10.0, 2e-3
_FIRST_STRIDE, _LONGEST_STRIDE = 0.25, math.log(64.0)
# By which share a scale may exceed the least one, how far beyond that the first one is, as a share
# of epsilon, and others beyond where the bound would just meet the target: for "estimate", and for
# "certified" in units of the width of a bracket.
_ESTIMATED, _CERTIFIED = (1e-6, 1e-7, 1e-7), (0.8, 0.5, 0.05)
_MOST_ANSWERS, _LONGEST_STEP = 16, 1.0
# Slopes are taken from points this far apart, and are at least this: largest losses of heavy tails
# grow with the logarithm of the scale, which is at most that of `Target.positions`.
_APART, _LEAST_SLOPE = 1e-4, 0.02
# Of an excess, where nothing is left of what is asked.
_MOST_LOG = 700.0


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


def search(target: Target, method: str, *, evidence: bool = True) -> Calibration:
    """The least scale that meets a target, by "certified" bounds on delta or by the "estimate".

    Without ``evidence`` only epsilon at the target's delta is asked for, which is enough: profiles
    do not increase, so that delta at the target's epsilon is at most delta at a smaller epsilon.
    The delta of the result is what follows from that. A CalibrationError says that no scale meets
    the target, or none of a permitted size, a CertificationError that none could be certified.
    """
    try:
        pure = _pure(target)
    except CalibrationError:
        if target.delta == 0.0:
            raise
        pure = None  # out of reach, but some scale without it may not be
    if target.delta == 0.0:
        if pure is None:
            name = getattr(target.law, "__name__", target.law)
            raise CalibrationError(
                f"{name} noise has no largest privacy loss: no scale meets delta = 0"
            )
        return Calibration(pure[1], NOTHING, 0.0, method)
    if pure is None:
        return _approached(target, method, evidence, *_crossing(target, _guess(target)))
    start, slope = _crossing(target, min(_guess(target), pure[0]))
    if start > pure[0] - _ROUGH_CROSSING:
        below = pure[0] - _CERTIFIED[0] * target.width
        if target.above(target.asked(target.noise(below), "certified").lower) > 0.0:
            return _free(pure, below, method)  # for next to nothing
    try:
        found = _approached(target, method, evidence, start, slope)
    except CertificationError:
        return _free(pure, start, method)
    if found.noise.scale < pure[1].scale:
        return found
    least = math.log(found.noise.scale / target.sensitivity) - math.log1p(found.excess)
    return _free(pure, least, method)


def roughly(target: Target) -> NoiseLaw:
    """Noise of about the least scale, for laws without a largest loss; quick, and not proven."""
    return target.noise(_crossing(target, _guess(target))[0])


def _free(pure: tuple[float, NoiseLaw], least: float, method: str) -> Calibration:
    """Noise that has no loss above epsilon, which needs no certificate."""
    excess = max(math.expm1(pure[0] - least), 0.0)
    return Calibration(pure[1], NOTHING, excess, method)


def _pure(target: Target) -> tuple[float, NoiseLaw] | None:
    """Position and noise of the least scale without a loss above epsilon; None if there is none."""
    least, most = target.positions
    unit = target.mechanism(target.noise(min(max(0.0, least), most)))
    if target.epsilon == 0.0 or math.isinf(unit.pure_epsilon()):
        return None

    def excess(position: float) -> float:
        return log_ratio(target.largest_loss(target.noise(position)), target.epsilon)

    start = math.log(unit.pure_epsilon() * target.count / target.epsilon)
    position = _root(excess, start, 1e-15, target)
    scale = target.noise(position).scale
    noise = target.law(scale=float(f"{scale:.13e}"))
    # A short decimal that meets the target as it stands, or else the next scale that does so.
    step = 2.0**-52
    while not target.largest_loss(noise) <= target.epsilon:
        noise = target.law(scale=scale * (1.0 + step))
        step *= 2.0
    return math.log(noise.scale / target.sensitivity), noise


def _guess(target: Target) -> float:
    """The larger of two scales of Gaussian noise: for many small losses, and for a large one.

    The first is that of the central limit. The second has its share of delta, and the epsilon that
    sampling makes the target's, in one use for which a record is sampled.
    """
    count, rate = target.releases
    tail = math.sqrt(2.0 * max(-math.log(target.delta), 0.5))
    deviation = max(target.epsilon / tail, target.delta)
    many = rate * math.sqrt(count) / deviation
    large = target.epsilon - math.log(rate) if target.epsilon > 30.0 else 0.0
    large = large or math.log1p(math.expm1(target.epsilon) / rate)
    tail = math.sqrt(2.0 * max(math.log(count * rate / target.delta), 0.5))
    once = (tail + math.sqrt(tail**2 + 2.0 * large)) / (2.0 * large) if large > 0.0 else 0.0
    return min(max(math.log(max(many, once)), -3.0), 20.0)


def _crossing(target: Target, start: float) -> tuple[float, float]:
    """About where the target is met, and how fast the logarithm of what is asked falls there."""
    known: dict[float, float] = {}

    def value(position: float) -> float:
        if position not in known:
            # Delta falls by about half of what an epsilon near 0 grows.
            close = _ROUGHLY * target.width * target.goal
            found = target.asked(target.noise(position), "estimate", close)
            known[position] = target.above(found.estimate)
        rough = known[position]
        return 0.0 if abs(rough) <= _ROUGH_CROSSING else rough

    try:
        position = _root(value, start, 1e-6, target)
    except CalibrationError:
        if not known:
            raise  # no scale is a float64
        noise = target.noise(max(known))
        if target.asked(noise, "estimate").estimate < math.inf:
            raise
        raise CertificationError(
            f"epsilon at delta {target.delta!r} is not bounded, even for {noise!r}"
        ) from None
    value(position)
    others = [at for at in known if abs(at - position) > _APART and abs(known[at]) < 1.0]
    if not others:
        others = [position - _FIRST_STRIDE]
        value(*others)
    at = min(others, key=lambda at: (abs(at - position), at))
    slope = max((known[at] - known[position]) / (position - at), _LEAST_SLOPE)
    return position + known[position] / slope, slope


def _root(
    function: Callable[[float], float], start: float, tolerance: float, target: Target
) -> float:
    """Where a function of the position is 0 that falls at least about as fast as that grows."""
    least, most = target.positions
    near = min(max(start, least), most)
    value = function(near)
    sign, longest = math.copysign(1.0, value), _FIRST_STRIDE
    while value != 0.0:
        stride = min(max(1.05 * abs(value), _ROUGH_CROSSING), longest)
        far = min(max(near + sign * stride, least), most)
        value = function(far)
        if value * sign <= 0.0:
            break
        if far in (least, most):
            side, end = ("above", most) if sign > 0.0 else ("below", least)
            raise CalibrationError(
                f"the scale that meets the target is {side} {math.exp(end):.6g} sensitivities"
            )
        near, longest = far, min(2.0 * longest, _LONGEST_STRIDE)
    else:
        return near
    from scipy import optimize  # slow to import

    return float(optimize.brentq(function, near, far, xtol=tolerance, rtol=1e-15))


def _approached(
    target: Target, method: str, evidence: bool, position: float, slope: float
) -> Calibration:
    """From about the least scale to one near it that is shown to meet the target."""
    best: Calibration | None = None
    before: tuple[float, float] | None = None
    most, first, aim = _ESTIMATED
    if method == "certified":
        most, first, aim = (target.width * part for part in _CERTIFIED)
    position += first / slope
    for _ in range(_MOST_ANSWERS):
        noise = target.noise(position)
        found = target.asked(noise, method)
        above = target.above(found.upper)
        if before is not None and abs(position - before[0]) > _APART:
            slope = max((above - before[1]) / (before[0] - position), _LEAST_SLOPE)
        before = position, above
        excess = max(math.expm1(min(-target.above(found.estimate) / slope, _MOST_LOG)), 0.0)
        step = min(above / slope + aim, _LONGEST_STEP)
        if best is not None and noise.scale >= best.noise.scale:
            break
        if above <= 0.0:
            bounds = target.evidence(noise, method, found, evidence)
            if bounds is not None:
                best = Calibration(noise, bounds, excess, method)
                if excess <= most or step >= -aim:
                    break
            else:
                step, aim = 2.0 * aim, 2.0 * aim
        position += step
    if best is None:
        raise CertificationError(
            f"no scale near {target.noise(position)!r} could be certified for delta "
            f"{target.delta!r} at epsilon {target.epsilon!r}"
        )
    return best
