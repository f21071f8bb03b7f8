"""The pieces under the contour: quadrature, tilts, exponential sums, powers."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import psinoise as pn
from psinoise import reference
from psinoise._backend import core
from psinoise.accounting.estimate.composition import Composition
from psinoise.accounting.estimate.line import log_power
from psinoise.accounting.loss.measure import LossMeasure
from psinoise.accounting.loss.pairs import Pair, mixture_loss
from psinoise.accounting.loss.quadrature import nodes, reach_for
from refusals import for_each, for_rows


@for_each([core, reference])
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


@for_each(
    [pn.Gaussian(std=1.3), pn.Airy(mean_abs=1.0), pn.Laplace(scale=0.5)],
    [1e-4, 0.3, 1.0],
    ["remove", "add"],
)
def test_masses_of_both_densities(law, rate, direction):
    """Sum of P and of Q = P e^{-L} over the nodes: what the cumulants never use."""
    measure = LossMeasure(nodes(Pair(law, 1.0, rate), 60.0), direction)
    assert math.fsum(measure.mass) == pytest.approx(1.0, abs=2e-15)
    assert math.fsum(np.exp(measure.log_mass - measure.loss)) == pytest.approx(1.0, abs=2e-15)


@for_each([1e-6, 0.1, 3.0, 40.0])
def test_cumulants_of_gaussian_noise(c):
    """K(c) = c (c + 1) mu^2 / 2 without sampling; for mu = 1e-6 the loss is all rounding."""
    for std in (1.5, 4.0, 1e6):
        mu2 = std**-2
        cumulants = LossMeasure(
            nodes(Pair(pn.Gaussian(std=std), 1.0, 1.0), 850.0), "remove"
        ).cumulants(c)
        tolerance = 1e-13 if std < 5.0 else 1e-10
        assert cumulants.value == pytest.approx(0.5 * c * (c + 1.0) * mu2, rel=tolerance)
        assert cumulants.mean == pytest.approx((c + 0.5) * mu2, rel=tolerance)
        assert cumulants.variance == pytest.approx(mu2, rel=tolerance)


@for_each([1e-12, 0.01, 0.999])
def test_mixture_loss_is_relatively_accurate(rate):
    for ratio in (-50.0, -1.0, -1e-9, 1e-12, 0.5, 40.0, 699.0, 701.0, 5000.0):
        with mp.workdps(50):
            exact = mp.log(1 + mp.mpf(rate) * mp.expm1(mp.mpf(ratio)))
        value = float(mixture_loss(np.array(ratio), rate))
        assert value == pytest.approx(float(exact), rel=1e-14)


@for_rows([(7, 0.3), (1000, 0.01), (10**6, 0.5), (10**9, 1e-7)])
def test_powers_of_a_characteristic_function(count, share):
    """Of a loss of two atoms: binomial."""
    phase = np.array([1e-6, 1e-3, 0.5, 2.0])
    found = log_power(share * np.expm1(1j * phase), float(count))
    with mp.workdps(40):
        for value, x in zip(found, phase, strict=True):
            exact = count * mp.log(1 + mp.mpf(share) * mp.expm1(1j * mp.mpf(float(x))))
            assert abs(mp.expm1(mp.mpc(complex(value)) - exact)) <= 1e-9 * min(1, abs(exact))


def test_powers_of_a_small_modulus():
    """Two uses: what is left of each must be smaller than a rounding of 1."""
    small = np.array([1e-14 + 3e-15j, -2e-11j, 0.3 + 0.1j])
    assert log_power(small - 1.0, 2.0).real == pytest.approx(2.0 * np.log(np.abs(small)), rel=2e-3)


def test_panels_resolve_a_large_tilt():
    """The tilted mass lies between nodes: one refinement does not show where."""
    composition = Composition.of(((Pair(pn.Cauchy(scale=1.0), 1.0, 0.1), 2),), "remove", 70.0)
    saddle = composition.saddle(2.4e6)
    resolved = composition.resolved(saddle, 0.0)
    assert resolved is not None
    _, found = resolved
    measure = composition.measures[0]
    fine = measure.split(np.full(measure.panels, 400))
    exact = 2.0 * fine.cumulants(2.4e6).value
    assert found.value == pytest.approx(exact, abs=1e-8)
    assert abs(saddle.value - exact) > 1.0


@for_each(
    [1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6],
    [10, 1000, 10**6, 10**9],
    [1e-2, 1e-10, 1e-100],
)
def test_the_error_of_cumulants_is_stated(std, count, delta):
    """Kills: an error by the number of uses alone, 1e-9 + 1e-13 n, of logs that are large."""
    log_delta = math.log(delta)
    reach = reach_for(log_delta, count)
    steps = ((Pair(pn.Gaussian(std=std), 1.0, 1.0), count),)
    composition = Composition.of(steps, "remove", reach)
    c = composition.saddle_at_delta(log_delta).c
    with mp.workdps(40):
        exact = count * mp.mpf(c) * (mp.mpf(c) + 1) / (2 * mp.mpf(std) ** 2)
        exact -= c * mp.log(1 + 1 / mp.mpf(c)) + mp.log(1 + mp.mpf(c))
        assert composition.certain_chernoff(0.0, c) >= exact


def test_the_error_of_cumulants_is_small_where_logs_are():
    pair = Pair(pn.Gaussian(std=1.0), 1.0, 1e-3)
    composition = Composition.of(((pair, 10**9),), "remove", 80.0)
    saddle = composition.saddle_at_delta(-18.0)
    assert composition.certain_chernoff(0.0, saddle.c) - saddle.log_chernoff(0.0) <= 1e-3


def laplace_delta(scale, uses, epsilon):
    """Of Laplace noise at sensitivity 1, by the contour integral of its closed transform."""
    with mp.workdps(50):
        shift, c = 1 / mp.mpf(scale), mp.mpf(5)

        def integrand(t):
            z = mp.mpc(c, t)
            falling = z / (2 * z + 1) * mp.exp(-(z + 1) * shift)
            transform = (z + 1) / (2 * z + 1) * mp.exp(z * shift) + falling
            return mp.re(mp.exp(uses * mp.log(transform) - z * epsilon) / (z * (z + 1)))

        step = mp.mpf(1) / 16
        return (
            step / mp.pi * (integrand(0) / 2 + mp.fsum(integrand(k * step) for k in range(1, 256)))
        )


@for_each([10**5, 10**7, 10**9, 10**10, 10**12])
def test_estimates_of_very_many_uses(uses):
    """Kills: peaks of the integrand that parabolas through coarse samples have, and it has not."""
    scale = math.sqrt(2.0 * uses) / 1.4
    estimate = pn.Mechanism(pn.Laplace(scale=scale)).composed(uses).estimate
    exact = laplace_delta(scale, uses, 4.8)
    assert estimate.delta(4.8) == pytest.approx(float(exact), rel=1e-9, abs=0.0)
    found = estimate.epsilon(1e-6)
    assert float(laplace_delta(scale, uses, found)) == pytest.approx(1e-6, rel=1e-9, abs=0.0)
