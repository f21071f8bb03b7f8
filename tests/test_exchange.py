"""Exchange of privacy loss distributions with dp_accounting, and discrete losses on their own."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

import psinoise as pn
from psinoise.accounting.discrete import DiscreteLoss, LossNodes, upper_delta, upper_epsilon
from psinoise.accounting.discrete import upper_nodes as nodes_of
from psinoise.accounting.pairs import Pair
from psinoise.adapters.dp_accounting import from_pld, to_pld

NOISES = [pn.Gaussian(std=1.5), pn.Laplace(scale=1.3), pn.Airy(mean_abs=1.2)]
USES = [(1, 1.0), (20, 1.0), (300, 0.05)]
DELTAS = [1e-3, 1e-6]


@pytest.fixture(scope="module")
def google() -> Any:
    return pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


def bias(step: float, count: int, epsilon: float, delta: float) -> float:
    """Bias in epsilon of connecting the dots, ``n h^2 (t + 1) / 12``, twice; and rounding."""
    tilt = 4.0 * -math.log(delta) / epsilon
    return count * step**2 * (tilt + 1.0) / 6.0 + 1e-8


@pytest.mark.parametrize("count_and_rate", USES, ids=str)
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_exported_numbers_are_upper_bounds(
    google: Any, noise: pn.Noise, count_and_rate: tuple[int, float]
) -> None:
    count, rate = count_and_rate
    mechanism = pn.Mechanism(noise)
    pld = to_pld(mechanism, count=count, sampling_rate=rate)
    accountant = pn.Accountant().compose(mechanism, count, rate)
    assert isinstance(pld, google.PrivacyLossDistribution)
    for delta in DELTAS:
        exact = mechanism.epsilon(delta, count, rate, method="estimate")
        found = pld.get_epsilon_for_delta(delta)
        # At the end of a bounded loss the bias is not quadratic, but never more than a step.
        most = 1e-4 if (noise, count) == (pn.Laplace(scale=1.3), 1) else 0.0
        assert 0.0 <= found - exact + 1e-12 < max(bias(1e-4, count, exact, delta), most)
        assert to_pld(accountant).get_epsilon_for_delta(delta) == found


@pytest.mark.parametrize("count_and_rate", USES, ids=str)
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_round_trip(google: Any, noise: pn.Noise, count_and_rate: tuple[int, float]) -> None:
    count, rate = count_and_rate
    mechanism = pn.Mechanism(noise)
    step = from_pld(to_pld(mechanism, sampling_rate=rate))
    assert step.symmetric == (rate == 1.0)
    composed = to_pld(mechanism, count=count, sampling_rate=rate)
    for delta in DELTAS:
        exact = mechanism.epsilon(delta, count, rate, method="estimate")
        ours = upper_epsilon((), [(step, count)], delta)
        theirs = composed.get_epsilon_for_delta(delta)
        # The same measures, convolved by them (1e-15 of tails is moved to infinity) and by us.
        assert ours == pytest.approx(theirs, abs=1e-7)
        assert exact <= ours + 1e-12
        assert upper_delta((), [(step, count)], ours) == pytest.approx(delta, rel=1e-7)
        again = upper_epsilon((), [(from_pld(composed), 1)], delta)
        assert again == pytest.approx(theirs, abs=1e-7)


def test_brackets_agree_with_their_accountant(google: Any) -> None:
    for count, rate in [(20, 1.0), (300, 0.05)]:
        plds = {
            pn.Gaussian(std=1.5): google.from_gaussian_mechanism(1.5, sampling_prob=rate),
            pn.Laplace(scale=1.3): google.from_laplace_mechanism(1.3, sampling_prob=rate),
        }
        for noise, pld in plds.items():
            for delta in DELTAS:
                bounds = pn.Mechanism(noise).epsilon(delta, count, rate)
                theirs = pld.self_compose(count).get_epsilon_for_delta(delta)
                assert bounds.lower <= theirs
                assert theirs - bounds.estimate < bias(1e-4, count, theirs, delta)
                # Their own distribution is a step of ours.
                step = upper_epsilon((), [(from_pld(pld), count)], delta)
                assert bounds.lower <= step == pytest.approx(theirs, abs=1e-6)


def test_mixed_compositions(google: Any) -> None:
    mechanism = pn.Mechanism(pn.Airy(mean_abs=1.2))
    half = pn.Accountant().compose(mechanism, 150, 0.05)
    step = from_pld(to_pld(mechanism, sampling_rate=0.05))
    mixed = upper_epsilon(half._steps, [(step, 150)], 1e-6)
    exact = mechanism.epsilon(1e-6, 300, 0.05, method="estimate")
    assert exact <= mixed < exact + bias(1e-4, 300, exact, 1e-6)
    gaussian = pn.Mechanism(pn.Gaussian(std=9.0))
    both = pn.Accountant().compose(mechanism, 150, 0.05).compose(gaussian, 3)
    exact = both.epsilon(1e-6, method="estimate")
    theirs = to_pld(both).get_epsilon_for_delta(1e-6)
    assert exact <= theirs < exact + 1e-3


def test_what_cannot_be_exchanged(google: Any) -> None:
    optimistic = google.from_laplace_mechanism(1.0, pessimistic_estimate=False)
    with pytest.raises(pn.DomainError, match="pessimistic"):
        from_pld(optimistic)
    with pytest.raises(TypeError, match="pld must be"):
        from_pld(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Accountant or a Mechanism"):
        to_pld(pn.Airy(mean_abs=1.0))  # type: ignore[arg-type]
    with pytest.raises(pn.DomainError, match="at least one step"):
        to_pld(pn.Accountant())
    with pytest.raises(pn.DomainError, match="discretization must be at most"):
        to_pld(pn.Mechanism(pn.Airy(mean_abs=1.0)), discretization=1.0)
    with pytest.raises(pn.CertificationError, match="a larger step is needed"):
        to_pld(pn.Mechanism(pn.Gaussian(std=0.01)))
    accountant = pn.Accountant().compose(pn.Mechanism(pn.Airy(mean_abs=1.0)))
    with pytest.raises(pn.DomainError, match="for an accountant"):
        to_pld(accountant, count=2)


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "dp_accounting"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for use in (lambda: to_pld(pn.Mechanism(pn.Airy(mean_abs=1.0))), lambda: from_pld(object())):  # type: ignore[arg-type]
        with pytest.raises(ModuleNotFoundError, match=r'pip install "psinoise\[dp-accounting\]"'):
            use()


# -- discrete losses, without the other package --------------------------------------------------


def two_points(epsilon: float, infinite: float = 0.0, step: float = 0.125) -> DiscreteLoss:
    """Randomized response, of losses ``epsilon`` and ``-epsilon``, and a revealing output."""
    half = round(epsilon / step)
    mass = np.zeros(2 * half + 1)
    mass[-1] = (1.0 - infinite) / (1.0 + math.exp(-epsilon))
    mass[0] = (1.0 - infinite) / (1.0 + math.exp(epsilon))
    nodes = LossNodes(-half, mass, infinite)
    return DiscreteLoss(step, {"remove": nodes, "add": nodes})


@pytest.mark.parametrize("infinite", [0.0, 1e-7])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_randomized_response_is_a_binomial_sum(count: int, infinite: float) -> None:
    step = two_points(0.5, infinite)
    above = 1.0 / (1.0 + math.exp(-0.5))
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        exact = 1.0 - (1.0 - infinite) ** count
        for k in range(count + 1):
            loss = (2 * k - count) * 0.5
            weight = math.comb(count, k) * above**k * (1.0 - above) ** (count - k)
            exact += (1.0 - infinite) ** count * weight * max(0.0, -math.expm1(epsilon - loss))
        found = upper_delta((), [(step, count)], epsilon)
        assert exact * (1.0 - 1e-12) <= found <= exact * (1.0 + 1e-6) + 1e-15
        if epsilon < 0.5 * count:
            assert upper_epsilon((), [(step, count)], (1.0 + 1e-7) * found) <= epsilon
            assert upper_epsilon((), [(step, count)], (1.0 - 1e-4) * found) > epsilon


def test_infinite_mass_is_never_lost() -> None:
    step = two_points(0.5, 1e-3)
    assert upper_epsilon((), [(step, 1)], 0.9e-3) == math.inf
    assert upper_epsilon((), [(step, 1)], 1.1e-3) < 0.5
    assert upper_delta((), [(step, 2)], math.inf) == pytest.approx(1.0 - 0.999**2)
    assert upper_delta((), [(step, 2)], -math.inf) == 1.0


def test_nodes_bound_the_profile_of_the_pair() -> None:
    for noise in NOISES:
        pair = Pair(noise, 1.0, 0.3)
        for way in ("remove", "add"):
            nodes = nodes_of(pair, way, 0.01, 60.0)  # type: ignore[arg-type]
            losses = (nodes.first + np.arange(nodes.mass.size)) * 0.01
            assert nodes.mass.sum() + nodes.infinite == pytest.approx(1.0, abs=1e-10)
            # The Q-mass is kept as well: the measure is that of a pair of distributions.
            assert nodes.mass @ np.exp(-losses) == pytest.approx(1.0, abs=1e-8)


def test_discrete_losses_are_checked() -> None:
    good = two_points(0.5).nodes["remove"]
    for step in (0.0, -1.0, 0.75, math.nan):
        with pytest.raises(pn.DomainError, match="step must be"):
            DiscreteLoss(step, {"remove": good, "add": good})
    for mass in ([0.5, 0.4], [1.5, -0.5], [math.nan, 1.0], []):
        bad = LossNodes(0, np.array(mass), 0.0)
        with pytest.raises(pn.DomainError):
            DiscreteLoss(0.1, {"remove": good, "add": bad})
    with pytest.raises(pn.DomainError, match="share one lattice"):
        upper_epsilon((), [(two_points(0.5), 1), (two_points(0.5, step=0.25), 1)], 1e-6)
