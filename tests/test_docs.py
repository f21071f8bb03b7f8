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


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_readme_examples():
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted >= 8
    assert results.failed == 0


@pytest.mark.parametrize(
    "page",
    ["release.md", "releasing.md", "statistics.md", "clients.md", "training.md", "blocks.md"],
)
def test_examples_of_the_pages(page):
    results = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert results.attempted >= 8
    assert results.failed == 0


def test_the_example_of_the_page_on_stable_noise():
    results = doctest.testfile(str(ROOT / "docs/stable.md"), module_relative=False)
    assert results.attempted == 4
    assert results.failed == 0


def test_the_law_of_the_contributing_guide_works():
    """The code block of "Add a law", as it stands there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.split("```python\n")[1].split("```")[0]
    header = (
        "import math\nimport numpy as np\nfrom psinoise._backend import core\n"
        "from psinoise.noise._base import ScaleFamily\n"
    )
    namespace: dict[str, object] = {}
    exec(header + block, namespace)
    noise = namespace["Logistic"](scale=2.0)
    assert noise.cdf(0.0) == pytest.approx(0.5)
    assert noise.ccdf(3.0) == pytest.approx(1.0 / (1.0 + 2.718281828459045**1.5), rel=1e-13)
    assert abs(noise.sample(200_000, rng=1)).mean() == pytest.approx(noise.mean_abs, rel=0.02)
    epsilon = psinoise.Mechanism(noise).composed(count=10).estimate.epsilon(1e-6)
    assert 0.0 < epsilon <= 10 * 0.5  # pure: each use loses at most sensitivity / scale
