"""Masses of the privacy loss in the bins of a lattice, each to full relative precision.

Bin ``j`` of a lattice with step ``h`` holds the outputs with loss in ``[j h, (j + 1) h)``. Of each
bin two integrals are kept, both of positive terms: ``A = P(bin)`` and the excess
``u = P(bin) - e^{j h} Q(bin)``. Everything is tilted by the level of the bin: multiplied by
``exp(t j h - k)`` with a common ``k``, so that the bins around the epsilon of interest are of order
1 when delta is 1e-100.

Edges are level points of the loss, found to rounding on the panels of the quadrature, on which the
loss is monotone. What is left of ``loss(x_j) - j h`` is the *slack*: bins whose edges are off by it
are exact bins of a loss that is off by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.accounting.compose.measures.dense import Dense, Mask
from psinoise.accounting.loss.atoms import EXP_ROUNDING
from psinoise.accounting.loss.pairs import Float

Index = NDArray[np.int64]

# Relative error of a mass of a bin (csrc/kernels/pieces.cpp), beside what the sizes of logs make.
_MASS_ROUNDING = 4e-14
# Masses whose logs are known less well are 0, and stay it.
_MOST_DOUBT = 600.0
# Error of a level, relative to the largest.
_LEVEL_ROUNDING = 2.0**-50
# Parts of bins over which the kernel integrates, and how far above a level its excess is a mass.
_RESOLVED, _FLAT = 0.5, 40.0


@dataclass(frozen=True, eq=False)
class BinMasses:
    """Masses of bins with any edges.

    Attributes
    ----------
    mass, excess : tilted ``A`` and ``u``
    at_edges : tilted masses of atoms that lie on the edges, and in no bin
    rounding : relative error of the masses of the bin above each edge, and of those on it
    below, above : probability under ``P`` of smaller and of larger losses, rounded up
    cut : by which share of it ``below`` may be too large
    slack : largest error of a loss
    ceiling : number of the first edge that no loss that counts as below exceeds
    whole : whether the masses, ``below`` and ``above`` are all of ``P``
    """

    mass: Float
    excess: Float
    at_edges: Float
    rounding: Float
    below: float
    above: float
    cut: float
    slack: float
    ceiling: int
    whole: bool


@dataclass(frozen=True, eq=False)
class LatticeBins(BinMasses):
    """Bins whose edges are nodes of a lattice: bin ``j`` begins at ``offset + edges[j] h``.

    Attributes
    ----------
    step, offset : of the lattice
    edges : whole numbers that rise, one more than there are bins
    tilt, log_norm : a bin that begins at a level was multiplied by ``exp(tilt * level - log_norm)``
    """

    step: float
    offset: float
    edges: Index
    tilt: float
    log_norm: float

    @property
    def widths(self) -> Float:
        """Lengths of the bins."""
        return np.asarray(np.diff(self.edges) * self.step)


def parts_of(widths: Float) -> Index:
    """Into how many parts bins of some widths are cut, each with an integral of its own."""
    return np.minimum(np.ceil(widths / _RESOLVED), _FLAT / _RESOLVED).astype(np.int64)


def _resolving(levels: Float) -> tuple[Float, Index | None]:
    """Levels between which the kernel integrates ``1 - e^{level - L}``, and the bin of each.

    The integrand changes over a unit of loss above the lower level of a bin, and is 1 beyond
    ``_FLAT``: what lies there is one more bin, whose excess is its mass.
    """
    widths = np.diff(levels)
    if not (widths > _RESOLVED).any():
        return levels, None
    parts = parts_of(widths)
    owner = np.repeat(np.arange(parts.size), parts)
    place = np.arange(owner.size) - np.repeat(np.cumsum(parts) - parts, parts)
    width = widths[owner]
    share = np.where(width > _FLAT, _RESOLVED * place, width * (place / parts[owner]))
    return np.append(levels[owner] + share, levels[-1]), owner


def _gathered(
    levels: Float, fine: Float, owner: Index, mass: Float, excess: Float, tilt: float
) -> tuple[Float, Float]:
    """Masses and excesses of bins from those of their parts: sums of positive terms.

    Parts are tilted by their own lower levels, and bins by theirs.
    """
    below = levels[owner] - fine[:-1]
    far = np.diff(fine) > 2.0 * _RESOLVED
    weight = np.exp(tilt * below)
    mass, excess = mass * weight, excess * weight
    over = np.where(far, mass, excess * np.exp(below) + mass * -np.expm1(below))
    return _sums(owner, mass, levels.size - 1), _sums(owner, over, levels.size - 1)


def _sums(place: Index, parts: Float, count: int) -> Float:
    return np.bincount(place, parts, count).astype(np.float64)


def masses_in_bins(
    source: Dense,
    chosen: Mask,
    large: Mask,
    levels: Float,
    tilt: float = 0.0,
    log_norm: float = 0.0,
) -> BinMasses:
    """Bins of the loss between rising levels.

    ``chosen`` says which panels, then which atoms are cut into bins, whose levels hold all of their
    losses; ``large`` which count as above all of them. The others count as below.
    """
    count = levels.size - 1
    mass, excess, at_edges = np.zeros(count), np.zeros(count), np.zeros(levels.size)
    rounding = np.full(levels.size, _MASS_ROUNDING)
    slack = source.rounding
    rows = np.flatnonzero(chosen[: source.panels])
    if rows.size:
        pair = source.pair
        assert pair is not None
        fine, owner = _resolving(levels)
        shifts = pair.shifts("remove" if source.sign > 0.0 else "add")
        law = pair.noise._table, pair.noise.scale, *shifts, pair.sampling_rate
        samples = source.x[rows], source.loss[rows], source.slope[rows]
        # A bounded law is a part of that of its table.
        norm = log_norm + pair.noise._log_kept
        mass, excess, error = core.loss_bins(*law, *samples, fine, tilt, norm, source.rounding)
        # Edges are off by what they miss their levels by, and by the rounding of that.
        slack += error
        if owner is not None:
            mass, excess = _gathered(levels, fine, owner, mass, excess, tilt)
        # A bin has parts of masses a_k on K panels, of A in all. If their errors are at most
        # g (1 - log m_k), m_k >= a_k the masses of the panels, that of A is the mean of these, no
        # more than g (1 - log A + log K): the entropy of the parts is at most log K.
        with np.errstate(divide="ignore"):
            log_mass = log_norm - tilt * levels[:-1] + np.log(mass)
        untilted = np.where(mass > 0.0, np.maximum(-log_mass, 0.0), 0.0)
        growth = source.error[rows] / (1.0 + np.maximum(-source.log_mass[rows], 0.0))
        rounding[:-1] += float(growth.max()) * (1.0 + math.log(rows.size) + untilted)
    atoms = np.flatnonzero(chosen[source.panels :]) + source.panels
    if atoms.size:
        values = source.atom_loss[atoms - source.panels]
        # An atom that is a node but for rounding, its own and that of the level, is that node.
        near = source.rounding + _LEVEL_ROUNDING * float(np.abs(levels[[0, -1]]).max())
        bins = np.clip(np.searchsorted(levels, values + near, side="right") - 1, 0, count)
        above = levels[bins] - values
        weights = np.exp(source.log_mass[atoms] + tilt * levels[bins] - log_norm)
        on_edge = (np.abs(above) <= near) | (bins == count)
        # What an atom is moved by comes on top of its own rounding.
        moved = np.where(on_edge, np.abs(above), above)
        slack = max(slack, source.rounding + float(moved.max()))
        at_edges = _sums(bins[on_edge], weights[on_edge], levels.size)
        size = np.abs(tilt * levels[bins]) + abs(log_norm)
        doubt = source.doubt[atoms] + EXP_ROUNDING * size
        np.maximum.at(rounding, bins, _MASS_ROUNDING + np.expm1(np.minimum(doubt, _MOST_DOUBT)))
        bins = np.minimum(bins, count - 1)
        weights[on_edge] = 0.0
        over = weights * -np.expm1(np.minimum(above, 0.0))
        mass += _sums(bins, weights, count)
        excess += _sums(bins, over, count)
    small = ~(chosen | large)
    below, beyond = source.mass_of(small), source.mass_of(large) + source.beyond
    # Of what is below there is no less than nothing.
    cut = min(3e-12 + math.expm1(min(2.0 * float(source.doubt[small].max(initial=0.0)), 1.0)), 1.0)
    highest = float(source.highest[small].max(initial=-math.inf)) - source.rounding
    ceiling = min(int(np.searchsorted(levels, highest)), count)
    return BinMasses(
        mass, excess, at_edges, rounding, below, beyond, cut, slack, ceiling, source.whole
    )


def loss_bins(
    source: Dense,
    chosen: Mask,
    large: Mask,
    lattice: tuple[float, float],
    edges: Index,
    tilt: float,
    log_norm: float,
) -> LatticeBins:
    """The same, with edges that are nodes of a lattice: its step and offset, and their numbers."""
    step, offset = lattice
    levels: Float = np.asarray(offset + edges * step, dtype=np.float64)
    found = masses_in_bins(source, chosen, large, levels, tilt, log_norm)
    return LatticeBins(
        **vars(found), step=step, offset=offset, edges=edges, tilt=tilt, log_norm=log_norm
    )
