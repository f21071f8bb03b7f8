"""Masses of the privacy loss in the bins of a lattice, each to full relative precision.

Bin ``j`` of a lattice with step ``h`` holds the outputs with loss in ``[j h, (j + 1) h)``. Of each
bin two integrals are kept, both of positive terms: ``A = P(bin)`` and the excess
``u = P(bin) - e^{j h} Q(bin)``. Everything is tilted by the level of the bin: multiplied by
``exp(t j h - k)`` with a common ``k``, so that the bins around the epsilon of interest are of order
1 when delta is 1e-100.

Edges of bins are level points of the loss, found to rounding on the panels of the quadrature, on
which the loss is monotone. What is left of ``loss(x_j) - j h`` is reported as *slack*: bins whose
edges are off by it are exact bins of a loss that is off by it.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import kept
from psinoise.accounting.loss.atoms import AtomPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Float, Pair
from psinoise.accounting.loss.quadrature import ORDER, Nodes, nodes, panel_points

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

# A loss is a difference of two logs of densities, each right to half of this per unit of its size
# (tests/test_laws.py); panels reach as far as the logs are large.
_LOG_ROUNDING = 8e-16
# Relative error of a mass: of the densities (1e-14) and of the sums.
MASS_ROUNDING = 1e-13
# Of a level, relative to the largest.
_LEVEL_ROUNDING = 2.0**-50
# Of log(1 - q + q e^r), relative, and of sums of an offset and some steps.
_MIXTURE_ROUNDING = 2e-15
# Parts of bins over which the kernel integrates, and how far above a level its excess is a mass.
_RESOLVED, _FLAT = 0.5, 40.0
# Of the losses of atoms: logs of masses that are right to a few ulp, and what merging moves.
_ATOM_ROUNDING = 8e-15

_POINTS = np.polynomial.legendre.leggauss(ORDER)[0]
_SAMPLES = np.concatenate([[-1.0], _POINTS, [1.0]])


def _differentiation_matrix() -> Float:
    """Derivative at the nodes and both ends of the polynomial through the nodes."""
    vandermonde = np.polynomial.legendre.legvander(_POINTS, ORDER - 1)
    slopes = np.stack(
        [
            np.polynomial.legendre.legval(
                _SAMPLES,
                np.polynomial.legendre.legder([0.0] * k + [1.0]),
            )
            for k in range(ORDER)
        ],
        axis=1,
    )
    return np.asarray(slopes @ np.linalg.inv(vandermonde))


_DIFFERENTIATION = _differentiation_matrix()


@dataclass(frozen=True, eq=False)
class Dense:
    """The loss of one step in one direction, densely on the panels of its quadrature.

    Attributes
    ----------
    x, loss, slope : at both ends and at the nodes of each panel, shape ``(panels, ORDER + 2)``
    lowest, highest : of the loss on each panel, then of each atom
    log_mass : log of the probability under ``P`` of each panel, then of each atom
    rounding : of a loss
    beyond : probability under ``P`` of outputs beyond all panels
    """

    pair: Pair | None
    sign: float
    x: Float
    loss: Float
    slope: Float
    lowest: Float
    highest: Float
    log_mass: Float
    beyond: float
    rounding: float

    @property
    def panels(self) -> int:
        return int(self.x.shape[0])

    def rarest(self, mass: Float, limit: float) -> Mask:
        """The panels and atoms with the largest losses, of less mass than a limit; never all."""
        order = np.argsort(self.highest, kind="stable")[::-1]
        large = np.zeros(mass.size, dtype=bool)
        large[order[np.cumsum(mass[order]) < limit]] = True
        if large.all():
            large[order[-1]] = False
        return large

    def only(self, chosen: Mask) -> Dense:
        """The loss on some panels and atoms, as if there were no others."""
        rows = chosen[: self.panels]
        return dataclasses.replace(
            self,
            x=self.x[rows],
            loss=self.loss[rows],
            slope=self.slope[rows],
            lowest=self.lowest[chosen],
            highest=self.highest[chosen],
            log_mass=self.log_mass[chosen],
            beyond=0.0,
        )

    def rounded_within(self, chosen: Mask) -> Dense:
        """The same, with the rounding that the chosen losses have.

        The logs of densities are as large as their ratio, at least. Sampling makes
        ``Lambda = log(1 - q + q e^r)`` of a log ratio ``r``, with the slope
        ``1 - (1 - q) e^{-Lambda}``: small losses have a small share of the rounding of ``r``.
        """
        pair = self.pair
        if pair is None:
            return self
        # Of levels, too, which may be counted from an end of the loss.
        limits = [pair.largest_loss(way) for way in ("remove", "add")]
        largest = max(
            float(np.abs(self.lowest[chosen]).max()),
            float(np.abs(self.highest[chosen]).max()),
            *(abs(limit) for limit in limits if math.isfinite(limit)),
        )
        # Of outputs too, where losses are steep.
        size = largest - math.log(pair.sampling_rate)
        ratio = 4.0 * _LOG_ROUNDING * (len(pair.centers) - 1) * size
        rounding = self.rounding + ratio
        if not pair.replaced and pair.noise.score_limit != 0.0:
            ends = self.highest if self.sign > 0.0 else -self.lowest
            steepest = 1.0 - (1.0 - pair.sampling_rate) * math.exp(
                -float(np.abs(ends[chosen]).max())
            )
            rounding = min(steepest * rounding + _MIXTURE_ROUNDING * largest, rounding)
        return dataclasses.replace(self, rounding=rounding)


def samples(pair: Pair, sign: float, left: Float, right: Float) -> tuple[Float, Float, Float]:
    """Outputs, losses and slopes at both ends and at the nodes of any panels, as in `Dense`."""
    x = panel_points(left, right)[0]
    ends = np.stack([left, right], axis=1)
    return _laid_out(sign, left, right, pair.loss(x), pair.loss(ends))


def _laid_out(
    sign: float, left: Float, right: Float, inner: Float, outer: Float
) -> tuple[Float, Float, Float]:
    """The same, of losses under "remove" that are known at the nodes and at the ends."""
    half = 0.5 * (right - left)
    x = (left + half)[:, None] + half[:, None] * _SAMPLES
    x[:, 0], x[:, -1] = left, right
    loss = np.empty(x.shape)
    loss[:, 1:-1], loss[:, :: ORDER + 1] = inner, outer
    slope = (inner @ _DIFFERENTIATION.T) / half[:, None]
    return (x, loss, slope) if sign > 0.0 else (x, -loss, -slope)


# Samples are large, and those of a thousand steps are asked for once.
@kept(256)
def dense(pair: Dominating, direction: Direction, reach: float) -> Dense:
    """Sample the loss on the panels of a quadrature; cached."""
    return dense_on(nodes(pair, reach), direction, reach)


def dense_on(grid: Nodes, direction: Direction, reach: float) -> Dense:
    """The same on panels that reach so far."""
    pair = grid.pair
    if isinstance(pair, AtomPair):
        return _atoms_alone(pair, direction)
    sign = 1.0 if direction == "remove" else -1.0
    x, loss, slope = _laid_out(sign, grid.left, grid.right, grid.loss, grid.outer_loss)
    atom_loss = sign * grid.atom_loss
    # Lambda is a loss under "remove", where P = Q e^Lambda.
    log_p = grid.log_mass + (grid.loss if sign > 0.0 else 0.0)
    atom_log_p = grid.atom_log_mass + (atom_loss if sign > 0.0 else 0.0)
    panel_log_p = np.logaddexp.reduce(log_p, axis=1) if grid.left.size else np.empty(0)
    # A replaced record adds the error of a second ratio.
    rounding = _LOG_ROUNDING * (len(pair.centers) - 1)
    rounding *= 16.0 + reach + 2.0 * abs(math.log(pair.noise.scale))
    beyond = _beyond(pair, direction, grid)
    if pair.noise.score_limit == 0.0:
        # Heavy tails are cut where the loss is next to 0, to which it falls: their mass is an atom
        # at 0, off by no more than the loss at the ends.
        atom_loss = np.append(atom_loss, 0.0)
        atom_log_p = np.append(atom_log_p, math.log(max(beyond, 5e-324)))
        rounding = max(rounding, float(np.abs(pair.loss(grid.ends)).max()))
        beyond = 0.0
    return Dense(
        pair,
        sign,
        x,
        loss,
        slope,
        np.concatenate([loss.min(axis=1, initial=math.inf), atom_loss]),
        np.concatenate([loss.max(axis=1, initial=-math.inf), atom_loss]),
        np.concatenate([panel_log_p, atom_log_p]),
        beyond,
        rounding,
    )


def _atoms_alone(pair: AtomPair, direction: Direction) -> Dense:
    """A loss that has no panels.

    Its rounding is that of the loss without sampling, which ``log(1 - q + q e^l)`` passes on by its
    slope, ``1 - (1 - q) e^{-Lambda}``, the largest at the largest loss; and that of the map itself.
    """
    log_mass, loss = pair.atoms
    found = atoms_source(log_mass, -loss)
    if direction == "remove":
        found = atoms_source(log_mass + loss, loss)
    without, rate = pair.unsampled[1], pair.sampling_rate
    rounding = _atom_rounding(without, 0.0 if pair.stated else 1.0)
    if rate < 1.0:
        largest = float(np.abs(loss).max(initial=0.0))
        steepest = 1.0 - (1.0 - rate) * math.exp(-max(float(loss.max(initial=0.0)), 0.0))
        rounding = 1.001 * steepest * rounding + _MIXTURE_ROUNDING * largest
    return dataclasses.replace(found, rounding=rounding)


def atoms_source(log_mass: Float, loss: Float) -> Dense:
    """A loss of atoms alone, with the logs of their masses under ``P``."""
    none = np.empty((0, ORDER + 2))
    rounding = _atom_rounding(loss, 1.0)
    return Dense(None, 1.0, none, none, none, loss, loss, log_mass, 0.0, rounding)


def _atom_rounding(loss: Float, least: float) -> float:
    """Losses are right to some ulp of the largest of them, or of a least number."""
    return _ATOM_ROUNDING * max(float(np.abs(loss).max(initial=0.0)), least)


@dataclass(frozen=True, eq=False)
class BinMasses:
    """Masses of bins with any edges.

    Attributes
    ----------
    mass, excess : tilted ``A`` and ``u``
    at_edges : tilted masses of atoms that lie on the edges, and in no bin
    below, above : probability under ``P`` of what was left out, with small and with large losses
    slack : largest error of a loss
    ceiling : number of the first edge that no loss that counts as below exceeds
    """

    mass: Float
    excess: Float
    at_edges: Float
    below: float
    above: float
    slack: float
    ceiling: int


@dataclass(frozen=True, eq=False)
class Bins(BinMasses):
    """Bins whose edges are nodes of a lattice: bin ``j`` begins at ``offset + edges[j] h``.

    Attributes
    ----------
    step, offset : of the lattice
    edges : whole numbers that rise, one more than there are bins
    tilt, log_norm : a bin was multiplied by ``exp(tilt * level - log_norm)``, its level being that
        of its lower edge
    whole : whether the masses, ``below`` and ``above`` are all of ``P``
    """

    step: float
    offset: float
    edges: Index
    tilt: float
    log_norm: float
    whole: bool = False

    @property
    def widths(self) -> Float:
        """Lengths of the bins, in units of loss."""
        return np.asarray(np.diff(self.edges) * self.step)


def _resolving(levels: Float) -> tuple[Float, Index | None]:
    """Levels between which the kernel integrates ``1 - e^{level - L}``, and the bin of each.

    The integrand changes over a unit of loss above the lower level of a bin, and is 1 beyond
    ``_FLAT``: what lies there is one more bin, whose excess is its mass.
    """
    parts = np.minimum(np.ceil(np.diff(levels) / _RESOLVED), _FLAT / _RESOLVED).astype(np.int64)
    if not (parts > 1).any():
        return levels, None
    owner = np.repeat(np.arange(parts.size), parts)
    place = np.arange(owner.size) - np.repeat(np.cumsum(parts) - parts, parts)
    width = np.diff(levels)[owner]
    share = np.where(width > _FLAT, _RESOLVED * place, width * (place / parts[owner]))
    return np.append(levels[owner] + share, levels[-1]), owner


def _gathered(
    fine: Float, owner: Index, mass: Float, excess: Float, count: int, tilt: float
) -> tuple[Float, Float]:
    """Masses and excesses of bins from those of their parts: sums of positive terms.

    Parts are tilted by their own lower levels, and bins by theirs.
    """
    first = np.searchsorted(owner, np.arange(count))
    below = fine[first][owner] - fine[:-1]
    far = np.diff(fine) > 2.0 * _RESOLVED
    weight = np.exp(tilt * below)
    mass, excess = mass * weight, excess * weight
    over = np.where(far, mass, excess * np.exp(below) + mass * -np.expm1(below))
    sums = (np.bincount(owner, part, count).astype(np.float64) for part in (mass, over))
    return next(sums), next(sums)


def masses_in_bins(
    source: Dense,
    chosen: Mask,
    large: Mask,
    levels: Float,
    tilt: float = 0.0,
    log_norm: float = 0.0,
) -> BinMasses:
    """Bins of the loss on the chosen panels and atoms; the others count as below or above.

    Parameters
    ----------
    source
        the loss of one step
    chosen, large
        which panels, then which atoms are cut into bins, and which count as above all of them; the
        others count as below
    levels
        edges of the bins, rising; they hold all of the chosen losses
    tilt, log_norm
        see `Bins`
    """
    count = levels.size - 1
    mass = np.zeros(count)
    excess = np.zeros(count)
    # Of one number: most steps have no atoms.
    at_edges = np.broadcast_to(0.0, levels.size)
    slack = source.rounding
    rows = np.flatnonzero(chosen[: source.panels])
    if rows.size:
        assert source.pair is not None
        fine, owner = _resolving(levels)
        samples = source.x[rows], source.loss[rows], source.slope[rows]
        # A bounded law is a part of that of its table.
        norm = log_norm + source.pair.noise._log_kept
        mass, excess, error = core.loss_bins(
            *_arguments(source), *samples, fine, tilt, norm, source.rounding
        )
        # Edges are off by what they miss their levels by, and by the rounding of that.
        slack += error
        if owner is not None:
            mass, excess = _gathered(fine, owner, mass, excess, count, tilt)
    atoms = np.flatnonzero(chosen[source.panels :]) + source.panels
    if atoms.size:
        values = source.lowest[atoms]
        # An atom that is a node but for rounding, its own and that of the level, is that node: next
        # below would be a bin too low.
        near = source.rounding + _LEVEL_ROUNDING * float(np.abs(levels[[0, -1]]).max())
        bins = np.searchsorted(levels, values + near, side="right") - 1
        bins = np.clip(bins, 0, count)
        above = levels[bins] - values
        slack = max(slack, float(above.max()))
        weights = np.exp(source.log_mass[atoms] + tilt * levels[bins] - log_norm)
        on_edge = (np.abs(above) <= near) | (bins == count)
        slack = max(slack, float(np.abs(above[on_edge]).max(initial=0.0)))
        at_edges = np.bincount(bins[on_edge], weights[on_edge], levels.size).astype(np.float64)
        bins = np.minimum(bins, count - 1)
        weights[on_edge] = 0.0
        over = weights * -np.expm1(np.minimum(above, 0.0))
        mass += np.bincount(bins, weights=weights, minlength=count)
        excess += np.bincount(bins, weights=over, minlength=count)
    mass_of = np.exp(source.log_mass)
    small = ~(chosen | large)
    below = float(mass_of[small].sum()) * (1.0 + 1e-12)
    beyond = float(mass_of[large].sum()) * (1.0 + 1e-12) + source.beyond
    highest = float(source.highest[small].max(initial=-math.inf)) - source.rounding
    ceiling = min(int(np.searchsorted(levels, highest)), count)
    return BinMasses(mass, excess, at_edges, below, beyond, slack, ceiling)


def loss_bins(
    source: Dense,
    chosen: Mask,
    large: Mask,
    lattice: tuple[float, float],
    edges: Index,
    tilt: float,
    log_norm: float,
) -> Bins:
    """The same, with edges that are nodes of a lattice: its step and offset, and their numbers."""
    step, offset = lattice
    levels: Float = np.asarray(offset + edges * step, dtype=np.float64)
    found = masses_in_bins(source, chosen, large, levels, tilt, log_norm)
    whole = source.pair is not None and math.isinf(source.pair.noise.support)
    return Bins(
        **vars(found),
        step=step,
        offset=offset,
        edges=edges,
        tilt=tilt,
        log_norm=log_norm,
        whole=whole,
    )


def _arguments(source: Dense) -> tuple[Any, float, float, float, float]:
    """The law and the pair, as kernels take them."""
    pair = source.pair
    assert pair is not None
    shifts = pair.shifts("remove" if source.sign > 0.0 else "add")
    return (pair.noise._table, pair.noise.scale, *shifts, pair.sampling_rate)


def _beyond(pair: Pair, direction: Direction, grid: Nodes) -> float:
    """Probability under ``P`` beyond the ends of the quadrature."""
    noise, q = pair.noise, pair.sampling_rate
    if math.isfinite(noise.support) or (grid.atom_loss.size and noise.score_limit != 0.0):
        # Runs of constant loss reach to the ends of the first edges and hold the rest of the mass.
        return 0.0
    shift, _ = pair.shifts(direction)
    moved = np.array([0.0, shift])
    outside, shifted = noise.cdf(grid.ends[0] - moved) + noise.ccdf(grid.ends[1] - moved)
    return float((1.0 - q) * outside + q * shifted)
