"""Attacks on low-order bits, and a classifier: they find naive noise, and nothing in a release.

The attacks do not know how noise is made. They get outputs for two neighbors and return a lower
bound on delta that holds but for a chance of 1e-9; it must not exceed what the mechanism is
certified for. Releases are made from fixed keys, so that these tests say the same every time.
"""

from __future__ import annotations

import copy
import hashlib
import math
import pickle

import numpy as np
import pytest
from audits import black_box_audit, delta_bound, last_bit, low_bit_attack

import psinoise as pn
from psinoise.noise import DESIGNED, FAMILIES
from psinoise.testing import replay

OUTPUTS = 50_000
#: What naive noise must at least be convicted of, as the design document says.
CONVICTED = 0.19
EPSILON = 1.0

NOISES = {
    **{family.__name__: family(scale=1.0) for family in FAMILIES},
    "Cauchy": pn.Cauchy(scale=1.0),
    "Cactus": pn.Cactus(cells_per_sensitivity=20, cells=160, tail_ratio=0.35),
    "OptimalUnimodal": pn.OptimalUnimodal(**pn.OptimalUnimodal.representatives[0]),
    "UniformAtom": pn.UniformAtom(delta=0.3, sensitivity=2.0),
    "UniformAtom with an atom": pn.UniformAtom(delta=0.9, power=2),
    "Staircase": pn.Staircase(epsilon=1.0),
    "TruncatedLaplace": pn.TruncatedLaplace(epsilon=1.0, delta=1e-3, sensitivity=0.7),
    "DiscreteLaplace": pn.DiscreteLaplace(scale=2.5),
    "DiscreteStable": pn.DiscreteStable(alpha=1.9, scale=4.0),
}
CONTINUOUS = [name for name in NOISES if "Discrete" not in name and "atom" not in name]


def size(noise):
    """A shift that noise should hide to some extent: its size, or what it is made for."""
    if name := getattr(noise, "sensitivity", None):
        return float(name)
    return noise.mean_abs if noise.mean_abs < math.inf else noise.scale


def released(mechanism, x, label):
    """Outputs of many releases of one number."""
    key = hashlib.sha256(f"{mechanism.noise!r} {x!r} {label}".encode()).digest()
    return replay(mechanism, np.full(OUTPUTS, x), key)


def naive(noise, x, seed):
    """What people do."""
    return x + noise.sample(OUTPUTS, rng=seed)


def attacks(outputs, others, epsilon):
    """The largest bound on delta over all attacks, and both directions."""
    return max(
        low_bit_attack(outputs, others, epsilon),
        black_box_audit(outputs, others, epsilon),
        black_box_audit(others, outputs, epsilon),
    )


def test_the_list_is_complete():
    assert {type(noise) for noise in NOISES.values()} >= set(DESIGNED)
    assert NOISES.keys() >= {family.__name__ for family in FAMILIES}


@pytest.mark.deep
@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("x", [0.0, 1.0 / 3.0])
def test_nothing_is_found_in_a_release(name, x):
    """Over any two neighbors that a sensitivity allows, on the grid or beside it."""
    noise = NOISES[name]
    shift = size(noise)
    mechanism = pn.Mechanism(noise, shift).on_lattice()
    outputs, others = released(mechanism, x, "x"), released(mechanism, x + shift, "y")
    for epsilon in (0.0, EPSILON):
        certified = float(mechanism.delta(epsilon).upper)
        assert attacks(outputs, others, epsilon) <= certified


@pytest.mark.parametrize("name", CONTINUOUS)
def test_naive_noise_is_found(name):
    """The test of the test: the same attacks, on the same law, beyond what it is accounted for."""
    noise = NOISES[name]
    shift = size(noise) if name not in {"Cactus", "UniformAtom"} else noise.mean_abs
    found = attacks(naive(noise, 0.0, 1), naive(noise, shift, 2), EPSILON)
    certified = float(pn.Mechanism(noise, shift).on_lattice().delta(EPSILON).upper)
    assert found >= CONVICTED
    assert found >= certified + 0.05


def test_numpy_noise_is_found():
    generator = np.random.default_rng(1)
    outputs, others = generator.standard_normal(OUTPUTS), 1.0 + generator.standard_normal(OUTPUTS)
    ideal = pn.Mechanism(pn.Gaussian(std=1.0)).composed().estimate.delta(EPSILON)
    assert attacks(outputs, others, EPSILON) >= max(CONVICTED, ideal + 0.05)


def test_more_samples_do_not_help():
    """The sum of four samples, scaled back, has as telling bits as one."""
    noise = pn.Gaussian(std=1.0)
    outputs, others = (
        x + 0.5 * noise.sample((4, OUTPUTS), rng=seed).sum(axis=0)
        for x, seed in ((0.0, 1), (1.0, 2))
    )
    assert attacks(outputs, others, EPSILON) >= CONVICTED


def test_whole_numbers_may_be_added():
    """Discrete noise on whole numbers is exact in floating point: nothing is found there."""
    noise = NOISES["DiscreteLaplace"]
    found = attacks(naive(noise, 0.0, 1), naive(noise, 1.0, 2), EPSILON)
    assert found <= float(pn.Mechanism(noise).on_lattice().delta(EPSILON).upper)


@pytest.mark.parametrize("name", NOISES)
def test_every_output_is_on_the_grid(name):
    """No other float64 than the multiples of one grid, whatever x is, each rounded once."""
    mechanism = pn.Mechanism(NOISES[name], size(NOISES[name])).on_lattice()
    x = np.concatenate([np.linspace(-7.0, 7.0, 1000), [1e-300, -1e-3, 1e9 / 3.0, 2.0**60 / 3.0]])
    outputs = replay(mechanism, x, bytes(32))

    def on_the_grid(values):
        cells = np.rint(values / mechanism.grid)
        return (values == cells * mechanism.grid) | (np.abs(cells) > 2.0**50)

    assert on_the_grid(outputs).all()
    assert (~on_the_grid(x + NOISES[name].sample(x.size, rng=1))).any()


def test_the_bound_is_that_of_clopper_and_pearson():
    """For a mechanism that is known: randomized response at epsilon 1 has delta 0 at epsilon 1."""
    generator = np.random.default_rng(3)
    honest = generator.random(100_000) < math.e / (1.0 + math.e)
    lies = generator.random(100_000) < 1.0 / (1.0 + math.e)
    assert delta_bound(honest.sum(), honest.size, lies.sum(), lies.size, 1.0) <= 0.0
    bound = delta_bound(honest.sum(), honest.size, lies.sum(), lies.size, 0.5)
    truth = (math.e - math.exp(0.5)) / (1.0 + math.e)
    assert truth - 0.03 < bound < truth
    assert delta_bound(10, 10, 10, 10, 0.0) < 0.0
    assert delta_bound(0, 10, 0, 10, 0.0) < 0.0
    assert delta_bound(10**6, 10**6, 0, 10**6, 1.0) > 0.9999


def test_the_lowest_bit():
    values = [1.0, 3.0, 0.75, 2.0**-40, 2.0**52 + 1.0, -6.0, 2.0**60, 5e-324, 0.0]
    expected = [0, 0, -2, -40, 0, 1, 60, -1074, 2000]
    assert last_bit(np.array(values)).tolist() == expected


@pytest.mark.parametrize(
    "mechanism",
    [
        pn.Mechanism(pn.Laplace(scale=2.0)),
        pn.Mechanism(pn.Gaussian(std=2.0), dimension=3, norm="l2"),
    ],
    ids=["listed", "in digits"],
)
def test_weights_are_those_that_were_accounted(mechanism):
    """Kills: arrays that are read-only by a flag, which whoever has them can set again; an array
    that comes back from a pickle writable."""
    made = mechanism.on_lattice().noise
    for noise in (made, copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        if hasattr(noise, "digits"):
            listed = [
                table.listed for digit in noise.digits for table in (digit.weights, digit.rest)
            ]
        else:
            listed = [noise.weights, noise.integers.listed]
        for words in listed:
            assert not words.flags.writeable
            with pytest.raises(ValueError, match="WRITEABLE"):
                words.flags.writeable = True
