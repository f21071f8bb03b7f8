"""The pieces under the contour: quadrature, atoms, exponential sums."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import psinoise as pn
from psinoise import reference
from psinoise._backend import core
from psinoise.accounting.contour.atoms import Atoms
from psinoise.accounting.contour.nonuniform import characteristic_many
from psinoise.accounting.loss.measure import loss_measure
from psinoise.accounting.loss.pairs import Pair, mixture_loss


@pytest.mark.parametrize("backend", [core, reference], ids=["backend", "reference"])
def test_characteristic_sums(backend):
    """Against direct sums; small phases must keep relative accuracy."""
    generator = np.random.default_rng(5)
    weights, losses = generator.random(301), generator.normal(size=301)
    for step in (0.3, 1e-9):
        out = backend.characteristic(weights, losses, step, 100)
        angle = np.arange(100)[:, None] * (step * losses)
        exact = (-2.0 * np.sin(0.5 * angle) ** 2 + 1j * np.sin(angle)) @ weights
        scale = (np.minimum(np.abs(angle), 1.0)) @ weights
        # The recurrence loses about an ulp per step.
        assert np.abs(out.imag - exact.imag).max() <= 1e-13 * scale.max()
        assert np.all(np.abs(out.real - exact.real) <= 1e-13 * scale * np.minimum(scale, 1.0) * 301)


def test_non_uniform_transform():
    generator = np.random.default_rng(6)
    weights = generator.random(400) / 400.0
    losses = generator.normal(size=400) * np.geomspace(1e-6, 10.0, 400)
    count, step = 5000, 0.21
    angle = np.arange(count)[:, None] * (step * losses)
    exact = (np.cos(angle) - 1.0 + 1j * np.sin(angle)) @ weights
    # Phases of 1e4 carry 1e-12 themselves, on both sides.
    assert np.abs(characteristic_many(weights, losses, step, count) - exact).max() <= 1e-12


def test_non_uniform_transform_of_small_phases_is_relative():
    weights, losses = np.array([0.25, 0.75]), np.array([1e-9, 3e-9])
    out = characteristic_many(weights, losses, 1.0, 2000)
    m = np.arange(2000)
    assert np.allclose(out.imag, m * 2.5e-9, rtol=1e-11, atol=0.0)
    assert np.allclose(out.real, -0.5 * m**2 * (0.25 + 0.75 * 9.0) * 1e-18, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize(
    "law", [pn.Gaussian(std=1.3), pn.Airy(mean_abs=1.0), pn.Laplace(scale=0.5)]
)
@pytest.mark.parametrize("rate", [1e-4, 0.3, 1.0])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_masses_of_both_densities(law, rate, direction):
    """Sum of P and of Q = P e^{-L} over the nodes: what the cumulants never use."""
    measure = loss_measure(Pair(law, 1.0, rate), direction, 60.0)
    assert math.fsum(measure.mass) == pytest.approx(1.0, abs=2e-15)
    assert math.fsum(np.exp(measure.log_mass - measure.loss)) == pytest.approx(1.0, abs=2e-15)


@pytest.mark.parametrize("c", [1e-6, 0.1, 3.0, 40.0])
def test_cumulants_of_gaussian_noise(c):
    """K(c) = c (c + 1) mu^2 / 2 without sampling; for mu = 1e-6 the loss is all rounding."""
    for std in (1.5, 4.0, 1e6):
        mu2 = std**-2
        cumulants = loss_measure(Pair(pn.Gaussian(std=std), 1.0, 1.0), "remove", 850.0).cumulants(c)
        tolerance = 1e-13 if std < 5.0 else 1e-10
        assert cumulants.value == pytest.approx(0.5 * c * (c + 1.0) * mu2, rel=tolerance)
        assert cumulants.mean == pytest.approx((c + 0.5) * mu2, rel=tolerance)
        assert cumulants.variance == pytest.approx(mu2, rel=tolerance)


@pytest.mark.parametrize("rate", [1e-12, 0.01, 0.999])
def test_mixture_loss_is_relatively_accurate(rate):
    for ratio in (-50.0, -1.0, -1e-9, 1e-12, 0.5, 40.0, 699.0, 701.0, 5000.0):
        with mp.workdps(50):
            exact = mp.log(1 + mp.mpf(rate) * mp.expm1(mp.mpf(ratio)))
        value = float(mixture_loss(np.array(ratio), rate))
        assert value == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize(("count", "share"), [(7, 0.3), (1000, 0.01), (10**6, 0.5), (10**9, 1e-7)])
def test_binomial_atoms(count, share):
    atoms = Atoms(np.array([-1.0, 2.0]), np.array([1.0 - share, share])).power(count)
    assert atoms is not None
    k = (atoms.positions + count) / 3.0
    assert atoms.weights.sum() == pytest.approx(1.0, rel=1e-12)
    # 1e-16 of the position itself is what the offset of a billion steps leaves.
    assert atoms.weights @ k == pytest.approx(count * share, rel=1e-7)
    variance = atoms.weights @ (k - count * share) ** 2
    assert variance == pytest.approx(count * share * (1.0 - share), rel=1e-6)


def test_three_atoms_by_squaring():
    single = Atoms(np.array([-1.0, 0.0, 1.0]), np.array([0.25, 0.5, 0.25]))
    composed = single.power(13)
    assert composed is not None
    # (1/2 + 1/2)^26 in disguise.
    exact = [math.comb(26, k) / 2.0**26 for k in range(27)]
    assert np.allclose(composed.weights, exact, rtol=1e-13)
    assert np.allclose(composed.positions, np.arange(-13, 14), atol=1e-12)
