"""A value with certified bounds on both sides."""

from __future__ import annotations

from typing import NamedTuple


class Bracket(NamedTuple):
    """``lower <= true value <= upper``; ``float()`` is the safe side.

    Attributes
    ----------
    lower, upper : float
        Certified bounds.
    estimate : float
        The value by contour integration, accurate to about ten digits but not certified itself.
    """

    lower: float
    estimate: float
    upper: float

    def __float__(self) -> float:
        return self.upper

    @property
    def width(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower
