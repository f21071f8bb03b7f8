"""The symmetric stable law that costs least where many clients add noise.

Zawacki and Abed leave the choice of the index open: ``E|Y| / scale`` falls as alpha grows (their
corollary 32), while the scale that a pure epsilon takes grows without bound towards 2. Here the
product is minimized, for the sum of the noise of all clients.

Scales add up like ``clients**(1 / alpha)``, so that the best index grows with the crowd. Epsilon of
a message fixes its scale ``c(alpha)``, and the sum has ``E|Y| = m(alpha) c(alpha) n**(1 / alpha)``
with ``m(alpha) = (2 / pi) Gamma(1 - 1 / alpha)``. Of one client, in terms of ``r = sensitivity /
scale`` the largest loss is ``e(alpha, r)``, the same for ``-r``, hence ``e = r max(score) +
O(r**3)``: the best index tends to a limit, 1.704, with an error of order ``epsilon**2`` as epsilon
falls. As epsilon grows, ``e ~ (1 + alpha) log r`` and ``E|Y|`` has a pole at 1: minimizing
``-epsilon / (1 + alpha) - log(alpha - 1)`` gives ``alpha - 1 ~ 4 / epsilon``. Of very many clients
the factor ``n**(1 / alpha)`` rules: the scale grows like ``sqrt(log(1 / (2 - alpha)))`` only, and
the best distance from 2 falls about as ``2 / log n``.

Of the sum of those that are left after dropouts the same holds: what must be private is a sum of
``draws`` of the noise of one client, and what is paid for is a sum of ``clients`` of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from psinoise import _validate
from psinoise.calibration import calibrate
from psinoise.errors import CalibrationError, DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import DiscreteStable, Family, SymmetricStable
from psinoise.release import cells_of, grid_from

__all__ = ["calibrate_stable"]

_SETTINGS = ("local", "distributed")
# All of these are tried, then the neighborhood of the best: a second minimum cannot hide but
# between two of them. The best index for E|Y| is 1.07 at the largest epsilon that `calibrate` finds
# a scale for, about 57, and ``2 - 2 / log n`` is below the last for any n that fits in 63 bits.
_INDICES = (1.03, 1.08, 1.15, 1.25, 1.4, 1.55, 1.7, 1.8, 1.88, 1.93, 1.96, 1.98, 1.99, 1.998)
# Costs other than E|Y| may be finite there too.
_LOW_INDICES = (0.3, 0.5, 0.7, 0.9)
# Below, the best index is that of the limit to 1e-6, and the loss has too few digits to find it.
_SMALLEST_EPSILON = 1e-3
# E|Y| is flat at its minimum: this costs 1e-10 of it, about what the loss is known to.
_INDEX_TOLERANCE = 1e-5
# On a grid: by how much less than the target is met, and how it is come to.
_GRID_EXCESS, _LONGEST_STEP, _MOST_STEPS = 1e-6, 1.0, 24

_Cost = Callable[[np.ndarray], ArrayLike]


def calibrate_stable(
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    count: int = 1,
    delta: float = 0.0,
    clients: int = 1,
    setting: str = "local",
    dropout: float = 0.0,
    cost: _Cost | None = None,
    alpha: float | None = None,
    grid: float | None = None,
) -> SymmetricStable | DiscreteStable:
    """Return the symmetric stable noise of one client that costs the sum of all of them least.

    Parameters
    ----------
    epsilon : float
        The target, for all uses together; positive.
    sensitivity : float
        How far neighboring data sets can move the query; positive and finite.
    count : int
        Uses of the mechanism, at least 1; pure losses add.
    delta : float
        In [0, 1); 0 is pure privacy.
    clients : int
        How many add noise of this law, each for itself; at least 1.
    setting : str
        What meets the target: "local", each message by itself; "distributed", the sum of the
        messages (under secure aggregation, say), to which each client adds a share of the noise.
    dropout : float
        Share of the clients, in [0, 1), that may be missing from a "distributed" sum, which then
        meets the target with what the others have added: ``ceil((1 - dropout) * clients)`` of them.
        To tolerate clients that reveal their noise count them as missing. A "local" message does
        not depend on others.
    cost : callable, optional
        An even function of the error of the sum, the expectation of which is to be least; see
        `psinoise.Noise.expected_cost`. The absolute value if it is left out.
    alpha : float, optional
        The index, in [0.1, 2], where it is not to be searched for.
    grid : float, optional
        Clients round their values to multiples of it and send whole numbers: the result is the
        `DiscreteStable` law to add, in units of the grid. A 64th of the scale costs nothing.

    Returns
    -------
    SymmetricStable or DiscreteStable
        The law of the noise of one client, ``aggregate(clients)`` of which is that of the sum. The
        index is within 1e-4 of the best one and the ``mean_abs`` within 1e-6 of the least; the
        scale is that of ``calibrate``, which never exceeds the target. On a grid the index is that
        of the continuous law, and the scale, within 1e-6 of the least, is that of what is released:
        ``Mechanism(law, cells).on_lattice()`` of each message, ``cells = ceil(sensitivity /
        grid)``, or ``Mechanism(law, cells).for_sum(present)`` for a "distributed" target with a
        delta.
        A "distributed" pure target is met by draws of the law itself (of releases, which saturate,
        the pure epsilon of a sum is that of one: ``psinoise.mechanisms.sums``).

    Raises
    ------
    CalibrationError
        If the scale would be outside ``2**-40`` to ``2**40`` times the sensitivity; if no index has
        a finite expected cost.
    TypeError, DomainError
        For arguments of the wrong kind or outside their ranges; for a grid so fine that the noise
        cannot be released on it.

    See Also
    --------
    calibrate : for a given index, ``calibrate(Family(SymmetricStable, alpha=1.5), ...)``.

    Notes
    -----
    Laplace noise at the same pure epsilon has ``E|Y| = sensitivity / epsilon``. For one client the
    best stable law has 1.57 times that as epsilon tends to 0, the same at 5.46, and less beyond;
    `Staircase` noise, which is the best of all laws (Geng and Viswanath 2016), is ahead of both.
    What a stable law has and they have not is that independent draws add up to one, so that the
    pure epsilon of a sum falls with the crowd (`SymmetricStable.aggregate`).

    With ``delta > 0`` the normal law, ``alpha = 2``, is among the candidates: the result is never
    behind `Gaussian` at that target.

    All of fourteen indices are tried, then the surroundings of the best. That there is no second
    minimum between two of them is seen on grids, not proven. Takes seconds, most of them for the
    largest losses of some twenty indices; what is found for an index is kept for other crowds.

    Examples
    --------
    >>> import psinoise as pn
    >>> noise = pn.calibrate_stable(epsilon=1.0)
    >>> round(noise.alpha, 2), round(noise.mean_abs, 3)
    (1.7, 1.553)

    A thousand messages, each of epsilon 1 by itself, and what their sum reveals:

    >>> noise = pn.calibrate_stable(epsilon=1.0, clients=1000)
    >>> total = noise.aggregate(1000)
    >>> round(noise.alpha, 2), round(total.mean_abs, 1)
    (1.92, 65.9)
    >>> pn.Mechanism(total).pure_epsilon() < 0.03
    True

    The same in whole numbers of 1/32, for secure aggregation, and without those that dropped out:

    >>> noise = pn.calibrate_stable(epsilon=1.0, clients=1000, grid=1 / 32)
    >>> message = pn.Mechanism(noise, sensitivity=32)
    >>> message.on_lattice().pure_epsilon() <= 1.0
    True
    >>> round(noise.aggregate(1000).mean_abs / 32, 1), round(message.for_sum(900).epsilon(1e-9), 3)
    (65.9, 0.029)
    """
    target = _Target(
        _validate.positive_below("epsilon", epsilon),
        _validate.real_below("delta", delta),
        _validate.positive_above("sensitivity", sensitivity),
        _validate.positive_count("count", count),
    )
    if not 0.0 <= target.delta < 1.0:
        raise DomainError(f"delta must be in [0, 1), got {delta!r}")
    if cost is not None and not callable(cost):
        raise TypeError(f"cost must be callable, got {cost!r}")
    clients = _validate.positive_count("clients", clients)
    draws = _private_draws(clients, setting, dropout)
    if grid is not None:
        grid = grid_from(grid)
        cells_of(target.sensitivity, grid)
    if alpha is None:
        index = float(f"{_best_index(target, draws, clients, cost):.5f}")
    else:
        index = _validate.real("alpha", alpha)
    private = _least(target, index)
    if grid is None:
        return _scaled(private, 1, draws)
    return _on_grid(target, draws, private, grid)


@dataclass(frozen=True)
class _Target:
    """What one release must meet."""

    epsilon: float
    delta: float
    sensitivity: float
    count: int


@functools.lru_cache(maxsize=256)
def _least(target: _Target, alpha: float) -> SymmetricStable:
    """The least noise of an index; kept, since crowds of any size ask for the same ones first."""
    found = calibrate(
        Family(SymmetricStable, alpha=alpha),
        epsilon=target.epsilon,
        delta=target.delta,
        sensitivity=target.sensitivity,
        count=target.count,
    )
    return cast(SymmetricStable, found)


def _rough(target: _Target, alpha: float) -> SymmetricStable:
    """The same to the few digits that the loss of a tiny epsilon has, in the limit."""
    each = target.epsilon / target.count
    if target.delta > 0.0 or each >= _SMALLEST_EPSILON:
        return _least(target, alpha)
    near = _least(_Target(_SMALLEST_EPSILON, 0.0, 1.0, 1), alpha)
    scale = near.scale * (_SMALLEST_EPSILON / each) * target.sensitivity
    return SymmetricStable(alpha=alpha, scale=scale)


def _on_grid(target: _Target, draws: int, private: SymmetricStable, grid: float) -> DiscreteStable:
    """The whole-number noise of one client: like the continuous one, and then by secants."""
    cells = cells_of(target.sensitivity, grid)
    alpha, count = private.alpha, target.count

    def message(scale: float) -> DiscreteStable:
        share = draws ** (-1.0 / alpha) * (1.0 + 2.0**-50) if draws > 1 else 1.0
        return DiscreteStable(alpha=alpha, scale=scale * share)

    def log_excess(scale: float) -> float:
        noise = message(scale)
        if draws > 1 and target.delta == 0.0:
            loss = Mechanism(noise.aggregate(draws), cells).pure_epsilon()
            return math.log(count * loss / target.epsilon)
        reached = Mechanism(noise, cells).for_sum(draws).epsilon(target.delta, count)
        return math.log(float(reached) / target.epsilon) if reached > 0.0 else -_LONGEST_STEP

    at, slope = math.log(private.scale / grid), 1.0
    excess = log_excess(math.exp(at))
    for _ in range(_MOST_STEPS):
        if -_GRID_EXCESS <= excess <= 0.0:
            break
        # Aim a little below: at what is surely not above the target.
        step = (excess + 0.3 * _GRID_EXCESS) / slope
        step = min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
        following = log_excess(math.exp(at + step))
        if step:
            slope = max((excess - following) / step, 0.25)
        at, excess = at + step, following
    if not excess <= 0.0:
        raise CalibrationError(f"no scale on the grid {grid!r} was found to meet the target")
    return message(math.exp(at))


def _scaled(noise: SymmetricStable, count: int, of: int) -> SymmetricStable:
    """Noise of which ``of`` draws add up to what is given, added up ``count`` times."""
    if count == of:
        return noise
    if of == 1:
        return noise.aggregate(count)
    # Not to be too small for its rounding: the power is right to an ulp or two.
    growth = (count / of) ** (1.0 / noise.alpha) * (1.0 + 2.0**-50)
    return SymmetricStable(alpha=noise.alpha, scale=noise.scale * growth)


def _private_draws(clients: int, setting: str, dropout: float) -> int:
    """How many draws of the noise of one client meet the target together."""
    _validate.choice("setting", setting, _SETTINGS)
    missing = _validate.real("dropout", dropout)
    if not 0.0 <= missing < 1.0:
        raise DomainError(f"dropout must be in [0, 1), got {dropout!r}")
    if setting == "local":
        if missing:
            raise DomainError(
                "dropout must be 0 where setting is 'local': a message is private by itself, got "
                f"{dropout!r}"
            )
        return 1
    # Whole clients leave; rounding must not count one as present that may be missing.
    return max(clients - math.floor(missing * clients * (1.0 + 2.0**-50)), 1)


def _best_index(target: _Target, draws: int, clients: int, cost: _Cost | None) -> float:
    """The index of least expected cost of the sum of all clients."""
    from scipy import optimize  # slow to import

    refusals: list[CalibrationError] = []

    def log_cost(alpha: float) -> float:
        try:
            total = _scaled(_rough(target, alpha), clients, draws)
        except CalibrationError as error:
            refusals.append(error)
            return math.inf
        value = total.mean_abs if cost is None else total.expected_cost(cost)
        if not value >= 0.0:
            raise DomainError(f"cost must not be negative in the mean, got {value!r}")
        return math.log(value) if value > 0.0 else -math.inf

    indices = [*(_LOW_INDICES if cost is not None else ()), *_INDICES]
    if target.delta > 0.0:
        indices.append(2.0)
    costs = [log_cost(alpha) for alpha in indices]
    best = min(range(len(indices)), key=costs.__getitem__)
    if math.isinf(costs[best]) and costs[best] > 0.0:
        if refusals:
            raise refusals[0]
        raise CalibrationError(
            "cost must have a finite expectation for some index below 2: its growth is too fast"
        )
    low, high = indices[max(best - 1, 0)], indices[min(best + 1, len(indices) - 1)]
    found = optimize.minimize_scalar(
        log_cost, bounds=(low, high), method="bounded", options={"xatol": _INDEX_TOLERANCE}
    )
    return float(found.x) if found.fun < costs[best] else indices[best]
