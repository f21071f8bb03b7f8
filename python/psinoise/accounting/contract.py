"""The arguments that every accounting call shares, checked in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.accounting.loss.pairs import DIRECTIONS, Direction, Float
from psinoise.errors import DomainError
from psinoise.sampling import Poisson, RandomAllocation, Sampling, WithoutReplacement

_ADJACENCIES = ("add-remove", "replace")
# Its square is a float64.
_WIDEST = 2.0**300
# Products of a rate with densities keep their digits.
_LEAST_RATE = 1e-290


def check_adjacency(adjacency: str) -> str:
    """ "add-remove" or "replace": what neighbors are."""
    return _validate.choice("adjacency", adjacency, _ADJACENCIES)


def check_adjacency_or_direction(adjacency: str) -> str:
    """The same, or one direction of "add-remove": "remove" or "add"."""
    return _validate.choice("adjacency", adjacency, (*_ADJACENCIES, *DIRECTIONS))


def directions_of(adjacency: str) -> tuple[Direction, ...] | None:
    """The direction that an adjacency names; None for all that matter."""
    return tuple(direction for direction in DIRECTIONS if direction == adjacency) or None


def check_sampling(
    sampling_rate: float, sampling: Sampling | None
) -> tuple[float, RandomAllocation | WithoutReplacement | None]:
    """The rate of Poisson sampling, or another scheme.

    Raises `DomainError` for a rate outside [0, 1] and for a rate and a scheme, and `TypeError` if
    the scheme is none.
    """
    rate = _validate.probability_above("sampling_rate", sampling_rate)
    if not isinstance(sampling, Sampling | None):
        raise TypeError(f"sampling must be a scheme of psinoise.sampling, got {sampling!r}")
    if sampling is not None and rate != 1.0:
        raise DomainError(
            f"sampling_rate must not be given with a scheme of sampling, got {rate!r} and "
            f"{sampling!r}"
        )
    if isinstance(sampling, Poisson):
        rate, sampling = sampling.rate, None
    if 0.0 < rate < _LEAST_RATE:
        raise DomainError(
            f"sampling_rate must be 0 or at least {_LEAST_RATE}: below, float64 has no digits for "
            f"masses of records, got {rate!r}"
        )
    return rate, sampling


def check_tolerance(tolerance: float | None) -> float | None:
    """A positive width in epsilon, or None; one beyond all epsilons is as good as the next."""
    return None if tolerance is None else min(_validate.positive("tolerance", tolerance), _WIDEST)


def check_delta(delta: object) -> float:
    """A probability; NaN fails."""
    return _validate.probability_below("delta", _number(delta))


def check_epsilon(epsilon: object) -> float:
    """Any real number or infinity; NaN fails."""
    return _validate.real_below("epsilon", _number(epsilon))


def _number(value: object) -> object:
    """What an array without dimensions holds."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def check_epsilons(epsilons: ArrayLike) -> Float:
    """Real numbers or infinities, of any shape; NaN fails."""
    values = _real_array("epsilons", epsilons)
    if np.isnan(values).any():
        raise DomainError("epsilons must not be NaN")
    return values


def check_orders(orders: ArrayLike) -> Float:
    """Orders of Renyi divergences: at least 1, infinity included, of any shape; NaN fails."""
    values = _real_array("orders", orders)
    return _where("orders", values, values >= 1.0, "at least 1")


def check_probabilities(name: str, array: ArrayLike) -> Float:
    """Probabilities, of any shape; NaN fails."""
    values = _real_array(name, array)
    return _where(name, values, (values >= 0.0) & (values <= 1.0), "in [0, 1]")


def is_array(name: str, values: ArrayLike) -> bool:
    """Whether there is more than a number."""
    try:
        return np.ndim(values) > 0
    except ValueError:  # of rows of different lengths
        raise _ragged(name, values) from None


def _where(name: str, values: Float, good: NDArray[np.bool_], requirement: str) -> Float:
    """The values, if all of them are good."""
    if not good.all():
        raise DomainError(f"{name} must be {requirement}, got {float(values[~good][0])!r}")
    return values


def _ragged(name: str, values: ArrayLike) -> TypeError:
    return TypeError(f"{name} must be real numbers of one shape, got {values!r}")


def _real_array(name: str, values: ArrayLike) -> Float:
    if np.ma.is_masked(values):
        raise TypeError(f"{name} must not be masked")
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError:
        raise _ragged(name, values) from None
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, got {values!r}")
    return array.astype(np.float64)
