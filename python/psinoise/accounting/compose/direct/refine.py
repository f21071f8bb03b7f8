"""Bounds by the direct composer, finer from round to round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self

import numpy as np

from psinoise.accounting.compose.direct.composition import Composition
from psinoise.accounting.compose.direct.plan import Plan, Stages, doubling
from psinoise.accounting.compose.direct.profile import DirectBound, SampledBound
from psinoise.accounting.compose.measures.bound import Bound
from psinoise.accounting.compose.measures.measure import SIDES, Side

# Nodes of the first composition, of any, and how many times more the next may have.
_FIRST_NODES = 256
_MORE_NODES = 1024
_MOST_NODES = 20_000
# Brackets this many times too wide ask for a better plan, not for more nodes.
_POOR = 2.0
_GROWTH = 4.0
# Products of masses that all rounds together may take: four seconds.
_MOST_PRODUCTS = 4e9
_ONE_USE_NODES = 33
_MOST_ROUNDS = 12
# Bounds on one use that are so many errors of its losses apart come no closer.
_SETTLED = 1.5
# Nodes of a new plan, as a multiple of what it says that it needs.
_TRUSTED = 1.5
# Share of the width that the upper bound should have, by the plan.
_SHARE = 0.45

#: Where a bound is asked: the epsilon, given a guess and a distance that matters there.
Crossing = Callable[[Bound, float, float], float]
#: How wide a bracket of epsilon may be, given epsilon and the slope of log delta.
Width = Callable[[float, float], float]


class Composing(Protocol):
    """What is composed of measures whose nodes a plan can place.

    ``plans`` is how many it may take after the first: each sees what was too coarse for the last.
    """

    @property
    def plans(self) -> int: ...
    @property
    def log_delta(self) -> float: ...
    def at(self, log_delta: float) -> Self: ...
    def sided(self, side: Side) -> Self: ...
    def compose(self, side: Side, nodes: int, plan: Any) -> tuple[Any, Stages]: ...
    def plan(self, bound: Any, stages: Stages, epsilon: float, slope: float) -> Plan: ...


def direct_bounds(composition: Composing, crossing: Crossing, width: Width) -> Iterator[Bound]:
    """Bounds from above and below, each pair finer than the last, until the work is spent.

    One from above alone if all that reaches epsilon is trimmed: delta is far less than thought.
    """
    sided = {side: composition.sided(side) for side in SIDES}
    plans: dict[Side, Plan] = {}
    epsilon, spent, found, nodes, used = 0.0, 0.0, math.inf, 0, 0
    coarse = (_FIRST_NODES, *[_MORE_NODES] * composition.plans)
    for place, planning in enumerate(coarse):
        last = place == composition.plans
        for side in SIDES:
            if side == "upper" and sided["upper"] is sided["lower"]:
                plans["upper"] = plans["lower"]
                break
            middle, stages = sided[side].compose("middle", planning, plans.get(side))
            epsilon = crossing(middle, epsilon, 0.03 * max(middle.largest, 1e-300))
            if middle.log_delta(min(epsilon, 0.0)) == -math.inf:
                return  # nothing is known of losses: see `DirectBound`
            if middle.log_delta(epsilon) == -math.inf and sided[side] is sided["upper"]:
                yield sided[side].compose("upper", planning, plans.get(side))[0]
                return
            slope = middle.slope(epsilon, 1e-3 * max(epsilon, 1e-3 * middle.largest, 1e-300))
            # What may be trimmed is a share of delta, which is known by now.
            composition = composition.at(middle.log_delta(epsilon))
            plans[side] = composition.plan(middle, stages, epsilon, slope)
        sided = {side: composition.sided(side) for side in SIDES}
        asked = width(epsilon, slope)
        log_gap = math.log(_SHARE * asked * slope) + middle.log_delta(epsilon)
        wanted = plans["upper"].nodes_for(log_gap) if log_gap > -math.inf else math.inf
        for attempt in range(_MOST_ROUNDS):
            if nodes:
                more = nodes * min(max(1.15 * math.sqrt(found / asked), 1.2), _GROWTH)
                # A new plan may need fewer nodes than the last one used.
                wanted = more if attempt else min(_TRUSTED * wanted, more)
            most = _MOST_NODES if last else _GROWTH * planning
            nodes = int(min(max(wanted, _FIRST_NODES), most))
            work = plans["upper"].work(nodes)
            if spent + work > _MOST_PRODUCTS:
                nodes = int(nodes * math.sqrt(max(_MOST_PRODUCTS - spent, 0.0) / work))
                work = _MOST_PRODUCTS
            if nodes < max(_FIRST_NODES, used if attempt else 0):
                return
            if attempt and nodes == used:
                break
            spent, many, used, before = spent + work, nodes > 2 * used, nodes, found
            upper = sided["upper"].compose("upper", nodes, plans["upper"])[0]
            yield upper
            lower = sided["lower"].compose("lower", nodes, plans["lower"])[0]
            yield lower
            found = distance(lower, upper, epsilon, slope, crossing)
            if attempt and many and 0.9 * before <= found <= 1.1 * before < math.inf:
                return  # something else than nodes keeps the bounds apart
            if not last and found > _POOR * asked:
                break  # a better plan is worth its time


def distance(lower: Bound, upper: Bound, epsilon: float, slope: float, crossing: Crossing) -> float:
    """How far two bounds are apart, in units of epsilon."""
    low = crossing(lower, epsilon, 1.0 / slope)
    high = crossing(upper, epsilon, 1.0 / slope)
    if high != low:
        return max(high - low, 0.0)
    # Epsilon is given: the difference of the logarithms of delta.
    gap = upper.log_delta(epsilon) - lower.log_delta(epsilon)
    return max(gap, 0.0) / slope


def one_use_bounds(composition: Composition, crossing: Crossing) -> Iterator[DirectBound]:
    """Of one use: bins that end where epsilon is, closer and closer until only rounding is left.

    They get wider with their distance from where the samples of the loss say that it is; as a rule
    the first ones do.
    """
    source, chosen, _, below, above = composition.alone[1]
    least = max(source.rounding, 1e-13 * (above - below), 1e-290)
    low = high = crossing(SampledBound(source, chosen), 0.0, above - below)
    before = math.inf
    for _ in range(_MOST_ROUNDS):
        near = max(high - low, 1e-9 * abs(low), least)
        around = np.linspace(low, high, _ONE_USE_NODES) if high > low else [low]
        far = low - doubling(near, low - below), high + doubling(near, above - high)
        lower, upper = composition.one_use(np.concatenate([far[0], around, far[1]]))
        yield upper
        yield lower
        low = crossing(lower, low, near)
        high = min(crossing(upper, low, near), above)
        found = high - low
        if not found < 0.1 * before or found <= _SETTLED * (lower.slack + upper.slack):
            return
        before = found
