"""Statistics of long samples, and the mutants that show what each of them would catch.

False alarms: all seeds are fixed, so a run either passes on every machine or on none. Had they been
drawn afresh, one of the at most 250 p-values would fall below ``ALPHA`` with probability 1e-6.
"""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
from scipy import special, stats

from psinoise import _core as native
from psinoise import reference
from psinoise.noise import FAMILIES

ALPHA = 1e-6 / 250

CHUNK = 1 << 22
FINE = 1 << 16  # cells of equal probability for the histogram that most statistics start from
LAGS = (1, 8, 128)  # the next element, the next row of a block, the next group
TAILS = (1e-3, 1e-6, 1e-7)
KEY = bytes(range(100, 132))

twin = importlib.import_module("psinoise.reference.sample")


class Summary:
    """What one pass over the samples collects; the samples themselves are not kept."""

    def __init__(self, law):
        self._law = law
        self.mean_abs = law.mean_abs
        self.deviation = math.sqrt(law.std**2 - law.mean_abs**2)
        self._edges = [float(law.iccdf(p)) for p in TAILS]
        self.count = 0
        self.fine = np.zeros(FINE, dtype=np.int64)
        self.pairs = np.zeros((len(LAGS), 256), dtype=np.int64)
        self.tails = np.zeros((2, len(TAILS)), dtype=np.int64)
        self.deep: list[np.ndarray] = []
        self.negative = 0
        self.magnitude = 0.0

    def add(self, x):
        """Add a chunk of consecutive samples."""
        x = np.asarray(x, dtype=float)
        self.count += x.size
        u = self._law.cdf(x)
        u *= FINE
        cell = np.minimum(u.astype(np.int32), FINE - 1)
        self.fine += np.bincount(cell, minlength=FINE)
        self.negative += int(np.count_nonzero(np.signbit(x)))
        self.magnitude += float(np.abs(x).sum())
        far = x[np.abs(x) > self._edges[0]]
        for k, edge in enumerate(self._edges):
            self.tails[0, k] += np.count_nonzero(far < -edge)
            self.tails[1, k] += np.count_nonzero(far > edge)
        self.deep.append(self._law.ccdf(np.abs(far)) / TAILS[0])
        coarse = (cell >> 12).astype(np.uint8)
        for k, lag in enumerate(LAGS):
            both = (coarse[:-lag] << 4) | coarse[lag:]
            self.pairs[k] += np.bincount(both, minlength=256)


def chi_square(observed):
    """p-value of equal probabilities."""
    expected = observed.sum() / observed.size
    statistic = ((observed - expected) ** 2).sum() / expected
    return float(special.chdtrc(observed.size - 1, statistic))


def binomial_half(successes, count):
    """Two-sided, by the normal approximation: counts here are in the millions."""
    return float(special.erfc(abs(successes - count / 2) / math.sqrt(count / 2)))


def poisson(observed, expected):
    """Two-sided."""
    lower, upper = stats.poisson.cdf(observed, expected), stats.poisson.sf(observed - 1, expected)
    return float(min(1.0, 2.0 * min(lower, upper)))


def chi_square_of_depth(share):
    """p-value of uniforms in (0, 1) in cells of eight to an octave, down to where they get rare.

    Cells in the logarithm resolve the far end, where a tail that is cut or displaced differs.
    """
    last = int(8 * math.log2(share.size / 20))  # about 20 expected beyond
    cell = np.minimum((-8.0 * np.log2(share)).astype(int), last)
    edges = np.append(2.0 ** (-np.arange(last + 1) / 8.0), 0.0)
    expected = -np.diff(edges) * share.size
    observed = np.bincount(cell, minlength=last + 1)
    return float(special.chdtrc(last, ((observed - expected) ** 2 / expected).sum()))


def p_values(summary):
    """All statistics of a summary, by name."""
    n, fine = summary.count, summary.fine
    found = {
        "chi-square of 4096 cells": chi_square(fine.reshape(4096, -1).sum(axis=1)),
        "chi-square of 64 cells": chi_square(fine.reshape(64, -1).sum(axis=1)),
    }
    distance = np.abs(np.cumsum(fine) / n - np.arange(1, FINE + 1) / FINE).max()
    found["Kolmogorov-Smirnov"] = float(special.kolmogorov(distance * math.sqrt(n)))
    found["sign balance"] = binomial_half(summary.negative, n)
    # Cells of equal magnitude: k cells left of the median and k right of it.
    magnitude = fine.reshape(256, -1).sum(axis=1)
    left, right = magnitude[:128][::-1], magnitude[128:]
    statistic = ((left - right) ** 2 / (left + right)).sum()
    found["sign against magnitude"] = float(special.chdtrc(128, statistic))
    for side, counts in zip(("lower", "upper"), summary.tails, strict=True):
        for p, count in zip(TAILS, counts, strict=True):
            found[f"{side} tail {p:g}"] = poisson(int(count), n * p)
    found["depth of the tail"] = chi_square_of_depth(np.concatenate(summary.deep))
    if np.isfinite(summary.deviation):
        error = (summary.magnitude / n - summary.mean_abs) / (summary.deviation / math.sqrt(n))
        found["mean magnitude"] = float(special.erfc(abs(error) / math.sqrt(2.0)))
    for lag, table in zip(LAGS, summary.pairs, strict=True):
        found[f"neighbors at {lag}"] = chi_square(table)
    return found


def draw(table, dtype, count, *, first=0, scale=1.0, core=native):
    """Chunks of the stream of KEY."""
    buffer = np.empty(min(CHUNK, count), dtype=dtype)
    for start in range(0, count, buffer.size):
        size = min(buffer.size, count - start)
        core.sample(table, KEY, first + start, scale, buffer[:size], 2)
        yield buffer[:size]


def summarize(law, chunks):
    summary = Summary(law)
    for chunk in chunks:
        summary.add(chunk)
    return summary


@pytest.mark.deep
@pytest.mark.parametrize(
    ("dtype", "count"), [("float64", 100_000_000), ("float32", 20_000_000)], ids=["f64", "f32"]
)
def test_samples_follow_the_law(law, dtype, count):
    """The real thing: every statistic of 1e8 (2e7) samples above ALPHA."""
    found = p_values(summarize(law, draw(law._table, dtype, count)))
    assert min(found.values()) > ALPHA, found


@pytest.mark.deep
def test_statistics_are_calibrated(law):
    """p-values of independent stretches are neither all small nor all large: each statistic is what
    it says. 40 stretches of 5e5; Kolmogorov's distance of 40 uniforms."""
    values: dict[str, list[float]] = {}
    for part in range(40):
        chunks = draw(law._table, "float64", 500_000, first=2**40 + part * 500_000)
        for name, value in p_values(summarize(law, chunks)).items():
            values.setdefault(name, []).append(value)
    for name, found in values.items():
        if "tail 1e-0" not in name:  # too few events for a continuous distribution
            assert stats.kstest(found, "uniform").pvalue > ALPHA, name


# -- mutants: tables -------------------------------------------------------------------------------


def strip_name(dtype):
    return "wide" if dtype == "float64" else "narrow"


def with_heights(tables, dtype, change):
    name = strip_name(dtype)
    entries, heights, edge, depth = getattr(tables, name)
    return tables._replace(**{name: (entries, change(heights.copy()), edge, depth)})


def wedge_skipped(tables, dtype):
    """Every wedge accepted: heights of -1 lie below any density."""
    return with_heights(tables, dtype, lambda heights: np.full_like(heights, -1.0))


def wedge_refused(tables, dtype):
    return with_heights(tables, dtype, lambda heights: np.full_like(heights, np.inf))


def heights_shifted(tables, dtype):
    """Each strip tested with the heights of its neighbor."""
    return with_heights(tables, dtype, lambda heights: np.append(heights[1:], heights[-1]))


def edge_as_tail(tables, dtype):
    """The tail cut: all of it at the edge of strip 0."""
    rows, *panels = tables.tail_quantile
    cut = np.zeros_like(rows)
    cut[:, 0] = math.log(getattr(tables, strip_name(dtype))[2])
    return tables._replace(tail_quantile=(cut, *panels))


def tail_too_deep(tables, dtype):
    """The tail starts one unit of depth below its edge."""
    name = strip_name(dtype)
    entries, heights, edge, depth = getattr(tables, name)
    return tables._replace(**{name: (entries, heights, edge, depth + 1.0)})


def thresholds_too_high(tables, dtype):
    """Thresholds at the whole width: not conservative, so wedges are accepted unseen."""
    name = strip_name(dtype)
    entries, heights, edge, depth = getattr(tables, name)
    low = entries.dtype.type((1 << (32 if dtype == "float64" else 12)) - 1)
    return tables._replace(**{name: (entries | low, heights, edge, depth)})


# mutant, type, samples, statistic that must reject it. Errors of single strips (two heights
# exchanged, a threshold a unit too high) move 1e-6 of the mass: test_ziggurat sees those.
TABLE_MUTANTS = [
    (wedge_skipped, "float32", 50_000_000, "chi-square of 64 cells"),
    (wedge_refused, "float32", 50_000_000, "chi-square of 64 cells"),
    (wedge_skipped, "float64", 100_000_000, "chi-square of 4096 cells"),
    (heights_shifted, "float32", 50_000_000, "chi-square of 64 cells"),
    (thresholds_too_high, "float32", 50_000_000, "chi-square of 64 cells"),
    (edge_as_tail, "float64", 20_000_000, "depth of the tail"),
    (edge_as_tail, "float32", 20_000_000, "depth of the tail"),
    (edge_as_tail, "float64", 50_000_000, "upper tail 1e-06"),
    (tail_too_deep, "float64", 20_000_000, "depth of the tail"),
]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("mutant", "dtype", "count", "statistic"),
    TABLE_MUTANTS,
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_mutant_tables_are_rejected(tables_of, mutant, dtype, count, statistic):
    law = FAMILIES[0](scale=1.0)
    table = native.LawTable(*mutant(tables_of(FAMILIES[0]), dtype))
    found = p_values(summarize(law, draw(table, dtype, count)))
    assert found[statistic] < ALPHA, found


@pytest.mark.deep
def test_a_scale_off_by_a_thousandth_is_rejected(law):
    # A heavy tail tells less about the scale.
    factor = 1.001 if np.isfinite(law.std) else 1.0015
    found = p_values(summarize(law, draw(law._table, "float64", 100_000_000, scale=factor)))
    assert found.get("mean magnitude", 0.0) < ALPHA  # none where the variance is infinite
    assert found["chi-square of 64 cells"] < ALPHA


# -- mutants: the mapping, in the NumPy twin -------------------------------------------------------


def twin_p_values(tables, dtype="float64", count=2_000_000):
    law = FAMILIES[0](scale=1.0)
    table = reference.LawTable(*tables)
    return p_values(summarize(law, draw(table, dtype, count, core=reference)))


def test_the_twin_itself_is_accepted(tables_of):
    for dtype in ("float64", "float32"):
        assert min(twin_p_values(tables_of(FAMILIES[0]), dtype).values()) > ALPHA


@pytest.mark.parametrize("bit", [63, 10], ids=["top bit of the position", "top bit of the layer"])
def test_a_sign_that_shares_its_bit_is_rejected(monkeypatch, tables_of, bit):
    monkeypatch.setattr(twin._Float64, "sign_bit", bit)
    assert twin_p_values(tables_of(FAMILIES[0]))["sign against magnitude"] < ALPHA


def test_a_sign_that_never_changes_is_rejected(monkeypatch, tables_of):
    monkeypatch.setattr(twin, "_with_sign", lambda form, magnitude, words: magnitude)
    assert twin_p_values(tables_of(FAMILIES[0]))["sign balance"] < ALPHA


@pytest.mark.parametrize("lag", LAGS)
def test_words_shared_between_elements_are_rejected(monkeypatch, tables_of, lag):
    """Element i + lag has the position of element i, for half of the elements."""
    original = twin.first_words

    def shared(key, rounds, first, count, bits):
        words = original(key, rounds, first, count, bits).copy()
        index = np.arange(count)
        source = np.where(index // lag % 2 == 1, index - lag, index)
        return words[source]

    monkeypatch.setattr(twin, "first_words", shared)
    assert twin_p_values(tables_of(FAMILIES[0]))[f"neighbors at {lag}"] < ALPHA


class Inverted:
    """Densities for which ``height < density`` asks the opposite."""

    __array_ufunc__ = None  # arrays leave the comparison to this class

    def __init__(self, values):
        self._values = values

    def __gt__(self, heights):
        return heights > self._values


@pytest.mark.deep
def test_an_inverted_wedge_is_rejected(monkeypatch, tables_of):
    real = reference.LawTable.density
    monkeypatch.setattr(reference.LawTable, "density", lambda self, t: Inverted(real(self, t)))
    found = twin_p_values(tables_of(FAMILIES[0]), "float32", 100_000_000)
    assert found["chi-square of 64 cells"] < ALPHA


# -- low-order bits --------------------------------------------------------------------------------


def exposed_positions(tables, dtype, count):
    """Positions as integers: strips of width 1 that accept everything (see test_sampling)."""
    name, layers = ("wide", 2048) if dtype == "float64" else ("narrow", 1024)
    entries = np.ones(layers, dtype=dtype).view(np.uint64 if dtype == "float64" else np.uint32)
    strips = (entries, np.full(layers + 1, -1.0), np.inf, 0.0)
    table = native.LawTable(*tables._replace(**{name: strips}))
    x = np.concatenate([chunk.copy() for chunk in draw(table, dtype, count)]).astype(float)
    bits = 53 if dtype == "float64" else 22
    return (np.abs(x) * 2.0**bits).astype(np.int64) >> 1, np.signbit(x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_bit_of_the_position_is_uniform(tables_of, dtype):
    """Low bytes, high bytes, and the low byte against sign: kills stuck and reused low bits."""
    k, negative = exposed_positions(tables_of(FAMILIES[0]), dtype, 4_000_000)
    width = 52 if dtype == "float64" else 21
    for shift in (0, 7, 13, width - 8):
        assert chi_square(np.bincount((k >> shift) & 255, minlength=256)) > ALPHA
    joint = np.bincount((k & 127) * 2 + negative, minlength=256)
    assert chi_square(joint) > ALPHA
    # The test of the test: the sign taken from the lowest bit, and a bit that is stuck.
    assert chi_square(np.bincount((k & 127) * 2 + (k & 1), minlength=256)) < ALPHA
    assert chi_square(np.bincount((k & 255) | 1, minlength=256)) < ALPHA
