"""The least noise that meets a target as it is released: on a lattice, from its integers.

The law that `search` finds just meets the target before it is put on a lattice. On the grid of
`Mechanism.on_lattice` that costs nothing but the rounding of the weights to integers; a grid that
is given rounds the sensitivity up, which is known before. Where the target is missed the scale
grows. Each step takes the certified epsilon of the mechanism on its lattice, and enlarges the scale
by the share that this exceeds the target: epsilon falls at least about as fast as the scale grows.
Where epsilon is so large that a record moves outputs to where a lattice law has its geometric tail,
whose losses no longer grow, less noise meets the target: its scale is halved in on, from where
epsilon would be the target's if it were as 1 over the scale, up to one that is known to be enough.
Laws that have no scale are made again for a little less than the target. What is returned is not
extrapolated but certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from psinoise.calibration.target import Target
from psinoise.errors import CalibrationError, DomainError
from psinoise.mechanisms import LatticeMechanism, Mechanism
from psinoise.release import cells_of, fits, grid_from

__all__ = ["least_on_lattice"]

_MOST_STEPS = 12
# Beyond the excess that was measured; and at least this share in one step.
_MARGIN, _LEAST_STEP = 1.1, 2e-5
# Shares of the target by which a law without a scale is made for less.
_FIRST_SHARE, _GROWTH = 1e-6, 3.0
# Of epsilon and of the scale: what is not worth another law.
_SPARE = 2e-3


def least_on_lattice(
    target: Target, grid: float | None, ideal: Callable[[Target], Any]
) -> LatticeMechanism:
    """The mechanism on a lattice with the least noise that meets a target.

    The target has the sensitivity before rounding, and ``ideal`` makes the law that meets a target
    before it is put on a lattice. A CalibrationError says that the lattice costs so much that no
    small step makes up for it, a DomainError that records are sampled and replaced, whose worst
    case on a lattice is not known.
    """
    moved = target.sensitivity
    if grid is not None:
        grid = grid_from(grid)
        moved = max(moved, cells_of(moved, grid) * grid)
    noise: Any = None
    for step in range(_MOST_STEPS):
        if noise is None or not noise.ordered_by_scale:
            less = 1.0 - (_FIRST_SHARE * _GROWTH ** (step - 1) if step else 0.0)
            asked = replace(
                target,
                epsilon=target.epsilon * less,
                delta=target.delta * less,
                sensitivity=moved,
            )
            noise = ideal(asked)
        mechanism = _released(target, grid, noise)
        epsilon, delta = _asked(target, mechanism)
        if epsilon <= target.epsilon and delta <= target.delta:
            return _with_less(target, grid, noise, mechanism, epsilon)
        if noise.ordered_by_scale:
            # Delta at epsilon = 0 falls like that too.
            of_delta = target.epsilon == 0.0
            excess = delta / target.delta if of_delta else epsilon / target.epsilon
            share = max(_MARGIN * (excess - 1.0), _LEAST_STEP * 2.0**step)
            noise = target.law(scale=noise.scale * (1.0 + share))
    raise CalibrationError(
        f"no law near {noise!r} meets epsilon {target.epsilon!r} and delta {target.delta!r} on a "
        f"lattice of grid {mechanism.grid!r}"
    )


def _released(target: Target, grid: float | None, noise: Any) -> LatticeMechanism:
    """The mechanism on a lattice.

    A grid as large as the sensitivity or larger is what the sensitivity is rounded up to, and the
    noise that meets a target is as large in units of one as of the other: what is too wide for the
    sensitivity as a grid is too wide for all larger ones.
    """
    try:
        return Mechanism(noise, target.sensitivity).on_lattice(grid)
    except DomainError as error:
        widest = target.sensitivity if grid is None else max(grid, target.sensitivity)
        if noise.own_grid is not None or fits(noise, widest):
            raise
        raise CalibrationError(
            f"noise that meets the target is too wide for a lattice, {noise!r} at sensitivity "
            f"{target.sensitivity!r}: 2**20 multiples of {widest!r} do not reach far enough, nor "
            "do those of coarser grids, with which the noise grows (Gaussian noise may be as wide)"
        ) from error


def _asked(target: Target, mechanism: LatticeMechanism) -> tuple[float, float]:
    """Certified epsilon and delta, each asked of its own, as users will."""
    epsilon = mechanism.epsilon(target.delta, **target.use).upper
    if target.delta == 0.0:  # only the largest loss is a proof
        return epsilon, 0.0
    return epsilon, mechanism.delta(target.epsilon, **target.use).upper


def _with_less(
    target: Target, grid: float | None, noise: Any, enough: LatticeMechanism, epsilon: float
) -> LatticeMechanism:
    """About the least noise that is enough, between the scale at which epsilon would be the
    target's if it were as 1 over the scale, and the one that has ``epsilon``."""
    if not (noise.ordered_by_scale and epsilon < target.epsilon):
        return enough
    least, most = noise.scale * epsilon / target.epsilon, noise.scale
    while least < (1.0 - _SPARE) * most:
        closer: Any = target.law(scale=0.5 * (least + most))
        mechanism = _released(target, grid, closer)
        epsilon, delta = _asked(target, mechanism)
        if epsilon <= target.epsilon and delta <= target.delta:
            enough, most = mechanism, closer.scale
        else:
            least = closer.scale
    return enough
