"""A value with certified bounds on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bracket:
    """``lower <= true value <= upper``; ``float()`` is the safe side.

    Attributes
    ----------
    lower, upper : float
        Certified bounds.
    estimate : float
        A value between them, not certified itself: by contour integration where that settles,
        which is accurate to about ten digits, else where both bounds point to.
    composer : str
        What made the bounds: "direct", "window", "frequencies", or "exact" where nothing had to be
        composed.
    """

    lower: float
    estimate: float
    upper: float
    composer: str = field(default="exact", compare=False)

    def __float__(self) -> float:
        return self.upper

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower, self.estimate, self.upper))

    @property
    def width(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower
