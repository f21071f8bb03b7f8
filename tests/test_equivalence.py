"""The contract ``_core.pyi`` against both back ends: names, signatures and results.

Every name of the contract needs a comparison, here or in the package ``comparisons``; a new one
without it fails the first test.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import psinoise
from comparisons import COMPARISONS, compares
from comparisons.losses import loss_at
from psinoise import _core as native
from psinoise import reference
from psinoise.noise import FAMILIES, Family, SymmetricStable

HEAVY = Family(SymmetricStable, alpha=1.5)
STUB = Path(psinoise.__file__).with_name("_core.pyi")


def contract():
    """Names of the stub and their parameters; a class counts by its constructor."""
    body = ast.parse(STUB.read_text(encoding="utf-8")).body
    found = {}
    for node in body:
        if getattr(node, "name", "").startswith("_"):
            continue  # of the stub alone
        if isinstance(node, ast.ClassDef):
            node_ = next(
                item
                for item in node.body
                if isinstance(item, ast.FunctionDef) and item.name == "__init__"
            )
            found[node.name] = [
                argument.arg for argument in node_.args.args if argument.arg != "self"
            ]
        elif isinstance(node, ast.FunctionDef):
            assert not node.args.defaults, "an argument of the contract has no default"
            found[node.name] = [argument.arg for argument in node.args.args]
    return found


def native_parameters(name):
    """From the first line of the docstring that pybind11 writes."""
    item = getattr(native, name)
    text = (item.__init__ if inspect.isclass(item) else item).__doc__
    inner = re.search(r"\((.*)\)\s*->", text.splitlines()[0]).group(1)
    while re.search(r"\[[^\[\]]*\]", inner):
        inner = re.sub(r"\[[^\[\]]*\]", "", inner)
    names = [part.split(":")[0].strip() for part in inner.split(",") if part.strip()]
    assert "=" not in inner, "an argument of the contract has no default"
    return [part for part in names if part != "self"]


def reference_parameters(name):
    item = getattr(reference, name)
    return list(inspect.signature(item).parameters)


@compares("build_config")
def compare_build_config(tables):
    ours, theirs = native.build_config(), reference.build_config()
    assert ours.keys() == theirs.keys()
    for key in ours:
        assert type(ours[key]) is type(theirs[key]), key
    assert (ours["backend"], theirs["backend"]) == ("native", "reference")
    assert ours["isa"] in ours["isa_available"]
    assert ours["cores"] == theirs["cores"] >= 1


def test_every_name_of_the_contract_has_a_comparison():
    assert COMPARISONS.keys() == contract().keys()


@pytest.mark.parametrize("name", contract())
def test_both_back_ends_satisfy_the_contract(name):
    expected = contract()[name]
    assert reference_parameters(name) == expected
    assert native_parameters(name) == expected
    assert getattr(reference, name).__doc__


def test_back_ends_offer_nothing_else():
    public = {name for name in vars(native) if not name.startswith("_")}
    assert public == contract().keys()
    assert set(reference.__all__) == contract().keys()


@pytest.mark.parametrize("name", COMPARISONS)
def test_back_ends_agree(name, tables_of):
    """On the tables of the law with the most structure, and on plain arrays."""
    COMPARISONS[name](tables_of(FAMILIES[-1]))


@pytest.mark.parametrize("name", ["sample", "evaluate", "inverse_survival", "ziggurat"])
def test_back_ends_agree_on_every_law(name, law_class, tables_of):
    COMPARISONS[name](tables_of(law_class))


@pytest.mark.parametrize("core", [native, reference])
def test_levels_next_to_a_turning_point(core, tables_of):
    """Losses of heavy tails turn: their slope is 0 at the last sample."""
    tables, pair = tables_of(HEAVY), (1.25, 0.7, 0.0, 1.0)
    law = reference.LawTable(*tables)
    x = np.linspace(0.35, 6.0, 100_001)
    loss = loss_at(law, pair, x)
    turn = int(loss.argmax())
    assert 0 < turn < x.size - 1
    samples = slice(turn % 8, turn + 1, turn // 8)
    run = [part[samples][None].copy() for part in (x, loss, np.gradient(loss, x))]
    first, top = run[1][0, [0, -1]]
    levels = np.append(top - np.geomspace(0.5, 1e-14, 60) * (top - first), top)
    levels = np.insert(levels, 0, first)
    mass, excess, error = core.loss_bins(
        core.LawTable(*tables), *pair, *run, levels, 0.0, 0.0, 1e-14
    )
    assert error <= 2e-14
    # Edges of bins that miss their levels would give them losses of others.
    assert (mass > 0.0).all()
    assert (excess <= mass * (np.diff(levels) + 4e-14)).all()


@pytest.mark.deep
@pytest.mark.parametrize("level", native.build_config()["isa_available"])
def test_every_level_evaluates_the_same_bits(level, run_python):
    code = """
import hashlib
import numpy as np
from psinoise.noise import FAMILIES, Family, SymmetricStable
x = np.concatenate([np.linspace(-40.0, 40.0, 20001), np.geomspace(1e-300, 1e12, 20001)])
p = np.concatenate([np.linspace(0.0, 1.0, 10001), np.geomspace(1e-320, 0.5, 10001)])
state = hashlib.sha256()
for law in FAMILIES:
    for name in ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf"):
        state.update(getattr(law(scale=0.7), name)(x).tobytes())
    state.update(law(scale=0.7).iccdf(p).tobytes())
print(state.hexdigest())
"""
    assert run_python(code, PSINOISE_ISA=level) == run_python(code)


def test_unknown_back_ends_and_levels_are_refused(run_python):
    code = """
try:
    import psinoise
except ImportError as error:
    print(error)
"""
    message = run_python(code, PSINOISE_BACKEND="fast")
    assert message == "PSINOISE_BACKEND must be native or reference, got 'fast'\n"
    message = run_python(code, PSINOISE_ISA="sse9")
    assert message.startswith("PSINOISE_ISA must be one of baseline")
    assert "got 'sse9'" in message
