"""What users get for bad data, grids, outputs and texts of a release: row by row.

``TypeError`` is the wrong kind, ``DomainError`` (a ValueError) the right kind with a wrong value,
``OverflowError`` what no number of the machine holds, ``MemoryError`` what no memory does. No
message shows data; where data are bad it is the same for all data.
"""

from __future__ import annotations

import collections
import json
import math
import re

import numpy as np
import pytest

import psinoise as pn
from psinoise.accounting import Accountant
from psinoise.release.data import read
from psinoise.testing import replay
from refusals import GAUSSIAN, for_each, for_rows, refused

pytestmark = pytest.mark.filterwarnings("error")

LATTICE = GAUSSIAN.on_lattice()


# -- grids -----------------------------------------------------------------------------------------


def test_grids():
    refused(pn.DomainError, "grid must be ", GAUSSIAN.on_lattice, 0.0)
    refused(pn.DomainError, "grid must be ", GAUSSIAN.on_lattice, math.nan)
    for grid in ("1", 1j, True, [1.0], np.array([1.0]), {}):
        refused(TypeError, "grid must be a real number", GAUSSIAN.on_lattice, grid)
    # 2^31 cells of sensitivity are the most.
    message = refused(
        pn.DomainError,
        "grid must be",
        pn.Mechanism(pn.Gaussian(std=2.0**40), 2.0**33).on_lattice,
        1.0,
    )
    assert "at least" in message


@for_each([1e-300, 1e-6, 1e-3])
def test_noise_far_narrower_than_a_cell(scale):
    """No weight is 0, so that the loss is large and finite; nothing divides by 0."""
    lattice = pn.Mechanism(pn.Laplace(scale=scale), 1e-3).on_lattice(1.0)
    # The least mass is 2**-53, and a word more for each rounding (psinoise.release.ratios).
    assert lattice.noise.weights.tolist() == [2**63 - 1032, 1032]
    assert 37.0 < lattice.pure_epsilon() < 38.0
    assert lattice.release(7) in {6, 7, 8}


# -- shapes and outputs ----------------------------------------------------------------------------


def test_shapes_of_samples():
    law = pn.Airy(scale=1.0)
    refused(pn.DomainError, "shape must be at least 0", law.sample, -1)
    for shape in (1.5, "3", (2, "3"), 2j):
        refused(TypeError, "shape must be an integer", law.sample, shape)
    assert law.sample(0).shape == (0,)
    refused(MemoryError, "", law.sample, 10**15)


def read_only(size):
    array = np.zeros(size)
    array.flags.writeable = False
    return array


@for_rows(
    [
        (np.zeros(3, dtype=np.float32), TypeError),
        (np.zeros(3, dtype=np.int64), TypeError),
        (np.zeros(3, dtype=">f8"), TypeError),
        (np.zeros(6)[::2], ValueError),
        (np.zeros(4), ValueError),
        (np.zeros((3, 1)), ValueError),
        (read_only(3), ValueError),
        ([0.0, 0.0, 0.0], TypeError),
        ("out", TypeError),
    ],
)
def test_outputs_of_releases(out, error):
    before = np.array(out, copy=True)
    refused(error, "out", LATTICE.release, [1.0, 2.0, 3.0], out=out)
    np.testing.assert_array_equal(out, before)


def test_an_output_is_never_replaced_by_a_copy():
    x, out = np.arange(3.0), np.full(3, 7.0)
    assert LATTICE.release(x, out=out) is out
    assert (out != 7.0).all()
    buffer = np.arange(8.0)
    refused(ValueError, "overlap", LATTICE.release, buffer[:5], out=buffer[2:7])
    np.testing.assert_array_equal(buffer, np.arange(8.0))


# -- data ------------------------------------------------------------------------------------------

SECRET = 8675309


class Wrapped:
    """An object that is made an array, as those of other libraries are."""

    def __init__(self, found):
        self.found = found

    def __array__(self, dtype=None, copy=None):
        return self.found


RECORDS = np.array([(1.0, 2)], dtype=[("a", float), ("b", int)])


@for_each(
    [
        SECRET * 1j,
        np.array([SECRET], dtype=complex),
        np.array([SECRET, None], dtype=object),
        object(),
        None,
        str(SECRET),
        [str(SECRET)],
        b"8675309",
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([SECRET], dtype="timedelta64[s]"),
        RECORDS,
        np.ma.array([SECRET, 2.0], mask=[True, False]),
        np.longdouble(SECRET),
        np.array([SECRET], dtype=np.clongdouble),
        True,
        [True, 1.0],
        [np.ma.masked, 1.0],
        [[np.ma.masked_array([SECRET, 2.0], mask=[True, False])]],
        collections.deque([np.ma.array([SECRET, 2.0], mask=[True, False])]),
        Wrapped(np.ma.array([SECRET, 2.0], mask=[True, False])),
        [Wrapped(np.ma.array([SECRET, 2.0], mask=[True, False]))],
        [[1.0], [1.0, 2.0]],
        np.array([True]),
        {"x": SECRET},
        {SECRET},
    ],
    [None, (0.0, 1.0)],
)
def test_data_of_the_wrong_kind(x, bounds):
    message = refused((TypeError, OverflowError), "x must ", LATTICE.release, x, bounds=bounds)
    assert str(SECRET) not in message


LISTED = [
    *([3], [3.5], [2**64], [-(10**400)], [1.0, 10**400], [None, 1.0], [math.nan], [math.inf]),
    *([np.int64(3), 2.5], [np.float32(3.5)], [2**53 + 1], [-0.0], (3, 4), range(2), [[1], [2.5]]),
    *(3, 3.5, 2**64),
]


@for_each(LISTED, [(0.0, 1.0), (-5, 5), (2.0**40, 2.0**52 + 1.0)])
def test_with_bounds_the_values_say_nothing(x, bounds):
    """Lists and Python numbers are float64, clipped exactly, whatever is in them."""
    found = replay(GAUSSIAN, x, bytes(32), bounds=bounds)
    low, high = bounds
    values = np.array(x, dtype=object).reshape(-1).tolist()
    clipped = [low if v in (None, math.nan) else max(low, min(v, high)) for v in values]
    expected = replay(GAUSSIAN, np.array(clipped, dtype=float), bytes(32))
    assert np.asarray(found).dtype == np.float64
    np.testing.assert_array_equal(np.reshape(found, -1), expected)
    grid = 1.0 if high < 2**31 else 2.0**30
    total = pn.exact_sum(x, grid, bounds=bounds)
    assert total == pn.exact_sum(np.array(clipped, dtype=float), grid, bounds=bounds)


def test_whole_numbers_move_as_far_in_lists_as_they_do():
    """Kills: rounding to float64, by which 2^53 + 1 and 2^53 + 2 are two apart."""
    near = [2**53 + step for step in range(-3, 6)]
    assert np.diff(read("x", near, (0.0, 2.0**53))).tolist() == [1.0] * 3 + [0.0] * 5
    for x in ([2**53 + 1, 0.5], [2**63], 2**63, [1.0, -(10**400)]):
        refused(pn.DomainError, r"beyond 2\*\*53", LATTICE.release, x)
    for x in ([1.0], [2**60], 3):
        refused(pn.DomainError, "bounds must be within", LATTICE.release, x, bounds=(0, 2.0**54))


def test_what_declares_a_type_keeps_it():
    counts = pn.Mechanism(pn.DiscreteLaplace(epsilon=1.0)).on_lattice()
    for x in (np.array([3]), np.int64(3), np.uint8([3]), memoryview(np.array([3]))):
        assert np.asarray(counts.release(x)).dtype == np.int64
    assert counts.release([3]).dtype == np.int64
    assert counts.release([3], bounds=(0, 10)).dtype == np.float64


def test_the_length_of_text_is_not_shown():
    messages = {refused(TypeError, "x must", LATTICE.release, [text]) for text in ("1", "12345")}
    assert len(messages) == 1


GOOD = [-5.0, 0.0, 3.0, 2.0**10]  # float32 holds them with noise


@for_each(
    [
        GOOD,
        tuple(GOOD),
        np.array(GOOD, dtype=np.float32),
        np.array(GOOD, dtype=">f8"),
        np.array(GOOD, dtype=">i8"),
        np.array(GOOD, dtype=np.int64),
        np.repeat(GOOD, 2)[::2],
        np.array(GOOD[::-1])[::-1],
        np.ma.array(GOOD),
    ]
)
def test_data_of_every_good_kind_are_the_same_data(x):
    expected = replay(GAUSSIAN, np.array(GOOD), bytes(32))
    np.testing.assert_array_equal(replay(GAUSSIAN, x, bytes(32)), expected)


def test_integers_beyond_float64_are_exact():
    """Kills: a way through float64, where these three are one number."""
    wide = pn.Mechanism(pn.Laplace(scale=2.0**12), 1.0).on_lattice(1.0)
    values = np.array([2**60, 2**60 + 1, 2**60 + 2])
    released = [replay(wide, value, bytes(32)) for value in values]
    assert [int(value) - int(released[0]) for value in released] == [0, 1, 2]


def test_memory_maps(tmp_path):
    stored = np.memmap(tmp_path / "x", np.float64, "w+", shape=(4,))
    stored[:] = GOOD
    found = replay(GAUSSIAN, stored, bytes(32))
    np.testing.assert_array_equal(found, replay(GAUSSIAN, GOOD, bytes(32)))


def test_shapes_of_data():
    assert np.ndim(LATTICE.release(1.5)) == 0
    assert np.ndim(LATTICE.release(np.array(1.5))) == 0
    for shape in ((0,), (3, 0), (2, 3, 4), (1,)):
        assert LATTICE.release(np.zeros(shape)).shape == shape


@for_each([math.nan, math.inf, -math.inf], [np.float64, np.float32])
def test_numbers_that_are_none(bad, kind):
    """One message for all data: not the value, nor how many, nor where."""
    first = refused(pn.DomainError, "x must be finite", LATTICE.release, kind(bad))
    for x in ([bad, SECRET], [SECRET, 1.0, bad], [[bad] * 3] * 4):
        assert refused(ValueError, "", LATTICE.release, np.array(x, dtype=kind)) == first
    clipped = replay(GAUSSIAN, np.array([bad], dtype=kind), bytes(32), bounds=(2, 5))
    ends = (
        replay(GAUSSIAN, np.array([2.0], dtype=kind), bytes(32)),
        replay(GAUSSIAN, np.array([5.0], dtype=kind), bytes(32)),
    )
    assert clipped == (ends[1] if bad > 0 else ends[0])


@for_rows(
    [
        ((1.0, 0.0), pn.DomainError),
        ((math.nan, 1.0), pn.DomainError),
        ((0.0, math.nan), pn.DomainError),
        ((-math.inf, math.inf), pn.DomainError),
        ((0.0,), TypeError),
        ((0.0, 1.0, 2.0), TypeError),
        ("01", TypeError),
        (1.0, TypeError),
        ((0.0, 1j), TypeError),
    ],
)
def test_bounds(bounds, error):
    refused(error, "bound", LATTICE.release, 1.0, bounds=bounds)


# -- keywords and stored text ----------------------------------------------------------------------


@for_rows(
    [
        (lambda: pn.Airy(mean_ab=1.0), "mean_abs"),
        (lambda: pn.Cactus(sensitivty=1.0), "sensitivity"),
        (lambda: pn.Staircase(epsilom=1.0), "epsilon"),
    ],
)
def test_unknown_keywords_of_laws(call, nearest):
    refused(TypeError, f"did you mean '{nearest}'", call)


def test_unknown_keywords_of_a_release():
    lattice = GAUSSIAN.on_lattice()
    refused(TypeError, "did you mean 'bounds'", lambda: lattice.release(1, bound=1))


@for_each(["seed", "rng", "key", "random_state"])
def test_a_release_takes_no_seed(name):
    message = refused(TypeError, name, lambda: LATTICE.release(1.0, **{name: 3}))
    assert "sample" in message


def stored(name):
    """Something that is stored as text, and what reads it."""
    if name == "accountant":
        return Accountant().compose(GAUSSIAN).to_json(), Accountant.from_json
    lattice = GAUSSIAN.on_lattice()
    made = lattice if name == "mechanism" else lattice.noise
    return made.to_json(), type(made).from_json


@for_each(["accountant", "mechanism", "noise"])
def test_damaged_text(name):
    """Every byte matters: text with any digit changed is refused, and so is what is not ours."""
    text, read = stored(name)
    read(text)
    generator = np.random.default_rng(5)
    digits = [i for i, letter in enumerate(text) if letter.isalnum()]
    for index in generator.choice(digits, 40):
        other = "7" if text[index] != "7" else "3"
        refused(ValueError, "", read, text[:index] + other + text[index + 1 :])
    for foreign in ("", "{}", "[]", "null", "3", text[:-3], text + text, "\x80\x04]\x94.", "NaN"):
        refused(ValueError, "", read, foreign)
    refused(ValueError, "", read, "[" * 100_000)
    members = json.loads(text)
    for member in members:
        missing = {key: value for key, value in members.items() if key != member}
        refused(ValueError, "", read, json.dumps(missing))
    refused(ValueError, "", read, json.dumps({**members, "more": 1}))
    refused(TypeError, "", read, text.encode())
    refused(TypeError, "", read, None)


@for_each([pn.Gaussian, pn.Laplace, pn.Airy, pn.Cauchy], [1.0, 1e200], [2e-8, 1e-10, 1e-305])
def test_noise_too_narrow_for_any_grid_is_what_is_named(law, sensitivity, share):
    """Not a grid that nobody gave; half the factor that is named is not enough."""
    narrow = pn.Mechanism(law(scale=share * sensitivity), sensitivity)
    with pytest.raises(pn.DomainError, match="noise must be wider") as caught:
        narrow.on_lattice()
    power = int(re.search(r"by a factor of 2\*\*(\d+):", str(caught.value)).group(1))
    wider = math.ldexp(share * sensitivity, power)
    assert pn.Mechanism(law(scale=wider), sensitivity).on_lattice().cells <= 2**31
    with pytest.raises(pn.DomainError, match=r"by a factor of 2\*\*1:"):
        pn.Mechanism(law(scale=wider / 2), sensitivity).on_lattice()
    assert narrow.on_lattice(grid=sensitivity / 2**31).cells == 2**31


@for_each([1e-303, 1e280, 1e308])
def test_sensitivities_beyond_all_grids(sensitivity):
    with pytest.raises(pn.DomainError, match="sensitivity must be such that its grid is in"):
        pn.Mechanism(pn.Laplace(scale=sensitivity), sensitivity).on_lattice()
