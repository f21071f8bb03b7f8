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
    return load_example("federated_sum")


@pytest.fixture(scope="module")
def rows(example: ModuleType) -> tuple[list, list]:
    return example.local(1000, 900, 1.0, 1e-6), example.distributed(1000, 900, 1.0, 1e-6)


@pytest.mark.deep
def test_messages_and_sums_have_the_epsilon(rows: tuple[list, list]) -> None:
    local, distributed = rows
    for row in local:
        assert 0.999 < row.message <= 1.0
    for row in distributed:
        assert (0.999 < row.fewer <= 1.0 + 1e-9) == ("Gamma" not in row.law), row
        assert row.epsilon <= row.fewer
    errors = {row.law.split()[0].strip(","): row.error for row in local}
    # Honestly: not the least error, the least without a delta in the sum.
    assert errors["Laplace"] < errors["stable"] <= 66.0 < errors["Skellam"]
    assert errors["Skellam"] == pytest.approx(errors["Gaussian"], rel=2e-3)
    stable, laplace, *others = local
    assert max(row.epsilon for row in others) < stable.epsilon < laplace.epsilon == laplace.fewer


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
    noise = pn.DiscreteStable(alpha=1.8, scale=40.0)
    values = np.linspace(0.0, 1.0, 100)
    rounds = 4000
    assert abs(example.simulate(values, noise, rounds) - 0.5) < 5.0 * 0.5 / math.sqrt(rounds)

    class Wrong(pn.DiscreteStable):
        def aggregate(self, count: int) -> pn.DiscreteStable:
            return super().aggregate(round(1.4 * count))

    # The test of the test.
    wrong = Wrong(alpha=1.8, scale=40.0)
    assert abs(example.simulate(values, wrong, rounds) - 0.5) > 5.0 * 0.5 / math.sqrt(rounds)


def test_masks_hide_and_cancel(example: ModuleType) -> None:
    masks = example.cancelling_masks(1000)
    assert int(masks.sum(dtype=np.uint64)) == 0
    assert np.unique(masks & np.uint64(2**32 - 1)).size > 990


@pytest.mark.deep
def test_it_runs(example: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / "sums.png"
    assert example.main(["--rounds", "100", "--plot", str(plot)]) == 0
    text = capsys.readouterr().out
    assert "Local: 1,000 messages" in text
    assert "Distributed: the sum of 900 has epsilon 1" in text
    assert text.count("without 100") == 2
    assert text.count("  pure") == 4
    assert text.count("  at delta 1e-06") == 6
    assert plot.stat().st_size > 10_000


@pytest.mark.deep
def test_the_tables_of_the_documentation(rows: tuple[list, list]) -> None:
    text = (Path(__file__).parents[1] / "docs" / "stable.md").read_text(encoding="utf-8")
    for row in [*rows[0], *rows[1]]:
        numbers = f"{row.error:.2f} | {row.message:.3g} | {row.epsilon:.4f} | {row.fewer:.4f}"
        assert f"| {row.law} | {numbers} | {row.privacy} |" in text, row.law


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
