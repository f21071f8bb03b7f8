"""The names of what a law has: those that its users see, second ones, and hints for near ones.

The names of the library are those of SciPy's distribution infrastructure of 2024; examples and
documents use them alone. The second ones are those of ``scipy.stats.norm(...)``, for who knows
them. As ``std`` is a number here, so are ``mean`` and ``var``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from psinoise._rng import RandomSource

__all__ = ["Named"]

# What a law states for tables, lattices, the accountant and the command line: legal to read, and
# documented, but not what a user looks for.
_FOR_MACHINERY = frozenset(
    {
        *("axis_is_worst", "breaks", "costly", "decay", "divided", "far_tail", "fit_tolerance"),
        *("for_target", "for_whole_numbers", "kinks", "largest_piece_loss", "lattice_masses"),
        *("layout", "log_density", "log_mills", "log_survival"),
        *("made_by_arguments", "normal_variance", "ordered_by_scale", "own_grid", "partition"),
        *("period", "piece_losses", "pieces", "repeats_from", "representatives"),
        *("rotation_invariant", "scale_limits", "score_limit", "shape_parameters", "spread"),
        "worst_shifts",
    }
)
_OURS = {
    "variance": "var",
    "standard_deviation": "std",
    "median": "0.0, since laws are symmetric",
    "expect": "expected_cost",
}


class Named:
    """What is added to each law; `Any` stands for the law. ``dir`` lists what users look for."""

    def __dir__(self) -> Iterable[str]:
        names = object.__dir__(self)
        return [
            name
            for name in names
            if name not in _FOR_MACHINERY and (name.startswith("__") or not name.startswith("_"))
        ]

    # Type checkers would take it as a promise of every name.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            hint = f": here it is {_OURS[name]}" if name in _OURS else ""
            raise AttributeError(
                f"{type(self).__name__} noise has no {name!r}{hint}", name=name, obj=self
            )

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
