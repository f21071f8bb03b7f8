"""The least Gaussian noise of a training run: differentially private stochastic gradient descent.

Each step adds noise to the sum of gradients that are clipped one record at a time to an l2 norm
``C``. Whatever the number of parameters, a step is one use of Gaussian noise on a number of
sensitivity ``C`` (``accounting.vectors``): what counts is the ratio of the standard deviation and
``C``, the noise multiplier of Abadi et al., "Deep learning with differential privacy" (CCS 2016).
"""

from __future__ import annotations

from dataclasses import replace

from psinoise import _validate
from psinoise.accounting import contract
from psinoise.calibration.search import search
from psinoise.calibration.target import checked
from psinoise.errors import DomainError
from psinoise.noise import Gaussian
from psinoise.sampling import RandomAllocation, Sampling

__all__ = ["noise_multiplier"]

# Of brackets, as a share of epsilon: a fifth of the time of the usual 1e-4 where losses are rare
# and large, and noise that is larger by less than anybody's batch size is known.
_WIDTH = 5e-4


def noise_multiplier(
    epsilon: float,
    delta: float,
    sampling_rate: float = 1.0,
    steps: int = 1,
    *,
    sampling: Sampling | None = None,
    adjacency: str = "add-remove",
) -> float:
    """The least noise multiplier with which a training run is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        In [0, 1e5].
    delta : float
        In (0, 1).
    sampling_rate : float
        Rate of Poisson sampling, in (0, 1]: every record is drawn for a batch by a coin of its own.
    steps : int
        Batches, at least 1.
    sampling : Poisson, RandomAllocation or WithoutReplacement, optional
        Another scheme, instead of the rate. With random allocation ``steps`` is a multiple of the
        steps of an epoch; batches of fixed size need ``adjacency="replace"``.
    adjacency : str
        "add-remove", or "replace": a clipped gradient takes the place of another one, and the sum
        moves by up to twice the clipping bound.

    Returns
    -------
    float
        The standard deviation of the noise on the sum of the gradients of a batch, divided by the
        l2 norm that they are clipped to. Certified, and never too small: it exceeds the least one
        by a share of some 5e-4 at most, where bounds are as narrow as usual.

    Raises
    ------
    CalibrationError, CertificationError
        As by :func:`psinoise.calibrate`.
    TypeError, DomainError, OverflowError
        For other arguments, and where the worst case is not proven.

    Examples
    --------
    >>> import psinoise as pn
    >>> multiplier = pn.noise_multiplier(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=1000)
    >>> round(multiplier, 3)
    0.959
    >>> step = pn.Mechanism(pn.Gaussian(std=multiplier))
    >>> step.epsilon(1e-5, count=1000, sampling_rate=0.01) <= 2.0
    True
    """
    count = _validate.count("steps", steps)
    if count < 1:
        raise DomainError("steps must be at least 1 (no step needs no noise), got 0")
    if isinstance(sampling, RandomAllocation):
        count, rest = divmod(count, sampling.steps)
        if rest or not count:
            raise DomainError(
                f"steps must be a multiple of the steps of an epoch, {sampling.steps!r}, got "
                f"{steps!r}"
            )
    adjacency = contract.check_adjacency(adjacency)
    # Under "replace" the sum moves by twice what one gradient does.
    moved = 2.0 if adjacency == "replace" else 1.0
    target = checked(
        Gaussian, epsilon, delta, moved, count, sampling_rate, adjacency, 1.0, sampling
    )
    return search(replace(target, width=_WIDTH), "certified", evidence=False).noise.std
