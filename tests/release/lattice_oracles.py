"""Lattice laws in rational arithmetic, straight from the documented meaning of their integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import psinoise as pn
from psinoise.noise import FAMILIES
from psinoise.release.weights import Weights

KEY = bytes(range(7, 39))

#: Laws and sensitivities, all kinds of tails among them.
MECHANISMS = {
    **{law.__name__: lambda law=law: pn.Mechanism(law(scale=1.0)) for law in FAMILIES},
    "wide Gaussian": lambda: pn.Mechanism(pn.Gaussian(std=37.0), 0.25),
    "Cauchy": lambda: pn.Mechanism(pn.Cauchy(scale=3.0), 2.0),
    "very heavy": lambda: pn.Mechanism(pn.SymmetricStable(alpha=0.4, scale=1.0)),
    "nearly normal": lambda: pn.Mechanism(pn.SymmetricStable(alpha=1.99, scale=1.0)),
    "cactus": lambda: pn.Mechanism(
        pn.Cactus(cells_per_sensitivity=20, cells=160, tail_ratio=0.35), 1.0
    ),
    "uniform": lambda: pn.Mechanism(pn.UniformAtom(delta=0.3, sensitivity=2.0), 2.0),
    "uniform with an atom": lambda: pn.Mechanism(pn.UniformAtom(delta=0.9, power=2)),
    "staircase": lambda: pn.Mechanism(pn.Staircase(epsilon=1.0)),
    "fine staircase": lambda: pn.Mechanism(
        pn.Staircase(epsilon=0.1, sensitivity=0.3, power=2), 0.3
    ),
    "truncated Laplace": lambda: pn.Mechanism(
        pn.TruncatedLaplace(epsilon=1.0, delta=1e-3, sensitivity=0.7), 0.7
    ),
    "discrete Laplace": lambda: pn.Mechanism(pn.DiscreteLaplace(scale=2.5)),
    "wide discrete Laplace": lambda: pn.Mechanism(pn.DiscreteLaplace(scale=300.0), 3.0),
    "discrete stable": lambda: pn.Mechanism(pn.DiscreteStable(alpha=1.6, scale=2.0), 2.0),
}

#: Small laws whose tails are not rare.
SMALL = {
    "bounded": ([2**62, 2**61, 2**60, 2**60], "none", 0, 0),
    "geometric": ([2**61, 2**62, 2**61], "translate", 1, 2**63),
    "periodic": ([2**62, 2**61, 2**60, 2**60], "translate", 2, 2**62),
    "power": ([2**60, *[2**61] * 2, 2**60, *[2**59] * 4], "dilate", 4, 2**62),
    "blocks": ([2**60, 2**61, 2**61, 2**61, 2**59, 2**59], "blocks", 5, 2**62),
    "heavy": ([2**59, 2**60, 2**60, 2**60, *[2**60] * 3, 2**59], "dilate", 4, 5 * 2**61),
}


def made(weights, tail, repeated, ratio, grid=1.0):
    """A lattice law from its integers."""
    listed = np.array(weights, dtype=np.uint64)
    listed[0] += np.uint64(2**63 - sum(listed.tolist()))
    return pn.LatticeNoise._made(grid, Weights(listed, tail, repeated, ratio))


def probability(noise, k):
    """``P(K = k)``, exactly."""
    weights, k = noise.weights.tolist(), abs(k)
    rho, count = Fraction(noise.ratio, 2**64), len(weights)
    start = count - noise.repeated
    if k < start:
        return Fraction(weights[k], 2**63 if k == 0 else 2**64)
    if noise.tail == "none":
        return Fraction(0)
    if noise.tail == "blocks":
        block = 1 + (k - 1) // (2**64 // noise.ratio)
        return Fraction(weights[block], 2**64) * rho if block < count else Fraction(0)
    if noise.tail == "translate":
        i, place = divmod(k - start, noise.repeated)
        return Fraction(weights[start + place], 2**64) * (1 - rho) * rho**i
    i = 0
    while k >> i >= count:
        i += 1
    return Fraction(weights[k >> i], 2**64) * (1 - rho) * (rho / 2) ** i


def beyond(noise, k):
    """``P(|K| >= k)`` for ``k`` where a copy of the tail begins."""
    rho = Fraction(noise.ratio, 2**64)
    if noise.tail == "none":
        return Fraction(0)
    if noise.tail == "blocks":
        end = 1 + noise.repeated * (2**64 // noise.ratio)
        return 2 * sum(probability(noise, j) for j in range(k, end))
    total = Fraction(sum(noise.weights[-noise.repeated :].tolist()), 2**63)
    start, i = noise.weights.size - noise.repeated, 0
    while start < k:
        start = start + noise.repeated if noise.tail == "translate" else 2 * start
        i += 1
    assert start == k
    return total * rho**i
