"""Uniform noise that is too wide for a list of integers: it is in blocks of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from lattice_oracles import KEY, SMALL, made, probability
from scipy import stats

import psinoise as pn
from psinoise.release.weights import Weights, is_unimodal
from psinoise.testing import integers


def lattices():
    for delta in (3e-7, 1e-7, 1e-8, 0.3e-8):
        yield pn.Mechanism(pn.UniformAtom(delta=delta))
    yield pn.Mechanism(pn.UniformAtom(delta=1e-7, sensitivity=0.3), 0.3)
    yield pn.Mechanism(pn.UniformAtom(delta=1e-7, sensitivity=1.0), 2.5)


@pytest.mark.parametrize("mechanism", list(lattices()), ids=repr)
def test_it_costs_no_more_than_its_law(mechanism):
    """One use at epsilon 0 is the probability of the center, exactly; and the law's is a quotient.

    Kills: noise that is not wider, blocks that begin at a half of what they should.
    """
    noise = mechanism.on_lattice().noise
    assert noise.tail == "blocks"
    assert noise.unimodal
    law = mechanism.noise
    ideal = Fraction(mechanism.sensitivity) / Fraction(law.half_width) / 2
    cells = round(mechanism.sensitivity / noise.grid)
    center = sum(probability(noise, k) for k in range(-(cells // 2), cells - cells // 2))
    assert ideal * Fraction(99999, 100000) < center < ideal
    # The accountant's rounding, some 1e-14 of delta, is more than 2**-18 of a smaller one.
    for count, rate in ((1, 1.0), (3, 1.0), (100, 0.01)) if ideal > 3e-8 else ():
        delta = mechanism.on_lattice().delta(0.0, count, sampling_rate=rate)
        assert delta.upper <= mechanism.delta(0.0, count, sampling_rate=rate).upper


def test_its_integers_are_equally_likely_but_for_the_edge():
    noise = pn.Mechanism(pn.UniformAtom(delta=1e-7)).on_lattice().noise
    width, blocks = 2**64 // noise.ratio, noise.repeated
    last_full = 1 + (blocks - 1) * width
    k = np.array([0, 1, 2, 1000, width, width + 1, last_full - 1])
    np.testing.assert_allclose(noise.pmf(k), 1e-7, rtol=1e-5)
    assert noise.pmf(last_full) < 1e-7
    assert noise.pmf(1 + blocks * width) == 0.0
    assert noise.std == pytest.approx(1e7 / math.sqrt(12.0), rel=1e-5)
    assert noise.mean_abs == pytest.approx(0.25e7, rel=1e-5)
    assert pn.LatticeNoise.from_json(noise.to_json()) == noise


def test_an_atom_and_a_fine_grid():
    """The atom is the first weight; the shift is many blocks."""
    law = pn.UniformAtom(delta=0.9, power=2)
    lattice = pn.Mechanism(law).on_lattice(grid=2.0**-21)
    noise = lattice.noise
    assert noise.tail == "blocks"
    assert noise.pmf(0) == pytest.approx(law.atom, rel=1e-5)
    assert lattice.cells > 2**64 // noise.ratio
    assert 0.9 * (1 - 1e-5) < lattice.delta(0.0).lower <= lattice.delta(0.0).upper < 0.9


@pytest.mark.parametrize("name", ["blocks", "wide"])
def test_draws_are_uniform_in_blocks(name):
    """By sixteenths of all integers, and by the place in a block; with a fixed key.

    Kills: low bits of a word that has been used, a block that begins one integer too late.
    """
    wide = pn.Mechanism(pn.UniformAtom(delta=1e-7)).on_lattice().noise
    noise = made(*SMALL["blocks"]) if name == "blocks" else wide
    width, drawn = 2**64 // noise.ratio, np.abs(integers(noise, 1 << 20, KEY))
    inside = drawn[drawn > 0] - 1
    assert stats.chisquare(np.bincount(inside % width, minlength=width)).pvalue > 1e-4
    shares = noise.weights[1:] / noise.weights[1:].sum(dtype=float)
    seen = np.bincount(inside // width, minlength=noise.repeated)
    if name == "wide":
        groups = np.arange(noise.repeated) * 16 // noise.repeated
        seen, shares = np.bincount(groups, seen), np.bincount(groups, shares)
    assert stats.chisquare(seen, shares * seen.sum()).pvalue > 1e-4


def test_is_unimodal_sees_the_center_and_every_block():
    good = Weights(np.array([2**61, 2**62, 2**62, 2**61], np.uint64), "blocks", 3, 2**64 // 2)
    assert is_unimodal(good._replace(ratio=2**62))
    for place, change in ((1, 2**63), (2, 1), (3, 2**61 + 1)):
        listed = good.listed.copy()
        listed[place] += np.uint64(change)
        assert not is_unimodal(good._replace(listed=listed)), place


def test_what_is_not_level_is_refused_as_before():
    law = pn.TruncatedLaplace(epsilon=1e-7, delta=1e-9)
    with pytest.raises(pn.DomainError, match="noise must be narrower"):
        pn.Mechanism(law).on_lattice()
    with pytest.raises(pn.DomainError, match="noise must be narrower"):
        pn.Mechanism(pn.UniformAtom(delta=1e-14)).on_lattice()


@pytest.mark.parametrize(("repeated", "ratio"), [(2, 2**62), (5, 2**62 + 1), (5, 2**21)])
def test_text_with_other_blocks_is_refused(repeated, ratio):
    listed, tail, *_ = SMALL["blocks"]
    with pytest.raises(pn.DomainError, match="repeated must be all"):
        pn.LatticeNoise.from_json(made(listed, tail, repeated, ratio).to_json())
