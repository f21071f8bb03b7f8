"""Lattice noise: its columns, the integers that are drawn, and what is released."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from comparisons.registry import KEY, compares, points, same_bits
from psinoise import _core as native
from psinoise import reference

CORES = (native, reference)

# Weights with empty columns, ones that are full, and a tail that is not rare.
LATTICES = {
    "none": (np.array([2**62, 2**61, 2**61 - 5, 5], np.uint64), "none", 0, 0),
    "one": (np.array([2**63], np.uint64), "none", 0, 0),
    "small": (np.array([3, 0, 11, 2, 0], np.uint64), "translate", 2, 3 * 2**62),
    "geometric": (np.array([2**61] * 3 + [2**60, 2**60], np.uint64), "translate", 3, 2**63),
    "endless": (np.array([1, 2**63 - 1], np.uint64), "translate", 1, 2**64 - 2**55),
    "power": (np.array([2**61, 2**61, 2**60, 2**60, *[2**59] * 4], np.uint64), "dilate", 4, 2**63),
    "blocks": (np.array([2**61, 2**61, 2**62], np.uint64), "blocks", 2, 2**60),
    "far": (np.array([1, 2**63 - 1], np.uint64), "dilate", 1, 2**64 - 1),
}


def made(core, name):
    if name == "rest":
        return core.LatticeTable(*LATTICES["none"]).with_rest(core.LatticeTable(*LATTICES["one"]))
    return in_digits(core) if name == "digits" else core.LatticeTable(*LATTICES[name])


def in_digits(core):
    """A sum of three, added from both ends; one of them has a rest."""
    low, high = made(core, "rest"), made(core, "one")
    upper = low.plus(low, 57 - 10)
    return low.plus(upper, 10).plus(high, 1)


@compares("lattice_columns")
def compare_lattice_columns(tables):
    generator = np.random.default_rng(5)
    heavy = np.exp(-generator.uniform(0.0, 40.0, 3000)) * 2.0**50
    heavy = np.append(np.floor(heavy).astype(np.uint64), np.uint64(0))
    heavy[7] = 2**63 - sum(heavy.tolist()) + int(heavy[7])
    for weights in (heavy, *(arguments[0] for arguments in LATTICES.values())):
        same_bits(native.lattice_columns(weights), reference.lattice_columns(weights))
    for core in (native, reference):
        for bad in ([], [3], [1, 1, 0], [2**63, 2**63], [2**63, 1], [0] * (2**20 + 1)):
            with pytest.raises(ValueError, match="weights must"):
                core.lattice_columns(np.array(bad, dtype=np.uint64))
        with pytest.raises(TypeError, match="weights must"):
            core.lattice_columns(np.array([1, 1]))


@compares("LatticeTable")
def compare_lattice_table(tables):
    weights = LATTICES["power"][0]
    for core in (native, reference):
        with pytest.raises(AttributeError):
            core.LatticeTable(*LATTICES["none"]).ratio = 1
        for bad in (
            ("other", 0, 0),
            ("none", 1, 0),
            ("translate", 0, 1),
            ("translate", 9, 1),
            ("dilate", 3, 1),
            ("blocks", 3, 2**62),
            ("blocks", 7, 2**62 + 1),
            ("blocks", 7, 2**21),
        ):
            with pytest.raises(ValueError, match="must be"):
                core.LatticeTable(weights, *bad)
        with pytest.raises(ValueError, match="must be half"):
            core.LatticeTable(LATTICES["geometric"][0], "dilate", 2, 1)
        for lower, upper, shift, message in (
            ("none", "none", -1, "shift must be"),
            ("none", "none", 61, "shift must be"),
            ("none", "none", 59, "shift must keep"),
            ("none", "power", 1, "tail must be none"),
            ("power", "none", 1, "tail must be none"),
        ):
            with pytest.raises(ValueError, match=message):
                core.LatticeTable(*LATTICES[lower]).plus(core.LatticeTable(*LATTICES[upper]), shift)
        for law, rest in (("power", "one"), ("none", "power"), ("digits", "one")):
            with pytest.raises(ValueError, match="rest must be a law"):
                made(core, law).with_rest(made(core, rest))
        with pytest.raises(ValueError, match="rest must have fewer"):
            made(core, "none").with_rest(made(core, "none"))
        with pytest.raises(ValueError, match="one digit"):
            core.lattice_choices(in_digits(core), np.zeros(1, np.uint64))


@compares("SecretKey")
def compare_secret_key(tables):
    """A key is as good as its bytes, none is like another, and none can be read."""
    for core in CORES:
        table, drawn = core.LatticeTable(*LATTICES["power"]), np.zeros((4, 64), np.int64)
        keys = (core.SecretKey(KEY), KEY, core.SecretKey(None), core.SecretKey(None))
        for key, out in zip(keys, drawn, strict=True):
            core.lattice_noise(table, key, 0, out, 1)
        assert (drawn[0] == drawn[1]).all()
        assert (drawn[1] != drawn[2]).any()
        assert (drawn[2] != drawn[3]).any()
        for bad in (b"", KEY[1:]):
            with pytest.raises(ValueError, match="key must be 32 bytes"):
                core.SecretKey(bad)
    with pytest.raises(TypeError):
        bytes(native.SecretKey(KEY))


@compares("lattice_choices")
def compare_lattice_choices(tables):
    generator = np.random.default_rng(6)
    words = generator.integers(0, 2**64, 10_001, np.uint64)
    for arguments in LATTICES.values():
        found = [core.lattice_choices(core.LatticeTable(*arguments), words) for core in CORES]
        same_bits(*found)


@compares("lattice_noise")
def compare_lattice_noise(tables):
    for name in (*LATTICES, "digits", "rest"):
        laws = [(core, made(core, name)) for core in CORES]
        most = 301 if name == "endless" else 3001  # of some hundred words each
        for first, size in ((0, 0), (0, 1), (511, 3), (2**40 + 1, most)):
            found = []
            for core, law in laws:
                out = np.zeros(size, np.int64)
                core.lattice_noise(law, KEY, first, out, 2)
                found.append(out)
            same_bits(*found)
            if name == "far" and size > 3:
                assert np.abs(found[0]).max() == 2**62  # reaches the limit


@compares("all_finite")
def compare_all_finite(tables):
    """Wherever the one value that is not finite stands."""
    for dtype in ("f8", "f4"):
        limits = np.finfo(dtype)
        for bad in (limits.max, -limits.max, limits.smallest_subnormal, 0.0, *points()):
            for place in (0, 5, 20):
                x = np.ones(21, dtype)
                with np.errstate(over="ignore"):
                    x[place] = bad
                same = {core.all_finite(x) for core in CORES}
                assert same == {bool(np.isfinite(x[place]))}
    for core in CORES:
        assert core.all_finite(np.zeros(0))
        for wrong in (np.zeros(3, int), np.zeros((2, 2), "f4").T[:1], np.zeros(3, "f2")):
            with pytest.raises(TypeError, match="x must be"):
                core.all_finite(wrong)


def near_halves(generator, grid):
    """Both sides of ``(m + 1/2) grid`` and of ``m grid``, for m of all sizes."""
    m = generator.integers(1, 2**62, 400) >> generator.integers(0, 62, 400)
    exact = [int(k) * Fraction(grid) / 2 for k in (*m, *-m)]
    near = np.array([float(value) for value in exact])
    return np.concatenate([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)])


@compares("lattice_cells")
def compare_lattice_cells(tables):
    generator = np.random.default_rng(74)
    for dtype, grids in (("f8", (2.0**-1000, 0.3, 1.0, 2.0**900)), ("f4", (2.0**-100, 1.0, 7.0))):
        for grid in grids:
            with np.errstate(over="ignore"):
                x = np.concatenate([points(), near_halves(generator, grid)]).astype(dtype)
            for low, high in ((-np.inf, np.inf), (-3.7 * grid, 2.0**40 * grid)):
                results = []
                for core in CORES:
                    out = np.full(x.size, 7)
                    core.lattice_cells(x, grid, low, high, out)
                    results.append(out)
                same_bits(*results)
    out = np.zeros(3, np.int64)
    for core in CORES:
        for values, grid in ((np.zeros(3), 2.0**901), (np.zeros(3, "f4"), 2.0**-101)):
            with pytest.raises(ValueError, match="grid must be"):
                core.lattice_cells(values, grid, 0.0, 1.0, out)
        with pytest.raises(ValueError, match="low must"):
            core.lattice_cells(np.zeros(3), 1.0, 1.0, 0.0, out)
        with pytest.raises(ValueError, match="same size"):
            core.lattice_cells(np.zeros(2), 1.0, 0.0, 1.0, out)
        with pytest.raises(TypeError, match="x must be"):
            core.lattice_cells(np.arange(3), 1.0, 0.0, 1.0, out)


@compares("lattice_release")
def compare_lattice_release(tables):
    generator = np.random.default_rng(8)
    table = [core.LatticeTable(*LATTICES["one"]) for core in CORES]  # no noise: rounding alone
    for mantissa in (1.0, 2.0 - 2.0**-52, 1.0 + 2.0**-52, 4 / 3, *generator.uniform(1.0, 2.0, 4)):
        for exponent in (-1000, -3, 838):
            grid = math.ldexp(mantissa, exponent)
            x = near_halves(generator, grid)
            found = np.zeros((2, x.size))
            for core, law, out in zip(CORES, table, found, strict=True):
                core.lattice_release(law, KEY, 0, x, grid, -math.inf, math.inf, out, 1)
            same_bits(*found)
    reals = points()
    reals = np.append(reals, [0.5, -0.5, 2.0**60, -(2.0**61), 2.0**62 + 2**10])
    whole = generator.integers(-(2**63), 2**63, 1000) >> generator.integers(0, 63, 1000)
    whole = np.append(whole, [2**63 - 1, -(2**63), 2**61, -(2**61) - 1, 2**53 + 1])
    with np.errstate(over="ignore"):
        narrow = reals.astype(np.float32)
    bounds = [(-math.inf, math.inf), (-0.7, 1e3), (0.0, 0.0)]
    whole_bounds = [(-(2**62), 2**62), (-7, 10**6)]
    cases = [
        *((reals, g, "f8", b) for g in (2.0**-1000, 0.1, 1.0, 1 / 3, 2.0**900) for b in bounds),
        *((narrow, g, "f4", b) for g in (2.0**-100, 0.3, 1.0, 2.0**60) for b in bounds),
        *((whole, g, "f8", b) for g in (2.0**-61, 0.3, 1.0, 2.5, 2.0**62) for b in whole_bounds),
        *((whole, g, "i8", b) for g in (1.0, 3.0, 2.0**53 + 2, 2.0**62) for b in whole_bounds),
    ]
    for name in ("power", "none", "far", "digits", "rest"):
        laws = [(core, made(core, name)) for core in CORES]
        for x, grid, dtype, (low, high) in cases:
            found = []
            for core, law in laws:
                out = np.zeros(x.size, dtype)
                core.lattice_release(law, KEY, 130, x, grid, low, high, out, 2)
                found.append(out)
            same_bits(*found)
    for core in CORES:
        table = core.LatticeTable(*LATTICES["none"])
        for x, grid, high, out in (
            (reals, 2.0**-1001, 1, reals.copy()),
            (reals, 2.0**901, 1, reals.copy()),
            (reals, math.nan, 1, reals.copy()),
            (reals, 1.0, -1, reals.copy()),
            (narrow, 2.0**61, 1, narrow.copy()),
            (whole, 1.5, 1, whole.copy()),
            (whole, 2.0**63, 1, np.zeros(whole.size)),
            (whole, 1.0, 1, whole[1:].copy()),
        ):
            with pytest.raises(ValueError, match="must"):
                core.lattice_release(table, KEY, 0, x, grid, 0, high, out, 1)
        half = np.zeros(3, "f2")
        with pytest.raises(TypeError, match="must be"):
            core.lattice_release(table, KEY, 0, half, 1.0, 0, 1, half, 1)
