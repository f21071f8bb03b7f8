"""The command line: output, exit status, and one line for each mistake."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import psinoise
from command_line_calls import answer, mistake, strict
from psinoise import __main__ as command_line
from psinoise import costs
from psinoise.calibration import calibrate
from psinoise.commands._json import print_json
from psinoise.commands._mechanism import law_names, rounded
from psinoise.figures import FIGURES
from psinoise.noise import DESIGNED, FAMILIES, LAWS, Family

PAPER = ["--mean-abs", "2", "--count", "2000", "--sampling-rate", "0.01"]


def as_option(value: object) -> str:
    """A parameter of a law as one would type it."""
    if isinstance(value, costs.Power):
        return f"power:{value.p!r}:{value.weight!r}"
    if isinstance(value, costs.Log):
        return f"log:{value.power!r}:{value.weight!r}"
    return repr(value)


def test_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["epsilon", "--noise", "airy", "--delta", "1e-8", *PAPER]
    text = answer(capsys, *words)
    found = psinoise.Mechanism(psinoise.Airy(mean_abs=2.0)).epsilon(1e-8, 2000, 0.01)
    upper, estimate, lower, conditions = text.splitlines()
    # Ten digits, never rounded to the wrong side.
    assert 0.0 <= float(upper.removeprefix("epsilon <= ").split()[0]) - found.upper < 1.1e-9
    assert 0.0 <= found.lower - float(lower.removeprefix("epsilon >= ").split()[0]) < 1.1e-9
    assert upper.endswith("certified")
    assert lower.endswith("certified")
    assert estimate.split() == ["estimate", "0.94027"]
    for condition in ("Airy(mean_abs=2.0)", "count 2000", "rate 0.01", "add-remove", "certified"):
        assert condition in conditions
    text = answer(capsys, *words, "--method", "estimate")
    assert text.startswith("epsilon = 0.9402704091")
    assert "method estimate" in text
    # One word for what is infinite, whatever is printed.
    words = ["epsilon", "--noise", "gaussian", "--std", "1", "--delta", "0"]
    bounds = answer(capsys, *words).splitlines()[:3]
    assert [line.split()[-2 if "=" in line else -1] for line in bounds] == ["inf"] * 3
    assert strict(answer(capsys, *words, "--json"))["upper"] == "inf"


def test_epsilon_as_json_has_full_precision(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["epsilon", "--noise", "airy", "--delta", "1e-8", *PAPER, "--json"]
    found = strict(answer(capsys, *words))
    mechanism = psinoise.Mechanism(psinoise.Airy(mean_abs=2.0))
    bounds = mechanism.epsilon(1e-8, 2000, 0.01)
    assert isinstance(found, dict)
    assert (found["lower"], found["estimate"], found["upper"]) == tuple(bounds)
    assert found["epsilon"] == bounds.upper
    assert found["noise"] == "Airy(mean_abs=2.0)"
    assert (found["count"], found["sampling_rate"], found["delta"]) == (2000, 0.01, 1e-8)
    estimated = strict(answer(capsys, *words, "--method", "estimate"))
    assert isinstance(estimated, dict)
    assert estimated["epsilon"] == pytest.approx(bounds.estimate, rel=1e-5)
    assert "upper" not in estimated


def test_tolerance_is_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["epsilon", "--noise", "airy", "--mean-abs", "2", "--delta", "1e-6", "--json"]
    found = strict(answer(capsys, *words, "--tolerance", "1e-6"))
    assert isinstance(found, dict)
    assert 0.0 <= found["upper"] - found["lower"] <= 1e-6
    assert "tolerance must be positive" in mistake(capsys, *words, "--tolerance", "0")


@pytest.mark.parametrize("size", ["scale", "std", "mean_abs"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_law_by_every_size(
    capsys: pytest.CaptureFixture[str], family: Family, size: str
) -> None:
    (name,) = (name for name, law in law_names().items() if law is family.law)
    words = ["delta", "--noise", name, "--epsilon", "0.25", "--json"]
    for parameter, value in family.shape.items():
        words += ["--" + parameter.replace("_", "-"), as_option(value)]
    words += ["--" + size.replace("_", "-"), "3"]
    if getattr(family(scale=1.0), size) == math.inf:
        assert mistake(capsys, *words).startswith(f"{size} must be left out")
        return
    text = answer(capsys, *words)
    law = family(**{size: 3.0})
    expected = psinoise.Mechanism(law).delta(0.25)
    found = strict(text)
    assert isinstance(found, dict)
    assert (found["lower"], found["estimate"], found["upper"]) == tuple(expected)
    assert found["noise"] == repr(law)


@pytest.mark.parametrize(
    "value", [0.1, 1.0, 2.0 / 3.0, 9.9999999996e-7, 1e300 / 7.0, 123456789012345.0, 5e-324]
)
def test_bounds_are_rounded_outwards(value: float) -> None:
    up, down = rounded(value, 1), rounded(value, -1)
    assert Fraction(up) >= Fraction(value) >= Fraction(down)
    assert float(up) == pytest.approx(value, rel=2e-9)
    assert float(down) == pytest.approx(value, rel=2e-9)
    for exact in (0.0, 0.5, 1.0, 50.0, 120.0, 1e9, 1e20, math.inf, -math.inf):
        assert rounded(exact, 1) == rounded(exact, -1) == f"{exact:.10g}"


def test_parameters_other_than_the_size(capsys: pytest.CaptureFixture[str]) -> None:
    stable = ["--noise", "symmetric-stable", "--scale", "20"]
    rest = ["--delta", "1e-6", "--method", "estimate"]
    law = psinoise.SymmetricStable(alpha_minus_one=1e-3, scale=20.0)
    text = answer(capsys, "epsilon", *stable, "--alpha-minus-one", "1e-3", *rest)
    assert repr(law) in text
    words = ["calibrate", "--noise", "symmetric-stable", "--alpha", "1.5", "--epsilon", "1"]
    found = strict(answer(capsys, *words, "--delta", "0", "--method", "estimate", "--json"))
    assert isinstance(found, dict)
    assert found["noise"].startswith("SymmetricStable(alpha=1.5, scale=")
    message = mistake(capsys, "epsilon", *stable, *rest)
    assert message.startswith("SymmetricStable takes exactly one of alpha, ")
    airy = ["--noise", "airy", "--scale", "20", "--alpha", "1.5"]
    assert mistake(capsys, "epsilon", *airy, *rest) == "--alpha is no parameter of airy noise"


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("power:1.5", costs.Power(1.5)),
        ("log", costs.Log()),
        ("power:2 + log:2:0.5", costs.Power(2) + costs.Log(2, weight=0.5)),
        ("max(power:1, power:2)", costs.maximum(costs.Power(1), costs.Power(2))),
    ],
)
def test_a_cost_and_its_bound(
    capsys: pytest.CaptureFixture[str], text: str, cost: costs.Cost
) -> None:
    words = ["epsilon", "--noise", "schrodinger", "--cost", text, "--delta", "1e-6", "--json"]
    words += ["--count", "100", "--sensitivity", "0.1", "--method", "estimate"]
    for bound in ("mean_cost", "theta"):
        law = psinoise.Schrodinger(cost=cost, **{bound: 2.0})
        found = strict(answer(capsys, *words, "--" + bound.replace("_", "-"), "2"))
        assert isinstance(found, dict)
        assert found["noise"] == repr(law)
        expected = psinoise.Mechanism(law, 0.1).composed(100).estimate.epsilon(1e-6)
        assert found["epsilon"] == expected
    both = psinoise.Schrodinger(cost=costs.Log(), theta=2.0, std=3.0)
    words = ["delta", "--noise", "schrodinger", "--cost", "log", "--theta", "2", "--std", "3"]
    assert repr(both) in answer(capsys, *words, "--epsilon", "1")


SMALL = ["--cells-per-sensitivity", "20", "--cells", "160", "--tail-ratio", "0.35"]


@pytest.mark.parametrize(
    ("words", "law"),
    [
        (["uniform-atom", "--noise-delta", "0.3"], lambda s: psinoise.UniformAtom(delta=0.3, **s)),
        (
            ["staircase", "--noise-epsilon", "1", "--power", "2"],
            lambda s: psinoise.Staircase(epsilon=1.0, power=2, **s),
        ),
        (["discrete-laplace", "--scale", "3"], lambda s: psinoise.DiscreteLaplace(scale=3.0)),
        (
            ["discrete-laplace", "--noise-epsilon", "0.5"],
            lambda s: psinoise.DiscreteLaplace(epsilon=0.5, sensitivity=2),
        ),
        (
            ["discrete-stable", "--alpha", "1.7", "--scale", "3"],
            lambda s: psinoise.DiscreteStable(alpha=1.7, scale=3.0),
        ),
        (
            ["cactus", *SMALL, "--cost", "power:1", "--mean-cost", "1"],
            lambda s: psinoise.Cactus(
                cost=1.0, mean_cost=1.0, cells_per_sensitivity=20, cells=160, tail_ratio=0.35, **s
            ),
        ),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_laws_that_are_made_for_a_sensitivity(
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    law: Callable[[dict[str, float]], psinoise.NoiseLaw],
) -> None:
    text = answer(
        capsys, "delta", "--noise", *words, "--sensitivity", "2", "--epsilon", "0.7", "--json",
        "--tolerance", "0.01",
    )  # fmt: skip
    found = strict(text)
    assert isinstance(found, dict)
    expected = law({"sensitivity": 2.0})
    bounds = psinoise.Mechanism(expected, 2.0).delta(0.7, tolerance=0.01)
    assert (found["lower"], found["estimate"], found["upper"]) == tuple(bounds)
    assert found["noise"] == repr(expected)
    if words[0] == "cactus":
        assert found["largest_kl"] == expected.certificate.largest_kl
        assert 0.0 <= found["gap"] < 1e-8


def test_designed_laws_are_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["calibrate", "--noise", "staircase", "--power", "2", "--epsilon", "1", "--delta", "0"]
    found = strict(answer(capsys, *words, "--sensitivity", "3", "--json"))
    assert isinstance(found, dict)
    law = eval(found["noise"], vars(psinoise))
    assert (law.sensitivity, law.power) == (3.0, 2)
    assert law.epsilon == pytest.approx(1.0, rel=1e-13)
    assert found["delta_bounds"]["upper"] == 0.0
    # A law that a theorem makes is certified whatever was asked for.
    assert "method certified" in answer(capsys, *words, "--method", "estimate")


class Terminal(io.StringIO):
    """Standard error that somebody watches."""

    def isatty(self) -> bool:
        return True


def test_long_solutions_show_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    words = ["delta", "--noise", "cactus", *SMALL, "--epsilon", "1", "--tolerance", "0.01"]
    monkeypatch.setattr(psinoise.Cactus, "_solutions", {})
    monkeypatch.setattr(sys, "stderr", watched := Terminal())
    assert command_line.main(words) == 0
    assert "making cactus noise" in watched.getvalue()
    assert "gap" in watched.getvalue()
    # Nothing is left on the line, and nothing is shown where tqdm is not installed.
    assert watched.getvalue().endswith("\r")
    monkeypatch.setattr(psinoise.Cactus, "_solutions", {})
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys, "stderr", quiet := Terminal())
    assert command_line.main(words) == 0
    assert quiet.getvalue() == ""


def test_calibrate(capsys: pytest.CaptureFixture[str]) -> None:
    target = ["--epsilon", "1", "--delta", "1e-6", "--count", "1000", "--sampling-rate", "0.01"]
    words = ["calibrate", "--noise", "airy", *target, "--sensitivity", "2"]
    expected = calibrate(
        psinoise.Airy, epsilon=1.0, delta=1e-6, sensitivity=2.0, count=1000, sampling_rate=0.01
    )
    text = answer(capsys, *words)
    assert text.splitlines()[0] == repr(expected)
    for condition in ("epsilon 1, delta 1e-06", "sensitivity 2", "count 1000", "certified"):
        assert condition in text
    found = strict(answer(capsys, *words, "--json"))
    assert isinstance(found, dict)
    assert (found["noise"], found["scale"]) == (repr(expected), expected.scale)
    assert 0.0 < found["delta_bounds"]["upper"] <= 1e-6
    assert 0.0 <= found["excess"] < 1e-4


def test_calibrate_what_is_released(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["calibrate", "--noise", "laplace", "--epsilon", "2", "--sensitivity", "3"]
    expected = calibrate(
        psinoise.Laplace, epsilon=2.0, delta=1e-6, sensitivity=3.0, count=50, on_lattice=True
    )
    on_lattice = [*words, "--delta", "1e-6", "--count", "50", "--on-lattice"]
    text = answer(capsys, *on_lattice)
    assert text.splitlines()[0] == expected.law
    assert f"on multiples of {expected.grid!r}" in text
    found = strict(answer(capsys, *on_lattice, "--json"))
    assert isinstance(found, dict)
    assert (found["noise"], found["std"]) == (expected.law, expected.noise.std)
    assert (found["grid"], found["cells"]) == (expected.grid, expected.cells)
    assert 0.0 < found["delta_bounds"]["upper"] <= 1e-6
    pure = [*words, "--delta", "0", "--on-lattice", "--grid", "0.5", "--json"]
    found = strict(answer(capsys, *pure))
    assert isinstance(found, dict)
    assert (found["grid"], found["delta_bounds"]["upper"]) == (0.5, 0.0)
    assert "--grid is for --on-lattice" in mistake(capsys, *words, "--delta", "0", "--grid", "1")
    estimate = mistake(capsys, *on_lattice, "--method", "estimate")
    assert "method must be 'certified'" in estimate


def test_calibrate_stable(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["calibrate-stable", "--epsilon", "1", "--clients", "100", "--alpha", "1.9"]
    local = psinoise.calibrate_stable(epsilon=1.0, clients=100, alpha=1.9)
    text = answer(capsys, *words)
    assert text.splitlines()[0] == repr(local)
    assert f"E|error| {local.aggregate(100).mean_abs:.10g}" in text
    crowd = ["--setting", "distributed", "--dropout", "0.5", "--json"]
    found = strict(answer(capsys, *words, *crowd))
    assert isinstance(found, dict)
    share = psinoise.calibrate_stable(
        epsilon=1.0, clients=100, alpha=1.9, setting="distributed", dropout=0.5
    )
    assert found["noise"] == repr(share)
    assert found["sum"]["noise"] == repr(share.aggregate(100))
    assert found["sum_pure_epsilon"] < 1.0 < found["message_pure_epsilon"]
    whole = psinoise.calibrate_stable(epsilon=1.0, clients=100, alpha=1.9, grid=0.25)
    text = answer(capsys, *words, "--grid", "0.25")
    assert text.splitlines()[0] == repr(whole)
    assert f"E|error| {0.25 * whole.aggregate(100).mean_abs:.10g}" in text
    pure = ["--noise", "symmetric-stable", "--epsilon", "1", "--delta", "0"]
    assert "calibrate_stable" in mistake(capsys, "calibrate", *pure)


def test_laws_come_from_the_one_list() -> None:
    assert tuple(law_names().values()) == (*LAWS, *DESIGNED)


def test_infinities_are_strings_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "epsilon", "--noise", "gaussian", "--std", "1", "--delta", "0", "--json")
    found = strict(text)
    assert isinstance(found, dict)
    assert found["epsilon"] == "inf"
    print_json({"a": [float("-inf"), (1.5, None)], "b": float("nan"), "c": True})
    assert strict(capsys.readouterr().out) == {"a": ["-inf", [1.5, None]], "b": "nan", "c": True}


def test_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = answer(capsys, "compare", "--counts", "1", "50", "--no-speed", "--delta", "1e-5")
    assert text.rstrip("\n") == str(psinoise.compare(counts=(1, 50), speed=False, delta=1e-5))
    pytest.importorskip("matplotlib")
    plot = tmp_path / "compare.svg"
    words = ["compare", "--counts", "50", "--no-speed", "--json", "--plot", str(plot)]
    found = strict(answer(capsys, *words, "--sensitivity", "0.5", "--sampling-rate", "0.5"))
    expected = psinoise.compare(counts=[50], speed=False, sensitivity=0.5, sampling_rate=0.5)
    assert json.dumps(found) == json.dumps(expected.to_dict()).replace("Infinity", '"inf"')
    assert "<svg" in plot.read_text(encoding="utf-8")


def test_compare_at_a_target(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["compare", "--epsilon", "4", "--delta", "1e-5", "--cost", "variance"]
    expected = psinoise.compare(epsilon=4.0, delta=1e-5, cost="variance")
    assert answer(capsys, *words).rstrip("\n") == str(expected)
    pytest.importorskip("matplotlib")
    plot = tmp_path / "target.svg"
    found = strict(answer(capsys, *words, "--json", "--plot", str(plot)))
    # JSON has no infinity, which the variance of a heavy tail is.
    assert json.dumps(found) == json.dumps(expected.to_dict()).replace("Infinity", '"inf"')
    assert "<svg" in plot.read_text(encoding="utf-8")


def test_compare_measures_speed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "ns/sample" in answer(capsys, "compare", "--counts", "1")


def test_figures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    listed = answer(capsys, "figures", "--list")
    assert [line.split()[0] for line in listed.splitlines()] == list(FIGURES)
    pytest.importorskip("matplotlib")
    words = ["figures", "schrodinger-1", "--output", str(tmp_path), "--format", "svg"]
    written = answer(capsys, *words).splitlines()
    assert written == [str(tmp_path / f"schrodinger-1.{ending}") for ending in ("csv", "svg")]
    assert all(Path(path).stat().st_size > 1000 for path in written)


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    found = strict(answer(capsys, "info", "--json"))
    assert isinstance(found, dict)
    assert found["version"] == psinoise.__version__
    assert found["backend"] in {"native", "reference"}
    assert {"numpy", "scipy", "python", "machine"} <= set(found)
    assert found["laws"] == list(law_names())
    text = answer(capsys, "info")
    assert psinoise.__version__ in text
    assert "None" not in text


COMMANDS = ["epsilon", "delta", "compare", "calibrate", "calibrate-stable", "figures", "info"]


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], *([command, "--help"] for command in COMMANDS)]
)
def test_version_and_help(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command_line.main(words)
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith(("psinoise 0.", "usage: psinoise"))
