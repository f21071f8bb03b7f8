"""Fourier transforms of measures on a lattice, and what float64 arithmetic costs there."""

from __future__ import annotations

import functools
import math

import numpy as np

from psinoise._backend import core
from psinoise.accounting.compose.bins import Index
from psinoise.accounting.compose.measure import UNIT
from psinoise.accounting.loss.pairs import Float


@functools.lru_cache(maxsize=2)
def transform_of(size: int) -> core.Transform:
    """The transform of a window; it holds the twiddle factors."""
    return core.Transform(size)


def transform_error(size: int) -> float:
    """Relative 2-norm error of one transform."""
    return 6.0 * UNIT * math.log2(size)


def wrap(mass: Float, index: Index, size: int) -> Float:
    """Masses of nodes on a circle of ``size`` nodes."""
    return np.bincount(index % size, weights=mass, minlength=size).astype(np.float64)
