"""Tests between neighbors, and beliefs: equations (14) and (15) and Bayes' rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

import psinoise as pn
from psinoise.accounting import hypotheses


def test_errors_of_the_best_tests_give_epsilon_back() -> None:
    """Of randomized response exactly, of Laplace noise at most, with a delta too."""
    for epsilon in (0.1, 1.0, 5.0):
        wrong = 1.0 / (1.0 + math.exp(epsilon))
        assert hypotheses.epsilon_of_errors(wrong, wrong) == pytest.approx(epsilon, rel=1e-12)
        assert hypotheses.epsilon_for_errors(2.0 * wrong) == pytest.approx(epsilon, rel=1e-12)
        mechanism = pn.Mechanism(pn.Laplace(scale=1.0 / epsilon))
        for cut in (-0.5, 0.0, 0.5, 1.0, 2.0):
            p, q = float(mechanism.noise.ccdf(cut)), float(mechanism.noise.cdf(cut - 1.0))
            assert hypotheses.epsilon_of_errors(p, q) <= epsilon * (1.0 + 1e-12)
            assert p + q >= 2.0 * wrong * (1.0 - 1e-12)
    gaussian = pn.Mechanism(pn.Gaussian(std=1.0))
    p, q = float(gaussian.noise.ccdf(3.0)), float(gaussian.noise.cdf(2.0))
    least = hypotheses.epsilon_of_errors(p, q, 1e-3)
    assert 0.0 < least <= gaussian.epsilon(1e-3)
    assert hypotheses.epsilon_of_errors(0.5, 0.5) == 0.0
    assert hypotheses.epsilon_of_errors(0.0, 0.5) == math.inf
    # An error that is subnormal is no certainty.
    assert 708.0 < hypotheses.epsilon_of_errors(0.01, 5e-324) <= math.log(0.99) - math.log(5e-324)


def test_beliefs_move_by_the_largest_ratio() -> None:
    prior = np.array([0.0, 0.01, 0.5, 1.0])
    lower, upper = hypotheses.posterior_bounds(prior, 2.0)
    assert lower.tolist()[0] == upper.tolist()[0] == 0.0
    assert lower.tolist()[-1] == upper.tolist()[-1] == 1.0
    odds = prior[1:3] / (1.0 - prior[1:3])
    np.testing.assert_allclose(upper[1:3] / (1.0 - upper[1:3]), odds * math.exp(2.0))
    np.testing.assert_allclose(lower[1:3] / (1.0 - lower[1:3]), odds * math.exp(-2.0))
    lower, upper = hypotheses.posterior_bounds(prior, math.inf)
    assert lower.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert upper.tolist() == [0.0, 1.0, 1.0, 1.0]


def test_bad_arguments() -> None:
    for call in (
        lambda: hypotheses.posterior_bounds(1.5, 1.0),
        lambda: hypotheses.posterior_bounds(math.nan, 1.0),
        lambda: hypotheses.posterior_bounds(0.5, -1.0),
        lambda: hypotheses.posterior_bounds(0.5, math.nan),
        lambda: hypotheses.epsilon_of_errors(-0.1, 0.5),
        lambda: hypotheses.epsilon_of_errors(0.1, math.nan),
        lambda: hypotheses.epsilon_of_errors(0.1, 0.5, 2.0),
        lambda: hypotheses.epsilon_for_errors(0.0),
        lambda: hypotheses.epsilon_for_errors(1.5),
    ):
        with pytest.raises(pn.DomainError, match="must"):
            call()
    for prior in ("0.5", True, None):
        with pytest.raises(TypeError, match="prior must be real numbers"):
            hypotheses.posterior_bounds(prior, 1.0)
