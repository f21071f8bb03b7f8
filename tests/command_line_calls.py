"""Calls of the command line in this process, and what they must print."""

from __future__ import annotations

import json

import pytest

from psinoise import __main__ as command_line


def strict(text: str) -> object:
    """Parse JSON, refusing the infinities that JSON does not have."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"not JSON: {constant}")

    return json.loads(text, parse_constant=refuse)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that must succeed without a word on standard error."""
    assert command_line.main(words) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def mistake(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that must fail, and return its one line."""
    assert command_line.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("psinoise: error: ")
    return captured.err.removeprefix("psinoise: error: ").rstrip("\n")
