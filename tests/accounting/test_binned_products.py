"""The kernels of the direct composer against brute force, of the native module and of its twin."""

from __future__ import annotations

import math

import numpy as np

from psinoise import _core, reference
from refusals import for_each

BACKENDS = {"native": _core, "reference": reference}


def nodes(seed, count, *, spread=1.0, center=0.0):
    """Losses that rise, with masses over many orders of magnitude."""
    random = np.random.default_rng(seed)
    loss = center + spread * np.sort(random.standard_normal(count))
    mass = 10.0 ** random.uniform(-30.0, 0.0, count)
    return loss, mass


def all_products(a, b, edges):
    """Masses and moments of the bins, each product on its own, in extended precision."""
    bins = edges.size - 1
    mass, moment = np.zeros(bins, np.longdouble), np.zeros(bins, np.longdouble)
    losses = np.add.outer(a[0], b[0])
    where = np.clip(np.searchsorted(edges, losses, side="right") - 1, 0, bins - 1)
    above = a[0].astype(np.longdouble)[:, None] + b[0] - edges[where]
    weight = np.multiply.outer(a[1].astype(np.longdouble), b[1])
    np.add.at(mass, where, weight)
    np.add.at(moment, where, weight * above)
    return mass, moment


CASES = [
    # Two measures, one alone with itself (which is summed over half of its pairs), and their ends.
    (nodes(1, 40), nodes(2, 70, spread=3.0), 25),
    (nodes(3, 90), None, 60),
    (nodes(4, 1), nodes(5, 1), 1),
    (nodes(6, 1), nodes(7, 200, spread=1e4), 50),
    (nodes(8, 300, spread=1e-9), nodes(9, 300, spread=1e3, center=50.0), 400),
    (nodes(10, 600), None, 5),
]


@for_each(list(BACKENDS), CASES, [1, 2])
def test_products_in_bins(backend, case, threads):
    a, b, count = case
    b = a if b is None else b
    low, high = a[0][0] + b[0][0], a[0][-1] + b[0][-1]
    random = np.random.default_rng(count)
    inner = low + (high - low) * np.sort(random.random(count - 1))
    edges = np.unique(np.concatenate([[low - 1e-12], inner, [high + 1e-12]]))
    mass, moment = BACKENDS[backend].binned_products(*a, *b, edges, threads)
    exact, exact_moment = all_products(a, b, edges)
    terms = (a[0].size + b[0].size + 8) * 2.0**-53
    assert np.all(np.abs(mass - exact) <= terms * exact + 1e-320)
    largest = max(np.abs(x).max() for x in (a[0], b[0], edges))
    room = terms * np.abs(exact_moment) + 12.0 * 2.0**-53 * largest * exact + 1e-320
    assert np.all(np.abs(moment - exact_moment) <= room)
    # No mass is lost, and no moment lies outside of its bin.
    total = math.fsum(a[1]) * math.fsum(b[1])
    assert abs(math.fsum(mass) - total) <= 2.0 * terms * total
    room = 16.0 * 2.0**-53 * largest
    assert np.all(moment >= -room * mass)
    assert np.all(moment <= (np.diff(edges) + room) * mass)


@for_each(list(BACKENDS))
def test_sums_beyond_the_edges_count_in_the_bins_at_the_ends(backend):
    loss, mass = np.array([-5.0, 0.0, 5.0]), np.array([0.25, 0.5, 0.25])
    edges = np.array([-1.0, 0.0, 2.0])
    found, moment = BACKENDS[backend].binned_products(loss, mass, loss, mass, edges, 1)
    assert found.tolist() == [0.3125, 0.6875]
    # A sum that is an edge belongs to the bin above.
    expected = [0.0625 * -9.0 + 0.25 * -4.0, 0.375 * 0.0 + 0.25 * 5.0 + 0.0625 * 10.0]
    assert moment.tolist() == expected


@for_each([1, 2, 8])
def test_the_result_does_not_depend_on_the_threads(threads):
    a, b = nodes(20, 700), nodes(21, 500)
    edges = np.linspace(a[0][0] + b[0][0] - 1.0, a[0][-1] + b[0][-1] + 1.0, 200)
    one = _core.binned_products(*a, *b, edges, 1)
    many = _core.binned_products(*a, *b, edges, threads)
    assert all(np.array_equal(x, y) for x, y in zip(one, many, strict=True))


@for_each(list(BACKENDS), [(30, 1, 1.0), (31, 2, 1e-9), (32, 500, 1.0), (33, 4000, 200.0)])
def test_sums_from_each_node_on(backend, case):
    seed, count, spread = case
    loss, mass = nodes(seed, count, spread=spread)
    total, excess = BACKENDS[backend].suffix_sums(loss, mass)
    wide, weight = loss.astype(np.longdouble), mass.astype(np.longdouble)
    for k in range(0, count, max(count // 40, 1)):
        exact = weight[k:].sum()
        over = (weight[k:] * -np.expm1(wide[k] - wide[k:])).sum()
        terms = (2.0 * (count - k) + 8.0) * 2.0**-53
        # What fades far away has the rounding of its exponent.
        assert abs(total[k] - exact) <= terms * exact
        assert abs(excess[k] - over) <= (2.0 * terms + 2.0**-50 * max(spread, 1.0)) * over
    assert np.all(excess <= total * (1.0 + 1e-12))
