"""The convex program behind the cactus mechanism, solved with a certificate."""

from psinoise.optimize.cells import Grid
from psinoise.optimize.certificate import Certificate, certify
from psinoise.optimize.off_grid import lower_bound_off_grid
from psinoise.optimize.program import Program
from psinoise.optimize.solve import Solution, solve

__all__ = ["Certificate", "Grid", "Program", "Solution", "certify", "lower_bound_off_grid", "solve"]
