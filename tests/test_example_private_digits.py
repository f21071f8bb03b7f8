"""The example of private training: its gradients, its sensitivity, its account, its table."""

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


def test_data(example: ModuleType, data: Any) -> None:
    assert data.train.shape == (1437, 17)
    assert data.test.shape == (360, 17)
    features = np.vstack([data.train, data.test])
    assert (features[:, 0] == 1.0).all()
    assert np.abs(features).max() <= 1.0
    assert set(data.labels) == set(range(10))
    other = example.load_digits(seed=1)
    assert (other.labels != data.labels).any()


def test_gradients_are_those_of_the_log_loss_within_the_bound(
    example: ModuleType, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = np.random.default_rng(0).normal(size=(17, 10))
    some, labels = data.train[:5], data.labels[:5]
    clipped = example.clipped_gradients(weights, some, labels)
    assert np.abs(clipped).max() == example.CLIP
    monkeypatch.setattr(example, "CLIP", 10.0)
    whole = example.clipped_gradients(weights, some, labels)

    def losses(w: np.ndarray) -> np.ndarray:
        scores = some @ w
        return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(5), labels]

    for place in ((0, 3), (5, 9), (16, 0)):
        step = np.zeros((17, 10))
        step[place] = 1e-6
        slope = (losses(weights + step) - losses(weights - step)) / 2e-6
        np.testing.assert_allclose(whole[:, place[0] * 10 + place[1]], slope, atol=1e-8)


def test_one_image_less_moves_each_coordinate_by_the_bound_at_most(
    example: ModuleType, data: Any
) -> None:
    """With the same coins and noise; and each coordinate has coins of its own."""
    weights = np.random.default_rng(1).normal(size=(17, 10))
    gradients = example.clipped_gradients(weights, data.train, data.labels)
    without = gradients.copy()
    without[7] = 0.0
    noise = np.zeros(gradients.shape[1])
    moved = []
    for seed in range(40):
        sums = [
            example.private_sum(each, 0.3, noise, np.random.default_rng(seed))
            for each in (gradients, without)
        ]
        moved.append(np.abs(sums[0] - sums[1]))
    assert np.max(moved) <= example.CLIP + 1e-12
    # An image is in the batches of some coordinates and not of others: about three in ten.
    drawn = np.array(moved)[:, np.abs(gradients[7]) > 1e-9] > 1e-12
    assert 0.25 < drawn.mean() < 0.35
    assert (drawn.any(axis=1) & ~drawn.all(axis=1)).all()
    # Noise is in units of the bound.
    shifted = example.private_sum(gradients, 0.3, noise + 1.0, np.random.default_rng(0))
    plain = example.private_sum(gradients, 0.3, noise, np.random.default_rng(0))
    np.testing.assert_allclose(shifted - plain, example.CLIP, rtol=1e-12)


def test_laws_have_one_variance_and_the_cactus_the_least_epsilon(example: ModuleType) -> None:
    laws = {name: make(example.DEVIATION) for name, make in example.LAWS.items()}
    for law in laws.values():
        assert law.std == pytest.approx(example.DEVIATION, rel=1e-9)
    found = {name: example.epsilon(law, 10, 170, 1e-5) for name, law in laws.items()}
    assert found["Cactus"] < 0.9 * found["Laplace"] < 0.3 * found["Airy"] < 0.2 * found["Gaussian"]
    # In units of the clipping bound, one use for each coordinate of each step.
    gaussian = pn.Mechanism(pn.Gaussian(std=2.0 * example.DEVIATION), 2.0)
    estimate = gaussian.composed(1700, 3.0 / 1437).estimate.epsilon(1e-5)
    assert estimate <= found["Gaussian"] <= estimate * (1.0 + 1e-4)


def test_it_learns_and_the_table_says_so(
    example: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "digits.png"
    words = ["--steps", "30", "5", "--seeds", "2", "--plot", str(picture)]
    assert example.main(words) == 0
    text = capsys.readouterr().out
    assert "170 coordinates" in text
    rows = [line for line in text.splitlines() if re.match(r" *\d+ ", line)]
    assert [int(row.split()[0]) for row in rows] == [5, 30]
    for row in rows:
        gaussian, airy, laplace, cactus = map(float, re.findall(r"\d+\.\d{3}", row))
        assert cactus < laplace < airy < gaussian
    accuracies = [[float(v) for v in re.findall(r"([\d.]+)% ±", row)] for row in rows]
    # A tenth would be guessing.
    assert min(accuracies[1]) > 40.0
    assert np.mean(accuracies[1]) > np.mean(accuracies[0])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_seed_decides(example: ModuleType, data: Any) -> None:
    law = example.LAWS["Cactus"](example.DEVIATION)
    first, again, other = (example.train(data, law, [3], seed) for seed in (4, 4, 5))
    assert first == again != other


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "1"], "needs two runs at least"),
        (["--steps", "0"], "--steps: at least 1"),
        (["--steps", "x"], "invalid int value"),
    ],
)
def test_bad_arguments(
    example: ModuleType, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        example.main(words)
    assert message in capsys.readouterr().err
