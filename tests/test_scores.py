"""What a law states on the half line can be asked for numbers of any shape."""

from __future__ import annotations

import numpy as np
import pytest

import psinoise as pn

SMOOTH = [
    pn.Gaussian(std=2.0),
    pn.Laplace(scale=2.0),
    pn.Airy(mean_abs=2.0),
    pn.Cauchy(scale=2.0),
    pn.SymmetricStable(alpha=0.5, scale=2.0),
    pn.Schrodinger(cost=pn.costs.Log(), mean_cost=1.0),
]
STEPS = [
    pn.Staircase(epsilon=1.0),
    pn.UniformAtom(delta=0.3),
    pn.DiscreteLaplace(scale=2.0),
]
CACTUS = {"mean_cost": 0.25, "cells_per_sensitivity": 6, "cells": 48, "tail_ratio": 0.5}


@pytest.mark.parametrize("law", SMOOTH, ids=repr)
def test_scores_of_numbers_and_of_arrays(law):
    """Kills: a hook for 1-d arrays that is public; it raised AttributeError for a float."""
    several = law.score(np.array([0.5, 1.0, 3.0]))
    assert law.score(1.0) == several[1]
    assert isinstance(law.score(1.0), float)
    assert law.score(1) == several[1]
    assert np.array_equal(law.score([[0.5, 1.0, 3.0]]), several[None, :])
    assert law.score(np.float32(0.5)) == several[0]
    h = 1e-5
    slope = (law.logpdf(2.0 * (1.0 - h)) - law.logpdf(2.0 * (1.0 + h))) / (2.0 * h)
    if law.scale == 2.0:
        assert law.score(1.0) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("law", SMOOTH, ids=repr)
def test_scores_of_what_is_no_number(law):
    for bad in ("1", None, 1j, [True]):
        with pytest.raises(TypeError, match="t must be"):
            law.score(bad)
    with pytest.raises(pn.DomainError, match="t must be at least 0"):
        law.score(-1.0)


@pytest.mark.parametrize("law", STEPS, ids=repr)
def test_laws_with_steps_have_no_score(law):
    with pytest.raises(pn.DomainError, match="has no score"):
        law.score(1.0)


def test_the_expected_cost_of_a_cactus_is_that_of_its_cost():
    """Kills: the float that `cost` is, refused by the method that takes costs."""
    law = pn.Cactus(**CACTUS)
    assert law.expected_cost(law.cost) == pytest.approx(0.25, rel=1e-9)
    assert law.expected_cost(law.cost) == law.moment(law.cost)
    assert law.expected_cost(np.square) == pytest.approx(law.moment(2.0), rel=1e-12)
    with pytest.raises(TypeError, match="cost must be"):
        law.expected_cost("x")
    other = pn.Cactus(cost=np.abs, **CACTUS)
    assert other.expected_cost(other.cost) == pytest.approx(0.25, rel=1e-9)


def test_scores_far_beyond_all_draws():
    """Kills: the score of an Airy law cut off at 2**960 scales, where its arguments end."""
    airy, kappa = pn.Airy(mean_abs=1.0), 2.0 * 1.0187929716474710890 / 3.0
    for t in (1e280, 1e290, 1e300):
        assert airy.score(t) == pytest.approx(2.0 * kappa * np.sqrt(kappa * t), rel=1e-12)
    assert airy.score(np.inf) == np.inf
