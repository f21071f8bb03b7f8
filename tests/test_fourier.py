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


@pytest.mark.parametrize("exponent", range(1, 16))
def test_transforms_are_as_right_as_the_accounting_says(exponent):
    """scipy's in numbers of 80 bits is the oracle; a rotation by 2e-15 in one table is seen.

    Errors are some 20 times below the bound, which is 6 u log2(N).
    """
    if np.finfo(np.longdouble).eps > 2.0**-60:
        pytest.skip("long double is double here")
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
        back = transform.inverse(found)
        assert np.linalg.norm(back - masses) <= 2.0 * bound * np.linalg.norm(masses)


@pytest.mark.parametrize("exponent", [1, 2, 6, 7, 8, 9])
def test_every_frequency_is_in_its_place(exponent):
    """One point at a time: a spectrum is a row of roots of unity."""
    size = 2**exponent
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
for exponent in (1, 3, 6, 7, 8, 11, 12):
    masses = np.random.default_rng(exponent).uniform(size=2**exponent)
    transform = core.Transform(2**exponent)
    product = np.ones(2**exponent // 2 + 1, dtype=np.complex128)
    transform.compose_into(masses / masses.sum(), 5, product)
    state.update(product.tobytes())
    state.update(transform.inverse(product).tobytes())
print(state.hexdigest())
"""
    assert run_python(code, PSINOISE_ISA=level) == run_python(code)
