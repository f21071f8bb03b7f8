"""Banded linear algebra: not bit-equal by contract, but within rounding of a library's."""

from __future__ import annotations

import numpy as np
import pytest

from comparisons.registry import compares
from psinoise import _core as native
from psinoise import reference


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
