"""Renyi divergences of a composition, order by order, and the line above all of them.

The divergence of order ``a = c + 1`` is ``K(c) / c``, ``K(c) = log E_P[e^{c L}]``, and adds up over
a composition; order 1 is ``K'(0)``, the Kullback-Leibler divergence, and order infinity the largest
loss. Where a pair stands for several the supremum is taken order by order, which neighbors attain.

A composition is rho-zCDP for the supremum of ``K(c) / (c (c + 1))`` over ``c > 0`` (Bun and Steinke
2016, definition 1.1). It may lie at either end: at 0 it is the Kullback-Leibler divergence; normal
noise has the same value everywhere; losses that grow faster than outputs have none.

Everything here is a quadrature (sums, for losses of atoms) to about 1e-13 of the divergence, of
each use, and is not rounded outwards: estimates, not bounds.
"""

from __future__ import annotations

import math

import numpy as np

from psinoise.accounting.estimate.composition import Composition
from psinoise.accounting.loss.atoms import AtomPair
from psinoise.accounting.loss.measure import LossMeasure
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import ORDER
from psinoise.accounting.loss.steps import Pairs, infinite_mass, largest_loss
from psinoise.errors import CertificationError
from psinoise.numerics.golden import peak

_REACH = 1200.0
# Log of what the outermost panels may hold of the tilted mass.
_NEGLIGIBLE = -34.0
# Orders are sought from 1 + e^first on, in steps of that factor, while the quadrature reaches.
_FIRST, _LAST, _STEP = -16.0, 40.0, 0.5
_FLAT = 1e-10


def divergences(steps: Pairs, ways: tuple[Direction, ...], orders: Float) -> Float:
    """Renyi divergences of orders in [1, inf], the larger of the directions.

    Raises
    ------
    CertificationError
        if an order is so large that its divergence lies in tails beyond the quadrature
    """
    if not steps:
        return np.zeros(orders.shape)
    if any(infinite_mass(steps, way) > 0.0 for way in ways):
        return np.full(orders.shape, np.inf)
    found = [max(_divergence(steps, way, order) for way in ways) for order in orders.ravel()]
    return np.array(found).reshape(orders.shape)


def concentration(steps: Pairs, ways: tuple[Direction, ...]) -> float:
    """The least rho such that all divergences of orders ``a > 1`` are at most ``rho a``.

    Raises
    ------
    CertificationError
        if the ratio still rises with the order where the quadrature ends
    """
    if not steps:
        return 0.0
    if any(infinite_mass(steps, way) > 0.0 for way in ways):
        return math.inf
    return max(_concentration(steps, way) for way in ways)


def _concentration(steps: Pairs, way: Direction) -> float:
    def ratio(log_c: float) -> float:
        c = math.exp(log_c)
        return _divergence(steps, way, 1.0 + c) / (1.0 + c)

    places: list[float] = []
    values: list[float] = []
    top = largest_loss(steps, way)
    best = kullback = _divergence(steps, way, 1.0)
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


def _divergence(steps: Pairs, way: Direction, order: float) -> float:
    if order == math.inf:
        return largest_loss(steps, way)
    c = order - 1.0
    single: Pairs = tuple(
        (pair.at_tilt(way, c) if isinstance(pair, AtomPair) else pair, count)
        for pair, count in steps
    )
    composition = Composition.of(single, way, _REACH)
    saddle = composition.saddle(c)
    if c == 0.0:
        return saddle.mean
    finer = composition.resolved(saddle, 0.0)
    if finer is not None and finer is not composition:
        saddle = finer.saddle(c)
    if finer is None or not all(
        _covers(measure, c, part.value)
        for measure, part in zip(finer.measures, saddle.parts, strict=True)
    ):
        raise CertificationError(f"Renyi divergences of order {order:g} are out of reach")
    return saddle.value / c


def _covers(measure: LossMeasure, c: float, value: float) -> bool:
    """Whether the nodes hold all of the tilted mass but what does not matter."""
    pair, grid = measure.nodes.pair, measure.nodes
    if isinstance(pair, AtomPair) or math.isfinite(pair.noise.support) or not measure.panels:
        return True
    if grid.atom_loss.size and pair.noise.score_limit != 0.0:
        return True  # runs of constant loss hold what lies beyond the panels
    logs = measure.log_tilted(c, value)[: measure.panels * ORDER].reshape(measure.panels, ORDER)
    ends = [int(np.argmin(grid.left)), int(np.argmax(grid.right))]
    return float(logs[ends].max()) < _NEGLIGIBLE
