"""Events of dp_accounting as accountants: ours to the last digits, between their two bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psinoise as pn
from psinoise.adapters.dp_accounting import from_event

dpa = pytest.importorskip("dp_accounting")
dp_event = pytest.importorskip("dp_accounting.dp_event")
google = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

FAST = {"value_discretization_interval": 1e-3}
REPLACE = dpa.NeighboringRelation.REPLACE_ONE
mixture = dp_event.MixtureOfGaussiansDpEvent
DISCRETE = dp_event.DiscreteLaplaceDpEvent(0.3, 2)
GAUSSIAN, LAPLACE = dpa.GaussianDpEvent(1.5), dpa.LaplaceDpEvent(1.3)


def poisson(rate: float, event: Any, count: int) -> Any:
    return dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(rate, event), count)


def mechanism(noise: Any, moved: float = 1.0, **words: Any) -> pn.Mechanism:
    return pn.Mechanism(noise, moved, **words)


def composed(what: Any, *use: Any, **words: Any) -> Callable[[], pn.Accountant]:
    return lambda: what.composed(*use, **words)


def gaussian(std: float, count: int = 1, rate: float = 1.0, **words: Any) -> Callable[[bool], Any]:
    return lambda side: google.from_gaussian_mechanism(
        std, sampling_prob=rate, pessimistic_estimate=side, **FAST, **words
    ).self_compose(count)


def laplace(scale: float, count: int = 1, rate: float = 1.0) -> Callable[[bool], Any]:
    return lambda side: google.from_laplace_mechanism(
        scale, sampling_prob=rate, pessimistic_estimate=side, **FAST
    ).self_compose(count)


#: Event, adjacency, the same by hand, and the distribution that they make of it.
ANSWERED = {
    "Gaussian": (GAUSSIAN, "add-remove", composed(mechanism(pn.Gaussian(std=1.5))), gaussian(1.5)),
    "replaced": (
        GAUSSIAN,
        "replace",
        composed(mechanism(pn.Gaussian(std=1.5), 2.0), adjacency="replace"),
        gaussian(1.5, neighboring_relation=REPLACE),
    ),
    "training": (
        poisson(0.05, GAUSSIAN, 300),
        "add-remove",
        composed(mechanism(pn.Gaussian(std=1.5)), 300, 0.05),
        gaussian(1.5, 300, 0.05),
    ),
    "training, replaced": (
        poisson(0.05, GAUSSIAN, 300),
        "replace",
        composed(mechanism(pn.Gaussian(std=1.5), 2.0, contribution=1.0), 300, 0.05, "replace"),
        gaussian(1.5, 300, 0.05, neighboring_relation=REPLACE),
    ),
    "a sample of a sample": (
        poisson(0.5, dpa.PoissonSampledDpEvent(0.25, GAUSSIAN), 20),
        "add-remove",
        composed(mechanism(pn.Gaussian(std=1.5)), 20, 0.125),
        gaussian(1.5, 20, 0.125),
    ),
    "Gaussians on one sample": (
        # 1 / 3^2 + 2 / 4.8^2 + ... = 1 / 2.25: moved as far as noise of 1.5 would be.
        poisson(
            0.1,
            dpa.ComposedDpEvent(
                [
                    dpa.GaussianDpEvent(3.0),
                    dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(3.0), 2),
                    dpa.NoOpDpEvent(),
                    dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(6.0), 4),
                ]
            ),
            20,
        ),
        "add-remove",
        composed(mechanism(pn.Gaussian(std=1.5)), 20, 0.1),
        gaussian(1.5, 20, 0.1),
    ),
    "Laplace": (
        dpa.SelfComposedDpEvent(LAPLACE, 7),
        "add-remove",
        composed(mechanism(pn.Laplace(scale=1.3)), 7),
        laplace(1.3, 7),
    ),
    "Laplace, sampled": (
        poisson(0.2, LAPLACE, 20),
        "add-remove",
        composed(mechanism(pn.Laplace(scale=1.3)), 20, 0.2),
        laplace(1.3, 20, 0.2),
    ),
    "Laplace on one sample": (
        poisson(0.2, dpa.SelfComposedDpEvent(LAPLACE, 3), 5),
        "add-remove",
        composed(mechanism(pn.Laplace(scale=1.3), dimension=3), 5, 0.2),
        None,
    ),
    "discrete Laplace": (
        dpa.SelfComposedDpEvent(DISCRETE, 5),
        "add-remove",
        composed(mechanism(pn.DiscreteLaplace(scale=1.0 / 0.3), 2.0), 5),
        lambda side: google.from_discrete_laplace_mechanism(
            0.3, 2, pessimistic_estimate=side, **FAST
        ).self_compose(5),
    ),
    "mixture": (
        dpa.SelfComposedDpEvent(mixture(3.0, [0.0, 2.0], [0.75, 0.25]), 20),
        "add-remove",
        composed(mechanism(pn.Gaussian(std=3.0), 2.0), 20, 0.25),
        gaussian(1.5, 20, 0.25),
    ),
    "tree": (
        # Seven steps: three levels.
        dpa.SingleEpochTreeAggregationDpEvent(3.0, np.int64(7)),
        "replace",
        composed(mechanism(pn.Gaussian(std=3.0), 2.0 * math.sqrt(3.0)), adjacency="replace"),
        gaussian(3.0, sensitivity=2.0 * math.sqrt(3.0)),
    ),
    "zCDP": (
        dpa.ComposedDpEvent([dpa.ZCDpEvent(0.01), dpa.ZCDpEvent(0.02)]),
        "add-remove",
        composed(pn.promises.ZCDP(0.03)),
        None,
    ),
    "two answers": (
        dpa.SelfComposedDpEvent(dpa.RandomizedResponseDpEvent(0.5, 2), 10),
        "replace",
        composed(pn.promises.PureDP(math.log(3.0)), 10),
        lambda side: google.from_randomized_response(
            0.5, 2, side, neighboring_relation=REPLACE, **FAST
        ).self_compose(10),
    ),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", ANSWERED)
def test_answers_are_ours_and_between_theirs(name: str) -> None:
    """Kills: one sensitivity for both relations, rates added, two samples where there is one."""
    event, adjacency, by_hand, theirs = ANSWERED[name]
    accountant = from_event(event, adjacency)
    assert accountant.adjacency == adjacency
    ours = by_hand()
    for delta in (1e-3, 1e-6):
        found, known = accountant.epsilon(delta), ours.epsilon(delta)
        assert found.upper == pytest.approx(known.upper, rel=1e-12)
        assert found.lower == pytest.approx(known.lower, rel=1e-12)
        if theirs is not None:
            pessimistic, optimistic = (
                theirs(side).get_epsilon_for_delta(delta) for side in (True, False)
            )
            # Their convolutions are not certified.
            assert found.lower <= pessimistic + 1e-9
            assert optimistic - 1e-9 <= found.upper


def test_randomized_response_by_all_its_answers() -> None:
    """Against the sum over three uses of five buckets. Kills: answers that reveal in silence."""
    noise, buckets, uses = 0.4, 5, 3
    accountant = from_event(
        dpa.SelfComposedDpEvent(dpa.RandomizedResponseDpEvent(noise, buckets), uses), "replace"
    )
    true, other = 1.0 - noise + noise / buckets, noise / buckets
    first = np.array([true, other, *[other] * (buckets - 2)])
    second = np.array([other, true, *[other] * (buckets - 2)])
    for epsilon in (0.0, 0.5, 2.5, 5.0):
        delta = sum(
            max(math.prod(first[list(k)]) - math.exp(epsilon) * math.prod(second[list(k)]), 0.0)
            for k in itertools.product(range(buckets), repeat=uses)
        )
        found = accountant.delta(epsilon)
        assert found.lower <= delta * (1.0 + 1e-12)
        assert delta <= found.upper * (1.0 + 1e-12)
        assert found.upper == pytest.approx(delta, rel=1e-3)


def test_batches_of_fixed_size() -> None:
    batches = dpa.SampledWithoutReplacementDpEvent(2000, 50, GAUSSIAN)
    accountant = from_event(dpa.SelfComposedDpEvent(batches, 100), "replace")
    scheme = pn.sampling.WithoutReplacement(batch=50, population=2000)
    by_hand = mechanism(pn.Gaussian(std=1.5), 2.0).composed(100, 1.0, "replace", sampling=scheme)
    assert accountant.epsilon(1e-5).upper == by_hand.epsilon(1e-5).upper


def test_what_releases_nothing() -> None:
    nothing = [
        dpa.NoOpDpEvent(),
        dpa.ComposedDpEvent([]),
        dpa.SelfComposedDpEvent(GAUSSIAN, 0),
        dpa.PoissonSampledDpEvent(0.0, GAUSSIAN),
        dpa.PoissonSampledDpEvent(0.5, dpa.NoOpDpEvent()),
        dpa.SampledWithoutReplacementDpEvent(10, 0, GAUSSIAN),
        mixture(1.0, [0.0], [1.0]),
        dpa.ZCDpEvent(0.0),
    ]
    assert from_event(dpa.ComposedDpEvent(nothing)).epsilon(1e-9) == 0.0
    silent = [dpa.RandomizedResponseDpEvent(1.0, 3), dpa.RandomizedResponseDpEvent(0.0, 1)]
    assert from_event(dpa.ComposedDpEvent(silent), "replace").epsilon(1e-9) == 0.0


#: Event, adjacency, and what the message says besides the event.
REFUSED = [
    (dpa.UnsupportedDpEvent(), "add-remove", "no known worst case"),
    (dpa.NonPrivateDpEvent(), "add-remove", "no finite epsilon"),
    (dpa.GaussianDpEvent(0.0), "add-remove", "no finite epsilon"),
    (dpa.LaplaceDpEvent(0.0), "add-remove", "no finite epsilon"),
    (dpa.RandomizedResponseDpEvent(0.0, 3), "replace", "no finite epsilon"),
    (dpa.GaussianDpEvent(-1.0), "add-remove", "std must be positive"),
    (dpa.GaussianDpEvent(math.nan), "add-remove", "std must be"),
    (dpa.PoissonSampledDpEvent(1.5, GAUSSIAN), "add-remove", "sampling_probability"),
    (dpa.PoissonSampledDpEvent(0.5, dpa.ZCDpEvent(0.1)), "add-remove", "sampling_rate"),
    (
        dpa.PoissonSampledDpEvent(0.5, dpa.ComposedDpEvent([GAUSSIAN, LAPLACE])),
        "add-remove",
        "different mechanisms on one sample",
    ),
    (
        dpa.PoissonSampledDpEvent(0.5, poisson(0.5, GAUSSIAN, 2)),
        "add-remove",
        "sampled again",
    ),
    (dpa.SampledWithoutReplacementDpEvent(10, 2, GAUSSIAN), "add-remove", "'replace'"),
    (dpa.SampledWithReplacementDpEvent(10, 2, GAUSSIAN), "replace", "no known worst case"),
    (dpa.RandomizedResponseDpEvent(0.5, 3), "add-remove", "'replace'"),
    (
        mixture(1.0, [1.0, 2.0], [0.5, 0.5]),
        "add-remove",
        "several shifts",
    ),
    (mixture(1.0, [0.0, 2.0], [0.5, 0.4]), "add-remove", "add up to 1"),
    (mixture(1.0, [0.0, 2.0], [0.5, 0.5]), "replace", "'replace'"),
    (dpa.SingleEpochTreeAggregationDpEvent(1.0, 7), "add-remove", "'replace'"),
    (dp_event.RepeatAndSelectDpEvent(GAUSSIAN, 2.0, 1.0), "add-remove", "no known worst case"),
    (dpa.TruncatedSubsampledGaussianDpEvent(9, 0.5, 5, 1.0), "add-remove", "no known worst"),
    (dpa.ZCDpEvent(0.1, 0.1), "add-remove", "xi must be 0"),
    (dpa.SelfComposedDpEvent(GAUSSIAN, -1), "add-remove", "count must be"),
]


def test_what_is_refused_is_named() -> None:
    for event, adjacency, message in REFUSED:
        whole = dpa.ComposedDpEvent([dpa.GaussianDpEvent(2.0), dpa.SelfComposedDpEvent(event, 3)])
        with pytest.raises(pn.DomainError, match=message) as caught:
            from_event(whole, adjacency)
        assert type(event).__name__ in str(caught.value)
    with pytest.raises(TypeError, match="event must be an event of dp_accounting"):
        from_event("GaussianDpEvent")  # type: ignore[arg-type]
    with pytest.raises(pn.DomainError, match="adjacency"):
        from_event(GAUSSIAN, "swap")


def test_an_axis_is_the_worst_direction_of_discrete_laplace_noise() -> None:
    """Brute force in two dimensions: what ``accounting.vectors`` proves."""
    scale, total = 1.7, 5
    k = np.arange(-120, 121)
    mass = np.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)

    def moved(shift: int) -> np.ndarray:
        return np.tanh(0.5 / scale) * np.exp(-np.abs(k - shift) / scale)

    base = np.multiply.outer(mass, mass)
    law = pn.DiscreteLaplace(scale=scale)
    vector = pn.Mechanism(law, float(total), dimension=2, norm="l1")
    for epsilon in (0.0, 0.7, 1.5, 2.5):
        deltas = [
            np.maximum(
                np.multiply.outer(moved(first), moved(total - first)) - np.exp(epsilon) * base, 0.0
            ).sum()
            for first in range(total + 1)
        ]
        assert max(deltas) == pytest.approx(deltas[0], rel=1e-12)
        assert vector.delta(epsilon).upper == pytest.approx(deltas[0], rel=1e-9)
