"""The moments accountant: epsilon and delta from Renyi divergences alone.

``K(c) = log E_P[e^{c L}]`` is ``c`` times the Renyi divergence of order ``alpha = c + 1``, and adds
up over a composition. For every ``c > 0``

    ``delta(eps) <= exp(K(c) - c eps) c^c / (1 + c)^{1 + c}``,

the tightest bound that uses one order: Canonne, Kamath and Steinke, "The discrete Gaussian for
differential privacy", 2020, proposition 12; the same in terms of epsilon: Balle, Barthe, Gaboardi,
Hsu and Sato, "Hypothesis testing interpretations and Renyi differential privacy", 2020, theorem 21.
*Proof.* ``delta = E_P[(1 - e^{-y})^+]`` with ``y = L - eps``, and ``(1 - e^{-y}) e^{-c y}`` is
largest at ``e^{-y} = c/(1 + c)``, where it is ``c^c / (1 + c)^{1 + c}``; multiply by ``e^{c y}``,
and take expectations. QED

The logarithm of the bound is convex in ``c``. It is stationary in ``c`` at given epsilon where
``eps = K'(c) - log(1 + 1/c)``, and the smallest epsilon at given delta is at the ``c`` with
``K(c) - c K'(c) - log(1 + c) = log delta``, whose left side falls in ``c``. Any ``c`` gives a valid
bound, so that neither has to be solved sharply.

``K`` is a quadrature over outputs out to a density of ``e^-1200`` of the peak. The bound at the
smallest delta of a float64 needs moments out to about ``e^-1000``; of larger orders the quadrature
sees a part only, which bounds delta up to the mass beyond it, below any float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from psinoise.accounting.estimate.composition import LEAST_LOG_DELTA, Composition, Saddle
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.pairs import Direction
from psinoise.accounting.loss.steps import Pairs, largest_loss, several
from psinoise.errors import CertificationError

# Where a relative change of c this small is asked for, the bound is optimal to its square.
_CLOSE = 1e-7
_REACH = 1200.0
# How often the order is sought again, for the shifts that are the worst at the last one.
_ROUNDS = 3


def renyi_epsilon(steps: Pairs, delta: float, ways: tuple[Direction, ...]) -> float:
    """An upper bound on epsilon at ``delta`` in [0, 1], the larger of the directions."""
    if delta >= 1.0 or not steps:
        return 0.0
    if delta == 0.0:
        return max(largest_loss(steps, way) for way in ways)
    if any(pair.infinite("remove") > 0.0 for pair, _ in steps):
        return math.inf  # all divergences are infinite
    return max(_epsilon(steps, way, math.log(delta)) for way in ways)


def renyi_delta(steps: Pairs, epsilon: float, ways: tuple[Direction, ...]) -> float:
    """An upper bound on delta at any ``epsilon``, the larger of the directions."""
    if epsilon == -math.inf or any(pair.infinite("remove") > 0.0 for pair, _ in steps):
        return 1.0
    if epsilon == math.inf:
        return 0.0
    if not steps:
        return max(0.0, -math.expm1(epsilon))
    bound = max(_log_delta(steps, way, epsilon) for way in ways)
    return min(math.exp(min(bound, 0.0)), 1.0)


def _epsilon(steps: Pairs, direction: Direction, log_delta: float) -> float:
    def newton(saddle: Saddle) -> float:
        miss = saddle.value - saddle.c * saddle.mean - math.log1p(saddle.c) - log_delta
        return miss / (saddle.c**2 * saddle.variance + saddle.c / (1.0 + saddle.c))

    def solve(composition: Composition) -> Saddle:
        start = _start(composition, math.sqrt(2.0 * max(-log_delta, 0.0)) + 0.1)
        return composition.search(start, newton, _settled)

    def bound(saddle: Saddle, value: float) -> float:
        c = saddle.c
        return (value - log_delta - math.log1p(c)) / c - math.log1p(1.0 / c)

    epsilon = _least(steps, direction, solve, bound)
    return max(0.0, min(epsilon, largest_loss(steps, direction)))


def _log_delta(steps: Pairs, direction: Direction, epsilon: float) -> float:
    if epsilon >= largest_loss(steps, direction):
        return -math.inf

    def newton(saddle: Saddle) -> float:
        miss = epsilon - saddle.mean + math.log1p(1.0 / saddle.c)
        return miss / (saddle.c * saddle.variance + 1.0 / (1.0 + saddle.c))

    def done(saddle: Saddle, step: float) -> bool:
        return _settled(saddle, step) or saddle.log_chernoff(epsilon) < LEAST_LOG_DELTA

    def solve(composition: Composition) -> Saddle:
        untilted = composition.saddle(0.0)
        excess = (epsilon - untilted.mean) / math.sqrt(untilted.variance)
        return composition.search(_start(composition, max(excess, 0.1)), newton, done)

    def bound(saddle: Saddle, value: float) -> float:
        return saddle.log_chernoff(epsilon) + (value - saddle.value)

    return _least(steps, direction, solve, bound)


def _least(
    steps: Pairs,
    direction: Direction,
    solve: Callable[[Composition], Saddle],
    bound: Callable[[Saddle, float], float],
) -> float:
    """The least bound from a few orders, given ``K`` there.

    Where a step has several worst shifts, ``K`` is that of the worst shift for each order. Renyi
    divergences compose one order at a time, so that neighbors may choose a shift for each order
    but not for each output: the supremum over shifts is less than what their envelope has.
    """
    composition = Composition.of(steps, direction, _REACH)
    saddle = solve(composition)
    saddle = _resolved(composition, saddle).saddle(saddle.c)
    least = bound(saddle, saddle.value)
    for _ in range(_ROUNDS if several(steps) else 0):
        # Where no order is better, the next round changes nothing.
        worst = tuple(
            (pair.at_tilt(direction, saddle.c) if isinstance(pair, AtomPair) else pair, count)
            for pair, count in steps
        )
        if worst == steps:
            break
        saddle = solve(Composition.of(worst, direction, _REACH))
        value = math.fsum(
            count * pair.at_tilt(direction, saddle.c).log_transform(direction, saddle.c)
            if isinstance(pair, AtomPair) and pair.several
            else count * part.value
            for (pair, count), part in zip(steps, saddle.parts, strict=True)
        )
        least = min(least, bound(saddle, value))
    return least


def _resolved(composition: Composition, saddle: Saddle) -> Composition:
    """The composition on panels fine enough for this tilt.

    Raises
    ------
    CertificationError
        if that takes too many nodes
    """
    finer = composition.resolved(saddle, 0.0)
    if finer is None:
        raise CertificationError(f"Renyi divergences of order {saddle.c + 1.0:g} are out of reach")
    return finer


def _start(composition: Composition, deviations: float) -> float:
    """The tilt that moves the mean by that many deviations."""
    return min(deviations / math.sqrt(composition.saddle(0.0).variance + 1e-300), 1e6)


def _settled(saddle: Saddle, step: float) -> bool:
    return abs(step) < _CLOSE or saddle.saturated
