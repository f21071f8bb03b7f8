"""Releases on a lattice: noise as integers, exact draws from them, values rounded to them."""

from __future__ import annotations

from psinoise.release.entropy import fresh_key
from psinoise.release.grid import cells_of, default_exponent, exponent_of
from psinoise.release.lattice_noise import LatticeNoise
from psinoise.release.values import Release, prepared
from psinoise.release.weights import fits

__all__ = [
    "LatticeNoise",
    "Release",
    "cells_of",
    "default_exponent",
    "exponent_of",
    "fits",
    "fresh_key",
    "prepared",
]
