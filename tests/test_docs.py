"""Examples in docstrings and in the README run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import io
import pkgutil
import re
import tokenize
from pathlib import Path

import pytest

import psinoise
from psinoise import optimize

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


DOTTED = re.compile(r"`{1,2}([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`{1,2}")
BY_NAME = {}
for NAME in ("psinoise", *MODULES):
    BY_NAME.setdefault(NAME.rpartition(".")[2], []).append(NAME)
# Modules whose names are those of variables in examples too, of objects of these classes.
VARIABLES = {
    "accountant": [psinoise.Accountant],
    "certificate": [optimize.Certificate],
    "estimate": [type(psinoise.Accountant().estimate)],
    "law": psinoise.noise.LAWS,
    "ledger": [psinoise.Ledger],
    "mechanism": [psinoise.Mechanism, psinoise.LatticeMechanism],
    "noise": [*psinoise.noise.LAWS, *psinoise.noise.DESIGNED],
}
OTHERS = ("dask.array", "opacus.accountants.IAccountant", "psinoise.__main__")
ENDINGS = ("py", "cpp", "hpp", "json", "md", "csv")


def reaches(start, parts):
    """Whether attributes and modules lead on from a module to a name."""
    found, path = importlib.import_module(start), start
    for part in parts:
        path = f"{path}.{part}"
        if hasattr(found, part):
            found = getattr(found, part)
        elif path in MODULES:
            found = importlib.import_module(path)
        else:
            return part in getattr(found, "__annotations__", {})
    return True


def is_dead(dotted):
    """Whether a name that begins as a module of the package does is none."""
    first, *rest = dotted.split(".")
    if first not in BY_NAME or dotted in OTHERS or rest[-1] in ENDINGS:
        return False
    if any(reaches(start, rest) for start in BY_NAME[first]):
        return False
    return not any(
        hasattr(owner, rest[0]) or rest[0] in getattr(owner, "__annotations__", {})
        for owner in VARIABLES.get(first, ())
    )


def dead_names(text):
    """Dotted names in backticks."""
    return sorted(dotted for dotted in set(DOTTED.findall(text)) if is_dead(dotted))


@pytest.mark.parametrize("part", ["python", "docs"])
def test_names_of_modules_exist(part):
    """In docstrings, comments and pages: ``compose.schemes.batches``, not ``compose.batches``."""
    dead = {}
    for path in sorted((ROOT / part).rglob("*.py" if part == "python" else "*.md")):
        text = path.read_text("utf-8")
        if part == "python":
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            kinds = (tokenize.STRING, tokenize.COMMENT)
            text = "\n".join(token.string for token in tokens if token.type in kinds)
        if found := dead_names(text):
            dead[str(path.relative_to(ROOT))] = found
    assert not dead


def test_a_dead_name_would_be_seen():
    text = "``compose.batches``, `compose.schemes.batches`, ``law.cdf(x)``, `noise.stabel`, `a.b`"
    assert dead_names(text) == ["compose.batches", "noise.stabel"]
    assert dead_names("``psinoise.nothing`` and ``psinoise.noise.stable``") == ["psinoise.nothing"]
    assert not dead_names("`accountant.renyi.epsilon`, `question.py`, `certificate.gap`")


FILE = re.compile(r"[\w./-]+\.(?:py|cpp|hpp)\b")
# Written by who follows the page.
NEW_FILES = {"logistic.py"}


def lost_files(text):
    """Files that are named, by a path that ends so, and that are none."""
    return sorted(name for name in set(FILE.findall(text)) - NEW_FILES if not is_file(name))


def is_file(name):
    parts = Path(name).parts
    return any(
        path.parts[-len(parts) :] == parts
        for room in ("benchmarks", "csrc", "docs", "examples", "python", "tests", "tools")
        for path in (ROOT / room).rglob(parts[-1])
    )


@pytest.mark.parametrize("pattern", ["docs/*.md", "csrc/**/*.?pp", "CONTRIBUTING.md", "README.md"])
def test_files_that_are_named_exist(pattern):
    """In pages, and in the comments of C++ files."""
    lost = {}
    for path in sorted(ROOT.glob(pattern)):
        lines = path.read_text("utf-8").splitlines()
        if path.suffix != ".md":
            lines = [line.partition("//")[2] for line in lines]
        if found := lost_files("\n".join(lines)):
            lost[str(path.relative_to(ROOT))] = found
    assert not lost


def test_a_lost_file_would_be_seen():
    assert lost_files("`losses.hpp`, `loss/pairs.py`, tests/test_docs.py") == []
    assert lost_files("`suffix_sums.hpp`, `loss/pear.py`") == ["loss/pear.py", "suffix_sums.hpp"]
