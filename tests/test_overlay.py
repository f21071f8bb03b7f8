"""Laws in cells beside themselves, shifted: nothing thin is lost, and nothing thin is made up."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psinoise as pn
from psinoise.noise._cells import Cells
from psinoise.noise._overlay import lattice_overlay, lattice_shifts, overlay

TINY = [1e-15, 1e-17, 2.5e-16, 1e-30, 1e-100, 1e-290]
ULPS = 4.0 * 2.0**-52
CACTUS = {"mean_cost": 0.25, "cells_per_sensitivity": 6, "cells": 48, "tail_ratio": 0.5}


def infinite(pieces):
    shifted, base = pieces
    return math.fsum(shifted[base == 0.0].tolist())


# -- slivers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", TINY)
@pytest.mark.parametrize("sensitivity", [1.0, 1e-9, 1e9, 0.3, 1.0 / 3.0, math.pi])
def test_the_end_of_a_wide_uniform_law(delta, sensitivity):
    """Kills: edges merged for being close against the farthest one, whence delta(0) = 0."""
    law = pn.UniformAtom(delta=delta, sensitivity=sensitivity)
    assert infinite(law.pieces(sensitivity)) == pytest.approx(delta, rel=ULPS, abs=0.0)
    found = pn.Mechanism(law, sensitivity).delta(0.0)
    assert delta * (1.0 - 1e-12) <= found.upper
    assert found.lower <= delta * (1.0 + 1e-12)
    assert found.upper <= delta * (1.0 + 1e-12)


@pytest.mark.parametrize("delta", [1e-15, 1e-17, 1e-290])
def test_many_uses_of_a_wide_uniform_law(delta):
    """Kills: the same, composed: 1,000 times nothing is nothing."""
    exact = -math.expm1(1000.0 * math.log1p(-delta))
    found = pn.Mechanism(pn.UniformAtom(delta=delta)).delta(1.0, 1000)
    assert found.upper == pytest.approx(exact, rel=1e-11, abs=0.0)
    assert found.lower == pytest.approx(exact, rel=1e-11, abs=0.0)


@pytest.mark.parametrize("shift", [1e-300, 1e-18, 0.3 * 2.0**-50])
def test_a_shift_that_is_nothing_beside_the_law(shift):
    """What a thin piece weighs is its width over that of the cell, whatever its place."""
    law = pn.UniformAtom(delta=0.25)
    width = Fraction(shift) / (2 * Fraction(law.half_width))
    assert infinite(law.pieces(shift)) == pytest.approx(float(width), rel=ULPS, abs=0.0)


# -- edges that meet -------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-18, 1e-10, 1e-3, 1.0, 50.0, 700.0])
@pytest.mark.parametrize("sensitivity", [1.0, 1e-9, 1e9, 0.3, 1.0 / 3.0, math.pi])
def test_a_staircase_at_its_sensitivity_has_no_slivers(epsilon, sensitivity):
    """Two losses beside 0, and both are epsilon. Kills: a shift that is rounded before edges are
    compared, whence cells meet that do not and the largest loss is twice epsilon."""
    law = pn.Staircase(epsilon=epsilon, sensitivity=sensitivity)
    for count in (1, 2):
        shift = count * sensitivity
        losses = law.piece_losses(shift)
        steps = np.abs(losses) / epsilon
        assert np.max(steps) == pytest.approx(count, rel=1e-15)
        assert np.max(np.abs(steps - np.rint(steps))) <= 1e-15
        shifted, base = law.pieces(shift)
        assert math.fsum(shifted.tolist()) == pytest.approx(1.0, rel=1e-14)
        ratio = np.where(losses < 700.0, np.exp(np.minimum(losses, 700.0)) * base, shifted)
        assert shifted == pytest.approx(ratio, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("sensitivity", [1.0, 0.3, 1.0 / 3.0, math.pi, 1e-9, 1e9])
@pytest.mark.parametrize("cells", [20, 6, 7])
def test_a_cactus_at_multiples_of_its_cells_has_whole_cells(sensitivity, cells):
    """Kills: edges compared as floats, of which ``k / 20 + 1`` is not ``(k + 20) / 20``."""
    arguments = {**CACTUS, "cells_per_sensitivity": cells, "cost": 2.0}
    arguments["mean_cost"] = 0.25 * sensitivity**2
    law = pn.Cactus(sensitivity=sensitivity, **arguments)
    shifts = law.worst_shifts(sensitivity)
    assert len(shifts) == cells
    assert shifts[-1] == sensitivity
    for m, shift in enumerate(shifts, start=1):
        shifted, base = law.pieces(shift)
        whole = {0.5 * float(w) if 2 * k == m else float(w) for k, w in enumerate(law.masses)}
        # All but the ends, which add up what follows, are probabilities of whole cells.
        strange = [p for p in base.tolist() if min(abs(p / w - 1.0) for w in whole) > 1e-12]
        assert len(strange) <= 2 * (m + 1)
        assert min(base.min(), shifted.min()) >= 0.9 * law.masses.min() * 0.5 ** (m + 1)


@pytest.mark.parametrize("shift", [0.3, 1.0 / 3.0, math.pi / 10.0, 1e-9, 0.5 + 2.0**-52, 0.999])
def test_a_cactus_between_multiples_is_the_mixture_of_both(shift):
    """By the lemma every profile is affine between them. Kills: parts of cells exchanged."""
    law = pn.Cactus(**CACTUS)
    place = Fraction(shift) * 6
    below, part = place // 1, float(place - place // 1)

    def profile(cells, level):
        if cells == 0:
            return max(0.0, 1.0 - math.exp(level))
        shifted, base, _ = lattice_overlay(law.partition, cells)
        return math.fsum(np.maximum(shifted - math.exp(level) * base, 0.0).tolist())

    for level in (0.0, 0.03, 0.2, 0.7, 2.0):
        mixed = (1.0 - part) * profile(below, level) + part * profile(below + 1, level)
        assert profile(place, level) == pytest.approx(mixed, rel=1e-13, abs=1e-16)
    shifted, base = law.pieces(shift)
    assert math.fsum(shifted.tolist()) == pytest.approx(1.0, rel=1e-15)
    assert math.fsum(base.tolist()) == pytest.approx(1.0, rel=1e-15)


# -- against exact rational arithmetic -------------------------------------------------------------


def exact_profile(cells, shift, gamma, copies):
    """``sum (T p - gamma p)^+`` over pieces, the tail cut after some copies."""
    edges = [Fraction(edge) for edge in cells.edges.tolist()]
    masses = [Fraction(mass) for mass in cells.masses.tolist()]
    if cells.repeated:
        period, n = edges[-1] - edges[-1 - cells.repeated], cells.repeated
        block, weights = edges[-n:], masses[-n:]
        for k in range(1, copies + 1):
            edges += [edge + k * period for edge in block]
            fall = Fraction(math.exp(-cells.rate * k))
            masses += [mass * fall for mass in weights]

    def density(x):
        for left, right, mass in zip(edges[:-1], edges[1:], masses, strict=True):
            if left < abs(x) < right:
                return mass / (2 * (right - left))
        return Fraction(0)

    both = {*edges, *(-edge for edge in edges)}
    cuts = sorted(both | {edge + shift for edge in both})
    total, none = Fraction(0), Fraction(0)
    for left, right in itertools.pairwise(cuts):
        middle, width = (left + right) / 2, right - left
        moved, own = density(middle - shift), density(middle)
        total += width * max(moved - Fraction(gamma) * own, 0)
        none += width * moved if own == 0 else 0
    return float(total), float(none)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([2.0**-60, 0.1, 1.0 / 3.0, 0.5, 1.0, 7.0]), min_size=1, max_size=4),
    st.sampled_from([0.1, 0.3, 1.0 / 3.0, 0.5, 1.0, 1.0 + 2.0**-52, 2.0**-70, 2.9]),
    st.booleans(),
    st.sampled_from([1.0, 0.5, 1.7, 4.0]),
)
def test_profiles_in_exact_arithmetic(widths, shift, endless, gamma):
    """Kills: slivers of 2**-60 dropped; a piece read from the neighboring cell; the copies beyond
    the end counted once."""
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    if not (np.diff(edges) > 0.0).all():
        return
    masses, rate = np.arange(1.0, edges.size), math.log(8.0)
    masses /= masses.sum() / (7.0 / 8.0 if endless else 1.0)
    if endless:
        cells = Cells(edges, masses, repeated=len(widths), rate=rate, complement=7.0 / 8.0)
        if shift / cells.period > 6.0:
            return
    else:
        cells = Cells(edges, masses)
    shifted, base, losses = overlay(cells, Fraction(shift))
    found = math.fsum(np.maximum(shifted - gamma * base, 0.0).tolist())
    exact, none = exact_profile(cells, Fraction(shift), gamma, 14)
    assert found == pytest.approx(exact, rel=1e-11, abs=1e-12 if endless else 1e-16)
    if not endless:
        assert infinite((shifted, base)) == pytest.approx(none, rel=1e-14, abs=0.0)
    both = (shifted > 0.0) & (base > 0.0)
    assert losses[both] == pytest.approx(np.log(shifted[both] / base[both]), rel=1e-13, abs=1e-14)
    assert (np.isinf(losses) | (losses == 0.0))[~both].all()


# -- losses and shifts -----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-300, 1e-18, 1e-10, 1.0])
def test_losses_below_rounding_are_known(epsilon):
    """Kills: a difference of logarithms of probabilities, which is 0 or rounding."""
    law = pn.Staircase(epsilon=epsilon)
    losses = law.piece_losses(1.0)
    assert set(np.abs(losses).tolist()) <= {0.0, epsilon}
    shifted, base = law.pieces(1.0)
    found = math.fsum((np.maximum(-np.expm1(-losses), 0.0) * shifted).tolist())
    with mpmath.workdps(400):
        e, gamma = mpmath.mpf(epsilon), mpmath.mpf(law.gamma)
        b = mpmath.exp(-e)
        # The loss is epsilon from where the first step of the moved law begins.
        inner = (1 - b) / (2 * (gamma + b * (1 - gamma)))  # density of that step
        exact = (1 - b) * (mpmath.mpf("0.5") + inner * gamma)
    assert found == pytest.approx(float(exact), rel=1e-12, abs=0.0)
    assert base.size == shifted.size == losses.size


@pytest.mark.parametrize("scale", [2.0, 2.0**40, 0.3])
def test_losses_of_discrete_laplace_noise(scale):
    law = pn.DiscreteLaplace(scale=scale)
    for shift in (1.0, 2.0, 5.0):
        shifted, base = law.pieces(shift)
        losses = law.piece_losses(shift)
        assert shifted == pytest.approx(np.exp(losses) * base, rel=1e-13)
        assert losses.max() == shift / scale


@pytest.mark.parametrize(
    ("unit", "cells", "sensitivity"),
    [
        (0.3, 20, 0.9),
        (0.3, 6, 0.1),
        (1.0, 10, 0.7),
        (1.0, 6, 1.0 / 3.0),
        (math.pi, 7, 3.0 * math.pi),
    ],
)
def test_shifts_that_are_multiples_but_for_rounding(unit, cells, sensitivity):
    """Whatever side rounding is on, all multiples up to the sensitivity are listed, and a shift at
    least as long ends the list. Kills: a tolerance that takes a longer shift for a multiple."""
    step = 1.0 / cells * unit
    exact = Fraction(sensitivity) / Fraction(unit) * cells
    found = lattice_shifts(step, sensitivity, exact)
    assert [round(shift / step) for shift in found[: math.floor(exact)]] == list(
        range(1, math.floor(exact) + 1)
    )
    assert sensitivity <= found[-1] <= math.nextafter(sensitivity, math.inf) * (1.0 + 2.0**-52)
    assert len(set(found)) == len(found)
    assert len(found) == math.ceil(exact)


@pytest.mark.parametrize("epsilon", [1e-18, 1e-12, 1e-3, 1.0, 50.0])
def test_a_staircase_is_private_at_its_epsilon(epsilon):
    """Kills: losses that are differences of logarithms: delta(0) = 0 at 1e-18."""
    law = pn.Staircase(epsilon=epsilon)
    mechanism = pn.Mechanism(law)
    assert mechanism.pure_epsilon() == epsilon
    losses = law.piece_losses(1.0)
    exact = math.fsum((np.maximum(-np.expm1(-losses), 0.0) * law.pieces(1.0)[0]).tolist())
    found = mechanism.delta(0.0)
    assert found.lower <= exact <= found.upper
    assert found.upper <= exact * (1.0 + 1e-11)
    many = mechanism.delta(0.0, 100 if epsilon < 0.1 else 1)
    assert 0.0 < many.lower <= many.upper <= many.lower * (1.0 + 1.1e-4)
