"""Bounds on a composition that grows: one lattice and one window, so that a step costs the same
however many there were before.

The measures are those of ``lattice``, the errors those of ``frequency_bound``. But step, window and
tilt are fixed beforehand, from the point (epsilon, delta) that is asked about, and the product of
spectra is kept:

* The tilt ``t = epsilon / mu**2 - 1/2`` is that of the Gaussian pair that has this point on its
  profile: its loss is ``N(mu**2 / 2, mu**2)``, and its tilted mean epsilon. Any tilt is sound.
* Lengths are in units of ``max(epsilon, 6 mu)``. The step is ``2**-15`` of it, and the window
  ``2**17`` nodes, four units, around the mean.
* Losses of one step that are beyond two units count as infinite, from below as not there; those
  below minus two units move up to that.
* Infinite losses are kept apart: with probability ``f = 1 - prod (1 - f_i)`` there is one. Delta
  is ``f`` and what the finite ones contribute, whose masses add up to less than 1.
* What lies outside the window is bounded by Chernoff's inequality,
  ``P(L >= T) <= exp(sum log E[e^{s L_i}] - s T)`` under the tilt. The sums are kept for some fixed
  ``s``, of which the best one counts.

Both bounds come apart by about ``n h**2 (t + 1) / 4`` in epsilon: some 1e-5 of it for a thousand
uses; but where the losses of one use reach far beyond their spread, as with rarely sampled records
and little noise, the tilt is too large and the upper bound of no use. They are for questions where
this is enough, and quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from psinoise._kept import kept
from psinoise.accounting.compose.frequencies.frequency_bound import FrequencyBound, Lattice
from psinoise.accounting.compose.frequencies.lattice import NodeMeasure, graded_bins, node_measure
from psinoise.accounting.compose.frequencies.spectra import Product
from psinoise.accounting.compose.measures.dense import Dense, Mask, dense
from psinoise.accounting.compose.measures.measure import UNIT, Side
from psinoise.accounting.estimate.composition import Composition
from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.errors import CertificationError

_NODES, _STEP = 1 << 17, 2.0**-15
_FARTHEST = 2.0
# Orders of Chernoff's bound, over the unit.
_ORDERS = 2.0 ** np.arange(-1.0, 11.0)
_MOST_USES, _LARGEST_TILT = 1e6, 1e6


@dataclass(frozen=True)
class Point:
    """Where a bound is to be sharp, on which side, and for which direction of the neighbors.

    ``parameter`` is ``mu`` of the Gaussian pair that has the point on its profile.
    """

    epsilon: float
    log_delta: float
    parameter: float
    direction: Direction
    side: Side

    @property
    def tilt(self) -> float:
        return min(max(self.epsilon / self.parameter**2 - 0.5, 0.1), _LARGEST_TILT)

    @property
    def unit(self) -> float:
        """Of all lengths."""
        return max(self.epsilon, 6.0 * self.parameter)

    @property
    def step(self) -> float:
        return self.unit * _STEP


@dataclass(frozen=True, eq=False)
class Growing:
    """A composition so far: the product of all spectra, and sums over all uses.

    ``log_finite`` is that of ``log(1 - f_i)``, ``moments`` that of the logs of moment generating
    functions, at the orders (first row) and at minus them.
    """

    point: Point
    product: Product
    mean: float = 0.0
    offset: float = 0.0
    log_norm: float = 0.0
    slack: float = 0.0
    log_finite: float = 0.0
    uses: int = 0
    moments: Float | float = 0.0

    @staticmethod
    def of(point: Point) -> Growing:
        return Growing(point, Product.of(_NODES))

    def plus(self, pair: Dominating, count: int) -> Growing:
        """This composition and some uses of a step.

        Raises
        ------
        CertificationError
            If the step cannot be put on the lattice.
        """
        measure = _measure(pair, self.point)
        orders = _ORDERS / self.point.unit
        moments = np.array([[measure.log_mgf(s * sign) for s in orders] for sign in (1.0, -1.0)])
        offset = self.offset + count * measure.offset
        with np.errstate(divide="ignore"):
            finite = float(np.log1p(-min(measure.infinite, 1.0)))
        return replace(
            self,
            product=self.product.times(measure, count),
            mean=self.mean + count * measure.moments[0],
            offset=offset,
            log_norm=self.log_norm + count * measure.log_norm,
            # With the rounding of the sum of offsets.
            slack=self.slack + count * measure.slack + 4.0 * UNIT * abs(offset),
            log_finite=self.log_finite + count * finite,
            uses=self.uses + count,
            moments=self.moments + count * moments,
        )

    @property
    def bias(self) -> float:
        """How much an upper bound is above the true epsilon, about."""
        return 0.25 * self.uses * self.point.step**2 * (self.point.tilt + 1.0)

    @property
    def log_delta(self) -> float:
        """Log of the bound on delta at the epsilon of the point."""
        step, orders = self.point.step, _ORDERS / self.point.unit
        first = round((self.mean - self.offset) / step) - _NODES // 2
        low, high = (self.offset + (first + k) * step for k in (0, _NODES))
        # Chernoff's bounds on what is above and on what is below.
        logs = (self.moments - np.array([orders * high, -orders * low])).min(axis=1)
        outside = sum(math.exp(min(log, 0.0)) for log in logs.tolist())
        lattice = Lattice(
            step,
            self.offset,
            self.point.tilt,
            self.log_norm,
            0.0,
            self.slack,
            first,
            _NODES,
            outside * (1.0 + 1e-9),
        )
        bound = FrequencyBound(lattice, self.product.frequencies(first), self.point.side)
        found = bound.log_delta(self.point.epsilon)
        if self.log_finite == 0.0:
            return found
        # What is infinite counts whole; with the rounding of the sum.
        share = -math.expm1(self.log_finite) * (1.0 + bound.sign * 1e-9)
        return float(np.logaddexp(found, math.log(share)))


@kept()
def _measure(pair: Dominating, point: Point) -> NodeMeasure:
    """The bound of one use on the lattice."""
    direction, tilt = point.direction, point.tilt
    if point.side == "lower" and isinstance(pair, AtomPair):
        pair = pair.below(direction, tilt)
    reach = reach_for(point.log_delta, _MOST_USES)
    if isinstance(pair, AtomPair):
        log_norm = pair.log_transform(direction, tilt)
    else:
        log_norm = Composition.of(((pair, 1),), direction, reach).saddle(tilt).value
    source = dense(pair, direction, reach)
    far = _FARTHEST * point.unit
    large, small = source.highest > far, source.lowest < -far
    chosen = ~(large | small)
    if not chosen.any() or not math.isfinite(log_norm):
        raise CertificationError("the losses of one step are beyond the window")
    lattice = point.step, _anchor(source, chosen, tilt)
    bins = graded_bins(source, chosen, large, lattice, tilt, log_norm)
    if not bins.mass.sum() + bins.at_edges.sum() > 0.0:
        raise CertificationError("the losses of one step have no mass within the window")
    # Each mass bears its own rounding.
    found = node_measure(replace(bins, whole=False), point.side)
    return replace(found, infinite=found.infinite + pair.infinite(direction))


def _anchor(source: Dense, chosen: Mask, tilt: float) -> float:
    """A loss that lies on a node: that of the heaviest atom, of which a lower bound would lose what
    it is above one; the least loss where there are no atoms."""
    atoms = np.flatnonzero(chosen[source.panels :])
    if not atoms.size:
        return float(source.lowest[chosen].min())
    losses = source.atom_loss[atoms]
    weights = source.log_mass[source.panels :][atoms] + tilt * losses
    return float(losses[np.argmax(weights)])
