"""Schemes of sampling: which records a step of training sees.

Given as ``sampling=`` to `psinoise.Mechanism.epsilon` and its like, and to
`psinoise.Accountant.compose`.

==================== ==============================================================================
`Poisson`            each record is drawn by a coin of its own in each step
`RandomAllocation`   each record takes part in some of the steps of an epoch, drawn at random
`WithoutReplacement` each step draws a batch of fixed size; for "replace" alone
==================== ==============================================================================

`Sampling` is any of them:

>>> import psinoise as pn
>>> isinstance(pn.sampling.Poisson(rate=0.01), pn.sampling.Sampling)
True
"""

from __future__ import annotations

from dataclasses import dataclass

from psinoise import _validate
from psinoise.errors import DomainError

__all__ = ["Poisson", "RandomAllocation", "Sampling", "WithoutReplacement"]


@dataclass(frozen=True)
class Poisson:
    """Each record is drawn by a coin of its own; the same as ``sampling_rate=rate``.

    Parameters
    ----------
    rate
        probability of a record, in [0, 1]

    Examples
    --------
    >>> import psinoise as pn
    >>> mechanism = pn.Mechanism(pn.Gaussian(std=2.0))
    >>> sampled = mechanism.epsilon(1e-6, 10, sampling=pn.sampling.Poisson(0.1))
    >>> sampled == mechanism.epsilon(1e-6, 10, sampling_rate=0.1)
    True
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _validate.probability_above("rate", self.rate))


@dataclass(frozen=True)
class RandomAllocation:
    """Each record takes part in some steps of an epoch, a uniform choice of its own.

    One use (``count``) is an epoch: ``steps`` releases, whatever the number of participations.

    Parameters
    ----------
    steps
        releases of an epoch, from 1 to 2**30
    participations
        in how many of them a record takes part, from 1 to ``steps``. For one, bounds are as close
        as is asked for. More than one are bounded from above alone, as that many epochs of
        ``floor(steps / participations)`` steps: the lower end of a bracket is then that of what
        else is composed.

    Examples
    --------
    An epoch in 100 batches, each record in one of them:

    >>> import psinoise as pn
    >>> mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    >>> epoch = pn.sampling.RandomAllocation(steps=100)
    >>> found = mechanism.epsilon(1e-6, sampling=epoch, tolerance=1e-4)
    >>> round(found.upper, 3), found.width <= 1e-4
    (0.858, True)
    """

    steps: int
    participations: int = 1

    def __post_init__(self) -> None:
        steps = _validate.count("steps", self.steps)
        if not 1 <= steps <= 2**30:
            raise DomainError(f"steps must be in [1, 2**30], got {steps!r}")
        object.__setattr__(self, "steps", steps)
        taken = _validate.count("participations", self.participations)
        if not 1 <= taken <= steps:
            raise DomainError(f"participations must be in [1, steps], got {taken!r} of {steps!r}")
        object.__setattr__(self, "participations", taken)


@dataclass(frozen=True)
class WithoutReplacement:
    """Each use draws a batch of fixed size from a population of fixed size, all equally likely.

    Neighbors have as many records: adjacency must be "replace", and the sensitivity of the
    mechanism is that of a batch in which a record is replaced. The answers are bounds from above.

    Parameters
    ----------
    batch
        records in a batch, from 1 to ``population``
    population
        records in all

    Examples
    --------
    >>> import psinoise as pn
    >>> mechanism = pn.Mechanism(pn.Gaussian(std=4.0), sensitivity=2.0)
    >>> batches = pn.sampling.WithoutReplacement(batch=100, population=10_000)
    >>> found = mechanism.epsilon(1e-6, 100, adjacency="replace", sampling=batches)
    >>> found.lower, round(found.upper, 2)
    (0.0, 0.25)
    """

    batch: int
    population: int

    def __post_init__(self) -> None:
        population = _validate.positive_count("population", self.population)
        object.__setattr__(self, "population", population)
        batch = _validate.count("batch", self.batch)
        if not 1 <= batch <= population:
            raise DomainError(f"batch must be in [1, population], got {batch!r} of {population!r}")
        object.__setattr__(self, "batch", batch)


#: Any of them.
Sampling = Poisson | RandomAllocation | WithoutReplacement
