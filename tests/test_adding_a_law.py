"""The guide's law, added to a copy of the tree as the guide says, is a law like the others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import psinoise

ROOT = Path(__file__).parents[1]
PROGRAM = """
import psinoise as pn
noise = pn.Logistic(std=2.0)
assert pn.Mechanism(noise).epsilon(0.0) <= 1.0 / noise.scale * (1.0 + 1e-9)
assert pn.Mechanism(noise).on_lattice().release([1.0, 2.0]).shape == (2,)
assert pn.calibrate(pn.Logistic, epsilon=1.0, delta=1e-6).scale > 0.5
assert "Logistic" in str(pn.compare(epsilon=1.0, delta=1e-6))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the guide speaks of, with its law added."""
    root = tmp_path_factory.mktemp("tree")
    package = root / "python/psinoise"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(psinoise.__file__).parent, package, ignore=ignored)
    shutil.copy(psinoise._core.__file__, package)
    shutil.copytree(ROOT / "tests", root / "tests", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", root)
    # The finder of an editable installation would come before the copy.
    (root / "python/sitecustomize.py").write_text(
        "import sys\n"
        "finders = [f for f in sys.meta_path if not type(f).__module__.startswith('_editable')]\n"
        "sys.meta_path[:] = finders\n",
        encoding="utf-8",
    )
    law, truth = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("```python\n")[1:3]
    (package / "noise/logistic.py").write_text(law.split("```")[0], encoding="utf-8")
    laws = package / "noise/_laws.py"
    _insert(laws, "from psinoise.noise.logistic import Logistic\n", "from psinoise.noise.opt")
    _insert(laws, "Logistic, ", "Schrodinger)")
    _insert(laws, '    "Logistic",\n', '    "OptimalUnimodal",')
    _insert(root / "tests/law_truth.py", truth.split("```")[0], '    "Laplace": (lambda')
    return root


def _insert(file: Path, text: str, before: str) -> None:
    old = file.read_text("utf-8")
    assert old.count(before) == 1
    file.write_text(old.replace(before, text + before), encoding="utf-8")


def _run(tree: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.deep
def test_it_is_a_law_of_the_package(tree: Path) -> None:
    _run(tree, "-c", PROGRAM)


@pytest.mark.deep
def test_it_meets_the_contract(tree: Path) -> None:
    """Mutant: a log density that is off by 1e-12."""
    found = _run(
        tree, "-m", "pytest", "-q", "tests/test_laws.py", "tests/test_expectations.py",
        "-k", "Logistic", "-p", "no:cacheprovider",
    )  # fmt: skip
    assert "passed" in found


@pytest.mark.deep
def test_it_is_typed_and_formatted(tree: Path) -> None:
    _run(tree, "-m", "mypy", "--cache-dir", str(tree / "cache"), "python/psinoise/noise")
    if shutil.which("ruff"):
        for command in (("check",), ("format", "--check")):
            files = ["python/psinoise/noise/logistic.py", "python/psinoise/noise/_laws.py"]
            subprocess.run(["ruff", *command, *files], cwd=tree, check=True)
