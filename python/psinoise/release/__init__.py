"""Releases on a lattice: noise as integers, exact draws from them, values rounded to them."""

from __future__ import annotations

from psinoise.release.digit_noise import WIDEST, DigitNoise
from psinoise.release.exact_sum import exact_sum
from psinoise.release.exact_sums import exact_sums
from psinoise.release.grid import cells_of, default_grid, grid_from
from psinoise.release.lattice_noise import LatticeNoise
from psinoise.release.residues import residues, sum_of_residues
from psinoise.release.tables import table_of
from psinoise.release.values import Release, TableRelease, prepared
from psinoise.release.weights import WIDER, coarser, fits

__all__ = [
    "WIDER",
    "WIDEST",
    "DigitNoise",
    "LatticeNoise",
    "Release",
    "TableRelease",
    "cells_of",
    "coarser",
    "default_grid",
    "exact_sum",
    "exact_sums",
    "fits",
    "grid_from",
    "prepared",
    "residues",
    "sum_of_residues",
    "table_of",
]
