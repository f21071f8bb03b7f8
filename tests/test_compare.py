"""The comparison of all laws, at one cost and at one target: numbers, tables, order, plots."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
import sys

import numpy as np
import pytest

import psinoise as pn
from psinoise import _progress
from psinoise.calibration import calibrate
from psinoise.comparison import Comparison, ComparisonRow, TargetComparison
from psinoise.comparison.tables import column
from psinoise.noise import FAMILIES, Family

# Laws of one parameter: what they reach is known from elsewhere.
PLAIN = (pn.Gaussian, pn.Laplace, pn.Airy)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return pn.compare(
        mean_abs=2.0, delta=1e-8, counts=(2000, 1, 100), sampling_rate=0.01, laws=PLAIN, speed=False
    )


def row_of(comparison: Comparison, law: str) -> ComparisonRow:
    return next(row for row in comparison.rows if row.law == law)


def test_one_row_for_each_law_best_first(comparison: Comparison) -> None:
    assert {row.law for row in comparison.rows} == {law.__name__ for law in PLAIN}
    at_largest = [row.epsilons[0] for row in comparison.rows]
    assert at_largest == sorted(at_largest)
    # At one composition Laplace is best: the order has to come from the largest count.
    assert comparison.rows[0].law == "Airy"
    assert min(comparison.rows, key=lambda row: row.epsilons[1]).law == "Laplace"


def test_epsilons_are_those_of_the_mechanism(comparison: Comparison) -> None:
    # Anchors of the contour method, computed outside this package.
    airy = row_of(comparison, "Airy")
    assert airy.epsilons[0] == pytest.approx(0.94027041, abs=1e-7)
    assert airy.epsilons[2] == pytest.approx(0.20587318, abs=1e-7)
    # One subsampled Laplace loss is at most log(1 + q (e^(1/2) - 1)).
    largest = math.log1p(0.01 * math.expm1(0.5))
    assert row_of(comparison, "Laplace").epsilons[1] == pytest.approx(largest, abs=1e-7)


def test_costs_are_those_of_the_law() -> None:
    comparison = pn.compare(mean_abs=3.0, sensitivity=0.5, counts=[10], speed=False)
    for row in comparison.rows:
        assert row.noise.mean_abs == pytest.approx(3.0, rel=1e-14)
        assert row.nanoseconds_per_sample is None
        mechanism = pn.Mechanism(row.noise, 0.5)
        assert row.epsilons == (mechanism.composed(10).estimate.epsilon(1e-6),)
    assert row_of(comparison, "Laplace").to_dict()["mean_square"] == pytest.approx(18.0)
    gaussian = row_of(comparison, "Gaussian").to_dict()
    assert gaussian["mean_square"] == pytest.approx(4.5 * math.pi)
    assert gaussian["fisher_information"] == pytest.approx(1.0 / (4.5 * math.pi))


def test_speed_is_measured_in_nanoseconds_per_sample() -> None:
    (row,) = pn.compare(counts=[1], laws=[pn.Laplace], speed_seconds=0.01).rows
    assert row.nanoseconds_per_sample is not None
    # Between what memory bandwidth allows and a slow machine without the extension.
    assert 0.05 < row.nanoseconds_per_sample < 5000.0


def test_families_are_picklable() -> None:
    family = Family(pn.DiscreteStable, alpha=1.7)
    for again in (pickle.loads(pickle.dumps(family)), copy.deepcopy(family)):
        assert repr(again) == repr(family)
        assert again(scale=3.0) == family(scale=3.0)


def test_immutable_and_picklable(comparison: Comparison) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        comparison.delta = 1.0  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(comparison)) == comparison


def test_to_dict_is_plain(comparison: Comparison) -> None:
    plain = comparison.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["counts"] == [2000, 1, 100]
    assert plain["rows"][0]["epsilons"] == list(comparison.rows[0].epsilons)
    assert plain["method"] == "estimate"


def test_table_is_aligned_and_names_its_conditions(comparison: Comparison) -> None:
    text = str(comparison)
    for condition in ("E|Z| = 2", "sensitivity 1", "delta 1e-08", "rate 0.01", "add-remove"):
        assert condition in text
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("law"))
    table = lines[start : start + 1 + len(PLAIN)]
    # Numbers of one column have their points below each other, under the title's right end.
    points = [{i for i, char in enumerate(line) if char == "."} for line in table[1:]]
    assert points[0] == points[1] == points[2]
    assert "ns/sample" not in text
    assert "estimate" in text
    airy = next(line for line in table if line.startswith("Airy"))
    assert "0.9403*" in airy
    assert "2.0000*" not in text  # equal by construction: nothing to mark


def test_columns_with_infinities_and_ties() -> None:
    assert column("x", [math.inf, 2.0]) == ["x ", "inf ", "2.0000*"]
    assert column("x", [1.0, 1.0]) == ["x ", "1.0000 ", "1.0000 "]
    assert column("x", [1e-9, 1.0]) == ["x ", "1e-09*", "1 "]
    assert column("x", [0.0, 123.456]) == ["x ", "0.00*", "123.46 "]


def test_delta_zero_gives_the_largest_losses() -> None:
    comparison = pn.compare(delta=0.0, counts=[7], speed=False)
    assert comparison.rows[0].law == "Laplace"
    assert comparison.rows[0].epsilons == (pytest.approx(7.0),)
    assert row_of(comparison, "Gaussian").epsilons == (math.inf,)
    assert "inf" in str(comparison)


def test_all_families_by_default() -> None:
    found = pn.compare(counts=[10], speed=False)
    assert {row.law for row in found.rows} == {law.__name__ for law in FAMILIES}


@pytest.fixture(scope="module")
def target() -> TargetComparison:
    return pn.compare(epsilon=1.0, delta=1e-6, count=1000, sampling_rate=0.01, laws=PLAIN)


def test_target_rows_are_calibrated_and_sorted(target: TargetComparison) -> None:
    assert {row.law for row in target.rows} == {law.__name__ for law in PLAIN}
    costs = [row.cost for row in target.rows]
    assert costs == sorted(costs)
    # The order of the paper's figure 2: many small steps under the cost |x|.
    assert [row.law for row in target.rows[:3]] == ["Airy", "Gaussian", "Laplace"]
    assert target.best.law == "Airy"
    for row in target.rows:
        assert row.noise is not None
        assert row.cost == row.mean_abs == row.noise.mean_abs
        assert row.mean_square == pytest.approx(row.noise.moment(2))
        family = next(law for law in FAMILIES if law.__name__ == row.law)
        assert row.noise == calibrate(
            family, epsilon=1.0, delta=1e-6, count=1000, sampling_rate=0.01
        )


def test_target_costs_are_those_of_the_laws() -> None:
    words = {"epsilon": 2.0, "delta": 1e-5, "sensitivity": 3.0, "progress": False, "laws": PLAIN}
    by_variance = pn.compare(cost="variance", **words)  # type: ignore[call-overload]
    for row in by_variance.rows:
        assert row.cost == pytest.approx(row.noise.std**2)

    def quartic(x: np.ndarray) -> np.ndarray:
        return x**4

    by_quartic = pn.compare(cost=quartic, **words)  # type: ignore[call-overload]
    assert by_quartic.cost == "quartic"
    for row in by_quartic.rows:
        assert row.cost == pytest.approx(row.noise.moment(4), rel=1e-9)
        assert row.noise in {other.noise for other in by_variance.rows}
    assert "E quartic(Z)" in str(by_quartic)


def test_target_that_some_laws_miss() -> None:
    found = pn.compare(epsilon=0.5, delta=0.0, laws=[pn.Gaussian, pn.Laplace])
    assert [row.law for row in found.rows] == ["Laplace", "Gaussian"]
    assert found.best.noise == pn.Laplace(scale=2.0)
    assert found.rows[1].noise is None
    assert found.rows[1].cost == math.inf
    assert "no largest privacy loss" in found.rows[1].reason
    assert found.rows[1].reason in str(found)
    with pytest.raises(pn.CalibrationError, match="no largest privacy loss"):
        pn.compare(epsilon=0.5, delta=0.0, laws=[pn.Gaussian, pn.Airy])


def test_what_one_law_cannot_have_is_said_in_its_row() -> None:
    """Kills: an error for all laws where the range, or the worst case, of one ends."""
    laws = [pn.Gaussian, pn.Staircase, pn.OptimalUnimodal]
    wide = pn.compare(epsilon=1000.0, delta=1e-9, laws=laws)
    assert [row.calibration is None for row in wide.rows] == [False, True, True]
    assert all("epsilon must be at most" in row.reason for row in wide.rows[1:])
    narrow = pn.compare(
        epsilon=4e-8, delta=1e-9, sensitivity=180363.0, laws=[pn.Laplace, pn.DiscreteLaplace]
    )
    assert "above 6.0961e+06 sensitivities" in narrow.rows[1].reason
    replaced = {"sampling_rate": 0.1, "adjacency": "replace", "contribution": 0.5}
    stable = pn.noise.Family(pn.SymmetricStable, alpha=1.5)
    found = pn.compare(epsilon=1.0, delta=1e-6, laws=[stable, pn.Airy], **replaced)
    assert [row.calibration is None for row in found.rows] == [False, True]
    with pytest.raises(pn.DomainError, match="log-concave"):
        pn.compare(epsilon=1.0, delta=1e-6, laws=[stable], **replaced)


def test_laws_without_a_proof_are_left_out_unless_they_are_named() -> None:
    replaced = {"sampling_rate": 0.1, "adjacency": "replace", "contribution": 0.5}
    found = pn.compare(mean_abs=2.0, counts=[5], speed=False, **replaced)
    assert found.unproven == ("SymmetricStable(alpha=1.5)",)
    assert "its worst case is not proven" in str(found)
    assert len(found.rows) == len(FAMILIES) - 1
    stable = pn.noise.Family(pn.SymmetricStable, alpha=1.5)
    with pytest.raises(pn.DomainError, match="log-concave"):
        pn.compare(mean_abs=2.0, counts=[5], speed=False, laws=[stable, pn.Airy], **replaced)
    with pytest.raises(pn.DomainError, match="contribution must be at most half"):
        pn.compare(mean_abs=2.0, speed=False, **{**replaced, "contribution": 5.0})


def test_target_table_and_dict(target: TargetComparison) -> None:
    text = str(target)
    for condition in ("epsilon 1", "delta 1e-06", "1000 uses", "rate 0.01", "certified"):
        assert condition in text
    airy = next(line for line in text.splitlines() if line.startswith("Airy"))
    assert "1.1850*" in airy
    assert "best: Airy" in text
    plain = target.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["best"] == plain["rows"][0]["law"] == "Airy"
    assert all(row["delta_upper"] <= 1e-6 for row in plain["rows"])
    assert pickle.loads(pickle.dumps(target)) == target


def test_target_plot_draws_the_costs(target: TargetComparison) -> None:
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    assert target.plot(ax) is ax
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == [row.cost for row in target.rows]
    assert [label.get_text() for label in ax.get_yticklabels()] == [r.law for r in target.rows]
    infinite = pn.compare(epsilon=0.5, delta=0.0, laws=[pn.Gaussian, pn.Laplace])
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    infinite.plot(ax)
    assert [bar.get_width() for bar in ax.patches] == [2.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 1.0}, TypeError, "delta must be given"),
        ({"count": 10}, TypeError, "epsilon must be given"),
        ({"cost": "variance", "delta": 0.1}, TypeError, "epsilon must be given"),
        ({"epsilon": 1.0, "delta": 0.1, "counts": [1]}, TypeError, "epsilon and counts"),
        ({"epsilon": 1.0, "delta": 0.1, "mean_abs": 1.0}, TypeError, "epsilon and mean_abs"),
        ({"epsilon": 1.0, "delta": 0.1, "cost": "money"}, ValueError, "cost must be one of"),
        ({"epsilon": 1.0, "delta": 0.1, "cost": 3}, TypeError, "cost must be one of"),
        ({"epsilon": -1.0, "delta": 0.1}, ValueError, "epsilon must be in"),
        ({"epsilon": 1.0, "delta": 2.0}, ValueError, "delta must be in"),
        ({"epsilom": 1.0}, TypeError, "did you mean 'epsilon'"),
    ],
)
def test_bad_targets(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pn.compare(**arguments)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mean_abs": 0.0}, ValueError, "mean_abs must be positive"),
        ({"mean_abs": "1"}, TypeError, "mean_abs must be a real number"),
        ({"sensitivity": math.nan}, ValueError, "sensitivity must be positive"),
        ({"delta": 1.5}, ValueError, "delta must be in"),
        ({"sampling_rate": -0.1}, ValueError, "sampling_rate must be in"),
        ({"counts": []}, ValueError, "counts must name at least one"),
        ({"counts": 3}, TypeError, "counts must be an iterable"),
        ({"counts": [1, 2.5]}, TypeError, "counts must be an integer"),
        ({"counts": [-1]}, ValueError, "counts must be at least 0"),
        ({"counts": [2**63]}, OverflowError, "counts must be at most"),
        ({"laws": []}, ValueError, "laws must name at least one"),
        ({"laws": pn.Airy}, TypeError, "laws must be an iterable"),
        ({"laws": [pn.Airy(std=1.0)]}, TypeError, "laws must be noise classes"),
        ({"laws": [pn.Cauchy]}, TypeError, "or psinoise.noise.Family of one"),
        ({"laws": [pn.DiscreteLaplace]}, TypeError, "DiscreteLaplace, which a target compares"),
        ({"adjacency": "substitute"}, ValueError, "adjacency must be"),
        ({"speed_seconds": 0.0}, ValueError, "speed_seconds must be positive"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pn.compare(**{"speed": False, "counts": [1], **arguments})  # type: ignore[arg-type]


def test_plot_draws_the_epsilons_in_order_of_the_counts(comparison: Comparison) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    ax = figure.subplots()
    assert comparison.plot(ax) is ax
    lines = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
    assert set(lines) == {law.__name__ for law in PLAIN}
    nothing = pn.compare(laws=[pn.Laplace], counts=[0], speed=False)
    with pytest.raises(pn.DomainError, match="plot needs a count above 0"):
        nothing.plot(figure.subplots())
    epsilons = row_of(comparison, "Airy").epsilons
    expected = [(1, epsilons[1]), (100, epsilons[2]), (2000, epsilons[0])]
    np.testing.assert_array_equal(lines["Airy"], expected)


class _Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_progress_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    assert list(_progress.track(range(3), "work")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(_progress.track(range(3), "work")) == [0, 1, 2]
    assert "work" in terminal.text
    shown = terminal.text
    assert list(_progress.track(range(3), "work", enabled=False)) == [0, 1, 2]
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(_progress.track(range(3), "work")) == [0, 1, 2]
    assert terminal.text == shown


def test_tables_of_notebooks_and_frames(comparison: Comparison, target: TargetComparison) -> None:
    """All show the same rows, and names of laws and costs are text, not markup."""
    assert repr(comparison) == str(comparison)
    for found in (comparison, target):
        page = found._repr_html_()
        assert page.count("<tr>") == page.count("</tr>") == 1 + len(PLAIN)
        assert all(f">{row.law}</td>" in page for row in found.rows)
        frame = found.to_pandas()
        assert list(frame["law"]) == [row.law for row in found.rows]
    frame = comparison.to_pandas()
    assert list(frame["epsilon_at_2000"]) == [row.epsilons[0] for row in comparison.rows]
    assert list(target.to_pandas()["cost"]) == [row.cost for row in target.rows]
    page = dataclasses.replace(target, cost="<b>")._repr_html_()
    assert "<b>" not in page
    assert "E &lt;b&gt;(Z)" in page


def test_without_pandas(target: TargetComparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        target.to_pandas()
