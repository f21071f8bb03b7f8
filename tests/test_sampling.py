"""The sampler's contract: golden bytes, one mapping for every level, thread and split, errors."""

from __future__ import annotations

import copy
import hashlib
import importlib
import itertools
import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import psinoise
from psinoise import _core as native
from psinoise import reference
from psinoise._rng import stream_key
from psinoise.noise import FAMILIES
from psinoise.reference.stream import first_words

# The name psinoise.reference.sample is the function; this is the module.
twin = importlib.import_module("psinoise.reference.sample")

GOLDEN = json.loads((Path(__file__).parent / "data" / "golden_digests.json").read_text("utf-8"))
COUNT = GOLDEN["count"]
DTYPES = ("float64", "float32")
KEY = bytes(range(32))

# Prints the digests of every law and type; run at each level and with other numbers of threads.
DIGESTS = """
import hashlib, json, sys
import numpy as np
from psinoise.noise import FAMILIES
names, threads, count, seed, scale = json.loads(sys.stdin.read() or {arguments!r})
found = {{}}
for law in FAMILIES:
    if law.__name__ in names:
        for dtype in ("float64", "float32"):
            x = law(scale=scale).sample(count, rng=seed, dtype=dtype, threads=threads)
            digest = hashlib.sha256(x.astype(x.dtype.newbyteorder("<")).tobytes()).hexdigest()
            found.setdefault(law.__name__, {{}})[dtype] = digest
print(json.dumps(found))
"""


def digest(x):
    return hashlib.sha256(x.astype(x.dtype.newbyteorder("<")).tobytes()).hexdigest()


def digests_code(names, threads):
    arguments = [names, threads, COUNT, GOLDEN["seed"], GOLDEN["scale"]]
    return DIGESTS.format(arguments=json.dumps(arguments))


# -- the same bytes everywhere --------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("level", native.build_config()["isa_available"])
def test_every_instruction_set_gives_the_golden_bytes(level, run_python):
    """A change here is a new version of the stream: a changelog line, never a patch release."""
    code = digests_code([law.__name__ for law in FAMILIES], 1)
    assert json.loads(run_python(code, PSINOISE_ISA=level)) == GOLDEN["digests"]


def test_reference_gives_the_golden_bytes(law_class, tables_of):
    table = reference.LawTable(*tables_of(law_class))
    tag = f"{law_class.law.__name__}{law_class(scale=1.0)._shape!r}".encode()
    for dtype in DTYPES:
        out = np.empty(COUNT, dtype=dtype)
        reference.sample(table, stream_key(GOLDEN["seed"], tag), 0, GOLDEN["scale"], out, 1)
        assert digest(out) == GOLDEN["digests"][law_class.__name__][dtype]


@pytest.mark.deep
def test_reference_back_end_as_a_whole_gives_the_golden_bytes(run_python):
    """Tables too are compiled by the twins here; one law, since that takes seconds."""
    found = json.loads(run_python(digests_code(["Laplace"], 1), PSINOISE_BACKEND="reference"))
    assert found == {"Laplace": GOLDEN["digests"]["Laplace"]}


@pytest.mark.parametrize("threads", [None, 0, 1, 2, 7, 100])
def test_threads_do_not_change_the_bytes(law_class, threads):
    law = law_class(scale=GOLDEN["scale"])
    for dtype in DTYPES:
        x = law.sample(COUNT, rng=GOLDEN["seed"], dtype=dtype, threads=threads)
        assert digest(x) == GOLDEN["digests"][law_class.__name__][dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_split_of_the_range_gives_the_same_bytes(core, law_class, tables_of, dtype):
    """Element i is a function of (key, i): not of where a call starts, or of the alignment."""
    table = core.LawTable(*tables_of(law_class))
    total, start = 20_000, 2**33 - 7_777
    whole = np.empty(total, dtype=dtype)
    core.sample(table, KEY, start, 0.7, whole, 1)
    generator = np.random.default_rng(41)
    cuts = np.sort(generator.integers(0, total, 12))
    for bounds in ([0, 1, 3, 130, 511, 512, 1024, total], [0, *cuts.tolist(), total]):
        parts = np.empty(total, dtype=dtype)
        for a, b in itertools.pairwise(bounds):
            core.sample(table, KEY, start + a, 0.7, parts[a:b], 3)
        np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("dtype", DTYPES)
def test_native_equals_reference_on_many_elements(law_class, tables_of, dtype):
    """Two million elements pass through about ten thousand wedges and some hundred tails."""
    tables = tables_of(law_class)
    ours, expected = np.empty(2_000_000, dtype=dtype), np.empty(2_000_000, dtype=dtype)
    native.sample(native.LawTable(*tables), KEY, 12_345, 1.0 / 3.0, ours, 2)
    reference.sample(reference.LawTable(*tables), KEY, 12_345, 1.0 / 3.0, expected, 1)
    np.testing.assert_array_equal(ours, expected)


# -- how a word is read ----------------------------------------------------------------------------


def decoding_tables(tables, dtype, threshold_bits):
    """Tables under which every candidate is accepted as it is, and the widths of their strips."""
    name, layers, word = (
        ("wide", 2048, np.uint64) if dtype == "float64" else ("narrow", 1024, np.uint32)
    )
    exponents = np.arange(layers) % 63 - 23.0  # below 2**40, where the density table ends
    entries = np.exp2(exponents).astype(dtype).view(word) | word(threshold_bits)
    # Heights of -1 accept in every wedge, an infinite edge does in strip 0.
    strips = (entries, np.full(layers + 1, -1.0), np.inf, 0.0)
    return tables._replace(**{name: strips}), entries.view(dtype)


@pytest.mark.parametrize("decided", [False, True], ids=["slow path", "fast path"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_sign_and_position_are_disjoint_bits(core, tables_of, dtype, decided):
    """The mapping from words to samples, in integers. Kills: sign bit reused, words shared between
    neighbors, position shifted by a bit, a bias of half a cell.

    With thresholds of 0 every element takes the slow path, with all bits set nearly none does.
    """
    wide = dtype == "float64"
    low_bits, shift, sign_bit = (32, 12, 11) if wide else (12, 11, 10)
    word = np.uint64 if wide else np.uint32
    tables, widths = decoding_tables(
        tables_of(FAMILIES[0]), dtype, (1 << low_bits) - 1 if decided else 0
    )
    count, first = 30_000, 1_000
    out = np.empty(count, dtype=dtype)
    core.sample(core.LawTable(*tables), KEY, first, 1.0, out, 1)
    words = first_words(KEY, 8, first, count, 64 if wide else 32)
    layer = (words % word(widths.size)).astype(int)
    k = (words >> word(shift)).astype(np.int64)
    # Odd multiples of half a cell, exact in 53 (22) bits.
    position = ((2 * k + 1) / 2.0 ** (53 if wide else 22)).astype(dtype)
    sign = np.where((words >> word(sign_bit)) % word(2) == 1, -1.0, 1.0).astype(dtype)
    expected = sign * (position * widths[layer])
    np.testing.assert_array_equal(out, expected)
    # The test of the test: a sign taken from the lowest bit of the position, or from the layer.
    for wrong_bit in (sign_bit + 1, sign_bit - 1):
        wrong = np.where((words >> word(wrong_bit)) % word(2) == 1, -1.0, 1.0).astype(dtype)
        assert not np.array_equal(wrong * np.abs(expected), out)


# -- the tail --------------------------------------------------------------------------------------


class CraftedWords:
    """A supply of further words that are written down in advance, the same for every element."""

    def __init__(self, words):
        self._words = iter(words)

    def next(self, which):
        return np.full(which.shape, next(self._words), dtype=np.uint64)


def tail_point(table, edge_depth, first, *further):
    words = np.array([first], dtype=np.uint64)
    points = twin._tail_points(table, edge_depth, words, CraftedWords(further), np.arange(1))
    return float(points[0])


@pytest.mark.parametrize("words", [1, 2, 5, 11, 15])
@pytest.mark.parametrize("last", [2**63 + 5, 2**40, 1, 2**64 - 1])
def test_tail_has_no_end(law, law_class, tables_of, words, last):
    """Leading zeros are counted through any number of words: survival 1e-300 and beyond.

    Kills: the tail cut where a 53- or 64-bit uniform ends.
    """
    table = reference.LawTable(*tables_of(law_class))
    edge_depth = tables_of(law_class).wide[3]
    mantissa = 0x9E3779B97F4A7C15
    x = tail_point(table, edge_depth, *[0] * (words - 1), last, mantissa)
    zeros = 64 * (words - 1) + 64 - last.bit_length()
    fraction = 1.0 + (mantissa >> 12) / 2.0**52
    # The exponential variate is -log(fraction * 2**-(zeros + 1)): uniform in its binade.
    depth = edge_depth + (zeros + 1) * np.log(2.0) - np.log(fraction)
    log_survival = -depth - np.log(2.0)
    # Half an ulp of depth (690: 1e-13) and the rounding of x, seen through the hazard.
    bound = 1e-15 * depth * (1.0 + 2.0)
    assert law.logccdf(x) == pytest.approx(log_survival, abs=bound, rel=0)
    if log_survival > -700.0:
        assert x == pytest.approx(law.iccdf(np.exp(log_survival)), rel=1e-12, abs=0)


def test_deepest_tail_is_finite(law_class, tables_of):
    """1024 and more halvings, and a stream of zeros, which ends after 2880 of them."""
    table = reference.LawTable(*tables_of(law_class))
    deep = [tail_point(table, 8.0, 0, *[0] * n, 1, 0) for n in (10, 15, 20, 40)]
    assert np.isfinite(deep[:2]).all()
    assert deep[1] > deep[0]
    endless = tail_point(table, 8.0, 0, *[0] * 100)
    # A heavy tail leaves float64 at probabilities of 1e-460 and below: to infinity, not to NaN.
    if law_class(scale=1.0).score_limit > 0.0:
        assert np.isfinite([*deep, endless]).all()
        assert (np.diff(deep) > 0.0).all()
    assert endless >= deep[-1] >= deep[-2] >= deep[1]


def test_tail_mutants_are_seen(law, law_class, tables_of):
    """A tail cut at the edge of strip 0 fails the comparison above."""
    tables = tables_of(law_class)
    rows, *panels = tables.tail_quantile
    cut = rows.copy()
    cut[:, 0], cut[:, 1:] = np.log(tables.wide[2]), 0.0
    mutant = reference.LawTable(*tables._replace(tail_quantile=(cut, *panels)))
    x = tail_point(mutant, tables.wide[3], 2**40, 0)
    assert abs(law.logccdf(x) + tables.wide[3] + np.log(2.0)) < 1e-9  # the depth never grows


def test_samples_are_finite(law):
    for dtype in DTYPES:
        x = law.sample(3_000_000, rng=5, dtype=dtype)
        assert np.isfinite(x).all()
        assert (x != 0.0).all()  # positions are odd multiples of a cell


# -- shape, dtype, out -----------------------------------------------------------------------------


def test_scalar_and_shapes(law):
    scalar = law.sample(rng=1)
    assert isinstance(scalar, float)
    assert isinstance(law.sample((), rng=1, dtype="float32"), np.float32)
    assert law.sample(3, rng=1).shape == (3,)
    assert law.sample((2, 3), rng=1).shape == (2, 3)
    assert law.sample([2, 3], rng=1).shape == (2, 3)
    assert law.sample(np.int64(4), rng=1).shape == (4,)
    flat = law.sample(6, rng=1)
    np.testing.assert_array_equal(law.sample((2, 3), rng=1).ravel(), flat)
    assert flat[0] == scalar


@pytest.mark.parametrize("shape", [0, (0,), (3, 0), (0, 10**9)])
def test_empty_shapes_use_no_randomness(law, shape):
    generator = np.random.default_rng(3)
    x = law.sample(shape, rng=generator)
    assert x.size == 0
    assert x.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert generator.integers(2**60) == np.random.default_rng(3).integers(2**60)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "f4", float, np.dtype("float32"), "<f8"])
def test_dtypes(law, dtype):
    assert law.sample(5, rng=1, dtype=dtype).dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "int64", "complex128", "longdouble", object, ">f8"])
def test_bad_dtypes(law, dtype):
    with pytest.raises(TypeError, match="dtype must be float64 or float32"):
        law.sample(5, dtype=dtype)


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        (-1, ValueError),
        ((2, -3), ValueError),
        (1.5, TypeError),
        ("3", TypeError),
        ((2, 1.5), TypeError),
        (True, TypeError),
        ((2, "3"), TypeError),
        (np.array([2, 3]), TypeError),
        (10**15, MemoryError),
        (2**62, (MemoryError, ValueError)),
        (2**64, OverflowError),
    ],
    ids=repr,
)
def test_bad_shapes(law, shape, error):
    with pytest.raises(error):
        law.sample(shape, rng=1)


def test_out_is_filled_and_returned(law):
    for dtype in DTYPES:
        out = np.empty((3, 5), dtype=dtype)
        assert law.sample(rng=1, out=out) is out
        np.testing.assert_array_equal(out, law.sample((3, 5), rng=1, dtype=dtype))
        assert law.sample((3, 5), rng=1, out=out) is out
        assert law.sample((3, 5), rng=1, out=out, dtype=dtype) is out
        assert law.sample(None, rng=1, out=out) is out
    scalar = np.empty(())
    assert law.sample(rng=1, out=scalar) is scalar
    assert scalar == law.sample(rng=1)


def test_out_of_a_slice_writes_nothing_else(law):
    buffer = np.zeros(1000)
    law.sample(rng=1, out=buffer[101:900])
    assert (buffer[:101] == 0.0).all()
    assert (buffer[900:] == 0.0).all()
    np.testing.assert_array_equal(buffer[101:900], law.sample(799, rng=1))


def read_only():
    array = np.empty(4)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "options", "error", "message"),
    [
        (np.empty(8)[::2], {}, ValueError, "C-contiguous"),
        (np.empty((4, 4), order="F"), {}, ValueError, "C-contiguous"),
        (read_only(), {}, ValueError, "writable"),
        (np.frombuffer(bytearray(33), np.uint8)[1:].view(float), {}, ValueError, "aligned"),
        (np.empty(4, dtype=int), {}, TypeError, "dtype float64 or float32, got int64"),
        (np.empty(4, dtype=">f8"), {}, TypeError, "dtype float64 or float32, got >f8"),
        (np.empty(4, dtype="f4"), {"dtype": "f8"}, TypeError, "not the requested float64"),
        (np.empty(4), {"dtype": "f4"}, TypeError, "not the requested float32"),
        (np.empty(4), {"shape": 5}, ValueError, r"shape must match out.*\(4,\), got \(5,\)"),
        (np.empty(4), {"shape": (2, 2)}, ValueError, "shape must match out"),
        ([0.0] * 4, {}, TypeError, "out must be an array, got list"),
        (bytearray(32), {}, TypeError, "dtype float64 or float32, got uint8"),
    ],
)
def test_bad_out(law, out, options, error, message):
    before = np.array(out).copy()
    with pytest.raises(error, match=message):
        law.sample(out=out, rng=1, **options)
    np.testing.assert_array_equal(np.array(out), before)


@pytest.mark.parametrize(
    ("threads", "error"), [(-1, ValueError), (1.5, TypeError), ("2", TypeError), (True, TypeError)]
)
def test_bad_threads(law, threads, error):
    with pytest.raises(error, match="threads must be"):
        law.sample(3, threads=threads)


def test_scale_must_suit_float32(law_class):
    """float32 results must not overflow or lose their digits in silence."""
    for scale in (1e-39, 1e37, 1e300):
        with pytest.raises(ValueError, match="scale must be within the range of float32"):
            law_class(scale=scale).sample(3, dtype="float32")
    # Heavier tails overflow sooner.
    largest = 1e36 if np.isfinite(law_class(scale=1.0).std) else 1e18
    assert np.isfinite(law_class(scale=largest).sample(1000, rng=1, dtype="float32")).all()


def test_scale_must_suit_float64(law_class):
    """One rule for all laws: no draw may be infinite where the law has no mass there."""
    with pytest.raises(psinoise.DomainError, match="dtype must be wider"):
        law_class(scale=1.7e308).sample(3)
    # Heavier tails overflow sooner.
    largest = 1e306 if np.isfinite(law_class(scale=1.0).std) else 1e288
    assert np.isfinite(law_class(scale=largest).sample(1000, rng=1)).all()


def test_kernels_refuse_what_they_cannot_index(tables_of, law_class):
    """The border of the extension: TypeError or ValueError, never a wild read."""
    tables = tables_of(law_class)
    table = native.LawTable(*tables)
    out = np.empty(4)
    with pytest.raises(ValueError, match="key must be 32 bytes"):
        native.sample(table, b"short", 0, 1.0, out, 1)
    for wrong in (np.empty(8)[::2], np.empty(4, dtype=int), read_only(), np.empty(4, ">f8")):
        with pytest.raises(TypeError, match="out must be a C-contiguous writable"):
            native.sample(table, KEY, 0, 1.0, wrong, 1)
    with pytest.raises(TypeError):
        native.sample(table, KEY, -1, 1.0, out, 1)
    entries, heights, edge, depth = tables.wide
    with pytest.raises(ValueError, match="one entry per layer"):
        native.LawTable(*tables._replace(wide=(entries[:-1], heights, edge, depth)))
    with pytest.raises(TypeError, match="entries must be"):
        native.LawTable(*tables._replace(wide=(entries.view(float), heights, edge, depth)))
    short = (np.ascontiguousarray(tables.log_mills[0][:9]), *tables.log_mills[1:])
    with pytest.raises(ValueError, match="log_mills"):
        native.LawTable(*tables._replace(log_mills=short))
    with pytest.raises(ValueError, match="quantile tables must cover"):
        native.LawTable(*tables._replace(tail_quantile=short))


# -- laws as objects -------------------------------------------------------------------------------


def test_laws_are_values(law_class):
    law = law_class(scale=0.3)
    for twin_law in (
        pickle.loads(pickle.dumps(law)),
        copy.copy(law),
        copy.deepcopy(law),
        eval(repr(law), vars(psinoise)),  # repr is documented to evaluate back
    ):
        assert twin_law == law
        assert hash(twin_law) == hash(law)
        assert repr(twin_law) == repr(law)
        np.testing.assert_array_equal(twin_law.sample(5, rng=1), law.sample(5, rng=1))
    assert law != law_class(scale=np.nextafter(0.3, 1.0))
    assert law != SimpleNamespace(scale=0.3)
    assert law != 0.3
    others = [other(scale=0.3) for other in FAMILIES if other is not law_class]
    assert law not in others
    assert len({law, law_class(scale=0.3), *others}) == 1 + len(others)


def test_statistics_name_the_same_law_to_rounding(law_class):
    law = law_class(scale=0.3)
    for name in ("scale", "std", "mean_abs"):
        value = getattr(law, name)
        if np.isfinite(value):
            assert law_class(**{name: value}).scale == pytest.approx(0.3, rel=3e-16, abs=0)


def test_laws_are_immutable(law):
    for name in ("scale", "_scale", "std", "new"):
        with pytest.raises(AttributeError):
            setattr(law, name, 2.0)
    with pytest.raises(AttributeError):
        del law._scale
    assert law.scale == 1.0


def test_tables_are_shared_within_a_family(law_class):
    assert law_class(scale=2.0)._table is law_class(scale=3.0)._table
    assert sys.getrefcount(law_class(scale=1.0)._table) > 1
