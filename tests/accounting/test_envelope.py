"""The envelope over shifts against brute force over shifts, thresholds and gammas."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from psinoise.accounting.loss.envelope import Curve, envelope
from refusals import for_each


def spiky(cells: int, seed: int, *, zeros: bool = False) -> np.ndarray:
    """Masses of a symmetric law that is not unimodal, on cells ``-cells, ..., cells``."""
    generator = np.random.default_rng(seed)
    half = np.exp(-0.3 * np.arange(cells + 1)) * generator.uniform(0.3, 1.7, cells + 1)
    if zeros:
        half[-2:] = 0.0
    masses = np.concatenate([half[:0:-1], half])
    return masses / masses.sum()


def shifted_pieces(masses: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    pad = np.zeros(k)
    return np.concatenate([pad, masses]), np.concatenate([masses, pad])


def profile(shifted: np.ndarray, base: np.ndarray, gamma: float) -> float:
    return float(np.maximum(shifted - gamma * base, 0.0).sum())


def atoms_profile(found, gamma: float) -> float:
    base = np.exp(found.log_mass)
    finite = np.maximum(base * np.exp(found.loss) - gamma * base, 0.0).sum()
    return float(finite) + found.infinite


def envelope_of(pieces):
    return envelope([Curve.of(*pair) for pair in pieces])


@for_each(range(6), [False, True])
def test_profile_is_the_largest_over_shifts(seed, zeros):
    masses = spiky(25, seed, zeros=zeros)
    pieces = [shifted_pieces(masses, k) for k in range(1, 9)]
    found = envelope_of(pieces)
    for gamma in np.concatenate([np.geomspace(1e-4, 1.0, 40), np.geomspace(1.0, 1e4, 200)]):
        expected = max(profile(*pair, gamma) for pair in pieces)
        assert atoms_profile(found, gamma) == pytest.approx(expected, rel=1e-12, abs=1e-16)


def test_different_shifts_win_at_different_gammas():
    """Kills: the largest shift only."""
    half = np.exp(-0.1 * np.arange(40)) * np.where(np.arange(40) % 3 == 0, 1.0, 0.3)
    masses = np.concatenate([half[:0:-1], half]) / (2.0 * half.sum() - half[0])
    pieces = [shifted_pieces(masses, k) for k in range(1, 10)]
    gammas = np.geomspace(1.0, 8.0, 60)
    profiles = np.array([[profile(*pair, gamma) for pair in pieces] for gamma in gammas])
    assert np.unique(np.argmax(profiles, axis=1)).size > 1
    last = envelope_of(pieces[-1:])
    assert any(
        atoms_profile(last, gamma) < 0.99 * max(profile(*pair, gamma) for pair in pieces)
        for gamma in gammas
    )


def test_both_densities_have_mass_one():
    found = envelope_of([shifted_pieces(spiky(25, 4), k) for k in range(1, 9)])
    base = np.exp(found.log_mass)
    outside = found.infinite
    assert base.sum() + outside == pytest.approx(1.0, abs=1e-14)
    assert (base * np.exp(found.loss)).sum() + outside == pytest.approx(1.0, abs=1e-14)


def test_one_shift_is_the_pair_itself():
    masses = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    found = envelope_of([shifted_pieces(masses, 1)])
    assert found.infinite == pytest.approx(0.1)
    losses = np.log([2.0, 1.0, 0.5])
    np.testing.assert_allclose(found.loss, losses, atol=1e-15)


def test_tails_keep_their_relative_accuracy():
    """Gaussian weights to 1e-300: each atom has the loss of its cell, 13 digits of it."""
    log_half = -0.5 * (0.02 * np.arange(1850.0)) ** 2
    half = np.exp(log_half)
    masses = np.concatenate([half[:0:-1], half]) / (2.0 * half.sum() - half[0])
    found = envelope_of([shifted_pieces(masses, 3)])
    # log p(k - 3) - log p(k) = 0.02^2 (6 k - 9) / 2 for the cells k above.
    cells = np.arange(1849.0, 1.0, -1.0)
    np.testing.assert_allclose(found.loss[: cells.size], 2e-4 * (6.0 * cells - 9.0), rtol=1e-12)
    expected = log_half[cells.astype(int)] - np.log(2.0 * half.sum() - half[0])
    np.testing.assert_allclose(found.log_mass[: cells.size], expected, rtol=1e-13)


def test_memory_is_that_of_the_curves():
    """Kills: all curves at the points of all others, 180 MB here and 9 GB for 4,096 cells."""
    masses = spiky(400, 1)
    pieces = [shifted_pieces(masses, k) for k in range(1, 401)]
    tracemalloc.start()
    try:
        envelope_of(pieces)
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()
