"""Nodes and weights that integrate smooth functions of the privacy loss against a noise law.

Gauss-Legendre panels of 16 nodes, broken at every kink of the densities and halved until on each of
them (``Q`` and ``P = Q e^Lambda`` are the densities of ``pairs``; without replacement ``Q = p``)

* ``log Q`` and ``log P`` vary by at most 8: an exponential of that range is integrated to
  1e-17 of its maximum by 16 nodes (exact to degree 31);
* the last two Legendre coefficients of ``log Q`` and ``Lambda`` are below 3e-8 of the range. This
  is where the panels find the singularities of ``log(1 - q + q e^l)`` at
  ``l = log((1 - q)/q) +- i pi``, and those of heavy-tailed laws.

The panels reach as far out as ``max(log P, log Q) >= log p(0) - reach``. What is cut off
has probability ``e^{-reach}`` under ``P``, up to a factor of order 1, and changes the delta of
``n`` uses by at most ``n`` times that. `reach_for` keeps 16 digits; the last reach serves every
delta that a float64 can hold. (A tilted mass beyond the nodes is no objection: the contour integral
is that of the measure that was cut.) Heavy tails end earlier, where their loss is negligible.

Runs of panels on which the loss is constant to rounding are kept as one *atom* of the loss.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psinoise.accounting.cells import CellPair, Dominating
from psinoise.accounting.pairs import Float, Pair
from psinoise.errors import DomainError

ORDER = 16
REACHES = (
    *(float(r) for r in range(50, 130, 10)),
    *(150.0, 190.0, 240.0, 300.0, 380.0, 480.0, 600.0, 750.0, 850.0),
)

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
# Coefficients 14 and 15 of the Legendre expansion from values at the nodes.
_LAST_COEFFICIENTS = np.stack(
    [
        (k + 0.5) * _WEIGHTS * np.polynomial.legendre.legval(_POINTS, [0.0] * k + [1.0])
        for k in (ORDER - 2, ORDER - 1)
    ],
    axis=1,
)
_LARGEST_RANGE = 8.0
_LARGEST_COEFFICIENT = 3e-8
_EPS = float(np.finfo(np.float64).eps)
_MOST_HALVINGS = 60
_MOST_AT_ONCE = 4.0
# Heavy tails end at 2^37 scales, within the tables of the law: what is cut off has mass times
# squared loss below 1e-32.
_MOST_OCTAVES = 37


def reach_for(log_delta: float, count: float) -> float:
    """The smallest reach that leaves the delta of ``count`` uses unchanged to 16 digits."""
    need = 38.0 - log_delta + math.log(count)
    return next((reach for reach in REACHES if reach >= need), REACHES[-1])


@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature for one pair. Arrays of shape ``(panels, ORDER)`` unless said otherwise.

    Attributes
    ----------
    left, right : ends of the panels, shape ``(panels,)``
    log_mass : log of weight times ``Q`` at each node
    loss : ``Lambda`` at each node
    atom_log_mass, atom_loss : the same for the atoms, shape ``(atoms,)``
    ends : how far panels and atoms reach, shape ``(2,)``
    """

    pair: Dominating
    left: Float
    right: Float
    log_mass: Float
    loss: Float
    atom_log_mass: Float
    atom_loss: Float
    ends: Float

    def take(self, panels: NDArray[np.bool_], atoms: NDArray[np.bool_]) -> Nodes:
        """Some of the panels and atoms."""
        return Nodes(
            self.pair,
            self.left[panels],
            self.right[panels],
            self.log_mass[panels],
            self.loss[panels],
            self.atom_log_mass[atoms],
            self.atom_loss[atoms],
            self.ends,
        )

    def split(self, pieces: NDArray[np.int64]) -> Nodes:
        """The same integral with panel ``k`` cut into ``pieces[k]`` equal panels."""
        cut = pieces > 1
        if isinstance(self.pair, CellPair) or not cut.any():
            return self
        owner = np.repeat(np.flatnonzero(cut), pieces[cut])
        first = np.repeat(np.cumsum(pieces[cut]) - pieces[cut], pieces[cut])
        index = np.arange(owner.size) - first
        width = (self.right - self.left)[owner] / pieces[owner]
        left = self.left[owner] + index * width
        log_mass, loss = sample(self.pair, left, left + width)
        return Nodes(
            self.pair,
            np.concatenate([self.left[~cut], left]),
            np.concatenate([self.right[~cut], left + width]),
            np.concatenate([self.log_mass[~cut], log_mass]),
            np.concatenate([self.loss[~cut], loss]),
            self.atom_log_mass,
            self.atom_loss,
            self.ends,
        )


def panel_points(left: Float, right: Float) -> tuple[Float, Float]:
    """Nodes and log-weights of Gauss-Legendre on each panel."""
    half = 0.5 * (right - left)
    x = (left + half)[:, None] + half[:, None] * _POINTS
    return x, np.log(half[:, None] * _WEIGHTS)


def _sample(pair: Pair, left: Float, right: Float) -> tuple[Float, Float, Float, Float]:
    x, log_weights = panel_points(left, right)
    base, ratio, loss = pair.evaluate(x)
    if not (np.all(np.isfinite(base)) and np.all(np.isfinite(ratio))):
        raise DomainError(
            f"noise must have a positive density inside its support, got {pair.noise!r}"
        )
    return base, ratio, loss, log_weights


def sample(pair: Pair, left: Float, right: Float) -> tuple[Float, Float]:
    """Log of weight times ``Q``, and ``Lambda``, at the nodes of any panels."""
    base, _, loss, log_weights = _sample(pair, left, right)
    return log_weights + base, loss


@functools.lru_cache(maxsize=2048)
def nodes(pair: Dominating, reach: float) -> Nodes:
    """Build the nodes of a pair out to ``log p(0) - reach``; cached."""
    if isinstance(pair, CellPair):
        return _no_panels(pair, *pair.atoms)
    if math.isfinite(pair.noise.support):
        return _bounded_nodes(pair, reach)
    return _nodes_within(pair, reach, -math.inf, math.inf)


def _nodes_within(pair: Pair, reach: float, low: float, high: float) -> Nodes:
    """The nodes between two points."""
    peak = float(pair.noise.logpdf(0.0))
    edges = _first_edges(pair, peak - reach)
    edges = edges[(edges > low) & (edges < high)]
    ends = [x for x in (low, high) if math.isfinite(x)]
    edges = np.sort(np.append(edges, ends))
    left, right = edges[:-1], edges[1:]
    done: list[tuple[Float, ...]] = []
    for halving in range(_MOST_HALVINGS):
        base, ratio, loss, log_weights = _sample(pair, left, right)
        relevant = np.maximum(base, base + loss).max(axis=1) > peak - reach
        fine, pieces = _resolved(base, loss, peak - reach)
        fine |= halving == _MOST_HALVINGS - 1
        keep = relevant & fine
        samples = left, right, log_weights, base, ratio, loss
        done.append(tuple(values[keep] for values in samples))
        again = relevant & ~fine
        if not again.any():
            break
        left, right = _cut(left[again], right[again], pieces[again])
    parts = [np.concatenate(part) for part in zip(*done, strict=True)]
    order = np.argsort(parts[0], kind="stable")
    return _assemble(pair, *(part[order] for part in parts))


def _bounded_nodes(pair: Pair, reach: float) -> Nodes:
    """Those in the support of both laws, and what is left of the outputs of the base law alone."""
    low, high = pair.sensitivity - pair.noise.support, pair.noise.support
    if low < high:
        found = _nodes_within(pair, reach, low, high)
    else:
        found = _no_panels(pair, np.empty(0), np.empty(0))
    if pair.sampling_rate == 1.0:
        return found
    # Outputs that a sampled record makes impossible.
    return replace(
        found,
        atom_log_mass=np.append(found.atom_log_mass, float(pair.noise.logcdf(low))),
        atom_loss=np.append(found.atom_loss, math.log1p(-pair.sampling_rate)),
    )


def _no_panels(pair: Dominating, log_mass: Float, loss: Float) -> Nodes:
    none, nowhere = np.empty((0, ORDER)), np.empty(0)
    return Nodes(pair, nowhere, nowhere, none, none, log_mass, loss, np.zeros(2))


def _first_edges(pair: Pair, floor: float) -> Float:
    """Kinks, and octaves of the scale around the centers; symmetric about their midpoint.

    The symmetry (``x -> s - x``, or ``x -> -x`` for a replaced record) makes ``integral Q - P``
    over the panels vanish even where heavy tails are cut.
    """
    noise, centers = pair.noise, np.array(pair.centers)
    octaves = noise.scale * 2.0 ** np.arange(-1.0, _MOST_OCTAVES + 1.0)
    below = np.flatnonzero(noise.logpdf(octaves) < floor)
    if below.size:
        octaves = octaves[: below[0] + 1]
    middles = 0.5 * (centers[1:] + centers[:-1])
    if pair.sensitivity <= 4.0 * noise.scale:
        middles = np.empty(0)
        octaves[-1] += 0.5 * (centers[-1] - centers[0])
        centers = 0.5 * (centers[:1] + centers[-1:])
    regular = np.concatenate([np.concatenate([[c], c + octaves, c - octaves]) for c in centers])
    regular = np.append(regular, middles)
    fixed = np.array(sorted(pair.breaks))
    if fixed.size:
        # An edge this close to a kink would only add a sliver.
        gap = np.abs(regular[:, None] - fixed).min(axis=1)
        regular = regular[gap > 0.125 * noise.scale]
    return np.unique(np.concatenate([regular, fixed]))


def _cut(left: Float, right: Float, pieces: NDArray[np.int64]) -> tuple[Float, Float]:
    """Panels cut into equal pieces, which share their ends to the last bit."""
    owner = np.repeat(np.arange(left.size), pieces)
    index = np.arange(owner.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    width = (right - left)[owner] / pieces[owner]
    start = left[owner] + index * width
    end = np.append(start[1:], right[-1])
    last = index + 1 == pieces[owner]
    end[last] = right
    return start, end


def _resolved(
    base: Float, loss: Float, floor: float
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which panels are fine enough, and into how many pieces the others go: a power of two."""
    rounding = 64.0 * _EPS * (1.0 + np.abs(base).max(axis=1) + np.abs(loss).max(axis=1))
    span = np.zeros(base.shape[0])
    rounding = 64.0 * _EPS * (1.0 + np.abs(base).max(axis=1) + np.abs(loss).max(axis=1))
    for log_density in (base, base + loss):
        seen = np.maximum(log_density, floor - _LARGEST_RANGE)
        span = np.maximum(span, np.ptp(seen, axis=1))
    fine = span <= _LARGEST_RANGE
    for values in (base, loss):
        last = np.abs(values @ _LAST_COEFFICIENTS).max(axis=1)
        fine &= last <= _LARGEST_COEFFICIENT * np.ptp(values, axis=1) + rounding
    # Several halvings at once, and no more than the mean over the pieces asks for.
    halvings = np.floor(np.log2(np.maximum(span, _LARGEST_RANGE) / _LARGEST_RANGE))
    return fine, 2 ** np.clip(halvings, 1.0, _MOST_AT_ONCE).astype(np.int64)


def _assemble(
    pair: Pair,
    left: Float,
    right: Float,
    log_weights: Float,
    base: Float,
    log_ratio: Float,
    loss: Float,
) -> Nodes:
    """Separate atoms from panels: a constant loss over a whole panel is an atom."""
    log_mass = log_weights + base
    rounding = 8.0 * _EPS * np.maximum(1.0, np.abs(base).max(axis=1))
    flat = (np.ptp(log_ratio, axis=1) <= rounding) | (
        np.ptp(loss, axis=1) <= 4.0 * _EPS * np.abs(loss).max(axis=1)
    )
    # A run continues while the next panel touches and its loss agrees to rounding.
    joins = (
        flat[1:]
        & flat[:-1]
        & (left[1:] == right[:-1])
        & (np.abs(loss[1:, 0] - loss[:-1, -1]) <= np.maximum(rounding[1:], rounding[:-1]))
    )
    run = np.cumsum(np.concatenate([[True], ~joins]))[flat] if flat.any() else np.empty(0)
    atom_log_mass, atom_loss = [], []
    for label in np.unique(run):
        rows = np.flatnonzero(flat)[run == label]
        atom_log_mass.append(np.logaddexp.reduce(log_mass[rows], axis=None))
        # Of equal losses the one nearest the mode has the least rounding error.
        likeliest = np.unravel_index(np.argmax(base[rows]), base[rows].shape)
        atom_loss.append(_snap(pair, float(loss[rows][likeliest])))
    return Nodes(
        pair,
        left[~flat],
        right[~flat],
        log_mass[~flat],
        loss[~flat],
        np.array(atom_log_mass),
        np.array(atom_loss),
        np.array([left[0], right[-1]]),
    )


def _snap(pair: Pair, loss: float) -> float:
    """The extreme losses are known in closed form: use them where an atom sits there."""
    for extreme in (pair.largest_loss("remove"), -pair.largest_loss("add")):
        if abs(loss - extreme) <= 64.0 * _EPS * max(1.0, abs(loss)):
            return extreme
    return loss
