"""Examples in docstrings and in the README run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import psinoise

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(psinoise.__path__, "psinoise.")
    if not module.name.endswith("__main__") and "_core" not in module.name
)
# What the examples of a module need, of packages that the tests do not.
NEEDS = {"psinoise.adapters.dask": "dask.array"}


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_readme_examples():
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted >= 8
    assert results.failed == 0


def test_the_first_page_of_readme_and_site_is_two_tasks():
    """One command and five lines each: a table that is released, the epsilon of a training run."""
    blocks = {}
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text("utf-8")
        found = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        assert [kind for kind, _ in found[:3]] == ["bash", "python", "python"]
        command, *tasks = (block for _, block in found[:3])
        assert command.count("\n") == 1
        assert command.startswith("pip install ")
        assert all(0 < task.count(">>> ") <= 5 for task in tasks)
        blocks[page] = tasks
    assert blocks["README.md"] == blocks["docs/index.md"]
    release, training = blocks["README.md"]
    assert ".release(" in release
    assert ".epsilon(" in training


@pytest.mark.parametrize(
    "page",
    [
        *("index.md", "tables.md", "training.md", "clients.md", "comparing.md", "reproducing.md"),
        *("release.md", "releasing.md", "statistics.md", "blocks.md"),
        *("stable.md", "choosing.md"),
    ],
)
def test_examples_of_the_pages(page):
    results = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert results.attempted >= 6
    assert results.failed == 0
