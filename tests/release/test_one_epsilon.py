"""What is released costs no more than the ideal mechanism: for every law, sensitivity and number.

The grid is the sensitivity divided by a power of two, so that rounding costs nothing
(``psinoise.release.grid`` has the proof); the table holds multiples of 2**-63. Both certified
bounds of one use are exact to 1e-12, where this is seen to 1e-9.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from lattice_oracles import KEY

import psinoise as pn
from psinoise.noise import FAMILIES
from psinoise.release import values
from psinoise.release.followed import followed, follows, lines_of
from psinoise.release.pieces import probabilities
from psinoise.release.ratios import raised
from psinoise.release.weights import ONE, rounded, weights_of
from psinoise.testing import integers, replay

SENSITIVITIES = [
    0.3,
    1 / 3,
    math.pi,
    1e-9,
    1000 / 3,
    2**53 + 1,
    Fraction(1, 2) + Fraction(1, 2**80),
]
LAWS = {family.__name__: lambda s, law=family: law(scale=s) for family in FAMILIES} | {
    "SymmetricStable(alpha=0.5)": lambda s: pn.SymmetricStable(alpha=0.5, scale=s),
    "SymmetricStable(alpha=1.9)": lambda s: pn.SymmetricStable(alpha=1.9, scale=s),
    "Cauchy": lambda s: pn.Cauchy(scale=s),
    "Staircase": lambda s: pn.Staircase(epsilon=1.0, sensitivity=s),
    "UniformAtom": lambda s: pn.UniformAtom(delta=0.75, sensitivity=s),
    "TruncatedLaplace": lambda s: pn.TruncatedLaplace(epsilon=1.0, delta=1e-3, sensitivity=s),
}
# Of epsilon; and of the rounding of the accountant where it is a difference of logarithms.
PRICE, ROUNDING = 1e-9, 1e-12


def costs_no_more(ideal, released):
    """The released bracket against the ideal one, but for the width of either."""
    if math.isinf(ideal.upper):
        return
    width = (ideal.upper - ideal.lower) + (released.upper - released.lower)
    assert released.lower <= ideal.upper * (1.0 + PRICE) + ROUNDING
    assert released.upper <= ideal.upper * (1.0 + PRICE) + width + ROUNDING


# Stable laws take two seconds each; of the power laws the Cauchy law has all sensitivities.
PAIRS = [(name, s) for name in LAWS for s in SENSITIVITIES if "alpha" not in name or s == 0.3]


@pytest.mark.deep
@pytest.mark.parametrize(("name", "sensitivity"), PAIRS, ids=str)
def test_one_use(name, sensitivity):
    """Kills: a grid that is a power of two, which cost up to a thousandth at 0.3; a tail with
    another mass than that of the law."""
    for ratio in (1.0, 7.0):
        mechanism = pn.Mechanism(LAWS[name](float(sensitivity) * ratio), sensitivity)
        lattice = mechanism.on_lattice()
        assert lattice.cells * Fraction(lattice.grid) == Fraction(mechanism.sensitivity)
        for delta in (1e-6, 1e-2):
            costs_no_more(mechanism.epsilon(delta), lattice.epsilon(delta))
        for epsilon in (0.0, 0.5):
            costs_no_more(mechanism.delta(epsilon), lattice.delta(epsilon))


WITH_A_LARGEST_LOSS = {
    "Laplace": LAWS["Laplace"],
    "Staircase": LAWS["Staircase"],
    "Staircase(epsilon=0.1)": lambda s: pn.Staircase(epsilon=0.1, sensitivity=s),
    "Staircase(epsilon=10)": lambda s: pn.Staircase(epsilon=10.0, sensitivity=s),
    "Cauchy": LAWS["Cauchy"],
    "SymmetricStable(alpha=1.5)": lambda s: pn.SymmetricStable(alpha=1.5, scale=s),
    "Cactus": lambda s: pn.Cactus(
        mean_cost=s * s, sensitivity=s, cells_per_sensitivity=10, cells=80, tail_ratio=0.5
    ),
    "OptimalUnimodal": lambda s: pn.OptimalUnimodal(
        delta=1e-5, count=100, sampling_rate=0.1, mean_cost=s * s, sensitivity=s,
        cells_per_sensitivity=10,
    ),
}  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("name", WITH_A_LARGEST_LOSS)
def test_the_largest_loss(name):
    """Without delta, and with one that no table resolves: all that is left is the largest loss.

    Kills: weights rounded down alone (4e-8 of epsilon, and 1e-4 for wide noise); tails that go on
    in the midst of a stair (3 % where a period is no whole number of cells), or before a law has
    its last slope (1.6 times); copies of a power law that do not meet (3 times, for wide noise).
    """
    for sensitivity in SENSITIVITIES[: 1 if name in ("Cactus", "OptimalUnimodal") else 3]:
        for ratio in (0.1, 1.0, 7.0, 100.0, 3000.0):
            law = WITH_A_LARGEST_LOSS[name](float(sensitivity) * ratio)
            mechanism = pn.Mechanism(law, sensitivity)
            lattice = mechanism.on_lattice()
            ideal, released = mechanism.epsilon(0.0), lattice.epsilon(0.0)
            assert released.upper <= ideal.upper * (1.0 + PRICE), (sensitivity, ratio)
            if ratio == 7.0 and sensitivity == 0.3:
                ideal, released = mechanism.epsilon(1e-100), lattice.epsilon(1e-100)
                assert released.upper <= ideal.upper * (1.0 + PRICE)
    for count, rate in ((2, 1.0), (300, 0.02)):
        ideal, released = mechanism.epsilon(0.0, count, rate), lattice.epsilon(0.0, count, rate)
        assert released.upper <= ideal.upper * (1.0 + PRICE)


@pytest.mark.parametrize(
    ("name", "ratios"),
    [
        ("Cauchy", (7.0, 3000.0)),
        pytest.param("Cauchy", (0.03, 0.1, 0.3, 1.0, 300.0), marks=pytest.mark.deep),
        *(
            pytest.param(name, (0.03, 0.3, 7.0, 300.0), marks=pytest.mark.deep)
            for name in LAWS
            if "alpha" in name
        ),
    ],
)
def test_power_laws_whose_copies_are_steps(name, ratios):
    """Every profile of one use is below that of the law, and so are all compositions and samples.

    Kills: noise that is no wider (4e-3 of epsilon at 3000 scales and a delta of 1e-4, 3e-5 at a
    hundredth of the sensitivity); copies that begin before a shift has passed.
    """
    for ratio in ratios:
        mechanism = pn.Mechanism(LAWS[name](0.3 * ratio), 0.3)
        lattice, top = mechanism.on_lattice(), mechanism.pure_epsilon()
        for epsilon in top * np.array([0.0, 1e-4, 0.01, 0.03, 0.1, 0.5, 0.9]):
            ideal = mechanism.delta(epsilon)
            assert lattice.delta(epsilon).upper <= ideal.lower, (ratio, epsilon)
    ideal, released = (made.epsilon(1e-5, 20, 0.1) for made in (mechanism, lattice))
    assert released.lower <= ideal.upper * (1.0 + PRICE)


WHOLE = [
    (pn.DiscreteStable(alpha=1.0, scale=1000.0), 1),
    pytest.param(pn.DiscreteStable(alpha=0.5, scale=20.0), 1, marks=pytest.mark.deep),
    pytest.param(pn.DiscreteStable(alpha=1.5, scale=40.0), 3, marks=pytest.mark.deep),
    pytest.param(pn.DiscreteStable(alpha=1.9, scale=4.0), 40, marks=pytest.mark.deep),
    pytest.param(pn.DiscreteStable(alpha=2.0, scale=100.0), 2, marks=pytest.mark.deep),
]


@pytest.mark.parametrize(("law", "sensitivity"), WHOLE, ids=str)
def test_power_laws_on_the_whole_numbers(law, sensitivity):
    """Kills: the law itself in the table (6e-3 of epsilon at the first delta)."""
    mechanism = pn.Mechanism(law, sensitivity)
    for delta in (3e-4, 1e-2, 1e-6, 1e-9, 1e-12):
        ideal, released = mechanism.epsilon(delta), mechanism.on_lattice().epsilon(delta)
        assert released.lower <= ideal.upper * (1.0 + PRICE)
    ideal, released = (m.epsilon(1e-5, 20, 0.1) for m in (mechanism, mechanism.on_lattice()))
    assert released.lower <= ideal.upper * (1.0 + PRICE)


@pytest.mark.parametrize("name", [f.__name__ for f in FAMILIES if "Laplace" not in f.__name__])
def test_tiny_deltas_of_noise_without_a_largest_loss(name):
    """Where the least listed weights decide, which are right to some 2**-24 of themselves.

    Kills: a table of the law itself (5e-9 of epsilon at 3e-13, 2e-8 at 1e-13).
    """
    for ratio in (7.0, 100.0, 20000.0 if "alpha" not in name else 1000.0):
        mechanism = pn.Mechanism(LAWS[name](0.3 * ratio), 0.3)
        lattice = mechanism.on_lattice()
        for delta in (1e-10, 1e-11, 1e-12, 3e-13, 1e-13):
            assert lattice.epsilon(delta).lower <= mechanism.epsilon(delta).upper * (1.0 + PRICE)


@pytest.mark.parametrize(
    ("law", "cells"),
    [(pn.Cauchy(scale=64.0), 1), (pn.SymmetricStable(alpha=1.5, scale=32.0), 4)],
    ids=str,
)
def test_what_follows_a_law(law, cells):
    """Against tables that do not: the law itself, narrower noise, a heavier tail, a step where
    copies begin.

    Kills: a comparison that says yes; one of the largest interval alone.
    """
    made = followed(law, 1.0, cells)
    lines = lines_of(law, 1.0, cells, made.listed.size)
    assert follows(made, cells, lines)
    assert not follows(weights_of(law, 1.0, cells, 1.0), cells, lines)
    assert not follows(weights_of(law, 1.0, cells, 0.999), cells, lines)
    heavier = made._replace(ratio=min(int(made.ratio * 1.8), ONE - 1))
    assert not follows(heavier, cells, lines)
    stepped = made.listed.copy()
    lost = stepped[-made.repeated :] // np.uint64(1000)
    stepped[-made.repeated :] -= lost
    stepped[0] += lost.sum(dtype=np.uint64)
    assert not follows(made._replace(listed=stepped), cells, lines)


@pytest.mark.parametrize(("ratio", "cells"), [(0.1, 2048), (7.0, 32), (100.0, 2)])
def test_profiles_where_a_list_ends(ratio, cells):
    """The table, in rational arithmetic, against the rounded law with 60 digits: losses up to the
    largest of the table, the tail and what is listed before it.

    Kills: a tail that falls as the law does and not as the wider one (4e-5 of delta at 7 scales);
    a table of the law itself.
    """
    grid = 1.0 / cells
    listed, tail, _, falls = followed(pn.Gaussian(std=ratio), grid, cells)
    assert tail == "translate"
    rho = Fraction(falls, ONE)
    sums = np.cumsum(listed[::-1].astype(object))[::-1]

    def beyond(k):
        """``P(K >= k)`` of the table."""
        if k < 1:
            return 1 - beyond(1 - k)
        last = listed.size - 1
        copies = max(k - last, 0)
        return Fraction(int(sums[min(k, last)]), 2**64) * rho**copies

    with mpmath.workdps(60):

        def law(k):
            return mpmath.erfc((k - 0.5) * mpmath.mpf(grid) / (ratio * mpmath.sqrt(2))) / 2

        top = -cells * mpmath.log(mpmath.mpf(rho.numerator) / rho.denominator)
        for share in (0.02, 0.3, 0.7, 0.9, 0.94, 0.96, 0.965, 0.97, 0.98, 0.99, 0.999):
            t = mpmath.exp(top * share)
            where = round(ratio**2 * float(top) * share / grid + cells / 2)
            near = range(max(where - 40, cells // 2 + 1), where + 40)
            table = max(_at(beyond(k - cells)) - t * _at(beyond(k)) for k in near)
            assert table <= max(law(k - cells) - t * law(k) for k in near), share


def _at(value):
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("name", [f.__name__ for f in FAMILIES if "Laplace" not in f.__name__])
def test_noise_of_all_widths_is_compared(name):
    """Kills: tails taken from 1, which have no digits where noise is narrow; an event that ends
    where its cells do; sums one by one (noise of 20,000 scales is widened for nothing)."""
    for ratio in (0.02, 0.1, 7.0, 3000.0, 20000.0 if "alpha" not in name else 1000.0):
        law = LAWS[name](0.3 * ratio)
        lattice = pn.Mechanism(law, 0.3).on_lattice()
        grid, cells, made = lattice.grid, lattice.cells, lattice.noise.integers
        lines = lines_of(law, grid, cells, made.listed.size)
        assert follows(made, cells, lines), ratio
        if ratio >= 0.1:
            assert not follows(weights_of(law, grid, cells, 0.999), cells, lines), ratio
        if ratio == 20000.0 and name != "Airy":
            assert made.listed.tobytes() == weights_of(law, grid, cells).listed.tobytes()


@pytest.mark.parametrize("cells", [1, 6])
def test_lines_are_below_the_profile_of_the_law(cells):
    """Of Cauchy noise, whose profile is an integral over an interval that is known.

    Kills: a line of the wrong cells; a base that is not charged; the law moved the other way.
    """
    lines = lines_of(pn.Cauchy(scale=20.0), 1.0, cells, 4096)
    with mpmath.workdps(40):
        s, scale = mpmath.mpf(cells), mpmath.mpf(20)

        def below(x):
            return mpmath.atan(x / scale) / mpmath.pi

        for j in np.linspace(0, lines.p.size - 1, 40).astype(int):
            t = mpmath.mpf(float(lines.low[j]))
            # Where scale**2 + x**2 = t (scale**2 + (x - s)**2).
            a, b, c = t - 1, -2 * t * s, (t - 1) * scale**2 + t * s**2
            root = mpmath.sqrt(max(b * b - 4 * a * c, mpmath.mpf(0)))
            left = (-b - root) / (2 * a) if a else s / 2
            right = (-b + root) / (2 * a) if a else mpmath.inf
            delta = below(right - s) - below(left - s) - t * (below(right) - below(left))
            found = mpmath.mpf(float(lines.p[j])) - t * mpmath.mpf(float(lines.q[j]))
            found += int(lines.whole[j])
            assert 0.999 * delta - 1e-6 <= found <= delta


def falling(generator, unimodal):
    """Random masses, spines and valleys among them, with a geometric tail below all that a table
    holds or well above: the masses, the cells of a period, and by how much they fall in it."""
    repeated = int(generator.integers(1, 6))
    count = int(generator.integers(repeated + 1, 60))
    fall = generator.choice([0.9999, 0.99, 0.9, 0.5, 0.1, 1e-3])
    if unimodal:
        logs = np.cumsum(-generator.exponential(generator.choice([1e-5, 0.01, 1.0, 3.0]), count))
    else:
        logs = -np.arange(count) * generator.choice([1e-3, 0.1, 0.5])
        logs += generator.normal(size=count) * generator.choice([1e-6, 1e-3, 0.1, 1.0, 10.0])
    tail = np.sort(logs[-repeated:])[::-1]
    logs[-repeated:] = np.maximum(tail, tail[0] + np.log(fall))
    if unimodal:
        logs = np.minimum.accumulate(logs)
    masses = np.exp(logs - logs.max())
    masses[0] /= 2.0
    return masses, repeated, float(fall)


def largest_losses(p, shifts):
    """Of all shifts up to 1, 2, ... cells; ``p`` of 0, 1, 2, ..."""
    both = np.log(np.concatenate([p[:0:-1], p]))
    found = [np.abs(both[shift:] - both[:-shift]).max() for shift in range(1, shifts + 1)]
    return np.maximum.accumulate(found)


def test_the_largest_loss_of_any_masses():
    """Kills: room for roundings outwards alone, which is wrong for spines; weights rounded down;
    a tail that falls by the ratio of the law; a tail below the least mass that does."""
    generator = np.random.default_rng(1)
    for trial in range(1000):
        masses, repeated, fall = falling(generator, unimodal=trial % 2 == 0)
        listed, ratio = raised(masses, repeated, fall)
        weights = rounded(listed, "translate", repeated, int(ratio * ONE), trial % 2 == 0, 1.0)
        law, shifts = [masses * np.append(2.0, np.ones(masses.size - 1))], max(6 * repeated, 10)
        while sum(part.size for part in law) < masses.size + 3 * shifts:
            law.append(law[-1][-repeated:] * fall)
        p = np.concatenate(law)
        ideal = largest_losses(p, shifts)[repeated - 1 :]
        drawn = largest_losses(probabilities(weights, np.arange(p.size)), shifts)[repeated - 1 :]
        assert (drawn <= ideal * (1.0 + PRICE)).all(), trial


@pytest.mark.parametrize("sensitivity", SENSITIVITIES[:3])
def test_bounded_laws_at_their_own_delta(sensitivity):
    """A law that is made for a delta leaves its support with just that probability.

    Kills: the law itself, rounded; what is left of the words given to 0 (3e-8 of a delta of 1e-6).
    """
    for delta in (0.75, 0.01, 1e-3, 1e-6):
        law = pn.UniformAtom(delta=delta, sensitivity=sensitivity)
        assert pn.Mechanism(law, sensitivity).on_lattice().epsilon(delta).upper == 0.0
    for epsilon, delta in ((1.0, 1e-3), (0.1, 1e-6), (8.0, 1e-6), (1.0, 1e-9)):
        law = pn.TruncatedLaplace(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        lattice = pn.Mechanism(law, sensitivity).on_lattice()
        assert lattice.epsilon(delta).upper <= epsilon


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 8.0])
def test_the_largest_loss_of_whole_numbers(epsilon):
    """The geometric law has it everywhere, also between 0 and its neighbors."""
    mechanism = pn.Mechanism(pn.DiscreteLaplace(epsilon=epsilon))
    for delta in (0.0, 1e-100, 1e-15, 1e-6):
        released = mechanism.on_lattice().epsilon(delta).upper
        assert released <= mechanism.epsilon(delta).upper * (1.0 + PRICE)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["Gaussian", "Airy", "Laplace", "Cauchy", "Staircase"])
def test_uses_and_samples(name):
    """At the ends of the brackets, which are some 1e-4 wide here.

    Kills: a grid that is a power of two; weights that are rounded to 32 bits.
    """
    mechanism = pn.Mechanism(LAWS[name](7 * 0.3 if name != "Staircase" else 0.3), 0.3)
    lattice = mechanism.on_lattice()
    for count, rate in ((2, 1.0), (20, 0.1), (300, 0.02), (5000, 0.01)):
        for delta in (1e-6, 1e-100) if count < 5000 else (1e-6,):
            ideal, released = (made.epsilon(delta, count, rate) for made in (mechanism, lattice))
            assert released.lower <= ideal.upper * (1.0 + PRICE), (count, rate, delta)
    if name in ("Gaussian", "Airy"):  # where contours converge
        for count, rate in ((20, 1.0), (300, 0.02)):
            ideal, released = (m.composed(count, rate).estimate for m in (mechanism, lattice))
            assert released.epsilon(1e-6) <= ideal.epsilon(1e-6) * (1.0 + PRICE)


def test_a_calibrated_law_releases_what_was_asked_for():
    noise = pn.calibrate(pn.Gaussian, epsilon=1.0, delta=1e-6, sensitivity=0.3)
    assert pn.Mechanism(noise, 0.3).on_lattice().epsilon(1e-6).upper <= 1.0
    mechanism = pn.calibrate(pn.Gaussian, epsilon=1.0, delta=1e-6, sensitivity=0.3, on_lattice=True)
    assert mechanism.law == repr(noise)


def test_wide_noise_and_many_uses():
    """The grid is the sensitivity itself here; one that is coarser leaked 1.63."""
    mechanism = pn.Mechanism(pn.Gaussian(std=3e4))
    lattice = mechanism.on_lattice()
    assert lattice.grid == 1.0
    ideal, released = (made.epsilon(1e-6, 5 * 10**8) for made in (mechanism, lattice))
    assert released.lower <= ideal.upper
    assert released.upper <= ideal.upper * (1.0 + 1e-3)


@pytest.mark.parametrize("number", [2**53 + 1, Fraction(1, 2) + Fraction(1, 2**80), Fraction(1, 3)])
def test_the_sensitivity_is_rounded_up(number):
    for made in (
        pn.Mechanism(pn.Gaussian(std=1e17), number),
        pn.LatticeMechanism(pn.LatticeNoise.of(pn.Gaussian(std=1e17), 2.0**50), number),
    ):
        assert isinstance(made.sensitivity, float)
        assert made.sensitivity >= number > math.nextafter(made.sensitivity, 0.0)


def test_the_ideal_law_releases_nothing(monkeypatch):
    def drawn():
        raise AssertionError("bits were drawn")

    monkeypatch.setattr(values, "fresh_key", drawn)
    mechanism = pn.Mechanism(pn.Gaussian(std=1.0))
    with pytest.raises(AttributeError, match=r"on_lattice\(\)"):
        mechanism.release([1.0])
    assert not hasattr(mechanism, "release")


# -- rounding --------------------------------------------------------------------------------------


def nasty(grid, generator):
    """Values near halves of cells, of all sizes, and what float64 has at its ends."""
    cells = np.concatenate(
        [
            generator.integers(-(2**k), 2**k, 60).astype(float) + generator.choice([0.0, 0.5], 60)
            for k in (1, 4, 20, 40, 51, 52, 53, 54, 60, 61)
        ]
    )
    x = cells * grid
    x = np.concatenate([x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf)])
    ends = [
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        2.0**53 + 2,
    ]
    ends += [grid / 2, np.nextafter(grid / 2, 0.0), 2.0**61 * grid, 2.0**62 * grid]
    return np.concatenate([x, ends, -np.array(ends)])


@pytest.mark.parametrize(
    "grid",
    [0.3 / 64, 1 / 3, math.pi * 2.0**-7, 1e-9, 1000 / 3, 2.0**53 + 2, 0.1 + 2.0**-56, 1e-280],
)
def test_rounding_is_exact(grid):
    """Against rational arithmetic, on ties and beside them.

    Kills: a quotient in float64 alone; a tie of a negative number that goes down; a remainder that
    is not corrected for quotients beyond 2**53; saturation after rounding that wraps.
    """
    x = nasty(grid, np.random.default_rng(3))
    x = x[np.isfinite(x)]
    lattice = pn.Mechanism(pn.Gaussian(std=3 * grid), grid).on_lattice(grid)
    noise = integers(lattice.noise, x.size, KEY).tolist()
    for value, k, found in zip(x.tolist(), noise, replay(lattice, x, KEY).tolist(), strict=True):
        cells = math.floor(Fraction(value) / Fraction(grid) + Fraction(1, 2))
        total = min(max(min(max(cells, -(2**61)), 2**61) + k, -(2**61)), 2**61)
        assert found == float(total) * grid, value


@pytest.mark.parametrize("cells", [1, 2, 64, 2**20])
def test_neighbors_are_as_far_apart_as_was_accounted(cells):
    """The same noise on values a sensitivity apart: a power of two of cells, and never one more."""
    sensitivity = 0.3
    grid = sensitivity / cells
    lattice = pn.Mechanism(pn.Gaussian(std=40 * grid), sensitivity).on_lattice(grid)
    assert lattice.cells == cells
    x = nasty(grid, np.random.default_rng(4))
    x = x[np.abs(x) < 2.0**45 * grid]
    exact = [Fraction(value) + Fraction(sensitivity) for value in x.tolist()]
    y = np.array([float(value) for value in exact])
    y = np.where(
        [Fraction(b) > a for a, b in zip(exact, y.tolist(), strict=True)],
        np.nextafter(y, -np.inf),
        y,
    )
    moved = np.rint((replay(lattice, y, KEY) - replay(lattice, x, KEY)) / grid)
    assert moved.max() == cells
