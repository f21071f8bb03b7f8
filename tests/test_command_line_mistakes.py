"""Mistakes on the command line: one line each, the right exit status, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line_calls import mistake
from psinoise import __main__ as command_line
from psinoise.commands import figures as figures_command
from refusals import check_rows

TARGET = ("compare", "--epsilon", "1", "--delta", "1e-6")
CALIBRATE = ("calibrate", "--noise", "airy", "--epsilon", "1")
AIRY = ("epsilon", "--noise", "airy", "--delta", "1e-6")
COST = ("epsilon", "--noise", "schrodinger", "--delta", "1e-6", "--cost", "power")


MISTAKES = [
    ((), "a command must be given: compare, calibrate, "),
    (("frobnicate",), "invalid choice: 'frobnicate'"),
    (("info", "--colour"), "unrecognized arguments: --colour"),
    (AIRY, "Airy takes exactly one of scale, std, mean_abs, got 0"),
    ((*AIRY, "--std", "1", "--scale", "1"), "--scale: not allowed with argument --std"),
    ((*AIRY, "--std", "1", "--cost", "log"), "--cost is no parameter of airy noise"),
    ((*COST[:-2], "--std", "1"), "schrodinger noise needs --cost"),
    (COST[:-1], "argument --cost: expected one argument"),
    ((*COST, "--mean-cost", "1"), "cost must have : and a number instead of the end"),
    ((*COST[:-1], "power:200"), "argument --cost: p must be in [1/100, 100], got 200.0"),
    ((*COST[:-1], "log"), "Schrodinger takes exactly one of mean_cost, theta, scale, "),
    ((*COST[:-1], "log", "--mean-cost", "one"), "invalid float value: 'one'"),
    ((*COST[:-1], "log", "--mean-cost", "1", "--theta", "1"), "takes exactly one of"),
    ((*AIRY, "--std", "one"), "invalid float value: 'one'"),
    ((*AIRY, "--std", "nan"), "std must be positive and finite, got nan"),
    ((*AIRY, "--std", "-1"), "std must be positive and finite, got -1.0"),
    ((*AIRY, "--std", "1", "--count", "2.5"), "invalid int value: '2.5'"),
    ((*AIRY, "--std", "1", "--count", "-1"), "count must be at least 0"),
    ((*AIRY, "--std", "1", "--count", str(2**63)), "count must be at most"),
    ((*AIRY, "--std", "1", "--sampling-rate", "2"), "sampling_rate must be in [0, 1]"),
    ((*AIRY, "--std", "1", "--adjacency", "substitute"), "adjacency must be one of"),
    ((*AIRY, "--std", "1", "--method", "magic"), "method must be one of"),
    (("epsilon", "--noise", "airy", "--std", "1", "--delta", "2"), "delta must be in [0, 1]"),
    (("epsilon", "--noise", "pink", "--std", "1", "--delta", "0"), "invalid choice: 'pink'"),
    (("delta", "--noise", "airy", "--std", "1", "--epsilon", "nan"), "epsilon must not be NaN"),
    (("delta", "--noise", "staircase", "--epsilon", "1"), "staircase noise needs --noise-eps"),
    (
        ("delta", "--noise", "staircase", "--epsilon", "1", "--noise-delta", "0.1"),
        "--noise-delta is no parameter of staircase noise",
    ),
    (
        ("delta", "--noise", "cactus", "--epsilon", "1", "--cells", "1.5"),
        "argument --cells: invalid int value: '1.5'",
    ),
    (
        ("calibrate", "--noise", "uniform-atom", "--epsilon", "1", "--delta", "0.1"),
        "UniformAtom noise is made for epsilon = 0",
    ),
    (("compare", "--no-speed", "--counts"), "expected at least one argument"),
    (("compare", "--no-speed", "--mean-abs", "0"), "mean_abs must be positive"),
    (("compare", "--epsilon", "1"), "--epsilon needs --delta"),
    (("compare", "--count", "3"), "--count needs --epsilon"),
    ((*TARGET, "--counts", "1"), "--epsilon and --counts do not go together"),
    ((*TARGET, "--no-speed"), "--epsilon and --no-speed do not go together"),
    (
        (*TARGET, "--cost", "money"),
        "must be mean-abs, variance or a cost: cost must have power, ",
    ),
    ((*CALIBRATE, "--delta", "0"), "Airy noise has no largest privacy loss"),
    ((*CALIBRATE, "--delta", "1"), "delta must be below 1"),
    ((*CALIBRATE, "--delta", "1e-6", "--epsilon", "-1"), "epsilon must be in [0, 100000]"),
    ((*CALIBRATE, "--delta", "1e-6", "--count", "0"), "count must be at least 1"),
    ((*CALIBRATE, "--delta", "nan"), "delta must be in [0, 1]"),
    (CALIBRATE, "the following arguments are required: --delta"),
    (("figures", "mona-lisa"), "figure must be one of schrodinger-1, schrodinger-2"),
    (("figures", "--format", "bmp"), "invalid choice: 'bmp'"),
]


def test_mistakes_get_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def check(words: tuple[str, ...], message: str) -> None:
        assert message in mistake(capsys, *words)

    check_rows(MISTAKES, check)


def test_files_that_cannot_be_written_get_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    words = ["figures", "schrodinger-1", "--output", __file__]
    assert "File exists" in mistake(capsys, *words)
    words = ["compare", "--no-speed", "--counts", "1", "--plot", f"{__file__}/x.png"]
    assert "Not a directory" in mistake(capsys, *words)


def test_missing_matplotlib_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    wanted = 'pip install "psinoise[plot]"'
    assert wanted in mistake(capsys, "figures", "schrodinger-1", "--output", str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()
    assert wanted in mistake(capsys, "compare", "--no-speed", "--plot", str(tmp_path / "x.png"))


def raising(error: BaseException) -> Callable[..., int]:
    def run(_: object) -> int:
        raise error

    return run


def test_interrupt_and_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures_command, "run", raising(KeyboardInterrupt()))
    assert command_line.main(["figures"]) == 128 + signal.SIGINT
    # What is no user's fault keeps its traceback.
    monkeypatch.setattr(figures_command, "run", raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        command_line.main(["figures"])
    monkeypatch.setattr(figures_command, "run", raising(ModuleNotFoundError("x", name="numpy.x")))
    with pytest.raises(ModuleNotFoundError):
        command_line.main(["figures"])


def test_many_lines_of_an_error_become_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_command, "run", raising(ValueError("one\n  two")))
    assert mistake(capsys, "figures") == "one two"
    monkeypatch.setattr(figures_command, "run", raising(MemoryError()))
    assert mistake(capsys, "figures") == "MemoryError"


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *words],
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
        **options,  # type: ignore[call-overload]
    )


def test_as_a_program() -> None:
    good = run("-m", "psinoise", "delta", "--noise", "laplace", "--scale", "1", "--epsilon", "2")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("delta <= 0 ")
    bad = run("-m", "psinoise", "delta", "--noise", "laplace")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.count("\n") == 1


def test_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "psinoise", "info"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_import_leaves_optional_packages_alone() -> None:
    program = (
        "import sys, psinoise, psinoise.__main__\n"
        "heavy = {'matplotlib', 'tqdm', 'pandas', 'psinoise.plotting', 'psinoise.figures'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run("-c", program).stdout == "[]\n"
