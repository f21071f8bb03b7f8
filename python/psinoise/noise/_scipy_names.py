"""Second names for what a law has: those of ``scipy.stats.norm(...)``, for who knows them.

The names of the library are those of SciPy's distribution infrastructure of 2024; examples and
documents use them alone. As ``std`` is a number here, so are ``mean`` and ``var``.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from psinoise._rng import RandomSource

__all__ = ["SciPyNames"]


class SciPyNames:
    """What is added to each law; `Any` stands for the law, whose methods these are."""

    def sf(self: Any, x: ArrayLike) -> Any:
        """``ccdf``."""
        return self.ccdf(x)

    def logsf(self: Any, x: ArrayLike) -> Any:
        """``logccdf``."""
        return self.logccdf(x)

    def ppf(self: Any, p: ArrayLike) -> Any:
        """``icdf``."""
        return self.icdf(p)

    def isf(self: Any, p: ArrayLike) -> Any:
        """``iccdf``."""
        return self.iccdf(p)

    def rvs(
        self: Any, size: int | tuple[int, ...] = (), random_state: RandomSource | None = None
    ) -> Any:
        """``sample``."""
        return self.sample(size, rng=random_state)

    @property
    def mean(self: Any) -> float:
        """0, since laws are symmetric; NaN where the expectation does not exist."""
        return 0.0 if math.isfinite(self.mean_abs) else math.nan

    @property
    def var(self: Any) -> float:
        """``std**2``; ``inf`` where it does not exist or overflows."""
        return float(self.std) * float(self.std)
