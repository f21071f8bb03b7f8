"""Composition on a lattice: powers of spectra, with every error bounded.

The ``n_i``-fold convolutions of tilted measures are a product of powers of discrete Fourier
transforms over a window of ``N`` nodes around the tilted mean. Three things separate the computed
masses from the true ones, and each has a bound that the caller adds to delta:

* *Wrap-around.* Mass outside the window comes back inside. Under the tilt it is at most
  ``2 tau`` by Chernoff's bound, with the exact moment generating functions of the discrete
  measures.
* *Rounding.* One transform has relative 2-norm error ``theta = 6 u log2 N`` (Higham, Accuracy and
  Stability of Numerical Algorithms, theorem 24.2), ``u = 2^-53``. With ``|F_i| <= 1`` the product
  of powers is off by at most ``sum n_i (theta + 4 u) ||F_i||`` and the inverse transform adds
  ``theta ||G|| <= theta min ||F_i||``; Parseval turns both into masses. Many uses leave only a few
  frequencies, which ``spectra`` sums directly, with an error that grows like ``sqrt(n)``.
* *The weights.* ``delta`` weighs a tilted mass at distance ``y`` above epsilon by
  ``(1 - e^{-y}) e^{-t y}``, at most ``t^t / (1 + t)^{1 + t}``; Cauchy-Schwarz needs their 2-norm.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.bound import Bound
from psinoise.accounting.compose.lattice import NodeMeasure
from psinoise.accounting.compose.measure import Side
from psinoise.accounting.compose.spectra import Product, compose_low
from psinoise.accounting.loss.pairs import Float


@dataclass(frozen=True, eq=False)
class Composed:
    """Tilted masses of a composition on a window of the lattice.

    Attributes
    ----------
    measure : the masses, clipped to be non-negative, at all nodes of the window
    rounding : bound on the 2-norm of the error of the masses
    outside : bound on the tilted mass outside the window, both sides together
    """

    measure: NodeMeasure
    rounding: float
    outside: float

    @property
    def distance(self) -> float:
        """Bound on the sum of the errors of all masses."""
        return self.outside + math.sqrt(self.measure.mass.size) * self.rounding


def window_size(parts: list[tuple[NodeMeasure, int]], tail: float) -> tuple[int, int, float]:
    """First node and length of a window that holds all but ``2 tail`` of the composition.

    The length is a power of two.
    """
    low, need = window_needed(parts, tail)
    size = max(2 ** math.ceil(math.log2(max(need, 2))), 16)
    return low - (size - need) // 2, size, 2.0 * tail


def window_needed(parts: list[tuple[NodeMeasure, int]], tail: float) -> tuple[int, int]:
    """First node and length of the shortest window that `window_size` would do with."""
    moments = [(measure.moments, count) for measure, count in parts]
    offset = math.fsum(count * measure.offset for measure, count in parts)
    mean = math.fsum(count * m[0] for m, count in moments)
    variance = math.fsum(count * m[1] for m, count in moments)
    step = parts[0][0].step
    reach = [_reach(parts, mean, variance, sign, tail) for sign in (1.0, -1.0)]
    low = math.floor((mean - offset - reach[1]) / step) - 1
    need = math.ceil((mean - offset + reach[0]) / step) + 2 - low
    return low, need


def tail_within(
    parts: list[tuple[NodeMeasure, int]],
    log_delta: float,
    epsilon: float,
    share: float,
    least: float,
) -> float:
    """Tilted mass on one side of a window that costs no more than a share of delta at epsilon.

    That is a quarter of the share; but for what is below ``e^least``, or above 1e-6.
    """
    tilt = parts[0][0].tilt
    log_norm = math.fsum(count * measure.log_norm for measure, count in parts)
    log_main = log_delta - (log_norm - tilt * epsilon)
    log_tail = log_main + math.log(share / (4.0 * largest_weight(tilt)))
    return math.exp(min(max(log_tail, least), math.log(1e-6)))


def _log_mgf(parts: list[tuple[NodeMeasure, int]], s: float) -> float:
    """The log of the moment generating function of the composition."""
    return math.fsum(count * measure.log_mgf(s) for measure, count in parts)


def _reach(
    parts: list[tuple[NodeMeasure, int]], mean: float, variance: float, sign: float, tail: float
) -> float:
    """``T`` with ``P(sign (L - mean) >= T) <= tail``: any ``s`` gives a bound, a few are tried."""
    goal = -math.log(tail)
    deviation = math.sqrt(max(variance, 1e-300))
    s = math.sqrt(2.0 * goal) / deviation
    best = math.inf
    for _ in range(24):
        reach = (_log_mgf(parts, sign * s) + goal) / s - sign * mean
        if reach >= best:
            break
        best = reach
        s *= 0.7
    return best


def infinite_mass(parts: list[tuple[NodeMeasure, int]]) -> float:
    """Probability that any of the losses is infinite."""
    finite = [1.0 - measure.infinite for measure, _ in parts]
    if min(finite) <= 0.0:
        return 1.0
    return -math.expm1(math.fsum(count * math.log1p(-measure.infinite) for measure, count in parts))


def compose(
    parts: list[tuple[NodeMeasure, int]], first: int, size: int, outside: float
) -> Composed:
    """Convolve ``count`` copies of each measure on the window ``first, ..., first + size - 1``."""
    masses, rounding = compose_low(parts, first, size) or _compose_all(parts, first, size)
    measure = NodeMeasure(
        parts[0][0].step,
        math.fsum(count * m.offset for m, count in parts),
        first + np.arange(size),
        masses,
        parts[0][0].tilt,
        math.fsum(count * m.log_norm for m, count in parts),
        infinite_mass(parts),
        math.fsum(count * m.slack for m, count in parts),
    )
    return Composed(measure, rounding, outside)


def _compose_all(
    parts: list[tuple[NodeMeasure, int]], first: int, size: int
) -> tuple[Float, float]:
    """The same as `compose_low`, by transforms alone."""
    product = Product.of(size)
    for measure, count in parts:
        product = product.times(measure, count)
    return product.masses(first)


@dataclass(frozen=True, eq=False)
class WindowBound(Bound):
    """Bound on the privacy profile from composed masses on a window of a lattice."""

    composer = "window"

    composed: Composed
    side: Side

    @property
    def tilt(self) -> float:
        return self.composed.measure.tilt

    @functools.cached_property
    def _sums(self) -> tuple[Float, Float]:
        """Sums over the nodes from each on of ``g e^{-t y}`` and ``g e^{-(t + 1) y}``."""
        measure = self.composed.measure
        decay = math.exp(-measure.tilt * measure.step)
        return (
            core.decayed_sums(measure.mass, decay),
            core.decayed_sums(measure.mass, decay * math.exp(-measure.step)),
        )

    @functools.cached_property
    def _spill(self) -> float:
        """Error of the weighted sum of tilted masses: wrap-around and rounding."""
        measure = self.composed.measure
        t, h = measure.tilt, measure.step
        # sum over k of (1 - e^{-k h})^2 e^{-2 t k h}: the integral, and one term for the maximum.
        square = 0.5 / (t * (2.0 * t + 1.0) * (t + 1.0) * h) + largest_weight(t) ** 2
        return (
            largest_weight(t) * self.composed.outside + math.sqrt(square) * self.composed.rounding
        )

    def log_delta(self, epsilon: float) -> float:
        """Log of the bound on delta at ``epsilon``."""
        measure = self.composed.measure
        shifted = epsilon - self.sign * measure.slack
        first = int(measure.index[0])
        k = max(math.floor((shifted - measure.offset) / measure.step) + 1 - first, 0)
        main = 0.0
        if k < measure.mass.size:
            tilted, more = self._sums
            y = measure.offset + (first + k) * measure.step - shifted
            main = math.exp(-measure.tilt * y) * (tilted[k] - math.exp(-y) * more[k])
        # The sums are of positive terms, with a relative error below size * u; what their
        # difference loses is at most 1 / (1 - e^{-h}) of it.
        value = main * (1.0 + self.sign * 1e-9) + self.sign * self._spill
        if not value > 0.0:
            finite = -math.inf
        else:
            finite = math.log(value) + measure.log_norm - measure.tilt * shifted
        if self.sign > 0.0 and measure.infinite > 0.0:
            return float(np.logaddexp(finite, math.log(measure.infinite)))
        return finite


def largest_weight(tilt: float) -> float:
    """Maximum of ``(1 - e^{-y}) e^{-t y}`` over ``y >= 0``: ``t^t / (1 + t)^(1 + t)``."""
    return math.exp(-tilt * math.log1p(1.0 / tilt) - math.log1p(tilt))
