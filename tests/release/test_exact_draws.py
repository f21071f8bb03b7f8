"""From words to integers: exhaustively where words are short, exactly in columns, and by chance.

Nothing here is a matter of rounding: counts are equal or the sampler is wrong.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from lattice_oracles import KEY, MECHANISMS, SMALL, made, probability
from scipy import stats

import psinoise as pn
from psinoise import _core as native
from psinoise.reference.stream import FurtherWords, first_words
from psinoise.testing import integers


def short_weights(bits, count, seed):
    """Random weights that add up to 2**bits, some of them 0 and one that has most."""
    generator = np.random.default_rng(seed)
    shares = np.exp(-generator.uniform(0.0, 9.0, count)) * (generator.uniform(size=count) < 0.9)
    shares[-1] = 1.0
    weights = np.floor(shares / (2.0 * shares.sum()) * 2.0**bits).astype(np.uint64)
    weights[count // 2] += np.uint64(2**bits - sum(weights.tolist()))
    return weights


@pytest.mark.parametrize(
    ("bits", "count"),
    [(16, 1), (16, 2), (16, 3), (16, 1000), (18, 4096), (19, 2**12 - 1), (15, 2**15)],
)
def test_every_short_word(core, bits, count):
    """All words of a draw, with both signs: each integer comes exactly as often as its weight says.

    Kills: a threshold off by one, position and column that share a bit, a sign that is drawn from
    them, an alias that is never reached.
    """
    weights = short_weights(bits, count, count)
    table = core.LatticeTable(weights, "none", 0, 0)
    words = np.arange(2**bits, dtype=np.uint64)
    # Bits between the draw and the sign are not read.
    noise = np.random.default_rng(1).integers(0, 2**63, words.size, np.uint64)
    words |= noise >> np.uint64(bits) << np.uint64(bits)
    positive = core.lattice_choices(table, words)
    negative = core.lattice_choices(table, words | np.uint64(1 << 63))
    assert (positive >= 0).all()
    np.testing.assert_array_equal(negative, -positive)
    counts = np.bincount(positive, minlength=count)
    np.testing.assert_array_equal(counts, weights.astype(np.int64))


@pytest.mark.parametrize("name", ["Gaussian", "Laplace", "Airy", "cactus", "staircase"])
def test_every_short_word_of_a_law(core, name):
    """The same with the weights of laws, rounded to a draw of 18 bits."""
    listed = MECHANISMS[name]().on_lattice().noise.weights
    weights = listed >> np.uint64(63 - 18)
    weights[0] += np.uint64(2**18 - sum(weights.tolist()))
    table = core.LatticeTable(weights, "none", 0, 0)
    found = core.lattice_choices(table, np.arange(2**18, dtype=np.uint64))
    counts = np.bincount(found, minlength=weights.size)
    np.testing.assert_array_equal(counts, weights.astype(np.int64))


def masses_of(entries, draw_bits):
    """How many draws mean each integer, from the columns."""
    columns = entries.size
    bits, capacity = columns.bit_length() - 1, 2**draw_bits // columns
    found = [0] * columns
    for column, entry in enumerate(entries.tolist()):
        own = entry >> bits
        found[column] += own
        found[entry & (columns - 1)] += capacity - own
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_columns_hold_the_weights_exactly(name):
    """Of each law, at its full word: the integers that were accounted are those that are drawn."""
    weights = MECHANISMS[name]().on_lattice().noise.weights
    entries = native.lattice_columns(weights)
    found = masses_of(entries, 63)
    assert found[: weights.size] == weights.tolist()
    assert not any(found[weights.size :])
    # The test of the test.
    shared = np.flatnonzero(entries >= entries.size)
    if shared.size:
        entries[shared[0]] += np.uint64(entries.size)
        assert masses_of(entries, 63)[: weights.size] != weights.tolist()


def many_columns():
    """2**17 of them: one first word in 2**14 does not decide."""
    return short_weights(63, 2**17, 1).tolist(), "none", 0, 0


@pytest.mark.parametrize("name", [*SMALL, "many columns"])
def test_integers_of_an_element_follow_its_words(core, name):
    """The documented mapping, word by word: draws that a first word does not decide, tails too.

    Kills: a tie that goes one way; lower bits of a position that are not new ones; a further word
    that is used twice.
    """
    weights, tail, repeated, ratio = SMALL[name] if name in SMALL else many_columns()
    noise, count = made(weights, tail, repeated, ratio), 1000 if name in SMALL else 2**18
    table = core.LatticeTable(noise.weights, noise.tail, noise.repeated, noise.ratio)
    found = np.empty(count, np.int64)
    core.lattice_noise(table, KEY, 0, found, 1)
    words = first_words(KEY, 20, 0, count, 32).astype(np.uint64)
    bits = np.uint64((noise.weights.size - 1).bit_length())
    column = words & ((np.uint64(1) << bits) - np.uint64(1))
    upper = (words & np.uint64(2**31 - 1)) >> bits

    def chosen(lower):
        draws = (upper << np.uint64(32) | lower) << bits | column
        return core.lattice_choices(table, draws)

    expected, other = chosen(np.zeros_like(words)), chosen(np.full_like(words, 2**32 - 1))
    start = noise.weights.size - (noise.repeated if noise.tail != "none" else 0)
    not_decided = np.flatnonzero((expected != other) | (expected >= start))
    assert name in SMALL or (expected != other).sum() > 5
    further = FurtherWords(KEY, 20, not_decided.astype(np.uint64))
    lower = np.zeros_like(words)
    lower[not_decided] = further.next(np.arange(not_decided.size)) >> np.uint64(32)
    expected = chosen(lower)
    for place, i in enumerate(not_decided.tolist()):
        k, copies, where = int(expected[i]), 0, np.array([place])
        if noise.tail == "none" or k < start:
            continue
        if noise.tail == "blocks":
            width = 2**64 // noise.ratio
            expected[i] = 1 + (k - 1) * width + int(further.next(where)[0]) // noise.ratio
            continue
        while int(further.next(where)[0]) < noise.ratio:
            copies += 1
        if noise.tail == "translate":
            expected[i] = k + copies * noise.repeated
        elif copies:
            expected[i] = (k << copies) + (int(further.next(where)[0]) >> (64 - copies))
    np.testing.assert_array_equal(found, np.where(words >> np.uint64(31) == 1, -expected, expected))


@pytest.mark.parametrize("name", [*SMALL, "Gaussian", "nearly normal", "uniform with an atom"])
def test_frequencies_are_those_of_the_table(name):
    """Chi-square over the integers, copies of tails among them; with a fixed key.

    Kills: a tail with one copy too many or too few, low bits of a block that are not uniform.
    """
    noise = made(*SMALL[name]) if name in SMALL else MECHANISMS[name]().on_lattice().noise
    drawn, count = integers(noise, 1 << 20, KEY), 1 << 20
    reach = 60 if name in SMALL else noise.weights.size
    k = np.arange(-reach, reach + 1)
    expected = noise.pmf(k) * count
    observed = np.bincount((drawn + reach)[np.abs(drawn) <= reach], minlength=k.size).astype(float)
    # Rare integers together, and what lies beyond.
    common = expected >= 20.0
    seen = np.append(observed[common], count - observed[common].sum())
    due = np.append(expected[common], count - expected[common].sum())
    if due[-1] < 20.0:
        seen, due = seen[:-1], due[:-1] * (seen[:-1].sum() / due[:-1].sum())
    assert stats.chisquare(seen, due).pvalue > 1e-4
    # The test of the test: the sign of half of the integers is lost.
    drawn[::2] = np.abs(drawn[::2])
    moved = np.bincount((drawn + reach)[np.abs(drawn) <= reach], minlength=k.size).astype(float)
    seen = moved[common]
    if name in SMALL:
        scaled = due[: seen.size] * (seen.sum() / due[: seen.size].sum())
        assert stats.chisquare(seen, scaled).pvalue < 1e-4


def test_saturated_integers_stay_at_the_limit(core):
    """A tail that hardly ever ends."""
    table = core.LatticeTable(np.array([1, 2**63 - 1], np.uint64), "dilate", 1, 2**64 - 1)
    found = np.empty(500, np.int64)
    core.lattice_noise(table, KEY, 0, found, 1)
    assert (np.abs(found) == 2**62).all()
    # Half of them go on each time: none beyond, and those below are as likely as they should be.
    table = core.LatticeTable(np.array([1, 2**63 - 1], np.uint64), "dilate", 1, 2**64 - 2**58)
    core.lattice_noise(table, KEY, 0, found, 1)
    assert 0 < (np.abs(found) == 2**62).sum() < 500


@pytest.mark.deep
@pytest.mark.parametrize("level", native.build_config()["isa_available"])
def test_every_level_gives_the_same_integers(level, run_python):
    code = """
import hashlib, numpy as np, psinoise as pn
from psinoise.testing import integers, replay
found = hashlib.sha256()
for law in (pn.Laplace(scale=1.0), pn.Cauchy(scale=1.0), pn.Staircase(epsilon=1.0)):
    mechanism = pn.Mechanism(law)
    found.update(integers(mechanism.on_lattice().noise, 100_003, bytes(32)).tobytes())
    x = np.linspace(-1e3, 1e3, 20_001)
    found.update(replay(mechanism, x, bytes(32)).tobytes())
    found.update(replay(mechanism, x.astype("f4"), bytes(32)).tobytes())
    found.update(replay(mechanism, np.arange(-500, 500), bytes(32)).tobytes())
print(found.hexdigest())
"""
    assert run_python(code, PSINOISE_ISA=level) == run_python(code)


def test_any_split_and_any_number_of_threads(core):
    noise = made(*SMALL["heavy"])
    table = core.LatticeTable(noise.weights, noise.tail, noise.repeated, noise.ratio)
    total, start = 70_000, 2**33 - 777
    whole = np.empty(total, np.int64)
    core.lattice_noise(table, KEY, start, whole, 1)
    for bounds in ([0, 1, 3, 130, 511, 512, 1024, total], [0, 40_000, 69_999, total]):
        parts = np.empty(total, np.int64)
        for a, b in itertools.pairwise(bounds):
            core.lattice_noise(table, KEY, start + a, parts[a:b], 3)
        np.testing.assert_array_equal(parts, whole)


def test_the_probability_of_a_copy_is_its_ratio():
    """To 2**-64, which no frequency sees: a word equal to the ratio is a failure."""
    noise = made([2**62, 2**62], "translate", 1, 2**63)
    assert probability(noise, 2) * 2 == probability(noise, 1)
    assert pn.LatticeNoise.from_json(noise.to_json()) == noise
