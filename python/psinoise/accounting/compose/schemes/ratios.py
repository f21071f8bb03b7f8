"""The measure that random allocation needs: sums of likelihood ratios under ``Q``.

An *epoch* has ``t`` steps, and a record takes part in one of them, drawn uniformly. Let ``(P, Q)``
dominate one step: ``P`` with the record, ``Q`` without. The outputs of the epoch without it are
``Q^t``, and with it the mixture over ``j`` of ``Q^{j-1} P Q^{t-j}``, whose likelihood ratio is the
average ``A`` of ``t`` independent ratios ``R_i = dP/dQ`` under ``Q``. The two directions are

* *remove*: ``delta(eps) = E_Q (A - e^eps)^+``, and what ``P`` has where ``Q`` has nothing, which
  is the probability of that for one step;
* *add*: ``delta(eps) = E_Q (1 - e^eps A)^+``.

*A pair that dominates each step dominates the epoch.* By Blackwell's theorem (in this form Kairouz,
Oh and Viswanath 2015, theorem 10) a pair dominates another if and only if a random map takes its
laws to those of the other. Steps may depend on earlier outputs: given these, there is such a map
for the next step. Applied in turn to independent outputs of ``Q, .., P, .., Q`` they give the
outputs of the epoch in which the record takes part in the step of ``P``, and from ``Q^t`` those of
the epoch without it. They do not depend on which step that is, so they take the mixture to the
mixture. Other records are a mixture that is the same on both sides, and ``delta`` is jointly
convex. QED. (V. Feldman and M. Shenfeld, "Efficient privacy loss accounting for subsampling and
random allocation", ICML 2026, compute the same pair.)

*k of t steps.* Draw ``k floor(t/k)`` of the steps, part them at random into ``k`` blocks of the
same size, and draw one step of each block: a uniform choice of ``k`` steps. Given the blocks, the
maps above take ``k`` independent epochs of ``floor(t/k)`` steps, composed, to the outputs; and
``delta`` is jointly convex. So these are a bound from above. From below nothing is said.

The measure
-----------
``z`` is the sum of ``w`` ratios under *remove* and minus the sum under *add*. With
``c = t e^eps`` or ``-t e^-eps``, both profiles are a constant times ``E_Q (z - c)^+``, which
*rises in z and is convex in the ratio of each step*. So nodes ``(z_k, q_k)`` with masses under
``Q`` are, as losses are in ``measure``, a bound on one side, and stay one in all sums:

* *lower*: the outputs of a bin become one node, at their mean or below it (Jensen);
* *upper*: a bin is split to its ends, with its mean kept or raised;
* masses may be left out from below, and ``z`` may be raised from above.

Sums of ``z`` are what ``core.binned_products`` bins. All ratios are positive, so that they have
relative accuracy however small they are. From above, under *remove*, outputs of one step with too
large a ratio become two: one that ``Q`` does not have, with all their mass under ``P``, and one
that ``P`` does not have, with all their mass under ``Q``, which counts as the least node. That is a
pair that dominates.

Masses have a relative error of ``rounding``, which counts ``t`` times at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.measures.bins import masses_in_bins
from psinoise.accounting.compose.measures.dense import Dense, Mask, dense
from psinoise.accounting.compose.measures.measure import (
    UNIT,
    Bins,
    Side,
    apart,
    covering,
    measure_of_masses,
)
from psinoise.accounting.loss.atoms import Dominating
from psinoise.accounting.loss.pairs import Direction, Float
from psinoise.errors import CertificationError
from psinoise.numerics.distinct import distinct

# Logs of ratios beyond these would overflow in products with masses.
_LARGEST_LOG = 600.0
# Masses below this lose digits in products: their bins are taken at the safe end.
_LEAST_MASS = 1e-290
_LEAST = 5e-324
# Bins of one step are at most this wide in the loss: the roundings of their masses do not grow.
# There are no more of them than this.
_WIDEST, _FARTHEST = 1.0, 1e5
_LEAST_BIN = 4.0


@dataclass(frozen=True, eq=False)
class Ratios:
    """Masses under ``Q`` at sums of ratios that rise; a bound on one side.

    Attributes
    ----------
    side : which bound it is
    value, mass : of the nodes, none of them at 0
    zero : mass at 0, where no step can have given its output with the record
    infinite : what an average adds to delta whatever epsilon is, from above
    rounding : relative error of the masses
    """

    side: Side
    value: Float
    mass: Float
    zero: float
    infinite: float
    rounding: float

    @property
    def all_nodes(self) -> tuple[Float, Float]:
        """Values and masses with what lies at 0."""
        if self.zero == 0.0:
            return self.value, self.mass
        place = int(np.searchsorted(self.value, 0.0))
        return np.insert(self.value, place, 0.0), np.insert(self.mass, place, self.zero)


def span_of(a: Ratios, b: Ratios) -> tuple[float, float]:
    """The least and the largest sum that is not 0, with room for roundings."""
    (x, _), (y, _) = a.all_nodes, b.all_nodes
    low, high = float(x[0] + y[0]), float(x[-1] + y[-1])
    if low == 0.0:
        low = float(min(a.value[0], b.value[0]))
    if high == 0.0:
        high = float(max(a.value[-1], b.value[-1]))
    return low - 1e-15 * abs(low), high + 1e-15 * abs(high)


def product(a: Ratios, b: Ratios, edges: Float) -> tuple[Ratios, Bins]:
    """The sum of two independent values, binned by edges that hold all sums."""
    zero = a.zero * b.zero
    held, inside = edges, slice(None)
    if zero > 0.0:
        # Sums that are 0 get a bin of their own at the end.
        positive = bool(edges[0] > 0.0)
        held = np.insert(edges, 0, 0.0) if positive else np.append(edges, 0.0)
        inside = slice(1, None) if positive else slice(-1)
    mass, moment = (part[inside] for part in binned(a, b, held))
    # A value is the sum of two of the same sign: its rounding is a share of itself.
    off = 16.0 * UNIT * np.maximum(np.abs(edges[:-1]), np.abs(edges[1:]))
    relative = 2.0 * UNIT * (a.value.size + b.value.size + 8)
    width = np.diff(edges)
    mean = np.divide(moment, mass, out=np.zeros(mass.size), where=mass > 0.0)
    least = np.clip(mean * (1.0 - relative) - off, 0.0, width)
    most = np.clip(mean * (1.0 + relative) + off, 0.0, width)
    faint = mass < _LEAST_MASS
    least[faint], most[faint] = 0.0, width[faint]
    bins = Bins(edges, mass, 0.5 * (least + most))
    nodes = _nodes(bins, a.side, most if a.side == "upper" else least)
    return _summed(a, b, nodes, float(edges[-1])), bins


def binned(a: Ratios, b: Ratios, edges: Float) -> tuple[Float, Float]:
    """Masses of the bins of all sums, and their first moments above the lower edges.

    Points that are no numbers keep nodes off lattices, on which a sum of values far from 0 is
    rounded by more than a share of itself.
    """
    (x, p), (y, q) = a.all_nodes, b.all_nodes
    off, off_too = np.full(x.size, np.nan), np.full(y.size, np.nan)
    mass, moment, _, _ = core.binned_products(x, off, p, y, off_too, q, edges, 0)
    return mass, moment


def _summed(a: Ratios, b: Ratios, nodes: tuple[Float, Float], largest: float) -> Ratios:
    """The sum of two values, from its nodes and the largest value."""
    infinite = max(a.infinite, b.infinite)
    if a.side == "upper":
        # Masses that underflow, of products of nodes at 0 too, in the place of the largest value.
        pairs = (a.value.size + 1.0) * (b.value.size + 1.0)
        infinite += _LEAST * pairs * max(largest, 1.0)
    rounding = a.rounding + b.rounding + UNIT * (a.value.size + b.value.size + 8)
    return Ratios(a.side, *nodes, a.zero * b.zero, infinite, rounding)


def _nodes(bins: Bins, side: Side, mean: Float) -> tuple[Float, Float]:
    """One node or two for each bin that is not empty; the mean is on the side of the bound."""
    held = bins.mass > 0.0
    if side == "lower":
        return bins.edges[:-1][held] + mean[held], bins.mass[held]
    if side == "middle":
        return bins.middle[held], bins.mass[held]
    up = bins.mass * np.minimum(mean / np.diff(bins.edges), 1.0)
    nodes = np.zeros(bins.edges.size)
    nodes[:-1] = bins.mass - up
    nodes[1:] += up
    held = nodes > 0.0
    return bins.edges[held], nodes[held]


def exact_product(a: Ratios, b: Ratios) -> Ratios:
    """The sum of two values with few nodes: every product is a node of its own."""
    (x, p), (y, q) = a.all_nodes, b.all_nodes
    value, mass = np.add.outer(x, y).ravel(), np.multiply.outer(p, q).ravel()
    if not value.size:
        raise CertificationError("the likelihood ratios of an epoch have no mass")
    largest, held = float(value.max()), value != 0.0
    away = {"upper": 2.0, "middle": 0.0, "lower": -2.0}[a.side]
    value = value[held] + away * UNIT * np.abs(value[held])
    return _summed(a, b, _merged(value, mass[held]), largest)


def _merged(value: Float, mass: Float) -> tuple[Float, Float]:
    """Values that rise, equal ones once."""
    order = np.argsort(value, kind="stable")
    value, mass = value[order], mass[order]
    starts = np.flatnonzero(np.diff(value, prepend=-np.inf) > 0.0)
    return value[starts], np.add.reduceat(mass, starts)


@dataclass(frozen=True, eq=False)
class Parts:
    """What of one step is cut into bins: the masses under ``Q``, and where the rest counts.

    Attributes
    ----------
    sign : 1 under *remove*, -1 under *add*: that of the value of a ratio
    source : loss under *add*, the log of ``dQ/dP``, on the outputs that matter
    unseen : mass under ``Q`` of a ratio of 0
    infinite : mass under ``P`` that may count as an infinite loss, from above
    nowhere : mass under ``Q`` that may count as a ratio of 0, from above
    light : mass under ``Q`` whose value may count as that of the least node, from above
    """

    sign: float
    source: Dense
    unseen: float
    infinite: float
    nowhere: float
    light: float

    @property
    def atoms(self) -> Float:
        """Logs of the ratios of the atoms."""
        return -self.source.atom_loss

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest log of a ratio."""
        low, high = covering(self.source, self._all)
        return -high, -low

    @property
    def _all(self) -> Mask:
        return np.ones(self.source.log_mass.size, dtype=bool)

    @property
    def moments(self) -> tuple[float, float]:
        """About the mean, and three times the deviation, of the log of the ratio under ``Q``."""
        middle = -0.5 * (self.source.lowest + self.source.highest)
        weight = np.exp(self.source.log_mass - self.source.log_mass.max())
        weight /= weight.sum()
        center = float(weight @ middle)
        return center, 3.0 * math.sqrt(float(weight @ (middle - center) ** 2))

    def values(self, logs: Float) -> Float:
        """Values of some logs of ratios, in their order."""
        return np.sort(self.sign * np.exp(np.clip(logs, -_LARGEST_LOG, _LARGEST_LOG)))

    def edges(self, inner: Float, atoms: bool) -> Float:
        """Edges in the log of the ratio that hold all of it, no wider than 1; and the atoms.

        Raises
        ------
        CertificationError
            if the logs of ratios are too far apart
        """
        low, high = self.span
        if not high - low < _FARTHEST:
            raise CertificationError("the likelihood ratios of one step are too far apart")
        regular = np.arange(math.ceil(low), math.floor(high) + 1.0, _WIDEST)
        inner = inner[(inner > low) & (inner < high)]
        edges = distinct(np.concatenate([[low, high], regular, inner]))
        edges = apart(edges, _LEAST_BIN * self.source.rounding)
        return distinct(np.concatenate([edges, self.atoms])) if atoms else edges

    def ratios(self, edges: Float, side: Side) -> Ratios:
        """The measure of one step; edges are logs of ratios.

        Raises
        ------
        CertificationError
            if no ratio is a float64 above 0
        """
        # The mean ratio of a bin, and not its mean loss, is what a sum of ratios keeps.
        kept: Side = "upper" if side == "upper" else "lower"
        # Values rise with the loss under add where they are minus the ratio.
        up = (side == "upper") == (self.sign < 0.0)
        found = masses_in_bins(self.source, self._all, ~self._all, -edges[::-1])
        smooth = self.source.panels > 0
        made, _ = measure_of_masses(found, -edges[::-1], kept, smooth=smooth, up=up)
        loss, mass, lost = made.loss, made.mass, made.infinite
        if side != "middle":
            shift = made.slack + 8.0 * UNIT * np.maximum(np.abs(loss), 1.0)
            loss = loss + (shift if up else -shift)
        ratio = np.exp(np.clip(-loss, -_LARGEST_LOG, _LARGEST_LOG + 1.0))
        if up:
            ratio[loss > _LARGEST_LOG] = 0.0
        zero, infinite = self.unseen + float(mass[ratio == 0.0].sum()), 0.0
        held = (mass > 0.0) & (ratio > 0.0)
        if not held.any():
            raise CertificationError("the likelihood ratios of one step are no float64")
        value, mass = _merged(self.sign * ratio[held], mass[held])
        if side == "upper":
            zero += self.nowhere + lost
            mass[0] += self.light + lost
            infinite = self.infinite + lost * max(float(ratio.max()), 1.0)
        rounding = 4.0 * math.expm1(_WIDEST) * float(found.rounding.max())
        return Ratios(side, value, mass, zero, infinite, rounding + made.slack + 16.0 * UNIT)

    def bins(self, edges: Float, middle: Ratios) -> Bins:
        """What the bins of one step hold, atoms on their edges apart, for a plan."""
        levels = distinct(self.values(edges))
        inside = ~np.isin(middle.value, levels)
        value, mass = middle.value[inside], middle.mass[inside]
        where = np.clip(np.searchsorted(levels, value, side="right") - 1, 0, levels.size - 2)
        total: Float = np.bincount(where, mass, levels.size - 1).astype(np.float64)
        moment = np.bincount(where, mass * (value - levels[where]), levels.size - 1)
        mean = np.divide(moment, total, out=np.zeros(total.size), where=total > 0.0)
        return Bins(levels, total, np.clip(mean, 0.0, np.diff(levels)))


def parts_of(
    pair: Dominating, reach: float, direction: Direction, rare: float, share: float
) -> Parts:
    """The outputs of one step that matter, on panels that reach so far.

    ``rare`` is a mass under ``P`` that may count as an infinite loss (*remove*), and ``share`` one
    under ``Q`` that may be moved at either end.

    Raises
    ------
    CertificationError
        if all ratios are too large for float64
    """
    remove, add = dense(pair, "remove", reach), dense(pair, "add", reach)
    # No mass is above 1.
    p, q = (np.exp(np.minimum(s.log_mass + s.doubt, 1.0)) for s in (remove, add))
    far = remove.highest > _LARGEST_LOG
    infinite = nowhere = 0.0
    if direction == "remove":
        large = remove.rarest(p, rare) | far
        small = add.rarest(q, share) & ~large
        infinite = remove.mass_of(large) + remove.beyond
        # What is moved to infinity has less mass under Q, its losses being positive; or all of it.
        light = add.mass_of(small | large) + add.beyond
    else:
        large = add.rarest(q, share) & ~far
        # Rare under Q: those with the largest ratios.
        small = (remove.rarest(q, share) | far) & ~large
        nowhere = add.mass_of(large) + add.beyond
        light = add.mass_of(small)
    kept = ~(large | small)
    if not kept.any():
        kept = ~far
    if not kept.any():
        raise CertificationError("the likelihood ratios of one step are too large")
    source = add.only(kept)
    source = source.rounded_within(np.ones(source.log_mass.size, dtype=bool))
    sign = 1.0 if direction == "remove" else -1.0
    return Parts(sign, source, pair.infinite("add"), infinite, nowhere, light)
