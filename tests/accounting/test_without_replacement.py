"""Batches of fixed size under "replace": what bounds them from above.

Mutants that these tests kill: the pair of Poisson sampling for both orders, ``q`` for ``1/q``, the
mirror image forgotten, what is left at 0 forgotten.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import psinoise as pn
from psinoise.sampling import WithoutReplacement


@pytest.mark.parametrize(("batch", "population"), [(1, 100), (1, 2), (99, 100)])
@pytest.mark.parametrize("law", [pn.Gaussian(std=4.0), pn.Laplace(scale=3.0), pn.Cauchy(scale=3.0)])
def test_one_use_is_the_theorem(law, batch, population):
    mechanism = pn.Mechanism(law, sensitivity=2.0)
    sampling, q = WithoutReplacement(batch, population), batch / population
    for epsilon in (0.0, 0.01, 0.1, 0.3):
        inner = mechanism.delta(math.log1p(math.expm1(epsilon) / q), adjacency="replace").upper
        found = mechanism.delta(epsilon, adjacency="replace", sampling=sampling)
        assert found.lower == 0.0
        assert q * inner * (1.0 - 1e-9) <= found.upper <= q * inner * (1.0 + 1e-4) + 1e-300


def outputs(law, records, batch, x):
    """Density of the noisy sum of a batch."""
    sums = [sum(chosen) for chosen in itertools.combinations(records, batch)]
    return np.mean([np.exp(law.logpdf(x - total)) for total in sums], axis=0)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("others", [(1.0, 1.0), (-1.0, -1.0), (1.0, -1.0), (0.0, 1.0)])
@pytest.mark.parametrize("uses", [1, 2])
def test_nothing_reveals_more(batch, others, uses):
    law = pn.Gaussian(std=1.0)
    mechanism = pn.Mechanism(law, sensitivity=2.0)
    sampling = WithoutReplacement(batch, 3)
    edges = np.linspace(-14.0, 14.0, 141)
    nodes, weights = np.polynomial.legendre.leggauss(5)
    half = 0.5 * np.diff(edges)[:, None]
    x = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    weight = (half * weights).ravel()
    p, q = (weight * outputs(law, (mine, *others), batch, x) for mine in (1.0, -1.0))
    if uses == 2:
        p, q = (np.outer(part, part).ravel() for part in (p, q))
    for epsilon in (0.0, 0.5, 1.5):
        found = mechanism.delta(epsilon, uses, adjacency="replace", sampling=sampling)
        for a, b in ((p, q), (q, p)):
            assert np.maximum(a - math.exp(epsilon) * b, 0.0).sum() <= found.upper * (1.0 + 1e-3)


def test_composition_is_above_poisson_sampling_and_below_none():
    mechanism = pn.Mechanism(pn.Gaussian(std=4.0), 2.0, contribution=1.0)
    found = mechanism.epsilon(
        1e-6, 100, adjacency="replace", sampling=WithoutReplacement(100, 10_000)
    )
    assert found.upper > mechanism.epsilon(1e-6, 100, 0.01, "replace").upper
    assert found.upper < 0.1 * mechanism.epsilon(1e-6, 100, adjacency="replace").lower
    whole = mechanism.epsilon(1e-6, 100, adjacency="replace", sampling=WithoutReplacement(7, 7))
    assert whole == mechanism.epsilon(1e-6, 100, adjacency="replace")


def test_infinite_losses_keep_their_share():
    mechanism = pn.Mechanism(pn.TruncatedLaplace(epsilon=1.0, delta=1e-3))
    sampling = WithoutReplacement(1, 10)
    least = mechanism.delta(20.0, adjacency="replace").upper
    found = mechanism.delta(20.0, 5, adjacency="replace", sampling=sampling)
    assert found.upper == pytest.approx(1.0 - (1.0 - 0.1 * least) ** 5, rel=1e-6)


def test_refusals():
    mechanism, sampling = pn.Mechanism(pn.Laplace(scale=1.0)), WithoutReplacement(1, 10)
    for adjacency in ("add-remove", "remove", "add"):
        with pytest.raises(pn.DomainError, match="adjacency must be 'replace'"):
            mechanism.epsilon(1e-5, adjacency=adjacency, sampling=sampling)
    with pytest.raises(pn.DomainError, match="vector"):
        pn.Mechanism(pn.Laplace(scale=1.0), dimension=3).epsilon(
            1e-5, adjacency="replace", sampling=sampling
        )
    for arguments in ((0, 10), (11, 10), (1, 0)):
        with pytest.raises(pn.DomainError):
            WithoutReplacement(*arguments)
