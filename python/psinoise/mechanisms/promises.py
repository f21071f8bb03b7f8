"""Steps of which only a promise is known: what a paper or a library says about a mechanism.

A promise is composed with everything else by the pair that dominates all mechanisms which keep it.
Brackets speak of the worst of these mechanisms. A promise is made for one neighboring relation: it
is taken for that of the accountant, whichever that is.

==================== =========================================== ==================================
promise              dominated by                                lower ends of brackets
==================== =========================================== ==================================
`PureDP`             randomized response                         the same: it is attained
... for groups       discrete Laplace noise                      the same: it is attained
`ApproximateDP`      randomized response with infinite losses    the same: it is attained
... for groups       the same                                    discrete Laplace noise, attained
`BoundedRange`       two answers, chosen anew for each use       the same: it is attained
`GDP`                Gaussian noise                              the same
`ZCDP`               the best conversion of all Renyi            Gaussian noise, attained
                     divergences, added up before
==================== =========================================== ==================================

Proofs are in ``loss.responses``, ``group_responses`` and ``concentrated``. For groups of ``k``
records ``mu`` is ``k`` times as large (Dong, Roth and Su 2022, theorem 2.14), as pure epsilons and
ranges are, and ``rho`` ``k^2`` times (Bun and Steinke 2016, proposition 1.9). A range that is ``k``
times as large is attained: two answers with the odds of one multiplied by ``e^eta``, ``k`` times.

>>> import psinoise as pn
>>> plan = pn.Accountant().compose(pn.promises.PureDP(0.5)).compose(pn.promises.ZCDP(0.01))
>>> bool(0.5 < plan.epsilon(1e-6) < 2.0)
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar, Self

from psinoise import _validate
from psinoise.accounting.concentrated import Concentrated
from psinoise.accounting.group_responses import approximate_group, group_response
from psinoise.accounting.loss.pairs import Pair
from psinoise.accounting.loss.responses import RandomizedResponse, RangePair
from psinoise.accounting.loss.steps import Step
from psinoise.errors import DomainError
from psinoise.mechanisms.accounted import Accounted
from psinoise.mechanisms.groups import group_size
from psinoise.noise import Gaussian
from psinoise.numerics.rational import rounded

__all__ = ["GDP", "ZCDP", "ApproximateDP", "BoundedRange", "PureDP"]

# Squares of losses, and sums of them, are numbers.
_MOST = 2.0**300


class Promise(Accounted):
    """What is known of a mechanism. Equal promises are equal, and immutable.

    A number that is no float64, such as a third as a fraction, is rounded up.
    """

    _names: ClassVar[tuple[str, ...]]
    # The power of their size with which the number grows for groups of records.
    _degree: ClassVar[int] = 1

    def __init__(self, *values: float) -> None:
        # To groups of so many records, and to one of them.
        self._values = self._one = values
        self._size = 1

    @property
    def parameters(self) -> dict[str, float]:
        """What is promised, by name."""
        return dict(zip(self._names, self._values, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Promise) and other._known == self._known

    def __hash__(self) -> int:
        return hash(self._known)

    @property
    def _known(self) -> tuple[object, ...]:
        return type(self), self._one, self._size

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        to = "" if self._size == 1 else f" for groups of {self._size}"
        return f"{type(self).__name__}({said}){to}"

    def for_group(self, size: int) -> Self:
        """What is promised to groups of so many records: neighbors differ in all of them.

        It is about releases of all records: sampling draws some of a group, and is refused.

        Raises
        ------
        DomainError
            if nothing is left of the promise
        """
        size = self._size * group_size(size)
        found = type(self)(*self._for_group(size))
        found._one, found._size = self._one, size
        return found

    def _for_group(self, size: int) -> tuple[float, ...]:
        """The numbers of the promise to a group."""
        return tuple(_times(size**self._degree, value) for value in self._one)

    @abstractmethod
    def _step(self, sampling_rate: float) -> Step:
        """What dominates one use."""

    def dominating(self, sampling_rate: float, adjacency: str) -> tuple[Step, int]:
        """What dominates one use, and how many uses of it.

        Raises
        ------
        DomainError
            for "replace" with sampling: a record that is drawn takes the place of another one, of
            which a promise says nothing; for groups with sampling, which draws any number of
            their records; and where sampling is not covered at all
        """
        if self._size > 1 and 0.0 < sampling_rate < 1.0:
            raise DomainError(
                "sampling_rate must be 1 for a promise to groups of records (the worst case is not "
                f"known), got {sampling_rate!r}"
            )
        if adjacency == "replace" and 0.0 < sampling_rate < 1.0:
            raise DomainError(
                "sampling_rate must be 1 for a promise under adjacency 'replace' (the worst case "
                f"is not known), got {sampling_rate!r}"
            )
        return self._step(sampling_rate), 1


class ApproximateDP(Promise):
    """(epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon
        at least 0 and finite
    delta
        in [0, 1)

    Examples
    --------
    >>> import psinoise as pn
    >>> promise = pn.promises.ApproximateDP(epsilon=0.1, delta=1e-7)
    >>> round(float(promise.epsilon(1e-5, count=50)), 6)
    2.957584
    """

    _names = ("epsilon", "delta")

    def __init__(self, epsilon: float, delta: float) -> None:
        delta = _validate.probability_above("delta", delta)
        if delta == 1.0:
            raise DomainError("delta must be below 1, where nothing is promised, got 1.0")
        super().__init__(_not_negative("epsilon", epsilon), delta)

    def _for_group(self, size: int) -> tuple[float, ...]:
        """``(k epsilon, delta (1 + e^epsilon + ... + e^{(k - 1) epsilon}))`` for ``k`` records."""
        epsilon, delta = self._one
        if epsilon == 0.0 or delta == 0.0:
            delta = _times(size, delta)
        else:
            log_sum = (size - 1) * epsilon + math.log(
                math.expm1(-size * epsilon) / math.expm1(-epsilon)
            )
            log_delta = math.log(delta) + log_sum
            # Of the roundings of both logarithms.
            margin = 2.0**-50 * (2.0 - math.log(delta) + log_sum)
            delta = math.exp(min(log_delta, 1.0)) * (1.0 + margin)
        if not delta < 1.0:
            raise DomainError(f"size must leave a delta below 1, got {size!r} for {self!r}")
        return _times(size, epsilon), delta

    def _step(self, sampling_rate: float) -> Step:
        epsilon, delta = self._values
        if self._size > 1 and delta == 0.0:
            return group_response(epsilon, self._size)
        if self._size > 1 and epsilon > 0.0:
            return approximate_group(epsilon, delta, self._size, self._one[1])
        return RandomizedResponse(epsilon, epsilon, delta, sampling_rate)


class PureDP(Promise):
    """Pure epsilon-differential privacy.

    For groups of ``k`` records `for_group` gives what follows from the promise to each record,
    which is less than pure privacy with ``k`` times the epsilon.

    Parameters
    ----------
    epsilon
        at least 0 and finite

    Examples
    --------
    >>> import psinoise as pn
    >>> round(float(pn.promises.PureDP(0.1).epsilon(1e-5, count=50)), 6)
    2.844667
    """

    _names = ("epsilon",)

    def __init__(self, epsilon: float) -> None:
        super().__init__(_not_negative("epsilon", epsilon))

    def _step(self, sampling_rate: float) -> Step:
        (epsilon,) = self._values
        if self._size > 1:
            return group_response(epsilon, self._size)
        return RandomizedResponse(epsilon, epsilon, 0.0, sampling_rate)


class BoundedRange(Promise):
    """Losses that lie in an interval of length ``eta``, which may depend on the neighbors.

    The exponential mechanism that is epsilon-differentially private by its usual analysis has range
    ``eta = epsilon``, as has report-noisy-max with Gumbel noise, which is the same mechanism; that
    of other epsilon-private mechanisms is up to twice as much. Compositions are adaptive: what
    brackets hold is attained by neighbors who choose two answers for each use by those before.

    Parameters
    ----------
    eta
        positive and finite

    Examples
    --------
    >>> import psinoise as pn
    >>> selection = pn.promises.BoundedRange(0.1)
    >>> round(float(selection.epsilon(1e-5, count=50)), 6)
    1.356192
    """

    _names = ("eta",)

    def __init__(self, eta: float) -> None:
        super().__init__(_positive("eta", eta))

    def _step(self, sampling_rate: float) -> Step:
        return RangePair(self._values[0], sampling_rate)


class GDP(Promise):
    """Gaussian differential privacy: no worse than Gaussian noise of unit scale moved by ``mu``.

    Parameters
    ----------
    mu
        positive and finite

    Examples
    --------
    >>> import psinoise as pn
    >>> round(float(pn.promises.GDP(0.5).epsilon(1e-6, count=3)), 4)
    4.1518
    >>> round(float(pn.Mechanism(pn.Gaussian(std=2.0)).epsilon(1e-6, count=3)), 4)
    4.1518
    """

    _names = ("mu",)

    def __init__(self, mu: float) -> None:
        super().__init__(_validate.positive_above("mu", mu))

    def _step(self, sampling_rate: float) -> Step:
        return Pair(Gaussian(std=1.0), self._values[0], sampling_rate)


class ZCDP(Promise):
    """Zero-concentrated differential privacy: Renyi divergences of order ``a`` up to ``rho a``.

    The promises of this kind that an accountant holds are added before anything else.

    Parameters
    ----------
    rho
        positive and finite

    Examples
    --------
    >>> import psinoise as pn
    >>> round(float(pn.promises.ZCDP(0.01).epsilon(1e-5, count=20)), 6)
    2.813632
    """

    _names, _degree = ("rho",), 2

    def __init__(self, rho: float) -> None:
        super().__init__(_validate.positive_above("rho", rho))

    def _step(self, sampling_rate: float) -> Step:
        if 0.0 < sampling_rate < 1.0:
            raise DomainError(
                "sampling_rate must be 1 for a promise of zCDP, which sampling does not keep, got "
                f"{sampling_rate!r}"
            )
        return Concentrated(self._values[0])


def _positive(name: str, value: float) -> float:
    number = _validate.positive_above(name, value)
    if number > _MOST:
        raise DomainError(f"{name} must be at most 2**300, got {value!r}")
    return number


def _not_negative(name: str, value: float) -> float:
    return 0.0 if _validate.real(name, value) == value == 0.0 else _positive(name, value)


def _times(size: int, value: float) -> float:
    """A multiple, rounded up."""
    return rounded(size * Fraction(value), up=True)
