"""Quantiles of laws on the whole numbers: what they are, and how many evaluations they take."""

from __future__ import annotations

import numpy as np
import pytest

import psinoise as pn
from psinoise.noise._whole import least_whole

LAWS = ((1.9, 4.0), (1.5, 1000.0), (1.0, 2.0**20), (0.5, 0.1), (0.1, 1.0), (2.0, 50.0), (2.0, 0.05))


@pytest.mark.parametrize(("alpha", "scale"), LAWS)
def test_the_least_number_that_is_enough(alpha, scale):
    law = pn.DiscreteStable(alpha=alpha, scale=scale)
    generator = np.random.default_rng(5)
    p = np.concatenate([generator.random(150), 10.0 ** -generator.uniform(1, 60, 50), [0.5]])
    for quantile, function, sign in ((law.icdf, law.cdf, 1.0), (law.iccdf, law.ccdf, -1.0)):
        k = quantile(p)
        small = np.abs(k) <= 2.0**40
        np.testing.assert_array_equal(k, np.floor(k))
        assert (sign * (function(k[small]) - p[small]) >= 0.0).all()
        assert (sign * (function(k[small] - 1.0) - p[small]) < 0.0).all()
        large = ~small & np.isfinite(k)
        error = function(k[large]) / p[large] - 1.0
        assert (np.abs(error) < 1e-12).all()
        # At a probability that a number has the number itself, unless the one before has it too.
        listed = np.arange(-60.0, 60.0)
        values = function(listed)
        first = np.concatenate([[False], np.diff(values) != 0.0]) & (values > 0.0) & (values < 1.0)
        np.testing.assert_array_equal(quantile(values[first]), listed[first])


def test_ends():
    law = pn.DiscreteStable(alpha=0.1, scale=2.0**40)
    p = np.array([0.0, 1.0, np.nan, -0.1, 1.1, 1e-300])
    nan, inf = np.nan, np.inf
    np.testing.assert_array_equal(law.icdf(p), [-inf, inf, nan, nan, nan, -inf])
    np.testing.assert_array_equal(law.iccdf(p), [inf, -inf, nan, nan, nan, inf])
    assert law.icdf(0.5) == 0.0


@pytest.mark.parametrize("power", [0.2, 1.0, 3.0, 40.0])
def test_few_evaluations(power):
    calls = 0

    def tail(k):
        """The upper tail of a law whose tails are powers, at their ends far beyond 2**46."""
        nonlocal calls
        calls += 1
        far = 0.5 * (1.0 + np.abs(k + 0.5) / 100.0) ** -power
        return np.where(k >= 0.0, far, 1.0 - far)

    p = np.concatenate([10.0 ** -np.linspace(0.1, 40.0, 500), np.linspace(0.01, 0.99, 500)])
    found = least_whole(tail, p, False, 100.0, 2.0**1000)
    # Halving alone takes as many as the number has bits, up to 2**46; false position alone up to
    # five hundred, as one end stays.
    assert calls <= 40
    small = np.abs(found) < 2.0**40
    assert (tail(found[small]) <= p[small]).all()
    assert (tail(found[small] - 1.0) > p[small]).all()
