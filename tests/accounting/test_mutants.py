"""Plausible mistakes in certified accounting, each put in and each seen by an oracle.

A bound that is never on the wrong side in a test may be so because the test cannot see it. Here a
piece is replaced by what a careless implementation would do; the oracle, which accepts the real
thing, must reject it. Two more mutants of the lattices are in ``test_certified.py`` (all mass to
the lower node: losses rounded down; all mass to the upper node), and dropping the mass of infinite
losses is in ``test_discrete_losses.py``.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
from profile_oracles import brute_force_delta, gaussian_delta, gaussian_epsilon, subsampled_delta

import psinoise as pn
from psinoise.accounting.certified import certify_delta, certify_epsilon
from psinoise.accounting.contour import estimate
from psinoise.accounting.lattice import frequencies
from psinoise.accounting.lattice.bounds import NodeMeasure
from psinoise.accounting.lattice.convolution import Profile, compose, window_needed, window_size
from psinoise.accounting.lattice.target import Target
from psinoise.accounting.loss.pairs import Pair
from psinoise.noise import FAMILIES

COUNT = 100
# Of the lattice: a bias of 1e-3 in epsilon, whose deviation is 10.
STEP = 0.01
STEPS = ((Pair(pn.Gaussian(std=1.0), 1.0, 1.0), COUNT),)


def accepted(delta):
    """Whether certified bounds are given, hold, and are as narrow as they say."""
    exact = gaussian_epsilon(mp.sqrt(COUNT), delta)
    try:
        bounds = certify_epsilon.certify_epsilon(STEPS, delta, None)
    except pn.CertificationError:
        return False
    return bounds.lower <= exact <= bounds.upper and bounds.width <= 1e-4 * float(exact)


@pytest.mark.parametrize("delta", [1e-2, 1e-8, 1e-30, 1e-100])
def test_the_real_thing_is_accepted(delta):
    assert accepted(delta)


def test_no_tilt(monkeypatch):
    """A plain Fourier transform drowns in its rounding."""
    monkeypatch.setattr(Target, "tilt", 1e-3)
    assert not accepted(1e-30)


def test_wrap_around(monkeypatch):
    """A window that is too small, and said to be large enough: mass comes back that is not there.

    The bounds are compared before the estimate is put between them.
    """
    exact = gaussian_epsilon(mp.sqrt(COUNT), 1e-8)
    target = Target(STEPS, "remove", math.log(1e-8), float(exact), 1e-2)

    def below():
        return certify_epsilon.profile_bound(target, STEP, "lower").log_delta(float(exact))

    def narrow(parts, tail):
        first, size = window_needed(parts, tail)
        return first + 3 * size // 8, size // 4

    assert below() <= math.log(1e-8)
    monkeypatch.setattr(frequencies, "window_needed", narrow)
    assert below() > math.log(1e-8) + 1e-2


@pytest.mark.parametrize(("way", "epsilon"), [("remove", 0.5), ("add", -0.5)])
def test_one_direction_only(monkeypatch, way, epsilon):
    """Which direction of a sampled step is worse depends on epsilon."""
    rate, other = 0.3, {"remove": "add", "add": "remove"}[way]
    steps = ((Pair(pn.Gaussian(std=1.0), 1.0, rate), 1),)

    def delta(direction):
        return subsampled_delta(lambda e: gaussian_delta(e, 1.0), epsilon, rate, direction)

    assert delta(way) > delta(other)
    bounds = certify_delta.delta_bounds(steps, epsilon, None)
    assert bounds.lower <= delta(way) <= bounds.upper
    for module in (certify_delta, estimate):
        monkeypatch.setattr(module, "directions", lambda steps: (other,))
    assert certify_delta.delta_bounds(steps, epsilon, None).upper < delta(way)


def two_points(loss, slack):
    """Randomized response with odds ``e^loss``, as nodes whose losses are known to the slack."""
    keep = math.exp(loss) / (1.0 + math.exp(loss))
    nodes = np.zeros(9)
    nodes[0], nodes[8] = 1.0 - keep, keep * math.exp(2.0 * loss)
    total = float(nodes.sum())
    return NodeMeasure(
        loss / 4.0, 0.0, np.arange(-4, 5), nodes / total, 1.0, math.log(total) - loss, 0.0, slack
    )


@pytest.mark.parametrize(("sign", "side"), [(1.0, "above"), (-1.0, "below")])
def test_logarithm_rounded_the_wrong_way(sign, side):
    """True losses are off by the slack, to the side that the bound is for."""
    loss, slack, count, epsilon = 0.25, 1e-3, 20, 1.0
    exact = mp.mpf(0)
    keep = 1 / (1 + mp.exp(-mp.mpf(loss)))
    for ups in range(count + 1):
        value = (2 * ups - count) * mp.mpf(loss) + sign * count * mp.mpf(slack)
        weight = mp.binomial(count, ups) * keep**ups * (1 - keep) ** (count - ups)
        exact += weight * max(0, 1 - mp.exp(epsilon - value))

    def bound(measure):
        parts = [(measure, count)]
        return mp.exp(Profile(compose(parts, *window_size(parts, 1e-18)), sign).log_delta(epsilon))

    honest = two_points(loss, slack)
    # Losses that are off the other way, or exact, are what a mutant believes.
    mutants = [dataclasses.replace(honest, slack=wrong) for wrong in (0.0, -slack)]
    assert (bound(honest) - exact) * sign >= 0, side
    assert all((bound(mutant) - exact) * sign < 0 for mutant in mutants)


# -- the shift by the whole sensitivity alone ------------------------------------------------------


@dataclass(frozen=True)
class TwoHills:
    """Half of the noise around each of two places, which no lemma covers."""

    scale: float = 1.0
    log_concave = False
    unimodal = False
    kinks = ()
    score_limit = math.inf

    def logpdf(self, x):
        x = np.asarray(x) / self.scale
        left, right = -0.5 * ((x + 3.0) / 0.5) ** 2, -0.5 * ((x - 3.0) / 0.5) ** 2
        return np.logaddexp(left, right) - math.log(math.sqrt(2.0 * math.pi) * self.scale)


def shifted_delta(law, epsilon, shift):
    """Delta for neighbors that differ by ``shift``, by the trapezoidal rule: a scaled law by 1."""
    return brute_force_delta(
        lambda x: law.logpdf(x * shift) + math.log(shift), epsilon, 1e7, 400_001
    )


def test_two_hills_are_worse_at_half_the_shift():
    """The mutant believes the whole shift: a hill then lies on the other hill."""
    law = TwoHills(1.0 / 6.0)
    whole, half = (shifted_delta(law, 0.5, shift) for shift in (1.0, 0.5))
    assert whole < 0.6
    assert half > 0.9
    with pytest.raises(pn.DomainError, match="unimodal"):
        pn.Mechanism(law).delta(0.5, method="estimate")


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("family", [pn.Cauchy, *FAMILIES], ids=lambda family: family.__name__)
def test_no_smaller_shift_is_worse(family, epsilon):
    law = family(scale=1.5)
    certified = hasattr(law, "_table")
    bound = float(pn.Mechanism(law).delta(epsilon, method="certified" if certified else "estimate"))
    for shift in (1.0, 0.9, 0.5, 0.1):
        # The rule is off by 1e-8 with kinks.
        assert shifted_delta(law, epsilon, shift) <= bound + 1e-7


def test_a_loss_that_is_not_monotone():
    """Cauchy noise of scale 2: a shortcut through ``P(X > x)`` finds nothing above epsilon 0.4.

    The loss is above 0.4 on an interval, not on a half line; the truth is 0.0151.
    """
    law = pn.Cauchy(scale=2.0)
    assert pn.Mechanism(law).delta(0.4, method="estimate") == pytest.approx(0.0151, abs=5e-5)
    tails = np.arctan2(law.scale, np.array([1e3, 1e6]) - 1.0) / math.pi
    more = np.arctan2(law.scale, np.array([1e3, 1e6])) / math.pi
    assert np.all(tails - math.exp(0.4) * more < 0.0)
