"""The contract ``_core.pyi`` against both back ends: names, signatures and results.

Every name of the contract needs a comparison here; a new one without it fails the first test.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable

import numpy as np
import pytest

import psinoise
from psinoise import _core as native
from psinoise import reference
from psinoise.compile.cells import alias_columns
from psinoise.noise import FAMILIES

STUB = psinoise.__path__[0] + "/_core.pyi"
KEY = bytes(range(1, 33))

COMPARISONS: dict[str, Callable] = {}


def contract():
    """Names of the stub and their parameters; a class counts by its constructor."""
    with open(STUB, encoding="utf-8") as file:
        body = ast.parse(file.read()).body
    found = {}
    for node in body:
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


def compares(name):
    def register(function):
        COMPARISONS[name] = function
        return function

    return register


def same_bits(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)
    finite = np.isfinite(ours) if ours.dtype.kind == "f" else np.ones(ours.shape, dtype=bool)
    assert ours[finite].tobytes() == theirs[finite].tobytes()  # the sign of zero as well


def law_tables(tables):
    return native.LawTable(*tables), reference.LawTable(*tables)


@compares("LawTable")
def compare_law_table(tables):
    with pytest.raises(AttributeError):
        native.LawTable(*tables).new = 1
    for bad in (tables[:3], (*tables, None)):
        for core in (native, reference):
            with pytest.raises(TypeError):
                core.LawTable(*bad)


@compares("sample")
def compare_sample(tables):
    for dtype in ("float64", "float32"):
        for first, size in ((0, 0), (0, 1), (511, 3), (2**40 + 1, 50_000)):
            results = []
            for core, law in zip((native, reference), law_tables(tables), strict=True):
                out = np.full((size,), np.nan, dtype=dtype)
                core.sample(law, KEY, first, 0.1, out, 2)
                results.append(out)
            same_bits(*results)


def cell_tables(*, step=0.0, seed=3, cells=37, tail=0.2):
    """A table with empty columns, cells of every size, an atom, and a tail that is not rare."""
    generator = np.random.default_rng(seed)
    masses = np.exp(-generator.uniform(0.0, 60.0, cells))
    masses[-2:] = tail
    entries, fractions = alias_columns(masses.tolist())
    widths = generator.uniform(0.1, 1.0, cells)
    starts = np.concatenate([[0.0], np.cumsum(widths)[:-1]])
    widths[0] = 0.0
    empty = np.empty(0)
    shape = (empty, empty) if step else (starts, widths)
    return (entries, fractions, *shape, step, cells - 2, 0.7, float(widths[-2:].sum()))


@compares("CellTable")
def compare_cell_table(tables):
    arguments = cell_tables()
    with pytest.raises(AttributeError):
        native.CellTable(*arguments).new = 1
    with pytest.raises(AttributeError):
        reference.CellTable(*arguments).step = 1
    entries, fractions, starts, widths, *rest = arguments
    for core in (native, reference):
        for bad in (
            (entries[:-1], fractions[:-1], starts, widths, *rest),
            (entries, fractions[:-1], starts, widths, *rest),
            (entries, fractions, starts[:-1], widths, *rest),
            (entries, fractions, starts[:5], widths[:5], *rest),
            (entries, fractions, starts[:0], widths[:0], *rest),
            (entries, fractions, starts, widths, 0.0, 3, 0.0, 1.0),
            (entries, fractions, starts, widths, 0.0, 3, np.nan, 1.0),
            (np.zeros(2**16, np.uint64), np.zeros(2**16, np.uint64), starts, widths, *rest),
        ):
            with pytest.raises(ValueError, match="must"):
                core.CellTable(*bad)


@compares("sample_cells")
def compare_sample_cells(tables):
    one = (np.array([4096 << 16], np.uint64), np.zeros(1, np.uint64), np.zeros(1), np.ones(1))
    for arguments in (
        cell_tables(),
        cell_tables(step=0.25),
        cell_tables(cells=2**15),
        cell_tables(cells=700, tail=1e-3, step=1.0),
        (*one, 0.0, 1, 0.0, 0.0),
        (*one, 0.0, 0, 1e-17, 2.0),  # more than 2**53 periods
    ):
        both = native.CellTable(*arguments), reference.CellTable(*arguments)
        for dtype in ("float64", "float32"):
            for first, size in ((0, 0), (0, 1), (511, 3), (2**40 + 1, 50_000)):
                results = []
                for core, table in zip((native, reference), both, strict=True):
                    out = np.full((size,), np.nan, dtype=dtype)
                    core.sample_cells(table, KEY, first, 0.3, out, 2)
                    results.append(out)
                same_bits(*results)


def band_matrix(size, width):
    """Diagonally dominant, with what lies past the matrix filled with what must not be read."""
    generator = np.random.default_rng(size + width)
    band = generator.uniform(-1.0, 0.0, (size, width + 1))
    band[:, 0] = 2.1 * width + 1.0
    dense = np.diag(band[:, 0])
    for d in range(1, width + 1):
        dense += np.diag(band[: size - d, d], -d)
        band[size - d :, d] = 1e9
    return band, dense + np.tril(dense, -1).T


BANDS = [(1, 0), (5, 0), (7, 1), (9, 8), (40, 31), (70, 32), (100, 33), (400, 127), (301, 300)]


@compares("band_cholesky")
def compare_band_cholesky(tables):
    for size, width in BANDS:
        band, dense = band_matrix(size, width)
        expected = np.linalg.cholesky(dense)
        for core in (native, reference):
            factor = band.copy()
            assert core.band_cholesky(factor)
            for d in range(width + 1):
                np.testing.assert_allclose(
                    factor[: size - d, d], np.diag(expected, -d), rtol=1e-12, atol=1e-13
                )
                assert (factor[size - d :, d] == band[size - d :, d]).all()
            indefinite = band.copy()
            indefinite[-1, 0] = -1.0
            assert not core.band_cholesky(indefinite)
            with pytest.raises(ValueError, match="band must have shape"):
                core.band_cholesky(np.ones((3, 4)))


@compares("band_forward")
def compare_band_forward(tables):
    check_band_solver("band_forward", lambda lower: lower)


@compares("band_backward")
def compare_band_backward(tables):
    check_band_solver("band_backward", lambda lower: lower.T)


def check_band_solver(name, matrix):
    for size, width in BANDS:
        band, dense = band_matrix(size, width)
        native.band_cholesky(band)
        for count in (0, 1, 4, 7):
            right = np.random.default_rng(count).normal(size=(count, size))
            expected = np.linalg.solve(matrix(np.linalg.cholesky(dense)), right.T).T
            for core in (native, reference):
                found = right.copy()
                getattr(core, name)(band, found)
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    for core in (native, reference):
        with pytest.raises(ValueError, match="right must have one column"):
            getattr(core, name)(np.ones((4, 2)), np.ones((1, 5)))


@compares("gram")
def compare_gram(tables):
    for shape in ((0, 3), (1, 1), (5, 1700), (33, 100)):
        rows = np.random.default_rng(3).normal(size=shape)
        for core in (native, reference):
            np.testing.assert_allclose(core.gram(rows), rows @ rows.T, rtol=1e-12, atol=1e-12)
            with pytest.raises(ValueError, match="two dimensions"):
                core.gram(np.ones(3))


def points():
    generator = np.random.default_rng(71)
    return np.concatenate(
        [
            [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 2.0**40, 1e13, -1e300, 2.0**-4],
            generator.normal(size=3000),
            np.copysign(2.0 ** generator.uniform(-1074, 1023, 3000), generator.normal(size=3000)),
            generator.uniform(-800, 800, 3000),
        ]
    )


@compares("evaluate")
def compare_evaluate(tables):
    x = points()
    for quantity in ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf"):
        for scale in (1.0, 0.3, 1e-200, 1e200, 2.0**-1022):
            results = []
            for core, law in zip((native, reference), law_tables(tables), strict=True):
                out = np.empty_like(x)
                results.append((core.evaluate(law, quantity, scale, x, out), out))
            assert results[0][0] == results[1][0]
            same_bits(results[0][1], results[1][1])
    for core, law in zip((native, reference), law_tables(tables), strict=True):
        with pytest.raises(ValueError, match="unknown quantity"):
            core.evaluate(law, "sf", 1.0, x, x.copy())


@compares("inverse_survival")
def compare_inverse_survival(tables):
    generator = np.random.default_rng(72)
    p = np.concatenate(
        [
            [0.0, 1.0, 0.5, 0.25, 0.75, np.nan, -1.0, 2.0, np.inf, 5e-324, 1e-310, 1 - 2.0**-53],
            np.nextafter([0.25, 0.5, 0.75], 0.0),
            np.nextafter([0.25, 0.5, 0.75], 1.0),
            generator.uniform(size=5000),
            10.0 ** generator.uniform(-320, 0, 5000),
        ]
    )
    results = []
    for core, law in zip((native, reference), law_tables(tables), strict=True):
        out = np.empty_like(p)
        core.inverse_survival(law, 0.7, p, out)
        results.append(out)
    same_bits(*results)


@compares("ziggurat")
def compare_ziggurat(tables):
    for name, layers in (("wide", 2048), ("narrow", 512)):
        edge = getattr(tables, name)[2]
        ours, theirs = (
            core.ziggurat(tables.log_density, tables.log_mills, edge, layers)
            for core in (native, reference)
        )
        same_bits(ours[0], theirs[0])
        same_bits(ours[1], theirs[1])
        assert ours[2:] == theirs[2:]


@compares("panel_values")
def compare_panel_values(tables):
    t = np.abs(points())  # -0.0 has a test of its own in test_panels
    for panels in tables[:4]:
        same_bits(native.panel_values(*panels, t), reference.panel_values(*panels, t))
    generator = np.random.default_rng(74)
    for bits in range(3, 9):
        panels = (generator.normal(size=(1 + 3 * 2**bits, 12)), -1, bits)
        same_bits(native.panel_values(*panels, t), reference.panel_values(*panels, t))


@compares("exponential")
def compare_exponential(tables):
    x = points()
    lo = np.where(np.isfinite(x), 1e-17 * x, 0.0)
    same_bits(native.exponential(x, lo), reference.exponential(x, lo))


@compares("logarithm")
def compare_logarithm(tables):
    same_bits(native.logarithm(points()), reference.logarithm(points()))


@compares("log_one_plus")
def compare_log_one_plus(tables):
    same_bits(native.log_one_plus(points()), reference.log_one_plus(points()))


@compares("airy")
def compare_airy(tables):
    z = np.concatenate([points(), np.linspace(-1.1, 30.0, 5000), [1e180, 2.0**601, -1.0187929]])
    lo = np.where(np.isfinite(z), 2.0**-54 * z, 0.0)
    for ours, theirs in zip(native.airy(z, lo), reference.airy(z, lo), strict=True):
        same_bits(ours, theirs)


def riccati_problem():
    """|x| on half octaves, at an energy a little below that of the ground state."""
    from psinoise.ground_state._collocation import NODES, matrices

    edges = np.concatenate(
        [[0.0, 0.5], (2.0 ** np.arange(-1.0, 5.0)[:, None] * [1.5, 2.0]).ravel()]
    )
    half = 0.5 * np.diff(edges)
    cost = (edges[:-1] + half)[:, None] + half[:, None] * NODES
    q = cost - 1.0
    guess = np.where(q > 2.0, np.sqrt(np.maximum(q, 0.0)), np.nan)
    end = np.sqrt(q[-1, -1])
    start = np.array([end, 0.5 / end, 0.5 * cost[-1, -1] / end])
    return half, q, 1e-17 * q, cost, guess, start, *matrices().inward


@compares("riccati")
def compare_riccati(tables):
    problem = riccati_problem()
    for refinements in (0, 1, 3):
        found = [core.riccati(*problem, refinements) for core in (native, reference)]
        for ours, theirs in zip(*found, strict=True):
            assert np.isfinite(ours).all()
            same_bits(ours, theirs)
    # Above the first odd state there is a pole: no solution before it.
    high = (problem[0], problem[1] - 4.0, *problem[2:])
    found = [core.riccati(*high, 1) for core in (native, reference)]
    for ours, theirs in zip(*found, strict=True):
        assert np.isnan(ours[0]).all()
        same_bits(ours, theirs)


@compares("ground_state")
def compare_ground_state(tables):
    generator = np.random.default_rng(77)
    edges = np.array([0.0, 0.5, 1.0, 3.0, 4.0])
    panels = (
        edges,
        0.5 * (edges[1:] + edges[:-1]),
        np.array([4.0, 4.0, 1.0, 2.0]),
        generator.normal(size=(4, 21)),
        1e-17 * generator.normal(size=(4, 5)),
        generator.normal(size=(4, 20)),
    )
    t = np.concatenate([generator.uniform(0.0, 4.0, 1000), edges, [-1.0, 4.1, np.nan, np.inf]])
    found = [core.ground_state(*panels, t) for core in (native, reference)]
    for ours, theirs in zip(*found, strict=True):
        assert np.isnan(ours[-4:]).all()
        assert np.isfinite(ours[:-4]).all()
        same_bits(ours, theirs)


@compares("Transform")
def compare_transforms(tables):
    """Within the error that csrc/math/fft.hpp states; scipy is the third opinion."""
    generator = np.random.default_rng(74)
    for size in (2, 4, 8, 64, 2048, 1 << 15):
        masses = generator.uniform(size=size)
        masses /= masses.sum()
        spectra = []
        for core in (native, reference):
            transform = core.Transform(size)
            assert transform.size == size
            product = np.ones(size // 2 + 1, dtype=np.complex128)
            transform.compose_into(masses, 1, product)
            spectra.append(product)
            back = transform.inverse(product.copy())
            assert np.linalg.norm(back - masses) <= 1e-14 * np.linalg.norm(masses)
            power = np.ones(size // 2 + 1, dtype=np.complex128)
            transform.compose_into(masses, 1000, power)
            np.testing.assert_allclose(power, product**1000, atol=1e-12)
        exact = np.fft.rfft(masses)
        bound = 6.0 * 2.0**-53 * max(np.log2(size), 1.0) * np.linalg.norm(exact)
        assert np.linalg.norm(spectra[0] - exact) <= bound
    for core in (native, reference):
        with pytest.raises(ValueError, match="power of two"):
            core.Transform(12)


@compares("decayed_sums")
def compare_decayed_sums(tables):
    values = np.random.default_rng(75).uniform(size=500)
    ours, theirs = (core.decayed_sums(values, 0.9) for core in (native, reference))
    np.testing.assert_array_equal(ours, theirs)
    weights = 0.9 ** np.arange(500.0)
    assert ours[0] == pytest.approx((values * weights).sum(), rel=1e-13)
    assert ours[-1] == values[-1]


@compares("piece_masses")
def compare_piece_masses(tables):
    edges = np.linspace(-6.0, 7.0, 400)
    for rate in (1.0, 0.3, 1e-6, 1.0 - 1e-9):
        for shifts in ((0.7, 0.0), (0.0, 0.7), (0.7, -0.7)):
            arguments = (1.25, *shifts, rate, edges, np.full(399, -0.01), 1.5, 0.2)
            found = [
                core.piece_masses(core.LawTable(*tables), *arguments)
                for core in (native, reference)
            ]
            np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-13)
            np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-16)


def loss_at(law, pair, x):
    scale, shift_p, shift_q, rate = pair
    plain = law_values(law, x / scale)
    logs = [
        np.log1p(rate * np.expm1(law_values(law, (x - shift) / scale) - plain))
        for shift in (shift_p, shift_q)
    ]
    return logs[0] - logs[1]


def law_values(law, t):
    return law.log_density.value(np.abs(t))


@compares("level_points")
def compare_level_points(tables):
    """On a stretch without kinks, on which the losses of all of these laws are monotone."""
    x = np.linspace(1.5, 5.0, 400)
    law = reference.LawTable(*tables)
    for rate in (1.0, 0.3, 1e-6):
        for shifts in ((0.7, 0.0), (0.0, 0.7), (0.7, -0.7)):
            pair = (1.25, *shifts, rate)
            loss = loss_at(law, pair, x)
            slope = np.gradient(loss, x)
            if not np.abs(slope).min() > 1e-3 * rate:
                continue  # the loss is constant
            rising = slice(None, None, 1 if loss[-1] > loss[0] else -1)
            run = [np.ascontiguousarray(values[rising]) for values in (x, loss, slope)]
            levels = np.linspace(run[1][0], run[1][-1], 203)[1:-1]
            found = [
                core.level_points(core.LawTable(*tables), *pair, *run, levels, 1e-14)
                for core in (native, reference)
            ]
            for points, error in found:
                assert error <= 2e-14
                np.testing.assert_allclose(loss_at(law, pair, points), levels, rtol=0.0, atol=4e-14)
            slack = 1e-13 / np.abs(slope).min()
            np.testing.assert_allclose(found[0][0], found[1][0], rtol=0.0, atol=slack)
    for core in (native, reference):
        with pytest.raises(ValueError, match="two samples"):
            one = np.zeros(1)
            core.level_points(core.LawTable(*tables), 1.0, 1.0, 0.0, 1.0, one, one, one, one, 0.0)


@compares("tilted_moments")
def compare_tilted_moments(tables):
    """Against exact sums of two losses too, large and tiny, and where all overflows."""
    generator = np.random.default_rng(77)
    for size in (1, 7, 128, 1000):
        log_mass, loss = generator.uniform(-30.0, 0.0, size), generator.normal(size=size)
        for c in (-1.0, 1e-9, 0.3, 40.0):
            arguments = (log_mass, np.exp(log_mass), loss, c, 0.25, 0.125)
            ours, theirs = (core.tilted_moments(*arguments) for core in (native, reference))
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    mass, loss = np.array([0.25, 0.75]), np.array([1e-7, -2e-7])
    _, excess, mean, square = native.tilted_moments(np.log(mass), mass, loss, 2.0, 0.0, 0.0)
    # exp(x) - 1 - x and exp(x) - 1 by their series: 2e-28 of themselves are left out.
    x = 2.0 * loss
    assert excess == pytest.approx(mass @ (x**2 * (0.5 + x / 6.0 + x**2 / 24.0)), rel=1e-14)
    exact = mass @ (loss * (x + 0.5 * x**2 + x**3 / 6.0)) / (1.0 + excess)
    assert mean == pytest.approx(exact, rel=1e-14)
    assert square == pytest.approx(float(mass @ (loss - mean) ** 2), rel=1e-6)
    assert native.tilted_moments(np.zeros(2), np.ones(2), np.ones(2), 800.0, 0.0, 0.0)[0] == 800.0


@compares("balanced_nodes")
def compare_balanced_nodes(tables):
    generator = np.random.default_rng(76)
    widths = 0.01 * 2.0 ** generator.integers(0, 3, 300)
    mass = np.exp(-0.5 * np.linspace(-6.0, 5.0, 300) ** 2)
    excess = mass * widths * generator.uniform(0.4, 0.6, 300)
    for tilt in (0.0, 2.0):
        ours, theirs = (
            core.balanced_nodes(mass, excess, widths, tilt) for core in (native, reference)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-18)
        assert (ours >= 0.0).all()


@compares("stable_sums")
def compare_stable_sums(tables):
    generator = np.random.default_rng(73)
    log_y = generator.uniform(-40.0, 5.0, 71)
    lo = generator.uniform(-1.0, 1.0, 71) * np.spacing(log_y) / 2
    for alpha in (0.1, 0.5, 1.0 - 1e-9, 1.0 + 1e-12, 1.3, 1.5, 1.75, 1.9999, 2.0 - 1e-12):
        above_one, below_two = alpha - 1.0, 2.0 - alpha
        step = 0.2 * min(abs(above_one) / alpha, 0.4)
        start = -150.0 * step + generator.uniform(-1.0, 1.0, 71)
        arguments = (alpha, above_one, below_two, log_y, lo, start, step, 300)
        ours, theirs = native.stable_sums(*arguments), reference.stable_sums(*arguments)
        for our, their in zip(ours, theirs, strict=True):
            assert np.isfinite(our).all()
            same_bits(our, their)


@compares("characteristic")
def compare_characteristic(tables):
    """Not bit-equal by contract: m ulp of the sum of weights, and the definition itself."""
    generator = np.random.default_rng(73)
    weights, losses = generator.uniform(0.0, 1.0, 300), generator.normal(size=300)
    count, step = 400, 0.037
    ours = native.characteristic(weights, losses, step, count)
    theirs = reference.characteristic(weights, losses, step, count)
    m = np.arange(count)
    bound = 4.0 * (m + 2) * 2.0**-53 * weights.sum()
    exact = np.expm1(1j * step * np.outer(m, losses)) @ weights
    for values in (ours, theirs):
        assert values.shape == (count,)
        assert values.dtype == np.complex128
        assert (np.abs(values - exact) <= bound).all()
    assert native.characteristic(weights[:0], losses[:0], step, 3).tolist() == [0.0] * 3
    # Relative accuracy for tiny steps, where exp(...) - 1 would lose everything.
    tiny = [core.characteristic(weights, losses, 1e-12, 3)[1:] for core in (native, reference)]
    expected = np.array([1j * 1e-12 * m * (weights @ losses) for m in (1, 2)])
    for values in tiny:
        np.testing.assert_allclose(values.imag, expected.imag, rtol=1e-12)


@compares("stream_words")
def compare_stream_words(tables):
    for rounds in (8, 20):
        for first, count in ((0, 0), (5, 1000), (2**45 + 3, 300)):
            same_bits(
                native.stream_words(KEY, rounds, first, count),
                reference.stream_words(KEY, rounds, first, count),
            )


@compares("chacha_block")
def compare_chacha_block(tables):
    for rounds in (8, 20):
        for counter, nonce in ((0, 0), (2**64 - 1, 1), (2**32, 2**63)):
            same_bits(
                native.chacha_block(KEY, rounds, counter, nonce),
                reference.chacha_block(KEY, rounds, counter, nonce),
            )


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


@pytest.mark.parametrize("level", native.build_config()["isa_available"])
def test_every_level_evaluates_the_same_bits(level, run_python):
    code = """
import hashlib
import numpy as np
from psinoise.noise import FAMILIES
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
