"""Numbers with certified bounds on both sides: one, and an array of them.

Whoever needs a guarantee needs the upper bound. So a `Bracket` *is* that number, and tells of the
lower bound besides; `Brackets` is an array in the same way.
"""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from psinoise.errors import DomainError

__all__ = ["Bracket", "Brackets"]


class Bracket(float):
    """An upper bound that knows its lower one: ``lower <= true value <= upper``.

    It is a float, the upper bound: it compares, adds, rounds, formats and sorts as that, and what
    is computed with it is a plain float. It unpacks to ``lower, estimate, upper``.

    Raises ``DomainError`` where ``lower <= upper`` does not hold, or for NaN.

    Attributes
    ----------
    lower, upper : float
        Certified bounds.
    estimate : float
        Where both bounds point to, not certified itself: off by some hundredths of the width.
        `Accountant.estimate` has more digits.
    composer : str
        What made the bounds: "frequencies", "direct" or "choices", "exact" where nothing had to be
        composed; empty of an element of ``Brackets``.

    Examples
    --------
    >>> import psinoise as pn
    >>> epsilon = pn.Mechanism(pn.Laplace(scale=2.0)).epsilon(0.0)
    >>> epsilon
    Bracket(lower=0.5, estimate=0.5, upper=0.5, composer='exact')
    >>> epsilon < 1.0, f"{epsilon:.2f}", epsilon.width
    (True, '0.50', 0.0)
    """

    __slots__ = ("composer", "estimate", "lower")

    lower: float
    estimate: float
    composer: str

    def __new__(
        cls, lower: float, estimate: float, upper: float, composer: str = "exact"
    ) -> Bracket:
        for end, given in (("lower", lower), ("estimate", estimate), ("upper", upper)):
            if np.ma.is_masked(given) or (isinstance(given, np.ndarray) and given.ndim > 0):
                raise TypeError(f"{end} must be a real number, got {given!r}")
        if not lower <= upper or math.isnan(estimate):
            raise DomainError(
                f"a bracket must have lower <= upper and no NaN, got {lower!r}, {estimate!r}, "
                f"{upper!r}"
            )
        made = super().__new__(cls, upper)
        object.__setattr__(made, "lower", float(lower))
        object.__setattr__(made, "estimate", float(estimate))
        object.__setattr__(made, "composer", composer)
        return made

    @classmethod
    def holding(
        cls, lower: float, estimate: float, upper: float, composer: str = "exact"
    ) -> Bracket:
        """A bracket of bounds that come from different places.

        To the upper bound, certified whatever the others are, a lower one above it by its rounding
        gives way, and to both an estimate outside of them.
        """
        lower = min(lower, upper)
        return cls(lower, min(max(estimate, lower), upper), upper, composer)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Bracket cannot be changed, got {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Bracket, (self.lower, self.estimate, self.upper, self.composer)

    def __iter__(self) -> Any:
        return iter((self.lower, self.estimate, self.upper))

    def __repr__(self) -> str:
        return (
            f"Bracket(lower={self.lower!r}, estimate={self.estimate!r}, upper={self.upper!r}, "
            f"composer={self.composer!r})"
        )

    @property
    def upper(self) -> float:
        """The certified upper bound, as a plain float."""
        return float(self)

    @property
    def width(self) -> float:
        """``upper - lower``; 0 where both are infinite."""
        return self.upper - self.lower if self.lower < self.upper else 0.0


class Brackets(NDArrayOperatorsMixin):
    """An array of brackets: an array of upper bounds that knows the lower ones.

    NumPy sees the array of the upper bounds. An element is a `Bracket`, a slice is ``Brackets``.

    Attributes
    ----------
    lower, upper : numpy.ndarray
        Certified bounds.
    estimate : numpy.ndarray
        Values between them, not certified themselves.

    Examples
    --------
    >>> import numpy as np
    >>> import psinoise as pn
    >>> deltas = pn.Mechanism(pn.Gaussian(std=2.0)).delta([0.5, 1.0])
    >>> bool(np.all(deltas < 0.1)), deltas.shape
    (True, (2,))
    """

    __slots__ = ("estimate", "lower", "upper")

    def __init__(self, lower: object, estimate: object, upper: object) -> None:
        ends = np.broadcast_arrays(
            *(np.asarray(end, np.float64) for end in (lower, estimate, upper))
        )
        self.lower, self.estimate, self.upper = ends
        if not np.all(self.lower <= self.upper) or np.isnan(self.estimate).any():
            raise DomainError("brackets must have lower <= upper and no NaN")

    def __repr__(self) -> str:
        return f"Brackets(lower={self.lower!r}, upper={self.upper!r})"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.upper, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, Brackets) for value in kwargs.get("out", ())):
            raise TypeError("Brackets cannot be changed in place")
        plain = (value.upper if isinstance(value, Brackets) else value for value in inputs)
        return getattr(ufunc, method)(*plain, **kwargs)

    def __len__(self) -> int:
        return len(self.upper)

    @overload
    def __getitem__(self, index: int) -> Bracket: ...

    @overload
    def __getitem__(self, index: Any) -> Brackets | Bracket: ...

    def __getitem__(self, index: Any) -> Brackets | Bracket:
        ends = self.lower[index], self.estimate[index], self.upper[index]
        return Brackets(*ends) if np.ndim(ends[0]) else Bracket(*ends, composer="")

    @property
    def shape(self) -> tuple[int, ...]:
        """As of the array that was asked about."""
        return self.upper.shape

    @property
    def width(self) -> NDArray[np.float64]:
        """``upper - lower``; 0 where both are infinite."""
        width = np.zeros(self.shape)
        np.subtract(self.upper, self.lower, out=width, where=self.lower < self.upper)
        return width
