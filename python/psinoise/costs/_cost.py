"""What every cost has, costs made of others, and functions as costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.costs._assumptions import EXAMINED, examine, values_of
from psinoise.costs._pairs import add
from psinoise.errors import DomainError
from psinoise.numerics import double_double as dd

Float = NDArray[np.float64]

_MOST_BREAKPOINTS = 256
# Values up to here name a function.
_NAMED = 2.0**10


class Cost(ABC):
    """An even cost function that does not decrease in ``|x|``.

    Examples
    --------
    >>> from psinoise import costs
    >>> square: costs.Cost = costs.Power(2)
    >>> square([-3.0, 0.0, 2.0]).tolist()
    [9.0, 0.0, 4.0]
    """

    __slots__ = ()

    @abstractmethod
    def pair(self, t: Float) -> dd.Pair:
        """Values at ``t >= 0`` as ``hi + lo``; the same bits on every machine where it can be."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Points ``x > 0`` where the cost is known to be continuous but not smooth."""
        return ()

    @property
    def fall(self) -> tuple[float, float]:
        """By how much the computed values fall at most as ``x`` grows, and near which ``x``: the
        rounding of a function. Laws need a mean cost that is far above it."""
        return 0.0, 0.0

    @property
    def of_functions(self) -> bool:
        """Whether it is a function, or made of one: its ``repr`` may name a place in memory."""
        return any(part.of_functions for part in self._arguments()[0] if isinstance(part, Cost))

    @abstractmethod
    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments that make this cost again."""

    def __call__(self, x: ArrayLike) -> Any:
        """The cost at ``x``, of the shape of ``x``."""
        try:
            points = np.abs(np.asarray(x, dtype=np.float64))
        except (TypeError, ValueError):
            raise TypeError(f"x must be real numbers of one shape, got {x!r}") from None
        hi, lo = self.pair(np.ascontiguousarray(points.reshape(-1)))
        return np.where(np.isinf(hi), hi, hi + lo).reshape(points.shape)[()]

    def __add__(self, other: Cost | Callable[..., Any]) -> Cost:
        if not callable(other):
            return NotImplemented
        return Sum(self, as_cost(other))

    def __radd__(self, other: Callable[..., Any]) -> Cost:
        return self.__add__(other)

    def __repr__(self) -> str:
        positional, named = self._arguments()
        listed = [repr(value) for value in positional]
        listed += [f"{name}={value!r}" for name, value in named.items()]
        return f"costs.{type(self).__name__}({', '.join(listed)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._arguments() == other._arguments()

    def __hash__(self) -> int:
        positional, named = self._arguments()
        return hash((type(self), positional, *named.items()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        positional, named = self._arguments()
        return _rebuild, (type(self), positional, named)


def _rebuild(kind: Callable[..., Cost], positional: Any, named: dict[str, Any]) -> Cost:
    return kind(*positional, **named)


class Weighted(Cost):
    """A cost of one positive number, times a weight."""

    __slots__ = ("weight",)

    weight: float

    def _state(self, number: float, weight: float) -> None:
        """Set the number, which is the slot of the class, and the weight."""
        (name,) = self.__slots__
        object.__setattr__(self, name, _validate.positive(name, number))
        object.__setattr__(self, "weight", _validate.positive("weight", weight))

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        (name,) = self.__slots__
        return (getattr(self, name),), {} if self.weight == 1.0 else {"weight": self.weight}


class Sum(Cost):
    """The sum of costs; made by ``+``.

    Examples
    --------
    >>> from psinoise import costs
    >>> both = costs.Power(1) + costs.Power(2)
    >>> isinstance(both, costs.Sum), float(both(3.0))
    (True, 12.0)
    """

    __slots__ = ("terms",)

    terms: tuple[Cost, ...]

    def __init__(self, *terms: Cost | Callable[..., Any]) -> None:
        object.__setattr__(self, "terms", _flat(Sum, terms))

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return _union(self.terms)

    @property
    def fall(self) -> tuple[float, float]:
        return max(term.fall for term in self.terms)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.terms, {}

    def pair(self, t: Float) -> dd.Pair:
        total = self.terms[0].pair(t)
        for term in self.terms[1:]:
            total = add(total, term.pair(t))
        return total


class Maximum(Cost):
    """The largest of costs; made by :func:`maximum`.

    Examples
    --------
    >>> from psinoise import costs
    >>> largest = costs.maximum(costs.Power(1), costs.Power(2))
    >>> isinstance(largest, costs.Maximum), largest([0.5, 3.0]).tolist()
    (True, [0.5, 9.0])
    """

    __slots__ = ("_kinks", "terms")

    terms: tuple[Cost, ...]
    _kinks: tuple[float, ...]

    def __init__(self, *terms: Cost | Callable[..., Any]) -> None:
        object.__setattr__(self, "terms", _flat(Maximum, terms))
        object.__setattr__(self, "_kinks", tuple(sorted({*_union(self.terms), *self._crossings()})))

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self._kinks

    @property
    def fall(self) -> tuple[float, float]:
        return max(term.fall for term in self.terms)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.terms, {}

    def pair(self, t: Float) -> dd.Pair:
        hi, lo = self.terms[0].pair(t)
        for term in self.terms[1:]:
            other = term.pair(t)
            larger = (other[0] > hi) | ((other[0] == hi) & (other[1] > lo))
            hi, lo = np.where(larger, other[0], hi), np.where(larger, other[1], lo)
        return hi, lo

    def _crossings(self) -> set[float]:
        """Where the largest term changes, to the last bit, by bisection on a grid."""
        grid = EXAMINED[1:]
        with np.errstate(over="ignore"):
            leaders = np.argmax([term.pair(grid)[0] for term in self.terms], axis=0)
        found = set()
        for i in np.flatnonzero(np.diff(leaders)):
            low, high = float(grid[i]), float(grid[i + 1])
            while True:
                middle = low + 0.5 * (high - low)
                if not (low < middle < high):
                    break
                here = np.argmax([term.pair(np.array([middle]))[0][0] for term in self.terms])
                low, high = (middle, high) if here == leaders[i] else (low, middle)
            values = [term.pair(np.array([low]))[0][0] for term in self.terms]
            found.add(low if sorted(values)[-1] == sorted(values)[-2] else high)
        return found


class Stretched(Cost):
    """``cost(x / factor)``.

    Examples
    --------
    >>> from psinoise import costs
    >>> float(costs.Stretched(costs.Log(), 10.0)(20.0)) == float(costs.Log()(2.0))
    True
    """

    __slots__ = ("cost", "factor")

    cost: Cost
    factor: float

    def __init__(self, cost: Cost | Callable[..., Any], factor: float) -> None:
        object.__setattr__(self, "cost", as_cost(cost))
        object.__setattr__(self, "factor", _validate.positive("factor", factor))

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return tuple(point * self.factor for point in self.cost.breakpoints)

    @property
    def fall(self) -> tuple[float, float]:
        depth, place = self.cost.fall
        return depth, place * self.factor

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.cost, self.factor), {}

    def pair(self, t: Float) -> dd.Pair:
        return self.cost.pair(t / self.factor)


class Custom(Cost):
    """Any function of arrays as a cost.

    It is examined once, on some two thousand points: even, not decreasing in ``|x|``, finite at 0,
    unbounded, never NaN, of the right shape. The rest of assumption 1 of Alghamdi et al.,
    "Schrodinger mechanisms" - continuity, and the regularity of the growth at infinity - cannot be
    seen from values and is the caller's promise. A function that is a straight line up to where it
    overflows, as ``log(cosh(x))`` is, is that line beyond.

    Parameters
    ----------
    function : callable
        Takes an array of any real numbers and returns their costs, an array of the same shape.
        What it raises goes through unchanged. Hashable; a module-level function pickles.
    breakpoints : iterable of float
        Points ``x > 0`` where the function is continuous but not smooth, at most 256. Those that
        are not given are found by bisection, which takes longer.

    Raises
    ------
    TypeError
        If ``function`` is not callable or not hashable, or its values have the wrong kind or shape.
    DomainError
        If a property fails; the message names the point.

    Examples
    --------
    >>> import numpy as np
    >>> from psinoise import costs
    >>> costs.Custom(np.abs)(-3.0)
    np.float64(3.0)
    """

    __slots__ = ("_breakpoints", "_line", "fall", "function")

    function: Callable[[Float], ArrayLike]
    fall: tuple[float, float]
    _breakpoints: tuple[float, ...]
    _line: tuple[float, float, float]

    def __init__(
        self, function: Callable[[Float], ArrayLike], breakpoints: Iterable[float] = ()
    ) -> None:
        if not callable(function):
            raise TypeError(f"cost must be callable, got {function!r}")
        try:
            hash(function)
        except TypeError:
            raise TypeError(f"cost must be hashable, got {function!r}") from None
        if isinstance(breakpoints, str) or not isinstance(breakpoints, Iterable):
            raise TypeError(f"breakpoints must be numbers, got {breakpoints!r}")
        points = {_validate.positive("breakpoints", point) for point in breakpoints}
        if len(points) > _MOST_BREAKPOINTS:
            raise DomainError(f"breakpoints must be at most {_MOST_BREAKPOINTS}, got {len(points)}")
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "_breakpoints", tuple(sorted(points)))
        seen = examine(self.function)
        object.__setattr__(self, "fall", (seen.fall, seen.place))
        # Beyond the last point, its value and a slope.
        line = (np.inf, 0.0, 0.0)
        if seen.last < np.inf:
            half, last = values_of(function, np.array([0.5, 1.0]) * seen.last).tolist()
            line = (seen.last, last, (last - half) / (0.5 * seen.last))
        object.__setattr__(self, "_line", line)

    @property
    def of_functions(self) -> bool:
        return True

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self._breakpoints

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        named = {"breakpoints": self._breakpoints} if self._breakpoints else {}
        return (self.function,), named

    def pair(self, t: Float) -> dd.Pair:
        end, last, slope = self._line
        beyond = t > end
        if not beyond.any():
            values = values_of(self.function, t)
            return values, np.zeros_like(values)
        values = values_of(self.function, np.where(beyond, 0.0, t))
        values = np.where(beyond, last + slope * (t - end), values)
        return values, np.zeros_like(values)


def maximum(*terms: Cost | Callable[..., Any]) -> Cost:
    """The largest of some costs at each point; its kinks are found.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.maximum(costs.Power(1), costs.Power(2)).breakpoints
    (1.0,)
    """
    return Maximum(*terms)


def as_cost(cost: Cost | Callable[..., Any]) -> Cost:
    """A cost as it is, any other callable as :class:`Custom`.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.as_cost(abs), costs.as_cost(costs.Power(2))
    (costs.Custom(<built-in function abs>), costs.Power(2.0))
    """
    if isinstance(cost, Cost):
        return cost
    return Custom(cost)


def name_by_values(cost: Callable[[Float], ArrayLike]) -> str:
    """A name that is the same in every process: seven digits of the cost at some 2,000 points."""
    with np.errstate(all="ignore"):
        values = values_of(cost, EXAMINED[EXAMINED <= _NAMED])
    return ",".join(f"{value:.6e}" for value in values.tolist())


def _flat(kind: type[Cost], terms: Iterable[Any]) -> tuple[Cost, ...]:
    flat: list[Cost] = []
    for term in terms:
        cost = as_cost(term)
        flat += getattr(cost, "terms", ()) if type(cost) is kind else (cost,)
    if not flat:
        raise TypeError(f"{kind.__name__} takes at least one cost")
    return tuple(flat)


def _union(terms: Iterable[Cost]) -> tuple[float, ...]:
    return tuple(sorted({point for term in terms for point in term.breakpoints}))
