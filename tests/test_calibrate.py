"""Calibration: the target is met, by a proof, and hardly any noise is wasted."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import psinoise as pn
from psinoise.accounting.bracket import Bracket
from psinoise.accounting.question import Question
from psinoise.calibration import Calibration, calibrate, calibration
from psinoise.calibration import target as target_module
from psinoise.calibration.target import Target
from psinoise.noise import FAMILIES, Family
from refusals import for_each, for_rows

# epsilon, delta, count, sampling rate
TARGETS = [
    (1.0, 1e-6, 1000, 0.01),
    (1.0, 1e-6, 1, 1.0),
    (0.3, 1e-5, 30, 1.0),
    (0.05, 1e-8, 50, 0.05),
    (3.0, 1e-12, 500, 1.0),
    (8.0, 1e-5, 10000, 0.05),
]
# Where the pure scale is as good, one step below it is far above the target.
NEARLY_PURE = 1.0 + 1e-4
# Up to the rounding of a largest loss.
ONE = 1.0 + 1e-14


def delta_of(noise: pn.Noise, target: tuple[float, float, int, float], method: str) -> Any:
    epsilon, _, count, rate = target
    composed = pn.Mechanism(noise).composed(count, rate)
    return (composed.estimate if method == "estimate" else composed).delta(epsilon)


def calibrated(law: type[pn.Noise], target: tuple[float, float, int, float]) -> Calibration:
    epsilon, delta, count, rate = target
    return calibration(law, epsilon=epsilon, delta=delta, count=count, sampling_rate=rate)


@pytest.mark.deep
@pytest.mark.parametrize("law", FAMILIES, ids=lambda law: law.__name__)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_target_is_met_and_little_noise_wasted(
    law: type[pn.Noise], target: tuple[float, float, int, float]
) -> None:
    found = calibrated(law, target)
    delta = target[1]
    assert found.delta.lower <= found.delta.estimate <= found.delta.upper <= delta
    assert found.excess <= 1e-4
    # Independently of what the calibration says about itself, by the estimate on both sides.
    assert delta_of(found.noise, target, "estimate") <= delta
    build: Any = law
    less = build(scale=found.noise.scale / NEARLY_PURE)
    assert delta_of(less, target, "estimate") > delta


@pytest.mark.deep
@pytest.mark.parametrize(("epsilon", "count", "rate"), [(4.0, 2400, 1 / 2400), (0.1, 10, 1e-3)])
def test_rare_large_losses(epsilon: float, count: int, rate: float) -> None:
    """Where each record is used once or so: one use with a large loss decides."""
    target = (epsilon, 1e-5, count, rate)
    found = calibrated(pn.Gaussian, target)
    assert found.delta.upper <= 1e-5
    assert found.excess <= 1e-4
    less = pn.Gaussian(std=found.noise.scale / (1.0 + found.excess) * (1.0 - 5e-6))
    assert delta_of(less, target, "estimate") > 1e-5


def test_the_guess_is_not_at_the_largest_loss() -> None:
    """One use of Laplace noise has its share of delta just where the profile of ten has a kink."""
    found = calibration(pn.Laplace, epsilon=1.0, delta=1e-5, count=10, sampling_rate=1e-3)
    assert found.delta.upper <= 1e-5
    assert found.excess <= 1e-4


@pytest.mark.deep
@pytest.mark.parametrize("law", FAMILIES, ids=lambda law: law.__name__)
def test_what_mechanism_says_by_default(law: Family) -> None:
    for epsilon, delta, count, rate in TARGETS:
        noise = calibrated(law, (epsilon, delta, count, rate)).noise
        use = (count, rate)
        assert pn.Mechanism(noise).epsilon(delta, *use).upper <= epsilon
        assert pn.Mechanism(noise).delta(epsilon, *use).upper <= delta
        less = pn.Mechanism(law(scale=0.9998 * noise.scale))
        assert less.epsilon(delta, *use).lower > epsilon


# What a mechanism may be used for: law, epsilon, delta, and the rest.
HEAVY = Family(pn.SymmetricStable, alpha=1.5)
QUESTIONS: list[tuple[Any, float, float, dict[str, Any]]] = [
    (pn.Airy, 1.0, 1e-6, {"count": 10}),
    (pn.Airy, 5.0, 1e-8, {"count": 3, "sensitivity": 7.0}),
    (pn.Airy, 4.0, 1e-5, {"count": 2400, "sampling_rate": 1.0 / 2400.0}),
    (pn.Gaussian, 0.01, 1e-5, {"count": 20}),
    (pn.Gaussian, 1.0, 1e-5, {"count": 20_000, "sampling_rate": 1e-3}),
    (
        pn.Gaussian,
        1.0,
        1e-6,
        {"count": 1000, "sampling_rate": 0.01, "adjacency": "replace", "contribution": 0.5},
    ),
    (pn.Gaussian, 0.0, 1e-3, {"count": 5}),
    (pn.Laplace, 0.5, 1e-9, {"count": 365}),
    (pn.Laplace, 1.0, 1e-6, {"count": 10, "adjacency": "replace"}),
    (pn.Laplace, 0.1, 1e-5, {"count": 10, "sampling_rate": 1e-3}),
    (HEAVY, 1.0, 1e-6, {"count": 20}),
    (HEAVY, 0.2, 1e-5, {"count": 100}),
]


@pytest.mark.deep
@pytest.mark.parametrize(("law", "epsilon", "delta", "words"), QUESTIONS, ids=str)
def test_both_questions_are_answered_within_the_target(
    law: Any, epsilon: float, delta: float, words: dict[str, Any]
) -> None:
    found = calibration(law, epsilon=epsilon, delta=delta, **words)
    assert 0.0 <= found.excess <= 1e-4
    size = words.get("sensitivity", 1.0), words.get("contribution")
    use = {key: words[key] for key in ("count", "sampling_rate", "adjacency") if key in words}
    mechanism = pn.Mechanism(found.noise, size[0], contribution=size[1])
    assert mechanism.epsilon(delta, **use).upper <= epsilon
    assert mechanism.delta(epsilon, **use).upper == found.delta.upper <= delta
    noise = law(scale=found.noise.scale * (1.0 - 2e-4))
    less = pn.Mechanism(noise, size[0], contribution=size[1])
    if epsilon > 0.0:
        assert less.epsilon(delta, **use).lower > epsilon
    else:
        assert less.delta(0.0, **use).lower > delta


def test_gaussian_against_the_analytic_formula() -> None:
    # Balle and Wang (2018): delta = Phi(s/2b - eps b/s) - e^eps Phi(-s/2b - eps b/s).
    def excess(std: float, epsilon: float, delta: float) -> float:
        high, low = 0.5 / std - epsilon * std, -0.5 / std - epsilon * std
        return stats.norm.cdf(high) - math.exp(epsilon) * stats.norm.cdf(low) - delta

    for epsilon, delta in [(1.0, 1e-5), (0.0, 1e-3), (0.1, 1e-6), (5.0, 1e-8), (1.0, 0.3)]:
        exact = optimize.brentq(excess, 1e-2, 1e5, args=(epsilon, delta), xtol=1e-13)
        found = calibrate(pn.Gaussian, epsilon=epsilon, delta=delta).std
        assert exact < found < exact * (1.0 + 1e-4)
        # n uses at sensitivity s are one use at s sqrt(n).
        many = calibrate(pn.Gaussian, epsilon=epsilon, delta=delta, sensitivity=0.1, count=25).std
        assert 0.5 * exact < many < 0.5 * exact * (1.0 + 1e-4)


def test_laplace_without_delta_is_exact() -> None:
    assert calibrate(pn.Laplace, epsilon=0.5, delta=0.0, sensitivity=3.0) == pn.Laplace(scale=6.0)
    # The largest loss of a scale of 70 may be more than 0.1, by its rounding.
    assert 70.0 <= calibrate(pn.Laplace, epsilon=0.1, delta=0.0, count=7).scale < 70.0 * ONE
    found = calibrate(pn.Laplace, epsilon=1.0, delta=0.0, count=3, sampling_rate=0.25)
    # Each use may lose 1/3 = log(1 + q (e^(s/b) - 1)).
    exact = 1.0 / math.log1p(math.expm1(1.0 / 3.0) / 0.25)
    assert exact * (1.0 - 1e-15) <= found.scale < exact * (1.0 + 1e-13)
    for epsilon in (1e-9, 1e-3, 700.0, 1e5):
        assert calibrate(pn.Laplace, epsilon=epsilon, delta=0.0).scale * epsilon == pytest.approx(
            1.0, rel=1e-13
        )


@given(
    epsilon=st.floats(1e-6, 1e3),
    count=st.integers(1, 10**9),
    rate=st.floats(1e-6, 1.0),
    sensitivity=st.floats(1e-100, 1e100),
)
@settings(max_examples=60, deadline=None)
def test_pure_targets_are_met(epsilon: float, count: int, rate: float, sensitivity: float) -> None:
    words = {"epsilon": epsilon, "sensitivity": sensitivity, "count": count, "sampling_rate": rate}
    try:
        noise = calibrate(pn.Laplace, delta=0.0, **words)  # type: ignore[arg-type]
    except pn.CalibrationError as error:
        assert "sensitivities" in str(error)
        return
    for size, meets in ((1.0, True), (1.0 - 1e-10, False)):
        mechanism = pn.Mechanism(pn.Laplace(scale=size * noise.scale), sensitivity)
        assert (mechanism.composed(count, rate).estimate.epsilon(0.0) <= epsilon) is meets


def test_tiny_deltas_of_pure_laws_take_the_pure_scale() -> None:
    assert calibrate(pn.Laplace, epsilon=1.0, delta=1e-300) == pn.Laplace(scale=1.0)
    assert calibrate(pn.Laplace, epsilon=2.0, delta=1e-12) == pn.Laplace(scale=0.5)


@pytest.mark.parametrize("law", [pn.Gaussian, pn.Airy], ids=lambda law: law.__name__)
def test_delta_of_1e_300(law: type[pn.Noise]) -> None:
    target = (1.0, 1e-300, 1, 1.0)
    found = calibrated(law, target)
    assert 0.0 < found.delta.upper <= 1e-300
    assert delta_of(
        type(found.noise)(scale=found.noise.scale / NEARLY_PURE), target, "estimate"
    ) > (  # type: ignore[call-arg]
        1e-300
    )


def test_epsilon_zero_is_the_total_variation() -> None:
    # Airy: P(|Z| < s/2) is s p(0) = s / (3 C) to first order.
    assert calibrate(pn.Airy, epsilon=0.0, delta=1e-3).mean_abs == pytest.approx(
        1e3 / 3.0, rel=1e-3
    )
    # Laplace: 1 - exp(-s / 2 b).
    exact = -0.5 / math.log1p(-0.2)
    assert exact < calibrate(pn.Laplace, epsilon=0.0, delta=0.2).scale < exact * (1.0 + 1e-4)


def test_scale_is_in_units_of_the_sensitivity() -> None:
    one = calibrate(pn.Airy, epsilon=1.0, delta=1e-6, count=10)
    for unit in (1e-150, 0.3, 7e200):
        other = calibrate(pn.Airy, epsilon=1.0, delta=1e-6, count=10, sensitivity=unit)
        assert other.scale / unit == pytest.approx(one.scale, rel=1e-7)


@pytest.mark.deep
@pytest.mark.parametrize("law", FAMILIES, ids=lambda law: law.__name__)
def test_monotone(law: type[pn.Noise]) -> None:
    base: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "count": 100, "sampling_rate": 0.1}

    def scale(**changes: Any) -> float:
        return calibrate(law, **{**base, **changes}).scale

    least = scale()
    assert scale(epsilon=0.9) > least > scale(epsilon=1.1)
    assert scale(delta=1e-7) > least > scale(delta=1e-5)
    assert scale(count=110) > least > scale(count=90)
    assert scale(sampling_rate=0.11) > least > scale(sampling_rate=0.09)
    assert scale(sensitivity=1.1) > least


def test_laws_are_ordered_as_in_the_paper() -> None:
    # Figure 2: for many small steps Airy needs the least E|Z|, then the Gaussian, then Laplace.
    many = {"epsilon": 1.0, "delta": 1e-6, "count": 1000, "sampling_rate": 0.01}
    costs = [calibrate(law, **many).mean_abs for law in (pn.Airy, pn.Gaussian, pn.Laplace)]
    assert costs == sorted(costs)
    assert costs[2] > 1.05 * costs[0]
    # For a single use it is the other way round.
    once = {"epsilon": 1.0, "delta": 1e-6}
    costs = [calibrate(law, **once).mean_abs for law in (pn.Laplace, pn.Airy, pn.Gaussian)]
    assert costs == sorted(costs)


def test_large_compositions_tend_to_the_fisher_information() -> None:
    # The privacy of very many small steps depends on s^2 I alone.
    words = {"epsilon": 1.0, "delta": 1e-5, "count": 10**5, "sampling_rate": 0.001}
    information = [
        calibrate(law, method="estimate", **words).fisher_information()
        for law in (pn.Airy, pn.Gaussian)
    ]
    assert information[0] == pytest.approx(information[1], rel=0.15)


def test_estimate_is_the_same_to_the_certificate() -> None:
    words = {"epsilon": 1.0, "delta": 1e-6, "count": 100, "sampling_rate": 0.1}
    certified = calibrate(pn.Airy, **words)
    estimated = calibrate(pn.Airy, method="estimate", **words)
    assert estimated.scale < certified.scale < estimated.scale * (1.0 + 1e-4)
    mechanism = pn.Mechanism(estimated)
    assert mechanism.composed(100, 0.1).estimate.delta(1.0) <= 1e-6


def test_any_callable_that_takes_a_scale() -> None:
    made: list[float] = []

    def law(*, scale: float) -> pn.Noise:
        made.append(scale)
        return pn.Airy(scale=scale)

    assert calibrate(law, epsilon=1.0, delta=1e-6) == calibrate(pn.Airy, epsilon=1.0, delta=1e-6)
    assert made
    assert calibrate(functools.partial(pn.Laplace), epsilon=1.0, delta=0.0).scale == 1.0
    with pytest.raises(TypeError, match="law must make noise laws"):
        calibrate(lambda scale: scale, epsilon=1.0, delta=1e-6)  # type: ignore[arg-type, return-value]


def test_what_cannot_be_certified_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Vague(Question):
        def epsilon(self, delta: float) -> Bracket:
            found = super().epsilon(delta)
            return found if self.estimating else Bracket(0.0, found.estimate, math.inf)

    monkeypatch.setattr(target_module, "Question", Vague)
    with pytest.raises(pn.CertificationError, match="could be certified"):
        calibrate(pn.Airy, epsilon=1.0, delta=1e-6)

    # A law with a largest loss has a scale that needs no certificate, at a price that is told.
    words = {"epsilon": 1.0, "delta": 1e-2, "count": 100}
    found = calibration(pn.Laplace, **words)
    assert 100.0 <= found.noise.scale < 100.0 * ONE
    least = calibrate(pn.Laplace, method="estimate", **words).scale
    assert 1.0 + found.excess == pytest.approx(100.0 / least, rel=1e-4)

    # An accountant that saw nothing at all is no proof for a law without a largest loss.
    class Blind(Question):
        def delta(self, epsilon: float) -> Bracket:
            return Bracket(0.0, 0.0, 0.0)

    monkeypatch.setattr(target_module, "Question", Blind)
    with pytest.raises(pn.CertificationError, match="could not be told from 0"):
        calibrate(pn.Airy, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": -0.1}, pn.DomainError, "epsilon must be in"),
        ({"epsilon": math.nan}, pn.DomainError, "epsilon must not be NaN"),
        ({"epsilon": math.inf}, pn.DomainError, "epsilon must be in"),
        ({"epsilon": 1e6}, pn.DomainError, "epsilon must be in"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a real number"),
        ({"delta": -1e-9}, pn.DomainError, "delta must be in"),
        ({"delta": 1.0}, pn.DomainError, "delta must be below 1"),
        ({"delta": math.nan}, pn.DomainError, "delta must be in"),
        ({"delta": None}, TypeError, "delta must be a real number"),
        ({"sensitivity": 0.0}, pn.DomainError, "sensitivity must be positive"),
        ({"sensitivity": math.inf}, pn.DomainError, "sensitivity must be positive"),
        ({"count": 0}, pn.DomainError, "count must be at least 1"),
        ({"count": 1.0}, TypeError, "count must be an integer"),
        ({"count": 2**63}, OverflowError, "count must be at most"),
        ({"sampling_rate": 0.0}, pn.DomainError, "sampling_rate must be positive"),
        ({"sampling_rate": 1.5}, pn.DomainError, "sampling_rate must be in"),
        ({"adjacency": "add"}, pn.DomainError, "adjacency must be one of"),
        ({"method": "renyi"}, pn.DomainError, "method must be one of"),
        ({"law": pn.Airy(scale=1.0)}, TypeError, "law must be a noise class"),
        ({"law": "airy"}, TypeError, "law must be a noise class"),
        ({"law": pn.DiscreteStable}, TypeError, r"needs alpha: .*DiscreteStable, alpha=\.\.\."),
        ({"law": Family(pn.DiscreteStable)}, TypeError, "needs alpha"),
        ({"epsilon": 0.0, "delta": 0.0}, pn.CalibrationError, "epsilon = 0 and delta = 0"),
        ({"delta": 0.0}, pn.CalibrationError, "no largest privacy loss"),
        ({"delta": 0.5, "sampling_rate": 0.1}, pn.CalibrationError, "every scale meets"),
        (
            {"delta": 1e-20, "epsilon": 0.0},
            pn.CalibrationError,
            "above 1.09951e",
        ),
    ],
)
def test_bad_targets(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        calibrate(**{"law": pn.Airy, "epsilon": 1.0, "delta": 1e-6, **arguments})


@given(
    law=st.sampled_from([pn.Airy, pn.Gaussian]),
    epsilon=st.floats(0.05, 5.0),
    log_delta=st.floats(-14.0, -3.0),
    count_and_rate=st.sampled_from([(1, 1.0), (10, 1.0), (10, 0.3), (100, 0.05), (1000, 0.05)]),
)
@settings(max_examples=40, deadline=None)
def test_never_too_little_noise(
    law: type[pn.Noise], epsilon: float, log_delta: float, count_and_rate: tuple[int, float]
) -> None:
    target = (epsilon, 10.0**log_delta, *count_and_rate)
    found = calibrated(law, target)
    assert found.delta.upper <= target[1]
    assert delta_of(found.noise, target, "estimate") <= target[1]
    assert found.excess < 1e-4


@pytest.mark.deep
def test_a_few_answers_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes some milliseconds; a clock would measure what else the machine does."""
    answers = 0
    asked = Target.asked

    def counted(*arguments: Any) -> Bracket:
        nonlocal answers
        answers += 1
        return asked(*arguments)

    monkeypatch.setattr(Target, "asked", counted)
    for law, epsilon, delta, words in QUESTIONS:
        answers = 0
        calibrate(law, epsilon=epsilon, delta=delta, **words)
        assert answers <= 12


def laplace_delta(scale: float, epsilon: float) -> float:
    return -math.expm1(0.5 * (epsilon - 1.0 / scale))


def gaussian_delta(std: float, epsilon: float) -> float:
    passed = stats.norm.cdf([0.5 / std - epsilon * std, -0.5 / std - epsilon * std])
    return float(passed[0] - math.exp(epsilon) * passed[1])


@for_each(
    [(pn.Gaussian, gaussian_delta), (pn.Laplace, laplace_delta)],
    [(1.3e-5, 0.11062767787515947), (1e-4, 0.2), (1e-6, 0.2), (1e-9, 0.01), (1e-7, 0.9)],
    ["certified", "estimate"],
)
def test_excess_where_epsilon_falls_to_0(
    case: Any, target: tuple[float, float], method: str
) -> None:
    """Kills: the logarithm of an epsilon of 0 over a slope: an excess of 1e13, or a scale that is
    10 % too large."""
    (law, delta_at), (epsilon, delta) = case, target
    found = calibration(law, epsilon=epsilon, delta=delta, method=method)
    least = optimize.brentq(lambda scale: delta_at(scale, epsilon) - delta, 0.1, 1e4, xtol=1e-14)
    scale = found.noise.std if law is pn.Gaussian else found.noise.scale
    true = scale / least - 1.0
    assert -1e-9 <= true <= 1e-4
    assert 0.9 * true - 1e-6 <= found.excess <= 4e-3


@for_rows(
    [
        # The largest loss is all that matters, and grows with the logarithm of the scale.
        (0.3, (10.0, 1e-6, 1)),
        (1.0, (20.0, 1e-6, 1)),
        (0.8, (50.0, 1e-9, 3)),
    ]
)
def test_excess_of_heavy_tails(alpha: float, target: tuple[float, float, int]) -> None:
    """Kills: slopes of at least 1/2, or of 1 where the first guess is met at once (1e-4 and 0 for
    3e-4), and an excess that is measured from a rough crossing where the pure scale is taken."""
    law, (epsilon, delta, count) = functools.partial(pn.SymmetricStable, alpha=alpha), target
    found = calibration(law, epsilon=epsilon, delta=delta, count=count)

    def bounds(excess: float) -> Bracket:
        scale = found.noise.scale / (1.0 + excess)
        return pn.Mechanism(law(scale=scale)).epsilon(delta, count)

    assert bounds(0.0).upper <= epsilon
    assert bounds(1.1 * found.excess + 1e-6).estimate > epsilon
    assert bounds(0.9 * found.excess - 1e-6).estimate < epsilon


@for_rows(
    [
        (pn.Cauchy, (1.35e-9, 0.36889179659476895), (4, 1.0), "estimate"),
        (pn.Laplace, (1.45e-8, 0.00227), (100, 1e-4), "certified"),
        # No loss above epsilon at 2^41 sensitivities only.
        (pn.Cauchy, (1.5e-8, 0.358), (16585, 1.0), "certified"),
        # Far from a power of the scale, and next to the most that delta can be.
        (pn.Gaussian, (0.0, 0.9867), (1, 1.0), "certified"),
        (pn.Laplace, (0.0, 0.0095), (100, 1e-4), "certified"),
    ]
)
def test_little_epsilon_beside_delta(
    law: Any, target: tuple[float, float], use: tuple[int, float], method: str
) -> None:
    """Kills: a search by epsilon at the delta, which falls to 0 there (a scale 1e9 times too
    large, 500 times the work), a refusal, slopes of at least 1/2 in the logarithm of delta."""
    (epsilon, delta), (count, rate) = target, use
    asked = Target.asked
    with pytest.MonkeyPatch.context() as patch:
        answers: list[Bracket] = []

        def recorded(*arguments: Any) -> Bracket:
            answers.append(asked(*arguments))
            return answers[-1]

        patch.setattr(Target, "asked", recorded)
        found = calibration(
            law, epsilon=epsilon, delta=delta, count=count, sampling_rate=rate, method=method
        )
    assert len(answers) <= 16
    one = pn.Mechanism(found.noise)
    bounds = one.delta(epsilon, count, rate)
    if method == "certified":
        assert bounds.upper <= delta
        assert one.epsilon(delta, count, rate).upper <= epsilon
    # A share of 1e-3 of the scale changes delta by more than this.
    less = pn.Mechanism(law(scale=found.noise.scale * (1.0 - 1e-3)))
    assert less.delta(epsilon, count, rate).lower > delta
    assert found.excess < 5e-4


def test_no_scale_is_a_float64():
    """Kills: the largest of no estimates."""
    for law in (pn.Gaussian, pn.Laplace):
        with pytest.raises(pn.CalibrationError, match="no float64 scale"):
            pn.calibrate(law, epsilon=1.0, delta=1e-5, sensitivity=1e308, count=2)
