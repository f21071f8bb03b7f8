"""The loss of one use: on the panels of its quadrature, or as atoms that bound it."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from psinoise._kept import kept
from psinoise.accounting.loss.atoms import EXP_ROUNDING, AtomPair, Dominating
from psinoise.accounting.loss.narrow import atoms_of
from psinoise.accounting.loss.pairs import DIRECTIONS, Direction, Float, Pair
from psinoise.accounting.loss.quadrature import ORDER, Nodes, nodes
from psinoise.accounting.loss.steps import Step, Steps

Mask = NDArray[np.bool_]

# Of log(1 - q + q e^r), relative, and of sums of an offset and some steps.
_MIXTURE_ROUNDING = 2e-15
# Masses of atoms are all of a law where they sum to 1 but for rounding.
_WHOLE = 1e-12
# Of the losses of atoms: logs of masses that are right to a few ulp, and what merging moves.
_ATOM_ROUNDING = 8e-15

_POINTS, _WEIGHTS = legendre.leggauss(ORDER)
_SAMPLES = np.concatenate([[-1.0], _POINTS, [1.0]])
# From values at the nodes to the coefficients of Legendre polynomials, whose derivatives and
# integrals at the samples give those of the polynomial through the nodes.
_COEFFICIENTS = np.linalg.inv(legendre.legvander(_POINTS, ORDER - 1))
_SLOPES = legendre.legval(_SAMPLES, legendre.legder(np.eye(ORDER))).T
_INTEGRALS = legendre.legval(_SAMPLES, legendre.legint(np.eye(ORDER))).T
_DIFFERENTIATION = _SLOPES @ _COEFFICIENTS
# From masses at the nodes to those between the samples.
BETWEEN_SAMPLES = (np.diff(_INTEGRALS, axis=0) @ _COEFFICIENTS / _WEIGHTS).T


@dataclass(frozen=True, eq=False)
class Dense:
    """The loss of one step in one direction: what is known of its panels, and then of its atoms.

    Attributes
    ----------
    x, loss, slope : at both ends and at the nodes of each panel, shape ``(panels, ORDER + 2)``
    lowest, highest : of the loss on each panel, and bounds on that of each atom
    log_mass : log of the probability under ``P`` of each panel, then of each atom
    log_weights : log of ``P`` at the nodes of each panel times the weight there
    doubt : how far these logs may be off; for panels they are sums with losses that may be large
    error : relative error of masses that are integrated over each panel
    rounding : of a loss
    tail : of what heavy tails leave at 0
    whole : whether panels, atoms and what is beyond are all of ``P``
    beyond : probability under ``P`` of outputs that panels do not hold, or too few to resolve it
    """

    pair: Pair | None
    sign: float
    x: Float
    loss: Float
    slope: Float
    lowest: Float
    highest: Float
    log_mass: Float
    log_weights: Float
    doubt: Float
    error: Float
    beyond: float
    rounding: float
    whole: bool = False
    tail: float = 0.0

    @property
    def panels(self) -> int:
        return int(self.x.shape[0])

    @property
    def atom_loss(self) -> Float:
        """Losses of the atoms: in the middle of what is known."""
        return 0.5 * (self.lowest[self.panels :] + self.highest[self.panels :])

    def mass_of(self, parts: Mask) -> float:
        """Probability of some panels and atoms, rounded up."""
        # No mass is above 1.
        logs = np.minimum(self.log_mass[parts] + self.doubt[parts], 1.0)
        return float(np.exp(logs).sum()) * (1.0 + 1e-12)

    def rarest(self, mass: Float, limit: float) -> Mask:
        """The panels and atoms with the largest losses, of less mass than a limit; never all."""
        order = np.argsort(self.highest, kind="stable")[::-1]
        large = np.zeros(mass.size, dtype=bool)
        large[order[np.cumsum(mass[order]) < limit]] = True
        if large.all():
            large[order[-1]] = False
        return large

    def finest(self, chosen: Mask) -> tuple[Float, Float, Float]:
        """Least and largest loss and log of the mass at each chosen node and then of each atom.

        The mass of a node lies from the node before to that after.
        """
        rows, chosen = chosen[: self.panels], chosen[self.panels :]
        loss, atoms = self.loss[rows], self.atom_loss[chosen]
        ends = np.array([loss[:, :-2], loss[:, 1:-1], loss[:, 2:]])
        low, high = (np.concatenate([end, atoms], axis=None) for end in (ends.min(0), ends.max(0)))
        log_mass = self.log_weights[rows], self.log_mass[self.panels :][chosen]
        return low, high, np.concatenate(log_mass, axis=None)

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
            log_weights=self.log_weights[rows],
            doubt=self.doubt[chosen],
            error=self.error[rows],
            beyond=0.0,
            whole=False,
        )

    def rounded_within(self, chosen: Mask, level: float = 0.0) -> Dense:
        """The same, with the rounding that the chosen losses have, and levels counted from one.

        The logs of densities are as large as their ratio, at least. Sampling makes
        ``Lambda = log(1 - q + q e^r)`` of a log ratio ``r``, with the slope
        ``1 - (1 - q) e^{-Lambda}``: small losses have a small share of the rounding of ``r``.
        """
        pair = self.pair
        if pair is None:
            return self
        rate = pair.sampling_rate
        low, high = float(self.lowest[chosen].min()), float(self.highest[chosen].max())
        largest = max(abs(low), abs(high), abs(level))
        # Of outputs too, where losses are steep.
        size = largest - math.log(rate)
        rounding = self.rounding + 4.0 * pair.rounding(size)
        if rate < 1.0:
            end = abs(high) if self.sign > 0.0 else abs(low)
            if pair.replaced:
                # Of two ratios at most one is positive, the law being log-concave, and the loss of
                # that one is no more than that of both; the others have slopes of at most q. A
                # negative one beside it is no larger than the loss of both either.
                end = max(abs(high), abs(low))
                largest = 2.0 * max(largest, pair.both_fall)
            steepest = -math.expm1(-end) + rate * math.exp(-end)
            rounding = min(steepest * rounding + _MIXTURE_ROUNDING * largest, rounding)
        # Atoms stand in the middle of what is known of their losses.
        unknown = 0.5 * (self.highest - self.lowest)[self.panels :][chosen[self.panels :]]
        rounding = max(rounding, self.tail) + float(unknown.max(initial=0.0))
        return dataclasses.replace(self, rounding=rounding)


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
    half = 0.5 * (grid.right - grid.left)
    x = (grid.left + half)[:, None] + half[:, None] * _SAMPLES
    x[:, 0], x[:, -1] = grid.left, grid.right
    loss = np.empty(x.shape)
    loss[:, 1:-1], loss[:, :: ORDER + 1] = sign * grid.loss, sign * grid.outer_loss
    slope = sign * (grid.loss @ _DIFFERENTIATION.T) / half[:, None]
    atom_loss = sign * grid.atom_loss
    # Lambda is a loss under "remove", where P = Q e^Lambda.
    log_p = grid.log_mass + (grid.loss if sign > 0.0 else 0.0)
    atom_log_p = grid.atom_log_mass + (atom_loss if sign > 0.0 else 0.0)
    place = DIRECTIONS.index(direction)
    (log_masses, errors), doubt = grid.of_panels, grid.doubt
    # Panels reach as far as logs of densities are large.
    rounding = pair.rounding(16.0 + reach + 2.0 * abs(math.log(pair.noise.scale)))
    beyond, tail = grid.beyond[place], 0.0
    if pair.noise.score_limit == 0.0:
        # Heavy tails are cut where the loss is next to 0, to which it falls: their mass is an atom
        # at 0, off by no more than the loss at the ends.
        atom_loss = np.append(atom_loss, 0.0)
        atom_log_p = np.append(atom_log_p, math.log(max(beyond, 5e-324)))
        doubt = np.append(doubt, EXP_ROUNDING * abs(atom_log_p[-1]))
        tail = float(np.abs(pair.loss(grid.ends)).max())
        rounding = max(rounding, tail)
        beyond = 0.0
    narrow = atoms_of(pair, grid.narrow, direction)
    atom_log_p = np.append(atom_log_p, narrow.log_mass)
    doubt = np.append(doubt, narrow.doubt + EXP_ROUNDING * np.abs(narrow.log_mass))
    beyond += grid.between[place] + narrow.beyond
    lowest = np.concatenate([loss.min(axis=1, initial=math.inf), atom_loss, narrow.lowest])
    highest = np.concatenate([loss.max(axis=1, initial=-math.inf), atom_loss, narrow.highest])
    log_mass = np.concatenate([log_masses[place], atom_log_p])
    known = lowest, highest, log_mass, log_p, doubt, errors[place]
    whole = pair.infinite(direction) == 0.0 and not grid.narrow.size
    return Dense(pair, sign, x, loss, slope, *known, beyond, rounding, whole, tail)


def _atoms_alone(pair: AtomPair, direction: Direction) -> Dense:
    """A loss that has no panels.

    Its rounding is that of the loss without sampling, which ``log(1 - q + q e^l)`` passes on by its
    slope, ``1 - (1 - q) e^{-Lambda}``, the largest at the largest loss; and that of the map itself.
    """
    log_mass, loss = pair.atoms
    found = atoms_source(*pair.under_p(direction))
    without, rate = pair.unsampled[1], pair.sampling_rate
    rounding = _atom_rounding(without, 0.0 if pair.stated else 1.0)
    if rate < 1.0:
        largest = float(np.abs(loss).max(initial=0.0))
        end = max(float(loss.max(initial=0.0)), 0.0)
        steepest = -math.expm1(-end) + rate * math.exp(-end)
        rounding = 1.001 * steepest * rounding + _MIXTURE_ROUNDING * largest
    doubt = EXP_ROUNDING * (np.abs(log_mass) + np.abs(loss))
    # An envelope of several pairs may be more than one.
    total = float(np.exp(found.log_mass).sum())
    whole = not pair.several and pair.infinite(direction) == 0.0 and abs(total - 1.0) <= _WHOLE
    return dataclasses.replace(found, rounding=rounding, doubt=doubt, whole=whole)


def atoms_source(log_mass: Float, loss: Float) -> Dense:
    """A loss of atoms alone, with the logs of their masses under ``P``."""
    none, doubt = np.empty((0, ORDER + 2)), EXP_ROUNDING * np.abs(log_mass)
    known = loss, loss, log_mass, none[:, 1:-1], doubt, none[:, 0]
    return Dense(None, 1.0, none, none, none, *known, 0.0, _atom_rounding(loss, 1.0))


def _atom_rounding(loss: Float, least: float) -> float:
    """Some ulp of the largest loss, or of a least number."""
    return _ATOM_ROUNDING * max(float(np.abs(loss).max(initial=0.0)), least)


class Measured(ABC):
    """A step that is known by two measures of its loss: one from below and one from above.

    The profile of the first lies below that of the step, and of the second above, in every
    composition. Both are made by `atoms_source`; their mass ``beyond`` counts as infinite from
    above, and `infinite` is the mass of infinite losses that they have in common. The direct
    composer takes it; it has no transform, so that estimates lie between its bounds.
    """

    #: How many uses of a mechanism one of it stands for.
    steps: int = 1

    @property
    def attained(self) -> Step | None:
        """What stands for it where lower ends of brackets are computed; None leaves it out.

        Itself, unless both measures are so far apart that no composition brings the ends of a
        bracket together; then a step that is nowhere above. Leaving a step out is post-processing,
        which can only lower the profile.
        """
        return self

    @property
    def revealed(self) -> Step:
        """What stands for it where upper ends of brackets are wide: a step that is nowhere below
        and is composed more easily, if there is one."""
        return self

    @abstractmethod
    def sources(self, direction: Direction) -> tuple[Dense, Dense]:
        """The loss of one use, from below and from above; the same twice if it is not attained."""

    def infinite(self, direction: Direction) -> float:
        """Probability under ``P`` of an infinite loss."""
        del direction
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether both directions are the same."""
        return False

    def largest_loss(self, direction: Direction) -> float:
        """A bound from above on the finite losses."""
        above = self.sources(direction)[1]
        if above.beyond > 0.0:
            return math.inf
        return float(above.highest.max(initial=-math.inf)) + above.rounding

    def certain_loss(self, direction: Direction) -> float:
        """A bound from below on the largest finite loss."""
        below = self.sources(direction)[0]
        return float(below.lowest.max(initial=-math.inf)) - below.rounding

    @property
    def total_variation_bound(self) -> float:
        """An upper bound on delta(0) of one use."""
        total = 0.0
        for direction in DIRECTIONS:
            above = self.sources(direction)[1]
            share = -np.expm1(-np.maximum(above.highest + above.rounding, 0.0))
            beyond = above.beyond + self.infinite(direction)
            total = max(total, float(np.exp(above.log_mass) * np.exp(above.doubt) @ share) + beyond)
        return min(total * (1.0 + 1e-12), 1.0)


def uses_of(steps: Steps) -> float:
    """How many uses of mechanisms there are in all."""
    each = ((step.steps if isinstance(step, Measured) else 1, count) for step, count in steps)
    return float(sum(uses * count for uses, count in each))
