"""Noise that is finer than the outputs it is added to: nothing may be lost between them."""

from __future__ import annotations

import math

import pytest

import psinoise as pn

LAWS = {
    "Gaussian": pn.Gaussian,
    "Laplace": pn.Laplace,
    "Airy": pn.Airy,
    "Schrodinger": lambda scale: pn.Schrodinger(cost=pn.costs.Power(1.5), scale=scale),
    "stable 1.5": lambda scale: pn.SymmetricStable(alpha=1.5, scale=scale),
    "Cauchy": lambda scale: pn.SymmetricStable(alpha=1.0, scale=scale),
}


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("scale", [1e-14, 2e-16, 1e-16, 3e-17, 1e-20, 1e-40, 1e-100])
@pytest.mark.parametrize(
    ("count", "rate", "delta", "adjacency"),
    [
        (1, 1.0, 1e-6, "add-remove"),
        (1, 0.1, 1e-6, "add-remove"),
        (3, 0.1, 1e-6, "add-remove"),
        (50, 0.01, 1e-3, "add-remove"),
        (2, 1.0, 0.3, "replace"),
    ],
)
def test_epsilon_is_never_small(law, scale, count, rate, delta, adjacency):
    """A record is seen with a probability above delta, so that epsilon is large. Kills panels that
    begin at a center and end there: certified epsilons were 0."""
    noise = LAWS[law](scale=scale)
    # By what is left of the peak of the other center, where one record is seen for certain.
    least = -2.0 * math.log(1e8 * scale) if law in ("Cauchy", "stable 1.5") else 1e8
    for sensitivity in (1.0, 0.7 * 2.0**60):
        noise = LAWS[law](scale=scale * sensitivity)
        mechanism = pn.Mechanism(noise, sensitivity)
        bracket = mechanism.epsilon(delta, count, rate, adjacency)
        assert bracket.lower <= bracket.upper
        assert bracket.upper > least


@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("scale", [1e-14, 1e-17, 1e-100])
def test_delta_holds_what_is_seen(law, rate, scale):
    """Of two uses the record is in one at least, with a probability of 1 - (1 - q)^2. Kills masses
    of nodes that are below 0, and NaN among masses, which is no mass at all."""
    steps = pn.Accountant().compose(pn.Mechanism(LAWS[law](scale=scale)), 2, rate)
    bracket = steps.delta(1.0)
    assert bracket.lower <= 1.0
    assert bracket.upper >= (1.0 - (1.0 - rate) ** 2) * (1.0 - 1e-9)
