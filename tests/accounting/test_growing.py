"""Compositions that grow: against closed forms, and against the composers that begin anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from profile_oracles import gaussian_delta

import psinoise as pn
from psinoise.accounting import Accountant
from psinoise.accounting.compose.frequencies.growing import Growing, Point
from psinoise.errors import CertificationError
from psinoise.ledger._gaussian import largest_parameter


def composed(steps, epsilon, delta, direction="remove"):
    """Both bounds on delta at epsilon."""
    point = epsilon, math.log(delta), largest_parameter(epsilon, delta), direction
    found = []
    for side in ("lower", "upper"):
        growing = Growing.of(Point(*point, side))
        for mechanism, count, rate in steps:
            for pair, uses in mechanism.sampled(rate, None, "add-remove"):
                growing = growing.plus(pair, uses * count)
        found.append(math.exp(growing.log_delta))
    return found


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [(1.0, 1e-6, 60), (1e-3, 1e-5, 5), (30.0, 1e-3, 60), (1.0, 1e-100, 20), (0.5, 0.1, 10)],
)
def test_gaussian_noise(epsilon, delta, count):
    """Together they are one Gaussian mechanism. Deltas about the one that was planned for.

    Kills: sides that are exchanged, an offset or a norm that is not added up, a window that is not
    moved along, a power that is left out.
    """
    parameter = largest_parameter(epsilon, delta)
    for share in (0.95, 1.0, 1.1):
        stds = np.linspace(1.0, 2.0, count // 3)
        stds *= math.sqrt(3.0 * float(np.sum(stds**-2.0))) / (share * parameter)
        steps = [(pn.Mechanism(pn.Gaussian(std=float(std))), 3, 1.0) for std in stds]
        mu = math.sqrt(3.0 * math.fsum(float(std) ** -2 for std in stds))
        exact = float(gaussian_delta(epsilon, mu))
        lower, upper = composed(steps, epsilon, delta)
        assert lower * (1.0 - 1e-9) <= exact <= upper * (1.0 + 1e-9)
        # The width, as an epsilon.
        slope = epsilon / mu**2
        assert math.log(upper / lower) <= 2e-3 * slope * epsilon


def test_what_is_far_beyond_the_window_is_refused():
    """Kills: a measure of no mass that is normalized."""
    with pytest.raises(CertificationError):
        composed([(pn.Mechanism(pn.Gaussian(std=0.01)), 3, 0.1)], 3.0, 1e-5)


STEPS = {
    "lattices": [
        (pn.Mechanism(law).on_lattice(), count, 1.0)
        for law, count in ((pn.Laplace(scale=9.0), 20), (pn.Airy(mean_abs=9.0), 7))
    ],
    "sampled": [
        (pn.Mechanism(pn.Laplace(scale=1.0)).on_lattice(), 300, 0.02),
        (pn.Mechanism(pn.Gaussian(std=4.0)), 300, 0.05),
    ],
    "several shifts": [(pn.Mechanism(pn.Cactus(mean_cost=300.0)).on_lattice(), 60, 1.0)],
    "infinite losses": [
        (pn.Mechanism(pn.TruncatedLaplace(epsilon=0.1, delta=1e-8)).on_lattice(), 30, 1.0),
        (pn.Mechanism(pn.Laplace(scale=20.0)), 20, 1.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_they_agree_with_composers_that_begin_anew(steps, direction):
    """Kills: one direction for both, infinite losses that are not counted."""
    accountant = Accountant(direction)
    for mechanism, count, rate in steps:
        accountant.compose(mechanism, count, rate)
    epsilon = accountant.epsilon(1e-6).upper
    known = accountant.delta(epsilon)
    lower, upper = composed(steps, epsilon, 1e-6, direction)
    assert lower <= known.upper
    assert upper >= known.lower
    assert upper <= 1.02 * known.upper
    assert lower >= 0.95 * known.lower
