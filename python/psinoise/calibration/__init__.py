"""The least noise that meets a privacy target.

`target` is what is asked, `search` finds the scale, `designed` makes laws that have none, `lattice`
finds what meets the target as it is released, `training` is for training runs. With delta = 0 the
target is a bound on the largest loss, which needs no certificate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast, overload

from psinoise import _validate
from psinoise.calibration import mean_cost
from psinoise.calibration.designed import design, designed_law
from psinoise.calibration.lattice import least_on_lattice
from psinoise.calibration.search import Calibration, search
from psinoise.calibration.target import Target, checked
from psinoise.calibration.training import noise_multiplier
from psinoise.errors import DomainError
from psinoise.mechanisms import LatticeMechanism
from psinoise.noise import NoiseLaw
from psinoise.sampling import Sampling

__all__ = ["Calibration", "calibrate", "calibration", "noise_multiplier"]

_AnyNoise = TypeVar("_AnyNoise", bound=NoiseLaw)

_METHODS = ("certified", "estimate")


@overload
def calibrate(
    law: Callable[..., _AnyNoise],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    contribution: float | None = None,
    method: str = "certified",
    cost: Callable[..., Any] | None = None,
    sampling: Sampling | None = None,
    on_lattice: Literal[False] = False,
) -> _AnyNoise: ...


@overload
def calibrate(
    law: Callable[..., NoiseLaw],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    cost: Callable[..., Any] | None = None,
    sampling: Sampling | None = None,
    on_lattice: Literal[True],
    grid: float | None = None,
) -> LatticeMechanism: ...


def calibrate(
    law: Callable[..., _AnyNoise],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    contribution: float | None = None,
    method: str = "certified",
    cost: Callable[..., Any] | None = None,
    sampling: Sampling | None = None,
    on_lattice: bool = False,
    grid: float | None = None,
) -> _AnyNoise | LatticeMechanism:
    """Return the law with the least scale that meets a privacy target.

    Parameters
    ----------
    law : class of noise laws, or callable
        Something that takes ``scale`` as a keyword and returns a law such as ``psinoise.Airy``;
        delta must fall as the scale grows, as it does for every unimodal density, and for
        ``DiscreteLaplace`` and ``Family(DiscreteStable, alpha=1.9)``, of which a larger scale is
        a smaller one and more noise.
        Or a law that is made for targets, such as ``psinoise.Staircase``, which is what a theorem
        says; of ``psinoise.Cactus`` the bound of the expected cost is found. Other arguments of
        such a law are given as ``Family(psinoise.Cactus, cells=400)`` (``psinoise.noise.Family``),
        or by ``functools.partial``.
    epsilon : float
        The target, in [0, 1e5]; 0 is legal with a positive delta.
    delta : float
        In [0, 1). With 0, only laws with a largest privacy loss can meet the target.
    sensitivity : float
        How far neighboring data sets can move the query; positive and finite.
    count : int
        Uses of the mechanism, at least 1.
    sampling_rate : float
        Rate of Poisson sampling, in (0, 1]; 1 is no sampling.
    adjacency : str
        The neighboring relation, "add-remove" or "replace"; see :meth:`psinoise.Mechanism.epsilon`.
    contribution : float, optional
        For "replace" with sampling; see :class:`psinoise.Mechanism`.
    method : str
        "certified": the certified upper bounds on epsilon and delta meet the target. "estimate":
        the estimates do, which is not proven.
    cost : Cost or callable, optional
        For laws that are made for a cost, the law of least expected cost that meets the target: of
        ``psinoise.Schrodinger`` in mean cost and stretch, ``psinoise.OptimalUnimodal`` and
        ``psinoise.Cactus``.
    sampling : Poisson, RandomAllocation or WithoutReplacement, optional
        Another scheme, instead of the rate, for laws that have a scale; with random allocation
        ``count`` is the number of epochs. See :meth:`psinoise.Mechanism.epsilon`.
    on_lattice : bool
        Whether the target is for what is released: the result is the mechanism then, with its
        ``release``, and the certified bounds are those of the integers that are drawn.
    grid : float, optional
        With ``on_lattice`` alone: as in :meth:`psinoise.Mechanism.on_lattice`.

    Returns
    -------
    NoiseLaw
        An instance of ``law``; with ``on_lattice`` a :class:`psinoise.LatticeMechanism` of it.

    Raises
    ------
    CalibrationError
        If no scale meets the target, if every scale does, or if the scale would be outside
        ``2**-40`` to ``2**40`` times the sensitivity, or the law has none as small or as large; if
        the law is not made for such targets; if a grid is so coarse that no small step makes up
        for it.
    CertificationError
        If the accountant cannot certify the answer.
    TypeError, DomainError, OverflowError
        For arguments of the wrong kind, outside their ranges, or too large.

    See Also
    --------
    calibrate_stable : the index of stable noise as well, for one client or for many.

    Notes
    -----
    The scale is never too small: of what is returned both ``Mechanism.epsilon(delta, ...)`` and
    ``Mechanism.delta(epsilon, ...)`` have been seen to be at most the target. It exceeds the least
    scale by a share of at most 1e-4, mostly about 5e-5, by ``tests/test_calibrate.py``; where
    certified bounds are wider than usual the share is larger, and ``calibration`` reports it.

    Examples
    --------
    >>> import psinoise as pn
    >>> pn.calibrate(pn.Laplace, epsilon=0.5, delta=0.0, sensitivity=3.0)
    Laplace(scale=6.0)
    >>> pn.calibrate(pn.Staircase, epsilon=1.0, delta=0.0, count=2)
    Staircase(epsilon=0.5, sensitivity=1.0, power=1)

    What can be released:

    >>> mechanism = pn.calibrate(pn.Airy, epsilon=1.0, delta=1e-6, count=10, on_lattice=True)
    >>> float(mechanism.delta(1.0, count=10)) <= 1e-6
    True
    >>> noisy = mechanism.release([3.0, 5.5])
    """
    target = checked(
        law, epsilon, delta, sensitivity, count, sampling_rate, adjacency, contribution, sampling
    )
    _validate.choice("method", method, _METHODS)
    if not _validate.flag("on_lattice", on_lattice):
        if grid is not None:
            raise DomainError("grid must not be given without on_lattice=True")
        return cast(_AnyNoise, _found(law, target, method, cost).noise)
    if method != "certified":
        raise DomainError(f"method must be 'certified' with on_lattice=True, got {method!r}")
    if contribution is not None:
        raise DomainError(
            "contribution must not be given with on_lattice=True: for records that are sampled and "
            f"replaced the worst case on a lattice is not known, got {contribution!r}"
        )
    return least_on_lattice(target, grid, lambda asked: _found(law, asked, method, cost).noise)


def calibration(
    law: Callable[..., Any],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling_rate: float = 1.0,
    adjacency: str = "add-remove",
    contribution: float | None = None,
    method: str = "certified",
    cost: Callable[..., Any] | None = None,
    sampling: Sampling | None = None,
) -> Calibration:
    """Calibrate a law and keep the evidence; the parameters are those of :func:`calibrate`."""
    target = checked(
        law, epsilon, delta, sensitivity, count, sampling_rate, adjacency, contribution, sampling
    )
    _validate.choice("method", method, _METHODS)
    return _found(law, target, method, cost)


def _found(
    law: Callable[..., Any],
    target: Target,
    method: str,
    cost: Callable[..., Any] | None,
) -> Calibration:
    if cost is not None and mean_cost.is_schrodinger(law, cost):
        return mean_cost.cheapest(cost, target, method)
    made = designed_law(law)
    if cost is None:
        return search(target, method) if made is None else design(*made, target)
    if made is None or "cost" not in inspect.signature(made[0]).parameters or "cost" in made[1]:
        raise TypeError(
            f"cost belongs to a law that is made for one, such as psinoise.Schrodinger, got {law!r}"
        )
    return design(made[0], {**made[1], "cost": cost}, target)
