"""What a law shows to who explores it: names for its users, and hints for names that are near."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

__all__ = ["Explored"]

# What a law states for tables, lattices, the accountant and the command line: legal to read, and
# documented, but not what a user looks for.
_FOR_MACHINERY = frozenset(
    {
        *("axis_is_worst", "breaks", "costly", "decay", "divided", "far_tail", "fit_tolerance"),
        *("for_target", "for_whole_numbers", "kinks", "largest_piece_loss", "lattice_masses"),
        *("layout", "log_density", "log_mills", "log_survival"),
        *("made_by_arguments", "ordered_by_scale", "own_grid", "partition"),
        *("period", "piece_losses", "pieces", "repeats_from", "representatives"),
        *("rotation_invariant", "score_limit", "shape_parameters", "spread", "worst_shifts"),
    }
)
_OURS = {
    "variance": "var",
    "standard_deviation": "std",
    "median": "0.0, since laws are symmetric",
    "expect": "expected_cost",
}


class Explored:
    """An object of which ``dir`` lists what its users look for."""

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
