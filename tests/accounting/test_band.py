"""Low frequencies by short transforms, against plain sums; each test names the mutant it kills."""

from __future__ import annotations

import numpy as np

from psinoise.accounting.compose import band
from psinoise.accounting.compose.band import band_sums
from refusals import for_each


def plain_sums(mass, distance, size, orders):
    """In extended precision, with turns reduced in whole numbers."""
    turns = np.outer(orders, distance) % size
    angles = turns.astype(np.longdouble) * (2 * np.longdouble("3.14159265358979323846") / size)
    return (np.cos(angles) @ mass.astype(np.longdouble)) + 1j * (
        np.sin(angles) @ mass.astype(np.longdouble)
    )


def measure(seed, nodes, spread):
    rng = np.random.default_rng(seed)
    distance = np.unique(np.round(rng.standard_normal(nodes) * spread).astype(np.int64))
    mass = rng.random(distance.size) ** 8
    return mass / mass.sum(), distance


@for_each([99_991, 2**17, 10**6 + 1], [3, 600, 5000])
def test_they_are_within_their_error(size, frequencies):
    """Kills: the turn of the transform, cells of an even window only, cells off by a half."""
    mass, distance = measure(1, 3000, 9000.0)
    found, off = band_sums(mass, distance, size, frequencies)
    orders = np.unique(np.linspace(0, frequencies - 1, 40).astype(int))
    error = np.abs(found[orders] - plain_sums(mass, distance, size, orders))
    assert error.max() <= off
    assert off <= 1e-13


def test_terms_are_needed(monkeypatch):
    """At the end of the band, where they are largest. The mutant: half of the terms."""
    mass, distance = np.ones(1), np.array([15])  # half a cell of 32768
    size, frequencies = 1_000_003, 8191
    orders = np.arange(8000, 8191, 10)
    exact = plain_sums(mass, distance, size, orders)
    found, off = band_sums(mass, distance, size, frequencies)
    assert np.abs(found[orders] - exact).max() <= off
    monkeypatch.setattr(band, "_TERMS", 9)
    found, off = band_sums(mass, distance, size, frequencies)
    assert np.abs(found[orders] - exact).max() > off


def test_many_nodes_of_one_cell_have_a_larger_error():
    """Long sums are off by more, and say so. The mutant: a constant."""
    mass, distance = np.full(10**5, 1e-5), np.arange(10**5)
    long, short = (band_sums(mass, distance, 10**9, count)[1] for count in (4, 40_000))
    assert long > 2.0 * short
