"""The distribution of the privacy loss of one step, tilted: its cumulants to full precision.

``phi(z) = E_P[exp(z L)]`` and ``K = log phi``. Both ``phi(0) = 1`` and ``phi(-1) = 1`` hold exactly
(``P`` and ``Q`` are probability densities), so that for any real ``c``

    ``phi(c) - 1 = E_P[g(c L) + c g(-L)]``,   ``g(x) = e^x - 1 - x >= 0``.

Every term is non-negative and of second order in the loss: nothing cancels, and first-order errors
(of the quadrature, of the subtraction ``log p(x - s) - log p(x)``) drop out: of 10^9 compositions
eleven digits are kept, not none.

*Neighbors that hardly differ.* Differences ``log p(x - s) - log p(x)`` are off by ``1e-16`` of the
logs. Where that is too much (`LossMeasure.resolved`), for shifts by ``d`` scales, ``d`` below
4e-11, of laws whose table does not know them better (`Pair.close_error`), ``K(c)`` is
``c (c + 1) V / 2`` with ``V = q^2 d^2 I``, ``I`` the Fisher information of the standard law: what
the binomial series of ``E_Q[(P/Q)^{c + 1}]`` begins with. The next terms are ``d^2 (1 + c q)^2`` of
that, or ``d`` next to a kink, at the most. For normal noise without sampling there are none, for
any shift.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise._kept import cached_property
from psinoise.accounting.loss.atoms import EXP_ROUNDING, AtomPair
from psinoise.accounting.loss.pairs import Direction, Float, Pair, normal_std
from psinoise.accounting.loss.quadrature import ORDER, Nodes

_LARGEST_EXPONENT = 600.0
# What rounding makes of the moments of a shift by one scale, relative; measured, of all laws.
_LOSS_ROUNDING = 2.0**-58
# What nodes may miss of a moment, and up to which ``c q d`` the polynomial misses 1e-8 at the most.
_MOST_LOST, _SMALL = 1e-7, 1e-4
# Of the sums of `core.tilted_moments`, relative, beside what the sizes of logs make.
_SUM_ROUNDING = 1e-14

# What lies at an end of a panel is seen if its tilted density falls by no more than this to the
# first node; it does not count where the logarithm of it is below the other.
_FALL, _NEGLIGIBLE, _MOST_PIECES = 2.0, -40.0, 64.0
# Of the outputs, so that nodes are told apart.
_NARROWEST = 2.0**-44


class Cumulants(NamedTuple):
    """``K(c)`` and its first two derivatives."""

    value: float
    mean: float
    variance: float


class LossMeasure:
    """Quadrature of ``E_P[f(L)]`` for one step in one direction; nobody changes it.

    Attributes
    ----------
    log_mass, loss : log-weights under ``P`` and losses; panel nodes first, then atoms
    lost : probability of infinite losses, under ``P`` and under ``Q``
    """

    def __init__(self, grid: Nodes, direction: Direction) -> None:
        opposite: Direction = "add" if direction == "remove" else "remove"
        self.nodes, self.direction = grid, direction
        self.lost = grid.pair.infinite(direction), grid.pair.infinite(opposite)
        log_mass, loss = grid.log_mass.ravel(), grid.loss.ravel()
        if grid.atom_loss.size:
            # Else no copies: a composition may have thousands of steps.
            log_mass = np.concatenate([log_mass, grid.atom_log_mass])
            loss = np.concatenate([loss, grid.atom_loss])
        # From Q and Lambda of "remove" to P and the loss. No mass is above 1; by rounding sums of
        # large logarithms may be.
        if direction == "remove":
            self.log_mass, self.loss = np.minimum(log_mass + loss, 0.0), loss
        else:
            self.log_mass, self.loss = log_mass, -loss

    @property
    def panels(self) -> int:
        """Number of panels; the first nodes are theirs."""
        return int(self.nodes.left.size)

    @property
    def atoms(self) -> int:
        """Number of atoms, which come last."""
        return int(self.nodes.atom_loss.size)

    @cached_property
    def mass(self) -> Float:
        return np.exp(self.log_mass)

    def forget_mass(self) -> None:
        """Free what is quickly made again: a composition may have thousands of steps."""
        vars(self).pop("mass", None)

    @cached_property
    def _drift(self) -> float:
        """``E_P[g(-L)]``, and what was taken away of ``Q`` and not of ``P``."""
        mirrored = core.tilted_moments(self.log_mass, self.mass, self.loss, -1.0, 0.0, 0.0)[1]
        return mirrored + (self.lost[1] - self.lost[0])

    @cached_property
    def _distance(self) -> float:
        """Of the centers, in scales; inf of atoms alone."""
        pair = self.nodes.pair
        return math.inf if isinstance(pair, AtomPair) else pair.distance / pair.noise.scale

    @property
    def _close_error(self) -> float:
        pair = self.nodes.pair
        return (len(pair.centers) - 1) * pair.close_error if isinstance(pair, Pair) else 0.0

    @cached_property
    def _polynomial(self) -> tuple[float, float]:
        """``V``, and up to which ``c`` the polynomial says what nodes do not know of ``K``."""
        pair = self.nodes.pair
        if isinstance(pair, AtomPair) or math.isfinite(pair.noise.support):
            return 0.0, -math.inf
        std = normal_std(pair) if pair.sampling_rate == 1.0 else None
        if std is not None:
            return 1.0 / std / std, math.inf
        if self.resolved or not hasattr(pair.noise, "_table"):
            return 0.0, -math.inf
        moved = pair.sampling_rate * self._distance
        variance = moved * moved * pair.noise._standard_fisher_information()
        return float(variance), _SMALL / moved if moved > 0.0 else math.inf

    def quadratic(self, c: float) -> bool:
        """Whether ``K(c)`` takes no nodes."""
        return c <= self._polynomial[1]

    def renyi(self, c: float, value: float) -> float:
        """``K(c) / c``, which is a number where ``K`` may be none."""
        return 0.5 * (c + 1.0) * self._polynomial[0] if self.quadratic(c) else value / c

    @property
    def resolved(self) -> bool:
        """Whether nodes know moments of the loss to a share that matters."""
        return self._close_error > 0.0 or self._distance * _MOST_LOST >= _LOSS_ROUNDING

    def cumulants(self, c: float) -> Cumulants:
        """``K``, ``K'`` and ``K''`` at a real ``c > 0``; relative error about 1e-15 of each.

        Of the polynomial 1e-7; less is known of shifts that are not `resolved`.
        """
        if self.quadratic(c):
            variance = self._polynomial[0]
            return Cumulants(0.5 * c * (c + 1.0) * variance, (c + 0.5) * variance, variance)
        top, excess, mean, square = core.tilted_moments(
            self.log_mass, self.mass, self.loss, c, self._drift, self.lost[0]
        )
        if top <= _LARGEST_EXPONENT and excess >= -0.5:
            return Cumulants(math.log1p(excess), mean, square / (1.0 + excess))
        # Where phi is far from 1 the identities above do not matter.
        tilted = np.exp(self.log_mass + c * self.loss - top)
        total = float(tilted.sum())
        mean = float(tilted @ self.loss) / total
        variance = float(tilted @ (self.loss - mean) ** 2) / total
        return Cumulants(top + float(np.log(total)), mean, variance)

    @cached_property
    def _size(self) -> float:
        """The largest of the logs of densities and of their ratios."""
        sizes = [np.abs(part).max(initial=0.0) for part in (self.nodes.log_mass, self.loss)]
        return float(sizes[0] + sizes[1] + np.abs(self.nodes.atom_log_mass).max(initial=0.0))

    def doubt(self, c: float, value: float) -> float:
        """How far ``value``, which is ``K(c)``, may be off by rounding.

        With relative errors ``w`` of masses and errors ``d`` of losses the sum of positive terms
        that is ``phi - 1`` is off by at most ``w (phi - 1) + c d (E|e^{cL} - 1| + E|1 - e^{-L}|)``.
        The second mean is at most ``2 tau``, the total variation twice; the first is
        ``phi - 1 + 2 E(1 - e^{cL})^+``, and ``(1 - e^{cL})^+ <= max(1, c) (1 - e^L)^+``, whose mean
        is at most ``tau``. All of it is divided by ``phi``. Where ``K`` is a polynomial, for ``d``
        below 4e-11, what that misses, ``1e-8 c (c + 1) q^2 d^2 I / 2``, is less than a hundredth.
        """
        loss = self._close_error or EXP_ROUNDING * (1.0 + self._size)
        mass = _SUM_ROUNDING + EXP_ROUNDING * (1.0 + (1.0 + c) * self._size)
        variation = 2.0 * (1.0 + max(1.0, c)) * self.nodes.pair.total_variation_bound
        kept = math.exp(-max(value, 0.0))
        return (mass + c * loss) * -math.expm1(-max(value, 0.0)) + c * loss * variation * kept

    def log_tilted(self, c: float, value: float) -> Float:
        """``log(P exp(c L) / phi(c))`` at the nodes, ``value`` being ``K(c)``."""
        return self.log_mass + (c * self.loss - value)

    def spread(self, c: float, value: float) -> float:
        """Deviation of the tilted loss, atoms aside, as of a normal one with its quartiles, which
        rare large losses do not change; 0 where it does not vary."""
        count = ORDER * self.panels
        if not count:
            return 0.0
        loss = self.loss[:count]
        order = np.argsort(loss, kind="stable")
        below = np.cumsum(np.exp(self.log_tilted(c, value)[:count][order]))
        low, high = np.searchsorted(below, np.array([0.25, 0.75]) * below[-1])
        return float(loss[order[high]] - loss[order[low]]) / 1.35

    def pieces(self, c: float, value: float, frequency: float) -> NDArray[np.int64]:
        """Into how many pieces each panel must be cut to resolve ``exp((c + i t) L)``.

        For ``|t| <= frequency``, where the tilted mass is not negligible.
        """
        if frequency == 0.0 and self.quadratic(c):
            return np.ones(self.panels, dtype=np.int64)
        return core.panel_pieces(self.log_mass, self.loss, self.panels, ORDER, c, value, frequency)

    def pieces_for_ends(self, c: float, value: float) -> NDArray[np.int64]:
        """Into how many pieces panels must be cut for a node to see what lies next to an end.

        The tilted mass may do so between the end and the first node. There the density under ``Q``
        is about that at the node, and ``P = Q e^Lambda``. No panel becomes as narrow as rounding.
        """
        if not self.panels or isinstance(self.nodes.pair, AtomPair) or self.quadratic(c):
            return np.ones(self.panels, dtype=np.int64)
        at_q, ends = self.nodes.log_mass[:, :: ORDER - 1], self.nodes.outer_loss
        tilt = 1.0 + c if self.direction == "remove" else -c
        top = np.where(np.isfinite(ends), at_q + tilt * ends - value, -np.inf)
        seen = at_q + tilt * self.nodes.loss[:, :: ORDER - 1] - value
        fall = np.where(top > _NEGLIGIBLE, top - np.maximum(seen, _NEGLIGIBLE), 0.0).max(axis=1)
        left, right = self.nodes.left, self.nodes.right
        narrowest = _NARROWEST * np.maximum(np.abs(left), np.abs(right))
        most = np.clip((right - left) / narrowest, 1.0, _MOST_PIECES)
        return np.asarray(np.ceil(np.clip(fall / _FALL, 1.0, most)), np.int64)

    def split(self, pieces: NDArray[np.int64]) -> LossMeasure:
        return LossMeasure(self.nodes.split(pieces), self.direction)
