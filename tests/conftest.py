"""What the tests share: the two back ends, the laws, and their tables as plain arrays."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import pytest

# Before NumPy is imported: each worker would start as many threads as there are cores, which wait
# for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import psinoise.compile
from psinoise import _core, reference
from psinoise.mechanisms import accounted
from psinoise.noise import FAMILIES, Family, Noise

ROOT = Path(__file__).resolve().parents[1]
CORES = {"native": _core, "reference": reference}


@pytest.fixture(autouse=True)
def no_answers_are_kept() -> None:
    """Mutants must not answer for others, nor others for them."""
    accounted._answer.cache_clear()


class Tables(NamedTuple):
    """The arguments of ``LawTable``, which the extension itself does not give back."""

    log_density: Any
    log_mills: Any
    tail_quantile: Any
    central_quantile: Any
    wide: Any
    narrow: Any


@functools.cache
def _tables(law_class: Family) -> Tables:
    recorder = SimpleNamespace(LawTable=Tables)
    with mock.patch.object(psinoise.compile, "core", recorder):
        return psinoise.compile.compile_law(law_class(scale=1.0))  # type: ignore[return-value]


@pytest.fixture(params=list(CORES))
def core(request: pytest.FixtureRequest) -> ModuleType:
    """Each back end in turn."""
    return CORES[request.param]


@pytest.fixture(params=FAMILIES, ids=lambda law_class: law_class.__name__)
def law_class(request: pytest.FixtureRequest) -> Family:
    """Each family of the package in turn; there is no second list of laws."""
    return request.param


@pytest.fixture
def law(law_class: Family) -> Noise:
    """The standardized member of each family."""
    return law_class(scale=1.0)


@pytest.fixture(scope="session")
def tables_of() -> Callable[[Family], Tables]:
    """A function from a law to its compiled tables, as arrays."""
    return _tables


@pytest.fixture(scope="session")
def load_example() -> Callable[[str], ModuleType]:
    """A function that imports a script of ``examples/`` by its name."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(
            f"{name}_example", ROOT / f"examples/{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look their module up by name.
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """A function that runs code in a fresh interpreter with warnings as errors."""

    def run(code: str, **environment: str) -> str:
        # The package under test, wherever this process found it.
        package = Path(psinoise.__file__).parents[1]
        path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
