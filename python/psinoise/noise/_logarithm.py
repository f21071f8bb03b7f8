"""Logarithms as pairs, for laws whose log-density grows to hundreds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psinoise._backend import core
from psinoise.reference import double_double as dd
from psinoise.reference.elementary import bits_of, double_from

__all__ = ["logarithm_pair"]

Float = NDArray[np.float64]

# log 2 with 21 trailing zero bits, and the rest.
_LOG2_HI = float.fromhex("0x1.62e42fee00000p-1")
_LOG2_LO = float.fromhex("0x1.a39ef35793c76p-33")


def logarithm_pair(x: Float) -> dd.Pair:
    """Natural logarithm of normal numbers as ``hi + lo``; error below 2**-53 absolute."""
    bits = bits_of(x)
    offset = bits - np.uint64(0x3FE6A09E00000000)
    k = (offset.view(np.int64) >> np.int64(52)).astype(np.float64)
    m = double_from(bits - (offset & np.uint64(0xFFF0000000000000)))
    hi, lo = dd.two_sum(k * _LOG2_HI, core.logarithm(m))  # the product is exact
    return dd.quick_two_sum(hi, lo + k * _LOG2_LO)
