"""The example of noise that many clients add: its closed forms, its proofs, its honesty."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import special

import psinoise as pn


@pytest.fixture(scope="module")
def example(load_example: Callable[[str], ModuleType]) -> ModuleType:
    return load_example("stable_aggregate")


def test_local_messages(example: ModuleType) -> None:
    stable, laplace, gaussian = example.local(1000, 900, 1.0, 1e-6)
    best = pn.calibrate_stable(epsilon=1.0, clients=1000)
    # The sum of k draws: errors and losses in units of a scale that has grown by k**(1 / alpha).
    growth = 1000.0 ** (1.0 / best.alpha)
    assert stable.error == pytest.approx(best.mean_abs * growth, rel=1e-12)
    ratio = 1.0 / (best.scale * growth)
    slope = pn.Mechanism(pn.SymmetricStable(alpha=best.alpha, scale=1e3)).pure_epsilon() * 1e3
    assert stable.epsilon == pytest.approx(slope * ratio, rel=1e-4)
    assert stable.fewer == pytest.approx(stable.epsilon * 0.9 ** (-1.0 / best.alpha), rel=1e-4)
    # Honestly: not the least error, the least epsilon, and that without a delta.
    assert laplace.error < stable.error < gaussian.error
    assert gaussian.epsilon < stable.epsilon < laplace.epsilon == laplace.fewer == 1.0


@pytest.mark.parametrize("clients", [1, 1000])
def test_distributed_shares_add_up(example: ModuleType, clients: int) -> None:
    present = max(1, round(0.9 * clients))
    stable, laplace, gaussian = example.distributed(clients, present, 1.0, 1e-6)
    best = pn.calibrate_stable(epsilon=1.0)
    share = pn.calibrate_stable(epsilon=1.0, clients=clients, setting="distributed")
    assert share.aggregate(clients).scale == pytest.approx(best.scale, rel=1e-13)
    assert stable.error == pytest.approx(best.mean_abs, rel=1e-13)
    for row in (stable, laplace, gaussian):
        assert row.epsilon == pytest.approx(1.0, rel=1e-4)
    assert laplace.error == 1.0 < stable.error < gaussian.error
    if clients > 1:
        assert stable.fewer < laplace.fewer
        assert stable.fewer == pytest.approx(0.9 ** (-1.0 / best.alpha), rel=0.01)


@pytest.mark.parametrize("shape", [1, 2, 10])
def test_error_of_a_sum_of_laplace_draws(example: ModuleType, shape: int) -> None:
    draws = pn.Laplace(scale=2.0).sample((200_000, shape), rng=shape).sum(axis=1)
    error = np.abs(draws).std() / math.sqrt(draws.size)
    assert example.laplace_sum_error(2.0, shape) == pytest.approx(
        np.abs(draws).mean(), abs=5.0 * error
    )
    if shape == 1:
        assert example.laplace_sum_error(2.0, 1) == pytest.approx(2.0, rel=1e-14)


@pytest.mark.parametrize("part", [0.55, 0.75, 0.9, 0.999])
@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_loss_of_a_part_of_laplace_noise(example: ModuleType, part: float, scale: float) -> None:
    """No loss on a grid is larger, and the one at the mode is that."""

    def log_density(x: np.ndarray) -> np.ndarray:
        y = np.abs(x) / scale
        return (part - 0.5) * np.log(y) + np.log(special.kve(part - 0.5, y)) - y

    x = np.concatenate([-np.geomspace(1e-30, 50.0, 4000), np.geomspace(1e-30, 50.0, 4000)])
    x = x[np.abs(x + 1.0) > 0.0]
    loss = (log_density(x) - log_density(x + 1.0)).max()
    found = example.laplace_part_epsilon(scale, part)
    assert loss <= found * (1.0 + 1e-12)
    assert loss >= found - 2.0 * 1e-30 ** (2.0 * part - 1.0)


def test_limits_of_a_part_of_laplace_noise(example: ModuleType) -> None:
    assert example.laplace_part_epsilon(2.0, 1.0) == 0.5
    assert example.laplace_part_epsilon(2.0, 1.0 - 1e-9) == pytest.approx(0.5, rel=1e-6)
    assert example.laplace_part_epsilon(2.0, 0.5) == math.inf


def test_simulated_sums_have_the_law_of_the_aggregate(example: ModuleType) -> None:
    noise = pn.calibrate_stable(epsilon=1.0)
    inside = example.simulate(noise, 300, 10_000, 1)
    assert abs(inside - 0.5) < 5.0 * 0.5 / math.sqrt(10_000)

    class Wrong(pn.SymmetricStable):
        def aggregate(self, count: int) -> pn.SymmetricStable:
            return super().aggregate(round(1.2 * count))

    # The test of the test.
    wrong = Wrong(alpha=noise.alpha, scale=noise.scale)
    assert abs(example.simulate(wrong, 300, 10_000, 1) - 0.5) > 5.0 * 0.5 / math.sqrt(10_000)


def test_it_runs(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main(["--clients", "200", "--rounds", "400"]) == 0
    text = capsys.readouterr().out
    assert "Local: 200 messages" in text
    assert "Distributed: one sum with epsilon 1, noise in 200 shares" in text
    assert text.count("without 20") == 2
    assert text.count("  pure") == 4
    assert text.count("  at delta 1e-06") == 2


def test_the_tables_of_the_documentation(example: ModuleType) -> None:
    text = (Path(__file__).parents[1] / "docs" / "stable.md").read_text(encoding="utf-8")
    rows = [*example.local(1000, 900, 1.0, 1e-6), *example.distributed(1000, 900, 1.0, 1e-6)]
    for row in rows:
        name = row.law.split()[0]
        assert f"| {row.error:.2f} | {row.epsilon:.4f} | {row.fewer:.4f} |" in text, name


@pytest.mark.parametrize(
    "words", [["--clients", "0"], ["--epsilon", "nan"], ["--delta", "1"], ["--dropout", "1"]]
)
def test_bad_arguments(
    example: ModuleType, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        example.main(words)
    assert stopped.value.code == 2
    assert "must be" in capsys.readouterr().err
