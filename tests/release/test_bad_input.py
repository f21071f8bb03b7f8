"""What users get for bad input, row by row: the table of the design, as it is promised.

``TypeError`` is the wrong kind, ``DomainError`` (a ValueError) the right kind with a wrong value,
``OverflowError`` what no number of the machine holds, ``MemoryError`` what no memory does. No
message shows data; where data are bad it is the same for all data.
"""

from __future__ import annotations

import inspect
import json
import math
import warnings

import numpy as np
import pytest

import psinoise as pn
from psinoise import costs
from psinoise.accounting import Accountant
from psinoise.noise import DESIGNED, FAMILIES
from psinoise.testing import replay

pytestmark = pytest.mark.filterwarnings("error")

GAUSSIAN = pn.Mechanism(pn.Gaussian(std=2.0))
SIZES = ("scale", "std", "mean_abs")
WRONG_KIND = ["1", None, 1j, True, np.array([1.0]), [1.0], b"1", object()]


def refused(error, match, call, *arguments, **keywords):
    """The error that a call must raise, of the right class and no other."""
    with pytest.raises(error, match=match or None) as caught:
        call(*arguments, **keywords)
    if error is ValueError:
        assert not isinstance(caught.value, UnicodeError | np.exceptions.AxisError)
    return str(caught.value)


# -- scale, sensitivity, mean_abs ------------------------------------------------------------------


def numbers():
    """Every argument that is a size, as a name and a function of its value."""
    for family in FAMILIES:
        for size in SIZES:
            yield size, lambda value, family=family, size=size: family(**{size: value})
    yield "sensitivity", lambda value: pn.Mechanism(pn.Laplace(scale=1.0), value)
    for law in DESIGNED:
        arguments = {"epsilon": 1.0, "delta": 0.1}
        names = inspect.signature(law).parameters
        needed = {name: arguments[name] for name in arguments if name in names}
        if law is pn.DiscreteLaplace:
            continue  # a whole number: below
        yield "sensitivity", lambda value, law=law, needed=needed: law(sensitivity=value, **needed)


@pytest.mark.parametrize(("name", "make"), list(numbers()))
def test_sizes(name, make):
    for value in (0, 0.0, -1.0, math.nan, math.inf, -math.inf, np.float32(-2)):
        refused(pn.DomainError, f"^{name} must be ", make, value)
    for value in WRONG_KIND:
        refused(TypeError, f"{name}|takes exactly one", make, value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, pn.DomainError),
        (-1, pn.DomainError),
        (1.0, TypeError),
        ("1", TypeError),
        (1j, TypeError),
    ],
)
def test_a_sensitivity_in_whole_numbers(value, error):
    refused(error, "sensitivity must be", pn.DiscreteLaplace, epsilon=1.0, sensitivity=value)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_scales_at_the_ends_of_float64(family):
    refused(pn.DomainError, "at least 2", family, scale=5e-324)
    for scale in (2.0**-1022, 2.0**1023):
        refused((pn.DomainError, OverflowError), "", pn.Mechanism(family(scale=scale)).on_lattice)
    lattice = pn.Mechanism(family(scale=2.0**-900), 2.0**-900).on_lattice()
    assert math.isfinite(lattice.release(0.0))


# -- epsilon, delta, sampling_rate, count ----------------------------------------------------------


@pytest.mark.parametrize("method", ["certified", "upper", "estimate"])
def test_epsilons(method):
    refused(pn.DomainError, "epsilon must not be NaN", GAUSSIAN.delta, math.nan, method=method)
    assert float(GAUSSIAN.delta(-math.inf, method=method)) == 1.0
    assert float(GAUSSIAN.delta(math.inf, method=method)) == 0.0
    with np.errstate(all="raise"):
        for epsilon in (709.0, 710.5, 745.5, 1e4):
            found = float(pn.Mechanism(pn.Gaussian(std=0.02)).delta(epsilon, method=method))
            assert 0.0 <= found <= 1.0


def test_negative_epsilons_are_refused_where_they_are_a_target():
    for epsilon in (-1.0, -1e-300, math.nan):
        for call in (pn.calibrate, pn.calibrate_release):
            refused(ValueError, "epsilon", call, pn.Gaussian, epsilon=epsilon, delta=1e-6)
        refused(pn.DomainError, "epsilon", pn.Ledger, epsilon, 1e-6)


@pytest.mark.parametrize("lattice", [False, True])
def test_deltas(lattice):
    mechanism = GAUSSIAN.on_lattice() if lattice else GAUSSIAN
    for delta in (-1e-300, 1.0 + 2.0**-52, math.nan, math.inf):
        refused(pn.DomainError, "delta must be in", mechanism.epsilon, delta)
    assert float(mechanism.epsilon(1.0)) == 0.0
    pure = mechanism.epsilon(0.0, method="upper")
    assert pure == mechanism.pure_epsilon()
    # An ideal normal law loses any amount; its table ends with a slope.
    assert math.isinf(pure) == (not lattice)


@pytest.mark.parametrize("law", [pn.Gaussian, pn.Airy, pn.Laplace])
def test_a_tiny_delta_is_right_or_refused(law):
    """Kills: a scale from an underflow."""
    for delta in (1e-300, 5e-324):
        try:
            noise = pn.calibrate(law, epsilon=1.0, delta=delta)
        except pn.CertificationError:
            continue
        assert noise.scale >= pn.calibrate(law, epsilon=1.0, delta=1e-100).scale
        with np.errstate(all="raise"):
            assert pn.Mechanism(noise).delta(1.0, method="upper") <= delta


def test_epsilons_beyond_the_exponential_function():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for std in (0.03, 0.01):
            found = pn.Mechanism(pn.Gaussian(std=std)).epsilon(1e-6, method="upper")
            assert 500.0 < found < 1e5
        assert pn.Mechanism(pn.Laplace(scale=1e-3)).pure_epsilon() == pytest.approx(1e3)


@pytest.mark.parametrize("rate", [-1e-300, 1.0 + 1e-15, math.nan, math.inf])
def test_sampling_rates(rate):
    for call in (
        lambda: GAUSSIAN.epsilon(1e-6, sampling_rate=rate),
        lambda: Accountant().compose(GAUSSIAN, sampling_rate=rate),
        lambda: pn.Ledger(1.0, 1e-6).charge(GAUSSIAN, sampling_rate=rate),
    ):
        refused(pn.DomainError, r"sampling_rate must be in \[0, 1\]", call)


def test_ends_of_the_sampling_rate():
    lattice = GAUSSIAN.on_lattice()
    for mechanism in (GAUSSIAN, lattice):
        assert float(mechanism.epsilon(1e-6, sampling_rate=0.0)) == 0.0
        assert mechanism.epsilon(1e-6, sampling_rate=1.0) == mechanism.epsilon(1e-6)


@pytest.mark.parametrize(
    ("count", "error"),
    [
        (-1, pn.DomainError),
        (2.5, TypeError),
        (2.0, TypeError),
        ("3", TypeError),
        (True, TypeError),
        (None, TypeError),
        (2**63, OverflowError),
    ],
)
def test_counts(count, error):
    for call in (
        lambda: GAUSSIAN.epsilon(1e-6, count),
        lambda: Accountant().compose(GAUSSIAN, count),
        lambda: pn.Ledger(1.0, 1e-6).charge(GAUSSIAN, count),
    ):
        refused(error, "count must be", call)


def test_ends_of_the_count():
    assert float(GAUSSIAN.epsilon(1e-6, 0)) == 0.0
    wide = pn.Mechanism(pn.Gaussian(std=1e6))
    assert 0.0 < wide.epsilon(1e-6, 10**12, method="estimate") < 10.0


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, -1.0, 2.0 + 1e-15, math.nan, math.inf])
def test_indices(alpha):
    refused(pn.DomainError, "alpha must", pn.SymmetricStable, alpha=alpha, scale=1.0)


def test_indices_with_a_name():
    x = np.linspace(0.0, 9.0, 20)
    normal, cauchy = (pn.SymmetricStable(alpha=alpha, scale=1.5) for alpha in (2.0, 1.0))
    assert normal.std**2 == pytest.approx(2.0 * 1.5**2, rel=1e-15)
    np.testing.assert_allclose(normal.pdf(x), pn.Gaussian(std=normal.std).pdf(x), rtol=1e-13)
    np.testing.assert_allclose(cauchy.pdf(x), pn.Cauchy(scale=1.5).pdf(x), rtol=1e-13)


def test_moments_that_do_not_exist():
    assert pn.Cauchy(scale=1.0).mean_abs == math.inf
    assert pn.Cauchy(scale=1.0).std == math.inf
    assert pn.Cauchy(scale=1.0).moment(2) == math.inf
    for size in ("mean_abs", "std"):
        refused(
            pn.DomainError,
            f"{size} must be left out, since it is infinite",
            lambda size=size: pn.SymmetricStable(alpha=1.0, **{size: 1.0}),
        )


def _asymmetric(x):
    return np.where(x < 0.0, 2.0, 1.0) * np.abs(x)


@pytest.mark.parametrize(
    ("cost", "error", "match"),
    [
        (3, TypeError, "cost must be callable"),
        ("x", TypeError, "cost must be callable"),
        (lambda x: 1 // 0, ZeroDivisionError, ""),
        (lambda x: np.where(np.abs(x) > 1.0, math.nan, x), pn.DomainError, "NaN at x = "),
        (lambda x: -np.abs(x), pn.DomainError, "must not decrease.* at x = "),
        (_asymmetric, pn.DomainError, r"must be even, got cost\("),
        (np.tanh, pn.DomainError, "must be even"),
        (lambda x: np.tanh(np.abs(x)), pn.DomainError, "must grow without bound"),
        (lambda x: np.abs(x)[:-1], TypeError, "must have the shape of x"),
        (lambda x: x.astype(str), TypeError, "must be real numbers"),
    ],
)
def test_costs(cost, error, match):
    refused(error, match, costs.Custom, cost)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"cells": 1, "cells_per_sensitivity": 1}, pn.DomainError),
        ({"cells": 100.0}, TypeError),
        ({"cells_per_sensitivity": 2.5}, TypeError),
        ({"cells_per_sensitivity": 0}, pn.DomainError),
        ({"tail_ratio": 0.0}, pn.DomainError),
        ({"tail_ratio": 1.0}, pn.DomainError),
        ({"tail_ratio": math.nan}, pn.DomainError),
        ({"mean_cost": 1e-9, "cells_per_sensitivity": 2, "cells": 4}, pn.CalibrationError),
    ],
)
def test_cacti(arguments, error):
    refused(error, "", pn.Cactus, **arguments)


# -- grids -----------------------------------------------------------------------------------------


def test_grids():
    message = refused(pn.DomainError, "grid must be a power of two", GAUSSIAN.on_lattice, 0.3)
    assert "0.25" in message
    refused(pn.DomainError, "grid must be ", GAUSSIAN.on_lattice, 0.0)
    refused(pn.DomainError, "grid must be ", GAUSSIAN.on_lattice, math.nan)
    for grid in ("1", 1j, True):
        refused(TypeError, "grid must be a real number", GAUSSIAN.on_lattice, grid)
    # 2^31 cells of sensitivity are the most.
    message = refused(
        pn.DomainError,
        "grid must be",
        pn.Mechanism(pn.Gaussian(std=2.0**40), 2.0**33).on_lattice,
        1.0,
    )
    assert "at least" in message


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1e-3])
def test_noise_far_narrower_than_a_cell(scale):
    """No weight is 0, so that the loss is large and finite; nothing divides by 0."""
    lattice = pn.Mechanism(pn.Laplace(scale=scale), 1e-3).on_lattice(1.0)
    assert lattice.noise.weights.tolist() == [2**63 - 1, 1]
    assert 44.0 < lattice.pure_epsilon() < 45.0
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


@pytest.mark.parametrize(
    ("out", "error"),
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
    refused(error, "out", GAUSSIAN.release, [1.0, 2.0, 3.0], out=out)
    np.testing.assert_array_equal(out, before)


def test_an_output_is_never_replaced_by_a_copy():
    x, out = np.arange(3.0), np.full(3, 7.0)
    assert GAUSSIAN.release(x, out=out) is out
    assert (out != 7.0).all()
    buffer = np.arange(8.0)
    refused(ValueError, "overlap", GAUSSIAN.release, buffer[:5], out=buffer[2:7])
    np.testing.assert_array_equal(buffer, np.arange(8.0))


# -- data ------------------------------------------------------------------------------------------

SECRET = 8675309
RECORDS = np.array([(1.0, 2)], dtype=[("a", float), ("b", int)])


@pytest.mark.parametrize(
    "x",
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
        [SECRET * 10**20],
        True,
        np.array([True]),
        {"x": SECRET},
        {SECRET},
    ],
    ids=lambda x: f"{type(x).__name__} {getattr(x, 'dtype', '')}",
)
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_data_of_the_wrong_kind(x, bounds):
    message = refused((TypeError, OverflowError), "x must ", GAUSSIAN.release, x, bounds=bounds)
    assert str(SECRET) not in message


def test_the_length_of_text_is_not_shown():
    messages = {refused(TypeError, "x must", GAUSSIAN.release, [text]) for text in ("1", "12345")}
    assert len(messages) == 1


GOOD = [-5.0, 0.0, 3.0, 2.0**10]  # float32 holds them with noise


@pytest.mark.parametrize(
    "x",
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
    ],
    ids=lambda x: f"{type(x).__name__} {getattr(x, 'dtype', '')}",
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
    assert np.ndim(GAUSSIAN.release(1.5)) == 0
    assert np.ndim(GAUSSIAN.release(np.array(1.5))) == 0
    for shape in ((0,), (3, 0), (2, 3, 4), (1,)):
        assert GAUSSIAN.release(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_numbers_that_are_none(bad, kind):
    """One message for all data: not the value, nor how many, nor where."""
    first = refused(pn.DomainError, "x must be finite", GAUSSIAN.release, kind(bad))
    for x in ([bad, SECRET], [SECRET, 1.0, bad], [[bad] * 3] * 4):
        assert refused(ValueError, "", GAUSSIAN.release, np.array(x, dtype=kind)) == first
    clipped = replay(GAUSSIAN, np.array([bad], dtype=kind), bytes(32), bounds=(2, 5))
    ends = (
        replay(GAUSSIAN, np.array([2.0], dtype=kind), bytes(32)),
        replay(GAUSSIAN, np.array([5.0], dtype=kind), bytes(32)),
    )
    assert clipped == (ends[1] if bad > 0 else ends[0])


@pytest.mark.parametrize(
    ("bounds", "error"),
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
    refused(error, "bound", GAUSSIAN.release, 1.0, bounds=bounds)


# -- keywords and stored text ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda: pn.Airy(mean_ab=1.0), "mean_abs"),
        (lambda: pn.Cactus(sensitivty=1.0), "sensitivity"),
        (lambda: pn.Staircase(epsilom=1.0), "epsilon"),
    ],
)
def test_unknown_keywords_of_laws(call, nearest):
    refused(TypeError, f"did you mean '{nearest}'", call)


def test_unknown_keywords_of_a_release():
    for mechanism in (GAUSSIAN, GAUSSIAN.on_lattice()):
        refused(TypeError, "did you mean 'bounds'", lambda made=mechanism: made.release(1, bound=1))


@pytest.mark.parametrize("name", ["seed", "rng", "key", "random_state"])
def test_a_release_takes_no_seed(name):
    message = refused(TypeError, name, lambda: GAUSSIAN.release(1.0, **{name: 3}))
    assert "sample" in message


def stored(name):
    """Something that is stored as text, and what reads it."""
    if name == "accountant":
        return Accountant().compose(GAUSSIAN).to_json(), Accountant.from_json
    lattice = GAUSSIAN.on_lattice()
    made = lattice if name == "mechanism" else lattice.noise
    return made.to_json(), type(made).from_json


@pytest.mark.parametrize("name", ["accountant", "mechanism", "noise"])
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
