"""``rng=``: every kind of SPEC 7, and streams that laws do not share."""

from __future__ import annotations

import numpy as np
import pytest

from case_names import case_name
from psinoise._rng import fresh_key, stream_key
from psinoise.noise import FAMILIES

TAG = b"law"


def test_none_differs_every_time():
    assert len({fresh_key() for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "seed",
    [0, 7, 2**200, np.int64(7), [1, 2, 3], (1, 2), np.array([4, 5]), np.random.SeedSequence(7)],
    ids=case_name,
)
def test_a_seed_names_one_stream(seed):
    key = stream_key(seed, TAG)
    assert len(key) == 32
    assert key == stream_key(seed, TAG)
    assert key != stream_key(seed, b"other law")
    assert key != stream_key(8, TAG)


def test_equal_seeds_agree_whatever_their_type():
    expected = stream_key(7, TAG)
    assert stream_key(np.uint8(7), TAG) == expected
    assert stream_key(np.random.SeedSequence(7), TAG) == expected
    assert stream_key([7], TAG) == expected


def test_spawned_seed_sequences_differ():
    children = np.random.SeedSequence(7).spawn(4)
    assert len({stream_key(child, TAG) for child in children}) == 4


def test_key_is_the_same_on_every_machine():
    """A golden key: byte order and the hash are part of the stream's definition."""
    assert stream_key(2024, b"Gaussian()").hex() == (
        "7d530c3b86ddb801712d999a569317dab420dcdc9795adc92bffe9b1c6595bef"
    )


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_generators_advance_by_a_fixed_amount(kind, law):
    states = set()
    for shape in ((), 1, 10, (3, 5), 0, 100_000):
        generator = np.random.Generator(kind(5))
        law.sample(shape, rng=generator)
        if shape != 0:  # an empty request uses no randomness
            states.add(generator.integers(2**63))
    assert len(states) == 1
    expected = np.random.Generator(kind(5))
    expected.bit_generator.random_raw(8)
    assert states == {expected.integers(2**63)}


def test_a_bit_generator_advances_and_agrees_with_its_generator(law):
    bits = np.random.PCG64(5)
    first, second = law.sample(4, rng=bits), law.sample(4, rng=bits)
    assert not np.array_equal(first, second)
    generator = np.random.default_rng(5)
    np.testing.assert_array_equal(law.sample(4, rng=generator), first)
    np.testing.assert_array_equal(law.sample(4, rng=generator), second)


@pytest.mark.parametrize(
    ("seed", "error"),
    [
        ("7", TypeError),
        (7.0, TypeError),
        (True, TypeError),
        (np.True_, TypeError),
        (b"bytes", TypeError),
        ([1.5, 2], TypeError),
        ({1, 2}, TypeError),
        (1 + 0j, TypeError),
        (np.float32(3.0), TypeError),
        (object(), TypeError),
        (np.float64(3.0), TypeError),
        (-1, ValueError),
        ([1, -2], ValueError),
    ],
    ids=case_name,
)
def test_bad_seeds(seed, error):
    with pytest.raises(error):
        stream_key(seed, TAG)


def test_legacy_random_state_is_refused():
    with pytest.raises(TypeError):
        stream_key(np.random.RandomState(3), TAG)


def test_families_drawn_from_one_seed_are_not_coupled():
    """Kills: the tag left out of the key (all laws then share their uniforms: correlation 0.98)."""
    count = 200_000
    samples = [law_class(scale=1.0).sample(count, rng=99) for law_class in FAMILIES]
    correlations = np.corrcoef(samples)[np.triu_indices(len(FAMILIES), 1)]
    assert np.abs(correlations).max() < 5.5 / np.sqrt(count)  # 5.5 sigma: 4e-8 each
    magnitudes = np.corrcoef(np.abs(samples))[np.triu_indices(len(FAMILIES), 1)]
    assert np.abs(magnitudes).max() < 5.5 / np.sqrt(count)


def test_members_of_a_family_differ_by_a_factor_only(law_class):
    """One seed, one stream: exact for powers of two, half an ulp of rounding for others."""
    unit = law_class(scale=1.0).sample(10_000, rng=4)
    for power in (-40, -1, 3, 50):
        scaled = law_class(scale=2.0**power).sample(10_000, rng=4)
        np.testing.assert_array_equal(scaled, unit * 2.0**power)
    np.testing.assert_array_equal(law_class(scale=0.3).sample(10_000, rng=4), unit * 0.3)
