"""The error of transforms, which certified bounds count with."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

from psinoise import _core as core
from psinoise.accounting.compose.measures.measure import UNIT


def sequences(size):
    """Masses spread out, at a few points, over many orders, and of both signs."""
    generator = np.random.default_rng(size)
    place = np.arange(size) - size // 3
    yield generator.uniform(size=size)
    yield np.exp(-0.5 * (8.0 * place / size) ** 2)
    yield 10.0 ** generator.uniform(-300.0, 0.0, size)
    yield (place == 0) + 0.5 * (place == 1)
    yield generator.choice([-1.0, 1.0], size)


LONG_DOUBLE = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2.0**-60, reason="long double is double here"
)


@LONG_DOUBLE
@pytest.mark.parametrize("exponent", range(1, 16))
def test_transforms_are_as_right_as_the_accounting_says(exponent):
    """scipy's in numbers of 80 bits is the oracle; a rotation by 2e-15 in one table is seen.

    Errors are some 20 times below the bound, which is 6 u log2(N).
    """
    size = 2**exponent
    transform = core.Transform(size)
    bound = 6.0 * UNIT * exponent
    for masses in sequences(size):
        exact = scipy.fft.rfft(masses.astype(np.longdouble))
        found = np.ones(size // 2 + 1, dtype=np.complex128)
        transform.compose_into(masses, 1, found)
        # The spectrum of real numbers, frequencies that are left out included.
        weight = np.full(found.size, 2.0)
        weight[[0, -1]] = 1.0
        lost = np.sqrt(np.sum(weight * np.abs(found - exact) ** 2))
        whole = np.sqrt(np.sum(weight * np.abs(exact) ** 2))
        assert lost <= bound * whole
        assert lost <= 0.12 * bound * whole
        back = transform.inverse(found) / size
        assert np.linalg.norm(back - masses) <= 2.0 * bound * np.linalg.norm(masses)


@LONG_DOUBLE
@pytest.mark.parametrize(
    "size", [2, 4, 12, 24, 48, 64, 96, 128, 192, 384, 768, 3072, 2**14, 3 * 2**13]
)
def test_every_result_is_as_right_as_the_sum_of_sizes_says(size):
    """Both directions, and of fewer frequencies than there are: some 20 times below the bound.

    A root that is off by 2e-15 is seen, in a sequence with few numbers.
    """
    transform = core.Transform(size)
    bound = (5.9 * np.log2(size) + 21.0) * UNIT
    for values in sequences(size):
        exact = scipy.fft.rfft(values.astype(np.longdouble))
        found = np.ones(size // 2 + 1, dtype=np.complex128)
        transform.compose_into(values, 1, found)
        lost = float(np.abs(found - exact).max())
        assert lost <= min(bound, 6.0 * UNIT) * np.abs(values).sum()
        for terms in {found.size, found.size // 2 + 1}:
            held = found[:terms].copy()
            back = scipy.fft.irfft(held.astype(np.clongdouble), size) * size
            total = float(2.0 * np.abs(held).sum())
            lost = float(np.abs(transform.inverse(held) - back).max())
            assert lost <= min(bound, 6.0 * UNIT) * total


@pytest.mark.parametrize("size", [16, 192])
def test_rows_of_spectra_are_those_of_each(size):
    generator = np.random.default_rng(size)
    transform = core.Transform(size)
    shape = (3, size // 4)
    rows = generator.uniform(size=shape) + 1j * generator.uniform(size=shape)
    factors = rows[0] * 1j
    both = transform.inverse(rows, factors)
    assert both.shape == (3, size)
    for row, values in zip(rows, both, strict=True):
        np.testing.assert_allclose(values, transform.inverse(row * factors), atol=1e-13)
    out = np.empty((3, size))
    assert transform.inverse(rows, factors, out) is out
    np.testing.assert_array_equal(out, both)
    with pytest.raises(ValueError, match="factors"):
        transform.inverse(rows, factors[1:])
    for wrong in (out[1:], out.ravel(), out.reshape(1, 3, size)):
        with pytest.raises(ValueError, match="out"):
            transform.inverse(rows, factors, wrong)
    with pytest.raises(ValueError, match="factors"):
        transform.inverse(rows, factors[:, None])
    for wrong in (np.ones(size // 2 + 2, complex), np.ones((2, 0), complex), np.array(1j)):
        with pytest.raises(ValueError, match="wrong size"):
            transform.inverse(wrong)


@pytest.mark.parametrize("size", [0, 1, 3, 6, 9, 20, 36])
def test_lengths_are_powers_of_two_or_three_times_one(size):
    with pytest.raises(ValueError, match="power of two"):
        core.Transform(size)


@pytest.mark.parametrize("size", [2, 4, 12, 24, 64, 128, 192, 256, 384, 512])
def test_every_frequency_is_in_its_place(size):
    """One point at a time: a spectrum is a row of roots of unity."""
    transform = core.Transform(size)
    order = np.arange(size // 2 + 1)
    for place in {0, 1, size // 2, size - 1}:
        masses = (np.arange(size) == place).astype(np.float64)
        found = np.ones(order.size, dtype=np.complex128)
        transform.compose_into(masses, 3, found)
        exact = np.exp(-2j * np.pi * (3 * place * order % size) / size)
        np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("level", core.build_config()["isa_available"])
def test_every_level_transforms_to_the_same_bits(level, run_python):
    code = """
import hashlib
import numpy as np
from psinoise import _core as core
state = hashlib.sha256()
for size in (2, 8, 12, 48, 64, 128, 256, 384, 1536, 2048, 4096, 6144):
    masses = np.random.default_rng(size).uniform(size=size)
    transform = core.Transform(size)
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    transform.compose_into(masses / masses.sum(), 5, product)
    state.update(product.tobytes())
    state.update(transform.inverse(product).tobytes())
print(state.hexdigest())
"""
    assert run_python(code, PSINOISE_ISA=level) == run_python(code)
