"""The integers of lattice laws: what they add up to, that they fall, and what they say exactly."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from lattice_oracles import MECHANISMS, SMALL, beyond, made, probability

import psinoise as pn
from psinoise.release.weights import ONE, WIDER, Weights, is_unimodal, rounded


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    return MECHANISMS[request.param]()


@pytest.fixture(params=SMALL)
def small(request):
    return made(*SMALL[request.param])


# -- laws on their default lattice -----------------------------------------------------------------


def test_weights_add_up_and_have_no_holes(mechanism):
    noise = mechanism.on_lattice().noise
    weights = noise.weights.tolist()
    assert sum(weights) == 2**63
    assert min(weights) >= 1
    assert len(weights) <= 2**20
    assert 0 <= noise.ratio < 2**64
    assert not noise.weights.flags.writeable


def test_unimodal_laws_stay_unimodal_without_end(mechanism):
    """Decided on the integers, and again here on exact probabilities around every seam."""
    noise = mechanism.on_lattice().noise
    assert noise.unimodal == mechanism.noise.unimodal
    if not noise.unimodal:
        return
    count, start = noise.weights.size, noise.weights.size - noise.repeated
    near = {0, 1, 2, start - 1, start, start + 1, count - 2, count - 1, count, count + 1}
    if noise.tail == "translate":
        near |= {count + i * noise.repeated + d for i in range(3) for d in (-1, 0, 1)}
    else:
        near |= {count * 2**i + d for i in range(4) for d in (-1, 0, 1)}
    for k in sorted(k for k in near if k >= 0):
        assert probability(noise, k) >= probability(noise, k + 1), k


def test_probabilities_are_those_of_the_law(mechanism):
    """Kills: cells moved by half of one, a weight of 0 that is halved or doubled, one side lost."""
    lattice = mechanism.on_lattice()
    noise, law, grid = lattice.noise, mechanism.noise, lattice.grid
    k = np.arange(1, min(noise.weights.size, 3000))
    if isinstance(law, pn.DiscreteLaplace):
        expected = law.ccdf(k - 0.5) - law.ccdf(k + 0.5)
    else:
        # Noise whose tail is not geometric is a little wider.
        cell = grid / WIDER[0] if noise.tail == "none" or law.decay == 0.0 else grid
        expected = law.ccdf((k - 0.5) * cell) - law.ccdf((k + 0.5) * cell)
    tolerance = 1e-12 + 5e-3 * expected * (noise.tail == "dilate")
    assert (np.abs(noise.pmf(k) - expected) <= tolerance + 2.0**-23 * expected).all()
    center = 1.0 - 2.0 * float(law.ccdf(0.5 * grid))
    if isinstance(law, pn.UniformAtom | pn.DiscreteLaplace):
        center = 1.0 - 2.0 * float(expected.sum()) - 2.0 * float(noise.pmf(k[-1] + 1))
        assert float(noise.pmf(0)) == pytest.approx(center, rel=0.5)
    else:
        assert float(noise.pmf(0)) == pytest.approx(center, rel=1e-2)


def test_moments_are_those_of_the_law(mechanism):
    noise, law = mechanism.on_lattice().noise, mechanism.noise
    for found, expected in ((noise.mean_abs, law.mean_abs), (noise.std, law.std)):
        if not math.isfinite(expected):
            # An index of 1.99 is one of 2.01 where its power law begins.
            assert found == expected or mechanism.noise.alpha == 1.99
        elif noise.tail == "dilate":
            # The power law of the tail has not quite set in.
            assert found == pytest.approx(expected, rel=0.2)
        else:
            assert found == pytest.approx(expected, rel=1e-3)


def test_moments_of_small_laws(small):
    weights = [probability(small, k) for k in range(4096)]
    mean = 2 * sum(k * p for k, p in enumerate(weights))
    square = 2 * sum(k * k * p for k, p in enumerate(weights))
    if small.mean_abs < math.inf and small.tail != "dilate":
        assert small.mean_abs == pytest.approx(float(mean), rel=1e-12)
        assert small.std**2 == pytest.approx(float(square), rel=1e-12)


def test_moments_of_a_power_law():
    weights, tail, repeated, _ = SMALL["power"]
    noise = made(weights, tail, repeated, 2**54)
    weights = [probability(noise, k) for k in range(4096)]
    mean = 2 * sum(k * p for k, p in enumerate(weights))
    square = 2 * sum(k * k * p for k, p in enumerate(weights))
    assert noise.mean_abs == pytest.approx(float(mean), rel=1e-12)
    assert noise.std**2 == pytest.approx(float(square), rel=1e-12)
    assert made(*SMALL["power"]).std == math.inf
    assert made(*SMALL["power"]).mean_abs < math.inf
    assert made(*SMALL["heavy"]).mean_abs == math.inf


def test_a_law_of_another_size_is_the_same_integers():
    """Powers of two are not seen by the integers."""
    one, other = (pn.Mechanism(pn.Airy(scale=s), s).on_lattice().noise for s in (1.0, 2.0**-30))
    np.testing.assert_array_equal(one.weights, other.weights)
    assert (one.ratio, one.grid) == (other.ratio, other.grid * 2.0**30)


# -- exact probabilities and pieces ----------------------------------------------------------------


def test_small_laws_add_up(small):
    stop = small.weights.size * 8
    if small.tail == "translate":
        stop = small.weights.size + 8 * small.repeated
    listed = [probability(small, k) for k in range(stop)]
    assert listed[0] + 2 * sum(listed[1:]) + beyond(small, stop) == 1


def test_pmf_is_exact_to_four_ulp(small):
    k = np.array([*range(200), 1000, 2000, *([10**6, 2**40] if small.tail == "dilate" else [])])
    for i, found in zip(k.tolist(), small.pmf(k).tolist(), strict=True):
        exact = probability(small, i)
        if exact > Fraction(1, 2**1000):
            assert abs(Fraction(found) - exact) <= 4 * Fraction(math.ulp(found))
        assert found == small.pmf(-i)
    with pytest.raises(TypeError, match="k must be whole"):
        small.pmf(0.5)


@pytest.mark.parametrize("stop", [2**40, 2**20, 2**3])
def test_pmf_far_in_a_slow_tail_is_right_to_four_ulp(stop):
    """Powers of a ratio near 1, of up to 2**60 (of one that stops with 2**-61)."""
    noise = made([2**62, 2**61, 2**61], "translate", 1, 2**64 - stop)
    reach = min(700 * 2**64 // stop, 2**60)
    k = np.array([2, 2 + 255, 2 + 256, 2 + 257, 2**16 + 1, reach // 10**6, reach // 7, reach])
    with mpmath.workprec(200):
        rho = 1 - mpmath.mpf(stop) / 2**64
        for i, found in zip(k.tolist(), noise.pmf(k).tolist(), strict=True):
            exact = mpmath.mpf(2**61) / 2**64 * (1 - rho) * rho ** (i - 2)
            assert abs(found - exact) <= 4 * math.ulp(found), i


def hockey_stick(moved, base, gamma):
    return sum(max(a - gamma * b, 0) for a, b in zip(moved, base, strict=True))


@pytest.mark.parametrize("cells", [1, 2, 3, 4, 5, 8, 13, 64, 100])
@pytest.mark.parametrize("gamma", [Fraction(1, 3), Fraction(1), Fraction(11, 10), Fraction(5)])
def test_pieces_have_the_divergence_of_the_law(small, cells, gamma):
    """Against a sum over integers in rational arithmetic and a bound of what lies beyond.

    Kills: a block of a dilated tail whose first integers meet the wrong block, a forgotten octave,
    a middle counted twice, copies that are not summed.
    """
    moved, base = small.pieces(float(cells))
    assert math.fsum(moved.tolist()) == pytest.approx(1.0, rel=1e-14)
    assert math.fsum(base.tolist()) == pytest.approx(1.0, rel=1e-14)
    stop = small.weights.size * 2**8
    if small.tail == "translate":
        stop = small.weights.size + (128 + cells) * small.repeated
    table = [probability(small, k) for k in range(stop + cells + 1)]
    exact = hockey_stick(
        (table[abs(k - cells)] for k in range(-stop, stop + 1)),
        (table[abs(k)] for k in range(-stop, stop + 1)),
        gamma,
    )
    rest = float(1 - table[0] - 2 * sum(table[1 : stop - cells]))
    found = hockey_stick(map(Fraction, moved.tolist()), map(Fraction, base.tolist()), gamma)
    # Outside of the sum the divergence is at most the mass of the moved law.
    assert float(exact) * (1 - 1e-14) <= float(found) <= float(exact) * (1 + 1e-14) + rest
    if small.tail != "dilate":
        assert rest < 1e-15


def test_pieces_of_heavy_tails_have_ratios_of_probabilities():
    """Far out too: every finite ratio is one of two integers that a shift apart have it."""
    noise, cells = made(*SMALL["power"]), 5
    moved, base = noise.pieces(float(cells))
    far = range(-(2**13), 2**13)
    ratios = {probability(noise, k - cells) / probability(noise, k) for k in far}
    known = np.array(sorted(float(ratio) for ratio in ratios))
    found = moved / base
    nearest = np.abs(found[:, None] / known - 1.0).min(axis=1)
    assert nearest.max() < 1e-14


def test_the_largest_shift_is_the_worst_of_a_unimodal_law():
    """The lemma on integers; a law with a bump shows that it needs its premise."""
    gammas = [Fraction(1), Fraction(3, 2), Fraction(4)]

    def profiles(noise, cells):
        moved, base = noise.pieces(float(cells))
        pieces = list(map(Fraction, moved.tolist())), list(map(Fraction, base.tolist()))
        return [hockey_stick(*pieces, gamma) for gamma in gammas]

    falling = made([2**62, 2**61, 2**60, 2**60], "translate", 2, 2**63)
    bumpy = made([0, 2**58, 2**63 - 2**59, 2**58], "translate", 1, 2**62)
    assert falling.unimodal
    assert not bumpy.unimodal
    rises = [profiles(falling, cells) for cells in range(1, 9)]
    for before, after in itertools.pairwise(rises):
        assert all(a <= b + Fraction(1, 2**50) for a, b in zip(before, after, strict=True))
    assert falling.worst_shifts(8.0) == (8.0,)
    assert bumpy.worst_shifts(3.0) == (1.0, 2.0, 3.0)
    falls = [profiles(bumpy, cells) for cells in range(1, 9)]
    assert any(a > b + Fraction(1, 10) for a, b in zip(falls[1], falls[3], strict=True))


@pytest.mark.parametrize("shift", [0.0, 0.5, math.nan, math.inf])
def test_shifts_are_multiples_of_the_grid(small, shift):
    with pytest.raises((ValueError, OverflowError)):
        small.pieces(shift)
    with pytest.raises((ValueError, OverflowError)):
        small.worst_shifts(shift)


def test_a_shift_of_too_many_pieces_is_refused(small):
    if small.tail not in ("dilate", "blocks"):
        with pytest.raises(pn.DomainError, match="grid must be coarser, or noise wider"):
            small.pieces(2.0**31)


# -- rounding to integers --------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["none", "translate", "dilate"])
def test_any_masses_become_unimodal_weights(tail):
    """Random masses with noise in the last digits, flat stretches and steep ends."""
    generator = np.random.default_rng(11)
    for _ in range(200):
        count = 2 ** int(generator.integers(2, 8))
        steps = generator.exponential(size=count) * (generator.uniform(size=count) < 0.5)
        masses = np.exp(-np.cumsum(steps) * generator.choice([1e-9, 0.01, 1.0]))
        masses *= 1.0 + 1e-13 * generator.normal(size=count)
        masses[0] *= 0.5
        repeated = {"none": 0, "dilate": count // 2, "translate": int(generator.integers(1, count))}
        ratio = 0 if tail == "none" else int(generator.integers(1, 2**63)) * 2
        weights = rounded(masses, tail, repeated[tail], ratio, True)
        assert sum(weights.listed.tolist()) == 2**63
        assert is_unimodal(weights)


def test_is_unimodal_sees_every_seam():
    """One unit too much at each place where integers meet."""
    good = Weights(np.array([2**61, 2**62, 2**61, 2**61], np.uint64), "translate", 2, 2**63)
    assert is_unimodal(good)
    for place, change in ((1, 1), (2, 2**62 + 1), (3, 1)):
        listed = good.listed.copy()
        listed[place] += np.uint64(change)
        assert not is_unimodal(good._replace(listed=listed)), place
    # From the last copy to the first one of the next period.
    drop = np.array([2**62, 2**62, 2**61, 2**60], np.uint64)
    assert is_unimodal(Weights(drop, "translate", 2, 2**63))
    assert not is_unimodal(Weights(drop, "translate", 2, 2**63 + 1))
    assert is_unimodal(Weights(drop, "dilate", 2, 2**64 - 1))
    drop[3] -= np.uint64(1)
    assert not is_unimodal(Weights(drop, "dilate", 2, 2**64 - 1))


# -- identity and files ----------------------------------------------------------------------------


def test_lattice_noise_is_immutable_equal_and_pickles():
    noise = pn.LatticeNoise.of(pn.Airy(mean_abs=1.0), 2.0**-5)
    for other in (copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
        assert other == noise
        assert hash(other) == hash(noise)
    assert noise != pn.LatticeNoise.of(pn.Airy(mean_abs=1.0), 2.0**-6)
    assert noise != 1
    with pytest.raises(AttributeError, match="immutable"):
        noise.ratio = 1
    with pytest.raises(AttributeError, match="immutable"):
        del noise.ratio
    with pytest.raises(ValueError, match="read-only"):
        noise.weights[0] = 1
    with pytest.raises(TypeError, match="made by"):
        pn.LatticeNoise(1)


def test_the_hash_is_the_documented_one():
    import hashlib

    noise = pn.LatticeNoise.of(pn.Laplace(scale=1.0), 0.125)
    line = (
        f"psinoise-lattice-noise 1 {(0.125).hex()} translate 1 {noise.ratio} {noise.weights.size}\n"
    ).encode()
    words = b"".join(weight.to_bytes(8, "little") for weight in noise.weights.tolist())
    assert noise.sha256 == hashlib.sha256(line + words).hexdigest()


def test_json_comes_back(mechanism):
    noise = mechanism.on_lattice().noise
    text = noise.to_json()
    assert pn.LatticeNoise.from_json(text) == noise
    assert pn.LatticeNoise.from_json(text).to_json() == text


def changed(**members):
    content = json.loads(pn.LatticeNoise.of(pn.Laplace(scale=1.0), 0.5).to_json())
    return json.dumps({**content, **members})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "{" * 100_000,
        changed(format="psinoise-accountant"),
        changed(version=2),
        changed(grid="0x1p-2"),
        changed(grid=0.5),
        changed(grid="0x1p-2000"),
        changed(grid="-0x1p-1"),
        changed(grid="nan"),
        changed(grid="0x1p9999"),
        changed(tail="none"),
        changed(tail=["translate"]),
        changed(repeated=0),
        changed(repeated=2),
        changed(repeated=True),
        changed(ratio="0"),
        changed(ratio="10000000000000000"),
        changed(ratio=5),
        changed(weights=""),
        changed(weights="8000000000000000 -1 1"),
        changed(weights="8000000000000000"),
        changed(weights="4000000000000000 3fffffffffffffff"),
        changed(weights=[1]),
        changed(sha256="0" * 64),
        changed(sha256=None),
        changed(more=1),
        changed(version=True),
        changed(grid="0.5"),
        changed(grid=" 0x1.0000000000000p-1"),
        changed(version=9)[:-1] + ', "version": 1}',
    ],
)
def test_foreign_or_changed_json_is_refused(text):
    with pytest.raises(pn.DomainError):
        pn.LatticeNoise.from_json(text)


def test_json_must_be_text():
    with pytest.raises(TypeError, match="text must be a string"):
        pn.LatticeNoise.from_json(b"{}")


def test_the_integers_are_the_same_on_every_machine(run_python):
    """The reference back end and the lowest level make the same tables."""
    code = """
import psinoise as pn
laws = (pn.Gaussian(std=1.0), pn.Airy(mean_abs=1.0), pn.SymmetricStable(alpha=1.5, scale=1.0),
        pn.Staircase(epsilon=1.0), pn.TruncatedLaplace(epsilon=1.0, delta=1e-3),
        pn.DiscreteLaplace(scale=2.5))
for law in laws:
    print(pn.Mechanism(law).on_lattice().noise.sha256)
"""
    native = run_python(code)
    assert run_python(code, PSINOISE_ISA="baseline") == native
    assert len(set(native.split())) == 6
    # The twins take long to compile smooth laws, whose evaluation is compared elsewhere.
    start, end = code.index("pn.Gaussian"), code.index("pn.Staircase")
    few = code[:start] + code[end:]
    assert run_python(few, PSINOISE_BACKEND="reference") == run_python(few)


@pytest.mark.parametrize("ratio", [1, ONE - 1])
def test_extreme_ratios_account(ratio):
    noise = made([2**62, 2**61, 2**61], "translate", 1, ratio)
    moved, base = noise.pieces(1.0)
    assert math.fsum(moved.tolist()) == pytest.approx(1.0, rel=1e-14)
    assert math.fsum(base.tolist()) == pytest.approx(1.0, rel=1e-14)
