"""Comparisons of the two back ends, one for each name of the contract; see test_equivalence.py."""

from comparisons import algebra, cell_values, functions, loss_bins, losses, release, sampling
from comparisons.registry import COMPARISONS, compares

__all__ = [
    "COMPARISONS",
    "algebra",
    "cell_values",
    "compares",
    "functions",
    "loss_bins",
    "losses",
    "release",
    "sampling",
]
