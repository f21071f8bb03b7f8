"""Certified bounds on compositions with laws in cells.

From above the dominating pair of each step is composed on a lattice, and the tolerance is verified:
the bound is no farther than that from the estimate, which is the value of the composed pairs.

From below there is less to be had, and the tolerance is not asked of it. A lattice takes from an
isolated atom what that is above the node below it, times the distance to the next atom, where from
a density it takes the square of its step. And where a law has several worst shifts, the bound is
that of one fixed shift, the same in all uses: what some pair of neighbors does suffer. The envelope
over shifts, which is the bound from above, lets them choose again for each output.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable

import numpy as np

from psinoise.accounting.certified.bracket import Bracket
from psinoise.accounting.certified.settled import (
    settled_epsilons,
    settled_finite_log_delta,
    settled_log_delta,
    shrinkage,
    width_of,
)
from psinoise.accounting.contour.atoms import composed_atoms
from psinoise.accounting.contour.line import Line
from psinoise.accounting.contour.single import SingleStep
from psinoise.accounting.lattice.stages import profile_bound
from psinoise.accounting.lattice.target import FEW_ATOMS, Target
from psinoise.accounting.loss.cells import CellPair, Dominating
from psinoise.accounting.loss.pairs import Direction, Pair
from psinoise.accounting.loss.steps import (
    SAME,
    Steps,
    directions,
    doubt_of_share,
    finite_share,
    infinite_mass,
    largest_finite_loss,
)
from psinoise.errors import CertificationError

__all__ = ["cells_delta", "cells_epsilon"]

_ATTEMPTS = 8
_LEAST_WIDTH = 1e-7
# Uses of which all outcomes may be listed, and the relative rounding of their probabilities: each
# is a product of as many factors, and sums of a few million terms.
_MOST_LISTED, _LIST_ROUNDING = 4096, 1e-9
_LEAST_SHARE = math.log(1e-5)
# How much finer lattices are from below, if they are not too long.
_FINER = (16.0, 4.0, 1.0)


def cells_epsilon(steps: Steps, log_delta: float, tolerance: float | None) -> Bracket:
    """Bounds on epsilon, of which the upper one is no farther from the estimate than the tolerance.

    Raises
    ------
    CertificationError
        if it is
    """
    found = settled_epsilons(steps, log_delta, tolerance)
    estimate = max(found.values())
    width = width_of(estimate, tolerance)
    lower, upper = 0.0, 0.0
    for way, epsilon in found.items():
        goal = finite_share(steps, way, log_delta)
        if goal is None or goal == -math.inf:
            upper = max(upper, epsilon)
            continue
        doubt = doubt_of_share(steps, way, log_delta)
        target = Target(steps, way, goal, epsilon, width, doubt)
        # Another direction matters only where it comes near to the leading one.
        step, above = _above(target, max(epsilon + width, estimate))
        upper = max(upper, above)
        if epsilon == estimate:
            fixed = _fixed(steps, target)
            lower = max(_below(each, way, target.goal("lower"), step, width) for each in fixed)
    return Bracket(min(lower, estimate), estimate, max(upper, estimate))


def _above(target: Target, ceiling: float) -> tuple[float, float]:
    step, upper, goal = target.first_step, math.inf, target.goal("upper")
    above = dataclasses.replace(target, epsilon=min(ceiling, target.epsilon + 0.5 * target.width))
    listed = _listed(above)
    if listed is not None and listed + _LIST_ROUNDING <= goal:
        return step, above.epsilon
    for _ in range(_ATTEMPTS):
        bound = profile_bound(target, step, "upper")
        resolution = 1e-3 * target.width
        upper = min(bound.root(goal, target.epsilon, target.width, resolution), target.top)
        if upper <= ceiling:
            return step, upper
        step *= shrinkage(target.width, max(upper - target.epsilon, target.width))
    raise CertificationError(
        f"epsilon could not be certified to {target.width!r}: the bound is {upper!r} and the "
        f"estimate {target.epsilon!r}"
    )


def _below(steps: Steps, way: Direction, goal: float, step: float, width: float) -> float:
    """A lower bound on the finite part, on as fine a lattice as there is room for."""
    try:
        epsilon = settled_epsilons(steps, goal, None)[way]
    except CertificationError:
        return 0.0
    target, resolution = Target(steps, way, goal, epsilon, width), 1e-3 * width
    below = max(epsilon - resolution, 0.0)
    listed = _listed(dataclasses.replace(target, epsilon=below))
    if listed is not None and listed - _LIST_ROUNDING >= goal:
        return below
    for finer in _finer(target):
        with contextlib.suppress(CertificationError):
            bound = profile_bound(target, step / finer, "lower")
            return max(bound.root(goal, epsilon, width, resolution) - resolution, 0.0)
    return 0.0


def cells_delta(steps: Steps, epsilon: float, tolerance: float | None) -> Bracket:
    """Bounds on delta, of which the upper one is no farther above the estimate than the tolerance.

    The tolerance is a distance in epsilon, as in `certify_delta.certify_delta`.
    """
    width = width_of(epsilon, tolerance)
    ways = directions(steps)
    logs = {way: settled_log_delta(steps, way, epsilon) for way in ways}
    estimate = max(logs.values())
    moved = max(settled_log_delta(steps, way, epsilon - width) for way in ways)
    allowed = max(moved - estimate, _LEAST_WIDTH)
    lower, upper = -math.inf, estimate
    for way in ways:
        mass = infinite_mass(steps, way)
        beyond = math.log(mass) if mass > 0.0 else -math.inf
        if largest_finite_loss(steps, way) <= epsilon:
            lower, upper = max(lower, beyond - SAME), max(upper, beyond + SAME)
            continue
        finite = settled_finite_log_delta(steps, way, epsilon)
        target = Target(steps, way, finite, epsilon, width)
        step, listed = target.first_step, _listed(target)
        above = math.inf if listed is None else _sum(listed + _LIST_ROUNDING, beyond + SAME)
        for _ in range(_ATTEMPTS):
            if above <= estimate + allowed:
                break
            found = profile_bound(target, step, "upper").log_delta(epsilon)
            above = _sum(found, beyond + SAME)
            step *= shrinkage(allowed, max(above - estimate, allowed))
        if not above <= estimate + allowed:
            raise CertificationError(
                f"delta could not be certified to a width of {width!r} in epsilon: the logarithm "
                f"of the bound is {above - estimate:.3g} above and may be {allowed:.3g}"
            )
        upper = max(upper, above)
        if logs[way] == estimate:
            for fixed in _fixed(steps, target):
                below = _log_below(dataclasses.replace(target, steps=fixed), step)
                lower = max(lower, _sum(below, beyond - SAME))
    floor = -math.expm1(min(epsilon, 0.0))
    found = math.exp(min(estimate, 0.0))
    return Bracket(
        min(max(math.exp(min(lower, 0.0)), floor), found), found, math.exp(min(upper, 0.0))
    )


def _listed(target: Target) -> float | None:
    """Log of the finite part of delta from all atoms of the composed loss, to ``_LIST_ROUNDING``.

    None where they are too many to be listed. It is a sum of positive terms, a few million at most.
    Atoms below ``e^-52`` of the heaviest are left out, on each of at most 24 levels: 3e-15 of the
    tilted mass in all, which is no more than the rounding where the rest adds up to 1e-5.
    """
    if target.uses > _MOST_LISTED or any(isinstance(pair, Pair) for pair, _ in target.steps):
        return None
    saddle = target.composition.saddle_at_epsilon(target.epsilon)
    atoms = composed_atoms(target.composition, saddle)
    if not atoms.positions.size:
        return None
    line = Line(saddle, 1.0, np.zeros(1, dtype=np.complex128), atoms)
    found = line.log_delta(target.epsilon)[0]
    return found if found - line.log_scale(target.epsilon) > _LEAST_SHARE else None


def _finer(target: Target) -> tuple[float, ...]:
    """How much finer lattices from below may be; a few atoms have been fitted to theirs."""
    few = all(
        isinstance(pair, CellPair) and pair.atoms[1].size <= FEW_ATOMS for pair, _ in target.steps
    )
    return (1.0,) if few else _FINER


def _log_below(target: Target, step: float) -> float:
    listed = _listed(target)
    if listed is not None:
        return listed - _LIST_ROUNDING
    for finer in _finer(target):
        with contextlib.suppress(CertificationError):
            return profile_bound(target, step / finer, "lower").log_delta(target.epsilon)
    return -math.inf


def _sum(one: float, other: float) -> float:
    top = max(one, other)
    if top == -math.inf:
        return top
    return top + math.log1p(math.exp(min(one, other) - top))


def _fixed(steps: Steps, target: Target) -> tuple[Steps, ...]:
    """The steps with one shift each, in some ways that may be the worst.

    The shift that reveals most at the tilt of the target, the largest one, and that which is worst
    for a single use with its share of epsilon.
    """

    def largest(pair: CellPair) -> CellPair:
        return dataclasses.replace(pair, shift=pair.shifts[-1])

    def tilted(pair: CellPair) -> CellPair:
        return pair.at_shift(target.direction, target.tilt)

    def shared(pair: CellPair) -> CellPair:
        share = target.epsilon / target.uses
        return max(
            (dataclasses.replace(pair, shift=shift) for shift in pair.shifts),
            key=lambda fixed: SingleStep(fixed, target.direction).log_delta(share)[0],
        )

    def chosen(pair: Dominating, choose: Callable[[CellPair], CellPair]) -> Dominating:
        several = isinstance(pair, CellPair) and len(pair.shifts) > 1
        return choose(pair) if several and isinstance(pair, CellPair) else pair

    ways = {
        tuple((chosen(pair, choose), count) for pair, count in steps)
        for choose in (tilted, largest, shared)
    }
    return tuple(ways)
