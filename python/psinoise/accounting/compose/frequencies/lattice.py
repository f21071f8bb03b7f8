"""Measures on a lattice whose profile lies above, or below, that of the true privacy loss.

Let a bin between the nodes ``l_j = j h`` and ``l_{j+1}`` have masses ``A = P(bin)``,
``B = Q(bin)`` and ``gamma_j = e^{l_j}``.

Upper bound (connect the dots, exact in mass)
---------------------------------------------
Each bin is split to its ends as in ``measure``, which has the proof: ``w A`` goes to the upper
node, with ``w A = (A - gamma_j B) / (1 - e^{-h})``. Losses above the last node go to ``+infinity``,
and those that are too small to matter to the first node above all of them.

Lower bound (balanced contraction)
----------------------------------
Merging outputs is post-processing, which only lowers the profile. Let ``u_j = A_j - gamma_j B_j >=
0`` and ``d_j = gamma_{j+1} B_j - A_j >= 0``. Send the share ``m_j`` of bin ``j`` to node ``j`` and
the rest to node ``j + 1``, with ``m_j u_j = (1 - m_{j-1}) d_{j-1}``: then node ``j`` holds masses
whose ratio is exactly ``gamma_j``, and merging its outputs gives loss ``l_j``. The recursion runs
from both tails towards the mode, where it contracts errors. Where both meet, one node has too
little that pays for what comes up: a share ``y`` of bin ``j + 1`` comes down to node ``j`` too, and
pays for ``y (A_{j+1} - gamma_j B_{j+1})``. Without that a loss whose density rises within a few
nodes is lowered by many times its bias. What cannot be balanced (at the ends, at atoms) stays at
the node *below* its true loss, and losses outside the lattice are dropped. Lowering a loss, or
dropping ``P``-mass, lowers ``E_P[(1 - e^{eps - L})^+]`` of every composition.

Atoms whose loss is that of a node are in no bin: they stay there, and both bounds are exact.

Rounding of the masses
----------------------
The masses of the nodes are known to a relative error ``r`` each, and with what was left out sum to
1: the argument of ``measure`` keeps many uses from raising ``r``. Off by about ``n r E|L - pivot|``
in epsilon, and ``e^{t pivot} <= e^{t E L} <= M(t)``, so that a tilt makes no more than ``2 r`` of
``r``.

The contraction needs more: ``u_j`` and ``d_j`` are sums of the same densities, which are off by
``r`` each, so that what balances as computed has ``m_j u_j`` too large by up to ``r m_j u_j`` and
``(1 - m_{j-1}) d_{j-1}`` too small by as much. The node then has ``P - e^l Q >= -2 r m_j u_j``, and
``m_j u_j <= (1 - e^{-w}) P`` for a bin of width ``w``: its loss is off by less than ``3 r w``.
(With a share of the next bin ``w`` is the width of both and ``r`` the larger one.) That is slack. A
node to which bins ``i`` come up from as far as ``x <= 1`` below has room ``(e^{x_i} - 1) A_i -
e^{x_i} u_i`` for its excess, which is off by ``r`` of both terms: ``P - e^l Q >= -r u - sum 2 r
(e^{x_i} - 1) A_i``, and its loss is off by less than ``12 r x``.

Both profiles differ from the true one by ``O(h^2)``: relative to delta by about ``n h^2 t (t + 1)
/ 12`` above and ``n h^2 t (t + 1) / 6`` below for ``n`` uses, ``t`` the saddle point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.accounting.compose.measures.bins import Index, LatticeBins, loss_bins
from psinoise.accounting.compose.measures.dense import Dense, Mask
from psinoise.accounting.compose.measures.measure import UNIT, Side, in_order
from psinoise.accounting.loss.pairs import Float
from psinoise.errors import CertificationError

# Nodes are farther apart than so many roundings of a loss.
_LEAST_STEP = 4.0
# Of one step; more take longer than products.
_MOST_BINS = 2**20
# Masses that are tilted by no more have all of their digits.
_LARGEST_EXPONENT = 600.0
# Nothing is moved up by more than this, as an exponent of its tilt.
_LARGEST_LIFT = 50.0


@dataclass(frozen=True, eq=False)
class NodeMeasure:
    """A measure on the nodes of a lattice, tilted and normalized.

    Attributes
    ----------
    step, offset, index : node ``k`` of the array has loss ``offset + index[k] * step``; the
        indices rise
    mass : tilted masses; they sum to 1
    tilt, log_norm : the true mass of node ``k`` is ``mass[k] * exp(log_norm - tilt * loss)``
    infinite : mass at ``+infinity``
    slack : the losses of the true measure are within this of the nodes they are bounds for
    """

    step: float
    offset: float
    index: Index
    mass: Float
    tilt: float
    log_norm: float
    infinite: float
    slack: float

    @property
    def losses(self) -> Float:
        return np.asarray(self.offset + self.index * self.step)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of the tilted loss."""
        losses = self.losses
        # No products of matrices: a threaded library would take longer to start.
        mean = float(np.sum(self.mass * losses))
        return mean, float(np.sum(self.mass * (losses - mean) ** 2))

    def log_mgf(self, s: float) -> float:
        """Log of ``E[e^{s L}]`` under the tilted measure."""
        return s * self.offset + core.log_mgf(self.mass, self.index, s * self.step)


# Measures on one lattice with one tilt, and how often each is used.
Parts = list[tuple[NodeMeasure, int]]


def graded_bins(
    source: Dense,
    chosen: Mask,
    large: Mask,
    lattice: tuple[float, float],
    tilt: float,
    log_norm: float,
) -> LatticeBins:
    """Bins of 1, 2, 4, ..., 256 steps: one where the tilted mass lies, many where is next to none.

    Both constructions hold for any widths; what ``csrc/losses/loss_edges.cpp`` chooses only decides
    how close they come. The arguments are those of `bins.loss_bins`.

    Raises
    ------
    CertificationError
        if no loss is chosen, all are in one bin or in too many, or they are not known well enough
    """
    if not chosen.any():
        raise CertificationError("there is no mass where the lattice is to be")
    source = source.rounded_within(chosen, lattice[1])
    if lattice[0] < _LEAST_STEP * source.rounding:
        raise CertificationError("the spacing of the lattice is lost in the rounding of losses")
    parts = source.finest(chosen)
    edges = core.graded_edges(*parts, *lattice, source.rounding, tilt, log_norm)
    if edges.size > _MOST_BINS:
        raise CertificationError(f"losses are in {edges.size:.3g} bins, which is too many")
    if edges.size < 3:
        raise CertificationError("all losses are in one bin of the lattice")
    return loss_bins(source, chosen, large, lattice, edges, tilt, log_norm)


def node_measure(bins: LatticeBins, side: Side, doublings: int = 0) -> NodeMeasure:
    """Move the masses of the bins to the nodes, so that the profile rises or falls.

    They count as nodes of a lattice whose step is that of the bins, halved so many times.

    Raises
    ------
    CertificationError
        if no mass is left under the tilt, or it is beyond float64
    """
    # Levels are rounded sums of the offset and some steps.
    ends = bins.offset + bins.edges[[0, -1]] * bins.step
    slack = bins.slack + 2.0 * UNIT * float(np.abs(ends).max())
    if side == "upper":
        nodes = _connect_the_dots(bins) + bins.at_edges
        ceiling = bins.offset + int(bins.edges[bins.ceiling]) * bins.step
        nodes[bins.ceiling] += bins.below * math.exp(bins.tilt * ceiling - bins.log_norm)
        infinite = bins.above
        nodes = _rounded(bins, nodes, 1.0, 1.0)
    else:
        bins, distance = _last_balanced(bins)
        nodes = _contracted(bins) + bins.at_edges
        infinite, slack = 0.0, slack + 3.0 * _largest_share(bins)
        slack += 12.0 * float(bins.rounding.max()) * distance
        total = 1.0 - (bins.below + bins.above) * (1.0 + 1e-9)
        nodes = np.maximum(_rounded(bins, nodes, total, -1.0), 0.0)
    total = float(nodes.sum())
    if not 0.0 < total < math.inf:
        raise CertificationError("there is no mass left on the lattice")
    return NodeMeasure(
        math.ldexp(bins.step, -doublings),
        bins.offset,
        bins.edges << doublings,
        nodes / total,
        bins.tilt,
        bins.log_norm + math.log(total),
        infinite,
        slack,
    )


def _largest_share(bins: LatticeBins) -> float:
    """The largest product of a rounding of masses and the width of two bins side by side, or 1."""
    held = bins.mass > 0.0
    start, end = bins.edges[:-1][held], bins.edges[1:][held]
    widths = np.minimum((np.append(end[1:], end[-1:]) - start) * bins.step, 1.0)
    rounding = bins.rounding[:-1][held]
    largest = np.maximum(rounding, np.append(rounding[1:], rounding[-1:]))
    return float(np.max(largest * widths, initial=0.0))


def _rounded(bins: LatticeBins, nodes: Float, total: float, sign: float) -> Float:
    """Tilted masses with their rounding, outwards: up if ``sign`` is 1, down if -1.

    ``total`` bounds the sum of the true masses on that side. Where not all of the mass is in the
    bins, or `in_order` finds no order, each mass bears its own rounding.
    """
    if not bins.whole and not bins.rounding.strides[0]:
        return nodes * (1.0 + sign * float(bins.rounding[0]))  # the same for each mass
    # A node has mass of the bin above it, and of the last one below that is not empty; from below
    # one has a share of the bin after that above it, too.
    full = bins.mass > 0.0
    last = np.maximum.accumulate(np.where(full, np.arange(full.size), 0))
    rounding = bins.rounding.copy()
    if sign < 0.0:
        held = np.flatnonzero(full)
        rounding[held[:-1]] = np.maximum(rounding[held[:-1]], rounding[held[1:]])
    rounding[1:] = np.maximum(rounding[1:], rounding[last])
    plain = nodes * (1.0 + sign * rounding)
    if not bins.whole:
        return plain
    levels: Float = np.asarray(bins.offset + bins.edges * bins.step, np.float64)
    size = np.abs(bins.tilt * levels) + abs(bins.log_norm)
    if float(size.max()) > _LARGEST_EXPONENT:
        return plain
    # Right to the rounding of its exponent, which masses bear both ways.
    untilted = np.exp(bins.log_norm - bins.tilt * levels)
    exponential = UNIT * (6.0 + 2.0 * size)
    rounding += exponential
    # What was left out below is rounded up, and is to be found here.
    rounding[bins.ceiling] += bins.cut
    masses = in_order(levels, nodes * untilted, rounding, total, sign)
    return plain if masses is None else masses / untilted * (1.0 + sign * exponential)


def _contracted(bins: LatticeBins) -> Float:
    """The balanced contraction, with each bin as wide as to the next one that is not empty.

    What lies beside an empty bin could not be balanced. So a few atoms that lie apart balance each
    other, which costs the distance from a node times that of the atoms, instead of the former.
    """
    held = bins.mass > 0.0
    if np.count_nonzero(held) < 2:
        held[-2:] = True  # two bins at least
    kept = np.append(held, True)
    widths = np.diff(bins.edges[kept]) * bins.step
    nodes = np.zeros(bins.edges.size)
    nodes[kept] = core.balanced_nodes(bins.mass[held], bins.excess[held], widths, bins.tilt)
    return nodes


def _last_balanced(bins: LatticeBins) -> tuple[LatticeBins, float]:
    """Bins whose last node is balanced, and how far what it takes lies below it.

    What lies above that node, as an atom of the largest loss, may have more excess than there is
    room for in the bin below. Then bins farther below come up, as many as keep its ratio; what it
    holds is an atom on an edge.
    """
    if not bins.mass.any():
        return bins, 0.0
    last = int(np.flatnonzero(bins.mass)[-1])
    below = (bins.edges[last] - bins.edges[:last][::-1]) * bins.step
    farthest = _LARGEST_LIFT / max(bins.tilt, _LARGEST_LIFT)
    below = below[: np.searchsorted(below, farthest, side="right")]
    taken = slice(last - below.size, last)
    lift = np.exp(bins.tilt * below)
    room = np.expm1(below) * bins.mass[taken][::-1] - np.exp(below) * bins.excess[taken][::-1]
    room = np.maximum(lift * room, 0.0)
    surplus = float(bins.excess[last])
    if not below.size or surplus <= room[0]:
        return bins, 0.0
    before = np.cumsum(room) - room
    with np.errstate(over="ignore"):
        share = np.divide(surplus - before, room, out=np.zeros(room.size), where=room > 0.0)
    share = np.clip(share, 0.0, 1.0)
    mass, excess, held = bins.mass.copy(), bins.excess.copy(), bins.at_edges.copy()
    held[last] += mass[last] + np.sum(share * lift * mass[taken][::-1])
    mass[taken] *= 1.0 - share[::-1]
    excess[taken] *= 1.0 - share[::-1]
    mass[last] = excess[last] = 0.0
    rounding = bins.rounding.copy()
    rounding[last] = rounding[taken.start : last + 1].max()
    made = replace(bins, mass=mass, excess=excess, at_edges=held, rounding=rounding)
    return made, float(below[share > 0.0].max(initial=0.0))


def _connect_the_dots(bins: LatticeBins) -> Float:
    widths = bins.widths
    up = np.minimum(bins.excess / -np.expm1(-widths), bins.mass)
    nodes = np.zeros(bins.mass.size + 1)
    nodes[:-1] = bins.mass - up
    nodes[1:] += up * np.exp(bins.tilt * widths)
    return nodes
