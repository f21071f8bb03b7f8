"""The optimal unimodal law of least cost that meets a target.

The law of least cost at the epsilon is met by an estimate; then its cost is raised by what the
certified bound is above the target, over the slope of epsilon in the cost, until the bound meets
it. Of one use, and at delta = 0, where one linear program has the law of an epsilon, that of a
little less is made instead. What is returned has been verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psinoise.accounting.bracket import Bracket
from psinoise.calibration.search import Calibration
from psinoise.calibration.target import Target
from psinoise.errors import CalibrationError
from psinoise.mechanisms import Mechanism
from psinoise.noise import OptimalUnimodal

__all__ = ["cheapest"]

_MOST_ANSWERS = 12
# What is added to a step, as a share of it and of epsilon.
_MORE, _LEAST = 0.02, 1e-7
# Shares by which epsilon, or delta at epsilon = 0, is less than the target.
_MARGINS = (1e-11, 1e-8, 1.5e-5, 1e-4, 1e-3)


def cheapest(arguments: Mapping[str, Any], target: Target) -> Calibration:
    """The optimal unimodal law of least expected cost that meets a target.

    Raises
    ------
    CalibrationError
        If there is none, and for targets that the law is not made for.
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
    use = (target.count, target.sampling_rate, target.adjacency)
    first, step = noise.mean_cost, 0.0
    for _ in range(_MOST_ANSWERS):
        mechanism = Mechanism(noise, target.sensitivity)
        above = float(mechanism.epsilon(target.delta, *use).upper) - target.epsilon
        if above <= 0.0:
            delta = mechanism.delta(target.epsilon, *use)
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
    use = (target.count, target.sampling_rate, target.adjacency)
    for margin in _MARGINS:
        less = 1.0 - margin
        delta = target.delta * (1.0 if target.epsilon > 0.0 else less)
        noise = OptimalUnimodal(epsilon=target.epsilon * less, **{**words, "delta": delta})
        words["cells_per_sensitivity"] = noise.cells_per_sensitivity
        mechanism = Mechanism(noise, target.sensitivity)
        if target.delta > 0.0:
            found = mechanism.delta(target.epsilon, *use)
            met = found.upper <= target.delta
        else:
            found = Bracket(0.0, 0.0, 0.0)
            met = float(mechanism.epsilon(0.0, *use).upper) <= target.epsilon
        if met:
            return Calibration(noise, found, margin, "certified")
    raise CalibrationError(
        f"no optimal unimodal noise near {noise!r} could be certified for delta "
        f"{target.delta!r} at epsilon {target.epsilon!r}"
    )
