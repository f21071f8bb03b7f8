"""The example of a cost of one's own runs, and the order that the theorem states shows in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import psinoise as pn
from psinoise import costs


@pytest.fixture(scope="module")
def example(load_example: Callable[[str], ModuleType]) -> ModuleType:
    return load_example("custom_cost")


@pytest.mark.parametrize("mean_cost", [0.1, 2.0])
@pytest.mark.parametrize("name", ["huber", "absolute", "square", "log"])
def test_the_optimal_law_is_first_in_information_and_in_epsilon(
    example: ModuleType, name: str, mean_cost: float
) -> None:
    cost = {
        "huber": example.HUBER,
        "absolute": costs.Power(1.0),
        "square": costs.Power(2.0),
        "log": costs.Log(),
    }[name]
    rows = example.table(cost, mean_cost)
    for row in rows:
        assert row.noise.expected_cost(cost) == pytest.approx(mean_cost, rel=1e-10)
    # Ties are the laws that the cost is known to lead to.
    assert rows[0].excess >= -1e-9
    best = next(row for row in rows if isinstance(row.noise, pn.Schrodinger))
    assert best.excess == 0.0
    epsilons = [row.epsilon for row in rows]
    assert best.epsilon <= min(epsilons) * (1.0 + 1e-7)
    assert epsilons == pytest.approx(sorted(epsilons), rel=1e-7)
    # The honest size of the gain: a few percent over the best of the others.
    assert sorted(row.excess for row in rows)[1] < 0.06


def test_the_table_of_the_documentation(example: ModuleType) -> None:
    text = (Path(__file__).parents[1] / "docs" / "schrodinger.md").read_text(encoding="utf-8")
    known = {
        "sqrt(abs(x))": costs.Power(0.5),
        "abs(x)": costs.Power(1.0),
        "abs(x)^1.5": costs.Power(1.5),
        "x^2": costs.Power(2.0),
        "x^4": costs.Power(4.0),
        "log(1 + abs(x))": costs.Log(),
    }
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    checked = 0
    for name, bound, *shown in rows:
        if name in known:
            found = example.table(known[name], 1.0 if bound == "any" else float(bound))
            excess = {type(row.noise).__name__: 100.0 * row.excess for row in found}
            for law, value in zip(("Gaussian", "Airy", "Laplace"), shown, strict=True):
                digits = float(value.removesuffix(" %"))
                assert excess[law] == pytest.approx(digits, rel=6e-3, abs=6e-3), (name, law)
                checked += 1
    assert checked == 24


@pytest.mark.deep
def test_it_runs(example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main(["--mean-cost", "0.3"]) == 0
    text = capsys.readouterr().out
    assert "log-concave: True" in text
    assert all(name in text for name in ("Schrodinger", "Gaussian", "Airy", "Laplace"))
    pytest.importorskip("matplotlib")
    example.draw(example.HUBER, 0.3, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
