"""Values in order, each once."""

from __future__ import annotations

import numpy as np
import pytest

from psinoise.numerics.distinct import distinct


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_distinct_values(dtype):
    """As numpy.unique. Mutants: not in order; equal ones stay, or all but the last go."""
    generator = np.random.default_rng(12)
    for size in (0, 1, 2, 500):
        values = generator.integers(-50, 50, size).astype(dtype)
        np.testing.assert_array_equal(distinct(values), np.unique(values), strict=True)
    edges = np.arange(12).reshape(3, 4)[::-1].astype(dtype)
    assert distinct(edges).tolist() == list(range(12))
