"""Samples of the laws that are made for a target."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import psinoise as pn
from designed_members import MEMBERS
from refusals import for_rows, refused

# Small cactus laws are quick, not good.
pytestmark = pytest.mark.filterwarnings("ignore:the divergence of:UserWarning")


@pytest.fixture(params=MEMBERS)
def law(request):
    """Each member in turn."""
    return MEMBERS[request.param]()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_samples_follow_the_law(law, dtype):
    """Chi-square on cells of equal probability, the outermost of 1e-4; false alarms 1e-6.

    Kills: an alias off by one, a sign that follows the position, a tail that ends.
    """
    count = 1_000_000
    x = law.sample(count, rng=2718, dtype=dtype)
    assert x.dtype == np.dtype(dtype)
    assert np.isfinite(x).all()
    inner = np.concatenate([[1e-4, 1e-3], np.linspace(0.01, 0.99, 99), [1 - 1e-3, 1 - 1e-4]])
    edges = np.unique(law.icdf(inner))
    if law.for_whole_numbers:
        assert (x == np.rint(x)).all()
        edges = edges + 0.5
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * count
    found = np.bincount(np.searchsorted(edges, x, side="left"), minlength=edges.size + 1)
    keep = expected > 10.0
    statistic = np.sum((found[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-6
    # The sign says nothing about the size.
    right = np.abs(x[x > 0.0])
    assert abs(right.size - (x < 0.0).sum()) <= 5.0 * math.sqrt(count)
    shift = right.mean() - np.abs(x[x < 0.0]).mean()
    assert abs(shift) <= 5.0 * 2.0 * law.std / math.sqrt(count)


LONG = {
    "cactus": lambda: pn.Cactus(mean_cost=0.25, cells_per_sensitivity=50, cells=400),
    "uniform with an atom": lambda: pn.UniformAtom(delta=0.7, sensitivity=2.0),
    "staircase": lambda: pn.Staircase(epsilon=0.3, power=2),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", LONG)
def test_cells_and_tails_of_many_samples(name):
    """1e8 draws against the masses of all cells and of copies in the tail, and uniform within.

    Kills: masses that are off by 1e-4 of themselves, a tail whose ratio is off by 1e-3.
    """
    law = LONG[name]()
    cells = law.partition
    edges, masses = cells.edges * law.scale, cells.masses
    if cells.repeated:
        copies = np.arange(1.0, 60.0)[:, None]
        move = copies * cells.period * law.scale
        edges = np.append(edges, edges[-cells.repeated :] + move)
        masses = np.append(masses, masses[-cells.repeated :] * np.exp(-cells.rate * copies))
    middle = 0.5 * (edges[1:] + edges[:-1])
    counts, atom, halves, positive = np.zeros(edges.size + 1), 0, 0, 0
    total, chunk = 100_000_000, 4_000_000
    for k in range(total // chunk):
        x = law.sample(chunk, rng=[31, k])
        positive += int((x > 0.0).sum())
        size = np.abs(x)
        atom += int((size == 0.0).sum())
        size = size[size > 0.0]
        cell = np.searchsorted(edges, size)
        counts += np.bincount(cell, minlength=counts.size)
        inside = cell < edges.size
        halves += int((size[inside] > middle[cell[inside] - 1]).sum())
    found, expected = counts[1:-1], masses * total
    keep = expected > 10.0
    statistic = np.sum((found[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum()) > 1e-6
    spread = math.sqrt(total)
    assert abs(atom - law.atom * total) <= 5.0 * spread
    assert abs(2 * positive - (total - atom)) <= 5.0 * spread
    # As often in the upper half of a cell as in the lower one.
    assert abs(2 * halves - found.sum()) <= 5.0 * spread
    beyond = (1.0 - law.atom - masses.sum()) * total
    assert abs(counts[-1] - beyond) <= 5.0 * math.sqrt(beyond + 1.0) + 1.0


def test_the_tail_of_a_cactus_has_no_end():
    """Copies of the last cell, geometric: counts of 20 of them against their probabilities."""
    law = MEMBERS["cactus that is mostly tail"]()
    x = np.abs(law.sample(2_000_000, rng=5))
    number = np.ceil(2.0 * x - 0.5)
    masses = 2.0 * law.masses[-1] * 0.8 ** np.arange(200.0)
    expected = masses * x.size
    found = np.array([(number == 3 + k).sum() for k in range(200)])
    keep = expected > 10.0
    assert keep.sum() > 20
    statistic = np.sum((found[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum()) > 1e-6
    # Uniform in its cell.
    place = (2.0 * x[number > 0] + 0.5) % 1.0
    assert stats.kstest(place[:100_000], "uniform").pvalue > 1e-6


def test_sampling_arguments(law):
    flat = law.sample(1000, rng=1)
    np.testing.assert_array_equal(law.sample((10, 100), rng=1).ravel(), flat)
    np.testing.assert_array_equal(law.sample(1000, rng=1, threads=2), flat)
    out = np.empty(1000)
    assert law.sample(rng=1, out=out) is out
    np.testing.assert_array_equal(out, flat)
    assert isinstance(law.sample(rng=1), float)
    assert law.sample(rng=1) == flat[0]
    assert law.sample(0, rng=1).shape == (0,)
    with pytest.raises(TypeError, match="dtype must be float64 or float32"):
        law.sample(3, dtype=int)
    long = law.sample(200_003, rng=2, threads=1)
    np.testing.assert_array_equal(law.sample(200_003, rng=2, threads=3), long)


@pytest.mark.deep
def test_samples_are_the_same_bytes_on_every_machine(run_python):
    """Not those of a cactus, whose masses are solved for: the kernel is covered by test_cells."""
    code = """
import hashlib
import psinoise as pn
found = hashlib.sha256()
for law in (
    pn.UniformAtom(delta=0.3), pn.UniformAtom(delta=0.9, power=2), pn.Staircase(epsilon=1.0),
    pn.Staircase(epsilon=0.1, power=2), pn.TruncatedLaplace(epsilon=0.3, delta=1e-5),
    pn.DiscreteLaplace(scale=7.3),
):
    for dtype in ("float64", "float32"):
        found.update(law.sample(50_003, rng=2024, dtype=dtype).tobytes())
print(found.hexdigest())
"""
    expected = "a2d9039c771bf7a4e49fd465c21114fd6de07efb4dce5d80e360877aa520eeae\n"
    for level in pn.build_config()["isa_available"]:
        assert run_python(code, PSINOISE_ISA=level) == expected
    assert run_python(code, PSINOISE_BACKEND="reference") == expected


WIDER, FINER = "dtype must be wider", "dtype must be float64"


@for_rows(
    [
        (pn.Staircase(epsilon=1.0, sensitivity=1.7e308), "f8", WIDER),
        (pn.Staircase(epsilon=1e-300, sensitivity=1e10), "f8", WIDER),
        (pn.Staircase(epsilon=1e-5, sensitivity=1e36), "f4", WIDER),
        (pn.UniformAtom(delta=1e-300), "f4", WIDER),
        (pn.Staircase(epsilon=600.0), "f4", FINER),
        (pn.Staircase(epsilon=176.0), "f4", FINER),
        (pn.Staircase(epsilon=300.0, power=2), "f4", FINER),
        (pn.UniformAtom(delta=0.3, power=1e3, sensitivity=1.2e-38), "f4", FINER),
        (pn.TruncatedLaplace(epsilon=1e-20, delta=0.4, sensitivity=1e-57), "f4", FINER),
    ]
)
def test_samples_that_their_type_does_not_hold_are_refused(law, dtype, message):
    """Whatever the scale is: draws may be far from it."""
    refused(pn.DomainError, message, law.sample, 5, rng=1, dtype=dtype)
    if dtype == "f4":
        assert np.isfinite(law.sample(1000, rng=1)).all()


@for_rows(
    [
        (pn.Staircase(epsilon=170.0), "f4"),
        (pn.Staircase(epsilon=1e-30), "f4"),
        (pn.UniformAtom(delta=0.99999, sensitivity=1e-37), "f4"),
        (pn.UniformAtom(delta=0.5, sensitivity=1.7e308), "f8"),
        (pn.TruncatedLaplace(epsilon=1.0, delta=1e-300, sensitivity=1e36), "f4"),
        (pn.TruncatedLaplace(epsilon=1.0, delta=0.4, sensitivity=1e308), "f8"),
        # Of a scale of 1.7e308, where Laplace draws are infinite, whose remainder is no number.
        (pn.TruncatedLaplace(epsilon=1e-300, delta=0.4, sensitivity=1.7e8), "f8"),
    ]
)
def test_samples_next_to_the_limits_of_their_type(law, dtype):
    x = law.sample(100_000, rng=1, dtype=dtype).astype(np.float64)
    assert np.isfinite(x).all()
    outside = np.count_nonzero(np.abs(x) > law.iccdf(0.05 * (1.0 - getattr(law, "atom", 0.0))))
    expected = 0.1 * x.size * (1.0 - getattr(law, "atom", 0.0))
    assert abs(outside - expected) < 5.0 * math.sqrt(expected) + 5.0


def test_noise_below_all_numbers_is_refused():
    """Kills: draws that are all 0, as the inner step of this staircase is 1e-330."""
    with pytest.raises(pn.DomainError, match="sensitivity must be larger"):
        pn.Staircase(epsilon=600.0, sensitivity=3e-200).sample(5)
    assert np.all(pn.Staircase(epsilon=600.0, sensitivity=3e-170).sample(5, rng=1))
