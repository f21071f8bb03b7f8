"""Renyi divergences of a composition, and the bounds that follow from them alone.

With ``K(c) = log E_P[e^{c L}]``, which adds up over a composition, the divergence of order
``a = c + 1`` is ``K(c) / c``; order 1 is ``K'(0)``, the Kullback-Leibler divergence, and order
infinity the largest loss. Each order composes alone: where a pair stands for several the supremum
is taken order by order, which neighbors attain, and which is less than that of their envelope.

*zCDP.* A composition is rho-zCDP for the supremum of ``K(c) / (c (c + 1))`` over ``c > 0`` (Bun and
Steinke 2016, definition 1.1). It may lie at either end: at 0 it is the Kullback-Leibler divergence;
normal noise has the same value everywhere; losses that grow faster than outputs have none.

*The moments accountant.* For every ``c > 0``

    ``delta(eps) <= exp(K(c) - c eps) c^c / (1 + c)^{1 + c}``,

the tightest bound that uses one order: Canonne, Kamath and Steinke, "The discrete Gaussian for
differential privacy", 2020, proposition 12; the same in terms of epsilon: Balle, Barthe, Gaboardi,
Hsu and Sato, "Hypothesis testing interpretations and Renyi differential privacy", 2020, theorem 21.
*Proof.* ``delta = E_P[(1 - e^{-y})^+]`` with ``y = L - eps``, and ``(1 - e^{-y}) e^{-c y}`` is
largest at ``e^{-y} = c/(1 + c)``, where it is ``c^c / (1 + c)^{1 + c}``; multiply by ``e^{c y}``,
and take expectations. QED

The logarithm of the bound is convex in ``c``. At given epsilon it is stationary where
``eps = K'(c) - log(1 + 1/c)``, and the smallest epsilon at given delta is at the ``c`` with
``K(c) - c K'(c) - log(1 + c) = log delta``, whose left side falls in ``c``. Any ``c`` gives a valid
bound, so that neither has to be solved sharply.

``K`` is a quadrature over outputs (a sum, for atoms), to about 1e-13 of the divergence of each use,
not rounded outwards. Of normal noise it is known for all orders; for neighbors less than 1e-4
scales apart, to 1e-7 (`loss.measure`). Outputs reach to a density of ``e^-1200`` of the peak, and
for divergences that need more to ``e^-307200``, beyond which these are refused. The bound at the
smallest delta of a float64 needs moments out to about ``e^-1000``; of larger orders the quadrature
sees a part only, which bounds delta up to the mass beyond it, below any float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from psinoise.accounting.estimate.composition import LEAST_LOG_DELTA, Composition, Saddle
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.measure import LossMeasure
from psinoise.accounting.loss.pairs import DIRECTIONS, Direction, Float, Pair
from psinoise.accounting.loss.quadrature import ORDER
from psinoise.accounting.loss.steps import Pairs, infinite_mass, largest_loss
from psinoise.errors import CertificationError
from psinoise.numerics.golden import peak

# Nodes reach to where log densities are so far below their peak; if that is not enough, so many
# times as far.
_REACH, _FARTHER, _FARTHEST = 1200.0, 16.0, 1e6
# Where a relative change of c this small is asked for, the bound is optimal to its square.
_CLOSE = 1e-7
# Orders that are sought, each for the shifts that are the worst at the last one.
_ROUNDS = 6
# Of so small a change the bound knows nothing; and an order out of reach is divided by this.
_SETTLED, _SMALLER = 1e-4, 64.0
# Log of what the outermost panels may hold of the tilted mass.
_NEGLIGIBLE = -34.0
# Orders are sought from 1 + e^first on, in steps of that factor, while the quadrature reaches.
_FIRST, _LAST, _STEP = -16.0, 40.0, 0.5
_FLAT = 1e-10
# Shifts in scales, of laws without and with kinks, that nodes resolve.
_NEAR, _NEAR_KINKS = 2.0**-18, 2.0**-26
# Share of ``K`` that heavy tails may hide.
_MISSED = 1e-13


def divergences(steps: Pairs, directions: tuple[Direction, ...], orders: Float) -> Float:
    """Renyi divergences of orders in [1, inf], the larger of the directions.

    Raises `CertificationError` if an order is so large that its divergence lies in tails beyond the
    quadrature.
    """
    if _infinite(steps, directions):
        return np.full(orders.shape, np.inf)
    found = [
        max(_divergence(steps, direction, order) for direction in directions)
        for order in orders.ravel()
    ]
    return np.array(found).reshape(orders.shape)


def concentration(steps: Pairs, directions: tuple[Direction, ...]) -> float:
    """The least rho such that all divergences of orders ``a > 1`` are at most ``rho a``.

    Raises `CertificationError` if the ratio still rises with the order where the quadrature ends.
    """
    if not steps:
        return 0.0
    if _infinite(steps, directions):
        return math.inf
    kullback = max(_divergence(steps, direction, 1.0) for direction in directions)
    steps, doublings = _farther(steps)
    found = max(_concentration(steps, direction) for direction in directions)
    return max(math.ldexp(found, -2 * doublings), kullback)


def renyi_epsilon(steps: Pairs, delta: float, directions: tuple[Direction, ...]) -> float:
    """An upper bound on epsilon at ``delta`` in [0, 1], the larger of the directions."""
    if delta >= 1.0 or not steps:
        return 0.0
    if delta == 0.0:
        return max(largest_loss(steps, direction) for direction in directions)
    if _infinite(steps, directions):
        return math.inf
    return max(_epsilon(steps, direction, math.log(delta)) for direction in directions)


def renyi_delta(steps: Pairs, epsilon: float, directions: tuple[Direction, ...]) -> float:
    """An upper bound on delta at any ``epsilon``, the larger of the directions."""
    if epsilon == -math.inf or _infinite(steps, directions):
        return 1.0
    if epsilon == math.inf:
        return 0.0
    if not steps:
        return max(0.0, -math.expm1(min(epsilon, 0.0)))
    bound = max(_log_delta(steps, direction, epsilon) for direction in directions)
    return min(math.exp(min(bound, 0.0)), 1.0)


def _infinite(steps: Pairs, directions: tuple[Direction, ...]) -> bool:
    """Whether all divergences are infinite."""
    return any(infinite_mass(steps, direction) > 0.0 for direction in directions)


def _worst(steps: Pairs, direction: Direction, c: float) -> Pairs:
    """The pairs with the largest ``K(c)`` of those that the steps stand for."""
    return tuple(
        (pair.at_tilt(direction, c) if isinstance(pair, AtomPair) else pair, count)
        for pair, count in steps
    )


def _tilted(
    steps: Pairs, direction: Direction, c: float, reach: float = _REACH
) -> tuple[Composition, Saddle]:
    """The worst pairs at a tilt, on panels that are fine enough for it, and ``K`` there.

    Raises `CertificationError` if that takes too many nodes.
    """
    composition = Composition.of(_worst(steps, direction, c), direction, reach)
    found = composition.resolved(composition.saddle(c), 0.0, ends=True)
    if found is None:
        raise CertificationError(f"Renyi divergences of order {c + 1.0:g} are out of reach")
    return found


# -- divergences -----------------------------------------------------------------------------------


def _divergence(steps: Pairs, direction: Direction, order: float) -> float:
    if order == math.inf:
        return largest_loss(steps, direction)
    c, reach = float(order) - 1.0, _REACH
    while True:
        composition, saddle = _tilted(steps, direction, c, reach)
        parts = list(composition.each(saddle))
        if c == 0.0:
            return math.fsum(count * _kullback(part, mean) for part, count, (_, mean, _) in parts)
        if all(_covers(part, c, value) for part, _, (value, _, _) in parts):
            return math.fsum(count * part.renyi(c, value) for part, count, (value, _, _) in parts)
        if (reach := _FARTHER * reach) > _FARTHEST:
            raise CertificationError(f"Renyi divergences of order {order:g} are out of reach")


def _kullback(measure: LossMeasure, mean: float) -> float:
    """The divergence of order 1: without sampling as the law knows it, for shifts of any size."""
    pair = measure.nodes.pair
    if isinstance(pair, AtomPair) or pair.sampling_rate < 1.0 or not hasattr(pair.noise, "_table"):
        return mean
    return pair.noise.kl(pair.distance)


def _covers(measure: LossMeasure, c: float, value: float) -> bool:
    """Whether the nodes hold all of the tilted mass but what does not matter."""
    pair, grid, direction = measure.nodes.pair, measure.nodes, measure.direction
    if isinstance(pair, AtomPair) or math.isfinite(pair.noise.support) or measure.quadratic(c):
        return True
    if not measure.resolved:
        return False
    if pair.noise.score_limit == 0.0:
        # Heavy tails end where the loss is next to 0, and ``phi - 1`` has it squared (`measure`).
        loss = float(np.abs(pair.loss(grid.ends)).max())
        beyond = float(pair.noise.cdf(grid.ends[0]) + pair.noise.ccdf(grid.ends[1] - pair.distance))
        # There ``g(c L) + c g(-L)`` is at most ``c (c + 1) L^2`` if ``c abs(L) <= 1``.
        return c * loss <= 1.0 and beyond * c * (c + 1.0) * loss**2 <= _MISSED * min(value, 1.0)
    top = pair.largest_loss(direction)
    if math.isfinite(top):
        beyond = grid.beyond[DIRECTIONS.index(direction)]
        return math.log(max(beyond, 5e-324)) + c * top - value < _NEGLIGIBLE
    if not measure.panels:
        return False
    # Losses grow to one side, where the outermost nodes are a panel: what is flat there to rounding
    # has no loss that could be raised to a power.
    outermost = int(np.argmax(grid.right) if direction == "remove" else np.argmin(grid.left))
    reached = grid.right[outermost] == grid.ends[1] or grid.left[outermost] == grid.ends[0]
    log_tilted = measure.log_tilted(c, value)[outermost * ORDER : (outermost + 1) * ORDER]
    return bool(reached) and float(log_tilted.max()) < _NEGLIGIBLE


def _farther(steps: Pairs) -> tuple[Pairs, int]:
    """Neighbors that hardly differ farther apart, where nodes see all orders, and the doublings.

    At order ``a`` divergences, divided by ``a``, grow with the square of a shift ``d``, up to the
    share of ``d^2`` that more orders than ``1 / d`` see, or of ``d`` next to a kink.
    """
    pairs = [pair for pair, _ in steps if isinstance(pair, Pair)]
    if len(pairs) < len(steps) or any(math.isfinite(pair.noise.support) for pair in pairs):
        return steps, 0
    near = _NEAR_KINKS if any(pair.noise.kinks for pair in pairs) else _NEAR
    farthest = max(pair.distance / pair.noise.scale for pair in pairs)
    doublings = max(math.floor(math.log2(near / farthest)), 0) if farthest > 0.0 else 0
    if not doublings:
        return steps, 0
    farther = [
        (replace(pair, sensitivity=math.ldexp(pair.sensitivity, doublings)), count)
        for pair, (_, count) in zip(pairs, steps, strict=True)
    ]
    return tuple(farther), doublings


def _concentration(steps: Pairs, direction: Direction) -> float:
    def ratio(log_c: float) -> float:
        c = math.exp(log_c)
        return _divergence(steps, direction, 1.0 + c) / (1.0 + c)

    places: list[float] = []
    values: list[float] = []
    top = largest_loss(steps, direction)
    best = kullback = _divergence(steps, direction, 1.0)
    for log_c in np.arange(_FIRST, _LAST, _STEP).tolist():
        # Of larger orders the divergence is at most the largest loss.
        if top / (1.0 + math.exp(log_c)) < best:
            break
        try:
            value = ratio(log_c)
        except CertificationError:
            if len(values) > 1 and values[-1] > values[-2] * (1.0 + _FLAT):
                raise
            break
        places.append(log_c)
        values.append(value)
        best = max(best, value)
    if not values:
        return kullback
    place = int(np.argmax(values))
    low, high = places[max(place - 1, 0)], places[min(place + 1, len(places) - 1)]
    return max(best, peak(ratio, low, high)[1])


# -- the moments accountant ------------------------------------------------------------------------


def _epsilon(steps: Pairs, direction: Direction, log_delta: float) -> float:
    def newton(saddle: Saddle) -> float:
        miss = saddle.value - saddle.c * saddle.mean - math.log1p(saddle.c) - log_delta
        return miss / (saddle.c**2 * saddle.variance + saddle.c / (1.0 + saddle.c))

    def solve(composition: Composition) -> Saddle:
        start = composition.tilt_of(math.sqrt(2.0 * max(-log_delta, 0.0)))
        return composition.search(start, newton, _converged)

    def bound(saddle: Saddle) -> float:
        return (saddle.log_chernoff(0.0) - log_delta) / saddle.c

    return max(0.0, min(_least(steps, direction, solve, bound), largest_loss(steps, direction)))


def _log_delta(steps: Pairs, direction: Direction, epsilon: float) -> float:
    if epsilon >= largest_loss(steps, direction):
        return -math.inf

    def newton(saddle: Saddle) -> float:
        miss = epsilon - saddle.mean + math.log1p(1.0 / saddle.c)
        return miss / (saddle.c * saddle.variance + 1.0 / (1.0 + saddle.c))

    def done(saddle: Saddle, step: float) -> bool:
        return _converged(saddle, step) or saddle.log_chernoff(epsilon) < LEAST_LOG_DELTA

    def solve(composition: Composition) -> Saddle:
        untilted = composition.saddle(0.0)
        # Of noise that is wide enough the variance is below float64; any order gives a bound.
        deviation = math.sqrt(untilted.variance)
        excess = (epsilon - untilted.mean) / deviation if deviation else 0.0
        return composition.search(composition.tilt_of(excess), newton, done)

    return _least(steps, direction, solve, lambda saddle: saddle.log_chernoff(epsilon))


def _least(
    steps: Pairs,
    direction: Direction,
    solve: Callable[[Composition], Saddle],
    bound: Callable[[Saddle], float],
) -> float:
    """The least bound of a few orders: each the best for the worst pairs at the one before, on
    nodes that are fine enough for that."""
    composition, before, found = Composition.of(steps, direction, _REACH), 0.0, [math.inf]
    for _ in range(_ROUNDS):
        sought = c = solve(composition).c
        if abs(c - before) <= _SETTLED * c:
            break
        while True:
            try:
                composition, saddle = _tilted(steps, direction, c)
                break
            except CertificationError:
                if c < _SMALLER:
                    raise
                c /= _SMALLER
        found.append(bound(saddle))
        if c < sought:
            break  # what is sought is out of reach from here, too
        before = c
    return min(found)


def _converged(saddle: Saddle, step: float) -> bool:
    return abs(step) < _CLOSE or saddle.saturated
