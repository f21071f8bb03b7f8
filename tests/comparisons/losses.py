"""Kernels of the accountant: equal within the errors that they state, not in their bits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from comparisons.registry import compares
from psinoise import _core as native
from psinoise import reference


@compares("Transform")
def compare_transforms(tables):
    """Within the error that csrc/math/fft.hpp states; scipy is the third opinion."""
    generator = np.random.default_rng(74)
    for size in (2, 4, 8, 12, 64, 96, 2048, 3072, 1 << 15):
        masses = generator.uniform(size=size)
        masses /= masses.sum()
        spectra = []
        for core in (native, reference):
            transform = core.Transform(size)
            assert transform.size == size
            product = np.ones(size // 2 + 1, dtype=np.complex128)
            transform.compose_into(masses, 1, product)
            spectra.append(product)
            back = transform.inverse(product) / size
            assert np.linalg.norm(back - masses) <= 1e-14 * np.linalg.norm(masses)
            power = np.ones(size // 2 + 1, dtype=np.complex128)
            transform.compose_into(masses, 1000, power)
            np.testing.assert_allclose(power, product**1000, atol=1e-12)
        rows = np.array([spectra[0], spectra[1][::-1]])[:, : size // 4 + 1].copy()
        both = [core.Transform(size).inverse(rows, rows[0]) for core in (native, reference)]
        np.testing.assert_allclose(*both, rtol=0.0, atol=1e-12)
        exact = np.fft.rfft(masses)
        bound = 6.0 * 2.0**-53 * max(np.log2(size), 1.0) * np.linalg.norm(exact)
        assert np.linalg.norm(spectra[0] - exact) <= bound
    for core in (native, reference):
        with pytest.raises(ValueError, match="power of two"):
            core.Transform(20)


@compares("binned_products")
def compare_binned_products(tables):
    """Within the error that csrc/losses/binned_products.cpp states; both may have as much of it."""
    generator = np.random.default_rng(78)
    for sizes, bins in (((1, 1), 1), ((7, 3), 5), ((40, 300), 33), ((300, 400), 1000)):
        for lattice in (False, True):
            a, b = (
                (np.arange(n) * 0.25 * k if lattice else np.cumsum(generator.exponential(size=n)))
                for k, n in enumerate(sizes, 1)
            )
            a, b = ((loss, loss, generator.uniform(size=loss.size) ** 9) for loss in (a, b))
            # Some sums lie beyond the edges, and some on an edge.
            low, high = a[0][0] + b[0][0], a[0][-1] + b[0][-1] + 1.0
            inner = generator.uniform(low + 0.1 * (high - low), high - 0.1 * (high - low), bins)
            edges = np.sort(np.append(inner, a[0][-1] + b[0][0]))
            ours, theirs = (core.binned_products(*a, *b, edges, 1) for core in (native, reference))
            largest = float(a[0][-1] + b[0][-1])
            assert_same_products(ours, theirs, sizes, largest)
            assert ours[0].sum() == pytest.approx(a[2].sum() * b[2].sum(), rel=1e-13)
            # The same arrays twice take half the products, and copies of them all.
            square = native.binned_products(*b, *b, edges, 1)
            general = native.binned_products(*b, *(part.copy() for part in b), edges, 1)
            assert_same_products(square, general, (sizes[1], sizes[1]), 2.0 * largest)
    one, far = np.ones(1), np.array([1.7e308])
    for core in (native, reference):
        with pytest.raises(ValueError, match="finite"), np.errstate(over="ignore"):
            core.binned_products(far, far, one, far, far, one, np.arange(2.0), 1)
        with pytest.raises(ValueError, match="finite"):
            core.binned_products(-far, far, one, far / far * np.inf, far, one, np.arange(2.0), 1)


def assert_same_products(ours, theirs, sizes, largest):
    ulp = 2.0**-52
    share = (sum(sizes) + 16) * ulp
    assert (abs(ours[0] - theirs[0]) <= share * theirs[0]).all()
    for power in (1, 2):
        slack = (share + 16.0 * ulp) * largest**power * theirs[0]
        assert (abs(ours[power] - theirs[power]) <= slack).all()
    assert not ours[3].any()


@compares("placed_sums")
def compare_placed_sums(tables):
    """The same terms in the same order: equal but where products are fused with sums."""
    generator = np.random.default_rng(79)
    values = generator.uniform(size=500) ** 9
    # All counts up to two tiles at every level, whose last sums are made in several ways.
    for terms, count in ((0, 5), (200, 131), *((7, count) for count in range(1, 65))):
        places = generator.integers(0, values.size - count + 1, terms)
        weights = generator.uniform(size=terms)
        ours, theirs = (
            core.placed_sums(values, places, weights, count) for core in (native, reference)
        )
        np.testing.assert_allclose(ours, theirs, rtol=(terms + 1) * 2.0**-53)
    for place in (-1, values.size - 4):
        for core in (native, reference):
            with pytest.raises(ValueError, match="from each place on"):
                core.placed_sums(values, np.array([place]), np.ones(1), 5)


def parts_of(points):
    return [2**k for k in range(10) if points % 2**k == 0]


@compares("peaks_above")
def compare_peaks_above(tables):
    generator = np.random.default_rng(80)
    for rows, points in ((1, 4), (3, 8), (2, 33), (5, 1000)):
        values = generator.normal(size=(rows, points))
        added = generator.normal(size=(rows, points // generator.choice(parts_of(points))))
        other, held = generator.normal(size=points), generator.integers(0, rows, points)
        for sign in (1.0, -1.0):
            for among in (held, held[:0]):
                ours, theirs = (
                    core.peaks_above(values, other, added, among, sign)
                    for core in (native, reference)
                )
                np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-14)
        # Wherever it is, what is no number is not passed over.
        for array in (values, other, added):
            for place in range(array.shape[-1]):
                spoiled = [part.copy() for part in (values, other, added)]
                at = next(k for k in range(3) if (values, other, added)[k] is array)
                spoiled[at].flat[place] = generator.choice([np.nan, np.inf])
                for core in (native, reference):
                    with np.errstate(invalid="ignore"):
                        assert not np.isfinite(core.peaks_above(*spoiled, held[:0], 1.0)[0])
    for core in (native, reference):
        with pytest.raises(ValueError, match="as many values"):
            core.peaks_above(np.ones((2, 5)), np.ones(4), np.ones((2, 5)), held[:0], 1.0)
        for wrong in (2, 8, 4):
            with pytest.raises(ValueError, match="power of two"):
                core.peaks_above(np.ones((2, 12)), np.ones(12), np.ones((2, wrong)), held[:0], 1.0)
    with pytest.raises(ValueError, match="must exist"):
        native.peaks_above(values, other, added, held + rows, 1.0)


@compares("largest_rows")
def compare_largest_rows(tables):
    generator = np.random.default_rng(81)
    for rows, points in ((1, 4), (3, 8), (2, 33), (14, 1000)):
        start, end = generator.integers(-3, 4, (2, rows, points)).astype(float)
        ours, theirs = (core.largest_rows(start, end) for core in (native, reference))
        np.testing.assert_array_equal(ours, theirs)
    for core in (native, reference):
        with pytest.raises(ValueError, match="rows"):
            core.largest_rows(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="same"):
        native.largest_rows(start, end[1:])


@compares("missing_near")
def compare_missing_near(tables):
    generator = np.random.default_rng(82)
    for points, reach in ((2, 0), (3, 1), (9, 4), (64, 0), (1000, 4), (1000, 18)):
        values, other = generator.normal(size=(2, points))
        ours, theirs = (
            core.missing_near(values, other, 0.4, reach) for core in (native, reference)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-14)
    for core in (native, reference):
        with pytest.raises(ValueError, match="more than that"):
            core.missing_near(values, other, 0.4, 500)
    with pytest.raises(ValueError, match="more than that"):
        native.missing_near(values, other, 0.4, 2**63)


@compares("suffix_sums")
def compare_suffix_sums(tables):
    generator = np.random.default_rng(79)
    for size in (1, 2, 500):
        loss = np.sort(generator.normal(scale=5.0, size=size))
        mass = generator.uniform(size=size) ** 9
        ours, theirs = (core.suffix_sums(loss, mass) for core in (native, reference))
        over = -np.expm1(np.minimum(np.subtract.outer(loss, loss), 0.0))
        for k, exact in enumerate((np.cumsum(mass[::-1])[::-1], np.triu(over) @ mass)):
            np.testing.assert_allclose(ours[k], theirs[k], rtol=1e-13)
            np.testing.assert_allclose(ours[k], exact, rtol=1e-12)
        assert ours[0][-1] == theirs[0][-1] == mass[-1]
        assert ours[1][-1] == theirs[1][-1] == 0.0


@compares("excess_above")
def compare_excess_above(tables):
    generator = np.random.default_rng(80)
    points = np.concatenate([[-1e3, 0.0, 1e3], generator.normal(scale=9.0, size=60)])
    for size in (0, 1, 2, 500):
        loss = np.sort(generator.normal(scale=5.0, size=size))
        sums = loss, *native.suffix_sums(loss, generator.uniform(size=size))
        for offsets in (np.zeros(1), np.sort(generator.normal(scale=2.0, size=300))):
            at = np.append(points, loss[:5] + offsets[0])
            weights = generator.uniform(size=offsets.size)
            ours, theirs = (
                core.excess_above(*sums, offsets, weights, at) for core in (native, reference)
            )
            np.testing.assert_allclose(ours, theirs, rtol=2e-13)
    for core in (native, reference):
        for bad in (
            (*sums, np.zeros(0), np.zeros(0)),
            (*sums, np.array([1.0, 0.0]), np.ones(2)),
            (loss[::-1].copy(), *sums[1:], np.zeros(1), np.ones(1)),
        ):
            with pytest.raises(ValueError, match="losses and offsets must rise"):
                core.excess_above(*bad, points)
        with pytest.raises(ValueError, match="must not be NaN"):
            core.excess_above(*sums, np.zeros(1), np.ones(1), np.array([np.nan]))
        assert core.excess_above(*sums, np.zeros(1), np.ones(1), np.array([np.inf])) == [0.0]


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
    # One so wide that its room is endless, all of which goes down.
    widths[98] = 500.0
    for tilt in (0.0, 1.25):
        ours, theirs = (
            core.balanced_nodes(mass, excess, widths, tilt) for core in (native, reference)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-18)
        assert (ours >= 0.0).all()


@compares("wave_sums")
def compare_sums_of_waves(tables):
    """To the error that csrc/kernels/characteristic.cpp states, against 40 digits."""
    generator = np.random.default_rng(80)
    for rows, waves, turn in (
        (1, 1, 0.3),
        (2, 7, 2.0 * np.pi / 100.0),
        (2, 174, 2.0 * np.pi / 2972.0),
    ):
        terms = generator.normal(size=(rows, waves)) + 1j * generator.normal(size=(rows, waves))
        places = np.append(np.floor(generator.uniform(0.0, 2972.0, 5)), 0.0)
        m, theta = np.arange(waves), np.abs(turn * places)
        with mpmath.workdps(40):
            exact = [
                [
                    mpmath.fsum(
                        t * mpmath.expj(k * mpmath.mpf(turn) * x) for k, t in enumerate(row)
                    ).real
                    for x in places.tolist()
                ]
                for row in terms.tolist()
            ]
        size = np.abs(terms)
        bound = (
            size @ (8.0 + np.outer(m, 1.0 + theta))
            + (waves / 8.0 + 4.0) * size.sum(axis=1)[:, None]
        )
        for core in (native, reference):
            found = core.wave_sums(terms, turn, places)
            off = [
                [abs(a - b) for a, b in zip(*pair, strict=True)]
                for pair in zip(found, exact, strict=True)
            ]
            assert (np.array(off, dtype=float) <= 2.0**-53 * bound).all()
    with pytest.raises(ValueError, match="one row or two"):
        native.wave_sums(np.ones((3, 2), dtype=complex), 1.0, places)
    with pytest.raises(TypeError, match="complex128"):
        native.wave_sums(np.ones((1, 2)), 1.0, places)


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
    # Angles that are reduced by many turns, and those that are too large for that.
    for size in (1e3, 1e6, 3e6, 1e9):
        far = [core.characteristic(weights, losses, size, 2)[1] for core in (native, reference)]
        exact = np.expm1(1j * size * losses) @ weights
        assert np.abs(np.array(far) - exact).max() <= 8.0 * 2.0**-53 * weights.sum()
    # One angle at a time, against many digits: near whole turns the modulus itself is tiny.
    turns = 2.0 * np.pi * np.array([0.5, 1.0, 7.0, 1e3, 1e5, 3e5])
    angles = np.concatenate([turns, -turns, [1e-300, 1e-9, 0.1, 1.5, 3.0, 100.0, 2.0**21]])
    with mpmath.workdps(60):
        for angle in angles.tolist():
            found = native.characteristic(np.ones(1), np.full(1, angle), 1.0, 2)[1]
            exact = mpmath.expm1(1j * mpmath.mpf(angle))
            assert abs(mpmath.mpc(found) - exact) <= 4.0 * 2.0**-53 * abs(exact)
    # Relative accuracy for tiny steps, where exp(...) - 1 would lose everything.
    tiny = [core.characteristic(weights, losses, 1e-12, 3)[1:] for core in (native, reference)]
    expected = np.array([1j * 1e-12 * m * (weights @ losses) for m in (1, 2)])
    for values in tiny:
        np.testing.assert_allclose(values.imag, expected.imag, rtol=1e-12)
