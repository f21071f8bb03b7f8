"""Exchange of privacy loss distributions with dp_accounting, and both accountants side by side."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

import pytest

import psinoise as pn
from psinoise.adapters.dp_accounting import from_pld, to_pld
from psinoise.mechanisms import DiscreteLoss

NOISES = [pn.Gaussian(std=1.5), pn.Laplace(scale=1.3), pn.Airy(mean_abs=1.2)]
USES = [(1, 1.0), (20, 1.0), (300, 0.05)]
DELTAS = [1e-3, 1e-6]


@pytest.fixture(scope="module")
def google() -> Any:
    return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")


def upper_epsilon(step: DiscreteLoss, count: int, delta: float) -> float:
    return pn.Accountant().compose(step, count).epsilon(delta).upper


def is_just_above(ours: float, theirs: float) -> bool:
    """Whether our upper bound is theirs, up to the width of our brackets.

    Both compose the same measures; they move 1e-15 of tails to infinity.
    """
    return theirs * (1.0 - 1e-9) <= ours <= theirs * (1.0 + 1e-4)


def bias(step: float, count: int, epsilon: float, delta: float) -> float:
    """Bias in epsilon of connecting the dots, ``n h^2 (t + 1) / 12``, twice; and rounding."""
    tilt = 4.0 * -math.log(delta) / epsilon
    return count * step**2 * (tilt + 1.0) / 6.0 + 1e-8


@pytest.mark.deep
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
        exact = mechanism.composed(count, rate).estimate.epsilon(delta)
        found = pld.get_epsilon_for_delta(delta)
        assert mechanism.epsilon(delta, count, rate).lower <= found
        # At the end of a bounded loss the bias is not quadratic, but never more than a step.
        most = 1e-4 if (noise, count) == (pn.Laplace(scale=1.3), 1) else 0.0
        # Where no contour settles, which those of Laplace noise may not do, this is the error.
        error = 1e-6 * exact if isinstance(noise, pn.Laplace) else 1e-12
        assert -error <= found - exact < max(bias(1e-4, count, exact, delta), most) + error
        assert to_pld(accountant).get_epsilon_for_delta(delta) == found


@pytest.mark.deep
@pytest.mark.parametrize("count_and_rate", USES, ids=str)
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_round_trip(google: Any, noise: pn.Noise, count_and_rate: tuple[int, float]) -> None:
    count, rate = count_and_rate
    mechanism = pn.Mechanism(noise)
    step = from_pld(to_pld(mechanism, sampling_rate=rate))
    assert step.symmetric == (rate == 1.0)
    composed = to_pld(mechanism, count=count, sampling_rate=rate)
    for delta in DELTAS:
        imported = pn.Accountant().compose(step, count)
        ours = imported.epsilon(delta).upper
        theirs = composed.get_epsilon_for_delta(delta)
        assert is_just_above(ours, theirs)
        assert mechanism.epsilon(delta, count, rate).lower <= ours
        # A share of 1e-4 of epsilon, twice, is worth at most 1 % of these deltas.
        assert imported.delta(ours).upper == pytest.approx(delta, rel=1e-2)
        again = upper_epsilon(from_pld(composed), 1, delta)
        assert is_just_above(again, theirs)


def test_imported_losses_are_composed_as_narrowly_as_is_asked(google: Any) -> None:
    pld = google.from_laplace_mechanism(1.3, sampling_prob=0.05)
    theirs = pld.self_compose(300).get_epsilon_for_delta(1e-6)
    accountant = pn.Accountant().compose(from_pld(pld), 300)
    with pytest.raises(pn.CertificationError) as reached:  # nothing is known from below
        accountant.epsilon(1e-6, tolerance=1e-5)
    ours = float(reached.value.bracket)
    assert theirs - 1e-9 <= ours <= theirs + 1e-5


def test_imported_losses_bound_nothing_from_below(google: Any) -> None:
    pld = google.from_gaussian_mechanism(2.0, sampling_prob=0.1)
    accountant = pn.Accountant().compose(from_pld(pld), 7)
    alone = accountant.epsilon(1e-6)
    assert alone.lower == 0.0 < alone.estimate <= alone.upper
    own = pn.Mechanism(pn.Gaussian(std=3.0))
    both = accountant.compose(own, 2).epsilon(1e-6)
    assert both.lower == own.epsilon(1e-6, 2).lower
    assert own.epsilon(1e-6, 2).upper < both.upper
    with pytest.raises(pn.CertificationError) as refused:
        accountant.epsilon(1e-6, tolerance=1e-3)
    assert refused.value.bracket.upper == pytest.approx(both.upper, abs=1e-3)


def test_brackets_agree_with_their_accountant(google: Any) -> None:
    for count, rate in [(20, 1.0), (300, 0.05)]:
        plds = {
            pn.Gaussian(std=1.5): google.from_gaussian_mechanism(1.5, sampling_prob=rate),
            pn.Laplace(scale=1.3): google.from_laplace_mechanism(1.3, sampling_prob=rate),
        }
        for noise, pld in plds.items():
            for delta in DELTAS:
                mechanism = pn.Mechanism(noise)
                bounds = mechanism.epsilon(delta, count, rate)
                exact = mechanism.composed(count, rate).estimate.epsilon(delta)
                theirs = pld.self_compose(count).get_epsilon_for_delta(delta)
                assert bounds.lower <= theirs
                most = bias(1e-4, count, theirs, delta) + 1e-6 * exact
                assert theirs - exact < most
                # Their own distribution is a step of ours.
                step = upper_epsilon(from_pld(pld), count, delta)
                assert bounds.lower <= step
                assert is_just_above(step, theirs)


def test_mixed_compositions(google: Any) -> None:
    mechanism = pn.Mechanism(pn.Airy(mean_abs=1.2))
    half = pn.Accountant().compose(mechanism, 150, 0.05)
    step = from_pld(to_pld(mechanism, sampling_rate=0.05))
    mixed = half.compose(step, 150).epsilon(1e-6).upper
    exact = mechanism.composed(300, 0.05).estimate.epsilon(1e-6)
    assert exact <= mixed < exact * (1.0 + 1e-4) + bias(1e-4, 300, exact, 1e-6)
    gaussian = pn.Mechanism(pn.Gaussian(std=9.0))
    both = pn.Accountant().compose(mechanism, 150, 0.05).compose(gaussian, 3)
    exact = both.estimate.epsilon(1e-6)
    theirs = to_pld(both).get_epsilon_for_delta(1e-6)
    assert exact <= theirs < exact + 1e-3


@pytest.mark.deep
@pytest.mark.parametrize("count_and_rate", [(4, 1.0), (20, 1.0), (300, 0.05)], ids=str)
@pytest.mark.parametrize("noise", NOISES[:2], ids=repr)
def test_brackets_lie_between_their_bounds(
    google: Any, noise: pn.Noise, count_and_rate: tuple[int, float]
) -> None:
    """Their pessimistic value is above our lower bound, their optimistic one below our upper.

    Their convolutions are not certified; 1e-9 of epsilon is far above what they lose at 1e-6.
    """
    count, rate = count_and_rate
    construct = {
        "Gaussian": google.from_gaussian_mechanism,
        "Laplace": google.from_laplace_mechanism,
    }[type(noise).__name__]
    pessimistic, optimistic = (
        construct(
            noise.scale,
            sampling_prob=rate,
            value_discretization_interval=1e-4,
            pessimistic_estimate=side,
        ).self_compose(count)
        for side in (True, False)
    )
    accountant = pn.Accountant().compose(pn.Mechanism(noise), count, rate)
    for delta in DELTAS:
        bounds = accountant.epsilon(delta)
        above = pessimistic.get_epsilon_for_delta(delta)
        below = optimistic.get_epsilon_for_delta(delta)
        assert below - 1e-9 <= bounds.upper
        assert bounds.lower <= above + 1e-9
        for epsilon in (0.5 * bounds.estimate, 0.9 * bounds.estimate):
            deltas = accountant.delta(epsilon)
            assert deltas.lower <= pessimistic.get_delta_for_epsilon(epsilon) * (1.0 + 1e-9)
            assert deltas.upper >= optimistic.get_delta_for_epsilon(epsilon) * (1.0 - 1e-9)


def test_an_imported_loss_goes_back(google: Any) -> None:
    pld = google.from_gaussian_mechanism(2.0, sampling_prob=0.1)
    accountant = pn.Accountant().compose(from_pld(pld), 7)
    back = to_pld(accountant)
    theirs = pld.self_compose(7).get_epsilon_for_delta(1e-6)
    assert back.get_epsilon_for_delta(1e-6) == pytest.approx(theirs, abs=1e-9)
    accountant.compose(pn.Mechanism(pn.Gaussian(std=3.0)), 2)
    both = to_pld(accountant).get_epsilon_for_delta(1e-6)
    assert is_just_above(accountant.epsilon(1e-6).upper, both)
    with pytest.raises(pn.DomainError, match="discretization must be that of the imported"):
        to_pld(accountant, discretization=1e-3)


def test_noise_of_convolutions_far_below_0_is_no_reason_to_refuse(google: Any) -> None:
    """It adds up to 74, 1.06, 6e14 and more under the other law; kills masses taken as they are."""
    made = [
        (google.from_gaussian_mechanism(0.6, sampling_prob=0.01).self_compose(1000), 1e-5),
        (google.from_gaussian_mechanism(0.5).self_compose(2), 1e-6),
        (
            google.from_gaussian_mechanism(1.0, value_discretization_interval=1e-2).self_compose(5),
            1e-6,
        ),
        (
            google.from_mixture_gaussian_mechanism(
                0.545, [0, 1, 2], [0.25, 0.25, 0.5], value_discretization_interval=1e-2
            ),
            1e-6,
        ),
    ]
    for pld, delta in made:
        ours = upper_epsilon(from_pld(pld), 1, delta)
        assert is_just_above(ours, pld.get_epsilon_for_delta(delta))


def test_masses_of_the_wrong_sign_are_no_noise(google: Any) -> None:
    """Kills moving whatever does not add up: of losses under the other law that is all of it."""
    pld = google.from_gaussian_mechanism(0.5, value_discretization_interval=1e-2)
    right = pld._pmf_remove.to_dense_pmf()
    pld._pmf_remove = type(right)(
        right._discretization, -right._lower_loss - right.size + 1, right._probs[::-1], 0.0, True
    )
    with pytest.raises(pn.DomainError, match="probabilities under the other law"):
        from_pld(pld)


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
