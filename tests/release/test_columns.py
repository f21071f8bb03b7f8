"""Tables that are read and written block by block: exactly, and without a word about the data."""

from __future__ import annotations

import argparse
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import psinoise as pn
from psinoise._atomic import check_target, temporary_beside
from psinoise.commands import _columns, release
from psinoise.commands._columns import map_columns

SECRET = "8675309"


def half_up(grid):
    """The function of a release without noise."""

    def function(values):
        if values.dtype.kind not in "fiu":
            raise TypeError("x must be real numbers")
        cells = [math.floor(Fraction(v) / Fraction(grid) + Fraction(1, 2)) for v in values.tolist()]
        return np.array([float(cell * Fraction(grid)) for cell in cells], dtype=np.float64)

    return function


def mapped(tmp_path, text, columns=("c",), grid=1.0, bounds=None, function=None):
    """What comes out of a CSV table."""
    source, target = tmp_path / "table.csv", tmp_path / "out.tmp"
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    function = half_up(grid) if function is None else function
    copied = map_columns(source, target, columns, function, grid=grid, bounds=bounds)
    return target.read_text(encoding="utf-8"), copied


def test_other_columns_are_copied(tmp_path):
    text = '\ufeffa,c,"b,b"\r\n1e0,1.25,"x ""y"""\r\n\r\n2,-3.5,\r\n'
    out, copied = mapped(tmp_path, text, grid=0.5)
    assert out == 'a,c,"b,b"\n1e0,1.5,"x ""y"""\n2,-3.5,\n'
    assert copied == ["a", "b,b"]


def test_whole_numbers_are_written_without_a_point(tmp_path):
    assert mapped(tmp_path, "c\n5\n7.6\n-3\n", grid=1.0)[0] == "c\n5\n8\n-3\n"
    assert mapped(tmp_path, "c\n5\n7.6\n-3\n", grid=0.5)[0] == "c\n5.0\n7.5\n-3.0\n"


@pytest.mark.parametrize("grid", [0.25, 0.3 / 64, 1.0, 1 / 3, 4.0])
def test_text_is_rounded_as_the_decimal_number_that_it_is(tmp_path, grid):
    """Kills: a way through float64 alone, which moves numbers from below a half up to it."""
    texts = []
    for half in (0.5, 1.5, -0.5, -2.5, 1000.5, -1000.5, 4194304.5, 2**40 + 0.5, -(2**40) + 0.5):
        middle = Decimal(half) * Decimal(grid)
        with localcontext(prec=80):
            texts += [str(middle + shift) for shift in (0, Decimal("1e-40"), -Decimal("1e-40"))]
    texts += ["1e-400", "-1e-400", "  2.5 ", "+3", ".5", "7."]
    with np.errstate(all="raise"):
        out = mapped(tmp_path, "c\n" + "\n".join(texts) + "\n", grid=grid)[0].split()[1:]
    exact = [math.floor(Fraction(text.strip()) / Fraction(grid) + Fraction(1, 2)) for text in texts]
    assert [float(text) for text in out] == [float(cell * Fraction(grid)) for cell in exact]


def test_numbers_that_float64_does_not_hold_are_refused_where_it_matters(tmp_path):
    assert mapped(tmp_path, f"c\n{2**53}\n{-(2**60)}\n")[0] == f"c\n{2**53}\n{-(2**60)}\n"
    for text in (f"{2**53 + 1}", f"{2**52}.25", "1e300"):
        with pytest.raises(pn.DomainError, match="column 'c' must hold numbers of at most 2"):
            mapped(tmp_path, f"c\n{text}\n")
        kept = mapped(tmp_path, f"c\n{text}\n", bounds=(0.0, 5.0), function=lambda x: x.clip(0, 5))
        assert kept[0] == "c\n5\n"


def test_missing_numbers_with_bounds_are_nan(tmp_path):
    seen = []
    mapped(
        tmp_path,
        "c,d\n,1\nnan,1\ninf,1\n-inf,1\n",
        bounds=(0.0, 5.0),
        function=lambda x: seen.append(x.tolist()) or np.zeros(x.size),
    )
    assert repr(seen) == "[[nan, nan, inf, -inf]]"


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint16, ">f8", ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays(tmp_path, kind, order):
    values = np.asarray(np.arange(600).reshape(20, 30) / 4.0, dtype=kind, order=order)
    source, target = tmp_path / "table.npy", tmp_path / "out.tmp"
    np.save(source, values)
    assert map_columns(source, target, [], half_up(1.0), grid=1.0, bounds=None) == []
    found = np.load(target)
    assert found.shape == values.shape
    np.testing.assert_array_equal(found, np.floor(values.astype(np.float64) + 0.5))


def test_structured_arrays(tmp_path):
    values = np.zeros((3, 4), dtype=[("a", "U3"), ("c", "f4"), ("d", "i8")])
    values["a"], values["c"], values["d"] = "xyz", np.arange(12).reshape(3, 4) / 2, 9
    source, target = tmp_path / "table.npy", tmp_path / "out.tmp"
    np.save(source, values)
    assert map_columns(source, target, ["c"], half_up(1.0), grid=1.0, bounds=None) == ["a", "d"]
    found = np.load(target)
    assert found.dtype == np.dtype([("a", "U3"), ("c", "f8"), ("d", "i8")])
    np.testing.assert_array_equal(found["c"], np.floor(values["c"] + 0.5))
    np.testing.assert_array_equal(found[["a", "d"]], values[["a", "d"]])


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_arrays_of_any_size(tmp_path, shape):
    source, target = tmp_path / "table.npy", tmp_path / "out.tmp"
    np.save(source, np.ones(shape))
    map_columns(source, target, [], half_up(1.0), grid=1.0, bounds=None)
    np.testing.assert_array_equal(np.load(target), np.ones(shape))
    assert mapped(tmp_path, "c\n")[0] == "c\n"


def test_blocks_are_small(tmp_path, monkeypatch):
    """Kills: a table that is read as a whole."""
    monkeypatch.setattr(_columns, "_BLOCK", 100)
    sizes = []

    def function(values):
        sizes.append(values.size)
        return values

    mapped(tmp_path, "c\n" + "1\n" * 1050, function=function)
    assert sizes == [100] * 10 + [50]
    np.save(tmp_path / "table.npy", np.ones((7, 50)))
    sizes.clear()
    map_columns(tmp_path / "table.npy", tmp_path / "out.tmp", [], function, grid=1.0, bounds=None)
    assert sizes == [0, 100, 100, 100, 50]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"c\n{SECRET}x\n", "must hold real numbers"),
        (f"c,d\n,{SECRET}\n", "must hold finite numbers in every row; --bounds"),
        (f"c,d\nnan,{SECRET}\n", "must hold finite numbers"),
        ("c,d\n1_000,1\n", "must hold real numbers"),
        ("c\n0x10\n", "must hold real numbers"),
        (f"c,d\n1,{SECRET}\n2\n", "as many fields in each row as in the header"),
        (f"{SECRET},d\n1,2\n", "but 'c' is not there"),
        ("c,c\n1,2\n", "but 'c' is twice there"),
        ("", "must have a header"),
        (f'c,d\n1,"{SECRET}\n', "must be a table of comma-separated values"),
        (f'c,d\n1,"{SECRET}"x\n', "must be a table of comma-separated values"),
        (b"c,d\n1,\xff\xfe\n", "must be text in UTF-8"),
        (b"\x93NUMPY", "must be text in UTF-8"),
    ],
    ids=range(13),
)
def test_bad_tables(tmp_path, text, message):
    with pytest.raises(pn.DomainError, match=message) as caught:
        mapped(tmp_path, text)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("array", "columns", "error"),
    [
        (np.array([1, None], dtype=object), [], pn.DomainError),
        (np.array(["8675309"]), [], TypeError),
        (np.zeros(3), ["c"], TypeError),
        (np.zeros(3, dtype=[("c", "f8")]), [], TypeError),
        (np.zeros(3, dtype=[("c", "f8")]), ["d"], pn.DomainError),
        (np.zeros(3, dtype=[("c", "f8", 2)]), ["c"], TypeError),
    ],
)
def test_bad_arrays(tmp_path, array, columns, error):
    np.save(tmp_path / "table.npy", array, allow_pickle=True)
    with pytest.raises(error) as caught:
        map_columns(
            tmp_path / "table.npy", tmp_path / "out", columns, half_up(1.0), grid=1.0, bounds=None
        )
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"8675309", b"PK\x05\x06" + bytes(18)])
def test_files_that_are_no_arrays(tmp_path, content):
    (tmp_path / "table.npy").write_bytes(content)
    with pytest.raises(pn.DomainError, match="must be "):
        map_columns(
            tmp_path / "table.npy", tmp_path / "out", [], half_up(1.0), grid=1.0, bounds=None
        )


# -- files that are there whole or not at all ------------------------------------------------------


def test_the_target_appears_at_the_end(tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("old")
    with temporary_beside(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
        assert temporary.parent == target.parent
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing(tmp_path, error):
    def fail():
        with temporary_beside(tmp_path / "out.csv") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_killed_leaves_no_target(tmp_path, run_python):
    target = tmp_path / "out.csv"
    code = f"""
import os, subprocess, sys
program = '''
import os, pathlib
from psinoise._atomic import temporary_beside
with temporary_beside(pathlib.Path({str(target)!r})) as temporary:
    temporary.write_text("half")
    os._exit(9)
'''
print(subprocess.run([sys.executable, "-c", program]).returncode)
"""
    assert run_python(code) == "9\n"
    assert not target.exists()
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".out.csv.")
    assert left.suffix == ".tmp"


def test_targets(tmp_path):
    check_target(tmp_path / "new")
    (tmp_path / "old").write_text("x")
    with pytest.raises(pn.DomainError, match="must not exist"):
        check_target(tmp_path / "old")
    check_target(tmp_path / "old", force=True)
    with pytest.raises(pn.DomainError, match="must be an ordinary file"):
        check_target(tmp_path, force=True)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        check_target(tmp_path / "nowhere" / "new")


def test_other_delimiters_and_missing_words(tmp_path):
    source, target = tmp_path / "table.csv", tmp_path / "out.tmp"
    source.write_text('name;c\nNA;1.2\n"a;b"; NA \nx;none\n', encoding="utf-8")
    words = {"grid": 1.0, "delimiter": ";", "missing": ["NA", "none"]}

    def low(values):
        return np.floor(np.where(np.isnan(values), 0.0, values) + 0.5)

    assert map_columns(source, target, ["c"], low, bounds=(0.0, 5.0), **words) == ["name"]
    assert target.read_text(encoding="utf-8") == 'name;c\nNA;1\n"a;b";0\nx;0\n'
    with pytest.raises(pn.DomainError, match="'c' must hold finite numbers in every row; --bounds"):
        map_columns(source, target, ["c"], low, bounds=None, **words)


def test_how_a_delimiter_is_given():
    assert [release._delimiter(text) for text in (";", "tab", "\\t", "|")] == [";", "\t", "\t", "|"]
    for text in ("", "::", '"', "\n"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be one character"):
            release._delimiter(text)
