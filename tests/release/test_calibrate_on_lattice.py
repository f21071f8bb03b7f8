"""The least noise as it is released: certified on its lattice, and hardly more than the ideal."""

from __future__ import annotations

import pickle

import pytest

import psinoise as pn
from psinoise.noise import FAMILIES
from refusals import for_each, for_rows


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_fine_lattice_costs_next_to_nothing(family):
    """Relative price below 1e-3, as the design asks; it is about 1e-6."""
    mechanism = pn.calibrate(family, epsilon=1.0, delta=1e-6, on_lattice=True)
    assert mechanism.delta(1.0).upper <= 1e-6
    ideal = pn.calibrate(family, epsilon=1.0, delta=1e-6)
    larger = float(mechanism.law.split("scale=")[1].strip(")")) if "scale=" in mechanism.law else 0
    if larger:
        assert ideal.scale <= larger <= ideal.scale * (1.0 + 1e-3)
    else:
        assert mechanism.noise.mean_abs == pytest.approx(ideal.mean_abs, rel=1e-3)


def test_a_coarse_lattice_takes_more_noise():
    """Rounding makes a sensitivity of 0.7 to two cells of 1/2. Kills: the law of `calibrate` as it
    is; a step that does not lead to the target."""
    target = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 0.7, "count": 2}
    mechanism = pn.calibrate(pn.Airy, grid=0.5, **target, on_lattice=True)
    assert (mechanism.grid, mechanism.cells) == (0.5, 2)
    assert mechanism.delta(1.0, 2).upper <= 1e-6
    ideal = pn.calibrate(pn.Airy, **target)
    assert mechanism.noise.mean_abs == pytest.approx(ideal.mean_abs / 0.7, rel=2e-3)
    before = pn.Mechanism(ideal, 0.7).on_lattice(0.5)
    assert before.delta(1.0, 2).upper > 1e-6, "the test of the test"


def test_without_delta():
    """A bound on the largest loss; the integers of the tail keep it."""
    mechanism = pn.calibrate(pn.Laplace, epsilon=0.5, delta=0.0, on_lattice=True)
    assert mechanism.pure_epsilon() <= 0.5
    assert mechanism.noise.mean_abs == pytest.approx(2.0, rel=1e-3)
    with pytest.raises(pn.CalibrationError):
        pn.calibrate(pn.Gaussian, epsilon=0.5, delta=0.0, on_lattice=True)


@for_each([pn.Gaussian, pn.Airy], [(0.1, 0.3, 2), (1.0, 0.1, 5)])
def test_both_answers_meet_the_target_on_their_own(law, target):
    """Kills: a delta that is read from bounds of the epsilon which was asked before: .300005."""
    epsilon, delta, count = target
    mechanism = pn.calibrate(law, epsilon=epsilon, delta=delta, count=count, on_lattice=True)
    mechanism = pickle.loads(pickle.dumps(mechanism))
    assert mechanism.delta(epsilon, count).upper <= delta
    assert pickle.loads(pickle.dumps(mechanism)).epsilon(delta, count).upper <= epsilon


@for_rows(
    [(pn.Gaussian, 50.0, 1e-10, 1.0), (pn.Gaussian, 20.0, 1e-6, 1.0), (pn.Airy, 19.0, 1e-7, 0.1)]
)
def test_large_epsilons_waste_no_noise(law, epsilon, delta, rate):
    """Losses of copied tails do not grow. Kills the ideal law's scale: epsilon is 37 for 50."""
    mechanism = pn.calibrate(law, epsilon=epsilon, delta=delta, sampling_rate=rate, on_lattice=True)
    found = mechanism.epsilon(delta, 1, rate)
    assert (1.0 - 3e-3) * epsilon < found.upper <= epsilon
    assert mechanism.delta(epsilon, 1, rate).upper <= delta


@pytest.mark.parametrize(
    ("law", "target"),
    [
        (pn.Staircase, {"epsilon": 1.0, "delta": 0.0, "sensitivity": 0.7}),
        (pn.TruncatedLaplace, {"epsilon": 1.0, "delta": 1e-3}),
        (pn.DiscreteLaplace, {"epsilon": 1.0, "delta": 0.0, "count": 3}),
        (pn.UniformAtom, {"epsilon": 0.0, "delta": 0.1}),
    ],
)
def test_laws_without_a_scale(law, target):
    """They are made for a little less than the target, and for the sensitivity on the lattice."""
    mechanism = pn.calibrate(law, **target, on_lattice=True)
    epsilon, delta, count = target["epsilon"], target["delta"], target.get("count", 1)
    if delta:
        assert mechanism.delta(epsilon, count).upper <= delta
    else:
        assert mechanism.epsilon(0.0, count).upper <= epsilon
    ideal = pn.calibrate(law, **target)
    # A grid may round up to 2^-10 of the sensitivity, and the noise to the grid.
    assert mechanism.noise.mean_abs == pytest.approx(ideal.mean_abs, rel=1e-2)


def test_an_epsilon_of_0():
    mechanism = pn.calibrate(pn.Gaussian, epsilon=0.0, delta=0.1, grid=2.0, on_lattice=True)
    assert mechanism.delta(0.0).upper <= 0.1
    assert mechanism.noise.std == pytest.approx(
        pn.calibrate(pn.Gaussian, epsilon=0.0, delta=0.1, sensitivity=2.0).std, rel=1e-2
    )


def test_sampling_and_replaced_records():
    mechanism = pn.calibrate(
        pn.Gaussian, epsilon=1.0, delta=1e-6, count=50, sampling_rate=0.05, on_lattice=True
    )
    assert mechanism.delta(1.0, 50, 0.05).upper <= 1e-6
    replaced = pn.calibrate(
        pn.Laplace, epsilon=1.0, delta=1e-6, sensitivity=2.0, adjacency="replace", on_lattice=True
    )
    assert replaced.delta(1.0, 1, 1.0, "replace").upper <= 1e-6


def test_noise_that_no_grid_can_hold():
    """Kills: the hint of a coarser grid, with which the noise grows, so that it says so again."""
    target = {"epsilon": 1e-6, "delta": 1e-9, "on_lattice": True}
    for grid in (None, 64.0):
        with pytest.raises(pn.CalibrationError, match="coarser grids, with which the noise grows"):
            pn.calibrate(pn.Laplace, grid=grid, **target)
    with pytest.raises(pn.DomainError, match="grid must be at least"):  # here a coarser one helps
        pn.calibrate(pn.Laplace, epsilon=0.01, delta=1e-9, grid=2.0**-16, on_lattice=True)
