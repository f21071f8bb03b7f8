"""Examples in docstrings and in the README run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
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
