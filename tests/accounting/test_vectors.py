"""Queries with many coordinates: which one-dimensional mechanism they amount to."""

from __future__ import annotations

import math

import numpy as np
import pytest

import psinoise as pn
from psinoise import Laplace, Mechanism  # noqa: F401  names that repr evaluates in
from refusals import for_each, for_rows

LAWS = [pn.Gaussian, pn.Airy, pn.Laplace]


@for_rows([(0.1, "add-remove"), (1.0, "add-remove"), (1.0, "replace")])
def test_gaussian_is_rotation_invariant(rate, adjacency):
    def epsilon(sensitivity, **vector):
        mechanism = pn.Mechanism(pn.Gaussian(std=2.0), sensitivity, **vector)
        return mechanism.composed(30, rate, adjacency).estimate.epsilon(1e-6)

    assert epsilon(1.5, dimension=100, norm="l2") == epsilon(1.5)
    assert epsilon(1.5, dimension=100, norm="l1") == epsilon(1.5)
    assert epsilon(0.15, dimension=100, norm="linf") == pytest.approx(epsilon(1.5), rel=1e-12)


def test_gaussian_coordinates_compose():
    vector = pn.Mechanism(pn.Gaussian(std=2.0), dimension=9)
    scalar = pn.Mechanism(pn.Gaussian(std=2.0))
    assert vector.composed(2).estimate.epsilon(1e-6) == pytest.approx(
        scalar.composed(18).estimate.epsilon(1e-6), rel=1e-11
    )


@for_each(LAWS)
def test_one_dimension_is_no_vector(law):
    for norm in ("linf", "l1", "l2"):
        mechanism = pn.Mechanism(law(mean_abs=2.0), dimension=1, norm=norm)
        assert mechanism.composed(5, 0.2).estimate.epsilon(1e-6) == pn.Mechanism(
            law(mean_abs=2.0)
        ).composed(5, 0.2).estimate.epsilon(1e-6)


@for_each([pn.Airy, pn.Laplace])
def test_coordinates_of_other_laws_compose(law):
    vector = pn.Mechanism(law(mean_abs=2.0), 0.5, dimension=7)
    scalar = pn.Mechanism(law(mean_abs=2.0), 0.5)
    for adjacency in ("add-remove", "replace"):
        assert vector.epsilon(1e-6, 3, 1.0, adjacency) == scalar.epsilon(1e-6, 21)
    accountant = pn.Accountant().compose(vector).compose(scalar, 14)
    assert accountant.epsilon(1e-6) == scalar.epsilon(1e-6, 21)
    assert vector.pure_epsilon() == 7.0 * scalar.pure_epsilon()


def plane_deltas(law, shift, epsilons):
    """Delta of a shift in two dimensions, by quadrature on a grid."""
    axis = np.linspace(-22.0, 24.0, 2301)
    step = axis[1] - axis[0]
    before = np.multiply.outer(law.pdf(axis), law.pdf(axis))
    after = np.multiply.outer(law.pdf(axis - shift[0]), law.pdf(axis - shift[1]))
    excess = [np.maximum(after - math.exp(e) * before, 0.0).sum() for e in epsilons]
    return np.array(excess) * step**2


def test_corner_of_the_square_is_attained():
    law = pn.Airy(mean_abs=1.0)
    epsilons = [0.1, 0.5, 1.5]
    found = pn.Mechanism(law, 1.0, dimension=2).composed().estimate.profile(epsilons)
    np.testing.assert_allclose(plane_deltas(law, (1.0, 1.0), epsilons), found, rtol=1e-4)


@for_each([(0.5, 0.5), (0.9, 0.1), (-0.3, 0.7)])
def test_laplace_moves_most_in_one_coordinate(shift):
    """The lemma of ``vectors``, by quadrature: any shift of the same l1 norm is more private."""
    law = pn.Laplace(scale=0.5)
    mechanism = pn.Mechanism(law, 1.0, dimension=2, norm="l1")
    epsilons = [0.0, 0.3, 1.0, 1.6]
    worst = mechanism.composed().estimate.profile(epsilons)
    assert np.array_equal(worst, pn.Mechanism(law, 1.0).composed().estimate.profile(epsilons))
    # Kinks between the points of the grid cost 2e-4 of the density.
    assert np.all(plane_deltas(law, shift, epsilons) <= worst * (1.0 + 1e-3))
    np.testing.assert_allclose(plane_deltas(law, (1.0, 0.0), epsilons), worst, rtol=1e-3)


def test_laplace_with_an_l1_bound():
    vector = pn.Mechanism(pn.Laplace(scale=2.0), 1.5, dimension=50, norm="l1")
    scalar = pn.Mechanism(pn.Laplace(scale=2.0), 1.5)
    assert vector.pure_epsilon() == 0.75
    for rate in (0.1, 1.0):
        assert vector.epsilon(1e-6, 20, rate) == scalar.epsilon(1e-6, 20, rate)


@for_rows(
    [
        (pn.Airy, "l1", 1.0, "worst direction"),
        (pn.Airy, "l2", 1.0, "worst direction"),
        (pn.Laplace, "l2", 1.0, "worst direction"),
        (pn.Airy, "linf", 0.5, "one coin"),
        (pn.Laplace, "linf", 0.5, "one coin"),
    ]
)
def test_refused(law, norm, rate, match):
    mechanism = pn.Mechanism(law(mean_abs=2.0), dimension=2, norm=norm)
    with pytest.raises(pn.DomainError, match=match):
        mechanism.epsilon(1e-6, 10, rate)
    with pytest.raises(pn.DomainError, match=match):
        pn.Accountant().compose(mechanism, 10, rate)


def test_arguments():
    noise = pn.Laplace(scale=1.0)
    for dimension, error in ((0, pn.DomainError), (-1, pn.DomainError), (1.5, TypeError)):
        with pytest.raises(error, match="dimension"):
            pn.Mechanism(noise, dimension=dimension)
    with pytest.raises(pn.DomainError, match="norm"):
        pn.Mechanism(noise, dimension=2, norm="l3")
    with pytest.raises(TypeError, match="norm"):
        pn.Mechanism(noise, dimension=2, norm=2)
    with pytest.raises(TypeError):
        pn.Mechanism(noise, 1.0, 2)
    with pytest.raises(OverflowError, match="count"):
        pn.Mechanism(noise, dimension=2**32).composed(2**32).estimate.epsilon(1e-6)


def test_a_vector_mechanism_is_a_value():
    mechanism = pn.Mechanism(pn.Laplace(scale=1.0), 2.0, dimension=3, norm="l1")
    assert eval(repr(mechanism)) == mechanism
    assert hash(mechanism) != hash(pn.Mechanism(pn.Laplace(scale=1.0), 2.0))
    assert mechanism != pn.Mechanism(pn.Laplace(scale=1.0), 2.0, dimension=3)
    assert repr(pn.Mechanism(pn.Laplace(scale=1.0))) == (
        "Mechanism(noise=Laplace(scale=1.0), sensitivity=1.0)"
    )
