"""Few uses at small rates: estimates where rare, large losses decide.

Against the exact profile of two uses, and against divisions that are made elsewhere. Mutants, each
seen by these tests: a class that leaves out the smaller losses beside the large one; one that
counts a single large loss where there may be two; what is hidden by a window not counted as lost;
a cut that is sharp; aliases looked for below epsilon alone; panels that are refined once
for a tilt; a modulus near 0 that keeps what rounding leaves of ``|phi|^2 - 1``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from profile_oracles import sampled_gaussian_delta_twice
from scipy import optimize

import psinoise as pn
from psinoise.accounting.contour import large_losses
from psinoise.accounting.contour.composition import Composition
from psinoise.accounting.contour.estimate import epsilon_in_direction
from psinoise.accounting.contour.integrand import log_power
from psinoise.accounting.contour.large_losses import Division
from psinoise.accounting.contour.line import LARGEST_ERROR, trace
from psinoise.accounting.contour.single import SingleStep
from psinoise.accounting.loss.pairs import Pair, turning_point
from psinoise.accounting.loss.quadrature import reach_for
from psinoise.accounting.loss.windows import Cut, Window


@pytest.mark.parametrize(
    ("rate", "epsilon"),
    [
        (0.01, 0.2454),
        (0.01, 1.5),
        (0.2, 0.5),
        (0.2, 6.0),
        (0.001, 0.01),
        (0.001, 4.3),
        (1e-5, 1e-3),
        (1e-6, 3e-7),
    ],
)
def test_two_sampled_gaussian_uses(rate, epsilon):
    """One rare large loss decides: the hardest case for a contour."""
    exact = max(
        float(sampled_gaussian_delta_twice(epsilon, 1.0, rate, direction))
        for direction in ("remove", "add")
    )
    delta = pn.Mechanism(pn.Gaussian(std=1.0)).delta(epsilon, 2, rate, method="estimate")
    assert delta == pytest.approx(exact, rel=1e-11)


def test_two_uses_next_to_the_largest_loss():
    """Of Cauchy noise, whose loss has a maximum inside: the tilted mass is between coarse nodes."""
    law, rate, epsilon = pn.Cauchy(scale=1.0), 0.1, 0.2999444261559871
    pair = Pair(law, 1.0, rate)
    once = SingleStep(pair, "remove")
    center, top = turning_point(law, 1.0), pair.largest_loss("remove")

    def excess(x):
        return float(pair.loss(np.array(x))) - (epsilon - top)

    ends = [optimize.brentq(excess, center, center + side) for side in (-0.5, 0.5)]
    points, weights = np.polynomial.legendre.leggauss(120)
    angle = 0.5 * math.pi * points
    half = 0.5 * (ends[1] - ends[0])
    x = ends[0] + half * (1.0 + np.sin(angle))
    loss = pair.loss(x)
    mass = 0.5 * math.pi * weights * half * np.cos(angle) * np.exp(law.logpdf(x) + loss)
    exact = float(mass @ [math.exp(once.log_delta(epsilon - one)[0]) for one in loss])
    mechanism = pn.Mechanism(law)
    assert mechanism.delta(epsilon, 2, rate, method="estimate") == pytest.approx(exact, rel=1e-8)
    assert mechanism.epsilon(exact, 2, rate, method="estimate") == pytest.approx(epsilon, rel=1e-12)


CASES = [
    (pn.Gaussian(std=1.0), 3, 0.01, 1e-8),
    (pn.Gaussian(std=1.0), 10, 1e-3, 1e-6),
    (pn.Gaussian(std=1.0), 10, 1e-4, 1e-12),
    (pn.Gaussian(std=1.0), 10, 0.01, 1e-100),
    (pn.Gaussian(std=1.0), 2000, 1e-4, 1e-100),
    (pn.Gaussian(std=1.0), 10**4, 1e-4, 1e-100),
    (pn.Gaussian(std=1.0), 10**4, 1e-6, 1e-9),
    (pn.Gaussian(std=0.44), 2400, 1.0 / 2400.0, 1e-5),
    (pn.Airy(mean_abs=2.0), 2, 1e-3, 1e-100),
    (pn.Cauchy(scale=1.0), 5, 1e-3, 1e-5),
]


@pytest.mark.parametrize(("law", "count", "rate", "delta"), CASES)
def test_where_losses_are_divided_does_not_matter(law, count, rate, delta, monkeypatch):
    log_delta = math.log(delta)
    steps = ((Pair(law, 1.0, rate), count),)
    epsilon = epsilon_in_direction(steps, "remove", log_delta)
    composition = Composition.of(steps, "remove", 1.3 * reach_for(log_delta, count))
    for expected, spread, steepest in ((0.3, 2.5, 60.0), (0.03, 4.0, 45.0)):
        monkeypatch.setattr(large_losses, "_EXPECTED", expected)
        monkeypatch.setattr(large_losses, "_SPREAD", spread)
        monkeypatch.setattr(large_losses, "_STEEPEST", steepest)
        division = Division.of(composition)
        assert division is not None
        profile = division.profile(epsilon)
        assert profile.error(epsilon) <= 10.0 * LARGEST_ERROR
        value, slope = profile.log_delta(epsilon)
        assert abs((value - log_delta) / slope) <= 1e-11 * epsilon


def test_one_line_and_many_agree():
    """Where a line is long and nothing cancels, it settles to what the sizes of losses give."""
    steps = ((Pair(pn.Gaussian(std=0.44), 1.0, 1.0 / 2400.0), 2400),)
    composition = Composition.of(steps, "remove", 80.0)
    line = trace(composition, composition.saddle_at_epsilon(4.0), 4.0)
    division = Division.of(composition)
    assert division is not None
    divided = division.profile(4.0)
    assert divided.log_delta(4.0)[0] == pytest.approx(line.log_delta(4.0)[0], abs=1e-10)


def test_several_kinds_of_steps():
    """Two kinds of steps that are next to the same one, and two that are not."""
    law, delta = pn.Gaussian(std=1.0), 1e-12
    accountant = pn.Accountant().compose(pn.Mechanism(law), 4, 1e-4)
    accountant.compose(pn.Mechanism(pn.Gaussian(std=1.0 + 1e-13)), 6, 1e-4)
    together = accountant.epsilon(delta, method="estimate")
    alone = pn.Mechanism(law).epsilon(delta, 10, 1e-4, method="estimate")
    assert together == pytest.approx(alone, rel=1e-10)
    other = pn.Accountant().compose(pn.Mechanism(law), 2, 0.01)
    other.compose(pn.Mechanism(pn.Airy(mean_abs=2.0)), 3, 0.05)
    bounds = other.epsilon(delta)
    assert bounds.lower <= other.epsilon(delta, method="estimate") <= bounds.upper


def test_a_division_keeps_all_of_the_measure():
    measure = Composition.of(((Pair(pn.Gaussian(std=1.0), 1.0, 0.01), 1),), "remove", 80.0)
    cuts = [Cut(0.01, 0.04), Cut(0.04, 0.1)]
    whole = measure.measures[0].resolving(cuts)
    windows = [Window(None, cuts[0]), Window(cuts[0], cuts[1]), Window(cuts[1], None)]
    parts = [whole.within(window) for window in windows]
    for c in (0.1, 3.0, 40.0):
        values = [part.tilted_moments(c).value for part in parts]
        assert np.logaddexp.reduce(values) == pytest.approx(whole.cumulants(c).value, abs=1e-13)
        # The same from the masses that are left, and from those that are lost.
        assert parts[0].cumulants(c) == pytest.approx(parts[0].tilted_moments(c), rel=1e-9)


def test_powers_of_a_small_modulus():
    """Two uses: what is left of each must be smaller than a rounding of 1."""
    small = np.array([1e-14 + 3e-15j, -2e-11j, 0.3 + 0.1j])
    assert log_power(small - 1.0, 2.0).real == pytest.approx(2.0 * np.log(np.abs(small)), rel=2e-3)


def test_an_alias_above_epsilon_is_far_enough(monkeypatch):
    """Of losses told apart finely: under the tilt two large ones weigh 1e-8 of what one does."""
    steps = ((Pair(pn.Gaussian(std=1.0), 1.0, 1e-4), 10**4),)
    composition = Composition.of(steps, "remove", reach_for(math.log(1e-100), 1e4))
    values = []
    for steepest in (60.0, 30.0):
        monkeypatch.setattr(large_losses, "_STEEPEST", steepest)
        division = Division.of(composition)
        assert division is not None
        values.append(division.profile(12.46885443092).log_delta(12.46885443092)[0])
    assert values[0] == pytest.approx(values[1], abs=3e-10)


def test_panels_resolve_a_large_tilt():
    """The tilted mass lies between nodes: one refinement does not show where."""
    composition = Composition.of(((Pair(pn.Cauchy(scale=1.0), 1.0, 0.1), 2),), "remove", 70.0)
    saddle = composition.saddle(2.4e6)
    resolved = composition.resolved(saddle, 0.0)
    assert resolved is not None
    measure = composition.measures[0]
    fine = measure.split(np.full(measure.panels, 400))
    exact = 2.0 * fine.cumulants(2.4e6).value
    assert resolved.saddle(2.4e6).value == pytest.approx(exact, abs=1e-8)
    assert abs(saddle.value - exact) > 1.0
