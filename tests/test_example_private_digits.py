"""The example of private training: its gradients, their sensitivity, its account, its table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import psinoise as pn

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def example(load_example: Callable[[str], ModuleType]) -> ModuleType:
    return load_example("private_digits")


@pytest.fixture(scope="module")
def data(example: ModuleType) -> Any:
    return example.load_digits()


@pytest.fixture
def weights() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(65, 10))


def slopes(data: Any, weights: np.ndarray, place: tuple[int, int]) -> np.ndarray:
    """Differences of the log loss of five images."""

    def losses(w: np.ndarray) -> np.ndarray:
        scores = data.train[:5] @ w
        return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(5), data.labels[:5]]

    step = np.zeros_like(weights)
    step[place] = 1e-6
    return (losses(weights + step) - losses(weights - step)) / 2e-6


def test_data(example: ModuleType, data: Any) -> None:
    assert data.train.shape == (1437, 65)
    assert data.test.shape == (360, 65)
    features = np.vstack([data.train, data.test])
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.25**0.5, rtol=1e-12)
    assert set(data.labels) == set(range(10))
    other = example.load_digits(seed=1)
    assert (other.labels != data.labels).any()


@pytest.mark.parametrize("backend", ["NumPy", "JAX"])
def test_clipped_sums(example: ModuleType, data: Any, weights: np.ndarray, backend: str) -> None:
    """Kills: clipping the sum instead of each gradient, images in it without their coin."""
    if backend == "JAX":
        pytest.importorskip("jax")
    everybody = np.zeros(example.TRAINED, dtype=bool)
    everybody[:5] = True
    whole = example.BACKENDS[backend](np.inf)(weights, data.train, data.labels, everybody)
    for place in ((0, 3), (5, 9), (64, 0)):
        assert whole[place] == pytest.approx(slopes(data, weights, place).sum(), abs=1e-8)
    clipped = example.BACKENDS[backend](0.7)
    moves = []
    total = clipped(weights, data.train, data.labels, everybody)
    for image in range(5):
        without = everybody.copy()
        without[image] = False
        moves.append(np.linalg.norm(total - clipped(weights, data.train, data.labels, without)))
    assert max(moves) == pytest.approx(0.7, rel=1e-12)


def test_both_backends_train_alike_and_seeds_decide(
    example: ModuleType, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr(example, "STEPS", 4)
    run = {name: make(1.0) for name, make in example.BACKENDS.items()}
    weights = {name: example.train(data, one, 5.0, seed=1) for name, one in run.items()}
    np.testing.assert_allclose(weights["JAX"], weights["NumPy"], rtol=1e-9, atol=1e-9)
    other = example.train(data, run["NumPy"], 5.0, seed=2)
    assert np.abs(other - weights["NumPy"]).max() > 0.1


def test_a_private_run_is_nearly_as_accurate(example: ModuleType, data: Any) -> None:
    """At epsilon 1, against the same run without clipping and noise; and it is accounted."""
    found = {row.epsilon: row for row in example.rows(data, ["NumPy"], 4)}
    assert list(found) == [0.5, 1.0, 2.0, 8.0, np.inf]
    accuracies = {epsilon: row.accuracies["NumPy"].mean() for epsilon, row in found.items()}
    assert accuracies[1.0] > accuracies[np.inf] - 0.02
    assert accuracies[0.5] < accuracies[8.0]
    assert accuracies[0.5] > 0.8
    step = pn.Mechanism(pn.Gaussian(std=found[1.0].multiplier))
    assert 0.99 < step.epsilon(example.DELTA, example.STEPS, example.RATE) <= 1.0


def test_one_image_less_moves_each_coordinate_by_the_bound_at_most(
    example: ModuleType, data: Any, weights: np.ndarray
) -> None:
    """With the same coins and noise; and each coordinate has coins of its own."""
    gradients = example.coordinate_gradients(weights, data.train, data.labels)
    assert np.abs(gradients).max() == example.COORDINATE_CLIP
    small = np.abs(gradients[:5, 9]) < example.COORDINATE_CLIP
    np.testing.assert_allclose(
        gradients[:5, 9][small], slopes(data, weights, (0, 9))[small], atol=1e-8
    )
    without = gradients.copy()
    without[7] = 0.0
    noise = np.zeros(gradients.shape[1])
    moved = []
    for seed in range(20):
        sums = [
            example.coordinate_sum(each, 0.3, noise, np.random.default_rng(seed))
            for each in (gradients, without)
        ]
        moved.append(np.abs(sums[0] - sums[1]))
    assert np.max(moved) <= example.COORDINATE_CLIP + 1e-12
    # An image is in the batches of some coordinates and not of others: about three in ten.
    drawn = np.array(moved)[:, np.abs(gradients[7]) > 1e-9] > 1e-12
    assert 0.25 < drawn.mean() < 0.35
    assert (drawn.any(axis=1) & ~drawn.all(axis=1)).all()
    # Noise is in units of the bound.
    shifted = example.coordinate_sum(gradients, 0.3, noise + 1.0, np.random.default_rng(0))
    plain = example.coordinate_sum(gradients, 0.3, noise, np.random.default_rng(0))
    np.testing.assert_allclose(shifted - plain, example.COORDINATE_CLIP, rtol=1e-12)


@pytest.mark.deep
def test_laws_have_one_variance_and_the_cactus_the_least_epsilon(example: ModuleType) -> None:
    laws = {name: make(example.COORDINATE_STD) for name, make in example.LAWS.items()}
    for law in laws.values():
        assert law.std == pytest.approx(example.COORDINATE_STD, rel=1e-9)
    found = {name: example.coordinate_epsilon(law, 2, 650) for name, law in laws.items()}
    assert found["Cactus"] < 0.9 * found["Laplace"] < 0.3 * found["Airy"] < 0.2 * found["Gaussian"]
    # In units of the clipping bound, one use for each coordinate of each step.
    gaussian = pn.Mechanism(pn.Gaussian(std=2.0 * example.COORDINATE_STD), 2.0)
    estimate = gaussian.composed(1300, 3.0 / 1437).estimate.epsilon(example.DELTA)
    assert estimate <= found["Gaussian"] <= estimate * (1.0 + 1e-4)


@pytest.mark.deep
def test_the_table_says_what_was_reached(
    example: ModuleType,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(example, "BACKENDS", {"NumPy": example.numpy_gradients})
    picture = tmp_path / "digits.png"
    words = ["--steps", "10", "3", "--seeds", "2", "--plot", str(picture)]
    assert example.main(words) == 0
    text = capsys.readouterr().out
    assert "650 parameters" in text
    first, second = text.split("Coordinates clipped")
    rows = [line.split() for line in first.splitlines() if re.match(r" *(0\.5|1|2|8|inf) ", line)]
    assert [row[0] for row in rows] == ["0.5", "1", "2", "8", "inf"]
    multipliers = [float(row[1]) for row in rows]
    assert multipliers == sorted(multipliers, reverse=True)
    rows = [line for line in second.splitlines() if re.match(r" *\d+ ", line)]
    assert [int(row.split()[0]) for row in rows] == [3, 10]
    for row in rows:
        gaussian, airy, laplace, cactus = map(float, re.findall(r"\d+\.\d{2}(?= )", row))
        assert cactus < laplace < airy < gaussian
    accuracies = [[float(v) for v in re.findall(r"([\d.]+)% ±", row)] for row in rows]
    # A tenth would be guessing.
    assert min(accuracies[1]) > 30.0
    assert np.mean(accuracies[1]) > np.mean(accuracies[0])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_arguments(example: ModuleType) -> None:
    for words in (["--seeds", "1"], ["--steps", "0"]):
        with pytest.raises(SystemExit):
            example.main(words)
