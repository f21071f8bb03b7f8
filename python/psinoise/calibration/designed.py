"""Laws that are made for a target, and are not given by their size.

Most are what a theorem says: `for_target` of the law. The accountant checks the answer where it
can; rounding may put it an ulp beyond the target, and it is made again for a little less. Of a
cactus law the bound of the cost is searched for; an optimal unimodal one is found with its cost.
What is returned has been verified.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from psinoise.accounting.bracket import Bracket
from psinoise.accounting.question import Question
from psinoise.calibration.search import Calibration, roughly
from psinoise.calibration.target import NOTHING, Target
from psinoise.errors import CalibrationError, CertificationError, DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import Cactus, Family, Gaussian, NoiseLaw, OptimalUnimodal, PrivacyTarget
from psinoise.noise._cell_costs import checked_cost
from psinoise.noise._grid import gaussian_deviation, grid_for

__all__ = ["design", "designed_law"]

# By which shares a law is made for less than the target, until the accountant agrees; the last is
# more than the rounding of what a theorem says, and stays where the accountant cannot tell.
_MARGINS = (0.0, 1e-14, 1e-12, 1e-9)
# Of a cactus law the bound of the cost is found to this share, and certificates are this wide, in
# shares of epsilon.
_COST_TOLERANCE, _WIDTH = 1e-3, 5e-3
_FIRST_STRIDE, _MOST_STRIDES = 0.05, 12
# The fewer shifts there are, the closer sampled uses are accounted.
_CELLS, _FINEST = ("cells_per_sensitivity", "cells", "tail_ratio"), 40
# A logarithm of epsilon over the target that is far from 0.
_FAR = 5.0
# What is added to a step of the cost of a unimodal law, as a share of it and of epsilon.
_MORE, _LEAST, _MOST_ANSWERS = 0.02, 1e-7, 12
# Shares by which epsilon, or delta at epsilon = 0, of one use of it is less than the target.
_UNIMODAL_MARGINS = (1e-11, 1e-8, 1.5e-5, 1e-4, 1e-3)


def designed_law(law: object) -> tuple[type[NoiseLaw], Mapping[str, Any]] | None:
    """Class and arguments of a law that is made for targets, None for anything else."""
    kind: object = law
    arguments: Mapping[str, Any] = {}
    if isinstance(law, Family):
        kind, arguments = law.law, law.shape
    elif isinstance(law, functools.partial) and not law.args:
        kind, arguments = law.func, law.keywords
    if isinstance(kind, type) and issubclass(kind, NoiseLaw) and not kind.ordered_by_scale:
        return kind, arguments
    return None


def design(law: type[NoiseLaw], arguments: Mapping[str, Any], target: Target) -> Calibration:
    """The member of a designed law that meets a target; an error says why there is none."""
    if target.adjacency == "replace" and target.sampling_rate < 1.0:
        raise CalibrationError(f'{law.__name__} noise is not made for "replace" with sampling')
    if target.sampling is not None:
        raise CalibrationError(
            f"{law.__name__} noise is made for uses with Poisson sampling, got {target.sampling!r}"
        )
    if issubclass(law, Cactus):
        return _cactus(arguments, target)
    if issubclass(law, OptimalUnimodal):
        return _unimodal(arguments, target)
    for margin in _MARGINS:
        less = PrivacyTarget(
            target.epsilon * (1.0 - margin),
            target.delta * (1.0 - margin),
            target.sensitivity,
            target.count,
            target.sampling_rate,
        )
        noise = law.for_target(less, **arguments)
        bounds = _delta(noise, target)
        if bounds is not None and bounds.upper <= target.delta:
            return Calibration(noise, bounds, margin, "certified")
    # The theorem stands where the accountant's bounds are too wide, or it has none.
    known = bounds or Bracket(0.0, target.delta, target.delta)
    if not known.lower <= target.delta:
        raise CalibrationError(f"{noise!r} was made for the target and does not meet it: {known!r}")
    return Calibration(noise, target.capped(known), margin, "certified")


def _delta(noise: Any, target: Target) -> Bracket | None:
    """Bounds of delta at the target's epsilon; None if the accountant cannot say."""
    try:
        mechanism = Mechanism(noise, target.sensitivity)
        if float(mechanism.epsilon(0.0, **target.use).upper) <= target.epsilon:
            return NOTHING
        found: Bracket = mechanism.delta(target.epsilon, **target.use)
    except (DomainError, CertificationError):
        return None
    return found


# -- cactus laws -----------------------------------------------------------------------------------


def _cactus(arguments: Mapping[str, Any], target: Target) -> Calibration:
    """The cactus law with the least bound of its expected cost that meets a target.

    The bound is searched on a logarithmic axis, for the certified upper bound of epsilon at the
    target's delta. That epsilon falls as the bound grows is what one expects, and not proven: the
    answer has been verified, and so has been that one with a little less cost fails.
    """
    if "mean_cost" in arguments:
        raise TypeError("mean_cost is what is calibrated, and must not be given")
    if target.delta == 0.0 or target.epsilon == 0.0:
        raise CalibrationError("Cactus noise is calibrated for epsilon and delta above 0")
    gaussian = roughly(replace(target, law=Gaussian))
    words = dict(arguments)
    cost = checked_cost(words.pop("cost", 2.0))

    def at(position: float) -> dict[str, Any]:
        """Arguments of the law of a bound: with cells for its size, if none are given."""
        bound = math.exp(position)
        found = {"sensitivity": target.sensitivity, "cost": cost, "mean_cost": bound, **words}
        if not words.keys() & set(_CELLS):
            size = gaussian_deviation(cost, bound) / target.sensitivity
            found.update(zip(_CELLS, grid_for(cost, size, _FINEST), strict=True))
        return found

    def excess(position: float) -> float:
        tried = at(position)
        try:
            noise = Cactus._candidate(**tried)
        except CalibrationError:
            return _FAR  # the cells are too wide for a cost that small
        mechanism = Mechanism(noise, target.sensitivity)
        pair, uses = mechanism.dominating(target.sampling_rate, target.adjacency)
        width = _WIDTH * max(target.epsilon, 1e-3)
        question = Question(((pair, target.count * uses),), tolerance=width)
        found = float(question.epsilon(target.delta))
        return max(-_FAR, math.log(max(found, 1e-9) / target.epsilon))

    start = math.log(gaussian.expected_cost(cost) if callable(cost) else gaussian.moment(cost))
    low, high = _bracketed(excess, start)
    noise = Cactus(**at(high))
    delta = Mechanism(noise, target.sensitivity).delta(target.epsilon, **target.use)
    # That the target's delta is a bound has been seen by that of epsilon.
    return Calibration(noise, target.capped(delta), math.expm1(high - low), "certified")


def _bracketed(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """Neighboring positions, the first of which fails and the second meets the target."""
    from scipy import optimize  # slow to import

    seen: dict[float, float] = {}

    def decreasing(position: float) -> float:
        if position not in seen:
            seen[position] = excess(position)
        return seen[position]

    sign = 1.0 if decreasing(start) > 0.0 else -1.0
    near, stride = start, _FIRST_STRIDE
    for _ in range(_MOST_STRIDES):
        far = near + sign * stride
        if decreasing(far) * sign <= 0.0:
            break
        near, stride = far, 2.0 * stride
    else:
        raise CalibrationError("no cost bound of cactus noise meets the target")
    root = float(optimize.brentq(decreasing, near, far, xtol=_COST_TOLERANCE))
    step = _COST_TOLERANCE
    while decreasing(root) > 0.0:
        root, step = root + step, 2.0 * step
    high = min(position for position, value in seen.items() if value <= 0.0)
    low = max((position for position in seen if position < high), default=high - step)
    return low, high


# -- optimal unimodal laws -------------------------------------------------------------------------


def _unimodal(arguments: Mapping[str, Any], target: Target) -> Calibration:
    """The optimal unimodal law of least expected cost that meets a target.

    The law of least cost at the epsilon is met by an estimate; then its cost is raised by what the
    certified bound is above the target, over the slope of epsilon in the cost, until the bound
    meets it. Of one use, and at delta = 0, where one linear program has the law of an epsilon, that
    of a little less is made instead.
    """
    for name in ("mean_cost", "epsilon", "delta", "count", "sampling_rate", "sensitivity"):
        if name in arguments:
            raise TypeError(f"{name} is said by the target, and must not be given")
    single = target.count == 1 or target.delta == 0.0
    if target.epsilon == 0.0 and not (single and target.delta > 0.0):
        raise CalibrationError(
            "OptimalUnimodal noise is made for epsilon above 0, but for one use and delta above 0"
        )
    words: dict[str, Any] = {
        "delta": target.delta,
        "count": target.count,
        "sampling_rate": target.sampling_rate,
        "sensitivity": target.sensitivity,
        **arguments,
    }
    if single:
        return _of_one_use(words, target)
    noise = OptimalUnimodal(epsilon=target.epsilon, **words)
    words.update(
        cells_per_sensitivity=noise.cells_per_sensitivity,
        cells=noise.cells,
        tail_ratio=noise.tail_ratio,
    )
    first, step = noise.mean_cost, 0.0
    for _ in range(_MOST_ANSWERS):
        mechanism = Mechanism(noise, target.sensitivity)
        above = float(mechanism.epsilon(target.delta, **target.use).upper) - target.epsilon
        if above <= 0.0:
            delta = mechanism.delta(target.epsilon, **target.use)
            if delta.upper <= target.delta:
                excess = max(noise.mean_cost / first - 1.0, 0.0)
                return Calibration(noise, delta, excess, "certified")
            above = 0.0
        # Where the slope misleads, the step doubles.
        step = max((above * (1.0 + _MORE) + _LEAST * target.epsilon) / noise.slope, 2.0 * step)
        noise = OptimalUnimodal(mean_cost=noise.mean_cost + step, **words)
    raise CalibrationError(
        f"no optimal unimodal noise near {noise.mean_cost!r} could be certified for delta "
        f"{target.delta!r} at epsilon {target.epsilon!r}"
    )


def _of_one_use(words: dict[str, Any], target: Target) -> Calibration:
    for margin in _UNIMODAL_MARGINS:
        less = 1.0 - margin
        delta = target.delta * (1.0 if target.epsilon > 0.0 else less)
        noise = OptimalUnimodal(epsilon=target.epsilon * less, **{**words, "delta": delta})
        words["cells_per_sensitivity"] = noise.cells_per_sensitivity
        mechanism = Mechanism(noise, target.sensitivity)
        if target.delta > 0.0:
            found = mechanism.delta(target.epsilon, **target.use)
            met = found.upper <= target.delta
        else:
            found = NOTHING
            met = float(mechanism.epsilon(0.0, **target.use).upper) <= target.epsilon
        if met:
            return Calibration(noise, found, margin, "certified")
    raise CalibrationError(
        f"no optimal unimodal noise near {noise!r} could be certified for delta "
        f"{target.delta!r} at epsilon {target.epsilon!r}"
    )
