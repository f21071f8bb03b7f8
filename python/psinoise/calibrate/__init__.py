"""The least noise that meets a privacy target.

`target` is what is asked, `search` finds the scale, `designed` makes laws that have none. With
delta = 0 the target is a bound on the largest loss, which needs no certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from psinoise import _validate
from psinoise.calibrate.designed import design, designed_law
from psinoise.calibrate.search import Calibration, search
from psinoise.calibrate.target import checked
from psinoise.noise import NoiseLaw

__all__ = ["Calibration", "calibrate", "calibration"]

_AnyNoise = TypeVar("_AnyNoise", bound=NoiseLaw)


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
) -> _AnyNoise:
    """Return the law with the least scale that meets a privacy target.

    Parameters
    ----------
    law : class of noise laws, or callable
        Something that takes ``scale`` as a keyword and returns a :class:`psinoise.Noise`, such as
        ``psinoise.Airy``; delta must fall as the scale grows, as it does for every unimodal law.
        Or a law that is made for targets, such as ``psinoise.Staircase``, which is what a theorem
        says; of ``psinoise.Cactus`` the bound of the expected cost is found. Other arguments of
        such a law are given as ``functools.partial(psinoise.Cactus, cost=1.0)``.
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

    Returns
    -------
    NoiseLaw
        An instance of ``law``.

    Raises
    ------
    CalibrationError
        If no scale meets the target, if every scale does, or if the scale would be outside
        ``2**-40`` to ``2**40`` times the sensitivity; if the law is not made for such targets.
    CertificationError
        If the accountant cannot certify the answer.
    TypeError, DomainError, OverflowError
        For arguments of the wrong kind, outside their ranges, or too large.

    Notes
    -----
    The scale is never too small: of what is returned both ``Mechanism.epsilon(delta, ...)`` and
    ``Mechanism.delta(epsilon, ...)`` have been seen to be at most the target. It exceeds the least
    scale by a share of at most 1e-4, mostly about 5e-5, by ``tests/test_calibrate.py``; where
    certified bounds are wider than usual the share is larger, and `calibration` reports it.

    Examples
    --------
    >>> import psinoise as pn
    >>> pn.calibrate(pn.Laplace, epsilon=0.5, delta=0.0, sensitivity=3.0)
    Laplace(scale=6.0)
    >>> pn.calibrate(pn.Staircase, epsilon=1.0, delta=0.0, count=2)
    Staircase(epsilon=0.5, sensitivity=1.0, power=1)
    """
    found = calibration(
        law,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        count=count,
        sampling_rate=sampling_rate,
        adjacency=adjacency,
        contribution=contribution,
        method=method,
    )
    return cast(_AnyNoise, found.noise)


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
) -> Calibration:
    """Calibrate a law and keep the evidence; the parameters are those of :func:`calibrate`."""
    target = checked(
        law, epsilon, delta, sensitivity, count, sampling_rate, adjacency, contribution
    )
    _validate.choice("method", method, ("certified", "estimate"))
    made = designed_law(law)
    return search(target, method) if made is None else design(*made, target)
