"""The register of comparisons, and what they share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psinoise import _core as native
from psinoise import reference

KEY = bytes(range(1, 33))

#: By the name of the contract: a function that takes the tables of a law and asserts.
COMPARISONS: dict[str, Callable] = {}


def compares(name):
    def register(function):
        COMPARISONS[name] = function
        return function

    return register


def same_bits(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)
    finite = np.isfinite(ours) if ours.dtype.kind == "f" else np.ones(ours.shape, dtype=bool)
    assert ours[finite].tobytes() == theirs[finite].tobytes()  # the sign of zero as well


def law_tables(tables):
    return native.LawTable(*tables), reference.LawTable(*tables)


def points():
    generator = np.random.default_rng(71)
    return np.concatenate(
        [
            [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 2.0**40, 1e13, -1e300, 2.0**-4],
            generator.normal(size=3000),
            np.copysign(2.0 ** generator.uniform(-1074, 1023, 3000), generator.normal(size=3000)),
            generator.uniform(-800, 800, 3000),
        ]
    )
