"""The convex program behind the cactus mechanism, solved with a certificate."""

from typing import TYPE_CHECKING

from psinoise._lazy import lazy_names

__all__ = ["Certificate", "Grid", "Program", "Solution", "certify", "lower_bound_off_grid", "solve"]

if TYPE_CHECKING:
    from psinoise.optimize.cells import Grid
    from psinoise.optimize.certificate import Certificate, certify
    from psinoise.optimize.off_grid import lower_bound_off_grid
    from psinoise.optimize.program import Program
    from psinoise.optimize.solver import Solution, solve
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "psinoise.optimize.cells": ("Grid",),
            "psinoise.optimize.certificate": ("Certificate", "certify"),
            "psinoise.optimize.off_grid": ("lower_bound_off_grid",),
            "psinoise.optimize.program": ("Program",),
            "psinoise.optimize.solver": ("Solution", "solve"),
        },
    )
