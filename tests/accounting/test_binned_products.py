"""The kernels of the direct composer against brute force, of the native module and of its twin."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from psinoise import _core, reference
from refusals import for_each

BACKENDS = {"native": _core, "reference": reference}


def nodes(seed, count, *, spread=1.0, center=0.0, step=0.0, far=0.0):
    """Losses, points and masses over many orders of magnitude; with a step near a lattice."""
    random = np.random.default_rng(seed)
    point = center + spread * np.sort(random.standard_normal(count))
    if step:
        point = center + step * np.arange(count)
    loss = point + step * far * random.uniform(-1.0, 1.0, count)
    return loss, point, 10.0 ** random.uniform(-30.0, 0.0, count)


def all_products(a, b, edges, where_of):
    """Masses and two moments of the bins, each product on its own, in extended precision."""
    bins = edges.size - 1
    sums = np.zeros((3, bins), np.longdouble)
    where = np.clip(np.searchsorted(edges, where_of, side="right") - 1, 0, bins - 1)
    above = a[0].astype(np.longdouble)[:, None] + b[0] - edges[where]
    weight = np.multiply.outer(a[2].astype(np.longdouble), b[2])
    for power in range(3):
        np.add.at(sums[power], where, weight * above**power)
    return sums


CASES = [
    # Two measures, one alone with itself, their ends, and lattices as fine as each other or not.
    (nodes(1, 40), nodes(2, 70, spread=3.0), 25),
    (nodes(3, 90), None, 60),
    (nodes(4, 1), nodes(5, 1), 1),
    (nodes(6, 1), nodes(7, 200, spread=1e4), 50),
    (nodes(8, 300, spread=1e-9), nodes(9, 300, spread=1e3, center=50.0), 400),
    (nodes(10, 600), None, 5),
    (nodes(11, 300, step=0.25), None, 200),
    (nodes(12, 100, step=0.5), nodes(13, 150, step=0.125, center=-7.0), 90),
    (nodes(14, 100, step=0.5), nodes(15, 150, step=0.15, center=-7.0), 90),
    (nodes(16, 200, step=2.0), nodes(17, 500, step=2.0**-9), 300),
]


def edges_for(a, b, count):
    low, high = a[1][0] + b[1][0], a[1][-1] + b[1][-1]
    inner = low + (high - low) * np.sort(np.random.default_rng(count).random(count - 1))
    return np.unique(np.concatenate([[low - 1e-12], inner, [high + 1e-12]]))


@for_each(list(BACKENDS), CASES, [1, 2])
def test_products_in_bins(backend, case, threads):
    a, b, count = case
    b = a if b is None else b
    edges = edges_for(a, b, count)
    *sums, below = BACKENDS[backend].binned_products(*a, *b, edges, threads)
    exact = all_products(a, b, edges, np.add.outer(a[0], b[0]))
    terms = (a[0].size + b[0].size + 16) * 2.0**-53
    largest = 16.0 * 2.0**-53 * max(np.abs(x).max() for x in (a[0], b[0], edges))
    width = np.diff(edges) + largest
    assert np.all(np.abs(sums[0] - exact[0]) <= terms * exact[0] + 1e-320)
    for power in (1, 2):
        room = power * largest * width ** (power - 1) * exact[0] + terms * np.abs(exact[power])
        assert np.all(np.abs(sums[power] - exact[power]) <= room + 1e-320)
    assert not below.any()


@for_each([0.04, 0.5, 1.0], [(1.0, 1.0), (0.5, 0.125), (0.25, 1.0), (0.5, 0.15)])
def test_products_near_lattices(far, steps):
    """In the bin of their points, or of their losses where the steps have nothing to do."""
    a, b = (nodes(40 + k, 100 + 60 * k, step=step, far=0.24 * far) for k, step in enumerate(steps))
    a, b = ((np.maximum.accumulate(loss), point, mass) for loss, point, mass in (a, b))
    edges = edges_for(a, b, 70)
    edges[[0, -1]] += [-2.0, 2.0]
    mass, first, second, below = _core.binned_products(*a, *b, edges, 2)
    lattices = max(steps) % min(steps) == 0.0
    exact = all_products(a, b, edges, np.add.outer(a[lattices], b[lattices]))
    np.testing.assert_allclose(mass, np.float64(exact[0]), rtol=1e-13)
    scale = np.diff(edges) + 2.0
    assert np.all(np.abs(first - exact[1]) <= 1e-13 * scale * mass)
    assert np.all(second >= exact[2] - 1e-13 * scale**2 * mass)
    # They are bounded, and not summed, only where that adds little.
    assert np.all(second <= exact[2] + (0.05 * min(steps)) ** 2 * mass + 1e-13 * scale**2 * mass)
    reach = sum(np.abs(m[0] - m[1]).max() for m in (a, b)) if lattices else 0.0
    assert np.all((below == 0.0) | (below == reach))
    assert not lattices or np.any(below > 0.0)


def test_masses_are_right_to_the_bound_in_exact_arithmetic():
    """Kills: a product left out or taken twice, masses that cancel."""
    for a, b in (
        (nodes(50, 37), nodes(51, 20)),
        (nodes(52, 40, step=0.5), nodes(53, 35, step=1.0)),
    ):
        edges = edges_for(a, b, 12)
        mass = _core.binned_products(*a, *b, edges, 1)[0]
        for k in range(edges.size - 1):
            sums = np.add.outer(a[1], b[1])
            inside = np.argwhere((sums >= edges[k]) & (sums < edges[k + 1])).tolist()
            exact = sum(Fraction(float(a[2][i])) * Fraction(float(b[2][j])) for i, j in inside)
            assert abs(Fraction(float(mass[k])) - exact) <= Fraction(100, 2**53) * exact


@for_each(list(BACKENDS))
def test_sums_beyond_the_edges_count_in_the_bins_at_the_ends(backend):
    loss, mass = np.array([-5.0, 0.0, 5.0]), np.array([0.25, 0.5, 0.25])
    edges = np.array([-1.0, 0.0, 2.0])
    nodes = (loss, loss, mass)
    found, moment, _, _ = BACKENDS[backend].binned_products(*nodes, *nodes, edges, 1)
    assert found.tolist() == [0.3125, 0.6875]
    # A sum that is an edge belongs to the bin above.
    expected = [0.0625 * -9.0 + 0.25 * -4.0, 0.375 * 0.0 + 0.25 * 5.0 + 0.0625 * 10.0]
    assert moment.tolist() == expected


@for_each([1, 2, 8], [(nodes(20, 700), nodes(21, 500)), (nodes(22, 700, step=1.0, far=0.3),) * 2])
def test_the_result_does_not_depend_on_the_threads(threads, pair):
    edges = edges_for(*pair, 200)
    one = _core.binned_products(*pair[0], *pair[1], edges, 1)
    many = _core.binned_products(*pair[0], *pair[1], edges, threads)
    assert all(np.array_equal(x, y) for x, y in zip(one, many, strict=True))


@for_each(list(BACKENDS), [(30, 1, 1.0), (31, 2, 1e-9), (32, 500, 1.0), (33, 4000, 200.0)])
def test_sums_from_each_node_on(backend, case):
    seed, count, spread = case
    loss, _, mass = nodes(seed, count, spread=spread)
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


@for_each(list(BACKENDS), [1e-9, 0.02, 1.0, 300.0])
def test_what_two_measures_have_above_epsilon(backend, spread):
    # From far below all sums to the last of them: no term is lost to another.
    (loss, _, mass), (offset, _, weight) = (nodes(s, 300, spread=spread) for s in (34, 35))
    sums = np.add.outer(offset, loss).ravel()
    masses = np.multiply.outer(weight, mass).ravel().astype(np.longdouble)
    order = np.argsort(sums)[::-7000]
    points = np.concatenate([sums[order], sums.max() * np.array([0.9, 0.9999, 1.0, 2.0])])
    core = BACKENDS[backend]
    found = core.excess_above(loss, *core.suffix_sums(loss, mass), offset, weight, points)
    for point, value in zip(points.tolist(), found.tolist(), strict=True):
        # Distances as the kernel rounds them, one offset at a time.
        left = (point - offset)[:, None]
        above = np.maximum((loss - left).ravel(), 0.0).astype(np.longdouble)
        exact = (masses * -np.expm1(-above)).sum()
        rounding = masses[above > 0.0].sum() * 4.0 * 2.0**-53 * (np.abs(loss).max() + abs(point))
        assert abs(value - exact) <= 1e-12 * exact + rounding
