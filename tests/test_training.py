"""What a training run asks: the noise multiplier, from a target and a scheme of sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import psinoise as pn
from psinoise import sampling
from refusals import for_rows, refused

EPOCHS = sampling.RandomAllocation(steps=20)
BATCHES = sampling.WithoutReplacement(batch=50, population=2000)

#: Target, sampling rate, steps, and what else is said.
RUNS = [
    (0.5, 1e-5, 0.05, 500, {}),
    (1.0, 1e-8, 1.0, 30, {}),
    (2.0, 1e-5, 0.01, 1000, {}),
    (3.0, 1e-6, 0.004, 100_000, {}),
    (1.0, 1e-5, 0.05, 100, {"adjacency": "replace"}),
    (1.0, 1e-5, 1.0, 20, {"sampling": EPOCHS}),
    (1.0, 1e-5, 1.0, 100, {"sampling": BATCHES, "adjacency": "replace"}),
]


def step_of(multiplier: float, adjacency: str) -> pn.Mechanism:
    moved = 2.0 if adjacency == "replace" else 1.0
    return pn.Mechanism(pn.Gaussian(std=multiplier), moved, contribution=1.0)


@pytest.mark.parametrize(("epsilon", "delta", "rate", "steps", "more"), RUNS, ids=str)
def test_the_target_is_met_and_a_little_less_noise_would_not_do(
    epsilon: float, delta: float, rate: float, steps: int, more: dict
) -> None:
    """Kills: the sensitivity of one gradient under "replace", epochs counted as steps."""
    multiplier = pn.noise_multiplier(epsilon, delta, rate, steps, **more)
    adjacency, scheme = more.get("adjacency", "add-remove"), more.get("sampling")
    count = steps // EPOCHS.steps if scheme is EPOCHS else steps

    def found(noise: float) -> pn.Bracket:
        step = step_of(noise, adjacency)
        return step.epsilon(delta, count, rate, adjacency, sampling=scheme, tolerance=width)

    # Of batches of fixed size only upper bounds are known.
    width = None if scheme is BATCHES else 4e-4 * epsilon
    assert found(multiplier) <= epsilon * (1.0 + 4e-4)
    least = found(multiplier * (1.0 - 2e-3))
    assert (least.estimate if scheme is BATCHES else least.lower) > epsilon


def test_without_sampling_it_is_the_analytic_one() -> None:
    """The profile of Gaussian noise: Balle and Wang 2018, theorem 8."""

    def log_excess(multiplier: float) -> float:
        mu = math.sqrt(30.0) / multiplier
        first, second = ndtr(mu / 2.0 - 1.0 / mu), ndtr(-mu / 2.0 - 1.0 / mu)
        return math.log(first - math.e * second) - math.log(1e-8)

    least = brentq(log_excess, 5.0, 100.0, xtol=1e-12)
    assert least <= pn.noise_multiplier(1.0, 1e-8, steps=30) <= least * (1.0 + 6e-4)


def test_poisson_sampling_by_any_name() -> None:
    named = pn.noise_multiplier(1.0, 1e-5, steps=100, sampling=sampling.Poisson(0.1))
    assert named == pn.noise_multiplier(1.0, 1e-5, 0.1, 100)
    epoch = sampling.RandomAllocation(steps=1)
    assert pn.noise_multiplier(1.0, 1e-5, steps=7, sampling=epoch) == pn.noise_multiplier(
        1.0, 1e-5, steps=7
    )


def test_what_is_refused() -> None:
    refusals = [
        ({"steps": 0}, pn.DomainError, "steps must be at least 1"),
        ({"steps": 30, "sampling": EPOCHS}, pn.DomainError, "multiple of the steps of an epoch"),
        ({"steps": 10, "sampling": BATCHES}, pn.DomainError, "adjacency must be 'replace'"),
        ({"sampling_rate": 0.1, "sampling": EPOCHS, "steps": 20}, pn.DomainError, "sampling_rate"),
        ({"sampling": "epochs"}, TypeError, "sampling must be a scheme"),
        ({"adjacency": "swap"}, pn.DomainError, "adjacency"),
        ({"adjacency": "remove"}, pn.DomainError, "adjacency"),
        ({"adjacency": np.array(["add-remove", "replace"])}, TypeError, "adjacency"),
        ({"sampling_rate": math.nan}, pn.DomainError, "sampling_rate"),
        ({"sampling_rate": 0.0}, pn.DomainError, "sampling_rate must be positive"),
        ({"delta": 0.0}, pn.CalibrationError, "no largest privacy loss"),
        ({"delta": 0.5, "sampling_rate": 0.1}, pn.CalibrationError, "every scale meets"),
    ]
    for words, error, message in refusals:
        with pytest.raises(error, match=message):
            pn.noise_multiplier(**{"epsilon": 1.0, "delta": 1e-5, **words})  # type: ignore[arg-type]


@pytest.mark.parametrize("law", [pn.Gaussian, pn.Laplace, pn.Airy])
@pytest.mark.parametrize("scheme", [EPOCHS, BATCHES], ids=["epochs", "batches"])
def test_any_law_is_calibrated_under_any_scheme(law: type, scheme: sampling.Sampling) -> None:
    """Kills: a scheme that is forgotten, here or where the answer is verified."""
    batches = scheme is BATCHES
    use = {"sampling": scheme, "adjacency": "replace" if batches else "add-remove"}
    noise = pn.calibrate(law, epsilon=1.0, delta=1e-6, count=2, **use)

    def found(noise: pn.Noise) -> pn.Bracket:
        return pn.Mechanism(noise).epsilon(1e-6, 2, **use)

    assert found(noise) <= 1.0
    assert pn.Mechanism(noise).delta(1.0, 2, **use) <= 1e-6
    less = found(law(scale=noise.scale * (1.0 - 3e-4)))
    assert (less.estimate if batches else less.lower) > 1.0
    # Without sampling so little noise is far from enough.
    assert pn.Mechanism(noise).epsilon(1e-6, 2).lower > 1.4


def test_what_is_released_is_calibrated_under_a_scheme() -> None:
    words = {"epsilon": 1.0, "delta": 1e-6, "count": 2, "sampling": EPOCHS}
    mechanism = pn.calibrate(pn.Laplace, **words, on_lattice=True)
    assert mechanism.epsilon(1e-6, 2, sampling=EPOCHS) <= 1.0
    ideal = pn.calibrate(pn.Laplace, **words)
    assert mechanism.noise.std == pytest.approx(math.sqrt(2.0) * ideal.scale, rel=2e-3)
    poisson = {**words, "sampling": sampling.Poisson(0.1)}
    assert pn.calibrate(pn.Airy, **poisson) == pn.calibrate(
        pn.Airy, epsilon=1.0, delta=1e-6, count=2, sampling_rate=0.1
    )


@for_rows(
    [
        (pn.Airy, {"sampling": EPOCHS, "sampling_rate": 0.1}, "must not be given with a scheme"),
        (pn.Airy, {"sampling": EPOCHS, "adjacency": "replace"}, "must not be 'replace'"),
        (pn.Airy, {"sampling": BATCHES}, "adjacency must be 'replace'"),
        (pn.Airy, {"sampling": sampling.Poisson(0.0)}, "no record is ever used"),
        (pn.Cactus, {"sampling": EPOCHS}, "Cactus noise is made for uses with Poisson sampling"),
        (pn.Staircase, {"sampling": EPOCHS}, "made for uses with Poisson sampling"),
    ]
)
def test_schemes_that_calibration_refuses(law, use, match) -> None:
    error = pn.CalibrationError if "made for" in match else pn.DomainError
    refused(error, match, lambda: pn.calibrate(law, epsilon=1.0, delta=1e-6, **use))


def test_a_scheme_of_the_wrong_kind() -> None:
    with pytest.raises(TypeError, match=r"a scheme of psinoise\.sampling"):
        pn.calibrate(pn.Airy, epsilon=1.0, delta=1e-6, sampling=0.1)
