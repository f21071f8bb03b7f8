"""Laws on the whole numbers in blocks: sums over blocks, and delta, against sums over all numbers.

Masses one by one are right to 1e-13 (``tests/test_discrete_stable.py``, against mpmath).
"""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath as mp
import numpy as np

import psinoise as pn
from psinoise.accounting.loss.blocks import _edges, _runs
from refusals import for_each, for_rows


def log_sums(log_mass, first, last):
    """Over each of some blocks, in a row."""
    starts = np.append(first, last[-1] + 1.0) - first[0]
    parts = [log_mass[int(a) : int(b)] for a, b in pairwise(starts)]
    peaks = [part.max() for part in parts]
    sums = [math.fsum(np.exp(part - peak)) for part, peak in zip(parts, peaks, strict=True)]
    return np.array(peaks) + np.log(sums)


@for_rows(
    (alpha, scale, shift, length)
    for alpha, scale, shift in [
        (1.99, 129.0, 10.0),
        (1.999, 300.0, 3000.0),
        (1.9999999, 300.0, 10.0),
        (1.9999999999999, 400.0, 400.0),
        (2.0, 600.0, 10.0),
        (1.5, 300.0, 10.0),
        (0.5, 1e4, 1.0),
    ]
    for length in (2.0**-8, 2.0**-6)
)
def test_masses_of_blocks_are_those_of_their_numbers(alpha, scale, shift, length):
    """To what they count as off. Kills: rules whose error is not counted, 1e-9 and 1e-6 between the
    peak and the tail of a nearly normal law."""
    law = pn.DiscreteStable(alpha=alpha, scale=scale)
    first, last = _edges(law, shift, math.floor(0.5 * shift) + 1.0, length)
    # The numbers after the last single one, to where each block has some hundreds.
    start = int(np.flatnonzero(first == last)[-1]) + 1 if (first == last).any() else 0
    used = slice(start, int(np.searchsorted(last, 40.0 * scale + shift)))
    first, last = first[used], last[used]
    moved, base, low, high, off = _runs(law, shift, first, last)
    k = np.arange(first[0], last[-1] + 1.0)
    logs = law.logpmf(np.abs(k - shift)), law.logpmf(k)
    for found, log_mass in zip((moved, base), logs, strict=True):
        assert (np.abs(found - log_sums(log_mass, first, last)) <= off + 2.5e-13).all()
    assert off.max() <= (1e-9 if length == 2.0**-8 else 2e-6)
    # Losses of all numbers are between the ends of those of their block.
    block = np.repeat(np.arange(first.size), (last - first + 1.0).astype(int))
    loss = logs[0] - logs[1]
    assert (low[block] <= loss + 1e-13).all()
    assert (loss - 1e-13 <= high[block]).all()


@for_each([1.99, 1.999, 1.9999999], [0.3, 0.5, 0.7, 0.9, 0.95])
def test_delta_is_that_of_all_numbers(alpha, share):
    """Kills: masses of blocks that are off by more than the ends of a bracket."""
    law, shift = pn.DiscreteStable(alpha=alpha, scale=129.0), 10
    k = np.arange(0.0, 400_000.0)
    moved, base = law.logpmf(np.abs(k - shift)), law.logpmf(k)
    loss = moved - base
    epsilon = share * float(loss.max())
    above = loss > epsilon
    exact = math.fsum(np.exp(moved[above]) * -np.expm1(epsilon - loss[above]))
    found = pn.Mechanism(law, shift).delta(epsilon)
    assert found.lower <= exact <= found.upper
    assert found.width <= 2e-3 * found.upper


@for_each([0.1, 0.2, 0.30133928571428575])
def test_delta_of_the_skellam_law(epsilon):
    """Against 40 digits, by the recurrence of Bessel functions, which is stable downwards. Kills:
    losses without the rounding of masses: 1e-9 of delta, as losses of neighbors differ by 1e-4."""
    with mp.workdps(40):
        x, most = 2 * mp.mpf(64) ** 2, 3200
        masses = [mp.exp(-x) * mp.besseli(k, x) for k in (most, most - 1)]
        for k in range(most - 1, 0, -1):
            masses.append(masses[-2] + 2 * k / x * masses[-1])
        growth = mp.exp(epsilon)
        terms = [near - growth * here for here, near in pairwise(masses)]
        exact = mp.fsum(term for term in terms if term > 0)
        found = pn.Mechanism(pn.DiscreteStable(alpha=2.0, scale=64.0), 1).delta(epsilon)
        assert found.lower <= exact <= found.upper
        assert found.width <= 1e-8 * found.upper
