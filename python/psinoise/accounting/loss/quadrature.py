"""Nodes and weights that integrate smooth functions of the privacy loss against a noise law.

Gauss-Legendre panels of 16 nodes, broken at every kink of the densities and halved until on each of
them (``Q`` and ``P = Q e^Lambda`` are the densities of ``pairs``; without replacement ``Q = p``)

* ``log Q`` and ``log P`` vary by at most 8: an exponential of that range is integrated to
  1e-17 of its maximum by 16 nodes (exact to degree 31);
* the last two Legendre coefficients of ``log Q`` and ``Lambda`` are below 3e-8 of the range. This
  is where the panels find the singularities of ``log(1 - q + q e^l)`` at
  ``l = log((1 - q)/q) +- i pi``, and those of heavy-tailed laws.

The panels reach as far out as ``max(log P, log Q) >= log p(0) - reach``. What is cut off has
probability ``e^{-reach}`` under ``P``, up to a factor of order 1, and changes the delta of ``n``
uses by at most ``n`` times that. `reach_for` keeps 16 digits; the last reach serves every delta
that a float64 can hold. (A tilted mass beyond the nodes is no objection: the contour integral is
that of the measure that was cut.) Heavy tails end earlier, where their loss is negligible.

Runs of panels on which the loss is constant to rounding are one *atom* of the loss.

Next to a center that is not 0 outputs are as far apart as its rounding. Nodes are moved to them, so
that coefficients may be larger by what that does to a panel of its width; `dense` charges as much.
*Narrow* are panels of no more than 2^16 outputs that are not fine, those where the density of P is
lost in the rounding of log Q and the loss, and the outputs around a center next to which noise
falls between two of them: nodes leave them out, bounds count them as atoms or as infinite from
above (`narrow`), and there are no estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property, kept
from psinoise.accounting.loss.atoms import EXP_ROUNDING, AtomPair, Dominating
from psinoise.accounting.loss.narrow import masses_of, pieces_of
from psinoise.accounting.loss.pairs import DIRECTIONS, Float, Pair
from psinoise.errors import CertificationError
from psinoise.numerics.distinct import distinct
from psinoise.numerics.panels import Panels, cut_panels, refined_panels

#: Nodes of a panel.
ORDER = 16
REACHES = (
    *(float(r) for r in range(50, 130, 10)),
    *(150.0, 190.0, 240.0, 300.0, 380.0, 480.0, 600.0, 750.0, 850.0),
)

_UNIT = 2.0**-53
# Log densities are steeper somewhere on a panel than from end to end, by less than this factor.
_STEEPER = 8.0
# Of masses beyond this no log matters: they are 0 and stay so.
_MOST_ERROR = 600.0

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
# Coefficients 14 and 15 of the Legendre expansion from values at the nodes.
_LAST_COEFFICIENTS = np.stack(
    [
        (k + 0.5) * _WEIGHTS * np.polynomial.legendre.legval(_POINTS, [0.0] * k + [1.0])
        for k in (ORDER - 2, ORDER - 1)
    ],
    axis=1,
)
_LOG_WEIGHTS = np.log(_WEIGHTS)
# Outputs on either side of a center that are left out where noise is as fine as they are.
_HIDDEN = 64.0
# Heavy tails end at 2^37 scales, within the tables of the law: what is cut off has mass times
# squared loss below 1e-32.
_MOST_OCTAVES = 37
# Share of a mass that is lost in its rounding.
_LOST_IN_RUNS = 2.0**-51
# What quadratures may miss: seventy times what they do.
_LOST = 1e-11


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
    log_mass, loss : log of weight times ``Q``, and ``Lambda``, at each node
    atom_log_mass, atom_loss : the same for the atoms, shape ``(atoms,)``
    ends : how far panels and atoms reach, shape ``(2,)``
    narrow : ends of intervals that panels leave out, shape ``(parts, 2)``
    gaps : ends of others, where both densities are below the floor, shape ``(gaps, 2)``
    """

    pair: Dominating
    left: Float
    right: Float
    log_mass: Float
    loss: Float
    atom_log_mass: Float
    atom_loss: Float
    ends: Float
    narrow: Float = field(default_factory=lambda: np.empty((0, 2)))
    gaps: Float = field(default_factory=lambda: np.empty((0, 2)))

    @cached_property
    def outer_loss(self) -> Float:
        """``Lambda`` at both ends of each panel, shape ``(panels, 2)``."""
        assert isinstance(self.pair, Pair)
        return self.pair.loss(np.array([self.left, self.right])).T

    @cached_property
    def doubt(self) -> Float:
        """How far the logs of the masses of panels and then of atoms may be off, in any order."""
        of_nodes = (np.abs(self.log_mass) + np.abs(self.loss)).max(axis=1, initial=0.0)
        of_atoms = np.abs(self.atom_log_mass) + np.abs(self.atom_loss)
        return np.asarray(EXP_ROUNDING * np.concatenate([of_nodes, of_atoms]))

    @cached_property
    def of_panels(self) -> tuple[Float, Float]:
        """Logs of masses under ``P`` on each panel, and relative errors of these masses.

        Under "remove" and "add", shape ``(2, panels)``. Logs of densities are right to some
        roundings of their size. Outputs are right to some of theirs: those of the distance from a
        center move the log by some of its size, those of the center by as much times its slope.
        """
        pair = self.pair
        assert isinstance(pair, Pair)
        log_p = np.array([self.log_mass + self.loss, self.log_mass])
        top = log_p.max(axis=2, initial=-np.inf)
        log_masses = top + np.log(np.exp(log_p - top[:, :, None]).sum(axis=2))
        width = self.right - self.left
        log_p += math.log(pair.noise.scale) - (_LOG_WEIGHTS + np.log(0.5 * width)[:, None])
        most, least = log_p.max(axis=2, initial=-np.inf), log_p.min(axis=2, initial=np.inf)
        steep = _STEEPER * (most - least) / width
        distance = max(abs(center) for center in pair.centers)
        error = EXP_ROUNDING * np.maximum(np.abs(most), np.abs(least))
        error += 4.0 * _UNIT * distance * steep
        return log_masses, np.expm1(np.minimum(error, _MOST_ERROR))

    @cached_property
    def beyond(self) -> tuple[float, float]:
        """Probabilities under ``P`` beyond the ends, under "remove" and "add", rounded up.

        Runs of the largest and the least loss reach to the ends of laws with exponential tails:
        what is beyond has the same losses. Where the ends are ``d`` beyond all centers it is at
        most ``2 P(Z > d)`` of what lies on that side of each center, since the hazard of a
        log-concave law does not fall: none, if it is lost in the rounding of a mass. At rates that
        are low for the reach a run may end before, even before a center.
        """
        pair = self.pair
        assert isinstance(pair, Pair)
        noise, q = pair.noise, pair.sampling_rate
        low, high = pair.sensitivity - noise.support, noise.support
        centers = np.array([0.0, *pair.shifts("remove")])
        exponential = noise.log_concave and 0.0 < noise.score_limit < math.inf
        if math.isfinite(high) or (exponential and self.atom_loss.size):
            outer = np.array([[low, self.ends[0]], [self.ends[1], high]])
            outer = outer[outer[:, 0] < outer[:, 1]]
            room = np.array([centers.min() - self.ends[0], self.ends[1] - centers.max()])
            if not low < high or not outer.size or noise.ccdf(room).max() <= _LOST_IN_RUNS:
                return 0.0, 0.0
            if math.isfinite(high):
                return _masses(pair, outer)
        base, *moved = noise.cdf(self.ends[0] - centers) + noise.ccdf(self.ends[1] - centers)
        remove, add = (((1.0 - q) * base + q * each) * (1.0 + 1e-12) for each in moved)
        return float(remove), float(add)

    @cached_property
    def between(self) -> tuple[float, float]:
        """The same in the gaps. No panel says what losses these outputs have."""
        assert isinstance(self.pair, Pair)
        return _masses(self.pair, self.gaps)

    def split(self, pieces: NDArray[np.int64]) -> Nodes:
        """The same integral with panel ``k`` cut into ``pieces[k]`` equal panels."""
        assert isinstance(self.pair, Pair)
        cut = pieces > 1
        left, _ = cut_panels(self.left[cut], self.right[cut], pieces[cut])
        right = left + np.repeat((self.right - self.left)[cut] / pieces[cut], pieces[cut])
        half = 0.5 * (right - left)[:, None]
        base, _, loss = _sample(self.pair, left[:, None] + half + half * _POINTS)
        return replace(
            self,
            left=np.concatenate([self.left[~cut], left]),
            right=np.concatenate([self.right[~cut], right]),
            log_mass=np.concatenate([self.log_mass[~cut], _log_weights(left, right) + base]),
            loss=np.concatenate([self.loss[~cut], loss]),
        )


def _masses(pair: Pair, parts: Float) -> tuple[float, float]:
    """Probabilities of intervals together under ``P``, of "remove" and "add", rounded up."""
    if not len(parts):
        return 0.0, 0.0
    remove, add = (float(masses_of(pair, parts, each)[1].sum()) for each in DIRECTIONS)
    return remove, add


def _sample(pair: Pair, x: Float) -> tuple[Float, Float, Float]:
    with np.errstate(invalid="ignore"):
        base, ratio, loss = pair.evaluate(x)
    if not (np.all(np.isfinite(base)) and np.all(np.isfinite(ratio))):
        raise CertificationError(
            f"losses of {pair.noise!r} at a sensitivity of {pair.sensitivity!r} are no float64"
        )
    return base, ratio, loss


def _log_weights(left: Float, right: Float) -> Float:
    """Logs of the weights of the nodes of each panel."""
    return np.log((0.5 * (right - left))[:, None] * _WEIGHTS)


@kept()
def nodes(pair: Dominating, reach: float) -> Nodes:
    """The nodes of a pair out to ``log p(0) - reach``; all is narrow if some of a law is lost."""
    found = _quadrature(pair, reach)
    # Nothing is certified of a law without a table.
    if isinstance(pair, Pair) and hasattr(pair.noise, "_table") and not _holds_all(pair, found):
        return replace(found, narrow=np.array([[-np.inf, np.inf]]))
    return found


def _holds_all(pair: Pair, grid: Nodes) -> bool:
    """Whether the masses of both laws add up to 1, but for the errors that they are charged with.

    What heavy tails have beyond their ends, and what panels leave out, is bounded by the law's own
    distribution. Where something is missing nothing is known of the losses that are left.
    """
    (log_masses, errors), panels, doubt = grid.of_panels, grid.left.size, grid.doubt
    atoms = np.array([grid.atom_log_mass + grid.atom_loss, grid.atom_log_mass])
    held = (np.exp(log_masses) * (1.0 + errors + doubt[:panels])).sum(axis=1)
    held += (np.exp(atoms) * (1.0 + doubt[panels:])).sum(axis=1)
    # Of other tails less is beyond the ends than is known of masses.
    tails = grid.beyond if pair.noise.score_limit == 0.0 else (0.0, 0.0)
    held += np.array(tails) + grid.between + _masses(pair, grid.narrow)
    held += [pair.infinite(direction) for direction in DIRECTIONS]
    return bool((held > 1.0 - _LOST).all())


def _quadrature(pair: Dominating, reach: float) -> Nodes:
    if isinstance(pair, AtomPair):
        return _no_panels(pair, *pair.atoms)
    # Panels are in the support of both laws.
    low, high = pair.sensitivity - pair.noise.support, pair.noise.support
    if low < high:
        found = _nodes_within(pair, reach, low, high)
    else:
        found = _no_panels(pair, np.empty(0), np.empty(0))
    left = 0.0 if math.isinf(high) else pair.noise._left_by(pair.sensitivity)
    if left == 0.0 or pair.sampling_rate == 1.0:
        return found
    # Outputs of the base law that a sampled record makes impossible: as likely as those that the
    # shifted law moves out of the support, of which the law knows more than ``s - A`` does.
    return replace(
        found,
        atom_log_mass=np.append(found.atom_log_mass, math.log(left)),
        atom_loss=np.append(found.atom_loss, math.log1p(-pair.sampling_rate)),
    )


def _no_panels(pair: Dominating, log_mass: Float, loss: Float) -> Nodes:
    none, nowhere = np.empty((0, ORDER)), np.empty(0)
    return Nodes(pair, nowhere, nowhere, none, none, log_mass, loss, np.zeros(2))


def _nodes_within(pair: Pair, reach: float, low: float, high: float) -> Nodes:
    """The nodes between two points."""
    floor = float(pair.noise.logpdf(0.0)) - reach
    edges = _first_edges(pair, floor)
    edges = np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
    edges = edges[np.isfinite(edges)]
    hidden = _hidden(pair, low, high)
    for part in hidden:
        edges = distinct(np.append(edges[(edges < part[0]) | (edges > part[1])], part))
    left, right, base, loss, flat, narrow = _panels(pair, edges, floor)
    gaps = _gaps(np.append(left, hidden[:, 0]), np.append(right, hidden[:, 1]))
    if not narrow.any() and not hidden.size:
        found = _assemble(pair, left, right, base, loss, flat)
        return replace(found, gaps=gaps) if gaps.size else found
    inside = np.zeros(left.size, dtype=bool)
    for part in hidden:
        inside |= (left >= part[0]) & (right <= part[1])
    parts = np.concatenate([np.array([left, right]).T[narrow & ~inside], hidden])
    ends = np.array([min(left.min(), parts.min()), max(right.max(), parts.max())])
    held = ~(narrow | inside)
    found = _assemble(pair, left[held], right[held], base[held], loss[held], flat[held])
    return replace(found, narrow=pieces_of(pair, parts), ends=ends, gaps=gaps)


def _gaps(left: Float, right: Float) -> Float:
    """What lies between intervals, which may be in any order and overlap."""
    order = np.argsort(left, kind="stable")
    start, reached = left[order][1:], np.maximum.accumulate(right[order])[:-1]
    apart = start > reached
    return np.array([reached[apart], start[apart]]).T


def _hidden(pair: Pair, low: float, high: float) -> Float:
    """Around centers between two points whose noise falls between two outputs: panels would not see
    it at all."""
    centers = np.array([c for c in pair.centers if pair.noise.scale < 2.0 * math.ulp(c)])
    room = _HIDDEN * np.spacing(np.abs(centers))
    parts: Float = np.clip(np.array([centers - room, centers + room]).T, low, high)
    return parts[parts[:, 0] < parts[:, 1]]


def _panels(pair: Pair, edges: Float, floor: float) -> Panels:
    """Panels that are fine enough: from the table of the law, where that has all of them."""
    if hasattr(pair.noise, "_table"):
        arguments = pair.noise._table, pair.noise.scale, *pair.shifts("remove"), pair.sampling_rate
        found = core.loss_panels(
            *arguments, _POINTS, _LAST_COEFFICIENTS, edges, floor + pair.noise._log_kept
        )
        if found is not None:
            left, right, base, loss, flat, narrow = found
            return left, right, base - pair.noise._log_kept, loss, flat, narrow
    return refined_panels(lambda x: _sample(pair, x), _POINTS, _LAST_COEFFICIENTS, edges, floor)


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
    steps = np.concatenate([-octaves, [0.0], octaves])
    regular = np.append(np.add.outer(centers, steps), middles)
    fixed = np.array(sorted(pair.breaks))
    if fixed.size:
        # An edge this close to a kink would only add a sliver.
        gap = np.abs(regular[:, None] - fixed).min(axis=1)
        regular = regular[gap > 0.125 * noise.scale]
    return distinct(np.concatenate([regular, fixed]))


def _assemble(
    pair: Pair, left: Float, right: Float, base: Float, loss: Float, flat: NDArray[np.bool_]
) -> Nodes:
    """Separate atoms from panels: a constant loss over a whole panel is an atom."""
    log_mass, none = _log_weights(left, right) + base, np.empty(0)
    ends = np.array([left.min(initial=math.inf), right.max(initial=-math.inf)])
    if not flat.any():
        return Nodes(pair, left, right, log_mass, loss, none, none, ends)
    # Of equal losses the one nearest the mode has the least rounding error.
    nearest = np.argmax(base[flat], axis=1)[:, None]
    peak, value = (np.take_along_axis(of[flat], nearest, axis=1)[:, 0] for of in (base, loss))
    rounding = 16.0 * _UNIT * np.maximum(1.0, np.abs(base[flat]).max(axis=1))
    # A run continues while the next panel touches and its loss agrees to rounding.
    first = np.abs(np.diff(value, prepend=np.inf)) > (2.0 * pair.close_error or rounding)
    first[1:] |= left[flat][1:] != right[flat][:-1]
    starts = np.flatnonzero(first)
    likeliest = np.lexsort((-peak, np.cumsum(first)))[starts]
    return Nodes(
        pair,
        left[~flat],
        right[~flat],
        log_mass[~flat],
        loss[~flat],
        np.logaddexp.reduceat(np.logaddexp.reduce(log_mass[flat], axis=1), starts),
        value[likeliest],
        ends,
    )
