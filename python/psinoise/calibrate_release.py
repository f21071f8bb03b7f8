"""The least noise that meets a target as it is released: on a lattice, after rounding.

The law that :func:`psinoise.calibrate` finds just meets the target before it is put on a lattice.
The lattice costs a little: it rounds the sensitivity up, which is known before if the grid is
given, and the weights to integers. Where that is too much the scale grows. Each step takes the
certified epsilon of the mechanism on its lattice, and enlarges the scale by the share that this
exceeds the target: epsilon falls at least about as fast as the scale grows. Laws
that have no scale are made again for a little less than the target. What is returned is not
extrapolated but certified.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psinoise import _validate
from psinoise.accounting import Accountant, LatticeMechanism, Mechanism
from psinoise.calibrate import calibrate
from psinoise.errors import CalibrationError
from psinoise.noise import Noise, NoiseLaw
from psinoise.release import cells_of, exponent_of

__all__ = ["calibrate_release"]

_MOST_STEPS = 12
# Beyond the excess that was measured; and at least this share in one step.
_MARGIN, _LEAST_STEP = 1.1, 2e-5
# Shares of the target by which a law without a scale is made for less.
_FIRST_SHARE, _GROWTH = 1e-6, 3.0


def calibrate_release(
    law: Callable[..., NoiseLaw],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    grid: float | None = None,
) -> LatticeMechanism:
    """Return the mechanism on a lattice with the least noise that meets a privacy target.

    Parameters
    ----------
    law, epsilon, delta, sensitivity, count, sampling_rate, adjacency
        As in :func:`psinoise.calibrate`.
    grid : float, optional
        As in ``Mechanism.on_lattice``.

    Returns
    -------
    LatticeMechanism
        Its certified epsilon at ``delta`` and its certified delta at ``epsilon`` are within the
        target; its ``release`` is what was certified.

    Raises
    ------
    CalibrationError, CertificationError, TypeError, DomainError, OverflowError
        As :func:`psinoise.calibrate`; CalibrationError too if the lattice costs so much that no
        small step makes up for it, which a grid that is too coarse does.

    Examples
    --------
    >>> import psinoise as pn
    >>> mechanism = pn.calibrate_release(pn.Airy, epsilon=1.0, delta=1e-6, count=10)
    >>> float(mechanism.delta(1.0, count=10)) <= 1e-6
    True
    """
    sensitivity = _validate.positive("sensitivity", sensitivity)
    moved = sensitivity if grid is None else cells_of(sensitivity, exponent_of(grid)) * grid
    noise: Any = None
    for step in range(_MOST_STEPS):
        if not isinstance(noise, Noise):
            less = 1.0 - (_FIRST_SHARE * _GROWTH ** (step - 1) if step else 0.0)
            noise = calibrate(
                law,
                epsilon=epsilon * less,
                delta=delta * less,
                sensitivity=moved,
                count=count,
                sampling_rate=sampling_rate,
                adjacency=adjacency,
            )
        mechanism = Mechanism(noise, sensitivity).on_lattice(grid)
        accountant = Accountant(adjacency).compose(mechanism, count, sampling_rate)
        # Of a delta of 0 only the largest loss is a proof.
        found_epsilon = accountant.epsilon(delta).upper
        found_delta = accountant.delta(epsilon).upper if delta > 0.0 else 0.0
        if found_epsilon <= epsilon and found_delta <= delta:
            return mechanism
        if isinstance(noise, Noise):
            # Delta at epsilon = 0 falls like that too.
            excess = found_epsilon / epsilon if epsilon > 0.0 else found_delta / delta
            share = max(_MARGIN * (excess - 1.0), _LEAST_STEP * 2.0**step)
            noise = law(scale=noise.scale * (1.0 + share))
        else:
            # On this lattice, and for what the sensitivity is there.
            grid, moved = mechanism.grid, mechanism.cells * mechanism.grid
    raise CalibrationError(
        f"no law near {noise!r} meets epsilon {epsilon!r} and delta {delta!r} on a lattice of grid "
        f"{mechanism.grid!r}"
    )
